/* data.c - mapped folders: uploaded, downloaded, compared, and those of runs.
 *
 * A local folder is opened as a folder store of its own, rooted at what the path names (symbolic links on the way there
 * are followed; those inside are kept as links, or followed where that is asked for), so that every direction is one
 * transfer_copy().
 */
#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#include "auth/services.h"
#include "base/log.h"
#include "base/path.h"
#include "base/units.h"
#include "config/config.h"
#include "flow/data/data.h"
#include "flow/data/data_internal.h"
#include "flow/data/mapped.h"
#include "flow/flow_internal.h"
#include "flow/trust.h"
#include "http/http.h"
#include "sync/sync.h"

/* The two sides of a transfer or a comparison. */
struct flow_route {
    const char *path; /* as the user typed it */
    const struct transfer_path *from;
    const char *to_path;
};

/* Opens what a local path names: a folder as the whole of a store, a file as a key of its folder's store. */
static int open_local_source(struct flow *flow, const char *local, bool follow, struct transfer_path *out,
                             struct act_error *err)
{
    ACT_AUTOFREE char *name = mapped_bare_key(local);
    ACT_AUTOFREE char *real = realpath(name, NULL);
    struct stat st;

    if (!real || stat(real, &st) < 0)
        return act_error_errno(err, errno, "cannot read '%s'", local);
    if (!S_ISDIR(st.st_mode) && !S_ISREG(st.st_mode))
        return act_error_set(err, ACT_FAIL, "cannot upload '%s': neither a file nor a folder", local);
    if (S_ISREG(st.st_mode) && act_ends_with(local, "/"))
        return act_error_set(err, ACT_NOT_FOUND, "cannot upload '%s': it is a file, not a folder", local);
    ACT_AUTOFREE char *dir = act_path_dirname(real);
    out->is_folder = S_ISDIR(st.st_mode);
    int rc = store_folder_open(flow_http(flow), out->is_folder ? real : dir, false, &out->store, err);
    if (rc == 0)
        out->path = act_strdup(out->is_folder ? "" : act_path_basename(real));
    if (rc == 0 && follow)
        store_follow_links(out->store);
    return rc;
}

/* Tells whether the listing of the store has key as a link that stays inside. */
static bool is_inner_link(struct store *store, const char *key)
{
    ACT_AUTO(store_call) call = {.op = STORE_LIST, .key = key, .list = {.delimiter = true, .max = 1}};
    struct act_error ignored;
    int rc = store_do(store, &call, &ignored);
    const struct store_entry *first = call.list.page.v;
    bool is_inner = rc == 0 && call.list.page.n > 0 && strcmp(first->key, key) == 0 && first->kind == STORE_SYMLINK &&
                    !first->leads_out;

    return is_inner;
}

/* A link that stays inside its mapped folder is an object, as in an upload of the whole folder. */
static bool open_link(struct flow *flow, const struct mapped *m, struct transfer_path *out)
{
    ACT_AUTOFREE char *root = mapped_root(m);
    struct act_error ignored;
    struct stat st;

    if (!*m->rest || lstat(m->local, &st) < 0 || !S_ISLNK(st.st_mode) ||
        store_folder_open(flow_http(flow), root, false, &out->store, &ignored) < 0)
        return false;
    if (is_inner_link(out->store, m->rest)) {
        out->path = act_strdup(m->rest);
        return true;
    }
    store_free(out->store);
    out->store = NULL;
    return false;
}

static int open_mapped_source(struct flow *flow, const struct mapped *m, bool follow, struct transfer_path *out,
                              struct act_error *err)
{
    return !follow && open_link(flow, m, out) ? 0 : open_local_source(flow, m->local, follow, out, err);
}

static bool data_is_folder(const struct store *store)
{
    return store_traits(store)->is_disk || store_traits(store)->is_far_disk;
}

static bool data_is_far(const struct store *store)
{
    return store && store_traits(store)->is_far_disk;
}

