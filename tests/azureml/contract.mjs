// Checks what a client sends to Azure Machine Learning against the official client of the service: bodies against the
// serializer and the mappers of @azure/arm-machinelearning, methods and URLs against what that client sends itself for
// the same call.
import { createRequire } from "node:module";
import { readFileSync } from "node:fs";

import official from "@azure/arm-machinelearning";

import { AKS_CALLS } from "./aks_contract.mjs";
import { FILESERVER_CALLS } from "./fileserver_contract.mjs";
import { isObject, Mappers } from "./mappers.mjs";
import { STORAGE_CALLS } from "./storage.mjs";

// The mappers are of api-version 2022-10-01. What newer ones have in addition is in NEWER.
const mappers = new Mappers(await loadMappers(), knownValues);

async function loadMappers() {
    const main = createRequire(import.meta.url).resolve("@azure/arm-machinelearning");
    const file = main.replace(/dist\/index\.js$/, "dist-esm/src/models/mappers.js");
    // An ES module whose package does not say that it is one.
    const mappers = { ...(await import(`data:text/javascript;base64,${readFileSync(file, "base64")}`)) };
    // As shipped, inputs and outputs of jobs lose their members: these mappers are registered under the name of
    // another parent than is looked for (Azure/azure-sdk-for-js#29328).
    const all = { ...mappers.discriminators };
    for (const [name, mapper] of Object.entries(all)) {
        const found = /^Asset(Job(?:Input|Output)\..*)$/.exec(name);
        if (found) {
            all[found[1]] ??= mapper;
        }
    }
    return { ...mappers, discriminators: all };
}

// ---- members that the mappers do not know

const isText = (value) => typeof value === "string" && value !== "";
const isTexts = (value) => Array.isArray(value) && value.length > 0 && value.every(isText);
const isCount = (value) => Number.isInteger(value) && value > 0;
const isOneOf = (...values) => (value) => values.includes(value);

// since: the first stable api-version that has it; preview: the only one that has it.
const NEWER = [
    { path: "properties.queueSettings.jobTier", since: "2023-04-01",
        isRight: isOneOf("Null", "Spot", "Basic", "Standard", "Premium") },
    { path: "properties.queueSettings.priority", preview: "2023-04-01-preview", isRight: isOneOf(1, 2, 3) },
    { path: "properties.notificationSetting.emailOn", since: "2023-04-01", isRight: isTexts },
    { path: "properties.notificationSetting.emails", since: "2023-04-01", isRight: isTexts },
    { path: "properties.services.*.nodes.nodesValueType", since: "2023-04-01", isRight: isOneOf("All") },
    { path: "properties.resources.locations", preview: "2023-04-01-preview", isRight: isTexts },
    { path: "properties.resources.maxInstanceCount", preview: "2023-04-01-preview", isRight: isCount },
    { path: "properties.resources.dockerArgsList", since: "2025-12-01", isRight: isTexts },
    { path: "properties.outputs.*.assetName", since: "2023-10-01", isRight: isText },
];

const STABLE = ["2022-05-01", "2022-10-01", "2023-04-01", "2023-10-01", "2024-04-01", "2024-10-01", "2025-04-01",
    "2025-06-01", "2025-09-01", "2025-12-01", "2026-03-01", "2026-05-01"];
const PREVIEW = ["2023-04-01-preview", "2024-01-01-preview"];

// Takes the newer members out of a body, with the objects that become empty by that.
function takeNewer(body, version, problems) {
    for (const { path, since, preview, isRight } of NEWER) {
        take(body, path.split("."), "body", (value, where) => {
            if (preview ? version !== preview : version.slice(0, 10) < since) {
                problems.push(`${where} does not exist in api-version ${version}`);
            }
            if (!isRight(value)) {
                problems.push(`${where} has the wrong value ${JSON.stringify(value)}`);
            }
        });
    }
}

// Calls found for each value at a path and removes it. Returns whether the object is empty now, and was not before.
function take(object, [name, ...rest], where, found) {
    if (object === null || typeof object !== "object") {
        return false;
    }
    let removed = false;
    for (const key of name === "*" ? Object.keys(object) : [name].filter((n) => n in object)) {
        if (rest.length === 0) {
            found(object[key], `${where}.${key}`);
        }
        if (rest.length === 0 || take(object[key], rest, `${where}.${key}`, found)) {
            delete object[key];
            removed = true;
        }
    }
    return removed && Object.keys(object).length === 0;
}

