/* start.c - whether Slurm could ever start a run, asked before anything is uploaded for it: in one round trip.
 *
 * What sbatch itself would refuse, "sbatch --test-only" refuses in the same words. But it also refuses what only has to
 * wait for nodes that are down or drained, and takes what waits for ever behind the limits of a partition or a QOS. So
 * partitions, states of nodes and QOS are asked for as well.
 *
 * Source: sbatch(1), scontrol(1), sinfo(1), sacctmgr(1) of Slurm 22.05; what they say was tried on it.
 */
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "platform/slurm/slurm_internal.h"
#include "run/environments.h"

/* The words are those of sbatch. Each part of the output ends with \036. What the controller did not see has no more
 * parts. Of the QOS only those sites are asked that enforce limits, and not for long: their database may be away. */
static const char ask[] =
    "said=$(printf '#!/bin/sh\\n' | LC_ALL=C \"$@\" 2>&1); status=$?\n"
    "[ $status -lt 126 ] || { echo \"$said\" >&2; exit $status; }\n"
    "printf '%s\\036' $status \"$said\" \"$SBATCH_PARTITION\" \"$SBATCH_ACCOUNT\" \"$SBATCH_QOS\"\n"
    "cat " ENVIRONMENTS_DIR "/" ENVIRONMENTS_NO_INDEX " 2>/dev/null; printf '\\036'\n"
    "case $status$said in 0*|*'allocation failure'*) ;; *) exit 0 ;; esac\n"
    "scontrol --all --oneliner show partition 2>/dev/null; printf '\\036'\n"
    "sinfo --all --noheader --format '%R %T' 2>/dev/null; printf '\\036'\n"
    "case $(scontrol show config 2>/dev/null | grep '^AccountingStorageEnforce ') in *limits*|*safe*)\n"
    "  timeout 5 sacctmgr -nP show qos format=name,flags,maxwall,maxtres 2>/dev/null; printf '\\036'\n"
    "  timeout 5 sacctmgr -nP show assoc user=\"$(id -un)\" format=account,defaultqos 2>/dev/null\n"
    "esac; printf '\\036'\n";

enum {
    A_STATUS,
    A_SAID,
    A_PARTITION, /* these three of the environment */
    A_ACCOUNT,
    A_ITS_QOS,
    A_NO_INDEX,
    A_PARTITIONS,
    A_STATES,
    A_QOS,
    A_ACCOUNTS,
    A_COUNT
};
enum { Q_NAME, Q_FLAGS, Q_WALL, Q_MOST, Q_COUNT };

/* The site's answer, and the parts of it that are about this run. */
struct start {
    struct slurm *s;
    const struct run_spec *spec;
    char *part[A_COUNT]; /* "" where there is none */
    char *partition;     /* the name; NULL: not known */
    char *line;          /* what scontrol shows of it; NULL: not known */
    char *qos[Q_COUNT];  /* NULL: no QOS has limits, or not known */
};

/* ---- reading the answer */

static void slurm_start_split(char *text, struct start *t)
{
    for (size_t i = 0; i < A_COUNT; i++) {
        size_t n = strcspn(text, "\036");
        t->part[i] = text;
        text += n + (text[n] != '\0');
        t->part[i][n] = '\0';
    }
}

/* Returns the value that sbatch takes: that of an option, of the key, or of a variable of the environment; NULL: there
 * is none. */
static const char *asked_for(const struct start *t, const char *key, const char *option, const char *letter, int part)
{
    const char *said = slurm_site_option(t->s, option, letter);

    if (said && (t->s->options_are_said || !key))
        return said;
    if (key)
        return key;
    return *t->part[part] ? t->part[part] : NULL;
}

/* Returns the partition that the answer "Job 5 to start at ... in partition short" names, else the one asked for; NULL:
 * the cluster's default. New string. */
static char *partition_asked(const struct start *t)
{
    static const char before[] = " in partition ";
    const char *named = strstr(t->part[A_SAID], before);

    if (named)
        return act_strndup(named + strlen(before), strcspn(named + strlen(before), " \n"));
    return act_strdup(asked_for(t, t->s->config.partition, "--partition", "-p", A_PARTITION));
}

static void slurm_start_find_partition(struct start *t)
{
    ACT_AUTOFREE char *wanted = partition_asked(t);
    ACT_AUTOFREE char *lines = act_strdup(t->part[A_PARTITIONS]);

    for (char *save, *line = strtok_r(lines, "\n", &save); line && !t->line; line = strtok_r(NULL, "\n", &save)) {
        ACT_AUTOFREE char *name = slurm_job_value(line, "PartitionName");
        ACT_AUTOFREE char *is_default = slurm_job_value(line, "Default");
        if (wanted ? !act_streq(name, wanted) : !act_streq(is_default, "YES"))
            continue;
        t->partition = act_strdup(name);
        t->line = act_strdup(line);
    }
}

/* Fields that a bar separates. */
static bool take_row(char **cursor, char **row, size_t n)
{
    char *line = strsep(cursor, "\n");

    for (size_t i = 0; line && i < n; i++)
        row[i] = strsep(&line, "|");
    for (size_t i = 0; i < n; i++)
        if (!row[i])
            return false;
    return true;
}

