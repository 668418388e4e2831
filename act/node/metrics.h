/* metrics.h - what a node of the run uses, as a line of JSON every ten seconds in metrics/<node>.jsonl.
 *
 *   {"time": Unix seconds with fractions, "node": name,
 *    "cpu": {"cores": processors of the node, "busy": share of them that worked (0 to 1), "run": how many of them the
 *            run's processes kept busy},
 *    "memory": {"total", "available", "run": resident memory of the run's processes; shared pages count for each},
 *    "disk": {"code": {"total", "free"}, "run": {"total", "free"}: the file systems of the code root and of the run's
 *             folder, "read_per_s", "written_per_s": of all disks of the node},
 *    "network": {"received_per_s", "sent_per_s": of all interfaces but the loopback},
 *    "infiniband": {"received_per_s", "sent_per_s"}: of all ports; only where there are any,
 *    "gpus": [{"index", "busy" (0 to 1), "memory_used", "memory_total", "celsius", "watts", "ecc_errors": not
 *            corrected, since the driver was loaded}]: only where there is nvidia-smi; null: it did not answer}
 *
 * Sizes are bytes. What is not known is null: rates in the first line, numbers that a GPU does not have. Shares and
 * rates are those since the line before. Members may be added. Every line is one write of less than 4 KiB.
 *
 * A job of a service has no folder that comes back: there the same is a line for people in the log of local rank 0, a
 * minute after it began and every half hour (ACT_METRICS_EVERY: seconds, 0: never):
 *
 *   act: metrics: node n1, cpu 35 %, memory 12.1/251.0 GiB, disk 100.0/1024.0 GiB, gpu 0 97 % 29.3/40.0 GiB, gpu 1 -
 *   0.0/40.0 GiB, at 2026-01-01T00:00:00Z
 *
 * (in one line), and before the first of them what the node is (inventory.h), each line with the same beginning. Sizes
 * are used/total, the disk is that of the code root, "-" is what is not known. Members may be added before the time.
 *
 * Sources: proc(5); kernel.org/doc/Documentation/ABI/stable/sysfs-class-infiniband (data counters count 4 bytes);
 * nvidia-smi --help-query-gpu.
 */
#ifndef ACT_NODE_METRICS_H
#define ACT_NODE_METRICS_H

#include "node/gpu.h"
#include "node/node.h"

/* Starts the sampler of this node as a child; one rank of each node does it. It writes its first line at once, and
 * its last one, without GPUs, when it is told to end (SIGTERM); it dies with this process. If it cannot be started,
 * the log says why, and the run goes on without it. use (may be NULL) is memory shared with the child, which gets what
 * the GPUs of the run do at each line. */
void metrics_start(const struct node *node, _Atomic(enum gpu_use) *use);

/* Starts one that writes the lines for people to the log of this rank, on the same terms. */
void metrics_report(const struct node *node, int log_fd);

/* Do the same in steps: make a sampler, of which a process has one at a time, and take a sample as a line, or as a text
 * for people. Both end with a newline; new strings. */
struct metrics;
struct metrics *metrics_new(const struct node *node);
char *metrics_line(struct metrics *m);
char *metrics_text(struct metrics *m);
void metrics_free(struct metrics *m);

#endif
