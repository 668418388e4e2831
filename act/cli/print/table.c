/* table.c - tables as wide as the terminal: the least important columns are cut first, then left out.
 * A number is never cut: it would be read as another one. */
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/terminal.h"
#include "cli/print/print.h"
#include "cli/print/table.h"
#include "cli/runs/runs.h"

enum { GAP = 2 }; /* between columns */

static const char ELLIPSIS[] = "...", PARTS_GAP[] = "  ";

int cli_width(void)
{
    return act_terminal_width(STDOUT_FILENO);
}

/* ---- how wide each column is */

static int least(const struct cli_column *column, int width)
{
    return column->min > 0 && column->min < width ? column->min : width;
}

/* Selects columns, the lowest rank first, as long as their minimum widths fit. Returns the remaining room. */
static int choose_columns(const struct cli_column *columns, int *widths, size_t n, int room)
{
    bool full = false;

    room += GAP;
    for (int rank = 0; rank <= CLI_RANK_MAX; rank++)
        for (size_t i = 0; i < n; i++) {
            if (columns[i].rank != rank || widths[i] == 0)
                continue;
            int wanted = least(&columns[i], widths[i]) + GAP;
            full = full || (rank > 0 && wanted > room);
            widths[i] = full ? 0 : widths[i];
            room -= full ? 0 : wanted;
        }
    return room > 0 ? room : 0;
}

/* Distributes the remaining room to columns that need more than their minimum, the lowest rank first. */
static void table_share(const struct cli_column *columns, int *widths, size_t n, int left)
{
    for (int rank = 0; rank <= CLI_RANK_MAX; rank++)
        for (size_t i = 0; i < n; i++) {
            if (columns[i].rank != rank || widths[i] == 0)
                continue;
            int more = widths[i] - least(&columns[i], widths[i]);
            more = more < left ? more : left;
            widths[i] = least(&columns[i], widths[i]) + more;
            left -= more;
        }
}

void cli_fit(const struct cli_column *columns, int *widths, size_t n, int room)
{
    if (room > 0)
        table_share(columns, widths, n, choose_columns(columns, widths, n, room));
}

/* ---- the text of it */

/* Returns a line as a terminal shows it, so that the counted width is the visible one. */
static char *as_seen(char *line)
{
    struct act_harmless text = {0};
    struct act_buf seen = {0};

    act_harmless_add(&text, line, strlen(line), &seen);
    act_harmless_end(&text, &seen);
    free(line);
    return act_buf_steal(&seen);
}

static void add_blanks(struct act_buf *out, int n)
{
    act_buf_addf(out, "%*s", n > 0 ? n : 0, "");
}

/* Returns how much of the first n bytes of text ends before a gap. */
static size_t before_gap(const char *text, size_t n, const char *gap)
{
    size_t len = strlen(gap);

    while (n > 0 && (strncmp(text + n, gap, len) != 0 || text[n - 1] == ' '))
        n--;
    return n;
}

static bool is_script(const char *word, size_t len, const char *before)
{
    static const char *const ends[] = {".py", ".sh"}, *const modules[] = {"-m ", "--module "};

    for (size_t i = 0; i < sizeof(ends) / sizeof(ends[0]); i++) {
        size_t n = strlen(ends[i]), m = strlen(modules[i]);
        if ((len > n && strncmp(word + len - n, ends[i], n) == 0) || strncmp(before, modules[i], m) == 0)
            return true;
    }
    return false;
}

/* Tells whether a word begins a quoted text of several words, such as what 'sh -c' reads. */
static bool table_begins_quoted(const char *word, size_t len)
{
    return *word == '\'' && (len == 1 || word[len - 1] != '\'');
}

/* Returns where the name of the script of a command begins, without its folders; len: of that. NULL: none is known. */
static const char *table_script(const char *command, size_t *out_len)
{
    for (const char *word = command, *before = ""; *word; word += strspn(word, " ")) {
        size_t len = strcspn(word, " "), folders = len;
        if (table_begins_quoted(word, len))
            break;
        while (folders > 0 && word[folders - 1] != '/')
            folders--;
        if (is_script(word, len, before)) {
            *out_len = len - folders;
            return word + folders;
        }
        before = word;
        word += len;
    }
    return NULL;
}

static int add_cut(struct act_buf *out, const char *text, int width, enum cli_cut cut);

