/* flow_internal.h - for the files of flow/ only. */
#ifndef ACT_FLOW_FLOW_INTERNAL_H
#define ACT_FLOW_FLOW_INTERNAL_H

#include "flow/flow.h"
#include "http/http.h"

struct http *flow_http(struct flow *flow);
struct tokens *flow_tokens(struct flow *flow);

/* ---- ledger.c: where the runs are written down */

/* Opens the ledger, for what must be written down. A damaged one is kept aside, and a new one gets the runs that are there. */
int flow_ledger(struct flow *flow, struct ledger **out, struct act_error *err) ACT_NODISCARD;
/* Does something with the ledger that shows or notes what is known of runs. Where the file cannot be used, as on a full
 * disk, that is said once, and from then on it is done with a copy in memory. */
int flow_with_ledger(struct flow *flow, int (*what)(struct ledger *ledger, void *arg, struct act_error *err),
                     void *arg, struct act_error *err) ACT_NODISCARD;

/* Whether it can be read and written; nothing is. -ACT_NOT_FOUND: there is none yet, and it can be made. -ACT_FAIL: it is
 * damaged. */
int flow_look_at_ledger(struct act_error *err) ACT_NODISCARD;

/* The store of a mapped folder, or of the code. */
int flow_store(struct flow *flow, const struct config_folder *folder, struct store **out,
               struct act_error *err) ACT_NODISCARD;

/* Whether requests to the account carry the token of a login: it says so, or there is nothing else. */
bool flow_uses_login(const struct config_account *account);

/* Small objects, whole. Reading a missing one is -ACT_NOT_FOUND. */
int flow_get_text(struct store *store, const char *key, char **out, struct act_error *err) ACT_NODISCARD;
int flow_put_text(struct store *store, const char *key, const char *text,
                  struct act_error *err) ACT_NODISCARD;

/* The package that code_path stands for now. */
struct flow_package {
    char *store; /* store_name() */
    char *key;   /* flow_package_key(), or code_path itself when another tool wrote it */
    char *file;  /* a verified local copy */
    char sha256[ACT_SHA256_HEX];
    int64_t bytes;
};
void flow_package_release(struct flow_package *package);
/* -ACT_NOT_FOUND when nothing was ever packed. */
int flow_current_package(struct flow *flow, struct flow_package *out, struct act_error *err) ACT_NODISCARD;
/* A package by its key, verified against sha256. */
int flow_package_by_key(struct flow *flow, const char *key, const char *sha256, struct flow_package *out,
                        struct act_error *err) ACT_NODISCARD;
/* The folder of the packages in the store: code_path without .zip, or with .packages where it has no .zip. New string. */
char *flow_code_base(const struct config *config);
/* "<flow_code_base()>/<sha256>.zip" and ".../latest.json". New strings. */
char *flow_package_key(const struct flow *flow, const char *sha256);
char *flow_pointer_key(const struct flow *flow);
/* "<flow_code_base()>/" and what the format says. New string. */
char *flow_code_key(const struct flow *flow, const char *fmt, ...) ACT_PRINTF(2, 3);
/* Where local copies of packages are kept, and that of one of them. New strings. */
char *flow_packages_dir(void);
char *flow_package_cache(const char *sha256);

/* Whether the file is there and has the hash. */
bool flow_file_is(const char *path, const char *sha256);
bool flow_is_sha256(const char *text);

/* What latest.json of a store says (see init.c), NULL where there is none, or none that can be read. New value. */
int flow_read_pointer(struct flow *flow, struct store *store, json_t **out,
                      struct act_error *err) ACT_NODISCARD;

/* Stores the tree of root, which is that package of an init compiled, as one of its own and as code_path. */
int flow_init_compiled(struct flow *flow, const char *root, const struct flow_init *source,
                       struct flow_init *io, struct act_error *err) ACT_NODISCARD;
/* How the folders begin, among the packages, where packages are compiled. */
#define FLOW_COMPILES "compile-"

/* "docker" or "podman", whichever answers first; none: -ACT_CONFIG with the reason. */
int flow_find_docker(const char **out, struct act_error *err) ACT_NODISCARD;

/* The object at key, if there is one: 1 with its ETag and size, 0, or an error. */
int flow_exists(struct store *store, const char *key, char etag[STORE_ETAG], uint64_t *out_size,
                struct act_error *err) ACT_NODISCARD;

