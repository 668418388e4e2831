/* environment_test.c - which variables programs see, and that the document says the same. */
#include "unit/test.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/text.h"
#include "proc/environment.h"
#include "proc/proc.h"

#define DOCUMENT TEST_DATA "/../docs/reference/environment.md"

/* The letters of those kinds that do not see it, in the order of the enumeration. */
static void kept_from(const char *name, char out[N_ENVIRONMENTS + 1])
{
    static const char letters[] = "usjrctSapmd";

    for (int i = 0; i < N_ENVIRONMENTS; i++)
        if (!environment_shows((enum environment_of)i, name))
            *out++ = letters[i];
    *out = '\0';
}

/* What says how srun starts processes is kept from a new job where it may be the old job's. */
TEST(test_what_may_be_of_a_job)
{
    static const char *const either[] = {"SLURM_MPI_TYPE",      "SLURM_CPU_BIND", "SLURM_DISTRIBUTION",
                                         "SLURM_TASK_PROLOG",   "SLURM_TMPDIR",   "SLURM_PMIX_DIRECT_CONN",
                                         "SLURM_DIST_PLANESIZE"};
    static const char *const never[] = {"SLURM_CPU_BIND_LIST", "SLURM_HINT", "SLURM_JOB_ID", "SLURM_NTASKS"};
    char got[N_ENVIRONMENTS + 1];

    for (int in_job = 0; in_job < 2; in_job++) {
        if (in_job)
            setenv("SLURM_JOB_ID", "7", 1);
        for (size_t i = 0; i < COUNT(either); i++) {
            kept_from(either[i], got);
            assert_string_equal(got, in_job ? "sjr" : "");
        }
        for (size_t i = 0; i < COUNT(never); i++) {
            kept_from(never[i], got);
            assert_string_equal(got, "sjr");
        }
    }
    unsetenv("SLURM_JOB_ID");
}

TEST(test_table)
{
    static const struct {
        const char *name, *kept_from;
    } samples[] = {
        {"PATH", ""},
        {"LD_PRELOAD", ""},
        {"https_proxy", ""},
        {"CUDA_VISIBLE_DEVICES", ""},
        {"HF_TOKEN", ""},
        {"SLURM_CONF", ""},
        {"SLURM_CONFIG", "sjr"},
        {"SLURM_SACK_SOCKET", ""},
        {"SLURM_JOB_ID", "sjr"},
        {"SLURM_MEM_PER_NODE", "sjr"},
        {"SLURM_ARRAY_TASK_ID", "sjr"},
        {"SLURM_RESTART_COUNT", "sjr"},
        {"SLURMD_NODENAME", "sjr"},
        {"SRUN_EXPORT_ENV", "sjr"},
        {"SBATCH_ACCOUNT", ""},
        {"SBATCH_ACCOUNTS", "sjr"},
        {"SBATCH_WAIT", "sjr"},
        {"SBATCH_WAIT4SWITCH", ""},
        {"SBATCH_GRES", "sjr"},
        {"SCANCEL_INTERACTIVE", "sj"},
        {"SQUEUE_FORMAT", "sj"},
        {"PBS_JOBID", "sjr"},
        {"PBS_SERVER", ""},
        {"LSB_JOBID", "sjr"},
        {"JOB_ID", ""},
        {"PE_HOSTFILE", "sjr"},
        {"FLUX_URI", "sjr"},
        {"OMPI_MCA_btl", ""},
        {"OMPI_MCA_orte_base_help_aggregate", ""},
        {"OMPI_MCA_orte_hnp_uri", "sjrt"},
        {"OMPI_COMM_WORLD_RANK", "sjrt"},
        {"PMIX_RANK", "sjrt"},
        {"PMIX_MCA_gds", ""},
        {"PMIX_PREFIX", ""},
        {"PMI_FD", "sjrt"},
        {"PMI_NO_FORK", ""},
        {"TORCHELASTIC_RUN_ID", "sjrt"},
        {"ACT_RUN_ID", "sjr"},
        {"ACT_ABORT_GRACE", ""},
        {"AZUREML_CR_NODE_RANK", "sjr"},
        {"AZURE_STORAGE_KEY", "sjcSapmd"},
        {"AZURE_STORAGE_SAS_TOKEN", "sjcSapmd"},
        {"AZURE_BATCHAI_STORAGE_KEY", "sjcSapmd"},
        {"AZURE_BATCHAI_STORAGE_ACCOUNT", ""},
        {"AZURE_STORAGE_ACCOUNT", "m"},
        {"AZURE_CLIENT_SECRET", "sjcSam"},
        {"AZURE_CLIENT_ID", ""},
        {"IDENTITY_HEADER", "sjSm"},
        {"RCLONE_CONFIG_ACT_TYPE", "m"},
    };

    for (size_t i = 0; i < COUNT(samples); i++) {
        ACT_AUTOFREE char *variable = act_sprintf("%s=value", samples[i].name);
        char got[N_ENVIRONMENTS + 1], of_variable[N_ENVIRONMENTS + 1];
        kept_from(samples[i].name, got);
        kept_from(variable, of_variable);
        if (strcmp(got, samples[i].kept_from) != 0)
            fail_msg("%s is kept from '%s', not '%s'", samples[i].name, got, samples[i].kept_from);
        assert_string_equal(of_variable, got);
    }
}

