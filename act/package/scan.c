/* scan.c - walks the project and lists what the rules leave in.
 *
 * One folder is open at a time and folders that wait are kept as names, so neither depth nor width costs
 * descriptors or stack. Symbolic links are never followed.
 */
#include "package/package_internal.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/path.h"
#include "base/text.h"

enum { MAX_NAMED = 5, MAX_NAME_BYTES = 200 };

/* Notes something that cannot be packaged: "'src/key' (Permission denied)". */
struct problem {
    char *text;
    enum act_code code;
};

struct scan {
    struct package_rules *rules;
    int root_fd;
    uid_t user;
    struct package_list list;
    struct act_strv todo; /* folders still to be read */
    struct problem *problems;
    size_t n_problems;
    char *leads_out; /* the first link, in byte order, that leads out of the project */
    size_t n_leads_out;
};

/* Names */

char *package_printable(const char *path)
{
    char *text = act_printable(path);
    size_t len = strlen(text);

    if (len <= MAX_NAME_BYTES)
        return text;
    const char *tail = text + len - MAX_NAME_BYTES;
    while ((*tail & 0xc0) == 0x80) /* not from the middle of a character */
        tail++;
    char *cut = act_sprintf("...%s", tail);
    free(text);
    return cut;
}

static const char *scan_name_problem(const char *path)
{
    if (!act_utf8_valid(path, strlen(path)))
        return "the name is not UTF-8";
    return act_has_control(path) ? "line break or control character in the name" : NULL;
}

/* Results */

static void scan_add_problem(struct scan *scan, const char *path, enum act_code code, const char *reason)
{
    ACT_AUTOFREE char *name = package_printable(path);

    ACT_PUSH(scan->problems, scan->n_problems,
             (struct problem){.text = act_sprintf("'%s' (%s)", name, reason), .code = code});
}

static void add_errno_problem(struct scan *scan, const char *path, int errnum)
{
    scan_add_problem(scan, path, errnum == EACCES || errnum == EPERM ? ACT_DENIED : ACT_FAIL, strerrordesc_np(errnum));
}

static void add_left_out(struct scan *scan, const char *path, bool is_folder, char *rule)
{
    struct package_list *list = &scan->list;

    ACT_PUSH(list->left_out, list->n_left_out,
             (struct package_left_out){.path = act_sprintf("%s%s", path, is_folder ? "/" : ""), .rule = rule});
}

static void scan_add_entry(struct scan *scan, const char *path, const struct stat *st)
{
    struct package_list *list = &scan->list;

    ACT_PUSH(list->v, list->n,
             (struct package_entry){
                 .path = act_sprintf("%s%s", path, S_ISDIR(st->st_mode) ? "/" : ""),
                 .size = S_ISDIR(st->st_mode) ? 0 : (uint64_t)st->st_size,
                 .mode = st->st_mode & (S_IFMT | 0777),
                 .mtime_ns = act_timespec_ns(st->st_mtim),
                 .ctime_ns = act_timespec_ns(st->st_ctim),
                 .inode = st->st_ino,
             });
    if (S_ISREG(st->st_mode))
        list->bytes += (uint64_t)st->st_size;
}

/* The walk */

static const char *special_kind(mode_t mode)
{
    return S_ISSOCK(mode) ? "socket" : S_ISFIFO(mode) ? "pipe" : "device";
}

/* Judges a link by its text alone: what it names need not exist here, and is another file on the node. */
static void note_link_target(struct scan *scan, const char *path)
{
    char target[PATH_MAX];
    ssize_t len = readlinkat(scan->root_fd, path, target, sizeof(target) - 1);

    if (len < 0)
        return; /* gone meanwhile: noticed when it is written */
    target[len] = '\0';
    ACT_AUTOFREE char *dir = act_path_dirname(path);
    ACT_AUTOFREE char *joined = act_path_join(dir, target);
    ACT_AUTOFREE char *clean = act_path_clean(joined);
    if (target[0] != '/' && !act_streq(clean, "..") && !act_starts_with(clean, "../"))
        return;
    scan->n_leads_out++;
    if (!scan->leads_out || strcmp(path, scan->leads_out) < 0) {
        free(scan->leads_out);
        scan->leads_out = act_strdup(path);
    }
}

/* The owner's own bit saves the question for nearly all files. */
static int check_readable(const struct scan *scan, const char *path, const struct stat *st)
{
    if (st->st_uid == scan->user && (st->st_mode & S_IRUSR))
        return 0;
    return faccessat(scan->root_fd, path, R_OK, AT_EACCESS) < 0 && errno != ENOENT ? errno : 0;
}

static void take_path(struct scan *scan, const char *path, const struct stat *st)
{
    const char *bad_name = scan_name_problem(path);

    if (!S_ISDIR(st->st_mode) && !S_ISREG(st->st_mode) && !S_ISLNK(st->st_mode)) {
        add_left_out(scan, path, false, act_strdup(special_kind(st->st_mode)));
        return;
    }
    if (bad_name) {
        scan_add_problem(scan, path, ACT_FAIL, bad_name);
        return;
    }
    int errnum = S_ISREG(st->st_mode) ? check_readable(scan, path, st) : 0;
    if (errnum)
        add_errno_problem(scan, path, errnum);
    if (S_ISLNK(st->st_mode))
        note_link_target(scan, path);
    if (S_ISDIR(st->st_mode))
        act_strv_push(&scan->todo, path);
    scan_add_entry(scan, path, st);
}

