/* events.c - records first, then the fields of Protocol Buffers in them
 * (protobuf.dev/programming-guides/encoding). */
#include "numbers/events.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "numbers/numbers_internal.h"

enum { HEAD = 12, TAIL = 4 /* bytes before and behind the data of a record */ };

struct events {
    void (*take)(void *arg, const struct events_scalar *scalar);
    void *arg;
    uint8_t *record; /* with its head and tail; room for EVENTS_RECORD bytes of data */
    size_t n;        /* bytes of it that are there */
    uint64_t skip;   /* bytes of a record that is too large */
    uint64_t damaged;
    bool is_lost; /* where the next record begins is not known */
};

struct events *events_new(void (*take)(void *arg, const struct events_scalar *scalar), void *arg)
{
    struct events *e = act_calloc(1, sizeof(*e));

    e->take = take;
    e->arg = arg;
    e->record = act_alloc(HEAD + EVENTS_RECORD + TAIL);
    return e;
}

void events_free(struct events *e)
{
    if (!e)
        return;
    free(e->record);
    free(e);
}

bool events_is_file(const char *path)
{
    const char *slash = strrchr(path, '/');

    return strstr(slash ? slash + 1 : path, ".tfevents.") != NULL;
}

/* ---- numbers of bytes, little endian */

static uint64_t events_number(const uint8_t *bytes, size_t n)
{
    uint64_t value = 0;

    for (size_t i = n; i > 0; i--)
        value = value << 8 | bytes[i - 1];
    return value;
}

static double events_double(const uint8_t *bytes)
{
    uint64_t bits = events_number(bytes, 8);
    double value;

    memcpy(&value, &bits, sizeof(value));
    return value;
}

static double events_float(const uint8_t *bytes)
{
    uint32_t bits = (uint32_t)events_number(bytes, 4);
    float value;

    memcpy(&value, &bits, sizeof(value));
    return (double)value;
}

/* Returns the masked CRC-32C (reflected polynomial 0x82f63b78). */
static uint32_t events_checksum(const uint8_t *bytes, size_t len)
{
    static uint32_t table[256];
    uint32_t crc = ~0U;

    for (uint32_t i = 0; table[255] == 0 && i < 256; i++) {
        uint32_t value = i;
        for (int bit = 0; bit < 8; bit++)
            value = value & 1 ? value >> 1 ^ 0x82f63b78 : value >> 1;
        table[i] = value;
    }
    for (size_t i = 0; i < len; i++)
        crc = crc >> 8 ^ table[(crc ^ bytes[i]) & 0xff];
    crc = ~crc;
    return (crc >> 15 | crc << 17) + 0xa282ead8;
}

/* ---- fields */

/* The rest of a message. */
struct message {
    const uint8_t *at, *end;
};

struct message_field {
    uint32_t number;
    enum { WIRE_VARINT, WIRE_FIXED64, WIRE_BYTES, WIRE_FIXED32 = 5 } wire;
    uint64_t varint;
    struct message bytes; /* of all but a varint */
};

static bool events_varint(struct message *m, uint64_t *out)
{
    *out = 0;
    for (unsigned shift = 0; m->at < m->end && shift < 64; shift += 7) {
        uint8_t byte = *m->at++;
        *out |= (uint64_t)(byte & 0x7f) << shift;
        if (!(byte & 0x80))
            return true;
    }
    return false;
}

/* Takes the next field; false: there is none, or the rest is no message. */
static bool events_field(struct message *m, struct message_field *out)
{
    uint64_t key, len;

    *out = (struct message_field){0};
    if (!events_varint(m, &key) || key >> 3 == 0 || key >> 3 > UINT32_MAX)
        return false;
    out->number = (uint32_t)(key >> 3);
    out->wire = key & 7;
    switch (out->wire) {
    case WIRE_VARINT:
        return events_varint(m, &out->varint);
    case WIRE_FIXED64:
        len = 8;
        break;
    case WIRE_FIXED32:
        len = 4;
        break;
    case WIRE_BYTES:
        if (!events_varint(m, &len))
            return false;
        break;
    default:
        return false;
    }
    if (len > (size_t)(m->end - m->at))
        return false;
    out->bytes = (struct message){m->at, m->at + len};
    m->at += len;
    return true;
}

static bool events_is(const struct message_field *f, uint32_t number, unsigned wire)
{
    return f->number == number && (unsigned)f->wire == wire;
}

/* ---- a scalar */

/* Reads the one number of a tensor: in tensor_content (4), float_val (5) or double_val (6), packed or not. */
static bool events_tensor(struct message m, double *out)
{
    enum { DT_FLOAT = 1, DT_DOUBLE = 2 };
    struct message floats = {0}, doubles = {0}, content = {0};
    struct message_field f;
    uint64_t type = 0;

    while (events_field(&m, &f)) {
        if (events_is(&f, 1, WIRE_VARINT))
            type = f.varint;
        else if (events_is(&f, 4, WIRE_BYTES))
            content = f.bytes;
        else if (events_is(&f, 5, WIRE_BYTES) || events_is(&f, 5, WIRE_FIXED32))
            floats = f.bytes;
        else if (events_is(&f, 6, WIRE_BYTES) || events_is(&f, 6, WIRE_FIXED64))
            doubles = f.bytes;
    }
    struct message found = content.at && content.at < content.end ? content : type == DT_FLOAT ? floats : doubles;
    size_t len = found.at ? (size_t)(found.end - found.at) : 0;
    if (type == DT_FLOAT && len == 4)
        *out = events_float(found.at);
    else if (type == DT_DOUBLE && len == 8)
        *out = events_double(found.at);
    else
        return false;
    return true;
}

