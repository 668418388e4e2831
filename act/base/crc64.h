/* crc64.h - CRC-64/NVME, the checksum that Blob Storage verifies (x-ms-content-crc64): reflected polynomial
 * 0x9A6C9329AC4BC9B5, start value and final XOR all ones, check value of "123456789" 0xAE8B14860A799888.
 *
 * Unlike a cryptographic hash it can be combined: the checksum of a whole follows from those of its parts,
 * computed in any order and on any thread. It finds every burst of up to 64 wrong bits; it does not resist
 * forgery.
 *
 * Any thread. Nothing here fails or keeps memory.
 */
#ifndef ACT_BASE_CRC64_H
#define ACT_BASE_CRC64_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define ACT_CRC64_BASE64 13 /* 12 characters and NUL */
#define ACT_CRC64_HEX    17 /* 16 digits and NUL */

/* Continues the checksum crc with len bytes. 0 is the checksum of nothing. Uses carry-less multiplication where the
 * processor has it (x86-64 PCLMULQDQ, ARMv8 PMULL). */
uint64_t act_crc64(uint64_t crc, const void *data, size_t len);

/* Computes the same with tables only, for other processors and to test the fast way against. */
uint64_t act_crc64_portable(uint64_t crc, const void *data, size_t len);

/* Returns the checksum of A followed by B, from the checksums a of A and b of B, and the length of B in bytes. */
uint64_t act_crc64_combine(uint64_t a, uint64_t b, uint64_t len_b);

/* Writes crc as the header x-ms-content-crc64 has it: base64 of the eight bytes, the lowest first. */
void act_crc64_to_base64(uint64_t crc, char out[ACT_CRC64_BASE64]);
/* Reads that form. Returns false, and leaves *out alone, if text is anything else. */
bool act_crc64_from_base64(const char *text, uint64_t *out);

/* Writes crc as 16 lower-case hex digits. act_crc64_from_hex() reads them in either case. */
void act_crc64_to_hex(uint64_t crc, char out[ACT_CRC64_HEX]);
bool act_crc64_from_hex(const char *text, uint64_t *out);

#endif
