/* site_internal.h - what the files of the site share. Every public function is here_...() on this machine and
 * wire_...() behind ssh, with the same meaning. */
#ifndef ACT_SITE_SITE_INTERNAL_H
#define ACT_SITE_SITE_INTERNAL_H

#include "proc/proc.h"
#include "site/site.h"

struct wire;
struct told_list;

struct site {
    char *root;
    char *login;            /* NULL: this machine */
    struct wire *wire;      /* NULL: this machine */
    struct told_list *told; /* of the other side, see told.h; NULL: nothing */
};

enum {
    SITE_RUN_TIMEOUT_S = 60, /* when the caller of site_run() does not say */
    SITE_RUN_MAX_BYTES = 64 << 20,
    SITE_TEXT_MAX_BYTES = 16 << 20,    /* of a file that is read whole */
    SITE_READ_MAX_BYTES = 4 << 20,     /* of one response to a request to read */
    SITE_ENDS_MAX_BYTES = 1 << 20,     /* of the ends that come with a list */
    SITE_END_MAX_BYTES = 64 << 10,     /* of one of them */
    SITE_END_MIN_BYTES = 1 << 10,      /* where so much of each is too much, there are none */
    SITE_REQUEST_MAX_BYTES = 64 << 20, /* of what goes with a request */
    SITE_AHEAD_MOST = 64 /* requests: their responses fit into memory, as each has at most SITE_ENDS_MAX_BYTES */
};

/* The other side begins with this, wherever that is in what login shells print before; then "ready", SITE_STORE, or
 * "needs <system> <machine>", and the end of the line. After "ready" it is the first to speak. The same as a word in a
 * script, which is not what is looked for when somebody prints the script. */
#define SITE_BANNER      "act-site/1 "
#define SITE_BANNER_WORD "act-\"\"site/1 "

/* The agent has become the store that was wanted. */
#define SITE_STORE "store"

/* The programs that are brought to a site, into bin/<16 hex of the agent's SHA-256>/. */
#define SITE_AGENT "act-node"
#define SITE_ACT   "act"
enum { SITE_AGENT_HEX = 16 };
char *site_agent_dir(const struct site *site, const char *sha256); /* new string */

/* here.c: an absolute root for what the configuration says. New string. */
char *here_root(const char *root);
/* Returns what a program has left, which moves to the result. */
struct site_result here_result_of(const struct proc_result *got);
int here_run(struct site *site, const struct site_command *command, struct site_result *result,
             struct act_error *err) ACT_NODISCARD;
int here_list(struct site *site, struct act_strv *out_ids, struct act_error *err) ACT_NODISCARD;

/* here_files.c */
int here_read(struct site *site, const char *id, const char *name, uint64_t offset, void *data, size_t len,
              size_t *out_got, struct act_error *err) ACT_NODISCARD;
int here_read_text(struct site *site, const char *id, const char *name, char **out,
                   struct act_error *err) ACT_NODISCARD;
int here_write(struct site *site, const char *id, const char *name, const char *text, bool *out_existed,
               struct act_error *err) ACT_NODISCARD;
int here_files(struct site *site, const char *id, const char *const *folders, size_t n_folders, struct site_files *out,
               struct act_error *err) ACT_NODISCARD;
int here_states(struct site *site, const char *const *ids, size_t n, struct site_state *out,
                struct act_error *err) ACT_NODISCARD;
void site_files_add(struct site_files *files, const char *name, uint64_t size, int64_t idle_s);

/* here_create.c. out_lock_fd: as site_create_locked_run(), or NULL. */
int here_create_run(struct site *site, const struct site_new *run, int *out_lock_fd, bool *out_existed,
                    struct act_error *err) ACT_NODISCARD;
char *here_package_path(const struct site *site, const char *sha256); /* where a package is kept; new string */
int here_keep_package(struct site *site, const char *package, const char *sha256, struct act_error *err) ACT_NODISCARD;
int here_agent(struct site *site, char **out, struct act_error *err) ACT_NODISCARD;
int here_find_agent(struct site *site, char **out, bool *out_there, struct act_error *err) ACT_NODISCARD;
int here_size_of(const char *path, int64_t *out, struct act_error *err) ACT_NODISCARD;
/* Tells whether path is a file of that size. */
bool here_is_there(const char *path, int64_t size);

/* here_new.c: what is being made below new/, on the same file system, to become name. */
struct here_filling {
    char *path;  /* nothing is there yet */
    int lock_fd; /* while it is open, nobody takes that for left over; -1: no locks there */
};
/* Makes the folder new/. Release *out in every case, here_publish() does it, too. */
int here_fill(const struct site *site, const char *name, struct here_filling *out, struct act_error *err) ACT_NODISCARD;
void here_filling_release(struct here_filling *f);
/* Renames what was filled to path, whose folder it makes, if rc is 0; else removes it. Returns rc, or its own error. */
int here_publish(struct here_filling *f, const char *path, int rc, struct act_error *err) ACT_NODISCARD;
int here_remove_run(struct site *site, const char *id, struct act_error *err) ACT_NODISCARD;
/* out: how much that is; NULL: nobody wants to know. */
int here_clear(struct site *site, bool dry_run, struct site_left *out, struct act_error *err) ACT_NODISCARD;

/* wire.c */
int wire_open(const struct site_options *options, struct site *site, struct act_error *err) ACT_NODISCARD;
/* Does the same over an existing connection to site_serve(). */
int wire_open_fds(int in_fd, int out_fd, struct site *site, struct act_error *err) ACT_NODISCARD;
void wire_free(struct wire *wire);
bool wire_needs_login_shell(const struct wire *wire);
int wire_agent(struct site *site, char **out, struct act_error *err) ACT_NODISCARD;
int wire_program(struct site *site, char **out, struct act_error *err) ACT_NODISCARD;
int wire_become(struct site *site, const char *folder, int *out_fd, struct act_buf *out_said,
                struct act_error *err) ACT_NODISCARD;
int wire_bring_package(struct site *site, const char *path, const char *sha256, struct act_error *err) ACT_NODISCARD;
int wire_find_agent(struct site *site, char **out, bool *out_there, struct act_error *err) ACT_NODISCARD;
int wire_run(struct site *site, const struct site_command *command, struct site_result *result,
             struct act_error *err) ACT_NODISCARD;
int wire_create_run(struct site *site, const struct site_new *run, bool *out_existed,
                    struct act_error *err) ACT_NODISCARD;
int wire_remove_run(struct site *site, const char *id, struct act_error *err) ACT_NODISCARD;
int wire_clear(struct site *site, bool dry_run, struct site_left *out, struct act_error *err) ACT_NODISCARD;
void wire_read_parts(struct site *site, const char *id, struct site_part *parts, size_t n);
int wire_read_text(struct site *site, const char *id, const char *name, char **out,
                   struct act_error *err) ACT_NODISCARD;
int wire_write(struct site *site, const char *id, const char *name, const char *text, bool *out_existed,
               struct act_error *err) ACT_NODISCARD;
int wire_files(struct site *site, const char *id, const char *const *folders, size_t n_folders, size_t n_with_ends,
               struct site_files *out, struct act_error *err) ACT_NODISCARD;
int wire_states(struct site *site, const char *const *ids, size_t n, struct site_state *out,
                struct act_error *err) ACT_NODISCARD;
int wire_list(struct site *site, struct act_strv *out_ids, struct act_error *err) ACT_NODISCARD;

#endif
