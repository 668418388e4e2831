/* blocklist.c - Put Block List and Get Block List. */
#include "service.h"

#include <expat.h>
#include <stdlib.h>
#include <string.h>

enum { BLOCKS_MAX = 50000 };
enum from { LATEST, COMMITTED, UNCOMMITTED };

struct wanted {
    enum from from;
    char id[BLOCK_ID];
};

struct parse {
    struct wanted *v;
    size_t n, cap;
    int depth;
    size_t id_len;
    bool bad, too_long;
};

static void start_element(void *arg, const char *name, const char **attributes)
{
    static const char *const names[] = {"Latest", "Committed", "Uncommitted"};
    struct parse *p = arg;

    (void)attributes;
    if (++p->depth == 1) {
        p->bad |= strcmp(name, "BlockList") != 0;
        return;
    }
    size_t from = 0;
    while (from < COUNT(names) && strcmp(names[from], name) != 0)
        from++;
    p->too_long |= p->n == BLOCKS_MAX;
    p->bad |= p->depth > 2 || from == COUNT(names) || p->too_long;
    if (p->bad)
        return;
    if (p->n == p->cap)
        p->v = need(realloc(p->v, (p->cap = p->cap * 2 + 64) * sizeof(p->v[0])));
    p->v[p->n++] = (struct wanted){.from = (enum from)from};
    p->id_len = 0;
}

static void end_element(void *arg, const char *name)
{
    struct parse *p = arg;

    (void)name;
    p->depth--;
}

static void characters(void *arg, const char *s, int n)
{
    struct parse *p = arg;

    for (int i = 0; i < n && !p->bad && p->depth == 2; i++) {
        p->bad = p->id_len + 1 >= BLOCK_ID;
        if (!p->bad && !strchr(" \r\n\t", s[i]))
            p->v[p->n - 1].id[p->id_len++] = s[i];
    }
}

static void parse_list(const struct request *r, struct parse *p)
{
    XML_Parser xml = need(XML_ParserCreate(NULL));

    XML_SetUserData(xml, p);
    XML_SetElementHandler(xml, start_element, end_element);
    XML_SetCharacterDataHandler(xml, characters);
    p->bad |= !r->body || !r->body->bytes ||
              XML_Parse(xml, (const char *)r->body->bytes, (int)r->body->n, 1) != XML_STATUS_OK;
    XML_ParserFree(xml);
}

static int blob_blocklist_by_id(const void *a, const void *b)
{
    return strcmp(((const struct block *)a)->id, ((const struct block *)b)->id);
}

static struct content *blob_blocklist_find_block(const struct blocks *sorted, const char *id)
{
    size_t at = blocks_seek(sorted, id);

    return at < sorted->n && !strcmp(sorted->v[at].id, id) ? sorted->v[at].content : NULL;
}

/* A version of the blocks that are listed, or NULL when one is missing. */
static struct version *assemble(const struct parse *p, const struct entry *e)
{
    struct blocks committed = {0}, chosen = {0};
    struct content **contents = need(calloc(p->n + 1, sizeof(contents[0])));
    bool complete = true;

    for (size_t i = 0; e->current && i < e->current->blocks.n; i++)
        blocks_put(&committed, i, e->current->blocks.v[i].id, content_ref(e->current->blocks.v[i].content));
    if (committed.n)
        qsort(committed.v, committed.n, sizeof(committed.v[0]), blob_blocklist_by_id);
    for (size_t i = 0; i < p->n && complete; i++) {
        const struct wanted *w = &p->v[i];
        struct content *c = w->from == COMMITTED ? NULL : blob_blocklist_find_block(&e->pending, w->id);
        if (!c && w->from != UNCOMMITTED)
            c = blob_blocklist_find_block(&committed, w->id);
        complete = c;
        if (c)
            blocks_put(&chosen, i, w->id, content_ref(contents[i] = c));
    }
    struct version *v = complete ? version_new(BLOCK_BLOB, content_join(contents, p->n)) : NULL;
    if (v)
        v->blocks = chosen;
    else
        blocks_clear(&chosen);
    blocks_clear(&committed);
    free(contents);
    return v;
}

static int blob_blocklist_commit(struct request *r, struct reply *reply, const struct parse *p)
{
    static const struct entry nothing;
    struct container *c = its_container(r, reply);
    const struct entry *e = c ? entry_find(c, r->blob) : NULL;

    if (!c || check_write(r, reply, e ? e->current : NULL))
        return reply->status;
    struct version *v = assemble(p, e ? e : &nothing);
    if (!v)
        return reply_error(reply, 400, "InvalidBlockList");
    if (!take_properties(r, reply, v)) {
        version_unref(v);
        return reply->status;
    }
    return store_version(r, reply, v, 201);
}

int put_block_list(struct request *r, struct reply *reply)
{
    struct parse p = {0};
    int status = 0;

    parse_list(r, &p);
    if (p.bad)
        status = reply_error(reply, 400, p.too_long ? "BlockListTooLong" : "InvalidXmlDocument");
    else
        status = blob_blocklist_commit(r, reply, &p);
    free(p.v);
    return status;
}

static void add_blocks(struct text *t, const char *name, const struct blocks *blocks)
{
    text_addf(t, "<%s>", name);
    for (size_t i = 0; i < blocks->n; i++)
        text_addf(t, "<Block><Name>%s</Name><Size>%llu</Size></Block>", blocks->v[i].id,
                  (unsigned long long)blocks->v[i].content->n);
    text_addf(t, "</%s>", name);
}

int get_block_list(struct request *r, struct reply *reply)
{
    static const struct blocks none;
    struct container *c = its_container(r, reply);
    const struct entry *e = c ? entry_find(c, r->blob) : NULL;
    const char *type = param(r, "blocklisttype");

    if (!c)
        return reply->status;
    if (!e)
        return reply_error(reply, 404, "BlobNotFound");
    reply_header(reply, "Content-Type", "application/xml");
    if (e->current)
        reply_etag(reply, e->current->etag, e->current->modified);
    text_addf(&reply->head, "x-ms-blob-content-length: %llu\r\n",
              (unsigned long long)(e->current ? e->current->content->n : 0));
    text_str(&reply->body, "\xef\xbb\xbf<?xml version=\"1.0\" encoding=\"utf-8\"?><BlockList>");
    if (strcmp(type, "uncommitted") != 0)
        add_blocks(&reply->body, "CommittedBlocks", e->current ? &e->current->blocks : &none);
    if (*type && strcmp(type, "committed") != 0)
        add_blocks(&reply->body, "UncommittedBlocks", &e->pending);
    text_str(&reply->body, "</BlockList>");
    return reply->status = 200;
}
