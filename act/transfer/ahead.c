/* ahead.c - items waiting for their turn: first in, first out, packed one after another into pages.
 *
 * An entry is stored without the unused ends of its texts: about 150 bytes plus its key, where an object under way
 * takes several thousand. See copy.h.
 */
#include <assert.h>
#include <string.h>

#include "transfer/copy.h"

enum { PAGE = 64 << 10 };

/* The members of an entry before its texts are copied as they are. */
#define ENTRY_HEAD offsetof(struct store_entry, md5)
static_assert(offsetof(struct store_entry, etag) == ENTRY_HEAD + ACT_MD5_BASE64 &&
                  sizeof(struct store_entry) - offsetof(struct store_entry, etag) < STORE_ETAG + sizeof(void *),
              "md5 and etag are the last of an entry");

struct ahead_page {
    struct ahead_page *next;
    size_t used, taken, cap;
    char data[];
};

struct ahead_record {
    walk_take *begin;
    size_t rel; /* offset in the source's key */
    enum sync_action action;
    enum sync_reason reason;
    bool has_to;
};

/* ---- packing texts and entries */

static size_t entry_size(const struct store_entry *e)
{
    return ENTRY_HEAD + strlen(e->md5) + strlen(e->etag) + strlen(e->key) + 3;
}

static char *pack_bytes(char *at, const void *data, size_t len)
{
    memcpy(at, data, len);
    return at + len;
}

static char *pack_entry(char *at, const struct store_entry *e)
{
    at = pack_bytes(at, e, ENTRY_HEAD);
    at = pack_bytes(at, e->md5, strlen(e->md5) + 1);
    at = pack_bytes(at, e->etag, strlen(e->etag) + 1);
    return pack_bytes(at, e->key, strlen(e->key) + 1);
}

static const char *unpack_bytes(const char *at, void *out, size_t len)
{
    memcpy(out, at, len);
    return at + len;
}

static const char *unpack_entry(const char *at, struct store_entry *out)
{
    at = unpack_bytes(at, out, ENTRY_HEAD);
    at = unpack_bytes(at, out->md5, strlen(at) + 1);
    at = unpack_bytes(at, out->etag, strlen(at) + 1);
    out->key = act_strdup(at);
    return at + strlen(at) + 1;
}

/* ---- the queue */

static struct ahead_page *page_with_room(struct ahead *a, size_t len)
{
    struct ahead_page *page = a->last;

    if (page && page->cap - page->used >= len)
        return page;
    size_t cap = len > PAGE ? len : PAGE;
    page = act_alloc(sizeof(*page) + cap);
    *page = (struct ahead_page){.cap = cap};
    *(a->last ? &a->last->next : &a->first) = page;
    a->last = page;
    a->bytes += cap;
    return page;
}

void ahead_put(struct ahead *a, struct sync_item *item, walk_take *begin)
{
    struct ahead_record record = {.begin = begin,
                                  .rel = (size_t)(item->rel - item->from.key),
                                  .action = item->action,
                                  .reason = item->reason,
                                  .has_to = item->to.key != NULL};
    size_t len = sizeof(record) + entry_size(&item->from) + (record.has_to ? entry_size(&item->to) : 0);
    struct ahead_page *page = page_with_room(a, len);
    char *at = pack_bytes(page->data + page->used, &record, sizeof(record));

    at = pack_entry(at, &item->from);
    if (record.has_to)
        pack_entry(at, &item->to);
    page->used += len;
    a->n++;
    sync_item_release(item);
}

static void drop_first_page(struct ahead *a)
{
    struct ahead_page *page = a->first;

    a->first = page->next;
    if (!a->first)
        a->last = NULL;
    a->bytes -= page->cap;
    free(page);
}

bool ahead_take(struct ahead *a, struct sync_item *item, walk_take **begin)
{
    struct ahead_page *page = a->first;
    struct ahead_record record;

    if (a->n == 0)
        return false;
    const char *at = unpack_bytes(page->data + page->taken, &record, sizeof(record));
    *item = (struct sync_item){.action = record.action, .reason = record.reason};
    at = unpack_entry(at, &item->from);
    if (record.has_to)
        at = unpack_entry(at, &item->to);
    item->rel = item->from.key + record.rel;
    *begin = record.begin;
    page->taken = (size_t)(at - page->data);
    a->n--;
    if (page->taken == page->used)
        drop_first_page(a);
    return true;
}

void ahead_release(struct ahead *a)
{
    while (a->first)
        drop_first_page(a);
    *a = (struct ahead){0};
}
