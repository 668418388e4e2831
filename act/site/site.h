/* site.h - the place where the folders of runs are and programs work on them: this machine, or a login node behind one
 * OpenSSH connection.
 *
 * Here every function works on the files themselves. Behind ssh the same functions travel as frames to "act-node
 * serve" on the other side, which calls them there: so both ways do the same, and a call costs one round trip. Below
 * <root>:
 *
 *   bin/<16 hex>/act-node, act   the agent of this version, by its content
 *   packages/<sha256>.zip        packages that were brought here
 *   runs/<run id>/               see run/run.h
 *   new/                         what is being filled, or removed
 *
 * For one thread at a time. Behind ssh a broken connection is -ACT_TEMPORARY: the request may or may not have been
 * carried out; the next call connects again.
 */
#ifndef ACT_SITE_SITE_H
#define ACT_SITE_SITE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/text.h"
#include "run/run.h"

struct site;

struct site_options {
    const char *login; /* "user@host" for ssh; NULL: this machine */
    const char *root;  /* "~/" is the home folder there; NULL: "~/.act" */
    bool only_look;    /* bring nothing there: without an agent all but site_run() is -ACT_NOT_FOUND */
    bool never_asks;   /* ssh does not ask on the terminal: what it would ask for is -ACT_DENIED */
    const char *store; /* the site is opened for site_become() of this folder and nothing else; NULL: for anything */
    const char *store_first; /* what the program is told that serves that folder; NULL: nothing */
};

/* Connects if there is a login. The ssh program is "ssh", or the words of $ACT_SSH. Any failure (host unreachable,
 * key changed, not allowed) is one message with ssh's own words. */
int site_open(const struct site_options *options, struct site **out, struct act_error *err) ACT_NODISCARD;
void site_free(struct site *site);
/* Checks that ssh may take the login: "user@host", or a name of ~/.ssh/config. -ACT_CONFIG says why it does not. */
int site_check_login(const char *login, struct act_error *err) ACT_NODISCARD;
/* Keeps ssh from asking on the terminal, which shows something else: site_open() fails instead. Call it before other
 * threads use sites. */
void site_never_ask(void);
/* Tells whether ssh could ask now. */
bool site_may_ask(void);
/* Gives each connection a login of its own, which no other command uses. Call it before other threads use sites. */
void site_never_share(void);
/* Returns the newest version of ACT, with the login node that has it, which a connection has seen and which is newer
 * than this one: "0.2.0 on me@lab", a new string; NULL: there is none. Connects to nothing. */
char *site_newer(void);
/* Returns in words whether the connection is shared with other commands, and how, a new string; NULL: this machine. */
char *site_sharing_text(const struct site *site);

/* Returns the root, an absolute path on the site that lives as long as site. */
const char *site_root(const struct site *site);
/* Tells whether each question is a round trip to another machine. */
bool site_is_far(const struct site *site);
/* Tells whether both are one root of one login. */
bool site_is_same(const struct site *a, const struct site *b);
/* Returns <root>/runs/<id>, absolute, a new string. */
char *site_run_dir(const struct site *site, const char *id);

/* Asking ahead, where each question is a round trip to another machine. After site_ahead() each call only sends its
 * request, and is -ACT_INTERRUPTED; after site_ahead_end() the same call with the same arguments takes the response,
 * so that what was asked ahead costs one round trip for all. Of what needs more than one request the first one is sent
 * ahead. Nothing is while 64 wait to be taken, nor reads. */

/* Begins to ask ahead, until as many calls of site_ahead_end(). False: each call is carried out here, and there is no
 * ahead to end. */
bool site_ahead(struct site *site);
void site_ahead_end(struct site *site);
/* Drops what was asked ahead and not taken, because it may not be true later. What is asked ahead again is new. */
void site_ahead_drop(struct site *site);

/* Calls act for 0 to n - 1, until it fails, and returns what it returned last. Where a question is a round trip, act is
 * called for some of the next ones to ask ahead, before it is for the first: so it changes nothing but what its calls
 * to the site have done. */
int site_do_all(struct site *site, size_t n, int (*act)(void *arg, size_t i, struct act_error *err), void *arg,
                struct act_error *err) ACT_NODISCARD;
/* Tells whether there is no agent yet, and so nothing but site_run(). */
bool site_is_bare(const struct site *site);

