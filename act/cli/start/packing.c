/* packing.c - the progress display while the code is packed and uploaded, and the question before. */
#include <unistd.h>

#include "base/log.h"
#include "base/units.h"
#include "cli/command/signal.h"
#include "cli/print/ask.h"
#include "cli/print/print.h"
#include "cli/start/start.h"
#include "flow/code/code.h"

/* Shows progress. An interrupted upload continues where it stopped, as the handler of the line says; packing does
 * not. */
static void show_stage(struct cli_packing *p, const char *verb, const struct transfer_progress *now)
{
    if (p->line.verb != verb) {
        cli_progress_clear(&p->line);
        cli_progress_start(&p->line, verb, p->cli->options.quiet, &p->shown);
    }
    if (p->shown.progress)
        p->shown.progress(&p->line, now);
}

static void packing_show(void *arg, const struct transfer_progress *now)
{
    static const char verb[] = "packing";

    show_stage(arg, verb, now);
    cli_end_with(NULL);
}

static void show_uploading(void *arg, const struct transfer_progress *now)
{
    static const char verb[] = "uploading";

    show_stage(arg, verb, now);
}

static void packing_clear(void *arg)
{
    struct cli_packing *p = arg;

    cli_progress_clear(&p->line);
    p->line.verb = NULL;
}

/* Returns "512.0 MiB of new code: ckpt/last.pt 381.0 MiB, ...". New string. */
static char *describe_large(const struct flow_init *io)
{
    const struct package_entry *largest[CLI_LARGEST];
    size_t n = cli_find_largest(&io->list, largest);
    char size[ACT_UNIT_TEXT];
    struct act_buf b = {0};

    act_size_to_text(io->package.changed_bytes, size);
    act_buf_addf(&b, "%s of new code:", size);
    for (size_t i = 0; i < n && i < 3; i++) {
        ACT_AUTOFREE char *name = cli_name(largest[i]->path);
        act_size_to_text(largest[i]->size, size);
        act_buf_addf(&b, "%s %s %s", i ? "," : "", name, size);
    }
    return act_buf_steal(&b);
}

static int ask_large(void *arg, const struct flow_init *io, struct act_error *err)
{
    struct cli_packing *p = arg;
    ACT_AUTOFREE char *what = describe_large(io);
    ACT_AUTOFREE char *question =
        act_sprintf("%s. A line in .gitignore or .actignore leaves a name out. Pack and upload it all?", what);

    if (!io->dry_run && (p->cli->options.yes || isatty(STDIN_FILENO)))
        return cli_confirm(p->cli, question, err);
    act_warn("%s; leave out in .gitignore or .actignore what the nodes do not need", what);
    return 0;
}

void cli_packing_start(struct cli_packing *p, const struct cli *cli, struct flow_init *io)
{
    *p = (struct cli_packing){.cli = cli};
    io->packing = packing_show;
    io->uploading = show_uploading;
    io->done = packing_clear;
    io->large = ask_large;
    io->arg = p;
}
