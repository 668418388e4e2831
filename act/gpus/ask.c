/* ask.c - asks nvidia-smi, and the files of AMD's driver. A broken card can make nvidia-smi hang for ever, even after
 * SIGKILL: nothing waits for it beyond the limit, and no other is started while it is there. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/path.h"
#include "gpus/gpus_internal.h"
#include "proc/proc.h"

/* ---- nvidia-smi */

/* Opens what each nvidia-smi of this user has as its stderr: a file with a lock, which one that the driver does not let
 * go keeps. So there is never more than one. -1: there still is one. */
static int ask_turn(const char *root, int64_t deadline_ms)
{
    enum { LOOK_MS = 10 };
    ACT_AUTOFREE char *path = act_sprintf("%s/dev/shm/act-nvidia-smi-%u", root, (unsigned)geteuid());
    int fd = open(path, O_RDWR | O_CREAT | O_APPEND | O_NOFOLLOW | O_CLOEXEC, 0600);
    struct stat st;

    if (fd < 0 || fstat(fd, &st) < 0 || st.st_uid != geteuid()) { /* somebody else's says nothing */
        if (fd >= 0)
            close(fd);
        return open("/dev/null", O_WRONLY | O_CLOEXEC);
    }
    while (flock(fd, LOCK_EX | LOCK_NB) < 0 && errno == EWOULDBLOCK) {
        if (act_now_monotonic_ms() >= deadline_ms) {
            close(fd);
            return -1;
        }
        poll(NULL, 0, LOOK_MS);
    }
    (void)!ftruncate(fd, 0); /* of what an earlier one complained */
    return fd;
}

struct question {
    const char *const words[4];
    void (*take)(char *text, struct gpu_list *list);
    bool (*is_due)(const struct gpu_list *list);
};

/* A program that was asked. */
struct asked {
    pid_t pid;
    int fd;
    struct act_buf said;
};

static bool ask_always(const struct gpu_list *list)
{
    (void)list;
    return true;
}

static bool has_instances(const struct gpu_list *list)
{
    bool has = false;

    for (size_t i = 0; i < list->n; i++)
        has = has || list->v[i].kind == GPU_MIG;
    return has;
}

static bool has_several(const struct gpu_list *list)
{
    return gpus_given(list) > 2; /* of two, there is nothing to choose */
}

static bool ask_start(const char *program, const struct question *q, int turn, struct asked *out)
{
    ACT_AUTO(act_strv) words = {0};
    struct act_error ignored;
    int ends[2];

    *out = (struct asked){0};
    if (pipe2(ends, O_CLOEXEC) < 0)
        return false;
    act_strv_push(&words, program);
    for (const char *const *word = q->words; *word; word++)
        act_strv_push(&words, *word);
    const struct proc_start start = {
        .argv = words.v, .sees = OF_USER, .in_fd = -1, .out_fd = ends[1], .err_fd = turn, .own_group = true};
    bool good = proc_start(&start, &out->pid, &ignored) == 0;
    close(ends[1]);
    if (!good)
        close(ends[0]);
    out->fd = ends[0];
    return good;
}

/* Reads to the end of its output; false: it says too much, or not in time. */
static bool ask_read(struct asked *a, int64_t deadline_ms)
{
    enum { MAX_BYTES = 256 * 1024 };
    char chunk[4096];

    for (;;) {
        int64_t left = deadline_ms - act_now_monotonic_ms();
        struct pollfd pfd = {.fd = a->fd, .events = POLLIN};
        if (left <= 0 || a->said.len > MAX_BYTES)
            return false;
        if (poll(&pfd, 1, (int)left) <= 0)
            continue;
        ssize_t n = read(a->fd, chunk, sizeof(chunk));
        if (n > 0)
            act_buf_add(&a->said, chunk, (size_t)n);
        else if (n == 0)
            return true;
        else if (errno != EINTR)
            return false;
    }
}

/* Returns the status of the program, or -1 if it does not end in time. */
static int ask_end(struct asked *a, int64_t deadline_ms)
{
    enum { LOOK_MS = 2 };
    int status;

    while (waitpid(a->pid, &status, WNOHANG) == 0) {
        if (act_now_monotonic_ms() >= deadline_ms)
            return -1;
        poll(NULL, 0, LOOK_MS);
    }
    return status;
}

static enum gpus_answer ask_one(const char *program, const struct question *q, int turn, int64_t deadline_ms,
                                struct gpu_list *list)
{
    enum { END_MS = 100 };
    struct asked asked;

    if (!ask_start(program, q, turn, &asked))
        return GPUS_FAILED;
    int status = ask_read(&asked, deadline_ms) ? ask_end(&asked, deadline_ms) : -1;
    if (status < 0) {
        kill(-asked.pid, SIGKILL);
        (void)ask_end(&asked, act_now_monotonic_ms() + END_MS);
    } else if (status == 0) {
        q->take(asked.said.data ? asked.said.data : (char[]){""}, list);
    }
    close(asked.fd);
    act_buf_release(&asked.said);
    return status < 0 ? GPUS_UNANSWERED : status == 0 ? GPUS_TOLD : GPUS_FAILED;
}

