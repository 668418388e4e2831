#include "base/terminal.h"

#include <errno.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/file.h"

enum { MARKS_MAX = 6, NOT_SHOWN = '?', ESCAPE = 0x1b };

/* -- one character -- */

/* Finds characters that are invisible or change the direction of text: Unicode's controls and formats, except for those
 * that belong to the letters of a script, and its blank letters. */
static bool is_harmful(uint32_t c)
{
    static const struct {
        uint32_t first, last;
    } rows[] = {
        {0x80, 0x9f},     {0xad, 0xad},     {0x61c, 0x61c},     {0x115f, 0x1160},   {0x180e, 0x180e},
        {0x200b, 0x200f}, {0x2028, 0x202e}, {0x2060, 0x206f},   {0x3164, 0x3164},   {0xfeff, 0xfeff},
        {0xffa0, 0xffa0}, {0xfff9, 0xfffb}, {0x1d173, 0x1d17a}, {0xe0000, 0xe0fff},
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]) && c >= rows[i].first; i++)
        if (c <= rows[i].last)
            return true;
    return false;
}

/* Tells whether more bytes may make a character of these. */
static bool is_begin(const char *s, size_t len)
{
    unsigned char c = (unsigned char)s[0];
    size_t wanted = c >= 0xf0 ? 4 : c >= 0xe0 ? 3 : 2;

    for (size_t i = 1; i < len; i++)
        if (((unsigned char)s[i] & 0xc0) != 0x80)
            return false;
    return c >= 0xc2 && c <= 0xf4 && len < wanted;
}

/* -- text -- */

static void put_harmless(struct act_harmless *t, const char *s, size_t len, struct act_buf *out)
{
    if (t->overwrites)
        act_buf_adds(out, "\r\033[K");
    act_buf_add(out, s, len);
    t->overwrites = false;
    t->marks = 0;
    t->in_line = true;
    t->after_return = false;
}

static void put_harmful(struct act_harmless *t, struct act_buf *out)
{
    put_harmless(t, &(char){NOT_SHOWN}, 1, out);
}

static void put_mark(struct act_harmless *t, const char *s, size_t len, struct act_buf *out)
{
    unsigned marks = t->marks + 1;

    if (marks <= MARKS_MAX)
        put_harmless(t, s, len, out);
    else if (marks == MARKS_MAX + 1)
        put_harmful(t, out);
    t->marks = marks;
}

/* "\r\n" is one line end; a "\r" at the start of a line, as in a progress bar, is not a line end. */
static void put_line_end(struct act_harmless *t, char c, struct act_buf *out)
{
    bool is_shown = c == '\n' ? !t->after_return : t->in_line;

    if (c == '\r' && t->allow & ACT_SHOW_PROGRESS) {
        t->overwrites = t->in_line;
        return;
    }
    t->overwrites = false;
    if (is_shown)
        act_buf_addc(out, '\n');
    t->marks = 0;
    t->in_line = false;
    t->after_return = c == '\r' && (is_shown || t->after_return);
}

/* Returns the length of the colour at s; 0: it is not one; -1: more bytes may make it one. */
static int colour_at(const char *s, size_t len)
{
    size_t i = 2;

    if (len == 1)
        return -1;
    if (s[1] != '[')
        return 0;
    while (i < len && ((s[i] >= '0' && s[i] <= '9') || s[i] == ';'))
        i++;
    if (i >= sizeof(((struct act_harmless *)0)->held))
        return 0;
    return i == len ? -1 : s[i] == 'm' ? (int)i + 1 : 0;
}

/* Each takes what begins at s and returns how much that was; 0: its end is still to come. */

static size_t take_escape(struct act_harmless *t, const char *s, size_t len, bool is_end, struct act_buf *out)
{
    int n = t->allow & ACT_SHOW_COLOURS ? colour_at(s, len) : 0;

    if (n < 0 && !is_end)
        return 0;
    if (n <= 0) {
        put_harmful(t, out);
        return 1;
    }
    act_buf_add(out, s, (size_t)n);
    t->colours_changed = true;
    return (size_t)n;
}

static size_t take_control(struct act_harmless *t, char c, struct act_buf *out)
{
    if (c == '\t')
        put_harmless(t, &c, 1, out);
    else if ((c == '\n' || c == '\r') && t->allow & ACT_SHOW_LINES)
        put_line_end(t, c, out);
    else
        put_harmful(t, out);
    return 1;
}

static size_t take_wide(struct act_harmless *t, const char *s, size_t len, bool is_end, struct act_buf *out)
{
    size_t n = act_utf8_char(s, len);

    if (n == 0 && !is_end && is_begin(s, len))
        return 0;
    uint32_t c = n ? act_utf8_decode(s, n) : 0;
    if (n == 0 || is_harmful(c))
        put_harmful(t, out);
    else if (act_is_mark(c))
        put_mark(t, s, n, out);
    else
        put_harmless(t, s, n, out);
    return n ? n : 1;
}

static bool is_printable_ascii(char c)
{
    return c >= 0x20 && c < 0x7f;
}

static size_t terminal_take_some(struct act_harmless *t, const char *s, size_t len, bool is_end, struct act_buf *out)
{
    size_t n = 0;

    while (n < len && is_printable_ascii(s[n]))
        n++;
    if (n > 0)
        put_harmless(t, s, n, out);
    else if ((unsigned char)*s >= 0x80)
        n = take_wide(t, s, len, is_end, out);
    else if (*s == ESCAPE)
        n = take_escape(t, s, len, is_end, out);
    else
        n = take_control(t, *s, out);
    return n;
}

