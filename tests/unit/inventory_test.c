/* inventory_test.c - what a node is, and what a run ran with, read from a made-up root. */
#define TEST_SETUP    make_dir
#define TEST_TEARDOWN remove_dir
#include "unit/temp_dir.h"
#include "unit/test.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/path.h"
#include "node/inventory.h"
#include "node/software.h"

static void inventory_test_make(const char *path)
{
    ACT_AUTOFREE char *full = test_path(path);

    assert_ok(act_mkdir_all(full, 0755, &err), err);
}

/* New string: the line that begins so; "": there is none. */
static char *inventory_test_line_of(const struct act_strv *lines, const char *name)
{
    for (size_t i = 0; i < lines->n; i++)
        if (act_starts_with(lines->v[i], name))
            return act_strdup(lines->v[i]);
    return act_strdup("");
}

TEST(test_files_of_the_system)
{
    const char *const places[] = {dir, dir, "/nowhere/at/all", NULL};
    ACT_AUTO(act_strv) lines = {0};

    test_write("etc/os-release", "ID=x\nPRETTY_NAME=\"Toy Linux 7 (seven)\"\n");
    test_write("proc/meminfo", "MemTotal:       16777216 kB\nMemFree: 1 kB\n");
    test_write("sys/class/infiniband/mlx5_1/ports/1/state", "1: DOWN\n");
    test_write("sys/class/infiniband/mlx5_0/ports/1/state", "4: ACTIVE\n");
    test_write("sys/class/infiniband/mlx5_0/ports/1/rate", "200 Gb/sec (4X HDR)\n");
    test_write("sys/class/infiniband/mlx5_0/ports/1/link_layer", "InfiniBand\n");
    test_write("proc/driver/nvidia/version", "NVRM version: NVIDIA UNIX x86_64 Kernel Module  535.1\nGCC\n");
    test_write("proc/driver/nvidia/gpus/0000:01:00.0/information", "Model: \t\t NVIDIA A100\nIRQ: 7\n");
    inventory_take(&(struct inventory){.root = dir, .places = places}, &lines);

    ACT_AUTOFREE char *system = inventory_test_line_of(&lines, "system: ");
    ACT_AUTOFREE char *disk = inventory_test_line_of(&lines, "disk: ");
    ACT_AUTOFREE char *ports = inventory_test_line_of(&lines, "InfiniBand: ");
    ACT_AUTOFREE char *gpus = inventory_test_line_of(&lines, "GPUs: ");
    ACT_AUTOFREE char *python = inventory_test_line_of(&lines, "Python");
    assert_true(act_starts_with(system, "system: Toy Linux 7 (seven), kernel "));
    assert_non_null(strstr(system, ", 16.0 GiB memory"));
    assert_non_null(strstr(disk, " free"));
    assert_null(strstr(strstr(disk, " free") + 1, " free")); /* one file system, once */
    assert_string_equal(ports, "InfiniBand: mlx5_0 port 1: 4: ACTIVE, 200 Gb/sec (4X HDR), InfiniBand, "
                               "mlx5_1 port 1: 1: DOWN, , ");
    assert_string_equal(gpus,
                        "GPUs: NVIDIA A100 (0000:01:00.0), NVRM version: NVIDIA UNIX x86_64 Kernel Module  535.1");
    assert_string_equal(python, "");
}

/* pyenv puts scripts where Python would be. */
TEST(test_python_that_is_a_script)
{
    const char *const places[] = {NULL};
    ACT_AUTO(act_strv) lines = {0};
    ACT_AUTOFREE char *python = test_path("shims/python3");

    test_write("shims/python3", "#!/bin/sh\n");
    inventory_take(&(struct inventory){.root = dir, .places = places, .python = python}, &lines);
    ACT_AUTOFREE char *line = inventory_test_line_of(&lines, "Python: ");
    assert_non_null(strstr(line, "a script: what it starts, and its packages, are not known"));
}

/* A root with nothing in it is told as far as the kernel itself knows it. */
TEST(test_nothing_there)
{
    const char *const places[] = {NULL};
    ACT_AUTO(act_strv) lines = {0};

    inventory_take(&(struct inventory){.root = dir, .places = places}, &lines);
    assert_true(lines.n >= 1);
    assert_true(act_starts_with(lines.v[0], "system: Linux, kernel "));
    for (size_t i = 0; i < lines.n; i++)
        assert_false(act_starts_with(lines.v[i], "disk") || act_starts_with(lines.v[i], "GPUs"));
}

/* <prefix>/bin/python3, a link to <target>. New string. */
static char *make_python(const char *prefix, const char *target)
{
    ACT_AUTOFREE char *bin = act_sprintf("%s/%s/bin", dir, prefix);
    ACT_AUTOFREE char *to = test_path(target);
    char *python = act_path_join(bin, "python3");

    assert_ok(act_mkdir_all(bin, 0755, &err), err);
    assert_int_equal(symlink(to, python), 0);
    return python;
}

