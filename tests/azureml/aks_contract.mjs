// What the official client of Azure Kubernetes Service, @azure/arm-containerservice, sends: see contract.mjs.
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";

import official from "@azure/arm-containerservice";

import { Mappers } from "./mappers.mjs";

const KNOWN = {
    mode: "KnownAgentPoolMode", osType: "KnownOSType", osSKU: "KnownOssku", osDiskType: "KnownOSDiskType",
    scaleSetPriority: "KnownScaleSetPriority", scaleSetEvictionPolicy: "KnownScaleSetEvictionPolicy",
    networkPlugin: "KnownNetworkPlugin", networkPluginMode: "KnownNetworkPluginMode", code: "KnownCode",
};
const IDENTITIES = ["SystemAssigned", "UserAssigned", "None"];

function knownValues(name, parent) {
    if (name === "type") {
        return "mode" in parent ? Object.values(official.KnownAgentPoolType) : IDENTITIES;
    }
    return KNOWN[name] && Object.values(official[KNOWN[name]]);
}

async function loadMappers() {
    const main = createRequire(import.meta.url).resolve("@azure/arm-containerservice");
    const file = main.replace(/dist\/index\.js$/, "dist-esm/src/models/mappers.js");
    // An ES module whose package does not say that it is one.
    return import(`data:text/javascript;base64,${readFileSync(file, "base64")}`);
}

/** As the service of contract.mjs. */
const SERVICE = {
    mappers: new Mappers(await loadMappers(), knownValues),
    versions: ["2023-11-01", "2024-01-01"],
    query: { format: Object.values(official.KnownFormat) },
    client: (credential, subscription, options) =>
        new official.ContainerServiceClient(credential, subscription, options),
};

const GROUP = "/subscriptions/([^/]+)/resourceGroups/([^/]+)";
const CLUSTER = `${GROUP}/providers/Microsoft.ContainerService/managedClusters/([^/]+)`;
const POOL = `${CLUSTER}/agentPools/([^/]+)`;
const POOL_NAME = /^[a-z][a-z0-9]{0,11}$/;
const CLUSTER_NAME = /^[a-zA-Z0-9]([-_a-zA-Z0-9]{0,61}[a-zA-Z0-9])?$/;

/** As CALLS of contract.mjs. */
export const AKS_CALLS = [
    ["GET", CLUSTER, "aks get", (c, [, g, n]) => c.managedClusters.get(g, n)],
    ["PUT", CLUSTER, "aks put", (c, [, g, n]) => c.managedClusters.beginCreateOrUpdate(g, n, { location: "x" }),
        "ManagedCluster", CLUSTER_NAME],
    ["POST", `${CLUSTER}/listClusterUserCredential`, "aks credentials",
        (c, [, g, n], q) => c.managedClusters.listClusterUserCredentials(g, n, q)],
    ["GET", `${CLUSTER}/agentPools`, "pool list", (c, [, g, n]) => c.agentPools.list(g, n).next(), undefined, undefined,
        ["$skip"]], // of a next link
    ["GET", POOL, "pool get", (c, [, g, n, p]) => c.agentPools.get(g, n, p)],
    ["PUT", POOL, "pool put", (c, [, g, n, p]) => c.agentPools.beginCreateOrUpdate(g, n, p, { count: 1 }), "AgentPool",
        POOL_NAME],
    ["DELETE", POOL, "pool delete", (c, [, g, n, p]) => c.agentPools.beginDelete(g, n, p)],
    // Not of the official package.
    ["GET", GROUP, "group get"],
    ["GET", "/subscriptions/([^/]+)/providers/Microsoft.ContainerService/locations/([^/]+)/operations/([^/]+)",
        "operation get"],
].map(([method, path, name, send, body, rule, more]) => ({ method, path: new RegExp(`^${path}$`), name, send, body,
    rule, more, service: SERVICE }));
