// The verbs of the API, on the objects of the store.
import { admit } from "./admission.mjs";
import { checkBody, dropUnknown } from "./contract.mjs";
import { complete, dropNewer, newerFields, validates } from "./defaults.mjs";
import { findPlural, groupsOf, NAMESPACE, POD, resourcesOf } from "./kinds.mjs";
import { list, selector, Watch } from "./list.mjs";
import { checkChange, checkObject } from "./validate.mjs";
import { applyPatch, asBody } from "./patch.mjs";
import { warningsOf } from "./podsecurity.mjs";
import { alreadyExists, badRequest, conflict, forbidden, invalid, noMethod, notFound, pageNotFound, Refusal, success,
    unsupported, wrongValue }
    from "./status.mjs";
import { asked } from "./table.mjs";
import { suffix } from "./world.mjs";

const VERBS = {
    POST: { collection: "create" }, PUT: { one: "update" }, PATCH: { one: "patch" },
    GET: { collection: "list", one: "get" }, DELETE: { collection: "deletecollection", one: "delete" },
};
const OPTIONS = ["kind", "apiVersion", "propagationPolicy", "gracePeriodSeconds", "preconditions", "orphanDependents",
    "dryRun"];

/** Takes a path apart: {type, namespace, name, subresource}, or undefined. */
export function parsePath(settings, path) {
    const found = /^(\/api\/v1|\/apis\/[^/]+\/[^/]+)\/(.+)$/.exec(path);
    if (!found) {
        return undefined;
    }
    const [, base, rest] = found;
    const parts = rest.split("/").map(decodeURIComponent);
    const within = parts[0] === "namespaces" && parts.length > 2 && !["status", "finalize"].includes(parts[2]);
    const [plural, name, subresource, ...more] = within ? parts.slice(2) : parts;
    const type = findPlural(settings, base, plural);
    if (!type || more.length || (type.cluster && within)) {
        return undefined;
    }
    return { type, namespace: within ? parts[1] : undefined, name, subresource };
}

export class Api {
    constructor(world, kubelet) {
        Object.assign(this, { world, kubelet });
    }

    get store() {
        return this.world.store;
    }

    /** Answers {status, body | text, headers} or {stream}. request: {method, url, headers, body, user}. */
    async answer(request) {
        const known = this.discover(request.url.pathname) ?? this.review(request);
        if (known) {
            return known;
        }
        const target = parsePath(this.world.settings, request.url.pathname);
        if (!target) {
            throw pageNotFound();
        }
        const verb = this.verbOf(request, target);
        const call = { ...request, ...target, verb, query: request.url.searchParams };
        this.authorize(call);
        if (call.subresource === "exec" && needsCreate(this.world.settings)) {
            this.authorize({ ...call, verb: "create" });
        }
        const answer = await this.judged(call);
        const warnings = [...(answer.warning ? [answer.warning] : []),
            ...(verb === "create" ? warningsOf(this.world, target.type, answer.body) : []),
            ...(verb === "create" && target.type.kind === "Job" ? this.world.settings.warnings : [])];
        return warnings.length ? { ...answer, headers: {
            Warning: warnings.map((text) => `299 - "${text.replace(/["\\]/g, "\\$&")}"`) } } : answer;
    }

    /** A body of ours that is not valid is a violation. */
    async judged(call) {
        await this.contract;
        try {
            return await this[call.subresource === "exec" ? "get" : call.verb](call);
        } catch (error) {
            const isOurs = this.world.settings.contract && call.type.checked;
            if (isOurs && error instanceof Refusal && error.code === 422) {
                this.world.violations.push(`${call.method} ${call.url.pathname}: ${error.message}`);
            }
            throw error;
        }
    }

    verbOf({ method, url }, { type, name, subresource, namespace }) {
        if (method === "POST" && subresource === "exec" && type === POD) {
            return "create"; // SPDY begins so
        }
        const verb = VERBS[method]?.[name ? "one" : "collection"];
        const isKnown = !subresource || (subresource === "status" && type.status && verb !== "delete")
            || (["log", "exec"].includes(subresource) && type === POD && verb === "get");
        if (!isKnown) {
            throw pageNotFound();
        }
        if (!verb || (verb === "create" && !type.cluster && !namespace)) {
            throw noMethod(method);
        }
        return verb === "list" && ["true", "1"].includes(url.searchParams.get("watch")) ? "watch" : verb;
    }

