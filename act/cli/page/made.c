#include "cli/page/made.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/units.h"
#include "cli/page/job.h"
#include "cli/page/maker.h"
#include "cli/page/page.h"
#include "codec/json.h"
#include "engine/engine.h"

enum {
    KEPT = 16,
    MAKERS = 2,
    PAGE_BYTES = 8 << 20,
    ALL_BYTES = 16 << 20, /* of those that are kept; what was used longest ago goes */
    MAKING_MS = 300000,   /* then it is given up */
    PATIENCE_MS = 2000,   /* of a visit */
    SOON_S = 2,           /* when to ask again for a page that is being made */
    SOON_MS = 500,        /* the same for data, of which a reader waits */
    RESTS = 4,            /* times as long as it took to make it, a page is good at least */
    OLD_MS = 60000,       /* of a page that does not change, or that could not be made */
    FAILED_S = 5,
    AGAIN_S = 10, /* until what nobody waits for is tried again after its first failure: then twice as long each time */
    DOUBLINGS = 6,
    NEWS_BYTES = 500, /* of each */
    NEWS = 8,
};

enum state { UNUSED, WAITING, MAKING, MADE };

struct page {
    struct made *all;
    enum state state;
    struct act_strv words;
    enum made_form form;
    bool gathers;              /* it says what is new */
    struct web_visit **visits; /* for it */
    size_t n_visits;
    int64_t used_ms, begun_ms, due_ms; /* due: when it is to be made again */
    int status;
    struct web_body *body; /* as it was made last; NULL: never */
    size_t n_body;         /* its bytes */
    /* While it is being made: */
    struct maker maker;
    struct act_buf out;   /* what that has printed */
    const char *given_up; /* why */
};

struct made {
    struct engine *engine;
    char *policy;
    size_t n_makers;
    struct page v[KEPT];
    struct page behind;   /* what no visit waits for, */
    struct act_strv news; /* what it had to say, */
    bool is_told;         /* and whether a page has said it; */
    int failures;         /* how often it has failed in a row */
};

struct made *made_new(struct engine *engine)
{
    struct made *made = act_calloc(1, sizeof(*made));

    made->engine = engine;
    made->policy = page_policy();
    for (size_t i = 0; i < KEPT; i++)
        made->v[i].all = made;
    made->behind.all = made;
    return made;
}

/* ---- answers */

/* Answers with a body. What is no page has no policy, and nobody asks for it again by itself. */
static void made_send(struct web_visit *visit, enum made_form form, struct web_answer answer)
{
    static const char *const types[] = {
        [MADE_PAGE] = "text/html", [MADE_JSON] = "application/json", [MADE_FILE] = NULL, [MADE_NOTHING] = NULL};

    answer.type = types[form];
    answer.policy = form == MADE_PAGE ? answer.policy : NULL;
    answer.refresh_s = form == MADE_PAGE ? answer.refresh_s : 0;
    web_answer(visit, &answer);
}

/* Returns the form of a failure: there is none of a file. */
static enum made_form made_words_form(enum made_form form)
{
    return form == MADE_JSON ? MADE_JSON : MADE_PAGE;
}

/* Returns for how long a page is good, rounded up. */
static int made_left_s(const struct page *p)
{
    int64_t left_ms = p->due_ms - act_now_monotonic_ms();

    return left_ms <= 0 ? 1 : (int)((left_ms + 999) / 1000);
}

/* Answers with what was made. A page itself says when it is to be asked for again; what is not one cannot. */
static void made_give_answer(const struct page *p, struct web_visit *visit)
{
    int refresh_s = p->status == 502 ? made_left_s(p) : 0;

    made_send(
        visit, p->status == 200 ? p->form : made_words_form(p->form),
        (struct web_answer){.status = p->status, .policy = p->all->policy, .refresh_s = refresh_s, .body = p->body});
}

/* Appends what stands in place of a page or of data. */
static void made_put_words(enum made_form form, const char *title, const char *text, struct act_buf *out)
{
    static const char prefix[] = "act: ";

    if (form != MADE_JSON) {
        page_message(title, text, out);
        return;
    }
    text += act_starts_with(text, prefix) ? strlen(prefix) : 0;
    ACT_AUTOFREE char *line = act_one_line(text, strcspn(text, "\n"));
    CODEC_AUTOJSON json_t *json = json_pack("{s:s}", "error", line);
    ACT_AUTOFREE char *body = codec_json_line(json);
    act_buf_addf(out, "%s\n", body);
}

