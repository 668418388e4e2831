/* azure.c - the store that is a container of Azure Blob Storage, over plain REST.
 *
 * Source: learn.microsoft.com/rest/api/storageservices/blob-service-rest-api.
 *
 * Objects are block blobs. Writes replace a blob at once (Put Blob, or Put Block List at the end), and
 * nothing is ever deleted to clean up: uncommitted blocks expire by themselves. A conditional write that was
 * sent twice may be refused because its first try succeeded; metadata with a random id tells.
 */
#include "store/azure.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"

#define VERSION  "2023-11-03"
#define MAX_PUT  (64U << 20) /* bytes at once: 50,000 of them make 3.05 TiB */
#define SKEW_S   60          /* a clock that is off by more explains a refused signature */
#define BLOCK_ID 20          /* upload id and index: all ids of a blob must have one length */

/* ---- requests */

char *azure_url(const struct azure *azure, const char *blob)
{
    if (!blob)
        return act_sprintf("%s/%s", azure->endpoint, azure->container);
    ACT_AUTOFREE char *encoded = http_encode(blob, true);
    return act_sprintf("%s/%s/%s", azure->endpoint, azure->container, encoded);
}

void azure_request(struct azure_op *op, const char *method, const char *blob, const char *query)
{
    ACT_AUTOFREE char *url = azure_url(op->azure, blob);

    op->http.method = method;
    op->http.url = act_sprintf("%s%s%s", url, query ? "?" : "", query ? query : "");
}

static int sign(struct http_call *http, struct act_error *err)
{
    const struct azure *azure = ((struct azure_op *)http->sign_arg)->azure;

    return auth_sign(azure->auth, http, azure->clock_offset_s, err);
}

static void set_request_id(struct http_headers *headers)
{
    uint8_t r[16];
    char hex[2 * sizeof(r) + 1];

    act_random(r, sizeof(r));
    r[6] = (uint8_t)((r[6] & 0x0f) | 0x40); /* RFC 9562: version 4, variant 10 */
    r[8] = (uint8_t)((r[8] & 0x3f) | 0x80);
    act_hex(r, sizeof(r), hex);
    http_header_setf(headers, "x-ms-client-request-id", "%.8s-%.4s-%.4s-%.4s-%.12s", hex, hex + 8, hex + 12,
                     hex + 16, hex + 20);
}

/* Whether the service refused the signature because of our clock. Then its time is taken from now on. */
static bool clock_was_wrong(struct azure_op *op)
{
    const char *date = http_header_get(&op->http.answer_headers, "Date");
    int64_t theirs = 0;
    char code[64];

    if (op->clock_checked || op->http.status != 403 || auth_kind_of(op->azure->auth) != AUTH_KEY || !date)
        return false;
    azure_service_code(&op->http, code, sizeof(code));
    if (strcmp(code, "AuthenticationFailed") != 0 || !act_time_from_http(date, &theirs))
        return false;
    op->clock_checked = true;
    int64_t offset = theirs - act_now_unix_s(), wrong_by = offset - op->azure->clock_offset_s;
    if (wrong_by >= -SKEW_S && wrong_by <= SKEW_S)
        return false;
    op->azure->clock_offset_s = offset;
    return true;
}

static void http_ended(struct http_call *http)
{
    struct azure_op *op = http->arg;

    if (http->rc) {
        op->call->error = http->error;
        azure_finish(op, http->rc);
    } else if (clock_was_wrong(op)) {
        azure_send(op);
    } else {
        op->answer(op);
    }
}

void azure_send(struct azure_op *op)
{
    http_call_release(&op->http);
    act_buf_release(&op->body);
    op->http =
        (struct http_call){.what = op->what, .sign = sign, .sign_arg = op, .done = http_ended, .arg = op};
    op->build(op);
    http_header_set(&op->http.headers, "x-ms-version", op->azure->version);
    set_request_id(&op->http.headers);
    http_start(op->azure->store.http, &op->http);
}

void azure_send_next(struct azure_op *op, void (*build)(struct azure_op *), void (*answer)(struct azure_op *))
{
    op->build = build;
    op->answer = answer;
    azure_send(op);
}

void azure_finish(struct azure_op *op, int rc)
{
    struct store_call *call = op->call;

    http_call_release(&op->http);
    act_buf_release(&op->body);
    azure_list_free(op->list);
    free(op->copy_id);
    free(op->copy_progress);
    free(op->blob);
    free(op->what);
    free(op);
    store_finish(call, rc);
}

void azure_finish_failed(struct azure_op *op)
{
    azure_finish(op, azure_answer_error(op));
}

