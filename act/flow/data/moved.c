/* moved.c - a project is known by its path: one that was moved or renamed finds nothing in the built-in store, so the
 * user is told where its data is, if something shows that the two are one project. Nothing is taken over
 * automatically. */
#include <dirent.h>
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "base/path.h"
#include "config/config.h"
#include "flow/code/code_internal.h"
#include "flow/data/data_internal.h"
#include "flow/flow_internal.h"
#include "ledger/ledger.h"

bool flow_has_content(const char *path)
{
    DIR *dir = opendir(path);
    const struct dirent *e = NULL;

    while (dir && (e = readdir(dir)) && (act_streq(e->d_name, ".") || act_streq(e->d_name, "..")))
        ;
    if (dir)
        closedir(dir);
    return e != NULL;
}

static bool moved_is_gone(const char *project)
{
    return *project == '/' && access(project, F_OK) < 0 && errno == ENOENT;
}

/* Returns where a project that is gone has something of the folder in the store, as a new string, or NULL. */
static char *left_by(const char *project, const char *store, const char *folder)
{
    ACT_AUTOFREE char *prefix = config_built_in_prefix(project);
    char *place = act_sprintf("%s/%s/%s", store, prefix, folder);

    if (moved_is_gone(project) && flow_has_content(place))
        return place;
    free(place);
    return NULL;
}

static bool has_copies_of(const char *root, const struct ledger_run *run)
{
    ACT_AUTOFREE char *logs = flow_log_folder(root);
    ACT_AUTOFREE char *copies = act_path_join(logs, run->id);

    return access(copies, F_OK) == 0;
}

static bool has_code_of(const char *root, const char *project)
{
    ACT_AUTOFREE char *index = flow_package_index(project);

    return package_index_is_of(index, root);
}

/* Looks for the newest run whose project has left a folder, and is the one at root: that has copies of the run's logs,
 * or a file that was packed for the run. */
struct moved_look {
    const char *root, *store, *folder;
    char *before;         /* the project of the run that was looked at before */
    char *project, *left; /* what was found: that project, and the folder; NULL: nothing yet */
};

static void moved_look_release(struct moved_look *look)
{
    free(look->before);
    free(look->project);
    free(look->left);
}

static bool moved_visit(void *arg, const struct ledger_run *run)
{
    struct moved_look *look = arg;
    bool is_next = !act_streq(run->project, look->before);
    char *left = left_by(run->project, look->store, look->folder);

    if (left && (has_copies_of(look->root, run) || (is_next && has_code_of(look->root, run->project)))) {
        look->project = act_strdup(run->project);
        look->left = left;
        return false;
    }
    free(left);
    if (is_next)
        act_str_replace(&look->before, run->project);
    return true;
}

void flow_hint_moved(struct flow *flow, const struct config_folder *folder, const char *place, struct act_error *err)
{
    ACT_AUTOFREE char *own = act_path_dirname(place);
    ACT_AUTOFREE char *store = act_path_dirname(own);
    ACT_AUTO(moved_look)
    look = {.root = flow->config->project_root, .store = store, .folder = act_path_basename(place)};
    struct act_error ignored;

    if (flow_ledger_each(flow, moved_visit, &look, &ignored) == 0 && look.project)
        act_error_hint(err,
                       "this project was at '%s', and has a folder '%s' in the store from then; to take it over: "
                       "mkdir -p '%s' && mv '%s' '%s'",
                       look.project, folder->name, own, look.left, own);
}