    // ---- what everybody may ask

    discover(path) {
        const { settings } = this.world;
        const [major, minor] = settings.version.split(".");
        const fixed = {
            "/version": { major, minor, gitVersion: `v${settings.version}.0`, gitCommit: "0".repeat(40),
                gitTreeState: "clean", buildDate: "2026-01-01T00:00:00Z", goVersion: "go1.24", compiler: "gc",
                platform: "linux/amd64" },
            "/api": { kind: "APIVersions", versions: ["v1"], serverAddressByClientCIDRs: [] },
            "/apis": { kind: "APIGroupList", apiVersion: "v1", groups: groupsOf(settings) },
        }[path];
        if (fixed) {
            return { status: 200, body: fixed };
        }
        if (["/healthz", "/readyz", "/livez"].includes(path)) {
            return { status: 200, text: "ok" };
        }
        const group = groupsOf(settings).find(({ name }) => path === `/apis/${name}`);
        const body = group ? { kind: "APIGroup", apiVersion: "v1", ...group } : resourcesOf(settings, path);
        return body && { status: 200, body };
    }

    /** Whether the one who asks may do something. */
    review({ method, url, headers, body, user }) {
        if (url.pathname !== "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews") {
            return undefined;
        }
        if (method !== "POST") {
            throw noMethod(method);
        }
        const review = parseBody(headers, body);
        const { verb, group = "", resource, subresource, namespace } = review.spec?.resourceAttributes ?? {};
        const allowed = user !== "system:anonymous"
            && !this.forbids({ verb, group, plural: resource, subresource, namespace });
        return { status: 201, body: { kind: "SelfSubjectAccessReview", apiVersion: "authorization.k8s.io/v1",
            metadata: { creationTimestamp: null }, spec: review.spec, status: { allowed, ...(!allowed
                && { reason: "" }) } } };
    }

    forbids({ verb, group, plural, subresource, namespace }) {
        const full = subresource ? `${plural}/${subresource}` : plural;
        return this.world.forbids.some((rule) => [verb, "*"].includes(rule.verb)
            && [full, "*"].includes(rule.resource) && (rule.group ?? group) === group
            && (rule.namespace ?? namespace) === namespace);
    }

    authorize({ verb, type, name, namespace, subresource, user }) {
        if (user === "system:anonymous"
            || this.forbids({ verb, group: type.group, plural: type.plural, subresource, namespace })) {
            throw forbidden(user, { verb, type, name, namespace, subresource });
        }
    }

    // ---- reading

    get(call) {
        const { type, namespace, name, headers, subresource } = call;
        const object = this.store.get(type, namespace, name);
        if (subresource === "log") {
            return this.kubelet.log(object, call.query);
        }
        if (subresource === "exec") {
            return { status: 101, exec: this.kubelet.exec(object, call.query) };
        }
        return { status: 200, body: asked(headers.accept).one(type, object, this.world) };
    }

    list({ type, namespace, query, headers }) {
        return { status: 200, body: list(this.world, type, namespace, query, headers.accept) };
    }

    watch({ type, namespace, query, headers }) {
        const watch = new Watch(this.world, type, namespace, query, headers.accept);
        return { status: 200, stream: (response, more) => watch.run(response, more) };
    }

    // ---- writing

    /** The body as an object of the type, after everything that can be said against it without knowing its state. */
    read({ type, namespace, name, headers, body, query }) {
        const object = parseBody(headers, body);
        if ((object.kind ?? type.kind) !== type.kind || (object.apiVersion ?? type.apiVersion) !== type.apiVersion) {
            throw badRequest(`the API version in the data (${object.apiVersion}) does not match the expected API `
                + `version (${type.apiVersion})`);
        }
        const metadata = object.metadata ?? {};
        if (metadata.namespace && metadata.namespace !== namespace) {
            throw badRequest(`the namespace of the provided object does not match the namespace sent on the request`);
        }
        if (name && metadata.name !== name) {
            throw badRequest(`the name of the object (${metadata.name}) does not match the name on the URL (${name})`);
        }
        this.check(type, object, { query });
        return { ...object, metadata: { ...metadata, ...(namespace && { namespace }) } };
    }

