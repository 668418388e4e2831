/* words.c - finds many words in one pass. A table of states has the next state for each state and class of bytes. */
#include <string.h>

#include "diagnose/diagnose_internal.h"

enum { ALPHABET = 256 };
#define NONE UINT32_MAX

struct words {
    uint8_t class_of[ALPHABET]; /* bytes that are in no word are class 0 */
    size_t n_classes;
    uint32_t *next;     /* n_states rows of n_classes; row 0 is the start */
    uint32_t *word;     /* the last word that ends here, or NONE */
    uint32_t *shorter;  /* the longest proper ending of this state that is a state too */
    uint32_t *reported; /* the nearest of this state and its endings where a word ends; 0: none */
    uint32_t *same;     /* of each word: another word that ends where it does, or NONE */
    size_t n_states;
};

static unsigned char lower(char c)
{
    return c >= 'A' && c <= 'Z' ? (unsigned char)(c - 'A' + 'a') : (unsigned char)c;
}

static size_t word_length(const char *word)
{
    return strnlen(word, WORD_MAX);
}

/* Gives each byte that occurs a class, and both cases of a letter the same one. */
static void make_classes(struct words *w, const char *const *words, size_t n)
{
    w->n_classes = 1;
    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; k < word_length(words[i]); k++) {
            unsigned char c = lower(words[i][k]);
            if (w->class_of[c] == 0)
                w->class_of[c] = (uint8_t)w->n_classes++;
        }
    for (int c = 'A'; c <= 'Z'; c++)
        w->class_of[c] = w->class_of[lower((char)c)];
}

static uint32_t *edge(const struct words *w, uint32_t state, uint8_t class)
{
    return &w->next[state * w->n_classes + class];
}

static void add_word(struct words *w, const char *text, uint32_t index)
{
    uint32_t state = 0;

    for (size_t k = 0; k < word_length(text); k++) {
        uint32_t *next = edge(w, state, w->class_of[lower(text[k])]);
        if (*next == 0)
            *next = (uint32_t)w->n_states++;
        state = *next;
    }
    w->same[index] = w->word[state];
    w->word[state] = index;
}

/* Completes row by row in the order of their depth, so that the ending of a state is complete before the state is. */
static void diagnose_words_complete(struct words *w)
{
    ACT_AUTOFREE uint32_t *queue = act_calloc(w->n_states, sizeof(*queue));
    size_t first = 0, last = 0;

    queue[last++] = 0;
    while (first < last) {
        uint32_t state = queue[first++], ending = w->shorter[state];
        w->reported[state] = w->word[state] != NONE ? state : w->reported[ending];
        for (size_t c = 0; c < w->n_classes; c++) {
            uint32_t *next = edge(w, state, (uint8_t)c);
            uint32_t fallback = state ? *edge(w, ending, (uint8_t)c) : 0;
            if (*next == 0) {
                *next = fallback;
            } else {
                w->shorter[*next] = fallback;
                queue[last++] = *next;
            }
        }
    }
}

struct words *words_new(const char *const *words, size_t n)
{
    struct words *w = act_calloc(1, sizeof(*w));
    size_t most = 1;

    make_classes(w, words, n);
    for (size_t i = 0; i < n; i++)
        most += word_length(words[i]);
    w->next = act_calloc(most * w->n_classes, sizeof(*w->next));
    w->word = act_alloc(most * sizeof(*w->word));
    w->shorter = act_calloc(most, sizeof(*w->shorter));
    w->reported = act_calloc(most, sizeof(*w->reported));
    w->same = act_calloc(n + 1, sizeof(*w->same));
    memset(w->word, 0xff, most * sizeof(*w->word));
    w->n_states = 1;
    for (size_t i = 0; i < n; i++)
        add_word(w, words[i], (uint32_t)i);
    diagnose_words_complete(w);
    return w;
}

void words_free(struct words *w)
{
    if (!w)
        return;
    free(w->next);
    free(w->word);
    free(w->shorter);
    free(w->reported);
    free(w->same);
    free(w);
}

void words_find(const struct words *w, const char *text, size_t len,
                void (*found)(void *arg, size_t word, const char *end), void *arg)
{
    uint32_t state = 0;

    for (size_t i = 0; i < len; i++) {
        state = *edge(w, state, w->class_of[(unsigned char)text[i]]);
        for (uint32_t s = w->reported[state]; s; s = w->reported[w->shorter[s]])
            for (uint32_t word = w->word[s]; word != NONE; word = w->same[word])
                found(arg, word, text + i + 1);
    }
}
