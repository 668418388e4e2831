/* choose.c - which machines a run gets: what they have together, whether a run fits on them, and on which of them it
 * goes. */
#include <string.h>

#include "base/log.h"
#include "base/text.h"
#include "codec/json.h"
#include "platform/ssh/ssh_internal.h"

/* ---- limits ---- */

static const char *hosts_unit(bool has_gpus)
{
    return has_gpus ? "GPUs" : "processors";
}

/* Tells whether a machine has GPUs: then those without are for runs that need none. */
static bool hosts_any_gpus(const struct hosts *s)
{
    bool any = false;

    for (size_t i = 0; i < s->n; i++)
        any = any || (s->v[i].rc == 0 && s->v[i].facts.has_gpus);
    return any;
}

/* Counts the slots that runs may take. */
static int hosts_slots(const struct hosts *s, const struct hosts_host *h)
{
    return h->rc < 0 || h->facts.has_gpus != hosts_any_gpus(s) ? 0 : h->facts.slots;
}

/* Returns the machine with most of them, the first of several. */
static const struct hosts_host *hosts_largest(const struct hosts *s)
{
    const struct hosts_host *best = &s->v[0];

    for (size_t i = 1; i < s->n; i++)
        if (hosts_slots(s, &s->v[i]) > hosts_slots(s, best))
            best = &s->v[i];
    return best;
}

/* Counts the slots that each machine has, of those that have any. */
static int hosts_common_slots(const struct hosts *s)
{
    int least = 0;

    for (size_t i = 0; i < s->n; i++) {
        int slots = hosts_slots(s, &s->v[i]);
        if (slots > 0 && (least == 0 || slots < least))
            least = slots;
    }
    return least;
}

/* Counts the machines that have so many slots. */
static int hosts_count_with(const struct hosts *s, int slots)
{
    int n = 0;

    for (size_t i = 0; i < s->n; i++)
        n += hosts_slots(s, &s->v[i]) >= slots;
    return n;
}

/* Says why a run cannot have the slots of all machines: each of its nodes has as many. NULL: it can. */
static const char *hosts_why_not_all(struct hosts *s, int per_node)
{
    struct act_buf text = {0};
    int least = hosts_common_slots(s);

    if (least >= per_node)
        return NULL;
    act_buf_addf(&text, "machines that work on one run have the same number each: ");
    for (size_t i = 0; i < s->n; i++)
        if (hosts_slots(s, &s->v[i]) > 0)
            act_buf_addf(&text, "'%s' has %d, ", s->v[i].login, hosts_slots(s, &s->v[i]));
    act_buf_addf(&text, "and 'gpu_per_node: %d' takes %d of each", least, least);
    free(s->why_not_all);
    s->why_not_all = act_buf_steal(&text);
    return s->why_not_all;
}

int hosts_limits(struct platform *p, struct platform_limits *out, struct act_error *err)
{
    struct hosts *s = hosts_of(p);
    int rc = hosts_look(s, false, err);

    if (rc < 0)
        return rc;
    const struct hosts_host *largest = hosts_largest(s);
    int most = hosts_slots(s, largest), wanted = (int)s->wanted_gpu_per_node;
    bool has_gpus = hosts_any_gpus(s);
    if (s->wanted_gpu_per_node > most)
        return act_error_set(
            err, ACT_NO_CAPACITY,
            "gpu_per_node is %lld, and '%s' has %d %s; set gpu_per_node to at most %d, or leave it out",
            (long long)s->wanted_gpu_per_node, largest->login, most, hosts_unit(has_gpus), most);
    int per_node = wanted > 0 ? wanted : most;
    *out = (struct platform_limits){.gpu_per_node = per_node,
                                    .max_nodes = hosts_count_with(s, per_node),
                                    .why_not_all = hosts_why_not_all(s, per_node),
                                    .num_gpu = !has_gpus    ? 1
                                               : wanted > 0 ? wanted
                                                            : hosts_common_slots(s),
                                    .has_gpus = has_gpus};
    return 0;
}

/* ---- which machine ---- */

/* Machines without mpirun start the processes of a run over several by themselves. */
bool hosts_fits(const struct hosts *s, const struct hosts_host *h, const struct run_spec *spec)
{
    bool enough = spec->gpus_per_node == 0 || hosts_slots(s, h) >= spec->gpus_per_node;

    return h->rc == 0 && enough && (spec->procs_per_node <= 1 || spec->nodes > 1 || h->facts.has_mpirun);
}

