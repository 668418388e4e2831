/* The API of a cluster: kubeconfigs, and requests against a scripted server of this process. */
#include "unit/script_server.h"

#include <signal.h>
#include <stdio.h>
#include <sys/wait.h>

#include "base/file.h"
#include "base/hash.h"
#include "base/path.h"
#include "codec/json.h"
#include "engine/engine.h"
#include "http/http.h"
#include "kube/kube_internal.h"
#include "proc/proc.h"

#define OK    "HTTP/1.1 200 OK\r\n\r\n"
#define AGAIN "Retry-After: 0\r\n"

#define CLUSTER(server) "clusters: [{name: c, cluster: {server: '" server "'}}]\n"
#define CONTEXT         "contexts: [{name: x, context: {cluster: c, user: u, namespace: team}}]\ncurrent-context: x\n"
#define USER(what)      "users: [{name: u, user: {" what "}}]\n"

struct fixture {
    struct server server;
    struct engine *engine;
    struct http *http;
    struct kube *kube;
    struct step steps[MAX_STEPS];
    char *home, *file;
    pid_t peer; /* kube_server.py */
};
static struct fixture f;

/* A folder of one's own with this kubeconfig in it; "{port}" is that of the server. */
static void kube_test_write_config(const char *text)
{
    ACT_AUTOFREE char *whole = with_port(text, f.server.port);

    assert_ok(act_file_write(f.file, whole, strlen(whole), 0600, &err), err);
}

static int kube_test_make_home(void **state)
{
    char home[] = "/tmp/act-kube-XXXXXX";

    (void)state;
    f = (struct fixture){0};
    assert_non_null(mkdtemp(home));
    f.home = act_strdup(home);
    f.file = act_sprintf("%s/config", home);
    setenv("HOME", home, 1);
    unsetenv("KUBECONFIG");
    unsetenv("KUBERNETES_SERVICE_HOST");
    unsetenv("KUBERNETES_SERVICE_PORT");
    return 0;
}

static int kube_test_remove_home(void **state)
{
    (void)state;
    kube_free(f.kube);
    http_free(f.http);
    engine_free(f.engine);
    if (f.server.steps_n > 0)
        server_stop(&f.server);
    if (f.peer > 0) {
        kill(f.peer, SIGKILL);
        waitpid(f.peer, NULL, 0);
    }
    assert_ok(act_remove_tree(f.home, &err), err);
    free(f.home);
    free(f.file);
    return 0;
}

static int kube_test_open_it(void)
{
    kube_free(f.kube);
    f.kube = NULL;
    return kube_open(&(struct kube_options){.http = f.http, .kubeconfig = f.file}, &f.kube, &err);
}

/* The answers in their order, and a cluster that a token is for. */
static void serve_answers(const char *const *answers, size_t n)
{
    for (size_t i = 0; i < n; i++)
        f.steps[i] = (struct step){answers[i], CLOSE};
    server_start(&f.server, f.steps, n);
    f.engine = engine_new(&(struct engine_options){0});
    f.http = http_new(f.engine, &(struct http_options){.max_retries = -1});
}

static void serve_with_token(const char *const *answers, size_t n)
{
    serve_answers(answers, n);
    kube_test_write_config(CLUSTER("http://127.0.0.1:{port}/prefix/") CONTEXT USER("token: abc"));
    assert_ok(kube_test_open_it(), err);
}

static const char *kube_test_asked(size_t i)
{
    assert_true(i < f.server.requests_n);
    return f.server.requests[i].data;
}

#undef TEST
#define TEST(name) TEST_IN(name, kube_test_make_home, kube_test_remove_home)

/* ---- requests ---- */

TEST(a_request_has_the_token_and_the_path_of_the_server)
{
    const char *answers[] = {OK "{\"kind\": \"Job\", \"metadata\": {\"name\": \"a\"}}"};
    CODEC_AUTOJSON json_t *job = NULL;

    serve_with_token(answers, COUNT(answers));
    ACT_AUTOFREE char *path = kube_path(f.kube, "batch/v1", "jobs", "a", NULL);
    assert_ok(kube_get(f.kube, path, "get job 'a'", &job, &err), err);
    assert_string_equal(codec_json_str(job, "kind", ""), "Job");
    assert_contains(kube_test_asked(0), "GET /prefix/apis/batch/v1/namespaces/team/jobs/a HTTP/1.1\r\n");
    assert_contains(kube_test_asked(0), "\r\nAuthorization: Bearer abc\r\n");
    assert_contains(kube_test_asked(0), "\r\nAccept: application/json\r\n");
}

TEST(the_server_says_what_is_wrong)
{
    const char *answers[] = {
        "HTTP/1.1 403 Forbidden\r\n\r\n{\"kind\": \"Status\", \"reason\": \"Forbidden\", \"message\": \"jobs is "
        "forbidden: User u cannot create resource jobs\"}",
        "HTTP/1.1 404 Not Found\r\nContent-Type: text/plain\r\n\r\n404 page not found\n",
        "HTTP/1.1 422 Unprocessable\r\n\r\n{\"kind\": \"Status\", \"reason\": \"Invalid\", \"message\": \"Job x is "
        "invalid\", \"details\": {\"causes\": [{\"field\": \"spec.a\", \"message\": \"must be 1\"}]}}"};
    static const struct {
        int code;
        const char *text, *reason;
    } wanted[] = {{ACT_DENIED, "cannot do it: HTTP 403: jobs is forbidden: User u cannot create", "Forbidden"},
                  {ACT_NOT_FOUND, "does not know this part of the API (404 page not found)", "NoSuchApi"},
                  {ACT_CONFIG, "Job x is invalid; spec.a: must be 1", "Invalid"}};

    serve_with_token(answers, COUNT(answers));
    for (size_t i = 0; i < COUNT(wanted); i++) {
        struct kube_call call = {.method = "GET", .path = act_strdup("/x"), .what = "do it", .missing_is_fine = true};
        assert_fails(kube_do(f.kube, &call, &err), err, wanted[i].code, wanted[i].text);
        assert_string_equal(err.service_code, wanted[i].reason);
        kube_call_release(&call);
    }
}

TEST(a_server_that_repeats_the_token_does_not_make_it_an_error_text)
{
    const char *answers[] = {
        "HTTP/1.1 403 Forbidden\r\n\r\n{\"kind\": \"Status\", \"message\": \"you sent Bearer abc\"}",
        "HTTP/1.1 403 Forbidden\r\n\r\nyou sent Bearer abc"};

    serve_with_token(answers, COUNT(answers));
    for (size_t i = 0; i < COUNT(answers); i++) {
        struct kube_call call = {.method = "GET", .path = act_strdup("/x"), .what = "do it"};
        assert_fails(kube_do(f.kube, &call, &err), err, ACT_DENIED, "you sent Bearer ***");
        kube_call_release(&call);
    }
}

