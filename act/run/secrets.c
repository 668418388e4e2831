/* secrets.c - environment values that must not appear in run.json, in a separate file. */
#include <unistd.h>

#include "base/secrets.h"
#include "codec/json.h"
#include "run/run.h"

enum { MAX_BYTES = 1 << 20 };

bool run_env_is_secret(const struct run_env *env)
{
    return env->secret || !env->value || act_env_shown(env->name, env->value) != env->value;
}

json_t *run_secrets_to_json(const struct run_spec *spec)
{
    json_t *values = json_object();

    for (size_t i = 0; i < spec->n_env; i++)
        if (spec->env[i].value && run_env_is_secret(&spec->env[i]))
            json_object_set_new(values, spec->env[i].name, codec_json_bytes_new(spec->env[i].value));
    return values;
}

void run_secrets_from_json(struct run_spec *spec, const json_t *values)
{
    for (size_t i = 0; i < spec->n_env; i++)
        if (!spec->env[i].value) {
            spec->env[i].value = codec_json_bytes_get(json_object_get(values, spec->env[i].name));
            spec->env[i].secret = true;
        }
}

int run_secrets_write(const struct run_spec *spec, const char *path, struct act_error *err)
{
    CODEC_AUTOJSON json_t *values = run_secrets_to_json(spec);

    return json_object_size(values) ? codec_json_write(path, values, 0600, err) : 0;
}

int run_secrets_read(struct run_spec *spec, const char *path, struct act_error *err)
{
    CODEC_AUTOJSON json_t *values = NULL;

    if (access(path, F_OK) != 0)
        return 0;
    int rc = codec_json_read(path, MAX_BYTES, &values, err);
    if (rc == 0)
        run_secrets_from_json(spec, values);
    return rc;
}
