/* config.c - one configuration from all its sources. */
#include "config/config.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/dirs.h"
#include "base/file.h"
#include "base/log.h"
#include "base/path.h"
#include "base/units.h"
#include "base/user.h"
#include "codec/json.h"
#include "config/config_internal.h"

enum { MAX_FILE_BYTES = 1 << 20, MAX_EXPERIMENT_NAME = 200 };

#define ROW "config_param.*"

/* -- parts that a file holds -- */

/* Reads the members of a part from a file that another tool made: all are text, and what is not a member is that
 * tool's. */
static int read_members(const char *path, const char *name, const struct config_part *part, struct yaml *into,
                        struct act_error *err)
{
    ACT_AUTOFREE char *text = NULL;
    CODEC_AUTOJSON json_t *json = NULL;
    size_t len = 0;
    int rc = act_file_read_regular(path, MAX_FILE_BYTES, &text, &len, err);

    if (rc == 0)
        rc = codec_json_parse(text, len, name, &json, err);
    if (rc < 0)
        return rc;
    if (!json_is_object(json))
        return act_error_set(err, ACT_CONFIG, "%s: must be an object with '%s' and so on", name,
                             config_key_member(&part->keys[1], part->name));
    for (const struct config_key *key = part->keys; key->path; key++) {
        const char *member_name = config_key_member(key, part->name);
        const json_t *member = member_name ? json_object_get(json, member_name) : NULL;
        if (member && !json_is_string(member) && !json_is_null(member))
            return act_error_set(err, ACT_CONFIG, "%s: '%s' must be text", name, member_name);
        if (json_is_string(member))
            yaml_put(into, member_name, yaml_new_text(name, json_string_value(member)));
    }
    return 0;
}

static bool has_part(const struct config_kind *kind, const struct config_part *part)
{
    const struct config_part *const *own = kind->parts;

    while (own && *own && *own != part)
        own++;
    return own && *own;
}

/* Replaces the name of a part's file by what it holds, but for what another layer says instead. Platforms without that
 * part do not miss the file. */
static void resolve_file(struct config *c, const struct config_part *part, struct config_findings *f)
{
    struct yaml *value = yaml_get(c->values->tree, part->name);
    struct act_error err;

    if (yaml_is_null(value) || !value->text)
        return;
    ACT_AUTOFREE char *path = config_absolute(value->text, c->project_root);
    const char *name = config_display(path, c->project_root);
    struct yaml *members = yaml_new_map(name);
    members->line = config_is_own(c, part->name) ? 0 : value->line; /* for config_files() */
    bool wanted = has_part(config_kind_named(c->platform), part) || access(path, F_OK) == 0;
    if (wanted && read_members(path, name, part, members, &err) < 0)
        config_problem(f, value, "'%s': %s", part->name, act_error_text(&err));
    for (size_t i = 0; i < value->n; i++)
        yaml_put(members, value->items[i]->key, value->items[i]);
    value->n = 0;
    yaml_put(c->values->tree, part->name, members);
}

static void resolve_files(struct config *c, struct config_findings *f)
{
    for (const struct config_part *const *part = config_parts(); *part; part++)
        if ((*part)->keys->type == CONFIG_MAP_FILE)
            resolve_file(c, *part, f);
}

/* -- config_param -- */

/* "pvc:NAME/path" is a path in a PersistentVolumeClaim, which is no store of ACT's. */
static void take_claim(struct config_folder *folder)
{
    static const char scheme[] = "pvc:";

    if (!folder->path || !act_starts_with(folder->path, scheme))
        return;
    ACT_AUTOFREE char *whole = folder->path;
    const char *name = whole + strlen(scheme);
    size_t n = strcspn(name, "/");
    folder->claim = act_strndup(name, n);
    folder->path = act_strdup(name + n + (name[n] == '/'));
}

/* The name of an object of Kubernetes: kubernetes.io/docs/concepts/overview/working-with-objects/names/ (RFC 1123
 * subdomain). */
static bool is_object_name(const char *name)
{
    enum { LONGEST = 253 };
    size_t n = strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789-.");

    return n > 0 && n <= LONGEST && !name[n] && isalnum((unsigned char)name[0]) && isalnum((unsigned char)name[n - 1]);
}

