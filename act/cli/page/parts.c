#include <string.h>

#include "base/clock.h"
#include "base/hash.h"
#include "cli/page/page.h"
#include "cli/screen/live.h"
#include "http/http.h"

enum { TEXT_SHOWN = 500 };

static const char layout[] =
    "*{box-sizing:border-box}body{margin:0 auto;max-width:1400px;padding:1rem;background:var(--back);color:var(--text);"
    "font:15px/1.45 system-ui,sans-serif}h1{font-size:1.5rem;margin:.2rem 0}h2{font-size:1.2rem;margin:1.6rem 0 .4rem}"
    "h3{font-size:1rem;margin:1rem 0 .3rem}h1,h2,h3,td,th,p,li,summary{overflow-wrap:anywhere}"
    "table{border-collapse:collapse;width:100%}th,td{text-align:left;vertical-align:top;padding:.2rem .6rem .2rem 0;"
    "border-bottom:1px solid var(--line);font-weight:400}th{color:var(--dim)}th[scope=row]{width:14rem}"
    "td.n{text-align:right;white-space:nowrap;width:8rem}"
    "pre,code{font:13px/1.4 ui-monospace,monospace}pre{white-space:pre-wrap;overflow-wrap:anywhere;margin:.3rem 0;"
    "padding:.6rem;background:var(--box);border:1px solid var(--line);border-radius:4px}"
    ".why{border:1px solid var(--line);border-left:4px solid var(--c4);background:var(--box);padding:.2rem .8rem;"
    "border-radius:4px}.dim,.note{color:var(--dim)}.note{margin:.1rem 0 0;font-size:13px}summary{cursor:pointer}"
    ".grid-of{display:grid;grid-template-columns:repeat(auto-fill,minmax(min(100%,350px),1fr));gap:.8rem 1.2rem}"
    "figure{margin:0;break-inside:avoid;min-width:0}"
    "figcaption{font-weight:600;margin-bottom:.45rem;overflow-wrap:anywhere}"
    ".chart{display:grid;grid-template-columns:5.2rem 1fr;font-size:12px;color:var(--dim)}"
    ".chart .y{display:flex;flex-direction:column;justify-content:space-between;text-align:right;padding-right:.4rem;"
    "line-height:1;margin:-.5em 0}.chart svg{width:100%;height:150px;display:block;overflow:visible}"
    ".chart .x{grid-column:2;display:flex;justify-content:space-between;gap:.5rem;padding-top:.2rem}"
    ".legend{list-style:none;display:flex;flex-wrap:wrap;gap:.1rem .9rem;margin:.1rem 0 0;padding:0;font-size:12px}"
    ".legend svg{width:20px;height:8px;margin-right:.3rem;vertical-align:middle}"
    "@media(max-width:600px){body{padding:.6rem}th[scope=row]{width:7rem}td.n{width:auto}"
    ".chart{grid-template-columns:4.4rem 1fr}}"
    ".bar{display:flex;flex-wrap:wrap;gap:.3rem 1rem;align-items:end;margin:.4rem 0}.bar label{display:block;"
    "font-size:13px;color:var(--dim)}a{color:var(--c0)}input,button{font:inherit;max-width:100%}.wide{overflow-x:auto}"
    ".said{border-left:4px solid var(--c5);padding:.2rem .8rem;background:var(--box)}"
    ".runs td,.runs th{padding-right:1rem;overflow-wrap:normal;white-space:nowrap}.runs th[scope=row]{width:auto}"
    ".runs .any{white-space:normal;overflow-wrap:anywhere;min-width:7rem}.runs .cmd{min-width:14rem;width:99%}"
    ".cmd div{max-height:2.9em;overflow:hidden}"
    "@media(max-width:600px){.runs thead{display:none}.runs tr{display:flex;flex-wrap:wrap;gap:0 .8rem;"
    "padding:.4rem 0;border-bottom:1px solid var(--line)}.runs td,.runs th{border:0;padding:0}"
    ".runs td:empty{display:none}.runs .any,.runs .cmd{min-width:0;width:100%}}"
    ".Running{color:var(--c2)}.Failed{color:var(--c4)}"
    "@media print{.bar,.runs input{display:none}body{max-width:none;font-size:11px}"
    "details::details-content{content-visibility:visible;"
    "block-size:auto}.chart svg{height:110px}h2,h3{break-after:avoid}}";

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

