// A double of a Kubernetes API server for tests, with the controllers, a scheduler and a kubelet behind it.
//
//   node server.mjs <settings.json
//
// Settings are one line of JSON on standard input (the defaults in world.mjs). When it is ready it prints one line of
// JSON: {"url", "plain", "admin", "kubeconfig": {"token", "certificate", ...}, "folder"}. It ends, with all
// that it started, when its input ends.
//
// It listens on the loopback only: url is https with an authority made for this run, plain the same API over http for
// kubectl, which needs no credentials there. Bodies of the kinds that ACT makes are checked as contract.mjs says; those
// that are wrong are refused and kept as violations. What control.mjs serves is for tests.
import { createServer } from "node:http";
import { createSecureServer } from "node:http2";
import { createServer as createTlsServer } from "node:https";
import { randomUUID } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";

import { gather, readBody, runDouble } from "../doubles.mjs";
import { Quotas } from "./admission.mjs";
import { Api } from "./api.mjs";
import { refuseUpgrade, serveExec } from "./exec.mjs";
import { loadContract } from "./contract.mjs";
import { control } from "./control.mjs";
import { faultAnswer, findFault } from "./faults.mjs";
import { JobController } from "./jobs.mjs";
import { Kubelet } from "./kubelet.mjs";
import { Kueue } from "./kueue.mjs";
import { applyPatch, MERGE } from "./patch.mjs";
import { makeCertificates, writeKubeconfigs } from "./pki.mjs";
import { Scheduler } from "./scheduler.mjs";
import { Refusal, tooLarge, unauthorized } from "./status.mjs";
import { World } from "./world.mjs";

const MAX_BODY = 3 * 1024 * 1024;

export class Double {
    constructor(settings) {
        this.world = new World(settings);
        this.world.double = this;
        this.kubelet = new Kubelet(this.world);
        this.api = new Api(this.world, this.kubelet);
        this.jobs = new JobController(this.world, this.api);
        this.scheduler = new Scheduler(this.world);
        this.kueue = new Kueue(this.world);
        this.quotas = new Quotas(this.world);
        this.servers = [];
        this.sockets = new Set();
    }

    /** Listens, and gives the addresses. */
    async start() {
        const { world } = this;
        const { folder, user, serverNames, token, namespace, http2 } = world.settings;
        this.api.contract = loadContract();
        const [certificates] = await Promise.all([makeCertificates(`${folder}/pki`, { user, names: serverNames }),
            this.kubelet.start()]);
        const secure = { cert: certificates["server.crt"], key: certificates["server.key"], ca: certificates["ca.crt"],
            requestCert: true, rejectUnauthorized: false };
        this.secure = await this.listen(http2 ? createSecureServer({ ...secure, allowHTTP1: true })
            : createTlsServer(secure), "secure");
        const plain = await this.listen(createServer(), "plain"), admin = await this.listen(createServer(), "admin");
        const links = { url: `https://127.0.0.1:${this.secure}`, plain: `http://127.0.0.1:${plain}`,
            admin: `http://127.0.0.1:${admin}`, folder };
        links.kubeconfig = await writeKubeconfigs(folder, { certificates, ...links, token, namespace });
        world.links = links;
        return links;
    }

    async listen(server, name) {
        server.on("request", (request, response) => this.serve(name, request, response));
        server.on("upgrade", (request, socket) => this.upgrade(name, request, socket));
        server.on("connection", (socket) => this.remember(name, socket));
        server.on("secureConnection", (socket) => this.remember(name, socket));
        server.on("sessionError", () => {});
        await new Promise((resolve) => { server.listen(0, "127.0.0.1", resolve); });
        this.servers.push({ name, server, port: server.address().port });
        return server.address().port;
    }

    remember(name, socket) {
        if (name !== "admin") {
            this.sockets.add(socket);
            socket.once("close", () => this.sockets.delete(socket));
        }
        socket.on("error", () => {});
    }

    /** Nobody is there any more, until comeBack(). */
    async goAway() {
        const all = this.servers.filter(({ name }) => name !== "admin");
        const closed = all.map(({ server }) => new Promise((resolve) => { server.close(resolve); }));
        this.sockets.forEach((socket) => socket.destroy());
        await Promise.all(closed);
    }

    async comeBack() {
        await Promise.all(this.servers.filter(({ server }) => !server.listening).map(({ server, port }) =>
            new Promise((resolve) => { server.listen(port, "127.0.0.1", resolve); })));
    }

    async reset() {
        await this.comeBack();
        this.world.endWatches();
        this.jobs.reset();
        await this.kubelet.reset();
        this.world.reset();
    }

    async stop() {
        this.jobs.reset();
        this.scheduler.stop();
        await this.kubelet.stop();
        this.world.endWatches();
        for (const { server } of this.servers) {
            server.close();
            server.closeAllConnections?.();
        }
        this.sockets.forEach((socket) => socket.destroy());
    }

    // ---- one request

