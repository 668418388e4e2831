/* Requests to the resource manager, against a scripted server of this process that is the login service as well. */
#include "unit/script_server.h"

#include <stdio.h>

#include "arm/arm.h"
#include "auth/token.h"
#include "base/file.h"
#include "codec/json.h"
#include "engine/engine.h"
#include "http/http.h"

#define OK    "HTTP/1.1 200 OK\r\n\r\n"
#define AGAIN "Retry-After: 0\r\n"

static const char first_token[] = OK "{\"token_type\": \"Bearer\", \"expires_in\": 3599, \"access_token\": \"first\"}";
static const char second_token[] =
    OK "{\"token_type\": \"Bearer\", \"expires_in\": 3599, \"access_token\": \"second\"}";

struct fixture {
    struct server server;
    struct engine *engine;
    struct http *http;
    struct tokens *tokens;
    struct arm *arm;
    struct step steps[MAX_STEPS];
    struct act_error err;
    char *home, *endpoint;
};

/* The answers in their order; the first token comes before them. */
static void arm_test_set_up(struct fixture *f, const char *const *answers, size_t n)
{
    char home[] = "/tmp/act-arm-XXXXXX";
    const struct auth_cloud *cloud;

    *f = (struct fixture){0};
    assert_non_null(mkdtemp(home));
    f->home = act_strdup(home);
    setenv("ACT_HOME", home, 1);
    f->steps[0] = (struct step){first_token, CLOSE};
    for (size_t i = 0; i < n; i++)
        f->steps[i + 1] = (struct step){answers[i], CLOSE};
    server_start(&f->server, f->steps, n + 1);
    f->endpoint = act_sprintf("http://127.0.0.1:%d", f->server.port);
    setenv("AZURE_AUTHORITY_HOST", f->endpoint, 1);
    setenv("AZURE_TENANT_ID", "11111111-0000-0000-0000-000000000001", 1);
    setenv("AZURE_CLIENT_ID", "22222222-0000-0000-0000-000000000001", 1);
    setenv("AZURE_CLIENT_SECRET", "the~secret", 1);

    f->engine = engine_new(&(struct engine_options){0});
    f->http = http_new(f->engine, &(struct http_options){.max_retries = -1});
    f->tokens = tokens_new(f->http);
    assert_ok(auth_cloud_find(NULL, &cloud, &f->err), f->err);
    assert_ok(arm_new(
                  &(struct arm_options){
                      .http = f->http, .tokens = f->tokens, .endpoint = f->endpoint, .cloud = cloud, .is_own = true},
                  &f->arm, &f->err),
              f->err);
}

static void arm_test_tear_down(struct fixture *f)
{
    arm_free(f->arm);
    tokens_free(f->tokens);
    http_free(f->http);
    engine_free(f->engine);
    server_stop(&f->server);
    assert_ok(act_remove_tree(f->home, &f->err), f->err);
    free(f->home);
    free(f->endpoint);
}

/* What the request after the token said; the first is 1. */
static const char *arm_test_asked(const struct fixture *f, size_t n)
{
    assert_true(n < f->server.requests_n);
    return f->server.requests[n].data;
}

static bool has_header(const struct fixture *f, size_t n, const char *line)
{
    ACT_AUTOFREE char *whole = act_sprintf("\r\n%s\r\n", line);

    return strcasestr(arm_test_asked(f, n), whole) != NULL;
}

static int arm_test_get(struct fixture *f, json_t **out)
{
    return arm_get(f->arm, "/x", "2024-10-01", "look at 'x'", out, &f->err);
}

/* ---- requests ---- */

