/* package_internal.h - shared by the files of this module. */
#ifndef ACT_PACKAGE_PACKAGE_INTERNAL_H
#define ACT_PACKAGE_PACKAGE_INTERNAL_H

#include "package/package.h"

/* The rules of one project: what the configuration keeps out, built-in list, .gitignore, .actignore, zip_options. */
struct package_rules;

int package_rules_new(const struct package_options *options, struct package_rules **out,
                      struct act_error *err) ACT_NODISCARD;
void package_rules_free(struct package_rules *rules);

/* The walk comes to a folder ("" is the root), before it asks for what is in it. Whole subtrees come one after the
 * other. A .gitignore there that cannot be read is an error. */
int package_rules_enter(struct package_rules *rules, const char *folder, struct act_error *err) ACT_NODISCARD;

enum package_verdict {
    PACKAGE_KEEP,
    PACKAGE_SKIP,  /* left out; of a folder only its own entry, what is in it is asked for itself */
    PACKAGE_PRUNE, /* a folder that is left out with all that is in it */
};

/* path is relative to the root, without a final slash. *out_rule says by which rule, a new string, and is
 * NULL when it is kept and for the mere entry of a folder. */
enum package_verdict package_rules_ask(const struct package_rules *rules, const char *path, bool is_folder,
                                       char **out_rule);

/* ---- gitignore.c */

struct package_gitignore;
/* Reads the files above the root, if it lies in a repository. */
int package_gitignore_new(const char *root, struct package_gitignore **out,
                          struct act_error *err) ACT_NODISCARD;
void package_gitignore_free(struct package_gitignore *gitignore);
/* As package_rules_enter(). */
int package_gitignore_enter(struct package_gitignore *gitignore, const char *folder,
                            struct act_error *err) ACT_NODISCARD;
/* The line that leaves the path out ("src/.gitignore:3 '*.pt'", a new string), or NULL. */
char *package_gitignore_ask(struct package_gitignore *gitignore, const char *path, bool is_folder);

/* A name for an error text: at most a line's worth, control characters and bytes that are not UTF-8 as \xNN. */
char *package_printable(const char *path);

/* ---- deflate.c: what a thread needs to compress, half a MiB, is taken from those that all share */

enum { PACKAGE_STORED = 0, PACKAGE_DEFLATED = 8 }; /* the methods of zip */
#define PACKAGE_DICTIONARY 32768                   /* bytes before a piece that help to compress it */

struct package_deflater;
struct package_deflaters;
struct package_deflaters *package_deflaters_new(void);
void package_deflaters_free(struct package_deflaters *all);
struct package_deflater *package_deflater_take(struct package_deflaters *all);
void package_deflater_give(struct package_deflaters *all, struct package_deflater *d);
/* What the compressed bytes depend on besides the data. */
const char *package_deflate_version(void);

uint32_t package_crc(const void *data, size_t len);
/* Of two ranges, one behind the other, from that of each. */
uint32_t package_crc_join(uint32_t first, uint32_t second, uint64_t second_len);

/* A whole file into out (len bytes). Returns the length; 0 when it does not get smaller. */
size_t package_deflate_whole(struct package_deflater *d, const void *data, size_t len, void *out);
/* A piece of a larger file into out (package_piece_bound(len) bytes), for which the `before` bytes in front of
 * data are known to the reader (at most PACKAGE_DICTIONARY). Returns the length. */
size_t package_deflate_piece(struct package_deflater *d, const uint8_t *data, size_t len, size_t before,
                             bool last, uint8_t *out);
size_t package_piece_bound(size_t len);

/* ---- zip.c */

/* What the archive says of an entry besides its path and mode. */
struct package_item {
    uint64_t offset; /* of its local header */
    uint64_t len;    /* of all its bytes: header, data, descriptor */
    uint64_t size, packed;
    uint32_t crc;
    uint16_t method;
    bool streamed; /* CRC and sizes follow the data */
};

void package_zip_local(struct act_buf *b, const char *path, const struct package_item *item);
void package_zip_descriptor(struct act_buf *b, const struct package_item *item);
void package_zip_central(struct act_buf *b, const char *path, unsigned mode, const struct package_item *item);
/* The end of an archive of n entries whose central directory has len bytes at offset. */
void package_zip_end(struct act_buf *b, uint64_t n, uint64_t offset, uint64_t len);

/* ---- index.c: what the last package of a project was made of */

struct package_known {
    const char *path;
    uint64_t size, inode;
    int64_t mtime_ns, ctime_ns;
    unsigned mode;
    bool fresh; /* it had just been changed when it was read, see index.c */
    struct package_item item;
};

struct package_index {
    char sha256[ACT_SHA256_HEX]; /* of the package; "": there is none */
    uint64_t bytes;
    struct package_known *v; /* sorted by path */
    size_t n;
    struct package_block *blocks;
    size_t n_blocks;
    char *text; /* holds the paths */
};

/* Reads an index; one that is missing, damaged or of another version is an empty one. */
void package_index_load(const char *path, struct package_index *out);
void package_index_release(struct package_index *index);
/* What is other than in the index, into out's is_first, n_changed, changed and changed_bytes. items: of the list, as they were packed;
 * NULL: they were not, and a file's size and times tell. */
void package_index_compare(const struct package_index *index, const struct package_list *list,
                           const struct package_item *items, struct package_summary *out);
/* Replaces it by what was just written. */
int package_index_save(const char *path, const struct package_list *list, const struct package_item *items,
                       const struct package_summary *summary, struct act_error *err) ACT_NODISCARD;
/* What is known of an entry, when it can be taken from the last package as it is; else NULL. */
const struct package_known *package_index_find(const struct package_index *index,
                                               const struct package_entry *entry);

/* ---- temp.c */

/* Makes a file new-*.zip in the folder, 0600, that is locked for as long as it is open. Returns a descriptor and
 * its path, a new string; or -1 with errno. */
int package_temp(const char *folder, char **out_path);

#endif
