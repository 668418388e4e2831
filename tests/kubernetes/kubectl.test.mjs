// kubectl, an independent client: it makes, reads and deletes what is here, by each kubeconfig.
import assert from "node:assert/strict";
import { execFile, execFileSync } from "node:child_process";
import { after, before, beforeEach, test as plainTest } from "node:test";
import { promisify } from "node:util";

import { Bed, job, JOBS, secret, service } from "./bed.mjs";
import { whyNot } from "./netns.mjs";

const run = promisify(execFile);
const KUBECTL = process.env.KUBECTL ?? "kubectl"; // another version of it

/** Its minor version, or nothing. */
function findKubectl() {
    try {
        const text = execFileSync(KUBECTL, ["version", "--client", "-o", "json"],
            { stdio: ["ignore", "pipe", "ignore"] });
        return Number.parseInt(JSON.parse(text).clientVersion.minor, 10);
    } catch {
        return undefined;
    }
}

const minor = findKubectl(), knowsV1 = minor >= 22; // of the protocol of plugins
const reason = minor ? await whyNot() : "there is no kubectl: scripts/install-deps --test";
const test = (name, body) => plainTest(name, { skip: reason ?? false }, body);
let bed;

before(async () => { bed = await Bed.start({}); });
after(() => bed.stop());
beforeEach(() => bed.tell("reset"));

/** What kubectl prints, by one of the kubeconfig files. */
async function kubectl(words, { input, config = "token" } = {}) {
    const child = run(KUBECTL, ["--kubeconfig", bed.links.kubeconfig[config], "--cache-dir", `${bed.folder}/cache`,
        ...words], { env: { PATH: process.env.PATH, HOME: bed.folder } });
    child.child.stdin.end(input && JSON.stringify(input));
    return (await child).stdout;
}

const create = (input) => kubectl(["create", "--validate=false", "-f", "-"], { input });

test("kubectl makes a Job, follows it, describes it and deletes it", async () => {
    assert.equal(await create(service("k")), "service/k created\n");
    assert.equal(await create(job("k", "echo from $JOB_COMPLETION_INDEX")), "job.batch/k created\n");
    assert.equal(await kubectl(["wait", "--for=condition=complete", "--timeout=30s", "job/k"]),
        "job.batch/k condition met\n");
    assert.match(await kubectl(["get", "jobs"]), /^NAME .*COMPLETIONS.*\nk .*2\/2/);
    assert.match(await kubectl(["get", "pods", "-l", "job-name=k", "-o", "wide"]), /k-0-\w{5} +0\/1 +Completed/);
    const name = (await kubectl(["get", "pods", "-o", "name"])).split("\n").find((line) => line.includes("/k-1-"));
    assert.equal(await kubectl(["logs", name]), "from 1\n");
    assert.match(await kubectl(["logs", "--timestamps", "-f", name]), /^\d{4}-.*Z from 1\n$/);
    const told = await kubectl(["describe", "job", "k"]);
    assert.match(told, /Pods Statuses: +.*2 Succeeded/);
    assert.match(told, /SuccessfulCreate/);
    assert.match(await kubectl(["describe", name]), /Status: +Succeeded[^]*Exit Code: +0[^]*Started container main/);
    assert.equal(await kubectl(["delete", "job", "k"]), 'job.batch "k" deleted\n');
    await bed.until("/api/v1/namespaces/default/pods", ({ items }) => items.length === 0);
    assert.deepEqual(await bed.violations(), []);
});

test("kubectl gets in by token, certificate and plugin, and over http", async () => {
    for (const config of ["token", "certificate", "execBeta", "plain", ...(knowsV1 ? ["exec"] : [])]) {
        assert.match(await kubectl(["get", "nodes"], { config }), /gpu-0 +Ready/, config);
    }
    await bed.tell("tokens", { revoke: true, add: { fresh: {} }, credential: { token: "fresh" } });
    await assert.rejects(kubectl(["get", "nodes"]), /You must be logged in to the server|Unauthorized/);
    assert.match(await kubectl(["get", "nodes"], { config: "execBeta" }), /gpu-0/);
});

test("kubectl changes objects", async () => {
    await create(job("k", "true", { suspend: true }));
    await create(secret("s", { a: "text" }));
    assert.match(await kubectl(["patch", "job", "k", "--type=merge", "-p", '{"spec":{"parallelism":1}}']), /patched/);
    assert.match(await kubectl(["label", "job", "k", "a=b"]), /labeled/);
    assert.match(await kubectl(["annotate", "job", "k", "act/title=what people see"]), /annotated/);
    const { spec, metadata } = (await bed.get(`${JOBS}/k`)).body;
    assert.deepEqual([spec.parallelism, metadata.labels.a, metadata.annotations["act/title"]],
        [1, "b", "what people see"]);
    assert.equal(await kubectl(["get", "secret", "s", "-o", "jsonpath={.data.a}"]), "dGV4dA==");
    await bed.tell("forbid", [{ verb: "list", resource: "pods" }]);
    await assert.rejects(kubectl(["get", "pods"]), /cannot list resource "pods" in API group ""/);
    assert.match(await kubectl(["get", "events"]), /Suspended/);
});

