/* run_folders.c - how mapped folders of a blob store reach the nodes of a run, and how results come back. The nodes of
 * a cluster do not see the project with its account files, so the run's folder gets exactly what they need. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "auth/auth.h"
#include "auth/services.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/path.h"
#include "codec/fields.h"
#include "codec/json.h"
#include "config/config.h"
#include "flow/data/data.h"
#include "flow/data/data_internal.h"
#include "flow/flow_internal.h"
#include "flow/place.h"
#include "ledger/ledger.h"
#include "platform/platform.h"

/* ---- here: what they get */

/* Returns what may be done with the container, in the documented order. In a share, an upload removes what it had put
 * beside its files. */
static const char *permissions(enum run_folder_mode mode, bool is_share)
{
    switch (mode) {
    case RUN_FOLDER_RW_MOUNT:
        return "rcwdl";
    case RUN_FOLDER_UPLOAD:
        return is_share ? "rcwdl" : "rcwl";
    default:
        return "rl";
    }
}

/* Makes a SAS for one container or share only, and for as long as a run can wait and work. */
static int make_sas(const struct config_folder *f, const struct config_account *a, enum run_folder_mode mode,
                    int64_t life_s, char **out, struct act_error *err)
{
    bool is_share = config_is_share(f);
    const struct auth_sas sas = {
        .is_share = is_share,
        .container = is_share ? f->file_share : a->container_name,
        .permissions = permissions(mode, is_share),
        .expiry_s = act_now_unix_s() + life_s,
        .https_only = act_starts_with(is_share ? a->file_endpoint : a->endpoint, "https:"),
    };
    struct auth *auth;
    int rc = auth_new(a->account_name, a->account_key, NULL, AUTH_KEY, &auth, err);

    if (rc < 0)
        return rc;
    rc = auth_service_sas(auth, &sas, out, err);
    auth_free(auth);
    return rc;
}

/* Takes the store over. */
static int sign_in(struct store *store, const char *permitted, char **out, struct act_error *err)
{
    ACT_AUTOWIPE char *url = NULL;
    int rc = store_url(store, NULL, permitted, FLOW_LOGIN_LIFE_S, &url, err);

    store_free(store);
    const char *query = url ? strchr(url, '?') : NULL;
    *out = query ? act_strdup(query + 1) : NULL;
    return rc;
}

/* A login does not reach the nodes; a URL of the container that is signed with it does. */
static int sign_with_login(struct flow *flow, const struct config_folder *f, enum run_folder_mode mode, char **out,
                           struct act_error *err)
{
    struct store *store = NULL;
    int rc = flow_store(flow, f, &store, err);

    return rc < 0 ? rc : sign_in(store, permissions(mode, config_is_share(f)), out, err);
}

static int find_sas(struct flow *flow, const struct config_folder *f, const struct config_account *a,
                    enum run_folder_mode mode, char **out, struct act_error *err)
{
    bool prefer_sas = act_streq(a->auth, "sas") && a->sas_token;

    if (act_streq(a->auth, "anonymous"))
        return 0;
    if (flow_uses_login(a))
        return sign_with_login(flow, f, mode, out, err);
    if (a->account_key && !prefer_sas)
        return make_sas(f, a, mode, flow_key_life_s(flow->config), out, err);
    *out = a->sas_token ? act_strdup(a->sas_token) : NULL;
    return 0;
}

/* The nodes send the credential to the endpoint, so the endpoint must be trusted. */
static int check_store(struct flow *flow, const struct config_folder *f, struct act_error *err)
{
    struct store *store = NULL;
    int rc = flow_store(flow, f, &store, err);

    store_free(store);
    return rc;
}

static const struct field blob_rows[] = {
    FIELD_TEXT(struct flow_blob, path, "path", .flags = FIELD_REQUIRED),
    FIELD_TEXT(struct flow_blob, account, "account_name", .flags = FIELD_REQUIRED),
    FIELD_TEXT(struct flow_blob, container, "container_name", .flags = FIELD_REQUIRED),
    FIELD_TEXT(struct flow_blob, endpoint, "endpoint", .flags = FIELD_REQUIRED),
    FIELD_TEXT(struct flow_blob, sas, "sas_token", .flags = FIELD_SECRET),
    FIELD_BOOL(struct flow_blob, is_share, "is_share", .flags = FIELD_RARE),
    FIELD_BOOL(struct flow_blob, by_login, "by_login", .flags = FIELD_RARE),
    FIELD_INT64(struct flow_blob, cache_s, "cache_s", .flags = FIELD_RARE, .usual = -1),
};
static const struct fields blob_fields = FIELDS("the folder", struct flow_blob, blob_rows, NULL);

