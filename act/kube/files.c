/* files.c - the files of a kubeconfig, and the values in them. */
#include <string.h>
#include <unistd.h>

#include "base/dirs.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/path.h"
#include "kube/kubeconfig.h"

enum { MAX_FILES = 64 };

/* ---- files ---- */

void kube_files_release(struct kube_files *files)
{
    for (size_t i = 0; i < files->n; i++) {
        yaml_tree_free(files->v[i].tree);
        free(files->v[i].name);
        free(files->v[i].dir);
    }
    free(files->v);
    act_strv_release(&files->missing);
}

/* Returns the folder of a file from the root on, as plugins and later reads begin elsewhere. New string. */
static char *kube_files_folder_of(const char *name)
{
    ACT_AUTOFREE char *dir = act_path_dirname(name), *here = *dir == '/' ? NULL : getcwd(NULL, 0);

    return here ? act_path_join(here, dir) : act_strdup(dir);
}

static int kube_files_add_file(struct kube_files *files, const char *name, bool must_exist, struct act_error *err)
{
    struct yaml *tree = NULL;
    int rc = 0;

    if (files->n == MAX_FILES)
        return act_error_set(err, ACT_CONFIG, "KUBECONFIG names more than %d files", MAX_FILES);
    if (!must_exist && access(name, F_OK) < 0) {
        act_strv_push(&files->missing, name);
        return 0;
    }
    if ((rc = yaml_read(name, name, &tree, err)) < 0)
        return rc;
    if (tree->kind != YAML_MAP) {
        rc = yaml_error(tree, err, "this is no kubeconfig");
        yaml_tree_free(tree);
        return rc;
    }
    ACT_PUSH(files->v, files->n,
             (struct kube_file){.name = act_strdup(name), .dir = kube_files_folder_of(name), .tree = tree});
    return 0;
}

static int kube_files_add_list(struct kube_files *files, const char *list, struct act_error *err)
{
    int rc = 0;

    for (const char *at = list; *at && rc == 0; at += at[strcspn(at, ":")] == ':' ? 1 : 0) {
        size_t n = strcspn(at, ":");
        ACT_AUTOFREE char *name = act_strndup(at, n);
        if (n > 0)
            rc = kube_files_add_file(files, name, false, err);
        at += n;
    }
    return rc;
}

int kube_files_read(const char *named, struct kube_files *out, struct act_error *err)
{
    const char *list = getenv("KUBECONFIG");

    if (named)
        return kube_files_add_file(out, named, true, err);
    if (list && *list)
        return kube_files_add_list(out, list, err);
    ACT_AUTOFREE char *home = act_home_dir();
    ACT_AUTOFREE char *usual = act_path_join(home, ".kube/config");
    return kube_files_add_file(out, usual, false, err);
}

/* ---- values ---- */

int kube_text_of(const struct yaml *map, const char *key, const char **out, struct act_error *err)
{
    const struct yaml *value = map ? yaml_get(map, key) : NULL;

    *out = NULL;
    if (!value || yaml_is_null(value))
        return 0;
    if (value->kind != YAML_SCALAR)
        return yaml_error(value, err, "'%s' must be text", key);
    *out = *value->text ? value->text : NULL;
    return 0;
}

int kube_copy_text(const struct yaml *map, const char *key, char **out, struct act_error *err)
{
    const char *text = NULL;
    int rc = kube_text_of(map, key, &text, err);

    if (rc == 0 && text)
        act_str_replace(out, text);
    return rc;
}

int kube_bool_of(const struct yaml *map, const char *key, bool *out, struct act_error *err)
{
    const struct yaml *value = map ? yaml_get(map, key) : NULL;

    if (yaml_is_null(value) || yaml_as_bool(value, out))
        return 0;
    return yaml_error(value, err, "'%s' must be true or false", key);
}

int kube_part_of(const struct yaml *map, const char *key, enum yaml_kind kind, const struct yaml **out,
                 struct act_error *err)
{
    const struct yaml *value = yaml_get(map, key);

    *out = NULL;
    if (yaml_is_null(value))
        return 0;
    if (value->kind != kind)
        return yaml_error(value, err, "'%s' must be a %s", key, kind == YAML_MAP ? "map" : "list");
    *out = value;
    return 0;
}

json_t *kube_to_json(const struct yaml *value)
{
    int64_t number;
    bool truth;
    json_t *out;

    if (value->kind == YAML_MAP) {
        out = json_object();
        for (size_t i = 0; i < value->n; i++)
            json_object_set_new(out, value->items[i]->key, kube_to_json(value->items[i]));
        return out;
    }
    if (value->kind == YAML_LIST) {
        out = json_array();
        for (size_t i = 0; i < value->n; i++)
            json_array_append_new(out, kube_to_json(value->items[i]));
        return out;
    }
    if (yaml_is_null(value))
        return json_null();
    if (yaml_as_bool(value, &truth))
        return json_boolean(truth);
    return yaml_as_int(value, &number) ? json_integer(number) : json_string(value->text);
}

int kube_name_of(const struct yaml *entry, const struct kube_kind *kind, const char **out, struct act_error *err)
{
    if (entry->kind != YAML_MAP)
        return yaml_error(entry, err, "each of '%s' must be a map", kind->list);
    return kube_text_of(entry, "name", out, err);
}

/* ---- files that it names ---- */

char *kube_resolved(const struct kube_file *file, const char *path)
{
    return *path == '/' ? act_strdup(path) : act_path_join(file->dir, path);
}

static bool is_pem(const char *text, size_t len)
{
    return strlen(text) == len && strstr(text, "-----BEGIN ");
}

static int pem_of_data(const struct yaml *map, const char *key, const char *text, char **out, struct act_error *err)
{
    size_t len = 0;
    uint8_t *data = act_base64_decode(text, &len);

    if (!data)
        return yaml_error(yaml_get(map, key), err, "'%s' is not base64", key);
    *out = act_strndup((char *)data, len);
    bool ok = is_pem(*out, len);
    act_wipe_bytes(data, len);
    return ok ? 0 : yaml_error(yaml_get(map, key), err, "'%s' is not the base64 of a PEM text", key);
}

static int pem_of_file(const struct kube_found *at, const char *key, const char *name, char **out,
                       struct act_strv *files, struct act_error *err)
{
    ACT_AUTOFREE char *path = kube_resolved(at->file, name);
    size_t len = 0;

    act_strv_push(files, path);
    int rc = act_file_read_regular(path, KUBE_MAX_FILE, out, &len, err);

    if (rc < 0)
        return act_error_prefix(err, "'%s' in '%s'", key, at->file->name);
    return is_pem(*out, len) ? 0
                             : act_error_set(err, ACT_CONFIG, "'%s' is not a PEM file; '%s' in '%s' names it", path,
                                             key, at->file->name);
}

int kube_pem_of(const struct kube_found *at, const char *key, char **out, struct act_strv *files, struct act_error *err)
{
    ACT_AUTOFREE char *data_key = act_sprintf("%s-data", key);
    const char *data = NULL, *name = NULL;
    int rc = kube_text_of(at->map, data_key, &data, err);

    if (rc == 0)
        rc = kube_text_of(at->map, key, &name, err);
    if (rc < 0)
        return rc;
    if (data)
        return pem_of_data(at->map, data_key, data, out, err);
    return name ? pem_of_file(at, key, name, out, files, err) : 0;
}
