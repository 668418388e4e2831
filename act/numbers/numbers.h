/* numbers.h - the numbers that programs print into their logs while they work, as curves: "step 100/1000 loss 2.31",
 * "{'loss': 2.31, 'epoch': 0.1}", "Epoch: [3][ 10/100] Time 0.12 (0.13) Loss 2.3 (2.4)", lines of JSON.
 *
 *   KEY = 2.31    KEY=2.31    KEY: 2.31    'KEY': 2.31    a name and its value, whatever the name
 *   KEY:2.31      KEY 2.31                                only names of the table of measures: loss, lr, acc, ...
 *   step 100      step 100/1000   step=100   [100/1000]   where the program is, as are iter, iteration, batch, update
 *   Epoch 3       Epoch [3/10]    Epoch 3 [640/60000]     the same; a fraction behind it is the part of the epoch
 *
 * The x of a value is the step in its line or up to three lines before it, else the epoch in its line, else how many
 * values the key had before. A step that goes back in a new epoch goes on counting; one that goes back otherwise is a
 * program that resumed, whose later values replace the earlier ones.
 *
 * The time of a value is what its line, or one of the three before it, has in front ("2026-11-29 12:34:56,789 INFO",
 * "11/29/2026 12:34:56 -", with or without a zone), or a number of it named "timestamp".
 *
 * Lines of the agent ("act: ...") have no numbers, nor has what a preparation has printed.
 *
 * Log text is hostile: lines are read up to NUMBERS_LINE bytes, there are at most NUMBERS_KEYS keys, each of at most
 * NUMBERS_NAME bytes of [A-Za-z0-9_./@-], and of a key at most SERIES_MAX points.
 */
#ifndef ACT_NUMBERS_NUMBERS_H
#define ACT_NUMBERS_NUMBERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "numbers/series.h"

enum { NUMBERS_LINE = 16384, NUMBERS_KEYS = 256, NUMBERS_NAME = 64 };

enum numbers_by { NUMBERS_BY_COUNT, NUMBERS_BY_EPOCH, NUMBERS_BY_STEP };
const char *numbers_by_name(enum numbers_by by); /* "value", "epoch", "step": what x counts */

struct numbers_key {
    char name[NUMBERS_NAME + 1]; /* as it was first written */
    enum numbers_by by;
    bool is_measure; /* its name is one of the table */
    bool is_added;   /* by numbers_add(): it is not of a log */
    struct series series;
    struct series times; /* x against Unix seconds, if these are known */
};

/* Takes a log in pieces of any size. */
struct numbers;
struct numbers *numbers_new(void);
/* Has only points in a range kept, of keys that are found from now on. */
void numbers_set_range(struct numbers *n, struct series_range range);
void numbers_feed(struct numbers *n, const char *text, size_t len);
/* Ends a log: a last line without a newline counts. Another log may follow, as the next attempt's. */
void numbers_end(struct numbers *n);
void numbers_free(struct numbers *n);
/* Sorts all curves. from, until: when the run was, in Unix seconds; times that had no zone are moved by whole hours, or
 * else quarters of hours, until they are not before it, if that puts none of them behind it. */
void numbers_sort(struct numbers *n, double from, double until);
/* Adds a value that comes from elsewhere, at a step and a time. Of a name that a log has, the log's values count. The
 * name is one that keys may have. */
void numbers_add(struct numbers *n, const char *name, double step, double value, double unix_s);

/* Returns the epoch at a step, which may be a part of one: between the steps at which an epoch was first seen, it is
 * what lies between; NAN: not known. After numbers_sort(). */
double numbers_epoch_at(const struct numbers *n, double step);

/* The keys in the order they were found; their series are sorted once numbers_sort() was called. Names that differ in
 * case are one key. Valid until the next piece. */
size_t numbers_count(const struct numbers *n);
/* Tells whether there were other names, for which there was no room. */
bool numbers_has_more(const struct numbers *n);
struct numbers_key *numbers_key(struct numbers *n, size_t i);
/* Returns the key of this name, in any case of letters; NULL: there is none. */
struct numbers_key *numbers_find(struct numbers *n, const char *name);

/* Returns how far a program is by a line of its log, "45/100, 4.32it/s, 00:12 left": the last fraction that is of a
 * progress bar of tqdm, Lightning, Hugging Face or Keras, or stands behind a word that counts ("epoch 3/10"), with rate
 * and time left where the bar has them. New string; NULL: the line does not say. */
char *numbers_progress(const char *line);

#endif
