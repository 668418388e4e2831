#include "blobs.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static pthread_rwlock_t lock = PTHREAD_RWLOCK_INITIALIZER;
static struct container *containers;
static _Atomic uint64_t etags = UINT64_C(0x8DD000000000000);
static _Atomic int64_t clock_offset;

static void grab(unsigned *refs)
{
    __atomic_add_fetch(refs, 1, __ATOMIC_RELAXED);
}

static bool blob_blobs_drop(unsigned *refs)
{
    return __atomic_sub_fetch(refs, 1, __ATOMIC_ACQ_REL) == 0;
}

/* ---- bytes */

struct data *data_new(uint64_t n, bool swallowed)
{
    struct data *d = need(malloc(sizeof(*d)));

    *d = (struct data){.refs = 1, .n = n, .bytes = swallowed ? NULL : need(malloc(n + 1))};
    return d;
}

struct data *data_ref(struct data *d)
{
    grab(&d->refs);
    return d;
}

void data_unref(struct data *d)
{
    if (!d || !blob_blobs_drop(&d->refs))
        return;
    free(d->bytes);
    free(d);
}

uint8_t pattern_byte(uint64_t at)
{
    unsigned i = (unsigned)(at % PATTERN);

    return (uint8_t)(i * 7 + (i >> 8));
}

static struct content *content_room(size_t n_pieces)
{
    struct content *c = need(malloc(sizeof(*c) + n_pieces * sizeof(c->pieces[0])));

    *c = (struct content){.refs = 1};
    return c;
}

static void content_push(struct content *c, const struct piece *p, uint64_t from, uint64_t n)
{
    if (!n)
        return;
    c->pieces[c->n_pieces++] = (struct piece){.data = data_ref(p->data), .from = p->from + from, .n = n};
    c->n += n;
}

struct content *content_of(struct data *d)
{
    struct content *c = content_room(1);

    content_push(c, &(struct piece){.data = d}, 0, d->n);
    data_unref(d);
    return c;
}

struct content *content_ref(struct content *c)
{
    grab(&c->refs);
    return c;
}

void content_unref(struct content *c)
{
    if (!c || !blob_blobs_drop(&c->refs))
        return;
    for (size_t i = 0; i < c->n_pieces; i++)
        data_unref(c->pieces[i].data);
    free(c);
}

struct content *content_slice(const struct content *c, uint64_t from, uint64_t n)
{
    struct content *slice = content_room(c->n_pieces);
    uint64_t start = 0;

    for (size_t i = 0; i < c->n_pieces; start += c->pieces[i++].n) {
        const struct piece *p = &c->pieces[i];
        uint64_t a = from > start ? from - start : 0;
        uint64_t b = from + n > start ? from + n - start : 0;
        b = b < p->n ? b : p->n;
        if (a < b)
            content_push(slice, p, a, b - a);
    }
    return slice;
}

struct content *content_join(struct content *const *v, size_t n)
{
    size_t pieces = 0;

    for (size_t i = 0; i < n; i++)
        pieces += v[i]->n_pieces;
    struct content *all = content_room(pieces);
    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; k < v[i]->n_pieces; k++)
            content_push(all, &v[i]->pieces[k], 0, v[i]->pieces[k].n);
    return all;
}

void content_read(const struct content *c, uint64_t from, uint64_t n, uint8_t *out)
{
    uint64_t start = 0, at = from;

    for (size_t i = 0; i < c->n_pieces && at < from + n; start += c->pieces[i++].n) {
        const struct piece *p = &c->pieces[i];
        for (; at < start + p->n && at < from + n; at++)
            *out++ = p->data->bytes ? p->data->bytes[p->from + at - start] : pattern_byte(at);
    }
}

/* ---- blocks */

