/* error_lines.c - the lines of a log that the 'parse' of the original ACT shows: those that hold "Error". */
#include <string.h>

#include "flow/why/ranks.h"

enum { SHOWN = 100 }; /* of each log, as in the original */

void flow_error_lines_begin(struct flow_error_scan *s, const char *log, struct flow_codes *out)
{
    s->line.len = 0;
    s->log = log;
    s->shown = 0;
    s->out = out;
}

/* The original leaves out lines with these words, which runs that are well have, too. */
static bool is_harmless(const char *line)
{
    static const char *const words[] = {"TrackUserError:context_managers.TrackUserError", "WARNING: Retrying",
                                        "ErrorCode:BlockCountExceedsLimit", "AZ_BATCHAI"};

    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
        if (strstr(line, words[i]))
            return true;
    return false;
}

static void error_lines_take_line(struct flow_error_scan *s)
{
    struct flow_codes *out = s->out;

    if (s->line.len > 0 && s->shown < SHOWN) {
        s->line.len = diagnose_clean(s->line.data, s->line.len);
        s->line.data[s->line.len] = '\0';
    }
    if (s->line.len > 0 && s->shown < SHOWN && strstr(s->line.data, "Error") && !is_harmless(s->line.data)) {
        ACT_PUSH(out->errors, out->n_errors, (struct flow_error_line){act_strdup(s->log), act_strdup(s->line.data)});
        s->shown++;
    }
    s->line.len = 0;
}

void flow_error_lines_feed(struct flow_error_scan *s, const char *text, size_t len)
{
    while (len > 0 && s->shown < SHOWN) {
        const char *end = memchr(text, '\n', len);
        size_t n = end ? (size_t)(end - text) : len, room = DIAGNOSE_LINE - s->line.len;
        act_buf_add(&s->line, text, n < room ? n : room);
        if (end)
            error_lines_take_line(s);
        n += end != NULL;
        text += n;
        len -= n;
    }
}

void flow_error_lines_end(struct flow_error_scan *s)
{
    error_lines_take_line(s);
    act_buf_release(&s->line);
}
