/* code.h - the code of a project, packed and stored. */
#ifndef ACT_FLOW_CODE_CODE_H
#define ACT_FLOW_CODE_CODE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "base/text.h"
#include "flow/flow.h"
#include "package/package.h"
#include "run/run.h"
#include "transfer/transfer.h"

#define FLOW_LARGE_CODE (UINT64_C(100) << 20)

struct flow_init {
    /* What will run with it: refused, before anything is packed, when it cannot. NULL: nothing is checked. */
    const struct act_strv *command;
    bool dry_run; /* only list, package as by package_forecast(), and is_stored */
    /* Called on the loop about five times a second; may be NULL. */
    void (*packing)(void *arg, const struct transfer_progress *now);
    void (*uploading)(void *arg, const struct transfer_progress *now);
    void (*done)(void *arg); /* before anything is said of what came of it; may be NULL */
    /* Before more than FLOW_LARGE_CODE bytes that the last package did not have are packed: an error gives it up. May
     * be NULL. */
    int (*large)(void *arg, const struct flow_init *io, struct act_error *err);
    void *arg;
    bool keep_compiled;             /* code_path stays where it is this package, compiled in the same image */
    struct package_list list;       /* what goes in and what stays out */
    struct package_summary package; /* with dry_run the sha256 is empty unless nothing changed */
    uint64_t sent_bytes;            /* of the package; 0: the store had it */
    bool published;                 /* code_path was replaced */
    enum { FLOW_UNKNOWN, FLOW_YES, FLOW_NO } is_stored; /* with dry_run */
    char compiled[ACT_SHA256_HEX]; /* with keep_compiled: the package that code_path stays; "": it does not */
    uint64_t compiled_bytes;
    bool was_compiled; /* with keep_compiled: code_path was a compiled package, but not of this one */
};
/* Packs the project and stores it as "<code_path without .zip>/<sha256>.zip" (flow_code_base()) and as code_path. */
int flow_init(struct flow *flow, struct flow_init *io, struct act_error *err) ACT_NODISCARD;
/* The same, and then compiles it with compile.aml.sh in docker.image, by docker or podman on this machine, and stores
 * what comes of it as a package of its own, which code_path becomes: out; release both. Nothing to compile, or nothing
 * that does it: -ACT_USAGE, and nothing is stored. What the compiler prints goes to stderr. */
int flow_compile(struct flow *flow, struct flow_init *code, struct flow_init *out,
                 struct act_error *err) ACT_NODISCARD;
void flow_init_release(struct flow_init *io);
/* Notes which code a run gets: "code  412 files, 3.1 MiB, 2 changed: train.py model.py". */
void flow_say_code(const struct flow_init *io);

#endif
