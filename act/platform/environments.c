/* environments.c - the environments that runs have made beside themselves (node/environment.h). The tools of the site
 * look at them, as in keep.c.
 *
 * The link of one that is removed goes first: who takes one up looks for it last. One that a login node makes before
 * the run is queued is asked for until it is there (node/ahead.c).
 */
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/path.h"
#include "base/text.h"
#include "codec/json.h"
#include "platform/platform_internal.h"

enum { KIB = 1024, LONG_S = 600 };

/* used DIR MINUTES: a run took it up in the last MINUTES, or has not ended. is_linked DIR: it is whole.
 * is_being_made, after that: who has the lock makes it, and not what a maker of another node has left. */
#define COMMON                                                                                                         \
    "used() {\n"                                                                                                       \
    "for r in \"$1\"/runs/*; do\n"                                                                                     \
    "[ -z \"$(find \"$r\" -mmin \"-$2\" 2>/dev/null)\" ] || return 0\n"                                                \
    "! grep -Eq '\"state\": *\"(Queued|Running)\"' \"runs/${r##*/}/status.json\" 2>/dev/null || return 0\n"            \
    "done\n"                                                                                                           \
    "return 1\n"                                                                                                       \
    "}\n"                                                                                                              \
    "is_linked() {\n"                                                                                                  \
    "name=${1##*/} link=${1%-*}\n"                                                                                     \
    "[ -h \"$link\" ] && [ \"$(readlink \"$link\")\" = \"$name\" ]\n"                                                  \
    "}\n"                                                                                                              \
    "is_being_made() { cmp -s \"$1/maker\" \"$link.lock\" && ! flock -n \"$link.lock\" true 2>/dev/null; }\n"          \
    "own() { [ ! -d environments ] || find environments -mindepth 1 -maxdepth 1 -type d -uid \"$(id -u)\" \"$@\"; }\n"

#define ALL "?*-?*"

/* $1: "go" removes them; $2: minutes; $3: which names. What is not linked may be in the making, for a day. With all of
 * them goes what their tools have cached, if none was made for so long, which counts as one, and locks that nobody
 * needs. */
static const char environments_sweep[] = COMMON
    "sum=0 n=0\n"
    "for d in $(own -name \"$3\" -mmin \"+$2\"); do\n"
    "linked=\n"
    "! is_linked \"$d\" || linked=yes\n"
    "[ -n \"$linked\" ] || [ -n \"$(find \"$d\" -maxdepth 0 -mmin +1440)\" ] || continue\n"
    "! used \"$d\" \"$2\" || continue\n"
    "kib=$(du -sk \"$d\" | cut -f 1)\n"
    "if [ \"$1\" = go ]; then\n"
    "[ -z \"$linked\" ] || rm -f \"$link\"\n"
    "if used \"$d\" \"$2\"; then [ -z \"$linked\" ] || ln -s \"$name\" \"$link\"; continue; fi\n"
    "chmod -R u+w -- \"$d\"\n" /* of conda (environment_protect()) */
    "rm -rf -- \"$d\"\n"
    "fi\n"
    "sum=$((sum + kib)) n=$((n + 1))\n"
    "done\n"
    "idle=$2\n"
    "[ $idle -gt 1440 ] || idle=1440\n"
    "if [ \"$3\" = '" ALL "' ] && [ -d environments ]; then\n"
    "for l in $(find environments -maxdepth 1 -name '*.lock' -mmin +$idle -uid \"$(id -u)\"); do\n"
    "[ \"$1\" != go ] || [ -h \"${l%.lock}\" ] || rm -f -- \"$l\"\n"
    "done\n"
    "if [ -d environments/cache ] && [ -z \"$(find environments -maxdepth 2 -name maker -mmin -$idle)\" ]; then\n"
    "sum=$((sum + $(du -sk environments/cache | cut -f 1))) n=$((n + 1))\n"
    "[ \"$1\" != go ] || rm -rf environments/cache\n"
    "fi\n"
    "fi\n"
    "echo $sum $n\n";

