// What the resource manager answers for clusters of Azure Kubernetes Service and their node pools.
import { randomUUID } from "node:crypto";

import { Refusal } from "./errors.mjs";

const MOST = 100; // nodes of a pool that the quota has room for

/** What a pool has that nobody said anything of. */
const DEFAULTS = { count: 1, osDiskSizeGB: 128, osDiskType: "Managed", kubeletDiskType: "OS", maxPods: 250,
    type: "VirtualMachineScaleSets", osType: "Linux", osSKU: "Ubuntu", mode: "User", enableNodePublicIP: false,
    enableAutoScaling: false, orchestratorVersion: "1.28.5", upgradeSettings: { maxSurge: "10%" }, enableFIPS: false,
    scaleDownMode: "Delete" };
/** What only the service says. */
const SHOWN = { provisioningState: "Succeeded", powerState: { code: "Running" },
    currentOrchestratorVersion: "1.28.5", nodeImageVersion: "AKSUbuntu-2204gen2containerd-202401.17.1" };

/** A cluster as the world keeps it, with its pools. */
export function newCluster(name, location, { pools, kubeconfig, ...properties }) {
    return { name, location, properties: { provisioningState: "Succeeded",
        fqdn: `${name}-dns.hcp.${location}.azmk8s.io`, ...properties },
        kubeconfig: kubeconfig ?? kubeconfigOf(name, location), busy: undefined,
    pools: new Map(Object.entries(pools).map(([pool, given]) => [pool, newPool(given)])) };
}

const newPool = (given) => ({ ...DEFAULTS, ...SHOWN, ...given });

function kubeconfigOf(name, location) {
    return `apiVersion: v1
clusters:
- cluster:
    certificate-authority-data: LS0tLS1CRUdJTiBDRVJUSUZJQ0FURS0tLS0tCg==
    server: https://${name}-dns.hcp.${location}.azmk8s.io:443
  name: ${name}
contexts:
- context:
    cluster: ${name}
    user: clusterUser_rg_${name}
  name: ${name}
current-context: ${name}
kind: Config
preferences: {}
users:
- name: clusterUser_rg_${name}
  user:
    exec:
      apiVersion: client.authentication.k8s.io/v1beta1
      args:
      - get-token
      - --server-id
      - 6dae42f8-4368-4678-94ff-3960e28e3630
      command: kubelogin
      env: null
      provideClusterInfo: false
`;
}

function clusterOf(arm, call) {
    const [, group, name] = call.values;
    const found = arm.world.managedClusters.get(name);
    if (!found) {
        throw new Refusal(404, "ResourceNotFound", `The Resource 'Microsoft.ContainerService/managedClusters/${name}' `
            + `under resource group '${group}' was not found. For more details please go to `
            + "https://aka.ms/ARMResourceNotFoundFix");
    }
    return found;
}

function poolOf(arm, call) {
    const cluster = clusterOf(arm, call);
    const pool = cluster.pools.get(call.values[3]);
    if (!pool) {
        throw new Refusal(404, "NotFound", `Could not find the agent pool ${call.values[3]} in the cluster `
            + `${cluster.name}.`);
    }
    return { cluster, pool };
}

const idOf = (arm, cluster) => {
    const { subscription, group } = arm.world.settings;
    return `/subscriptions/${subscription}/resourcegroups/${group}/providers/Microsoft.ContainerService`
        + `/managedClusters/${cluster.name}`;
};

function poolJson(arm, cluster, name) {
    return { id: `${idOf(arm, cluster)}/agentPools/${name}`, name,
        type: "Microsoft.ContainerService/managedClusters/agentPools", properties: cluster.pools.get(name) };
}

function clusterJson(arm, cluster) {
    const agentPoolProfiles = [...cluster.pools].map(([name, pool]) => ({ name, ...pool }));
    return { id: idOf(arm, cluster), name: cluster.name, location: cluster.location,
        type: "Microsoft.ContainerService/ManagedClusters", identity: { type: "SystemAssigned",
            principalId: randomUUID() }, sku: { name: "Base", tier: "Free" },
        properties: { ...cluster.properties, agentPoolProfiles } };
}

const bad = (message) => new Refusal(400, "InvalidParameter", message);

function checkPool(name, { count = 1, mode = "User", enableAutoScaling, minCount, maxCount, vmSize }) {
    const least = mode === "System" ? 1 : 0;
    if (!vmSize) {
        throw bad(`Required parameter agentPoolProfile.vmSize of '${name}' is missing (null).`);
    }
    if ((enableAutoScaling ? minCount : count) < least) {
        throw bad(`AgentPoolProfile count of '${name}' must be at least ${least}.`);
    }
    if (enableAutoScaling ? !(minCount <= maxCount) : minCount !== undefined || maxCount !== undefined) {
        throw bad(`The minCount and maxCount of '${name}' do not go with enableAutoScaling ${enableAutoScaling}.`);
    }
    if (Math.max(count, maxCount ?? 0) > MOST) {
        throw new Refusal(400, "ErrCode_InsufficientVCPUQuota", "Insufficient vcpu quota requested 9696, remaining 96 "
            + "for family standardNDASv4Family for region eastus.");
    }
}

