/* host.c - this machine, for another one whose cluster file names it under 'ssh.hosts': "act __host VERB ROOT" reads
 * one JSON object and prints another. The platform "local" does what is asked; call.c asks. */
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/utsname.h>

#include "base/file.h"
#include "base/hash.h"
#include "base/path.h"
#include "codec/fields.h"
#include "codec/json.h"
#include "platform/local/machine.h"
#include "platform/ssh/ssh_internal.h"
#include "proc/proc.h"
#include "run/machines.h"

struct host_request {
    struct platform *here;
    const json_t *in;
    json_t *out;
};

static const char *host_id(const struct host_request *r)
{
    return codec_json_str(r->in, "id", "");
}

static int host_malformed(const char *what, struct act_error *err)
{
    return act_error_set(err, ACT_USAGE, "the request has no valid '%s'", what);
}

static int host_respond(struct host_request *r, const struct fields *fields, const void *record)
{
    json_object_update_new(r->out, fields_to_json(fields, record));
    return 0;
}

/* ---- the verbs */

/* Machines may share a root, those of one kernel too, and have one each. */
static int64_t host_place(const struct host_request *r)
{
    enum { ID_MAX = 64, DIGITS = 12 };
    ACT_AUTOFREE char *boot = NULL;
    struct utsname name;
    struct site *site;
    struct stat st;
    struct act_error ignored;
    struct act_sha256 hash;
    char hex[ACT_SHA256_HEX];

    if (r->here->row->keep.site(r->here, &site, &ignored) < 0 || stat(site_root(site), &st) < 0 || uname(&name) < 0 ||
        act_file_read("/proc/sys/kernel/random/boot_id", ID_MAX, &boot, NULL, NULL) < 0)
        return 0;
    ACT_AUTOFREE char *text = act_sprintf("%s %s %llu %llu", boot, name.nodename, (unsigned long long)st.st_dev,
                                          (unsigned long long)st.st_ino);
    act_sha256_init(&hash);
    act_sha256_add(&hash, text, strlen(text));
    act_sha256_done(&hash, hex);
    hex[DIGITS] = '\0';
    return strtoll(hex, NULL, 16);
}

static int host_look(struct host_request *r, struct act_error *err)
{
    ACT_AUTO(platform_summary) summary = {0};
    ACT_AUTOFREE char *mpirun = proc_find_in_path("mpirun");
    int rc = platform_summary(r->here, &summary, err);
    const struct platform_pool *all = &summary.total;

    if (rc < 0)
        return rc;
    const struct hosts_facts facts = {.slots = all->gpus,
                                      .idle = all->gpus_idle,
                                      .running = all->jobs_running,
                                      .queued = all->jobs_queued,
                                      .slots_queued = all->gpus_queued,
                                      .place = host_place(r),
                                      .has_gpus = summary.has_gpus,
                                      .has_mpirun = mpirun};
    return host_respond(r, &hosts_facts_fields, &facts);
}

static int host_start_run(struct host_request *r, const struct run_spec *spec, struct act_error *err)
{
    ACT_AUTOWIPE char *stores = codec_json_strdup(r->in, "stores");
    const json_t *list = json_object_get(r->in, "machines");
    ACT_AUTOWIPE char *machines = list ? codec_json_line(list) : NULL;
    const char *package = codec_json_str(r->in, "package", NULL);
    struct site *site;
    bool asked;
    int rc = r->here->row->keep.site(r->here, &site, err);

    if (rc == 0 && package && !act_is_hex(package, ACT_SHA256_HEX - 1))
        rc = host_malformed("package", err);
    if (rc < 0)
        return rc;
    ACT_AUTOFREE char *path = package ? act_sprintf("%s/packages/%s.zip", site_root(site), package) : NULL;
    const struct platform_submission submission = {
        .spec = spec, .package = path, .stores = stores, .machines = machines, .asked = &asked};
    return platform_submit(r->here, &submission, err);
}

static int host_start(struct host_request *r, struct act_error *err)
{
    ACT_AUTO(run_spec) spec = {0};
    int rc = run_spec_from_json(json_object_get(r->in, "spec"), &spec, err);

    if (rc < 0)
        return rc;
    run_secrets_from_json(&spec, json_object_get(r->in, "secrets"));
    return host_start_run(r, &spec, err);
}

