/* traceback.c - finds the line that ends a Python traceback: that is the exception, whatever its name.
 *
 *   none --head--> begun --frame--> frames --line that is not indented--> begun, as a remote traceback may follow
 *
 * If a launcher, a table or a group of exceptions writes something before each frame, it also stands before the
 * exception. */
#include <ctype.h>
#include <string.h>

#include "diagnose/diagnose_internal.h"

enum { STRANGERS = 50 /* lines of other processes within a traceback */ };

void traceback_begin(struct traceback *t)
{
    *t = (struct traceback){.phase = TRACEBACK_BEGUN};
}

/* Returns where a frame begins in a line, behind what a launcher may have written before it; NULL: it is not a
 * frame. */
static const char *find_frame(const char *line, size_t len)
{
    static const char frame[] = "  File \"";

    return memmem(line, len, frame, sizeof(frame) - 1);
}

bool traceback_is_link(const struct traceback *t, const char *line, size_t len)
{
    static const char *const links[] = {"During handling of the above exception, another exception occurred:",
                                        "The above exception was the direct cause of the following exception:"};

    for (size_t i = 0; t->phase == TRACEBACK_BEGUN && i < sizeof(links) / sizeof(links[0]); i++)
        if (memmem(line, len, links[i], strlen(links[i])))
            return true;
    return false;
}

/* Recognizes "ValueError: bad", "queue.Empty", "__main__.f.<locals>.Odd", "RayTaskError(Empty): ...". */
static bool is_exception(const char *line, size_t len)
{
    size_t n = 0;

    while (n < len && (isalnum((unsigned char)line[n]) || strchr("_.<>()", line[n]) || (line[n] & 0x80)))
        n++;
    return n > 0 && !isdigit((unsigned char)line[0]) &&
           (n == len || (line[n] == ':' && (n + 1 == len || line[n + 1] == ' ')));
}

/* Passes a line that tells nothing of the traceback. */
static size_t pass(struct traceback *t, size_t len)
{
    if (++t->strangers > STRANGERS)
        t->phase = TRACEBACK_NONE;
    return len;
}

/* Takes the first frame: the text before it stands before all of them. */
static size_t traceback_take_first(struct traceback *t, const char *line, size_t len)
{
    const char *frame = find_frame(line, len);
    size_t n = frame ? (size_t)(frame - line) : 0;

    if (!frame || n > sizeof(t->prefix))
        return pass(t, len);
    *t = (struct traceback){.phase = TRACEBACK_FRAMES, .prefix_len = n};
    memcpy(t->prefix, line, n);
    return len;
}

static size_t traceback_take_next(struct traceback *t, const char *line, size_t len)
{
    size_t n = t->prefix_len;

    if (len <= n || memcmp(line, t->prefix, n) != 0)
        return pass(t, len);
    if (line[n] == ' ')
        return len;
    if (!is_exception(line + n, len - n))
        return pass(t, len);
    traceback_begin(t);
    return n;
}

size_t traceback_take(struct traceback *t, const char *line, size_t len)
{
    switch (t->phase) {
    case TRACEBACK_BEGUN:
        return traceback_take_first(t, line, len);
    case TRACEBACK_FRAMES:
        return traceback_take_next(t, line, len);
    case TRACEBACK_NONE:
        break;
    }
    return len;
}
