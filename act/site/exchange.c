/* exchange.c - see exchange.h. */
#include "site/exchange.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/log.h"
#include "codec/json.h"
#include "site/site_internal.h"

enum {
    RESPONSE_S = 120,
    ERROR_TEXT_MAX = 2048,
};

/* A request that was sent ahead. */
struct wire_asked {
    char key[ACT_SHA256_HEX]; /* of its content; "": nobody wants the response any more */
    uint64_t number, session;
    size_t max_response;
    int timeout_s;
    bool has_come;
    struct frame response;
};

/* ---- the connection ---- */

bool wire_is_open(const struct wire *w)
{
    return w->channel.in_fd >= 0;
}

void wire_disconnect(struct wire *w)
{
    for (size_t i = 0; i < w->n_asked; i++)
        frame_release(&w->asked[i].response);
    free(w->asked);
    w->asked = NULL;
    w->n_asked = 0;
    act_buf_release(&w->said);
    if (w->ssh.login)
        ssh_disconnect(&w->ssh, &w->channel);
    else
        channel_close(&w->channel);
}

/* Makes an error of the other side one of this side. */
static int check_response(const struct frame *response, struct act_error *err)
{
    static const enum act_code codes[] = {ACT_FAIL,        ACT_USAGE,  ACT_NOT_FOUND, ACT_DENIED,  ACT_TEMPORARY,
                                          ACT_NO_CAPACITY, ACT_CONFIG, ACT_PARTIAL,   ACT_TIMEOUT, ACT_INTERRUPTED};
    ACT_AUTOFREE char *text = codec_json_bytes_get(json_object_get(response->head, "error"));
    int64_t code = codec_json_int(response->head, "code", 0);

    if (code == 0 && !text)
        return 0;
    for (size_t i = 0; i < sizeof(codes) / sizeof(codes[0]); i++)
        if (code == (int64_t)codes[i])
            return act_error_set(err, codes[i], "%.*s", ERROR_TEXT_MAX, text ? text : "it does not say why");
    return act_error_set(err, ACT_FAIL, "%.*s", ERROR_TEXT_MAX, text ? text : "it does not say why");
}

/* Gives up the connection, which has failed, not the request. */
static int wire_drop(struct wire *w, struct act_error *err)
{
    if (!err->network) {
        act_error_prefix(err, "cannot understand the response of '%s'", w->ssh.login ? w->ssh.login : "the site");
    } else if (w->ssh.login) {
        ssh_explain_loss(&w->ssh, err);
    }
    wire_disconnect(w);
    return -(int)err->code;
}

/* ---- one request ---- */

void exchange_release(struct exchange *x)
{
    frame_release(&x->response);
}

static int exchange_send_range(struct wire *w, const struct exchange *x, int fd, struct file_range range,
                               struct act_error *err)
{
    ACT_AUTOFREE char *chunk = act_alloc(CHANNEL_BUFFER);
    int rc = 0;

    while (range.len > 0 && rc == 0) {
        const size_t len = range.len < CHANNEL_BUFFER ? (size_t)range.len : CHANNEL_BUFFER;
        ssize_t n = act_pread_all(fd, chunk, len, (off_t)range.offset);
        if (n < 0)
            return act_error_errno(err, errno, "cannot read '%s'", x->file);
        if ((size_t)n < len)
            return act_error_set(err, ACT_FAIL, "cannot read '%s': it became shorter meanwhile", x->file);
        rc = channel_write(&w->channel, chunk, len, err);
        range.offset += len;
        range.len -= len;
    }
    return rc;
}

/* After an error the other side waits for the rest: the connection cannot be used any more. */
static int send_file(struct wire *w, const struct exchange *x, struct act_error *err)
{
    int fd = open(x->file, O_RDONLY | O_CLOEXEC);
    int rc = fd < 0 ? act_error_errno(err, errno, "cannot read '%s'", x->file) : 0;

    for (size_t i = 0; i < x->n_ranges && rc == 0; i++)
        rc = exchange_send_range(w, x, fd, x->ranges[i], err);
    if (fd >= 0)
        close(fd);
    return rc;
}

static const char *exchange_peer(const struct wire *w)
{
    return w->ssh.login ? w->ssh.login : "-";
}

