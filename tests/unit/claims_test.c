/* claims_test.c - GPUs that users who do not trust one another claim. */
#define TEST_SETUP    make_dir
#define TEST_TEARDOWN remove_dir
#include "unit/temp_dir.h"
#include "unit/test.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/path.h"
#include "node/claims.h"

enum { N_KEYS = 4, ALICE = 61001, BOB = 61002 };

static const bool first[N_KEYS] = {true}, second[N_KEYS] = {false, true}, two[N_KEYS] = {true, true};

/* The folder of the test, and one in it. */
static const char *const *places(void)
{
    static char below[64];
    static const char *dirs[3];

    snprintf(below, sizeof(below), "%s/below", dir);
    if (mkdir(below, 0700) == 0)
        assert_int_equal(chmod(below, 01777), 0);
    dirs[0] = dir;
    dirs[1] = below;
    return dirs;
}

static void claims_keys(struct act_strv *out)
{
    for (int i = 0; i < N_KEYS; i++)
        act_strv_pushf(out, "%d", i);
}

static uid_t holder_of(const struct claims *c, int key)
{
    ACT_AUTO(act_strv) keys = {0};
    uid_t holders[N_KEYS];

    claims_keys(&keys);
    claims_look(c, &keys, holders);
    return holders[key];
}

TEST(test_one_at_a_time)
{
    ACT_AUTO(act_strv) keys = {0};
    struct claims a, b;

    claims_keys(&keys);
    claims_open(&a, places());
    claims_open(&b, places());
    assert_true(claims_take(&a, &keys, first));
    assert_int_equal(holder_of(&b, 0), geteuid());
    assert_int_equal(holder_of(&b, 1), (uid_t)-1);
    assert_int_equal(holder_of(&a, 0), (uid_t)-1); /* its own */
    assert_false(claims_take(&b, &keys, two));
    assert_true(claims_take(&b, &keys, second));
    claims_drop(&a);
    assert_int_equal(holder_of(&b, 0), (uid_t)-1);
    assert_true(claims_take(&b, &keys, two));
    claims_close(&a);
    claims_close(&b);
}

TEST(test_a_key_is_a_whole_word)
{
    ACT_AUTO(act_strv) keys = {0}, others = {0};
    struct claims a, b;

    act_strv_push(&keys, "12");
    act_strv_push(&others, "1");
    claims_open(&a, places());
    claims_open(&b, places());
    assert_true(claims_take(&a, &keys, first));
    assert_true(claims_take(&b, &others, first));
    claims_close(&a);
    claims_close(&b);
}

/* Only the end of the process frees what it claims. */
TEST(test_whose_holder_died)
{
    ACT_AUTO(act_strv) keys = {0};
    struct claims mine;
    int ready[2];
    char byte;

    claims_keys(&keys);
    assert_int_equal(pipe(ready), 0);
    pid_t pid = fork();
    if (pid == 0) {
        struct claims c;
        claims_open(&c, places());
        (void)!write(ready[1], claims_take(&c, &keys, first) ? "y" : "n", 1);
        pause();
        _exit(0);
    }
    assert_int_equal(read(ready[0], &byte, 1), 1);
    assert_int_equal(byte, 'y');
    claims_open(&mine, places());
    assert_false(claims_take(&mine, &keys, first));
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
    assert_true(claims_take(&mine, &keys, first));
    claims_close(&mine);
    close(ready[0]);
    close(ready[1]);
}

/* In one of the folders. */
static void clean_up_first(void)
{
    ACT_AUTOFREE char *command = act_sprintf("rm -f %s/act-*", dir);

    assert_int_equal(system(command), 0);
}

TEST(test_somebody_cleans)
{
    ACT_AUTO(act_strv) keys = {0};
    struct claims a, b;

    claims_keys(&keys);
    claims_open(&a, places());
    claims_open(&b, places());
    assert_true(claims_take(&a, &keys, first));
    clean_up_first();
    assert_false(claims_take(&b, &keys, first));
    claims_keep(&a);
    clean_up_first();
    claims_keep(&a);
    assert_false(claims_take(&b, &keys, first));
    claims_close(&a);
    assert_true(claims_take(&b, &keys, first));
    claims_close(&b);
}

static void claims_test_put(const char *name, const char *text)
{
    ACT_AUTOFREE char *path = test_path(name);

    test_write(name, text);
    assert_int_equal(chmod(path, 0644), 0);
}

TEST(test_files_that_are_no_claims)
{
    ACT_AUTO(act_strv) keys = {0};
    ACT_AUTOFREE char *fifo = act_sprintf("%s/act-gpus-fifo", dir), *link = act_sprintf("%s/act-gpus-link", dir);
    struct claims c;

    claims_keys(&keys);
    claims_test_put("act-gpus-dead", "H 0\n"); /* nobody has a lock */
    claims_test_put("act-gpus-empty", "");
    claims_test_put("other", "H 0\n");
    assert_int_equal(mkfifo(fifo, 0666), 0);
    assert_int_equal(symlink("/etc/passwd", link), 0);
    claims_open(&c, places());
    assert_true(claims_take(&c, &keys, two));
    claims_close(&c);
}

