#include "node/counters.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/path.h"
#include "base/text.h"
#include "node/node.h"
#include "node/processes.h"

/* ---- single files ---- */

/* Calls visit with every line, which it may change. */
static void for_lines(const char *path, void (*visit)(char *line, struct counters *), struct counters *c)
{
    ACT_AUTOFREE char *text = node_read_text(path);
    char *rest, *line = strtok_r(text, "\n", &rest);

    for (; line; line = strtok_r(NULL, "\n", &rest))
        visit(line, c);
}

/* Reads "cpu  user nice system idle iowait irq softirq steal ...". */
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

/* Leaves out partitions, and devices stacked on other disks: their bytes would count twice. */
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

/* Reads " eth0: received packets errs drop fifo frame compressed multicast sent ..."; the first two lines are a header.
 */
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
    ACT_AUTOFREE char *text = node_read_text(path);

    return strtoull(text, NULL, 10) * UNIT_BYTES;
}

/* Calls visit with the path of every entry of dir. */
static void counters_for_entries(const char *dir, void (*visit)(const char *path, struct counters *),
                                 struct counters *c)
{
    ACT_AUTO(act_strv) names = {0};

    act_folder_names(dir, &names);
    for (size_t i = 0; i < names.n; i++) {
        ACT_AUTOFREE char *path = act_path_join(dir, names.v[i]);
        visit(path, c);
    }
}

static void counters_add_port(const char *port, struct counters *c)
{
    c->has_infiniband = true;
    c->ib_received += read_ib_counter(port, "port_rcv_data");
    c->ib_sent += read_ib_counter(port, "port_xmit_data");
}

static void counters_add_adapter(const char *adapter, struct counters *c)
{
    ACT_AUTOFREE char *ports = act_path_join(adapter, "ports");

    counters_for_entries(ports, counters_add_port, c);
}

/* ---- the run's processes ---- */

/* Tells whether the process's arguments are "<anything> rank <run_dir>". */
static bool is_rank_agent(const struct process *p, const char *run_dir)
{
    static const char verb[] = "rank";
    char words[8192];

    if (strcmp(p->name, "act-node") != 0)
        return false;
    size_t n = processes_read(p->pid, "cmdline", words, sizeof(words)), at = strlen(words) + 1;
    return n > at + sizeof(verb) && strcmp(words + at, verb) == 0 && strcmp(words + at + sizeof(verb), run_dir) == 0;
}

static void counters_add_processes(const char *run_dir, struct counters *c)
{
    struct processes list = {0};
    uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);

    processes_list(&list);
    for (size_t i = 0; i < list.n; i++)
        list.v[i].ours = is_rank_agent(&list.v[i], run_dir);
    processes_mark_descendants(&list);
    for (size_t i = 0; i < list.n; i++)
        if (list.v[i].ours) {
            c->run_cpu += list.v[i].ticks;
            c->run_memory += list.v[i].pages * page;
        }
    processes_release(&list);
}

void counters_read(const char *run_dir, struct counters *out)
{
    *out = (struct counters){0};
    for_lines("/proc/stat", add_cpu, out);
    for_lines("/proc/meminfo", add_memory, out);
    for_lines("/proc/diskstats", add_disk, out);
    for_lines("/proc/net/dev", add_interface, out);
    counters_for_entries("/sys/class/infiniband", counters_add_adapter, out);
    counters_add_processes(run_dir, out);
}
