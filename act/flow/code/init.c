/* init.c - packs the code and stores it, named by its content.
 *
 * In the store, with code_path "a/code.zip":
 *   a/code/<sha256>.zip   every package, once
 *   a/code.zip            a copy of the last one, where older tools look
 *   a/code/latest.json    {"sha256", "bytes", "code_path_etag"}: what a/code.zip is, as long as its ETag is
 * that one; if another tool replaces a/code.zip, the ETag says so. {"compiled_from", "compiled_in"}: of which package
 * it was compiled, and in which image
 * With code_path "a/code" the packages are in "a/code.packages": a store of folders has no file where it has a folder.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/dirs.h"
#include "base/file.h"
#include "base/log.h"
#include "base/path.h"
#include "base/temp.h"
#include "codec/json.h"
#include "config/config.h"
#include "flow/code/code_internal.h"
#include "flow/flow_internal.h"

/* A package that is being made. */
struct work {
    struct flow *flow;
    struct flow_init *io;
    struct package_options options;
    struct store *store;
    const char *compiled_from;  /* the SHA-256 of the package that this one was compiled of; NULL: of none */
    char code_etag[STORE_ETAG]; /* of code_path, where the package was committed; "": it was not */
};

void flow_init_release(struct flow_init *io)
{
    package_list_release(&io->list);
    package_summary_release(&io->package);
}

/* Account files, logins, stores, mapped folders and the logs of runs are not code. What has a secret is the guard's. */
static void keep_out_file(const struct config *config, const char *file, struct act_strv *out)
{
    if (file && strcmp(file, config->project_root) != 0 && act_path_is_within(file, config->project_root))
        act_strv_push(out, file + strlen(config->project_root) + 1);
}

/* A store in the project would be packed into what it stores. */
static void keep_out_store(const struct config *config, const struct config_folder *folder, struct act_strv *out)
{
    ACT_AUTO(config_account) account = {0};

    keep_out_file(config, folder->account_file, out);
    if (!folder->account_file || !config_account_peek(config, folder, &account))
        return;
    keep_out_file(config, account.folder, out);
}

static void kept_out(const struct config *config, struct act_strv *out)
{
    ACT_AUTOFREE char *logs = flow_log_folder(config->project_root);

    keep_out_store(config, &config->code, out);
    keep_out_file(config, logs, out);
    flow_keep_out_logins(config, out);
    for (size_t i = 0; i < config->n_folders; i++) {
        keep_out_store(config, &config->folders[i], out);
        act_strv_push(out, config->folders[i].name);
    }
}

char *flow_package_index(const char *project)
{
    ACT_AUTOFREE char *packages = flow_packages_dir();
    struct act_sha256 h;
    char hex[ACT_SHA256_HEX];

    act_sha256_init(&h);
    act_sha256_add(&h, project, strlen(project));
    act_sha256_done(&h, hex);
    return act_sprintf("%s/index-%.16s", packages, hex);
}

static void init_show_packing(void *arg, const struct package_progress *now)
{
    struct flow_init *io = arg;

    io->packing(io->arg, &(struct transfer_progress){.found_objects = now->entries,
                                                     .found_bytes = now->bytes,
                                                     .listing_done = true,
                                                     .done_objects = now->done_entries,
                                                     .done_bytes = now->done_bytes});
}

/* Judges files that are new and may hold a secret, before anything is packed; all: every new file. */
static int init_judge(struct work *w, bool all, struct act_error *err)
{
    ACT_AUTOFREE char *index = flow_package_index(w->flow->config->project_root);

    return package_judge(&w->options, index, all, &w->io->list, err);
}

static int build_once(struct work *w, struct act_error *err)
{
    ACT_AUTOFREE char *packages = flow_packages_dir();
    ACT_AUTOFREE char *index = flow_package_index(w->flow->config->project_root);

    return package_write(&w->options, &w->io->list,
                         &(struct package_output){.engine = flow_engine(w->flow),
                                                  .folder = packages,
                                                  .index = index,
                                                  .progress = w->io->packing ? init_show_packing : NULL,
                                                  .arg = w->io},
                         &w->io->package, err);
}

