#include "base/dirs.h"

#include <pwd.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/text.h"

char *act_home_dir(void)
{
    const char *home = getenv("HOME");

    if (!home || !*home) {
        const struct passwd *pw = getpwuid(getuid());
        home = pw ? pw->pw_dir : "/";
    }
    return act_strdup(home);
}

/* $ACT_HOME<below>, or $<variable>/act, or ~/<fallback>/act */
static char *act_dir(const char *below, const char *variable, const char *fallback)
{
    const char *own = getenv("ACT_HOME"), *xdg = getenv(variable);

    if (own && *own)
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
