/* api_log.c - a piece of a log as text, in whole characters, and a file as it is. */
#include <stdio.h>
#include <string.h>

#include "cli/command/command.h"
#include "cli/page/api.h"
#include "cli/page/job.h"
#include "cli/print/print.h"
#include "flow/flow.h"
#include "flow/look/look.h"

enum {
    USUAL_BYTES = 65536,
    LEAST_BYTES = 64,
    MOST_BYTES = 1 << 20, /* a text becomes up to six times as long in JSON */
    LIVE_S = 2,           /* between two looks at the log of a run that goes on */
};

/* ---- whole characters */

static bool api_log_is_rest(char c)
{
    return ((unsigned char)c & 0xc0) == 0x80;
}

/* Returns how long the character is that a byte begins. */
static size_t api_log_char_bytes(char c)
{
    unsigned char u = (unsigned char)c;

    return u >= 0xf0 ? 4 : u >= 0xe0 ? 3 : u >= 0xc0 ? 2 : 1;
}

size_t api_whole_begin(const char *bytes, size_t len)
{
    size_t n = 0;

    while (n < len && n < 3 && api_log_is_rest(bytes[n]))
        n++;
    return n;
}

size_t api_whole_end(const char *bytes, size_t len)
{
    for (size_t back = 1; back <= 3 && back <= len; back++) {
        char c = bytes[len - back];
        if (!api_log_is_rest(c))
            return api_log_char_bytes(c) > back ? len - back : len;
    }
    return len;
}

json_t *api_text_json(const char *bytes, size_t len)
{
    ACT_AUTO(act_buf) text = {0};

    for (size_t i = 0, n; i < len; i += n ? n : 1) {
        n = act_utf8_char(bytes + i, len - i);
        if (n)
            act_buf_add(&text, bytes + i, n);
        else
            act_buf_adds(&text, "\uFFFD");
    }
    return text.len ? json_stringn(text.data, text.len) : json_string("");
}

/* ---- the answers */

/* Cuts what belongs to characters, and at the beginning of an end to a line, that are not there as a whole. ended: more
 * will not come. */
static void api_log_cut(const struct flow_piece *p, bool from_end, bool ended, size_t *out_begin, size_t *out_end)
{
    const char *bytes = p->bytes.data;
    size_t len = p->bytes.len, begin = p->from > 0 && len > 0 ? api_whole_begin(bytes, len) : 0;
    const char *line = from_end && p->from > 0 && len > 0 ? memchr(bytes, '\n', len) : NULL;
    bool is_last = p->from + len >= p->size;

    *out_begin = line ? (size_t)(line - bytes) + 1 : begin;
    *out_end = len > 0 && !(is_last && ended) ? api_whole_end(bytes, len) : len;
    if (*out_end < *out_begin)
        *out_end = *out_begin;
}

static json_t *api_log_json(const struct flow_piece *p, bool from_end, bool ended)
{
    size_t begin, end;

    api_log_cut(p, from_end, ended, &begin, &end);
    uint64_t from = p->from + begin, to = p->from + end;
    return json_pack("{s:o,s:I,s:I,s:I,s:o,s:b}", "name", cli_text_json(p->name), "from", (json_int_t)from, "to",
                     (json_int_t)to, "size", (json_int_t)p->size, "text",
                     api_text_json(p->bytes.data + begin, end - begin), "ended", ended && to >= p->size);
}

/* Reads what is wanted of a log of the one run that is asked for. */
static int api_log_read(struct page_job *job, struct flow_piece_wanted *what, struct flow_piece *out, bool *out_ended,
                        struct act_error *err)
{
    ACT_AUTO(flow_runs) runs = {0};
    int rc = page_find_runs(job, false, &runs, err);

    what->name = page_asked(job, "name", 0);
    if (rc == 0)
        rc = flow_read_piece(&job->cli->flow, &runs.v[0], what, out, err);
    *out_ended = rc == 0 && !page_is_one_active(&runs);
    return rc;
}

int page_make_api_log(struct page_job *job, struct act_error *err)
{
    int64_t rank = 0, from = -USUAL_BYTES, bytes = USUAL_BYTES;
    struct flow_piece piece = {0};
    bool ended;

    int rc = page_asked_number(job, "rank", 0, INT32_MAX, &rank, err);
    if (rc == 0)
        rc = page_asked_number(job, "from", INT32_MIN, INT64_MAX, &from, err);
    if (rc == 0)
        rc = page_asked_number(job, "bytes", LEAST_BYTES, MOST_BYTES, &bytes, err);
    struct flow_piece_wanted what = {.rank = (int)rank, .from = from, .max = (size_t)bytes};
    if (rc == 0)
        rc = api_log_read(job, &what, &piece, &ended, err);
    if (rc == 0) {
        job->json = api_log_json(&piece, from < 0, ended);
        job->refresh_s = ended ? 0 : LIVE_S;
    }
    flow_piece_release(&piece);
    return rc;
}

/* ---- whole files, which are printed behind a line with their size as they come */

static int api_log_begin_file(void *arg, uint64_t size, struct act_error *err)
{
    (void)arg;
    printf("%llu\n", (unsigned long long)size);
    fflush(stdout);
    return cli_check_stdout(err);
}

static int api_log_print_file(void *arg, const void *data, size_t len, struct act_error *err)
{
    return cli_write_stdout(arg, data, len, err);
}

int page_make_api_file(struct page_job *job, struct act_error *err)
{
    static const struct flow_file_sink sink = {.begin = api_log_begin_file, .write = api_log_print_file};
    const char *log = page_asked(job, "name", 0), *output = page_asked(job, "output", 0);
    ACT_AUTO(flow_runs) runs = {0};

    if (!log == !output)
        return act_error_set(err, ACT_USAGE, "which file? 'name' names a log, 'output' what the run has written");
    int rc = page_find_runs(job, false, &runs, err);
    if (rc < 0)
        return rc;
    return log ? flow_read_log(&job->cli->flow, &runs.v[0], log, &sink, err)
               : flow_read_output(&job->cli->flow, &runs.v[0], output, &sink, err);
}