static const char *blob_of(const struct azure_op *op)
{
    return op->blob ? op->blob : op->call->key;
}

static bool succeeded(const struct azure_op *op)
{
    return op->http.status / 100 == 2;
}

/* ---- looking and reading */

/* A decimal number from *text on; moves *text behind it. */
static bool take_number(const char **text, uint64_t *out)
{
    char *end = NULL;

    if (!isdigit((unsigned char)**text))
        return false;
    *out = strtoull(*text, &end, 10);
    *text = end;
    return true;
}

/* "bytes 0-9/100" (RFC 9110 section 14.4). */
static bool parse_content_range(const char *text, uint64_t *first, uint64_t *last, uint64_t *total)
{
    if (!text || !act_starts_with(text, "bytes "))
        return false;
    text += strlen("bytes ");
    return take_number(&text, first) && *text++ == '-' && take_number(&text, last) && *text++ == '/' &&
           take_number(&text, total) && *text == '\0' && *last >= *first && *total > *last;
}

void azure_build_head(struct azure_op *op)
{
    azure_request(op, "HEAD", blob_of(op), NULL);
}

/* Fills the entry from the answer to HEAD. */
static int take_head(struct azure_op *op)
{
    const char *length = http_header_get(&op->http.answer_headers, "Content-Length");
    uint64_t size = 0;

    if (!succeeded(op))
        return azure_answer_error(op);
    if (!length || !take_number(&length, &size))
        return act_error_set(&op->call->error, ACT_FAIL, "%s: the answer does not tell the size", op->what);
    azure_fill(&op->call->entry, blob_of(op), size, op->http.status, &op->http.answer_headers);
    return 0;
}

static int not_a_file(struct azure_op *op)
{
    return act_error_set(&op->call->error, ACT_NOT_FOUND, "%s: there is only a folder of this name",
                         op->what);
}

static int has_changed(struct azure_op *op)
{
    return act_error_set(&op->call->error, ACT_TEMPORARY, "%s: it has changed", op->what);
}

static void answer_head(struct azure_op *op)
{
    int rc = take_head(op);

    if (rc == 0 && op->call->entry.kind == STORE_FOLDER)
        rc = not_a_file(op);
    azure_finish(op, rc);
}

/* GET with nothing to get (the emulator says 206 to some of it): the range begins at the end of the blob or
 * behind it, or has no length. */
static void answer_head_of_get(struct azure_op *op)
{
    const struct store_call *call = op->call;
    int rc = take_head(op);

    if (rc == 0 && call->entry.kind == STORE_FOLDER)
        rc = not_a_file(op);
    if (rc == 0 && ((call->if_match && strcmp(call->if_match, call->entry.etag) != 0) ||
                    (call->sink_cap && call->entry.size > call->offset)))
        rc = has_changed(op);
    azure_finish(op, rc);
}

static void build_get(struct azure_op *op)
{
    const struct store_call *call = op->call;

    azure_request(op, "GET", call->key, NULL);
    http_header_setf(&op->http.headers, "x-ms-range", "bytes=%" PRIu64 "-%" PRIu64, call->offset,
                     call->offset + call->sink_cap - 1);
    if (call->if_match)
        http_header_set(&op->http.headers, "If-Match", call->if_match);
    op->http.sink = call->sink;
    op->http.sink_cap = call->sink_cap;
}

/* Whether the bytes that came are those that were asked for; gives the size of the whole blob. A proxy may
 * ignore the range. */
static int check_range(struct azure_op *op, uint64_t *out_size)
{
    const struct store_call *call = op->call;
    const char *text = http_header_get(&op->http.answer_headers, "Content-Range");
    uint64_t first = 0, last = 0, end = call->offset + call->sink_cap;

    if (op->http.status == 200 && call->offset == 0) {
        *out_size = op->http.sink_len;
        return 0;
    }
    if (op->http.status == 206 && parse_content_range(text, &first, &last, out_size) &&
        first == call->offset && last + 1 == (*out_size < end ? *out_size : end) &&
        last - first + 1 == op->http.sink_len)
        return 0;
    return act_error_set(
        &op->call->error, ACT_FAIL,
        "%s: asked for bytes %" PRIu64 "-%" PRIu64 ", got %zu bytes of '%.100s' with HTTP %d", op->what,
        call->offset, end - 1, op->http.sink_len, text ? text : "", op->http.status);
}

