/* far.c - the store that is a folder of another machine: each call is sent to the folder store there. See far.h.
 *
 *   start -> (sum) -> sent -> (kept) -> result came -> (check) -> done
 *
 * What is written has a checksum when it leaves, against which the other end holds what came, and the reverse. When
 * the connection breaks, all calls fail with one error; what the other end was given remains there for an upload that
 * goes on.
 */
#include <fcntl.h>
#include <string.h>

#include "base/crc64.h"
#include "engine/engine.h"
#include "http/http.h"
#include "site/site.h"
#include "store/far.h"
#include "store/folder.h"

enum { FAR_MAX_KEPT = 4096 }; /* calls that wait for the disk there */

struct far;

/* A call under way. */
struct far_call {
    struct far *far;
    struct store_call *call;
    size_t slot;
    enum {
        FAR_CALL_SUMMED, /* a worker has it: nobody else ends it */
        FAR_CALL_QUEUED, /* until the link has written all of it */
        FAR_CALL_SENT,
        FAR_CALL_KEPT, /* sent, and its bytes are the caller's again */
    } stage;
    struct far_request request; /* only its own members are used */
    struct far_result result;
};

struct far {
    struct store store;
    struct site *site; /* holds the connection; NULL: it was given */
    char *login;       /* NULL: it is not known */
    char *root;        /* as the other end says; NULL: it has not begun */
    struct far_link link;
    struct far_call **slots; /* by number; NULL: free */
    size_t n_slots, n_under_way, n_kept;
    size_t free_from;               /* no slot before this one is free */
    bool news;                      /* since the other end was told to hurry */
    bool ended;                     /* the link is broken, or the first words have come */
    struct act_error broken, hello; /* code 0: it is not */
};

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
    engine_hold(far->link.engine, true);
}

static void far_leave_slot(struct far_call *c)
{
    struct far *far = c->far;

    far->slots[c->slot] = NULL;
    far->free_from = c->slot < far->free_from ? c->slot : far->free_from;
    far->n_kept -= c->stage == FAR_CALL_KEPT;
    far->n_under_way--;
    engine_hold(far->link.engine, false);
}

static struct far_call *far_call_of(const struct far *far, uint64_t id)
{
    return id < far->n_slots ? far->slots[id] : NULL;
}

/* Says on which machine it is: of "'/home/me/x'" it makes "'login:/home/me/x'". */
static void far_name_machine(const struct far *far, struct act_error *err)
{
    const struct act_error said = *err;
    const char *text = act_error_text(&said), *at = far->root && far->login ? strstr(text, far->root) : NULL;

    if (!at || at == text || at[-1] != '\'')
        return;
    act_error_set(err, said.code, "%.*s%s:%s", (int)(at - text), text, far->login, at);
    err->fact = said.fact;
}

static void far_end_call(struct far_call *c, int rc)
{
    struct far *far = c->far;
    struct store_call *call = c->call;

    if (call->op == STORE_DELETE_MANY)
        for (size_t i = 0; i < call->delete_many.n; i++)
            far_name_machine(far, &call->delete_many.v[i].error);
    if (rc < 0)
        far_name_machine(far, &call->error);
    free(c);
    store_finish(call, rc);
}

/* ---- calls that are sent */

static void far_sum(void *arg)
{
    struct far_call *c = arg;
    const struct store_data *data = store_data_of(c->call);

    c->request.crc64 = act_crc64(0, data->bytes, data->len);
}

static void far_call_sent(void *arg, uint64_t id, const void *bytes, size_t len)
{
    struct far *far = arg;
    struct far_call *c = far_call_of(far, id);

    (void)bytes;
    if (!c || far->link.is_broken)
        return;
    c->stage = FAR_CALL_SENT;
    struct store_call *call = c->call;
    const struct store_data *data = store_data_of(call);
    if (data && call->moves)
        call->moves(call, (int64_t)len);
    if (!call->kept || (call->op != STORE_PUT && call->op != STORE_COMMIT) || (data && data->sums) ||
        far->n_kept == FAR_MAX_KEPT)
        return;
    c->stage = FAR_CALL_KEPT;
    far->n_kept++;
    call->kept(call);
}

