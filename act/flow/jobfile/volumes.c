/* volumes.c - the volumes of a job file of Azure Batch AI: mounted by the keys that it has for them, or what stands for
 * them.
 *
 * Only Azure Machine Learning mounts by keys: a volume becomes a folder of the configuration, whose account is in
 * memory, and goes the way of all mapped folders. The user who names the file vouches for its keys, but not for the
 * host of a share: that must be Azure's, or one that the user trusts. On local and slurm a file system that its mount
 * command names, and that this machine has mounted, is a folder of mode path; so is a directory of a file server, of
 * which a mapped folder of the server's name says where the nodes have it.
 *
 * Source of what a file server is: the REST reference of Batch AI 2018-05-01, jobs/create (FileServerReference).
 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "auth/trusted.h"
#include "base/path.h"
#include "config/config.h"
#include "flow/jobfile/build.h"
#include "proc/mounts.h"

/* A kind of volume: the member that says where it is in its account (NULL: nothing mounts it), and what else to do. */
struct kind {
    const char *list, *place, *instead;
};

static const struct kind kinds[] = {
    {"azureFileShares", "azureFileUrl",
     "map the share in the cluster file, as a folder of that name, or put what is there into the "
     "code"},
    {"azureBlobFileSystems", "containerName", "map the container in the cluster file, as a folder of that name"},
    {"fileServers", NULL,
     "file servers of Batch AI are no more: put what was there into the code, or into a mapped "
     "folder of that name"},
    {"unmanagedFileSystems", NULL,
     "the mount command is not run: the nodes must have it mounted, or a mapped folder "
     "of that name stand for it (on local and slurm with 'mode: path', if the nodes have it)"},
};

/* A volume of the file. */
struct volume {
    const struct kind *kind;
    size_t i; /* in its list */
    const json_t *item;
    const char *path; /* where it is mounted */
};

/* ---- where volumes are */

static bool is_at(const struct config_folder *folders, size_t n_folders, const char *rel)
{
    for (size_t i = 0; i < n_folders; i++) {
        const char *name = folders[i].name;
        size_t n = name ? strlen(name) : 0;
        if (n && strncmp(rel, name, n) == 0 && (rel[n] == '/' || rel[n] == '\0'))
            return true;
    }
    return false;
}

bool job_is_mapped(const struct job_build *b, const char *rel)
{
    return is_at(b->config->folders, b->config->n_folders, rel) || is_at(b->out->volumes, b->out->n_volumes, rel);
}

bool job_is_in_code(const struct config *config, const char *rel)
{
    ACT_AUTOFREE char *path = config->project_root ? act_path_join(config->project_root, rel) : NULL;

    return path && access(path, F_OK) == 0;
}

/* ---- mounting */

static int bad_url(const struct job_build *b, const struct volume *v, const char *account)
{
    return act_error_set(b->err, ACT_CONFIG,
                         "%s: 'properties.mountVolumes.%s[%zu].azureFileUrl' must be that of a share of its account, "
                         "such as https://%s.file.core.windows.net/SHARE",
                         b->file, v->kind->list, v->i, account);
}

/* The service sends the key to the host that the URL names. */
static int jobfile_volumes_check_host(const struct job_build *b, const struct volume *v, const char *url)
{
    ACT_AUTOFREE char *said_by =
        act_sprintf("'properties.mountVolumes.%s[%zu].azureFileUrl' of '%s'", v->kind->list, v->i, b->file);
    struct auth_address address = {.url = url, .said_by = said_by, .owner = AUTH_OF_USER};

    return auth_check_address(&address, b->err);
}

/* "https://acct.file.core.windows.net/share/a/b": share, path in it, and the account's endpoint, which is named by Blob
 * Storage wherever ACT keeps one. */