    async serve(name, request, response) {
        try {
            const body = await readBody(request, MAX_BODY, () => tooLarge(MAX_BODY));
            const url = new URL(request.url, "http://double");
            if (name === "admin") {
                send(response, await control(this, request.method, url, body));
                return;
            }
            await this.serveApi(name, request, response, url, body);
        } catch (error) {
            if (error instanceof Refusal) {
                send(response, error.answer);
                return;
            }
            this.world.violations.push(`the double failed: ${error.stack}`);
            send(response, { status: 500, body: { kind: "Status", status: "Failure", code: 500,
                message: error.message } });
        }
    }

    async serveApi(name, request, response, url, body) {
        const { world } = this;
        const entry = { server: name, method: request.method, url: request.url, headers: { ...request.headers },
            body: body.toString(), http: request.httpVersion, time: world.now() };
        const authorization = request.headers.authorization;
        entry.authorized = authorization !== undefined;
        delete entry.headers.authorization;
        world.requests.push(entry);
        const fault = findFault(world, request.method, url);
        if (fault?.delayMs) {
            await sleep(fault.delayMs);
        }
        if (fault?.together) {
            await gather(fault);
        }
        if (fault?.cut === "before") {
            cut(request);
            return;
        }
        const answer = (fault && faultAnswer(fault))
            ?? await this.answer(name, request, url, body).catch(refused);
        entry.status = answer.status;
        if (fault?.cut === "after") {
            cut(request);
            return;
        }
        const headers = this.headers(answer);
        if (answer.stream) {
            answer.stream(fault?.cut ? cutAfter(response, request, fault.bytes ?? 0) : response, headers);
            return;
        }
        const merged = fault?.merge && answer.body
            ? { ...answer, body: applyPatch({}, answer.body, MERGE, fault.merge) } : answer;
        send(response, { ...merged, headers }, fault?.cut === "within" && request);
    }

    /** A connection that shall speak another protocol: commands in containers. */
    async upgrade(name, request, socket) {
        const url = new URL(request.url, "http://double");
        const entry = { server: name, method: request.method, url: request.url, headers: { ...request.headers },
            body: "", time: this.world.now() };
        delete entry.headers.authorization;
        this.world.requests.push(entry);
        try {
            const fault = findFault(this.world, request.method, url);
            if (fault?.cut === "before") {
                socket.destroy();
                return;
            }
            const wrong = fault && faultAnswer(fault);
            if (wrong) {
                throw new Refusal(wrong.status, wrong.body?.reason, wrong.body?.message ?? wrong.text);
            }
            const answer = await this.answer(name, request, url, Buffer.alloc(0));
            entry.status = answer.status;
            serveExec(request, socket, { ...answer.exec, world: this.world, cut: fault?.cut && (fault.bytes ?? 0) });
        } catch (error) {
            entry.status = error.code;
            refuseUpgrade(socket, error);
        }
    }

    headers({ headers }) {
        return { Date: new Date(this.world.now()).toUTCString(), "Audit-Id": randomUUID(),
            "Cache-Control": "no-cache, private", ...headers };
    }

    answer(name, request, url, body) {
        const user = name === "plain" ? this.world.settings.user : this.userOf(request);
        return this.api.answer({ method: request.method, url, headers: request.headers, body, user });
    }

    /** Who asks: by token, by client certificate, or nobody. */
    userOf(request) {
        const { user } = this.world.settings;
        const { authorization } = request.headers;
        const socket = request.stream?.session?.socket ?? request.socket;
        const certificate = socket.getPeerCertificate?.();
        if (authorization !== undefined) {
            const [, token] = /^Bearer (.+)$/.exec(authorization) ?? [];
            const found = this.world.tokens.get(token);
            if (!found || found.until < this.world.now()) {
                throw unauthorized();
            }
            return user;
        }
        if (certificate?.subject) {
            if (!socket.authorized) {
                throw unauthorized();
            }
            return certificate.subject.CN;
        }
        return "system:anonymous";
    }
}

async function refused(error) {
    if (error instanceof Refusal) {
        return error.answer;
    }
    throw error;
}

function send(response, { status, body, text, headers = {} }, within = undefined) {
    const data = Buffer.from(text ?? (body === undefined ? "" : `${JSON.stringify(body)}\n`));
    response.writeHead(status, { "Content-Length": data.length,
        ...(data.length && { "Content-Type": text === undefined ? "application/json" : "text/plain" }), ...headers });
    if (within) {
        response.write(data.subarray(0, data.length / 2), () => cut(within));
    } else {
        response.end(data);
    }
}

function cut(request) {
    (request.stream?.session ?? request.socket).destroy();
}

/** The response, which breaks after so many bytes. */
function cutAfter(response, request, bytes) {
    const { write } = response;
    let left = bytes;
    response.write = (data) => {
        const part = Buffer.from(data).subarray(0, left);
        left -= part.length;
        write.call(response, part, () => (left <= 0 ? cut(request) : undefined));
        return true;
    };
    return response;
}

await runDouble(Double, import.meta.url);
