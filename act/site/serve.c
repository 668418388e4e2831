/* serve.c - the other side: does on this machine what frames ask for. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/hash.h"
#include "base/path.h"
#include "codec/json.h"
#include "proc/proc.h"
#include "site/frame.h"
#include "site/parts.h"
#include "site/site_internal.h"
#include "site/told.h"

struct request {
    struct site *site;
    struct channel *channel;
    struct frame frame; /* what was asked */
    json_t *response;
    struct act_buf parts[FRAME_PARTS];
    size_t n_parts;
    int channel_rc;          /* below 0: the connection cannot be used any more */
    struct act_strv becomes; /* the command that this process becomes when it has answered */
};

static const char *serve_text_of(const struct request *r, const char *key)
{
    return codec_json_str(r->frame.head, key, "");
}

/* Returns a text of any bytes, a new string; NULL: there is none. */
static char *serve_bytes_of(const struct request *r, const char *key)
{
    return codec_json_bytes_get(json_object_get(r->frame.head, key));
}

static const char *part_text(const struct request *r, size_t i)
{
    return i < r->frame.n_parts && r->frame.parts[i].data ? r->frame.parts[i].data : "";
}

static int serve_malformed(const char *what, struct act_error *err)
{
    return act_error_set(err, ACT_USAGE, "the request has no valid '%s'", what);
}

static int strings_of(const struct request *r, const char *key, struct act_strv *out, struct act_error *err)
{
    const json_t *array = json_object_get(r->frame.head, key);

    if (json_is_array(array) && codec_json_strv_get(array, out))
        return 0;
    act_strv_release(out);
    return serve_malformed(key, err);
}

/* Sends a response, or the error that rc is. The next one begins empty. */
static void serve_answer(struct request *r, int rc, const struct act_error *err)
{
    struct frame_part parts[FRAME_PARTS];
    struct act_error why;

    if (rc < 0) {
        json_object_set_new(r->response, "code", json_integer(-rc));
        json_object_set_new(r->response, "error", codec_json_bytes_new(act_error_text(err)));
    }
    for (size_t i = 0; i < r->n_parts; i++)
        parts[i] = (struct frame_part){r->parts[i].data, r->parts[i].len};
    int written = frame_write(r->channel, r->response, parts, rc < 0 ? 0 : r->n_parts, &why);
    r->channel_rc = r->channel_rc < 0 ? r->channel_rc : written;
    r->response = json_object();
    for (size_t i = 0; i < r->n_parts; i++)
        act_buf_wipe(&r->parts[i]);
    r->n_parts = 0;
}

/* ---- what can be asked ---- */

/* Reads the part of a file that a row asks for, [name, offset, len]. */
static int serve_part(struct request *r, const json_t *row, struct act_error *err)
{
    ACT_AUTOFREE char *name = codec_json_bytes_get(json_array_get(row, 0));
    const json_t *offset = json_array_get(row, 1), *length = json_array_get(row, 2);
    const json_int_t len = json_is_integer(length) ? json_integer_value(length) : -1;
    size_t got;

    r->n_parts = 1;
    if (!json_is_integer(offset) || json_integer_value(offset) < 0 || len < 0 || len > SITE_READ_MAX_BYTES || !name)
        return serve_malformed("of", err);
    ACT_AUTOFREE char *data = act_alloc((size_t)len + 1);
    int rc = here_read(r->site, serve_text_of(r, "id"), name, (uint64_t)json_integer_value(offset), data, (size_t)len,
                       &got, err);
    act_buf_add(&r->parts[0], data, rc < 0 ? 0 : got);
    return rc;
}

/* Answers each row by itself, as soon as its part is read: the last one as any request is answered. */
static int serve_read(struct request *r, struct act_error *err)
{
    const json_t *rows = json_object_get(r->frame.head, "of"), *row;
    int rc = 0;
    size_t i;

    json_array_foreach(rows, i, row)
    {
        if (i > 0)
            serve_answer(r, rc, err);
        if (r->channel_rc < 0)
            return r->channel_rc;
        rc = serve_part(r, row, err);
    }
    return rc;
}

static int serve_text(struct request *r, struct act_error *err)
{
    ACT_AUTOFREE char *name = serve_bytes_of(r, "name");
    ACT_AUTOFREE char *text = NULL;
    int rc = name ? here_read_text(r->site, serve_text_of(r, "id"), name, &text, err) : serve_malformed("name", err);

    if (rc == 0)
        act_buf_adds(&r->parts[0], text);
    r->n_parts = 1;
    return rc;
}