static int exchange_send(struct wire *w, struct exchange *x, struct act_error *err)
{
    act_buf_addf(&w->said, "%s%s", w->said.len ? "+" : "", codec_json_str(x->request, "op", ""));
    x->number = ++w->n_sent;
    int rc = frame_write(&w->channel, x->request, x->parts, x->n_parts, err);

    if (rc == 0 && x->file)
        rc = send_file(w, x, err);
    return rc < 0 ? wire_drop(w, err) : 0;
}

/* Reads the next response. It is waited for unless it is to a request that was already under way when another one was
 * waited for: the trace has a line for each time that the way there and back takes. */
static int exchange_read(struct wire *w, uint64_t number, int timeout_s, size_t max, struct frame *out,
                         struct act_error *err)
{
    if (number > w->n_awaited) {
        act_trace("site", "%s %s", exchange_peer(w), w->said.data ? w->said.data : "");
        w->said.len = 0;
        w->n_awaited = w->n_sent;
    }
    w->channel.deadline_ms = act_now_monotonic_ms() + (int64_t)timeout_s * 1000;
    int rc = frame_read(&w->channel, max, out, err);
    return rc < 0 ? wire_drop(w, err) : 0;
}

/* ---- ahead ---- */

static void asked_remove(struct wire *w, size_t i)
{
    frame_release(&w->asked[i].response);
    w->n_asked--;
    memmove(w->asked + i, w->asked + i + 1, (w->n_asked - i) * sizeof(*w->asked));
}

/* Reads the responses to all that was asked ahead of request number, which come before its own. */
static int asked_receive(struct wire *w, uint64_t number, struct act_error *err)
{
    int rc = 0;

    for (size_t i = 0; i < w->n_asked && rc == 0 && w->asked[i].number <= number;) {
        struct wire_asked *a = &w->asked[i];
        if (!a->has_come)
            rc = exchange_read(w, a->number, a->timeout_s, a->max_response, &a->response, err);
        if (rc < 0) /* it is disconnected */
            break;
        a->has_come = true;
        if (*a->key)
            i++;
        else
            asked_remove(w, i);
    }
    return rc;
}

/* Returns the index of the response to request number, which has come. */
static size_t asked_find(const struct wire *w, uint64_t number)
{
    size_t i = 0;

    while (w->asked[i].number != number)
        i++;
    return i;
}

static void exchange_key(const struct exchange *x, char out[ACT_SHA256_HEX])
{
    ACT_AUTOWIPE char *line = codec_json_line(x->request);
    struct act_sha256 hash;

    act_sha256_init(&hash);
    act_sha256_add(&hash, line, strlen(line) + 1);
    for (size_t i = 0; i < x->n_parts; i++)
        act_sha256_add(&hash, x->parts[i].data, x->parts[i].len);
    act_sha256_done(&hash, out);
}

/* Finds the same request, sent ahead. */
static bool asked_has(const struct wire *w, const char *key, uint64_t *out_number)
{
    for (size_t i = 0; i < w->n_asked; i++)
        if (act_streq(w->asked[i].key, key)) {
            *out_number = w->asked[i].number;
            return true;
        }
    return false;
}

static void asked_drop(struct wire *w, size_t i)
{
    if (w->asked[i].has_come)
        asked_remove(w, i);
    else
        w->asked[i].key[0] = '\0';
}

/* Drops the same request if it was sent ahead before this time: what it says may not be true any more. */
static void asked_drop_old(struct wire *w, const char *key)
{
    for (size_t i = w->n_asked; i-- > 0;)
        if (w->asked[i].session != w->session && act_streq(w->asked[i].key, key))
            asked_drop(w, i);
}

/* Sends a request ahead, unless there are many already: then it is sent when somebody waits for it. */
static int exchange_ask_ahead(struct wire *w, struct exchange *x, const char *key, struct act_error *err)
{
    uint64_t number;

    asked_drop_old(w, key);
    if (w->n_asked < SITE_AHEAD_MOST && !x->file && !x->has_several && !asked_has(w, key, &number)) {
        int rc = exchange_send(w, x, err);
        if (rc < 0)
            return rc;
        struct wire_asked a = {
            .number = x->number, .session = w->session, .max_response = x->max_response, .timeout_s = x->timeout_s};
        memcpy(a.key, key, sizeof(a.key));
        ACT_PUSH(w->asked, w->n_asked, a);
    } else {
        json_decref(x->request);
    }
    return act_error_set(err, ACT_INTERRUPTED, "the response is not waited for yet");
}

