/* environment.c - an environment is whole or not there:
 *
 *   look for the link -> lock -> look again -> make it in a folder of its own -> the disk has it -> make the link
 *
 * Who uses one first writes down that he does and then looks whether it is still linked, and who removes one first
 * removes the link and then looks who uses it: so none goes away under a run.
 */
#include "node/environment.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/path.h"
#include "base/units.h"
#include "codec/json.h"
#include "node/child.h"
#include "node/container.h"
#include "node/layer.h"
#include "node/prepare.h"
#include "node/setup.h"
#include "proc/pidfd.h"
#include "run/environments.h"

__asm__(".pushsection .rodata\n"
        ".global maker_script\n"
        "maker_script:\n"
        ".incbin \"" ENVIRONMENT_SCRIPT "\"\n"
        ".byte 0\n"
        ".popsection\n");
extern const char maker_script[];

enum { TELL_MS = 2000 }; /* how often it is said how far it is */

struct environment_taken {
    const struct node *node;
    struct environment_source source;
    char key[ENVIRONMENT_KEY];
    char *home, *link;
    char *dir; /* the folder that the link names, or that is being made */
};

static void environment_release(struct environment_taken *e)
{
    free(e->home);
    free(e->link);
    free(e->dir);
}

/* ---- where it is */

char *environment_home(const struct node *node)
{
    ACT_AUTOFREE char *of_runs = node->dir ? act_path_dirname(node->dir) : act_strdup("");
    bool is_site = act_streq(act_path_basename(of_runs), "runs");

    if (node->site)
        return act_path_join(node->site, ENVIRONMENTS_DIR);
    if (!is_site && !node->local)
        return NULL;
    ACT_AUTOFREE char *beside = is_site ? act_strdup(of_runs) : act_path_dirname(node->local);
    ACT_AUTOFREE char *base = act_path_dirname(beside);
    return act_path_join(base, ENVIRONMENTS_DIR);
}

/* Returns the file that says where the environment of this attempt is. New string. */
static char *environment_note_path(const struct node *node)
{
    return act_sprintf("%s/environment.%d", node->local, node->attempt);
}

/* Returns the environment that was written down, a new string; NULL: the run has none. */
static char *environment_noted(const struct node *node)
{
    enum { NOTE_MAX = 8192 };
    ACT_AUTOFREE char *path = environment_note_path(node);
    char *text = NULL;

    return act_file_read(path, NOTE_MAX, &text, NULL, NULL) < 0 ? NULL : text;
}

static int environment_note(const struct environment_taken *e, struct act_error *err)
{
    ACT_AUTOFREE char *path = environment_note_path(e->node);
    ACT_AUTOFREE char *env = act_path_join(e->dir, ENVIRONMENTS_ENV);

    return act_file_write_quickly(path, env, strlen(env), 0600, err);
}

/* Gives the run what it may change, before anything of the run is started. */
static int environment_lay(const struct environment_taken *e, struct act_error *err)
{
    ACT_AUTOFREE char *env = act_path_join(e->dir, ENVIRONMENTS_ENV);

    return layer_make(e->node, env, err);
}

/* ---- finding and using one */

/* Tells whether a folder is this user's, and nobody else writes into it. */
static bool environment_is_own(const char *dir)
{
    struct stat st;

    return lstat(dir, &st) == 0 && S_ISDIR(st.st_mode) && st.st_uid == geteuid() && !(st.st_mode & 022);
}

/* Finds what the link names, *out, a new string. What it names and is not there is as if there were no link. */
static bool environment_find(const struct environment_taken *e, char **out)
{
    enum { NAME_MAX_BYTES = 128 };
    char name[NAME_MAX_BYTES];
    ssize_t n = readlink(e->link, name, sizeof(name) - 1);

    if (n <= 0)
        return false;
    name[n] = '\0';
    ACT_AUTOFREE char *dir = act_path_join(e->home, name);
    ACT_AUTOFREE char *env = act_path_join(dir, ENVIRONMENTS_ENV);
    if (strchr(name, '/') || access(env, X_OK) < 0 || !environment_is_own(dir))
        return false;
    *out = act_strdup(dir);
    return true;
}

/* Writes down that the run uses it. A place that is full or read-only keeps nobody from that. */
static void environment_mark(const struct environment_taken *e, const char *dir)
{
    ACT_AUTOFREE char *runs = act_path_join(dir, ENVIRONMENTS_RUNS);
    ACT_AUTOFREE char *path = act_path_join(runs, e->node->spec.id);
    int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);

    if (fd < 0)
        return;
    futimens(fd, NULL);
    close(fd);
}

