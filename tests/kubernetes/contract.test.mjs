// What the double refuses: bodies that the official client would not send, or that a server would not take.
import assert from "node:assert/strict";
import { after, before, beforeEach, test } from "node:test";

import { Bed, job, JOBS, secret, SECRETS, service, SERVICES } from "./bed.mjs";

let bed;

before(async () => { bed = await Bed.start({ run: false }); });
after(() => bed.stop());
beforeEach(() => bed.tell("reset"));

/** A right body after a change of it. */
function changed(change, body = job("j")) {
    change(body, body.spec?.template?.spec, body.spec?.template?.spec?.containers[0]);
    return body;
}

const MUTATIONS = [
    ["an unknown field", /spec\.paralelism: unknown field/, (body) => { body.spec.paralelism = 2; }],
    ["an unknown field deep down", /containers\[0\]\.imagePullpolicy: unknown field/,
        (body, pod, main) => { main.imagePullpolicy = "Always"; }],
    ["an unknown field of metadata", /metadata\.label: unknown field/, (body) => { body.metadata.label = {}; }],
    ["a text for a number", /spec\.completions: Invalid value: "2": must be int32/,
        (body) => { body.spec.completions = "2"; }],
    ["half a pod", /spec\.parallelism: Invalid value: 1\.5/, (body) => { body.spec.parallelism = 1.5; }],
    ["a number for a text", /env\[0\]\.value: Invalid value: 1: must be string/,
        (body, pod, main) => { main.env = [{ name: "A", value: 1 }]; }],
    ["a number for a quantity", /limits\[cpu\]: Invalid value: 4/,
        (body, pod, main) => { main.resources = { limits: { cpu: 4 } }; }],
    ["a text for a truth", /spec\.suspend: Invalid value: "true"/, (body) => { body.spec.suspend = "true"; }],
    ["a text for a list", /command: Invalid value: "true": must be a list/, (body, pod, main) => {
        main.command = "true";
    }],
    ["a label that is a number", /labels\[a\]: Invalid value: 1/, (body) => { body.metadata.labels = { a: 1 }; }],
    ["no template", /Required|required/, (body) => { delete body.spec.template; }],
    ["no containers", /required/i, (body, pod) => { delete pod.containers; }],
    ["no image", /image: Required value/, (body, pod, main) => { delete main.image; }],
    ["no restartPolicy", /restartPolicy: Required value/, (body, pod) => { delete pod.restartPolicy; }],
    ["restartPolicy Always", /restartPolicy: Unsupported value: "Always"/,
        (body, pod) => { pod.restartPolicy = "Always"; }],
    ["a name in upper case", /metadata\.name: Invalid value: "J"/, (body) => { body.metadata.name = "J"; }],
    ["a name that is too long", /must be no more than 63 characters/,
        (body) => { body.metadata.name = "j".repeat(64); }],
    ["a container in upper case", /containers\[0\]\.name: Invalid value: "Main"/,
        (body, pod, main) => { main.name = "Main"; }],
    ["a label with a blank", /metadata\.labels: Invalid value: "a b"/,
        (body) => { body.metadata.labels = { a: "a b" }; }],
    ["a label that is too long", /must be no more than 63 characters/,
        (body) => { body.metadata.labels = { a: "x".repeat(64) }; }],
    ["a mount of no volume", /volumeMounts\[0\]\.name: Not found: "v"/,
        (body, pod, main) => { main.volumeMounts = [{ name: "v", mountPath: "/v" }]; }],
    ["a volume without a source", /volumes\[0\]: Required value: must specify a volume type/,
        (body, pod) => { pod.volumes = [{ name: "v" }]; }],
    ["Indexed without completions", /spec\.completions: Required value: when completion mode is Indexed/,
        (body) => { delete body.spec.completions; }],
    ["half a GPU", /limits\[nvidia\.com\/gpu\]: Invalid value: "1500m": must be an integer/,
        (body, pod, main) => { main.resources = { limits: { "nvidia.com/gpu": "1500m" } }; }],
    ["GPUs as requests alone", /requests: Invalid value: "1": must be equal to nvidia\.com\/gpu limit/,
        (body, pod, main) => { main.resources = { requests: { "nvidia.com/gpu": "1" } }; }],
    ["a rule without an action", /rules\/0 must have required property action/,
        (body) => { body.spec.podFailurePolicy = { rules: [{ onPodConditions: [{ type: "A", status: "True" }] }] }; }],
    ["a rule for a container that there is not", /containerName: Invalid value: "other"/, (body) => {
        body.spec.podFailurePolicy = { rules: [{ action: "FailJob",
            onExitCodes: { containerName: "other", operator: "NotIn", values: [121] } }] };
    }],
];

for (const [what, why, change] of MUTATIONS) {
    test(`A Job with ${what} is refused`, async () => {
        const answer = await bed.post(JOBS, changed(change));
        assert.equal(answer.status, 422, answer.text);
        assert.match(answer.body.message, why);
        assert.equal(answer.body.reason, "Invalid");
        assert.ok(answer.body.details.causes.length > 0);
        const [violation] = await bed.violations();
        assert.match(violation, why);
    });
}

