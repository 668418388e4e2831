/* wire.c - the functions of a site behind a connection: each is one request and one checked response, or one for each
 * part of a file that is read. How those are sent and awaited is in exchange.c.
 */
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/hash.h"
#include "base/path.h"
#include "codec/json.h"
#include "site/exchange.h"
#include "site/parts.h"
#include "site/site_internal.h"

static int bad_response(const char *what, struct act_error *err)
{
    return act_error_set(err, ACT_FAIL, "the site gave a wrong response: '%s'", what);
}

static json_t *wire_texts_json(const char *const *texts, size_t n)
{
    json_t *array = json_array();

    for (size_t i = 0; i < n; i++)
        json_array_append_new(array, codec_json_bytes_new(texts[i]));
    return array;
}

/* ---- opening ---- */

/* Returns the port of "host:22"; NULL: there is none. An address of IPv6 has more colons. */
static const char *wire_port_of(const char *login)
{
    const char *colon = strchr(login, ':');
    size_t digits = colon ? strspn(colon + 1, "0123456789") : 0;

    return digits > 0 && !colon[1 + digits] ? colon + 1 : NULL;
}

#define SSH_URI "ssh://"

/* Tells whether what follows the scheme of a URI is [USER@]HOST[:PORT][/], which is all that ssh takes. */
static bool wire_is_authority(const char *text)
{
    enum { PORT_MOST = 65535 };
    const char *user_end = strrchr(text, '@'), *host = user_end ? user_end + 1 : text;
    bool is_bracketed = *host == '[';
    const char *host_end = host + strcspn(host, is_bracketed ? "]/" : ":/");
    const char *rest = host_end + (*host_end == ']');
    size_t digits = *rest == ':' ? strspn(rest + 1, "0123456789") : 0;
    long port = digits ? strtol(rest + 1, NULL, 10) : 1;

    rest += digits ? 1 + digits : 0;
    return user_end != text && host_end > host && is_bracketed == (*host_end == ']') && port >= 1 &&
           port <= PORT_MOST && (!*rest || act_streq(rest, "/"));
}

int site_check_login(const char *login, struct act_error *err)
{
    const char *port = wire_port_of(login);

    if (*login == '-' || strpbrk(login, " \t\r\n") || !*login)
        return act_error_set(err, ACT_CONFIG, "'%s' is not of the form 'user@host', and no name of ~/.ssh/config",
                             login);
    if (port)
        return act_error_set(err, ACT_CONFIG,
                             "'%s' has a port, which ssh takes for a part of the name: write 'ssh://%s', or leave it "
                             "out and give the host its 'Port %s' in ~/.ssh/config",
                             login, login, port);
    if (act_starts_with(login, SSH_URI) && !wire_is_authority(login + strlen(SSH_URI)))
        return act_error_set(err, ACT_CONFIG,
                             "'%s' is no URI that ssh takes: write 'ssh://user@host:port', with a port from 1 to 65535 "
                             "or none, and no path",
                             login);
    return 0;
}

/* Tells whether every login shell passes on a word as it is. */
static bool wire_is_plain(const char *word)
{
    bool plain = true;

    for (const char *c = word; *c; c++)
        plain = plain && (unsigned char)*c >= ' ' && !strchr("'\\!\x7f", *c);
    return plain;
}

static int wire_check_names(const char *login, const char *root, struct act_error *err)
{
    if (!wire_is_plain(root))
        return act_error_set(err, ACT_CONFIG,
                             "the root '%s' cannot be used on '%s': it has a quote, a backslash, '!' or a control "
                             "character",
                             root, login);
    return site_check_login(login, err);
}

int wire_open(const struct site_options *options, struct site *site, struct act_error *err)
{
    int rc = wire_check_names(options->login, options->root, err);

    if (rc < 0)
        return rc;
    site->wire = act_calloc(1, sizeof(*site->wire));
    site->wire->channel.in_fd = site->wire->channel.out_fd = -1;
    ssh_init(&site->wire->ssh, options->login, options->root);
    site->wire->ssh.only_look = options->only_look;
    site->wire->ssh.never_asks = options->never_asks;
    if (options->store && wire_is_plain(options->store))
        site->wire->ssh.store = act_strdup(options->store);
    if (options->store_first && wire_is_plain(options->store_first))
        site->wire->ssh.store_first = act_strdup(options->store_first);
    return wire_connect(site, err);
}

