/* compile.c - compiles the package here, in the cluster's image, as the nodes would: they then find that done.
 *
 * The image needs a shell, and no zip: the code is unpacked and packed on this machine. What the container's root makes
 * is given to whom the folder belongs to as the container sees it, which is right with a daemon and without root.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/file.h"
#include "base/log.h"
#include "base/path.h"
#include "config/config.h"
#include "flow/code/code_internal.h"
#include "flow/flow_internal.h"
#include "proc/proc.h"

#define CODE_INSIDE "/tmp/code"

static const char script[] = "{ [ ! -s requirements.txt ] || "
                             "python3 -m pip install -r requirements.txt --no-input --disable-pip-version-check; } && "
                             "chmod +x compile.aml.sh && sh -c \"$1\"\n"
                             "status=$?\n"
                             "chown -hR \"$(stat -c %u:%g .)\" . && exit $status\n";

/* Checks all that is needed before anything is done. */
static int compile_check(const struct config *config, const char **out_tool, struct act_error *err)
{
    ACT_AUTOFREE char *path = act_path_join(config->project_root, "compile.aml.sh");
    struct act_error why = {0};

    if (access(path, F_OK) < 0)
        return act_error_set(err, ACT_USAGE, "there is nothing to compile: '%s' has no compile.aml.sh; try 'a init'",
                             config->project_root);
    if (!config->docker.image)
        return act_error_set(err, ACT_USAGE,
                             "cannot compile here: cluster '%s' has no 'docker.image' to compile in; 'a init' "
                             "leaves that to the nodes",
                             config->cluster);
    if (flow_find_docker(out_tool, &why) < 0)
        return act_error_set(err, ACT_USAGE, "cannot compile in the image '%s': %s; 'a init' leaves that to the nodes",
                             config->docker.image, act_error_text(&why));
    return 0;
}

/* Runs it, with the configuration's variables and what it prints on stderr. */
static int run_container(const struct config *config, const struct act_strv *words, int *out_exit_status,
                         struct act_error *err)
{
    const struct proc_start start = {
        .argv = words->v, .sees = OF_DOCKER, .set = config->env.v, .in_fd = -1, .out_fd = STDERR_FILENO, .err_fd = -1};
    pid_t pid;
    int status, rc = proc_start(&start, &pid, err);

    if (rc < 0)
        return rc;
    while (waitpid(pid, &status, 0) < 0)
        if (errno != EINTR)
            return act_error_errno(err, errno, "cannot wait for '%s'", words->v[0]);
    *out_exit_status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    return 0;
}

static int unpack(const struct flow_init *code, const char *dir, struct act_error *err)
{
    ACT_AUTOFREE char *zip = flow_package_cache(code->package.sha256);
    ACT_AUTOFREE char *agent = NULL;
    ACT_AUTO(act_strv) words = {0};
    struct config none = {0};
    int status = 0, rc = proc_find_sibling("act-node", &agent, err);

    if (rc < 0)
        return rc;
    act_strv_push(&words, agent);
    act_strv_push(&words, "unzip");
    act_strv_push(&words, zip);
    act_strv_push(&words, code->package.sha256);
    act_strv_push(&words, dir);
    rc = run_container(&none, &words, &status, err);
    return rc == 0 && status ? act_error_set(err, ACT_FAIL, "cannot unpack '%s'", zip) : rc;
}

static void compile_add_words(const struct config *config, const char *tool, const char *dir, struct act_strv *out)
{
    static const char workdir[] = "--workdir=" CODE_INSIDE;
    static const char *const options[] = {"run", "--rm", "--init", "--network=host", workdir};

    act_strv_push(out, tool);
    for (size_t i = 0; i < sizeof(options) / sizeof(options[0]); i++)
        act_strv_push(out, options[i]);
    act_strv_pushf(out, "--volume=%s:" CODE_INSIDE, dir);
    for (size_t i = 0; i < config->env.n; i++)
        act_strv_pushf(out, "--env=%.*s", (int)strcspn(config->env.v[i], "="), config->env.v[i]);
    act_strv_push(out, config->docker.image);
    act_strv_push(out, "sh");
    act_strv_push(out, "-c");
    act_strv_push(out, script);
    act_strv_push(out, "act");
    act_strv_pushf(out, "exec ./compile.aml.sh %s", config->compile_args ? config->compile_args : "");
}

static int compile(const struct config *config, const char *tool, const char *dir, struct act_error *err)
{
    ACT_AUTO(act_strv) words = {0};
    int status = 0;

    act_note("compiling in the image '%s' by %s", config->docker.image, tool);
    compile_add_words(config, tool, dir, &words);
    int rc = run_container(config, &words, &status, err);
    if (rc < 0 || status == 0)
        return rc;
    return act_error_set(
        err, ACT_FAIL,
        "cannot compile in the image '%s': %s ended with status %d, see above; the package is stored as "
        "it is, and the nodes would compile it",
        config->docker.image, tool, status);
}

static int make_compile_dir(char **out, struct act_error *err)
{
    ACT_AUTOFREE char *packages = flow_packages_dir();
    char *dir = act_sprintf("%s/" FLOW_COMPILES "XXXXXX", packages);

    if (!mkdtemp(dir)) {
        int rc = act_error_errno(err, errno, "cannot make '%s'", dir);
        free(dir);
        return rc;
    }
    *out = dir;
    return 0;
}

int flow_compile(struct flow *flow, struct flow_init *code, struct flow_init *out, struct act_error *err)
{
    ACT_AUTOFREE char *dir = NULL;
    const char *tool = NULL;
    int rc = compile_check(flow->config, &tool, err);

    *out = (struct flow_init){
        .packing = code->packing, .uploading = code->uploading, .done = code->done, .arg = code->arg};
    if (rc == 0)
        rc = flow_init(flow, code, err);
    if (rc < 0 || code->dry_run)
        return rc;
    rc = make_compile_dir(&dir, err);
    if (rc < 0)
        return rc;
    rc = unpack(code, dir, err);
    if (rc == 0)
        rc = compile(flow->config, tool, dir, err);
    if (rc == 0)
        rc = flow_init_compiled(flow, dir, code, out, err);
    if (act_remove_tree(dir, NULL) < 0)
        act_warn("cannot remove '%s'", dir);
    return rc;
}