/* Writes the package into the cache, under its own name. A secret where none was expected: once more, without it. */
static int build_judged(struct work *w, struct act_error *err)
{
    int rc = build_once(w, err);

    if (rc != -ACT_PARTIAL)
        return rc;
    rc = init_judge(w, true, err);
    if (rc == 0)
        rc = build_once(w, err);
    return rc == -ACT_PARTIAL ? -(int)err->code : rc; /* it changed meanwhile */
}

/* Packs once more what changed while it was packed. A file that was saved in an editor is whole then; one that has
 * become longer again is a log, which would never stand still. */
static int init_build(struct work *w, struct act_error *err)
{
    int rc = build_judged(w, err);

    if (rc != -ACT_TEMPORARY)
        return rc;
    package_summary_release(&w->io->package);
    package_list_release(&w->io->list);
    w->options.takes_grown = true;
    rc = package_scan(&w->options, &w->io->list, err);
    if (rc == 0)
        rc = init_judge(w, false, err);
    return rc < 0 ? rc : build_judged(w, err);
}

/* 1: the store has the package under its own name; 0: it has not. */
static int is_stored(const struct work *w, struct act_error *err)
{
    ACT_AUTOFREE char *key = flow_package_key(w->flow, w->io->package.sha256);
    char etag[STORE_ETAG];
    uint64_t size;
    int rc = flow_exists(w->store, key, etag, &size, err);

    return rc == 1 ? size == w->io->package.bytes : rc;
}

/* A package left by an earlier init is checked before it is sent, and rebuilt if it is damaged. */
static int init_verify(struct work *w, struct act_error *err)
{
    ACT_AUTOFREE char *file = flow_package_cache(w->io->package.sha256);

    if (!w->io->package.unchanged || flow_file_is(file, w->io->package.sha256))
        return 0;
    unlink(file);
    package_summary_release(&w->io->package);
    return init_build(w, err);
}

/* Uploads the package as any file. */
static int init_upload_whole(struct work *w, struct act_error *err)
{
    ACT_AUTOFREE char *key = flow_package_key(w->flow, w->io->package.sha256);
    ACT_AUTOFREE char *packages = flow_packages_dir();
    ACT_AUTOFREE char *name = act_sprintf("%s.zip", w->io->package.sha256);
    struct transfer_options options = {.progress = w->io->uploading, .arg = w->io->arg};
    ACT_AUTO(transfer_report) report = {0};
    struct store *cache;
    int rc = store_folder_open(flow_http(w->flow), packages, false, &cache, err);

    if (rc < 0)
        return rc;
    struct transfer_path from = {.store = cache, .path = name};
    rc = transfer_copy(flow_engine(w->flow), &from, w->store, key, &options, &report, err);
    w->io->sent_bytes = report.total.done_bytes;
    store_free(cache);
    return rc;
}

static int send_package(struct work *w, struct act_error *err)
{
    return flow_has_blocks(w->store, &w->io->package) ? flow_upload_blocks(w->flow, w->store, w->io, w->code_etag, err)
                                                      : init_upload_whole(w, err);
}

/* The package itself, once. Its name says what is in it: where it came there meanwhile, as by a request of a process
 * that was killed, it is what was to be sent. */
static int store_package(struct work *w, struct act_error *err)
{
    struct act_error ignored;
    int rc = is_stored(w, err);

    if (rc != 0)
        return rc < 0 ? rc : 0;
    rc = init_verify(w, err);
    if (rc < 0)
        return rc;
    rc = send_package(w, err);
    return rc < 0 && rc != -ACT_INTERRUPTED && is_stored(w, &ignored) == 1 ? 0 : rc;
}

static int write_pointer(const struct work *w, const char *etag, struct act_error *err)
{
    ACT_AUTOFREE char *key = flow_pointer_key(w->flow);
    CODEC_AUTOJSON json_t *pointer =
        json_pack("{s:i,s:s,s:I,s:s,s:s*,s:s*}", "version", 1, "sha256", w->io->package.sha256, "bytes",
                  (json_int_t)w->io->package.bytes, "code_path_etag", etag, "compiled_from", w->compiled_from,
                  "compiled_in", w->compiled_from ? w->flow->config->docker.image : NULL);
    ACT_AUTOFREE char *text = codec_json_line(pointer);

    w->io->published = true;
    return flow_put_text(w->store, key, text, err);
}

