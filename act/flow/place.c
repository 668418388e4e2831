/* place.c - see place.h. */
#include "flow/place.h"
#include "config/config.h"
#include "ledger/ledger.h"

#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "codec/json.h"
#include "flow/flow_internal.h"
#include "flow/trust.h"
#include "platform/platform.h"

/* ---- writing it down */

/* Takes the value of a key ("slurm.login", "compute_target") over, also where there is none. */
static void copy_key(const json_t *from, const char *key, json_t *to)
{
    const char *dot = strchr(key, '.');
    ACT_AUTOFREE char *section = dot ? act_strndup(key, (size_t)(dot - key)) : NULL;
    const char *name = dot ? dot + 1 : key;
    json_t *value = json_object_get(section ? json_object_get(from, section) : from, name);
    json_t *into = section ? json_object_get(to, section) : to;

    if (!json_is_object(into)) {
        into = json_object();
        json_object_set_new(to, section, into);
    }
    if (value && !json_is_null(value))
        json_object_set(into, name, value);
    else
        json_object_del(into, name);
}

static void copy_keys(const struct platform_row *kind, const json_t *from, json_t *to)
{
    for (const char *const *key = kind->place.keys; key && *key; key++)
        copy_key(from, *key, to);
}

void flow_record_place(const struct config *config, json_t *resolved)
{
    const struct platform_row *kind = platform_find(config->platform);
    CODEC_AUTOJSON json_t *own = config_resolved(config);

    if (kind->place.record)
        kind->place.record(config, own);
    json_object_set_new(resolved, "platform", codec_json_bytes_new(config->platform));
    copy_keys(kind, own, resolved);
}

/* NULL: such values do not lead anywhere. */
static char *place_line(const struct config_recorded *recorded)
{
    struct config config = {0};
    struct act_error ignored;

    if (config_recall(recorded, &config, &ignored) < 0)
        return NULL;
    ACT_AUTOFREE char *where = flow_where(&config);
    CODEC_AUTOJSON json_t *place = json_pack("{s:O}", "config", recorded->values);
    if (where)
        json_object_set_new(place, "where", codec_json_bytes_new(where));
    config_release(&config);
    return codec_json_line(place);
}

char *flow_place_of_spec(const struct run_spec *spec)
{
    const struct platform_row *kind = platform_find(spec->platform);
    CODEC_AUTOJSON json_t *values = json_object();

    if (!spec->config || !kind->place.keys)
        return NULL;
    copy_keys(kind, spec->config, values);
    return place_line(&(struct config_recorded){spec->platform, spec->cluster, spec->project_root, values});
}

char *flow_place_of_config(const struct config *config)
{
    const struct platform_row *kind = platform_find(config->platform);
    CODEC_AUTOJSON json_t *resolved = config_resolved(config), *values = json_object();

    flow_record_place(config, resolved);
    copy_keys(kind, resolved, values);
    return place_line(&(struct config_recorded){config->platform, config->cluster, config->project_root, values});
}

/* ---- reading it */

char *flow_where(const struct config *config)
{
    const struct platform_row *kind = platform_find(config->platform);

    return kind->place.words ? kind->place.words(config) : NULL;
}

/* A new reference; NULL: the row has none. */
static json_t *read_place(const struct ledger_run *row)
{
    struct act_error ignored;
    json_t *place = NULL;

    if (row->place && codec_json_parse(row->place, strlen(row->place), "the place", &place, &ignored) == 0 &&
        json_is_object(json_object_get(place, "config")))
        return place;
    json_decref(place);
    return NULL;
}

/* Makes the configuration that the place of a run is. Returns 1, 0 if the row has no place, or an error. */
static int place_recall(const struct ledger_run *row, struct config *out, struct act_error *err)
{
    const struct platform_row *kind = platform_find(row->platform);
    CODEC_AUTOJSON json_t *place = read_place(row), *values = json_object();

    *out = (struct config){0};
    if (!kind->place.keys || (!place && !kind->about.is_here))
        return 0;
    copy_keys(kind, json_object_get(place, "config"), values);
    int rc = config_recall(&(struct config_recorded){row->platform, row->cluster, row->project, values}, out, err);
    return rc < 0 ? rc : 1;
}

