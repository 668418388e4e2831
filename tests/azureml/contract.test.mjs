// The contract lets pass what is right, and nothing that has one thing wrong.
import assert from "node:assert/strict";
import test from "node:test";

import { checkBody, checkRequest, findCall } from "./contract.mjs";
import {
    AKS, BASE, CLUSTER, DATASTORE, ENVIRONMENT, FILE_ACCOUNT, FILE_SHARE, FILES, JOB, KUBERNETES, POOL, REQUESTS, SCALE,
    SHARE,
} from "./good.mjs";

const HEADERS = { accept: "application/json", "user-agent": "act", "content-type": "application/json",
    "x-ms-client-request-id": "01234567-89ab-cdef-0123-456789abcdef" };

async function problemsOf(method, target, body, headers = HEADERS) {
    const url = new URL(target, "http://127.0.0.1");
    const call = findCall(method, url.pathname);
    if (!call) {
        return ["there is no such call"];
    }
    const found = await checkRequest(call, url, headers, body !== undefined);
    return body && call.body ? [...found, ...checkBody(call.body, body, url.searchParams.get("api-version"),
        call.service)] : found;
}

for (const [method, target, body] of REQUESTS) {
    test(`right: ${method} ${target.replace(BASE, "")}`, async () => {
        assert.deepEqual(await problemsOf(method, target, body), []);
    });
}

// ---- bodies with one thing wrong

const at = (body, path) => path.reduce((object, name) => object[name], body);
const set = (...path) => (value) => (body) => { at(body, path.slice(0, -1))[path.at(-1)] = value; };
const remove = (...path) => (body) => { delete at(body, path.slice(0, -1))[path.at(-1)]; };
const rename = (...path) => (name) => (body) => {
    const parent = at(body, path.slice(0, -1));
    parent[name] = parent[path.at(-1)];
    delete parent[path.at(-1)];
};
const p = (...path) => ["properties", ...path];

const WRONG = [
    ["JobBase", JOB, "no environment", remove(...p("environmentId"))],
    ["JobBase", JOB, "no command", remove(...p("command"))],
    ["JobBase", JOB, "an empty command", set(...p("command"))("")],
    ["JobBase", JOB, "a command without a letter", set(...p("command"))("$$$")],
    ["JobBase", JOB, "a command that is a list", set(...p("command"))(["a"])],
    ["JobBase", JOB, "no properties", remove("properties")],
    ["JobBase", JOB, "a member of an older service", rename(...p("computeId"))("compute")],
    ["JobBase", JOB, "a member with a typing error", rename(...p("environmentVariables"))("enviromentVariables")],
    ["JobBase", JOB, "a wrong name of the process count",
        rename(...p("distribution", "processCountPerInstance"))("processCountPerNode")],
    ["JobBase", JOB, "a process count that is a text", set(...p("distribution", "processCountPerInstance"))("2")],
    ["JobBase", JOB, "a distribution in lower case", set(...p("distribution", "distributionType"))("mpi")],
    ["JobBase", JOB, "a distribution without its kind", remove(...p("distribution", "distributionType"))],
    ["JobBase", JOB, "a node count that is a text", set(...p("resources", "instanceCount"))("2")],
    ["JobBase", JOB, "shared memory without a unit", set(...p("resources", "shmSize"))("512")],
    ["JobBase", JOB, "an unknown member of resources", set(...p("resources", "nodeCount"))(2)],
    ["JobBase", JOB, "an unknown kind of job", set(...p("jobType"))("Comand")],
    ["JobBase", JOB, "a limit in seconds", set(...p("limits", "timeout"))("3600")],
    ["JobBase", JOB, "a limit of no kind", remove(...p("limits", "jobLimitsType"))],
    ["JobBase", JOB, "a variable that is a number", set(...p("environmentVariables", "NCCL_IB_DISABLE"))(0)],
    ["JobBase", JOB, "a tag that is true", set(...p("tags", "act"))(true)],
    ["JobBase", JOB, "a property that is an object", set(...p("properties", "act.cmd"))({})],
    ["JobBase", JOB, "a status", set(...p("status"))("Running")],
    ["JobBase", JOB, "an input without a URI", remove(...p("inputs", "agent", "uri"))],
    ["JobBase", JOB, "an input with a path", rename(...p("inputs", "agent", "uri"))("path")],
    ["JobBase", JOB, "an input of an unknown kind", set(...p("inputs", "agent", "jobInputType"))("uri_files")],
    ["JobBase", JOB, "an input with the kind of an output",
        rename(...p("inputs", "data", "jobInputType"))("jobOutputType")],
    ["JobBase", JOB, "an input in an unknown mode", set(...p("inputs", "data", "mode"))("ro_mount")],
    ["JobBase", JOB, "an output in the mode of an input", set(...p("outputs", "out", "mode"))("ReadOnlyMount")],
    ["JobBase", JOB, "a literal that is a number", set(...p("inputs", "lr", "value"))(0.01)],
    ["JobBase", JOB, "an unknown identity", set(...p("identity", "identityType"))("managed")],
    ["JobBase", JOB, "an unknown tier", set(...p("queueSettings", "jobTier"))("spot")],
    ["JobBase", JOB, "a priority in a version that has none", set(...p("queueSettings", "priority"))(3)],
    ["JobBase", JOB, "an unknown member of queueSettings", set(...p("queueSettings", "slaTier"))("Premium")],
    ["JobBase", JOB, "an unknown service", set(...p("services", "ssh", "jobServiceType"))("ssh")],
    ["Datastore", DATASTORE, "no credentials", remove(...p("credentials"))],
    ["Datastore", DATASTORE, "a key at the wrong place", set(...p("credentials", "key"))("a2V5")],
    ["Datastore", DATASTORE, "secrets of no kind", remove(...p("credentials", "secrets", "secretsType"))],
    ["Datastore", DATASTORE, "a tag that is a number", set(...p("tags", "act.credential"))(1)],
    ["Datastore", DATASTORE, "an unknown kind", set(...p("datastoreType"))("Blob")],
    ["Datastore", DATASTORE, "a wrong name of the container", rename(...p("containerName"))("container")],
    ["Datastore", SHARE, "no share", remove(...p("fileShareName"))],
    ["Datastore", SHARE, "no account", remove(...p("accountName"))],
    ["Datastore", SHARE, "a container", set(...p("containerName"))("data")],
    ["Datastore", SHARE, "a wrong name of the share", rename(...p("fileShareName"))("file_share")],
    ["Datastore", SHARE, "the kind of a container", set(...p("datastoreType"))("AzureBlob")],
    ["Datastore", SHARE, "no credentials", remove(...p("credentials"))],
    ["Datastore", SHARE, "a key that is a number", set(...p("credentials", "secrets", "key"))(1)],
    ["EnvironmentVersion", ENVIRONMENT, "a registry", set(...p("dockerRegistry"))({})],
    ["EnvironmentVersion", ENVIRONMENT, "an unknown system", set(...p("osType"))("linux")],
    ["ComputeResource", CLUSTER, "no kind", remove(...p("computeType"))],
    ["ComputeResource", CLUSTER, "no largest size", remove(...p("properties", "scaleSettings", "maxNodeCount"))],
    ["ComputeResource", CLUSTER, "an unknown priority", set(...p("properties", "vmPriority"))("Low")],
    ["ComputeResource", CLUSTER, "no user", remove(...p("properties", "userAccountCredentials", "adminUserName"))],
    ["ClusterUpdateParameters", SCALE, "properties only once",
        (body) => { body.properties = body.properties.properties; }],
    ["ClusterUpdateParameters", SCALE, "a size that is a text",
        set(...p("properties", "scaleSettings", "maxNodeCount"))("8")],
];

