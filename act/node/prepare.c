#include "node/prepare.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/path.h"
#include "codec/fields.h"
#include "codec/json.h"
#include "node/child.h"
#include "node/container.h"
#include "node/environment.h"
#include "node/folder.h"
#include "node/inventory.h"
#include "node/place.h"
#include "node/setup.h"
#include "node/unzip.h"
#include "proc/proc.h"

struct prepare_outcome {
    int exit_status; /* 0: all went well */
    char reason[300];
};

static const struct field outcome_rows[] = {
    FIELD_VERSION(1, 0),
    FIELD_INT(struct prepare_outcome, exit_status, "exit_status", .max = RUN_STATUS_MOST, .usual = 1),
    FIELD_CHARS(struct prepare_outcome, reason, "reason"),
};
static const struct fields outcome_fields =
    FIELDS("what became of the preparation", struct prepare_outcome, outcome_rows, NULL);

char *prepare_log(const struct node *node)
{
    return act_sprintf(RUN_DIR_SYSTEM "/prepare_%s.txt", node->name);
}

static char *result_path(const struct node *node)
{
    return act_sprintf("%s/prepared.%d.json", node->local, node->attempt);
}

bool prepare_result(const struct node *node, int *out_exit_status, char *out_reason, size_t size)
{
    enum { RESULT_MAX_BYTES = 64 * 1024 };
    ACT_AUTOFREE char *path = result_path(node);
    CODEC_AUTOJSON json_t *json = NULL;
    struct prepare_outcome outcome;
    struct act_error err;

    if (codec_json_read(path, RESULT_MAX_BYTES, &json, NULL) < 0)
        return false;
    if (fields_from_json(&outcome_fields, json, &outcome, &err) < 0)
        snprintf(outcome.reason, sizeof(outcome.reason), "%s", act_error_text(&err));
    *out_exit_status = outcome.exit_status;
    snprintf(out_reason, size, "%s", outcome.reason);
    return true;
}

static int write_result(const struct node *node, const struct prepare_outcome *o, struct act_error *err)
{
    ACT_AUTOFREE char *path = result_path(node);
    CODEC_AUTOJSON json_t *json = fields_to_json(&outcome_fields, o);

    return run_record_write(path, json, err);
}

/* ---- what it does ---- */

static char *doing_path(const struct node *node)
{
    return act_path_join(node->local, "doing");
}

void prepare_tell(const struct node *node, const char *fmt, ...)
{
    ACT_AUTOFREE char *path = doing_path(node);
    struct act_error err;
    va_list ap;

    va_start(ap, fmt);
    ACT_AUTOFREE char *text = act_vsprintf(fmt, ap);
    va_end(ap);
    node_say("%s", text);
    if (act_file_write_quickly(path, text, strlen(text), 0600, &err) < 0)
        node_say("%s", act_error_text(&err));
}

void prepare_doing(const struct node *node, char *out, size_t size)
{
    ACT_AUTOFREE char *path = doing_path(node);
    ACT_AUTOFREE char *text = node_read_text(path);

    act_copy_line(out, size, text);
}

/* ---- the steps ---- */

static int unpack_code(const struct node *node, struct prepare_outcome *o, struct act_error *err)
{
    bool has_code = node->spec.package_sha256[0], again = node->attempt > 1;
    int64_t start = act_now_monotonic_ms();

    (void)o;
    int rc = folder_fetch_package(node, err);
    if (rc == 0 && !again) /* left by an unfinished preparation */
        rc = act_remove_tree(node->code, err);
    if (rc == 0)
        rc = has_code ? node_unzip_apart(node->package, node->spec.package_sha256, node->code, again, err)
                      : act_mkdir_all(node->code, 0755, err);
    if (rc == 0)
        node_say("code %s in %lld ms", has_code ? "unpacked" : "folder made (the run has no package)",
                 (long long)(act_now_monotonic_ms() - start));
    return rc;
}

static int prepare_get_folders(const struct node *node, struct prepare_outcome *o, struct act_error *err)
{
    (void)o;
    return folder_prepare_all(node, err);
}

/* Opens the preparation's log for what a step prints. *out_path: a new string. */
static int prepare_open_log(const struct node *node, char **out_path, struct act_error *err)
{
    ACT_AUTOFREE char *log = prepare_log(node);
    int fd = node_open_log(node, log);

    *out_path = node_path(node, log);
    return fd < 0 ? act_error_errno(err, errno, "cannot open '%s'", log) : fd;
}

