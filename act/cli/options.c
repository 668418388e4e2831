/* options.c - the options, one row each, and the parser.
 *
 * Options before the verb are global, as in the original; a verb also takes them, and its own, behind it.
 * Names with one or two dashes, '-' and '_' alike; values as "--name value", "--name=value", "-n8".
 */
#include <string.h>

#include "base/units.h"
#include "cli/cli.h"

#define AT(member) offsetof(struct cli_options, member)

const struct cli_option cli_option_table[] = {
    {"-f", "file", CLI_STRING, AT(job_file), "FILE", "what a Batch AI job file says, instead of a command",
     false},
    {"-f", "follow", CLI_FLAG, AT(follow), NULL, "go on until the run ends", false},
    {NULL, "rank", CLI_INT, AT(rank), "N", "the log of this rank (default 0)", false},
    {NULL, "all", CLI_FLAG, AT(all), NULL, "the logs of all ranks, each line with its rank", false},
    {NULL, "attempt", CLI_INT, AT(attempt), "N", "of an earlier attempt, from 1 (default: the last)", false},
    {NULL, "tail", CLI_INT, AT(tail), "N", "only the last N lines", false},
    {NULL, "name", CLI_STRING, AT(log_name), "LOG", "this log, as 'a q RUN' names it", false},
    {NULL, "refresh", CLI_FLAG, AT(refresh), NULL, "ask the service again, though all logs are here", false},
    {NULL, "timeout", CLI_DURATION, AT(timeout_s), "TIME", "give up after this time: 90s, 15m, 24h, 7d",
     false},
    {NULL, "expires", CLI_DURATION, AT(expires_s), "TIME", "valid for this time: 90s, 15m, 24h, 7d", false},
    {NULL, "share-sas", CLI_FLAG, AT(share_sas), NULL,
     "if there is only a sas_token, give it away in the URL", false},
    {NULL, "no-container", CLI_FLAG, AT(no_container), NULL, "run directly, not in the cluster's image",
     false},
    {"-r", "recursive", CLI_FLAG, AT(recursive), NULL, "everything below, not one level", false},
    {"-no-s", "dry-run", CLI_FLAG, AT(dry_run), NULL, "say what would be done, change nothing", false},
    {NULL, "json", CLI_FLAG, AT(json), NULL, "machine-readable output", false},
    {"-l", "long", CLI_FLAG, AT(long_form), NULL, "mode, size and time too", false},
    {NULL, "bytes", CLI_FLAG, AT(bytes), NULL, "sizes as exact numbers", false},
    {NULL, "leftovers", CLI_FLAG, AT(leftovers), NULL, "what interrupted transfers left, instead", false},
    {NULL, "device-code", CLI_FLAG, AT(device_code), NULL, "log in with a code typed into a browser", false},
    {NULL, "tenant", CLI_STRING, AT(tenant), "TENANT", "log in to this tenant: its id or domain name", false},
    {NULL, "vm-size", CLI_STRING, AT(vm_size), "SIZE", "of a node: STANDARD_NC6, ...", false},
    {NULL, "min", CLI_INT, AT(min), "N", "nodes that stay when there is nothing to do (default 0)", false},
    {NULL, "nodes", CLI_INT, AT(nodes), "N", "exactly N nodes, whether there is work or not", false},
    {NULL, "idle", CLI_DURATION, AT(idle_s), "TIME", "a node without work goes after this time: 120s, 5m",
     false},
    {NULL, "low-priority", CLI_FLAG, AT(low_priority), NULL, "cheaper nodes that may be taken away", false},
    {NULL, "admin-user", CLI_STRING, AT(admin_user), "NAME",
     "who may log in to the nodes (default azureuser)", false},
    {NULL, "ssh-key", CLI_STRING, AT(ssh_key), "FILE", "a public key that may log in to the nodes", false},
    {NULL, "location", CLI_STRING, AT(location), "REGION", "where (default: where the workspace is)", false},
    {NULL, "no-wait", CLI_FLAG, AT(no_wait), NULL, "return when the service has accepted it", false},
    {"-d", "depth", CLI_INT, AT(depth), "N", "a line for each folder down to this depth", false},
    {NULL, "first", CLI_SIZE, AT(first), "SIZE", "only so many bytes from the start", false},
    {NULL, "last", CLI_SIZE, AT(last), "SIZE", "only so many bytes at the end", false},
    {"-y", "yes", CLI_FLAG, AT(yes), NULL, "do not ask", false},
    {NULL, "max", CLI_INT, AT(max), "N", "at most N of them (0: all)", false},
    {NULL, "delete", CLI_FLAG, AT(delete_extra), NULL, "delete at the destination what the source has not",
     false},
    {NULL, "max-delete", CLI_INT, AT(max_delete), "N", "with --delete: change nothing if it were more than N",
     false},
    {NULL, "include", CLI_STRINGS, AT(includes), "PATTERN",
     "only what matches (gitignore syntax; repeatable)", false},
    {NULL, "exclude", CLI_STRINGS, AT(excludes), "PATTERN", "not what matches (gitignore syntax; repeatable)",
     false},
    {NULL, "filter-from", CLI_STRINGS, AT(filter_files), "FILE", "exclude what this gitignore file says",
     false},
    {NULL, "checksum", CLI_FLAG, AT(checksum), NULL, "compare the content, not size and time", false},
    {NULL, "md5", CLI_FLAG, AT(md5), NULL, "store the MD5 of files over 256 MiB too, for other tools", false},
    {NULL, "deep", CLI_FLAG, AT(deep), NULL, "read all bytes, trust no stored checksum", false},
    {NULL, "transfers", CLI_INT, AT(transfers), "N", "at most N requests at once, 1 to 500", false},
    {NULL, "bwlimit", CLI_SIZE, AT(bwlimit), "RATE", "at most this many bytes a second: 500k, 10M", false},
    {NULL, "memory", CLI_SIZE, AT(memory), "SIZE", "for parts under way (default 64M)", false},
    {NULL, "part-size", CLI_SIZE, AT(part_size), "SIZE", "large files go in parts of this size (default 8M)",
     false},

    {"-c", "cluster", CLI_STRING, AT(cluster), "NAME", "use aux_data/aml/NAME.yaml", true},
    {"-n", "num-gpu", CLI_INT, AT(num_gpu), "N", "GPUs, or processes where there are none", true},
    {"-p", "param", CLI_STRINGS, AT(params), "YAML", "override any key, as in -p 'env: {A: 1}'", true},
    {"-single", "single", CLI_FLAG, AT(single), NULL, "one process on each node, not one for each GPU", true},
    {"-f", "from-cluster", CLI_STRING, AT(from_cluster), "NAME",
     "copy from this cluster's store (before the verb)", true},
    {"-rt", "resubmit-to", CLI_STRING, AT(resubmit_to), "NAME", "resubmit to this cluster", true},
    {"-ca", "compile-args", CLI_STRING, AT(compile_args), "ARGS", "arguments for compile.aml.sh", true},
    {"-no-wl", "no-logs", CLI_FLAG, AT(no_logs), NULL, "query: do not fetch logs", true},
    {"-no-dt", "no-details", CLI_FLAG, AT(no_details), NULL, "query: only state and id", true},
    {"-no-lf", "no-full-logs", CLI_FLAG, AT(no_full_logs), NULL, "query: at most 10 MiB more of each log",
     true},
    {"-q", "quiet", CLI_FLAG, AT(quiet), NULL, "no progress and no notes on stderr", true},
    {"-h", "help", CLI_FLAG, AT(help), NULL, "show help", true},
    {NULL, "version", CLI_FLAG, AT(version), NULL, "show the version", true},

    {"-no-s", "no-submit", CLI_FLAG, AT(dry_run), NULL, NULL, true},
    {NULL, "json", CLI_FLAG, AT(json), NULL, NULL, true},
    {NULL, "max", CLI_INT, AT(max), "N", NULL, true},
    {NULL, "dry-run", CLI_FLAG, AT(dry_run), NULL, NULL, true},
    {"-y", "yes", CLI_FLAG, AT(yes), NULL, NULL, true},
    {"-no-wg", "no-wg", CLI_FLAG, AT(legacy), NULL, NULL, true},
    {"-no-m", "no-m", CLI_FLAG, AT(legacy), NULL, NULL, true},
    {"-ic", "inject-collection", CLI_STRING, AT(ignored), "NAME", NULL, true},
    {0},
};

