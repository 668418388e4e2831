/* job_files.c - what the nodes of a run fetch from the store of the code where they share no file system with anybody:
 * the package, the agent, run.json. In that store, with code_path "a/code.zip":
 *   a/code/<sha256>.zip           the package
 *   a/code/bin/<16 hex>/act-node  the agent, by its content
 *   a/code/runs/<id>.json         run.json, without secrets
 * With submit_with_url the nodes get URLs that read just these files, for a week: a job cannot get others later.
 */
#include <string.h>

#include "base/path.h"
#include "codec/json.h"
#include "config/config.h"
#include "flow/flow_internal.h"
#include "flow/submit/parts.h"
#include "proc/proc.h"

/* Uploads a local file unless the key exists: the name is a hash of the content. */
static int job_files_put_file(struct flow *flow, struct store *store, const char *file, const char *key,
                              struct act_error *err)
{
    ACT_AUTOFREE char *dir = act_path_dirname(file);
    ACT_AUTOFREE char *name = act_strdup(act_path_basename(file));
    struct transfer_path from = {.path = name};
    ACT_AUTO(transfer_report) report = {0};
    struct act_error ignored;
    char etag[STORE_ETAG];
    uint64_t size;
    int rc = flow_exists(store, key, etag, &size, err);

    if (rc != 0)
        return rc < 0 ? rc : 0;
    rc = store_folder_open(flow_http(flow), dir, false, &from.store, err);
    if (rc < 0)
        return rc;
    rc = transfer_copy(flow_engine(flow), &from, store, key, &(struct transfer_options){0}, &report, err);
    store_free(from.store);
    if (rc < 0 && rc != -ACT_INTERRUPTED && flow_exists(store, key, etag, &size, &ignored) == 1)
        return 0; /* it came there meanwhile */
    return rc;
}

static int put_agent(struct flow *flow, struct store *store, char **out_key, struct act_error *err)
{
    enum { HASH_SHOWN = 16 };
    ACT_AUTOFREE char *agent = NULL;
    char hash[ACT_SHA256_HEX];
    int rc = proc_find_sibling("act-node", &agent, err);

    if (rc == 0)
        rc = act_sha256_file(agent, hash, err);
    if (rc < 0)
        return rc;
    *out_key = flow_code_key(flow, "bin/%.*s/act-node", HASH_SHOWN, hash);
    return job_files_put_file(flow, store, agent, *out_key, err);
}

static int put_spec(struct flow *flow, struct store *store, const struct run_spec *spec, char **out_key,
                    struct act_error *err)
{
    CODEC_AUTOJSON json_t *json = run_spec_to_json(spec);
    ACT_AUTOFREE char *text = codec_json_line(json);

    *out_key = flow_code_key(flow, "runs/%s.json", spec->id);
    return flow_put_text(store, *out_key, text, err);
}

static int make_urls(struct store *store, const struct run_spec *spec, struct flow_job_files *files,
                     struct act_error *err)
{
    enum { LIFE_S = 7 * 24 * 3600 }; /* the longest that a login can sign for */
    int rc = store_url(store, files->agent_key, "r", LIFE_S, &files->agent_url, err);

    if (rc == 0)
        rc = store_url(store, files->spec_key, "r", LIFE_S, &files->spec_url, err);
    if (rc == 0 && spec->package_key)
        rc = store_url(store, spec->package_key, "r", LIFE_S, &files->package_url, err);
    return rc;
}

static int put_package(struct flow *flow, struct store *store, struct run_spec *spec, const char *file,
                       struct act_error *err)
{
    free(spec->package_key);
    spec->package_key = flow_package_key(flow, spec->package_sha256);
    return job_files_put_file(flow, store, file, spec->package_key, err);
}

int flow_store_package(struct flow *flow, struct run_spec *spec, const char *file, struct act_error *err)
{
    struct store *store = NULL;
    int rc = flow_store(flow, &flow->config->code, &store, err);

    if (rc == 0)
        rc = put_package(flow, store, spec, file, err);
    store_free(store);
    return rc < 0 ? act_error_prefix(err, "cannot store the package that the nodes need") : 0;
}

int flow_store_job(struct flow *flow, struct run_spec *spec, const char *package, struct flow_job_files *out,
                   struct act_error *err)
{
    struct store *store = NULL;
    int rc = flow_store(flow, &flow->config->code, &store, err);

    *out = (struct flow_job_files){0};
    if (rc == 0 && package) /* a run that is repeated elsewhere brings its package along */
        rc = put_package(flow, store, spec, package, err);
    if (rc == 0)
        rc = put_agent(flow, store, &out->agent_key, err);
    if (rc == 0)
        rc = put_spec(flow, store, spec, &out->spec_key, err);
    if (rc == 0 && flow->config->code.submit_with_url)
        rc = make_urls(store, spec, out, err);
    store_free(store);
    return rc < 0 ? act_error_prefix(err, "cannot store what the nodes need") : 0;
}

void flow_job_files_release(struct flow_job_files *files)
{
    free(files->agent_key);
    free(files->spec_key);
    free(files->agent_url);
    free(files->spec_url);
    free(files->package_url);
    *files = (struct flow_job_files){0};
}
