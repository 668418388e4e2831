/* cache.c - tokens.json, which the processes of a user share.
 *
 *   {"version": 1,
 *    "tokens": {"<key>": {"access_token": "...", "expires_on": 1, "refresh_on": 1}},
 *    "logins": {"<authority>": {"tenant": "...", "client": "...", "refresh_token": "..."}}}
 *
 * It is replaced as a whole. A file that cannot be read, or that others could have read or written, counts as empty
 * and is replaced with the next token.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "auth/token_internal.h"
#include "base/clock.h"
#include "base/dirs.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/log.h"
#include "base/path.h"
#include "codec/json.h"

enum {
    MAX_BYTES = 4 << 20,
    VERSION = 1,
    LOCK_TRIES = 100, /* for the moment of a replacement */
    LOCK_PAUSE_MS = 20,
};

/* Returns the path of a file beside the cache, a new string. */
static char *file_name(const char *name)
{
    ACT_AUTOFREE char *dir = act_cache_dir();

    return act_path_join(dir, name);
}

static void warn_once(const char *text)
{
    static atomic_flag warned = ATOMIC_FLAG_INIT;

    if (!atomic_flag_test_and_set(&warned))
        act_warn("%s", text);
}

/* ---- reading ---- */

/* Tells whether only this user can have read and written it. */
static bool cache_is_private(const char *path, const struct stat *st)
{
    if (S_ISREG(st->st_mode) && st->st_uid == geteuid() && (st->st_mode & 077) == 0)
        return true;
    ACT_AUTOFREE char *text = act_sprintf("'%s' is not used: it is not a file that only you can read and write; "
                                          "the next login replaces it",
                                          path);
    warn_once(text);
    return false;
}

static json_t *empty_cache(void)
{
    return json_pack("{s:i, s:{}, s:{}}", "version", VERSION, "tokens", "logins");
}

static bool is_cache(const json_t *cache)
{
    return codec_json_int(cache, "version", 0) == VERSION && json_is_object(json_object_get(cache, "tokens")) &&
           json_is_object(json_object_get(cache, "logins"));
}

/* Returns the current cache, a new reference; an empty one if it is missing or unusable. */
static json_t *read_cache(void)
{
    ACT_AUTOFREE char *path = file_name("tokens.json");
    struct act_error err;
    json_t *cache = NULL;
    struct stat st;

    if (lstat(path, &st) < 0 || !cache_is_private(path, &st))
        return empty_cache();
    if (codec_json_read(path, MAX_BYTES, &cache, &err) == 0 && is_cache(cache))
        return cache;
    json_decref(cache);
    act_trace("auth", "'%s' is damaged and counts as empty", path);
    return empty_cache();
}

/* ---- writing ---- */

static void cache_pause_ms(long ms)
{
    nanosleep(&(struct timespec){.tv_nsec = ms * 1000000}, NULL);
}

/* Keeps two processes from reading, changing and writing at the same time. One that hangs must not stop others: without
 * the lock a token is lost at worst. */
static int lock_file(void)
{
    ACT_AUTOFREE char *path = file_name("tokens.lock");
    int fd = -ACT_TEMPORARY;

    for (int i = 0; i < LOCK_TRIES && fd == -ACT_TEMPORARY; i++) {
        if (i > 0)
            cache_pause_ms(LOCK_PAUSE_MS);
        fd = act_lock(path, false, NULL);
    }
    return fd;
}

static int cache_make_folder(struct act_error *err)
{
    ACT_AUTOFREE char *dir = act_cache_dir();

    return act_mkdir_all(dir, 0700, err);
}

static void cache_drop_ended(json_t *tokens)
{
    int64_t now_s = act_now_unix_s();
    const char *key;
    json_t *token;
    void *next;

    json_object_foreach_safe(tokens, next, key, token)
    {
        if (token_number(json_object_get(token, "expires_on")) <= now_s)
            json_object_del(tokens, key);
    }
}

/* Reads the cache, lets change() change it, and replaces it. */
static int update(void (*change)(json_t *cache, void *arg), void *arg, struct act_error *err)
{
    ACT_AUTOFREE char *path = file_name("tokens.json");
    int rc = cache_make_folder(err);

    if (rc < 0)
        return rc;
    int lock = lock_file();
    CODEC_AUTOJSON json_t *cache = read_cache();
    cache_drop_ended(json_object_get(cache, "tokens"));
    change(cache, arg);
    rc = codec_json_write(path, cache, 0600, err);
    if (lock >= 0)
        close(lock);
    return rc;
}

/* ---- tokens ---- */

bool token_cache_get(const char *key, struct token *out)
{
    CODEC_AUTOJSON json_t *cache = read_cache();
    const json_t *entry = json_object_get(json_object_get(cache, "tokens"), key);
    const char *text = codec_json_str(entry, "access_token", NULL);
    int64_t expires_s = token_number(json_object_get(entry, "expires_on"));
    int64_t refresh_s = token_number(json_object_get(entry, "refresh_on"));

    if (!text || expires_s <= act_now_unix_s() || refresh_s > expires_s)
        return false;
    token_release(out);
    *out = (struct token){.text = act_strdup(text), .expires_s = expires_s, .refresh_s = refresh_s};
    return true;
}

