/* group.c - a run over several machines: which of them, whether they reach one another, and what is done on all of them
 * at once. On each the run has a folder of its own, and its agent there knows the others (run/machines.h). The first
 * one, by the order of the cluster's list, leads. */
#include <string.h>

#include "base/hash.h"
#include "base/log.h"
#include "codec/fields.h"
#include "codec/json.h"
#include "platform/ssh/ssh_internal.h"
#include "run/machines.h"

/* ---- all of a run's machines at once ---- */

struct group_each {
    size_t skip;
    int (*ask)(void *arg, size_t i, struct act_error *err);
    void *arg;
    int *rc;
    struct act_error *err;
};

static void group_ask_one(void *arg, size_t i)
{
    const struct group_each *e = arg;

    i += e->skip;
    e->rc[i] = e->ask(e->arg, i, &e->err[i]);
}

/* Calls ask, in a thread for each, with the numbers of the machines but the first skip ones. Returns the first failure,
 * which names its machine. */
static int group_each(const struct hosts_run *run, size_t skip, int (*ask)(void *, size_t, struct act_error *),
                      void *arg, struct act_error *err)
{
    ACT_AUTOFREE int *rc = act_calloc(run->n, sizeof(*rc));
    ACT_AUTOFREE struct act_error *errs = act_calloc(run->n, sizeof(*errs));
    struct group_each e = {.skip = skip, .ask = ask, .arg = arg, .rc = rc, .err = errs};

    platform_at_once(run->n - skip, group_ask_one, &e);
    for (size_t i = skip; i < run->n; i++)
        if (rc[i] < 0) {
            *err = errs[i];
            return rc[i];
        }
    return 0;
}

/* ---- which machines ---- */

bool hosts_choose_group(const struct hosts *s, const struct run_spec *spec, struct hosts_run *out)
{
    ACT_AUTOFREE bool *chosen = act_calloc(s->n, sizeof(*chosen));
    int n = 0;

    for (int round = 0; round < 2; round++) /* first those that have room */
        for (size_t i = 0; i < s->n && n < spec->nodes; i++) {
            struct hosts_host *h = hosts_in_turn(s, i);
            if (chosen[h - s->v] || !hosts_fits(s, h, spec) || (round == 0 && !hosts_has_room(h, spec)))
                continue;
            chosen[h - s->v] = true;
            n++;
        }
    out->n = 0;
    for (size_t i = 0; n == spec->nodes && i < s->n; i++)
        if (chosen[i])
            ACT_PUSH(out->v, out->n, &s->v[i]);
    return n == spec->nodes;
}

/* ---- whether they reach one another ---- */

struct group_meeting {
    struct hosts_run *run;
    const char *verb;
    struct act_strv targets, signs;
    json_t **said; /* by each of them, about the verb */
};

static json_t *meeting_request(const struct group_meeting *m, size_t i)
{
    if (strcmp(m->verb, "listen") == 0)
        return json_pack("{s:i}", "n", (int)m->run->n);
    return json_pack("{s:i, s:o, s:o}", "index", (int)i, "targets", codec_json_strv_new(&m->targets), "signs",
                     codec_json_strv_new(&m->signs));
}

/* Fits group_each(). */
static int meeting_ask(void *arg, size_t i, struct act_error *err)
{
    struct group_meeting *m = arg;
    struct hosts_host *h = m->run->v[i];
    CODEC_AUTOJSON json_t *request = meeting_request(m, i);
    ACT_AUTOWIPE char *input = codec_json_line(request);
    ACT_AUTO(site_result) result = {0};
    ACT_AUTOFREE char *agent = NULL;
    int rc = site_agent(h->site, &agent, err);

    if (rc < 0)
        return rc;
    const char *const argv[] = {agent, "meet", m->verb, site_root(h->site), NULL};
    rc = site_run(h->site, &(struct site_command){.argv = argv, .input = input, .input_len = strlen(input)}, &result,
                  err);
    if (rc == 0 && result.status != 0)
        rc = act_error_set(err, ACT_FAIL, "%s", result.err ? result.err : "");
    if (rc == 0)
        rc = codec_json_parse(result.out, result.out_len, "the response", &m->said[i], err);
    return rc < 0 ? act_error_prefix(err, "'%s' cannot be asked about the other machines", h->login) : 0;
}

static int meeting_ask_all(struct group_meeting *m, const char *verb, struct act_error *err)
{
    m->verb = verb;
    for (size_t i = 0; i < m->run->n; i++) {
        json_decref(m->said[i]);
        m->said[i] = NULL;
    }
    return group_each(m->run, 0, meeting_ask, m, err);
}

static void meeting_note_listeners(struct group_meeting *m)
{
    struct run_machines *machines = &m->run->machines;

    machines->port = codec_json_int_in(m->said[0], "port", 1, UINT16_MAX, 1);
    for (size_t i = 0; i < m->run->n; i++) {
        act_strv_push(&machines->names, m->run->v[i]->login);
        act_strv_push(&machines->order, codec_json_str(m->said[i], "order", ""));
        act_strv_push(&m->targets, codec_json_str(m->said[i], "target", ""));
        act_strv_push(&m->signs, codec_json_str(m->said[i], "sign", ""));
    }
}

