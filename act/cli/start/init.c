/* init.c - init, initc: pack the code and upload it. */
#include <string.h>

#include "base/log.h"
#include "base/units.h"
#include "cli/print/print.h"
#include "cli/start/start.h"
#include "flow/code/code.h"
#include "flow/flow.h"

/* ---- the result */

/* Names sockets, pipes and devices, which are left out without being asked to. */
static void mention_special_files(const struct package_list *list)
{
    static const char *const kinds[] = {"socket", "pipe", "device"};

    for (size_t i = 0; i < list->n_left_out; i++)
        for (size_t k = 0; k < sizeof(kinds) / sizeof(kinds[0]); k++)
            if (strcmp(list->left_out[i].rule, kinds[k]) == 0)
                act_note("left out: '%s' is a %s", list->left_out[i].path, kinds[k]);
}

static void describe_upload(const struct flow_init *io, struct act_buf *out)
{
    char sent[ACT_UNIT_TEXT];

    act_size_to_text(io->sent_bytes, sent);
    if (io->sent_bytes == io->package.bytes)
        act_buf_adds(out, "uploaded");
    else if (io->sent_bytes > 0)
        act_buf_addf(out, "%s uploaded, the store had the rest", sent);
    else if (io->published)
        act_buf_adds(out, "the store had it already");
    else
        act_buf_adds(out, "nothing changed, nothing uploaded");
}

static int print_result(const struct cli *cli, const struct flow_init *io, struct act_error *err)
{
    char size[ACT_UNIT_TEXT];
    ACT_AUTO(act_buf) upload = {0};

    mention_special_files(&io->list);
    act_size_to_text(io->package.bytes, size);
    describe_upload(io, &upload);
    act_note("%zu entr%s, %s; %s", io->list.n, io->list.n == 1 ? "y" : "ies", size, upload.data);
    if (!cli->options.json) {
        puts(io->package.sha256);
        return 0;
    }
    return cli_print_pack(err, "{s:s,s:I,s:I,s:I,s:I,s:b}", "sha256", io->package.sha256, "bytes",
                          (json_int_t)io->package.bytes, "entries", (json_int_t)io->list.n, "files_read",
                          (json_int_t)io->package.read_files, "bytes_sent", (json_int_t)io->sent_bytes, "published",
                          io->published);
}

int cmd_init(struct cli *cli, struct act_error *err)
{
    struct cli_packing packing;
    ACT_AUTO(flow_init) io = {.dry_run = cli->options.dry_run};

    cli_packing_start(&packing, cli, &io);
    int rc = flow_init(&cli->flow, &io, err);
    if (rc == 0)
        rc = io.dry_run ? cli_explain_package(cli, &io, err) : print_result(cli, &io, err);
    return rc;
}

int cmd_initc(struct cli *cli, struct act_error *err)
{
    struct cli_packing packing;
    struct flow_init code = {.dry_run = cli->options.dry_run}, compiled;

    cli_packing_start(&packing, cli, &code);
    int rc = flow_compile(&cli->flow, &code, &compiled, err);
    if (rc == 0)
        rc = code.dry_run ? cli_explain_package(cli, &code, err) : print_result(cli, &compiled, err);
    flow_init_release(&code);
    flow_init_release(&compiled);
    return rc;
}
