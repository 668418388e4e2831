/* far_serve.c - the other end of a far store: carries out what comes, in the folder store here, and sends back each
 * result when it is there. It takes in no more while there is no room for more, see FAR_ROOM_BYTES. When the stream
 * ends, what is under way is finished.
 */
#include <signal.h>
#include <string.h>
#include <sys/resource.h>

#include "engine/engine.h"
#include "http/http.h"
#include "store/far.h"

struct far_serve {
    struct store *store;
    struct engine *engine;
    struct far_link link;
    struct far_task *coming;
    size_t n_under_way, n_unkept; /* calls */
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
    bool was_kept;
    struct store_sums sums; /* of what is read */
};

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
    t->serve->bytes_under_way -= t->len;
    free(t->bytes);
    t->bytes = NULL;
    t->len = 0;
}

static void far_task_free(struct far_task *t)
{
    far_task_drop_bytes(t);
    free(t->words);
    far_request_release(&t->request);
    free(t);
}

/* ---- what comes */

/* Makes room for the bytes of a request. */
static bool far_task_take_bytes(struct far_task *t, struct far_frame *frame)
{
    struct store_call *call = &t->request.call;
    struct store_data *data = call->op == STORE_PUT     ? &call->put.data
                              : call->op == STORE_BLOCK ? &call->block.data
                                                        : NULL;
    size_t len = data ? data->len : 0;

    if (frame->len != (t->request.bytes == FAR_BYTES ? len : 0) || (t->request.bytes == FAR_NO_BYTES) != (len == 0))
        return false;
    t->len = call->op == STORE_GET ? call->get.sink_cap : len;
    t->serve->bytes_under_way += t->len;
    t->bytes = t->request.bytes == FAR_ZEROS ? act_calloc(t->len, 1) : act_alloc(t->len + 1);
    frame->bytes = t->bytes;
    if (data)
        data->bytes = t->bytes;
    if (call->op == STORE_GET) {
        call->get.sink = t->bytes;
        call->get.sums = &t->sums;
    }
    return true;
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

/* The bytes of a result are written. */
static void far_result_sent(void *arg, uint64_t id, const void *bytes, size_t len)
{
    struct far_serve *s = arg;
    char *own;

    (void)id;
    s->bytes_under_way -= len;
    memcpy(&own, &bytes, sizeof(own));
    free(own);
    far_serve_look(s);
}

/* Sends the result. What was read stays until it is written, and counts until then. */
static void far_task_done(struct store_call *call)
{
    struct far_task *t = call->arg;
    struct far_serve *s = t->serve;
    struct far_result result = {.crc64 = t->sums.crc64};
    struct act_buf words = {0};
    size_t len = 0;

    s->n_under_way--;
    s->n_unkept -= !t->was_kept;
    if (call->op == STORE_GET && call->rc == 0 && call->get.got > 0) {
        bool zeros = far_is_zeros(t->bytes, call->get.got);
        result.bytes = zeros ? FAR_ZEROS : FAR_BYTES;
        len = zeros ? 0 : call->get.got;
    }
    far_words_of_result(call, &result, &words);
    char *bytes = NULL;
    if (len > 0) {
        bytes = t->bytes;
        t->bytes = NULL;
        s->bytes_under_way += len;
    }
    far_link_send(&s->link, t->id, &words, bytes, len, bytes ? far_result_sent : NULL);
    far_task_free(t);
    far_serve_look(s);
}

static void far_serve_start(struct far_serve *s, struct far_task *t)
{
    struct far_request *r = &t->request;
    struct store_call *call = &r->call;

    if (r->no_sync)
        store_no_sync(s->store);
    if (r->follow)
        store_follow_links(s->store);
    call->kept = r->alone ? NULL : far_task_kept;
    call->done = far_task_done;
    call->arg = t;
    s->n_under_way++;
    s->n_unkept++;
    store_start(s->store, call);
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

static void far_serve_broken(void *arg, const struct act_error *error)
{
    struct far_serve *s = arg;

    (void)error;
    s->over = true;
}

/* ---- all of it */

/* Each call may hold a file open. */
static void far_serve_raise_limit(void)
{
    struct rlimit limit;

    if (getrlimit(RLIMIT_NOFILE, &limit) == 0) {
        limit.rlim_cur = limit.rlim_max;
        (void)setrlimit(RLIMIT_NOFILE, &limit);
    }
}

int store_far_serve(struct http *http, const char *root, bool create, int in_fd, int out_fd, struct act_error *err)
{
    struct far_serve s = {.engine = http_engine(http)};
    struct act_buf words = {0};

    signal(SIGPIPE, SIG_IGN);
    far_serve_raise_limit();
    s.link = (struct far_link){.begun = far_serve_begun, .came = far_serve_came, .broken = far_serve_broken, .arg = &s};
    int rc = store_folder_open(http, root, create, &s.store, err);
    far_link_init(&s.link, s.engine, in_fd, out_fd, NULL);
    far_words_of_hello(rc == 0 ? strchr(store_name(s.store), ':') + 1 : NULL, rc, err, &words);
    far_link_send(&s.link, 0, &words, NULL, 0, NULL);
    engine_hold(s.engine, true);
    if (rc == 0)
        engine_run(s.engine, &s.over);
    engine_hold(s.engine, false);
    engine_run(s.engine, NULL); /* what is under way, or the error, which is written in one piece */
    if (s.coming)
        far_task_free(s.coming);
    far_link_release(&s.link);
    store_free(s.store);
    return rc;
}
