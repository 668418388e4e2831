#include "node/stacks.h"

#include <ctype.h>
#include <dirent.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/file.h"
#include "node/processes.h"
#include "proc/proc.h"

enum { BYTES_MAX = 256 * 1024, PROCESSES_MAX = 64, THREADS_MAX = 64, PYTHONS_MAX = 8, PYTHON_S = 6 };

/* ---- one process ---- */

static void stacks_add_command(const struct process *p, struct act_buf *out)
{
    char words[2048];
    size_t n = processes_read(p->pid, "cmdline", words, sizeof(words));

    for (size_t i = 0; i + 1 < n; i++)
        if (words[i] == '\0')
            words[i] = ' ';
    act_mask_controls(words, "", '?');
    act_buf_addf(out, "---- process %d, started by %d: %s\n", (int)p->pid, (int)p->parent, n ? words : p->name);
}

/* Reads a file of a thread without its last newline; empty: the kernel refuses it. */
static void read_of_thread(pid_t pid, const char *thread, const char *name, char *out, size_t size)
{
    char path[64];

    snprintf(path, sizeof(path), "task/%.20s/%s", thread, name);
    size_t n = processes_read(pid, path, out, size);
    while (n > 0 && isspace((unsigned char)out[n - 1]))
        out[--n] = '\0';
}

/* Tells whether it is a place, and not "0", by which the kernel means that it does not tell, or that the thread
 * runs. */
static bool stacks_is_place(const char *wchan)
{
    return *wchan && strcmp(wchan, "0") != 0;
}

static void add_indented(const char *text, struct act_buf *out)
{
    for (size_t n; *text; text += n + (text[n] == '\n')) {
        n = strcspn(text, "\n");
        act_buf_addf(out, "    %.*s\n", (int)n, text);
    }
}

static void add_thread(pid_t pid, const char *thread, struct act_buf *out)
{
    char stat[512], wchan[128], call[256], stack[8192];

    read_of_thread(pid, thread, "stat", stat, sizeof(stat));
    read_of_thread(pid, thread, "wchan", wchan, sizeof(wchan));
    read_of_thread(pid, thread, "syscall", call, sizeof(call));
    read_of_thread(pid, thread, "stack", stack, sizeof(stack));
    const char *name = strchr(stat, '('), *end = strrchr(stat, ')');
    if (!name || !end)
        return;
    act_buf_addf(out, "  thread %s %.*s: state %c", thread, (int)(end - name + 1), name, end[1] ? end[2] : '?');
    if (stacks_is_place(wchan))
        act_buf_addf(out, ", waits in %s", wchan);
    if (*call)
        act_buf_addf(out, ", system call %s", call);
    act_buf_addc(out, '\n');
    add_indented(stack, out);
}

static void add_threads(pid_t pid, struct act_buf *out)
{
    ACT_AUTOFREE char *path = act_sprintf("/proc/%d/task", (int)pid);
    DIR *dir = opendir(path);
    int n = 0;

    for (const struct dirent *e; dir && (e = readdir(dir)) && out->len < BYTES_MAX;)
        if (isdigit((unsigned char)e->d_name[0]) && ++n <= THREADS_MAX)
            add_thread(pid, e->d_name, out);
    if (dir)
        closedir(dir);
    if (n > THREADS_MAX)
        act_buf_addf(out, "  and %d more threads\n", n - THREADS_MAX);
}

/* ---- Python ---- */

static const char *stacks_next_line(const char *line)
{
    const char *end = strchr(line, '\n');

    return end ? end + 1 : line + strlen(line);
}

/* Returns the length of "    wait (threading.py:320)" without the blanks; 0: it is not a frame. */
static int frame_length(const char *line)
{
    return act_starts_with(line, "    ") ? (int)strcspn(line + 4, "\r\n") : 0;
}

bool stacks_python_place(const char *dump, char *out, size_t size)
{
    const char *thread = strstr(dump, "\"MainThread\"");
    const char *top = thread ? stacks_next_line(thread) : "", *caller = stacks_next_line(top);
    int n = frame_length(top), m = n ? frame_length(caller) : 0;

    if (n == 0)
        return false;
    snprintf(out, size, "%.*s%s%.*s", n, top + 4, m ? ", called by " : "", m, m ? caller + 4 : "");
    return true;
}

