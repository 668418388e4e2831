// The objects, with a history of their changes and the garbage collector.
import { EventEmitter } from "node:events";

import { alreadyExists, conflict, notFound } from "./status.mjs";

const HISTORY = 20000; // changes that a watch can go back

export class Store {
    constructor(world) {
        this.world = world;
        this.events = new EventEmitter().setMaxListeners(0);
        this.maps = new Map();
        Object.assign(this, { version: 100, history: [], oldest: 0 });
    }

    clear() {
        this.maps.clear();
        this.history = [];
        this.oldest = this.version;
        this.events.emit("cleared");
    }

    // ---- reading: what is given out must not be changed in place

    map(type) {
        if (!this.maps.has(type)) {
            this.maps.set(type, new Map());
        }
        return this.maps.get(type);
    }

    static key = (namespace, name) => `${namespace ?? ""}/${name}`;

    find(type, namespace, name) {
        return this.map(type).get(Store.key(namespace, name));
    }

    get(type, namespace, name) {
        const found = this.find(type, namespace, name);
        if (!found) {
            throw notFound(type, name);
        }
        return found;
    }

    /** By name, of one namespace or of all. */
    list(type, namespace) {
        const prefix = namespace && `${namespace}/`;
        return [...this.map(type)].filter(([key]) => !prefix || key.startsWith(prefix))
            .sort(([a], [b]) => (a < b ? -1 : 1)).map(([, object]) => object);
    }

    /** The same object as it is now: another of its name is not the same. */
    current(type, { metadata }) {
        const found = this.find(type, metadata.namespace, metadata.name);
        return found?.metadata.uid === metadata.uid ? found : undefined;
    }

    // ---- writing

    create(type, given) {
        const { name, namespace } = given.metadata;
        const found = this.find(type, namespace, name);
        if (found) {
            throw alreadyExists(type, name, found.metadata.deletionTimestamp);
        }
        const object = { kind: type.kind, apiVersion: type.apiVersion, ...structuredClone(given) };
        object.metadata = { ...object.metadata, uid: object.metadata.uid ?? this.world.uid(),
            creationTimestamp: this.world.time() };
        return this.put(type, "ADDED", object);
    }

    /** Replaces an object by its next state; nothing happens where nothing changes. */
    update(type, object, next) {
        const mine = { ...next, metadata: { ...next.metadata, resourceVersion: object.metadata.resourceVersion } };
        if (JSON.stringify(mine) === JSON.stringify(object)) {
            return object;
        }
        return this.put(type, "MODIFIED", structuredClone(mine), object);
    }

    /** Changes an object as it is now by a function; undefined where it is gone. */
    change(type, object, change) {
        const current = this.current(type, object);
        if (!current) {
            return undefined;
        }
        const next = structuredClone(current);
        change(next);
        const updated = this.update(type, current, next);
        this.finalize(type, updated);
        return updated;
    }

    remove(type, object) {
        const current = this.current(type, object);
        if (current) {
            this.map(type).delete(Store.key(current.metadata.namespace, current.metadata.name));
            this.put(type, "DELETED", structuredClone(current), current);
            this.collectSoon();
        }
    }

    put(type, action, object, before) {
        this.version += 1;
        object.metadata.resourceVersion = String(this.version);
        if (action === "ADDED") {
            object.metadata.generation = type.status ? 1 : undefined;
        }
        if (action !== "DELETED") {
            this.map(type).set(Store.key(object.metadata.namespace, object.metadata.name), object);
        }
        const change = { version: this.version, type, action, object, before };
        this.history.push(change);
        if (this.history.length > HISTORY) {
            this.compact(this.history[HISTORY / 2].version);
        }
        this.events.emit("change", change);
        return object;
    }

    /** Forgets the changes up to a version: who wants them is told 410. */
    compact(version = this.version) {
        this.history = this.history.filter((change) => change.version > version);
        this.oldest = version;
        this.version += 1; // of what is listed from now on
    }

    // ---- deletion

