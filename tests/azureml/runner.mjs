// The life of a job: it waits, it is prepared, its command runs on this machine, and its logs grow in a container.
import { spawn } from "node:child_process";
import { closeSync, openSync, readFileSync, readdirSync } from "node:fs";
import { mkdir, open, readdir, rm, stat, writeFile } from "node:fs/promises";
import { basename, dirname, join, relative } from "node:path";
import { fileURLToPath } from "node:url";

import { Container, downloadUrl } from "./blobs.mjs";
import { rootError } from "./errors.mjs";

const RANK = fileURLToPath(new URL("rank.sh", import.meta.url));
const FINAL = ["Completed", "Failed", "Canceled"];

export const isFinal = (job) => FINAL.includes(job.status);

/** What a job cannot do for a reason that its owner has to know. */
class JobError extends Error {
    constructor(code, message, innerCodes = []) {
        super(message);
        Object.assign(this, { code, innerCodes });
    }
}

class Interrupted extends Error {}

/** Address of a node: each has one of its own on the loopback. */
export const nodeAddress = (node) => `127.0.0.${node + 1}`;

export class Runner {
    /** world: settings and state of the double; see server.mjs. */
    constructor(world, job) {
        Object.assign(this, { world, job, attempt: 0, files: new Map() });
        this.folder = join(world.settings.folder, "jobs", job.name);
    }

    /** Runs until the job has ended; never throws. */
    async live() {
        const { job } = this;
        for (;;) {
            this.attempt += 1;
            this.interrupted = false;
            try {
                await this.attemptOnce();
                break;
            } catch (error) {
                job.placed = false;
                if (job.cancelled) {
                    this.end("Canceled");
                    break;
                }
                if (!(error instanceof Interrupted)) {
                    job.error = rootError(error.code ?? "ServiceError", error.message, this.world.now(),
                        error.innerCodes);
                    this.end("Failed");
                    break;
                }
                job.warnings.push({ source: "compute",
                    message: "The node was preempted. The job waits for another one." });
            }
        }
        await rm(this.folder, { recursive: true, force: true });
    }

    async attemptOnce() {
        const { job } = this;
        await this.enter("NotStarted");
        await this.enter("Queued");
        await this.waitForNodes();
        await this.enter("Preparing");
        this.checkImage();
        await this.prepare();
        await this.enter("Running");
        job.started = this.world.now();
        const status = await this.execute();
        await this.collectOutputs();
        await this.enter("Finalizing");
        if (status !== 0) {
            throw new JobError("UserError", `Execution failed. User process 'bash' exited with status code ${status}. `
                + `Please check log file '${this.logName(0)}' for error details.`);
        }
        this.end("Completed");
    }

    end(status) {
        this.job.placed = false;
        this.job.ended = this.world.now();
        this.job.status = status;
        this.world.changed();
    }

    check() {
        if (this.job.cancelled || this.interrupted) {
            throw new Interrupted();
        }
    }

    /** A state, for as long as the settings or the test want it. */
    async enter(status) {
        const { world, job } = this;
        this.check();
        job.status = status;
        world.changed();
        await world.pause(world.settings.stateMs);
        while (!job.cancelled && !this.interrupted && world.isHeld(job)) {
            await world.nextChange();
        }
        this.check();
    }

    /** Until its cluster has nodes for it, where the settings want a cluster to have an end. */
    async waitForNodes() {
        const { world, job } = this;
        while (world.settings.limited && !world.hasRoom(job)) {
            await world.nextChange();
            this.check();
        }
        job.placed = true;
    }

    /** Ends what runs, and begins it again when again is set: a preemption. atOnce: without time to end by itself. */
    async interrupt(again, atOnce = false) {
        this.interrupted = true;
        if (!again) {
            this.job.cancelled = true;
            this.job.status = "CancelRequested";
        }
        this.world.changed();
        await this.stop(atOnce ? 0 : this.world.settings.graceMs);
    }

    // ---- before the command

    checkImage() {
        const image = this.world.imageOf(this.job);
        if (image.includes("unpullable")) {
            throw new JobError("UserError", `FailedPullingImage: Unable to pull docker image\n\timagename: ${image}\n`
                + "\terror: Run docker command to pull public image failed with error: Error response from daemon: "
                + `pull access denied for ${image}, repository does not exist or may require 'docker login': denied: `
                + "unauthorized.",
            ["BadArgument", "FailedPullingImage"]);
        }
    }

