/* options.c - the options, one row each, and the parser.
 *
 * A verb takes the options named in its row of a commands_*.c, and the global ones; any other is refused with a line
 * that says what it takes. Options of the original may come before the verb, as they did there, or after it. '-' and
 * '_' in long names are equivalent; values are "--name value", "--name=value", for numbers also "-n8"; single-letter
 * flags can be combined: "-lr".
 */
#include <string.h>

#include "base/dirs.h"
#include "base/units.h"
#include "cli/cli.h"
#include "filter/filter.h"
#include "flow/flow.h"

/* The member that an option sets, and its type: a member of another type does not compile. */
/* NOLINTBEGIN(bugprone-macro-parentheses): a type */
#define OPTION(kind, type, member)                                                                                     \
    kind, _Generic(((struct cli_options *)0)->member, type : offsetof(struct cli_options, member))
/* NOLINTEND(bugprone-macro-parentheses) */
#define FLAG(member)     OPTION(CLI_FLAG, bool, member)
#define STRING(member)   OPTION(CLI_STRING, char *, member)
#define STRINGS(member)  OPTION(CLI_STRINGS, struct act_strv, member)
#define INT(member)      OPTION(CLI_INT, int64_t, member)
#define RANGE(member)    OPTION(CLI_RANGE, struct cli_range, member)
#define DURATION(member) OPTION(CLI_DURATION, int64_t, member)
/* A time, of which a number alone may be meant in minutes or days. */
#define WITH_UNIT(member) OPTION(CLI_WITH_UNIT, int64_t, member)
#define SIZE(member)      OPTION(CLI_SIZE, uint64_t, member)

