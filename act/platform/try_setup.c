/* try_setup.c - whether modules, conda and virtual environment of a configuration are there, for "a doctor". */
#include <string.h>

#include "platform/platform_internal.h"
#include "run/run.h"
#include "site/site.h"

#define MARK_MODULES "act-modules "
#define MARK_PYTHON  "act-python "

/* Said in the environment that was made, among what modules may print. */
static const char report[] =
    "echo \"" MARK_MODULES "${LOADEDMODULES:-}\"\n"
    "python=$(command -v python3) || exit 0\n"
    "version=$(\"$python\" -I -S -c 'import sys; print(\"%d.%d.%d\" % sys.version_info[:3])') || exit 0\n"
    "echo \"" MARK_PYTHON "Python $version, '$python'\"";

/* Returns what is behind the mark in the last line that begins with it. New string; empty: there is none. */
static char *marked(const char *text, const char *mark)
{
    const char *found = "";

    for (const char *line = text; line && *line; line += strcspn(line, "\n"), line += *line == '\n')
        if (act_starts_with(line, mark))
            found = line + strlen(mark);
    return act_strndup(found, strcspn(found, "\n"));
}

/* Returns the reason that setup.sh gives. New string. */
static char *reason(const char *said)
{
    ACT_AUTOFREE char *own = marked(said, RUN_LOG_AGENT);

    return act_strdup(*own ? own : "bash failed and did not say why");
}

static char *success(const char *said)
{
    ACT_AUTOFREE char *modules = marked(said, MARK_MODULES), *python = marked(said, MARK_PYTHON);

    for (char *c = modules; *c; c++)
        *c = *c == ':' ? ' ' : *c;
    return act_sprintf("%s%s%s%s", *modules ? "modules " : "", modules, *modules ? ", " : "",
                       *python ? python : "no python3");
}

bool platform_try_setup(struct site *site, const struct platform_trial *trial, char **out)
{
    struct run_setup tried = trial->setup;
    ACT_AUTO(act_strv) words = {0};
    ACT_AUTO(site_result) result = {0};
    struct act_error err;

    tried.lines = NULL; /* they may do anything, and are for nodes */
    run_setup_words("run", "", &tried, &words);
    ACT_STRV_PUSH(&words, "sh", "-c", report);
    const struct site_command command = {.argv = (const char *const *)words.v, .cwd = "/", .begins_runs = true};
    int rc = site_run(site, &command, &result, &err);
    bool works = rc == 0 && result.status == 0;
    *out = rc < 0 ? act_strdup(act_error_text(&err)) : works ? success(result.out) : reason(result.err);
    return works;
}

void platform_judge_setup(const char *where, bool works, const char *said, const struct platform_trial *trial,
                          struct platform_findings *findings)
{
    platform_findings_add(findings, works, "setup", "%s: %s%s", where, said,
                          works && trial->setup.lines ? "; the lines of 'setup' were not tried" : "");
}
