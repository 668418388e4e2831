/* setup.c - what the platforms share when a cluster is set up: answers, choices, and the text of the file. */
#include "platform/setup.h"

#include <stdlib.h>
#include <string.h>

#include "codec/yaml_edit.h"
#include "config/config.h"
#include "config/kind.h"
#include "platform/platform_internal.h"
#include "run/run.h"
#include "site/site.h"

const struct platform_row *platform_setup_next(const struct platform_row *row)
{
    const struct platform_row *const *next = platform_table;

    while (row && *next++ != row)
        ;
    while (*next && !(*next)->setup)
        next++;
    return *next;
}

void platform_setup_choose(struct platform_setup *setup, const struct platform_row *row)
{
    setup->row = row;
    setup->own = row->setup->own_size ? act_calloc(1, row->setup->own_size) : NULL;
}

void platform_setup_release(struct platform_setup *setup)
{
    for (size_t i = 0; i < setup->n_answers; i++)
        free(setup->answers[i].value);
    free(setup->answers);
    if (setup->own && setup->row->setup->release)
        setup->row->setup->release(setup->own);
    free(setup->own);
    act_strv_release(&setup->params);
    free(setup->file);
    free(setup->account_file);
    free(setup->made);
    act_strv_release(&setup->there);
    *setup = (struct platform_setup){0};
}

/* ---- answers ---- */

void platform_answer(struct platform_setup *setup, const char *option, const char *value)
{
    ACT_PUSH(setup->answers, setup->n_answers, (struct platform_answer){.option = option, .value = act_strdup(value)});
}

const char *platform_answered(const struct platform_setup *setup, const char *option)
{
    for (size_t i = 0; i < setup->n_answers; i++)
        if (strcmp(setup->answers[i].option, option) == 0)
            return setup->answers[i].value;
    return NULL;
}

const char *platform_said(const struct platform_setup *setup, const char *option)
{
    const char *answer = platform_answered(setup, option);

    return answer && *answer ? answer : NULL;
}

/* ---- choices ---- */

void platform_offer(struct platform_choices *choices, const char *value, const char *alias, char *shown, bool usual)
{
    struct platform_choice choice = {
        .value = act_strdup(value), .alias = act_strdup(alias), .shown = shown, .usual = usual};

    ACT_PUSH(choices->v, choices->n, choice);
}

bool platform_offers(const struct platform_choices *choices, const char *value)
{
    for (size_t i = 0; i < choices->n; i++)
        if (strcmp(choices->v[i].value, value) == 0)
            return true;
    return false;
}

int platform_look_nowhere(struct platform_setup *setup, struct platform_choices *out, struct act_error *err)
{
    (void)setup;
    (void)err;
    out->open = true;
    return 0;
}

void platform_choices_release(struct platform_choices *choices)
{
    for (size_t i = 0; i < choices->n; i++) {
        free(choices->v[i].value);
        free(choices->v[i].alias);
        free(choices->v[i].shown);
    }
    free(choices->v);
    *choices = (struct platform_choices){0};
}

/* ---- the file ---- */

void platform_put(struct act_buf *out, const char *key, const char *value, const char *comment)
{
    struct yaml *text = yaml_new_text("", value);
    ACT_AUTOFREE char *quoted = yaml_flow_text(text);

    yaml_tree_free(text);
    act_buf_addf(out, "%s: %s%s%s\n", key, quoted ? quoted : "", comment ? "  # " : "", comment ? comment : "");
}

void platform_put_if(struct act_buf *out, const char *key, const char *value, const char *comment)
{
    if (value)
        platform_put(out, key, value, comment);
}

void platform_put_gpus(struct act_buf *out, const struct platform_setup *setup)
{
    if (setup->gpu_per_node >= 0)
        act_buf_addf(out, "\ngpu_per_node: %lld  # %s\n", (long long)setup->gpu_per_node,
                     setup->no_gpus ? "processes on a node, which has no GPUs" : "'-n 16' is so many of them");
}

static int param_set(char **text, const char *path, const struct yaml *value, struct act_error *err)
{
    char *out = NULL;
    int rc = yaml_edit_set(*text, "-p", path, value, &out, err);

    if (rc < 0)
        return rc;
    free(*text);
    *text = out;
    return 0;
}

/* Sets the keys of a map below above; maps are merged, as those of -p are. */
static int param_set_all(char **text, const char *above, const struct yaml *map, struct act_error *err)
{
    int rc = 0;

    for (size_t i = 0; i < map->n && rc == 0; i++) {
        const struct yaml *item = map->items[i];
        ACT_AUTOFREE char *path = act_sprintf("%s%s%s", above, *above ? "." : "", item->key);
        rc =
            item->kind == YAML_MAP && item->n ? param_set_all(text, path, item, err) : param_set(text, path, item, err);
    }
    return rc;
}

static int add_params(const struct platform_setup *setup, char **text, struct act_error *err)
{
    int rc = 0;

    for (size_t i = 0; i < setup->params.n && rc == 0; i++) {
        const char *param = setup->params.v[i];
        struct yaml *tree = NULL;
        rc = yaml_parse(param, strlen(param), "-p", &tree, err);
        if (rc == 0 && tree->kind != YAML_MAP)
            rc = act_error_set(err, ACT_USAGE, "-p takes keys and values, as in -p 'num_gpu: 8'");
        if (rc == 0)
            rc = param_set_all(text, "", tree, err);
        yaml_tree_free(tree);
    }
    return rc;
}

