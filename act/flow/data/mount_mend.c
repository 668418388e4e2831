/* mount_mend.c - rclone writes its notes of a file in place, and when it starts it removes what it has no whole note
 * of, note and file, sent or not (vfs/vfscache/cache.go, reload()). A kill can fall into that. */
#include <fcntl.h>
#include <fts.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/path.h"
#include "codec/json.h"
#include "flow/data/mount.h"

static bool is_whole(const char *note)
{
    enum { NOTE_MAX = 1 << 20 };
    CODEC_AUTOJSON json_t *json = NULL;

    return codec_json_read(note, NOTE_MAX, &json, NULL) == 0;
}

/* rclone leaves a hole for the part of a changed file that it has not fetched yet. */
static bool has_hole(const char *file, off_t size)
{
    int fd = open(file, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    off_t hole = fd < 0 ? -1 : lseek(fd, 0, SEEK_HOLE);

    if (fd >= 0)
        close(fd);
    return size > 0 && hole < size;
}

/* Writes the note as rclone does for a new file that is not sent (vfs/vfscache/item.go, Info). */
static int write_note(const char *note, const struct stat *st, struct act_error *err)
{
    char at[ACT_TIME_TEXT];
    json_int_t size = st->st_size;

    act_time_to_iso_ns(act_timespec_ns(st->st_mtim), at);
    CODEC_AUTOJSON json_t *json = json_pack("{s:s, s:s, s:I, s:[{s:i, s:I}], s:s, s:b}", "ModTime", at, "ATime", at,
                                            "Size", size, "Rs", "Pos", 0, "Size", size, "Fingerprint", "", "Dirty", 1);
    if (size == 0)
        json_array_clear(json_object_get(json, "Rs"));
    ACT_AUTOFREE char *text = codec_json_line(json);
    return act_file_write_quickly(note, text, strlen(text), 0600, err);
}

static int mend_file(const char *file, const char *note, const struct stat *st, struct act_error *err)
{
    if (is_whole(note))
        return 0;
    if (has_hole(file, st->st_size))
        return act_error_set(err, ACT_FAIL, "its note of '%s' is damaged, and part of that file is missing", file);
    return write_note(note, st, err);
}

int mount_mend(const char *cache, struct act_error *err)
{
    ACT_AUTOFREE char *files = act_path_join(cache, "vfs");
    FTS *tree = fts_open((char *[]){files, NULL}, FTS_PHYSICAL | FTS_NOCHDIR, NULL);
    int rc = 0;

    for (const FTSENT *e; tree && rc == 0 && (e = fts_read(tree));) {
        if (e->fts_info != FTS_F)
            continue;
        ACT_AUTOFREE char *note = act_sprintf("%s/vfsMeta%s", cache, e->fts_path + strlen(files));
        rc = mend_file(e->fts_path, note, e->fts_statp, err);
    }
    if (tree)
        fts_close(tree);
    return rc;
}
