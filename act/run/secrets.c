/* secrets.c - values of the environment that must not appear in run.json, in a file of their own. */
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "codec/json.h"
#include "run/run.h"

enum { MAX_BYTES = 1 << 20 };

/* What the name of a secret has in it. */
static const struct secret_word {
    const char *text;
    bool whole;  /* as a word of its own: DB_PASS and GH_PAT, but neither BYPASS nor PATH */
    bool sounds; /* also in the names of counters and switches */
} words[] = {
    {"KEY", false, true},
    {"TOKEN", false, true},
    {"SAS", false, true},
    {"SECRET", false, false},
    {"PASSWORD", false, false},
    {"PASSWD", false, false},
    {"PASSPHRASE", false, false},
    {"CREDENTIAL", false, true},
    {"CONNECTION_STRING", false, false},
    {"CONNECTIONSTRING", false, false},
    {"WEBHOOK", false, true},
    {"PASS", true, false},
    {"PAT", true, false},
    {"PWD", true, false},
};

static bool is_letter(char c)
{
    return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z');
}

static bool has_word(const char *name, const struct secret_word *word)
{
    size_t n = strlen(word->text);

    for (const char *s = name; (s = strcasestr(s, word->text)); s++)
        if (!word->whole || ((s == name || !is_letter(s[-1])) && !is_letter(s[n])))
            return true;
    return false;
}

/* PWD and OLDPWD are every shell's. */
static const struct secret_word *word_of(const char *name)
{
    for (size_t i = 0; strcmp(name, "PWD") != 0 && i < sizeof(words) / sizeof(words[0]); i++)
        if (has_word(name, &words[i]))
            return &words[i];
    return NULL;
}

bool run_url_is_secret(const char *value)
{
    for (const char *s = value; (s = strstr(s, "://"));) {
        s += strlen("://");
        size_t n = strcspn(s, "/?# \t\r\n\"'");
        const char *at = memrchr(s, '@', n), *colon = memchr(s, ':', n);
        if (at && colon && colon + 1 < at)
            return true;
    }
    return strstr(value, "://") && (strstr(value, "?sig=") || strstr(value, "&sig="));
}

/* A number of at most nine digits, or yes or no. */
static bool is_switch(const char *value)
{
    static const char *const switches[] = {"true", "false", "yes", "no", "on", "off"};
    size_t n = strlen(value);

    for (size_t i = 0; i < sizeof(switches) / sizeof(switches[0]); i++)
        if (strcasecmp(value, switches[i]) == 0)
            return true;
    return n <= 9 && strspn(value, "0123456789") == n;
}

const char *run_env_shown(const char *name, const char *value)
{
    return word_of(name) || run_url_is_secret(value) ? "***" : value;
}

bool run_env_gives_away(const char *name, const char *value)
{
    const struct secret_word *word = word_of(name);

    return run_url_is_secret(value) ||
           (word && !(word->sounds && (is_switch(value) || strcasestr(name, "TOKENIZE"))));
}

bool run_env_is_secret(const struct run_env *env)
{
    return env->secret || !env->value || run_env_shown(env->name, env->value) != env->value;
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