TEST(what_a_request_has)
{
    static const char *const answers[] = {OK "{\"a\": 1}", OK "", OK "{}"};
    CODEC_AUTOJSON json_t *answer = NULL;
    struct fixture f;

    arm_test_set_up(&f, answers, COUNT(answers));
    assert_ok(arm_test_get(&f, &answer), f.err);
    assert_int_equal(codec_json_int(answer, "a", 0), 1);
    struct arm_call put = {.method = "PUT",
                           .what = "make 'x'",
                           .url = act_strdup("/x?b=1"),
                           .api_version = "v",
                           .body = json_pack("{s:i}", "c", 2)};
    assert_ok(arm_do(f.arm, &put, &f.err), f.err);
    assert_null(put.response);
    arm_call_release(&put);
    ACT_AUTO(arm_call) post = {.method = "POST", .what = "end 'x'", .url = act_strdup("/x")};
    assert_ok(arm_do(f.arm, &post, &f.err), f.err);

    assert_non_null(strstr(arm_test_asked(&f, 0), "client_secret=the"));
    assert_true(act_starts_with(arm_test_asked(&f, 1), "GET /x?api-version=2024-10-01 HTTP/1.1\r\n"));
    assert_true(has_header(&f, 1, "Authorization: Bearer first"));
    assert_true(has_header(&f, 1, "Accept: application/json"));
    assert_null(strcasestr(arm_test_asked(&f, 1), "\r\nContent-Type:"));
    assert_true(act_starts_with(arm_test_asked(&f, 2), "PUT /x?b=1&api-version=v HTTP/1.1\r\n"));
    assert_true(has_header(&f, 2, "Content-Type: application/json"));
    assert_true(act_ends_with(arm_test_asked(&f, 2), "\r\n\r\n{\"c\": 2}") ||
                act_ends_with(arm_test_asked(&f, 2), "\r\n\r\n{\"c\":2}"));
    assert_true(act_starts_with(arm_test_asked(&f, 3), "POST /x HTTP/1.1\r\n"));
    assert_true(has_header(&f, 3, "Content-Length: 0"));
    arm_test_tear_down(&f);
}

/* A version 4 UUID of its own for each request. */
TEST(client_request_ids)
{
    static const char *const answers[] = {OK "{}", OK "{}"};
    static const char name[] = "\r\nx-ms-client-request-id: ";
    char ids[2][37];
    struct fixture f;

    arm_test_set_up(&f, answers, COUNT(answers));
    for (size_t i = 0; i < 2; i++) {
        CODEC_AUTOJSON json_t *answer = NULL;
        assert_ok(arm_test_get(&f, &answer), f.err);
        const char *at = strcasestr(arm_test_asked(&f, i + 1), name);
        assert_non_null(at);
        snprintf(ids[i], sizeof(ids[i]), "%.36s", at + strlen(name));
        assert_int_equal(strspn(ids[i], "0123456789abcdef-"), 36);
        assert_int_equal(ids[i][14], '4');
        assert_non_null(strchr("89ab", ids[i][19]));
    }
    assert_string_not_equal(ids[0], ids[1]);
    arm_test_tear_down(&f);
}

TEST(a_token_that_is_refused_is_renewed_once)
{
    static const char refused[] = "HTTP/1.1 401 No\r\n\r\n{\"error\": {\"code\": \"ExpiredAuthenticationToken\", "
                                  "\"message\": \"It has ended.\"}}";
    static const char *const good[] = {refused, second_token, OK "{\"a\": 1}"};
    static const char *const bad[] = {refused, second_token, refused};
    CODEC_AUTOJSON json_t *answer = NULL;
    struct fixture f;

    arm_test_set_up(&f, good, COUNT(good));
    assert_ok(arm_test_get(&f, &answer), f.err);
    assert_true(has_header(&f, 1, "Authorization: Bearer first"));
    assert_true(has_header(&f, 3, "Authorization: Bearer second"));
    arm_test_tear_down(&f);

    json_t *none = NULL;
    arm_test_set_up(&f, bad, COUNT(bad));
    assert_int_equal(arm_test_get(&f, &none), -ACT_DENIED);
    assert_null(none);
    assert_int_equal(f.err.http_status, 401);
    assert_string_equal(f.err.service_code, "ExpiredAuthenticationToken");
    assert_contains(act_error_text(&f.err), "log in again");
    assert_lacks(act_error_text(&f.err), "second");
    assert_int_equal(f.server.requests_n, 4);
    arm_test_tear_down(&f);
}