/* A line for each: NAME KIB RUNS SECONDS STATE ABOUT. SECONDS: when a run took it up last. */
static const char environments_list[] =
    COMMON "for d in $(own -name '?*-?*'); do\n"
           "state=idle\n"
           "if ! is_linked \"$d\"; then is_being_made \"$d\" || continue; state=making\n"
           "elif used \"$d\" 0; then state=used; fi\n"
           "set -- \"$d\"/runs/*\n"
           "[ -e \"$1\" ] || shift\n"
           "last=$([ $# -eq 0 ] || stat -c %Y -- \"$@\" | sort -n | tail -n 1)\n"
           "echo \"$name $(du -sk \"$d\" | cut -f 1) $# ${last:-0} $state $(tr -d '\\n' <\"$d/about.json\")\"\n"
           "done\n";

static int environments_sweep_site(struct platform *p, const char *names, int64_t older_s, bool dry_run,
                                   struct platform_kept *out, struct act_error *err)
{
    ACT_AUTOFREE char *age = act_sprintf("%lld", (long long)older_s / 60);
    const char *const words[] = {dry_run ? "look" : "go", age, names, NULL};
    struct site *site = NULL;
    int rc = platform_keep_open_site(p, &site, err);

    *out = (struct platform_kept){0};
    return rc < 0 || !site ? rc : platform_keep_sum(site, environments_sweep, words, out, err);
}

int platform_remove_environments(struct platform *p, int64_t older_s, bool dry_run, struct platform_kept *out,
                                 struct act_error *err)
{
    return environments_sweep_site(p, ALL, older_s, dry_run, out, err);
}

int platform_remove_environment(const struct platform_environment *environment, bool *out_gone, struct act_error *err)
{
    ACT_AUTOFREE char *name = act_sprintf("%s-*", environment->key);
    struct platform_kept kept;
    int rc = environments_sweep_site(environment->machine, name, 0, false, &kept, err);

    *out_gone = kept.n > 0;
    return rc;
}

/* ---- listing them */

void platform_environments_release(struct platform_environments *environments)
{
    for (size_t i = 0; i < environments->n; i++) {
        free(environments->v[i].key);
        free(environments->v[i].path);
        environment_about_release(&environments->v[i].about);
    }
    free(environments->v);
    *environments = (struct platform_environments){0};
}

static enum platform_environment_state environment_state(const char *word)
{
    return strcmp(word, "making") == 0 ? ENVIRONMENT_IN_THE_MAKING
           : strcmp(word, "used") == 0 ? ENVIRONMENT_IN_USE
                                       : ENVIRONMENT_IDLE;
}

/* Adds the environment of a line, but leaves out one that somebody has changed by hand so that it cannot be read. */
static void environments_add(struct platform *machine, const char *root, const char *line,
                             struct platform_environments *out)
{
    struct platform_environment e = {.machine = machine};
    unsigned long long kib, n_runs;
    long long used;
    char name[64], state[8];
    int at = 0;
    CODEC_AUTOJSON json_t *about = NULL;
    struct act_error ignored;

    if (sscanf(line, "%63s %llu %llu %lld %7s %n", name, &kib, &n_runs, &used, state, &at) != 5 || at == 0 ||
        codec_json_parse(line + at, strlen(line + at), "about.json", &about, &ignored) < 0)
        return;
    if (environment_about_from_json(about, &e.about, &ignored) < 0) {
        environment_about_release(&e.about);
        return;
    }
    e.key = act_strndup(name, strcspn(name, "-"));
    e.path = act_sprintf("%s/" ENVIRONMENTS_DIR "/%s/" ENVIRONMENTS_ENV, root, name);
    e.bytes = kib * KIB;
    e.n_runs = (size_t)n_runs;
    e.used_unix_s = used;
    e.state = environment_state(state);
    ACT_PUSH(out->v, out->n, e);
}

static int environments_list_site(struct platform *machine, struct site *site, struct platform_environments *out,
                                  struct act_error *err)
{
    ACT_AUTO(site_result) result = {0};
    const char *const argv[] = {"sh", "-c", environments_list, NULL};
    int rc = site_run(site, &(struct site_command){.argv = argv, .timeout_s = LONG_S}, &result, err);

    if (rc == 0 && result.status != 0)
        rc = act_error_set(err, ACT_FAIL, "cannot list the environments in '%s': %s", site_root(site),
                           result.err && *result.err ? result.err : "find, du or stat failed");
    char *rest = rc == 0 ? result.out : NULL;
    for (char *line; (line = strsep(&rest, "\n"));)
        environments_add(machine, site_root(site), line, out);
    return rc;
}

