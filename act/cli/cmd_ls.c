#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/units.h"
#include "cli/cli.h"
#include "codec/json.h"

struct listing {
    json_t *entries; /* NULL: print */
    uint64_t objects, bytes;
};

static const char *const kinds[] = {
    [STORE_FILE] = "file", [STORE_SYMLINK] = "symlink", [STORE_FOLDER] = "folder", [STORE_PREFIX] = "folder"};

static int64_t time_of(const struct store_entry *e)
{
    return e->mtime_ns ? e->mtime_ns / 1000000000 : e->last_modified_s;
}

static void add_json(json_t *entries, const struct store_entry *e, const char *rel)
{
    char text[ACT_TIME_TEXT];

    act_time_to_iso(time_of(e), text);
    json_array_append_new(entries, json_pack("{s:o,s:s,s:I,s:o}", "name", codec_json_bytes_new(rel), "kind",
                                             kinds[e->kind], "size", (json_int_t)e->size, "mtime",
                                             time_of(e) ? json_string(text) : json_null()));
}

static void print_entry(const struct store_entry *e, const char *rel)
{
    char size[ACT_UNIT_TEXT] = "-", when[ACT_TIME_TEXT] = "-";
    ACT_AUTOFREE char *name = act_strdup(rel);

    if (e->kind == STORE_FILE)
        act_size_to_text(e->size, size);
    if (time_of(e))
        act_time_to_local(time_of(e), when);
    for (char *c = name; *c; c++)
        if ((unsigned char)*c < 0x20 || *c == 0x7f)
            *c = '?';
    printf("%10s  %-19s  %s\n", size, when, name);
}

static int take(void *arg, const struct store_entry *entry, const char *rel, struct act_error *err)
{
    struct listing *l = arg;

    (void)err;
    l->objects += entry->kind != STORE_PREFIX;
    l->bytes += entry->kind == STORE_FILE ? entry->size : 0;
    if (l->entries)
        add_json(l->entries, entry, rel);
    else
        print_entry(entry, rel);
    return 0;
}

static int list(struct cli *cli, const char *path, struct listing *l, struct act_error *err)
{
    struct flow_path p;
    int rc = flow_open_path(&cli->flow, path, &p, err);

    if (rc < 0)
        return rc;
    rc = transfer_list(cli->flow.engine, &p.path, cli->options.recursive ? TRANSFER_TREE : TRANSFER_LEVEL,
                       take, l, err);
    flow_path_release(&p);
    return rc;
}

int cmd_ls(struct cli *cli, struct act_error *err)
{
    struct listing l = {.entries = cli->options.json ? json_array() : NULL};
    char size[ACT_UNIT_TEXT];
    int rc = 0;

    for (size_t i = 0; i < cli->words.n && rc == 0; i++) {
        if (cli->words.n > 1 && !l.entries)
            printf("%s:\n", cli->words.v[i]);
        rc = list(cli, cli->words.v[i], &l, err);
    }
    if (rc < 0) {
        json_decref(l.entries);
        return rc;
    }
    if (l.entries)
        return cli_print_json(json_pack("{s:i,s:o}", "version", 1, "entries", l.entries), err);
    act_size_to_text(l.bytes, size);
    act_note("%llu object%s, %s", (unsigned long long)l.objects, l.objects == 1 ? "" : "s", size);
    return 0;
}
