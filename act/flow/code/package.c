/* package.c - the package that a run is pinned to: the one at code_path, and a verified local copy of it. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/path.h"
#include "codec/json.h"
#include "config/config.h"
#include "flow/code/code_internal.h"
#include "flow/flow_internal.h"

void flow_package_release(struct flow_package *p)
{
    free(p->store);
    free(p->key);
    free(p->file);
    *p = (struct flow_package){0};
}

/* Downloads key to the file path. */
static int package_fetch(struct flow *flow, struct store *store, const char *key, const char *path,
                         struct act_error *err)
{
    ACT_AUTOFREE char *dir = act_path_dirname(path);
    struct transfer_path from = {.store = store, .path = act_strdup(key)};
    struct transfer_report report = {0};
    struct store *to;
    int rc = store_folder_open(flow_http(flow), dir, true, &to, err);

    if (rc == 0) {
        rc = transfer_copy(flow_engine(flow), &from, to, act_path_basename(path), &(struct transfer_options){0},
                           &report, err);
        transfer_report_release(&report);
        store_free(to);
    }
    free(from.path);
    return rc;
}

bool flow_file_is(const char *path, const char *sha256)
{
    char hex[ACT_SHA256_HEX];
    struct act_error ignored;

    return act_sha256_file(path, hex, &ignored) == 0 && strcmp(hex, sha256) == 0;
}

/* Marks it as used, so that the cache keeps it longer. Only once a day, because a process that is sending the file
 * takes a new time for a change. */
static void note_use(const char *file)
{
    enum { DAY_S = 24 * 3600 };
    struct stat st;

    if (stat(file, &st) == 0 && st.st_mtime < act_now_unix_s() - DAY_S)
        utimensat(AT_FDCWD, file, NULL, 0);
}

static int fetch_verified(struct flow *flow, struct store *store, struct flow_package *p, struct act_error *err)
{
    p->file = flow_package_cache(p->sha256);
    if (flow_file_is(p->file, p->sha256)) {
        note_use(p->file);
        return 0;
    }
    unlink(p->file); /* a damaged copy must not pass for an identical one */
    int rc = package_fetch(flow, store, p->key, p->file, err);
    if (rc < 0 || flow_file_is(p->file, p->sha256))
        return rc;
    unlink(p->file);
    return act_error_set(
        err, ACT_FAIL, "the package '%s' in %s is damaged: its SHA-256 is not the one in its name; run 'a init' again",
        p->key, p->store);
}

/* Another tool wrote code_path: what it holds gets its name from its content. */
static int adopt_foreign(struct flow *flow, struct store *store, struct flow_package *p, struct act_error *err)
{
    ACT_AUTOFREE char *dir = flow_packages_dir();
    ACT_AUTOFREE char *temp = act_sprintf("%s/foreign-%d.zip", dir, (int)getpid());

    p->key = act_strdup(flow->config->code.path);
    int rc = package_fetch(flow, store, p->key, temp, err);
    if (rc == 0)
        rc = act_sha256_file(temp, p->sha256, err);
    if (rc < 0)
        return rc;
    p->file = flow_package_cache(p->sha256);
    return rename(temp, p->file) < 0 ? act_error_errno(err, errno, "cannot write '%s'", p->file) : 0;
}

/* The pointer's word, when it still describes code_path. */
static bool pointer_holds(const json_t *pointer, const struct store_entry *code, struct flow_package *p)
{
    const char *sha256 = codec_json_str(pointer, "sha256", "");

    if (!act_is_hex(sha256, ACT_SHA256_HEX - 1) ||
        strcmp(codec_json_str(pointer, "code_path_etag", ""), code->etag) != 0)
        return false;
    memcpy(p->sha256, sha256, ACT_SHA256_HEX);
    return true;
}

int flow_read_pointer(struct flow *flow, struct store *store, json_t **out, struct act_error *err)
{
    ACT_AUTOFREE char *key = flow_pointer_key(flow);
    ACT_AUTOFREE char *text = NULL;
    int rc = flow_get_text(store, key, &text, err);

    *out = NULL;
    if (rc == -ACT_NOT_FOUND)
        return 0;
    if (rc == 0 && codec_json_parse(text, strlen(text), key, out, err) < 0)
        *out = NULL; /* as good as none: code_path itself is asked */
    return rc;
}

static int locate(struct flow *flow, struct store *store, struct flow_package *p, struct act_error *err)
{
    ACT_AUTO(store_call) head = {.op = STORE_HEAD, .key = flow->config->code.path};
    CODEC_AUTOJSON json_t *pointer = NULL;
    int rc = store_do(store, &head, err);

    if (rc == 0)
        rc = flow_read_pointer(flow, store, &pointer, err);
    if (rc == 0) {
        p->bytes = (int64_t)head.entry.size;
        if (pointer && pointer_holds(pointer, &head.entry, p)) {
            p->key = flow_package_key(flow, p->sha256);
            rc = fetch_verified(flow, store, p, err);
        } else {
            rc = adopt_foreign(flow, store, p, err);
        }
    }
    return rc;
}

/* Finds a package, of which out has what is known, in the store of the code. */
static int package_get(struct flow *flow, struct flow_package *out,
                       int (*find)(struct flow *, struct store *, struct flow_package *, struct act_error *),
                       struct act_error *err)
{
    struct store *store;
    int rc = flow_store(flow, &flow->config->code, &store, err);

    if (rc == 0) {
        out->store = act_strdup(store_name(store));
        rc = find(flow, store, out, err);
        store_free(store);
    }
    if (rc < 0)
        flow_package_release(out);
    return rc;
}

int flow_current_package(struct flow *flow, struct flow_package *out, struct act_error *err)
{
    *out = (struct flow_package){0};
    return package_get(flow, out, locate, err);
}

int flow_package_by_key(struct flow *flow, const char *key, const char *sha256, struct flow_package *out,
                        struct act_error *err)
{
    *out = (struct flow_package){.key = act_strdup(key)};
    memcpy(out->sha256, sha256, ACT_SHA256_HEX);
    return package_get(flow, out, fetch_verified, err);
}
