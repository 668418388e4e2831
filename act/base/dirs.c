#include "base/dirs.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/text.h"
#include "base/user.h"

const char *act_env(const char *name)
{
    const char *value = getenv(name);

    return value && *value ? value : NULL;
}

char *act_home_dir(void)
{
    const char *home = act_env("HOME");

    if (home)
        return act_strdup(home);
    char *known = act_user_home(getuid());
    return known ? known : act_strdup("/");
}

/* $ACT_HOME<below>, or $<variable>/act, or ~/<fallback>/act */
static char *act_dir(const char *below, const char *variable, const char *fallback)
{
    const char *own = act_env("ACT_HOME"), *xdg = act_env(variable);

    if (own)
        return act_sprintf("%s%s", own, below);
    if (xdg && *xdg == '/')
        return act_sprintf("%s/act", xdg);
    ACT_AUTOFREE char *home = act_home_dir();
    return act_sprintf("%s/%s/act", home, fallback);
}

char *act_state_dir(void)
{
    return act_dir("", "XDG_DATA_HOME", ".local/share");
}

char *act_cache_dir(void)
{
    return act_dir("/cache", "XDG_CACHE_HOME", ".cache");
}

char *act_config_dir(void)
{
    return act_dir("/config", "XDG_CONFIG_HOME", ".config");
}

static void close_dir(const char *dir)
{
    ACT_AUTOFREE char *real = realpath(dir, NULL);
    ACT_AUTOFREE char *home = act_home_dir();
    ACT_AUTOFREE char *real_home = realpath(home, NULL);
    struct stat st;

    if (!real || stat(real, &st) < 0 || !S_ISDIR(st.st_mode) || st.st_uid != geteuid() || !(st.st_mode & 077) ||
        (st.st_mode & S_ISVTX))
        return;
    if (strcmp(real, "/") != 0 && !act_streq(real, real_home))
        (void)chmod(real, st.st_mode & 0700);
}

void act_close_own_dirs(void)
{
    ACT_AUTOFREE char *state = act_state_dir();
    ACT_AUTOFREE char *cache = act_cache_dir();

    close_dir(state);
    close_dir(cache);
}

void act_hint_at_own_dirs(struct act_error *err)
{
    ACT_AUTOFREE char *state = act_state_dir();
    ACT_AUTOFREE char *cache = act_cache_dir();

    if (err->code == ACT_DENIED && (act_can_write_in(state, NULL) < 0 || act_can_write_in(cache, NULL) < 0))
        act_error_hint(err, "set ACT_HOME to a folder that can be written");
}
