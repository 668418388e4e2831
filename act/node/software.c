#include "node/software.h"

#include <ctype.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/path.h"
#include "codec/json.h"
#include "node/child.h"
#include "node/container.h"
#include "node/environment.h"
#include "node/inventory.h"
#include "node/layer.h"
#include "node/setup.h"
#include "proc/proc.h"

/* ---- what files and variables say */

static char *text_or_null(const char *text)
{
    return text && *text ? act_strdup(text) : NULL;
}

char *software_driver(const char *line)
{
    for (const char *word = line; *word; word += strcspn(word, " "), word += strspn(word, " "))
        if (isdigit((unsigned char)*word) && memchr(word, '.', strcspn(word, " ")))
            return act_strndup(word, strcspn(word, " \n"));
    return NULL;
}

/* Returns the version of the first package whose name begins so. New string; NULL: there is none. */
static char *version_of_package(const struct act_strv *packages, const char *beginning)
{
    for (size_t i = 0; i < packages->n; i++)
        if (act_starts_with(packages->v[i], beginning))
            return act_strdup(strstr(packages->v[i], "==") + strlen("=="));
    return NULL;
}

/* Returns the release of the toolkit in a folder. New string; NULL: there is none. */
static char *toolkit_version(const char *root, const char *folder)
{
    enum { FILE_MAX = 1 << 20 };
    ACT_AUTOFREE char *path = act_sprintf("%s%s/version.json", root, folder);
    CODEC_AUTOJSON json_t *json = NULL;

    if (codec_json_read(path, FILE_MAX, &json, NULL) < 0)
        return NULL;
    return text_or_null(codec_json_str(json_object_get(json, "cuda"), "version", ""));
}

static char *find_cuda(const char *root, const struct act_strv *packages)
{
    const char *home = getenv("CUDA_HOME");
    char *found = version_of_package(packages, "nvidia-cuda-runtime");

    if (!found && home && *home)
        found = toolkit_version(root, home);
    if (!found)
        found = text_or_null(getenv("CUDA_VERSION")); /* of an image */
    return found ? found : toolkit_version(root, "/usr/local/cuda");
}

/* Returns the version in the name of the library that libnccl.so.2 in a folder is. New string; NULL: there is none. */
static char *library_version(const char *folder)
{
    static const char stem[] = "libnccl.so.";
    ACT_AUTOFREE char *path = act_path_join(folder, "libnccl.so.2");
    ACT_AUTOFREE char *real = realpath(path, NULL);
    const char *name = real ? act_path_basename(real) : "";

    return act_starts_with(name, stem) ? act_strdup(name + strlen(stem)) : NULL;
}

static char *find_nccl(const char *root, const struct act_strv *packages)
{
    static const char *const folders[] = {"/usr/lib/x86_64-linux-gnu", "/usr/lib/aarch64-linux-gnu", "/usr/lib64",
                                          "/usr/local/lib"};
    char *found = version_of_package(packages, "nvidia-nccl");

    for (const char *path = getenv("LD_LIBRARY_PATH"); !found && path && *path;) {
        size_t len = strcspn(path, ":");
        ACT_AUTOFREE char *folder = act_strndup(path, len);
        found = *folder == '/' ? library_version(folder) : NULL;
        path += len + (path[len] == ':');
    }
    for (size_t i = 0; !found && i < sizeof(folders) / sizeof(folders[0]); i++) {
        ACT_AUTOFREE char *folder = act_sprintf("%s%s", root, folders[i]);
        found = library_version(folder);
    }
    return found;
}

static void take_modules(struct act_strv *out)
{
    for (const char *at = getenv("LOADEDMODULES"); at && *at; at += *at == ':') {
        size_t len = strcspn(at, ":");
        if (len)
            act_strv_take(out, act_strndup(at, len));
        at += len;
    }
}

/* Adds "torch==2.1.0", with the name as pip compares it. */
static void software_add_package(const char *package, struct act_strv *out)
{
    size_t len = strcspn(package, "=");
    ACT_AUTOFREE char *name = run_package_name(package, len);

    ACT_AUTOFREE char *text = act_sprintf("%s%s", name, package + len);
    if (!act_strv_has(out, text))
        act_strv_push(out, text);
}

static void take_packages(const char *python, struct act_strv *out)
{
    ACT_AUTO(act_strv) found = {0};

    inventory_packages(python, getenv("HOME"), getenv("PYTHONPATH"), &found);
    for (size_t i = 0; i < found.n; i++)
        software_add_package(found.v[i], out);
    act_strv_sort(out);
}

