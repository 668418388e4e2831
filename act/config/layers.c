/* layers.c - built-in values, the files of project and cluster, environment, -p and flags, merged into one tree. */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/dirs.h"
#include "base/hash.h"
#include "base/path.h"
#include "config/config_internal.h"

enum { MAX_BASES = 8 };

/* -- what is said in short -- */

/* {key: value}, from the place of the value. */
static struct yaml *map_of(const struct yaml *from, const char *key, struct yaml *value)
{
    struct yaml *map = yaml_new_map(from->file);

    map->line = value->line = from->line;
    map->column = value->column = from->column;
    yaml_put(map, key, value);
    return map;
}

/* "code_path: some/code.zip" is short for "code_path: {path: some/code.zip}". */
static void expand_rows(struct yaml *rows)
{
    for (size_t i = 0; rows && rows->kind == YAML_MAP && i < rows->n; i++) {
        const struct yaml *row = rows->items[i];
        if (!yaml_is_null(row) && row->kind == YAML_SCALAR)
            yaml_put(rows, row->key, map_of(row, "path", yaml_new_text(row->file, row->text)));
    }
}

/* "retry: 3" is short for "retry: {times: 3}". */
static void expand_retry(struct yaml *tree)
{
    const struct yaml *value = yaml_get(tree, "retry");
    int64_t n;

    if (config_read_int(config_key_find(config_cluster_keys, "retry", "times"), value, &n))
        yaml_put(tree, "retry", map_of(value, "times", yaml_new_word(value->file, value->text)));
}

/* "environment: none" is short for "environment: {make: none}". */
static void expand_environment(struct yaml *tree)
{
    const struct yaml *value = yaml_get(tree, "environment");

    if (value && value->kind == YAML_SCALAR && act_streq(value->text, "none"))
        yaml_put(tree, "environment", map_of(value, "make", yaml_new_word(value->file, value->text)));
}

/* Each layer, so that another one completes what is said in short as it does what is said in full. */
static void config_layers_expand(struct yaml *layer)
{
    expand_retry(layer);
    expand_environment(layer);
    expand_rows(yaml_get(layer, "config_param"));
}

/* Lays one layer over those before it. The name of a file with the members of a part becomes the text of a map, for
 * what is said beside the file: resolve_file() puts that over what the file says. */
static void lay_over(struct yaml *tree, struct yaml *over)
{
    for (const struct config_part *const *part = config_parts(); *part; part++) {
        struct yaml *named = yaml_get(tree, (*part)->name);
        const struct yaml *members = yaml_get(over, (*part)->name);
        if ((*part)->keys->type == CONFIG_MAP_FILE && named && named->kind == YAML_SCALAR && !yaml_is_null(named) &&
            members && members->kind == YAML_MAP)
            named->kind = YAML_MAP;
    }
    yaml_merge(tree, over);
}

static int must_be_map(const struct yaml *root, struct act_error *err)
{
    if (root->kind == YAML_MAP)
        return 0;
    return yaml_error(root, err, "must be a map of keys and values, as 'num_gpu: 8'");
}

/* text: what the file would hold; NULL: what it holds. */
static int read_map(const char *file, const char *text, const char *root, struct yaml **out, struct act_error *err)
{
    const char *name = config_display(file, root);
    int rc = text ? yaml_parse(text, strlen(text), name, out, err) : yaml_read(file, name, out, err);

    if (rc == 0)
        rc = must_be_map(*out, err);
    if (rc == 0) {
        config_layers_expand(*out);
    } else {
        yaml_tree_free(*out);
        *out = NULL;
    }
    return rc;
}

/* A file that says "_base_: other.yaml" completes that one; the other may have a base in turn. */
static int read_with_bases(const char *file, const char *text, const char *root, int depth, struct yaml **out,
                           struct act_error *err)
{
    struct yaml *base = NULL;
    int rc = read_map(file, text, root, out, err);
    const struct yaml *named = yaml_get(*out, "_base_");

    if (rc < 0 || yaml_is_null(named))
        return rc;
    if (named->kind != YAML_SCALAR)
        return yaml_error(named, err, "'_base_' must be the name of a file");
    if (depth == MAX_BASES)
        return yaml_error(named, err, "too many files, each the '_base_' of another (limit: %d)", MAX_BASES);
    ACT_AUTOFREE char *dir = act_path_dirname(file);
    ACT_AUTOFREE char *path = config_absolute(named->text, dir);
    rc = read_with_bases(path, NULL, root, depth + 1, &base, err);
    if (rc < 0) {
        yaml_tree_free(base);
        act_error_prefix(err, "%s:%d:%d: '_base_'", named->file, named->line, named->column);
        return rc;
    }
    lay_over(base, *out);
    *out = base;
    return 0;
}

