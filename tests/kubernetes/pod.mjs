// The life of a pod on its node, from its volumes to the end of its last container.
import { writeFileSync } from "node:fs";
import { mkdir } from "node:fs/promises";
import { join } from "node:path";

import { CannotCreate, Container, environment, startError } from "./container.mjs";
import { imageProblem } from "./images.mjs";
import { NODE, POD } from "./kinds.mjs";
import { overwrite } from "./kubelet.mjs";
import { setCondition } from "./scheduler.mjs";
import { makeVolume, NotMounted } from "./volumes.mjs";

const SOURCE = "kubelet";

class Ended extends Error {}

export class PodRunner {
    constructor(kubelet, pod) {
        Object.assign(this, { kubelet, world: kubelet.world, pod, containers: new Map(), states: new Map(),
            lines: [], writing: Promise.resolve() });
    }

    /** Runs until the pod has ended; never throws. */
    async live() {
        try {
            await this.prepare();
            for (const container of this.pod.spec.initContainers ?? []) {
                const { exitCode } = await this.untilItSucceeds(container);
                if (exitCode !== 0) {
                    this.finish("Failed");
                    return;
                }
            }
            const results = await Promise.all(this.pod.spec.containers.map((one) => this.repeat(one)));
            this.finish(results.every(({ exitCode }) => exitCode === 0) ? "Succeeded" : "Failed");
        } catch (error) {
            if (!(error instanceof Ended)) {
                this.world.violations.push(`the double failed: ${error.stack}`);
            }
            this.finish("Failed");
        } finally {
            await this.sandbox?.release();
            this.isOver = true;
            await this.writing; // into its folder, which may be removed from now on
            if (this.isEnding && !this.isLost && !this.isKept) {
                this.world.store.settle(POD, this.pod);
            }
        }
    }

    // ---- before the first container

    async prepare() {
        const { pod, world } = this;
        const { hostname } = pod.spec;
        this.setStates([...pod.spec.containers, ...(pod.spec.initContainers ?? [])], "ContainerCreating");
        const node = world.store.find(NODE, undefined, pod.spec.nodeName);
        this.change((next) => {
            next.status.hostIP = node?.status.addresses[0].address;
            next.status.startTime = world.time();
            ["Initialized", "Ready", "ContainersReady"].forEach((type) => setCondition(world, next,
                { type, status: type === "Initialized" ? "True" : "False", ...(type !== "Initialized"
                    && { reason: "ContainersNotReady" }) }));
        });
        this.folder = await this.kubelet.folderOf(pod);
        await this.mountVolumes();
        this.sandbox = await this.kubelet.network.join(hostname ?? pod.metadata.name.slice(0, 63),
            this.kubelet.world.settings.forward);
        this.etc = Object.fromEntries(["hosts", "hostname", "resolv.conf", "nsswitch.conf"].map(
            (name) => [name, join(this.folder, name)]));
        const own = `${this.sandbox.address}\t${hostname && pod.spec.subdomain
            ? `${hostname}.${pod.spec.subdomain}.${pod.metadata.namespace}.svc.cluster.local ` : ""}${
            hostname ?? pod.metadata.name}`;
        this.own = ["127.0.0.1\tlocalhost", "::1\tlocalhost ip6-localhost ip6-loopback", own];
        writeFileSync(this.etc.hostname, `${hostname ?? pod.metadata.name}\n`);
        writeFileSync(this.etc["resolv.conf"], `search ${pod.metadata.namespace}.svc.cluster.local `
            + "svc.cluster.local\n");
        writeFileSync(this.etc["nsswitch.conf"], "passwd: files\ngroup: files\nshadow: files\nhosts: files\n");
        this.change((next) => {
            next.status.podIP = this.sandbox.address;
            next.status.podIPs = [{ ip: this.sandbox.address }];
        });
        this.kubelet.tellNames();
        await this.writing;
    }

    tellNames(lines) {
        if (!this.own || this.isOver) {
            return;
        }
        const text = `${[...this.own, ...lines].join("\n")}\n`;
        this.writing = this.writing.then(() => overwrite(this.etc.hosts, text));
    }

    async mountVolumes() {
        const below = join(this.folder, "volumes");
        await mkdir(below, { recursive: true });
        this.volumes = new Map();
        for (const volume of this.pod.spec.volumes ?? []) {
            this.volumes.set(volume.name, await this.again(() => makeVolume(this.world, this.pod, volume, below),
                (error) => error instanceof NotMounted && this.event("Warning", "FailedMount",
                    `MountVolume.SetUp failed for volume "${volume.name}" : ${error.message}`)));
        }
    }

