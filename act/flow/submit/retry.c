/* retry.c - what a run is tried again after, and the nodes that it is kept off because they have failed lately. */
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/log.h"
#include "base/path.h"
#include "config/config.h"
#include "diagnose/diagnose.h"
#include "flow/submit/parts.h"
#include "flow/submit/passage.h"

/* All classes that are not the command's own fault. */
#define GROUP "infrastructure"

/* ---- the classes */

static bool is_infrastructure(const struct diagnose_rule *rule)
{
    return rule->retry == DIAGNOSE_RETRY_YES || rule->retry == DIAGNOSE_RETRY_OTHER_NODE;
}

/* Ends that somebody decided. */
static bool is_decided(const char *id)
{
    static const char *const ids[] = {"time_limit", "canceled", "aborted", "interrupted", "sigint"};

    for (size_t i = 0; i < sizeof(ids) / sizeof(ids[0]); i++)
        if (strcmp(id, ids[i]) == 0)
            return true;
    return false;
}

/* Adds the rules that a name stands for: an id, a code that several may have, or the group. */
static bool add_class(const struct diagnose *rules, const char *name, struct act_strv *out)
{
    bool found = false;

    for (size_t i = 0; i < diagnose_count(rules); i++) {
        const struct diagnose_rule *rule = diagnose_rule(rules, i);
        bool fits = !is_decided(rule->id) &&
                    (strcmp(name, GROUP) == 0 ? is_infrastructure(rule)
                                              : strcmp(rule->id, name) == 0 || strcmp(rule->code, name) == 0);
        found = found || fits;
        if (fits && !act_strv_has(out, rule->id))
            act_strv_push(out, rule->id);
    }
    return found;
}

static int unknown_class(const struct diagnose *rules, const char *name, enum act_code code, struct act_error *err)
{
    ACT_AUTO(act_strv) names = {0};

    for (size_t i = 0; i < diagnose_count(rules); i++)
        act_strv_push(&names, diagnose_rule(rules, i)->id);
    const char *near = names.n ? act_nearest(name, (const char *const *)names.v) : NULL;
    if (near)
        return act_error_set(err, code, "retry.on: there is no class of failures '%.60s'; did you mean '%s'?", name,
                             near);
    return act_error_set(err, code,
                         "retry.on: there is no class of failures '%.60s': it is " GROUP ", or one that 'a why' names, "
                         "such as nccl_timeout",
                         name);
}

static int take_classes(const struct config *c, const struct diagnose *rules, struct act_strv *out,
                        struct act_error *err)
{
    enum act_code code = config_is_said(c, "retry.on") ? ACT_USAGE : ACT_CONFIG;

    if (c->retry.on.n == 0)
        add_class(rules, GROUP, out);
    for (size_t i = 0; i < c->retry.on.n; i++) {
        const char *name = c->retry.on.v[i];
        if (is_decided(name))
            return act_error_set(err, code, "retry.on: a run that ended as '%s' is never tried again: take it out",
                                 name);
        if (!add_class(rules, name, out))
            return unknown_class(rules, name, code, err);
    }
    return 0;
}

/* The nodes judge by the project's own rules, too. */
static int read_own_rules(const char *path, char **out, struct act_error *err)
{
    enum { RULES_MAX_BYTES = 256 * 1024 };

    return access(path, F_OK) < 0 ? 0 : act_file_read(path, RULES_MAX_BYTES, out, NULL, err);
}

_Static_assert((int)CONFIG_RETRY_MOST == (int)RUN_RETRY_MOST, "the configuration knows the limit");

static int retry_check(const struct config *c, struct act_error *err)
{
    enum act_code code = config_is_said(c, "retry.times") || config_is_said(c, "retry.on") ? ACT_USAGE : ACT_CONFIG;

    if (c->retry.times < 0)
        return act_error_set(err, code,
                             "retry.on says after what the run is tried again, and nothing says how often: "
                             "add --retry N, or retry.times");
    if (c->retry.times > 0 && !platform_find(c->platform)->about.tries_again)
        return act_error_set(err, code,
                             "on the platform '%s' the service starts the processes of a run, and its agent cannot "
                             "begin again: submit without retry ('-p {retry: 0}'), and have a shell do it: "
                             "'a wait RUN || a resubmit RUN'",
                             c->platform);
    return 0;
}

