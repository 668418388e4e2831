#include "node/counters.h"

#include <ctype.h>
#include <dirent.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/path.h"
#include "base/text.h"
#include "base/units.h"

/* ---- single files ---- */

static char *read_text(const char *path)
{
    enum { MAX_BYTES = 4 * 1024 * 1024 };
    char *text = NULL;
    struct act_error err;

    return act_file_read(path, MAX_BYTES, &text, NULL, &err) < 0 ? act_strdup("") : text;
}

/* Calls visit with every line, which it may change. */
static void for_lines(const char *path, void (*visit)(char *line, struct counters *), struct counters *c)
{
    ACT_AUTOFREE char *text = read_text(path);
    char *rest, *line = strtok_r(text, "\n", &rest);

    for (; line; line = strtok_r(NULL, "\n", &rest))
        visit(line, c);
}

/* "cpu  user nice system idle iowait irq softirq steal ..." */
static void add_cpu(char *line, struct counters *c)
{
    uint64_t t[8] = {0};

    if (sscanf(line, "cpu %" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu64,
               &t[0], &t[1], &t[2], &t[3], &t[4], &t[5], &t[6], &t[7]) < 5)
        return; /* including the lines of single processors */
    for (size_t i = 0; i < 8; i++)
        c->cpu_total += t[i];
    c->cpu_busy = c->cpu_total - t[3] - t[4];
}

static void add_memory(char *line, struct counters *c)
{
    uint64_t kib;

    if (sscanf(line, "MemTotal: %" SCNu64, &kib) == 1)
        c->memory_total = kib * 1024;
    else if (sscanf(line, "MemAvailable: %" SCNu64, &kib) == 1)
        c->memory_available = kib * 1024;
}

/* No partitions, and no devices stacked on other disks: their bytes would count twice. */
static bool is_disk(const char *name)
{
    static const char *const others[] = {"loop", "ram", "dm-", "md", "zram"};
    ACT_AUTOFREE char *whole = act_path_join("/sys/block", name);

    for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
        if (act_starts_with(name, others[i]))
            return false;
    return access(whole, F_OK) == 0;
}

static void add_disk(char *line, struct counters *c)
{
    enum { SECTOR_BYTES = 512 };
    char name[64];
    uint64_t sectors_read, sectors_written;

    if (sscanf(line, "%*u %*u %63s %*u %*u %" SCNu64 " %*u %*u %*u %" SCNu64, name, &sectors_read, &sectors_written) !=
            3 ||
        !is_disk(name))
        return;
    c->disk_read += sectors_read * SECTOR_BYTES;
    c->disk_written += sectors_written * SECTOR_BYTES;
}

/* " eth0: received packets errs drop fifo frame compressed multicast sent ..."; the first two lines are a header. */
static void add_interface(char *line, struct counters *c)
{
    char *name = line + strspn(line, " "), *colon = strchr(name, ':');
    uint64_t received, sent;

    if (!colon)
        return;
    *colon = '\0';
    if (strcmp(name, "lo") == 0 ||
        sscanf(colon + 1, "%" SCNu64 " %*u %*u %*u %*u %*u %*u %*u %" SCNu64, &received, &sent) != 2)
        return;
    c->net_received += received;
    c->net_sent += sent;
}

/* ---- InfiniBand ---- */

static uint64_t read_ib_counter(const char *port, const char *name)
{
    enum { UNIT_BYTES = 4 };
    ACT_AUTOFREE char *path = act_sprintf("%s/counters/%s", port, name);
    ACT_AUTOFREE char *text = read_text(path);

    return strtoull(text, NULL, 10) * UNIT_BYTES;
}

/* Calls visit with the path of every entry of dir. */
static void for_entries(const char *dir, void (*visit)(const char *path, struct counters *), struct counters *c)
{
    DIR *d = opendir(dir);

    for (const struct dirent *e; d && (e = readdir(d));) {
        ACT_AUTOFREE char *path = act_path_join(dir, e->d_name);
        if (e->d_name[0] != '.')
            visit(path, c);
    }
    if (d)
        closedir(d);
}

static void add_port(const char *port, struct counters *c)
{
    c->has_infiniband = true;
    c->ib_received += read_ib_counter(port, "port_rcv_data");
    c->ib_sent += read_ib_counter(port, "port_xmit_data");
}

