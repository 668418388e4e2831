/* doctor.c - checks that all that the runs of a cluster need is there, by its configuration, stores and platform.
 * It writes nothing, there or here, but what the login keeps in the cache: what is not there yet could be made. */
#include <ctype.h>
#include <string.h>
#include <unistd.h>

#include "base/dirs.h"
#include "base/file.h"
#include "base/path.h"
#include "base/secrets.h"
#include "config/config.h"
#include "flow/cluster/doctor.h"
#include "flow/flow_internal.h"
#include "flow/trust.h"
#include "site/site.h"

/* Tells whether there is a configuration to go on with. */
static bool examine_config(struct flow *flow, const struct config_request *request, struct platform_findings *findings)
{
    static const char what[] = "configuration";
    ACT_AUTO(config_report) report = {0};
    const struct act_strv *problems = &report.problems;
    struct act_error err;
    int rc = flow_check_config(request, &report, &err);

    for (size_t i = 0; i < problems->n; i++)
        platform_findings_add(findings, false, what, "%s", problems->v[i]);
    if (rc == 0)
        rc = flow_load(flow, request, &err);
    if (rc == 0)
        rc = flow_trust(flow->config, &err);
    if (rc == 0)
        flow_use_vaults(flow, flow->config);
    if (rc < 0 && (problems->n == 0 || rc == -ACT_DENIED))
        platform_findings_add(findings, false, what, "%s", act_error_text(&err));
    if (rc == 0 && problems->n == 0)
        platform_findings_add(findings, true, what, "cluster '%s', platform %s, %s", flow->config->cluster,
                              flow->config->platform, flow->config->file ? flow->config->file : "built-in");
    return rc == 0;
}

/* Asks for a key that need not exist: any response shows that the store can be reached and accepts the credentials. */
static int ask_store(struct flow *flow, const struct config_folder *folder, char **out_name, struct act_error *err)
{
    const char *key = folder->path && *folder->path ? folder->path : "act";
    char etag[STORE_ETAG];
    uint64_t size;
    struct store *store;
    int rc = flow_store(flow, folder, &store, err);

    if (rc < 0)
        return rc;
    rc = flow_exists(store, key, etag, &size, err);
    *out_name = act_strdup(store_name(store));
    store_free(store);
    return rc < 0 ? rc : 0;
}

/* Returns the folder of a store that opening would make, as it is not there yet: a new string; NULL: there is none. */
static char *missing_folder(const struct flow *flow, const struct config_folder *folder)
{
    ACT_AUTO(config_account) a = {0};

    if (!folder->path || !config_account_peek(flow->config, folder, &a))
        return NULL;
    return a.folder && access(a.folder, F_OK) < 0 ? act_strdup(a.folder) : NULL;
}

static void examine_store(struct flow *flow, const struct config_folder *folder, struct platform_findings *findings)
{
    ACT_AUTOFREE char *what = act_sprintf("store of '%s'", folder->name ? folder->name : "code");
    ACT_AUTOFREE char *missing = missing_folder(flow, folder);
    ACT_AUTOFREE char *name = NULL;
    struct act_error err = {0};
    int rc = missing ? act_can_write_in(missing, &err) : ask_store(flow, folder, &name, &err);

    if (rc < 0)
        platform_findings_add(findings, false, what, "%s", act_error_text(&err));
    else if (missing)
        platform_findings_add(findings, true, what, "folder:%s, made when something is stored", missing);
    else
        platform_findings_add(findings, true, what, "%s answers", name);
}

/* Tells whether two rows are in one store. */
static bool is_same_store(const struct config_folder *a, const struct config_folder *b)
{
    return act_streq(a->account_file, b->account_file) && config_is_share(a) == config_is_share(b) &&
           (!config_is_share(a) || act_streq(a->file_share, b->file_share));
}

/* Looks at each store once, as several folders may be in it. Claims cannot be looked at from here, nor can shares that
 * a service mounts; places are looked at where they are. */
static void examine_stores(struct flow *flow, struct platform_findings *findings)
{
    const struct config *c = flow->config;

    examine_store(flow, &c->code, findings); /* a missing account is a finding */
    for (size_t i = 0; i < c->n_folders; i++) {
        bool mounted = config_is_share(&c->folders[i]) && platform_find(c->platform)->settings.datastore;
        bool known = !c->folders[i].account_file || config_is_place(&c->folders[i]) || mounted ||
                     is_same_store(&c->folders[i], &c->code);
        for (size_t k = 0; k < i && !known; k++)
            known = is_same_store(&c->folders[i], &c->folders[k]);
        if (!known)
            examine_store(flow, &c->folders[i], findings);
    }
}

static bool doctor_is_mounted(const struct flow *flow, const struct config_folder *folder)
{
    ACT_AUTO(config_account) a = {0};

    return (act_streq(folder->mode, "rw_mount") || act_streq(folder->mode, "ro_mount")) &&
           config_account_peek(flow->config, folder, &a) && !a.folder;
}

