// The kubelet: pods that have a node run on this machine.
import { existsSync } from "node:fs";
import { mkdir, open, rm } from "node:fs/promises";
import { join } from "node:path";

import { POD, SERVICE } from "./kinds.mjs";
import { flag, Log, logOptions, serveLog } from "./logs.mjs";
import { Network, whyNot } from "./netns.mjs";
import { PodRunner } from "./pod.mjs";
import { matchesLabels } from "./select.mjs";
import { badRequest, Refusal } from "./status.mjs";
import { isFinished } from "./store.mjs";

const DOMAIN = "svc.cluster.local";

export class Kubelet {
    constructor(world) {
        Object.assign(this, { world, runners: new Map(), abandoned: new Set(), logs: new Map(),
            network: new Network() });
        world.store.events.on("change", (change) => this.changed(change));
    }

    async start() {
        this.reason = this.world.settings.run ? await whyNot() : "the settings say so";
        if (!this.reason) {
            await this.network.start();
        }
    }

    async stop() {
        await this.reset();
        await this.network.stop();
    }

    async reset() {
        this.isStopping = true;
        const all = [...this.runners.values(), ...this.abandoned];
        await Promise.all(all.map((runner) => runner.kill()));
        this.runners.clear();
        this.logs.clear();
        await rm(join(this.world.settings.folder, "pods"), { recursive: true, force: true });
        this.isStopping = false;
    }

    // ---- what happens to pods

    changed({ type, action, object }) {
        if (type === SERVICE) {
            this.namesSoon();
        }
        if (type !== POD || this.isStopping) {
            return;
        }
        this.namesSoon();
        const runner = this.runners.get(object.metadata.uid);
        if (action === "DELETED") {
            this.gone(object, runner);
        } else if (object.metadata.deletionTimestamp) {
            this.end(object, runner);
        } else if (object.spec.nodeName && !runner && !isFinished(object)) {
            this.begin(object);
        }
    }

    begin(pod) {
        if (this.reason) {
            return;
        }
        const runner = new PodRunner(this, pod);
        this.runners.set(pod.metadata.uid, runner);
        runner.life = runner.live();
    }

    /** A pod that shall go: its processes first. */
    end(pod, runner) {
        if (runner && !runner.isLost) {
            runner.terminate(Math.max(pod.metadata.deletionGracePeriodSeconds * 1000, this.world.settings.forcedMs));
        } else if (!runner) {
            setImmediate(() => this.world.store.settle(POD, pod));
        }
    }

    /** One that was deleted by force is ended all the same, though the API does not know it any more, with a small time
     * of grace. Source: kubernetes.io/docs/concepts/workloads/pods/pod-lifecycle/#pod-termination-forced */
    async gone(pod, runner) {
        this.runners.delete(pod.metadata.uid);
        if (runner) {
            this.abandoned.add(runner);
            if (!runner.isOver && !runner.isLost) {
                await runner.abandon(this.world.settings.forcedMs);
            }
            await runner.kill();
            this.abandoned.delete(runner);
        }
        this.logs.delete(pod.metadata.uid);
    }

    // ---- names

    namesSoon() {
        this.naming ??= setImmediate(() => {
            this.naming = undefined;
            this.tellNames();
        });
    }

    /** Every pod that has an address, with the services that name it. */
    tellNames() {
        const { store } = this.world;
        const pods = store.list(POD).filter((pod) => pod.status.podIP && !isFinished(pod));
        const lines = new Map();
        for (const service of store.list(SERVICE).filter(({ spec }) => spec.clusterIP === "None" && spec.selector)) {
            const { name, namespace } = service.metadata;
            const isIn = (pod) => pod.metadata.namespace === namespace
                && matchesLabels(service.spec.selector, pod.metadata.labels)
                && (service.spec.publishNotReadyAddresses || isReady(pod));
            lines.set(namespace, [...(lines.get(namespace) ?? []),
                ...pods.filter(isIn).map((pod) => hostLine(pod, name, namespace))]);
        }
        for (const runner of this.runners.values()) {
            runner.tellNames(lines.get(runner.pod.metadata.namespace) ?? []);
        }
    }

    // ---- logs

    logsOf(pod) {
        const { uid } = pod.metadata;
        if (!this.logs.has(uid)) {
            this.logs.set(uid, new Map());
        }
        return this.logs.get(uid);
    }

