/* temp.h - files that have a temporary name until they are whole: those of atomic writes, and packages; and folders
 * that go with their process. Blocking.
 *
 * They are called ACT_TEMP_PREFIX and six letters, beside the file they will become. A lock shows that their process
 * lives; it ends with the process, even by kill -9. A file that was left is not packed with the code, and a later write
 * into the same folder removes it.
 */
#ifndef ACT_BASE_TEMP_H
#define ACT_BASE_TEMP_H

#include <stdint.h>

#define ACT_TEMP_PREFIX ".act-new-"

/* Makes a file in the folder, 0600, locked for as long as it is open. Returns a descriptor and its path, a new string;
 * or -1 with errno. */
int act_temp_open(const char *folder, char **out_path);
/* Makes one without a lock, which nothing removes if it is left: for files that are written often, into folders that go
 * soon. */
int act_temp_open_unlocked(const char *folder, char **out_path);

/* Removes the temporary files in folder whose processes have ended and wrote nothing to them in the last older_s
 * seconds. A lock may hold on one machine only, so 0 is for folders of this machine. */
void act_temp_sweep(const char *folder, int64_t older_s);

/* Makes a folder, 0700, whose path is prefix and six letters, locked for as long as the descriptor is open that it
 * returns, the caller's. *out_path: a new string. -1 with errno: there is none. Before that it removes the folders of
 * this user with such names whose processes have ended, by kill -9, and that are older than a minute. */
int act_temp_folder(const char *prefix, char **out_path);

#endif
