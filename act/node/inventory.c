#include "node/inventory.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "base/file.h"
#include "base/path.h"
#include "base/units.h"
#include "gpus/gpus.h"
#include "node/container.h"
#include "proc/proc.h"

/* ---- files of the system */

/* Returns the value behind a key at the beginning of a line, without quotes, a new string; empty: no line begins so. */
static char *inventory_value_in(const char *text, const char *key)
{
    for (const char *line = text; *line; line += strcspn(line, "\n"), line += *line == '\n')
        if (act_starts_with(line, key)) {
            const char *value = line + strlen(key) + strspn(line + strlen(key), " \t\"'");
            return act_strndup(value, strcspn(value, "\n\"'"));
        }
    return act_strdup("");
}

char *inventory_value(const char *root, const char *path, const char *key)
{
    ACT_AUTOFREE char *full = act_sprintf("%s%s", root, path);
    ACT_AUTOFREE char *text = node_read_text(full);

    return inventory_value_in(text, key);
}

/* Calls each() with the names in a folder, in their order; a folder that is not there has none. */
static void each_name(const char *dir, void (*each)(const char *dir, const char *name, struct act_buf *out),
                      struct act_buf *out)
{
    ACT_AUTO(act_strv) names = {0};

    act_folder_names(dir, &names);
    for (size_t i = 0; i < names.n; i++)
        each(dir, names.v[i], out);
}

/* Returns the value of a sysfs attribute: the first line of a file. New string. */
static char *attribute(const char *dir, const char *name)
{
    ACT_AUTOFREE char *path = act_path_join(dir, name);

    return inventory_value("", path, "");
}

static void separate(struct act_buf *out)
{
    if (out->len)
        act_buf_adds(out, ", ");
}

/* ---- what there is */

static void add_system(const struct inventory *what, struct act_buf *out)
{
    ACT_AUTOFREE char *name = inventory_value(what->root, "/etc/os-release", "PRETTY_NAME=");
    ACT_AUTOFREE char *memory = inventory_value(what->root, "/proc/meminfo", "MemTotal:");
    struct utsname machine;
    char size[ACT_UNIT_TEXT];

    act_buf_adds(out, *name ? name : "Linux");
    if (uname(&machine) == 0)
        act_buf_addf(out, ", kernel %s, %s", machine.release, machine.machine);
    act_buf_addf(out, ", %ld processors", sysconf(_SC_NPROCESSORS_ONLN));
    if (strtoull(memory, NULL, 10) > 0) {
        act_size_to_text(strtoull(memory, NULL, 10) * 1024, size);
        act_buf_addf(out, ", %s memory", size);
    }
}

/* Adds each file system once, by the first of the places that is on it. */
static void add_disks(const struct inventory *what, struct act_buf *out)
{
    enum { DISKS_MAX = 16 };
    dev_t seen[DISKS_MAX];
    size_t n = 0;

    for (size_t i = 0; what->places[i] && n < DISKS_MAX; i++) {
        char rest[ACT_UNIT_TEXT], total[ACT_UNIT_TEXT];
        struct statvfs fs;
        struct stat st;
        bool known = stat(what->places[i], &st) < 0 || statvfs(what->places[i], &fs) < 0;
        for (size_t k = 0; k < n; k++)
            known = known || seen[k] == st.st_dev;
        if (known)
            continue;
        seen[n++] = st.st_dev;
        separate(out);
        act_size_to_text((uint64_t)fs.f_bavail * fs.f_frsize, rest);
        act_size_to_text((uint64_t)fs.f_blocks * fs.f_frsize, total);
        act_buf_addf(out, "%s %s of %s free", what->places[i], rest, total);
    }
}

static const struct in6_addr *ipv6_of(const struct ifaddrs *a)
{
    return &((const struct sockaddr_in6 *)(const void *)a->ifa_addr)->sin6_addr;
}

