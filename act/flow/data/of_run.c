/* of_run.c - see of_run.h. */
#include <string.h>

#include "config/config.h"
#include "flow/data/data_internal.h"
#include "flow/data/of_run.h"
#include "flow/flow_internal.h"
#include "flow/place.h"
#include "transfer/transfer.h"

/* ---- where a folder was mapped then */

static bool is_in(const struct config *config, const struct config_folder *f, const char *store)
{
    ACT_AUTO(config_account) a = {0};

    if (!f->claim && !config_account_peek(config, f, &a))
        return false;
    ACT_AUTOFREE char *text = flow_store_text(f, &a);
    return strcmp(text, store) == 0;
}

/* A row of the configuration with access to that store, wherever it is mapped now. */
static const struct config_folder *find_row(const struct config *config, const char *store)
{
    for (size_t i = 0; i < config->n_folders; i++)
        if (is_in(config, &config->folders[i], store))
            return &config->folders[i];
    return is_in(config, &config->code, store) ? &config->code : NULL;
}

bool flow_is_of_nodes(const struct run_folder *f)
{
    return act_starts_with(f->store, RUN_CLAIM);
}

int flow_open_folder_of_run(struct flow *project, const struct run_spec *spec, const struct run_folder *f,
                            struct store **out, struct act_error *err)
{
    const struct config_folder *row = find_row(project->config, f->store);
    ACT_AUTOFREE char *own = act_sprintf("folder:%s", spec->project_root);

    *out = NULL;
    if (flow_is_of_nodes(f))
        return act_error_set(err, ACT_CONFIG, "'%s' was in '%s', which only the nodes reach", f->name, f->store);
    if (!row && strcmp(f->store, own) == 0) /* used here, as the store had none (data/here.c) */
        return store_folder_open(flow_http(project), spec->project_root, false, out, err);
    if (!row)
        return act_error_set(err, ACT_NOT_FOUND, "cluster '%s' has no account for '%s' any more, where '%s' was",
                             spec->cluster, f->store, f->name);
    return flow_store(project, row, out, err);
}

int flow_list_folder_of_run(struct flow *project, struct store *store, const struct run_folder *f,
                            int (*each)(void *arg, const struct store_entry *entry, const char *rel,
                                        struct act_error *err),
                            void *arg, struct act_error *err)
{
    struct transfer_path what = {.store = store, .path = f->path, .is_folder = true};
    int rc = transfer_list(flow_engine(project), &what, TRANSFER_TREE, each, arg, err);

    return rc == -ACT_NOT_FOUND ? 0 : rc;
}

int flow_open_project_of(struct flow *flow, const struct flow_run *run, struct flow *out, struct act_error *err)
{
    int rc = flow_open_of_run(&run->row, NULL, out, err);

    if (rc < 0)
        return rc;
    out->services = flow_services(flow);
    return 0;
}

/* ---- outputs */

void flow_output_release(struct flow_output *output)
{
    free(output->path);
    *output = (struct flow_output){0};
}

static const struct run_output *of_run_output(const struct run_spec *spec, const char *id, size_t len)
{
    for (size_t i = 0; i < spec->n_outputs; i++)
        if (strlen(spec->outputs[i].id) == len && strncmp(spec->outputs[i].id, id, len) == 0)
            return &spec->outputs[i];
    return NULL;
}

/* Returns the output with whose id a path begins; NULL: there is none. *out_rest is what follows the id. */
static const struct run_output *find_in_path(const struct run_spec *spec, const char *path, const char **out_rest)
{
    static const char kept[] = RUN_DIR_OUTPUTS "/";
    bool is_kept = act_starts_with(path, kept);
    const char *id = is_kept ? path + strlen(kept) : path;
    size_t len = strcspn(id, "/");

    *out_rest = id + len;
    return is_kept || !run_is_own_folder(id, len) ? of_run_output(spec, id, len) : NULL;
}

/* Earlier versions kept outputs among the logs. */
static bool is_in_run(const char *place)
{
    return act_starts_with(place, RUN_DIR_OUTPUTS "/") || act_starts_with(place, RUN_DIR_USER "/");
}

bool flow_keeps_outputs(const struct run_spec *spec)
{
    for (size_t i = 0; i < spec->n_outputs; i++)
        if (is_in_run(spec->outputs[i].path))
            return true;
    return false;
}

/* Returns where the output is, as the run saw it, as a new string. */
static char *of_run_place(const struct flow_run *run, const struct run_output *output)
{
    static const char variable[] = "$ACT_RUN_ID";
    const char *at = strstr(output->path, variable);
    char *place =
        at ? act_sprintf("%.*s%s%s", (int)(at - output->path), output->path, run->row.id, at + strlen(variable))
           : act_strdup(output->path);

    for (size_t n = strlen(place); n > 1 && place[n - 1] == '/';)
        place[--n] = '\0';
    return place;
}

int flow_find_output(const struct flow_run *run, const char *path, struct flow_output *out, struct act_error *err)
{
    const char *rest;
    const struct run_output *output = find_in_path(&run->spec, path, &rest);

    *out = (struct flow_output){0};
    if (!output)
        return 0;
    ACT_AUTOFREE char *place = of_run_place(run, output);
    ACT_AUTOFREE char *name = act_strndup(place, strcspn(place, "/"));
    const char *below = place + strlen(name);

    out->folder = *name ? flow_find_folder(&run->spec, name) : NULL;
    if (!out->folder && !is_in_run(place))
        return act_error_set(err, ACT_NOT_FOUND, "the output '%s' of '%s' was '%s' on its nodes, in no mapped folder",
                             output->id, run->row.id, place);
    out->path = act_sprintf("%s%s", out->folder ? below + (*below == '/') : place, rest);
    return 1;
}