/* A row that no name reaches says nothing. */
TEST(test_every_row_counts)
{
    struct environment_row row;

    setenv("SLURM_JOB_ID", "7", 1);
    for (int i = 0; environment_get_row(i, &row); i++)
        for (const char *name = row.names; *name; name += strspn(name, " ")) {
            size_t len = strcspn(name, " ");
            ACT_AUTOFREE char *sample = act_sprintf("%.*sX", (int)len - (name[len - 1] == '*'), name);
            sample[strlen(sample) - (name[len - 1] != '*')] = '\0';
            for (int k = 0; k < N_ENVIRONMENTS; k++)
                if (environment_shows((enum environment_of)k, sample) != !(row.kept_from & 1U << k))
                    fail_msg("an earlier row than its own has %s", sample);
            name += len;
        }
    unsetenv("SLURM_JOB_ID");
}

static bool environment_test_has(const struct act_strv *env, const char *variable)
{
    return act_strv_has(env, variable);
}

TEST(test_make)
{
    char *const set[] = {(char[]){"MINE=2"}, (char[]){"SLURM_JOB_ID=of the caller"}, NULL};
    ACT_AUTO(act_strv) env = {0}, plain = {0};

    setenv("MINE", "1", 1);
    setenv("MINES", "1", 1);
    setenv("SLURM_JOB_ID", "7", 1);
    setenv("SLURM_NTASKS", "7", 1);
    setenv("SLURM_MPI_TYPE", "pmix", 1);
    environment_make(OF_JOB, set, &env);
    environment_make(OF_USER, NULL, &plain);
    assert_true(environment_test_has(&env, "MINE=2") && !environment_test_has(&env, "MINE=1") &&
                environment_test_has(&env, "MINES=1"));
    assert_true(environment_test_has(&env, "SLURM_JOB_ID=of the caller") &&
                !environment_test_has(&env, "SLURM_JOB_ID=7"));
    assert_true(!environment_test_has(&env, "SLURM_MPI_TYPE=pmix") && !environment_test_has(&env, "SLURM_NTASKS=7") &&
                environment_test_has(&plain, "SLURM_NTASKS=7") && environment_test_has(&plain, "MINE=1"));
}

TEST(test_reduce)
{
    ACT_AUTO(act_strv) taken = {0};

    setenv("PMIX_RANK", "0", 1);
    setenv("PMIX_NAMESPACE", "x=y", 1);
    setenv("PMIX_MCA_gds", "hash", 1);
    environment_reduce(OF_STARTER, &taken);
    assert_null(getenv("PMIX_RANK"));
    assert_string_equal(getenv("PMIX_MCA_gds"), "hash");
    assert_int_equal(taken.n, 2);
    assert_true(environment_test_has(&taken, "PMIX_RANK=0") && environment_test_has(&taken, "PMIX_NAMESPACE=x=y"));
}

/* Whoever starts a program may hand anything over; what has no '=' cannot be unset. */
TEST(test_reduce_of_what_has_no_value)
{
    char *odd[] = {(char[]){"SLURM_JOB_NAME"}, (char[]){"KEPT"},        (char[]){""}, (char[]){"=x"},
                   (char[]){"PMIX_RANK=0"},    (char[]){"PMIX_RANK=1"}, NULL};
    char **mine = environ;
    ACT_AUTO(act_strv) taken = {0};

    environ = odd;
    environment_reduce(OF_RUN, &taken);
    size_t n = 0;
    while (environ[n])
        n++;
    environ = mine;
    assert_int_equal(n, 3);
    assert_int_equal(taken.n, 3);
    assert_true(environment_test_has(&taken, "SLURM_JOB_NAME") && environment_test_has(&taken, "PMIX_RANK=0") &&
                environment_test_has(&taken, "PMIX_RANK=1"));
}

