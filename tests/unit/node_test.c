/* node_test.c - where a node of a run keeps its things, and the words that bring a command into the run's container. */
#include "unit/temp_dir.h"
#include "unit/test.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/file.h"
#include "base/path.h"
#include "node/container.h"
#include "node/env.h"
#include "node/place.h"
#include "node/room.h"
#include "node/setup.h"
#include "node/slots.h"

#define RUN_A "exp_1700000000_0123abcd"
#define RUN_B "exp_1700000001_0123abcd"

static char *base_dir(void)
{
    return act_sprintf("%s/act-%u", dir, (unsigned)getuid());
}

static bool node_test_is_there(const char *path)
{
    return access(path, F_OK) == 0;
}

/* Strings of a struct node are its own, those of the specification too. */
static struct node node_test_make(const char *id, int nodes, const char *scratch)
{
    struct node node = {.dir = act_sprintf("/shared/%s", id), .code = act_sprintf("/shared/%s/code", id)};

    strcpy(node.name, "n1");
    node.spec = (struct run_spec){
        .id = act_strdup(id), .nodes = nodes, .procs_per_node = 2, .scratch = scratch ? act_strdup(scratch) : NULL};
    return node;
}

static void open_place(struct node *node, const struct rank_place *place, int attempt)
{
    assert_ok(place_open(node, place, attempt, &err), err);
}

TEST(test_code_roots)
{
    static const struct {
        int nodes, node_rank;
        const char *code;
    } rows[] = {
        {1, 0, "/shared/" RUN_A "/code"},
        {2, 0, "/shared/" RUN_A "/nodes/0/code"},
        {2, 1, "/shared/" RUN_A "/nodes/1/code"},
    };

    setenv("TMPDIR", dir, 1);
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct node node = node_test_make(RUN_A, rows[i].nodes, NULL);
        struct rank_place place = {.local_size = 1, .node_rank = rows[i].node_rank};
        open_place(&node, &place, 1);
        assert_string_equal(node.code, rows[i].code);
        assert_true(act_path_is_within(node.local, dir));
        assert_ok(place_close(&node, &place, &err), err);
        node_release(&node);
    }
    ACT_AUTOFREE char *scratch = test_path("nvme");
    assert_int_equal(mkdir(scratch, 0755), 0);
    struct node node = node_test_make(RUN_A, 2, scratch);
    struct rank_place place = {.local_size = 1, .node_rank = 1};
    ACT_AUTOFREE char *code = act_sprintf("%s/act-%u/" RUN_A "/1/code", scratch, (unsigned)getuid());
    open_place(&node, &place, 1);
    assert_string_equal(node.code, code);
    struct stat st;
    assert_int_equal(stat(node.local, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0700);
    assert_ok(place_close(&node, &place, &err), err);
    node_release(&node);
}

static void take_by_link(const char *base)
{
    assert_int_equal(symlink("/tmp", base), 0);
}

static void take_by_file(const char *base)
{
    assert_ok(act_file_write(base, "", 0, 0600, &err), err);
}

/* Somebody else may have put things there. */
static void take_by_open_folder(const char *base)
{
    assert_int_equal(mkdir(base, 0755), 0);
    assert_int_equal(chmod(base, 0770), 0);
}

static void take_by_other_user(const char *base)
{
    enum { NOBODY = 65534 };

    assert_int_equal(mkdir(base, 0700), 0);
    assert_int_equal(chown(base, NOBODY, NOBODY), 0);
}

/* Another private folder takes its place, the same for all ranks of the node and for the next run. */
TEST(test_base_of_others)
{
    static void (*const takes[])(const char *) = {take_by_link, take_by_file, take_by_open_folder, take_by_other_user};
    ACT_AUTOFREE char *base = base_dir();
    ACT_AUTOFREE char *other = act_sprintf("%s.", base);
    struct rank_place first = {.rank = 0, .local_size = 2}, second = {.rank = 1, .local_size = 2};
    struct stat st;

    setenv("TMPDIR", dir, 1);
    for (size_t i = 0; i < COUNT(takes); i++) {
        if (takes[i] == take_by_other_user && getuid() != 0)
            continue;
        struct node a = node_test_make(RUN_A, 1, NULL), b = node_test_make(RUN_A, 1, NULL);
        assert_ok(act_remove_tree(base, &err), err);
        takes[i](base);
        open_place(&a, &first, 1);
        open_place(&b, &second, 1);
        assert_string_equal(a.local, b.local);
        assert_true(act_starts_with(a.local, other));
        ACT_AUTOFREE char *run = act_path_dirname(a.local);
        ACT_AUTOFREE char *used = act_path_dirname(run);
        assert_int_equal(stat(used, &st), 0);
        assert_int_equal(st.st_mode & 0777, 0700);
        assert_ok(place_close(&a, &first, &err), err);
        assert_ok(place_close(&b, &second, &err), err);
        assert_false(node_test_is_there(run));
        node_release(&a);
        node_release(&b);
        assert_int_equal(remove(base), 0);
    }
}