/* Folders are reached without requests, whose number and pace --transfers and --bwlimit limit, but for one behind a
 * login, where --bwlimit holds. to may be NULL. */
void flow_mention_limits(struct flow *flow, const struct store *from, const struct store *to)
{
    const struct http_options *network = &flow_services(flow)->network;
    bool rate = network->bwlimit > 0 && !data_is_far(from) && !data_is_far(to), number = network->max_transfers > 0;

    if ((!rate && !number) || flow->limits_mentioned || !data_is_folder(from) || (to && !data_is_folder(to)))
        return;
    act_warn("%s%s%s used: only requests to Blob Storage are limited, and this is all in folders",
             rate ? "--bwlimit" : "", rate && number ? " and " : "",
             rate && number ? "--transfers are not"
             : number       ? "--transfers is not"
                            : " is not");
    flow->limits_mentioned = true;
}

/* ---- what cannot be moved */

static int check_part_size(const struct transfer_options *o, const struct store *to, struct act_error *err)
{
    char size[ACT_UNIT_TEXT], limit[ACT_UNIT_TEXT];

    if (o->part_size <= store_traits(to)->max_put)
        return 0;
    act_size_to_text(o->part_size, size);
    act_size_to_text(store_traits(to)->max_put, limit);
    return act_error_set(err, ACT_USAGE, "parts of %s are too large for %s: at most %s", size, store_name(to), limit);
}

/* A single file in parts of the size that was asked for must not need more parts than an object can have. */
static int data_check_parts(const struct transfer_path *from, const struct transfer_options *o, const char *path,
                            struct act_error *err)
{
    ACT_AUTO(store_call) head = {.op = STORE_HEAD, .key = from->path};
    int rc;

    if (!o->part_size || from->is_folder)
        return 0;
    rc = store_do(from->store, &head, err);
    if (rc == 0 && head.entry.size / STORE_MAX_BLOCKS >= o->part_size)
        rc = act_error_set(err, ACT_USAGE,
                           "'%s' has %llu bytes: more than %d parts of %llu bytes; give a larger --part-size", path,
                           (unsigned long long)head.entry.size, STORE_MAX_BLOCKS, (unsigned long long)o->part_size);
    return rc;
}

/* A folder and another one in it: the copy would grow for ever, or the mirror delete what it copies. */
static int check_places(const struct transfer_path *from, const struct store *to, const char *to_path, const char *path,
                        struct act_error *err)
{
    ACT_AUTOFREE char *a = act_path_below(store_name(from->store), from->path);
    ACT_AUTOFREE char *b = act_path_below(store_name(to), to_path);

    if (strcmp(a, b) == 0)
        return act_error_set(err, ACT_USAGE, "'%s' is the same place on both sides: %s", path, a);
    if (from->is_folder && (act_path_is_within(a, b) || act_path_is_within(b, a)))
        return act_error_set(err, ACT_USAGE, "cannot copy '%s': of %s and %s one lies in the other", path, a, b);
    return 0;
}

/* A file does not take the place of a folder, nor the reverse, though a blob store would keep both. */
static int check_kind(const struct transfer_path *from, struct store *to, const char *to_path, const char *path,
                      struct act_error *err)
{
    ACT_AUTOFREE char *as_folder = act_sprintf("%s/", to_path);
    struct store_call head = {.op = STORE_HEAD, .key = to_path};
    struct transfer_path there = {0};
    bool other_kind;
    int rc;

    if (!*to_path)
        return 0;
    if (from->is_folder) {
        rc = store_do(to, &head, err);
        other_kind = rc == 0 && head.entry.kind != STORE_FOLDER;
        store_call_release(&head);
    } else {
        rc = transfer_resolve(to, store_traits(to)->real_folders ? to_path : as_folder, &there, err);
        other_kind = rc == 0 && there.is_folder;
        transfer_path_release(&there);
    }
    if (other_kind)
        return act_error_set(err, ACT_FAIL, "cannot copy '%s': it is a %s, and a %s at the destination", path,
                             from->is_folder ? "folder" : "file", from->is_folder ? "file" : "folder");
    return rc == -ACT_NOT_FOUND ? 0 : rc;
}

