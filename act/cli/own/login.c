#include "flow/login.h"
#include "auth/token.h"
#include "base/clock.h"
#include "base/log.h"
#include "cli/own/options.h"
#include "cli/own/own.h"
#include "cli/print/print.h"
#include "flow/flow.h"

static void show_message(void *arg, const char *message)
{
    ACT_AUTOFREE char *shown = cli_name(message);

    (void)arg;
    fprintf(stderr, "%s\n", shown);
}

static json_t *cmd_login_identity_json(const struct token_identity *who)
{
    char expires[ACT_TIME_TEXT];

    act_time_to_iso(who->expires_s, expires);
    return json_pack("{s:i, s:s?, s:s?, s:s?, s:s?, s:s, s:s}", "version", 1, "name", who->name, "app_id", who->app_id,
                     "object_id", who->object_id, "tenant", who->tenant, "source", who->source, "expires", expires);
}

/* Prints a user by name, an application by its id. */
static void print_identity(const struct token_identity *who)
{
    const char *name = who->name ? who->name : who->app_id ? who->app_id : who->object_id;
    ACT_AUTOFREE char *shown = cli_name(name ? name : "somebody the token does not name");
    ACT_AUTOFREE char *tenant = cli_name(who->tenant ? who->tenant : "unknown");
    char expires[ACT_TIME_TEXT];

    act_time_to_local(who->expires_s, expires);
    printf("%s\ntenant  %s\nby      %s\nuntil   %s\n", shown, tenant, who->source, expires);
}

static int cmd_login_identify(struct cli *cli, struct token_identity *out, struct act_error *err)
{
    int rc = flow_identify(&cli->flow, out, err);

    return rc == -ACT_DENIED ? act_error_hint(err, "only Azure needs a login: other clusters, and folders, do not")
                             : rc;
}

int cmd_login(struct cli *cli, struct act_error *err)
{
    const struct cli_login_options *o = CLI_OPTIONS(cli, login);
    ACT_AUTO(token_identity) who = {0};
    int rc = 0;

    if (o->tenant && !o->device_code)
        return act_error_set(err, ACT_USAGE, "--tenant is for --device-code");
    if (o->device_code && cli->options.dry_run) {
        act_note("would log in%s%s with a code typed into a browser, and keep that until 'a logout'",
                 o->tenant ? " to tenant " : "", o->tenant ? o->tenant : "");
        return 0;
    }
    if (o->device_code)
        rc = flow_login(&cli->flow, o->tenant, show_message, NULL, err);
    if (rc == 0)
        rc = cmd_login_identify(cli, &who, err);
    if (rc == 0 && cli->options.json)
        rc = cli_print_json(cmd_login_identity_json(&who), err);
    else if (rc == 0)
        print_identity(&who);
    return rc;
}

int cmd_logout(struct cli *cli, struct act_error *err)
{
    bool had = false, dry = cli->options.dry_run;
    int rc = flow_logout(dry, &had, err);

    if (rc == 0)
        act_note("%s", had && dry ? "would forget all tokens that are kept"
                       : had      ? "logged out: all tokens that were kept are forgotten"
                                  : "there was no login to forget");
    return rc;
}
