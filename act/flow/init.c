/* init.c - packs the code and stores it, named by its content.
 *
 * In the store, with code_path "a/code.zip":
 *   a/code/<sha256>.zip   every package, once
 *   a/code.zip            a copy of the last one, where older tools look
 *   a/code/latest.json    {"sha256", "bytes", "code_path_etag"}: what a/code.zip is, as long as its ETag is
 * that one; if another tool replaces a/code.zip, the ETag says so
 */
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/dirs.h"
#include "base/file.h"
#include "base/path.h"
#include "codec/json.h"
#include "flow/flow_internal.h"

static char *package_base(const struct flow *flow)
{
    const char *path = flow->config.code.path;
    size_t len = strlen(path);

    return act_strndup(path, act_ends_with(path, ".zip") ? len - 4 : len);
}

char *flow_package_key(const struct flow *flow, const char *sha256)
{
    ACT_AUTOFREE char *base = package_base(flow);

    return act_sprintf("%s/%s.zip", base, sha256);
}

char *flow_pointer_key(const struct flow *flow)
{
    ACT_AUTOFREE char *base = package_base(flow);

    return act_sprintf("%s/latest.json", base);
}

char *flow_packages_dir(void)
{
    ACT_AUTOFREE char *dir = act_cache_dir();

    return act_path_join(dir, "packages");
}

char *flow_package_cache(const char *sha256)
{
    ACT_AUTOFREE char *dir = flow_packages_dir();

    return act_sprintf("%s/%s.zip", dir, sha256);
}

void flow_init_release(struct flow_init *io)
{
    package_list_release(&io->list);
    package_summary_release(&io->package);
}

/* A file of the project that holds secrets never becomes part of a package. */
static void keep_out_file(const struct config *config, const char *file, struct act_strv *out)
{
    if (file && strcmp(file, config->project_root) != 0 && act_path_is_within(file, config->project_root))
        act_strv_push(out, file + strlen(config->project_root) + 1);
}

static void kept_out(const struct config *config, struct act_strv *out)
{
    keep_out_file(config, config->code.account_file, out);
    if (config->docker.password)
        keep_out_file(config, config->file, out);
    for (size_t i = 0; i < config->n_folders; i++) {
        keep_out_file(config, config->folders[i].account_file, out);
        act_strv_push(out, config->folders[i].name);
    }
}

/* Remembers what the last package of this project was made of. */
static char *index_path(const struct flow *flow, const char *packages)
{
    struct act_sha256 h;
    char hex[ACT_SHA256_HEX];

    act_sha256_init(&h);
    act_sha256_add(&h, flow->config.project_root, strlen(flow->config.project_root));
    act_sha256_done(&h, hex);
    return act_sprintf("%s/index-%.16s", packages, hex);
}

/* Writes the package into the cache, under its own name. */
static int build(struct flow *flow, const struct package_options *options, struct flow_init *io,
                 struct act_error *err)
{
    ACT_AUTOFREE char *packages = flow_packages_dir();
    ACT_AUTOFREE char *index = index_path(flow, packages);

    flow_http(flow);
    return package_write(options, &io->list,
                         &(struct package_output){.engine = flow->engine, .folder = packages, .index = index},
                         &io->package, err);
}

static int exists(struct store *store, const char *key, char etag[STORE_ETAG], uint64_t *out_size,
                  struct act_error *err)
{
    struct store_call head = {.op = STORE_HEAD, .key = key};
    int rc = store_do(store, &head, err);

    memcpy(etag, head.entry.etag, STORE_ETAG);
    *out_size = head.entry.size;
    store_call_release(&head);
    return rc == 0 ? 1 : rc == -ACT_NOT_FOUND && strcmp(err->service_code, "ContainerNotFound") != 0 ? 0 : rc;
}

/* The package itself, once. */
static int store_package(struct flow *flow, struct store *store, struct flow_init *io, struct act_error *err)
{
    ACT_AUTOFREE char *key = flow_package_key(flow, io->package.sha256);
    ACT_AUTOFREE char *packages = flow_packages_dir();
    ACT_AUTOFREE char *name = act_sprintf("%s.zip", io->package.sha256);
    struct transfer_report report = {0};
    struct store *cache;
    char etag[STORE_ETAG];
    uint64_t size;
    int rc = exists(store, key, etag, &size, err);

    if (rc < 0 || (rc == 1 && size == io->package.bytes))
        return rc < 0 ? rc : 0;
    rc = store_folder_open(flow_http(flow), packages, false, &cache, err);
    if (rc < 0)
        return rc;
    struct transfer_path from = {.store = cache, .path = name};
    rc = transfer_copy(flow->engine, &from, store, key, &(struct transfer_options){0}, &report, err);
    transfer_report_release(&report);
    store_free(cache);
    io->uploaded = rc == 0;
    return rc;
}