/* The job's own number is taken out first, and what may be of the job thereafter. */
TEST(test_reduce_in_a_job)
{
    char *in_job[] = {(char[]){"SLURM_JOB_ID=7"}, (char[]){"SLURM_MPI_TYPE=pmix"}, (char[]){"KEPT=1"}, NULL};
    char *outside[] = {(char[]){"SLURM_JOB_NAME=x"}, (char[]){"SLURM_MPI_TYPE=pmix"}, (char[]){"KEPT=1"}, NULL};
    char **mine = environ;

    environ = in_job;
    environment_reduce(OF_JOB, NULL);
    environ = outside;
    environment_reduce(OF_JOB, NULL);
    environ = mine;
    assert_string_equal(in_job[0], "KEPT=1");
    assert_null(in_job[1]);
    assert_string_equal(outside[0], "SLURM_MPI_TYPE=pmix");
    assert_string_equal(outside[1], "KEPT=1");
    assert_null(outside[2]);
}

/* Shells do as this program does, whatever is in values. */
TEST(test_script)
{
    ACT_AUTOFREE char *reduce = environment_script(OF_SLURM);
    ACT_AUTOFREE char *script = act_sprintf(
        "%s\necho \"$SLURM_CONF,$SLURM_JOB_ID,$SQUEUE_FORMAT,$SBATCH_QOS,$SBATCH_WAIT,$SLURM_MPI_TYPE,$ODD\"", reduce);
    static const char *const shells[] = {"sh", "bash"};

    setenv("SLURM_CONF", "conf", 1);
    setenv("SLURM_JOB_ID", "7", 1);
    setenv("SQUEUE_FORMAT", "%i", 1);
    setenv("SBATCH_QOS", "high", 1);
    setenv("SBATCH_WAIT", "1", 1);
    setenv("SLURM_MPI_TYPE", "pmix", 1);
    setenv("ODD", "a\nSLURM_X=1\n$(false) '\"", 1);
    for (size_t i = 0; i < 2 * COUNT(shells); i++) {
        bool in_job = i < COUNT(shells);
        char *const argv[] = {act_strdup(shells[i % COUNT(shells)]), (char[]){"-c"}, script, NULL};
        ACT_AUTOFREE char *out = NULL;
        int status;
        assert_ok(proc_run(argv, PATIENCE_S, 1000, &out, &status, &err), err);
        assert_string_equal(out, in_job ? "conf,,,high,,,a\nSLURM_X=1\n$(false) '\"\n"
                                        : "conf,,,high,,pmix,a\nSLURM_X=1\n$(false) '\"\n");
        free(argv[0]);
        if (i + 1 == COUNT(shells))
            unsetenv("SLURM_JOB_ID");
    }
}

/* ---- the document */

static void environment_test_add_row(const struct environment_row *row, struct act_buf *out)
{
    act_buf_adds(out, "| ");
    for (const char *name = row->names; *name; name += strspn(name, " ")) {
        size_t len = strcspn(name, " ");
        act_buf_addf(out, "%s`%.*s`", name == row->names ? "" : ", ", (int)len, name);
        name += len;
    }
    act_buf_adds(out, " | ");
    for (int k = 0, n = 0; k < N_ENVIRONMENTS; k++)
        if (row->kept_from & 1U << k)
            act_buf_addf(out, "%s%s", n++ ? ", " : "", environment_name((enum environment_of)k));
    act_buf_addf(out, "%s%s | %s |\n", row->kept_from ? "" : "nobody",
                 row->kept_from & ENVIRONMENT_IN_JOB ? ", in a job of Slurm" : "", row->because);
}

/* To mend it, copy there what this prints when it fails. */
TEST(test_document)
{
    static const char head[] = "| variables | kept from | because they |\n|---|---|---|\n";
    ACT_AUTO(act_buf) wanted = {0};
    ACT_AUTOFREE char *text = NULL;
    struct environment_row row;

    act_buf_adds(&wanted, head);
    for (int i = 0; environment_get_row(i, &row); i++)
        environment_test_add_row(&row, &wanted);
    act_buf_addc(&wanted, '\n');
    assert_ok(act_file_read(DOCUMENT, 1 << 20, &text, NULL, &err), err);
    if (!strstr(text, wanted.data))
        fprintf(stderr, "%s", wanted.data);
    assert_non_null(strstr(text, wanted.data));
}

TEST_MAIN(NULL, NULL)