/* Answers with a text that is not kept, which is empty afterwards. */
static void made_send_text(struct web_visit *visit, enum made_form form, struct web_answer answer, struct act_buf *text)
{
    answer.body = web_body_new(text);
    made_send(visit, form, answer);
    web_body_drop(answer.body);
}

void made_say(struct web_visit *visit, const struct made_words *words, const char *policy)
{
    struct act_buf text = {0};

    made_put_words(words->form, words->title, words->text, &text);
    made_send_text(visit, made_words_form(words->form),
                   (struct web_answer){.status = words->status, .policy = policy, .refresh_s = words->refresh_s},
                   &text);
}

/* Says that something is being made, and when to ask again. */
static void made_say_soon(const struct page *p, struct web_visit *visit)
{
    struct act_buf text = {0};

    if (p->form == MADE_JSON)
        act_buf_addf(&text, "{\"wait_ms\": %d}\n", SOON_MS);
    else
        page_message("One moment", "This page is being made; the first time, the logs of the run are fetched.", &text);
    made_send_text(visit, made_words_form(p->form),
                   (struct web_answer){.status = 202, .policy = p->all->policy, .refresh_s = SOON_S}, &text);
}

/* Answers with what was made before, which is better than nothing. */
static void answer_impatient(void *arg)
{
    struct page *p = arg;

    for (size_t i = 0; i < p->n_visits; i++)
        if (p->body)
            made_give_answer(p, p->visits[i]);
        else
            made_say_soon(p, p->visits[i]);
    p->n_visits = 0;
}

static void made_answer_all(struct page *p)
{
    engine_forget(p->all->engine, p);
    for (size_t i = 0; i < p->n_visits; i++)
        made_give_answer(p, p->visits[i]);
    p->n_visits = 0;
}

/* ---- what is kept */

static void release_page(struct page *p)
{
    struct made *all = p->all;

    act_strv_release(&p->words);
    web_body_drop(p->body);
    free(p->visits);
    *p = (struct page){.all = all};
}

/* Returns the page that was used longest ago and is not being made, besides one; NULL: there is none. */
static struct page *made_oldest(struct made *made, const struct page *besides)
{
    struct page *oldest = NULL;

    for (size_t i = 0; i < KEPT; i++) {
        struct page *p = &made->v[i];
        if (p->state == MADE && p != besides && (!oldest || p->used_ms < oldest->used_ms))
            oldest = p;
    }
    return oldest;
}

/* Forgets pages until what is kept is not too much. */
static void made_make_room(struct made *made, const struct page *newest)
{
    struct page *oldest;
    size_t bytes = 0;

    for (size_t i = 0; i < KEPT; i++)
        bytes += made->v[i].n_body;
    while (bytes > ALL_BYTES && (oldest = made_oldest(made, newest))) {
        bytes -= oldest->n_body;
        release_page(oldest);
    }
}

/* ---- what a process has written */

/* Reads "refresh 10", a line before the page: after so many seconds it may be another one; 0: it has come to its
 * end. */
static bool take_refresh(const struct act_buf *text, int64_t *out_s, size_t *out_len)
{
    const char *end = text->len > 0 ? memchr(text->data, '\n', text->len) : NULL;
    static const char word[] = PAGE_REFRESH;

    if (!end || !act_starts_with(text->data, word))
        return false;
    ACT_AUTOFREE char *number = act_strndup(text->data + strlen(word), (size_t)(end - text->data) - strlen(word));
    *out_len = (size_t)(end - text->data) + 1;
    return act_int_from_text(number, out_s) && *out_s >= 0 && *out_s <= OLD_MS / 1000;
}

/* Returns until when a page is good. One that takes long, as that of a run with a large log, is made less often. */
static int64_t due_ms(const struct page *p, int64_t refresh_s)
{
    int64_t now_ms = act_now_monotonic_ms(), rest_ms = RESTS * (now_ms - p->begun_ms);
    int64_t good_ms = refresh_s > 0 ? refresh_s * 1000 : OLD_MS;

    return now_ms + (good_ms > rest_ms ? good_ms : rest_ms);
}

/* Keeps a body in place of the one before, and drops others that are too much with it. */
static void made_keep_body(struct page *p, struct act_buf *body)
{
    web_body_drop(p->body);
    p->n_body = body->len;
    p->body = web_body_new(body);
    made_make_room(p->all, p);
}

