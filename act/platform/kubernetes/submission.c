/* submission.c - a run with all that its objects hold, and these objects one by one: as they are made, or only
 * shown. */
#include <string.h>
#include <unistd.h>

#include "base/hash.h"
#include "base/user.h"
#include "config/config.h"
#include "platform/kubernetes/kubernetes_internal.h"

enum {
    SECRET_ROOM = 900000, /* for a run's own Secret: what else is in it is small */
};

void kubernetes_submission_release(struct kubernetes_submission *s)
{
    free(s->name);
    free(s->user);
    free(s->spec_text);
    act_wipe(&s->secrets_text);
    free(s->package);
    explicit_bzero(s->token, sizeof(s->token));
    free(s->uid);
}

void kubernetes_submission_init(struct kubernetes_submission *s, struct kubernetes *k, const struct run_spec *spec)
{
    CODEC_AUTOJSON json_t *json = kubernetes_spec_json(spec), *secrets = run_secrets_to_json(spec);
    uint8_t random[KUBERNETES_TOKEN_BYTES];

    *s = (struct kubernetes_submission){.k = k, .name = kubernetes_name(spec->id), .user = act_user_name(getuid())};
    s->spec_text = codec_json_line(json);
    s->secrets_text = json_object_size(secrets) ? codec_json_line(secrets) : NULL;
    act_random(random, sizeof(random));
    act_hex(random, sizeof(random), s->token);
    s->run = (struct kubernetes_run){.config = k->config,
                                     .spec = spec,
                                     .name = s->name,
                                     .program = k->agent.name,
                                     .program_sha256 = k->agent.sha256,
                                     .client_sha256 = k->client.sha256,
                                     .user = s->user};
}

void kubernetes_submission_split(struct kubernetes_submission *s)
{
    size_t others =
        strlen(s->spec_text) + (s->secrets_text ? strlen(s->secrets_text) : 0) + (s->stores ? strlen(s->stores) : 0);

    if (s->package_len > KUBERNETES_PART || s->package_len + others > SECRET_ROOM)
        s->run.parts = (s->package_len + KUBERNETES_PART - 1) / KUBERNETES_PART;
}

static int each_part(struct kubernetes_submission *s, kubernetes_take_object *each, void *arg, struct act_error *err)
{
    int rc = 0;

    for (size_t i = 0; rc == 0 && i < s->run.parts; i++) {
        size_t at = i * KUBERNETES_PART, left = s->package_len - at;
        size_t len = left < KUBERNETES_PART ? left : KUBERNETES_PART;
        rc = each(s, kubernetes_package(&s->run, i, s->package + at, len, s->uid), arg, err);
    }
    return rc;
}

static int each_folder(struct kubernetes_submission *s, kubernetes_take_object *each, void *arg, struct act_error *err)
{
    const struct run_spec *spec = s->run.spec;
    int rc = 0;

    for (size_t i = 0; rc == 0 && i < spec->n_folders; i++) {
        const struct config_folder *row = config_folder_named(s->run.config, spec->folders[i].name);
        ACT_AUTO(config_account) account = {0};
        if (!row || !kubernetes_is_blob(&spec->folders[i]) || !kubernetes_is_mounted(&spec->folders[i]))
            continue;
        rc = config_account(s->run.config, row, &account, err);
        json_t *secret = rc == 0 ? kubernetes_folder_secret(&s->run, i, &account, s->uid, err) : NULL;
        rc = secret ? each(s, secret, arg, err) : -(int)err->code;
    }
    return rc;
}

int kubernetes_each_object(struct kubernetes_submission *s, kubernetes_take_object *each, void *arg,
                           struct act_error *err)
{
    const struct kubernetes_content content = {.spec = s->spec_text,
                                               .secrets = s->secrets_text,
                                               .stores = s->stores,
                                               .token = s->token,
                                               .package = s->run.parts ? NULL : s->package,
                                               .package_len = s->package_len};
    int rc = each_part(s, each, arg, err);

    if (rc == 0)
        rc = each_folder(s, each, arg, err);
    json_t *registry = rc == 0 ? kubernetes_registry(&s->run, s->uid) : NULL;
    if (registry)
        rc = each(s, registry, arg, err);
    if (rc == 0)
        rc = each(s, kubernetes_secret(&s->run, &content, s->uid), arg, err);
    return rc < 0 ? rc : each(s, kubernetes_service(&s->run, s->uid), arg, err);
}

void kubernetes_submission_use_client(struct kubernetes_submission *s, const char *stores)
{
    s->stores = stores;
    s->run.client = s->k->client.name;
    s->run.client_parts = s->k->client.parts;
}

/* ---- preview ---- */

static int objects_show(struct kubernetes_submission *s, json_t *object, void *arg, struct act_error *err)
{
    (void)s;
    (void)err;
    if (json_object_get(object, "data"))
        kubernetes_mask(object);
    json_array_append_new(arg, object);
    return 0;
}

int kubernetes_preview(struct platform *p, const struct run_spec *spec, json_t **out, struct act_error *err)
{
    struct kubernetes *k = kubernetes_of(p);
    json_t *items = json_array();
    struct kubernetes_submission s;
    int rc = kubernetes_check_namespace(k, err);

    kubernetes_submission_init(&s, k, spec);
    if (rc == 0 && kubernetes_needs_client(spec)) {
        rc = kubernetes_need_client(k, false, err);
        kubernetes_submission_use_client(&s, "");
    }
    if (spec->package_key && !platform_nodes_fetch_package(&platform_kubernetes, spec)) { /* its bytes are not shown */
        s.package_len = (size_t)spec->package_bytes;
        s.package = act_calloc(1, s.package_len);
    }
    kubernetes_submission_split(&s);
    *out = json_pack("{s:s, s:s, s:o}", "apiVersion", "v1", "kind", "List", "items", items);
    json_array_append_new(items, kubernetes_job(&s.run, false));
    if (rc == 0)
        rc = kubernetes_each_object(&s, objects_show, items, err);
    kubernetes_submission_release(&s);
    if (rc < 0)
        json_decref(*out);
    return rc;
}