/* guard.c: why a file stays out of a package, as package_options.judge; and what users should know of the credentials that
 * were left out, or go in, one line for each. */
char *flow_guard_judge(const char *path, const void *data, size_t len);
void flow_guard_tell(const char *root, const struct package_list *list);

/* Whether a package is large enough for flow_upload_blocks(), and the store can do it. */
bool flow_has_blocks(const struct store *store, const struct package_summary *package);
/* Stores the package in the cache as flow_package_key() and, where that makes use of blocks of the package that is
 * there, as code_path before: *out_etag is its ETag then, else empty. */
int flow_upload_blocks(struct flow *flow, struct store *store, struct flow_init *io,
                       char out_etag[STORE_ETAG], struct act_error *err) ACT_NODISCARD;

/* Fills io->spec from the configuration and what the platform offers, and pins the package. */
int flow_describe_run(struct flow *flow, struct platform *platform, struct flow_submit *io,
                      struct flow_package *package, struct act_error *err) ACT_NODISCARD;

/* Whether a run would be refused for what the configuration says; nobody is asked. */
int flow_check_run(struct flow *flow, struct act_error *err) ACT_NODISCARD;

/* Refuses a command (at least one word) that cannot work with the code of the list: -ACT_USAGE or -ACT_NOT_FOUND. */
int flow_check_program(const struct config *config, const struct package_list *list,
                       const struct act_strv *argv, struct act_error *err) ACT_NODISCARD;

/* Once command and size of a run are known: where the command is a starter (run/starter.h), each node gets one, and a
 * note says so; a warning, where the user's words contradict the size. */
int flow_form_starter(struct platform *platform, struct run_spec *spec, struct act_error *err) ACT_NODISCARD;

/* A folder of a run that sees the project becomes the project's own of that name, and a note says so, when that holds
 * something and the store does not. from: its row. */
void flow_use_here(const struct config *config, const struct config_folder *from, struct run_folder *folder);
/* Whether there is a folder with something in it. */
bool flow_has_content(const char *path);
/* Adds to the error that something is not in the store where it is instead; local is its place in the project. */
void flow_explain_absence(struct flow *flow, const struct config_folder *folder, const char *local,
                          struct act_error *err);

/* ---- overlap.c */

/* Refuses (-ACT_USAGE) to delete what is at key in the store of a folder, where another row of the configuration lies there
 * or below; path is what the user typed for it. */
int flow_check_alone(const struct config *config, const struct config_folder *folder, const char *key,
                     const char *path, struct act_error *err) ACT_NODISCARD;
/* Warns of every folder in which another row lies. */
void flow_warn_overlaps(const struct config *config);

/* ---- moved.c */

/* Adds where a project that is no longer there has such a folder, and how this one takes it over. place is that of the
 * folder, which has nothing, in the built-in store. */
void flow_hint_moved(struct flow *flow, const struct config_folder *folder, const char *place,
                     struct act_error *err);

/* From the folder at path of a store to dir, and back; name is for messages. */
int flow_fetch_run_folder(struct flow *flow, struct store *store, const char *path, const char *name,
                          const char *dir, struct act_error *err) ACT_NODISCARD;
int flow_send_run_folder(struct flow *flow, struct store *store, const char *path, const char *name,
                         const char *dir, struct act_error *err) ACT_NODISCARD;

/* What the nodes of a run need to reach the stores of its folders (RUN_FILE_STORES), where a SAS takes the place of an
 * account key. *out NULL: nothing. New string, with secrets. */
int flow_run_stores(struct flow *flow, const struct run_spec *spec, char **out,
                    struct act_error *err) ACT_NODISCARD;

/* A command as a person would read it, with quotes where they are needed. New string. */
char *flow_command_line(const struct act_strv *argv);

/* What the ledger keeps of a run that nothing else is known of. The caller's to release. */
struct ledger_run flow_row_of(const struct run_spec *spec);
/* The id of the run whose name at the service is piece, or holds it, among the newest of the experiment: new string. Piece
 * itself where none does and it could be one's whole name; NULL: none. Several: -ACT_USAGE, which lists them. */
int flow_find_named(struct platform *platform, const char *piece, char **out_id,
                    struct act_error *err) ACT_NODISCARD;