static int serve_write(struct request *r, struct act_error *err)
{
    ACT_AUTOFREE char *name = serve_bytes_of(r, "name");
    bool existed = false, exclusive = json_is_true(json_object_get(r->frame.head, "exclusive"));

    if (!name)
        return serve_malformed("name", err);
    int rc = here_write(r->site, serve_text_of(r, "id"), name, part_text(r, 0), exclusive ? &existed : NULL, err);
    json_object_set_new(r->response, "existed", json_boolean(existed));
    return rc;
}

/* The files whose ends go with the list: those below the first n of the folders. */
struct serve_ends {
    const struct act_strv *folders;
    size_t n;
    size_t most; /* bytes of each */
};

/* Returns how much of the end of a file goes with the list. */
static size_t serve_end_len(const struct serve_ends *w, const struct site_file *file)
{
    for (size_t i = 0; i < w->n && i < w->folders->n; i++)
        if (act_path_is_within(file->name, w->folders->v[i]))
            return file->size < w->most ? (size_t)file->size : w->most;
    return 0;
}

/* Makes the ends so short that all of them fit. */
static void serve_fit_ends(struct serve_ends *w, const struct site_files *files)
{
    uint64_t sum = UINT64_MAX;

    for (w->most = SITE_END_MAX_BYTES; sum > SITE_ENDS_MAX_BYTES && w->most > 0;) {
        sum = 0;
        for (size_t i = 0; i < files->n; i++)
            sum += serve_end_len(w, &files->v[i]);
        if (sum > SITE_ENDS_MAX_BYTES)
            w->most = w->most > SITE_END_MIN_BYTES ? w->most / 2 : 0;
    }
}

/* Adds the last len bytes of a file. Returns how many there are: none, if it became shorter meanwhile. */
static size_t serve_add_end(struct request *r, const struct site_file *file, size_t len)
{
    ACT_AUTOFREE char *data = act_alloc(len + 1);
    struct act_error ignored;
    size_t got = 0;

    if (len == 0 ||
        here_read(r->site, serve_text_of(r, "id"), file->name, file->size - len, data, len, &got, &ignored) < 0 ||
        got < len)
        return 0;
    act_buf_add(&r->parts[0], data, len);
    return len;
}

static int serve_files(struct request *r, struct act_error *err)
{
    const int64_t n_with_ends = codec_json_int(r->frame.head, "with_ends", 0);
    ACT_AUTO(act_strv) folders = {0};
    ACT_AUTO(site_files) files = {0};
    json_t *list = json_array();
    int rc = strings_of(r, "folders", &folders, err);

    if (rc == 0)
        rc = here_files(r->site, serve_text_of(r, "id"), (const char *const *)folders.v, folders.n, &files, err);
    struct serve_ends ends = {.folders = &folders, .n = n_with_ends > 0 ? (size_t)n_with_ends : 0};
    serve_fit_ends(&ends, &files);
    for (size_t i = 0; i < files.n; i++) {
        const struct site_file *file = &files.v[i];
        size_t end = serve_add_end(r, file, serve_end_len(&ends, file));
        json_array_append_new(list, json_pack("[o, I, I, I]", codec_json_bytes_new(file->name), (json_int_t)file->size,
                                              (json_int_t)file->idle_s, (json_int_t)end));
    }
    json_object_set_new(r->response, "files", list);
    if (rc == 0)
        told_note(r->site, serve_text_of(r, "id"), &folders, &files);
    json_object_set_new(r->response, "told", json_integer((json_int_t)files.told));
    r->n_parts = 1;
    return rc;
}

static int serve_news(struct request *r, struct act_error *err)
{
    r->n_parts = 1;
    return told_wait(r->site, r->channel, r->frame.head, r->response, &r->parts[0], err);
}

static int serve_states(struct request *r, struct act_error *err)
{
    ACT_AUTO(act_strv) ids = {0};
    json_t *list = json_array();
    int rc = strings_of(r, "ids", &ids, err);
    ACT_AUTOFREE struct site_state *states = act_calloc(ids.n + 1, sizeof(*states));

    if (rc == 0)
        rc = here_states(r->site, (const char *const *)ids.v, ids.n, states, err);
    for (size_t i = 0; rc == 0 && i < ids.n; i++)
        json_array_append_new(list, json_pack("{s:b, s:o, s:s?}", "there", states[i].there, "status",
                                              run_status_to_json(&states[i].status), "job", states[i].job));
    json_object_set_new(r->response, "states", list);
    site_states_release(states, ids.n);
    return rc;
}

