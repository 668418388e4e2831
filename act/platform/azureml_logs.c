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

enum { KEEP_MS = 5 * 60 * 1000, LOGS_MAX = 10000, SLICE = 1 << 20 };

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

struct countdown {
    size_t left;
    bool done;
};

struct head {
    struct http_call http;
    struct countdown *countdown;
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
    h->countdown->done = --h->countdown->left == 0;
}

static void ask_sizes(struct azureml *a, struct head *heads, size_t n)
{
    struct countdown countdown = {.left = n};

    for (size_t i = 0; i < n; i++) {
        heads[i].countdown = &countdown;
        heads[i].http.done = got_size;
        heads[i].http.arg = &heads[i];
        http_start(a->http, &heads[i].http);
    }
    if (n)
        engine_run(a->engine, &countdown.done);
}

/* A size that nobody told is not 0. A blob that is not there (yet) is. */
static int check_heads(const struct head *heads, size_t n, const char *id, struct act_error *err)
{
    for (size_t i = 0; i < n; i++) {
        const struct http_call *http = &heads[i].http;
        if (http->rc < 0) {
            *err = http->error;
            return http->rc;
        }
        if (http->status != 200 && http->status != 404)
            return act_error_set(err, http->status >= 500 ? ACT_TEMPORARY : ACT_FAIL,
                                 "cannot look at log '%s' of '%s': HTTP %d", heads[i].name, id, http->status);
    }
    return 0;
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
    rc = check_heads(heads, n, id, err);
    for (size_t i = 0; i < n; i++) {
        platform_logs_add(out, heads[i].name, heads[i].size);
        http_call_release(&heads[i].http);
    }
    free(heads);
    platform_logs_sort(out);
    if (rc < 0)
        platform_logs_release(out);
    return rc;
}

/* ---- bytes ---- */

/* A part of a range. */
struct slice {
    struct http_call http;
    uint64_t offset;
    struct countdown *countdown;
};

static void got_slice(struct http_call *http)
{
    struct slice *s = http->arg;

    s->countdown->done = --s->countdown->left == 0;
}

static void prepare_slice(struct slice *s, const char *url, const char *what, uint64_t offset, void *data,
                          size_t len)
{
    *s = (struct slice){.http = {.method = "GET",
                                 .what = what,
                                 .url = act_strdup(url),
                                 .sink = data,
                                 .sink_cap = len,
                                 .done = got_slice,
                                 .arg = s},
                        .offset = offset};
    http_header_setf(&s->http.headers, "Range", "bytes=%llu-%llu", (unsigned long long)offset,
                     (unsigned long long)(offset + len - 1));
}

static void run_slices(struct azureml *a, struct slice *slices, size_t n)
{
    struct countdown countdown = {.left = n};

    for (size_t i = 0; i < n; i++) {
        slices[i].countdown = &countdown;
        http_start(a->http, &slices[i].http);
    }
    engine_run(a->engine, &countdown.done);
}

/* How many bytes a slice brought; those of an empty log and of a range behind its end are none. */
static int judge_slice(const struct slice *s, size_t *out_got, struct act_error *err)
{
    const struct http_call *http = &s->http;

    *out_got = 0;
    if (http->rc < 0) {
        *err = http->error;
        return http->rc;
    }
    if (http->status == 206 || (http->status == 200 && s->offset == 0))
        *out_got = http->sink_len;
    else if (http->status == 200)
        return act_error_set(err, ACT_FAIL, "cannot %s: the service does not read parts of it", http->what);
    else if (http->status != 416 && http->status != 403)
        return act_error_set(err, http->status == 404 ? ACT_NOT_FOUND : ACT_FAIL, "cannot %s: HTTP %d",
                             http->what, http->status);
    return 0;
}

/* The size of the log, of "Content-Range: bytes 0-99/1000"; 0: it does not say. */
static uint64_t whole_size(const struct slice *s)
{
    const char *range = http_header_get(&s->http.answer_headers, "Content-Range");
    const char *total = range ? strchr(range, '/') : NULL;
    int64_t size;

    return total && act_int_from_text(total + 1, &size) && size > 0 ? (uint64_t)size : 0;
}

/* What is behind the first slice, all at once. Counts the bytes that follow it without a gap. */
static int read_rest(struct azureml *a, const char *url, const char *what, uint64_t offset, char *data,
                     size_t len, size_t *out_got, struct act_error *err)
{
    size_t n = (len + SLICE - 1) / SLICE;
    struct slice *slices = act_calloc(n, sizeof(*slices));
    bool gap = false;
    int rc = 0;

    for (size_t i = 0; i < n; i++) {
        size_t at = i * SLICE, most = len - at < SLICE ? len - at : SLICE;
        prepare_slice(&slices[i], url, what, offset + at, data + at, most);
    }
    run_slices(a, slices, n);
    for (size_t i = 0; i < n; i++) {
        size_t got = 0;
        if (rc == 0 && !gap)
            rc = judge_slice(&slices[i], &got, err);
        *out_got += got;
        gap = gap || got < slices[i].http.sink_cap;
        http_call_release(&slices[i].http);
    }
    free(slices);
    return rc;
}

/* What the range gives. The first slice tells how long the log is, so that nothing is asked for that is not there. */
static int read_range(struct azureml *a, const char *url, const char *what, uint64_t offset, void *data,
                      size_t len, size_t *out_got, int *out_status, struct act_error *err)
{
    struct slice first;
    size_t most = len < SLICE ? len : SLICE;

    prepare_slice(&first, url, what, offset, data, most);
    run_slices(a, &first, 1);
    int rc = judge_slice(&first, out_got, err);
    uint64_t size = whole_size(&first), end = offset + len;
    *out_status = first.http.status;
    http_call_release(&first.http);
    if (size < end)
        end = size;
    if (rc < 0 || *out_got < SLICE || end <= offset + SLICE)
        return rc;
    return read_rest(a, url, what, offset + SLICE, (char *)data + SLICE, (size_t)(end - offset) - SLICE,
                     out_got, err);
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