static void far_send(void *arg)
{
    struct far_call *c = arg;
    struct far *far = c->far;
    struct far_request r = c->request;
    const struct store_data *data = store_data_of(c->call);
    struct act_buf words = {0};
    size_t len = 0; /* of the bytes that follow */

    if (far->broken.code) {
        c->call->error = far->broken;
        far_leave_slot(c);
        far_end_call(c, -(int)far->broken.code);
        return;
    }
    c->stage = FAR_CALL_QUEUED;
    r.call = *c->call;
    if (r.op == STORE_PUT)
        r.call.put.data.crc64 = &r.crc64;
    else if (r.op == STORE_BLOCK)
        r.call.block.data.crc64 = &r.crc64;
    if (data && data->len > 0) {
        r.bytes = far_is_zeros(data->bytes, data->len) ? FAR_ZEROS : FAR_BYTES;
        len = r.bytes == FAR_BYTES ? data->len : 0;
    }
    far_words_of_request(&r, &words);
    far->news = true;
    far_link_send(&far->link, c->slot, &words, data ? data->bytes : NULL, len, far_call_sent);
}

static void far_start(struct store *store, struct store_call *call)
{
    struct far *far = (struct far *)store;
    const struct store_data *data = store_data_of(call);

    if (far->broken.code) {
        call->error = far->broken;
        store_finish_later(store, call, -(int)far->broken.code);
        return;
    }
    if (call->op == STORE_GET && call->get.sink_cap > FAR_MAX_PUT) {
        store_finish_later(store, call,
                           act_error_set(&call->error, ACT_USAGE, "cannot get '%s' in parts of more than %d MiB",
                                         call->key, FAR_MAX_PUT >> 20));
        return;
    }
    struct far_call *c = act_calloc(1, sizeof(*c));
    *c = (struct far_call){
        .far = far,
        .call = call,
        .request = {.op = call->op, .no_sync = store->no_sync, .follow = store->follow, .alone = !call->kept}};
    far_take_slot(c);
    if (data && data->crc64)
        c->request.crc64 = *data->crc64;
    bool is_known = !data || data->crc64;
    if (!is_known && data->len > FAR_SMALL) {
        engine_work(far->link.engine, far_sum, far_send, c);
        return;
    }
    if (!is_known)
        far_sum(c);
    far_send(c);
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

    far_end_call(c, c->call->rc);
}

static bool far_result_begun(void *arg, struct far_frame *frame)
{
    struct far *far = arg;

    if (!far->root) { /* what is wrong with the first words, far->hello says */
        (void)!far_hello_of_words(frame->words, frame->words_len, &far->root, &far->hello);
        return frame->len == 0;
    }
    struct far_call *c = far_call_of(far, frame->id);
    if (!c || c->stage < FAR_CALL_SENT || !far_result_of_words(frame->words, frame->words_len, c->call, &c->result))
        return false;
    struct store_call *call = c->call;
    bool gets = call->op == STORE_GET && call->rc == 0 && call->get.got > 0;
    frame->bytes = gets ? call->get.sink : NULL;
    if (gets && c->result.bytes == FAR_NO_BYTES)
        return false;
    return frame->len == (gets && c->result.bytes == FAR_BYTES ? call->get.got : 0);
}

static void far_result_came(void *arg, struct far_frame *frame)
{
    struct far *far = arg;
    struct far_call *c = far->ended ? far_call_of(far, frame->id) : NULL;

    free(frame->words);
    far->ended = true;
    if (!c)
        return;
    struct store_call *call = c->call;
    const struct store_data *data = store_data_of(call);
    size_t got = call->op == STORE_GET ? call->get.got : 0, len = data && data->sums ? data->len : got;
    far_leave_slot(c);
    if (got > 0 && c->result.bytes == FAR_ZEROS)
        memset(call->get.sink, 0, got);
    if (got > 0 && call->moves)
        call->moves(call, (int64_t)got);
    if (call->rc == 0 && len > FAR_SMALL) {
        engine_work(far->link.engine, far_check, far_checked, c);
        return;
    }
    if (call->rc == 0 && len > 0)
        far_check(c);
    far_checked(c);
}

