// The Job controller and the scheduler, with pods whose status the test sets.
import assert from "node:assert/strict";
import { after, before, beforeEach, test } from "node:test";

import { Bed, conditionOf, job, JOBS, PODS } from "./bed.mjs";

const QUOTAS = "/api/v1/namespaces/default/resourcequotas";
let bed;

before(async () => {
    bed = await Bed.start({ run: false, backoffMs: 1, retryMs: 10, ttlUnitMs: 10,
        nodes: { a: { gpus: 4 }, b: { gpus: 4, taints: [{ key: "sku", value: "gpu", effect: "NoSchedule" }] } } });
});
after(() => bed.stop());
beforeEach(() => bed.tell("reset"));

const GPUS = (count, pod = {}) => ({ pod, container: { resources: { limits: { "nvidia.com/gpu": String(count) } } } });
const pods = (name, count) => bed.until(`${PODS}?labelSelector=job-name%3D${name}`,
    ({ items }) => items.filter(({ status }) => status.phase === "Pending").length === count);
const byIndex = ({ items }) => items.sort((a, b) => (a.spec.hostname < b.spec.hostname ? -1 : 1));

async function setPod({ metadata: { name } }, status) {
    const answer = await bed.patch(`${PODS}/${name}/status`, { status });
    assert.equal(answer.status, 200, answer.text);
}

const ended = (exitCode, conditions = []) => ({ phase: exitCode ? "Failed" : "Succeeded", conditions,
    containerStatuses: [{ name: "main", image: "i", imageID: "", ready: false, restartCount: 0,
        state: { terminated: { exitCode } } }] });
const POLICY = { rules: [
    { action: "Ignore", onPodConditions: [{ type: "DisruptionTarget", status: "True" }] },
    { action: "FailJob", onExitCodes: { containerName: "main", operator: "NotIn", values: [121] } }] };

test("An Indexed Job makes pods by index, and is complete when each has succeeded", async () => {
    await bed.make(JOBS, job("j"));
    const [first, second] = byIndex(await pods("j", 2));
    assert.match(first.metadata.name, /^j-0-[a-z0-9]{5}$/);
    assert.equal(first.spec.hostname, "j-0");
    const { labels, annotations, ownerReferences: [owner] } = second.metadata;
    assert.deepEqual([labels["job-name"], labels["batch.kubernetes.io/job-name"]], ["j", "j"]);
    assert.equal(labels["batch.kubernetes.io/job-completion-index"], "1");
    assert.equal(annotations["batch.kubernetes.io/job-completion-index"], "1");
    assert.deepEqual([owner.kind, owner.name, owner.controller], ["Job", "j", true]);
    assert.equal(second.spec.containers[0].env[0].name, "JOB_COMPLETION_INDEX");
    await setPod(first, ended(0));
    await bed.until(`${JOBS}/j`, ({ status }) => status.active === 1 && status.completedIndexes === "0");
    await setPod(second, ended(0));
    const { status } = await bed.untilEnded("j");
    assert.equal(conditionOf({ status }, "Complete").reason, "CompletionsReached");
    assert.deepEqual([status.succeeded, status.completedIndexes, status.active], [2, "0,1", undefined]);
    assert.ok(status.completionTime);
    const reasons = (await bed.events("j")).map(({ reason }) => reason).sort();
    assert.deepEqual(reasons, ["Completed", "SuccessfulCreate", "SuccessfulCreate"]);
});

test("A failed pod is replaced within the limit, and fails the Job beyond it", async () => {
    await bed.make(JOBS, job("j", "", { backoffLimit: 1 }));
    const [first] = byIndex(await pods("j", 2));
    await setPod(first, ended(3));
    const again = (await pods("j", 2)).items.find(({ status, spec }) => status.phase === "Pending"
        && spec.hostname === "j-0");
    assert.notEqual(again.metadata.name, first.metadata.name);
    await setPod(again, ended(3));
    const { status } = await bed.untilEnded("j");
    const { reason, message } = conditionOf({ status }, "Failed");
    assert.deepEqual([reason, message], ["BackoffLimitExceeded", "Job has reached the specified backoff limit"]);
    assert.equal(status.completionTime, undefined);
    assert.equal((await bed.podsOf("j")).filter(({ status: { phase } }) => phase === "Pending").length, 0);
});