/* -- the built-in cluster, and what platforms have by themselves -- */

char *config_built_in_prefix(const char *root)
{
    struct act_sha256 sha;
    char hex[ACT_SHA256_HEX];
    const char *name = strcmp(root, "/") == 0 ? "root" : act_path_basename(root);

    act_sha256_init(&sha);
    act_sha256_add(&sha, root, strlen(root));
    act_sha256_done(&sha, hex);
    char *prefix = act_sprintf("%s-%.8s", name, hex);
    for (char *c = prefix; *c; c++)
        if (!isascii((unsigned char)*c) || !(isalnum((unsigned char)*c) || strchr("._-", *c)))
            *c = '_';
    return prefix;
}

const char *const config_built_in_folders[CONFIG_BUILT_IN_FOLDERS] = {"data", "output"};

/* own: in the store that the platform has by itself; else in the account of the top level. */
static struct yaml *built_in_row(const char *prefix, const char *below, bool own)
{
    struct yaml *row = yaml_new_map(CONFIG_DEFAULT);
    ACT_AUTOFREE char *path = act_path_join(prefix, below);

    if (own)
        yaml_put(row, "azure_blob_config_file", yaml_new_text(CONFIG_DEFAULT, CONFIG_BUILT_IN));
    yaml_put(row, "path", yaml_new_text(CONFIG_DEFAULT, path));
    return row;
}

static struct yaml *built_in_rows(const char *root, bool with_folders, bool own)
{
    const char *const *names = config_built_in_folders;
    ACT_AUTOFREE char *prefix = config_built_in_prefix(root);
    struct yaml *rows = yaml_new_map(CONFIG_DEFAULT), *all = yaml_new_map(CONFIG_DEFAULT);

    yaml_put(rows, "code_path", built_in_row(prefix, "code.zip", own));
    for (size_t i = 0; with_folders && i < CONFIG_BUILT_IN_FOLDERS; i++) {
        ACT_AUTOFREE char *key = act_sprintf("%s_folder", names[i]);
        yaml_put(rows, key, built_in_row(prefix, names[i], own));
    }
    yaml_put(all, "config_param", rows);
    return all;
}

/* Tells whether runs see the built-in store: not through a login node, and not where only the code is brought to
 * them. */
static bool has_built_in_folders(const struct config_kind *kind, const struct yaml *tree)
{
    if (kind->has_store)
        return kind->runs_see_store && (!kind->login_key || yaml_is_null(config_tree_value(tree, kind->login_key)));
    return true;
}

/* Where there is a place for code and folders, what the files do not say gets it: in the platform's own store, else in
 * the account of the top level, which is a place for all projects. */
static struct yaml *add_built_in(struct yaml *tree, const char *root, bool has_folders, bool has_code)
{
    const struct config_kind *kind = config_kind_of(tree);
    bool has_account = kind->has_account && !yaml_is_null(yaml_get(tree, "azure_blob_config_file"));

    if (has_code || !(kind->has_store || has_account))
        return tree;
    struct yaml *below = built_in_rows(root, !has_folders && has_built_in_folders(kind, tree), kind->has_store);
    if (yaml_is_null(yaml_get(tree, "config_param")))
        yaml_put(tree, "config_param", yaml_new_map(CONFIG_DEFAULT));
    yaml_merge(below, tree);
    return below;
}

/* -- environment, -p, flags -- */

static bool is_scalar(const struct config_key *key)
{
    return key->type == CONFIG_BOOL || key->type == CONFIG_INT || key->type == CONFIG_TEXT ||
           key->type == CONFIG_CHOICE;
}

void config_simple_keys(struct act_strv *out)
{
    for (const struct config_key *key = config_cluster_keys; key->path; key++)
        if (is_scalar(key) && config_key_member(key, "") && !key->instead)
            act_strv_push(out, key->path);
}

