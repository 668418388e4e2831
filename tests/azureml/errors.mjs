// Answers of the service that say no, in its shapes.
import { randomBytes } from "node:crypto";

const hex = (bytes) => randomBytes(bytes).toString("hex");
const chain = (codes) => codes.reduceRight((inner, code) => ({ code, innerError: inner }), null);

/** A time as the service writes it. */
export const iso = (ms) => new Date(ms).toISOString().replace("Z", "0000+00:00");

/** A refusal of what is behind the resource manager, with UserError, or of itself, with another code; without a code it
 *  is told by the status alone. */
export class Refusal extends Error {
    constructor(status, code, message, { details = [], headers = {}, inner = [] } = {}) {
        super(message);
        Object.assign(this, { status, code, details, headers, inner });
    }

    get body() {
        const { code, message, details, inner } = this;
        if (code === undefined) {
            return undefined;
        }
        if (code !== "UserError") {
            return { error: { code, message } };
        }
        const info = { ComponentName: "managementfrontend", Correlation: { operation: hex(16), request: hex(8) },
            Environment: "eastus", Location: "eastus", Time: iso(Date.now()), InnerError: chain(inner) };
        return { error: { code, message, details, additionalInfo: Object.entries(info).filter(([, value]) => value)
            .map(([type, value]) => ({ type, info: { value } })) } };
    }
}

export const notFound = (type, name, group) => new Refusal(404, "ResourceNotFound",
    `The Resource 'Microsoft.MachineLearningServices/${type}/${name}' under resource group '${group}' was not found. `
    + "For more details please go to https://aka.ms/ARMResourceNotFoundFix");

export const forbidden = (action, scope) => new Refusal(403, "AuthorizationFailed",
    "The client 'act-tests' with object id '11111111-2222-3333-4444-555555555555' does not have authorization to "
    + `perform action '${action}' over scope '${scope}' or the scope is invalid. If access was recently granted, `
    + "please refresh your credentials.");

/** What a run's error looks like, and a refusal of the run history, which has the status as well. */
export function rootError(code, message, time, innerCodes = [], statusCode = undefined) {
    return {
        error: { code, severity: null, message, messageFormat: null, messageParameters: {}, referenceCode: null,
            detailsUri: null, target: null, details: [], innerError: chain(innerCodes), debugInfo: null,
            additionalInfo: null },
        correlation: { operation: hex(16), request: hex(8) },
        environment: "eastus", location: "eastus", time: iso(time), componentName: "run-history",
        ...(statusCode && { statusCode }),
    };
}
