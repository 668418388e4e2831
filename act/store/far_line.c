/* far_line.c - the connection of a far store, which is made again when it breaks.
 *
 *   GREETS --> ASKS --> UP --> DOWN --(timer)--> CONNECTS --> GREETS
 *                                 `--> OVER
 *
 * The other end is another process each time, and knows nothing of the one before. So folders that may be opened up are
 * named again, uploads that were begun are begun again, which tells whether the one before has ended, and then all
 * calls are sent that have no result. One may have been carried out already: what it wrote is then found as what it was
 * to be (transfer/commit.c), and what it deleted is not found (far.c).
 */
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/hash.h"
#include "base/log.h"
#include "engine/engine.h"
#include "http/http.h"
#include "site/site.h"
#include "store/far.h"

/* An upload that was begun and has not ended. */
struct far_upload {
    char *key;
    struct store_call call; /* that begins it again */
    struct far_call *asks;  /* is under way; NULL: none */
    struct far_upload *next;
};

/* A connection in the making. */
struct far_try {
    const struct far_place *place;
    const char *first; /* the key that is asked about with it; NULL: none */
    struct site *site;
    int fd;
    bool asked; /* about that key */
    struct act_buf said;
    int rc;
    struct act_error error;
};

/* ---- uploads */

static void line_upload_free(struct far_upload *u)
{
    store_call_release(&u->call);
    free(u->key);
    free(u);
}

static void line_forget_upload(struct far *far, const char *key, const struct store_upload_id *id)
{
    for (struct far_upload **at = &far->uploads; *at; at = &(*at)->next) {
        struct far_upload *u = *at;
        if (memcmp(&u->call.blocks.upload_id, id, sizeof(*id)) != 0 || strcmp(u->key, key) != 0)
            continue;
        *at = u->next;
        line_upload_free(u);
        return;
    }
}

static void line_note_upload(struct far *far, const struct store_call *call)
{
    struct far_upload *u = act_calloc(1, sizeof(*u));

    line_forget_upload(far, call->key, &call->blocks.upload_id); /* it may be begun twice */
    *u = (struct far_upload){.key = act_strdup(call->key), .next = far->uploads};
    u->call = (struct store_call){
        .op = STORE_BLOCKS,
        .key = u->key,
        .blocks = {.upload_id = call->blocks.upload_id, .total = call->blocks.total, .mode = call->blocks.mode}};
    far->uploads = u;
}

/* ---- the end */

static void line_over(struct far *far, const struct act_error *error)
{
    far_line_rest(far);
    far->state = FAR_OVER;
    far->met = true;
    far->broken = *error;
    far->broken.network = true;
    for (size_t i = 0; i < far->n_slots; i++) {
        struct far_call *c = far->slots[i];
        if (!c || c->stage == FAR_CALL_SUMMED) /* far_send() ends it */
            continue;
        c->call->error = far->broken;
        far_leave_slot(c);
        far_call_end(c, -(int)far->broken.code);
    }
}

/* ---- connecting again */

static void line_connect_again(void *arg);

/* Tries again after a while, or gives up with this error. */
static void line_try_later(struct far *far, const struct act_error *error)
{
    const struct http_options *o = http_options_of(far->store.http);
    const int64_t now_ms = act_now_monotonic_ms();
    uint8_t random;

    act_random(&random, sizeof(random));
    if (far->tries++ == 0)
        far->lost_ms = now_ms;
    int64_t delay_ms =
        http_retry_delay(0, true, far->tries, o->max_retries, now_ms - far->lost_ms, o->give_up_ms, -1, random / 256.0);
    if (delay_ms < 0) {
        line_over(far, error);
        return;
    }
    if (!far->told)
        act_note("the connection to '%s' was lost; connecting again", far->place.login);
    far->told = true;
    far->broken = *error;
    far->timer = true;
    engine_timer(far_engine(far), delay_ms, line_connect_again, far);
}

/* Takes back the calls that begin uploads again. */
static void line_drop_asking(struct far *far)
{
    for (struct far_upload *u = far->uploads; u; u = u->next) {
        if (!u->asks)
            continue;
        far_leave_slot(u->asks);
        far_call_free(u->asks);
        u->asks = NULL;
    }
    far->n_asked = 0;
}

/* There is no connection any more. Another one is made when it is needed. */
static void line_down(struct far *far, const struct act_error *why)
{
    act_trace("far", "%s", act_error_text(why));
    far_line_rest(far);
    far_link_release(&far->link);
    site_free(far->site);
    far->site = NULL;
    far->state = FAR_DOWN;
    far->broken = *why;
    for (size_t i = 0; i < far->n_slots; i++)
        if (far->slots[i])
            far_call_lost(far->slots[i]);
    if (far->n_under_way > 0 || !far->met)
        line_try_later(far, why);
}

