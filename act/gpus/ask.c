/* ask.c - asks nvidia-smi, and the files of AMD's driver. A broken card can make nvidia-smi hang for ever, even after
 * SIGKILL: nothing waits for it beyond the limit. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/path.h"
#include "gpus/gpus_internal.h"
#include "proc/proc.h"

/* ---- programs */

struct question {
    const char *const words[4];
    void (*take)(char *text, struct gpu_list *list);
    bool (*is_due)(const struct gpu_list *list);
    pid_t pid; /* 0: not asked */
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

static void ask_start(const char *program, struct question *q)
{
    ACT_AUTO(act_strv) words = {0};
    struct act_error ignored;
    int ends[2];

    if (pipe2(ends, O_CLOEXEC) < 0)
        return;
    act_strv_push(&words, program);
    for (const char *const *word = q->words; *word; word++)
        act_strv_push(&words, *word);
    int nowhere = open("/dev/null", O_WRONLY | O_CLOEXEC);
    const struct proc_start start = {
        .argv = words.v, .sees = OF_USER, .in_fd = -1, .out_fd = ends[1], .err_fd = nowhere, .own_group = true};
    if (proc_start(&start, &q->pid, &ignored) < 0)
        q->pid = 0;
    close(nowhere);
    close(ends[1]);
    q->fd = ends[0];
}

/* Reads to the end of its output; false: it says too much, or not in time. */
static bool ask_read(struct question *q, int64_t deadline_ms)
{
    enum { MAX_BYTES = 256 * 1024 };
    char chunk[4096];

    for (;;) {
        int64_t left = deadline_ms - act_now_monotonic_ms();
        struct pollfd pfd = {.fd = q->fd, .events = POLLIN};
        if (left <= 0 || q->said.len > MAX_BYTES)
            return false;
        if (poll(&pfd, 1, (int)left) <= 0)
            continue;
        ssize_t n = read(q->fd, chunk, sizeof(chunk));
        if (n > 0)
            act_buf_add(&q->said, chunk, (size_t)n);
        else if (n == 0)
            return true;
        else if (errno != EINTR)
            return false;
    }
}

/* Its status, or -1 if it does not end in time. */
static int ask_end(struct question *q, int64_t deadline_ms)
{
    enum { LOOK_MS = 2 };
    int status;

    while (waitpid(q->pid, &status, WNOHANG) == 0) {
        if (act_now_monotonic_ms() >= deadline_ms)
            return -1;
        poll(NULL, 0, LOOK_MS);
    }
    return status;
}

static enum gpus_answer ask_take(struct question *q, int64_t deadline_ms, struct gpu_list *list)
{
    enum { END_MS = 100 };
    bool is_whole = ask_read(q, deadline_ms);
    int status = is_whole ? ask_end(q, deadline_ms) : -1;

    if (status < 0) {
        kill(-q->pid, SIGKILL);
        (void)ask_end(q, act_now_monotonic_ms() + END_MS);
        return GPUS_UNANSWERED;
    }
    if (status != 0)
        return GPUS_FAILED;
    q->take(q->said.data ? q->said.data : (char[]){""}, list);
    return GPUS_TOLD;
}

/* All at once. The answer is that to the first question. */
static enum gpus_answer ask_nvidia(int limit_ms, struct gpu_list *list)
{
    struct question questions[] = {
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
    enum gpus_answer answer = GPUS_UNTOLD;

    for (int i = 0; program && i < N_QUESTIONS; i++)
        if (questions[i].is_due(list))
            ask_start(program, &questions[i]);
    for (int i = 0; i < N_QUESTIONS; i++) {
        struct question *q = &questions[i];
        enum gpus_answer said = q->pid > 0 ? ask_take(q, deadline_ms, list) : program ? GPUS_FAILED : GPUS_UNTOLD;
        answer = i == 0 ? said : answer;
        if (q->fd > 0)
            close(q->fd);
        act_buf_release(&q->said);
    }
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
        return ask_nvidia(limit_ms, list);
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
