/* commit.c - the end of an object: it is verified as a whole, and replaces only what was listed, or nothing. */
#include <string.h>

#include "base/crc64.h"
#include "base/log.h"
#include "transfer/object.h"

enum { SOURCE_URL_LIFE_S = 2 * 3600 };

static void refuse_whole(struct object *o, const char *sum, const char *ours, const char *theirs)
{
    struct act_error err;

    act_error_set(&err, ACT_FAIL, "cannot copy '%s': what arrived has %s %s, %s says %s; nothing was replaced",
                  o->from.key, sum, ours, store_name(o->walk->from), theirs);
    object_fail(o, OBJECT_USELESS, &err);
}

bool object_agrees(struct object *o, bool has_crc64, uint64_t crc64)
{
    char ours[ACT_CRC64_HEX], theirs[ACT_CRC64_HEX];

    if (o->whole.md5[0] && o->from.md5[0] && strcmp(o->whole.md5, o->from.md5) != 0) {
        refuse_whole(o, "MD5", o->whole.md5, o->from.md5);
        return false;
    }
    if (has_crc64 && o->from.has_crc64 && crc64 != o->from.crc64) {
        act_crc64_to_hex(crc64, ours);
        act_crc64_to_hex(o->from.crc64, theirs);
        refuse_whole(o, "CRC-64", ours, theirs);
        return false;
    }
    return true;
}

/* Computes the CRC-64 of the whole from those of the parts. Returns false if not all of them are known. */
static bool combine_parts(struct object *o)
{
    o->whole.crc64 = 0;
    for (uint32_t i = 0; i < o->plan.n_parts; i++) {
        if (!o->moved.states[i].has_crc64)
            return false;
        o->whole.crc64 = act_crc64_combine(o->whole.crc64, o->moved.states[i].crc64, object_part_len(o, i));
    }
    return true;
}

/* ---- only what was listed is replaced */

/* A folder never replaces a file, whatever its marker was. */
struct store_condition object_condition(const struct object *o)
{
    bool folder = o->from.kind == STORE_FOLDER;

    return (struct store_condition){.if_absent = o->to.absent || folder,
                                    .if_match = o->to.etag[0] && !folder ? o->to.etag : NULL,
                                    .unmarked = true};
}

bool object_is_another(const struct act_error *e)
{
    return e->code == ACT_TEMPORARY && !e->network && (e->http_status == 0 || e->http_status == 412);
}

static bool are_blocks_gone(const struct act_error *e)
{
    return e->fact == ACT_FACT_BLOCKS_MISSING;
}

bool object_is_not_as_listed(const struct store_call *call)
{
    const struct store_condition *condition = store_condition_of(call);

    return (condition->if_absent && call->rc == -ACT_PARTIAL) ||
           (condition->if_match && call->rc < 0 && object_is_another(&call->error)) ||
           (call->rc < 0 && are_blocks_gone(&call->error));
}

void object_note_refusal(struct object *o, const struct act_error *error)
{
    if (!o->end.refusal)
        o->end.refusal = act_alloc(sizeof(*o->end.refusal));
    *o->end.refusal = *error;
    o->phase = OBJECT_LOOK;
}

/* Returns what the object will look like when it has arrived. */
static struct store_entry expected_entry(const struct object *o)
{
    struct store_entry entry = o->from;

    if (o->whole.md5[0])
        memcpy(entry.md5, o->whole.md5, sizeof(entry.md5));
    if (o->whole.has_crc64) {
        entry.crc64 = o->whole.crc64;
        entry.has_crc64 = true;
    }
    return entry;
}

/* Does without the mode of a folder. In Blob Storage an object may have the name of the folder and exist beside what
 * that contains; the copy is complete then. */
static void lose_mode(struct object *o)
{
    act_warn("the mode of the folder '%s' is not kept: there is an object of this name without the '/' in %s; rename "
             "or remove it",
             o->to.key, store_name(o->walk->to));
    o->outcome = OBJECT_IN_VAIN;
}

static void refuse_replacement(struct object *o, bool found)
{
    bool beside = !found && o->from.kind == STORE_FOLDER;

    if (!are_blocks_gone(o->end.refusal))
        act_error_hint(o->end.refusal, beside
                                           ? "there is an object of this name without the '/': rename or remove it"
                                           : "it is not as it was listed, and was not replaced: run the same command "
                                             "again");
    object_fail(o, OBJECT_FAILED, o->end.refusal);
}

/* Begins anew, once, with the question which blocks are there. */
static void object_send_again(struct object *o)
{
    o->end.again = true;
    object_start_over(o);
    for (uint32_t i = 0; i < o->plan.n_parts; i++)
        o->moved.states[i].present = false;
    o->phase = OBJECT_ASK;
}

