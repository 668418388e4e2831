// Requests as a client that is right sends them.
const SERVICES = "/providers/Microsoft.MachineLearningServices";
export const BASE = `/subscriptions/00000000-0000-0000-0000-00000000000a/resourceGroups/rg${SERVICES}/workspaces/ws`;
const VERSION = "api-version=2024-10-01";
const LOCATION = `/subscriptions/00000000-0000-0000-0000-00000000000a${SERVICES}/locations/eastus`;

export const ENVIRONMENT = { properties: { image: "debian:12", osType: "Linux", isAnonymous: true,
    tags: { act: "1" } } };

export const DATASTORE = { properties: { datastoreType: "AzureBlob", description: "created by act",
    accountName: "myacct", containerName: "data",
    endpoint: "core.windows.net", protocol: "https", tags: { "act.credential": "0123456789abcdef" },
    credentials: { credentialsType: "AccountKey", secrets: { secretsType: "AccountKey", key: "a2V5" } } } };

export const SAS_DATASTORE = { properties: { ...DATASTORE.properties,
    credentials: { credentialsType: "Sas", secrets: { secretsType: "Sas", sasToken: "?sv=1&sig=x" } } } };

export const SHARE = { properties: { datastoreType: "AzureFile", description: "created by act", accountName: "myacct",
    fileShareName: "my-files", endpoint: "core.windows.net", protocol: "https",
    tags: { "act.credential": "0123456789abcdef" }, credentials: DATASTORE.properties.credentials } };

export const JOB = { properties: {
    jobType: "Command", command: "exec \"${{inputs.agent}}\" job", experimentName: "exp", displayName: "sleep",
    environmentId: `${BASE}/environments/act-0123456789abcdef/versions/1`, computeId: `${BASE}/computes/gpu`,
    distribution: { distributionType: "Mpi", processCountPerInstance: 2 },
    resources: { instanceCount: 2, shmSize: "512g", dockerArgs: "--ulimit memlock=-1" },
    limits: { jobLimitsType: "Command", timeout: "PT72H" }, identity: { identityType: "Managed" },
    inputs: {
        agent: { jobInputType: "uri_file", mode: "Download", uri: "azureml://datastores/act_ds/paths/agent" },
        data: { jobInputType: "uri_folder", mode: "ReadOnlyMount", uri: "azureml://datastores/act_ds/paths/data" },
        lr: { jobInputType: "literal", value: "0.01" } },
    outputs: { out: { jobOutputType: "uri_folder", mode: "ReadWriteMount",
        uri: "azureml://datastores/act_ds/paths/out" } },
    environmentVariables: { NCCL_IB_DISABLE: "0" }, tags: { act: "1" }, properties: { "act.cmd": "sleep 1" },
    services: { ssh: { jobServiceType: "SSH", properties: { sshPublicKeys: "ssh-rsa AAAA" },
        nodes: { nodesValueType: "All" } } },
    queueSettings: { jobTier: "Spot" } } };

export const CLUSTER = { location: "eastus", properties: { computeType: "AmlCompute", description: "act",
    properties: { vmSize: "STANDARD_ND96ASR_V4", vmPriority: "LowPriority", osType: "Linux",
        scaleSettings: { minNodeCount: 0, maxNodeCount: 4, nodeIdleTimeBeforeScaleDown: "PT2M" },
        userAccountCredentials: { adminUserName: "act", adminUserSshPublicKey: "ssh-rsa AAAA" },
        remoteLoginPortPublicAccess: "Enabled" } } };

export const SCALE = { properties: { properties: { scaleSettings: { minNodeCount: 0, maxNodeCount: 8,
    nodeIdleTimeBeforeScaleDown: "PT5M" } } } };

export const CONNECTION = { properties: { authType: "UsernamePassword", category: "ContainerRegistry",
    target: "https://myreg.azurecr.io", credentials: { username: "u", password: "p" } } };

export const AKS = "/subscriptions/00000000-0000-0000-0000-00000000000a/resourceGroups/rg/providers"
    + "/Microsoft.ContainerService/managedClusters/kube";
const AKS_VERSION = "api-version=2024-01-01";

export const POOL = { properties: { mode: "User", type: "VirtualMachineScaleSets", osType: "Linux",
    vmSize: "Standard_ND96asr_v4", count: 0, enableAutoScaling: true, minCount: 0, maxCount: 4,
    nodeTaints: ["sku=gpu:NoSchedule"], nodeLabels: { team: "vision" }, scaleSetPriority: "Spot",
    scaleSetEvictionPolicy: "Delete", spotMaxPrice: -1 } };

