/* wire_parts.c - the client's side of parts.h. */
#include <stdlib.h>
#include <string.h>

#include "codec/json.h"
#include "site/parts.h"
#include "site/site_internal.h"

void wire_package_free(struct wire_package *package)
{
    if (!package)
        return;
    parts_release(&package->parts);
    act_buf_release(&package->sketch);
    act_buf_release(&package->base_ids);
    free(package->ranges);
    free(package->path);
    free(package);
}

static int wire_package_look(struct wire_package *p, const char *sha256, struct act_error *err)
{
    int rc = here_size_of(p->path, &p->bytes, err);

    memcpy(p->sha256, sha256, strlen(sha256) + 1);
    if (rc == 0 && !*sha256)
        rc = act_sha256_file(p->path, p->sha256, err);
    if (rc == 0 && parts_open(p->path, &p->parts))
        parts_add_sketch(&p->parts, &p->sketch);
    return rc;
}

/* A command creates many runs of one package, which is looked at once. */
int wire_package_of(struct site *site, const char *path, const char *sha256, struct wire_package **out,
                    struct act_error *err)
{
    struct wire_package *p = site->wire->package;
    int rc = 0;

    if (!p || !*sha256 || !act_streq(p->sha256, sha256) || !act_streq(p->path, path)) {
        wire_package_free(p);
        p = site->wire->package = act_calloc(1, sizeof(*p));
        p->parts.fd = -1;
        p->path = act_strdup(path);
        rc = wire_package_look(p, sha256, err);
    }
    if (rc < 0) {
        wire_package_free(p);
        p = site->wire->package = NULL;
    }
    *out = p;
    return rc;
}

void wire_package_name(const struct wire_package *package, bool asks_for_base, struct exchange *x)
{
    json_object_set_new(x->request, "package",
                        json_pack("{s:s, s:I}", "sha256", package->sha256, "bytes", (json_int_t)package->bytes));
    x->parts[0] = (struct frame_part){package->sketch.data, asks_for_base ? package->sketch.len : 0};
    x->n_parts = 1;
}

bool wire_package_is_needed(struct wire_package *package, struct exchange *x)
{
    const char *base = codec_json_str(x->response.head, "base", "");
    const bool is_base = x->parts[0].len > 0 && act_is_hex(base, ACT_SHA256_HEX - 1); /* else nobody asked for one */

    act_buf_release(&package->base_ids);
    if (is_base)
        package->base_ids = x->response.parts[0];
    if (is_base)
        x->response.parts[0] = (struct act_buf){0};
    memcpy(package->base, is_base ? base : "", is_base ? ACT_SHA256_HEX : 1);
    return json_is_true(json_object_get(x->response.head, "needs_package"));
}

/* Adds a row for each step, and what is sent of each: of the table, then the entries. */
static json_t *wire_package_steps(struct wire_package *p, const struct parts_step *steps, size_t n, size_t *n_ranges)
{
    const struct parts_entry *v = p->parts.v;
    json_t *rows = json_array();

    for (size_t i = 0; i < n; i++) {
        const struct parts_entry *first = &v[steps[i].own_first], *end = first + steps[i].own_n;
        const struct file_range table = {p->parts.table_at + first->record, end->record - first->record},
                                data = {first->at, end->at - first->at};
        json_array_append_new(rows,
                              json_pack("[I, I, I, I]", (json_int_t)steps[i].base_first, (json_int_t)steps[i].base_n,
                                        (json_int_t)table.len, (json_int_t)data.len));
        ACT_PUSH(p->ranges, *n_ranges, table);
        ACT_PUSH(p->ranges, *n_ranges, data);
    }
    return rows;
}

struct exchange wire_package_bring(struct wire_package *p)
{
    struct parts_step *steps = NULL;
    size_t n = 0, n_ranges = 0;
    json_t *request = json_pack("{s:s, s:I}", "sha256", p->sha256, "bytes", (json_int_t)p->bytes);

    free(p->ranges);
    p->ranges = NULL;
    if (*p->base && parts_plan(&p->parts, &p->base_ids, &steps, &n) == 0)
        *p->base = '\0';
    struct file_range rest = {0, (uint64_t)p->bytes}; /* after the table, if there are steps */
    if (*p->base) {
        rest.offset = p->parts.table_at + p->parts.table_len;
        rest.len = p->parts.size - rest.offset;
        json_object_set_new(request, "base", json_string(p->base));
        json_object_set_new(request, "steps", wire_package_steps(p, steps, n, &n_ranges));
        json_object_set_new(request, "end", json_integer((json_int_t)rest.len));
    }
    ACT_PUSH(p->ranges, n_ranges, rest);
    json_object_set_new(request, "op", json_string(*p->base ? "parts" : "put"));
    free(steps);
    return (struct exchange){.request = request, .file = p->path, .ranges = p->ranges, .n_ranges = n_ranges};
}

static int ask_for_package(struct site *site, struct wire_package *package, bool *out_needed, struct act_error *err)
{
    ACT_AUTO(exchange) x = {.request = json_pack("{s:s}", "op", "lacks"), .max_response = PARTS_IDS_MAX_BYTES};

    wire_package_name(package, true, &x);
    int rc = wire_call(site, &x, err);
    *out_needed = wire_package_is_needed(package, &x);
    return rc;
}

int wire_bring_package(struct site *site, const char *path, const char *sha256, struct act_error *err)
{
    struct wire_package *package;
    bool needed = false;
    int rc = wire_package_of(site, path, sha256, &package, err);

    if (rc == 0)
        rc = ask_for_package(site, package, &needed, err);
    while (rc == 0 && needed) {
        ACT_AUTO(exchange) x = wire_package_bring(package);
        rc = wire_call(site, &x, err);
        needed = *package->base && json_is_true(json_object_get(x.response.head, "whole"));
        *package->base = '\0';
    }
    return rc < 0 ? act_error_prefix(err, "cannot bring '%s' to the site", path) : 0;
}