int wire_open_fds(int in_fd, int out_fd, struct site *site, struct act_error *err)
{
    ACT_AUTO(act_buf) line = {0};
    struct wire *w = act_calloc(1, sizeof(*w));

    site->wire = w;
    w->ssh.err_fd = -1;
    w->channel.in_fd = in_fd;
    w->channel.out_fd = out_fd;
    w->channel.reads_early = in_fd == out_fd;
    int rc = channel_read_line(&w->channel, CHANNEL_BUFFER, &line, err);
    return rc < 0 ? rc : wire_greet(site, err);
}

void wire_free(struct wire *wire)
{
    if (!wire)
        return;
    wire_disconnect(wire);
    ssh_release(&wire->ssh);
    wire_lose_news(wire);
    wire_package_free(wire->package);
    free(wire);
}

bool wire_needs_login_shell(const struct wire *wire)
{
    return wire->in_login_shell;
}

/* ---- files that are brought ---- */

static int put_program(struct site *site, const char *name, const char *agent_hash, struct act_error *err)
{
    ACT_AUTOFREE char *path = ssh_find_program(&site->wire->ssh, name);
    ACT_AUTOFREE char *program = NULL;
    char sha256[ACT_SHA256_HEX];
    struct act_sha256 hash;
    size_t len;

    if (!path)
        return bad_response("missing", err);
    int rc = act_file_read(path, SITE_REQUEST_MAX_BYTES, &program, &len, err);
    if (rc < 0)
        return rc;
    act_sha256_init(&hash);
    act_sha256_add(&hash, program, len);
    act_sha256_done(&hash, sha256);
    ACT_AUTO(exchange) x = {.parts = {{program, len}}, .n_parts = 1};
    x.request = json_pack("{s:s, s:s, s:s%, s:s, s:I}", "op", "put", "program", name, "hash", agent_hash,
                          (size_t)SITE_AGENT_HEX, "sha256", sha256, "bytes", (json_int_t)len);
    rc = wire_call(site, &x, err);
    return rc < 0 ? act_error_prefix(err, "cannot bring '%s' to the site", path) : 0;
}

/* Adds the size of a program to the list for the other side. */
static int add_program(const struct site *site, json_t *programs, const char *name, struct act_error *err)
{
    ACT_AUTOFREE char *path = ssh_find_program(&site->wire->ssh, name);
    int64_t bytes;

    if (!path) /* "act" for a machine of another kind: only runs that bring their folders need it */
        return 0;
    int rc = here_size_of(path, &bytes, err);
    if (rc == 0)
        json_object_set_new(programs, name, json_integer(bytes));
    return rc;
}

static int find_agent_hash(const struct site *site, char out[ACT_SHA256_HEX], struct act_error *err)
{
    ACT_AUTOFREE char *agent = ssh_find_program(&site->wire->ssh, SITE_AGENT);

    if (site->wire->ssh.agent) {
        memcpy(out, site->wire->ssh.agent_hash, ACT_SHA256_HEX);
        return 0;
    }
    if (!agent)
        return act_error_set(err, ACT_NOT_FOUND, "cannot find '" SITE_AGENT "' beside this program; install ACT again");
    return act_sha256_file(agent, out, err);
}

/* Asks which of the programs are not there: an array in *out_missing, a new reference. *out: the path of the agent. */
static int ask_for_agent(struct site *site, const char *hash, json_t **out_missing, char **out, struct act_error *err)
{
    json_t *programs = json_object();
    int rc = add_program(site, programs, SITE_ACT, err);

    if (rc == 0)
        rc = add_program(site, programs, SITE_AGENT, err);
    ACT_AUTO(exchange) x = {0};
    x.request =
        json_pack("{s:s, s:s%, s:o}", "op", "agent", "hash", hash, (size_t)SITE_AGENT_HEX, "programs", programs);
    if (rc == 0)
        rc = wire_call(site, &x, err);
    else
        json_decref(x.request);
    *out_missing = json_incref(json_object_get(x.response.head, "missing"));
    if (rc == 0)
        *out = codec_json_bytes_get(json_object_get(x.response.head, "path"));
    return rc == 0 && (!*out || **out != '/') ? bad_response("path", err) : rc;
}

