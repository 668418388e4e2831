// What the run history of a region answers: runs, their details with the URLs of their logs, queries.
import { randomUUID } from "node:crypto";

import { iso, rootError } from "./errors.mjs";
import { nodeAddress } from "./runner.mjs";

const when = (ms) => (ms === undefined ? null : iso(ms));
const ok = (body) => ({ status: 200, body });

export class History {
    constructor(world) {
        this.world = world;
    }

    refusal(status, code, message, inner = []) {
        return { status, body: rootError(code, message, this.world.now(), inner, status) };
    }

    /** Answers a request, once it was looked at whose it is. */
    answer(method, url, body) {
        const { base } = this.world;
        const path = decodeURIComponent(url.pathname);
        const prefix = `/history/v1.0${base}`;
        if (!path.startsWith(prefix)) {
            return this.refusal(404, "UserError", "Workspace not found.", ["NotFoundError", "WorkspaceNotFound"]);
        }
        const rest = path.slice(prefix.length);
        const one = /^(?:\/experiments\/([^/]+))?\/runs\/([^/]+)(\/details|\/serviceinstances\/(\d+))?$/.exec(rest);
        if (method === "GET" && one) {
            return this.run(one[2], one[3], Number(one[4]));
        }
        const query = /^\/experiments\/([^/]+)\/runs:query$/.exec(rest);
        if (method === "POST" && query) {
            const token = url.searchParams.get("continuationToken");
            return this.query(query[1], { ...(token && { continuationToken: token }), ...(body && JSON.parse(body)) });
        }
        const onCompute = /^\/computes\/([^/]+)\/runs$/.exec(rest);
        if (method === "GET" && onCompute) {
            return this.onCompute(onCompute[1], Object.fromEntries(url.searchParams));
        }
        if (method === "POST" && rest === "/batchrundata") {
            return this.batch(JSON.parse(body).requests);
        }
        const several = /^\/experiments\/([^/]+)\/runs\/runIds$/.exec(rest);
        if (method === "POST" && several) {
            return this.several(JSON.parse(body).runIds);
        }
        return undefined;
    }

    run(name, what, node) {
        const job = this.world.jobs.get(name);
        if (!job) {
            return this.refusal(404, "UserError", `Run runId=${name} was not found`, ["NotFoundError"]);
        }
        if (what === "/details") {
            return ok(this.details(job));
        }
        return what ? this.services(job, node) : ok(this.summary(job));
    }

    /** Members that runs and their details have in common. */
    common(job) {
        const { properties: p, started, ended, number } = job;
        const end = ended ?? (started && this.world.now());
        return { runId: job.name, runUuid: randomUUID(), parentRunUuid: null, rootRunUuid: randomUUID(),
            parentRunId: null,
            rootRunId: job.name, target: p.computeId?.split("/").pop() ?? "serverless", status: job.status,
            startTimeUtc: when(started), endTimeUtc: when(ended),
            error: job.error ?? null, warnings: job.warnings.length ? job.warnings : null,
            tags: { ...p.tags, ...job.tags },
            properties: { ...p.properties, "_azureml.ComputeTargetType": "amlctrain" }, parameters: {}, services: {},
            inputDatasets: [], outputDatasets: [], revision: number, runNumber: number, runType: "azureml.scriptrun",
            displayName: p.displayName ?? job.name, lastModifiedUtc: iso(job.modified), createdBy: { userName: "Jane" },
            duration: started ? span(end - started) : null, computeDuration: started ? span(end - started) : null };
    }

    summary(job) {
        return { ...this.common(job), createdUtc: iso(job.created), experimentId: randomUUID(),
            dataContainerId: `dcid.${job.name}`, cancelationReason: null,
            compute: this.compute(job), queueingInfo: null, scriptName: null, hidden: false };
    }

    details(job) {
        const { logs } = this.world;
        const logFiles = {};
        for (const [name, key] of [...job.logs].sort()) {
            logFiles[name] = logs.container.readUrl(key, this.world.now());
        }
        return { ...this.common(job), createdTimeUtc: iso(job.created),
            runDefinition: { command: job.properties.command },
            logFiles, jobCost: null };
    }

