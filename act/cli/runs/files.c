/* files.c - the files that a run has written: its logs, and what is in its folders. */
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/path.h"
#include "base/units.h"
#include "cli/data/options.h"
#include "cli/print/print.h"
#include "cli/print/table.h"
#include "cli/runs/options.h"
#include "cli/runs/runs.h"
#include "codec/json.h"
#include "flow/flow.h"
#include "flow/look/look.h"
#include "flow/runs/runs.h"

static char *cmd_files_place_of(const struct run_folder *f)
{
    return act_path_join(f->store, f->path);
}

static void print_file_json(const struct flow_file_of_run *f)
{
    char when[ACT_TIME_TEXT];

    act_time_to_iso(f->changed_unix_s, when);
    cli_print_pack_line("{s:s,s:o,s:I,s:s?,s:o,s:n,s:n,s:n}", "kind", "file", "path", codec_json_bytes_new(f->path),
                        "size", (json_int_t)f->size, "mtime", f->changed_unix_s ? when : NULL, "url",
                        cli_text_json(f->url), "mode", "store", "store_path");
}

static void print_folder_json(const struct run_folder *f)
{
    cli_print_pack_line("{s:s,s:o,s:n,s:n,s:n,s:s,s:o,s:o}", "kind", "folder", "path", codec_json_bytes_new(f->name),
                        "size", "mtime", "url", "mode", run_folder_mode_name(f->mode), "store",
                        codec_json_bytes_new(f->store), "store_path", codec_json_bytes_new(f->path));
}

static void cmd_files_print_json(const struct flow_run *run, const struct flow_files *files, const struct cli *cli)
{
    for (size_t i = 0; i < files->n; i++)
        print_file_json(&files->v[i]);
    for (size_t i = 0; !CLI_OPTIONS(cli, runs)->folder && i < run->spec.n_folders; i++)
        print_folder_json(&run->spec.folders[i]);
}

static void print_urls(const struct flow_files *files)
{
    for (size_t i = 0; i < files->n; i++) {
        cli_put_path(files->v[i].url ? files->v[i].url : files->v[i].path);
        putchar('\n');
    }
}

static void print_files(const struct flow_files *files, const struct cli *cli)
{
    static const struct cli_column columns[] = {{NULL, 'r', .rank = 1}, {NULL, 'l', .rank = 2}, {NULL, 'l', .rank = 0}};
    ACT_AUTO(act_strv) cells = {0};

    for (size_t i = 0; i < files->n; i++) {
        const struct flow_file_of_run *f = &files->v[i];
        char size[ACT_UNIT_TEXT], when[ACT_TIME_TEXT] = "-";
        cli_size(cli, f->size, size);
        if (f->changed_unix_s)
            act_time_to_local(f->changed_unix_s, when);
        act_strv_push(&cells, size);
        act_strv_push(&cells, when);
        act_strv_take(&cells, cli_name(f->path));
    }
    cli_print_table(columns, sizeof(columns) / sizeof(columns[0]), &cells);
}

static void print_folders(const struct run_spec *spec)
{
    static const struct cli_column columns[] = {
        {"FOLDER", 'l', .rank = 0}, {"MODE", 'l', .rank = 2}, {"WHERE", 'l', .rank = 1, .below = true}};
    ACT_AUTO(act_strv) cells = {0};

    for (size_t i = 0; i < spec->n_folders; i++) {
        ACT_AUTOFREE char *place = cmd_files_place_of(&spec->folders[i]);
        act_strv_take(&cells, cli_name(spec->folders[i].name));
        act_strv_push(&cells, run_folder_mode_name(spec->folders[i].mode));
        act_strv_take(&cells, cli_name(place));
    }
    if (spec->n_folders > 0)
        cli_print_table(columns, sizeof(columns) / sizeof(columns[0]), &cells);
}

static void cmd_files_print_summary(const struct flow_files *files)
{
    char size[ACT_UNIT_TEXT];
    uint64_t bytes = 0;

    for (size_t i = 0; i < files->n; i++)
        bytes += files->v[i].size;
    act_size_to_text(bytes, size);
    act_note("%zu file%s, %s", files->n, cli_plural(files->n), size);
    if (files->n_others > 0)
        act_note("%zu file%s in that folder %s written at another time; --all lists %s too", files->n_others,
                 cli_plural(files->n_others), files->n_others == 1 ? "was" : "were",
                 files->n_others == 1 ? "it" : "them");
}

static void cmd_files_print(struct cli *cli, const struct flow_run *run, const struct flow_files *files)
{
    const struct cli_runs_options *o = CLI_OPTIONS(cli, runs);

    if (cli->options.json) {
        cmd_files_print_json(run, files, cli);
        return;
    }
    if (o->urls)
        print_urls(files);
    else if (files->n > 0)
        print_files(files, cli);
    if (!o->urls && !o->folder)
        print_folders(&run->spec);
    fflush(stdout);
    cmd_files_print_summary(files);
    if (o->urls || o->folder || run->status.unsubmitted)
        return;
    ACT_AUTOFREE char *code = flow_code_folder(&cli->flow, run);
    ACT_AUTOFREE char *where = !code ? act_sprintf(", where it ran: 'a nodes %s' names the node", run->row.id)
                               : run->spec.is_here ? act_sprintf(" '%s'", code)
                                                   : act_sprintf(" '%s' of cluster '%s'", code, run->row.cluster);
    act_note("what it wrote outside of these folders is in its own copy of the project%s", where);
}

/* The completion of shells puts a slash behind a folder. */
static char *cmd_files_folder_of(const struct cli *cli)
{
    const struct cli_runs_options *o = CLI_OPTIONS(cli, runs);
    size_t n = o->folder ? strlen(o->folder) : 0;

    while (n > 1 && o->folder[n - 1] == '/')
        n--;
    return o->folder ? act_strndup(o->folder, n) : NULL;
}

static int cmd_files_check_options(const struct cli *cli, struct act_error *err)
{
    const struct cli_store_options *o = CLI_OPTIONS(cli, store);

    if (cli->options.all && !CLI_OPTIONS(cli, runs)->folder)
        return act_error_set(err, ACT_USAGE, "--all is about a folder: which one? -d FOLDER");
    if ((o->expires_s || o->share_sas) && !CLI_OPTIONS(cli, runs)->urls)
        return act_error_set(err, ACT_USAGE, "--%s is about URLs: --urls prints them",
                             o->expires_s ? "expires" : "share-sas");
    return 0;
}

int cmd_files(struct cli *cli, struct act_error *err)
{
    ACT_AUTOFREE char *folder = cmd_files_folder_of(cli);
    const struct flow_files_wanted what = {.folder = folder,
                                           .all = cli->options.all,
                                           .urls = CLI_OPTIONS(cli, runs)->urls,
                                           .life_s = CLI_OPTIONS(cli, store)->expires_s,
                                           .share_sas = CLI_OPTIONS(cli, store)->share_sas};
    struct flow_files files = {0};
    ACT_AUTO(flow_run) run = {0};
    int rc = cmd_files_check_options(cli, err);

    if (rc == 0)
        rc = flow_find_run(&cli->flow, cli->words.v[0], &run, err);
    if (rc == 0)
        rc = flow_list_files(&cli->flow, &run, &what, &files, err);
    if (rc == 0)
        cmd_files_print(cli, &run, &files);
    flow_files_release(&files);
    return rc;
}
