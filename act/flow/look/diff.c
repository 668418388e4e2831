/* diff.c - in what two runs differ: each part of them becomes a sorted list of names with texts, and two lists are
 * compared. */
#include <string.h>

#include "base/log.h"
#include "base/units.h"
#include "codec/json.h"
#include "flow/code/code_internal.h"
#include "flow/flow_internal.h"
#include "flow/look/parts.h"
#include "flow/place.h"
#include "flow/source/source.h"
#include "platform/platform.h"

/* Names with texts. */
struct item {
    char *name, *text;
};
struct items {
    struct item *v;
    size_t n;
};

static void release_items(struct items *items)
{
    for (size_t i = 0; i < items->n; i++) {
        free(items->v[i].name);
        free(items->v[i].text);
    }
    free(items->v);
    *items = (struct items){0};
}

/* Takes the text. */
static void diff_add_item(struct items *items, const char *name, char *text)
{
    ACT_PUSH(items->v, items->n, (struct item){act_strdup(name), text});
}

static int diff_by_name(const void *a, const void *b)
{
    return strcmp(((const struct item *)a)->name, ((const struct item *)b)->name);
}

static void sort_items(struct items *items)
{
    if (items->n > 0)
        qsort(items->v, items->n, sizeof(*items->v), diff_by_name);
}

static void add_difference(struct flow_diff *out, const char *part, const struct item *from, const struct item *to)
{
    ACT_PUSH(out->v, out->n,
             (struct flow_difference){.part = part,
                                      .name = act_strdup(from ? from->name : to->name),
                                      .from = act_strdup(from ? from->text : NULL),
                                      .to = act_strdup(to ? to->text : NULL)});
}

static void diff_add_same(const char *part, const char *name, const char *text, struct flow_diff *out)
{
    ACT_PUSH(out->same, out->n_same,
             (struct flow_difference){
                 .part = part, .name = act_strdup(name), .from = act_strdup(text), .to = act_strdup(text)});
}

static void diff_compare(const char *part, struct items *from, struct items *to, struct flow_diff *out)
{
    size_t i = 0, j = 0;

    sort_items(from);
    sort_items(to);
    while (i < from->n || j < to->n) {
        int order = i == from->n ? 1 : j == to->n ? -1 : diff_by_name(&from->v[i], &to->v[j]);
        if (order != 0 || strcmp(from->v[i].text, to->v[j].text) != 0)
            add_difference(out, part, order <= 0 ? &from->v[i] : NULL, order >= 0 ? &to->v[j] : NULL);
        else
            diff_add_same(part, from->v[i].name, from->v[i].text, out);
        i += order <= 0;
        j += order >= 0;
    }
    release_items(from);
    release_items(to);
}

/* ---- the command */

static void list_command(const struct run_spec *spec, struct items *out)
{
    if (spec->argv.n > 0)
        diff_add_item(out, "", flow_command_line(&spec->argv));
}

/* ---- the code */

/* The verified local copy of a run's package, fetched if necessary. New string; NULL: it has no code. */
static int find_package(const struct flow_run *run, char **out, struct act_error *err)
{
    ACT_AUTO(flow_package) package = {0};
    ACT_AUTOFREE char *here = flow_package_cache(run->spec.package_sha256);
    struct flow home;

    *out = NULL;
    if (!run->spec.package_key)
        return 0;
    if (flow_file_is(here, run->spec.package_sha256)) {
        *out = act_strdup(here);
        return 0;
    }
    int rc = flow_open_of_run(&run->row, NULL, &home, err);
    if (rc < 0)
        return rc;
    rc = flow_package_by_key(&home, run->spec.package_key, run->spec.package_sha256, &package, err);
    if (rc == 0)
        *out = act_strdup(package.file);
    flow_close(&home);
    return rc;
}

/* Finds the package, and lists its files. */
static int list_code(const struct flow_run *run, char **out_package, struct items *out, struct act_error *err)
{
    ACT_AUTO(package_contents) files = {0};
    int rc = find_package(run, out_package, err);

    if (rc == 0 && *out_package)
        rc = package_contents(*out_package, &files, err);
    for (size_t i = 0; i < files.n; i++) {
        const struct package_file *f = &files.v[i];
        char size[ACT_UNIT_TEXT];
        act_size_to_text(f->size, size);
        diff_add_item(out, f->path, act_sprintf("%s, CRC %08x, mode %03o", size, f->crc, f->mode & 0777));
    }
    return rc;
}

/* Adds the lines in which texts differ, of the first files that do. */
static void compare_lines(const char *from, const char *to, struct flow_diff *out)
{
    enum { MAX_FILES = 100, MAX_BYTES = 256 << 10 };
    size_t n = 0;

    for (size_t i = 0; i < out->n && n < MAX_FILES; i++) {
        struct flow_difference *d = &out->v[i];
        if (strcmp(d->part, "code") != 0 || !d->from || !d->to)
            continue;
        ACT_AUTOFREE char *before = package_text(from, d->name, MAX_BYTES);
        ACT_AUTOFREE char *now = before ? package_text(to, d->name, MAX_BYTES) : NULL;
        d->lines = now ? flow_changed_lines(before, now) : NULL;
        n++;
    }
}

