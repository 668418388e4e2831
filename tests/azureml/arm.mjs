// What the resource manager answers for the objects of a workspace.
import { randomUUID } from "node:crypto";
import { isDeepStrictEqual } from "node:util";

import { AKS_HANDLERS } from "./aks.mjs";
import { FILESERVER_HANDLERS } from "./fileservers.mjs";
import { iso, notFound, Refusal, rootError } from "./errors.mjs";
import { isFinal } from "./runner.mjs";
import { STORAGE_HANDLERS } from "./storage.mjs";

/** The virtual cluster of a job; undefined: it has another compute. */
const clusterOf = ({ computeId = "" }) => (/\/virtualclusters\/([^/]+)$/i.exec(computeId) ?? [])[1];
const NAME = /^[a-zA-Z0-9][a-zA-Z0-9\-_]{0,254}$/;
const TYPE = "Microsoft.MachineLearningServices/workspaces";

const ok = (body, status = 200, headers = {}) => ({ status, body, headers });
// The service does not say when to ask again; the double does, so that tests need not wait.
const NOW = { "Retry-After": "0" };

export class Arm {
    constructor(world) {
        this.world = world;
    }

    /** Answers a call of contract.mjs: {status, body, headers}. query is a plain object. */
    async answer(call, query, body) {
        this.checkPlace(call);
        const handler = HANDLERS[call.name];
        const names = call.values.slice(/locations|blobServices/.test(call.path.source) ? 2 : 3);
        return handler.call(this, names, query, body, call);
    }

    checkPlace(call) {
        const { subscription, group, workspace } = this.world.settings;
        const [s, g, w] = call.values;
        if (["graph query", "subscription list"].includes(call.name)) {
            return;
        }
        if (s !== subscription) {
            throw new Refusal(404, "SubscriptionNotFound", `The subscription '${s}' could not be found.`);
        }
        if (call.path.source.includes("resourceGroups") && g !== group) {
            throw new Refusal(404, "ResourceGroupNotFound", `Resource group '${g}' could not be found.`);
        }
        if (call.name !== "workspace list" && call.path.source.includes("workspaces") && w !== workspace) {
            throw notFound("workspaces", w, g);
        }
    }

    resource(type, name, properties, more = {}) {
        return { id: `${this.world.base}/${type}/${name}`, name: name.split("/").pop(),
            type: `${TYPE}/${type.replace(/\/[^/]+\//, "/")}`, properties, ...more };
    }

    missing(type, name) {
        return new Refusal(404, "UserError", `Could not find ${type}: ${name}.`, { inner: ["NotFoundError"] });
    }

    find(map, type, name) {
        const found = map.get(name);
        if (!found) {
            throw this.missing(type, name);
        }
        return found;
    }

    /** One page of a list; the token of the next is opaque to clients. */
    page(all, query, call, member = "value") {
        const { pageSize, nextLinkBase } = this.world.settings;
        const start = query.$skip ? Number(Buffer.from(query.$skip, "base64url").toString().slice(5)) : 0;
        if (!(start >= 0)) {
            throw new Refusal(400, "UserError", "The continuation token is not valid.");
        }
        const answer = { [member]: all.slice(start, start + pageSize) };
        if (start + pageSize < all.length) {
            const token = Buffer.from(`from:${start + pageSize}`).toString("base64url");
            const rest = new URLSearchParams({ ...query, $skip: token });
            answer.nextLink = `${nextLinkBase ?? this.world.links.arm}${call.url.pathname}?${rest}`;
        }
        return ok(answer);
    }

    /** The answer to a PUT that made an object, or changed one that was there. */
    made(body, query, had = false) {
        const Location = `${this.world.links.arm}${body.id}?${new URLSearchParams(query)}`;
        return had ? ok(body) : ok(body, 201, { Location });
    }

    /** The answer that begins a long operation; apply is done when it succeeds, fail when it does not. */
    operation(status, body, apply, query, provider = "Microsoft.MachineLearningServices",
        path = "computeOperationsStatus", fail = () => {}) {
        const id = randomUUID();
        const { operationPolls } = this.world.settings;
        this.world.operations.set(id, { left: operationPolls, polls: operationPolls, apply, fail,
            error: this.world.operationError });
        return ok(body, status, { ...NOW, "Azure-AsyncOperation": this.link(`${path}/${id}`, query, provider) });
    }