test("A failure policy ends the Job, ignores, or counts", async () => {
    await bed.make(JOBS, job("j", "", { podFailurePolicy: POLICY, backoffLimit: 6 }));
    const [first, second] = byIndex(await pods("j", 2));
    await setPod(first, ended(1, [{ type: "DisruptionTarget", status: "True", reason: "PreemptionByScheduler" }]));
    await pods("j", 2);
    await setPod(second, ended(121));
    await pods("j", 2);
    const { status: { failed } } = await bed.until(`${JOBS}/j`, ({ status }) => status.failed);
    assert.equal(failed, 1);
    const [last] = (await pods("j", 2)).items.filter(({ status }) => status.phase === "Pending");
    await setPod(last, ended(7));
    const { reason, message } = conditionOf(await bed.untilEnded("j"), "Failed");
    assert.equal(reason, "PodFailurePolicy");
    assert.equal(message, `Container main for pod default/${last.metadata.name} failed with exit code 7 matching `
        + "FailJob rule at index 1");
});

test("A suspended Job holds nothing, and goes on when it is not", async () => {
    const made = await bed.make(JOBS, job("j", "", { suspend: true }));
    assert.equal(made.spec.suspend, true);
    await bed.until(`${JOBS}/j`, (found) => conditionOf(found, "Suspended"));
    assert.deepEqual(await bed.podsOf("j"), []);
    await bed.patch(`${JOBS}/j`, { spec: { suspend: false } });
    await pods("j", 2);
    await bed.patch(`${JOBS}/j`, { spec: { suspend: true } });
    await pods("j", 0);
    const { status } = await bed.until(`${JOBS}/j`, (found) => conditionOf(found, "Suspended"));
    assert.deepEqual([status.failed, status.startTime], [undefined, undefined]);
});

test("Deadline, and what becomes of a Job that is over", async () => {
    await bed.make(JOBS, job("late", "", { activeDeadlineSeconds: 1 }));
    const { reason, message } = conditionOf(await bed.untilEnded("late"), "Failed");
    assert.deepEqual([reason, message], ["DeadlineExceeded", "Job was active longer than specified deadline"]);
    await bed.make(JOBS, job("short", "", { ttlSecondsAfterFinished: 1, completions: 1, parallelism: 1 }));
    const [pod] = (await pods("short", 1)).items;
    await setPod(pod, ended(0));
    await bed.until(JOBS, ({ items }) => !items.some(({ metadata }) => metadata.name === "short"));
    await bed.until(PODS, ({ items }) => !items.some(({ metadata }) => metadata.name === pod.metadata.name));
});

test("Elastic: completions and parallelism change together", async () => {
    await bed.make(JOBS, job("j"));
    await pods("j", 2);
    assert.equal((await bed.patch(`${JOBS}/j`, { spec: { completions: 3, parallelism: 3 } })).status, 200);
    await pods("j", 3);
    await bed.patch(`${JOBS}/j`, { spec: { completions: 1, parallelism: 1 } });
    const [left] = (await pods("j", 1)).items;
    assert.equal(left.spec.hostname, "j-0");
    const answer = await bed.patch(`${JOBS}/j`, { spec: { completions: 5 } });
    assert.match(answer.body.message, /spec\.completions: Invalid value: 5: field is immutable/);
    assert.equal((await bed.violations()).length, 1);
});

