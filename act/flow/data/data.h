/* data.h - mapped folders: moved, compared, read, and those of runs. */
#ifndef ACT_FLOW_DATA_DATA_H
#define ACT_FLOW_DATA_DATA_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "flow/flow.h"
#include "store/store.h"
#include "transfer/transfer.h"

struct flow_data {
    struct transfer_options options;
    bool follow;                   /* links of the local folder that lead out of it */
    struct transfer_report report; /* out */
    /* internal: what is moved, as the user named it, and where that is on both sides */
    const char *path, *from_path, *to_path;
};
/* Local folder to this cluster's store; from another cluster's store when from is not NULL. Sizes that the store
 * cannot have, a destination that is the source or lies in it, a file where there is a folder, and with
 * delete_extra another folder of the configuration in what it stands for: -ACT_USAGE or
 * -ACT_FAIL before anything is moved. */
int flow_upload(struct flow *flow, struct flow *from, const char *path, struct flow_data *io,
                struct act_error *err) ACT_NODISCARD;
int flow_download(struct flow *flow, const char *path, struct flow_data *io,
                  struct act_error *err) ACT_NODISCARD;
/* For options.plan: what a step is about, in the words of the user: "data/voc/a". New string. */
char *flow_step_path(const struct flow_data *io, const struct transfer_step *step);

/* Compares the local path, or with from what the other cluster's store has, with this cluster's store; as
 * transfer_verify(). */
struct flow_verify {
    struct transfer_options options;
    bool deep;
    bool follow; /* as for flow_data */
    void (*each)(void *arg, enum transfer_difference what, const char *rel, const struct store_entry *from,
                 const struct store_entry *to); /* arg is that of the options */
    struct transfer_report report;              /* out */
    const char *path;                           /* internal, as the next */
    bool is_folder;
};
int flow_verify(struct flow *flow, struct flow *from, const char *path, struct flow_verify *io,
                struct act_error *err) ACT_NODISCARD;
/* For each: rel in the words of the user. New string. */
char *flow_verify_path(const struct flow_verify *io, const char *rel);

/* A mapped path in this cluster's store, found out. Keep store open until the path is no longer used. */
struct flow_path {
    struct store *store;
    struct transfer_path path;
};
int flow_open_path(struct flow *flow, const char *path, struct flow_path *out,
                   struct act_error *err) ACT_NODISCARD;

/* The same without a look at whether there is anything, for what interrupted transfers left: in the store, or here in
 * the local folder (-ACT_NOT_FOUND: there is none). */
enum flow_place { FLOW_STORE, FLOW_HERE, FLOW_PLACES };
int flow_open_place(struct flow *flow, const char *path, enum flow_place place, struct flow_path *out,
                    struct act_error *err) ACT_NODISCARD;
void flow_path_release(struct flow_path *path);
/* Refuses to remove a folder in which another one of the configuration lies in the store: -ACT_USAGE. */
int flow_may_remove(struct flow *flow, const char *path, struct act_error *err) ACT_NODISCARD;

/* A URL that reads the file. */
struct flow_url {
    int64_t life_s; /* 0: a day. Where it would have no effect on a sas_token that is shared: -ACT_USAGE */
    bool
        share_sas; /* where nothing signs one for the file alone, it may hold the account's whole sas_token */
    char *url;     /* out: a new string, secret */
};
int flow_url(struct flow *flow, const char *path, struct flow_url *io, struct act_error *err) ACT_NODISCARD;
/* Moves a mapped folder of a run between its store and dir on this machine: what the agent asks for where a folder is
 * not mounted. download true: from the store. Where the run's folder brings the access to its stores, that is used,
 * else the project that the run was submitted from. */
int flow_move_run_folder(const char *run_dir, const char *folder, const char *dir, bool download,
                         struct act_error *err) ACT_NODISCARD;

#endif