char *flow_where_it_went(const struct ledger_run *row)
{
    CODEC_AUTOJSON json_t *place = read_place(row);
    char *where = codec_json_bytes_get(json_object_get(place, "where"));
    struct config config;
    struct act_error ignored;

    if (where || place_recall(row, &config, &ignored) != 1)
        return where;
    where = flow_where(&config);
    config_release(&config);
    return where;
}

static bool leads_to(const struct config *config, const char *platform, const char *where)
{
    const struct platform_row *row = platform_find(platform);
    ACT_AUTOFREE char *leads = flow_where(config);

    if (!where || !act_streq(config->platform, platform))
        return false;
    return act_streq(leads, where) || (row->place.has && row->place.has(config, where));
}

bool flow_leads_to(const struct config *config, const struct ledger_run *row)
{
    ACT_AUTOFREE char *went = flow_where_it_went(row);

    return leads_to(config, row->platform, went);
}

/* ---- a configuration that leads there */

/* Returns the configuration that a run wrote down, a new reference; NULL: none. */
static json_t *place_config_of(const struct ledger_run *row)
{
    CODEC_AUTOJSON json_t *spec = flow_spec_json_of_row(row);

    return json_incref(json_object_get(spec, "config"));
}

/* The cluster file of a run. */
struct source {
    struct config_request request;
    json_t *recorded; /* the configuration */
    char *file;       /* that it was then; NULL: not known, or none */
    char *text;
};

static void place_find_source(const struct ledger_run *row, struct source *out)
{
    *out = (struct source){.recorded = place_config_of(row),
                           .request = {.cluster = row->cluster, .start_dir = row->project, .quiet = true}};
    ACT_AUTOFREE char *name = codec_json_bytes_get(json_object_get(out->recorded, "cluster"));
    if (act_streq(name, row->cluster)) /* else the run was moved to another one */
        out->file = codec_json_bytes_get(json_object_get(out->recorded, "file"));
    if (!out->file || access(out->file, F_OK) < 0)
        return;
    out->request.file = out->file;
    out->request.project = row->project;
}

static void release_source(struct source *source)
{
    json_decref(source->recorded);
    free(source->file);
    free(source->text);
}

static int load_file(const struct ledger_run *row, struct config *out, struct act_error *err)
{
    struct source source;

    place_find_source(row, &source);
    source.request.quiet = false;
    int rc = config_load(&source.request, out, err);
    release_source(&source);
    if (rc == 0 && !act_streq(out->platform, row->platform)) {
        rc = act_error_set(err, ACT_CONFIG, "it is a run of platform '%s', and that cluster is one of '%s' today",
                           row->platform, out->platform);
        config_release(out);
    }
    if (rc < 0 && row->id) {
        act_error_hint(err, "-c NAME asks another cluster");
        return act_error_prefix(err, "run '%s' is on cluster '%s' of '%s'", row->id, row->cluster, row->project);
    }
    if (rc == 0 && (rc = flow_trust(out, err)) < 0)
        config_release(out);
    return rc;
}

/* Tells whether the cluster file of a run leads there, where what the run wrote down does not any more. */
static bool take_file_instead(const struct ledger_run *row, const char *went, struct config *config)
{
    struct act_error ignored;
    struct config other;

    if (load_file(row, &other, &ignored) < 0)
        return false;
    bool leads = leads_to(&other, row->platform, went);
    config_release(leads ? config : &other);
    if (leads)
        *config = other;
    return leads;
}

static int gone_elsewhere(const struct ledger_run *row, const char *went, const char *now, struct act_error *err)
{
    act_error_set(err, ACT_CONFIG, "run '%s' went to %s, and what it wrote down of that leads to %s today", row->id,
                  went, now);
    return act_error_hint(err, "-c NAME asks a cluster that leads there");
}

int flow_config_at(const struct ledger_run *row, struct config *out, struct act_error *err)
{
    ACT_AUTOFREE char *went = flow_where_it_went(row);
    int rc = place_recall(row, out, err);

    if (rc != 1)
        return rc < 0 ? rc : load_file(row, out, err);
    ACT_AUTOFREE char *now = flow_where(out);
    if (went && !act_streq(now, went) && take_file_instead(row, went, out))
        return 0;
    rc = 0;
    if (went && now && !act_streq(now, went)) /* where it cannot be told, opening it says why */
        rc = gone_elsewhere(row, went, now, err);
    else if (row->project)
        rc = flow_trust_recalled(row->project, row->cluster, out, err);
    if (rc < 0)
        config_release(out);
    return rc;
}

