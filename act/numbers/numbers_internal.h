/* numbers_internal.h - between the reader of lines and what becomes of them. */
#ifndef ACT_NUMBERS_NUMBERS_INTERNAL_H
#define ACT_NUMBERS_NUMBERS_INTERNAL_H

#include <stdbool.h>
#include <stddef.h>

#include "numbers/numbers.h"

/* Tells whether a list of n words has the len bytes of a word, in any case of letters. */
bool numbers_is_among(const char *const *list, size_t n, const char *word, size_t len);
#define NUMBERS_IS_AMONG(list, word, len) numbers_is_among(list, sizeof(list) / sizeof((list)[0]), word, len)

/* The meaning of a word. */
struct numbers_meaning {
    bool is_measure, is_denied, is_amount, is_time;
    bool is_position; /* where the program is, counted by */
    enum numbers_by by;
    bool is_qualifier, is_filler, is_odd; /* words.c */
};
void numbers_judge_word(const char *word, struct numbers_meaning *out);

/* A word that was looked up: the same words come in every line. {0} begins. */
struct numbers_word {
    char text[NUMBERS_NAME + 1];
    struct numbers_meaning meaning;
    size_t key; /* one more than the index of the key with this name; 0: not known */
};
enum { NUMBERS_WORDS = 256 };
struct numbers_words {
    struct numbers_word v[NUMBERS_WORDS]; /* by hash */
};
/* Valid until the next call. */
struct numbers_word *numbers_word(struct numbers_words *words, const char *text);

enum { NUMBERS_PAIRS = 128 };

struct numbers_pair {
    char name[NUMBERS_NAME + 1];
    struct numbers_meaning meaning;
    double value;
};

/* The numbers of a line. */
struct numbers_line {
    struct numbers_pair v[NUMBERS_PAIRS];
    size_t n;
    double bare, bare_total; /* "640/60000" without a name; total 0: there is none */
    bool bare_is_step;       /* it is written as progress bars do */
};
static inline void numbers_line_begin(struct numbers_line *line)
{
    line->n = 0; /* the pairs need not be cleared, which would take longer than to read most lines */
    line->bare = line->bare_total = 0;
    line->bare_is_step = false;
}
/* Adds a pair; false: its name is too long, or there are too many. */
bool numbers_line_add(struct numbers_line *line, struct numbers_words *words, const char *name, double value);

/* Cuts escape sequences out of text, which ends with NUL, in place. Returns the new length. */
size_t numbers_clean(char *text, size_t len);
/* Reads a line of text. */
void numbers_read_words(const char *text, struct numbers_words *words, struct numbers_line *out);
bool numbers_in_name(char c);
/* Reads the time near the beginning of a line. *out_zoned: it says where it was so late; else it is read as UTC. false:
 * there is none. */
bool numbers_read_time(const char *text, double *out_unix_s, bool *out_zoned);

/* Reads digits, perhaps with a point and an exponent, as strtod() does, but most of them quicker. Returns what is
 * behind them; NULL: there is no number. */
const char *numbers_decimal(const char *s, double *out);

#endif
