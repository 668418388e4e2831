// What the double knows: its settings, the workspace's objects, what was asked of it, what shall go wrong.
import { randomUUID } from "node:crypto";
import { EventEmitter, once } from "node:events";

import { newCluster } from "./aks.mjs";
import { Container } from "./blobs.mjs";
import { rootError } from "./errors.mjs";
import { Login } from "./login.mjs";
import { isFinal, nodeAddress, Runner } from "./runner.mjs";

const DEFAULTS = {
    tenant: "72f988bf-0000-0000-0000-000000000001", subscription: "00000000-0000-0000-0000-00000000000a",
    tenants: ["72f988bf-0000-0000-0000-000000000001", "72f988bf-0000-0000-0000-000000000002"],
    group: "rg", workspace: "ws", location: "eastus",
    clientId: "22222222-0000-0000-0000-000000000001", secret: "the~secret.of_tests", federated: "the-assertion",
    msiHeader: "msi-header",
    accounts: {}, // name: URL, of accounts that are not in Azure
    logs: undefined, // {account, key, container}: where the workspace keeps its logs
    folder: undefined, // where jobs work
    stateMs: 20, // how long a job is in each state
    graceMs: 30000, // between being asked to end and being killed
    logMs: 100, // how often logs are brought to the container
    runtime: "new", // "old": the names of logs of the old one
    ignoreFilters: false, // queries for runs get all of them
    limited: false, // jobs wait while the nodes of their cluster are taken
    retryFolders: false, // an attempt that is not the first has its logs in a folder of its own
    pageSize: 50, maxTop: 100,
    provisioned: {}, // what a new cluster says of itself in the end: {provisioningState, provisioningErrors}
    operationPolls: 2, // how often a long operation says that it goes on
    nextLinkBase: undefined, // the base of nextLink, where it shall lead elsewhere
    computes: {
        gpu: { computeType: "AmlCompute", vmSize: "STANDARD_ND96ASR_V4", maxNodeCount: 4 },
        itpgpu: { computeType: "Kubernetes" },
    },
    // of Azure Kubernetes Service: {name: {pools, kubeconfig, ...properties}}
    managedClusters: { kube: { pools: {
        system: { mode: "System", vmSize: "Standard_D2s_v5", count: 1 },
        gpu: { mode: "User", vmSize: "Standard_ND96asr_v4", count: 2, nodeTaints: ["sku=gpu:NoSchedule"],
            nodeLabels: { team: "vision" }, tags: { owner: "ann" } } } } },
    regions: ["eastus", "westeurope"], zoneRegions: ["westeurope"], // that have premium files
    restrictedRegions: [], // where the subscription may have none
    takenNames: [], // of storage accounts of others
    provisionsOnLook: 0, // the how manieth look at a storage account finds it made
    privateNodes: false, // nodes have no public addresses
    // limits, or whole quotas by family
    virtualClusters: { vc: { eastus: { limits: [
        { id: "Dv3", slaTier: "Premium", name: "Singularity Dv3 Family vCPUs", limit: 320, used: 64 },
        { id: "NCv3", slaTier: "Basic", name: "Singularity NCv3 Series NVIDIA V100 16GB GPUs", limit: 8, used: 0 },
        { id: "NDv2", slaTier: "Premium", name: "Singularity NDv2 Series NVIDIA V100 32GB GPUs", limit: 32,
            used: 8 }] } } },
};

export class World {
    constructor(settings) {
        this.id = randomUUID();
        this.initial = { ...DEFAULTS, ...settings };
        this.events = new EventEmitter().setMaxListeners(0);
        this.jobs = new Map();
        this.reset();
    }

    /** As it was at the beginning. Jobs must have been stopped. */
    reset() {
        this.settings = structuredClone(this.initial);
        this.offset = 0;
        this.login = new Login(this.settings, () => this.now());
        this.datastores = new Map();
        this.environments = new Map();
        this.connections = new Map();
        this.containers = new Map();
        this.fileAccounts = new Map();
        this.operations = new Map();
        this.computes = new Map();
        this.managedClusters = new Map(Object.entries(this.settings.managedClusters).map(
            ([name, given]) => [name, newCluster(name, this.settings.location, given)]));
        this.jobs.clear();
        this.requests = [];
        this.violations = [];
        this.faults = [];
        this.operationError = undefined;
        this.holds = new Set();
        this.counter = 0;
        Object.entries(this.settings.computes).forEach(([name, given]) => this.addCompute(name, given));
        const { logs } = this.settings;
        this.logs = logs && {
            container: new Container(this.settings.accounts[logs.account], logs.account, logs.container,
                { key: logs.key }),
            key: (job, name) => `ExperimentRun/dcid.${job.name}/${name}`,
        };
    }

