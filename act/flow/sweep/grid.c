/* grid.c - see grid.h. */
#include "flow/sweep/grid.h"

#include <string.h>

#include "codec/json.h"
#include "flow/flow_internal.h"
#include "flow/run.h"

/* ---- grids */

static int find_grid(const struct flow_grids *grids, const char *name, size_t len)
{
    for (size_t i = 0; i < grids->n; i++)
        if (strncmp(grids->v[i].name, name, len) == 0 && grids->v[i].name[len] == '\0')
            return (int)i;
    return -1;
}

static int grid_check_name(const struct flow_grids *grids, const char *name, const char *text, struct act_error *err)
{
    if (!run_label_valid(name))
        return act_error_set(
            err, ACT_USAGE,
            "--grid '%s': '%s' is not a name, which has at most 64 letters, digits, '.', '_' and '-', and "
            "begins with a letter or digit",
            text, name);
    if (strcmp(name, FLOW_SWEEP_TAG) == 0)
        return act_error_set(err, ACT_USAGE, "--grid '%s': '%s' is the tag of the sweep itself; use another name", text,
                             name);
    if (find_grid(grids, name, strlen(name)) >= 0)
        return act_error_set(err, ACT_USAGE, "grid '%s' is given twice: list all its values once, --grid %s=1,2", name,
                             name);
    return 0;
}

/* The first value that is there twice; NULL: none. */
static const char *find_double(const struct act_strv *values)
{
    ACT_AUTO(act_strv) sorted = {0};

    act_strv_copy(&sorted, values->v, values->n);
    act_strv_sort(&sorted);
    for (size_t i = 1; i < sorted.n; i++)
        for (size_t k = 0; strcmp(sorted.v[i - 1], sorted.v[i]) == 0; k++)
            if (strcmp(values->v[k], sorted.v[i]) == 0)
                return values->v[k];
    return NULL;
}

/* Checks that each value can be that of a tag. */
static int grid_check_values(const struct flow_grid *grid, const char *text, struct act_error *err)
{
    for (size_t i = 0; i < grid->values.n; i++) {
        CODEC_AUTOJSON json_t *tags = json_object();
        ACT_AUTOFREE char *tag = act_sprintf("%s=%s", grid->name, grid->values.v[i]);
        if (!*grid->values.v[i])
            return act_error_set(err, ACT_USAGE, "--grid '%s': value %zu is empty", text, i + 1);
        if (run_tags_add(tags, tag, err) < 0)
            return act_error_prefix(err, "--grid %s", grid->name);
    }
    const char *twice = find_double(&grid->values);
    return twice ? act_error_set(err, ACT_USAGE, "grid '%s' has the value '%s' twice", grid->name, twice) : 0;
}

static void split_values(const char *text, struct act_strv *out)
{
    for (;;) {
        size_t n = strcspn(text, ",");
        act_strv_take(out, act_strndup(text, n));
        if (!text[n])
            return;
        text += n + 1;
    }
}

static int add_grid(const char *text, struct flow_grids *out, struct act_error *err)
{
    const char *equals = strchr(text, '=');
    ACT_AUTOFREE char *name = equals ? act_strndup(text, (size_t)(equals - text)) : NULL;

    if (!name)
        return act_error_set(err, ACT_USAGE, "--grid '%s' is not a grid: it is NAME=VALUE,VALUE,...", text);
    int rc = grid_check_name(out, name, text, err);
    if (rc < 0)
        return rc;
    ACT_PUSH(out->v, out->n, (struct flow_grid){.name = act_strdup(name)});
    split_values(equals + 1, &out->v[out->n - 1].values);
    return grid_check_values(&out->v[out->n - 1], text, err);
}

static int count_points(struct flow_grids *grids, struct act_error *err)
{
    double points = 1;

    for (size_t i = 0; i < grids->n; i++)
        points *= (double)grids->v[i].values.n;
    if (points > FLOW_POINTS_MAX)
        return act_error_set(err, ACT_USAGE, "these grids are %.6g runs; a sweep has at most %d", points,
                             FLOW_POINTS_MAX);
    grids->points = (int64_t)points;
    return 0;
}

int flow_grids_read(const struct act_strv *texts, struct flow_grids *out, struct act_error *err)
{
    int rc = 0;

    *out = (struct flow_grids){0};
    if (texts->n == 0)
        return act_error_set(err, ACT_USAGE, "a sweep needs a grid: --grid lr=1e-3,1e-4, and {lr} in the command");
    for (size_t i = 0; rc == 0 && i < texts->n; i++)
        rc = add_grid(texts->v[i], out, err);
    return rc == 0 ? count_points(out, err) : rc;
}

