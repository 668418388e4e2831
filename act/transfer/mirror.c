/* mirror.c - what is only at the destination: counted and confirmed before anything is changed, deleted at the end. */
#include <inttypes.h>
#include <string.h>

#include "transfer/copy.h"

/* A folder to which a followed link leads. */
struct linked {
    char *rel;
    bool content; /* the source has something other than folders in it */
    bool extra;   /* the destination has something in it that the source lacks */
};

struct count {
    uint64_t sources, folders, extras, bytes; /* folders: the empty ones of the source */
    struct linked *linked;                    /* those that contain the current item, outermost first */
    size_t n_linked;
    char *emptied; /* the first with nothing but folders in it of which the destination has something */
};

/* Returns whether it is to be deleted; a folder is once it is empty. */
static bool is_left_over(const struct sync_item *item)
{
    return item->action == SYNC_EXTRA && !item->is_protected;
}

/* Returns whether the source is known to have something: a link that leads out, or something unreadable, may be all
 * that is left when a disk is gone. */
static bool mirror_knows(const struct store_entry *from)
{
    return from->key && !from->leads_out && from->kind != STORE_UNREADABLE;
}

static void leave_linked(struct count *n)
{
    struct linked *last = &n->linked[--n->n_linked];

    if (last->extra && !last->content && !n->emptied)
        n->emptied = last->rel;
    else
        free(last->rel);
}

static void enter_linked(struct count *n, const char *rel)
{
    ACT_PUSH(n->linked, n->n_linked, (struct linked){.rel = act_strdup(rel)});
}

/* Notes a folder that a link leads to: if only folders are in it, a disk may not be mounted there. */
static void note_linked(struct count *n, const struct sync_item *item)
{
    while (n->n_linked && !act_starts_with(item->rel, n->linked[n->n_linked - 1].rel))
        leave_linked(n);
    for (size_t i = 0; i < n->n_linked; i++) {
        n->linked[i].content |= mirror_knows(&item->from) && item->from.kind != STORE_FOLDER;
        n->linked[i].extra |= item->action == SYNC_EXTRA;
    }
    if (item->from.key && item->from.kind == STORE_FOLDER && item->from.leads_out)
        enter_linked(n, item->rel);
}

static bool is_deleted(const struct sync_item *item)
{
    return is_left_over(item) && !item->to.filled;
}

static void count_item(struct walk *walk, struct sync_item *item)
{
    struct count *n = walk->arg;

    note_linked(n, item);
    if (is_deleted(item)) {
        n->extras++;
        n->bytes += item->to.size;
    }
    if (mirror_knows(&item->from))
        *(item->from.kind == STORE_FOLDER ? &n->folders : &n->sources) += 1;
    sync_item_release(item);
}

static int refuse_empty_source(const struct walk_setup *setup, const struct count *n, struct act_error *err)
{
    return act_error_set(err, ACT_USAGE,
                         "there is nothing in the source '%s'%s, and '%s' has %" PRIu64
                         " object%s: nothing was deleted; use 'a rm' if you mean it",
                         setup->from->path[0] ? setup->from->path : store_name(setup->from->store),
                         n->folders ? " but empty folders" : "", setup->to_path, n->extras, n->extras == 1 ? "" : "s");
}

static int refuse_emptied(const struct count *n, struct act_error *err)
{
    return act_error_set(
        err, ACT_USAGE,
        "there is nothing in '%s', to which a link leads, but maybe empty folders, and the destination has something "
        "of it: nothing was changed; use 'a rm' if you mean it, or --exclude",
        n->emptied);
}

/* Counts both sides, and refuses to delete what may only be left over because a disk is not mounted. */
static int count_both_sides(const struct walk_setup *setup, struct count *out, struct act_error *err)
{
    struct transfer_options quiet = {.filter = setup->options->filter};
    ACT_AUTO(transfer_report) report = {0};
    struct walk_setup counting = *setup;

    *out = (struct count){0};
    counting.options = &quiet;
    counting.checksum = false;
    counting.extras = true;
    counting.take = count_item;
    counting.arg = out;
    counting.report = &report;
    int rc = walk_run(&counting, err);
    if (rc == 0)
        rc = transfer_report_result(&report, err);
    while (out->n_linked)
        leave_linked(out);
    free(out->linked);
    if (rc == 0 && out->emptied)
        rc = refuse_emptied(out, err);
    else if (rc == 0 && out->extras > 0 && out->sources == 0)
        rc = refuse_empty_source(setup, out, err);
    free(out->emptied);
    return rc;
}