    /** Where a long operation is asked for. */
    link(path, query, provider = "Microsoft.MachineLearningServices") {
        const { subscription, location } = this.world.settings;
        return `${this.world.links.arm}/subscriptions/${subscription}/providers/${provider}`
            + `/locations/${location}/${path}?api-version=${query["api-version"]}&service=new`;
    }

    // ---- jobs

    job(job) {
        const { properties: p, created, name, tags } = job;
        const { base, settings, links } = this.world;
        const service = (type, endpoint) => ({ jobServiceType: type, endpoint, port: null, status: null,
            errorMessage: null, properties: null, nodes: null });
        const described = (map = {}) => Object.fromEntries(
            Object.entries(map).map(([k, v]) => [k, { description: null, ...v }]));
        return this.resource("jobs", name, {
            description: null, isArchived: false, codeId: null, distribution: null, limits: null, identity: null,
            computeId: null, componentId: null, notificationSetting: null, autologgerSettings: null,
            queueSettings: null, environmentVariables: {}, parameters: {}, experimentName: "Default", ...p,
            status: job.status, tags: { ...p.tags, ...tags },
            properties: { ...p.properties, "_azureml.ComputeTargetType": clusterOf(p) ? "singularity" : "amlctrain" },
            resources: { instanceCount: 1, instanceType: null, dockerArgs: null, shmSize: "2g", properties: null,
                ...p.resources },
            inputs: described(p.inputs),
            outputs: { ...described(p.outputs), default: { description: null, assetName: null, assetVersion: null,
                jobOutputType: "uri_folder", mode: "ReadWriteMount",
                uri: `azureml://datastores/workspaceartifactstore/ExperimentRun/dcid.${name}` } },
            services: { ...p.services,
                Tracking: service("Tracking", `azureml://${new URL(links.api).host}/mlflow/v1.0${base}?`),
                Studio: service("Studio", `https://ml.azure.com/runs/${name}?wsid=`
                    + `/subscriptions/${settings.subscription}/resourcegroups/${settings.group}`
                    + `/workspaces/${settings.workspace}`) },
        }, { systemData: { createdAt: iso(created), createdBy: "Jane", createdByType: "User" } });
    }

    putJob([name], query, body) {
        const sent = body.properties;
        const had = this.world.jobs.get(name);
        if (had) {
            return this.updateJob(had, sent);
        }
        if (!NAME.test(name)) {
            throw new Refusal(400, "UserError", `The job name '${name}' is not valid.`);
        }
        this.checkEnvironment(sent.environmentId);
        this.checkCompute(sent);
        return this.made(this.job(this.world.startJob(name, sent)), query);
    }

    updateJob(job, sent) {
        const fixed = ({ tags, displayName, description, isArchived, properties, ...rest }) => rest;
        const changed = Object.entries(job.properties.properties ?? {}).some(([k, v]) =>
            k in (sent.properties ?? {}) && sent.properties[k] !== v);
        if (changed || !isDeepStrictEqual(fixed(job.properties), fixed(sent))) {
            throw new Refusal(409, "UserError",
                `A job with the name '${job.name}' exists already and cannot be changed.`,
                { details: [{ code: "Conflict", message: "Job properties are immutable.", details: [],
                    additionalInfo: [] }] });
        }
        Object.assign(job.properties, sent, { properties: { ...sent.properties, ...job.properties.properties } });
        job.modified = this.world.now();
        return ok(this.job(job));
    }

    checkEnvironment(id) {
        const [, name, version] = new RegExp(`^${this.world.base}/environments/([^/]+)/versions/([^/]+)$`).exec(id)
            ?? [];
        if (!id.startsWith("azureml://registries/") && !this.world.environments.has(`${name}/${version}`)) {
            throw new Refusal(400, "UserError", `The environment '${id}' does not exist in this workspace.`);
        }
    }

    checkCompute({ computeId, resources }) {
        if (computeId === undefined) {
            return;
        }
        const cluster = clusterOf({ computeId });
        if (cluster && this.world.settings.virtualClusters[cluster]) {
            return;
        }
        const name = computeId.startsWith(`${this.world.base}/computes/`) ? computeId.split("/").pop() : "";
        const compute = this.world.computes.get(name);
        if (!compute) {
            throw new Refusal(404, "UserError", `Compute target ${computeId.split("/").pop()} not found in workspace `
                + `${this.world.settings.workspace}.`,
                { details: [{ code: "ComputeNotFound", message: "Compute not found" }] });
        }
        const max = compute.properties.properties.scaleSettings?.maxNodeCount;
        if (max !== undefined && (resources?.instanceCount ?? 1) > max) {
            throw new Refusal(400, "UserError",
                `The specified node count ${resources.instanceCount} exceeds the maximum node `
                + `count ${max} of the compute target ${name}.`);
        }
        if (compute.properties.computeType === "Kubernetes" && resources?.dockerArgs) {
            throw new Refusal(400, "UserError", "dockerArgs is only supported for Azure ML compute types.");
        }
    }

