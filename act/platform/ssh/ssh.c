/* ssh.c - machines without a scheduler, behind ssh. On each of them a run is one of its platform "local": the machine
 * has the queue, the supervisor is a daemon there, and all information about the run is in its folder there,
 * <ssh.root>/runs/<id>/, which is read as that of any site. For all but reading, ACT's program there (host.c), which
 * came with the agent, is asked.
 *
 * A cluster may have several machines. A run is on one of them, or on as many as it has nodes (group.c). They are
 * chosen when it is submitted and written into its configuration, so that it is found there, and nobody else is asked
 * about it.
 */
#include <string.h>

#include "base/hash.h"
#include "base/log.h"
#include "base/text.h"
#include "codec/json.h"
#include "config/config.h"
#include "platform/ssh/ssh_internal.h"
#include "store/store.h"

/* ---- submit ---- */

static int hosts_check_settings(struct platform *p, const struct run_spec *spec, struct act_error *err)
{
    (void)p;
    if (spec->argv.n == 0)
        return act_error_set(err, ACT_USAGE, "there is no command to run");
    return platform_check_shares(spec, "machines behind ssh", err);
}

static int hosts_hash_package(const struct platform_submission *submission, char out[ACT_SHA256_HEX],
                              struct act_error *err)
{
    const char *known = submission->spec->package_sha256;

    memcpy(out, known, strlen(known) + 1);
    return *known || !submission->package ? 0 : act_sha256_file(submission->package, out, err);
}

int hosts_bring(struct hosts *s, struct hosts_host *h, const struct platform_submission *submission,
                struct act_error *err)
{
    char sha256[ACT_SHA256_HEX];
    struct site *site = NULL;
    int rc = hosts_hash_package(submission, sha256, err);

    if (rc == 0)
        rc = hosts_site(s, h, &site, err);
    return rc < 0 || !submission->package ? rc : site_bring_package(site, submission->package, sha256, err);
}

int hosts_start(struct hosts *s, const struct hosts_run *run, size_t i, const struct platform_submission *submission,
                struct act_error *err)
{
    CODEC_AUTOJSON json_t *out = NULL;
    char sha256[ACT_SHA256_HEX];
    int rc = hosts_hash_package(submission, sha256, err);

    if (rc < 0)
        return rc;
    const struct site_package package = {submission->package, sha256};
    json_t *request = json_pack("{s:o, s:o, s:o*, s:s?, s:s?}", "spec", run_spec_to_json(submission->spec), "secrets",
                                run_secrets_to_json(submission->spec), "machines", hosts_machines_of(run, i), "stores",
                                submission->stores, "package", package.path ? sha256 : NULL);
    return hosts_call(
        s, run->v[i],
        &(struct hosts_request){.verb = "start", .in = request, .package = package.path ? &package : NULL}, &out, err);
}

static int hosts_submit(struct platform *p, const struct platform_submission *submission, struct act_error *err)
{
    struct hosts *s = hosts_of(p);
    const char *id = submission->spec->id;
    const struct hosts_run *run = hosts_place(s, submission->spec, err);
    int rc = run ? 0 : -(int)err->code;

    if (run) {
        *submission->asked = true;
        rc = hosts_start_all(s, run, submission, err);
    }
    return rc < 0 ? act_error_prefix(err, "cannot submit '%s'", id) : 0;
}

/* ---- where a run is ---- */

struct hosts_question {
    const char *const *ids;
    size_t n;
    struct run_status *all; /* n for each machine */
};

static struct run_status *answers_of(const struct hosts *s, const struct hosts_host *h, const struct hosts_question *q)
{
    return q->all + (size_t)(h - s->v) * q->n;
}

static int hosts_ask_states(struct hosts *s, struct hosts_host *h, void *arg, struct act_error *err)
{
    const struct hosts_question *q = arg;
    CODEC_AUTOJSON json_t *out = NULL;
    json_t *ids = json_array();

    for (size_t i = 0; i < q->n; i++)
        json_array_append_new(ids, codec_json_bytes_new(q->ids[i]));
    int rc =
        hosts_call(s, h, &(struct hosts_request){.verb = "status", .in = json_pack("{s:o}", "ids", ids)}, &out, err);
    const json_t *states = json_object_get(out, "states");
    if (rc == 0 && json_array_size(states) != q->n)
        rc = act_error_set(err, ACT_FAIL, "'%s' gave a wrong response: 'states'", h->login);
    for (size_t i = 0; rc == 0 && i < q->n; i++)
        rc = run_status_from_json(json_array_get(states, i), &answers_of(s, h, q)[i], err);
    return rc;
}

