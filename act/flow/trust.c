/* trust.c - the record of trusted projects, and asking the user. */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "base/dirs.h"
#include "base/file.h"
#include "base/path.h"
#include "codec/json.h"
#include "config/config.h"
#include "config/kind.h"
#include "flow/trust.h"
#include "platform/platform.h"

static int (*ask_user)(const char *project, const struct act_strv *items, struct act_error *err);

void flow_trust_asks(int (*ask)(const char *project, const struct act_strv *items, struct act_error *err))
{
    ask_user = ask;
}

/* ---- the record */

static char *record_path(const char *suffix)
{
    ACT_AUTOFREE char *dir = act_state_dir();

    return act_sprintf("%s/trusted.json%s", dir, suffix);
}

/* An empty one if nothing was ever trusted. */
static int trust_read_record(json_t **out, struct act_error *err)
{
    enum { RECORD_MAX = 16 << 20 };
    ACT_AUTOFREE char *path = record_path("");

    *out = NULL;
    if (access(path, F_OK) < 0 && errno == ENOENT) {
        *out = json_pack("{s:i, s:[]}", "version", 1, "projects");
        return 0;
    }
    int rc = codec_json_read(path, RECORD_MAX, out, err);
    if (rc == 0 && !json_is_array(json_object_get(*out, "projects"))) {
        json_decref(*out);
        *out = NULL;
        rc = act_error_set(err, ACT_CONFIG, "'%s' is not what ACT wrote there; remove it", path);
    }
    return rc;
}

/* The index of the project in the list; the length of the list if it is missing. */
static size_t find_project(const json_t *projects, const char *real)
{
    size_t i = 0;

    for (; i < json_array_size(projects); i++) {
        ACT_AUTOFREE char *path = codec_json_bytes_get(json_object_get(json_array_get(projects, i), "path"));
        if (act_streq(path, real))
            break;
    }
    return i;
}

static void trusted_in(const json_t *record, const char *real, struct act_strv *out)
{
    const json_t *projects = json_object_get(record, "projects");

    codec_json_strv_get(json_object_get(json_array_get(projects, find_project(projects, real)), "trusted"), out);
}

static int trusted_of(const char *real, struct act_strv *out, struct act_error *err)
{
    CODEC_AUTOJSON json_t *record = NULL;
    int rc = trust_read_record(&record, err);

    if (rc == 0)
        trusted_in(record, real, out);
    return rc;
}

/* Appends to out the items that known lacks; both may be the same. */
static void trust_add_new(const struct act_strv *items, const struct act_strv *known, struct act_strv *out)
{
    for (size_t i = 0; i < items->n; i++)
        if (!act_strv_has(known, items->v[i]))
            act_strv_push(out, items->v[i]);
}

int flow_untrusted(const char *project, const struct act_strv *items, struct act_strv *out, struct act_error *err)
{
    ACT_AUTOFREE char *real = flow_real_place(project);
    ACT_AUTO(act_strv) trusted = {0};
    int rc = items->n ? trusted_of(real, &trusted, err) : 0;

    if (rc == 0)
        trust_add_new(items, &trusted, out);
    return rc;
}

/* Reads the record, adds to what is trusted of the project, or forgets it (NULL), and writes it, under a lock. */
static int change_record(const char *real, const struct act_strv *keep, bool *out_had, struct act_error *err)
{
    ACT_AUTOFREE char *path = record_path(""), *lock_path = record_path(".lock");
    ACT_AUTOFREE char *dir = act_state_dir();
    CODEC_AUTOJSON json_t *record = NULL;
    ACT_AUTO(act_strv) all = {0};
    int rc = act_mkdir_all(dir, 0700, err), lock = rc < 0 ? rc : act_lock_shortly(lock_path, err);

    if (lock < 0)
        return lock;
    rc = trust_read_record(&record, err);
    if (rc == 0 && keep) {
        trusted_in(record, real, &all);
        trust_add_new(keep, &all, &all);
    }
    json_t *projects = json_object_get(record, "projects");
    size_t at = find_project(projects, real);
    *out_had = rc == 0 && at < json_array_size(projects);
    if (*out_had)
        json_array_remove(projects, at);
    if (rc == 0 && keep)
        json_array_append_new(projects, json_pack("{s:o, s:o}", "path", codec_json_bytes_new(real), "trusted",
                                                  codec_json_strv_new(&all)));
    if (rc == 0)
        rc = codec_json_write(path, record, 0600, err);
    close(lock);
    return rc;
}

int flow_trust_keep(const char *project, const struct act_strv *items, struct act_error *err)
{
    ACT_AUTOFREE char *real = flow_real_place(project);
    bool had;

    return change_record(real, items, &had, err);
}

int flow_trust_forget(const char *project, bool *out_had, struct act_error *err)
{
    ACT_AUTOFREE char *real = flow_real_place(project);

    return change_record(real, NULL, out_had, err);
}

