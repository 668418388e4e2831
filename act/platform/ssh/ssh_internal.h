/* ssh_internal.h - what the files of the platform "ssh" share: ssh.c (runs), choose.c (which machines a run gets),
 * abort.c (their ends), call.c (asking the machines), cluster.c (nodes, summary, jobs), group.c (a run over several),
 * examine.c (what a machine has), host.c (the other side of call.c). */
#ifndef ACT_PLATFORM_SSH_SSH_INTERNAL_H
#define ACT_PLATFORM_SSH_SSH_INTERNAL_H

#include <jansson.h>

#include "platform/platform_internal.h"
#include "platform/ssh/keys.h"
#include "run/machines.h"

enum { HOSTS_SLOTS_MOST = 65536 };

/* Facts that a machine tells about itself. */
struct hosts_facts {
    int slots, idle;     /* GPUs, or processors where it has none; idle: in no use */
    int running, queued; /* runs */
    int slots_queued;    /* that those which wait ask for */
    int64_t place;       /* of its runs: the same number is the same folder of the same machine; 0: not known */
    bool has_gpus, has_mpirun;
};

struct hosts_host {
    char *login;
    struct site *site;    /* opened on first use */
    int rc;               /* of the last hosts_each() */
    struct act_error err; /* if that failed */
    bool is_told;         /* the user knows of it */
    struct hosts_facts facts;
};

/* The machines of a run, in the order of its node ranks. */
struct hosts_run {
    struct hosts_host **v;
    size_t n;
    struct run_machines machines; /* what they know of one another; set by hosts_meet() */
};

struct hosts {
    struct platform base;
    struct hosts_host *v;
    size_t n;
    char *root;
    const struct config *config;
    int64_t wanted_gpu_per_node; /* of the configuration; -1: not given */
    bool is_looked_at;           /* the facts are known */
    bool only_look;              /* connecting brings nothing there */
    char *why_not_all;           /* runs over several machines may not have all of them; NULL: they may */
    char *last_id;               /* the run that was looked for, or placed, last, and where it is */
    struct hosts_run last;
    struct hosts *machines;   /* each of several for itself; NULL: nobody has asked for them */
    struct hosts_logs **logs; /* that were opened */
    size_t n_logs;
};

static inline struct hosts *hosts_of(struct platform *p)
{
    return (struct hosts *)p; /* the first member */
}

/* ---- words.c: struct hosts_facts, struct platform_nodes, struct platform_jobs */

extern const struct fields hosts_facts_fields, hosts_nodes_fields, hosts_jobs_fields;

/* ---- call.c */

/* Sets *out to the site of a machine, which h owns; connects if necessary. */
int hosts_site(struct hosts *s, struct hosts_host *h, struct site **out, struct act_error *err) ACT_NODISCARD;
struct hosts_request {
    const char *verb; /* of host.c */
    json_t *in;
    int timeout_s;                      /* 0: the usual one */
    const struct site_package *package; /* that the machine needs for it, and is brought if it lacks it; NULL: none */
};
/* Has a machine carry out a request; takes the reference of in. Sets *out to its response, a new reference, or to NULL.
 * An error there is one here. */
int hosts_call(struct hosts *s, struct hosts_host *h, const struct hosts_request *asked, json_t **out,
               struct act_error *err) ACT_NODISCARD;
/* Turns the error that a response has into one here; 0: it has none. */
int hosts_check_response(const struct hosts_host *h, const json_t *response, struct act_error *err) ACT_NODISCARD;
/* Asks all machines at once: calls ask, in a thread for each, for those that can be reached. Sets the rc and err of
 * each to its result, or to why there is no connection. */
void hosts_each(struct hosts *s, int (*ask)(struct hosts *s, struct hosts_host *h, void *arg, struct act_error *err),
                void *arg);
/* Warns, once, of the machines that hosts_each() could not ask. Returns the error of the first one if that was all of
 * them. */
int hosts_warn(struct hosts *s, struct act_error *err) ACT_NODISCARD;
/* Asks all machines for their facts, once or anew, and warns like that. */
int hosts_look(struct hosts *s, bool anew, struct act_error *err) ACT_NODISCARD;