/* ---- the two directions, and from store to store */

static int copy_between(struct flow *flow, const struct transfer_path *from, struct store *to, const char *to_path,
                        const char *path, struct flow_data *io, struct act_error *err)
{
    int rc = check_part_size(&io->options, to, err);

    if (rc == 0)
        rc = data_check_parts(from, &io->options, path, err);
    if (rc == 0)
        rc = check_places(from, to, to_path, path, err);
    if (rc == 0)
        rc = check_kind(from, to, to_path, path, err);
    if (rc < 0)
        return rc;
    flow_mention_limits(flow, from->store, to);
    struct flow_route route = {path, from, to_path};
    io->route = &route;
    rc = transfer_copy(flow_engine(flow), from, to, to_path, &io->options, &io->report, err);
    io->route = NULL;
    return rc;
}

char *flow_step_path(const struct flow_data *io, const struct transfer_step *step)
{
    const char *base = step->action == TRANSFER_DELETE ? io->route->to_path : io->route->from->path;
    const char *rel = step->entry->key + strlen(base);
    ACT_AUTOFREE char *path = mapped_bare_key(io->route->path);

    return act_path_below(path, rel + (*base && *rel == '/'));
}

/* Opens path in the store of another cluster. Both sides use the services of one command. */
static int open_other(struct flow *other, const char *path, struct transfer_path *out, struct act_error *err)
{
    ACT_AUTO(mapped) theirs = {0};
    int rc = mapped_find(other->config, path, &theirs, err);

    if (rc == 0)
        rc = flow_store(other, theirs.folder, &out->store, err);
    if (rc == 0)
        rc = flow_resolve(out->store, theirs.key, path, out, err);
    return rc;
}

/* Uploads from the local folder, or from another cluster's store if other is not NULL. */
static int data_upload(struct flow *flow, struct flow *other, const struct mapped *m, const char *path,
                       struct flow_data *io, struct act_error *err)
{
    ACT_AUTOFREE char *key = mapped_bare_key(m->key);
    ACT_AUTO(transfer_path) from = {0};
    struct store *to = NULL;
    int rc = other ? open_other(other, path, &from, err) : open_mapped_source(flow, m, io->follow, &from, err);

    if (rc == 0)
        rc = flow_store_for(flow, m->folder, key, &to, err);
    if (rc == 0)
        rc = copy_between(flow, &from, to, key, path, io, err);
    store_free(to);
    store_free(from.store);
    return rc;
}

/* Checks the side on this machine. Links that are followed may lead anywhere, so the user must trust them. */
static int check_local_side(struct flow *flow, const struct mapped *m, const char *path, bool follow,
                            struct act_error *err)
{
    int rc = mapped_check_local_name(m, path, err);

    return rc < 0 || !follow ? rc : flow_trust_links(flow->config, m->folder->name, m->rest, err);
}

int flow_upload(struct flow *flow, struct flow *from, const char *path, struct flow_data *io, struct act_error *err)
{
    ACT_AUTO(mapped) m = {0};
    int rc = mapped_find(flow->config, path, &m, err);

    io->report = (struct transfer_report){0};
    if (rc == 0 && !from)
        rc = check_local_side(flow, &m, path, io->follow, err);
    if (rc == 0 && io->options.delete_extra)
        rc = flow_check_alone(flow->config, m.folder, m.key, path, err);
    if (rc == 0)
        rc = data_upload(flow, from, &m, path, io, err);
    return rc;
}

/* The folder that objects go to. A dry run makes none: it looks at the nearest one that is there. */
static int open_local_target(struct flow *flow, const char *folder, bool dry_run, struct store **out, char **out_path,
                             struct act_error *err)
{
    ACT_AUTOFREE char *there = act_strdup(folder);
    struct stat st;

