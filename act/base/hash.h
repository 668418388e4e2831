/* hash.h - digests (OpenSSL's): SHA-256 names packages, MD5 is what Blob Storage verifies. Also base64 and hex. */
#ifndef ACT_BASE_HASH_H
#define ACT_BASE_HASH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

#define ACT_SHA256_HEX  65 /* 64 digits and NUL */
#define ACT_MD5_BASE64  25 /* 24 characters and NUL */
#define ACT_SHA1_BASE64 29 /* 28 characters and NUL */

/* Lower-case hex of len bytes; out holds 2 * len + 1 bytes. */
void act_hex(const uint8_t *data, size_t len, char *out);
/* Whether the text is len lower-case hex digits and nothing else. */
bool act_is_hex(const char *text, size_t len);

/* A random UUID (RFC 9562, version 4), and whether a text is any UUID, in either case. */
#define ACT_UUID_TEXT 37
void act_uuid(char out[ACT_UUID_TEXT]);
bool act_is_uuid(const char *text);

/* SHA-256 of everything given, as hex; done and bytes begin anew. */
struct act_sha256 {
    uint64_t state[14]; /* OpenSSL's SHA256_CTX, see hash.c */
};
void act_sha256_init(struct act_sha256 *h);
void act_sha256_add(struct act_sha256 *h, const void *data, size_t len);
void act_sha256_done(struct act_sha256 *h, char out[ACT_SHA256_HEX]);
/* The first len (at most 32) bytes of the digest instead. */
void act_sha256_bytes(struct act_sha256 *h, uint8_t *out, size_t len);
int act_sha256_file(const char *path, char out[ACT_SHA256_HEX], struct act_error *err) ACT_NODISCARD;

/* MD5 as base64, the form of the HTTP header Content-MD5 (RFC 1864); done begins anew. */
struct act_md5 {
    uint64_t state[12]; /* OpenSSL's MD5_CTX */
};
void act_md5_init(struct act_md5 *h);
void act_md5_add(struct act_md5 *h, const void *data, size_t len);
void act_md5_done(struct act_md5 *h, char out[ACT_MD5_BASE64]);

/* SHA-1 as base64: what a server of WebSocket proves that it is one by (RFC 6455), and nothing else. */
void act_sha1_base64(const void *data, size_t len, char out[ACT_SHA1_BASE64]);

/* HMAC-SHA-256 as base64. */
char *act_hmac_sha256_base64(const uint8_t *key, size_t key_len, const void *data, size_t len);

/* Whether both texts are the same, compared in constant time. */
bool act_equal_secrets(const char *a, const char *b);

/* Base64 (RFC 4648 section 4) of less than 1 GiB. encode: a new string. decode: a new buffer, NULL when malformed;
 * blanks around the text do not count. */
char *act_base64_encode(const void *data, size_t len);
uint8_t *act_base64_decode(const char *text, size_t *out_len);

/* len random bytes from the kernel. */
void act_random(void *out, size_t len);

#endif
