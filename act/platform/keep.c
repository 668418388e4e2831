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
/* The same, and then it is removed. find(1) minds what somebody else removes while it looks, so that it looks again. */
#define REMOVE                                                                                                         \
    SUM "go() { find \"$d\" -mindepth 1 -maxdepth 1 -uid \"$(id -u)\" \"$@\" -exec rm -rf -- {} +; }\n"                \
        "go \"$@\" 2>/dev/null || go \"$@\"\n"

int platform_keep_sum(struct site *site, const char *script, const char *const *words, struct platform_kept *out,
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

int platform_keep_open_site(struct platform *p, struct site **out, struct act_error *err)
{
    *out = NULL;
    return p->row->keep.site ? p->row->keep.site(p, out, err) : 0;
}

char *platform_code_folder(struct platform *p, const struct run_spec *spec)
{
    struct site *site = NULL;
    struct act_error ignored;

    if (p->row->keep.machine || spec->scratch || spec->nodes > 1 || platform_keep_open_site(p, &site, &ignored) < 0 ||
        !site)
        return NULL;
    ACT_AUTOFREE char *folder = site_run_dir(site, spec->id);
    return act_path_join(folder, RUN_DIR_CODE);
}

/* Opens the one site of a platform that can be asked ahead. *out NULL: of several machines each is asked by itself, all
 * at once, so that a response which is awaited would be missed like one that did not come. */
static int keep_site_ahead(struct platform *p, struct site **out, struct act_error *err)
{
    *out = NULL;
    return p->row->keep.machine && p->row->keep.machine(p, 1) ? 0 : platform_keep_open_site(p, out, err);
}

int platform_ahead(struct platform *p, struct act_error *err)
{
    struct site *site;
    int rc = keep_site_ahead(p, &site, err);

    return rc == 0 && site ? site_ahead(site) : rc;
}

void platform_ahead_end(struct platform *p)
{
    struct act_error ignored;
    struct site *site;

    if (keep_site_ahead(p, &site, &ignored) == 0 && site)
        site_ahead_end(site);
}

void platform_ahead_drop(struct platform *p)
{
    struct act_error ignored;
    struct site *site;

    if (keep_site_ahead(p, &site, &ignored) == 0 && site)
        site_ahead_drop(site);
}

struct platform *platform_machine(struct platform *p, size_t i)
{
    if (p->row->keep.machine)
        return p->row->keep.machine(p, i);
    return i == 0 ? p : NULL;
}

bool platform_is_same_machine(struct platform *a, struct platform *b)
{
    struct site *of_a = NULL, *of_b = NULL;
    struct act_error ignored;

    if (a == b)
        return true;
    return a->row == b->row && platform_keep_open_site(a, &of_a, &ignored) == 0 &&
           platform_keep_open_site(b, &of_b, &ignored) == 0 && of_a && of_b && site_is_same(of_a, of_b);
}

bool platform_can_remove(const struct platform *p)
{
    return p->row->keep.site || p->row->keep.remove;
}

/* A line "T ID" for each of these folders of runs that is there, and then "KIB ID" for each that is this user's. */
static const char SIZES[] = "cd ./runs 2>/dev/null || exit 0\n"
                            "for id; do shift; [ -d \"$id\" ] && set -- \"$@\" \"$id\"; done\n"
                            "[ $# -gt 0 ] || exit 0\n"
                            "printf 'T\\t%s\\n' \"$@\"\n"
                            "find \"$@\" -maxdepth 0 -uid \"$(id -u)\" -exec du -sk {} +\n"
                            "exit 0\n";

static void keep_read_size(const char *line, const char *const *ids, size_t n, struct platform_size *out)
{
    const char *tab = strchr(line, '\t');
    unsigned long long kib;
    size_t i = 0;

    while (tab && i < n && strcmp(ids[i], tab + 1) != 0)
        i++;
    if (!tab || i == n)
        return;
    if (sscanf(line, "%llu", &kib) == 1)
        out[i] = (struct platform_size){.bytes = kib * KIB};
    else
        out[i] = (struct platform_size){.others = true}; /* unless a line with its size follows */
}

/* Measures on one machine. */
static int keep_sizes_on(struct platform *p, const char *const *ids, size_t n, struct platform_size *out,
                         struct act_error *err)
{
    ACT_AUTO(site_result) result = {0};
    ACT_AUTO(act_strv) argv = {0};
    struct site *site = NULL;
    int rc = platform_keep_open_site(p, &site, err);

    if (rc < 0 || !site)
        return rc;
    ACT_STRV_PUSH(&argv, "sh", "-c", SIZES, "sh");
    for (size_t i = 0; i < n; i++)
        if (run_id_valid(ids[i]))
            act_strv_push(&argv, ids[i]);
    rc = site_run(site, &(struct site_command){.argv = (const char *const *)argv.v, .timeout_s = LONG_S}, &result, err);
    if (rc == 0 && result.status != 0)
        return act_error_set(err, ACT_FAIL, "cannot measure '%s/runs': %s", site_root(site),
                             result.err && *result.err ? result.err : "sh failed");
    char *text = result.out;
    for (char *line; rc == 0 && (line = strsep(&text, "\n"));)
        keep_read_size(line, ids, n, out);
    return rc;
}

/* A run may have a folder on each of several machines. */
int platform_sizes(struct platform *p, const char *const *ids, size_t n, struct platform_size *out,
                   struct act_error *err)
{
    ACT_AUTOFREE struct platform_size *here = act_calloc(n + 1, sizeof(*here));
    struct platform *one;
    int rc = 0;

    memset(out, 0, n * sizeof(*out));
    for (size_t m = 0; rc == 0 && (one = platform_machine(p, m)); m++) {
        memset(here, 0, n * sizeof(*here));
        rc = keep_sizes_on(one, ids, n, here, err);
        for (size_t i = 0; rc == 0 && i < n; i++) {
            out[i].bytes += here[i].bytes;
            out[i].others = out[i].others || here[i].others;
        }
    }
    return rc;
}

static int keep_remove_on(struct platform *p, const char *id, struct act_error *err)
{
    struct site *site = NULL;
    int rc = p->row->keep.remove ? p->row->keep.remove(p, id, err) : platform_keep_open_site(p, &site, err);

    if (rc < 0 || p->row->keep.remove)
        return rc;
    if (!site)
        return act_error_set(err, ACT_USAGE, "cannot remove '%s': its service keeps its runs itself", id);
    return site_remove_run(site, id, err);
}

int platform_remove(struct platform *p, const char *id, struct act_error *err)
{
    struct platform *one;
    int rc = 0;

    for (size_t i = 0; rc == 0 && (one = platform_machine(p, i)); i++)
        rc = keep_remove_on(one, id, err);
    return rc;
}

/* ---- packages that nobody needs */

/* $1: older than that. A line for each package ("P KIB PATH"), old one ("O PATH"), folder of a run that has to say
 * what it needs ("R PATH"; "R ?": they cannot be listed) and what it says ("U PATH:..."). What is left of a folder of
 * this user that is no run yet, or no more, says nothing. */
static const char PACKAGES[] =
    "[ -d packages ] || exit 0\n"
    "own() { find packages -mindepth 1 -maxdepth 1 -type f -uid \"$(id -u)\" -name '*.zip' \"$@\"; }\n"
    "own -exec du -sk {} + | sed 's/^/P /'\n"
    "own -mmin \"$1\" | sed 's/^/O /'\n"
    "for d in runs new; do\n"
    "[ -d $d ] || continue\n"
    "[ -r $d ] && [ -x $d ] || echo 'R ?'\n"
    "[ $d = runs ] && mine= || mine=\"! -uid $(id -u)\"\n"
    "find $d -mindepth 1 -maxdepth 1 -type d $mine | sed 's/^/R /'\n"
    "find $d -mindepth 2 -maxdepth 2 -name run.json -exec grep -o '\"package_sha256\": *\"[0-9a-f]*\"' /dev/null {} +"
    " 2>/dev/null | sed 's/^/U /'\n"
    "done\n"
    "exit 0\n";

struct references {
    struct act_strv old, folders, told, used; /* told: the folders that say something */
};

/* Tells whether a sorted list has this text: there may be 100,000 runs. */
static bool keep_holds(const struct act_strv *sorted, const char *text)
{
    return sorted->n && bsearch(&text, sorted->v, sorted->n, sizeof(*sorted->v), act_by_text);
}

static void release_references(struct references *r)
{
    act_strv_release(&r->old);
    act_strv_release(&r->folders);
    act_strv_release(&r->told);
    act_strv_release(&r->used);
}

/* Returns the hash in "packages/<64 hex>.zip". New string. */
static char *sha256_of(const char *path)
{
    const char *name = act_path_basename(path);

    return act_strndup(name, strcspn(name, "."));
}

static void add_package(const char *text, struct platform_packages *out)
{
    unsigned long long kib;
    const char *path = strchr(text, '/');

    if (path && sscanf(text, "%llu", &kib) == 1)
        ACT_PUSH(out->v, out->n, (struct platform_package){.sha256 = sha256_of(path), .bytes = kib * KIB});
}

/* "runs/<id>/run.json:"package_sha256": "<64 hex>"" */
static void add_user(const char *text, const struct act_strv *going, struct references *r)
{
    const char *end = strstr(text, "/run.json:"), *value = strrchr(text, ' ');
    ACT_AUTOFREE char *folder = end ? act_strndup(text, (size_t)(end - text)) : act_strdup(text);

    value = value ? value : strrchr(text, ':');
    act_strv_push(&r->told, folder);
    if (value && !keep_holds(going, act_path_basename(folder)))
        act_strv_take(&r->used, act_strndup(value + 1 + (value[1] == '"'), strcspn(value + 2, "\"")));
}

static void read_references(char *text, const struct act_strv *going, struct references *r,
                            struct platform_packages *out)
{
    for (char *line; (line = strsep(&text, "\n"));) {
        if (act_starts_with(line, "P "))
            add_package(line + 2, out);
        else if (act_starts_with(line, "O "))
            act_strv_take(&r->old, sha256_of(line + 2));
        else if (act_starts_with(line, "R "))
            act_strv_push(&r->folders, line + 2);
        else if (act_starts_with(line, "U "))
            add_user(line + 2, going, r);
    }
    act_strv_sort(&r->told);
    act_strv_sort(&r->used);
}

/* Tells whether every folder of a run has told what it needs. */
static bool is_known(const struct references *r, const struct act_strv *going)
{
    for (size_t i = 0; i < r->folders.n; i++)
        if (!keep_holds(&r->told, r->folders.v[i]) && !keep_holds(going, act_path_basename(r->folders.v[i])))
            return false;
    return true;
}

static void keep_unused(const struct references *r, struct platform_packages *out)
{
    size_t n = 0;

    for (size_t i = 0; i < out->n; i++) {
        out->v[i].is_old = act_strv_has(&r->old, out->v[i].sha256);
        if (out->unknown || keep_holds(&r->used, out->v[i].sha256))
            free(out->v[i].sha256);
        else
            out->v[n++] = out->v[i];
    }
    out->n = n;
}

void platform_packages_release(struct platform_packages *packages)
{
    for (size_t i = 0; i < packages->n; i++)
        free(packages->v[i].sha256);
    free(packages->v);
    *packages = (struct platform_packages){0};
}

int platform_unused_packages(struct platform *p, int64_t older_s, const struct act_strv *going,
                             struct platform_packages *out, struct act_error *err)
{
    ACT_AUTOFREE char *age = act_sprintf("+%lld", (long long)older_s / 60);
    const char *const argv[] = {"sh", "-c", PACKAGES, "sh", age, NULL};
    ACT_AUTO(site_result) result = {0};
    struct references r = {0};
    struct site *site = NULL;
    int rc = platform_keep_open_site(p, &site, err);

    *out = (struct platform_packages){0};
    if (rc < 0 || !site)
        return rc;
    rc = site_run(site, &(struct site_command){.argv = argv, .timeout_s = LONG_S}, &result, err);
    if (rc < 0)
        return rc;
    if (result.out)
        read_references(result.out, going, &r, out);
    out->unknown = out->n > 0 && !is_known(&r, going);
    keep_unused(&r, out);
    release_references(&r);
    return 0;
}

int platform_remove_package(struct platform *p, const char *sha256, bool dry_run, struct platform_kept *out,
                            struct act_error *err)
{
    ACT_AUTOFREE char *name = act_sprintf("%s.zip", sha256);
    const char *const words[] = {"packages", "-type", "f", "-name", name, NULL};
    struct site *site = NULL;
    int rc = platform_keep_open_site(p, &site, err);

    *out = (struct platform_kept){0};
    return rc < 0 || !site ? rc : platform_keep_sum(site, dry_run ? SUM : REMOVE, words, out, err);
}

/* Sets *out to whether a run there has not ended, as far as its folder says. */
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

/* Where no run is under way, the locks by which runs shared a job's or a run's part of a machine (node/slots.h) go, two
 * days after the last of them was made. */
#define REMOVE_WITH_SLOTS                                                                                              \
    "find slots -mindepth 2 -maxdepth 2 -type d -uid \"$(id -u)\" \\( -name 'job-*' -o -name 'run-*' \\) -mtime +1 "   \
    "-exec rm -rf -- {} + 2>/dev/null\n" REMOVE

int platform_remove_agents(struct platform *p, int64_t older_s, bool dry_run, struct platform_kept *out, bool *out_busy,
                           struct act_error *err)
{
    ACT_AUTOFREE char *age = act_sprintf("+%lld", (long long)older_s / 60);
    ACT_AUTOFREE char *own = NULL;
    struct site *site = NULL;
    int rc = platform_keep_open_site(p, &site, err);

    *out = (struct platform_kept){0};
    *out_busy = false;
    if (p->row->keep.remove_agents)
        return p->row->keep.remove_agents(p, older_s, dry_run, out, err);
    if (rc < 0 || !site)
        return rc;
    rc = is_busy(site, out_busy, err);
    if (rc < 0 || *out_busy)
        return rc;
    rc = name_of_agent(site, &own, err);
    const char *const words[] = {"bin", "-type", "d", "-mmin", age, "!", "-name", own, NULL};
    return rc < 0 ? rc : platform_keep_sum(site, dry_run ? SUM : REMOVE_WITH_SLOTS, words, out, err);
}

int platform_clear(struct platform *p, bool dry_run, struct platform_kept *out, struct act_error *err)
{
    struct site_left left = {0};
    struct site *site = NULL;
    int rc = platform_keep_open_site(p, &site, err);

    if (rc == 0 && site)
        rc = site_clear(site, dry_run, &left, err);
    *out = (struct platform_kept){.bytes = left.bytes, .n = left.n};
    return rc;
}

int platform_keeps(struct platform *p, struct platform_keeps *out, struct act_error *err)
{
    const struct {
        const char *folder, *name;
        struct platform_kept *kept;
    } rows[] = {{"runs", "*", &out->runs},
                {"packages", "*", &out->packages},
                {"bin", "*", &out->agents},
                {"environments", "?*-?*", &out->environments}};
    struct site *site = NULL;
    int rc = platform_keep_open_site(p, &site, err);

    *out = (struct platform_keeps){0};
    for (size_t i = 0; rc == 0 && site && i < sizeof(rows) / sizeof(rows[0]); i++) {
        const char *const words[] = {rows[i].folder, "-name", rows[i].name, NULL};
        rc = platform_keep_sum(site, SUM, words, rows[i].kept, err);
    }
    if (rc == 0 && site)
        rc = platform_clear(p, true, &out->left, err);
    if (rc == 0 && site)
        out->where = act_strdup(site_root(site));
    return rc;
}