int flow_trust_list(json_t **out, struct act_error *err)
{
    CODEC_AUTOJSON json_t *record = NULL;
    int rc = trust_read_record(&record, err);

    *out = rc == 0 ? json_incref(json_object_get(record, "projects")) : NULL;
    return rc;
}

/* ---- the question */

/* Tells whether ACT_TRUSTED_PROJECTS names the project, or a folder above it. */
static bool environment_trusts(const char *project)
{
    const char *text = getenv("ACT_TRUSTED_PROJECTS");
    ACT_AUTOFREE char *real = NULL;

    if (!text || !*text)
        return false;
    if (strcmp(text, "*") == 0)
        return true;
    real = flow_real_place(project);
    for (size_t n; *text; text += n + (text[n] == ':')) {
        n = strcspn(text, ":");
        ACT_AUTOFREE char *path = act_strndup(text, n);
        ACT_AUTOFREE char *place = *path == '/' ? flow_real_place(path) : NULL;
        if (place && act_path_is_within(real, place))
            return true;
    }
    return false;
}

/* The subject of the question, to determine it again after the answer. */
struct matter {
    const char *project;
    const struct config *config; /* NULL: only the folder of the logs */
    const char *folder, *rest;   /* a path; NULL: all */
    bool links;                  /* the links below that path */
    const char *recalled;        /* the cluster of a run whose place config is; NULL: it is the project's */
};

static void trust_collect(const struct matter *m, struct act_strv *items)
{
    if (m->recalled)
        flow_reach_recalled(m->config, items);
    else if (!m->config)
        flow_reach_logs(m->project, items);
    else if (m->links)
        flow_reach_links(m->config, m->folder, m->rest, items);
    else if (m->folder)
        flow_reach_path(m->config, m->folder, m->rest, items);
    else
        flow_reach(m->config, items);
}

static bool is_the_same(const struct act_strv *a, const struct act_strv *b)
{
    bool same = a->n == b->n;

    for (size_t i = 0; same && i < a->n; i++)
        same = strcmp(a->v[i], b->v[i]) == 0;
    return same;
}

/* Tells whether some of it follows from -p, which then has to be said again. */
static bool has_typed(const struct act_strv *items)
{
    bool has = false;

    for (size_t i = 0; i < items->n && !has; i++)
        has = act_starts_with(items->v[i], "-p: ");
    return has;
}

static int nobody_to_ask(const struct matter *m, const struct act_strv *items, struct act_error *err)
{
    ACT_AUTOFREE char *more = items->n > 1 ? act_sprintf(" (and %zu more)", items->n - 1) : act_strdup("");

    act_error_set(err, ACT_DENIED, "the project '%s' reaches out of its folder: %s%s", m->project, items->v[0], more);
    if (m->recalled)
        return act_error_hint(err,
                              "it is where this run is, and has changed since it was trusted; if you trust it, answer "
                              "at a terminal, or say so there with 'a -c %s trust', if that cluster names it",
                              m->recalled);
    const char *cluster = m->config && m->config->file ? m->config->cluster : NULL;
    return act_error_hint(err,
                          "if you trust it, say so there with 'a %s%s%s%strust'%s; without a terminal, with 'trust -y'",
                          cluster ? "-c " : "", cluster ? cluster : "", cluster ? " " : "",
                          has_typed(items) ? "-p ... " : "", has_typed(items) ? " and what you gave -p now" : "");
}

/* The questions that were answered with no: commands that go through many runs come back to the same one. */
static struct act_strv refused;

static char *trust_question_of(const struct matter *m, const struct act_strv *items)
{
    ACT_AUTO(act_buf) text = {0};

    act_buf_adds(&text, m->project);
    for (size_t i = 0; i < items->n; i++)
        act_buf_addf(&text, "\n%s", items->v[i]);
    return act_buf_steal(&text);
}

/* Asks once; what follows from no is said again. */
static int trust_ask_once(const struct matter *m, const struct act_strv *shown, struct act_error *err)
{
    ACT_AUTOFREE char *question = trust_question_of(m, shown);

    if (!ask_user)
        return 1;
    if (act_strv_has(&refused, question))
        return act_error_set(err, ACT_DENIED, "'%s' is not trusted: nothing was done", m->project);
    int rc = ask_user(m->project, shown, err);
    if (rc < 0)
        act_strv_push(&refused, question);
    return rc;
}

/* The items now must be those that the user saw: a link may have changed while the question was open. */
static int ask_trust(const struct matter *m, const struct act_strv *shown, const struct act_strv *all,
                     struct act_error *err)
{
    ACT_AUTO(act_strv) now = {0};
    int rc = trust_ask_once(m, shown, err);