/* Tells whether code_path already is this package. */
static int is_published(const struct work *w, const json_t *pointer, struct act_error *err)
{
    char etag[STORE_ETAG];
    uint64_t size;

    if (!act_streq(codec_json_str(pointer, "sha256", ""), w->io->package.sha256) ||
        !act_streq(codec_json_str(pointer, "compiled_from", NULL), w->compiled_from))
        return 0;
    int rc = flow_exists(w->store, w->flow->config->code.path, etag, &size, err);
    return rc < 0 ? rc : rc == 1 && strcmp(etag, codec_json_str(pointer, "code_path_etag", "")) == 0;
}

/* 1: code_path is this package, compiled, and stays it. */
static int find_compiled(const struct work *w, const json_t *pointer, struct act_error *err)
{
    const char *sha256 = codec_json_str(pointer, "sha256", ""), *image = w->flow->config->docker.image;
    const char *from = codec_json_str(pointer, "compiled_from", NULL);
    char etag[STORE_ETAG];
    int rc = 0;

    if (!w->io->keep_compiled || !from)
        return 0;
    if (act_streq(from, w->io->package.sha256) && act_is_hex(sha256, ACT_SHA256_HEX - 1) && image &&
        act_streq(codec_json_str(pointer, "compiled_in", ""), image)) {
        ACT_AUTOFREE char *key = flow_package_key(w->flow, sha256);
        rc = flow_exists(w->store, key, etag, &w->io->compiled_bytes, err);
    }
    if (rc == 1)
        memcpy(w->io->compiled, sha256, sizeof(w->io->compiled));
    w->io->was_compiled = rc == 0;
    return rc;
}

static int publish(struct work *w, struct act_error *err)
{
    ACT_AUTOFREE char *key = flow_package_key(w->flow, w->io->package.sha256);
    CODEC_AUTOJSON json_t *pointer = NULL;

    if (w->code_etag[0])
        return write_pointer(w, w->code_etag, err);
    int rc = flow_read_pointer(w->flow, w->store, &pointer, err);
    if (rc == 0)
        rc = find_compiled(w, pointer, err);
    if (rc == 0)
        rc = is_published(w, pointer, err);
    if (rc != 0)
        return rc < 0 ? rc : 0;
    ACT_AUTO(store_call) copy = {.op = STORE_COPY, .copy.source = key, .key = w->flow->config->code.path};
    rc = store_do(w->store, &copy, err);
    if (rc == 0)
        rc = write_pointer(w, copy.entry.etag, err);
    return rc;
}

/* Returns how long the cache keeps files that are no longer used, or were never finished. */
static int64_t kept_s(const char *name)
{
    enum { DAY_S = 24 * 3600, MONTH_S = 30 * DAY_S };

    return act_starts_with(name, "foreign-") || act_starts_with(name, ".act-part") ||
                   act_starts_with(name, FLOW_COMPILES)
               ? DAY_S
               : MONTH_S;
}

/* Removes a file from the cache; if that fails, the next init tries again. */
static void prune(const char *packages, const char *name, mode_t mode)
{
    ACT_AUTOFREE char *path = act_path_join(packages, name);

    if (S_ISREG(mode))
        unlink(path);
    else if (S_ISDIR(mode) && act_starts_with(name, FLOW_COMPILES) && act_remove_tree(path, NULL) < 0)
        act_trace("package", "cannot remove '%s'", path);
}

