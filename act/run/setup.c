/* setup.c - the environment that a run asks for, in run.json:
 * {"modules_purge": true, "modules": ["cuda/12.1"], "conda": "torch", "venv": "/envs/v", "lines": "export A=1\n",
 *  "rank_lines": "ulimit -c 0\n", "timeout_s": 600} */
#include "base/text.h"
#include "codec/json.h"
#include "run/run.h"

static const struct {
    const char *key;
    size_t offset;
} setup_texts[] = {
    {"conda", offsetof(struct run_setup, conda)},
    {"venv", offsetof(struct run_setup, venv)},
    {"lines", offsetof(struct run_setup, lines)},
    {"rank_lines", offsetof(struct run_setup, rank_lines)},
};
enum { N_TEXTS = sizeof(setup_texts) / sizeof(setup_texts[0]) };

static char **setup_text(struct run_setup *setup, size_t i)
{
    return (char **)((char *)setup + setup_texts[i].offset);
}

static const char *setup_text_of(const struct run_setup *setup, size_t i)
{
    return *(char *const *)((const char *)setup + setup_texts[i].offset);
}

bool run_setup_is_wanted(const struct run_setup *setup)
{
    return setup->modules_purge || setup->modules.n || setup->conda || setup->venv || setup->lines;
}

void run_setup_release(struct run_setup *setup)
{
    act_strv_release(&setup->modules);
    for (size_t i = 0; i < N_TEXTS; i++)
        free(*setup_text(setup, i));
    *setup = (struct run_setup){0};
}

void run_setup_copy(const struct run_setup *from, struct run_setup *to)
{
    struct run_setup copy = {.modules_purge = from->modules_purge, .timeout_s = from->timeout_s};

    act_strv_copy(&copy.modules, from->modules.v, from->modules.n);
    for (size_t i = 0; i < N_TEXTS; i++)
        *setup_text(&copy, i) = act_strdup(setup_text_of(from, i));
    run_setup_release(to);
    *to = copy;
}

json_t *run_setup_to_json(const struct run_setup *setup)
{
    if (!run_setup_is_wanted(setup) && !setup->rank_lines)
        return NULL;
    json_t *json = json_pack("{s:i}", "timeout_s", setup->timeout_s);
    if (setup->modules_purge)
        json_object_set_new(json, "modules_purge", json_true());
    if (setup->modules.n)
        json_object_set_new(json, "modules", codec_json_strv_new(&setup->modules));
    for (size_t i = 0; i < N_TEXTS; i++)
        if (setup_text_of(setup, i))
            json_object_set_new(json, setup_texts[i].key, codec_json_bytes_new(setup_text_of(setup, i)));
    return json;
}

static int setup_malformed(struct act_error *err, const char *key, const char *rule)
{
    return act_error_set(err, ACT_FAIL, "the run specification is malformed: '%s' in 'setup' must be %s", key, rule);
}

int run_setup_from_json(const json_t *json, struct run_setup *out, struct act_error *err)
{
    const json_t *modules = json_object_get(json, "modules"), *purge = json_object_get(json, "modules_purge");
    int64_t timeout_s = codec_json_int(json, "timeout_s", RUN_SETUP_USUAL_S);

    if (timeout_s < 1 || timeout_s > RUN_SETUP_MOST_S)
        return setup_malformed(err, "timeout_s", "a number of seconds of at most a day");
    out->timeout_s = (int)timeout_s;
    out->modules_purge = json_is_true(purge);
    if (modules && !codec_json_strv_get(modules, &out->modules))
        return setup_malformed(err, "modules", "a list of texts");
    for (size_t i = 0; i < N_TEXTS; i++) {
        const json_t *value = json_object_get(json, setup_texts[i].key);
        *setup_text(out, i) = value ? codec_json_bytes_get(value) : NULL;
        if (value && !*setup_text(out, i))
            return setup_malformed(err, setup_texts[i].key, "a text");
    }
    return 0;
}