void wire_drop_ahead(struct wire *w)
{
    for (size_t i = w->n_asked; i-- > 0;)
        asked_drop(w, i);
}

/* Returns the number of the first request whose response has not come; UINT64_MAX: there is none. */
static uint64_t asked_next(const struct wire *w)
{
    for (size_t i = 0; i < w->n_asked; i++)
        if (!w->asked[i].has_come)
            return w->asked[i].number;
    return UINT64_MAX;
}

enum wire_answer wire_answer_of(struct wire *w, const struct exchange *x)
{
    struct act_error ignored;
    char key[ACT_SHA256_HEX];
    uint64_t number;

    exchange_key(x, key);
    if (!asked_has(w, key, &number))
        return WIRE_NOT_ASKED;
    while (asked_next(w) < number && channel_is_ready(&w->channel, -1, 0))
        if (asked_receive(w, asked_next(w), &ignored) < 0)
            return WIRE_NOT_ASKED;
    return asked_next(w) > number || (asked_next(w) == number && channel_is_ready(&w->channel, -1, 0)) ? WIRE_HAS_COME
                                                                                                       : WIRE_NOT_YET;
}

/* ---- calls ---- */

int wire_greet(struct site *site, struct act_error *err)
{
    struct wire *w = site->wire;
    ACT_AUTO(exchange) x = {.timeout_s = RESPONSE_S};
    int rc = wire_call_receive(w, &x, err);

    if (rc == 0) {
        ACT_AUTOFREE char *root = codec_json_bytes_get(json_object_get(x.response.head, "root"));
        w->in_login_shell = json_is_true(json_object_get(x.response.head, "login_shell"));
        if (!root || *root != '/' || (site->root && !act_streq(root, site->root)))
            rc = act_error_set(err, ACT_FAIL, "the other side's root is '%s'", root ? root : "");
        else if (!site->root)
            site->root = act_strdup(root);
    }
    if (rc < 0)
        wire_disconnect(w);
    return rc;
}

int wire_connect(struct site *site, struct act_error *err)
{
    struct wire *w = site->wire;

    if (wire_is_open(w) || w->ssh.absent)
        return 0;
    if (!w->ssh.login)
        return act_error_set(err, ACT_TEMPORARY, "the connection was lost");
    int rc = ssh_connect(&w->ssh, &w->channel, err);
    if (rc == 0 && w->ssh.absent)
        return ssh_find_root(&w->ssh, &site->root, err);
    return rc < 0 || w->ssh.is_store ? rc : wire_greet(site, err);
}

int wire_call_send(struct site *site, struct exchange *x, struct act_error *err)
{
    struct wire *w = site->wire;
    char key[ACT_SHA256_HEX] = "";

    if (!x->timeout_s)
        x->timeout_s = RESPONSE_S;
    int rc = wire_connect(site, err);
    if (rc == 0 && w->ssh.absent)
        rc = act_error_set(err, ACT_NOT_FOUND, "the agent is not there");
    if (rc < 0) {
        json_decref(x->request);
        return rc;
    }
    if (w->ahead > 0 || w->n_asked > 0)
        exchange_key(x, key);
    if (w->ahead > 0)
        return exchange_ask_ahead(w, x, key, err);
    x->is_from_ahead = *key && asked_has(w, key, &x->number);
    if (!x->is_from_ahead)
        return exchange_send(w, x, err);
    json_decref(x->request);
    return 0;
}

int wire_call_receive(struct wire *w, struct exchange *x, struct act_error *err)
{
    frame_release(&x->response);
    int rc = asked_receive(w, x->number, err);

    if (rc == 0 && x->is_from_ahead) {
        size_t i = asked_find(w, x->number);
        x->response = w->asked[i].response;
        w->asked[i].response = (struct frame){0};
        asked_remove(w, i);
    } else if (rc == 0) {
        rc = exchange_read(w, x->number, x->timeout_s, x->max_response, &x->response, err);
    }
    return rc < 0 ? rc : check_response(&x->response, err);
}

int wire_call(struct site *site, struct exchange *x, struct act_error *err)
{
    struct act_error own;

    err = err ? err : &own;
    int rc = wire_call_send(site, x, err);
    return rc < 0 ? rc : wire_call_receive(site->wire, x, err);
}
