// Answers of the service that say no, in its shapes.
import { randomBytes } from "node:crypto";

const hex = (bytes) => randomBytes(bytes).toString("hex");

/** A refusal of the resource manager. */
export class Refusal extends Error {
    constructor(status, code, message, { details = [], headers = {} } = {}) {
        super(message);
        Object.assign(this, { status, code, details, headers });
    }

    get body() {
        return { error: { code: this.code, message: this.message, target: null, details: this.details,
            additionalInfo: [{ type: "Correlation", info: { value: { operation: hex(16), request: hex(8) } } }] } };
    }
}

export const notFound = (type, name, group) => new Refusal(404, "ResourceNotFound",
    `The Resource 'Microsoft.MachineLearningServices/${type}/${name}' under resource group '${group}' was not found. `
    + "For more details please go to https://aka.ms/ARMResourceNotFoundFix");

export const forbidden = (action, scope) => new Refusal(403, "AuthorizationFailed",
    "The client 'act-tests' with object id '11111111-2222-3333-4444-555555555555' does not have authorization to perform "
    + `action '${action}' over scope '${scope}' or the scope is invalid. If access was recently granted, please refresh `
    + "your credentials.");

/** What a run's error and a refusal of the run history look like. */
export function rootError(code, message, time, innerCodes = []) {
    const innerError = innerCodes.reduceRight((inner, name) => ({ code: name, innerError: inner }), null);
    return {
        error: { code, severity: null, message, messageFormat: null, messageParameters: {}, referenceCode: null,
            detailsUri: null, target: null, details: [], innerError, additionalInfo: null },
        correlation: { operation: hex(16), request: hex(8) },
        environment: "eastus", location: "eastus", time: new Date(time).toISOString(), componentName: "run-history",
    };
}
