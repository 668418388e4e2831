/* run_folders.c - shared by platforms whose runs are folders of a site: their logs and their run.json. */
#include <string.h>

#include "auth/services.h"
#include "codec/json.h"
#include "platform/platform_internal.h"
#include "store/store.h"

static const char *const log_folders[] = {RUN_DIR_USER, RUN_DIR_SYSTEM, RUN_DIR_METRICS, RUN_DIR_ATTEMPTS,
                                          RUN_DIR_OUTPUTS};
enum { LOGS = 4 }; /* of them hold logs */

static int platform_folders_site_of(void *p, size_t i, struct site **out, struct act_error *err)
{
    *out = NULL;
    return i == 0 ? ((struct platform *)p)->row->keep.site(p, out, err) : 0;
}

/* The agent has written the logs by the time that it says how the run ended. */
struct store *platform_site_logs(struct platform *p,
                                 int (*site)(void *arg, size_t i, struct site **out, struct act_error *err), void *arg,
                                 const char *id, bool ended)
{
    return store_site_open(services_http(p->services),
                           &(struct store_site_options){.site = site,
                                                        .arg = arg,
                                                        .id = id,
                                                        .folders = log_folders,
                                                        .n_folders = sizeof(log_folders) / sizeof(log_folders[0]),
                                                        .n_logs = LOGS,
                                                        .grow = !ended});
}

struct store *platform_site_open_logs(struct platform *p, const char *id, bool ended)
{
    return platform_site_logs(p, platform_folders_site_of, p, id, ended);
}

int platform_site_expect_logs(struct platform *p, const char *id, bool with_ends, struct act_error *err)
{
    ACT_AUTO(site_files) files = {0};
    struct act_error ignored;
    struct site *site;
    int rc = p->row->keep.site(p, &site, err);

    if (rc < 0 || !site_ahead(site))
        return rc;
    (void)!site_files(site, id, log_folders, sizeof(log_folders) / sizeof(log_folders[0]), with_ends ? LOGS : 0, &files,
                      &ignored); /* it is not known yet */
    site_ahead_end(site);
    return 0;
}

int platform_site_spec(struct site *site, const char *id, struct run_spec *out, struct act_error *err)
{
    CODEC_AUTOJSON json_t *json = NULL;
    ACT_AUTOFREE char *text = NULL;
    int rc = site_read_text(site, id, RUN_FILE_SPEC, &text, err);

    if (rc == -ACT_NOT_FOUND)
        return act_error_set(err, ACT_NOT_FOUND, "there is no run '%s' in '%s'", id, site_root(site));
    if (rc == 0)
        rc = codec_json_parse(text, strlen(text), RUN_FILE_SPEC, &json, err);
    return rc < 0 ? rc : run_spec_from_json(json, out, err);
}
