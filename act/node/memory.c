#include "node/memory.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/path.h"
#include "base/text.h"
#include "base/units.h"
#include "node/cgroup.h"

/* Version 2, then version 1, whose limit is a number of about 2^63 where there is none. */
static const char *const event_files[] = {"memory.events", "memory.oom_control"};
static const char *const limit_files[] = {"memory.max", "memory.limit_in_bytes"};
enum { VERSIONS = 2 };

/* Reads the file of either version, a new string; NULL: neither is there. */
static char *read_either(const char *path, const char *const names[VERSIONS])
{
    enum { TEXT_MAX = 64 * 1024 };
    char *text = NULL;

    for (int i = 0; i < VERSIONS && !text; i++) {
        ACT_AUTOFREE char *file = act_path_join(path, names[i]);
        if (act_file_read(file, TEXT_MAX, &text, NULL, NULL) < 0)
            text = NULL;
    }
    return text;
}

/* "/a/b" becomes "/a". False: there is nothing above. */
static bool go_up(char *path)
{
    char *slash = strrchr(path, '/');

    if (!slash || slash == path)
        return false;
    *slash = '\0';
    return true;
}

/* Reads "oom_kill 3" in a line of its own. */
static int64_t kills_in(const char *text)
{
    static const char key[] = "oom_kill ";

    for (const char *line = text; line; line = (line = strchr(line, '\n')) ? line + 1 : NULL)
        if (act_starts_with(line, key))
            return strtoll(line + strlen(key), NULL, 10);
    return -1;
}

int64_t memory_kills_at(const char *path)
{
    ACT_AUTOFREE char *at = act_strdup(path);

    do {
        ACT_AUTOFREE char *text = read_either(at, event_files);
        if (text)
            return kills_in(text);
    } while (go_up(at));
    return -1;
}

int64_t memory_limit_at(const char *path)
{
    const int64_t none = INT64_C(1) << 60;
    ACT_AUTOFREE char *at = act_strdup(path);
    int64_t least = none;

    do {
        ACT_AUTOFREE char *text = read_either(at, limit_files);
        int64_t limit = text ? strtoll(text, NULL, 10) : 0; /* 0: "max" */
        least = limit > 0 && limit < least ? limit : least;
    } while (go_up(at));
    return least < none ? least : 0;
}

int64_t memory_kills(void)
{
    ACT_AUTOFREE char *path = cgroup_of_memory();

    return path ? memory_kills_at(path) : -1;
}

void memory_describe(char *out, size_t size)
{
    ACT_AUTOFREE char *path = cgroup_of_memory();
    int64_t limit = path ? memory_limit_at(path) : 0;
    char text[ACT_UNIT_TEXT];

    act_size_to_text((uint64_t)limit, text);
    if (limit > 0)
        snprintf(out, size, "killed by the kernel: it used more memory than it may (%s)", text);
    else
        snprintf(out, size, "killed by the kernel: out of memory, as the node has no more");
}
