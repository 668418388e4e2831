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

/* Fails with the text of err when rc is not 0. */
#define assert_ok(call, err)                                                                                 \
    do {                                                                                                     \
        int rc_ = (call);                                                                                    \
        if (rc_ != 0)                                                                                        \
            fail_msg("%s: %d %s", #call, rc_, act_error_text(&(err)));                                       \
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