static void add_keys_of_environment(struct yaml *tree)
{
    for (const struct config_key *key = config_cluster_keys; key->path; key++) {
        if (!is_scalar(key) || !config_key_member(key, ""))
            continue;
        ACT_AUTOFREE char *origin = act_sprintf("$ACT_%s", key->path);
        for (char *c = origin; *c; c++)
            *c = (char)toupper((unsigned char)*c);
        const char *value = act_env(origin + 1);
        if (value)
            yaml_put(tree, key->path,
                     key->type == CONFIG_TEXT ? yaml_new_text(origin, value) : yaml_new_word(origin, value));
    }
}

/* A key without effect must not be ignored silently on the command line. */
static void doubt_idle(const struct yaml *map, struct config_findings *f)
{
    for (size_t i = 0; i < map->n; i++) {
        const struct config_key *key = config_key_find(config_cluster_keys, "", map->items[i]->key);
        if (key && key->type == CONFIG_ANY)
            config_doubt(f, map->items[i], "'%s' has no effect here: %s", key->path, key->help);
    }
}

/* Refuses unknown keys on the command line. In a file they may be another tool's, and only deserve a warning. */
static int check_param(const struct yaml *over, struct act_error *err)
{
    const struct yaml *rows = yaml_get(over, "config_param");
    ACT_AUTO(config_findings) f = {0};
    const char *said;

    config_warn_all_unknown(over, &f);
    doubt_idle(over, &f);
    for (size_t i = 0; rows && rows->kind == YAML_MAP && i < rows->n; i++)
        if (config_is_row(rows->items[i], &f))
            config_warn_unknown(config_cluster_keys, "config_param.*", rows->items[i], &f);
    if (f.n == 0)
        return 0;
    bool has_problem = config_count_problems(&f, &said) > 0;
    return act_error_set(err, ACT_USAGE, "%s", has_problem ? said : f.v[0].text);
}

static int add_param(struct yaml *tree, const char *text, struct act_error *err)
{
    struct yaml *over = NULL;
    int rc = yaml_parse(text, strlen(text), "-p", &over, err);

    if (rc == 0)
        rc = must_be_map(over, err);
    if (rc == 0)
        config_layers_expand(over);
    if (rc == 0)
        rc = check_param(over, err);
    if (rc < 0) {
        yaml_tree_free(over);
        if (err)
            err->code = ACT_USAGE; /* no file's mistake */
        return -ACT_USAGE;
    }
    lay_over(tree, over);
    return 0;
}

static int override_value(const struct config_override *o, struct yaml **out, struct act_error *err)
{
    const struct config_key *key = config_cluster_keys;

    while (key->path && strcmp(key->path, o->key) != 0)
        key++;
    if (key->path && key->type == CONFIG_TEXT) {
        *out = yaml_new_text(o->flag, o->value);
        return 0;
    }
    int rc = yaml_parse(o->value, strlen(o->value), o->flag, out, err);
    if (rc == 0)
        (*out)->line = (*out)->column = 0;
    return rc;
}

/* Wraps the value of "docker.image" as {docker: {image: value}} and merges that. */
static int add_override(struct yaml *tree, const struct config_override *o, struct act_error *err)
{
    struct yaml *value = NULL;
    int rc = override_value(o, &value, err);
    ACT_AUTOFREE char *path = act_strdup(o->key);

    if (rc < 0)
        return rc;
    for (char *dot; (dot = strrchr(path, '.')); *dot = '\0') {
        struct yaml *outer = yaml_new_map(o->flag);
        yaml_put(outer, dot + 1, value);
        value = outer;
    }
    struct yaml *over = yaml_new_map(o->flag);
    yaml_put(over, path, value);
    config_layers_expand(over);
    lay_over(tree, over);
    return 0;
}

static int add_flags(const struct config_request *request, struct yaml *tree, struct act_error *err)
{
    int rc = 0;

    for (const char *const *p = request->params; p && *p && rc == 0; p++)
        rc = add_param(tree, *p, err);
    for (size_t i = 0; i < request->n_overrides && rc == 0; i++)
        rc = add_override(tree, &request->overrides[i], err);
    return rc;
}

static int read_file_layer(const struct config_place *place, struct yaml **out, struct act_error *err)
{
    if (place->file)
        return read_with_bases(place->file, place->text, place->root, 0, out, err);
    *out = yaml_new_map(CONFIG_DEFAULT);
    yaml_put(*out, "platform", yaml_new_text(CONFIG_DEFAULT, config_kind_built_in()->name));
    return 0;
}

/* ---- the project's own file */

/* Refuses a key that the project's file cannot have: a project may come from anybody, so it says what commands need,
 * and never where anything goes. */
