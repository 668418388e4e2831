// Pod Security admission: what the labels of a namespace demand of its pods, in the words of the server. Of the
// standards it has the controls that a run's pod can touch.
//
// Source: kubernetes.io/docs/concepts/security/pod-security-standards and pod-security-admission;
// github.com/kubernetes/pod-security-admission, admission/admission.go and policy/
import { NAMESPACE } from "./kinds.mjs";

const LABEL = "pod-security.kubernetes.io/";
const ADDABLE = ["AUDIT_WRITE", "CHOWN", "DAC_OVERRIDE", "FOWNER", "FSETID", "KILL", "MKNOD", "NET_BIND_SERVICE",
    "SETFCAP", "SETGID", "SETPCAP", "SETUID", "SYS_CHROOT"];
const VOLUMES = ["configMap", "csi", "downwardAPI", "emptyDir", "ephemeral", "persistentVolumeClaim", "projected",
    "secret"];

const quoted = (names) => names.map((name) => `"${name}"`).join(", ");
const several = (word, names) => `${word}${names.length > 1 ? "s" : ""} ${quoted(names)}`;
const containersOf = (spec) => [...(spec.initContainers ?? []), ...spec.containers];
const wrong = (spec, isWrong) => containersOf(spec).filter(({ securityContext = {}, ...rest }) =>
    isWrong(securityContext, rest)).map(({ name }) => name);
const typeOf = (volume) => Object.keys(volume).find((key) => key !== "name");

/** A complaint about containers, where there are any. */
const about = (names, what, must) => names.length > 0 && `${what} (${several("container", names)} ${must})`;

const BASELINE = [
    (spec) => {
        const shared = ["hostNetwork", "hostPID", "hostIPC"].filter((one) => spec[one]);
        return shared.length > 0 && `host namespaces (${shared.map((one) => `${one}=true`).join(", ")})`;
    },
    (spec) => {
        const names = (spec.volumes ?? []).filter(({ hostPath }) => hostPath).map(({ name }) => name);
        return names.length > 0 && `hostPath volumes (${several("volume", names)})`;
    },
    (spec) => about(wrong(spec, (_, { ports = [] }) => ports.some(({ hostPort }) => hostPort)), "hostPort",
        "uses a hostPort"),
    (spec) => about(wrong(spec, ({ privileged }) => privileged), "privileged",
        "must not set securityContext.privileged=true"),
    (spec) => about(wrong(spec, ({ capabilities }) => (capabilities?.add ?? []).some((one) => !ADDABLE.includes(one))),
        "non-default capabilities", "must not include other capabilities in securityContext.capabilities.add"),
    (spec) => {
        const isFree = (context) => context?.seccompProfile?.type === "Unconfined";
        return isFree(spec.securityContext) ? `seccompProfile (pod must not set securityContext.seccompProfile.type to `
            + `"Unconfined")` : about(wrong(spec, isFree), "seccompProfile",
            `must not set securityContext.seccompProfile.type to "Unconfined"`);
    },
];

/** What a container has of its own, or of its pod. */
const effective = (spec, context, field) => context[field] ?? spec.securityContext?.[field];

const RESTRICTED = [
    (spec) => about(wrong(spec, ({ allowPrivilegeEscalation }) => allowPrivilegeEscalation !== false),
        "allowPrivilegeEscalation != false", "must set securityContext.allowPrivilegeEscalation=false"),
    (spec) => about(wrong(spec, ({ capabilities }) => !(capabilities?.drop ?? []).includes("ALL")
        || (capabilities?.add ?? []).some((one) => one !== "NET_BIND_SERVICE")), "unrestricted capabilities",
        `must set securityContext.capabilities.drop=["ALL"]`),
    (spec) => {
        const bad = (spec.volumes ?? []).filter((volume) => !VOLUMES.includes(typeOf(volume)));
        return bad.length > 0 && `restricted volume types (${several("volume", bad.map(({ name }) => name))} `
            + `${bad.length > 1 ? "use" : "uses"} restricted volume type "${typeOf(bad[0])}")`;
    },
    (spec) => {
        const names = wrong(spec, (context) => effective(spec, context, "runAsNonRoot") !== true);
        return names.length > 0 && `runAsNonRoot != true (pod or ${several("container", names)} must set `
            + "securityContext.runAsNonRoot=true)";
    },
    (spec) => spec.securityContext?.runAsUser === 0 ? "runAsUser=0 (pod must not set runAsUser=0)"
        : about(wrong(spec, ({ runAsUser }) => runAsUser === 0), "runAsUser=0", "must not set runAsUser=0"),
    (spec) => {
        const names = wrong(spec, (context) => !["RuntimeDefault", "Localhost"].includes(
            effective(spec, context, "seccompProfile")?.type));
        return names.length > 0 && `seccompProfile (pod or ${several("container", names)} must set `
            + `securityContext.seccompProfile.type to "RuntimeDefault" or "Localhost")`;
    },
];

const CHECKS = { privileged: [], baseline: BASELINE, restricted: [...BASELINE, ...RESTRICTED] };

/** The level that a namespace has for a mode. Servers from 1.26 on warn of what they enforce, where nothing else is
 * said. */
function levelOf({ store, settings }, namespace, mode) {
    const labels = store.find(NAMESPACE, undefined, namespace)?.metadata.labels ?? {};
    const isLabelled = labels[LABEL + mode] !== undefined || Number(settings.version.split(".")[1]) < 26;
    const from = mode === "warn" && !isLabelled ? "enforce" : mode;
    return { level: labels[LABEL + from] ?? "privileged", version: labels[`${LABEL}${from}-version`] ?? "latest" };
}

/** 'PodSecurity "restricted:latest": ...'; undefined: there is nothing against the pod. */
export function violation(world, namespace, mode, spec) {
    const { level, version } = levelOf(world, namespace, mode);
    const found = CHECKS[level].map((check) => check(spec)).filter(Boolean);
    return found.length ? `PodSecurity "${level}:${version}": ${found.join(", ")}` : undefined;
}

/** What the server warns of when somebody makes such an object: the pods of a Job are only warned of. */
export function warningsOf(world, type, object) {
    const spec = { Pod: object?.spec, Job: object?.spec?.template?.spec }[type.kind];
    const found = spec && violation(world, object.metadata.namespace, "warn", spec);
    return found ? [`would violate ${found}`] : [];
}
