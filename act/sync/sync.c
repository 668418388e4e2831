#include "sync/sync.h"

#include <string.h>

struct side {
    char *prefix;
    struct store_page page;
    size_t next;  /* index of the next entry of the page */
    bool last;    /* no page follows */
    char *behind; /* the last key of the pages before */
};

struct sync {
    struct sync_options options;
    struct side sides[2];
};

/* ---- one object */

const char *sync_reason_text(enum sync_reason reason)
{
    static const char *const texts[] = {
        [SYNC_NO_REASON] = "",
        [SYNC_NEW] = "new",
        [SYNC_KIND] = "kind",
        [SYNC_SIZE] = "size",
        [SYNC_TIME] = "time",
        [SYNC_CONTENT] = "content",
        [SYNC_UNKNOWN] = "nothing known",
    };

    return texts[reason];
}

/* How finely a time is kept, as far as it tells itself. */
static int64_t grain_ns(int64_t ns)
{
    return ns % 1000000000 == 0 ? 1000000000 : ns % 100 == 0 ? 100 : 1;
}

static int64_t cut(int64_t ns, int64_t grain)
{
    int64_t rest = ns % grain;

    return ns - (rest < 0 ? rest + grain : rest);
}

static bool same_time(int64_t a, int64_t b)
{
    int64_t grain = grain_ns(a) > grain_ns(b) ? grain_ns(a) : grain_ns(b);

    return cut(a, grain) == cut(b, grain);
}

enum comparison { DIFFERENT, EQUAL, INCOMPARABLE };

static enum comparison compare_sums(const struct store_entry *a, const struct store_entry *b)
{
    if (a->md5[0] && b->md5[0])
        return strcmp(a->md5, b->md5) == 0 ? EQUAL : DIFFERENT;
    if (a->has_crc64 && b->has_crc64)
        return a->crc64 == b->crc64 ? EQUAL : DIFFERENT;
    return INCOMPARABLE;
}

static enum sync_reason why_different(const struct store_entry *from, const struct store_entry *to,
                                      bool checksum)
{
    bool times = from->mtime_ns && to->mtime_ns;

    if (!to)
        return SYNC_NEW;
    if (to->kind != from->kind)
        return SYNC_KIND;
    if (to->size != from->size)
        return SYNC_SIZE;
    if (times && (!checksum || from->kind != STORE_FILE))
        return same_time(from->mtime_ns, to->mtime_ns) ? SYNC_NO_REASON : SYNC_TIME;
    switch (compare_sums(from, to)) {
    case DIFFERENT:
        return SYNC_CONTENT;
    case EQUAL:
        return SYNC_NO_REASON;
    case INCOMPARABLE:
        break;
    }
    return SYNC_UNKNOWN;
}

enum sync_action sync_decide(const struct store_entry *from, const struct store_entry *to, bool checksum,
                             enum sync_reason *out_reason)
{
    enum sync_reason reason = to ? why_different(from, to, checksum) : SYNC_NEW;

    if (out_reason)
        *out_reason = reason;
    if (reason == SYNC_NO_REASON)
        return SYNC_SAME;
    return reason == SYNC_UNKNOWN && checksum && from->kind == STORE_FILE ? SYNC_UNSURE : SYNC_COPY;
}

/* ---- the merge */

struct sync *sync_new(const struct sync_options *options)
{
    struct sync *s = act_calloc(1, sizeof(*s));

    s->options = *options;
    s->sides[SYNC_FROM].prefix = act_strdup(options->from_prefix);
    s->sides[SYNC_TO].prefix = act_strdup(options->to_prefix);
    return s;
}

/* Entries before "next" were handed over already. */
static void release_rest(struct side *side)
{
    for (size_t i = side->next; i < side->page.n; i++)
        store_entry_release(&side->page.v[i]);
    side->page.n = 0;
    store_page_release(&side->page);
    side->next = 0;
}

void sync_free(struct sync *s)
{
    if (!s)
        return;
    for (int i = 0; i < 2; i++) {
        release_rest(&s->sides[i]);
        free(s->sides[i].prefix);
        free(s->sides[i].behind);
    }
    free(s);
}

