/* package.h - the zip of the code: which files, and the same bytes for the same tree.
 *
 * Rules, in the order they are asked; the first that matches decides:
 *   1. mapped folders and the built-in list (.git, __pycache__, *.pyc, build trees, assets, ...),
 *   2. zip_options ("-x", PATTERN as Info-ZIP: '*' also matches '/'; backslashes that protected the pattern
 * from a shell are dropped; "-i" likewise restricts),
 *   3. .actignore in the root, in gitignore syntax.
 * Top-level dot files stay out unless .actignore re-includes them ("!.name"), as with the original's '*'.
 * Symbolic links are stored as links, modes and empty folders are kept; sockets, pipes and devices are left
 * out and said. Names must be UTF-8 without line breaks; others are an error that names them before anything
 * is written.
 */
#ifndef ACT_PACKAGE_PACKAGE_H
#define ACT_PACKAGE_PACKAGE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "base/hash.h"
#include "base/text.h"

struct package_options {
    const char *root;                   /* the project root */
    const struct act_strv *zip_options; /* may be NULL */
    const struct act_strv *mapped;      /* names of mapped top-level folders; may be NULL */
};

struct package_entry {
    char *path; /* relative to the root; folders end in '/' */
    uint64_t size;
    unsigned mode; /* st_mode: type and permissions */
    int64_t mtime_ns;
    int64_t ctime_ns;
    uint64_t inode;
};

struct package_left_out {
    char *path;
    char *rule; /* "built-in rule '__pycache__'", "zip_options '-x *.ckpt'", ".actignore:3 '*.tmp'",
                   "socket" */
};

struct package_list {
    struct package_entry *v; /* sorted by path, byte order */
    size_t n;
    struct package_left_out *left_out; /* sorted; a folder that is left out is one row */
    size_t n_left_out;
    uint64_t bytes; /* of all files, uncompressed */
};

/* Walks the tree and applies the rules. Unreadable files and folders that are not left out are errors, all of
 * them named (up to five) at once. */
int package_scan(const struct package_options *options, struct package_list *out,
                 struct act_error *err) ACT_NODISCARD;
void package_list_release(struct package_list *list);

struct package_summary {
    char sha256[ACT_SHA256_HEX];
    uint64_t bytes; /* of the zip */
};

/* Writes the zip of a scanned list (deflate, entries in list order, fixed time stamps) to path, atomically. A
 * file that changed since the scan, or while it was read, is -ACT_TEMPORARY and named. */
int package_write(const struct package_options *options, const struct package_list *list, const char *path,
                  struct package_summary *out, struct act_error *err) ACT_NODISCARD;

#endif
