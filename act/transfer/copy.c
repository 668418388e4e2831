/* copy.c - transfer_copy(): copies what is new or different to the destination. */
#include <string.h>
#include <sys/stat.h>

#include "base/path.h"
#include "transfer/copy.h"

static char *key_for(const struct walk *walk, const struct sync_item *item)
{
    return walk->single ? act_strdup(walk->to_path) : act_path_below(walk->to_path, item->rel);
}

static void tell_plan(const struct walk *walk, const struct sync_item *item, const char *to_key)
{
    if (walk->options->plan)
        walk->options->plan(walk->options->arg, &(struct transfer_step){.action = TRANSFER_COPY,
                                                                        .entry = &item->from,
                                                                        .to_key = to_key,
                                                                        .reason = sync_reason_text(item->reason)});
}

/* Begins a copy, and takes over the item, as copy_item() does. */
static void begin_copy(struct walk *walk, struct sync_item *item)
{
    walk_enqueue(walk, object_new(walk, &item->from, key_for(walk, item), &item->to), false);
    sync_item_release(item);
}

/* Finds out what a dry run can know without reading anything. */
static bool will_fail(struct walk *walk, const struct sync_item *item)
{
    struct act_error err;

    if (!walk->options->dry_run || item->from.kind != STORE_FILE ||
        store_may_read(walk->from, item->from.key, &err) == 0)
        return false;
    walk_fail(walk, &err);
    return true;
}

/* Returns why the destination cannot have it: a new string, or NULL. */
static char *copy_problem_of(const struct walk *walk, const struct sync_item *item, const char *to_key)
{
    const char *problem = store_key_problem(walk->to, to_key);

    if (problem)
        return act_sprintf("the name '%s' %s", walk->single ? to_key : item->rel, problem);
    if (item->from.size <= store_traits(walk->to)->max_put * STORE_MAX_BLOCKS)
        return NULL;
    return act_sprintf("its %llu bytes are more than an object in %s can have", (unsigned long long)item->from.size,
                       store_name(walk->to));
}

static void copy_item(struct walk *walk, struct sync_item *item)
{
    struct transfer_progress *t = &walk->report->total;
    ACT_AUTOFREE char *to_key = key_for(walk, item);
    ACT_AUTOFREE char *problem = copy_problem_of(walk, item, to_key);
    struct act_error err;

    if (problem) {
        act_error_set(&err, ACT_FAIL, "cannot copy '%s': %s", item->from.key, problem);
        walk_fail(walk, &err);
    } else if (!will_fail(walk, item)) {
        t->found_objects += !item->from.filled;
        t->folder_modes += item->from.filled && walk->options->dry_run;
        t->found_bytes += item->from.size;
        tell_plan(walk, item, to_key);
        if (!walk->options->dry_run) {
            walk_later(walk, item, begin_copy);
            return;
        }
    }
    sync_item_release(item);
}

static void copy_count_same(struct walk *walk, struct sync_item *item)
{
    walk->report->total.same_objects += !item->from.filled;
    sync_item_release(item);
}

/* ---- a destination that is newer, or a link out of its folder */

/* Returns whether it is a link out of the destination. What the link led to may have become a file at the source. */
static bool is_link_away(const struct store_entry *to)
{
    return to->key && to->kind == STORE_SYMLINK && to->leads_out;
}

static bool must_keep(const struct walk *walk, const struct sync_item *item)
{
    const struct transfer_options *o = walk->options;

    if (!o->keep_newer || !item->to.key)
        return false;
    bool is_newer = o->is_newer ? o->is_newer(o->arg, &item->from, &item->to) : sync_is_newer(&item->from, &item->to);
    return is_newer || (item->reason == SYNC_KIND && is_link_away(&item->to));
}

/* Leaves the destination as it is, and takes over the item. */
static void leave_item(struct walk *walk, struct sync_item *item)
{
    const struct transfer_options *o = walk->options;
    ACT_AUTOFREE char *to_key = key_for(walk, item);

    walk->report->total.newer_objects++;
    if (o->left)
        o->left(o->arg, &(struct transfer_step){.action = TRANSFER_LEAVE,
                                                .entry = &item->from,
                                                .to_key = to_key,
                                                .reason = is_link_away(&item->to) ? "a link" : "newer"});
    sync_item_release(item);
}

static void copy_or_leave(struct walk *walk, struct sync_item *item)
{
    if (must_keep(walk, item))
        leave_item(walk, item);
    else
        copy_item(walk, item);
}

static void copy_unless_same(struct walk *walk, struct sync_item *item, int rc)
{
    if (rc < 0) {
        sync_item_release(item);
    } else if (rc == 1) {
        copy_count_same(walk, item);
    } else {
        item->reason = SYNC_CONTENT;
        copy_or_leave(walk, item);
    }
}