static void events_take_tag(struct message tag, char out[NUMBERS_NAME + 1])
{
    size_t len = (size_t)(tag.end - tag.at), n = len < NUMBERS_NAME ? len : NUMBERS_NAME;

    for (size_t i = 0; i < n; i++)
        out[i] = numbers_in_name((char)tag.at[i]) ? (char)tag.at[i] : '_';
    out[n] = '\0';
}

/* Reads a Summary.Value; false: it is no scalar. */
static bool events_value(struct message m, struct events_scalar *out)
{
    struct message_field f;
    bool found = false;

    out->tag[0] = '\0';
    while (events_field(&m, &f)) {
        if (events_is(&f, 1, WIRE_BYTES))
            events_take_tag(f.bytes, out->tag);
        else if (events_is(&f, 2, WIRE_FIXED32)) {
            out->value = events_float(f.bytes.at);
            found = true;
        } else if (events_is(&f, 8, WIRE_BYTES)) {
            found = events_tensor(f.bytes, &out->value);
        }
    }
    return found && out->tag[0];
}

/* Takes the scalars of a summary, which come behind the step and the time, or before them. */
static void events_take_summary(struct events *e, struct message m, const struct events_scalar *place)
{
    struct message_field f;

    while (events_field(&m, &f)) {
        struct events_scalar scalar = *place;
        if (events_is(&f, 1, WIRE_BYTES) && events_value(f.bytes, &scalar))
            e->take(e->arg, &scalar);
    }
}

static void events_take_record(struct events *e, const uint8_t *data, size_t len)
{
    struct message m = {data, data + len}, summary = {0};
    struct events_scalar place = {0};
    struct message_field f;

    while (events_field(&m, &f)) {
        if (events_is(&f, 1, WIRE_FIXED64))
            place.unix_s = events_double(f.bytes.at);
        else if (events_is(&f, 2, WIRE_VARINT))
            place.step = (int64_t)f.varint;
        else if (events_is(&f, 5, WIRE_BYTES))
            summary = f.bytes;
    }
    if (!isfinite(place.unix_s))
        place.unix_s = 0;
    if (summary.at)
        events_take_summary(e, summary, &place);
}

/* ---- records */

/* Copies what is missing of the first n bytes of a record. Returns how many bytes were taken. */
static size_t events_fill(struct events *e, size_t n, const uint8_t *data, size_t len)
{
    size_t missing = e->n < n ? n - e->n : 0, taken = missing < len ? missing : len;

    memcpy(e->record + e->n, data, taken);
    e->n += taken;
    return taken;
}

/* Judges a whole head: the record is to be read, skipped, or nothing can be found any more. */
static void events_begin_record(struct events *e)
{
    uint64_t len = events_number(e->record, 8);

    e->is_lost = events_checksum(e->record, 8) != events_number(e->record + 8, 4);
    e->damaged += e->is_lost;
    if (e->is_lost || len <= EVENTS_RECORD)
        return;
    e->skip = len + TAIL > len ? len + TAIL : UINT64_MAX;
    e->n = 0;
}

static void events_end_record(struct events *e)
{
    size_t len = e->n - HEAD - TAIL;

    if (events_checksum(e->record + HEAD, len) == events_number(e->record + HEAD + len, TAIL))
        events_take_record(e, e->record + HEAD, len);
    else
        e->damaged++;
    e->n = 0;
}

/* Takes the next bytes, and returns how many. */
static size_t events_take(struct events *e, const uint8_t *data, size_t len)
{
    size_t taken;

    if (e->skip > 0) {
        taken = e->skip < len ? (size_t)e->skip : len;
        e->skip -= taken;
        return taken;
    }
    if (e->n < HEAD) {
        taken = events_fill(e, HEAD, data, len);
        if (e->n == HEAD)
            events_begin_record(e);
        return taken;
    }
    size_t whole = HEAD + (size_t)events_number(e->record, 8) + TAIL;
    taken = events_fill(e, whole, data, len);
    if (e->n == whole)
        events_end_record(e);
    return taken;
}

void events_feed(struct events *e, const void *data, size_t len)
{
    const uint8_t *at = data;

    while (len > 0 && !e->is_lost) {
        size_t taken = events_take(e, at, len);
        at += taken;
        len -= taken;
    }
}

uint64_t events_end(struct events *e)
{
    uint64_t damaged = e->damaged;

    e->n = 0;
    e->skip = e->damaged = 0;
    e->is_lost = false;
    return damaged;
}