const char *const config_keys_of_stores[] = {"storage_type",
                                             "azure_blob_config_file",
                                             "datastore_name",
                                             "file_share",
                                             "blob_cache_timeout",
                                             "submit_with_url",
                                             NULL};

static void config_check_claim(const struct config *c, const struct config_folder *folder, const struct yaml *row,
                               struct config_findings *f)
{
    const struct yaml *at = yaml_get(row, "path");
    ACT_AUTOFREE char *names = config_kinds_that(offsetof(struct config_kind, has_claims));

    if (!is_object_name(folder->claim))
        config_problem(f, at, "the path of '%s' must be 'pvc:NAME' or 'pvc:NAME/path', with the name of a claim",
                       row->key);
    if (folder == &c->code)
        config_problem(f, at, "'code_path' must be in a store: this machine does not see the claim '%s'",
                       folder->claim);
    else if (!config_kind_named(c->platform)->has_claims)
        config_problem(f, at, "'%s' is on the claim '%s', which only the platform %s can have, not '%s'", row->key,
                       folder->claim, names, c->platform);
    if (act_streq(folder->mode, "download") || act_streq(folder->mode, "upload"))
        config_problem(f, yaml_get(row, "mode"),
                       "'%s' is on a claim, which is mounted: 'mode' must be rw_mount or "
                       "ro_mount",
                       row->key);
    for (const char *const *key = config_keys_of_stores; *key; key++)
        if (!yaml_is_null(yaml_get(row, *key)))
            config_problem(f, yaml_get(row, *key), "'%s' has no meaning for '%s', which is on the claim '%s'", *key,
                           row->key, folder->claim);
}

/* Makes the folder that the nodes have the row's store, of which it is all. */
static void config_take_place(const struct config *c, struct config_folder *folder, const struct yaml *row,
                              struct config_findings *f)
{
    const struct yaml *at = yaml_get(row, "path") ? yaml_get(row, "path") : row;
    const char *path = folder->path ? folder->path : "";
    ACT_AUTOFREE char *names = config_kinds_that(offsetof(struct config_kind, has_places));

    if (path[0] != '/' || path[strspn(path, "/.")] == '\0' || act_path_has_parent(path) || act_has_control(path))
        config_problem(f, at,
                       "'%s' has the mode 'path', so its path must be an absolute one, below '/' and without '..'",
                       row->key);
    if (folder == &c->code)
        config_problem(f, at, "'code_path' cannot have the mode 'path': it must be in a store");
    else if (!config_kind_named(c->platform)->has_places)
        config_problem(f, at, "'%s' has the mode 'path', which only the platforms %s have, not '%s'", row->key, names,
                       c->platform);
    for (const char *const *key = config_keys_of_stores + 1; *key; key++) /* 'storage_type: blob' is true of it */
        if (!yaml_is_null(yaml_get(row, *key)))
            config_problem(f, yaml_get(row, *key), "'%s' has no meaning for '%s', which has the mode 'path'", *key,
                           row->key);
    folder->account = act_calloc(1, sizeof(*folder->account));
    folder->account->folder = act_path_clean(path);
    act_str_replace(&folder->account_file, folder->account->folder);
    act_str_replace(&folder->path, "");
}

/* Returns a path without the slashes that it begins and ends with. New string. */
static char *inside_slashes(const char *path)
{
    const char *start = path + strspn(path, "/");
    size_t len = strlen(start);

    while (len > 0 && start[len - 1] == '/')
        len--;
    return act_strndup(start, len);
}

