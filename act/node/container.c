#include "node/container.h"

#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/path.h"
#include "node/environment.h"
#include "node/layer.h"
#include "node/mount.h"
#include "proc/proc.h"
#include "run/shell.h"

static bool is_kind(const struct node *node, const char *kind)
{
    const struct run_spec *spec = &node->spec;

    return spec->image && spec->container && strcmp(spec->container, kind) == 0;
}

bool container_is_fresh(const struct node *node)
{
    return is_kind(node, "docker") || is_kind(node, "podman");
}

bool container_is_used(const struct node *node)
{
    return is_kind(node, "apptainer") || container_is_fresh(node);
}

static char *find_program(const struct node *node, struct act_error *err)
{
    char *program = proc_find_in_path("apptainer");

    if (!program)
        program = proc_find_in_path("singularity");
    if (!program)
        act_error_set(err, ACT_NOT_FOUND,
                      "neither 'apptainer' nor 'singularity' is in PATH on node '%s', and the run has the image '%s'; "
                      "set 'slurm.container' to 'pyxis' or 'none', or load the module that brings one",
                      node->name, node->spec.image);
    return program;
}

static bool has_scheme(const char *image)
{
    return strstr(image, "://");
}

static bool container_is_file(const char *image)
{
    return image[0] == '/' || act_starts_with(image, "./") || act_ends_with(image, ".sif") ||
           act_ends_with(image, ".sqsh");
}

/* ---- what the container sees ---- */

static int container_check_path(const char *path, struct act_error *err)
{
    if (!path[strcspn(path, ":,")])
        return 0;
    return act_error_set(err, ACT_CONFIG, "'%s' cannot be seen in a container: its name has a ':' or a ','", path);
}

struct paths {
    struct act_strv v; /* path, options, path, options, ... */
    struct act_error *err;
    int rc;
};

static void container_add_path(struct paths *p, const char *path, bool read_only)
{
    if (p->rc == 0)
        p->rc = container_check_path(path, p->err);
    ACT_STRV_PUSH(&p->v, path, read_only ? ":ro" : "");
}

static void container_add_run(struct paths *p, const struct node *node)
{
    ACT_AUTOFREE char *own = run_shell_is(&node->spec.argv) ? node_own_program() : NULL;

    container_add_path(p, node->dir, false);
    for (size_t i = 0; i < node->spec.n_folders; i++)
        if (node->spec.folders[i].link)
            container_add_path(p, node->spec.folders[i].link, node->spec.folders[i].mode == RUN_FOLDER_RO_MOUNT);
    ACT_AUTOFREE char *environments = node->spec.environment.none ? NULL : environment_home(node);
    if (environments && access(environments, F_OK) == 0)
        container_add_path(p, environments, false);
    if (own)
        container_add_path(p, own, true);
    ACT_AUTOFREE char *layer = node->local ? layer_path(node) : NULL;
    if (layer && access(layer, F_OK) == 0)
        container_add_path(p, layer, false);
    for (size_t i = 0; node->local && i < node->spec.n_folders; i++) {
        ACT_AUTOFREE char *point = mount_point(node, &node->spec.folders[i]);
        if (mount_is_for(node, &node->spec.folders[i]))
            container_add_path(p, point, node->spec.folders[i].mode == RUN_FOLDER_RO_MOUNT);
    }
}

static int wrap(const struct node *node, struct act_strv *out, struct act_error *err)
{
    ACT_AUTOFREE char *program = find_program(node, err);
    const char *image = node->spec.image;
    struct paths binds = {.err = err};

    if (!program)
        return -ACT_NOT_FOUND;
    ACT_STRV_PUSH(out, program, "exec");
    if (node->spec.gpus_per_node > 0)
        act_strv_push(out, "--nv");
    container_add_run(&binds, node);
    if (!act_path_is_within(node->code, node->dir))
        container_add_path(&binds, node->code, false);
    for (size_t i = 0; i < binds.v.n; i += 2) {
        act_strv_push(out, "--bind");
        act_strv_pushf(out, "%s:%s%s", binds.v.v[i], binds.v.v[i], binds.v.v[i + 1]);
    }
    act_strv_release(&binds.v);
    ACT_STRV_PUSH(out, "--pwd", node->code);
    act_strv_pushf(out, "%s%s", has_scheme(image) || container_is_file(image) ? "" : "docker://", image);
    return binds.rc;
}

/* ---- docker, podman ---- */

/* The variables of the rank's environment that the container needs; they are passed on by name. PYTHONPATH is the
 * image's. */
static const char *const passed_on[] = {
    "RANK",
    "LOCAL_RANK",
    "WORLD_SIZE",
    "LOCAL_WORLD_SIZE",
    "OMPI_COMM_WORLD_RANK",
    "OMPI_COMM_WORLD_LOCAL_RANK",
    "OMPI_COMM_WORLD_SIZE",
    "OMPI_COMM_WORLD_LOCAL_SIZE",
    "NODE_RANK",
    "MASTER_ADDR",
    "MASTER_PORT",
    NODE_ENV_RUN,
    RUN_ENV_CODE,
    "AZ_BATCH_HOST_LIST",
    "AZ_BATCHAI_JOB_MASTER_NODE_IP",
    "AZ_BATCHAI_NUM_GPUS",
    "CUDA_VISIBLE_DEVICES",
    "CUDA_DEVICE_ORDER",
    "ROCR_VISIBLE_DEVICES",
    "ZE_AFFINITY_MASK",
    "TORCH_HOME",
};

