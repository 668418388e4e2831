#include "files.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <wchar.h>
#include <wctype.h>

enum { ZEROES = 4 << 20, QUOTA_GIB = 5120 };

static struct share *shares;
static uint64_t ids = UINT64_C(9223512774343131136); /* as large as the service's */

int64_t files_now(void)
{
    return blobs_now() * TICKS;
}

static char *blob_files_copy_of(const char *s)
{
    return need(strdup(s));
}

/* ---- names */

/* In upper case, which is also the order in which the service lists. Needs a locale of UTF-8; what is not UTF-8 stays
 * as it is. */
char *name_key(const char *name)
{
    struct text key = {0};
    mbstate_t from = {0}, to = {0};
    char bytes[16];

    text_add(&key, "", 0);
    for (size_t left = strlen(name); left;) {
        wchar_t c;
        size_t n = mbrtowc(&c, name, left, &from);
        size_t made = n <= left ? wcrtomb(bytes, (wchar_t)towupper((wint_t)c), &to) : (size_t)-1;
        if (made == (size_t)-1) {
            from = to = (mbstate_t){0};
            bytes[0] = *name;
            n = made = 1;
        }
        text_add(&key, bytes, made);
        name += n;
        left -= n;
    }
    return key.s;
}

size_t node_seek(const struct node *directory, const char *key)
{
    size_t low = 0, high = directory->n;

    while (low < high) {
        size_t middle = (low + high) / 2;
        if (strcmp(directory->children[middle]->key, key) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

struct node *node_find(const struct node *directory, const char *name)
{
    char *key = name_key(name);
    size_t at = node_seek(directory, key);
    bool there = at < directory->n && !strcmp(directory->children[at]->key, key);

    free(key);
    return there ? directory->children[at] : NULL;
}

/* ---- the tree */

static struct node *node_new(const char *name, bool directory)
{
    struct node *node = need(calloc(1, sizeof(*node)));
    int64_t now = files_now();

    *node = (struct node){.name = blob_files_copy_of(name),
                          .key = name_key(name),
                          .directory = directory,
                          .id = ids += 1 << 14,
                          .version = version_new(BLOCK_BLOB, content_zeroes(0)),
                          .created = now,
                          .written = now,
                          .changed = now};
    snprintf(node->attributes, sizeof(node->attributes), "%s", directory ? "Directory" : "None");
    return node;
}

static void node_free(struct node *node)
{
    for (size_t i = 0; i < node->n; i++)
        node_free(node->children[i]);
    version_unref(node->version);
    free(node->children);
    free(node->name);
    free(node->key);
    free(node);
}

static void insert(struct node *directory, struct node *node)
{
    size_t at = node_seek(directory, node->key);

    if (directory->n == directory->cap)
        directory->children = need(
            realloc(directory->children, (directory->cap = directory->cap * 2 + 8) * sizeof(directory->children[0])));
    memmove(&directory->children[at + 1], &directory->children[at],
            (directory->n++ - at) * sizeof(directory->children[0]));
    directory->children[at] = node;
    node->parent = directory;
}

static void blob_files_take_out(struct node *node)
{
    struct node *directory = node->parent;
    size_t at = node_seek(directory, node->key);

    memmove(&directory->children[at], &directory->children[at + 1],
            (--directory->n - at) * sizeof(directory->children[0]));
}

struct node *node_add(struct node *directory, const char *name, bool is_directory)
{
    struct node *node = node_new(name, is_directory);

    insert(directory, node);
    return node;
}

void node_remove(struct share *s, struct node *node)
{
    s->stored -= node->stored;
    blob_files_take_out(node);
    node_free(node);
}

void node_move(struct node *node, struct node *directory, const char *name)
{
    blob_files_take_out(node);
    free(node->name);
    free(node->key);
    node->name = blob_files_copy_of(name);
    node->key = name_key(name);
    insert(directory, node);
}

void node_set(struct node *node, struct version *v)
{
    version_unref(node->version);
    node->version = v;
    node->changed = files_now();
}

struct content *content_zeroes(uint64_t n)
{
    static struct data *zeroes;
    struct content *piece[1], *all;
    size_t pieces = (size_t)((n + ZEROES - 1) / ZEROES);

    if (!zeroes) {
        zeroes = data_new(ZEROES, false);
        memset(zeroes->bytes, 0, ZEROES);
    }
    if (pieces <= 1) {
        piece[0] = content_of(data_ref(zeroes));
        all = content_slice(piece[0], 0, n);
        content_unref(piece[0]);
        return all;
    }
    struct content **many = need(malloc(pieces * sizeof(*many)));
    for (size_t i = 0; i < pieces; i++)
        many[i] = content_zeroes(i + 1 < pieces ? ZEROES : n - (uint64_t)i * ZEROES);
    all = content_join(many, pieces);
    for (size_t i = 0; i < pieces; i++)
        content_unref(many[i]);
    free(many);
    return all;
}

/* ---- shares */

struct share *share_first(void)
{
    return shares;
}

struct share *share_find(const char *account, const char *name)
{
    struct share *s = shares;

    while (s && (strcmp(s->name, name) != 0 || strcmp(s->account, account) != 0))
        s = s->next;
    return s;
}

struct share *share_add(const char *account, const char *name)
{
    struct share *s = need(calloc(1, sizeof(*s)));

    *s = (struct share){.next = shares,
                        .account = blob_files_copy_of(account),
                        .name = blob_files_copy_of(name),
                        .root = node_new("", true),
                        .etag = etag_new(),
                        .modified = blobs_now(),
                        .quota_gib = QUOTA_GIB,
                        .room = (uint64_t)QUOTA_GIB << 30};
    return shares = s;
}

void share_remove(struct share *s)
{
    struct share **link = &shares;

    while (*link != s)
        link = &(*link)->next;
    *link = s->next;
    node_free(s->root);
    text_free(&s->meta);
    free(s->account);
    free(s->name);
    free(s);
}

/* ---- what tests command */

static struct share *need_share(const char *account, const char *name)
{
    struct share *s = share_find(account, name);

    return s ? s : share_add(account, name);
}

/* The directory that a path's last name is in, made where it is not there. The path is changed. */
static struct node *need_directory(struct share *s, char *path, const char **last)
{
    struct node *directory = s->root;

    for (char *slash; (slash = strchr(path, '/')); path = slash + 1) {
        *slash = '\0';
        struct node *next = node_find(directory, path);
        directory = next ? next : node_add(directory, path, true);
    }
    *last = path;
    return directory;
}

bool files_preload(const char *account, const char *text)
{
    char *copy = blob_files_copy_of(text), *rest = NULL, *field[4] = {0};

    for (size_t i = 0; i < COUNT(field) && (!i || field[i - 1]); i++)
        field[i] = strtok_r(i ? NULL : copy, ":", &rest);
    bool fine = field[3];
    const char *prefix;
    struct node *directory = fine ? need_directory(need_share(account, field[0]), field[1], &prefix) : NULL;
    uint64_t count = fine ? strtoull(field[2], NULL, 10) : 0, size = fine ? strtoull(field[3], NULL, 10) : 0;
    struct version *v = version_new(BLOCK_BLOB, content_of(data_new(size, true)));
    struct text name = {0};
    for (uint64_t i = 0; i < count; i++) {
        text_clear(&name);
        text_addf(&name, "%s%07llu", prefix, (unsigned long long)i);
        node_set(node_add(directory, name.s, false), version_ref(v));
    }
    text_free(&name);
    version_unref(v);
    free(copy);
    return fine;
}

bool files_limit(const char *account, const char *text)
{
    const char *colon = strchr(text, ':');
    char name[64];

    snprintf(name, sizeof(name), "%.*s", colon ? (int)(colon - text) : 0, text);
    struct share *s = share_find(account, name);
    if (s && colon)
        s->room = strtoull(colon + 1, NULL, 10);
    return s;
}

void files_replace(const struct request *r)
{
    struct share *s = share_find(r->account, r->container);
    struct node *node = s ? s->root : NULL;
    char *path = blob_files_copy_of(r->blob), *rest = NULL;

    for (char *name = strtok_r(path, "/", &rest); name && node; name = strtok_r(NULL, "/", &rest))
        node = node_find(node, name);
    if (node && !node->directory) {
        uint64_t n = node->version->content->n;
        struct data *d = data_new(n, false);
        memset(d->bytes, '!', n);
        struct version *v = version_copy(node->version);
        content_unref(v->content);
        v->content = content_of(d);
        node_set(node, v);
        node->written = node->changed;
    }
    free(path);
}
