/* units.h - sizes and durations as people write and read them. */
#ifndef ACT_BASE_UNITS_H
#define ACT_BASE_UNITS_H

#include <stdbool.h>
#include <stdint.h>

#define ACT_UNIT_TEXT 32

/* Writes "12.3 MiB" or "512 B". */
void act_size_to_text(uint64_t bytes, char out[ACT_UNIT_TEXT]);
/* Reads "64M", "8MiB", "1.5G", "500k", "512 B" or "100": a decimal number, then perhaps K, M, G, T or P (powers of
 * 1024, with "iB" after it or not) or B, in any case, with or without a blank before it. A fraction needs such a power
 * and is rounded down to whole bytes. Returns false, and leaves *out_bytes alone, for anything else: signs, exponents,
 * no digits, "10MB" (which means 1000s to some), more than 64 bits. */
bool act_size_from_text(const char *text, uint64_t *out_bytes);

/* Writes "41s", "12m03s", "3h20m" or "2d04h". */
void act_duration_to_text(int64_t seconds, char out[ACT_UNIT_TEXT]);
/* Writes roughly how long it is, in the largest unit: "4 h", "12 min". */
void act_duration_to_words(int64_t seconds, char out[ACT_UNIT_TEXT]);
/* Reads "90", "90s", "15m", "24h" or "7d"; false if text is anything else. */
bool act_duration_from_text(const char *text, int64_t *out_seconds);

/* Reads a quantity as Kubernetes writes it ("16Gi", "500m", "2"), and returns it in thousandths; -1: it is not one.
 * Source: kubernetes.io/docs/reference/kubernetes-api/common-definitions/quantity/. */
int64_t act_quantity_from_text(const char *text);

/* Reads a whole decimal number; false if it does not fit, or anything is before or after it. */
bool act_int_from_text(const char *text, int64_t *out);

#endif