TEST(what_is_missing_or_there_may_be_fine)
{
    const char *answers[] = {"HTTP/1.1 404 Not Found\r\n\r\n{\"kind\": \"Status\", \"reason\": \"NotFound\"}",
                             "HTTP/1.1 409 Conflict\r\n\r\n{\"kind\": \"Status\", \"reason\": \"AlreadyExists\"}"};

    serve_with_token(answers, COUNT(answers));
    for (size_t i = 0; i < COUNT(answers); i++) {
        struct kube_call call = {.method = "POST",
                                 .path = act_strdup("/x"),
                                 .body = json_pack("{s:i}", "a", 1),
                                 .what = "do it",
                                 .missing_is_fine = true,
                                 .exists_is_fine = true};
        assert_ok(kube_do(f.kube, &call, &err), err);
        assert_int_equal(call.status, i ? 409 : 404);
        assert_null(call.response);
        kube_call_release(&call);
    }
    assert_contains(kube_test_asked(0), "\r\nContent-Type: application/json\r\n");
    assert_contains(kube_test_asked(0), "{\"a\":1}");
}

static int kube_test_count(void *arg, const json_t *item, struct act_error *why)
{
    (void)item, (void)why;
    ++*(int *)arg;
    return 0;
}

TEST(a_list_has_pages_and_begins_again_when_it_expires)
{
    const char *answers[] = {
        OK "{\"items\": [{}, {}], \"metadata\": {\"continue\": \"a=\"}}",
        "HTTP/1.1 410 Gone\r\n\r\n{\"kind\": \"Status\", \"reason\": \"Expired\", \"message\": \"too old\"}",
        OK "{\"items\": [{}, {}], \"metadata\": {\"continue\": \"b\"}}", OK "{\"items\": [{}], \"metadata\": {}}"};
    int n = 0;

    serve_with_token(answers, COUNT(answers));
    assert_ok(kube_each(f.kube, "/api/v1/pods?labelSelector=x", "list pods", kube_test_count, &n, &err), err);
    assert_int_equal(n, 5);
    assert_contains(kube_test_asked(0), "/api/v1/pods?labelSelector=x&limit=500 ");
    assert_contains(kube_test_asked(1), "&limit=500&continue=a%3D ");
    assert_contains(kube_test_asked(3), "&continue=b ");
}

static int stop_at_first(void *arg, const json_t *item, struct act_error *why)
{
    (void)item, (void)why;
    return ++*(int *)arg;
}

/* Who counts, or starts something for each, would otherwise do it twice. */
TEST(nothing_comes_twice_of_a_list_that_begins_again)
{
#define POD(space, name) "{\"metadata\": {\"namespace\": \"" space "\", \"name\": \"" name "\"}}"
    const char *answers[] = {
        OK "{\"items\": [" POD("n", "a") ", " POD("n", "b") "], \"metadata\": {\"continue\": \"x\"}}",
        "HTTP/1.1 410 Gone\r\n\r\n{\"kind\": \"Status\", \"reason\": \"Expired\", \"message\": \"too old\"}",
        OK "{\"items\": [" POD("n", "a") ", " POD("n", "b") ", " POD("m", "a") ", " POD("m", "a") "]}"};
#undef POD
    int n = 0;

    serve_with_token(answers, COUNT(answers));
    assert_ok(kube_each(f.kube, "/api/v1/pods", "list pods", kube_test_count, &n, &err), err);
    assert_int_equal(n, 3);
}

TEST(a_list_ends_where_its_reader_has_enough)
{
    const char *answers[] = {OK "{\"items\": [{}, {}], \"metadata\": {\"continue\": \"a\"}}"};
    int n = 0;

    serve_with_token(answers, COUNT(answers));
    assert_ok(kube_each(f.kube, "/api/v1/pods", "list pods", stop_at_first, &n, &err), err);
    assert_int_equal(n, 1);
}

static void check_circle(const char *const *answers, size_t n_pages)
{
    int n = 0;

    serve_with_token(answers, n_pages);
    assert_fails(kube_each(f.kube, "/api/v1/pods", "list pods", kube_test_count, &n, &err), err, ACT_FAIL,
                 "same pages again");
    assert_int_equal(n, n_pages);
}

static const char page_a[] = OK "{\"items\": [{}], \"metadata\": {\"continue\": \"a\"}}",
                  page_b[] = OK "{\"items\": [{}], \"metadata\": {\"continue\": \"b\"}}";

TEST(a_page_that_leads_to_itself_is_an_error)
{
    check_circle((const char *[]){page_a, page_a}, 2);
}

TEST(pages_that_lead_round_in_a_circle_are_an_error)
{
    check_circle((const char *[]){page_a, page_b, page_a, page_b}, 4);
}

TEST(a_list_that_expires_twice_is_an_error)
{
    static const char
        page[] = OK "{\"items\": [], \"metadata\": {\"continue\": \"a\"}}",
        gone[] = "HTTP/1.1 410 Gone\r\n\r\n{\"kind\": \"Status\", \"reason\": \"Expired\", \"message\": \"too old\"}";
    const char *answers[] = {page, gone, page, gone};
    int n = 0;

    serve_with_token(answers, COUNT(answers));
    assert_fails(kube_each(f.kube, "/api/v1/pods", "list pods", kube_test_count, &n, &err), err, ACT_TEMPORARY,
                 "too old");
}

TEST(a_redirection_is_not_followed)
{
    const char *answers[] = {"HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1:{port}/evil\r\n\r\n"};
    json_t *out = NULL;

    serve_with_token(answers, COUNT(answers));
    assert_fails(kube_get(f.kube, "/x", "get it", &out, &err), err, ACT_FAIL,
                 "HTTP 302; redirections are not followed");
    assert_int_equal(f.server.requests_n, 1);
}

TEST(a_server_that_failed_in_its_own_words_is_not_asked_again)
{
    const char *answers[] = {
        "HTTP/1.1 500 Oops\r\n\r\n{\"kind\": \"Status\", \"message\": \"failed calling webhook\"}"};
    json_t *out = NULL;

    serve_answers(answers, COUNT(answers));
    http_free(f.http);
    f.http = http_new(f.engine, &(struct http_options){.max_retries = 3});
    kube_test_write_config(CLUSTER("http://127.0.0.1:{port}") CONTEXT USER("token: abc"));
    assert_ok(kube_test_open_it(), err);
    assert_fails(kube_get(f.kube, "/x", "get it", &out, &err), err, ACT_TEMPORARY, "HTTP 500: failed calling webhook");
    assert_int_equal(err.http_status, 500);
}

