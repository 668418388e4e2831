// A double of Azure Machine Learning for tests: logins, the resource manager, the run history of a region. The resource
// manager has clusters of Azure Kubernetes Service, too.
//
//   node server.mjs <settings.json
//
// Settings are one line of JSON on standard input (the defaults in world.mjs). When it is ready it prints one line of
// JSON with the URLs of its servers: {"login", "arm", "api", "elsewhere", "admin"}. It ends, with all that it started,
// when its input ends. "elsewhere" is a host that nobody may send a token to.
//
// It listens on the loopback only. Every request for the resource manager is checked as contract.mjs says; one that the
// official client would not send so is refused and kept as a violation. What admin.mjs serves is for tests.
import { createServer } from "node:http";
import { randomUUID } from "node:crypto";

import { gather, readBody, runDouble } from "../doubles.mjs";
import { administer } from "./admin.mjs";
import { Arm } from "./arm.mjs";
import { checkBody, checkRequest, findCall } from "./contract.mjs";
import { Refusal } from "./errors.mjs";
import { Faults } from "./faults.mjs";
import { History } from "./history.mjs";
import { World } from "./world.mjs";

const AUDIENCE = "https://management.azure.com";
const WORKSPACE_AUDIENCE = "https://ml.azure.com";
const MAX_BODY = 16 * 1024 * 1024;

export class Double {
    constructor(settings) {
        this.world = new World(settings);
        this.arm = new Arm(this.world);
        this.history = new History(this.world);
        this.faults = new Faults(this.world);
        this.servers = [];
    }

    /** Listens, and gives the URLs. */
    async start() {
        const links = {};
        for (const name of ["login", "arm", "api", "elsewhere", "admin"]) {
            const server = createServer((request, response) => this.serve(name, request, response));
            await new Promise((resolve) => { server.listen(0, "127.0.0.1", resolve); });
            this.servers.push(server);
            links[name] = `http://127.0.0.1:${server.address().port}`;
        }
        this.world.initial.links = links;
        this.world.settings.links = links;
        if (this.world.logs) {
            await this.world.logs.container.create();
        }
        return links;
    }

    async stop() {
        await this.world.stopJobs();
        for (const server of this.servers) {
            server.close();
            server.closeAllConnections();
        }
    }

    async serve(name, request, response) {
        try {
            const body = await readBody(request, MAX_BODY, () => new Error("the body is too long"));
            const url = new URL(request.url, `http://${request.headers.host}`);
            if (name === "admin") {
                this.send(response, await administer(this.world, request.method, url,
                    body.length ? JSON.parse(body) : {}));
                return;
            }
            const entry = { server: name, method: request.method, url: request.url, headers: { ...request.headers },
                body: body.toString(), authorized: "authorization" in request.headers,
                connection: request.socket.remotePort };
            delete entry.headers.authorization;
            this.world.requests.push(entry);
            const fault = this.faults.find(name, request.method, url);
            if (fault?.cut === "before") {
                entry.status = 0;
                request.socket.destroy();
                return;
            }
            if (fault?.together) {
                await gather(fault);
            }
            const answer = fault && !fault.cut && !fault.together
                ? this.faults.answer(fault) : await this.answer(name, request, url, body);
            entry.status = answer.status;
            if (fault?.cut === "after") {
                request.socket.destroy();
                return;
            }
            this.send(response, answer, fault?.cut === "within");
        } catch (error) {
            this.world.violations.push(`the double failed: ${error.stack}`);
            this.send(response, { status: 500, body: { error: { code: "InternalError", message: String(error) } } });
        }
    }

    send(response, { status, body, text, headers = {} }, cut = false) {
        const data = Buffer.from(text ?? (body === undefined ? "" : JSON.stringify(body)));
        response.writeHead(status, {
            "Content-Length": data.length, Date: new Date(this.world.now()).toUTCString(),
            "x-ms-request-id": randomUUID(),
            "x-ms-correlation-request-id": randomUUID(), "x-ms-ratelimit-remaining-subscription-reads": "11999",
            ...(text === undefined && data.length && { "Content-Type": "application/json; charset=utf-8" }), ...headers,
        });
        if (cut) {
            response.write(data.subarray(0, data.length / 2), () => response.socket.destroy());
        } else {
            response.end(data);
        }
    }

    async answer(name, request, url, body) {
        const missing = { status: 404, body: { error: { code: "NotFound",
            message: `There is no ${url.pathname} here.` } } };
        if (name === "login") {
            return this.world.login.answer(request.method, url, request.headers, body.toString()) ?? missing;
        }
        if (name === "api" && url.pathname === "/discovery") {
            const { api } = this.world.links;
            return { status: 200, body: { api, history: api, catalog: api, studio: "https://ml.azure.com" } };
        }
        if (name === "elsewhere") {
            this.world.violations.push(`${request.method} ${request.url} was sent to another host`);
            return missing;
        }
        const refused = this.unauthorized(request.headers.authorization);
        if (refused) {
            return refused;
        }
        if (name === "api") {
            const answer = this.history.answer(request.method, url, body.toString());
            if (!answer) {
                this.world.violations.push(`the run history has no ${request.method} ${url.pathname}`);
            }
            return answer ?? missing;
        }
        return this.manage(request, url, body);
    }

    unauthorized(header = "") {
        const [, token] = /^Bearer (.+)$/.exec(header) ?? [];
        const why = token ? this.world.login.refusal(token, AUDIENCE)
            : { code: "AuthenticationFailed",
                message: "Authentication failed. The 'Authorization' header is missing." };
        return why && { status: 401, body: { error: why }, headers: { "WWW-Authenticate":
            `Bearer authorization_uri="${this.world.links.login}/${this.world.settings.tenant}", `
            + `error="invalid_token", error_description="${why.message}"` } };
    }

    /** A request for the resource manager. */
    async manage(request, url, data) {
        try {
            const call = findCall(request.method, url.pathname);
            if (!call) {
                throw this.violation(request, ["there is no such call"], 404);
            }
            let body;
            const problems = await checkRequest(call, url, request.headers, data.length > 0);
            if (data.length > 0) {
                try {
                    body = JSON.parse(data);
                } catch {
                    problems.push("the body is not JSON");
                }
            }
            const query = Object.fromEntries(url.searchParams);
            if (call.body && body !== undefined) {
                problems.push(...checkBody(call.body, body, query["api-version"] ?? "", call.service));
                problems.push(...this.checkUser(body, request.headers["x-azureml-token"]));
            }
            if (problems.length) {
                throw this.violation(request, problems, 400);
            }
            return await this.arm.answer({ ...call, url }, query, body);
        } catch (error) {
            if (error instanceof Refusal) {
                const { status, body, headers } = error;
                return { status, body, headers };
            }
            throw error;
        }
    }

    /** A job that runs as its user needs a token of the user for the workspace. */
    checkUser(body, token) {
        const wanted = body?.properties?.identity?.identityType === "UserIdentity";
        const why = wanted && this.world.login.refusal(token ?? "", WORKSPACE_AUDIENCE);
        return why ? [`x-azureml-token: ${why.message}`] : [];
    }

    violation(request, problems, status) {
        this.world.violations.push(`${request.method} ${request.url}: ${problems.join("; ")}`);
        return new Refusal(status, "UserError", "Request is invalid and/or missing fields.",
            { details: problems.map(
                (message) => ({ code: "InvalidRequest", message, details: [], additionalInfo: [] })) });
    }
}

await runDouble(Double, import.meta.url);
