/* far.c - the store that is a folder of another machine: each call is sent to the folder store there. See far.h.
 *
 *   start -> (what is there is asked for) -> (sum) -> sent -> (kept) -> result came -> (check) -> done
 *
 * What is written has a checksum when it leaves, against which the other end holds what came, and the reverse. Of what
 * replaces an object only the blocks that differ are sent: the other end says the sums of its own first, or is told
 * ours. When the connection breaks, far_line.c makes it again, and all calls that have no result are sent once more.
 */
#include <string.h>

#include "base/crc64.h"
#include "base/log.h"
#include "engine/engine.h"
#include "http/http.h"
#include "site/site.h"
#include "store/far.h"
#include "store/folder.h"

enum { FAR_MAX_KEPT = 4096 }; /* calls that wait for the disk there */

struct engine *far_engine(const struct far *far)
{
    return http_engine(far->store.http);
}

/* ---- calls and their numbers */

static void far_take_slot(struct far_call *c)
{
    struct far *far = c->far;

    for (c->slot = far->free_from; c->slot < far->n_slots && far->slots[c->slot];)
        c->slot++;
    far->free_from = c->slot + 1;
    if (c->slot == far->n_slots)
        ACT_PUSH(far->slots, far->n_slots, NULL);
    far->slots[c->slot] = c;
    far->n_under_way++;
    engine_hold(far_engine(far), true);
    far_line_listen(far);
}

void far_leave_slot(struct far_call *c)
{
    struct far *far = c->far;

    far->slots[c->slot] = NULL;
    far->free_from = c->slot < far->free_from ? c->slot : far->free_from;
    far->n_kept -= c->stage == FAR_CALL_KEPT;
    far->kept_bytes -= c->kept_bytes;
    far->n_under_way--;
    engine_hold(far_engine(far), false);
    if (far->n_under_way == 0)
        far_line_rest(far);
}

static struct far_call *far_call_of(const struct far *far, uint64_t id)
{
    return id < far->n_slots ? far->slots[id] : NULL;
}

struct far_call *far_call_new(struct far *far, struct store_call *call)
{
    struct far_call *c = act_calloc(1, sizeof(*c));

    *c = (struct far_call){
        .far = far,
        .call = call,
        .request = {.op = call->op, .no_sync = far->store.no_sync, .follow = far->store.follow, .alone = !call->kept}};
    far_take_slot(c);
    return c;
}

/* Says on which machine it is: of "'/home/me/x'" it makes "'login:/home/me/x'". */
static void far_name_machine(const struct far *far, struct act_error *err)
{
    const struct act_error said = *err;
    const char *text = act_error_text(&said), *login = far->place.login,
               *at = far->root && login ? strstr(text, far->root) : NULL;

    if (!at || at == text || at[-1] != '\'')
        return;
    act_error_set(err, said.code, "%.*s%s:%s", (int)(at - text), text, login, at);
    err->fact = said.fact;
}

/* A call that was sent twice, and carried out before the first connection broke, finds nothing the second time. */
static int far_forgive(const struct far_call *c, int rc)
{
    const enum store_op op = c->call->op;

    return c->again && rc == -(int)ACT_NOT_FOUND && (op == STORE_DELETE || op == STORE_CLEAR) ? 0 : rc;
}

void far_call_free(struct far_call *c)
{
    act_buf_release(&c->words);
    free(c->own);
    free(c->sums);
    free(c->came);
    free(c);
}

void far_call_end(struct far_call *c, int rc)
{
    struct far *far = c->far;
    struct store_call *call = c->call;

    for (size_t i = 0; call->op == STORE_DELETE_MANY && i < call->delete_many.n; i++) {
        struct store_deletion *one = &call->delete_many.v[i];
        if (c->again && one->rc == -(int)ACT_NOT_FOUND)
            one->rc = 0;
        far_name_machine(far, &one->error);
    }
    if (rc < 0)
        far_name_machine(far, &call->error);
    rc = far_forgive(c, rc);
    far_line_ended(far, c, rc);
    far_call_free(c);
    store_finish(call, rc);
}