const struct cli_option cli_option_table[] = {
    {"-f", "file", STRING(job_file), "FILE", "what this file of Azure Batch AI describes", CLI_BEHIND},
    {"-f", "follow", FLAG(follow), NULL, "go on until the run ends", CLI_BEHIND},
    {NULL, "rank", INT(rank), "N", "the log of this rank (default: 0)", CLI_BEHIND},
    {NULL, "all", FLAG(all), NULL, "all of them", CLI_BEHIND},
    {NULL, "attempt", INT(attempt), "N", "the log of an earlier attempt, counted from 1 (default: the last)",
     CLI_BEHIND},
    {"-n", "interval", DURATION(interval_s), "TIME", "how often to ask and redraw (default: 2s)", CLI_BEHIND},
    {NULL, "once", FLAG(once), NULL, "print one frame, without taking over the terminal", CLI_BEHIND},
    {NULL, "watch", FLAG(watch), NULL, "redraw the table in place until q or Ctrl-C", CLI_BEHIND},
    {"-n", "tail", INT(tail), "N", "only the last N lines", CLI_BEHIND},
    {NULL, "name", STRING(name), "NAME", "only the runs with this name", CLI_BEHIND},
    {NULL, "tag", STRINGS(tags), "KEY=VALUE", "only the runs with this tag (repeatable)", CLI_BEHIND},
    {NULL, "grid", STRINGS(grids), "NAME=VALUES",
     "a run for each of these values, separated by commas, in place of {NAME} (repeatable)", CLI_BEHIND},
    {NULL, "max-parallel", INT(max_parallel), "N", "at most N runs of the sweep at once (default: all)", CLI_BEHIND},
    {NULL, "show", STRING(show), "SWEEP", "compare the runs of this sweep: its id, its name, or @ for the last one",
     CLI_BEHIND},
    {NULL, "metric", STRING(metric), "KEY", "compare by this number in their logs, as 'a plot' draws it", CLI_BEHIND},
    {"--min", "lowest", FLAG(lowest), NULL, "the lowest value is best", CLI_BEHIND},
    {"--max", "highest", FLAG(highest), NULL, "the highest value is best", CLI_BEHIND},
    {NULL, "retry", INT(retry), "N", "try again up to N times if it fails (retry.times)", CLI_BEHIND},
    {NULL, "retry-on", STRING(retry_on), "CLASSES",
     "only after these failures, as 'a why' names them, separated by commas (default: infrastructure)", CLI_BEHIND},
    {NULL, "use-bad-nodes", FLAG(use_bad_nodes), NULL, "also use nodes that failed lately ('a nodes --bad')",
     CLI_BEHIND},
    {NULL, "bad", FLAG(bad), NULL, "list the nodes that were to blame for failures in the last week", CLI_BEHIND},
    {"-d", "folder", STRING(folder), "FOLDER", "list this mapped folder of the run instead of its logs", CLI_BEHIND},
    {NULL, "urls", FLAG(urls), NULL, "print only the URL of each file, or its path where it has no URL", CLI_BEHIND},
    {"-o", "output", STRING(output), "FILE", "write to this file, whole or not at all", CLI_BEHIND},
    {NULL, "svg", FLAG(svg), NULL, "print a picture (SVG)", CLI_BEHIND},
    {NULL, "csv", FLAG(csv), NULL, "print comma-separated values", CLI_BEHIND},
    {NULL, "port", INT(port), "N", "listen on this port of this machine (default: one that is free)", CLI_BEHIND},
    {NULL, "open", FLAG(open), NULL, "open the page in the browser (xdg-open)", CLI_BEHIND},
    {NULL, "rebuild", FLAG(rebuild), NULL, "first add the runs of the cluster that the ledger lacks", CLI_BEHIND},
    {NULL, "refresh", FLAG(refresh), NULL, "fetch the logs again from their beginnings", CLI_BEHIND},
    {NULL, "timeout", DURATION(timeout_s), "TIME", "give up after this time: 90s, 15m, 24h, 7d", CLI_BEHIND},
    {NULL, "hang", WITH_UNIT(hang_s), "TIME",
     "end the run if no rank writes and no GPU works for this long: 20m; keep its stacks", CLI_BEHIND},
    {NULL, "older", WITH_UNIT(older_s), "TIME", "runs that ended longer ago than this: 12h, 30d", CLI_BEHIND},
    {"-i", "ignore-case", FLAG(ignore_case), NULL, "ignore the difference between upper and lower case", CLI_BEHIND},
    {NULL, "any", FLAG(any), NULL, "only until one of them has ended", CLI_BEHIND},
    {NULL, "notify", STRING(notify), "CMD",
     "run this shell command here for each run that has ended, with $ACT_RUN_ID and $ACT_RUN_STATE set", CLI_BEHIND},
    {NULL, "expires", DURATION(expires_s), "TIME", "valid for this time: 90s, 15m, 24h, 7d", CLI_BEHIND},
    {NULL, "share-sas", FLAG(share_sas), NULL, "where the account has only a sas_token, put that into the URL",
     CLI_BEHIND},
    {NULL, "last-package", FLAG(last_package), NULL, "use the package stored last, not the files as they are now",
     CLI_BEHIND},
    {NULL, "code", FLAG(code), NULL, "with the code as it is now, not with the package of the old run", CLI_BEHIND},
    {NULL, "no-container", FLAG(no_container), NULL, "run directly, not in the cluster's image", CLI_BEHIND},
    {NULL, "mount", FLAG(mount), NULL, "with the folders of the cluster's stores, not the project's own", CLI_BEHIND},
    {"-r", "recursive", FLAG(recursive), NULL, "everything below, not one level", CLI_BEHIND},
    {"-no-s", "dry-run", FLAG(dry_run), NULL, "say what would be done, change nothing", CLI_BEFORE},
    {NULL, "json", FLAG(json), NULL, "machine-readable output", CLI_BEFORE},
    {"-l", "long", FLAG(long_form), NULL, "mode, size and time too", CLI_BEHIND},
    {NULL, "bytes", FLAG(bytes), NULL, "sizes as exact numbers", CLI_BEHIND},
    {NULL, "leftovers", FLAG(leftovers), NULL, "what interrupted transfers left, instead", CLI_BEHIND},
    {NULL, "list", FLAG(list), NULL, "all projects that are trusted", CLI_BEHIND},
    {NULL, "forget", FLAG(forget), NULL, "end it only here, because its cluster is gone for good and does not answer",
     CLI_BEHIND},
    {NULL, "remove", FLAG(remove), NULL, "forget that the project is trusted", CLI_BEHIND},
    {NULL, "own", FLAG(own), NULL, "list: the clusters of all files, yours and the project's", CLI_BEHIND},
    {NULL, "kind", STRING(kind), "KIND", "add: local, slurm, k8s or aml", CLI_BEHIND},
    {NULL, "project", FLAG(project), NULL, "add: write a file of this project, not one for all projects", CLI_BEHIND},
    {NULL, "login", STRING(login), "LOGIN", "add, slurm: USER@HOST of a login node; none: this machine", CLI_BEHIND},
    {NULL, "hosts", STRING(hosts), "LIST", "add, ssh: the machines, USER@HOST with commas between them", CLI_BEHIND},
    {NULL, "partition", STRING(partition), "NAME", "add, slurm: the partition", CLI_BEHIND},
    {NULL, "context", STRING(context), "NAME", "add, k8s: the context of the kubeconfig", CLI_BEHIND},
    {NULL, "namespace", STRING(namespace_), "NAME", "add, k8s: the namespace", CLI_BEHIND},
    {NULL, "kubeconfig", STRING(kubeconfig), "FILE", "add, k8s: a kubeconfig other than the one that kubectl uses",
     CLI_BEHIND},
    {NULL, "image", STRING(image), "IMAGE", "add, k8s and aml: what runs execute in", CLI_BEHIND},
    {NULL, "subscription", STRING(subscription), "ID", "add, aml: the subscription, by id or name", CLI_BEHIND},
    {NULL, "resource-group", STRING(resource_group), "NAME", "add, aml: the resource group of the workspace",
     CLI_BEHIND},
    {NULL, "workspace", STRING(workspace), "NAME", "add, aml: the workspace", CLI_BEHIND},
    {NULL, "compute", STRING(compute), "NAME", "add, aml: the compute that runs go to", CLI_BEHIND},
    {NULL, "storage", STRING(storage), "NAME", "add, aml: the storage account (default: the workspace's)", CLI_BEHIND},
    {NULL, "container", STRING(container), "NAME", "add, aml: the container, made if it is not there", CLI_BEHIND},
    {NULL, "device-code", FLAG(device_code), NULL, "log in with a code typed into a browser", CLI_BEHIND},
    {NULL, "tenant", STRING(tenant), "TENANT", "log in to this tenant: its id or domain name", CLI_BEHIND},
    {NULL, "storage-account-name", STRING(storage_account), "NAME",
     "what <AZURE_BATCHAI_STORAGE_ACCOUNT> of the file stands for; else $AZURE_BATCHAI_STORAGE_ACCOUNT", CLI_BEHIND},
    {NULL, "storage-account-key", STRING(storage_key), "KEY",
     "likewise <AZURE_BATCHAI_STORAGE_KEY>, for all to see who list processes; better $AZURE_BATCHAI_STORAGE_KEY",
     CLI_BEHIND},
    {NULL, "vm-size", STRING(vm_size), "SIZE", "the size of a node: STANDARD_NC6, ...", CLI_BEHIND},
    {NULL, "min", INT(min), "N", "nodes to keep when there is no work (default 0)", CLI_BEHIND},
    {NULL, "nodes", INT(nodes), "N", "exactly N nodes, whether there is work or not", CLI_BEHIND},
    {NULL, "idle", DURATION(idle_s), "TIME", "remove a node that has had no work for this long: 120s, 5m", CLI_BEHIND},
    {NULL, "low-priority", FLAG(low_priority), NULL, "cheaper nodes that may be preempted", CLI_BEHIND},
    {NULL, "admin-user", STRING(admin_user), "NAME", "who may log in to the nodes (default azureuser)", CLI_BEHIND},
    {NULL, "ssh-key", STRING(ssh_key), "FILE", "a public key that may log in to the nodes", CLI_BEHIND},
    {NULL, "location", STRING(location), "REGION", "create: the region (default: that of the workspace or cluster)",
     CLI_BEHIND},
    {NULL, "identity", STRINGS(identities), "ID",
     "create: an identity for the nodes; system: one of their own (repeatable)", CLI_BEHIND},
    {NULL, "subnet", STRING(subnet), "ID", "create: the network of the nodes, by its resource id", CLI_BEHIND},
    {NULL, "size", SIZE(size), "SIZE", "create: the capacity: 1T (default: 100G, the least)", CLI_BEHIND},
    {NULL, "redundancy", STRING(redundancy), "KIND", "create: lrs, or zrs for several zones (default: lrs)",
     CLI_BEHIND},
    {NULL, "no-public-ip", FLAG(no_public_ip), NULL, "create: nodes without a public address", CLI_BEHIND},
    {NULL, "node-image", STRING(node_image), "ID", "create: the image of the nodes, by its resource id", CLI_BEHIND},
    {NULL, "no-wait", FLAG(no_wait), NULL, "return as soon as the service has accepted it", CLI_BEHIND},
    {"-d", "depth", INT(depth), "N", "a line for each folder down to this depth", CLI_BEHIND},
    {NULL, "first", SIZE(first), "SIZE", "only this many bytes from the start", CLI_BEHIND},
    {NULL, "last", SIZE(last), "SIZE", "only this many bytes at the end", CLI_BEHIND},
    {"-y", "yes", FLAG(yes), NULL, "do not ask", CLI_BEFORE},
    {NULL, "force", FLAG(force), NULL, "a run also where its cluster cannot be reached: what it left there stays",
     CLI_BEHIND},
    {NULL, "max", INT(max), "N", "at most N of them (0: all)", CLI_BEFORE},
    {NULL, "delete", FLAG(delete_extra), NULL, "delete at the destination what the source does not have", CLI_BEHIND},
    {NULL, "max-delete", INT(max_delete), "N", "with --delete: change nothing if more than N would be deleted",
     CLI_BEHIND},
    {NULL, "include", STRINGS(includes), "PATTERN", "only what matches (gitignore syntax; repeatable)", CLI_BEHIND},
    {NULL, "exclude", STRINGS(excludes), "PATTERN", "not what matches (gitignore syntax; repeatable)", CLI_BEHIND},
    {NULL, "filter-from", STRINGS(filter_files), "FILE",
     "exclude what the patterns in this file match (gitignore syntax)", CLI_BEHIND},
    {NULL, "checksum", FLAG(checksum), NULL, "compare the content, not size and time", CLI_BEHIND},
    {NULL, "overwrite", FLAG(overwrite), NULL, "also replace what is newer at the destination", CLI_BEHIND},
    {NULL, "skip-links", FLAG(skip_links), NULL, "leave out links that lead out of the folder", CLI_BEHIND},
    {"--follow", "follow-links", FLAG(follow_links), NULL,
     "follow links that lead out of the folder, and take what they lead to", CLI_BEHIND},
    {NULL, "md5", FLAG(md5), NULL, "store the MD5 of files over 256 MiB too, for other tools", CLI_BEHIND},
    {NULL, "read-only", FLAG(read_only), NULL, "mount it read-only", CLI_BEHIND},
    {NULL, "deep", FLAG(deep), NULL, "read all bytes, trust no stored checksum", CLI_BEHIND},
    {NULL, "transfers", INT(transfers), "N", "at most N requests at once, 1 to 500", CLI_BEHIND},
    {NULL, "bwlimit", SIZE(bwlimit), "RATE", "at most this many bytes a second: 500k, 10M", CLI_BEHIND},
    {NULL, "memory", SIZE(memory), "SIZE", "memory for parts in flight (default 64M)", CLI_BEHIND},
    {NULL, "part-size", SIZE(part_size), "SIZE", "transfer large files in parts of this size (default 8M)", CLI_BEHIND},
    {NULL, "no-sync", FLAG(no_sync), NULL, "do not wait for the disk: a power cut may lose files", CLI_BEHIND},

    {"-c", "cluster", STRING(cluster), "CLUSTER", "use aux_data/aml/CLUSTER.yaml, or your own cluster of that name",
     CLI_BEFORE},
    {"-n", "num-gpu", RANGE(num_gpu), "N", "GPUs, or processes where there are none; MIN:MAX for an elastic run",
     CLI_BEFORE},
    {"-p", "param", STRINGS(params), "YAML", "override any key, as in -p 'env: {A: 1}'", CLI_BEFORE},
    {"-single", "single", FLAG(single), NULL, "one process on each node, not one for each GPU", CLI_BEFORE},
    {"-f", "from-cluster", STRING(from_cluster), "CLUSTER", "copy from this cluster's store", CLI_BEFORE},
    {"-rt", "resubmit-to", STRING(resubmit_to), "CLUSTER", "resubmit to this cluster", CLI_BEFORE},
    {"-ca", "compile-args", STRING(compile_args), "ARGS", "arguments for compile.aml.sh", CLI_BEFORE},
    {"-no-wl", "no-logs", FLAG(no_logs), NULL, "do not fetch logs", CLI_BEFORE},
    {"-no-dt", "no-details", FLAG(no_details), NULL, "print only state and id", CLI_BEFORE},
    {"-no-lf", "no-full-logs", FLAG(no_full_logs), NULL, "fetch at most 10 MiB more of each log", CLI_BEFORE},
    {"-q", "quiet", FLAG(quiet), NULL, "no progress and no notes on stderr", CLI_EVERYWHERE},
    {"-h", "help", FLAG(help), NULL, "show help", CLI_EVERYWHERE},
    {NULL, "version", FLAG(version), NULL, "show version, commit and libraries", CLI_EVERYWHERE},

    {"-no-wg", "no-wg", FLAG(legacy), NULL, NULL, CLI_EVERYWHERE},
    {"-no-m", "no-m", FLAG(legacy), NULL, NULL, CLI_EVERYWHERE},
    {"-ic", "inject-collection", STRING(ignored), "NAME", NULL, CLI_EVERYWHERE},
    {0},
};

