/* verify.c - transfer_verify(): the differences between two sides, by content. */
#include "transfer/copy.h"

struct verification {
    bool deep;
    uint64_t differences;
    void (*each)(void *arg, enum transfer_difference what, const char *rel, const struct store_entry *from,
                 const struct store_entry *to);
};

static void tell_difference(struct walk *walk, const struct sync_item *item, enum transfer_difference what)
{
    struct verification *v = walk->arg;

    v->differences++;
    if (v->each)
        v->each(walk->options->arg, what, item->rel, item->from.key ? &item->from : NULL,
                item->to.key ? &item->to : NULL);
}

static void count_compared(struct walk *walk, const struct sync_item *item)
{
    struct transfer_progress *t = &walk->report->total;

    t->done_objects++;
    t->done_bytes += item->from.size;
}

static void pair_compared(struct walk *walk, struct sync_item *item, int rc)
{
    if (rc >= 0)
        count_compared(walk, item);
    if (rc == 0)
        tell_difference(walk, item, TRANSFER_CONTENT);
    sync_item_release(item);
}

static void compare_pair(struct walk *walk, struct sync_item *item)
{
    const struct verification *v = walk->arg;

    compare_start(walk, item, v->deep, pair_compared);
}

/* A folder has no content: it is enough that it exists. */
static void verify_pair(struct walk *walk, struct sync_item *item)
{
    bool same_kind = item->from.kind == item->to.kind, same_size = item->from.size == item->to.size;

    if (same_kind && same_size && item->from.kind != STORE_FOLDER) {
        walk_later(walk, item, compare_pair);
        return;
    }
    count_compared(walk, item);
    if (!same_kind || !same_size)
        tell_difference(walk, item, same_kind ? TRANSFER_SIZE : TRANSFER_KIND);
    sync_item_release(item);
}

/* Tells whether an upload leaves the link out as well. */
static bool is_skipped(const struct walk *walk, const struct sync_item *item)
{
    return walk->options->links == TRANSFER_SKIP_LINKS && item->from.key && item->from.leads_out &&
           item->from.kind == STORE_SYMLINK;
}

static void verify_item(struct walk *walk, struct sync_item *item)
{
    struct transfer_progress *t = &walk->report->total;

    if (is_skipped(walk, item)) {
        t->skipped_links++;
        sync_item_release(item);
        return;
    }
    if (item->from.key && item->to.key && item->action != SYNC_UNREADABLE) {
        t->found_objects++;
        t->found_bytes += item->from.size;
        verify_pair(walk, item);
        return;
    }
    if (item->action == SYNC_UNREADABLE)
        walk_fail_unreadable(walk, item);
    else if (item->is_protected) /* it may be at the source, below something unreadable that was reported */
        ;
    else if (item->action == SYNC_SAME) /* a folder that is empty on one side only */
        count_compared(walk, item);
    else
        tell_difference(walk, item, item->from.key ? TRANSFER_MISSING : TRANSFER_EXTRA);
    sync_item_release(item);
}

int transfer_verify(struct engine *engine, const struct transfer_path *from, struct store *to, const char *to_path,
                    const struct transfer_options *options, bool deep,
                    void (*each)(void *arg, enum transfer_difference what, const char *rel,
                                 const struct store_entry *from, const struct store_entry *to),
                    struct transfer_report *report, struct act_error *err)
{
    struct verification v = {.deep = deep, .each = each};
    struct walk_setup setup = {.engine = engine,
                               .from = from,
                               .to = to,
                               .to_path = to_path,
                               .options = options,
                               .extras = true,
                               .take = verify_item,
                               .arg = &v,
                               .report = report};

    *report = (struct transfer_report){0};
    int rc = walk_run(&setup, err);
    if (rc == 0)
        rc = transfer_report_result(report, err);
    if (rc == 0 && v.differences > 0)
        rc = act_error_set(err, ACT_PARTIAL, "%llu difference%s", (unsigned long long)v.differences,
                           v.differences == 1 ? "" : "s");
    return rc;
}
