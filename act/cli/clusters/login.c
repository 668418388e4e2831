/* login.c - the login to a Kubernetes cluster, into the user's kubeconfig. */
#include "base/log.h"
#include "cli/clusters/clusters.h"
#include "cli/print/ask.h"
#include "cli/print/print.h"
#include "flow/flow.h"
#include "flow/trust.h"
#include "platform/clusters.h"

static int confirm_replaced(struct cli *cli, const struct platform_login *login, struct act_error *err)
{
    ACT_AUTO(act_buf) question = {0};

    if (login->replaced.n == 0)
        return 0;
    act_buf_addf(&question, "'%s' says something else of ", login->file);
    for (size_t i = 0; i < login->replaced.n; i++)
        act_buf_addf(&question, "%s%s", i ? ", " : "", login->replaced.v[i]);
    act_buf_adds(&question, ". Replace it?");
    return cli_confirm(cli, question.data, err);
}

/* The project leads to the cluster from now on, which is what the user has just asked for. */
static int keep_login(struct cli *cli, const struct platform_login *login, struct act_error *err)
{
    ACT_AUTO(act_strv) before = {0}, added = {0};

    flow_reach_platform(cli->flow.config, &before);
    int rc = platform_keep_login(login, err);
    if (rc < 0)
        return rc;
    act_note("'%s' has the context '%s' now; 'k8s.context: %s' in the cluster file chooses it", login->file,
             login->context, login->context);
    rc = flow_trust_added(cli->flow.config, &before, &added, err);
    for (size_t i = 0; i < added.n; i++)
        act_note("so this project is trusted to use it: %s", added.v[i]);
    return rc;
}

int cli_login_cluster(struct cli *cli, const char *name, struct act_error *err)
{
    ACT_AUTO(platform_login) found = {0};
    bool writes = false;
    struct platform *platform;
    int rc = flow_platform(&cli->flow, &platform, err);

    (void)name;
    if (rc == 0)
        rc = platform_fetch_login(platform, &found, err);
    if (rc == 0 && !found.is_new)
        act_note("'%s' has the context '%s' already", found.file, found.context);
    else if (rc == 0 && cli->options.dry_run)
        act_note("would put the context '%s' into '%s'", found.context, found.file);
    else if (rc == 0)
        writes = (rc = confirm_replaced(cli, &found, err)) == 0;
    if (writes)
        rc = keep_login(cli, &found, err);
    if (rc == 0 && cli->options.json)
        rc = cli_print_pack(err, "{s:b,s:s,s:s,s:b}", "dry_run", cli->options.dry_run, "file", found.file, "context",
                            found.context, "changed", writes);
    return rc;
}