static bool made_take_page(struct page *p)
{
    struct act_buf body = {0};
    int64_t refresh_s;
    size_t len;

    if (!take_refresh(&p->out, &refresh_s, &len))
        return false;
    act_buf_add(&body, p->out.data + len, p->out.len - len);
    made_keep_body(p, &body);
    p->status = 200;
    p->due_ms = due_ms(p, refresh_s);
    return true;
}

int made_status_of(int exit_status)
{
    switch (exit_status) {
    case ACT_USAGE:
        return 400;
    case ACT_NOT_FOUND:
        return 404;
    case ACT_DENIED:
        return 403;
    default:
        return 502;
    }
}

static void take_failure(struct page *p, int exit_status, const char *why)
{
    const char *said = p->given_up ? p->given_up : why;
    struct act_buf body = {0};

    made_put_words(p->form, "This page cannot be shown", said, &body);
    made_keep_body(p, &body);
    p->status = p->given_up ? 502 : made_status_of(exit_status);
    p->due_ms = due_ms(p, FAILED_S);
}

/* ---- the process */

static void make_waiting(struct made *made);

static void made_give_up(struct page *p, const char *why)
{
    p->given_up = p->given_up ? p->given_up : why;
    maker_kill(&p->maker);
}

/* Returns false when nothing more is there. */
static bool made_read(struct page *p)
{
    char chunk[65536];
    ssize_t n = p->maker.out_fd < 0 ? 0 : read(p->maker.out_fd, chunk, sizeof(chunk));

    if (n == 0)
        maker_close_out(&p->maker);
    if (n <= 0)
        return n < 0 && errno == EINTR;
    size_t room = PAGE_BYTES - p->out.len;
    act_buf_add(&p->out, chunk, (size_t)n < room ? (size_t)n : room);
    if ((size_t)n > room)
        made_give_up(p, "it is larger than 8 MiB; 'a q' and 'a report' have no such limit");
    return true;
}

static void made_print_ready(void *page)
{
    made_read(page);
}

/* Ends the making of a page, which is there now, or is not. */
static void made_finish(struct page *p)
{
    engine_forget(p->all->engine, p);
    maker_release(&p->maker);
    act_buf_release(&p->out);
    p->given_up = NULL;
    p->state = MADE;
    p->all->n_makers -= p != &p->all->behind;
    made_answer_all(p);
}

/* Takes what there was to say, a line each. What is said once is kept until a page has said it. */
static void made_take_news(struct made *made, char *text)
{
    static const char prefix[] = "act: ";

    if (!made->is_told && !*text)
        return;
    act_strv_release(&made->news);
    made->is_told = false;
    for (char *line; made->news.n < NEWS && (line = strsep(&text, "\n"));) {
        line += act_starts_with(line, prefix) ? strlen(prefix) : 0;
        if (*line)
            act_strv_take(&made->news, act_one_line(line, strnlen(line, NEWS_BYTES)));
    }
}

/* Ends what no visit waits for. */
static void made_behind_ended(struct page *p)
{
    struct made *made = p->all;
    int64_t refresh_s = 0, again_ms = AGAIN_S * 1000;
    size_t len = 0;
    bool is_good = !p->given_up && p->maker.status == 0 && take_refresh(&p->out, &refresh_s, &len);
    ACT_AUTOFREE char *text = act_strdup(is_good             ? p->out.data + len
                                         : p->given_up       ? p->given_up
                                         : p->maker.said.len ? p->maker.said.data
                                                             : "numbers of runs were not read");

    made_take_news(made, text);
    made->failures = is_good ? 0 : made->failures + 1;
    for (int i = 1; i < made->failures && i <= DOUBLINGS; i++)
        again_ms *= 2;
    p->due_ms = is_good ? due_ms(p, refresh_s) : act_now_monotonic_ms() + again_ms;
}

static void maker_ended(void *arg)
{
    struct page *p = arg;
    const struct maker *m = &p->maker;

    for (int i = 0; i < PAGE_BYTES / 4096 && made_read(p); i++)
        ;
    if (p == &p->all->behind)
        made_behind_ended(p);
    else if (p->given_up || m->status != 0 || !made_take_page(p))
        take_failure(p, maker_exit_status(m), m->said.len > 0 ? m->said.data : "it ended without a word");
    made_finish(p);
    make_waiting(p->all);
}

static void took_too_long(void *arg)
{
    made_give_up(arg, "it took more than five minutes to make, and was given up");
}

