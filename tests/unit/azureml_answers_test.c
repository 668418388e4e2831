/* azureml_answers_test.c - what Azure Machine Learning answers, in the shapes that it was recorded in: which members
 * there are, which of them are null, how times are written. tests/fixtures/azureml has the answers; names and numbers
 * are made up.
 *
 * Source of the shapes: the recorded traffic of the tests of azure-ai-ml (github.com/Azure/azure-sdk-for-python,
 * sdk/ml/azure-ai-ml/tests/recordings) and of promptflow (github.com/microsoft/promptflow, src/promptflow-recording).
 */
#include "auth/services.h"
#include "config/config.h"
#include "unit/script_server.h"

#include <stdio.h>

#include "base/file.h"
#include "codec/json.h"
#include "platform/azureml/azureml_internal.h"
#include "platform/clusters.h"

#define RUN     "exp_1795300000_0123abcd"
#define OK      "HTTP/1.1 200 OK\r\n\r\n"
#define CREATED 1777638896

static const char token[] = OK "{\"token_type\": \"Bearer\", \"expires_in\": 3599, \"access_token\": \"t\"}";

static json_t *fixture(const char *name)
{
    ACT_AUTOFREE char *path = act_sprintf("%s/fixtures/azureml/%s.json", TEST_DATA, name);
    json_t *json;

    assert_ok(codec_json_read(path, 1 << 20, &json, &err), err);
    return json;
}

/* ---- a platform whose service gives the answers of a script ---- */

struct bed {
    struct server server;
    struct step steps[8];
    size_t n;
    char *texts[8], *home, *url;
    struct services services;
    struct config config;
    struct aml_config_keys workspace;
    struct azureml_keys keys;
    struct config_part_values parts[2];
    struct azureml *a;
    struct act_error err;
};

/* The next answer is this text, or a fixture behind a status line. */
static void will_say(struct bed *b, const char *head, const char *name)
{
    CODEC_AUTOJSON json_t *json = name ? fixture(name) : NULL;
    ACT_AUTOFREE char *body = name ? codec_json_line(json) : act_strdup("");

    b->texts[b->n] = act_sprintf("%s%s", head, body);
    b->steps[b->n] = (struct step){b->texts[b->n], CLOSE};
    b->n++;
}

/* The next answer is that the run is in this state. */
static void will_be(struct bed *b, const char *state)
{
    ACT_AUTOFREE char *text = act_sprintf(OK "{\"runId\": \"%s\", \"status\": \"%s\"}", RUN, state);

    will_say(b, text, NULL);
}

static void azureml_answers_test_prepare(struct bed *b, const char *platform)
{
    char home[] = "/tmp/act-answers-XXXXXX";

    *b = (struct bed){0};
    assert_non_null(mkdtemp(home));
    b->home = act_strdup(home);
    b->workspace = (struct aml_config_keys){act_strdup("s"), act_strdup("rg"), act_strdup("ws")};
    b->parts[0] = (struct config_part_values){&aml_config_keys_part, &b->workspace};
    b->parts[1] = (struct config_part_values){&azureml_keys_part, &b->keys};
    b->config = (struct config){.cluster = act_strdup("c1"),
                                .file = act_strdup("c1.yaml"),
                                .platform = act_strdup(platform),
                                .parts = b->parts,
                                .n_parts = COUNT(b->parts),
                                .compute_target = act_strdup("gpu"),
                                .singularity_sla_tier = act_strdup("Premium"),
                                .experiment_name = act_strdup("exp"),
                                .gpu_per_node = 4};
    will_say(b, token, NULL);
}

static struct platform *azureml_answers_test_begin(struct bed *b)
{
    struct platform *p = NULL;

