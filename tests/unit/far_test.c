/* far_test.c - a folder of another machine, whose other end this test plays: it says what no program of ACT says, or
 * ends. */
#define TEST_SETUP    far_test_setup
#define TEST_TEARDOWN far_test_teardown
#include "unit/test.h"

#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/file.h"
#include "engine/engine.h"
#include "http/http.h"
#include "store/far.h"
#include "store/store.h"
#include "unit/store_call.h"

static struct engine *engine;
static struct http *http;
static struct store *store;
static int peer; /* the other end */

static int far_test_setup(void **state)
{
    (void)state;
    engine = engine_new(&(struct engine_options){.workers = 1});
    http = http_new(engine, &(struct http_options){0});
    return 0;
}

static int far_test_teardown(void **state)
{
    (void)state;
    store_free(store);
    store = NULL;
    if (peer >= 0)
        close(peer);
    http_free(http);
    engine_free(engine);
    return 0;
}

static void far_test_number(struct act_buf *out, uint64_t n, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++)
        act_buf_addc(out, (char)(n >> (8 * i)));
}

/* Begins a block of one frame, which so many bytes follow. */
static void far_test_frame(struct act_buf *out, const struct act_buf *words, size_t bytes, uint64_t id)
{
    const size_t block = 16 + words->len;

    far_test_number(out, block, 4);
    far_test_number(out, block, 4);
    act_buf_adds(out, "FTCA");
    far_test_number(out, words->len, 4);
    far_test_number(out, bytes, 4);
    far_test_number(out, id, 8);
    act_buf_add(out, words->data, words->len);
}

/* The other end says its first words, and after them so many bytes, which do not belong there. Returns this end. */
static int far_test_greet(size_t bytes)
{
    ACT_AUTO(act_buf) words = {0}, frame = {0};
    int ends[2];

    far_words_of_hello("/there", 0, NULL, &words);
    far_test_frame(&frame, &words, bytes, 0);
    for (size_t i = 0; i < bytes; i++)
        act_buf_addc(&frame, 'x');
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
    peer = ends[1];
    assert_int_equal(act_write_all(peer, frame.data, frame.len), 0);
    return ends[0];
}

static int far_test_open(size_t bytes)
{
    const int fd = far_test_greet(bytes);

    return store_far_open_fds(http, fd, fcntl(fd, F_DUPFD_CLOEXEC, 0), &store, &err);
}

TEST(test_first_words)
{
    assert_ok(far_test_open(0), err);
    assert_string_equal(store_name(store), "folder:/there");
}

TEST(test_first_words_with_bytes)
{
    assert_fails(far_test_open(8), err, ACT_FAIL, "not part of ACT's protocol");
}

/* First words that fail without saying why, and such with more behind them. */
TEST(test_first_words_of_something_else)
{
    ACT_AUTO(act_buf) silent = {0}, longer = {0};
    ACT_AUTOFREE char *root = NULL;

    far_words_of_hello("", -ACT_FAIL, &(struct act_error){0}, &silent);
    assert_fails(far_hello_of_words(silent.data, silent.len, &root, &err), err, ACT_FAIL, "begins with something else");
    far_words_of_hello("/there", 0, NULL, &longer);
    act_buf_addc(&longer, 'x');
    assert_fails(far_hello_of_words(longer.data, longer.len, &root, &err), err, ACT_FAIL, "begins with something else");
    assert_null(root);
}

/* The least number that there is has no positive one. */
TEST(test_code_out_of_range)
{
    static const char words[] = "\xff\xff\xff\xff\x0f\0\2x";
    struct store_call call = {.op = STORE_HEAD, .key = "x"};
    struct far_result result;

    assert_false(far_result_of_words(words, sizeof(words), &call, &result));
    store_call_release(&call);
}

static bool far_test_takes(const struct store_call *said, struct store_call *asked)
{
    const struct far_result none = {0};
    struct far_result result;
    ACT_AUTO(act_buf) words = {0};

    far_words_of_result(said, &none, &words);
    bool takes = far_result_of_words(words.data, words.len, asked, &result);
    store_call_release(asked);
    return takes;
}