void flow_blob_release(struct flow_blob *blob)
{
    fields_release(&blob_fields, blob);
}

int flow_blob_of(struct flow *flow, const struct config_folder *f, enum run_folder_mode mode, struct flow_blob *out,
                 struct act_error *err)
{
    ACT_AUTO(config_account) a = {0};
    int rc = config_account(flow->config, f, &a, err);

    *out = (struct flow_blob){0};
    if (rc < 0)
        return rc;
    rc = check_store(flow, f, err);
    if (rc == 0 && a.folder) {
        ACT_AUTOFREE char *place = act_path_join(a.folder, f->path);
        bool is_far = config_is_place(f) && access(a.folder, F_OK) < 0;
        rc = act_error_set(err, ACT_CONFIG, "it is the folder '%s'%s", place,
                           is_far ? " of another machine, which 'a d' copies from" : ", which needs no mount");
    }
    if (rc == 0)
        rc = find_sas(flow, f, &a, mode, &out->sas, err);
    out->path = act_strdup(f->path);
    out->account = act_strdup(a.account_name);
    out->is_share = config_is_share(f);
    out->by_login = flow_uses_login(&a);
    out->container = act_strdup(out->is_share ? f->file_share : a.container_name);
    out->endpoint = act_strdup(out->is_share ? a.file_endpoint : a.endpoint);
    out->cache_s = f->blob_cache_timeout;
    return rc;
}

static int describe_store(struct flow *flow, const struct config_folder *f, enum run_folder_mode mode, json_t *folders,
                          struct flow_ends *ends, struct act_error *err)
{
    ACT_AUTO(flow_blob) blob = {0};

    if (flow_blob_of(flow, f, mode, &blob, err) < 0)
        return act_error_prefix(err, "folder '%s'", f->name);
    int rc = flow_check_access(flow->config, &blob, f->name, mode, ends, err);
    if (rc == 0)
        rc = flow_check_rights(&blob, mode, f->name, err);
    if (rc < 0)
        return rc;
    json_object_set_new(folders, f->name, fields_to_json(&blob_fields, &blob));
    return 0;
}

/* Tells whether nodes get at it by ACT, which copies it or mounts it. */
static bool is_reached(const struct run_spec *spec, const struct run_folder *f)
{
    return !f->link && (f->mode == RUN_FOLDER_DOWNLOAD || f->mode == RUN_FOLDER_UPLOAD ||
                        platform_find(spec->platform)->about.agent_mounts);
}

/* A place in the store of the code. */
static int describe_place(struct flow *flow, const char *what, const char *where, enum run_folder_mode mode,
                          json_t *folders, struct flow_ends *ends, struct act_error *err)
{
    ACT_AUTOFREE char *name = act_strdup(what), *path = act_strdup(where);
    struct config_folder place = flow->config->code;

    place.name = name;
    place.path = path;
    return describe_store(flow, &place, mode, folders, ends, err);
}

int flow_run_stores(struct flow *flow, const struct run_spec *spec, char **out, struct act_error *err)
{
    CODEC_AUTOJSON json_t *root = json_pack("{s:i, s:{}}", "version", 1, "folders");
    json_t *folders = json_object_get(root, "folders");
    struct flow_ends ends = {0};
    int rc = 0;

    *out = NULL;
    for (size_t i = 0; rc == 0 && i < spec->n_folders; i++) {
        const struct config_folder *f = config_folder_named(flow->config, spec->folders[i].name);
        if (f && is_reached(spec, &spec->folders[i]))
            rc = describe_store(flow, f, spec->folders[i].mode, folders, &ends, err);
    }
    if (rc == 0 && spec->logs_path)
        rc = describe_place(flow, RUN_STORE_LOGS, spec->logs_path, RUN_FOLDER_UPLOAD, folders, &ends, err);
    if (rc == 0 && platform_nodes_fetch_package(platform_find(spec->platform), spec))
        rc = describe_place(flow, RUN_STORE_PACKAGE, spec->package_key, RUN_FOLDER_DOWNLOAD, folders, &ends, err);
    if (rc == 0)
        flow_say_ends(flow->config, &ends);
    act_buf_release(&ends.names);
    if (rc == 0 && json_object_size(folders) > 0)
        *out = codec_json_line(root);
    return rc;
}

/* ---- on the node: what is done with it */

struct place {
    struct flow flow;
    struct store *store;
    char *path; /* in it */
};

