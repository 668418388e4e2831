/* here.c - a run uses a mapped folder of the project where it is, when it sees the project and the store has nothing
 * for it; and folders that only the cluster sees. */
#include <dirent.h>
#include <fts.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/log.h"
#include "base/path.h"
#include "config/config.h"
#include "flow/code/code.h"
#include "flow/data/data_internal.h"
#include "platform/platform.h"

const struct run_folder *flow_find_folder(const struct run_spec *spec, const char *name)
{
    for (size_t i = 0; i < spec->n_folders; i++)
        if (strcmp(spec->folders[i].name, name) == 0)
            return &spec->folders[i];
    return NULL;
}

static bool see_the_project(const struct config *config, const struct config_folder *folder)
{
    const struct platform_row *row = platform_find(config->platform);

    return row->place.sees_project && row->place.sees_project(config, folder);
}

/* A file of the project that is not there, of another size there, or older. */
static bool data_here_differs(const struct stat *own, const char *stored)
{
    struct stat there;

    return stat(stored, &there) < 0 || there.st_size != own->st_size || there.st_mtim.tv_sec < own->st_mtim.tv_sec;
}

/* Files of a project's folder that are missing or different in the store. */
struct unstored {
    char *first; /* of them, below the folder; NULL: there is none */
    int64_t first_changed_s;
    int n;
};

/* Finds them. Every submit does this, so it only looks at the first files; the others count as stored. */
static void data_here_find_unstored(const char *own, const char *stored, struct unstored *out)
{
    enum { GLANCE = 1000 };
    ACT_AUTOFREE char *root = act_strdup(own);
    FTS *tree = fts_open((char *[]){root, NULL}, FTS_PHYSICAL | FTS_NOCHDIR, NULL);
    const FTSENT *e = NULL;

    *out = (struct unstored){0};
    for (int n = 0; tree && n < GLANCE && (e = fts_read(tree)); n++) {
        const char *rel = e->fts_path + strlen(root);
        ACT_AUTOFREE char *there = act_sprintf("%s%s", stored, rel);
        if (e->fts_info != FTS_F || !data_here_differs(e->fts_statp, there))
            continue;
        if (out->n++ > 0)
            continue;
        out->first = act_strdup(rel + 1);
        out->first_changed_s = e->fts_statp->st_mtim.tv_sec;
    }
    if (tree)
        fts_close(tree);
}

/* Says something of a folder of a project, unless that was the last that was said of it: mark tells. */
static void data_here_say(const char *project, const char *name, const char *mark, const char *text)
{
    enum { MAX_BYTES = 1 << 16 };
    ACT_AUTOFREE char *index = flow_package_index(project), *path = act_sprintf("%s.own-%s", index, name);
    ACT_AUTOFREE char *said = NULL;
    struct act_error err;
    size_t len;

    if (act_file_read(path, MAX_BYTES, &said, &len, &err) == 0 && strcmp(said, mark) == 0)
        return;
    act_note("%s  %s; 'a u %s' stores it", name, text, name);
    if (act_file_write_quickly(path, mark, strlen(mark), 0600, &err) < 0)
        act_trace("data", "%s", act_error_text(&err));
}

/* Says that the store's folder is used although the project's own differs. A user who configured a store knows. */
static void data_here_say_differs(const struct config *config, const struct config_folder *from,
                                  const struct run_folder *folder, const char *own)
{
    struct unstored files = {0};

    if (config_is_built_in(from))
        data_here_find_unstored(own, folder->link, &files);
    if (files.n == 0)
        return;
    ACT_AUTOFREE char *file = files.first;
    ACT_AUTOFREE char *more = files.n > 1 ? act_sprintf(" and %d more", files.n - 1) : act_strdup("");
    ACT_AUTOFREE char *text =
        act_sprintf("as the store has it, from which the project's own folder differs (%s%s)", file, more);
    ACT_AUTOFREE char *mark = act_sprintf("%s %lld", file, (long long)files.first_changed_s);
    data_here_say(config->project_root, folder->name, mark, text);
}

void flow_use_here(const struct config *config, const struct config_folder *from, struct run_folder *folder)
{
    ACT_AUTOFREE char *own = act_path_join(config->project_root, folder->name);

    if (config_is_place(from) || !see_the_project(config, from) || !folder->link || !flow_has_content(own))
        return;
    if (flow_has_content(folder->link)) {
        data_here_say_differs(config, from, folder, own);
        return;
    }
    data_here_say(config->project_root, folder->name, "", "the project's own folder, as the store has none");
    free(folder->store);
    folder->store = act_sprintf("folder:%s", config->project_root);
    act_str_replace(&folder->path, folder->name);
    act_str_replace(&folder->link, own);
}

static void data_here_add_own(const char *name, const char *store, const char *path, struct run_spec *spec)
{
    spec->folders = act_realloc(spec->folders, (spec->n_folders + 1) * sizeof(*spec->folders));
    spec->folders[spec->n_folders] = (struct run_folder){.name = act_strdup(name),
                                                         .store = act_sprintf("folder:%s", store),
                                                         .path = act_strdup(path),
                                                         .mode = RUN_FOLDER_RW_MOUNT,
                                                         .link = act_path_join(store, path)};
    act_note("%s  '%s' of the cluster", name, spec->folders[spec->n_folders++].link);
}

bool flow_may_use_own_folders(const struct config *config)
{
    return config->n_folders == 0 && config_is_built_in(&config->code);
}

int flow_use_own_folders(const struct config *config, struct platform *platform, struct run_spec *spec,
                         struct act_error *err)
{
    ACT_AUTOFREE char *prefix = config_built_in_prefix(config->project_root), *store = NULL;
    bool there[CONFIG_BUILT_IN_FOLDERS] = {false};
    ACT_AUTO(act_strv) paths = {0};

    if (!flow_may_use_own_folders(config))
        return 0;
    for (size_t i = 0; i < CONFIG_BUILT_IN_FOLDERS; i++)
        act_strv_take(&paths, act_path_join(prefix, config_built_in_folders[i]));
    int rc = platform_own_folders(platform, (const char *const *)paths.v, paths.n, there, &store, err);
    for (size_t i = 0; rc == 0 && store && i < paths.n; i++)
        if (there[i] && !flow_find_folder(spec, config_built_in_folders[i]))
            data_here_add_own(config_built_in_folders[i], store, paths.v[i], spec);
    return rc;
}

/* Returns where the folder is in a folder store, as a new string, or NULL. */
static char *data_here_place_of(const struct flow *flow, const struct config_folder *folder)
{
    ACT_AUTO(config_account) account = {0};
    struct act_error ignored;
    char *place = NULL;

    if (config_account(flow->config, folder, &account, &ignored) < 0)
        return NULL;
    if (account.folder)
        place = act_path_join(account.folder, folder->path);
    return place;
}

void flow_explain_absence(struct flow *flow, const struct config_folder *folder, const char *local,
                          struct act_error *err)
{
    ACT_AUTOFREE char *place = data_here_place_of(flow, folder);

    if (!place || config_is_place(folder) || flow_has_content(place) || !see_the_project(flow->config, folder))
        return;
    if (access(local, F_OK) == 0)
        act_error_hint(err, "it is in the project's own folder '%s', which runs use as the store has none",
                       folder->name);
    else if (config_is_built_in(folder))
        flow_hint_moved(flow, folder, place, err);
}
