// The API: objects, lists, watches, patches, deletion, refusals, faults.
import assert from "node:assert/strict";
import { request } from "node:https";
import { readFile } from "node:fs/promises";
import { after, before, beforeEach, test } from "node:test";

import { Bed, job, JOBS, PODS, secret, SECRETS } from "./bed.mjs";

let bed;

before(async () => { bed = await Bed.start({ run: false, nodes: {} }); });
after(() => bed.stop());
beforeEach(() => bed.tell("reset"));

const MAPS = "/api/v1/namespaces/default/configmaps";
const map = (name, labels) => ({ apiVersion: "v1", kind: "ConfigMap", metadata: { name, labels }, data: { a: "1" } });
const names = ({ items }) => items.map(({ metadata }) => metadata.name);

async function makeMaps(...labelled) {
    for (const [name, labels] of labelled) {
        await bed.make(MAPS, map(name, labels));
    }
}

/** A request over https: the status, and the body. */
function secure(options, path = "/api/v1/namespaces/default/pods") {
    return new Promise((resolve, reject) => {
        request(bed.links.url + path, options, async (response) => {
            const parts = await response.toArray();
            resolve({ status: response.statusCode, headers: response.headers, body: JSON.parse(Buffer.concat(parts)) });
        }).on("error", reject).end();
    });
}

const kubeconfig = async (name) => JSON.parse(await readFile(bed.links.kubeconfig[name], "utf8"));

test("It says what it serves", async () => {
    assert.equal((await bed.get("/version")).body.major, "1");
    assert.deepEqual((await bed.get("/api")).body.versions, ["v1"]);
    assert.ok((await bed.get("/apis")).body.groups.some(({ name }) => name === "batch"));
    const { resources } = (await bed.get("/apis/batch/v1")).body;
    assert.deepEqual(resources.map(({ name }) => name), ["jobs", "jobs/status"]);
    for (const path of ["/apis/kubeflow.org/v1", "/apis/kueue.x-k8s.io/v1beta1/localqueues", "/nothing"]) {
        const answer = await bed.get(path);
        assert.deepEqual([answer.status, answer.text], [404, "404 page not found\n"]);
        assert.match(answer.headers.get("content-type"), /^text\/plain/);
    }
    await bed.tell("settings", { kueue: true });
    assert.equal((await bed.get("/apis/kueue.x-k8s.io/v1beta1/localqueues")).status, 200);
});

test("Tokens, client certificates, nobody", async () => {
    const { clusters: [{ cluster }], users: [{ user: { token } }] } = await kubeconfig("token");
    const { users: [{ user }] } = await kubeconfig("certificate");
    const text = (data) => Buffer.from(data, "base64").toString();
    const ca = text(cluster["certificate-authority-data"]);
    const bearer = { headers: { authorization: `Bearer ${token}` } };
    assert.equal((await secure({ ca, ...bearer })).status, 200);
    assert.equal((await secure({ ca, cert: text(user["client-certificate-data"]),
        key: text(user["client-key-data"]) })).status, 200);
    await assert.rejects(secure(bearer), /certificate/);
    const wrong = await secure({ ca, headers: { authorization: "Bearer wrong" } });
    assert.deepEqual([wrong.status, wrong.body.message], [401, "Unauthorized"]);
    const nobody = await secure({ ca });
    assert.deepEqual([nobody.status, nobody.body.message], [403, 'pods is forbidden: User "system:anonymous" cannot '
        + 'list resource "pods" in API group "" in the namespace "default"']);
    await bed.tell("tokens", { revoke: true, add: { fresh: {}, old: { until: 1 } } });
    assert.equal((await secure({ ca, ...bearer })).status, 401);
    assert.equal((await secure({ ca, headers: { authorization: "Bearer old" } })).status, 401);
    assert.equal((await secure({ ca, headers: { authorization: "Bearer fresh" } })).status, 200);
});