    listJobs(names, query, body, call) {
        const view = query.listViewType ?? "ActiveOnly";
        const all = [...this.world.jobs.values()].reverse().filter(({ properties: p, tags }) =>
            (!query.jobType || p.jobType === query.jobType)
            && (!query.tag || query.tag in { ...p.tags, ...tags })
            && (view === "All" || (view === "ArchivedOnly") === Boolean(p.isArchived)));
        return this.page(all.map((job) => this.job(job)), query, call);
    }

    cancelJob([name], query) {
        const job = this.find(this.world.jobs, "jobs", name);
        if (isFinal(job)) {
            throw new Refusal(400, "UserError", `The run ${name} is in terminal status, it can't be canceled.`,
                { inner: ["BadArgument", "ArgumentInvalid", "CancelRunInTerminalStatus"] });
        }
        if (job.runner) {
            job.runner.interrupt(false);
        } else {
            job.status = "Canceled";
        }
        return ok(null, 202, { ...this.cancelLink(name, query), "x-ms-async-operation-timeout": "PT1H" });
    }

    cancelLink(name, query) {
        return { ...NOW, Location: this.link(`mfeOperationResults/jc:${this.world.id}:${name}`, query) };
    }

    cancelResult([id], query) {
        const name = id.split(":").pop();
        return isFinal(this.find(this.world.jobs, "jobs", name))
            ? ok(undefined) : ok({}, 202, this.cancelLink(name, query));
    }

    deleteJob([name]) {
        if (!isFinal(this.find(this.world.jobs, "jobs", name))) {
            throw new Refusal(409, "UserError", `The job '${name}' has not ended.`);
        }
        this.world.jobs.delete(name);
        return ok(undefined);
    }

    // ---- what jobs need

    datastore(name) {
        const { properties } = this.find(this.world.datastores, "datastores", name);
        const { credentialsType } = properties.credentials;
        return this.resource("datastores", name, { description: null, tags: null, properties: null, isDefault: false,
            serviceDataAccessAuthIdentity: "None", ...properties, credentials: { credentialsType } });
    }

    putDatastore([name], query, body) {
        if (!/^\w+$/.test(name)) {
            throw new Refusal(400, "UserError",
                `The datastore name '${name}' may only have letters, digits and underscores.`);
        }
        const had = this.world.datastores.has(name);
        this.world.datastores.set(name, body);
        return this.made(this.datastore(name), query, had);
    }

    listDatastores(names, query, body, call) {
        const wanted = query.names?.split(",");
        const all = [...this.world.datastores.keys()].filter((name) => !wanted || wanted.includes(name));
        return this.page(all.map((name) => this.datastore(name)), query, call);
    }

    environment([name, version]) {
        const found = this.find(this.world.environments, `environments/${name}/versions`, `${name}/${version}`);
        return ok(this.resource(`environments/${name}/versions`, version, { description: null, tags: {}, properties: {},
            isArchived: false, isAnonymous: false, environmentType: "UserCreated", condaFile: "", osType: "Linux",
            ...found.properties }));
    }

    putEnvironment([name, version], query, body) {
        const key = `${name}/${version}`;
        const had = this.world.environments.get(key);
        if (had && had.properties.image !== body.properties.image) {
            throw new Refusal(409, "UserError", `The environment version '${key}' exists already with another image.`);
        }
        this.world.environments.set(key, body);
        return this.made(this.environment([name, version]).body, query, had);
    }

    /** Connections are told of by another part of the service, which refuses as the run history does. */
    connection([name]) {
        const found = this.world.connections.get(name);
        if (!found) {
            return ok(rootError("UserError", `Connection ${name} can't be found in this workspace`, this.world.now(),
                ["NotFoundError"]), 404);
        }
        return ok(this.resource("connections", name, { metadata: null, ...found.properties, credentials: null }));
    }

    // ---- computes

