/* ssh_config.c - 'a ssh-config': the nodes of runs as hosts of OpenSSH, "act-RUN" and "act-RUN.NODE". Its ProxyCommand,
 * 'a __sshd', starts a server on the node for that one connection (sshd.sh), so that the node needs none that runs. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/dirs.h"
#include "base/file.h"
#include "base/log.h"
#include "base/path.h"
#include "cli/clusters/clusters.h"
#include "cli/clusters/options.h"
#include "cli/print/print.h"
#include "flow/cluster/cluster.h"
#include "flow/flow.h"
#include "flow/runs/runs.h"
#include "proc/proc.h"

__asm__(".pushsection .rodata\n"
        ".global sshd_script\n"
        "sshd_script:\n"
        ".incbin \"" SSHD_SCRIPT "\"\n"
        ".byte 0\n"
        ".popsection\n");
extern const char sshd_script[];

#define HOST_PREFIX "act-"
#define OWN_CONFIG  "act_config" /* in ~/.ssh */
#define OWN_KEY     "id_ed25519"

enum { CONFIG_MOST = 1 << 20, KEY_MOST = 4096, KEYGEN_S = 60 };

/* ---- the key */

static char *own_key_dir(void)
{
    ACT_AUTOFREE char *config = act_config_dir();

    return act_path_join(config, "ssh-key");
}

