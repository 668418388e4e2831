/* examine.c - checks that everything runs on a Slurm cluster need is there, for "a doctor". */
#include <string.h>
#include <unistd.h>

#include "platform/slurm/slurm_internal.h"
#include "proc/environment.h"
#include "proc/mounts.h"

/* Returns the first line of a program's output on the site; NULL, with the error, if it failed. New string. */
static char *first_line(struct slurm *s, const char *const *argv, struct act_error *err)
{
    ACT_AUTOFREE char *out = NULL;

    if (slurm_run(s, argv, &out, err) < 0)
        return NULL;
    return act_strndup(out, strcspn(out, "\n"));
}

static bool examine_site(struct slurm *s, struct platform_findings *findings)
{
    static const char what[] = "login node";
    const char *login = s->config.login;
    struct act_error err;
    struct site *site;

    if (slurm_site(s, &site, &err) < 0) {
        platform_findings_add(findings, false, what, "%s", act_error_text(&err));
        return false;
    }
    platform_findings_add(findings, true, what, "%s%s%s", login ? "'" : "", login ? login : "this machine",
                          login ? "' can be reached" : "");
    ACT_AUTOFREE char *sharing = site_sharing_text(site);
    if (sharing)
        platform_findings_add(findings, true, "connection", "%s", sharing);
    return true;
}

/* Variables that the user, or a module of the site, has set for it, and that it does not see. */
static void add_kept_back(struct act_buf *out)
{
    for (char **variable = environ; *variable; variable++)
        if (act_starts_with(*variable, "SBATCH_") && !environment_shows(OF_JOB, *variable))
            act_buf_addf(out, "%s%.*s", out->len ? ", " : "", (int)strcspn(*variable, "="), *variable);
}

static bool examine_sbatch(struct slurm *s, struct platform_findings *findings)
{
    static const char what[] = "sbatch";
    const char *const argv[] = {what, "--version", NULL};
    struct act_error err;
    ACT_AUTOFREE char *version = first_line(s, argv, &err);
    ACT_AUTO(act_buf) kept_back = {0};

    if (!s->config.login) /* else its environment is that of the shell there */
        add_kept_back(&kept_back);
    if (kept_back.len && version)
        platform_findings_add(findings, true, what,
                              "%s; does not see %s: 'slurm.sbatch_options' of the cluster file is the place for such "
                              "options",
                              version, kept_back.data);
    else
        platform_findings_add(findings, version, what, "%s", version ? version : act_error_text(&err));
    return version;
}

/* ---- partitions */

enum { P_NAME, P_UP, P_NODES, P_LIMIT, P_COUNT };

/* The partition for runs: the named one, else Slurm's default, marked with '*'. */
static bool slurm_examine_find_partition(char *text, const char *wanted, char **found, struct act_buf *names)
{
    char *row[P_COUNT];

    while (slurm_next_row(&text, row, P_COUNT)) {
        bool is_default = act_ends_with(row[P_NAME], "*");
        row[P_NAME][strcspn(row[P_NAME], "*")] = '\0';
        if (wanted ? strcmp(wanted, row[P_NAME]) == 0 : is_default) {
            memcpy(found, row, sizeof(row));
            return true;
        }
        act_buf_addf(names, "%s%s", names->len ? ", " : "", row[P_NAME]);
    }
    return false;
}

static void examine_partition(struct slurm *s, char *text, struct platform_findings *findings)
{
    static const char what[] = "partition";
    const char *wanted = s->config.partition;
    ACT_AUTO(act_buf) names = {0};
    char *found[P_COUNT];

    if (!slurm_examine_find_partition(text, wanted, found, &names))
        platform_findings_add(findings, false, what, "%s%s%s; set slurm.partition to one of: %s",
                              wanted ? "there is none called '" : "none is the cluster's default", wanted ? wanted : "",
                              wanted ? "'" : "", names.data ? names.data : "none");
    else if (strcmp(found[P_UP], "up") != 0)
        platform_findings_add(findings, false, what, "'%s' is %s: runs wait until an administrator opens it",
                              found[P_NAME], found[P_UP]);
    else
        platform_findings_add(findings, true, what, "'%s'%s, %s node%s, time limit %s", found[P_NAME],
                              wanted ? "" : " (the cluster's default)", found[P_NODES],
                              strcmp(found[P_NODES], "1") == 0 ? "" : "s", found[P_LIMIT]);
}

