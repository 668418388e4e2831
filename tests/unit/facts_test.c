/* What a platform's row says decides what is done with it, whatever it is called. */
#define TEST_SETUP    facts_test_set_up
#define TEST_TEARDOWN facts_test_tear_down
#include "auth/services.h"
#include "config/kind.h"
#include "unit/test.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/path.h"
#include "base/text.h"
#include "config/config.h"
#include "fake/platform.h"
#include "flow/flow.h"
#include "flow/flow_internal.h"
#include "flow/runs/runs.h"
#include "flow/submit/parts.h"
#include "flow/submit/submit.h"
#include "ledger/ledger.h"
#include "run/run.h"

static char *scratch;
static struct flow flow;

static int facts_test_set_up(void **state)
{
    static const char yaml[] = "platform: fake\nfake:\n  login: me@here\nexperiment_name: facts\n";
    ACT_AUTOFREE char *file = act_path_join(scratch, "aux_data/aml/lab.yaml");
    ACT_AUTOFREE char *home = act_path_join(scratch, "home");
    struct config_request request = {.cluster = "lab", .start_dir = scratch};

    (void)state;
    setenv("ACT_HOME", home, 1);
    setenv("ACT_TRUSTED_PROJECTS", "*", 1); /* its login node is this machine */
    fake_reset();
    assert_ok(act_file_write(file, yaml, strlen(yaml), 0600, &err), err);
    assert_ok(flow_open(&request, &flow, &err), err);
    return 0;
}

static int facts_test_tear_down(void **state)
{
    (void)state;
    flow_close(&flow);
    assert_int_equal(fake.n_close, fake.n_open);
    return 0;
}

/* Submits a run that is running again, with this outcome. */
static void facts_test_resubmit(int code)
{
    struct run_spec first = {.experiment = act_strdup("facts"),
                             .cluster = act_strdup("lab"),
                             .platform = act_strdup("fake"),
                             .project_root = act_strdup(scratch),
                             .nodes = 1,
                             .procs_per_node = 1,
                             .created_unix_s = act_now_unix_s()};
    struct flow_submit again = {0};
    ACT_AUTO(flow_run) old = {.status = fake.status};
    struct platform *platform;

    fake.fail_submit = 0;
    first.id = run_id_new("facts", first.created_unix_s);
    act_strv_push(&first.argv, "true");
    assert_ok(flow_platform(&flow, &platform, &err), err);
    assert_ok(flow_start_run(&flow, platform, &first, NULL, &err), err);
    old.spec = first;
    old.row = flow_row_of(&first);
    fake.fail_submit = code;
    fake.did[0] = '\0';
    int rc = flow_resubmit(&flow, &old, &flow, &flow, &again, &err);
    run_spec_release(&again.spec);
    assert_int_equal(rc, -code);
}

TEST(what_may_be_refused_comes_first)
{
    facts_test_resubmit(0);
    assert_string_equal(fake.did, "submit abort ");
    facts_test_resubmit(ACT_DENIED);
    assert_string_equal(fake.did, "submit ");
    assert_non_null(strstr(act_error_text(&err), "' goes on"));
    assert_null(strstr(act_error_text(&err), "a abort"));
    facts_test_resubmit(ACT_NO_CAPACITY);
    assert_string_equal(fake.did, "submit ");
    assert_non_null(strstr(act_error_text(&err), "' comes first"));
}

TEST(a_ledger_takes_runs_that_nobody_lists)
{
    struct flow bare;

    assert_int_equal(chdir(scratch), 0);
    for (int listed = 0; listed < 2; listed++) {
        flow_open_bare("lab", &bare);
        fake.row.about.keeps_list = listed;
        fake.did[0] = '\0';
        assert_ok(flow_rebuild(&bare, &err), err);
        assert_string_equal(fake.did, listed ? "" : "list ");
        flow_close(&bare);
    }
}

/* One that has no row is none of them, and says so when it is opened. */
TEST_IN(nobody_drives_a_name_without_a_row, NULL, NULL)
{
    struct config config = {.platform = (char[]){"k8s"}};
    struct services services = {0};
    struct platform *platform;

    assert_false(platform_find("k8s")->about.is_here);
    assert_fails(platform_open(&services, &config, &platform, &err), err, ACT_CONFIG, "'k8s' cannot be driven");
    assert_string_equal(platform_here()->kind->name, "local");
}

int main(void)
{
    char folder[] = "/tmp/act-facts-test.XXXXXX";

    scratch = realpath(mkdtemp(folder), NULL);
    fake_reset();
    platform_begin();
    int failed = tests_run(NULL, NULL);
    if (act_remove_tree(scratch, &err) < 0)
        failed++;
    free(scratch);
    return failed;
}