/* Uses the environment, if it is there. */
static bool environment_take_up(struct environment_taken *e)
{
    ACT_AUTOFREE char *dir = NULL;
    ACT_AUTOFREE char *still = NULL;

    if (!environment_find(e, &dir))
        return false;
    environment_mark(e, dir);
    if (!environment_find(e, &still) || strcmp(dir, still) != 0)
        return false;
    act_str_replace(&e->dir, dir);
    return true;
}

/* ---- the lock */

/* Tells whether a file system has no locks at all. */
static bool has_no_locks(int errnum)
{
    return errnum == ENOLCK || errnum == ENOSYS || errnum == EOPNOTSUPP;
}

/* Who makes it has written its name into the locked file as it began. */
static void environment_tell_waiting(const struct environment_taken *e, int fd)
{
    char maker[NODE_NAME_MAX + 1] = "", took[ACT_UNIT_TEXT];
    struct stat st = {0};

    (void)!act_pread_all(fd, maker, sizeof(maker) - 1, 0);
    int64_t took_s = fstat(fd, &st) == 0 ? act_now_unix_s() - st.st_mtime : 0;
    act_duration_to_text(took_s > 0 ? took_s : 0, took); /* the clocks of two nodes may differ */
    prepare_tell(e->node, "waiting for node '%s', which makes the environment from %s: %s so far", maker,
                 e->source.file, took);
}

/* Waits until this process may make the environment, or somebody else has: then e->dir is set. Returns the locked
 * file's descriptor. */
static int environment_lock(struct environment_taken *e, struct act_error *err)
{
    enum { LOOK_MS = 200 };
    ACT_AUTOFREE char *path = act_sprintf("%s.lock", e->link);
    int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    int64_t tell_ms = 0;

    if (fd < 0)
        return act_error_errno(err, errno, "cannot open '%s'", path);
    while (flock(fd, LOCK_EX | LOCK_NB) < 0 && !has_no_locks(errno)) {
        if (act_now_monotonic_ms() >= tell_ms) {
            environment_tell_waiting(e, fd);
            tell_ms = act_now_monotonic_ms() + TELL_MS;
        }
        nanosleep(&(struct timespec){.tv_nsec = LOOK_MS * 1000000L}, NULL);
        if (environment_take_up(e))
            return fd;
    }
    if (!environment_take_up(e) &&
        (ftruncate(fd, 0) < 0 || act_pwrite_all(fd, e->node->name, strlen(e->node->name), 0) < 0))
        node_say("cannot write '%s': %m", path);
    return fd;
}

/* ---- making it */

/* The variable that all tools have which make an environment: its folder. */
#define MADE_BY_US "ACT_MAKES_ENVIRONMENT"

/* Removes what was not made whole. First it gets another name, and tools that have outlived their maker are ended, as
 * they make folders that they miss. */
static void environment_discard(const char *dir)
{
    ACT_AUTOFREE char *gone = act_sprintf("%s.gone", dir);
    struct act_error err;

    sweep_processes(MADE_BY_US, dir);
    if (act_remove_tree(rename(dir, gone) == 0 ? gone : dir, &err) < 0)
        node_say("%s", act_error_text(&err));
}

/* Returns what the names of the folders begin with that this node makes. New string. */
static char *environment_own_prefix(const struct environment_taken *e)
{
    uint8_t digest[4];
    char hex[2 * sizeof(digest) + 1];
    struct act_sha256 h;

    act_sha256_init(&h);
    act_sha256_add(&h, e->node->name, strlen(e->node->name));
    act_sha256_bytes(&h, digest, sizeof(digest));
    act_hex(digest, sizeof(digest), hex);
    return act_sprintf("%s-%s", e->key, hex);
}

/* Removes what makers of this node have left that were killed; those of other nodes may live. */
static void remove_leftovers(const struct environment_taken *e)
{
    ACT_AUTOFREE char *prefix = environment_own_prefix(e);
    ACT_AUTO(act_strv) names = {0};

    act_folder_names(e->home, &names);
    for (size_t i = 0; i < names.n; i++) {
        ACT_AUTOFREE char *dir = act_path_join(e->home, names.v[i]);
        if (act_starts_with(names.v[i], prefix))
            environment_discard(dir);
    }
}

