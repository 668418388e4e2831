/* again.c - repeating a submission that was interrupted, or got no response, continues it: under the same run id, so
 * that there is never a second run.
 *
 * <state folder>/submitting/<hash of the run without its id> holds the id while the platform is asked, and stays when
 * what became of it is not known. It is locked while the platform is asked: a process that finds it locked submits the
 * same at the same time, as a run of its own.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/dirs.h"
#include "base/file.h"
#include "base/log.h"
#include "base/path.h"
#include "codec/json.h"
#include "flow/flow_internal.h"
#include "flow/submit/parts.h"

/* Returns the file of a submission, named by the hash of the run without what differs from one submission to the next.
 * */
static char *again_path_of(const struct run_spec *spec)
{
    static const char *const own[] = {"id", "created", "package_key", "package_store", "logs_path", "after"};
    CODEC_AUTOJSON json_t *json = run_spec_to_json(spec);
    struct act_sha256 h;
    char hex[ACT_SHA256_HEX];

    for (size_t i = 0; i < sizeof(own) / sizeof(own[0]); i++)
        json_object_del(json, own[i]);
    ACT_AUTOFREE char *text = json_dumps(json, JSON_COMPACT | JSON_SORT_KEYS);
    act_sha256_init(&h);
    act_sha256_add(&h, text, strlen(text));
    act_sha256_done(&h, hex);
    ACT_AUTOFREE char *dir = act_state_dir();
    return act_sprintf("%s/submitting/%s", dir, hex);
}

/* The file at path, locked; -1: another process holds it, or it cannot exist. */
static int open_locked(const char *path)
{
    ACT_AUTOFREE char *dir = act_path_dirname(path);
    struct stat here, there;
    struct act_error ignored;

    if (act_mkdir_all(dir, 0700, &ignored) < 0)
        return -1;
    int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (fd < 0)
        return -1;
    if (flock(fd, LOCK_EX | LOCK_NB) == 0 && fstat(fd, &here) == 0 && stat(path, &there) == 0 &&
        here.st_ino == there.st_ino) /* else it was removed before it was locked */
        return fd;
    close(fd);
    return -1;
}

static bool again_names(int dir_fd, const char *name, const char *id)
{
    char text[1024];
    int fd = openat(dir_fd, name, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof(text));
    CODEC_AUTOJSON json_t *json = NULL;

    if (fd >= 0)
        close(fd);
    return n > 0 && codec_json_parse(text, (size_t)n, "submission", &json, NULL) == 0 &&
           strcmp(codec_json_str(json, "id", ""), id) == 0;
}

bool flow_again_is_open(const char *id)
{
    ACT_AUTOFREE char *state = act_state_dir();
    ACT_AUTOFREE char *path = act_path_join(state, "submitting");
    DIR *dir = opendir(path);
    bool open = false;

    for (const struct dirent *e; dir && !open && (e = readdir(dir));)
        open = e->d_name[0] != '.' && again_names(dirfd(dir), e->d_name, id);
    if (dir)
        closedir(dir);
    return open;
}

/* Tells whether it is still unknown what became of the run. */
static bool is_open(struct flow *flow, const char *id)
{
    ACT_AUTO(ledger_runs) rows = {0};
    struct ledger *ledger;
    struct act_error ignored;

    return flow_ledger(flow, &ledger, &ignored) == 0 && ledger_find(ledger, id, &rows, &ignored) == 0 && rows.n == 1 &&
           run_state_from_name(rows.v[0].state) == RUN_QUEUED;
}

static bool again_take_id(struct flow *flow, int fd, struct run_spec *spec)
{
    enum { AGAIN_S = 3600 }; /* later it is meant to be another one */
    char text[1024];
    ssize_t n = pread(fd, text, sizeof(text), 0);
    CODEC_AUTOJSON json_t *json = NULL;

    if (n <= 0 || codec_json_parse(text, (size_t)n, "submission", &json, NULL) < 0)
        return false;
    const char *id = codec_json_str(json, "id", "");
    int64_t created = codec_json_int(json, "created", 0);
    if (!run_id_valid(id) || created + AGAIN_S < act_now_unix_s() || !is_open(flow, id))
        return false;
    act_note("going on with '%s', of which it is not known whether it was submitted", id);
    act_str_replace(&spec->id, id);
    spec->created_unix_s = created;
    return true;
}

bool flow_again_begin(struct flow *flow, struct run_spec *spec, struct flow_again *out)
{
    *out = (struct flow_again){.path = again_path_of(spec)};
    out->fd = open_locked(out->path);
    if (out->fd < 0)
        return false;
    bool taken = again_take_id(flow, out->fd, spec);
    ACT_AUTOFREE char *line =
        act_sprintf("{\"id\": \"%s\", \"created\": %lld}\n", spec->id, (long long)spec->created_unix_s);
    if (ftruncate(out->fd, 0) < 0 || lseek(out->fd, 0, SEEK_SET) < 0 || act_write_all(out->fd, line, strlen(line)) < 0)
        act_warn("cannot write '%s': should this be interrupted, look with 'a q' before it is submitted again",
                 out->path);
    return taken;
}

void flow_again_end(struct flow_again *again, bool known)
{
    if (again->fd >= 0 && known)
        unlink(again->path);
    if (again->fd >= 0)
        close(again->fd);
    free(again->path);
}