/* Appends an ellipsis and a command from its script on, whose name has len bytes: that name as a whole, if it fits. */
static int add_from_script(struct act_buf *out, const char *script, size_t len, int width)
{
    ACT_AUTOFREE char *name = act_strndup(script, len);
    int dots = (int)strlen(ELLIPSIS), room = width - dots, columns = act_columns(name);
    bool alone = columns <= room && columns + dots > room;

    act_buf_adds(out, ELLIPSIS);
    return dots + add_cut(out, alone ? name : script, room, CLI_CUT_WORDS);
}

/* Returns the last words of text that leave a third of the width, or the end of text. */
static const char *table_last_words(const char *text, int width)
{
    const char *words = strchr(text, ' ');

    while (words && act_columns(words) > width - width / 3 - (int)strlen(ELLIPSIS))
        words = strchr(words + 1, ' ');
    return words ? words : text + strlen(text);
}

/* Appends a command, from its script on where it has one, without its middle. */
static int add_ends(struct act_buf *out, const char *text, int width)
{
    size_t len;
    const char *script = table_script(text, &len), *from = script ? script : text;
    const char *last = act_columns(from) > width ? table_last_words(from, width) : "";
    int behind = act_columns(last);

    width = add_cut(out, from, width - behind, CLI_CUT_ANYWHERE);
    act_buf_adds(out, last);
    return width + behind;
}

/* Appends at most width columns of text, with an ellipsis if it was cut and not by parts. Returns the columns used. */
static int add_cut(struct act_buf *out, const char *text, int width, enum cli_cut cut)
{
    int columns = act_columns(text), dots = (int)strlen(ELLIPSIS);

    if (columns <= width) {
        act_buf_adds(out, text);
        return columns;
    }
    if (cut == CLI_CUT_MIDDLE)
        return add_ends(out, text, width);
    size_t parts = cut == CLI_CUT_PARTS ? before_gap(text, act_columns_fit(text, width, &columns), PARTS_GAP) : 0;
    if (parts > 0)
        dots = 0;
    dots = dots < width ? dots : width;
    size_t n = act_columns_fit(text, width - dots, &columns), len = 0;
    const char *script = cut == CLI_CUT_COMMAND ? table_script(text, &len) : NULL;
    if (script && script + len > text + n && width > dots)
        return add_from_script(out, script, len, width);
    size_t words = cut == CLI_CUT_WORDS || cut == CLI_CUT_COMMAND ? before_gap(text, n, " ") : 0;
    n = parts > 0 ? parts : words > n / 2 ? words : n;
    ACT_AUTOFREE char *left = act_strndup(text, n);
    act_buf_adds(out, left);
    act_buf_add(out, ELLIPSIS, (size_t)dots);
    return act_columns(left) + dots;
}

struct cli_table {
    struct cli_column *columns;
    size_t n, last; /* the last one shown */
    size_t below;   /* the one on lines of its own; n: none */
    int *widths, room;
    bool *known;            /* something is known of this column in some row */
    struct act_strv shared; /* with CLI_CUT_APART: what the commands of each script have in common */
    bool coloured, laid_out;
};

/* ---- commands of which only a part fits, told apart */

/* Returns a command from its script on; all of it where none is known. */
static const char *table_from_script(const char *command)
{
    size_t len;
    const char *script = table_script(command, &len);

    return script ? script : command;
}

/* Appends the first word of a command, "..." and what comes behind the words that it shares with others. */
static int table_add_apart(const struct cli_table *l, const char *command, int width, struct act_buf *out)
{
    const char *from = table_from_script(command), *shared = NULL;

    for (size_t i = 0; i < l->shared.n && !shared; i++)
        shared = act_starts_with(from, l->shared.v[i]) ? l->shared.v[i] : NULL;
    if (!shared || act_columns(from) <= width)
        return add_cut(out, from, width, CLI_CUT_WORDS);
    ACT_AUTOFREE char *first = act_strndup(from, strcspn(from, " "));
    int dots = (int)strlen(ELLIPSIS), used = add_cut(out, first, width / 2, CLI_CUT_ANYWHERE);
    if (!act_ends_with(out->data, ELLIPSIS)) {
        act_buf_adds(out, ELLIPSIS);
        used += dots;
    }
    return used + add_cut(out, from + strlen(shared), width - used, CLI_CUT_WORDS);
}