/* Runs argv in the code root; its output goes to the preparation's log, its last line into reason. */
static int prepare_run_words(const struct node *node, const char *name, const char *const *argv,
                             struct prepare_outcome *o, struct act_error *err)
{
    ACT_AUTOFREE char *log_path = NULL;
    ACT_AUTOCLOSE int fd = prepare_open_log(node, &log_path, err);
    char last[200];

    if (fd < 0)
        return fd;
    node_say("%s starts", name);
    pid_t pid = child_start(&(struct child){.argv = argv, .cwd = node->code, .out_fd = fd});
    if (pid < 0)
        return act_error_errno(err, errno, "cannot start '%s' for %s", argv[0], name);
    o->exit_status = child_exit_status(child_wait(pid));
    node_say("%s ended with status %d", name, o->exit_status);
    if (o->exit_status == 0)
        return 0;
    node_last_line(log_path, last, sizeof(last));
    return act_error_set(err, ACT_FAIL, "%s ended with status %d: %s", name, o->exit_status,
                         last[0] ? last : "it said nothing");
}

/* Does the same where the command will run: in the run's container if it has one. */
static int prepare_run_step(const struct node *node, const char *name, const char *const *argv,
                            struct prepare_outcome *o, struct act_error *err)
{
    ACT_AUTO(act_strv) inside = {0}, words = {0};

    environment_words(node, &inside);
    act_strv_add(&inside, argv);
    int rc = container_wrap(node, -1, (const char *const *)inside.v, &words, err);
    if (rc == 0)
        rc = prepare_run_words(node, name, (const char *const *)words.v, o, err);
    return rc;
}

/* Fetches the image once for all ranks of the node. */
static int fetch_image(const struct node *node, struct prepare_outcome *o, struct act_error *err)
{
    static const char *const nothing[] = {"true", NULL};
    ACT_AUTOFREE char *name = container_is_used(node) ? act_sprintf("image '%s'", node->spec.image) : NULL;

    return name ? prepare_run_step(node, name, nothing, o, err) : 0;
}

static char *compile_line(const struct node *node)
{
    /* compile_args are words for a shell, as in the cluster file */
    return act_sprintf("exec ./compile.aml.sh %s", node->spec.compile_args ? node->spec.compile_args : "");
}

/* Compiles in the container of each command. The processes of a node do it one after the other, as they share the
 * code. */
static const char script_compile[] =
    "lock=$1; shift\n"
    "until mkdir \"$lock\" || [ ! -w \"${lock%/*}\" ]; do sleep 0.1; done 2>/dev/null\n"
    "chmod +x compile.aml.sh && sh -c \"$1\" || { s=$?\n"
    "IFS= read -r first <compile.aml.sh\n"
    "case $first in '#!'*\"$(printf '\\r')\") echo '" NODE_WINDOWS_LINES "';; esac\n"
    "rmdir \"$lock\"\n"
    "echo \"act: preparation failed: compile.aml.sh ended with status $s\"\n"
    "exit $s; }\n"
    "rmdir \"$lock\"\nshift\nexec \"$@\"\n";

void prepare_words(const struct node *node, struct act_strv *out)
{
    ACT_AUTOFREE char *script = act_path_join(node->code, "compile.aml.sh");
    ACT_AUTOFREE char *line = compile_line(node);

    setup_words(node, out);
    environment_words(node, out);
    if (!container_is_fresh(node) || access(script, F_OK) < 0)
        return;
    ACT_STRV_PUSH(out, "sh", "-c", script_compile, "act");
    act_strv_pushf(out, "%s/prepare.container", node->dir);
    act_strv_push(out, line);
}

/* Returns what a tool said why it failed: the last of its lines that begins as an error does, else its last line.
 * New string; empty: it said nothing. */
static char *said_of_failure(const char *log_path)
{
    enum { TAIL_BYTES = 16 * 1024 };
    char last[200], tail[TAIL_BYTES + 1];
    size_t n = node_read_tail(log_path, tail, TAIL_BYTES);
    const char *error = NULL;

    node_last_line(log_path, last, sizeof(last));
    tail[n] = '\0';
    for (const char *at = tail; !act_starts_with(last, "act: ") && (at = strstr(at, "\nERROR: ")); at++)
        error = at + 1;
    return error ? act_one_line(error, strcspn(error, "\n")) : act_strdup(last);
}