// ---- bodies

// Members with a list of known values, which the serializer takes for any text.
const KNOWN = {
    jobType: "KnownJobType", jobInputType: "KnownJobInputType", jobOutputType: "KnownJobOutputType",
    distributionType: "KnownDistributionType", identityType: "KnownIdentityConfigurationType",
    jobLimitsType: "KnownJobLimitsType", datastoreType: "KnownDatastoreType", credentialsType: "KnownCredentialsType",
    secretsType: "KnownSecretsType", serviceDataAccessAuthIdentity: "KnownServiceDataAccessAuthIdentity",
    computeType: "KnownComputeType", vmPriority: "KnownVmPriority", osType: "KnownOperatingSystemType",
    remoteLoginPortPublicAccess: "KnownRemoteLoginPortPublicAccess", autoRebuild: "KnownAutoRebuildSetting",
    authType: "KnownConnectionAuthType", jobServiceType: ["SSH", "TensorBoard", "JupyterLab", "VSCode", "Custom"],
};
const INPUT_MODES = Object.values(official.KnownInputDeliveryMode);
const OUTPUT_MODES = Object.values(official.KnownOutputDeliveryMode);

function knownValues(name, parent) {
    if (name === "mode" && "jobInputType" in parent) {
        return INPUT_MODES;
    }
    if (name === "mode" && "jobOutputType" in parent) {
        return OUTPUT_MODES;
    }
    const known = KNOWN[name];
    return typeof known === "string" ? Object.values(official[known]) : known;
}

// Objects that must be there: the mappers say that of plain members only, the types of the package of these too.
const REQUIRED = { Datastore: ["credentials"] };

/** What is wrong with a body, as a list of texts; name is that of a mapper ("JobBase"), service that of the call. */
export function checkBody(name, body, version, service = SERVICE) {
    if (!isObject(name === "StorageAccountUpdateParameters" ? body : body?.properties)) {
        return ["the body is not JSON object with properties"];
    }
    if (service !== SERVICE) {
        const found = [];
        service.mappers.check(name, body, found);
        return found;
    }
    const missing = (REQUIRED[name] ?? []).filter((member) => !isObject(body.properties[member]));
    const problems = missing.map((member) => `body.properties.${member} is missing`);
    const known = structuredClone(body);
    takeNewer(known, version, problems);
    mappers.check(name, known, problems);
    return problems;
}

// ---- methods and URLs

const NAME = /^[a-zA-Z0-9][a-zA-Z0-9\-_]{0,254}$/;

/** Of a call: whose it is. There are the mappers of bodies, the api-versions, values that parameters may have, and the
 *  official client. */
const SERVICE = {
    mappers, versions: [...STABLE, ...PREVIEW],
    query: {
        underlyingResourceAction: Object.values(official.KnownUnderlyingResourceAction),
        listViewType: Object.values(official.KnownListViewType),
        jobType: Object.values(official.KnownJobType),
    },
    client: (credential, subscription, options) =>
        new official.AzureMachineLearningWorkspaces(credential, subscription, options),
};

const WORKSPACE = "/subscriptions/([^/]+)/resourceGroups/([^/]+)/providers/Microsoft.MachineLearningServices"
    + "/workspaces/([^/]+)";
const LOCATION = "/subscriptions/([^/]+)/providers/Microsoft.MachineLearningServices/locations/([^/]+)";

const JOB = { properties: { jobType: "Command", command: "x", environmentId: "x" } };
const DATASTORE = { properties: { datastoreType: "AzureBlob", credentials: { credentialsType: "None" } } };
const CLUSTER = { location: "x", properties: { computeType: "AmlCompute" } };
const CONNECTION = { properties: { authType: "None" } };