static int read_url(const struct job_build *b, const struct volume *v, const char *url, struct config_folder *out)
{
    const char *account = out->account->account_name, *scheme = strstr(url, "://");
    ACT_AUTOFREE char *begin = act_sprintf("%s.file.", account);
    const char *host = scheme ? scheme + strlen("://") : "";

    if (!act_starts_with(host, begin) || strpbrk(url, "?#@%\\ \t\r\n"))
        return bad_url(b, v, account);
    const char *suffix = host + strlen(begin), *share = suffix + strcspn(suffix, "/");
    share += *share == '/';
    size_t n = strcspn(share, "/");
    const char *path = share + n + (share[n] == '/');
    if (n == 0 || (*path && !act_path_is_safe(path, strlen(path))))
        return bad_url(b, v, account);
    out->file_share = act_strndup(share, n);
    act_str_replace(&out->path, path);
    if (act_ends_with(path, "/"))
        out->path[strlen(path) - 1] = '\0';
    out->account->endpoint =
        act_sprintf("%.*s%s.blob.%.*s", (int)(host - url), url, account, (int)strcspn(suffix, "/"), suffix);
    return jobfile_volumes_check_host(b, v, url);
}

static void note_options(struct job_build *b, const struct volume *v)
{
    static const char *const members[] = {"mountOptions", "fileMode", "directoryMode"};

    for (size_t i = 0; i < sizeof(members) / sizeof(members[0]); i++)
        if (job_text(v->item, members[i]))
            job_note(b, "mountVolumes.%s: %s of the volume at '%s' is not used: the service has its own", v->kind->list,
                     members[i], v->path);
}

static char *account_key(const struct volume *v)
{
    return job_secret(json_object_get(v->item, "credentials"), "accountKey", "accountKeySecretReference");
}

/* The texts that az batchai filled in, as most of the recipes of Batch AI have them. */
static const struct placeholder {
    const char *text, *variable, *option;
} placeholders[] = {
    {"<AZURE_BATCHAI_STORAGE_ACCOUNT>", "AZURE_BATCHAI_STORAGE_ACCOUNT", "--storage-account-name"},
    {"<AZURE_BATCHAI_STORAGE_KEY>", "AZURE_BATCHAI_STORAGE_KEY", "--storage-account-key"},
};
enum { ACCOUNT, KEY };

/* Tells whether the key is not the file's own. */
static bool is_placeholder(const char *key)
{
    return act_streq(key, placeholders[KEY].text);
}

/* Replaces it in *text, if it is there. */
static int fill(const struct job_build *b, const struct placeholder *p, const char *given, char **text)
{
    char *at = *text ? strstr(*text, p->text) : NULL;
    const char *value = given ? given : getenv(p->variable);

    if (!at)
        return 0;
    if (!value || !*value)
        return act_error_set(b->err, ACT_CONFIG, "%s: nothing says what '%s' stands for: give %s, or set $%s", b->file,
                             p->text, p->option, p->variable);
    char *filled = act_sprintf("%.*s%s%s", (int)(at - *text), *text, value, at + strlen(p->text));
    act_wipe(text);
    *text = filled;
    return 0;
}

static int fill_account(const struct job_build *b, char **text)
{
    return fill(b, &placeholders[ACCOUNT], b->storage ? b->storage->account : NULL, text);
}

static int fill_key(const struct job_build *b, char **text)
{
    return fill(b, &placeholders[KEY], b->storage ? b->storage->key : NULL, text);
}

/* Adds the folder that a volume becomes, with an account in memory. */
static struct config_folder *add_volume(struct job_build *b, const struct volume *v, const char *account_file,
                                        const char *type, const char *mode)
{
    struct config_folder folder = {.name = act_strdup(v->path),
                                   .account_file = act_strdup(account_file),
                                   .path = act_strdup(""),
                                   .storage_type = act_strdup(type),
                                   .blob_cache_timeout = -1,
                                   .mode = act_strdup(mode),
                                   .account = act_calloc(1, sizeof(*folder.account))};

    ACT_PUSH(b->out->volumes, b->out->n_volumes, folder);
    return &b->out->volumes[b->out->n_volumes - 1];
}