TEST(rights_are_asked_for)
{
    const char *answers[] = {"HTTP/1.1 201 Created\r\n\r\n{\"status\": {\"allowed\": true}}",
                             "HTTP/1.1 201 Created\r\n\r\n{\"status\": {\"allowed\": false}}"};
    bool allowed = false;

    serve_with_token(answers, COUNT(answers));
    assert_ok(kube_may(f.kube, "get", "", "pods/log", &allowed, &err), err);
    assert_true(allowed);
    assert_ok(kube_may(f.kube, "create", "batch", "jobs", &allowed, &err), err);
    assert_false(allowed);
    assert_contains(kube_test_asked(0), "POST /prefix/apis/authorization.k8s.io/v1/selfsubjectaccessreviews ");
    assert_contains(kube_test_asked(0),
                    "{\"namespace\":\"team\",\"verb\":\"get\",\"group\":\"\",\"resource\":\"pods\",\"subresource\":"
                    "\"log\"}");
}

TEST(a_text_is_a_response_too)
{
    const char *answers[] = {OK "line 1\nline 2\n"};
    struct kube_call call = {.method = "GET", .path = act_strdup("/log"), .what = "read the log"};

    serve_with_token(answers, COUNT(answers));
    assert_ok(kube_do(f.kube, &call, &err), err);
    assert_null(call.response);
    assert_string_equal(call.text, "line 1\nline 2\n");
    kube_call_release(&call);
}

TEST(user_and_password_and_who_to_act_as_are_sent)
{
    const char *answers[] = {OK "{}"};
    CODEC_AUTOJSON json_t *out = NULL;

    serve_answers(answers, COUNT(answers));
    kube_test_write_config(CLUSTER("http://127.0.0.1:{port}") CONTEXT USER(
        "username: ann, password: 'p:w', as: bob, as-groups: [g1, g2], as-uid: '7', "
        "as-user-extra: {reason: [why]}"));
    assert_ok(kube_test_open_it(), err);
    assert_ok(kube_get(f.kube, "/x", "get it", &out, &err), err);
    assert_contains(kube_test_asked(0), "\r\nAuthorization: Basic YW5uOnA6dw==\r\n");
    assert_contains(kube_test_asked(0), "\r\nImpersonate-User: bob\r\n");
    assert_contains(kube_test_asked(0), "\r\nImpersonate-Group: g1\r\n");
    assert_contains(kube_test_asked(0), "\r\nImpersonate-Group: g2\r\n");
    assert_contains(kube_test_asked(0), "\r\nImpersonate-Uid: 7\r\n");
    assert_contains(kube_test_asked(0), "\r\nImpersonate-Extra-reason: why\r\n");
}

/* ---- streams ---- */

struct reader {
    struct kube_stream stream;
    struct act_buf text;
    size_t enough; /* bytes; 0: all */
    bool finished;
};

static void kube_test_take(struct kube_stream *stream, const char *data, size_t len)
{
    struct reader *r = stream->arg;

    act_buf_add(&r->text, data, len);
    if (r->enough && r->text.len >= r->enough)
        kube_stream_cancel(stream);
}

static void kube_test_finish(struct kube_stream *stream)
{
    ((struct reader *)stream->arg)->finished = true;
}

static void kube_test_start_reading(struct reader *r, const char *path, size_t enough)
{
    *r = (struct reader){
        .enough = enough,
        .stream = {.path = act_strdup(path), .what = "follow it", .take = kube_test_take, .done = kube_test_finish}};
    r->stream.arg = r;
    kube_stream_start(f.kube, &r->stream);
}

static void reader_release(struct reader *r)
{
    kube_stream_release(&r->stream);
    act_buf_release(&r->text);
}

TEST(a_stream_comes_to_its_end)
{
    const char *answers[] = {OK "a\nb\n"};
    ACT_AUTO(reader) r;

    serve_with_token(answers, COUNT(answers));
    kube_test_start_reading(&r, "/log?follow=true", 0);
    engine_run(f.engine, &r.finished);
    assert_ok(r.stream.rc, r.stream.error);
    assert_string_equal(r.text.data, "a\nb\n");
    assert_int_equal(r.stream.status, 200);
}

TEST(a_stream_that_is_cut_is_known)
{
    const char *answers[] = {"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\na\n"};
    ACT_AUTO(reader) r;

    serve_with_token(answers, COUNT(answers));
    kube_test_start_reading(&r, "/log", 0);
    engine_run(f.engine, &r.finished);
    assert_int_equal(r.stream.rc, -ACT_TEMPORARY);
    assert_true(r.stream.error.network);
    assert_string_equal(r.text.data, "a\n");
}

TEST(a_stream_may_be_refused)
{
    const char *answers[] = {"HTTP/1.1 400 Bad\r\n\r\n{\"kind\": \"Status\", \"reason\": \"BadRequest\", \"message\": "
                             "\"is waiting to start\"}"};
    ACT_AUTO(reader) r;

    serve_with_token(answers, COUNT(answers));
    kube_test_start_reading(&r, "/log", 0);
    engine_run(f.engine, &r.finished);
    assert_int_equal(r.stream.rc, -ACT_FAIL);
    assert_string_equal(act_error_text(&r.stream.error), "cannot follow it: HTTP 400: is waiting to start");
    assert_int_equal(r.text.len, 0);
}

TEST(the_reader_ends_a_stream_from_inside_and_before_it_began)
{
    f.steps[0] = (struct step){OK "a\n", STALL};
    f.engine = engine_new(&(struct engine_options){0});
    f.http = http_new(f.engine, NULL);
    server_start(&f.server, f.steps, 1);
    kube_test_write_config(CLUSTER("http://127.0.0.1:{port}") CONTEXT USER("token: abc"));
    assert_ok(kube_test_open_it(), err);
    ACT_AUTO(reader) first, second;
    kube_test_start_reading(&first, "/log", 1);
    kube_test_start_reading(&second, "/log", 1);
    kube_stream_cancel(&second.stream);
    engine_run(f.engine, &first.finished);
    engine_run(f.engine, &second.finished);
    assert_int_equal(first.stream.rc, -ACT_INTERRUPTED);
    assert_int_equal(second.stream.rc, -ACT_INTERRUPTED);
    assert_string_equal(first.text.data, "a\n");
    kube_stream_cancel(&first.stream); /* what has ended is left alone */
}

static void cancel(void *arg)
{
    kube_stream_cancel(arg);
}

TEST(a_silent_stream_is_no_stall_and_can_be_ended)
{
    f.steps[0] = (struct step){OK "a\n", STALL};
    f.engine = engine_new(&(struct engine_options){0});
    f.http = http_new(f.engine, &(struct http_options){.stall_timeout_s = 1});
    server_start(&f.server, f.steps, 1);
    kube_test_write_config(CLUSTER("http://127.0.0.1:{port}") CONTEXT USER("token: abc"));
    assert_ok(kube_test_open_it(), err);
    ACT_AUTO(reader) r;
    kube_test_start_reading(&r, "/log", 0);
    engine_timer(f.engine, 2500, cancel, &r.stream);
    engine_run(f.engine, &r.finished);
    assert_int_equal(r.stream.rc, -ACT_INTERRUPTED);
}

/* ---- TLS ---- */