static int serve_list(struct request *r, struct act_error *err)
{
    ACT_AUTO(act_strv) ids = {0};
    int rc = here_list(r->site, &ids, err);

    json_object_set_new(r->response, "ids", codec_json_strv_new(&ids));
    return rc;
}

/* Answers whether the package of the request is not here, and of what it can be made. Returns that, too. */
static bool serve_needs_package(struct request *r)
{
    const json_t *package = json_object_get(r->frame.head, "package");
    ACT_AUTOFREE char *path = here_package_path(r->site, codec_json_str(package, "sha256", ""));
    const bool needed = package && !here_is_there(path, codec_json_int(package, "bytes", -1));

    json_object_set_new(r->response, "needs_package", json_boolean(needed));
    if (needed)
        here_offer_base(r->site, &r->frame, r->response, &r->parts[0]);
    r->n_parts = needed;
    return needed;
}

static bool serve_names_package(const struct request *r)
{
    const json_t *package = json_object_get(r->frame.head, "package");

    return act_is_hex(codec_json_str(package, "sha256", ""), ACT_SHA256_HEX - 1);
}

/* Runs nothing while the package is not here that the program needs. */
static int serve_run(struct request *r, struct act_error *err)
{
    const int64_t timeout_s = codec_json_int(r->frame.head, "timeout", 0),
                  max = codec_json_int(r->frame.head, "max", 0);
    ACT_AUTOFREE char *cwd = serve_bytes_of(r, "cwd");
    const bool needs_one = json_object_get(r->frame.head, "package");
    const size_t input = needs_one; /* the part before it is the sketch of the package */
    ACT_AUTO(act_strv) argv = {0};
    ACT_AUTO(site_result) result = {0};

    if (timeout_s <= 0 || timeout_s > INT32_MAX || max <= 0)
        return serve_malformed("timeout", err);
    if (needs_one && !serve_names_package(r))
        return serve_malformed("package", err);
    if (needs_one && serve_needs_package(r))
        return 0;
    int rc = strings_of(r, "argv", &argv, err);
    if (rc == 0 && argv.n == 0)
        rc = serve_malformed("argv", err);
    if (rc < 0)
        return rc;
    rc = here_run(r->site,
                  &(struct site_command){.argv = (const char *const *)argv.v,
                                         .input = r->frame.n_parts > input ? part_text(r, input) : NULL,
                                         .input_len = r->frame.parts[input].len,
                                         .cwd = cwd,
                                         .timeout_s = (int)timeout_s,
                                         .max_bytes = (size_t)max,
                                         .begins_runs = json_is_true(json_object_get(r->frame.head, "begins_runs"))},
                  &result, err);
    json_object_set_new(r->response, "status", json_integer(result.status));
    act_buf_add(&r->parts[0], result.out ? result.out : "", result.out_len);
    act_buf_add(&r->parts[1], result.err ? result.err : "", result.err_len);
    r->n_parts = 2;
    return rc;
}

/* Sets the words of the program that serves a folder as a store: one below the root is ACT's own, and is made. Another
 * word may follow. */
static int serve_store_words(const struct site *site, const char *folder, struct act_strv *out, struct act_error *err)
{
    const bool is_own = *folder != '/';
    char *program;
    int rc = proc_find_sibling(SITE_ACT, &program, err);

    if (rc < 0)
        return rc;
    act_strv_take(out, program);
    act_strv_push(out, "__store");
    act_strv_push(out, "--");
    act_strv_take(out, is_own ? act_path_join(site->root, folder) : act_strdup(folder));
    act_strv_push(out, is_own ? "create" : "find");
    return 0;
}

/* Lets it go on with the connection, as serve_exec() does after the response: the program says what fails. */
static int serve_become(struct request *r, struct act_error *err)
{
    ACT_AUTOFREE char *folder = serve_bytes_of(r, "folder");

    return folder && *folder ? serve_store_words(r->site, folder, &r->becomes, err) : serve_malformed("folder", err);
}

static int serve_lacks(struct request *r, struct act_error *err)
{
    if (!serve_names_package(r))
        return serve_malformed("package", err);
    serve_needs_package(r);
    return 0;
}