void cli_options_init(struct cli_options *o)
{
    *o = (struct cli_options){.num_gpu = -1,
                              .max = -1,
                              .min = -1,
                              .nodes = -1,
                              .rank = -1,
                              .tail = -1,
                              .attempt = -1,
                              .transfers = -1,
                              .max_delete = -1,
                              .depth = -1};
}

bool cli_takes(const struct cli_command *command, const struct cli_option *option)
{
    size_t len = strlen(option->long_name);

    if (option->global)
        return true;
    for (const char *s = command ? command->options : NULL; s && *s;) {
        size_t n = strcspn(s, " ");
        if (n == len && strncmp(s, option->long_name, n) == 0)
            return true;
        s += n + (s[n] == ' ');
    }
    return false;
}

/* Whether name (len bytes, without dashes) is the long name; '_' and '-' are the same. */
static bool same_name(const char *name, size_t len, const char *long_name)
{
    if (strlen(long_name) != len)
        return false;
    for (size_t i = 0; i < len; i++)
        if (name[i] != long_name[i] && !(name[i] == '_' && long_name[i] == '-'))
            return false;
    return true;
}

/* The option a word names, and its value where the word holds it. */
static const struct cli_option *find_option(const struct cli_command *command, const char *word,
                                            const char **value)
{
    const char *eq = strchr(word, '=');
    size_t name_len = eq ? (size_t)(eq - word) : strlen(word);
    size_t dashes = act_starts_with(word, "--") ? 2 : 1;

    *value = NULL;
    for (const struct cli_option *o = cli_option_table; o->long_name; o++) {
        if (!cli_takes(command, o))
            continue;
        if (o->short_name && strcmp(word, o->short_name) == 0)
            return o;
        if (dashes == 2 && same_name(word + 2, name_len - 2, o->long_name)) {
            *value = eq ? eq + 1 : NULL;
            return o;
        }
    }
    for (const struct cli_option *o = cli_option_table; o->long_name; o++)
        if (cli_takes(command, o) && o->argument && o->short_name && strlen(o->short_name) == 2 &&
            act_starts_with(word, o->short_name)) {
            *value = word + 2;
            return o;
        }
    return NULL;
}

