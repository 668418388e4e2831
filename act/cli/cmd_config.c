#include <string.h>

#include "base/log.h"
#include "cli/cli.h"
#include "codec/json.h"

static void print_value(const char *key, const json_t *row)
{
    const json_t *value = json_object_get(row, "value");
    ACT_AUTOFREE char *text =
        json_is_string(value) ? act_strdup(json_string_value(value)) : codec_json_line(value);

    printf("%-44s %-32s # %s\n", key, text, codec_json_str(row, "origin", "?"));
}

static int show(struct cli *cli, struct act_error *err)
{
    const struct config *c = &cli->flow.config;
    json_t *values = config_show(c);
    const char *key;
    json_t *row;

    if (cli->options.json)
        return cli_print_json(json_pack("{s:i,s:s,s:s?,s:s,s:o}", "version", 1, "cluster", c->cluster, "file",
                                        c->file, "project_root", c->project_root, "values", values),
                              err);
    printf("# cluster %s, from %s, project %s\n", c->cluster,
           c->file ? c->file : "the built-in configuration", c->project_root);
    json_object_foreach(values, key, row) print_value(key, row);
    json_decref(values);
    return 0;
}

static int check(struct cli *cli, struct act_error *err)
{
    struct config_request request = {.cluster = cli->options.cluster,
                                     .params = (const char *const *)cli->options.params.v};
    struct act_strv problems = {0};
    int rc = config_check(&request, &problems, err);

    for (size_t i = 0; i < problems.n; i++)
        puts(problems.v[i]);
    if (rc == 0 && problems.n > 0)
        rc = act_error_set(err, ACT_CONFIG, "%zu problem%s in the configuration", problems.n,
                           problems.n == 1 ? "" : "s");
    else if (rc == 0)
        act_note("the configuration is valid");
    act_strv_release(&problems);
    return rc;
}

int cmd_config(struct cli *cli, struct act_error *err)
{
    const char *what = cli->words.v[0];

    if (strcmp(what, "check") == 0)
        return check(cli, err);
    if (strcmp(what, "show") != 0)
        return act_error_set(err, ACT_USAGE, "'a config' takes show or check, not '%s'", what);
    int rc = cli_open(cli, err);
    return rc < 0 ? rc : show(cli, err);
}