/* Makes the folder in which it will be, and stay. */
static int environment_begin(struct environment_taken *e, struct act_error *err)
{
    uint8_t random[3];
    char hex[2 * sizeof(random) + 1];
    ACT_AUTOFREE char *prefix = environment_own_prefix(e);

    act_random(random, sizeof(random));
    act_hex(random, sizeof(random), hex);
    free(e->dir);
    e->dir = act_sprintf("%s/%s%s", e->home, prefix, hex);
    ACT_AUTOFREE char *runs = act_path_join(e->dir, ENVIRONMENTS_RUNS);
    ACT_AUTOFREE char *maker = act_path_join(e->dir, ENVIRONMENTS_MAKER);
    if (mkdir(e->dir, 0755) < 0 || mkdir(runs, 0700) < 0)
        return act_error_errno(err, errno, "cannot make the folder '%s'", e->dir);
    return act_file_write_quickly(maker, e->node->name, strlen(e->node->name), 0600, err);
}

/* Counts the packages in an environment of Python or conda. */
static int count_packages(const char *env)
{
    static const char *const libraries[] = {"lib", "lib64"};
    ACT_AUTO(act_strv) packages = {0};

    for (size_t l = 0; l < sizeof(libraries) / sizeof(libraries[0]); l++) {
        ACT_AUTOFREE char *lib = act_path_join(env, libraries[l]);
        ACT_AUTO(act_strv) pythons = {0};
        act_folder_names(lib, &pythons);
        for (size_t i = 0; i < pythons.n; i++) {
            ACT_AUTOFREE char *site = act_sprintf("%s/%s/site-packages", lib, pythons.v[i]);
            ACT_AUTO(act_strv) names = {0};
            act_folder_names(site, &names);
            for (size_t k = 0; k < names.n; k++)
                if (act_ends_with(names.v[k], ".dist-info") && !act_strv_has(&packages, names.v[k]))
                    act_strv_push(&packages, names.v[k]);
        }
    }
    return (int)packages.n;
}

/* Counts the packages that pip has collected until now, from the lines of the log since from. */
static int count_collected(const struct node *node, off_t from)
{
    static const char word[] = "Collecting ";
    enum { PIECE = 64 * 1024 };
    ACT_AUTOFREE char *name = prepare_log(node);
    ACT_AUTOFREE char *path = node_path(node, name);
    ACT_AUTOCLOSE int log_fd = open(path, O_RDONLY | O_CLOEXEC);
    ACT_AUTOFREE char *text = act_alloc(PIECE + 1);
    int n = 0;

    for (ssize_t got; (got = act_pread_all(log_fd, text, PIECE, from)) > 0;) {
        text[got] = '\0';
        char *last = got == PIECE ? memrchr(text, '\n', (size_t)got) : NULL;
        if (last)
            *last = '\0';
        for (const char *at = text; (at = strstr(at, word)); at += sizeof(word) - 1)
            n += at == text || at[-1] == '\n';
        from += last ? last - text + 1 : got;
    }
    return n;
}

static void tell_making(const struct environment_taken *e, int n, int64_t took_ms)
{
    char took[ACT_UNIT_TEXT];

    act_duration_to_text(took_ms / 1000, took);
    if (n > 0)
        prepare_tell(e->node, "making the environment from %s: %d package%s, %s so far", e->source.file, n,
                     n == 1 ? "" : "s", took);
    else
        prepare_tell(e->node, "making the environment from %s: %s so far", e->source.file, took);
}

/* Runs the words, and tells now and then how far they are. */
static int environment_run(const struct environment_taken *e, const char *const *argv, int log_fd, int *out_exit_status,
                           struct act_error *err)
{
    int64_t start_ms = act_now_monotonic_ms();
    off_t from = lseek(log_fd, 0, SEEK_END);
    ACT_AUTOFREE char *mark = act_sprintf(MADE_BY_US "=%s", e->dir);
    pid_t pid = child_start(
        &(struct child){.argv = argv, .set = (char *[]){mark, NULL}, .cwd = e->node->code, .out_fd = log_fd});