static void far_link_broken(void *arg, const struct act_error *error)
{
    struct far *far = arg;

    far->broken = *error;
    if (far->site)
        site_explain_loss(far->site, &far->broken);
    far->broken.network = true;
    far->ended = true;
    for (size_t i = 0; i < far->n_slots; i++) {
        struct far_call *c = far->slots[i];
        if (!c || c->stage == FAR_CALL_SUMMED) /* far_send() ends it */
            continue;
        c->call->error = far->broken;
        far_leave_slot(c);
        far_end_call(c, -(int)far->broken.code);
    }
}

/* ---- what is no call */

static void far_tell(struct far *far, unsigned op, const char *key)
{
    struct act_buf words = {0};
    const struct far_request r = {.op = op, .call.key = key};

    if (far->broken.code)
        return;
    far_words_of_request(&r, &words);
    far_link_send(&far->link, UINT64_MAX, &words, NULL, 0, NULL);
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
    far_tell((struct far *)store, FAR_OPEN_UP, key);
}

static int far_window(const struct store *store)
{
    (void)store;
    return FAR_WINDOW;
}

static void far_close(struct store *store)
{
    struct far *far = (struct far *)store;

    far_link_release(&far->link);
    site_free(far->site);
    free(far->slots);
    free(far->login);
    free(far->root);
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
    .traits = {.max_put = FAR_MAX_PUT, .sums_are_free = true, .real_folders = true, .is_far_disk = true},
};

/* ---- opening */

/* Waits for the first words. */
static int far_wait_for_hello(struct far *far, struct act_error *err)
{
    engine_hold(far->link.engine, true);
    engine_run(far->link.engine, &far->ended);
    engine_hold(far->link.engine, false);
    const struct act_error *why = far->hello.code ? &far->hello : &far->broken;
    if (!why->code)
        return 0;
    *err = *why;
    return -(int)why->code;
}

static int far_begin(struct far *far, struct http *http, int in_fd, int out_fd, const struct act_buf *said,
                     struct store **out, struct act_error *err)
{
    far->store = (struct store){.ops = &ops, .http = http, .name = act_strdup("folder:")};
    far->link =
        (struct far_link){.begun = far_result_begun, .came = far_result_came, .broken = far_link_broken, .arg = far};
    far_link_init(&far->link, http_engine(http), in_fd, out_fd, said);
    int rc = far_wait_for_hello(far, err);
    if (rc < 0) {
        if (far->login)
            act_error_prefix(err, "'%s'", far->login);
        store_free(&far->store);
        return rc;
    }
    free(far->store.name);
    far->store.name = act_sprintf("folder:%s%s%s", far->login ? far->login : "", far->login ? ":" : "", far->root);
    *out = &far->store;
    return 0;
}

int store_far_open_fds(struct http *http, int in_fd, int out_fd, struct store **out, struct act_error *err)
{
    return far_begin(act_calloc(1, sizeof(struct far)), http, in_fd, out_fd, NULL, out, err);
}

int store_far_open(struct http *http, const struct store_far_options *o, struct store **out, struct act_error *err)
{
    ACT_AUTO(act_buf) said = {0};
    struct site *site = NULL;
    int fd = -1, rc = site_open(&(struct site_options){.login = o->login, .root = o->root}, &site, err);
    ACT_AUTOFREE char *root = rc == 0 && o->folder[0] != '/' ? act_sprintf("%s/%s", site_root(site), o->folder) : NULL;
    const char *const words[] = {"__store", root ? root : o->folder, root ? "create" : "find", NULL};

    if (rc == 0)
        rc = site_become(site, words, &fd, &said, err);
    int copy = rc == 0 ? fcntl(fd, F_DUPFD_CLOEXEC, 0) : -1;
    if (rc < 0) {
        site_free(site);
        return rc;
    }
    struct far *far = act_calloc(1, sizeof(*far));
    far->site = site;
    far->login = act_strdup(o->login);
    return far_begin(far, http, fd, copy, &said, out, err);
}
