/* site_internal.h - what the files of the site share. Every public function is here_...() on this machine and
 * wire_...() behind ssh, with the same meaning. */
#ifndef ACT_SITE_SITE_INTERNAL_H
#define ACT_SITE_SITE_INTERNAL_H

#include "site/site.h"

struct wire;

struct site {
    char *root;
    char *login;       /* NULL: this machine */
    struct wire *wire; /* NULL: this machine */
};

/* What site_run() and the frames take when the caller does not say. */
enum { SITE_RUN_TIMEOUT_S = 60, SITE_RUN_MAX_BYTES = 64 << 20, SITE_TEXT_MAX_BYTES = 16 << 20 };

/* The programs that are brought to a site, into bin/<16 hex of the agent's SHA-256>/. */
#define SITE_AGENT "act-node"
#define SITE_ACT   "act"
enum { SITE_AGENT_HEX = 16 };
char *site_agent_dir(const struct site *site, const char *sha256); /* new string */

/* here.c: an absolute root for what the configuration says. New string. */
char *here_root(const char *root);
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
int here_files(struct site *site, const char *id, const char *const *folders, size_t n_folders,
               struct site_files *out, struct act_error *err) ACT_NODISCARD;
int here_states(struct site *site, const char *const *ids, size_t n, struct site_state *out,
                struct act_error *err) ACT_NODISCARD;
void site_files_add(struct site_files *files, const char *name, uint64_t size);

/* here_create.c. out_lock_fd: as site_create_locked_run(), or NULL. */
int here_create_run(struct site *site, const struct run_spec *spec, const char *package, int *out_lock_fd,
                    bool *out_existed, struct act_error *err) ACT_NODISCARD;
int here_remove_run(struct site *site, const char *id, struct act_error *err) ACT_NODISCARD;
/* Where a package is kept. New string. */
char *here_package_path(const struct site *site, const char *sha256);
int here_agent(struct site *site, char **out, struct act_error *err) ACT_NODISCARD;

#endif
