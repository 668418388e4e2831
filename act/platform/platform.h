/* platform.h - where runs execute, behind one interface: this machine, Slurm, Azure Machine Learning,
 * Kubernetes.
 *
 * Every platform passes tests/conformance/platform_test.c. To add one: one file with a struct platform_ops,
 * one row in platform.c. A platform never uploads anything: packages are handed to it as data.
 */
#ifndef ACT_PLATFORM_PLATFORM_H
#define ACT_PLATFORM_PLATFORM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"
#include "base/text.h"
#include "config/config.h"
#include "run/run.h"

struct platform;

/* A log file of a run, as it stands. */
struct platform_log {
    char *name; /* relative: "user_logs/std_log_process_0.txt" */
    uint64_t size;
};
struct platform_logs {
    struct platform_log *v;
    size_t n;
};
void platform_logs_release(struct platform_logs *logs);

/* What one node can take. */
struct platform_limits {
    int gpu_per_node; /* GPUs, or what counts as such: on "local" without GPUs the processors */
    int num_gpu;      /* taken when nobody says how many */
    int max_nodes;    /* 0: not known */
    bool has_gpus;
};

struct platform_submission {
    const struct run_spec *spec;
    const char *package; /* local path of the package, verified; NULL for a run without code */
};

struct platform_ops {
    const char *name; /* as in the cluster file */

    /* What this platform's nodes offer, with config's word where the platform does not know better. */
    int (*limits)(struct platform *p, struct platform_limits *out, struct act_error *err);
    /* Whether such a run could start here; asked before anything is uploaded for it. The package may not be known yet. May be NULL:
     * submit will tell. */
    int (*check)(struct platform *p, const struct run_spec *spec, struct act_error *err);
    /* Starts a run, or queues it. The same id twice is one run: the second call succeeds and changes nothing.
     * Returns when the platform has it. */
    int (*submit)(struct platform *p, const struct platform_submission *submission, struct act_error *err);
    /* The status of n runs at once, out[n]. An id the platform does not know is RUN_UNKNOWN and success. */
    int (*status)(struct platform *p, const char *const *ids, size_t n, struct run_status *out,
                  struct act_error *err);
    /* Cancels. A run that has ended already: success, *out_was_final true. Returns when the run has ended, or
     * when the platform has accepted to end it. */
    int (*abort)(struct platform *p, const char *id, bool *out_was_final, struct act_error *err);
    /* The logs of a run, sorted by name; and bytes of one of them from an offset, *out_got 0 at the end. A
     * log that is not there (yet) is -ACT_NOT_FOUND. */
    int (*logs)(struct platform *p, const char *id, struct platform_logs *out, struct act_error *err);
    int (*read_log)(struct platform *p, const char *id, const char *name, uint64_t offset, void *data,
                    size_t len, size_t *out_got, struct act_error *err);
    /* run.json of a run, for a machine whose ledger does not know it. May be NULL. */
    int (*spec)(struct platform *p, const char *id, struct run_spec *out, struct act_error *err);
    /* The ids of all runs the platform knows. May be NULL. */
    int (*list)(struct platform *p, struct act_strv *out_ids, struct act_error *err);
    void (*close)(struct platform *p);
};

/* The platform of a cluster. One that this version cannot drive is -ACT_CONFIG and says so. */
int platform_open(const struct config *config, struct platform **out, struct act_error *err) ACT_NODISCARD;
void platform_free(struct platform *p);
const char *platform_name(const struct platform *p);

/* Wrappers: they supply the text for what a platform cannot do. */
int platform_limits(struct platform *p, struct platform_limits *out, struct act_error *err) ACT_NODISCARD;
int platform_check(struct platform *p, const struct run_spec *spec, struct act_error *err) ACT_NODISCARD;
int platform_submit(struct platform *p, const struct platform_submission *submission,
                    struct act_error *err) ACT_NODISCARD;
int platform_status(struct platform *p, const char *const *ids, size_t n, struct run_status *out,
                    struct act_error *err) ACT_NODISCARD;
int platform_abort(struct platform *p, const char *id, bool *out_was_final,
                   struct act_error *err) ACT_NODISCARD;
int platform_logs(struct platform *p, const char *id, struct platform_logs *out,
                  struct act_error *err) ACT_NODISCARD;
int platform_read_log(struct platform *p, const char *id, const char *name, uint64_t offset, void *data,
                      size_t len, size_t *out_got, struct act_error *err) ACT_NODISCARD;
int platform_spec(struct platform *p, const char *id, struct run_spec *out,
                  struct act_error *err) ACT_NODISCARD;
int platform_list(struct platform *p, struct act_strv *out_ids, struct act_error *err) ACT_NODISCARD;

#endif