/* ---- its whole configuration */

/* 0: the cluster file; 1: what the run wrote down of it. */
static int choose_source(const struct ledger_run *row, struct source *source, struct act_error *err)
{
    ACT_AUTOFREE char *went = flow_where_it_went(row);
    ACT_AUTO(config) today = {0};
    int rc = config_load(&source->request, &today, err);

    source->request.quiet = false;
    if (!source->file || (rc == 0 && (!went || leads_to(&today, row->platform, went))))
        return rc;
    source->text = config_text_of(source->recorded);
    source->request.file = source->file;
    source->request.text = source->text;
    source->request.project = row->project;
    return 1;
}

int flow_open_of_run(const struct ledger_run *row, const struct config_request *with, struct flow *out,
                     struct act_error *err)
{
    struct source source;

    place_find_source(row, &source);
    int chosen = choose_source(row, &source, err), rc = chosen;
    if (with) {
        source.request.params = with->params;
        source.request.overrides = with->overrides;
        source.request.n_overrides = with->n_overrides;
    }
    if (chosen >= 0)
        rc = flow_open(&source.request, out, err);
    release_source(&source);
    if (rc == 0)
        out->cluster = NULL; /* it is not what was asked for */
    return rc < 0 ? rc : chosen;
}

/* ---- asking elsewhere */

static bool has_cluster(const char *project, const char *cluster)
{
    const struct config_request request = {.cluster = cluster, .start_dir = project};
    struct act_error ignored;

    return config_is_there(&request, &ignored) == 0;
}

/* There is no such cluster file: only runs know the name. */
static int place_check_name(const struct flow *flow, const struct ledger_run *row, struct act_error *err)
{
    if (act_streq(flow->cluster, row->cluster))
        return 0;
    return act_error_set(err, ACT_NOT_FOUND, "run '%s' is on cluster '%s', and not on '%s', of which no file is here",
                         row->id, row->cluster, flow->cluster);
}

static void point_row(const struct config *config, struct ledger_run *row)
{
    if (!has_cluster(row->project, config->cluster))
        act_str_replace(&row->project, config->project_root);
    act_str_replace(&row->cluster, config->cluster);
    free(row->place);
    row->place = flow_place_of_config(config);
}

int flow_point_at(const struct flow *flow, struct ledger_run *row, bool *out_pointed, struct act_error *err)
{
    const struct config_request request = {.cluster = flow->cluster, .quiet = true};
    ACT_AUTOFREE char *went = flow_where_it_went(row);
    ACT_AUTO(config) config = {0};
    struct act_error ignored;

    *out_pointed = false;
    if (!flow->cluster || flow->cluster_is_target)
        return 0;
    if (config_is_there(&request, &ignored) < 0)
        return place_check_name(flow, row, err);
    int rc = config_load(&request, &config, err);
    if (rc < 0)
        return rc;
    if (leads_to(&config, row->platform, went) && has_cluster(row->project, row->cluster))
        return 0;
    if (!act_streq(config.platform, row->platform))
        return act_error_set(err, ACT_NOT_FOUND, "cluster '%s' has no run '%s': that is one of platform '%s'%s%s",
                             config.cluster, row->id, row->platform, went ? ", in " : "", went ? went : "");
    rc = flow_trust(&config, err);
    if (rc == 0)
        point_row(&config, row);
    *out_pointed = rc == 0;
    return rc;
}

void flow_say_elsewhere(const struct ledger_run *row)
{
    ACT_AUTOFREE char *went = flow_where_it_went(row);
    struct source source;
    struct config today;
    struct act_error ignored;

    if (!went)
        return;
    place_find_source(row, &source);
    int rc = config_load(&source.request, &today, &ignored);
    release_source(&source);
    if (rc < 0)
        return;
    ACT_AUTOFREE char *now = flow_where(&today);
    if (now && !leads_to(&today, row->platform, went))
        act_note("'%s' went to %s; cluster '%s' leads elsewhere today, to %s", row->id, went, row->cluster, now);
    config_release(&today);
}
