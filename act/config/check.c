/* check.c - everything that is wrong with a configuration. */
#include <string.h>

#include "config/config_internal.h"

static void check_account(const struct config *config, const struct config_folder *folder, struct act_strv *seen,
                          struct config_findings *f)
{
    ACT_AUTO(config_account) account = {0};
    struct yaml *tree = NULL;
    struct act_error err;

    if (!folder->account_file || !folder->path)
        return;
    ACT_AUTOFREE char *once = act_sprintf("%s %s", folder->account_file, folder->storage_type);
    if (act_strv_has(seen, once))
        return;
    act_strv_push(seen, once);
    if (config_account_read(config, folder, &account, &tree, f, &err) < 0)
        config_problem_text(f, act_error_text(&err));
    yaml_tree_free(tree);
}

void config_need(const struct config *config, const char *key, const char *value, struct config_findings *f)
{
    const struct yaml *platform = config_value(config, "platform");

    if (!value && !config_is_faulty(config, key, f))
        config_problem(f, platform ? platform : config->values->tree, "the platform '%s' needs '%s'", config->platform,
                       key);
}

/* Tells whether the platform is the one that the file means. An unknown one, or one whose key is misspelt, was replaced
 * by the default, of which nothing is needed. */
static bool has_platform(const struct config *c)
{
    const struct yaml *said = yaml_get(c->values->tree, "platform");

    return yaml_is_null(said) ? !config_misspelt_platform(c->values->tree) : act_streq(said->text, c->platform);
}

/* Checks what runs need; the verbs that start none work without it. */
static void config_check_platform(const struct config *c, struct config_findings *f)
{
    const struct config_kind *kind = config_kind_named(c->platform);

    if (!has_platform(c))
        return;
    config_need(c, "config_param.code_path", c->code.path, f);
    if (kind->check)
        kind->check(c, f);
}

void config_report_release(struct config_report *report)
{
    free(report->cluster);
    free(report->file);
    free(report->platform);
    act_strv_release(&report->problems);
    *report = (struct config_report){0};
}

int config_check(const struct config_request *request, struct config_report *out, struct act_error *err)
{
    return config_check_more(request, NULL, out, err);
}

int config_check_more(const struct config_request *request,
                      void (*more)(const struct config *config, struct config_findings *f), struct config_report *out,
                      struct act_error *err)
{
    ACT_AUTO(config_findings) f = {0};
    ACT_AUTO(act_strv) seen = {0};
    ACT_AUTO(config) c = {0};
    int rc = config_load_all(request, &c, &f, err);

    if (rc == 0) {
        config_check_platform(&c, &f);
        check_account(&c, &c.code, &seen, &f);
        for (size_t i = 0; i < c.n_folders; i++)
            check_account(&c, &c.folders[i], &seen, &f);
        if (more)
            more(&c, &f);
    } else if (rc == -ACT_CONFIG) {
        config_problem_text(&f, err ? act_error_text(err) : "not readable");
        rc = 0;
    }
    *out = (struct config_report){.cluster = act_strdup(c.cluster), .file = act_strdup(c.file)};
    if (c.values && has_platform(&c))
        out->platform = act_strdup(c.platform);
    config_findings_sort(&f);
    for (size_t i = 0; i < f.n; i++)
        act_strv_push(&out->problems, f.v[i].text);
    return rc;
}