/* Returns where the agent of this version is on the site, a new string, and brings it there if necessary. */
int site_agent(struct site *site, char **out, struct act_error *err) ACT_NODISCARD;

/* Returns the same path, and in *out_there whether the agent is there, without bringing it. */
int site_find_agent(struct site *site, char **out, bool *out_there, struct act_error *err) ACT_NODISCARD;

/* Sets *out to the path of the program "act" of this version on the site, a new string. site_agent() brings it. */
int site_program(struct site *site, char **out, struct act_error *err) ACT_NODISCARD;

/* Behind ssh: has "act" of this version, which is brought, take the place of the agent and serve a folder as a store:
 * an absolute one, or one below the root, which is made. A site that was opened for it has done so where "act" was
 * there. *out_fd is this end of the connection, to be read and written; it is the caller's, and lasts as long as the
 * site, which is for nothing else any more. What the program has said already is added to out_said. *out_told: it was
 * told store_first. */
int site_become(struct site *site, const char *folder, int *out_fd, struct act_buf *out_said, bool *out_told,
                struct act_error *err) ACT_NODISCARD;
/* Adds to the error of a connection that was lost where it led, and what ssh said. Returns -err->code. */
int site_explain_loss(const struct site *site, struct act_error *err);

/* Copies a package from path on this machine to packages/<sha256>.zip on the site. */
int site_bring_package(struct site *site, const char *path, const char *sha256, struct act_error *err) ACT_NODISCARD;

/* A package on this machine. */
struct site_package {
    const char *path, *sha256;
};
/* Runs a program (looked up in PATH) on the site, with TZ=UTC and what Slurm's tools may see of the environment there;
 * sbatch with the time zone of its caller and what a job may see (proc/environment.h). */
struct site_command {
    const char *const *argv; /* ends with NULL */
    const char *input;       /* of input_len bytes; NULL: none */
    size_t input_len;
    const char *cwd;                    /* NULL: the root, or "/" while there is none */
    int timeout_s;                      /* 0: 60 */
    size_t max_bytes;                   /* of each stream; more is an error; 0: 64 MiB */
    bool begins_runs;                   /* the program sees what a run there may see, with the time zone of the site */
    const struct site_package *package; /* as packages/<sha256>.zip it is there before the program runs; NULL: none */
};
struct site_result {
    int status; /* exit status, or 128 + signal */
    char *out, *err;
    size_t out_len, err_len;
};
/* Runs a program. Returns 0 even if that fails; a missing program is -ACT_NOT_FOUND, a timeout -ACT_TIMEOUT. Release
 * result in every case. */
int site_run(struct site *site, const struct site_command *command, struct site_result *result,
             struct act_error *err) ACT_NODISCARD;
void site_result_release(struct site_result *result);

/* A small file, by its name in a folder. */
struct site_text {
    const char *name, *text;
};
/* A run that has no folder yet. */
struct site_new {
    const struct run_spec *spec;
    const char *package; /* a local file; NULL: none */
    const struct site_text *files;
    size_t n_files;
};
/* Makes the folder of a run, complete or not at all: run.json, secrets.json, status.json (Queued), package.zip,
 * system_logs/ and the files (0600). *out_existed: there was one already, and it is as it was. */
int site_create_run(struct site *site, const struct site_new *run, bool *out_existed,
                    struct act_error *err) ACT_NODISCARD;

/* Does the same on this machine alone, and makes and locks supervisor.lock before anybody can see the folder.
 * *out_lock_fd, which the caller closes, is set only if there was no folder. */
int site_create_locked_run(struct site *site, const struct run_spec *spec, const char *package, int *out_lock_fd,
                           bool *out_existed, struct act_error *err) ACT_NODISCARD;
/* Removes the folder again, its secrets first, and what a submission or a removal that was killed has left of it. A
 * missing folder is success. */
int site_remove_run(struct site *site, const char *id, struct act_error *err) ACT_NODISCARD;

/* Removes what processes of this user that were killed have left below new/; so does each site_create_run(). What
 * still lives on the site's machine is not touched, nor what came from another one in the last hour. dry_run: it is
 * only measured. */
struct site_left {
    uint64_t bytes;
    size_t n;
};
int site_clear(struct site *site, bool dry_run, struct site_left *out, struct act_error *err) ACT_NODISCARD;

