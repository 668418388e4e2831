// The double, as the official client and plain requests see it.
import assert from "node:assert/strict";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, beforeEach, test } from "node:test";

import official from "@azure/arm-machinelearning";
import { createHttpHeaders } from "@azure/core-rest-pipeline";

import { BASE, CLUSTER, DATASTORE, ENVIRONMENT, JOB, SCALE } from "./good.mjs";
import { Double } from "./server.mjs";

const SUBSCRIPTION = "00000000-0000-0000-0000-00000000000a";
const ENVIRONMENT_ID = `${BASE}/environments/act-0123456789abcdef/versions/1`;
const TENANT = "72f988bf-0000-0000-0000-000000000001";
let double, links, folder, token, client;

before(async () => {
    folder = await mkdtemp(join(tmpdir(), "act-azureml-"));
    double = new Double({ folder, stateMs: 1, logMs: 10 });
    links = await double.start();
});

after(async () => {
    await double.stop();
    await rm(folder, { recursive: true });
});

beforeEach(async () => {
    await admin("reset");
    token = (await login()).body.access_token;
    const credential = { getToken: async () => ({ token, expiresOnTimestamp: Date.now() + 3600e3 }) };
    client = new official.AzureMachineLearningWorkspaces(credential, SUBSCRIPTION,
        { httpClient: { sendRequest: forward } });
});

const CLOUD = "https://management.azure.com";

/** What the official client sends to the public cloud, sent to the double: it gives no token to plain http. */
async function forward(request) {
    const headers = Object.fromEntries([...request.headers].filter(([name]) => name !== "accept-encoding"));
    const answer = await fetch(request.url.replace(CLOUD, links.arm),
        { method: request.method, headers, body: request.body });
    const received = [...answer.headers].map(([name, value]) => [name, value.replaceAll(links.arm, CLOUD)]);
    return { request, status: answer.status, headers: createHttpHeaders(Object.fromEntries(received)),
        bodyAsText: (await answer.text()).replaceAll(links.arm, CLOUD) };
}

async function send(method, url, { body, headers = {} } = {}) {
    const answer = await fetch(url, { method, body, headers });
    const text = await answer.text();
    return { status: answer.status, headers: answer.headers, text,
        get body() { return JSON.parse(text); } };
}

const admin = async (what, body) => (await send("POST", `${links.admin}/${what}`,
    { body: body && JSON.stringify(body) })).body;

function login(form = {}) {
    return send("POST", `${links.login}/${form.tenant ?? TENANT}/oauth2/v2.0/token`, {
        body: new URLSearchParams({ grant_type: "client_credentials", client_id: "22222222-0000-0000-0000-000000000001",
            client_secret: "the~secret.of_tests", scope: "https://management.azure.com/.default", ...form }) });
}

function call(method, path, body, more = {}) {
    return send(method, path.startsWith("http") ? path : `${links.arm}${path}`, { body: body && JSON.stringify(body),
        headers: { authorization: `Bearer ${token}`, accept: "application/json", "user-agent": "act",
            "x-ms-client-request-id": "01234567-89ab-cdef-0123-456789abcdef",
            ...(body && { "content-type": "application/json" }),
            ...more } });
}

const V = "?api-version=2024-10-01";
const HISTORY = () => `${links.api}/history/v1.0${BASE}`;
const violations = async () => (await admin("look")).violations;

async function collect(pages) {
    const found = [];
    for await (const item of pages) {
        found.push(item);
    }
    return found;
}

function plainJob(command, more = {}) {
    return { properties: { jobType: "Command", command, environmentId: ENVIRONMENT_ID, experimentName: "exp",
        computeId: `${BASE}/computes/gpu`, ...more } };
}

async function ended(name) {
    for (;;) {
        const { body } = await call("GET", `${HISTORY()}/runs/${name}/details`);
        if (["Completed", "Failed", "Canceled"].includes(body.status)) {
            return body;
        }
    }
}