/* Adds what is new to the words of the process that says it. */
static void made_tell_news(struct made *made, struct act_strv *words)
{
    for (size_t i = 0; i < made->news.n; i++)
        act_strv_pushf(words, PAGE_HEARD "=%s", made->news.v[i]);
    made->is_told = true;
}

static void made_make(struct page *p)
{
    struct engine *engine = p->all->engine;
    ACT_AUTO(act_strv) words = {0};
    struct act_error err = {0};

    p->begun_ms = act_now_monotonic_ms();
    p->all->n_makers += p != &p->all->behind;
    p->maker = (struct maker){.engine = engine, .ended = maker_ended, .arg = p};
    act_strv_copy(&words, p->words.v, p->words.n);
    if (p->gathers)
        made_tell_news(p->all, &words);
    int rc = maker_start(&p->maker, &words, &err);
    if (rc == 0 && !engine_watch(engine, p->maker.out_fd, false, made_print_ready, p))
        rc = act_error_set(&err, ACT_FAIL, "its process cannot be watched");
    if (rc < 0) {
        take_failure(p, ACT_FAIL, act_error_text(&err));
        made_finish(p);
        return;
    }
    p->state = MAKING;
    engine_timer(engine, MAKING_MS, took_too_long, p);
}

/* Makes the pages that wait, the longest first, as long as there is room. */
static void make_waiting(struct made *made)
{
    while (made->n_makers < MAKERS) {
        struct page *next = NULL;
        for (size_t i = 0; i < KEPT; i++)
            if (made->v[i].state == WAITING && (!next || made->v[i].used_ms < next->used_ms))
                next = &made->v[i];
        if (!next)
            return;
        made_make(next);
    }
}

/* ---- the pages that are kept */

static bool made_same_words(const struct act_strv *a, const struct act_strv *b)
{
    for (size_t i = 0; a->n == b->n && i < a->n; i++)
        if (strcmp(a->v[i], b->v[i]) != 0)
            return false;
    return a->n == b->n;
}

/* Finds the page of a wish, or else a place for it; NULL: all are being made. */
static struct page *find_page(struct made *made, const struct made_wish *wish)
{
    struct page *place = NULL;

    for (size_t i = 0; i < KEPT; i++) {
        struct page *p = &made->v[i];
        if (p->state != UNUSED && made_same_words(&p->words, wish->words))
            return p;
        place = p->state == UNUSED && !place ? p : place;
    }
    place = place ? place : made_oldest(made, NULL);
    if (!place)
        return NULL;
    release_page(place);
    act_strv_copy(&place->words, wish->words->v, wish->words->n);
    place->form = wish->form;
    place->gathers = wish->gathers;
    return place;
}

void made_answer(struct made *made, const struct made_wish *wish, struct web_visit *visit)
{
    struct page *p = find_page(made, wish);
    int64_t now_ms = act_now_monotonic_ms();

    if (!p) {
        made_say(visit,
                 &(struct made_words){.form = wish->form,
                                      .status = 503,
                                      .title = "Too much at once",
                                      .text = "Other pages are being made; this one waits.",
                                      .refresh_s = SOON_S},
                 made->policy);
        return;
    }
    p->used_ms = now_ms;
    if (p->state == MADE && p->due_ms > now_ms) {
        made_give_answer(p, visit);
        return;
    }
    ACT_PUSH(p->visits, p->n_visits, visit);
    if (p->n_visits == 1)
        engine_timer(made->engine, PATIENCE_MS, answer_impatient, p);
    if (p->state == WAITING || p->state == MAKING)
        return;
    p->state = WAITING;
    make_waiting(made);
}

void made_want(struct made *made, const struct act_strv *words)
{
    struct page *p = &made->behind;

    bool is_due = p->due_ms <= act_now_monotonic_ms() || (made->failures == 0 && !made_same_words(&p->words, words));
    if (p->state == MAKING || (p->state == MADE && !is_due))
        return;
    release_page(p);
    p->form = MADE_NOTHING;
    act_strv_copy(&p->words, words->v, words->n);
    made_make(p);
}

static void made_end(struct page *p)
{
    if (p->state == MAKING)
        maker_release(&p->maker);
    act_buf_release(&p->out);
    engine_forget(p->all->engine, p);
    release_page(p);
}

void made_free(struct made *made)
{
    if (!made)
        return;
    for (size_t i = 0; i < KEPT; i++)
        made_end(&made->v[i]);
    made_end(&made->behind);
    act_strv_release(&made->news);
    free(made->policy);
    free(made);
}
