/* files.h - what the server holds with --files: accounts, shares, and in each a tree of directories and files.
 *
 * The content of a file and its headers are a version, as those of a blob (blobs.h): a write makes a new one. All of it
 * is read with blobs_read() and changed with blobs_write(). */
#ifndef BLOBSERVER_FILES_H
#define BLOBSERVER_FILES_H

#include "http.h"

enum { TICKS = 10000000 }; /* in a second: the times of files have that resolution */

struct node {
    struct node *parent; /* NULL: the root of a share */
    char *name;          /* as it was written */
    char *key;           /* the same folded: what differs in case alone is the same */
    bool directory;
    uint64_t id;
    uint64_t stored; /* bytes that were written into it, for the share's quota */
    struct version *version;
    int64_t created, written, changed; /* ticks since 1970 */
    char attributes[80];
    struct node **children; /* sorted by key */
    size_t n, cap;
};

struct share {
    struct share *next;
    char *account, *name;
    struct node *root;
    struct text meta;
    uint64_t etag;
    int64_t modified;
    unsigned quota_gib;
    uint64_t room, stored; /* bytes that it may hold, and holds */
};

int64_t files_now(void); /* in ticks, by the server's clock */

struct share *share_first(void);
struct share *share_find(const char *account, const char *name);
struct share *share_add(const char *account, const char *name);
void share_remove(struct share *s);

/* What the names of a directory are compared by: never NULL. To be freed. */
char *name_key(const char *name);
/* The first child whose key is not below key. */
size_t node_seek(const struct node *directory, const char *key);
/* NULL when it is not there. */
struct node *node_find(const struct node *directory, const char *name);
/* Adds an empty one of a name that is not there. */
struct node *node_add(struct node *directory, const char *name, bool is_directory);
/* Takes it out of its directory; the share forgets what was stored in it. */
void node_remove(struct share *s, struct node *node);
/* Puts it elsewhere under a name that is not there. */
void node_move(struct node *node, struct node *directory, const char *name);
/* A new version in place of the old one, taking over the reference. */
void node_set(struct node *node, struct version *v);
/* Reads as zeroes. */
struct content *content_zeroes(uint64_t n);

/* "SHARE:PREFIX:COUNT:SIZE": makes count files prefix0000000... of size bytes each, and the share and directories that
 * are not there. "SHARE:BYTES" says how many bytes the share may hold. false: the text is none of that. */
bool files_preload(const char *account, const char *text);
bool files_limit(const char *account, const char *text);
/* Somebody else writes the file that the request names: as many bytes, but others. */
void files_replace(const struct request *r);

#endif
