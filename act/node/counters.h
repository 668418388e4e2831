/* counters.h - the kernel's counters on this machine, and what the processes of a run use. */
#ifndef ACT_NODE_COUNTERS_H
#define ACT_NODE_COUNTERS_H

#include <stdbool.h>
#include <stdint.h>

/* Since the machine was started, or for as long as the process lives. */
struct counters {
    uint64_t cpu_total, cpu_busy;                                                   /* ticks of all processors */
    uint64_t run_cpu;                                                               /* ticks of the run's processes */
    uint64_t disk_read, disk_written, net_received, net_sent, ib_received, ib_sent; /* bytes */
    bool has_infiniband;
    uint64_t memory_total, memory_available, run_memory; /* bytes, now */
};

/* Reads the counters; one that cannot be read stays 0. The run's processes are the agents "act-node rank <run_dir>" on
 * this machine and all their descendants. */
void counters_read(const char *run_dir, struct counters *out);

#endif