static void answer_get(struct azure_op *op)
{
    struct store_call *call = op->call;
    uint64_t size = 0;

    if (op->http.status == 416 || (op->http.status == 206 && op->http.sink_len == 0)) {
        azure_send_next(op, azure_build_head, answer_head_of_get);
        return;
    }
    if (!succeeded(op)) {
        azure_finish_failed(op);
        return;
    }
    int rc = check_range(op, &size);
    if (rc == 0) {
        call->got = op->http.sink_len;
        azure_fill(&call->entry, call->key, size, op->http.status, &op->http.answer_headers);
        if (call->entry.kind == STORE_FOLDER)
            rc = not_a_file(op);
    }
    azure_finish(op, rc);
}

/* ---- writing */

static void set_conditions(struct azure_op *op)
{
    struct http_headers *headers = &op->http.headers;

    if (op->call->if_match)
        http_header_set(headers, "If-Match", op->call->if_match);
    if (op->call->if_absent)
        http_header_set(headers, "If-None-Match", "*");
    if (!op->call->if_match && !op->call->if_absent)
        return;
    if (!op->upload[0]) {
        uint8_t random[(AZURE_UPLOAD_ID - 1) / 2];
        act_random(random, sizeof(random));
        act_hex(random, sizeof(random), op->upload);
    }
    http_header_set(headers, "x-ms-meta-act_upload", op->upload);
}

static void build_put(struct azure_op *op)
{
    const struct store_call *call = op->call;
    struct http_headers *headers = &op->http.headers;

    azure_request(op, "PUT", blob_of(op), NULL);
    http_header_set(headers, "x-ms-blob-type", "BlockBlob");
    http_header_set(headers, "x-ms-blob-content-type", "application/octet-stream");
    if (call->md5) {
        http_header_set(headers, "Content-MD5", call->md5);
        http_header_set(headers, "x-ms-blob-content-md5", call->md5);
    }
    azure_set_attributes(headers, call);
    set_conditions(op);
    op->http.body = call->data;
    op->http.body_len = call->len;
}

static void finish_written(struct azure_op *op)
{
    struct store_entry *entry = &op->call->entry;

    store_entry_release(entry);
    entry->key = act_strdup(op->call->key);
    azure_take_etag(entry, http_header_get(&op->http.answer_headers, "ETag"));
    azure_finish(op, 0);
}

/* The blob that is in the way of a write that was sent twice: is it what the first try wrote? */
static void answer_whose(struct azure_op *op)
{
    const char *upload = http_header_get(&op->http.answer_headers, "x-ms-meta-act_upload");

    if (succeeded(op) && act_streq(upload, op->upload)) {
        finish_written(op);
        return;
    }
    op->call->error = op->refused;
    azure_finish(op, -(int)op->refused.code);
}

static void answer_write(struct azure_op *op)
{
    if (succeeded(op)) {
        finish_written(op);
        return;
    }
    int rc = azure_answer_error(op);
    if (op->http.ambiguous && op->upload[0] && (op->http.status == 409 || op->http.status == 412)) {
        op->refused = op->call->error;
        azure_send_next(op, azure_build_head, answer_whose);
        return;
    }
    azure_finish(op, rc);
}

/* base64(upload id, index big-endian). New string. */
static char *block_id(const struct store_upload_id *upload, uint32_t index)
{
    uint8_t id[BLOCK_ID];

    memcpy(id, upload->bytes, sizeof(upload->bytes));
    for (size_t i = 0; i < 4; i++)
        id[sizeof(upload->bytes) + i] = (uint8_t)(index >> (24 - 8 * i));
    return act_base64_encode(id, sizeof(id));
}

static void build_block(struct azure_op *op)
{
    const struct store_call *call = op->call;
    ACT_AUTOFREE char *id = block_id(&call->upload_id, call->block);
    ACT_AUTOFREE char *encoded = http_encode(id, false);
    ACT_AUTOFREE char *query = act_sprintf("comp=block&blockid=%s", encoded);

    azure_request(op, "PUT", call->key, query);
    if (call->md5)
        http_header_set(&op->http.headers, "Content-MD5", call->md5);
    op->http.body = call->data;
    op->http.body_len = call->len;
}