    compute(name) {
        const { location, properties } = this.findCompute(name);
        const answer = { description: null, provisioningErrors: null, resourceId: null, isAttachedCompute: false,
            ...structuredClone(properties) };
        if (properties.provisioningState === "Creating") {
            delete answer.properties.userAccountCredentials;
            Object.assign(answer.properties, { allocationState: null, currentNodeCount: null, targetNodeCount: null,
                errors: null, nodeStateCounts: null });
        } else if (properties.computeType === "AmlCompute") {
            const running = this.world.nodesOn(name).length;
            Object.assign(answer.properties, { allocationState: "Steady",
                allocationStateTransitionTime: iso(this.world.now()), currentNodeCount: running,
                targetNodeCount: running, errors: null, nodeStateCounts: { preparingNodeCount: 0,
                    runningNodeCount: running, idleNodeCount: 0, unusableNodeCount: 0, leavingNodeCount: 0,
                    preemptedNodeCount: 0 },
                ...answer.properties.shown });
            delete answer.properties.shown;
        }
        return this.resource("computes", name, answer, { location });
    }

    /** One that is not there is told by the status alone. */
    findCompute(name) {
        const found = this.world.computes.get(name);
        if (!found) {
            throw new Refusal(404);
        }
        return found;
    }

    putCompute([name], query, body) {
        if (body.properties.properties?.scaleSettings?.maxNodeCount > 100) {
            throw new Refusal(400, "ClusterCoreQuotaReached",
                "The specified subscription has a total vCPU quota of 9600 and is "
                + "less than the requested vCPUs.");
        }
        const compute = structuredClone(body);
        compute.properties.properties.vmSize = compute.properties.properties.vmSize?.toUpperCase();
        compute.properties.provisioningState = "Creating";
        delete compute.properties.properties?.userAccountCredentials?.adminUserPassword;
        this.world.computes.set(name, compute);
        const { provisioned } = this.world.settings;
        return this.operation(201, this.compute(name),
            () => Object.assign(compute.properties, { provisioningState: "Succeeded", ...provisioned }), query);
    }

    patchCompute([name], query, body) {
        const compute = this.findCompute(name);
        const { scaleSettings } = body.properties.properties;
        compute.properties.provisioningState = "Updating";
        return this.operation(200, this.compute(name), () => {
            compute.properties.provisioningState = "Succeeded";
            Object.assign(compute.properties.properties.scaleSettings, scaleSettings);
        }, query);
    }

    deleteCompute([name], query) {
        const compute = this.world.computes.get(name);
        if (!compute) {
            return ok(undefined, 204);
        }
        compute.properties.provisioningState = "Deleting";
        return this.operation(202, undefined, () => this.world.computes.delete(name), query);
    }

    listNodes([name], query, body, call) {
        const compute = this.findCompute(name);
        if (compute.properties.computeType !== "AmlCompute") {
            throw new Refusal(400, "UserError", `The operation is not supported for a compute of the type `
                + `${compute.properties.computeType}.`);
        }
        return this.page([...this.world.nodesOn(name), ...(compute.idle ?? [])], query, call, "nodes");
    }

    getOperation([id]) {
        const operation = this.world.operations.get(id);
        if (!operation) {
            throw new Refusal(404, "OperationNotFound", `The operation '${id}' was not found.`);
        }
        const { left, polls, apply, fail, error } = operation;
        operation.left -= 1;
        if (left > 0) {
            return ok({ status: "InProgress", percentComplete: Math.floor(100 * (polls - left) / polls) }, 200, NOW);
        }
        if (error) {
            fail();
            return ok({ status: "Failed", error });
        }
        apply();
        return ok({ status: "Succeeded", percentComplete: 100 });
    }

    // ---- the workspace, quotas, virtual clusters

    workspace() {
        const { settings, base, id, links } = this.world;
        return ok({ id: base, name: settings.workspace, type: TYPE, location: settings.location,
            identity: { type: "SystemAssigned", principalId: randomUUID(), tenantId: settings.tenant },
            properties: { workspaceId: id, friendlyName: settings.workspace, tenantId: settings.tenant,
                provisioningState: "Succeeded", discoveryUrl: `${links.api}/discovery`,
                mlFlowTrackingUri: `azureml://${new URL(links.api).host}/mlflow/v1.0${base}`, containerRegistry: null,
                storageAccount: `/subscriptions/${settings.subscription}/resourceGroups/${settings.group}/providers`
                    + `/Microsoft.Storage/storageAccounts/${settings.logs?.account ?? "wsstorage"}`,
                publicNetworkAccess: "Enabled", v1LegacyMode: false } });
    }

