/* look_at_place.c - whether nodes have the folders that a configuration says they have (mode: path), for "a doctor". */
#include <string.h>

#include "platform/platform_internal.h"
#include "site/site.h"

static const char look[] = "if [ ! -d \"$1\" ]; then echo missing\n"
                           "elif [ -r \"$1\" ] && [ -x \"$1\" ]; then echo " PLATFORM_PLACE_SEEN "\n"
                           "else echo unreadable; fi";

void platform_place_words(const char *path, struct act_strv *out)
{
    ACT_STRV_PUSH(out, "sh", "-c", look, "sh", path);
}

bool platform_has_line(const char *text, const char *line)
{
    size_t n = strlen(line);

    for (const char *at = text; at && *at; at = strchr(at, '\n') ? strchr(at, '\n') + 1 : NULL)
        if (strncmp(at, line, n) == 0 && (at[n] == '\n' || at[n] == '\0'))
            return true;
    return false;
}

char *platform_look_at_place(struct site *site, const char *path)
{
    ACT_AUTO(act_strv) words = {0};
    ACT_AUTO(site_result) result = {0};
    struct act_error ignored;

    platform_place_words(path, &words);
    const struct site_command command = {.argv = (const char *const *)words.v, .cwd = "/"};
    return site_run(site, &command, &result, &ignored) == 0 ? act_strdup(result.out) : NULL;
}

void platform_judge_place(const char *where, const char *name, const char *path, const char *said,
                          struct platform_findings *findings)
{
    ACT_AUTOFREE char *what = act_sprintf("folder '%s'", name);

    if (platform_has_line(said, PLATFORM_PLACE_SEEN))
        platform_findings_add(findings, true, what, "'%s' %s", path, where);
    else if (platform_has_line(said, "unreadable"))
        platform_findings_add(findings, false, what, "you may not read '%s' %s", path, where);
    else if (!platform_has_line(said, "missing"))
        platform_findings_add(findings, true, what, "it is not known whether '%s' is there %s", path, where);
    else
        platform_findings_add(findings, false, what,
                              "there is no folder '%s' %s: make it there (mkdir -p), or name another 'path'", path,
                              where);
}