int wire_program(struct site *site, char **out, struct act_error *err)
{
    char hash[ACT_SHA256_HEX];
    int rc = find_agent_hash(site, hash, err);

    *out = NULL;
    if (rc < 0)
        return rc;
    ACT_AUTOFREE char *dir = site_agent_dir(site, hash);
    *out = act_path_join(dir, SITE_ACT);
    return 0;
}

int wire_agent(struct site *site, char **out, struct act_error *err)
{
    CODEC_AUTOJSON json_t *missing = NULL;
    char hash[ACT_SHA256_HEX];
    json_t *name;
    size_t i;

    *out = NULL;
    int rc = find_agent_hash(site, hash, err);
    if (rc == 0)
        rc = ask_for_agent(site, hash, &missing, out, err);
    json_array_foreach(missing, i, name)
    {
        if (rc == 0 && json_is_string(name))
            rc = put_program(site, json_string_value(name), hash, err);
    }
    return rc;
}

int wire_find_agent(struct site *site, char **out, bool *out_there, struct act_error *err)
{
    CODEC_AUTOJSON json_t *missing = NULL;
    char hash[ACT_SHA256_HEX];
    int rc = find_agent_hash(site, hash, err);

    *out = NULL;
    *out_there = false;
    if (rc < 0)
        return rc;
    if (site->wire->ssh.absent) {
        ACT_AUTOFREE char *dir = site_agent_dir(site, hash);
        *out = act_path_join(dir, SITE_AGENT);
        return 0;
    }
    rc = ask_for_agent(site, hash, &missing, out, err);
    *out_there = rc == 0 && json_array_size(missing) == 0;
    return rc;
}

/* ---- runs ---- */

/* Returns [[name, text], ...], a new reference. */
static json_t *wire_files_json(const struct site_new *run)
{
    json_t *files = json_array();

    for (size_t i = 0; i < run->n_files; i++)
        json_array_append_new(files, json_pack("[o, o]", codec_json_bytes_new(run->files[i].name),
                                               codec_json_bytes_new(run->files[i].text)));
    return files;
}

/* A request that the site does not carry out while it lacks a package. */
struct wire_needy {
    /* Makes the request; package NULL: it needs none. asks_for_base: the site may offer what it has of the package. */
    int (*ask)(struct site *site, const struct wire_needy *needy, struct wire_package *package, bool asks_for_base,
               bool *out_needed, struct act_error *err);
    const void *what;
    void *out;
};

/* Sends the package, and behind it the request once more. */
static int bring_and_ask_ahead(struct site *site, const struct wire_needy *needy, struct wire_package *package,
                               struct act_error *err)
{
    ACT_AUTO(exchange) x = wire_package_bring(package);
    bool needed;
    int rc = wire_call_send(site, &x, err);

    if (rc == 0) {
        site->wire->ahead++;
        rc = needy->ask(site, needy, package, false, &needed, err);
        site->wire->ahead--;
        rc = rc == -ACT_INTERRUPTED ? wire_call_receive(site->wire, &x, err) : rc;
    }
    return rc < 0 ? act_error_prefix(err, "cannot bring '%s' to the site", package->path) : 0;
}

/* Makes the request, and brings the package that it needs. path NULL: none. */
static int wire_call_with_package(struct site *site, const struct wire_needy *needy, const char *path,
                                  const char *sha256, struct act_error *err)
{
    struct wire_package *package = NULL;
    bool needed = false, was_whole = false;
    int rc = path ? wire_package_of(site, path, sha256, &package, err) : 0;

    if (rc == 0)
        rc = needy->ask(site, needy, package, true, &needed, err);
    while (rc == 0 && package && needed && !was_whole) {
        was_whole = !*package->base;
        rc = bring_and_ask_ahead(site, needy, package, err);
        if (rc == 0)
            rc = needy->ask(site, needy, package, false, &needed, err);
    }
    return rc == 0 && needed ? bad_response("needs_package", err) : rc;
}

static int ask_to_create(struct site *site, const struct wire_needy *needy, struct wire_package *package,
                         bool asks_for_base, bool *out_needed, struct act_error *err)
{
    const struct site_new *run = needy->what;
    bool *out_existed = needy->out;
    ACT_AUTO(exchange) x = {.max_response = PARTS_IDS_MAX_BYTES};

    x.request = json_pack("{s:s, s:o, s:o, s:o}", "op", "create", "spec", run_spec_to_json(run->spec), "secrets",
                          run_secrets_to_json(run->spec), "files", wire_files_json(run));
    if (package)
        wire_package_name(package, asks_for_base, &x);
    int rc = wire_call(site, &x, err);
    *out_existed = json_is_true(json_object_get(x.response.head, "existed"));
    *out_needed = package && wire_package_is_needed(package, &x);
    return rc;
}

