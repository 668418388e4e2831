#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/log.h"
#include "cli/print/print.h"
#include "cli/runs/runs.h"
#include "codec/json.h"
#include "diagnose/diagnose.h"
#include "flow/flow.h"
#include "flow/logs/logs.h"
#include "flow/runs/runs.h"
#include "flow/why/why.h"

static json_t *code_json(const struct flow_code *c)
{
    return json_pack("{s:s,s:s,s:s,s:o,s:o}", "code", c->rule->code, "id", c->rule->id, "class", c->rule->title, "log",
                     codec_json_bytes_new(c->log), "line", codec_json_bytes_new(c->line));
}

static json_t *error_line_json(const struct flow_error_line *e)
{
    return json_pack("{s:o,s:o}", "log", codec_json_bytes_new(e->log), "line", codec_json_bytes_new(e->line));
}

/* Prints the codes in the logs of name, which is a "run" or a "folder", as key says. */
static int print_codes_json(const char *key, const char *name, const struct flow_codes *codes, struct act_error *err)
{
    return cli_print_pack(err, "{s:o,s:o,s:o}", key, codec_json_bytes_new(name), "codes",
                          CLI_JSON_LIST(codes->v, codes->n, code_json), "errors",
                          CLI_JSON_LIST(codes->errors, codes->n_errors, error_line_json));
}

/* Prints the lines with errors on stderr, as scripts use the codes. */
static void tell_errors(const struct flow_codes *codes)
{
    for (size_t i = 0; i < codes->n_errors; i++)
        act_note("%s: %s", codes->errors[i].log, codes->errors[i].line);
}

/* Prints the codes, and releases them. */
static int cmd_parse_print(const struct cli *cli, const char *key, const char *name, struct flow_codes *codes,
                           struct act_error *err)
{
    int rc = cli->options.json ? print_codes_json(key, name, codes, err) : 0;

    if (!cli->options.json)
        tell_errors(codes);
    for (size_t i = 0; i < codes->n && !cli->options.json; i++)
        puts(codes->v[i].rule->code);
    if (codes->n == 0)
        act_note("no known error in the logs of '%s'", name);
    flow_codes_release(codes);
    return rc;
}

static int cmd_parse_parse(struct cli *cli, struct flow_run *run, struct act_error *err)
{
    ACT_AUTO(flow_logs) logs = {0};
    struct flow_codes codes = {0};
    int rc = cli_fetch_logs(cli, run, &logs, err);

    if (rc == 0)
        rc = cli_check_kept(run, &logs, err);
    if (rc == 0)
        rc = flow_parse(run, &codes, err);
    return rc < 0 ? rc : cmd_parse_print(cli, "run", run->row.id, &codes, err);
}

static int parse_folder(const struct cli *cli, const char *folder, struct act_error *err)
{
    struct flow_codes codes;
    int rc = flow_parse_folder(folder, &codes, err);

    return rc < 0 ? rc : cmd_parse_print(cli, "folder", folder, &codes, err);
}

/* Says why a word with a '/', which no id of a run has, names no folder. */
static int cmd_parse_no_folder(const char *word, struct act_error *err)
{
    if (access(word, F_OK) == 0)
        return act_error_set(err, ACT_USAGE, "'%s' is not a folder: 'a parse' takes a run, or a folder with its logs",
                             word);
    return act_error_errno(err, errno, "cannot read the folder of logs '%s'", word);
}

int cmd_parse(struct cli *cli, struct act_error *err)
{
    const char *word = cli->words.v[0];
    ACT_AUTO(flow_run) run = {0};
    struct stat st;

    if (stat(word, &st) == 0 && S_ISDIR(st.st_mode))
        return parse_folder(cli, word, err);
    if (strchr(word, '/'))
        return cmd_parse_no_folder(word, err);
    int rc = flow_find_run(&cli->flow, word, &run, err);
    if (rc == -ACT_NOT_FOUND)
        act_error_hint(err, "nor is there a folder of logs '%s'", word);
    return rc < 0 ? rc : cmd_parse_parse(cli, &run, err);
}
