// The Job controller: makes pods, counts those that ended, ends the Job.
import { knows } from "./defaults.mjs";
import { JOB, POD } from "./kinds.mjs";
import { judge } from "./podfailure.mjs";
import { isFinished } from "./store.mjs";
import { suffix } from "./world.mjs";

const SOURCE = "job-controller";
const INDEX = "batch.kubernetes.io/job-completion-index";
const FAILED = "batch.kubernetes.io/job-index-failure-count";
const IGNORED = "batch.kubernetes.io/job-index-ignored-failure-count";
const TRACKING = "batch.kubernetes.io/job-tracking"; // a finalizer: a pod goes when it was counted
const LOOK_MS = 200; // at least so often a Job is looked at that waits before its next pod

export const isTrue = (object, type) => object.status?.conditions?.some(
    (one) => one.type === type && one.status === "True");
const isOver = (job) => isTrue(job, "Complete") || isTrue(job, "Failed");
const isReady = (pod) => isTrue(pod, "Ready");

/** "0,2-4" */
export function ranges(numbers) {
    const sorted = [...numbers].sort((a, b) => a - b);
    const found = [];
    for (const number of sorted) {
        const last = found.at(-1);
        if (last && last[1] === number - 1) {
            last[1] = number;
        } else {
            found.push([number, number]);
        }
    }
    return found.map(([first, last]) => (first === last ? `${first}`
        : `${first}${last === first + 1 ? "," : "-"}${last}`)).join(",");
}

/** Whether those that have succeeded are what a rule of a success policy wants. */
function isMet({ succeededIndexes, succeededCount }, succeeded) {
    const wanted = succeededIndexes?.split(",").flatMap((part) => {
        const [first, last = first] = part.split("-").map(Number);
        return Array.from({ length: last - first + 1 }, (_, i) => first + i);
    }) ?? [...succeeded];
    const found = wanted.filter((index) => succeeded.has(index));
    return found.length >= (succeededCount ?? wanted.length) && found.length > 0;
}

export class JobController {
    constructor(world, api) {
        Object.assign(this, { world, api, counts: new Map(), timers: new Map() });
        world.store.events.on("change", ({ type, action, object }) => {
            if (type === JOB) {
                this.soon(object.metadata.namespace, object.metadata.name);
            } else if (type === POD) {
                this.podChanged(object, action === "DELETED");
            }
        });
    }

    reset() {
        this.timers.forEach(({ timer }) => clearTimeout(timer));
        this.timers.clear();
        this.counts.clear();
    }

    /** What is known of a job beside its status. */
    countsOf(job) {
        const { uid } = job.metadata;
        if (!this.counts.has(uid)) {
            this.counts.set(uid, { seen: new Set(), failed: 0, succeeded: new Set(), others: 0, failedAt: 0 });
        }
        return this.counts.get(uid);
    }

    /** Looks at a Job in so long, or before: whoever looks knows for when the next look is due. */
    soon(namespace, name, ms = 0) {
        const key = `${namespace}/${name}`, due = performance.now() + ms, other = this.timers.get(key);
        if (other?.due <= due) {
            return;
        }
        clearTimeout(other?.timer);
        const timer = setTimeout(() => {
            this.timers.delete(key);
            const job = this.world.store.find(JOB, namespace, name);
            if (job) {
                this.sync(job);
            }
        }, ms);
        this.timers.set(key, { timer, due });
    }

    podChanged(pod, isGone) {
        const owner = pod.metadata.ownerReferences?.find(({ kind, controller }) => kind === "Job" && controller);
        const job = owner && this.world.store.find(JOB, pod.metadata.namespace, owner.name);
        if (job?.metadata.uid !== owner?.uid || !job || job.metadata.deletionTimestamp) {
            this.untrack(pod);
            return;
        }
        if (isFinished(pod) || isGone) {
            this.count(job, pod);
        }
        this.soon(pod.metadata.namespace, owner.name);
    }

    /** Counts a pod that ended, or that went before it ended, once. */
    count(job, pod) {
        const counts = this.countsOf(job);
        if (counts.seen.has(pod.metadata.uid) || isOver(job)) {
            return;
        }
        counts.seen.add(pod.metadata.uid);
        if (pod.status.phase === "Succeeded") {
            counts.succeeded.add(indexOf(pod) ?? pod.metadata.uid);
            return;
        }
        const { action, message } = judge(job.spec.podFailurePolicy, pod);
        if (action === "FailJob") {
            counts.policy ??= message;
        }
        counts.failed += action === "Ignore" ? 0 : 1;
        counts.failedAt = this.world.now();
    }

