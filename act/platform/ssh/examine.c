/* examine.c - what a machine has, for "a doctor": asked by a shell, so that nothing is brought there. */
#include <string.h>

#include "base/units.h"
#include "platform/ssh/ssh_internal.h"

/* Prints a line for each fact: its name, a blank, what it is. $1: the root. Does not wait for a driver that hangs. */
static const char LOOK[] =
    "limit=; command -v timeout >/dev/null 2>&1 && limit='timeout 10'\n"
    "echo \"processors $(nproc 2>/dev/null || grep -c ^processor /proc/cpuinfo)\"\n"
    "sed -n 's/^MemTotal: *\\([0-9]*\\) kB/memory \\1/p' /proc/meminfo\n"
    "$limit nvidia-smi --query-gpu=name,memory.total --format=csv,noheader 2>/dev/null | sed 's/^/gpu /'\n"
    "ls /dev/nvidia[0-9]* 2>/dev/null | sed 's/^/device /'\n"
    "mpirun=$(command -v mpirun) && echo \"mpirun $($limit mpirun --version 2>/dev/null | head -n 1), '$mpirun'\"\n"
    "python=$(command -v python3) && echo \"python $($limit python3 --version 2>&1 | head -n 1), '$python'\"\n"
    "d=$1; while [ ! -d \"$d\" ] && [ \"$d\" != / ]; do d=$(dirname \"$d\"); done\n"
    "[ -w \"$d\" ] || echo \"readonly $d\"\n"
    "echo \"free $(df -Pk \"$d\" | awk 'NR == 2 {print $4}')\"\n";

struct examined {
    char *text;           /* what LOOK printed */
    struct act_strv gpus; /* "NVIDIA A100-SXM4-80GB, 81920 MiB" of each */
    size_t n_devices;
    const char *processors, *memory, *mpirun, *python, *readonly, *free_kib; /* in text */
};

static void examined_release(struct examined *l)
{
    act_strv_release(&l->gpus);
    free(l->text);
}

static void examined_read(struct examined *l)
{
    const struct {
        const char *name;
        const char **value;
    } rows[] = {{"processors ", &l->processors}, {"memory ", &l->memory},     {"mpirun ", &l->mpirun},
                {"python ", &l->python},         {"readonly ", &l->readonly}, {"free ", &l->free_kib}};
    char *rest = l->text;

    for (char *line; (line = strsep(&rest, "\n"));) {
        for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
            if (act_starts_with(line, rows[i].name))
                *rows[i].value = line + strlen(rows[i].name);
        if (act_starts_with(line, "gpu "))
            act_strv_push(&l->gpus, line + strlen("gpu "));
        l->n_devices += act_starts_with(line, "device ");
    }
}

static int ask_what_is_there(struct hosts *s, struct hosts_host *h, void *arg, struct act_error *err)
{
    struct examined *l = &((struct examined *)arg)[h - s->v];
    const char *const argv[] = {"sh", "-c", LOOK, "sh", site_root(h->site), NULL};
    ACT_AUTO(site_result) result = {0};
    int rc = site_run(h->site, &(struct site_command){.argv = argv, .cwd = "/"}, &result, err);

    if (rc == 0) {
        l->text = act_strndup(result.out ? result.out : "", result.out_len);
        examined_read(l);
    }
    return rc;
}

/* Adds "8 GPUs (NVIDIA A100-SXM4-80GB, 81920 MiB)". */
static void add_gpus(const struct examined *l, struct act_buf *text)
{
    size_t n = l->gpus.n ? l->gpus.n : l->n_devices;

    act_buf_addf(text, n ? "%zu GPU%s" : "no GPUs", n, n == 1 ? "" : "s");
    for (size_t i = 0; i < l->gpus.n; i++)
        if (i == 0 || !act_streq(l->gpus.v[i], l->gpus.v[i - 1]))
            act_buf_addf(text, "%s%s", i ? "; " : " (", l->gpus.v[i]);
    act_buf_adds(text, l->gpus.n ? ")" : "");
}