/* Brings a path in the store to its form: "data/x" for "/data//x/". */
static void check_store_path(struct config_folder *folder, const struct yaml *row, struct config_findings *f)
{
    const struct yaml *at = yaml_get(row, "path");

    if (!folder->path) {
        config_problem(f, at ? at : row, "'%s' has no 'path', its place in the store", row->key);
        return;
    }
    if (act_path_has_parent(folder->path) || act_has_control(folder->path))
        config_problem(f, at, "the path of '%s' must not contain '..' or control characters", row->key);
    ACT_AUTOFREE char *clean = act_path_clean(folder->path), *given = inside_slashes(folder->path);
    const char *start = strcmp(clean, ".") == 0 ? "" : clean + strspn(clean, "/"); /* "": all of the store */
    if (*start && strcmp(given, start) != 0)
        config_doubt(f, at, "the path of '%s' is taken for '%s', without empty segments and '.'", row->key, start);
    free(folder->path);
    folder->path = act_strdup(start);
    if (!*folder->path && strcmp(row->key, "code_path") == 0)
        config_problem(f, at, "the path of 'code_path' must be that of a zip file");
}

static void config_check_share(const struct config_folder *folder, const struct yaml *row, struct config_findings *f)
{
    enum { SHORTEST = 3, LONGEST = 63 };
    const struct yaml *at = yaml_get(row, "file_share");
    const char *name = folder->file_share ? folder->file_share : "";
    size_t good = strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789-");

    if (config_is_share(folder) && strcmp(row->key, "code_path") == 0)
        config_problem(f, yaml_get(row, "storage_type"),
                       "'code_path' cannot be in a share of Azure Files: put it into a container or a folder");
    else if (config_is_share(folder) && (name[good] || good < SHORTEST || good > LONGEST))
        config_problem(f, at ? at : row,
                       "'%s' has the storage_type 'file', so 'file_share' must be the name of a share: %d to %d "
                       "lower-case letters, digits and '-'",
                       row->key, SHORTEST, LONGEST);
    else if (!config_is_share(folder) && !folder->claim && folder->file_share)
        config_doubt(f, at, "'file_share' has no effect on '%s' without 'storage_type: file'", row->key);
}

static char *top_level_text(const struct config *c, const char *key)
{
    const struct yaml *value = yaml_get(c->values->tree, key);

    return yaml_is_null(value) || value->kind != YAML_SCALAR ? NULL : act_strdup(value->text);
}

/* The account file of a row, absolute, unless it is the built-in one. */
static void find_account_file(const struct config *c, const struct yaml *row, struct config_folder *folder,
                              struct config_findings *f)
{
    char *file = folder->account_file;

    if (!file) { /* the account and its datastore belong together */
        file = top_level_text(c, "azure_blob_config_file");
        if (!folder->datastore_name)
            folder->datastore_name = top_level_text(c, "datastore_name");
    }
    if (!file || !*file)
        config_problem(f, row, "'%s' has no 'azure_blob_config_file', and there is none at the top level", row->key);
    folder->account_file = file;
    if (file && *file && strcmp(file, CONFIG_BUILT_IN) != 0) {
        folder->account_file = config_absolute(file, c->project_root);
        free(file);
    }
}

static void read_row(const struct config *c, const struct yaml *row, struct config_folder *folder,
                     struct config_findings *f)
{
    config_read_keys(config_cluster_keys, ROW, row, folder, f);
    config_warn_unknown(config_cluster_keys, ROW, row, f);
    if (config_is_place(folder))
        return config_take_place(c, folder, row, f);
    take_claim(folder);
    check_store_path(folder, row, f);
    config_check_share(folder, row, f);
    if (folder->claim)
        config_check_claim(c, folder, row, f);
    else
        find_account_file(c, row, folder, f);
}

/* Returns the name of the local folder of a row: "data" of "data_folder"; NULL for another kind of key. New string. */
static char *folder_of_key(const char *key)
{
    static const char suffix[] = "_folder";
    size_t n = strlen(key);

    if (n < sizeof(suffix) || !act_ends_with(key, suffix))
        return NULL;
    return act_strndup(key, n - (sizeof(suffix) - 1));
}

bool config_is_row(const struct yaml *row, struct config_findings *f)
{
    ACT_AUTOFREE char *name = folder_of_key(row->key);

    if (!name && strcmp(row->key, "code_path") != 0)
        config_problem(f, row,
                       "unknown key '%s' in 'config_param': a folder '%s' is '%s_folder', and the code is 'code_path'",
                       row->key, row->key, row->key);
    return name || strcmp(row->key, "code_path") == 0;
}

