// What the server makes of an object that it is given: defaults, and what an old server does not know.
import { randomUUID } from "node:crypto";

/** Fields of a Job's spec, and the minor version of 1.x from which a server keeps them. */
const SINCE = { completionMode: 22, suspend: 22, ttlSecondsAfterFinished: 21, podFailurePolicy: 26,
    backoffLimitPerIndex: 28, maxFailedIndexes: 28, podReplacementPolicy: 29, successPolicy: 31 };

const minor = ({ version }) => Number(version.split(".")[1]);

/** The fields of a Job's spec that this version does not know. */
export const newerFields = (settings, type, object) => type.kind === "Job"
    ? Object.keys(SINCE).filter((field) => SINCE[field] > minor(settings) && object.spec?.[field] !== undefined) : [];

export function dropNewer(settings, type, object) {
    newerFields(settings, type, object).forEach((field) => delete object.spec[field]);
    return object;
}

/** Whether it heeds fieldValidation; earlier ones ignored it. */
export const validates = (settings) => settings.strict && minor(settings) >= 25;

export const knows = (settings, field) => minor(settings) >= SINCE[field];

const CONTAINER = { terminationMessagePath: "/dev/termination-log", terminationMessagePolicy: "File",
    imagePullPolicy: "IfNotPresent" };
const MODE = 0o644;

function completeContainer(container) {
    const { limits = {}, requests = {} } = container.resources ?? {};
    // What is limited is also requested.
    const all = { ...limits, ...requests };
    return { ...CONTAINER, ...container, resources: Object.keys(all).length ? { limits, requests: all } : {} };
}

function completeVolume(volume) {
    const { secret, configMap, projected, ...rest } = volume;
    return { ...rest, ...(secret && { secret: { defaultMode: MODE, ...secret } }),
        ...(configMap && { configMap: { defaultMode: MODE, ...configMap } }),
        ...(projected && { projected: { defaultMode: MODE, ...projected } }) };
}

export function completePodSpec(spec) {
    return { restartPolicy: "Always", terminationGracePeriodSeconds: 30, dnsPolicy: "ClusterFirst",
        securityContext: {}, schedulerName: "default-scheduler", ...spec,
        containers: spec.containers.map(completeContainer),
        ...(spec.initContainers && { initContainers: spec.initContainers.map(completeContainer) }),
        ...(spec.volumes && { volumes: spec.volumes.map(completeVolume) }) };
}

const COMPLETE = {
    Job(job, settings) {
        job.metadata.uid = randomUUID();
        const { spec, metadata: { uid, name } } = job;
        const isNew = minor(settings) >= 27;
        const both = (key, value) => ({ [key]: value, ...(isNew && { [`batch.kubernetes.io/${key}`]: value }) });
        const { template } = spec;
        job.spec = { parallelism: 1, ...(spec.parallelism === undefined && spec.completions === undefined
            && { completions: 1 }), backoffLimit: 6,
        ...(knows(settings, "completionMode") && { completionMode: "NonIndexed", suspend: false }),
        ...(knows(settings, "podReplacementPolicy")
            && { podReplacementPolicy: spec.podFailurePolicy ? "Failed" : "TerminatingOrFailed" }),
        manualSelector: false, ...spec,
        selector: { matchLabels: both("controller-uid", uid) },
        template: { ...template, metadata: { ...template.metadata, labels: { ...template.metadata?.labels,
            ...both("controller-uid", uid), ...both("job-name", name) } },
        spec: completePodSpec(template.spec) } };
        job.status = {};
    },
    Pod(pod) {
        const { requests } = pod.spec.containers[0].resources ?? {};
        pod.spec = { serviceAccountName: "default", serviceAccount: "default", enableServiceLinks: true,
            ...completePodSpec(pod.spec), priority: pod.spec.priority ?? 0, preemptionPolicy: "PreemptLowerPriority" };
        pod.status = { phase: "Pending", qosClass: requests ? "Burstable" : "BestEffort" };
    },
    Secret(secret) {
        secret.type ??= "Opaque";
        const plain = Object.entries(secret.stringData ?? {}).map(([key, text]) =>
            [key, Buffer.from(text).toString("base64")]);
        if (plain.length) {
            secret.data = { ...secret.data, ...Object.fromEntries(plain) };
        }
        delete secret.stringData;
    },
    Service(service) {
        const { spec } = service;
        const address = `10.96.${Math.floor(Math.random() * 256)}.${Math.floor(Math.random() * 256)}`;
        service.spec = { type: "ClusterIP", sessionAffinity: "None", ...spec, clusterIP: spec.clusterIP ?? address,
            clusterIPs: [spec.clusterIP ?? address], internalTrafficPolicy: "Cluster", ipFamilies: ["IPv4"],
            ipFamilyPolicy: "SingleStack" };
        service.status = { loadBalancer: {} };
    },
    Namespace(namespace) {
        namespace.status = { phase: "Active" };
    },
};

/** Fills in, in place. */
export function complete(settings, type, object) {
    COMPLETE[type.kind]?.(object, settings);
    return object;
}
