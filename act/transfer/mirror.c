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

enum { MAX_BATCHES = 8 }; /* under way */

struct deleting {
    struct job *job;
    struct batch *open; /* being filled */
    int under_way;
};

struct batch {
    struct deleting *deleting;
    struct store_entry entries[STORE_MAX_DELETIONS];
    struct store_deletion deletions[STORE_MAX_DELETIONS];
    struct store_call call;
};

static void settle(struct job *job, const struct store_deletion *d)
{
    if (d->rc < 0 && d->rc != -ACT_NOT_FOUND)
        job_fail(job, &d->error);
    else
        job->report->total.deleted_objects++;
}

static void batch_done(struct store_call *call)
{
    struct batch *b = call->arg;
    struct deleting *d = b->deleting;
    struct job *job = d->job;

    if (call->rc < 0)
        job_fail(job, &call->error);
    for (size_t i = 0; i < call->n_deletions; i++) {
        if (call->rc == 0)
            settle(job, &b->deletions[i]);
        store_entry_release(&b->entries[i]);
    }
    store_call_release(call);
    free(b);
    d->under_way--;
    job->full = false;
    transfer_progress_tick(job->options, job->report, false);
    job_pump(job);
}

static void start_batch(struct job *job)
{
    struct deleting *d = job->arg;
    struct batch *b = d->open;

    if (!b)
        return;
    d->open = NULL;
    job->full = ++d->under_way == MAX_BATCHES;
    store_start(job->to, &b->call);
}

static struct batch *new_batch(struct deleting *d)
{
    struct batch *b = act_calloc(1, sizeof(*b));

    b->deleting = d;
    b->call = (struct store_call){
        .op = STORE_DELETE_MANY, .key = "", .deletions = b->deletions, .done = batch_done, .arg = b};
    return b;
}

static void delete_item(struct job *job, struct sync_item *item)
{
    struct deleting *d = job->arg;

    if (item->action != SYNC_EXTRA) {
        sync_item_release(item);
        return;
    }
    d->job = job;
    if (!d->open)
        d->open = new_batch(d);
    struct store_call *call = &d->open->call;
    struct store_entry *own = &d->open->entries[call->n_deletions];
    *own = item->to;
    d->open->deletions[call->n_deletions++] =
        (struct store_deletion){.key = own->key, .if_match = own->etag[0] ? own->etag : NULL};
    if (call->n_deletions == STORE_MAX_DELETIONS)
        start_batch(job);
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
    struct deleting deleting = {0};
    struct job_setup own = *setup;
    uint64_t before;
    int rc;

    own.checksum = false;
    own.extras = true;
    own.take = setup->options->dry_run ? tell_item : delete_item;
    own.listed = start_batch;
    own.arg = &deleting;
    do {
        before = t->deleted_objects;
        rc = job_run(&own, first, err);
    } while (rc == 0 && store_has_real_folders(setup->to) && t->failed_objects == 0 &&
             t->deleted_objects > before);
    return rc;
}
