/* mirror.c - what is only at the destination: counted and asked about before anything is changed, deleted at the end. */
#include <inttypes.h>
#include <string.h>

#include "transfer/copy.h"

struct count {
    uint64_t sources, extras, bytes;
};

static void count_item(struct job *job, struct sync_item *item)
{
    struct count *n = job->arg;

    if (item->action == SYNC_EXTRA) {
        n->extras++;
        n->bytes += item->to.size;
    } else {
        n->sources++;
    }
    sync_item_release(item);
}

static int judge(const struct job_setup *setup, const struct count *n, struct act_error *err)
{
    const struct transfer_options *o = setup->options;

    if (n->extras == 0)
        return 0;
    if (n->sources == 0)
        return act_error_set(err, ACT_USAGE,
                             "there is nothing in the source '%s', and '%s' has %" PRIu64
                             " objects: nothing was deleted; use 'a rm' if you mean it",
                             setup->from->path[0] ? setup->from->path : store_name(setup->from->store),
                             setup->to_path, n->extras);
    if (o->max_delete >= 0 && n->extras > (uint64_t)o->max_delete)
        return act_error_set(err, ACT_USAGE,
                             "%" PRIu64 " objects would be deleted, more than the %" PRId64
                             " of --max-delete: nothing was changed",
                             n->extras, o->max_delete);
    return o->confirm && !o->dry_run ? o->confirm(o->arg, n->extras, n->bytes, err) : 0;
}

int mirror_check(const struct job_setup *setup, struct act_error *err)
{
    struct transfer_options quiet = {.filter = setup->options->filter};
    struct transfer_report report = {0};
    struct job_setup counting = *setup;
    struct act_error first = {0};
    struct count n = {0};

    counting.options = &quiet;
    counting.checksum = false;
    counting.extras = true;
    counting.take = count_item;
    counting.arg = &n;
    counting.report = &report;
    int rc = job_run(&counting, &first, err);
    if (rc == 0)
        rc = transfer_report_result(&report, &first, err);
    transfer_report_release(&report);
    return rc < 0 ? rc : judge(setup, &n, err);
}

/* ---- deleting */

static void deleted(void *arg, const struct store_entry *entry, const struct act_error *error)
{
    struct job *job = arg;

    (void)entry;
    if (error)
        job_fail(job, error);
    else
        job->report->total.deleted_objects++;
}

static void more(void *arg)
{
    struct job *job = arg;

    job->full = false;
    transfer_progress_tick(job->options, job->report, false);
    job_pump(job);
}

static void delete_item(struct job *job, struct sync_item *item)
{
    struct transfer_deleter *d = job->arg;

    if (item->action == SYNC_EXTRA) {
        d->arg = job;
        transfer_deleter_add(d, &item->to);
        job->full = !transfer_deleter_has_room(d);
    }
    sync_item_release(item);
}

static void flush(struct job *job)
{
    transfer_deleter_flush(job->arg);
}

static void tell_item(struct job *job, struct sync_item *item)
{
    const struct transfer_options *o = job->options;

    if (item->action == SYNC_EXTRA && o->plan)
        o->plan(o->arg, &(struct transfer_step){
                            .action = TRANSFER_DELETE, .entry = &item->to, .reason = "not at the source"});
    sync_item_release(item);
}

/* On a disk, folders that lost their last file show as empty ones afterwards, and are left over as well. */
int mirror_run(const struct job_setup *setup, struct act_error *first, struct act_error *err)
{
    const struct transfer_progress *t = &setup->report->total;
    struct transfer_deleter deleter = {.store = setup->to, .deleted = deleted, .more = more};
    struct job_setup own = *setup;
    uint64_t before;
    int rc;

    own.checksum = false;
    own.extras = true;
    own.take = setup->options->dry_run ? tell_item : delete_item;
    own.listed = flush;
    own.arg = &deleter;
    do {
        before = t->deleted_objects;
        rc = job_run(&own, first, err);
        transfer_deleter_release(&deleter);
    } while (rc == 0 && store_has_real_folders(setup->to) && t->failed_objects == 0 &&
             t->deleted_objects > before);
    return rc;
}