/* No other token would help. */
TEST(a_claims_challenge_names_the_command)
{
    static const char *const answers[] = {
        "HTTP/1.1 401 No\r\nWWW-Authenticate: Bearer realm=\"\", error=\"insufficient_claims\", "
        "claims=\"eyJhIjoxfQ==\"\r\n\r\n{\"error\": {\"code\": \"InvalidAuthenticationToken\", \"message\": \"m\"}}"};
    json_t *none = NULL;
    struct fixture f;

    arm_test_set_up(&f, answers, COUNT(answers));
    assert_fails(arm_test_get(&f, &none), f.err, ACT_DENIED, "az login");
    assert_contains(act_error_text(&f.err), "eyJhIjoxfQ==");
    assert_int_equal(f.server.requests_n, 2);
    arm_test_tear_down(&f);
}

TEST(no_token_for_strangers)
{
    static const char *const urls[] = {"https://evil.example/x", "http://127.0.0.1:1/x", "{endpoint}.evil.example/x",
                                       "{endpoint}@evil.example/x", "{endpoint}1/x"};
    struct fixture f;

    arm_test_set_up(&f, NULL, 0);
    for (size_t i = 0; i < COUNT(urls); i++) {
        const char *rest = strchr(urls[i], '}');
        ACT_AUTOFREE char *url = rest ? act_sprintf("%s%s", f.endpoint, rest + 1) : act_strdup(urls[i]);
        json_t *none = NULL;
        assert_fails(arm_get(f.arm, url, NULL, "look at 'x'", &none, &f.err), f.err, ACT_FAIL, "which is not at");
    }
    assert_int_equal(arm_trust(f.arm, "http://history.example", "the test", true, &f.err), -ACT_CONFIG);
    assert_int_equal(arm_trust(f.arm, "https://chinaeast.api.ml.azure.cn", "the test", true, &f.err), -ACT_CONFIG);
    assert_fails(arm_trust(f.arm, "https://history.example", "the test", true, &f.err), f.err, ACT_DENIED,
                 "the test is 'https://history.example'");
    assert_fails(arm_trust(f.arm, "http://127.0.0.1:1", "the test", false, &f.err), f.err, ACT_DENIED,
                 "trusted_hosts: [\"127.0.0.1:1\"]");
    assert_ok(arm_trust(f.arm, "http://127.0.0.1:1", "the test", true, &f.err), f.err);
    arm_test_tear_down(&f);
}

TEST(answers_are_bounded)
{
    static const char *const answers[] = {OK "{\"long\": \"0123456789012345678901234567890123456789\"}"};
    struct fixture f;

    arm_test_set_up(&f, answers, COUNT(answers));
    ACT_AUTO(arm_call) call = {.method = "GET", .what = "look at 'x'", .url = act_strdup("/x"), .max_body = 16};
    assert_true(arm_do(f.arm, &call, &f.err) < 0);
    assert_true(act_starts_with(act_error_text(&f.err), "cannot look at 'x'"));
    arm_test_tear_down(&f);
}

/* ---- errors ---- */

