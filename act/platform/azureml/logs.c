/* logs.c - logs: the run history names blobs and gives URLs that read them for some hours. Those hold a signature:
 * they are never shown, kept for minutes only, and get no token.
 */
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/path.h"
#include "base/units.h"
#include "codec/json.h"
#include "platform/azureml/azureml_internal.h"

enum { KEEP_MS = 5 * 60 * 1000, LOGS_MAX = 10000, RETRIES_MAX = 999999, SLICE = 1 << 20 };

/* ---- what there is ---- */

static void add_file(json_t *files, const char *name, const char *url)
{
    if (url && act_path_is_safe(name, strlen(name)))
        json_object_set_new(files, name, json_string(url));
}

/* "logFiles" is an object name -> URL; old services had a list of {name, url}. A new reference to the former, without
 * names that would leave the folder of the copies. */
static json_t *listed_files(const json_t *details)
{
    json_t *listed = json_object_get(details, "logFiles"), *files = json_object(), *file;
    const char *name;
    size_t i;

    json_object_foreach(listed, name, file) add_file(files, name, json_string_value(file));
    json_array_foreach(listed, i, file)
        add_file(files, codec_json_str(file, "name", ""), codec_json_str(file, "url", NULL));
    return files;
}

/* A job that the service starts again has its logs in "user_logs/retry_001/", "retry_002/" and so on; those of its
 * first attempt stay where they were. *out_rest is the name behind the folder. -1: it is no log of an attempt. */
static int retry_of(const char *name, const char **out_rest)
{
    static const char folder[] = RUN_DIR_USER "/", retry[] = "retry_";
    int64_t number;

    if (!act_starts_with(name, folder))
        return -1;
    *out_rest = name + strlen(folder);
    const char *end = strchr(*out_rest, '/');
    if (!end || !act_starts_with(*out_rest, retry))
        return 0;
    const char *digits = *out_rest + strlen(retry);
    ACT_AUTOFREE char *text = act_strndup(digits, (size_t)(end - digits));
    if (strspn(text, "0123456789") != strlen(text) || !act_int_from_text(text, &number) || number < 1 ||
        number > RETRIES_MAX)
        return 0;
    *out_rest = end + 1;
    return (int)number;
}

int azureml_last_retry(const json_t *details)
{
    CODEC_AUTOJSON json_t *files = listed_files(details);
    const char *name, *rest;
    json_t *url;
    int last = 0;

    json_object_foreach(files, name, url)
    {
        int retry = retry_of(name, &rest);
        last = retry > last ? retry : last;
    }
    return last;
}

json_t *azureml_log_files(const json_t *details)
{
    CODEC_AUTOJSON json_t *files = listed_files(details);
    json_t *named = json_object(), *url;
    int last = azureml_last_retry(details);
    const char *name, *rest;

    json_object_foreach(files, name, url)
    {
        int retry = retry_of(name, &rest);
        ACT_AUTOFREE char *shown =
            retry < 0       ? act_strdup(name)
            : retry == last ? act_sprintf(RUN_DIR_USER "/%s", rest)
                            : act_sprintf(RUN_DIR_ATTEMPTS "/%d/" RUN_DIR_USER "/%s", retry + 1, rest);
        json_object_set(named, shown, url);
    }
    return named;
}

static void forget_logs(struct azureml *a)
{
    json_decref(a->logs.files);
    free(a->logs.id);
    a->logs = (struct azureml_log_urls){0};
}

const char *azureml_log_url(const struct azureml *a, const char *name)
{
    const char *url = codec_json_str(a->logs.files, name, "");

    return *url ? url : NULL;
}

int azureml_find_logs(struct azureml *a, const char *id, bool fresh, struct act_error *err)
{
    CODEC_AUTOJSON json_t *details = NULL;
    struct run_status status;

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
    azureml_read_run(details, &status);
    a->logs =
        (struct azureml_log_urls){.id = act_strdup(id),
                                  .files = azureml_log_files(details),
                                  .read_ms = act_now_monotonic_ms(),
                                  .ended_unix_s = run_state_is_final(status.state) ? status.ended_unix_s : 0};
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
    int64_t asked_unix_s, changed_unix_s; /* by the clock of the store */
};

