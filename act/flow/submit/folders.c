/* folders.c - the mapped folders of a run: where they are, without opening them. */
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/log.h"
#include "base/path.h"
#include "config/config.h"
#include "flow/data/data_internal.h"
#include "flow/flow_internal.h"
#include "flow/submit/parts.h"
#include "flow/submit/passage.h"

/* Describes where a mapped folder is, without opening it; row is the platform of the run. */
static int describe_folder(struct flow *flow, const struct platform_row *row, const struct config_folder *f,
                           struct run_folder *out, struct act_error *err)
{
    ACT_AUTO(config_account) a = {0};
    int rc = f->claim ? 0 : config_account(flow->config, f, &a, err);

    if (rc < 0)
        return rc;
    *out = (struct run_folder){.name = act_strdup(f->name), .path = act_strdup(f->path)};
    out->store = flow_store_text(f, &a);
    if (a.folder)
        out->link = act_path_join(a.folder, f->path);
    if (f->account && row->settings.datastore)
        out->datastore = row->settings.datastore(f, &a);
    if (!run_folder_mode_from_name(f->mode, &out->mode))
        rc = act_error_set(err, ACT_CONFIG, "folder '%s': unknown mode '%s'", f->name, f->mode);
    return rc;
}

/* Refuses a folder of mode path that this machine does not have. */
static int folders_check_place(const struct platform_row *row, const struct run_folder *folder, struct act_error *err)
{
    struct stat st;

    if (folder->mode != RUN_FOLDER_PATH || !row->about.is_here)
        return 0;
    if (stat(folder->link, &st) == 0)
        return S_ISDIR(st.st_mode)
                   ? 0
                   : act_error_set(err, ACT_CONFIG, "'%s', which the folder '%s' is (mode: path), is a file",
                                   folder->link, folder->name);
    return act_error_set(err, ACT_NOT_FOUND, "'%s' is not there, which the folder '%s' is (mode: path)", folder->link,
                         folder->name);
}

int flow_describe_folders(struct flow *flow, const struct platform_row *row, struct run_spec *spec,
                          struct act_error *err)
{
    const struct config *c = flow->config;

    for (size_t i = 0; i < c->n_folders; i++) {
        ACT_PUSH(spec->folders, spec->n_folders, (struct run_folder){0});
        int rc = describe_folder(flow, row, &c->folders[i], &spec->folders[i], err);
        if (rc == 0)
            rc = folders_check_place(row, &spec->folders[i], err);
        if (rc < 0)
            return rc;
        if (spec->folders[i].link && spec->folders[i].mode != RUN_FOLDER_RW_MOUNT &&
            spec->folders[i].mode != RUN_FOLDER_PATH)
            act_warn("'mode: %s' of the folder '%s' has no effect: its store is a folder, which runs read and write "
                     "themselves",
                     c->folders[i].mode, c->folders[i].name);
    }
    return 0;
}

/* Describes the project's own folder. If the project has none, 'mode: path' says where it is; else the command makes
 * it, or goes without it. */
static int describe_own_folder(struct flow *flow, const struct config_folder *f, struct run_folder *out,
                               struct act_error *err)
{
    const struct config *c = flow->config;
    ACT_AUTOFREE char *own = act_path_join(c->project_root, f->name);
    bool is_read = act_streq(f->mode, "ro_mount"), is_missing = access(own, F_OK) < 0;

    if (is_missing && config_is_place(f)) {
        int rc = describe_folder(flow, platform_here(), f, out, err);
        rc = rc < 0 ? rc : folders_check_place(platform_here(), out, err);
        return rc < 0 ? act_error_hint(err, "a folder '%s' in the project would be used instead", f->name) : 0;
    }
    if (is_missing)
        act_note("%s  not in the project, %s; --mount takes what the store has", f->name,
                 is_read ? "so the command goes without it" : "so an empty folder is made there");
    if (is_missing && is_read)
        return 0;
    *out = (struct run_folder){.name = act_strdup(f->name),
                               .store = act_sprintf("folder:%s", c->project_root),
                               .path = act_strdup(f->name),
                               .mode = is_read ? RUN_FOLDER_RO_MOUNT : RUN_FOLDER_RW_MOUNT,
                               .link = act_strdup(own)};
    return 0;
}

/* Maps the project's own folders and asks no store, as the original ACT did for commands on this machine. */
static int describe_own_folders(struct flow *flow, struct run_spec *spec, struct act_error *err)
{
    int rc = 0;

    for (size_t i = 0; rc == 0 && i < flow->config->n_folders; i++) {
        ACT_PUSH(spec->folders, spec->n_folders, (struct run_folder){0});
        struct run_folder *folder = &spec->folders[spec->n_folders - 1];
        rc = describe_own_folder(flow, &flow->config->folders[i], folder, err);
        spec->n_folders -= rc == 0 && !folder->name;
    }
    return rc;
}

/* Maps the folders of a run: those in the stores, or the project's own if it sees the project. */
static int choose_folders(struct flow *flow, const struct platform_row *row, struct run_spec *spec,
                          struct act_error *err)
{
    int rc = flow_describe_folders(flow, row, spec, err);

    for (size_t i = 0; rc == 0 && i < spec->n_folders; i++)
        flow_use_here(flow->config, &flow->config->folders[i], &spec->folders[i]);
    return rc;
}

int step_map_folders(struct passage *p, struct act_error *err)
{
    return p->own_folders ? describe_own_folders(p->flow, p->spec, err)
                          : choose_folders(p->flow, platform_row(p->platform), p->spec, err);
}
