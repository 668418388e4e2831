// What the tests of the double share: one double, requests to it, objects that are right.
import assert from "node:assert/strict";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";

import { Double } from "./server.mjs";

export const JOBS = "/apis/batch/v1/namespaces/default/jobs", PODS = "/api/v1/namespaces/default/pods",
    SECRETS = "/api/v1/namespaces/default/secrets", SERVICES = "/api/v1/namespaces/default/services",
    EVENTS = "/api/v1/namespaces/default/events";
const JSON_TYPE = "application/json";

export class Bed {
    static async start(settings) {
        const bed = new Bed();
        bed.folder = await mkdtemp(join(tmpdir(), "act-kubernetes-"));
        bed.double = new Double({ folder: bed.folder, ...settings });
        bed.links = await bed.double.start();
        return bed;
    }

    async stop() {
        await this.double.stop();
        await rm(this.folder, { recursive: true });
    }

    /** A request over http: {status, headers, text, body}. */
    async send(method, path, body, headers = {}) {
        const answer = await fetch(this.links.plain + path, { method,
            body: typeof body === "string" || body === undefined ? body : JSON.stringify(body),
            headers: { ...(body !== undefined && { "content-type": JSON_TYPE }), ...headers } });
        const text = await answer.text();
        return { status: answer.status, headers: answer.headers, text, get body() { return JSON.parse(text); } };
    }

    get = (path, headers) => this.send("GET", path, undefined, headers);

    post = (path, body, headers) => this.send("POST", path, body, headers);

    patch = (path, body, type = "application/merge-patch+json") => this.send("PATCH", path, body,
        { "content-type": type });

    delete = (path, body) => this.send("DELETE", path, body);

    /** The object that was made. */
    async make(path, body) {
        const answer = await this.post(path, body);
        assert.equal(answer.status, 201, answer.text);
        return answer.body;
    }

    async tell(what, body = {}) {
        const answer = await fetch(`${this.links.admin}/${what}`, { method: "POST", body: JSON.stringify(body) });
        assert.equal(answer.status, 200, await answer.clone().text());
        return answer.json();
    }

    violations = async () => (await this.tell("look")).violations;

    /** The answer to a GET as soon as it is as wanted. */
    async until(path, reached, seconds = 20) {
        const end = Date.now() + seconds * 1000;
        for (;;) {
            const answer = await this.get(path);
            if (answer.status === 200 && reached(answer.body)) {
                return answer.body;
            }
            assert.ok(Date.now() < end, answer.text);
            await new Promise((resolve) => { setTimeout(resolve, 20); });
        }
    }

    untilEnded = (name) => this.until(`${JOBS}/${name}`, (job) => conditionOf(job, "Complete")
        || conditionOf(job, "Failed"));

    podsOf = async (job) => (await this.get(`${PODS}?labelSelector=job-name%3D${job}`)).body.items;

    events = async (name) => (await this.get(`${EVENTS}?fieldSelector=involvedObject.name%3D${name}`)).body.items;
}

/** A condition that holds. */
export const conditionOf = (object, type) => object.status.conditions?.find(
    (one) => one.type === type && one.status === "True");

/** A Job that is right. */
export function job(name, script = "true", { pod = {}, container = {}, ...spec } = {}) {
    return { apiVersion: "batch/v1", kind: "Job", metadata: { name }, spec: {
        completionMode: "Indexed", completions: 2, parallelism: 2, backoffLimit: 0,
        template: { spec: { restartPolicy: "Never", subdomain: name, terminationGracePeriodSeconds: 5,
            containers: [{ name: "main", image: "registry.example.com/test:1", command: ["/bin/sh", "-c", script],
                ...container }], ...pod } }, ...spec } };
}

export const secret = (name, data = {}, more = {}) => ({ apiVersion: "v1", kind: "Secret", metadata: { name },
    data: Object.fromEntries(Object.entries(data).map(([key, text]) => [key, Buffer.from(text).toString("base64")])),
    ...more });

export const service = (name) => ({ apiVersion: "v1", kind: "Service", metadata: { name },
    spec: { clusterIP: "None", publishNotReadyAddresses: true, selector: { "job-name": name } } });
