/* crc64.c - CRC-64/NVME.
 *
 * A message is a polynomial over GF(2) and its checksum the remainder modulo P of degree 64. Bits are
 * reflected: in a 64-bit number bit 63 is the coefficient of x^0, so multiplying by x shifts right; of a
 * message the lowest bit of the first byte is the highest coefficient.
 *
 * Three ways to the remainder: bit by bit for the constants; eight bytes at a time by tables; and folding. A
 * block of 128 bits, D bits before the end, may be replaced by anything congruent to it, such as the sum of
 * its two halves multiplied by x^D mod P, which has 128 bits again and is added to the block D bits further
 * on. See Gopal et al., "Fast CRC Computation for Generic Polynomials Using PCLMULQDQ Instruction". The block
 * that is left goes through the tables as if it were the message.
 */
#include "base/crc64.h"

#include <endian.h>
#include <inttypes.h>
#include <openssl/evp.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/text.h"

#define P       UINT64_C(0x9A6C9329AC4BC9B5) /* without its x^64 */
#define X_TO(n) (UINT64_C(1) << (63 - (n)))

enum {
    SLICES = 8, /* bytes per step of the tables, which fill half of a first-level cache */
    BLOCK = 16,
    LANES = 8, /* blocks under way at once: the multiplier's latency times its throughput */
    STRIDE = LANES * BLOCK,
};

/* The factors by which the low and the high half of a block are folded over a distance. */
struct distance {
    uint64_t low, high;
};

static struct {
    uint64_t table[SLICES][256]; /* table[k][b]: byte b, followed by k zero bytes */
    struct distance stride, block;
} shared;
static pthread_once_t shared_once = PTHREAD_ONCE_INIT;

static uint64_t times_x(uint64_t a)
{
    return (a >> 1) ^ (P & -(a & 1));
}

static uint64_t times(uint64_t a, uint64_t b)
{
    uint64_t sum = 0;

    for (uint64_t bit = X_TO(0); bit; bit >>= 1) {
        if (a & bit)
            sum ^= b;
        b = times_x(b);
    }
    return sum;
}

static uint64_t power(uint64_t base, uint64_t exponent)
{
    uint64_t product = X_TO(0);

    for (; exponent; exponent >>= 1) {
        if (exponent & 1)
            product = times(product, base);
        base = times(base, base);
    }
    return product;
}

/* The low half of a block holds the higher coefficients, so it is 64 bits further from the end. Each factor
 * has one x less than the distance, since the product of two reflected 64-bit numbers, read as a reflected
 * 128-bit one, is one x too large. */
static struct distance distance_of(unsigned bits)
{
    return (struct distance){.low = power(X_TO(1), bits + 63), .high = power(X_TO(1), bits - 1)};
}

static void fill_shared(void)
{
    for (unsigned byte = 0; byte < 256; byte++) {
        uint64_t crc = byte;
        for (int bit = 0; bit < 8; bit++)
            crc = times_x(crc);
        shared.table[0][byte] = crc;
    }
    for (int k = 1; k < SLICES; k++)
        for (unsigned byte = 0; byte < 256; byte++) {
            uint64_t crc = shared.table[k - 1][byte];
            shared.table[k][byte] = (crc >> 8) ^ shared.table[0][crc & 255];
        }
    shared.stride = distance_of(STRIDE * 8);
    shared.block = distance_of(BLOCK * 8);
}

/* The functions below take and give the bare remainder: no XOR before and after. */

static uint64_t by_tables(uint64_t crc, const uint8_t *p, size_t len)
{
    for (; len >= SLICES; p += SLICES, len -= SLICES) {
        uint64_t word;
        memcpy(&word, p, sizeof(word));
        word = crc ^ le64toh(word);
        crc = 0;
        for (int k = 0; k < SLICES; k++)
            crc ^= shared.table[SLICES - 1 - k][(word >> (8 * k)) & 255];
    }
    for (; len > 0; p++, len--)
        crc = (crc >> 8) ^ shared.table[0][(crc ^ *p) & 255];
    return crc;
}

#if defined(__x86_64__)
#include <immintrin.h>

#define FOLDS __attribute__((target("pclmul,sse2")))
typedef __m128i block;

static bool can_fold(void)
{
    return __builtin_cpu_supports("pclmul");
}

FOLDS static inline block block_load(const void *p)
{
    return _mm_loadu_si128(p);
}

FOLDS static inline block block_of(uint64_t low, uint64_t high)
{
    return _mm_set_epi64x((long long)high, (long long)low);
}

