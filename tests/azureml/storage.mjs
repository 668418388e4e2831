// What the resource manager has besides workspaces, of which there is no official package here: subscriptions, storage
// accounts and their containers. Their form is that of learn.microsoft.com/rest/api/resources/subscriptions/list and
// rest/api/storagerp/storage-accounts/list, blob-containers/list, blob-containers/create.
import { fileAccounts } from "./fileservers.mjs";

const ACCOUNTS = "/subscriptions/([^/]+)/providers/Microsoft.Storage/storageAccounts";
const CONTAINERS = "/subscriptions/([^/]+)/resourceGroups/([^/]+)/providers/Microsoft.Storage/storageAccounts/([^/]+)"
    + "/blobServices/default/containers";
const NAME = /^(?=.{3,63}$)[a-z0-9]+(-[a-z0-9]+)*$/;

/** As CALLS of contract.mjs. */
export const STORAGE_CALLS = [
    ["GET", "/subscriptions", "subscription list"],
    ["GET", ACCOUNTS, "storage list"],
    ["GET", CONTAINERS, "container list"],
    ["PUT", `${CONTAINERS}/([^/]+)`, "container put"],
].map(([method, path, name]) => ({ method, path: new RegExp(`^${path}$`), name, rule: NAME }));

const ok = (body, status = 200) => ({ status, body, headers: {} });

function accountId({ settings }, name) {
    return `/subscriptions/${settings.subscription}/resourceGroups/${settings.group}/providers/Microsoft.Storage`
        + `/storageAccounts/${name}`;
}

function container(world, account, name) {
    return { id: `${accountId(world, account)}/blobServices/default/containers/${name}`, name,
        type: "Microsoft.Storage/storageAccounts/blobServices/containers", properties: { publicAccess: "None" } };
}

/** As HANDLERS of arm.mjs. */
export const STORAGE_HANDLERS = {
    "subscription list"() {
        const { subscription, tenant } = this.world.settings;
        return ok({ value: [{ id: `/subscriptions/${subscription}`, authorizationSource: "RoleBased",
            subscriptionId: subscription, displayName: "Tests", state: "Enabled", tenantId: tenant }],
        count: { type: "Total", value: 1 } });
    },
    "storage list"() {
        const { accounts } = this.world.settings;
        return ok({ value: fileAccounts(this.world).concat(Object.entries(accounts).map(([name, url]) => ({
            id: accountId(this.world, name), name, type: "Microsoft.Storage/storageAccounts",
            location: this.world.settings.location, kind: "StorageV2",
            properties: { provisioningState: "Succeeded", primaryEndpoints: { blob: `${url}/` } } }))) });
    },
    "container list"([account]) {
        return ok({ value: [...this.world.containers.keys()].map((name) => container(this.world, account, name)) });
    },
    "container put"([account, name], query, body) {
        const status = this.world.containers.has(name) ? 200 : 201;
        this.world.containers.set(name, body);
        return ok(container(this.world, account, name), status);
    },
};