static int mount_volume(struct job_build *b, const struct volume *v)
{
    ACT_AUTOFREE char *place = act_strdup(job_text(v->item, v->kind->place));
    bool is_share = strcmp(v->kind->place, "azureFileUrl") == 0;

    struct config_folder *folder = add_volume(b, v, b->file, is_share ? "file" : "blob", "rw_mount");
    folder->account->account_name = act_strdup(job_text(v->item, "accountName"));
    folder->account->account_key = account_key(v);
    int rc = fill_account(b, &folder->account->account_name);
    if (rc == 0)
        rc = fill_account(b, &place);
    folder->account->secret_is_lent = is_placeholder(folder->account->account_key);
    if (rc == 0)
        rc = fill_key(b, &folder->account->account_key);
    if (rc < 0)
        return rc;
    if (job_is_in_code(b->config, v->path))
        job_note(b, "mountVolumes.%s: the volume is mounted in place of the code's '%s'", v->kind->list, v->path);
    note_options(b, v);
    if (is_share)
        return read_url(b, v, place, folder);
    folder->account->container_name = act_strdup(place);
    return 0;
}

/* ---- what the nodes have */

/* Returns what a command such as "mount -t nfs -o ro 10.0.0.4:/data" or "mount.cifs //host/share" mounts, as a new
 * string; NULL: it cannot be seen. */
static char *source_of(const char *command)
{
    static const char blanks[] = " \t\r\n";

    while (command && *(command += strspn(command, blanks))) {
        size_t n = strcspn(command, blanks);
        ACT_AUTOFREE char *word = act_strndup(command, n);
        const char *colon = strstr(word, ":/");
        if (act_starts_with(word, "//") || (colon && colon > word && colon[2] != '/' && *word != '-' && *word != '/'))
            return act_strdup(word);
        command += n;
    }
    return NULL;
}

/* Tells whether a folder of mode path can stand for it. */
static bool may_be_place(const struct job_build *b, const struct volume *v)
{
    return platform_find(b->config->platform)->about.agent_mounts && act_path_is_safe(v->path, strlen(v->path)) &&
           !strchr(v->path, '/');
}

static void link_volume(struct job_build *b, const struct volume *v, const char *place)
{
    add_volume(b, v, place, "blob", "path")->account->folder = act_strdup(place);
}

/* Links the volume to where this machine, and so presumably the nodes, has it mounted. False: nowhere. */
static bool link_mounted(struct job_build *b, const struct volume *v)
{
    ACT_AUTOFREE char *source = source_of(job_text(v->item, "mountCommand"));
    ACT_AUTOFREE char *place = source && may_be_place(b, v) ? mounts_find_source(source) : NULL;

    if (!place)
        return false;
    link_volume(b, v, place);
    job_note(b, "mountVolumes.%s: the volume at '%s' is '%s', where this machine has it mounted; the nodes must, too",
             v->kind->list, v->path, place);
    return true;
}

/* ---- file servers */

/* Returns the name of a file server, which is the end of its id. NULL: the volume is none, or has no id. */
static const char *server_of(const struct volume *v)
{
    const char *id = job_text(json_object_get(v->item, "fileServer"), "id");
    const char *slash = id ? strrchr(id, '/') : NULL, *name = slash ? slash + 1 : id;

    return name && *name ? name : NULL;
}

/* Returns the mapped folder of mode path that has the server's name; NULL: none. */
static const struct config_folder *find_server(const struct job_build *b, const char *name)
{
    for (size_t i = 0; i < b->config->n_folders; i++)
        if (strcmp(b->config->folders[i].name, name) == 0 && config_is_place(&b->config->folders[i]))
            return &b->config->folders[i];
    return NULL;
}

/* The directory of the server, all of which is in that folder. */
static int link_directory(struct job_build *b, const struct volume *v, const struct config_folder *server)
{
    const char *given = job_text(v->item, "sourceDirectory"), *dir = given ? given + strspn(given, "/") : "";

    dir = strcmp(dir, ".") == 0 ? "" : dir;
    if (*dir && !act_path_is_safe(dir, strlen(dir)))
        return act_error_set(b->err, ACT_CONFIG,
                             "%s: 'properties.mountVolumes.%s[%zu].sourceDirectory' must be a directory of the server",
                             b->file, v->kind->list, v->i);
    ACT_AUTOFREE char *joined = act_path_join(server->account_file, dir);
    ACT_AUTOFREE char *place = act_path_clean(joined);
    link_volume(b, v, place);
    job_note(b, "mountVolumes.%s: the volume at '%s' is '%s', in the mapped folder '%s', which the server is%s",
             v->kind->list, v->path, place, server->name,
             job_text(v->item, "mountOptions") ? "; mountOptions are those of the nodes" : "");
    return 0;
}