int wire_create_run(struct site *site, const struct site_new *run, bool *out_existed, struct act_error *err)
{
    const struct wire_needy needy = {.ask = ask_to_create, .what = run, .out = out_existed};

    *out_existed = false;
    return wire_call_with_package(site, &needy, run->package, run->spec->package_sha256, err);
}

int wire_remove_run(struct site *site, const char *id, struct act_error *err)
{
    ACT_AUTO(exchange) x = {.request = json_pack("{s:s, s:s}", "op", "remove", "id", id)};

    return wire_call(site, &x, err);
}

int wire_clear(struct site *site, bool dry_run, struct site_left *out, struct act_error *err)
{
    ACT_AUTO(exchange) x = {.request = json_pack("{s:s, s:b}", "op", "clear", "dry_run", dry_run)};
    int rc = wire_call(site, &x, err);

    *out = (struct site_left){0};
    int64_t n = codec_json_int(x.response.head, "n", -1), bytes = codec_json_int(x.response.head, "bytes", -1);
    if (rc == 0 && (n < 0 || bytes < 0))
        rc = bad_response("n", err);
    if (rc == 0)
        *out = (struct site_left){.bytes = (uint64_t)bytes, .n = (size_t)n};
    return rc;
}

/* ---- another program in the place of the agent ---- */

/* The response may have been read together with what the program has said first. */
static int wire_hand_over(struct wire *w, int *out_fd, struct act_buf *out_said, struct act_error *err)
{
    struct channel *c = &w->channel;

    if (w->n_asked > 0 || c->in_fd != c->out_fd)
        return act_error_set(err, ACT_FAIL, "the connection is in use");
    act_buf_add(out_said, c->buffer + c->pos, c->len - c->pos);
    if (c->early.len > c->early_pos)
        act_buf_add(out_said, c->early.data + c->early_pos, c->early.len - c->early_pos);
    c->pos = c->len;
    *out_fd = c->in_fd;
    c->in_fd = c->out_fd = -1;
    return 0;
}

int wire_become(struct site *site, const char *folder, int *out_fd, struct act_buf *out_said, struct act_error *err)
{
    ACT_AUTOFREE char *agent = NULL;
    ACT_AUTO(exchange) x = {0};

    if (site->wire->ssh.is_store)
        return wire_hand_over(site->wire, out_fd, out_said, err);
    int rc = wire_agent(site, &agent, err);
    if (rc < 0)
        return rc;
    x.request = json_pack("{s:s, s:o}", "op", "become", "folder", codec_json_bytes_new(folder));
    rc = wire_call(site, &x, err);
    return rc < 0 ? rc : wire_hand_over(site->wire, out_fd, out_said, err);
}

/* ---- files ---- */

static json_t *file_request(const char *op, const char *id, const char *name)
{
    return json_pack("{s:s, s:o, s:o}", "op", op, "id", codec_json_bytes_new(id), "name", codec_json_bytes_new(name));
}

/* Returns how much of a part comes in one response: the n-th of those that it takes, of which there is at least one. */
static size_t wire_piece_len(const struct site_part *part, size_t n)
{
    const size_t at = n * SITE_READ_MAX_BYTES;

    if (part->offset > INT64_MAX - part->len || at >= part->len)
        return 0;
    return part->len - at < SITE_READ_MAX_BYTES ? part->len - at : SITE_READ_MAX_BYTES;
}

static void wire_ask_for_part(json_t *rows, const struct site_part *part)
{
    size_t n = 0, len;

    do {
        len = wire_piece_len(part, n);
        json_array_append_new(rows, json_pack("[o, I, I]", codec_json_bytes_new(part->name),
                                              (json_int_t)(len ? part->offset + n * SITE_READ_MAX_BYTES : 0),
                                              (json_int_t)len));
    } while (wire_piece_len(part, ++n) > 0);
}

