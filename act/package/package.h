/* package.h - the zip of the code: which files, and the same bytes for the same tree.
 *
 * A path is left out when any of these says so:
 *   1. the configuration: the mapped folders and account files; and what package_options.judge keeps out,
 *   2. the built-in list (.git, __pycache__, *.pyc, build trees, assets, ..., virtual environments whatever their
 *      names are, and results that tools leave), the .gitignore files as git
 *      reads them, then .actignore in the root, in the same syntax: the last that matches decides, but only
 *      .actignore takes back what the built-in list leaves out; what is in a folder that is left out is not
 *      looked at,
 *      What it leaves out of what a command may need (*.so, wandb, ...) does not count where zip_options have
 *      patterns, as these replaced the list of the original,
 *   3. zip_options: "-x PATTERN..." as Info-ZIP ('*' also matches '/'; backslashes and quotes that protected
 *      the pattern from a shell are dropped; "-i PATTERN..." takes only what matches). Other options of zip
 *      that change nothing here are passed over, the rest is an error.
 * A line "!name" of .actignore takes back what the built-in list leaves out when it has no wildcards or
 * repeats the built-in pattern, so that "!*" below a "*" never packs .git or secrets by accident. Account
 * files hold secrets: aux_data/configs is on the built-in list; "!aux_data/configs/" takes it back. Top-level
 * dot files stay out, as with the original's '*', unless taken back ("!.name", "!.*").
 *
 * Symbolic links are stored as links (one that leads out of the project gives a warning), the modes' rwx bits and
 * empty folders are kept; set-user-id, set-group-id and sticky bits, owners and times are not. Sockets, pipes and
 * devices are left out and reported. Names must be UTF-8 without control characters; others are an error that names
 * them before anything is written. A package without files holds one empty file, ".act-empty", because unzip does
 * not accept an archive without entries.
 */
#ifndef ACT_PACKAGE_PACKAGE_H
#define ACT_PACKAGE_PACKAGE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "base/hash.h"
#include "base/text.h"

struct engine;

struct package_options {
    const char *root;                   /* the project root */
    const struct act_strv *zip_options; /* may be NULL */
    const struct act_strv *kept_out;    /* paths below root: mapped folders, account files; may be NULL */
    /* Why a file stays out because of its content: a new string, or NULL. Called on workers, for the bytes that are
     * packed, but not for files of more than PACKAGE_JUDGED bytes. May be NULL. */
    char *(*judge)(const char *path, const void *data, size_t len);
    bool no_gitignore; /* .gitignore files do not count */
    bool as_it_is;     /* nor does any other rule but kept_out: the files were chosen before */
    bool takes_grown;  /* of a file that has become longer since the scan its first bytes are taken, with a warning */
};
#define PACKAGE_JUDGED ((size_t)1 << 20)

/* Checks that zip_options are understood: else -ACT_CONFIG. */
int package_check_options(const struct act_strv *zip_options, struct act_error *err) ACT_NODISCARD;

/* Tells whether a path below root is or looks like configuration: below aux_data, *.yaml, *.yml. */
bool package_is_config(const char *path);

struct package_entry {
    char *path; /* relative to the root; folders end in '/' */
    uint64_t size;
    unsigned mode; /* of st_mode: the type and the rwx bits */
    int64_t mtime_ns;
    int64_t ctime_ns;
    uint64_t inode;
};

struct package_left_out {
    char *path;
    char *rule; /* "built-in rule '__pycache__'", "zip_options '-x *.ckpt'", ".actignore:3 '*.tmp'",
                   "socket" */
};

/* Tells how much it matters that `rule` has left something out: no command needs it; one may need it; one may need it,
 * and yet the built-in list leaves it out. */
enum package_rule_weight { PACKAGE_RULE_PLAIN, PACKAGE_RULE_NOTED, PACKAGE_RULE_SAID };
enum package_rule_weight package_rule_weight(const char *rule);

struct package_list {
    struct package_entry *v; /* sorted by path, byte order */
    size_t n;
    struct package_left_out *left_out; /* sorted; a folder that is left out is one row */
    size_t n_left_out;
    uint64_t bytes;     /* of all files, uncompressed */
    int64_t started_ns; /* when the walk began */
};

/* Walks the tree and applies the rules. Unreadable files and folders that are not left out, and names that
 * cannot be packaged, are one error that names them (up to five). left_out may hold names with any bytes. */
