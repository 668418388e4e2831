/* events_test.c - the scalars in TensorBoard's event files. */
#include "unit/test.h"

#include <math.h>

#include "base/file.h"
#include "numbers/events.h"

/* ---- files, as their writers make them */

static uint32_t masked_crc(const void *data, size_t len)
{
    const uint8_t *bytes = data;
    uint32_t crc = ~0U;

    for (size_t i = 0; i < len; i++) {
        crc ^= bytes[i];
        for (int bit = 0; bit < 8; bit++)
            crc = crc & 1 ? crc >> 1 ^ 0x82f63b78 : crc >> 1;
    }
    crc = ~crc;
    return (crc >> 15 | crc << 17) + 0xa282ead8;
}

static void add_record(struct act_buf *file, const void *data, size_t len)
{
    uint64_t n = len;
    uint32_t of_length = masked_crc(&n, sizeof(n)), of_data = masked_crc(data, len);

    act_buf_add(file, &n, sizeof(n));
    act_buf_add(file, &of_length, sizeof(of_length));
    act_buf_add(file, data, len);
    act_buf_add(file, &of_data, sizeof(of_data));
}

static void add_varint(struct act_buf *out, uint64_t value)
{
    for (; value > 0x7f; value >>= 7)
        act_buf_addc(out, (char)(value | 0x80));
    act_buf_addc(out, (char)value);
}

static void add_bytes(struct act_buf *out, int field, const void *data, size_t len)
{
    add_varint(out, (uint64_t)field << 3 | 2);
    add_varint(out, len);
    act_buf_add(out, data, len);
}

static void add_fixed(struct act_buf *out, int field, const void *value, size_t len)
{
    add_varint(out, (uint64_t)field << 3 | (len == 8 ? 1 : 5));
    act_buf_add(out, value, len);
}

enum form { SIMPLE, FLOAT_CONTENT, FLOAT_PACKED, FLOAT_ALONE, DOUBLE_PACKED, TWO_FLOATS, TEXT };

static void add_tensor(struct act_buf *out, enum form form, double value)
{
    ACT_AUTO(act_buf) tensor = {0};
    float floats[2] = {(float)value, 0};

    add_varint(&tensor, 1 << 3);
    add_varint(&tensor, form == DOUBLE_PACKED ? 2 : form == TEXT ? 7 : 1);
    if (form == FLOAT_CONTENT)
        add_bytes(&tensor, 4, floats, 4);
    else if (form == FLOAT_PACKED)
        add_bytes(&tensor, 5, floats, 4);
    else if (form == FLOAT_ALONE)
        add_fixed(&tensor, 5, floats, 4);
    else if (form == DOUBLE_PACKED)
        add_bytes(&tensor, 6, &value, 8);
    else if (form == TWO_FLOATS)
        add_bytes(&tensor, 4, floats, 8);
    else
        add_bytes(&tensor, 8, "text", 4);
    add_bytes(out, 8, tensor.data, tensor.len);
}

/* Adds a record with one value. */
static void add_value(struct act_buf *file, double unix_s, int64_t step, const char *tag, double value, enum form form)
{
    ACT_AUTO(act_buf) event = {0}, summary = {0}, one = {0};
    float simple = (float)value;

    add_bytes(&one, 1, tag, strlen(tag));
    if (form == SIMPLE)
        add_fixed(&one, 2, &simple, 4);
    else
        add_tensor(&one, form, value);
    add_bytes(&one, 9, "\x0a\x09\x0a\x07scalars", 11);
    add_bytes(&summary, 1, one.data, one.len);
    add_fixed(&event, 1, &unix_s, 8);
    add_varint(&event, 2 << 3);
    add_varint(&event, (uint64_t)step);
    add_bytes(&event, 5, summary.data, summary.len);
    add_record(file, event.data, event.len);
}

/* ---- what is found */

static void note_scalar(void *arg, const struct events_scalar *s)
{
    act_buf_addf(arg, "%s %lld %g %g\n", s->tag, (long long)s->step, s->value, s->unix_s);
}

/* Reads a file in pieces. Returns what was found, a new string. */
static char *found_in(const struct act_buf *file, size_t piece, uint64_t *out_damaged)
{
    struct act_buf found = {0};
    struct events *e = events_new(note_scalar, &found);

    for (size_t i = 0; i < file->len; i += piece)
        events_feed(e, file->data + i, piece < file->len - i ? piece : file->len - i);
    *out_damaged = events_end(e);
    events_free(e);
    return found.len ? act_buf_steal(&found) : act_strdup("");
}

static void assert_found(const struct act_buf *file, const char *text, uint64_t damaged)
{
    static const size_t pieces[] = {1, 7, 4096, 1 << 24};

    for (size_t i = 0; i < COUNT(pieces); i++) {
        uint64_t got = 0;
        ACT_AUTOFREE char *found = found_in(file, pieces[i], &got);
        assert_string_equal(found, text);
        assert_int_equal(got, damaged);
    }
}

TEST(the_checksum_is_that_of_the_format)
{
    assert_int_equal(masked_crc("123456789", 9), 0xc78ab0e5); /* of the check value of CRC-32C, 0xe3069283 */
}

