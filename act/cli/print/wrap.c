/* wrap.c - the prose and the examples of the tables in lines that fit. */
#include <string.h>

#include "base/terminal.h"
#include "cli/print/table.h"
#include "cli/print/wrap.h"

enum {
    PIPE_WIDTH = 80,
    NARROWEST = 40,
    PROSE = 100,     /* how wide lines of prose are in the tables */
    EXPLANATION = 6, /* how far it is indented below its example */
};

int cli_help_width(void)
{
    int width = cli_width();

    return width == 0 ? PIPE_WIDTH : width < NARROWEST ? NARROWEST : width;
}

/* Tells whether a line of prose begins a paragraph: the one before it is complete, and it is about an option or
 * there was room for its first word there. */
static bool begins_paragraph(const char *before, size_t len, const char *line)
{
    return len > 0 && strchr(".;:", before[len - 1]) &&
           (act_starts_with(line, "--") || len + 1 + strcspn(line, " \n") <= PROSE);
}

size_t cli_paragraph(const char *text)
{
    size_t at = 0;

    for (;;) {
        size_t n = strcspn(text + at, "\n");
        const char *next = text + at + n + (text[at + n] == '\n');
        if (!*next || begins_paragraph(text + at, n, next))
            return (size_t)(next - text);
        at = (size_t)(next - text);
    }
}

void cli_wrap(FILE *out, const char *text, size_t len, int at, int indent, int width)
{
    const char *end = text + len;
    bool is_first = true;

    for (text += strspn(text, " \n"); text < end; text += strspn(text, " \n")) {
        int n = (int)strcspn(text, " \n");
        if (!is_first && at + 1 + n > width) {
            fprintf(out, "\n%*s", indent, "");
            at = indent;
            is_first = true;
        }
        fprintf(out, "%s%.*s", is_first ? "" : " ", n, text);
        at += n + !is_first;
        is_first = false;
        text += n;
    }
    fputc('\n', out);
}

void cli_put_prose(const char *text, int at, int indent)
{
    ACT_AUTO(act_buf) lines = {0};

    act_wrap(text, at, indent, cli_width(), &lines);
    printf("%s\n", lines.len ? lines.data : "");
}

/* Prints an example. One that is too long has its explanation, which follows at least two blanks, below it. */
static void put_example(FILE *out, const char *line, size_t len, int indent, int width)
{
    const char *gap = memmem(line, len, "  ", 2);

    fprintf(out, "%*s", indent, "");
    if (!gap || indent + (int)len <= width) {
        fprintf(out, "%.*s\n", (int)len, line);
        return;
    }
    fprintf(out, "%.*s\n%*s", (int)(gap - line), line, indent + EXPLANATION, "");
    cli_wrap(out, gap, len - (size_t)(gap - line), indent + EXPLANATION, indent + EXPLANATION, width);
}

void cli_put_examples(FILE *out, const char *text, int indent, int width)
{
    while (*text) {
        size_t n = strcspn(text, "\n");
        put_example(out, text, n, indent, width);
        text += n + (text[n] == '\n');
    }
}