static int write_pointer(struct flow *flow, struct store *store, const struct flow_init *io, const char *etag,
                         struct act_error *err)
{
    ACT_AUTOFREE char *key = flow_pointer_key(flow);
    CODEC_AUTOJSON json_t *pointer =
        json_pack("{s:i,s:s,s:I,s:s}", "version", 1, "sha256", io->package.sha256, "bytes",
                  (json_int_t)io->package.bytes, "code_path_etag", etag);
    ACT_AUTOFREE char *text = codec_json_line(pointer);

    return flow_put_text(store, key, text, err);
}

/* Whether code_path already is this package. */
static int is_published(struct flow *flow, struct store *store, const struct flow_init *io,
                        struct act_error *err)
{
    ACT_AUTOFREE char *key = flow_pointer_key(flow);
    ACT_AUTOFREE char *text = NULL;
    char etag[STORE_ETAG];
    uint64_t size;
    int rc = flow_get_text(store, key, &text, err);

    if (rc < 0)
        return rc == -ACT_NOT_FOUND ? 0 : rc;
    CODEC_AUTOJSON json_t *pointer = NULL;
    if (codec_json_parse(text, strlen(text), key, &pointer, err) < 0 ||
        strcmp(codec_json_str(pointer, "sha256", ""), io->package.sha256) != 0)
        return 0;
    rc = exists(store, flow->config.code.path, etag, &size, err);
    return rc < 0 ? rc : rc == 1 && strcmp(etag, codec_json_str(pointer, "code_path_etag", "")) == 0;
}

static int publish(struct flow *flow, struct store *store, struct flow_init *io, struct act_error *err)
{
    ACT_AUTOFREE char *key = flow_package_key(flow, io->package.sha256);
    int rc = is_published(flow, store, io, err);

    if (rc != 0)
        return rc < 0 ? rc : 0;
    struct store_call copy = {.op = STORE_COPY, .source = key, .key = flow->config.code.path};
    rc = store_do(store, &copy, err);
    if (rc == 0)
        rc = write_pointer(flow, store, io, copy.entry.etag, err);
    store_call_release(&copy);
    io->published = rc == 0;
    return rc;
}

/* The cache keeps what was used lately. Runs have their own name for their package, so none loses it. */
static void prune_cache(void)
{
    enum { KEPT_S = 30 * 24 * 3600 };
    ACT_AUTOFREE char *packages = flow_packages_dir();
    DIR *d = opendir(packages);
    struct stat st;

    package_sweep(packages);
    for (struct dirent *e; d && (e = readdir(d));)
        if (fstatat(dirfd(d), e->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(st.st_mode) &&
            st.st_mtime < act_now_unix_s() - KEPT_S)
            unlinkat(dirfd(d), e->d_name, 0);
    if (d)
        closedir(d);
}

static int upload_package(struct flow *flow, struct flow_init *io, struct act_error *err)
{
    struct store *store = NULL;
    int rc = flow_store(flow, &flow->config.code, &store, err);

    if (rc == 0)
        rc = store_package(flow, store, io, err);
    if (rc == 0)
        rc = publish(flow, store, io, err);
    store_free(store);
    return rc < 0 ? act_error_prefix(err, "cannot upload the package to '%s'", flow->config.code.path) : 0;
}

int flow_init(struct flow *flow, struct flow_init *io, struct act_error *err)
{
    struct act_strv out = {0};
    int rc;

    kept_out(&flow->config, &out);
    struct package_options options = {
        .root = flow->config.project_root, .zip_options = &flow->config.zip_options, .kept_out = &out};
    rc = package_scan(&options, &io->list, err);
    if (rc == 0 && !io->dry_run)
        rc = build(flow, &options, io, err);
    act_strv_release(&out);
    if (rc < 0)
        return act_error_prefix(err, "cannot pack '%s'", flow->config.project_root);
    if (io->dry_run)
        return 0;
    prune_cache();
    return upload_package(flow, io, err);
}