/* Others could look, and put nothing there. */
TEST(test_readable_base_is_closed)
{
    ACT_AUTOFREE char *base = base_dir();
    struct node node = node_test_make(RUN_A, 1, NULL);
    struct rank_place place = {.local_size = 1};
    struct stat st;

    setenv("TMPDIR", dir, 1);
    assert_ok(act_remove_tree(base, &err), err);
    assert_int_equal(mkdir(base, 0755), 0);
    open_place(&node, &place, 1);
    assert_true(act_path_is_within(node.local, base));
    assert_int_equal(stat(base, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0700);
    assert_ok(place_close(&node, &place, &err), err);
    node_release(&node);
}

TEST(test_disks_that_are_not_there)
{
    struct rank_place place = {.local_size = 1};

    ACT_AUTOFREE char *gone = test_path("gone");
    setenv("TMPDIR", gone, 1);
    struct node node = node_test_make(RUN_A, 1, NULL);
    open_place(&node, &place, 1);
    assert_true(act_path_is_within(node.local, "/tmp"));
    assert_ok(place_close(&node, &place, &err), err);
    node_release(&node);

    node = node_test_make(RUN_A, 1, gone);
    assert_true(place_open(&node, &place, 1, &err) < 0);
    assert_contains(act_error_text(&err), "on node 'n1', where 'slurm.scratch' wants the code");
    node_release(&node);
}

/* It goes with the last rank of the node, of this attempt. */
TEST(test_last_rank_removes)
{
    struct node a = node_test_make(RUN_A, 1, NULL), b = node_test_make(RUN_A, 1, NULL);
    struct rank_place first = {.rank = 0, .local_size = 2}, second = {.rank = 1, .local_size = 2};

    setenv("TMPDIR", dir, 1);
    open_place(&a, &first, 1);
    ACT_AUTOFREE char *local = act_strdup(a.local);
    assert_ok(place_close(&a, &first, &err), err);
    assert_true(node_test_is_there(local));
    open_place(&a, &first, 2);
    open_place(&b, &second, 2);
    assert_ok(place_close(&b, &second, &err), err);
    assert_true(node_test_is_there(local));
    assert_ok(place_close(&a, &first, &err), err);
    assert_false(node_test_is_there(local));
    ACT_AUTOFREE char *run = act_path_dirname(local);
    assert_false(node_test_is_there(run));
    node_release(&a);
    node_release(&b);
}

TEST(test_sweep)
{
    struct node dead = node_test_make(RUN_A, 1, NULL), alive = node_test_make(RUN_B, 1, NULL);
    struct rank_place place = {.local_size = 2};

    setenv("TMPDIR", dir, 1);
    open_place(&dead, &place, 1);
    open_place(&alive, &place, 1);
    place_sweep(&alive);
    assert_true(node_test_is_there(dead.local) && node_test_is_there(alive.local));
    close(dead.users_fd); /* as when it is killed */
    strcpy(alive.name, "n2");
    place_sweep(&alive);
    assert_true(node_test_is_there(dead.local)); /* not ours to judge */
    strcpy(alive.name, "n1");
    place_sweep(&alive);
    assert_false(node_test_is_there(dead.local));
    assert_true(node_test_is_there(alive.local));
    close(alive.users_fd);
    node_release(&dead);
    node_release(&alive);
}

/* Between a rank that has ended and one that is still to come nothing is locked, and another run, or another node of
 * the same launch on this machine, prepares itself meanwhile. */
TEST(test_sweep_between_two_ranks)
{
    static const struct {
        const char *id;
        int age_s;
        bool stays;
    } rows[] = {{RUN_A, 0, true}, {RUN_B, 0, true}, {RUN_A, 3600, false}, {RUN_B, 3600, false}};
    struct rank_place first = {.rank = 0, .local_size = 2, .node_rank = 0},
                      other = {.rank = 2, .local_size = 2, .node_rank = 1};

    setenv("TMPDIR", dir, 1);
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct node ended = node_test_make(rows[i].id, 2, NULL), sweeps = node_test_make(RUN_A, 2, NULL);
        open_place(&ended, &first, 1);
        open_place(&sweeps, &other, 1);
        assert_ok(place_close(&ended, &first, &err), err);
        ACT_AUTOFREE char *record = act_path_join(ended.local, "ended.1");
        struct timespec when = {.tv_sec = time(NULL) - rows[i].age_s};
        assert_int_equal(utimensat(AT_FDCWD, record, (struct timespec[]){when, when}, 0), 0);
        place_sweep(&sweeps);
        assert_int_equal(node_test_is_there(ended.local), rows[i].stays);
        assert_true(node_test_is_there(sweeps.local));
        close(sweeps.users_fd);
        assert_ok(act_remove_tree(ended.local, &err), err);
        assert_ok(act_remove_tree(sweeps.local, &err), err);
        node_release(&ended);
        node_release(&sweeps);
    }
}

