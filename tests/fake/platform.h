/* platform.h - a platform for tests: it goes away, forgets, and starts runs anew on command. Its row is the test's to
 * change, so that callers meet any facts. Link it with whatever uses platforms: its table takes the place of the
 * product's. */
#ifndef ACT_TESTS_FAKE_PLATFORM_H
#define ACT_TESTS_FAKE_PLATFORM_H

#include "platform/platform.h"

enum { FAKE_LOGS_MAX = 8 };

struct fake {
    struct platform_row row; /* "fake", as a cluster file names it */
    struct run_status status;
    struct {
        const char *name, *text; /* sorted by name */
    } logs[FAKE_LOGS_MAX];
    size_t n_logs;
    int logs_take_ms;           /* a list of the logs */
    int fail_status, fail_logs; /* so many calls fail */
    int fail_code, fail_submit;
    int shrinks;                                     /* so many reads find a log that is shorter than it was */
    void (*before_logs)(int call);                   /* called before each list of the logs, from 1 */
    void (*before_read)(int call, const char *name); /* likewise */
    _Atomic int n_status, n_open, n_close;           /* several places are asked at once */
    int n_logs_calls, n_read;
    char root[64]; /* of the cluster that was opened last */
    char did[64];  /* "abort submit ": what else it was asked for */
};
extern struct fake fake;

/* As it is when a test begins, and before platform_begin(): a run is running, nothing fails, and what was counted is
 * forgotten. */
void fake_reset(void);

#endif