    /** Until something can be done. report: says why not, and false where that is no reason to wait. */
    async again(attempt, report) {
        for (;;) {
            this.check();
            try {
                return await attempt();
            } catch (error) {
                if (report(error) === false) {
                    throw error;
                }
            }
            await this.pause(this.world.settings.retryMs);
        }
    }

    pause(ms) {
        return new Promise((resolve) => {
            this.wake = resolve;
            setTimeout(resolve, ms);
        });
    }

    check() {
        if (this.isEnding) {
            throw new Ended();
        }
    }

    // ---- containers

    async repeat(container) {
        const { restartPolicy } = this.pod.spec;
        for (let count = 0; ; count++) {
            const end = await this.runOnce(container, count);
            const isRepeated = restartPolicy === "Always" || (restartPolicy === "OnFailure" && end.exitCode !== 0);
            if (!isRepeated || this.isEnding) {
                return end;
            }
            await this.backOff(container, end, count);
        }
    }

    async untilItSucceeds(container) {
        for (let count = 0; ; count++) {
            const end = await this.runOnce(container, count);
            if (end.exitCode === 0 || this.pod.spec.restartPolicy === "Never") {
                return end;
            }
            await this.backOff(container, end, count);
        }
    }

    async backOff(container, end, count) {
        const { name } = this.pod.metadata;
        const message = `back-off 10s restarting failed container=${container.name} pod=${name}`;
        this.setState(container, { waiting: { reason: "CrashLoopBackOff", message } },
            { lastState: { terminated: end }, restartCount: count + 1 });
        this.event("Warning", "BackOff", `Back-off restarting failed container ${container.name} in pod ${name}`);
        await this.pause(this.world.settings.backoffMs);
        this.check();
    }

    async runOnce(container, count) {
        const { world, pod } = this;
        await this.pull(container);
        const env = await this.again(() => environment(world, pod, container), (error) => {
            if (!(error instanceof CannotCreate)) {
                return false;
            }
            this.setState(container, { waiting: { reason: error.reason, message: error.message } });
            return this.event("Warning", "Failed", `Error: ${error.message}`);
        });
        this.event("Normal", "Created", `Created container: ${container.name}`);
        const kind = world.settings.images[container.image];
        const error = startError(kind, container, env);
        if (error) {
            this.event("Warning", "Failed", `Error: ${error}`);
            return this.ended(container, { exitCode: 128, reason: "StartError", message: error });
        }
        const log = this.kubelet.newLog(pod, container.name);
        if (kind === "exec format") {
            log.write("stderr", Buffer.from(`exec ${container.command?.[0] ?? "/bin/sh"}: exec format error\n`));
            log.end();
            return this.ended(container, { exitCode: 255, reason: "Error" });
        }
        return this.execute(container, log, env, count);
    }

    async execute(container, log, env, count) {
        const folder = join(this.folder, `container-${container.name}-${count}`);
        await mkdir(folder, { recursive: true });
        const running = new Container(this.world, { pod: this.pod, container, folder, volumes: this.volumes,
            sandbox: this.sandbox, log, etc: this.etc });
        this.containers.set(container.name, running);
        await running.start(env);
        if (this.isEnding) { // since before it could be told
            running.signal(this.isLost ? "SIGKILL" : "SIGTERM");
        }
        const startedAt = this.world.time();
        this.event("Normal", "Started", `Started container ${container.name}`);
        this.setState(container, { running: { startedAt } }, { ready: true, started: true });
        const end = await running.ended;
        return this.ended(container, { ...end, startedAt });
    }

    /** What is left of a container's log when it wrote no last words and has failed. */
    endOfLog({ name, terminationMessagePolicy }, { exitCode, message }) {
        const isWanted = terminationMessagePolicy === "FallbackToLogsOnError" && exitCode !== 0 && !message;
        const text = isWanted && this.kubelet.logsOf(this.pod).get(name)?.current.all().slice(-80).map(
            (entry) => entry.text).join("\n").slice(-2048);
        return text ? { message: `${text}\n` } : {};
    }

    ended(container, end) {
        const time = this.world.time();
        const terminated = { startedAt: time, ...end, ...this.endOfLog(container, end), finishedAt: time,
            containerID: `containerd://${this.pod.metadata.uid}` };
        this.setState(container, { terminated }, { ready: false, started: false });
        return terminated;
    }