static int ssh_keygen(const char *dir, struct act_error *err)
{
    ACT_AUTOFREE char *path = act_path_join(dir, OWN_KEY);
    ACT_AUTO(act_strv) words = {0};
    struct proc_result result;

    ACT_STRV_PUSH(&words, "ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "act", "-f", path);
    int rc =
        proc_call(&(struct proc_call){.argv = words.v, .sees = OF_SSH, .timeout_s = KEYGEN_S, .max_bytes = KEY_MOST},
                  &result, err);

    if (rc == 0 && result.status != 0)
        rc = act_error_set(err, ACT_FAIL, "ssh-keygen made no key: %s", result.err);
    proc_result_release(&result);
    return rc;
}

/* Makes the pair of keys by which nodes know this user, whole or not at all, if there is none. */
static int ssh_config_make_key(const char *dir, struct act_error *err)
{
    ACT_AUTOFREE char *path = act_path_join(dir, OWN_KEY), *fresh = act_sprintf("%s.%ld", dir, (long)getpid());

    if (access(path, F_OK) == 0)
        return 0;
    int rc = act_mkdir_all(fresh, 0700, err);
    if (rc == 0)
        rc = ssh_keygen(fresh, err);
    if (rc == 0 && rename(fresh, dir) < 0 && access(path, F_OK) < 0) /* else another command was quicker */
        rc = act_error_errno(err, errno, "cannot make '%s'", dir);
    struct act_error ignored;
    if (access(fresh, F_OK) == 0)
        (void)!act_remove_tree(fresh, &ignored);
    return rc;
}

/* ---- what ssh reads */

/* Returns the path of this program, a new string. */
static char *own_program(void)
{
    char path[4096];
    ssize_t n = readlink("/proc/self/exe", path, sizeof(path) - 1);

    return n > 0 ? act_strndup(path, (size_t)n) : act_strdup("a");
}

/* Returns a path as ssh_config(5) takes it, where "%" begins a token, a new string; NULL: it cannot be written so. */
static char *ssh_config_path(const char *path)
{
    struct act_buf out = {0};

    if (strpbrk(path, "\"\n") || strstr(path, "${"))
        return NULL;
    for (; *path; path++)
        act_buf_adds(&out, *path == '%' ? "%%" : (const char[]){*path, '\0'});
    return act_buf_steal(&out);
}

/* Returns what ssh is to read, a new string; NULL with the error. */
static char *ssh_config_text(const char *key_dir, struct act_error *err)
{
    ACT_AUTOFREE char *own = own_program(), *program = ssh_config_path(own), *key = ssh_config_path(key_dir);
    ACT_AUTO(act_buf) quoted = {0};
    ACT_AUTO(act_buf) out = {0};

    if (!program || !key) {
        act_error_set(
            err, ACT_CONFIG,
            "OpenSSH cannot read the path '%s' in its configuration; ACT_HOME names another folder for what is "
            "ACT's",
            program ? key_dir : own);
        return NULL;
    }
    act_buf_add_quoted(&quoted, program);
    act_buf_addf(&out,
                 "# The nodes of runs of ACT: ssh " HOST_PREFIX "RUN, or " HOST_PREFIX "RUN.NODE. The connection goes\n"
                 "# through one that the cluster knows you by, so the node's key says nothing more.\n"
                 "Host " HOST_PREFIX "*\n"
                 "    ProxyCommand %s __sshd %%n %%r\n"
                 "    IdentityFile \"%s/" OWN_KEY "\"\n"
                 "    IdentitiesOnly yes\n"
                 "    StrictHostKeyChecking no\n"
                 "    UserKnownHostsFile /dev/null\n"
                 "    LogLevel ERROR\n",
                 quoted.data, key);
    return act_buf_steal(&out);
}

static bool includes_own(const char *text)
{
    ACT_AUTOFREE char *copy = act_strdup(text);
    char *rest = copy;

    for (const char *line; (line = strsep(&rest, "\r\n"));)
        if (strcmp(line + strspn(line, " \t"), "Include " OWN_CONFIG) == 0)
            return true;
    return false;
}

/* Has the user's own configuration include ours. It comes first: behind a Host it would hold for that one only. */
static int ssh_config_include(const char *ssh_dir, struct act_error *err)
{
    ACT_AUTOFREE char *path = act_path_join(ssh_dir, "config"), *real = realpath(path, NULL), *text = NULL;
    const char *file = real ? real : path; /* a link to it stays one */
    struct stat st = {.st_mode = 0600};
    size_t len = 0;

    if (real && stat(real, &st) < 0)
        return act_error_errno(err, errno, "cannot look at '%s'", real);
    int rc = real ? act_file_read(real, CONFIG_MOST, &text, &len, err) : 0;
    if (rc < 0 || (text && includes_own(text)))
        return rc;
    ACT_AUTO(act_buf) out = {0};
    act_buf_adds(&out, "Include " OWN_CONFIG "\n");
    act_buf_add(&out, text ? text : "", len);
    rc = act_file_write(file, out.data, out.len, st.st_mode & 07777, err);
    if (rc == 0)
        act_note("'%s' includes '%s/" OWN_CONFIG "' now", file, ssh_dir);
    return rc;
}

static int ssh_config_install(const char *text, struct act_error *err)
{
    ACT_AUTOFREE char *home = act_home_dir(), *dir = act_path_join(home, ".ssh"),
                      *path = act_path_join(dir, OWN_CONFIG);
    int rc = act_mkdir_all(dir, 0700, err);

    if (rc == 0)
        rc = act_file_write(path, text, strlen(text), 0600, err);
    if (rc == 0)
        rc = ssh_config_include(dir, err);
    if (rc == 0)
        act_note("'ssh " HOST_PREFIX "RUN' leads to the first node of a run, 'ssh " HOST_PREFIX "RUN.NODE' to another");
    return rc;
}

int cmd_ssh_config(struct cli *cli, struct act_error *err)
{
    ACT_AUTOFREE char *key_dir = own_key_dir();
    ACT_AUTOFREE char *text = ssh_config_text(key_dir, err);
    int rc = text ? ssh_config_make_key(key_dir, err) : -(int)err->code;

    if (rc < 0 || !text)
        return rc;
    if (CLI_OPTIONS(cli, nodes)->install)
        return ssh_config_install(text, err);
    fputs(text, stdout);
    return 0;
}

/* ---- what ssh runs */

/* Finds the run of a host "act-RUN" or "act-RUN.NODE", and sets *out_node, which points into host, or is NULL. */
static int sshd_find_run(struct cli *cli, char *host, struct flow_run *run, const char **out_node,
                         struct act_error *err)
{
    char *name = act_starts_with(host, HOST_PREFIX) ? host + strlen(HOST_PREFIX) : host;
    char *dot = strrchr(name, '.');
    int rc = flow_find_run(&cli->flow, name, run, err);

    *out_node = NULL;
    if (rc != -ACT_NOT_FOUND || !dot)
        return rc;
    *dot = '\0';
    *out_node = dot + 1;
    return flow_find_run(&cli->flow, name, run, err);
}

int cmd_sshd(struct cli *cli, struct act_error *err)
{
    ACT_AUTOFREE char *dir = own_key_dir(), *path = act_path_join(dir, OWN_KEY ".pub"), *key = NULL;
    ACT_AUTOFREE char *host = act_strdup(cli->words.v[0]);
    ACT_AUTO(platform_shell) shell = {0};
    ACT_AUTO(act_strv) words = {0};
    ACT_AUTO(flow_run) run = {0};
    const char *node;
    int rc = act_file_read(path, KEY_MOST, &key, NULL, err);

    if (rc < 0)
        return act_error_hint(err, "'a ssh-config' makes it");
    rc = sshd_find_run(cli, host, &run, &node, err);
    if (rc < 0)
        return rc;
    key[strcspn(key, "\r\n")] = '\0';
    ACT_STRV_PUSH(&words, "sh", "-c", sshd_script, "act-sshd", key, cli->words.v[1], run.row.id);
    rc = flow_shell(&cli->flow, &run, node, &words, &shell, err);
    return rc < 0 ? rc : cli_run_shell(cli, &shell, err);
}