static void add_kib(const char *kib, const char *what, struct act_buf *text)
{
    enum { KIB = 1024 };
    char size[ACT_UNIT_TEXT];
    int64_t n;

    if (!kib || !act_int_from_text(kib, &n) || n < 0)
        return;
    act_size_to_text((uint64_t)n * KIB, size);
    act_buf_addf(text, ", %s %s", size, what);
}

static void examine_one(const struct hosts_host *h, const struct examined *l, struct platform_findings *findings)
{
    ACT_AUTO(act_buf) text = {0};

    add_gpus(l, &text);
    act_buf_addf(&text, ", %s processors", l->processors ? l->processors : "?");
    add_kib(l->memory, "memory", &text);
    add_kib(l->free_kib, "free on its disk", &text);
    platform_findings_add(findings, true, h->login, "%s", text.data);
    ACT_AUTOFREE char *sharing = site_sharing_text(h->site);
    platform_findings_add(findings, true, h->login, "connection: %s", sharing);
    if (l->readonly)
        platform_findings_add(findings, false, h->login,
                              "'%s' cannot be written: 'ssh.root' names another place for the runs", l->readonly);
    if (l->mpirun)
        platform_findings_add(findings, true, h->login, "%s", l->mpirun);
    else
        platform_findings_add(findings, false, h->login,
                              "mpirun is not there, so runs have one process at most; install Open MPI (Debian: "
                              "openmpi-bin)");
    if (l->python)
        platform_findings_add(findings, true, h->login, "%s", l->python);
}

void hosts_examine(struct platform *p, struct platform_findings *findings)
{
    struct hosts *s = hosts_of(p);
    struct examined *all = act_calloc(s->n, sizeof(*all));

    s->only_look = true;
    hosts_each(s, ask_what_is_there, all);
    for (size_t i = 0; i < s->n; i++) {
        const struct hosts_host *h = &s->v[i];
        if (h->rc < 0)
            platform_findings_add(findings, false, h->login, "%s", act_error_text(&h->err));
        else
            examine_one(h, &all[i], findings);
        examined_release(&all[i]);
    }
    free(all);
}

/* ---- folders that the machines have already */

struct hosts_place {
    const char *path;
    char *said;
};

static int ask_for_place(struct hosts *s, struct hosts_host *h, void *arg, struct act_error *err)
{
    struct hosts_place *place = &((struct hosts_place *)arg)[h - s->v];

    (void)err;
    place->said = platform_look_at_place(h->site, place->path);
    return 0;
}

void hosts_examine_place(struct platform *p, const char *name, const char *path, struct platform_findings *findings)
{
    struct hosts *s = hosts_of(p);
    struct hosts_place *all = act_calloc(s->n, sizeof(*all));

    for (size_t i = 0; i < s->n; i++)
        all[i].path = path;
    hosts_each(s, ask_for_place, all);
    for (size_t i = 0; i < s->n; i++) {
        ACT_AUTOFREE char *where = act_sprintf("on '%s'", s->v[i].login);
        if (all[i].said) /* else it is a finding that it cannot be reached */
            platform_judge_place(where, name, path, all[i].said, findings);
        free(all[i].said);
    }
    free(all);
}

/* ---- what is set up before the command */

struct hosts_trial {
    const struct platform_trial *trial;
    bool works;
    char *said;
};

static int try_setup(struct hosts *s, struct hosts_host *h, void *arg, struct act_error *err)
{
    struct hosts_trial *t = &((struct hosts_trial *)arg)[h - s->v];

    (void)err;
    t->works = platform_try_setup(h->site, t->trial, &t->said);
    return 0;
}

void hosts_examine_setup(struct platform *p, const struct platform_trial *trial, struct platform_findings *findings)
{
    struct hosts *s = hosts_of(p);
    struct hosts_trial *all = act_calloc(s->n, sizeof(*all));

    for (size_t i = 0; i < s->n; i++)
        all[i].trial = trial;
    hosts_each(s, try_setup, all);
    for (size_t i = 0; i < s->n; i++) {
        ACT_AUTOFREE char *where = act_sprintf("on '%s'", s->v[i].login);
        if (s->v[i].rc == 0) /* else it is a finding that it cannot be reached */
            platform_judge_setup(where, all[i].works, all[i].said, trial, findings);
        free(all[i].said);
    }
    free(all);
}