void cli_options_init(struct cli_options *o)
{
    *o = (struct cli_options){.num_gpu = {-1, -1},
                              .max = -1,
                              .port = -1,
                              .min = -1,
                              .max_parallel = -1,
                              .nodes = -1,
                              .rank = -1,
                              .tail = -1,
                              .attempt = -1,
                              .retry = -1,
                              .transfers = -1,
                              .max_delete = -1,
                              .depth = -1};
}

bool cli_names(const char *list, const char *name)
{
    size_t len = strlen(name);

    while (list && *list) {
        size_t n = strcspn(list, " ");
        if (n == len && strncmp(list, name, n) == 0)
            return true;
        list += n + (list[n] == ' ');
    }
    return false;
}

/* Whether two values of an option are the same, which need not be so for texts: none was given by default. */
static bool same_value(const struct cli_option *o, const void *a, const void *b)
{
    switch (o->type) {
    case CLI_FLAG:
        return *(const bool *)a == *(const bool *)b;
    case CLI_STRING:
        return *(char *const *)a == *(char *const *)b;
    case CLI_STRINGS:
        return ((const struct act_strv *)a)->n == ((const struct act_strv *)b)->n;
    case CLI_INT:
    case CLI_DURATION:
    case CLI_WITH_UNIT:
        return *(const int64_t *)a == *(const int64_t *)b;
    case CLI_RANGE:
        return memcmp(a, b, sizeof(struct cli_range)) == 0;
    case CLI_SIZE:
        return *(const uint64_t *)a == *(const uint64_t *)b;
    }
    return true;
}

