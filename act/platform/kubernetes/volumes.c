/* volumes.c - the folders of a run, and what else its pods mount.
 *
 * A folder of Blob Storage is an inline volume of the driver blob.csi.azure.com, which reads the account's key or SAS
 * from a Secret of the run. A folder on a PersistentVolumeClaim is a subPath of that claim. A folder of a folder store
 * is one of k8s.volumes, mounted at the same path as here.
 *
 * Source: github.com/kubernetes-sigs/blob-csi-driver docs/driver-parameters.md (ephemeral inline volumes).
 */
#include <string.h>

#include "base/path.h"
#include "config/config.h"
#include "platform/kubernetes/kubernetes_internal.h"

#define DRIVER  "blob.csi.azure.com"
#define OPTIONS "-o allow_other --file-cache-timeout-in-seconds=120"

/* The keys of a row of k8s.volumes that say how it is mounted; the others are the volume. */
static const struct {
    const char *ours, *theirs;
} mount_keys[] = {{"mount_path", "mountPath"}, {"sub_path", "subPath"}, {"read_only", "readOnly"}};

enum { N_MOUNT_KEYS = sizeof(mount_keys) / sizeof(mount_keys[0]) };

bool kubernetes_is_blob(const struct run_folder *folder)
{
    return !folder->link && act_starts_with(folder->store, "blob:");
}

static bool is_claim(const struct run_folder *folder)
{
    return act_starts_with(folder->store, RUN_CLAIM);
}

const char *kubernetes_claim_of(const struct run_folder *folder)
{
    return is_claim(folder) ? folder->store + strlen(RUN_CLAIM) : NULL;
}

bool kubernetes_is_mounted(const struct run_folder *folder)
{
    return is_claim(folder) ||
           (kubernetes_is_blob(folder) && (folder->mode == RUN_FOLDER_RW_MOUNT || folder->mode == RUN_FOLDER_RO_MOUNT));
}

static bool is_in_share(const struct run_folder *folder)
{
    return !folder->link && act_starts_with(folder->store, RUN_SHARE);
}

bool kubernetes_is_moved(const struct run_folder *folder)
{
    return (kubernetes_is_blob(folder) || is_in_share(folder)) &&
           (folder->mode == RUN_FOLDER_DOWNLOAD || folder->mode == RUN_FOLDER_UPLOAD);
}

/* ---- k8s.volumes ---- */

static void add_configured(const json_t *row, size_t i, json_t *volumes, json_t *mounts)
{
    json_t *volume = json_deep_copy(row), *mount = json_object();

    if (!*codec_json_str(volume, "name", "")) {
        ACT_AUTOFREE char *name = act_sprintf("volume-%zu", i);
        json_object_set_new(volume, "name", json_string(name));
    }
    json_object_set(mount, "name", json_object_get(volume, "name"));
    for (size_t k = 0; k < N_MOUNT_KEYS; k++) {
        if (json_object_get(row, mount_keys[k].ours))
            json_object_set(mount, mount_keys[k].theirs, json_object_get(row, mount_keys[k].ours));
        json_object_del(volume, mount_keys[k].ours);
    }
    json_array_append_new(volumes, volume);
    json_array_append_new(mounts, mount);
}

static int check_configured(const struct config *config, struct act_error *err)
{
    size_t i;
    json_t *row;

    json_array_foreach(k8s_keys(config)->volumes, i, row)
    {
        const char *path = codec_json_str(row, "mount_path", "");
        size_t sources = json_object_size(row) - (json_object_get(row, "name") != NULL);
        for (size_t k = 0; k < N_MOUNT_KEYS; k++)
            sources -= json_object_get(row, mount_keys[k].ours) != NULL;
        if (*path != '/')
            return act_error_set(err, ACT_CONFIG,
                                 "'k8s.volumes': the volume %zu needs 'mount_path', a path in the pods", i + 1);
        if (sources != 1)
            return act_error_set(err, ACT_CONFIG,
                                 "'k8s.volumes': the volume at '%s' needs one source, such as persistentVolumeClaim: "
                                 "{claimName: NAME}",
                                 path);
    }
    return 0;
}

/* ---- folders of the run ---- */

static char *folder_secret_name(const struct kubernetes_run *run, size_t i)
{
    return act_sprintf("%s-folder-%zu", run->name, i);
}

static void k8s_volumes_add_mount(const struct run_folder *f, const char *volume, json_t *mounts)
{
    ACT_AUTOFREE char *path = act_sprintf(KUBERNETES_FOLDERS "%s", f->name);
    json_t *mount =
        json_pack("{s:s, s:s, s:b}", "name", volume, "mountPath", path, "readOnly", f->mode == RUN_FOLDER_RO_MOUNT);

    if (f->path && *f->path)
        json_object_set_new(mount, "subPath", json_string(f->path));
    json_array_append_new(mounts, mount);
}

static void k8s_volumes_add_blob(const struct kubernetes_run *run, size_t i, json_t *volumes, json_t *mounts)
{
    const struct run_folder *f = &run->spec->folders[i];
    bool read_only = f->mode == RUN_FOLDER_RO_MOUNT;
    ACT_AUTOFREE char *name = act_sprintf("folder-%zu", i);
    ACT_AUTOFREE char *secret = folder_secret_name(run, i);

    k8s_volumes_add_mount(f, name, mounts);
    json_array_append_new(volumes, json_pack("{s:s, s:{s:s, s:b, s:{s:s, s:s, s:s}}}", "name", name, "csi", "driver",
                                             DRIVER, "readOnly", read_only, "volumeAttributes", "containerName",
                                             strchr(f->store, '/') + 1, "secretName", secret, "mountOptions", OPTIONS));
}

