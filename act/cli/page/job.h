/* job.h - what a browser may ask 'a ui' for (the table of job.c), and how "a __page" makes one of these: in a process
 * of its own, whose words are the path and what is asked, "name=value" each.
 *
 *   page.c         pages of HTML
 *   api_runs.c     the list of runs
 *   api_run.c      one run
 *   api_series.c   curves
 *   api_log.c      a piece of a log, or a whole file
 *   api_diff.c     in what runs differ
 *   api_clusters.c the clusters, and who uses them
 *
 * A row of the table is all that a new page or document needs: the server refuses what is not in it before anything is
 * started.
 */
#ifndef ACT_CLI_PAGE_JOB_H
#define ACT_CLI_PAGE_JOB_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/text.h"
#include "cli/page/made.h"
#include "flow/run.h"
#include "flow/runs/runs.h"

struct cli;
struct flow_board;

enum { PAGE_IDS = 16, API_IDS = 64, PAGE_PARAMS = 13, PAGE_REFRESH_S = 10 };

#define PAGE_GATHER "gather" /* what no browser asks for: it reads the numbers of runs for the next list */
#define PAGE_HEARD  "heard"  /* what that had to say, among the words of the process that makes that list */

struct page_job;

struct page_route {
    const char *path; /* behind the key: "", "run", "api/runs" */
    enum made_form form;
    size_t least_ids, most_ids;
    size_t most_runs; /* of which it is made; of others there is only a word */
    int (*make)(struct page_job *job, struct act_error *err);
    const char *params[PAGE_PARAMS]; /* the names that it knows */
    bool gathers;                    /* it lists numbers of runs, which are wanted soon */
};

/* Returns the route of a path; NULL: there is none. */
const struct page_route *page_route(const char *path);

/* Something that is being made. */
struct page_job {
    struct cli *cli;
    const struct page_route *route;
    int stderr_before, stderr_now; /* what is said meanwhile is kept; -1: it is not */
    struct act_strv said;          /* once page_job_said() was called */
    bool heard;                    /* numbers could not be read lately */
    struct act_buf body;           /* the page */
    json_t *json;                  /* of data: an object */
    int refresh_s;                 /* how soon it may be another one; 0: it stays */
    struct flow_board *board;      /* of clusters, which may still be asked; NULL: none */
};

/* Returns the nth value (from 0) of a name that was asked for; NULL: there is none. Owned by the job. */
const char *page_asked(const struct page_job *job, const char *name, size_t nth);
/* Reads the value of a name as a number from least to most into *out, which stays as it is if there is none. Anything
 * else: -ACT_USAGE. */
int page_asked_number(const struct page_job *job, const char *name, int64_t least, int64_t most, int64_t *out,
                      struct act_error *err) ACT_NODISCARD;
/* Returns all that was asked as the query of a URL, a new string. */
char *page_asked_query(const struct page_job *job);
/* Reads the names and tags that were asked for into the options of the command, and from there into *out. */
int page_asked_labels(const struct page_job *job, struct flow_labels *out, struct act_error *err) ACT_NODISCARD;
/* Adds to data what all of it has: when it was made, what there was to say, and when it may be different. */
void page_complete_json(struct page_job *job, json_t *json);
/* Says again what there was to say when numbers were read for this list. */
void page_job_repeat(struct page_job *job);
/* Returns what there was to say until now; nothing is kept after it. */
const struct act_strv *page_job_said(struct page_job *job);

/* Finds the runs that were asked for, by "id", or by "name" and "tag"; neither: -ACT_USAGE. A cluster that cannot, or
 * must not, be asked is no reason to show nothing. with_logs: what is new of their logs is fetched. */
int page_find_runs(struct page_job *job, bool with_logs, struct flow_runs *out, struct act_error *err) ACT_NODISCARD;
/* Tells whether one of them has not ended. */
bool page_is_one_active(const struct flow_runs *runs);

/* ---- what the routes are made by */

int page_make_table(struct page_job *job, struct act_error *err);
int page_make_reports(struct page_job *job, struct act_error *err);
int page_make_api_runs(struct page_job *job, struct act_error *err);
int page_make_api_run(struct page_job *job, struct act_error *err);
int page_make_api_series(struct page_job *job, struct act_error *err);
int page_make_api_log(struct page_job *job, struct act_error *err);
int page_make_api_file(struct page_job *job, struct act_error *err);
int page_make_api_diff(struct page_job *job, struct act_error *err);
int page_make_api_clusters(struct page_job *job, struct act_error *err);
int page_gather(struct page_job *job, struct act_error *err);
int page_make_clusters(struct page_job *job, struct act_error *err);

#endif