bool cli_is_given(const struct cli_options *options, const struct cli_option *o)
{
    struct cli_options none;

    cli_options_init(&none);
    return !same_value(o, (const char *)options + o->offset, (const char *)&none + o->offset);
}

bool cli_takes(const struct cli_command *command, const struct cli_option *option)
{
    if (option->place == CLI_EVERYWHERE)
        return true;
    return command ? cli_names(command->options, option->long_name) : option->place == CLI_BEFORE;
}

const struct cli_option *cli_next_option(const struct cli_command *command, enum cli_place place,
                                         const struct cli_option *last)
{
    for (const struct cli_option *o = last ? last + 1 : cli_option_table; o->long_name; o++)
        if (o->help && o->place == place && cli_takes(command, o))
            return o;
    return NULL;
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

/* By its long name, or by its short one if that is long as well. */
static bool has_long_name(const struct cli_option *o, const char *name, size_t len)
{
    return same_name(name, len, o->long_name) ||
           (o->short_name && act_starts_with(o->short_name, "--") && same_name(name, len, o->short_name + 2));
}

static bool is_short(const struct cli_option *o)
{
    return o->short_name && strlen(o->short_name) == 2;
}

/* "-n8": for numbers only, otherwise "-foo" would be "-f oo". */
static bool has_number(const struct cli_option *o, const char *word)
{
    const char *fits = o->type == CLI_RANGE ? "0123456789:" : "0123456789";

    return is_short(o) && (o->type == CLI_INT || o->type == CLI_RANGE) && act_starts_with(word, o->short_name) &&
           word[2 + strspn(word + 2, fits)] == '\0';
}

const struct cli_option *cli_find_option(const struct cli_command *command, const char *word, const char **out_value)
{
    const char *eq = strchr(word, '=');
    size_t name_len = eq ? (size_t)(eq - word) : strlen(word);
    bool is_long = act_starts_with(word, "--");

    *out_value = NULL;
    for (const struct cli_option *o = cli_option_table; o->long_name; o++) {
        if (!cli_takes(command, o))
            continue;
        if (o->short_name && strcmp(word, o->short_name) == 0)
            return o;
        if (is_long && has_long_name(o, word + 2, name_len - 2)) {
            *out_value = eq ? eq + 1 : NULL;
            return o;
        }
        if (has_number(o, word)) {
            *out_value = word + 2;
            return o;
        }
    }
    return NULL;
}

/* "8" or "8:32". */
static bool range_from_text(const char *text, struct cli_range *out)
{
    const char *colon = text ? strchr(text, ':') : NULL;
    ACT_AUTOFREE char *least = colon ? act_strndup(text, (size_t)(colon - text)) : act_strdup(text);

    return text && act_int_from_text(least, &out->least) && act_int_from_text(colon ? colon + 1 : text, &out->most) &&
           out->least >= 0 && out->least <= out->most && (!colon || out->least > 0);
}

static int store_value(const struct cli_option *o, const char *word, const char *value, struct cli_options *options,
                       struct act_error *err)
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
    case CLI_RANGE:
        if (!range_from_text(value, at))
            return act_error_set(err, ACT_USAGE, "%s takes a number, or MIN:MAX for an elastic run, not '%s'", word,
                                 value);
        return 0;
    case CLI_DURATION:
    case CLI_WITH_UNIT:
        if ((o->type == CLI_WITH_UNIT && act_int_from_text(value, &number)) ||
            !act_duration_from_text(value, &number) || number == 0)
            return act_error_set(err, ACT_USAGE, "%s takes a time such as 90s, 15m, 24h or 7d, not '%s'", word, value);
        *(int64_t *)at = number;
        return 0;
    case CLI_SIZE:
        if (!act_size_from_text(value, &size) || size == 0)
            return act_error_set(err, ACT_USAGE, "%s takes a size such as 500k, 64M or 1G, not '%s'", word, value);
        *(uint64_t *)at = size;
        return 0;
    }
    return 0;
}