test("Elastic: the pods that are too many go, whichever others are there", async () => {
    await bed.make(JOBS, job("j", "", { completions: 3, parallelism: 3 }));
    const { items } = await pods("j", 3);
    await setPod(items.find(({ spec }) => spec.hostname === "j-0"), ended(0));
    await bed.patch(`${JOBS}/j`, { spec: { completions: 2, parallelism: 2 } });
    await bed.until(PODS, (found) => found.items.filter(({ status }) => status.phase !== "Succeeded")
        .map(({ spec }) => spec.hostname).join() === "j-1");
});

test("Success policy: the Job succeeds with the index that counts, whatever becomes of the others", async () => {
    await bed.make(JOBS, job("j", "", { successPolicy: { rules: [{ succeededIndexes: "0" }] } }));
    const { items } = await pods("j", 2);
    await setPod(items.find(({ spec }) => spec.hostname === "j-0"), ended(0));
    const over = await bed.untilEnded("j");
    assert.equal(conditionOf(over, "SuccessCriteriaMet").reason, "SuccessPolicy");
    assert.equal(conditionOf(over, "Complete").reason, "SuccessPolicy");
});

test("The template does not change once it has started", async () => {
    await bed.make(JOBS, job("j"));
    await pods("j", 2);
    const answer = await bed.patch(`${JOBS}/j`, { spec: { template: { metadata: { labels: { a: "b" } } } } });
    assert.equal(answer.status, 422);
    assert.match(answer.body.message, /spec\.template: .*field is immutable/);
});

// ---- where pods go

const scheduled = (pod) => pod.status.conditions?.find(({ type }) => type === "PodScheduled");
const unschedulable = async (name) => {
    const isRefused = (one) => scheduled(one)?.status === "False";
    const { items } = await bed.until(`${PODS}?labelSelector=job-name%3D${name}`,
        (found) => found.items.some(isRefused));
    const pod = items.find(isRefused);
    return { pod, condition: scheduled(pod) };
};

test("Why a pod has no node", async () => {
    const one = { completions: 1, parallelism: 1 };
    await bed.make(JOBS, job("many", "", { ...GPUS(8), ...one }));
    const { pod, condition: { reason, message } } = await unschedulable("many");
    assert.equal(reason, "Unschedulable");
    assert.equal(message, "0/2 nodes are available: 1 Insufficient nvidia.com/gpu, 1 node(s) had untolerated taint "
        + "{sku: gpu}. preemption: 0/2 nodes are available: 2 Preemption is not helpful for scheduling.");
    const [event] = await bed.events(pod.metadata.name);
    assert.deepEqual([event.type, event.reason, event.message], ["Warning", "FailedScheduling", message]);
    assert.deepEqual([event.count, event.firstTimestamp, event.lastTimestamp], [undefined, null, null]);
    assert.ok(event.eventTime);
    await bed.make(JOBS, job("picky", "", { pod: { nodeSelector: { pool: "x" } }, ...one }));
    assert.match((await unschedulable("picky")).condition.message, /1 node\(s\) didn't match Pod's node affinity/);
    await bed.make(JOBS, job("full", "", { ...GPUS(4), completions: 2 }));
    assert.match((await unschedulable("full")).condition.message,
        /Insufficient nvidia\.com\/gpu.*1 No preemption victims/);
    await bed.tell("node", { name: "c", do: "add", gpus: 16, labels: { pool: "x" } });
    await bed.until(PODS, ({ items }) => items.length === 4 && items.every(({ spec }) => spec.nodeName));
});

test("Tolerations lead to tainted nodes; cordoned ones are left out", async () => {
    const toleration = [{ key: "sku", operator: "Equal", value: "gpu", effect: "NoSchedule" }];
    await bed.tell("node", { name: "a", do: "cordon" });
    await bed.make(JOBS, job("j", "", { ...GPUS(2, { tolerations: toleration }) }));
    const { items } = await bed.until(PODS, (found) => found.items.length === 2
        && found.items.every(({ spec }) => spec.nodeName));
    assert.deepEqual(items.map(({ spec }) => spec.nodeName), ["b", "b"]);
});