/* kube_server.py, whose certificates are in our folder; its port. */
static int start_peer(void)
{
    char *argv[] = {(char[]){"/usr/bin/python3"}, (char[]){TEST_DATA "/unit/kube_server.py"}, f.home, NULL};
    int ends[2], port = 0;

    assert_int_equal(pipe(ends), 0);
    struct proc_start start = {.argv = argv, .in_fd = -1, .out_fd = ends[1], .err_fd = -1};
    assert_ok(proc_start(&start, &f.peer, &err), err);
    close(ends[1]);
    FILE *said = fdopen(ends[0], "r");
    assert_int_equal(fscanf(said, "%d", &port), 1);
    fclose(said);
    f.engine = engine_new(&(struct engine_options){0});
    f.http = http_new(f.engine, &(struct http_options){.max_retries = -1});
    return port;
}

static void use_tls(int port, const char *cluster, const char *user)
{
    ACT_AUTOFREE char *text =
        act_sprintf("clusters: [{name: c, cluster: {server: 'https://127.0.0.1:%d', %s}}]\n" CONTEXT
                    "users: [{name: u, user: {%s}}]\n",
                    port, cluster, user);

    kube_test_write_config(text);
    assert_ok(kube_test_open_it(), err);
}

#define NAMED   "tls-server-name: cluster.test, "
#define CA      "certificate-authority: ca.crt"
#define AS(who) "client-certificate: " who ".crt, client-key: " who ".key"

/* What the server saw. */
static json_t *seen(void)
{
    json_t *out = NULL;

    assert_ok(kube_get(f.kube, "/x", "look", &out, &err), err);
    return out;
}

TEST(certificates_are_those_of_the_kubeconfig)
{
    int port = start_peer();
    ACT_AUTOFREE char *host = act_sprintf("127.0.0.1:%d", port);

    use_tls(port, NAMED CA, AS("ann"));
    CODEC_AUTOJSON json_t *saw = seen();
    assert_string_equal(codec_json_str(saw, "client", ""), "ann");
    assert_string_equal(codec_json_str(saw, "name", ""), "cluster.test");
    assert_string_equal(codec_json_str(saw, "host", ""), host);
}

TEST(a_connection_is_not_shared_by_different_certificates)
{
    static const struct {
        const char *user, *seen;
    } turns[] = {{AS("ann"), "ann"}, {AS("bob"), "bob"}, {"token: t", ""}, {AS("ann"), "ann"}, {AS("bob"), "bob"}};
    int port = start_peer();
    int64_t ports[COUNT(turns)];

    for (size_t i = 0; i < COUNT(turns); i++) {
        use_tls(port, NAMED CA, turns[i].user);
        CODEC_AUTOJSON json_t *saw = seen();
        assert_string_equal(codec_json_str(saw, "client", "?"), turns[i].seen);
        ports[i] = codec_json_int(saw, "port", 0);
    }
    assert_int_equal(ports[3], ports[0]); /* but the same ones do share it */
    assert_int_equal(ports[4], ports[1]);
    assert_true(ports[0] != ports[1] && ports[1] != ports[2] && ports[0] != ports[2]);
}

TEST(only_the_authority_of_the_kubeconfig_is_trusted)
{
    int port = start_peer();
    json_t *out = NULL;

    use_tls(port, NAMED CA, AS("ann"));
    json_decref(seen());
    use_tls(port, NAMED "certificate-authority: other.crt", AS("ann"));
    assert_fails(kube_get(f.kube, "/x", "look", &out, &err), err, ACT_DENIED, "cannot look: cannot trust cluster.test");
    assert_contains(act_error_text(&err), "'certificate-authority-data' and 'tls-server-name' of the kubeconfig");
    use_tls(port, CA, AS("ann")); /* the certificate is not for 127.0.0.1 */
    assert_fails(kube_get(f.kube, "/x", "look", &out, &err), err, ACT_DENIED, "cannot trust 127.0.0.1");
    use_tls(port, "insecure-skip-tls-verify: true", AS("bob"));
    CODEC_AUTOJSON json_t *saw = seen();
    assert_string_equal(codec_json_str(saw, "client", ""), "bob");
    use_tls(port, CA, AS("bob")); /* not even after that */
    assert_fails(kube_get(f.kube, "/x", "look", &out, &err), err, ACT_DENIED, "cannot trust 127.0.0.1");
}

TEST(a_stream_over_tls_ends_when_its_reader_wants)
{
    ACT_AUTO(reader) r;

    use_tls(start_peer(), NAMED CA, AS("ann"));
    kube_test_start_reading(&r, "/stream", 4);
    engine_run(f.engine, &r.finished);
    assert_int_equal(r.stream.rc, -ACT_INTERRUPTED);
    assert_string_equal(r.text.data, "one\n");
    assert_int_equal(r.stream.status, 200);
}

TEST(a_proxy_is_the_one_of_the_kubeconfig)
{
    const char *answers[] = {"HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n"};
    json_t *out = NULL;

    serve_answers(answers, COUNT(answers));
    kube_test_write_config("clusters: [{name: c, cluster: {server: 'https://cluster.test:6443', "
                           "proxy-url: 'http://u:secret@127.0.0.1:{port}'}}]\n" CONTEXT USER("token: abc"));
    assert_ok(kube_test_open_it(), err);
    assert_fails(kube_get(f.kube, "/x", "look", &out, &err), err, ACT_DENIED, "the proxy 'http://REDACTED@127.0.0.1:");
    assert_lacks(act_error_text(&err), "secret");
    assert_contains(kube_test_asked(0), "CONNECT cluster.test:6443 ");
    assert_lacks(kube_test_asked(0), "abc");
}

/* ---- token files ---- */

static void kube_test_write_file(const char *name, const char *text, mode_t mode)
{
    ACT_AUTOFREE char *path = act_sprintf("%s/%s", f.home, name);

    assert_ok(act_file_write(path, text, strlen(text), mode, &err), err);
}

TEST(a_token_file_is_read_again_when_its_token_is_refused)
{
    const char *answers[] = {OK "{}", "HTTP/1.1 401 Unauthorized\r\n\r\n", OK "{}"};

    serve_answers(answers, COUNT(answers));
    kube_test_write_config(CLUSTER("http://127.0.0.1:{port}") CONTEXT USER("token: other, tokenFile: token"));
    kube_test_write_file("token", "first\n", 0600);
    assert_ok(kube_test_open_it(), err);
    json_decref(seen());
    kube_test_write_file("token", "second", 0600);
    json_decref(seen());
    assert_contains(kube_test_asked(0), "Bearer first\r\n");
    assert_contains(kube_test_asked(1), "Bearer first\r\n");
    assert_contains(kube_test_asked(2), "Bearer second\r\n");
}