/* ---- calls that are sent */

/* Writes the words, for bytes that are as `bytes` says. */
static void far_call_encode(struct far_call *c)
{
    struct far_request r = c->request;

    r.call = *c->call;
    if (r.op == STORE_PUT)
        r.call.put.data.crc64 = &r.crc64;
    else if (r.op == STORE_BLOCK)
        r.call.block.data.crc64 = &r.crc64;
    act_buf_release(&c->words);
    far_words_of_request(&r, &c->words);
}

/* Chooses how the bytes of a call are sent: as zeros, as changes of what is there, or as they are. */
static void far_choose_bytes(struct far_call *c, const struct store_data *data)
{
    struct far_request *r = &c->request;

    r->bytes = data->len == 0 ? FAR_NO_BYTES : far_is_zeros(data->bytes, data->len) ? FAR_ZEROS : FAR_BYTES;
    c->bytes = r->bytes == FAR_BYTES ? data->bytes : NULL;
    c->len = r->bytes == FAR_BYTES ? data->len : 0;
    if (r->bytes != FAR_BYTES || c->sums_size == 0)
        return;
    far_find_changes(data->bytes, data->len, c->sums, c->sums_size, &r->changed);
    size_t size = far_changes_size(&r->changed, data->len);
    if (size > data->len / 2)
        return;
    c->own = act_alloc(size + 1);
    far_gather(&r->changed, data->bytes, data->len, c->own);
    c->bytes = c->own;
    c->len = size;
    r->bytes = FAR_CHANGED;
}

/* Sums what the caller has of an object that is read, so that only what differs comes. */
static void far_sum_old(struct far_call *c, const struct store_get *get)
{
    if (get->old < FAR_SMALL || get->upload)
        return;
    c->len = far_sums_size(get->old);
    c->own = act_alloc(c->len);
    far_sums_of(get->sink, get->old, (uint8_t *)c->own);
    c->bytes = c->own;
    c->request.bytes = FAR_BYTES;
}

void far_sum(void *arg)
{
    struct far_call *c = arg;
    const struct store_data *data = store_data_of(c->call);

    if (data) {
        c->request.crc64 = data->crc64 ? *data->crc64 : act_crc64(0, data->bytes, data->len);
        far_choose_bytes(c, data);
    } else if (c->call->op == STORE_GET) {
        far_sum_old(c, &c->call->get);
    }
    far_call_encode(c);
}

/* Gives the caller its bytes back, with a copy for another connection, while the other end waits for its disk. */
static void far_call_keep(struct far_call *c)
{
    struct far *far = c->far;
    struct store_call *call = c->call;
    const struct store_data *data = store_data_of(call);
    size_t copied = c->bytes ? c->len : 0;

    if (!call->kept || (call->op != STORE_PUT && call->op != STORE_COMMIT) || (data && data->sums) || c->own ||
        far->n_kept == FAR_MAX_KEPT || far->kept_bytes + copied > FAR_KEPT_BYTES)
        return;
    if (copied > 0) {
        c->own = act_alloc(copied);
        memcpy(c->own, c->bytes, copied);
        c->bytes = c->own;
    }
    c->kept_bytes = copied;
    far->kept_bytes += copied;
    c->stage = FAR_CALL_KEPT;
    far->n_kept++;
    call->kept(call);
}

static void far_call_sent(void *arg, uint64_t id, const void *bytes, size_t size)
{
    struct far *far = arg;
    struct far_call *c = far_call_of(far, id);

    (void)bytes;
    (void)size;
    if (!c || far->link.is_broken)
        return;
    c->is_written = true;
    if (c->stage != FAR_CALL_QUEUED)
        return;
    c->stage = FAR_CALL_SENT;
    const struct store_data *data = store_data_of(c->call);
    if (data && c->call->moves && !c->again)
        c->call->moves(c->call, (int64_t)data->len);
    far_call_keep(c);
}