TEST(errors_table)
{
    static const struct {
        const char *answer;
        int rc;
        const char *code, *text, *id;
    } rows[] = {
        {"HTTP/1.1 403 No\r\nx-ms-request-id: r1\r\nx-ms-correlation-request-id: c1\r\n\r\n"
         "{\"error\": {\"code\": \"AuthorizationFailed\", \"message\": \"The client may not perform action 'a/b/write' "
         "over scope '/s'.\"}}",
         -ACT_DENIED, "AuthorizationFailed",
         "cannot look at 'x': HTTP 403: AuthorizationFailed: The client may not perform action 'a/b/write' over scope "
         "'/s' (request id c1)",
         "c1"},
        {"HTTP/1.1 404 No\r\nx-ms-request-id: r1\r\n\r\n{\"error\": {\"code\": \"ResourceNotFound\", \"message\": "
         "\"No x.\\r\\nSee y\"}}",
         -ACT_NOT_FOUND, "ResourceNotFound",
         "cannot look at 'x': HTTP 404: ResourceNotFound: No x; See y (request id r1)", "r1"},
        {"HTTP/1.1 400 No\r\n\r\n{\"error\": {\"code\": \"UserError\", \"message\": \"Bad.\", \"innerError\": "
         "{\"code\": "
         "\"BadArgument\", \"innerError\": {\"code\": \"ArgumentInvalid\", \"innerError\": null}}}, \"correlation\": "
         "{\"operation\": \"o1\", \"request\": \"r2\"}, \"componentName\": \"run-history\"}",
         -ACT_FAIL, "ArgumentInvalid", "cannot look at 'x': HTTP 400: ArgumentInvalid: Bad (request id o1)", "o1"},
        {"HTTP/1.1 400 No\r\n\r\n{\"error\": {\"code\": \"UserError\", \"message\": \"It has ended.\", "
         "\"details\": [], "
         "\"additionalInfo\": [{\"type\": \"ComponentName\", \"info\": {\"value\": \"managementfrontend\"}}, "
         "{\"type\": \"Correlation\", \"info\": {\"value\": {\"operation\": \"o2\", \"request\": \"r3\"}}}, "
         "{\"type\": \"InnerError\", \"info\": {\"value\": {\"code\": \"BadArgument\", \"innerError\": {\"code\": "
         "\"TerminalStatus\", \"innerError\": null}}}}]}}",
         -ACT_FAIL, "TerminalStatus", "cannot look at 'x': HTTP 400: TerminalStatus: It has ended (request id o2)",
         "o2"},
        {"HTTP/1.1 404 No\r\n\r\n{\"error\": {\"code\": \"UserError\", \"severity\": null, \"message\": \"No run.\", "
         "\"messageFormat\": \"No {what}.\", \"messageParameters\": {\"what\": \"run\"}, \"referenceCode\": null, "
         "\"detailsUri\": null, \"target\": null, \"details\": [], \"innerError\": {\"code\": \"NotFoundError\", "
         "\"innerError\": null}, \"debugInfo\": null, \"additionalInfo\": null}, \"correlation\": "
         "{\"operation\": \"o3\", "
         "\"request\": \"r4\"}, \"environment\": \"eastus\", \"location\": \"eastus\", \"time\": "
         "\"2026-11-22T09:03:44.6763704+00:00\", \"componentName\": \"run-history\", \"statusCode\": 404}",
         -ACT_NOT_FOUND, "NotFoundError", "HTTP 404: NotFoundError: No run (request id o3)", "o3"},
        {"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\nx-ms-correlation-request-id: c2\r\n\r\n", -ACT_NOT_FOUND, "",
         "cannot look at 'x': HTTP 404: there is none (request id c2)", "c2"},
        {"HTTP/1.1 400 No\r\n\r\n{\"error\": {\"code\": \"V\", \"message\": \"Bad.\", \"details\": [{\"code\": \"d\", "
         "\"message\": \"The image is gone.\"}, {\"message\": \"Bad.\"}]}}",
         -ACT_FAIL, "V", "cannot look at 'x': HTTP 400: V: Bad; The image is gone", ""},
        {"HTTP/1.1 400 No\r\n\r\n{\"error\": {\"code\": \"ClusterCoreQuotaReached\", \"message\": \"No cores.\"}}",
         -ACT_NO_CAPACITY, "ClusterCoreQuotaReached", "ClusterCoreQuotaReached: No cores", ""},
        {"HTTP/1.1 400 No\r\n\r\n{\"error\": {\"code\": \"Pull\", \"message\": \"Pull: no image\\n\\tname: "
         "a/b:1\\n\\n\\tmore.\"}}",
         -ACT_FAIL, "Pull", "HTTP 400: Pull: no image; name: a/b:1; more", ""},
        {"HTTP/1.1 400 No\r\n\r\n{\"Message\": \"An App Service said it.\"}", -ACT_FAIL, "",
         "HTTP 400: An App Service said it", ""},
        {"HTTP/1.1 502 Bad Gateway\r\n\r\n<html>\r\n<h1>Bad gateway</h1></html>", -ACT_TEMPORARY, "",
         "HTTP 502: <html>  <h1>Bad gateway</h1></html>", ""},
        {"HTTP/1.1 503 Busy\r\n\r\n", -ACT_TEMPORARY, "", "cannot look at 'x': HTTP 503", ""},
        {"HTTP/1.1 400 No\r\n\r\n[1]", -ACT_FAIL, "", "HTTP 400: [1]", ""},
        {"HTTP/1.1 400 No\r\n\r\n{\"error\": \"a text\"}", -ACT_FAIL, "", "HTTP 400: {\"error\": \"a text\"}", ""},
        {OK "<html>", -ACT_FAIL, "", "the response is not JSON", ""},
        {OK, -ACT_FAIL, "", "the response is empty", ""},
        {OK "null", -ACT_FAIL, "", "the response is empty", ""},
        {OK "nil", -ACT_FAIL, "", "the response is not JSON", ""},
    };

    for (size_t i = 0; i < COUNT(rows); i++) {
        json_t *none = NULL;
        struct fixture f;
        arm_test_set_up(&f, &rows[i].answer, 1);
        int rc = arm_test_get(&f, &none);
        if (rc != rows[i].rc || !strstr(act_error_text(&f.err), rows[i].text))
            fail_msg("row %zu: %d %s", i, rc, act_error_text(&f.err));
        assert_string_equal(f.err.service_code, rows[i].code);
        assert_string_equal(f.err.request_id, rows[i].id);
        assert_null(none);
        arm_test_tear_down(&f);
    }
}