/* Tells whether another node may reach this one by an address. */
static bool is_told(const struct ifaddrs *a)
{
    if (!a->ifa_addr || !(a->ifa_flags & IFF_UP) || (a->ifa_flags & IFF_LOOPBACK))
        return false;
    return a->ifa_addr->sa_family == AF_INET ||
           (a->ifa_addr->sa_family == AF_INET6 && !IN6_IS_ADDR_LINKLOCAL(ipv6_of(a)));
}

/* Adds "eth0 10.0.0.4 (40000 Mbit/s)". */
static void inventory_add_address(const struct inventory *what, const struct ifaddrs *a, struct act_buf *out)
{
    const void *address = a->ifa_addr->sa_family == AF_INET
                              ? (const void *)&((const struct sockaddr_in *)(const void *)a->ifa_addr)->sin_addr
                              : (const void *)ipv6_of(a);
    ACT_AUTOFREE char *dir = act_sprintf("%s/sys/class/net/%s", what->root, a->ifa_name);
    ACT_AUTOFREE char *speed = attribute(dir, "speed");
    char text[INET6_ADDRSTRLEN] = "";

    inet_ntop(a->ifa_addr->sa_family, address, text, sizeof(text));
    separate(out);
    act_buf_addf(out, "%s %s", a->ifa_name, text);
    if (atol(speed) > 0)
        act_buf_addf(out, " (%s Mbit/s)", speed);
}

static void inventory_add_network(const struct inventory *what, struct act_buf *out)
{
    struct ifaddrs *all = NULL;

    if (getifaddrs(&all) < 0)
        return;
    for (const struct ifaddrs *a = all; a; a = a->ifa_next)
        if (is_told(a))
            inventory_add_address(what, a, out);
    freeifaddrs(all);
}

/* Adds "mlx5_0 port 1: 4: ACTIVE, 200 Gb/sec (4X HDR), InfiniBand". */
static void inventory_add_port(const char *dir, const char *port, struct act_buf *out)
{
    ACT_AUTOFREE char *at = act_path_join(dir, port);
    ACT_AUTOFREE char *state = attribute(at, "state");
    ACT_AUTOFREE char *rate = attribute(at, "rate");
    ACT_AUTOFREE char *layer = attribute(at, "link_layer");
    ACT_AUTOFREE char *above = act_path_dirname(dir);

    separate(out);
    act_buf_addf(out, "%s port %s: %s, %s, %s", act_path_basename(above), port, state, rate, layer);
}

static void inventory_add_adapter(const char *dir, const char *name, struct act_buf *out)
{
    ACT_AUTOFREE char *ports = act_sprintf("%s/%s/ports", dir, name);

    each_name(ports, inventory_add_port, out);
}

static void add_infiniband(const struct inventory *what, struct act_buf *out)
{
    ACT_AUTOFREE char *dir = act_sprintf("%s/sys/class/infiniband", what->root);

    each_name(dir, inventory_add_adapter, out);
}

/* Adds all GPUs that the driver shows, whether this run has them or not. */
static void inventory_add_gpus(const struct inventory *what, struct act_buf *out)
{
    ACT_AUTOFREE char *proc = act_sprintf("%s/proc/driver/nvidia", what->root);
    ACT_AUTOFREE char *driver = attribute(proc, "version");
    struct gpu_list list;

    gpus_find(what->root, &list);
    for (size_t i = 0; i < list.n; i++) {
        separate(out);
        act_buf_addf(out, "%s (%s)", *list.v[i].model ? list.v[i].model : "a GPU",
                     *list.v[i].bus ? list.v[i].bus : "no address");
    }
    gpu_list_release(&list);
    if (*driver) {
        separate(out);
        act_buf_adds(out, driver);
    }
}

bool inventory_is_script(const char *path)
{
    char mark[2] = "";
    ACT_AUTOCLOSE int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK); /* it may be a FIFO */

    return fd >= 0 && act_pread_all(fd, mark, sizeof(mark), 0) == 2 && mark[0] == '#' && mark[1] == '!';
}

