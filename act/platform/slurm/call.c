/* call.c - running Slurm's programs, and their errors. */
#include <string.h>

#include "platform/slurm/slurm_internal.h"

int slurm_site(struct slurm *s, struct site **out, struct act_error *err)
{
    const struct site_options options = {.login = s->config.login, .root = s->config.root, .only_look = s->only_look};
    int rc = s->site ? 0 : site_open(&options, &s->site, err);

    *out = s->site;
    return rc;
}

/* Parts of messages of Slurm's programs, and the kind of failure of each. The first match is used. */
static const struct {
    const char *part;
    enum act_code code;
    bool unclear; /* it may have been done all the same */
    const char *hint;
} complaints[] = {
    {"Socket timed out", ACT_TEMPORARY, true, NULL},
    {"Zero Bytes were transmitted", ACT_TEMPORARY, true, NULL},
    {"Unexpected message received", ACT_TEMPORARY, true, NULL},
    {"Unable to contact slurm controller", ACT_TEMPORARY, false, "the cluster's controller does not answer; try again"},
    {"standby mode", ACT_TEMPORARY, false, "the cluster's controller does not answer; try again"},
    {"temporarily unable to accept job", ACT_TEMPORARY, false, NULL},
    {"Resource temporarily unavailable", ACT_TEMPORARY, false, NULL},
    {"Communication connection failure", ACT_TEMPORARY, false, NULL},
    {"Connection refused", ACT_TEMPORARY, false, NULL},
    {"Could not establish a configuration source", ACT_NOT_FOUND, false,
     "this machine belongs to no Slurm cluster: run on a login node, or set slurm.login: user@host"},
    {"process configuration file", ACT_CONFIG, false, "see $SLURM_CONF"},
    {"nvalid job id", ACT_NOT_FOUND, false, NULL},
    {"nvalid partition", ACT_CONFIG, false, NULL},
    {"nvalid account", ACT_CONFIG, false, "set slurm.account; 'sacctmgr show assoc user=$USER' lists yours"},
    {"nvalid qos", ACT_CONFIG, false, "set slurm.qos; 'sacctmgr show assoc user=$USER format=account,qos' lists yours"},
    {"nvalid feature", ACT_CONFIG, false, "'sinfo -o \"%N %f\"' lists what slurm.constraint may name"},
    {"nvalid generic resource", ACT_CONFIG, false, "'sinfo -o \"%N %G\"' lists what slurm.gres may name"},
    {"nvalid node name", ACT_CONFIG, false, "see slurm.nodelist and slurm.exclude"},
    {"eservation is invalid", ACT_CONFIG, false, "see slurm.reservation"},
    {"nvalid --", ACT_CONFIG, false, NULL},
    {"nrecognized option", ACT_CONFIG, false, "see slurm.sbatch_options"},
    {"nvalid option", ACT_CONFIG, false, "see slurm.sbatch_options"},
    {"permission denied", ACT_DENIED, false, NULL},
    {"not permitted to use", ACT_DENIED, false, NULL},
    {"node configuration is not available", ACT_NO_CAPACITY, false, NULL},
    {"Node count specification invalid", ACT_NO_CAPACITY, false, NULL},
    {"More processors requested", ACT_NO_CAPACITY, false, NULL},
    {"Memory specification", ACT_NO_CAPACITY, false, NULL},
    {"time limit is invalid", ACT_NO_CAPACITY, false, "the partition does not allow so long a slurm.time"},
    {"violates accounting/QOS policy", ACT_NO_CAPACITY, false,
     "a limit of the account or the QOS: fewer GPUs, fewer runs at once or a shorter slurm.time"},
};

static bool is_unclear(const char *complaint)
{
    for (size_t i = 0; i < sizeof(complaints) / sizeof(complaints[0]); i++)
        if (strstr(complaint, complaints[i].part))
            return complaints[i].unclear;
    return false;
}

/* An unknown failure of a mere query counts as transient. */
int slurm_refuse(const char *program, const char *complaint, struct act_error *err)
{
    bool asks = strcmp(program, "sbatch") != 0 && strcmp(program, "scancel") != 0;

    if (!*complaint)
        return act_error_set(err, asks ? ACT_TEMPORARY : ACT_FAIL, "%s failed and did not say why", program);
    for (size_t i = 0; i < sizeof(complaints) / sizeof(complaints[0]); i++)
        if (strstr(complaint, complaints[i].part)) {
            int rc = act_error_set(err, complaints[i].code, "%s: %s", program, complaint);
            return complaints[i].hint ? act_error_hint(err, "%s", complaints[i].hint) : rc;
        }
    return act_error_set(err, asks ? ACT_TEMPORARY : ACT_FAIL, "%s: %s", program, complaint);
}