/* Of 600 bytes that are no JSON 500 are shown. */
TEST(a_long_body_is_cut)
{
    enum { SENT = 600, SHOWN = 500 };
    char body[SENT + 1] = "";
    json_t *none = NULL;
    struct fixture f;

    memset(body, 'x', SENT);
    ACT_AUTOFREE char *answer = act_sprintf("HTTP/1.1 400 No\r\n\r\n%s", body);
    const char *const answers[] = {answer};
    arm_test_set_up(&f, answers, 1);
    assert_int_equal(arm_test_get(&f, &none), -ACT_FAIL);
    const char *shown = strstr(act_error_text(&f.err), "xxx");
    assert_non_null(shown);
    assert_true(strspn(shown, "x") <= SHOWN);
    arm_test_tear_down(&f);
}

TEST(what_is_missing_may_be_fine)
{
    static const char *const answers[] = {
        "HTTP/1.1 404 No\r\n\r\n{\"error\": {\"code\": \"ResourceNotFound\", \"message\": \"m\"}}"};
    struct fixture f;

    arm_test_set_up(&f, answers, COUNT(answers));
    struct arm_call call = {.method = "GET", .what = "look at 'x'", .url = act_strdup("/x"), .missing_is_fine = true};
    assert_ok(arm_do(f.arm, &call, &f.err), f.err);
    assert_int_equal(call.status, 404);
    assert_null(call.response);
    arm_call_release(&call);
    arm_test_tear_down(&f);
}

TEST(how_long_to_wait)
{
    static const struct {
        const char *header;
        int64_t ms;
    } rows[] = {{"Retry-After: 7", 7000},        {"retry-after-ms: 30", 30},
                {"x-ms-retry-after-ms: 40", 40}, {"Retry-After: Thu, 01 Jan 1970 00:00:00 GMT", -1},
                {"Retry-After: soon", -1},       {"X: y", -1}};

    for (size_t i = 0; i < COUNT(rows); i++) {
        ACT_AUTOFREE char *answer = act_sprintf("HTTP/1.1 202 Accepted\r\n%s\r\nLocation: /l\r\n"
                                                "Operation-Location: /o\r\n\r\n",
                                                rows[i].header);
        const char *const answers[] = {answer};
        struct fixture f;
        arm_test_set_up(&f, answers, 1);
        struct arm_call call = {.method = "DELETE", .what = "delete 'x'", .url = act_strdup("/x")};
        assert_ok(arm_do(f.arm, &call, &f.err), f.err);
        assert_int_equal(call.retry_after_ms, rows[i].ms);
        assert_string_equal(call.location, "/l");
        assert_string_equal(call.operation, "/o");
        arm_call_release(&call);
        arm_test_tear_down(&f);
    }
}

