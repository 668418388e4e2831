/* facts.c - what the kernel and the drivers show of the GPUs, without asking any program. */
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/path.h"
#include "gpus/gpus.h"

#define NVIDIA_PROC "/proc/driver/nvidia/gpus"
#define NVIDIA_CAPS "/proc/driver/nvidia/capabilities"
#define KFD_NODES   "/sys/class/kfd/kfd/topology/nodes"
#define DRM         "/sys/class/drm"

/* ---- files */

/* Returns a small file as a new string; empty: it cannot be read. */
static char *facts_read(const char *dir, const char *name)
{
    enum { MAX_BYTES = 64 * 1024 };
    ACT_AUTOFREE char *path = act_path_join(dir, name);
    char *text = NULL;

    return act_file_read(path, MAX_BYTES, &text, NULL, NULL) < 0 ? act_strdup("") : text;
}

/* Returns what follows a word at the beginning of a line, without blanks around it, a new string; empty: no line begins
 * so. */
static char *facts_value(const char *text, const char *word)
{
    size_t n = strlen(word);

    for (const char *line = text; *line; line += strcspn(line, "\n"), line += *line == '\n') {
        if (strncmp(line, word, n) != 0 || !strchr(": \t=", line[n]) || !line[n])
            continue;
        const char *value = line + n + strspn(line + n, ": \t=");
        size_t len = strcspn(value, "\n");
        while (len > 0 && strchr(" \t\r", value[len - 1]))
            len--;
        return act_strndup(value, len);
    }
    return act_strdup("");
}

static int64_t facts_number(const char *text, const char *word)
{
    ACT_AUTOFREE char *value = facts_value(text, word);
    char *end;
    long long n = strtoll(value, &end, 10);

    return end > value && *end == '\0' ? n : -1;
}

static int64_t facts_number_in(const char *dir, const char *name)
{
    ACT_AUTOFREE char *text = facts_read(dir, name);
    char *end;
    long long n = strtoll(text, &end, 10);

    return end > text ? n : -1;
}

static int facts_number_of(const char *name, const char *prefix)
{
    size_t n = strlen(prefix);

    if (strncmp(name, prefix, n) != 0 || !name[n] || name[n + strspn(name + n, "0123456789")] || strlen(name + n) > 8)
        return -1;
    return atoi(name + n);
}

static int by_number(const void *a, const void *b)
{
    return *(const int *)a - *(const int *)b;
}

/* Returns how many numbers there are behind the prefix in the names of a folder, in their order; *out is a new
 * array. */
static size_t facts_numbers(const char *dir, const char *prefix, int **out)
{
    DIR *d = opendir(dir);
    size_t n = 0;

    *out = NULL;
    for (struct dirent *e; d && (e = readdir(d));) {
        int number = facts_number_of(e->d_name, prefix);
        if (number >= 0)
            ACT_PUSH(*out, n, number);
    }
    if (d)
        closedir(d);
    if (n > 0)
        qsort(*out, n, sizeof(**out), by_number);
    return n;
}

static void facts_folders(const char *dir, struct act_strv *out)
{
    DIR *d = opendir(dir);

    for (struct dirent *e; d && (e = readdir(d));)
        if (e->d_name[0] != '.')
            act_strv_push(out, e->d_name);
    if (d)
        closedir(d);
    act_strv_sort(out);
}

/* Tells whether this process could open a device file, without opening it: that would wake a card, which takes seconds.
 * The kernel asks the cgroup of this process as well. */
static bool may_open(const char *root, const char *name, int number)
{
    ACT_AUTOFREE char *path = act_sprintf("%s/dev/%s%d", root, name, number);

    return access(path, R_OK | W_OK) == 0;
}

static struct gpu *add_gpu(struct gpu_list *list, enum gpu_kind kind)
{
    ACT_PUSH(list->v, list->n,
             (struct gpu){.kind = kind, .index = -1, .card = -1, .numa = -1, .memory_bytes = -1, .used_bytes = -1});
    return &list->v[list->n - 1];
}

static void complete_texts(struct gpu *gpu)
{
    char **const texts[] = {&gpu->uuid, &gpu->bus, &gpu->model};

    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
        if (!*texts[i])
            *texts[i] = act_strdup("");
}

/* ---- NVIDIA */

static int numa_of(const char *root, const char *bus)
{
    ACT_AUTOFREE char *dir = act_sprintf("%s/sys/bus/pci/devices/%s", root, bus);

    return (int)facts_number_in(dir, "numa_node");
}