static void build_commit(struct azure_op *op)
{
    const struct store_call *call = op->call;
    struct http_headers *headers = &op->http.headers;

    act_buf_adds(&op->body, "<?xml version=\"1.0\" encoding=\"utf-8\"?><BlockList>");
    for (uint32_t i = 0; i < call->n_blocks; i++) {
        ACT_AUTOFREE char *id = block_id(&call->upload_id, i);
        act_buf_addf(&op->body, "<Latest>%s</Latest>", id);
    }
    act_buf_adds(&op->body, "</BlockList>");

    azure_request(op, "PUT", call->key, "comp=blocklist");
    http_header_set(headers, "Content-Type", "application/xml");
    http_header_set(headers, "x-ms-blob-content-type", "application/octet-stream");
    if (call->attr.md5)
        http_header_set(headers, "x-ms-blob-content-md5", call->attr.md5);
    azure_set_attributes(headers, call);
    set_conditions(op);
    op->http.body = op->body.data;
    op->http.body_len = op->body.len;
}

static void build_delete(struct azure_op *op)
{
    azure_request(op, "DELETE", blob_of(op), NULL);
    if (op->call->if_match)
        http_header_set(&op->http.headers, "If-Match", op->call->if_match);
}

static void answer_delete(struct azure_op *op)
{
    char code[64];

    azure_service_code(&op->http, code, sizeof(code));
    if (succeeded(op) || (op->http.ambiguous && strcmp(code, "BlobNotFound") == 0))
        azure_finish(op, 0); /* not found, as an earlier try deleted it */
    else
        azure_finish_failed(op);
}

/* ---- folder markers: "a/b" with metadata as most tools write them, or "a/b/" */

static void answer_folder(struct azure_op *op)
{
    int rc = take_head(op);
    bool found = rc == 0 && op->call->entry.kind == STORE_FOLDER;

    if (!found && (rc == 0 || rc == -(int)ACT_NOT_FOUND) && !act_ends_with(op->blob, "/")) {
        char *with_slash = act_strdup(op->call->key);
        free(op->blob);
        op->blob = with_slash;
        azure_send(op);
    } else if (found && op->call->op == STORE_DELETE) {
        azure_send_next(op, build_delete, answer_delete);
    } else {
        if (rc == 0 && !found)
            rc = act_error_set(&op->call->error, ACT_NOT_FOUND, "%s: not a folder", op->what);
        azure_finish(op, rc);
    }
}

static void start_folder(struct azure_op *op)
{
    op->blob = act_strndup(op->call->key, strlen(op->call->key) - 1);
    if (op->call->op == STORE_PUT)
        azure_send_next(op, build_put, answer_write);
    else
        azure_send_next(op, azure_build_head, answer_folder);
}

/* ---- calls */

static const struct {
    void (*build)(struct azure_op *op);
    void (*answer)(struct azure_op *op);
} steps[STORE_OPS] = {
    [STORE_HEAD] = {azure_build_head, answer_head}, [STORE_GET] = {build_get, answer_get},
    [STORE_PUT] = {build_put, answer_write},        [STORE_BLOCK] = {build_block, answer_write},
    [STORE_COMMIT] = {build_commit, answer_write},  [STORE_DELETE] = {build_delete, answer_delete},
};

static bool is_folder_call(const struct store_call *call)
{
    return act_ends_with(call->key, "/") && (call->op == STORE_HEAD || call->op == STORE_GET ||
                                             call->op == STORE_PUT || call->op == STORE_DELETE);
}

static struct azure_op *op_new(struct store *store, struct store_call *call)
{
    struct azure_op *op = act_calloc(1, sizeof(*op));

    op->azure = (struct azure *)store;
    op->call = call;
    op->what = act_sprintf("cannot %s '%s/%s'", store_verb(call->op), op->azure->container, call->key);
    return op;
}

static void start(struct store *store, struct store_call *call)
{
    struct azure_op *op = op_new(store, call);

    if (is_folder_call(call))
        start_folder(op);
    else if (call->op == STORE_GET && call->sink_cap == 0)
        azure_send_next(op, azure_build_head, answer_head_of_get);
    else
        azure_send_next(op, steps[call->op].build, steps[call->op].answer);
}

static void start_copy(struct store *store, struct store_call *call)
{
    azure_copy(op_new(store, call));
}

static void start_list(struct store *store, struct store_call *call)
{
    azure_list(op_new(store, call));
}

static void dropped(void *call)
{
    store_finish(call, 0);
}

/* Uncommitted blocks expire by themselves; there is no request that removes them and surely nothing else. */
static void start_drop(struct store *store, struct store_call *call)
{
    engine_timer(http_engine(store->http), 0, dropped, call);
}

static int url(struct store *store, const char *key, const char *permissions, int64_t life_s, char **out,
               struct act_error *err)
{
    const struct azure *azure = (const struct azure *)store;
    int64_t now = act_now_unix_s() + azure->clock_offset_s;
    char *minted = NULL;
    const char *sas = azure->sas;

