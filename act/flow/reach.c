/* reach.c - what leads out of a project: links, stores, logins, hosts. Each is one line of text that names it and its
 * target, so that a different target is a different line. */
#include <fts.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "auth/trusted.h"
#include "base/file.h"
#include "base/path.h"
#include "base/user.h"
#include "config/config.h"
#include "config/kind.h"
#include "flow/flow_internal.h"
#include "flow/trust.h"
#include "http/http.h"
#include "platform/platform.h"

char *flow_real_place(const char *path)
{
    ACT_AUTOFREE char *real = realpath(path, NULL);

    if (real)
        return act_strdup(real);
    ACT_AUTOFREE char *above = act_strdup(path);
    while (!real && strcmp(above, "/") != 0 && strcmp(above, ".") != 0) {
        char *next = act_path_dirname(above);
        free(above);
        above = next;
        real = realpath(above, NULL);
    }
    const char *rest = path + (strcmp(above, "/") == 0 ? 0 : strlen(above));
    return real ? act_path_join(strcmp(real, "/") == 0 ? "" : real, rest + strspn(rest, "/")) : act_strdup(path);
}

static void reach_add(struct act_strv *items, char *text)
{
    if (act_strv_has(items, text))
        free(text);
    else
        act_strv_take(items, text);
}

/* The target of a link, even if nothing exists there; NULL: not a link. New string. */
static char *target_of(const char *path)
{
    char text[PATH_MAX];
    struct stat st;

    if (lstat(path, &st) < 0 || !S_ISLNK(st.st_mode))
        return NULL;
    char *real = realpath(path, NULL);
    ssize_t n = real ? 0 : readlink(path, text, sizeof(text) - 1);
    if (real || n < 0)
        return real;
    text[n] = '\0';
    ACT_AUTOFREE char *dir = act_path_dirname(path);
    ACT_AUTOFREE char *full = *text == '/' ? act_strdup(text) : act_path_join(dir, text);
    ACT_AUTOFREE char *clean = act_path_clean(full);
    return flow_real_place(clean);
}

/* Judged by the names below root: git, editors and others may execute what they find in hidden folders, and aux_data is
 * this program's own. */
static bool is_ordinary_place(const char *below)
{
    return *below && !strstr(below, "/.") && !act_path_is_within(below, "/aux_data");
}

/* Tells whether a resolved path is one of the places in the project where data may be read and written without asking.
 * */
static bool is_for_data(const char *place, const char *real_root)
{
    return act_path_is_within(place, real_root) &&
           is_ordinary_place(place + (strcmp(real_root, "/") == 0 ? 0 : strlen(real_root)));
}

/* root/name, if it is a link out of root, or to a place in root that is not for data (hidden folders, aux_data). */
static void reach_add_link(const char *root, const char *name, struct act_strv *items)
{
    ACT_AUTOFREE char *path = act_path_join(root, name);
    ACT_AUTOFREE char *target = target_of(path);
    ACT_AUTOFREE char *real_root = flow_real_place(root);

    if (target && !is_for_data(target, real_root))
        reach_add(items, act_sprintf("'%s' is a link to '%s'", name, target));
}

void flow_reach_logs(const char *project, struct act_strv *items)
{
    ACT_AUTOFREE char *folder = flow_log_folder(project);
    const char *below = folder + strlen(project);

    if (!act_path_is_within(folder, project)) /* the user named it */
        return;
    for (const char *end = below; *end;) {
        end += strspn(end, "/");
        end += strcspn(end, "/");
        ACT_AUTOFREE char *name = act_strndup(below + 1, (size_t)(end - below) - 1);
        reach_add_link(project, name, items);
    }
}

/* Tells whether this is a command of a run, typed in the folder of its code, where its agent has linked the folders. */
static bool is_run_itself(const char *root)
{
    const char *code = getenv(RUN_ENV_CODE);
    ACT_AUTOFREE char *of_run = code && *code ? realpath(code, NULL) : NULL;
    ACT_AUTOFREE char *here = of_run ? realpath(root, NULL) : NULL;

    return here && strcmp(here, of_run) == 0;
}

static void reach_add_folder(const struct config *config, const char *name, struct act_strv *items)
{
    ACT_AUTOFREE char *below = act_sprintf("/%s", name);

    if (!is_run_itself(config->project_root))
        reach_add_link(config->project_root, name, items);
    if (!is_ordinary_place(below))
        reach_add(items, act_sprintf("'%s' is a mapped folder, and programs run what is found there", name));
}

