#include "cli/page/download.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "base/units.h"
#include "cli/page/made.h"
#include "cli/page/maker.h"
#include "cli/page/page.h"
#include "engine/engine.h"
#include "web/web.h"

enum {
    DOWNLOADS = 4,
    SIZE_TEXT = 32,
    BEGIN_MS = 60000, /* until the size is known; then it is given up */
};

struct download {
    struct downloads *all;
    struct maker maker;
    struct web_visit *visit; /* until it is answered; NULL: it is */
    char *name;              /* NULL: nothing is under way here */
    bool is_left;            /* nobody wants it any more: it only waits for the end of its process */
    char size[SIZE_TEXT];    /* what was read of the first line */
    size_t n_size;
};

struct downloads {
    struct engine *engine;
    char *policy; /* of pages that say what went wrong */
    struct download v[DOWNLOADS];
};

struct downloads *downloads_new(struct engine *engine)
{
    struct downloads *downloads = act_calloc(1, sizeof(*downloads));

    downloads->engine = engine;
    downloads->policy = page_policy();
    for (size_t i = 0; i < DOWNLOADS; i++)
        downloads->v[i].all = downloads;
    return downloads;
}

static void download_end(struct download *d)
{
    engine_forget(d->all->engine, d);
    maker_release(&d->maker);
    free(d->name);
    *d = (struct download){.all = d->all};
}

void downloads_free(struct downloads *downloads)
{
    if (!downloads)
        return;
    for (size_t i = 0; i < DOWNLOADS; i++)
        if (downloads->v[i].name)
            download_end(&downloads->v[i]);
    free(downloads->policy);
    free(downloads);
}

static void download_say(const struct downloads *all, struct web_visit *visit, int status, const char *title,
                         const char *text)
{
    made_say(visit, &(struct made_words){.form = MADE_FILE, .status = status, .title = title, .text = text},
             all->policy);
}

/* Ends it as soon as its process has ended. That is killed, but may hang in a file system. */
static void download_leave(struct download *d)
{
    engine_forget(d->all->engine, d);
    d->visit = NULL;
    d->is_left = true;
    maker_close_out(&d->maker);
    if (d->maker.pid > 0)
        maker_kill(&d->maker);
    else
        download_end(d);
}

static void download_fail(struct download *d, int status, const char *why)
{
    download_say(d->all, d->visit, status, "This file cannot be had", why);
    download_leave(d);
}

/* The browser has all of it, or wants no more. */
static void download_was_sent(void *arg)
{
    download_leave(arg);
}

/* Reads the first line, no byte more. Returns 1 when it is there, 0 when more is to come, below 0 when it never is. */
static int download_read_size(struct download *d)
{
    for (char c; d->n_size + 1 < SIZE_TEXT;) {
        ssize_t n = read(d->maker.out_fd, &c, 1);
        if (n < 0 && (errno == EAGAIN || errno == EINTR))
            return 0;
        if (n <= 0)
            return -1;
        if (c == '\n')
            return 1;
        d->size[d->n_size++] = c;
    }
    return -1;
}

/* Hands the file to the visit once its size is known. */
static void download_begin(void *arg)
{
    struct download *d = arg;
    int got = download_read_size(d);
    struct web_visit *visit = d->visit;
    int64_t size;

    if (got == 0)
        return;
    engine_unwatch(d->all->engine, d->maker.out_fd);
    if (got < 0) { /* it says why when it ends */
        maker_kill(&d->maker);
        return;
    }
    engine_forget(d->all->engine, d);
    if (!act_int_from_text(d->size, &size) || size < 0) {
        download_fail(d, 502, "its size is not known");
        return;
    }
    d->visit = NULL;
    web_send_file(
        visit,
        &(struct web_file){
            .name = d->name, .size = (uint64_t)size, .fd = d->maker.out_fd, .ended = download_was_sent, .arg = d});
}

/* The process has ended: with all that it had printed, which the visit is still to read, or before it knew the size. */
static void download_maker_ended(void *arg)
{
    struct download *d = arg;
    const struct maker *m = &d->maker;

    if (d->is_left) {
        download_end(d);
        return;
    }
    if (d->visit && m->status == 0)
        download_begin(d);
    if (d->visit)
        download_fail(d, made_status_of(maker_exit_status(m)),
                      m->said.len > 0 ? m->said.data : "its process ended without a word");
}

static void download_took_too_long(void *arg)
{
    download_fail(arg, 502, "it took more than a minute to begin, and was given up");
}

static struct download *download_place(struct downloads *downloads)
{
    for (size_t i = 0; i < DOWNLOADS; i++)
        if (!downloads->v[i].name)
            return &downloads->v[i];
    return NULL;
}

void downloads_answer(struct downloads *downloads, const struct act_strv *words, const char *name,
                      struct web_visit *visit)
{
    struct download *d = download_place(downloads);
    struct act_error err;

    if (!d) {
        download_say(downloads, visit, 503, "Too much at once", "Other files are being sent; try again after them.");
        return;
    }
    d->name = act_strdup(name);
    d->visit = visit;
    d->maker = (struct maker){.engine = downloads->engine, .ended = download_maker_ended, .arg = d};
    int rc = maker_start(&d->maker, words, &err);
    if (rc == 0 && !engine_watch(downloads->engine, d->maker.out_fd, false, download_begin, d))
        rc = act_error_set(&err, ACT_FAIL, "its process cannot be watched");
    if (rc == 0)
        engine_timer(downloads->engine, BEGIN_MS, download_took_too_long, d);
    else
        download_fail(d, 502, act_error_text(&err));
}
