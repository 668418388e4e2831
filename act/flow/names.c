/* names.c - names: packages in the store and in the cache, and the log folder. */
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "base/dirs.h"
#include "base/path.h"
#include "base/text.h"
#include "config/config.h"
#include "flow/flow_internal.h"

char *flow_code_base(const struct config *config)
{
    const char *path = config->code.path;

    if (!path)
        return NULL;
    return act_ends_with(path, ".zip") ? act_strndup(path, strlen(path) - strlen(".zip"))
                                       : act_sprintf("%s.packages", path);
}

char *flow_code_key(const struct flow *flow, const char *fmt, ...)
{
    ACT_AUTOFREE char *base = flow_code_base(flow->config);
    va_list ap;

    va_start(ap, fmt);
    ACT_AUTOFREE char *rest = act_vsprintf(fmt, ap);
    va_end(ap);
    return act_sprintf("%s/%s", base, rest);
}

char *flow_package_key(const struct flow *flow, const char *sha256)
{
    return flow_code_key(flow, "%s.zip", sha256);
}

char *flow_pointer_key(const struct flow *flow)
{
    return flow_code_key(flow, "latest.json");
}

char *flow_packages_dir(void)
{
    ACT_AUTOFREE char *dir = act_cache_dir();

    return act_path_join(dir, "packages");
}

char *flow_package_cache(const char *sha256)
{
    ACT_AUTOFREE char *dir = flow_packages_dir();

    return act_sprintf("%s/%s.zip", dir, sha256);
}

char *flow_log_folder(const char *project)
{
    const char *named = act_env("AML_LOG_FOLDER"); /* as in the original */

    if (!named)
        named = "assets";
    ACT_AUTOFREE char *path = *named == '/' ? act_strdup(named) : act_path_join(project, named);
    return act_path_clean(path);
}