/* Takes the responses for one part. Returns below 0 if no more will come. */
static int wire_receive_part(struct wire *w, struct exchange *x, struct site_part *part)
{
    size_t n = 0;

    do {
        struct act_error err;
        x->max_response = wire_piece_len(part, n);
        int rc = wire_call_receive(w, x, &err);
        if (rc < 0 && part->rc == 0) {
            part->rc = rc;
            part->error = err;
        }
        if (!wire_is_open(w))
            return rc;
        const struct act_buf *got = &x->response.parts[0];
        if (part->rc < 0 || part->got < n * SITE_READ_MAX_BYTES || got->len == 0) /* it has ended before this */
            continue;
        memcpy((char *)part->data + part->got, got->data, got->len);
        part->got += got->len;
    } while (wire_piece_len(part, ++n) > 0);
    return 0;
}

void wire_read_parts(struct site *site, const char *id, struct site_part *parts, size_t n)
{
    ACT_AUTO(exchange) x = {.has_several = true};
    json_t *rows = json_array();
    struct act_error err;

    for (size_t i = 0; i < n; i++) {
        parts[i].got = 0;
        parts[i].rc = 0;
        wire_ask_for_part(rows, &parts[i]);
    }
    x.request = json_pack("{s:s, s:o, s:o}", "op", "read", "id", codec_json_bytes_new(id), "of", rows);
    int rc = wire_call_send(site, &x, &err);
    for (size_t i = 0; i < n; i++) {
        if (rc < 0) {
            parts[i].rc = rc;
            parts[i].error = err;
            continue;
        }
        rc = wire_receive_part(site->wire, &x, &parts[i]);
        if (rc < 0)
            err = parts[i].error;
    }
}

int wire_read_text(struct site *site, const char *id, const char *name, char **out, struct act_error *err)
{
    ACT_AUTO(exchange) x = {.request = file_request("text", id, name), .max_response = SITE_TEXT_MAX_BYTES};
    int rc = wire_call(site, &x, err);

    *out = rc < 0 ? NULL : act_buf_steal(&x.response.parts[0]);
    return rc;
}

int wire_write(struct site *site, const char *id, const char *name, const char *text, bool *out_existed,
               struct act_error *err)
{
    const struct frame_part part = {text, strlen(text)};
    ACT_AUTO(exchange) x = {.request = file_request("write", id, name), .parts = {part}, .n_parts = 1};

    json_object_set_new(x.request, "exclusive", json_boolean(out_existed));
    int rc = wire_call(site, &x, err);
    if (out_existed)
        *out_existed = json_is_true(json_object_get(x.response.head, "existed"));
    return rc;
}

/* Takes a row, [name, size, idle, bytes of its end], and its end from *ends, of which it takes len. */
static bool wire_take_file(const json_t *row, const char **ends, size_t *len, struct site_files *out)
{
    ACT_AUTOFREE char *name = codec_json_bytes_get(json_array_get(row, 0));
    const json_t *idle = json_array_get(row, 2);
    json_int_t number[2];

    for (size_t i = 0; i < 2; i++) {
        const json_t *value = json_array_get(row, i ? 3 : 1);
        number[i] = json_is_integer(value) ? json_integer_value(value) : -1;
    }
    if (!name || !act_path_is_safe(name, strlen(name)) || number[0] < 0 || number[1] < 0 || number[1] > number[0] ||
        (uint64_t)number[1] > *len)
        return false;
    site_files_add(out, name, (uint64_t)number[0], json_is_integer(idle) ? json_integer_value(idle) : -1);
    if (number[1] > 0) {
        struct site_file *file = &out->v[out->n - 1];
        file->end_len = (size_t)number[1];
        file->end = act_alloc(file->end_len);
        memcpy(file->end, *ends, file->end_len);
        *ends += file->end_len;
        *len -= file->end_len;
    }
    return true;
}

int wire_take_files(const struct frame *response, struct site_files *out, struct act_error *err)
{
    const char *ends = response->parts[0].data;
    size_t len = response->parts[0].len, i;
    json_t *row;

    *out = (struct site_files){.told = (uint64_t)codec_json_int(response->head, "told", 0)};
    json_array_foreach(json_object_get(response->head, "files"), i, row)
    {
        if (!wire_take_file(row, &ends, &len, out)) {
            site_files_release(out);
            return bad_response("files", err);
        }
    }
    return 0;
}