async function putEnvironment(image = "debian:12") {
    const body = { properties: { ...ENVIRONMENT.properties, image } };
    assert.equal((await call("PUT", `${ENVIRONMENT_ID}${V}`, body)).status, 201);
}

// ---- logins

test("a token for a secret, and what is refused", async () => {
    assert.equal((await login()).status, 200);
    assert.equal((await login({ client_secret: "x" })).body.error, "invalid_client");
    assert.equal((await login({ client_id: "x" })).body.error, "unauthorized_client");
    assert.match((await login({ tenant: "other" })).body.error_description, /^AADSTS90002: .*other/);
    const assertion = { client_assertion: "the-assertion",
        client_assertion_type: "urn:ietf:params:oauth:client-assertion-type:jwt-bearer" };
    assert.equal((await login(assertion)).status, 200);
    assert.equal((await login({ ...assertion, client_assertion: "x" })).status, 401);
});

test("a device code", async () => {
    const form = { client_id: "x", scope: "https://management.azure.com/.default offline_access" };
    const started = await send("POST", `${links.login}/organizations/oauth2/v2.0/devicecode`,
        { body: new URLSearchParams(form) });
    const poll = { grant_type: "urn:ietf:params:oauth:grant-type:device_code", device_code: started.body.device_code };
    assert.equal((await login(poll)).body.error, "authorization_pending");
    const { refresh_token } = (await login(poll)).body;
    assert.equal((await login({ grant_type: "refresh_token", refresh_token })).status, 200);
});

test("a token that is missing, false, over, revoked, or for something else", async () => {
    const status = async (value) => {
        token = value;
        const answer = await call("GET", `${BASE}${V}`);
        return `${answer.status} ${answer.status === 200 ? "" : answer.body.error.code}`.trim();
    };
    const good = token;
    assert.equal(await status(good), "200");
    assert.equal(await status(good.slice(0, -2)), "401 InvalidAuthenticationToken");
    assert.equal(await status((await login({ scope: "https://ml.azure.com/.default" })).body.access_token),
        "401 InvalidAuthenticationTokenAudience");
    assert.equal(await status((await login({ tenant: "72f988bf-0000-0000-0000-000000000002" })).body.access_token),
        "401 InvalidAuthenticationTokenTenant");
    await admin("settings", { clock: 3601e3 });
    assert.equal(await status(good), "401 ExpiredAuthenticationToken");
    await admin("settings", { clock: 0 });
    await admin("revoke");
    assert.equal(await status(good), "401 ExpiredAuthenticationToken");
});

// ---- the official client

test("the official client: workspace, datastores, environments", async () => {
    assert.equal((await client.workspaces.get("rg", "ws")).discoveryUrl, `${links.api}/discovery`);
    await assert.rejects(client.workspaces.get("rg", "none"), /was not found/);
    await client.datastores.createOrUpdate("rg", "ws", "act_ds", DATASTORE);
    const { properties } = await client.datastores.get("rg", "ws", "act_ds");
    assert.equal(properties.accountName, "myacct");
    assert.equal(properties.credentials.secrets, undefined);
    await assert.rejects(client.environmentVersions.get("rg", "ws", "e", "1"), { statusCode: 404, code: "UserError" });
    await client.environmentVersions.createOrUpdate("rg", "ws", "e", "1", ENVIRONMENT);
    assert.equal((await client.environmentVersions.get("rg", "ws", "e", "1")).properties.image, "debian:12");
    assert.deepEqual(await violations(), []);
});

test("the official client: pages of jobs", async () => {
    await admin("settings", { pageSize: 3 });
    const names = await admin("seed", { count: 8 });
    const jobs = await collect(client.jobs.list("rg", "ws", { tag: "act" }));
    assert.deepEqual(jobs.map((job) => job.name), names.reverse());
    assert.deepEqual(await collect(client.jobs.list("rg", "ws", { tag: "none" })), []);
    assert.deepEqual(await violations(), []);
});