static void add_env_options(const struct node *node, struct act_strv *out)
{
    for (size_t i = 0; i < sizeof(passed_on) / sizeof(passed_on[0]); i++)
        act_strv_pushf(out, "--env=%s", passed_on[i]);
    for (size_t i = 0; i < node->spec.n_env; i++)
        act_strv_pushf(out, "--env=%s", node->spec.env[i].name);
}

static void container_add_name(const struct node *node, int rank, const char *option, struct act_strv *out)
{
    act_strv_pushf(out, "%sact-%s-%d", option, node->spec.id, rank);
}

/* The code and the linked folders appear in it under their own paths. */
static int wrap_fresh(const struct node *node, int rank, struct act_strv *out, struct act_error *err)
{
    struct paths volumes = {.err = err};

    ACT_STRV_PUSH(out, node->spec.container, "run", "--rm", "--init", "--network=host", "--ipc=host");
    if (rank >= 0)
        container_add_name(node, rank, "--name=", out);
    if (rank >= 0 && node->spec.takes_input)
        act_strv_push(out, "--interactive");
    if (node->spec.gpus_per_node > 0)
        act_strv_push(out, "--gpus=all");
    container_add_run(&volumes, node);
    for (size_t i = 0; i < volumes.v.n; i += 2)
        act_strv_pushf(out, "--volume=%s:%s%s", volumes.v.v[i], volumes.v.v[i], volumes.v.v[i + 1]);
    act_strv_release(&volumes.v);
    act_strv_pushf(out, "--workdir=%s", node->code);
    add_env_options(node, out);
    act_strv_push(out, node->spec.image);
    return volumes.rc;
}

int container_wrap(const struct node *node, int rank, const char *const *argv, struct act_strv *out,
                   struct act_error *err)
{
    int rc = container_is_fresh(node)  ? wrap_fresh(node, rank, out, err)
             : container_is_used(node) ? wrap(node, out, err)
                                       : 0;

    act_strv_add(out, argv);
    return rc;
}

void container_remove_all(const struct node *node)
{
    enum { REMOVE_S = 60, ANSWER_MAX = 64 << 10 };
    ACT_AUTO(proc_result) result = {0};
    ACT_AUTO(act_strv) words = {0};
    struct act_error err;

    if (!container_is_fresh(node))
        return;
    ACT_STRV_PUSH(&words, node->spec.container, "rm", "-f");
    for (int rank = 0; rank < node_world_size(node); rank++)
        container_add_name(node, rank, "", &words);
    const struct proc_call call = {.argv = words.v, .sees = OF_DOCKER, .timeout_s = REMOVE_S, .max_bytes = ANSWER_MAX};
    if (proc_call(&call, &result, &err) < 0)
        node_say("the containers of the run may still be there: %s", act_error_text(&err));
}

/* ---- pyxis ---- */

/* enroot wants REGISTRY#IMAGE. As in docker, a first part with a '.' or a ':', or "localhost", is a registry. */
static char *enroot_name(const char *image)
{
    const char *name = act_starts_with(image, "docker://") ? image + strlen("docker://") : image;
    size_t first = strcspn(name, "/");
    bool registry = name[first] && (strcspn(name, ".:") < first || strncmp(name, "localhost/", first + 1) == 0);
    char *out = act_strdup(name);

    if (registry && !container_is_file(name) && !strchr(name, '#'))
        out[first] = '#';
    return out;
}

int container_srun_options(const struct node *node, const char *program, struct act_strv *out, struct act_error *err)
{
    ACT_AUTOFREE char *bin = act_path_dirname(program);
    ACT_AUTO(act_buf) text = {0};
    struct paths mounts = {.err = err};

    if (!is_kind(node, "pyxis"))
        return 0;
    ACT_AUTOFREE char *environments = node->spec.environment.none ? NULL : environment_home(node);
    int rc = environments ? act_mkdir_all(environments, 0755, err) : 0; /* what is not there cannot be mounted */
    if (rc < 0)
        return rc;
    ACT_AUTOFREE char *image = enroot_name(node->spec.image);
    act_strv_pushf(out, "--container-image=%s", image);
    container_add_run(&mounts, node);
    container_add_path(&mounts, bin, true);
    if (node->spec.scratch)
        container_add_path(&mounts, node->spec.scratch, false);
    for (size_t i = 0; i < mounts.v.n; i += 2)
        act_buf_addf(&text, "%s%s:%s%s", i ? "," : "", mounts.v.v[i], mounts.v.v[i], mounts.v.v[i + 1]);
    act_strv_pushf(out, "--container-mounts=%s", text.data);
    act_strv_release(&mounts.v);
    return mounts.rc;
}