static int64_t time_in(const struct http_call *http, const char *header)
{
    const char *text = http_header_get(&http->answer_headers, header);
    int64_t unix_s;

    return text && act_time_from_http(text, &unix_s) ? unix_s : 0;
}

static void got_size(struct http_call *http)
{
    struct head *h = http->arg;
    const char *length = http->rc == 0 && http->status == 200
                             ? http_header_get(&http->answer_headers, "Content-Length")
                             : NULL;
    int64_t size;

    h->size = length && act_int_from_text(length, &size) && size > 0 ? (uint64_t)size : 0;
    h->asked_unix_s = time_in(http, "Date");
    h->changed_unix_s = time_in(http, "Last-Modified");
    h->countdown->done = --h->countdown->left == 0;
}

static void ask_sizes(struct azureml *a, struct head *heads, size_t n)
{
    struct countdown countdown = {.left = n};

    for (size_t i = 0; i < n; i++) {
        heads[i].countdown = &countdown;
        heads[i].http.done = got_size;
        heads[i].http.arg = &heads[i];
        http_start(services_http(a->services), &heads[i].http);
    }
    if (n)
        engine_run(services_engine(a->services), &countdown.done);
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

static int64_t idle_of(const struct head *h)
{
    if (!h->asked_unix_s || !h->changed_unix_s)
        return -1;
    return h->asked_unix_s > h->changed_unix_s ? h->asked_unix_s - h->changed_unix_s : 0;
}

/* The service adds to logs for some time after the end of a run. */
static bool are_settled(const struct azureml *a, const struct head *heads, size_t n)
{
    int64_t last = a->logs.ended_unix_s, settle_s = a->config->azureml.settle_seconds;

    for (size_t i = 0; i < n; i++)
        last = heads[i].changed_unix_s > last ? heads[i].changed_unix_s : last;
    for (size_t i = 0; i < n; i++)
        if (!heads[i].asked_unix_s || heads[i].asked_unix_s - last < settle_s)
            return false;
    if (n == 0 && act_now_unix_s() - last < settle_s) /* none is there yet, so no store tells its clock */
        return false;
    return a->logs.ended_unix_s > 0;
}

int azureml_logs(struct platform *p, const char *id, struct platform_logs *out, struct act_error *err)
{
    struct azureml *a = azureml_of(p);
    const char *name;
    json_t *url;
    size_t n = 0;
    int rc = azureml_find_logs(a, id, true, err);

    *out = (struct platform_logs){0};
    if (rc < 0)
        return rc;
    struct head *heads = act_calloc(json_object_size(a->logs.files) + 1, sizeof(*heads));
    json_object_foreach(a->logs.files, name, url)
    {
        if (n == LOGS_MAX)
            break;
        heads[n++] = (struct head){
            .name = name,
            .http = {.method = "HEAD", .what = "look at a log", .url = act_strdup(json_string_value(url))}};
    }
    ask_sizes(a, heads, n);
    rc = check_heads(heads, n, id, err);
    out->settled = are_settled(a, heads, n);
    for (size_t i = 0; i < n; i++) {
        platform_logs_add(out, heads[i].name, heads[i].size, idle_of(&heads[i]));
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

void azureml_log_request(struct http_call *http, const char *url, const char *what, uint64_t offset,
                         void *data, size_t len)
{
    *http = (struct http_call){
        .method = "GET", .what = what, .url = act_strdup(url), .sink = data, .sink_cap = len};
    http_header_setf(&http->headers, "Range", "bytes=%llu-%llu", (unsigned long long)offset,
                     (unsigned long long)(offset + len - 1));
}

static void prepare_slice(struct slice *s, const char *url, const char *what, uint64_t offset, void *data,
                          size_t len)
{
    *s = (struct slice){.offset = offset};
    azureml_log_request(&s->http, url, what, offset, data, len);
    s->http.done = got_slice;
    s->http.arg = s;
}

static void run_slices(struct azureml *a, struct slice *slices, size_t n)
{
    struct countdown countdown = {.left = n};

    for (size_t i = 0; i < n; i++) {
        slices[i].countdown = &countdown;
        http_start(services_http(a->services), &slices[i].http);
    }
    engine_run(services_engine(a->services), &countdown.done);
}

/* Whether a part of a log is the one that was asked for: "bytes 100-199/1000". */
static bool begins_at(const struct http_call *http, uint64_t offset)
{
    const char *range = http_header_get(&http->answer_headers, "Content-Range");
    unsigned long long first;

    return range && sscanf(range, "bytes %llu-", &first) == 1 && first == offset;
}

int azureml_log_answer(const struct http_call *http, uint64_t offset, size_t *out_got, struct act_error *err)
{
    *out_got = 0;
    if (http->rc < 0) {
        *err = http->error;
        return http->rc;
    }
    if (http->status == 206 && !begins_at(http, offset))
        return act_error_set(err, ACT_FAIL, "cannot %s: the service sent another part of it", http->what);
    if (http->status == 206 || (http->status == 200 && offset == 0))
        *out_got = http->sink_len;
    else if (http->status == 200)
        return act_error_set(err, ACT_FAIL, "cannot %s: the service does not read parts of it", http->what);
    else if (http->status != 416 && http->status != 403)
        return act_error_set(err, http->status == 404 ? ACT_NOT_FOUND : ACT_FAIL, "cannot %s: HTTP %d",
                             http->what, http->status);
    return 0;
}

/* Of "Content-Range: bytes 0-99/1000". */
uint64_t azureml_log_size(const struct http_call *http)
{
    const char *range = http_header_get(&http->answer_headers, "Content-Range");
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
            rc = azureml_log_answer(&slices[i].http, slices[i].offset, &got, err);
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
    int rc = azureml_log_answer(&first.http, offset, out_got, err);
    uint64_t size = azureml_log_size(&first.http), end = offset + len;
    *out_status = first.http.status;
    http_call_release(&first.http);
    if (size < end)
        end = size;
    if (rc < 0 || *out_got < SLICE || end <= offset + SLICE)
        return rc;
    return read_rest(a, url, what, offset + SLICE, (char *)data + SLICE, (size_t)(end - offset) - SLICE,
                     out_got, err);
}

int azureml_log_denied(const char *what, struct act_error *err)
{
    return act_error_set(err, ACT_DENIED, "cannot %s: the service does not let it be read", what);
}

int azureml_read_log(struct platform *p, const char *id, const char *name, uint64_t offset, void *data,
                     size_t len, size_t *out_got, struct act_error *err)
{
    struct azureml *a = azureml_of(p);
    ACT_AUTOFREE char *what = act_sprintf("read log '%s' of '%s'", name, id);
    int rc = 0, status = 0;

    *out_got = 0;
    for (int try = 0; rc == 0 && try < 2; try++) {
        rc = azureml_find_logs(a, id, try > 0, err);
        const char *url = rc == 0 ? azureml_log_url(a, name) : NULL;
        if (rc == 0 && !url && try == 0)
            continue; /* it may be new */
        if (rc == 0 && !url)
            return act_error_set(err, ACT_NOT_FOUND, "run '%s' has no log '%s'", id, name);
        if (rc == 0 && len > 0)
            rc = read_range(a, url, what, offset, data, len, out_got, &status, err);
        if (rc < 0 || status != 403)
            return rc;
    }
    return rc < 0 ? rc : azureml_log_denied(what, err);
}

void azureml_close_logs(struct azureml *a)
{
    forget_logs(a);
}
