#include "base/error.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"

/* The mark of a text that did not fit. */
static void mark_cut(char *text)
{
    static const char mark[] = "...";

    memcpy(text + sizeof(((struct act_error *)0)->text) - sizeof(mark), mark, sizeof(mark));
}

ACT_PRINTF(2, 0)
static void set_text(struct act_error *err, const char *fmt, va_list ap)
{
    int n = vsnprintf(err->text, sizeof(err->text), fmt, ap);

    if (n >= (int)sizeof(err->text))
        mark_cut(err->text);
    /* remote text must not move a terminal's cursor or forge a line */
    act_mask_controls(err->text, "\n\t", '?');
    act_mask_controls(err->text, "", ' ');
}

/* Replaces the text by "<a><sep><b>"; a and b may point into the old text's copy. */
static void join_text(struct act_error *err, const char *a, const char *sep, const char *b)
{
    char joined[2 * sizeof(err->text)];

    snprintf(joined, sizeof(joined), "%s%s%s", a, sep, b);
    joined[sizeof(err->text) - 1] = '\0';
    if (strlen(joined) == sizeof(err->text) - 1)
        mark_cut(joined);
    memcpy(err->text, joined, sizeof(err->text));
}

ACT_PRINTF(3, 0)
static int set_code(struct act_error *err, enum act_code code, const char *fmt, va_list ap)
{
    int saved = errno;

    if (err) {
        err->code = code;
        err->http_status = 0;
        err->network = false;
        err->service_code[0] = '\0';
        err->request_id[0] = '\0';
        set_text(err, fmt, ap);
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
        join_text(err, err->text, ": ", strerror_r(errnum, why, sizeof(why)));
    return rc;
}

int act_error_prefix(struct act_error *err, const char *fmt, ...)
{
    if (!err)
        return -ACT_FAIL;

    char old[sizeof(err->text)];
    va_list ap;

    memcpy(old, err->text, sizeof(old));
    va_start(ap, fmt);
    set_text(err, fmt, ap);
    va_end(ap);
    join_text(err, err->text, ": ", old);
    return -(int)err->code;
}

int act_error_hint(struct act_error *err, const char *fmt, ...)
{
    if (!err)
        return -ACT_FAIL;

    char old[sizeof(err->text)];
    va_list ap;

    memcpy(old, err->text, sizeof(old));
    va_start(ap, fmt);
    set_text(err, fmt, ap);
    va_end(ap);
    join_text(err, old, "; ", err->text);
    return -(int)err->code;
}