    if (pid < 0)
        return act_error_errno(err, errno, "cannot start '%s', which makes the environment from %s", argv[0],
                               e->source.file);
    int pidfd = proc_pidfd_open(pid);
    while (!proc_pidfd_wait(pidfd, TELL_MS))
        tell_making(e, count_collected(e->node, from), act_now_monotonic_ms() - start_ms);
    close(pidfd);
    *out_exit_status = child_exit_status(child_wait(pid));
    return *out_exit_status == 0 ? 0
                                 : act_error_set(err, ACT_FAIL, "cannot make the environment from %s", e->source.file);
}

/* Tells whether the end of what a tool has printed says that it reached no index. */
static bool has_met_no_index(const struct node *node)
{
    /* of pip; of uv; of conda and its kind */
    static const char *const words[] = {"after connection broken by",
                                        "connection error: ",
                                        "Failed to fetch: ",
                                        "error sending request for",
                                        "CondaHTTPError",
                                        "HTTP 000 CONNECTION",
                                        "Could not resolve host",
                                        "Could not connect to server"};
    enum { TAIL_BYTES = 64 * 1024 };
    ACT_AUTOFREE char *name = prepare_log(node);
    ACT_AUTOFREE char *path = node_path(node, name);
    ACT_AUTOFREE char *tail = act_calloc(1, TAIL_BYTES + 1);

    node_read_tail(path, tail, TAIL_BYTES);
    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
        if (strstr(tail, words[i]))
            return true;
    return false;
}

/* Writes down for later runs (RUN_MAKES_USUAL) whether the nodes reach an index. */
static void environment_note_index(const struct environment_taken *e, bool is_made)
{
    ACT_AUTOFREE char *path = act_path_join(e->home, ENVIRONMENTS_NO_INDEX);
    struct act_error err;

    if (e->node->site || e->node->spec.environment.wheels)
        return;
    if (is_made)
        unlink(path);
    else if (has_met_no_index(e->node) &&
             act_file_write_quickly(path, e->node->name, strlen(e->node->name), 0600, &err) < 0)
        node_say("%s", act_error_text(&err));
}

static int environment_fill(const struct environment_taken *e, int log_fd, int *out_exit_status, struct act_error *err)
{
    const struct node *node = e->node;
    const char *wheels = node->spec.environment.wheels;
    ACT_AUTOFREE char *env = act_path_join(e->dir, ENVIRONMENTS_ENV);
    ACT_AUTOFREE char *cache = act_path_join(e->home, ENVIRONMENTS_CACHE);
    ACT_AUTO(act_strv) inside = {0}, words = {0};

    setup_words(node, &inside);
    ACT_STRV_PUSH(&inside, "sh", "-c", maker_script, "act-environment", e->source.tool, e->source.file, env,
                  environment_sees_system(node) ? "system" : "", wheels ? wheels : "", cache);
    int rc = container_wrap(node, -1, (const char *const *)inside.v, &words, err);
    return rc < 0 ? rc : environment_run(e, (const char *const *)words.v, log_fd, out_exit_status, err);
}

/* Has all of it on the disk: the link must not outlive what it names. */
static int environment_sync(const char *dir, struct act_error *err)
{
    ACT_AUTOCLOSE int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    return fd >= 0 && syncfs(fd) == 0 ? 0 : act_error_errno(err, errno, "cannot write '%s' to the disk", dir);
}

/* Makes the link. Where there is one to something whole, that is used; one to nothing goes. */
static int environment_publish(struct environment_taken *e, struct act_error *err)
{
    ACT_AUTOFREE char *made = act_strdup(e->dir);
    ACT_AUTOFREE char *there = NULL;

    environment_mark(e, e->dir);
    if (symlink(act_path_basename(e->dir), e->link) == 0)
        return 0;
    if (errno == EEXIST && !environment_find(e, &there) && unlink(e->link) == 0 &&
        symlink(act_path_basename(e->dir), e->link) == 0)
        return 0;
    if (errno != EEXIST || !environment_take_up(e))
        return act_error_errno(err, errno, "cannot make the link '%s'", e->link);
    environment_discard(made);
    return 0;
}

static int environment_close_folder(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
    (void)ftw;
    if (type == FTW_D && chmod(path, st->st_mode & 07555) < 0)
        node_say("cannot protect '%s': %m", path);
    return 0;
}

/* Lets nothing be installed into an environment of conda, which would change it for all runs: a layer (layer.h) takes
 * what pip installs, and no packages of conda. The superuser is not kept from it. */
