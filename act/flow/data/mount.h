/* mount.h - for the files of flow/data only: a container of Blob Storage as a folder of this machine.
 *
 *   mount_tool.c   what blobfuse2 and rclone are told; pure
 *   mount.c        a folder of a run, on its node
 *   mount_here.c   a mapped path, for people
 *   mount_keep.c   the keeper: one process for each mount, which starts the tool, sees what was written into the store,
 *                  and unmounts
 *   mount_mend.c   what a kill left of rclone's cache
 *   mount_renew.c  another SAS before the first one ends
 *
 * Everything of a mount is in a private folder on the node's own disk:
 *
 *   at/        the mount point (of a run's folder)
 *   cache/     what was written and is not in the store yet; it stays if it could not be sent (run_mount_unsent()).
 *              Each start of blobfuse2 has a folder of its own in it: it wants an empty one, and never sends what an
 *              earlier one left
 *   read/      the cache of blobfuse2, if nothing can be written
 *   tool.yaml  the configuration of blobfuse2, 0600: it has the signature
 *   tool.txt   what the tool said, 0600: it may have it, too
 *   reserve    1 MiB, given back at the end
 *   lock       held by the keeper, with its pid and when it began (proc_began())
 *   end.json   how it ended
 *
 * Sources: rclone.org/commands/rclone_mount, rclone.org/azureblob, rclone.org/docs (configuration by the environment);
 * github.com/Azure/azure-storage-fuse: README, setup/baseConfig.yaml, cmd/mount.go.
 */
#ifndef ACT_FLOW_DATA_MOUNT_H
#define ACT_FLOW_DATA_MOUNT_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "flow/data/data_internal.h"
#include "proc/mounts.h"

struct mount_plan {
    const char *name; /* of the folder, for messages */
    struct flow_blob *blob;
    enum mounts_tool tool;
    const char *program;
    bool read_only;
    const char *dir;   /* the private folder */
    const char *at;    /* the mount point */
    const char *cache; /* of the tool; mount_keep() makes and sets it */
};

#define MOUNT_LOG       "tool.txt"
#define MOUNT_CONFIG    "tool.yaml"
#define MOUNT_CONFIG_FD 3

/* Appends the words of the tool, without a secret. */
void mount_words(const struct mount_plan *plan, struct act_strv *out_words);
/* Returns the configuration that the words name, as a new string, secret: for blobfuse2 of the file MOUNT_CONFIG, which
 * it reads again when it changes, for rclone of the descriptor MOUNT_CONFIG_FD. */
char *mount_config(const struct mount_plan *plan);
/* Returns what the tool said without the signature, however that is written, and without anything else that looks like
 * a secret, as a new string. */
char *mount_redact(const struct mount_plan *plan, const char *text);

/* Mounts, keeps it mounted until wanted() says no or a signal comes, and has what was written sent. ready() is called
 * once it is mounted. One process has one keeper, and no thread. */
struct mount_keeper {
    struct mount_plan plan;
    bool (*wanted)(void *arg); /* asked about once a second; NULL: always */
    void (*slow)(void *arg);   /* once, if the tool takes long to mount it; NULL: nobody asks */
    void (*ready)(void *arg);
    void (*waits)(void *arg); /* at the end, if files are not sent yet: two more signals end that; NULL: nobody asks */
    /* Returns new credentials for the store. Called when half of the lifetime of the old ones is over, if the tool
     * takes others while it works: blobfuse2 watches its configuration (common/config/config_parser.go, WatchConfig(),
     * and component/azstorage/config.go, ParseAndReadDynamicConfig()). rclone does not, and is started again at the end
     * if there is something that it cannot send any more. The call is made in a process of its own, which may take a
     * minute, and has none of the keeper's threads. NULL: there are no others. */
    int (*renew)(void *arg, struct flow_blob *out, struct act_error *err);
    void *arg;
};
int mount_keep(struct mount_keeper *k, struct act_error *err) ACT_NODISCARD;

/* Before rclone starts with a cache that an earlier one left: makes notes of files whose notes are damaged, as of files
 * that are not sent. -ACT_FAIL: one is not whole, and rclone would remove it. */
int mount_mend(const char *cache, struct act_error *err) ACT_NODISCARD;

/* ---- mount_renew.c */

struct mount_renewal {
    int64_t due_s; /* when to ask for another SAS (Unix, seconds); INT64_MAX: never */
    pid_t pid;     /* of the child that asks; 0: none */
    int fd;        /* what it sends */
};
/* Returns when to ask for the next SAS. */
int64_t mount_renewal_s(const struct mount_keeper *k);
/* Called now and then, and after a SIGCHLD; never waits. True: the keeper's blob has another SAS. */
bool mount_renew(struct mount_keeper *k, struct mount_renewal *renewal);
void mount_renewal_end(struct mount_renewal *renewal);

#endif