/* Lets py-spy not stop the process, which the end of py-spy might leave stopped. */
static void stacks_add_python(char *py_spy, pid_t pid, char *where, size_t size, struct act_buf *out)
{
    ACT_AUTOFREE char *number = act_sprintf("%d", (int)pid);
    char *argv[] = {py_spy, (char[]){"dump"}, (char[]){"--nonblocking"}, (char[]){"--pid"}, number, NULL};
    struct proc_result result = {0};
    struct act_error err;
    int rc = proc_call(&(struct proc_call){.argv = argv, .timeout_s = PYTHON_S, .max_bytes = BYTES_MAX}, &result, &err);

    act_buf_adds(out, "  py-spy:\n");
    if (rc < 0)
        add_indented(act_error_text(&err), out);
    else
        add_indented(result.status == 0 ? result.out : result.err, out);
    if (rc == 0 && result.status == 0 && !*where && !stacks_python_place(result.out, where, size))
        *where = '\0';
    proc_result_release(&result);
}

/* ---- a rank ---- */

static bool has_child(const struct processes *list, pid_t pid)
{
    for (size_t i = 0; i < list->n; i++)
        if (list->v[i].ours && list->v[i].parent == pid)
            return true;
    return false;
}

/* Finds where the first process is that waits for no other: "sleep in hrtimer_nanosleep". */
static void stacks_find_place(const struct processes *list, char *where, size_t size)
{
    char wchan[128] = "";

    for (size_t i = 0; i < list->n; i++) {
        const struct process *p = &list->v[i];
        if (!p->ours || has_child(list, p->pid))
            continue;
        processes_read(p->pid, "wchan", wchan, sizeof(wchan));
        if (stacks_is_place(wchan))
            snprintf(where, size, "%s (process %d, %s)", wchan, (int)p->pid, p->name);
        else
            snprintf(where, size, "process %d, %s, in state %c", (int)p->pid, p->name, p->state);
        return;
    }
}

static void stacks_add_processes(const struct processes *list, char *where, size_t size, struct act_buf *out)
{
    ACT_AUTOFREE char *py_spy = proc_find_in_path("py-spy");
    int shown = 0, pythons = 0;

    for (size_t i = 0; i < list->n && out->len < BYTES_MAX; i++) {
        const struct process *p = &list->v[i];
        if (!p->ours || ++shown > PROCESSES_MAX)
            continue;
        stacks_add_command(p, out);
        add_threads(p->pid, out);
        if (py_spy && act_starts_with(p->name, "python") && ++pythons <= PYTHONS_MAX)
            stacks_add_python(py_spy, p->pid, where, size, out);
    }
    if (shown > PROCESSES_MAX)
        act_buf_addf(out, "and %d more processes\n", shown - PROCESSES_MAX);
}

/* Appends by one write, so that the ranks of the node do not mix. */
static void stacks_append(const struct node *node, const struct act_buf *text)
{
    ACT_AUTOFREE char *name = act_sprintf(RUN_FILE_STACKS, node->name);
    ACT_AUTOCLOSE int fd = node_open_log(node, name);

    if (fd < 0 || act_write_all(fd, text->data, text->len < BYTES_MAX ? text->len : BYTES_MAX) < 0)
        node_say("cannot write '%s': %m", name);
}

static void make_ascii(char *text)
{
    for (char *c = text; *c; c++)
        if (*c < ' ' || *c > '~')
            *c = '?';
}

int stacks_take(void *arg)
{
    const struct stacks_task *task = arg;
    struct processes list;
    ACT_AUTO(act_buf) text = {0};
    char when[ACT_TIME_TEXT], where[192] = "";

    act_time_to_iso(act_now_unix_s(), when);
    processes_list(&list);
    processes_mark_commands(&list, task->agent);
    act_buf_addf(&text, "==== rank %d on %s, %s\n", task->rank, task->node->name, when);
    stacks_add_processes(&list, where, sizeof(where), &text);
    if (!*where)
        stacks_find_place(&list, where, sizeof(where));
    processes_release(&list);
    stacks_append(task->node, &text);
    make_ascii(where);
    snprintf(task->where, task->where_size, "%s", where);
    *task->done = true;
    return 0;
}
