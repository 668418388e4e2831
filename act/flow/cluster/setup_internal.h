/* setup_internal.h - how the files of a new cluster work together: setup.c (questions, names, saving), setup_text.c
 * (the files), setup_slurm.c, setup_ssh.c, setup_kubernetes.c and setup_azureml.c (what there is to choose from). */
#ifndef ACT_FLOW_CLUSTER_SETUP_INTERNAL_H
#define ACT_FLOW_CLUSTER_SETUP_INTERNAL_H

#include "auth/services.h"
#include "flow/cluster/setup.h"
#include "flow/flow.h"
#include "platform/platform.h"

/* Appends a choice; takes shown, copies the rest. */
void setup_offer(struct flow_choices *choices, const char *value, const char *alias, char *shown, bool usual);
bool setup_has(const struct flow_choices *choices, const char *value);
/* NULL for "" too. */
const char *setup_answer(const char *answer);

/* Opens a flow on what is known of the cluster so far: close it. */
int setup_open(const struct flow_setup *setup, struct flow *out, struct act_error *err) ACT_NODISCARD;
/* Counts the GPUs, else the processors, of a node of this pool (NULL: of all). */
int setup_count_gpus(struct flow_setup *setup, const char *pool, struct act_error *err) ACT_NODISCARD;

/* "key: value" and, behind it, what it is for; comment may be NULL. */
void setup_put(struct act_buf *out, const char *key, const char *value, const char *comment);
/* The same, if there is an answer. */
void setup_put_if(struct act_buf *out, const char *key, const char *value, const char *comment);
void setup_put_gpus(struct act_buf *out, const struct flow_setup *setup);

/* ---- the kinds */

/* A kind of cluster: a row in setup.c, its questions there, and a file with what it knows. */
struct setup_kind {
    const char *name;                                                 /* also the platform of its file */
    const char *text;                                                 /* "this machine" */
    void (*put)(struct act_buf *out, const struct flow_setup *setup); /* what its file has of its own */
    int (*finish)(struct flow_setup *setup, struct act_error *err);   /* NULL: nothing is left to find out */
};
/* NULL: there is none of that name. */
const struct setup_kind *setup_find_kind(const char *name);

int setup_look_partitions(struct flow_setup *setup, struct flow_choices *out, struct act_error *err);
int setup_look_login(struct flow_setup *setup, struct flow_choices *out, struct act_error *err);
int setup_finish_slurm(struct flow_setup *setup, struct act_error *err);
void setup_put_slurm(struct act_buf *out, const struct flow_setup *setup);

int setup_look_hosts(struct flow_setup *setup, struct flow_choices *out, struct act_error *err);
void setup_put_ssh(struct act_buf *out, const struct flow_setup *setup);

int setup_look_contexts(struct flow_setup *setup, struct flow_choices *out, struct act_error *err);
int setup_look_namespaces(struct flow_setup *setup, struct flow_choices *out, struct act_error *err);
int setup_finish_kubernetes(struct flow_setup *setup, struct act_error *err);
void setup_put_kubernetes(struct act_buf *out, const struct flow_setup *setup);

int setup_look_subscriptions(struct flow_setup *setup, struct flow_choices *out, struct act_error *err);
int setup_look_groups(struct flow_setup *setup, struct flow_choices *out, struct act_error *err);
int setup_look_workspaces(struct flow_setup *setup, struct flow_choices *out, struct act_error *err);
int setup_look_computes(struct flow_setup *setup, struct flow_choices *out, struct act_error *err);
int setup_look_storage(struct flow_setup *setup, struct flow_choices *out, struct act_error *err);
int setup_look_containers(struct flow_setup *setup, struct flow_choices *out, struct act_error *err);
int setup_look_images(struct flow_setup *setup, struct flow_choices *out, struct act_error *err);
int setup_finish_azureml(struct flow_setup *setup, struct act_error *err);
void setup_put_azureml(struct act_buf *out, const struct flow_setup *setup);
/* Makes the container, if it is not there. */
int setup_make_container(struct flow_setup *setup, struct act_error *err);

#endif
