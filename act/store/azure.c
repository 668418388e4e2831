/* azure.c - the store that is a container of Azure Blob Storage, over plain REST.
 *
 * Source: learn.microsoft.com/rest/api/storageservices/blob-service-rest-api.
 *
 * Objects are block blobs. Writes replace a blob at once (Put Blob, or Put Block List at the end), and nothing is
 * ever deleted to clean up: uncommitted blocks expire by themselves. A conditional write that was sent twice may be
 * refused because its first try succeeded; metadata with a random id tells.
 */
#include "store/azure.h"

#include <ctype.h>
#include <inttypes.h>
#include <string.h>

#include "auth/trusted.h"
#include "base/clock.h"
#include "store/files.h"

#define VERSION     "2023-11-03"
#define MAX_PUT     (64U << 20) /* bytes at once: 50,000 of them make 3.05 TiB */
#define SKEW_S      60          /* a clock that is off by more explains a refused signature */
#define MAX_ENDINGS 3           /* tokens that may end before their request has its turn */

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

/* Signs a request, which may have waited for its turn, or between two tries, for longer than its token lived. */
static int azure_sign(struct http_call *http, struct act_error *err)
{
    struct azure_op *op = http->sign_arg;
    const struct azure *azure = op->azure;
    int rc = auth_sign(azure->auth, http, azure->clock_offset_s, err);

    op->token_ended = rc < 0 && auth_kind_of(azure->auth) == AUTH_LOGIN;
    return rc;
}

const char *azure_what(struct azure_op *op)
{
    const struct store_call *call = op->call;

    if (!op->what)
        op->what = act_sprintf("cannot %s '%s/%s'", store_verb(call->op), op->azure->container, call->key);
    return op->what;
}

static void set_request_id(struct http_headers *headers)
{
    char id[ACT_UUID_TEXT];

    act_uuid(id);
    http_header_set(headers, "x-ms-client-request-id", id);
}

/* Returns whether the service refused the signature because of our clock, and takes the service's time from then on. */
static bool clock_was_wrong(struct azure_op *op)
{
    const char *date = http_header_get(&op->http.response_headers, "Date");
    int64_t theirs = 0;

    if (op->clock_checked || op->http.status != 403 || auth_kind_of(op->azure->auth) != AUTH_KEY || !date ||
        !azure_has_code(&op->http, "AuthenticationFailed") || !act_time_from_http(date, &theirs))
        return false;
    op->clock_checked = true;
    int64_t offset = theirs - act_now_unix_s(), wrong_by = offset - op->azure->clock_offset_s;
    if (wrong_by >= -SKEW_S && wrong_by <= SKEW_S)
        return false;
    op->azure->clock_offset_s = offset;
    return true;
}

static const struct azure_exchange exchanges[AZURE_PHASES];

/* Returns what makes and handles the request of the op. */
static const struct azure_exchange *azure_exchange_of(const struct azure_op *op)
{
    return op->phase == AZURE_OF_SHARE ? &op->of_share : &exchanges[op->phase];
}

static void no_answer(struct azure_op *op, const struct act_error *err)
{
    op->call->error = *err;
    if (azure_exchange_of(op)->failed)
        azure_exchange_of(op)->failed(op);
    else
        azure_finish(op, act_error_prefix(&op->call->error, "%s", azure_what(op)));
}

/* Sends the request again with another credential, remembering what its earlier tries may have done. */
static void azure_send_again(struct azure_op *op)
{
    op->ambiguous |= op->http.ambiguous;
    azure_send(op);
}

static void http_ended(struct http_call *http)
{
    struct azure_op *op = http->arg;

    if (http->rc && op->token_ended && ++op->endings <= MAX_ENDINGS) {
        azure_send_again(op);
    } else if (http->rc) {
        no_answer(op, &http->error);
    } else if (clock_was_wrong(op) || azure_renew_login(op)) {
        azure_send_again(op);
    } else {
        azure_exchange_of(op)->answer(op);
    }
}

/* The emulator responds with 500 to what it does not implement: with this code, or, with a SAS, without any. */
static bool azure_is_final(const struct http_call *http)
{
    enum store_op op = ((const struct azure_op *)http->arg)->call->op;
    bool is_optional = op == STORE_DELETE_MANY || op == STORE_PUT_FROM || op == STORE_BLOCK_FROM;

    return http->status == 500 &&
           (azure_has_code(http, "FeatureNotSupported") || (is_optional && azure_has_code(http, "")));
}