/* A run is on the first machine that knows it. One that nobody knows may be on a machine that cannot be asked: then it
 * is the error of that one. */
static int hosts_take_status(const struct hosts *s, const struct hosts_question *q, size_t i, struct run_status *out,
                             struct act_error *err)
{
    int rc = 0;

    *out = (struct run_status){.state = RUN_UNKNOWN, .failed_rank = -1, .attempt = 1};
    for (size_t k = 0; k < s->n; k++) {
        const struct hosts_host *h = &s->v[k];
        if (h->rc == 0 && answers_of(s, h, q)[i].state != RUN_UNKNOWN) {
            *out = answers_of(s, h, q)[i];
            return 0;
        }
        if (h->rc < 0 && rc == 0) {
            *err = h->err;
            rc = h->rc;
        }
    }
    return rc;
}

static int hosts_status(struct platform *p, const char *const *ids, size_t n, struct run_status *out,
                        struct act_error *err)
{
    struct hosts *s = hosts_of(p);
    ACT_AUTOFREE struct run_status *all = act_calloc(s->n * n + 1, sizeof(*all));
    struct hosts_question q = {.ids = ids, .n = n, .all = all};
    int rc = 0;

    if (n > 0)
        hosts_each(s, hosts_ask_states, &q);
    for (size_t i = 0; rc == 0 && i < n; i++)
        rc = hosts_take_status(s, &q, i, &out[i], err);
    return rc < 0 ? act_error_prefix(err, "cannot find out the state of %s", n == 1 ? ids[0] : "the runs") : 0;
}

static int hosts_ask_there(struct hosts *s, struct hosts_host *h, void *arg, struct act_error *err)
{
    const char *id = arg;
    struct site_state state = {0};

    (void)s;
    int rc = site_states(h->site, &id, 1, &state, err);
    if (rc == 0 && !state.there)
        rc = act_error_set(err, ACT_NOT_FOUND, "there is no run '%s' on '%s'", id, h->login);
    site_states_release(&state, 1);
    return rc;
}

/* Warns of a machine that may have a part of a run which others have, too. */
static void hosts_warn_of_part(struct hosts_host *h)
{
    if (h->is_told)
        return;
    h->is_told = true;
    act_warn("what '%s' may have of the run is left out: %s", h->login, act_error_text(&h->err));
}

/* Takes the machines that have the run. Returns the error of one that cannot be asked if none has it. */
static int hosts_take_found(struct hosts *s, struct act_error *err)
{
    int rc = -ACT_NOT_FOUND;

    for (size_t i = 0; i < s->n; i++) {
        struct hosts_host *h = &s->v[i];
        if (h->rc == 0) {
            ACT_PUSH(s->last.v, s->last.n, h);
        } else if (rc == -ACT_NOT_FOUND) {
            *err = h->err;
            rc = h->rc;
        }
    }
    return s->last.n ? 0 : rc;
}

int hosts_find_all(struct hosts *s, const char *id, const struct hosts_run **out, struct act_error *err)
{
    ACT_AUTOFREE char *wanted = act_strdup(id);
    int rc = 0;

    *out = &s->last;
    if (act_streq(id, s->last_id))
        return 0;
    hosts_forget(s);
    if (s->n == 1) {
        ACT_PUSH(s->last.v, s->last.n, &s->v[0]);
    } else {
        hosts_each(s, hosts_ask_there, wanted);
        rc = hosts_take_found(s, err);
    }
    if (rc == -ACT_NOT_FOUND)
        return act_error_set(err, ACT_NOT_FOUND, "there is no run '%s' on any of the %zu machines", id, s->n);
    for (size_t i = 0; rc == 0 && s->last.n > 1 && i < s->n; i++)
        if (s->v[i].rc < 0 && s->v[i].rc != -ACT_NOT_FOUND)
            hosts_warn_of_part(&s->v[i]);
    if (rc == 0)
        act_str_replace(&s->last_id, wanted);
    return rc;
}

int hosts_find(struct hosts *s, const char *id, struct hosts_host **out, struct act_error *err)
{
    const struct hosts_run *run;
    int rc = hosts_find_all(s, id, &run, err);

    *out = rc < 0 ? NULL : run->v[0];
    return rc;
}

/* ---- the rest ---- */

static int hosts_spec(struct platform *p, const char *id, struct run_spec *out, struct act_error *err)
{
    struct hosts *s = hosts_of(p);
    struct hosts_host *h = NULL;
    struct site *site = NULL;
    int rc = hosts_find(s, id, &h, err);

    if (rc == 0)
        rc = hosts_site(s, h, &site, err);
    return rc < 0 ? rc : platform_site_spec(site, id, out, err);
}

