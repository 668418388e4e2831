#include "base/error.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"

enum {
    KEPT_MAX = 4096,
    PROBES_MAX = 64,
};

/* Long texts, found by their hash; see error.h. Threads share it without a lock: a row is written once. */
static _Atomic(char *) kept[KEPT_MAX];

static size_t hash_text(const char *text)
{
    size_t sum = 5381; /* Bernstein's */

    for (; *text; text++)
        sum = sum * 33 + (unsigned char)*text;
    return sum;
}

/* The table's copy of the text; NULL when there is no room for it. */
static const char *keep_long_text(const char *text)
{
    char *copy = act_strdup(text);
    size_t at = hash_text(text);

    for (size_t i = at; i < at + PROBES_MAX; i++) {
        char *there = NULL;
        if (atomic_compare_exchange_strong(&kept[i % KEPT_MAX], &there, copy))
            return copy;
        if (strcmp(there, text) == 0) {
            free(copy);
            return there;
        }
    }
    free(copy);
    return NULL;
}

/* Marks the end of a text of which only size - 1 bytes fit. */
static void mark_cut(char *text, size_t size)
{
    static const char mark[] = "...";

    memcpy(text + size - sizeof(mark), mark, sizeof(mark));
}

static void set_text(struct act_error *err, const char *text)
{
    bool fits = strlen(text) < sizeof(err->brief);

    err->long_text = fits ? NULL : keep_long_text(text);
    snprintf(err->brief, sizeof(err->brief), "%s", text);
    if (!fits)
        mark_cut(err->brief, sizeof(err->brief));
}

ACT_PRINTF(2, 0)
static void format_text(char text[ACT_ERROR_TEXT], const char *fmt, va_list ap)
{
    if (vsnprintf(text, ACT_ERROR_TEXT, fmt, ap) >= ACT_ERROR_TEXT)
        mark_cut(text, ACT_ERROR_TEXT);
    /* remote text must not move a terminal's cursor or forge a line */
    act_mask_controls(text, "\n\t", '?');
    act_mask_controls(text, "", ' ');
}

/* The text becomes "<a><sep><b>". */
static void join_text(struct act_error *err, const char *a, const char *sep, const char *b)
{
    char joined[ACT_ERROR_TEXT];

    if (snprintf(joined, sizeof(joined), "%s%s%s", a, sep, b) >= (int)sizeof(joined))
        mark_cut(joined, sizeof(joined));
    set_text(err, joined);
}

ACT_PRINTF(3, 0)
static int set_code(struct act_error *err, enum act_code code, const char *fmt, va_list ap)
{
    int saved = errno;
    char text[ACT_ERROR_TEXT];

    if (err) {
        err->code = code;
        err->fact = ACT_FACT_NONE;
        err->http_status = 0;
        err->network = false;
        err->service_code[0] = '\0';
        err->request_id[0] = '\0';
        format_text(text, fmt, ap);
        set_text(err, text);
    }
    errno = saved;
    return -(int)code;
}

int act_error_set(struct act_error *err, enum act_code code, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    int rc = set_code(err, code, fmt, ap);
    va_end(ap);
    return rc;
}

static enum act_code code_of_errno(int errnum)
{
    switch (errnum) {
    case ENOENT:
    case ENOTDIR:
        return ACT_NOT_FOUND;
    case EACCES:
    case EPERM:
    case EROFS:
        return ACT_DENIED;
    case EAGAIN:
    case EBUSY:
    case ENFILE:
    case EMFILE:
        return ACT_TEMPORARY;
    case ETIMEDOUT:
        return ACT_TIMEOUT;
    case EINTR:
        return ACT_INTERRUPTED;
    default:
        return ACT_FAIL;
    }
}

int act_error_errno(struct act_error *err, int errnum, const char *fmt, ...)
{
    char why[128];
    va_list ap;

    va_start(ap, fmt);
    int rc = set_code(err, code_of_errno(errnum), fmt, ap);
    va_end(ap);
    if (err)
        join_text(err, act_error_text(err), ": ", strerror_r(errnum, why, sizeof(why)));
    return rc;
}

int act_error_prefix(struct act_error *err, const char *fmt, ...)
{
    if (!err)
        return -ACT_FAIL;

    char text[ACT_ERROR_TEXT];
    va_list ap;

    va_start(ap, fmt);
    format_text(text, fmt, ap);
    va_end(ap);
    join_text(err, text, ": ", act_error_text(err));
    return -(int)err->code;
}

int act_error_hint(struct act_error *err, const char *fmt, ...)
{
    if (!err)
        return -ACT_FAIL;

    char text[ACT_ERROR_TEXT];
    va_list ap;

    va_start(ap, fmt);
    format_text(text, fmt, ap);
    va_end(ap);
    join_text(err, act_error_text(err), "; ", text);
    return -(int)err->code;
}
