/* here.c - this machine: its root, the runs in it, programs. */
#include <dirent.h>
#include <errno.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/file.h"
#include "base/path.h"
#include "proc/proc.h"
#include "site/site_internal.h"

char *here_root(const char *root)
{
    const char *home = getenv("HOME"); /* a static program cannot ask the system's list of users */
    ACT_AUTOFREE char *cwd = *root == '/' || *root == '~' ? NULL : getcwd(NULL, 0);
    ACT_AUTOFREE char *joined = NULL;

    if (*root == '~' && (root[1] == '/' || root[1] == '\0'))
        joined = act_path_join(home ? home : "/", root + 1 + (root[1] == '/'));
    else
        joined = act_path_join(cwd ? cwd : "", root);
    return act_path_clean(joined);
}

int here_list(struct site *site, struct act_strv *out_ids, struct act_error *err)
{
    ACT_AUTOFREE char *runs = act_path_join(site->root, "runs");
    DIR *d = opendir(runs);

    if (!d)
        return errno == ENOENT ? 0 : act_error_errno(err, errno, "cannot read '%s'", runs);
    for (struct dirent *e; (e = readdir(d));)
        if (run_id_valid(e->d_name))
            act_strv_push(out_ids, e->d_name);
    closedir(d);
    act_strv_sort(out_ids);
    return 0;
}

/* ---- programs ---- */

/* Returns the root, or what stands for it, because mere questions do not create it. */
static const char *working_dir(const struct site *site)
{
    return access(site->root, X_OK) == 0 ? site->root : "/";
}

struct site_result here_result_of(const struct proc_result *got)
{
    return (struct site_result){.status =
                                    WIFSIGNALED(got->status) ? 128 + WTERMSIG(got->status) : WEXITSTATUS(got->status),
                                .out = got->out,
                                .err = got->err,
                                .out_len = got->out_len,
                                .err_len = got->err_len};
}

int here_run(struct site *site, const struct site_command *command, struct site_result *result, struct act_error *err)
{
    static char utc[] = "TZ=UTC";
    const bool submits = act_streq(command->argv[0], "sbatch"), begins = command->begins_runs; /* hand theirs on */
    struct act_strv argv = {0};
    struct proc_result got;

    *result = (struct site_result){0};
    for (const char *const *word = command->argv; *word; word++)
        act_strv_push(&argv, *word);
    int rc = proc_call(&(struct proc_call){.argv = argv.v,
                                           .sees = begins    ? OF_RUN
                                                   : submits ? OF_JOB
                                                             : OF_SLURM,
                                           .set = begins || submits ? NULL : (char *[]){utc, NULL},
                                           .cwd = command->cwd ? command->cwd : working_dir(site),
                                           .input = command->input,
                                           .input_len = command->input_len,
                                           .timeout_s = command->timeout_s,
                                           .max_bytes = command->max_bytes},
                       &got, err);
    act_strv_release(&argv);
    *result = here_result_of(&got);
    return rc;
}