    get processes() {
        const { distribution, resources } = this.job.properties;
        const nodes = resources?.instanceCount ?? 1;
        const perNode = distribution?.processCountPerInstance ?? 1;
        return { nodes, perNode, all: nodes * perNode, mpi: distribution?.distributionType === "Mpi" };
    }

    /** Where the logs of this attempt are. */
    get logFolder() {
        const retry = this.world.settings.retryFolders ? this.attempt - 1 : 0;
        return retry ? `user_logs/retry_${String(retry).padStart(3, "0")}` : "user_logs";
    }

    logName(rank) {
        const { all, mpi } = this.processes;
        const number = String(rank).padStart(String(all - 1).length, "0");
        if (this.world.settings.runtime === "old") {
            return mpi ? `azureml-logs/70_driver_log_${rank}.txt` : "azureml-logs/70_driver_log.txt";
        }
        return `${this.logFolder}/${mpi ? `std_log_process_${number}` : "std_log"}.txt`;
    }

    /** Container and key that a URI leads to, with the credentials of its datastore. */
    resolve(uri) {
        const found = /^azureml:\/\/datastores\/([^/]+)\/paths\/(.*)$/.exec(uri);
        if (!found) {
            throw new JobError("UserError", `DataAccessError: the URI '${uri}' cannot be resolved`,
                ["DataAccessError"]);
        }
        const store = this.world.datastores.get(found[1])?.properties;
        if (!store) {
            throw new JobError("UserError", `DataAccessError(NotFound): Could not find datastore: ${found[1]}`,
                ["NotFoundError"]);
        }
        const endpoint = this.world.settings.accounts[store.accountName]
            ?? `${store.protocol}://${store.accountName}.blob.${store.endpoint}`;
        const { secrets } = store.credentials;
        if (store.datastoreType === "AzureFile" && !secrets) {
            throw new JobError("UserError", `DataAccessError: no credentials to mount the share ${store.fileShareName}`,
                ["AuthenticationError"]);
        }
        const access = secrets?.key ? { key: secrets.key } : { sas: (secrets?.sasToken ?? "").replace(/^\?/, "") };
        // A container of the name of the share stands for it.
        return { container: new Container(endpoint, store.accountName, store.containerName ?? store.fileShareName,
            access),
            key: found[2] };
    }

    async prepare() {
        const { inputs = {}, outputs = {} } = this.job.properties;
        await rm(this.folder, { recursive: true, force: true });
        for (const name of ["wd", "home", "logs/system_logs/lifecycler", dirname(`logs/${this.logName(0)}`)]) {
            await mkdir(join(this.folder, name), { recursive: true });
        }
        this.places = { inputs: {}, outputs: {} };
        this.written = [];
        await this.tell(`preparing attempt ${this.attempt}`);
        for (const [name, input] of Object.entries(inputs)) {
            this.places.inputs[name] = await this.fetch(name, input);
        }
        for (const [name, output] of Object.entries(outputs)) {
            const folder = join(this.folder, "outputs", name);
            await mkdir(folder, { recursive: true });
            this.places.outputs[name] = folder;
            if (output.uri) {
                this.written.push(await this.mount(output, folder));
            }
        }
        this.check();
    }

    async fetch(name, input) {
        if (input.jobInputType === "literal") {
            return input.value;
        }
        const folder = join(this.folder, "inputs", name);
        if (input.jobInputType === "uri_file" && /^https?:/.test(input.uri)) {
            const file = join(folder, basename(new URL(input.uri).pathname));
            await this.access(() => downloadUrl(input.uri, file));
            return file;
        }
        const { container, key } = this.resolve(input.uri);
        return this.access(async () => {
            if (input.jobInputType === "uri_file") {
                await container.download(key, join(folder, basename(key)));
                return join(folder, basename(key));
            }
            await this.copyIn(container, key, folder);
            return folder;
        });
    }

    /** A folder that is written back. */
    async mount(output, folder) {
        const { container, key } = this.resolve(output.uri);
        if (output.mode !== "Upload") {
            await this.access(() => this.copyIn(container, key, folder));
        }
        return { container, prefix: prefixOf(key), folder, before: await tree(folder) };
    }