/* ---- in the job of a service */

static const char *const service_names[] = {
    "OMPI_COMM_WORLD_RANK",
    "OMPI_COMM_WORLD_SIZE",
    "OMPI_COMM_WORLD_LOCAL_RANK",
    "AZUREML_CR_NODE_RANK",
    "AZ_BATCH_HOST_LIST",
    "AZ_BATCH_NODE_LIST",
    "AZ_BATCH_MASTER_NODE",
    "MASTER_ADDR",
    "AZ_BATCHAI_JOB_MASTER_NODE_IP",
    "MASTER_PORT",
    "AZ_BATCHAI_MPI_HOST_FILE",
    "AZ_BATCHAI_JOB_TEMP",
};

/* "NAME=value NAME=value": these and no others of them. */
static void set_service(const char *text)
{
    ACT_AUTO(act_strv) words = words_of(text);

    for (size_t i = 0; i < COUNT(service_names); i++)
        unsetenv(service_names[i]);
    for (size_t i = 0; i < words.n; i++) {
        char *equals = strchr(words.v[i], '=');
        *equals = '\0';
        setenv(words.v[i], equals + 1, 1);
    }
}

static void assert_env(const char *name, const char *expected, const char *row)
{
    const char *value = getenv(name);

    if (strcmp(value ? value : "-", expected) != 0)
        fail_msg("%s is '%s', not '%s', with: %s", name, value ? value : "-", expected, row);
}

TEST(test_environment_of_a_service)
{
    static const struct {
        int nodes;
        const char *service, *master, *port, *hosts, *ip, *file;
    } rows[] = {
        {2, "AZ_BATCH_HOST_LIST=10.0.0.4,10.0.0.5 AZ_BATCHAI_JOB_MASTER_NODE_IP=10.0.0.9", "10.0.0.4", "22389",
         "10.0.0.4,10.0.0.5", "10.0.0.9", "10.0.0.4 slots=2\n10.0.0.5 slots=2\n"},
        {2, "AZ_BATCHAI_JOB_MASTER_NODE_IP=10.0.0.9 AZ_BATCH_MASTER_NODE=10.0.0.8:6105", "10.0.0.9", "6105", "-",
         "10.0.0.9", NULL},
        {2, "AZ_BATCH_MASTER_NODE=10.0.0.8:6105 MASTER_ADDR=10.0.0.7 MASTER_PORT=7000", "10.0.0.8", "6105", "-",
         "10.0.0.8", NULL},
        {2, "AZ_BATCH_MASTER_NODE=10.0.0.8 MASTER_PORT=7000", "10.0.0.8", "7000", "-", "10.0.0.8", NULL},
        {2, "MASTER_ADDR=n1 MASTER_PORT=0 AZ_BATCH_NODE_LIST=n1;n2", "n1", "22389", "n1,n2", "n1",
         "n1 slots=2\nn2 slots=2\n"},
        {1, "AZ_BATCH_HOST_LIST=", "127.0.0.1", "22389", "127.0.0.1", "127.0.0.1", "127.0.0.1 slots=2\n"},
    };
    ACT_AUTOFREE char *file = test_path(RUN_FILE_HOSTS);
    struct rank_place place = {.rank = 1, .world_size = 4, .local_rank = 1, .local_size = 2};

    for (size_t i = 0; i < COUNT(rows); i++) {
        struct node node = node_test_make(RUN_A, rows[i].nodes, NULL);
        free(node.dir);
        node.dir = act_strdup(dir);
        unlink(file);
        set_service(rows[i].service);
        assert_ok(env_set_of_service(&node, &place, &err), err);
        assert_env("MASTER_ADDR", rows[i].master, rows[i].service);
        assert_env("MASTER_PORT", rows[i].port, rows[i].service);
        assert_env("AZ_BATCH_HOST_LIST", rows[i].hosts, rows[i].service);
        assert_env("AZ_BATCHAI_JOB_MASTER_NODE_IP", rows[i].ip, rows[i].service);
        assert_env("RANK", "1", rows[i].service);
        assert_env("ACT_RUN_CODE", "/shared/" RUN_A "/code", rows[i].service);
        ACT_AUTOFREE char *text = NULL;
        if (rows[i].file) {
            assert_ok(act_file_read(file, 1000, &text, NULL, &err), err);
            assert_string_equal(text, rows[i].file);
            assert_env("AZ_BATCHAI_MPI_HOST_FILE", file, rows[i].service);
        } else {
            assert_false(node_test_is_there(file));
        }
        node_release(&node);
    }
    struct node node = node_test_make(RUN_A, 2, NULL);
    set_service("AZ_BATCHAI_MPI_HOST_FILE=/hosts");
    assert_fails(env_set_of_service(&node, &place, &err), err, ACT_FAIL, "AZ_BATCH_HOST_LIST");
    set_service("MASTER_ADDR=n1 AZ_BATCHAI_MPI_HOST_FILE=/hosts AZ_BATCHAI_JOB_TEMP=/temp");
    assert_ok(env_set_of_service(&node, &place, &err), err);
    assert_env("AZ_BATCHAI_MPI_HOST_FILE", "/hosts", "what is there");
    assert_env("AZ_BATCHAI_JOB_TEMP", "/temp", "what is there");
    set_service("");
    node_release(&node);
}