/* Puts a run into the ledger; one that is there already stays as it is. */
int flow_remember(struct flow *flow, const struct run_spec *spec, struct act_error *err) ACT_NODISCARD;

/* What the nodes of a run fetch from the store, put there; package is a local file or NULL. Changes spec's package_key to
 * where it is there. */
struct flow_job_files {
    char *agent_key, *spec_key;
    /* With submit_with_url: how each of them is read without the store, secret. Else NULL, as package_url of a run
     * without code */
    char *agent_url, *spec_url, *package_url;
};
int flow_store_job(struct flow *flow, struct run_spec *spec, const char *package, struct flow_job_files *out,
                   struct act_error *err) ACT_NODISCARD;
void flow_job_files_release(struct flow_job_files *files);

/* ---- repeat.c */

/* Gives a run what the run has that it repeats, beyond command and size: on the same cluster image, environment, folders and
 * what prepares the code, unless this command itself says otherwise; elsewhere (moved) what no cluster file had said. The
 * image, and what else platforms read from there, goes into the configuration.
 * -ACT_CONFIG: a folder is no longer mapped, or the value of a secret is not known any more. */
void flow_repeat_config(struct config *config, const struct run_spec *old, bool moved);
int flow_repeat_settings(const struct config *config, const struct run_spec *old, bool moved,
                         struct run_spec *spec, struct act_error *err) ACT_NODISCARD;
/* NULL: it has none of that name. */
const struct run_folder *flow_find_folder(const struct run_spec *spec, const char *name);

/* ---- again.c */

/* A submission to a service while it is under way. */
struct flow_again {
    int fd; /* -1: none is kept */
    char *path;
};
/* The same submission may have been begun before, and nobody knows what became of it: then spec gets the id of that, and
 * this is true. */
bool flow_again_begin(struct flow *flow, struct run_spec *spec, struct flow_again *out);
void flow_again_end(struct flow_again *again, bool known);

/* Hands a finished specification to the platform and puts it into the ledger first, so that nothing that runs
 * is unknown. */
int flow_start_run(struct flow *flow, struct platform *platform, struct run_spec *spec, const char *package,
                   struct act_error *err) ACT_NODISCARD;

/* The platform of flow's configuration, and that of a run of the ledger. They are flow's and stay open. */
int flow_platform(struct flow *flow, struct platform **out, struct act_error *err) ACT_NODISCARD;
int flow_platform_of(struct flow *flow, const struct ledger_run *row, struct platform **out,
                     struct act_error *err) ACT_NODISCARD;
void flow_close_platforms(struct flow *flow);

/* ---- log_files.c */

/* Where the logs of a run are read. */
struct flow_log_source {
    struct platform *platform; /* NULL: it never had the run, so there are none */
    const char *id;            /* the run's */
    char *folder;              /* of the copies, when they are read instead of the platform; else NULL */
    char *root;                /* of the folder: see struct flow_logs */
    struct platform_logs copies;
    int64_t
        whole_ns; /* when all copies of a run that ended were here: what changed since is none; INT64_MAX: not known */
};
int flow_log_source_open(struct flow *flow, const struct flow_run *run, struct flow_log_source *out,
                         struct act_error *err) ACT_NODISCARD;
void flow_log_source_close(struct flow_log_source *source);
/* As platform_logs(), platform_read_log() and platform_fetch_logs(). */
int flow_log_source_list(const struct flow_log_source *source, struct platform_logs *out,
                         struct act_error *err) ACT_NODISCARD;
int flow_log_source_read(const struct flow_log_source *source, const char *name, uint64_t offset, void *data,
                         size_t len, size_t *out_got, struct act_error *err) ACT_NODISCARD;
int flow_log_source_fetch(const struct flow_log_source *source, const struct platform_fetch *fetch,
                          struct act_error *err) ACT_NODISCARD;
/* The copies are the logs that were listed. When the run has ended and nothing will be added to them, the platform is not asked
 * again, until flow_forget_complete(). */
int flow_log_source_complete(const struct flow_log_source *source, const struct flow_run *run,
                             const struct platform_logs *listed, const struct flow_logs *copies,
                             struct act_error *err) ACT_NODISCARD;
int flow_forget_complete(const struct flow_run *run, struct act_error *err) ACT_NODISCARD;
/* Warns of what config says and a run has no use for; here: it is a run of 'a local'; in_image: docker.image is used. */
void flow_mention_unused(const struct config *config, bool here, bool in_image);