static void add_card(const char *root, const char *bus, struct gpu_list *out)
{
    ACT_AUTOFREE char *dir = act_sprintf("%s" NVIDIA_PROC "/%s", root, bus);
    ACT_AUTOFREE char *text = facts_read(dir, "information");
    ACT_AUTOFREE char *uuid = facts_value(text, "GPU UUID");
    struct gpu *gpu = add_gpu(out, GPU_NVIDIA);

    gpu->card = (int)facts_number(text, "Device Minor");
    gpu->uuid = act_strdup(strchr(uuid, '?') ? "" : uuid); /* "GPU-????????-...": the driver has not looked yet */
    gpu->bus = act_strdup(bus);
    gpu->model = facts_value(text, "Model");
    gpu->numa = numa_of(root, bus);
}

/* The order of the bus addresses is that of nvidia-smi. */
static void find_cards(const char *root, struct gpu_list *out)
{
    ACT_AUTOFREE char *proc = act_sprintf("%s" NVIDIA_PROC, root);
    ACT_AUTOFREE char *dev = act_sprintf("%s/dev", root);
    ACT_AUTOFREE int *files = NULL;
    ACT_AUTO(act_strv) buses = {0};
    size_t n_files = facts_numbers(dev, "nvidia", &files);

    facts_folders(proc, &buses);
    for (size_t i = 0; i < buses.n; i++)
        add_card(root, buses.v[i], out);
    for (size_t i = 0; buses.n == 0 && i < n_files; i++)
        add_gpu(out, GPU_NVIDIA)->card = files[i];
    for (size_t i = 0; i < out->n; i++) /* without any device file, the first use makes them all */
        out->v[i].may_open = n_files == 0 || (out->v[i].card >= 0 && may_open(root, "nvidia", out->v[i].card));
}

/* Tells whether the file that a capability of MIG stands for may be opened. */
static bool has_capability(const char *root, const char *dir)
{
    ACT_AUTOFREE char *text = facts_read(dir, "access");
    int number = (int)facts_number(text, "DeviceFileMinor");
    ACT_AUTOFREE char *path = act_sprintf("%s/dev/nvidia-caps/nvidia-cap%d", root, number);

    return number >= 0 && (access(path, R_OK) == 0 || errno == ENOENT);
}

static void add_instance(const struct gpu *card, int gi, int ci, struct gpu_list *out)
{
    struct gpu *gpu = add_gpu(out, GPU_MIG);

    gpu->index = card->index;
    gpu->card = card->card;
    gpu->instance[0] = gi;
    gpu->instance[1] = ci;
    gpu->bus = act_strdup(card->bus);
    gpu->model = act_sprintf("%s (MIG)", card->model);
    gpu->numa = card->numa;
    gpu->may_open = true;
    /* the name that drivers before 470 want, until nvidia-smi is asked */
    gpu->uuid = *card->uuid ? act_sprintf("MIG-%s/%d/%d", card->uuid, gi, ci) : act_strdup("");
}

/* Adds the instances of a card that this process may open. Tells whether the card is divided. */
static bool add_instances(const char *root, const struct gpu *card, struct gpu_list *out)
{
    ACT_AUTOFREE char *dir = act_sprintf("%s" NVIDIA_CAPS "/gpu%d/mig", root, card->card);
    ACT_AUTOFREE int *gis = NULL;
    size_t n = facts_numbers(dir, "gi", &gis);

    for (size_t i = 0; i < n; i++) {
        ACT_AUTOFREE char *below = act_sprintf("%s/gi%d", dir, gis[i]);
        ACT_AUTOFREE int *cis = NULL;
        size_t n_cis = has_capability(root, below) ? facts_numbers(below, "ci", &cis) : 0;
        for (size_t k = 0; k < n_cis; k++) {
            ACT_AUTOFREE char *instance = act_sprintf("%s/ci%d", below, cis[k]);
            if (has_capability(root, instance))
                add_instance(card, gis[i], cis[k], out);
        }
    }
    return n > 0;
}

/* Numbers those that may be opened, in their order. */
static void number_cards(struct gpu_list *list)
{
    int next = 0;

    for (size_t i = 0; i < list->n; i++)
        if (list->v[i].may_open)
            list->v[i].index = next++;
}

static void find_nvidia(const char *root, struct gpu_list *out)
{
    struct gpu_list cards = {0};

    find_cards(root, &cards);
    number_cards(&cards);
    for (size_t i = 0; i < cards.n; i++) {
        complete_texts(&cards.v[i]);
        if (cards.v[i].may_open && add_instances(root, &cards.v[i], out))
            continue;
        ACT_PUSH(out->v, out->n, cards.v[i]);
        cards.v[i] = (struct gpu){0};
    }
    gpu_list_release(&cards);
}

/* ---- AMD */

/* The graphics of a processor have no more memory of their own. */
static const int64_t least_memory_bytes = INT64_C(4) << 30;

/* Calls add() for each number behind prefix among the names in a folder, and then numbers the cards. */
static void facts_add_each(const char *root, const char *folder, const char *prefix,
                           void (*add)(const char *root, int number, struct gpu_list *out), struct gpu_list *out)
{
    ACT_AUTOFREE char *dir = act_sprintf("%s%s", root, folder);
    ACT_AUTOFREE int *numbers = NULL;
    size_t n = facts_numbers(dir, prefix, &numbers);

    for (size_t i = 0; i < n; i++)
        add(root, numbers[i], out);
    number_cards(out);
}

