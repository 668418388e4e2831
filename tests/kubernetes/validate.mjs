// What the server itself has against an object: the parts of its validation that a client can run into.
import { cause, required, wrongValue } from "./status.mjs";

const LABEL_NAME = /^[a-z0-9]([-a-z0-9]*[a-z0-9])?$/;
const SUBDOMAIN = /^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$/;
const LABEL_VALUE = /^([A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?)?$/;
const LABEL_KEY = /^([a-z0-9]([-a-z0-9.]*[a-z0-9])?\/)?[A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?$/;
const QUANTITY = /^[+-]?(\d+|\d*\.\d+|\d+\.)([eE][+-]?\d+|[numkMGTPE]|[KMGTPE]i)?$/;
const MAX_DATA = 1024 * 1024;
const CORE = ["cpu", "memory", "ephemeral-storage"];
const SOURCES = ["secret", "configMap", "projected", "emptyDir", "hostPath", "persistentVolumeClaim", "csi",
    "downwardAPI", "nfs", "ephemeral", "azureFile", "image", "iscsi"];

const RFC1123 = "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and "
    + "must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is "
    + "'[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')";
const RFC1123_LABEL = "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must "
    + "start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is "
    + "'[a-z0-9]([-a-z0-9]*[a-z0-9])?')";
const VALUE_FORM = "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and "
    + "must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for "
    + "validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')";

const atMost = (length) => `must be no more than ${length} characters`;

function* checkLabels(labels, field) {
    for (const [key, value] of Object.entries(labels ?? {})) {
        if (!LABEL_KEY.test(key)) {
            yield wrongValue(field, key, "name part must consist of alphanumeric characters, '-', '_' or '.', and must "
                + "start and end with an alphanumeric character");
        }
        if (value.length > 63) {
            yield wrongValue(field, value, atMost(63));
        } else if (!LABEL_VALUE.test(value)) {
            yield wrongValue(field, value, VALUE_FORM);
        }
    }
}

function* checkName(type, name, field) {
    const isLabel = ["Service", "Namespace"].includes(type.kind);
    const most = { Service: 63, Namespace: 63, Job: 63 }[type.kind] ?? 253;
    if (!name) {
        yield required(field, "name or generateName is required");
    } else if (name.length > most) {
        yield wrongValue(field, name, atMost(most));
    } else if (!(isLabel ? LABEL_NAME : SUBDOMAIN).test(name)) {
        yield wrongValue(field, name, isLabel ? RFC1123_LABEL : RFC1123);
    }
}

function* checkMetadata(type, { name, labels, annotations, ownerReferences }) {
    yield* checkName(type, name, "metadata.name");
    yield* checkLabels(labels, "metadata.labels");
    for (const key of Object.keys(annotations ?? {})) {
        if (!LABEL_KEY.test(key.toLowerCase())) {
            yield wrongValue("metadata.annotations", key, "name part must consist of alphanumeric characters");
        }
    }
    const size = Object.entries(annotations ?? {}).reduce((sum, [key, value]) => sum + key.length + value.length, 0);
    if (size > 256 * 1024) {
        yield cause("FieldValueTooLong", "metadata.annotations", "Too long: may not be more than 262144 bytes");
    }
    for (const [index, owner] of (ownerReferences ?? []).entries()) {
        for (const member of ["apiVersion", "kind", "name", "uid"].filter((one) => !owner[one])) {
            yield wrongValue(`metadata.ownerReferences[${index}].${member}`, "", `${member} must not be empty`);
        }
    }
}

// ---- pods

function* checkResources(resources, field) {
    const { limits = {}, requests = {} } = resources ?? {};
    for (const [part, all] of Object.entries({ limits, requests })) {
        for (const [name, value] of Object.entries(all)) {
            const where = `${field}.${part}[${name}]`;
            if (!QUANTITY.test(String(value))) {
                yield wrongValue(where, value, "quantities must match the regular expression "
                    + "'^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'");
            } else if (!CORE.includes(name) && !/^\d+$/.test(String(value))) {
                yield wrongValue(where, value, "must be an integer");
            }
        }
    }
    for (const [name, value] of Object.entries(requests)) {
        if (!CORE.includes(name) && limits[name] !== value) {
            yield wrongValue(`${field}.requests`, value, `must be equal to ${name} limit of ${limits[name] ?? 0}`);
        }
    }
}

function* checkContainer(container, field, volumes) {
    if (!container.name) {
        yield required(`${field}.name`);
    } else if (!LABEL_NAME.test(container.name) || container.name.length > 63) {
        yield wrongValue(`${field}.name`, container.name, RFC1123_LABEL);
    }
    if (!container.image) {
        yield required(`${field}.image`);
    }
    for (const [index, { name, mountPath }] of (container.volumeMounts ?? []).entries()) {
        if (!volumes.includes(name)) {
            yield cause("FieldValueNotFound", `${field}.volumeMounts[${index}].name`, `Not found: "${name}"`);
        }
        if (!mountPath) {
            yield required(`${field}.volumeMounts[${index}].mountPath`);
        }
    }
    const paths = (container.volumeMounts ?? []).map(({ mountPath }) => mountPath);
    for (const [index, path] of paths.entries()) {
        if (paths.indexOf(path) < index) {
            yield wrongValue(`${field}.volumeMounts[${index}].mountPath`, path, "must be unique");
        }
    }
    for (const [index, { name, value, valueFrom }] of (container.env ?? []).entries()) {
        if (!name) {
            yield required(`${field}.env[${index}].name`);
        }
        if (value !== undefined && valueFrom) {
            yield wrongValue(`${field}.env[${index}].valueFrom`, "", "may not be specified when `value` is not empty");
        }
    }
    yield* checkResources(container.resources, `${field}.resources`);
}

function* checkVolumes(volumes, field) {
    const names = volumes.map(({ name }) => name);
    for (const [index, volume] of volumes.entries()) {
        const where = `${field}[${index}]`;
        const sources = SOURCES.filter((source) => source in volume);
        if (!LABEL_NAME.test(volume.name ?? "") || volume.name.length > 63) {
            yield volume.name ? wrongValue(`${where}.name`, volume.name, RFC1123_LABEL) : required(`${where}.name`);
        }
        if (names.indexOf(volume.name) < index) {
            yield cause("FieldValueDuplicate", `${where}.name`, `Duplicate value: "${volume.name}"`);
        }
        if (sources.length !== 1) {
            yield sources.length ? cause("FieldValueForbidden", `${where}.${sources[1]}`,
                "Forbidden: may not specify more than 1 volume type") : required(where, "must specify a volume type");
        }
    }
}

export function* checkPodSpec(spec, field) {
    const volumes = spec.volumes ?? [];
    yield* checkVolumes(volumes, `${field}.volumes`);
    if (!spec.containers?.length) {
        yield required(`${field}.containers`);
    }
    for (const part of ["initContainers", "containers"]) {
        for (const [index, container] of (spec[part] ?? []).entries()) {
            yield* checkContainer(container, `${field}.${part}[${index}]`, volumes.map(({ name }) => name));
        }
    }
    for (const member of ["hostname", "subdomain"]) {
        if (spec[member] && (!LABEL_NAME.test(spec[member]) || spec[member].length > 63)) {
            yield wrongValue(`${field}.${member}`, spec[member], RFC1123_LABEL);
        }
    }
    for (const [index, { key, operator, value }] of (spec.tolerations ?? []).entries()) {
        if (operator === "Exists" ? value : !key) {
            yield wrongValue(`${field}.tolerations[${index}].operator`, operator,
                key ? "value must be empty when `operator` is 'Exists'" : "operator must be Exists when `key` is "
                    + "empty, which means \"match all values and all keys\"");
        }
    }
}

// ---- jobs

function* checkRule({ action, onExitCodes, onPodConditions }, field, containers) {
    if (!["FailJob", "FailIndex", "Ignore", "Count"].includes(action)) {
        yield required(`${field}.action`, `valid values: ["Count" "FailIndex" "FailJob" "Ignore"]`);
    }
    if (Boolean(onExitCodes) === Boolean(onPodConditions?.length)) {
        yield wrongValue(field, "", "specifying one of OnExitCodes and OnPodConditions is required");
    }
    if (onExitCodes) {
        const { operator, values = [], containerName } = onExitCodes;
        if (!["In", "NotIn"].includes(operator)) {
            yield required(`${field}.onExitCodes.operator`, `valid values: ["In" "NotIn"]`);
        }
        if (!values.length || (operator === "In" && values.includes(0))) {
            yield wrongValue(`${field}.onExitCodes.values`, values, values.length ? "must not be 0 for the In operator"
                : "at least one value is required");
        }
        if (values.some((value, index) => index > 0 && value <= values[index - 1])) {
            yield wrongValue(`${field}.onExitCodes.values`, values, "must be ordered");
        }
        if (containerName && !containers.includes(containerName)) {
            yield wrongValue(`${field}.onExitCodes.containerName`, containerName,
                "must be one of the container or initContainer names in the pod template");
        }
    }
    for (const [index, { type, status }] of (onPodConditions ?? []).entries()) {
        if (!type || !["True", "False", "Unknown"].includes(status)) {
            yield required(`${field}.onPodConditions[${index}].${type ? "status" : "type"}`);
        }
    }
}

function* checkJob({ metadata, spec = {} }) {
    const { template, completions, completionMode, parallelism, podFailurePolicy } = spec;
    for (const field of ["parallelism", "completions", "backoffLimit", "ttlSecondsAfterFinished"]) {
        if (spec[field] < 0) {
            yield wrongValue(`spec.${field}`, spec[field], "must be greater than or equal to 0");
        }
    }
    if (completionMode === "Indexed") {
        if (completions === undefined) {
            yield required("spec.completions", "when completion mode is Indexed");
        } else if (`${metadata.name}-${completions - 1}`.length > 63) {
            yield wrongValue("metadata.name", metadata.name, "will not able to create pod with invalid DNS label: "
                + `${metadata.name}-${completions - 1}`);
        }
        if (parallelism > 100000) {
            yield wrongValue("spec.parallelism", parallelism, "must be less than or equal to 100000 when completion "
                + "mode is Indexed and completions is set");
        }
    } else if (completionMode !== undefined && completionMode !== "NonIndexed") {
        yield cause("FieldValueNotSupported", "spec.completionMode", `Unsupported value: "${completionMode}": `
            + `supported values: "Indexed", "NonIndexed"`);
    }
    if (!template?.spec) {
        yield required("spec.template.spec");
        return;
    }
    yield* checkLabels(template.metadata?.labels, "spec.template.metadata.labels");
    yield* checkPodSpec(template.spec, "spec.template.spec");
    const { restartPolicy } = template.spec;
    if (!["Never", "OnFailure"].includes(restartPolicy)) {
        yield restartPolicy ? cause("FieldValueNotSupported", "spec.template.spec.restartPolicy",
            `Unsupported value: "${restartPolicy}": supported values: "OnFailure", "Never"`)
            : required("spec.template.spec.restartPolicy", `valid values: "OnFailure", "Never"`);
    }
    if (podFailurePolicy && restartPolicy !== "Never") {
        yield wrongValue("spec.template.spec.restartPolicy", restartPolicy,
            `only "Never" is supported when podFailurePolicy is specified`);
    }
    const containers = (template.spec.containers ?? []).map(({ name }) => name);
    for (const [index, rule] of (podFailurePolicy?.rules ?? []).entries()) {
        yield* checkRule(rule, `spec.podFailurePolicy.rules[${index}]`, containers);
    }
}

// ---- the others

const bytes = (value) => Buffer.byteLength(value ?? "", "base64");

function* checkData({ data = {}, stringData = {}, binaryData = {}, kind }) {
    const isSecret = kind !== "ConfigMap";
    const size = Object.values(data).reduce((sum, value) => sum + (isSecret ? bytes(value) : value.length), 0)
        + Object.values(stringData).reduce((sum, value) => sum + Buffer.byteLength(value), 0)
        + Object.values(binaryData).reduce((sum, value) => sum + bytes(value), 0);
    if (size > MAX_DATA) {
        yield cause("FieldValueTooLong", isSecret ? "data" : "", "Too long: may not be more than 1048576 bytes");
    }
    for (const key of [...Object.keys(data), ...Object.keys(stringData)]) {
        if (!/^[-._a-zA-Z0-9]{1,253}$/.test(key)) {
            yield wrongValue(`data[${key}]`, key, "a valid config key must consist of alphanumeric characters, '-', "
                + "'_' or '.' (e.g. 'key.name',  or 'KEY_NAME',  or 'key-name', regex used for validation is "
                + "'[-._a-zA-Z0-9]+')");
        }
    }
}

function* checkSecret(secret) {
    yield* checkData({ ...secret, kind: "Secret" });
    const { type, data = {}, stringData = {} } = secret;
    if (type === "kubernetes.io/dockerconfigjson" && !(".dockerconfigjson" in { ...data, ...stringData })) {
        yield required("data[.dockerconfigjson]");
    }
}

function* checkService({ spec = {} }) {
    if (spec.clusterIP !== "None" && spec.type !== "ExternalName" && !spec.ports?.length) {
        yield required("spec.ports");
    }
    yield* checkLabels(spec.selector, "spec.selector");
}

const CHECKS = {
    Job: checkJob, Secret: checkSecret, Service: checkService,
    ConfigMap: (map) => checkData({ ...map, kind: "ConfigMap" }),
    Pod: ({ spec }) => checkPodSpec(spec ?? {}, "spec"),
};

/** The causes for which an object is no valid one. */
export const checkObject = (type, object) => [...checkMetadata(type, object.metadata),
    ...(CHECKS[type.kind]?.(object) ?? [])];

// ---- changes

const same = (a, b) => JSON.stringify(a) === JSON.stringify(b);
const IMMUTABLE = "field is immutable";

function* changedJob({ spec: was, status }, { spec: is }) {
    const isWaiting = was.suspend && !status?.startTime;
    const fixed = ["completionMode", "selector", "podFailurePolicy", ...(isWaiting ? [] : ["template"]),
        ...(was.completionMode === "Indexed" && is.completions === is.parallelism ? [] : ["completions"])];
    for (const field of fixed.filter((one) => !same(was[one], is[one]))) {
        yield wrongValue(`spec.${field}`, is[field], IMMUTABLE);
    }
}

function* changedSecret(was, is) {
    for (const field of ["data", ...(is.immutable ? [] : ["immutable"])].filter(() => was.immutable)) {
        if (!same(was[field], is[field])) {
            yield cause("FieldValueForbidden", field, "Forbidden: field is immutable when `immutable` is set");
        }
    }
    if (was.type !== is.type) {
        yield wrongValue("type", is.type, IMMUTABLE);
    }
}

const CHANGES = { Job: changedJob, Secret: changedSecret, ConfigMap: changedSecret };

export const checkChange = (type, was, is) => [...(CHANGES[type.kind]?.(was, is) ?? [])];