/* Returns the one named, else the default one of the account. */
static const char *qos_asked(const struct start *t)
{
    const char *qos = asked_for(t, t->s->config.qos, "--qos", "-q", A_ITS_QOS);
    const char *account = asked_for(t, t->s->config.account, "--account", "-A", A_ACCOUNT);
    char *rows = t->part[A_ACCOUNTS], *row[2] = {0};

    if (qos)
        return qos;
    while (rows && *rows) {
        bool whole = take_row(&rows, row, 2);
        if (whole && *row[1] && (!account || act_streq(row[0], account)))
            return row[1];
    }
    return "normal";
}

static void find_qos(struct start *t)
{
    const char *wanted = qos_asked(t);
    char *rows = t->part[A_QOS], *row[Q_COUNT] = {0};

    while (rows && *rows)
        if (take_row(&rows, row, Q_COUNT) && act_streq(row[Q_NAME], wanted))
            memcpy(t->qos, row, sizeof(row));
}

static bool qos_has(const struct start *t, const char *flag)
{
    return t->qos[Q_FLAGS] && strstr(t->qos[Q_FLAGS], flag);
}

/* Tells whether every node that the run could have is in service: what it may not have now, it may never have. */
static bool are_all_in_service(const struct start *t)
{
    static const char *const states[] = {"idle", "alloc", "mix", "comp", "planned", NULL};
    ACT_AUTOFREE char *lines = act_strdup(t->part[A_STATES]);
    size_t seen = 0;

    for (char *save, *line = strtok_r(lines, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
        char *state = strchr(line, ' ');
        size_t known = 0;
        if (!state)
            continue;
        *state++ = '\0';
        if (t->partition && strcmp(line, t->partition) != 0)
            continue;
        while (states[known] && !act_starts_with(state, states[known]))
            known++;
        if (!states[known] || strchr(state, '*')) /* it does not respond */
            return false;
        seen++;
    }
    return seen > 0;
}

/* ---- what it means */

/* The most nodes that a run in the partition can have; 0: not known. */
static int most_nodes(const struct start *t)
{
    static const char *const keys[] = {"TotalNodes", "MaxNodes"};
    int most = 0;

    for (size_t i = 0; t->line && i < sizeof(keys) / sizeof(keys[0]); i++) {
        ACT_AUTOFREE char *value = slurm_job_value(t->line, keys[i]);
        int n = value ? atoi(value) : 0;
        if (n > 0 && (!most || n < most) && !(i && qos_has(t, "PartitionMaxNodes")))
            most = n;
    }
    return most;
}

static int slurm_start_check_nodes(const struct start *t, struct act_error *err)
{
    int most = most_nodes(t), per_node = t->spec->gpus_per_node > 0 ? t->spec->gpus_per_node : 1;

    if (!most || t->spec->nodes <= most)
        return 0;
    return act_error_set(
        err, ACT_NO_CAPACITY,
        "it needs %d nodes, and a run in the partition '%s' can have %d; use at most -n %d, or another "
        "slurm.partition",
        t->spec->nodes, t->partition, most, most * per_node);
}

static int check_time(const struct start *t, struct act_error *err)
{
    bool is_other = t->s->options_are_said && slurm_site_option(t->s, "--time", "-t");
    const char *asked = is_other ? NULL : t->s->config.time;
    ACT_AUTOFREE char *most = t->line ? slurm_job_value(t->line, "MaxTime") : NULL;
    int64_t most_s = slurm_limit(most), asked_s = slurm_limit(asked);

    if (!most_s || asked_s <= most_s || qos_has(t, "PartitionTimeLimit"))
        return 0;
    return act_error_set(err, ACT_NO_CAPACITY,
                         "slurm.time is '%s', and a run in the partition '%s' can have %s; use a shorter time, or "
                         "another slurm.partition",
                         asked, t->partition, most);
}

/* Returns the number of "node=4,gres/gpu=8"; 0: it is not limited. */
static int64_t most_of(const char *limits, const char *what)
{
    size_t n = strlen(what);

    for (const char *at = limits; at; at = strchr(at, ',') ? strchr(at, ',') + 1 : NULL)
        if (strncmp(at, what, n) == 0 && at[n] == '=')
            return strtoll(at + n + 1, NULL, 10);
    return 0;
}

/* An administrator raises these without a change of the cluster: it may wait for that. */
static void warn_of_qos(const struct start *t)
{
    const struct {
        const char *what, *name;
        int64_t asked;
    } counts[] = {{"node", "nodes", t->spec->nodes},
                  {"gres/gpu", "GPUs", slurm_has_gpus(t->s) ? (int64_t)t->spec->nodes * t->spec->gpus_per_node : 0}};

    if (!t->qos[Q_NAME])
        return;
    for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++) {
        int64_t most = most_of(t->qos[Q_MOST], counts[i].what);
        if (most && counts[i].asked > most)
            act_warn("it will wait until somebody changes the QOS '%s', which allows a run %lld %s: it asks for %lld",
                     t->qos[Q_NAME], (long long)most, counts[i].name, (long long)counts[i].asked);
    }
    if (slurm_limit(t->qos[Q_WALL]) && slurm_limit(t->s->config.time) > slurm_limit(t->qos[Q_WALL]))
        act_warn("it will wait until somebody changes the QOS '%s', which allows a run %s: slurm.time is '%s'",
                 t->qos[Q_NAME], t->qos[Q_WALL], t->s->config.time);
}