int platform_setup_text(const struct platform_setup *setup, char **out, struct act_error *err)
{
    const struct platform_setup_ops *ops = setup->row->setup;
    ACT_AUTO(act_buf) text = {0};

    *out = NULL;
    act_buf_addf(&text, "# A cluster: %s. 'a config set KEY VALUE' changes it, 'man act.yaml' lists all keys.\n",
                 ops->text);
    platform_put(&text, "platform", setup->row->kind->name, NULL);
    ops->put(&text, setup);
    char *whole = act_buf_steal(&text);
    int rc = add_params(setup, &whole, err);
    if (rc == 0)
        *out = whole;
    else
        free(whole);
    return rc;
}

/* ---- the cluster as far as it is known ---- */

int platform_setup_load(const struct platform_setup *setup, struct config *out, struct act_error *err)
{
    ACT_AUTOFREE char *text = NULL;
    int rc = platform_setup_text(setup, &text, err);

    *out = (struct config){0};
    return rc < 0 ? rc : config_load(&(struct config_request){.file = setup->file, .text = text}, out, err);
}

int platform_setup_summary(const struct platform_setup *setup, struct platform_summary *out, struct act_error *err)
{
    ACT_AUTO(config) config = {0};
    struct platform *platform = NULL;
    int rc = platform_setup_load(setup, &config, err);

    *out = (struct platform_summary){0};
    if (rc == 0)
        rc = platform_open(setup->services, &config, &platform, err);
    if (rc == 0)
        rc = platform_summary(platform, out, err);
    platform_free(platform);
    return rc;
}

/* Returns the pool of that name; without one the pool with most GPUs, else all nodes. */
/* Comments take only what can stand in one. */
static void setup_take_there(struct platform_setup *setup, char *text)
{
    enum { LINES_MOST = 6 };

    for (char *line; (line = strsep(&text, "\n")) && setup->there.n < LINES_MOST;)
        if (*line && !act_has_control(line))
            act_strv_push(&setup->there, line);
}

void platform_setup_look(struct platform_setup *setup)
{
    static const struct run_setup nothing = {0};
    ACT_AUTO(config) config = {0};
    ACT_AUTO(act_strv) words = {0};
    ACT_AUTO(site_result) result = {0};
    struct platform *platform = NULL;
    struct site *site = NULL;
    struct act_error ignored;
    int rc = platform_setup_load(setup, &config, &ignored);

    run_setup_words("look", "", &nothing, &words);
    const struct site_command command = {
        .argv = (const char *const *)words.v, .cwd = "/", .max_bytes = 1 << 20, .begins_runs = true};
    if (rc == 0)
        rc = platform_open(setup->services, &config, &platform, &ignored);
    if (rc == 0)
        rc = platform->row->keep.site(platform, &site, &ignored);
    if (rc == 0 && site_run(site, &command, &result, &ignored) == 0)
        setup_take_there(setup, result.out);
    platform_free(platform);
}

void platform_put_there(struct act_buf *out, const struct platform_setup *setup)
{
    static const struct {
        const char *line, *comment;
    } rows[] = {{"modules ", "# modules: [NAME, ...]   there are "},
                {"conda ", "# conda: NAME            there are "},
                {"python ", "# The login node has Python "}};

    for (size_t i = 0; i < setup->there.n; i++)
        for (size_t k = 0; k < sizeof(rows) / sizeof(rows[0]); k++)
            if (act_starts_with(setup->there.v[i], rows[k].line))
                act_buf_addf(out, "%s%s\n", rows[k].comment, setup->there.v[i] + strlen(rows[k].line));
}

static const struct platform_pool *setup_find_pool(const struct platform_summary *summary, const char *name)
{
    const struct platform_pool *best = &summary->total;

    for (size_t i = 0; i < summary->n_pools; i++) {
        const struct platform_pool *pool = &summary->pools[i];
        bool better = best == &summary->total || pool->gpus > best->gpus;
        if (name ? act_streq(pool->name, name) : better)
            best = pool;
    }
    return best;
}

/* Sets gpu_per_node where all nodes have as many; else it stays unknown. */
static void setup_take_count(struct platform_setup *setup, const struct platform_pool *pool)
{
    if (pool->nodes > 0 && pool->gpus > 0 && pool->gpus % pool->nodes == 0)
        setup->gpu_per_node = pool->gpus / pool->nodes;
}

int platform_setup_count(struct platform_setup *setup, const char *pool, struct act_error *err)
{
    ACT_AUTO(platform_summary) gpus = {0}, processors = {0};
    int rc = platform_setup_summary(setup, &gpus, err);

    if (rc < 0)
        return rc;
    const struct platform_pool *found = setup_find_pool(&gpus, pool);
    setup->no_gpus = found->nodes > 0 && found->gpus == 0;
    if (setup->no_gpus) {
        rc = platform_setup_summary(setup, &processors, err);
        found = setup_find_pool(&processors, pool);
    }
    setup_take_count(setup, found);
    return rc;
}