    /** A log for a container that starts (again); that of the one before is kept. */
    newLog(pod, container) {
        const logs = this.logsOf(pod);
        const log = new Log(this.world);
        logs.set(container, { current: log, previous: logs.get(container)?.current });
        return log;
    }

    /** A pod's log as a client asks for it. */
    log(pod, query) {
        const options = logOptions(query, POD);
        const { name } = pod.metadata;
        const names = [...pod.spec.containers, ...(pod.spec.initContainers ?? [])].map((one) => one.name);
        const container = options.container
            ?? pod.metadata.annotations?.["kubectl.kubernetes.io/default-container"] ?? pod.spec.containers[0].name;
        if (!options.container && pod.spec.containers.length > 1 && names.length > 1) {
            throw badRequest(`a container name must be specified for pod ${name}, choose one of: [${
                pod.spec.containers.map((one) => one.name).join(" ")}]`);
        }
        if (!names.includes(container)) {
            throw badRequest(`container ${container} is not valid for pod ${name}`);
        }
        if (!pod.spec.nodeName) {
            return { status: 204, text: "" };
        }
        if (this.runners.get(pod.metadata.uid)?.isLost) {
            throw new Refusal(500, "InternalError", `Get "https://${pod.spec.nodeName}:10250/containerLogs/${
                pod.metadata.namespace}/${name}/${container}": dial tcp: connect: no route to host`);
        }
        return this.serve(pod, container, options);
    }

    serve(pod, container, options) {
        const { current, previous, isCollected } = this.logsOf(pod).get(container) ?? {};
        if (isCollected) { // no error, in the words of a kubelet
            return { status: 200, text: `unable to retrieve container logs for containerd://${pod.metadata.uid}` };
        }
        const log = options.previous ? previous : current;
        if (options.previous && !log) {
            throw badRequest(`previous terminated container "${container}" in pod "${pod.metadata.name}" not found`);
        }
        if (!log) {
            const states = [...(pod.status.containerStatuses ?? []), ...(pod.status.initContainerStatuses ?? [])];
            const reason = states.find(({ name }) => name === container)?.state.waiting?.reason ?? "ContainerCreating";
            throw badRequest(`container "${container}" in pod "${pod.metadata.name}" is waiting to start: ${
                /Image/.test(reason) ? "trying and failing to pull image" : reason}`);
        }
        return serveLog(this.world, log, options);
    }

    // ---- commands in containers

    /** What a client wants to run: {container, command, ...}; the container runs. */
    exec(pod, query) {
        const { name } = pod.metadata;
        const wanted = query.get("container") ?? pod.spec.containers[0].name;
        const container = this.runners.get(pod.metadata.uid)?.containers.get(wanted);
        const command = query.getAll("command");
        if (!pod.spec.containers.some((one) => one.name === wanted)) {
            throw badRequest(`container ${wanted} is not valid for pod ${name}`);
        }
        if (isFinished(pod)) {
            throw new Refusal(500, "InternalError",
                `cannot exec into a container in a completed pod; current phase is ${pod.status.phase}`);
        }
        if (!container?.pid) {
            throw new Refusal(500, "InternalError", `unable to upgrade connection: container not found ("${wanted}")`);
        }
        if (!command.length) {
            throw badRequest("you must specify at least 1 command for the container");
        }
        return { container, command, tty: flag(query, "tty"), stdin: flag(query, "stdin") };
    }

    // ---- for pods

    async folderOf(pod) {
        const folder = join(this.world.settings.folder, "pods", pod.metadata.uid);
        await mkdir(folder, { recursive: true });
        return folder;
    }
}

const isReady = ({ status }) => status.conditions?.some((one) => one.type === "Ready" && one.status === "True");

function hostLine({ spec: { hostname, subdomain }, status: { podIP } }, service, namespace) {
    const full = subdomain === service && hostname ? [`${hostname}.${service}`] : [];
    const names = [...full, service].flatMap((name) => [`${name}.${namespace}.${DOMAIN}`, `${name}.${namespace}.svc`,
        `${name}.${namespace}`, name]);
    return `${podIP}\t${names.join(" ")}`;
}

/** Replaces what a file says in one write: it is mounted into containers, which must not see half of it. */
export async function overwrite(path, text) {
    const file = await open(path, existsSync(path) ? "r+" : "w");
    try {
        const { size } = await file.stat();
        const data = Buffer.from(text.padEnd(size, "\n"));
        await file.write(data, 0, data.length, 0);
    } finally {
        await file.close();
    }
}
