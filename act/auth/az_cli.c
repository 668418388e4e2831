/* az_cli.c - the login of the Azure CLI: the program 'az', asked for a token.
 *
 * Source: learn.microsoft.com/cli/azure/account#az-account-get-access-token.
 */
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "auth/token_internal.h"
#include "base/clock.h"
#include "base/dirs.h"
#include "base/path.h"
#include "base/units.h"
#include "codec/json.h"
#include "proc/proc.h"

enum { TIMEOUT_S = 60, MAX_OUTPUT = 256 << 10, NOT_FOUND = 127 };

/* ---- running it (worker) ---- */

static int timeout_s(void)
{
    const char *text = act_env("ACT_AZ_TIMEOUT");
    int64_t seconds = TIMEOUT_S;

    if (text && (!act_int_from_text(text, &seconds) || seconds < 1 || seconds > 3600))
        seconds = TIMEOUT_S;
    return (int)seconds;
}

static const char *tenant_of(const struct token_want *want)
{
    const char *tenant = act_env("AZURE_TENANT_ID");

    return tenant ? tenant : want->tenant;
}

/* Runs az in a folder where nobody can plant Python modules for it to load. */
static void run_az(void *arg)
{
    struct token_ask *ask = arg;
    const char *tenant = tenant_of(&ask->want);
    ACT_AUTOFREE char *az = proc_find_in_path("az");
    ACT_AUTOFREE char *resource = token_resource(ask->want.scope);
    ACT_AUTO(act_strv) argv = {0};

    if (!az) {
        ask->rc = -ACT_NOT_FOUND;
        return;
    }
    const char *const words[] = {az, "account", "get-access-token", "--output", "json", "--resource", resource};
    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
        act_strv_push(&argv, words[i]);
    if (tenant && token_tenant_is_valid(tenant)) {
        act_strv_push(&argv, "--tenant");
        act_strv_push(&argv, tenant);
    }
    struct proc_call call = {
        .argv = argv.v, .sees = OF_AZ, .cwd = "/", .timeout_s = timeout_s(), .max_bytes = MAX_OUTPUT};
    ask->rc = proc_call(&call, &ask->program, &ask->error);
}

/* ---- what it said ---- */

/* Returns the last line that is not blank or, if word is not NULL, the first that contains it: trimmed, without
 * anything that could be a token, a new string; empty: there is none. */
static char *line_with(const char *text, const char *word)
{
    ACT_AUTOFREE char *line = act_strdup("");

    while (*text) {
        text += strspn(text, " \t\r\n");
        size_t n = strcspn(text, "\r\n");
        ACT_AUTOFREE char *next = act_strndup(text, n);
        if (n && (!word || strstr(next, word))) {
            free(line);
            line = act_strdup(next);
            if (word)
                break;
        }
        text += n;
    }
    return http_redact_text(line);
}

/* Returns the message of Microsoft Entra without the ids that follow it, a new string; empty: az does not report
 * one. */
static char *entra_reason(const char *text)
{
    static const char code[] = "AADSTS";
    enum { SHOWN = 300 };
    ACT_AUTOFREE char *line = line_with(text, code);
    const char *at = strstr(line, code), *ids = at ? strstr(at, " Trace ID:") : NULL;
    size_t n = ids ? (size_t)(ids - at) : at ? strlen(at) : 0;

    if (n > SHOWN)
        n = SHOWN;
    while (n && strchr(". \t", at[n - 1]))
        n--;
    return act_strndup(n ? at : "", n);
}

static bool says_not_found(const char *words)
{
    const char *az = strstr(words, "az:");

    return az && strstr(az, "not found");
}

/* Says in the words of az why it refused, and the command that it recommends if that has arguments. */
static void tell_refusal(struct token_ask *ask)
{
    static const char command[] = "az login";
    const char *said = ask->program.err;
    ACT_AUTOFREE char *line = line_with(said, NULL);
    ACT_AUTOFREE char *advice = line_with(said, "az login --");
    const char *remedy = strstr(advice, command);
    ACT_AUTOFREE char *reason = entra_reason(said);
    bool missing =
        (WIFEXITED(ask->program.status) && WEXITSTATUS(ask->program.status) == NOT_FOUND) || says_not_found(said);

    if (missing)
        token_absent(ask, "no such program 'az'");
    else if (remedy)
        token_denied(ask, "%s; run '%.*s'", *reason ? reason : "not logged in for this", (int)strcspn(remedy, "'`"),
                     remedy);
    else if (strstr(said, command))
        token_absent(ask, "%s", *reason ? reason : "not logged in, or no longer");
    else
        token_denied(ask, "'az account get-access-token' failed: %s",
                     *reason ? reason
                     : *line ? line
                             : "it did not say why");
}

static void az_cli_take_output(struct token_ask *ask)
{
    CODEC_AUTOJSON json_t *response = NULL;
    struct act_error why;

    if (codec_json_parse(ask->program.out, ask->program.out_len, "az", &response, NULL) < 0)
        act_error_set(&why, ACT_FAIL, "the response is not JSON");
    else if (token_take(response, ask->source, act_now_unix_s(), 0, &ask->token, &why) == 0)
        why.code = ACT_OK;
    if (why.code)
        token_denied(ask, "'az account get-access-token': %s", act_error_text(&why));
    else
        token_found(ask);
}

static void az_ended(void *arg)
{
    struct token_ask *ask = arg;

    if (ask->rc == -ACT_NOT_FOUND)
        token_absent(ask, "no such program 'az'");
    else if (ask->rc == -ACT_TIMEOUT)
        token_denied(ask, "'az account get-access-token' did not end within %d s", timeout_s());
    else if (ask->rc < 0)
        token_failed(ask);
    else if (!WIFEXITED(ask->program.status) || WEXITSTATUS(ask->program.status) != 0)
        tell_refusal(ask);
    else
        az_cli_take_output(ask);
}

static void ask_az(struct token_ask *ask)
{
    engine_work(http_engine(ask->http), run_az, az_ended, ask);
}

/* ---- the source ---- */

/* The login is identified by its folder, and is another one once 'az login' or 'az account set' has rewritten the
 * list of subscriptions there. */
static char *az_identity(const struct token_want *want)
{
    const char *set = act_env("AZURE_CONFIG_DIR"), *tenant = tenant_of(want);
    ACT_AUTOFREE char *home = act_home_dir();
    ACT_AUTOFREE char *folder = set ? act_strdup(set) : act_path_join(home, ".azure");
    ACT_AUTOFREE char *profile = act_path_join(folder, "azureProfile.json");
    struct stat st = {0};
    int64_t changed_ns = stat(profile, &st) == 0 ? act_timespec_ns(st.st_mtim) : 0;

    return act_sprintf("%s|%s|%lld", tenant ? tenant : "", folder, (long long)changed_ns);
}

const struct token_source token_cli = {
    .name = "Azure CLI", .credential = "AzureCliCredential", .identity = az_identity, .ask = ask_az};