test("Quotas and priority classes refuse pods, which the Job's events say", async () => {
    await bed.make(QUOTAS, { apiVersion: "v1", kind: "ResourceQuota", metadata: { name: "few" },
        spec: { hard: { "requests.nvidia.com/gpu": "1" } } });
    await bed.make(JOBS, job("j", "", GPUS(2)));
    const failed = async (name) => (await bed.until(`/api/v1/namespaces/default/events?fieldSelector=${
        encodeURIComponent(`involvedObject.name=${name},reason=FailedCreate`)}`,
    ({ items }) => items.length > 0)).items[0].message;
    assert.equal((await failed("j")).replace(/-\w{5}"/, '"'), 'Error creating: pods "j-0" is forbidden: exceeded '
        + "quota: few, requested: requests.nvidia.com/gpu=2, used: requests.nvidia.com/gpu=0, limited: "
        + "requests.nvidia.com/gpu=1");
    await bed.make(JOBS, job("high", "", { pod: { priorityClassName: "high" } }));
    assert.match(await failed("high"), /is forbidden: no PriorityClass with name high was found$/);
    await bed.make("/apis/scheduling.k8s.io/v1/priorityclasses", { apiVersion: "scheduling.k8s.io/v1",
        kind: "PriorityClass", metadata: { name: "high" }, value: 1000 });
    const { items: [{ spec }] } = await pods("high", 2);
    assert.equal(spec.priority, 1000);
});

test("A claim that there is not", async () => {
    const volumes = [{ name: "v", persistentVolumeClaim: { claimName: "data" } }];
    await bed.make(JOBS, job("j", "", { pod: { volumes } }));
    assert.match((await unschedulable("j")).condition.message, /persistentvolumeclaim "data" not found/);
});

test("A pod that is preempted or whose node is gone is replaced and not counted", async () => {
    await bed.make(JOBS, job("j", "", { podFailurePolicy: POLICY, completions: 1, parallelism: 1 }));
    const placed = async (not) => (await bed.until(PODS, ({ items }) => items.some(({ spec, metadata }) => spec.nodeName
        && metadata.name !== not))).items.find(({ metadata }) => metadata.name !== not);
    const first = await placed();
    const watch = bed.get(`${PODS}?watch=1&timeoutSeconds=1`);
    await bed.tell("pod", { name: first.metadata.name, do: "preempt" });
    assert.match((await watch).text, /"type":"DisruptionTarget","status":"True","reason":"PreemptionByScheduler"/);
    const second = await placed(first.metadata.name);
    await bed.tell("node", { name: "b", do: "remove" });
    await bed.tell("node", { name: "c", do: "add" });
    await bed.tell("node", { name: second.spec.nodeName, do: "remove" });
    const third = await placed(second.metadata.name);
    assert.equal(third.spec.nodeName, "c");
    assert.equal((await bed.get(`${JOBS}/j`)).body.status.failed, undefined);
});

test("Kueue: a Job waits in its queue, which says why, and goes on", async () => {
    const workloads = "/apis/kueue.x-k8s.io/v1beta1/namespaces/default/workloads";
    const why = async (reason) => (await bed.until(workloads, ({ items }) =>
        items[0]?.status.conditions?.[0].reason === reason)).items[0].status.conditions[0].message;
    await bed.tell("settings", { kueue: true, kueueAdmit: false });
    await bed.make(JOBS, { ...job("j", "", { suspend: true }), metadata: { name: "j",
        labels: { "kueue.x-k8s.io/queue-name": "q" } } });
    assert.equal(await why("Inadmissible"), "LocalQueue q doesn't exist");
    await bed.tell("create", { kind: "LocalQueue", object: { metadata: { name: "q", namespace: "default" },
        spec: { clusterQueue: "cluster" } } });
    assert.match(await why("Pending"), /insufficient unused quota/);
    await bed.tell("settings", { kueueAdmit: true });
    await pods("j", 2);
    await bed.tell("settings", { kueueAdmit: false });
    await bed.tell("kueue", { name: "j" });
    await pods("j", 0);
    const { status: { conditions } } = (await bed.get(workloads)).body.items[0];
    assert.deepEqual(conditions.map(({ type, status }) => [type, status]),
        [["QuotaReserved", "False"], ["Evicted", "True"], ["Preempted", "True"]]);
    await bed.tell("settings", { kueueAdmit: true });
    await pods("j", 2);
});

test("Kueue: a Job that takes fewer pods is admitted in part", async () => {
    await bed.tell("settings", { kueue: true, kueuePods: 1 });
    await bed.tell("create", { kind: "LocalQueue", object: { metadata: { name: "q", namespace: "default" },
        spec: { clusterQueue: "cluster" } } });
    const labels = { "kueue.x-k8s.io/queue-name": "q" };
    await bed.make(JOBS, { ...job("j", "", { suspend: true }), metadata: { name: "j", labels, annotations: {
        "kueue.x-k8s.io/job-min-parallelism": "1", "kueue.x-k8s.io/job-completions-equal-parallelism": "true" } } });
    const { spec } = await bed.until(`${JOBS}/j`, (found) => !found.spec.suspend);
    assert.deepEqual([spec.parallelism, spec.completions], [1, 1]);
    await bed.make(JOBS, { ...job("k", "", { suspend: true }), metadata: { name: "k", labels } });
    await pods("j", 1);
    assert.equal((await bed.get(`${JOBS}/k`)).body.spec.suspend, true);
});

test("With a limit for each index a failed pod stays until there is another, which knows their number", async () => {
    await bed.make(JOBS, job("j", "", { podFailurePolicy: POLICY, backoffLimit: 6, backoffLimitPerIndex: 6 }));
    const [first] = byIndex(await pods("j", 2));
    const notes = ({ metadata: { annotations } }) => [annotations["batch.kubernetes.io/job-index-failure-count"],
        annotations["batch.kubernetes.io/job-index-ignored-failure-count"]];
    assert.deepEqual(notes(first), ["0", undefined]);
    assert.deepEqual(first.metadata.finalizers, ["batch.kubernetes.io/job-tracking"]);
    await bed.tell("settings", { backoffMs: 300 });
    await setPod(first, ended(121, [{ type: "DisruptionTarget", status: "True", reason: "PreemptionByScheduler" }]));
    await bed.delete(`${PODS}/${first.metadata.name}`);
    const held = (await bed.podsOf("j")).find(({ metadata: { name } }) => name === first.metadata.name);
    assert.ok(held.metadata.deletionTimestamp);
    const [second] = byIndex(await pods("j", 2));
    assert.deepEqual(notes(second), ["0", "1"]);
    await bed.until(PODS, ({ items }) => !items.some(({ metadata: { name } }) => name === first.metadata.name));
    await setPod(second, ended(121));
    const [third] = byIndex({ items: (await pods("j", 2)).items.filter(({ status }) => status.phase === "Pending") });
    assert.deepEqual(notes(third), ["1", "1"]);
});

test("A quota says how much of it is used", async () => {
    await bed.make(QUOTAS, { apiVersion: "v1", kind: "ResourceQuota", metadata: { name: "q" },
        spec: { hard: { pods: "5", "requests.nvidia.com/gpu": "8" } } });
    await bed.make(JOBS, job("j", "", {}));
    await pods("j", 2);
    const { status } = await bed.until(`${QUOTAS}/q`, ({ status: { used } }) => used.pods === "2");
    assert.deepEqual(status, { hard: { pods: "5", "requests.nvidia.com/gpu": "8" },
        used: { pods: "2", "requests.nvidia.com/gpu": "0" } });
});
