#include "cli/page/page.h"
#include "cli/screen/live.h"
#include "codec/json.h"

/* Adds "3 of 8", or "-" where that is not known. */
static void clusters_page_add_share(struct act_buf *out, const json_t *row, const char *idle, const char *all)
{
    int64_t n = codec_json_int(row, all, -1), free_n = codec_json_int(row, idle, -1);

    if (n < 0)
        act_buf_adds(out, "<td class=\"n\">-</td>");
    else if (free_n < 0)
        act_buf_addf(out, "<td class=\"n\">%lld</td>", (long long)n);
    else
        act_buf_addf(out, "<td class=\"n\">%lld of %lld</td>", (long long)free_n, (long long)n);
}

static void clusters_page_add_row(struct act_buf *out, const json_t *row)
{
    ACT_AUTOFREE char *name = codec_json_bytes_get(json_object_get(row, "name"));

    page_add_short(out, "<tr><th scope=\"row\">", name ? name : "", "</th>");
    clusters_page_add_share(out, row, "nodes_idle", "nodes");
    clusters_page_add_share(out, row, "gpus_idle", "gpus");
    act_buf_addf(out, "<td class=\"n\">%lld</td><td class=\"n\">%lld</td>",
                 (long long)codec_json_int(row, "running", 0), (long long)codec_json_int(row, "queued", 0));
    page_add_short(out, "<td class=\"any\">", codec_json_str(row, "error", ""), "</td></tr>\n");
}

void page_clusters(const json_t *clusters, const struct page_live *live, struct act_buf *out)
{
    size_t i;
    json_t *row;

    page_begin(&(struct page_head){.kind = PAGE_CLUSTERS, .title = "Clusters"}, out);
    page_add_live(live, out);
    act_buf_adds(
        out,
        "<h1>Clusters</h1>\n<div class=\"wide\" tabindex=\"0\" role=\"region\" aria-label=\"clusters\">\n"
        "<table class=\"runs\"><thead><tr><th scope=\"col\">Cluster</th><th scope=\"col\" class=\"n\">Nodes free</th>"
        "<th scope=\"col\" class=\"n\">GPUs free</th><th scope=\"col\" class=\"n\">Yours running</th>"
        "<th scope=\"col\" class=\"n\">Yours queued</th>"
        "<th scope=\"col\">Why it does not answer</th></tr></thead><tbody>\n");
    json_array_foreach(clusters, i, row) clusters_page_add_row(out, row);
    act_buf_adds(out, "</tbody></table>\n</div>\n");
    page_end(out);
}
