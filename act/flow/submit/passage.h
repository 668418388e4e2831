/* passage.h - for the files of flow/ only: the one way from words to a run, for all verbs that start one.
 *
 * A verb fills a struct passage, and steps.c, which is the table of all steps, takes it through four sections: DESCRIBE
 * makes the specification, REFUSE asks whatever can say no, HAND OVER gives the run to its platform, LOSE ends the run
 * that it replaces. So nothing is lost before everything that can fail is done, and a dry run, which is the first two
 * sections, says what would be refused.
 */
#ifndef ACT_FLOW_SUBMIT_PASSAGE_H
#define ACT_FLOW_SUBMIT_PASSAGE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "flow/code/code_internal.h"
#include "flow/flow.h"
#include "flow/jobfile/jobfile.h"
#include "flow/submit/submit.h"
#include "run/run.h"

struct platform;

struct passage {
    struct flow *flow;      /* with the configuration that the run has */
    struct flow_submit *io; /* what is asked for */
    struct run_spec *spec;  /* out: the run; {0} begins */

    bool here;                /* a run of 'a local' */
    bool own_folders;         /* its mapped folders are the project's own, not those in the stores */
    const char *image, *tool; /* the image that it is in, and the program that runs that; NULL: none */

    struct flow_run *old; /* the run that this one repeats, and replaces if it is active; NULL: there is none */
    struct flow *home;    /* the configuration of its cluster */
    struct flow *from;    /* with the ledger that has it */

    int (*hand_over)(void *arg, struct act_error *err); /* several runs, in place of this one; NULL: this one */
    void *arg;

    /* Results of steps, for later ones. */
    struct platform *platform;
    struct flow_job_file job;    /* if there is a job file */
    int64_t limit_s;             /* after which its command is ended; 0: never */
    struct flow_package package; /* that the run is pinned to */
};

/* ---- steps.c */

/* The first two sections. */
int flow_pass_checks(struct passage *p, struct act_error *err) ACT_NODISCARD;
/* The other two; nothing in a dry run. */
int flow_pass_over(struct passage *p, struct act_error *err) ACT_NODISCARD;
/* Takes all sections. */
int flow_pass(struct passage *p, struct act_error *err) ACT_NODISCARD;
void flow_passage_release(struct passage *p);

/* ---- project.c: says where the project is, when it is a new one that nothing but the current folder makes it */

int step_say_project(struct passage *p, struct act_error *err) ACT_NODISCARD;

/* ---- submit.c: DESCRIBE */

int step_read_job_file(struct passage *p, struct act_error *err) ACT_NODISCARD;
int step_open_platform(struct passage *p, struct act_error *err) ACT_NODISCARD;
int step_identify(struct passage *p, struct act_error *err) ACT_NODISCARD;
int step_label(struct passage *p, struct act_error *err) ACT_NODISCARD;
int step_ask_row(struct passage *p, struct act_error *err) ACT_NODISCARD;
int step_take_command(struct passage *p, struct act_error *err) ACT_NODISCARD;
int step_take_place(struct passage *p, struct act_error *err) ACT_NODISCARD;

/* ---- after.c: lists the runs that it is to run after and that have not completed. A repeated run that has not begun
 * keeps those of the first one, where this command names none. -ACT_USAGE: one cannot be waited for; -ACT_FAIL: one has
 * ended without having completed, and that matters */

int step_take_needs(struct passage *p, struct act_error *err) ACT_NODISCARD;
/* REFUSE: names the runs that end with the one that this run replaces, because they were to run after that. */
int step_say_followers(struct passage *p, struct act_error *err) ACT_NODISCARD;

/* ---- starter.c: a command that is a starter (run/starter.h) is started once on each node, of which the user is told;
 * words of his that contradict the size are warned about */

int step_form_starter(struct passage *p, struct act_error *err) ACT_NODISCARD;

/* ---- setup.c, hang.c, retry.c: from the configuration; a repeated run keeps what the first one had where this command
 * does not say. -ACT_CONFIG or -ACT_USAGE, by where it was said */

int step_take_setup(struct passage *p, struct act_error *err) ACT_NODISCARD;
int step_repeat_setup(struct passage *p, struct act_error *err) ACT_NODISCARD;
int step_take_hang(struct passage *p, struct act_error *err) ACT_NODISCARD;
int step_repeat_hang(struct passage *p, struct act_error *err) ACT_NODISCARD;
int step_take_retry(struct passage *p, struct act_error *err) ACT_NODISCARD;
int step_repeat_retry(struct passage *p, struct act_error *err) ACT_NODISCARD;
/* REFUSE: keeps the run off nodes that failed lately, if it fits without them, and says so. */
int step_avoid_bad_nodes(struct passage *p, struct act_error *err) ACT_NODISCARD;

/* ---- input.c: an input for the commands, which a repeated run keeps; one that waits for it does not hang. -ACT_USAGE:
 * the platform has no way for one */

int step_take_input(struct passage *p, struct act_error *err) ACT_NODISCARD;

/* ---- shape.c, folders.c */

int step_take_size(struct passage *p, struct act_error *err) ACT_NODISCARD;
int step_map_folders(struct passage *p, struct act_error *err) ACT_NODISCARD;

/* ---- resubmit.c: the same of a run that is repeated */

/* Lists the runs for which the new one waits: the old one, and those for which that waits itself. */
int step_wait_for_old(struct passage *p, struct act_error *err) ACT_NODISCARD;
int step_find_secrets(struct passage *p, struct act_error *err) ACT_NODISCARD;
int step_repeat_command(struct passage *p, struct act_error *err) ACT_NODISCARD;
int step_repeat_size(struct passage *p, struct act_error *err) ACT_NODISCARD;
int step_repeat_foreign(struct passage *p, struct act_error *err) ACT_NODISCARD;
/* REFUSE: a run that goes on is replaced by one other. */
int step_check_place(struct passage *p, struct act_error *err) ACT_NODISCARD;
/* LOSE, which fails no more: if the run does not end, the user is told how to end it. */
void step_end_old_run(struct passage *p);

/* ---- repeat.c: on the same cluster the run keeps the image and other settings that platforms read from the
 * configuration, unless this command overrides them, and environment, folders and preparation of the code; on another
 * cluster only what no cluster file had set */

/* Tells whether the new run goes to another cluster than the old one. */
bool passage_is_moved(const struct passage *p);
int step_repeat_config(struct passage *p, struct act_error *err) ACT_NODISCARD;
/* -ACT_CONFIG: a folder is no longer mapped, or the value of a secret is no longer known. */
int step_repeat_settings(struct passage *p, struct act_error *err) ACT_NODISCARD;

/* ---- local.c, unused.c */

/* REFUSE: checks that this machine gets at the folders of a run that are in the stores of a cluster elsewhere.
 * -ACT_USAGE: there are none. */
int step_check_stored(struct passage *p, struct act_error *err) ACT_NODISCARD;
/* Warns about settings of the configuration that have no effect on the run. */
int step_mention_unused(struct passage *p, struct act_error *err) ACT_NODISCARD;

/* ---- pin.c: the package */

int step_pin_package(struct passage *p, struct act_error *err) ACT_NODISCARD;

/* ---- hand_over.c: HAND OVER */

int step_use_own_folders(struct passage *p, struct act_error *err) ACT_NODISCARD;
int step_trust(struct passage *p, struct act_error *err) ACT_NODISCARD;
int step_hand_over(struct passage *p, struct act_error *err) ACT_NODISCARD;

#endif
