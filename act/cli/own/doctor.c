#include <string.h>

#include "base/terminal.h"
#include "cli/own/own.h"
#include "cli/print/print.h"
#include "cli/print/wrap.h"
#include "codec/json.h"
#include "flow/cluster/doctor.h"
#include "flow/flow.h"

bool cli_examine(struct cli *cli, struct platform_findings *out)
{
    struct cli_request request;
    size_t n_bad = 0;

    cli_request(cli, &request);
    flow_doctor(&cli->flow, &request.config, out);
    for (size_t i = 0; i < out->n; i++)
        n_bad += !out->v[i].ok;
    return n_bad == 0;
}

static json_t *finding_json(const struct platform_finding *f)
{
    return json_pack("{s:s,s:b,s:o}", "what", f->what, "ok", f->ok, "text", codec_json_bytes_new(f->text));
}

json_t *cli_findings_json(const struct platform_findings *findings)
{
    return CLI_JSON_LIST(findings->v, findings->n, finding_json);
}

void cli_print_findings(const struct platform_findings *findings)
{
    for (size_t i = 0; i < findings->n; i++) {
        const struct platform_finding *f = &findings->v[i];
        cli_print_coloured(stdout, f->ok ? "32" : "31", "%-4s", f->ok ? "ok" : "fail");
        ACT_AUTOFREE char *what = cli_name(f->what), *text = cli_name(f->text);
        printf("  %s: ", what);
        cli_put_prose(text, (int)strlen("fail  : ") + act_columns(what), (int)strlen("fail  "));
    }
}

int cmd_doctor(struct cli *cli, struct act_error *err)
{
    ACT_AUTO(platform_findings) findings = {0};
    bool ok = cli_examine(cli, &findings);
    int rc = 0;

    if (cli->options.json)
        rc = cli_print_pack(err, "{s:b,s:o}", "ok", ok, "checks", cli_findings_json(&findings));
    else
        cli_print_findings(&findings);
    return rc < 0 ? rc : ok ? 0 : ACT_FAIL;
}
