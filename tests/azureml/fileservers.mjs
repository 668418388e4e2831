// What the resource manager answers for file servers: premium storage accounts and their shares. Their form is that of
// learn.microsoft.com/rest/api/storagerp (storage-accounts, file-shares, skus); a new account is 202 with Location and
// 409 while it is being made, as srp_error_codes_common and azure-resource-manager/management/async-operations say.
import { randomUUID } from "node:crypto";

import { Refusal } from "./errors.mjs";

const GIB = 1024 ** 3;
const KIND = "FileStorage";
const ok = (body, status = 200, headers = {}) => ({ status, body, headers });

function accountJson({ settings }, name, { properties, ...account }) {
    const { subscription, group } = settings;
    return { id: `/subscriptions/${subscription}/resourceGroups/${account.group ?? group}/providers/Microsoft.Storage`
        + `/storageAccounts/${name}`, name, type: "Microsoft.Storage/storageAccounts", ...account,
    properties: { primaryEndpoints: { file: `https://${name}.file.core.windows.net/` },
        privateEndpointConnections: [], creationTime: "2026-01-02T03:04:05.0000000Z", ...properties } };
}

/** All accounts that a test or a request made. */
export const fileAccounts = (world) => [...world.fileAccounts].map(([name, a]) => accountJson(world, name, a));

function find(arm, [, group, name]) {
    const account = arm.world.fileAccounts.get(name);
    if (!account) {
        throw new Refusal(404, "ResourceNotFound", `The Resource 'Microsoft.Storage/storageAccounts/${name}' under `
            + `resource group '${group}' was not found. For more details please go to `
            + "https://aka.ms/ARMResourceNotFoundFix");
    }
    return account;
}

function shareJson(arm, values, name, { used, ...properties }, withUse = false) {
    return { id: `${accountJson(arm.world, values[2], {}).id}/fileServices/default/shares/${name}`, name,
        type: "Microsoft.Storage/storageAccounts/fileServices/shares", etag: "\"0x8D1\"",
        properties: { accessTier: "Premium", leaseStatus: "unlocked", leaseState: "available", ...properties,
            ...(withUse && { shareUsageBytes: used ?? 0 }) } };
}

function checkNetwork(body) {
    for (const { id } of body.properties.networkAcls?.virtualNetworkRules ?? []) {
        if (id.endsWith("/plain")) {
            const [network, subnet] = id.split("/subnets/");
            return { code: "NetworkAclsValidationFailure", message: "Validation of network acls failure: "
                + `SubnetsHaveNoServiceEndpointsConfigured:Subnets ${subnet} of virtual network ${network} do not have `
                + "ServiceEndpoints for Microsoft.Storage resources configured. Add Microsoft.Storage to subnet's "
                + "ServiceEndpoints collection before trying to ACL Microsoft.Storage resources to these subnets.." };
        }
    }
    return undefined;
}

function putAccount(names, query, body, call) {
    const name = call.values[2];
    const had = this.world.fileAccounts.get(name);
    if (this.world.settings.takenNames.includes(name)) {
        throw new Refusal(409, "StorageAccountAlreadyTaken", `The storage account named ${name} is already taken.`);
    }
    if (had && had.properties.provisioningState !== "Succeeded") {
        throw new Refusal(409, "StorageAccountOperationInProgress",
            "An operation is currently performing on this storage account that requires exclusive access.");
    }
    const account = { ...body, properties: { ...body.properties, provisioningState: "Creating" }, shares: had?.shares
        ?? new Map() };
    const error = checkNetwork(body) ?? this.world.operationError;
    this.world.fileAccounts.set(name, account);
    const id = randomUUID();
    this.world.operations.set(id, { left: this.world.settings.operationPolls, error, name,
        fail: () => this.world.fileAccounts.delete(name),
        apply: () => Object.assign(account.properties, { provisioningState: "Succeeded" }) });
    const { subscription } = this.world.settings;
    return ok(undefined, 202, { "Retry-After": "0", Location: `${this.world.links.arm}/subscriptions/${subscription}`
        + `/providers/Microsoft.Storage/operations/${id}?monitor=true&api-version=${query["api-version"]}` });
}

