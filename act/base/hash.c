#include "base/hash.h"

#include <errno.h>
#include <fcntl.h>
#include <nettle/base64.h>
#include <nettle/hmac.h>
#include <nettle/memops.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "base/text.h"

void act_hex(const uint8_t *data, size_t len, char *out)
{
    static const char digits[] = "0123456789abcdef";

    for (size_t i = 0; i < len; i++) {
        out[2 * i] = digits[data[i] >> 4];
        out[2 * i + 1] = digits[data[i] & 15];
    }
    out[2 * len] = '\0';
}

void act_sha256_init(struct act_sha256 *h)
{
    sha256_init(&h->state);
}

void act_sha256_add(struct act_sha256 *h, const void *data, size_t len)
{
    sha256_update(&h->state, len, data);
}

void act_sha256_done(struct act_sha256 *h, char out[ACT_SHA256_HEX])
{
    uint8_t digest[SHA256_DIGEST_SIZE];

    sha256_digest(&h->state, sizeof(digest), digest);
    act_hex(digest, sizeof(digest), out);
}

void act_sha256_bytes(struct act_sha256 *h, uint8_t *out, size_t len)
{
    sha256_digest(&h->state, len, out);
}

int act_sha256_file(const char *path, char out[ACT_SHA256_HEX], struct act_error *err)
{
    enum { CHUNK = 1 << 20 };
    struct act_sha256 h;
    ssize_t n;
    int fd = open(path, O_RDONLY | O_CLOEXEC);

    if (fd < 0)
        return act_error_errno(err, errno, "cannot read '%s'", path);
    char *chunk = act_alloc(CHUNK);
    act_sha256_init(&h);
    while ((n = read(fd, chunk, CHUNK)) > 0)
        act_sha256_add(&h, chunk, (size_t)n);
    int rc = n < 0 ? act_error_errno(err, errno, "cannot read '%s'", path) : 0;
    act_sha256_done(&h, out);
    free(chunk);
    close(fd);
    return rc;
}

void act_md5_init(struct act_md5 *h)
{
    md5_init(&h->state);
}

void act_md5_add(struct act_md5 *h, const void *data, size_t len)
{
    md5_update(&h->state, len, data);
}

void act_md5_done(struct act_md5 *h, char out[ACT_MD5_BASE64])
{
    uint8_t digest[MD5_DIGEST_SIZE];

    md5_digest(&h->state, sizeof(digest), digest);
    base64_encode_raw(out, sizeof(digest), digest);
    out[ACT_MD5_BASE64 - 1] = '\0';
}

char *act_hmac_sha256_base64(const uint8_t *key, size_t key_len, const void *data, size_t len)
{
    struct hmac_sha256_ctx h;
    uint8_t digest[SHA256_DIGEST_SIZE];

    hmac_sha256_set_key(&h, key_len, key);
    hmac_sha256_update(&h, len, data);
    hmac_sha256_digest(&h, sizeof(digest), digest);
    explicit_bzero(&h, sizeof(h));
    return act_base64_encode(digest, sizeof(digest));
}

bool act_equal_secrets(const char *a, const char *b)
{
    size_t len = strlen(a);

    return len == strlen(b) && memeql_sec(a, b, len);
}

char *act_base64_encode(const void *data, size_t len)
{
    char *out = act_alloc(BASE64_ENCODE_RAW_LENGTH(len) + 1);

    base64_encode_raw(out, len, data);
    out[BASE64_ENCODE_RAW_LENGTH(len)] = '\0';
    return out;
}

uint8_t *act_base64_decode(const char *text, size_t *out_len)
{
    struct base64_decode_ctx ctx;
    size_t len = strlen(text);
    uint8_t *out = act_alloc(BASE64_DECODE_LENGTH(len) + 1);

    *out_len = BASE64_DECODE_LENGTH(len);
    base64_decode_init(&ctx);
    if (!base64_decode_update(&ctx, out_len, out, len, text) || !base64_decode_final(&ctx)) {
        free(out);
        return NULL;
    }
    return out;
}

void act_random(void *out, size_t len)
{
    char *p = out;

    while (len > 0) {
        ssize_t n = getrandom(p, len, 0);
        if (n < 0 && errno != EINTR)
            abort(); /* the kernel has no randomness: nothing can be done safely */
        if (n > 0) {
            p += n;
            len -= (size_t)n;
        }
    }
}