static void azure_moves(struct http_call *http, int64_t bytes)
{
    struct store_call *call = ((struct azure_op *)http->arg)->call;

    call->moves(call, bytes);
}

static void send_now(struct azure_op *op)
{
    http_call_release(&op->http);
    act_buf_release(&op->body);
    op->http = (struct http_call){
        .sign = azure_sign, .sign_arg = op, .is_final = azure_is_final, .done = http_ended, .arg = op};
    azure_exchange_of(op)->build(op);
    op->http.moves = op->call->moves ? azure_moves : NULL;
    http_header_set(&op->http.headers, "x-ms-version", op->azure->version);
    if (op->azure->files)
        files_set_headers(op);
    set_request_id(&op->http.headers);
    http_start(op->azure->store.http, &op->http);
}

static void got_token(struct token_call *token)
{
    struct azure_op *op = token->arg;

    if (token->rc < 0) {
        act_error_prefix(&token->error, "no credential for account '%s'", auth_account(op->azure->auth));
        no_answer(op, &token->error);
    } else {
        send_now(op);
    }
}

void azure_send(struct azure_op *op)
{
    if (auth_is_ready(op->azure->auth)) {
        send_now(op);
        return;
    }
    op->token = (struct token_call){.done = got_token, .arg = op};
    auth_get_ready(op->azure->auth, &op->token);
}

void azure_send_next(struct azure_op *op, void (*build)(struct azure_op *), void (*answer)(struct azure_op *))
{
    op->phase = AZURE_OF_SHARE;
    op->of_share.build = build;
    op->of_share.answer = answer;
    azure_send(op);
}

void azure_send_phase(struct azure_op *op, enum azure_phase phase)
{
    op->phase = phase;
    azure_send(op);
}

void azure_finish(struct azure_op *op, int rc)
{
    struct store_call *call = op->call;

    http_call_release(&op->http);
    act_buf_release(&op->body);
    if (op->release)
        op->release(op);
    free(op->blob);
    free(op->what);
    free(op);
    if (rc == 0)
        call->error = (struct act_error){0}; /* of what was overcome */
    store_finish(call, rc);
}

void azure_finish_failed(struct azure_op *op)
{
    azure_finish(op, azure_answer_error(op));
}

/* ---- folder markers: "a/b" with metadata as most tools write them, or "a/b/"; that may be a blob with content, too */

static bool marker_is_bare(const struct azure_op *op)
{
    return !act_ends_with(op->blob, "/");
}

static void look_behind_slash(struct azure_op *op)
{
    free(op->blob);
    op->blob = act_strdup(op->call->key);
    azure_send_phase(op, AZURE_HEAD_FOLDER);
}

/* Both markers stand for one folder: a caller that does not say which one to delete means both. */
static void answer_delete_folder(struct azure_op *op)
{
    if (azure_succeeded(op) && marker_is_bare(op) && !op->call->delete.if_match) {
        op->bare = BARE_DELETED;
        look_behind_slash(op);
    } else {
        azure_answer_delete(op);
    }
}

/* Returns whether the caller means the other one of two markers, or this one has changed. */
static bool is_another(const struct azure_op *op)
{
    const struct store_call *call = op->call;

    return call->op == STORE_DELETE && call->delete.if_match && call->entry.etag[0] &&
           strcmp(call->delete.if_match, call->entry.etag) != 0;
}

/* If the listed marker no longer exists, the first one is asked to go, so that the service says what is missing. */
static void delete_folder(struct azure_op *op, bool found)
{
    if (!found)
        op->blob[strlen(op->blob) - 1] = '\0';
    azure_send_phase(op, AZURE_DELETE_FOLDER);
}

static void answer_folder(struct azure_op *op)
{
    int rc = azure_take_head(op);
    bool found = rc == 0 && (op->call->entry.kind == STORE_FOLDER || strcmp(azure_blob_of(op), op->call->key) == 0);
    bool another = found && is_another(op), missing = !found && (rc == 0 || rc == -(int)ACT_NOT_FOUND);

    op->bare = another ? BARE_PASSED : op->bare;
    if ((missing || another) && marker_is_bare(op)) {
        look_behind_slash(op);
    } else if (op->call->op == STORE_DELETE && (found || (missing && op->bare == BARE_PASSED))) {
        delete_folder(op, found);
    } else if (found && op->call->op == STORE_GET && op->call->entry.size > op->call->get.offset) {
        azure_send_phase(op, AZURE_GET);
    } else {
        if (rc == 0 && !found)
            rc = act_error_set(&op->call->error, ACT_NOT_FOUND, "%s: not a folder", azure_what(op));
        azure_finish(op, missing && op->bare == BARE_DELETED ? 0 : rc);
    }
}

