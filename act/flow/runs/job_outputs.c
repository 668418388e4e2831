/* job_outputs.c - the output directories of a run's job file, which the verbs know by their ids. */
#include <string.h>

#include "base/path.h"
#include "base/text.h"
#include "flow/data/data_internal.h"
#include "flow/runs/files_internal.h"
#include "run/run.h"

void flow_output_release(struct flow_output *output)
{
    free(output->path);
    *output = (struct flow_output){0};
}

static const struct run_output *job_outputs_find(const struct run_spec *spec, const char *id, size_t len)
{
    for (size_t i = 0; i < spec->n_outputs; i++)
        if (strlen(spec->outputs[i].id) == len && strncmp(spec->outputs[i].id, id, len) == 0)
            return &spec->outputs[i];
    return NULL;
}

/* Of a path that begins with its id; NULL: it begins with none. *out_rest is what follows. */
static const struct run_output *find_in_path(const struct run_spec *spec, const char *path, const char **out_rest)
{
    static const char kept[] = RUN_DIR_OUTPUTS "/";
    bool is_kept = act_starts_with(path, kept);
    const char *id = is_kept ? path + strlen(kept) : path;
    size_t len = strcspn(id, "/");

    *out_rest = id + len;
    return is_kept || !run_is_own_folder(id, len) ? job_outputs_find(spec, id, len) : NULL;
}

/* Before there was a folder for them, they were kept among the logs. */
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

/* Where it is, as the run saw it. New string. */
static char *job_outputs_place_of(const struct flow_run *run, const struct run_output *output)
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
    ACT_AUTOFREE char *place = job_outputs_place_of(run, output);
    ACT_AUTOFREE char *name = act_strndup(place, strcspn(place, "/"));
    const char *below = place + strlen(name);

    out->folder = *name ? flow_find_folder(&run->spec, name) : NULL;
    if (!out->folder && !is_in_run(place))
        return act_error_set(err, ACT_NOT_FOUND, "the output '%s' of '%s' was '%s' on its nodes, in no mapped folder",
                             output->id, run->row.id, place);
    out->path = act_sprintf("%s%s", out->folder ? below + (*below == '/') : place, rest);
    return 1;
}