static void destination_looked_at(struct store_call *call)
{
    struct object *o = call->arg;
    struct store_entry entry = expected_entry(o);
    bool found = call->rc != -(int)ACT_NOT_FOUND;
    bool same = call->rc == 0 && sync_decide(&entry, &call->entry, o->walk->options->checksum, NULL) == SYNC_SAME;

    if (!same && are_blocks_gone(o->end.refusal) && !o->end.again) {
        object_send_again(o);
        object_call_ended(o);
        return;
    }
    if (same)
        o->outcome = OBJECT_SAME;
    else if (!found && o->from.filled)
        lose_mode(o);
    else
        refuse_replacement(o, found);
    while (!object_has_failed(o) && o->moved.written < o->plan.n_parts)
        object_count_written(o, o->moved.written, false);
    o->phase = OBJECT_DROP;
    object_call_ended(o);
}

/* The destination is not as it was listed, or blocks are gone that were there: they have expired, or somebody wrote to
 * this object. If it is already what we were about to write (because the response to an earlier try was lost, or
 * another process makes the same copy), that is fine; anything else is left alone. */
void object_look_at_destination(struct object *o)
{
    o->call = (struct store_call){.op = STORE_HEAD, .key = o->to.key};
    object_call(o, o->walk->to, destination_looked_at);
}

static void commit_done(struct store_call *call)
{
    struct object *o = call->arg;

    if (call->rc == 0)
        o->phase = OBJECT_END;
    else if (object_is_not_as_listed(call))
        object_note_refusal(o, &call->error);
    else
        object_fail(o, OBJECT_FAILED, &call->error);
    object_call_ended(o);
}

static void commit_kept(struct store_call *call)
{
    struct object *o = call->arg;

    o->kept = true;
    o->walk->calls_under_way--;
    walk_pump(o->walk);
}

struct store_attributes object_attributes(const struct object *o)
{
    return (struct store_attributes){.kind = o->from.kind, .mtime_ns = sync_mtime_ns(&o->from), .mode = o->from.mode};
}

struct store_call object_url_call(const struct object *o)
{
    return (struct store_call){.op = STORE_URL,
                               .key = o->from.key,
                               .url = {.permissions = "r", .life_s = SOURCE_URL_LIFE_S, .share_sas = true}};
}

char *object_take_url(struct store_call *call)
{
    char *url = call->url.text;

    call->url.text = NULL;
    return url;
}

void object_commit(struct object *o)
{
    if (!o->whole.has_crc64)
        o->whole.crc64 = o->from.crc64;
    o->call = (struct store_call){.op = STORE_COMMIT,
                                  .key = o->to.key,
                                  .commit = {.upload_id = o->plan.upload_id,
                                             .n_blocks = o->plan.n_parts,
                                             .total = o->from.size,
                                             .attr = object_attributes(o),
                                             .condition = object_condition(o),
                                             .source.url = o->end.source_url},
                                  .kept = commit_kept};
    o->call.commit.attr.md5 = o->whole.md5[0] ? o->whole.md5 : o->from.md5[0] ? o->from.md5 : NULL;
    o->call.commit.attr.crc64 = o->whole.has_crc64 || o->from.has_crc64 ? &o->whole.crc64 : NULL;
    object_call(o, o->walk->to, commit_done);
}

static void sign_done(struct store_call *call)
{
    struct object *o = call->arg;

    if (call->rc < 0)
        object_fail(o, OBJECT_FAILED, &call->error);
    o->end.source_url = object_take_url(call);
    o->phase = OBJECT_COMMIT;
    object_call_ended(o);
}

void object_sign(struct object *o)
{
    o->call = object_url_call(o);
    object_call(o, o->walk->from, sign_done);
}

void object_finish(struct object *o)
{
    o->whole.has_crc64 = combine_parts(o);
    if (o->plan.way == OBJECT_READ_ONLY || o->plan.n_parts == 1)
        o->phase = OBJECT_END;
    else if (o->plan.way == OBJECT_BY_SERVICE && !o->end.source_url)
        o->phase = OBJECT_SIGN;
    else if (o->plan.way == OBJECT_BY_SERVICE || object_agrees(o, o->whole.has_crc64, o->whole.crc64))
        o->phase = OBJECT_COMMIT;
    object_settle(o);
}

static void drop_done(struct store_call *call)
{
    struct object *o = call->arg;

    o->phase = OBJECT_END;
    object_call_ended(o);
}

/* Only an object of several parts leaves blocks behind. */
void object_drop(struct object *o)
{
    if (o->plan.way == OBJECT_READ_ONLY || o->plan.n_parts == 1) {
        o->phase = OBJECT_END;
        object_settle(o);
        return;
    }
    o->call = (struct store_call){
        .op = STORE_DROP,
        .key = o->to.key,
        .drop = {.upload_id = o->plan.upload_id, .keep = o->plan.resumable && o->outcome == OBJECT_FAILED}};
    object_call(o, o->walk->to, drop_done);
}
