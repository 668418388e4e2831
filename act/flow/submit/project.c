/* project.c - the first run of a project says which folder that is, and what marks it. A folder without a mark in it or
 * above is a project of its own, and whoever types a command in a subfolder of another project may not mean that. */
#include <string.h>

#include "base/log.h"
#include "base/path.h"
#include "config/config.h"
#include "flow/flow_internal.h"
#include "flow/submit/passage.h"

#define PROJECT_NO_MARK "no aux_data, .git or " CONFIG_PROJECT_FILE " in it"

/* The nearest folder above that is marked. New string; NULL: none. */
static char *find_marked_above(const char *root)
{
    for (char *dir = act_path_dirname(root);;) {
        if (strcmp(dir, "/") == 0) {
            free(dir);
            return NULL;
        }
        if (config_mark_of(dir))
            return dir;
        char *above = act_path_dirname(dir);
        free(dir);
        dir = above;
    }
}

/* The nearest folder above a root from which runs were submitted, which may be the root itself. */
struct project_known {
    const char *root;
    char *nearest; /* NULL: none */
};

static bool project_visit(void *arg, const struct ledger_run *row)
{
    struct project_known *known = arg;

    if (*row->project == '/' && act_path_is_within(known->root, row->project) &&
        (!known->nearest || strlen(row->project) > strlen(known->nearest)))
        act_str_replace(&known->nearest, row->project);
    return !act_streq(known->nearest, known->root); /* nothing is nearer */
}

/* Returns that folder, a new string; NULL: none. */
static char *project_find_known(struct flow *flow, const char *root)
{
    struct project_known known = {.root = root};
    struct act_error ignored;

    (void)!flow_ledger_each(flow, project_visit, &known, &ignored);
    return known.nearest;
}

int step_say_project(struct passage *p, struct act_error *err)
{
    const char *root = p->flow->config->project_root;

    (void)err;
    ACT_AUTOFREE char *known = project_find_known(p->flow, root);
    if (act_streq(known, root)) /* it was said */
        return 0;
    const char *mark = config_mark_of(root);
    if (mark) {
        act_note("project: '%s', as %s is in it", root, mark);
        return 0;
    }
    ACT_AUTOFREE char *above = find_marked_above(root);
    if (known)
        act_note("project: '%s' (" PROJECT_NO_MARK "); runs were submitted from '%s' above it, whose code and folders "
                 "this one has not: 'cd %s' goes there",
                 root, known, known);
    else if (above)
        act_note("project: '%s' (" PROJECT_NO_MARK "; '%s' above it has one, and is not used)", root, above);
    else
        act_note("project: '%s' (" PROJECT_NO_MARK " or above)", root);
    return 0;
}
