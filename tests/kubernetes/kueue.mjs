// Kueue, as far as a Job with a queue sees it: a Workload that says why it waits, and the Job that goes on when it is
// admitted.
import { JOB, byKind } from "./kinds.mjs";
import { isTrue } from "./jobs.mjs";
import { suffix } from "./world.mjs";

const QUEUE = byKind("LocalQueue"), WORKLOAD = byKind("Workload");
const NAME = "kueue.x-k8s.io/queue-name";

export class Kueue {
    constructor(world) {
        this.world = world;
        world.store.events.on("change", ({ type, action, object }) => {
            if (world.settings.kueue && (type === QUEUE || (type === JOB && action !== "DELETED"))) {
                setImmediate(() => this.look(type === JOB ? [object] : world.store.list(JOB)));
            }
        });
    }

    look(jobs) {
        jobs.map((job) => this.world.store.current(JOB, job)).filter((job) => job?.metadata.labels?.[NAME]
            && job.spec.suspend && !job.metadata.deletionTimestamp).forEach((job) => this.queue(job));
    }

    /** Tests change kueueAdmit; the next look at the Jobs goes by it. */
    queue(job) {
        const { store, settings } = this.world;
        const { namespace, labels } = job.metadata, queueName = labels[NAME];
        const workload = this.workloadOf(job) ?? store.create(WORKLOAD, { metadata: {
            name: `job-${job.metadata.name}-${suffix()}`, namespace, ownerReferences: [{ apiVersion: "batch/v1",
                kind: "Job", name: job.metadata.name, uid: job.metadata.uid, controller: true,
                blockOwnerDeletion: true }] },
        spec: { queueName, active: true, podSets: [{ name: "main", count: job.spec.parallelism }] }, status: {} });
        const isKnown = store.find(QUEUE, namespace, queueName);
        if (isKnown && !settings.kueueAdmit && isTrue(workload, "Evicted")) {
            return;
        }
        if (!isKnown || !settings.kueueAdmit) {
            this.conditions(workload, [["QuotaReserved", "False", isKnown ? "Pending" : "Inadmissible", isKnown
                ? settings.kueueMessage : `LocalQueue ${queueName} doesn't exist`]]);
            return;
        }
        const { annotations = {} } = job.metadata, wanted = workload.spec.podSets[0].count;
        const least = Number(annotations["kueue.x-k8s.io/job-min-parallelism"] ?? wanted);
        const count = Math.min(wanted, settings.kueuePods);
        if (count < least) {
            this.conditions(workload, [["QuotaReserved", "False", "Pending", settings.kueueMessage]]);
            return;
        }
        const were = (workload.status.conditions ?? []).filter(({ type }) => ["Evicted", "Preempted"].includes(type));
        this.conditions(workload, [["QuotaReserved", "True", "QuotaReserved", "Quota reserved in ClusterQueue cluster"],
            ["Admitted", "True", "Admitted", "The workload is admitted"],
            ...were.map(({ type, message }) => [type, "False", "QuotaReserved", `Previously: ${message}`])]);
        store.change(JOB, job, ({ spec }) => {
            spec.suspend = false;
            spec.parallelism = count;
            if (annotations["kueue.x-k8s.io/job-completions-equal-parallelism"] === "true") {
                spec.completions = count;
            }
        });
    }

    /** A workload of higher priority takes the quota: the pods of the Job end, and it waits as at first. */
    preempt(job) {
        const message = "Preempted to accommodate a workload (UID: 1, JobUID: 2) due to prioritization in the "
            + "ClusterQueue";
        const workload = this.workloadOf(job), { count } = workload.spec.podSets[0];
        this.conditions(workload, [["QuotaReserved", "False", "Pending", message],
            ["Evicted", "True", "Preempted", message], ["Preempted", "True", "InClusterQueue", message]]);
        this.world.store.change(JOB, job, ({ spec }) => {
            spec.suspend = true;
            spec.parallelism = count;
            if (spec.completionMode === "Indexed") {
                spec.completions = count;
            }
        });
    }

    workloadOf({ metadata: { namespace, uid } }) {
        return this.world.store.list(WORKLOAD, namespace).find(({ metadata: { ownerReferences } }) =>
            ownerReferences?.some((owner) => owner.uid === uid));
    }

    conditions(workload, all) {
        this.world.store.change(WORKLOAD, workload, ({ status }) => {
            status.conditions = all.map(([type, value, reason, message]) => ({ type, status: value, reason, message,
                lastTransitionTime: this.world.time() }));
        });
    }
}
