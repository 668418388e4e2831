#include <string.h>

#include "base/log.h"
#include "cli/cli.h"
#include "codec/json.h"
#include "flow/cluster/doctor.h"
#include "flow/flow.h"

static void push_value(struct act_strv *cells, const char *key, const json_t *row)
{
    const json_t *value = json_object_get(row, "value");

    act_strv_push(cells, key);
    if (json_is_string(value))
        act_strv_push(cells, json_string_value(value));
    else
        act_strv_take(cells, codec_json_line(value));
    act_strv_pushf(cells, "# %s", codec_json_str(row, "origin", "?"));
}

static int show_values(struct cli *cli, struct act_error *err)
{
    const struct config *c = &cli->flow.config;
    json_t *values = config_show(c);
    static const struct cli_column columns[] = {{NULL, 'l', .min = 22, .pad = 44},
                                                {NULL, 'l', .rank = 1, .min = 16, .pad = 32},
                                                {NULL, 'l', .rank = 2, .min = 12}};
    ACT_AUTO(act_strv) cells = {0};
    const char *key;
    json_t *row;
    size_t left_out = 0;

    if (cli->options.json)
        return cli_print_json(json_pack("{s:i,s:s,s:s?,s:s,s:o}", "version", 1, "cluster", c->cluster, "file", c->file,
                                        "project_root", c->project_root, "values", values),
                              err);
    printf("# cluster %s, from %s, project %s\n", c->cluster, c->file ? c->file : "the built-in configuration",
           c->project_root);
    json_object_foreach(values, key, row)
    {
        bool shown = cli->options.all || !json_is_null(json_object_get(row, "value")) || json_object_get(row, "error");
        left_out += !shown;
        if (shown)
            push_value(&cells, key, row);
    }
    json_decref(values);
    cli_print_table(columns, sizeof(columns) / sizeof(columns[0]), &cells);
    if (left_out)
        printf("# %zu keys have no value; --all shows them\n", left_out);
    return 0;
}

static int print_report(const struct config_report *report, struct act_error *err)
{
    return cli_print_json(json_pack("{s:i,s:s?,s:s?,s:b,s:o}", "version", 1, "cluster", report->cluster, "file",
                                    report->file, "ok", report->problems.n == 0, "problems",
                                    codec_json_strv_new(&report->problems)),
                          err);
}

static int check(struct cli *cli, struct act_error *err)
{
    ACT_AUTO(config_report) report = {0};
    const struct act_strv *problems = &report.problems;
    struct cli_request request;

    cli_request(cli, &request);
    int rc = flow_check_config(&request.config, &report, err);
    if (rc == 0 && cli->options.json)
        rc = print_report(&report, err);
    for (size_t i = 0; i < problems->n && !cli->options.json; i++)
        puts(problems->v[i]);
    if (rc == 0 && problems->n > 0)
        rc = act_error_set(err, ACT_CONFIG, "%zu problem%s in the configuration%s%s%s", problems->n,
                           problems->n == 1 ? "" : "s", report.cluster ? " of cluster '" : "",
                           report.cluster ? report.cluster : "", report.cluster ? "'" : "");
    else if (rc == 0)
        act_note("the configuration of cluster '%s' is valid: %s", report.cluster,
                 report.file ? report.file : "built-in");
    return rc;
}

int cmd_config(struct cli *cli, struct act_error *err)
{
    const char *what = cli->words.v[0];

    if (strcmp(what, "check") == 0 && cli->options.all)
        return act_error_set(err, ACT_USAGE, "'a config check' takes no --all: it is about 'a config show'");
    if (strcmp(what, "check") == 0)
        return check(cli, err);
    if (strcmp(what, "show") != 0)
        return act_error_set(err, ACT_USAGE, "'a config' takes show or check, not '%s'", what);
    int rc = cli_open(cli, err);
    return rc < 0 ? rc : show_values(cli, err);
}
