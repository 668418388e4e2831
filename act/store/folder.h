/* folder.h - for the files of the folder store only.
 *
 * Objects are plain files below a root. Nothing is ever read or written through a symbolic link, unless links are to be
 * followed: every folder between the root and the object is opened as a folder, in one openat2() or step by step.
 */
#ifndef ACT_STORE_FOLDER_H
#define ACT_STORE_FOLDER_H

#include <limits.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/stat.h>

#include "store/store_internal.h"

/* The names of the part files of uploads in progress begin with this. They are never listed, and refused as keys;
 * other names that begin so are the users'. */
#define FOLDER_PART      ".act-part-"
#define FOLDER_PART_NAME 80 /* room for the name of a part file */

struct folder_walk;
struct folder_upload;
struct folder_dir;

/* The folders that are kept open; used by the workers. */
struct folder_dirs {
    pthread_mutex_t lock;
    struct folder_dir *first; /* most recently used */
    size_t n;
    dev_t dev;                /* of the root */
    atomic_bool many_changed; /* including some that are no longer open */
};

/* Finished files that wait for the disk; used by the loop only. See folder_land.c. */
struct folder_landings {
    struct folder_job *first, **end;
    size_t n, n_syncing;
    uint64_t bytes;
    bool syncing, hurry, timer;
};

/* Folder modes to be set at the end. See folder_mode.c. */
struct folder_modes {
    pthread_mutex_t lock;
    struct act_strv read_only; /* sorted paths of read-only folders that were made writable */
    struct folder_mode *first, **end;
};

struct folder {
    struct store store;
    char *root; /* resolved, absolute */
    int root_fd;
    struct folder_walk *walk;      /* where the last page of a listing ended; NULL: none */
    struct folder_upload *uploads; /* open ones; used by the loop only */
    struct folder_dirs dirs;
    struct folder_landings landings;
    struct folder_modes modes;
    bool slow;        /* others write a lot on this file system; belongs to the worker that syncs */
    atomic_bool made; /* folders were created */
};

/* A complete block of an upload, as its map records it. */
struct folder_record {
    uint64_t offset, len, crc64;
    uint32_t index;
    uint32_t check; /* of the record itself */
};

/* The folder that holds an object, and the object's name in it. */
struct folder_place {
    int fd; /* O_PATH, of dir */
    char name[NAME_MAX + 1];
    bool is_folder; /* the key ended in '/' */
    bool kept;      /* dir was open already: the path may lead to another folder by now */
    struct folder_dir *dir;
};

struct folder_job;

/* A complete file that is not in its place yet. */
struct folder_landing {
    int fd;
    bool borrowed;               /* the descriptor is the upload's */
    bool stays;                  /* keep the part file if it cannot be put in place */
    char part[FOLDER_PART_NAME]; /* its current name; "": none */
    /* Puts it in its place, on a worker. NULL: there is no file. */
    int (*name)(struct folder_job *job, struct folder_place *place, struct act_error *err);
};

/* A call under way. */
struct folder_job {
    struct folder *folder;
    struct store_call *call;
    struct folder_landing landing; /* PUT, COMMIT, COPY */
    struct folder_place place;     /* of the landing that waits */
    bool waits;                    /* the landing waits for the disk with others */
    struct folder_job *next;       /* in a list of jobs that wait for something */
    struct folder_walk *walk;      /* LIST: owned while under way */
    struct folder_upload *upload;  /* the open upload that the call belongs to, or NULL */
    struct folder_upload *begun;   /* BLOCKS: the upload that it opened */
    struct folder_record record;   /* BLOCK: what was written */
};

/* ---- folder_path.c: from keys to files */

/* Returns why a folder cannot have `key`, or NULL. */
const char *folder_key_problem(const char *key);
/* Returns why `key` cannot be that of a part file, or NULL. */
const char *folder_part_problem(const char *key);
/* Returns why no key can begin with `prefix`, or NULL. Its last segment may be empty or part of a name. */
const char *folder_prefix_problem(const char *prefix);

/* Opens (O_PATH) the folder at path (len bytes, below the root; "" is the root). With create, makes missing folders;
 * otherwise a missing one is -ACT_NOT_FOUND. */
int folder_open_dir(struct folder *folder, const char *path, size_t len, bool create, int *out_fd,
                    struct act_error *err);
/* Finds the place of `key`. With `create` makes missing folders; with `fresh` uses no folder that was kept open. */
int folder_find(struct folder *folder, const char *key, bool create, bool fresh, struct folder_place *out,
                struct act_error *err);

/* Returns why a link must not be made at `key` (its target is absolute or leads out of the root), or NULL. */
const char *folder_link_problem(const char *key, const char *target, size_t len);

void folder_etag(const struct stat *st, char out[STORE_ETAG]);
void folder_fill(struct store_entry *entry, const char *key, const struct stat *st);