static int store_value(const struct cli_option *o, const char *word, const char *value,
                       struct cli_options *options, struct act_error *err)
{
    void *at = (char *)options + o->offset;
    int64_t number;
    uint64_t size;

    switch (o->type) {
    case CLI_FLAG:
        *(bool *)at = true;
        return 0;
    case CLI_STRING:
        free(*(char **)at);
        *(char **)at = act_strdup(value);
        return 0;
    case CLI_STRINGS:
        act_strv_push(at, value);
        return 0;
    case CLI_INT:
        if (!act_int_from_text(value, &number) || number < 0)
            return act_error_set(err, ACT_USAGE, "%s takes a number, not '%s'", word, value);
        *(int64_t *)at = number;
        return 0;
    case CLI_DURATION:
        if (!act_duration_from_text(value, &number) || number == 0)
            return act_error_set(err, ACT_USAGE, "%s takes a time such as 90s, 15m, 24h or 7d, not '%s'",
                                 word, value);
        *(int64_t *)at = number;
        return 0;
    case CLI_SIZE:
        if (!act_size_from_text(value, &size) || size == 0)
            return act_error_set(err, ACT_USAGE, "%s takes a size such as 500k, 64M or 1G, not '%s'", word,
                                 value);
        *(uint64_t *)at = size;
        return 0;
    }
    return 0;
}

/* Options that the environment may set as well; the command line wins. */
static const struct {
    const char *option, *variable;
} twins[] = {{"bwlimit", "ACT_BWLIMIT"}, {"memory", "ACT_MEMORY"}};

static int take_environment(struct cli *cli, struct act_error *err)
{
    int rc = 0;

    for (size_t i = 0; i < sizeof(twins) / sizeof(twins[0]) && rc == 0; i++) {
        const char *value = getenv(twins[i].variable);
        const struct cli_option *o = cli_option_table;
        while (strcmp(o->long_name, twins[i].option) != 0)
            o++;
        if (value && *value && cli_takes(cli->command, o))
            rc = store_value(o, twins[i].variable, value, &cli->options, err);
    }
    return rc;
}

