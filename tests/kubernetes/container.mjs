// A container: a process with a root of its own, in the network of its pod.
import { spawn } from "node:child_process";
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { constants } from "node:os";
import { delimiter, join } from "node:path";

import { CONFIG_MAP, SECRET } from "./kinds.mjs";
import { NSENTER, UNSHARE, WITH_PARENT } from "./netns.mjs";
import { quantity } from "./quantity.mjs";
import { fieldOf } from "./volumes.mjs";

const PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
const MAX_MESSAGE = 4096;

/** A container that cannot be made: reason as the state of one that waits, message. */
export class CannotCreate extends Error {
    constructor(reason, message) {
        super(message);
        this.reason = reason;
    }
}

const config = (message) => new CannotCreate("CreateContainerConfigError", message);

// ---- what it runs

function keyOf(world, pod, type, { name, key, optional }) {
    const { namespace } = pod.metadata;
    const found = world.store.find(type, namespace, name);
    const value = found?.data?.[key];
    if (value === undefined && !optional) {
        throw config(found ? `couldn't find key ${key} in ${type.kind} ${namespace}/${name}`
            : `${type.kind.toLowerCase()} "${name}" not found`);
    }
    return value === undefined || type !== SECRET ? value : Buffer.from(value, "base64").toString();
}

function allOf(world, pod, type, prefix, { name, optional }) {
    const found = world.store.find(type, pod.metadata.namespace, name);
    if (!found && !optional) {
        throw config(`${type.kind.toLowerCase()} "${name}" not found`);
    }
    return Object.keys(found?.data ?? {}).map((key) => [`${prefix}${key}`,
        keyOf(world, pod, type, { name, key })]);
}

function valueOf(world, pod, { value = "", valueFrom }) {
    const { fieldRef, secretKeyRef, configMapKeyRef } = valueFrom ?? {};
    return fieldRef ? fieldOf(pod, fieldRef.fieldPath)
        : secretKeyRef ? keyOf(world, pod, SECRET, secretKeyRef)
            : configMapKeyRef ? keyOf(world, pod, CONFIG_MAP, configMapKeyRef) : value;
}

// $(NAME) stands for a variable that is known, $$( for itself.
const expand = (text, env) => text.replace(/\$\$|\$\(([^)]+)\)/g,
    (whole, name) => (whole === "$$" ? "$" : env[name] ?? whole));

/** The environment of a container. */
export function environment(world, pod, container) {
    const env = { PATH, HOME: "/root", HOSTNAME: pod.spec.hostname ?? pod.metadata.name };
    for (const { prefix = "", secretRef, configMapRef } of container.envFrom ?? []) {
        Object.assign(env, Object.fromEntries(secretRef ? allOf(world, pod, SECRET, prefix, secretRef)
            : allOf(world, pod, CONFIG_MAP, prefix, configMapRef)));
    }
    for (const variable of container.env ?? []) {
        const value = valueOf(world, pod, variable);
        if (value !== undefined) {
            env[variable.name] = expand(value, env);
        }
    }
    return { KUBERNETES_SERVICE_HOST: "10.96.0.1", KUBERNETES_SERVICE_PORT: "443", ...env };
}

function words(container, env) {
    const all = [...(container.command ?? []), ...(container.args ?? [])].map((word) => expand(word, env));
    return all.length ? all : ["/bin/true"];
}

const exists = (program, env) => (program.includes("/") ? existsSync(program)
    : env.PATH.split(delimiter).some((folder) => existsSync(join(folder, program))));

/** Why the runtime could not start it, as its state says; undefined: it can. */
export function startError(kind, container, env) {
    const [program] = words(container, env);
    const where = program.includes("/") ? `stat ${program}: no such file or directory`
        : "executable file not found in $PATH";
    return kind === "StartError" || !exists(program, env)
        ? "failed to create containerd task: failed to create shim task: OCI runtime create failed: runc create "
            + `failed: unable to start container process: exec: "${program}": ${where}: unknown` : undefined;
}

// ---- its root

// The first process of the new namespace, with this one to wait for it. Job control: it shall not ignore Ctrl-C.
const FIRST = `set -m
exec 4>&2 2>/dev/null
${WITH_PARENT.join(" ")} /bin/sh -e "$0" "$@" 2>&4 4>&- &
exec 3>&- 4>&-
wait $!
exit`;

const quote = (text) => `'${String(text).replaceAll("'", "'\\''")}'`;

