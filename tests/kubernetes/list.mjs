// Lists, in pages, and watches.
//
// Source: kubernetes.io/docs/reference/using-api/api-concepts; github.com/kubernetes/apiserver pkg/storage/cacher
// (cacher.go: what is an ERROR event; cache_watcher.go: when bookmarks are sent).
import { asked } from "./table.mjs";
import { badRequest, expired, invalid, tooLargeVersion, wrongValue } from "./status.mjs";
import { fieldSelector, labelSelector } from "./select.mjs";

/** The function of an object that a query asks for. */
export function selector(type, query) {
    const labels = labelSelector(query.get("labelSelector") ?? ""),
        fields = fieldSelector(type, query.get("fieldSelector") ?? "");
    return (object) => labels(object.metadata.labels) && fields(object);
}

function decode(token, world) {
    let found;
    try {
        found = JSON.parse(Buffer.from(token, "base64url"));
    } catch {
        throw badRequest("continue key is not valid: illegal base64 data");
    }
    if (found.version <= world.store.oldest) {
        throw expired("The provided continue parameter is too old to display a consistent list result. You can start "
            + "a new list without the continue parameter.");
    }
    return found;
}

const fullName = ({ metadata: { namespace, name } }) => `${namespace ?? ""}/${name}`;

/** A list as a client asks for it. */
export function list(world, type, namespace, query, accept) {
    const { store, settings } = world;
    const token = query.get("continue");
    const from = token && decode(token, world);
    const chosen = selector(type, query);
    const all = store.list(type, namespace).filter((object) => chosen(object)
        && (!from || fullName(object) > from.key));
    const wanted = Number(query.get("limit") ?? 0);
    const limit = settings.limit && wanted ? Math.min(wanted, settings.limit) : wanted;
    const items = limit ? all.slice(0, limit) : all;
    const version = from?.version ?? store.version;
    const isMore = items.length < all.length;
    const metadata = { resourceVersion: String(version), ...(isMore && {
        continue: Buffer.from(JSON.stringify({ version, key: fullName(items.at(-1)) })).toString("base64url"),
        ...(!query.get("labelSelector") && !query.get("fieldSelector")
            && { remainingItemCount: all.length - items.length }) }) };
    return asked(accept).list(type, items, metadata, world);
}

const LAST_BOOKMARK_MS = 2000; // before the time is over

/** Streams what changes, until the client, the time or a fault ends it. */
export class Watch {
    constructor(world, type, namespace, query, accept) {
        Object.assign(this, { world, type, namespace, query, chosen: selector(type, query), form: asked(accept) });
        this.since = query.get("resourceVersion") ?? "";
        if (!/^\d*$/.test(this.since)) {
            throw invalid({ kind: type.plural, group: type.group, plural: type.plural }, "",
                [wrongValue("resourceVersion", this.since, "invalid syntax")]);
        }
    }

    run(response, headers) {
        const { world, query } = this;
        this.response = response;
        response.writeHead(200, { "Content-Type": "application/json", ...headers });
        response.flushHeaders?.();
        world.watches.add(this);
        this.listener = (change) => this.tell(change);
        world.store.events.on("change", this.listener);
        response.once("close", () => this.end());
        const seconds = Number(query.get("timeoutSeconds") ?? 0) || 1800;
        this.timers = [setTimeout(() => this.end(), seconds * 1000)];
        if (query.get("allowWatchBookmarks") === "true" && world.settings.bookmarkMs) {
            this.timers.push(setInterval(() => this.bookmark(), world.settings.bookmarkMs));
            if (seconds * 1000 > LAST_BOOKMARK_MS) {
                this.timers.push(setTimeout(() => this.bookmark(), seconds * 1000 - LAST_BOOKMARK_MS));
            }
        }
        this.begin();
    }

    begin() {
        const { store } = this.world;
        if (this.since === "" || this.since === "0") {
            store.list(this.type, this.namespace).filter(this.chosen).forEach((object) => this.write("ADDED", object));
        } else if (Number(this.since) < store.oldest) {
            this.fail(expired(`too old resource version: ${this.since} (${store.oldest})`));
        } else if (Number(this.since) > store.version) {
            this.fail(tooLargeVersion(this.since, store.version));
        } else {
            store.history.filter(({ version }) => version > Number(this.since)).forEach(this.listener);
        }
    }

    /** The watch has begun: what is wrong now is an event. */
    fail({ status }) {
        this.response.write(`${JSON.stringify({ type: "ERROR", object: status })}\n`);
        this.end();
    }

    tell({ type, action, object, before }) {
        if (type !== this.type || (this.namespace && object.metadata.namespace !== this.namespace)) {
            return;
        }
        const was = action !== "ADDED" && this.chosen(before), is = action !== "DELETED" && this.chosen(object);
        if (is) {
            this.write(was ? "MODIFIED" : "ADDED", object);
        } else if (was) { // what it was, of the version at which it is no more
            this.write("DELETED", { ...before, metadata: { ...before.metadata,
                resourceVersion: object.metadata.resourceVersion } });
        }
    }

    write(action, object) {
        const shown = this.form.one(this.type, object, this.world);
        this.response.write(`${JSON.stringify({ type: action, object: shown })}\n`);
    }

    bookmark() {
        const { type, world } = this;
        this.response.write(`${JSON.stringify({ type: "BOOKMARK", object: { kind: type.kind,
            apiVersion: type.apiVersion, metadata: { resourceVersion: String(world.store.version),
                creationTimestamp: null } } })}\n`);
    }

    end() {
        this.world.watches.delete(this);
        this.world.store.events.off("change", this.listener);
        this.timers.forEach(clearTimeout); // which also ends an interval
        this.response.end();
    }
}