    // ---- time

    now() {
        return Date.now() + this.offset;
    }

    pause(ms) {
        return new Promise((resolve) => { setTimeout(resolve, ms); });
    }

    changed() {
        this.events.emit("change");
    }

    nextChange() {
        return once(this.events, "change");
    }

    isHeld(job) {
        return this.holds.has(job.status);
    }

    // ---- names

    get base() {
        const { subscription, group, workspace } = this.settings;
        return `/subscriptions/${subscription}/resourceGroups/${group}/providers/Microsoft.MachineLearningServices`
            + `/workspaces/${workspace}`;
    }

    get links() {
        return this.settings.links; // the URLs of the servers
    }

    // ---- jobs

    addJob(name, properties, more = {}) {
        this.counter += 1;
        const job = { name, properties, status: "NotStarted", created: this.now() + this.counter / 1000,
            modified: this.now(),
            warnings: [], tags: {}, logs: new Map(), number: this.counter, ...more };
        this.jobs.set(name, job);
        return job;
    }

    startJob(name, properties) {
        const job = this.addJob(name, properties);
        job.runner = new Runner(this, job);
        job.life = job.runner.live();
        return job;
    }

    async stopJobs() {
        this.holds.clear();
        await Promise.all([...this.jobs.values()].filter((job) => job.runner && !isFinal(job)).map(async (job) => {
            await job.runner.interrupt(false, true);
            await job.life;
        }));
    }

    imageOf(job) {
        const [, name, version] = /\/environments\/([^/]+)\/versions\/([^/]+)$/.exec(job.properties.environmentId)
            ?? [];
        return this.environments.get(`${name}/${version}`)?.properties.image ?? job.properties.environmentId;
    }

    /** The nodes of a job: it has them while it runs. */
    nodesOf(job) {
        const count = ["Running", "Finalizing"].includes(job.status) ? job.properties.resources?.instanceCount ?? 1 : 0;
        return Array.from({ length: count }, (_, n) => ({ nodeId: `tvm-${job.number}_${n}`,
            privateIpAddress: nodeAddress(n), ...(!this.settings.privateNodes && { publicIpAddress: nodeAddress(n) }),
            port: this.settings.sshPort ?? 50000 + n, nodeState: "running", runId: job.name }));
    }

    jobError(code, message, innerCodes) {
        return rootError(code, message, this.now(), innerCodes);
    }

    // ---- computes

    addCompute(name, given) {
        const { computeType, ...properties } = given;
        this.computes.set(name, { location: this.settings.location,
            properties: { computeType, provisioningState: "Succeeded",
            provisioningErrors: null, properties: computeType === "AmlCompute"
                ? { vmPriority: "Dedicated", osType: "Linux", vmSize: properties.vmSize, userAccountCredentials:
                    { adminUserName: "azureuser" }, scaleSettings: { minNodeCount: 0,
                    maxNodeCount: properties.maxNodeCount, nodeIdleTimeBeforeScaleDown: "PT2M" } }
                : { namespace: "default", defaultInstanceType: "gpu" } } });
    }

    /** Whether a cluster has nodes for a job beside those that it has given away. */
    hasRoom(job) {
        const { computeId } = job.properties;
        const most = this.computes.get(computeId?.split("/").pop())?.properties.properties.scaleSettings?.maxNodeCount;
        const taken = [...this.jobs.values()].filter(
            (other) => other.placed && other.properties.computeId === computeId);
        const count = [...taken, job].reduce((sum, { properties: p }) => sum + (p.resources?.instanceCount ?? 1), 0);
        return most === undefined || count <= most;
    }

    nodesOn(name) {
        const id = `${this.base}/computes/${name}`.toLowerCase();
        return [...this.jobs.values()].filter((job) => job.properties.computeId?.toLowerCase() === id)
            .flatMap((job) => this.nodesOf(job));
    }
}
