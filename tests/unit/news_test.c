/* news_test.c - files of a run over a connection whose other side tells by itself what is new. */
#define TEST_SETUP    news_test_setup
#define TEST_TEARDOWN news_test_teardown
#include "unit/test.h"

#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/path.h"
#include "base/text.h"
#include "site/exchange.h"
#include "site/site.h"
#include "site/site_internal.h"

static char *home, *dir; /* of one case, and of its run */
static char id[] = "news_1700000000_00000001";
static struct site *site;
static struct site_news *news;
static const struct site_files *files; /* as they are known */
static pid_t server;

static int news_test_setup(void **state)
{
    int ends[2];

    (void)state;
    home = act_strdup("/tmp/act-news-XXXXXX");
    assert_non_null(mkdtemp(home));
    dir = act_sprintf("%s/runs/%s", home, id);
    ACT_AUTOFREE char *logs = act_path_join(dir, "user_logs");
    assert_ok(act_mkdir_all(logs, 0700, &err), err);
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
    server = fork();
    assert_true(server >= 0);
    if (server == 0) {
        close(ends[0]);
        _exit(site_serve(home, ends[1], ends[1]));
    }
    close(ends[1]);
    site = act_calloc(1, sizeof(*site));
    assert_ok(wire_open_fds(ends[0], ends[0], site, &err), err);
    news = site_news_new(id, (const char *const[]){"user_logs", "attempts"}, 2);
    return 0;
}

static int news_test_teardown(void **state)
{
    int status;

    (void)state;
    site_news_free(news);
    site_free(site);
    assert_int_equal(waitpid(server, &status, 0), server);
    assert_int_equal(status, 0);
    assert_ok(act_remove_tree(home, &err), err);
    free(home);
    free(dir);
    return 0;
}

/* ---- helpers ---- */

static void news_test_write(const char *name, const char *how, const char *text, size_t times)
{
    ACT_AUTOFREE char *path = act_sprintf("%s/%s", dir, name);
    FILE *file = fopen(path, how);

    assert_non_null(file);
    for (size_t i = 0; i < times; i++)
        fputs(text, file);
    assert_int_equal(fclose(file), 0);
}

static void news_test_look(void)
{
    assert_ok(site_news_look(site, news, 1, &files, &err), err);
}

/* Waits until something is told, and takes it. No request is made for that. */
static void news_test_await(void)
{
    const uint64_t sent = site->wire->n_sent;
    int fd;

    while (!site_news_have_come(site, news, &fd)) {
        struct pollfd in = {.fd = fd, .events = POLLIN};
        assert_true(fd >= 0);
        assert_int_equal(poll(&in, 1, -1), 1);
    }
    assert_int_equal(site->wire->n_sent, sent);
    news_test_look();
}

static const struct site_file *news_test_file(const char *name)
{
    for (size_t i = 0; i < files->n; i++)
        if (strcmp(files->v[i].name, name) == 0)
            return &files->v[i];
    return NULL;
}

/* It has this size, and as its end what came last. */
static void news_test_assert(const char *name, uint64_t size, const char *end)
{
    const struct site_file *file = news_test_file(name);

    assert_non_null(file);
    assert_int_equal(file->size, size);
    assert_int_equal(file->end_len, strlen(end));
    assert_memory_equal(file->end_len ? file->end : "", end, strlen(end));
}

/* ---- cases ---- */

TEST(test_growth_is_told)
{
    news_test_write("user_logs/a", "w", "begins\n", 1);
    news_test_look();
    news_test_assert("user_logs/a", 7, "begins\n");
    for (uint64_t n = 1; n < 5; n++) {
        news_test_write("user_logs/a", "a", "more\n", 1);
        news_test_await();
        news_test_assert("user_logs/a", 7 + 5 * n, "more\n");
    }
    const uint64_t sent = site->wire->n_sent;
    for (int i = 0; i < 100; i++) /* nothing is new, and nothing is asked */
        news_test_look();
    assert_int_equal(site->wire->n_sent, sent);
}

TEST(test_what_comes_and_goes)
{
    ACT_AUTOFREE char *a = act_path_join(dir, "user_logs/a");
    ACT_AUTOFREE char *b = act_path_join(dir, "user_logs/b");
    ACT_AUTOFREE char *attempts = act_path_join(dir, "attempts/1");

    news_test_write("user_logs/b", "w", "a long log\n", 1);
    news_test_look();
    news_test_write("user_logs/a", "w", "new\n", 1);
    news_test_await();
    while (!news_test_file("user_logs/a") ||
           news_test_file("user_logs/a")->size < 4) /* it was told while it was empty */
        news_test_await();
    assert_int_equal(files->n, 2);
    assert_string_equal(files->v[0].name, "user_logs/a");
    assert_int_equal(unlink(a), 0);
    news_test_await();
    assert_null(news_test_file("user_logs/a"));
    news_test_write("user_logs/b", "w", "cut\n", 1); /* it begins anew */
    while (news_test_file("user_logs/b")->size != 4)
        news_test_await();
    news_test_assert("user_logs/b", 4, "cut\n");
    ACT_AUTOFREE char *moved = act_path_join(attempts, "b");
    assert_ok(act_mkdir_all(attempts, 0700, &err), err);
    assert_int_equal(rename(b, moved), 0);
    while (!news_test_file("attempts/1/b"))
        news_test_await();
    assert_int_equal(files->n, 1);
}