/* ---- pages ---- */

static int arm_test_add_item(void *arg, const json_t *item, struct act_error *e)
{
    struct act_buf *out = arg;

    (void)e;
    act_buf_adds(out, codec_json_str(item, "n", "?"));
    return strcmp(codec_json_str(item, "n", ""), "stop") == 0;
}

static int each(struct fixture *f, bool post, struct act_buf *out)
{
    return arm_each(f->arm, "/x", "v", post, post ? "nodes" : "value", "list 'x'", arm_test_add_item, out, &f->err);
}

TEST(all_pages)
{
    static const char *const answers[] = {
        OK "{\"nodes\": [{\"n\": \"a\"}], \"nextLink\": \"http://127.0.0.1:{port}/x?$skip=1&api-version=v\"}",
        OK "{\"nodes\": [], \"nextLink\": \"http://127.0.0.1:{port}/x?$skip=2&api-version=v\"}",
        OK "{\"nodes\": [{\"n\": \"b\"}], \"nextLink\": null}"};
    ACT_AUTO(act_buf) out = {0};
    struct fixture f;

    arm_test_set_up(&f, answers, COUNT(answers));
    assert_ok(each(&f, true, &out), f.err);
    assert_string_equal(out.data, "ab");
    assert_true(act_starts_with(arm_test_asked(&f, 1), "POST /x?api-version=v "));
    assert_true(act_starts_with(arm_test_asked(&f, 2), "GET /x?$skip=1&api-version=v "));
    assert_true(act_starts_with(arm_test_asked(&f, 3), "GET /x?$skip=2&api-version=v "));
    arm_test_tear_down(&f);
}

TEST(pages_that_end_early)
{
    static const char *const answers[] = {
        OK "{\"value\": [{\"n\": \"stop\"}, {\"n\": \"b\"}], \"nextLink\": \"http://127.0.0.1:{port}/x?$skip=1\"}"};
    ACT_AUTO(act_buf) out = {0};
    struct fixture f;

    arm_test_set_up(&f, answers, COUNT(answers));
    assert_ok(each(&f, false, &out), f.err);
    assert_string_equal(out.data, "stop");
    arm_test_tear_down(&f);
}

TEST(pages_that_go_wrong)
{
#define A        "http://127.0.0.1:{port}/x?a"
#define B        "http://127.0.0.1:{port}/x?b"
#define TO(link) "{\"value\": [], \"nextLink\": \"" link "\"}"
    static const struct {
        const char *answers[5];
        const char *text;
    } rows[] = {
        {{OK "{\"value\": [], \"nextLink\": \"https://evil.example/x\"}"}, "'https://evil.example/x', which is not at"},
        {{OK TO(A), OK TO(A)}, "cannot list 'x': the service names the same pages again and again"},
        {{OK TO(A), OK TO(B), OK TO(A), OK TO(B)}, "the same pages again and again"},
        {{OK "{\"value\": 1}"}, "'value' in the response is not a list"},
    };
#undef A
#undef B
#undef TO

    for (size_t i = 0; i < COUNT(rows); i++) {
        struct act_buf out = {0};
        struct fixture f;
        size_t n = 0;
        while (rows[i].answers[n])
            n++;
        arm_test_set_up(&f, rows[i].answers, n);
        assert_fails(each(&f, false, &out), f.err, ACT_FAIL, rows[i].text);
        assert_int_equal(f.server.requests_n, n + 1);
        act_buf_release(&out);
        arm_test_tear_down(&f);
    }
}

/* ---- long operations ---- */

static void note_progress(void *arg, const char *status, int percent)
{
    act_buf_addf(arg, "%s %d;", status, percent);
}

/* Sends a request and follows it; what was told is in told. */
static int arm_test_change(struct fixture *f, const char *method, int64_t timeout_s, struct act_buf *told, json_t **out)
{
    ACT_AUTO(arm_call) call = {.method = method, .what = "change 'x'", .url = act_strdup("/x"), .api_version = "v"};
    int rc = arm_do(f->arm, &call, &f->err);

    *out = NULL;
    if (rc == 0)
        rc = arm_follow(f->arm, &call, timeout_s, note_progress, told, out, &f->err);
    return rc;
}

