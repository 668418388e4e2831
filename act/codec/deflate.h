/* deflate.h - bytes that are compressed on their way between two programs of ACT, and what gzip unpacks. */
#ifndef ACT_CODEC_DEFLATE_H
#define ACT_CODEC_DEFLATE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"
#include "base/text.h"

/* Appends len bytes, compressed. False: it is not worth it, and out is as it was. */
bool codec_deflate(const void *data, size_t len, struct act_buf *out);
/* Appends the len bytes that were compressed; what is damaged is -ACT_FAIL. */
int codec_inflate(const struct act_buf *packed, size_t len, struct act_buf *out, struct act_error *err) ACT_NODISCARD;
/* Appends the bytes as a gzip file. False: there is no memory for it. */
bool codec_gzip(const struct act_buf *bytes, struct act_buf *out);

#endif