static int no_such_folder(const char *name, struct act_error *err)
{
    return act_error_set(err, ACT_NOT_FOUND, "'%s' is not a mapped folder of the run", name);
}

/* RUN_STORE_LOGS "/<attempt>": the logs of that attempt. NULL: it is the name of a folder. */
static const char *run_folders_attempt_of(const char *name)
{
    return act_starts_with(name, RUN_STORE_LOGS "/") ? name + strlen(RUN_STORE_LOGS "/") : NULL;
}

static int read_given(const char *file, const char *name, struct flow_blob *out, struct act_error *err)
{
    enum { MAX_BYTES = 1 << 20 };
    CODEC_AUTOJSON json_t *root = NULL;
    int rc = codec_json_read(file, MAX_BYTES, &root, err);

    if (rc < 0)
        return rc;
    const json_t *f = json_object_get(json_object_get(root, "folders"), name);
    if (!f)
        return no_such_folder(name, err);
    rc = fields_from_json(&blob_fields, f, out, err);
    return rc < 0 ? act_error_prefix(err, "folder '%s'", name) : 0;
}

int flow_blob_open(struct flow *flow, const struct flow_blob *blob, struct store **out, struct act_error *err)
{
    return store_azure_open(flow_http(flow),
                            &(struct store_azure_options){.account = blob->account,
                                                          .container = blob->container,
                                                          .endpoint = blob->endpoint,
                                                          .sas = blob->sas,
                                                          .is_share = blob->is_share,
                                                          .is_checked = true},
                            out, err);
}

static int open_given(const char *file, const char *name, struct place *p, struct act_error *err)
{
    const char *attempt = run_folders_attempt_of(name);
    ACT_AUTO(flow_blob) blob = {0};
    int rc = read_given(file, attempt ? RUN_STORE_LOGS : name, &blob, err);

    if (rc < 0)
        return rc;
    p->path = attempt ? act_sprintf("%s/" RUN_DIR_ATTEMPTS "/%s", blob.path, attempt) : act_strdup(blob.path);
    return flow_blob_open(&p->flow, &blob, &p->store, err);
}

static int find_in_project(const char *run_dir, const char *name, struct flow *flow, const struct config_folder **out,
                           struct act_error *err)
{
    ACT_AUTOFREE char *spec_path = act_path_join(run_dir, RUN_FILE_SPEC);
    ACT_AUTO(run_spec) spec = {0};
    int rc = run_spec_read(spec_path, &spec, err);

    if (rc == 0) {
        ACT_AUTO(ledger_run) row = flow_row_of(&spec);
        rc = flow_open_of_run(&row, NULL, flow, err);
    }
    if (rc < 0)
        return rc;
    *out = config_folder_named(flow->config, name);
    return *out ? 0 : no_such_folder(name, err);
}

static int open_of_project(const char *run_dir, const char *name, struct place *p, struct act_error *err)
{
    const struct config_folder *f;
    int rc = find_in_project(run_dir, name, &p->flow, &f, err);

    if (rc < 0)
        return rc;
    p->path = act_strdup(f->path);
    return flow_store(&p->flow, f, &p->store, err);
}

int flow_blob_of_run(struct flow *flow, const char *run_dir, const char *name, enum run_folder_mode mode,
                     struct flow_blob *out, struct act_error *err)
{
    ACT_AUTOFREE char *given = act_path_join(run_dir, RUN_FILE_STORES);
    const struct config_folder *f;

    if (access(given, F_OK) == 0)
        return read_given(given, name, out, err);
    int rc = find_in_project(run_dir, name, flow, &f, err);
    return rc < 0 ? rc : flow_blob_of(flow, f, mode, out, err);
}

/* Signs by a login of this node, where a login signed at first. */
static int sign_on_node(struct flow *flow, enum run_folder_mode mode, struct flow_blob *blob, struct act_error *err)
{
    struct store_azure_options o = {.account = blob->account,
                                    .container = blob->container,
                                    .endpoint = blob->endpoint,
                                    .is_share = blob->is_share,
                                    .is_checked = true,
                                    .tokens = services_tokens(flow_services(flow))};
    struct store *store = NULL;
    int rc = store_azure_open(flow_http(flow), &o, &store, err);

    act_wipe(&blob->sas);
    return rc < 0 ? rc : sign_in(store, permissions(mode, blob->is_share), &blob->sas, err);
}

int flow_blob_again(const char *run_dir, const char *name, enum run_folder_mode mode, struct flow_blob *out,
                    struct act_error *err)
{
    ACT_AUTOFREE char *given = act_path_join(run_dir, RUN_FILE_STORES);
    struct flow flow = {0};
    const struct config_folder *f;
    struct act_error ignored;
    int rc = find_in_project(run_dir, name, &flow, &f, err);

