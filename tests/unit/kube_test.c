/* The API of a cluster: kubeconfigs, and requests against a scripted server of this process. */
#include "unit/script_server.h"

#include <stdio.h>

#include "base/file.h"
#include "codec/json.h"
#include "engine/engine.h"
#include "http/http.h"
#include "kube/kube_internal.h"

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
};
static struct fixture f;

/* A folder of one's own with this kubeconfig in it; "{port}" is that of the server. */
static void write_config(const char *text)
{
    ACT_AUTOFREE char *whole = with_port(text, f.server.port);

    assert_ok(act_file_write(f.file, whole, strlen(whole), 0600, &err), err);
}

static int make_home(void **state)
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

static int remove_home(void **state)
{
    (void)state;
    kube_free(f.kube);
    http_free(f.http);
    engine_free(f.engine);
    if (f.server.steps)
        server_stop(&f.server);
    assert_ok(act_remove_tree(f.home, &err), err);
    free(f.home);
    free(f.file);
    return 0;
}

static int open_it(void)
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
    write_config(CLUSTER("http://127.0.0.1:{port}/prefix/") CONTEXT USER("token: abc"));
    assert_ok(open_it(), err);
}

static const char *asked(size_t i)
{
    assert_true(i < f.server.requests_n);
    return f.server.requests[i].data;
}

#undef TEST
#define TEST(name) TEST_IN(name, make_home, remove_home)

/* ---- requests ---- */

TEST(a_request_has_the_token_and_the_path_of_the_server)
{
    const char *answers[] = {OK "{\"kind\": \"Job\", \"metadata\": {\"name\": \"a\"}}"};
    CODEC_AUTOJSON json_t *job = NULL;

    serve_with_token(answers, COUNT(answers));
    ACT_AUTOFREE char *path = kube_path(f.kube, "batch/v1", "jobs", "a", NULL);
    assert_ok(kube_get(f.kube, path, "get job 'a'", &job, &err), err);
    assert_string_equal(codec_json_str(job, "kind", ""), "Job");
    assert_contains(asked(0), "GET /prefix/apis/batch/v1/namespaces/team/jobs/a HTTP/1.1\r\n");
    assert_contains(asked(0), "\r\nAuthorization: Bearer abc\r\n");
    assert_contains(asked(0), "\r\nAccept: application/json\r\n");
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
    assert_contains(asked(0), "\r\nContent-Type: application/json\r\n");
    assert_contains(asked(0), "{\"a\":1}");
}

static int count(void *arg, const json_t *item, struct act_error *why)
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
    assert_ok(kube_each(f.kube, "/api/v1/pods?labelSelector=x", "list pods", count, &n, &err), err);
    assert_int_equal(n, 5);
    assert_contains(asked(0), "/api/v1/pods?labelSelector=x&limit=500 ");
    assert_contains(asked(1), "&limit=500&continue=a%3D ");
    assert_contains(asked(3), "&continue=b ");
}

TEST_MAIN(NULL, NULL)