for (const [mapper, good, what, spoil] of WRONG) {
    test(`wrong: ${mapper} with ${what}`, () => {
        const body = structuredClone(good);
        spoil(body);
        assert.notDeepEqual(body, good);
        assert.notEqual(checkBody(mapper, body, "2024-10-01").length, 0);
    });
}

const WRONG_POOLS = [
    ["a count that is a text", set(...p("count"))("2")],
    ["a mode in lower case", set(...p("mode"))("user")],
    ["labels that are numbers", set(...p("nodeLabels", "n"))(3)],
    ["a taint that is an object", set(...p("nodeTaints"))([{ key: "sku" }])],
    ["a typing error", rename(...p("minCount"))("minCounts")],
    ["what only the service says", set(...p("provisioningState"))("Succeeded")],
    ["an unknown priority", set(...p("scaleSetPriority"))("Low")],
    ["no properties", remove("properties")],
];
for (const [what, spoil] of WRONG_POOLS) {
    test(`wrong: AgentPool with ${what}`, async () => {
        const body = structuredClone(POOL);
        spoil(body);
        assert.notEqual((await problemsOf("PUT", `${AKS}/agentPools/gpu?api-version=2024-01-01`, body)).length, 0);
    });
}

const WRONG_CLUSTERS = [
    ["no location", remove("location")],
    ["a pool without a name", remove(...p("agentPoolProfiles", 0, "name"))],
    ["a pool of a bad name", set(...p("agentPoolProfiles", 0, "name"))("GPU-pool")],
    ["an unknown network plugin", set(...p("networkProfile", "networkPlugin"))("calico")],
    ["an unknown identity", set("identity", "type")("System")],
    ["an unknown member", set(...p("nodePools"))([])],
];
for (const [what, spoil] of WRONG_CLUSTERS) {
    test(`wrong: ManagedCluster with ${what}`, async () => {
        const body = structuredClone(KUBERNETES);
        spoil(body);
        assert.notEqual((await problemsOf("PUT", `${AKS}?api-version=2024-01-01`, body)).length, 0);
    });
}