/* Asks for the package if it is not here yet. */
static int serve_create_run(struct request *r, struct site_new *run, struct act_error *err)
{
    const json_t *package = json_object_get(r->frame.head, "package");
    ACT_AUTOFREE char *path = package ? here_package_path(r->site, codec_json_str(package, "sha256", "")) : NULL;
    ACT_AUTOFREE char *dir = site_run_dir(r->site, run->spec->id);
    bool existed = run_id_valid(run->spec->id) && access(dir, F_OK) == 0;
    int rc = 0;

    if (package && !serve_names_package(r))
        return serve_malformed("package", err);
    run->package = path;
    if (!existed && !serve_needs_package(r))
        rc = here_create_run(r->site, run, NULL, &existed, err);
    json_object_set_new(r->response, "existed", json_boolean(existed));
    return rc;
}

/* Takes the rows [name, text] of a request, as new strings. */
static int serve_files_of(const struct request *r, struct act_strv *names, struct act_strv *texts,
                          struct act_error *err)
{
    const json_t *row;
    size_t i;

    json_array_foreach(json_object_get(r->frame.head, "files"), i, row)
    {
        char *name = codec_json_bytes_get(json_array_get(row, 0)), *text = codec_json_bytes_get(json_array_get(row, 1));
        act_strv_take(names, name ? name : act_strdup(""));
        act_strv_take(texts, text ? text : act_strdup(""));
        if (!text || !act_path_is_safe(names->v[i], strlen(names->v[i])) || strchr(names->v[i], '/'))
            return serve_malformed("files", err);
    }
    return 0;
}

static int serve_create(struct request *r, struct act_error *err)
{
    ACT_AUTO(run_spec) spec = {0};
    ACT_AUTO(act_strv) names = {0};
    ACT_AUTO(act_strv) texts = {0};
    int rc = run_spec_from_json(json_object_get(r->frame.head, "spec"), &spec, err);

    if (rc == 0)
        run_secrets_from_json(&spec, json_object_get(r->frame.head, "secrets"));
    if (rc == 0)
        rc = serve_files_of(r, &names, &texts, err);
    ACT_AUTOFREE struct site_text *files = act_calloc(names.n + 1, sizeof(*files));
    for (size_t i = 0; i < names.n; i++)
        files[i] = (struct site_text){names.v[i], texts.v[i]};
    if (rc == 0)
        rc = serve_create_run(r, &(struct site_new){.spec = &spec, .files = files, .n_files = names.n}, err);
    for (size_t i = 0; i < texts.n; i++) /* the access to stores has keys */
        act_wipe(&texts.v[i]);
    return rc;
}

static int serve_remove(struct request *r, struct act_error *err)
{
    return here_remove_run(r->site, serve_text_of(r, "id"), err);
}

static int serve_clear(struct request *r, struct act_error *err)
{
    struct site_left left;
    int rc = here_clear(r->site, json_is_true(json_object_get(r->frame.head, "dry_run")), &left, err);

    json_object_set_new(r->response, "n", json_integer((json_int_t)left.n));
    json_object_set_new(r->response, "bytes", json_integer((json_int_t)left.bytes));
    return rc;
}

/* Says which of the programs of an agent are not here. */
static int serve_agent(struct request *r, struct act_error *err)
{
    static const char *const names[] = {SITE_ACT, SITE_AGENT};
    const json_t *programs = json_object_get(r->frame.head, "programs");
    const char *hash = serve_text_of(r, "hash");
    json_t *missing = json_array();

    json_object_set_new(r->response, "missing", missing);
    if (!act_is_hex(hash, SITE_AGENT_HEX))
        return serve_malformed("hash", err);
    ACT_AUTOFREE char *dir = site_agent_dir(r->site, hash);
    ACT_AUTOFREE char *agent = act_path_join(dir, SITE_AGENT);
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        ACT_AUTOFREE char *path = act_path_join(dir, names[i]);
        int64_t size = codec_json_int(programs, names[i], -1);
        if (size >= 0 && !here_is_there(path, size))
            json_array_append_new(missing, json_string(names[i]));
    }
    json_object_set_new(r->response, "path", codec_json_bytes_new(agent));
    return 0;
}

/* ---- files that are brought ---- */

/* Returns where an uploaded file belongs, a new string; NULL: no such file is allowed. */
static char *path_of_request(const struct request *r, mode_t *out_mode)
{
    const char *program = serve_text_of(r, "program"), *hash = serve_text_of(r, "hash"),
               *sha256 = serve_text_of(r, "sha256");
    const bool known = act_streq(program, SITE_AGENT) || act_streq(program, SITE_ACT);

    *out_mode = known ? 0700 : 0600;
    if (!act_is_hex(sha256, ACT_SHA256_HEX - 1) || (*program && !known) || (known && !act_is_hex(hash, SITE_AGENT_HEX)))
        return NULL;
    if (!known)
        return here_package_path(r->site, sha256);
    ACT_AUTOFREE char *dir = site_agent_dir(r->site, hash);
    return act_path_join(dir, program);
}