    /** Runs what uses a store; what that refuses is the job's error. */
    async access(what) {
        try {
            return await what();
        } catch (error) {
            const message = error.cause ? `${error.message}: ${error.cause.message}` : error.message;
            throw new JobError("UserError", `DataAccessError: ${message}`, ["AzureStorageError"]);
        }
    }

    async copyIn(container, key, folder) {
        const prefix = prefixOf(key);
        await mkdir(folder, { recursive: true });
        for (const name of await container.list(prefix)) {
            if (!name.endsWith("/")) {
                await container.download(name, join(folder, name.slice(prefix.length)));
            }
        }
    }

    async collectOutputs() {
        for (const { container, prefix, folder, before } of this.written) {
            for (const [name, state] of await tree(folder)) {
                if (before.get(name) !== state) {
                    await this.access(() => container.upload(prefix + name, join(folder, name)));
                }
            }
        }
        this.written = [];
    }

    // ---- the command

    environment() {
        const { job, world } = this;
        const { nodes } = this.processes;
        const hosts = Array.from({ length: nodes }, (_, node) => nodeAddress(node));
        const env = {
            PATH: "/usr/bin:/bin", HOME: join(this.folder, "home"), LANG: "C.UTF-8",
            OMPI_ALLOW_RUN_AS_ROOT: "1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM: "1", OMPI_MCA_btl: "self,tcp,vader",
            AZ_BATCH_MASTER_NODE: `${hosts[0]}:6105`, AZ_BATCH_HOST_LIST: hosts.join(","),
            AZ_BATCH_NODE_LIST: hosts.join(";"),
            AZ_BATCHAI_JOB_MASTER_NODE_IP: hosts[0], AZ_BATCHAI_MPI_HOST_FILE: join(this.folder, "hosts"),
            AZUREML_CR_NODE_RANK: "0", AZUREML_RUN_ID: job.name, AZUREML_RUN_TOKEN: world.id,
            AZUREML_ARM_SUBSCRIPTION: world.settings.subscription, AZUREML_ARM_RESOURCEGROUP: world.settings.group,
            AZUREML_ARM_WORKSPACE_NAME: world.settings.workspace, AZUREML_WORKSPACE_ID: world.id,
            AZUREML_ARM_PROJECT_NAME: job.properties.experimentName ?? "Default",
            ...job.properties.environmentVariables,
        };
        for (const [name, place] of Object.entries(this.places.inputs)) {
            env[`AZURE_ML_INPUT_${name}`] = place;
        }
        for (const [name, place] of Object.entries(this.places.outputs)) {
            env[`AZURE_ML_OUTPUT_${name}`] = place;
        }
        return { env, hosts };
    }

    command() {
        return this.job.properties.command.replace(/\$\{\{(inputs|outputs)\.(\w+)\}\}/g, (all, kind, name) => {
            const place = this.places[kind][name];
            if (place === undefined) {
                throw new JobError("UserError", `The command refers to '${all}', which the job does not have.`);
            }
            return place;
        });
    }

    /** Runs the command and gives its exit status. */
    async execute() {
        const { nodes, perNode, all, mpi } = this.processes;
        const { env, hosts } = this.environment();
        await writeFile(env.AZ_BATCHAI_MPI_HOST_FILE, `${hosts.join("\n")}\n`);
        const pattern = join(this.folder, "logs", this.logName(0));
        const words = mpi
            ? ["mpirun", "--oversubscribe", "--bind-to", "none", "-n", String(all), "bash", RANK, String(perNode),
                dirname(pattern), this.command(),
                ...Array.from({ length: all }, (_, rank) => basename(this.logName(rank)))]
            : ["bash", "-c", this.command()];
        await this.tell(`starting ${all} processes on ${nodes} nodes`);
        const output = openSync(mpi ? join(this.folder, "logs", "system_logs/mpi_log.txt") : pattern, "a");
        const child = spawn(words[0], words.slice(1),
            { cwd: join(this.folder, "wd"), env, detached: true, stdio: ["ignore", output, output] });
        closeSync(output);
        const ended = new Promise((resolve) => {
            child.on("error", () => resolve(127));
            child.on("close", (code, signal) => resolve(code ?? 128 + (signal === "SIGKILL" ? 9 : 15)));
        });
        this.child = { pid: child.pid, ended };
        const limit = this.limit(ended);
        let done = false;
        ended.then(() => { done = true; });
        const files = new Map(); // name: bytes that are in the container
        do {
            await Promise.race([ended, this.world.pause(this.world.settings.logMs)]);
            await this.collectLogs(files);
        } while (!done);
        this.child = undefined;
        this.killRest();
        await this.tell(`the processes ended with ${await ended}`);
        await this.collectLogs(files);
        clearTimeout(limit);
        if (this.timedOut) {
            throw new JobError("UserError",
                `The job ran longer than its limit of ${this.job.properties.limits.timeout}.`,
                ["JobTimeout"]);
        }
        return ended;
    }

