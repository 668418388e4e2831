/* tensorflow.c - workers and parameter servers of TensorFlow, as Azure Batch AI started them.
 *
 * All nodes have the same number of processes: enough for all workers, filled node by node, plus one for a parameter
 * server. Surplus processes do nothing. Worker 0 is the master, with arguments of its own.
 *
 * A parameter server never ends by itself; Batch AI ended it with the job. Here a little program beside it, the keeper,
 * has a connection to every worker, and ends when the last of them has: then the server is told to end.
 */
#include <string.h>

#include "codec/json.h"
#include "flow/jobfile/build.h"

enum { TASKS_MAX = 4096 };

struct tasks {
    int nodes, workers, servers;
    int slots; /* workers of a node */
};

bool job_is_distributed(const struct job_build *b, const json_t *settings)
{
    return codec_json_int(b->job, "nodeCount", 1) > 1 || codec_json_int(settings, "workerCount", 1) > 1 ||
           codec_json_int(settings, "parameterServerCount", 0) > 0;
}

static int count_tasks(const struct job_build *b, const json_t *settings, struct tasks *out)
{
    int64_t nodes = codec_json_int(b->job, "nodeCount", 1), workers = codec_json_int(settings, "workerCount", nodes),
            servers = codec_json_int(settings, "parameterServerCount", 1), tasks = workers + servers;

    if (servers > nodes)
        return act_error_set(b->err, ACT_CONFIG,
                             "%s: 'properties.tensorFlowSettings.parameterServerCount' is %lld, but a node has "
                             "at most one, and 'nodeCount' is %lld",
                             b->file, (long long)servers, (long long)nodes);
    if (tasks > TASKS_MAX)
        return act_error_set(b->err, ACT_CONFIG,
                             "%s: 'properties.tensorFlowSettings' asks for %lld workers and parameter servers; "
                             "there can be %d",
                             b->file, (long long)tasks, TASKS_MAX);
    *out = (struct tasks){.nodes = (int)nodes,
                          .workers = (int)workers,
                          .servers = (int)servers,
                          .slots = (int)((workers + nodes - 1) / nodes)};
    return 0;
}

/* Addresses: every task has its own port, so that several "nodes" can share one machine. */
static const char addresses[] =
    "tf_port=$((MASTER_PORT + 1)) AZ_BATCHAI_WORKER_HOSTS= AZ_BATCHAI_PS_HOSTS=\n"
    "for ((tf_i = 0; tf_i < tf_workers; tf_i++)); do\n"
    "AZ_BATCHAI_WORKER_HOSTS+=,${tf_hosts[tf_i / tf_slots]}:$((tf_port + tf_i))\n"
    "done\n"
    "for ((tf_i = 0; tf_i < tf_servers; tf_i++)); do\n"
    "AZ_BATCHAI_PS_HOSTS+=,${tf_hosts[tf_i]}:$((tf_port + tf_workers + tf_i))\n"
    "done\n"
    "export AZ_BATCHAI_WORKER_HOSTS=${AZ_BATCHAI_WORKER_HOSTS#,} AZ_BATCHAI_PS_HOSTS=${AZ_BATCHAI_PS_HOSTS#,}\n"
    "tf_keepers=$((tf_port + tf_workers + tf_servers))\n";

static const char role[] =
    "if [ \"$LOCAL_RANK\" -lt $tf_slots ]; then\n"
    "tf_role=worker tf_count=$tf_workers AZ_BATCHAI_TASK_INDEX=$((NODE_RANK * tf_slots + LOCAL_RANK))\n"
    "else\n"
    "tf_role=ps tf_count=$tf_servers AZ_BATCHAI_TASK_INDEX=$NODE_RANK\n"
    "fi\n"
    "[ $AZ_BATCHAI_TASK_INDEX -lt $tf_count ] || exit 0\n"
    "[ $tf_role$AZ_BATCHAI_TASK_INDEX != worker0 ] || tf_role=master\n"
    "export TF_CONFIG='{\"cluster\":{\"ps\":[\"'${AZ_BATCHAI_PS_HOSTS//,/'\",\"'}'\"],"
    "\"worker\":[\"'${AZ_BATCHAI_WORKER_HOSTS//,/'\",\"'}'\"]},"
    "\"task\":{\"type\":\"'$tf_role'\",\"index\":'$AZ_BATCHAI_TASK_INDEX'},\"environment\":\"cloud\"}'\n";