void far_call_lost(struct far_call *c)
{
    c->is_written = false;
    if (c->stage <= FAR_CALL_WAITS)
        return;
    c->again = true;
    store_call_release(c->call); /* its result may have come in part */
    if (c->stage != FAR_CALL_KEPT)
        c->stage = FAR_CALL_WAITS;
    if (c->call->op != STORE_GET || !c->mixed)
        return;
    c->len = 0; /* what was summed is not there any more */
    c->request.bytes = FAR_NO_BYTES;
    far_call_encode(c);
}

void far_call_write(struct far_call *c)
{
    struct far *far = c->far;

    if (c->stage != FAR_CALL_KEPT)
        c->stage = FAR_CALL_QUEUED;
    c->is_written = false;
    far->news = true;
    if (far->n_under_way == 1)
        act_trace("far", "waits for '%s'", c->call->key);
    far_link_send(&far->link, c->slot, &c->words, c->bytes, c->len, far_call_sent);
}

static void far_send(void *arg)
{
    struct far_call *c = arg;
    struct far *far = c->far;

    if (far->state == FAR_OVER) {
        c->call->error = far->broken;
        far_leave_slot(c);
        far_call_end(c, -(int)far->broken.code);
        return;
    }
    c->stage = FAR_CALL_WAITS;
    if (far_line_is_up(far))
        far_call_write(c);
}

/* Makes what is sent of a call, and sends it. */
static void far_prepare(struct far_call *c)
{
    const struct store_data *data = store_data_of(c->call);
    bool is_long = data ? data->len > FAR_SMALL && (!data->crc64 || c->sums)
                        : c->call->op == STORE_GET && c->call->get.old >= FAR_SMALL;

    if (is_long) {
        engine_work(far_engine(c->far), far_sum, far_send, c);
        return;
    }
    far_sum(c);
    far_send(c);
}

/* ---- what is there already */

/* A question for the sums of what is there, before a call that replaces it. */
struct far_question {
    struct far *far;
    struct store_call *call, ask;
    uint8_t *sums;
};

static void far_sums_came(struct store_call *ask)
{
    struct far_question *q = ask->arg;
    struct far_call *c = far_call_new(q->far, q->call);

    c->sums = q->sums;
    c->sums_size = ask->rc == 0 ? ask->get.got : 0;
    store_call_release(ask);
    free(q);
    far_prepare(c);
}

static void far_ask_for_sums(struct far *far, struct store_call *call, const struct store_data *data)
{
    struct far_question *q = act_calloc(1, sizeof(*q));
    size_t size = far_sums_size(data->len);

    *q = (struct far_question){.far = far, .call = call, .sums = act_alloc(size)};
    q->ask = (struct store_call){
        .op = STORE_GET,
        .key = call->key,
        .get = {.offset = call->op == STORE_BLOCK ? call->block.offset : 0, .sink = q->sums, .sink_cap = size},
        .done = far_sums_came,
        .arg = q};
    struct far_call *c = far_call_new(far, &q->ask);
    c->request.summed = data->len;
    far_prepare(c);
}

static void far_start(struct store *store, struct store_call *call)
{
    struct far *far = (struct far *)store;
    const struct store_data *data = store_data_of(call);

    if (far->state == FAR_OVER) {
        call->error = far->broken;
        store_finish_later(store, call, -(int)far->broken.code);
        return;
    }
    if (far_first_takes(far, call))
        return;
    if (call->op == STORE_GET && call->get.sink_cap > FAR_MAX_PUT) {
        store_finish_later(store, call,
                           act_error_set(&call->error, ACT_USAGE, "cannot get '%s' in parts of more than %d MiB",
                                         call->key, FAR_MAX_PUT >> 20));
        return;
    }
    if (data && data->replaces && data->len > FAR_SMALL && !far_is_zeros(data->bytes, data->len))
        far_ask_for_sums(far, call, data);
    else
        far_prepare(far_call_new(far, call));
}

