#include "node/starter_words.h"

#include <stdlib.h>

#include "base/file.h"
#include "run/starter.h"

#define HOSTS_FILE RUN_DIR_TEMP "/starter_hosts"

/* Only the order of the nodes matters: the names are never resolved. All nodes write the same. */
static int write_hosts(const struct run_spec *spec, const char *path, struct act_error *err)
{
    ACT_AUTO(act_buf) text = {0};

    for (int i = 0; i < spec->nodes; i++)
        act_buf_addf(&text, "node%d slots=%d\n", i, spec->started_per_node);
    return act_file_write(path, text.data, text.len, 0644, err);
}

static void say_words(const struct act_strv *words, size_t from, size_t to)
{
    for (size_t i = from; i < to; i++)
        node_say("the command gets %s", words->v[i]);
}

int starter_words(const struct node *node, const struct rank_place *place, struct act_strv *out, struct act_error *err)
{
    const struct run_spec *spec = &node->spec;
    const char *visible = getenv("CUDA_VISIBLE_DEVICES");
    ACT_AUTOFREE char *hosts = node_path(node, HOSTS_FILE);
    struct run_starter starter;

    act_strv_copy(out, spec->argv.v, spec->argv.n);
    if (!spec->started_per_node || !run_starter_find(out, true, &starter))
        return 0;
    run_starter_fill(&starter,
                     &(struct run_starter_place){.nodes = spec->nodes,
                                                 .per_node = spec->started_per_node,
                                                 .node_rank = place->node_rank,
                                                 .address = getenv("MASTER_ADDR"),
                                                 .port = getenv("MASTER_PORT"),
                                                 .id = spec->id,
                                                 .hosts = hosts,
                                                 .narrowed = visible && *visible},
                     out);
    say_words(out, starter.first, starter.first + out->n - spec->argv.n);
    return spec->nodes > 1 ? write_hosts(spec, hosts, err) : 0;
}