void flow_reach_path(const struct config *config, const char *folder, const char *rest, struct act_strv *items)
{
    ACT_AUTOFREE char *top = act_path_join(config->project_root, folder);
    ACT_AUTOFREE char *path = act_path_join(top, rest);
    ACT_AUTOFREE char *place = flow_real_place(path);
    ACT_AUTOFREE char *real_top = flow_real_place(top);
    ACT_AUTOFREE char *root = flow_real_place(config->project_root);

    ACT_AUTOFREE char *typed = act_path_join(real_top, rest);
    ACT_AUTOFREE char *clean = act_path_clean(typed);

    bool stays = act_path_is_within(place, real_top) && !strstr(place + strlen(real_top), "/.");
    if (strcmp(place, clean) != 0 && !stays && !is_for_data(place, root))
        reach_add(items, act_sprintf("'%s/%s' leads by a link to '%s'", folder, rest, place));
}

void flow_reach_links(const struct config *config, const char *folder, const char *rest, struct act_strv *items)
{
    ACT_AUTOFREE char *top = act_path_join(config->project_root, folder);
    ACT_AUTOFREE char *path = *rest ? act_path_join(top, rest) : act_strdup(top);
    FTS *tree = fts_open((char *[]){path, NULL}, FTS_PHYSICAL | FTS_COMFOLLOW | FTS_NOCHDIR, NULL);

    for (const FTSENT *e; tree && (e = fts_read(tree));)
        if ((e->fts_info == FTS_SL || e->fts_info == FTS_SLNONE) && strlen(e->fts_path) > strlen(top))
            flow_reach_path(config, folder, e->fts_path + strlen(top) + 1, items);
    if (tree)
        fts_close(tree);
}

/* ---- what the configuration says */

static bool reach_is_outside(const struct config *config, const char *path)
{
    ACT_AUTOFREE char *place = flow_real_place(path);
    ACT_AUTOFREE char *root = flow_real_place(config->project_root);

    return !act_path_is_within(place, root);
}

/* New string. */
static char *login_line(const struct platform_reach *r)
{
    return act_sprintf(r->in_words ? "'%s' leads to %s" : "'%s' is '%s'", r->key, r->value);
}

static void reach_add_login(const struct config *config, const struct platform_reach *r, struct act_strv *items)
{
    ACT_AUTOFREE char *file = config_file_of(config, r->key);
    ACT_AUTOFREE char *line = r->value ? login_line(r) : NULL;

    if (line)
        reach_add(items, act_sprintf("%s: %s", file, line));
}

static void show_value(const struct config *config, const char *key, const char *value, struct act_strv *items)
{
    ACT_AUTOFREE char *file = config_file_of(config, key);

    if (value)
        reach_add(items, act_sprintf("%s: '%s' is '%s'", file, key, value));
}

static void add_value(const struct config *config, const char *key, const char *value, struct act_strv *items)
{
    if (!config_is_own(config, key))
        show_value(config, key, value, items);
}

/* Tells whether the host is neither Azure's nor trusted. If the user's list cannot be read, the host counts as foreign.
 * */
static bool is_foreign(const char *url)
{
    struct act_error ignored;

    return url && auth_trusts(NULL, url, &ignored) != 1;
}

static void add_outside(const struct config *config, const struct platform_reach *r, struct act_strv *items)
{
    if (r->value && reach_is_outside(config, r->value)) {
        ACT_AUTOFREE char *place = flow_real_place(r->value);
        add_value(config, r->key, place, items);
    }
}

/* If the project sets one part of a login, all parts must be trusted: it could abuse a login of the user. */
void flow_reach_platform(const struct config *config, struct act_strv *items)
{
    ACT_AUTO(platform_reaches) reaches = {0};
    bool own_login = true;

    platform_reach(config, &reaches);
    for (size_t i = 0; i < reaches.n; i++)
        own_login = own_login && (reaches.v[i].kind != PLATFORM_LOGIN || config_is_own(config, reaches.v[i].key));
    for (size_t i = 0; i < reaches.n; i++) {
        const struct platform_reach *r = &reaches.v[i];
        if (r->kind == PLATFORM_FOLDER)
            add_outside(config, r, items);
        else if (r->kind == PLATFORM_HOST && is_foreign(r->value))
            add_value(config, r->key, r->value, items);
        else if (r->kind == PLATFORM_LOGIN && !own_login)
            reach_add_login(config, r, items);
    }
}

