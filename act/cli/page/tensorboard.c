/* tensorboard.c - 'a tensorboard': TensorBoard on this machine (tensorboard.py), over a folder that has a folder for
 * each run, with copies of its event files, which are brought up to date as these grow. */
#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/dirs.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/log.h"
#include "base/path.h"
#include "base/temp.h"
#include "base/units.h"
#include "cli/command/signal.h"
#include "cli/page/options.h"
#include "cli/page/page.h"
#include "cli/page/verbs.h"
#include "cli/print/print.h"
#include "flow/data/data.h"
#include "flow/flow.h"
#include "flow/look/look.h"
#include "flow/runs/runs.h"
#include "proc/proc.h"

__asm__(".pushsection .rodata\n"
        ".global tensorboard_script\n"
        "tensorboard_script:\n"
        ".incbin \"" TENSORBOARD_SCRIPT "\"\n"
        ".byte 0\n"
        ".popsection\n");
extern const char tensorboard_script[];

enum { PAUSE_MS = 10 * 1000, LOOK_MS = 500, KEY_BYTES = 24, NO_TENSORBOARD = 86, LINE_MOST = 4096 };

#define BOARD_READY   "ready" /* as tensorboard.py says it */
#define BOARD_ADDRESS "http://127.0.0.1:"

/* A run, or a mapped folder, whose event files are shown. */
struct board_source {
    char *label;           /* the name of its folder, by which TensorBoard calls it */
    struct flow_run run;   /* or */
    struct flow_path path; /* if path.store is there */
    char *warned;          /* of, last */
};

struct tensorboard {
    struct cli *cli;
    struct flow project; /* in which folders are looked for */
    bool project_is_open;
    struct board_source *v;
    size_t n;
    char *folder;   /* NULL: not made yet */
    int lock;       /* of that */
    uint64_t bytes; /* copied */
};

/* ---- what is shown */

static int board_open_path(struct tensorboard *t, const char *word, struct board_source *out, struct act_error *err)
{
    int rc = t->project_is_open ? 0 : cli_open_flow(t->cli, t->cli->options.cluster, &t->project, err);

    t->project_is_open = t->project_is_open || rc == 0;
    if (rc == 0)
        rc = flow_open_path(&t->project, word, &out->path, err);
    if (rc < 0)
        return rc;
    if (!out->path.path.is_folder)
        return act_error_set(err, ACT_USAGE, "'%s' is a file: name the folder of the event files", word);
    out->label = act_path_clean(word);
    for (char *c = out->label; *c; c++)
        if (*c == '/')
            *c = '-';
    return 0;
}

static char *board_label_of_run(const struct flow_run *run)
{
    const char *name = run->row.name;
    bool is_folder = name && !strchr(name, '/') && act_path_is_safe(name, strlen(name));

    return act_strdup(is_folder ? name : run->row.id);
}

/* A word is a run, or else a mapped folder. One that is neither is said to be no run. */
static int board_add(struct tensorboard *t, const char *word, struct act_error *err)
{
    struct board_source *s = &t->v[t->n++];
    struct act_error of_path;

    if (strchr(word, '/'))
        return board_open_path(t, word, s, err);
    int rc = flow_find_run(&t->cli->flow, word, &s->run, err);
    if (rc == 0)
        s->label = board_label_of_run(&s->run);
    if (rc != -ACT_NOT_FOUND)
        return rc;
    rc = board_open_path(t, word, s, &of_path);
    if (rc == -ACT_NOT_FOUND || rc == -ACT_USAGE)
        return -ACT_NOT_FOUND;
    if (rc < 0)
        *err = of_path;
    return rc;
}

static void board_number(struct board_source *s, size_t number)
{
    ACT_AUTOFREE char *label = act_sprintf("%s-%zu", s->label, number);

    act_str_replace(&s->label, label);
}

