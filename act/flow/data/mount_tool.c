/* mount_tool.c - what blobfuse2 and rclone are told. */
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "base/path.h"
#include "codec/json.h"
#include "flow/data/mount.h"
#include "http/http.h"

enum { CACHE_S = 30 }; /* for which a node may not see what another one wrote */

static int cache_s(const struct mount_plan *p)
{
    enum { MOST_S = 24 * 3600 };
    int64_t wanted = p->blob->cache_s;

    return wanted < 0 ? CACHE_S : wanted > MOST_S ? MOST_S : (int)wanted;
}

/* ---- rclone */

#define REMOTE "act"

/* Files are sent as soon as they are closed. The names of remotes that variables or words configure get a hash of that
 * in the cache (fs/newfs.go, extraConfig), and with another SAS nothing would be found there; those of a file do
 * not. */
static void rclone_words(const struct mount_plan *p, struct act_strv *words)
{
    static const char *const fixed[] = {"--vfs-write-back", "1s", "--dir-perms", "0777",  "--file-perms", "0777",
                                        "--poll-interval",  "0",  "--log-level", "NOTICE"};

    act_strv_push(words, "mount");
    act_strv_pushf(words, REMOTE ":%s%s%s", p->blob->container, *p->blob->path ? "/" : "", p->blob->path);
    act_strv_push(words, p->at);
    for (size_t i = 0; i < sizeof(fixed) / sizeof(fixed[0]); i++)
        act_strv_push(words, fixed[i]);
    act_strv_pushf(words, "--config=/proc/self/fd/%d", MOUNT_CONFIG_FD);
    act_strv_pushf(words, "--cache-dir=%s", p->cache);
    act_strv_pushf(words, "--dir-cache-time=%ds", cache_s(p));
    act_strv_push(words, p->read_only ? "--read-only" : "--vfs-cache-mode=writes");
}

static char *rclone_config(const struct mount_plan *p)
{
    const struct flow_blob *b = p->blob;

    return act_sprintf("[" REMOTE "]\ntype = azureblob\nsas_url = %s/%s%s%s\n", b->endpoint, b->container,
                       b->sas ? "?" : "", b->sas ? b->sas : "");
}

/* ---- blobfuse2 */

static void blobfuse_words(const struct mount_plan *p, struct act_strv *words)
{
    act_strv_push(words, "mount");
    act_strv_push(words, p->at);
    act_strv_pushf(words, "--config-file=%s/" MOUNT_CONFIG, p->dir);
    act_strv_push(words, "--foreground");
    if (p->read_only)
        act_strv_push(words, "--read-only");
}

/* JSON is YAML. */
static char *blobfuse_config(const struct mount_plan *p)
{
    const struct flow_blob *b = p->blob;
    ACT_AUTOFREE char *log = act_path_join(p->dir, MOUNT_LOG);
    CODEC_AUTOJSON json_t *root = json_pack(
        "{s:{s:s, s:s, s:s}, s:[s, s, s, s], s:{s:i, s:i, s:i}, s:{s:s, s:i}, s:{s:i}, "
        "s:{s:s, s:s, s:s, s:s, s:s, s:s*}}",
        "logging", "type", "base", "level", "log_err", "file-path", log, "components", "libfuse", "file_cache",
        "attr_cache", "azstorage", "libfuse", "attribute-expiration-sec", cache_s(p), "entry-expiration-sec",
        cache_s(p), "negative-entry-expiration-sec", cache_s(p), "file_cache", "path", p->cache, "timeout-sec",
        cache_s(p), "attr_cache", "timeout-sec", cache_s(p), "azstorage", "type", "block", "account-name", b->account,
        "endpoint", b->endpoint, "container", b->container, "mode", "sas", "sas", b->sas);
    if (*b->path)
        json_object_set_new(json_object_get(root, "azstorage"), "subdirectory", json_string(b->path));
    return codec_json_line(root);
}

/* ---- both */

void mount_words(const struct mount_plan *p, struct act_strv *words)
{
    act_strv_push(words, p->program);
    if (p->tool == MOUNTS_RCLONE)
        rclone_words(p, words);
    else
        blobfuse_words(p, words);
}

/* The value of "sig", as it is in the SAS. New string; NULL: it has none. */
static char *find_signature(const char *sas)
{
    for (const char *at = sas; at && *at; at += *at == '&') {
        size_t n = strcspn(at, "&");
        if (act_starts_with(at, "sig=") && n > strlen("sig="))
            return act_strndup(at + strlen("sig="), n - strlen("sig="));
        at += n;
    }
    return NULL;
}

static void replace_all(char **text, const char *secret)
{
    struct act_buf out = {0};
    const char *from = *text;
    size_t n = strlen(secret);

    while (*from) {
        bool is_it = strncasecmp(from, secret, n) == 0;
        act_buf_adds(&out, is_it ? "REDACTED" : (char[]){*from, '\0'});
        from += is_it ? n : 1;
    }
    free(*text);
    *text = act_buf_steal(&out);
}

/* The signature may be written as it was given, decoded, or encoded with either case of the hexadecimal digits. */
char *mount_redact(const struct mount_plan *p, const char *text)
{
    ACT_AUTOFREE char *shown = act_strdup(text);
    ACT_AUTOFREE char *given = p->blob->sas ? find_signature(p->blob->sas) : NULL;

    if (given) {
        ACT_AUTOFREE char *plain = http_decode(given);
        ACT_AUTOFREE char *encoded = http_encode(plain, false);
        ACT_AUTOFREE char *twice = http_encode(encoded, false);
        const char *const all[] = {twice, encoded, given, plain};
        for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
            replace_all(&shown, all[i]);
    }
    return http_redact_text(shown);
}

char *mount_config(const struct mount_plan *p)
{
    return p->tool == MOUNTS_RCLONE ? rclone_config(p) : blobfuse_config(p);
}