function getOperation(names, query, body, call) {
    const operation = this.world.operations.get(call.values[1]);
    operation.left -= 1;
    if (operation.left >= 0) {
        return ok(undefined, 202, { "Retry-After": "0", Location: `${this.world.links.arm}${call.url.pathname}`
            + `${call.url.search}` });
    }
    if (operation.error) {
        operation.fail();
        return ok({ status: "Failed", error: operation.error });
    }
    operation.apply();
    return ok(accountJson(this.world, operation.name, find(this, [, , operation.name])));
}

function putShare(names, query, body, call) {
    const account = find(this, call.values);
    const name = call.values[3];
    const quota = body.properties.shareQuota;
    if (account.properties.provisioningState !== "Succeeded") {
        throw new Refusal(409, "StorageAccountIsNotProvisioned", "The storage account provisioning state must be "
            + "'Succeeded' before executing the operation.");
    }
    if (!(quota >= 100 && quota <= 102400)) {
        throw new Refusal(400, "InvalidHeaderValue", "The value for one of the HTTP headers is not in the correct "
            + "format.");
    }
    const status = account.shares.has(name) ? 200 : 201;
    account.shares.set(name, { ...body.properties });
    return ok(shareJson(this, call.values, name, account.shares.get(name)), status);
}

/** What there is where: of every region one entry for each SKU. */
function skus() {
    const { restrictedRegions, zoneRegions, regions } = this.world.settings;
    const entry = (name, location) => ({ resourceType: "storageAccounts", name, tier: "Premium", kind: KIND,
        locations: [location], capabilities: [], restrictions: restrictedRegions.includes(location)
            ? [{ type: "location", values: [location], reasonCode: "NotAvailableForSubscription" }] : [] });
    return ok({ value: [{ ...entry("Standard_LRS", "nowhere"), kind: "StorageV2", tier: "Standard" },
        ...regions.map((r) => entry("Premium_LRS", r)), ...zoneRegions.map((r) => entry("Premium_ZRS", r))] });
}

/** As HANDLERS of arm.mjs. */
export const FILESERVER_HANDLERS = {
    "file account list"(names, query, body, call) {
        return this.page(fileAccounts(this.world).filter(({ id }) => id.includes(`/${call.values[1]}/`)), query, call);
    },
    "file account get"(names, query, body, call) {
        const { properties } = find(this, call.values);
        if (this.world.settings.provisionsOnLook && --this.world.settings.provisionsOnLook === 0) {
            properties.provisioningState = "Succeeded"; // of one that somebody else makes
        }
        return ok(accountJson(this.world, call.values[2], find(this, call.values)));
    },
    "file account put": putAccount,
    "file account update"(names, query, body, call) {
        const account = find(this, call.values);
        Object.assign(account, { tags: body.tags ?? account.tags }); // all of them
        return ok(accountJson(this.world, call.values[2], account));
    },
    "file account delete"(names, query, body, call) {
        return ok(undefined, this.world.fileAccounts.delete(call.values[2]) ? 200 : 204);
    },
    "file share list"(names, query, body, call) {
        return this.page([...find(this, call.values).shares].map(
            ([name, share]) => shareJson(this, call.values, name, share)), query, call);
    },
    "file share get"(names, query, body, call) {
        const share = find(this, call.values).shares.get(call.values[3]);
        if (!share) {
            throw new Refusal(404, "ShareNotFound", "The specified share does not exist.");
        }
        return ok(shareJson(this, call.values, call.values[3], share, query.$expand === "stats"));
    },
    "file share put": putShare,
    "file sku list": skus,
    "file name check"(names, query, { name }) {
        const taken = this.world.settings.takenNames.includes(name) || this.world.fileAccounts.has(name);
        return ok(taken ? { nameAvailable: false, reason: "AlreadyExists",
            message: `The storage account named ${name} is already taken.` } : { nameAvailable: true });
    },
    "file operation get": getOperation,
};

/** An account that somebody made: {name, group, kind, location, sku, tags, properties, shares: {name: properties}}. */
export function addFileAccount(world, { name, shares = {}, properties = {}, ...account }) {
    world.fileAccounts.set(name, { kind: KIND, location: world.settings.location, sku: { name: "Premium_LRS" },
        tags: {}, ...account, properties: { provisioningState: "Succeeded", ...properties },
        shares: new Map(Object.entries(shares).map(([share, { usedGiB, ...rest }]) =>
            [share, { used: (usedGiB ?? 0) * GIB, ...rest }])) });
}
