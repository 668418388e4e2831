/* table.c - which verbs there are, and the names that other tools give them. */
#include <string.h>

#include "cli/command/tables.h"

const struct cli_command *cli_next_command(const struct cli_command *c)
{
    if (!c)
        return cli_code_commands;
    c++;
    return c->name ? c : c->next_table;
}

static bool is_alias(const char *aliases, const char *name)
{
    size_t len = strlen(name);

    for (const char *s = aliases; s && *s;) {
        size_t n = strcspn(s, ",");
        if (n == len && strncmp(s, name, n) == 0)
            return true;
        s += n;
        s += strspn(s, ", ");
    }
    return false;
}

const struct cli_command *cli_find_command(const char *name)
{
    for (const struct cli_command *c = cli_next_command(NULL); c; c = cli_next_command(c))
        if (strcmp(c->name, name) == 0 || is_alias(c->aliases, name))
            return c;
    return NULL;
}

/* The names of verbs in other tools. */
static const struct {
    const char *names, *advice;
} synonyms[] = {
    {"run exec start sbatch srun launch",
     "'a submit COMMAND' runs a command on the cluster, 'a local COMMAND' on this machine"},
    {"salloc interactive", "'a shell' opens a shell on a node of the cluster"},
    {"ps status list jobs squeue show", "'a q' is the table of runs, 'a q RUN' one of them"},
    {"cancel stop kill scancel end", "'a abort RUN' cancels a run"},
    {"cp copy sync rsync mv", "'a u PATH' copies to the store, 'a d PATH' from it"},
    {"push put send", "'a u PATH' copies to the store"},
    {"pull get fetch", "'a d PATH' copies from the store, 'a q RUN' fetches the logs of a run"},
    {"tail log follow watch", "'a logs -f RUN' follows a run, 'a logs --tail 20 RUN' is the end of its log"},
    {"rerun retry restart", "'a resubmit RUN' runs it again"},
    {"remove delete del", "'a rm PATH' removes from the store, 'a rm RUN:' a run"},
    {"outputs artifacts", "'a files RUN' lists what a run has written"},
    {"sinfo", "'a summary' tells what the cluster is doing"},
    {"htop monitor dashboard", "'a top' shows all runs and clusters, live"},
    {"gc clean cleanup", "'a prune --older 30d' removes what ACT keeps of old runs"},
    {"dashboard web gui serve browse", "'a ui' shows the runs in the browser"},
    {"search", "'a grep RE' searches the logs of runs"},
    {"compare", "'a diff RUN RUN' compares two runs"},
    {"clusters", "'a cluster list' lists your clusters, or the managed clusters of a workspace"},
    {"pack build package", "'a init' packs the code"},
    {"whoami", "'a login' tells who you are to Azure"},
    {"version", "'a --version' shows it"},
};

void cli_add_synonyms(struct act_strv *out)
{
    for (size_t i = 0; i < sizeof(synonyms) / sizeof(synonyms[0]); i++)
        for (const char *s = synonyms[i].names; *s; s += strspn(s, " ")) {
            size_t len = strcspn(s, " ");
            act_strv_take(out, act_strndup(s, len));
            s += len;
        }
}

const char *cli_synonym(const char *name)
{
    for (size_t i = 0; i < sizeof(synonyms) / sizeof(synonyms[0]); i++)
        if (cli_names(synonyms[i].names, name))
            return synonyms[i].advice;
    return NULL;
}
