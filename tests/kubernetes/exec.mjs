// Commands in containers, over WebSocket: the protocols v4 and v5.channel.k8s.io, in which the first byte of each
// message is the number of a stream (RFC 6455 for the rest).
import { spawn } from "node:child_process";
import { createHash } from "node:crypto";

import { NSENTER, WITH_PARENT } from "./netns.mjs";
import { badRequest, Refusal } from "./status.mjs";

const STDIN = 0, STDOUT = 1, STDERR = 2, ERROR = 3, RESIZE = 4, CLOSE = 255;
const CONTINUATION = 0, BINARY = 2, CLOSED = 8, PING = 9, PONG = 10;
const GUID = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11";

function frame(opcode, data) {
    const { length } = data;
    const header = Buffer.alloc(length < 126 ? 2 : length < 65536 ? 4 : 10);
    header[0] = 0x80 | opcode;
    if (length < 126) {
        header[1] = length;
    } else if (length < 65536) {
        header[1] = 126;
        header.writeUInt16BE(length, 2);
    } else {
        header[1] = 127;
        header.writeBigUInt64BE(BigInt(length), 2);
    }
    return Buffer.concat([header, data]);
}

/** Takes the first frame from a buffer: {isLast, opcode, data, rest}; undefined while it is not all there. */
function parseFrame(buffer) {
    if (buffer.length < 2) {
        return undefined;
    }
    const short = buffer[1] & 0x7f, at = { 126: 4, 127: 10 }[short] ?? 2;
    if (buffer.length < at + 4) {
        return undefined;
    }
    const length = short === 126 ? buffer.readUInt16BE(2) : short === 127 ? Number(buffer.readBigUInt64BE(2)) : short;
    const mask = buffer.subarray(at, at + 4), data = Buffer.from(buffer.subarray(at + 4, at + 4 + length));
    if (data.length < length) {
        return undefined;
    }
    data.forEach((byte, index) => { data[index] = byte ^ mask[index % 4]; });
    return { isLast: (buffer[0] & 0x80) !== 0, opcode: buffer[0] & 0xf, data, rest: buffer.subarray(at + 4 + length) };
}

/** Says no to an upgrade, as to any request. */
export function refuseUpgrade(socket, error) {
    const { code, status, text } = error instanceof Refusal ? error
        : new Refusal(500, "InternalError", error.message);
    const body = text ?? JSON.stringify(status);
    socket.end(`HTTP/1.1 ${code} No\r\nContent-Type: application/json\r\nContent-Length: ${Buffer.byteLength(body)}\r\n`
        + `Connection: close\r\n\r\n${body}`);
}

/** Runs a command for a client that wants a WebSocket. wanted: see Kubelet.exec(). */
export function serveExec(request, socket, wanted) {
    const { upgrade = "", "sec-websocket-key": key, "sec-websocket-protocol": offered = "" } = request.headers;
    const { execProtocols = [], execOldFor } = wanted?.world.settings ?? {};
    const isOld = execOldFor && (request.headers["user-agent"] ?? "").startsWith(execOldFor);
    const known = isOld ? ["v4.channel.k8s.io"] : execProtocols;
    const protocol = known.find((one) => offered.split(",").map((word) => word.trim()).includes(one));
    if (!protocol && upgrade.toLowerCase() === "websocket") {
        socket.end("HTTP/1.1 403 Forbidden\r\n\r\n"); // as golang.org/x/net/websocket says it, without a Status
        return;
    }
    if (!protocol || !key) {
        throw badRequest("unable to upgrade: the double knows WebSocket and v4 and v5.channel.k8s.io");
    }
    const accept = createHash("sha1").update(key + GUID).digest("base64");
    socket.write("HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
        + `Sec-WebSocket-Accept: ${accept}\r\nSec-WebSocket-Protocol: ${protocol}\r\n\r\n`);
    new Session(socket, start(wanted), wanted).run();
}

const quote = (text) => `'${text.replaceAll("'", "'\\''")}'`;

function start({ container, command, tty, stdin }) {
    const script = [...WITH_PARENT, "/usr/bin/script", "-qec", command.map(quote).join(" "), "/dev/null"];
    const words = tty ? script : command;
    const [program, ...rest] = [...WITH_PARENT, NSENTER, "--target", String(container.pid), "--mount", "--pid", "--net",
        "--uts", "--ipc", "--root", "--wd", "--", ...words];
    return spawn(program, rest, { env: container.env, stdio: [stdin ? "pipe" : "ignore", "pipe", "pipe"] });
}

class Session {
    constructor(socket, child, { world, cut, tty }) {
        Object.assign(this, { socket, child, world, cut, tty, rest: Buffer.alloc(0), message: [] });
    }

    run() {
        const { socket, child } = this;
        // A server that is gone: nothing comes from it any more, and nobody is told.
        this.isDead = this.world.settings.execDead ?? false;
        socket.on("data", (data) => this.received(data)).on("error", () => {}).on("close", () => this.left());
        child.stdin?.on("error", () => {});
        child.stdout.on("data", (data) => this.send(STDOUT, data));
        child.stderr.on("data", (data) => this.send(STDERR, data));
        child.once("close", (code, signal) => this.ended(code ?? 128 + (signal === "SIGKILL" ? 9 : 15)));
    }

    /** The client is gone. At the end of its input script(1) would type Ctrl-D, which no container runtime does. */
    left() {
        if (this.tty) {
            this.child.kill();
        } else {
            this.child.stdin?.end();
        }
    }

    send(stream, data) {
        if (this.cut !== undefined && (this.cut -= data.length) < 0) {
            this.socket.destroy();
            this.child.kill();
            return;
        }
        if (!this.isDead) {
            this.socket.write(frame(BINARY, Buffer.concat([Buffer.from([stream]), data])));
        }
    }

    ended(code) {
        const status = code === 0 ? { metadata: {}, status: "Success" }
            : { metadata: {}, status: "Failure", reason: "NonZeroExitCode",
                message: `command terminated with non-zero exit code: exit status ${code}`,
                details: { causes: [{ reason: "ExitCode", message: String(code) }] } };
        this.send(ERROR, Buffer.from(JSON.stringify(status)));
        if (this.isDead) {
            return;
        }
        this.socket.end(frame(CLOSED, Buffer.from([0x03, 0xe8]))); // 1000: all is well
    }

    received(data) {
        if (this.isDead) {
            return;
        }
        this.rest = Buffer.concat([this.rest, data]);
        for (let found = parseFrame(this.rest); found; found = parseFrame(this.rest)) {
            this.rest = found.rest;
            this.take(found);
        }
    }

    take({ isLast, opcode, data }) {
        if (opcode === PING) {
            this.socket.write(frame(PONG, data));
        } else if (opcode === CLOSED) {
            this.socket.end(frame(CLOSED, data));
        } else if (opcode <= BINARY && opcode >= CONTINUATION) {
            this.message.push(data);
            if (isLast) {
                this.input(Buffer.concat(this.message.splice(0)));
            }
        }
    }

    input(message) {
        if (message[0] === STDIN) {
            this.child.stdin?.write(message.subarray(1));
        } else if (message[0] === RESIZE) {
            this.world.resizes.push(JSON.parse(message.subarray(1)));
        } else if (message[0] === CLOSE && message[1] === STDIN) {
            this.child.stdin?.end();
        }
    }
}