/* Options that can also be set in the environment; the command line wins. */
static const struct {
    const char *option, *variable;
} twins[] = {{"bwlimit", "ACT_BWLIMIT"}, {"memory", "ACT_MEMORY"}};

static int take_environment(struct cli *cli, struct act_error *err)
{
    int rc = 0;

    for (size_t i = 0; i < sizeof(twins) / sizeof(twins[0]) && rc == 0; i++) {
        const char *value = act_env(twins[i].variable);
        const struct cli_option *o = cli_option_table;
        while (strcmp(o->long_name, twins[i].option) != 0)
            o++;
        if (value && cli_takes(cli->command, o))
            rc = store_value(o, twins[i].variable, value, &cli->options, err);
    }
    return rc;
}

/* The options of the verb in short form: "-c, -rt, --json". */
static void list_options(const struct cli_command *command, struct act_buf *out)
{
    enum { READABLE = 3 };

    for (const struct cli_option *o = cli_option_table; o->long_name; o++) {
        bool brief = o->short_name && strlen(o->short_name) <= READABLE;
        if (o->help && o->place != CLI_EVERYWHERE && cli_takes(command, o))
            act_buf_addf(out, "%s%s%s", out->len ? ", " : "", brief ? "" : "--", brief ? o->short_name : o->long_name);
    }
    if (!out->len)
        act_buf_adds(out, "no options but those of every verb: -q, -h");
}

