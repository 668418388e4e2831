// The volumes of a pod as folders of this machine that its containers mount.
import { chmodSync, mkdirSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";

import { CLAIM, CONFIG_MAP, SECRET } from "./kinds.mjs";

/** A volume that cannot be mounted yet: why, as the event FailedMount says it. */
export class NotMounted extends Error {}

const FIELDS = {
    "metadata.name": (pod) => pod.metadata.name, "metadata.namespace": (pod) => pod.metadata.namespace,
    "metadata.uid": (pod) => pod.metadata.uid, "spec.nodeName": (pod) => pod.spec.nodeName,
    "spec.serviceAccountName": (pod) => pod.spec.serviceAccountName, "status.podIP": (pod) => pod.status.podIP,
    "status.podIPs": (pod) => pod.status.podIP, "status.hostIP": (pod) => pod.status.hostIP,
};

/** The value of a fieldRef. */
export function fieldOf(pod, path) {
    const [, part, key] = /^metadata\.(labels|annotations)\['(.+)'\]$/.exec(path) ?? [];
    return (part ? pod.metadata[part]?.[key] : FIELDS[path]?.(pod)) ?? "";
}

/** The files of a Secret or ConfigMap that a volume wants: [{path, data, mode}]. */
function filesOf(world, type, pod, name, { items, optional, defaultMode }) {
    const found = world.store.find(type, pod.metadata.namespace, name);
    const word = type === SECRET ? "secret" : "configmap";
    if (!found) {
        if (optional) {
            return [];
        }
        throw new NotMounted(`${word} "${name}" not found`);
    }
    const all = Object.fromEntries([
        ...Object.entries(found.data ?? {}).map(([key, value]) => [key, Buffer.from(value,
            type === SECRET ? "base64" : "utf8")]),
        ...Object.entries(found.binaryData ?? {}).map(([key, value]) => [key, Buffer.from(value, "base64")])]);
    const wanted = items ?? Object.keys(all).map((key) => ({ key, path: key }));
    const missing = wanted.find(({ key }) => !(key in all));
    if (missing && !optional) {
        throw new NotMounted(`references non-existent ${word === "secret" ? "secret" : "config"} key: ${missing.key}`);
    }
    return wanted.filter(({ key }) => key in all).map(({ key, path, mode }) => ({ path, data: all[key],
        mode: mode ?? defaultMode }));
}

const downward = (pod, { items = [], defaultMode }) => items.map(({ path, fieldRef, mode }) => ({ path,
    data: fieldOf(pod, fieldRef.fieldPath), mode: mode ?? defaultMode }));

const PROJECTED = {
    secret: (world, pod, { name, ...rest }) => filesOf(world, SECRET, pod, name, rest),
    configMap: (world, pod, { name, ...rest }) => filesOf(world, CONFIG_MAP, pod, name, rest),
    downwardAPI: (world, pod, source) => downward(pod, source),
    serviceAccountToken: (world, pod, { path }) => [{ path, data: world.settings.token, mode: 0o600 }],
};

function projected(world, pod, { sources = [], defaultMode }) {
    return sources.flatMap((source) => {
        const [kind] = Object.keys(source);
        return PROJECTED[kind](world, pod, { defaultMode, ...source[kind] });
    });
}

function claim(world, pod, { claimName }) {
    const { claims } = world.settings;
    if (!world.store.find(CLAIM, pod.metadata.namespace, claimName)) {
        throw new NotMounted(`persistentvolumeclaim "${claimName}" not found`);
    }
    if (!claims[claimName]) {
        throw new NotMounted(`no folder of this machine stands for the claim ${claimName}`);
    }
    return claims[claimName];
}

function blob(world, pod, { driver, volumeAttributes = {} }) {
    const { secretName, containerName } = volumeAttributes;
    if (driver !== "blob.csi.azure.com") {
        throw new NotMounted(`rpc error: driver name ${driver} not found in the list of registered CSI drivers`);
    }
    if (secretName && !world.store.find(SECRET, pod.metadata.namespace, secretName)) {
        throw new NotMounted(`rpc error: code = Internal desc = could not get account key from secret(${secretName}): `
            + `secrets "${secretName}" not found`);
    }
    if (!world.settings.blobs[containerName]) {
        throw new NotMounted(`rpc error: code = Internal desc = Mount failed: container ${containerName} not found`);
    }
    return world.settings.blobs[containerName];
}

/** kind: makes {files} to be written, {folder} of this machine, {memory: size}, or an empty folder. */
const SOURCES = {
    secret: (world, pod, { secretName, ...rest }) => ({ files: filesOf(world, SECRET, pod, secretName, rest) }),
    configMap: (world, pod, { name, ...rest }) => ({ files: filesOf(world, CONFIG_MAP, pod, name, rest) }),
    projected: (world, pod, source) => ({ files: projected(world, pod, source) }),
    downwardAPI: (world, pod, source) => ({ files: downward(pod, source) }),
    emptyDir: (world, pod, { medium, sizeLimit }) => (medium === "Memory" ? { memory: sizeLimit ?? "" } : {}),
    hostPath: (world, pod, { path }) => ({ folder: path }),
    persistentVolumeClaim: (world, pod, source) => ({ folder: claim(world, pod, source) }),
    csi: (world, pod, source) => ({ folder: blob(world, pod, source) }),
};

/** Makes one volume below a folder: {folder, memory, readOnly}. */
export function makeVolume(world, pod, volume, below) {
    const [kind] = Object.keys(volume).filter((name) => SOURCES[name]);
    if (!kind) {
        throw new NotMounted(`the double has no volumes such as ${Object.keys(volume)}`);
    }
    const { files, folder, memory } = SOURCES[kind](world, pod, volume[kind] ?? {});
    const own = folder ?? join(below, volume.name);
    mkdirSync(own, { recursive: true });
    if (kind === "emptyDir") {
        chmodSync(own, 0o777);
    }
    for (const { path, data, mode } of files ?? []) {
        const file = join(own, path);
        mkdirSync(dirname(file), { recursive: true });
        writeFileSync(file, data);
        chmodSync(file, mode ?? 0o644);
    }
    return { folder: own, memory, readOnly: files !== undefined || volume[kind]?.readOnly === true };
}