/* The keeper, in the Python of the script, 2 or 3. Its arguments: port, number of workers, and the run's id, by which
 * it knows them. */
static const char keeper[] = "import socket, sys\n"
                             "server = socket.socket()\n"
                             "server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)\n"
                             "server.bind((\"\", int(sys.argv[1])))\n"
                             "server.listen(128)\n"
                             "workers = []\n"
                             "while len(workers) < int(sys.argv[2]):\n"
                             "    worker = server.accept()[0]\n"
                             "    worker.settimeout(10)\n"
                             "    try:\n"
                             "        known = worker.makefile().readline().strip() == sys.argv[3]\n"
                             "    except Exception:\n"
                             "        known = False\n"
                             "    if known:\n"
                             "        worker.settimeout(None)\n"
                             "        workers.append(worker)\n"
                             "for worker in workers:\n"
                             "    try:\n"
                             "        worker.recv(1)\n"
                             "    except Exception:\n"
                             "        pass\n";

/* Until the shell and all that it has started are gone. */
static const char hold[] =
    "for ((tf_i = 0; tf_i < tf_servers; tf_i++)); do\n"
    "until { exec {tf_hold}<>\"/dev/tcp/${tf_hosts[tf_i]}/$((tf_keepers + tf_i))\"; } 2>/dev/null; do sleep 0.5; done\n"
    "echo \"$ACT_RUN_ID\" >&$tf_hold\n"
    "done\n";

/* Whichever ends first: a server that ends before the workers says how the process ends. */
static const char attend[] = "tf_server=$!\n"
                             "wait -n\n"
                             "tf_status=$?\n"
                             "kill \"$tf_keeper\" \"$tf_server\" 2>/dev/null\n"
                             "exit $tf_status\n";

static void add_server(struct act_buf *line, const json_t *settings)
{
    act_buf_adds(line, "if [ $tf_role = ps ]; then\n");
    job_add_interpreter(line, settings);
    act_buf_addf(line, " -c '%s' $((tf_keepers + AZ_BATCHAI_TASK_INDEX)) $tf_workers \"$ACT_RUN_ID\" &\n", keeper);
    act_buf_adds(line, "tf_keeper=$!\n");
    job_add_script(line, settings, "parameterServerCommandLineArgs");
    act_buf_addf(line, " &\n%sfi\n", attend);
}

/* A resubmit may change the size without knowing about tasks. */
static void add_guard(struct act_buf *line, const struct tasks *t)
{
    act_buf_addf(line,
                 "[ $WORLD_SIZE/$LOCAL_WORLD_SIZE = %d/%d ] || {\n"
                 "echo 'these workers and parameter servers need %d node(s) with %d processes each' >&2\n"
                 "exit 2\n}\n",
                 t->nodes * (t->slots + 1), t->slots + 1, t->nodes, t->slots + 1);
}

int job_add_distributed(struct job_build *b, const json_t *settings)
{
    struct act_buf *line = &b->line;
    struct tasks t = {0};
    int rc = count_tasks(b, settings, &t);

    if (rc < 0)
        return rc;
    b->out->nodes = t.nodes;
    b->out->procs_per_node = t.slots + 1;
    b->out->fixed_size = true;
    act_buf_addf(line, "tf_workers=%d tf_servers=%d tf_slots=%d\n", t.workers, t.servers, t.slots);
    add_guard(line, &t);
    act_buf_adds(line, t.nodes == 1 ? "tf_hosts=(127.0.0.1)\n"
                                    : "IFS=, read -r -a tf_hosts <<<\"${AZ_BATCH_HOST_LIST:?says no addresses "
                                      "of the nodes}\"\n");
    act_buf_adds(line, addresses);
    act_buf_adds(line, role);
    add_server(line, settings);
    act_buf_adds(line, hold);
    act_buf_adds(line, "if [ $tf_role = master ]; then\n");
    job_add_script(line, settings, "masterCommandLineArgs");
    act_buf_adds(line, "\nelse\n");
    job_add_script(line, settings, "workerCommandLineArgs");
    act_buf_adds(line, "\nfi");
    return 0;
}