/* Runs of one name are told apart by their ids, folders whose paths make one name by numbers. */
static void board_tell_apart(struct tensorboard *t)
{
    bool *shared = act_calloc(t->n + 1, sizeof(*shared));

    for (size_t i = 0; i < t->n; i++)
        for (size_t k = 0; k < t->n; k++)
            shared[i] = shared[i] || (i != k && act_streq(t->v[i].label, t->v[k].label));
    for (size_t i = 0; i < t->n; i++)
        if (shared[i] && t->v[i].run.row.id)
            act_str_replace(&t->v[i].label, t->v[i].run.row.id);
        else if (shared[i])
            board_number(&t->v[i], i + 1);
    free(shared);
}

/* ---- copies */

/* Brings the copies up to date. What cannot be read of a source is said once. */
static void board_copy(struct tensorboard *t)
{
    for (size_t i = 0; i < t->n && !cli_interrupted; i++) {
        struct board_source *s = &t->v[i];
        ACT_AUTOFREE char *to = act_path_join(t->folder, s->label);
        struct act_error err;
        int rc = s->path.store ? flow_copy_events_in(&t->project, &s->path.path, to, &t->bytes, &err)
                               : flow_copy_events_of(&t->cli->flow, &s->run, to, &t->bytes, &err);
        if (rc == 0 || act_streq(s->warned, act_error_text(&err)))
            continue;
        act_warn("not all event files of '%s' can be read: %s", s->label, act_error_text(&err));
        act_str_replace(&s->warned, act_error_text(&err));
    }
}

static int board_make_folder(struct tensorboard *t, struct act_error *err)
{
    ACT_AUTOFREE char *cache = act_cache_dir();
    int rc = act_mkdir_all(cache, 0700, err);

    ACT_AUTOFREE char *prefix = act_sprintf("%s/tensorboard-", cache);
    if (rc == 0 && (t->lock = act_temp_folder(prefix, &t->folder)) < 0)
        rc = act_error_errno(err, errno, "cannot make a folder in '%s'", cache);
    return rc;
}

/* ---- TensorBoard */

struct board_child {
    pid_t pid;
    struct proc_pipes pipes;
};

/* Returns the words of TensorBoard as JSON, a new string. Who does not know the path gets nothing. */
static char *board_words(const struct tensorboard *t)
{
    int64_t port = CLI_OPTIONS(t->cli, page)->port;
    uint8_t key[KEY_BYTES];
    char prefix[1 + 2 * KEY_BYTES + 1] = "/", where[32];

    act_random(key, sizeof(key));
    act_hex(key, sizeof(key), prefix + 1);
    snprintf(where, sizeof(where), "%d", port > 0 ? (int)port : 0);
    json_t *words = json_pack("[ssssssssssss]", "--logdir", t->folder, "--host", "127.0.0.1", "--port", where,
                              "--path_prefix", prefix, "--reload_interval", "5", "--load_fast", "false");
    char *text = words ? json_dumps(words, JSON_COMPACT) : NULL;
    json_decref(words);
    return text;
}

static int board_start(struct board_child *out, struct act_error *err)
{
    ACT_AUTO(act_strv) argv = {0};

    ACT_STRV_PUSH(&argv, "python3", "-c", tensorboard_script);
    return proc_start_piped(&(struct proc_start){.argv = argv.v, .sees = OF_USER, .err_fd = -1, .own_group = true},
                            &out->pid, &out->pipes, err);
}

/* Waits up to ms for something of the child, or for Ctrl-C. Returns whether there is something. */
static bool board_wait(const struct board_child *child, int64_t ms)
{
    int64_t end_ms = act_now_monotonic_ms() + ms;
    struct pollfd p = {child->pipes.from, POLLIN, 0};

    while (!cli_interrupted && act_now_monotonic_ms() < end_ms)
        if (poll(&p, 1, LOOK_MS) > 0)
            return true;
    return false;
}

/* Returns the next line of the child that begins so, a new string; NULL: it has ended, or Ctrl-C was typed. */
static char *board_read_line(const struct board_child *child, const char *beginning)
{
    ACT_AUTO(act_buf) text = {0};
    char c;

    while (text.len < LINE_MOST && board_wait(child, INT32_MAX) && read(child->pipes.from, &c, 1) == 1) {
        if (c != '\n') {
            act_buf_addc(&text, c);
            continue;
        }
        if (text.len > 0 && act_starts_with(text.data, beginning))
            return act_buf_steal(&text);
        text.len = 0;
    }
    return NULL;
}

