/* verbs.c - commands whose first word is a verb of their own ('a cluster list'), and changes that a service makes for a
 * while. */
#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "cli/clusters/options.h"
#include "cli/command/signal.h"
#include "cli/command/verbs.h"
#include "platform/clusters.h"

/* Returns "--json --dry-run". New string. */
static char *list_taken(const struct cli_verb *verb)
{
    ACT_AUTOFREE char *names = act_strdup(verb->options);
    struct act_buf out = {0};

    for (char *at = names, *name; (name = strsep(&at, " "));)
        if (*name && strcmp(name, "cluster") != 0 && strcmp(name, "param") != 0)
            act_buf_addf(&out, "%s--%s", out.len ? " " : "", name);
    return act_buf_steal(&out);
}

int cli_check_verb(const struct cli *cli, const struct cli_verb *verb, const char *which, struct act_error *err)
{
    const struct cli_option *o = cli_given_beyond(cli, verb->options);
    const char *command = cli->command->name, *name = cli->words.n > 1 ? cli->words.v[1] : NULL;

    if (verb->takes_no_name && name)
        return act_error_set(err, ACT_USAGE, "'a %s %s' takes no name, not '%s'", command, verb->name, name);
    if (verb->needs_name && !name && which) {
        act_error_set(err, ACT_USAGE, "which %s? 'a %s %s NAME'%s", which, command, verb->name,
                      verb->own ? "; 'a cluster list --own' lists yours" : "");
        return cli_hint_help(cli, err);
    }
    if (!o)
        return 0;
    ACT_AUTOFREE char *taken = list_taken(verb);
    return act_error_set(err, ACT_USAGE, "'a %s %s' takes no --%s; it takes %s", command, verb->name, o->long_name,
                         *taken ? taken : "none");
}

/* Returns the verb of a table that means the same as a word; NULL: there is none. */
static const char *verbs_meant(const char *word, const char *const *names)
{
    static const char *const alike[] = {"rm remove delete del", "list ls",           "add create new",
                                        "show info describe",   "use switch select", "edit change"};

    for (size_t i = 0; i < sizeof(alike) / sizeof(alike[0]); i++)
        for (; cli_names(alike[i], word) && *names; names++)
            if (cli_names(alike[i], *names))
                return *names;
    return NULL;
}

const struct cli_verb *cli_find_verb(const struct cli *cli, const struct cli_verb *table, struct act_error *err)
{
    enum { MOST = 16 };
    const char *names[MOST + 1] = {0}, *given = cli->words.v[0], *command = cli->command->name;

    for (size_t i = 0; i < MOST && table[i].name; i++) {
        names[i] = table[i].name;
        if (strcmp(given, names[i]) == 0)
            return &table[i];
    }
    const char *meant = verbs_meant(given, names), *near = meant ? meant : act_nearest(given, names);
    act_error_set(err, ACT_USAGE, "'a %s' cannot '%s'; %s%s%s'a %s --help' has examples", command, given,
                  near ? "did you mean '" : "", near ? near : "", near ? "'? " : "", command);
    return NULL;
}

/* The service's own message about a wrong id does not name the option. */
int cli_check_id(const char *option, const char *id, const char *kind, struct act_error *err)
{
    if (!id || (act_starts_with(id, "/subscriptions/") && strcasestr(id, kind)))
        return 0;
    return act_error_set(err, ACT_USAGE, "%s '%s' must be a resource id: /subscriptions/.../%s/NAME", option, id, kind);
}

static void show_operation(void *arg, const char *status, int percent)
{
    struct cli_told *told = arg;
    char line[sizeof(told->last)];

    if (percent >= 0)
        snprintf(line, sizeof(line), "%.64s, %d %%", status, percent);
    else
        snprintf(line, sizeof(line), "%.64s", status);
    if (strcmp(line, told->last) == 0)
        return;
    if (!*told->last)
        cli_end_with(told->goes_on);
    memcpy(told->last, line, sizeof(line));
    act_note("%s '%s': %s", told->noun, told->name, line);
}

struct platform_follow cli_follow(const struct cli *cli, struct cli_told *told)
{

    return (struct platform_follow){.no_wait = CLI_OPTIONS(cli, managed)->no_wait,
                                    .dry_run = cli->options.dry_run,
                                    .progress = show_operation,
                                    .arg = told};
}