static void begin_compare(struct walk *walk, struct sync_item *item)
{
    compare_start(walk, item, false, copy_unless_same);
}

static bool has_checksum(const struct store_entry *entry)
{
    return entry->md5[0] || entry->has_crc64;
}

/* Returns whether to compare by content: to read both sides costs as much as a copy. */
static bool is_worth_comparing(const struct walk *walk, const struct sync_item *item)
{
    return walk->options->checksum || has_checksum(&item->from) || has_checksum(&item->to);
}

/* Returns whether the sizes agree and the destination is newer: the content may still be the same. */
static bool is_only_touched(const struct walk *walk, const struct sync_item *item)
{
    return item->reason == SYNC_TIME && must_keep(walk, item);
}

/* Passes by a link that leads out of the source, and takes over the item. */
static void pass_by_link(struct walk *walk, struct sync_item *item)
{
    struct act_error err;

    if (walk->options->links == TRANSFER_SKIP_LINKS) {
        walk->report->total.skipped_links++;
    } else {
        act_error_set(&err, ACT_PARTIAL,
                      "cannot copy '%s': the link leads out of the folder; --follow stores what it leads to, "
                      "--skip-links leaves it out",
                      item->from.key);
        walk_fail(walk, &err);
    }
    sync_item_release(item);
}

static bool transfer_copy_is_read_only(const struct store_entry *folder)
{
    return folder->key && folder->mode >= 0 && !(folder->mode & S_IWUSR);
}

/* Makes a read-only folder writable while it is filled, if the source knows the mode that it gets in the end. */
static void open_up(struct walk *walk, const struct sync_item *item)
{
    if (item->from.kind != STORE_FOLDER || item->from.mode < 0 || walk->options->dry_run ||
        !(transfer_copy_is_read_only(&item->from) || transfer_copy_is_read_only(&item->to)))
        return;
    ACT_AUTOFREE char *to_key = key_for(walk, item);
    if (!store_key_problem(walk->to, to_key))
        store_open_up(walk->to, to_key);
}

static bool copy_wants(const struct walk *walk, const struct sync_item *item)
{
    const struct transfer_options *o = walk->options;

    return !o->wants || !item->from.key || o->wants(o->arg, &item->from);
}

static void copy_or_compare(struct walk *walk, struct sync_item *item)
{
    if (!copy_wants(walk, item)) {
        sync_item_release(item);
        return;
    }
    open_up(walk, item);
    if (item->from.leads_out && item->from.kind == STORE_SYMLINK && walk->options->links != TRANSFER_KEEP_LINKS) {
        pass_by_link(walk, item);
        return;
    }
    switch (item->action) {
    case SYNC_COPY:
    case SYNC_UNSURE:
        if ((item->action == SYNC_UNSURE || is_only_touched(walk, item)) && is_worth_comparing(walk, item))
            walk_later(walk, item, begin_compare);
        else
            copy_or_leave(walk, item);
        break;
    case SYNC_SAME:
        copy_count_same(walk, item);
        break;
    case SYNC_UNREADABLE:
        walk_fail_unreadable(walk, item);
        sync_item_release(item);
        break;
    case SYNC_EXTRA:
        sync_item_release(item);
        break;
    }
}

/* Waits until the destination has everything on its disk. */
static int sync_destination(struct store *to, struct act_error *err)
{
    ACT_AUTO(store_call) call = {.op = STORE_SYNC, .key = ""};

    return store_can(to, STORE_SYNC) ? store_do(to, &call, err) : 0;
}

int transfer_copy(struct engine *engine, const struct transfer_path *from, struct store *to, const char *to_path,
                  const struct transfer_options *options, struct transfer_report *report, struct act_error *err)
{
    bool mirror = options->delete_extra && from->is_folder;
    struct walk_setup setup = {.engine = engine,
                               .from = from,
                               .to = to,
                               .to_path = to_path,
                               .options = options,
                               .checksum = options->checksum,
                               .extras = mirror, /* a folder may be about to become empty */
                               .folder_modes = true,
                               .take = copy_or_compare,
                               .report = report};
    uint64_t agreed = 0; /* objects to delete */
    bool synced = false;
    int rc = 0;

    if (!mirror && !options->dry_run)
        setup.out_synced = &synced;
    *report = (struct transfer_report){.is_plan = options->dry_run};
    if (options->no_sync)
        store_no_sync(to);
    if (mirror)
        rc = mirror_check(&setup, &agreed, err);
    if (rc == 0)
        rc = walk_run(&setup, err);
    if (rc == 0 && report->total.failed_objects > 0)
        report->kept_extras = agreed;
    else if (rc == 0 && agreed > 0)
        rc = mirror_run(&setup, agreed, err);
    if (rc == 0 && !options->dry_run && !synced && report->total.done_objects + report->total.folder_modes > 0)
        rc = sync_destination(to, err);
    return rc < 0 ? rc : transfer_report_result(report, err);
}
