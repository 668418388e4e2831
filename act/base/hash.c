/* OpenSSL calls its own SHA256_Update() and the like deprecated. They are used on purpose: the first digest of EVP
 * takes a millisecond, as it sets up all of OpenSSL, and every command makes one; in the agent it would be 3.7 MB
 * more instead of 16 kB. The code that computes is the same, and since no provider is asked, MD5 works on hosts in
 * FIPS mode, too. */
#define OPENSSL_SUPPRESS_DEPRECATED
#include "base/hash.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/md5.h>
#include <openssl/sha.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "base/text.h"

_Static_assert(sizeof(SHA256_CTX) <= sizeof(struct act_sha256), "struct act_sha256 holds OpenSSL's state");
_Static_assert(sizeof(MD5_CTX) <= sizeof(struct act_md5), "struct act_md5 holds OpenSSL's state");

static SHA256_CTX *hash_sha256_of(struct act_sha256 *h)
{
    return (SHA256_CTX *)h->state;
}

static MD5_CTX *hash_md5_of(struct act_md5 *h)
{
    return (MD5_CTX *)h->state;
}

void act_hex(const uint8_t *data, size_t len, char *out)
{
    static const char digits[] = "0123456789abcdef";

    for (size_t i = 0; i < len; i++) {
        out[2 * i] = digits[data[i] >> 4];
        out[2 * i + 1] = digits[data[i] & 15];
    }
    out[2 * len] = '\0';
}

bool act_is_hex(const char *text, size_t len)
{
    return strspn(text, "0123456789abcdef") == len && !text[len];
}

void act_uuid(char out[ACT_UUID_TEXT])
{
    uint8_t b[16];
    char hex[2 * sizeof(b) + 1];

    act_random(b, sizeof(b));
    b[6] = (uint8_t)((b[6] & 0x0f) | 0x40);
    b[8] = (uint8_t)((b[8] & 0x3f) | 0x80);
    act_hex(b, sizeof(b), hex);
    snprintf(out, ACT_UUID_TEXT, "%.8s-%.4s-%.4s-%.4s-%.12s", hex, hex + 8, hex + 12, hex + 16, hex + 20);
}

bool act_is_uuid(const char *text)
{
    static const char form[] = "xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx";
    size_t i = 0;

    while (form[i] && (form[i] == '-' ? text[i] == '-' : isxdigit((unsigned char)text[i])))
        i++;
    return !form[i] && !text[i];
}

void act_sha256_init(struct act_sha256 *h)
{
    SHA256_Init(hash_sha256_of(h));
}

void act_sha256_add(struct act_sha256 *h, const void *data, size_t len)
{
    SHA256_Update(hash_sha256_of(h), data, len);
}

void act_sha256_done(struct act_sha256 *h, char out[ACT_SHA256_HEX])
{
    uint8_t digest[SHA256_DIGEST_LENGTH];

    act_sha256_bytes(h, digest, sizeof(digest));
    act_hex(digest, sizeof(digest), out);
}

void act_sha256_bytes(struct act_sha256 *h, uint8_t *out, size_t len)
{
    uint8_t digest[SHA256_DIGEST_LENGTH];

    SHA256_Final(digest, hash_sha256_of(h));
    act_sha256_init(h);
    memcpy(out, digest, len);
}

int act_sha256_file(const char *path, char out[ACT_SHA256_HEX], struct act_error *err)
{
    enum { CHUNK = 1 << 20 };
    struct act_sha256 h;
    ssize_t n;
    int fd = open(path, O_RDONLY | O_CLOEXEC);

    if (fd < 0)
        return act_error_errno(err, errno, "cannot read '%s'", path);
    ACT_AUTOFREE char *chunk = act_alloc(CHUNK);
    act_sha256_init(&h);
    while ((n = read(fd, chunk, CHUNK)) > 0)
        act_sha256_add(&h, chunk, (size_t)n);
    int rc = n < 0 ? act_error_errno(err, errno, "cannot read '%s'", path) : 0;
    act_sha256_done(&h, out);
    close(fd);
    return rc;
}

void act_md5_init(struct act_md5 *h)
{
    MD5_Init(hash_md5_of(h));
}

