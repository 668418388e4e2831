/* words.c - the members of the records that the two sides exchange. */
#include "codec/fields.h"
#include "platform/ssh/ssh_internal.h"

#define COUNT(member, most) FIELD_INT(struct hosts_facts, member, #member, .max = (most), .flags = FIELD_REQUIRED)

static const struct field facts_rows[] = {
    COUNT(slots, HOSTS_SLOTS_MOST),
    COUNT(idle, HOSTS_SLOTS_MOST),
    COUNT(running, INT32_MAX),
    COUNT(queued, INT32_MAX),
    COUNT(slots_queued, INT32_MAX),
    FIELD_INT64(struct hosts_facts, place, "place"),
    FIELD_BOOL(struct hosts_facts, has_gpus, "has_gpus"),
    FIELD_BOOL(struct hosts_facts, has_mpirun, "has_mpirun"),
};
const struct fields hosts_facts_fields = FIELDS("the machine", struct hosts_facts, facts_rows, NULL);

static const struct field nodes_rows[] = {
    FIELD_LIST(struct platform_nodes, v, n, struct platform_node, &platform_node_fields, "nodes"),
};
const struct fields hosts_nodes_fields = FIELDS("the nodes", struct platform_nodes, nodes_rows, NULL);

static const struct field job_rows[] = {
    FIELD_TEXT(struct platform_job, id, "id", .flags = FIELD_REQUIRED),
    FIELD_TEXT(struct platform_job, user, "user", .flags = FIELD_REQUIRED),
    FIELD_TEXT(struct platform_job, name, "name", .flags = FIELD_REQUIRED),
    FIELD_INT64(struct platform_job, running_s, "running_s", .min = -1),
    FIELD_INT(struct platform_job, nodes, "nodes", .min = -1),
    FIELD_INT(struct platform_job, gpus, "gpus", .min = -1),
};
static const struct fields job_fields = FIELDS("job", struct platform_job, job_rows, NULL);

static const struct field jobs_rows[] = {
    FIELD_LIST(struct platform_jobs, v, n, struct platform_job, &job_fields, "jobs"),
};
const struct fields hosts_jobs_fields = FIELDS("the jobs", struct platform_jobs, jobs_rows, NULL);