static void visit(struct scan *scan, const char *path, unsigned char type)
{
    struct stat st;
    char *rule;
    int errnum = fstatat(scan->root_fd, path, &st, AT_SYMLINK_NOFOLLOW) < 0 ? errno : 0;

    if (errnum == ENOENT) /* gone meanwhile: as if the walk had come later */
        return;
    bool is_folder = errnum ? type == DT_DIR : S_ISDIR(st.st_mode);
    enum package_verdict verdict = package_rules_ask(scan->rules, path, is_folder, &rule);
    if (rule)
        add_left_out(scan, path, is_folder, rule);
    if (verdict == PACKAGE_PRUNE || (verdict == PACKAGE_SKIP && !is_folder))
        return;
    if (errnum)
        add_errno_problem(scan, path, errnum);
    else if (verdict == PACKAGE_SKIP)
        act_strv_push(&scan->todo, path);
    else
        take_path(scan, path, &st);
}

static bool is_dot(const char *name)
{
    return act_streq(name, ".") || act_streq(name, "..");
}

/* Walks `folder`, "" for the root. */
static void scan_read_folder(struct scan *scan, const char *folder)
{
    const struct dirent *entry;
    struct act_error err = {0};
    int fd = openat(scan->root_fd, *folder ? folder : ".", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    DIR *stream = fd < 0 ? NULL : fdopendir(fd);

    if (!stream) {
        add_errno_problem(scan, *folder ? folder : ".", errno);
        if (fd >= 0)
            close(fd);
        return;
    }
    if (package_rules_enter(scan->rules, folder, &err) < 0) {
        ACT_AUTOFREE char *path = act_path_join(folder, ".gitignore");
        scan_add_problem(scan, path, err.code, act_error_text(&err));
    }
    while ((errno = 0, entry = readdir(stream))) {
        if (is_dot(entry->d_name))
            continue;
        ACT_AUTOFREE char *path = act_path_join(folder, entry->d_name);
        visit(scan, path, entry->d_type);
    }
    if (errno != 0)
        add_errno_problem(scan, *folder ? folder : ".", errno);
    closedir(stream);
}

static void scan_walk(struct scan *scan)
{
    scan_read_folder(scan, "");
    while (scan->todo.n > 0) {
        ACT_AUTOFREE char *folder = scan->todo.v[--scan->todo.n];
        scan->todo.v[scan->todo.n] = NULL;
        scan_read_folder(scan, folder);
    }
}

/* All together */

static int report_problems(struct scan *scan, struct act_error *err)
{
    ACT_AUTO(act_buf) names = {0};

    if (scan->n_problems == 0)
        return 0;
    qsort(scan->problems, scan->n_problems, sizeof(*scan->problems), act_by_text);
    for (size_t i = 0; i < scan->n_problems && i < MAX_NAMED; i++)
        act_buf_addf(&names, "%s%s", i ? ", " : "", scan->problems[i].text);
    if (scan->n_problems > MAX_NAMED)
        act_buf_addf(&names, " and %zu more", scan->n_problems - MAX_NAMED);
    return act_error_set(err, scan->problems[0].code, "cannot package %s; mend that, or leave it out in '.actignore'",
                         names.data);
}

static void warn_of_links(const struct scan *scan)
{
    if (!scan->leads_out)
        return;
    ACT_AUTOFREE char *name = package_printable(scan->leads_out);
    if (scan->n_leads_out == 1)
        act_warn("link '%s' leads out of the project; it will dangle on the node", name);
    else
        act_warn("link '%s' and %zu more lead out of the project; they will dangle on the node", name,
                 scan->n_leads_out - 1);
}

static void release_scan(struct scan *scan)
{
    for (size_t i = 0; i < scan->n_problems; i++)
        free(scan->problems[i].text);
    free(scan->problems);
    free(scan->leads_out);
    act_strv_release(&scan->todo);
    package_list_release(&scan->list);
    package_rules_free(scan->rules);
    if (scan->root_fd >= 0)
        close(scan->root_fd);
}

int package_scan(const struct package_options *options, struct package_list *out, struct act_error *err)
{
    struct scan scan = {.root_fd = open(options->root, O_RDONLY | O_DIRECTORY | O_CLOEXEC),
                        .user = geteuid(),
                        .list.started_ns = act_now_unix_ns()};
    int rc;

    *out = (struct package_list){0};
    if (scan.root_fd < 0)
        return act_error_errno(err, errno, "cannot read the project folder '%s'", options->root);
    rc = package_rules_new(options, &scan.rules, err);
    if (rc < 0)
        goto out;
    scan_walk(&scan);
    rc = report_problems(&scan, err);
    if (rc < 0)
        goto out;
    warn_of_links(&scan);
    if (scan.list.n > 0)
        qsort(scan.list.v, scan.list.n, sizeof(*scan.list.v), act_by_text);
    if (scan.list.n_left_out > 0)
        qsort(scan.list.left_out, scan.list.n_left_out, sizeof(*scan.list.left_out), act_by_text);
    *out = scan.list;
    scan.list = (struct package_list){0};
out:
    release_scan(&scan);
    return rc;
}

void package_list_release(struct package_list *list)
{
    for (size_t i = 0; i < list->n; i++)
        free(list->v[i].path);
    for (size_t i = 0; i < list->n_left_out; i++) {
        free(list->left_out[i].path);
        free(list->left_out[i].rule);
    }
    free(list->v);
    free(list->left_out);
    *list = (struct package_list){0};
}
