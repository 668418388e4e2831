/* wipe_test.c - a secret that the program has given up is nowhere in its memory. A child holds a secret and gives it
 * up; this process looks for it in all writable memory of the child, both times. */
#include <curl/curl.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "codec/json.h"
#include "engine/engine.h"
#include "http/http.h"
#include "run/run.h"
#include "site/frame.h"
#include "unit/test.h"

enum { SECRET = 88 }; /* characters, as of the key of a storage account */

/* Makes the secret where it is wanted, so that the program itself has it nowhere. */
static void make_secret(char out[SECRET + 1])
{
    unsigned x = 20261128;

    for (size_t i = 0; i < SECRET; i++) {
        x = x * 1664525u + 1013904223u;
        out[i] = (char)('A' + (x >> 24) % 26);
    }
    out[SECRET] = '\0';
}

static size_t wipe_test_count_in(const char *memory, size_t len, const char *secret)
{
    size_t n = 0;

    for (const char *at = memory, *end = memory + len; (at = memmem(at, (size_t)(end - at), secret, SECRET)); at++)
        n++;
    return n;
}

/* How often the secret is in the memory of the process. */
static size_t count_copies(pid_t pid, const char *secret)
{
    ACT_AUTOFREE char *maps_path = act_sprintf("/proc/%d/maps", (int)pid);
    ACT_AUTOFREE char *mem_path = act_sprintf("/proc/%d/mem", (int)pid);
    enum { PIECE = 1 << 20 };
    ACT_AUTOFREE char *piece = act_alloc(PIECE);
    FILE *maps = fopen(maps_path, "re");
    int mem = open(mem_path, O_RDONLY | O_CLOEXEC);
    unsigned long start, end;
    size_t n = 0;
    char mode[5];

    assert_non_null(maps);
    assert_true(mem >= 0);
    while (fscanf(maps, "%lx-%lx %4s%*[^\n]", &start, &end, mode) == 3) {
        /* the shadow memory of a sanitizer is terabytes of nothing */
        if (mode[1] != 'w' || end - start > (1ul << 32))
            continue;
        for (size_t at = start; at < end; at += PIECE - SECRET) {
            ssize_t got = pread(mem, piece, end - at < PIECE ? end - at : PIECE, (off_t)at);
            if (got > 0)
                n += wipe_test_count_in(piece, (size_t)got, secret);
        }
    }
    fclose(maps);
    close(mem);
    return n;
}

/* Waits until the other side has looked. */
static void wipe_test_show(int to, int from)
{
    char c = 0;

    if (write(to, &c, 1) != 1 || read(from, &c, 1) != 1)
        _exit(1);
}

/* The ways in which a secret is held and given up: hold() returns what drop() takes. */
struct holder {
    const char *name;
    void *(*hold)(const char *secret);
    void (*drop)(void *held);
};

static void *hold_json(const char *secret)
{
    char *text = act_sprintf("{\"access_token\": \"%s\", \"kind\": [\"%s\"]}", secret, secret);
    json_t *json = NULL;

    if (codec_json_parse(text, strlen(text), "an answer", &json, &err) < 0)
        _exit(1);
    act_wipe(&text);
    json_object_set_new(json, "url", json_sprintf("https://host/?sig=%s", secret));
    return json;
}

static void drop_json(void *held)
{
    char *line = codec_json_line(held);

    act_wipe(&line);
    json_decref(held);
}

static void *hold_buffer(const char *secret)
{
    struct act_buf *b = act_calloc(1, sizeof(*b));

    for (int i = 0; i < 100; i++)
        act_buf_addf(b, "key %d: %s\n", i, secret);
    return b;
}

static void drop_buffer(void *held)
{
    act_buf_wipe(held);
    free(held);
}

static void *hold_headers(const char *secret)
{
    struct http_headers *headers = act_calloc(1, sizeof(*headers));

    http_header_set(headers, "x-ms-date", "Sat, 28 Nov 2026 10:00:00 GMT");
    http_header_setf(headers, "Authorization", "Bearer %s", secret);
    http_header_setf(headers, "Authorization", "SharedKey account:%s", secret);
    return headers;
}

static void drop_headers(void *held)
{
    http_headers_release(held);
    free(held);
}

static void *hold_file(const char *secret)
{
    static char path[] = "/tmp/act-wipe-XXXXXX";
    char *value = act_strdup(secret);
    json_t *json = json_pack("{s:s}", "WANDB_API_KEY", value), *read = NULL;
    int fd = mkstemp(path);

    act_wipe(&value);
    if (fd < 0 || codec_json_write(path, json, 0600, &err) < 0 || codec_json_read(path, 4096, &read, &err) < 0)
        _exit(1);
    close(fd);
    unlink(path);
    json_decref(json);
    return read;
}

static void drop_file(void *held)
{
    json_decref(held);
}

struct transfer {
    CURL *easy;
    struct curl_slist *headers;
};

static void *hold_curl(const char *secret)
{
    struct transfer *t = act_calloc(1, sizeof(*t));
    char *url = act_sprintf("http://127.0.0.1:1/?sig=%s", secret);
    char *header = act_sprintf("Authorization: Bearer %s", secret);

    t->easy = engine_easy();
    t->headers = curl_slist_append(NULL, header);
    curl_easy_setopt(t->easy, CURLOPT_URL, url);
    curl_easy_setopt(t->easy, CURLOPT_HTTPHEADER, t->headers);
    act_wipe(&url);
    act_wipe(&header);
    if (curl_easy_perform(t->easy) != CURLE_COULDNT_CONNECT)
        _exit(1);
    return t;
}