TEST(an_empty_token_file_is_an_error)
{
    json_t *out = NULL;

    serve_answers(NULL, 0);
    kube_test_write_config(CLUSTER("http://127.0.0.1:{port}") CONTEXT USER("tokenFile: token"));
    kube_test_write_file("token", "\n", 0600);
    assert_ok(kube_test_open_it(), err);
    assert_fails(kube_get(f.kube, "/x", "look", &out, &err), err, ACT_CONFIG, "cannot look: the token file '");
}

/* ---- plugins ---- */

#define EXEC(more)                                                                                                     \
    "exec: {apiVersion: client.authentication.k8s.io/v1, interactiveMode: IfAvailable, command: ./plugin, "            \
    "args: [one, 'two words'], env: [{name: WHO, value: ann}], installHint: 'get it at example.com'" more "}"
#define CREDENTIAL(status)                                                                                             \
    "{\"kind\": \"ExecCredential\", \"apiVersion\": \"client.authentication.k8s.io/v1\", \"status\": {" status "}}"

/* A plugin that answers this, after it has noted how it was called. */
static void write_plugin(const char *answer, const char *more)
{
    ACT_AUTOFREE char *text = act_sprintf("#!/bin/sh\n"
                                          "echo \"$# $2 $WHO $KUBERNETES_EXEC_INFO\" >>'%s/calls'\n"
                                          "%s\ncat <<'END'\n%s\nEND\n",
                                          f.home, more, answer);

    kube_test_write_file("plugin", text, 0700);
}

/* What it noted: a line for each call. New string. */
static char *calls(size_t *out_n)
{
    ACT_AUTOFREE char *path = act_sprintf("%s/calls", f.home);
    char *text = NULL;
    size_t len = 0;

    assert_ok(act_file_read(path, 1 << 20, &text, &len, &err), err);
    *out_n = 0;
    for (const char *c = text; *c; c++)
        *out_n += *c == '\n';
    return text;
}

static void use_plugin(const char *const *answers, size_t n)
{
    serve_answers(answers, n);
    kube_test_write_config(CLUSTER("http://127.0.0.1:{port}") CONTEXT USER(EXEC("")));
    assert_ok(kube_test_open_it(), err);
}

TEST(a_plugin_is_asked_once)
{
    const char *answers[] = {OK "{}", OK "{}"};
    size_t n = 0;

    write_plugin(CREDENTIAL("\"token\": \"tok\""), "");
    use_plugin(answers, COUNT(answers));
    assert_contains(kube_plugin(f.kube), "/plugin' 'one' 'two words'");
    json_decref(seen());
    json_decref(seen());
    ACT_AUTOFREE char *noted = calls(&n);
    assert_string_equal(noted,
                        "2 two words ann {\"kind\":\"ExecCredential\",\"apiVersion\":\"client.authentication.k8s.io/"
                        "v1\",\"spec\":{\"interactive\":false}}\n");
    assert_contains(kube_test_asked(1), "\r\nAuthorization: Bearer tok\r\n");
}

TEST(a_plugin_is_asked_again_when_its_answer_is_refused_or_has_ended)
{
    const char *answers[] = {"HTTP/1.1 401 Unauthorized\r\n\r\n", OK "{}", OK "{}",
                             "HTTP/1.1 401 Unauthorized\r\n\r\n{\"kind\": \"Status\", \"message\": \"Unauthorized\"}",
                             "HTTP/1.1 401 Unauthorized\r\n\r\n{\"kind\": \"Status\", \"message\": \"Unauthorized\"}"};
    size_t n = 0;
    json_t *out = NULL;

    write_plugin(CREDENTIAL("\"token\": \"tok\", \"expirationTimestamp\": \"2020-01-01T00:00:00Z\""), "");
    use_plugin(answers, COUNT(answers));
    json_decref(seen());
    free(calls(&n));
    assert_int_equal(n, 2);
    json_decref(seen());
    free(calls(&n));
    assert_int_equal(n, 3);
    assert_fails(kube_get(f.kube, "/x", "look", &out, &err), err, ACT_DENIED,
                 "cannot look: HTTP 401: Unauthorized; the "
                 "cluster does not accept");
    assert_int_equal(f.server.requests_n, 5);
}

TEST(requests_of_one_moment_ask_a_plugin_together)
{
    const char *answers[] = {OK "{}", OK "{}"};
    struct reader r[2];
    size_t n = 0;

    write_plugin(CREDENTIAL("\"token\": \"tok\", \"expirationTimestamp\": \"2090-01-01T00:00:00Z\""), "");
    use_plugin(answers, COUNT(answers));
    kube_test_start_reading(&r[0], "/a", 0);
    kube_test_start_reading(&r[1], "/b", 0);
    engine_run(f.engine, &r[0].finished);
    engine_run(f.engine, &r[1].finished);
    assert_true(r[0].finished && r[1].finished);
    free(calls(&n));
    assert_int_equal(n, 1);
    reader_release(&r[0]);
    reader_release(&r[1]);
}

TEST(a_plugin_may_be_told_of_the_cluster)
{
    const char *answers[] = {OK "{}"};
    size_t n = 0;

    write_plugin(CREDENTIAL("\"token\": \"tok\""), "");
    serve_answers(answers, COUNT(answers));
    kube_test_write_config("clusters: [{name: c, cluster: {server: 'http://127.0.0.1:{port}', extensions: [{name: "
                           "client.authentication.k8s.io/exec, extension: {audience: x, n: 1}}]}}]\n" CONTEXT USER(
                               EXEC(", provideClusterInfo: true")));
    assert_ok(kube_test_open_it(), err);
    json_decref(seen());
    ACT_AUTOFREE char *noted = calls(&n);
    ACT_AUTOFREE char *wanted = act_sprintf(
        "\"cluster\":{\"server\":\"http://127.0.0.1:%d\",\"config\":{\"audience\":\"x\",\"n\":1}}", f.server.port);
    assert_contains(noted, wanted);
}

TEST(a_plugin_may_answer_a_certificate)
{
    int port = start_peer();
    size_t cert_len = 0, key_len = 0;
    ACT_AUTOFREE char *cert_path = act_sprintf("%s/bob.crt", f.home), *key_path = act_sprintf("%s/bob.key", f.home);
    ACT_AUTOFREE char *cert = NULL, *key = NULL;

    assert_ok(act_file_read(cert_path, 1 << 20, &cert, &cert_len, &err), err);
    assert_ok(act_file_read(key_path, 1 << 20, &key, &key_len, &err), err);
    CODEC_AUTOJSON json_t *answer =
        json_pack("{s:s, s:s, s:{s:s, s:s}}", "kind", "ExecCredential", "apiVersion", "client.authentication.k8s.io/v1",
                  "status", "clientCertificateData", cert, "clientKeyData", key);
    ACT_AUTOFREE char *line = codec_json_line(answer);
    write_plugin(line, "");
    use_tls(port, NAMED CA, EXEC(""));
    CODEC_AUTOJSON json_t *saw = seen();
    assert_string_equal(codec_json_str(saw, "client", ""), "bob");
}