/* The option of the verb closest to what was typed: "--json". The first letter must be right: between words so short
 * all are close. New string; NULL: none is close. */
static char *nearest_option(const struct cli_command *command, const char *name)
{
    ACT_AUTO(act_strv) names = {0};
    const char *word = name + strspn(name, "-");

    for (const struct cli_option *o = cli_option_table; o->long_name; o++)
        if (cli_takes(command, o) && o->help && o->long_name[0] == *word)
            act_strv_push(&names, o->long_name);
    const char *near = names.n ? act_nearest(word, (const char *const *)names.v) : NULL;
    return near ? act_sprintf("--%s", near) : NULL;
}

/* The text that joins an error and its continuation. New string. */
static char *apart(const char *near)
{
    return near ? act_sprintf("; did you mean '%s'? ", near) : act_strdup("; ");
}

/* Whether some verb takes the option that this word names, after the verb. */
static bool is_behind_some_verb(const char *word)
{
    const char *value;

    for (const struct cli_command *c = cli_next_command(NULL); c; c = cli_next_command(c)) {
        const struct cli_option *o = cli_find_option(c, word, &value);
        if (o && o->place == CLI_BEHIND)
            return true;
    }
    return false;
}

static int unknown_before(const char *name, struct act_error *err)
{
    if (is_behind_some_verb(name))
        return act_error_set(err, ACT_USAGE,
                             "'%s' comes after its verb; 'a help' lists the options that may come before it", name);
    ACT_AUTOFREE char *near = nearest_option(NULL, name);
    ACT_AUTOFREE char *then = apart(near);
    return act_error_set(err, ACT_USAGE, "unknown option '%s'%ssee 'a --help'", name, then);
}