test("Objects are made, read, changed and deleted", async () => {
    const made = await bed.make(MAPS, map("m"));
    assert.match(made.metadata.uid, /^[0-9a-f-]{36}$/);
    assert.match(made.metadata.creationTimestamp, /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$/);
    const again = await bed.post(MAPS, map("m"));
    assert.deepEqual([again.status, again.body.reason, again.body.message],
        [409, "AlreadyExists", 'configmaps "m" already exists']);
    const put = await bed.send("PUT", `${MAPS}/m`, { ...made, data: { a: "2" } });
    assert.deepEqual([put.status, put.body.data.a], [200, "2"]);
    const stale = await bed.send("PUT", `${MAPS}/m`, { ...made, data: { a: "3" } });
    assert.deepEqual([stale.status, stale.body.reason], [409, "Conflict"]);
    assert.equal((await bed.post(`${MAPS}?dryRun=All`, map("dry"))).status, 201);
    assert.equal((await bed.post(`${MAPS}?dryRun=All`, map("m"))).status, 409);
    assert.equal((await bed.get(`${MAPS}/dry`)).status, 404);
    const { metadata } = await bed.make(MAPS, { ...map(), metadata: { generateName: "act-" } });
    assert.match(metadata.name, /^act-[a-z0-9]{5}$/);
    const wrong = await bed.delete(`${MAPS}/m`, { preconditions: { uid: "other" } });
    assert.deepEqual([wrong.status, wrong.body.reason], [409, "Conflict"]);
    const gone = await bed.delete(`${MAPS}/m`, { preconditions: { uid: made.metadata.uid } });
    assert.deepEqual([gone.body.status, gone.body.details.uid], ["Success", made.metadata.uid]);
    const missing = await bed.delete(`${MAPS}/m`);
    assert.deepEqual([missing.status, missing.body.message], [404, 'configmaps "m" not found']);
    const nowhere = await bed.post("/api/v1/namespaces/nowhere/configmaps", map("m"));
    assert.deepEqual([nowhere.status, nowhere.body.message], [404, 'namespaces "nowhere" not found']);
});

test("Lists: selectors and pages", async () => {
    await makeMaps(["a", { x: "1" }], ["b", { x: "2" }], ["c", { y: "1" }], ["d"]);
    for (const [query, wanted] of [["labelSelector=x%3D1", "a"], ["labelSelector=x%3D%3D2", "b"],
        ["labelSelector=x!%3D1", "bcd"], ["labelSelector=x", "ab"], ["labelSelector=!x", "cd"],
        ["labelSelector=x+in+(1,2),x!%3D2", "a"], ["labelSelector=x+notin+(1)", "bcd"],
        ["fieldSelector=metadata.name%3Dc", "c"], ["fieldSelector=metadata.name!%3Dc", "abd"]]) {
        assert.equal(names((await bed.get(`${MAPS}?${query}`)).body).join(""), wanted, query);
    }
    assert.equal((await bed.get(`${MAPS}?labelSelector=x+of+y`)).status, 400);
    assert.match((await bed.get(`${MAPS}?fieldSelector=data.a%3D1`)).body.message, /field label not supported: data.a/);
    const first = (await bed.get(`${MAPS}?limit=3`)).body;
    assert.deepEqual([names(first), first.metadata.remainingItemCount], [["a", "b", "c"], 1]);
    const next = `${MAPS}?limit=3&continue=${first.metadata.continue}`;
    assert.deepEqual(names((await bed.get(next)).body), ["d"]);
    assert.equal((await bed.get(`${MAPS}?continue=nonsense`)).status, 400);
    await bed.tell("compact");
    const old = await bed.get(next);
    assert.deepEqual([old.status, old.body.reason], [410, "Expired"]);
    assert.equal((await bed.get(`${MAPS}?limit=3`)).status, 200);
});

