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

/* Writes len bytes as lower-case hex; out holds 2 * len + 1 bytes. */
void act_hex(const uint8_t *data, size_t len, char *out);
/* Tells whether text is len lower-case hex digits and nothing else. */
bool act_is_hex(const char *text, size_t len);

/* Makes a random UUID (RFC 9562, version 4). */
#define ACT_UUID_TEXT 37
void act_uuid(char out[ACT_UUID_TEXT]);
/* Tells whether a text is a UUID, of any version and in either case. */
bool act_is_uuid(const char *text);

/* A SHA-256 in the making. act_sha256_done() writes it as hex; it and act_sha256_bytes() leave h as act_sha256_init()
 * does. */
struct act_sha256 {
    uint64_t state[14]; /* OpenSSL's SHA256_CTX, see hash.c */
};
void act_sha256_init(struct act_sha256 *h);
void act_sha256_add(struct act_sha256 *h, const void *data, size_t len);
void act_sha256_done(struct act_sha256 *h, char out[ACT_SHA256_HEX]);
/* Writes the first len (at most 32) bytes of the digest instead. */
void act_sha256_bytes(struct act_sha256 *h, uint8_t *out, size_t len);
/* Writes the digest of a whole file, as hex. */
int act_sha256_file(const char *path, char out[ACT_SHA256_HEX], struct act_error *err) ACT_NODISCARD;

/* An MD5 in the making. act_md5_done() writes it as base64, the form of the HTTP header Content-MD5 (RFC 1864), and
 * leaves h as act_md5_init() does. */
struct act_md5 {
    uint64_t state[12]; /* OpenSSL's MD5_CTX */
};
void act_md5_init(struct act_md5 *h);
void act_md5_add(struct act_md5 *h, const void *data, size_t len);
void act_md5_done(struct act_md5 *h, char out[ACT_MD5_BASE64]);

/* Writes the SHA-1 of data as base64. Only WebSocket uses it (RFC 6455), whose servers prove by it what they are. */
void act_sha1_base64(const void *data, size_t len, char out[ACT_SHA1_BASE64]);

/* Returns the HMAC-SHA-256 of data as base64, a new string. */
char *act_hmac_sha256_base64(const uint8_t *key, size_t key_len, const void *data, size_t len);

/* Compares two texts in constant time. */
bool act_equal_secrets(const char *a, const char *b);

/* Returns len bytes (less than 1 GiB) as base64 (RFC 4648 section 4), a new string. */
char *act_base64_encode(const void *data, size_t len);
/* Decodes base64, with blanks around it or not. Returns a new buffer, or NULL if text is malformed. */
uint8_t *act_base64_decode(const char *text, size_t *out_len);

/* Fills out with len random bytes from the kernel. */
void act_random(void *out, size_t len);

#endif