const WRONG_ACCOUNTS = [
    ["no kind", remove("kind")],
    ["an unknown kind", set("kind")("Filestorage")],
    ["an unknown SKU", set("sku", "name")("Premium")],
    ["an unknown member", set(...p("supportsHttpsTraffic"))(false)],
    ["what only the service says", set(...p("provisioningState"))("Succeeded")],
    ["a rule without a network", remove(...p("networkAcls", "virtualNetworkRules", 0, "id"))],
    ["an unknown action", set(...p("networkAcls", "defaultAction"))("deny")],
    ["a tag that is a number", set("tags", "n")(3)],
];
for (const [what, spoil] of WRONG_ACCOUNTS) {
    test(`wrong: StorageAccount with ${what}`, async () => {
        const body = structuredClone(FILE_ACCOUNT);
        spoil(body);
        assert.notEqual((await problemsOf("PUT", `${FILES}?api-version=2024-01-01`, body)).length, 0);
    });
}

const WRONG_SHARES = [
    ["a quota that is a text", set(...p("shareQuota"))("100")],
    ["an unknown protocol", set(...p("enabledProtocols"))("nfs")],
    ["an unknown squash", set(...p("rootSquash"))("None")],
    ["what only the service says", set(...p("shareUsageBytes"))(1)],
];
for (const [what, spoil] of WRONG_SHARES) {
    test(`wrong: FileShare with ${what}`, async () => {
        const body = structuredClone(FILE_SHARE);
        spoil(body);
        assert.notEqual((await problemsOf("PUT", `${FILES}/fileServices/default/shares/data?api-version=2024-01-01`,
            body)).length, 0);
    });
}

test("a member is known from the version on that has it", () => {
    assert.notEqual(checkBody("JobBase", JOB, "2022-10-01").length, 0);
    const body = structuredClone(JOB);
    body.properties.queueSettings.priority = 3;
    assert.deepEqual(checkBody("JobBase", body, "2023-04-01-preview"), []);
    body.properties.queueSettings.priority = "3";
    assert.notEqual(checkBody("JobBase", body, "2023-04-01-preview").length, 0);
});

// ---- methods, URLs and headers with one thing wrong

const V = "?api-version=2024-10-01";
const WRONG_REQUESTS = [
    ["GET", `${BASE}/computes/gpu/listNodes${V}`],
    ["POST", `${BASE}/jobs/run_1${V}`, JOB],
    ["GET", `${BASE}/job/run_1${V}`],
    ["GET", `${BASE.replace("resourceGroups", "resourcegroups")}/jobs/run_1${V}`],
    ["GET", `${BASE}/jobs/run_1/${V}`],
    ["GET", `${BASE}/jobs/run_1`],
    ["GET", `${BASE}/jobs/run_1?api-version=2024-10-02`],
    ["GET", `${BASE}/jobs/run_1?api_version=2024-10-01`],
    ["GET", `${BASE}/jobs${V}&$skipToken=abc`],
    ["GET", `${BASE}/jobs${V}&$filter=x`],
    ["GET", `${BASE}/jobs${V}&listViewType=all`],
    ["GET", `${BASE}/jobs${V}&jobType=command`],
    ["PUT", `${BASE}/jobs/run_1${V}`],
    ["PUT", `${BASE}/jobs/-run${V}`, JOB],
    ["GET", `${BASE}/environments/act-0123456789abcdef${V}`],
    ["DELETE", `${BASE}/computes/gpu${V}`],
    ["DELETE", `${BASE}/computes/gpu${V}&underlyingResourceAction=delete`],
    ["POST", `${BASE}/computes/gpu/listNodes${V}`, {}],
    ["POST", `${BASE}/jobs/run_1/cancel${V}`, {}],
    ["PUT", `${FILES}s-of-us?api-version=2024-01-01`, FILE_ACCOUNT],
    ["PUT", `${FILES}/fileServices/default/shares/Data?api-version=2024-01-01`, FILE_SHARE],
    ["GET", `${FILES}/fileServices/default/shares/data?api-version=2024-01-01&expand=stats`],
    ["GET", `${FILES}?api-version=2024-02-01`],
    ["GET", `${AKS}${V}`],
    ["GET", `${AKS}/agentpools?api-version=2024-01-01`],
    ["PUT", `${AKS}/agentPools/GPU?api-version=2024-01-01`, POOL],
    ["PUT", `${AKS}/agentPools/abcdefghijklm?api-version=2024-01-01`, POOL],
    ["POST", `${AKS}/listClusterUserCredential?api-version=2024-01-01&format=yaml`],
    ["GET", `${AKS}/listClusterUserCredential?api-version=2024-01-01`],
];

for (const [method, target, body] of WRONG_REQUESTS) {
    test(`wrong: ${method} ${target.replace(BASE, "")}${body ? " with a body" : ""}`, async () => {
        assert.notEqual((await problemsOf(method, target, body)).length, 0);
    });
}

for (const [name, value] of [["accept", "*/*"], ["user-agent", ""], ["content-type", "text/plain"],
    ["x-ms-client-request-id", "1"]]) {
    test(`wrong: the header ${name}`, async () => {
        const [method, target, body] = REQUESTS.find(([m]) => m === "PUT");
        assert.notEqual((await problemsOf(method, target, body, { ...HEADERS, [name]: value })).length, 0);
    });
}
