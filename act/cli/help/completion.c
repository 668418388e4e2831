/* completion.c - completion: short scripts for the shells, which ask "a __complete WORD..." what may
 * follow the words typed; the last word is the one to complete. One candidate on a line. */
#include <dirent.h>
#include <string.h>

#include "base/path.h"
#include "cli/help/help.h"
#include "flow/flow.h"
#include "flow/logs/logs.h"
#include "flow/look/look.h"
#include "flow/runs/runs.h"
#include "flow/sweep/sweep.h"
#include "flow/trust.h"

static const struct {
    const char *shell, *script;
} scripts[] = {
    {"bash",
     /* bash takes "RUN:PATH" apart at the colon, and wants only what comes behind it */
     "_act_complete() {\n"
     "    local rest=${COMP_LINE:0:COMP_POINT} word words=() typed\n"
     "    for word in \"${COMP_WORDS[@]:0:COMP_CWORD+1}\"; do\n"
     "        if [[ ${#words[@]} -gt 0 && $rest == \"$word\"* && ( -n $word || -z $rest ) ]]; then\n"
     "            words[-1]+=$word\n"
     "        else\n"
     "            words+=(\"$word\")\n"
     "        fi\n"
     "        rest=${rest#*\"$word\"}\n"
     "    done\n"
     "    mapfile -t COMPREPLY < <(\"${words[0]}\" __complete \"${words[@]:1}\" 2>/dev/null)\n"
     "    typed=${words[-1]}\n"
     "    case $typed in\n"
     "    *:*) COMPREPLY=(\"${COMPREPLY[@]#\"${typed%\"${typed##*:}\"}\"}\") ;;\n"
     "    *) [ ${#COMPREPLY[@]} -gt 0 ] || compopt -o default ;;\n"
     "    esac\n"
     "}\n"
     "complete -o nosort -F _act_complete a act\n"},
    {"zsh", "#compdef a act\n"
            "_act_complete() {\n"
            "    local -a found\n"
            "    found=(\"${(@f)$($words[1] __complete \"${(@)words[2,CURRENT]}\" 2>/dev/null)}\")\n"
            "    if [[ -n $found ]]; then compadd -V act -a found; else _files; fi\n"
            "}\n"
            "compdef _act_complete a act\n"
            "if [[ $funcstack[1] == _act ]]; then _act_complete; fi\n"}, /* autoloaded from $fpath */
    {"fish", "function __act_complete\n"
             "    set -l words (commandline -opc) (commandline -ct)\n"
             "    $words[1] __complete $words[2..-1] 2>/dev/null\n"
             "end\n"
             "complete -c a -c act -a '(__act_complete)'\n"},
};

int cmd_completion(struct cli *cli, struct act_error *err)
{
    const char *shell = cli->words.v[0];

    for (size_t i = 0; i < sizeof(scripts) / sizeof(scripts[0]); i++)
        if (strcmp(scripts[i].shell, shell) == 0) {
            fputs(scripts[i].script, stdout);
            return 0;
        }
    return act_error_set(err, ACT_USAGE, "no completion for '%s': bash, zsh and fish are known", shell);
}

/* Offers a candidate. Names come from projects, possibly of others, and bash inserts them unquoted: only those that
 * a shell reads as a single plain word are offered. */
static void offer(const char *candidate, const char *typed)
{
    static const char shells_own[] = " \t\r\n'\"\\`$&|;<>()[]{}*?!#~^";

    if (act_starts_with(candidate, typed) && !strpbrk(candidate, shells_own) && *candidate != '=')
        puts(candidate);
}

static void offer_verbs(const char *typed)
{
    for (const struct cli_command *c = cli_next_command(NULL); c; c = cli_next_command(c))
        if (!c->hidden)
            offer(c->name, typed);
}