/* Appends what fits into a column. Returns the columns used. */
static int table_add_text(const struct cli_table *l, size_t i, const char *text, struct act_buf *out)
{
    int width = l->room > 0 ? l->widths[i] : INT_MAX;

    return l->columns[i].cut == CLI_CUT_APART && act_columns(text) > width
               ? table_add_apart(l, text, width, out)
               : add_cut(out, text, width, l->columns[i].cut);
}

/* Returns how long the beginning is that two commands share, as far as whole words; a value after '=' is one. */
static size_t table_shared(const char *a, const char *b)
{
    size_t n = 0, end = 0;

    for (; a[n] && a[n] == b[n]; n++)
        end = a[n] == ' ' || a[n] == '=' ? n : end;
    return (!a[n] || strchr(" =", a[n])) && (!b[n] || strchr(" =", b[n])) ? n : end;
}

/* Notes what sorted commands of one script share, where that is more than its name. */
static void table_note_shared(struct cli_table *l, const char *first, const char *last)
{
    size_t n = table_shared(first, last);

    if (n > strcspn(first, " "))
        act_strv_take(&l->shared, act_strndup(first, n));
}

/* Finds what the commands share that are too wide for a column and begin with the same script. */
static void table_find_shared(struct cli_table *l, size_t i, const struct act_strv *commands)
{
    ACT_AUTO(act_strv) wide = {0};

    for (size_t k = 0; k < commands->n; k++)
        if (act_columns(table_from_script(commands->v[k])) > l->widths[i])
            act_strv_push(&wide, table_from_script(commands->v[k]));
    act_strv_sort(&wide);
    for (size_t k = 0, end; k < wide.n; k = end) {
        size_t name = strcspn(wide.v[k], " ") + 1;
        for (end = k + 1; end < wide.n && strncmp(wide.v[k], wide.v[end], name) == 0;)
            end++;
        if (strcmp(wide.v[k], wide.v[end - 1]) != 0)
            table_note_shared(l, wide.v[k], wide.v[end - 1]);
    }
}

static void table_add_cell(const struct cli_table *l, size_t i, const char *text, const char *colour,
                           struct act_buf *out)
{
    ACT_AUTO(act_buf) cell = {0};
    int blanks = l->widths[i] - table_add_text(l, i, text, &cell);

    if (l->columns[i].align == 'r')
        add_blanks(out, blanks);
    act_buf_addf(out, colour ? "\033[%sm%s\033[0m" : "%s%s", colour ? colour : "", cell.data ? cell.data : "");
    if (l->columns[i].align == 'l' && i < l->last)
        add_blanks(out, blanks);
    act_buf_adds(out, i < l->last ? "  " : "\n");
}

static void table_add_head(const struct cli_table *l, struct act_buf *out)
{
    for (size_t i = 0; i < l->n; i++)
        if (l->widths[i] > 0)
            table_add_cell(l, i, l->columns[i].head, NULL, out);
}

/* Returns how much of text goes into a line: whole words, if one fits. */
static size_t table_line_of(const char *text, int width)
{
    int columns;
    size_t n = act_columns_fit(text, width, &columns), end = n;

    while (text[n] && end > 0 && text[end] != ' ')
        end--;
    return end > 0 ? end : n > 0 ? n : strlen(text);
}

static void add_below(const struct cli_table *l, const char *text, struct act_buf *out)
{
    enum { INDENT = 4 };
    int indent = l->room > 2 * INDENT ? INDENT : 0;

    for (size_t n; *text && strcmp(text, "-") != 0; text += n + strspn(text + n, " ")) {
        n = table_line_of(text, l->room - indent);
        add_blanks(out, indent);
        act_buf_add(out, text, n);
        act_buf_adds(out, "\n");
    }
}

static void table_add_row(const struct cli_table *l, char *const *cells, struct act_buf *out)
{
    for (size_t i = 0; i < l->n; i++) {
        if (l->widths[i] == 0)
            continue;
        bool coloured = l->coloured && l->columns[i].is_state;
        table_add_cell(l, i, cells[i], coloured ? cli_state_colour(run_state_from_name(cells[i])) : NULL, out);
    }
    if (l->below < l->n)
        add_below(l, cells[l->below], out);
}

/* Widens a column for a cell, as wide as it is if nothing has to be cut. */
static void table_widen(struct cli_table *l, size_t i, const char *cell)
{
    const struct cli_column *column = &l->columns[i];
    int width = act_columns(cell);

    width = l->room == 0 && column->pad > 0 && width > column->pad ? column->pad : width;
    l->widths[i] = width > l->widths[i] ? width : l->widths[i];
}

