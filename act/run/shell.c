#include "run/shell.h"

#include <string.h>

#include "base/units.h"

#define KEEP  "keep"
#define SERVE "host"

enum { AT_VERB, AT_IDLE, AT_LIMIT, AT_AWAY, AT_STAYS, AT_COMMAND };

void run_shell_words(const struct run_shell *shell, struct act_strv *out)
{
    ACT_STRV_PUSH(out, RUN_SHELL_AGENT, shell->serves ? SERVE : KEEP);
    act_strv_pushf(out, "%lld", (long long)shell->idle_s);
    act_strv_pushf(out, "%lld", (long long)shell->limit_s);
    act_strv_pushf(out, "%lld", (long long)shell->away_s);
    act_strv_push(out, shell->stays ? "stays" : "ends");
}

bool run_shell_of(const struct act_strv *argv, struct run_shell *out)
{
    size_t first;

    *out = (struct run_shell){0};
    return argv->n > 0 && strcmp(argv->v[0], RUN_SHELL_AGENT) == 0 &&
           run_shell_read(argv->v + 1, argv->n - 1, out, &first);
}

bool run_shell_is(const struct act_strv *argv)
{
    struct run_shell ignored;

    return run_shell_of(argv, &ignored);
}

static bool shell_read_time(const char *word, int64_t *out_s)
{
    return act_int_from_text(word, out_s) && *out_s >= 0 && *out_s <= INT32_MAX;
}

bool run_shell_read(char *const *words, size_t n, struct run_shell *out, size_t *out_first)
{
    *out = (struct run_shell){0};
    *out_first = AT_COMMAND;
    if (n < AT_COMMAND)
        return false;
    out->serves = strcmp(words[AT_VERB], SERVE) == 0;
    if (!out->serves && strcmp(words[AT_VERB], KEEP) != 0)
        return false;
    out->stays = strcmp(words[AT_STAYS], "stays") == 0;
    return shell_read_time(words[AT_IDLE], &out->idle_s) && shell_read_time(words[AT_LIMIT], &out->limit_s) &&
           shell_read_time(words[AT_AWAY], &out->away_s);
}
