#include "node/folder.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/path.h"
#include "base/units.h"
#include "node/child.h"
#include "node/env.h"
#include "node/mount.h"
#include "proc/proc.h"

/* Returns where the files of a folder of mode upload are kept until they are sent, the same for all nodes of the run.
 * New string. */
static char *outbox(const struct node *node, const struct run_folder *folder)
{
    return act_sprintf("%s/" RUN_DIR_FOLDERS "/%s", node->dir, folder->name);
}

/* Each node has its own: those of nodes that share nothing come together in one place. New string. */
static char *log_name(const struct node *node)
{
    return act_sprintf(FOLDER_LOG, node->name);
}

/* Returns the last words of act, a new string, which may be empty. */
static char *last_words(const struct node *node)
{
    ACT_AUTOFREE char *name = log_name(node);
    ACT_AUTOFREE char *log = node_path(node, name);
    char last[320];

    node_last_line(log, last, sizeof(last));
    return act_strdup(act_starts_with(last, "act: ") ? last + strlen("act: ") : last);
}

/* Has act, which knows the stores, do something; words ends with NULL. */
static int call_act(const struct node *node, const char *const *words, struct act_error *err)
{
    ACT_AUTOFREE char *act = NULL;
    ACT_AUTO(act_strv) argv = {0};
    int rc = proc_find_sibling("act", &act, err);

    if (rc < 0)
        return rc;
    ACT_AUTOFREE char *name_of_log = log_name(node);
    ACT_AUTOCLOSE int fd = node_open_log(node, name_of_log);
    act_strv_push(&argv, act);
    act_strv_add(&argv, words);
    pid_t pid = child_start(&(struct child){.exec_argv = argv.v, .set = env_credentials(), .out_fd = fd});
    int start_errno = errno;
    if (pid < 0)
        return act_error_errno(err, start_errno, "cannot start '%s'", act);
    if (child_exit_status(child_wait(pid)) == 0)
        return 0;
    ACT_AUTOFREE char *said = last_words(node);
    return act_error_set(err, ACT_FAIL, "%s", *said ? said : "it said nothing");
}

static int move_folder(const struct node *node, const char *direction, const char *name, const char *dir,
                       struct act_error *err)
{
    const char *const words[] = {"transfer-folder", node->dir, direction, name, dir, NULL};

    return call_act(node, words, err) < 0 ? act_error_prefix(err, "%s of '%s' failed", direction, name) : 0;
}

int folder_move(const struct node *node, const char *direction, const char *name, const char *dir,
                struct act_error *err)
{
    node_say("%s of folder '%s' starts", direction, name);
    int rc = move_folder(node, direction, name, dir, err);
    if (rc == 0)
        node_say("%s of folder '%s' ended", direction, name);
    return rc;
}

static int folder_make_link(const char *to, const char *at, struct act_error *err)
{
    return symlink(to, at) == 0 ? 0 : act_error_errno(err, errno, "cannot link '%s'", at);
}

/* A missing store is created on the user's machine only; on a node it would be a different one, and the run's results
 * there would be lost. */
static int folder_check_store(const struct node *node, const struct run_folder *folder, struct act_error *err)
{
    static const char kind[] = "folder:";
    const char *place = act_starts_with(folder->store, kind) ? folder->store + strlen(kind) : folder->link;

    if (node->spec.is_here || access(place, F_OK) == 0)
        return 0;
    return act_error_errno(err, errno,
                           "the store '%s' cannot be seen on node '%s': it has to be on a file system that all "
                           "nodes share",
                           place, node->name);
}

/* Makes no folder where the nodes are said to have one: it would be another place. */
static int link_place(const struct node *node, const struct run_folder *folder, const char *at, struct act_error *err)
{
    if (access(folder->link, R_OK | X_OK) == 0)
        return folder_make_link(folder->link, at, err);
    return act_error_errno(err, errno, "'%s', which 'mode: path' says is there, cannot be read on node '%s'",
                           folder->link, node->name);
}

static int link_folder(const struct node *node, const struct run_folder *folder, const char *at, struct act_error *err)
{
    int rc = folder_check_store(node, folder, err);

    if (rc == 0 && folder->mode != RUN_FOLDER_RO_MOUNT)
        rc = act_mkdir_all(folder->link, 0777, err);
    else if (rc == 0 && access(folder->link, R_OK | X_OK) < 0)
        rc = act_error_errno(err, errno, "cannot read '%s'", folder->link);
    return rc == 0 ? folder_make_link(folder->link, at, err) : rc;
}

static int make_outbox(const struct node *node, const struct run_folder *folder, const char *at, struct act_error *err)
{
    ACT_AUTOFREE char *dir = outbox(node, folder);
    int rc = act_mkdir_all(dir, 0777, err);

    return rc == 0 ? folder_make_link(dir, at, err) : rc;
}

static int mount_folder(const struct node *node, const struct run_folder *folder, const char *at, struct act_error *err)
{
    ACT_AUTOFREE char *point = mount_point(node, folder);
    const char *const words[] = {"mount-folder", node->dir, folder->name, node->local, NULL};
    int rc = run_folder_is_copied(&node->spec, folder) ? mount_copy(node, folder, err) : call_act(node, words, err);

    return rc == 0 ? folder_make_link(point, at, err) : rc;
}