    while (dry_run && stat(there, &st) < 0 && errno == ENOENT && strcmp(there, "/") != 0) {
        char *up = act_path_dirname(there);
        free(there);
        there = up;
    }
    const char *rest = folder + strlen(there);
    *out_path = act_strdup(rest + (*rest == '/'));
    return store_folder_open(flow_http(flow), there, !dry_run, out, err);
}

/* A link is put into the mapped folder, root, which it may not lead out of; other files into the folder that they are
 * in, by whatever way that is reached. */
static int download_to(struct flow *flow, const struct transfer_path *from, const char *root, const char *local,
                       const char *path, struct flow_data *io, struct act_error *err)
{
    ACT_AUTOFREE char *target = mapped_bare_key(local);
    ACT_AUTOFREE char *dir = from->is_link ? act_strdup(root) : act_path_dirname(target);
    const char *name = target + strlen(dir);
    ACT_AUTOFREE char *below = NULL;
    struct store *to = NULL;
    struct stat st;

    if (from->is_folder && stat(target, &st) == 0 && !S_ISDIR(st.st_mode))
        return act_error_set(err, ACT_FAIL, "cannot copy '%s': it is a folder, and a file at the destination", path);
    int rc = open_local_target(flow, from->is_folder ? target : dir, io->options.dry_run, &to, &below, err);
    if (rc < 0)
        return rc;
    ACT_AUTOFREE char *to_path = from->is_folder ? act_strdup(below) : act_path_join(below, name + strspn(name, "/"));
    io->options.stay_closed = true;
    rc = copy_between(flow, from, to, to_path, path, io, err);
    store_free(to);
    return rc;
}

int flow_download(struct flow *flow, const char *path, struct flow_data *io, struct act_error *err)
{
    ACT_AUTO(transfer_path) from = {0};
    struct store *store = NULL;
    ACT_AUTO(mapped) m = {0};
    int rc = mapped_find(flow->config, path, &m, err);

    ACT_AUTOFREE char *key = rc == 0 ? mapped_bare_key(m.key) : NULL;
    io->report = (struct transfer_report){0};
    if (rc == 0)
        rc = mapped_check_local_name(&m, path, err);
    if (rc == 0)
        rc = flow_store_for(flow, m.folder, key, &store, err);
    if (rc == 0)
        rc = mapped_resolve(flow, store, &m, path, &from, err);
    if (rc == 0) {
        ACT_AUTOFREE char *root = mapped_root(&m);
        rc = download_to(flow, &from, root, m.local, path, io, err);
    }
    store_free(store);
    return rc;
}

/* ---- verify */

char *flow_verify_path(const struct flow_verify *io, const char *rel)
{
    ACT_AUTOFREE char *base = mapped_bare_key(io->route->path);

    return act_path_below(base, io->route->from->is_folder ? rel : "");
}

static int data_verify(struct flow *flow, const struct transfer_path *from, const struct mapped *m, const char *path,
                       struct flow_verify *io, struct act_error *err)
{
    ACT_AUTOFREE char *key = mapped_bare_key(m->key);
    struct flow_route route = {path, from, key};
    struct store *to = NULL;
    int rc = flow_store(flow, m->folder, &to, err);

    if (rc == 0)
        rc = check_part_size(&io->options, to, err);
    if (rc == 0)
        rc = check_places(from, to, key, path, err);
    if (rc == 0)
        flow_mention_limits(flow, from->store, to);
    io->route = &route;
    if (rc == 0)
        rc = transfer_verify(flow_engine(flow), from, to, key, &io->options, io->deep, io->each, &io->report, err);
    io->route = NULL;
    store_free(to);
    return rc;
}

int flow_verify(struct flow *flow, struct flow *other, const char *path, struct flow_verify *io, struct act_error *err)
{
    ACT_AUTO(transfer_path) from = {0};
    ACT_AUTO(mapped) m = {0};
    int rc = mapped_find(flow->config, path, &m, err);

    io->report = (struct transfer_report){0};
    if (rc == 0 && !other)
        rc = check_local_side(flow, &m, path, io->follow, err);
    if (rc == 0)
        rc = other ? open_other(other, path, &from, err) : open_mapped_source(flow, &m, io->follow, &from, err);
    if (rc == 0)
        rc = data_verify(flow, &from, &m, path, io, err);
    store_free(from.store);
    return rc;
}

