/* texts.c - the store of texts that their owner gathers, one by one or all at once, into one file: a descriptor for
 * each would be too many. What is added to a text is kept until there is enough of it, so that a text is in few
 * stretches.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "store/store_internal.h"

enum { STRETCH_LEAST = 8 << 10 };

struct store_stretch {
    uint64_t at, in_file, len; /* at: in the text */
};

struct texts_store {
    struct store store;
    struct store_texts_options options;
    bool gathering;
};

/* ---- the texts ---- */

size_t store_texts_new(struct store_texts *texts)
{
    ACT_PUSH(texts->v, texts->n, (struct store_text){0});
    return texts->n - 1;
}

static int write_at_end(struct store_texts *texts, const struct act_buf *bytes)
{
    texts->file = texts->file ? texts->file : tmpfile();
    return texts->file && act_pwrite_all(fileno(texts->file), bytes->data, bytes->len, (off_t)texts->end) == 0 ? 0
                                                                                                               : -errno;
}

static int flush_text(struct store_texts *texts, struct store_text *text)
{
    uint64_t len = text->pending.len;
    struct store_stretch *last = text->n_stretches ? &text->stretches[text->n_stretches - 1] : NULL;
    int rc = len ? write_at_end(texts, &text->pending) : 0;

    if (rc < 0 || len == 0)
        return rc;
    if (last && last->in_file + last->len == texts->end)
        last->len += len;
    else
        ACT_PUSH(text->stretches, text->n_stretches,
                 (struct store_stretch){.at = text->size, .in_file = texts->end, .len = len});
    texts->end += len;
    text->size += len;
    text->changed_unix_s = act_now_unix_s();
    text->pending.len = 0;
    return 0;
}

int store_texts_add(struct store_texts *texts, size_t i, const char *data, size_t len)
{
    struct store_text *text = &texts->v[i];

    act_buf_add(&text->pending, data, len);
    return text->pending.len >= STRETCH_LEAST ? flush_text(texts, text) : 0;
}

int store_texts_flush(struct store_texts *texts)
{
    int rc = 0;

    for (size_t i = 0; rc == 0 && i < texts->n; i++)
        rc = flush_text(texts, &texts->v[i]);
    return rc;
}

void store_texts_release(struct store_texts *texts)
{
    for (size_t i = 0; i < texts->n; i++) {
        free(texts->v[i].key);
        free(texts->v[i].stretches);
        act_buf_release(&texts->v[i].pending);
    }
    free(texts->v);
    if (texts->file)
        fclose(texts->file);
    *texts = (struct store_texts){0};
}

/* Returns the stretch that has the byte; there is one. */
static const struct store_stretch *stretch_at(const struct store_text *text, uint64_t offset)
{
    size_t low = 0, high = text->n_stretches;

    while (high - low > 1) {
        size_t middle = low + (high - low) / 2;
        if (text->stretches[middle].at <= offset)
            low = middle;
        else
            high = middle;
    }
    return &text->stretches[low];
}

/* Reads as pread() does. */
static ssize_t text_read_some(const struct store_texts *texts, const struct store_text *text, char *to, size_t len,
                              uint64_t offset)
{
    if (offset >= text->size)
        return 0;
    const struct store_stretch *stretch = stretch_at(text, offset);
    uint64_t skip = offset - stretch->at, left = stretch->len - skip;

    return pread(fileno(texts->file), to, len < left ? len : (size_t)left, (off_t)(stretch->in_file + skip));
}

/* ---- the store ---- */

static const struct store_text *text_find(const struct texts_store *s, const char *key)
{
    const struct store_texts *texts = s->options.texts;

    for (size_t i = 0; i < texts->n; i++)
        if (act_streq(texts->v[i].key, key))
            return &texts->v[i];
    return NULL;
}

/* Has the owner gather the texts, while the loop runs. */
static int texts_gather(struct texts_store *s, struct act_error *err)
{
    s->gathering = true;
    int rc = s->options.gather(s->options.arg, err);
    s->gathering = false;
    return rc;
}

static void text_fill_entry(const struct texts_store *s, const struct store_text *text, struct store_entry *entry)
{
    entry->key = act_strdup(text->key);
    entry->size = text->size;
    entry->last_modified_s = text->changed_unix_s;
    entry->grows = s->options.texts->incomplete || (s->options.grow && !s->options.texts->is_whole);
}

static int texts_list(struct store *store, struct store_call *call, struct store_page *page)
{
    struct texts_store *s = (struct texts_store *)store;
    const struct store_texts *texts = s->options.texts;
    int rc = texts_gather(s, &call->error);

    for (size_t i = 0; rc == 0 && i < texts->n; i++)
        if (act_starts_with(texts->v[i].key, call->key))
            text_fill_entry(s, &texts->v[i], store_page_add(page));
    return rc;
}

static int text_read(const struct texts_store *s, const struct store_text *text, struct store_call *call)
{
    while (call->get.got < call->get.sink_cap) {
        ssize_t n = text_read_some(s->options.texts, text, (char *)call->get.sink + call->get.got,
                                   call->get.sink_cap - call->get.got, call->get.offset + call->get.got);
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
    text_fill_entry(s, text, &call->entry);
    return 0;
}

/* Reads a text, and gathers first when its end was reached, as there may be more by now. */
static int texts_get(struct store *store, struct store_call *call)
{
    struct texts_store *s = (struct texts_store *)store;
    const struct store_text *text = text_find(s, call->key);
    int rc = text && call->get.offset < text->size ? 0 : texts_gather(s, &call->error);

    text = text_find(s, call->key);
    if (rc < 0)
        return rc;
    if (!text)
        return act_error_set(&call->error, ACT_NOT_FOUND, "run '%s' has no log '%s'", s->options.id, call->key);
    return text_read(s, text, call);
}

static bool is_gathering(const struct store *store)
{
    return ((const struct texts_store *)store)->gathering;
}

static bool texts_watch(struct store *store, bool *news)
{
    struct texts_store *s = (struct texts_store *)store;

    if (s->options.watch)
        s->options.watch(s->options.arg, news);
    return s->options.watch != NULL;
}

static void texts_close(struct store *store)
{
    struct texts_store *s = (struct texts_store *)store;

    s->options.close(s->options.arg);
    free(s);
}

static const struct store_ops ops = {
    .operations = STORE_READS,
    .start = store_read_on_loop,
    .get = texts_get,
    .list = texts_list,
    .is_busy = is_gathering,
    .watch = texts_watch,
    .close = texts_close,
    .traits = {.real_folders = true, .is_disk = true},
};

struct store *store_texts_open(struct http *http, const struct store_texts_options *options)
{
    struct texts_store *s = act_calloc(1, sizeof(*s));

    s->options = *options;
    s->store = (struct store){.ops = &ops, .http = http, .name = store_logs_name(options->id, &s->options.id)};
    return &s->store;
}