static void read_folder(struct config *c, const struct yaml *row, struct config_findings *f)
{
    char *name = folder_of_key(row->key);

    if (!act_path_is_safe(name, strlen(name)) || strchr(name, '/') || act_has_control(name)) {
        config_problem(f, row, "'%s' cannot be a folder of the project; only folders at its top are mapped", name);
        free(name);
        return;
    }
    ACT_GROW(c->folders, c->n_folders);
    struct config_folder *folder = &c->folders[c->n_folders++];
    *folder = (struct config_folder){.name = name};
    read_row(c, row, folder, f);
}

static void read_rows(struct config *c, struct config_findings *f)
{
    struct yaml *rows = yaml_get(c->values->tree, "config_param");

    c->code.name = act_strdup("code");
    for (size_t i = 0; rows && rows->kind == YAML_MAP && i < rows->n; i++) {
        const struct yaml *row = rows->items[i];
        if (!config_is_row(row, f) || yaml_is_null(row))
            continue;
        if (row->kind != YAML_MAP)
            config_problem(f, row, "'%s' must be a map with 'azure_blob_config_file' and 'path', or a path", row->key);
        else if (strcmp(row->key, "code_path") == 0)
            read_row(c, row, &c->code, f);
        else
            read_folder(c, row, f);
    }
    if (!c->code.mode)
        config_read_keys(config_cluster_keys, ROW, NULL, &c->code, f);
}

/* Adds the folders that are behind a login node, if none are mapped and the platform has its store there. */
static void config_add_far(struct config *c, struct config_findings *f)
{
    const struct config_kind *kind = config_kind_named(c->platform);
    ACT_AUTOFREE char *prefix = config_built_in_prefix(c->project_root);

    if (c->n_folders > 0 || !kind->runs_see_store || !kind->login_key || !config_text(c, kind->login_key))
        return;
    for (size_t i = 0; i < CONFIG_BUILT_IN_FOLDERS; i++) {
        ACT_GROW(c->far, c->n_far);
        struct config_folder *folder = &c->far[c->n_far++];
        *folder = (struct config_folder){.name = act_strdup(config_built_in_folders[i]), .is_far = true};
        config_read_keys(config_cluster_keys, ROW, NULL, folder, f);
        act_str_replace(&folder->account_file, CONFIG_BUILT_IN);
        free(folder->path);
        folder->path = act_path_join(prefix, folder->name);
    }
}

char *config_row_key(const struct config *config, const struct config_folder *folder)
{
    return folder == &config->code ? act_strdup("code_path") : act_sprintf("%s_folder", folder->name);
}

const struct yaml *config_row_value(const struct config *config, const struct config_folder *folder, const char *key)
{
    ACT_AUTOFREE char *row = config_row_key(config, folder);

    return yaml_get(yaml_get(yaml_get(config->values->tree, "config_param"), row), key);
}

const struct yaml *config_account_origin(const struct config *config, const struct config_folder *folder)
{
    const struct yaml *own = config_row_value(config, folder, "azure_blob_config_file");

    return yaml_is_null(own) ? yaml_get(config->values->tree, "azure_blob_config_file") : own;
}

/* -- everything else -- */

static char *user_name(void)
{
    static const char *const variables[] = {"LOGNAME", "USER"};
    const char *name = NULL;

    for (size_t i = 0; i < sizeof(variables) / sizeof(variables[0]) && !name; i++)
        name = act_env(variables[i]);
    char *text = name ? act_strdup(name) : act_user_name(getuid());
    for (char *c = text; *c; c++)
        if (!isascii((unsigned char)*c) || (!isalnum((unsigned char)*c) && *c != '-' && *c != '.'))
            *c = '_';
    return text;
}

/* It begins the run ids, which are names of files and of objects. */
static void check_experiment_name(struct config *c, struct config_findings *f)
{
    const char *name = c->experiment_name;

    if (!name || !*name) {
        free(c->experiment_name);
        c->experiment_name = user_name();
        return;
    }
    size_t good = strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-");
    if (name[good] || *name == '.' || *name == '-' || good > MAX_EXPERIMENT_NAME)
        config_problem(f, yaml_get(c->values->tree, "experiment_name"),
                       "'experiment_name' must consist of letters, digits, '_', '-' and '.', and not begin "
                       "with '-' or '.'");
}