static int take_retry(const struct config *c, struct run_spec *spec, struct act_error *err)
{
    ACT_AUTOFREE char *own = act_path_join(c->project_root, "aux_data/diagnosis.yaml");
    struct diagnose *rules = NULL;

    if (c->retry.times < 0 && c->retry.on.n == 0)
        return 0;
    int rc = retry_check(c, err);
    if (rc < 0 || c->retry.times == 0)
        return rc;
    rc = diagnose_open(own, &rules, err);
    if (rc == 0)
        rc = take_classes(c, rules, &spec->retry_on, err);
    if (rc == 0)
        rc = read_own_rules(own, &spec->own_rules, err);
    spec->retry_times = (int)c->retry.times;
    diagnose_free(rules);
    return rc;
}

int flow_check_retry(const struct config *c, struct act_error *err)
{
    ACT_AUTO(run_spec) ignored = {0};

    return take_retry(c, &ignored, err);
}

int step_take_retry(struct passage *p, struct act_error *err)
{
    const struct platform_row *row = platform_row(p->platform);
    int rc = take_retry(p->flow->config, p->spec, err);

    if (rc == 0 && p->spec->retry_times > 0 && !row->about.tries_elsewhere && !row->about.is_here)
        act_note("each attempt is made on the same nodes: a pod stays where it is");
    return rc;
}

int step_repeat_retry(struct passage *p, struct act_error *err)
{
    const struct config *c = p->flow->config;
    const struct run_spec *old = &p->old->spec;
    bool said = config_is_said(c, "retry.times") || config_is_said(c, "retry.on");

    if (said || !old->retry_times || !platform_row(p->platform)->about.tries_again)
        return step_take_retry(p, err);
    p->spec->retry_times = old->retry_times;
    p->spec->own_rules = act_strdup(old->own_rules);
    act_strv_copy(&p->spec->retry_on, old->retry_on.v, old->retry_on.n);
    return 0;
}

/* ---- nodes that failed lately */

static void say_avoided(const struct act_strv *avoid, const struct act_strv *kept)
{
    ACT_AUTO(act_buf) list = {0};
    const struct act_strv *names = avoid->n ? avoid : kept;

    for (size_t i = 0; i < names->n; i++)
        act_buf_addf(&list, "%s%s", i ? ", " : "", names->v[i]);
    if (avoid->n)
        act_note("not on %s, which failed lately ('a nodes --bad'); --use-bad-nodes uses %s", list.data,
                 avoid->n == 1 ? "it" : "them");
    if (kept->n)
        act_note("%zu node%s that failed lately %s used all the same, as the run would not fit without ('a nodes "
                 "--bad')",
                 kept->n, kept->n == 1 ? "" : "s", kept->n == 1 ? "is" : "are");
}

/* Avoids as many of the latest bad nodes as leave enough others. */
static void choose_avoided(const struct ledger_bads *bads, const struct act_strv *usable, int nodes,
                           struct act_strv *avoid, struct act_strv *kept)
{
    size_t left = usable->n;

    for (size_t i = 0; i < bads->n; i++) {
        const char *name = bads->v[i].node;
        if (!act_strv_has(usable, name))
            continue;
        bool fits = left > (size_t)nodes;
        left -= fits;
        act_strv_push(fits ? avoid : kept, name);
    }
}

int step_avoid_bad_nodes(struct passage *p, struct act_error *err)
{
    const struct platform_row *row = platform_row(p->platform);
    ACT_AUTO(act_strv) usable = {0}, kept = {0};
    ACT_AUTO(ledger_bads) bads = {0};
    struct act_error why;

    if (p->flow->use_bad_nodes || !row->nodes.usable)
        return 0;
    int rc = flow_bad_nodes_here(p->flow, &bads, err);
    if (rc < 0 || bads.n == 0)
        return rc;
    if (row->nodes.usable(p->platform, p->spec, &usable, &why) < 0) {
        act_note("nodes that failed lately are used all the same, as it is not known how many others there are: %s",
                 act_error_text(&why));
        return 0;
    }
    choose_avoided(&bads, &usable, p->spec->nodes, &p->spec->avoid, &kept);
    say_avoided(&p->spec->avoid, &kept);
    return 0;
}