static int refuse_project_key(const struct yaml *value, const struct act_strv *allowed, struct act_error *err)
{
    bool is_of_cluster = config_key_find(config_cluster_keys, "", value->key);
    const char *near = is_of_cluster ? NULL : act_nearest(value->key, (const char *const *)allowed->v);
    ACT_AUTO(act_buf) names = {0};

    if (near)
        return yaml_error(value, err, "unknown key '%s'; did you mean '%s'?", value->key, near);
    for (size_t i = 0; i < allowed->n; i++)
        act_buf_addf(&names, "%s%s", i == 0 ? "" : i + 1 < allowed->n ? ", " : " and ", allowed->v[i]);
    return yaml_error(
        value, err, "'%s' has no place in '" CONFIG_PROJECT_FILE "', which is for all clusters: it has %s%s",
        value->key, names.data,
        is_of_cluster ? "; what is of one cluster stands in its own file, '" CONFIG_CLUSTER_DIR "/CLUSTER.yaml'" : "");
}

static int check_project(const struct yaml *layer, struct act_error *err)
{
    ACT_AUTO(act_strv) allowed = {0};
    int rc = 0;

    for (const struct config_key *key = config_cluster_keys; key->path; key++)
        if (key->in_project)
            act_strv_push(&allowed, key->path);
    for (size_t i = 0; rc == 0 && i < layer->n; i++)
        if (!act_strv_has(&allowed, layer->items[i]->key))
            rc = refuse_project_key(layer->items[i], &allowed, err);
    return rc;
}

/* Tells whether there is such a file: 1 or 0. A link that leads nowhere is an error, as the file is meant to count. */
static int has_project_file(const char *file, struct act_error *err)
{
    struct stat st;

    if (access(file, F_OK) == 0)
        return 1;
    if (lstat(file, &st) < 0)
        return 0;
    return act_error_set(err, ACT_CONFIG, "'" CONFIG_PROJECT_FILE "' in the project is a link that leads nowhere");
}

char *config_leads_out(const char *file, const char *root)
{
    char *real = realpath(file, NULL);
    ACT_AUTOFREE char *real_root = realpath(root, NULL);

    if (real && real_root && !act_path_is_within(real, real_root))
        return real;
    free(real);
    return NULL;
}

/* Says of a file outside of the project nothing but that it is wrong: what it has is not the project's to show, and
 * whether it may be read at all is asked later. */
static int hide_project_error(const char *file, const char *root, int rc, struct act_error *err)
{
    ACT_AUTOFREE char *real = config_leads_out(file, root);

    if (!real)
        return rc;
    return act_error_set(err, ACT_CONFIG,
                         "'" CONFIG_PROJECT_FILE "' leads out of the project, to '%s', which has more than the file of "
                         "a project may have",
                         real);
}

/* Lays what is there so far over what the project's own file says, if there is one. */
static int add_project(const struct config_place *place, struct yaml **tree, struct act_error *err)
{
    ACT_AUTOFREE char *file = act_path_join(place->root, CONFIG_PROJECT_FILE);
    struct yaml *layer = NULL;
    int rc = act_streq(file, place->file) ? 0 : has_project_file(file, err);

    if (rc <= 0)
        return rc;
    rc = read_map(file, NULL, place->root, &layer, err);
    if (rc == 0)
        rc = check_project(layer, err);
    if (rc < 0) {
        yaml_tree_free(layer);
        return hide_project_error(file, place->root, rc, err);
    }
    lay_over(layer, *tree);
    *tree = layer;
    return 0;
}

int config_layers(const struct config_request *request, const struct config_place *place, struct yaml **out,
                  struct act_error *err)
{
    struct yaml *tree = NULL;
    int rc = read_file_layer(place, &tree, err);

    *out = NULL;
    if (rc == 0)
        rc = add_project(place, &tree, err);
    if (rc < 0) {
        yaml_tree_free(tree);
        return rc;
    }
    const struct yaml *param = yaml_get(tree, "config_param");
    bool has_folders = !yaml_is_null(param), has_code = !yaml_is_null(yaml_get(param, "code_path"));
    add_keys_of_environment(tree);
    rc = add_flags(request, tree, err);
    if (rc < 0) {
        yaml_tree_free(tree);
        return rc;
    }
    *out = add_built_in(tree, place->root, has_folders, has_code);
    return 0;
}
