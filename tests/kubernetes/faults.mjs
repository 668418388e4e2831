// What goes wrong on command. A fault is JSON:
//   method, match   the requests that it is for: "PUT", a regular expression on the path and query
//   skip, times     how many of them go well before, and how many it is for (1)
// and one of
//   status          429, 500, 503 ...: a Status with that code; retryAfter: seconds of that header; message
//   answer          {status, headers, body (text) or json; fill: how many bytes of body there are, of its one letter}
//   cut             "before": the connection is cut before the request is looked at; "after": it is carried out first;
//                   "within": in the middle of its answer; in a stream, or a command's output, after `bytes` of it
//   merge           a merge patch on the answer: what another server would say
//   delayMs         for how long the request waits before it is looked at
//   together        how many requests have to be there before any of them is looked at
import { takeFault } from "../doubles.mjs";

const REASONS = { 409: "Conflict", 410: "Expired", 429: "TooManyRequests", 500: "InternalError",
    503: "ServiceUnavailable", 504: "Timeout" };
const MESSAGES = { 429: "the server has received too many requests and has asked us to try again later",
    500: "Internal error occurred: etcdserver: request timed out",
    503: "the server is currently unable to handle the request", 504: "the server was unable to return a response in "
        + "the time allotted, but may still be processing the request" };

/** The fault of a request, or undefined. */
export function findFault(world, method, url) {
    return takeFault(world.faults, method, `${url.pathname}${url.search}`);
}

/** The answer of a fault that is one, or undefined. */
export function faultAnswer({ status, retryAfter, message, answer }) {
    if (answer) {
        const text = answer.fill ? answer.body.repeat(answer.fill) : answer.body;
        return { status: answer.status, headers: answer.headers, text, body: answer.json };
    }
    return status && { status, headers: retryAfter === undefined ? {} : { "Retry-After": String(retryAfter) },
        body: { kind: "Status", apiVersion: "v1", metadata: {}, status: "Failure",
            message: message ?? MESSAGES[status] ?? "failed on command", reason: REASONS[status] ?? "Unknown",
            code: status } };
}
