// The kinds that the double serves.
//   checked   a model of the official client that bodies are held against: those that ACT makes
//   optional  is there only where the settings switch it on

const CORE = { group: "", version: "v1" };
const KINDS = [
    { ...CORE, kind: "Namespace", plural: "namespaces", short: ["ns"], cluster: true },
    { ...CORE, kind: "Node", plural: "nodes", short: ["no"], cluster: true, status: true },
    { ...CORE, kind: "Pod", plural: "pods", short: ["po"], status: true, checked: "V1Pod", graceful: true },
    { ...CORE, kind: "Secret", plural: "secrets", checked: "V1Secret" },
    { ...CORE, kind: "ConfigMap", plural: "configmaps", short: ["cm"], checked: "V1ConfigMap" },
    { ...CORE, kind: "Service", plural: "services", short: ["svc"], status: true, checked: "V1Service" },
    { ...CORE, kind: "Event", plural: "events", short: ["ev"] },
    { ...CORE, kind: "PersistentVolumeClaim", plural: "persistentvolumeclaims", short: ["pvc"], status: true },
    { ...CORE, kind: "ResourceQuota", plural: "resourcequotas", short: ["quota"], status: true },
    { ...CORE, kind: "LimitRange", plural: "limitranges", short: ["limits"] },
    { ...CORE, kind: "ServiceAccount", plural: "serviceaccounts", short: ["sa"] },
    { group: "batch", version: "v1", kind: "Job", plural: "jobs", status: true, checked: "V1Job", orphans: true,
        categories: ["all"] },
    { group: "scheduling.k8s.io", version: "v1", kind: "PriorityClass", plural: "priorityclasses", short: ["pc"],
        cluster: true },
    { group: "kueue.x-k8s.io", version: "v1beta1", kind: "LocalQueue", plural: "localqueues", status: true,
        optional: "kueue", custom: true },
    { group: "kueue.x-k8s.io", version: "v1beta1", kind: "Workload", plural: "workloads", status: true,
        optional: "kueue", custom: true },
    { group: "kueue.x-k8s.io", version: "v1beta1", kind: "ClusterQueue", plural: "clusterqueues", status: true,
        optional: "kueue", custom: true, cluster: true },
];

const VERBS = ["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"];

for (const type of KINDS) {
    type.apiVersion = type.group ? `${type.group}/${type.version}` : type.version;
    type.base = type.group ? `/apis/${type.apiVersion}` : "/api/v1";
    Object.freeze(type);
}

/** Those that are there with these settings. */
export const kindsOf = (settings) => KINDS.filter(({ optional }) => !optional || settings[optional]);

export const findPlural = (settings, base, plural) => kindsOf(settings).find(
    (type) => type.base === base && type.plural === plural);

export const byKind = (kind) => KINDS.find((type) => type.kind === kind);

export const POD = byKind("Pod"), JOB = byKind("Job"), EVENT = byKind("Event"), NODE = byKind("Node"),
    SECRET = byKind("Secret"), CONFIG_MAP = byKind("ConfigMap"), SERVICE = byKind("Service"),
    NAMESPACE = byKind("Namespace"), CLAIM = byKind("PersistentVolumeClaim"), QUOTA = byKind("ResourceQuota"),
    LIMITS = byKind("LimitRange"), PRIORITY = byKind("PriorityClass"), ACCOUNT = byKind("ServiceAccount");

// ---- what the server says about itself

export const groupsOf = (settings) => {
    const names = ["authorization.k8s.io", ...kindsOf(settings).map(({ group }) => group)];
    return [...new Set(names)].filter(Boolean).map((name) => {
        const version = kindsOf(settings).find(({ group }) => group === name)?.version ?? "v1";
        const one = { groupVersion: `${name}/${version}`, version };
        return { name, versions: [one], preferredVersion: one };
    });
};

const REVIEW = { name: "selfsubjectaccessreviews", singularName: "selfsubjectaccessreview", namespaced: false,
    kind: "SelfSubjectAccessReview", verbs: ["create"] };

/** An APIResourceList, or undefined. */
export function resourcesOf(settings, base) {
    const types = kindsOf(settings).filter((type) => type.base === base);
    const isReview = base === "/apis/authorization.k8s.io/v1";
    if (!types.length && !isReview) {
        return undefined;
    }
    return { kind: "APIResourceList", apiVersion: "v1", groupVersion: base.replace(/^\/apis?\//, ""),
        resources: isReview ? [REVIEW] : types.flatMap(describe) };
}

function describe(type) {
    const one = { name: type.plural, singularName: type.kind.toLowerCase(), namespaced: !type.cluster, kind: type.kind,
        verbs: VERBS, ...(type.short && { shortNames: type.short }), ...(type.categories
            && { categories: type.categories }) };
    const part = (name, verbs) => ({ name: `${type.plural}/${name}`, singularName: "", namespaced: !type.cluster,
        kind: type.kind, verbs });
    return [one, ...(type.status ? [part("status", ["get", "patch", "update"])] : []),
        ...(type === POD ? [part("log", ["get"]), part("exec", ["create", "get"])] : [])];
}