static void offer_options(const struct cli_command *command, const char *typed)
{
    for (const struct cli_option *o = cli_option_table; o->long_name; o++) {
        if (!o->help || !cli_takes(command, o))
            continue;
        ACT_AUTOFREE char *name = act_sprintf("--%s", o->long_name);
        offer(name, typed);
    }
}

void cli_add_choices(const char *synopsis, struct act_strv *out)
{
    for (const char *p = synopsis + (*synopsis == '['); *p && *p != '[';) {
        size_t n = strcspn(p, " |[]");
        act_strv_take(out, act_strndup(p, n));
        p += n + strspn(p + n, " |");
    }
}

static void offer_all(const struct act_strv *candidates, const char *typed)
{
    for (size_t i = 0; i < candidates->n; i++)
        offer(candidates->v[i], typed);
}

static void offer_choices(const char *synopsis, const char *typed)
{
    ACT_AUTO(act_strv) choices = {0};

    cli_add_choices(synopsis, &choices);
    offer_all(&choices, typed);
}

/* Offers the keys of the cluster file with a single value: "num_gpu:" for -p 'num_gpu: 8'. */
static void offer_keys(const char *typed)
{
    ACT_AUTO(act_strv) keys = {0};

    config_simple_keys(&keys);
    for (size_t i = 0; i < keys.n; i++) {
        ACT_AUTOFREE char *candidate = act_sprintf("%s:", keys.v[i]);
        offer(candidate, typed);
    }
}

static void offer_key(void *arg, const struct config_key_text *key)
{
    const char *const *typed = arg;

    offer(key->path, *typed);
}

static void offer_clusters(const char *typed)
{
    ACT_AUTO(act_strv) names = {0};

    config_clusters(NULL, &names);
    offer_all(&names, typed);
}

/* Tells whether no other run has its name, which otherwise names no run. */
static bool is_only(const struct flow_runs *runs, size_t at)
{
    for (size_t i = 0; i < runs->n; i++)
        if (i != at && act_streq(runs->v[i].row.name, runs->v[at].row.name))
            return false;
    return true;
}

/* Offers ids and names of runs, each with before and after around it. */
static void offer_runs(struct cli *cli, const char *before, const char *after, const char *typed)
{
    struct flow_table table = {.max = 50, .as_known = true}; /* completion must not wait for a cluster */
    ACT_AUTO(flow_runs) runs = {0};
    struct act_error ignored;

    if (flow_list_runs(&cli->flow, &table, &runs, &ignored) < 0)
        return;
    for (size_t i = 0; i < runs.n; i++) {
        ACT_AUTOFREE char *candidate = act_sprintf("%s%s%s", before, runs.v[i].row.id, after);
        offer(candidate, typed);
    }
    for (size_t i = 0; i < runs.n; i++) {
        const char *name = runs.v[i].row.name;
        ACT_AUTOFREE char *candidate = act_sprintf("%s%s%s", before, name ? name : "", after);
        if (name && is_only(&runs, i))
            offer(candidate, typed);
    }
}

/* Offers runs for the last place of "RUN,RUN". */
static void offer_list_of_runs(struct cli *cli, const char *typed)
{
    const char *comma = strrchr(typed, ',');
    ACT_AUTOFREE char *before = act_strndup(typed, comma ? (size_t)(comma + 1 - typed) : 0);

    offer_runs(cli, before, "", typed);
}

static void offer_tags(struct cli *cli, const char *typed)
{
    ACT_AUTO(act_strv) names = {0};
    ACT_AUTO(act_strv) tags = {0};

    flow_known_labels(&cli->flow, &names, &tags);
    offer_all(&tags, typed);
}

/* Returns the numbers in the logs of a run, as far as they were fetched; NULL: there are none. */
static struct numbers *fetched_numbers(struct cli *cli, const char *id)
{
    ACT_AUTO(flow_run) run = {0};
    struct numbers *numbers = NULL;
    struct act_error ignored;
    int rank;

