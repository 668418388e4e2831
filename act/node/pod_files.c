/* pod_files.c - what Kubernetes mounts from the run's Secrets becomes a run folder, as there is one on other platforms.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/file.h"
#include "base/hash.h"
#include "base/path.h"
#include "base/units.h"
#include "node/attempt.h"
#include "node/pod.h"

#define ENV_INDEX "JOB_COMPLETION_INDEX"

/* A Secret has less than 1 MiB. */
enum { SECRET_MAX = 4 * 1024 * 1024, TOKEN_HEX = 64 };

static int find_index(struct pod *pod, struct act_error *err)
{
    const char *text = getenv(ENV_INDEX);
    int64_t index;

    if (!text)
        return act_error_set(err, ACT_USAGE, ENV_INDEX " is not set: this is not a pod of an Indexed Job");
    if (!act_int_from_text(text, &index) || index < 0)
        return act_error_set(err, ACT_USAGE, ENV_INDEX " is '%s', which is not the number of a pod", text);
    if (index >= pod->options.nodes)
        return act_error_set(err, ACT_USAGE, ENV_INDEX " is %lld, but the run has %d node(s)", (long long)index,
                             pod->options.nodes);
    pod->index = pod->place = (int)index;
    return 0;
}

/* Copies name from the Secret to the run folder. */
static int pod_files_take(const struct pod *pod, const char *dir, const char *name, struct act_error *err)
{
    ACT_AUTOFREE char *from = act_path_join(pod->options.secret, name);
    ACT_AUTOFREE char *to = act_path_join(dir, name);
    ACT_AUTOFREE char *data = NULL;
    size_t len;
    int rc = act_file_read(from, SECRET_MAX, &data, &len, err);

    return rc < 0 ? rc : act_file_write_quickly(to, data, len, 0600, err);
}

static bool pod_files_is_there(const struct pod *pod, const char *name)
{
    ACT_AUTOFREE char *path = act_path_join(pod->options.secret, name);

    return access(path, F_OK) == 0;
}

static int take_token(struct pod *pod, const char *dir, struct act_error *err)
{
    ACT_AUTOFREE char *path = act_path_join(dir, POD_FILE_TOKEN);
    int rc = pod_files_take(pod, dir, POD_FILE_TOKEN, err);

    if (rc == 0)
        rc = act_file_read(path, SECRET_MAX, &pod->token, NULL, err);
    if (rc == 0 && !act_is_hex(pod->token, TOKEN_HEX))
        rc = act_error_set(err, ACT_FAIL, "the run's token is not %d hex digits", TOKEN_HEX);
    return rc;
}

static int pod_files_append(const char *from, int to, struct act_error *err)
{
    ACT_AUTOFREE char *data = NULL;
    size_t len;
    int rc = act_file_read(from, SECRET_MAX, &data, &len, err);

    if (rc == 0 && act_write_all(to, data, len) < 0)
        rc = act_error_errno(err, errno, "cannot write '" RUN_FILE_PACKAGE "'");
    return rc;
}

/* A small package is a key of the run's Secret, a larger one has a Secret for each part. */
static int take_package(const struct pod *pod, const char *dir, struct act_error *err)
{
    ACT_AUTOFREE char *whole = act_path_join(dir, RUN_FILE_PACKAGE);
    bool in_one = pod_files_is_there(pod, RUN_FILE_PACKAGE);
    int fd, rc = 0, i = 0;

    if (!in_one && !pod_files_is_there(pod, RUN_FILE_PACKAGE ".000"))
        return 0;
    fd = open(whole, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (fd < 0)
        return act_error_errno(err, errno, "cannot write '%s'", whole);
    for (bool more = true; rc == 0 && more; i++) {
        ACT_AUTOFREE char *name = in_one ? act_strdup(RUN_FILE_PACKAGE) : act_sprintf(RUN_FILE_PACKAGE ".%03d", i);
        ACT_AUTOFREE char *next = act_sprintf(RUN_FILE_PACKAGE ".%03d", i + 1);
        ACT_AUTOFREE char *path = act_path_join(pod->options.secret, name);
        rc = pod_files_append(path, fd, err);
        more = !in_one && pod_files_is_there(pod, next);
    }
    close(fd);
    return rc;
}

static int pod_files_check(const struct pod *pod, struct act_error *err)
{
    const struct run_spec *spec = &pod->node.spec;

    if (spec->nodes != pod->options.nodes)
        return act_error_set(err, ACT_USAGE, "'--nodes' is %d, but the run has %d node(s)", pod->options.nodes,
                             spec->nodes);
    if (spec->package_sha256[0] && !spec->logs_path && access(pod->node.package, R_OK) < 0)
        return act_error_set(err, ACT_NOT_FOUND, "the run has a package, and its Secret is not mounted at '%s'",
                             pod->options.secret);
    return 0;
}

int pod_take_files(struct pod *pod, struct act_error *err)
{
    static char who[32]; /* the log keeps it */
    ACT_AUTOFREE char *dir = act_path_join(pod->options.work, "run");
    int rc = find_index(pod, err);

    if (rc == 0)
        rc = attempt_make_folders(&(struct node){.dir = dir}, err);
    if (rc == 0)
        rc = take_token(pod, dir, err);
    if (rc == 0)
        rc = pod_files_take(pod, dir, RUN_FILE_SPEC, err);
    if (rc == 0 && pod_files_is_there(pod, RUN_FILE_SECRETS))
        rc = pod_files_take(pod, dir, RUN_FILE_SECRETS, err);
    if (rc == 0 && pod_files_is_there(pod, RUN_FILE_STORES))
        rc = pod_files_take(pod, dir, RUN_FILE_STORES, err);
    if (rc == 0)
        rc = take_package(pod, dir, err);
    if (rc < 0)
        return act_error_prefix(err, "cannot take the run from its Secrets");
    snprintf(who, sizeof(who), "pod %d", pod->index);
    rc = node_open(&pod->node, dir, who, err);
    return rc < 0 ? rc : pod_files_check(pod, err);
}