test("What is right is no violation", async () => {
    await bed.make(JOBS, changed((body, pod, main) => {
        body.metadata.labels = { "act/run": "me-1", "app.kubernetes.io/managed-by": "act" };
        body.spec.podFailurePolicy = { rules: [
            { action: "Ignore", onPodConditions: [{ type: "DisruptionTarget", status: "True" }] },
            { action: "FailJob", onExitCodes: { containerName: "main", operator: "NotIn", values: [121] } }] };
        pod.volumes = [{ name: "shm", emptyDir: { medium: "Memory", sizeLimit: "8Gi" } }, { name: "run",
            projected: { sources: [{ secret: { name: "s" } }] } }];
        main.volumeMounts = [{ name: "shm", mountPath: "/dev/shm" }, { name: "run", mountPath: "/run/act/secret" }];
        main.resources = { limits: { "nvidia.com/gpu": "4", memory: "1.5Gi" } };
    }));
    await bed.make(SECRETS, secret("s", { token: "1" }, { immutable: true }));
    await bed.make(SERVICES, service("j"));
    assert.equal((await bed.patch(`${JOBS}/j`, { spec: { suspend: true }, metadata: { annotations: { a: null } } }))
        .status, 200);
    assert.deepEqual(await bed.violations(), []);
});

test("A patch is checked as well, in each of its forms", async () => {
    await bed.make(JOBS, job("j"));
    const wrong = { spec: { suspended: true } };
    for (const [body, type] of [[wrong, "merge-patch"], [wrong, "strategic-merge-patch"],
        [[{ op: "add", path: "/spec/suspended", value: true }], "json-patch"]]) {
        const answer = await bed.patch(`${JOBS}/j`, body, `application/${type}+json`);
        assert.equal(answer.status, 422, type);
        assert.match(answer.body.message, /spec\.suspended: unknown field/);
    }
    assert.equal((await bed.violations()).length, 3);
});

test("Strict validation names unknown fields with 400", async () => {
    const answer = await bed.post(`${JOBS}?fieldValidation=Strict`, changed((body) => { body.spec.foo = 1; }));
    assert.equal(answer.status, 400);
    assert.match(answer.body.message, /strict decoding error: unknown field "spec\.foo"/);
    assert.deepEqual(await bed.violations(), [], "who asks is told");
});

test("Secrets: base64, keys, the limit, and what is immutable", async () => {
    const big = secret("big", { a: "x".repeat(1024 * 1024 + 1) });
    assert.match((await bed.post(SECRETS, big)).body.message, /data: Too long: may not be more than 1048576 bytes/);
    assert.match((await bed.post(SECRETS, secret("s", { "a/b": "1" }))).body.message, /a valid config key/);
    assert.match((await bed.post(SECRETS, secret("s", {}, { type: "kubernetes.io/dockerconfigjson" }))).body.message,
        /data\[\.dockerconfigjson\]: Required value/);
    await bed.make(SECRETS, secret("fixed", { a: "1" }, { immutable: true }));
    const answer = await bed.patch(`${SECRETS}/fixed`, { data: { a: "Mg==" } });
    assert.equal(answer.status, 422);
    assert.match(answer.body.message, /data: Forbidden: field is immutable when `immutable` is set/);
    const { body } = await bed.post(SECRETS, { ...secret("plain"), stringData: { b: "text" } });
    assert.deepEqual([body.data.b, body.stringData, body.type], ["dGV4dA==", undefined, "Opaque"]);
});

test("An old server drops what it does not know, without a word", async () => {
    await bed.tell("settings", { version: "1.20" });
    const { spec } = await bed.make(JOBS, job("j", "true", { suspend: true, podFailurePolicy: { rules: [
        { action: "Ignore", onPodConditions: [{ type: "DisruptionTarget", status: "True" }] }] } }));
    assert.deepEqual([spec.completionMode, spec.suspend, spec.podFailurePolicy], [undefined, undefined, undefined]);
    assert.equal((await bed.get("/version")).body.minor, "20");
    await bed.tell("settings", { version: "1.25" });
    const newer = await bed.make(JOBS, job("k", "true", { suspend: true, podFailurePolicy: { rules: [] } }));
    assert.deepEqual([newer.spec.completionMode, newer.spec.suspend, newer.spec.podFailurePolicy],
        ["Indexed", true, undefined]);
});

test("The server's own rules hold without the contract too", async () => {
    await bed.tell("settings", { contract: false });
    assert.equal((await bed.post(JOBS, changed((body, pod) => { delete pod.restartPolicy; }))).status, 422);
    assert.equal((await bed.post(JOBS, changed((body) => { body.spec.foo = 1; }))).status, 201);
    assert.deepEqual(await bed.violations(), []);
});
