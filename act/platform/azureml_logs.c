/* azureml_logs.c - logs: the run history names blobs and gives URLs that read them for some hours. Those hold a signature:
 * they are never shown, kept for minutes only, and get no token.
 */
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/path.h"
#include "base/units.h"
#include "codec/json.h"
#include "platform/azureml_internal.h"

enum { KEEP_MS = 5 * 60 * 1000, LOGS_MAX = 10000 };

/* ---- what there is ---- */

/* "logFiles" is an object name -> URL; old services had a list of {name, url}. A new reference to the former. */
static json_t *log_files(const json_t *details)
{
    json_t *files = json_object_get(details, "logFiles"), *object, *file;
    size_t i;

    if (json_is_object(files))
        return json_incref(files);
    object = json_object();
    json_array_foreach(files, i, file) json_object_set_new(object, codec_json_str(file, "name", ""),
                                                           json_string(codec_json_str(file, "url", "")));
    return object;
}

static void forget_logs(struct azureml *a)
{
    json_decref(a->logs.files);
    free(a->logs.id);
    a->logs = (struct azureml_log_urls){0};
}

/* The URLs of a run's logs, fresh when asked for. They stay the platform's. */
static int find_logs(struct azureml *a, const char *id, bool fresh, struct act_error *err)
{
    CODEC_AUTOJSON json_t *details = NULL;

    if (!fresh && act_streq(a->logs.id, id) && act_now_monotonic_ms() - a->logs.read_ms < KEEP_MS)
        return 0;
    int rc = azureml_details(a, id, &details, err);
    if (rc < 0)
        return rc;
    if (!details) {
        CODEC_AUTOJSON json_t *job = NULL;
        rc = azureml_job(a, id, &job, err);
        if (rc == 0 && !job)
            rc = act_error_set(err, ACT_NOT_FOUND, "there is no job '%s' in the workspace", id);
    }
    if (rc < 0)
        return rc;
    forget_logs(a);
    a->logs = (struct azureml_log_urls){
        .id = act_strdup(id), .files = log_files(details), .read_ms = act_now_monotonic_ms()};
    return 0;
}

/* ---- sizes, all at once ---- */

struct sizes {
    size_t left;
    bool done;
};

struct head {
    struct http_call http;
    struct sizes *sizes;
    const char *name;
    uint64_t size;
};

static void got_size(struct http_call *http)
{
    struct head *h = http->arg;
    const char *length = http->rc == 0 && http->status == 200
                             ? http_header_get(&http->answer_headers, "Content-Length")
                             : NULL;
    int64_t size;

    h->size = length && act_int_from_text(length, &size) && size > 0 ? (uint64_t)size : 0;
    h->sizes->done = --h->sizes->left == 0;
}

static void ask_sizes(struct azureml *a, struct head *heads, size_t n)
{
    struct sizes sizes = {.left = n, .done = n == 0};

    for (size_t i = 0; i < n; i++) {
        heads[i].sizes = &sizes;
        heads[i].http.done = got_size;
        heads[i].http.arg = &heads[i];
        http_start(a->http, &heads[i].http);
    }
    if (n)
        engine_run(a->engine, &sizes.done);
}

int azureml_logs(struct platform *p, const char *id, struct platform_logs *out, struct act_error *err)
{
    struct azureml *a = azureml_of(p);
    const char *name;
    json_t *url;
    size_t n = 0;
    int rc = find_logs(a, id, true, err);

    *out = (struct platform_logs){0};
    if (rc < 0)
        return rc;
    struct head *heads = act_calloc(json_object_size(a->logs.files) + 1, sizeof(*heads));
    json_object_foreach(a->logs.files, name, url)
    {
        if (n == LOGS_MAX || !act_path_is_safe(name, strlen(name)) || !json_is_string(url))
            continue;
        heads[n++] = (struct head){
            .name = name,
            .http = {.method = "HEAD", .what = "look at a log", .url = act_strdup(json_string_value(url))}};
    }
    ask_sizes(a, heads, n);
    for (size_t i = 0; i < n; i++) {
        platform_logs_add(out, heads[i].name, heads[i].size);
        http_call_release(&heads[i].http);
    }
    free(heads);
    platform_logs_sort(out);
    return 0;
}

/* ---- bytes ---- */

/* What the range gives; 403: the signature has ended. */
static int read_range(struct azureml *a, const char *url, const char *what, uint64_t offset, void *data,
                      size_t len, size_t *out_got, int *out_status, struct act_error *err)
{
    struct http_call http = {
        .method = "GET", .what = what, .url = act_strdup(url), .sink = data, .sink_cap = len};
    int rc;

    http_header_setf(&http.headers, "Range", "bytes=%llu-%llu", (unsigned long long)offset,
                     (unsigned long long)(offset + len - 1));
    rc = azureml_fetch(a, &http, err);
    *out_status = http.status;
    *out_got = 0;
    if (rc == 0 && http.status == 206)
        *out_got = http.sink_len;
    else if (rc == 0 && http.status == 200 && offset == 0) /* it is empty, or has exactly so much */
        *out_got = http.sink_len;
    else if (rc == 0 && http.status != 416 && http.status != 403)
        rc = act_error_set(err, http.status == 404 ? ACT_NOT_FOUND : ACT_FAIL, "cannot %s: HTTP %d", what,
                           http.status);
    http_call_release(&http);
    return rc;
}

int azureml_read_log(struct platform *p, const char *id, const char *name, uint64_t offset, void *data,
                     size_t len, size_t *out_got, struct act_error *err)
{
    struct azureml *a = azureml_of(p);
    ACT_AUTOFREE char *what = act_sprintf("read log '%s' of '%s'", name, id);
    int rc = 0, status = 0;

    *out_got = 0;
    for (int try = 0; rc == 0 && try < 2; try++) {
        rc = find_logs(a, id, try > 0, err);
        const char *url = rc == 0 ? codec_json_str(a->logs.files, name, "") : "";
        if (rc == 0 && !*url && try == 0)
            continue; /* it may be new */
        if (rc == 0 && !*url)
            return act_error_set(err, ACT_NOT_FOUND, "run '%s' has no log '%s'", id, name);
        if (rc == 0 && len > 0)
            rc = read_range(a, url, what, offset, data, len, out_got, &status, err);
        if (rc < 0 || status != 403)
            return rc;
    }
    return rc < 0 ? rc
                  : act_error_set(err, ACT_DENIED, "cannot %s: the service does not let it be read", what);
}

void azureml_close_logs(struct azureml *a)
{
    forget_logs(a);
}