bool config_is_image(const char *name)
{
    return *name && *name != '-' && !strpbrk(name, " \t\r\n");
}

static void check_image(struct config *c, struct config_findings *f)
{
    if (c->docker.image && *c->docker.image && !config_is_image(c->docker.image))
        config_problem(f, yaml_get(yaml_get(c->values->tree, "docker"), "image"),
                       "'docker.image' is not the name of an image: it begins with '-' or has blanks in it");
}

static bool is_gpu_name(const char *name)
{
    int64_t index;

    return act_int_from_text(name, &index) ? index >= 0
                                           : act_starts_with(name, "GPU-") || act_starts_with(name, "MIG-");
}

static void config_check_gpus(const struct config *c, struct config_findings *f)
{
    const struct yaml *given = config_value(c, "gpus");
    struct act_strv seen = {0};

    for (size_t i = 0; i < c->gpus.n; i++) {
        if (!is_gpu_name(c->gpus.v[i]))
            config_problem(f, given, "'gpus' names GPUs by their numbers or UUIDs, not by '%s'", c->gpus.v[i]);
        else if (act_strv_has(&seen, c->gpus.v[i]))
            config_problem(f, given, "'gpus' names '%s' twice", c->gpus.v[i]);
        act_strv_push(&seen, c->gpus.v[i]);
    }
    act_strv_release(&seen);
}

static void check_mount(const struct config *c, struct config_findings *f)
{
    ACT_AUTOFREE char *names = config_kinds_that(offsetof(struct config_kind, has_mount));

    if (c->mount && !config_kind_named(c->platform)->has_mount)
        config_problem(f, config_value(c, "mount"), "'mount' is for the platforms %s: '%s' mounts folders by itself",
                       names, c->platform);
}

/* A legacy key may say it, and the origin of the value is that key's. */
static void apply_platform(struct config *c)
{
    struct yaml *tree = c->values->tree;
    const struct config_kind *kind = config_kind_of(tree);
    const struct yaml *legacy = kind->legacy_flag ? yaml_get(tree, kind->legacy_flag) : NULL;

    if (legacy && !act_streq(c->platform, kind->name)) {
        struct yaml *platform = yaml_new_text(legacy->file, kind->name);
        platform->line = legacy->line;
        platform->column = legacy->column;
        yaml_put(tree, "platform", platform);
        act_str_replace(&c->platform, kind->name);
    }
    if (config_kind_named(c->platform)->counts_gpus && yaml_is_null(yaml_get(tree, "gpu_per_node")))
        c->gpu_per_node = -1;
}

static void config_check_parts(struct config *c, struct config_findings *f)
{
    for (const struct config_part *const *part = config_parts(); *part; part++)
        if ((*part)->check)
            (*part)->check(c, f);
}

/* Tells whether a part, or a member of it, was given by -p. */
static bool is_param(const struct yaml *part)
{
    bool is = !yaml_is_null(part) && part->file[0] == '-';

    for (size_t i = 0; !yaml_is_null(part) && i < part->n; i++)
        is = is || part->items[i]->file[0] == '-';
    return is;
}

/* A file may have parts for several platforms; on the command line such a part is meant, and does nothing. */
static void doubt_strangers(const struct config *c, struct config_findings *f)
{
    const struct config_kind *kind = config_kind_named(c->platform);

    for (const struct config_part *const *part = config_parts(); *part && *kind->name; part++) {
        const struct yaml *given = yaml_get(c->values->tree, (*part)->name);
        if (!has_part(kind, *part) && is_param(given))
            config_doubt(f, given, "'%s' has no effect here: cluster '%s' is of platform '%s'", (*part)->name,
                         c->cluster, kind->name);
    }
}