/* The cache keeps what was used lately. Runs have their own name for their package, so none loses it. */
static void prune_cache(void)
{
    ACT_AUTOFREE char *packages = flow_packages_dir();
    DIR *d = opendir(packages);
    struct stat st;

    act_temp_sweep(packages, 0);
    for (struct dirent *e; d && (e = readdir(d));)
        if (fstatat(dirfd(d), e->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
            st.st_mtime < act_now_unix_s() - kept_s(e->d_name))
            prune(packages, e->d_name, st.st_mode);
    if (d)
        closedir(d);
}

static int init_upload(struct work *w, struct act_error *err)
{
    if (!w->flow->config->code.path)
        return act_error_set(
            err, ACT_CONFIG,
            "cluster '%s' does not say where the code is stored: it has no 'code_path' in 'config_param'",
            w->flow->config->cluster);
    int rc = run_check_unpacked(w->io->package.bytes, w->io->list.bytes, err);

    if (rc < 0)
        return rc;
    rc = flow_store(w->flow, &w->flow->config->code, &w->store, err);
    if (rc == 0)
        rc = store_package(w, err);
    if (rc == 0)
        rc = publish(w, err);
    store_free(w->store);
    return rc < 0 ? act_error_prefix(err, "cannot upload the package to '%s'", w->flow->config->code.path) : 0;
}

/* This many new bytes are rarely code; they may be data or checkpoints. */
static int init_weigh(struct work *w, struct act_error *err)
{
    ACT_AUTOFREE char *packages = flow_packages_dir();
    ACT_AUTOFREE char *index = flow_package_index(w->flow->config->project_root);
    struct flow_init *io = w->io;

    if (!io->large || io->list.bytes <= FLOW_LARGE_CODE)
        return 0;
    package_forecast(&io->list, packages, index, &io->package);
    int rc = io->package.changed_bytes > FLOW_LARGE_CODE ? io->large(io->arg, io, err) : 0;
    package_summary_release(&io->package);
    return rc;
}

/* Tells what an init would do, and whether it would find its work done. A store that cannot be asked is no failure. */
static int forecast(struct work *w)
{
    ACT_AUTOFREE char *packages = flow_packages_dir();
    ACT_AUTOFREE char *index = flow_package_index(w->flow->config->project_root);
    struct act_error err = {0};

    package_forecast(&w->io->list, packages, index, &w->io->package);
    if (!w->io->package.unchanged)
        return 0;
    CODEC_AUTOJSON json_t *pointer = NULL;
    int rc = flow_store(w->flow, &w->flow->config->code, &w->store, &err);
    if (rc == 0)
        rc = flow_read_pointer(w->flow, w->store, &pointer, &err);
    if (rc == 0)
        rc = find_compiled(w, pointer, &err);
    if (rc >= 0)
        rc = is_stored(w, &err);
    store_free(w->store);
    if (rc < 0)
        act_warn("cannot ask the store for the package: %s", act_error_text(&err));
    else
        w->io->is_stored = rc ? FLOW_YES : FLOW_NO;
    return 0;
}

/* The size of a package that nobody keeps. */
static int init_measure(struct work *w, uint64_t *out_bytes, struct act_error *err)
{
    const char *tmp = act_env("TMPDIR");
    ACT_AUTOFREE char *folder = act_sprintf("%s/act-XXXXXX", tmp ? tmp : "/tmp");
    struct package_summary summary = {0};

    if (!mkdtemp(folder))
        return act_error_errno(err, errno, "cannot create the folder '%s'", folder);
    const struct package_output output = {.engine = flow_engine(w->flow), .folder = folder};
    w->options.takes_grown = true; /* nothing of it is kept */
    int rc = package_write(&w->options, &w->io->list, &output, &summary, err);
    ACT_AUTOFREE char *file = act_sprintf("%s/%s.zip", folder, summary.sha256);
    unlink(file);
    rmdir(folder);
    *out_bytes = summary.bytes;
    package_summary_release(&summary);
    return rc;
}

/* Packs only what may be too much. */
static int rehearse(struct work *w, struct act_error *err)
{
    struct flow_init *io = w->io;
    struct act_error ignored;
    uint64_t bytes = 0;
    int rc = forecast(w);

    if (rc < 0 || !io->fits)
        return rc;
    if (io->package.unchanged)
        return io->fits(io->fits_arg, io->package.bytes, err);
    if (io->fits(io->fits_arg, io->list.bytes, &ignored) == 0)
        return 0;
    rc = init_measure(w, &bytes, err);
    return rc < 0 ? rc : io->fits(io->fits_arg, bytes, err);
}

/* Locks the project: of several processes that pack it at once, one packs and sends, and the others then find that
 * done. Where there are no locks, each does it by itself. The lock ends with the descriptor, or with this process. */
static int lock_project(const struct flow *flow)
{
    ACT_AUTOFREE char *packages = flow_packages_dir();
    ACT_AUTOFREE char *index = flow_package_index(flow->config->project_root);
    ACT_AUTOFREE char *path = act_sprintf("%s.lock", index);
    struct act_error err;
    int fd = act_mkdir_all(packages, 0700, &err);

    if (fd == 0)
        fd = act_lock_told(path, "packs this project", &err);
    if (fd < 0 && fd != -ACT_INTERRUPTED)
        act_warn("%s", act_error_text(&err));
    return fd;
}

static int cannot_pack(const struct flow *flow, int rc, struct act_error *err)
{
    return rc < 0 ? act_error_prefix(err, "cannot pack '%s'", flow->config->project_root) : 0;
}

int flow_init(struct flow *flow, struct flow_init *io, struct act_error *err)
{
    ACT_AUTO(act_strv) out = {0};
    struct work w = {.flow = flow, .io = io};
    int lock = io->dry_run ? -1 : lock_project(flow);

    if (lock == -ACT_INTERRUPTED)
        return act_error_set(err, ACT_INTERRUPTED, "interrupted while another process packed this project");
    kept_out(flow->config, &out);
    w.options = (struct package_options){.root = flow->config->project_root,
                                         .zip_options = &flow->config->zip_options,
                                         .no_gitignore = !flow->config->gitignore,
                                         .kept_out = &out,
                                         .judge = flow_guard_judge};
    int rc = cannot_pack(flow, package_scan(&w.options, &io->list, err), err);
    if (rc == 0 && io->command)
        rc = flow_check_program(flow->config, &io->list, io->command, err);
    if (rc == 0)
        rc = cannot_pack(flow, init_judge(&w, io->dry_run, err), err);
    if (rc == 0)
        rc = init_weigh(&w, err);
    if (rc == 0)
        rc = io->dry_run ? rehearse(&w, err) : cannot_pack(flow, init_build(&w, err), err);
    if (rc == 0 && !io->dry_run && io->fits)
        rc = io->fits(io->fits_arg, io->package.bytes, err);
    if (rc == 0 && !io->dry_run) {
        prune_cache();
        rc = init_upload(&w, err);
    }
    if (rc == 0 && !io->dry_run)
        flow_note_left_out(io->package.sha256, &io->list);
    if (lock >= 0)
        close(lock);
    if (io->done)
        io->done(io->arg);
    if (rc == 0 && !io->dry_run)
        flow_say_left_out(flow->config->project_root, &io->list);
    if (rc == 0 && !(io->command && io->package.unchanged)) /* a run with the same code: it was told before */
        flow_guard_tell(flow->config->project_root, &io->list);
    return rc;
}

int flow_init_compiled(struct flow *flow, const char *root, const struct flow_init *source, struct flow_init *io,
                       struct act_error *err)
{
    ACT_AUTOFREE char *packages = flow_packages_dir();
    ACT_AUTO(act_strv) out = {0};
    struct work w = {.flow = flow, .io = io, .compiled_from = source->package.sha256};
    struct package_output output = {
        .engine = flow_engine(flow), .folder = packages, .progress = io->packing ? init_show_packing : NULL, .arg = io};

    kept_out(flow->config, &out);
    w.options = (struct package_options){.root = root, .kept_out = &out, .as_it_is = true};
    int rc = package_scan(&w.options, &io->list, err);
    if (rc == 0)
        rc = package_write(&w.options, &io->list, &output, &io->package, err);
    if (rc < 0)
        act_error_prefix(err, "cannot pack what was compiled");
    else
        rc = init_upload(&w, err);
    if (io->done)
        io->done(io->arg);
    return rc;
}