#define OPERATION "Azure-AsyncOperation: http://127.0.0.1:{port}/op?api-version=o\r\n"

TEST(operations_table)
{
    static const struct {
        const char *method;
        const char *answers[5];
        int rc;
        const char *told; /* or what the error says */
        const char *name; /* of what it gave */
    } rows[] = {
        {"PUT",
         {"HTTP/1.1 201 Created\r\n" AGAIN OPERATION "\r\n{}",
          "HTTP/1.1 200 OK\r\n" AGAIN "\r\n{\"status\": \"InProgress\", \"percentComplete\": 40.5}",
          OK "{\"status\": \"Succeeded\"}", OK "{\"name\": \"x\"}"},
         0,
         "InProgress 40;Succeeded -1;",
         "x"},
        {"DELETE",
         {"HTTP/1.1 202 Accepted\r\n" AGAIN OPERATION "Location: http://127.0.0.1:{port}/l\r\n\r\n",
          OK "{\"status\": \"succeeded\"}"},
         0,
         "succeeded -1;",
         NULL},
        {"POST",
         {"HTTP/1.1 202 Accepted\r\n" AGAIN "Location: http://127.0.0.1:{port}/l\r\n\r\n",
          "HTTP/1.1 202 Accepted\r\n" AGAIN "\r\n", OK "{\"name\": \"l\"}"},
         0,
         "InProgress -1;Succeeded -1;",
         "l"},
        /* as a cancel is answered, and a cluster that is made */
        {"POST",
         {"HTTP/1.1 202 Accepted\r\n" AGAIN "Location: http://127.0.0.1:{port}/l/jc:w:x?api-version=v\r\n\r\nnull",
          "HTTP/1.1 202 Accepted\r\n" AGAIN "Location: http://127.0.0.1:{port}/l/jc:w:x?api-version=v\r\n\r\n{}", OK},
         0,
         "InProgress -1;Succeeded -1;",
         NULL},
        {"PUT",
         {"HTTP/1.1 201 Created\r\n" AGAIN OPERATION "\r\n{\"properties\": {\"provisioningState\": \"Creating\"}}",
          OK "{\"status\": \"Succeeded\", \"percentComplete\": 100.0}", OK "{\"name\": \"x\"}"},
         0,
         "Succeeded 100;",
         "x"},
        {"PUT",
         {"HTTP/1.1 200 OK\r\n" AGAIN "\r\n{\"properties\": {\"provisioningState\": \"Creating\"}}",
          "HTTP/1.1 200 OK\r\n" AGAIN "\r\n{\"properties\": {\"provisioningState\": \"Updating\"}}",
          OK "{\"name\": \"x\", \"properties\": {\"provisioningState\": \"Succeeded\"}}"},
         0,
         "Creating -1;Updating -1;Succeeded -1;",
         "x"},
        {"PUT", {OK "{\"name\": \"x\"}"}, 0, "Succeeded -1;", "x"},
        {"DELETE", {"HTTP/1.1 204 No Content\r\n\r\n"}, 0, "", NULL},
        {"PATCH",
         {"HTTP/1.1 200 OK\r\n" AGAIN OPERATION "\r\n{}", OK
          "{\"status\": \"Failed\", \"error\": {\"code\": \"ClusterCoreQuotaReached\", \"message\": \"No cores.\"}}"},
         -ACT_NO_CAPACITY,
         "cannot change 'x': Failed: ClusterCoreQuotaReached: No cores",
         NULL},
        {"PATCH",
         {"HTTP/1.1 200 OK\r\n" AGAIN OPERATION "\r\n{}", OK "{\"status\": \"Canceled\"}"},
         -ACT_FAIL,
         "cannot change 'x': Canceled",
         NULL},
        {"PUT",
         {OK "{\"properties\": {\"provisioningState\": \"Failed\", \"provisioningErrors\": [{\"error\": {\"code\": "
             "\"C\", \"message\": \"Why.\"}}]}}"},
         -ACT_FAIL,
         "cannot change 'x': Failed: C: Why",
         NULL},
        {"POST",
         {"HTTP/1.1 202 Accepted\r\n" AGAIN "Location: http://127.0.0.1:{port}/l\r\n\r\n",
          "HTTP/1.1 409 Conflict\r\n\r\n{\"error\": {\"code\": \"Conflict\", \"message\": \"m\"}}"},
         -ACT_FAIL,
         "HTTP 409: Conflict: m",
         NULL},
        {"PUT",
         {"HTTP/1.1 201 Created\r\n" AGAIN "Azure-AsyncOperation: https://evil.example/op\r\n\r\n{}"},
         -ACT_FAIL,
         "which is not at",
         NULL},
        {"PUT",
         {"HTTP/1.1 201 Created\r\n" AGAIN OPERATION "\r\n{}", OK "{}"},
         -ACT_FAIL,
         "does not say what state it is in",
         NULL},
    };

    for (size_t i = 0; i < COUNT(rows); i++) {
        struct act_buf told = {0};
        json_t *out;
        struct fixture f;
        size_t n = 0;
        while (rows[i].answers[n])
            n++;
        arm_test_set_up(&f, rows[i].answers, n);
        int rc = arm_test_change(&f, rows[i].method, 0, &told, &out);
        const char *said = rc < 0 ? act_error_text(&f.err) : told.data ? told.data : "";
        if (rc != rows[i].rc || !strstr(said, rows[i].told) || (rc == 0 && strcmp(said, rows[i].told) != 0))
            fail_msg("row %zu: %d %s", i, rc, said);
        if (rows[i].name)
            assert_string_equal(codec_json_str(out, "name", ""), rows[i].name);
        else if (rc < 0)
            assert_null(out);
        assert_int_equal(f.server.requests_n, n + 1);
        json_decref(out);
        act_buf_release(&told);
        arm_test_tear_down(&f);
    }
}