    /** Against the official client, where the type is one that ACT makes. */
    check(type, body, { query, partial = false }) {
        const newer = newerFields(this.world.settings, type, body)
            .map((field) => ({ reason: "FieldValueNotSupported", field: `spec.${field}` }));
        const strict = query.get("fieldValidation") === "Strict" && validates(this.world.settings);
        const problems = [...(this.world.settings.contract && type.checked ? checkBody(type, body, partial) : []),
            ...(strict ? newer : [])];
        if (!problems.length) {
            return;
        }
        const unknown = problems.filter(({ reason }) => reason === "FieldValueNotSupported");
        if (strict && unknown.length === problems.length) {
            throw badRequest(`${type.kind} in version "${type.version}" cannot be handled as a ${type.kind}: `
                + `strict decoding error: ${unknown.map(({ field }) => `unknown field "${field}"`).join(", ")}`);
        }
        throw invalid(type, body.metadata?.name, problems);
    }

    create(call) {
        const { type, namespace, query, headers } = call;
        const object = this.read(call);
        if (namespace && !this.store.find(NAMESPACE, undefined, namespace)) {
            throw notFound(NAMESPACE, namespace);
        }
        const { metadata } = object;
        if (!metadata.name && metadata.generateName) {
            metadata.name = metadata.generateName + suffix();
        }
        const made = this.make(type, object, query.get("dryRun") === "All");
        return { status: 201, body: asked(headers.accept).one(type, made, this.world) };
    }

    /** Creates what a client or a controller wants. */
    make(type, given, isDry = false) {
        const { settings } = this.world;
        const object = dropNewer(settings, type, structuredClone(settings.strict ? given
            : dropUnknown(type, given)));
        for (const field of ["uid", "resourceVersion", "creationTimestamp", "deletionTimestamp", "generation"]) {
            delete object.metadata[field];
        }
        refuse(type, object.metadata.name, checkObject(type, object));
        complete(settings, type, object);
        admit(this.world, type, object);
        if (!isDry) {
            return this.store.create(type, object);
        }
        const { namespace, name } = object.metadata;
        if (this.store.find(type, namespace, name)) {
            throw alreadyExists(type, name);
        }
        return { kind: type.kind, apiVersion: type.apiVersion, ...object, metadata: { uid: this.world.uid(),
            creationTimestamp: this.world.time(), ...object.metadata } };
    }

    update(call) {
        const { type, namespace, name } = call;
        const next = this.read(call);
        return this.replace(call, this.store.get(type, namespace, name), next);
    }

    patch(call) {
        const { type, namespace, name, headers, body, query } = call;
        const contentType = mediaType(headers);
        const patch = parseJson(body);
        const current = this.store.get(type, namespace, name);
        const next = applyPatch(type, current, contentType, patch);
        const sent = asBody(contentType, patch);
        if (sent) {
            this.check(type, { ...sent, metadata: { ...sent.metadata, name } }, { query, partial: true });
        } else {
            this.check(type, next, { query });
        }
        return this.replace(call, current, next);
    }

    replace({ type, subresource, query, headers }, current, next) {
        const { metadata } = current;
        const given = next.metadata ?? {};
        if (given.uid && given.uid !== metadata.uid) {
            throw conflict(type, metadata.name, `Precondition failed: UID in precondition: ${given.uid}, UID in object `
                + `meta: ${metadata.uid}`);
        }
        if (given.resourceVersion && given.resourceVersion !== metadata.resourceVersion) {
            throw conflict(type, metadata.name);
        }
        const merged = this.parts(type, current, next, subresource);
        dropNewer(this.world.settings, type, merged);
        if (type.kind === "Secret") {
            complete(this.world.settings, type, merged);
        }
        refuse(type, metadata.name, [...checkObject(type, merged), ...checkChange(type, current, merged)]);
        if (JSON.stringify(merged.spec) !== JSON.stringify(current.spec) && metadata.generation) {
            merged.metadata.generation = metadata.generation + 1;
        }
        const done = query.get("dryRun") === "All" ? merged
            : this.store.change(type, current, (object) => {
                Object.keys(object).forEach((key) => delete object[key]);
                Object.assign(object, merged);
            });
        return { status: 200, body: asked(headers.accept).one(type, done, this.world) };
    }

