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

/* Of a path that begins with its id; NULL: it begins with none. */
static const struct run_output *find(const struct run_spec *spec, const char *path)
{
    size_t n = strcspn(path, "/");

    for (size_t i = 0; i < spec->n_outputs; i++)
        if (strlen(spec->outputs[i].id) == n && strncmp(spec->outputs[i].id, path, n) == 0)
            return &spec->outputs[i];
    return NULL;
}

/* Where it is, as the run saw it. New string. */
static char *place_of(const struct flow_run *run, const struct run_output *output)
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
    const struct run_output *output = find(&run->spec, path);

    *out = (struct flow_output){0};
    if (!output)
        return 0;
    const char *rest = path + strlen(output->id);
    ACT_AUTOFREE char *place = place_of(run, output);
    ACT_AUTOFREE char *name = act_strndup(place, strcspn(place, "/"));
    const char *below = place + strlen(name);

    out->folder = *name ? flow_find_folder(&run->spec, name) : NULL;
    if (!out->folder && !act_starts_with(place, RUN_DIR_USER "/"))
        return act_error_set(err, ACT_NOT_FOUND, "the output '%s' of '%s' was '%s' on its nodes, in no mapped folder",
                             output->id, run->row.id, place);
    out->path = act_sprintf("%s%s", out->folder ? below + (*below == '/') : place, rest);
    return 1;
}