static int unknown_option(const struct cli_command *command, const char *word, struct act_error *err)
{
    struct act_strv names = {0};
    size_t len = strcspn(word, "=");
    ACT_AUTOFREE char *name = act_strndup(word, len);

    for (const struct cli_option *o = cli_option_table; o->long_name; o++) {
        if (!cli_takes(command, o) || !o->help)
            continue;
        act_strv_pushf(&names, "--%s", o->long_name);
        if (o->short_name && strlen(o->short_name) > 2)
            act_strv_push(&names, o->short_name);
    }
    const char *near = act_nearest(name, (const char *const *)names.v);
    int rc = act_error_set(err, ACT_USAGE, "unknown option '%s'%s%s%s; see 'a %s%s--help'", name,
                           near ? "; did you mean '" : "", near ? near : "", near ? "'?" : "",
                           command ? command->name : "", command ? " " : "");
    act_strv_release(&names);
    return rc;
}

static int unknown_verb(const char *word, struct act_error *err)
{
    struct act_strv names = {0};

    for (const struct cli_command *c = cli_commands; c->name; c++)
        if (!c->hidden)
            act_strv_push(&names, c->name);
    const char *near = act_nearest(word, (const char *const *)names.v);
    int rc = act_error_set(err, ACT_USAGE, "unknown verb '%s'%s%s%s; 'a help' lists them", word,
                           near ? "; did you mean '" : "", near ? near : "", near ? "'?" : "");
    act_strv_release(&names);
    return rc;
}

struct parser {
    char **words;
    int n, next;
    struct cli *cli;
};

/* An option at p->next, with its value. */
static int parse_option(struct parser *p, struct act_error *err)
{
    const char *word = p->words[p->next++], *value;
    const struct cli_option *o = find_option(p->cli->command, word, &value);

    if (!o)
        return unknown_option(p->cli->command, word, err);
    if (!o->argument && value)
        return act_error_set(err, ACT_USAGE, "'%s' takes no value", word);
    if (o->argument && !value) {
        if (p->next == p->n)
            return act_error_set(err, ACT_USAGE, "%s needs a value: %s %s", word, word, o->argument);
        value = p->words[p->next++];
    }
    return store_value(o, word, value, &p->cli->options, err);
}

static int check_count(const struct cli *cli, struct act_error *err)
{
    const struct cli_command *c = cli->command;
    int n = (int)cli->words.n;

    if (cli->options.help || (n >= c->min_words && (c->max_words < 0 || n <= c->max_words)))
        return 0;
    if (n < c->min_words)
        return act_error_set(err, ACT_USAGE, "'a %s' needs more: a %s %s; 'a %s --help' has examples",
                             c->name, c->name, c->synopsis, c->name);
    return act_error_set(err, ACT_USAGE, "'a %s' does not take '%s': a %s %s; 'a %s --help' has examples",
                         c->name, cli->words.v[c->max_words], c->name, c->synopsis, c->name);
}

int cli_parse(int argc, char **argv, struct cli *cli, struct act_error *err)
{
    struct parser p = {.words = argv, .n = argc, .next = 1, .cli = cli};
    bool only_words = false, separated = false;
    int rc = 0;

    while (p.next < p.n && rc == 0) {
        const char *word = p.words[p.next];
        if (!only_words && strcmp(word, "--") == 0) {
            only_words = separated = true;
            cli->words_before = cli->words.n;
            p.next++;
        } else if (!only_words && word[0] == '-' && word[1]) {
            rc = parse_option(&p, err);
        } else if (!cli->command) {
            cli->command = cli_find_command(word);
            if (!cli->command)
                return unknown_verb(word, err);
            p.next++;
            only_words = strcmp(cli->command->name, "__complete") == 0;
            rc = take_environment(cli, err);
        } else {
            only_words = only_words || cli->command->takes_command;
            act_strv_push(&cli->words, word);
            p.next++;
        }
    }
    if (!separated)
        cli->words_before = cli->words.n;
    return rc == 0 && cli->command ? check_count(cli, err) : rc;
}

void cli_release(struct cli *cli)
{
    struct cli_options *o = &cli->options;

    for (const struct cli_option *row = cli_option_table; row->long_name; row++) {
        void *at = (char *)o + row->offset;
        if (row->type == CLI_STRING) {
            free(*(char **)at);
            *(char **)at = NULL;
        } else if (row->type == CLI_STRINGS) {
            act_strv_release(at);
        }
    }
    act_strv_release(&cli->words);
    filter_free(cli->filter);
    if (cli->flow_is_open)
        flow_close(&cli->flow);
}
