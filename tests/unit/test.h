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

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* Fails with the text of err when rc is not 0. */
#define assert_ok(call, err)                                                                                 \
    do {                                                                                                     \
        int rc_ = (call);                                                                                    \
        if (rc_ != 0)                                                                                        \
            fail_msg("%s: %d %s", #call, rc_, (err).text);                                                   \
    } while (0)

#endif
