/* platform_internal.h - what the platforms share among themselves. */
#ifndef ACT_PLATFORM_PLATFORM_INTERNAL_H
#define ACT_PLATFORM_PLATFORM_INTERNAL_H

#include "platform/platform.h"
#include "site/site.h"

/* First member of every platform's struct. */
struct platform {
    const struct platform_row *row;
    struct services *services; /* set by platform_open() */
};

/* table.c: all platforms, ending with NULL. In a file by itself so that tests can have their own table. */
extern const struct platform_row *const platform_table[];
extern const struct platform_row platform_local, platform_slurm, platform_ssh, platform_azureml[3], platform_kubernetes;
extern const struct platform_setup_ops local_setup, slurm_setup, ssh_setup, azureml_setup, kubernetes_setup;

/* Refuses to mount shares of Azure Files, as only Azure Machine Learning does. where: "this machine". */
int platform_check_shares(const struct run_spec *spec, const char *where, struct act_error *err) ACT_NODISCARD;
/* Refuses folders to be mounted if nothing on this machine can. */
int platform_check_mounts_here(const struct run_spec *spec, struct act_error *err) ACT_NODISCARD;

/* ---- clusters.c: what the platforms with clusters share; noun: what those are called */

struct arm;
struct arm_call;
struct platform_follow;
struct platform_scale;
/* -ACT_USAGE if the least is more than the most. */
int platform_check_scale(const char *noun, const char *name, const struct platform_scale *scale,
                         struct act_error *err) ACT_NODISCARD;
/* The error that an object to be made exists already. */
int platform_is_there(const char *noun, const char *name, const char *state, struct act_error *err);
/* *out NULL: there is no such file. */
int platform_read_login_file(const char *file, char **out, struct act_error *err) ACT_NODISCARD;

/* The longest-running first. */
void platform_jobs_sort(struct platform_jobs *jobs);

/* Keeps value in file, in the user's cache, whose folder it makes. A failure is only traced, as by component: whoever
 * needs the value asks for it again. */
void platform_remember(const char *component, const char *file, const json_t *value);

struct fields;
/* platform.c: the members of a node, as JSON has them. */
extern const struct fields platform_node_fields;

/* ---- try_setup.c */

/* Tries on a site what a setup asks for besides its lines. *out: what it found, or why it failed; a new string. */
bool platform_try_setup(struct site *site, const struct platform_trial *trial, char **out);
/* Adds what came of it; where: "the login node". */
void platform_judge_setup(const char *where, bool works, const char *said, const struct platform_trial *trial,
                          struct platform_findings *findings);

/* ---- look_at_place.c */

#define PLATFORM_PLACE_SEEN "seen"
/* Tells whether a text, which may be NULL, has this line: login shells and prologs may print others before it. */
bool platform_has_line(const char *text, const char *line);
/* The words of a command that prints how a node sees the folder at path, in a line: PLATFORM_PLACE_SEEN, "missing" or
 * "unreadable". */
void platform_place_words(const char *path, struct act_strv *out);
/* Returns what these words print on a site, a new string; NULL: it cannot be asked. */
char *platform_look_at_place(struct site *site, const char *path);
/* Adds what was printed of the place of a mapped folder; where: "on 'gpu1'". */
void platform_judge_place(const char *where, const char *name, const char *path, const char *said,
                          struct platform_findings *findings);

/* ---- keep.c */

/* Opens the site of one machine; *out NULL: it has none. */
int platform_keep_open_site(struct platform *p, struct site **out, struct act_error *err) ACT_NODISCARD;
/* Runs a script on the site, in its root, which prints a sum and a count, "KIB N". */
int platform_keep_sum(struct site *site, const char *script, const char *const *words, struct platform_kept *out,
                      struct act_error *err) ACT_NODISCARD;

/* ---- environments.c */

/* Has the login node of the site make the environment of a run that is about to be submitted, and waits for it; notes
 * say how far it is. *out_key: of the environment, a new string; NULL: the project needs none. */
int platform_make_ahead(struct site *site, const struct run_spec *spec, const char *package, char **out_key,
                        struct act_error *err) ACT_NODISCARD;

/* ---- at_once.c */

/* Calls ask with 0 to n - 1, each in a thread of its own, and returns when all have returned. */
void platform_at_once(size_t n, void (*ask)(void *arg, size_t i), void *arg);

/* For platforms whose runs are folders of a site, as the operations of platform.h. */
struct store *platform_site_open_logs(struct platform *p, const char *id, bool ended);
/* Does what the row's expect_logs() does, of such a platform. */
int platform_site_expect_logs(struct platform *p, const char *id, bool with_ends, struct act_error *err) ACT_NODISCARD;
/* Opens the same store, on the sites that site() finds, as of struct store_site_options. */
struct store *platform_site_logs(struct platform *p,
                                 int (*site)(void *arg, size_t i, struct site **out, struct act_error *err), void *arg,
                                 const char *id, bool ended);
int platform_site_spec(struct site *site, const char *id, struct run_spec *out, struct act_error *err) ACT_NODISCARD;

#endif