static void line_lost(void *arg, const struct act_error *error)
{
    struct far *far = arg;
    struct act_error why = *error;
    const bool again = far->site && why.code == ACT_TEMPORARY;

    if (far->state == FAR_OVER)
        return;
    if (far->site)
        site_explain_loss(far->site, &why);
    why.network = true;
    line_drop_asking(far);
    if (again)
        line_down(far, &why);
    else
        line_over(far, &why);
}

/* ---- silence */

/* Tells whether the other end has nothing to do: all calls are still being prepared here. */
static bool line_has_nothing_to_hear(const struct far *far)
{
    if (far->state != FAR_UP || far->link.first)
        return false;
    for (size_t i = 0; i < far->n_slots; i++)
        if (far->slots[i] && far->slots[i]->is_written)
            return false;
    return true;
}

static void line_look(void *arg)
{
    struct far *far = arg;
    struct act_error err;

    far->listens = false;
    if (far_link_heard(&far->link) || line_has_nothing_to_hear(far)) {
        far_line_listen(far);
        return;
    }
    act_error_set(&err, ACT_TEMPORARY,
                  "the program of ACT there has said nothing for %d seconds; a busy machine takes longer than "
                  "ACT_STALL_TIMEOUT",
                  http_options_of(far->store.http)->stall_timeout_s);
    far_link_break(&far->link, &err);
}

void far_line_listen(struct far *far)
{
    if (far->listens || far->state > FAR_UP)
        return;
    far->listens = true;
    far->link.heard = false;
    engine_timer(far_engine(far), (int64_t)http_options_of(far->store.http)->stall_timeout_s * 1000, line_look, far);
}

void far_line_rest(struct far *far)
{
    if (far->listens)
        engine_forget(far_engine(far), far);
    far->listens = false;
}

/* ---- the first words */

/* Begins to use a connection. */
static void line_begin(struct far *far, int in_fd, int out_fd, const struct act_buf *said)
{
    const struct http_options *o = http_options_of(far->store.http);

    far->state = FAR_GREETS;
    far->link = (struct far_link){
        .rate = o->bwlimit, .begun = far_result_begun, .came = far_result_came, .broken = line_lost, .arg = far};
    far_link_init(&far->link, far_engine(far), in_fd, out_fd, said);
    far_line_listen(far);
}

bool far_line_greeted(struct far *far, const struct far_frame *frame)
{
    ACT_AUTOFREE char *root = NULL;

    if (far_hello_of_words(frame->words, frame->words_len, &root, &far->broken) == 0 && !far->root) {
        far->root = root;
        root = NULL;
    }
    return frame->len == 0;
}

static void line_send_again(struct far *far, bool syncs)
{
    for (size_t i = 0; i < far->n_slots; i++) {
        struct far_call *c = far->slots[i];
        if (c && (c->call->op == STORE_SYNC) == syncs && (c->stage == FAR_CALL_WAITS || c->stage == FAR_CALL_KEPT))
            far_call_write(c);
    }
}

/* Sends all calls that have no result: first what a sync is to wait for. */
static void line_up(struct far *far)
{
    far->state = FAR_UP;
    far->broken = (struct act_error){0};
    line_send_again(far, false);
    line_send_again(far, true);
}

static void line_ask(struct far *far, struct far_call *c)
{
    c->asks = true;
    far->n_asked++;
    far_call_write(c);
}

static void line_upload_asked(struct store_call *call)
{
    struct far_upload *u = call->arg;

    store_call_release(call);
    u->asks = NULL;
}

/* Begins again what was begun: those uploads, and those that were about to. */
static void line_ask_again(struct far *far)
{
    far->state = FAR_ASKS;
    for (size_t i = 0; i < far->opened_up.n; i++)
        far_tell(far, FAR_OPEN_UP, far->opened_up.v[i]);
    for (size_t i = 0; i < far->n_slots; i++) {
        struct far_call *c = far->slots[i];
        if (!c || c->stage != FAR_CALL_WAITS || c->call->op != STORE_BLOCKS)
            continue;
        line_forget_upload(far, c->call->key, &c->call->blocks.upload_id);
        line_ask(far, c);
    }
    for (struct far_upload *u = far->uploads; u; u = u->next) {
        u->call.done = line_upload_asked;
        u->call.arg = u;
        u->asks = far_call_new(far, &u->call);
        far_sum(u->asks);
        line_ask(far, u->asks);
    }
    if (far->n_asked == 0)
        line_up(far);
}

void far_line_met(struct far *far)
{
    if (far->n_under_way == 0)
        far_line_rest(far);
    if (far->broken.code) {
        const struct act_error why = far->broken;
        line_over(far, &why);
    } else if (!far->met) {
        far->met = true;
        line_up(far); /* what is not asked with the connection is sent now */
    } else {
        line_ask_again(far);
    }
}