test("the official client: a job is cancelled", async () => {
    await putEnvironment();
    await admin("hold", { status: "Queued" });
    const job = await client.jobs.createOrUpdate("rg", "ws", "run_1", plainJob("true"));
    assert.equal(job.properties.tags.act, undefined);
    await client.jobs.beginCancel("rg", "ws", "run_1");
    assert.equal((await ended("run_1")).status, "Canceled");
    assert.deepEqual(await violations(), []);
});

test("a cancel as the service answers it: 'null', a link that says 202 until it is done, a refusal of what has ended",
    async () => {
    await putEnvironment();
    await admin("hold", { status: "Queued" });
    await call("PUT", `${BASE}/jobs/run_1${V}`, plainJob("true"));
    const cancelled = await call("POST", `${BASE}/jobs/run_1/cancel${V}`);
    assert.deepEqual([cancelled.status, cancelled.text], [202, "null"]);
    await ended("run_1");
    const done = await call("GET", cancelled.headers.get("location"));
    assert.deepEqual([done.status, done.text], [200, ""]);
    const again = await call("POST", `${BASE}/jobs/run_1/cancel${V}`);
    assert.equal(again.status, 400);
    assert.deepEqual(again.body.error.additionalInfo.map(({ type }) => type),
        ["ComponentName", "Correlation", "Environment", "Location", "Time", "InnerError"]);
    assert.deepEqual(await violations(), []);
});

test("the official client: clusters and their long operations", async () => {
    const { computeOperations: computes } = client;
    const made = await computes.beginCreateOrUpdateAndWait("rg", "ws", "small", CLUSTER, { updateIntervalInMs: 1 });
    assert.equal(made.properties.provisioningState, "Succeeded");
    const patch = { properties: SCALE.properties.properties };
    await computes.beginUpdateAndWait("rg", "ws", "small", patch, { updateIntervalInMs: 1 });
    assert.equal((await computes.get("rg", "ws", "small")).properties.properties.scaleSettings.maxNodeCount, 8);
    assert.equal((await collect(computes.list("rg", "ws"))).length, 3);
    assert.deepEqual(await collect(computes.listNodes("rg", "ws", "small")), []);
    await computes.beginDeleteAndWait("rg", "ws", "small", "Delete", { updateIntervalInMs: 1 });
    await assert.rejects(computes.get("rg", "ws", "small"), { statusCode: 404 });
    await assert.rejects(computes.listNodes("rg", "ws", "itpgpu").next(), { statusCode: 400 });
    assert.deepEqual(await violations(), []);
});

test("the official client: quotas, usages, sizes", async () => {
    assert.equal((await collect(client.usages.list("eastus")))[0].currentValue, 192);
    assert.equal((await collect(client.quotas.list("eastus")))[0].limit, 960);
    assert.equal((await client.virtualMachineSizes.list("eastus")).value[0].gpus, 8);
    assert.deepEqual(await violations(), []);
});

// ---- jobs

test("a wrong body is refused and kept", async () => {
    await putEnvironment();
    const wrong = plainJob("true");
    wrong.properties.enviromentVariables = {};
    const answer = await call("PUT", `${BASE}/jobs/run_1${V}`, wrong);
    assert.equal(answer.status, 400);
    assert.match(answer.body.error.details[0].message, /enviromentVariables/);
    assert.equal((await violations()).length, 1);
});

test("a job that runs as its user", async () => {
    await putEnvironment();
    const body = plainJob("true", { identity: { identityType: "UserIdentity" } });
    assert.equal((await call("PUT", `${BASE}/jobs/run_1${V}`, body)).status, 400);
    assert.match((await violations())[0], /x-azureml-token/);
    const { access_token } = (await login({ scope: "https://ml.azure.com/.default" })).body;
    assert.equal((await call("PUT", `${BASE}/jobs/run_1${V}`, body, { "x-azureml-token": access_token })).status, 201);
});