/* Reads what files tell. Nothing can be read of an image in which the agent itself does not run. */
static void take_from_files(const char *root, struct run_environment *out)
{
    ACT_AUTOFREE char *system = inventory_value(root, "/etc/os-release", "PRETTY_NAME=");

    out->system = text_or_null(system);
    if (out->python && !inventory_is_script(out->python))
        take_packages(out->python, &out->packages);
    out->cuda = find_cuda(root, &out->packages);
    out->nccl = find_nccl(root, &out->packages);
}

/* Runs are compared by what they share. */
static void name_shared(const struct node *node, char **path)
{
    if (!*path)
        return;
    ACT_AUTOFREE char *shared = environment_below_layer(node, *path);
    act_str_replace(path, shared);
}

void software_take(const struct node *node, const char *root, struct run_environment *out)
{
    ACT_AUTOFREE char *driver = inventory_value(root, "/proc/driver/nvidia/version", "NVRM version:");

    *out = (struct run_environment){.attempt = node->attempt,
                                    .node = act_strdup(node->name),
                                    .python = inventory_python(node),
                                    .conda = text_or_null(getenv("CONDA_PREFIX")),
                                    .venv = text_or_null(getenv("VIRTUAL_ENV")),
                                    .driver = software_driver(driver),
                                    .image = text_or_null(node->spec.image)};
    take_modules(&out->modules);
    if (!container_is_used(node))
        take_from_files(root, out);
    name_shared(node, &out->python);
    name_shared(node, &out->venv);
}

/* ---- what programs say */

enum { ASK_S = 20, SAID_MAX = 64 * 1024 };

/* Returns what a program prints. New string; NULL: it failed. */
static char *ask(char *const *argv)
{
    struct proc_call call = {.argv = argv, .timeout_s = ASK_S, .max_bytes = SAID_MAX};
    struct proc_result result;
    struct act_error ignored;
    char *said = NULL;

    if (proc_call(&call, &result, &ignored) == 0 && result.status == 0)
        said = act_strdup(result.out);
    proc_result_release(&result);
    return said;
}

/* Nothing of the user's begins with it: -I ignores his variables and folders, -S what .pth files start. */
static bool ask_python(struct run_environment *e)
{
    char question[] = "import sys; print('%d.%d.%d' % sys.version_info[:3]); print(sys.executable)";
    char *const argv[] = {e->python, (char[]){"-I"}, (char[]){"-S"}, (char[]){"-c"}, question, NULL};
    ACT_AUTOFREE char *said = e->python ? ask(argv) : NULL;
    char *rest = said;
    const char *version = rest ? strsep(&rest, "\n") : NULL, *program = rest ? strsep(&rest, "\n") : NULL;

    if (!version || !program)
        return false;
    e->python_version = text_or_null(version);
    if (inventory_is_script(e->python) && *program == '/') {
        act_str_replace(&e->python, program);
        take_packages(e->python, &e->packages);
    }
    return true;
}

/* ---- in an image */

/* Prints the version, the program, and the folders of packages: of a layer (layer.h) those of the environment below it,
 * and those of the Python that it was made from where it sees them. Nothing of the user's begins with it, as above. */
static const char in_image[] =
    "import glob, os, sys\n"
    "print('%d.%d.%d' % sys.version_info[:3]); print(sys.executable)\n"
    "own = os.path.dirname(os.path.dirname(sys.executable))\n"
    "try: sees = 'system-site-packages = true' in open(own + '/pyvenv.cfg').read()\n"
    "except OSError: sees = True\n"
    "for prefix in [own, own + '/" LAYER_BELOW "'] + sees * [sys.base_prefix, '/usr/local']:\n"
    "    for path in glob.glob(prefix + '/lib/python3*/*-packages/*-info'): print(os.path.basename(path))\n";

static void take_packages_said(char *lines, struct act_strv *out)
{
    for (const char *line; (line = strsep(&lines, "\n"));) {
        ACT_AUTOFREE char *package = inventory_package(line);
        if (package)
            software_add_package(package, out);
    }
    act_strv_sort(out);
}

