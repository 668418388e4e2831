/* run_folders.c - shared by platforms whose runs are folders of a site: their logs and their run.json. */
#include <string.h>

#include "base/path.h"
#include "codec/json.h"
#include "platform/platform_internal.h"

static const char *const log_folders[] = {RUN_DIR_USER, RUN_DIR_SYSTEM, RUN_DIR_METRICS, RUN_DIR_ATTEMPTS};
enum { LOG_FOLDERS = sizeof(log_folders) / sizeof(log_folders[0]) };

int platform_site_logs(struct site *site, const char *id, struct platform_logs *out, struct act_error *err)
{
    ACT_AUTO(site_files) files = {0};
    int rc = site_files(site, id, log_folders, LOG_FOLDERS, &files, err);

    *out = (struct platform_logs){
        .settled = true}; /* the agent has written them by the time that it says how the run ended */
    for (size_t i = 0; rc == 0 && i < files.n; i++)
        platform_logs_add(out, files.v[i].name, files.v[i].size, files.v[i].idle_s);
    return rc;
}

static bool is_log_name(const char *name)
{
    for (size_t i = 0; i < LOG_FOLDERS; i++) {
        size_t n = strlen(log_folders[i]);
        if (strncmp(name, log_folders[i], n) == 0 && name[n] == '/')
            return act_path_is_safe(name, strlen(name));
    }
    return false;
}

int platform_site_read_log(struct site *site, const char *id, const char *name, uint64_t offset, void *data,
                           size_t len, size_t *out_got, struct act_error *err)
{
    *out_got = 0;
    if (!is_log_name(name))
        return act_error_set(err, ACT_NOT_FOUND, "run '%s' has no log '%s'", id, name);
    return site_read(site, id, name, offset, data, len, out_got, err);
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