/* "-n=2": only long names take a value this way. 0: it is something else. */
static int refuse_equals(const struct cli_command *command, const char *word, const char *name, struct act_error *err)
{
    const char *value = strchr(word, '='), *ignored;
    const struct cli_option *o = value ? cli_find_option(command, name, &ignored) : NULL;

    if (!o)
        return 0;
    return o->argument ? act_error_set(err, ACT_USAGE, "write '%s %s', not '%s'", name, value + 1, word)
                       : act_error_set(err, ACT_USAGE, "'%s' takes no value", name);
}

/* word: an option that the verb does not take; before: it came before the verb. */
static int refuse_option(const struct cli_command *command, const char *word, bool before, struct act_error *err)
{
    ACT_AUTOFREE char *name = act_strndup(word, strcspn(word, "="));
    const char *ignored;
    int rc = before ? 0 : refuse_equals(command, word, name, err);

    if (rc < 0)
        return rc;
    if (!command)
        return unknown_before(name, err);
    if (before && cli_find_option(command, word, &ignored))
        return act_error_set(err, ACT_USAGE, "the '%s' of 'a %s' comes after the verb: a %s %s ...", name,
                             command->name, command->name, name);
    ACT_AUTOFREE char *near = before ? NULL : nearest_option(command, name);
    ACT_AUTOFREE char *then = apart(near);
    ACT_AUTO(act_buf) taken = {0};
    list_options(command, &taken);
    return act_error_set(err, ACT_USAGE, "'a %s' takes no '%s'%sit takes %s", command->name, name, then, taken.data);
}

int cli_unknown_verb(const char *word, struct act_error *err)
{
    const char *meant = cli_synonym(word);
    ACT_AUTO(act_strv) names = {0};

    if (meant)
        return act_error_set(err, ACT_USAGE, "unknown verb '%s'; %s", word, meant);
    for (const struct cli_command *c = cli_next_command(NULL); c; c = cli_next_command(c))
        if (!c->hidden)
            act_strv_push(&names, c->name);
    const char *near = act_nearest(word, (const char *const *)names.v);
    ACT_AUTOFREE char *then = apart(near);
    return act_error_set(err, ACT_USAGE, "unknown verb '%s'%s'a help' lists them", word, then);
}

struct parser {
    char **words;
    int n, next;
    struct cli *cli;
    struct before {
        const struct cli_option *option;
        const char *word;
    } * before; /* the options before the verb */
    size_t n_before;
};

static void note_before(struct parser *p, const struct cli_option *option, const char *word)
{
    ACT_PUSH(p->before, p->n_before, (struct before){.option = option, .word = word});
}

/* Options before the verb must be taken by the verb too. */
static int check_before(const struct parser *p, struct act_error *err)
{
    for (size_t i = 0; i < p->n_before; i++)
        if (!cli_takes(p->cli->command, p->before[i].option))
            return refuse_option(p->cli->command, p->before[i].word, true, err);
    return 0;
}

