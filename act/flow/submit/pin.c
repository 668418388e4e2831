/* pin.c - the package that a run is pinned to. */
#include <string.h>

#include "flow/flow_internal.h"
#include "flow/submit/passage.h"

/* The package stored last, whatever the project's files are now. */
static int take_last_package(struct flow *flow, struct flow_package *out, struct act_error *err)
{
    int rc = flow_current_package(flow, out, err);

    return rc == -ACT_NOT_FOUND ? act_error_hint(err, "without --last-package the code is packed first") : rc;
}

static int check_package(const struct passage *p, struct act_error *err)
{
    const struct platform_row *row = platform_row(p->platform);

    return row->submit.check_package ? row->submit.check_package(p->spec, err) : 0;
}

static int pin_fits(void *arg, uint64_t bytes, struct act_error *err)
{
    struct passage *p = arg;

    p->spec->package_bytes = (int64_t)bytes;
    int rc = check_package(p, err);
    p->spec->package_bytes = 0;
    return rc;
}

/* The files as they are now. A dry run has one when nothing changed. */
static int pin_pack(struct passage *p, struct flow_package *out, struct act_error *err)
{
    struct flow *flow = p->flow;
    struct flow_init *code = p->io->code;

    code->dry_run = p->io->dry_run;
    code->command = p->spec->title ? NULL : &p->spec->argv;
    code->keep_compiled = true;
    code->fits = pin_fits;
    code->fits_arg = p;
    int rc = flow_init(flow, code, err);
    code->fits = NULL;
    if (rc < 0)
        return rc;
    if (p->here) /* it may be without the image */
        code->compiled[0] = '\0';
    flow_say_code(code);
    if (code->dry_run && code->is_stored != FLOW_YES)
        return 0;
    const char *sha256 = code->compiled[0] ? code->compiled : code->package.sha256;
    ACT_AUTOFREE char *key = flow_package_key(flow, sha256);
    rc = flow_package_by_key(flow, key, sha256, out, err);
    out->bytes = (int64_t)(code->compiled[0] ? code->compiled_bytes : code->package.bytes);
    return rc;
}

/* The old run's, which the new cluster's store may not have: the local copy serves both. */
static int repeat_package(const struct passage *p, struct flow_package *out, struct act_error *err)
{
    const struct run_spec *old = &p->old->spec;

    if (!old->package_key)
        return 0;
    int rc = flow_package_by_key(p->home, old->package_key, old->package_sha256, out, err);
    out->bytes = old->package_bytes;
    return rc;
}

static void set_package(const struct flow_package *p, struct run_spec *spec)
{
    if (!p->key)
        return;
    spec->package_store = act_strdup(p->store);
    spec->package_key = act_strdup(p->key);
    spec->package_bytes = p->bytes;
    memcpy(spec->package_sha256, p->sha256, sizeof(spec->package_sha256));
}

int step_pin_package(struct passage *p, struct act_error *err)
{
    int rc = p->io->code ? pin_pack(p, &p->package, err)
             : p->old    ? repeat_package(p, &p->package, err)
                         : take_last_package(p->flow, &p->package, err);

    if (rc < 0)
        return rc;
    set_package(&p->package, p->spec);
    return check_package(p, err);
}