    podsOf(job) {
        return this.world.store.list(POD, job.metadata.namespace).filter((pod) =>
            pod.metadata.ownerReferences?.some(({ uid, controller }) => controller && uid === job.metadata.uid));
    }

    // ---- one look at a job

    sync(job) {
        if (job.metadata.deletionTimestamp) {
            this.podsOf(job).forEach((pod) => this.untrack(pod));
            return;
        }
        if (isOver(job)) {
            this.podsOf(job).forEach((pod) => this.untrack(pod));
            this.forget(job);
            return;
        }
        const pods = this.podsOf(job).filter((pod) => !isFinished(pod));
        const active = pods.filter((pod) => !pod.metadata.deletionTimestamp);
        const ending = this.endOf(job);
        if (ending) {
            this.end(job, active, pods, ending);
        } else if (job.spec.suspend) {
            this.suspend(job, active);
        } else {
            this.resume(job);
            this.scale(job, active, pods);
        }
        this.tellStatus(job);
        this.podsOf(job).filter((pod) => this.countsOf(job).seen.has(pod.metadata.uid)
            && this.lastFailed(job, indexOf(pod)) !== pod).forEach((pod) => this.untrack(pod));
    }

    // ---- pods that were counted

    /** Nothing of this controller holds the pod any more. */
    untrack(pod) {
        if (pod.metadata.finalizers?.includes(TRACKING)) {
            this.world.store.change(POD, pod, ({ metadata }) => {
                metadata.finalizers = metadata.finalizers.filter((name) => name !== TRACKING);
            });
        }
    }

    /** With a limit for each index the last failed pod of one stays until there is another, which has its count. */
    lastFailed(job, index) {
        const all = this.podsOf(job).filter((pod) => index !== undefined && indexOf(pod) === index);
        const isHeld = job.spec.backoffLimitPerIndex !== undefined && !all.some((pod) => !isFinished(pod)
            && !pod.metadata.deletionTimestamp);
        const failed = all.filter(({ status }) => status.phase === "Failed").sort((a, b) => livesOf(a) - livesOf(b));
        return isHeld ? failed.at(-1) : undefined;
    }

    /** Why a job is over: {type, reason, message}; undefined while it is not. */
    endOf(job) {
        const { spec, status } = job, counts = this.countsOf(job);
        const failed = (reason, message) => ({ type: "Failed", before: "FailureTarget", reason, message });
        const started = status.startTime && Date.parse(status.startTime);
        if (status.conditions?.some(({ type }) => type === "FailureTarget")) {
            const { reason, message } = status.conditions.find(({ type }) => type === "FailureTarget");
            return failed(reason, message);
        }
        const success = { type: "Complete", before: "SuccessCriteriaMet", reason: "SuccessPolicy",
            message: "Matched rules at index 0" };
        if (isTrue(job, "SuccessCriteriaMet") && spec.successPolicy) {
            return success;
        }
        if (counts.policy) {
            return failed("PodFailurePolicy", counts.policy);
        }
        if (this.failures(job) > spec.backoffLimit) {
            return failed("BackoffLimitExceeded", "Job has reached the specified backoff limit");
        }
        if (started && spec.activeDeadlineSeconds !== undefined && !spec.suspend) {
            const left = started + spec.activeDeadlineSeconds * 1000 - this.world.now();
            if (left <= 0) {
                return failed("DeadlineExceeded", "Job was active longer than specified deadline");
            }
            this.soon(job.metadata.namespace, job.metadata.name, left + 1);
        }
        if (spec.successPolicy?.rules.some((rule) => isMet(rule, counts.succeeded))) {
            return success;
        }
        const wanted = spec.completions ?? 1;
        return counts.succeeded.size >= wanted && { type: "Complete", before: "SuccessCriteriaMet",
            reason: "CompletionsReached", message: "Reached expected number of succeeded pods" };
    }

    failures(job) {
        const restarts = this.podsOf(job).flatMap((pod) => pod.status.containerStatuses ?? [])
            .reduce((sum, { restartCount }) => sum + restartCount, 0);
        return this.countsOf(job).failed + restarts;
    }

