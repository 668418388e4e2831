/* call.c - asking the machines. A request is a program that runs there, "act __host" (host.c), over the connection of
 * the site. */
#include <string.h>

#include "auth/services.h"
#include "base/log.h"
#include "codec/fields.h"
#include "codec/json.h"
#include "platform/ssh/ssh_internal.h"

/* ---- one machine ---- */

/* Connects if necessary. A machine for which ssh wants to ask the user is not away: it may be asked for at once. */
static int hosts_connect(struct hosts *s, struct hosts_host *h, bool may_ask, struct act_error *err)
{
    const struct site_options options = {
        .login = h->login, .root = s->root, .only_look = s->only_look, .never_asks = !may_ask};

    if (h->site)
        return 0;
    int rc = services_check_away(s->base.services, h->login, err);
    if (rc < 0)
        return rc;
    rc = site_open(&options, &h->site, err);
    if (rc < 0 && rc != -ACT_DENIED)
        services_note_away(s->base.services, h->login, err);
    return rc;
}

int hosts_site(struct hosts *s, struct hosts_host *h, struct site **out, struct act_error *err)
{
    int rc = hosts_connect(s, h, true, err);

    *out = h->site;
    return rc;
}

int hosts_check_response(const struct hosts_host *h, const json_t *response, struct act_error *err)
{
    int code = codec_json_int_in(response, "code", ACT_FAIL, ACT_TERMINATED, ACT_FAIL);
    ACT_AUTOFREE char *text = codec_json_bytes_get(json_object_get(response, "error"));

    return text ? act_error_set(err, (enum act_code)code, "'%s': %s", h->login, text) : 0;
}

static int hosts_read_response(const struct hosts_host *h, const struct site_result *result, json_t **out,
                               struct act_error *err)
{
    const char *said = result->err ? result->err : "";
    struct act_error ignored;

    if (!result->out || codec_json_parse(result->out, result->out_len, "the response", out, &ignored) < 0 ||
        !json_is_object(*out))
        return act_error_set(err, ACT_FAIL, "the program that ACT keeps on '%s' failed (exit status %d): %.*s",
                             h->login, result->status, (int)strcspn(said, "\n"), *said ? said : "it said nothing");
    return hosts_check_response(h, *out, err);
}

/* Runs a command; brings the program when it is not there. */
static int hosts_run(struct site *site, const struct site_command *command, struct site_result *result,
                     struct act_error *err)
{
    ACT_AUTOFREE char *agent = NULL;
    int rc = site_run(site, command, result, err);

    if (rc != -ACT_NOT_FOUND)
        return rc;
    site_result_release(result);
    rc = site_agent(site, &agent, err);
    return rc < 0 ? rc : site_run(site, command, result, err);
}

int hosts_call(struct hosts *s, struct hosts_host *h, const struct hosts_request *asked, json_t **out,
               struct act_error *err)
{
    CODEC_AUTOJSON json_t *request = asked->in;
    ACT_AUTOWIPE char *input = codec_json_line(request);
    ACT_AUTO(site_result) result = {0};
    ACT_AUTOFREE char *program = NULL;
    struct site *site;
    int rc = hosts_site(s, h, &site, err);

    *out = NULL;
    if (rc == 0)
        rc = site_program(site, &program, err);
    if (rc < 0)
        return rc;
    const char *const argv[] = {program, "__host", asked->verb, site_root(site), NULL};
    const struct site_command command = {.argv = argv,
                                         .input = input,
                                         .input_len = strlen(input),
                                         .timeout_s = asked->timeout_s,
                                         .begins_runs = true,
                                         .package = asked->package};
    rc = hosts_run(site, &command, &result, err);
    return rc < 0 ? rc : hosts_read_response(h, &result, out, err);
}

/* ---- all of them ---- */

struct each {
    struct hosts *s;
    int (*ask)(struct hosts *s, struct hosts_host *h, void *arg, struct act_error *err);
    void *arg;
};

static void each_ask(const struct each *e, struct hosts_host *h, bool may_ask)
{
    h->rc = hosts_connect(e->s, h, may_ask, &h->err);
    if (h->rc == 0)
        h->rc = e->ask(e->s, h, e->arg, &h->err);
}

static void each_one(void *arg, size_t i)
{
    const struct each *e = arg;

    each_ask(e, &e->s->v[i], e->s->n == 1);
}

/* Questions of ssh (a passphrase, a second factor) come one after the other, when all others have answered. */
void hosts_each(struct hosts *s, int (*ask)(struct hosts *s, struct hosts_host *h, void *arg, struct act_error *err),
                void *arg)
{
    struct each e = {.s = s, .ask = ask, .arg = arg};

    platform_at_once(s->n, each_one, &e);
    for (size_t i = 0; s->n > 1 && site_may_ask() && i < s->n; i++)
        if (s->v[i].rc == -ACT_DENIED && !s->v[i].site)
            each_ask(&e, &s->v[i], true);
}

int hosts_warn(struct hosts *s, struct act_error *err)
{
    size_t n_failed = 0;

    for (size_t i = 0; i < s->n; i++)
        n_failed += s->v[i].rc < 0;
    if (n_failed == s->n) {
        *err = s->v[0].err;
        return s->n == 1 ? s->v[0].rc : act_error_hint(err, "none of the %zu machines can be asked", s->n);
    }
    for (size_t i = 0; i < s->n; i++)
        if (s->v[i].rc < 0 && !s->v[i].is_told) {
            s->v[i].is_told = true;
            act_warn("'%s' is left out: %s", s->v[i].login, act_error_text(&s->v[i].err));
        }
    return 0;
}

static int hosts_ask_facts(struct hosts *s, struct hosts_host *h, void *arg, struct act_error *err)
{
    CODEC_AUTOJSON json_t *out = NULL;
    int rc = hosts_call(s, h, &(struct hosts_request){.verb = "look", .in = json_object()}, &out, err);

    (void)arg;
    if (rc == 0)
        rc = fields_from_json(&hosts_facts_fields, out, &h->facts, err);
    return rc;
}

/* Refuses a machine under two names: its GPUs would count twice, and a run over both would wait for itself. */
static int hosts_check_places(const struct hosts *s, struct act_error *err)
{
    for (size_t i = 0; i < s->n; i++)
        for (size_t k = 0; k < i && s->v[i].rc == 0 && s->v[i].facts.place; k++)
            if (s->v[k].rc == 0 && s->v[k].facts.place == s->v[i].facts.place)
                return act_error_set(err, ACT_CONFIG, "'%s' and '%s' in ssh.hosts are the same machine: name it once",
                                     s->v[k].login, s->v[i].login);
    return 0;
}

int hosts_look(struct hosts *s, bool anew, struct act_error *err)
{
    if (!s->is_looked_at || anew)
        hosts_each(s, hosts_ask_facts, NULL);
    s->is_looked_at = true;
    int rc = hosts_warn(s, err);
    return rc < 0 ? rc : hosts_check_places(s, err);
}
