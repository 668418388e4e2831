/* row.c - a run, and its row of the ledger. */
#include <string.h>

#include "base/path.h"
#include "codec/json.h"
#include "flow/flow_internal.h"
#include "flow/place.h"
#include "flow/run.h"

int64_t flow_slots_of(const struct run_spec *spec)
{
    return (int64_t)spec->nodes * spec->gpus_per_node;
}

char *flow_command_line(const struct act_strv *argv)
{
    struct act_buf b = {0};

    for (size_t i = 0; i < argv->n; i++) {
        const char *a = argv->v[i];
        bool plain = *a && !a[strcspn(a, " \t\n'\"\\$`*?[]{}()<>|&;~#!")];
        act_buf_adds(&b, i ? " " : "");
        if (plain)
            act_buf_adds(&b, a);
        else
            act_buf_add_quoted(&b, a);
    }
    return act_buf_steal(&b);
}

struct ledger_run flow_row_of(const struct run_spec *spec)
{
    CODEC_AUTOJSON json_t *json = run_spec_to_json(spec);

    return (struct ledger_run){.id = act_strdup(spec->id),
                               .cluster = act_strdup(spec->cluster),
                               .platform = act_strdup(spec->platform),
                               .experiment = act_strdup(spec->experiment),
                               .project = act_strdup(spec->project_root),
                               .created_unix_s = spec->created_unix_s,
                               .num_gpu = spec->on_processors ? 0 : flow_slots_of(spec),
                               .state = act_strdup(run_state_name(RUN_QUEUED)),
                               .name = act_strdup(spec->name),
                               .tags = run_tags_line(spec->tags),
                               .place = flow_place_of_spec(spec),
                               .spec = codec_json_line(json),
                               .command = spec->title ? act_strdup(spec->title) : flow_command_line(&spec->argv)};
}

json_t *flow_spec_json_of_row(const struct ledger_run *row)
{
    struct act_error ignored;
    json_t *json = NULL;
    int rc = row->spec ? codec_json_parse(row->spec, strlen(row->spec), row->id, &json, &ignored) : 0;

    return rc < 0 ? NULL : json;
}

int flow_spec_of_row(const struct ledger_run *row, struct run_spec *out, struct act_error *err)
{
    CODEC_AUTOJSON json_t *json = NULL;
    int rc = row->spec ? codec_json_parse(row->spec, strlen(row->spec), row->id, &json, err) : 0;

    *out = (struct run_spec){0};
    if (rc == 0 && json)
        rc = run_spec_from_json(json, out, err);
    if (rc < 0) {
        run_spec_release(out);
        *out = (struct run_spec){0};
    }
    return rc;
}

void flow_run_release(struct flow_run *run)
{
    ledger_run_release(&run->row);
    run_spec_release(&run->spec);
    act_str_replace(&run->replaced_by, NULL);
}

void flow_runs_release(struct flow_runs *runs)
{
    for (size_t i = 0; i < runs->n; i++)
        flow_run_release(&runs->v[i]);
    free(runs->v);
    *runs = (struct flow_runs){0};
}

void flow_runs_take(struct flow_runs *runs, struct flow_run *run)
{
    for (size_t i = 0; i < runs->n; i++)
        if (strcmp(runs->v[i].row.id, run->row.id) == 0) {
            flow_run_release(run);
            return;
        }
    ACT_PUSH(runs->v, runs->n, *run);
}

char *flow_assets(const struct flow_run *run)
{
    ACT_AUTOFREE char *folder = flow_log_folder(run->row.project);

    return act_path_join(folder, run->row.id);
}