void page_add_query(struct act_buf *query, const char *name, const char *value)
{
    if (!value)
        return;
    ACT_AUTOFREE char *encoded = http_encode(value, false);
    act_buf_addf(query, "%s%s=%s", query->len > 0 ? "&" : "", name, encoded);
}

/* ---- the frame of a page */

/* Returns the policy. It names the sheet by its hash, so that no text can bring in another one. */
static char *policy_of(const char *sheet, bool has_form)
{
    struct act_sha256 hash;
    uint8_t digest[32];

    act_sha256_init(&hash);
    act_sha256_add(&hash, sheet, strlen(sheet));
    act_sha256_bytes(&hash, digest, sizeof(digest));
    ACT_AUTOFREE char *base64 = act_base64_encode(digest, sizeof(digest));
    return act_sprintf("default-src 'none'; style-src 'sha256-%s'; base-uri 'none'; form-action '%s'", base64,
                       has_form ? "self" : "none");
}

char *page_policy(bool has_form)
{
    ACT_AUTOFREE char *sheet = act_sprintf("%s%s", draw_style(), layout);
    ACT_AUTOFREE char *policy = policy_of(sheet, has_form);

    return act_sprintf("%s; frame-ancestors 'none'", policy); /* which only a header can say */
}

void page_begin(const char *title, bool has_form, struct act_buf *out)
{
    ACT_AUTOFREE char *sheet = act_sprintf("%s%s", draw_style(), layout);
    ACT_AUTOFREE char *policy = policy_of(sheet, has_form);

    act_buf_addf(out,
                 "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n"
                 "<meta http-equiv=\"Content-Security-Policy\" content=\"%s\">\n"
                 "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
                 "<meta name=\"referrer\" content=\"no-referrer\">\n<title>",
                 policy);
    draw_escaped(out, title);
    act_buf_addf(out, "</title>\n<style>%s</style></head>\n<body>\n<main>\n", sheet);
}

void page_end(struct act_buf *out)
{
    char now[ACT_TIME_TEXT];

    act_time_to_iso(act_now_unix_s(), now);
    act_buf_addf(out, "</main>\n<footer class=\"dim\"><p>As of %s.</p></footer>\n</body></html>\n", now);
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

static void page_parts_add_link(struct act_buf *out, const char *path, const char *query, const char *more,
                                const char *text)
{
    act_buf_addf(out, "<a href=\"%s?", path);
    draw_escaped(out, query);
    act_buf_addf(out, "%s%s\">%s</a>\n", *query && *more ? "&amp;" : "", more, text);
}

void page_add_live(const struct page_live *live, bool is_table, struct act_buf *out)
{
    const char *path = is_table ? "./" : "run";

    if (!live)
        return;
    act_buf_adds(out, "<nav class=\"bar\">\n");
    if (!is_table)
        act_buf_adds(out, "<a href=\"./\">all runs</a>\n");
    if (live->changes) {
        act_buf_adds(out, "<span class=\"dim\">renewed by itself:</span>\n");
        page_parts_add_link(out, path, live->query, "live=0", "hold");
        page_parts_add_link(out, path, live->query, "", "go on");
    }
    act_buf_adds(out, "</nav>\n");
    page_parts_add_said(live->said, out);
}

void page_message(const char *title, const char *text, struct act_buf *out)
{
    page_begin(title, false, out);
    page_add_text(out, "<nav class=\"bar\"><a href=\"./\">all runs</a></nav>\n<h1>", title, "</h1>\n<pre>");
    page_add_text(out, "", text, "</pre>\n");
    page_end(out);
}