/* A file that comes. */
struct receiving {
    int fd; /* -1: it cannot be written */
    const char *path;
    struct act_sha256 hash;
    int rc;
};

static void receiving_take(struct receiving *to, const char *data, size_t len, struct act_error *err)
{
    act_sha256_add(&to->hash, data, len);
    if (to->fd >= 0 && to->rc == 0 && act_write_all(to->fd, data, len) < 0)
        to->rc = act_error_errno(err, errno, "cannot write '%s'", to->path);
}

/* Reads what follows the request, all of it even if it cannot be written, because the next request comes after it. */
static int serve_receive_rest(struct request *r, struct receiving *to, int64_t bytes, struct act_error *err)
{
    ACT_AUTOFREE char *chunk = act_alloc(CHANNEL_BUFFER);

    while (bytes > 0) {
        size_t got = 0, want = bytes < CHANNEL_BUFFER ? (size_t)bytes : CHANNEL_BUFFER;
        r->channel_rc = channel_read_some(r->channel, chunk, want, &got, err);
        if (r->channel_rc < 0)
            return r->channel_rc;
        bytes -= (int64_t)got;
        receiving_take(to, chunk, got, err);
    }
    return 0;
}

/* A program is a part of the request, which may be compressed; a package, which is compressed, follows it. */
static int serve_receive(struct request *r, int fd, const char *path, int64_t bytes, struct act_error *err)
{
    struct receiving to = {.fd = fd, .path = path};
    char sha256[ACT_SHA256_HEX];
    int rc = 0;

    act_sha256_init(&to.hash);
    if (r->frame.n_parts > 0)
        receiving_take(&to, part_text(r, 0), r->frame.parts[0].len, err);
    else
        rc = serve_receive_rest(r, &to, bytes, err);
    act_sha256_done(&to.hash, sha256);
    rc = rc < 0 ? rc : to.rc;
    if (rc == 0 && !act_streq(sha256, serve_text_of(r, "sha256")))
        rc = act_error_set(err, ACT_TEMPORARY, "'%s' did not arrive as it was sent", path);
    return rc;
}

static int receive_file(struct request *r, const char *path, mode_t mode, int64_t bytes, struct act_error *err)
{
    struct act_error why;
    struct here_filling f;
    int rc = here_fill(r->site, act_path_basename(path), &f, err), fd = -1;

    if (rc == 0) {
        fd = open(f.path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode);
        if (fd < 0)
            rc = act_error_errno(err, errno, "cannot write '%s'", f.path);
    }
    int received = serve_receive(r, fd, path, bytes, rc < 0 ? &why : err);
    rc = rc < 0 ? rc : received;
    if (fd >= 0 && fsync(fd) < 0 && rc == 0)
        rc = act_error_errno(err, errno, "cannot write '%s'", path);
    if (fd >= 0 && close(fd) < 0 && rc == 0)
        rc = act_error_errno(err, errno, "cannot write '%s'", path);
    return here_publish(&f, path, rc, err);
}

static int serve_put(struct request *r, struct act_error *err)
{
    const int64_t bytes = codec_json_int(r->frame.head, "bytes", -1);
    mode_t mode;
    ACT_AUTOFREE char *path = path_of_request(r, &mode);

    if (bytes < 0 || !path) /* it is unknown where the next request begins */
        return r->channel_rc = serve_malformed("bytes", err);
    return receive_file(r, path, mode, bytes, err);
}

static int serve_parts(struct request *r, struct act_error *err)
{
    bool whole;
    int rc = here_put_together(r->site, r->channel, r->frame.head, &whole, &r->channel_rc, err);

    json_object_set_new(r->response, "whole", json_boolean(whole));
    return rc;
}

/* ---- the loop ---- */

static const struct {
    const char *name;
    int (*serve)(struct request *r, struct act_error *err);
} operations[] = {
    {"agent", serve_agent}, {"become", serve_become}, {"clear", serve_clear}, {"create", serve_create},
    {"files", serve_files}, {"lacks", serve_lacks},   {"list", serve_list},   {"news", serve_news},
    {"parts", serve_parts}, {"put", serve_put},       {"read", serve_read},   {"remove", serve_remove},
    {"run", serve_run},     {"states", serve_states}, {"text", serve_text},   {"write", serve_write},
};