/* Two nodes of two ranks. */
TEST(test_node_ranks)
{
    static const struct {
        const char *service;
        int node_rank;
    } rows[] = {
        {"OMPI_COMM_WORLD_RANK=1 OMPI_COMM_WORLD_LOCAL_RANK=1", 0},
        {"OMPI_COMM_WORLD_RANK=2 OMPI_COMM_WORLD_LOCAL_RANK=0", 1},
        {"OMPI_COMM_WORLD_RANK=3 OMPI_COMM_WORLD_LOCAL_RANK=1 AZUREML_CR_NODE_RANK=0", 1},
        {"OMPI_COMM_WORLD_RANK=1 OMPI_COMM_WORLD_LOCAL_RANK=0 AZUREML_CR_NODE_RANK=1", 1},
        {"OMPI_COMM_WORLD_RANK=2 OMPI_COMM_WORLD_LOCAL_RANK=1 AZUREML_CR_NODE_RANK=0", 0},
        {"OMPI_COMM_WORLD_RANK=2 OMPI_COMM_WORLD_LOCAL_RANK=0 AZUREML_CR_NODE_RANK=7", 1},
    };
    struct rank_place place;

    for (size_t i = 0; i < COUNT(rows); i++) {
        struct node node = node_test_make(RUN_A, 2, NULL);
        set_service(rows[i].service);
        setenv("OMPI_COMM_WORLD_SIZE", "4", 1);
        assert_ok(env_find_place(&node, &place, &err), err);
        assert_int_equal(place.node_rank, rows[i].node_rank);
        node_release(&node);
    }
    set_service("");
}

/* ---- containers */

static void node_test_add_folder(struct run_spec *spec, const char *name, const char *link, enum run_folder_mode mode)
{
    spec->folders = act_realloc(spec->folders, (spec->n_folders + 1) * sizeof(*spec->folders));
    spec->folders[spec->n_folders++] =
        (struct run_folder){.name = act_strdup(name), .link = link ? act_strdup(link) : NULL, .mode = mode};
}

static struct node container_node(const char *kind, const char *image, int gpus)
{
    struct node node = {.dir = act_strdup("/shared/run"), .code = act_strdup("/shared/run/code")};

    strcpy(node.name, "n1");
    node.spec = (struct run_spec){
        .container = kind ? act_strdup(kind) : NULL, .image = image ? act_strdup(image) : NULL, .gpus_per_node = gpus};
    node_test_add_folder(&node.spec, "data", "/big/data", RUN_FOLDER_RO_MOUNT);
    node_test_add_folder(&node.spec, "output", "/big/output", RUN_FOLDER_RW_MOUNT);
    node_test_add_folder(&node.spec, "blob", NULL, RUN_FOLDER_DOWNLOAD);
    return node;
}

