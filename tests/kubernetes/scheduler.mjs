// The scheduler: gives pods nodes, or says why not, in the words of the real one. Takes pods from nodes on command.
import { CLAIM, NODE, POD } from "./kinds.mjs";
import { quantity } from "./quantity.mjs";
import { isFinished } from "./store.mjs";

const SOURCE = "default-scheduler";

export class Scheduler {
    constructor(world) {
        this.world = world;
        this.pending = false;
        this.listener = ({ type }) => {
            if (type === POD || type === NODE || type === CLAIM) {
                this.soon();
            }
        };
        world.store.events.on("change", this.listener);
    }

    stop() {
        this.world.store.events.off("change", this.listener);
    }

    soon() {
        if (!this.pending) {
            this.pending = true;
            setImmediate(() => {
                this.pending = false;
                this.schedule();
            });
        }
    }

    schedule() {
        const waiting = this.world.store.list(POD).filter((pod) => !pod.spec.nodeName && !isFinished(pod)
            && !pod.metadata.deletionTimestamp && !pod.spec.schedulingGates?.length
            && pod.spec.schedulerName === SOURCE);
        waiting.sort((a, b) => (b.spec.priority ?? 0) - (a.spec.priority ?? 0)
            || Number(a.metadata.resourceVersion) - Number(b.metadata.resourceVersion));
        waiting.forEach((pod) => this.place(pod));
    }

    place(pod) {
        const { store } = this.world;
        const nodes = store.list(NODE).map((node) => ({ node, reasons: this.reasons(pod, node) }));
        const free = nodes.filter(({ reasons }) => reasons.length === 0).map(({ node }) => node);
        const missing = this.missingClaim(pod);
        if (missing || free.length === 0) {
            this.refuse(pod, missing ? `0/${nodes.length} nodes are available: ${missing}. preemption: 0/${nodes.length
            } nodes are available: ${nodes.length} Preemption is not helpful for scheduling.` : explain(nodes));
            return;
        }
        const used = (node) => store.list(POD).filter((other) => other.spec.nodeName === node.metadata.name).length;
        const [best] = free.sort((a, b) => used(a) - used(b));
        this.bind(pod, best.metadata.name);
    }

    bind(pod, nodeName) {
        this.world.store.change(POD, pod, (next) => {
            next.spec.nodeName = nodeName;
            setCondition(this.world, next, { type: "PodScheduled", status: "True" });
        });
        const { namespace, name } = pod.metadata;
        this.world.event("Normal", pod, "Scheduled", `Successfully assigned ${namespace}/${name} to ${nodeName}`,
            SOURCE);
    }

    refuse(pod, message) {
        const known = pod.status.conditions?.find(({ type }) => type === "PodScheduled");
        if (known?.message === message) {
            return;
        }
        this.world.store.change(POD, pod, (next) => setCondition(this.world, next, { type: "PodScheduled",
            status: "False", reason: "Unschedulable", message }));
        this.world.event("Warning", pod, "FailedScheduling", message, SOURCE);
    }

    missingClaim(pod) {
        const claims = (pod.spec.volumes ?? []).map(({ persistentVolumeClaim }) => persistentVolumeClaim?.claimName);
        const missing = claims.find((name) => name && !this.world.store.find(CLAIM, pod.metadata.namespace, name));
        return missing && `persistentvolumeclaim "${missing}" not found`;
    }

    /** Why a pod cannot be on a node: [{text, resolvable}], resolvable: preempting others might help. */
    reasons(pod, node) {
        const found = [];
        if (node.spec.unschedulable) {
            return [{ text: "node(s) were unschedulable" }];
        }
        const taint = (node.spec.taints ?? []).find((one) => ["NoSchedule", "NoExecute"].includes(one.effect)
            && !(pod.spec.tolerations ?? []).some((toleration) => tolerates(toleration, one)));
        if (taint) {
            return [{ text: `node(s) had untolerated taint {${taint.key}: ${taint.value ?? ""}}` }];
        }
        if (!matchesNode(pod.spec, node)) {
            return [{ text: "node(s) didn't match Pod's node affinity/selector" }];
        }
        const free = this.free(node);
        for (const [name, wanted] of Object.entries({ ...requests(pod), pods: 1 })) {
            if (wanted > (free[name] ?? 0)) {
                found.push({ text: name === "pods" ? "Too many pods" : `Insufficient ${name}`,
                    resolvable: wanted <= quantity(node.status.allocatable[name] ?? 0) });
            }
        }
        return found;
    }

    free(node) {
        const free = Object.fromEntries(Object.entries(node.status.allocatable).map(
            ([name, value]) => [name, quantity(value)]));
        for (const pod of this.world.store.list(POD)) {
            if (pod.spec.nodeName === node.metadata.name && !isFinished(pod)) {
                Object.entries({ ...requests(pod), pods: 1 }).forEach(([name, value]) => { free[name] -= value; });
            }
        }
        return free;
    }
}

/** Sets a condition of a pod, in place. */
export function setCondition(world, pod, condition) {
    const { conditions = [] } = pod.status;
    const others = conditions.filter(({ type }) => type !== condition.type);
    const before = conditions.find(({ type }) => type === condition.type);
    const lastTransitionTime = before?.status === condition.status ? before.lastTransitionTime : world.time();
    pod.status.conditions = [...others, { lastProbeTime: null, lastTransitionTime, ...condition }];
}

export function requests(pod) {
    const sums = {};
    for (const { resources } of pod.spec.containers) {
        for (const [name, value] of Object.entries(resources?.requests ?? {})) {
            sums[name] = (sums[name] ?? 0) + quantity(value);
        }
    }
    return sums;
}

function tolerates({ key, operator = "Equal", value = "", effect }, taint) {
    return (!effect || effect === taint.effect) && (!key || key === taint.key)
        && (operator === "Exists" || value === (taint.value ?? ""));
}

const OPERATORS = {
    In: (value, values) => values.includes(value), NotIn: (value, values) => !values.includes(value),
    Exists: (value) => value !== undefined, DoesNotExist: (value) => value === undefined,
    Gt: (value, [than]) => Number(value) > Number(than), Lt: (value, [than]) => Number(value) < Number(than),
};

function matchesNode({ nodeSelector = {}, affinity }, { metadata: { labels = {} } }) {
    const terms = affinity?.nodeAffinity?.requiredDuringSchedulingIgnoredDuringExecution?.nodeSelectorTerms;
    const matches = ({ matchExpressions = [] }) => matchExpressions.every(
        ({ key, operator, values }) => OPERATORS[operator](labels[key], values));
    return Object.entries(nodeSelector).every(([key, value]) => labels[key] === value)
        && (!terms || terms.some(matches));
}

function explain(nodes) {
    if (nodes.length === 0) {
        return "no nodes available to schedule pods";
    }
    const counts = new Map();
    for (const { text } of nodes.flatMap(({ reasons }) => reasons)) {
        counts.set(text, (counts.get(text) ?? 0) + 1);
    }
    const lines = [...counts].map(([text, count]) => `${count} ${text}`).sort();
    const helpful = nodes.filter(({ reasons }) => reasons.every(({ resolvable }) => resolvable)).length;
    const preemption = [helpful && `${helpful} No preemption victims found for incoming pod`,
        nodes.length - helpful && `${nodes.length - helpful} Preemption is not helpful for scheduling`];
    return `0/${nodes.length} nodes are available: ${lines.join(", ")}. preemption: 0/${nodes.length} nodes are `
        + `available: ${preemption.filter(Boolean).join(", ")}.`;
}
