#include "node/devices.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/user.h"
#include "node/node.h"

/* The driver may take so long, and is asked again after this while a run waits; when it did not answer, only much
 * later. */
enum { ASK_MS = 3000, AGAIN_MS = 5000, UNANSWERED_AGAIN_MS = 60 * 1000, FREE_PERCENT = 5 };

static int devices_find(const struct devices *d, struct gpu_list *out, struct act_error *err)
{
    gpus_find("", out);
    gpus_apply_masks(d->masks, out);
    int rc = gpus_take_named(&d->spec->gpus, out, err);
    int given = 0;

    for (size_t i = 0; i < out->n; i++) {
        given += out->v[i].is_given;
        out->v[i].is_given = out->v[i].is_given && given <= d->most;
    }
    return rc;
}

int devices_open(struct devices *d, const struct run_spec *spec, const struct gpu_masks *masks, int most,
                 struct act_error *err)
{
    *d = (struct devices){.spec = spec, .masks = masks, .most = most};
    int rc = devices_find(d, &d->list, err), given = 0;

    d->places = act_calloc(d->list.n + 1, sizeof(int));
    for (size_t i = 0; i < d->list.n; i++) {
        act_strv_take(&d->keys, gpus_key(&d->list.v[i]));
        d->places[i] = given;
        given += d->list.v[i].is_given;
    }
    d->free_then = act_calloc(d->list.n + 1, sizeof(bool));
    return rc;
}

void devices_share(struct devices *d)
{
    claims_open(&d->claims, NULL);
    if (d->claims.n == 0)
        node_say(
            "there is no folder that all users of this machine may write to: their runs are not waited for, but the "
            "processes on the GPUs are");
    if (d->claims.flooded)
        node_say(
            "there are so many claims of GPUs in '%s' that not all of them are read there: somebody should remove them",
            d->claims.flooded);
}

void devices_close(struct devices *d)
{
    claims_close(&d->claims);
    gpu_list_release(&d->list);
    act_strv_release(&d->keys);
    free(d->free_then);
    free(d->places);
    *d = (struct devices){0};
}

static void devices_swap(struct gpu *a, struct gpu *b)
{
    struct gpu was = *a;

    *a = *b;
    *b = was;
}

/* While a run waits a card may break, or be divided anew: what is not there any more is given to nobody. */
static void devices_update(struct devices *d, struct gpu_list *now)
{
    for (size_t i = 0; i < d->list.n; i++)
        d->list.v[i].is_given = false;
    for (size_t k = 0; k < now->n; k++) {
        ACT_AUTOFREE char *key = gpus_key(&now->v[k]);
        for (size_t i = 0; i < d->list.n; i++)
            if (strcmp(d->keys.v[i], key) == 0)
                devices_swap(&d->list.v[i], &now->v[k]);
    }
    free(d->list.near);
    d->list.near = now->near;
    d->list.n_near = now->n_near;
    now->near = NULL;
}

static void devices_ask(struct devices *d)
{
    struct gpu_list now;
    struct act_error ignored;
    int rc = devices_find(d, &now, &ignored);
    enum gpus_answer answer = gpus_ask("", ASK_MS, &now);
    const char *text = gpus_answer_text(answer);

    if (text && (!d->asked_ms || answer != d->answer))
        node_say("%s; other runs of ACT are waited for", text);
    d->answer = answer;
    d->asked_ms = act_now_monotonic_ms();
    if (rc == 0)
        devices_update(d, &now);
    gpu_list_release(&now);
}

/* Tells whether to ask the driver again: after a while, or at once when another run has ended, since then more is free
 * than was known. */
static bool must_ask(const struct devices *d, const bool *free_slots)
{
    int64_t age_ms = act_now_monotonic_ms() - d->asked_ms;
    bool is_answered = d->answer != GPUS_UNANSWERED;

    if (!d->asked_ms || age_ms >= (is_answered ? AGAIN_MS : UNANSWERED_AGAIN_MS))
        return true;
    for (size_t i = 0; is_answered && i < d->list.n; i++)
        if (free_slots[i] && !d->free_then[i])
            return true;
    return false;
}

/* Adds why a GPU cannot be had that no run of ACT holds. */
static void devices_add_reason(struct act_buf *reasons, char *why)
{
    enum { REASONS_MAX_BYTES = 300 };

    if (reasons->len < REASONS_MAX_BYTES)
        act_buf_addf(reasons, "%s%s", reasons->len ? "; " : "", why);
    free(why);
}

/* Returns why a GPU that no run of this user holds cannot be had. New string; NULL: it can. */
static char *why_not(const struct devices *d, size_t i, uid_t holder)
{
    int percent = d->spec->gpu_free_memory ? d->spec->gpu_free_memory : FREE_PERCENT;

    if (holder == (uid_t)-1)
        return gpus_why_busy(&d->list.v[i], percent);
    ACT_AUTOFREE char *name = gpus_name(&d->list.v[i]), *user = act_user_name(holder);
    return act_sprintf("%s is held by a run of %s", name, holder == geteuid() ? "yours" : user);
}

bool devices_choose(void *arg, const bool *free_slots, int need, bool *out_chosen, struct slots_lack *out_lack)
{
    struct devices *d = arg;
    ACT_AUTOFREE uid_t *holders = act_calloc(d->list.n + 1, sizeof(uid_t));
    ACT_AUTOFREE bool *can = act_calloc(d->list.n + 1, sizeof(bool));
    struct act_buf reasons = {0};

    if (must_ask(d, free_slots)) {
        devices_ask(d);
        memcpy(d->free_then, free_slots, d->list.n * sizeof(bool));
    }
    claims_look(&d->claims, &d->keys, holders);
    for (size_t i = 0; i < d->list.n; i++) {
        char *why = free_slots[i] && d->list.v[i].is_given ? why_not(d, i, holders[i]) : NULL;
        can[i] = free_slots[i] && d->list.v[i].is_given && !why;
        out_lack->can_be_had += can[i];
        if (why)
            devices_add_reason(&reasons, why);
    }
    bool enough = gpus_choose(&d->list, can, (size_t)need, out_chosen);
    if (!enough && reasons.len)
        out_lack->why = act_buf_steal(&reasons);
    act_buf_release(&reasons);
    if (!enough || claims_take(&d->claims, &d->keys, out_chosen))
        return enough;
    out_lack->can_be_had = 0; /* somebody was quicker */
    return false;
}

char *devices_places(const struct devices *d, const struct slots *slots)
{
    struct act_buf text = {0};

    for (size_t i = 0; i < d->list.n; i++)
        if (slots_has(slots, (int)i))
            act_buf_addf(&text, "%s%d", text.len ? "," : "", d->places[i]);
    return act_buf_steal(&text);
}

void devices_show(const struct devices *d, const struct slots *slots)
{
    ACT_AUTOFREE bool *mine = act_calloc(d->list.n + 1, sizeof(bool));

    for (size_t i = 0; i < d->list.n; i++)
        mine[i] = slots_has(slots, (int)i);
    ACT_AUTOFREE char *text = gpus_text(&d->list, mine);
    gpus_show(&d->list, mine);
    node_say("GPUs: %s", *text ? text : "none");
}