static void node_test_make_program(const char *name)
{
    ACT_AUTOFREE char *path = test_path(name);

    assert_ok(act_file_write(path, "#!/bin/sh\n", 10, 0755, &err), err);
}

static char *wrapped(struct node *node)
{
    static const char *const argv[] = {"python", "a b", "", "$x", NULL};
    ACT_AUTO(act_strv) words = {0};

    assert_ok(container_wrap(node, -1, argv, &words, &err), err);
    return node_list_text(&words, "\n");
}

TEST(test_apptainer)
{
    static const struct {
        const char *image, *shown;
    } images[] = {
        {"pytorch/pytorch:2.1", "docker://pytorch/pytorch:2.1"},
        {"docker://x", "docker://x"},
        {"oras://x/y", "oras://x/y"},
        {"/images/x", "/images/x"},
        {"./x.sif", "./x.sif"},
    };

    setenv("PATH", dir, 1);
    node_test_make_program("apptainer");
    node_test_make_program("singularity");
    for (size_t i = 0; i < COUNT(images); i++) {
        struct node node = container_node("apptainer", images[i].image, i == 0 ? 4 : 0);
        ACT_AUTOFREE char *text = wrapped(&node);
        ACT_AUTOFREE char *expected =
            act_sprintf("%s/apptainer\nexec\n%s--bind\n/shared/run:/shared/run\n--bind\n/big/data:/big/data:ro\n"
                        "--bind\n/big/output:/big/output\n--pwd\n/shared/run/code\n%s\npython\na b\n\n$x",
                        dir, i == 0 ? "--nv\n" : "", images[i].shown);
        assert_string_equal(text, expected);
        node_release(&node);
    }
    ACT_AUTOFREE char *apptainer = test_path("apptainer");
    assert_int_equal(unlink(apptainer), 0);
    struct node node = container_node("apptainer", "x", 0);
    free(node.code);
    node.code = act_strdup("/nvme/code");
    ACT_AUTOFREE char *text = wrapped(&node);
    assert_non_null(strstr(text, "/singularity\nexec\n"));
    assert_non_null(strstr(text, "--bind\n/nvme/code:/nvme/code\n--pwd\n/nvme/code\n"));

    ACT_AUTOFREE char *singularity = test_path("singularity");
    assert_int_equal(unlink(singularity), 0);
    static const char *const argv[] = {"true", NULL};
    struct act_strv words = {0};
    assert_int_equal(container_wrap(&node, -1, argv, &words, &err), -ACT_NOT_FOUND);
    assert_non_null(strstr(act_error_text(&err), "neither 'apptainer' nor 'singularity' is in PATH on node 'n1'"));
    assert_contains(act_error_text(&err), "slurm.container");
    act_strv_release(&words);

    node_test_make_program("apptainer");
    free(node.dir);
    node.dir = act_strdup("/shared/a,b");
    assert_int_equal(container_wrap(&node, -1, argv, &words, &err), -ACT_CONFIG);
    act_strv_release(&words);
    node_release(&node);
}

TEST(test_without_container)
{
    static const char *const kinds[] = {NULL, "none", "pyxis"};

    for (size_t i = 0; i < COUNT(kinds); i++) {
        struct node node = container_node(kinds[i], "image", 0);
        ACT_AUTOFREE char *text = wrapped(&node);
        assert_string_equal(text, "python\na b\n\n$x");
        node_release(&node);
    }
    struct node node = container_node("apptainer", NULL, 0);
    ACT_AUTOFREE char *text = wrapped(&node);
    assert_string_equal(text, "python\na b\n\n$x");
    node_release(&node);
}

TEST(test_pyxis)
{
    static const struct {
        const char *image, *shown;
    } images[] = {
        {"ubuntu:22.04", "ubuntu:22.04"},
        {"pytorch/pytorch:2.1", "pytorch/pytorch:2.1"},
        {"docker://nvcr.io/nvidia/pytorch:24.01", "nvcr.io#nvidia/pytorch:24.01"},
        {"localhost/x", "localhost#x"},
        {"host:5000/x/y", "host:5000#x/y"},
        {"nvcr.io#nvidia/x", "nvcr.io#nvidia/x"},
        {"/images/x.sqsh", "/images/x.sqsh"},
    };

    for (size_t i = 0; i < COUNT(images); i++) {
        struct node node = container_node("pyxis", images[i].image, 0);
        struct act_strv words = {0};
        assert_ok(container_srun_options(&node, "/shared/bin/1f/act-node", &words, &err), err);
        ACT_AUTOFREE char *text = node_list_text(&words, "\n");
        ACT_AUTOFREE char *expected =
            act_sprintf("--container-image=%s\n--container-mounts=/shared/run:/shared/run,/big/data:/big/data:ro,"
                        "/big/output:/big/output,/shared/bin/1f:/shared/bin/1f:ro",
                        images[i].shown);
        assert_string_equal(text, expected);
        act_strv_release(&words);
        node_release(&node);
    }
    struct node node = container_node("apptainer", "x", 0);
    struct act_strv words = {0};
    assert_ok(container_srun_options(&node, "/shared/bin/1f/act-node", &words, &err), err);
    assert_int_equal(words.n, 0);
    node_release(&node);
}