static bool ask_python_of_image(const struct node *node, struct run_environment *e)
{
    ACT_AUTO(act_strv) inside = {0}, words = {0};
    struct act_error ignored;

    setup_words(node, &inside);
    environment_words(node, &inside);
    ACT_STRV_PUSH(&inside, "python3", "-I", "-S", "-c", in_image);
    if (container_wrap(node, -1, (const char *const *)inside.v, &words, &ignored) < 0)
        return false;
    ACT_AUTOFREE char *said = ask(words.v);
    char *rest = said;
    const char *version = rest ? strsep(&rest, "\n") : NULL, *program = rest ? strsep(&rest, "\n") : NULL;
    if (!version || !program || *program != '/')
        return false;
    e->python_version = text_or_null(version);
    e->python = environment_below_layer(node, program);
    take_packages_said(rest, &e->packages);
    return true;
}

/* A name may mean another image tomorrow. */
static bool ask_digest(const struct node *node, struct run_environment *e)
{
    static char format[] = "{{if .RepoDigests}}{{index .RepoDigests 0}}{{else}}{{.Id}}{{end}}";
    ACT_AUTOFREE char *said = container_is_fresh(node)
                                  ? ask((char *[]){node->spec.container, (char[]){"image"}, (char[]){"inspect"},
                                                   (char[]){"--format"}, format, node->spec.image, NULL})
                                  : NULL;
    const char *digest = said ? strstr(said, "sha256:") : NULL;

    e->image_digest = digest ? act_strndup(digest, strcspn(digest, "\n")) : NULL;
    return digest;
}

static bool ask_image(const struct node *node, struct run_environment *e)
{
    bool digest = ask_digest(node, e), python = ask_python_of_image(node, e);

    return digest || python;
}

/* ---- of MPI */

char *software_mpi(const char *text)
{
    static const char open_mpi[] = "(Open MPI) ", hydra[] = "Version:";
    const char *at = strstr(text, open_mpi);

    if (at)
        return act_sprintf("Open MPI %.*s", (int)strcspn(at + strlen(open_mpi), " \n"), at + strlen(open_mpi));
    at = act_starts_with(text, "HYDRA") ? strstr(text, hydra) : NULL;
    if (at) {
        at += strlen(hydra) + strspn(at + strlen(hydra), " ");
        return act_sprintf("MPICH %.*s", (int)strcspn(at, " \n"), at);
    }
    ACT_AUTOFREE char *line = act_strndup(text, strcspn(text, "\n"));
    return strstr(line, "MPI") ? act_strdup(line) : NULL;
}

static bool ask_mpirun(struct run_environment *e)
{
    ACT_AUTOFREE char *mpirun = proc_find_in_path("mpirun");
    ACT_AUTOFREE char *said = mpirun ? ask((char *[]){mpirun, (char[]){"--version"}, NULL}) : NULL;

    e->mpi = said ? software_mpi(said) : NULL;
    return e->mpi;
}

bool software_ask(const struct node *node, struct run_environment *out)
{
    bool python = (container_is_used(node) ? ask_image(node, out) : ask_python(out)),
         mpi = node_world_size(node) > 1 && ask_mpirun(out);

    return python || mpi;
}

/* ---- beside the command */

static volatile sig_atomic_t is_written;

/* A run that ends waits for its processes: this one asks no more, or has a moment to write down what it has. */
static void end_soon(int sig)
{
    enum { LEFT_S = 1 };

    (void)sig;
    if (is_written)
        _exit(0);
    alarm(LEFT_S);
}

static void hold_end(void)
{
    sigset_t end;

    sigemptyset(&end);
    sigaddset(&end, SIGTERM);
    sigprocmask(SIG_BLOCK, &end, NULL);
}

static void software_write(const struct node *node, const struct run_environment *e)
{
    ACT_AUTOFREE char *path = node_path(node, RUN_FILE_ENVIRONMENT);
    struct act_error err;

    if (run_environment_write(e, path, &err) < 0)
        node_say("%s", act_error_text(&err));
}

static int software_run(void *arg)
{
    enum { LONGEST_S = 120 }; /* a file system may not answer */
    const struct node *node = arg;
    struct run_environment e;

    signal(SIGTERM, end_soon);
    alarm(LONGEST_S);
    software_take(node, "", &e);
    software_write(node, &e);
    is_written = true;
    if (software_ask(node, &e)) {
        hold_end(); /* a file is not left half made */
        software_write(node, &e);
    }
    run_environment_release(&e);
    return 0;
}

void software_start(struct node *node)
{
    if (child_start(&(struct child){.run = software_run, .arg = node, .out_fd = -1}) < 0)
        node_say("cannot write down what the run runs with: %m");
}
