/* setup_text.c - the files of a new cluster. */
#include <string.h>

#include "codec/yaml_edit.h"
#include "flow/cluster/setup_internal.h"

void setup_put(struct act_buf *out, const char *key, const char *value, const char *comment)
{
    struct yaml *text = yaml_new_text("", value);
    ACT_AUTOFREE char *quoted = yaml_flow_text(text);

    yaml_tree_free(text);
    act_buf_addf(out, "%s: %s%s%s\n", key, quoted ? quoted : "", comment ? "  # " : "", comment ? comment : "");
}

void setup_put_if(struct act_buf *out, const char *key, const char *value, const char *comment)
{
    if (setup_answer(value))
        setup_put(out, key, value, comment);
}

void setup_put_gpus(struct act_buf *out, const struct flow_setup *setup)
{
    if (setup->gpu_per_node >= 0)
        act_buf_addf(out, "\ngpu_per_node: %lld  # %s\n", (long long)setup->gpu_per_node,
                     setup->no_gpus ? "processes on a node, which has no GPUs" : "'-n 16' is so many of them");
}

/* ---- what -p adds ---- */

static int setup_text_set(char **text, const char *path, const struct yaml *value, struct act_error *err)
{
    char *out = NULL;
    int rc = yaml_edit_set(*text, "-p", path, value, &out, err);

    if (rc < 0)
        return rc;
    free(*text);
    *text = out;
    return 0;
}

/* Maps are merged, as those of -p are. */
static int setup_text_set_all(char **text, const char *above, const struct yaml *map, struct act_error *err)
{
    int rc = 0;

    for (size_t i = 0; i < map->n && rc == 0; i++) {
        const struct yaml *item = map->items[i];
        ACT_AUTOFREE char *path = act_sprintf("%s%s%s", above, *above ? "." : "", item->key);
        rc = item->kind == YAML_MAP && item->n ? setup_text_set_all(text, path, item, err)
                                               : setup_text_set(text, path, item, err);
    }
    return rc;
}

static int setup_text_add_params(const struct flow_setup *setup, char **text, struct act_error *err)
{
    int rc = 0;

    for (size_t i = 0; i < setup->params.n && rc == 0; i++) {
        const char *param = setup->params.v[i];
        struct yaml *tree = NULL;
        rc = yaml_parse(param, strlen(param), "-p", &tree, err);
        if (rc == 0 && tree->kind != YAML_MAP)
            rc = act_error_set(err, ACT_USAGE, "-p takes keys and values, as in -p 'num_gpu: 8'");
        if (rc == 0)
            rc = setup_text_set_all(text, "", tree, err);
        yaml_tree_free(tree);
    }
    return rc;
}

/* ---- all of it ---- */

int flow_setup_text(const struct flow_setup *setup, char **out, struct act_error *err)
{
    const struct setup_kind *kind = setup_find_kind(setup->kind);
    ACT_AUTO(act_buf) text = {0};

    *out = NULL;
    act_buf_addf(&text, "# A cluster: %s. 'a config set KEY VALUE' changes it, 'man act.yaml' lists all keys.\n",
                 kind->text);
    setup_put(&text, "platform", kind->name, NULL);
    kind->put(&text, setup);
    char *whole = act_buf_steal(&text);
    int rc = setup_text_add_params(setup, &whole, err);
    if (rc == 0)
        *out = whole;
    else
        free(whole);
    return rc;
}

char *flow_setup_account(const struct flow_setup *setup)
{
    ACT_AUTO(act_buf) text = {0};

    if (!setup_answer(setup->container))
        return NULL;
    act_buf_adds(&text, "# A container in Azure Blob Storage. Your own login is used: 'a login' tells whose.\n");
    setup_put(&text, "account_name", setup->storage, NULL);
    setup_put(&text, "container_name", setup->container, NULL);
    setup_put_if(&text, "endpoint", setup->blob_endpoint, NULL);
    setup_put(&text, "auth", "login", "account_key or sas_token instead: chmod 600 this file");
    return act_buf_steal(&text);
}
