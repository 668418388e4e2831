#include "text.h"

#include <openssl/evp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

void *need(void *memory)
{
    if (!memory) {
        fputs("blobserver: out of memory\n", stderr);
        abort();
    }
    return memory;
}

void text_room(struct text *t, size_t more)
{
    if (t->n + more + 1 <= t->cap)
        return;
    t->cap = (t->n + more + 1) * 2;
    t->s = need(realloc(t->s, t->cap));
}

void text_add(struct text *t, const void *data, size_t n)
{
    text_room(t, n);
    if (n)
        memcpy(t->s + t->n, data, n);
    t->n += n;
    t->s[t->n] = '\0';
}

void text_str(struct text *t, const char *s)
{
    text_add(t, s, strlen(s));
}

void text_addf(struct text *t, const char *format, ...)
{
    va_list args, again;

    va_start(args, format);
    va_copy(again, args);
    text_room(t, 120);
    int n = vsnprintf(t->s + t->n, t->cap - t->n, format, args);
    if (t->n + (size_t)n + 1 > t->cap) {
        text_room(t, (size_t)n);
        vsnprintf(t->s + t->n, t->cap - t->n, format, again);
    }
    t->n += (size_t)n;
    va_end(again);
    va_end(args);
}

void text_number(struct text *t, uint64_t number)
{
    char digits[20];
    size_t at = sizeof(digits);

    do
        digits[--at] = (char)('0' + number % 10);
    while (number /= 10);
    text_add(t, digits + at, sizeof(digits) - at);
}

void text_xml(struct text *t, const char *s)
{
    for (;;) {
        size_t plain = strcspn(s, "&<>\r");
        text_add(t, s, plain);
        s += plain;
        switch (*s++) {
        case '&':
            text_str(t, "&amp;");
            break;
        case '<':
            text_str(t, "&lt;");
            break;
        case '>':
            text_str(t, "&gt;");
            break;
        case '\r':
            text_str(t, "&#xD;");
            break;
        default:
            return;
        }
    }
}

void text_clear(struct text *t)
{
    t->n = 0;
}

void text_free(struct text *t)
{
    free(t->s);
    *t = (struct text){0};
}

static int hex(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    c |= 0x20;
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

long percent_decode(const char *s, size_t n, bool plus, char *out)
{
    char *start = out;

    for (size_t i = 0; i < n; i++) {
        if (s[i] != '%') {
            *out++ = plus && s[i] == '+' ? ' ' : s[i];
            continue;
        }
        if (n - i < 3 || hex(s[i + 1]) < 0 || hex(s[i + 2]) < 0)
            return -1;
        *out = (char)(hex(s[i + 1]) * 16 + hex(s[i + 2]));
        if (!*out++)
            return -1;
        i += 2;
    }
    *out = '\0';
    return out - start;
}

void base64_encode(const void *data, size_t n, char *out)
{
    EVP_EncodeBlock((unsigned char *)out, data, (int)n);
}

long base64_decode(const char *s, void *out, size_t cap)
{
    size_t n = strlen(s), digits = strcspn(s, "= \t\r\n"), padding = n - digits, got = n / 4 * 3 - padding;

    if (n % 4 || padding > 2 || strspn(s + digits, "=") != padding || got > cap)
        return -1;
    uint8_t *room = need(malloc(n / 4 * 3 + 1));
    bool fine = EVP_DecodeBlock(room, (const unsigned char *)s, (int)n) >= 0;
    if (fine)
        memcpy(out, room, got);
    free(room);
    return fine ? (long)got : -1;
}

void date_http(int64_t when, char out[RFC1123])
{
    static const char days[][4] = {"Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"};
    static const char months[][4] = {"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                     "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
    struct tm tm;

    gmtime_r(&when, &tm);
    snprintf(out, RFC1123, "%s, %02u %s %04u %02u:%02u:%02u GMT", days[tm.tm_wday], (unsigned)tm.tm_mday % 100,
             months[tm.tm_mon], (unsigned)(tm.tm_year + 1900) % 10000, (unsigned)tm.tm_hour % 100,
             (unsigned)tm.tm_min % 100, (unsigned)tm.tm_sec % 100);
}

int64_t date_parse(const char *s)
{
    static const char *const formats[] = {"%a, %d %b %Y %H:%M:%S GMT", "%Y-%m-%dT%H:%M:%SZ", "%Y-%m-%dT%H:%MZ",
                                          "%Y-%m-%d"};

    for (size_t i = 0; i < COUNT(formats); i++) {
        struct tm tm = {0};
        const char *end = strptime(s, formats[i], &tm);
        if (end && !*end)
            return timegm(&tm);
    }
    return -1;
}

static uint64_t tables[8][256];

void crc64_init(void)
{
    for (unsigned i = 0; i < 256; i++) {
        uint64_t crc = i;
        for (int bit = 0; bit < 8; bit++)
            crc = (crc >> 1) ^ (crc & 1 ? UINT64_C(0x9A6C9329AC4BC9B5) : 0);
        tables[0][i] = crc;
    }
    for (unsigned i = 0; i < 256; i++)
        for (unsigned t = 1; t < 8; t++)
            tables[t][i] = (tables[t - 1][i] >> 8) ^ tables[0][tables[t - 1][i] & 0xff];
}

uint64_t crc64(uint64_t crc, const void *data, size_t n)
{
    const uint8_t *p = data;

    crc = ~crc;
    for (; n >= 8; n -= 8, p += 8) {
        uint64_t word;
        memcpy(&word, p, 8);
        word ^= crc;
        crc = 0;
        for (unsigned i = 0; i < 8; i++)
            crc ^= tables[7 - i][(word >> (8 * i)) & 0xff];
    }
    for (; n; n--, p++)
        crc = (crc >> 8) ^ tables[0][(crc ^ *p) & 0xff];
    return ~crc;
}

void md5_base64(const void *data, size_t n, char out[25])
{
    uint8_t digest[EVP_MAX_MD_SIZE];
    unsigned len = 0;

    EVP_Digest(data, n, digest, &len, EVP_md5(), NULL);
    base64_encode(digest, len, out);
}

void crc64_base64(const void *data, size_t n, char out[13])
{
    uint64_t crc = crc64(0, data, n);

    base64_encode(&crc, sizeof(crc), out);
}

int64_t monotonic_ms(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}
