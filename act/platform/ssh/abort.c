/* abort.c - ending runs: each machine is asked once for all that it has of them, and all machines at the same time. */
#include <stdlib.h>

#include "codec/json.h"
#include "platform/ssh/ssh_internal.h"

/* The answer of one machine about the end of a run. */
struct hosts_said {
    bool was_final;
    int rc;
    struct act_error err;
};

struct hosts_ending {
    const char *id;
    struct hosts_host **v; /* its machines */
    size_t n;
    struct hosts_said *said; /* n of them */
};

struct hosts_endings {
    struct hosts *s;
    struct hosts_ending *v;
    size_t n;
};

/* Calls take for what each run has on machine h. */
static void hosts_endings_on(const struct hosts_endings *all, const struct hosts_host *h,
                             void (*take)(void *arg, const struct hosts_ending *e, struct hosts_said *said), void *arg)
{
    for (size_t i = 0; i < all->n; i++)
        for (size_t k = 0; k < all->v[i].n; k++)
            if (all->v[i].v[k] == h)
                take(arg, &all->v[i], &all->v[i].said[k]);
}

static void hosts_endings_add_id(void *arg, const struct hosts_ending *e, struct hosts_said *said)
{
    (void)said;
    json_array_append_new(arg, codec_json_bytes_new(e->id));
}

struct hosts_answer {
    const struct hosts_host *h;
    const json_t *ends; /* in the order of the question */
    size_t at;
    int rc; /* of the whole question, with err */
    struct act_error err;
};

static void hosts_endings_take_answer(void *arg, const struct hosts_ending *e, struct hosts_said *said)
{
    struct hosts_answer *a = arg;
    const json_t *end = json_array_get(a->ends, a->at++);

    *said = (struct hosts_said){.rc = a->rc, .err = a->err};
    if (a->rc == 0 && !end)
        said->rc =
            act_error_set(&said->err, ACT_FAIL, "'%s' gave a wrong response: nothing of '%s'", a->h->login, e->id);
    else if (a->rc == 0)
        said->rc = hosts_check_response(a->h, end, &said->err);
    said->was_final = json_is_true(json_object_get(end, "was_final"));
}

static void hosts_ask_to_end(void *arg, size_t i)
{
    enum { MORE_S = 60 };
    const struct hosts_endings *all = arg;
    struct hosts_host *h = &all->s->v[i];
    struct hosts_answer answer = {.h = h};
    CODEC_AUTOJSON json_t *ids = json_array(), *out = NULL;

    hosts_endings_on(all, h, hosts_endings_add_id, ids);
    if (json_array_size(ids) == 0)
        return;
    const struct hosts_request request = {
        .verb = "abort", .in = json_pack("{s:O}", "ids", ids), .timeout_s = (int)(run_abort_wait_ms() / 1000) + MORE_S};
    answer.rc = hosts_call(all->s, h, &request, &out, &answer.err);
    answer.ends = json_object_get(out, "ends");
    hosts_endings_on(all, h, hosts_endings_take_answer, &answer);
}

static void hosts_endings_add(struct hosts_endings *all, const char *id, const struct hosts_run *run)
{
    struct hosts_ending *e = &all->v[all->n++];

    *e = (struct hosts_ending){.id = id, .n = run->n, .v = act_calloc(run->n, sizeof(struct hosts_host *))};
    e->said = act_calloc(run->n, sizeof(*e->said));
    for (size_t i = 0; i < run->n; i++)
        e->v[i] = run->v[i];
}

/* The first machine knows how the run ended; one that could not be told is what the user has to know of. */
static void hosts_endings_judge(const struct hosts_ending *e, struct platform_end *end)
{
    end->was_final = e->said[0].was_final;
    for (size_t i = 0; i < e->n && end->rc == 0; i++) {
        end->rc = e->said[i].rc;
        end->err = e->said[i].err;
    }
}

static void hosts_endings_release(struct hosts_endings *all)
{
    for (size_t i = 0; i < all->n; i++) {
        free(all->v[i].v);
        free(all->v[i].said);
    }
    free(all->v);
}

void hosts_abort(struct platform *p, struct platform_end *ends, size_t n)
{
    struct hosts_endings all = {.s = hosts_of(p), .v = act_calloc(n, sizeof(*all.v))};
    const struct hosts_run *run;

    for (size_t i = 0; i < n; i++) {
        ends[i].rc = hosts_find_all(all.s, ends[i].id, &run, &ends[i].err);
        if (ends[i].rc == 0)
            hosts_endings_add(&all, ends[i].id, run);
    }
    platform_at_once(all.s->n, hosts_ask_to_end, &all);
    for (size_t i = 0, at = 0; i < n; i++)
        if (ends[i].rc == 0)
            hosts_endings_judge(&all.v[at++], &ends[i]);
    hosts_endings_release(&all);
}

void hosts_abort_run(struct hosts *s, const struct hosts_run *run, const char *id)
{
    struct hosts_endings all = {.s = s, .v = act_calloc(1, sizeof(*all.v))};

    hosts_endings_add(&all, id, run);
    platform_at_once(s->n, hosts_ask_to_end, &all);
    hosts_endings_release(&all);
}