    /** The status changes through its own path only, and nothing else does there. */
    parts(type, current, next, subresource) {
        const kept = ["uid", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds", "generation",
            "namespace", "name", "resourceVersion"];
        const metadata = { ...next.metadata, ...Object.fromEntries(kept.filter((key) => key in current.metadata).map(
            (key) => [key, current.metadata[key]])) };
        if (subresource === "status") {
            return { ...current, status: next.status };
        }
        return { ...next, kind: type.kind, apiVersion: type.apiVersion, metadata,
            ...(type.status && { status: current.status }) };
    }

    // ---- deleting

    options({ headers, body, query }) {
        const given = body.length ? parseBody(headers, body) : {};
        const unknown = Object.keys(given).filter((key) => !OPTIONS.includes(key));
        if (unknown.length) {
            throw badRequest(`unknown field "${unknown[0]}" in DeleteOptions`);
        }
        const policy = query.get("propagationPolicy") ?? given.propagationPolicy
            ?? { true: "Orphan", false: "Background" }[given.orphanDependents];
        if (policy && !["Orphan", "Background", "Foreground"].includes(policy)) {
            throw invalid({ kind: "DeleteOptions", group: "meta.k8s.io", plural: "" }, "",
                [wrongValue("propagationPolicy", policy, "not a known policy")]);
        }
        const grace = query.get("gracePeriodSeconds") ?? given.gracePeriodSeconds;
        return { ...given, propagationPolicy: policy, gracePeriodSeconds: grace === undefined || grace === null
            ? undefined : Number(grace), isDry: query.get("dryRun") === "All" || given.dryRun?.includes("All") };
    }

    delete(call) {
        const { type, namespace, name } = call;
        const options = this.options(call);
        const object = this.store.get(type, namespace, name);
        const left = options.isDry ? object : this.store.delete(type, object, options);
        const warning = type.orphans && !options.propagationPolicy ? "child pods are preserved by default when jobs "
            + "are deleted; set propagationPolicy=Background to remove them or set propagationPolicy=Orphan to "
            + "suppress this warning" : undefined;
        return { status: 200, body: left ?? (type === POD ? object : success(type, object.metadata)), warning };
    }

    deletecollection(call) {
        const { type, namespace, query, headers } = call;
        const options = this.options(call);
        const chosen = selector(type, query);
        const all = this.store.list(type, namespace).filter(chosen);
        all.forEach((object) => this.store.delete(type, object, options));
        return { status: 200, body: asked(headers.accept).list(type, all,
            { resourceVersion: String(this.store.version) }, this.world) };
    }
}

/** A WebSocket begins with a GET. Source: kubernetes.io/docs/reference/command-line-tools-reference/feature-gates
 * (AuthorizePodWebsocketUpgradeCreatePermission, on from 1.35). */
const needsCreate = ({ version }) => Number(version.split(".")[1]) >= 35;

function refuse(type, name, causes) {
    if (causes.length) {
        throw invalid(type, name, causes);
    }
}

const mediaType = (headers) => (headers["content-type"] ?? "").split(";")[0].trim();

function parseBody(headers, body) {
    if (mediaType(headers) !== "application/json") {
        throw unsupported(["application/json", "application/yaml", "application/vnd.kubernetes.protobuf"]);
    }
    return parseJson(body);
}

function parseJson(body) {
    try {
        const value = JSON.parse(body);
        if (value !== null && typeof value === "object") {
            return value;
        }
    } catch {
        // said below
    }
    throw new Refusal(400, "BadRequest", "couldn't get version/kind; json parse error: invalid JSON");
}
