// What the doubles of services have in common: their start as a program, the bodies of requests, faults, filler.
import { createInterface } from "node:readline";

/** Runs a double where its module is the program: settings are one line on standard input, its links one on standard
 *  output. It ends when its input ends. */
export async function runDouble(Double, moduleUrl) {
    if (process.argv[1] !== new URL(moduleUrl).pathname) {
        return;
    }
    const input = createInterface({ input: process.stdin });
    const settings = await new Promise((resolve) => { input.once("line", (line) => resolve(JSON.parse(line))); });
    const double = new Double(settings);
    console.log(JSON.stringify(await double.start()));
    const end = async () => {
        await double.stop();
        process.exit(0);
    };
    input.once("close", end);
    process.once("SIGTERM", end);
    process.once("SIGINT", end);
}

/** The body of a request; throws what tooLong() makes where it has more than so many bytes. */
export async function readBody(request, max, tooLong) {
    const parts = [];
    let size = 0;
    for await (const part of request) {
        size += part.length;
        if (size > max) {
            throw tooLong();
        }
        parts.push(part);
    }
    return Buffer.concat(parts);
}

/** The fault that a request has now, or undefined; it counts as used. The heads of both faults.mjs say what method,
 *  match, skip and times are. matched is told of every fault that is for this request, even if not now. */
export function takeFault(faults, method, text, matched = () => {}) {
    for (const fault of faults) {
        if ((fault.method ?? method) === method && new RegExp(fault.match ?? "").test(text)) {
            matched(fault);
            if (fault.skip > 0) {
                fault.skip -= 1;
            } else if ((fault.times ?? 1) > 0) {
                fault.times = (fault.times ?? 1) - 1;
                return fault;
            }
        }
    }
    return undefined;
}

/** Waits until as many requests are there as the fault wants together. */
export function gather(fault) {
    fault.gathered ??= [];
    return new Promise((goOn) => {
        fault.gathered.push(goOn);
        if (fault.gathered.length === fault.together) {
            fault.gathered.forEach((each) => each());
        }
    });
}

/** So many bytes of a log, in lines that differ, so that a piece at a wrong place is seen. */
export function filler(size) {
    const line = (n) => `line ${String(n).padStart(10, "0")} of a long log ................................\n`;
    const { length } = line(0);
    const data = Buffer.alloc(size);
    for (let n = 0; n * length < size; n++) {
        data.write(line(n), n * length);
    }
    return data;
}