size_t blocks_seek(const struct blocks *b, const char *id)
{
    size_t low = 0, high = b->n;

    while (low < high) {
        size_t middle = (low + high) / 2;
        if (strcmp(b->v[middle].id, id) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

void blocks_put(struct blocks *b, size_t at, const char *id, struct content *content)
{
    if (b->n == b->cap)
        b->v = need(realloc(b->v, (b->cap = b->cap * 2 + 8) * sizeof(b->v[0])));
    memmove(&b->v[at + 1], &b->v[at], (b->n - at) * sizeof(b->v[0]));
    b->n++;
    snprintf(b->v[at].id, BLOCK_ID, "%s", id);
    b->v[at].content = content;
}

void blocks_clear(struct blocks *b)
{
    for (size_t i = 0; i < b->n; i++)
        content_unref(b->v[i].content);
    free(b->v);
    *b = (struct blocks){0};
}

/* ---- versions */

uint64_t etag_new(void)
{
    return ++etags;
}

struct version *version_new(enum blob_type type, struct content *content)
{
    struct version *v = need(calloc(1, sizeof(*v)));
    int64_t now = blobs_now();

    *v = (struct version){
        .refs = 1, .type = type, .etag = etag_new(), .created = now, .modified = now, .content = content};
    return v;
}

static char *blob_blobs_copy_of(const char *s)
{
    return s ? need(strdup(s)) : NULL;
}

struct version *version_copy(const struct version *v)
{
    struct version *copy = version_new(v->type, content_ref(v->content));

    copy->created = v->created;
    copy->appended = v->appended;
    for (size_t i = 0; i < v->blocks.n; i++)
        blocks_put(&copy->blocks, i, v->blocks.v[i].id, content_ref(v->blocks.v[i].content));
    for (size_t i = 0; i < PROPS; i++)
        copy->props[i] = blob_blobs_copy_of(v->props[i]);
    text_add(&copy->meta, v->meta.s, v->meta.n);
    memcpy(copy->tier, v->tier, sizeof(copy->tier));
    return copy;
}

struct version *version_ref(struct version *v)
{
    grab(&v->refs);
    return v;
}

void version_unref(struct version *v)
{
    if (!v || !blob_blobs_drop(&v->refs))
        return;
    content_unref(v->content);
    blocks_clear(&v->blocks);
    for (size_t i = 0; i < PROPS; i++)
        free(v->props[i]);
    text_free(&v->meta);
    free(v->copy_source);
    free(v->copy_id);
    free(v);
}

/* ---- lock and clock */

void blobs_read(void)
{
    pthread_rwlock_rdlock(&lock);
}

void blobs_write(void)
{
    pthread_rwlock_wrlock(&lock);
}

void blobs_unlock(void)
{
    pthread_rwlock_unlock(&lock);
}

int64_t blobs_now(void)
{
    return time(NULL) + clock_offset;
}

void blobs_clock(int64_t offset)
{
    clock_offset = offset;
}

/* ---- containers */

struct container *container_first(void)
{
    return containers;
}

struct container *container_find(const char *account, const char *name)
{
    struct container *c = containers;

    while (c && (strcmp(c->name, name) != 0 || strcmp(c->account, account) != 0))
        c = c->next;
    return c;
}

struct container *container_add(const char *account, const char *name)
{
    struct container *c = need(calloc(1, sizeof(*c)));

    *c = (struct container){.next = containers,
                            .account = blob_blobs_copy_of(account),
                            .name = blob_blobs_copy_of(name),
                            .etag = etag_new(),
                            .modified = blobs_now()};
    return containers = c;
}

static void entry_free(struct entry *e)
{
    version_unref(e->current);
    blocks_clear(&e->pending);
    free(e);
}

void container_remove(struct container *c)
{
    struct container **link = &containers;

    while (*link != c)
        link = &(*link)->next;
    *link = c->next;
    for (size_t i = 0; i < c->n_chunks; i++) {
        for (size_t k = 0; k < c->chunks[i]->n; k++)
            entry_free(c->chunks[i]->v[k]);
        free(c->chunks[i]);
    }
    free(c->chunks);
    free(c->account);
    free(c->name);
    text_free(&c->meta);
    free(c);
}

/* ---- the index: chunks of at most CHUNK entries, in order */

struct cursor entry_seek(struct container *c, const char *name)
{
    size_t low = 0, high = c->n_chunks;

    while (low < high) { /* the first chunk whose last name is not below name */
        size_t middle = (low + high) / 2;
        const struct chunk *k = c->chunks[middle];
        if (strcmp(k->v[k->n - 1]->name, name) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    struct cursor found = {.container = c, .chunk = low};
    if (low == c->n_chunks)
        return found;
    const struct chunk *k = c->chunks[low];
    for (low = 0, high = k->n; low < high;) {
        size_t middle = (low + high) / 2;
        if (strcmp(k->v[middle]->name, name) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    found.at = low;
    return found;
}

struct entry *entry_at(const struct cursor *c)
{
    return c->chunk < c->container->n_chunks ? c->container->chunks[c->chunk]->v[c->at] : NULL;
}

void entry_next(struct cursor *c)
{
    if (++c->at < c->container->chunks[c->chunk]->n)
        return;
    c->at = 0;
    c->chunk++;
}

struct entry *entry_find(struct container *c, const char *name)
{
    struct cursor at = entry_seek(c, name);
    struct entry *e = entry_at(&at);

    return e && !strcmp(e->name, name) ? e : NULL;
}

static void chunk_insert(struct container *c, size_t at)
{
    if (c->n_chunks == c->cap_chunks)
        c->chunks = need(realloc(c->chunks, (c->cap_chunks = c->cap_chunks * 2 + 8) * sizeof(c->chunks[0])));
    memmove(&c->chunks[at + 1], &c->chunks[at], (c->n_chunks++ - at) * sizeof(c->chunks[0]));
    c->chunks[at] = need(malloc(sizeof(struct chunk)));
    c->chunks[at]->n = 0;
}

/* A full chunk becomes two; one that is appended to stays full, so that sorted input fills all. */
static void blob_blobs_split(struct container *c, struct cursor *at)
{
    struct chunk *k = c->chunks[at->chunk];

    if (k->n < CHUNK)
        return;
    size_t keep = at->at == CHUNK ? CHUNK : CHUNK / 2;
    chunk_insert(c, at->chunk + 1);
    struct chunk *right = c->chunks[at->chunk + 1];
    right->n = CHUNK - keep;
    memcpy(right->v, k->v + keep, right->n * sizeof(k->v[0]));
    k->n = keep;
    if (at->at >= keep && (at->at > keep || keep == CHUNK)) {
        at->chunk++;
        at->at -= keep;
    }
}

static void entry_insert(struct container *c, struct cursor at, struct entry *e)
{
    if (at.chunk == c->n_chunks && c->n_chunks == 0) {
        chunk_insert(c, 0);
    } else if (at.chunk == c->n_chunks) { /* behind all: at the end of the last chunk */
        at.chunk--;
        at.at = c->chunks[at.chunk]->n;
    }
    blob_blobs_split(c, &at);
    struct chunk *k = c->chunks[at.chunk];
    memmove(&k->v[at.at + 1], &k->v[at.at], (k->n++ - at.at) * sizeof(k->v[0]));
    k->v[at.at] = e;
}

struct entry *entry_make(struct container *c, const char *name)
{
    struct cursor at = entry_seek(c, name);
    struct entry *e = entry_at(&at);

    if (e && !strcmp(e->name, name))
        return e;
    size_t n = strlen(name) + 1;
    e = need(calloc(1, sizeof(*e) + n));
    memcpy(e->name, name, n);
    entry_insert(c, at, e);
    return e;
}

void entry_tidy(struct container *c, struct entry *e)
{
    if (e->current || e->pending.n)
        return;
    struct cursor at = entry_seek(c, e->name);
    struct chunk *k = c->chunks[at.chunk];
    memmove(&k->v[at.at], &k->v[at.at + 1], (--k->n - at.at) * sizeof(k->v[0]));
    if (!k->n) {
        free(k);
        memmove(&c->chunks[at.chunk], &c->chunks[at.chunk + 1], (--c->n_chunks - at.chunk) * sizeof(c->chunks[0]));
    }
    entry_free(e);
}

void entry_set(struct container *c, struct entry *e, struct version *v)
{
    version_unref(e->current);
    e->current = v;
    blocks_clear(&e->pending);
    entry_tidy(c, e);
}

static void preload(struct container *c, const char *prefix, uint64_t count, uint64_t size)
{
    struct version *v = version_new(BLOCK_BLOB, content_of(data_new(size, true)));
    struct text name = {0};

    v->props[PROP_TYPE] = blob_blobs_copy_of("application/octet-stream");
    for (uint64_t i = 0; i < count; i++) {
        text_clear(&name);
        text_addf(&name, "%s%07llu", prefix, (unsigned long long)i);
        struct entry *e = entry_make(c, name.s);
        version_unref(e->current);
        e->current = version_ref(v);
    }
    text_free(&name);
    version_unref(v);
}

bool blobs_preload(const char *account, const char *text)
{
    char *copy = blob_blobs_copy_of(text), *rest = NULL, *field[4] = {0};

    for (size_t i = 0; i < COUNT(field) && (!i || field[i - 1]); i++)
        field[i] = strtok_r(i ? NULL : copy, ":", &rest);
    bool fine = field[3];
    if (fine) {
        struct container *c = container_find(account, field[0]);
        preload(c ? c : container_add(account, field[0]), field[1], strtoull(field[2], NULL, 10),
                strtoull(field[3], NULL, 10));
    }
    free(copy);
    return fine;
}