/** One change at a time. */
function begin(cluster, what) {
    if (cluster.busy) {
        throw new Refusal(409, "OperationNotAllowed", "Operation is not allowed: Another operation "
            + `(${cluster.busy}) is in progress, please wait for it to finish before starting a new operation. See `
            + "https://aka.ms/aks-pending-operation for more details");
    }
    cluster.busy = what;
}

function operation(arm, status, body, cluster, query, { apply, fail }) {
    const over = (then) => () => {
        cluster.busy = undefined;
        then();
    };
    return arm.operation(status, body, over(apply), query, "Microsoft.ContainerService", "operations", over(fail));
}

function putCluster(names, query, body, call) {
    const [,, name] = call.values;
    const { agentPoolProfiles, ...properties } = body.properties;
    if (!agentPoolProfiles?.some((pool) => pool.mode === "System")) {
        throw bad("Must define at least one system pool.");
    }
    agentPoolProfiles.forEach((pool) => checkPool(pool.name, pool));
    const creating = { provisioningState: "Creating" };
    const pools = Object.fromEntries(agentPoolProfiles.map(({ name: n, ...pool }) => [n, { ...pool, ...creating }]));
    const cluster = newCluster(name, body.location, { ...properties, ...creating, pools });
    begin(cluster, "Creating");
    this.world.managedClusters.set(name, cluster);
    const end = (provisioningState) => () => {
        Object.assign(cluster.properties, { provisioningState });
        cluster.pools.forEach((pool) => Object.assign(pool, { provisioningState }));
    };
    return operation(this, 201, clusterJson(this, cluster), cluster, query,
        { apply: end("Succeeded"), fail: end("Failed") });
}

function putPool([name], query, body, call) {
    const cluster = clusterOf(this, call);
    const had = cluster.pools.get(name);
    checkPool(name, body.properties);
    for (const fixed of ["vmSize", "osType"]) {
        if (had && (body.properties[fixed] ?? DEFAULTS[fixed]) !== had[fixed]) {
            throw new Refusal(400, "PropertyChangeNotAllowed",
                `Changing property 'properties.${fixed}' is not allowed.`);
        }
    }
    begin(cluster, had ? "Updating" : "Creating");
    const pool = newPool({ ...body.properties, provisioningState: cluster.busy });
    if (pool.enableAutoScaling && had?.enableAutoScaling === true) {
        pool.count = had.count;
    }
    cluster.pools.set(name, pool);
    return operation(this, had ? 200 : 201, poolJson(this, cluster, name), cluster, query, {
        apply: () => Object.assign(pool, { provisioningState: "Succeeded" }),
        fail: () => Object.assign(pool, { provisioningState: "Failed" }) });
}

function deletePool([name], query, body, call) {
    const { cluster, pool } = poolOf(this, call);
    const others = [...cluster.pools].filter(([n, { mode }]) => n !== name && mode === "System");
    if (pool.mode === "System" && others.length === 0) {
        throw new Refusal(400, "OperationNotAllowed", "There has to be at least one system agent pool.");
    }
    begin(cluster, "Deleting");
    pool.provisioningState = "Deleting";
    return operation(this, 202, undefined, cluster, query,
        { apply: () => cluster.pools.delete(name), fail: () => Object.assign(pool, { provisioningState: "Failed" }) });
}

/** As HANDLERS of arm.mjs. */
export const AKS_HANDLERS = {
    "aks get"(names, query, body, call) { return { status: 200, body: clusterJson(this, clusterOf(this, call)) }; },
    "aks put": putCluster,
    "aks credentials"(names, query, body, call) {
        const value = Buffer.from(clusterOf(this, call).kubeconfig).toString("base64");
        return { status: 200, body: { kubeconfigs: [{ name: "clusterUser", value }] } };
    },
    "pool list"(names, query, body, call) {
        const cluster = clusterOf(this, call);
        return this.page([...cluster.pools.keys()].map((name) => poolJson(this, cluster, name)), query, call);
    },
    "pool get"([name], query, body, call) {
        return { status: 200, body: poolJson(this, poolOf(this, call).cluster, name) };
    },
    "pool put": putPool,
    "pool delete": deletePool,
    "group get"() {
        const { subscription, group, location } = this.world.settings;
        return { status: 200, body: { id: `/subscriptions/${subscription}/resourceGroups/${group}`, name: group,
            location, properties: { provisioningState: "Succeeded" } } };
    },
};