/* A read lock, which is all that others can have, neither keeps a claim alive nor hides one. */
TEST(test_locks_of_others)
{
    ACT_AUTO(act_strv) keys = {0};
    ACT_AUTOFREE char *path = act_path_join(dir, "act-gpus-dead");
    struct flock lock = {.l_type = F_RDLCK, .l_whence = SEEK_SET};
    struct claims a;

    claims_keys(&keys);
    claims_test_put("act-gpus-dead", "H 0\n");
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    assert_int_equal(fcntl(fd, F_OFD_SETLK, &lock), 0);
    claims_open(&a, places());
    assert_true(claims_take(&a, &keys, first));
    close(fd);
    claims_close(&a);
}

/* ---- two users */

struct shared_counts {
    atomic_int holders[N_KEYS]; /* of each GPU */
    atomic_int twice, rounds;
};

/* Claims, holds, gives up or dies, and cleans up what is its own. */
static void claims_user(struct shared_counts *counts, unsigned seed)
{
    ACT_AUTO(act_strv) keys = {0};
    struct claims c;

    claims_keys(&keys);
    claims_open(&c, places());
    while (atomic_load(&counts->rounds) > 0) {
        bool wanted[N_KEYS] = {false};
        for (int i = 0; i < 2; i++)
            wanted[(unsigned)rand_r(&seed) % N_KEYS] = true;
        if (!claims_take(&c, &keys, wanted))
            continue;
        for (int i = 0; i < N_KEYS; i++)
            if (wanted[i] && atomic_fetch_add(&counts->holders[i], 1) != 0)
                atomic_fetch_add(&counts->twice, 1);
        if (rand_r(&seed) % 2)
            poll(NULL, 0, 1);
        claims_keep(&c);
        for (int i = 0; i < N_KEYS; i++)
            if (wanted[i])
                atomic_fetch_sub(&counts->holders[i], 1);
        atomic_fetch_sub(&counts->rounds, 1);
        if (rand_r(&seed) % 8 == 0)
            _exit(0); /* without giving it up: as if it were killed */
        claims_drop(&c);
    }
    _exit(0);
}

static pid_t start_user(struct shared_counts *counts, unsigned number)
{
    pid_t pid = fork();

    if (pid != 0)
        return pid;
    if (geteuid() == 0 && setresuid(number % 2 ? ALICE : BOB, number % 2 ? ALICE : BOB, number % 2 ? ALICE : BOB) < 0)
        _exit(1);
    claims_user(counts, number);
    return -1;
}

/* Whoever dies is followed by another. */
TEST(test_two_users)
{
    enum { USERS = 4, ROUNDS = 500 };
    struct shared_counts *counts =
        mmap(NULL, sizeof(*counts), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    unsigned number = 0;
    int status;

    assert_true(counts != MAP_FAILED);
    *counts = (struct shared_counts){.rounds = ROUNDS};
    assert_int_equal(chmod(dir, 01777), 0);
    places();
    for (; number < USERS; number++)
        assert_true(start_user(counts, number) > 0);
    while (wait(&status) > 0) {
        assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
        if (atomic_load(&counts->rounds) > 0)
            assert_true(start_user(counts, number++) > 0);
    }
    assert_int_equal(atomic_load(&counts->twice), 0);
    for (int i = 0; i < N_KEYS; i++)
        assert_int_equal(atomic_load(&counts->holders[i]), 0);
    munmap(counts, sizeof(*counts));
}

/* Another user can neither remove a claim, nor lock it, nor take its name. */
TEST(test_what_another_user_cannot_do)
{
    ACT_AUTO(act_strv) keys = {0};
    struct claims c;
    int status;

    if (geteuid() != 0) {
        print_message("only root can be two users\n");
        skip();
    }
    claims_keys(&keys);
    assert_int_equal(chmod(dir, 01777), 0);
    claims_open(&c, places());
    assert_true(claims_take(&c, &keys, first));
    pid_t pid = fork();
    if (pid == 0) {
        ACT_AUTOFREE char *path = act_path_join(dir, c.name), *other = act_path_join(dir, "act-gpus-other");
        struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
        if (setresuid(ALICE, ALICE, ALICE) < 0)
            _exit(1);
        int fd = open(path, O_RDONLY | O_CLOEXEC);
        bool failed = open(path, O_RDWR | O_CLOEXEC) < 0 && unlink(path) < 0 && rename(path, other) < 0 && fd >= 0 &&
                      fcntl(fd, F_OFD_SETLK, &lock) < 0;
        _exit(failed ? 0 : 2);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
    claims_close(&c);
}

/* A start reads only so many of them; what is claimed in the other folder counts. */
TEST(test_a_folder_full_of_claims)
{
    enum { MANY = 70 * 1000 };
    ACT_AUTO(act_strv) keys = {0};
    struct claims a, b;

    claims_keys(&keys);
    claims_open(&a, places());
    assert_null(a.flooded);
    assert_true(claims_take(&a, &keys, first));
    for (int i = 0; i < MANY; i++) {
        ACT_AUTOFREE char *name = act_sprintf("act-gpus-%d", i);
        ACT_AUTOFREE char *path = act_path_join(dir, name);
        int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
        assert_true(fd >= 0);
        close(fd);
    }
    claims_open(&b, places());
    assert_string_equal(b.flooded, dir);
    assert_false(claims_take(&b, &keys, two));
    assert_int_equal(holder_of(&b, 0), geteuid());
    claims_close(&a);
    assert_true(claims_take(&b, &keys, two));
    claims_close(&b);
}

TEST_MAIN(NULL, NULL)