/* Says why it fits nowhere. */
static int hosts_refuse(const struct hosts *s, const struct run_spec *spec, struct act_error *err)
{
    const struct hosts_host *largest = hosts_largest(s);
    int most = hosts_slots(s, largest);
    const char *unit = hosts_unit(hosts_any_gpus(s));
    int need = spec->gpus_per_node * spec->nodes;

    if (spec->nodes > 1)
        return act_error_set(err, ACT_NO_CAPACITY,
                             "the run needs %d machines with %d %s each, and there are %d; use at most -n %d",
                             spec->nodes, spec->gpus_per_node, unit, hosts_count_with(s, spec->gpus_per_node), most);
    if (need > most)
        return act_error_set(err, ACT_NO_CAPACITY,
                             "the run needs %d %s, and the largest machine, '%s', has %d; use at most -n %d", need,
                             unit, largest->login, most, most);
    return act_error_set(err, ACT_NOT_FOUND,
                         "mpirun is not on '%s', and a run of %d processes needs it: install Open MPI there (Debian: "
                         "openmpi-bin), or use -n 1",
                         largest->login, spec->procs_per_node);
}

/* Finds the machine where all the runs are that this one needs: what waits for them is there. */
static int hosts_find_needs(struct hosts *s, const struct run_spec *spec, struct hosts_host **out,
                            struct act_error *err)
{
    const struct act_strv *needs = &spec->needs;
    int rc = 0;

    *out = NULL;
    if (spec->nodes > 1 && needs->n)
        return act_error_set(err, ACT_USAGE,
                             "'%s' has not ended, and a run over several machines waits for no other; 'a wait %s && a "
                             "submit ...' waits for it here",
                             needs->v[0], needs->v[0]);
    for (size_t i = 0; i < needs->n && rc == 0; i++) {
        struct hosts_host *h = NULL;
        rc = hosts_find(s, needs->v[i], &h, err);
        if (rc == 0 && *out && *out != h)
            return act_error_set(err, ACT_USAGE,
                                 "'%s' is on '%s' and '%s' on '%s', and a run waits only for those of its machine; 'a "
                                 "wait %s %s && a submit ...' waits for them here",
                                 needs->v[0], (*out)->login, needs->v[i], h->login, needs->v[0], needs->v[i]);
        *out = h;
    }
    if (rc == 0 && *out && hosts_look(s, false, err) == 0 && !hosts_fits(s, *out, spec))
        return act_error_set(err, ACT_NO_CAPACITY,
                             "'%s' is on '%s', on which this run does not fit; 'a wait %s && a submit ...' waits for "
                             "it here, and any machine may have this one then",
                             needs->v[0], (*out)->login, needs->v[0]);
    return rc;
}

int hosts_check(struct platform *p, const struct run_spec *spec, struct act_error *err)
{
    struct hosts *s = hosts_of(p);
    struct hosts_host *only;
    int n = 0, rc = hosts_look(s, false, err);

    if (rc == 0)
        rc = hosts_find_needs(s, spec, &only, err);
    if (rc < 0)
        return rc;
    for (size_t i = 0; i < s->n; i++)
        n += hosts_fits(s, &s->v[i], spec);
    return n >= spec->nodes ? 0 : hosts_refuse(s, spec, err);
}

bool hosts_has_room(const struct hosts_host *h, const struct run_spec *spec)
{
    return spec->gpus_per_node == 0 || (h->facts.queued == 0 && h->facts.idle >= spec->gpus_per_node);
}

/* The order of the configuration may have changed since the machines were opened: hosts_repeat(). */
struct hosts_host *hosts_in_turn(const struct hosts *s, size_t i)
{
    const struct act_strv *logins = &ssh_keys(s->config)->hosts;

    for (size_t k = 0; k < s->n && i < logins->n; k++)
        if (act_streq(s->v[k].login, logins->v[i]))
            return &s->v[k];
    return &s->v[i];
}

/* Returns the first machine that has room, else the one with the shortest queue; NULL: the run fits nowhere. only: the
 * one that it has to be on; NULL: any. */
static struct hosts_host *hosts_choose(const struct hosts *s, const struct run_spec *spec,
                                       const struct hosts_host *only)
{
    struct hosts_host *best = NULL;

    for (size_t i = 0; i < s->n; i++) {
        struct hosts_host *h = hosts_in_turn(s, i);
        if ((only && h != only) || !hosts_fits(s, h, spec))
            continue;
        if (hosts_has_room(h, spec))
            return h;
        if (!best || h->facts.queued < best->facts.queued)
            best = h;
    }
    return best;
}