    if (flow_find_known(&cli->flow, id, &run, &ignored) == 0 &&
        flow_read_numbers(NULL, &run, -1, (struct series_range){0}, &numbers, &rank, &ignored) == 0 &&
        numbers_count(numbers) > 0)
        return numbers;
    numbers_free(numbers);
    return NULL;
}

/* Offers the numbers of the newest run that has any. */
static void offer_numbers(struct cli *cli, const char *typed)
{
    struct flow_table table = {.max = 20, .as_known = true};
    ACT_AUTO(flow_runs) runs = {0};
    struct numbers *numbers = NULL;
    struct act_error ignored;

    if (flow_list_runs(&cli->flow, &table, &runs, &ignored) < 0)
        return;
    for (size_t i = 0; i < runs.n && !numbers; i++)
        numbers = fetched_numbers(cli, runs.v[i].row.id);
    for (size_t i = 0; numbers && i < numbers_count(numbers); i++)
        offer(numbers_key(numbers, i)->name, typed);
    numbers_free(numbers);
}

static void offer_sweeps(struct cli *cli, const char *typed)
{
    struct flow_table table = {.max = 1000, .as_known = true};
    ACT_AUTO(flow_runs) runs = {0};
    ACT_AUTO(act_strv) seen = {0};
    struct act_error ignored;

    if (flow_list_runs(&cli->flow, &table, &runs, &ignored) < 0)
        return;
    for (size_t i = 0; i < runs.n; i++) {
        ACT_AUTOFREE char *id = flow_sweep_of(&runs.v[i].row);
        if (!id || act_strv_has(&seen, id))
            continue;
        act_strv_push(&seen, id);
        offer(id, typed);
    }
}

/* Offers the mapped folders of a cluster, each with after behind it. */
static void offer_folders(const char *cluster, const char *after, const char *typed)
{
    struct config_request request = {.cluster = cluster};
    ACT_AUTO(config) config = {0};
    struct act_error ignored;

    if (strchr(typed, '/') || config_load(&request, &config, &ignored) < 0)
        return;
    for (size_t i = 0; i < config.n_folders; i++) {
        ACT_AUTOFREE char *name = act_sprintf("%s%s", config.folders[i].name, after);
        offer(name, typed);
    }
}

/* Offers "RUN:user_logs/", one level of the logs that were fetched. */
static void offer_logs(struct cli *cli, const char *typed)
{
    const char *path = strchr(typed, ':') + 1, *name = strrchr(path, '/');
    size_t len = name ? (size_t)(name + 1 - path) : 0;
    ACT_AUTOFREE char *piece = act_strndup(typed, (size_t)(path - typed) - 1);
    ACT_AUTOFREE char *below = act_strndup(path, len);
    ACT_AUTO(flow_run) run = {0};
    struct act_error ignored;
    struct dirent *entry;

    if (!act_path_is_safe(below, len > 0 ? len - 1 : 0) && len > 0)
        return;
    if (flow_find_unasked(&cli->flow, piece, &run, &ignored) < 0)
        return;
    ACT_AUTOFREE char *assets = flow_assets(&run);
    ACT_AUTOFREE char *folder = act_path_join(assets, below);
    DIR *dir = opendir(folder);
    while (dir && (entry = readdir(dir))) {
        ACT_AUTOFREE char *candidate =
            act_sprintf("%s:%s%s%s", piece, below, entry->d_name, entry->d_type == DT_DIR ? "/" : "");
        if (entry->d_name[0] != '.')
            offer(candidate, typed);
    }
    if (dir)
        closedir(dir);
}

/* Offers mapped folders, and runs only once something was typed: there may be many. */
static void offer_paths(struct cli *cli, const struct cli_command *command, const char *cluster, const char *typed)
{
    offer_folders(cluster, "/", typed);
    if (!*typed || !command->run_options)
        return;
    if (strchr(typed, ':') && command->whole_runs)
        return;
    if (strchr(typed, ':'))
        offer_logs(cli, typed);
    else
        offer_runs(cli, "", ":", typed);
}

