/* ahead.c - act-node environment ROOT: the environment of a run that is about to be submitted, made on a login node for
 * nodes that reach no index.
 *
 * The input is {"run": run.json, "secrets": secrets.json}; the package is in ROOT/packages. The answer is one line:
 *
 *   {"state": "begun" | "making", "text"}   ask again, with the same input; "begun": this question has begun it
 *   {"state": "made", "key"}                it is there; no key: the project needs none
 *   {"state": "failed", "text", "log"}      why, and the end of what the tools have printed
 *
 * Who asks first starts a worker, which goes on when nobody asks any more, and which a later question replaces if it
 * was killed. What it has is in the private folder of the run on this machine (place.h), which the last answer removes.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/path.h"
#include "codec/json.h"
#include "node/attempt.h"
#include "node/child.h"
#include "node/environment.h"
#include "node/place.h"
#include "node/prepare.h"
#include "node/setup.h"
#include "node/unzip.h"

enum { INPUT_MAX_BYTES = 33 << 20, ANSWER_MAX_BYTES = 1 << 20, LOG_BYTES = 16 * 1024, PATIENCE_MS = 2000 };

static char *ahead_answer_path(const struct node *node)
{
    return act_path_join(node->local, "ahead.json");
}

/* ---- the worker */

static int ahead_unpack(const struct node *node, struct act_error *err)
{
    int rc = act_remove_tree(node->code, err); /* left by one that was killed */

    return rc < 0 ? rc : node_unzip_apart(node->package, node->spec.package_sha256, node->code, false, err);
}

static void ahead_set_variables(const struct run_spec *spec)
{
    for (size_t i = 0; i < spec->n_env; i++)
        if (spec->env[i].value)
            setenv(spec->env[i].name, spec->env[i].value, 1);
}

static json_t *ahead_say_failure(const struct node *node, const struct act_error *err)
{
    ACT_AUTOFREE char *name = prepare_log(node);
    ACT_AUTOFREE char *path = node_path(node, name);
    ACT_AUTOFREE char *log = act_calloc(1, LOG_BYTES + 1);

    node_read_tail(path, log, LOG_BYTES);
    return json_pack("{s:s, s:o, s:o}", "state", "failed", "text", codec_json_bytes_new(act_error_text(err)), "log",
                     codec_json_bytes_new(log));
}

static json_t *ahead_say_made(const struct node *node)
{
    struct environment_source source;
    char key[ENVIRONMENT_KEY];

    if (!environment_source(node, &source))
        return json_pack("{s:s}", "state", "made");
    environment_key(node, &source, key);
    return json_pack("{s:s, s:s}", "state", "made", "key", key);
}

/* Runs in a child, which has the lock. */
static int ahead_work(void *arg)
{
    const struct node *node = arg;
    ACT_AUTOFREE char *path = ahead_answer_path(node);
    struct act_error err;
    int status = 0;

    ahead_set_variables(&node->spec);
    int rc = ahead_unpack(node, &err);
    if (rc == 0)
        rc = prepare_logged(node, setup_take, &status, &err);
    if (rc == 0)
        rc = prepare_logged(node, environment_make_ahead, &status, &err);
    CODEC_AUTOJSON json_t *answer = rc == 0 ? ahead_say_made(node) : ahead_say_failure(node, &err);
    return codec_json_write(path, answer, 0600, &err) < 0;
}

/* ---- the question */

/* Nothing of the nodes holds here: their scratch folders, and lines that prepare a node for its ranks. */
static void ahead_forget_nodes(struct run_spec *spec)
{
    char **const texts[] = {&spec->scratch, &spec->setup.lines, &spec->setup.rank_lines};

    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        free(*texts[i]);
        *texts[i] = NULL;
    }
}

