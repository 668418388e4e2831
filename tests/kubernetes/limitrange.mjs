// What the LimitRanges of a namespace make of a pod, and have against it.
//
// Source: kubernetes.io/docs/concepts/policy/limit-range; the defaults of a LimitRange itself are in
// kubernetes.io/docs/reference/kubernetes-api/policy-resources/limit-range-v1
import { LIMITS } from "./kinds.mjs";
import { formatQuantity, quantity } from "./quantity.mjs";
import { notAdmitted } from "./status.mjs";

/** What the server itself fills into an item: the most is what a container has, the least what it asks for. */
function completed({ max = {}, min = {}, ...given }) {
    const defaults = { ...max, ...given.default };
    return { max, min, defaults, requests: { ...min, ...defaults, ...given.defaultRequest } };
}

const itemsOf = ({ store }, namespace) => store.list(LIMITS, namespace).flatMap(({ spec }) => spec.limits)
    .filter(({ type }) => type === "Container").map(completed);

/** Fills in what containers do not say. */
export function completeResources(world, pod) {
    for (const { defaults, requests } of itemsOf(world, pod.metadata.namespace)) {
        for (const container of pod.spec.containers) {
            const { resources = {} } = container, limits = { ...defaults, ...resources.limits };
            container.resources = { limits, requests: { ...requests, ...resources.limits, ...resources.requests } };
        }
    }
}

function* complaints({ max, min }, { resources: { limits = {}, requests = {} } }) {
    for (const [name, most] of Object.entries(max)) {
        if (quantity(limits[name]) > quantity(most)) {
            yield `maximum ${name} usage per Container is ${formatQuantity(name, quantity(most))}, but limit is `
                + formatQuantity(name, quantity(limits[name]));
        }
    }
    for (const [name, least] of Object.entries(min)) {
        if (quantity(requests[name]) < quantity(least)) {
            yield `minimum ${name} usage per Container is ${formatQuantity(name, quantity(least))}, but request is `
                + formatQuantity(name, quantity(requests[name]));
        }
    }
}

export function admitLimits(world, type, pod) {
    const found = itemsOf(world, pod.metadata.namespace).flatMap((item) => pod.spec.containers.flatMap(
        (container) => [...complaints(item, container)]));
    if (found.length) {
        throw notAdmitted(type, pod.metadata.name, found.length > 1 ? `[${found.join(", ")}]` : found[0]);
    }
}
