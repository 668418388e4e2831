// What the admission plugins have against an object: priority classes, service accounts, limits, Pod Security,
// webhooks, quotas.
import { ACCOUNT, EVENT, POD, PRIORITY, QUOTA } from "./kinds.mjs";
import { admitLimits, completeResources } from "./limitrange.mjs";
import { violation } from "./podsecurity.mjs";
import { formatQuantity, quantity } from "./quantity.mjs";
import { notAdmitted, Refusal } from "./status.mjs";
import { isFinished } from "./store.mjs";

/** Throws a refusal, or fills in what admission fills in. */
export function admit(world, type, object) {
    if (type === POD) {
        admitPriority(world, object);
        admitAccount(world, object);
        completeResources(world, object);
        admitLimits(world, type, object);
        admitSecurity(world, object);
    }
    admitWebhooks(world, type, object);
    admitQuota(world, type, object);
}

function admitSecurity(world, { metadata: { name, namespace }, spec }) {
    const found = violation(world, namespace, "enforce", spec);
    if (found) {
        throw notAdmitted(POD, name, `violates ${found}`);
    }
}

/** Those of the settings: they do not answer, or have something against all objects of their kinds. */
function admitWebhooks({ settings }, type, { metadata: { name } }) {
    for (const { name: webhook, resources, denies } of settings.webhooks) {
        if (!resources.includes(type.plural)) {
            continue;
        }
        if (denies) {
            throw new Refusal(403, "Forbidden", `admission webhook "${webhook}" denied the request: ${denies}`);
        }
        const why = `failed calling webhook "${webhook}": failed to call webhook: Post "https://${webhook}.svc:443/`
            + `check?timeout=10s": dial tcp 10.96.0.9:443: connect: connection refused`;
        throw new Refusal(500, "InternalError", `Internal error occurred: ${why}`,
            { details: { causes: [{ message: why }] } });
    }
}

function admitPriority({ store }, pod) {
    const name = pod.spec.priorityClassName;
    const found = name && store.find(PRIORITY, undefined, name);
    if (name && !found) {
        throw notAdmitted(POD, pod.metadata.name, `no PriorityClass with name ${name} was found`);
    }
    pod.spec.priority = found?.value ?? 0;
}

function admitAccount({ store }, pod) {
    const { namespace, name } = pod.metadata;
    const account = pod.spec.serviceAccountName;
    if (!store.find(ACCOUNT, namespace, account)) {
        throw notAdmitted(POD, name, `error looking up service account ${namespace}/${account}: serviceaccount `
            + `"${account}" not found`);
    }
}

/** What an object counts in a quota: {pods: 1, "requests.cpu": 2, ...} */
export function usage(type, object) {
    const counted = { [type.group ? `count/${type.plural}.${type.group}` : `count/${type.plural}`]: 1,
        ...(!type.group && { [type.plural]: 1 }) };
    if (type === POD) {
        for (const { resources = {} } of object.spec.containers) {
            for (const [part, all] of Object.entries(resources)) {
                for (const [name, value] of Object.entries(all)) {
                    const key = `${part}.${name}`;
                    counted[key] = (counted[key] ?? 0) + quantity(value);
                }
            }
        }
        counted.cpu = counted["requests.cpu"];
        counted.memory = counted["requests.memory"];
    }
    return counted;
}

/** A quota of processors or memory wants every container to say what it takes of them. */
function admitUnsaid(type, { metadata: { name }, spec }, quota) {
    const said = ({ resources: { limits = {}, requests = {} } = {} }, key) =>
        ({ limits, requests, [key]: requests })[key.split(".")[0]][key.split(".").at(-1)] !== undefined;
    const keys = Object.keys(quota.spec.hard).filter((key) => /^((limits|requests)\.)?(cpu|memory)$/.test(key));
    const missing = type === POD ? keys.filter((key) => spec.containers.some((one) => !said(one, key))) : [];
    if (missing.length) {
        throw notAdmitted(type, name, `failed quota: ${quota.metadata.name}: must specify ${missing.map((key) =>
            `${key} for: ${spec.containers.filter((one) => !said(one, key)).map((one) => one.name)}`).join("; ")}`);
    }
}

function admitQuota({ store }, type, object) {
    const { namespace, name } = object.metadata;
    const wanted = usage(type, object);
    for (const quota of store.list(QUOTA, namespace ?? "-")) {
        admitUnsaid(type, object, quota);
        const hard = Object.entries(quota.spec.hard).filter(([key]) => wanted[key] !== undefined);
        const others = store.list(type, namespace).filter((other) => !isFinished(other)).map(
            (other) => usage(type, other));
        const used = (key) => others.reduce((sum, other) => sum + (other[key] ?? 0), 0);
        const over = hard.filter(([key, most]) => used(key) + wanted[key] > quantity(most));
        if (over.length) {
            const list = (of) => over.map(([key, most]) => `${key}=${of(key, most)}`).join(",");
            throw notAdmitted(type, name, `exceeded quota: ${quota.metadata.name}, `
                + `requested: ${list((key) => formatQuantity(key, wanted[key]))}, `
                + `used: ${list((key) => formatQuantity(key, used(key)))}, limited: ${list((_, most) => most)}`);
        }
    }
}

/** The controller of quotas: says in each how much of it is used. */
export class Quotas {
    constructor({ store }) {
        this.store = store;
        store.events.on("change", ({ type }) => {
            if (type !== EVENT) {
                this.pending ??= setImmediate(() => this.tell());
            }
        });
    }

    tell() {
        this.pending = undefined;
        for (const quota of this.store.list(QUOTA)) {
            const types = [...this.store.maps.keys()];
            const all = types.flatMap((type) => this.store.list(type, quota.metadata.namespace)
                .filter((object) => !isFinished(object)).map((object) => usage(type, object)));
            const { hard } = quota.spec;
            const used = Object.fromEntries(Object.keys(hard).map((key) => [key,
                formatQuantity(key, all.reduce((sum, one) => sum + (one[key] ?? 0), 0))]));
            this.store.change(QUOTA, quota, (next) => { next.status = { hard, used }; });
        }
    }
}