int platform_list_environments(struct platform *p, struct platform_environments *out, struct act_error *err)
{
    struct platform *machine;
    int rc = 0;

    *out = (struct platform_environments){0};
    for (size_t i = 0; rc == 0 && (machine = platform_machine(p, i)); i++) {
        struct site *site = NULL;
        rc = platform_keep_open_site(machine, &site, err);
        if (rc == 0 && !site)
            return act_error_set(err, ACT_NOT_FOUND,
                                 "runs in containers keep no environments: each makes its own, which goes with it");
        if (rc == 0)
            rc = environments_list_site(machine, site, out, err);
    }
    return rc;
}

/* ---- having one made by the login node */

/* An order for an environment, and what has been said of it. */
struct environments_order {
    struct site *site;
    const char *agent, *input;
    int n_begun; /* how often it was begun: a worker may be killed */
    int64_t told_ms;
};

static int environments_ask(const struct environments_order *a, json_t **out, struct act_error *err)
{
    const char *const argv[] = {a->agent, "environment", site_root(a->site), NULL};
    const struct site_command command = {
        .argv = argv, .input = a->input, .input_len = strlen(a->input), .cwd = "/", .begins_runs = true};
    ACT_AUTO(site_result) result = {0};
    int rc = site_run(a->site, &command, &result, err);

    if (rc < 0)
        return rc;
    if (result.status != 0)
        return act_error_set(err, ACT_FAIL, "the login node cannot make the environment: %s",
                             result.err && *result.err ? result.err : "its agent failed and did not say why");
    return codec_json_parse(result.out, result.out_len, "the login node's answer", out, err);
}

/* Says now and then how far it is. */
static void environments_tell(struct environments_order *a, const char *text)
{
    enum { TELL_MS = 10 * 1000 };
    int64_t now_ms = act_now_monotonic_ms();

    if (!*text || (a->told_ms && now_ms - a->told_ms < TELL_MS))
        return;
    a->told_ms = now_ms;
    act_note("on the login node: %s", text);
}

static int environments_refuse(const json_t *answer, struct act_error *err)
{
    ACT_AUTOFREE char *log = act_strdup(codec_json_str(answer, "log", ""));
    char *rest = log;

    for (const char *line; (line = strsep(&rest, "\n"));)
        if (*line)
            act_note("  %s", line);
    return act_error_set(err, ACT_FAIL, "on the login node: %s", codec_json_str(answer, "text", "it said nothing"));
}

static int environments_await(struct environments_order *a, char **out_key, struct act_error *err)
{
    enum { BEGUN_MOST = 3 };

    for (;;) {
        CODEC_AUTOJSON json_t *answer = NULL;
        int rc = environments_ask(a, &answer, err);
        const char *state = codec_json_str(answer, "state", "");
        if (rc < 0)
            return rc;
        if (strcmp(state, "made") == 0) {
            *out_key = act_strdup(codec_json_str(answer, "key", NULL));
            return 0;
        }
        a->n_begun += strcmp(state, "begun") == 0;
        if (strcmp(state, "failed") == 0)
            return environments_refuse(answer, err);
        if (a->n_begun > BEGUN_MOST)
            return act_error_set(err, ACT_FAIL,
                                 "the login node ends what makes the environment again and again; it may limit what "
                                 "runs there: make it on the nodes ('environment: {where: nodes}')");
        environments_tell(a, codec_json_str(answer, "text", ""));
    }
}

int platform_make_ahead(struct site *site, const struct run_spec *spec, const char *package, char **out_key,
                        struct act_error *err)
{
    CODEC_AUTOJSON json_t *input =
        json_pack("{s:o, s:o}", "run", run_spec_to_json(spec), "secrets", run_secrets_to_json(spec));
    ACT_AUTOWIPE char *text = codec_json_line(input);
    ACT_AUTOFREE char *agent = NULL;
    int rc = site_agent(site, &agent, err);

    *out_key = NULL;
    if (rc == 0)
        rc = site_bring_package(site, package, spec->package_sha256, err);
    return rc < 0 ? rc
                  : environments_await(&(struct environments_order){.site = site, .agent = agent, .input = text},
                                       out_key, err);
}
