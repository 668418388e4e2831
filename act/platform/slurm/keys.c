/* keys.c - the keys of the part 'slurm'. */
#include "platform/slurm/keys.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "site/site.h"

enum { DAY_S = 24 * 3600 };

#define AT(member) offsetof(struct slurm_keys, member)

// clang-format off
static const struct config_key keys[] = {
    {"slurm", CONFIG_MAP, CONFIG_NOWHERE, .help = "how runs are handed to Slurm"},
    {"slurm.login", CONFIG_TEXT, AT(login),
     .help = "user@host of a login node, reached with ssh; by default this machine is one"},
    {"slurm.root", CONFIG_TEXT, AT(root),
     .help = "a folder on the shared file system for the runs; by default ~/.act on the cluster"},
    {"slurm.partition", CONFIG_TEXT, AT(partition),
     .help = "the partition; by default compute_target, else the cluster's own default"},
    {"slurm.account", CONFIG_TEXT, AT(account), .help = "the account that is charged"},
    {"slurm.qos", CONFIG_TEXT, AT(qos), .help = "the quality of service"},
    {"slurm.time", CONFIG_TEXT, AT(time),
     .help = "the time limit, as sbatch takes it: 90 (minutes), 12:00:00, 3-00:00:00"},
    {"slurm.constraint", CONFIG_TEXT, AT(constraint), .help = "features the nodes must have"},
    {"slurm.gres", CONFIG_TEXT, AT(gres),
     .help = "how GPUs are asked for: gpu or gpu:TYPE for --gres, none for nodes without; by default "
             "--gpus-per-node"},
    {"slurm.reservation", CONFIG_TEXT, AT(reservation), .help = "the reservation"},
    {"slurm.exclude", CONFIG_TEXT, AT(exclude), .help = "nodes not to use: n1,n[5-8]"},
    {"slurm.nodelist", CONFIG_TEXT, AT(nodelist), .help = "nodes to use: n1,n[5-8]"},
    {"slurm.sbatch_options", CONFIG_TEXTS, AT(sbatch_options),
     .help = "further options of sbatch, passed as they are"},
    {"slurm.launcher", CONFIG_CHOICE, AT(launcher), "mpirun", .choices = "mpirun|srun",
     .help = "what starts the processes on the nodes"},
    {"slurm.mpi", CONFIG_CHOICE, AT(mpi), .choices = "pmix|pmi2|none",
     .help = "with launcher srun: its --mpi; by default as the cluster has it"},
    {"slurm.container", CONFIG_CHOICE, AT(container), .choices = "apptainer|pyxis|none",
     .help = "what runs docker.image; none: the image is not used"},
    {"slurm.scratch", CONFIG_TEXT, AT(scratch),
     .help = "a folder on each node's own disk, where the code is unpacked; by default it is in the run's folder"},
    {"slurm.warn_seconds", CONFIG_INT, AT(warn_seconds), "120", .min = 0,
     .help = "how long before the time limit processes that catch SIGUSR1 get it; 0: never"},
    {"slurm.here", CONFIG_BOOL, AT(here), "false",
     .help = "true: a run is a step of the job in which you submit it, and nothing is queued ('a submit --here')"},
    {0},
};
// clang-format on

/* Tells whether a text is a time of sbatch(1): "90", "12:00:00", "3-00:00:00", "unlimited". */
static bool slurm_keys_is_time(const char *text)
{
    static const char digits[] = "0123456789";
    enum { MAX_COLONS = 2 };
    size_t n = strspn(text, digits);

    if (strcasecmp(text, "unlimited") == 0 || strcasecmp(text, "infinite") == 0)
        return true;
    if (n > 0 && text[n] == '-') {
        text += n + 1;
        n = strspn(text, digits);
    }
    for (int colons = 0; n > 0 && text[n] == ':' && colons < MAX_COLONS; colons++) {
        text += n + 1;
        n = strspn(text, digits);
    }
    return n > 0 && text[n] == '\0';
}

/* Reads a number of a time limit. One that no time can have counts as the most, so that sums do not overflow. */
static int64_t part_of_time(const char *text, char **end)
{
    static const int64_t most = 1000000000;
    int64_t n = strtoll(text, end, 10);

    return n < 0 ? 0 : n < most ? n : most;
}

int64_t slurm_time_limit_s(const struct config *config)
{
    const char *text = slurm_keys(config)->time;
    int64_t parts[3] = {0}, days = 0;
    int n = 0;

    if (!text || *text < '0' || *text > '9')
        return 0;
    const char *dash = strchr(text, '-');
    if (dash) {
        days = part_of_time(text, NULL);
        text = dash + 1;
    }
    for (char *end; n < 3 && *text; text = *end ? end + 1 : end)
        parts[n++] = part_of_time(text, &end);
    if (dash) /* hours, hours:minutes, hours:minutes:seconds */
        return days * DAY_S + parts[0] * 3600 + parts[1] * 60 + parts[2];
    /* minutes, minutes:seconds, hours:minutes:seconds */
    return n == 3 ? parts[0] * 3600 + parts[1] * 60 + parts[2] : parts[0] * 60 + parts[1];
}

static void slurm_keys_check(struct config *config, struct config_findings *f)
{
    const char *time = slurm_keys(config)->time, *login = slurm_keys(config)->login;
    struct act_error err;

    if (login && site_check_login(login, &err) < 0)
        config_problem(f, config_value(config, "slurm.login"), "'slurm.login': %s", act_error_text(&err));
    if (time && !slurm_keys_is_time(time))
        config_problem(f, config_value(config, "slurm.time"),
                       "'slurm.time' must be a time as sbatch takes it (90 for minutes, 12:00:00, 3-00:00:00), "
                       "not '%s'",
                       time);
}

const struct config_part slurm_keys_part = {"slurm", keys, sizeof(struct slurm_keys), slurm_keys_check};

const struct config_kind slurm_kind = {
    .name = "slurm",
    .parts = (const struct config_part *const[]){&slurm_keys_part, NULL},
    .has_store = true,
    .runs_see_store = true,
    .root_key = "slurm.root",
    .root_fallback = "~/.act",
    .login_key = "slurm.login",
    .has_places = true,
    .has_mount = true,
};