    quotas(withUse) {
        const { subscription, location } = this.world.settings;
        return ["standardNDASv4Family", "standardDFamily"].map((name, n) => ({
            id: `/subscriptions/${subscription}/providers/Microsoft.MachineLearningServices/locations/${location}`
                + `/quotas/${name}`,
            type: "Microsoft.MachineLearningServices/vmFamily/dedicatedCores/quotas", unit: "Count",
            limit: n ? 100 : 960,
            ...(withUse && { currentValue: n ? 12 : 192, amlWorkspaceLocation: location }),
            name: { value: name, localizedValue: name } }));
    }

    sizes() {
        const size = (name, family, vCPUs, gpus, memoryGB) => ({ name, family, vCPUs, gpus, memoryGB,
            osVhdSizeMB: 1047552, maxResourceVolumeMB: 1024000, lowPriorityCapable: true, premiumIO: true,
            supportedComputeTypes: ["AmlCompute"] });
        return ok({ value: [size("Standard_ND96asr_v4", "standardNDASv4Family", 96, 8, 900),
            size("Standard_D2_v2", "standardDFamily", 2, 0, 7)] });
    }

    virtualClusterId(name) {
        const { subscription, group } = this.world.settings;
        return `/subscriptions/${subscription}/resourceGroups/${group}/providers/Microsoft.MachineLearningServices`
            + `/virtualClusters/${name}`;
    }

    virtualCluster([name], query, body, call) {
        const found = this.world.settings.virtualClusters[call.values[2]];
        if (!found) {
            throw notFound("virtualclusters", call.values[2], this.world.settings.group);
        }
        return ok({ tags: {}, location: this.world.settings.location, id: this.virtualClusterId(call.values[2]),
            name: call.values[2], type: "Microsoft.MachineLearningServices/virtualClusters", properties: { amlK8s: null,
                amlCompute: null, amlComputeCluster: null,
                managed: { provider: "Managed_V1", locations: Object.keys(found),
                    idleResourcesHandlingPolicy: null, quotas: found, managedStorage: [] } }, systemData: null });
    }

    graph() {
        const { subscription, group, location, virtualClusters } = this.world.settings;
        const data = Object.keys(virtualClusters).sort().map((name) => ({ id: this.virtualClusterId(name), name,
            location, subscriptionId: subscription, resourceGroup: group, tags: {},
            type: "microsoft.machinelearningservices/virtualclusters" }));
        return ok({ totalRecords: data.length, count: data.length, data, resultTruncated: "false" });
    }
}

const HANDLERS = {
    "workspace get": Arm.prototype.workspace,
    "workspace list"() {
        const own = this.workspace().body;
        const others = (this.world.settings.others ?? []).map((name) => ({ ...own, name,
            id: own.id.replace(/[^/]+$/, name) }));
        return ok({ value: [own, ...others] });
    },
    "job list": Arm.prototype.listJobs,
    "job get"([name]) { return ok(this.job(this.find(this.world.jobs, "jobs", name))); },
    "job put": Arm.prototype.putJob,
    "job delete": Arm.prototype.deleteJob,
    "job cancel": Arm.prototype.cancelJob,
    "datastore list": Arm.prototype.listDatastores,
    "datastore get"([name]) { return ok(this.datastore(name)); },
    "datastore put": Arm.prototype.putDatastore,
    "datastore delete"([name]) { return ok(undefined, this.world.datastores.delete(name) ? 200 : 204); },
    "environment get": Arm.prototype.environment,
    "environment put": Arm.prototype.putEnvironment,
    "connection get": Arm.prototype.connection,
    "connection put"([name], query, body) {
        this.world.connections.set(name, body);
        return this.connection([name]);
    },
    "compute list"(names, query, body, call) {
        return this.page([...this.world.computes.keys()].map((name) => this.compute(name)), query, call);
    },
    "compute get"([name]) { return ok(this.compute(name)); },
    "compute put": Arm.prototype.putCompute,
    "compute patch": Arm.prototype.patchCompute,
    "compute delete": Arm.prototype.deleteCompute,
    "compute nodes": Arm.prototype.listNodes,
    "usage list"() { return ok({ value: this.quotas(true), nextLink: null }); },
    "quota list"() { return ok({ value: this.quotas(false), nextLink: null }); },
    "size list": Arm.prototype.sizes,
    "virtual cluster get": Arm.prototype.virtualCluster,
    "graph query": Arm.prototype.graph,
    "operation get": Arm.prototype.getOperation,
    "cancel result": Arm.prototype.cancelResult,
    ...AKS_HANDLERS,
    ...FILESERVER_HANDLERS,
    ...STORAGE_HANDLERS,
};