TEST(a_plugin_is_beside_a_kubeconfig_that_is_named_from_here)
{
    const char *answers[] = {OK "{}"};

    write_plugin(CREDENTIAL("\"token\": \"tok\""), "");
    serve_answers(answers, COUNT(answers));
    kube_test_write_config(CLUSTER("http://127.0.0.1:{port}") CONTEXT USER(EXEC("")));
    assert_int_equal(chdir(f.home), 0);
    setenv("KUBECONFIG", "config", 1);
    assert_ok(kube_open(&(struct kube_options){.http = f.http}, &f.kube, &err), err);
    assert_int_equal(chdir("/"), 0);
    json_decref(seen());
    assert_contains(kube_test_asked(0), "Bearer tok");
}

TEST(a_plugin_that_fails_is_quoted)
{
    static const struct {
        const char *answer, *more;
        int code;
        const char *said;
    } bad[] = {
        {"", "echo 'login has expired' >&2; exit 3", ACT_DENIED,
         "(exit status 3): login has expired; get it at example.com"},
        {"nonsense", "", ACT_FAIL, "does not answer JSON"},
        {"{}", "", ACT_FAIL, "does not answer an ExecCredential"},
        {CREDENTIAL(""), "", ACT_FAIL, "answers neither a token nor a certificate"},
        {CREDENTIAL("\"clientKeyData\": \"x\""), "", ACT_FAIL, "answers a certificate or a key, not both"},
        {CREDENTIAL("\"token\": \"a\", \"expirationTimestamp\": \"soon\""), "", ACT_FAIL, "that is no time"},
        {"{\"kind\": \"ExecCredential\", \"apiVersion\": \"client.authentication.k8s.io/v1beta1\"}", "", ACT_CONFIG,
         "answers as 'client.authentication.k8s.io/v1beta1'"},
    };
    json_t *out = NULL;

    serve_answers(NULL, 0);
    for (size_t i = 0; i < COUNT(bad); i++) {
        write_plugin(bad[i].answer, bad[i].more);
        kube_test_write_config(CLUSTER("http://127.0.0.1:{port}") CONTEXT USER(EXEC("")));
        assert_ok(kube_test_open_it(), err);
        assert_fails(kube_get(f.kube, "/x", "look", &out, &err), err, bad[i].code, bad[i].said);
        assert_contains(act_error_text(&err), "cannot look: the plugin '");
    }
    assert_int_equal(f.server.requests_n, 0);
}

TEST(a_plugin_that_is_missing_is_named)
{
    json_t *out = NULL;

    serve_answers(NULL, 0);
    kube_test_write_config(CLUSTER("http://127.0.0.1:{port}") CONTEXT USER(
        "exec: {apiVersion: client.authentication.k8s.io/v1beta1, command: no-such-plugin, "
        "installHint: 'get it at example.com'}"));
    assert_ok(kube_test_open_it(), err);
    assert_fails(kube_get(f.kube, "/x", "look", &out, &err), err, ACT_NOT_FOUND,
                 "no program 'no-such-plugin' in PATH, which the kubeconfig wants for its credentials; get it at");
}

/* ---- kubeconfigs ---- */

TEST(what_is_wrong_in_a_kubeconfig_is_said)
{
    static const struct {
        const char *text;
        int code;
        const char *said;
    } bad[] = {
        {"", ACT_CONFIG, "there is no cluster in '"},
        {"[1]", ACT_CONFIG, "this is no kubeconfig"},
        {"contexts: {a: 1}\ncurrent-context: a", ACT_CONFIG, "'contexts' must be a list"},
        {"contexts: [a]\ncurrent-context: a", ACT_CONFIG, "config:1:12: each of 'contexts' must be a map"},
        {"contexts: [{name: a}, {name: b}]", ACT_CONFIG, "has no 'current-context'; there is: a, b; choose one by"},
        {"contexts: [{name: a}]\ncurrent-context: c", ACT_CONFIG, "there is no context 'c' in '"},
        {"contexts: [{name: a}, {name: a}]\ncurrent-context: a", ACT_CONFIG, "there are two contexts 'a' in this file"},
        {"contexts: [{name: a, context: {cluster: q}}]\ncurrent-context: a", ACT_CONFIG,
         "names the cluster 'q', which"},
        {CLUSTER("https://a") "contexts: [{name: x, context: {cluster: c, user: u}}]\ncurrent-context: x", ACT_CONFIG,
         "names the user 'u', which is not defined"},
        {"clusters: [{name: c, cluster: {}}]\n" CONTEXT USER(""), ACT_CONFIG, "has no 'server'"},
        {CLUSTER("http://example.com") CONTEXT USER(""), ACT_CONFIG,
         "credentials go there, so it must begin with 'https:"},
        {CLUSTER("ftp://a") CONTEXT USER(""), ACT_CONFIG, "'server' must be like 'https://HOST:PORT'"},
        {"clusters: [{name: c, cluster: {server: 'https://a', tls-server-name: 'a b'}}]\n" CONTEXT USER(""), ACT_CONFIG,
         "'tls-server-name' must be a name"},
        {"clusters: [{name: c, cluster: {server: 'https://a', proxy-url: 'proxy:1'}}]\n" CONTEXT USER(""), ACT_CONFIG,
         "'proxy-url' must begin with 'http://'"},
        {"clusters: [{name: c, cluster: {server: 'https://a', certificate-authority-data: '!'}}]\n" CONTEXT USER(""),
         ACT_CONFIG, "'certificate-authority-data' is not base64"},
        {"clusters: [{name: c, cluster: {server: 'https://a', certificate-authority-data: YWJj}}]\n" CONTEXT USER(""),
         ACT_CONFIG, "is not the base64 of a PEM text"},
        {"clusters: [{name: c, cluster: {server: 'https://a', certificate-authority: no.crt}}]\n" CONTEXT USER(""),
         ACT_NOT_FOUND, "no.crt"},
        {"clusters: [{name: c, cluster: {server: 'https://a', insecure-skip-tls-verify: 3}}]\n" CONTEXT USER(""),
         ACT_CONFIG, "'insecure-skip-tls-verify' must be true or false"},
        {CLUSTER("https://a") CONTEXT USER("token: a, username: b"), ACT_CONFIG, "either a token or 'username'"},
        {CLUSTER("https://a") CONTEXT USER("client-key-data: LS0tLS1CRUdJTiA="), ACT_CONFIG, "no 'client-certificate'"},
        {CLUSTER("https://a") CONTEXT USER("token: [1]"), ACT_CONFIG, "'token' must be text"},
        {CLUSTER("https://a") CONTEXT USER("auth-provider: {name: azure}"), ACT_CONFIG,
         "'auth-provider' 'azure' is not supported; run 'kubelogin convert-kubeconfig'"},
        {CLUSTER("https://a") CONTEXT USER("auth-provider: {name: gcp}"), ACT_CONFIG, "gke-gcloud-auth-plugin"},
        {CLUSTER("https://a") CONTEXT USER("exec: {command: x, apiVersion: client.authentication.k8s.io/v1alpha1}"),
         ACT_CONFIG, "get a newer plugin"},
        {CLUSTER("https://a") CONTEXT USER("exec: {command: x, apiVersion: client.authentication.k8s.io/v1}"),
         ACT_CONFIG, "'interactiveMode' is missing"},
        {CLUSTER("https://a") CONTEXT USER("exec: {apiVersion: client.authentication.k8s.io/v1}"), ACT_CONFIG,
         "'exec' has no 'command'"},
        {CLUSTER("https://a") CONTEXT USER("as-uid: '1'"), ACT_CONFIG, "need 'as'"},
    };

    for (size_t i = 0; i < COUNT(bad); i++) {
        kube_test_write_config(bad[i].text);
        assert_fails(kube_test_open_it(), err, bad[i].code, bad[i].said);
        assert_null(f.kube);
    }
}