    server_start(&b->server, b->steps, b->n);
    b->url = act_sprintf("http://127.0.0.1:%d", b->server.port);
    setenv("ACT_HOME", b->home, 1);
    setenv("AZURE_AUTHORITY_HOST", b->url, 1);
    setenv("ACT_TRUSTED_HOSTS", "127.0.0.1", 1);
    setenv("AZURE_TENANT_ID", "11111111-0000-0000-0000-000000000001", 1);
    setenv("AZURE_CLIENT_ID", "22222222-0000-0000-0000-000000000001", 1);
    setenv("AZURE_CLIENT_SECRET", "the~secret", 1);
    b->keys.endpoint = b->url;
    b->keys.history_endpoint = b->url;
    assert_ok(platform_open(&b->services, &b->config, &p, &b->err), b->err);
    b->a = azureml_of(p);
    return p;
}

/* All that was to be said was asked for. */
static void azureml_answers_test_end(struct bed *b)
{
    platform_free(&b->a->base);
    services_close(&b->services);
    server_stop(&b->server);
    assert_int_equal(b->server.requests_n, b->n);
    for (size_t i = 0; i < b->n; i++)
        free(b->texts[i]);
    assert_ok(act_remove_tree(b->home, &b->err), b->err);
    struct config *c = &b->config;
    char *owned[] = {c->cluster,
                     c->file,
                     c->platform,
                     b->workspace.subscription_id,
                     b->workspace.resource_group,
                     b->workspace.workspace_name,
                     c->compute_target,
                     c->singularity_sla_tier,
                     c->experiment_name,
                     b->home,
                     b->url};
    for (size_t i = 0; i < COUNT(owned); i++)
        free(owned[i]);
}

/* ---- jobs and runs ---- */

TEST(a_job)
{
    struct bed b;
    ACT_AUTO(run_spec) spec = {0};
    struct run_status status;

    azureml_answers_test_prepare(&b, "aml");
    will_say(&b, OK, "job");
    struct platform *p = azureml_answers_test_begin(&b);
    assert_ok(azureml_spec(p, RUN, &spec, &b.err), b.err);
    assert_int_equal(spec.created_unix_s, CREATED);
    assert_string_equal(spec.argv.v[1], "train.py");
    assert_true(spec.nodes == 2 && spec.procs_per_node == 4 && spec.gpus_per_node == 4);
    assert_int_equal(spec.n_env, 1);
    assert_null(spec.package_key);

    CODEC_AUTOJSON json_t *job = fixture("job");
    azureml_read_run(json_object_get(job, "properties"), &status);
    assert_int_equal(status.state, RUN_QUEUED);
    assert_non_null(strstr(status.reason, "3 in the cluster"));
    azureml_answers_test_end(&b);
}

TEST(runs)
{
    static const struct {
        enum run_state state;
        int64_t started, ended;
        const char *part;
        int exit_status;
    } rows[] = {{RUN_RUNNING, CREATED + 70, 0, "", 0},
                {RUN_COMPLETED, CREATED + 70, CREATED + 81, "", 0},
                {RUN_FAILED, CREATED + 70, CREATED + 81, "ExitedWithError: Execution failed", 7},
                {RUN_CANCELED, 0, CREATED + 81, "", 0}};
    CODEC_AUTOJSON json_t *list = fixture("runs");

    assert_int_equal(json_array_size(list), COUNT(rows));
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct run_status s;
        azureml_read_run(json_array_get(list, i), &s);
        if (s.state != rows[i].state || s.started_unix_s != rows[i].started || s.ended_unix_s != rows[i].ended ||
            !strstr(s.reason, rows[i].part) || s.exit_status != rows[i].exit_status)
            fail_msg("row %zu: %s, %lld, %lld, '%s', %d", i, run_state_name(s.state), (long long)s.started_unix_s,
                     (long long)s.ended_unix_s, s.reason, s.exit_status);
    }
}

/* ---- what ends a run ---- */

TEST(a_cancel_says_null)
{
    struct bed b;
    bool was_final = true;

    azureml_answers_test_prepare(&b, "aml");
    will_be(&b, "Running");
    will_say(&b,
             "HTTP/1.1 202 Accepted\r\nContent-Type: application/json; charset=utf-8\r\nContent-Length: 4\r\n"
             "Location: https://management.azure.com/mfeOperationResults/jc:w:r?api-version=v\r\n\r\nnull",
             NULL);
    struct platform *p = azureml_answers_test_begin(&b);
    assert_ok(platform_abort(p, RUN, &was_final, &b.err), b.err);
    assert_false(was_final);
    azureml_answers_test_end(&b);
}