/* Files fetched by an earlier attempt are kept: only missing or different ones are fetched again. */
static int make_way(const struct node *node, const struct run_folder *folder, const char *at, struct act_error *err)
{
    bool keep = node->attempt > 1 && !folder->link && folder->mode == RUN_FOLDER_DOWNLOAD;

    return keep ? 0 : act_remove_tree(at, err);
}

/* Puts a mapped folder into the code root, in the place of one of that name in the package. */
static int prepare_one(const struct node *node, const struct run_folder *folder, struct act_error *err)
{
    ACT_AUTOFREE char *at = act_path_join(node->code, folder->name);
    int rc = make_way(node, folder, at, err);

    if (rc < 0)
        return rc;
    if (folder->mode == RUN_FOLDER_PATH)
        return link_place(node, folder, at, err);
    if (folder->link)
        return link_folder(node, folder, at, err);
    switch (folder->mode) {
    case RUN_FOLDER_DOWNLOAD:
        rc = act_mkdir_all(at, 0777, err);
        return rc < 0 ? rc : folder_move(node, "download", folder->name, at, err);
    case RUN_FOLDER_UPLOAD:
        return make_outbox(node, folder, at, err);
    default:
        if (mount_is_for(node, folder))
            return mount_folder(node, folder, at, err);
        return act_error_set(err, ACT_CONFIG,
                             "a blob store cannot be mounted here; set 'mode: download' or 'mode: upload'");
    }
}

int folder_prepare_all(const struct node *node, struct act_error *err)
{
    for (size_t i = 0; i < node->spec.n_folders; i++) {
        const struct run_folder *folder = &node->spec.folders[i];
        if (prepare_one(node, folder, err) < 0)
            return act_error_prefix(err, "folder '%s'", folder->name);
        node_say("folder '%s' is there (%s%s%s)", folder->name, run_folder_mode_name(folder->mode),
                 folder->link ? ", linked to " : "", folder->link ? folder->link : "");
    }
    return 0;
}

int folder_fetch_package(const struct node *node, struct act_error *err)
{
    if (!node->spec.logs_path || !node->spec.package_sha256[0] || access(node->package, F_OK) == 0)
        return 0;
    node_say("fetches the package");
    return move_folder(node, "download", RUN_STORE_PACKAGE, node->dir, err);
}

static bool is_to_send(const struct run_folder *folder)
{
    return folder->mode == RUN_FOLDER_UPLOAD && !folder->link;
}

bool folder_any_to_send(const struct node *node)
{
    for (size_t i = 0; i < node->spec.n_folders; i++)
        if (is_to_send(&node->spec.folders[i]))
            return true;
    return false;
}

/* Nothing is sent if no preparation got far enough to make the folder. */
static int send_one(const struct node *node, const struct run_folder *folder, struct act_error *err)
{
    ACT_AUTOFREE char *dir = outbox(node, folder);

    return access(dir, F_OK) < 0 ? 0 : folder_move(node, "upload", folder->name, dir, err);
}

int folder_send_all(void *arg)
{
    const struct node *node = arg;
    struct act_error err;
    int failed = 0;

    for (size_t i = 0; i < node->spec.n_folders; i++) {
        if (!is_to_send(&node->spec.folders[i]) || send_one(node, &node->spec.folders[i], &err) == 0)
            continue;
        node_say("%s", act_error_text(&err));
        failed = 1;
    }
    return failed;
}

char *folder_why_unsent(const struct node *node)
{
    ACT_AUTOFREE char *said = last_words(node);

    return act_sprintf(FOLDER_UNSENT "%s%s", *said ? ": " : "", said);
}

int folder_send_logs(const struct node *node, int attempt)
{
    struct act_error err;
    int failed = 0;

    for (int i = 1; i <= attempt; i++) {
        ACT_AUTOFREE char *name = act_sprintf(RUN_STORE_LOGS "/%d", i);
        ACT_AUTOFREE char *old = act_sprintf("%s/" RUN_DIR_ATTEMPTS "/%d", node->dir, i);
        const char *dir = i == attempt ? node->dir : old;
        if (access(dir, F_OK) < 0 || move_folder(node, "upload", name, dir, &err) == 0)
            continue;
        node_say("%s", act_error_text(&err));
        failed = 1;
    }
    return failed;
}

int folder_find_sent(const struct node *node)
{
    enum { NUMBER_MAX = 32, ATTEMPTS_MAX = 1 << 20 };
    ACT_AUTOFREE char *path = node_path(node, RUN_FILE_SENT);
    ACT_AUTOFREE char *text = NULL;
    struct act_error err;
    int64_t n = 0;
    int rc = move_folder(node, "download", RUN_STORE_LOGS, node->dir, &err);

    if (rc == 0)
        rc = act_file_read(path, NUMBER_MAX, &text, NULL, &err);
    if (rc < 0)
        node_say("cannot find out which attempts there were: %s", act_error_text(&err));
    return rc == 0 && act_int_from_text(text, &n) && n > 0 && n < ATTEMPTS_MAX ? (int)n : 0;
}
