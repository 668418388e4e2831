#include <string.h>

#include "base/log.h"
#include "base/units.h"
#include "cli/cli.h"

enum { LARGEST = 10 };

static int larger_first(const void *a, const void *b)
{
    const struct package_entry *x = *(const struct package_entry *const *)a,
                               *y = *(const struct package_entry *const *)b;

    return x->size < y->size ? 1 : x->size > y->size ? -1 : strcmp(x->path, y->path);
}

static void print_largest(const struct package_list *list)
{
    const struct package_entry **sorted = act_calloc(list->n, sizeof(*sorted));
    char size[ACT_UNIT_TEXT];

    for (size_t i = 0; i < list->n; i++)
        sorted[i] = &list->v[i];
    qsort(sorted, list->n, sizeof(*sorted), larger_first);
    puts("largest:");
    for (size_t i = 0; i < list->n && i < LARGEST; i++) {
        act_size_to_text(sorted[i]->size, size);
        printf("  %10s  %s\n", size, sorted[i]->path);
    }
    free(sorted);
}

static void explain(const struct package_list *list)
{
    char size[ACT_UNIT_TEXT];

    puts("goes in:");
    for (size_t i = 0; i < list->n; i++) {
        act_size_to_text(list->v[i].size, size);
        printf("  %10s  %s\n", size, list->v[i].path);
    }
    puts("left out:");
    for (size_t i = 0; i < list->n_left_out; i++)
        printf("  %s  (%s)\n", list->left_out[i].path, list->left_out[i].rule);
    print_largest(list);
    act_size_to_text(list->bytes, size);
    printf("%zu entries, %s before compression\n", list->n, size);
}

/* Sockets, pipes and devices are not left out by anybody's wish: say so. */
static void mention_special_files(const struct package_list *list)
{
    static const char *const kinds[] = {"socket", "pipe", "device"};

    for (size_t i = 0; i < list->n_left_out; i++)
        for (size_t k = 0; k < sizeof(kinds) / sizeof(kinds[0]); k++)
            if (strcmp(list->left_out[i].rule, kinds[k]) == 0)
                act_note("left out: '%s' is a %s", list->left_out[i].path, kinds[k]);
}

int cmd_init(struct cli *cli, struct act_error *err)
{
    struct flow_init io = {.dry_run = cli->options.dry_run};
    char size[ACT_UNIT_TEXT];
    int rc = flow_init(&cli->flow, &io, err);

    if (rc == 0 && io.dry_run) {
        explain(&io.list);
    } else if (rc == 0) {
        act_size_to_text(io.package.bytes, size);
        puts(io.package.sha256);
        mention_special_files(&io.list);
        act_note("%zu entr%s, %s; %s", io.list.n, io.list.n == 1 ? "y" : "ies", size,
                 io.sent_bytes  ? "uploaded"
                 : io.published ? "the store had it already"
                                : "nothing changed, nothing uploaded");
    }
    flow_init_release(&io);
    return rc;
}