test("Watches: what changes, bookmarks, their end, and what is too old", async () => {
    await makeMaps(["a", { x: "1" }]);
    const { metadata: { resourceVersion } } = (await bed.get(MAPS)).body;
    const watch = bed.get(`${MAPS}?watch=true&resourceVersion=${resourceVersion}&labelSelector=x%3D1&timeoutSeconds=1`);
    await bed.patch(`${MAPS}/a`, { data: { a: "2" } });
    await bed.make(MAPS, map("b", { x: "2" }));
    await bed.make(MAPS, map("c", { x: "1" }));
    await bed.patch(`${MAPS}/a`, { metadata: { labels: { x: "2" } } });
    await bed.delete(`${MAPS}/c`);
    const seen = (await watch).text.trim().split("\n").map((line) => JSON.parse(line));
    assert.deepEqual(seen.map(({ type, object }) => `${type} ${object.metadata.name}`),
        ["MODIFIED a", "ADDED c", "DELETED a", "DELETED c"]);
    assert.deepEqual(seen.map(({ object }) => object.metadata.labels.x), ["1", "1", "1", "1"]);
    const versions = seen.map(({ object }) => Number(object.metadata.resourceVersion));
    assert.deepEqual(versions, [...new Set(versions)].sort((a, b) => a - b));
    await bed.tell("settings", { bookmarkMs: 10 });
    const marked = (await bed.get(`${MAPS}?watch=1&allowWatchBookmarks=true&timeoutSeconds=1`)).text;
    assert.match(marked, /"type":"ADDED".*\n(.*\n)*.*"type":"BOOKMARK"/);
    await bed.tell("compact");
    const [error] = (await bed.get(`${MAPS}?watch=1&resourceVersion=${resourceVersion}`)).text.trim().split("\n");
    assert.deepEqual([JSON.parse(error).type, JSON.parse(error).object.code], ["ERROR", 410]);
});

test("Watches: their last bookmark, none at all, and versions that nobody has given out", async () => {
    const watch = async (query) => (await bed.get(`${MAPS}?watch=1&allowWatchBookmarks=true&${query}`)).text;
    const { metadata: { resourceVersion } } = (await bed.get(MAPS)).body;
    await bed.tell("settings", { bookmarkMs: 60000 });
    const last = watch(`timeoutSeconds=3&resourceVersion=${resourceVersion}`);
    const { metadata: { resourceVersion: made } } = await bed.make("/api/v1/namespaces/other/configmaps",
        { ...map("m"), metadata: { name: "m" } });
    const { type, object } = JSON.parse(await last);
    assert.deepEqual([type, object.metadata.resourceVersion, object.metadata.name], ["BOOKMARK", made, undefined]);
    await bed.tell("settings", { bookmarkMs: 0 });
    assert.equal(await watch(`timeoutSeconds=3&resourceVersion=${resourceVersion}`), "");
    const error = JSON.parse(await watch("resourceVersion=999999999"));
    assert.deepEqual([error.type, error.object.code, error.object.reason], ["ERROR", 504, "Timeout"]);
    const wrong = await bed.get(`${MAPS}?watch=1&resourceVersion=abc`);
    assert.deepEqual([wrong.status, wrong.body.reason], [422, "Invalid"]);
    await bed.tell("forbid", [{ verb: "watch", resource: "configmaps" }]);
    assert.deepEqual([(await bed.get(MAPS)).status, (await bed.get(`${MAPS}?watch=1`)).status], [200, 403]);
});

test("Patches", async () => {
    await makeMaps(["m", { x: "1" }]);
    const path = `${MAPS}/m`;
    assert.deepEqual((await bed.patch(path, { data: { b: "2", a: null } })).body.data, { b: "2" });
    const operations = [{ op: "test", path: "/data/b", value: "2" }, { op: "add", path: "/data/c~1d", value: "3" }];
    assert.match((await bed.patch(path, operations, "application/json-patch+json")).body.message, /data\[c\/d\]/);
    const good = [{ op: "add", path: "/data/c", value: "3" }, { op: "remove", path: "/metadata/labels/x" }];
    const { data, metadata } = (await bed.patch(path, good, "application/json-patch+json")).body;
    assert.deepEqual([data, metadata.labels], [{ b: "2", c: "3" }, {}]);
    assert.equal((await bed.patch(path, [{ op: "test", path: "/data/b", value: "9" }],
        "application/json-patch+json")).status, 422);
    assert.equal((await bed.patch(path, { data: { d: "4" } }, "application/strategic-merge-patch+json")).status, 200);
    const wrong = await bed.patch(path, {}, "application/json");
    assert.deepEqual([wrong.status, wrong.body.reason], [415, "UnsupportedMediaType"]);
    await bed.tell("settings", { kueue: true });
    await bed.tell("create", { kind: "LocalQueue", object: { metadata: { name: "q", namespace: "default" } } });
    assert.equal((await bed.patch("/apis/kueue.x-k8s.io/v1beta1/namespaces/default/localqueues/q", {},
        "application/strategic-merge-patch+json")).status, 415);
    assert.equal((await bed.patch(path, { metadata: { resourceVersion: "1" } })).status, 409);
});

