/* setup.h - a new cluster: what has to be known of it, what there is to choose from, and its file.
 *
 * The questions of a kind are rows of a table. Each has an answer in struct flow_setup, and may be able to look what
 * there is: the partitions of a Slurm cluster, the contexts of a kubeconfig. Whoever asks them takes them in their
 * order, because each may need the answers before it.
 */
#ifndef ACT_FLOW_CLUSTER_SETUP_H
#define ACT_FLOW_CLUSTER_SETUP_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/text.h"

struct services;

struct flow_setup {
    struct services *services; /* the caller's */
    struct act_strv params;    /* YAML: further keys of the file, "slurm: {account: x}" */
    bool in_project;           /* the file is one of the project */

    /* The answers: NULL: not known yet; "": there is none. */
    char *kind, *name;
    char *login, *partition;
    char *hosts; /* "me@gpu1,me@gpu2" */
    char *kubeconfig, *context, *namespace_, *image;
    char *subscription, *resource_group, *workspace, *compute, *storage, *container;

    /* What was found out on the way. */
    int64_t gpu_per_node; /* -1: not known */
    bool no_gpus;         /* the nodes have none, gpu_per_node are processors */
    json_t *workspaces;   /* of the subscription; NULL: not asked yet */
    char *storage_id;     /* of the account, in Azure Resource Manager; NULL: it is not known */
    char *blob_endpoint;  /* NULL: the usual one */
    bool makes_container; /* it was not there, and was made */
};
void flow_setup_init(struct flow_setup *setup);
void flow_setup_release(struct flow_setup *setup);

struct flow_choice {
    char *value;
    char *alias; /* another word for it; may be NULL */
    char *shown; /* what it is: "8 nodes, 3 of them idle"; may be NULL */
    bool usual;  /* what is taken without an answer */
};
struct flow_choices {
    struct flow_choice *v;
    size_t n;
    bool open; /* another answer may be right, too */
};
void flow_choices_release(struct flow_choices *choices);

struct flow_question {
    const char *kind;   /* the kind of cluster that it is for; NULL: all */
    const char *option; /* "partition": what names it on the command line */
    const char *text;   /* "Partition" */
    size_t answer;      /* where it goes in struct flow_setup */
    bool may_lack;      /* "none" is an answer */
    bool is_quiet;      /* a single choice, or the usual one of a closed list, need not be asked about */
    /* What there is; NULL: nobody knows. */
    int (*look)(struct flow_setup *setup, struct flow_choices *out, struct act_error *err);
};
/* In their order; ends with a row without an option. */
extern const struct flow_question flow_questions[];
bool flow_question_is_for(const struct flow_question *question, const struct flow_setup *setup);
char **flow_question_answer(const struct flow_question *question, struct flow_setup *setup);
/* Contacts the cluster where the question is about what it has. */
int flow_question_look(const struct flow_question *question, struct flow_setup *setup, struct flow_choices *out,
                       struct act_error *err) ACT_NODISCARD;
/* Takes an answer, or says what there is instead: -ACT_NOT_FOUND, -ACT_USAGE. */
int flow_question_take(const struct flow_question *question, struct flow_setup *setup,
                       const struct flow_choices *choices, const char *answer, struct act_error *err) ACT_NODISCARD;

/* What depends on all answers: the GPUs of a node. */
int flow_setup_finish(struct flow_setup *setup, struct act_error *err) ACT_NODISCARD;
/* The text of the cluster file, comments included, and of its account file (NULL: it has none); where they go. New
 * strings. */
int flow_setup_text(const struct flow_setup *setup, char **out, struct act_error *err) ACT_NODISCARD;
char *flow_setup_account(const struct flow_setup *setup);
char *flow_setup_file(const struct flow_setup *setup);
char *flow_setup_account_file(const struct flow_setup *setup);
/* Writes them, and makes the container. Nothing that is there is replaced. *out_is_default: it is the first one of the
 * user, and the default now. */
int flow_setup_save(struct flow_setup *setup, bool *out_is_default, struct act_error *err) ACT_NODISCARD;

#endif
