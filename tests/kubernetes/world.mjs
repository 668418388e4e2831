// What the double knows: its settings, its objects, what was asked of it, what shall go wrong.
import { randomBytes, randomUUID } from "node:crypto";

import { ACCOUNT, EVENT, NAMESPACE, NODE, PRIORITY } from "./kinds.mjs";
import { Store } from "./store.mjs";

const DEFAULTS = {
    folder: undefined, // where certificates, kubeconfig files and pods are
    user: "act-tests", token: "the-token-of-tests", namespace: "default",
    namespaces: ["default", "other", "kube-system"],
    serverNames: ["kubernetes.default.svc", "localhost"], // beside 127.0.0.1
    version: "1.34", // "1.20": drops what came later, without a word
    http2: true, // beside HTTP/1.1
    kueue: false, kueueAdmit: true, // whether Kueue is there; whether it admits what is queued
    kueuePods: 1000, // as many pods of a Job are admitted, where the Job takes fewer than it wants
    kueueMessage: "couldn't assign flavors to pod set main: insufficient unused quota for nvidia.com/gpu in flavor "
        + "default-flavor, 4 more needed",
    contract: true, // bodies that the official client would not send are refused and kept as violations
    nodes: { "gpu-0": { gpus: 4 }, "gpu-1": { gpus: 4 } }, // name: {cpu, memory, gpus, pods, labels, taints}
    gpuResource: "nvidia.com/gpu",
    // image: "ErrImagePull" | "InvalidImageName" | "StartError" (no shell) | "exec format" (another architecture) |
    // "login" (only with a pull secret for its registry); others are ok
    images: {},
    claims: {}, // claim: folder on this machine
    blobs: {}, // container of a csi volume of blob.csi.azure.com: folder on this machine
    forward: [], // ports of this machine's loopback that pods have on theirs
    run: true, // pods run as processes; false: they stay Pending until a test sets their status
    logBytes: 10 * 1024 * 1024, // size at which a pod's log is rotated
    logPart: 16 * 1024, // longer lines are taken apart
    keptLogs: 5,
    followRotation: "on", // "end": a log that is followed ends when it is rotated
    forcedMs: 2000, // grace of a pod that is deleted by force: no kubelet gives less
    backoffMs: 50, // before the Job controller makes another pod for one that failed
    pullMs: 0, retryMs: 100, // how long an image takes; how often what is missing is looked for
    ttlUnitMs: 1000, // a second of ttlSecondsAfterFinished
    collectMs: 10, // before the garbage collector looks
    bookmarkMs: 1000, // between the bookmarks of a watch; 0: none are sent, as no client may rely on them
    execProtocols: ["v5.channel.k8s.io", "v4.channel.k8s.io"], // for commands in containers, the best first
    execOldFor: undefined, // clients whose user agent begins so get v4 alone, as from servers before 1.30; a kubectl of
    // today, which would take SPDY there, gets v5
    warnings: [], // that the server has of each Job that is made
    strict: true, // whether it heeds fieldValidation=Strict, as servers from 1.25 on do
    webhooks: [], // {name, resources: ["pods"], denies}: does not answer, or denies with these words
    limit: 0, // most objects in a page, where a client wants pages; 0: as it wants them
};

const letters = "bcdfghjklmnpqrstvwxz2456789";

/** Letters as the server makes them up. */
export const suffix = (length = 5) => [...randomBytes(length)].map((byte) => letters[byte % letters.length]).join("");

export class World {
    constructor(settings) {
        this.initial = { ...DEFAULTS, ...settings };
        this.store = new Store(this);
        this.watches = new Set();
        this.settings = this.initial;
        this.reset();
    }

