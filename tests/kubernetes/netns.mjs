// Networks for pods: a bridge in a network namespace of its own, and one namespace for each pod on it. None of them has
// a name: each lives as long as the process that holds it, and those end with this one.
import { execFile, spawn } from "node:child_process";
import { existsSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";

const run = promisify(execFile);
export const SETPRIV = "/usr/bin/setpriv", NSENTER = "/usr/bin/nsenter", UNSHARE = "/usr/bin/unshare";
export const WITH_PARENT = [SETPRIV, "--pdeathsig", "KILL", "--"];
const FORWARD = fileURLToPath(new URL("forward.py", import.meta.url));
const PATH = "/usr/sbin:/usr/bin:/sbin:/bin";

/** Why pods cannot run here; undefined: they can. */
export async function whyNot() {
    if (process.getuid() !== 0) {
        return "pods in network namespaces need root";
    }
    const missing = [SETPRIV, NSENTER, UNSHARE].find((program) => !existsSync(program));
    if (missing) {
        return `${missing} is missing`;
    }
    try {
        await run(UNSHARE, ["--net", "--mount", "--uts", "--ipc", "ip", "link", "add", "br0", "type", "bridge"],
            { env: { PATH } });
        return undefined;
    } catch (error) {
        return `no network namespaces: ${error.stderr.trim()}`;
    }
}

/** A process that holds namespaces until its input ends. */
const hold = (script) => keep([UNSHARE, "--net", "--uts", "--ipc", "/bin/sh", "-ec",
    `${script}\necho ready\nexec cat >/dev/null`]);

/** A process that leads connections in the network of another one to this machine's loopback. */
const forward = (pid, ports) => keep(["/usr/bin/python3", FORWARD, String(pid), ...ports.map(String)]);

/** A process that says when it is ready, and ends with its input. */
async function keep(command) {
    const [program, ...words] = WITH_PARENT;
    const child = spawn(program, [...words, ...command], { stdio: ["pipe", "pipe", "inherit"], env: { PATH } });
    const ended = new Promise((resolve) => { child.once("close", resolve); });
    child.stdin.on("error", () => {});
    const isReady = await Promise.race([ended.then(() => false),
        new Promise((resolve) => { child.stdout.once("data", () => resolve(true)); })]);
    if (!isReady) {
        throw new Error(`it ended at once: ${command}`);
    }
    return { pid: child.pid, async release() {
        child.stdin.end();
        await ended;
    } };
}

export class Network {
    async start() {
        this.next = 2;
        this.bridge = await hold("ip link add br0 type bridge; ip addr add 10.244.0.1/16 dev br0; ip link set br0 up; "
            + "ip link set lo up");
    }

    async stop() {
        await this.bridge?.release();
        this.bridge = undefined;
    }

    /** A namespace with that host name and an address of its own: {pid, address, release()}; its loopback has these
     * ports of this machine's. */
    async join(hostname, ports = []) {
        const number = this.next++;
        const address = `10.244.${Math.floor(number / 250)}.${number % 250 + 1}`;
        const holder = await hold(`hostname '${hostname}'; ip link set lo up`);
        await run(NSENTER, ["--target", String(this.bridge.pid), "--net", "/bin/sh", "-ec",
            `ip link add v${number} type veth peer name eth0 netns ${holder.pid}; `
            + `ip link set v${number} master br0 up`], { env: { PATH } });
        await run(NSENTER, ["--target", String(holder.pid), "--net", "/bin/sh", "-ec",
            `ip addr add ${address}/16 dev eth0; ip link set eth0 up; ip route add default via 10.244.0.1`],
        { env: { PATH } });
        const forwarder = ports.length ? await forward(holder.pid, ports) : undefined;
        return { ...holder, address, async release() {
            await forwarder?.release();
            await holder.release();
        } };
    }
}