/* "-lr" for "-l -r": single-letter flags, all taken by the verb. */
static bool parse_letters(const struct parser *p, const char *word)
{
    const char *ignored;

    for (int pass = 0; pass < 2; pass++)
        for (const char *letter = word + 1; *letter; letter++) {
            const char name[] = {'-', *letter, '\0'};
            const struct cli_option *o = *letter == '-' ? NULL : cli_find_option(p->cli->command, name, &ignored);
            if (!o || o->type != CLI_FLAG)
                return false;
            if (pass == 1)
                *(bool *)((char *)&p->cli->options + o->offset) = true;
        }
    return true;
}

/* An option at p->next, with its value. */
static int parse_option(struct parser *p, struct act_error *err)
{
    const char *word = p->words[p->next++], *value;
    const struct cli_command *command = p->cli->command;
    const struct cli_option *o = cli_find_option(command, word, &value);

    if (!o && command && parse_letters(p, word))
        return 0;
    if (!o)
        return refuse_option(command, word, false, err);
    if (!o->argument && value)
        return act_error_set(err, ACT_USAGE, "'%s' takes no value", word);
    if (o->argument && !value) {
        if (p->next == p->n)
            return act_error_set(err, ACT_USAGE, "%s needs a value: %s %s", word, word, o->argument);
        value = p->words[p->next++];
    }
    if (!command)
        note_before(p, o, word);
    return store_value(o, word, value, &p->cli->options, err);
}

int cli_hint_help(const struct cli *cli, struct act_error *err)
{
    return act_error_hint(err, "'a %s --help' has examples", cli->command->name);
}

int cli_needs_more(const struct cli *cli, struct act_error *err)
{
    const struct cli_command *c = cli->command;

    act_error_set(err, ACT_USAGE, "'a %s' needs more: a %s %s", c->name, c->name, c->synopsis);
    return cli_hint_help(cli, err);
}

int cli_check_command(const struct cli *cli, const char *example, struct act_error *err)
{
    if (cli->words.n > 0)
        return 0;
    act_error_set(err, ACT_USAGE, "no command to run; try: %s", example);
    return cli_hint_help(cli, err);
}

static int check_count(const struct cli *cli, struct act_error *err)
{
    const struct cli_command *c = cli->command;
    const char *space = *c->synopsis ? " " : "";
    int n = (int)cli->words.n;

    if (cli->options.help || (n >= c->min_words && (c->max_words < 0 || n <= c->max_words)))
        return 0;
    if (n < c->min_words)
        return cli_needs_more(cli, err);
    act_error_set(err, ACT_USAGE, "'a %s' does not take '%s': a %s%s%s", c->name, cli->words.v[c->max_words], c->name,
                  space, c->synopsis);
    return cli_hint_help(cli, err);
}

static int parse_words(struct parser *p, struct act_error *err)
{
    struct cli *cli = p->cli;
    bool only_words = false, separated = false;
    int rc = 0;

    while (p->next < p->n && rc == 0) {
        const char *word = p->words[p->next];
        if (!only_words && strcmp(word, "--") == 0) {
            only_words = separated = true;
            cli->words_before = cli->words.n;
            p->next++;
        } else if (!only_words && word[0] == '-' && word[1]) {
            rc = parse_option(p, err);
        } else if (!cli->command) {
            cli->command = cli_find_command(word);
            if (!cli->command)
                return cli_unknown_verb(word, err);
            p->next++;
            only_words = strcmp(cli->command->name, "__complete") == 0;
            rc = take_environment(cli, err);
        } else {
            only_words = only_words || cli->command->takes_command;
            act_strv_push(&cli->words, word);
            p->next++;
        }
    }
    if (!separated)
        cli->words_before = cli->words.n;
    return rc;
}

int cli_parse(int argc, char **argv, struct cli *cli, struct act_error *err)
{
    struct parser p = {.words = argv, .n = argc, .next = 1, .cli = cli};
    int rc = parse_words(&p, err);

    if (rc == 0 && cli->command && !cli->options.help)
        rc = check_before(&p, err);
    if (rc == 0 && cli->command)
        rc = check_count(cli, err);
    free(p.before);
    return rc;
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
    json_decref(cli->tags);
    if (cli->flow_is_open)
        flow_close(&cli->flow);
    services_close(&cli->services);
}