test("kubectl is refused by Pod Security, LimitRanges and quotas, and warned of a Job", async () => {
    await bed.tell("patch", { kind: "Namespace", name: "default",
        patch: { metadata: { labels: { "pod-security.kubernetes.io/enforce": "restricted" } } } });
    const pod = { apiVersion: "v1", kind: "Pod", metadata: { name: "p" },
        spec: { containers: [{ name: "main", image: "registry.example.com/test:1" }] } };
    await assert.rejects(create(pod), /\(Forbidden\).*pods "p" is forbidden: violates PodSecurity "restricted:/);
    const made = run(KUBECTL, ["--kubeconfig", bed.links.kubeconfig.token, "--cache-dir", `${bed.folder}/cache`,
        "create", "--validate=false", "-f", "-"], { env: { PATH: process.env.PATH, HOME: bed.folder } });
    made.child.stdin.end(JSON.stringify(job("k", "true", { suspend: true })));
    const { stdout, stderr } = await made;
    assert.equal(stdout, "job.batch/k created\n");
    assert.match(stderr, /^Warning: would violate PodSecurity "restricted:latest": /);
    await bed.tell("create", { kind: "ResourceQuota", object: { metadata: { name: "q", namespace: "default" },
        spec: { hard: { "count/secrets": "0" } } } });
    await assert.rejects(create(secret("s", { a: "text" })), /exceeded quota: q, requested: count\/secrets=1/);
    await bed.tell("patch", { kind: "Namespace", name: "default",
        patch: { metadata: { labels: { "pod-security.kubernetes.io/enforce": "privileged" } } } });
    await bed.tell("create", { kind: "LimitRange", object: { metadata: { name: "l", namespace: "default" },
        spec: { limits: [{ type: "Container", max: { memory: "1Gi" } }] } } });
    pod.spec.containers[0].resources = { limits: { memory: "2Gi" } };
    await assert.rejects(create(pod), /maximum memory usage per Container is 1Gi, but limit is 2Gi/);
});

test("kubectl is told of webhooks that deny, and that do not answer", async () => {
    await bed.tell("settings", { webhooks: [{ name: "a.example.com", resources: ["secrets"] },
        { name: "b.example.com", resources: ["services"], denies: "no" }] });
    await assert.rejects(create(secret("s", {})), /\(InternalError\).*failed calling webhook "a.example.com"/);
    await assert.rejects(create(service("s")), /admission webhook "b.example.com" denied the request: no/);
});

test("kubectl watches: changes as they come, from where it was, and anew when that is too old", async () => {
    await create(job("k", "true", { suspend: true }));
    const watch = run(KUBECTL, ["--kubeconfig", bed.links.kubeconfig.token, "--cache-dir", `${bed.folder}/cache`, "get",
        "jobs", "-w", "-o", "name", "--request-timeout", "5s"], { env: { PATH: process.env.PATH, HOME: bed.folder } });
    await bed.until(JOBS, ({ items }) => items.length === 1 && bed.double.world.watches.size > 0);
    await kubectl(["label", "job", "k", "a=b"]);
    await kubectl(["delete", "job", "k"]);
    assert.equal((await watch.catch((error) => error)).stdout, "job.batch/k\n".repeat(3)); // there, changed, gone
    await create(job("w", "true", { suspend: true }));
    const waits = kubectl(["wait", "--for=jsonpath={.metadata.labels.a}=b", "--timeout=30s", "job/w"]);
    await bed.until(JOBS, () => bed.double.world.watches.size > 0);
    await bed.tell("compact");
    await bed.tell("cut");
    await kubectl(["label", "job", "w", "a=b"]);
    assert.equal(await waits, "job.batch/w condition met\n");
});

const test130 = (name, body) => plainTest(name,
    { skip: reason ?? (minor < 30 && "this kubectl has no WebSocket") }, body);

test130("kubectl runs commands in a pod", async () => {
    await create(job("k", "trap exit TERM; sleep 1000 & wait", { completions: 1, parallelism: 1,
        container: { env: [{ name: "A", value: "of the container" }] } }));
    const { items: [{ metadata: { name } }] } = await bed.until("/api/v1/namespaces/default/pods",
        ({ items }) => items[0]?.status.phase === "Running");
    assert.equal(await kubectl(["exec", name, "--", "sh", "-c", "hostname; echo $A; echo no >&2"]),
        "k-0\nof the container\n");
    assert.equal(await kubectl(["exec", "-i", name, "-c", "main", "--", "cat"], { input: { typed: 1 } }),
        '{"typed":1}');
    assert.match(await kubectl(["exec", "-i", name, "--", "head", "-c", "200000", "/dev/zero"]), /^\0{200000}$/);
    await assert.rejects(kubectl(["exec", name, "--", "sh", "-c", "exit 7"]), ({ code, stderr }) =>
        code === 7 && /exit code 7/.test(stderr));
    await assert.rejects(kubectl(["exec", name, "-c", "other", "--", "true"]), /container other is not valid/);
    await bed.tell("forbid", [{ verb: "*", resource: "pods/exec" }]);
    await assert.rejects(kubectl(["exec", name, "--", "true"]), /cannot (get|create) resource "pods\/exec"/);
    await bed.tell("forbid", [{ verb: "create", resource: "pods/exec" }]);
    assert.equal(await kubectl(["exec", name, "--", "echo", "by get alone"]), "by get alone\n");
    await bed.tell("settings", { version: "1.35" });
    await assert.rejects(kubectl(["exec", name, "--", "true"]), /cannot create resource "pods\/exec"/);
});
