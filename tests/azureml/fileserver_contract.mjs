// What the official client of storage accounts, @azure/arm-storage, sends for file servers: see contract.mjs.
import { createRequire } from "node:module";

import * as official from "@azure/arm-storage";

import { Mappers } from "./mappers.mjs";

const require = createRequire(import.meta.url);
const KNOWN = { kind: "KnownKind", minimumTlsVersion: "KnownMinimumTlsVersion", rootSquash: "KnownRootSquashType",
    enabledProtocols: "KnownEnabledProtocols", publicNetworkAccess: "KnownPublicNetworkAccess" };
const OTHERS = { defaultAction: ["Allow", "Deny"], action: ["Allow"] };

function knownValues(name, parent) {
    if (name === "name" && !("id" in parent)) {
        return Object.values(official.KnownSkuName);
    }
    return OTHERS[name] ?? (KNOWN[name] && Object.values(official[KNOWN[name]]));
}

/** As the service of contract.mjs. */
const SERVICE = {
    mappers: new Mappers(require(require.resolve("@azure/arm-storage").replace(/index\.js$/, "models/mappers.js")),
        knownValues),
    versions: ["2023-05-01", "2024-01-01", "2025-06-01"],
    query: {},
    client: (credential, subscription, options) =>
        new official.StorageManagementClient(credential, subscription, options),
};

const SUBSCRIPTION = "/subscriptions/([^/]+)";
const ACCOUNTS = `${SUBSCRIPTION}/resourceGroups/([^/]+)/providers/Microsoft.Storage/storageAccounts`;
const ACCOUNT = `${ACCOUNTS}/([^/]+)`;
const SHARES = `${ACCOUNT}/fileServices/default/shares`;
const ACCOUNT_NAME = /^[a-z0-9]{3,24}$/;
const SHARE_NAME = /^(?=.{3,63}$)[a-z0-9]+(-[a-z0-9]+)*$/;
const NEW = { location: "x", kind: "FileStorage", sku: { name: "Premium_LRS" } };
const NEXT = ["$skip"]; // of a next link

/** As CALLS of contract.mjs. */
export const FILESERVER_CALLS = [
    ["GET", ACCOUNTS, "file account list", (c, [, g]) => c.storageAccounts.listByResourceGroup(g).next(), undefined,
        undefined, NEXT],
    ["GET", ACCOUNT, "file account get", (c, [, g, n]) => c.storageAccounts.getProperties(g, n)],
    ["PUT", ACCOUNT, "file account put", (c, [, g, n]) => c.storageAccounts.beginCreate(g, n, NEW),
        "StorageAccountCreateParameters", ACCOUNT_NAME],
    ["PATCH", ACCOUNT, "file account update", (c, [, g, n]) => c.storageAccounts.update(g, n, {}),
        "StorageAccountUpdateParameters", ACCOUNT_NAME],
    ["DELETE", ACCOUNT, "file account delete", (c, [, g, n]) => c.storageAccounts.delete(g, n)],
    ["GET", SHARES, "file share list", (c, [, g, n]) => c.fileShares.list(g, n).next(), undefined, undefined, NEXT],
    ["GET", `${SHARES}/([^/]+)`, "file share get",
        (c, [, g, n, s], q) => c.fileShares.get(g, n, s, { expand: q.$expand })],
    ["PUT", `${SHARES}/([^/]+)`, "file share put", (c, [, g, n, s]) => c.fileShares.create(g, n, s, {}), "FileShare",
        SHARE_NAME],
    ["GET", `${SUBSCRIPTION}/providers/Microsoft.Storage/skus`, "file sku list", (c) => c.skus.list().next()],
    ["POST", `${SUBSCRIPTION}/providers/Microsoft.Storage/checkNameAvailability`, "file name check",
        (c) => c.storageAccounts.checkNameAvailability({ name: "abc" })],
    // Not of the official package.
    ["GET", `${SUBSCRIPTION}/providers/Microsoft.Storage/operations/([^/]+)`, "file operation get"],
].map(([method, path, name, send, body, rule, more]) => ({ method, path: new RegExp(`^${path}$`), name, send, body,
    rule, more, service: SERVICE }));