    end(job, active, pods, { type, before, reason, message }) {
        const isNew = knows(this.world.settings, "podReplacementPolicy");
        if (isNew && !isTrue(job, before)) {
            this.condition(job, before, "True", reason, message);
        }
        active.forEach((pod) => this.deletePod(job, pod));
        if (pods.some((pod) => this.world.store.current(POD, pod))) {
            return;
        }
        this.condition(job, type, "True", isNew || type === "Failed" ? reason : undefined,
            isNew || type === "Failed" ? message : undefined);
        this.world.store.change(JOB, job, ({ status }) => {
            if (type === "Complete") {
                status.completionTime = this.world.time();
            }
        });
        this.world.event(type === "Failed" ? "Warning" : "Normal", job, type === "Failed" ? reason : "Completed",
            type === "Failed" ? message : "Job completed", SOURCE);
        this.soon(job.metadata.namespace, job.metadata.name);
    }

    suspend(job, active) {
        const { store } = this.world;
        active.forEach((pod) => this.dropPod(job, pod));
        if (!isTrue(job, "Suspended")) {
            this.condition(job, "Suspended", "True", "JobSuspended", "Job suspended");
            store.change(JOB, job, ({ status }) => { delete status.startTime; });
            this.world.event("Normal", job, "Suspended", "Job suspended", SOURCE);
        }
    }

    resume(job) {
        const { store } = this.world;
        if (isTrue(job, "Suspended")) {
            this.condition(job, "Suspended", "False", "JobResumed", "Job resumed");
            this.world.event("Normal", job, "Resumed", "Job resumed", SOURCE);
        }
        store.change(JOB, job, ({ status }) => { status.startTime ??= this.world.time(); });
    }

    scale(job, active, pods) {
        const { spec, metadata } = job, counts = this.countsOf(job);
        const backoff = this.world.settings.backoffMs * Math.max(1, counts.failed);
        const wait = counts.failedAt + backoff - this.world.now();
        if (counts.failedAt && wait > 0) {
            this.soon(metadata.namespace, metadata.name, Math.min(wait, LOOK_MS)); // the setting may change
            return;
        }
        // A pod that is ending keeps its place where the Job says that it is replaced when it has failed.
        const held = spec.podReplacementPolicy === "Failed" ? pods : active;
        if (spec.completionMode === "Indexed") {
            const taken = new Set([...held.map(indexOf), ...counts.succeeded]);
            const open = Array.from({ length: spec.completions }, (_, n) => n).filter((n) => !taken.has(n));
            open.slice(0, Math.max(0, spec.parallelism - held.length)).every((index) => this.createPod(job, index));
        } else {
            const left = (spec.completions ?? 1) - counts.succeeded.size;
            for (let n = held.length; n < Math.min(spec.parallelism, left) && this.createPod(job); n++);
        }
        const isIndexed = spec.completionMode === "Indexed";
        active.sort((a, b) => (indexOf(a) ?? 0) - (indexOf(b) ?? 0)).filter((pod, i) =>
            (isIndexed ? indexOf(pod) >= spec.completions : i >= spec.parallelism)).forEach(
            (pod) => this.dropPod(job, pod));
    }

    // ---- pods

    /** Deletes one that is too many: that is no failure of it. */
    dropPod(job, pod) {
        this.countsOf(job).seen.add(pod.metadata.uid);
        this.deletePod(job, pod);
    }

    createPod(job, index) {
        try {
            const { metadata: { name } } = this.api.make(POD, this.withCounts(job, index,
                podOf(this.world.settings, job, index)));
            this.world.event("Normal", job, "SuccessfulCreate", `Created pod: ${name}`, SOURCE);
            return true;
        } catch (error) {
            this.world.event("Warning", job, "FailedCreate", `Error creating: ${error.message}`, SOURCE);
            this.soon(job.metadata.namespace, job.metadata.name, this.world.settings.retryMs);
            return false;
        }
    }

    /** How many pods of its index have failed before, and how many of those did not count. */
    withCounts({ spec: { backoffLimitPerIndex, podFailurePolicy }, ...job }, index, pod) {
        if (backoffLimitPerIndex === undefined) {
            return pod;
        }
        const before = this.lastFailed({ spec: { backoffLimitPerIndex }, ...job }, index);
        const isIgnored = before && podFailurePolicy && judge(podFailurePolicy, before).action === "Ignore";
        const failed = countOf(before, FAILED) + Number(Boolean(before && !isIgnored));
        const ignored = countOf(before, IGNORED) + Number(Boolean(isIgnored));
        Object.assign(pod.metadata.annotations, { [FAILED]: String(failed),
            ...(ignored && { [IGNORED]: String(ignored) }) });
        return pod;
    }