test("The status has a path of its own", async () => {
    await bed.make(JOBS, job("j", "true", { suspend: true }));
    await bed.patch(`${JOBS}/j`, { status: { failed: 7 } });
    assert.notEqual((await bed.get(`${JOBS}/j`)).body.status.failed, 7);
    await bed.patch(`${JOBS}/j/status`, { spec: { suspend: false }, status: { uncountedTerminatedPods: { failed:
        ["u"] } } });
    assert.equal((await bed.get(`${JOBS}/j`)).body.spec.suspend, true);
});

test("What is owned goes with its owner, in each of the three ways", async () => {
    const owned = async (name) => {
        const { metadata: { uid } } = await bed.make(JOBS, job(name, "true", { suspend: true }));
        await bed.make(SECRETS, { ...secret(name), metadata: { name,
            ownerReferences: [{ apiVersion: "batch/v1", kind: "Job", name, uid }] } });
        return `${JOBS}/${name}`;
    };
    const untilGone = (name) => bed.until(SECRETS, (found) => !names(found).includes(name));
    const background = await bed.delete(`${await owned("b")}?propagationPolicy=Background`);
    assert.equal(background.body.status, "Success");
    assert.equal((await bed.get(`${JOBS}/b`)).status, 404);
    await untilGone("b");
    const foreground = await bed.delete(await owned("f"), { propagationPolicy: "Foreground" });
    assert.deepEqual(foreground.body.metadata.finalizers, ["foregroundDeletion"]);
    await untilGone("f");
    await bed.until(JOBS, (found) => !names(found).includes("f"));
    const orphaned = await bed.delete(await owned("o"));
    assert.match(orphaned.headers.get("warning"), /child pods are preserved by default/);
    await bed.until(JOBS, (found) => !names(found).includes("o"));
    assert.deepEqual((await bed.get(`${SECRETS}/o`)).body.metadata.ownerReferences, []);
    assert.deepEqual(names((await bed.delete(`${SECRETS}?labelSelector=!x`)).body), ["o"]);
});

test("Who has a finalizer goes when it is taken away", async () => {
    await bed.make(MAPS, { ...map("m"), metadata: { name: "m", finalizers: ["example.com/hold"] } });
    assert.ok((await bed.delete(`${MAPS}/m`)).body.metadata.deletionTimestamp);
    assert.equal((await bed.post(MAPS, map("m"))).body.message,
        'object is being deleted: configmaps "m" already exists');
    await bed.patch(`${MAPS}/m`, { metadata: { finalizers: null } });
    assert.equal((await bed.get(`${MAPS}/m`)).status, 404);
});

test("Metadata alone, and tables", async () => {
    await bed.make(JOBS, job("j", "true", { suspend: true }));
    const partial = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=1,application/json";
    const { kind, metadata, spec } = (await bed.get(`${JOBS}/j`, { accept: partial })).body;
    assert.deepEqual([kind, metadata.name, spec], ["PartialObjectMetadata", "j", undefined]);
    const table = (await bed.get(JOBS, { accept: "application/json;as=Table;v=v1;g=meta.k8s.io" })).body;
    assert.deepEqual([table.kind, table.rows[0].cells[0]], ["Table", "j"]);
    assert.equal((await bed.get(JOBS, { accept: "application/vnd.kubernetes.protobuf" })).status, 406);
});

