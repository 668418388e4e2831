// The little of the Blob service that jobs need: their inputs, their outputs, their logs.
import { createHmac } from "node:crypto";
import { createWriteStream } from "node:fs";
import { mkdir, readFile } from "node:fs/promises";
import { dirname } from "node:path";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";

const VERSION = "2021-12-02";
const MAX_APPEND = 4 * 1024 * 1024;

/** One container; endpoint is the URL of the account. access: {key} or {sas}. */
export class Container {
    constructor(endpoint, account, name, access) {
        Object.assign(this, { endpoint, account, name, access });
    }

    url(key, query = {}) {
        const path = [this.name, ...key.split("/")].map(encodeURIComponent).join("/").replace(/\/$/, "");
        const url = new URL(`${this.endpoint}/${path}`);
        Object.entries(query).forEach(([name, value]) => url.searchParams.set(name, value));
        return url;
    }

    sign(text) {
        return createHmac("sha256", Buffer.from(this.access.key, "base64")).update(text).digest("base64");
    }

    async request(method, key, { query, headers = {}, body, expect = [200, 201, 202, 206] } = {}) {
        const url = this.url(key, query);
        const all = { ...headers, "x-ms-version": VERSION, "x-ms-date": new Date().toUTCString() };
        if (this.access.key) {
            const own = Object.keys(all).filter((n) => n.startsWith("x-ms-")).sort().map((n) => `${n}:${all[n]}\n`);
            const parameters = [...url.searchParams].sort().map(([n, v]) => `\n${n}:${v}`);
            const text = [method, "", "", body?.length || "", "", "", "", "", "", "", "", ""].join("\n") + "\n"
                + own.join("") + `/${this.account}${url.pathname}` + parameters.join("");
            all.authorization = `SharedKey ${this.account}:${this.sign(text)}`;
        } else {
            new URLSearchParams(this.access.sas).forEach((value, name) => url.searchParams.set(name, value));
        }
        const answer = await fetch(url, { method, headers: all, body });
        if (!expect.includes(answer.status)) {
            const code = answer.headers.get("x-ms-error-code") ?? (await answer.text()).slice(0, 200);
            throw new Error(`${method} ${url.origin}${url.pathname}: ${answer.status} ${code}`);
        }
        return answer;
    }

    async create() {
        await this.request("PUT", "", { query: { restype: "container" }, expect: [201, 409] });
    }

    /** Whether it is there and the credentials are good for it. */
    async exists(key) {
        return (await this.request("HEAD", key, { expect: [200, 404] })).status === 200;
    }

    async download(key, file) {
        await mkdir(dirname(file), { recursive: true });
        const answer = await this.request("GET", key);
        await pipeline(answer.body ? Readable.fromWeb(answer.body) : Readable.from([]), createWriteStream(file));
    }

    async upload(key, file) {
        await this.request("PUT", key, { headers: { "x-ms-blob-type": "BlockBlob" }, body: await readFile(file) });
    }

    /** The names of all blobs below a prefix. */
    async list(prefix) {
        const names = [];
        let marker = "";
        do {
            const query = { restype: "container", comp: "list", prefix, ...(marker && { marker }) };
            const text = await (await this.request("GET", "", { query })).text();
            for (const [, name] of text.matchAll(/<Blob>.*?<Name>(.*?)<\/Name>/gs)) {
                names.push(unescape(name));
            }
            marker = /<NextMarker>(.+?)<\/NextMarker>/.exec(text)?.[1] ?? "";
        } while (marker);
        return names;
    }

    /** An empty append blob; one that is there is replaced. */
    async begin(key) {
        await this.request("PUT", key, { headers: { "x-ms-blob-type": "AppendBlob" } });
    }

    async append(key, data) {
        for (let at = 0; at < data.length; at += MAX_APPEND) {
            await this.request("PUT", key, { query: { comp: "appendblock" },
                body: data.subarray(at, at + MAX_APPEND) });
        }
    }

    /** A URL to read one blob with, for a time. */
    readUrl(key, now, hours = 8) {
        const [start, expiry] = [-600e3, hours * 3600e3].map((ms) =>
            new Date(now + ms).toISOString().replace(/\.\d+Z/, "Z"));
        const resource = `/blob/${this.account}/${this.name}/${key}`;
        const text = ["r", start, expiry, resource, "", "", "", VERSION, "b", "", "", "", "", "", "", ""].join("\n");
        return this.url(key, { sv: VERSION, sr: "b", sp: "r", st: start, se: expiry, sig: this.sign(text) }).href;
    }
}

/** What a URL gives, without any credential but its own. */
export async function downloadUrl(url, file) {
    const answer = await fetch(url);
    if (!answer.ok) {
        throw new Error(`GET ${url}: ${answer.status} ${answer.headers.get("x-ms-error-code")}`);
    }
    await mkdir(dirname(file), { recursive: true });
    await pipeline(answer.body ? Readable.fromWeb(answer.body) : Readable.from([]), createWriteStream(file));
}

function unescape(text) {
    const named = { amp: "&", lt: "<", gt: ">", quot: '"', apos: "'" };
    return text.replace(/&(?:#x([0-9a-f]+)|#(\d+)|(\w+));/gi, (all, hex, decimal, name) =>
        name ? named[name] ?? all : String.fromCodePoint(hex ? parseInt(hex, 16) : Number(decimal)));
}
