/* job.c - "a __page": one page, or the data of one, for 'a ui'. */
#include "cli/page/job.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "cli/command/command.h"
#include "cli/page/page.h"
#include "cli/page/verbs.h"
#include "cli/print/print.h"
#include "cli/runs/runs.h"
#include "codec/json.h"
#include "flow/board/board.h"
#include "flow/look/look.h"
#include "flow/runs/runs.h"

enum { SAID_BYTES = 16 << 10, SAID_LINES = 20, DIGITS = 13 /* of numbers: those of a time with milliseconds */ };

#define PAGE_LIST_PARAMS "name", "tag", "offset", "since", "q", "sort", "order", "id", "key", "group", "open"

static const struct page_route routes[] = {
    {"", MADE_PAGE, 0, 0, 0, page_make_table, {"name", "tag", "max", "live"}, true},
    {"run", MADE_PAGE, 1, PAGE_IDS, PAGE_IDS, page_make_reports, {"id", "live"}, false},
    {"compare", MADE_PAGE, 0, API_IDS, PAGE_IDS, page_make_reports, {"id", "name", "tag", "live"}, false},
    {"clusters", MADE_PAGE, 0, 0, 0, page_make_clusters, {"live"}, false},
    {"api/runs", MADE_JSON, 0, API_IDS, API_IDS, page_make_api_runs, {PAGE_LIST_PARAMS, "max"}, true},
    {"api/run", MADE_JSON, 1, 1, 1, page_make_api_run, {"id"}, false},
    {"api/series",
     MADE_JSON,
     0,
     API_IDS,
     API_IDS,
     page_make_api_series,
     {"id", "name", "tag", "key", "points", "use", "from", "to"},
     false},
    {"api/log", MADE_JSON, 1, 1, 1, page_make_api_log, {"id", "rank", "name", "from", "bytes"}, false},
    {"api/file", MADE_FILE, 1, 1, 1, page_make_api_file, {"id", "name", "output"}, false},
    {"api/diff", MADE_JSON, 2, API_IDS, API_IDS, page_make_api_diff, {"id"}, false},
    {"api/clusters", MADE_JSON, 0, 0, 0, page_make_api_clusters, {"jobs"}, false},
    {PAGE_GATHER, MADE_NOTHING, 0, API_IDS, API_IDS, page_gather, {PAGE_LIST_PARAMS}, false},
};

const struct page_route *page_route(const char *path)
{
    for (size_t i = 0; i < sizeof(routes) / sizeof(routes[0]); i++)
        if (strcmp(routes[i].path, path) == 0)
            return &routes[i];
    return NULL;
}

/* ---- what is asked */

const char *page_asked(const struct page_job *job, const char *name, size_t nth)
{
    const struct act_strv *words = &job->cli->words;
    size_t len = strlen(name);

    for (size_t i = 1; i < words->n; i++)
        if (strncmp(words->v[i], name, len) == 0 && words->v[i][len] == '=' && nth-- == 0)
            return words->v[i] + len + 1;
    return NULL;
}

int page_asked_number(const struct page_job *job, const char *name, int64_t least, int64_t most, int64_t *out,
                      struct act_error *err)
{
    const char *text = page_asked(job, name, 0);
    int64_t value;

    if (!text)
        return 0;
    if (!act_int_from_text(text, &value) || value < least || value > most)
        return act_error_set(err, ACT_USAGE, "'%s' takes a number from %lld to %lld, not '%s'", name, (long long)least,
                             (long long)most, text);
    *out = value;
    return 0;
}

char *page_asked_query(const struct page_job *job)
{
    const struct act_strv *words = &job->cli->words;
    struct act_buf query = {0};

    page_add_query(&query, "cluster", job->cli->options.cluster);
    for (size_t i = 1; i < words->n; i++) {
        const char *value = strchr(words->v[i], '=');
        ACT_AUTOFREE char *name = act_strndup(words->v[i], value ? (size_t)(value - words->v[i]) : 0);
        if (value && strcmp(name, "live") != 0)
            page_add_query(&query, name, value + 1);
    }
    return query.len > 0 ? act_buf_steal(&query) : act_strdup("");
}

int page_asked_labels(const struct page_job *job, struct flow_labels *out, struct act_error *err)
{
    struct cli_common_options *o = &job->cli->options;
    const char *tag;

    act_str_replace(&o->name, page_asked(job, "name", 0));
    for (size_t i = 0; (tag = page_asked(job, "tag", i)); i++)
        act_strv_push(&o->tags, tag);
    return cli_labels(job->cli, out, err);
}

/* ---- what is said meanwhile belongs on the page */

static void job_hush(struct page_job *job)
{
    job->stderr_now = memfd_create("said", MFD_CLOEXEC);
    job->stderr_before = job->stderr_now < 0 ? -1 : fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
    if (job->stderr_before >= 0)
        dup2(job->stderr_now, STDERR_FILENO);
}

static void job_take_said(struct page_job *job)
{
    static const char prefix[] = "act: ", warning[] = "warning: ";
    char text[SAID_BYTES + 1];
    ssize_t n = pread(job->stderr_now, text, SAID_BYTES, 0);
    char *rest = text;

    text[n > 0 ? n : 0] = '\0';
    for (char *line; job->said.n < SAID_LINES && (line = strsep(&rest, "\n"));) {
        line += act_starts_with(line, prefix) ? strlen(prefix) : 0;
        line += act_starts_with(line, warning) ? strlen(warning) : 0;
        if (*line && !act_strv_has(&job->said, line))
            act_strv_push(&job->said, line);
    }
}

