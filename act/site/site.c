/* site.c - the public functions: here, or through the wire. */
#include "site/site.h"

#include <string.h>

#include "proc/proc.h"
#include "site/exchange.h"
#include "site/site_internal.h"
#include "site/ssh.h"

int site_open(const struct site_options *options, struct site **out, struct act_error *err)
{
    const char *root = options->root ? options->root : "~/.act";
    struct site *site = act_calloc(1, sizeof(*site));
    int rc = 0;

    *out = NULL;
    site->login = act_strdup(options->login);
    if (options->login)
        rc = wire_open(&(struct site_options){.login = options->login,
                                              .root = root,
                                              .only_look = options->only_look,
                                              .store = options->store,
                                              .store_first = options->store_first,
                                              .never_asks = options->never_asks},
                       site, err);
    else
        site->root = here_root(root);
    if (rc < 0)
        site_free(site);
    else
        *out = site;
    return rc;
}

void site_free(struct site *site)
{
    if (!site)
        return;
    wire_free(site->wire);
    free(site->root);
    free(site->login);
    free(site);
}

const char *site_root(const struct site *site)
{
    return site->root;
}

bool site_is_far(const struct site *site)
{
    return site->wire;
}

bool site_ahead(struct site *site)
{
    if (site->wire && site->wire->ahead++ == 0)
        site->wire->session++;
    return site->wire;
}

void site_ahead_end(struct site *site)
{
    if (site->wire)
        site->wire->ahead--;
}

void site_ahead_drop(struct site *site)
{
    if (site->wire)
        wire_drop_ahead(site->wire);
}

int site_do_all(struct site *site, size_t n, int (*act)(void *arg, size_t i, struct act_error *err), void *arg,
                struct act_error *err)
{
    struct act_error ignored;
    size_t asked = 0;
    int rc = 0;

    for (size_t i = 0; i < n && rc == 0; i++) {
        if (asked < n && asked < i + SITE_AHEAD_MOST && site_ahead(site)) {
            for (; asked < n && asked < i + SITE_AHEAD_MOST; asked++)
                (void)!act(arg, asked, &ignored); /* what became of it is not known yet */
            site_ahead_end(site);
        }
        rc = act(arg, i, err);
    }
    site_ahead_drop(site);
    return rc;
}

bool site_is_bare(const struct site *site)
{
    return site->wire && site->wire->ssh.absent;
}

bool site_is_same(const struct site *a, const struct site *b)
{
    return act_streq(a->root, b->root) && (a->login == b->login || act_streq(a->login, b->login));
}

char *site_run_dir(const struct site *site, const char *id)
{
    return act_sprintf("%s/runs/%s", site->root, id);
}

int site_agent(struct site *site, char **out, struct act_error *err)
{
    return site->wire ? wire_agent(site, out, err) : here_agent(site, out, err);
}

int site_find_agent(struct site *site, char **out, bool *out_there, struct act_error *err)
{
    return site->wire ? wire_find_agent(site, out, out_there, err) : here_find_agent(site, out, out_there, err);
}

int site_program(struct site *site, char **out, struct act_error *err)
{
    return site->wire ? wire_program(site, out, err) : proc_find_sibling(SITE_ACT, out, err);
}

int site_become(struct site *site, const char *folder, int *out_fd, struct act_buf *out_said, bool *out_told,
                struct act_error *err)
{
    *out_told = site->wire && site->wire->ssh.is_store && site->wire->ssh.store_first;
    return site->wire ? wire_become(site, folder, out_fd, out_said, err)
                      : act_error_set(err, ACT_FAIL, "there is no connection to this machine");
}

int site_explain_loss(const struct site *site, struct act_error *err)
{
    return site->wire ? ssh_explain_loss(&site->wire->ssh, err) : -(int)err->code;
}

int site_bring_package(struct site *site, const char *path, const char *sha256, struct act_error *err)
{
    return site->wire ? wire_bring_package(site, path, sha256, err) : here_keep_package(site, path, sha256, err);
}