/* Longer than one is ready to wait: it goes on without us. */
TEST(an_operation_that_takes_too_long)
{
    static const char *const answers[] = {"HTTP/1.1 201 Created\r\nRetry-After: 20\r\n" OPERATION "\r\n{}"};
    ACT_AUTO(act_buf) told = {0};
    json_t *out;
    struct fixture f;

    arm_test_set_up(&f, answers, COUNT(answers));
    assert_fails(arm_test_change(&f, "PUT", 10, &told, &out), f.err, ACT_TIMEOUT, "it goes on at the service");
    assert_null(out);
    arm_test_tear_down(&f);
}

/* ---- the client ---- */

TEST(which_endpoints_get_a_token)
{
    static const struct {
        const char *endpoint, *url;
        int rc;
    } rows[] = {{"https://arm.trusted.example/", "https://arm.trusted.example", 0},
                {"https://arm.example/", NULL, -ACT_DENIED},
                {"https://management.azure.com@arm.example", NULL, -ACT_CONFIG},
                {"http://arm.trusted.example", NULL, -ACT_CONFIG},
                {"http://127.0.0.1:8080", NULL, -ACT_DENIED},
                {"https://localhost", NULL, -ACT_DENIED},
                {"http://127.0.0.1:9090", "http://127.0.0.1:9090", 0},
                {"https://management.azure.com", "https://management.azure.com", 0},
                {"https://management.chinacloudapi.cn", NULL, -ACT_CONFIG}};
    const struct auth_cloud *cloud;

    setenv("ACT_TRUSTED_HOSTS", "arm.trusted.example, 127.0.0.1:9090", 1);
    assert_ok(auth_cloud_find(NULL, &cloud, &err), err);
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct arm *arm = NULL;
        int rc = arm_new(&(struct arm_options){.endpoint = rows[i].endpoint, .cloud = cloud}, &arm, &err);
        assert_int_equal(rc, rows[i].rc);
        if (rc == 0)
            assert_string_equal(arm_endpoint(arm), rows[i].url);
        arm_free(arm);
    }
    unsetenv("ACT_TRUSTED_HOSTS");
}

TEST_MAIN(NULL, NULL)