test("What may be done", async () => {
    const review = (verb, resource, group = "") => ({ apiVersion: "authorization.k8s.io/v1",
        kind: "SelfSubjectAccessReview",
        spec: { resourceAttributes: { namespace: "default", verb, group, resource } } });
    const path = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews";
    assert.equal((await bed.make(path, review("create", "jobs", "batch"))).status.allowed, true);
    await bed.tell("forbid", [{ verb: "create", resource: "jobs", group: "batch" },
        { verb: "*", resource: "secrets" }]);
    assert.equal((await bed.make(path, review("create", "jobs", "batch"))).status.allowed, false);
    assert.equal((await bed.make(path, review("list", "secrets"))).status.allowed, false);
    const answer = await bed.post(JOBS, job("j"));
    assert.deepEqual([answer.status, answer.body.message], [403, 'jobs.batch is forbidden: User "act-tests" cannot '
        + 'create resource "jobs" in API group "batch" in the namespace "default"']);
    assert.equal((await bed.get(`${SECRETS}/s`)).body.message, 'secrets "s" is forbidden: User "act-tests" cannot get '
        + 'resource "secrets" in API group "" in the namespace "default"');
});

test("What goes wrong on command", async () => {
    await bed.tell("faults", [
        { method: "GET", match: "/pods", status: 429, retryAfter: 1, times: 2 },
        { method: "GET", match: "/jobs", cut: "before" }, { method: "POST", match: "/configmaps", cut: "after" },
        { match: "/secrets", merge: { metadata: { resourceVersion: "mutated" } } },
        { match: "/services", cut: "within" }]);
    for (const status of [429, 429, 200]) {
        const answer = await bed.get(PODS);
        assert.equal(answer.status, status);
        assert.equal(answer.headers.get("retry-after"), status === 429 ? "1" : null);
    }
    await assert.rejects(bed.get(JOBS));
    await assert.rejects(bed.post(MAPS, map("m")));
    assert.equal((await bed.get(`${MAPS}/m`)).status, 200);
    assert.equal((await bed.get(SECRETS)).body.metadata.resourceVersion, "mutated");
    await assert.rejects(bed.get("/api/v1/namespaces/default/services"));
    await bed.tell("settings", { clock: 3600e3 });
    assert.ok(Date.parse((await bed.get(PODS)).headers.get("date")) > Date.now() + 3500e3);
    await bed.tell("away");
    await assert.rejects(bed.get(PODS));
    await bed.tell("back");
    assert.equal((await bed.get(PODS)).status, 200);
    const { requests } = await bed.tell("look");
    assert.ok(requests.some(({ method, url, status }) => method === "POST" && url === MAPS && status === 201));
    assert.ok(requests.every(({ headers }) => !("authorization" in headers)));
});

test("Bodies that are none", async () => {
    assert.equal((await bed.post(MAPS, "{", {})).status, 400);
    assert.equal((await bed.post(MAPS, map("m"), { "content-type": "text/plain" })).status, 415);
    assert.equal((await bed.post(MAPS, "x".repeat(3 * 1024 * 1024 + 1))).status, 413);
    assert.equal((await bed.send("PUT", MAPS, map("m"))).status, 405);
    assert.equal((await bed.get(`${MAPS}/m/nothing`)).status, 404);
    assert.equal((await bed.post(MAPS, { ...map("m"), kind: "Secret" })).status, 400);
});

// ---- what admission has against objects

const NAMESPACE = "/api/v1/namespaces/default";
const label = (labels) => bed.tell("patch", { kind: "Namespace", name: "default", patch: { metadata: {
    labels: Object.fromEntries(Object.entries(labels).map(([key, value]) =>
        [`pod-security.kubernetes.io/${key}`, value])) } } });
const pod = (spec = {}, container = {}) => ({ apiVersion: "v1", kind: "Pod", metadata: { generateName: "p-" },
    spec: { containers: [{ name: "main", image: "i", ...container }], ...spec } });
const hardened = pod({ securityContext: { runAsNonRoot: true, seccompProfile: { type: "RuntimeDefault" } } },
    { securityContext: { allowPrivilegeEscalation: false, capabilities: { drop: ["ALL"] } } });