static void add_adapter(const char *adapter, struct counters *c)
{
    ACT_AUTOFREE char *ports = act_path_join(adapter, "ports");

    for_entries(ports, add_port, c);
}

/* ---- the run's processes ---- */

struct process {
    int pid, parent;
    bool ours;
    uint64_t ticks, pages;
};

struct processes {
    struct process *v;
    size_t n;
};

/* Reads a small file of /proc/<pid>; its length, 0 if the process is gone. */
static size_t read_of_process(int pid, const char *name, char *out, size_t size)
{
    char path[64];

    snprintf(path, sizeof(path), "/proc/%d/%s", pid, name);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return 0;
    ssize_t n = read(fd, out, size - 1);
    close(fd);
    out[n > 0 ? n : 0] = '\0';
    return n > 0 ? (size_t)n : 0;
}

/* Whether the process's arguments are "<anything> rank <run_dir>". */
static bool is_rank_agent(int pid, const char *run_dir)
{
    static const char verb[] = "rank";
    char words[8192];
    size_t n = read_of_process(pid, "cmdline", words, sizeof(words)), at = strlen(words) + 1;

    return n > at + sizeof(verb) && strcmp(words + at, verb) == 0 && strcmp(words + at + sizeof(verb), run_dir) == 0;
}

/* /proc/<pid>/stat; the name of the program is in parentheses and may contain anything. */
static bool read_process(int pid, const char *run_dir, struct process *out)
{
    static const char agent[] = "(act-node)";
    char text[1024];
    uint64_t own[2], reaped[2], pages;

    if (read_of_process(pid, "stat", text, sizeof(text)) == 0)
        return false;
    const char *name = strchr(text, '('), *end = strrchr(text, ')');
    if (!name || !end ||
        sscanf(end + 1,
               " %*c %d %*d %*d %*d %*d %*u %*u %*u %*u %*u %" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu64
               " %*d %*d %*d %*d %*u %*u %" SCNu64,
               &out->parent, &own[0], &own[1], &reaped[0], &reaped[1], &pages) != 6)
        return false;
    out->pid = pid;
    out->ticks = own[0] + own[1] + reaped[0] + reaped[1];
    out->pages = pages;
    out->ours = strncmp(name, agent, sizeof(agent) - 1) == 0 && is_rank_agent(pid, run_dir);
    return true;
}

static int by_pid(const void *a, const void *b)
{
    const struct process *x = a, *y = b;

    return (x->pid > y->pid) - (x->pid < y->pid);
}

static void list_processes(const char *run_dir, struct processes *out)
{
    DIR *proc = opendir("/proc");
    struct process p;

    for (const struct dirent *e; proc && (e = readdir(proc));) {
        if (!isdigit((unsigned char)e->d_name[0]) || !read_process(atoi(e->d_name), run_dir, &p))
            continue;
        ACT_PUSH(out->v, out->n, p);
    }
    if (proc)
        closedir(proc);
    if (out->n > 0)
        qsort(out->v, out->n, sizeof(p), by_pid);
}

/* A child usually has a larger number than its parent: then one round finds all, and a second one finds nothing. */
static void mark_descendants(struct processes *list)
{
    for (bool more = true; more;) {
        more = false;
        for (size_t i = 0; i < list->n; i++) {
            struct process wanted = {.pid = list->v[i].parent};
            const struct process *parent =
                list->v[i].ours ? NULL : bsearch(&wanted, list->v, list->n, sizeof(wanted), by_pid);
            if (parent && parent->ours)
                list->v[i].ours = more = true;
        }
    }
}

static void add_processes(const char *run_dir, struct counters *c)
{
    struct processes list = {0};
    uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);

    list_processes(run_dir, &list);
    mark_descendants(&list);
    for (size_t i = 0; i < list.n; i++)
        if (list.v[i].ours) {
            c->run_cpu += list.v[i].ticks;
            c->run_memory += list.v[i].pages * page;
        }
    free(list.v);
}

void counters_read(const char *run_dir, struct counters *out)
{
    *out = (struct counters){0};
    for_lines("/proc/stat", add_cpu, out);
    for_lines("/proc/meminfo", add_memory, out);
    for_lines("/proc/diskstats", add_disk, out);
    for_lines("/proc/net/dev", add_interface, out);
    for_entries("/sys/class/infiniband", add_adapter, out);
    add_processes(run_dir, out);
}
