// The three kinds of patches.
import { badRequest, Refusal, unsupported } from "./status.mjs";

export const MERGE = "application/merge-patch+json", JSON_PATCH = "application/json-patch+json",
    STRATEGIC = "application/strategic-merge-patch+json";

const isObject = (value) => value !== null && typeof value === "object" && !Array.isArray(value);

/** RFC 7396. */
function merge(target, patch, list = (_, given) => given, name = "") {
    if (!isObject(patch)) {
        return Array.isArray(patch) ? list(target, patch, name) : patch;
    }
    const merged = isObject(target) ? { ...target } : {};
    for (const [key, value] of Object.entries(patch)) {
        if (value === null) {
            delete merged[key];
        } else {
            merged[key] = merge(merged[key], value, list, key);
        }
    }
    return merged;
}

// ---- strategic: lists of objects with a key are merged by it

const MERGE_KEYS = { containers: "name", initContainers: "name", volumes: "name", env: "name", conditions: "type",
    volumeMounts: "mountPath", imagePullSecrets: "name", ownerReferences: "uid", ports: "port", taints: "key" };

function mergeLists(target, given, name) {
    if (name === "finalizers") {
        return [...new Set([...(target ?? []), ...given])];
    }
    const key = MERGE_KEYS[name];
    if (!key || !Array.isArray(target)) {
        return given.filter((item) => item?.$patch === undefined);
    }
    const merged = [...target];
    for (const item of given) {
        const index = merged.findIndex((other) => other[key] === item[key]);
        if (item.$patch === "delete") {
            merged.splice(index, index < 0 ? 0 : 1);
        } else if (index < 0) {
            merged.push(item);
        } else {
            merged[index] = merge(merged[index], item, mergeLists);
        }
    }
    return merged;
}

// Directives about the order of lists say nothing that is kept here.
function withoutDirectives(value) {
    if (Array.isArray(value)) {
        return value.map(withoutDirectives);
    }
    if (!isObject(value)) {
        return value;
    }
    return Object.fromEntries(Object.entries(value).filter(([key]) => !key.startsWith("$setElementOrder")
        && !key.startsWith("$retainKeys")).map(([key, member]) => [key, withoutDirectives(member)]));
}

// ---- RFC 6902

const unescaped = (part) => part.replaceAll("~1", "/").replaceAll("~0", "~");

const OPERATIONS = {
    add: (parent, key, { value }) => (Array.isArray(parent)
        ? parent.splice(key === "-" ? parent.length : Number(key), 0, value) : parent[key] = value),
    replace(parent, key, { value, path }) {
        mustHave(parent, key, path);
        parent[key] = value;
    },
    remove(parent, key, { path }) {
        mustHave(parent, key, path);
        return Array.isArray(parent) ? parent.splice(Number(key), 1) : delete parent[key];
    },
    test(parent, key, { value, path }) {
        if (JSON.stringify(parent[key]) !== JSON.stringify(value)) {
            throw impossible(`testing value ${path} failed: test failed`);
        }
    },
};

const impossible = (message) => new Refusal(422, "Invalid", `the server rejected our request due to an error in our `
    + `request: ${message}`);

function mustHave(parent, key, path) {
    if (!(key in parent)) {
        throw impossible(`the path ${path} does not exist`);
    }
}

function applyJson(object, operations) {
    if (!Array.isArray(operations)) {
        throw badRequest("error decoding patch: json: cannot unmarshal object into Go value of type jsonpatch.Patch");
    }
    const result = structuredClone(object);
    for (const operation of operations) {
        const parts = operation.path.split("/").slice(1).map(unescaped);
        const key = parts.pop();
        const parent = parts.reduce((value, part) => value?.[part], result);
        if (!OPERATIONS[operation.op] || parent === undefined) {
            throw impossible(`${operation.op} operation does not apply: doc is missing path: "${operation.path}"`);
        }
        OPERATIONS[operation.op](parent, key, operation);
    }
    return result;
}

/** The object with a patch of that content type applied to it. */
export function applyPatch(type, object, contentType, patch) {
    const known = type.custom ? [JSON_PATCH, MERGE] : [JSON_PATCH, MERGE, STRATEGIC];
    if (!known.includes(contentType)) {
        throw unsupported(known);
    }
    if (contentType === JSON_PATCH) {
        return applyJson(object, patch);
    }
    if (!isObject(patch)) {
        throw badRequest("the patch is not an object");
    }
    return contentType === MERGE ? merge(object, patch) : merge(object, withoutDirectives(patch), mergeLists);
}

/** What a patch would set, as a body that can be checked; undefined where it does not say by itself. */
export const asBody = (contentType, patch) => (contentType === JSON_PATCH ? undefined : withoutDirectives(patch));