test("Pod Security refuses pods, and only warns of what makes them", async () => {
    await label({ enforce: "restricted" });
    const refused = await bed.post(`${PODS}?dryRun=All`, pod());
    assert.equal(refused.status, 403);
    assert.match(refused.body.message, new RegExp('^pods "p-\\w{5}" is forbidden: violates PodSecurity '
        + '"restricted:latest": allowPrivilegeEscalation != false \\(container "main" must set securityContext\\.'
        + 'allowPrivilegeEscalation=false\\), unrestricted capabilities .*, runAsNonRoot != true .*, seccompProfile'));
    assert.equal((await bed.post(`${PODS}?dryRun=All`, hardened)).status, 201);
    assert.deepEqual((await bed.get(PODS)).body.items, [], "a dry run makes nothing");
    const warned = await bed.post(JOBS, job("j", "true", { suspend: true }));
    assert.equal(warned.status, 201);
    assert.match(warned.headers.get("warning"), /^299 - "would violate PodSecurity \\"restricted:latest\\": allow/);
    await label({ enforce: "baseline", warn: "privileged" });
    assert.equal((await bed.post(PODS, pod())).status, 201);
    for (const [spec, container, said] of [
        [{ hostNetwork: true }, {}, "host namespaces (hostNetwork=true)"],
        [{ volumes: [{ name: "v", hostPath: { path: "/" } }] }, {}, 'hostPath volumes (volume "v")'],
        [{}, { securityContext: { privileged: true } }, 'privileged (container "main" must not set']]) {
        const { body } = await bed.post(PODS, pod(spec, container));
        assert.ok(body.message.includes(`violates PodSecurity "baseline:latest": ${said}`), body.message);
    }
});

test("Servers before 1.26 do not warn of what they enforce", async () => {
    await label({ enforce: "restricted" });
    await bed.tell("settings", { version: "1.25" });
    assert.equal((await bed.post(JOBS, job("j", "true", { suspend: true }))).headers.get("warning"), null);
});

test("A LimitRange fills in what is not said, and refuses what is too much", async () => {
    await bed.tell("create", { kind: "LimitRange", object: { metadata: { name: "l", namespace: "default" },
        spec: { limits: [{ type: "Container", max: { memory: "1Gi" }, min: { cpu: "100m" } }] } } });
    const { spec: { containers: [{ resources }] } } = await bed.make(PODS, pod());
    assert.deepEqual(resources, { limits: { memory: "1Gi" }, requests: { memory: "1Gi", cpu: "100m" } });
    const refused = await bed.post(PODS, pod({}, { resources: { limits: { memory: "2Gi", cpu: "50m" } } }));
    assert.deepEqual([refused.status, refused.body.message.replace(/"p-\w+"/, "it")], [403,
        "pods it is forbidden: [maximum memory usage per Container is 1Gi, but limit is 2Gi, minimum cpu usage per "
        + "Container is 100m, but request is 50m]"]);
});

test("A quota of memory wants limits", async () => {
    await bed.tell("create", { kind: "ResourceQuota", object: { metadata: { name: "q", namespace: "default" },
        spec: { hard: { "limits.memory": "1Gi", "requests.cpu": "1" } } } });
    assert.match((await bed.post(PODS, pod())).body.message,
        /failed quota: q: must specify limits\.memory for: main; requests\.cpu for: main$/);
    await bed.make(PODS, pod({}, { resources: { limits: { memory: "1Gi", cpu: "1" } } }));
    assert.match((await bed.post(PODS, pod({}, { resources: { limits: { memory: "1Gi", cpu: "1" } } }))).body.message,
        /exceeded quota: q, requested: limits\.memory=1Gi/);
});

test("Webhooks deny, or do not answer, also in a dry run", async () => {
    await bed.tell("settings", { webhooks: [{ name: "a.example.com", resources: ["secrets"] },
        { name: "b.example.com", resources: ["pods"], denies: "no" }] });
    const failed = await bed.post(`${SECRETS}?dryRun=All`, secret("s"));
    assert.deepEqual([failed.status, failed.body.reason], [500, "InternalError"]);
    assert.match(failed.body.message, /^Internal error occurred: failed calling webhook "a.example.com": failed to /);
    const denied = await bed.post(PODS, pod());
    assert.deepEqual([denied.status, denied.body.message], [403,
        'admission webhook "b.example.com" denied the request: no']);
    assert.equal((await bed.get(`${NAMESPACE}`)).status, 200);
});
