/* store_internal.h - for the files of store/ only: what a store implements. */
#ifndef ACT_STORE_STORE_INTERNAL_H
#define ACT_STORE_STORE_INTERNAL_H

#include "store/store.h"

struct store_ops {
    const char *name;
    /* One function for each operation; each must lead to exactly one store_finish(), later, on the loop. */
    void (*start[STORE_OPS])(struct store *store, struct store_call *call);
    const char *(*key_problem)(const char *key);
    /* May be NULL: no URLs. */
    int (*url)(struct store *store, const char *key, const char *permissions, int64_t life_s, char **out,
               struct act_error *err);
    void (*close)(struct store *store);
    uint64_t max_put;
};

/* The common head of every store struct. */
struct store {
    const struct store_ops *ops;
    struct http *http;
    char *name; /* owned */
};

/* Sets call->rc from the error (0 when err is NULL) and calls call->done. */
void store_finish(struct store_call *call, int rc);

#endif
