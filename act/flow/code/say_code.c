/* say_code.c - one line on which code a run gets. */
#include <sys/stat.h>

#include "base/log.h"
#include "base/units.h"
#include "flow/code/code.h"

static size_t code_changes_count_files(const struct package_list *list)
{
    size_t n = 0;

    for (size_t i = 0; i < list->n; i++)
        n += !S_ISDIR(list->v[i].mode);
    return n;
}

static void add_changes(const struct package_summary *package, struct act_buf *out)
{
    act_buf_addf(out, ", %zu changed:", package->n_changed);
    for (size_t i = 0; i < package->changed.n; i++)
        act_buf_addf(out, "%s %s", i ? "," : "", package->changed.v[i]);
    if (package->n_changed > package->changed.n)
        act_buf_addf(out, " and %zu more", package->n_changed - package->changed.n);
}

void flow_say_code(const struct flow_init *io)
{
    const struct package_summary *package = &io->package;
    size_t files = code_changes_count_files(&io->list);
    char size[ACT_UNIT_TEXT];
    ACT_AUTO(act_buf) line = {0};

    act_size_to_text(io->list.bytes, size);
    act_buf_addf(&line, "code  %s%zu file%s, %s", io->compiled[0] ? "compiled package of " : "", files,
                 files == 1 ? "" : "s", size);
    if (io->compiled[0])
        act_buf_adds(&line, ", nothing changed");
    else if (package->n_changed > 0)
        add_changes(package, &line);
    else if (package->is_first)
        act_buf_adds(&line, ", packed for the first time");
    else
        act_buf_adds(&line, ", as in the last package");
    if (io->was_compiled)
        act_buf_adds(&line, "; not compiled, as the last package was: 'a initc' does that again");
    if (io->dry_run && !package->unchanged)
        act_buf_adds(&line, "; a dry run packs nothing");
    act_note("%s", line.data);
}
