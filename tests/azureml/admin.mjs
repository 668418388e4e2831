// The side of the double that tests see: POST <admin>/<what> with JSON.
//
//   reset                    stops all jobs; everything is as at the beginning
//   look                     {requests, violations} since the last reset or forget
//   forget                   forgets those
//   settings  {...}          changes settings (world.mjs); clock: what the clock is ahead, in milliseconds
//   faults    [...]          what shall go wrong from now on (faults.mjs)
//   hold      {status}       jobs stay in this state; release: they go on
//   revoke                   the tokens that are out are no longer good
//   token     {audience, tenant}   gives one that the service takes, as {token}
//   job       {id, ...}      preempt; or set: {status, error, tags, properties, started, ended, instances}
//   log       {id, name, text or size}   replaces a log; key: where it really is, for a name that cannot be;
//                                        more: adds to it
//   seed      {count, experiment, status, properties, ...}   adds jobs that nobody runs, and gives their names
//   jobs                     what the jobs are, with everything that was sent
//   objects                  {datastores, environments, connections, computes}, with secrets
//   object                   {kind, name, properties}: one that somebody else made; kind as in objects
//   managed   {name, remove, busy, kubeconfig, properties, pools}   what a cluster of Azure Kubernetes Service is
//   fileserver {name, ...}   a storage account that somebody made (fileservers.mjs)
//   compute   {name, shown, idle}   what a cluster says about its nodes; operationError: how long operations end
import { randomUUID } from "node:crypto";

import { filler } from "../doubles.mjs";
import { addFileAccount } from "./fileservers.mjs";
import { isFinal } from "./runner.mjs";

const ACTIONS = {
    async reset(world) {
        await world.stopJobs();
        world.reset();
    },
    look: ({ requests, violations }) => ({ requests, violations }),
    forget(world) {
        Object.assign(world, { requests: [], violations: [] });
    },
    settings(world, { clock, lifetime, operationError, ...settings }) {
        Object.assign(world.settings, settings);
        world.offset = clock ?? world.offset;
        world.login.lifetime = lifetime ?? world.login.lifetime;
        world.operationError = operationError ?? world.operationError;
    },
    faults(world, faults) {
        world.faults = faults;
    },
    hold(world, { status }) {
        world.holds.add(status);
    },
    release(world) {
        world.holds.clear();
        world.changed();
    },
    revoke(world) {
        world.login.revoke();
    },
    token: (world, { audience, tenant }) => ({ token: world.login.issue(audience, tenant ?? world.settings.tenant) }),
    async job(world, { id, preempt, set }) {
        const job = world.jobs.get(id);
        if (preempt) {
            await job.runner.interrupt(true);
        }
        const { error, properties, ...rest } = set ?? {};
        Object.assign(job, rest);
        Object.assign(job.properties, properties);
        if (error) {
            job.error = world.jobError(error.code, error.message, error.inner);
        }
        world.changed();
    },
    async log(world, { id, name, key, text, size, more }) {
        const job = world.jobs.get(id);
        const blob = world.logs.key(job, key ?? name);
        if (!more) {
            await world.logs.container.begin(blob);
        }
        await world.logs.container.append(blob, text === undefined ? filler(size) : Buffer.from(text));
        job.logs.set(name, blob);
    },
    seed(world, { count, experiment = "exp", status = "Completed", prefix = "seeded", properties = {},
        environmentVariables = {} }) {
        const names = [];
        for (let n = 0; n < count; n++) {
            const created = world.now() - (count - n) * 60e3;
            const name = `${prefix}_${Math.floor(created / 1000)}_${randomUUID().slice(0, 8)}`;
            world.addJob(name, {
                jobType: "Command", command: "true", experimentName: experiment, displayName: `seeded ${n}`,
                environmentVariables, resources: { instanceCount: 1 }, tags: { act: "1" },
                environmentId: `${world.base}/environments/e/versions/1`, computeId: `${world.base}/computes/gpu`,
                properties: { "act.cmd": JSON.stringify(["echo", String(n)]), ...properties },
            }, { status, created, started: created + 10e3, ...(isFinal({ status }) && { ended: created + 40e3 }) });
            names.push(name);
        }
        return names;
    },
    /** A job of another tool, by a name of its own. */
    adopt(world, { name, experiment }) {
        const created = world.now() - 60e3;
        world.addJob(name, { jobType: "Command", command: "echo theirs", experimentName: experiment, displayName: name,
            environmentVariables: {}, resources: { instanceCount: 1 }, tags: {}, properties: {},
            environmentId: `${world.base}/environments/e/versions/1`, computeId: `${world.base}/computes/gpu`,
        }, { status: "Completed", created, started: created, ended: created + 10e3 });
        return name;
    },
    jobs: (world) => [...world.jobs.values()].map(({ name, status, properties, error, runner, logs }) =>
        ({ name, status, properties, error, attempt: runner?.attempt ?? 0, logs: [...logs.keys()] })),
    objects: ({ datastores, environments, connections, computes }) => Object.fromEntries(
        Object.entries({ datastores, environments, connections, computes }).map(
            ([k, map]) => [k, Object.fromEntries(map)])),
    object(world, { kind, name, properties }) {
        world[kind].set(name, { properties });
    },
    managed(world, { name, remove, properties, pools = {}, ...more }) {
        const cluster = world.managedClusters.get(name);
        if (remove) {
            world.managedClusters.delete(name);
            return;
        }
        Object.assign(cluster, more);
        Object.assign(cluster.properties, properties);
        Object.entries(pools).forEach(([pool, changes]) => Object.assign(cluster.pools.get(pool), changes));
    },
    fileserver: addFileAccount,
    compute(world, { name, shown, idle, properties }) {
        const compute = world.computes.get(name);
        Object.assign(compute.properties, properties);
        compute.properties.properties.shown = shown;
        compute.idle = idle;
    },
};

export async function administer(world, method, url, body) {
    const action = ACTIONS[url.pathname.slice(1)];
    if (method !== "POST" || !action) {
        return { status: 404, body: { error: `no action ${url.pathname}` } };
    }
    return { status: 200, body: (await action(world, body)) ?? {} };
}
