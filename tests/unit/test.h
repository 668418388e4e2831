/* test.h - cmocka with what it needs before it. */
#ifndef TESTS_UNIT_TEST_H
#define TESTS_UNIT_TEST_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/error.h"
#include "base/text.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* How long a test waits for what must come: a machine that is busy with other things is no reason to fail. */
enum { PATIENCE_S = 300, PATIENCE_MS = PATIENCE_S * 1000 };

/* For all calls of a test, which begins without an error. */
__attribute__((unused)) static _Thread_local struct act_error err;

/* TEST(name) { ... } is a test, which TEST_MAIN() runs with all others, in the order of the file. A test file whose
 * tests each have a set-up and a tear-down defines them as TEST_SETUP and TEST_TEARDOWN before it includes this;
 * TEST_IN() is a test with others. */
#ifndef TEST_SETUP
#define TEST_SETUP    NULL
#define TEST_TEARDOWN NULL
#endif

enum { MAX_TESTS = 256 };
__attribute__((unused)) static struct CMUnitTest test_all[MAX_TESTS];
__attribute__((unused)) static size_t test_count;

#define TEST_ADD(label, name, setup, teardown)                                                                         \
    static void run_##label(void **state)                                                                              \
    {                                                                                                                  \
        err = (struct act_error){0};                                                                                   \
        name(state);                                                                                                   \
    }                                                                                                                  \
    __attribute__((constructor)) static void add_##label(void)                                                         \
    {                                                                                                                  \
        assert_true(test_count < MAX_TESTS);                                                                           \
        test_all[test_count++] = (struct CMUnitTest){#label, run_##label, setup, teardown, NULL};                      \
    }

#define TEST_IN(name, setup, teardown)                                                                                 \
    static void name(void **state);                                                                                    \
    TEST_ADD(name, name, setup, teardown)                                                                              \
    static void name(__attribute__((unused)) void **state)

#define TEST(name) TEST_IN(name, TEST_SETUP, TEST_TEARDOWN)

/* With ACT_TEST_REVERSE the last test comes first: no test depends on those before it. */
__attribute__((unused)) static void tests_order(void)
{
    for (size_t i = 0; getenv("ACT_TEST_REVERSE") && i < test_count / 2; i++) {
        struct CMUnitTest swapped = test_all[i];
        test_all[i] = test_all[test_count - 1 - i];
        test_all[test_count - 1 - i] = swapped;
    }
}

/* cmocka passes over rows without a name. */
#define tests_run(setup, teardown) (tests_order(), cmocka_run_group_tests(test_all, setup, teardown))

/* Leaves out the tests whose names begin so. */
__attribute__((unused)) static void tests_leave_out(const char *beginning)
{
    for (size_t i = 0; i < test_count; i++)
        if (test_all[i].name && strncmp(test_all[i].name, beginning, strlen(beginning)) == 0)
            test_all[i].name = NULL;
}

#define TEST_MAIN(setup, teardown)                                                                                     \
    int main(void)                                                                                                     \
    {                                                                                                                  \
        return tests_run(setup, teardown);                                                                             \
    }

/* Fails with the text of err when rc is not 0. */
#define assert_ok(call, err)                                                                                           \
    do {                                                                                                               \
        int rc_ = (call);                                                                                              \
        if (rc_ != 0)                                                                                                  \
            fail_msg("%s: %d %s", #call, rc_, act_error_text(&(err)));                                                 \
    } while (0)

#define assert_contains(text, part)                                                                                    \
    do {                                                                                                               \
        const char *text_ = (text), *part_ = (part);                                                                   \
        if (!strstr(text_, part_))                                                                                     \
            fail_msg("'%s' is not in: %s", part_, text_);                                                              \
    } while (0)

#define assert_lacks(text, part)                                                                                       \
    do {                                                                                                               \
        const char *text_ = (text), *part_ = (part);                                                                   \
        if (strstr(text_, part_))                                                                                      \
            fail_msg("'%s' is in: %s", part_, text_);                                                                  \
    } while (0)

/* Fails unless the call does, with this code and these words in the text of err. */
#define assert_fails(call, err, code, part)                                                                            \
    do {                                                                                                               \
        assert_int_equal(call, -(code));                                                                               \
        assert_contains(act_error_text(&(err)), part);                                                                 \
    } while (0)

/* The words of a text, separated by single blanks. */
static inline struct act_strv words_of(const char *text)
{
    struct act_strv words = {0};

    for (const char *p = text; *p;) {
        size_t len = strcspn(p, " ");
        act_strv_take(&words, act_strndup(p, len));
        p += len + (p[len] == ' ');
    }
    return words;
}

#endif
