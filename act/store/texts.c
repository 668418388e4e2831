/* texts.c - the store of texts that their owner gathers, one by one or all at once, into files of its own. */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "engine/engine.h"
#include "http/http.h"
#include "store/store_internal.h"

enum { LOOK_AGAIN_MS = 20 };

struct texts_store {
    struct store store;
    struct store_texts_options options;
    bool gathering;
};

struct texts_call {
    struct texts_store *s;
    struct store_call *call;
};

static const struct store_text *find(const struct texts_store *s, const char *key)
{
    const struct store_texts *texts = s->options.texts;

    for (size_t i = 0; i < texts->n; i++)
        if (strcmp(texts->v[i].key, key) == 0)
            return &texts->v[i];
    return NULL;
}

/* The loop runs meanwhile. */
static int gather(struct texts_store *s, struct act_error *err)
{
    s->gathering = true;
    int rc = s->options.gather(s->options.arg, err);
    s->gathering = false;
    return rc;
}

static void fill_entry(const struct texts_store *s, const struct store_text *text, struct store_entry *entry)
{
    entry->key = act_strdup(text->key);
    entry->size = text->size;
    entry->last_modified_s = text->changed_unix_s;
    entry->grows = s->options.grow && !text->is_whole;
}

static int list(struct texts_store *s, struct store_call *call, struct store_page *page)
{
    const struct store_texts *texts = s->options.texts;
    int rc = gather(s, &call->error);

    for (size_t i = 0; rc == 0 && i < texts->n; i++)
        if (act_starts_with(texts->v[i].key, call->key))
            fill_entry(s, &texts->v[i], store_page_add(page));
    return rc;
}

static int read_text(const struct texts_store *s, const struct store_text *text, struct store_call *call)
{
    while (call->get.got < call->get.sink_cap) {
        ssize_t n = pread(text->fd, (char *)call->get.sink + call->get.got, call->get.sink_cap - call->get.got,
                          (off_t)(call->get.offset + call->get.got));
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return act_error_errno(&call->error, errno, "cannot read what was gathered of log '%s'", call->key);
        if (n == 0)
            break;
        call->get.got += (size_t)n;
    }
    if (call->get.sums)
        store_sums_add(call->get.sums, call->get.sink, call->get.got);
    fill_entry(s, text, &call->entry);
    return 0;
}

/* What was not gathered yet may be there by now. */
static int get(struct texts_store *s, struct store_call *call)
{
    const struct store_text *text = find(s, call->key);
    int rc = text && call->get.offset < text->size ? 0 : gather(s, &call->error);

    text = find(s, call->key);
    if (rc < 0)
        return rc;
    if (!text)
        return act_error_set(&call->error, ACT_NOT_FOUND, "run '%s' has no log '%s'", s->options.id, call->key);
    return read_text(s, text, call);
}

static void carry_out(void *arg)
{
    struct texts_call own = *(struct texts_call *)arg;

    if (own.s->gathering) {
        engine_timer(http_engine(own.s->store.http), LOOK_AGAIN_MS, carry_out, arg);
        return;
    }
    free(arg);
    if (own.call->op == STORE_GET) {
        store_finish(own.call, get(own.s, own.call));
        return;
    }
    struct store_page page = {0};
    int rc = list(own.s, own.call, &page);
    store_finish_listed(&own.s->store, own.call, rc, &page);
}

static void start_call(struct store *store, struct store_call *call)
{
    struct texts_call *own = act_calloc(1, sizeof(*own));

    *own = (struct texts_call){.s = (struct texts_store *)store, .call = call};
    engine_timer(http_engine(store->http), 0, carry_out, own);
}

static void close_texts(struct store *store)
{
    struct texts_store *s = (struct texts_store *)store;

    s->options.close(s->options.arg);
    free(s);
}

static const struct store_ops ops = {
    .start = {[STORE_HEAD] = start_call, [STORE_GET] = start_call, [STORE_LIST] = start_call},
    .close = close_texts,
    .real_folders = true,
};

struct store *store_texts_open(struct http *http, const struct store_texts_options *options)
{
    struct texts_store *s = act_calloc(1, sizeof(*s));

    s->options = *options;
    s->store = (struct store){.ops = &ops, .http = http, .name = store_logs_name(options->id, &s->options.id)};
    return &s->store;
}
