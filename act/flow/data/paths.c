/* paths.c - single mapped paths: opened, resolved, removed, as URLs. */
#include <string.h>
#include <sys/stat.h>

#include "base/log.h"
#include "config/config.h"
#include "flow/data/data_internal.h"
#include "flow/data/mapped.h"
#include "flow/flow_internal.h"

/* A mapped folder is there as soon as it is mapped: as long as its store has nothing below it, it is empty. Says so,
 * because a wrong 'path' in the cluster file looks the same. */
static void take_as_empty(struct flow *flow, struct store *store, const struct mapped *m, struct transfer_path *out)
{
    struct act_error text = {0};

    *out = (struct transfer_path){.store = store, .path = mapped_bare_key(m->key), .is_folder = true};
    act_error_set(&text, ACT_NOT_FOUND, "'%s' is empty: there is nothing below '%s' in %s", m->folder->name, out->path,
                  store_name(store));
    flow_explain_absence(flow, m->folder, m->local, &text);
    act_note("%s", act_error_text(&text));
}

int flow_open_path(struct flow *flow, const char *path, struct flow_path *out, struct act_error *err)
{
    struct mapped m = {0};
    int rc = mapped_find(flow->config, path, &m, err);

    *out = (struct flow_path){0};
    if (rc == 0)
        rc = flow_store(flow, m.folder, &out->store, err);
    if (rc == 0)
        rc = mapped_resolve(flow, out->store, &m, path, &out->path, err);
    if (rc == -ACT_NOT_FOUND && out->store && !*m.rest && err->fact != ACT_FACT_CONTAINER_MISSING) {
        take_as_empty(flow, out->store, &m, &out->path);
        rc = 0;
    }
    if (rc == 0)
        flow_mention_limits(flow, out->store, NULL);
    mapped_release(&m);
    if (rc < 0)
        flow_path_release(out);
    return rc;
}

/* Opens the local folder as a store. If there is no such folder, nothing can have been left in it. */
static int paths_open_here(struct flow *flow, const struct mapped *m, struct store **out, struct act_error *err)
{
    struct stat st;

    if (!mapped_has_local_name(m) || stat(m->local, &st) < 0 || !S_ISDIR(st.st_mode))
        return act_error_set(err, ACT_NOT_FOUND, "no such folder: '%s'", m->local);
    return store_folder_open(flow_http(flow), m->local, false, out, err);
}

int flow_open_place(struct flow *flow, const char *path, enum flow_place place, struct flow_path *out,
                    struct act_error *err)
{
    ACT_AUTO(mapped) m = {0};
    int rc = mapped_find(flow->config, path, &m, err);

    *out = (struct flow_path){0};
    if (rc == 0)
        rc = place == FLOW_STORE ? flow_store(flow, m.folder, &out->store, err)
                                 : paths_open_here(flow, &m, &out->store, err);
    if (rc == 0)
        out->path = (struct transfer_path){.store = out->store,
                                           .path = place == FLOW_STORE ? mapped_bare_key(m.key) : act_strdup(""),
                                           .is_folder = true};
    return rc;
}

void flow_path_release(struct flow_path *path)
{
    transfer_path_release(&path->path);
    if (path->source)
        path->close_source(path->source);
    else
        store_free(path->store);
    *path = (struct flow_path){0};
}

int flow_may_remove(struct flow *flow, const char *path, struct act_error *err)
{
    ACT_AUTO(mapped) m = {0};
    int rc = mapped_find(flow->config, path, &m, err);

    if (rc == 0)
        rc = flow_check_alone(flow->config, m.folder, m.key, path, err);
    return rc;
}

/* Refuses an end of the URL that was asked for and that it does not have. */
static int check_end(const struct store_call *call, const char *path, const struct flow_url *io, struct act_error *err)
{
    if (call->url.ends || !io->life_s)
        return 0;
    return act_error_set(err, ACT_USAGE,
                         "'--expires' has no effect on the URL of '%s', which ACT does not sign; leave it out", path);
}

int flow_url_in(struct store *store, const char *key, const char *path, struct flow_url *io, struct act_error *err)
{
    enum { DAY_S = 24 * 3600 };
    struct store_call call = {
        .op = STORE_URL,
        .key = key,
        .url = {.permissions = "r", .life_s = io->life_s ? io->life_s : DAY_S, .share_sas = io->share_sas}};
    int rc = store_do(store, &call, err);

    if (call.url.only_sas)
        act_error_hint(err, "--share-sas gives it away on purpose");
    if (rc == 0)
        rc = check_end(&call, path, io, err);
    if (rc == 0) {
        io->url = call.url.text;
        call.url.text = NULL;
    }
    store_call_release(&call);
    return rc;
}

int flow_url(struct flow *flow, const char *path, struct flow_url *io, struct act_error *err)
{
    ACT_AUTO(flow_path) p = {0};
    int rc = flow_open_path(flow, path, &p, err);

    if (rc < 0)
        return rc;
    if (p.path.is_folder)
        rc = act_error_set(err, ACT_USAGE, "'%s' is a folder; a URL is for one file", path);
    else
        rc = flow_url_in(p.store, p.path.path, path, io, err);
    return rc;
}
