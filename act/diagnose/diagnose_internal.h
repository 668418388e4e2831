/* diagnose_internal.h - for the files of diagnose/ only. */
#ifndef ACT_DIAGNOSE_DIAGNOSE_INTERNAL_H
#define ACT_DIAGNOSE_DIAGNOSE_INTERNAL_H

#include <regex.h>

#include "base/text.h"
#include "diagnose/diagnose.h"

/* ---- words.c: finds many words in one pass over a text, whatever their case (Aho and Corasick, 1975) */

struct words;
/* Takes at most WORD_MAX bytes of each word. An empty one is never found. */
enum { WORD_MAX = 24 };
struct words *words_new(const char *const *words, size_t n);
void words_free(struct words *w);
/* Calls found for every place where a word ends; end points past it. */
void words_find(const struct words *w, const char *text, size_t len,
                void (*found)(void *arg, size_t word, const char *end), void *arg);

/* ---- traceback.c */

#define TRACEBACK_HEAD "Traceback (most recent call last):"

enum traceback_phase { TRACEBACK_NONE, TRACEBACK_BEGUN, TRACEBACK_FRAMES };
struct traceback {
    enum traceback_phase phase;
    int strangers;    /* lines since the last one that belongs to it */
    char prefix[128]; /* what stands before each of its lines */
    size_t prefix_len;
};
/* Begins at a line with TRACEBACK_HEAD. */
void traceback_begin(struct traceback *t);
/* Tells whether the line stands between two exceptions of a chain, of which the later one is what ended the program. */
bool traceback_is_link(const struct traceback *t, const char *line, size_t len);
/* Takes the next line. Returns where the exception begins in it; len: it has none. */
size_t traceback_take(struct traceback *t, const char *line, size_t len);

/* ---- rules.c */

enum pattern_role { PATTERN_MATCH, PATTERN_UNLESS, PATTERN_AFTER, PATTERN_NOT_AFTER, PATTERN_TRACEBACK };

struct pattern {
    enum pattern_role role;
    size_t rule;
    char *text; /* of a text, or the literal part of a regular expression; lower case with ignore_case */
    bool ignore_case;
    bool is_regex;
    regex_t regex;
};

struct rule {
    struct diagnose_rule shown;
    uint64_t times;
    bool has_after, has_not_after;
    bool traceback; /* the end of a traceback matches, too */
};

struct diagnose {
    struct rule *rules;
    size_t n_rules;
    struct pattern *patterns; /* those of a rule one after another */
    size_t n_patterns;
    struct words *words; /* word i is the text of pattern i, but for those of "unless" */
};

/* Returns the longest piece of text that anything which matches the expression must hold; empty: there is none. New
 * string. */
char *pattern_literal(const char *regex);
bool pattern_matches(const struct pattern *p, const char *line, size_t len);

extern const char diagnose_builtin[], diagnose_builtin_end[];

#endif
