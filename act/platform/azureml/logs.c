/* logs.c - logs: the run history names blobs, and gives URLs that read them for some hours. */
#include <string.h>

#include "base/path.h"
#include "base/units.h"
#include "codec/json.h"
#include "platform/azureml/azureml_internal.h"
#include "store/store.h"

enum { RETRIES_MAX = 999999 };

/* ---- what there is ---- */

static void aml_logs_add_file(json_t *files, const char *name, const char *url)
{
    if (url && act_path_is_safe(name, strlen(name)))
        json_object_set_new(files, name, json_string(url));
}

/* Returns "logFiles", an object name -> URL, also where an old service has a list of {name, url}: a new reference,
 * without names that would leave the folder of the copies. */
static json_t *listed_files(const json_t *details)
{
    json_t *listed = json_object_get(details, "logFiles"), *files = json_object(), *file;
    const char *name;
    size_t i;

    json_object_foreach(listed, name, file) aml_logs_add_file(files, name, json_string_value(file));
    json_array_foreach(listed, i, file)
        aml_logs_add_file(files, codec_json_str(file, "name", ""), codec_json_str(file, "url", NULL));
    return files;
}

/* A job that the service starts again has its logs in "user_logs/retry_001/", "retry_002/" and so on; those of its
 * first attempt stay where they were. *out_rest is the name after the folder. -1: it is no log of an attempt. */
static int retry_of(const char *name, const char **out_rest)
{
    static const char folder[] = RUN_DIR_USER "/", retry[] = "retry_";
    int64_t number;

    if (!act_starts_with(name, folder))
        return -1;
    *out_rest = name + strlen(folder);
    const char *end = strchr(*out_rest, '/');
    if (!end || !act_starts_with(*out_rest, retry))
        return 0;
    const char *digits = *out_rest + strlen(retry);
    ACT_AUTOFREE char *text = act_strndup(digits, (size_t)(end - digits));
    if (strspn(text, "0123456789") != strlen(text) || !act_int_from_text(text, &number) || number < 1 ||
        number > RETRIES_MAX)
        return 0;
    *out_rest = end + 1;
    return (int)number;
}

int azureml_last_retry(const json_t *details)
{
    CODEC_AUTOJSON json_t *files = listed_files(details);
    const char *name, *rest;
    json_t *url;
    int last = 0;

    json_object_foreach(files, name, url)
    {
        int retry = retry_of(name, &rest);
        last = retry > last ? retry : last;
    }
    return last;
}

json_t *azureml_log_files(const json_t *details)
{
    CODEC_AUTOJSON json_t *files = listed_files(details);
    json_t *named = json_object(), *url;
    int last = azureml_last_retry(details);
    const char *name, *rest;

    json_object_foreach(files, name, url)
    {
        int retry = retry_of(name, &rest);
        ACT_AUTOFREE char *shown = retry < 0 ? act_strdup(name)
                                   : retry == last
                                       ? act_sprintf(RUN_DIR_USER "/%s", rest)
                                       : act_sprintf(RUN_DIR_ATTEMPTS "/%d/" RUN_DIR_USER "/%s", retry + 1, rest);
        json_object_set(named, shown, url);
    }
    return named;
}

/* Asks for the URLs of the logs, for struct store_urls_options. */
static int ask_urls(void *arg, const char *id, struct store_urls *out, struct act_error *err)
{
    struct azureml *a = arg;
    CODEC_AUTOJSON json_t *details = NULL, *files = NULL;
    struct run_status status;
    const char *name;
    json_t *url;
    int rc = azureml_details(a, id, &details, err);

    if (rc == 0 && !details) {
        CODEC_AUTOJSON json_t *job = NULL;
        rc = azureml_job(a, id, &job, err);
        if (rc == 0 && !job)
            rc = act_error_set(err, ACT_NOT_FOUND, "there is no job '%s' in the workspace", id);
    }
    if (rc < 0)
        return rc;
    azureml_read_run(details, &status);
    out->ended_unix_s = run_state_is_final(status.state) ? status.ended_unix_s : 0;
    files = azureml_log_files(details);
    json_object_foreach(files, name, url) store_urls_add(out, name, json_string_value(url));
    return 0;
}

struct store *azureml_open_logs(struct platform *p, const char *id, bool ended)
{
    struct azureml *a = azureml_of(p);

    (void)ended; /* the service tells when */
    return store_urls_open(
        services_http(a->base.services),
        &(struct store_urls_options){
            .id = id, .ask = ask_urls, .arg = a, .settle_s = azureml_keys(a->config)->settle_seconds});
}