/* A package that is gone leaves the rest to be compared. */
static void compare_code(const struct flow_run *from, const struct flow_run *to, struct flow_diff *out)
{
    ACT_AUTOFREE char *before = NULL, *now = NULL;
    struct items a = {0}, b = {0};
    struct act_error err;

    if (strcmp(from->spec.package_sha256, to->spec.package_sha256) == 0) {
        if (*to->spec.package_sha256)
            diff_add_same("code", "", to->spec.package_sha256, out);
        return;
    }
    if (list_code(from, &before, &a, &err) < 0 || list_code(to, &now, &b, &err) < 0) {
        act_warn("the code differs, but cannot be compared by file: %s", act_error_text(&err));
        release_items(&a);
        release_items(&b);
        diff_add_item(&a, "", act_strdup(from->spec.package_sha256));
        diff_add_item(&b, "", act_strdup(to->spec.package_sha256));
    }
    diff_compare("code", &a, &b, out);
    if (before && now)
        compare_lines(before, now, out);
}

/* ---- the configuration */

/* The members of run.json that have a part of their own, or differ in any case. */
static const char *const apart[] = {
    "version",
    "id",
    "created",
    "command",
    "title",
    "name",
    "tags",
    "resubmit_of",
    "after",
    "needs",
    "needs_any",
    "package_key",
    "package_store",
    "package_bytes",
    "package_sha256",
    "env",
    "nodes",
    "min_nodes",
    "max_nodes",
    "cluster",
    "platform",
    "logs_path",
    "logs_store",
    "processes_per_node",
    "gpus_per_node",
    "on_processors",
    "started_per_node",
};

/* The keys of the configuration that run.json has as members of its own, too, as the size in "nodes": a repeated run
 * has those of the first one, while its configuration is that of today. */
static const char *const own_members[] = {
    "num_gpu",    "elastic_num_gpu", "multi_process", "gpu_per_node",  "process_count_per_node",
    "modules",    "modules_purge",   "conda",         "venv",          "setup",
    "setup_rank", "setup_timeout",   "environment",   "hang",          "hang_gpus",
    "retry",      "compile_args",    "mount",         "sleep_if_fail", "sleep_if_succeed",
    "gpus",       "gpu_free_memory",
};

/* "a.b" and so on; of a list of things with names, those. */
static void diff_flatten(const char *before, const char *name, json_t *value, struct items *out)
{
    ACT_AUTOFREE char *path = *before ? act_sprintf("%s.%s", before, name) : act_strdup(name);
    const char *key;
    json_t *member;
    size_t i;

    json_object_foreach(value, key, member) diff_flatten(path, key, member, out);
    json_array_foreach(value, i, member)
    {
        char number[24];
        snprintf(number, sizeof(number), "%zu", i);
        diff_flatten(path, codec_json_str(member, "name", number), member, out);
    }
    if (!json_is_object(value) && !json_is_array(value) && !json_is_null(value))
        diff_add_item(out, path, flow_setting_text(value));
}

static void list_configuration(const struct run_spec *spec, struct items *out)
{
    CODEC_AUTOJSON json_t *json = run_spec_to_json(spec);
    CODEC_AUTOJSON json_t *config = json_deep_copy(json_object_get(json, "config"));
    const char *key;
    json_t *value;

    for (size_t i = 0; i < sizeof(apart) / sizeof(apart[0]); i++)
        json_object_del(json, apart[i]);
    json_object_del(json, "config");
    json_object_del(config, "env");
    for (size_t i = 0; i < sizeof(own_members) / sizeof(own_members[0]); i++)
        json_object_del(config, own_members[i]);
    json_object_foreach(config, key, value) diff_flatten("", key, value, out);
    json_object_foreach(json, key, value) diff_flatten("run", key, value, out);
}

/* ---- the environment */

static void list_environment(const struct run_spec *spec, struct items *out)
{
    CODEC_AUTOJSON json_t *json = run_spec_to_json(spec), *last = json_object();
    size_t i;
    json_t *env;
    const char *name;

    json_array_foreach(json_object_get(json, "env"), i, env) /* the last one of a name counts */
        json_object_set_new(last, codec_json_str(env, "name", "?"),
                            json_string(codec_json_str(env, "value", "(a secret)")));
    json_object_foreach(last, name, env) diff_add_item(out, name, flow_setting_text(env));
}

/* ---- the nodes */