static void warn_of_state(const struct start *t)
{
    ACT_AUTOFREE char *state = t->line ? slurm_job_value(t->line, "State") : NULL;

    if (state && strcmp(state, "UP") != 0)
        act_warn("the partition '%s' is %s: the run waits until an administrator opens it", t->partition, state);
}

/* Tells whether sbatch complains of the nodes, which is true only of the nodes as they are now. */
static bool is_of_nodes(const char *complaint)
{
    static const char *const parts[] = {"node configuration is not available", "Node count specification invalid",
                                        "More processors requested", "nodes are busy", "Nodes required for job"};

    for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++)
        if (strstr(complaint, parts[i]))
            return true;
    return false;
}

/* The submission itself will find out. */
static int not_known(const struct act_error *why)
{
    act_note("whether Slurm could start it is not known: %s", act_error_text(why));
    return 0;
}

static int judge_refusal(const struct start *t, struct act_error *err)
{
    ACT_AUTOFREE char *complaint = slurm_complaint(t->part[A_SAID]);
    int rc = slurm_refuse("sbatch", complaint, err);

    if (rc == -ACT_TEMPORARY || rc == -ACT_NOT_FOUND || rc == -ACT_FAIL) /* no word of the controller's on the run */
        return not_known(err);
    if (!is_of_nodes(complaint) || are_all_in_service(t))
        return slurm_hint(t->s, t->spec, err);
    act_warn("with the nodes that are in service now it could not start, so it waits for others: %s", complaint);
    return 0;
}

static int slurm_start_judge(struct start *t, struct act_error *err)
{
    slurm_start_find_partition(t);
    find_qos(t);
    int rc = slurm_start_check_nodes(t, err);
    if (rc == 0)
        rc = check_time(t, err);
    if (rc == 0 && strcmp(t->part[A_STATUS], "0") != 0)
        rc = judge_refusal(t, err);
    if (rc == 0) {
        warn_of_qos(t);
        warn_of_state(t);
    }
    free(t->partition);
    free(t->line);
    return rc;
}

/* ---- asking */

/* Asks for the agent at the same time: whoever submits the run needs it next. */
static void slurm_start_ask_for_agent(struct slurm *s)
{
    ACT_AUTOFREE char *path = NULL;
    struct act_error ignored;
    struct site *site;

    if (slurm_site(s, &site, &ignored) < 0 || site_is_bare(site) || !site_ahead(site))
        return;
    (void)!site_agent(site, &path, &ignored); /* it is not known yet */
    site_ahead_end(site);
}

static int slurm_start_ask_and_judge(struct start *t, const struct act_strv *sbatch, struct act_error *err)
{
    ACT_AUTO(act_strv) words = {0};
    ACT_AUTOFREE char *text = NULL;
    struct act_error unknown;

    act_strv_push(&words, "sh");
    act_strv_push(&words, "-c");
    act_strv_push(&words, ask);
    act_strv_push(&words, "sh");
    act_strv_copy(&words, sbatch->v, sbatch->n);
    slurm_start_ask_for_agent(t->s);
    if (slurm_run(t->s, (const char *const *)words.v, &text, &unknown) < 0)
        return not_known(&unknown);
    slurm_start_split(text, t);
    act_str_replace(&t->s->no_index, *t->part[A_NO_INDEX] ? t->part[A_NO_INDEX] : NULL);
    return slurm_start_judge(t, err);
}

/* Neither question nor hint needs the agent there, so that a dry run brings none; what comes next may. */
static int look_only(struct start *t, const struct act_strv *sbatch, struct act_error *err)
{
    struct slurm *s = t->s;
    bool was_open = s->site != NULL;

    s->only_look = !was_open;
    int rc = slurm_start_ask_and_judge(t, sbatch, err);
    s->only_look = false;
    if (!was_open && s->site && site_is_bare(s->site)) {
        site_free(s->site);
        s->site = NULL;
    }
    return rc;
}

int slurm_check_start(struct slurm *s, const struct run_spec *spec, struct act_error *err)
{
    struct start t = {.s = s, .spec = spec};
    ACT_AUTO(act_strv) words = {0};
    ACT_AUTO(act_buf) line = {0};

    slurm_test_words(s, spec, &words);
    for (size_t i = 0; i < words.n; i++)
        act_buf_addf(&line, "%s\n", words.v[i]);
    if (act_streq(line.data, s->could_start)) /* the runs of a sweep are alike */
        return 0;
    int rc = look_only(&t, &words, err);
    if (rc == 0)
        act_str_replace(&s->could_start, line.data);
    return rc;
}
