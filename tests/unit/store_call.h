/* store_call.h - short forms for the calls of stores. */
#ifndef TESTS_UNIT_STORE_CALL_H
#define TESTS_UNIT_STORE_CALL_H

#include "store/store.h"

/* A call without attributes: a mode of 0 would be one. */
static inline struct store_call call_of(enum store_op op, const char *key)
{
    struct store_call call = {.op = op, .key = key};

    if (op == STORE_PUT)
        call.put.attr.mode = -1;
    else if (op == STORE_COMMIT)
        call.commit.attr.mode = -1;
    return call;
}

#endif
