/* mapped.c - see mapped.h. */
#include <string.h>

#include "base/path.h"
#include "config/config.h"
#include "flow/data/data_internal.h"
#include "flow/data/mapped.h"
#include "flow/trust.h"
#include "store/store.h"

void mapped_release(struct mapped *m)
{
    free(m->rest);
    free(m->local);
    free(m->key);
}

int mapped_find(const struct config *config, const char *path, struct mapped *out, struct act_error *err)
{
    int rc = config_map_path(config, path, &out->folder, &out->rest, err);

    if (rc == 0 && out->folder->claim)
        rc = act_error_set(err, ACT_CONFIG,
                           "'%s' is on the PersistentVolumeClaim '%s', which pods see and this machine does not: a run "
                           "looks at it or fills it, 'a submit ls -l %s'; 'kubectl cp' copies to and from its pods",
                           out->folder->name, out->folder->claim, out->folder->name);
    if (rc == 0 && *out->rest)
        rc = flow_trust_path(config, out->folder->name, out->rest, err);
    if (rc < 0)
        return rc;
    ACT_AUTOFREE char *folder = act_path_join(config->project_root, out->folder->name);
    out->local = act_path_below(folder, out->rest);
    out->key = act_path_below(out->folder->path, out->rest);
    return 0;
}

int flow_check_path(struct flow *flow, const char *path, struct act_error *err)
{
    ACT_AUTO(mapped) m = {0};

    return mapped_find(flow->config, path, &m, err);
}

/* A line end keeps a folder in another folder apart from that one's key of the same name. */
char *flow_path_place(struct flow *flow, const char *path)
{
    ACT_AUTO(mapped) m = {0};
    struct act_error ignored;

    if (mapped_find(flow->config, path, &m, &ignored) < 0)
        return NULL;
    ACT_AUTOFREE char *key = mapped_bare_key(m.rest);
    return act_sprintf("%s\n%s%s", m.folder->name, *key ? "/" : "", key);
}

bool mapped_has_local_name(const struct mapped *m)
{
    return !*m->rest || act_path_is_safe(m->rest, strlen(m->rest));
}

int mapped_check_local_name(const struct mapped *m, const char *path, struct act_error *err)
{
    if (mapped_has_local_name(m))
        return 0;
    return act_error_set(err, ACT_USAGE,
                         "'%s' has an empty segment ('//'), which no file on this machine can have in its name; in a "
                         "container it is another name than the one without",
                         path);
}

int flow_check_local_path(struct flow *flow, const char *path, struct act_error *err)
{
    ACT_AUTO(mapped) m = {0};
    int rc = mapped_find(flow->config, path, &m, err);

    return rc < 0 ? rc : mapped_check_local_name(&m, path, err);
}

char *mapped_root(const struct mapped *m)
{
    return act_strndup(m->local, strlen(m->local) - strlen(m->rest) - (*m->rest != '\0'));
}

char *mapped_bare_key(const char *key)
{
    size_t len = strlen(key);

    return act_strndup(key, len && key[len - 1] == '/' ? len - 1 : len);
}

/* Adds to an error what begins like the key, which names nothing; path is what the user typed for it. */
static void suggest(struct store *store, const char *key, const char *path, struct act_error *err)
{
    enum { SUGGESTIONS = 3 };
    ACT_AUTOFREE char *stem = mapped_bare_key(key);
    ACT_AUTOFREE char *typed = mapped_bare_key(path);
    ACT_AUTOFREE char *problem = act_strdup(act_error_text(err));
    ACT_AUTO(store_call) call = {.op = STORE_LIST, .key = stem, .list = {.delimiter = true, .max = SUGGESTIONS + 1}};
    ACT_AUTO(act_buf) names = {0};
    struct act_error ignored;
    int rc = store_do(store, &call, &ignored);

    for (size_t i = 0; rc == 0 && i < call.list.page.n && i < SUGGESTIONS; i++) {
        const char *rest = call.list.page.v[i].key + strlen(stem);
        act_buf_addf(&names, "%s'%s%s'", names.len ? ", " : "", typed, rest);
    }
    if (names.len)
        act_error_set(err, ACT_NOT_FOUND, "%s; names that begin like it: %s%s", problem, names.data,
                      call.list.page.n > SUGGESTIONS ? ", ..." : "");
}

/* A folder in whose listing there is nothing, not even itself. That of a disk which is all of the store is there. */
static bool is_empty_folder(struct store *store, const char *key)
{
    if (!*key)
        return store_traits(store)->is_disk || store_traits(store)->is_far_disk;
    ACT_AUTOFREE char *folder = act_sprintf("%s/", key);
    ACT_AUTO(store_call) head = {.op = STORE_HEAD, .key = folder};
    struct act_error ignored;

    return store_do(store, &head, &ignored) == 0;
}

int flow_resolve(struct store *store, const char *key, const char *path, struct transfer_path *out,
                 struct act_error *err)
{
    ACT_AUTOFREE char *name = mapped_bare_key(key);
    int rc = transfer_resolve(store, key, out, err);

    if (rc == -ACT_NOT_FOUND && err->fact != ACT_FACT_CONTAINER_MISSING && is_empty_folder(store, name)) {
        *err = (struct act_error){0};
        *out = (struct transfer_path){.store = store, .path = act_strdup(name), .is_folder = true};
        return 0;
    }
    if (rc < 0)
        act_error_prefix(err, rc == -ACT_NOT_FOUND ? "cannot find '%s'" : "cannot look at '%s'", path);
    if (rc == -ACT_NOT_FOUND && err->fact != ACT_FACT_CONTAINER_MISSING)
        suggest(store, key, path, err);
    return rc;
}

int mapped_resolve(struct flow *flow, struct store *store, const struct mapped *m, const char *path,
                   struct transfer_path *out, struct act_error *err)
{
    int rc = flow_resolve(store, m->key, path, out, err);

    if (rc == 0 && out->is_link && !*m->rest) {
        transfer_path_release(out);
        rc = act_error_set(err, ACT_FAIL, "cannot look at '%s': it is a symbolic link in %s, not a folder", path,
                           store_name(store));
    }
    if (rc == -ACT_NOT_FOUND && mapped_has_local_name(m))
        flow_explain_absence(flow, m->folder, m->local, err);
    return rc;
}
