/* frame.h - the protocol of a connection to a site: a line of compact JSON, which says how many parts of how many
 * bytes follow:   {"op":"write","id":"...","name":"job.json","parts":[14]}\n{"job":"1234"} In the place of a number,
 * [packed, bytes] is a part that is compressed. The other end is never trusted: lines and parts are bounded.
 */
#ifndef ACT_SITE_FRAME_H
#define ACT_SITE_FRAME_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/text.h"

enum { CHANNEL_BUFFER = 64 * 1024, FRAME_HEAD_MAX = 32 << 20, FRAME_PARTS = 2 };

struct channel {
    int in_fd, out_fd;
    int64_t deadline_ms;  /* for reading, by the monotonic clock; 0: none */
    bool ended;           /* the other side has closed its end */
    bool reads_early;     /* what comes while it writes is read, so that the other side, which writes, is never stuck */
    struct act_buf early; /* that, from early_pos on, at most 64 MiB */
    size_t early_pos;
    size_t pos, len; /* what was read and not yet taken */
    char buffer[CHANNEL_BUFFER];
};

/* All of these return -ACT_TEMPORARY, with err->network, if the other side or the connection has ended, and -ACT_FAIL
 * for a malformed frame. err is not NULL. */

/* Reads a line of at most max bytes, without its end; a NUL follows. */
int channel_read_line(struct channel *c, size_t max, struct act_buf *out, struct act_error *err) ACT_NODISCARD;
/* Passes over all bytes up to the mark, and the mark; more than max before it is -ACT_FAIL. The first byte of the mark
 * is in no other place of it. */
int channel_skip_to(struct channel *c, const char *mark, size_t max, struct act_error *err) ACT_NODISCARD;
/* Reads from 1 to len bytes. */
int channel_read_some(struct channel *c, void *data, size_t len, size_t *out_got, struct act_error *err) ACT_NODISCARD;
/* Tells whether something has come that was not taken. If not, waits for it at most wait_ms, or until more_fd can be
 * read (-1: there is none). */
bool channel_is_ready(const struct channel *c, int more_fd, int wait_ms);
/* Closes both ends. */
void channel_close(struct channel *c);
/* Writes len bytes. With reads_early it ends with -ACT_TEMPORARY if the other side takes and sends nothing for two
 * minutes, and with -ACT_FAIL if it sends more than 64 MiB meanwhile. */
int channel_write(struct channel *c, const void *data, size_t len, struct act_error *err) ACT_NODISCARD;

struct frame_part {
    const void *data;
    size_t len;
};
/* Writes a frame: head, whose reference it takes, and n parts. */
int frame_write(struct channel *c, json_t *head, const struct frame_part *parts, size_t n,
                struct act_error *err) ACT_NODISCARD;

struct frame {
    json_t *head; /* an object */
    struct act_buf parts[FRAME_PARTS];
    size_t n_parts;
};
/* Reads a frame with at most max bytes in its parts. Release it in every case. */
int frame_read(struct channel *c, size_t max, struct frame *out, struct act_error *err) ACT_NODISCARD;
void frame_release(struct frame *frame);

#endif