static void drop_curl(void *held)
{
    struct transfer *t = held;

    curl_easy_cleanup(t->easy);
    curl_slist_free_all(t->headers);
    free(t);
}

static void hold_variables(struct run_spec *spec, const char *secret)
{
    char *odd = act_sprintf("\xff%s", secret);

    spec->id = act_strdup("exp_1700000000_0123abcd");
    run_spec_add_env(spec, "WANDB_API_KEY", secret);
    run_spec_add_env(spec, "OTHER_TOKEN", odd); /* in JSON it is base64 */
    act_wipe(&odd);
}

static void *hold_spec(const char *secret)
{
    struct run_spec *spec = act_calloc(1, sizeof(*spec));

    hold_variables(spec, secret);
    return spec;
}

static void drop_spec(void *held)
{
    json_t *json = run_spec_to_json(held), *values = run_secrets_to_json(held);

    run_secrets_from_json(held, values);
    run_spec_release(held);
    json_decref(json);
    json_decref(values);
    free(held);
}

/* A request that travels to a site, with the secrets of a run in its line and in a part. */
struct travel {
    struct channel channel;
    struct frame frame;
};

static void *hold_frame(const char *secret)
{
    struct travel *t = act_calloc(1, sizeof(*t));
    struct run_spec spec = {0};
    struct frame_part part = {secret, SECRET};
    int ends[2];

    if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends) < 0)
        _exit(1);
    hold_variables(&spec, secret);
    t->channel.in_fd = t->channel.out_fd = ends[0];
    if (frame_write(&t->channel, json_pack("{s:o}", "secrets", run_secrets_to_json(&spec)), &part, 1, &err) < 0)
        _exit(1);
    t->channel.in_fd = ends[1];
    if (frame_read(&t->channel, SECRET, &t->frame, &err) < 0)
        _exit(1);
    run_spec_release(&spec);
    return t;
}

/* The channel stays open, for other requests. */
static void drop_frame(void *held)
{
    frame_release(&((struct travel *)held)->frame);
}

/* The URL of a call, signed anew for each try. */
static int sign_url(struct http_call *call, struct act_error *unused)
{
    char *url = act_sprintf("%s?sig=%s", call->url, (const char *)call->arg);

    (void)unused;
    act_wipe(&call->url);
    call->url = url;
    return 0;
}

static void call_ended(struct http_call *call)
{
    (void)call;
}

static void *hold_call(const char *secret)
{
    struct http_call *call = act_calloc(1, sizeof(*call));
    struct engine *engine = engine_new(NULL);
    struct http *http = http_new(engine, &(struct http_options){.max_retries = 1});

    *call = (struct http_call){.method = "GET",
                               .url = act_strdup("http://127.0.0.1:1/"),
                               .sign = sign_url,
                               .done = call_ended,
                               .arg = (void *)(uintptr_t)secret};
    http_start(http, call);
    engine_run(engine, NULL);
    call->arg = NULL;
    http_free(http);
    engine_free(engine);
    act_wipe(&call->url);
    call->url = act_sprintf("http://127.0.0.1:1/?sig=%s", secret);
    return call;
}

static void drop_call(void *held)
{
    http_call_release(held);
    free(held);
}

static const struct holder holders[] = {
    {"json", hold_json, drop_json},          {"a growing buffer", hold_buffer, drop_buffer},
    {"headers", hold_headers, drop_headers}, {"a file", hold_file, drop_file},
    {"libcurl", hold_curl, drop_curl},       {"a specification", hold_spec, drop_spec},
    {"a frame", hold_frame, drop_frame},     {"a signed call", hold_call, drop_call},
};

/* The child: its stack is not looked at, but its heap is. */
static void hold_and_drop(const struct holder *h, int to, int from)
{
    char secret[SECRET + 1];

    prctl(PR_SET_PDEATHSIG, SIGKILL);
    codec_json_wipe_memory();
    make_secret(secret);
    void *held = h->hold(secret);
    explicit_bzero(secret, sizeof(secret));
    wipe_test_show(to, from);
    h->drop(held);
    wipe_test_show(to, from);
    _exit(0);
}

static void wipe_test_wait_for(int from)
{
    char c;

    assert_int_equal(read(from, &c, 1), 1);
}

static void check_holder(const struct holder *h)
{
    int up[2], down[2], status;
    char secret[SECRET + 1], c = 0;

    assert_int_equal(pipe(up), 0);
    assert_int_equal(pipe(down), 0);
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0)
        hold_and_drop(h, up[1], down[0]);
    make_secret(secret);
    wipe_test_wait_for(up[0]);
    if (count_copies(pid, secret) == 0)
        fail_msg("%s: the search does not find a secret that is held", h->name);
    assert_int_equal(write(down[1], &c, 1), 1);
    wipe_test_wait_for(up[0]);
    size_t left = count_copies(pid, secret);
    if (left > 0)
        fail_msg("%s: %zu copies of a secret are left in memory", h->name, left);
    assert_int_equal(write(down[1], &c, 1), 1);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
    for (int i = 0; i < 2; i++) {
        close(up[i]);
        close(down[i]);
    }
    explicit_bzero(secret, sizeof(secret)); /* the next child begins as a copy of this process */
}

TEST(a_secret_that_was_given_up_is_not_in_memory)
{
    for (size_t i = 0; i < COUNT(holders); i++)
        check_holder(&holders[i]);
}

TEST_MAIN(NULL, NULL)