void flow_reach_recalled(const struct config *config, struct act_strv *items)
{
    ACT_AUTO(platform_reaches) reaches = {0};

    const char *key = platform_find(config->platform)->kind->login_file_key;

    platform_reach(config, &reaches);
    for (size_t i = 0; i < reaches.n; i++)
        if (act_streq(reaches.v[i].key, key))
            reach_add(items, login_line(&reaches.v[i]));
}

/* Adds a file by its resolved path, so that a link in it cannot be redirected later. */
static void reach_add_file(const struct config *config, const char *kind, const char *path, struct act_strv *items)
{
    ACT_AUTOFREE char *place = flow_real_place(path);
    const char *shown = config_shown_path(config, path);

    if (!reach_is_outside(config, path))
        return;
    if (strcmp(place, path) == 0)
        reach_add(items, act_sprintf("the %s file '%s' lies outside of the project", kind, shown));
    else
        reach_add(items, act_sprintf("the %s file '%s' lies outside of the project: it is '%s'", kind, shown, place));
}

static void reach_add_files(const struct config *config, struct act_strv *items)
{
    ACT_AUTO(act_strv) files = {0};

    config_files(config, &files);
    for (size_t i = 0; i < files.n; i++)
        reach_add_file(config, "configuration", files.v[i], items);
}

/* Adds a path in a folder store if a link in it leads out of the store and the project, or to a place in the project
 * that is not for data. */
static void add_place_in_store(const struct config *config, const char *file, const char *store, const char *path,
                               struct act_strv *items)
{
    ACT_AUTOFREE char *full = act_path_join(store, path);
    ACT_AUTOFREE char *place = flow_real_place(full);
    ACT_AUTOFREE char *real_store = flow_real_place(store);
    ACT_AUTOFREE char *root = flow_real_place(config->project_root);
    bool stays = act_path_is_within(place, real_store);

    if (act_path_is_within(real_store, root) ? !is_for_data(place, root) : !stays)
        reach_add(items,
                  act_sprintf("%s: '%s' in the store %s '%s'", file, path, stays ? "is" : "leads by a link to", place));
}

static void add_store(const struct config *config, const struct config_folder *folder, const char *file,
                      const char *store, struct act_strv *items)
{
    ACT_AUTOFREE char *place = flow_real_place(store);

    if (reach_is_outside(config, store))
        reach_add(items, act_sprintf("%s: the store is the folder '%s'", file, place));
    add_place_in_store(config, file, store, folder->path, items);
    if (folder != &config->code)
        return;
    ACT_AUTOFREE char *packages = flow_code_base(config);
    add_place_in_store(config, file, store, packages, items);
}

/* Does the same with the store below the platform's root. If that lies outside, flow_reach_platform() shows it. */
static void add_place_in_root(const struct config *config, const struct config_folder *folder, const char *store,
                              struct act_strv *items)
{
    ACT_AUTOFREE char *root = act_path_dirname(store);
    ACT_AUTOFREE char *path = act_path_join(act_path_basename(store), folder->path);

    add_place_in_store(config, platform_find(config->platform)->kind->root_key, root, path, items);
}

/* Adds where a folder is that the nodes see: on a claim of the cluster, whose files may be somebody else's or those of
 * another project of the user, or at a place that is looked at here, too, where this machine sees it. */
static void reach_add_on_nodes(const struct config *config, const struct config_folder *folder, struct act_strv *items)
{
    ACT_AUTOFREE char *key = act_sprintf("config_param.%s_folder.path", folder->name);

    if (config_is_own(config, key))
        return;
    reach_add(items, folder->claim
                         ? act_sprintf("'%s' is '%s' on the claim '%s' of the cluster", folder->name, folder->path,
                                       folder->claim)
                         : act_sprintf("'%s' is '%s', here and on the nodes", folder->name, folder->account_file));
}

static void add_vault(const char *file, const char *key, const char *secret, struct act_strv *items)
{
    if (config_is_in_vault(secret))
        reach_add(items, act_sprintf("%s: '%s' is what your login reads at '%s'", file, key,
                                     secret + strlen(CONFIG_KEYVAULT)));
}

/* The registry that is logged in to for an image, where the project says which; else NULL. New string. */
static char *registry_of_project(const struct config *config, const char *key, const char *image)
{
    ACT_AUTOFREE char *copy = act_strdup(image);
    const struct config_docker docker = {.image = copy, .address = config->docker.address};
    bool has_image = image && *image;

    if (!has_image || (config_is_own(config, key) && config_is_own(config, "docker.address")))
        return NULL;
    return config_docker_registry(&docker);
}