    /** Nodes and GPUs that a run was given. */
    compute({ properties: { resources, computeId } }) {
        return { target: computeId?.split("/").pop() ?? null, targetType: "amlctrain", vmSize: null, instanceType: null,
            instanceCount: resources?.instanceCount ?? 1, gpuCount: null, priority: null, region: null };
    }

    services(job, node) {
        const { services = {}, resources } = job.properties;
        if (job.instances) {
            return ok({ instances: job.instances[node] ?? {} });
        }
        if (job.status !== "Running" || node >= (resources?.instanceCount ?? 1)) {
            return this.refusal(404, "UserError", `Run ${job.name} has no service instances on node ${node}.`,
                ["NotFoundError"]);
        }
        const instances = Object.fromEntries(Object.entries(services).map(([name, { jobServiceType }]) =>
            [name, { type: jobServiceType, port: 22, status: "Running", error: null,
                endpoint: `${nodeAddress(node)}:22`,
                properties: { ProxyEndpoint: `wss://ssh-${job.name}.eastus.nodes.azureml.ms` } }]));
        return ok({ instances });
    }

    several(names) {
        const runs = {};
        const errors = {};
        for (const name of names) {
            const job = this.world.jobs.get(name);
            if (job) {
                runs[name] = this.summary(job);
            } else {
                errors[name] = rootError("UserError", `Run ${name} was not found.`, this.world.now(),
                    ["NotFoundError"]);
            }
        }
        return ok({ runs, errors });
    }

    /** The runs on a compute. The names of the parameters are those of azure-ai-ml, so is the form of a filter on the
     * status: "(Status eq Running)". */
    onCompute(name, query) {
        const { settings, jobs, computes, violations } = this.world;
        const known = ["$filter", "$continuationtoken", "$orderby", "$sortorder", "$top", "$count"];
        violations.push(...Object.keys(query).filter((key) => !known.includes(key)).map(
            (key) => `runs of a compute have no ${key}`));
        if (!computes.has(name)) {
            return this.refusal(404, "UserError", `Compute ${name} was not found.`,
                ["NotFoundError", "ComputeNotFound"]);
        }
        let all = [...jobs.values()].filter((job) => job.properties.computeId?.split("/").pop() === name)
            .map((job) => this.summary(job));
        if (query.$filter) {
            try {
                all = all.filter(parseFilter(query.$filter));
            } catch (error) {
                return this.refusal(400, "UserError", error.message, ["BadArgument", "InvalidFilter"]);
            }
        }
        const start = query.$continuationtoken
            ? Number(Buffer.from(query.$continuationtoken, "base64url").toString().slice(5)) : 0;
        const end = start + Math.min(Number(query.$top ?? settings.maxTop), settings.maxTop);
        return ok({ value: all.slice(start, end), nextLink: null,
            continuationToken: end < all.length ? Buffer.from(`from:${end}`).toString("base64url") : null });
    }

    /** BatchRequest1 and BatchResult1 of the official client. */
    batch(requests) {
        const successfulResults = {};
        const failedResults = {};
        for (const [key, { runId, selectRunMetadata }] of Object.entries(requests)) {
            const job = this.world.jobs.get(runId);
            if (job) {
                successfulResults[key] = { runMetadata: selectRunMetadata ? this.summary(job) : null,
                    runDefinition: null,
                    jobSpecification: null };
            } else {
                failedResults[key] = rootError("UserError", `Run ${runId} was not found.`, this.world.now(),
                    ["NotFoundError"]);
            }
        }
        return ok({ successfulResults, failedResults });
    }

    /** Members of QueryParams of the official client, with their types. */
    checkQuery(query) {
        const types = { filter: "string", continuationToken: "string", orderBy: "string", top: "number" };
        const wrong = Object.entries(query).filter(([name, value]) => value !== null && typeof value !== types[name]);
        this.world.violations.push(...wrong.map(([name]) => `runs:query has ${name}: ${JSON.stringify(query[name])}`));
        return wrong.length === 0;
    }

