/* setup.c - what a run's nodes set up before the command. */
#include "base/text.h"
#include "run/environments.h"
#include "run/run.h"

__asm__(".pushsection .rodata\n"
        ".global setup_script\n"
        "setup_script:\n"
        ".incbin \"" SETUP_SCRIPT "\"\n"
        ".byte 0\n"
        ".popsection\n");
extern const char setup_script[];

static const char *or_empty(const char *text)
{
    return text ? text : "";
}

void run_setup_words(const char *mode, const char *folder, const struct run_setup *s, struct act_strv *out)
{
    ACT_AUTO(act_buf) modules = {0};
    const char *conda = environment_source_named(s->conda) ? NULL : s->conda; /* which is made afterwards */

    for (size_t i = 0; i < s->modules.n; i++)
        act_buf_addf(&modules, "%s\n", s->modules.v[i]);
    ACT_STRV_PUSH(out, "bash", "--noprofile", "--norc", "-c", setup_script, "act-setup", mode, folder,
                  s->modules_purge ? "purge" : "", or_empty(modules.data), or_empty(conda), or_empty(s->venv),
                  or_empty(s->lines));
}

bool run_setup_is_wanted(const struct run_setup *setup)
{
    return setup->modules_purge || setup->modules.n || setup->conda || setup->venv || setup->lines;
}

void run_setup_release(struct run_setup *setup)
{
    act_strv_release(&setup->modules);
    free(setup->conda);
    free(setup->venv);
    free(setup->lines);
    free(setup->rank_lines);
    *setup = (struct run_setup){0};
}

void run_setup_copy(const struct run_setup *from, struct run_setup *to)
{
    struct run_setup copy = {
        .timeout_s = from->timeout_s,
        .modules_purge = from->modules_purge,
        .conda = act_strdup(from->conda),
        .venv = act_strdup(from->venv),
        .lines = act_strdup(from->lines),
        .rank_lines = act_strdup(from->rank_lines),
    };

    act_strv_copy(&copy.modules, from->modules.v, from->modules.n);
    run_setup_release(to);
    *to = copy;
}