/* Files of a run's folder; name is relative to it and safe, no link is followed on the way. A missing one is
 * -ACT_NOT_FOUND. */
int site_read(struct site *site, const char *id, const char *name, uint64_t offset, void *data, size_t len,
              size_t *out_got, struct act_error *err) ACT_NODISCARD;

/* Bytes of a file of a run: len of them from offset, into data. */
struct site_part {
    const char *name;
    uint64_t offset;
    void *data;
    size_t len;
    /* out */
    size_t got; /* fewer only at the end of the file */
    int rc;     /* as that of site_read(), with its error */
    struct act_error error;
};
/* Reads parts of files of one run, all of them in one round trip. Each has a result of its own. */
void site_read_parts(struct site *site, const char *id, struct site_part *parts, size_t n);

/* Reads a small file whole, as text. New string. */
int site_read_text(struct site *site, const char *id, const char *name, char **out,
                   struct act_error *err) ACT_NODISCARD;
/* Writes a small file (0600) atomically. out_existed NULL: replaces it; else only creates it, and sets *out_existed
 * if it existed. */
int site_write(struct site *site, const char *id, const char *name, const char *text, bool *out_existed,
               struct act_error *err) ACT_NODISCARD;

/* The regular files below some folders of a run, at any depth, sorted by name. */
struct site_file {
    char *name; /* relative to the run's folder */
    uint64_t size;
    int64_t idle_s; /* since it last changed, by the site's clock; -1: not known */
    char *end;      /* the last end_len of its size bytes; NULL: they were not brought */
    size_t end_len;
};
struct site_files {
    struct site_file *v;
    size_t n;
    uint64_t told; /* the number of what the other side has told; 0: it did not count */
};
/* Lists them. Of those in the first n_with_ends folders, the ends come with the list where each further question would
 * be a round trip: at most 64 KiB of each and 1 MiB of all, which they share. */
int site_files(struct site *site, const char *id, const char *const *folders, size_t n_folders, size_t n_with_ends,
               struct site_files *out, struct act_error *err) ACT_NODISCARD;
void site_files_release(struct site_files *files);

/* The files of a run as they grow, where each question is a round trip to another machine: that tells by itself what is
 * new, and nothing more before it is asked to. */
struct site_news;
/* Prepares that for files below folders, as site_files() has them. */
struct site_news *site_news_new(const char *id, const char *const *folders, size_t n_folders);
/* Before or after the site is freed; news may be NULL. */
void site_news_free(struct site_news *news);
/* Sets *out, which belongs to news until the next call, to the list as it is known, and asks to be told what is new.
 * By what files grew since the call before is there as their ends, up to 1 MiB; the first time the ends of files in the
 * first n_with_ends folders, as of site_files(). */
int site_news_look(struct site *site, struct site_news *news, size_t n_with_ends, const struct site_files **out,
                   struct act_error *err) ACT_NODISCARD;
/* Tells whether something new has come. If not, *out_fd can be read as soon as it has; -1: nobody tells. */
bool site_news_have_come(struct site *site, const struct site_news *news, int *out_fd);

/* status.json and job.json of n runs in one call. A run that is not there: RUN_UNKNOWN; job NULL: none yet. */
struct site_state {
    struct run_status status;
    bool there;
    char *job;
};
int site_states(struct site *site, const char *const *ids, size_t n, struct site_state *out,
                struct act_error *err) ACT_NODISCARD;
void site_states_release(struct site_state *states, size_t n);

/* Lists the ids of all runs there, sorted. */
int site_list(struct site *site, struct act_strv *out_ids, struct act_error *err) ACT_NODISCARD;

/* Makes the command that runs argv on the site, with a terminal if there is one: argv itself here, ssh elsewhere. */
void site_shell_words(const struct site *site, const struct act_strv *argv, struct act_strv *out);

/* Does the same for a machine that is not a site: login is "user@host" or "host", port 0 is ssh's own. */
void site_ssh_words(const char *login, int port, const struct act_strv *argv, struct act_strv *out);

/* Is the other side, which act-node calls: says where the root is, which may begin with "~", and answers requests from
 * in_fd on out_fd until its end. */
int site_serve(const char *root, int in_fd, int out_fd);

#endif