/* The folder's metadata goes to its marker with a slash if another tool made one: a second one would contradict it. */
static void answer_marker(struct azure_op *op)
{
    int rc = azure_take_head(op);
    const struct store_entry *entry = &op->call->entry;

    if (rc && rc != -(int)ACT_NOT_FOUND && rc != -(int)ACT_DENIED) { /* who may only write cannot know */
        azure_finish(op, rc);
        return;
    }
    if (rc == 0 && entry->kind == STORE_FOLDER)
        azure_replace_that(op);
    else
        op->blob[strlen(op->blob) - 1] = '\0';
    store_entry_release(&op->call->entry);
    azure_put(op);
}

static void start_folder(struct azure_op *op)
{
    bool put = op->call->op == STORE_PUT;

    op->blob = act_strndup(op->call->key, strlen(op->call->key) - !put);
    azure_send_phase(op, put ? AZURE_HEAD_MARKER : AZURE_HEAD_FOLDER);
}

/* ---- calls */

/* Each phase: what makes its request, what handles the response, and what is done where none comes. */
static const struct azure_exchange exchanges[AZURE_PHASES] = {
    [AZURE_HEAD] = {azure_build_head, azure_answer_head, NULL},
    [AZURE_HEAD_OF_GET] = {azure_build_head, azure_answer_head_of_get, NULL},
    [AZURE_GET] = {azure_build_get, azure_answer_get, NULL},
    [AZURE_HEAD_FOLDER] = {azure_build_head, answer_folder, NULL},
    [AZURE_HEAD_MARKER] = {azure_build_head, answer_marker, NULL},
    [AZURE_PUT] = {azure_build_put, azure_answer_write, NULL},
    [AZURE_BLOCK] = {azure_build_block, azure_answer_write, NULL},
    [AZURE_COMMIT] = {azure_build_commit, azure_answer_write, NULL},
    [AZURE_PUT_FROM] = {azure_build_put_from, azure_answer_write, NULL},
    [AZURE_BLOCK_FROM] = {azure_build_block_from, azure_answer_write, NULL},
    [AZURE_DESCRIBE] = {azure_build_description, azure_answer_write, NULL},
    [AZURE_WHOSE] = {azure_build_head, azure_answer_whose, NULL},
    [AZURE_SOURCE] = {azure_build_source_head, azure_answer_source_head, NULL},
    [AZURE_BLOCKS] = {azure_build_blocks, azure_answer_blocks, NULL},
    [AZURE_IS_LEFTOVER] = {azure_build_blocks, azure_answer_is_leftover, NULL},
    [AZURE_IS_FREE] = {azure_build_head, azure_answer_is_free, NULL},
    [AZURE_EMPTY] = {azure_build_empty, azure_answer_empty, NULL},
    [AZURE_WHOSE_EMPTY] = {azure_build_head, azure_answer_whose_empty, NULL},
    [AZURE_DELETE_EMPTY] = {azure_build_delete_empty, azure_answer_deleted, NULL},
    [AZURE_DELETE] = {azure_build_delete, azure_answer_delete, NULL},
    [AZURE_DELETE_FOLDER] = {azure_build_delete, answer_delete_folder, NULL},
    [AZURE_BATCH] = {azure_build_batch, azure_answer_batch, azure_batch_failed},
    [AZURE_COPY_NOW] = {azure_build_sync_copy, azure_answer_sync_copy, NULL},
    [AZURE_COPY_LATER] = {azure_build_copy, azure_answer_copy, NULL},
    [AZURE_COPY_POLL] = {azure_build_head, azure_answer_copy_status, NULL},
    [AZURE_LIST] = {azure_build_list, azure_answer_list, NULL},
    [AZURE_AHEAD] = {azure_build_ahead, azure_answer_ahead, NULL},
    [AZURE_KEY] = {azure_build_key, azure_answer_key, NULL},
};