const ROOT = `
R=$1/root
/usr/bin/mount --make-rprivate /
/usr/bin/mount -t overlay overlay -o "lowerdir=/,upperdir=$1/upper,workdir=$1/work" "$R"
/usr/bin/mount -t proc proc "$R/proc"
/usr/bin/mount --rbind /sys "$R/sys"
/usr/bin/mount -t tmpfs -o mode=755 tmpfs "$R/dev"
/usr/bin/mkdir "$R/dev/pts" "$R/dev/shm"
/usr/bin/cp -a /dev/null /dev/zero /dev/full /dev/random /dev/urandom /dev/tty /dev/fd /dev/stdin /dev/stdout \\
    /dev/stderr "$R/dev"
/usr/bin/mount -t devpts -o newinstance,ptmxmode=0666,mode=620 devpts "$R/dev/pts"
/usr/bin/mount -t tmpfs -o size=64m,mode=1777 shm "$R/dev/shm"
/usr/bin/ln -s pts/ptmx "$R/dev/ptmx"
/usr/bin/mount -t tmpfs -o mode=1777 tmpfs "$R/tmp"
file() {
    [ -d "\${2%/*}" ] || /usr/bin/mkdir -p "\${2%/*}"
    [ -e "$2" ] || : >"$2"
    /usr/bin/mount --bind "$1" "$2"
}
folder() {
    [ -d "$2" ] || /usr/bin/mkdir -p "$2"
    /usr/bin/mount --bind "$1" "$2"
}
`;

function mountLines(container, volumes) {
    const mounts = [...(container.volumeMounts ?? [])].sort((a, b) => a.mountPath.length - b.mountPath.length);
    return mounts.flatMap(({ name, mountPath, subPath, readOnly }) => {
        const { folder, memory, readOnly: always } = volumes.get(name);
        const target = `"$R"${quote(mountPath)}`;
        if (memory !== undefined) {
            const size = memory && `,size=${quantity(memory)}`;
            return [`/usr/bin/mkdir -p ${target}`, `/usr/bin/mount -t tmpfs -o mode=1777${size} tmpfs ${target}`];
        }
        const source = subPath ? join(folder, subPath) : folder;
        return [`if [ -f ${quote(source)} ]; then file ${quote(source)} ${target}`,
            `else /usr/bin/mkdir -p ${quote(source)}; folder ${quote(source)} ${target}; fi`,
            ...(always || readOnly ? [`/usr/bin/mount -o remount,bind,ro ${target}`] : [])];
    });
}

export class Container {
    /** pod: a Pod of the store; log: where its output goes; etc: files for /etc: {hosts: path, ...}. */
    constructor(world, { pod, container, folder, volumes, sandbox, log, etc }) {
        Object.assign(this, { world, pod, container, folder, volumes, sandbox, log, etc });
        this.message = join(folder, "termination-log");
    }

    /** Starts it, and waits until its command runs; ended is a promise of {exitCode, reason, message}. */
    start(env) {
        const { folder, container } = this;
        this.env = env;
        ["root", "upper", "work"].forEach((name) => mkdirSync(join(folder, name), { recursive: true }));
        writeFileSync(this.message, "");
        const script = join(folder, "start");
        writeFileSync(script, this.script());
        const [program, ...rest] = [...WITH_PARENT, NSENTER, "--target", String(this.sandbox.pid), "--net", "--uts",
            "--ipc", "--", UNSHARE, "--mount", "--pid", "--", "/bin/bash", "-c", FIRST, script, folder,
            ...words(container, env)];
        this.child = spawn(program, rest, { env, stdio: ["ignore", "pipe", "pipe", "pipe"], detached: true });
        for (const stream of ["stdout", "stderr"]) {
            this.child[stream].on("data", (data) => this.log.write(stream, data));
        }
        const begun = new Promise((resolve) => { this.child.stdio[3].once("data", resolve); });
        this.ended = new Promise((resolve) => {
            this.child.once("close", (code, signal) => resolve(this.outcome(code, signal)));
        });
        return Promise.race([begun, this.ended]);
    }

    script() {
        const { container } = this;
        const files = [...Object.entries(this.etc).map(([name, path]) => [path, `/etc/${name}`]),
            [this.message, container.terminationMessagePath ?? "/dev/termination-log"]];
        return [ROOT, ...files.map(([from, to]) => `file ${quote(from)} "$R"${quote(to)}`),
            ...mountLines(container, this.volumes), "shift", "echo >&3", "exec 3>&-",
            container.workingDir ? `/usr/bin/mkdir -p "$R"${quote(container.workingDir)}` : ":",
            `exec /usr/sbin/chroot "$R" /usr/bin/env --chdir=${quote(container.workingDir ?? "/")} -- "$@"`, ""]
            .join("\n");
    }

    outcome(code, signal) {
        this.isOver = true;
        this.log.end();
        const exitCode = signal ? 128 + constants.signals[signal] : code;
        const reason = this.oom ? "OOMKilled" : exitCode === 0 ? "Completed" : "Error";
        const message = readFileSync(this.message).subarray(0, MAX_MESSAGE).toString();
        return { exitCode, reason, ...(message && { message }) };
    }

    /** The first process of the container. */
    get pid() {
        const { pid } = this.child;
        try {
            const [first] = readFileSync(`/proc/${pid}/task/${pid}/children`, "utf8").split(" ");
            return first ? Number(first) : undefined;
        } catch {
            return undefined;
        }
    }

    signal(signal) {
        const pid = !this.isOver && this.pid;
        if (pid) {
            process.kill(pid, signal);
        }
    }
}