void sync_item_release(struct sync_item *item)
{
    store_entry_release(&item->from);
    store_entry_release(&item->to);
}

static bool exhausted(const struct side *side)
{
    return side->next == side->page.n;
}

bool sync_wants(const struct sync *s, enum sync_side which)
{
    const struct side *side = &s->sides[which];

    return exhausted(side) && !side->last;
}

static const char *rel_of(const struct side *side, const struct store_entry *entry)
{
    return entry->key + strlen(side->prefix);
}

static int check_order(struct side *side, const struct store_page *page, struct act_error *err)
{
    const char *before = side->behind;

    for (size_t i = 0; i < page->n; i++) {
        const char *key = page->v[i].key;
        if (before && strcmp(key, before) <= 0)
            return act_error_set(
                err, ACT_FAIL, "cannot compare: the listing has '%s' behind '%s', out of order", key, before);
        before = key;
    }
    if (page->n > 0) {
        free(side->behind);
        side->behind = act_strdup(before);
    }
    return 0;
}

/* Takes out what does not take part. */
static void sieve(const struct sync *s, const struct side *side, struct store_page *page)
{
    size_t kept = 0;

    for (size_t i = 0; i < page->n; i++) {
        struct store_entry *e = &page->v[i];
        if (s->options.takes(s->options.arg, rel_of(side, e), e->kind == STORE_FOLDER))
            page->v[kept++] = *e;
        else
            store_entry_release(e);
    }
    page->n = kept;
}

int sync_feed(struct sync *s, enum sync_side which, struct store_page *page, bool last, struct act_error *err)
{
    struct side *side = &s->sides[which];
    int rc = check_order(side, page, err);

    if (rc < 0)
        return rc;
    if (s->options.takes)
        sieve(s, side, page);
    release_rest(side);
    side->page = *page;
    side->last = last;
    *page = (struct store_page){0};
    return 0;
}

static struct store_entry *head_of(struct side *side)
{
    return exhausted(side) ? NULL : &side->page.v[side->next];
}

/* Moves the entry at hand out of the page. */
static struct store_entry take_head(struct side *side)
{
    struct store_entry *head = head_of(side), entry = *head;

    *head = (struct store_entry){.mode = -1};
    side->next++;
    return entry;
}

/* Negative: the source's object comes first, positive: the destination's, 0: both have it. */
static int order_of(struct sync *s)
{
    struct side *from = &s->sides[SYNC_FROM], *to = &s->sides[SYNC_TO];

    if (exhausted(from) || exhausted(to))
        return exhausted(from) - exhausted(to);
    return strcmp(rel_of(from, head_of(from)), rel_of(to, head_of(to)));
}

/* The next pair, or one of it. False: a page is needed, or both sides are at their end. */
static bool next_pair(struct sync *s, struct sync_item *out)
{
    struct side *from = &s->sides[SYNC_FROM], *to = &s->sides[SYNC_TO];

    if (sync_wants(s, SYNC_FROM) || sync_wants(s, SYNC_TO) || (exhausted(from) && exhausted(to)))
        return false;
    int order = order_of(s);
    *out = (struct sync_item){0};
    if (order <= 0)
        out->from = take_head(from);
    if (order >= 0)
        out->to = take_head(to);
    out->rel = order <= 0 ? rel_of(from, &out->from) : rel_of(to, &out->to);
    return true;
}

bool sync_next(struct sync *s, struct sync_item *out)
{
    while (next_pair(s, out)) {
        if (out->from.key) {
            out->action =
                sync_decide(&out->from, out->to.key ? &out->to : NULL, s->options.checksum, &out->reason);
            return true;
        }
        out->action = SYNC_EXTRA;
        if (s->options.extras)
            return true;
        sync_item_release(out);
    }
    return false;
}

bool sync_finished(const struct sync *s)
{
    const struct side *from = &s->sides[SYNC_FROM], *to = &s->sides[SYNC_TO];

    return exhausted(from) && from->last && (!s->options.extras || (exhausted(to) && to->last));
}
