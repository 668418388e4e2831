/* code.h - the code of a project, packed and stored. */
#ifndef ACT_FLOW_CODE_CODE_H
#define ACT_FLOW_CODE_CODE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "base/text.h"
#include "flow/flow.h"
#include "package/package.h"
#include "transfer/transfer.h"

#define FLOW_LARGE_CODE (UINT64_C(100) << 20)

struct flow_init {
    /* The command that will run with this code: refused before anything is packed if it cannot work. NULL: no check. */
    const struct act_strv *command;
    bool dry_run; /* only fill list, package (by package_forecast()) and is_stored */
    /* Called on the loop about five times a second; may be NULL. */
    void (*packing)(void *arg, const struct transfer_progress *now);
    void (*uploading)(void *arg, const struct transfer_progress *now);
    void (*done)(void *arg); /* before the result is reported; may be NULL */
    /* Called before packing more than FLOW_LARGE_CODE bytes that are not in the last package: an error cancels. May be
     * NULL. */
    int (*large)(void *arg, const struct flow_init *io, struct act_error *err);
    void *arg;
    /* Called with the size of the package before it is stored, in a dry run where it may matter: an error cancels. May
     * be NULL. */
    int (*fits)(void *fits_arg, uint64_t bytes, struct act_error *err);
    void *fits_arg;
    bool keep_compiled;             /* code_path is kept if it is this package, compiled in the same image */
    struct package_list list;       /* what goes in and what stays out */
    struct package_summary package; /* with dry_run the sha256 is empty unless nothing changed */
    uint64_t sent_bytes;            /* of the package; 0: the store already had it */
    bool published;                 /* code_path was replaced */
    enum { FLOW_UNKNOWN, FLOW_YES, FLOW_NO } is_stored; /* with dry_run */
    char compiled[ACT_SHA256_HEX]; /* with keep_compiled: the package kept as code_path; "": none */
    uint64_t compiled_bytes;
    bool was_compiled; /* with keep_compiled: code_path was a compiled package, but not of this one */
};
/* Packs the project and stores it as "<code_path without .zip>/<sha256>.zip" (flow_code_base()) and as code_path. */
int flow_init(struct flow *flow, struct flow_init *io, struct act_error *err) ACT_NODISCARD;
/* Does what flow_init() does, then compiles the package with compile.aml.sh in docker.image, with docker or podman on
 * this machine, and stores the result as a separate package, also as code_path: out; release both. Nothing to compile,
 * or nothing to compile it with: -ACT_USAGE, and nothing is stored. The compiler's output goes to stderr. */
int flow_compile(struct flow *flow, struct flow_init *code, struct flow_init *out, struct act_error *err) ACT_NODISCARD;
void flow_init_release(struct flow_init *io);
/* Returns the file in which this machine remembers what the last package of a project was made of
 * (package_output.index), as a new string; what was said of the project once is in files beside it. */
char *flow_package_index(const char *project);
/* Notes which code a run gets: "code  412 files, 3.1 MiB, 2 changed: train.py model.py". */
void flow_say_code(const struct flow_init *io);

#endif