TEST(test_packages)
{
    ACT_AUTO(act_strv) found = {0};

    test_write("base/bin/python3.11", "");
    ACT_AUTOFREE char *python = make_python("opt", "base/bin/python3.11");
    inventory_test_make("opt/lib/python3.11/site-packages/numpy-1.24.2.dist-info");
    inventory_test_make("opt/lib/python3.11/site-packages/zipp-1.0.0.dist-info");
    inventory_test_make("opt/lib/python3.11/site-packages/numpy");
    inventory_test_make("opt/lib/python3.11/site-packages/no-version.dist-info");
    inventory_test_make("opt/lib/python3.9/site-packages/old-1.0.dist-info");
    inventory_test_make("opt/lib64/python3.11/site-packages/zipp-1.0.0.dist-info");
    test_write("opt/lib/python3/dist-packages/PyYAML-6.0-py3.11.egg-info", "");
    inventory_test_make("home/.local/lib/python3.11/site-packages/mine-0.1+cu121.dist-info");
    ACT_AUTOFREE char *home = test_path("home");
    inventory_packages(python, home, NULL, &found);
    const char *const wanted[] = {"PyYAML==6.0", "mine==0.1+cu121", "numpy==1.24.2", "zipp==1.0.0"};
    assert_int_equal(found.n, 4);
    for (size_t i = 0; i < found.n; i++)
        assert_string_equal(found.v[i], wanted[i]);
}

TEST(test_packages_of_a_virtual_environment)
{
    ACT_AUTO(act_strv) alone = {0}, seeing = {0};

    test_write("base/bin/python3.11", "");
    inventory_test_make("base/lib/python3.11/site-packages/torch-2.1.0.dist-info");
    ACT_AUTOFREE char *python = make_python("venv", "base/bin/python3.11");
    inventory_test_make("venv/lib/python3.11/site-packages/pip-23.0.dist-info");
    inventory_test_make("home/.local/lib/python3.11/site-packages/mine-0.1.dist-info");
    ACT_AUTOFREE char *home = test_path("home");
    ACT_AUTOFREE char *config = act_sprintf("home = %s/base/bin\ninclude-system-site-packages = false\n", dir);
    test_write("venv/pyvenv.cfg", config);
    inventory_packages(python, home, NULL, &alone);
    assert_int_equal(alone.n, 1);
    assert_string_equal(alone.v[0], "pip==23.0");

    ACT_AUTOFREE char *open = act_sprintf("home=%s/base/bin\r\ninclude-system-site-packages = true \r\n", dir);
    test_write("venv/pyvenv.cfg", open);
    inventory_packages(python, home, NULL, &seeing);
    assert_int_equal(seeing.n, 3);
    assert_string_equal(seeing.v[2], "torch==2.1.0");
}

/* Of packages with the same name Python takes the first: of PYTHONPATH, the environment, the user, the system. */
TEST(test_packages_that_hide_others)
{
    ACT_AUTO(act_strv) found = {0};

    test_write("base/bin/python3.11", "");
    ACT_AUTOFREE char *python = make_python("venv", "base/bin/python3.11");
    ACT_AUTOFREE char *config = act_sprintf("home = %s/base/bin\ninclude-system-site-packages = true\n", dir);
    ACT_AUTOFREE char *home = test_path("home");
    ACT_AUTOFREE char *path = act_sprintf(":relative:%s/module/site-packages", dir);
    test_write("venv/pyvenv.cfg", config);
    inventory_test_make("module/site-packages/a-4.dist-info");
    inventory_test_make("venv/lib/python3.11/site-packages/a-3.dist-info");
    inventory_test_make("venv/lib/python3.11/site-packages/my_b-3.dist-info");
    inventory_test_make("home/.local/lib/python3.11/site-packages/c-2.dist-info");
    inventory_test_make("base/lib/python3.11/site-packages/My.B-1.dist-info");
    inventory_test_make("base/lib/python3.11/site-packages/c-1.dist-info");
    inventory_packages(python, home, path, &found);
    const char *const wanted[] = {"a==4", "c==2", "my_b==3"};
    assert_int_equal(found.n, 3);
    for (size_t i = 0; i < found.n; i++)
        assert_string_equal(found.v[i], wanted[i]);
}

/* ---- what a run ran with */

TEST(test_versions_that_are_printed)
{
    static const struct {
        char *(*read)(const char *text);
        const char *text, *version;
    } rows[] = {
        {software_driver, "NVIDIA UNIX x86_64 Kernel Module  535.104.05  Sat Aug 19 01:15:15 UTC 2023", "535.104.05"},
        {software_driver, "NVIDIA UNIX Open Kernel Module for x86_64  570.86.15  Release Build", "570.86.15"},
        {software_driver, "", NULL},
        {software_mpi, "mpirun (Open MPI) 4.1.4\n\nReport bugs to http://www.open-mpi.org/community/help/\n",
         "Open MPI 4.1.4"},
        {software_mpi, "HYDRA build details:\n    Version:                                 4.0.2\n", "MPICH 4.0.2"},
        {software_mpi, "Intel(R) MPI Library for Linux* OS, Version 2021.9 Build 20230307\nCopyright",
         "Intel(R) MPI Library for Linux* OS, Version 2021.9 Build 20230307"},
        {software_mpi, "usage: mpirun\n", NULL},
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        ACT_AUTOFREE char *version = rows[i].read(rows[i].text);
        assert_true(act_streq(version, rows[i].version));
    }
}