void config_read_tree(struct config *c, struct config_findings *f)
{
    const struct yaml *tree = c->values->tree;

    config_read_keys(config_cluster_keys, "", tree, c, f);
    apply_platform(c);
    resolve_files(c, f);
    for (const char *const *map = config_general_maps; *map; map++)
        config_read_keys(config_general_keys, *map, yaml_get(tree, *map), c, f);
    config_read_parts(c, f);
    config_warn_all_unknown(tree, f);
    check_experiment_name(c, f);
    check_image(c, f);
    check_mount(c, f);
    config_check_gpus(c, f);
    config_check_parts(c, f);
    doubt_strangers(c, f);
    read_rows(c, f);
    config_add_far(c, f);
}

int config_load_all(const struct config_request *request, struct config *out, struct config_findings *f,
                    struct act_error *err)
{
    ACT_AUTO(config_place) place = {0};
    struct yaml *tree = NULL;
    int rc = config_find(request, &place, err);

    *out = (struct config){
        .cluster = act_strdup(place.cluster), .file = act_strdup(place.file), .project_root = act_strdup(place.root)};
    if (rc == 0)
        rc = config_layers(request, &place, &tree, err);
    if (rc == 0) {
        out->values = act_calloc(1, sizeof(*out->values));
        out->values->tree = tree;
        out->values->current_dir = act_strdup(place.current_dir);
        out->values->cluster_origin = act_strdup(place.origin);
        config_read_tree(out, f);
    }
    return rc;
}

/* Says of a cluster file that a link of the project leads out to only that something is wrong: whether it may be read
 * is asked later, and what it has may be no configuration. */
static int hide_findings(const struct config *c, const char *real, size_t n_problems, struct act_error *err)
{
    if (n_problems)
        return act_error_set(err, ACT_CONFIG,
                             "'%s' leads out of the project, to '%s', and is not a cluster file that can be used: 'a "
                             "config check' says why",
                             config_shown_path(c, c->file), real);
    act_warn("'%s' leads out of the project, to '%s'; 'a config check' says what of it is doubtful",
             config_shown_path(c, c->file), real);
    return 0;
}

int config_load(const struct config_request *request, struct config *out, struct act_error *err)
{
    ACT_AUTO(config_findings) f = {0};
    const char *problem;
    int rc = config_load_all(request, out, &f, err);
    bool is_of_project = rc == 0 && out->file && act_path_is_within(out->file, out->project_root);
    ACT_AUTOFREE char *real = is_of_project ? config_leads_out(out->file, out->project_root) : NULL;

    config_findings_sort(&f);
    size_t n = config_count_problems(&f, &problem);
    if (real && f.n > 0 && !(n > 0 ? *problem == '-' : request->quiet))
        rc = hide_findings(out, real, n, err);
    else if (rc == 0 && !request->quiet)
        config_warn(&f);
    if (rc == 0 && n > 0) {
        /* a mistake on the command line is not one of a file */
        rc = act_error_set(err, *problem == '-' ? ACT_USAGE : ACT_CONFIG, "%s", problem);
        if (n > 1)
            act_error_hint(err,
                           n == 2 ? "%zu more problem: 'a config check' names it"
                                  : "%zu more problems: 'a config check' lists them",
                           n - 1);
    }
    if (rc < 0)
        config_release(out);
    return rc;
}

void config_add_folder(struct config *config, struct config_folder *folder)
{
    ACT_PUSH(config->folders, config->n_folders, *folder);
    *folder = (struct config_folder){0};
}

void config_folder_release(struct config_folder *folder)
{
    config_release_keys(config_cluster_keys, ROW, folder);
    free(folder->name);
    free(folder->claim);
    if (folder->account)
        config_account_release(folder->account);
    free(folder->account);
}

void config_release(struct config *config)
{
    config_release_keys(config_general_keys, "", config);
    config_release_parts(config);
    config_folder_release(&config->code);
    for (size_t i = 0; i < config->n_folders; i++)
        config_folder_release(&config->folders[i]);
    for (size_t i = 0; i < config->n_far; i++)
        config_folder_release(&config->far[i]);
    free(config->far);
    free(config->folders);
    free(config->cluster);
    free(config->file);
    free(config->project_root);
    if (config->values) {
        yaml_tree_free(config->values->tree);
        free(config->values->current_dir);
        free(config->values->cluster_origin);
        act_strv_release(&config->values->warned);
        free(config->values);
    }
    *config = (struct config){0};
}