    *out = (struct flow_blob){0};
    if (rc == 0)
        rc = flow_blob_of(&flow, f, mode, out, err);
    /* the node may see neither the project nor its account files */
    if (rc < 0 && read_given(given, name, out, &ignored) == 0 && out->by_login && out->sas)
        rc = sign_on_node(&flow, mode, out, err);
    flow_close(&flow);
    return rc;
}

static int send_status(struct place *p, const char *dir, struct act_error *err)
{
    enum { STATUS_MAX = 1 << 16 };
    ACT_AUTOFREE char *file = act_path_join(dir, RUN_FILE_STATUS);
    ACT_AUTOFREE char *key = act_path_join(p->path, RUN_FILE_STATUS);
    ACT_AUTOFREE char *text = NULL;

    if (access(file, F_OK) < 0)
        return 0;
    int rc = act_file_read(file, STATUS_MAX, &text, NULL, err);
    return rc < 0 ? rc : flow_put_text(p->store, key, text, err);
}

int flow_last_sent(struct store *store, const char *path, struct act_error *err)
{
    ACT_AUTOFREE char *below = act_sprintf("%s/" RUN_DIR_ATTEMPTS "/", path);
    struct store_call call = {.op = STORE_LIST, .key = below, .list = {.delimiter = true}};
    int rc = store_do(store, &call, err), last = 0;

    for (size_t i = 0; i < call.list.page.n; i++) {
        int n = atoi(call.list.page.v[i].key + strlen(below));
        last = n > last ? n : last;
    }
    store_call_release(&call);
    return rc < 0 ? rc : last;
}

static int write_last_sent(struct place *p, const char *dir, struct act_error *err)
{
    ACT_AUTOFREE char *file = act_path_join(dir, RUN_FILE_SENT);
    int last = flow_last_sent(p->store, p->path, err);
    ACT_AUTOFREE char *text = act_sprintf("%d", last);

    return last < 0 ? last : act_file_write_quickly(file, text, strlen(text), 0600, err);
}

/* Sends what is to outlive the node of an attempt; dir also has files that are nobody else's business. */
static int send_logs(struct place *p, const char *dir, struct act_error *err)
{
    static const char *const folders[] = {RUN_DIR_USER, RUN_DIR_SYSTEM, RUN_DIR_METRICS};
    int rc = 0;

    for (size_t i = 0; rc == 0 && i < sizeof(folders) / sizeof(folders[0]); i++) {
        ACT_AUTOFREE char *from = act_path_join(dir, folders[i]);
        ACT_AUTOFREE char *to = act_path_join(p->path, folders[i]);
        if (access(from, F_OK) == 0)
            rc = flow_send_run_folder(&p->flow, p->store, to, folders[i], from, err);
    }
    return rc < 0 ? rc : send_status(p, dir, err);
}

static const struct {
    const char *name;
    int (*move)(struct flow *, struct store *, const char *, const char *, const char *, struct act_error *);
} moves[FLOW_MOVES] = {
    [FLOW_MOVE_DOWNLOAD] = {"download", flow_fetch_run_folder},
    [FLOW_MOVE_UPLOAD] = {"upload", flow_send_run_folder},
    [FLOW_MOVE_CHANGES] = {"changes", flow_send_run_changes},
};

const char *flow_move_name(enum flow_move move)
{
    return moves[move].name;
}

int flow_move_run_folder(const char *run_dir, const char *folder, const char *dir, enum flow_move move,
                         struct act_error *err)
{
    ACT_AUTOFREE char *given = act_path_join(run_dir, RUN_FILE_STORES);
    struct place p = {0};
    int rc = access(given, F_OK) == 0 ? open_given(given, folder, &p, err) : open_of_project(run_dir, folder, &p, err);

    if (rc == 0 && run_folders_attempt_of(folder))
        rc = send_logs(&p, dir, err);
    else if (rc == 0 && act_streq(folder, RUN_STORE_LOGS))
        rc = write_last_sent(&p, dir, err);
    else if (rc == 0 && act_streq(folder, RUN_STORE_PACKAGE))
        rc = flow_fetch_run_file(&p.flow, p.store, p.path, dir, RUN_FILE_PACKAGE, err);
    else if (rc == 0)
        rc = moves[move].move(&p.flow, p.store, p.path, folder, dir, err);
    store_free(p.store);
    free(p.path);
    flow_close(&p.flow);
    return rc;
}