static int refuse_server(const struct job_build *b, const struct volume *v, const char *server)
{
    return act_error_set(b->err, ACT_CONFIG,
                         "%s: the file server '%s', whose volume is at '%s', is no more: where the nodes have mounted "
                         "what it is today, the cluster file says below config_param "
                         "'%s_folder: {mode: path, path: /mnt/%s}'",
                         b->file, server, v->path, server, server);
}

/* ---- what is not mounted */

/* NULL: nothing is in the way of mounting it. */
static const char *obstacle(const struct job_build *b, const struct volume *v)
{
    if (!v->kind->place || !platform_find(b->config->platform)->settings.datastore)
        return "";
    if (!job_text(v->item, "accountName") || !job_text(v->item, v->kind->place))
        return ", as the file does not say where it is";
    ACT_AUTOFREE char *key = account_key(v);
    if (!key)
        return ", as the file has no accountKey for it";
    if (!act_path_is_safe(v->path, strlen(v->path)) || strchr(v->path, '/'))
        return ", as its path is not one plain name";
    return NULL;
}

static int take_volume(struct job_build *b, const struct volume *v)
{
    ACT_AUTOFREE char *key = account_key(v);
    const char *reason = obstacle(b, v), *server = may_be_place(b, v) ? server_of(v) : NULL;

    b->out->has_secrets |= key && !config_is_in_vault(key) && !is_placeholder(key);
    if (job_is_mapped(b, v->path))
        job_note(b, "mountVolumes.%s: the mapped folder stands for the volume at '%s'", v->kind->list, v->path);
    else if (!reason)
        return mount_volume(b, v);
    else if (link_mounted(b, v))
        return 0;
    else if (server && find_server(b, server))
        return link_directory(b, v, find_server(b, server));
    else if (job_is_in_code(b->config, v->path))
        job_note(b, "mountVolumes.%s: the code's '%s' stands for the volume", v->kind->list, v->path);
    else if (server)
        return refuse_server(b, v, server);
    else {
        job_note(b, "mountVolumes.%s: the volume at '%s' is not mounted%s; %s", v->kind->list, v->path, reason,
                 v->kind->instead);
        act_strv_push(&b->missing, v->path);
    }
    return 0;
}

/* "afs" of "afs", "/afs/" and "./afs"; "" of the mount root itself. New string. */
static char *mount_path(const char *given)
{
    ACT_AUTOFREE char *clean = act_path_clean(given);
    const char *rel = clean + strspn(clean, "/");

    return act_strdup(strcmp(rel, ".") == 0 ? "" : rel);
}

/* Takes note of its path. */
static int check_path(const struct job_build *b, const struct volume *v, struct act_strv *taken)
{
    if (!*v->path)
        return act_error_set(b->err, ACT_CONFIG,
                             "%s: 'properties.mountVolumes.%s[%zu]' is mounted at the mount root itself, which is the "
                             "folder of the code here: give it a relativeMountPath such as 'bfs', and write "
                             "$AZ_BATCHAI_MOUNT_ROOT/bfs where it is used",
                             b->file, v->kind->list, v->i);
    if (act_strv_has(taken, v->path))
        return act_error_set(b->err, ACT_CONFIG,
                             "%s: 'properties.mountVolumes.%s[%zu]' is mounted at '%s', as another volume is: give it "
                             "another relativeMountPath",
                             b->file, v->kind->list, v->i, v->path);
    act_strv_push(taken, v->path);
    return 0;
}

int job_take_volumes(struct job_build *b)
{
    const json_t *all = json_object_get(b->job, "mountVolumes");
    ACT_AUTO(act_strv) taken = {0};
    size_t i;
    json_t *item;
    int rc = 0;

    for (size_t k = 0; k < sizeof(kinds) / sizeof(kinds[0]); k++)
        json_array_foreach(json_object_get(all, kinds[k].list), i, item)
        {
            ACT_AUTOFREE char *path = mount_path(job_text(item, "relativeMountPath"));
            struct volume v = {&kinds[k], i, item, path};
            rc = check_path(b, &v, &taken);
            rc = rc < 0 ? rc : take_volume(b, &v);
            if (rc < 0)
                return rc;
        }
    return 0;
}