/* Each call begins with a phase, or with a function of its own. */
static const struct {
    enum azure_phase phase;
    void (*start)(struct azure_op *op);
    bool is_write; /* it has the state of one */
} beginnings[STORE_OPS] = {
    [STORE_HEAD] = {.phase = AZURE_HEAD},
    [STORE_GET] = {.phase = AZURE_GET},
    [STORE_PUT] = {.start = azure_put, .is_write = true},
    [STORE_BLOCK] = {.start = azure_block, .is_write = true},
    [STORE_COMMIT] = {.start = azure_commit, .is_write = true},
    [STORE_BLOCKS] = {.phase = AZURE_BLOCKS},
    [STORE_DELETE] = {.phase = AZURE_DELETE},
    [STORE_DELETE_MANY] = {.start = azure_batch},
    [STORE_COPY] = {.start = azure_copy},
    [STORE_PUT_FROM] = {.phase = AZURE_PUT_FROM, .is_write = true},
    [STORE_BLOCK_FROM] = {.phase = AZURE_BLOCK_FROM, .is_write = true},
    [STORE_LIST] = {.start = azure_list},
    [STORE_CLEAR] = {.phase = AZURE_IS_LEFTOVER, .is_write = true},
    [STORE_URL] = {.start = azure_make_url},
};

static bool is_folder_call(const struct store_call *call)
{
    return act_ends_with(call->key, "/") &&
           (call->op == STORE_HEAD || call->op == STORE_GET || call->op == STORE_PUT || call->op == STORE_DELETE);
}

void azure_start(struct azure_op *op)
{
    const struct store_call *call = op->call;

    if (is_folder_call(call))
        start_folder(op);
    else if (beginnings[call->op].start)
        beginnings[call->op].start(op);
    else if (call->op == STORE_GET && call->get.sink_cap == 0)
        azure_send_phase(op, AZURE_HEAD_OF_GET);
    else
        azure_send_phase(op, beginnings[call->op].phase);
}

struct azure_op *azure_new_op(struct store *store, struct store_call *call)
{
    struct azure_op *op = act_calloc(1, sizeof(*op));

    op->azure = (struct azure *)store;
    op->call = call;
    return op;
}

static void start_op(struct store *store, struct store_call *call)
{
    if (call->op == STORE_DROP) { /* blocks expire: no request removes them and is sure to remove nothing else */
        store_finish_later(store, call, 0);
        return;
    }
    struct azure_op *op = azure_new_op(store, call);
    if (beginnings[call->op].is_write)
        azure_begin_write(op);
    azure_start(op);
}

int azure_window(const struct store *store)
{
    return http_window(store->http, ((const struct azure *)store)->endpoint);
}

void azure_close(struct store *store)
{
    struct azure *azure = (struct azure *)store;

    azure_ahead_end(azure);
    files_free(azure->files, http_engine(azure->store.http));
    azure_free_ids(azure);
    auth_free(azure->auth);
    act_wipe(&azure->sas);
    azure_delegation_free(azure->delegation);
    free(azure->endpoint);
    free(azure->container);
    free(azure->version);
    free(azure);
}

static const struct store_ops azure_ops = {
    .operations = ~STORE_BIT(STORE_SYNC),
    .start = start_op,
    .key_problem = azure_key_problem,
    .alias_problem = azure_alias_problem,
    .window = azure_window,
    .close = azure_close,
    .traits = {.max_put = MAX_PUT, .gives_pieces = true, .takes_block_ids = true},
};

/* ---- opening */

/* Lower-case letters, digits and single hyphens, as the service demands; its own containers begin with '$'. */
static bool container_is_valid(const char *name)
{
    size_t n = strlen(name);

    if (act_streq(name, "$root") || act_streq(name, "$web") || act_streq(name, "$logs"))
        return true;
    return n >= 3 && n <= 63 && strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789-") == n && name[0] != '-' &&
           name[n - 1] != '-' && !strstr(name, "--");
}

static int check_azure_options(const struct store_azure_options *o, struct act_error *err)
{
    const char *host = o->endpoint ? strstr(o->endpoint, "://") : NULL;

    if (!o->account || !*o->account || o->account[strspn(o->account, "abcdefghijklmnopqrstuvwxyz0123456789-")])
        return act_error_set(err, ACT_CONFIG, "the account name '%s' is not one: lower-case letters and digits",
                             o->account ? o->account : "");
    if (!o->container || !container_is_valid(o->container))
        return act_error_set(err, ACT_CONFIG,
                             "the name '%s' of the %s is not one: 3 to 63 lower-case letters, digits and single "
                             "hyphens",
                             o->container ? o->container : "", o->is_share ? "share" : "container");
    if (o->endpoint &&
        (!host || (!act_starts_with(o->endpoint, "http://") && !act_starts_with(o->endpoint, "https://")) ||
         host[3] == '\0' || host[3] == '/' || o->endpoint[strcspn(o->endpoint, "?# \t\r\n@")]))
        return act_error_set(err, ACT_CONFIG,
                             "the endpoint '%s' is not one: it must look like https://%s.%s.core.windows.net",
                             o->endpoint, o->account, o->is_share ? "file" : "blob");
    return 0;
}

