/* explain.c - init --dry-run: the files of the package, those left out and why, and what would be done. */
#include <string.h>
#include <sys/stat.h>

#include "base/units.h"
#include "cli/print/print.h"
#include "cli/start/start.h"
#include "codec/json.h"
#include "flow/code/code.h"

enum {
    SHORT = 40, /* rows shown one by one; a longer list is summarized */
};

/* A line of a summary: a top-level folder, or a rule. */
struct row {
    char *name;
    const char *example;
    uint64_t files, bytes;
};

struct rows {
    struct row *v;
    size_t n;
};

static struct row *explain_row_of(struct rows *rows, const char *name, size_t len)
{
    for (size_t i = rows->n; i-- > 0;) /* the same row is looked up many times in succession */
        if (strncmp(rows->v[i].name, name, len) == 0 && rows->v[i].name[len] == '\0')
            return &rows->v[i];
    ACT_GROW(rows->v, rows->n);
    rows->v[rows->n] = (struct row){.name = act_strndup(name, len)};
    return &rows->v[rows->n++];
}

static void release_rows(struct rows *rows)
{
    for (size_t i = 0; i < rows->n; i++)
        free(rows->v[i].name);
    free(rows->v);
}

/* Sums the files by the top-level folders of the project; "./" stands for its top-level files. */
static struct rows sum_folders(const struct package_list *list)
{
    struct rows rows = {0};

    for (size_t i = 0; i < list->n; i++) {
        const struct package_entry *e = &list->v[i];
        const char *slash = strchr(e->path, '/');
        struct row *row =
            slash ? explain_row_of(&rows, e->path, (size_t)(slash - e->path) + 1) : explain_row_of(&rows, "./", 2);
        row->files += !S_ISDIR(e->mode);
        row->bytes += S_ISREG(e->mode) ? e->size : 0;
    }
    return rows;
}

static int more_files_first(const void *a, const void *b)
{
    const struct row *x = a, *y = b;

    return x->files < y->files ? 1 : x->files > y->files ? -1 : strcmp(x->name, y->name);
}

static struct rows sum_rules(const struct package_list *list)
{
    struct rows rows = {0};

    for (size_t i = 0; i < list->n_left_out; i++) {
        struct row *row = explain_row_of(&rows, list->left_out[i].rule, strlen(list->left_out[i].rule));
        row->files++;
        if (!row->example)
            row->example = list->left_out[i].path;
    }
    if (rows.n > 0)
        qsort(rows.v, rows.n, sizeof(*rows.v), more_files_first);
    return rows;
}

static int larger_first(const void *a, const void *b)
{
    const struct package_entry *x = *(const struct package_entry *const *)a,
                               *y = *(const struct package_entry *const *)b;

    return x->size < y->size ? 1 : x->size > y->size ? -1 : strcmp(x->path, y->path);
}

size_t cli_find_largest(const struct package_list *list, const struct package_entry *out[CLI_LARGEST])
{
    const struct package_entry **sorted = act_calloc(list->n + 1, sizeof(*sorted));
    size_t n = 0;

    for (size_t i = 0; i < list->n; i++)
        if (S_ISREG(list->v[i].mode))
            sorted[n++] = &list->v[i];
    qsort(sorted, n, sizeof(*sorted), larger_first);
    n = n < CLI_LARGEST ? n : CLI_LARGEST;
    memcpy(out, sorted, n * sizeof(*sorted));
    free(sorted);
    return n;
}

static uint64_t explain_count_files(const struct package_list *list)
{
    uint64_t n = 0;

    for (size_t i = 0; i < list->n; i++)
        n += S_ISREG(list->v[i].mode);
    return n;
}

/* ---- as text */

static void explain_print_size(uint64_t bytes)
{
    char size[ACT_UNIT_TEXT];

    act_size_to_text(bytes, size);
    printf("  %10s  ", size);
}

static void explain_print_name(const char *name)
{
    cli_put_name(name);
    putchar('\n');
}

static void print_content(const struct package_list *list)
{
    struct rows rows = {0};

    puts("goes in:");
    for (size_t i = 0; i < list->n && list->n <= SHORT; i++) {
        explain_print_size(S_ISREG(list->v[i].mode) ? list->v[i].size : 0);
        explain_print_name(list->v[i].path);
    }
    if (list->n > SHORT)
        rows = sum_folders(list);
    for (size_t i = 0; i < rows.n; i++) {
        explain_print_size(rows.v[i].bytes);
        printf("%8llu file%s  ", (cli_count_t)rows.v[i].files, rows.v[i].files == 1 ? " " : "s");
        explain_print_name(rows.v[i].name);
    }
    release_rows(&rows);
}