/* ---- the queue for slots ---- */

int __real_flock(int fd, int operation);
int __wrap_flock(int fd, int operation);

static int no_locks; /* the errno of every flock() with these bits */
static int no_locks_of;

int __wrap_flock(int fd, int operation)
{
    if (!no_locks || operation != no_locks_of)
        return __real_flock(fd, operation);
    errno = no_locks;
    return -1;
}

static void node_test_count(void *arg, const char *why)
{
    assert_string_equal(why, "waits behind another run");
    ++*(int *)arg;
}

/* Whether it fails at once or in the process that waits. */
TEST(test_queue_without_locks)
{
    static const int operations[] = {LOCK_EX | LOCK_NB, LOCK_EX};
    ACT_AUTOFREE char *slots_dir = test_path("slots"), *queue = act_path_join(slots_dir, "queue.lock");
    struct watch w;

    assert_ok(act_mkdir_all(slots_dir, 0700, &err), err);
    int held = act_lock(queue, false, &err);
    assert_true(held >= 0);
    for (size_t i = 0; i < COUNT(operations); i++) {
        struct slots slots;
        int waited = 0;
        assert_ok(watch_open(&w, &err), err);
        no_locks = ENOLCK;
        no_locks_of = operations[i];
        const struct slots_request request = {.dir = slots_dir,
                                              .total = 2,
                                              .need = 1,
                                              .run = "r",
                                              .unit = "GPUs",
                                              .waiting = node_test_count,
                                              .arg = &waited};
        assert_int_equal(slots_take(&slots, &request, &w, &err), -ACT_FAIL);
        no_locks = 0;
        assert_int_equal(waited, i);
        assert_contains(act_error_text(&err), slots_dir);
        assert_non_null(strstr(act_error_text(&err), strerror(ENOLCK)));
        close(w.signal_fd);
    }
    close(held);
}

/* As a process that was forked meanwhile holds it. */
TEST(test_room_held_by_a_copy)
{
    ACT_AUTOFREE char *temp = test_path(RUN_DIR_TEMP);
    struct node node = {.dir = dir};
    struct room room;
    struct stat st;

    assert_ok(act_mkdir_all(temp, 0700, &err), err);
    room_open(&room, &node, 0);
    assert_true(room.fd >= 0);
    int copy = dup(room.fd);
    assert_int_equal(fstat(copy, &st), 0);
    assert_true(st.st_blocks > 0);
    assert_int_equal(room_close(&room, STDERR_FILENO), 0);
    assert_int_equal(fstat(copy, &st), 0);
    assert_int_equal(st.st_blocks, 0);
    close(copy);
}

TEST(test_what_a_shell_changed)
{
    static const char *const before[] = {"A=1", "GONE=x", "SAME=y", "SHLVL=1", "EMPTY="},
                             *const after[] = {"SAME=y",     "A=2",    "SHLVL=2", "_=/bin/cat",
                                               "NEW=a=b\nc", "EMPTY=", "A2=1"},
                             *const changes[] = {"A=2", "NEW=a=b\nc", "A2=1", "GONE"};
    ACT_AUTO(act_strv) b = {0}, a = {0}, out = {0};

    for (size_t i = 0; i < sizeof(before) / sizeof(before[0]); i++)
        act_strv_push(&b, before[i]);
    for (size_t i = 0; i < sizeof(after) / sizeof(after[0]); i++)
        act_strv_push(&a, after[i]);
    setup_compare(&b, &a, &out);
    assert_int_equal(out.n, sizeof(changes) / sizeof(changes[0]));
    for (size_t i = 0; i < out.n; i++)
        assert_string_equal(out.v[i], changes[i]);
}

TEST_MAIN(make_dir, remove_dir)