/* Looks at what mounts folders on the nodes, where the agent mounts them. */
static void examine_mounts(struct flow *flow, struct platform *platform, struct platform_findings *findings)
{
    const struct config *c = flow->config;
    bool any = false;

    if (act_streq(c->mount, RUN_MOUNT_COPY) || platform_find(c->platform)->settings.datastore)
        return;
    for (size_t i = 0; i < c->n_folders; i++) {
        const struct config_folder *folder = &c->folders[i];
        if (doctor_is_mounted(flow, folder) && config_is_share(folder))
            platform_findings_add(
                findings, false, "folders",
                "'%s' is in a share of Azure Files, which is not mounted: for runs it takes "
                "'mode: download' or 'mode: upload'%s",
                folder->name, platform_find(c->platform)->about.agent_mounts ? ", or the cluster 'mount: copy'" : "");
        else
            any = any || doctor_is_mounted(flow, folder);
    }
    if (any)
        platform_examine_mounts(platform, c->mount, findings);
}

/* Looks at the folders that the nodes have already, and that this machine need not see. One that the runs of this
 * machine miss is a mistake of the configuration. */
static void examine_places(struct flow *flow, struct platform *platform, struct platform_findings *findings)
{
    const struct config *c = flow->config;

    for (size_t i = 0; i < c->n_folders; i++) {
        const struct config_folder *folder = &c->folders[i];
        if (!config_is_place(folder) || platform_examine_place(platform, folder->name, folder->account_file, findings))
            continue;
        ACT_AUTOFREE char *what = act_sprintf("folder '%s'", folder->name);
        bool is_seen = access(folder->account_file, F_OK) == 0;
        if (is_seen || !platform_find(c->platform)->about.is_here)
            platform_findings_add(findings, true, what, "'%s'%s", folder->account_file,
                                  is_seen ? "" : " on the nodes; this machine does not see it");
    }
}

/* Returns the folder of the repository that the project is in, else the project itself. New string. */
static char *doctor_repository(const char *project)
{
    char *at = flow_real_place(project);

    for (ACT_AUTOFREE char *above = act_strdup(at);;) {
        ACT_AUTOFREE char *git = act_path_join(above, ".git");
        char *slash = strrchr(above, '/');
        if (access(git, F_OK) == 0)
            act_str_replace(&at, above);
        if (!slash || slash == above)
            return at;
        *slash = '\0';
    }
}

/* Tells whether an environment may be one that the project has brought: to look at it would run what is in it. */
static bool doctor_is_of_project(const struct flow *flow, const char *path)
{
    ACT_AUTOFREE char *home = act_home_dir();

    if (!path || (*path != '/' && !act_starts_with(path, "~/")))
        return false;
    ACT_AUTOFREE char *full = *path == '/' ? act_strdup(path) : act_path_join(home, path + 2);
    ACT_AUTOFREE char *place = flow_real_place(full);
    ACT_AUTOFREE char *root = doctor_repository(flow->config->project_root);
    return act_path_is_within(place, root);
}

/* Tells whether a module is named by the path of a file, which is a program. */
static bool doctor_has_module_file(const struct act_strv *modules)
{
    for (size_t i = 0; i < modules->n; i++)
        if (!isalnum((unsigned char)modules->v[i][0]) || strstr(modules->v[i], ".."))
            return true;
    return false;
}

/* Looks whether modules, conda and virtual environment are there. */
static void examine_setup(struct flow *flow, struct platform *platform, struct platform_findings *findings)
{
    const struct config_setup *s = &flow->config->setup;
    struct platform_trial trial = {.setup = {.modules_purge = s->modules_purge,
                                             .modules = s->modules,
                                             .conda = s->conda,
                                             .venv = s->venv,
                                             .lines = s->lines}};

    if (doctor_is_of_project(flow, s->conda) || doctor_is_of_project(flow, s->venv))
        platform_findings_add(findings, true, "setup", "not tried: the environment is in the project");
    else if (doctor_has_module_file(&s->modules))
        platform_findings_add(findings, true, "setup", "not tried: a module is named by the path of its file");
    else if (run_setup_is_wanted(&trial.setup))
        platform_examine_setup(platform, &trial, findings);
}

static void examine_platform(struct flow *flow, struct platform_findings *findings)
{
    struct platform *platform;
    struct act_error err;

    if (flow_platform(flow, &platform, &err) < 0)
        platform_findings_add(findings, false, "platform", "%s", act_error_text(&err));
    else {
        platform_examine(platform, findings);
        examine_places(flow, platform, findings);
        examine_mounts(flow, platform, findings);
        examine_setup(flow, platform, findings);
    }
}

static void examine_ledger(struct platform_findings *findings)
{
    static const char what[] = "ledger";
    struct act_error err;
    int rc = flow_look_at_ledger(&err);

    if (rc == 0)
        platform_findings_add(findings, true, what, "can be read and written");
    else if (rc == -ACT_NOT_FOUND)
        platform_findings_add(findings, true, what, "made with the first run");
    else
        platform_findings_add(findings, false, what, "%s%s", act_error_text(&err),
                              rc == -ACT_FAIL ? "; the next submit keeps it aside and begins a new one" : "");
}

void flow_doctor(struct flow *flow, const struct config_request *request, struct platform_findings *out)
{
    *out = (struct platform_findings){0};
    bool sound = examine_config(flow, request, out);
    examine_ledger(out);
    if (sound) {
        examine_stores(flow, out);
        examine_platform(flow, out);
    }
}

char *flow_newer_version(void)
{
    return site_newer();
}