static void examine_controller(struct slurm *s, struct platform_findings *findings)
{
    static const char what[] = "controller";
    const char *const argv[] = {"sinfo", "--noheader", "-o",
                                "%P" SLURM_SEPARATOR "%a" SLURM_SEPARATOR "%D" SLURM_SEPARATOR "%l", NULL};
    ACT_AUTOFREE char *text = NULL;
    struct act_error err;

    if (slurm_run(s, argv, &text, &err) < 0) {
        platform_findings_add(findings, false, what, "%s", act_error_text(&err));
        return;
    }
    platform_findings_add(findings, true, what, "answers");
    examine_partition(s, text, findings);
}

/* ---- the shared folder, and the programs started there */

/* Prints the free space of the folder, or if it does not exist yet, of the one in which it will be made. */
static const char is_writable[] = "d=$0; while [ ! -e \"$d\" ]; do d=$(dirname -- \"$d\"); done\n"
                                  "[ -d \"$d\" ] && [ -w \"$d\" ] && [ -x \"$d\" ] || exit 1\n"
                                  "df -Ph -- \"$d\" | awk 'NR == 2 {print $4}'";

static void examine_root(struct slurm *s, struct platform_findings *findings)
{
    static const char what[] = "slurm.root";
    const char *root = site_root(s->site), *const argv[] = {"sh", "-c", is_writable, root, NULL};
    struct site_command command = {.argv = argv, .cwd = "/"};
    ACT_AUTO(site_result) result = {0};
    struct act_error err;

    if (site_run(s->site, &command, &result, &err) < 0)
        platform_findings_add(findings, false, what, "%s", act_error_text(&err));
    else if (result.status != 0)
        platform_findings_add(findings, false, what,
                              "'%s' cannot be written; name a folder of yours that all nodes share", root);
    else
        platform_findings_add(findings, true, what, "'%s', %.*s free; all nodes must see it", root,
                              (int)strcspn(result.out, "\n"), result.out);
}

static void slurm_examine_agent(struct slurm *s, struct platform_findings *findings)
{
    static const char what[] = "agent";
    ACT_AUTOFREE char *path = NULL;
    struct act_error err;
    bool there;

    if (site_find_agent(s->site, &path, &there, &err) < 0)
        platform_findings_add(findings, false, what, "%s", act_error_text(&err));
    else
        platform_findings_add(findings, true, what, there ? "'%s'" : "copied to '%s' at the first submit", path);
}

static void examine_launcher(struct slurm *s, struct platform_findings *findings)
{
    const char *launcher = act_streq(s->config.launcher, "srun") ? "srun" : "mpirun";
    const char *const argv[] = {launcher, "--version", NULL};
    struct site_command command = {.argv = argv};
    ACT_AUTO(site_result) result = {0};
    struct act_error err;
    int rc = site_run(s->site, &command, &result, &err);

    if (rc == -ACT_NOT_FOUND)
        platform_findings_add(findings, false, launcher,
                              "not found: load the module that has it, or set slurm.launcher to %s; runs of "
                              "one process do without",
                              strcmp(launcher, "srun") == 0 ? "mpirun" : "srun");
    else if (rc < 0)
        platform_findings_add(findings, false, launcher, "%s", act_error_text(&err));
    else if (result.status != 0)
        platform_findings_add(findings, false, launcher, "'%s --version' fails", launcher);
    else
        platform_findings_add(findings, true, launcher, "%.*s", (int)strcspn(result.out, "\n"), result.out);
}

/* srun loads its plugin for MPI before it looks for nodes; with --test-only it stops there. */
static void examine_mpi(struct slurm *s, struct platform_findings *findings)
{
    static const char what[] = "slurm.mpi", before[] = "srun: error:";
    const char *mpi = s->config.mpi;
    ACT_AUTOFREE char *option = act_sprintf("--mpi=%s", mpi ? mpi : "none");
    const char *const argv[] = {"srun", option, "--test-only", "--ntasks=1", "true", NULL};
    struct site_command command = {.argv = argv};
    ACT_AUTO(site_result) result = {0};
    struct act_error err;

    if (!mpi || !act_streq(s->config.launcher, "srun") || site_run(s->site, &command, &result, &err) < 0)
        return;
    bool refused = result.status != 0 && result.err && strstr(result.err, "MPI type");
    const char *said = refused && act_starts_with(result.err, before) ? result.err + sizeof(before) - 1 : result.err;
    if (refused)
        platform_findings_add(findings, false, what,
                              "srun cannot load '%s':%.*s; set it to pmi2 or none, if 'srun --mpi=list' has them, or "
                              "slurm.launcher to mpirun",
                              mpi, (int)strcspn(said, "\n"), said);
    else
        platform_findings_add(findings, true, what, "srun has '%s'; the nodes need it too", mpi);
}

