/* event_copies.c - copies of event files in a folder here, which TensorBoard reads. Such a file only grows, so what a
 * copy lacks is fetched; one that has become shorter is another one, and is fetched anew. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/path.h"
#include "flow/data/of_run.h"
#include "flow/flow_internal.h"
#include "flow/look/look.h"
#include "flow/look/parts.h"

enum { FILES = 4096, LOOKED_AT = 1000000, CHUNK = 1 << 20 };

struct event_copies {
    const char *to;
    uint64_t *bytes; /* that came */
};

/* Opens a copy for what it lacks: *out_at. */
static int event_copy_open(const char *path, uint64_t size, uint64_t *out_at, struct act_error *err)
{
    ACT_AUTOFREE char *folder = act_path_dirname(path);
    struct stat st;
    int rc = act_mkdir_all(folder, 0700, err);

    if (rc < 0)
        return rc;
    int fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0 || fstat(fd, &st) < 0 || ((uint64_t)st.st_size > size && ftruncate(fd, 0) < 0)) {
        rc = act_error_errno(err, errno, "cannot write '%s'", path);
        if (fd >= 0)
            close(fd);
        return rc;
    }
    *out_at = (uint64_t)st.st_size > size ? 0 : (uint64_t)st.st_size;
    return fd;
}

static int event_copy_fetch(const struct event_copies *c, struct store *store, const char *key, uint64_t size,
                            const char *path, struct act_error *err)
{
    ACT_AUTOFREE char *chunk = act_alloc(CHUNK);
    uint64_t at = 0;
    int fd = event_copy_open(path, size, &at, err), rc = fd < 0 ? fd : 0;

    while (rc == 0 && at < size) {
        struct store_call call = {.op = STORE_GET, .key = key, .get = {.offset = at, .sink = chunk, .sink_cap = CHUNK}};
        rc = store_do(store, &call, err);
        size_t got = rc == 0 ? call.get.got : 0;
        store_call_release(&call);
        if (rc == 0 && act_write_all(fd, chunk, got) < 0)
            rc = act_error_errno(err, errno, "cannot write '%s'", path);
        at += got;
        *c->bytes += got;
        if (got == 0)
            break;
    }
    if (fd >= 0)
        close(fd);
    return rc;
}

/* Copies all of them; one that cannot be copied does not stop that. Returns the first error. */
static int event_copies_fetch(const struct event_copies *c, struct store *store, const char *folder,
                              const struct event_search *found, struct act_error *err)
{
    struct act_error later;
    int first = 0;

    for (size_t i = 0; i < found->n; i++) {
        const struct event_file *f = &found->v[i];
        if (!act_path_is_safe(f->path, strlen(f->path)))
            continue;
        ACT_AUTOFREE char *key = act_path_join(folder, f->path);
        ACT_AUTOFREE char *path = act_path_join(c->to, f->path);
        int rc = event_copy_fetch(c, store, key, f->size, path, first < 0 ? &later : err);
        first = first < 0 ? first : rc;
    }
    return first;
}

static int event_copies_visit(void *arg, struct store *store, const struct run_folder *f,
                              const struct event_search *found, struct act_error *err)
{
    return event_copies_fetch(arg, store, f->path, found, err);
}

int flow_copy_events_of(struct flow *flow, const struct flow_run *run, const char *to, uint64_t *bytes,
                        struct act_error *err)
{
    struct event_copies c = {to, bytes};

    return flow_visit_events(flow, run, &(struct event_visit){.most = FILES, .visit = event_copies_visit, .arg = &c},
                             err);
}

int flow_copy_events_in(struct flow *flow, const struct transfer_path *path, const char *to, uint64_t *bytes,
                        struct act_error *err)
{
    struct event_search s = {.left = LOOKED_AT, .most = FILES};
    struct event_copies c = {to, bytes};
    struct act_error later;
    int rc = transfer_list(flow_engine(flow), path, TRANSFER_TREE, flow_take_event_file, &s, err);

    int fetched = event_copies_fetch(&c, path->store, path->path, &s, rc < 0 ? &later : err);
    flow_event_search_release(&s);
    return rc < 0 ? rc : fetched;
}