test("what a job needs must be there", async () => {
    assert.match((await call("PUT", `${BASE}/jobs/run_1${V}`, plainJob("true"))).body.error.message, /environment/);
    await putEnvironment();
    const compute = { computeId: `${BASE}/computes/none` };
    assert.match((await call("PUT", `${BASE}/jobs/run_1${V}`, plainJob("true", compute))).body.error.message,
        /none not found/);
    const nodes = { resources: { instanceCount: 5 } };
    assert.match((await call("PUT", `${BASE}/jobs/run_1${V}`, plainJob("true", nodes))).body.error.message, /maximum/);
    assert.deepEqual(await violations(), []);
});

test("the same name twice is one job, another job is a conflict", async () => {
    await putEnvironment();
    assert.equal((await call("PUT", `${BASE}/jobs/run_1${V}`, plainJob("true"))).status, 201);
    assert.equal((await call("PUT", `${BASE}/jobs/run_1${V}`, plainJob("true"))).status, 200);
    assert.equal((await call("PUT", `${BASE}/jobs/run_1${V}`, plainJob("false"))).status, 409);
    assert.equal((await admin("jobs")).length, 1);
});

test("runs of an experiment", async () => {
    await admin("seed", { count: 5, properties: { "act.cluster": "a" } });
    await admin("seed", { count: 2, status: "Failed" });
    const query = async (body, experiment = "exp") =>
        call("POST", `${HISTORY()}/experiments/${experiment}/runs:query`, body);
    const first = (await query({ top: 4, orderBy: "createdUtc desc" })).body;
    const second = (await query({ top: 4, continuationToken: first.continuationToken })).body;
    assert.deepEqual([first.value.length, second.value.length, second.continuationToken], [4, 3, null]);
    const found = (await query({ filter:
        "(status eq 'Failed' or status eq 'Running') and not properties/act.cluster eq 'a'" }));
    assert.equal(found.body.value.length, 2);
    assert.equal((await query({ filter: "status is 'Failed'" })).status, 400);
    assert.equal((await query({}, "none")).body.error.innerError.innerError.code, "ExperimentNotFound");
});

// ---- what goes wrong on command

for (const [header, form] of [["Retry-After", /^1$/], ["retry-after-ms", /^300$/], ["x-ms-retry-after-ms", /^300$/],
    ["date", /GMT$/]]) {
    test(`throttling with ${header}`, async () => {
        await admin("faults", [{ match: "^arm ", throttle: { header, ms: 300 } }]);
        const answer = await call("GET", `${BASE}${V}`);
        assert.equal(answer.status, 429);
        assert.match(answer.headers.get(header === "date" ? "retry-after" : header), form);
        assert.equal((await call("GET", `${BASE}${V}`)).status, 200);
        assert.match((await violations())[0], /before the time/);
    });
}

test("connections that break", async () => {
    await putEnvironment();
    await admin("faults", [{ method: "PUT", cut: "before" }]);
    await assert.rejects(call("PUT", `${BASE}/jobs/run_1${V}`, plainJob("true")));
    assert.equal((await admin("jobs")).length, 0);
    await admin("faults", [{ method: "PUT", cut: "after" }]);
    await assert.rejects(call("PUT", `${BASE}/jobs/run_1${V}`, plainJob("true")));
    assert.equal((await admin("jobs")).length, 1);
    await admin("faults", [{ cut: "within" }]);
    await assert.rejects(call("GET", `${BASE}/jobs${V}`));
});

test("a link that leads to another host", async () => {
    await admin("settings", { pageSize: 1, nextLinkBase: links.elsewhere });
    await admin("seed", { count: 2 });
    const { body } = await call("GET", `${BASE}/jobs${V}`);
    assert.ok(body.nextLink.startsWith(links.elsewhere));
    await call("GET", body.nextLink);
    assert.match((await violations())[0], /another host/);
});