static int ahead_open(struct node *node, const char *root, const char *name, struct act_error *err)
{
    const struct rank_place place = {.world_size = 1, .local_size = 1};

    ahead_forget_nodes(&node->spec);
    snprintf(node->name, sizeof(node->name), "%s", name);
    node->site = act_strdup(root);
    node->launch = act_strdup("login");
    node->package = act_sprintf("%s/packages/%s.zip", root, node->spec.package_sha256);
    return attempt_open_private(node, &place, err);
}

static int ahead_read(struct node *node, const char *root, struct act_error *err)
{
    CODEC_AUTOJSON json_t *input = NULL;
    char name[NODE_NAME_MAX + 1];
    int rc = codec_json_read("/dev/stdin", INPUT_MAX_BYTES, &input, err);

    node_find_name(name);
    if (rc == 0)
        rc = run_spec_from_json(json_object_get(input, "run"), &node->spec, err);
    if (rc < 0)
        return rc;
    run_secrets_from_json(&node->spec, json_object_get(input, "secrets"));
    return ahead_open(node, root, name, err);
}

/* Starts the worker, if there is none: it has the lock. */
static int ahead_start(struct node *node, bool *out_begun, struct act_error *err)
{
    ACT_AUTOFREE char *path = act_path_join(node->local, "ahead.lock");
    ACT_AUTOFREE char *answer = ahead_answer_path(node);
    ACT_AUTOFREE char *log = node_path(node, RUN_DIR_SYSTEM "/ahead.txt");
    ACT_AUTOCLOSE int lock = act_lock(path, false, err);

    if (lock < 0)
        return lock == -ACT_TEMPORARY ? 0 : lock;
    if (access(answer, F_OK) == 0) /* it has just ended */
        return 0;
    ACT_AUTOCLOSE int log_fd = open(log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    if (log_fd < 0 ||
        child_start(&(struct child){.run = ahead_work, .arg = node, .out_fd = log_fd, .guarded = true}) < 0)
        return act_error_errno(err, errno, "cannot start what makes the environment on '%s'", node->name);
    *out_begun = true;
    return 0;
}

/* Waits for the end, but not for long. *out: the answer, a new reference. */
static int ahead_wait(struct node *node, json_t **out, struct act_error *err)
{
    enum { LOOK_MS = 20 };
    ACT_AUTOFREE char *path = ahead_answer_path(node);
    int64_t until_ms = act_now_monotonic_ms() + PATIENCE_MS;
    char doing[300];
    bool begun = false;

    while (act_now_monotonic_ms() < until_ms) {
        if (access(path, F_OK) == 0)
            return codec_json_read(path, ANSWER_MAX_BYTES, out, err);
        int rc = ahead_start(node, &begun, err);
        if (rc < 0)
            return rc;
        nanosleep(&(struct timespec){.tv_nsec = LOOK_MS * 1000000L}, NULL);
    }
    prepare_doing(node, doing, sizeof(doing));
    *out = json_pack("{s:s, s:s}", "state", begun ? "begun" : "making", "text", doing);
    return 0;
}

int node_environment(int argc, char **argv)
{
    CODEC_AUTOJSON json_t *answer = NULL;
    ACT_AUTO(node) node = {0};
    struct act_error err, ignored;

    if (argc != 2)
        return ACT_USAGE;
    int rc = ahead_read(&node, argv[1], &err);
    if (rc == 0)
        rc = ahead_wait(&node, &answer, &err);
    if (rc < 0)
        answer = json_pack("{s:s, s:o}", "state", "failed", "text", codec_json_bytes_new(act_error_text(&err)));
    bool is_last = act_streq(codec_json_str(answer, "state", ""), "made") ||
                   act_streq(codec_json_str(answer, "state", ""), "failed");
    if (is_last && node.local && act_remove_tree(node.local, &ignored) < 0)
        node_say("%s", act_error_text(&ignored));
    ACT_AUTOFREE char *line = codec_json_line(answer);
    return puts(line) < 0 ? ACT_FAIL : 0;
}