/* One after another, so that a driver that hangs holds one of them. The answer is that to the first question, if the
 * others are answered at all. */
static enum gpus_answer ask_nvidia(const char *root, int limit_ms, struct gpu_list *list)
{
    static const struct question questions[] = {
        {.words = {"--query-gpu=index,uuid,name,memory.used,memory.total,mig.mode.current",
                   "--format=csv,noheader,nounits"},
         .take = gpus_take_memory,
         .is_due = ask_always},
        {.words = {"--query-compute-apps=gpu_uuid,pid,process_name,used_memory", "--format=csv,noheader,nounits"},
         .take = gpus_take_users,
         .is_due = ask_always},
        {.words = {"-L"}, .take = gpus_take_instances, .is_due = has_instances},
        {.words = {"topo", "-m"}, .take = gpus_take_topology, .is_due = has_several},
    };
    enum { N_QUESTIONS = sizeof(questions) / sizeof(questions[0]) };
    ACT_AUTOFREE char *program = proc_find_in_path("nvidia-smi");
    int64_t deadline_ms = act_now_monotonic_ms() + limit_ms;
    int turn = program ? ask_turn(root, deadline_ms) : -1;
    enum gpus_answer answer = !program ? GPUS_UNTOLD : turn < 0 ? GPUS_UNANSWERED : GPUS_TOLD;

    for (int i = 0; i < N_QUESTIONS && answer == GPUS_TOLD; i++) {
        if (!questions[i].is_due(list))
            continue;
        enum gpus_answer said = ask_one(program, &questions[i], turn, deadline_ms, list);
        if (i == 0 || said == GPUS_UNANSWERED)
            answer = said;
    }
    if (turn >= 0)
        close(turn);
    return answer;
}

/* ---- AMD */

static int64_t ask_file(const char *path)
{
    enum { MAX_BYTES = 256 };
    ACT_AUTOFREE char *text = NULL;

    return act_file_read(path, MAX_BYTES, &text, NULL, NULL) < 0 ? -1 : strtoll(text, NULL, 10);
}

/* A process has a file for each GPU, which says how much of its memory it has. */
static void ask_process(const char *root, const char *pid, const char *gpu_id, struct gpu *gpu)
{
    ACT_AUTOFREE char *path = act_sprintf("%s/sys/class/kfd/kfd/proc/%s/vram_%s", root, pid, gpu_id);
    ACT_AUTOFREE char *name_path = act_sprintf("/proc/%s/comm", pid);
    enum { NAME_MAX_BYTES = 256 };
    ACT_AUTOFREE char *name = NULL;
    int64_t bytes = ask_file(path);

    if (bytes <= 0)
        return;
    if (act_file_read(name_path, NAME_MAX_BYTES, &name, NULL, NULL) == 0)
        name[strcspn(name, "\n")] = '\0';
    users_add(gpu, (pid_t)atoi(pid), name ? name : "", bytes);
}

static void ask_processes(const char *root, const char *gpu_id, struct gpu *gpu)
{
    ACT_AUTOFREE char *dir = act_sprintf("%s/sys/class/kfd/kfd/proc", root);
    DIR *d = opendir(dir);

    for (struct dirent *e; d && (e = readdir(d));)
        if (e->d_name[0] != '.')
            ask_process(root, e->d_name, gpu_id, gpu);
    if (d)
        closedir(d);
}

static enum gpus_answer ask_amd(const char *root, struct gpu_list *list)
{
    for (size_t i = 0; i < list->n; i++) {
        struct gpu *gpu = &list->v[i];
        ACT_AUTOFREE char *used = act_sprintf("%s/sys/class/drm/renderD%d/device/mem_info_vram_used", root, gpu->card);
        gpu->used_bytes = ask_file(used);
        if (gpu->node_id)
            ask_processes(root, gpu->node_id, gpu);
    }
    return GPUS_TOLD;
}

/* ---- all */

enum gpus_answer gpus_ask(const char *root, int limit_ms, struct gpu_list *list)
{
    enum gpu_kind kind = list->n ? list->v[0].kind : GPU_INTEL;

    switch (kind) {
    case GPU_NVIDIA:
    case GPU_MIG:
        return ask_nvidia(root, limit_ms, list);
    case GPU_AMD:
        return ask_amd(root, list);
    case GPU_INTEL:
    case N_GPU_KINDS:
        break;
    }
    return GPUS_TOLD; /* there is nothing to be told */
}

const char *gpus_answer_text(enum gpus_answer answer)
{
    static const char *const texts[] = {
        [GPUS_TOLD] = NULL,
        [GPUS_UNTOLD] = "nvidia-smi is not in PATH, so nobody knows who else uses the GPUs",
        [GPUS_UNANSWERED] = "the GPU driver does not answer: nvidia-smi hangs, so nobody knows who else uses the GPUs",
        [GPUS_FAILED] = "nvidia-smi fails, so nobody knows who else uses the GPUs",
    };

    return texts[answer];
}