/* The nodes, or the service, send it to the registry, wherever that is. */
static void add_password(const struct config *config, struct act_strv *items)
{
    static const char key[] = "docker.password";
    const char *own = platform_find(config->platform)->settings.image.key;
    const struct {
        const char *key;
        const char *image;
    } rows[] = {{"docker.image", config->docker.image}, {own, own ? config_text(config, own) : NULL}};
    const char *secret = config->docker.password;
    ACT_AUTOFREE char *file = config_file_of(config, key);

    if (config_is_own(config, key))
        return;
    add_vault(file, key, secret, items);
    for (size_t i = 0; config_is_in_vault(secret) && i < sizeof(rows) / sizeof(rows[0]); i++) {
        ACT_AUTOFREE char *registry = registry_of_project(config, rows[i].key, rows[i].image);
        if (registry)
            reach_add(items, act_sprintf("%s: '%s' is for the registry '%s'", file, key, registry));
    }
}

/* Tells whether requests carry the user's login, or a key or SAS that is not in the account file. */
static bool takes_credential(const struct config_account *a)
{
    return a->secret_is_lent || flow_uses_login(a);
}

/* Adds the endpoint of the service that the row uses. A service on this machine, such as Azurite, may get a credential
 * that the account file itself holds. */
static void add_endpoint(const struct config_folder *folder, const struct config_account *a, const char *file,
                         struct act_strv *items)
{
    const char *url = config_is_share(folder) ? a->file_endpoint : a->endpoint;

    if (!url || !is_foreign(url) || (http_is_here(url) && !takes_credential(a)))
        return;
    ACT_AUTOFREE char *shown = http_redact_url(url);
    reach_add(items,
              act_sprintf("%s: '%s' is '%s'", file, config_is_share(folder) ? "file_endpoint" : "endpoint", shown));
}

static void reach_add_account(const struct config *config, const struct config_folder *folder, struct act_strv *items)
{
    ACT_AUTO(config_account) a = {0};

    if (config_is_place(folder))
        return reach_add_on_nodes(config, folder, items);
    if (folder->claim)
        reach_add_on_nodes(config, folder, items);
    if (!folder->account_file || !folder->path || config_account_is_own(config, folder))
        return;
    if (config_is_users(folder->account_file)) { /* the account is the user's; the folder in its store may not be */
        ACT_AUTOFREE char *place = flow_real_place(folder->account_file);
        reach_add(items, act_sprintf("'%s' is '%s' in the store of your own account file '%s'", folder->name,
                                     folder->path, place));
        return;
    }
    const char *file = config_shown_path(config, folder->account_file);
    if (!config_is_built_in(folder))
        reach_add_file(config, "account", folder->account_file, items);
    if (!config_account_peek(config, folder, &a))
        return; /* reported when the account is used */
    add_vault(file, "account_key", a.account_key, items);
    add_vault(file, "sas_token", a.sas_token, items);
    if (config_is_built_in(folder))
        add_place_in_root(config, folder, a.folder, items);
    else if (a.folder)
        add_store(config, folder, file, a.folder, items);
    else
        add_endpoint(folder, &a, file, items);
}

static void add_owner(const struct config *config, const char *path, struct act_strv *items)
{
    uid_t owner;

    if (!act_is_foreign(path, &owner))
        return;
    ACT_AUTOFREE char *name = act_user_name(owner);
    reach_add(items, act_sprintf("'%s' belongs to the user '%s'", config_shown_path(config, path), name));
}

/* Commands in the configuration run as the user. Somebody else may have put the configuration there, even above the
 * project, in a folder such as /tmp. A file outside the project was named by the user. */
static void add_owners(const struct config *config, struct act_strv *items)
{
    ACT_AUTOFREE char *above = act_path_join(config->project_root, "aux_data");
    ACT_AUTOFREE char *folder = config->file ? act_path_dirname(config->file) : NULL;
    ACT_AUTOFREE char *own = act_path_join(config->project_root, CONFIG_PROJECT_FILE);

    add_owner(config, above, items);
    add_owner(config, own, items);
    if (!config->file || !act_path_is_within(config->file, config->project_root))
        return;
    add_owner(config, folder, items);
    add_owner(config, config->file, items);
}

void flow_reach(const struct config *config, struct act_strv *items)
{
    add_owners(config, items);
    for (size_t i = 0; i < config->n_folders; i++)
        reach_add_folder(config, config->folders[i].name, items);
    flow_reach_logs(config->project_root, items);
    reach_add_files(config, items);
    add_password(config, items);
    reach_add_account(config, &config->code, items);
    for (size_t i = 0; i < config->n_folders; i++)
        reach_add_account(config, &config->folders[i], items);
    flow_reach_platform(config, items);
}