int package_scan(const struct package_options *options, struct package_list *out, struct act_error *err) ACT_NODISCARD;
void package_list_release(struct package_list *list);

/* Moves new and changed files that options->judge keeps out to left_out: judges the likely ones, all of a few, or
 * all. index: as package_output. package_write() finds the others when it reads them. */
int package_judge(const struct package_options *options, const char *index, bool all, struct package_list *list,
                  struct act_error *err) ACT_NODISCARD;

/* ---- writing */

#define PACKAGE_BLOCK_ID 20

/* A range of the zip whose borders follow the content (they lie between entries, or between pieces of a large
 * one), so that a change elsewhere leaves it as it is. About a MiB, at most 8. */
struct package_block {
    uint64_t offset, len;
    uint64_t crc64;
    uint8_t id[PACKAGE_BLOCK_ID]; /* the begin of its SHA-256 */
};

struct package_progress {
    uint64_t done_entries, entries;
    uint64_t done_bytes, bytes; /* uncompressed */
};

struct package_output {
    struct engine *engine;
    const char *folder; /* the zip becomes <folder>/<sha256>.zip, mode 0600; made when missing */
    /* Describes the last package, whose unchanged data is copied. Missing, damaged or NULL: everything is read. */
    const char *index;
    void (*progress)(void *arg, const struct package_progress *now); /* at most every 200 ms; may be NULL */
    void *arg;
};

enum { PACKAGE_NAMED = 3 };

struct package_summary {
    char sha256[ACT_SHA256_HEX];
    uint64_t bytes;               /* of the zip */
    struct package_block *blocks; /* all of the zip, in order */
    size_t n_blocks;
    size_t read_files; /* regular files that were read; the others came from the last package */
    uint64_t read_bytes;
    size_t n_changed;        /* files and links that are new, other or gone since the last package of this project */
    struct act_strv changed; /* the first PACKAGE_NAMED of them, in order; "x (gone)" */
    bool is_first;           /* there is no last package: nothing is named as changed */
    uint64_t changed_bytes;  /* of the files that are new or other, uncompressed */
    bool unchanged;          /* it equals the last package: nothing was read or written, not even that file */
};
void package_summary_release(struct package_summary *summary);

/* Writes the zip of a scanned list: files deflated, links stored, entries in list order, fixed time stamps. Files are
 * read and compressed by the engine's workers, within about 48 MiB of memory. What the index knows by size, mtime,
 * ctime, inode and mode is neither read nor compressed: its bytes come from the last package, each block of which is
 * verified. The bytes are the same either way; they depend on the versions of libdeflate, zlib and libzip besides the
 * tree. A file that changed since the scan, or while it was read, is -ACT_TEMPORARY and named, but for what
 * options->takes_grown says. A file that
 * options->judge keeps out is -ACT_PARTIAL: package_judge() with all finds it. Runs the engine. A kill leaves at most a
 * temporary file, see base/temp.h.
 *
 * Nothing is synced to the disk: users of a package or an index verify it, and make it again if needed. */
int package_write(const struct package_options *options, const struct package_list *list,
                  const struct package_output *output, struct package_summary *out,
                  struct act_error *err) ACT_NODISCARD;

/* Foretells what package_write() would do, by the list and the index: read_files, read_bytes, and for an unchanged tree
 * also the rest. Reads only the index. */
void package_forecast(const struct package_list *list, const char *folder, const char *index,
                      struct package_summary *out);

/* Tells whether the tree below root still has a file of the last package: its path, inode, size and time, as after the
 * project was renamed. Stops at the first one; a missing or damaged index knows none. */
bool package_index_is_of(const char *index, const char *root);

/* Lists the contents of a package, or any zip, sorted by path, to compare it with another. */
struct package_file {
    char *path;
    uint64_t size;
    uint32_t crc;
    unsigned mode; /* of st_mode; 0: not known */
};
struct package_contents {
    struct package_file *v;
    size_t n;
};
int package_contents(const char *file, struct package_contents *out, struct act_error *err) ACT_NODISCARD;
void package_contents_release(struct package_contents *contents);
/* Reads one file of a package of at most max bytes: a new string. NULL: it is not there, larger, or no text. */
char *package_text(const char *file, const char *path, size_t max);

#endif