    limit() {
        const [, d = 0, h = 0, m = 0, s = 0] =
            /^P(?:(\d+)D)?T?(?:(\d+)H)?(?:(\d+)M)?(?:([\d.]+)S)?$/.exec(this.job.properties.limits?.timeout ?? "")
                ?? [];
        const seconds = ((Number(d) * 24 + Number(h)) * 60 + Number(m)) * 60 + Number(s);
        return seconds > 0 && seconds < 1e6 ? setTimeout(() => {
            this.timedOut = true;
            this.stop(this.world.settings.graceMs);
        }, seconds * 1000) : undefined;
    }

    /** Asks mpirun, or the shell of a single process, to end; after graceMs nobody is asked any more. */
    async stop(graceMs) {
        const { child } = this;
        if (!child) {
            return;
        }
        const kill = (signal) => {
            try {
                process.kill(-child.pid, signal);
            } catch {
                // it has ended
            }
        };
        if (graceMs > 0) {
            kill("SIGTERM");
            await Promise.race([child.ended, this.world.pause(graceMs)]);
        }
        kill("SIGKILL");
        await child.ended;
    }

    /** Kills what is left of the job, whatever session or process group it is in. */
    killRest() {
        for (const pid of readdirSync("/proc").filter((name) => /^\d+$/.test(name))) {
            try {
                const words = readFileSync(`/proc/${pid}/environ`, "latin1").split("\0");
                if (words.includes(`AZUREML_RUN_ID=${this.job.name}`)
                    && words.includes(`AZUREML_WORKSPACE_ID=${this.world.id}`)) {
                    process.kill(Number(pid), "SIGKILL");
                }
            } catch {
                // it has ended, or is somebody else's
            }
        }
    }

    // ---- logs

    async tell(text) {
        const name = this.world.settings.runtime === "old" ? "azureml-logs/65_job_prep-tvmps_0_d.txt"
            : "system_logs/lifecycler/lifecycler.log";
        const file = join(this.folder, "logs", name);
        await mkdir(dirname(file), { recursive: true });
        await writeFile(file, `${new Date(this.world.now()).toISOString()} ${text}\n`, { flag: "a" });
    }

    /** Brings what was written to the logs into the container. */
    async collectLogs(sent) {
        const { logs } = this.world;
        for (const name of (await tree(join(this.folder, "logs"))).keys()) {
            const key = logs.key(this.job, name);
            if (!sent.has(name)) {
                await logs.container.begin(key);
                sent.set(name, 0);
                this.job.logs.set(name, key);
            }
            const file = await open(join(this.folder, "logs", name));
            try {
                const data = Buffer.alloc((await file.stat()).size - sent.get(name));
                const { bytesRead } = await file.read(data, 0, data.length, sent.get(name));
                await logs.container.append(key, data.subarray(0, bytesRead));
                sent.set(name, sent.get(name) + bytesRead);
            } finally {
                await file.close();
            }
        }
    }
}

/** What the names below a folder begin with: nothing for the whole container. */
function prefixOf(key) {
    const folder = key.replace(/^\/+|\/+$/g, "");
    return folder && `${folder}/`;
}

/** The files below a folder: relative name -> size and time of the last change. */
async function tree(folder) {
    const found = new Map();
    for (const entry of await readdir(folder, { recursive: true, withFileTypes: true })) {
        const file = join(entry.parentPath ?? entry.path, entry.name);
        if (entry.isFile()) {
            const { size, mtimeMs } = await stat(file);
            found.set(relative(folder, file), `${size} ${mtimeMs}`);
        }
    }
    return found;
}
