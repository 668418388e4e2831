/* package_internal.h - shared by the files of this module. */
#ifndef ACT_PACKAGE_PACKAGE_INTERNAL_H
#define ACT_PACKAGE_PACKAGE_INTERNAL_H

#include "package/package.h"

/* The rules of one project: what the configuration keeps out, built-in list, .gitignore, .actignore, zip_options. */
struct package_rules;

int package_rules_new(const struct package_options *options, struct package_rules **out,
                      struct act_error *err) ACT_NODISCARD;
void package_rules_free(struct package_rules *rules);

/* Call it when the walk enters a folder ("" is the root), before asking about its contents. Whole subtrees come one
 * after the other. An unreadable .gitignore there is an error. */
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
int package_gitignore_new(const char *root, struct package_gitignore **out, struct act_error *err) ACT_NODISCARD;
void package_gitignore_free(struct package_gitignore *gitignore);
/* Does the part of package_rules_enter() for .gitignore. */
int package_gitignore_enter(struct package_gitignore *gitignore, const char *folder,
                            struct act_error *err) ACT_NODISCARD;
/* Returns the line that leaves the path out ("src/.gitignore:3 '*.pt'", a new string), or NULL. */
char *package_gitignore_ask(struct package_gitignore *gitignore, const char *path, bool is_folder);

/* ---- gitconfig.c */

/* Returns where the user's own excludes are (core.excludesFile, or git's default), a new string; NULL: there are none.
 * git_dir: that of the repository, with its own configuration; NULL: there is none. */
char *package_git_excludes(const char *git_dir, const char *top);
/* Returns a path of git's, "~/x", absolute or relative, as seen from the folder dir. New string. */
char *package_path_from(const char *dir, const char *path);
/* Calls each for the values of a text in git's syntax, in order: "section.key" in lower case. Sections with a
 * subsection are passed over; what is malformed ends it. */
void package_gitconfig_parse(const char *text, void (*each)(void *arg, const char *name, const char *value), void *arg);

/* Returns a path for an error text: at most a line's worth, with control characters and bytes that are not UTF-8 as
 * \xNN. */
char *package_printable(const char *path);

/* ---- deflate.c: the half MiB that a thread needs to compress comes from a shared pool */

#define PACKAGE_DICTIONARY 32768 /* bytes before a piece that help to compress it */

struct package_deflater;
struct package_deflaters;
struct package_deflaters *package_deflaters_new(void);
void package_deflaters_free(struct package_deflaters *all);
struct package_deflater *package_deflater_take(struct package_deflaters *all);
void package_deflater_give(struct package_deflaters *all, struct package_deflater *d);
/* Names all that the compressed bytes depend on besides the data. */
const char *package_deflate_version(void);

uint32_t package_crc(const void *data, size_t len);
/* Returns the checksum of two adjacent ranges from that of each. */
uint32_t package_crc_join(uint32_t first, uint32_t second, uint64_t second_len);

/* Compresses a whole file into out (package_piece_bound(len) bytes). Returns the length. */
size_t package_deflate_whole(struct package_deflater *d, const void *data, size_t len, void *out);
/* Compresses a piece of a larger file into out (package_piece_bound(len) bytes). The `before` bytes in front of data
 * are known to the reader (at most PACKAGE_DICTIONARY). Returns the length. */
size_t package_deflate_piece(struct package_deflater *d, const uint8_t *data, size_t len, size_t before, bool last,
                             uint8_t *out);
size_t package_piece_bound(size_t len);

/* ---- sink.c: the file of an archive, hashed on the way */

struct package_sink {
    int fd;
    uint64_t at;      /* where the next byte goes */
    uint64_t end;     /* of what was written */
    uint64_t settled; /* what is before it changes no more */
    uint64_t hashed;  /* never more than is settled */
    uint64_t start;   /* what is before it is in the file, the rest in the buffer */
    char *buffer;
    struct act_sha256 sha;
    int errnum; /* why a write failed; 0: none did */
};

void package_sink_open(struct package_sink *sink, int fd);
/* These return 0, or -1 with errno. */
int package_sink_write(struct package_sink *sink, const void *data, size_t len) ACT_NODISCARD;
int package_sink_flush(struct package_sink *sink) ACT_NODISCARD;
/* All that was written stays as it is. */
void package_sink_settle(struct package_sink *sink);
/* Flushes it and gives the SHA-256 of all that is settled. The file stays open. */
int package_sink_close(struct package_sink *sink, char out[ACT_SHA256_HEX]) ACT_NODISCARD;

/* ---- zip.c */

/* The facts of an entry in the archive besides its path, size and mode, and where it is. */
struct package_item {
    uint64_t offset; /* of its local header */
    uint64_t data;   /* of its data, which it ends with */
    uint64_t packed; /* the length of that */
    uint32_t crc;
};

/* An archive to be made. */
struct package_zip {
    const struct package_entry *entries;
    size_t n;                   /* at least one */
    struct package_item *items; /* of the entries; filled in, but for the CRC */
    struct package_sink *sink;
    /* Gives the next bytes of entry i as they are to be in the archive; 0 after its last one, when the CRC is known;
     * negative: the archive is given up. The entries come in order. */
    int64_t (*read)(void *arg, size_t i, void *data, size_t len);
    /* Called when entry i is in the archive, and settled in the sink. */
    void (*settled)(void *arg, size_t i);
    void *arg;
};

int package_zip_write(const struct package_zip *zip, struct act_error *err) ACT_NODISCARD;
/* Tells whether an entry's data is raw deflate; else it is stored. */
bool package_is_deflated(const struct package_entry *entry);
/* Names all that the headers depend on besides the entries. */
const char *package_zip_version(void);

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
    char sha256[ACT_SHA256_HEX]; /* of the package; "": none */
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
/* Compares the list with the index, and sets is_first, n_changed, changed and changed_bytes of out. items: those of the
 * list, as they were packed; NULL: they were not, and a file's size and times tell. */
void package_index_compare(const struct package_index *index, const struct package_list *list,
                           const struct package_item *items, struct package_summary *out);
/* Replaces it by what was just written. */
int package_index_save(const char *path, const struct package_list *list, const struct package_item *items,
                       const struct package_summary *summary, struct act_error *err) ACT_NODISCARD;
/* Returns an entry of the last package that can be taken as it is, else NULL. */
const struct package_known *package_index_find(const struct package_index *index, const struct package_entry *entry);

#endif