int slurm_feed(struct slurm *s, const char *const *argv, const char *input, char **out, bool *out_unclear,
               struct act_error *err)
{
    struct site_command command = {.argv = argv, .input = input, .input_len = input ? strlen(input) : 0};
    ACT_AUTO(site_result) result = {0};
    struct site *site;
    int rc = slurm_site(s, &site, err);

    *out = NULL;
    *out_unclear = false;
    if (rc < 0)
        return rc;
    rc = site_run(site, &command, &result, err);
    if (rc == -ACT_NOT_FOUND)
        rc = s->config.login
                 ? act_error_set(err, ACT_NOT_FOUND,
                                 "%s is not on '%s': slurm.login must be a login node of the cluster", argv[0],
                                 s->config.login)
                 : act_error_set(err, ACT_NOT_FOUND,
                                 "%s is not on this machine: run on a login node, or set slurm.login: user@host",
                                 argv[0]);
    *out_unclear = rc == -ACT_TEMPORARY || rc == -ACT_TIMEOUT;
    if (rc == 0 && result.status != 0) {
        ACT_AUTOFREE char *complaint = slurm_complaint(result.err);
        *out_unclear = !*complaint || is_unclear(complaint);
        rc = slurm_refuse(argv[0], complaint, err);
    }
    if (rc == 0) {
        *out = result.out;
        result.out = NULL;
    }
    return rc;
}

int slurm_run(struct slurm *s, const char *const *argv, char **out, struct act_error *err)
{
    bool unclear;

    return slurm_feed(s, argv, NULL, out, &unclear, err);
}

/* ---- what to do about a refusal */

/* The largest number of GPUs of a node; -1: not known. */
static int most_gpus(struct slurm *s)
{
    const char *const argv[] = {"sinfo", "--noheader", "-o", "%G", NULL};
    ACT_AUTOFREE char *text = NULL;
    struct act_error ignored;
    int most = 0;

    if (slurm_run(s, argv, &text, &ignored) < 0)
        return -1;
    for (char *at = text, *line; (line = strsep(&at, "\n"));)
        most = slurm_gpus(line) > most ? slurm_gpus(line) : most;
    return most;
}

static void hint_gpus(struct slurm *s, const struct run_spec *spec, struct act_error *err)
{
    int most = spec->gpus_per_node > 0 && slurm_has_gpus(s) ? most_gpus(s) : -1;

    if (most == 0)
        act_error_hint(err, "the nodes have no GPUs, and the run asks for %d on each: set slurm.gres to none",
                       spec->gpus_per_node);
    else if (most > 0 && most < spec->gpus_per_node)
        act_error_hint(err, "a node has at most %d GPUs, and the run asks for %d on each: set gpu_per_node to %d", most,
                       spec->gpus_per_node, most);
}

static void hint_partitions(struct slurm *s, const struct run_spec *spec, struct act_error *err)
{
    const char *const argv[] = {"sinfo", "--noheader", "-o", "%R", NULL};
    ACT_AUTOFREE char *text = NULL;
    struct act_error ignored;
    ACT_AUTO(act_strv) names = {0};
    ACT_AUTO(act_buf) list = {0};

    (void)spec;
    if (slurm_run(s, argv, &text, &ignored) < 0)
        return;
    for (char *at = text, *line; (line = strsep(&at, "\n"));)
        if (*line && !act_strv_has(&names, line)) {
            act_buf_addf(&list, "%s%s", names.n ? ", " : "", line);
            act_strv_push(&names, line);
        }
    if (names.n)
        act_error_hint(err, "there are %s; set slurm.partition", list.data);
}

/* Adds what only Slurm knows about its refusal. */
static const struct {
    const char *part;
    void (*add)(struct slurm *s, const struct run_spec *spec, struct act_error *err);
} hints[] = {
    {"nvalid partition", hint_partitions},
    {"node configuration is not available", hint_gpus},
};

int slurm_hint(struct slurm *s, const struct run_spec *spec, struct act_error *err)
{
    for (size_t i = 0; i < sizeof(hints) / sizeof(hints[0]); i++)
        if (strstr(act_error_text(err), hints[i].part))
            hints[i].add(s, spec, err);
    return -(int)err->code;
}