void slurm_examine(struct platform *p, struct platform_findings *findings)
{
    struct slurm *s = slurm_of(p);

    s->only_look = true;
    if (!examine_site(s, findings))
        return;
    if (examine_sbatch(s, findings))
        examine_controller(s, findings);
    examine_root(s, findings);
    slurm_examine_agent(s, findings);
    examine_launcher(s, findings);
    examine_mpi(s, findings);
}

/* The login node has what the nodes have, as a rule. */
void slurm_examine_setup(struct platform *p, const struct platform_trial *trial, struct platform_findings *findings)
{
    struct slurm *s = slurm_of(p);
    ACT_AUTOFREE char *said = NULL;
    struct act_error ignored;
    struct site *site;

    if (s->config.container)
        platform_findings_add(findings, true, "setup", "not tried: it is made in the image of the run");
    else if (slurm_site(s, &site, &ignored) == 0) { /* else the login node is a finding */
        bool works = platform_try_setup(site, trial, &said);
        platform_judge_setup("on the login node", works, said, trial, findings);
    }
}

/* ---- on a node */

/* Prints which of the names are programs there, and whether FUSE may be used. */
static const char has_programs[] = "for p in \"$@\"; do command -v \"$p\" >/dev/null && echo \"$p\"; done\n"
                                   "[ -w /dev/fuse ] && echo /dev/fuse; true";

static void judge_mounts(const char *text, const char *wanted, struct platform_findings *findings)
{
    static const char what[] = "mounts";
    const char *tool = NULL;

    for (int i = MOUNTS_TOOLS - 1; i >= 0; i--) {
        const char *name = mounts_tool_name((enum mounts_tool)i);
        if ((!wanted || strcmp(wanted, name) == 0) && platform_has_line(text, name))
            tool = name;
    }
    if (!tool)
        platform_findings_add(findings, false, what, "a node has no '%s'",
                              wanted ? wanted : "blobfuse2' and no 'rclone");
    else if (!platform_has_line(text, "fusermount3") || !platform_has_line(text, "/dev/fuse"))
        platform_findings_add(findings, false, what, "a node has '%s', but %s", tool,
                              platform_has_line(text, "fusermount3") ? "its '/dev/fuse' cannot be used"
                                                                     : "no 'fusermount3'");
    else
        platform_findings_add(findings, true, what, "by '%s' on a node", tool);
}

/* Runs a command as a job of a moment; where all nodes are taken, a run will say at once what it would have. *out: what
 * it printed, a new string. */
static int ask_node(struct slurm *s, const struct act_strv *command, char **out, struct act_error *err)
{
    ACT_AUTO(act_strv) words = {0};

    ACT_STRV_PUSH(&words, "srun", "--immediate=10", "--ntasks=1", "--time=1");
    slurm_push_places(s, NULL, &words);
    for (size_t i = 0; i < command->n; i++)
        act_strv_push(&words, command->v[i]);
    return slurm_run(s, (const char *const *)words.v, out, err);
}

void slurm_examine_mounts(struct platform *p, const char *wanted, struct platform_findings *findings)
{
    ACT_AUTO(act_strv) words = {0};
    ACT_AUTOFREE char *text = NULL;
    struct act_error err;

    ACT_STRV_PUSH(&words, "sh", "-c", has_programs, "act", "blobfuse2", "rclone", "fusermount3");
    if (ask_node(slurm_of(p), &words, &text, &err) < 0)
        platform_findings_add(findings, true, "mounts", "not looked for, as no node was free at once");
    else
        judge_mounts(text, wanted, findings);
}

/* The login node has what the nodes have, as a rule; what it has not, a node may have. */
void slurm_examine_place(struct platform *p, const char *name, const char *path, struct platform_findings *findings)
{
    struct slurm *s = slurm_of(p);
    ACT_AUTOFREE char *what = act_sprintf("folder '%s'", name);
    ACT_AUTOFREE char *text = NULL;
    ACT_AUTO(act_strv) words = {0};
    struct act_error err;
    struct site *site;

    if (slurm_site(s, &site, &err) < 0) /* the login node is a finding */
        return;
    ACT_AUTOFREE char *said = platform_look_at_place(site, path);
    platform_place_words(path, &words);
    if (platform_has_line(said, PLATFORM_PLACE_SEEN))
        platform_judge_place(s->config.login ? "on the login node" : "on this machine", name, path, said, findings);
    else if (ask_node(s, &words, &text, &err) == 0)
        platform_judge_place("on a node", name, path, text, findings);
    else
        platform_findings_add(findings, true, what,
                              "'%s' is not on the login node, and no node was free at once to look", path);
}