TEST(there_may_be_no_kubeconfig)
{
    struct kube_options options = {0};

    assert_fails(kube_open(&options, &f.kube, &err), err, ACT_NOT_FOUND,
                 "/.kube/config'; name one by 'k8s.kubeconfig'");
    setenv("KUBECONFIG", "/no/such/file", 1);
    assert_fails(kube_open(&options, &f.kube, &err), err, ACT_NOT_FOUND, "there is no kubeconfig '/no/such/file'");
    options.kubeconfig = "/no/such/other";
    assert_fails(kube_open(&options, &f.kube, &err), err, ACT_NOT_FOUND, "/no/such/other");
}

TEST(options_come_before_the_kubeconfig)
{
    kube_test_write_config(
        "clusters: [{name: c, cluster: {server: 'https://c'}}, {name: d, cluster: {server: 'https://d/p/'}}]\n"
        "contexts: [{name: x, context: {cluster: c}}, {name: y, context: {cluster: d}}]\ncurrent-context: x\n");
    assert_ok(kube_test_open_it(), err);
    assert_string_equal(kube_server(f.kube), "https://c");
    assert_string_equal(kube_namespace(f.kube), "default");
    assert_null(kube_plugin(f.kube));
    kube_free(f.kube);
    struct kube_options options = {.kubeconfig = f.file, .context = "y", .namespace_ = "n"};
    assert_ok(kube_open(&options, &f.kube, &err), err);
    assert_string_equal(kube_server(f.kube), "https://d/p");
    assert_string_equal(kube_namespace(f.kube), "n");
    assert_string_equal(kube_context(f.kube), "y");
    ACT_AUTOFREE char *path = kube_path(f.kube, "v1", "pods", NULL, "limit=1");
    assert_string_equal(path, "/api/v1/namespaces/n/pods?limit=1");
    ACT_AUTOFREE char *nodes = kube_cluster_path("v1", "nodes", "a", NULL);
    assert_string_equal(nodes, "/api/v1/nodes/a");
}

TEST(a_pod_has_an_account)
{
    struct kube_options options = {0};

    kube_test_write_file("token", "t", 0600);
    kube_test_write_file("namespace", "inside", 0600);
    kube_account_dir = f.home;
    setenv("KUBERNETES_SERVICE_HOST", "fd00::1", 1);
    setenv("KUBERNETES_SERVICE_PORT", "443", 1);
    assert_ok(kube_open(&options, &f.kube, &err), err);
    assert_string_equal(kube_server(f.kube), "https://[fd00::1]:443");
    assert_string_equal(kube_namespace(f.kube), "inside");
    assert_string_equal(kube_context(f.kube), "in-cluster");
}

/* ---- what kubectl makes of it ---- */

/* What kubectl says of the chosen context: everything else is left out, and every file is in it as base64. */
static json_t *by_kubectl(void)
{
    char *argv[] = {(char[]){"kubectl"}, (char[]){"config"},   (char[]){"view"},
                    (char[]){"--raw"},   (char[]){"--minify"}, (char[]){"--flatten"},
                    (char[]){"-o"},      (char[]){"json"},     NULL};
    ACT_AUTOFREE char *text = NULL;
    json_t *out = NULL;
    int status = 0;

    assert_ok(proc_run(argv, PATIENCE_S, 1 << 20, &text, &status, &err), err);
    assert_int_equal(status, 0);
    assert_ok(codec_json_parse(text, strlen(text), "kubectl", &out, &err), err);
    return out;
}

static const json_t *only(const json_t *all, const char *list, const char *part)
{
    return json_object_get(json_array_get(json_object_get(all, list), 0), part);
}

static void same(const char *what, const char *ours, const char *theirs)
{
    if (!act_streq(ours ? ours : "", theirs ? theirs : ""))
        fail_msg("%s: ours is '%s', kubectl's is '%s'", what, ours ? ours : "", theirs ? theirs : "");
}

static void same_pem(const char *ours, const json_t *part, const char *key)
{
    ACT_AUTOFREE char *coded = ours ? act_base64_encode(ours, strlen(ours)) : NULL;

    same(key, coded, codec_json_str(part, key, NULL));
}

static void same_exec(const struct kube_exec *ours, const json_t *theirs)
{
    const json_t *args = json_object_get(theirs, "args"), *arg;
    size_t i;

    /* 'view' leaves it as it is written, though it is run relative to the file */
    same("command", ours->argv.n ? act_path_basename(ours->argv.v[0]) : NULL,
         act_path_basename(codec_json_str(theirs, "command", "")));
    same("apiVersion", ours->api_version, codec_json_str(theirs, "apiVersion", NULL));
    same("installHint", ours->install_hint, codec_json_str(theirs, "installHint", NULL));
    assert_int_equal(ours->provide_cluster, json_is_true(json_object_get(theirs, "provideClusterInfo")));
    assert_int_equal(ours->argv.n, theirs ? json_array_size(args) + 1 : 0);
    json_array_foreach(args, i, arg) same("args", ours->argv.v[i + 1], json_string_value(arg));
    json_array_foreach(json_object_get(theirs, "env"), i, arg)
    {
        ACT_AUTOFREE char *variable =
            act_sprintf("%s=%s", codec_json_str(arg, "name", ""), codec_json_str(arg, "value", ""));
        same("env", ours->env.v[i], variable);
    }
}

