#include "base/log.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/terminal.h"
#include "base/text.h"

static bool quiet_notes;
static atomic_bool in_place;

void act_log_quiet(bool quiet)
{
    quiet_notes = quiet;
}

bool act_log_in_place(bool is_there)
{
    return atomic_exchange(&in_place, is_there);
}

/* Clears the line that a message would be written behind. */
static void log_clear_line(void)
{
    static const char clear[] = "\r\033[K";

    if (act_log_in_place(false) && write(STDERR_FILENO, clear, sizeof(clear) - 1) < 0)
        (void)0; /* there is nowhere left to report it */
}

/* Writes a line, on a terminal in lines that fit, at once, so that lines of several threads or processes do not mix. */
ACT_PRINTF(2, 0)
static void log_print_line(const char *prefix, const char *fmt, va_list ap)
{
    ACT_AUTOFREE char *text = act_vsprintf(fmt, ap);
    ACT_AUTO(act_buf) line = {0};

    log_clear_line();
    act_mask_controls(text, "\n\t", '?');
    act_buf_adds(&line, prefix);
    act_wrap(text, (int)strlen(prefix), *prefix ? 5 : 0, act_terminal_width(STDERR_FILENO), &line);
    act_buf_addc(&line, '\n');
    if (act_terminal_write(STDERR_FILENO, line.data, line.len) < 0)
        (void)0; /* there is nowhere left to report it */
}

void act_note(const char *fmt, ...)
{
    va_list ap;

    if (quiet_notes)
        return;
    va_start(ap, fmt);
    log_print_line("", fmt, ap);
    va_end(ap);
}

void act_warn(const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    log_print_line("act: warning: ", fmt, ap);
    va_end(ap);
}

bool act_trace_on(const char *component)
{
    const char *wanted = getenv("ACT_TRACE");
    size_t len = strlen(component);

    if (!wanted)
        return false;
    if (strcmp(wanted, "all") == 0)
        return true;
    for (const char *s = wanted; (s = strstr(s, component)); s += len)
        if ((s == wanted || s[-1] == ',') && (s[len] == '\0' || s[len] == ','))
            return true;
    return false;
}

void act_trace(const char *component, const char *fmt, ...)
{
    va_list ap;

    if (!act_trace_on(component))
        return;
    ACT_AUTOFREE char *prefix = act_sprintf("%8.3f %s: ", (double)act_now_monotonic_ms() / 1000.0, component);
    va_start(ap, fmt);
    log_print_line(prefix, fmt, ap);
    va_end(ap);
}
