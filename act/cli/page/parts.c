#include <string.h>

#include "base/clock.h"
#include "base/hash.h"
#include "cli/page/job.h"
#include "cli/page/page.h"
#include "cli/screen/live.h"
#include "http/http.h"

enum { TEXT_SHOWN = 500 };

void page_add_text(struct act_buf *out, const char *before, const char *text, const char *after)
{
    act_buf_adds(out, before);
    draw_escaped(out, text);
    act_buf_adds(out, after);
}

void page_add_short(struct act_buf *out, const char *before, const char *text, const char *after)
{
    size_t len = strlen(text), n = len < TEXT_SHOWN ? len : TEXT_SHOWN;

    while (n < len && n > 0 && ((unsigned char)text[n] & 0xc0) == 0x80)
        n--;
    ACT_AUTOFREE char *cut = act_strndup(text, n);
    page_add_text(out, before, cut, n < len ? "..." : "");
    act_buf_adds(out, after);
}

void page_add_state(struct act_buf *out, enum run_state state)
{
    act_buf_addf(out, "<span class=\"state %s\">%s</span>", run_state_name(state), run_state_name(state));
}

void page_add_query(struct act_buf *query, const char *name, const char *value)
{
    if (!value)
        return;
    ACT_AUTOFREE char *encoded = http_encode(value, false);
    act_buf_addf(query, "%s%s=%s", query->len > 0 ? "&" : "", name, encoded);
}

/* ---- the frame of a page */

static const char *const page_kind_names[] = {
    [PAGE_RUNS] = "runs",         [PAGE_RUN] = "run",       [PAGE_COMPARE] = "compare",
    [PAGE_CLUSTERS] = "clusters", [PAGE_REPORT] = "report", [PAGE_MESSAGE] = "message",
};

static char *page_parts_hash(const char *text)
{
    struct act_sha256 hash;
    uint8_t digest[32];

    act_sha256_init(&hash);
    act_sha256_add(&hash, text, strlen(text));
    act_sha256_bytes(&hash, digest, sizeof(digest));
    return act_base64_encode(digest, sizeof(digest));
}

/* Returns the policy. It names the sheet and the script by their hashes, so that no text can bring in another one. */
static char *policy_of(const char *sheet, bool is_served)
{
    ACT_AUTOFREE char *sheet_hash = page_parts_hash(sheet), *script_hash = page_parts_hash(page_script());
    const char *own = is_served ? "'self'" : "'none'";

    return act_sprintf("default-src 'none'; style-src 'sha256-%s'; script-src 'sha256-%s'; connect-src %s; "
                       "%sbase-uri 'none'; form-action %s",
                       sheet_hash, script_hash, own, is_served ? "img-src data:; " : "", own);
}

char *page_policy(void)
{
    ACT_AUTOFREE char *sheet = page_sheet();
    ACT_AUTOFREE char *policy = policy_of(sheet, true);

    return act_sprintf("%s; frame-ancestors 'none'", policy); /* which only a header can say */
}

void page_begin(const struct page_head *head, struct act_buf *out)
{
    static const char current[] = " aria-current=\"page\"";
    ACT_AUTOFREE char *sheet = page_sheet();
    ACT_AUTOFREE char *policy = policy_of(sheet, head->kind != PAGE_REPORT);

    act_buf_addf(out,
                 "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n"
                 "<meta http-equiv=\"Content-Security-Policy\" content=\"%s\">\n"
                 "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
                 "<meta name=\"referrer\" content=\"no-referrer\">\n",
                 policy);
    if (head->refresh_s > 0)
        act_buf_addf(out, "<noscript><meta http-equiv=\"refresh\" content=\"%d\"></noscript>\n", head->refresh_s);
    if (head->kind != PAGE_REPORT) /* no icon: else a browser asks for one */
        act_buf_adds(out, "<link rel=\"icon\" href=\"data:,\">\n");
    page_add_text(out, "<title>", head->title, "</title>\n");
    act_buf_addf(out, "<style>%s</style></head>\n<body data-page=\"%s\">\n", sheet, page_kind_names[head->kind]);
    if (head->kind != PAGE_REPORT)
        act_buf_addf(out,
                     "<header class=\"top\"><nav aria-label=\"pages\"><a href=\"./\"%s>Runs</a>\n"
                     "<a href=\"clusters\"%s>Clusters</a></nav></header>\n",
                     head->kind == PAGE_RUNS ? current : "", head->kind == PAGE_CLUSTERS ? current : "");
    act_buf_adds(out, "<main>\n");
}

void page_end(struct act_buf *out)
{
    char now[ACT_TIME_TEXT];

    act_time_to_local(act_now_unix_s(), now);
    act_buf_addf(out, "</main>\n<footer class=\"dim\"><p>As of %s.</p></footer>\n<script>%s</script>\n</body></html>\n",
                 now, page_script());
}

static void page_parts_add_said(const struct act_strv *said, struct act_buf *out)
{
    if (said->n == 0)
        return;
    act_buf_adds(out, "<div class=\"said\" role=\"note\">\n");
    for (size_t i = 0; i < said->n; i++)
        page_add_short(out, "<p>", said->v[i], "</p>\n");
    act_buf_adds(out, "</div>\n");
}

void page_add_live(const struct page_live *live, struct act_buf *out)
{
    if (!live)
        return;
    if (live->changes) {
        act_buf_addf(out, "<p class=\"bar dim\">Refreshes every %d s.\n", PAGE_REFRESH_S);
        page_add_text(out, "<a href=\"?", live->query, *live->query ? "&amp;" : "");
        act_buf_adds(out, "live=0\">Pause</a>\n</p>\n");
    }
    page_parts_add_said(live->said, out);
}

void page_add_data(struct act_buf *out, const json_t *data)
{
    ACT_AUTOFREE char *text = json_dumps(data, JSON_COMPACT | JSON_REAL_PRECISION(7));

    if (!text) /* it has a text that is not UTF-8 */
        return;
    act_buf_adds(out, "<script type=\"application/json\" id=\"data\">");
    for (const char *c = text, *end; *c; c = end) {
        end = c + 1 + strcspn(c + 1, "<");
        act_buf_adds(out, *c == '<' ? "\\u003c" : ""); /* so that it cannot end the element around it */
        act_buf_add(out, c + (*c == '<'), (size_t)(end - c) - (*c == '<'));
    }
    act_buf_adds(out, "</script>\n");
}

void page_message(const char *title, const char *text, struct act_buf *out)
{
    page_begin(&(struct page_head){.kind = PAGE_MESSAGE, .title = title}, out);
    page_add_text(out, "<h1>", title, "</h1>\n");
    page_add_text(out, "<pre>", text, "</pre>\n");
    page_end(out);
}