/* ---- results */

static void far_add_sum(struct store_sums *sums, uint64_t crc64, const void *bytes, size_t len)
{
    if (!sums)
        return;
    sums->crc64 = act_crc64_combine(sums->crc64, crc64, len);
    if (sums->want_md5)
        act_md5_add(&sums->md5, bytes, len);
}

/* Compares what came with what was sent, and adds what the caller wants summed. */
static void far_check(void *arg)
{
    struct far_call *c = arg;
    struct store_call *call = c->call;
    const struct store_data *data = store_data_of(call);

    if (data) {
        far_add_sum(data->sums, c->request.crc64, data->bytes, data->len);
        return;
    }
    const struct store_get *get = &call->get;
    if (c->result.bytes == FAR_CHANGED)
        far_scatter(&c->result.changed, get->sink, get->got, c->came);
    uint64_t crc64 = act_crc64(0, get->sink, get->got);
    if (crc64 == c->result.crc64)
        far_add_sum(get->sums, crc64, get->sink, get->got);
    else
        call->rc =
            act_error_set(&call->error, ACT_TEMPORARY,
                          "cannot get '%s': its bytes are damaged: their CRC64 is not the one they had", call->key);
}

static void far_checked(void *arg)
{
    struct far_call *c = arg;

    far_call_end(c, c->call->rc);
}

/* Says where the bytes of a result go. */
static bool far_make_room(struct far_call *c, struct far_frame *frame)
{
    const struct store_get *get = &c->call->get;
    bool has_bytes = c->call->op == STORE_GET && c->call->rc == 0 && get->got > 0;

    if (!has_bytes)
        return frame->len == 0;
    switch (c->result.bytes) {
    case FAR_BYTES:
        c->mixed = true;
        frame->bytes = get->sink;
        return frame->len == get->got;
    case FAR_ZEROS:
        return frame->len == 0;
    case FAR_CHANGED:
        free(c->came);
        c->came = act_alloc(frame->len + 1);
        frame->bytes = c->came;
        return c->request.bytes == FAR_BYTES && frame->len == far_changes_size(&c->result.changed, get->got);
    case FAR_NO_BYTES:
        break;
    }
    return false;
}

bool far_result_begun(void *arg, struct far_frame *frame)
{
    struct far *far = arg;

    if (far->state == FAR_GREETS)
        return far_line_greeted(far, frame);
    if (frame->id == FAR_NO_CALL)
        return frame->words_len == 0 && frame->len == 0;
    struct far_call *c = far_call_of(far, frame->id);
    return c && c->is_written && far_result_of_words(frame->words, frame->words_len, c->call, &c->result) &&
           far_make_room(c, frame);
}

/* Sends all bytes of a call, of which the changes were not accepted: what is there is not what it was. */
static bool far_send_whole(struct far_call *c)
{
    const struct store_data *data = store_data_of(c->call);

    if (c->request.bytes != FAR_CHANGED || c->call->rc != -(int)ACT_TEMPORARY)
        return false;
    free(c->own);
    c->own = NULL;
    c->sums_size = 0;
    c->again = true;
    far_choose_bytes(c, data);
    far_call_encode(c);
    c->call->error = (struct act_error){0};
    c->call->rc = 0;
    far_call_write(c);
    return true;
}