static int hosts_ask_list(struct hosts *s, struct hosts_host *h, void *arg, struct act_error *err)
{
    struct act_strv *lists = arg;

    return site_list(h->site, &lists[h - s->v], err);
}

static int hosts_list(struct platform *p, struct act_strv *out_ids, struct act_error *err)
{
    struct hosts *s = hosts_of(p);
    struct act_strv *lists = act_calloc(s->n, sizeof(*lists));

    hosts_each(s, hosts_ask_list, lists);
    int rc = hosts_warn(s, err);
    for (size_t i = 0; i < s->n; i++) {
        act_strv_copy(out_ids, lists[i].v, lists[i].n);
        act_strv_release(&lists[i]);
    }
    free(lists);
    act_strv_sort(out_ids);
    return rc;
}

/* The logs of a run, whose machine is looked for when they are read. */
struct hosts_logs {
    struct hosts *s;
    char *id;
};

static int hosts_logs_site(void *arg, size_t i, struct site **out, struct act_error *err)
{
    const struct hosts_logs *logs = arg;
    const struct hosts_run *run;
    int rc = hosts_find_all(logs->s, logs->id, &run, err);

    *out = NULL;
    return rc < 0 || i >= run->n ? rc : hosts_site(logs->s, run->v[i], out, err);
}

static struct store *hosts_open_logs(struct platform *p, const char *id, bool ended)
{
    struct hosts *s = hosts_of(p);
    struct hosts_logs *logs = act_alloc(sizeof(*logs));

    *logs = (struct hosts_logs){.s = s, .id = act_strdup(id)};
    ACT_PUSH(s->logs, s->n_logs, logs);
    return platform_site_logs(p, hosts_logs_site, logs, id, ended);
}

static void hosts_free_logs(struct hosts *s)
{
    for (size_t i = 0; i < s->n_logs; i++) {
        free(s->logs[i]->id);
        free(s->logs[i]);
    }
    free(s->logs);
}

static struct platform *hosts_machine(struct platform *p, size_t i)
{
    struct hosts *s = hosts_of(p);

    if (s->n == 1 || i >= s->n)
        return i == 0 ? p : NULL;
    s->machines = s->machines ? s->machines : act_calloc(s->n, sizeof(*s->machines));
    if (!s->machines[i].v)
        s->machines[i] = (struct hosts){.base = s->base, .v = &s->v[i], .n = 1, .root = s->root};
    return &s->machines[i].base;
}

static void hosts_release_last(struct hosts *s)
{
    hosts_forget(s);
    free(s->last.v);
    free(s->why_not_all);
}

static void hosts_close(struct platform *p)
{
    struct hosts *s = hosts_of(p);

    for (size_t i = 0; s->machines && i < s->n; i++)
        hosts_free_logs(&s->machines[i]);
    hosts_free_logs(s);
    for (size_t i = 0; s->machines && i < s->n; i++)
        hosts_release_last(&s->machines[i]);
    free(s->machines);
    hosts_release_last(s);
    for (size_t i = 0; i < s->n; i++) {
        site_free(s->v[i].site);
        free(s->v[i].login);
    }
    free(s->v);
    free(s->root);
    free(s);
}

static int hosts_open(const struct config *config, struct platform **out, struct act_error *err)
{
    const struct ssh_keys *keys = ssh_keys(config);

    if (keys->hosts.n == 0)
        return act_error_set(err, ACT_CONFIG, "'ssh.hosts' names no machine: list at least one, such as [me@gpu1]");
    struct hosts *s = act_calloc(1, sizeof(*s));
    s->base.row = &platform_ssh;
    s->root = act_strdup(keys->root);
    s->config = config;
    s->wanted_gpu_per_node = config->gpu_per_node;
    s->n = keys->hosts.n;
    s->v = act_calloc(s->n, sizeof(*s->v));
    for (size_t i = 0; i < s->n; i++)
        s->v[i].login = act_strdup(keys->hosts.v[i]);
    *out = &s->base;
    return 0;
}

/* ---- interpreting a configuration ---- */

/* Returns "me@gpu1, me@gpu2", a new string. */
static char *hosts_text(const struct act_strv *hosts)
{
    struct act_buf text = {0};

    for (size_t i = 0; i < hosts->n; i++)
        act_buf_addf(&text, "%s%s", i ? ", " : "", hosts->v[i]);
    return act_buf_steal(&text);
}

