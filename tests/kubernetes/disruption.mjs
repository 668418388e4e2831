// What takes pods away: preemption, eviction, nodes that are lost.
import { NODE, POD } from "./kinds.mjs";
import { setCondition } from "./scheduler.mjs";
import { isFinished } from "./store.mjs";

const WHY = {
    PreemptionByScheduler: { source: "default-scheduler", event: "Preempted",
        message: "default-scheduler: preempting to accommodate a higher priority pod" },
    EvictionByEvictionAPI: { source: "eviction-api", message: "Eviction API: evicting" },
    DeletionByTaintManager: { source: "taint-eviction-controller", event: "TaintManagerEviction",
        message: "Taint manager: deleting due to NoExecute taint" },
    DeletionByPodGC: { source: "pod-garbage-collector", message: "PodGC: node no longer exists" },
};

/** Says on a pod that it is disrupted, and deletes it as that kind of disruption does. */
export function disrupt(world, pod, reason, message = WHY[reason].message) {
    const { source, event } = WHY[reason];
    if (isFinished(pod)) {
        return;
    }
    const marked = world.store.change(POD, pod, (next) => setCondition(world, next,
        { type: "DisruptionTarget", status: "True", reason, message }));
    if (event) {
        world.event("Normal", marked, event, message, source);
    }
    world.store.delete(POD, marked);
}

/** The kubelet needs what a pod uses: the pod has failed, and stays to say so. */
export function evict({ world, kubelet }, pod, message = "The node was low on resource: memory. Threshold quantity: "
    + "100Mi, available: 50Mi.") {
    const runner = kubelet.runners.get(pod.metadata.uid);
    const marked = world.store.change(POD, pod, (next) => {
        setCondition(world, next, { type: "DisruptionTarget", status: "True", reason: "TerminationByKubelet",
            message });
        Object.assign(next.status, { reason: "Evicted", message, ...(!runner && { phase: "Failed" }) });
    });
    world.event("Warning", marked, "Evicted", message, "kubelet");
    runner?.evict();
}

/** What the cluster's own eye on nodes does with the pods of one that says nothing: their containers may still run. */
function markNotReady(world, pods) {
    for (const pod of pods.filter((one) => !isFinished(one))) {
        const { reason } = pod.status.conditions?.find(({ type }) => type === "Ready") ?? {};
        const marked = world.store.change(POD, pod, (next) => setCondition(world, next,
            { type: "Ready", status: "False", ...(reason && { reason }) }));
        world.event("Warning", marked, "NodeNotReady", "Node is not ready", "node-controller");
    }
}

const podsOn = ({ store }, node) => store.list(POD).filter((pod) => pod.spec.nodeName === node.metadata.name);

function setReady(world, node, condition, taints) {
    world.store.change(NODE, node, (next) => {
        next.status.conditions = [{ type: "Ready", lastTransitionTime: world.time(), ...condition }];
        next.spec.taints = [...(next.spec.taints ?? []).filter(({ key }) => !key.startsWith("node.kubernetes.io/")),
            ...taints];
    });
}

/** The power goes off. Its pods are asked to go (evict: at once), which nobody carries out until the node is removed or
 *  is back. */
export function loseNode({ world, kubelet }, node, { evict = true }) {
    const key = "node.kubernetes.io/unreachable";
    for (const pod of podsOn(world, node)) {
        kubelet.runners.get(pod.metadata.uid)?.kill();
    }
    setReady(world, node, { status: "Unknown", reason: "NodeStatusUnknown",
        message: "Kubelet stopped posting node status." },
    [{ key, effect: "NoSchedule" }, { key, effect: "NoExecute" }]);
    markNotReady(world, podsOn(world, node));
    podsOn(world, node).filter(() => evict).forEach((pod) => disrupt(world, pod, "DeletionByTaintManager"));
}

/** The node is gone for good: its pods have failed. */
export function removeNode(double, node) {
    const { world, kubelet } = double;
    const pods = podsOn(world, node);
    pods.forEach((pod) => kubelet.runners.get(pod.metadata.uid)?.kill());
    world.store.remove(NODE, node);
    for (const pod of pods.filter((one) => !isFinished(one))) {
        const failed = world.store.change(POD, pod, (next) => {
            setCondition(world, next, { type: "DisruptionTarget", status: "True", reason: "DeletionByPodGC",
                message: WHY.DeletionByPodGC.message });
            next.status.phase = "Failed";
        });
        world.store.delete(POD, failed);
        world.store.settle(POD, failed);
    }
}

/** The node is on again: what ran there has ended. */
export function returnNode({ world }, node) {
    setReady(world, node, { status: "True", reason: "KubeletReady", message: "kubelet is posting ready status" }, []);
    const terminated = { exitCode: 137, reason: "ContainerStatusUnknown",
        message: "The container could not be located when the pod was terminated", startedAt: null, finishedAt: null };
    for (const pod of podsOn(world, node).filter((one) => !isFinished(one))) {
        const failed = world.store.change(POD, pod, ({ status }) => {
            status.phase = "Failed";
            status.containerStatuses = status.containerStatuses?.map((one) => ({ ...one, ready: false,
                started: false, state: { terminated } }));
        });
        if (pod.metadata.deletionTimestamp) {
            world.store.settle(POD, failed);
        }
    }
}