    /** Deletes as a client asks. Gives the object where it is still there, and nothing where it is gone. */
    delete(type, object, { propagationPolicy, gracePeriodSeconds, preconditions } = {}) {
        const { uid, resourceVersion, name } = object.metadata;
        if (preconditions?.uid && preconditions.uid !== uid) {
            throw conflict(type, name, `Precondition failed: UID in precondition: ${preconditions.uid}, `
                + `UID in object meta: ${uid}`);
        }
        if (preconditions?.resourceVersion && preconditions.resourceVersion !== resourceVersion) {
            throw conflict(type, name, `Precondition failed: ResourceVersion in precondition: `
                + `${preconditions.resourceVersion}, ResourceVersion in object meta: ${resourceVersion}`);
        }
        const policy = propagationPolicy ?? (type.orphans ? "Orphan" : "Background");
        const finalizer = { Foreground: "foregroundDeletion", Orphan: "orphan" }[policy];
        const isSlow = finalizer && this.dependents(object).length > 0;
        const grace = type.graceful && object.spec.nodeName && !isFinished(object)
            ? gracePeriodSeconds ?? object.spec.terminationGracePeriodSeconds ?? 30 : 0;
        if (!isSlow && grace === 0 && !object.metadata.finalizers?.length) {
            this.remove(type, object);
            return undefined;
        }
        this.change(type, object, (next) => {
            next.metadata.deletionTimestamp ??= this.world.time(this.world.now() + grace * 1000);
            next.metadata.deletionGracePeriodSeconds = Math.min(grace,
                next.metadata.deletionGracePeriodSeconds ?? grace);
            if (isSlow) {
                next.metadata.finalizers = [...new Set([...(next.metadata.finalizers ?? []), finalizer])];
            }
        });
        this.collectSoon();
        return this.current(type, object);
    }

    /** An object that shall go, and that nobody holds any more, goes. */
    finalize(type, object) {
        const { deletionTimestamp, deletionGracePeriodSeconds: grace, finalizers } = object.metadata;
        if (deletionTimestamp && !finalizers?.length && grace === 0) {
            this.remove(type, object);
        }
    }

    /** Nothing of a pod that shall go is left on its node: it goes, unless somebody holds it. */
    settle(type, object) {
        const { deletionTimestamp, finalizers } = this.current(type, object)?.metadata ?? {};
        if (!deletionTimestamp || !finalizers?.length) {
            this.remove(type, object);
            return;
        }
        this.change(type, object, (next) => {
            next.metadata.deletionGracePeriodSeconds = 0;
            next.status.phase = isFinished(next) ? next.status.phase : "Failed";
        });
    }

    // ---- garbage

    dependents({ metadata: { uid } }) {
        return [...this.maps].flatMap(([type, map]) => [...map.values()]
            .filter((object) => object.metadata.ownerReferences?.some((owner) => owner.uid === uid))
            .map((object) => ({ type, object })));
    }

    collectSoon() {
        this.collecting ??= setTimeout(() => {
            this.collecting = undefined;
            this.collect();
        }, this.world.settings.collectMs);
    }

    collect() {
        const all = [...this.maps].flatMap(([type, map]) => [...map.values()].map((object) => ({ type, object })));
        const uids = new Set(all.map(({ object }) => object.metadata.uid));
        for (const { type, object } of all) {
            const owners = object.metadata.ownerReferences ?? [];
            if (owners.length && owners.every(({ uid }) => !uids.has(uid))
                && !object.metadata.deletionTimestamp && this.current(type, object)) {
                this.delete(type, object, { propagationPolicy: "Background" });
            }
            this.follow(type, object);
        }
    }

    /** The finalizers of the garbage collector itself. */
    follow(type, object) {
        const { finalizers = [] } = object.metadata;
        if (!finalizers.some((name) => name === "orphan" || name === "foregroundDeletion")) {
            return;
        }
        const dependents = this.dependents(object);
        if (finalizers.includes("orphan")) {
            dependents.forEach(({ type: kind, object: dependent }) => this.change(kind, dependent, (next) => {
                next.metadata.ownerReferences = next.metadata.ownerReferences.filter(
                    ({ uid }) => uid !== object.metadata.uid);
            }));
        } else if (dependents.length > 0) {
            dependents.filter((one) => !one.object.metadata.deletionTimestamp).forEach((one) =>
                this.delete(one.type, one.object, { propagationPolicy: "Background" }));
            this.collectSoon();
            return;
        }
        this.change(type, object, (next) => {
            next.metadata.finalizers = finalizers.filter((name) => name !== "orphan" && name !== "foregroundDeletion");
        });
        this.finalize(type, this.current(type, object) ?? object);
    }
}

export const isFinished = ({ status }) => ["Succeeded", "Failed"].includes(status?.phase);
