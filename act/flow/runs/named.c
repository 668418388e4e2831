/* named.c - runs by the name that a service shows for them: those of other tools have one, which is no run id. */
#include <string.h>

#include "flow/runs/watch.h"
#include "platform/platform.h"

enum {
    NEWEST = 1000, /* of the experiment: so many are looked at */
    SHOWN = 5,
};

static bool named_is_called(const struct platform_run *run, const char *name)
{
    return strcmp(run->id, name) == 0 || strcmp(run->name, name) == 0 || act_streq(run->label, name);
}

static bool holds(const struct platform_run *run, const char *piece)
{
    return strstr(run->id, piece) || strstr(run->name, piece);
}

/* The runs that match, as places in runs. Returns how many. */
static size_t match(const struct platform_runs *runs, const char *piece,
                    bool (*fits)(const struct platform_run *run, const char *piece), size_t *out)
{
    size_t n = 0;

    for (size_t i = 0; i < runs->n; i++)
        if (fits(&runs->v[i], piece))
            out[n++] = i;
    return n;
}

static int named_ambiguous(const struct platform_runs *runs, const size_t *found, size_t n, const char *piece,
                           struct act_error *err)
{
    ACT_AUTO(act_buf) names = {0};

    for (size_t i = 0; i < n && i < SHOWN; i++) {
        const struct platform_run *run = &runs->v[found[i]];
        act_buf_addf(&names, "%s%s", i ? ", " : "", run->id);
        if (strcmp(run->id, run->name) != 0)
            act_buf_addf(&names, " (%s)", run->name);
    }
    return act_error_set(err, ACT_USAGE, "'%s' could be any of %zu runs: %s%s", piece, n, names.data,
                         n > SHOWN ? ", ..." : "");
}

int flow_find_named(struct platform *platform, const char *piece, char **out_id, struct act_error *err)
{
    ACT_AUTO(platform_runs) runs = {0};
    int rc = platform_recent(platform, NULL, NEWEST, &runs, err);
    ACT_AUTOFREE size_t *found = act_calloc(runs.n + 1, sizeof(*found));
    size_t n = match(&runs, piece, named_is_called, found);

    *out_id = NULL;
    n = n ? n : match(&runs, piece, holds, found);
    if (rc == 0 && n > 1)
        rc = named_ambiguous(&runs, found, n, piece, err);
    else if (rc == 0 && n == 1)
        *out_id = act_strdup(runs.v[found[0]].id);
    else if (rc == 0 && run_name_valid(piece)) /* of another experiment, when it is the whole name */
        *out_id = act_strdup(piece);
    return rc;
}