static int find_and_serve(struct request *r, struct act_error *err)
{
    const char *name = serve_text_of(r, "op");

    for (size_t i = 0; i < sizeof(operations) / sizeof(operations[0]); i++)
        if (act_streq(name, operations[i].name))
            return operations[i].serve(r, err);
    return act_error_set(err, ACT_USAGE, "there is no request '%s'", name);
}

/* Returns only if it fails, which ends the connection. */
static int serve_exec(const struct act_strv *argv)
{
    execv(argv->v[0], argv->v);
    fprintf(stderr, "cannot start '%s': %s\n", argv->v[0], strerrordesc_np(errno));
    return -ACT_FAIL;
}

/* Answers one request. A negative result: the connection cannot be used any more. */
static int serve_request(struct site *site, struct channel *channel)
{
    struct request r = {.site = site, .channel = channel};
    struct act_error err;

    r.channel_rc = frame_read(channel, SITE_REQUEST_MAX_BYTES, &r.frame, &err);
    if (r.channel_rc == 0) {
        r.response = json_object();
        serve_answer(&r, find_and_serve(&r, &err), &err);
        json_decref(r.response);
    }
    frame_release(&r.frame);
    if (r.channel_rc == 0 && r.becomes.n > 0)
        r.channel_rc = serve_exec(&r.becomes);
    act_strv_release(&r.becomes);
    return r.channel_rc;
}

/* Takes the folder from ACT_SITE_STORE: the size of the program, the length of the folder, the folder and, behind a
 * blank, what the program is told, or nothing. Returns it, a new string; NULL: there is none. */
static char *serve_wanted_store(const char *wanted, int64_t *out_size, const char **out_first)
{
    char *at = NULL, *folder = NULL;

    *out_size = wanted ? strtoll(wanted, &at, 10) : 0;
    size_t len = at && *at == ' ' ? (size_t)strtoull(at, &folder, 10) : 0;
    if (!folder || *folder++ != ' ' || len == 0 || strnlen(folder, len) < len)
        return NULL;
    *out_first = folder[len] == ' ' ? folder + len + 1 : NULL;
    return act_strndup(folder, len);
}

/* Does so before anything is asked, where the connection is for nothing else. Returns 0 if the program is not there. */
static int serve_store(const struct site *site, struct channel *channel)
{
    const char *first;
    int64_t size;
    ACT_AUTOFREE char *folder = serve_wanted_store(getenv("ACT_SITE_STORE"), &size, &first);
    ACT_AUTO(act_strv) argv = {0};
    struct act_error err;

    if (!folder || serve_store_words(site, folder, &argv, &err) < 0 || !here_is_there(argv.v[0], size))
        return 0;
    if (first)
        act_strv_push(&argv, first);
    int rc = channel_write(channel, SITE_BANNER SITE_STORE "\n", strlen(SITE_BANNER SITE_STORE "\n"), &err);
    return rc < 0 ? rc : serve_exec(&argv);
}

/* Says before anything is asked where the root is. */
static int serve_greet(struct site *site, struct channel *channel)
{
    struct request r = {.site = site, .channel = channel};
    struct act_error err;

    r.channel_rc = channel_write(channel, SITE_BANNER "ready\n", strlen(SITE_BANNER "ready\n"), &err);
    r.response = json_pack("{s:o, s:b}", "root", codec_json_bytes_new(site->root), "login_shell",
                           getenv("ACT_SITE_LOGIN") != NULL);
    if (r.channel_rc == 0)
        serve_answer(&r, 0, NULL);
    json_decref(r.response);
    return r.channel_rc;
}

int site_serve(const char *root, int in_fd, int out_fd)
{
    ACT_AUTOFREE struct channel *channel = act_calloc(1, sizeof(*channel));
    struct site site = {.root = here_root(root)};

    signal(SIGPIPE, SIG_IGN); /* a client that is gone ends the input, too */
    channel->in_fd = in_fd;
    channel->out_fd = out_fd;
    int rc = serve_store(&site, channel);
    if (rc == 0)
        rc = serve_greet(&site, channel);
    while (rc == 0)
        rc = serve_request(&site, channel);
    free(site.root);
    told_free(site.told);
    return rc == -ACT_TEMPORARY ? 0 : -rc;
}