void flow_grids_release(struct flow_grids *grids)
{
    for (size_t i = 0; i < grids->n; i++) {
        free(grids->v[i].name);
        act_strv_release(&grids->v[i].values);
    }
    free(grids->v);
    *grids = (struct flow_grids){0};
}

/* ---- placeholders */

/* A piece of a word. */
struct piece {
    enum { TEXT, VALUE, WRONG } kind;
    size_t len; /* in the word */
    const char *text;
    size_t text_len; /* TEXT: what it becomes; VALUE: the name */
};

static bool is_of_name(char c)
{
    return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || strchr("._-", c);
}

static struct piece piece_at(const char *word)
{
    size_t n = strcspn(word, "{}");

    if (n > 0)
        return (struct piece){TEXT, n, word, n};
    if (word[1] == word[0])
        return (struct piece){TEXT, 2, word, 1};
    for (n = 1; word[n] && is_of_name(word[n]);)
        n++;
    if (*word == '{' && n > 1 && word[n] == '}')
        return (struct piece){VALUE, n + 1, word + 1, n - 1};
    return (struct piece){WRONG, 1, word, 1};
}

static int wrong_brace(const char *word, char brace, struct act_error *err)
{
    return act_error_set(
        err, ACT_USAGE,
        "'%s': a '%c' that is not part of a placeholder such as {lr}; write '%c%c' for the brace itself", word, brace,
        brace, brace);
}

static int no_grid(const struct flow_grids *grids, const char *word, const struct piece *p, struct act_error *err)
{
    ACT_AUTO(act_buf) names = {0};

    for (size_t i = 0; i < grids->n; i++)
        act_buf_addf(&names, "%s%s", i ? ", " : "", grids->v[i].name);
    return act_error_set(err, ACT_USAGE, "'%s': there is no grid '%.*s', only %s; write '{{%.*s}}' for the text itself",
                         word, (int)p->text_len, p->text, names.data, (int)p->text_len, p->text);
}

static int grid_check_word(const struct flow_grids *grids, const char *word, bool *used, struct act_error *err)
{
    for (const char *at = word; *at;) {
        struct piece p = piece_at(at);
        int grid = p.kind == VALUE ? find_grid(grids, p.text, p.text_len) : -1;
        if (p.kind == WRONG)
            return wrong_brace(word, *at, err);
        if (p.kind == VALUE && grid < 0)
            return no_grid(grids, word, &p, err);
        if (grid >= 0)
            used[grid] = true;
        at += p.len;
    }
    return 0;
}

int flow_grids_check(const struct flow_grids *grids, const struct act_strv *command, struct act_error *err)
{
    ACT_AUTOFREE bool *used = act_calloc(grids->n + 1, sizeof(*used));
    int rc = 0;

    for (size_t i = 0; rc == 0 && i < command->n; i++)
        rc = grid_check_word(grids, command->v[i], used, err);
    for (size_t i = 0; rc == 0 && i < grids->n; i++)
        if (!used[i])
            rc = act_error_set(err, ACT_USAGE, "grid '%s' is not used: the command has no {%s}", grids->v[i].name,
                               grids->v[i].name);
    return rc;
}

const char *flow_grids_value(const struct flow_grids *grids, int64_t point, size_t grid)
{
    for (size_t i = grids->n - 1; i > grid; i--)
        point /= (int64_t)grids->v[i].values.n;
    return grids->v[grid].values.v[point % (int64_t)grids->v[grid].values.n];
}

static char *fill_word(const struct flow_grids *grids, int64_t point, const char *word)
{
    struct act_buf b = {0};

    act_buf_adds(&b, "");
    while (*word) {
        struct piece p = piece_at(word);
        int grid = p.kind == VALUE ? find_grid(grids, p.text, p.text_len) : -1;
        if (grid >= 0)
            act_buf_adds(&b, flow_grids_value(grids, point, (size_t)grid));
        else
            act_buf_add(&b, p.text, p.text_len);
        word += p.len;
    }
    return act_buf_steal(&b);
}

void flow_grids_words(const struct flow_grids *grids, int64_t point, const struct act_strv *command,
                      struct act_strv *out)
{
    for (size_t i = 0; i < command->n; i++)
        act_strv_take(out, fill_word(grids, point, command->v[i]));
}

char *flow_grids_line(const struct flow_grids *grids, int64_t point, const struct act_strv *command)
{
    ACT_AUTO(act_strv) words = {0};

    flow_grids_words(grids, point, command, &words);
    return flow_command_line(&words);
}
