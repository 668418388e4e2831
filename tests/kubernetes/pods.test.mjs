// Pods as processes: what they see, how they end, what their logs say, what happens to their nodes.
import assert from "node:assert/strict";
import { existsSync } from "node:fs";
import { mkdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { after, afterEach, before, beforeEach, test as plainTest } from "node:test";

import { Bed, conditionOf, job, JOBS, PODS, secret, SECRETS, service, SERVICES } from "./bed.mjs";
import { whyNot } from "./netns.mjs";

const reason = await whyNot();
const test = (name, body) => plainTest(name, { skip: reason ?? false }, body);
const CLAIMS = "/api/v1/namespaces/default/persistentvolumeclaims";
const ONE = { completions: 1, parallelism: 1 };
let bed;

before(async () => {
    bed = await Bed.start({ backoffMs: 1, retryMs: 20, images: { "bad/pull:1": "ErrImagePull",
        "bad name": "InvalidImageName", "private.example.com/a:1": "login", "no/shell:1": "StartError",
        "other/arch:1": "exec format" } });
});
after(() => bed.stop());
beforeEach(() => bed.tell("reset"));
afterEach(async () => assert.deepEqual(await bed.violations(), []));

const podOf = async (name, reached = () => true) => (await bed.until(`${PODS}?labelSelector=job-name%3D${name}`,
    ({ items }) => items.length > 0 && reached(items[0]))).items[0];
const stateOf = ({ status }) => status.containerStatuses?.[0].state ?? {};
const running = (pod) => Boolean(stateOf(pod).running);
const logOf = async (name, query = "") => (await bed.get(
    `${PODS}/${(await podOf(name)).metadata.name}/log${query}`)).text;
const terminated = async (name) => stateOf(await podOf(name, (pod) => stateOf(pod).terminated)).terminated;

async function outputOf(name, script, more = {}) {
    await bed.make(JOBS, job(name, script, { ...ONE, ...more }));
    await bed.untilEnded(name);
    return logOf(name);
}

const CONNECT = `python3 -c '
import socket, time
for _ in range(200):
    try:
        s = socket.create_connection(("pair-0.pair.default.svc.cluster.local", 6427))
        break
    except OSError:
        time.sleep(0.05)
s.sendall(b"hello from " + socket.gethostname().encode())
s.recv(1) # a pod that has ended has no name any more'`;
const LISTEN = `python3 -c '
import socket, time
c, peer = socket.create_server(("", 6427)).accept()
for _ in range(200): # its name may come a moment after it
    try:
        address = socket.gethostbyname("pair-1.pair")
        break
    except OSError:
        time.sleep(0.05)
print(c.recv(99).decode(), "at", peer[0] == address)'`;

test("Two pods of a Job reach each other by name", async () => {
    await bed.make(SERVICES, service("pair"));
    await bed.make(JOBS, job("pair", `if [ $JOB_COMPLETION_INDEX = 0 ]; then ${LISTEN}; else ${CONNECT}; fi`));
    const { status } = await bed.untilEnded("pair");
    const pods = await bed.podsOf("pair");
    const logs = await Promise.all(pods.map(async ({ metadata: { name }, status: { containerStatuses } }) =>
        (await bed.get(`${PODS}/${name}/log`)).text + JSON.stringify(containerStatuses)));
    assert.ok(conditionOf({ status }, "Complete"), logs.join("\n"));
    assert.ok(logs.some((text) => text.startsWith("hello from pair-1 at True\n")), logs.join("\n"));
});

test("A pod has a root, a host name and processes of its own", async () => {
    const text = await outputOf("own", "echo $$$$; hostname; ls /proc | grep -c '^[0-9]*$'; touch /usr/own && echo "
        + "written; ls /dev /tmp; echo $HOME $JOB_COMPLETION_INDEX; cat /etc/hostname; stat -f -c %T /dev/shm");
    const lines = text.split("\n");
    assert.deepEqual(lines.slice(0, 2), ["1", "own-0"]);
    assert.ok(Number(lines[2]) < 6);
    assert.ok(lines.includes("written") && lines.includes("termination-log") && lines.includes("/root 0"));
    assert.ok(lines.includes("own-0") && lines.includes("tmpfs"));
    assert.ok(!existsSync("/usr/own"));
});

test("Volumes: Secrets, projected ones, empty folders, claims, blob containers, folders of the node", async () => {
    const folder = (name) => join(bed.folder, name);
    for (const name of ["claimed", "blob", "node"]) {
        await mkdir(folder(name), { recursive: true });
        await writeFile(folder(`${name}/seen`), name);
    }
    await bed.tell("settings", { claims: { data: folder("claimed") }, blobs: { models: folder("blob") } });
    await bed.make(CLAIMS, { apiVersion: "v1", kind: "PersistentVolumeClaim", metadata: { name: "data" } });
    await bed.make(SECRETS, secret("one", { key: "the secret", other: "2" }));
    await bed.make(SECRETS, secret("two", { part: "projected" }));
    const volumes = [
        { name: "one", secret: { secretName: "one", items: [{ key: "key", path: "a/b", mode: 0o400 }] } },
        { name: "all", projected: { defaultMode: 0o440, sources: [{ secret: { name: "one" } },
            { secret: { name: "two" } }, { downwardAPI: { items: [{ path: "name",
                fieldRef: { fieldPath: "metadata.name" } }] } }] } },
        { name: "empty", emptyDir: {} }, { name: "shm", emptyDir: { medium: "Memory", sizeLimit: "1Mi" } },
        { name: "claim", persistentVolumeClaim: { claimName: "data" } },
        { name: "blob", csi: { driver: "blob.csi.azure.com", volumeAttributes: { containerName: "models",
            secretName: "one" } } },
        { name: "node", hostPath: { path: folder("node") } }];
    const volumeMounts = [{ name: "one", mountPath: "/one" }, { name: "all", mountPath: "/all" },
        { name: "empty", mountPath: "/empty" }, { name: "shm", mountPath: "/dev/shm" },
        { name: "claim", mountPath: "/claim" }, { name: "blob", mountPath: "/blob", readOnly: true },
        { name: "node", mountPath: "/node" }];
    const env = [{ name: "S", valueFrom: { secretKeyRef: { name: "one", key: "key" } } },
        { name: "N", valueFrom: { fieldRef: { fieldPath: "metadata.namespace" } } }, { name: "X", value: "$(N)/x" }];
    const text = await outputOf("v", `cat /one/a/b; echo; stat -c %a /one/a/b /all/part; cat /all/key /all/part; echo
ls /all; echo x >/one/c || echo read-only; touch /empty/f && echo empty; df --output=size -B1 /dev/shm | tail -1
cat /claim/seen /blob/seen /node/seen; echo; touch /blob/x || echo read-only; echo back >/claim/back
echo "$S $X"`, { pod: { volumes }, container: { volumeMounts, env } });
    const wanted = ["the secret", "400", "440", "the secretprojected", "key", "name", "other", "part", "empty",
        "1048576", "claimedblobnode", "the secret default/x"];
    const said = text.split("\n").map((line) => line.trim()).filter((line) => wanted.includes(line));
    assert.deepEqual(said, wanted, text);
    assert.equal(text.match(/^read-only$/gm).length, 2);
    assert.equal(await readFile(folder("claimed/back"), "utf8"), "back\n");
});

test("A pod waits for its Secret, and says so", async () => {
    await bed.make(JOBS, job("w", "cat /s/key", { ...ONE, pod: { volumes: [{ name: "s", secret:
        { secretName: "late" } }] }, container: { volumeMounts: [{ name: "s", mountPath: "/s" }] } }));
    const pod = await podOf("w", ({ spec }) => spec.nodeName);
    const { items: [event] } = await bed.until(`/api/v1/namespaces/default/events?fieldSelector=${
        encodeURIComponent(`involvedObject.name=${pod.metadata.name},reason=FailedMount`)}`,
    ({ items }) => items.length > 0);
    assert.equal(event.message, 'MountVolume.SetUp failed for volume "s" : secret "late" not found');
    assert.equal(stateOf(await podOf("w")).waiting.reason, "ContainerCreating");
    const early = await bed.get(`${PODS}/${pod.metadata.name}/log`);
    assert.deepEqual([early.status, early.body.message], [400, `container "main" in pod "${pod.metadata.name}" is `
        + "waiting to start: ContainerCreating"]);
    await bed.make(SECRETS, secret("late", { key: "now" }));
    await bed.untilEnded("w");
    assert.equal(await logOf("w"), "now\n");
});

test("Exit codes, the last words, and being out of memory", async () => {
    await bed.make(JOBS, job("bad", "echo why >/dev/termination-log; exit 3", ONE));
    const end = await terminated("bad");
    assert.deepEqual([end.exitCode, end.reason, end.message], [3, "Error", "why\n"]);
    const policy = { terminationMessagePolicy: "FallbackToLogsOnError" };
    await bed.make(JOBS, job("mute", "echo said; exit 3", { ...ONE, container: policy }));
    assert.equal((await terminated("mute")).message, "said\n");
    await bed.make(JOBS, job("big", "sleep 1000", ONE));
    const { metadata: { name } } = await podOf("big", running);
    await bed.tell("pod", { name, do: "oom" });
    const { exitCode, reason: why } = await terminated("big");
    assert.deepEqual([exitCode, why], [137, "OOMKilled"]);
});

test("A deletion asks first, and kills after the grace period", async () => {
    const until = async (name, script) => {
        await bed.make(JOBS, job(name, script, ONE));
        const pod = await podOf(name, running);
        await bed.until(`${PODS}/${pod.metadata.name}/log`.replace("/log", ""), running);
        await waitFor(async () => (await logOf(name)).includes("ready"));
        return pod.metadata.name;
    };
    const polite = await until("polite", "trap 'echo asked; exit 0' TERM; echo ready; sleep 1000 & wait");
    const log = bed.get(`${PODS}/${polite}/log?follow=true`);
    const watch = bed.get(`${PODS}?watch=1&timeoutSeconds=2&fieldSelector=metadata.name%3D${polite}`);
    await bed.delete(`${PODS}/${polite}`);
    assert.equal((await log).text, "ready\nasked\n");
    assert.match((await watch).text, /"phase":"Succeeded".*\n.*"type":"DELETED"/);
    const deaf = await until("deaf", "trap '' TERM; echo ready; sleep 1000");
    await bed.delete(`${PODS}/${deaf}?gracePeriodSeconds=1`);
    await bed.until(PODS, ({ items }) => !items.some(({ metadata }) => metadata.name === deaf));
});

async function waitFor(reached) {
    const end = Date.now() + 20000;
    while (!await reached()) {
        assert.ok(Date.now() < end);
        await new Promise((resolve) => { setTimeout(resolve, 20); });
    }
}

test("Images that do not work", async () => {
    const state = async (name, image, wanted) => {
        await bed.make(JOBS, job(name, "true", { ...ONE, container: { image } }));
        const reasonOf = ({ waiting, terminated: end }) => (waiting ?? end)?.reason;
        return stateOf(await podOf(name, (pod) => reasonOf(stateOf(pod)) === wanted));
    };
    assert.match((await state("pull", "bad/pull:1", "ImagePullBackOff")).waiting.message, /pull access denied/);
    assert.match((await state("name", "bad name", "InvalidImageName")).waiting.message, /invalid reference format/);
    const { exitCode, message } = (await state("shell", "no/shell:1", "StartError")).terminated;
    assert.equal(exitCode, 128);
    assert.match(message, /exec: "\/bin\/sh": stat \/bin\/sh: no such file or directory/);
    assert.equal((await state("arch", "other/arch:1", "Error")).terminated.exitCode, 255);
    assert.equal(await logOf("arch"), "exec /bin/sh: exec format error\n");
    const auths = { "private.example.com": { auth: Buffer.from("user:password").toString("base64") } };
    await bed.make(JOBS, job("login", "true", { ...ONE, container: { image: "private.example.com/a:1" },
        pod: { imagePullSecrets: [{ name: "registry" }] } }));
    await podOf("login", (pod) => stateOf(pod).waiting?.reason === "ImagePullBackOff");
    await bed.make(SECRETS, secret("registry", { ".dockerconfigjson": JSON.stringify({ auths }) },
        { type: "kubernetes.io/dockerconfigjson" }));
    await bed.untilEnded("login");
    await bed.make(JOBS, job("config", "true", { ...ONE, container: { env: [{ name: "A", valueFrom: { secretKeyRef:
        { name: "none", key: "k" } } }] } }));
    const waiting = await podOf("config", (pod) => stateOf(pod).waiting?.reason === "CreateContainerConfigError");
    assert.equal(stateOf(waiting).waiting.message, 'secret "none" not found');
});

test("Logs: times, tails, limits, and lines that are too long", async () => {
    await bed.tell("settings", { logPart: 10 });
    assert.equal(await outputOf("l", "echo one; echo two; echo 0123456789abcde; printf end"),
        "one\ntwo\n0123456789abcde\nend\n");
    const stamped = (await logOf("l", "?timestamps=true")).trim().split("\n");
    assert.ok(stamped.every((line) => /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{9}Z \S+$/.test(line)), stamped.join("\n"));
    assert.equal(await logOf("l", "?tailLines=1"), "end\n");
    assert.equal(await logOf("l", "?tailLines=0"), "");
    assert.equal(await logOf("l", "?limitBytes=5"), "one\nt");
    assert.equal(await logOf("l", `?sinceTime=${new Date(Date.now() + 5000).toISOString()}`), "");
    const since = stamped[3].slice(0, 30);
    assert.match(await logOf("l", `?sinceTime=${since}`), /end\n$/);
    const { metadata: { name } } = await podOf("l");
    const log = (query) => bed.get(`${PODS}/${name}/log?${query}`);
    assert.equal((await log(`sinceTime=${since}&sinceSeconds=3`)).status, 422);
    await bed.tell("forget");
    assert.equal((await log("container=other")).body.message, `container other is not valid for pod ${name}`);
    assert.equal((await log("previous=true")).status, 400);
    assert.match(await outputOf("both", "echo out; echo err >&2"), /^(out\nerr|err\nout)\n$/);
});

test("Logs are rotated: only the last piece is served, and following goes on", async () => {
    await bed.tell("settings", { logBytes: 500 });
    const script = "until [ -e /h/go ]; do sleep 0.02; done; i=0\n"
        + "while [ $i -lt 100 ]; do echo line $i; i=$((i + 1)); done";
    await bed.make(JOBS, job("r", script, { ...ONE,
        pod: { volumes: [{ name: "h", hostPath: { path: join(bed.folder, "go") } }] },
        container: { volumeMounts: [{ name: "h", mountPath: "/h" }] } }));
    const { metadata: { name } } = await podOf("r", running);
    const follow = bed.get(`${PODS}/${name}/log?follow=1`);
    await waitFor(() => bed.double.world.watches.size > 0);
    await writeFile(join(bed.folder, "go/go"), "");
    const all = Array.from({ length: 100 }, (_, n) => `line ${n}\n`).join("");
    assert.equal((await follow).text, all);
    await bed.untilEnded("r");
    const last = await logOf("r");
    assert.ok(last.length < all.length / 2 && all.endsWith(last));
    assert.ok((await bed.tell("written", { name })).pieces > 3);
});

test("A node that is lost takes its pods with it, and they are replaced when it is gone", async () => {
    await bed.make(JOBS, job("n", "sleep 1000", { ...ONE, podFailurePolicy: { rules: [{ action: "Ignore",
        onPodConditions: [{ type: "DisruptionTarget", status: "True" }] }] } }));
    const { metadata: { name }, spec: { nodeName } } = await podOf("n", running);
    const { pid } = await bed.tell("pod", { name, do: "pid" });
    await bed.tell("node", { name: nodeName, do: "lose" });
    await waitFor(() => !existsSync(`/proc/${pid}`));
    const lost = await podOf("n", ({ metadata }) => metadata.deletionTimestamp);
    assert.ok(conditionOf(lost, "DisruptionTarget"));
    assert.equal((await bed.get(`${PODS}/${name}/log`)).status, 500);
    await bed.tell("node", { name: nodeName, do: "remove" });
    const next = await podOf("n", (pod) => running(pod) && pod.metadata.name !== name);
    assert.notEqual(next.spec.nodeName, nodeName);
    assert.equal((await bed.get(`${JOBS}/n`)).body.status.failed, undefined);
});

test("A node that comes back before its pods were asked to go has lost them", async () => {
    await bed.make(JOBS, job("n", "sleep 1000", { ...ONE, podFailurePolicy: { rules: [{ action: "FailJob",
        onExitCodes: { containerName: "main", operator: "NotIn", values: [121] } }] } }));
    const { metadata: { name }, spec: { nodeName } } = await podOf("n", running);
    await bed.tell("node", { name: nodeName, do: "lose", evict: false });
    assert.ok(running(await podOf("n")));
    await bed.tell("node", { name: nodeName, do: "back" });
    const { message } = conditionOf(await bed.untilEnded("n"), "Failed");
    assert.match(message, new RegExp(`^Container main for pod default/${name} failed with exit code 137`));
});

test("A pod that its node evicts has failed, and is replaced", async () => {
    await bed.make(JOBS, job("e", "sleep 1000", { ...ONE, podFailurePolicy: { rules: [{ action: "Ignore",
        onPodConditions: [{ type: "DisruptionTarget", status: "True" }] }] } }));
    const { metadata: { name } } = await podOf("e", running);
    await bed.tell("pod", { name, do: "evict" });
    const { status } = await bed.until(`${PODS}/${name}`, (pod) => pod.status.phase === "Failed");
    assert.equal(status.reason, "Evicted");
    await bed.until(PODS, ({ items }) => items.some((pod) => running(pod) && pod.metadata.name !== name));
    await bed.delete(`${PODS}/${name}`);
    await bed.until(PODS, ({ items }) => items.length === 1);
});

test("A container starts again in its pod, which keeps the log of the one before", async () => {
    await bed.make(JOBS, job("again", "if [ -e /e/was ]; then echo second; else touch /e/was; echo first; exit 1; fi",
        { ...ONE, backoffLimit: 6, pod: { restartPolicy: "OnFailure", volumes: [{ name: "e", emptyDir: {} }] },
            container: { volumeMounts: [{ name: "e", mountPath: "/e" }] } }));
    assert.ok(conditionOf(await bed.untilEnded("again"), "Complete"));
    assert.equal((await podOf("again")).status.containerStatuses[0].restartCount, 1);
    assert.deepEqual([await logOf("again"), await logOf("again", "?previous=true")], ["second\n", "first\n"]);
});

test("Deleting the Job ends its processes, and nothing is left", async () => {
    await bed.make(JOBS, job("j", "sleep 1000 & sleep 1000", { pod: { terminationGracePeriodSeconds: 1 } }));
    await bed.until(`${JOBS}/j`, ({ status }) => status.ready === 2);
    const pids = await Promise.all((await bed.podsOf("j")).map(async ({ metadata: { name } }) =>
        (await bed.tell("pod", { name, do: "pid" })).pid));
    await bed.delete(`${JOBS}/j?propagationPolicy=Foreground`, {});
    await bed.until(JOBS, ({ items }) => items.length === 0);
    assert.ok(pids.every((pid) => !existsSync(`/proc/${pid}`)));
    await bed.tell("reset");
    assert.ok(!existsSync(join(bed.folder, "pods")));
    assert.ok(!(await readFile("/proc/self/mounts", "utf8")).includes(bed.folder));
});