// Each call: what it is, how the official client is told to make it, the mapper of the body, a parameter that must be
// there.
const CALLS = [
    ["GET", WORKSPACE, "workspace get", (c, [, g, w]) => c.workspaces.get(g, w)],
    ["GET", "/subscriptions/([^/]+)/providers/Microsoft.MachineLearningServices/workspaces", "workspace list",
        (c) => c.workspaces.listBySubscription().next()],
    ["GET", `${WORKSPACE}/jobs`, "job list",
        (c, [, g, w], q) => c.jobs.list(g, w, { ...q, skip: q.$skip }).next()],
    ["GET", `${WORKSPACE}/jobs/([^/]+)`, "job get", (c, [, g, w, n]) => c.jobs.get(g, w, n)],
    ["PUT", `${WORKSPACE}/jobs/([^/]+)`, "job put", (c, [, g, w, n]) => c.jobs.createOrUpdate(g, w, n, JOB), "JobBase"],
    ["DELETE", `${WORKSPACE}/jobs/([^/]+)`, "job delete", (c, [, g, w, n]) => c.jobs.beginDelete(g, w, n)],
    ["POST", `${WORKSPACE}/jobs/([^/]+)/cancel`, "job cancel", (c, [, g, w, n]) => c.jobs.beginCancel(g, w, n)],
    ["GET", `${WORKSPACE}/datastores`, "datastore list",
        (c, [, g, w], q) => c.datastores.list(g, w,
            { ...q, skip: q.$skip, isDefault: q.isDefault && q.isDefault === "true",
            count: q.count && Number(q.count), names: q.names?.split(",") }).next()],
    ["GET", `${WORKSPACE}/datastores/([^/]+)`, "datastore get", (c, [, g, w, n]) => c.datastores.get(g, w, n)],
    ["PUT", `${WORKSPACE}/datastores/([^/]+)`, "datastore put",
        (c, [, g, w, n], q) => c.datastores.createOrUpdate(g, w, n, DATASTORE,
            { skipValidation: q.skipValidation && q.skipValidation === "true" }), "Datastore"],
    ["DELETE", `${WORKSPACE}/datastores/([^/]+)`, "datastore delete", (c, [, g, w, n]) => c.datastores.delete(g, w, n)],
    ["GET", `${WORKSPACE}/environments/([^/]+)/versions/([^/]+)`, "environment get",
        (c, [, g, w, n, v]) => c.environmentVersions.get(g, w, n, v)],
    ["PUT", `${WORKSPACE}/environments/([^/]+)/versions/([^/]+)`, "environment put",
        (c, [, g, w, n, v]) => c.environmentVersions.createOrUpdate(g, w, n, v, { properties: {} }),
        "EnvironmentVersion"],
    ["GET", `${WORKSPACE}/connections/([^/]+)`, "connection get",
        (c, [, g, w, n]) => c.workspaceConnections.get(g, w, n)],
    ["PUT", `${WORKSPACE}/connections/([^/]+)`, "connection put",
        (c, [, g, w, n]) => c.workspaceConnections.create(g, w, n, CONNECTION),
        "WorkspaceConnectionPropertiesV2BasicResource"],
    ["GET", `${WORKSPACE}/computes`, "compute list",
        (c, [, g, w], q) => c.computeOperations.list(g, w, { skip: q.$skip }).next()],
    ["GET", `${WORKSPACE}/computes/([^/]+)`, "compute get", (c, [, g, w, n]) => c.computeOperations.get(g, w, n)],
    ["PUT", `${WORKSPACE}/computes/([^/]+)`, "compute put",
        (c, [, g, w, n]) => c.computeOperations.beginCreateOrUpdate(g, w, n, CLUSTER), "ComputeResource"],
    ["PATCH", `${WORKSPACE}/computes/([^/]+)`, "compute patch",
        (c, [, g, w, n]) => c.computeOperations.beginUpdate(g, w, n, {}), "ClusterUpdateParameters"],
    ["DELETE", `${WORKSPACE}/computes/([^/]+)`, "compute delete",
        (c, [, g, w, n], q) => c.computeOperations.beginDelete(g, w, n, q.underlyingResourceAction)],
    ["POST", `${WORKSPACE}/computes/([^/]+)/listNodes`, "compute nodes",
        (c, [, g, w, n]) => c.computeOperations.listNodes(g, w, n).next()],
    ["GET", `${WORKSPACE}/computes/([^/]+)/listNodes`, "compute nodes", undefined, undefined, "$skip"], // a next link
    ["GET", `${LOCATION}/usages`, "usage list", (c, [, l]) => c.usages.list(l).next()],
    ["GET", `${LOCATION}/quotas`, "quota list", (c, [, l]) => c.quotas.list(l).next()],
    ["GET", `${LOCATION}/vmSizes`, "size list", (c, [, l]) => c.virtualMachineSizes.list(l)],
    // Not of the official package; their form is that of azure-ai-ml and of the documentation of the resource manager.
    ["GET", "/subscriptions/([^/]+)/resourceGroups/([^/]+)/providers/Microsoft.MachineLearningServices"
        + "/virtualclusters/([^/]+)", "virtual cluster get"],
    ["POST", "/providers/Microsoft.ResourceGraph/resources", "graph query"],
    ["GET", `${LOCATION}/computeOperationsStatus/([^/]+)`, "operation get"],
    ["GET", `${LOCATION}/mfeOperationResults/([^/]+)`, "cancel result"],
].map(([method, path, name, send, body, needs]) => ({ method, path: new RegExp(`^${path}$`), name, send, body,
    needs, rule: NAME, service: SERVICE })).concat(AKS_CALLS,
        STORAGE_CALLS, FILESERVER_CALLS);

