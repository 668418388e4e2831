/* data.h - mapped folders: transferred, compared, read, and those of runs. */
#ifndef ACT_FLOW_DATA_DATA_H
#define ACT_FLOW_DATA_DATA_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "flow/flow.h"
#include "transfer/transfer.h"

struct flow_route; /* opaque */
struct store;
struct store_entry;

/* Checks that path lies in a mapped folder: 0, or the error that everything below would give before it opens a store.
 */
int flow_check_path(struct flow *flow, const char *path, struct act_error *err) ACT_NODISCARD;
/* Checks the same, for a path that has a file or folder on this machine as its other side. */
int flow_check_local_path(struct flow *flow, const char *path, struct act_error *err) ACT_NODISCARD;
/* Returns the mapped folder and the key of a path as one text, a new string: of a path that lies in another one it is
 * that of the other one, a slash, and more. NULL: the path is in no mapped folder. */
char *flow_path_place(struct flow *flow, const char *path);

struct flow_data {
    struct transfer_options options;
    bool follow;                    /* follow links of the local folder that lead out of it */
    struct transfer_report report;  /* out */
    const struct flow_route *route; /* for flow_step_path(), in the callbacks of the options */
};
/* Uploads from the local folder to this cluster's store; with from, from that cluster's store instead. Sizes that the
 * store does not support, a destination that is or lies in the source, a file in place of a folder, and with
 * delete_extra another configured folder below the path: -ACT_USAGE or -ACT_FAIL before anything is transferred. */
int flow_upload(struct flow *flow, struct flow *from, const char *path, struct flow_data *io,
                struct act_error *err) ACT_NODISCARD;
/* Downloads from this cluster's store to the local folder, and refuses the same. */
int flow_download(struct flow *flow, const char *path, struct flow_data *io, struct act_error *err) ACT_NODISCARD;
/* Returns, for options.plan, the path of a step as the user would type it, "data/voc/a", as a new string. */
char *flow_step_path(const struct flow_data *io, const struct transfer_step *step);

/* Compares the local path, or with from the other cluster's store, with this cluster's store, like
 * transfer_verify(). */
struct flow_verify {
    struct transfer_options options;
    bool deep;
    bool follow; /* as in flow_data */
    void (*each)(void *arg, enum transfer_difference what, const char *rel, const struct store_entry *from,
                 const struct store_entry *to); /* arg is that of the options */
    struct transfer_report report;              /* out */
    const struct flow_route *route;             /* for flow_verify_path(), in each() */
};
int flow_verify(struct flow *flow, struct flow *from, const char *path, struct flow_verify *io,
                struct act_error *err) ACT_NODISCARD;
/* Returns, for each(), rel as the user would type it, as a new string. */
char *flow_verify_path(const struct flow_verify *io, const char *rel);

/* A mapped path, resolved in this cluster's store, or a path among the logs of a run. Keep store open as long as the
 * path is used. */
struct flow_path {
    struct store *store;
    struct transfer_path path;
    void *source; /* of logs, which store is a part of; else NULL */
    void (*close_source)(void *source);
};
/* A whole mapped folder of which the store has nothing is an empty folder, which is said. */
int flow_open_path(struct flow *flow, const char *path, struct flow_path *out, struct act_error *err) ACT_NODISCARD;

/* Opens a mapped path without checking that anything exists there, for leftovers of interrupted transfers: in the
 * store, or here in the local folder (-ACT_NOT_FOUND: none). */
enum flow_place { FLOW_STORE, FLOW_HERE, FLOW_PLACES };
int flow_open_place(struct flow *flow, const char *path, enum flow_place place, struct flow_path *out,
                    struct act_error *err) ACT_NODISCARD;
void flow_path_release(struct flow_path *path);
/* Refuses to remove a folder if another configured folder lies in it in the store: -ACT_USAGE. */
int flow_may_remove(struct flow *flow, const char *path, struct act_error *err) ACT_NODISCARD;

/* A URL from which the file can be read. */
struct flow_url {
    int64_t life_s; /* 0: a day. -ACT_USAGE if it cannot apply, as to a shared sas_token */
    bool share_sas; /* the account's whole sas_token may be in the URL if none can be signed for the file */
    char *url;      /* out: a new string, secret */
};
int flow_url(struct flow *flow, const char *path, struct flow_url *io, struct act_error *err) ACT_NODISCARD;
/* Returns the last attempt of which nodes have sent logs below path in a store; 0: of none. */
int flow_last_sent(struct store *store, const char *path, struct act_error *err) ACT_NODISCARD;
/* Copies a mapped folder of a run between its store and dir on this machine, for the agent, when the folder is not
 * mounted. Of the logs (RUN_STORE_LOGS) only the number of flow_last_sent() comes, as
 * the file RUN_FILE_SENT. Access to the stores comes from the run's folder if that has it, otherwise from the project
 * the run was submitted from. */
enum flow_move {
    FLOW_MOVE_DOWNLOAD,
    FLOW_MOVE_UPLOAD,
    FLOW_MOVE_CHANGES, /* to the store, where what is newer there stays */
    FLOW_MOVES
};
const char *flow_move_name(enum flow_move move); /* "download", ... */
int flow_move_run_folder(const char *run_dir, const char *folder, const char *dir, enum flow_move move,
                         struct act_error *err) ACT_NODISCARD;
/* Mounts a mapped path at a folder, which must be empty, until SIGINT or SIGTERM; returns when all that was written is
 * in the store. A folder of mode ro_mount is read-only in any case. -ACT_USAGE: nothing can be mounted at that place.
 * -ACT_NOT_FOUND: nothing here mounts. */
int flow_mount(struct flow *flow, const char *path, const char *at, bool read_only,
               struct act_error *err) ACT_NODISCARD;
/* Mounts a mapped folder of a run below node_dir, the private folder of a node (node/place.h), for the agent. Returns
 * when it is mounted; a process of its own, RUN_MOUNT_KEEPER, keeps it so until it is told to end by SIGTERM, or no
 * rank of the node is left. It has ended when its lock is free, and has then written RUN_FILE_MOUNT_END. */
int flow_mount_run_folder(const char *run_dir, const char *folder, const char *node_dir,
                          struct act_error *err) ACT_NODISCARD;

#endif
