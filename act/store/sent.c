/* sent.c - the store of the logs of a run that are in two places: at its platform as long as that has them, and where
 * its nodes have sent them, each attempt below a folder of its own.
 */
#include <string.h>

#include "base/clock.h"
#include "base/units.h"
#include "store/store_internal.h"

#define ATTEMPTS "attempts/"

struct sent_store {
    struct store store;
    struct store *live, *sent;
    char *root;             /* in sent, with its slash */
    int attempt;            /* the last one: its logs have plain names */
    struct store_page page; /* what sent had at listed_ms */
    int64_t listed_ms;
};

/* ---- names */

/* Takes "attempts/3/user_logs/x" of the sent logs apart: returns 3, and gives the rest; 0: the key is not of this
 * form. */
static int sent_attempt_of(const struct sent_store *s, const char *key, const char **out_rest)
{
    const char *at = key + strlen(s->root) + strlen(ATTEMPTS), *slash = strchr(at, '/');
    int64_t n = 0;

    if (!slash)
        return 0;
    ACT_AUTOFREE char *text = act_strndup(at, (size_t)(slash - at));
    *out_rest = slash + 1;
    return act_int_from_text(text, &n) && n > 0 && n < INT32_MAX ? (int)n : 0;
}

/* These turn the name of a log into the key that it was sent to, and back. New strings. */
static char *sent_key_of(const struct sent_store *s, const char *name)
{
    return act_starts_with(name, ATTEMPTS) ? act_sprintf("%s%s", s->root, name)
                                           : act_sprintf("%s" ATTEMPTS "%d/%s", s->root, s->attempt, name);
}

static char *sent_name_of(const struct sent_store *s, int attempt, const char *rest)
{
    return attempt < s->attempt ? act_sprintf(ATTEMPTS "%d/%s", attempt, rest) : act_strdup(rest);
}

/* ---- listing */

static bool sent_has(const struct store_page *page, const char *key)
{
    for (size_t i = 0; i < page->n; i++)
        if (strcmp(page->v[i].key, key) == 0)
            return true;
    return false;
}

static void sent_move_entries(struct store_page *from, struct store_page *to)
{
    for (size_t i = 0; i < from->n; i++) {
        *store_page_add(to) = from->v[i];
        from->v[i] = (struct store_entry){0};
    }
}

/* Lists all entries of a store below a key. */
static int store_sent_list_all(struct store *store, const char *key, bool with_ends, struct store_page *out,
                               struct act_error *err)
{
    ACT_AUTOFREE char *marker = NULL;
    int rc;

    do {
        struct store_call call = {.op = STORE_LIST, .key = key, .list = {.marker = marker, .with_ends = with_ends}};
        rc = store_do(store, &call, err);
        sent_move_entries(&call.list.page, out);
        free(marker);
        marker = call.list.page.next ? act_strdup(call.list.page.next) : NULL;
        store_call_release(&call);
    } while (rc == 0 && marker);
    return rc;
}

static void add_sent(struct sent_store *s, const char *prefix, const struct store_page *sent, struct store_page *out)
{
    const char *rest;

    for (size_t i = 0; i < sent->n; i++) {
        int attempt = sent_attempt_of(s, sent->v[i].key, &rest);
        s->attempt = attempt > s->attempt ? attempt : s->attempt;
    }
    for (size_t i = 0; i < sent->n; i++) {
        int attempt = sent_attempt_of(s, sent->v[i].key, &rest);
        ACT_AUTOFREE char *name = attempt > 0 ? sent_name_of(s, attempt, rest) : NULL;
        if (!name || !strchr(name, '/') || !act_starts_with(name, prefix) || sent_has(out, name))
            continue;
        *store_page_add(out) = (struct store_entry){
            .key = act_strdup(name), .size = sent->v[i].size, .last_modified_s = sent->v[i].last_modified_s};
    }
}

/* Lists what was sent, or gives it without another request to who asks only because the other store has news. */
static int list_sent(struct sent_store *s, const char *below, bool by_news, struct act_error *err)
{
    enum { GOOD_MS = 500 };
    int64_t now = act_now_monotonic_ms();

    if (by_news && now < s->listed_ms + GOOD_MS)
        return 0;
    store_page_release(&s->page);
    s->listed_ms = now;
    return store_sent_list_all(s->sent, below, false, &s->page, err);
}

static int sent_list(struct store *store, struct store_call *call, struct store_page *out)
{
    struct sent_store *s = (struct sent_store *)store;
    ACT_AUTOFREE char *below = act_sprintf("%s" ATTEMPTS, s->root);
    int rc = store_sent_list_all(s->live, call->key, call->list.with_ends, out, &call->error);

    if (rc < 0 && rc != -ACT_NOT_FOUND)
        return rc;
    struct act_error other;
    int sent_rc = list_sent(s, below, call->list.by_news && rc == 0, rc == 0 ? &other : &call->error);
    if (sent_rc == 0)
        add_sent(s, call->key, &s->page, out);
    if (rc == 0 || out->n > 0)
        return 0;
    return sent_rc < 0 ? sent_rc
                       : act_error_set(&call->error, ACT_NOT_FOUND,
                                       "there are no logs: its platform does not have the run any more, and '%s' has "
                                       "none below '%s'",
                                       s->sent->name, below);
}

/* ---- reading */

static int read_from(struct store *store, const char *key, struct store_call *call)
{
    struct store_call own = {.op = STORE_GET, .key = key, .get = call->get};
    int rc = store_do(store, &own, &call->error);

    call->get.got = own.get.got;
    if (rc == 0) {
        call->entry = own.entry;
        own.entry = (struct store_entry){0};
        free(call->entry.key);
        call->entry.key = act_strdup(call->key);
    }
    store_call_release(&own);
    return rc;
}

static int sent_get(struct store *store, struct store_call *call)
{
    const struct sent_store *s = (const struct sent_store *)store;
    ACT_AUTOFREE char *key = sent_key_of(s, call->key);
    int rc = read_from(s->live, call->key, call);

    return rc == -ACT_NOT_FOUND ? read_from(s->sent, key, call) : rc;
}

/* ---- the store */

/* The platform's logs tell of all news: what the nodes send they print as well. */
static bool sent_watch(struct store *store, bool *news)
{
    return store_watch(((struct sent_store *)store)->live, news);
}

static void close_both(struct store *store)
{
    struct sent_store *s = (struct sent_store *)store;

    store_free(s->live);
    store_free(s->sent);
    store_page_release(&s->page);
    free(s->root);
    free(s);
}

static const struct store_ops ops = {
    .operations = STORE_READS,
    .start = store_read_on_loop,
    .get = sent_get,
    .list = sent_list,
    .watch = sent_watch,
    .close = close_both,
    .traits = {.real_folders = true, .is_disk = true},
};

struct store *store_sent_open(struct http *http, const struct store_sent_options *options)
{
    struct sent_store *s = act_calloc(1, sizeof(*s));

    const char *id;
    s->store = (struct store){.ops = &ops, .http = http, .name = store_logs_name(options->id, &id)};
    s->live = options->live;
    s->sent = options->sent;
    s->root = act_sprintf("%s/", options->path);
    s->attempt = options->attempt > 0 ? options->attempt : 1;
    return &s->store;
}