static char *azure_endpoint_of(const struct store_azure_options *o)
{
    char *endpoint = o->endpoint
                         ? act_strdup(o->endpoint)
                         : act_sprintf("https://%s.%s.core.windows.net", o->account, o->is_share ? "file" : "blob");
    size_t n = strlen(endpoint);

    while (n && endpoint[n - 1] == '/')
        endpoint[--n] = '\0';
    return endpoint;
}

/* Checks whether the credential may be sent to the endpoint. Sets *out_foreign if its host is not trusted. */
static int azure_check_address(const struct store_azure_options *o, bool *out_foreign, struct act_error *err)
{
    ACT_AUTOFREE char *endpoint = azure_endpoint_of(o);
    ACT_AUTOFREE char *said_by =
        act_sprintf("'%s' of '%s'", o->is_share ? "file_endpoint" : "endpoint", o->file ? o->file : o->account);
    bool has_secret = (o->key && *o->key) || (o->sas && *o->sas);
    struct auth_address address = {.url = endpoint,
                                   .said_by = said_by,
                                   .owner = o->tokens || (has_secret && o->secret_is_lent) ? AUTH_OF_USER
                                            : has_secret                                   ? AUTH_OF_FILE
                                                                                           : AUTH_OF_NOBODY,
                                   .is_own = o->is_own};
    if (o->tokens && !http_is_private(endpoint))
        return act_error_set(err, ACT_CONFIG, "a login cannot be used for '%s', which is not encrypted; use https",
                             endpoint);
    int rc = auth_check_address(&address, err);
    if (rc == 0)
        rc = auth_trusts(NULL, endpoint, err);
    *out_foreign = rc == 0;
    return rc < 0 ? rc : 0;
}

static int new_login(const struct store_azure_options *o, struct auth **out, struct act_error *err)
{
    ACT_AUTOFREE char *endpoint = azure_endpoint_of(o);
    struct token_want want = {.scope = AUTH_STORAGE_SCOPE, .use_cli = o->use_cli};
    int rc = auth_cloud_find(endpoint, &want.cloud, err);

    if (rc < 0)
        return rc;
    *out = auth_new_login(o->account, o->tokens, &want);
    return 0;
}

int store_azure_open(struct http *http, const struct store_azure_options *options, struct store **out,
                     struct act_error *err)
{
    const char *version = getenv("ACT_AZURE_API_VERSION");
    const char *sas = options->sas && *options->sas == '?' ? options->sas + 1 : options->sas;
    struct auth *auth = NULL;
    bool foreign = false;
    int rc = check_azure_options(options, err);

    if (rc == 0 && !options->is_checked)
        rc = azure_check_address(options, &foreign, err);
    if (rc == 0 && options->tokens)
        rc = new_login(options, &auth, err);
    else if (rc == 0)
        rc = auth_new(options->account, options->key, sas, options->prefer_sas ? AUTH_SAS : AUTH_KEY, &auth, err);
    if (rc)
        return rc;

    struct azure *azure = act_calloc(1, sizeof(*azure));
    azure->store = (struct store){
        .ops = options->is_share ? &files_ops : &azure_ops,
        .http = http,
        /* a stranger gets no URL of another store, which would open it */
        .lacks = foreign ? STORE_BIT(STORE_PUT_FROM) | STORE_BIT(STORE_BLOCK_FROM) : 0,
        .name = act_sprintf("%s:%s/%s", options->is_share ? "file" : "blob", options->account, options->container)};
    azure->endpoint = azure_endpoint_of(options);
    azure->container = act_strdup(options->container);
    azure->version = act_strdup(version && *version ? version : VERSION);
    azure->auth = auth;
    azure->files = options->is_share ? files_new() : NULL;
    azure->no_batch = options->is_share;
    azure->sas = auth_kind_of(auth) == AUTH_SAS ? act_strdup(sas) : NULL;
    *out = &azure->store;
    return 0;
}
