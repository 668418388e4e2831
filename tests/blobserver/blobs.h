/* blobs.h - what the server holds: accounts, containers, and in each a sorted index of blobs.
 *
 * The content and the attributes of a blob never change: a write makes a new version. Who holds a reference to a
 * version may read it without a lock. Everything else here is read with blobs_read() and changed with blobs_write(). */
#ifndef BLOBSERVER_BLOBS_H
#define BLOBSERVER_BLOBS_H

#include "text.h"

/* Bytes of a request's body. bytes is NULL when they were swallowed: such data reads as the pattern. */
struct data {
    unsigned refs;
    uint64_t n;
    uint8_t *bytes;
};

struct data *data_new(uint64_t n, bool swallowed);
struct data *data_ref(struct data *d);
void data_unref(struct data *d);

/* Byte i of anything swallowed is byte i % PATTERN of the pattern; i counts from the start of the blob. */
enum { PATTERN = 64 << 10 };
uint8_t pattern_byte(uint64_t at);

/* A sequence of pieces of data. Immutable, shared. */
struct piece {
    struct data *data;
    uint64_t from, n;
};
struct content {
    unsigned refs;
    uint64_t n;
    size_t n_pieces;
    struct piece pieces[];
};

struct content *content_of(struct data *d); /* takes over the reference */
struct content *content_ref(struct content *c);
void content_unref(struct content *c);
struct content *content_slice(const struct content *c, uint64_t from, uint64_t n);
struct content *content_join(struct content *const *v, size_t n);
/* Copies the bytes [from, from + n) out. */
void content_read(const struct content *c, uint64_t from, uint64_t n, uint8_t *out);

enum { BLOCK_ID = 92 }; /* base64 of 64 bytes, and NUL */
struct block {
    char id[BLOCK_ID];
    struct content *content;
};
struct blocks {
    struct block *v;
    size_t n, cap;
};

enum blob_type { BLOCK_BLOB, APPEND_BLOB };
enum prop {
    PROP_TYPE,
    PROP_ENCODING,
    PROP_LANGUAGE,
    PROP_DISPOSITION,
    PROP_CACHE,
    PROP_MD5,
    PROPS,
};

struct version {
    unsigned refs;
    enum blob_type type;
    uint64_t etag;
    int64_t created, modified;
    struct content *content;
    struct blocks blocks;        /* committed by Put Block List */
    unsigned appended;           /* blocks of an append blob */
    char *props[PROPS];          /* NULL: not set */
    struct text meta;            /* name NUL value NUL ... */
    char *copy_source, *copy_id; /* of Copy Blob */
    int64_t copy_until;          /* monotonic milliseconds when the copy is done */
    char tier[12];
};

/* A version with one reference, a new ETag, modified now; takes over the content. */
struct version *version_new(enum blob_type type, struct content *content);
/* The same again, to be changed: everything but ETag and modification time. */
struct version *version_copy(const struct version *v);
struct version *version_ref(struct version *v);
void version_unref(struct version *v);

struct entry {
    struct version *current; /* NULL: only uncommitted blocks */
    struct blocks pending;   /* sorted by id */
    char name[];
};

enum { CHUNK = 512 };
struct chunk {
    size_t n;
    struct entry *v[CHUNK];
};
struct container {
    struct container *next;
    char *account, *name;
    struct text meta;
    uint64_t etag;
    int64_t modified;
    struct chunk **chunks;
    size_t n_chunks, cap_chunks;
};

/* A place in the index, valid until it changes. */
struct cursor {
    struct container *container;
    size_t chunk, at;
};

void blobs_read(void);
void blobs_write(void);
void blobs_unlock(void);

/* Seconds since 1970 by the server's clock, which is off by what blobs_clock() set. */
int64_t blobs_now(void);
void blobs_clock(int64_t offset);
uint64_t etag_new(void);

struct container *container_find(const char *account, const char *name);
struct container *container_first(void);
struct container *container_add(const char *account, const char *name);
void container_remove(struct container *c);

/* The first entry whose name is not below name. */
struct cursor entry_seek(struct container *c, const char *name);
/* NULL at the end. */
struct entry *entry_at(const struct cursor *c);
void entry_next(struct cursor *c);
struct entry *entry_find(struct container *c, const char *name);
/* Finds it or makes an empty one. */
struct entry *entry_make(struct container *c, const char *name);
/* Removes it when it holds nothing any more. */
void entry_tidy(struct container *c, struct entry *e);
/* Puts a version in place, taking over the reference (NULL: no version), and discards the uncommitted blocks. */
void entry_set(struct container *c, struct entry *e, struct version *v);

/* Position of the first block whose id is not below id, in blocks that are sorted. */
size_t blocks_seek(const struct blocks *b, const char *id);
void blocks_put(struct blocks *b, size_t at, const char *id, struct content *content);
void blocks_clear(struct blocks *b);

/* "CONTAINER:PREFIX:COUNT:SIZE": makes count blobs prefix0000000... of size bytes each, and the container if it is not
 * there. Returns false when the text is none of that. */
bool blobs_preload(const char *account, const char *text);

#endif