    if (rc == 1)
        return nobody_to_ask(m, shown, err);
    if (rc < 0)
        return rc;
    trust_collect(m, &now);
    return is_the_same(all, &now) ? flow_trust_keep(m->project, shown, err)
                                  : act_error_set(err, ACT_DENIED,
                                                  "what leads out of '%s' was changed while you were asked: "
                                                  "nothing is trusted",
                                                  m->project);
}

static int decide_trust(const struct matter *m, struct act_error *err)
{
    ACT_AUTO(act_strv) all = {0}, unknown = {0};
    int rc = 0;

    if (environment_trusts(m->project))
        return 0;
    trust_collect(m, &all);
    rc = flow_untrusted(m->project, &all, &unknown, err);
    if (rc == 0 && unknown.n > 0)
        rc = ask_trust(m, &unknown, &all, err);
    return rc;
}

/* Tells whether a line says the item of some file. */
static bool trust_is_said(const struct act_strv *trusted, const char *item)
{
    ACT_AUTOFREE char *end = act_sprintf(": %s", item);
    bool said = act_strv_has(trusted, item);

    for (size_t i = 0; i < trusted->n && !said; i++)
        said = act_ends_with(trusted->v[i], end);
    return said;
}

/* Tells whether the user was asked about this kubeconfig, whatever was in it. */
static bool was_asked(const struct act_strv *trusted, const char *key, const char *kubeconfig)
{
    ACT_AUTOFREE char *said = act_sprintf("'%s' is '%s, with SHA-256 ", key, kubeconfig);
    bool asked = false;

    for (size_t i = 0; i < trusted->n && !asked; i++)
        asked = strstr(trusted->v[i], said) != NULL;
    return asked;
}

static bool is_in_project(const char *project, const char *kubeconfig)
{
    ACT_AUTOFREE char *real = flow_real_place(project), *place = flow_real_place(kubeconfig);

    return act_path_is_within(place, real) || act_path_is_within(kubeconfig, project);
}

static const char *login_file_key(const struct config *config)
{
    return platform_find(config->platform)->kind->login_file_key;
}

/* Otherwise nobody would know later that it was the user who named a file of the project. */
int flow_trust_submitted(const struct config *config, struct act_error *err)
{
    const char *key = login_file_key(config), *kubeconfig = key ? config_text(config, key) : NULL;
    ACT_AUTO(act_strv) items = {0};

    if (!kubeconfig || !config_is_own(config, key) || !is_in_project(config->project_root, kubeconfig))
        return 0;
    flow_reach_recalled(config, &items);
    return items.n ? flow_trust_keep(config->project_root, &items, err) : 0;
}

int flow_trust_added(const struct config *config, const struct act_strv *before, struct act_strv *out,
                     struct act_error *err)
{
    ACT_AUTO(act_strv) now = {0};

    if (environment_trusts(config->project_root))
        return 0;
    flow_reach_platform(config, &now);
    trust_add_new(&now, before, out);
    return out->n ? flow_trust_keep(config->project_root, out, err) : 0;
}

/* A kubeconfig that is not in the project, and was never asked about, is the user's own. */
int flow_trust_recalled(const char *project, const char *cluster, const struct config *config, struct act_error *err)
{
    const struct matter m = {.project = project, .config = config, .recalled = cluster};
    const char *key = login_file_key(config), *kubeconfig = key ? config_text(config, key) : NULL;
    ACT_AUTO(act_strv) all = {0}, trusted = {0}, unknown = {0};

    if (!kubeconfig || environment_trusts(project))
        return 0;
    ACT_AUTOFREE char *real = flow_real_place(project);
    int rc = trusted_of(real, &trusted, err);
    if (rc < 0 || (!is_in_project(project, kubeconfig) && !was_asked(&trusted, key, kubeconfig)))
        return rc;
    trust_collect(&m, &all);
    for (size_t i = 0; i < all.n; i++)
        if (!trust_is_said(&trusted, all.v[i]))
            act_strv_push(&unknown, all.v[i]);
    return unknown.n ? ask_trust(&m, &unknown, &all, err) : 0;
}

int flow_trust(const struct config *config, struct act_error *err)
{
    return decide_trust(&(struct matter){.project = config->project_root, .config = config}, err);
}

int flow_trust_path(const struct config *config, const char *folder, const char *rest, struct act_error *err)
{
    return decide_trust(
        &(struct matter){.project = config->project_root, .config = config, .folder = folder, .rest = rest}, err);
}

int flow_trust_links(const struct config *config, const char *folder, const char *rest, struct act_error *err)
{
    const struct matter m = {
        .project = config->project_root, .config = config, .folder = folder, .rest = rest, .links = true};

    return decide_trust(&m, err);
}

int flow_trust_logs(const char *project, struct act_error *err)
{
    return decide_trust(&(struct matter){.project = project}, err);
}