/* Where the logs of a project's runs are fetched to: <project>/assets, or what AML_LOG_FOLDER names, below the project
 * unless it is absolute. New string. */
char *flow_log_folder(const char *project);
/* The folder in it of a run. New string. */
char *flow_assets(const struct flow_run *run);
/* At most the last max bytes of a log (NULL: nothing), from the beginning of a line; nothing when there is no such log. */
int flow_log_tail(const struct flow_log_source *source, const struct platform_log *log, size_t max,
                  struct act_buf *out, struct act_error *err) ACT_NODISCARD;
/* The last n lines that say something, cleaned; appended to out. */
void flow_last_lines(const struct act_buf *text, size_t n, struct act_strv *out);
/* The log of a rank among those whose names begin with prefix, whatever the platform calls it; NULL: there is none. */
const struct platform_log *flow_find_rank_log(const struct platform_logs *logs, const char *prefix, int rank);

/* ---- last_words.c */

/* Which rank of a failed run failed first, as the ranks' agents say it at the ends of their logs where a service keeps no
 * other record. */
struct flow_last_words {
    int rank; /* -1: nobody says it */
    int exit_status, signal;
    char node[65];
    int64_t unix_ns;
    char *reason; /* why the command could not do its work; NULL: it did. The caller's to free */
};
int flow_find_last_words(const struct flow_log_source *source, const struct flow_run *run,
                         const struct platform_logs *logs, const char *prefix, struct flow_last_words *out,
                         struct act_error *err) ACT_NODISCARD;
/* Completes the status of a run that has failed with what they say, and notes that they were asked. What cannot be read
 * changes nothing. */
void flow_add_last_words(struct flow *flow, const struct flow_run *run, struct run_status *status);

/* ---- error_lines.c */

/* Adds the lines of a log that hold "Error" to out->errors. {0} begins. */
struct flow_error_scan {
    struct act_buf line; /* what there is of one without an end */
    const char *log;
    int shown;
    struct flow_codes *out;
};
void flow_error_lines_begin(struct flow_error_scan *s, const char *log, struct flow_codes *out);
void flow_error_lines_feed(struct flow_error_scan *s, const char *text, size_t len);
void flow_error_lines_end(struct flow_error_scan *s);

/* ---- rank_lines.c */

/* What the ranks said last, of one attempt, until ended_unix_s (0: now). out (may be {0}) is replaced; release it in every
 * case. */
int flow_find_rank_lines(const struct flow_log_source *from, const struct flow_run *run,
                         const struct platform_logs *logs, const char *prefix, int64_t ended_unix_s,
                         struct flow_rank_lines *out, struct act_error *err) ACT_NODISCARD;
void flow_rank_lines_release(struct flow_rank_lines *lines);

/* The rules for the logs of a run. */
int flow_rules(const struct flow_run *run, struct diagnose **out, struct act_error *err) ACT_NODISCARD;

/* Fresh status of one run, also into the ledger when it changed. */
int flow_refresh(struct flow *flow, struct platform *platform, struct flow_run *run,
                 struct act_error *err) ACT_NODISCARD;

/* Whether a platform that failed so may answer later, and may have done what it was asked for. */
bool flow_may_pass(int rc);

/* Watching a run until it ends; {0} begins. */
struct flow_watch {
    int64_t begun_ms;        /* of the first look */
    int64_t due_ms, look_ms; /* when the state is asked for next (monotonic), and how long that was put off */
    int64_t pause_ms;        /* between two rounds */
    int64_t trial_ms;        /* the same while the platform cannot be asked; 0: it can */
    int64_t round_ms;        /* what a round takes, where it is many requests to a service; else 0 */
};
/* flow_refresh() when it is time for it, else nothing. */
int flow_watch_look(struct flow_watch *w, struct flow *flow, struct platform *platform, struct flow_run *run,
                    struct act_error *err) ACT_NODISCARD;
/* Takes what came of a round. A failure that passes is told to the user, once, and becomes 0. */
int flow_watch_took(struct flow_watch *w, int rc, const struct act_error *err) ACT_NODISCARD;
/* Waits until the next round, at most until until_ms (0: no limit); moved: there was something new in this one. */
void flow_watch_pause(struct flow_watch *w, bool moved, int64_t until_ms);

#endif
