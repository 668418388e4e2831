/* command.c - commands in containers. Each message of the WebSocket begins with the number of its channel. */
#include <string.h>

#include "base/units.h"
#include "codec/json.h"
#include "http/websocket.h"
#include "kube/kube_internal.h"

#define V5 "v5.channel.k8s.io" /* has CLOSE */
#define V4 "v4.channel.k8s.io" /* the first whose ERROR is a Status */

enum channel { STDIN = 0, STDOUT = 1, STDERR = 2, ERROR = 3, RESIZE = 4, CLOSE = 255 };

enum { SWITCHING = 101, BAD_REQUEST = 400, FORBIDDEN = 403, BAD_GATEWAY = 502 };

struct kube_socket {
    struct http_websocket ws;
    struct kube_try *t;
    struct act_buf message; /* to be sent */
    bool has_status;
};

char *kube_command_path(const struct kube *kube, const char *pod, const char *container, const struct act_strv *command,
                        bool terminal)
{
    ACT_AUTOFREE char *path = kube_path(kube, "v1", "pods", pod, NULL);
    struct act_buf out = {0};

    act_buf_addf(&out, "%s/exec?container=%s&stdin=true&stdout=true&%s=true", path, container,
                 terminal ? "tty" : "stderr");
    for (size_t i = 0; i < command->n; i++) {
        ACT_AUTOFREE char *word = http_encode(command->v[i], false);
        act_buf_addf(&out, "&command=%s", word);
    }
    return act_buf_steal(&out);
}

/* ---- what comes ---- */

/* Takes how the command ended: the exit status is among the causes of a failure. */
static int kube_command_take_status(struct kube_command *command, const json_t *status)
{
    const json_t *causes = json_object_get(json_object_get(status, "details"), "causes");
    const char *message = codec_json_str(status, "message", "it does not say why");
    int64_t code = -1;
    size_t i;
    json_t *cause;

    if (strcmp(codec_json_str(status, "status", ""), "Success") == 0)
        code = 0;
    json_array_foreach(causes, i, cause)
    {
        if (strcmp(codec_json_str(cause, "reason", ""), "ExitCode") == 0 &&
            !act_int_from_text(codec_json_str(cause, "message", ""), &code))
            code = -1;
    }
    command->exit_status = (int)code;
    if (code >= 0 && code <= UINT8_MAX)
        return 0;
    return act_error_set(&command->error, ACT_FAIL, "cannot %s: %s", command->what, message);
}

static void message(struct http_websocket *ws, const char *data, size_t len)
{
    struct kube_socket *socket = ws->arg;
    struct kube_command *command = socket->t->command;
    CODEC_AUTOJSON json_t *status = NULL;
    int channel = len > 0 ? (uint8_t)data[0] : -1;

    if ((channel == STDOUT || channel == STDERR) && len > 1)
        command->output(command, channel, data + 1, len - 1);
    if (channel != ERROR || len == 1 || socket->has_status)
        return;
    if (codec_json_parse(data + 1, len - 1, "status", &status, NULL) < 0)
        status = NULL;
    socket->has_status = true;
    command->rc = kube_command_take_status(command, status);
}

/* ---- the beginning and the end ---- */

void kube_command_end(struct kube_try *t, int rc)
{
    struct kube_command *command = t->command;

    if (command->socket) {
        http_websocket_release(&command->socket->ws);
        act_buf_release(&command->socket->message);
        free(command->socket);
        command->socket = NULL;
    }
    kube_try_free(t);
    command->under_way = NULL;
    command->rc = rc;
    command->done(command);
}

/* Tells whether nobody there speaks this: old servers refuse protocols without a Status, proxies in their own way. */
static bool is_not_spoken(const struct http_call *http, const json_t *body)
{
    bool is_status = act_streq(codec_json_str(body, "kind", NULL), "Status");

    return !is_status && (http->status == FORBIDDEN || http->status == BAD_REQUEST || http->status >= BAD_GATEWAY ||
                          http->status < 300);
}