static void environment_protect(const struct environment_taken *e)
{
    enum { OPEN_MOST = 16 };
    ACT_AUTOFREE char *meta = act_path_join(e->dir, ENVIRONMENTS_ENV "/conda-meta");
    ACT_AUTOFREE char *real = realpath(meta, NULL);
    ACT_AUTOFREE char *env = real ? act_path_dirname(real) : NULL;

    if (env)
        nftw(env, environment_close_folder, OPEN_MOST, FTW_PHYS);
}

/* Says what it is; of one in the making, since when. */
static int environment_write_about(const struct environment_taken *e, int packages, int64_t took_ms,
                                   struct act_error *err)
{
    struct environment_about about = {.file = act_strdup(e->source.file),
                                      .node = act_strdup(e->node->name),
                                      .image = act_strdup(e->node->spec.image),
                                      .made_unix_s = act_now_unix_s(),
                                      .took_ms = took_ms,
                                      .packages = packages};
    ACT_AUTOFREE char *path = act_path_join(e->dir, ENVIRONMENTS_ABOUT);
    CODEC_AUTOJSON json_t *json = environment_about_to_json(&about);

    environment_about_release(&about);
    return run_record_write(path, json, err);
}

static int environment_make(struct environment_taken *e, int log_fd, int *out_exit_status, struct act_error *err)
{
    int64_t start_ms = act_now_monotonic_ms();

    remove_leftovers(e);
    int rc = environment_begin(e, err);
    if (rc == 0)
        rc = environment_write_about(e, 0, 0, err);
    if (rc == 0) {
        prepare_tell(e->node, "making the environment from %s", e->source.file);
        rc = environment_fill(e, log_fd, out_exit_status, err);
        environment_note_index(e, rc == 0);
    }
    ACT_AUTOFREE char *env = act_path_join(e->dir, ENVIRONMENTS_ENV);
    int packages = count_packages(env);
    int64_t took_ms = act_now_monotonic_ms() - start_ms;
    if (rc == 0)
        rc = environment_write_about(e, packages, took_ms, err);
    if (rc == 0)
        rc = environment_sync(e->dir, err);
    if (rc == 0)
        rc = environment_publish(e, err);
    if (rc < 0)
        environment_discard(e->dir);
    if (rc == 0) {
        char took[ACT_UNIT_TEXT];
        environment_protect(e);
        act_duration_to_text(took_ms / 1000, took);
        prepare_tell(e->node, "made the environment from %s: %d package%s in %s", e->source.file, packages,
                     packages == 1 ? "" : "s", took);
    }
    return rc;
}

static int environment_make_alone(struct environment_taken *e, int log_fd, int *out_exit_status, struct act_error *err)
{
    ACT_AUTOCLOSE int lock = environment_lock(e, err);

    if (lock < 0)
        return lock;
    return e->dir ? 0 : environment_make(e, log_fd, out_exit_status, err);
}

/* Finds or makes it. */
static int environment_provide(struct environment_taken *e, int log_fd, int *out_exit_status, struct act_error *err)
{
    if (environment_take_up(e))
        return 0;
    int rc = act_mkdir_all(e->home, 0755, err);
    return rc < 0 ? rc : environment_make_alone(e, log_fd, out_exit_status, err);
}

/* Tells whether the Python that the environment was made with is on this node, and the same. */
static bool environment_fits(const char *env)
{
    ACT_AUTOFREE char *python = act_path_join(env, "bin/python3");
    ACT_AUTOFREE char *real = realpath(python, NULL);
    ACT_AUTOFREE char *lib = real ? act_sprintf("%s/lib/%s", env, act_path_basename(real)) : NULL;
    struct stat st;

    if (lstat(python, &st) < 0) /* of conda without Python */
        return true;
    return real && access(real, X_OK) == 0 && (!strchr(act_path_basename(real), '.') || access(lib, F_OK) == 0);
}

/* Uses what the login node has made before the run was queued. */
static int environment_take_made(struct environment_taken *e, struct act_error *err)
{
    if (!environment_take_up(e))
        return act_error_set(err, ACT_FAIL,
                             "the environment from %s that the login node made, '%s', is not there any more; "
                             "a resubmit has it made again",
                             e->source.file, e->link);
    ACT_AUTOFREE char *env = act_path_join(e->dir, ENVIRONMENTS_ENV);
    return environment_fits(env)
               ? 0
               : act_error_set(err, ACT_FAIL,
                               "the environment from %s was made with a Python of the login node that node '%s' does "
                               "not have; name a module that both have ('modules: [python]'), or have it made on the "
                               "nodes ('environment: {where: nodes}')",
                               e->source.file, e->node->name);
}