static bool table_is_number(const char *text)
{
    char *end;

    strtod(text, &end);
    return end > text && !*end;
}

/* Returns the columns of a cell that must not be cut: a number, which would be another one, the first of its parts,
 * and the script of a command, unless it is long. */
static int whole(const struct cli_column *column, const char *text)
{
    enum { MAX_SCRIPT = 18 };
    const char *gap = column->cut == CLI_CUT_PARTS ? strstr(text, PARTS_GAP) : NULL;
    size_t len;

    if (column->cut == CLI_CUT_COMMAND && table_script(text, &len)) {
        len += strlen(ELLIPSIS);
        return len < MAX_SCRIPT ? (int)len : MAX_SCRIPT;
    }

    if (!gap)
        return column->cut == CLI_CUT_PARTS || table_is_number(text) ? act_columns(text) : 0;
    ACT_AUTOFREE char *part = act_strndup(text, (size_t)(gap - text));
    return act_columns(part);
}

static void table_raise_least(struct cli_table *l, size_t i, const char *cell)
{
    struct cli_column *column = &l->columns[i];
    int width = column->min > 0 ? whole(column, cell) : 0;

    column->min = width > column->min ? width : column->min;
}

/* Tells whether all of a column fits beside what is more important. */
static bool has_room(const struct cli_table *l, size_t column)
{
    int wanted = -GAP;

    for (size_t i = 0; i < l->n; i++)
        if (l->widths[i] > 0 && (i == column || l->columns[i].rank < l->columns[column].rank))
            wanted += GAP + (i == column ? l->widths[i] : least(&l->columns[i], l->widths[i]));
    return l->room == 0 || wanted <= l->room;
}

/* Tells whether nothing is known of a column in any row; one that stays where it is does not count. */
static bool table_is_empty(const struct cli_table *l, size_t i)
{
    return l->columns[i].rank != 0 && !l->columns[i].wide && !l->known[i];
}

/* Leaves out the columns that nothing is known of, where not all of every row fits. */
static void table_drop_empty(struct cli_table *l)
{
    int wanted = -GAP;

    for (size_t i = 0; i < l->n; i++)
        wanted += GAP + l->widths[i];
    for (size_t i = 0; i < l->n && l->room > 0 && wanted > l->room; i++)
        l->widths[i] = table_is_empty(l, i) ? 0 : l->widths[i];
}

static bool table_looks_like(const struct cli_table *l, size_t i, const char *a, const char *b)
{
    ACT_AUTO(act_buf) as = {0}, bs = {0};

    table_add_text(l, i, a, &as);
    table_add_text(l, i, b, &bs);
    return strcmp(a, b) != 0 && act_streq(as.data, bs.data);
}

/* Cuts commands so that few of these rows look alike though they differ: those of a sweep differ at their ends, others
 * behind what all of them share. */
static void table_tell_apart(struct cli_table *l, size_t i, const struct act_strv *lines)
{
    static const enum cli_cut cuts[] = {CLI_CUT_COMMAND, CLI_CUT_MIDDLE, CLI_CUT_APART};
    enum cli_cut best = CLI_CUT_COMMAND;
    ACT_AUTO(act_strv) texts = {0};
    size_t least_alike = SIZE_MAX;

    for (size_t k = i; k < lines->n; k += l->n)
        act_strv_push(&texts, lines->v[k]);
    act_strv_sort(&texts);
    table_find_shared(l, i, &texts);
    for (size_t c = 0; c < sizeof(cuts) / sizeof(cuts[0]) && least_alike > 0; c++) {
        size_t alike = 0;
        l->columns[i].cut = cuts[c];
        for (size_t k = 1; k < texts.n; k++)
            alike += table_looks_like(l, i, texts.v[k - 1], texts.v[k]);
        best = alike < least_alike ? cuts[c] : best;
        least_alike = alike < least_alike ? alike : least_alike;
    }
    l->columns[i].cut = best;
}