static int meeting_refuse_shared(const struct group_meeting *m, size_t a, size_t b, struct act_error *err)
{
    act_error_set(err, ACT_CONFIG, "'%s' and '%s' have '%s' in common", m->run->v[a]->login, m->run->v[b]->login,
                  site_root(m->run->v[a]->site));
    return act_error_hint(err, "a run over both needs a folder of each machine's own: set 'ssh.root' to one, such as "
                               "/var/tmp/me/act");
}

/* Finds the address at which all others reach machine i. */
static int meeting_find_address(struct group_meeting *m, size_t i, struct act_error *err)
{
    const char *address = NULL;
    size_t who = 0;

    for (size_t k = 0; k < m->run->n; k++) {
        const char *reached = json_string_value(json_array_get(json_object_get(m->said[k], "reached"), i));
        const char *why = json_string_value(json_array_get(json_object_get(m->said[k], "why"), i));
        if (k == i)
            continue;
        if (json_is_true(json_array_get(json_object_get(m->said[k], "shared"), i)))
            return meeting_refuse_shared(m, k, i, err);
        if (!reached) {
            act_error_set(err, ACT_NO_CAPACITY, "'%s' cannot reach '%s': %s", m->run->v[k]->login, m->run->v[i]->login,
                          why ? why : "");
            return act_error_hint(err, "the machines of one run reach one another by TCP; or use fewer (-n)");
        }
        if (address && !act_streq(address, reached)) {
            act_error_set(err, ACT_NO_CAPACITY, "'%s' reaches '%s' at %s, and '%s' reaches it at %s only",
                          m->run->v[who]->login, m->run->v[i]->login, address, m->run->v[k]->login, reached);
            return act_error_hint(err, "the machines of one run need one address each that all others reach");
        }
        address = reached;
        who = k;
    }
    act_strv_push(&m->run->machines.address, address);
    return 0;
}

/* mpirun takes the words by which its daemons are started apart at blanks, and knows no quotes. */
static int group_check_roots(const struct hosts_run *run, struct act_error *err)
{
    for (size_t i = 0; i < run->n; i++)
        if (strpbrk(site_root(run->v[i]->site), " \t")) {
            act_error_set(err, ACT_CONFIG, "'%s' keeps its runs in '%s', a path with a blank", run->v[i]->login,
                          site_root(run->v[i]->site));
            return act_error_hint(err, "a run over several machines needs one without: set 'ssh.root', such as to "
                                       "/var/tmp/me/act");
        }
    return 0;
}

int hosts_meet(struct hosts_run *run, struct act_error *err)
{
    enum { TOKEN_BYTES = 32 };
    struct group_meeting m = {.run = run, .said = act_calloc(run->n, sizeof(*m.said))};
    uint8_t token[TOKEN_BYTES];
    int rc = group_check_roots(run, err);

    if (rc == 0)
        rc = meeting_ask_all(&m, "listen", err);

    run_machines_release(&run->machines);
    run->machines.token = act_alloc(2 * TOKEN_BYTES + 1);
    act_random(token, sizeof(token));
    act_hex(token, sizeof(token), run->machines.token);
    if (rc == 0) {
        meeting_note_listeners(&m);
        rc = meeting_ask_all(&m, "reach", err);
    }
    for (size_t i = 0; rc == 0 && i < run->n; i++)
        rc = meeting_find_address(&m, i, err);
    for (size_t i = 0; i < run->n; i++)
        json_decref(m.said[i]);
    free(m.said);
    act_strv_release(&m.targets);
    act_strv_release(&m.signs);
    return rc;
}

json_t *hosts_machines_of(const struct hosts_run *run, size_t i)
{
    struct run_machines mine = run->machines;

    mine.index = (int)i;
    return run->n > 1 ? fields_to_json(&run_machines_fields, &mine) : NULL;
}

/* ---- what is done on all of them ---- */

struct group_work {
    struct hosts *s;
    const struct hosts_run *run;
    const struct platform_submission *submission;
};

static int group_bring_one(void *arg, size_t i, struct act_error *err)
{
    struct group_work *w = arg;

    return hosts_bring(w->s, w->run->v[i], w->submission, err);
}

static int group_start_one(void *arg, size_t i, struct act_error *err)
{
    struct group_work *w = arg;

    return hosts_start(w->s, w->run, i, w->submission, err);
}

/* All have the package before the first one waits for the others, which it does for a while only; and the first one is
 * there before the others look for it. */
int hosts_start_all(struct hosts *s, const struct hosts_run *run, const struct platform_submission *submission,
                    struct act_error *err)
{
    struct group_work w = {.s = s, .run = run, .submission = submission};
    int rc = run->n > 1 ? group_each(run, 0, group_bring_one, &w, err) : 0;

    if (rc < 0)
        return rc;
    rc = hosts_start(s, run, 0, submission, err);
    if (rc == 0 && run->n > 1)
        rc = group_each(run, 1, group_start_one, &w, err);
    if (rc < 0 && run->n > 1)
        hosts_abort_run(s, run, submission->spec->id);
    return rc;
}