    if (!sas && auth_kind_of(azure->auth) == AUTH_KEY) {
        int rc = auth_service_sas(azure->auth, azure->container, key, permissions, now - (int64_t)15 * 60,
                                  now + life_s, act_starts_with(azure->endpoint, "https://"), &minted, err);
        if (rc)
            return rc;
        sas = minted;
    }
    ACT_AUTOFREE char *plain = azure_url(azure, key);
    *out = act_sprintf("%s%s%s", plain, sas ? "?" : "", sas ? sas : "");
    if (minted)
        explicit_bzero(minted, strlen(minted));
    free(minted);
    return 0;
}

static void close_azure(struct store *store)
{
    struct azure *azure = (struct azure *)store;

    auth_free(azure->auth);
    if (azure->sas)
        explicit_bzero(azure->sas, strlen(azure->sas));
    free(azure->sas);
    free(azure->endpoint);
    free(azure->container);
    free(azure->version);
    free(azure);
}

static const struct store_ops ops = {
    .start = {[STORE_HEAD] = start,
              [STORE_GET] = start,
              [STORE_PUT] = start,
              [STORE_BLOCK] = start,
              [STORE_COMMIT] = start,
              [STORE_DELETE] = start,
              [STORE_COPY] = start_copy,
              [STORE_LIST] = start_list,
              [STORE_DROP] = start_drop},
    .key_problem = azure_key_problem,
    .url = url,
    .close = close_azure,
    .max_put = MAX_PUT,
};

/* ---- opening */

/* Lower-case letters, digits and single hyphens, as the service demands; its own containers begin with '$'.
 */
static bool container_is_valid(const char *name)
{
    size_t n = strlen(name);

    if (act_streq(name, "$root") || act_streq(name, "$web") || act_streq(name, "$logs"))
        return true;
    return n >= 3 && n <= 63 && strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789-") == n &&
           name[0] != '-' && name[n - 1] != '-' && !strstr(name, "--");
}

static int check_options(const struct store_azure_options *o, struct act_error *err)
{
    const char *host = o->endpoint ? strstr(o->endpoint, "://") : NULL;

    if (!o->account || !*o->account ||
        o->account[strspn(o->account, "abcdefghijklmnopqrstuvwxyz0123456789-")])
        return act_error_set(err, ACT_CONFIG,
                             "the account name '%s' is not one: lower-case letters and digits",
                             o->account ? o->account : "");
    if (!o->container || !container_is_valid(o->container))
        return act_error_set(
            err, ACT_CONFIG,
            "the container name '%s' is not one: 3 to 63 lower-case letters, digits and single "
            "hyphens",
            o->container ? o->container : "");
    if (o->endpoint &&
        (!host || (!act_starts_with(o->endpoint, "http://") && !act_starts_with(o->endpoint, "https://")) ||
         host[3] == '\0' || host[3] == '/' || o->endpoint[strcspn(o->endpoint, "?# \t\r\n@")]))
        return act_error_set(
            err, ACT_CONFIG,
            "the endpoint '%s' is not one: it must look like https://%s.blob.core.windows.net", o->endpoint,
            o->account);
    return 0;
}

static char *endpoint_of(const struct store_azure_options *o)
{
    char *endpoint =
        o->endpoint ? act_strdup(o->endpoint) : act_sprintf("https://%s.blob.core.windows.net", o->account);
    size_t n = strlen(endpoint);

    while (n && endpoint[n - 1] == '/')
        endpoint[--n] = '\0';
    return endpoint;
}

int store_azure_open(struct http *http, const struct store_azure_options *options, struct store **out,
                     struct act_error *err)
{
    const char *version = getenv("ACT_AZURE_API_VERSION");
    const char *sas = options->sas && *options->sas == '?' ? options->sas + 1 : options->sas;
    struct auth *auth = NULL;
    int rc = check_options(options, err);

    if (rc == 0)
        rc = auth_new(options->account, options->key, sas, options->prefer_sas ? AUTH_SAS : AUTH_KEY, &auth,
                      err);
    if (rc)
        return rc;

    struct azure *azure = act_calloc(1, sizeof(*azure));
    azure->store = (struct store){
        .ops = &ops, .http = http, .name = act_sprintf("blob:%s/%s", options->account, options->container)};
    azure->endpoint = endpoint_of(options);
    azure->container = act_strdup(options->container);
    azure->version = act_strdup(version && *version ? version : VERSION);
    azure->auth = auth;
    azure->sas = auth_kind_of(auth) == AUTH_SAS ? act_strdup(sas) : NULL;
    *out = &azure->store;
    return 0;
}
