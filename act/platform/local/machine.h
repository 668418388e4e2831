/* machine.h - this machine, for the platform "local": its resources, and its runs. */
#ifndef ACT_PLATFORM_LOCAL_MACHINE_H
#define ACT_PLATFORM_LOCAL_MACHINE_H

#include "gpus/gpus.h"
#include "platform/local/allocation.h"
#include "platform/platform.h"

struct local_machine {
    char *name;
    int slots; /* GPUs that are given to this process, or processors when there are none */
    bool has_gpus;
    char *why_not_all; /* of the machine's GPUs are given; NULL: they are */
    struct gpu_masks masks;
    struct allocation job; /* of a batch system, whose part of the machine this is */
};

/* Contacts nobody and starts nothing. */
int local_machine_find(struct local_machine *out, struct act_error *err) ACT_NODISCARD;
void local_machine_release(struct local_machine *m);
/* How many of the GPUs that are named ('gpus') are given, or without names, of all; or processors. Names of GPUs that
 * are not: -ACT_CONFIG. */
int local_machine_given(struct local_machine *m, const struct act_strv *named, int *out,
                        struct act_error *err) ACT_NODISCARD;
/* Tells whether this is all of a machine, and no job's or run's part of it. */
bool local_machine_is_whole(const struct local_machine *m);
/* The folder of the locks by which runs share GPUs or processors; root is that of ACT's state. New string. */
char *local_machine_slots_dir(const struct local_machine *m, const char *root);

/* In local.c: the machine of the platform, and the absolute path of a run's folder (new string). */
const struct local_machine *local_machine_of(struct platform *p);
char *local_run_dir(struct platform *p, const char *id);
/* Its folder of locks (local_machine_slots_dir()). */
const char *local_slots_of(struct platform *p);

/* Members of struct platform_row. The jobs are this user's runs only: those of others cannot be seen. */
int local_nodes(struct platform *p, const char *id, struct platform_nodes *out, struct act_error *err);
int local_shell(struct platform *p, const char *id, const char *node, const struct act_strv *command,
                struct platform_shell *out, struct act_error *err);
int local_agent(struct platform *p, const char *id, const char *node, char **out, struct act_error *err);
int local_summary(struct platform *p, struct platform_summary *out, struct act_error *err);
int local_jobs(struct platform *p, struct platform_jobs *out, struct act_error *err);
void local_gpus(struct platform *p, struct platform_gpus *out);
void local_examine(struct platform *p, struct platform_findings *findings);
void local_examine_mounts(struct platform *p, const char *wanted, struct platform_findings *findings);

#endif