/* There is room, because only an incomplete character or colour is held back. */
static void terminal_take_all(struct act_harmless *t, const char *s, size_t len, bool is_end, struct act_buf *out)
{
    size_t n;

    while (len > 0 && (n = terminal_take_some(t, s, len, is_end, out)) > 0) {
        s += n;
        len -= n;
    }
    memmove(t->held, s, len);
    t->n_held = len;
}

void act_harmless_add(struct act_harmless *text, const char *data, size_t len, struct act_buf *out)
{
    ACT_AUTO(act_buf) joined = {0};

    if (text->n_held == 0) {
        terminal_take_all(text, data, len, false, out);
        return;
    }
    act_buf_add(&joined, text->held, text->n_held);
    act_buf_add(&joined, data, len);
    terminal_take_all(text, joined.data, joined.len, false, out);
}

void act_harmless_end(struct act_harmless *text, struct act_buf *out)
{
    char held[sizeof(text->held)];

    memcpy(held, text->held, text->n_held);
    terminal_take_all(text, held, text->n_held, true, out);
    if (text->colours_changed)
        act_buf_adds(out, "\033[0m");
    text->colours_changed = false;
}

/* -- streams -- */

static struct guard {
    int fd;
    FILE *stream; /* NULL: not guarded */
    struct act_harmless text;
} guards[] = {{.fd = STDOUT_FILENO}, {.fd = STDERR_FILENO}};

static int write_and_release(int fd, struct act_buf *shown)
{
    int rc = act_write_all(fd, shown->data, shown->len) < 0 ? -1 : 0;

    act_buf_release(shown);
    return rc;
}

/* Writes for fopencookie(): returning 0 means a failure, with errno. */
static ssize_t write_guarded(void *cookie, const char *data, size_t len)
{
    struct guard *g = cookie;
    struct act_buf shown = {0};

    if (g->text.allow == ACT_SHOW_ALL)
        act_buf_add(&shown, data, len);
    else
        act_harmless_add(&g->text, data, len, &shown);
    return write_and_release(g->fd, &shown) < 0 ? 0 : (ssize_t)len;
}

static void guard(struct guard *g, FILE **stream, int buffering)
{
    if (g->stream || !isatty(g->fd))
        return;
    fflush(*stream);
    g->text = (struct act_harmless){.allow = ACT_SHOW_LINES};
    g->stream = fopencookie(g, "w", (cookie_io_functions_t){.write = write_guarded});
    if (!g->stream)
        return;
    setvbuf(g->stream, NULL, buffering, BUFSIZ);
    *stream = g->stream;
}

void act_terminal_guard(void)
{
    guard(&guards[0], &stdout, _IOLBF);
    guard(&guards[1], &stderr, _IONBF);
}

void act_terminal_show(FILE *stream, unsigned allow)
{
    struct guard *g = stream == stdout ? &guards[0] : &guards[1];
    struct act_buf rest = {0};

    if (!g->stream || g->text.allow == allow)
        return;
    fflush(stream);
    if (g->text.allow != ACT_SHOW_ALL)
        act_harmless_end(&g->text, &rest);
    if (write_and_release(g->fd, &rest) < 0)
        (void)0; /* the stream's next write says so */
    g->text.allow = allow;
}

int act_terminal_write(int fd, const char *data, size_t len)
{
    struct act_harmless text = {.allow = ACT_SHOW_LINES};
    struct act_buf shown = {0};

    if (isatty(fd)) {
        act_harmless_add(&text, data, len, &shown);
        act_harmless_end(&text, &shown);
    } else {
        act_buf_add(&shown, data, len);
    }
    return write_and_release(fd, &shown);
}

int act_terminal_width(int fd)
{
    struct winsize w;

    return isatty(fd) && ioctl(fd, TIOCGWINSZ, &w) == 0 ? w.ws_col : 0;
}

const char *act_last_state(const char *line, size_t *len)
{
    size_t end = *len;

    while (end > 0 && (line[end - 1] == '\r' || line[end - 1] == '\n'))
        end--;
    const char *before = end > 0 ? memrchr(line, '\r', end) : NULL, *last = before ? before + 1 : line;
    *len = end - (size_t)(last - line);
    return last;
}

/* Returns how much of text, which begins at a column, goes into a line. */
static size_t terminal_line_of(const char *text, int room)
{
    int ignored;
    size_t fits = act_columns_fit(text, room > 0 ? room : 0, &ignored), end = fits;

    if (!text[fits] || text[fits] == '\n')
        return fits;
    while (end > 0 && text[end] != ' ')
        end--;
    return end > strspn(text, " ") ? end : strspn(text, " ") + strcspn(text + strspn(text, " "), " \n");
}

void act_wrap(const char *text, int at, int indent, int width, struct act_buf *out)
{
    enum { NARROWEST = 40 };

    if (width < NARROWEST) {
        act_buf_adds(out, text);
        return;
    }
    for (size_t n; *text;) {
        size_t line = strcspn(text, "\n");
        n = terminal_line_of(text, width - at);
        n = n < line ? n : line;
        act_buf_add(out, text, n);
        text += n;
        bool ends = *text == '\n';
        text += ends ? 1 : strspn(text, " ");
        if (*text)
            act_buf_addf(out, "\n%*s", ends ? 0 : indent, "");
        else if (ends)
            act_buf_addc(out, '\n');
        at = ends ? 0 : indent;
    }
}
