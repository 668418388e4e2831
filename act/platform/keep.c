/* keep.c - what ACT has put on a platform, and removing it. Only what this user owns there is counted or touched: the
 * root may be shared. The tools of the site measure it, find(1) and du(1), which are there on every Linux.
 */
#include <stdlib.h>
#include <string.h>

#include "platform/platform_internal.h"

#include "base/path.h"
#include "base/text.h"
#include "site/site.h"

enum { KIB = 1024, LONG_S = 600 };

/* The sum of what find(1) finds with these words, and how many: "KIB N". The owner is the user there. */
#define SUM                                                                                                            \
    "d=$1; shift; [ -d \"$d\" ] || { echo 0 0; exit 0; }\n"                                                            \
    "find \"$d\" -mindepth 1 -maxdepth 1 -uid \"$(id -u)\" \"$@\" -exec du -sk {} +"                                   \
    " | awk '{s += $1; n++} END {print s + 0, n + 0}'\n"
/* The same, and then it is removed. */
#define REMOVE SUM "find \"$d\" -mindepth 1 -maxdepth 1 -uid \"$(id -u)\" \"$@\" -exec rm -rf -- {} +\n"

static int run_script(struct site *site, const char *script, const char *const *words, struct platform_kept *out,
                      struct act_error *err)
{
    ACT_AUTO(site_result) result = {0};
    const char *argv[24] = {"sh", "-c", script, "sh"};
    unsigned long long kib, n;

    for (size_t i = 0; words[i]; i++)
        argv[4 + i] = words[i];
    int rc = site_run(site, &(struct site_command){.argv = argv, .timeout_s = LONG_S}, &result, err);
    if (rc < 0)
        return rc;
    if (result.status != 0 || sscanf(result.out ? result.out : "", "%llu %llu", &kib, &n) != 2)
        return act_error_set(err, ACT_FAIL, "cannot measure '%s/%s': %s", site_root(site), words[0],
                             result.err && *result.err ? result.err : "find, du or awk failed");
    *out = (struct platform_kept){.bytes = kib * KIB, .n = (size_t)n};
    return 0;
}

static int open_site(struct platform *p, struct site **out, struct act_error *err)
{
    *out = NULL;
    return p->row->site ? p->row->site(p, out, err) : 0;
}

bool platform_can_remove(const struct platform *p)
{
    return p->row->site || p->row->remove;
}

int platform_size(struct platform *p, const char *id, uint64_t *out_bytes, bool *out_others, struct act_error *err)
{
    static const char exists[] = "[ -d \"$1/$2\" ] && echo 0 1 || echo 0 0";
    const char *const there[] = {"runs", id, NULL}, *const own[] = {"runs", "-name", id, NULL};
    struct platform_kept all = {0}, mine = {0};
    struct site *site = NULL;
    int rc = open_site(p, &site, err);

    if (rc == 0 && site && run_id_valid(id))
        rc = run_script(site, SUM, own, &mine, err);
    if (rc == 0 && site && mine.n == 0 && run_id_valid(id))
        rc = run_script(site, exists, there, &all, err);
    *out_bytes = mine.bytes;
    *out_others = all.n > 0;
    return rc;
}

int platform_remove(struct platform *p, const char *id, struct act_error *err)
{
    struct site *site = NULL;
    int rc = p->row->remove ? p->row->remove(p, id, err) : open_site(p, &site, err);

    if (rc < 0 || p->row->remove)
        return rc;
    if (!site)
        return act_error_set(err, ACT_USAGE, "cannot remove '%s': its service keeps its runs itself", id);
    return site_remove_run(site, id, err);
}

int platform_remove_package(struct platform *p, const char *sha256, bool dry_run, struct platform_kept *out,
                            struct act_error *err)
{
    ACT_AUTOFREE char *name = act_sprintf("%s.zip", sha256);
    const char *const words[] = {"packages", "-type", "f", "-name", name, NULL};
    struct site *site = NULL;
    int rc = open_site(p, &site, err);

    *out = (struct platform_kept){0};
    return rc < 0 || !site ? rc : run_script(site, dry_run ? SUM : REMOVE, words, out, err);
}

/* Whether a run there has not ended, as far as its folder says. */
static int is_busy(struct site *site, bool *out, struct act_error *err)
{
    ACT_AUTO(act_strv) ids = {0};
    int rc = site_list(site, &ids, err);

    *out = false;
    if (rc < 0 || ids.n == 0)
        return rc;
    struct site_state *states = act_calloc(ids.n, sizeof(*states));
    rc = site_states(site, (const char *const *)ids.v, ids.n, states, err);
    for (size_t i = 0; rc == 0 && i < ids.n; i++)
        *out = *out || !run_state_is_final(states[i].status.state);
    site_states_release(states, ids.n);
    free(states);
    return rc;
}

/* "bin/<16 hex>/act-node" */
static int name_of_agent(struct site *site, char **out, struct act_error *err)
{
    ACT_AUTOFREE char *path = NULL;
    bool there;
    int rc = site_find_agent(site, &path, &there, err);

    if (rc < 0)
        return rc;
    ACT_AUTOFREE char *dir = act_path_dirname(path);
    *out = act_strdup(act_path_basename(dir));
    return 0;
}

int platform_remove_agents(struct platform *p, int64_t older_s, bool dry_run, struct platform_kept *out, bool *out_busy,
                           struct act_error *err)
{
    ACT_AUTOFREE char *age = act_sprintf("+%lld", (long long)older_s / 60);
    ACT_AUTOFREE char *own = NULL;
    struct site *site = NULL;
    int rc = open_site(p, &site, err);

    *out = (struct platform_kept){0};
    *out_busy = false;
    if (rc < 0 || !site)
        return rc;
    rc = is_busy(site, out_busy, err);
    if (rc < 0 || *out_busy)
        return rc;
    rc = name_of_agent(site, &own, err);
    const char *const words[] = {"bin", "-type", "d", "-mmin", age, "!", "-name", own, NULL};
    return rc < 0 ? rc : run_script(site, dry_run ? SUM : REMOVE, words, out, err);
}

int platform_keeps(struct platform *p, struct platform_keeps *out, struct act_error *err)
{
    const struct {
        const char *folder;
        struct platform_kept *kept;
    } rows[] = {{"runs", &out->runs}, {"packages", &out->packages}, {"bin", &out->agents}};
    struct site *site = NULL;
    int rc = open_site(p, &site, err);

    *out = (struct platform_keeps){0};
    for (size_t i = 0; rc == 0 && site && i < sizeof(rows) / sizeof(rows[0]); i++) {
        const char *const words[] = {rows[i].folder, NULL};
        rc = run_script(site, SUM, words, rows[i].kept, err);
    }
    if (rc == 0 && site)
        out->where = act_strdup(site_root(site));
    return rc;
}
