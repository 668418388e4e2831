/* judge.c - what stays out of a package because of its content.
 *
 * Files are judged where they are read to be packed (task.c), so that what is packed was judged, byte for byte. That
 * comes too late to leave one out, so what may well be kept out is judged before. What the last package holds was
 * judged then.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/text.h"
#include "package/package_internal.h"

/* Judging so many new files costs less than starting a package twice. */
enum { FEW = 256 };

static bool judge_is_new(const struct package_index *last, const struct package_entry *e)
{
    return S_ISREG(e->mode) && e->size > 0 && e->size <= PACKAGE_JUDGED && !package_index_find(last, e);
}

bool package_is_config(const char *path)
{
    return act_starts_with(path, "aux_data/") || act_ends_with(path, ".yaml") || act_ends_with(path, ".yml");
}

/* package_write() reports a file that cannot be read or was replaced meanwhile. */
static char *judge_file(const struct package_options *options, int root_fd, const struct package_entry *e, char *data)
{
    int fd = openat(root_fd, e->path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    ssize_t n = fd < 0 ? -1 : act_pread_all(fd, data, PACKAGE_JUDGED, 0);

    if (fd >= 0)
        close(fd);
    return n > 0 ? options->judge(e->path, data, (size_t)n) : NULL;
}

static void leave_out(struct package_list *list, size_t i, char *rule)
{
    struct package_left_out row = {.path = list->v[i].path, .rule = rule};
    size_t at = list->n_left_out;

    list->bytes -= list->v[i].size;
    list->v[i].path = NULL;
    ACT_GROW(list->left_out, list->n_left_out);
    while (at > 0 && strcmp(list->left_out[at - 1].path, row.path) > 0)
        at--;
    memmove(&list->left_out[at + 1], &list->left_out[at], (list->n_left_out++ - at) * sizeof(*list->left_out));
    list->left_out[at] = row;
}

static void close_gaps(struct package_list *list)
{
    size_t n = 0;

    for (size_t i = 0; i < list->n; i++)
        if (list->v[i].path)
            list->v[n++] = list->v[i];
    list->n = n;
}

static void judge_new(const struct package_options *options, const struct package_index *last, int root_fd, bool all,
                      struct package_list *list)
{
    ACT_AUTOFREE size_t *new = act_alloc((list->n + 1) * sizeof(*new));
    size_t n = 0, n_held = 0;

    for (size_t i = 0; i < list->n; i++)
        if (judge_is_new(last, &list->v[i]))
            new[n++] = i;
    ACT_AUTOFREE char *data = n ? act_alloc(PACKAGE_JUDGED) : NULL;
    for (size_t i = 0; i < n; i++) {
        const struct package_entry *e = &list->v[new[i]];
        char *rule = all || n <= FEW || package_is_config(e->path) ? judge_file(options, root_fd, e, data) : NULL;
        if (rule) {
            leave_out(list, new[i], rule);
            n_held++;
        }
    }
    if (n_held)
        close_gaps(list);
}

int package_judge(const struct package_options *options, const char *index, bool all, struct package_list *list,
                  struct act_error *err)
{
    ACT_AUTO(package_index) last = {0};
    int root_fd = open(options->root, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    if (root_fd < 0)
        return act_error_errno(err, errno, "cannot read the project folder '%s'", options->root);
    package_index_load(index, &last);
    judge_new(options, &last, root_fd, all, list);
    close(root_fd);
    return 0;
}
