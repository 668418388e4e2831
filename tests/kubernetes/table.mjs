// The forms of an answer that the Accept header asks for: the objects, their metadata alone, or a table.
import { notAcceptable } from "./status.mjs";

const FORMS = {
    Object: {
        one: (_, object) => object,
        list: (type, items, metadata) => ({ kind: `${type.kind}List`, apiVersion: type.apiVersion, metadata,
            items: items.map(({ kind, apiVersion, ...rest }) =>
                (type.custom ? { apiVersion, kind, ...rest } : rest)) }),
    },
    PartialObjectMetadata: {
        one: (_, { metadata }) => ({ kind: "PartialObjectMetadata", apiVersion: "meta.k8s.io/v1", metadata }),
        list: (type, items, metadata) => ({ kind: "PartialObjectMetadataList", apiVersion: "meta.k8s.io/v1", metadata,
            items: items.map((item) => FORMS.PartialObjectMetadata.one(type, item)) }),
    },
    Table: {
        one: (type, object, world) => FORMS.Table.list(type, [object],
            { resourceVersion: object.metadata.resourceVersion }, world),
        list(type, items, metadata, world) {
            const columns = [NAME, ...(COLUMNS[type.kind] ?? []), AGE];
            return { kind: "Table", apiVersion: "meta.k8s.io/v1", metadata,
                columnDefinitions: columns.map(({ name, type: kind = "string", priority = 0 }) =>
                    ({ name, type: kind, format: name === "Name" ? "name" : "", description: name, priority })),
                rows: items.map((item) => ({ cells: columns.map(({ cell }) => cell(item, world)),
                    object: FORMS.PartialObjectMetadata.one(type, item) })) };
        },
    },
};
FORMS.PartialObjectMetadataList = FORMS.PartialObjectMetadata;

/** The form that is asked for first and known. */
export function asked(accept = "*/*") {
    for (const part of accept.split(",")) {
        const [type, ...parameters] = part.split(";").map((word) => word.trim());
        const as = parameters.find((word) => word.startsWith("as="))?.slice(3);
        if (["application/json", "application/*", "*/*"].includes(type) && FORMS[as ?? "Object"]) {
            return FORMS[as ?? "Object"];
        }
    }
    throw notAcceptable();
}

// ---- columns as kubectl shows them

function age({ metadata }, world) {
    const seconds = Math.max(0, Math.floor((world.now() - Date.parse(metadata.creationTimestamp)) / 1000));
    return seconds < 120 ? `${seconds}s` : `${Math.floor(seconds / 60)}m`;
}

const NAME = { name: "Name", cell: ({ metadata }) => metadata.name };
const AGE = { name: "Age", cell: age };

const isTrue = (object, type) => object.status?.conditions?.some((one) => one.type === type && one.status === "True");

function podStatus({ metadata, status, spec }) {
    const state = status.containerStatuses?.[0]?.state ?? {};
    const shown = status.reason ?? state.waiting?.reason ?? state.terminated?.reason ?? status.phase;
    return metadata.deletionTimestamp && spec ? "Terminating" : shown;
}

function jobStatus(job) {
    const found = ["Complete", "Failed", "Suspended"].find((type) => isTrue(job, type));
    return job.metadata.deletionTimestamp ? "Terminating" : found ?? "Running";
}

const sum = (statuses, of) => (statuses ?? []).reduce((total, one) => total + of(one), 0);

const COLUMNS = {
    Pod: [
        { name: "Ready", cell: ({ status, spec }) =>
            `${sum(status.containerStatuses, (one) => Number(one.ready))}/${spec.containers.length}` },
        { name: "Status", cell: podStatus },
        { name: "Restarts", type: "integer", cell: ({ status }) => sum(status.containerStatuses,
            (one) => one.restartCount) },
    ],
    Job: [
        { name: "Status", cell: jobStatus },
        { name: "Completions", cell: ({ spec, status }) => `${status?.succeeded ?? 0}/${spec.completions ?? 1}` },
    ],
    Secret: [
        { name: "Type", cell: ({ type }) => type },
        { name: "Data", type: "integer", cell: ({ data }) => Object.keys(data ?? {}).length },
    ],
    Service: [
        { name: "Type", cell: ({ spec }) => spec.type },
        { name: "Cluster-IP", cell: ({ spec }) => spec.clusterIP },
    ],
    Node: [{ name: "Status", cell: (node) => (isTrue(node, "Ready") ? "Ready" : "NotReady") }],
    Namespace: [{ name: "Status", cell: ({ status }) => status.phase }],
    Event: [
        { name: "Type", cell: ({ type }) => type }, { name: "Reason", cell: ({ reason }) => reason },
        { name: "Object", cell: ({ involvedObject: { kind, name } }) => `${kind.toLowerCase()}/${name}` },
        { name: "Message", cell: ({ message }) => message },
    ],
};