/* ---- the folders of a run */

/* Nothing to download into an empty folder is fine: the first run of an experiment has no output yet. */
int flow_fetch_run_folder(struct flow *flow, struct store *store, const char *path, const char *name, const char *dir,
                          struct act_error *err)
{
    struct flow_data io = {0};
    ACT_AUTO(transfer_path) from = {0};
    ACT_AUTOFREE char *key = act_sprintf("%s/", path);
    int rc = transfer_resolve(store, key, &from, err);

    if (rc == 0)
        rc = download_to(flow, &from, dir, dir, name, &io, err);
    else if (rc == -ACT_NOT_FOUND && err->fact != ACT_FACT_CONTAINER_MISSING)
        rc = 0;
    transfer_report_release(&io.report);
    return rc;
}

int flow_fetch_run_file(struct flow *flow, struct store *store, const char *key, const char *dir, const char *name,
                        struct act_error *err)
{
    struct flow_data io = {0};
    ACT_AUTO(transfer_path) from = {0};
    ACT_AUTOFREE char *local = act_path_join(dir, name);
    int rc = transfer_resolve(store, key, &from, err);

    if (rc == 0)
        rc = download_to(flow, &from, dir, local, name, &io, err);
    transfer_report_release(&io.report);
    return rc;
}

static int send_folder(struct flow *flow, struct store *store, const char *path, const char *name, const char *dir,
                       struct flow_data *io, struct act_error *err)
{
    ACT_AUTO(transfer_path) from = {0};
    int rc = open_local_source(flow, dir, false, &from, err);

    if (rc == 0)
        rc = copy_between(flow, &from, store, path, name, io, err);
    transfer_report_release(&io->report);
    store_free(from.store);
    return rc;
}

int flow_send_run_folder(struct flow *flow, struct store *store, const char *path, const char *name, const char *dir,
                         struct act_error *err)
{
    return send_folder(flow, store, path, name, dir, &(struct flow_data){0}, err);
}

struct changes {
    struct flow_data io;
    struct run_fetched fetched;
};

static void data_say_left(void *arg, const struct transfer_step *step)
{
    ACT_AUTOFREE char *path = flow_step_path(&((const struct changes *)arg)->io, step);

    act_note("%s  is newer in the store, and stays there", path);
}

/* Tells whether the node wrote the file. One that was only read, or made readable for others, may be another one in the
 * store by now, or be gone. */
static bool was_written(void *arg, const struct store_entry *e)
{
    return !run_fetched_has(&((const struct changes *)arg)->fetched, e->key, e->size, e->mtime_ns);
}

/* Tells whether the store has a newer file. Nobody else has written one that is there as it was fetched, whatever the
 * clocks of the node and the store say. Of anything else the later one stays, by when it was written: 'cp -p' and tar
 * give old times. */
static bool is_newer_there(void *arg, const struct store_entry *copy, const struct store_entry *there)
{
    return sync_is_written_later(copy, there) &&
           !run_fetched_has(&((const struct changes *)arg)->fetched, copy->key, there->size, sync_mtime_ns(there));
}

int flow_send_run_changes(struct flow *flow, struct store *store, const char *path, const char *name, const char *dir,
                          struct act_error *err)
{
    struct changes c = {
        .io.options = {
            .keep_newer = true, .is_newer = is_newer_there, .wants = was_written, .left = data_say_left, .arg = &c}};
    ACT_AUTOFREE char *mount = act_path_dirname(dir);
    int rc = run_fetched_read(mount, &c.fetched, err);

    if (rc == 0)
        rc = send_folder(flow, store, path, name, dir, &c.io, err);
    run_fetched_release(&c.fetched);
    return rc;
}