static void hosts_say_choice(const struct hosts *s, const struct hosts_host *h, const struct run_spec *spec)
{
    const char *unit = hosts_unit(hosts_any_gpus(s));
    int queued = h->facts.queued;

    if (hosts_has_room(h, spec))
        act_note("on '%s'", h->login);
    else if (queued == 0)
        act_note("on '%s', where it waits: no machine has %d free %s now", h->login, spec->gpus_per_node, unit);
    else
        act_note("on '%s', where it waits behind %d run%s: no machine has %d free %s now", h->login, queued,
                 queued == 1 ? "" : "s", spec->gpus_per_node, unit);
}

/* Counts a run that was placed, so that the next one of this command knows of it. */
static void hosts_count(struct hosts_host *h, const struct run_spec *spec)
{
    if (hosts_has_room(h, spec))
        h->facts.idle -= spec->gpus_per_node;
    else
        h->facts.queued++;
}

void hosts_forget(struct hosts *s)
{
    act_str_replace(&s->last_id, NULL);
    run_machines_release(&s->last.machines);
    s->last.n = 0;
}

static int hosts_place_one(struct hosts *s, const struct run_spec *spec, struct act_error *err)
{
    struct hosts_host *only;
    int rc = hosts_find_needs(s, spec, &only, err);
    struct hosts_host *h = rc == 0 ? hosts_choose(s, spec, only) : NULL;

    hosts_forget(s); /* which of those was looked for */
    if (rc < 0)
        return rc;
    if (!h)
        return hosts_refuse(s, spec, err);
    hosts_say_choice(s, h, spec);
    hosts_count(h, spec);
    ACT_PUSH(s->last.v, s->last.n, h);
    return 0;
}

static int hosts_place_several(struct hosts *s, const struct run_spec *spec, struct act_error *err)
{
    ACT_AUTO(act_buf) names = {0};
    bool has_room = true;

    if (!hosts_choose_group(s, spec, &s->last))
        return hosts_refuse(s, spec, err);
    int rc = hosts_meet(&s->last, err);
    for (size_t i = 0; rc == 0 && i < s->last.n; i++) {
        has_room = has_room && hosts_has_room(s->last.v[i], spec);
        act_buf_addf(&names, "%s'%s'", i == 0 ? "" : i + 1 < s->last.n ? ", " : " and ", s->last.v[i]->login);
        hosts_count(s->last.v[i], spec);
    }
    if (rc == 0)
        act_note("on %s%s", names.data, has_room ? "" : ", where it waits: not all have room now");
    return rc;
}

const struct hosts_run *hosts_place(struct hosts *s, const struct run_spec *spec, struct act_error *err)
{
    if (act_streq(spec->id, s->last_id))
        return &s->last;
    hosts_forget(s);
    int rc = 0;
    if (s->n == 1 && spec->nodes == 1) {
        ACT_PUSH(s->last.v, s->last.n, &s->v[0]);
    } else {
        rc = hosts_look(s, false, err);
        if (rc == 0)
            rc = (spec->nodes > 1 ? hosts_place_several : hosts_place_one)(s, spec, err);
    }
    if (rc < 0)
        return NULL;
    act_str_replace(&s->last_id, spec->id);
    return &s->last;
}

/* Where a machine lacks mpirun, the agents start the processes of a run over several. */
static void hosts_choose_launcher(const struct hosts_run *run, struct run_spec *spec)
{
    bool all = true;

    for (size_t i = 0; i < run->n; i++)
        all = all && run->v[i]->facts.has_mpirun;
    if (run->machines.port > 0)
        act_str_replace(&spec->launcher, all ? NULL : "direct");
}

int hosts_settle(struct platform *p, struct run_spec *spec, struct act_error *err)
{
    const struct hosts_run *run = hosts_place(hosts_of(p), spec, err);
    json_t *logins = json_array();

    for (size_t i = 0; run && i < run->n; i++)
        json_array_append_new(logins, codec_json_bytes_new(run->v[i]->login));
    if (!run) {
        json_decref(logins);
        return -(int)err->code;
    }
    hosts_choose_launcher(run, spec);
    if (!spec->config)
        spec->config = json_object();
    json_t *part = json_object_get(spec->config, ssh_keys_part.name);
    part = json_is_object(part) ? json_copy(part) : json_object(); /* others may hold the old one */
    json_object_set_new(part, "hosts", logins);
    json_object_set_new(spec->config, ssh_keys_part.name, part);
    return 0;
}
