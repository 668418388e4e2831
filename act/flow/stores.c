/* stores.c - the stores of a configuration, what they need, and small objects in them. */
#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "auth/services.h"
#include "base/dirs.h"
#include "base/file.h"
#include "base/path.h"
#include "config/config.h"
#include "flow/flow_internal.h"
#include "platform/platform.h"

char *flow_store_text(const struct config_folder *f, const struct config_account *a)
{
    if (f->claim)
        return act_sprintf(RUN_CLAIM "%s", f->claim);
    if (a->folder)
        return act_sprintf("folder:%s", a->folder);
    if (config_is_share(f))
        return act_sprintf(RUN_SHARE "%s/%s", a->account_name, f->file_share);
    return act_sprintf("blob:%s/%s", a->account_name, a->container_name);
}

struct services *flow_services(struct flow *flow)
{
    if (!flow->services && !flow->own)
        flow->own = act_calloc(1, sizeof(*flow->own));
    return flow->services ? flow->services : flow->own;
}

struct engine *flow_engine(struct flow *flow)
{
    return services_engine(flow_services(flow));
}

struct http *flow_http(struct flow *flow)
{
    return services_http(flow_services(flow));
}

bool flow_uses_login(const struct config_account *a)
{
    return act_streq(a->auth, "login") || (!a->auth && !a->account_key && !a->sas_token);
}

static int stores_open_azure(struct flow *flow, const struct config_folder *folder, const struct config_account *a,
                             struct store **out, struct act_error *err)
{
    bool anonymous = act_streq(a->auth, "anonymous"), is_share = config_is_share(folder);
    struct store_azure_options o = {.account = a->account_name,
                                    .container = is_share ? folder->file_share : a->container_name,
                                    .endpoint = is_share ? a->file_endpoint : a->endpoint,
                                    .is_share = is_share,
                                    .key = anonymous ? NULL : a->account_key,
                                    .sas = anonymous ? NULL : a->sas_token,
                                    .prefer_sas = act_streq(a->auth, "sas"),
                                    .tokens = flow_uses_login(a) ? services_tokens(flow_services(flow)) : NULL,
                                    .use_cli = flow->config->use_cli_auth,
                                    .file = a->file,
                                    .secret_is_lent = a->secret_is_lent,
                                    .is_own = a->is_own};

    if (!o.endpoint)
        return act_error_set(err, ACT_CONFIG,
                             "%s: 'file_endpoint' is missing: where the share '%s' is does not follow from the "
                             "'endpoint' %s",
                             a->file, folder->file_share, a->endpoint);
    return store_azure_open(flow_http(flow), &o, out, err);
}

/* A built-in store is private, like everything in ACT's own folder. Other folders get the modes that the user's umask
 * gives. */
static int stores_make_private(const char *folder, bool is_built_in, struct act_error *err)
{
    ACT_AUTOFREE char *state = act_state_dir();
    ACT_AUTOFREE char *here = *state == '/' ? NULL : getcwd(NULL, 0);
    ACT_AUTOFREE char *joined = act_path_join(here ? here : "", state);
    ACT_AUTOFREE char *own = act_path_clean(joined);

    return is_built_in || act_path_is_within(folder, own) ? act_mkdir_all(folder, 0700, err) : 0;
}

/* If runs are not on this machine, they alone get at such a place. */
static int no_such_place(const struct flow *flow, const struct config_folder *folder, int errnum, struct act_error *err)
{
    ACT_AUTOFREE char *hint =
        platform_find(flow->config->platform)->about.is_here
            ? act_strdup("")
            : act_sprintf("; a run looks at it or fills it on the nodes: 'a submit ls -l %s'", folder->name);

    return act_error_set(err, errnum == EACCES ? ACT_DENIED : ACT_NOT_FOUND,
                         "'%s' is '%s' (mode: path), and this machine does not see it (%s)%s", folder->name,
                         folder->account_file, strerror(errnum), hint);
}

/* Tells whether a folder is reached through a login node, and sets where it is. place: its path, of mode 'path'. */
static bool stores_find_far(const struct flow *flow, const struct config_folder *folder, const char *place,
                            const char *first, struct store_far_options *out)
{
    const struct platform_row *row = platform_find(flow->config->platform);

    *out = (struct store_far_options){.folder = folder->is_far ? "store" : place, .first = first};
    return (folder->is_far || config_is_place(folder)) && row->place.login &&
           row->place.login(flow->config, &out->login, &out->root);
}

int flow_store(struct flow *flow, const struct config_folder *folder, struct store **out, struct act_error *err)
{
    return flow_store_for(flow, folder, NULL, out, err);
}

int flow_store_for(struct flow *flow, const struct config_folder *folder, const char *first, struct store **out,
                   struct act_error *err)
{
    ACT_AUTO(config_account) a = {0};
    struct store_far_options far;

    if (folder->is_far && stores_find_far(flow, folder, NULL, first, &far))
        return store_far_open(flow_http(flow), &far, out, err);
    int rc = config_account(flow->config, folder, &a, err);
    if (rc < 0)
        return rc;
    if (a.folder)
        rc = stores_make_private(a.folder, config_is_built_in(folder), err);
    if (rc == 0 && a.folder && access(a.folder, F_OK) < 0 && stores_find_far(flow, folder, a.folder, first, &far))
        return store_far_open(flow_http(flow), &far, out, err);
    if (rc == 0 && a.folder && config_is_place(folder) && access(a.folder, F_OK) < 0)
        rc = no_such_place(flow, folder, errno, err);
    if (rc == 0 && a.folder)
        rc = store_folder_open(flow_http(flow), a.folder, !config_is_place(folder), out, err);
    else if (rc == 0)
        rc = stores_open_azure(flow, folder, &a, out, err);
    return rc;
}

enum { SMALL_TEXT = 64 << 10 };

int flow_get_text(struct store *store, const char *key, char **out, struct act_error *err)
{
    char *text = act_calloc(1, SMALL_TEXT + 1);
    ACT_AUTO(store_call) call = {.op = STORE_GET, .key = key, .get = {.sink = text, .sink_cap = SMALL_TEXT}};
    int rc = store_do(store, &call, err);

    if (rc < 0)
        free(text);
    else
        *out = text;
    return rc;
}

int flow_put_text(struct store *store, const char *key, const char *text, struct act_error *err)
{
    struct act_md5 h;
    char md5[ACT_MD5_BASE64];

    act_md5_init(&h);
    act_md5_add(&h, text, strlen(text));
    act_md5_done(&h, md5);
    struct store_call call = {.op = STORE_PUT,
                              .key = key,
                              .put = {.data = {.bytes = text, .len = strlen(text), .md5 = md5}, .attr.mode = -1}};
    int rc = store_do(store, &call, err);
    store_call_release(&call);
    return rc;
}

int flow_exists(struct store *store, const char *key, char etag[STORE_ETAG], uint64_t *out_size, struct act_error *err)
{
    ACT_AUTO(store_call) head = {.op = STORE_HEAD, .key = key};
    int rc = store_do(store, &head, err);

    memcpy(etag, head.entry.etag, STORE_ETAG);
    *out_size = head.entry.size;
    return rc == 0 ? 1 : rc == -ACT_NOT_FOUND && err->fact != ACT_FACT_CONTAINER_MISSING ? 0 : rc;
}