static int board_end(struct board_child *child)
{
    int status = 0;

    close(child->pipes.to);
    close(child->pipes.from);
    kill(child->pid, SIGTERM);
    while (waitpid(child->pid, &status, 0) < 0 && errno == EINTR)
        continue;
    return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

/* Has the child show the copies, once it has found TensorBoard, which is known before anything is copied. Returns the
 * address, a new string; NULL: it has ended, or Ctrl-C was typed. */
static char *board_launch(struct tensorboard *t, const struct board_child *child)
{
    ACT_AUTOFREE char *ready = board_read_line(child, BOARD_READY);

    if (!ready)
        return NULL;
    board_copy(t);
    if (t->bytes == 0)
        act_note("there are no event files yet in the mapped folders that are written to");
    ACT_AUTOFREE char *words = board_words(t);
    if (!words || act_write_all(child->pipes.to, words, strlen(words)) < 0 ||
        act_write_all(child->pipes.to, "\n", 1) < 0)
        return NULL;
    return board_read_line(child, BOARD_ADDRESS);
}

static int board_say_failure(int status, struct act_error *err)
{
    if (status == NO_TENSORBOARD)
        return act_error_set(err, ACT_NOT_FOUND,
                             "TensorBoard is not installed on this machine: 'pip install tensorboard' in the "
                             "environment in which you type 'a', or 'a plot' draws curves without it");
    return act_error_set(err, ACT_FAIL, "TensorBoard has ended: exit status %d", status);
}

static int board_serve(struct tensorboard *t, struct board_child *child, struct act_error *err)
{
    ACT_AUTOFREE char *address = board_launch(t, child);
    char *page = NULL, said[LINE_MOST];
    bool has_ended = !address;

    if (address) {
        puts(address);
        fflush(stdout);
        if (CLI_OPTIONS(t->cli, page)->open)
            page = page_open_browser(address, "TensorBoard");
        act_note("the copies are brought up to date every %d seconds; Ctrl-C ends it", PAUSE_MS / 1000);
    }
    while (!has_ended && !cli_interrupted) {
        has_ended = board_wait(child, PAUSE_MS) && read(child->pipes.from, said, sizeof(said)) <= 0;
        if (!has_ended)
            board_copy(t);
    }
    page_close_browser(page);
    int status = board_end(child);
    return cli_interrupted ? 0 : board_say_failure(status, err);
}

/* ---- the verb */

static int board_show(struct tensorboard *t, struct act_error *err)
{
    struct board_child child = {.pid = -1, .pipes = {-1, -1}};
    int rc = board_make_folder(t, err);

    if (rc < 0)
        return rc;
    cli_catch_signals(NULL);
    signal(SIGPIPE, SIG_IGN);
    rc = board_start(&child, err);
    return rc < 0 ? rc : board_serve(t, &child, err);
}

int cmd_tensorboard(struct cli *cli, struct act_error *err)
{
    struct tensorboard t = {.cli = cli};
    struct act_error ignored;
    int rc = page_check_port(cli, err);

    t.v = act_calloc(cli->words.n, sizeof(*t.v));
    for (size_t i = 0; rc == 0 && i < cli->words.n; i++)
        rc = board_add(&t, cli->words.v[i], err);
    board_tell_apart(&t);
    if (rc == 0)
        rc = board_show(&t, err);
    if (t.folder) {
        (void)!act_remove_tree(t.folder, &ignored);
        close(t.lock);
    }
    for (size_t i = 0; i < t.n; i++) {
        flow_run_release(&t.v[i].run);
        flow_path_release(&t.v[i].path);
        free(t.v[i].label);
        free(t.v[i].warned);
    }
    if (t.project_is_open)
        flow_close(&t.project);
    free(t.v);
    free(t.folder);
    return rc;
}
