// Answers of the API server that say no, in its shapes and words.

/** A refusal: a Status, or plain text where the server has nothing better. */
export class Refusal extends Error {
    constructor(code, reason, message, { details, headers = {}, text } = {}) {
        super(message ?? text);
        Object.assign(this, { code, reason, details, headers, text });
    }

    get answer() {
        return this.text === undefined
            ? { status: this.code, body: this.status, headers: this.headers }
            : { status: this.code, text: this.text, headers: { "Content-Type": "text/plain; charset=utf-8",
                "X-Content-Type-Options": "nosniff", ...this.headers } };
    }

    get status() {
        const { code, reason, message, details } = this;
        return { kind: "Status", apiVersion: "v1", metadata: {}, status: "Failure", message, reason,
            ...(details && { details }), code };
    }
}

/** "jobs.batch", as messages name a resource. */
const qualified = ({ plural, group }) => (group ? `${plural}.${group}` : plural);
const about = (type, name) => ({ ...(name && { name }), ...(type.group && { group: type.group }), kind: type.plural });

export const notFound = (type, name) => new Refusal(404, "NotFound", `${qualified(type)} "${name}" not found`,
    { details: about(type, name) });

export const alreadyExists = (type, name, isGoing) => new Refusal(409, "AlreadyExists",
    `${isGoing ? "object is being deleted: " : ""}${qualified(type)} "${name}" already exists`,
    { details: about(type, name) });

export const conflict = (type, name, why = "the object has been modified; please apply your changes to the latest "
    + "version and try again") => new Refusal(409, "Conflict",
    `Operation cannot be fulfilled on ${qualified(type)} "${name}": ${why}`, { details: about(type, name) });

/** A version that the server has not come to. */
export const tooLargeVersion = (wanted, current) => new Refusal(504, "Timeout", `Timeout: Too large resource version: `
    + `${wanted}, current: ${current}`, { details: { causes: [{ reason: "ResourceVersionTooLarge",
        message: "Too large resource version" }], retryAfterSeconds: 1 } });

export const badRequest = (message) => new Refusal(400, "BadRequest", message);

/** causes: [{reason, message, field}], reason as FieldValueRequired. */
export function invalid(type, name, causes) {
    const lines = causes.map(({ field, message }) => `${field}: ${message}`);
    const kind = type.group ? `${type.kind}.${type.group}` : type.kind;
    const all = lines.length === 1 ? lines[0] : `[${lines.join(", ")}]`;
    return new Refusal(422, "Invalid", `${kind} "${name ?? ""}" is invalid: ${all}`,
        { details: { ...about(type, name), kind: type.kind, causes } });
}

export const cause = (reason, field, message) => ({ reason, message, field });
export const required = (field, message = "") => cause("FieldValueRequired", field,
    `Required value${message && `: ${message}`}`);
export const wrongValue = (field, value, message) => cause("FieldValueInvalid", field,
    `Invalid value: ${JSON.stringify(value)}: ${message}`);

/** request: {verb, type, name, namespace, subresource}. */
export function forbidden(user, { verb, type, name, namespace, subresource }, why = "") {
    const resource = subresource ? `${type.plural}/${subresource}` : type.plural;
    const where = namespace ? `in the namespace "${namespace}"` : "at the cluster scope";
    return new Refusal(403, "Forbidden", `${qualified(type)}${name ? ` "${name}"` : ""} is forbidden: `
        + `User "${user}" cannot ${verb} resource "${resource}" in API group "${type.group}" ${where}${why}`,
    { details: about(type, name) });
}

/** What an admission plugin refuses. */
export const notAdmitted = (type, name, why) => new Refusal(403, "Forbidden",
    `${qualified(type)} "${name}" is forbidden: ${why}`, { details: about(type, name) });

export const unauthorized = () => new Refusal(401, "Unauthorized", "Unauthorized");

export const pageNotFound = () => new Refusal(404, "NotFound", undefined, { text: "404 page not found\n" });

export const noMethod = (method) => new Refusal(405, "MethodNotAllowed",
    `the server does not allow this method on the requested resource`, { details: {}, headers: { Allow: method } });

export const expired = (message) => new Refusal(410, "Expired", message);

export const unsupported = (types) => new Refusal(415, "UnsupportedMediaType",
    `the body of the request was in an unknown format - accepted media types include: ${types.join(", ")}`);

export const notAcceptable = () => new Refusal(406, "NotAcceptable", "only the following media types are accepted: "
    + "application/json, application/yaml, application/vnd.kubernetes.protobuf");

export const tooLarge = (limit) => new Refusal(413, "RequestEntityTooLarge",
    `Request entity too large: limit is ${limit}`);

export const success = (type, { name, uid }) => ({ kind: "Status", apiVersion: "v1", metadata: {}, status: "Success",
    details: { ...about(type, name), uid } });