TEST(scalars_of_every_form_are_found)
{
    ACT_AUTO(act_buf) file = {0};

    add_record(&file,
               "\x09\0\0\0\0\0\0\0\0\x1a\x0d"
               "brain.Event:2",
               24);
    add_value(&file, 100.5, 1, "loss", 0.5, SIMPLE);
    add_value(&file, 101, 2, "Loss/train set", 0.25, FLOAT_CONTENT);
    add_value(&file, 102, 3, "loss", -2, FLOAT_PACKED);
    add_value(&file, 103, 4, "loss", NAN, FLOAT_ALONE);
    add_value(&file, 104, 1LL << 40, "acc", 1e300, DOUBLE_PACKED);
    add_value(&file, 105, 6, "weights", 1, TWO_FLOATS);
    add_value(&file, 106, 7, "text", 1, TEXT);
    add_value(&file, NAN, -1, "loss", 3, SIMPLE);
    assert_found(&file,
                 "loss 1 0.5 100.5\nLoss/train_set 2 0.25 101\nloss 3 -2 102\nloss 4 nan 103\n"
                 "acc 1099511627776 1e+300 104\nloss -1 3 0\n",
                 0);
}

/* As tensorboardX 2.6.5 wrote it: add_scalar() of "train/loss" (0.125 at step 2^40) and, with a title, "val acc",
 * add_histogram() and add_text(). */
TEST(a_file_of_a_real_writer)
{
    ACT_AUTO(act_buf) file = {0};
    char *bytes;

    assert_ok(act_file_read(TEST_DATA "/fixtures/events/events.out.tfevents.1795969243.vm", EVENTS_RECORD, &bytes,
                            &file.len, &err),
              err);
    file.data = bytes;
    assert_found(&file,
                 "train/loss 0 1 1.7e+09\nval_acc 0 0.5 1.7e+09\ntrain/loss 1 0.5 1.7e+09\n"
                 "val_acc 1 0.625 1.7e+09\ntrain/loss 2 0.333333 1.7e+09\nval_acc 2 0.75 1.7e+09\n"
                 "train/loss 3 nan 1.7e+09\ntrain/loss 1099511627776 0.125 1.7e+09\n",
                 0);
}

TEST(what_is_damaged_is_left_out)
{
    ACT_AUTO(act_buf) file = {0}, cut = {0}, lost = {0};

    add_value(&file, 1, 1, "loss", 1, SIMPLE);
    size_t first = file.len;
    add_value(&file, 2, 2, "loss", 2, SIMPLE);
    size_t second = file.len;
    add_value(&file, 3, 3, "loss", 3, SIMPLE);
    act_buf_add(&cut, file.data, file.len - 5);
    assert_found(&cut, "loss 1 1 1\nloss 2 2 2\n", 0); /* it is being written */
    act_buf_add(&lost, file.data, file.len);
    file.data[second - 6] ^= 1;
    assert_found(&file, "loss 1 1 1\nloss 3 3 3\n", 1);
    lost.data[first] ^= 1;
    assert_found(&lost, "loss 1 1 1\n", 1);
}

TEST(large_records_are_passed_over)
{
    ACT_AUTO(act_buf) file = {0};
    ACT_AUTOFREE char *picture = act_calloc(1, EVENTS_RECORD + 1);

    add_value(&file, 1, 1, "loss", 1, SIMPLE);
    add_record(&file, picture, EVENTS_RECORD + 1);
    add_value(&file, 2, 2, "loss", 2, SIMPLE);
    uint64_t damaged;
    ACT_AUTOFREE char *found = found_in(&file, 100000, &damaged);
    assert_string_equal(found, "loss 1 1 1\nloss 2 2 2\n");
    assert_int_equal(damaged, 0);
}

TEST(hostile_lengths_end)
{
    ACT_AUTO(act_buf) file = {0}, event = {0};
    uint64_t n = UINT64_MAX;
    uint32_t crc = masked_crc(&n, sizeof(n));

    add_varint(&event, 5 << 3 | 2);
    add_varint(&event, UINT64_MAX); /* a field that says it is longer than all memory */
    add_record(&file, event.data, event.len);
    act_buf_add(&file, &n, sizeof(n));
    act_buf_add(&file, &crc, sizeof(crc));
    act_buf_adds(&file, "abc");
    assert_found(&file, "", 0);
}

TEST(names_of_files_are_known)
{
    assert_true(events_is_file("runs/a/events.out.tfevents.1700000000.host.12.0"));
    assert_false(events_is_file("a.tfevents.b/model.pt"));
    assert_false(events_is_file("events.out"));
}

TEST(values_from_elsewhere_become_curves)
{
    static const char log[] = "step 1 loss 7\nstep 2 loss 6\n";
    struct numbers *n = numbers_new();

    numbers_feed(n, log, sizeof(log) - 1);
    numbers_end(n);
    numbers_add(n, "loss", 1, 1, 100);
    numbers_add(n, "val/acc", 5, 0.5, 100);
    numbers_add(n, "val/acc", 6, 0.6, 101);
    assert_int_equal(numbers_count(n), 2);
    assert_int_equal(numbers_find(n, "loss")->series.count, 2);
    assert_int_equal(numbers_find(n, "loss")->times.n, 0);
    const struct numbers_key *key = numbers_find(n, "val/acc");
    assert_int_equal(key->by, NUMBERS_BY_STEP);
    assert_true(key->is_measure && key->series.v[1].y == 0.6 && key->times.v[1].y == 101);
    for (int i = 0; i < 100000; i++) {
        ACT_AUTOFREE char *name = act_sprintf("n%d", i);
        numbers_add(n, name, 1, 1, 1);
    }
    assert_true(numbers_count(n) <= NUMBERS_KEYS);
    numbers_free(n);
}

TEST_MAIN(NULL, NULL)