void page_job_repeat(struct page_job *job)
{
    const char *text;

    for (size_t i = 0; (text = page_asked(job, PAGE_HEARD, i)); i++) {
        act_warn("%s", text);
        job->heard = true;
    }
}

const struct act_strv *page_job_said(struct page_job *job)
{
    if (job->stderr_before >= 0) {
        job_take_said(job);
        dup2(job->stderr_before, STDERR_FILENO);
        close(job->stderr_before);
    }
    if (job->stderr_now >= 0)
        close(job->stderr_now);
    job->stderr_before = job->stderr_now = -1;
    return &job->said;
}

/* ---- runs */

/* Fetches what is new of the logs of a run; that this cannot be done is only said. */
static void job_fetch(struct page_job *job, struct flow_run *run)
{
    ACT_AUTO(flow_logs) logs = {0};
    struct act_error err;

    if (cli_fetch_logs(job->cli, run, &logs, &err) < 0 || cli_check_kept(run, &logs, &err) < 0)
        act_warn("the logs may be old: %s", act_error_text(&err));
}

static int job_find_run(struct page_job *job, const char *id, bool with_logs, struct flow_run *out,
                        struct act_error *err)
{
    struct flow *flow = &job->cli->flow;
    struct act_error failed;

    flow->reads_logs = with_logs;
    int rc = flow_find_run(flow, id, out, err);
    if (rc == -ACT_NOT_FOUND || rc == -ACT_USAGE)
        return rc;
    if (rc < 0) {
        failed = *err;
        rc = flow_find_known(flow, id, out, err);
        if (rc == 0)
            act_warn("the state may be old: %s", act_error_text(&failed));
        return rc;
    }
    if (with_logs)
        job_fetch(job, out);
    return 0;
}

static int job_find_labelled(struct page_job *job, bool with_logs, struct flow_runs *out, struct act_error *err)
{
    struct flow_table table = {
        .cluster = job->cli->options.cluster, .max = (int64_t)job->route->most_runs, .with_spec = true};
    int rc = page_asked_labels(job, &table.labels, err);

    if (rc == 0)
        rc = flow_list_runs(&job->cli->flow, &table, out, err);
    if (rc == 0 && out->n < out->total)
        act_warn("the newest %zu of %zu runs are shown", out->n, out->total);
    for (size_t i = 0; i < out->n && rc == 0 && with_logs; i++)
        job_fetch(job, &out->v[i]);
    return rc;
}

int page_find_runs(struct page_job *job, bool with_logs, struct flow_runs *out, struct act_error *err)
{
    const char *id;
    int rc = 0;

    if (!page_asked(job, "id", 0) && !page_asked(job, "tag", 0) && !page_asked(job, "name", 0))
        return act_error_set(err, ACT_USAGE, "which run? 'id' names one");
    if (!page_asked(job, "id", 0))
        return job_find_labelled(job, with_logs, out, err);
    for (size_t i = 0; rc == 0 && (id = page_asked(job, "id", i)); i++) {
        struct flow_run run = {0};
        if (i == job->route->most_runs) {
            act_warn("the first %zu runs are shown", i);
            break;
        }
        rc = job_find_run(job, id, with_logs, &run, err);
        if (rc == 0)
            flow_runs_take(out, &run);
    }
    return rc;
}

bool page_is_one_active(const struct flow_runs *runs)
{
    for (size_t i = 0; i < runs->n; i++)
        if (!run_state_is_final(runs->v[i].status.state))
            return true;
    return false;
}

/* ---- the whole */

void page_complete_json(struct page_job *job, json_t *json)
{
    json_object_set_new(json, "now", json_integer(act_now_unix_s()));
    json_object_set_new(json, "said", codec_json_strv_new(page_job_said(job)));
    json_object_set_new(json, "next_s", job->refresh_s > 0 ? json_integer(job->refresh_s) : json_null());
}

static int job_print(struct page_job *job, struct act_error *err)
{
    cli_buffer_stdout();
    printf(PAGE_REFRESH "%d\n", job->refresh_s);
    if (job->json) {
        page_complete_json(job, job->json);
        ACT_AUTOFREE char *text = json_dumps(job->json, JSON_COMPACT | JSON_REAL_PRECISION(DIGITS));
        if (text) /* one text is twice as quick as a stream of pieces */
            puts(text);
    } else if (job->route->form == MADE_NOTHING) {
        for (size_t i = 0; i < job->said.n; i++)
            puts(job->said.v[i]);
    } else if (job->body.len > 0) {
        fwrite(job->body.data, 1, job->body.len, stdout);
    }
    fflush(stdout);
    return cli_check_stdout(err);
}

int cmd_page(struct cli *cli, struct act_error *err)
{
    struct page_job job = {.cli = cli, .route = page_route(cli->words.v[0])};

    if (!job.route)
        return act_error_set(err, ACT_USAGE, "'%s' is not a page", cli->words.v[0]);
    job_hush(&job);
    int rc = job.route->make(&job, err);
    page_job_said(&job);
    if (rc == 0 && job.route->form != MADE_FILE) /* which is printed as it is read */
        rc = job_print(&job, err);
    if (job.board && !flow_board_free(job.board))
        _exit(-rc); /* a cluster still does not answer */
    json_decref(job.json);
    act_buf_release(&job.body);
    act_strv_release(&job.said);
    return rc;
}
