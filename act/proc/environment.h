/* environment.h - which variables of its own environment this program gives to those that it starts.
 *
 * The environment comes from outside: from the job in which somebody types `a`, from a module of the site, from
 * settings for other programs. What means something else to a program than its user wants to say is kept from it. One
 * table has all of it, with a reason for each row; docs/reference/environment.md shows the same table. */
#ifndef ACT_PROC_ENVIRONMENT_H
#define ACT_PROC_ENVIRONMENT_H

#include <stdbool.h>

#include "base/text.h"

/* Kinds of programs. */
enum environment_of {
    OF_USER,    /* the user's own (an editor, a pager, a shell), and ACT itself: they see all */
    OF_SLURM,   /* Slurm's tools, which are asked, and told to do something to a job */
    OF_JOB,     /* sbatch, and what runs in the job that it makes */
    OF_RUN,     /* the agent of a run on this machine, and all that it starts */
    OF_COMMAND, /* what is the user's in such a run: the command, and what prepares for it */
    OF_STARTER, /* the command of a run that starts the processes of a node itself, such as torchrun */
    OF_SSH,
    OF_AZ,
    OF_PLUGIN, /* what a kubeconfig says asks for credentials */
    OF_MOUNT,  /* blobfuse2 and rclone */
    OF_DOCKER, /* docker and podman */
    N_ENVIRONMENTS
};

/* Tells whether such a program sees the variable of this name (which ends with NUL or '=') of this process. */
bool environment_shows(enum environment_of program, const char *name);

/* Appends to out this process's environment as such a program sees it. The variables of set replace others of their
 * names: texts such as "NAME=value", of which the first of a name counts, that end with NULL; set may be NULL. */
void environment_make(enum environment_of program, char *const *set, struct act_strv *out);

/* Removes from this process's environment what such a program does not see, and appends it to out_taken, which may be
 * NULL. */
void environment_reduce(enum environment_of program, struct act_strv *out_taken);

/* Returns lines for a shell that do the same to its environment. New string. */
char *environment_script(enum environment_of program);

/* The rows of the table, for what documents it: false after the last one. */
struct environment_row {
    const char *names;  /* with blanks between them; '*' at the end of one stands for any rest */
    unsigned kept_from; /* a bit for each kind of program, and perhaps ENVIRONMENT_IN_JOB; 0: nobody */
    const char *because;
};
/* The row holds only in a job of Slurm, which may have set the variables; elsewhere a site or its user has. */
#define ENVIRONMENT_IN_JOB (1U << N_ENVIRONMENTS)
bool environment_get_row(int i, struct environment_row *out);
/* Returns what documents call such a program. */
const char *environment_name(enum environment_of program);

#endif
