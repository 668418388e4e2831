/* clock.h - time, in and out. All text forms are UTC and independent of the locale. */
#ifndef ACT_BASE_CLOCK_H
#define ACT_BASE_CLOCK_H

#include <stdbool.h>
#include <stdint.h>
#include <time.h>

/* The time since 1970, and since the machine was booted. */
int64_t act_now_unix_s(void);
int64_t act_now_unix_ns(void);
int64_t act_now_monotonic_ms(void);

#define ACT_TIME_TEXT 40 /* bytes that hold any of the forms below, NUL included */

/* Writes "Fri, 20 Nov 2026 09:00:00 GMT" (RFC 9110 section 5.6.7, IMF-fixdate). */
void act_time_to_http(int64_t unix_s, char out[ACT_TIME_TEXT]);
/* Reads that form; false if text is malformed. */
bool act_time_from_http(const char *text, int64_t *out_unix_s);

/* Writes "2026-11-20T09:00:00Z" (RFC 3339). */
void act_time_to_iso(int64_t unix_s, char out[ACT_TIME_TEXT]);
/* Writes the same with nine decimals, as rclone writes the metadata "mtime". */
void act_time_to_iso_ns(int64_t unix_ns, char out[ACT_TIME_TEXT]);
/* Reads both forms, with 0 to 9 decimals and "Z" or a numeric offset; false if text is malformed. */
bool act_time_from_iso_ns(const char *text, int64_t *out_unix_ns);

/* Writes "2026-11-20 10:00:00" in the user's time zone, for tables. */
void act_time_to_local(int64_t unix_s, char out[ACT_TIME_TEXT]);

/* Converts t to nanoseconds. A time that 64 bits cannot hold (before 1677, after 2262) becomes the first or the last
 * one that they can. */
static inline int64_t act_timespec_ns(struct timespec t)
{
    int64_t ns;

    if (__builtin_mul_overflow((int64_t)t.tv_sec, INT64_C(1000000000), &ns) ||
        __builtin_add_overflow(ns, (int64_t)t.tv_nsec, &ns))
        return t.tv_sec < 0 ? INT64_MIN : INT64_MAX;
    return ns;
}

static inline struct timespec act_ns_timespec(int64_t ns)
{
    int64_t s = ns / 1000000000, rest = ns % 1000000000;

    if (rest < 0) {
        s--;
        rest += 1000000000;
    }
    return (struct timespec){.tv_sec = s, .tv_nsec = rest};
}

#endif
