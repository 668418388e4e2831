/* machine.h - this machine, for the platform "local": its resources, and its runs. */
#ifndef ACT_PLATFORM_LOCAL_MACHINE_H
#define ACT_PLATFORM_LOCAL_MACHINE_H

#include "platform/platform.h"

struct local_machine {
    int slots; /* GPUs, or processors when there are none */
    bool has_gpus;
};

/* ACT_LOCAL_SLOTS overrides the number found, for containers with a smaller share of the processors. */
int local_machine_find(struct local_machine *out, struct act_error *err) ACT_NODISCARD;

/* In local.c: the machine of the platform, and the absolute path of a run's folder (new string). */
const struct local_machine *local_machine_of(struct platform *p);
char *local_run_dir(struct platform *p, const char *id);

/* Members of struct platform_row. The jobs are this user's runs only: those of others cannot be seen. */
int local_nodes(struct platform *p, const char *id, struct platform_nodes *out, struct act_error *err);
int local_shell(struct platform *p, const char *id, const char *node, const struct act_strv *command,
                struct platform_shell *out, struct act_error *err);
int local_summary(struct platform *p, struct platform_summary *out, struct act_error *err);
int local_jobs(struct platform *p, struct platform_jobs *out, struct act_error *err);
void local_examine(struct platform *p, struct platform_findings *findings);
void local_examine_mounts(struct platform *p, const char *wanted, struct platform_findings *findings);

#endif