int site_run(struct site *site, const struct site_command *command, struct site_result *result, struct act_error *err)
{
    struct site_command full = *command;

    if (!full.timeout_s)
        full.timeout_s = SITE_RUN_TIMEOUT_S;
    if (!full.max_bytes)
        full.max_bytes = SITE_RUN_MAX_BYTES;
    if (site->wire)
        return wire_run(site, &full, result, err);
    *result = (struct site_result){0};
    int rc = full.package ? here_keep_package(site, full.package->path, full.package->sha256, err) : 0;
    return rc < 0 ? rc : here_run(site, &full, result, err);
}

void site_result_release(struct site_result *result)
{
    free(result->out);
    free(result->err);
    *result = (struct site_result){0};
}

int site_create_run(struct site *site, const struct site_new *run, bool *out_existed, struct act_error *err)
{
    return site->wire ? wire_create_run(site, run, out_existed, err)
                      : here_create_run(site, run, NULL, out_existed, err);
}

int site_create_locked_run(struct site *site, const struct run_spec *spec, const char *package, int *out_lock_fd,
                           bool *out_existed, struct act_error *err)
{
    const struct site_new run = {.spec = spec, .package = package};

    return here_create_run(site, &run, out_lock_fd, out_existed, err);
}

int site_remove_run(struct site *site, const char *id, struct act_error *err)
{
    return site->wire ? wire_remove_run(site, id, err) : here_remove_run(site, id, err);
}

int site_clear(struct site *site, bool dry_run, struct site_left *out, struct act_error *err)
{
    return site->wire ? wire_clear(site, dry_run, out, err) : here_clear(site, dry_run, out, err);
}

void site_read_parts(struct site *site, const char *id, struct site_part *parts, size_t n)
{
    if (site->wire)
        wire_read_parts(site, id, parts, n);
    for (size_t i = 0; i < n && !site->wire; i++)
        parts[i].rc = here_read(site, id, parts[i].name, parts[i].offset, parts[i].data, parts[i].len, &parts[i].got,
                                &parts[i].error);
}

int site_read(struct site *site, const char *id, const char *name, uint64_t offset, void *data, size_t len,
              size_t *out_got, struct act_error *err)
{
    struct site_part part = {.name = name, .offset = offset, .data = data, .len = len};

    site_read_parts(site, id, &part, 1);
    *out_got = part.got;
    if (part.rc < 0 && err)
        *err = part.error;
    return part.rc;
}

int site_read_text(struct site *site, const char *id, const char *name, char **out, struct act_error *err)
{
    return site->wire ? wire_read_text(site, id, name, out, err) : here_read_text(site, id, name, out, err);
}

int site_write(struct site *site, const char *id, const char *name, const char *text, bool *out_existed,
               struct act_error *err)
{
    return site->wire ? wire_write(site, id, name, text, out_existed, err)
                      : here_write(site, id, name, text, out_existed, err);
}

int site_files(struct site *site, const char *id, const char *const *folders, size_t n_folders, size_t n_with_ends,
               struct site_files *out, struct act_error *err)
{
    return site->wire ? wire_files(site, id, folders, n_folders, n_with_ends, out, err)
                      : here_files(site, id, folders, n_folders, out, err);
}

void site_files_release(struct site_files *files)
{
    for (size_t i = 0; i < files->n; i++) {
        free(files->v[i].name);
        free(files->v[i].end);
    }
    free(files->v);
    *files = (struct site_files){0};
}

int site_states(struct site *site, const char *const *ids, size_t n, struct site_state *out, struct act_error *err)
{
    return site->wire ? wire_states(site, ids, n, out, err) : here_states(site, ids, n, out, err);
}

void site_states_release(struct site_state *states, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        free(states[i].job);
        states[i].job = NULL;
    }
}

int site_list(struct site *site, struct act_strv *out_ids, struct act_error *err)
{
    return site->wire ? wire_list(site, out_ids, err) : here_list(site, out_ids, err);
}

char *site_sharing_text(const struct site *site)
{
    return site->wire ? ssh_sharing_text(site->wire->ssh.sharing) : NULL;
}

void site_shell_words(const struct site *site, const struct act_strv *argv, struct act_strv *out)
{
    if (site->wire)
        ssh_shell_words(site->login, 0, wire_needs_login_shell(site->wire), argv, out);
    else
        act_strv_copy(out, argv->v, argv->n);
}

void site_ssh_words(const char *login, int port, const struct act_strv *argv, struct act_strv *out)
{
    ssh_shell_words(login, port, false, argv, out);
}