static char *hosts_place_text(const struct config *config, const char *hosts)
{
    return act_sprintf("'%s' on %s", ssh_keys(config)->root ? ssh_keys(config)->root : "~/.act", hosts);
}

static char *hosts_place_of(const struct config *config)
{
    ACT_AUTOFREE char *hosts = hosts_text(&ssh_keys(config)->hosts);

    return hosts_place_text(config, hosts);
}

/* Tells whether all the machines of a run, as hosts_place_of() names them, are among those of the cluster. */
static bool hosts_has_place(const struct config *config, const char *where)
{
    const struct act_strv *hosts = &ssh_keys(config)->hosts;
    ACT_AUTOFREE char *root = hosts_place_text(config, "");
    bool has = act_starts_with(where, root);

    for (const char *at = where + (has ? strlen(root) : 0); has; at += strlen(", ")) {
        const char *end = strstr(at, ", ");
        ACT_AUTOFREE char *host = end ? act_strndup(at, (size_t)(end - at)) : act_strdup(at);
        has = act_strv_has(hosts, host);
        if (!end)
            break;
        at = end;
    }
    return has;
}

/* A run that is repeated goes to the machines that it was on, if they have room: what it has kept there is near. */
static void hosts_repeat(struct config *config, const struct run_spec *old)
{
    struct act_strv *hosts = &ssh_keys(config)->hosts;
    ACT_AUTO(act_strv) before = {0}, all = {0};

    (void)!codec_json_strv_get(json_object_get(json_object_get(old->config, ssh_keys_part.name), "hosts"), &before);
    for (size_t i = 0; i < before.n; i++)
        if (act_strv_has(hosts, before.v[i]))
            act_strv_push(&all, before.v[i]);
    for (size_t i = 0; i < hosts->n; i++)
        if (!act_strv_has(&all, hosts->v[i]))
            act_strv_push(&all, hosts->v[i]);
    for (size_t i = 0; i < hosts->n && all.n == hosts->n; i++)
        act_str_replace(&hosts->v[i], all.v[i]);
}

static const char *const place_keys[] = {"ssh.hosts", "ssh.root", NULL};

static void hosts_reach(const struct config *config, struct platform_reaches *out)
{
    ACT_AUTOFREE char *hosts = hosts_text(&ssh_keys(config)->hosts);

    if (!act_streq(config->platform, ssh_kind.name))
        return;
    platform_reaches_add(out, PLATFORM_LOGIN, "ssh.hosts", hosts);
    platform_reaches_add(out, PLATFORM_LOGIN, "ssh.root", ssh_keys(config)->root);
}

/* ---- the row ---- */

/* It is asked of one machine: a cluster of several is taken apart by hosts_machine() first. */
static int hosts_site_of(struct platform *p, struct site **out, struct act_error *err)
{
    struct hosts *s = hosts_of(p);

    return hosts_site(s, &s->v[0], out, err);
}

/* Folders of the mode 'path' are on all machines, and so on the first one. */
static bool hosts_login(const struct config *config, const char **out_login, const char **out_root)
{
    const struct ssh_keys *keys = ssh_keys(config);

    if (keys->hosts.n == 0)
        return false;
    *out_login = keys->hosts.v[0];
    *out_root = keys->root;
    return true;
}

const struct platform_row platform_ssh = {
    .kind = &ssh_kind,
    .about = {.keeps_record = true,
              .runs_after = true,
              .tries_again = true,
              .nodes_share_folder = true,
              .nodes_apart = true,
              .agent_mounts = true,
              .asked_apart = true},
    .place = {.words = hosts_place_of, .has = hosts_has_place, .keys = place_keys, .login = hosts_login},
    .settings = {.reach = hosts_reach, .repeat = hosts_repeat},
    .open = hosts_open,
    .close = hosts_close,
    .submit = {.check_settings = hosts_check_settings,
               .check = hosts_check,
               .settle = hosts_settle,
               .one = hosts_submit},
    .runs = {.status = hosts_status,
             .abort = hosts_abort,
             .abort_waits = true,
             .open_logs = hosts_open_logs,
             .spec = hosts_spec,
             .list = hosts_list},
    .nodes = {.limits = hosts_limits,
              .of_run = hosts_nodes,
              .shell = hosts_shell,
              .agent = hosts_agent,
              .summary = hosts_summary,
              .jobs = hosts_jobs,
              .examine = hosts_examine,
              .examine_place = hosts_examine_place,
              .examine_setup = hosts_examine_setup},
    .keep = {.site = hosts_site_of, .machine = hosts_machine},
    .setup = &ssh_setup,
};
