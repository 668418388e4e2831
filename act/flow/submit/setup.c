/* setup.c - what a run asks its nodes to set up before the command (node/setup.h), from the configuration. */
#include <string.h>

#include "base/path.h"
#include "base/units.h"
#include "codec/yaml.h"
#include "config/config.h"
#include "config/kind.h"
#include "flow/submit/parts.h"
#include "flow/submit/passage.h"
#include "run/environments.h"

enum { LINES_MAX = 64 * 1024 }; /* bash gets them as one word, of at most 128 KiB (execve(2)) */

/* A name for modules or conda, or a folder: one line, and no option of the tool. */
static bool is_setup_word(const char *text)
{
    return *text && *text != '-' && !text[strcspn(text, " \t\r\n")];
}

static int check_modules(const struct config *c, struct act_error *err)
{
    const struct config_setup *s = &c->setup;

    for (size_t i = 0; i < s->modules.n; i++)
        if (!is_setup_word(s->modules.v[i]))
            return act_error_set(err, ACT_CONFIG, "'modules' must be a list of names such as cuda/12.1, not '%s'",
                                 s->modules.v[i]);
    return 0;
}

static int check_conda(const struct config *c, struct act_error *err)
{
    const char *conda = c->setup.conda;

    if (conda && environment_source_named(conda) && act_streq(c->environment.make, "none"))
        return act_error_set(err, ACT_CONFIG, "'conda' names '%s', and 'environment: none' has nothing made of it",
                             conda);
    if (!conda || environment_source_named(conda))
        return 0;
    if (act_ends_with(conda, ".yml") || act_ends_with(conda, ".yaml"))
        return act_error_set(
            err, ACT_CONFIG,
            "'conda' must name an environment that is there, or its folder, or be environment.yml, and "
            "not '%s'; make it once, with: conda env create -f %s",
            conda, conda);
    bool named = !strchr(conda, '/') || conda[0] == '/' || act_starts_with(conda, "~/");
    return named && is_setup_word(conda)
               ? 0
               : act_error_set(err, ACT_CONFIG,
                               "'conda' must be the name of an environment or its folder (/... or ~/...), not '%s'",
                               conda);
}

static int check_venv(const struct config *c, struct act_error *err)
{
    const char *venv = c->setup.venv;

    if (!venv || venv[0] == '/' || act_starts_with(venv, "~/"))
        return 0;
    return act_error_set(err, ACT_CONFIG,
                         "'venv' must be the folder of a virtual environment on the nodes (/... or ~/...), not '%s'",
                         venv);
}

static int check_lines(const char *key, const char *lines, struct act_error *err)
{
    if (!lines || strlen(lines) <= LINES_MAX)
        return 0;
    return act_error_set(err, ACT_CONFIG, "'%s' must be at most 64 KiB; put it into a script of the project", key);
}

static int read_timeout(const char *text, int *out, struct act_error *err)
{
    int64_t seconds = RUN_SETUP_USUAL_S;

    if (text && (!act_duration_from_text(text, &seconds) || seconds < 1 || seconds > RUN_SETUP_MOST_S))
        return act_error_set(err, ACT_CONFIG, "'setup_timeout' must be a time such as 90s or 20m, at most 1d, not '%s'",
                             text);
    *out = (int)seconds;
    return 0;
}

/* Such a folder is below the code, where mapped folders are, or the nodes have it. */
static int check_wheels(const struct config *c, struct act_error *err)
{
    const char *wheels = c->environment.wheels_folder;

    if (!wheels || wheels[0] == '/' || act_path_is_safe(wheels, strlen(wheels)))
        return 0;
    return act_error_set(err, ACT_CONFIG,
                         "'environment.wheels_folder' must be a folder of the nodes (/...), or one below the code such "
                         "as data/wheels, not '%s'",
                         wheels);
}

static int check_setup_lines(const struct config *c, struct act_error *err)
{
    return check_lines("setup", c->setup.lines, err);
}

static int check_rank_lines(const struct config *c, struct act_error *err)
{
    return check_lines("setup_rank", c->setup.rank_lines, err);
}

static int check_setup_timeout(const struct config *c, struct act_error *err)
{
    int ignored;

    return read_timeout(c->setup.timeout, &ignored, err);
}

const struct flow_setup_key flow_setup_keys[] = {
    {"modules", check_modules},
    {"conda", check_conda},
    {"venv", check_venv},
    {"setup", check_setup_lines},
    {"setup_rank", check_rank_lines},
    {"setup_timeout", check_setup_timeout},
    {"environment.wheels_folder", check_wheels},
    {0},
};

