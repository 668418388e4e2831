/* moved.c - a project is known by its path: one that was moved or renamed finds nothing in the built-in store, so the
 * user is told where its data is. Nothing is taken over automatically: a new folder may have the name of a deleted
 * one. */
#include <dirent.h>
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "base/path.h"
#include "base/text.h"
#include "config/config.h"
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

static int list_rows(struct ledger *ledger, void *rows, struct act_error *err)
{
    return ledger_list(ledger, &(struct ledger_query){.without_spec = true}, rows, err);
}

static bool is_gone(const char *project)
{
    return *project == '/' && access(project, F_OK) < 0 && errno == ENOENT;
}

/* Its place for the folder in the store, when it is gone and has something there. New string, or NULL. */
static char *left_by(const char *project, const char *store, const char *folder)
{
    ACT_AUTOFREE char *prefix = config_built_in_prefix(project);
    char *place = act_sprintf("%s/%s/%s", store, prefix, folder);

    if (is_gone(project) && flow_has_content(place))
        return place;
    free(place);
    return NULL;
}

void flow_hint_moved(struct flow *flow, const struct config_folder *folder, const char *place, struct act_error *err)
{
    ACT_AUTOFREE char *own = act_path_dirname(place);
    ACT_AUTOFREE char *store = act_path_dirname(own);
    ACT_AUTO(ledger_runs) rows = {0};
    struct act_error ignored;
    char *left = NULL;

    if (flow_with_ledger(flow, list_rows, &rows, &ignored) < 0)
        return;
    for (size_t i = 0; i < rows.n && !left; i++) { /* the newest first */
        left = left_by(rows.v[i].project, store, act_path_basename(place));
        if (left)
            act_error_hint(err,
                           "'%s' is no longer there and has a folder '%s' in the store; if it was this project: "
                           "mkdir -p '%s' && mv '%s' '%s'",
                           rows.v[i].project, folder->name, own, left, own);
    }
    free(left);
}
