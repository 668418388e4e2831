/* platform_internal.h - what the platforms share among themselves. */
#ifndef ACT_PLATFORM_PLATFORM_INTERNAL_H
#define ACT_PLATFORM_PLATFORM_INTERNAL_H

#include "platform/platform.h"
#include "site/site.h"

/* First member of every platform's struct. */
struct platform {
    const struct platform_row *row;
};

/* table.c: all platforms, ending with NULL. In a file by itself so that tests can have their own table. */
extern const struct platform_row *const platform_table[];
extern const struct platform_row platform_local, platform_slurm, platform_azureml[3];

/* Refuses mounted blob folders and shares of Azure Files, which only Azure Machine Learning supports. where: "this
 * machine". */
int platform_check_mounts(const struct run_spec *spec, const char *where,
                          struct act_error *err) ACT_NODISCARD;

/* For platforms whose runs are folders of a site, as the operations of platform.h. */
int platform_site_logs(struct site *site, const char *id, struct platform_logs *out,
                       struct act_error *err) ACT_NODISCARD;
int platform_site_read_log(struct site *site, const char *id, const char *name, uint64_t offset, void *data,
                           size_t len, size_t *out_got, struct act_error *err) ACT_NODISCARD;
int platform_site_spec(struct site *site, const char *id, struct run_spec *out,
                       struct act_error *err) ACT_NODISCARD;

/* Appends data to what the part's file has of it already. Blocks; touches nothing but the file. A file that lacks the
 * bytes before it is left alone: there is never a hole. */
int platform_part_write(const struct platform_part *part, const void *data, size_t len,
                        struct act_error *err) ACT_NODISCARD;

/* Adds to logs. */
void platform_logs_add(struct platform_logs *logs, const char *name, uint64_t size, int64_t idle_s);
void platform_logs_sort(struct platform_logs *logs);

#endif
