// Holds bodies against the official client: its attribute maps know every field and its type, and the schemas of
// kubernetes-models what is required. The server itself drops what it does not know without a word.
import { cause } from "./status.mjs";

const MODELS = new URL("../node_modules/@kubernetes/client-node/dist/gen/models/", import.meta.url);
const SCHEMAS = { Job: "kubernetes-models/batch/v1/Job", Pod: "kubernetes-models/v1/Pod",
    Secret: "kubernetes-models/v1/Secret", Service: "kubernetes-models/v1/Service",
    ConfigMap: "kubernetes-models/v1/ConfigMap" };

const LIST = /^Array<(.+)>$/, MAP = /^\{ \[key: string\]: (.+); \}$/;

const models = {};
let schemas;

// A model, and those of its members.
async function loadModel(type) {
    const inner = (LIST.exec(type) ?? MAP.exec(type))?.[1];
    if (inner) {
        await loadModel(inner);
    } else if (!PLAIN[type] && !(type in models)) {
        models[type] = undefined; // on its way
        models[type] = (await import(new URL(`${type}.js`, MODELS)))[type];
        await Promise.all(models[type].getAttributeTypeMap().map((member) => loadModel(member.type)));
    }
}

/** To be done once before the first check: it takes some tenths of a second. */
export async function loadContract() {
    await Promise.all(["V1Job", "V1Pod", "V1Secret", "V1Service", "V1ConfigMap"].map(loadModel));
    schemas = Object.fromEntries(await Promise.all(Object.entries(SCHEMAS).map(
        async ([kind, path]) => [kind, (await import(path))[kind]])));
}

const isObject = (value) => value !== null && typeof value === "object" && !Array.isArray(value);
const wrongType = (field, wanted, value) => cause("FieldValueTypeInvalid", field,
    `Invalid value: ${JSON.stringify(value)}: must be ${wanted}`);

const PLAIN = {
    string: (value) => typeof value === "string",
    boolean: (value) => typeof value === "boolean",
    number: (value, format) => Number.isFinite(value) && (!/^int/.test(format) || Number.isInteger(value)),
    Date: (value) => typeof value === "string" && !Number.isNaN(Date.parse(value)),
    V1MicroTime: (value) => typeof value === "string" && !Number.isNaN(Date.parse(value)),
    IntOrString: (value) => typeof value === "string" || Number.isInteger(value),
    any: () => true,
    object: isObject,
};

/** Unknown fields and wrong types. null stands for nothing, as everywhere in this API. */
function* walk(value, type, format, where) {
    const list = LIST.exec(type)?.[1], map = MAP.exec(type)?.[1];
    if (value === null || value === undefined) {
        return;
    }
    if (PLAIN[type]) {
        if (!PLAIN[type](value, format)) {
            yield wrongType(where, format || type, value);
        }
    } else if (list) {
        yield* Array.isArray(value)
            ? value.flatMap((item, index) => [...walk(item, list, format, `${where}[${index}]`)])
            : [wrongType(where, "a list", value)];
    } else if (!isObject(value)) {
        yield wrongType(where, "an object", value);
    } else if (map) {
        yield* Object.entries(value).flatMap(([key, item]) => [...walk(item, map, format, `${where}[${key}]`)]);
    } else {
        yield* walkModel(value, models[type].getAttributeTypeMap(), where);
    }
}

function* walkModel(value, attributes, where) {
    for (const [name, member] of Object.entries(value)) {
        const known = attributes.find(({ baseName }) => baseName === name);
        const field = where ? `${where}.${name}` : name;
        if (known) {
            yield* walk(member, known.type, known.format, field);
        } else if (!name.startsWith("$")) {
            yield cause("FieldValueNotSupported", field, "unknown field");
        }
    }
}

/** What a server that is not strict keeps of a value. */
function known(value, type) {
    const list = LIST.exec(type)?.[1], map = MAP.exec(type)?.[1];
    if (PLAIN[type] || value === null || typeof value !== "object") {
        return value;
    }
    if (list) {
        return value.map((item) => known(item, list));
    }
    const typeOf = (name) => map ?? models[type].getAttributeTypeMap().find(({ baseName }) => baseName === name)?.type;
    return Object.fromEntries(Object.entries(value).filter(([name]) => typeOf(name)).map(
        ([name, member]) => [name, known(member, typeOf(name))]));
}

export const dropUnknown = (type, body) => (type.checked ? known(body, type.checked) : body);

function missing(kind, body) {
    try {
        new schemas[kind](body).validate();
        return [];
    } catch (error) {
        return [cause("FieldValueRequired", kind, error.message)];
    }
}

/** What the official client has against a body, as causes. partial: a patch, from which anything may be absent. */
export function checkBody(type, body, partial = false) {
    const found = [...walk(body, type.checked, "", "")];
    return found.length || partial ? found : missing(type.kind, body);
}
