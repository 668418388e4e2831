/* mirror.c - the items of a list as a watch changes them: each line of it is a change.
 *
 * Source: kubernetes.io/docs/reference/using-api/api-concepts (watches, bookmarks, 410 Gone). */
#include <string.h>

#include "codec/json.h"
#include "kube/kube_internal.h"

enum { LINE_MOST = 8 << 20, GONE = 410 }; /* an object has 1.5 MiB at most in the server's store */

void kube_mirror_begin(struct kube_mirror *m, json_t *items, char *version)
{
    json_decref(m->items);
    free(m->version);
    m->items = items;
    m->version = version;
}

void kube_mirror_begin_stream(struct kube_mirror *m)
{
    m->line.len = 0;
}

void kube_mirror_release(struct kube_mirror *m)
{
    json_decref(m->items);
    free(m->version);
    act_buf_release(&m->line);
    *m = (struct kube_mirror){0};
}

/* Takes the server's own word of why it ends the watch. */
static int take_error(const json_t *status, struct act_error *err)
{
    int code = codec_json_int_in(status, "code", 0, 599, 0);
    const char *said = codec_json_str(status, "message", codec_json_str(status, "reason", "it does not say why"));

    act_error_set(err, code == GONE ? ACT_TEMPORARY : ACT_FAIL, "the server ends the watch: %s", said);
    err->http_status = code;
    return -(int)err->code;
}

static void take_version(struct kube_mirror *m, const json_t *object)
{
    const char *version = codec_json_str(json_object_get(object, "metadata"), "resourceVersion", "");

    if (*version)
        act_str_replace(&m->version, version);
}

static void take_change(struct kube_mirror *m, json_t *object, bool is_deleted)
{
    ACT_AUTOFREE char *key = kube_key(object);

    if (is_deleted)
        json_object_del(m->items, key);
    else
        json_object_set(m->items, key, object);
    m->changed = true;
}

static const char *kube_mirror_name_of(const json_t *object)
{
    return codec_json_str(json_object_get(object, "metadata"), "name", "");
}

/* Takes one event. A type that is not known here is no change of an item. */
static int take_event(struct kube_mirror *m, const json_t *event, struct act_error *err)
{
    const char *type = codec_json_str(event, "type", "");
    json_t *object = json_object_get(event, "object");
    bool is_deleted = strcmp(type, "DELETED") == 0;

    if (strcmp(type, "ERROR") == 0)
        return take_error(object, err);
    bool is_change = is_deleted || strcmp(type, "ADDED") == 0 || strcmp(type, "MODIFIED") == 0;
    if (!*type || !json_is_object(object) || (is_change && !*kube_mirror_name_of(object)))
        return act_error_set(err, ACT_FAIL, "the server does not send a watch");
    if (is_change)
        take_change(m, object, is_deleted);
    m->has_bookmarks = m->has_bookmarks || strcmp(type, "BOOKMARK") == 0;
    take_version(m, object);
    return 0;
}

static int kube_mirror_take_line(struct kube_mirror *m, struct act_error *err)
{
    CODEC_AUTOJSON json_t *event = NULL;
    int rc = m->line.len == 0 ? 0 : codec_json_parse(m->line.data, m->line.len, "watch", &event, err);

    return rc == 0 && event ? take_event(m, event, err) : rc;
}

int kube_mirror_take(struct kube_mirror *m, const char *data, size_t len, struct act_error *err)
{
    int rc = 0;

    while (len > 0 && rc == 0) {
        const char *end = memchr(data, '\n', len);
        size_t n = end ? (size_t)(end - data) : len;
        if (m->line.len + n > LINE_MOST)
            return act_error_set(err, ACT_FAIL, "the server sends a line of more than %d MiB", LINE_MOST >> 20);
        act_buf_add(&m->line, data, n);
        n += end != NULL;
        data += n;
        len -= n;
        if (!end)
            break;
        rc = kube_mirror_take_line(m, err);
        m->line.len = 0;
    }
    return rc;
}