/* Much is not sent: whoever wants it reads it. Nor is anything before the client has asked again. */
TEST(test_much_is_not_told)
{
    enum { LINES = 300000 };
    char line[9];
    size_t got;

    news_test_write("user_logs/a", "w", "begins\n", 1);
    news_test_look();
    news_test_write("user_logs/a", "a", "a line\n", LINES);
    while (news_test_file("user_logs/a")->size < 7 * (LINES + 1)) {
        news_test_await();
        assert_in_range(news_test_file("user_logs/a")->end_len, 0, SITE_ENDS_MAX_BYTES);
    }
    assert_ok(site_read(site, id, "user_logs/a", 7 * LINES, line, sizeof(line), &got, &err), err);
    assert_int_equal(got, 7);
}

/* A file of which nothing is told is idle. */
TEST(test_time_passes)
{
    const int64_t until_ms = act_now_monotonic_ms() + PATIENCE_MS;

    news_test_write("user_logs/a", "w", "begins\n", 1);
    news_test_look();
    while (news_test_file("user_logs/a")->idle_s < 2 && act_now_monotonic_ms() < until_ms) {
        usleep(20000);
        news_test_look();
    }
    assert_in_range(news_test_file("user_logs/a")->idle_s, 2, PATIENCE_S);
    assert_int_equal(site->wire->n_sent, 2); /* files, news */
}

/* Other requests are answered at once, though one to be told is under way; and what is new is told afterwards. */
TEST(test_others_need_not_wait)
{
    ACT_AUTO(act_strv) ids = {0};

    news_test_write("user_logs/a", "w", "begins\n", 1);
    news_test_look();
    for (int i = 0; i < 20; i++) {
        act_strv_release(&ids);
        assert_ok(site_list(site, &ids, &err), err);
        assert_int_equal(ids.n, 1);
        news_test_look();
    }
    news_test_write("user_logs/a", "a", "more\n", 1);
    while (news_test_file("user_logs/a")->size < 12)
        news_test_await();
    news_test_assert("user_logs/a", 12, "more\n");
}

/* What is there of a request that nobody waits for any more is nothing new. */
TEST(test_others_that_come)
{
    ACT_AUTO(act_strv) ids = {0};
    int fd;

    news_test_write("user_logs/a", "w", "begins\n", 1);
    news_test_look();
    assert_true(site_ahead(site));
    assert_fails(site_list(site, &ids, &err), err, ACT_INTERRUPTED, "not waited for");
    site_ahead_end(site);
    news_test_await(); /* asks again, behind the list */
    struct pollfd in = {.fd = site->wire->channel.in_fd, .events = POLLIN};
    assert_true(channel_is_ready(&site->wire->channel, -1, 0) || poll(&in, 1, -1) == 1);
    assert_false(site_news_have_come(site, news, &fd));
    assert_int_equal(fd, in.fd);
    news_test_write("user_logs/a", "a", "more\n", 1);
    while (news_test_file("user_logs/a")->size < 12)
        news_test_await();
    assert_ok(site_list(site, &ids, &err), err);
    assert_int_equal(ids.n, 1);
}

/* A list for somebody else takes its place there: the next look is a whole list again, and nothing is missed. */
TEST(test_of_another_list)
{
    struct site_files other;

    news_test_write("user_logs/a", "w", "begins\n", 1);
    news_test_look();
    for (int i = 0; i < 3; i++) {
        assert_ok(site_files(site, id, (const char *const[]){"user_logs"}, 1, 0, &other, &err), err);
        site_files_release(&other);
        news_test_write("user_logs/a", "a", "more\n", 1);
        while (news_test_file("user_logs/a")->size != 12 + 5 * (uint64_t)i)
            news_test_await();
    }
}

/* Of two that follow over one connection one is told, and the other one lists each time. */
TEST(test_two_that_follow)
{
    struct site_news *second = site_news_new(id, (const char *const[]){"user_logs"}, 1);
    const struct site_files *seen;
    int fd;

    news_test_write("user_logs/a", "w", "begins\n", 1);
    news_test_look();
    assert_ok(site_news_look(site, second, 0, &seen, &err), err);
    assert_false(site_news_have_come(site, second, &fd));
    assert_int_equal(fd, -1);
    news_test_write("user_logs/a", "a", "more\n", 1);
    assert_ok(site_news_look(site, second, 0, &seen, &err), err);
    assert_int_equal(seen->v[0].size, 12);
    while (news_test_file("user_logs/a")->size < 12)
        news_test_await();
    site_news_free(news);
    news = NULL;
    assert_ok(site_news_look(site, second, 0, &seen, &err), err);
    assert_true(site_news_have_come(site, second, &fd) || fd >= 0);
    site_news_free(second);
}

TEST(test_end_of_the_connection)
{
    news_test_write("user_logs/a", "w", "begins\n", 1);
    news_test_look();
    kill(server, SIGKILL);
    int rc, status;
    assert_int_equal(waitpid(server, &status, 0), server);
    do
        rc = site_news_look(site, news, 1, &files, &err);
    while (rc == 0);
    assert_int_equal(rc, -ACT_TEMPORARY);
    server = fork(); /* for the teardown */
    if (server == 0)
        _exit(0);
}

int main(void)
{
    return tests_run(NULL, NULL);
}
