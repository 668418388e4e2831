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

/* The newest run whose project has left a folder, and is the one at root: that has copies of the run's logs, or a file
 * that was packed for the run. *out_place: of the folder. NULL: there is none. */
static const struct ledger_run *find_earlier(const struct ledger_runs *rows, const char *root, const char *store,
                                             const char *folder, char **out_place)
{
    for (size_t i = 0; i < rows->n; i++) {
        const struct ledger_run *run = &rows->v[i];
        bool is_next = i == 0 || strcmp(run->project, rows->v[i - 1].project) != 0;
        char *place = left_by(run->project, store, folder);

        if (place && (has_copies_of(root, run) || (is_next && has_code_of(root, run->project)))) {
            *out_place = place;
            return run;
        }
        free(place);
    }
    return NULL;
}

void flow_hint_moved(struct flow *flow, const struct config_folder *folder, const char *place, struct act_error *err)
{
    ACT_AUTOFREE char *own = act_path_dirname(place), *left = NULL;
    ACT_AUTOFREE char *store = act_path_dirname(own);
    ACT_AUTO(ledger_runs) rows = {0};
    struct act_error ignored;

    if (flow_ledger_rows(flow, &rows, &ignored) < 0)
        return;
    const struct ledger_run *run =
        find_earlier(&rows, flow->config->project_root, store, act_path_basename(place), &left);
    if (run)
        act_error_hint(err,
                       "this project was at '%s', and has a folder '%s' in the store from then; to take it over: "
                       "mkdir -p '%s' && mv '%s' '%s'",
                       run->project, folder->name, own, left, own);
}