static int host_status(struct host_request *r, struct act_error *err)
{
    ACT_AUTO(act_strv) ids = {0};
    json_t *states = json_array();

    json_object_set_new(r->out, "states", states);
    if (!codec_json_strv_get(json_object_get(r->in, "ids"), &ids))
        return host_malformed("ids", err);
    ACT_AUTOFREE struct run_status *status = act_calloc(ids.n + 1, sizeof(*status));
    int rc = platform_status(r->here, (const char *const *)ids.v, ids.n, status, err);
    for (size_t i = 0; rc == 0 && i < ids.n; i++)
        json_array_append_new(states, run_status_to_json(&status[i]));
    return rc;
}

/* Says an error as the whole response does; hosts_check_response() reads it. */
static void host_say_error(json_t *out, const struct act_error *err)
{
    json_object_set_new(out, "code", json_integer((int)err->code));
    json_object_set_new(out, "error", codec_json_bytes_new(act_error_text(err)));
}

static int host_abort(struct host_request *r, struct act_error *err)
{
    ACT_AUTO(act_strv) ids = {0};
    json_t *list = json_array();

    json_object_set_new(r->out, "ends", list);
    if (!codec_json_strv_get(json_object_get(r->in, "ids"), &ids))
        return host_malformed("ids", err);
    ACT_AUTOFREE struct platform_end *ends = act_calloc(ids.n + 1, sizeof(*ends));
    for (size_t i = 0; i < ids.n; i++)
        ends[i].id = ids.v[i];
    platform_abort_all(r->here, ends, ids.n);
    for (size_t i = 0; i < ids.n; i++) {
        json_t *end = json_pack("{s:b}", "was_final", ends[i].was_final);
        if (ends[i].rc < 0)
            host_say_error(end, &ends[i].err);
        json_array_append_new(list, end);
    }
    return 0;
}

/* Says which of the run's nodes this machine is. */
static void host_number_nodes(struct host_request *r, struct platform_nodes *nodes)
{
    ACT_AUTO(run_machines) machines = {0};
    ACT_AUTOFREE char *dir = local_run_dir(r->here, host_id(r));
    struct act_error ignored;

    if (!run_has_machines(dir) || run_machines_read(dir, &machines, &ignored) < 0)
        return;
    for (size_t i = 0; i < nodes->n; i++) {
        nodes->v[i].rank = machines.index;
        nodes->v[i].first_rank = machines.index * nodes->v[i].n_ranks;
    }
}

static int host_nodes(struct host_request *r, struct act_error *err)
{
    ACT_AUTO(platform_nodes) nodes = {0};
    int rc = platform_nodes(r->here, host_id(r), &nodes, err);

    if (rc == 0)
        host_number_nodes(r, &nodes);
    return rc < 0 ? rc : host_respond(r, &hosts_nodes_fields, &nodes);
}

/* Responds with the words that are to be executed here. */
static int host_shell(struct host_request *r, struct act_error *err)
{
    ACT_AUTO(act_strv) command = {0};
    ACT_AUTO(platform_shell) shell = {0};

    if (!codec_json_strv_get(json_object_get(r->in, "command"), &command))
        return host_malformed("command", err);
    int rc = platform_shell(r->here, host_id(r), codec_json_str(r->in, "node", NULL), &command, &shell, err);
    json_object_set_new(r->out, "argv", codec_json_strv_new(&shell.argv));
    return rc;
}

static int host_jobs(struct host_request *r, struct act_error *err)
{
    ACT_AUTO(platform_jobs) jobs = {0};
    int rc = platform_jobs(r->here, &jobs, err);

    return rc < 0 ? rc : host_respond(r, &hosts_jobs_fields, &jobs);
}

static const struct {
    const char *name;
    int (*serve)(struct host_request *r, struct act_error *err);
} verbs[] = {
    {"abort", host_abort}, {"jobs", host_jobs},   {"look", host_look},     {"nodes", host_nodes},
    {"shell", host_shell}, {"start", host_start}, {"status", host_status},
};

int platform_serve_host(struct platform *here, const char *verb, const json_t *in, json_t *out, struct act_error *err)
{
    struct host_request r = {.here = here, .in = in, .out = out};

    for (size_t i = 0; i < sizeof(verbs) / sizeof(verbs[0]); i++)
        if (strcmp(verbs[i].name, verb) == 0)
            return verbs[i].serve(&r, err);
    return act_error_set(err, ACT_USAGE, "there is no request '%s'", verb);
}