export const KUBERNETES = { location: "eastus", identity: { type: "SystemAssigned" }, properties: { dnsPrefix: "kube",
    enableRBAC: true, agentPoolProfiles: [
        { name: "system", mode: "System", type: "VirtualMachineScaleSets", osType: "Linux", vmSize: "Standard_D2s_v5",
            count: 1 },
        { name: "gpu", ...POOL.properties }],
    networkProfile: { networkPlugin: "azure", networkPluginMode: "overlay" },
    storageProfile: { blobCSIDriver: { enabled: true } } } };

export const FILES = "/subscriptions/00000000-0000-0000-0000-00000000000a/resourceGroups/rg/providers"
    + "/Microsoft.Storage/storageAccounts/teamdata";
const STORAGE_VERSION = "api-version=2024-01-01";

export const FILE_ACCOUNT = { location: "eastus", kind: "FileStorage", sku: { name: "Premium_LRS" },
    tags: { "act:fileserver": "data" }, properties: { supportsHttpsTrafficOnly: false, minimumTlsVersion: "TLS1_2",
        allowBlobPublicAccess: false, networkAcls: { defaultAction: "Deny",
            virtualNetworkRules: [{ id: "/subscriptions/s/x/subnets/nodes", action: "Allow" }] } } };

export const FILE_SHARE = { properties: { enabledProtocols: "NFS", rootSquash: "NoRootSquash", shareQuota: 1024 } };

export const REQUESTS = [
    ["GET", `${FILES.replace("/teamdata", "")}?${STORAGE_VERSION}`],
    ["GET", `${FILES}?${STORAGE_VERSION}`],
    ["PUT", `${FILES}?${STORAGE_VERSION}`, FILE_ACCOUNT],
    ["DELETE", `${FILES}?${STORAGE_VERSION}`],
    ["GET", `${FILES}/fileServices/default/shares?${STORAGE_VERSION}`],
    ["GET", `${FILES}/fileServices/default/shares/data?${STORAGE_VERSION}&$expand=stats`],
    ["PUT", `${FILES}/fileServices/default/shares/data?${STORAGE_VERSION}`, FILE_SHARE],
    ["GET", `${FILES.replace(/\/resourceGroups.*/, "/providers/Microsoft.Storage/skus")}?${STORAGE_VERSION}`],
    ["GET", `${AKS}?${AKS_VERSION}`],
    ["PUT", `${AKS}?${AKS_VERSION}`, KUBERNETES],
    ["POST", `${AKS}/listClusterUserCredential?${AKS_VERSION}&format=exec`],
    ["GET", `${AKS}/agentPools?${AKS_VERSION}`],
    ["GET", `${AKS}/agentPools/gpu?${AKS_VERSION}`],
    ["PUT", `${AKS}/agentPools/gpu?${AKS_VERSION}`, POOL],
    ["DELETE", `${AKS}/agentPools/gpu?${AKS_VERSION}`],
    ["GET", `${LOCATION.replace(/locations.*/, "workspaces")}?${VERSION}`],
    ["GET", `${BASE}?${VERSION}`],
    ["GET", `${BASE}/jobs?${VERSION}&tag=act&jobType=Command&listViewType=ActiveOnly&$skip=a%2Fb`],
    ["GET", `${BASE}/jobs/run_1?${VERSION}`],
    ["PUT", `${BASE}/jobs/run_1?${VERSION}`, JOB],
    ["POST", `${BASE}/jobs/run_1/cancel?${VERSION}`],
    ["DELETE", `${BASE}/jobs/run_1?${VERSION}`],
    ["GET", `${BASE}/datastores/act_ds?${VERSION}`],
    ["GET", `${BASE}/datastores?${VERSION}&isDefault=true`],
    ["PUT", `${BASE}/datastores/act_ds?${VERSION}&skipValidation=true`, DATASTORE],
    ["PUT", `${BASE}/datastores/act_ds?${VERSION}`, SAS_DATASTORE],
    ["PUT", `${BASE}/datastores/file_ds?${VERSION}&skipValidation=true`, SHARE],
    ["GET", `${BASE}/environments/act-0123456789abcdef/versions/1?${VERSION}`],
    ["PUT", `${BASE}/environments/act-0123456789abcdef/versions/1?${VERSION}`, ENVIRONMENT],
    ["PUT", `${BASE}/connections/act?${VERSION}`, CONNECTION],
    ["GET", `${BASE}/computes?${VERSION}`],
    ["GET", `${BASE}/computes/gpu?${VERSION}`],
    ["PUT", `${BASE}/computes/gpu?${VERSION}`, CLUSTER],
    ["PATCH", `${BASE}/computes/gpu?${VERSION}`, SCALE],
    ["POST", `${BASE}/computes/gpu/listNodes?${VERSION}`],
    ["DELETE", `${BASE}/computes/gpu?${VERSION}&underlyingResourceAction=Delete`],
    ["GET", `${LOCATION}/usages?${VERSION}`],
    ["GET", `${LOCATION}/quotas?${VERSION}`],
    ["GET", `${LOCATION}/vmSizes?${VERSION}`],
];