static void add_node(const char *root, int node, struct gpu_list *out)
{
    ACT_AUTOFREE char *dir = act_sprintf("%s" KFD_NODES "/%d", root, node);
    ACT_AUTOFREE char *text = facts_read(dir, "properties");
    int64_t location = facts_number(text, "location_id"), domain = facts_number(text, "domain");
    int render = (int)facts_number(text, "drm_render_minor");
    ACT_AUTOFREE char *device = act_sprintf("%s" DRM "/renderD%d/device", root, render);
    ACT_AUTOFREE char *kfd = act_sprintf("%s/dev/kfd", root);
    ACT_AUTOFREE char *id = facts_value(text, "unique_id");
    int64_t memory = facts_number_in(device, "mem_info_vram_total");

    if (facts_number(text, "simd_count") <= 0 ||
        (facts_number(text, "cpu_cores_count") > 0 && memory < least_memory_bytes))
        return;
    struct gpu *gpu = add_gpu(out, GPU_AMD);
    gpu->card = render;
    gpu->memory_bytes = memory;
    gpu->model = facts_read(device, "product_name");
    gpu->model[strcspn(gpu->model, "\n")] = '\0';
    gpu->numa = (int)facts_number_in(device, "numa_node");
    gpu->node_id = facts_read(dir, "gpu_id");
    gpu->node_id[strcspn(gpu->node_id, "\n")] = '\0';
    if (strtoull(id, NULL, 10) > 0)
        gpu->uuid = act_sprintf("GPU-%016llx", strtoull(id, NULL, 10));
    if (location >= 0)
        gpu->bus =
            act_sprintf("%04x:%02x:%02x.%x", domain > 0 ? (unsigned)domain : 0U, (unsigned)(location >> 8) & 0xff,
                        (unsigned)(location >> 3) & 0x1f, (unsigned)location & 7);
    gpu->may_open = may_open(root, "dri/renderD", render) && access(kfd, R_OK | W_OK) == 0;
}

static void find_amd(const char *root, struct gpu_list *out)
{
    facts_add_each(root, KFD_NODES, "", add_node, out);
}

/* ---- Intel */

/* The graphics of a processor are always here. */
#define PROCESSOR_BUS "0000:00:02.0"

static void add_render(const char *root, int render, struct gpu_list *out)
{
    ACT_AUTOFREE char *device = act_sprintf("%s" DRM "/renderD%d/device", root, render);
    ACT_AUTOFREE char *vendor = facts_read(device, "vendor");
    ACT_AUTOFREE char *events = facts_read(device, "uevent");
    ACT_AUTOFREE char *bus = facts_value(events, "PCI_SLOT_NAME");

    if (strtol(vendor, NULL, 16) != 0x8086 || strcmp(bus, PROCESSOR_BUS) == 0)
        return;
    struct gpu *gpu = add_gpu(out, GPU_INTEL);
    gpu->card = render;
    gpu->bus = act_strdup(bus);
    gpu->numa = (int)facts_number_in(device, "numa_node");
    gpu->may_open = may_open(root, "dri/renderD", render);
}

static void find_intel(const char *root, struct gpu_list *out)
{
    facts_add_each(root, DRM, "renderD", add_render, out);
}

/* ---- all */

void gpus_find(const char *root, struct gpu_list *out)
{
    static void (*const vendors[])(const char *, struct gpu_list *) = {find_nvidia, find_amd, find_intel};
    size_t most = 0;

    *out = (struct gpu_list){0};
    for (size_t i = 0; i < sizeof(vendors) / sizeof(vendors[0]); i++) {
        struct gpu_list found = {0};
        vendors[i](root, &found);
        for (size_t k = 0; k < found.n; k++) {
            found.v[k].is_given = found.v[k].may_open;
            complete_texts(&found.v[k]);
        }
        bool is_more = out->n == 0 || gpus_given(&found) > most;
        most = is_more ? gpus_given(&found) : most;
        gpu_list_release(is_more ? out : &found);
        if (is_more)
            *out = found;
    }
}

static void user_release(struct gpu_user *user)
{
    free(user->user);
    free(user->program);
}

void gpu_list_release(struct gpu_list *list)
{
    for (size_t i = 0; i < list->n; i++) {
        struct gpu *gpu = &list->v[i];
        for (size_t k = 0; k < gpu->n_users; k++)
            user_release(&gpu->users[k]);
        free(gpu->users);
        free(gpu->uuid);
        free(gpu->bus);
        free(gpu->model);
        free(gpu->node_id);
    }
    free(list->v);
    free(list->near);
    *list = (struct gpu_list){0};
}
