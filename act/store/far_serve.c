/* far_serve.c - the other end of a far store: carries out what comes, in the folder store here, and sends back each
 * result when it is there. It takes in no more while there is no room for more, see FAR_ROOM_BYTES. When the stream
 * ends, what is under way is finished.
 *
 *   begun -> came -> (what is there is read, and what came of changes put into it) -> carried out
 *         -> (what was read is summed, or compared) -> answered
 */
#include <signal.h>
#include <string.h>

#include "base/crc64.h"
#include "base/file.h"
#include "engine/engine.h"
#include "http/http.h"
#include "store/far.h"

struct far_serve {
    struct store *store;
    struct engine *engine;
    struct far_link link;
    struct far_task *coming;
    struct far_task *syncs;       /* wait for the other calls that are under way */
    size_t n_under_way, n_unkept; /* calls; n_unkept: but for those */
    size_t n_syncs;
    uint64_t bytes_under_way;
    bool hurry, over;
};

/* A call that came. */
struct far_task {
    struct far_serve *serve;
    uint64_t id;
    struct far_request request;
    char *words; /* in which the strings of the request lie */
    char *bytes; /* that are written, or were read */
    size_t len;  /* of them */
    char *extra; /* of extra_len: what came of changes, or the sums to compare with; then what is sent of them */
    size_t extra_len;
    bool was_kept;
    struct store_sums sums; /* of what is read */
    struct store_call old;  /* reads what the changes are in */
    struct far_result result;
    struct far_task *next; /* in far_serve.syncs */
};

static void far_serve_sync_now(struct far_serve *s);

/* Lets more come if there is room. */
static void far_serve_look(struct far_serve *s)
{
    far_link_pause(&s->link, s->bytes_under_way > FAR_ROOM_BYTES || s->n_under_way > FAR_ROOM_CALLS);
    if (s->hurry && s->n_unkept == 0) {
        s->hurry = false;
        store_hurry(s->store);
    }
}

static void far_task_drop_bytes(struct far_task *t)
{
    t->serve->bytes_under_way -= t->len + t->extra_len;
    free(t->bytes);
    free(t->extra);
    t->bytes = t->extra = NULL;
    t->len = t->extra_len = 0;
}

static void far_task_free(struct far_task *t)
{
    far_task_drop_bytes(t);
    free(t->words);
    far_request_release(&t->request);
    free(t);
}

/* ---- what comes */

static size_t far_task_frame_len(const struct far_request *r, size_t len)
{
    return r->bytes == FAR_BYTES ? len : r->bytes == FAR_CHANGED ? far_changes_size(&r->changed, len) : 0;
}

/* Makes room for the bytes that are to be written. */
static bool far_task_take_data(struct far_task *t, struct store_data *data, struct far_frame *frame)
{
    const struct far_request *r = &t->request;

    if (frame->len != far_task_frame_len(r, data->len) || (r->bytes == FAR_NO_BYTES) != (data->len == 0))
        return false;
    t->len = data->len;
    t->bytes = r->bytes == FAR_BYTES ? act_alloc(t->len + 1) : act_calloc(t->len + 1, 1);
    if (r->bytes == FAR_CHANGED) {
        t->extra_len = frame->len;
        t->extra = act_alloc(t->extra_len + 1);
    }
    frame->bytes = t->extra ? t->extra : t->bytes;
    data->bytes = t->bytes;
    return true;
}

/* Makes room for the bytes that are read, and for the sums that came of them. */
static bool far_task_take_get(struct far_task *t, struct store_get *get, struct far_frame *frame)
{
    const struct far_request *r = &t->request;
    size_t len = r->summed ? r->summed : get->sink_cap;

    if (r->bytes > FAR_BYTES || (r->bytes == FAR_NO_BYTES) != (frame->len == 0) || frame->len > far_sums_size(len) ||
        (r->summed && (frame->len > 0 || get->sink_cap != far_sums_size(r->summed))))
        return false;
    t->len = len;
    t->bytes = act_alloc(t->len + 1);
    t->extra_len = frame->len;
    t->extra = t->extra_len > 0 ? act_alloc(t->extra_len) : NULL;
    frame->bytes = t->extra;
    get->sink = t->bytes;
    get->sink_cap = len;
    get->sums = &t->sums;
    return true;
}

/* Makes room for what comes and for what is asked for. */
static bool far_task_take_bytes(struct far_task *t, struct far_frame *frame)
{
    struct store_call *call = &t->request.call;
    struct store_data *data = call->op == STORE_PUT     ? &call->put.data
                              : call->op == STORE_BLOCK ? &call->block.data
                                                        : NULL;
    bool good = data                    ? far_task_take_data(t, data, frame)
                : call->op == STORE_GET ? far_task_take_get(t, &call->get, frame)
                                        : t->request.bytes == FAR_NO_BYTES && frame->len == 0;

    if (good && call->op == STORE_LIST)
        t->len = FAR_LIST_ROOM;
    t->serve->bytes_under_way += t->len + t->extra_len;
    return good;
}

