/* file.h - files on the local disk: whole reads with a limit, atomic writes, folders, locks. Blocking. */
#ifndef ACT_BASE_FILE_H
#define ACT_BASE_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"

/* Closes a descriptor that is not negative when its variable leaves its scope, and leaves errno alone. */
void act_close_at_exit(int *fd);
#define ACT_AUTOCLOSE __attribute__((cleanup(act_close_at_exit)))

/* Reads a whole file of at most max bytes into a new buffer that is followed by a NUL byte. */
int act_file_read(const char *path, size_t max, char **out, size_t *out_len, struct act_error *err) ACT_NODISCARD;

/* Does the same with a regular file, and refuses anything else: a path from a project's files may be a FIFO or a
 * terminal, on which a reader would wait forever. */
int act_file_read_regular(const char *path, size_t max, char **out, size_t *out_len,
                          struct act_error *err) ACT_NODISCARD;

/* Replaces path by the data: readers see the old or the new content, never a part, also after a power cut.
 * The file gets exactly this mode; missing folders are made. errno is set on failure. Until then it has a name of
 * temp.h beside it. */
int act_file_write(const char *path, const void *data, size_t len, mode_t mode, struct act_error *err) ACT_NODISCARD;
/* Does the same without waiting for the disk: a power cut may leave a torn file, and the reader must notice it. */
int act_file_write_quickly(const char *path, const void *data, size_t len, mode_t mode,
                           struct act_error *err) ACT_NODISCARD;
/* Does what act_file_write() does, but only if path does not exist; else it sets *out_existed and leaves the file
 * alone. */
int act_file_create(const char *path, const void *data, size_t len, mode_t mode, bool *out_existed,
                    struct act_error *err) ACT_NODISCARD;
/* Renames from to to in the folder dir, or fails with EEXIST: renameat2(RENAME_NOREPLACE) that also works on file
 * systems without it, such as NFS. Returns 0, or -1 with errno. */
int act_rename_new(int dir, const char *from, const char *to) ACT_NODISCARD;

/* Writes all bytes, going on after a partial write or a signal. Returns 0 or -1 with errno. */
int act_write_all(int fd, const void *data, size_t len) ACT_NODISCARD;
int act_pwrite_all(int fd, const void *data, size_t len, off_t offset) ACT_NODISCARD;
/* Reads until len bytes or the end. Returns the count, or -1 with errno. */
ssize_t act_pread_all(int fd, void *data, size_t len, off_t offset);

/* Raises the limit of open files (RLIMIT_NOFILE) to what is needed, or as far as this process may. Returns the limit;
 * UINT64_MAX: there is none. */
uint64_t act_allow_files(uint64_t needed);

/* Returns the umask of this process. Unlike umask(), it changes nothing for the other threads. */
mode_t act_umask(void);

/* Makes a folder and those above it that do not exist, like mkdir -p. */
int act_mkdir_all(const char *path, mode_t mode, struct act_error *err) ACT_NODISCARD;

/* Appends the names in a folder to out, sorted, but for those that begin with a dot; none if it cannot be read. */
struct act_strv;
void act_folder_names(const char *dir, struct act_strv *out);

/* Checks that files can be written in a folder or, if it does not exist, that it could be made. Touches nothing. */
int act_can_write_in(const char *path, struct act_error *err) ACT_NODISCARD;

/* Removes a tree like rm -rf, and never follows a symbolic link. It is no error if the path does not exist, or if
 * others remove parts of the tree meanwhile. */
int act_remove_tree(const char *path, struct act_error *err) ACT_NODISCARD;
/* Returns the bytes that a file or a tree takes up on the disk. Follows no link. */
uint64_t act_tree_size(const char *path);

/* Open path, which begins with root, without following symbolic links after root. A link on the way or at the end is
 * -ACT_DENIED, and the error names it. Return a descriptor >= 0. act_open_below() takes the flags of open(); with
 * O_CREAT it also makes missing folders, and it never waits for the other end of a FIFO. act_folder_below() is for
 * the ...at() calls and act_held_path(). */
int act_open_below(const char *root, const char *path, int flags, struct act_error *err) ACT_NODISCARD;
int act_folder_below(const char *root, const char *path, bool make, struct act_error *err) ACT_NODISCARD;
/* Returns the path of name in the folder that fd holds, even after that folder was moved. New string. */
char *act_held_path(int fd, const char *name);

/* Tells whether the file (a link itself, not its target) belongs to neither the user nor root. *out_owner: to whom;
 * out_owner may be NULL. */
bool act_is_foreign(const char *path, uid_t *out_owner);

/* Copies a file, as a reflink or inside the kernel where possible. The target must not exist. The content is on the
 * disk when it returns, so the copy may be renamed over something. */
int act_file_copy(const char *from, const char *to, mode_t mode, struct act_error *err) ACT_NODISCARD;

/* Does the same with two open files, of which out is empty. Holes stay holes. Returns 0, or -1 with errno. */
int act_copy_content(int in, int out) ACT_NODISCARD;

/* Opens (making it, 0600) and locks a file exclusively. The lock lives as long as a descriptor of this open
 * file description: close it to release; it also ends with the last process that holds it.
 * Returns a descriptor >= 0; with wait false and the lock held by another process -ACT_TEMPORARY. A wait that
 * is interrupted by a signal returns -ACT_INTERRUPTED. */
int act_lock(const char *path, bool wait, struct act_error *err) ACT_NODISCARD;
/* Waits for a file that others lock only for moments. After ten seconds -ACT_TEMPORARY, which names the process that
 * has the lock. */
int act_lock_shortly(const char *path, struct act_error *err) ACT_NODISCARD;
/* Does the same with a folder, which must be there. */
int act_lock_folder(const char *path, struct act_error *err) ACT_NODISCARD;
/* Waits as long as it takes. After a moment a note says which process has the lock, and what it is doing ("packs"). */
int act_lock_told(const char *path, const char *doing, struct act_error *err) ACT_NODISCARD;

#endif
