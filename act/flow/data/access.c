/* access.c - whether, and for how long, a node gets at the store of a folder. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "config/config.h"
#include "flow/data/data_internal.h"
#include "http/http.h"
#include "platform/platform.h"
#include "proc/mounts.h"

enum { DAY_S = 24 * 3600 };

int64_t flow_run_limit_s(const struct config *c)
{
    const struct platform_row *row = platform_find(c->platform);

    return row->settings.time_limit.get ? row->settings.time_limit.get(c) : 0;
}

int64_t flow_key_life_s(const struct config *c)
{
    enum { WAITS_S = 30 * DAY_S, MOST_S = 366 * DAY_S };
    int64_t limit_s = flow_run_limit_s(c);

    return WAITS_S + (limit_s < MOST_S ? limit_s : MOST_S);
}

/* "2026-12-25T07:47:43Z", or a day alone, which is its beginning. */
static bool read_time(const char *text, int64_t *out_s)
{
    ACT_AUTOFREE char *whole = strlen(text) == strlen("2026-12-25") ? act_sprintf("%sT00:00:00Z", text) : NULL;
    int64_t ns;

    if (!act_time_from_iso_ns(whole ? whole : text, &ns))
        return false;
    *out_s = ns / 1000000000;
    return true;
}

/* Returns what the SAS says in a field such as "se=", as a new string; NULL: nothing. */
static char *find_field(const struct flow_blob *blob, const char *name)
{
    for (const char *at = blob->sas; at && *at;) {
        size_t n = strcspn(at, "&");
        ACT_AUTOWIPE char *field = act_strndup(at, n); /* one is the signature */
        ACT_AUTOWIPE char *plain = http_decode(field);
        if (act_starts_with(plain, name))
            return act_strdup(plain + strlen(name));
        at += n + (at[n] == '&');
    }
    return NULL;
}

int64_t flow_blob_ends_s(const struct flow_blob *blob)
{
    ACT_AUTOFREE char *text = find_field(blob, "se=");
    int64_t ends_s;

    return text && read_time(text, &ends_s) ? ends_s : INT64_MAX;
}

/* A SAS with a stored access policy does not say what it permits. */
int flow_check_rights(const struct flow_blob *blob, enum run_folder_mode mode, const char *name, struct act_error *err)
{
    ACT_AUTOFREE char *given = find_field(blob, "sp=");
    bool writes = mode == RUN_FOLDER_RW_MOUNT || mode == RUN_FOLDER_UPLOAD;
    const char *needed = writes ? "rlw" : "rl"; /* an upload looks what is there */

    while (given && *needed && strchr(given, *needed))
        needed++;
    if (!given || !*needed)
        return 0;
    return act_error_set(err, ACT_DENIED,
                         "folder '%s': the SAS of its store permits 'sp=%s', and 'mode: %s' needs '%c' too", name,
                         given, run_folder_mode_name(mode), *needed);
}

/* The SAS with which nodes get at a folder may be replaceable: blobfuse2 takes another one while it works, and
 * what copies on this machine has a new one for each copy. */
enum renewal { RENEWAL_NEVER, RENEWAL_PERHAPS, RENEWAL_SURE };

static enum renewal renewal_of(const struct config *c, enum run_folder_mode mode)
{
    bool is_mounted = mode == RUN_FOLDER_RW_MOUNT || mode == RUN_FOLDER_RO_MOUNT;
    bool is_here = platform_find(c->platform)->about.is_here;
    enum mounts_tool tool;

    if (!is_mounted || act_streq(c->mount, RUN_MOUNT_COPY))
        return is_here ? RENEWAL_SURE : RENEWAL_NEVER;
    if (act_streq(c->mount, mounts_tool_name(MOUNTS_RCLONE)))
        return RENEWAL_NEVER;
    if (!is_here)
        return RENEWAL_PERHAPS;
    return mounts_find_tool(c->mount, &tool, NULL, NULL) == 0 && tool == MOUNTS_BLOBFUSE2 ? RENEWAL_SURE
                                                                                          : RENEWAL_NEVER;
}

/* A run without a limit may work for longer than a login can sign. */
static bool may_end_early(const struct config *c, int64_t left_s, enum run_folder_mode mode)
{
    int64_t limit_s = flow_run_limit_s(c);
    bool is_for_long = platform_find(c->platform)->about.agent_mounts && mode != RUN_FOLDER_DOWNLOAD;

    return limit_s > 0 ? left_s < limit_s : is_for_long && left_s <= FLOW_LOGIN_LIFE_S;
}

int flow_check_access(const struct config *c, const struct flow_blob *blob, const char *name, enum run_folder_mode mode,
                      struct flow_ends *ends, struct act_error *err)
{
    int64_t ends_s = flow_blob_ends_s(blob), left_s = ends_s - act_now_unix_s();
    char at[ACT_TIME_TEXT];

    if (ends_s == INT64_MAX)
        return 0;
    act_time_to_iso(ends_s, at);
    if (left_s <= 0)
        return act_error_set(err, ACT_DENIED, "folder '%s': the SAS of its store ended at %s; make a new one", name,
                             at);
    enum renewal renewal = renewal_of(c, mode);
    if (renewal == RENEWAL_SURE || !may_end_early(c, left_s, mode))
        return 0;
    if (renewal == RENEWAL_NEVER && blob->by_login && flow_run_limit_s(c) > FLOW_LOGIN_LIFE_S &&
        mode != RUN_FOLDER_DOWNLOAD)
        return act_error_set(err, ACT_DENIED,
                             "folder '%s': a login opens its store for 7 days, and 'slurm.time' is longer: set a "
                             "shorter one, or an 'account_key'",
                             name);
    act_buf_addf(&ends->names, "%s'%s'", ends->names.len ? ", " : "", name);
    ends->first_s = ends->first_s && ends->first_s < ends_s ? ends->first_s : ends_s;
    return 0;
}

void flow_say_ends(const struct config *c, struct flow_ends *ends)
{
    bool has_limit = flow_run_limit_s(c) > 0;
    char at[ACT_TIME_TEXT];

    if (ends->names.len == 0)
        return;
    act_time_to_iso(ends->first_s, at);
    if (has_limit)
        act_warn(
            "nodes get at the store of %s until %s, and not for all of 'slurm.time'; an 'account_key' opens it for "
            "longer",
            ends->names.data, at);
    else
        act_note("%s  open for the run until %s; if it works for longer, it may fail", ends->names.data, at);
}
