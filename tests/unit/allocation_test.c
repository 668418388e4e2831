/* allocation_test.c - the job of a batch system in which this process runs, by its variables. */
#include "unit/test.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "platform/local/allocation.h"

static const char *const *variables; /* name, value, ..., NULL */

static const char *get_variable(const char *name)
{
    for (const char *const *v = variables; *v; v += 2)
        if (strcmp(v[0], name) == 0)
            return v[1];
    return NULL;
}

TEST(test_jobs)
{
    static const struct {
        const char *variables[12];
        const char *system, *job;
        int processors;
        int64_t memory_mib;
    } cases[] = {
        {{"SLURM_JOB_ID", "4711", "SLURMD_NODENAME", "n3", "SLURM_CPUS_ON_NODE", "8", "SLURM_MEM_PER_NODE", "64000"},
         "Slurm",
         "4711",
         8,
         64000},
        {{"SLURM_JOB_ID", "4711", "SLURMD_NODENAME", "n3", "SLURM_CPUS_ON_NODE", "8", "SLURM_MEM_PER_CPU", "100"},
         "Slurm",
         "4711",
         8,
         800},
        {{"SLURM_JOB_ID", "4711", "SLURM_JOB_NODELIST", "n1,n3"}, "Slurm", "4711", 0, 0},
        {{"SLURM_JOB_ID", "4711", "SLURM_JOB_NODELIST", "n31"}, NULL, NULL, 0, 0}, /* salloc, elsewhere */
        {{"SLURM_JOB_ID", "4711", "SLURM_CPUS_ON_NODE", "8"}, NULL, NULL, 0, 0},
        {{"PBS_JOBID", "12.server", "PBS_ENVIRONMENT", "PBS_BATCH", "NCPUS", "4"}, "PBS", "12.server", 4, 0},
        {{"PBS_DEFAULT", "server"}, NULL, NULL, 0, 0},
        {{"LSB_JOBID", "7", "LSB_MCPU_HOSTS", "n2 2 n3 6"}, "LSF", "7", 6, 0},
        {{"PBS_JOBID", "12[3].server", "PBS_ENVIRONMENT", "PBS_INTERACTIVE", "PBS_NUM_PPN", "2"},
         "PBS",
         "12[3].server",
         2,
         0}, /* Torque */
        {{"LSB_JOBID", "7", "LSB_JOBINDEX", "0", "LSB_MCPU_HOSTS", "n3.site.org 6 n31 2"}, "LSF", "7", 6, 0},
        {{"LSB_JOBID", "7", "LSB_JOBINDEX", "2", "LSB_HOSTS", "n2 n3 n3"}, "LSF", "7[2]", 2, 0},
        {{"LSB_JOBID", "7", "LSB_MCPU_HOSTS", "n2 2"}, NULL, NULL, 0, 0},
        {{"LSB_JOBID", "7", "LSB_HOSTS", "n2"}, NULL, NULL, 0, 0},
        {{"LSB_JOBID", "7", "LSB_MCPU_HOSTS", "n3 x n2"}, "LSF", "7", 0, 0},
        {{"JOB_ID", "5", "SGE_TASK_ID", "undefined", "NHOSTS", "1", "NSLOTS", "12"}, "Grid Engine", "5", 12, 0},
        {{"JOB_ID", "5", "SGE_TASK_ID", "1", "NHOSTS", "2", "NSLOTS", "12"}, "Grid Engine", "5.1", 0, 0},
        {{"JOB_ID", "5"}, NULL, NULL, 0, 0}, /* of anybody */
        {{"FLUX_JOB_ID", "f1234", "FLUX_ENCLOSING_ID", "f1"}, "Flux", "f1234", 0, 0},
        {{"FLUX_ENCLOSING_ID", "f1", "FLUX_URI", "local:///x"}, "Flux", "f1", 0, 0}, /* 'flux alloc' */
        {{"FLUX_URI", "local:///x"}, NULL, NULL, 0, 0},
        {{"SLURM_JOB_ID", "4711", "SLURMD_NODENAME", "n3", "SLURM_CPUS_ON_NODE", "-8"}, "Slurm", "4711", 0, 0},
        {{NULL}, NULL, NULL, 0, 0},
    };

    for (size_t i = 0; i < COUNT(cases); i++) {
        struct allocation a;
        variables = cases[i].variables;
        allocation_read(get_variable, "n3", &a);
        assert_true(act_streq(a.system, cases[i].system));
        assert_string_equal(a.job, cases[i].job ? cases[i].job : "");
        assert_int_equal(a.processors, cases[i].processors);
        assert_int_equal(a.memory, cases[i].memory_mib << 20);
    }
}

/* A parallel job of Grid Engine on several hosts. */
TEST(test_a_host_file)
{
    char path[] = "/tmp/act-hosts-XXXXXX";
    int fd = mkstemp(path);
    static const char text[] = "n2 4 all.q@n2 UNDEFINED\nn3.site.org 6 all.q@n3 0,0:0,1\nbroken\n";
    const char *const job[] = {"JOB_ID", "5",  "SGE_TASK_ID", "undefined", "NHOSTS", "2",
                               "NSLOTS", "10", "PE_HOSTFILE", path,        NULL};
    struct allocation a;

    assert_int_equal(write(fd, text, sizeof(text) - 1), sizeof(text) - 1);
    close(fd);
    variables = job;
    allocation_read(get_variable, "n3", &a);
    assert_int_equal(a.processors, 6);
    assert_string_equal(a.job, "5");
    unlink(path);
}

TEST(test_the_time_that_is_left)
{
    static const struct {
        const char *text;
        int plain_s, last_s;
        int64_t seconds;
    } cases[] = {
        {"1-02:03:04\n", 60, 1, 93784},
        {"59:59\n", 60, 1, 3599},
        {"2:00:00", 60, 1, 7200},
        {"90\n", 60, 1, 5400},
        {"3600\n", 1, 1, 3600},
        {"12.5\n", 1, 1, 12},
        {"UNLIMITED\n", 60, 1, -1},
        {"INVALID", 60, 1, -1},
        {"", 60, 1, -1},
        {"x-1:00", 60, 1, -1},
        {"NOT_SET\n", 60, 1, -1},
        {"99999999999", 60, 1, -1},
        {"1:30 L\n", 60, 60, 5400},
        {"45 E\n", 60, 60, 2700}, /* LSF: hours and minutes */
        {"-\n", 60, 60, -1},
        {"inf\n", 1, 1, -1},
    };

    for (size_t i = 0; i < COUNT(cases); i++)
        assert_int_equal(allocation_time_s(cases[i].text, cases[i].plain_s, cases[i].last_s), cases[i].seconds);
}

TEST_MAIN(NULL, NULL)