/* Reads what the configuration says, and the time that it gives; the caller gives it by give_time(). */
static int setup_read(const struct config *c, struct run_setup *out, int *out_timeout_s, struct act_error *err)
{
    const struct config_setup *s = &c->setup;
    const struct run_setup wanted = {.modules_purge = s->modules_purge,
                                     .modules = s->modules,
                                     .conda = s->conda,
                                     .venv = s->venv,
                                     .lines = s->lines,
                                     .rank_lines = s->rank_lines};
    int rc = 0;

    for (const struct flow_setup_key *key = flow_setup_keys; key->name && rc == 0; key++)
        rc = key->check(c, err);
    if (rc == 0)
        rc = read_timeout(s->timeout, out_timeout_s, err);
    if (rc == 0)
        run_setup_copy(&wanted, out);
    return rc;
}

/* A run that sets nothing up has no time for it either. */
static void give_time(int timeout_s, struct run_setup *setup)
{
    setup->timeout_s = run_setup_is_wanted(setup) || setup->rank_lines ? timeout_s : 0;
}

static unsigned setup_where(const char *word)
{
    return act_streq(word, "login") ? RUN_MAKES_LOGIN : act_streq(word, "nodes") ? RUN_MAKES_NODES : RUN_MAKES_USUAL;
}

static void take_needs(const struct config *c, struct run_needs *out)
{
    const struct config_environment *e = &c->environment;

    out->none = act_streq(e->make, "none");
    out->where = setup_where(e->where);
    if (!yaml_is_null(config_value(c, "environment.system_packages")))
        out->packages = e->system_packages ? RUN_PACKAGES_SYSTEM : RUN_PACKAGES_OWN;
    act_str_replace(&out->wheels, e->wheels_folder);
}

/* Refuses 'where: login' where it cannot work. This machine makes the environment of its own runs; elsewhere, a login
 * node knows neither the images of the nodes nor the folders that are mapped there. */
static int setup_check_login(struct passage *p, struct act_error *err)
{
    static const char key[] = "'environment: {where: login}'";
    struct run_needs *e = &p->spec->environment;
    const struct platform_row *row = platform_row(p->platform);

    if (p->here)
        e->where = RUN_MAKES_USUAL;
    if (e->where != RUN_MAKES_LOGIN || e->none)
        return 0;
    if (!row->about.has_login_node)
        return act_error_set(err, ACT_CONFIG,
                             "%s has the environment made on a login node, and the platform '%s' has none", key,
                             row->kind->name);
    if (p->spec->image)
        return act_error_set(
            err, ACT_CONFIG,
            "%s is for runs without an image, and this one has the image '%s', in which the nodes make "
            "its environment",
            key, p->spec->image);
    if (e->wheels && *e->wheels != '/')
        return act_error_set(err, ACT_CONFIG,
                             "%s needs 'environment.wheels_folder' to be a folder of the login node (/...), not '%s'",
                             key, e->wheels);
    return 0;
}

int step_take_setup(struct passage *p, struct act_error *err)
{
    int timeout_s = 0, rc = setup_read(p->flow->config, &p->spec->setup, &timeout_s, err);

    if (rc < 0)
        return rc;
    give_time(timeout_s, &p->spec->setup);
    take_needs(p->flow->config, &p->spec->environment);
    return setup_check_login(p, err);
}

/* Each key counts for itself, as -p may change one of them. */
static void repeat_setup(const struct config *c, const struct run_setup *old, struct run_setup *now)
{
    const struct {
        const char *key;
        char *old, **now;
    } texts[] = {
        {"conda", old->conda, &now->conda},
        {"venv", old->venv, &now->venv},
        {"setup", old->lines, &now->lines},
        {"setup_rank", old->rank_lines, &now->rank_lines},
    };

    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
        if (!config_is_said(c, texts[i].key))
            act_str_replace(texts[i].now, texts[i].old);
    if (!config_is_said(c, "modules_purge"))
        now->modules_purge = old->modules_purge;
    if (!config_is_said(c, "modules")) {
        act_strv_release(&now->modules);
        act_strv_copy(&now->modules, old->modules.v, old->modules.n);
    }
}

static void repeat_needs(const struct config *c, const struct run_needs *old, struct run_needs *now)
{
    take_needs(c, now);
    if (!config_is_said(c, "environment.make"))
        now->none = old->none;
    if (!config_is_said(c, "environment.system_packages"))
        now->packages = old->packages;
    if (!config_is_said(c, "environment.where"))
        now->where = old->where;
    if (!config_is_said(c, "environment.wheels_folder"))
        act_str_replace(&now->wheels, old->wheels);
}

int step_repeat_setup(struct passage *p, struct act_error *err)
{
    const struct config *c = p->flow->config;
    const struct run_setup *old = &p->old->spec.setup;
    int timeout_s = 0, rc;

    if (passage_is_moved(p)) /* other nodes have other modules */
        return step_take_setup(p, err);
    rc = setup_read(c, &p->spec->setup, &timeout_s, err);
    if (rc < 0)
        return rc;
    repeat_setup(c, old, &p->spec->setup);
    repeat_needs(c, &p->old->spec.environment, &p->spec->environment);
    give_time(config_is_said(c, "setup_timeout") || !old->timeout_s ? timeout_s : old->timeout_s, &p->spec->setup);
    return setup_check_login(p, err);
}
