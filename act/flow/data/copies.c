/* copies.c - 'mount: copy': how much a run brings to its nodes. */
#include <inttypes.h>
#include <string.h>

#include "base/units.h"
#include "config/config.h"
#include "flow/data/data_internal.h"
#include "flow/flow_internal.h"
#include "transfer/transfer.h"

struct sum {
    uint64_t files, bytes;
};

static int copies_add(void *arg, const struct store_entry *entry, const char *rel, struct act_error *err)
{
    struct sum *sum = arg;

    (void)rel;
    (void)err;
    sum->files++;
    sum->bytes += entry->size;
    return 0;
}

/* Adds up what a folder has; one that is not there yet has nothing. */
static int copies_measure(struct flow *flow, const struct config_folder *f, struct sum *sum, struct act_error *err)
{
    ACT_AUTOFREE char *key = act_sprintf("%s/", f->path);
    ACT_AUTO(transfer_path) from = {0};
    struct store *store = NULL;
    int rc = flow_store(flow, f, &store, err);

    if (rc == 0)
        rc = transfer_resolve(store, key, &from, err);
    if (rc == 0)
        rc = transfer_list(flow_engine(flow), &from, TRANSFER_TREE, copies_add, sum, err);
    store_free(store);
    return rc == -ACT_NOT_FOUND ? 0 : rc;
}

int flow_check_copies(struct flow *flow, const struct run_spec *spec,
                      int (*confirm)(void *arg, const char *question, struct act_error *err), void *arg,
                      struct act_error *err)
{
    static const uint64_t asked_from = (uint64_t)10 << 30;
    struct sum sum = {0};
    int rc = 0;

    for (size_t i = 0; rc == 0 && i < flow->config->n_folders; i++) {
        const struct config_folder *f = &flow->config->folders[i];
        const struct run_folder *of_run = flow_find_folder(spec, f->name);
        if (of_run && run_folder_is_copied(spec, of_run))
            rc = copies_measure(flow, f, &sum, err);
    }
    if (rc < 0 || sum.bytes < asked_from || !confirm)
        return rc;
    char size[ACT_UNIT_TEXT];
    act_size_to_text(sum.bytes, size);
    ACT_AUTOFREE char *question =
        act_sprintf("'mount: copy' brings %s in %" PRIu64 " file%s to each of %d node%s. Go on?", size, sum.files,
                    sum.files == 1 ? "" : "s", spec->nodes, spec->nodes == 1 ? "" : "s");
    return confirm(arg, question, err);
}
