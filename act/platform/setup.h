/* setup.h - a new cluster on a platform: the questions about it, what there is to choose from, and its cluster file.
 *
 * A platform on which clusters can be set up has a struct platform_setup_ops, to which its row points. Whoever asks the
 * questions (flow/cluster/setup.h) takes them in their order, because each may need the answers before it.
 */
#ifndef ACT_PLATFORM_SETUP_H
#define ACT_PLATFORM_SETUP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/text.h"

struct config;
struct platform_row;
struct services;

struct platform_answer {
    const char *option; /* of its question */
    char *value;        /* "": there is none */
};

/* A cluster that is being set up. */
struct platform_setup {
    struct services *services; /* the caller's */
    struct act_strv params;    /* YAML: further keys of the file, "slurm: {account: x}" */
    bool in_project;           /* the file is one of the project */
    char *file, *account_file; /* absolute: where the cluster file goes, and the account file if there is one */

    const struct platform_row *row; /* the platform; NULL: not chosen yet */
    struct platform_answer *answers;
    size_t n_answers;

    /* Found out on the way. */
    int64_t gpu_per_node;  /* -1: not known */
    bool no_gpus;          /* the nodes have none, gpu_per_node counts processors */
    struct act_strv there; /* what its nodes can set up before a command: "conda base torch" */
    char *made;            /* "the container 'act'", which was not there; NULL: nothing was made */
    void *own;             /* the platform's, of own_size bytes */
};

struct platform_choice {
    char *value;
    char *alias; /* another word for it; may be NULL */
    char *shown; /* what it is: "8 nodes, 3 of them idle"; may be NULL */
    bool usual;  /* what is taken without an answer */
};
struct platform_choices {
    struct platform_choice *v;
    size_t n;
    bool open; /* another answer may be right, too */
};
void platform_choices_release(struct platform_choices *choices);

struct platform_question {
    const char *option; /* "partition": what names it on the command line */
    const char *text;   /* "Partition"; NULL: nobody is asked, the option alone says it, and it is a path */
    bool may_lack;      /* "none" is an answer */
    bool is_quiet;      /* a single choice, or the usual one of a closed list, need not be asked about */
    /* Whether the cluster may be called after the answer, up to its first '.' or ',', or as a whole. */
    enum { PLATFORM_NAMES_NOTHING, PLATFORM_NAMES_IN_PART, PLATFORM_NAMES } names;
    /* Sets *out to what there is; contacts the cluster where it has to. */
    int (*look)(struct platform_setup *setup, struct platform_choices *out, struct act_error *err);
};

/* What a platform knows of its new clusters. */
struct platform_setup_ops {
    const char *text;                          /* "a Slurm cluster, here or behind ssh" */
    const struct platform_question *questions; /* in their order; ends with a row without an option */
    /* Adds what the cluster file says besides the platform to out. */
    void (*put)(struct act_buf *out, const struct platform_setup *setup);
    /* Finds out what depends on all answers: the GPUs of a node. May be NULL. */
    int (*finish)(struct platform_setup *setup, struct act_error *err);
    /* Returns the text of the account file, a new string, or NULL if there is none. May be NULL: there never is. */
    char *(*account)(const struct platform_setup *setup);
    /* Makes what the answers name and is not there, and sets setup->made. May be NULL. */
    int (*make)(struct platform_setup *setup, struct act_error *err);
    size_t own_size;            /* of setup->own */
    void (*release)(void *own); /* what is in it; may be NULL */
};

/* Returns the row that can be set up and comes after this one (NULL: the first), or NULL. */
const struct platform_row *platform_setup_next(const struct platform_row *row);

/* Chooses the platform. */
void platform_setup_choose(struct platform_setup *setup, const struct platform_row *row);
/* Frees what setup holds, but for the services. */
void platform_setup_release(struct platform_setup *setup);

/* Keeps a copy of value as the answer to the question of that option. */
void platform_answer(struct platform_setup *setup, const char *option, const char *value);
/* Returns the answer, NULL where there is none yet; said() returns NULL for "" too. */
const char *platform_answered(const struct platform_setup *setup, const char *option);
const char *platform_said(const struct platform_setup *setup, const char *option);

/* Sets *out to the text of the cluster file, comments and the keys of setup->params included, as far as the answers are
 * known; a new string. */
int platform_setup_text(const struct platform_setup *setup, char **out, struct act_error *err) ACT_NODISCARD;

/* ---- for the platforms */

/* Appends a choice; takes ownership of shown, copies the rest. */
void platform_offer(struct platform_choices *choices, const char *value, const char *alias, char *shown, bool usual);
/* Tells whether value is among the choices. */
bool platform_offers(const struct platform_choices *choices, const char *value);
/* A look() for a question to which any answer may be right. */
int platform_look_nowhere(struct platform_setup *setup, struct platform_choices *out, struct act_error *err);

/* Reads the configuration that the file would be. Release out. */
int platform_setup_load(const struct platform_setup *setup, struct config *out, struct act_error *err) ACT_NODISCARD;
/* Asks the cluster for the load of its nodes. Release out. */
struct platform_summary;
int platform_setup_summary(const struct platform_setup *setup, struct platform_summary *out,
                           struct act_error *err) ACT_NODISCARD;
/* Finds modules, environments of conda and Pythons on the site of the platform, for setup->there. What cannot be asked
 * has none. */
void platform_setup_look(struct platform_setup *setup);
/* Counts the GPUs, else the processors, of a node of this pool (NULL: of the one with most GPUs). */
int platform_setup_count(struct platform_setup *setup, const char *pool, struct act_error *err) ACT_NODISCARD;

/* Adds the line "key: value  # comment"; comment may be NULL. */
void platform_put(struct act_buf *out, const char *key, const char *value, const char *comment);
/* Adds such a line unless value is NULL. */
void platform_put_if(struct act_buf *out, const char *key, const char *value, const char *comment);
/* Adds comments that name what is there. */
void platform_put_there(struct act_buf *out, const struct platform_setup *setup);
/* Adds gpu_per_node, if it is known. */
void platform_put_gpus(struct act_buf *out, const struct platform_setup *setup);

#endif
