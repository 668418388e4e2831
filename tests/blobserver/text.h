/* text.h - growing text, and the encodings of the Blob service: percent, base64, dates, CRC-64. */
#ifndef BLOBSERVER_TEXT_H
#define BLOBSERVER_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define COUNT(array) (sizeof(array) / sizeof(*(array)))

/* Never NULL: ends the program when there is no memory. */
void *need(void *memory);

/* NUL-terminated, so that s is a string once something was added. Zeroes are an empty one. */
struct text {
    char *s;
    size_t n, cap;
};

void text_room(struct text *t, size_t more);
void text_add(struct text *t, const void *data, size_t n);
void text_str(struct text *t, const char *s);
void text_addf(struct text *t, const char *format, ...) __attribute__((format(printf, 2, 3)));
void text_number(struct text *t, uint64_t number);
/* s as the content of an XML element. */
void text_xml(struct text *t, const char *s);
void text_clear(struct text *t);
void text_free(struct text *t);

/* Decodes %XX of n bytes into out, which must have room for n + 1; ends it with NUL. plus: '+' is a space. Returns the
 * length, or -1 for a broken escape or one of NUL. */
long percent_decode(const char *s, size_t n, bool plus, char *out);

/* out must have room for 4 * ((n + 2) / 3) + 1. */
void base64_encode(const void *data, size_t n, char *out);
/* Returns the length, or -1 when s is no base64 or needs more than cap bytes. */
long base64_decode(const char *s, void *out, size_t cap);

enum { RFC1123 = 30 };
/* "Fri, 20 Nov 2026 09:00:00 GMT" */
void date_http(int64_t when, char out[RFC1123]);
/* Seconds since 1970 of an HTTP date, or of an ISO 8601 date in UTC; -1 when it is none. */
int64_t date_parse(const char *s);

/* CRC-64/NVME, the one of x-ms-content-crc64. Start with crc 0; continue with what came back. */
uint64_t crc64(uint64_t crc, const void *data, size_t n);
/* Must have been called once before crc64. */
void crc64_init(void);

/* Checksums as headers have them, in base64. */
void md5_base64(const void *data, size_t n, char out[25]);
void crc64_base64(const void *data, size_t n, char out[13]);

/* Monotonic milliseconds. */
int64_t monotonic_ms(void);

#endif