static struct node inventory_test_node(const char *command)
{
    struct node node = {.dir = dir, .code = dir, .name = "n1", .attempt = 2};

    act_strv_push(&node.spec.argv, command);
    return node;
}

TEST(test_what_a_run_ran_with)
{
    ACT_AUTO(run_environment) e = {0};
    ACT_AUTOFREE char *command = test_path("opt/bin/train"), *library = test_path("usr/lib64/libnccl.so.2");
    struct node node = inventory_test_node(command);

    test_write("base/bin/python3.11", "");
    ACT_AUTOFREE char *python = make_python("opt", "base/bin/python3.11");
    ACT_AUTOFREE char *first = act_sprintf("#!%s -s\nmain()\n", python);
    test_write("opt/bin/train", first);
    inventory_test_make("opt/lib/python3.11/site-packages/My_Tool-1.0.dist-info");
    test_write("etc/os-release", "PRETTY_NAME=\"Toy Linux 7\"\n");
    test_write("proc/driver/nvidia/version", "NVRM version: NVIDIA UNIX x86_64 Kernel Module  535.1  x\n");
    test_write("usr/local/cuda/version.json", "{\"cuda\": {\"name\": \"CUDA SDK\", \"version\": \"12.2.1\"}}");
    test_write("usr/lib64/libnccl.so.2.18.3", "");
    assert_int_equal(symlink("libnccl.so.2.18.3", library), 0);
    setenv("LOADEDMODULES", "cuda/12.2:openmpi", 1);
    setenv("HOME", dir, 1);
    unsetenv("PYTHONPATH");
    software_take(&node, dir, &e);
    unsetenv("LOADEDMODULES");

    assert_string_equal(e.python, python);
    assert_int_equal(e.packages.n, 1);
    assert_string_equal(e.packages.v[0], "my-tool==1.0");
    assert_int_equal(e.modules.n, 2);
    assert_string_equal(e.modules.v[1], "openmpi");
    assert_string_equal(e.system, "Toy Linux 7");
    assert_string_equal(e.driver, "535.1");
    assert_string_equal(e.cuda, "12.2.1");
    assert_string_equal(e.nccl, "2.18.3");
    assert_int_equal(e.attempt, 2);
    run_spec_release(&node.spec);
}

/* What the image of a run has is not what this machine has. */
TEST(test_a_run_in_an_image_says_its_image_alone)
{
    ACT_AUTO(run_environment) e = {0};
    struct node node = inventory_test_node("python3");

    node.spec.image = act_strdup("team/image:1");
    node.spec.container = act_strdup("apptainer");
    test_write("etc/os-release", "PRETTY_NAME=\"Toy Linux 7\"\n");
    software_take(&node, dir, &e);
    assert_string_equal(e.image, "team/image:1");
    assert_true(!e.python && !e.system && e.packages.n == 0);
    run_spec_release(&node.spec);
}

/* A Python that is chosen by a script says which it is. */
TEST(test_a_python_says_its_version)
{
    ACT_AUTO(run_environment) e = {0};
    ACT_AUTOFREE char *script = test_path("shims/python3");
    struct node node = inventory_test_node(script);

    test_write("shims/python3", "#!/bin/sh\nexec /usr/bin/python3 \"$@\"\n");
    assert_int_equal(chmod(script, 0700), 0);
    node.spec.nodes = node.spec.procs_per_node = 1;
    software_take(&node, dir, &e);
    assert_string_equal(e.python, script);
    assert_true(software_ask(&node, &e));
    assert_true(act_starts_with(e.python, "/usr/bin/python3"));
    assert_true(act_starts_with(e.python_version, "3."));
    run_spec_release(&node.spec);
}

/* Nobody writes into these. */
TEST(test_fifos_are_not_waited_for)
{
    const char *const places[] = {NULL};
    ACT_AUTOFREE char *python = test_path("venv/bin/python3"), *config = test_path("venv/pyvenv.cfg");
    ACT_AUTO(act_strv) lines = {0};

    inventory_test_make("venv/bin");
    assert_int_equal(mkfifo(python, 0600), 0);
    assert_int_equal(mkfifo(config, 0600), 0);
    inventory_take(&(struct inventory){.root = dir, .places = places, .python = python}, &lines);
    ACT_AUTOFREE char *line = inventory_test_line_of(&lines, "Python: ");
    assert_non_null(strstr(line, "0 packages"));
}

TEST_MAIN(NULL, NULL)