/* Lays the table out by what was measured, and by the first rows that are shown. */
static void table_lay_out(struct cli_table *l, const struct act_strv *lines)
{
    table_drop_empty(l);
    l->below = l->n;
    for (size_t i = 0; i < l->n; i++)
        if (l->columns[i].below && !has_room(l, i)) {
            l->below = i;
            l->widths[i] = 0;
        }
    cli_fit(l->columns, l->widths, l->n, l->room);
    for (size_t i = 0; i < l->n; i++) {
        l->last = l->widths[i] > 0 ? i : l->last;
        if (l->room > 0 && l->widths[i] > 0 && l->columns[i].cut == CLI_CUT_COMMAND)
            table_tell_apart(l, i, lines);
    }
    l->laid_out = true;
}

/* Makes lines of cells, as they are shown. */
static void table_lines(const struct cli_table *l, const struct act_strv *cells, struct act_strv *lines)
{
    for (size_t i = 0; i < cells->n; i++) {
        char *line = act_one_line(cells->v[i], strlen(cells->v[i]));
        act_strv_take(lines, l->room > 0 ? as_seen(line) : line);
    }
}

struct cli_table *cli_table_new(const struct cli_column *columns, size_t n, int room, bool coloured)
{
    struct cli_table *l = act_calloc(1, sizeof(*l));

    *l = (struct cli_table){.columns = act_calloc(n, sizeof(*l->columns)),
                            .n = n,
                            .widths = act_calloc(n, sizeof(*l->widths)),
                            .known = act_calloc(n, sizeof(*l->known)),
                            .room = room,
                            .coloured = coloured};
    memcpy(l->columns, columns, n * sizeof(*columns));
    for (size_t i = 0; i < n; i++) {
        int head = columns[i].head ? act_columns(columns[i].head) : 1;
        l->widths[i] = room > 0 && columns[i].wide > head ? columns[i].wide : head;
    }
    return l;
}

void cli_table_free(struct cli_table *table)
{
    if (!table)
        return;
    free(table->columns);
    free(table->widths);
    free(table->known);
    act_strv_release(&table->shared);
    free(table);
}

void cli_table_measure(struct cli_table *table, const struct act_strv *cells)
{
    ACT_AUTO(act_strv) lines = {0};

    table_lines(table, cells, &lines);
    for (size_t k = 0; k < lines.n; k++) {
        size_t i = k % table->n;
        table_widen(table, i, lines.v[k]);
        table_raise_least(table, i, lines.v[k]);
        table->known[i] = table->known[i] || strcmp(lines.v[k], "-") != 0;
    }
}

void cli_table_add(struct cli_table *table, const struct act_strv *cells, struct act_buf *out)
{
    ACT_AUTO(act_strv) lines = {0};
    bool first = !table->laid_out;

    table_lines(table, cells, &lines);
    if (first)
        table_lay_out(table, &lines);
    if (first && table->columns[0].head)
        table_add_head(table, out);
    for (size_t i = 0; i + table->n <= lines.n; i += table->n)
        table_add_row(table, lines.v + i, out);
}

void cli_table_text(const struct cli_column *columns, size_t n, const struct act_strv *cells, int room, bool coloured,
                    struct act_buf *out)
{
    struct cli_table *table = cli_table_new(columns, n, room, coloured);

    cli_table_measure(table, cells);
    cli_table_add(table, cells, out);
    cli_table_free(table);
}

void cli_push_count(struct act_strv *cells, int64_t n)
{
    if (n < 0)
        act_strv_push(cells, "-");
    else
        act_strv_pushf(cells, "%lld", (long long)n);
}

void cli_push_text(struct act_strv *cells, const char *text)
{
    act_strv_push(cells, text && *text ? text : "-");
}

void cli_print_table(const struct cli_column *columns, size_t n, const struct act_strv *cells)
{
    ACT_AUTO(act_buf) text = {0};

    cli_table_text(columns, n, cells, cli_width(), cli_colour(stdout), &text);
    cli_put_table(&text);
}

void cli_put_table(const struct act_buf *text)
{
    act_terminal_show(stdout, ACT_SHOW_LINES | ACT_SHOW_COLOURS); /* no cell contains any */
    if (text->len)
        fwrite(text->data, 1, text->len, stdout);
    act_terminal_show(stdout, ACT_SHOW_LINES);
}

void cli_add_line(struct act_buf *out, const char *text, int room, enum cli_cut cut)
{
    char *line = act_one_line(text, strlen(text));
    ACT_AUTOFREE char *seen = room > 0 ? as_seen(line) : line;

    add_cut(out, seen, room > 0 ? room : INT_MAX, cut);
}
