// What goes wrong on command. A fault is JSON:
//   method, match   the requests that it is for: "PUT", a regular expression on "<server> <path and query>"
//   skip, times     how many of them go well before, and how many it is for (1)
// and one of
//   answer          {status, headers, body (text) or json}
//   size            200 with JSON of so many bytes
//   cut             "before": the connection is cut before the request is looked at; "after": it is carried out first;
//                   "within": in the middle of its answer
//   throttle        {header, ms}: 429 with that header; a request before that time is a violation
//   forbidden       an action that the caller may not perform
//   claims          a claims challenge
//   together        how many requests have to be there before any of them is looked at
import { takeFault } from "../doubles.mjs";
import { forbidden } from "./errors.mjs";

export class Faults {
    constructor(world) {
        this.world = world;
    }

    /** The fault of a request, or undefined. */
    find(server, method, url) {
        const text = `${server} ${url.pathname}${url.search}`;
        return takeFault(this.world.faults, method, text, ({ notBefore }) => {
            if (notBefore > this.world.now()) {
                this.world.violations.push(`${method} ${text} came before the time that Retry-After named`);
            }
        });
    }

    /** The answer of a fault that is one. */
    answer(fault) {
        if (fault.throttle) {
            return this.throttled(fault);
        }
        if (fault.forbidden) {
            const { status, body } = forbidden(fault.forbidden, this.world.base);
            return { status, body };
        }
        if (fault.claims) {
            const claims = Buffer.from('{"access_token":{"nbf":{"essential":true,"value":"1"}}}').toString("base64");
            return { status: 401, body: { error: { code: "InvalidAuthenticationToken",
                message: "Continuous access evaluation resulted in a challenge." } },
                headers: { "WWW-Authenticate": "Bearer realm=\"\", authorization_uri=\""
                + `${this.world.links.login}/common/oauth2/authorize", error="insufficient_claims", `
                + `claims="${claims}"` } };
        }
        if (fault.size) {
            return { status: 200, text: JSON.stringify({ value: [], filler: "x".repeat(fault.size - 24) }) };
        }
        const { status, headers, body, json } = fault.answer;
        return { status, headers, text: body, body: json };
    }

    throttled(fault) {
        const { header, ms } = fault.throttle;
        // An HTTP date has whole seconds: it must not say a time that is over.
        const until = header === "date" ? Math.ceil((this.world.now() + ms) / 1000) * 1000 : this.world.now() + ms;
        const value = { date: new Date(until).toUTCString(), "Retry-After": String(Math.ceil(ms / 1000)) }[header]
            ?? String(ms);
        fault.notBefore = header === "Retry-After" ? this.world.now() + Math.ceil(ms / 1000) * 1000 : until;
        return { status: 429, headers: { [header === "date" ? "Retry-After" : header]: value },
            body: { error: { code: "TooManyRequests",
                message: "The request is being throttled as the limit has been reached for "
                + "operation type." } } };
    }
}
