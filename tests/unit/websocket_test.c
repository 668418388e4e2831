/* Frames of a server, good and bad. */
#include "unit/test.h"

#include "http/websocket.c"

TEST(length)
{
    static const struct {
        const char *bytes;
        size_t len, frame, head;
    } rows[] = {
        {"\x82", 1, 0, 0},
        {"\x82\x00", 2, 2, 2},
        {"\x82\x03\x61\x62\x63", 5, 5, 2},
        {"\x82\x03\x61\x62", 4, 0, 2},
        {"\x82\x83\x6d\x61\x73\x6b", 6, SIZE_MAX, 0},
        {"\x82\x7e\x00\x02\x61\x62", 6, 6, 4},
        {"\x82\x7f\x00\x00\x00\x00\x00\x00\x00\x01\x61", 11, 11, 10},
        {"\x82\x7f\x00\x00\x00\x00", 6, 0, 0},
        {"\x82\x7f\xff\xff\xff\xff\xff\xff\xff\xff", 10, SIZE_MAX, 10},
        {"\x82\x7f\x00\x00\x00\x00\x04\x00\x00\x01", 10, SIZE_MAX, 10},
    };

    for (size_t i = 0; i < COUNT(rows); i++) {
        size_t head = 0;
        assert_int_equal(frame_at((const uint8_t *)rows[i].bytes, rows[i].len, &head), rows[i].frame);
        assert_int_equal(head, rows[i].head);
    }
}

TEST(faults)
{
    static const struct {
        int first;
        size_t len;
        bool in_parts, good;
    } rows[] = {
        {LAST | BINARY, 0, false, true},
        {LAST | BINARY, MESSAGE_MAX, false, true},
        {BINARY, 1, false, true},
        {CONTINUATION, 1, true, true},
        {LAST | CONTINUATION, 0, true, true},
        {LAST | PING, CONTROL_MAX, true, true}, /* between the parts of a message */
        {LAST | PONG, 0, false, true},
        {LAST | CLOSE, 2, false, true},
        {LAST | PING, CONTROL_MAX + 1, false, false},
        {LAST | CLOSE, MESSAGE_MAX, false, false},
        {PING, 0, false, false},
        {LAST | 0x40 | BINARY, 1, false, false},
        {LAST | 0x10 | PING, 1, false, false},
        {LAST | 3, 1, false, false},
        {LAST | 11, 1, false, false},
        {LAST | BINARY, 1, true, false},
        {LAST | CONTINUATION, 1, false, false},
    };

    for (size_t i = 0; i < COUNT(rows); i++) {
        const struct http_websocket ws = {.in_parts = rows[i].in_parts};
        assert_int_equal(!fault_of(&ws, rows[i].first, rows[i].len), rows[i].good);
    }
}

TEST(status)
{
    static const struct {
        const char *head;
        int status;
    } rows[] = {
        {"HTTP/1.1 101 Switching Protocols", 101},
        {"HTTP/1.0 403 Forbidden", 403},
        {"HTTP/1.1 101", 101},
        {"HTTP/1.1 404\r\nA: b", 404},
        {"HTTP/1.1 000 None", 0},
        {"HTTP/1.1 -10 Less", 0},
        {"HTTP/1.1 +10 More", 0},
        {"HTTP/1.1 10 Short", 0},
        {"HTTP/1.1 1010 Long", 0},
        {"HTTP/1.1 999 High", 0},
        {"HTTP/1.2 101 Newer", 0},
        {"HTTP/2 101", 0},
        {"HTTP/1.1 101x", 0},
        {"", 0},
    };

    for (size_t i = 0; i < COUNT(rows); i++)
        assert_int_equal(websocket_status_of(rows[i].head), rows[i].status);
}

TEST(beats)
{
    struct http_websocket_pulse pulse = {.heard = true};

    assert_int_equal(next_beat(&pulse), BEAT_ON);
    pulse = (struct http_websocket_pulse){.unread = MESSAGE_MAX};
    assert_int_equal(next_beat(&pulse), BEAT_ASK);
    pulse.asked = true;
    assert_int_equal(next_beat(&pulse), BEAT_DEAD);
    pulse.before = UNREAD_MAX + 1; /* it may wait for a command that does not read */
    assert_int_equal(next_beat(&pulse), BEAT_ON);
    take_pong(&pulse);
    assert_int_equal(pulse.unread, MESSAGE_MAX - UNREAD_MAX - 1);
    assert_int_equal(next_beat(&pulse), BEAT_ASK);
    take_pong(&pulse); /* unasked */
    assert_int_equal(pulse.unread, MESSAGE_MAX - UNREAD_MAX - 1);
}

static void websocket_test_count_bytes(struct http_websocket *ws, const char *data, size_t len)
{
    (void)data;
    *(size_t *)ws->arg += 100 + len;
}

/* A first part without data is a part all the same. */
TEST(parts)
{
    size_t sum = 0;
    struct http_websocket ws = {.message = websocket_test_count_bytes, .arg = &sum};

    take_message(&ws, false, "", 0);
    assert_non_null(fault_of(&ws, LAST | BINARY, 1));
    take_message(&ws, false, "ab", 2);
    assert_int_equal(sum, 0);
    take_message(&ws, true, "c", 1);
    assert_int_equal(sum, 103);
    assert_null(fault_of(&ws, LAST | BINARY, 1));
    http_websocket_release(&ws);
}

TEST_MAIN(NULL, NULL)