FOLDS static inline block block_add(block a, block b)
{
    return _mm_xor_si128(a, b);
}

FOLDS static inline block block_move(block b, block factors)
{
    return _mm_xor_si128(_mm_clmulepi64_si128(b, factors, 0x00), _mm_clmulepi64_si128(b, factors, 0x11));
}

#elif defined(__aarch64__) && defined(__AARCH64EL__)
#include <arm_neon.h>
#include <sys/auxv.h>

#define FOLDS __attribute__((target("+crypto")))
typedef uint64x2_t block;

static bool can_fold(void)
{
    return getauxval(AT_HWCAP) & HWCAP_PMULL;
}

FOLDS static inline block block_load(const void *p)
{
    return vreinterpretq_u64_u8(vld1q_u8(p));
}

FOLDS static inline block block_of(uint64_t low, uint64_t high)
{
    return vcombine_u64(vcreate_u64(low), vcreate_u64(high));
}

FOLDS static inline block block_add(block a, block b)
{
    return veorq_u64(a, b);
}

FOLDS static inline block block_move(block b, block factors)
{
    poly128_t low = vmull_p64(vgetq_lane_u64(b, 0), vgetq_lane_u64(factors, 0));
    poly128_t high = vmull_p64(vgetq_lane_u64(b, 1), vgetq_lane_u64(factors, 1));

    return veorq_u64(vreinterpretq_u64_p128(low), vreinterpretq_u64_p128(high));
}
#endif

#ifdef FOLDS
/* Takes whole strides only, at least one. */
FOLDS static uint64_t by_folding(uint64_t crc, const uint8_t *p, size_t len)
{
    const block stride = block_of(shared.stride.low, shared.stride.high);
    const block next = block_of(shared.block.low, shared.block.high);
    const uint8_t *end = p + len;
    block lane[LANES];
    uint8_t rest[BLOCK];

    for (int i = 0; i < LANES; i++)
        lane[i] = block_load(p + BLOCK * i);
    lane[0] = block_add(lane[0], block_of(crc, 0));
    for (p += STRIDE; p < end; p += STRIDE)
        for (int i = 0; i < LANES; i++)
            lane[i] = block_add(block_move(lane[i], stride), block_load(p + BLOCK * i));
    for (int i = 1; i < LANES; i++)
        lane[i] = block_add(block_move(lane[i - 1], next), lane[i]);
    memcpy(rest, &lane[LANES - 1], sizeof(rest));
    return by_tables(0, rest, sizeof(rest));
}
#endif

uint64_t act_crc64_portable(uint64_t crc, const void *data, size_t len)
{
    pthread_once(&shared_once, fill_shared);
    return ~by_tables(~crc, data, len);
}

uint64_t act_crc64(uint64_t crc, const void *data, size_t len)
{
#ifdef FOLDS
    size_t strides = len - len % STRIDE;

    if (strides > 0 && can_fold()) {
        pthread_once(&shared_once, fill_shared);
        crc = ~by_folding(~crc, data, strides);
        data = (const uint8_t *)data + strides;
        len -= strides;
    }
#endif
    return act_crc64_portable(crc, data, len);
}

uint64_t act_crc64_combine(uint64_t a, uint64_t b, uint64_t len_b)
{
    return a ? times(power(X_TO(8), len_b), a) ^ b : b; /* most are of one piece: nothing is before it */
}

void act_crc64_to_base64(uint64_t crc, char out[ACT_CRC64_BASE64])
{
    uint64_t bytes = htole64(crc);

    EVP_EncodeBlock((unsigned char *)out, (const uint8_t *)&bytes, sizeof(bytes));
}

bool act_crc64_from_base64(const char *text, uint64_t *out)
{
    uint64_t crc;
    size_t len = 0;
    ACT_AUTOFREE uint8_t *bytes = act_base64_decode(text, &len);

    if (!bytes || len != sizeof(crc))
        return false;
    memcpy(&crc, bytes, sizeof(crc));
    *out = le64toh(crc);
    return true;
}

void act_crc64_to_hex(uint64_t crc, char out[ACT_CRC64_HEX])
{
    snprintf(out, ACT_CRC64_HEX, "%016" PRIx64, crc);
}

bool act_crc64_from_hex(const char *text, uint64_t *out)
{
    if (strlen(text) != ACT_CRC64_HEX - 1 || strspn(text, "0123456789abcdefABCDEF") != ACT_CRC64_HEX - 1)
        return false;
    *out = strtoull(text, NULL, 16);
    return true;
}