static void compare_with_kubectl(void)
{
    struct kube_config ours = {0};
    CODEC_AUTOJSON json_t *theirs = by_kubectl();
    const json_t *cluster = only(theirs, "clusters", "cluster"), *user = only(theirs, "users", "user");
    const json_t *context = only(theirs, "contexts", "context");

    assert_ok(kube_config_read(&(struct kube_options){0}, &ours, &err), err);
    same("context", ours.context, codec_json_str(theirs, "current-context", NULL));
    same("namespace", ours.namespace_, codec_json_str(context, "namespace", "default"));
    same("server", ours.server, codec_json_str(cluster, "server", NULL));
    same("tls-server-name", ours.server_name, codec_json_str(cluster, "tls-server-name", NULL));
    same("proxy-url", ours.proxy, codec_json_str(cluster, "proxy-url", NULL));
    assert_int_equal(ours.insecure, json_is_true(json_object_get(cluster, "insecure-skip-tls-verify")));
    same_pem(ours.ca, cluster, "certificate-authority-data");
    same_pem(ours.cert, user, "client-certificate-data");
    same_pem(ours.key, user, "client-key-data");
    same("token", ours.token, codec_json_str(user, "token", NULL));
    same("tokenFile", ours.token_file, codec_json_str(user, "tokenFile", NULL));
    same("username", ours.user, codec_json_str(user, "username", NULL));
    same("password", ours.password, codec_json_str(user, "password", NULL));
    same("as", http_header_get(&ours.as, "Impersonate-User"), codec_json_str(user, "as", NULL));
    same_exec(&ours.exec, json_object_get(user, "exec"));
    kube_config_release(&ours);
}

#define PEM    "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n"
#define CODED  "LS0tLS1CRUdJTiBDRVJUSUZJQ0FURS0tLS0tCk1JSUIKLS0tLS1FTkQgQ0VSVElGSUNBVEUtLS0tLQo="
#define A_HEAD "apiVersion: v1\nkind: Config\n"

TEST(kubectl_reads_the_same)
{
    static const struct {
        const char *first, *second; /* files of KUBECONFIG; a third one does not exist */
    } sets[] = {
        {A_HEAD
         "clusters: [{name: c, cluster: {server: 'https://one:6443', certificate-authority: sub/ca.pem}}]\n" CONTEXT
             USER("token: abc"),
         A_HEAD},
        {A_HEAD CONTEXT
         "clusters:\n- name: c\n  cluster:\n    server: https://one\n    insecure-skip-tls-verify: true\n"
         "    tls-server-name: other\n    proxy-url: http://proxy:3128\n",
         A_HEAD USER("client-certificate-data: " CODED ", client-key: sub/ca.pem")},
        {A_HEAD "current-context: x\nclusters: [{name: c, cluster: {server: 'https://one'}}]\n",
         A_HEAD CONTEXT "clusters: [{name: c, cluster: {server: 'https://two', tls-server-name: two}}, "
                        "{name: d, cluster: {server: 'https://three/path'}}]\n"
                        "users: [{name: u, user: {username: ann, password: 'pw'}}]\n"},
        {A_HEAD,
         "{\"apiVersion\": \"v1\", \"kind\": \"Config\", \"current-context\": \"x\", \"contexts\": [{\"name\": \"x\", "
         "\"context\": {\"cluster\": \"c\", \"user\": \"u\"}}], \"clusters\": [{\"name\": \"c\", \"cluster\": "
         "{\"server\": \"https://one\"}}], \"users\": [{\"name\": \"u\", \"user\": "
         "{\"as\": \"bob\", \"token\": \"t\"}}]}"},
        {A_HEAD CLUSTER("https://one") CONTEXT USER(EXEC(", provideClusterInfo: true")), A_HEAD},
        {A_HEAD CLUSTER("https://one") CONTEXT USER(
             "exec: {apiVersion: client.authentication.k8s.io/v1beta1, command: kubelogin, args: [get-token], "
             "env: [{name: A, value: b}, {name: C, value: ''}]}"),
         A_HEAD},
        {A_HEAD CLUSTER("https://one") CONTEXT USER("tokenFile: /var/token"), A_HEAD USER("token: other")},
    };
    ACT_AUTOFREE char *kubectl = proc_find_in_path("kubectl");
    ACT_AUTOFREE char *list = act_sprintf("%s/a/config:%s/none:%s/b/config", f.home, f.home, f.home);

    if (!kubectl)
        skip();
    setenv("KUBECONFIG", list, 1);
    for (size_t i = 0; i < COUNT(sets); i++) {
        kube_test_write_file("a/config", sets[i].first, 0600);
        kube_test_write_file("b/config", sets[i].second, 0600);
        kube_test_write_file("a/sub/ca.pem", PEM, 0600);
        kube_test_write_file("b/sub/ca.pem", PEM "another\n", 0600);
        compare_with_kubectl();
    }
}

/* What the call of this number told the plugin of the cluster. New reference. */
static json_t *told(size_t number)
{
    size_t n = 0;
    ACT_AUTOFREE char *noted = calls(&n);
    char *line = noted;
    CODEC_AUTOJSON json_t *info = NULL;

    assert_true(n > number);
    for (size_t i = 0; i < number; i++)
        line = strchr(line, '\n') + 1;
    const char *start = strchr(line, '{');
    assert_ok(codec_json_parse(start, strcspn(start, "\n"), "info", &info, &err), err);
    return json_incref(json_object_get(json_object_get(info, "spec"), "cluster"));
}

TEST(kubectl_tells_a_plugin_the_same)
{
    static const char exec[] = "exec: {apiVersion: client.authentication.k8s.io/v1beta1, command: ./plugin, "
                               "provideClusterInfo: true}";
    static const char *const clusters[] = {
        NAMED CA
        ", extensions: [{name: client.authentication.k8s.io/exec, extension: {a: [1, 'x', true], b: {c: null}}}]",
        "insecure-skip-tls-verify: true"};
    ACT_AUTOFREE char *kubectl = proc_find_in_path("kubectl");
    char *argv[] = {(char[]){"kubectl"}, (char[]){"--kubeconfig"}, f.file, (char[]){"get"},
                    (char[]){"--raw"},   (char[]){"/x"},           NULL};

    if (!kubectl)
        skip();
    int port = start_peer();
    write_plugin("{\"kind\": \"ExecCredential\", \"apiVersion\": \"client.authentication.k8s.io/v1beta1\", "
                 "\"status\": {\"token\": \"tok\"}}",
                 "");
    for (size_t i = 0; i < COUNT(clusters); i++) {
        ACT_AUTOFREE char *said = NULL;
        int status = 0;
        use_tls(port, clusters[i], exec);
        json_decref(seen());
        assert_ok(proc_run(argv, PATIENCE_S, 1 << 20, &said, &status, &err), err);
        assert_int_equal(status, 0);
        assert_contains(said, "Bearer tok");
        CODEC_AUTOJSON json_t *ours = told(2 * i);
        CODEC_AUTOJSON json_t *theirs = told(2 * i + 1);
        ACT_AUTOFREE char *ours_text = codec_json_line(ours), *theirs_text = codec_json_line(theirs);
        if (!json_equal(ours, theirs))
            fail_msg("ours is %s, kubectl's is %s", ours_text, theirs_text);
    }
}

static int no_terminal(void **state)
{
    (void)state;
    return freopen("/dev/null", "r", stdin) ? 0 : -1;
}

TEST_MAIN(no_terminal, NULL)
