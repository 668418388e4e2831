// Label and field selectors.
import { badRequest } from "./status.mjs";

const KEY = /^([a-z0-9.-]+\/)?[A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?$/;
const REQUIREMENTS = [
    { form: /^(\S+)\s+(in|notin)\s+\(([^)]*)\)$/, make: ([, key, word, values]) => {
        const all = values.split(",").map((value) => value.trim());
        return { key, matches: (value) => (word === "in" ? all.includes(value) : !all.includes(value)) };
    } },
    { form: /^([^=!\s]+)\s*(==|=|!=)\s*(\S*)$/, make: ([, key, sign, wanted]) => ({ key,
        matches: (value) => (sign === "!=" ? value !== wanted : value === wanted) }) },
    { form: /^!\s*(\S+)$/, make: ([, key]) => ({ key, matches: (value) => value === undefined }) },
    { form: /^([^=!\s]+)$/, make: ([, key]) => ({ key, matches: (value) => value !== undefined }) },
];

// Commas within parentheses do not separate.
const split = (text) => text.split(/,(?![^(]*\))/).map((part) => part.trim()).filter(Boolean);

function requirement(text) {
    for (const { form, make } of REQUIREMENTS) {
        const found = form.exec(text);
        if (found) {
            const made = make(found);
            if (KEY.test(made.key)) {
                return made;
            }
        }
    }
    throw badRequest(`unable to parse requirement: ${text}`);
}

/** A function of labels. */
export function labelSelector(text = "") {
    const all = split(text).map(requirement);
    return (labels = {}) => all.every(({ key, matches }) => matches(labels[key]));
}

/** A function of an object with {matchLabels}, or of plain labels. */
export const matchesLabels = (wanted, labels = {}) => Object.entries(wanted ?? {}).every(
    ([key, value]) => labels[key] === value);

const FIELDS = {
    Pod: ["spec.nodeName", "status.phase", "spec.restartPolicy", "spec.schedulerName", "spec.serviceAccountName",
        "status.podIP"],
    Event: ["involvedObject.kind", "involvedObject.namespace", "involvedObject.name", "involvedObject.uid",
        "involvedObject.apiVersion", "involvedObject.fieldPath", "reason", "type", "reportingComponent"],
    Job: ["status.successful"], Secret: ["type"], Namespace: ["status.phase"], Node: ["spec.unschedulable"],
};

const at = (object, path) => path.split(".").reduce((value, name) => value?.[name], object);

/** A function of objects of this type. */
export function fieldSelector(type, text = "") {
    const known = ["metadata.name", ...(type.cluster ? [] : ["metadata.namespace"]), ...(FIELDS[type.kind] ?? [])];
    const all = split(text).map((part) => {
        const found = /^([^=!]+)(==|=|!=)(.*)$/.exec(part);
        if (!found) {
            throw badRequest(`invalid selector: '${text}'; can't understand '${part}'`);
        }
        const [, path, sign, wanted] = found;
        if (!known.includes(path)) {
            throw badRequest(`field label not supported: ${path}`);
        }
        return (object) => (String(at(object, path) ?? "") === wanted) === (sign !== "!=");
    });
    return (object) => all.every((matches) => matches(object));
}