static bool far_serve_begun(void *arg, struct far_frame *frame)
{
    struct far_serve *s = arg;
    struct far_task *t = act_calloc(1, sizeof(*t));

    t->serve = s;
    t->id = frame->id;
    if (far_request_of_words(frame->words, frame->words_len, &t->request) && t->request.op != STORE_URL &&
        (t->request.op >= STORE_OPS || store_can(s->store, t->request.call.op)) && far_task_take_bytes(t, frame)) {
        s->coming = t;
        return true;
    }
    far_task_free(t);
    return false;
}

static void far_task_kept(struct store_call *call)
{
    struct far_task *t = call->arg;
    struct far_serve *s = t->serve;

    t->was_kept = true;
    s->n_unkept--;
    far_task_drop_bytes(t);
    far_serve_look(s);
}

/* A result is written. */
static void far_result_sent(void *arg, uint64_t id, const void *bytes, size_t size)
{
    struct far_serve *s = arg;
    char *own;

    (void)id;
    s->bytes_under_way -= size;
    memcpy(&own, &bytes, sizeof(own));
    free(own);
    far_serve_look(s);
}

/* Sends the result. What it takes counts until it is written. */
static void far_task_answer(void *arg)
{
    struct far_task *t = arg;
    struct far_serve *s = t->serve;
    const struct store_call *call = &t->request.call;
    char *bytes = NULL;
    size_t len = 0; /* of the bytes */
    ACT_AUTO(act_buf) words = {0};

    s->n_under_way--;
    if (t->result.bytes == FAR_BYTES) {
        bytes = t->bytes;
        len = call->get.got;
        t->bytes = NULL;
    } else if (t->result.bytes == FAR_CHANGED) {
        bytes = t->extra;
        len = t->extra_len;
        t->extra = NULL;
    }
    far_words_of_result(call, &t->result, &words);
    s->bytes_under_way += words.len + len;
    far_link_send(&s->link, t->id, &words, bytes, len, far_result_sent);
    far_task_free(t);
    far_serve_look(s);
    far_serve_sync_now(s);
}

/* Puts the sums of what was read in its place, or what differs from what the other end has beside it. On a worker. */
static void far_task_compare(void *arg)
{
    struct far_task *t = arg;
    struct store_get *get = &t->request.call.get;

    if (t->request.summed) {
        char *sums = act_alloc(far_sums_size(get->got) + 1);
        far_sums_of(t->bytes, get->got, (uint8_t *)sums);
        free(t->bytes);
        t->bytes = sums;
        get->got = far_sums_size(get->got);
        t->result.crc64 = act_crc64(0, sums, get->got);
        return;
    }
    far_find_changes(t->bytes, get->got, (const uint8_t *)t->extra, t->extra_len, &t->result.changed);
    size_t size = far_changes_size(&t->result.changed, get->got);
    if (size > get->got / 2)
        return;
    free(t->extra);
    t->extra = act_alloc(size + 1);
    far_gather(&t->result.changed, t->bytes, get->got, t->extra);
    t->result.bytes = FAR_CHANGED;
}

static void far_task_compared(void *arg)
{
    struct far_task *t = arg;

    if (t->result.bytes == FAR_CHANGED) {
        size_t size = far_changes_size(&t->result.changed, t->request.call.get.got);
        t->serve->bytes_under_way += size - t->extra_len;
        t->extra_len = size;
    }
    far_task_answer(t);
}

static void far_task_done(struct store_call *call)
{
    struct far_task *t = call->arg;
    struct far_serve *s = t->serve;
    bool has_read = call->op == STORE_GET && call->rc == 0 && call->get.got > 0;

    s->n_unkept -= !t->was_kept;
    t->result.crc64 = t->sums.crc64;
    if (has_read)
        t->result.bytes = !t->request.summed && far_is_zeros(t->bytes, call->get.got) ? FAR_ZEROS : FAR_BYTES;
    if (t->result.bytes == FAR_BYTES && (t->request.summed || t->extra))
        engine_work(s->engine, far_task_compare, far_task_compared, t);
    else
        far_task_answer(t);
}

static void far_task_carry_out(struct far_task *t)
{
    struct store_call *call = &t->request.call;

    call->kept = t->request.alone ? NULL : far_task_kept;
    call->done = far_task_done;
    call->arg = t;
    store_start(t->serve->store, call);
}

/* Syncs when no other call is under way: what was asked for before is to be on the disk. */
static void far_serve_sync_now(struct far_serve *s)
{
    while (s->syncs && s->n_under_way == s->n_syncs) {
        struct far_task *t = s->syncs;
        s->syncs = t->next;
        s->n_syncs--;
        s->n_unkept++;
        far_task_carry_out(t);
    }
}

