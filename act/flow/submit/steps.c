/* steps.c - see passage.h. */
#include <string.h>

#include "base/log.h"
#include "flow/data/data_internal.h"
#include "flow/flow_internal.h"
#include "flow/submit/passage.h"

/* ---- what may refuse */

static int check_shared_temp(struct passage *p, struct act_error *err)
{
    return flow_check_shared_temp(p->platform, p->spec, err);
}

/* The job of another tool is its service's to judge. */
static int steps_check_platform(struct passage *p, struct act_error *err)
{
    return p->spec->foreign ? 0 : platform_check(p->platform, p->spec, err);
}

/* A dry run asks nothing, but that the stores can be read is known then. */
static int check_copies(struct passage *p, struct act_error *err)
{
    return flow_check_copies(p->flow, p->spec, p->io->dry_run ? NULL : p->io->confirm, p->io->arg, err);
}

static int steps_fetch_secrets(struct passage *p, struct act_error *err)
{
    return flow_fetch_secrets(p->flow, p->spec, err);
}

static int steps_warn_lacking(struct passage *p, struct act_error *err)
{
    (void)err;
    if (!p->spec->title && p->spec->argv.n) /* a job file may say what its container has */
        flow_warn_lacking(p->flow->config, p->spec);
    return 0;
}

/* Checks that the access to the stores can be made which the nodes get as the run is handed over. */
static int check_stores(struct passage *p, struct act_error *err)
{
    ACT_AUTOWIPE char *ignored = NULL;

    if (p->spec->foreign || platform_row(p->platform)->about.nodes_fetch)
        return 0;
    return flow_run_stores(p->flow, p->spec, &ignored, err);
}

/* ---- the table */

/* A step is taken when all of these hold. */
enum {
    ALWAYS = 0,
    FRESH = 1,  /* the run repeats none */
    AGAIN = 2,  /* it does */
    HERE = 4,   /* it is one of 'a local' */
    AWAY = 8,   /* it is not */
    IS_DRY = 16 /* nothing is done */
};

struct step {
    const char *name; /* for ACT_TRACE=steps */
    int when;
    int (*take)(struct passage *p, struct act_error *err);
};

static const struct step describe[] = {
    {"job file", FRESH, step_read_job_file},
    {"platform", ALWAYS,
     step_open_platform}, /* by this configuration: the ledger may open the same place by another one */
    {"project", FRESH, step_say_project},
    {"old secrets", AGAIN, step_find_secrets},
    {"old configuration", AGAIN, step_repeat_config},
    {"id", ALWAYS, step_identify},
    {"old runs", AGAIN, step_wait_for_old},
    {"runs before it", AWAY, step_take_needs},
    {"name and tags", ALWAYS, step_label},
    {"platform's part", ALWAYS, step_ask_row},
    {"command", FRESH, step_take_command},
    {"command", AGAIN, step_repeat_command},
    {"size", FRESH, step_take_size},
    {"size", AGAIN, step_repeat_size},
    {"starter", ALWAYS, step_form_starter},
    {"setup", FRESH, step_take_setup},
    {"setup", AGAIN, step_repeat_setup},
    {"hang", FRESH | AWAY, step_take_hang}, /* else the user sees it hang */
    {"hang", AGAIN, step_repeat_hang},
    {"input", AWAY, step_take_input},
    {"retry", FRESH | AWAY, step_take_retry},
    {"retry", AGAIN, step_repeat_retry},
    {"folders", ALWAYS, step_map_folders},
    {"old settings", AGAIN, step_repeat_settings},
    {"another tool's", AGAIN, step_repeat_foreign},
    {"this machine", HERE, step_take_place},
};

static const struct step refuse[] = {
    {"old run's place", AGAIN, step_check_place},
    {"runs behind the old one", AGAIN, step_say_followers},
    {"shared folder", ALWAYS, check_shared_temp},
    {"stored folders", HERE, step_check_stored},
    {"platform's check", ALWAYS, steps_check_platform},
    {"bad nodes", AWAY, step_avoid_bad_nodes},
    {"copies", ALWAYS, check_copies},
    {"secrets", ALWAYS, steps_fetch_secrets},
    {"package", ALWAYS, step_pin_package}, /* which is stored, so that what needs no package comes before */
    {"unused settings", ALWAYS, step_mention_unused},
    {"packages of here", FRESH, steps_warn_lacking},
    {"stores", IS_DRY, check_stores},
};

static const struct step hand_over[] = {
    {"cluster's own folders", ALWAYS, step_use_own_folders},
    {"trust", ALWAYS, step_trust},
    {"hand over", ALWAYS, step_hand_over},
};

static int conditions(const struct passage *p)
{
    return (p->old ? AGAIN : FRESH) | (p->here ? HERE : AWAY) | (p->io->dry_run ? IS_DRY : 0);
}

static int steps_take(struct passage *p, const struct step *steps, size_t n, struct act_error *err)
{
    int hold = conditions(p), rc = 0;

    for (size_t i = 0; i < n && rc == 0; i++)
        if ((steps[i].when & hold) == steps[i].when) {
            act_trace("steps", "%s", steps[i].name);
            rc = steps[i].take(p, err);
        }
    return rc;
}

int flow_pass_checks(struct passage *p, struct act_error *err)
{
    int rc = steps_take(p, describe, sizeof(describe) / sizeof(describe[0]), err);

    return rc < 0 ? rc : steps_take(p, refuse, sizeof(refuse) / sizeof(refuse[0]), err);
}

/* The last section has no result: when the platform has the run, nothing refuses it any more. */
int flow_pass_over(struct passage *p, struct act_error *err)
{
    int rc = p->io->dry_run ? 0 : steps_take(p, hand_over, sizeof(hand_over) / sizeof(hand_over[0]), err);

    if (rc == 0 && p->old && !p->io->dry_run)
        step_end_old_run(p);
    return rc;
}

int flow_pass(struct passage *p, struct act_error *err)
{
    int rc = flow_pass_checks(p, err);

    return rc < 0 ? rc : flow_pass_over(p, err);
}

void flow_passage_release(struct passage *p)
{
    flow_package_release(&p->package);
    flow_job_file_release(&p->job);
}