/* Finds what the run needs; false: nothing. */
static bool environment_begin_take(const struct node *node, struct environment_taken *out)
{
    *out = (struct environment_taken){.node = node};
    if (!environment_source(node, &out->source))
        return false;
    out->home = environment_home(node);
    return true;
}

static void environment_set_key(struct environment_taken *e, const char *key)
{
    snprintf(e->key, sizeof(e->key), "%s", key);
    e->link = act_path_join(e->home, e->key);
}

int environment_take(const struct node *node, int log_fd, int *out_exit_status, struct act_error *err)
{
    const char *made = node->spec.environment.key;
    struct environment_taken e;
    char key[ENVIRONMENT_KEY];

    if (!environment_begin_take(node, &e))
        return 0;
    if (!made)
        environment_key(node, &e.source, key);
    environment_set_key(&e, made ? made : key);
    int rc = made ? environment_take_made(&e, err) : environment_provide(&e, log_fd, out_exit_status, err);
    if (rc == 0)
        rc = environment_note(&e, err);
    if (rc == 0)
        rc = environment_lay(&e, err);
    if (rc == 0)
        node_say("the environment from %s is '%s'", e.source.file, e.dir);
    environment_release(&e);
    if (rc == 0)
        environment_apply(node);
    return rc;
}

int environment_make_ahead(const struct node *node, int log_fd, int *out_exit_status, struct act_error *err)
{
    struct environment_taken e;
    char key[ENVIRONMENT_KEY];
    int rc;

    if (!environment_begin_take(node, &e))
        return 0;
    bool is_shared = environment_key(node, &e.source, key);
    environment_set_key(&e, key);
    if (is_shared)
        rc = environment_provide(&e, log_fd, out_exit_status, err);
    else
        rc = act_error_set(err, ACT_CONFIG,
                           "%s links to folders of the project (-e), which each run has for itself: the login node "
                           "cannot make such an environment; 'pip install --no-deps -e ...' in compile.aml.sh does",
                           e.source.file);
    environment_release(&e);
    return rc;
}

/* ---- for the ranks */

/* An environment of conda has more to activate than variables: its words do it, as in a container. */
static bool environment_needs_words(const struct node *node, const char *env)
{
    ACT_AUTOFREE char *meta = act_path_join(env, "conda-meta");

    return container_is_used(node) || access(meta, F_OK) == 0;
}

void environment_apply(const struct node *node)
{
    ACT_AUTOFREE char *env = environment_noted(node);
    ACT_AUTOFREE char *layer = layer_path(node);
    const char *path = getenv("PATH");

    if (!env || environment_needs_words(node, env))
        return;
    ACT_AUTOFREE char *all = act_sprintf("%s/bin:%s/bin%s%s", layer, env, path ? ":" : "", path ? path : "");
    setenv("PATH", all, 1);
    setenv("VIRTUAL_ENV", layer, 1);
    unsetenv("PYTHONHOME");
}

void environment_words(const struct node *node, struct act_strv *out)
{
    static const char script[] = "dir=$1 layer=$2; shift 2; unset PYTHONHOME; export PATH=\"$dir/bin:$PATH\"\n"
                                 "if [ -d \"$dir/conda-meta\" ]; then\n"
                                 "export CONDA_PREFIX=\"$dir\" CONDA_DEFAULT_ENV=\"$dir\"\n"
                                 "for act_script in \"$dir\"/etc/conda/activate.d/*.sh; do\n"
                                 "[ ! -r \"$act_script\" ] || . \"$act_script\"; done; fi\n"
                                 "[ ! -d \"$layer\" ] || export VIRTUAL_ENV=\"$layer\" PATH=\"$layer/bin:$PATH\"\n"
                                 "exec \"$@\"";
    ACT_AUTOFREE char *env = environment_noted(node);
    ACT_AUTOFREE char *layer = layer_path(node);

    if (env && environment_needs_words(node, env))
        ACT_STRV_PUSH(out, "sh", "-c", script, "act", env, layer);
}

char *environment_below_layer(const struct node *node, const char *path)
{
    ACT_AUTOFREE char *env = environment_noted(node);
    ACT_AUTOFREE char *layer = layer_path(node);

    if (!env || !act_path_is_within(path, layer))
        return act_strdup(path);
    return act_sprintf("%s%s", env, path + strlen(layer));
}