    query(experiment, query) {
        const { filter, top = 10, continuationToken, orderBy } = query;
        const { settings, jobs, links, base } = this.world;
        if (!this.checkQuery(query)) {
            return this.refusal(400, "UserError", "The query cannot be read.", ["BadArgument"]);
        }
        let all = [...jobs.values()].filter((job) => (job.properties.experimentName ?? "Default") === experiment);
        if (!all.length) {
            return this.refusal(404, "UserError", `Experiment ${experiment} was not found.`,
                ["NotFoundError", "ExperimentNotFound"]);
        }
        if (filter && !settings.ignoreFilters) {
            try {
                const passes = parseFilter(filter);
                all = all.filter((job) => passes(this.summary(job)));
            } catch (error) {
                return this.refusal(400, "UserError", error.message, ["BadArgument", "InvalidFilter"]);
            }
        }
        if (!/^createdUtc( (asc|desc))?$/.test(orderBy ?? "createdUtc desc")) {
            return this.refusal(400, "UserError", `The order '${orderBy}' is not known here.`, ["BadArgument"]);
        }
        const direction = (orderBy ?? "desc").endsWith("desc") ? -1 : 1;
        all.sort((a, b) => direction * (a.created - b.created));
        const start = continuationToken ? Number(Buffer.from(continuationToken, "base64url").toString().slice(5)) : 0;
        const count = Math.min(top, settings.maxTop);
        const value = all.slice(start, start + count).map((job) => this.summary(job));
        const answer = { value, continuationToken: null, nextLink: null };
        if (start + count < all.length) {
            answer.continuationToken = Buffer.from(`from:${start + count}`).toString("base64url");
            answer.nextLink = `${links.api}/history/v1.0${base}/experiments/${experiment}/runs:query?continuationToken=`
                + answer.continuationToken;
        }
        return ok(answer);
    }
}

function span(ms) {
    const seconds = Math.max(0, Math.floor(ms / 1000));
    return [seconds / 3600, (seconds / 60) % 60, seconds % 60].map(
        (n) => String(Math.floor(n)).padStart(2, "0")).join(":");
}

// ---- filters: comparisons with eq, ne, gt, ge, lt, le, joined by and, or, not and parentheses

const OPERATORS = {
    eq: (a, b) => a === b, ne: (a, b) => a !== b, gt: (a, b) => a > b, ge: (a, b) => a >= b, lt: (a, b) => a < b,
    le: (a, b) => a <= b,
};

/** A function that tells whether a run passes. Throws what is wrong with the text. */
export function parseFilter(text) {
    const tokens = text.match(/'(?:[^']|'')*'|[()]|[^\s()']+/g) ?? [];
    const fail = () => { throw new Error(`The filter '${text}' cannot be understood.`); };
    const either = () => joined("or", both, (a, b) => (run) => a(run) || b(run));
    const both = () => joined("and", unary, (a, b) => (run) => a(run) && b(run));

    function joined(word, part, join) {
        let left = part();
        while (tokens[0] === word) {
            tokens.shift();
            left = join(left, part());
        }
        return left;
    }

    function unary() {
        const token = tokens.shift() ?? fail();
        if (token === "not") {
            const inner = unary();
            return (run) => !inner(run);
        }
        if (token === "(") {
            const inner = either();
            return tokens.shift() === ")" ? inner : fail();
        }
        const operator = OPERATORS[tokens.shift()] ?? fail();
        const value = tokens.shift() ?? fail();
        const [given, ...path] = token.split("/");
        const field = given[0].toLowerCase() + given.slice(1); // the service does not mind
        const wanted = value.startsWith("'") ? value.slice(1, -1).replaceAll("''", "'") : value;
        return (run) => operator(path.length ? run[field]?.[path.join("/")] : run[field], wanted);
    }

    const filter = either();
    return tokens.length ? fail() : filter;
}