static void inventory_add_python(const struct inventory *what, struct act_buf *out)
{
    ACT_AUTO(act_strv) packages = {0};

    if (!what->python)
        return;
    if (inventory_is_script(what->python)) {
        act_buf_addf(out, "%s, a script: what it starts, and its packages, are not known", what->python);
        return;
    }
    inventory_packages(what->python, what->home, what->python_path, &packages);
    act_buf_addf(out, "%s, %zu package%s", what->python, packages.n, packages.n == 1 ? "" : "s");
}

/* Adds the packages in lines that are short enough for a terminal. */
static void add_package_lines(const struct inventory *what, struct act_strv *out)
{
    enum { LINE_BYTES = 100 };
    ACT_AUTO(act_strv) packages = {0};
    ACT_AUTO(act_buf) line = {0};

    if (what->python)
        inventory_packages(what->python, what->home, what->python_path, &packages);
    for (size_t i = 0; i < packages.n; i++) {
        if (line.len && line.len + strlen(packages.v[i]) > LINE_BYTES) {
            act_strv_pushf(out, "packages:%s", line.data);
            line.len = 0;
        }
        act_buf_addf(&line, " %s", packages.v[i]);
    }
    if (line.len)
        act_strv_pushf(out, "packages:%s", line.data);
}

void inventory_take(const struct inventory *what, struct act_strv *out)
{
    static const struct {
        const char *name;
        void (*add)(const struct inventory *what, struct act_buf *out);
    } parts[] = {{"system", add_system},         {"disk", add_disks},          {"network", inventory_add_network},
                 {"InfiniBand", add_infiniband}, {"GPUs", inventory_add_gpus}, {"Python", inventory_add_python}};

    for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
        ACT_AUTO(act_buf) text = {0};
        parts[i].add(what, &text);
        if (text.len)
            act_strv_pushf(out, "%s: %s", parts[i].name, text.data);
    }
    add_package_lines(what, out);
}

/* Returns the Python in the first line of a script: "#!/opt/venv/bin/python3". New string; NULL: it names none. */
static char *python_of_script(const char *path)
{
    char line[512] = "";
    ACT_AUTOCLOSE int fd = inventory_is_script(path) ? open(path, O_RDONLY | O_CLOEXEC) : -1;

    if (fd < 0 || act_pread_all(fd, line, sizeof(line) - 1, 0) < 0)
        return NULL;
    const char *program = line + 2 + strspn(line + 2, " \t");
    ACT_AUTOFREE char *python = act_strndup(program, strcspn(program, " \t\r\n"));
    return *python == '/' && act_starts_with(act_path_basename(python), "python") ? act_strdup(python) : NULL;
}

/* Returns the path of a program as the command would find it. New string; NULL: there is none. */
static char *inventory_find_program(const struct node *node, const char *name)
{
    return strchr(name, '/') ? act_path_join(*name == '/' ? "" : node->code, name) : proc_find_in_path(name);
}

char *inventory_python(const struct node *node)
{
    const char *first = node->spec.argv.n > 0 ? node->spec.argv.v[0] : "";

    if (container_is_used(node))
        return NULL;
    char *program = *first ? inventory_find_program(node, first) : NULL;
    if (act_starts_with(act_path_basename(first), "python"))
        return program;
    char *python = program ? python_of_script(program) : NULL;
    free(program);
    return python ? python : proc_find_in_path("python3");
}

void inventory_of(const struct node *node, struct act_strv *out)
{
    const char *const places[] = {"/", node->code, node->dir, "/tmp", "/dev/shm", NULL};
    ACT_AUTOFREE char *python = inventory_python(node);

    inventory_take(&(struct inventory){.root = "",
                                       .places = places,
                                       .python = python,
                                       .home = getenv("HOME"),
                                       .python_path = getenv("PYTHONPATH")},
                   out);
}