/* What is asked for by its key is called by that key. */
TEST(test_another_key)
{
    static char key[] = "x", another[] = "../x";
    struct store_call asked = {.op = STORE_HEAD, .key = key};

    assert_true(far_test_takes(&(struct store_call){.op = STORE_HEAD, .entry = {.key = key}}, &asked));
    assert_false(far_test_takes(&(struct store_call){.op = STORE_HEAD, .entry = {.key = another}}, &asked));
    assert_false(far_test_takes(&(struct store_call){.op = STORE_HEAD}, &asked));
}

/* A list that stays where it is would never end. */
TEST(test_a_page_that_leads_to_itself)
{
    static char marker[] = "m", later[] = "n";
    struct store_call asked = {.op = STORE_LIST, .key = "", .list = {.marker = marker}};

    assert_true(far_test_takes(&(struct store_call){.op = STORE_LIST, .list = {.page = {.next = later}}}, &asked));
    assert_false(far_test_takes(&(struct store_call){.op = STORE_LIST, .list = {.page = {.next = marker}}}, &asked));
}

TEST(test_more_than_a_frame)
{
    struct store_call call = {.op = STORE_GET, .key = "x", .get = {.sink_cap = (size_t)FAR_MAX_PUT + 1}};

    assert_ok(far_test_open(0), err);
    assert_fails(store_do(store, &call, &err), err, ACT_USAGE, "parts of more than 64 MiB");
    store_call_release(&call);
}

/* ---- changes */

enum { CHANGED_LEN = 10 * FAR_BLOCK + 100 };

/* What the sums of one state say of another one, with the first n of it, brings it about. Returns the bytes that were
 * sent. */
static size_t far_test_change(const char *old, size_t old_len, const char *new, size_t new_len)
{
    uint8_t sums[(CHANGED_LEN / FAR_BLOCK + 1) * FAR_SUM];
    struct far_changes changes;
    ACT_AUTOFREE char *here = act_calloc(new_len + 1, 1);

    assert_true(far_sums_size(old_len) <= sizeof(sums));
    far_sums_of(old, old_len, sums);
    far_find_changes(new, new_len, sums, far_sums_size(old_len), &changes);
    size_t size = far_changes_size(&changes, new_len);
    ACT_AUTOFREE char *gathered = act_alloc(size + 1);
    far_gather(&changes, new, new_len, gathered);
    memcpy(here, old, old_len < new_len ? old_len : new_len);
    far_scatter(&changes, here, new_len, gathered);
    assert_memory_equal(here, new, new_len);
    return size;
}

TEST(test_changes)
{
    ACT_AUTOFREE char *old = act_alloc(CHANGED_LEN), *new = act_alloc(CHANGED_LEN);

    for (size_t i = 0; i < CHANGED_LEN; i++)
        old[i] = (char)(i * 7 + i / 251);
    memcpy(new, old, CHANGED_LEN);
    assert_int_equal(far_test_change(old, CHANGED_LEN, new, CHANGED_LEN), 0);
    new[3 * FAR_BLOCK + 5] ^= 1;
    assert_int_equal(far_test_change(old, CHANGED_LEN, new, CHANGED_LEN), FAR_BLOCK);
    new[CHANGED_LEN - 1] ^= 1; /* in the last block, which is short */
    assert_int_equal(far_test_change(old, CHANGED_LEN, new, CHANGED_LEN), FAR_BLOCK + 100);
    assert_int_equal(far_test_change(old, CHANGED_LEN, new, 3 * FAR_BLOCK), 0); /* it is shorter now */
    assert_int_equal(far_test_change(old, 4 * FAR_BLOCK, new, CHANGED_LEN), CHANGED_LEN - 3 * FAR_BLOCK); /* longer */
    memmove(new + 1, old, CHANGED_LEN - 1); /* inserted: all that follows moves */
    assert_int_equal(far_test_change(old, CHANGED_LEN, new, CHANGED_LEN), CHANGED_LEN);
    assert_int_equal(far_test_change(old, 0, new, 10), 10);
}

