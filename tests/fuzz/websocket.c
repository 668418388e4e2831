/* What a server of WebSocket sends behind its handshake, at once and byte by byte. */
#include "fuzz/fuzz.h"

#include "http/websocket.c"

static void take_sum(struct http_websocket *ws, const char *data, size_t len)
{
    for (size_t i = 0; i < len; i++)
        *(unsigned *)ws->arg += (unsigned char)data[i];
}

static void fuzz_websocket_give(const uint8_t *data, size_t size, size_t piece)
{
    unsigned sum = 0;
    size_t head = 0;
    struct http_websocket ws = {.message = take_sum, .arg = &sum, .is_open = true};

    for (size_t at = 0; at < size; at += piece) {
        act_buf_add(&ws.in, data + at, size - at < piece ? size - at : piece);
        size_t n = frame_at((const uint8_t *)ws.in.data, ws.in.len, &head);
        FUZZ_CHECK(n == 0 || n == SIZE_MAX || (head <= n && n <= ws.in.len));
        if (n == SIZE_MAX)
            break;
        if (n > 0 && fault_of(&ws, (uint8_t)ws.in.data[0], n - head))
            break;
        if (n > 0 && (ws.in.data[0] & 0xf) <= BINARY)
            take_message(&ws, ws.in.data[0] & LAST, ws.in.data + head, n - head);
        memmove(ws.in.data, ws.in.data + n, ws.in.len - n);
        ws.in.len -= n;
    }
    http_websocket_release(&ws);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    fuzz_websocket_give(data, size, size ? size : 1);
    fuzz_websocket_give(data, size, 1);
    return 0;
}