    async pull(container) {
        const { image } = container;
        this.event("Normal", "Pulling", `Pulling image "${image}"`);
        await this.pause(this.world.settings.pullMs);
        await this.again(() => {
            const problem = imageProblem(this.world, this.pod, image);
            if (problem) {
                throw new CannotCreate(problem.reason, problem.message);
            }
        }, (error) => error instanceof CannotCreate && this.notPulled(container, error));
        this.event("Normal", "Pulled", `Successfully pulled image "${image}" in 1s (1s including waiting). Image size: `
            + "48000000 bytes.");
    }

    notPulled(container, { reason, message }) {
        const { image } = container;
        const before = this.states.get(container.name).state.waiting?.reason;
        if (reason === "InvalidImageName") {
            this.setState(container, { waiting: { reason, message } });
            this.event("Warning", "InspectFailed", message);
        } else if (before === reason || before === "ImagePullBackOff") {
            this.event("Normal", "BackOff", `Back-off pulling image "${image}"`);
            this.setState(container, { waiting: { reason: "ImagePullBackOff",
                message: `Back-off pulling image "${image}": ErrImagePull: ${message}` } });
        } else {
            this.event("Warning", "Failed", `Failed to pull image "${image}": ${message}`);
            this.event("Warning", "Failed", "Error: ErrImagePull");
            this.setState(container, { waiting: { reason, message } });
        }
        return true;
    }

    // ---- the end

    /** As a deletion asks: first with time to end, then without. */
    terminate(graceMs) {
        const isFirst = !this.isEnding;
        this.isEnding = true;
        this.wake?.();
        if (isFirst) {
            this.containers.forEach((container, name) => {
                if (!container.isOver) {
                    this.event("Normal", "Killing", `Stopping container ${name}`);
                }
                container.signal("SIGTERM");
            });
        }
        clearTimeout(this.timer);
        this.timer = setTimeout(() => this.containers.forEach((one) => one.signal("SIGKILL")), graceMs);
        if (this.isOver) {
            clearTimeout(this.timer);
            setImmediate(() => this.world.store.settle(POD, this.pod));
        }
    }

    /** The API does not know it any more: it ends as it would, and tells nobody. */
    async abandon(graceMs) {
        this.isLost = true;
        this.terminate(graceMs);
        await this.life;
    }

    /** Its node needs what it uses: it has failed, whatever it says, and stays to be looked at. */
    evict() {
        this.isKept = true;
        this.terminate(0);
    }

    /** At once, whatever the API says: the machine is off. */
    async kill() {
        this.isEnding = true;
        this.isLost = true;
        this.wake?.();
        clearTimeout(this.timer);
        this.containers.forEach((one) => one.signal("SIGKILL"));
        await this.life;
    }

    finish(phase) {
        clearTimeout(this.timer);
        if (this.isLost) {
            return;
        }
        this.change((next) => {
            next.status.phase = this.isKept ? "Failed" : phase;
            ["Ready", "ContainersReady"].forEach((type) => setCondition(this.world, next, { type, status: "False",
                reason: phase === "Succeeded" ? "PodCompleted" : "PodFailed" }));
        });
    }

    // ---- status

    change(change) {
        if (!this.isLost) {
            this.pod = this.world.store.change(POD, this.pod, change) ?? this.pod;
        }
    }

    event(type, reason, message) {
        if (!this.isLost) {
            this.world.event(type, this.pod, reason, message, SOURCE);
        }
    }

    setStates(containers, reason) {
        containers.forEach(({ name, image }) => this.states.set(name, { name, image, imageID: "", restartCount: 0,
            ready: false, started: false, state: { waiting: { reason } }, lastState: {} }));
        this.tellStates();
    }

    setState({ name }, state, more = {}) {
        this.states.set(name, { ...this.states.get(name), ...more, state });
        this.tellStates();
    }

    tellStates() {
        const { containers, initContainers = [] } = this.pod.spec;
        const of = (list) => list.map(({ name }) => this.states.get(name));
        const isReady = of(containers).every(({ ready }) => ready);
        this.change((next) => {
            next.status.containerStatuses = of(containers);
            if (initContainers.length) {
                next.status.initContainerStatuses = of(initContainers);
            }
            if (of(containers).some(({ state }) => state.running)) {
                next.status.phase = "Running";
            }
            if (isReady) {
                ["Ready", "ContainersReady"].forEach(
                    (type) => setCondition(this.world, next, { type, status: "True" }));
            }
        });
    }
}