/* ---- folder_dirs.c: folders that stay open */

void folder_dirs_init(struct folder_dirs *dirs, dev_t root);
void folder_dirs_close(struct folder_dirs *dirs);
/* Does what folder_open_dir() does, and sets place->dir, fd and kept. Any thread. */
int folder_dir_open(struct folder *folder, const char *path, size_t len, bool create, bool fresh,
                    struct folder_place *place, struct act_error *err);
/* Returns the names of the part files and maps in the place's folder, which is scanned once after it was opened, not
 * for each of many uploads. They live as long as the place. Any thread. */
const struct act_strv *folder_dir_parts(const struct folder_place *place);
/* Returns whether the folder is on a file system that does not survive a power cut. */
bool folder_dir_is_in_memory(const struct folder_place *place);
/* Notes that a file in the folder was linked or renamed. */
void folder_dir_changed(const struct folder_place *place);
/* Syncs the folder itself, if its file system can. Returns 0, or -1 with errno. */
int folder_sync_dir(const struct folder_place *place);
/* Makes open folders be checked again for write access. */
void folder_dirs_distrust(struct folder_dirs *dirs);
/* Returns whether to try again, at most FOLDER_TRIES times, what was denied in the folder: another process that was
 * filling the same read-only folder has ended and made it read-only again. Any thread. */
enum { FOLDER_TRIES = 20 };
bool folder_dir_was_closed(struct folder *folder, const struct folder_place *place, int rc, int *tries);
/* Does what folder_open_up() does with the place's folder. Any thread. */
void folder_dir_open_up(struct folder *folder, const struct folder_place *place);
/* Syncs everything that changed, on a worker. */
int folder_sync(struct folder *folder, struct act_error *err);
/* Releases a place, also when nothing was found. */
void folder_place_release(struct folder_place *place);

/* ---- folder.c: shared by reading and writing */

/* Stats the place. A folder matches only a key with a trailing slash, a file only a key without. */
int folder_stat(const struct folder_place *place, struct stat *st, struct act_error *err);
/* Returns -ACT_TEMPORARY if the ETag is not `if_match` (NULL: any). */
int folder_check_match(const char *if_match, const struct stat *st, struct act_error *err);
/* Sets the error for an object that has changed since the caller saw it. */
int folder_changed(struct act_error *err);

/* Returns whether to open the folder again, which was open already and may have been moved. */
bool folder_was_elsewhere(const struct folder_place *place, int rc);
/* Ends a call that has waited; on the loop. */
void folder_job_end(struct folder_job *job);

/* ---- folder_land.c: see there */

/* Returns whether files in this place must be on the disk before they become visible. */
bool folder_syncs(const struct folder *folder, const struct folder_place *place);
/* Starts writing the file's data to the disk, without waiting for it. */
void folder_write_back(int fd);
/* On a worker: puts the file of the job, if it has one, in its place, or sets job->waits. */
int folder_land(struct folder_job *job, struct folder_place *place, struct act_error *err);
/* Closes the file, and removes it if it could not be put in place. */
void folder_landing_end(struct folder_landing *landing, const struct folder_place *place, bool failed);
/* On the loop: has a job wait with others, and ends it later. */
void folder_wait(struct folder_job *job);
void folder_hurry(struct store *store);

/* ---- folder_mode.c: see there. Any thread */

void folder_modes_init(struct folder_modes *modes);
void folder_modes_release(struct folder_modes *modes);
/* Sets the mode of folder fd (path below the root, len bytes), but keeps its set-id and sticky bits and whether others
 * may write. A mode without write permission for the owner is set at the end. Leaves other users' folders alone. 0, or
 * -1 with errno. */
int folder_set_mode(struct folder *folder, int fd, const char *path, size_t len, int mode);
/* Does what store_open_up() promises. */
void folder_may_open_up(struct store *store, const char *key);
/* Makes a read-only folder of ours writable until the end, if store_open_up() allows it. Returns whether it is writable
 * now. */
bool folder_open_up(struct folder *folder, int fd, const char *path, size_t len);
/* At the end: sets all pending modes. */
int folder_end_modes(struct folder *folder, struct act_error *err);

/* ---- folder_pieces.c: holes, bytes and their sums, on a worker */

/* Writes everything but zeros, which become a hole, or remain one in a fresh file. Sets *holes if there is one; it may
 * lie beyond the end of the file. 0, or -1 with errno. */
int folder_write_sparse(int fd, const char *data, size_t len, off_t offset, bool fresh, bool *holes);
/* Frees the space that was reserved for holes. */
void folder_give_back_holes(int fd, off_t size);
/* Returns whether the part of the range that lies within the file is a hole. */
bool folder_is_hole(int fd, off_t offset, size_t len);