int mirror_check(const struct walk_setup *setup, uint64_t *out_agreed, struct act_error *err)
{
    const struct transfer_options *o = setup->options;
    struct count n;
    int rc = count_both_sides(setup, &n, err);

    *out_agreed = n.extras;
    if (rc < 0 || n.extras == 0)
        return rc;
    if (o->max_delete >= 0 && n.extras > (uint64_t)o->max_delete)
        return act_error_set(err, ACT_USAGE,
                             "%" PRIu64 " object%s would be deleted, more than the %" PRId64
                             " of --max-delete: nothing was changed",
                             n.extras, n.extras == 1 ? "" : "s", o->max_delete);
    return o->confirm && !o->dry_run ? o->confirm(o->arg, n.extras, n.bytes, err) : 0;
}

/* Counts again, as copying may have taken hours: what was agreed must still be what would be deleted. The source may
 * have disappeared meanwhile, for example because its disk is no longer mounted. */
static int check_again(const struct walk_setup *setup, uint64_t agreed, struct act_error *err)
{
    struct count n;
    int rc = count_both_sides(setup, &n, err);

    if (rc == 0 && n.extras > agreed)
        rc = act_error_set(err, ACT_TEMPORARY,
                           "there are now %" PRIu64 " objects to delete, and not %" PRIu64
                           " as before: nothing was deleted; run the same command again",
                           n.extras, agreed);
    return rc;
}

/* ---- deleting */

struct deletion {
    struct transfer_deleter deleter;
    uint64_t left; /* objects that may still be deleted; folders that became empty do not count */
    bool again;    /* a folder may have become empty */
};

static void deleted(void *arg, const struct store_entry *entry, const struct act_error *error)
{
    struct walk *walk = arg;

    (void)entry;
    if (error)
        walk_fail(walk, error);
    else
        walk->report->total.deleted_objects++;
}

static void more(void *arg)
{
    struct walk *walk = arg;

    walk->full = false;
    walk_pump(walk);
}

static bool may_delete(struct walk *walk, struct deletion *d, const struct sync_item *item)
{
    struct act_error err;

    if (item->to.kind == STORE_FOLDER)
        return true;
    if (d->left == 0) {
        act_error_set(&err, ACT_TEMPORARY,
                      "cannot delete '%s': there are more objects to delete than there were before; run the same "
                      "command again",
                      item->to.key);
        walk_fail(walk, &err);
        walk->stop = true;
        return false;
    }
    d->left--;
    return true;
}

static void delete_item(struct walk *walk, struct sync_item *item)
{
    struct deletion *d = walk->arg;

    if (is_left_over(item) && item->to.filled) {
        store_open_up(walk->to, item->to.key);
        d->again = true;
    }
    if (is_deleted(item) && may_delete(walk, d, item)) {
        d->deleter.arg = walk;
        transfer_deleter_add(&d->deleter, &item->to);
        walk->full = !transfer_deleter_has_room(&d->deleter);
    }
    sync_item_release(item);
}

static void mirror_flush(struct walk *walk)
{
    struct deletion *d = walk->arg;

    transfer_deleter_flush(&d->deleter);
}

static void tell_deletion(struct walk *walk, struct sync_item *item)
{
    const struct transfer_options *o = walk->options;

    if (is_deleted(item) && o->plan)
        o->plan(o->arg,
                &(struct transfer_step){.action = TRANSFER_DELETE, .entry = &item->to, .reason = "not at the source"});
    sync_item_release(item);
}

/* A folder that lost its last file is listed as an empty one next time, and is then deleted too. */
int mirror_run(const struct walk_setup *setup, uint64_t agreed, struct act_error *err)
{
    const struct transfer_progress *t = &setup->report->total;
    struct deletion deletion = {.deleter = {.store = setup->to, .deleted = deleted, .more = more}, .left = agreed};
    struct walk_setup own = *setup;
    uint64_t before;
    int rc = setup->options->dry_run ? 0 : check_again(setup, agreed, err);

    if (rc < 0)
        return rc;
    own.checksum = false;
    own.extras = true;
    own.take = setup->options->dry_run ? tell_deletion : delete_item;
    own.listed = mirror_flush;
    own.arg = &deletion;
    do {
        before = t->deleted_objects;
        deletion.again = false;
        rc = walk_run(&own, err);
        transfer_deleter_release(&deletion.deleter);
    } while (rc == 0 && deletion.again && t->failed_objects == 0 && t->deleted_objects > before);
    return rc;
}