/* ---- what ends */

static void far_test_wait(void *arg)
{
    char byte;

    assert_int_equal(read(*(int *)arg, &byte, 1), 1);
}

static void far_test_nothing(void *arg)
{
    (void)arg;
}

static void far_test_done(struct store_call *call)
{
    *(bool *)call->arg = true;
}

/* The connection ends while a worker sums what is to be sent: that call ends only when the worker is ready. */
TEST(test_end_while_it_is_summed)
{
    const size_t len = FAR_SMALL + 1;
    ACT_AUTOFREE char *bytes = act_calloc(len, 1);
    bool put_done = false;
    int gate[2];
    struct store_call head = {.op = STORE_HEAD, .key = "x"};
    struct store_call put = {.op = STORE_PUT,
                             .key = "x",
                             .put = {.data = {.bytes = bytes, .len = len}},
                             .done = far_test_done,
                             .arg = &put_done};

    assert_ok(far_test_open(0), err);
    assert_int_equal(pipe2(gate, O_CLOEXEC), 0);
    engine_work(engine, far_test_wait, far_test_nothing, &gate[0]); /* the only worker */
    store_start(store, &put);
    close(peer);
    peer = -1;
    assert_fails(store_do(store, &head, &err), err, ACT_TEMPORARY, "connection was lost");
    assert_false(put_done);
    assert_int_equal(write(gate[1], "x", 1), 1);
    engine_run(engine, &put_done);
    assert_int_equal(put.rc, -ACT_TEMPORARY);
    engine_run(engine, NULL);
    store_call_release(&head);
    store_call_release(&put);
    close(gate[0]);
    close(gate[1]);
}

/* Silence of a second is the end from now on. */
static void far_test_hurry(void)
{
    http_free(http);
    http = http_new(engine, &(struct http_options){.stall_timeout_s = 1});
}

TEST(test_silence)
{
    struct store_call head = {.op = STORE_HEAD, .key = "x"};

    far_test_hurry();
    assert_ok(far_test_open(0), err);
    assert_fails(store_do(store, &head, &err), err, ACT_TEMPORARY, "has said nothing for 1 second");
    store_call_release(&head);
}

static void far_test_answer(uint64_t id);

/* The other end says that it is there so many times, then that the first call has been carried out. */
static void far_test_beat(void *arg)
{
    ACT_AUTO(act_buf) beat = {0};
    int *left = arg;

    if (--*left == 0) {
        far_test_answer(0);
        return;
    }
    far_test_frame(&beat, &(struct act_buf){.data = (char[]){""}}, 0, FAR_NO_CALL);
    assert_int_equal(act_write_all(peer, beat.data, beat.len), 0);
    engine_timer(engine, 100, far_test_beat, left);
}

TEST(test_a_call_that_takes_long)
{
    struct store_call delete = {.op = STORE_DELETE, .key = "x"};
    int beats = 25;

    far_test_hurry();
    assert_ok(far_test_open(0), err);
    engine_timer(engine, 0, far_test_beat, &beats);
    assert_ok(store_do(store, &delete, &err), err);
    assert_int_equal(beats, 0);
    store_call_release(&delete);
}

static void far_test_kept(struct store_call *call)
{
    *(bool *)call->arg = true;
}

/* Reads so many bytes at the other end, on a worker. */
static void far_test_swallow(void *arg)
{
    char piece[4096];
    ssize_t n;

    for (size_t left = *(const size_t *)arg; left > 0; left -= (size_t)n) {
        n = read(peer, piece, left < sizeof(piece) ? left : sizeof(piece));
        assert_true(n > 0);
    }
}

/* Says as the other end that the call of this number has been carried out. */
static void far_test_answer(uint64_t id)
{
    ACT_AUTO(act_buf) words = {0}, frame = {0};
    const struct far_result none = {0};

    far_words_of_result(&(struct store_call){.op = STORE_PUT}, &none, &words);
    far_test_frame(&frame, &words, 0, id);
    assert_int_equal(act_write_all(peer, frame.data, frame.len), 0);
}