/* Reads as act_pread_all() does, and adds what was read to `sums`, unless that is NULL. */
ssize_t folder_read(int fd, void *sink, size_t len, off_t offset, struct store_sums *sums);
/* Writes the data of a BLOCK as folder_write_sparse() does, over whatever is there, and adds it to `sums`. Returns
 * 0, or -1 with errno. */
int folder_write(int fd, const struct store_put_block *block, struct store_sums *sums, bool *holes);

/* ---- folder_write.c: one function for each operation, on a worker */

int folder_put(struct folder_job *job, struct folder_place *place, struct act_error *err);
int folder_copy(struct folder_job *job, struct folder_place *place, struct act_error *err);

/* Compares data with the checksums that came with it. */
int folder_check_data(const struct store_data *data, struct act_error *err);
/* Returns {0}, ready for the sums that are needed to check the data while it is written. */
struct store_sums folder_begin_sums(const struct store_data *data);
/* Compares these sums, in the end, with the checksums that came with the data. */
int folder_check_sums(const struct store_data *data, struct store_sums *sums, struct act_error *err);
void folder_part_name(const char *key, const struct store_upload_id *id, char out[FOLDER_PART_NAME]);
/* Sets mode and modification time. 0, or -1 with errno. */
int folder_set_attributes(const struct store_attributes *attr, int fd);
/* Makes the file system report delayed write errors. A network file system does so when a descriptor is closed; ours
 * stays open, because it holds the lock. 0, or -1 with errno. */
int folder_flush(int fd);
/* Makes the finished part file the object. */
int folder_put_in_place(struct store_call *call, struct folder_place *place, const char *part, struct act_error *err);
/* Does so as the name() of a landing. */
int folder_name_part(struct folder_job *job, struct folder_place *place, struct act_error *err);

/* ---- folder_upload.c: objects that come in blocks */

/* On the loop, before the work: finds the open upload of the call. If something is missing, call->rc is set. */
void folder_upload_attach(struct folder_job *job);
/* On the loop, after the work: notes what the call did. */
void folder_upload_detach(struct folder_job *job);
/* On the loop, after folder_upload_attach(): returns the lane in which the work waits for its turn; NULL: it need
 * not. Blocks of one upload are written one at a time: the kernel lets one write into a file at a time, and workers
 * that wait for its lock only use up processor time. */
struct engine_lane *folder_upload_lane(const struct folder_job *job);
/* On a worker: runs a call of job->upload. */
int folder_upload_run(struct folder_job *job, struct act_error *err);
/* On a worker: begins the upload of a BLOCKS, which goes on with what an earlier process left of it. */
int folder_blocks(struct folder_job *job, struct folder_place *place, struct act_error *err);
/* Closes the open uploads, which can be resumed. */
void folder_uploads_close(struct folder *folder);

/* ---- folder_part.c: the files in which blocks are gathered, on a worker */

#define FOLDER_MAP ".map" /* the name of a map is that of its part file and this */

/* Writes the name of the map of `part` into `out`. */
void folder_map_name(const char *part, char out[NAME_MAX + 1]);
/* Opens `part` in the folder `dir` with these flags of open(2), and `mode` if that makes it, and locks it. Returns a
 * descriptor; -1: *rc says why, -ACT_TEMPORARY if another process has it. */
int folder_part_open(int dir, const char *part, int flags, mode_t mode, int *rc, struct act_error *err);
/* Removes a part file that nobody has locked, its map first. */
int folder_part_remove(int dir, const char *part, struct act_error *err);
/* Checks the length of the part file `fd`, and gives it the attributes of `commit`. */
int folder_part_finish(const struct store_commit *commit, int fd, struct act_error *err);
/* Returns whether `name` is that of a part file. */
bool folder_is_part(const char *name);
/* Returns whether `name` is that of a part file or of its map. */
bool folder_is_temporary(const char *name);
/* Returns whether no process uses the part file. */
bool folder_part_is_free(int dir, const char *part);
/* Carries out a CLEAR: removes the part file that the place names. */
int folder_clear(struct folder_job *job, struct folder_place *place, struct act_error *err);
/* Carry out calls of an upload that is not open: nobody has its id but the caller. */
int folder_block(struct folder_job *job, struct folder_place *place, struct act_error *err);
int folder_commit(struct folder_job *job, struct folder_place *place, struct act_error *err);
int folder_drop(struct folder_job *job, struct folder_place *place, struct act_error *err);

/* ---- folder_list.c */

/* Lists a page, on a worker, from *walk on (NULL: from the marker), and sets that to where the page ended, or NULL. */
int folder_list(struct folder *folder, struct store_call *call, struct folder_walk **walk, struct act_error *err);
/* Returns whether the walk rests where the call wants to go on. */
bool folder_walk_fits(const struct folder_walk *walk, const struct store_call *call);
void folder_walk_free(struct folder_walk *walk);

#endif