static char *names_of_nodes(struct flow *flow, const struct flow_run *run)
{
    ACT_AUTO(platform_nodes) nodes = {0};
    struct platform *platform;
    struct act_error ignored;
    struct act_buf names = {0};

    if (run->status.unsubmitted || flow_platform_of(flow, &run->row, &platform, &ignored) < 0 ||
        platform_nodes(platform, run->row.id, &nodes, &ignored) < 0)
        return NULL;
    for (size_t i = 0; i < nodes.n; i++)
        act_buf_addf(&names, "%s%s", i ? " " : "", nodes.v[i].name);
    return nodes.n ? act_buf_steal(&names) : NULL;
}

static void diff_list_nodes(struct flow *flow, const struct flow_run *run, struct items *out)
{
    const struct run_spec *spec = &run->spec;
    char *names = names_of_nodes(flow, run);

    diff_add_item(out, "cluster", act_strdup(spec->cluster));
    diff_add_item(out, "platform", act_strdup(spec->platform));
    diff_add_item(out, "nodes", act_sprintf("%d", spec->nodes));
    if (run_spec_is_elastic(spec))
        diff_add_item(out, "range", act_sprintf("%d to %d", spec->min_nodes, spec->max_nodes));
    diff_add_item(out, "processes_per_node", act_sprintf("%d", run_spec_processes(spec)));
    diff_add_item(out, spec->on_processors ? "processors_per_node" : "gpus_per_node",
                  act_sprintf("%d", spec->gpus_per_node));
    if (names)
        diff_add_item(out, "names", names);
}

/* ---- what they ran with */

/* Reads it where the logs of the run are. Release *out in any case. */
static bool read_environment(struct flow *flow, const struct flow_run *run, struct run_environment *out)
{
    CODEC_AUTOJSON json_t *json = NULL;
    struct store_page logs = {0};
    struct flow_source from;
    struct act_error err;

    *out = (struct run_environment){0};
    if (run->status.unsubmitted)
        return false;
    int rc = flow_source_open(flow, run, &from, &err);
    if (rc == 0)
        rc = flow_source_list(&from, &logs, &err);
    for (size_t i = 0; rc == 0 && i < logs.n; i++)
        if (strcmp(logs.v[i].key, RUN_FILE_ENVIRONMENT) == 0)
            rc = flow_log_json(&from, &logs.v[i], &json, &err);
    store_page_release(&logs);
    flow_source_close(&from);
    if (rc == 0 && json)
        rc = run_environment_from_json(json, out, &err);
    if (rc < 0)
        act_note("what '%s' ran with is not known: %s", run->row.id, act_error_text(&err));
    return rc == 0 && json;
}

static void diff_compare_software(struct flow *flow, const struct flow_run *from, const struct flow_run *to,
                                  struct flow_diff *out)
{
    ACT_AUTO(run_environment) before = {0};
    ACT_AUTO(run_environment) now = {0};
    struct flow_setting *v = NULL;
    size_t n = 0;

    if (read_environment(flow, from, &before) && read_environment(flow, to, &now))
        flow_list_software(&now, &before, &v, &n);
    for (size_t i = 0; i < n; i++)
        if (act_streq(v[i].before, v[i].value))
            diff_add_same("software", v[i].name, v[i].value, out);
        else
            ACT_PUSH(out->v, out->n,
                     (struct flow_difference){.part = "software",
                                              .name = act_strdup(v[i].name),
                                              .from = act_strdup(v[i].before),
                                              .to = act_strdup(v[i].value)});
    flow_settings_release(v, n);
}

/* ---- all of it */

static void diff_release_list(struct flow_difference *v, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        free(v[i].name);
        free(v[i].from);
        free(v[i].to);
        free(v[i].lines);
    }
    free(v);
}

void flow_diff_release(struct flow_diff *diff)
{
    diff_release_list(diff->v, diff->n);
    diff_release_list(diff->same, diff->n_same);
    *diff = (struct flow_diff){0};
}

void flow_diff(struct flow *flow, const struct flow_run *from, const struct flow_run *to, struct flow_diff *out)
{
    static const struct {
        const char *part;
        void (*list)(const struct run_spec *spec, struct items *out);
    } pure[] = {{"configuration", list_configuration}, {"environment", list_environment}};
    struct items a = {0}, b = {0};

    *out = (struct flow_diff){0};
    list_command(&from->spec, &a);
    list_command(&to->spec, &b);
    diff_compare("command", &a, &b, out);
    compare_code(from, to, out);
    for (size_t i = 0; i < sizeof(pure) / sizeof(pure[0]); i++) {
        pure[i].list(&from->spec, &a);
        pure[i].list(&to->spec, &b);
        diff_compare(pure[i].part, &a, &b, out);
    }
    diff_list_nodes(flow, from, &a);
    diff_list_nodes(flow, to, &b);
    diff_compare("nodes", &a, &b, out);
    diff_compare_software(flow, from, to, out);
}