/* ---- choose.c */

int hosts_limits(struct platform *p, struct platform_limits *out, struct act_error *err) ACT_NODISCARD;
int hosts_check(struct platform *p, const struct run_spec *spec, struct act_error *err) ACT_NODISCARD;
int hosts_settle(struct platform *p, struct run_spec *spec, struct act_error *err) ACT_NODISCARD;
/* Returns the i-th machine that a run may go to. */
struct hosts_host *hosts_in_turn(const struct hosts *s, size_t i);
/* Tells whether one node of such a run could be on this machine at all, and whether it would begin there at once. */
bool hosts_fits(const struct hosts *s, const struct hosts_host *h, const struct run_spec *spec);
bool hosts_has_room(const struct hosts_host *h, const struct run_spec *spec);
/* Chooses the machines for a run, or returns those that were chosen for it before; s owns them until the next call.
 * NULL: err says why there are none. */
const struct hosts_run *hosts_place(struct hosts *s, const struct run_spec *spec, struct act_error *err) ACT_NODISCARD;
/* Forgets the run that was placed or looked for last. */
void hosts_forget(struct hosts *s);

/* ---- ssh.c */

/* Sets *out to the machines that have a run, as far as they can be asked; valid until the next call. -ACT_NOT_FOUND:
 * none has. A cluster of one machine is not asked. */
int hosts_find_all(struct hosts *s, const char *id, const struct hosts_run **out, struct act_error *err) ACT_NODISCARD;
/* Sets *out to the first of them. */
int hosts_find(struct hosts *s, const char *id, struct hosts_host **out, struct act_error *err) ACT_NODISCARD;
/* Brings the package of a run to a machine that lacks it. */
int hosts_bring(struct hosts *s, struct hosts_host *h, const struct platform_submission *submission,
                struct act_error *err) ACT_NODISCARD;
/* Starts the run on the i-th of its machines, which is brought the package if it lacks it. */
int hosts_start(struct hosts *s, const struct hosts_run *run, size_t i, const struct platform_submission *submission,
                struct act_error *err) ACT_NODISCARD;

/* ---- group.c */

/* Chooses as many machines as the run has nodes. False: there are too few. */
bool hosts_choose_group(const struct hosts *s, const struct run_spec *spec, struct hosts_run *out);
/* Has the machines of a run look whether they reach one another; refuses when they do not. Sets run->machines. */
int hosts_meet(struct hosts_run *run, struct act_error *err) ACT_NODISCARD;
/* Returns what the i-th one is told of the others, a new reference; NULL: there are none. */
json_t *hosts_machines_of(const struct hosts_run *run, size_t i);
/* Starts the run on all of its machines, or on none. */
int hosts_start_all(struct hosts *s, const struct hosts_run *run, const struct platform_submission *submission,
                    struct act_error *err) ACT_NODISCARD;
/* ---- abort.c */

/* Does what the row's abort() does, on all machines of a run. */
void hosts_abort(struct platform *p, struct platform_end *ends, size_t n);
/* Ends a run that has just been started on its machines, as far as that can be. */
void hosts_abort_run(struct hosts *s, const struct hosts_run *run, const char *id);

/* ---- cluster.c */

int hosts_nodes(struct platform *p, const char *id, struct platform_nodes *out, struct act_error *err) ACT_NODISCARD;
int hosts_shell(struct platform *p, const char *id, const char *node, const struct act_strv *command,
                struct platform_shell *out, struct act_error *err) ACT_NODISCARD;
int hosts_agent(struct platform *p, const char *id, const char *node, char **out, struct act_error *err) ACT_NODISCARD;
int hosts_summary(struct platform *p, struct platform_summary *out, struct act_error *err) ACT_NODISCARD;
int hosts_jobs(struct platform *p, struct platform_jobs *out, struct act_error *err) ACT_NODISCARD;

/* ---- examine.c */

void hosts_examine(struct platform *p, struct platform_findings *findings);
void hosts_examine_place(struct platform *p, const char *name, const char *path, struct platform_findings *findings);
void hosts_examine_setup(struct platform *p, const struct platform_trial *trial, struct platform_findings *findings);

#endif