static void print_left_out(const struct package_list *list)
{
    struct rows rows = {0};

    puts("left out:");
    for (size_t i = 0; i < list->n_left_out && list->n_left_out <= SHORT; i++) {
        ACT_AUTOFREE char *name = cli_name(list->left_out[i].path);
        printf("  %s  (%s)\n", name, list->left_out[i].rule);
    }
    if (list->n_left_out > SHORT)
        rows = sum_rules(list);
    for (size_t i = 0; i < rows.n; i++) {
        ACT_AUTOFREE char *name = cli_name(rows.v[i].example);
        printf("  %10llu  by %s, as '%s'\n", (cli_count_t)rows.v[i].files, rows.v[i].name, name);
    }
    release_rows(&rows);
}

static void print_largest(const struct package_list *list)
{
    const struct package_entry *largest[CLI_LARGEST];
    size_t n = cli_find_largest(list, largest);

    puts("largest:");
    for (size_t i = 0; i < n; i++) {
        explain_print_size(largest[i]->size);
        explain_print_name(largest[i]->path);
    }
}

static void print_work(const struct flow_init *io)
{
    static const char *const stored[] = {
        [FLOW_UNKNOWN] = "whether the store has the package is known when it is packed",
        [FLOW_YES] = "the store has this package",
        [FLOW_NO] = "the store does not have this package yet",
    };
    uint64_t files = explain_count_files(&io->list);
    char bytes[ACT_UNIT_TEXT], to_read[ACT_UNIT_TEXT];

    act_size_to_text(io->list.bytes, bytes);
    act_size_to_text(io->package.read_bytes, to_read);
    printf("%zu entries, %s before compression\n", io->list.n, bytes);
    printf("to be compressed: %zu of %llu files, %s; the others are as they were in the last package\n",
           io->package.read_files, (cli_count_t)files, to_read);
    puts(stored[io->is_stored]);
}

/* ---- as JSON */

static json_t *package_entry_json(const struct package_entry *e)
{
    return json_pack("{s:o,s:I}", "path", codec_json_bytes_new(e->path), "bytes", (json_int_t)e->size);
}

static json_t *large_json(const struct package_entry *const *e)
{
    return package_entry_json(*e);
}

static json_t *folder_json(const struct row *row)
{
    return json_pack("{s:o,s:I,s:I}", "path", codec_json_bytes_new(row->name), "files", (json_int_t)row->files, "bytes",
                     (json_int_t)row->bytes);
}

static json_t *rule_json(const struct row *row)
{
    return json_pack("{s:o,s:I}", "rule", codec_json_bytes_new(row->name), "left_out", (json_int_t)row->files);
}

static json_t *left_out_json(const struct package_left_out *left_out)
{
    return json_pack("{s:o,s:o}", "path", codec_json_bytes_new(left_out->path), "rule",
                     codec_json_bytes_new(left_out->rule));
}

static json_t *stored_json(const struct flow_init *io)
{
    return io->is_stored == FLOW_UNKNOWN ? json_null() : json_boolean(io->is_stored == FLOW_YES);
}

static int print_package_json(const struct flow_init *io, struct act_error *err)
{
    const struct package_list *list = &io->list;
    const struct package_entry *largest[CLI_LARGEST];
    size_t n = cli_find_largest(list, largest);
    const char *sha256 = io->package.sha256[0] ? io->package.sha256 : NULL;
    struct rows folders = sum_folders(list), rules = sum_rules(list);

    int rc =
        cli_print_pack(err, "{s:I,s:I,s:I,s:o,s:o,s:o,s:o,s:o,s:I,s:I,s:s?,s:o}", "files",
                       (json_int_t)explain_count_files(list), "entries", (json_int_t)list->n, "bytes",
                       (json_int_t)list->bytes, "content", CLI_JSON_LIST(list->v, list->n, package_entry_json),
                       "folders", CLI_JSON_LIST(folders.v, folders.n, folder_json), "left_out",
                       CLI_JSON_LIST(list->left_out, list->n_left_out, left_out_json), "rules",
                       CLI_JSON_LIST(rules.v, rules.n, rule_json), "largest", CLI_JSON_LIST(largest, n, large_json),
                       "files_to_compress", (json_int_t)io->package.read_files, "bytes_to_compress",
                       (json_int_t)io->package.read_bytes, "sha256", sha256, "stored", stored_json(io));
    release_rows(&folders);
    release_rows(&rules);
    return rc;
}

int cli_explain_package(const struct cli *cli, const struct flow_init *io, struct act_error *err)
{
    if (cli->options.json)
        return print_package_json(io, err);
    print_content(&io->list);
    print_left_out(&io->list);
    print_largest(&io->list);
    print_work(io);
    return 0;
}