/* Returns the option of the verb (NULL: of those before it) that a word is, if its value is in the next word; or
 * NULL. */
static const struct cli_option *option_with_value(const struct cli_command *command, const char *word)
{
    const char *value;
    const struct cli_option *o = word[0] == '-' ? cli_find_option(command, word, &value) : NULL;

    return o && o->argument && !value ? o : NULL;
}

static bool cmd_completion_takes(const struct cli_option *o, const char *argument)
{
    return o && act_streq(o->argument, argument);
}

/* Finds the cluster and the verb among the words before the one to complete. */
static const struct cli_command *find_context(const struct act_strv *words, const char **cluster)
{
    *cluster = NULL;
    for (size_t i = 0; i + 1 < words->n; i++) {
        const struct cli_option *o = option_with_value(NULL, words->v[i]);
        if (o && act_streq(o->long_name, "cluster"))
            *cluster = words->v[i + 1];
        if (o)
            i++;
        else if (words->v[i][0] != '-')
            return cli_find_command(words->v[i]);
    }
    return NULL;
}

/* Tells whether the word to complete comes behind a choice that takes one. */
static bool is_second(const struct act_strv *w, const struct cli_command *command)
{
    return w->n > 2 && act_streq(w->v[w->n - 3], command->name) && cli_names(command->then_behind, w->v[w->n - 2]);
}

static void offer_all_keys(const char *typed)
{
    static const enum config_file files[] = {CONFIG_CLUSTER_FILE, CONFIG_USER_FILE};

    for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++)
        config_each_key(files[i], offer_key, &typed);
}

static void offer_second(enum cli_complete what, const char *typed)
{
    if (what == CLI_CLUSTERS)
        offer_clusters(typed);
    else if (what == CLI_KEYS)
        offer_all_keys(typed);
}

int cmd_complete(struct cli *cli, struct act_error *err)
{
    const struct act_strv *w = &cli->words;
    const char *typed = w->n ? w->v[w->n - 1] : "", *cluster;
    const struct cli_command *command = find_context(w, &cluster);
    const struct cli_option *before = w->n > 1 ? option_with_value(command, w->v[w->n - 2]) : NULL;

    flow_trust_asks(NULL); /* completion must not ask */
    (void)err;
    if (cmd_completion_takes(before, "CLUSTER"))
        offer_clusters(typed);
    else if (before && act_streq(before->long_name, "tag"))
        offer_tags(cli, typed);
    else if (before && act_streq(before->long_name, "metric"))
        offer_numbers(cli, typed);
    else if (cmd_completion_takes(before, "SWEEP"))
        offer_sweeps(cli, typed);
    else if (before && act_streq(before->long_name, "after"))
        offer_list_of_runs(cli, typed);
    else if (cmd_completion_takes(before, "FOLDER")) /* of a run, which mostly has those that are mapped now */
        offer_folders(cluster, "", typed);
    else if (cmd_completion_takes(before, "YAML"))
        offer_keys(typed);
    else if (cmd_completion_takes(before, "FILE"))
        return 0; /* the shell knows files */
    else if (typed[0] == '-')
        offer_options(command, typed);
    else if (!command || command->complete == CLI_VERBS)
        offer_verbs(typed);
    else if (command->complete == CLI_CHOICE && act_streq(w->v[w->n - 2], command->name))
        offer_choices(command->synopsis, typed);
    else if (command->complete == CLI_CHOICE && is_second(w, command))
        offer_second(command->then, typed);
    else if (act_starts_with(command->synopsis, "[KEY ") && act_streq(w->v[w->n - 2], command->name))
        offer_numbers(cli, typed);
    else if (command->complete == CLI_RUNS)
        offer_runs(cli, "", "", typed);
    else if (command->complete == CLI_PATHS)
        offer_paths(cli, command, cluster, typed);
    return 0;
}