/* A call is sent again over a new connection, whose other end says that it is done before it has come: its bytes are
 * still on their way, and must stay. */
TEST(test_a_result_before_all_is_sent_again)
{
    size_t len = 4 << 20; /* more than the stream holds */
    const uint64_t crc64 = 0;
    ACT_AUTOFREE char *bytes = act_alloc(len);
    bool is_kept = false, is_done = false;
    struct store_call put = {.op = STORE_PUT,
                             .key = "x",
                             .put = {.data = {.bytes = bytes, .len = len, .crc64 = &crc64}},
                             .kept = far_test_kept,
                             .done = far_test_done,
                             .arg = &is_kept};

    memset(bytes, 'x', len);
    assert_ok(far_test_open(0), err);
    struct far *far = (struct far *)store;
    store_start(store, &put);
    engine_work(engine, far_test_swallow, far_test_nothing, &len);
    engine_run(engine, &is_kept);
    put.arg = &is_done;
    far_call_write(far->slots[0]);
    far_test_answer(0);
    engine_run(engine, &is_done);
    assert_int_equal(put.rc, -ACT_FAIL);
    assert_non_null(strstr(act_error_text(&put.error), "not part of ACT's protocol"));
    store_call_release(&put);
}

/* Makes a new connection in place of that which broke. Its other end has said its first words. */
static void far_test_connect_again(struct far *far)
{
    far_line_rest(far);
    far_link_release(&far->link);
    close(peer);
    for (size_t i = 0; i < far->n_slots; i++)
        if (far->slots[i])
            far_call_lost(far->slots[i]);
    const int fd = far_test_greet(0);
    assert_ok(far_line_begin(far, fd, fcntl(fd, F_DUPFD_CLOEXEC, 0), NULL, &err), err);
}

/* Reads at the other end a block of two frames without bytes, and gives their numbers. */
static void far_test_read_two(uint64_t ids[2])
{
    char block[256];
    uint32_t words_len;

    assert_true(read(peer, block, sizeof(block)) >= 12 + 2 * 16);
    memcpy(&words_len, block + 12, sizeof(words_len));
    memcpy(&ids[0], block + 12 + 8, sizeof(ids[0]));
    memcpy(&ids[1], block + 12 + 16 + words_len + 8, sizeof(ids[1]));
}

/* A sync that has a lower number than a file which was written before it: over a new connection, too, it comes last. */
TEST(test_sync_is_sent_again_after_what_it_covers)
{
    bool is_gone = false, is_put = false, is_synced = false;
    struct store_call delete = {.op = STORE_DELETE, .key = "y", .done = far_test_done, .arg = &is_gone};
    struct store_call put = {.op = STORE_PUT, .key = "x", .done = far_test_done, .arg = &is_put};
    struct store_call sync = {.op = STORE_SYNC, .key = "", .done = far_test_done, .arg = &is_synced};
    uint64_t ids[2];

    assert_ok(far_test_open(0), err);
    struct far *far = (struct far *)store;
    store_start(store, &delete);
    store_start(store, &put);
    engine_run(engine, &far->slots[0]->is_written);
    far_test_answer(0);
    engine_run(engine, &is_gone);
    store_start(store, &sync);
    assert_ptr_equal(far->slots[0]->call, &sync);
    engine_run(engine, &far->slots[0]->is_written);
    far_test_connect_again(far);
    engine_run(engine, &far->slots[0]->is_written);
    far_test_read_two(ids);
    assert_int_equal(ids[0], 1);
    assert_int_equal(ids[1], 0);
    far_test_answer(0);
    far_test_answer(1);
    engine_run(engine, &is_put);
    engine_run(engine, &is_synced);
    store_call_release(&delete);
    store_call_release(&put);
    store_call_release(&sync);
}

int main(void)
{
    return tests_run(NULL, NULL);
}
