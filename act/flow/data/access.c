/* access.c - whether, and for how long, a node gets at the store of a folder. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "auth/auth.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/text.h"
#include "config/config.h"
#include "flow/data/data_internal.h"
#include "http/http.h"
#include "run/run.h"

enum { DAY_S = 24 * 3600 };

int64_t flow_run_limit_s(const struct config *c)
{
    const char *text = act_streq(c->platform, "slurm") ? c->slurm.time : NULL;
    int64_t parts[3] = {0}, days = 0;
    int n = 0;

    if (!text || *text < '0' || *text > '9')
        return 0;
    const char *dash = strchr(text, '-');
    if (dash) {
        days = strtoll(text, NULL, 10);
        text = dash + 1;
    }
    for (char *end; n < 3 && *text; text = *end ? end + 1 : end)
        parts[n++] = strtoll(text, &end, 10);
    if (dash) /* hours, hours:minutes, hours:minutes:seconds */
        return days * DAY_S + parts[0] * 3600 + parts[1] * 60 + parts[2];
    /* minutes, minutes:seconds, hours:minutes:seconds */
    return n == 3 ? parts[0] * 3600 + parts[1] * 60 + parts[2] : parts[0] * 60 + parts[1];
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

/* What the SAS says in a field such as "se=". New string; NULL: nothing. */
static char *find_field(const struct flow_blob *blob, const char *name)
{
    for (const char *at = blob->sas; at && *at;) {
        size_t n = strcspn(at, "&");
        ACT_AUTOFREE char *field = act_strndup(at, n);
        ACT_AUTOFREE char *plain = http_decode(field);
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

/* One with a stored access policy says nothing of it. */
int flow_check_rights(const struct flow_blob *blob, enum run_folder_mode mode, const char *name, struct act_error *err)
{
    ACT_AUTOFREE char *given = find_field(blob, "sp=");
    const char *needed = mode == RUN_FOLDER_RW_MOUNT ? "rlw" : mode == RUN_FOLDER_UPLOAD ? "w" : "rl";

    while (given && *needed && strchr(given, *needed))
        needed++;
    if (!given || !*needed)
        return 0;
    return act_error_set(err, ACT_DENIED,
                         "folder '%s': the SAS of its store permits 'sp=%s', and 'mode: %s' needs '%c' too", name,
                         given, run_folder_mode_name(mode), *needed);
}

int flow_check_access(const struct config *c, const struct flow_blob *blob, const char *name, struct act_error *err)
{
    int64_t ends_s = flow_blob_ends_s(blob), now_s = act_now_unix_s(), limit_s = flow_run_limit_s(c);
    char at[ACT_TIME_TEXT];

    if (ends_s == INT64_MAX)
        return 0;
    act_time_to_iso(ends_s, at);
    if (ends_s <= now_s)
        return act_error_set(err, ACT_DENIED, "folder '%s': the SAS of its store ended at %s; make a new one", name,
                             at);
    if (ends_s < now_s + limit_s)
        act_warn(
            "folder '%s': nodes get at its store until %s, and not for all of 'slurm.time'; an 'account_key' opens "
            "it for longer",
            name, at);
    return 0;
}
