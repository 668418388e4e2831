/* platform_internal.h - what the platforms share among themselves. */
#ifndef ACT_PLATFORM_PLATFORM_INTERNAL_H
#define ACT_PLATFORM_PLATFORM_INTERNAL_H

#include "platform/platform.h"

/* A platform begins with this. */
struct platform {
    const struct platform_ops *ops;
};

/* One function for each row of the table in platform.c. */
int platform_local_open(const struct config *config, struct platform **out,
                        struct act_error *err) ACT_NODISCARD;

int platform_slurm_open(const struct config *config, struct platform **out,
                        struct act_error *err) ACT_NODISCARD;

/* Folders of a blob store that are to be mounted: no platform does that. where: "this machine". */
int platform_check_mounts(const struct run_spec *spec, const char *where,
                          struct act_error *err) ACT_NODISCARD;

/* Adds to logs. */
void platform_logs_add(struct platform_logs *logs, const char *name, uint64_t size);
void platform_logs_sort(struct platform_logs *logs);

#endif