    /** As it was at the beginning. Pods must have been stopped. */
    reset() {
        this.settings = structuredClone(this.initial);
        this.offset = 0;
        Object.assign(this, { requests: [], violations: [], resizes: [], faults: [], forbids: [], counter: 0 });
        this.tokens = new Map([[this.settings.token, {}]]);
        this.store.clear();
        this.settings.namespaces.forEach((name) => this.addNamespace(name));
        Object.entries(this.settings.nodes).forEach(([name, given]) => this.addNode(name, given));
        for (const [name, value] of [["system-node-critical", 2000001000], ["system-cluster-critical", 2000000000]]) {
            this.store.create(PRIORITY, { metadata: { name }, value });
        }
    }

    // ---- time

    now() {
        return Date.now() + this.offset;
    }

    /** As metadata has it, in whole seconds. */
    time(ms = this.now()) {
        return new Date(ms).toISOString().replace(/\.\d+Z$/, "Z");
    }

    microTime() {
        return new Date(this.now()).toISOString().replace("Z", "000Z");
    }

    // ---- objects

    addNamespace(name) {
        this.store.create(NAMESPACE, { metadata: { name, labels: { "kubernetes.io/metadata.name": name } },
            spec: { finalizers: ["kubernetes"] }, status: { phase: "Active" } });
        this.store.create(ACCOUNT, { metadata: { name: "default", namespace: name } });
    }

    addNode(name, { cpu = "8", memory = "32Gi", gpus = 0, pods = 110, labels = {}, taints, address } = {}) {
        this.counter += 1;
        const resources = { cpu: String(cpu), memory, pods: String(pods), "ephemeral-storage": "100Gi",
            ...(gpus && { [this.settings.gpuResource]: String(gpus) }) };
        this.store.create(NODE, {
            metadata: { name, labels: { "kubernetes.io/hostname": name, "kubernetes.io/os": "linux",
                "kubernetes.io/arch": "amd64", ...labels } },
            spec: { ...(taints && { taints }) },
            status: { capacity: resources, allocatable: resources,
                conditions: [{ type: "Ready", status: "True", reason: "KubeletReady",
                    message: "kubelet is posting ready status", lastTransitionTime: this.time(),
                    lastHeartbeatTime: this.time() }],
                addresses: [{ type: "InternalIP", address: address ?? `10.0.0.${this.counter}` },
                    { type: "Hostname", address: name }],
                nodeInfo: { kubeletVersion: `v${this.settings.version}.0`, architecture: "amd64",
                    operatingSystem: "linux", osImage: "Debian GNU/Linux 12 (bookworm)",
                    kernelVersion: "6.1.0", containerRuntimeVersion: "containerd://1.7.0" } },
        });
    }

    /** An event about an object. source: the component; scheduler's have a time of another kind. */
    event(type, object, reason, message, source, kind = object.kind) {
        const namespace = object.metadata.namespace ?? "default";
        const fresh = source === "default-scheduler";
        const same = fresh ? undefined : this.store.list(EVENT, namespace).find((other) =>
            other.involvedObject.uid === object.metadata.uid && other.reason === reason && other.message === message);
        if (same) {
            this.store.change(EVENT, same, (event) => {
                event.count += 1;
                event.lastTimestamp = this.time();
            });
            return;
        }
        this.store.create(EVENT, {
            metadata: { name: `${object.metadata.name}.${randomBytes(8).toString("hex")}`, namespace },
            involvedObject: { kind, namespace: object.metadata.namespace, name: object.metadata.name,
                uid: object.metadata.uid, apiVersion: object.apiVersion,
                resourceVersion: object.metadata.resourceVersion },
            type, reason, message,
            ...(fresh
                ? { source: {}, firstTimestamp: null, lastTimestamp: null, eventTime: this.microTime(),
                    action: "Scheduling" }
                : { source: { component: source }, firstTimestamp: this.time(), lastTimestamp: this.time(), count: 1,
                    eventTime: null }),
            reportingComponent: source, reportingInstance: fresh ? `${source}-double` : "",
        });
    }

    endWatches() {
        [...this.watches].forEach((watch) => watch.end());
    }

    uid() {
        return randomUUID();
    }
}
