/* paths.c - RUN:PATH, which names the logs of a run where a verb takes a path. */
#include <string.h>

#include "base/path.h"
#include "flow/data/data_internal.h"
#include "flow/logs/logs.h"
#include "flow/runs/watch.h"
#include "flow/source/source.h"

/* The part before the ':' of such a word, new; NULL: it cannot be one. */
static char *piece_of(const char *word)
{
    size_t n = strcspn(word, ":/");

    return n > 0 && word[n] == ':' ? act_strndup(word, n) : NULL;
}

static int explain_neither(const char *piece, const struct act_error *no_path, struct act_error *err)
{
    return act_error_set(err, ACT_NOT_FOUND, "there is no run '%s' ('a q' lists the runs), and no such path: %s", piece,
                         act_error_text(no_path));
}

int flow_names_run(struct flow *flow, const char *word, struct act_error *err)
{
    ACT_AUTOFREE char *piece = piece_of(word);
    struct act_error no_path;

    if (!piece)
        return 0;
    int known = flow_knows_run(flow, piece, false, err);
    if (known == 0)
        return 1;
    int rc = flow_check_path(flow, word, &no_path);
    if (rc != -ACT_NOT_FOUND && rc != -ACT_USAGE) {
        *err = rc < 0 ? no_path : (struct act_error){0};
        return rc;
    }
    rc = known == -ACT_NOT_FOUND ? flow_knows_run(flow, piece, true, err) : known;
    return rc == 0 ? 1 : rc == -ACT_NOT_FOUND ? explain_neither(piece, &no_path, err) : rc;
}

/* Inside a mapped folder every word is a path of it. */
static int explain_both(struct flow *flow, const char *word, const char *piece, struct act_error *err)
{
    ACT_AUTO(flow_run) run = {0};
    int rc = flow_find_unasked(flow, piece, &run, err);

    if (rc < 0)
        return rc;
    return act_error_set(err, ACT_USAGE, "'%s' may be a mapped path or a run: './%s' is the path, '%s:' the run", word,
                         word, run.row.id);
}

/* "RUN:" */
static int names_all_of_run(struct flow *flow, const char *word, char **out_piece, struct act_error *err)
{
    ACT_AUTOFREE char *piece = piece_of(word);
    struct act_error no_path;
    int rc = flow_names_run(flow, word, err);

    if (rc <= 0)
        return rc;
    if (!run_id_valid(piece) && flow_check_path(flow, word, &no_path) == 0)
        return explain_both(flow, word, piece, err);
    if (word[strlen(piece) + 1])
        return act_error_set(err, ACT_USAGE, "a run is removed as a whole, by 'a rm %s:'; '%s' is a part of its logs",
                             piece, word);
    *out_piece = act_strdup(piece);
    return 1;
}

int flow_names_whole_run(struct flow *flow, const char *word, char **out_piece, struct act_error *err)
{
    struct act_error ignored;

    *out_piece = NULL;
    if (strchr(word, ':'))
        return names_all_of_run(flow, word, out_piece, err);
    int rc = flow_check_path(flow, word, err);
    if (rc == 0 || strchr(word, '/'))
        return rc;
    if (run_id_valid(word) && flow_knows_run(flow, word, true, &ignored) == 0) {
        *out_piece = act_strdup(word);
        return 1;
    }
    if (flow_knows_run(flow, word, false, &ignored) == 0)
        act_error_hint(err, "'a rm %s:' removes the run that '%s' stands for", word, word);
    return rc;
}

int flow_find_named_run(struct flow *flow, const char *word, struct flow_run *out, char **out_path,
                        struct act_error *err)
{
    ACT_AUTOFREE char *piece = piece_of(word);
    int rc = act_path_has_dots(word + strlen(piece) + 1)
                 ? act_error_set(err, ACT_USAGE, "'%s': no log has '.' or '..' in its name", word)
                 : flow_find_run(flow, piece, out, err);

    if (rc < 0)
        return rc;
    *out_path = act_strdup(word + strlen(piece) + 1);
    return 0;
}

static void close_source(void *source)
{
    flow_source_close(source);
    free(source);
}

/* output: where the path is, if not among the logs. */
static int log_paths_open_logs(struct flow *flow, const struct flow_run *run, const struct flow_output *output,
                               struct flow_path *out, struct act_error *err)
{
    struct flow_source *source;

    if (run->status.unsubmitted)
        return act_error_set(err, ACT_NOT_FOUND, "run '%s' was never submitted and has no logs", run->row.id);
    source = act_calloc(1, sizeof(*source));
    int rc = output->folder ? flow_source_open_output(flow, run, output, source, err)
                            : flow_source_open_there(flow, run, source, err);
    *out = (struct flow_path){.store = source->store, .source = source, .close_source = close_source};
    return rc;
}

/* Something in them, or in what stands in their place. All logs are a folder, also while there are none. */
static int resolve(const char *key, const char *word, struct flow_path *out, struct act_error *err)
{
    const struct flow_source *source = out->source;

    key = source->only ? source->only : key;
    if (*key)
        return flow_resolve(out->store, key, word, &out->path, err);
    out->path = (struct transfer_path){.store = out->store, .path = act_strdup(""), .is_folder = true};
    return 0;
}

int flow_open_run_path(struct flow *flow, const char *word, struct flow_path *out, struct act_error *err)
{
    struct flow_run run = {0};
    ACT_AUTOFREE char *path = NULL;
    ACT_AUTO(flow_output) output = {0};
    int rc = flow_find_named_run(flow, word, &run, &path, err);

    *out = (struct flow_path){0};
    if (rc == 0)
        rc = flow_find_output(&run, path, &output, err);
    if (rc >= 0)
        rc = log_paths_open_logs(flow, &run, &output, out, err);
    if (rc == 0)
        flow_mention_limits(flow, out->store, NULL);
    if (rc == 0)
        rc = resolve(output.path ? output.path : path, word, out, err);
    flow_run_release(&run);
    if (rc < 0)
        flow_path_release(out);
    return rc;
}