int wire_files(struct site *site, const char *id, const char *const *folders, size_t n_folders, size_t n_with_ends,
               struct site_files *out, struct act_error *err)
{
    ACT_AUTO(exchange) x = {.request = file_request("files", id, ""), .max_response = SITE_ENDS_MAX_BYTES};

    *out = (struct site_files){0};
    json_object_set_new(x.request, "folders", wire_texts_json(folders, n_folders));
    json_object_set_new(x.request, "with_ends", json_integer((json_int_t)n_with_ends));
    int rc = wire_call(site, &x, err);
    return rc < 0 ? rc : wire_take_files(&x.response, out, err);
}

/* ---- states and the list ---- */

int wire_states(struct site *site, const char *const *ids, size_t n, struct site_state *out, struct act_error *err)
{
    ACT_AUTO(exchange) x = {.request = json_pack("{s:s, s:o}", "op", "states", "ids", wire_texts_json(ids, n))};
    json_t *row;
    size_t i;

    memset(out, 0, n * sizeof(*out));
    int rc = wire_call(site, &x, err);
    const json_t *states = json_object_get(x.response.head, "states");
    if (rc == 0 && json_array_size(states) != n)
        rc = bad_response("states", err);
    json_array_foreach(rc < 0 ? NULL : states, i, row)
    {
        out[i].there = json_is_true(json_object_get(row, "there"));
        if (rc == 0)
            rc = run_status_from_json(json_object_get(row, "status"), &out[i].status, err);
        if (rc == 0)
            rc = run_job_from_json(row, &out[i].job, err);
    }
    if (rc < 0)
        site_states_release(out, n);
    return rc;
}

int wire_list(struct site *site, struct act_strv *out_ids, struct act_error *err)
{
    ACT_AUTO(exchange) x = {.request = json_pack("{s:s}", "op", "list")};
    json_t *id;
    size_t i;
    int rc = wire_call(site, &x, err);

    json_array_foreach(json_object_get(x.response.head, "ids"), i, id)
    {
        if (rc == 0 && json_is_string(id) && run_id_valid(json_string_value(id)))
            act_strv_push(out_ids, json_string_value(id));
    }
    return rc;
}

/* ---- programs ---- */

static int ask_to_run(struct site *site, const struct wire_needy *needy, struct wire_package *package,
                      bool asks_for_base, bool *out_needed, struct act_error *err)
{
    enum { MORE_S = 30 };
    const struct site_command *command = needy->what;
    struct site_result *result = needy->out;
    size_t n = 0;

    while (command->argv[n])
        n++;
    ACT_AUTO(exchange)
    x = {.max_response = 2 * command->max_bytes + PARTS_IDS_MAX_BYTES, .timeout_s = command->timeout_s + MORE_S};
    x.request = json_pack("{s:s, s:o, s:i, s:I}", "op", "run", "argv", wire_texts_json(command->argv, n), "timeout",
                          command->timeout_s, "max", (json_int_t)command->max_bytes);
    json_object_set_new(x.request, "begins_runs", json_boolean(command->begins_runs));
    if (command->cwd)
        json_object_set_new(x.request, "cwd", codec_json_bytes_new(command->cwd));
    if (package)
        wire_package_name(package, asks_for_base, &x);
    if (command->input)
        x.parts[x.n_parts++] = (struct frame_part){command->input, command->input_len};
    int rc = wire_call(site, &x, err);
    *out_needed = rc == 0 && package && wire_package_is_needed(package, &x);
    if (rc == 0 && !*out_needed) {
        result->status = (int)codec_json_int(x.response.head, "status", 1) & 0xff;
        result->out_len = x.response.parts[0].len;
        result->err_len = x.response.parts[1].len;
        result->out = act_buf_steal(&x.response.parts[0]);
        result->err = act_buf_steal(&x.response.parts[1]);
    }
    return rc;
}

int wire_run(struct site *site, const struct site_command *command, struct site_result *result, struct act_error *err)
{
    const struct wire_needy needy = {.ask = ask_to_run, .what = command, .out = result};
    const struct site_package *package = command->package;

    if (site->wire->ssh.absent && site->wire->ahead == 0)
        return ssh_run(&site->wire->ssh, command, result, err);
    *result = (struct site_result){0};
    return wire_call_with_package(site, &needy, package ? package->path : NULL, package ? package->sha256 : "", err);
}
