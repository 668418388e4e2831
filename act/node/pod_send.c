/* pod_send.c - what has to outlive this pod: the folders of mode upload, and the logs. The program act sends them, to
 * the stores that the run's Secret describes: again and again while the run goes on, and at its end, however it ends.
 *
 * The logs are sent whole, so the time between two sendings grows with what there is to send.
 */
#include <stdlib.h>

#include "base/clock.h"
#include "base/units.h"
#include "codec/json.h"
#include "node/folder.h"
#include "node/pod.h"

enum {
    FOLDERS_EVERY_MS = 10 * 60 * 1000,
    LOGS_FIRST_MS = 10 * 1000,
    LOGS_MOST_MS = 10 * 60 * 1000,
    SHARE = 10, /* at most one of so many parts of the time goes into sending logs */
    STORES_MAX = 1 << 20,
};

static bool has_log_store(const struct pod *pod)
{
    ACT_AUTOFREE char *path = node_path(&pod->node, RUN_FILE_STORES);
    CODEC_AUTOJSON json_t *stores = NULL;

    return codec_json_read(path, STORES_MAX, &stores, NULL) == 0 &&
           json_object_get(json_object_get(stores, "folders"), RUN_STORE_LOGS);
}

/* Returns how many pods there were before this one in its place: job.c of the platform has the variables made. */
static int lives_before(void)
{
    static const char *const names[] = {"ACT_POD_FAILED", "ACT_POD_IGNORED"};
    int lives = 0;

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        const char *text = getenv(names[i]);
        int64_t n;
        if (text && act_int_from_text(text, &n) && n > 0 && n < POD_ATTEMPTS_MAX / 2)
            lives += (int)n;
    }
    return lives;
}

void pod_send_open(struct pod *pod)
{
    int64_t now = act_now_monotonic_ms();

    pod->send = (struct pod_send){.gap_ms = LOGS_FIRST_MS, .due_ms = {now + FOLDERS_EVERY_MS, now + LOGS_FIRST_MS}};
    if (folder_any_to_send(&pod->node))
        pod->send.has |= SEND_FOLDERS;
    if (has_log_store(pod))
        pod->send.has |= SEND_LOGS;
    if (pod->index == 0)
        pod->send.before = lives_before();
    int sent = pod->index == 0 && (pod->send.has & SEND_LOGS) ? folder_find_sent(&pod->node) : 0;
    pod->send.before = sent > pod->send.before ? sent : pod->send.before;
}

/* Runs in a process of its own. */
static int send_them(void *arg)
{
    struct pod *pod = arg;
    int failed = 0;

    if ((pod->send.sending & SEND_FOLDERS) && folder_send_all(&pod->node) != 0)
        failed |= SEND_FOLDERS;
    if ((pod->send.sending & SEND_LOGS) &&
        folder_send_logs(&pod->node, pod->attempt > 0 ? pod->attempt : pod->send.before + 1) != 0)
        failed |= SEND_LOGS;
    return failed;
}

static void send_start(struct pod *pod, int what)
{
    pod->send.sending = what;
    pod->send.begun_ms = act_now_monotonic_ms();
    pod->send.pid = child_start(&(struct child){.run = send_them, .arg = pod, .out_fd = -1});
    if (pod->send.pid > 0)
        return;
    pod->send.pid = 0;
    pod->send.failed |= what;
}

void pod_send_step(struct pod *pod)
{
    static const int each[] = {SEND_FOLDERS, SEND_LOGS};
    int64_t now = act_now_monotonic_ms();
    int due = 0;

    if (!pod->send.has || pod->send.pid || pod->phase != POD_RUNS)
        return;
    for (int i = 0; i < 2; i++)
        if ((pod->send.has & each[i]) && now >= pod->send.due_ms[i])
            due |= each[i];
    if (due)
        send_start(pod, due);
}

bool pod_send_ended(struct pod *pod, pid_t pid, int wait_status)
{
    struct pod_send *s = &pod->send;
    int64_t now = act_now_monotonic_ms();

    if (pid != s->pid)
        return false;
    int status = child_exit_status(wait_status);
    s->failed = (s->failed & ~s->sending) | (status <= (SEND_FOLDERS | SEND_LOGS) ? status : s->sending);
    s->pid = 0;
    if (s->sending & SEND_FOLDERS)
        s->due_ms[0] = now + FOLDERS_EVERY_MS;
    if (!(s->sending & SEND_LOGS))
        return true;
    s->gap_ms = s->gap_ms + s->gap_ms / 2 < LOGS_MOST_MS ? s->gap_ms + s->gap_ms / 2 : LOGS_MOST_MS;
    if (s->gap_ms < (now - s->begun_ms) * SHARE)
        s->gap_ms = (now - s->begun_ms) * SHARE;
    s->due_ms[1] = now + s->gap_ms;
    return true;
}

bool pod_send_last(struct pod *pod, int what)
{
    struct pod_send *s = &pod->send;
    int left = what & s->has & ~s->begun;

    if (s->pid)
        return false;
    if (left) {
        s->begun |= left;
        send_start(pod, left);
    }
    return s->pid == 0;
}