void act_md5_add(struct act_md5 *h, const void *data, size_t len)
{
    MD5_Update(hash_md5_of(h), data, len);
}

void act_md5_done(struct act_md5 *h, char out[ACT_MD5_BASE64])
{
    uint8_t digest[MD5_DIGEST_LENGTH];

    MD5_Final(digest, hash_md5_of(h));
    act_md5_init(h);
    EVP_EncodeBlock((unsigned char *)out, digest, sizeof(digest));
}

void act_sha1_base64(const void *data, size_t len, char out[ACT_SHA1_BASE64])
{
    uint8_t digest[SHA_DIGEST_LENGTH];
    SHA_CTX sha1;

    SHA1_Init(&sha1);
    SHA1_Update(&sha1, data, len);
    SHA1_Final(digest, &sha1);
    EVP_EncodeBlock((unsigned char *)out, digest, sizeof(digest));
}

/* SHA1() and SHA256() go through EVP, too. */
static void sha256_of_bytes(const uint8_t *data, size_t len, uint8_t digest[SHA256_DIGEST_LENGTH])
{
    struct act_sha256 h;

    act_sha256_init(&h);
    act_sha256_add(&h, data, len);
    act_sha256_bytes(&h, digest, SHA256_DIGEST_LENGTH);
}

/* Computes one of the two digests of an HMAC (RFC 2104), over the bytes of the key XOR with, and the data. */
static void hmac_half(const uint8_t key[SHA256_CBLOCK], uint8_t with, const void *data, size_t len,
                      uint8_t digest[SHA256_DIGEST_LENGTH])
{
    uint8_t pad[SHA256_CBLOCK];
    struct act_sha256 h;

    for (size_t i = 0; i < sizeof(pad); i++)
        pad[i] = key[i] ^ with;
    act_sha256_init(&h);
    act_sha256_add(&h, pad, sizeof(pad));
    act_sha256_add(&h, data, len);
    act_sha256_bytes(&h, digest, SHA256_DIGEST_LENGTH);
    explicit_bzero(pad, sizeof(pad));
    explicit_bzero(&h, sizeof(h));
}

char *act_hmac_sha256_base64(const uint8_t *key, size_t key_len, const void *data, size_t len)
{
    uint8_t block[SHA256_CBLOCK] = {0}, inner[SHA256_DIGEST_LENGTH], digest[SHA256_DIGEST_LENGTH];

    if (key_len > sizeof(block))
        sha256_of_bytes(key, key_len, block);
    else if (key_len)
        memcpy(block, key, key_len);
    hmac_half(block, 0x36, data, len, inner);
    hmac_half(block, 0x5c, inner, sizeof(inner), digest);
    explicit_bzero(block, sizeof(block));
    return act_base64_encode(digest, sizeof(digest));
}

bool act_equal_secrets(const char *a, const char *b)
{
    size_t len = strlen(a);

    return len == strlen(b) && CRYPTO_memcmp(a, b, len) == 0;
}

char *act_base64_encode(const void *data, size_t len)
{
    char *out = act_alloc((len + 2) / 3 * 4 + 1);

    EVP_EncodeBlock((unsigned char *)out, data, (int)len);
    return out;
}

/* EVP_DecodeBlock() takes '=' for zeros anywhere, and returns a multiple of 3 bytes. */
uint8_t *act_base64_decode(const char *text, size_t *out_len)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    static const char blanks[] = " \t\r\n";
    const char *start = text + strspn(text, blanks);
    size_t n = strspn(start, digits), padding = strspn(start + n, "="), len = n + padding;

    if (start[len + strspn(start + len, blanks)] || len % 4 || padding > 2)
        return NULL;
    uint8_t *out = act_alloc(len / 4 * 3 + 1);
    *out_len = len / 4 * 3 - padding;
    EVP_DecodeBlock(out, (const unsigned char *)start, (int)len);
    return out;
}

void act_random(void *out, size_t len)
{
    char *p = out;

    while (len > 0) {
        ssize_t n = getrandom(p, len, 0);
        if (n < 0 && errno != EINTR)
            abort(); /* without the kernel's randomness nothing is safe */
        if (n > 0) {
            p += n;
            len -= (size_t)n;
        }
    }
}