TEST(a_cancel_that_comes_too_late)
{
    static const char *const after[] = {"Completed", "Running"};

    for (size_t i = 0; i < COUNT(after); i++) {
        struct bed b;
        bool was_final = false;
        azureml_answers_test_prepare(&b, "aml");
        will_be(&b, "Running");
        will_say(&b, "HTTP/1.1 400 Bad Request\r\n\r\n", "cancel_refused");
        will_be(&b, after[i]);
        struct platform *p = azureml_answers_test_begin(&b);
        int rc = platform_abort(p, RUN, &was_final, &b.err);
        assert_int_equal(rc, i == 0 ? 0 : -ACT_FAIL);
        assert_int_equal(was_final, i == 0);
        if (rc < 0) {
            assert_string_equal(b.err.service_code, "CancelRunInTerminalStatus");
            assert_string_equal(b.err.request_id, "o1");
        }
        azureml_answers_test_end(&b);
    }
}

/* ---- clusters ---- */

TEST(clusters)
{
    struct platform_clusters found;
    struct bed b;

    azureml_answers_test_prepare(&b, "aml");
    will_say(&b, OK, "clusters"); /* the last page has no nextLink */
    struct platform *p = azureml_answers_test_begin(&b);
    assert_ok(platform_list_clusters(p, &found, &b.err), b.err);
    assert_int_equal(found.n, 2);
    const struct platform_cluster *ready = &found.v[0], *new = &found.v[1];
    assert_true(ready->is_managed && ready->idle_s == 100 && ready->max_nodes == 4);
    assert_true(ready->nodes == 3 && ready->running == 1 && ready->idle == 2 && ready->unusable == 0);
    assert_string_equal(ready->admin_user, "azureuser");
    assert_string_equal(new->state, "Creating");
    assert_true(new->nodes == -1 && new->target_nodes == -1 && new->running == -1 && new->max_nodes == 4);
    assert_true(!new->admin_user && !new->allocation && !new->error);
    platform_clusters_release(&found);
    azureml_answers_test_end(&b);
}

TEST(a_cluster_that_is_not_there)
{
    struct platform_cluster found;
    struct bed b;

    azureml_answers_test_prepare(&b, "aml");
    will_say(&b, "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\nx-ms-correlation-request-id: c1\r\n\r\n", NULL);
    struct platform *p = azureml_answers_test_begin(&b);
    assert_int_equal(platform_get_cluster(p, "none", &found, &b.err), -ACT_NOT_FOUND);
    assert_non_null(strstr(act_error_text(&b.err), "cannot look at the cluster 'none': HTTP 404: there is none"));
    assert_contains(act_error_text(&b.err), "'a cluster list'");
    azureml_answers_test_end(&b);
}

/* Of the family of processors and of other tiers nothing. */
TEST(quotas_of_a_virtual_cluster)
{
    struct platform_summary found;
    struct bed b;

    azureml_answers_test_prepare(&b, "singularity");
    will_say(&b, OK, "virtual_cluster");
    will_say(&b, OK "{\"value\": []}", NULL);
    struct platform *p = azureml_answers_test_begin(&b);
    assert_ok(platform_summary(p, &found, &b.err), b.err);
    assert_int_equal(found.n_pools, 3);
    assert_string_equal(found.pools[0].name, "eastus/NCv3");
    assert_string_equal(found.pools[1].name, "eastus/NDv2");
    assert_string_equal(found.pools[2].name, "westus2/NDv2");
    assert_true(found.total.gpus == 160 && found.total.gpus_busy == 11 && found.total.gpus_idle == 149);
    platform_summary_release(&found);
    azureml_answers_test_end(&b);
}

TEST_MAIN(NULL, NULL)