static int kube_command_refused(struct kube_try *t)
{
    const struct act_buf *text = &t->http.body_text;
    CODEC_AUTOJSON json_t *body = NULL;

    if (text->len && codec_json_parse(text->data, text->len, "response", &body, NULL) < 0)
        body = NULL;
    t->command->not_spoken = is_not_spoken(&t->http, body);
    return kube_describe(&t->command->error, t->what, &t->http, body, t->kube->login.authorization);
}

static int kube_command_judge(struct kube_try *t)
{
    struct kube_command *command = t->command;

    if (command->socket->has_status)
        return command->rc;
    if (t->http.rc < 0)
        command->error = t->http.error;
    if (t->http.rc < 0 || t->http.status != SWITCHING)
        return t->http.rc < 0 ? t->http.rc : kube_command_refused(t);
    return act_error_set(&command->error, ACT_TEMPORARY,
                         "cannot %s: the server ended the connection before the command had ended", t->what);
}

static void kube_command_done(struct http_websocket *ws)
{
    struct kube_try *t = ((struct kube_socket *)ws->arg)->t;

    if (t->http.rc == 0 && kube_renew(t)) {
        http_websocket_release(ws);
        free(t->command->socket);
        t->command->socket = NULL;
        http_call_release(&t->http);
        kube_need_login(t);
        return;
    }
    kube_command_end(t, kube_command_judge(t));
}

static void kube_command_opened(struct http_websocket *ws)
{
    struct kube_command *command = ((struct kube_socket *)ws->arg)->t->command;

    command->opened(command);
}

static void kube_command_drained(struct http_websocket *ws)
{
    struct kube_command *command = ((struct kube_socket *)ws->arg)->t->command;

    command->drained(command);
}

void kube_command_send(struct kube_try *t)
{
    struct kube_socket *socket = act_calloc(1, sizeof(*socket));

    *socket = (struct kube_socket){.t = t,
                                   .ws = {.call = &t->http,
                                          .protocols = t->command->ends_input ? V5 : V5 ", " V4,
                                          .opened = kube_command_opened,
                                          .message = message,
                                          .drained = kube_command_drained,
                                          .done = kube_command_done,
                                          .arg = socket}};
    t->command->socket = socket;
    t->http.url = act_sprintf("%s%s", t->kube->base, t->command->path);
    kube_add_headers(t, "*/*");
    http_websocket_start(t->kube->http, &socket->ws);
}

void kube_command_start(struct kube *kube, struct kube_command *command)
{
    command->under_way = kube_try_new(kube, command->what);
    command->under_way->command = command;
}

void kube_command_cancel(struct kube_command *command)
{
    if (!command->under_way)
        return;
    command->under_way->cancelled = true;
    if (command->socket)
        http_websocket_cancel(&command->socket->ws);
}

void kube_command_release(struct kube_command *command)
{
    free(command->path);
    *command = (struct kube_command){0};
}

/* ---- what goes ---- */

static void send_on(struct kube_command *command, enum channel channel, const char *data, size_t len)
{
    struct act_buf *message = &command->socket->message;

    message->len = 0;
    act_buf_addc(message, (char)channel);
    act_buf_add(message, data, len);
    http_websocket_send(&command->socket->ws, message->data, message->len);
}

void kube_command_input(struct kube_command *command, const char *data, size_t len)
{
    send_on(command, STDIN, data, len);
}

void kube_command_end_input(struct kube_command *command)
{
    static const char input[] = {STDIN};

    send_on(command, CLOSE, input, sizeof(input));
}

void kube_command_resize(struct kube_command *command, int columns, int rows)
{
    ACT_AUTOFREE char *size = act_sprintf("{\"Width\":%d,\"Height\":%d}", columns, rows);

    send_on(command, RESIZE, size, strlen(size));
}

size_t kube_command_unsent(const struct kube_command *command)
{
    return http_websocket_unsent(&command->socket->ws);
}