void far_result_came(void *arg, struct far_frame *frame)
{
    struct far *far = arg;
    struct far_call *c = far_call_of(far, frame->id);

    free(frame->words);
    if (far->state == FAR_GREETS) {
        far_line_met(far);
        return;
    }
    if (!c || !far_line_takes(far, c) || far_send_whole(c))
        return;
    struct store_call *call = c->call;
    const struct store_data *data = store_data_of(call);
    size_t got = call->op == STORE_GET && call->rc == 0 ? call->get.got : 0, len = data && data->sums ? data->len : got;
    far_leave_slot(c);
    if (got > 0 && c->result.bytes == FAR_ZEROS)
        memset(call->get.sink, 0, got);
    if (got > 0 && call->moves)
        call->moves(call, (int64_t)got);
    if (call->rc == 0 && len > FAR_SMALL) {
        engine_work(far_engine(far), far_check, far_checked, c);
        return;
    }
    if (call->rc == 0 && len > 0)
        far_check(c);
    far_checked(c);
}

/* ---- what is no call */

void far_tell(struct far *far, unsigned op, const char *key)
{
    ACT_AUTO(act_buf) words = {0};
    const struct far_request r = {.op = op, .call.key = key};

    if (far->state < FAR_ASKS || far->state > FAR_UP)
        return;
    far_words_of_request(&r, &words);
    far_link_send(&far->link, FAR_NO_CALL, &words, NULL, 0, NULL);
}

static void far_hurry(struct store *store)
{
    struct far *far = (struct far *)store;

    if (far->n_under_way > 0 && far->news)
        far_tell(far, FAR_HURRY, "");
    far->news = false;
}

static void far_open_up(struct store *store, const char *key)
{
    struct far *far = (struct far *)store;

    act_strv_push(&far->opened_up, key);
    far_tell(far, FAR_OPEN_UP, key);
}

static int far_window(const struct store *store)
{
    (void)store;
    return FAR_WINDOW;
}

static void far_close(struct store *store)
{
    struct far *far = (struct far *)store;

    far_first_release(far);
    far_line_release(far);
    free(far->slots);
    free(far);
}

static const struct store_ops ops = {
    .operations = ~(STORE_BIT(STORE_PUT_FROM) | STORE_BIT(STORE_BLOCK_FROM) | STORE_BIT(STORE_URL)),
    .start = far_start,
    .key_problem = folder_key_problem,
    .window = far_window,
    .hurry = far_hurry,
    .open_up = far_open_up,
    .close = far_close,
    .traits = {.max_put = FAR_MAX_PUT,
               .sums_are_free = true,
               .real_folders = true,
               .changes_from = FAR_SMALL,
               .syncs_behind = true,
               .is_far_disk = true},
};

/* ---- opening */

static struct far *far_new(struct http *http)
{
    struct far *far = act_calloc(1, sizeof(*far));

    far->store = (struct store){.ops = &ops, .http = http, .name = act_strdup("folder:")};
    return far;
}

/* Gives the store out if it was opened; else frees it. */
static int far_opened(struct far *far, int rc, struct store **out, struct act_error *err)
{
    const char *login = far->place.login;

    if (rc < 0) {
        if (login)
            act_error_prefix(err, "'%s'", login);
        store_free(&far->store);
        return rc;
    }
    free(far->store.name);
    far->store.name = act_sprintf("folder:%s%s%s", login ? login : "", login ? ":" : "", far->root);
    *out = &far->store;
    return 0;
}

int store_far_open_fds(struct http *http, int in_fd, int out_fd, struct store **out, struct act_error *err)
{
    struct far *far = far_new(http);

    return far_opened(far, far_line_begin(far, in_fd, out_fd, NULL, err), out, err);
}

int store_far_open(struct http *http, const struct store_far_options *o, struct store **out, struct act_error *err)
{
    struct far *far = far_new(http);
    struct far_place *place = &far->place;

    *place =
        (struct far_place){.login = act_strdup(o->login), .root = act_strdup(o->root), .folder = act_strdup(o->folder)};
    far->state = FAR_DOWN;
    if (o->first)
        far_first_begin(far, o->first);
    int rc = far_line_connect(far, err);
    if (rc == 0)
        return far_opened(far, far_line_greet(far, err), out, err);
    store_free(&far->store);
    return rc;
}