// Options of "job list" of which later versions have more.
const NEWER_QUERY = { "job list": ["properties", "assetName", "scheduled", "scheduleId"] };

/** The call that a request is: {name, values, body}; undefined: none that is known. */
export function findCall(method, path) {
    for (const call of CALLS) {
        const found = method === call.method && call.path.exec(path);
        if (found) {
            return { ...call, values: found.slice(1).map(decodeURIComponent) };
        }
    }
    return undefined;
}

/** What the official client sends for a call: {method, url, body}. */
export async function officialRequest(call, query) {
    let sent;
    const httpClient = {
        sendRequest: async (request) => {
            sent ??= request;
            const body = call.name === "operation get" ? "{}" : JSON.stringify({ value: [], nodes: [] });
            return { request, status: 200, headers: request.headers, bodyAsText: body };
        },
    };
    const credential = { getToken: async () => ({ token: "t", expiresOnTimestamp: Date.now() + 3600e3 }) };
    const client = call.service.client(credential, call.values[0], { httpClient });
    await call.send(client, call.values, query);
    return { method: sent.method, url: new URL(sent.url), body: sent.body };
}

/** What is wrong with the method, the URL and the headers of a request for the resource manager. */
export async function checkRequest(call, url, headers, hasBody) {
    const problems = [];
    const query = Object.fromEntries(url.searchParams);
    const version = query["api-version"];
    if (!call.send) {
        return ["api-version", call.needs].filter((name) => name && !(name in query)).map(
            (name) => `the query has no ${name}`);
    }
    if (!call.service.versions.includes(version)) {
        problems.push(`api-version '${version}' does not exist`);
    }
    for (const [name, values] of Object.entries(call.service.query)) {
        if (name in query && !values.includes(query[name])) {
            problems.push(`${name}=${query[name]} is none of ${values.join(", ")}`);
        }
    }
    let expected;
    try {
        expected = await officialRequest(call, query);
    } catch (error) {
        return [...problems, error.message];
    }
    if (url.pathname !== expected.url.pathname) {
        problems.push(`the path is ${url.pathname}, it should be ${expected.url.pathname}`);
    }
    // Of names that are made with a PUT; the client does not check it, the service does.
    const made = call.values.slice(0, 4).at(-1);
    if (call.method === "PUT" && !call.rule.test(made)) {
        problems.push(`the name '${made}' is not valid`);
    }
    const newer = call.more ?? (version > "2022-10-01" ? NEWER_QUERY[call.name] ?? [] : []);
    for (const [name, value] of Object.entries(query)) {
        const should = expected.url.searchParams.get(name);
        if (name !== "api-version" && !newer.includes(name) && value !== should) {
            problems.push(`the query has ${name}=${value}, it should have ${should ?? "no such parameter"}`);
        }
    }
    if (hasBody !== (expected.body !== undefined && expected.body !== null)) {
        problems.push(hasBody ? "there is a body" : "there is no body");
    }
    return [...problems, ...checkHeaders(headers, hasBody)];
}

const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/;

function checkHeaders(headers, hasBody) {
    const problems = [];
    if (!headers.accept?.includes("application/json")) {
        problems.push("the header Accept does not ask for JSON");
    }
    if (!headers["user-agent"]) {
        problems.push("there is no header User-Agent");
    }
    if (!UUID.test(headers["x-ms-client-request-id"] ?? "")) {
        problems.push("x-ms-client-request-id is no uuid");
    }
    if (hasBody && !headers["content-type"]?.startsWith("application/json")) {
        problems.push("Content-Type is not that of JSON");
    }
    return problems;
}