size_t kubernetes_first_of_claim(const struct run_spec *spec, size_t i)
{
    size_t first = 0;

    while (!act_streq(spec->folders[first].store, spec->folders[i].store))
        first++;
    return first;
}

static bool is_written(const struct run_spec *spec, const char *store)
{
    for (size_t i = 0; i < spec->n_folders; i++)
        if (act_streq(spec->folders[i].store, store) && spec->folders[i].mode != RUN_FOLDER_RO_MOUNT)
            return true;
    return false;
}

/* A claim is one volume, whatever number of folders is on it: the node waits for ever for a second one of it. */
static void k8s_volumes_add_claim(const struct run_spec *spec, size_t i, json_t *volumes, json_t *mounts)
{
    const struct run_folder *f = &spec->folders[i];
    size_t first = kubernetes_first_of_claim(spec, i);
    ACT_AUTOFREE char *name = act_sprintf("folder-%zu", first);

    k8s_volumes_add_mount(f, name, mounts);
    if (first == i)
        json_array_append_new(volumes,
                              json_pack("{s:s, s:{s:s, s:b}}", "name", name, "persistentVolumeClaim", "claimName",
                                        kubernetes_claim_of(f), "readOnly", !is_written(spec, f->store)));
}

static void k8s_volumes_add_folder(const struct kubernetes_run *run, size_t i, json_t *volumes, json_t *mounts)
{
    const struct run_folder *f = &run->spec->folders[i];

    if (is_claim(f))
        k8s_volumes_add_claim(run->spec, i, volumes, mounts);
    else if (kubernetes_is_mounted(f))
        k8s_volumes_add_blob(run, i, volumes, mounts);
}

void kubernetes_add_volumes(const struct kubernetes_run *run, json_t *volumes, json_t *mounts)
{
    size_t i;
    json_t *row;

    json_array_foreach(k8s_keys(run->config)->volumes, i, row) add_configured(row, i, volumes, mounts);
    for (i = 0; i < run->spec->n_folders; i++)
        k8s_volumes_add_folder(run, i, volumes, mounts);
}

json_t *kubernetes_folder_secret(const struct kubernetes_run *run, size_t i, const struct config_account *account,
                                 const char *uid, struct act_error *err)
{
    const char *key = account->account_key ? "azurestorageaccountkey" : "azurestorageaccountsastoken";
    const char *value = account->account_key ? account->account_key : account->sas_token;

    if (!value || act_streq(account->auth, "login") || act_streq(account->auth, "anonymous")) {
        act_error_set(err, ACT_CONFIG,
                      "folder '%s' cannot be mounted: the driver needs the account_key or a sas_token of '%s', and "
                      "'%s' has neither; a volume of k8s.volumes may log in as the cluster does",
                      run->spec->folders[i].name, account->account_name, account->file);
        return NULL;
    }
    ACT_AUTOFREE char *name = folder_secret_name(run, i);
    return kubernetes_values_secret(
        run, name, uid, (const char *const[]){"azurestorageaccountname", account->account_name, key, value, NULL});
}

/* Tells whether the pods have this path of a folder store, by a volume mounted at it or above. */
static bool k8s_volumes_is_mounted(const struct config *config, const char *path)
{
    size_t i;
    json_t *row;

    json_array_foreach(k8s_keys(config)->volumes, i,
                       row) if (act_path_is_within(path, codec_json_str(row, "mount_path", "/-"))) return true;
    return false;
}

static int k8s_volumes_check_folder(const struct config *config, const struct run_folder *f, struct act_error *err)
{
    if (f->link && !k8s_volumes_is_mounted(config, f->link))
        return act_error_set(err, ACT_CONFIG,
                             "folder '%s' is '%s', which the pods do not have; mount a volume there with k8s.volumes, "
                             "or put the folder into Blob Storage",
                             f->name, f->link);
    if (!f->link && !kubernetes_is_blob(f) && !is_in_share(f) && !is_claim(f))
        return act_error_set(err, ACT_CONFIG,
                             "folder '%s' is in '%s', which cannot be brought to pods: put it into Blob Storage",
                             f->name, f->store);
    return 0;
}

int kubernetes_check_folders(const struct config *config, const struct run_spec *spec, struct act_error *err)
{
    int rc = check_configured(config, err);

    if (rc == 0)
        rc = platform_check_shares(spec, "the pods of a cluster", err);
    for (size_t i = 0; rc == 0 && i < spec->n_folders; i++)
        rc = k8s_volumes_check_folder(config, &spec->folders[i], err);
    return rc;
}

json_t *kubernetes_spec_json(const struct run_spec *spec)
{
    struct run_spec own = *spec;

    own.folders = act_calloc(spec->n_folders + 1, sizeof(*own.folders));
    for (size_t i = 0; i < spec->n_folders; i++) {
        own.folders[i] = spec->folders[i];
        if (kubernetes_is_mounted(&spec->folders[i]))
            own.folders[i].link = act_sprintf(KUBERNETES_FOLDERS "%s", spec->folders[i].name);
    }
    json_t *json = run_spec_to_json(&own);
    for (size_t i = 0; i < spec->n_folders; i++)
        if (own.folders[i].link != spec->folders[i].link)
            free(own.folders[i].link);
    free(own.folders);
    return json;
}
