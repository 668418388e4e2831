#include "sync/sync.h"

#include <string.h>

struct side {
    char *prefix;
    struct store_page page;
    size_t next; /* index of the next entry of the page */
    bool last;   /* no page follows */
};

struct sync {
    struct side sides[2];
};

enum sync_action sync_decide(const struct store_entry *from, const struct store_entry *to)
{
    if (!to || to->kind != from->kind || to->size != from->size)
        return SYNC_COPY;
    if (from->mtime_ns && to->mtime_ns)
        return from->mtime_ns == to->mtime_ns ? SYNC_SAME : SYNC_COPY;
    return from->md5[0] && strcmp(from->md5, to->md5) == 0 ? SYNC_SAME : SYNC_COPY;
}

struct sync *sync_new(const char *from_prefix, const char *to_prefix)
{
    struct sync *s = act_calloc(1, sizeof(*s));

    s->sides[SYNC_FROM].prefix = act_strdup(from_prefix);
    s->sides[SYNC_TO].prefix = act_strdup(to_prefix);
    return s;
}

/* Entries before "next" were handed over or released already. */
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
    }
    free(s);
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

void sync_feed(struct sync *s, enum sync_side which, struct store_page *page, bool last)
{
    struct side *side = &s->sides[which];

    release_rest(side);
    side->page = *page;
    side->last = last;
    *page = (struct store_page){0};
}

static const char *rel_of(const struct side *side, const struct store_entry *entry)
{
    return entry->key + strlen(side->prefix);
}

/* The destination's entry for rel, or NULL; drops what sorts before it. False: its next page is needed first. */
static bool find_match(struct side *to, const char *rel, const struct store_entry **out)
{
    *out = NULL;
    for (; !exhausted(to); to->next++) {
        struct store_entry *entry = &to->page.v[to->next];
        int order = strcmp(rel_of(to, entry), rel);
        if (order == 0)
            *out = entry;
        if (order >= 0)
            return true;
        store_entry_release(entry);
    }
    return to->last;
}

bool sync_next(struct sync *s, struct sync_item *out)
{
    struct side *from = &s->sides[SYNC_FROM];
    const struct store_entry *match;

    if (exhausted(from))
        return false;
    struct store_entry *entry = &from->page.v[from->next];
    if (!find_match(&s->sides[SYNC_TO], rel_of(from, entry), &match))
        return false;
    out->action = sync_decide(entry, match);
    out->from = *entry;
    out->rel = rel_of(from, entry);
    from->next++;
    return true;
}

bool sync_finished(const struct sync *s)
{
    return exhausted(&s->sides[SYNC_FROM]) && s->sides[SYNC_FROM].last;
}