/* Puts what came into what is there. Whether the whole is what was meant, its checksum says. */
static void far_task_old_is_here(struct store_call *old)
{
    struct far_task *t = old->arg;

    store_call_release(old);
    far_scatter(&t->request.changed, t->bytes, t->len, t->extra);
    far_task_carry_out(t);
}

static void far_serve_start(struct far_serve *s, struct far_task *t)
{
    const struct far_request *r = &t->request;

    if (r->no_sync)
        store_no_sync(s->store);
    if (r->follow)
        store_follow_links(s->store);
    s->n_under_way++;
    if (r->op == STORE_SYNC) {
        t->next = s->syncs;
        s->syncs = t;
        s->n_syncs++;
        far_serve_sync_now(s);
        return;
    }
    s->n_unkept++;
    if (r->bytes != FAR_CHANGED) {
        far_task_carry_out(t);
        return;
    }
    t->old = (struct store_call){
        .op = STORE_GET,
        .key = r->call.key,
        .get = {.offset = r->op == STORE_BLOCK ? r->call.block.offset : 0, .sink = t->bytes, .sink_cap = t->len},
        .done = far_task_old_is_here,
        .arg = t};
    store_start(s->store, &t->old);
}

static void far_serve_came(void *arg, struct far_frame *frame)
{
    struct far_serve *s = arg;
    struct far_task *t = s->coming;

    s->coming = NULL;
    t->words = frame->words;
    if (t->request.op < STORE_OPS) {
        far_serve_start(s, t);
    } else {
        s->hurry = s->hurry || t->request.op == FAR_HURRY;
        if (t->request.op == FAR_OPEN_UP)
            store_open_up(s->store, t->request.call.key);
        far_task_free(t);
    }
    far_serve_look(s);
}

/* Says that this end is there, unless what it has to send says so. */
static void far_serve_beat(void *arg)
{
    struct far_serve *s = arg;

    if ((s->n_under_way > 0 || s->coming) && !s->link.first)
        far_link_send(&s->link, FAR_NO_CALL, &(struct act_buf){0}, NULL, 0, NULL);
    engine_timer(s->engine, FAR_BEAT_MS, far_serve_beat, s);
}

static void far_serve_broken(void *arg, const struct act_error *error)
{
    struct far_serve *s = arg;

    (void)error;
    s->over = true;
}

/* ---- all of it */

/* Does what the other end would ask for, had its connection not broken. */
static void far_serve_sync(const struct far_serve *s)
{
    struct store_call call = {.op = STORE_SYNC, .key = ""};
    struct act_error ignored;

    if (s->store)
        (void)!store_do(s->store, &call, &ignored);
    store_call_release(&call);
}

/* Carries out what the other end asks with the connection, as if it had come. */
static void far_serve_first(struct far_serve *s, const char *key, const char *prefix)
{
    struct store_call calls[FAR_FIRSTS];
    const size_t n = far_first_calls(key, prefix, calls);

    for (size_t i = 0; i < n; i++) {
        struct far_task *t = act_calloc(1, sizeof(*t));
        t->serve = s;
        t->id = i;
        t->request = (struct far_request){.op = calls[i].op, .call = calls[i]};
        (void)far_task_take_bytes(t, &(struct far_frame){0});
        far_serve_start(s, t);
    }
}

int store_far_serve(struct http *http, const char *root, bool create, const char *first, int in_fd, int out_fd,
                    struct act_error *err)
{
    ACT_AUTOFREE char *prefix = first ? far_first_prefix(first) : NULL;
    struct far_serve s = {.engine = http_engine(http)};
    struct act_buf words = {0};

    signal(SIGPIPE, SIG_IGN);
    (void)act_allow_files(UINT64_MAX); /* each call may hold one open */
    s.link = (struct far_link){.begun = far_serve_begun, .came = far_serve_came, .broken = far_serve_broken, .arg = &s};
    int rc = store_folder_open(http, root, create, &s.store, err);
    far_link_init(&s.link, s.engine, in_fd, out_fd, NULL);
    far_words_of_hello(rc == 0 ? strchr(store_name(s.store), ':') + 1 : NULL, rc, err, &words);
    far_link_send(&s.link, 0, &words, NULL, 0, NULL);
    act_buf_release(&words);
    engine_hold(s.engine, true);
    engine_timer(s.engine, FAR_BEAT_MS, far_serve_beat, &s);
    if (rc == 0 && first)
        far_serve_first(&s, first, prefix);
    if (rc == 0)
        engine_run(s.engine, &s.over);
    engine_forget(s.engine, &s);
    engine_hold(s.engine, false);
    engine_run(s.engine, NULL); /* what is under way, or the error, which is written in one piece */
    far_serve_sync(&s);
    if (s.coming)
        far_task_free(s.coming);
    far_link_release(&s.link);
    store_free(s.store);
    return rc;
}
