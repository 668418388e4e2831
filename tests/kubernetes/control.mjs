// The side of the double that tests see: POST <admin>/<what> with JSON.
//
//   reset                    stops all pods; everything is as at the beginning
//   look                     {requests, violations} since the last reset or forget; resizes of terminals ever
//   forget                   forgets those
//   able                     {reason}: why pods cannot run here; null: they can
//   settings  {...}          changes settings (world.mjs); clock: what the clock is ahead, in milliseconds
//   faults    [...]          what shall go wrong from now on (faults.mjs)
//   away                     nobody listens any more; back: they do again
//   tokens    {revoke, add: {token: {until}}}   revoke: those that were given out are no longer good
//   forbid    [{verb, resource, group, namespace}]   what the user may not do; "*" for any verb or resource
//   compact                  forgets the history of changes: who continues a watch or a list is told 410
//   cut                      ends all watches and logs that are followed
//   objects   {kind, namespace}   the objects of a kind
//   create    {kind, object or objects}   what somebody else makes; a Job or pod with a status has come to that
//   patch, delete   {kind, namespace, name, patch or options}   what somebody else does
//   node      {name, do, ...}     lose (evict: whether its pods are asked to go), back, remove, cordon, uncordon,
//                                 drain, add (with what world.mjs has of nodes)
//   kueue     {namespace, name}   Kueue takes the quota of a Job away, for one of higher priority
//   pod       {namespace, name, do, ...}   preempt, evict, oom, kill (signal), pid: of its first process, collect: its
//                                 node makes room by removing the logs
//   log       {namespace, name, container, text or size, end}   adds to a pod's log
//   written   {namespace, name, container}   everything that was ever written to a log, whatever was rotated
import { filler } from "../doubles.mjs";
import { JOB, NODE, POD, byKind } from "./kinds.mjs";
import { disrupt, evict, loseNode, removeNode, returnNode } from "./disruption.mjs";
import { applyPatch, MERGE } from "./patch.mjs";
import { execCredential } from "./pki.mjs";
import { writeFileSync } from "node:fs";

const NODES = {
    lose: loseNode, back: returnNode, remove: removeNode,
    cordon: ({ world }, node) => setSpec(world, node, true),
    uncordon: ({ world }, node) => setSpec(world, node, undefined),
    drain(double, node) {
        const { world } = double;
        setSpec(world, node, true);
        world.store.list(POD).filter((pod) => pod.spec.nodeName === node.metadata.name).forEach(
            (pod) => disrupt(world, pod, "EvictionByEvictionAPI"));
    },
};

function setSpec(world, node, unschedulable) {
    world.store.change(NODE, node, ({ spec }) => {
        if (unschedulable) {
            spec.unschedulable = true;
        } else {
            delete spec.unschedulable;
        }
    });
}

const runningIn = ({ kubelet }, pod, container) => kubelet.runners.get(pod.metadata.uid).containers.get(
    container ?? pod.spec.containers[0].name);

const PODS = {
    preempt: ({ world }, pod) => disrupt(world, pod, "PreemptionByScheduler"),
    evict: (double, pod, { message }) => evict(double, pod, message),
    oom(double, pod, { container }) {
        const running = runningIn(double, pod, container);
        running.oom = true;
        running.signal("SIGKILL");
    },
    kill: (double, pod, { container, signal = "SIGKILL" }) => runningIn(double, pod, container).signal(signal),
    collect: ({ kubelet }, pod) => kubelet.logsOf(pod).forEach((log) => { log.isCollected = true; }),
    pid: (double, pod, { container }) => ({ pid: runningIn(double, pod, container).pid }),
};

const podOf = ({ world: { store } }, { namespace = "default", name }) => store.get(POD, namespace, name);

const ACTIONS = {
    reset: (double) => double.reset(),
    able: ({ kubelet: { reason } }) => ({ reason: reason ?? null }),
    look: ({ world: { requests, violations, resizes } }) => ({ requests, violations, resizes }),
    forget: ({ world }) => void Object.assign(world, { requests: [], violations: [] }),
    settings({ world, kueue }, { clock, ...settings }) {
        Object.assign(world.settings, settings);
        world.offset = clock ?? world.offset;
        kueue.look(world.store.list(JOB));
    },
    faults: ({ world }, faults) => void Object.assign(world, { faults }),
    away: (double) => double.goAway(),
    back: (double) => double.comeBack(),
    tokens({ world }, { revoke, add = {}, credential }) {
        if (revoke) {
            world.tokens.clear();
        }
        Object.entries(add).forEach(([token, about]) => world.tokens.set(token, about ?? {}));
        if (credential) {
            writeFileSync(`${world.settings.folder}/credential.json`,
                execCredential(credential.token, credential.expirationTimestamp));
        }
    },
    forbid: ({ world }, forbids) => void Object.assign(world, { forbids }),
    compact: ({ world }) => world.store.compact(),
    cut: ({ world }) => world.endWatches(),
    objects: ({ world: { store } }, { kind, namespace }) => store.list(byKind(kind), namespace),
    create: (double, { kind, object, objects = [object] }) => objects.map((one) => createOne(double, kind, one)),
    patch({ world: { store } }, { kind, namespace = "default", name, patch }) {
        const type = byKind(kind);
        const object = store.get(type, type.cluster ? undefined : namespace, name);
        return store.update(type, object, applyPatch(type, object, MERGE, patch));
    },
    delete({ world: { store } }, { kind, namespace = "default", name, options }) {
        const type = byKind(kind);
        store.delete(type, store.get(type, type.cluster ? undefined : namespace, name),
            { propagationPolicy: "Background", ...options });
    },
    kueue({ world: { store }, kueue }, { namespace = "default", name }) {
        kueue.preempt(store.get(JOB, namespace, name));
    },
    node(double, { name, do: what, ...more }) {
        if (what === "add") {
            double.world.addNode(name, more);
            return;
        }
        NODES[what](double, double.world.store.get(NODE, undefined, name), more);
    },
    pod: (double, { do: what, ...more }) => PODS[what](double, podOf(double, more), more),
    log(double, { container, text, size, end, ...more }) {
        const pod = podOf(double, more), name = container ?? pod.spec.containers[0].name;
        const log = double.kubelet.logsOf(pod).get(name)?.current ?? double.kubelet.newLog(pod, name);
        log.write("stdout", text === undefined ? filler(size ?? 0) : Buffer.from(text));
        if (end) {
            log.end();
        }
    },
    written(double, { container, ...more }) {
        const pod = podOf(double, more), name = container ?? pod.spec.containers[0].name;
        const { current } = double.kubelet.logsOf(pod).get(name);
        return { text: current.all().map(({ text, isWhole }) => text + (isWhole ? "\n" : "")).join(""),
            pieces: current.pieces.length };
    },
};

function createOne({ world, api }, kind, object) {
    const type = byKind(kind);
    if (type !== JOB && type !== POD) {
        return world.store.create(type, object);
    }
    const made = api.make(type, object);
    return object.status ? world.store.change(type, made, (next) => { next.status = object.status; }) : made;
}

export async function control(double, method, url, body) {
    const action = ACTIONS[url.pathname.slice(1)];
    if (method !== "POST" || !action) {
        return { status: 404, body: { error: `no action ${url.pathname}` } };
    }
    return { status: 200, body: (await action(double, body.length ? JSON.parse(body) : {})) ?? {} };
}