bool far_line_takes(struct far *far, struct far_call *c)
{
    if (!c->asks || c->call->rc != -(int)ACT_TEMPORARY)
        return true;
    struct act_error busy = c->call->error; /* the process before has not ended */
    store_call_release(c->call);
    far_link_break(&far->link, &busy);
    return false;
}

void far_line_ended(struct far *far, const struct far_call *c, int rc)
{
    const struct store_call *call = c->call;
    const bool is_own = call->done == line_upload_asked;

    if (rc == 0 && far->state == FAR_UP)
        far->tries = 0;
    if (rc == 0 && call->op == STORE_BLOCKS && !is_own)
        line_note_upload(far, call);
    else if (rc == 0 && call->op == STORE_COMMIT)
        line_forget_upload(far, call->key, &call->commit.upload_id);
    else if (rc == 0 && call->op == STORE_DROP)
        line_forget_upload(far, call->key, &call->drop.upload_id);
    if (far->state != FAR_ASKS || !c->asks)
        return;
    if (rc < 0 && is_own)
        far_link_break(&far->link, &call->error);
    else if (--far->n_asked == 0)
        line_up(far);
}

/* ---- connections */

static int line_try(struct far_try *try)
{
    const struct far_place *place = try->place;
    struct act_error *err = &try->error;

    int rc = site_open(
        &(struct site_options){
            .login = place->login, .root = place->root, .store = place->folder, .store_first = try->first},
        &try->site, err);
    if (rc == 0)
        rc = site_become(try->site, place->folder, &try->fd, &try->said, &try->asked, err);
    if (rc == 0 || !try->site)
        return rc;
    site_free(try->site);
    try->site = NULL;
    return rc;
}

/* Uses the connection that was made. */
static void line_use(struct far *far, struct far_try *try)
{
    far->site = try->site;
    if (try->asked)
        far_first_asked(far);
    line_begin(far, try->fd, fcntl(try->fd, F_DUPFD_CLOEXEC, 0), &try->said);
    act_buf_release(&try->said);
}

static void line_try_on_worker(void *arg)
{
    struct far_try *try = ((struct far *)arg)->next;

    try->rc = line_try(try);
}

static void line_tried(void *arg)
{
    struct far *far = arg;
    struct far_try *try = far->next;

    far->next = NULL;
    far->state = FAR_DOWN;
    if (try->rc == 0)
        line_use(far, try);
    else if (try->error.network || try->rc == -(int)ACT_TEMPORARY)
        line_try_later(far, &try->error);
    else
        line_over(far, &try->error);
    act_buf_release(&try->said);
    free(try);
}

static void line_connect_again(void *arg)
{
    struct far *far = arg;

    far->timer = false;
    far->state = FAR_CONNECTS;
    far->broken = (struct act_error){0};
    far->next = act_calloc(1, sizeof(*far->next));
    far->next->place = &far->place;
    far->next->first = far->met ? NULL : far->place.first;
    engine_work(far_engine(far), line_try_on_worker, line_tried, far);
}

int far_line_connect(struct far *far, struct act_error *err)
{
    struct far_try try = {.place = &far->place, .first = far->place.first};
    int rc = line_try(&try);

    if (rc == 0) {
        line_use(far, &try);
    } else if (rc == -(int)ACT_TEMPORARY && try.error.network) { /* it was there, and broke */
        line_down(far, &try.error);
        rc = 0;
    } else {
        *err = try.error;
    }
    act_buf_release(&try.said);
    return rc;
}

int far_line_greet(struct far *far, struct act_error *err)
{
    engine_hold(far_engine(far), true);
    engine_run(far_engine(far), &far->met);
    engine_hold(far_engine(far), false);
    if (far->state != FAR_OVER)
        return 0;
    *err = far->broken;
    return -(int)far->broken.code;
}

int far_line_begin(struct far *far, int in_fd, int out_fd, const struct act_buf *said, struct act_error *err)
{
    line_begin(far, in_fd, out_fd, said);
    return far_line_greet(far, err);
}

bool far_line_is_up(struct far *far)
{
    if (far->state == FAR_DOWN && !far->timer) { /* it was lost while nobody needed it: that was no try */
        far->timer = true;
        engine_timer(far_engine(far), 0, line_connect_again, far);
    }
    return far->state == FAR_UP;
}

void far_line_release(struct far *far)
{
    engine_forget(far_engine(far), far);
    far_link_release(&far->link);
    site_free(far->site);
    while (far->uploads) {
        struct far_upload *u = far->uploads;
        far->uploads = u->next;
        line_upload_free(u);
    }
    act_strv_release(&far->opened_up);
    free(far->place.login);
    free(far->place.root);
    free(far->place.folder);
    free(far->place.first);
    free(far->root);
}
