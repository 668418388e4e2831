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

/* The long texts, at the places that their hashes say; see error.h. Threads share the table without a lock, because a
 * row is written once. */
static _Atomic(char *) kept[KEPT_MAX];

static size_t hash_text(const char *text)
{
    size_t sum = 5381; /* Bernstein's */

    for (; *text; text++)
        sum = sum * 33 + (unsigned char)*text;
    return sum;
}

/* Returns the table's copy of the text, or NULL if there is no room for it. */
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

static bool continues_character(char c)
{
    return ((unsigned char)c & 0xc0) == 0x80;
}

/* Leaves out the middle of a text that is too long: its beginning says what failed, its end says why. */
static void copy_cut(char *out, size_t size, const char *text)
{
    static const char mark[] = "...";
    size_t len = strlen(text), head = (size - sizeof(mark)) / 2, tail = size - sizeof(mark) - head;

    if (len < size) {
        memcpy(out, text, len + 1);
        return;
    }
    while (head > 0 && continues_character(text[head]))
        head--;
    while (continues_character(text[len - tail]))
        tail--;
    snprintf(out, size, "%.*s%s%s", (int)head, text, mark, text + len - tail);
}

static void error_set_text(struct act_error *err, const char *text)
{
    char cut[ACT_ERROR_TEXT];

    copy_cut(cut, sizeof(cut), text);
    copy_cut(err->brief, sizeof(err->brief), cut);
    err->long_text = strlen(cut) < sizeof(err->brief) ? NULL : keep_long_text(cut);
}

/* New string. */
ACT_PRINTF(1, 0)
static char *format_text(const char *fmt, va_list ap)
{
    char *text = act_vsprintf(fmt, ap);

    /* remote text must not move a terminal's cursor or forge a line */
    act_mask_controls(text, "\n\t", '?');
    act_mask_controls(text, "", ' ');
    return text;
}

/* Makes the text "<a><sep><b>". */
static void join_text(struct act_error *err, const char *a, const char *sep, const char *b)
{
    ACT_AUTOFREE char *joined = act_sprintf("%s%s%s", a, sep, b);

    error_set_text(err, joined);
}

ACT_PRINTF(3, 0)
static int set_code(struct act_error *err, enum act_code code, const char *fmt, va_list ap)
{
    int saved = errno;

    if (err) {
        err->code = code;
        err->fact = ACT_FACT_NONE;
        err->http_status = 0;
        err->network = false;
        err->service_code[0] = '\0';
        err->request_id[0] = '\0';
        ACT_AUTOFREE char *text = format_text(fmt, ap);
        error_set_text(err, text);
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

    va_list ap;

    va_start(ap, fmt);
    ACT_AUTOFREE char *text = format_text(fmt, ap);
    va_end(ap);
    join_text(err, text, ": ", act_error_text(err));
    return -(int)err->code;
}

int act_error_hint(struct act_error *err, const char *fmt, ...)
{
    if (!err)
        return -ACT_FAIL;

    va_list ap;

    va_start(ap, fmt);
    ACT_AUTOFREE char *text = format_text(fmt, ap);
    va_end(ap);
    const char *before = act_error_text(err);
    join_text(err, before, act_ends_with(before, "?") ? " " : "; ", text);
    return -(int)err->code;
}
