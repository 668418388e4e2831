/* kubernetes_logs_test.c - the logs of pods as a store that is watched: what is news, and when a log has ended. The
 * server gives the answers of a script. */
#define TEST_SETUP    begin_client
#define TEST_TEARDOWN end_client
#include "config/config.h"
#include "unit/script_server.h"

#include "base/file.h"
#include "engine/engine.h"
#include "platform/kubernetes/kubernetes_internal.h"
#include "store/store.h"

#define RUN  "exp_1795300000_0123abcd"
#define NAME "exp-1795300000-0123abcd"

#define OK          "HTTP/1.1 200 OK\r\n\r\n"
#define PODS(items) OK "{\"metadata\": {\"resourceVersion\": \"7\"}, \"items\": [" items "]}"
#define POD(letters, phase)                                                                                            \
    "{\"metadata\": {\"name\": \"" NAME "-0-" letters "\", \"annotations\": {\"" KUBERNETES_INDEX "\": \"0\"}, "       \
    "\"creationTimestamp\": \"2026-11-28T10:00:0" letters "Z\"}, \"status\": {\"phase\": \"" phase "\"}}"
#define ONE  OK "2026-11-28T10:00:01.000000001Z [0] one\n"
#define BOTH ONE "2026-11-28T10:00:02.000000001Z [0] two\n"

struct fixture {
    struct server server;
    struct step steps[MAX_STEPS];
    struct services services;
    struct kubernetes kubernetes;
    struct store *logs;
    bool news;
};
static struct fixture f;

/* What act_warn() was told last. */
static char warned[400];

void __wrap_act_warn(const char *fmt, ...) ACT_PRINTF(1, 2);
void __wrap_act_warn(const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(warned, sizeof(warned), fmt, ap);
    va_end(ap);
}

static int begin_client(void **state)
{
    (void)state;
    warned[0] = '\0';
    f = (struct fixture){.services.network = {.max_retries = -1}};
    return 0;
}

static int end_client(void **state)
{
    (void)state;
    store_free(f.logs);
    kube_free(f.kubernetes.kube);
    services_close(&f.services);
    server_stop(&f.server);
    return 0;
}

static struct k8s_keys keys;
static struct config config = {.parts = (struct config_part_values[]){{&k8s_keys_part, &keys}}, .n_parts = 1};

/* The logs of a run that goes on, watched, at a server that gives these answers in turn. */
static void watch_logs(const struct step *steps, size_t n)
{
    char file[] = "/tmp/act-logs-XXXXXX";
    int fd = mkstemp(file);

    assert_true(fd >= 0);
    close(fd);
    memcpy(f.steps, steps, n * sizeof(*steps));
    server_start(&f.server, f.steps, n);
    ACT_AUTOFREE char *text = with_port("clusters: [{name: c, cluster: {server: 'http://127.0.0.1:{port}'}}]\n"
                                        "contexts: [{name: x, context: {cluster: c, user: u, namespace: team}}]\n"
                                        "current-context: x\nusers: [{name: u, user: {token: abc}}]\n",
                                        f.server.port);
    assert_ok(act_file_write(file, text, strlen(text), 0600, &err), err);
    assert_ok(kube_open(&(struct kube_options){.http = services_http(&f.services), .kubeconfig = file},
                        &f.kubernetes.kube, &err),
              err);
    unlink(file);
    f.kubernetes.base = (struct platform){.row = &platform_kubernetes, .services = &f.services};
    f.kubernetes.config = &config;
    f.logs = kubernetes_open_logs(&f.kubernetes.base, RUN, false);
    assert_true(store_watch(f.logs, &f.news));
}

/* Lists the logs, of which there is one. Returns its size and, in *out_grows, whether it may grow. */
static uint64_t list_logs(bool *out_grows)
{
    struct store_call call = {.op = STORE_LIST, .key = ""};

    assert_ok(store_do(f.logs, &call, &err), err);
    assert_int_equal(call.list.page.n, 1);
    assert_string_equal(call.list.page.v[0].key, "user_logs/std_log_process_0.txt");
    uint64_t size = call.list.page.v[0].size;
    *out_grows = call.list.page.v[0].grows;
    store_call_release(&call);
    return size;
}

static void await_news(void)
{
    engine_run(services_engine(&f.services), &f.news);
    f.news = false;
}

static void be_news(void *arg)
{
    *(bool *)arg = true;
}

/* It is news that the server has had so many requests. */
static void look_for_request(void *arg)
{
    if (f.server.requests_n >= *(size_t *)arg)
        f.news = true;
    else
        engine_timer(services_engine(&f.services), 10, look_for_request, arg);
}

TEST(what_a_list_brings_is_no_news)
{
    static const struct step steps[] = {{PODS(POD("1", "Running")), CLOSE}, {ONE, CLOSE}};
    bool grows;

    watch_logs(steps, COUNT(steps));
    assert_int_equal(list_logs(&grows), strlen("one\n"));
    assert_true(grows);
    assert_false(f.news);
}

/* The flag is one for all that is watched: who looks clears it before it looks. */
TEST(news_that_come_during_a_list_are_not_forgotten)
{
    static const struct step steps[] = {{PODS(POD("1", "Running")), CLOSE}, {ONE, CLOSE}};
    bool grows;

    watch_logs(steps, COUNT(steps));
    engine_timer(services_engine(&f.services), 0, be_news, &f.news);
    list_logs(&grows);
    assert_true(f.news);
}

TEST(a_followed_log_that_ended_before_its_pod_was_gone_is_whole)
{
    static const struct step steps[] = {
        {PODS(POD("1", "Running")), CLOSE}, {ONE, CLOSE}, {BOTH, CLOSE}, {PODS(""), CLOSE}};
    bool grows;

    watch_logs(steps, COUNT(steps));
    list_logs(&grows);
    await_news(); /* a line */
    await_news(); /* the end */
    assert_int_equal(list_logs(&grows), strlen("one\ntwo\n"));
    assert_false(grows);
    assert_string_equal(warned, "");
    assert_int_equal(f.server.requests_n, COUNT(steps));
}

/* Nobody can read any more what was not read of it. */
TEST(a_log_that_broke_off_before_its_pod_was_gone_has_ended_too)
{
    static const struct step steps[] = {
        {PODS(POD("1", "Running")), CLOSE}, {ONE, CLOSE}, {NULL, RESET}, {PODS(""), CLOSE}};
    bool grows;

    watch_logs(steps, COUNT(steps));
    list_logs(&grows);
    look_for_request(&(size_t){3});
    await_news();
    assert_int_equal(list_logs(&grows), strlen("one\n"));
    assert_false(grows);
    assert_string_equal(warned, "the logs are not complete: the pod '" NAME
                                "-0-1' is gone, and with it whatever its log had after what was read of it");
}

TEST_MAIN(NULL, NULL)