struct cache_entry {
    const char *key;
    const struct token *token;
};

static void put_token(json_t *cache, void *arg)
{
    const struct cache_entry *entry = arg;
    const struct token *token = entry->token;

    json_object_set_new(json_object_get(cache, "tokens"), entry->key,
                        json_pack("{s:s, s:I, s:I}", "access_token", token->text, "expires_on",
                                  (json_int_t)token->expires_s, "refresh_on", (json_int_t)token->refresh_s));
}

int token_cache_put(const char *key, const struct token *token, struct act_error *err)
{
    struct act_error why = {0};
    int rc = update(put_token, &(struct cache_entry){.key = key, .token = token}, &why);

    if (rc < 0) {
        act_error_prefix(&why, "the login is not kept for the next command");
        warn_once(act_error_text(&why));
        if (err)
            *err = why;
    }
    return rc;
}

static void drop_token(json_t *cache, void *arg)
{
    const struct cache_entry *entry = arg;
    json_t *tokens = json_object_get(cache, "tokens");

    if (act_streq(codec_json_str(json_object_get(tokens, entry->key), "access_token", ""), entry->token->text))
        json_object_del(tokens, entry->key);
}

void token_cache_drop(const char *key, const char *text)
{
    ACT_AUTO(token) token = {.text = act_strdup(text)}, there = {0};
    struct act_error err;

    if (token_cache_get(key, &there) && strcmp(there.text, text) == 0 &&
        update(drop_token, &(struct cache_entry){.key = key, .token = &token}, &err) < 0)
        act_trace("auth", "cannot drop a token: %s", act_error_text(&err));
}

/* ---- logins ---- */

bool token_cache_get_grant(const char *authority, struct token_grant *out)
{
    CODEC_AUTOJSON json_t *cache = read_cache();
    const json_t *entry = json_object_get(json_object_get(cache, "logins"), authority);
    const char *tenant = codec_json_str(entry, "tenant", NULL), *client = codec_json_str(entry, "client", NULL);
    const char *text = codec_json_str(entry, "refresh_token", NULL);

    if (!tenant || !client || !text || !token_tenant_is_valid(tenant))
        return false;
    token_grant_release(out);
    *out = (struct token_grant){
        .tenant = act_strdup(tenant), .client = act_strdup(client), .refresh_token = act_strdup(text)};
    return true;
}

struct grant_entry {
    const char *authority;
    const struct token_grant *grant;
    bool is_new;
};

/* Tokens of the previous login do not belong to this one. */
static void drop_tokens_of(json_t *tokens, const struct token_source *source, const char *authority)
{
    ACT_AUTOFREE char *prefix = act_sprintf("%s|%s|", source->name, authority);
    const char *key;
    json_t *token;
    void *next;

    json_object_foreach_safe(tokens, next, key, token)
    {
        if (act_starts_with(key, prefix))
            json_object_del(tokens, key);
    }
}

static void put_grant(json_t *cache, void *arg)
{
    const struct grant_entry *entry = arg;
    const struct token_grant *grant = entry->grant;

    if (entry->is_new)
        drop_tokens_of(json_object_get(cache, "tokens"), &token_device, entry->authority);
    json_object_set_new(json_object_get(cache, "logins"), entry->authority,
                        json_pack("{s:s, s:s, s:s}", "tenant", grant->tenant, "client", grant->client, "refresh_token",
                                  grant->refresh_token));
}

int token_cache_put_grant(const char *authority, const struct token_grant *grant, bool is_new, struct act_error *err)
{
    return update(put_grant, &(struct grant_entry){.authority = authority, .grant = grant, .is_new = is_new}, err);
}

int token_forget_all(bool dry_run, bool *out_had, struct act_error *err)
{
    ACT_AUTOFREE char *path = file_name("tokens.json");

    *out_had = (dry_run ? access(path, F_OK) : unlink(path)) == 0;
    if (!*out_had && errno != ENOENT)
        return act_error_errno(err, errno, "cannot remove '%s'", path);
    return 0;
}

/* ---- the lock of a refresh ---- */

int token_cache_lock(const char *what, struct act_error *err)
{
    char hash[ACT_SHA256_HEX];
    struct act_sha256 h;
    int rc = cache_make_folder(err);

    if (rc < 0)
        return rc;
    act_sha256_init(&h);
    act_sha256_add(&h, what, strlen(what));
    act_sha256_done(&h, hash);
    ACT_AUTOFREE char *name = act_sprintf("tokens-%.16s.lock", hash);
    ACT_AUTOFREE char *path = file_name(name);
    return act_lock(path, false, err);
}