int prepare_logged(const struct node *node,
                   int (*step)(const struct node *, int log_fd, int *out_exit_status, struct act_error *),
                   int *out_exit_status, struct act_error *err)
{
    ACT_AUTOFREE char *log_path = NULL;
    ACT_AUTOCLOSE int fd = prepare_open_log(node, &log_path, err);

    if (fd < 0)
        return fd;
    int rc = step(node, fd, out_exit_status, err);
    if (rc == 0 || *out_exit_status == 0)
        return rc;
    ACT_AUTOFREE char *said = said_of_failure(log_path);
    if (act_starts_with(said, "act: ")) /* a script of ours knows better */
        return act_error_set(err, ACT_FAIL, "%s", said + strlen("act: "));
    ACT_AUTOFREE char *text = act_strdup(act_error_text(err));
    return *said ? act_error_set(err, ACT_FAIL, "%s: %s", text, said) : rc;
}

static int prepare_set_up(const struct node *node, struct prepare_outcome *o, struct act_error *err)
{
    return prepare_logged(node, setup_take, &o->exit_status, err);
}

static int prepare_make_environment(const struct node *node, struct prepare_outcome *o, struct act_error *err)
{
    return prepare_logged(node, environment_take, &o->exit_status, err);
}

static int prepare_compile(const struct node *node, struct prepare_outcome *o, struct act_error *err)
{
    ACT_AUTOFREE char *path = act_path_join(node->code, "compile.aml.sh");
    ACT_AUTOFREE char *line = compile_line(node);
    struct stat st;

    if (stat(path, &st) < 0 || container_is_fresh(node))
        return 0;
    if (chmod(path, (st.st_mode | 0111) & 0777) < 0)
        return act_error_errno(err, errno, "cannot make 'compile.aml.sh' executable");
    const char *const argv[] = {"/bin/sh", "-c", line, NULL};
    int rc = prepare_run_step(node, "compile.aml.sh", argv, o, err);
    if (rc == 0 || !node_has_windows_lines(path))
        return rc;
    ACT_AUTOFREE char *text = act_strdup(act_error_text(err)); /* the shell says only that it is not found */
    return act_error_set(err, ACT_FAIL, "%s; " NODE_WINDOWS_LINES, text);
}

static void run_steps(const struct node *node, struct prepare_outcome *o)
{
    static int (*const steps[])(const struct node *, struct prepare_outcome *, struct act_error *) = {
        unpack_code, prepare_get_folders, fetch_image, prepare_set_up, prepare_make_environment, prepare_compile};
    struct act_error err = {0};
    int rc = 0;

    for (size_t i = 0; rc == 0 && i < sizeof(steps) / sizeof(steps[0]); i++)
        rc = steps[i](node, o, &err);
    if (rc == 0)
        return;
    snprintf(o->reason, sizeof(o->reason), "%.*s", (int)sizeof(o->reason) - 1, act_error_text(&err));
    if (o->exit_status == 0)
        o->exit_status = ACT_WRAPPER;
    node_say("preparation failed: %s", act_error_text(&err));
}

/* Logs what the node is after the steps, which may have installed packages, and also where they failed. */
static void tell_inventory(const struct node *node)
{
    ACT_AUTO(act_strv) lines = {0};

    inventory_of(node, &lines);
    for (size_t i = 0; i < lines.n; i++)
        node_say("%s", lines.v[i]);
}

static int prepare_report_failure(const struct act_error *err)
{
    node_say("preparation failed: %s", act_error_text(err));
    return ACT_WRAPPER;
}

int prepare_node(void *arg)
{
    const struct node *node = arg;
    ACT_AUTOFREE char *lock = act_path_join(node->local, "prepare.lock");
    struct prepare_outcome o = {0};
    struct act_error err;

    if (prepare_result(node, &o.exit_status, o.reason, sizeof(o.reason)))
        return o.exit_status;
    if (act_lock(lock, true, &err) < 0)
        return prepare_report_failure(&err); /* the lock is released when this process exits */
    if (prepare_result(node, &o.exit_status, o.reason, sizeof(o.reason)))
        return o.exit_status;
    place_sweep(node);
    run_steps(node, &o);
    tell_inventory(node);
    return write_result(node, &o, &err) < 0 ? prepare_report_failure(&err) : o.exit_status;
}
