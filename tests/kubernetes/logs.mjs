// The log of a container as a container runtime keeps it: lines with their time, in pieces of a limited size.
import { EventEmitter } from "node:events";

import { badRequest, invalid, wrongValue } from "./status.mjs";

const NEWLINE = Buffer.from("\n");

export class Log {
    /** world: for its clock and its settings. */
    constructor(world) {
        this.world = world;
        this.events = new EventEmitter().setMaxListeners(0);
        this.pieces = [{ size: 0, entries: [] }];
        this.rests = new Map();
        this.last = 0n;
        this.isOver = false;
    }

    get current() {
        return this.pieces.at(-1);
    }

    nanoseconds() {
        const now = BigInt(this.world.now()) * 1000000n + process.hrtime.bigint() % 1000000n;
        this.last = now > this.last ? now : this.last + 1n;
        return this.last;
    }

    /** Adds what a stream of the container has written. */
    write(stream, data) {
        let rest = Buffer.concat([this.rests.get(stream) ?? Buffer.alloc(0), data]);
        const { logPart } = this.world.settings, added = [];
        for (;;) {
            const end = rest.indexOf(10);
            const isWhole = end >= 0 && end <= logPart;
            if (!isWhole && rest.length < logPart) {
                break;
            }
            added.push(this.add(stream, rest.subarray(0, isWhole ? end : logPart), isWhole));
            rest = rest.subarray(isWhole ? end + 1 : logPart);
        }
        this.rests.set(stream, rest);
        this.tell(added);
    }

    /** The container has ended: what has no newline is a line. */
    end() {
        const added = [...this.rests].filter(([, rest]) => rest.length).map(
            ([stream, rest]) => this.add(stream, rest, true));
        this.rests.clear();
        this.isOver = true;
        this.tell(added);
        this.events.emit("end");
    }

    tell(added) {
        if (added.length) {
            this.events.emit("entries", added);
        }
    }

    add(stream, text, isWhole) {
        const { logBytes, keptLogs } = this.world.settings;
        if (this.current.size >= logBytes) {
            this.pieces = [...this.pieces, { size: 0, entries: [] }].slice(-keptLogs);
            this.events.emit("rotate");
        }
        const before = this.current.entries.at(-1);
        const entry = { time: this.nanoseconds(), text: Buffer.from(text), isWhole, isFirst: before?.isWhole ?? true };
        this.current.entries.push(entry);
        this.current.size += text.length + `2026-11-20T10:40:00.123456789Z ${stream} F \n`.length;
        return entry;
    }

    /** Everything that was ever written and is kept, whatever was rotated. */
    all() {
        return this.pieces.flatMap(({ entries }) => entries);
    }
}

const lastSecond = { number: -1n, text: "" };

function stamp(time) {
    const number = time / 1000000000n;
    if (number !== lastSecond.number) {
        Object.assign(lastSecond, { number, text: new Date(Number(number) * 1000).toISOString().slice(0, 19) });
    }
    return `${lastSecond.text}.${String(time % 1000000000n).padStart(9, "0")}Z `;
}

/** Entries as the kubelet serves them. */
function render(entries, timestamps) {
    const parts = [];
    for (const { time, text, isWhole, isFirst } of entries) {
        if (timestamps && isFirst) {
            parts.push(Buffer.from(stamp(time), "latin1"));
        }
        parts.push(text);
        if (isWhole) {
            parts.push(NEWLINE);
        }
    }
    return Buffer.concat(parts);
}

export const flag = (query, name) => ["true", "1"].includes(query.get(name));

/** What a request for a log asks for, or a refusal. */
export function logOptions(query, type) {
    const number = (name) => {
        const text = query.get(name);
        if (text === null) {
            return undefined;
        }
        if (!/^-?\d+$/.test(text)) {
            throw badRequest(`strconv.ParseInt: parsing "${text}": invalid syntax`);
        }
        return Number(text);
    };
    const options = { follow: flag(query, "follow"), previous: flag(query, "previous"),
        timestamps: flag(query, "timestamps"), tailLines: number("tailLines"), limitBytes: number("limitBytes"),
        sinceSeconds: number("sinceSeconds"), container: query.get("container") ?? undefined };
    const sinceTime = query.get("sinceTime");
    const wrong = [
        options.tailLines < 0 && wrongValue("tailLines", options.tailLines, "must be greater than or equal to 0"),
        options.limitBytes < 1 && wrongValue("limitBytes", options.limitBytes, "must be greater than 0"),
        options.sinceSeconds < 1 && wrongValue("sinceSeconds", options.sinceSeconds, "must be greater than 0"),
        sinceTime !== null && options.sinceSeconds !== undefined && { field: "", reason: "FieldValueForbidden",
            message: "Forbidden: at most one of `sinceTime` or `sinceSeconds` may be specified" },
    ].filter(Boolean);
    if (wrong.length) {
        throw invalid({ ...type, kind: "PodLogOptions" }, "", wrong);
    }
    // On its way to the kubelet it is cut to whole seconds.
    const since = sinceTime === null ? undefined : Math.floor(Date.parse(sinceTime) / 1000) * 1000;
    if (Number.isNaN(since)) {
        throw badRequest(`parsing time "${sinceTime}": cannot parse`);
    }
    return { ...options, since };
}

/** Serves a log: {text} or {stream}. */
export function serveLog(world, log, options) {
    const since = options.since ?? (options.sinceSeconds && world.now() - options.sinceSeconds * 1000);
    const entries = log.current.entries.slice(options.tailLines === undefined ? 0 : -options.tailLines || Infinity)
        .filter(({ time }) => since === undefined || Number(time / 1000000n) >= since);
    let left = options.limitBytes ?? Infinity;
    const take = (chosen) => {
        const data = render(chosen, options.timestamps).subarray(0, left);
        left -= data.length;
        return data;
    };
    const first = take(entries);
    if (!options.follow || log.isOver) {
        return { status: 200, text: first };
    }
    return { status: 200, stream: (response, headers) => followLog(world, log, response, headers, first, (more) => {
        const data = take(more);
        return { data, isEnd: left <= 0 };
    }) };
}

function followLog(world, log, response, headers, first, take) {
    response.writeHead(200, { "Content-Type": "text/plain", ...headers });
    response.flushHeaders?.();
    const on = (more) => {
        const { data, isEnd } = take(more);
        response.write(data);
        if (isEnd) {
            end();
        }
    };
    const rotated = () => world.settings.followRotation === "end" && end();
    const watch = { end };
    function end() {
        world.watches.delete(watch);
        log.events.off("entries", on).off("end", end).off("rotate", rotated);
        response.end();
    }
    world.watches.add(watch);
    log.events.on("entries", on).on("end", end).on("rotate", rotated);
    response.once("close", end);
    if (first.length) {
        response.write(first);
    }
    if (log.isOver) {
        end();
    }
}
