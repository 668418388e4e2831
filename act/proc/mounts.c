#include "proc/mounts.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/path.h"
#include "proc/proc.h"

static const char *const tools[MOUNTS_TOOLS] = {[MOUNTS_BLOBFUSE2] = "blobfuse2", [MOUNTS_RCLONE] = "rclone"};

const char *mounts_tool_name(enum mounts_tool tool)
{
    return tools[tool];
}

/* ---- what is there ---- */

/* Finds fusermount3 or fusermount, a new string; NULL: neither is there. */
static char *find_fusermount(void)
{
    char *program = proc_find_in_path("fusermount3");

    return program ? program : proc_find_in_path("fusermount");
}

static int check_fuse(struct act_error *err)
{
    ACT_AUTOFREE char *fusermount = find_fusermount();

    if (!fusermount)
        return act_error_set(err, ACT_NOT_FOUND, "'fusermount3' is not in PATH (Debian: fuse3)");
    if (access("/dev/fuse", R_OK | W_OK) < 0)
        return act_error_set(err, ACT_NOT_FOUND, "'/dev/fuse' cannot be opened: %m");
    return 0;
}

int mounts_find_tool(const char *wanted, enum mounts_tool *out, char **out_program, struct act_error *err)
{
    for (int i = 0; i < MOUNTS_TOOLS; i++) {
        if (wanted && strcmp(wanted, tools[i]) != 0)
            continue;
        char *program = proc_find_in_path(tools[i]);
        if (!program)
            continue;
        *out = (enum mounts_tool)i;
        if (out_program)
            *out_program = act_strdup(program);
        free(program);
        return check_fuse(err);
    }
    return wanted
               ? act_error_set(err, ACT_NOT_FOUND, "'%s', which 'mount' names, is not in PATH", wanted)
               : act_error_set(err, ACT_NOT_FOUND,
                               "neither 'blobfuse2' nor 'rclone' is in PATH: install blobfuse2, or rclone and fuse3");
}

/* ---- what is mounted ---- */

/* Replaces "\040" by a space, and so on. */
static void unescape(char *text)
{
    char *to = text;

    for (const char *from = text; *from; to++) {
        unsigned byte;
        if (*from == '\\' && sscanf(from + 1, "%3o", &byte) == 1) {
            *to = (char)byte;
            from += 4;
        } else {
            *to = *from++;
        }
    }
    *to = '\0';
}

/* The kernel names mount points without symbolic links; one whose server is gone cannot be resolved itself. */
static char *mounts_resolve(const char *path)
{
    ACT_AUTOFREE char *parent = act_path_dirname(path);
    ACT_AUTOFREE char *real = realpath(parent, NULL);

    return real && strcmp(path, "/") != 0 ? act_path_join(real, act_path_basename(path)) : act_strdup(path);
}

static void find_below(const char *dir, struct act_strv *out)
{
    FILE *file = fopen("/proc/self/mountinfo", "re");
    ACT_AUTO(act_strv) found = {0};
    char *line = NULL, *point;
    size_t size = 0;

    while (file && getline(&line, &size, file) > 0) {
        if (sscanf(line, "%*s %*s %*s %*s %ms", &point) != 1)
            continue;
        unescape(point);
        if (act_path_is_within(point, dir))
            act_strv_push(&found, point);
        free(point);
    }
    free(line);
    if (file)
        fclose(file);
    for (size_t i = found.n; i > 0; i--) /* a later one is in an earlier one, or above it */
        act_strv_push(out, found.v[i - 1]);
}

void mounts_below(const char *dir, struct act_strv *out)
{
    ACT_AUTOFREE char *real = mounts_resolve(dir);

    find_below(real, out);
}

bool mounts_is_one(const char *path)
{
    ACT_AUTOFREE char *real = mounts_resolve(path);
    ACT_AUTO(act_strv) points = {0};

    find_below(real, &points);
    return act_strv_has(&points, real);
}

/* Reads lines like "36 35 98:0 / /mnt rw,noatime master:1 - nfs4 server:/data rw,vers=4.2". */
char *mounts_find_source(const char *source)
{
    FILE *file = fopen("/proc/self/mountinfo", "re");
    char *line = NULL, *found = NULL;
    size_t size = 0;

    while (file && !found && getline(&line, &size, file) > 0) {
        char *root = NULL, *point = NULL, *name = NULL;
        const char *rest = strstr(line, " - ");
        if (rest && sscanf(rest, " - %*s %ms", &name) == 1 && sscanf(line, "%*s %*s %*s %ms %ms", &root, &point) == 2) {
            unescape(name);
            unescape(point);
            found = strcmp(name, source) == 0 && strcmp(root, "/") == 0 ? act_strdup(point) : NULL;
        }
        free(root);
        free(point);
        free(name);
    }
    free(line);
    if (file)
        fclose(file);
    return found;
}

/* ---- the end ---- */

int mounts_end(const char *path, bool lazily, struct act_error *err)
{
    enum { END_S = 30, WORDS_MAX = 4096 };
    ACT_AUTOFREE char *program = find_fusermount();
    ACT_AUTO(proc_result) result = {0};
    ACT_AUTO(act_strv) words = {0};

    if (!program)
        return check_fuse(err);
    ACT_STRV_PUSH(&words, program, lazily ? "-uz" : "-u", path);
    int rc = proc_call(&(struct proc_call){.argv = words.v, .timeout_s = END_S, .max_bytes = WORDS_MAX}, &result, err);
    if (rc < 0 || result.status == 0)
        return rc;
    ACT_AUTOFREE char *said = act_one_line(result.err, strcspn(result.err, "\n"));
    return act_error_set(err, ACT_TEMPORARY, "cannot unmount '%s': %s", path, said);
}

bool mounts_end_below(const char *dir)
{
    ACT_AUTO(act_strv) points = {0}, left = {0};
    struct act_error ignored;

    mounts_below(dir, &points);
    for (size_t i = 0; i < points.n; i++)
        if (mounts_end(points.v[i], true, &ignored) < 0)
            continue; /* another process may just have ended it */
    if (points.n > 0)
        mounts_below(dir, &left);
    return left.n == 0;
}