    deletePod(job, pod) {
        this.world.store.delete(POD, pod);
        this.world.event("Normal", job, "SuccessfulDelete", `Deleted pod: ${pod.metadata.name}`, SOURCE);
    }

    // ---- status

    condition(job, type, status, reason, message) {
        const time = this.world.time();
        this.world.store.change(JOB, job, (next) => {
            const others = (next.status.conditions ?? []).filter((one) => one.type !== type);
            next.status.conditions = [...others, { type, status, lastProbeTime: time, lastTransitionTime: time,
                ...(reason && { reason }), ...(message && { message }) }];
        });
    }

    tellStatus(job) {
        const counts = this.countsOf(job);
        const pods = this.podsOf(job).filter((pod) => !isFinished(pod));
        const active = pods.filter((pod) => !pod.metadata.deletionTimestamp);
        const isIndexed = job.spec.completionMode === "Indexed";
        this.world.store.change(JOB, job, ({ status }) => {
            const set = (name, value) => {
                if (value) {
                    status[name] = value;
                } else {
                    delete status[name];
                }
            };
            set("active", active.length);
            set("succeeded", counts.succeeded.size);
            set("failed", counts.failed);
            set("completedIndexes", isIndexed && ranges(counts.succeeded));
            if (knows(this.world.settings, "podFailurePolicy")) {
                Object.assign(status, { ready: active.filter(isReady).length, uncountedTerminatedPods: {},
                    terminating: pods.length - active.length });
            }
        });
    }

    /** A job that is over goes some time after that, if it says so. */
    forget(job) {
        const { ttlSecondsAfterFinished: ttl } = job.spec;
        if (ttl === undefined) {
            return;
        }
        const { lastTransitionTime } = job.status.conditions.find(({ type, status }) => status === "True"
            && ["Complete", "Failed"].includes(type));
        const left = Date.parse(lastTransitionTime) + ttl * this.world.settings.ttlUnitMs - this.world.now();
        if (left <= 0) {
            this.world.store.delete(JOB, job, { propagationPolicy: "Foreground" });
        } else if (left < 2 ** 31 - 1) {
            this.soon(job.metadata.namespace, job.metadata.name, left + 1);
        }
    }
}

function indexOf(pod) {
    const index = pod.metadata.annotations?.[INDEX];
    return index === undefined ? undefined : Number(index);
}

const countOf = (pod, key) => Number(pod?.metadata.annotations?.[key] ?? 0);
const livesOf = (pod) => countOf(pod, FAILED) + countOf(pod, IGNORED);

/** The pod of a job, and of an index of it. */
function podOf(settings, job, index) {
    const { metadata: { name, namespace, uid }, spec: { template } } = job;
    const isIndexed = index !== undefined;
    const stem = isIndexed ? `${name}-${index}-` : `${name}-`;
    const hasLabel = knows(settings, "backoffLimitPerIndex");
    const env = { name: "JOB_COMPLETION_INDEX", valueFrom: { fieldRef: { apiVersion: "v1", fieldPath:
        `metadata.${hasLabel ? "labels" : "annotations"}['${INDEX}']` } } };
    const withIndex = (container) => ({ ...container, env: [...(container.env ?? []), env] });
    const pod = {
        metadata: { finalizers: [TRACKING], name: stem.slice(0, 58) + suffix(), generateName: stem, namespace,
            labels: { ...template.metadata?.labels, ...(isIndexed && hasLabel && { [INDEX]: String(index) }) },
            annotations: { ...template.metadata?.annotations, ...(isIndexed && { [INDEX]: String(index) }) },
            ownerReferences: [{ apiVersion: "batch/v1", kind: "Job", name, uid, controller: true,
                blockOwnerDeletion: true }] },
        spec: structuredClone(template.spec),
    };
    if (isIndexed) {
        pod.spec.hostname = `${name}-${index}`;
        pod.spec.containers = pod.spec.containers.map(withIndex);
        pod.spec.initContainers &&= pod.spec.initContainers.map(withIndex);
    }
    return pod;
}
