/* masks.c - which GPUs are given, judged from the variables that say so, and how a process is told about its own. Pure,
 * but for the environment of this process. */
#include <stdlib.h>
#include <string.h>

#include "base/units.h"
#include "gpus/gpus.h"

/* ---- the variables */

const char *gpus_mask_name(enum gpu_mask mask)
{
    static const char *const names[N_GPU_MASKS] = {
        [MASK_CUDA] = "CUDA_VISIBLE_DEVICES",  [MASK_NVIDIA] = "NVIDIA_VISIBLE_DEVICES",
        [MASK_ROCR] = "ROCR_VISIBLE_DEVICES",  [MASK_HIP] = "HIP_VISIBLE_DEVICES",
        [MASK_ORDINAL] = "GPU_DEVICE_ORDINAL", [MASK_ZE] = "ZE_AFFINITY_MASK",
        [MASK_ORDER] = "CUDA_DEVICE_ORDER",
    };

    return names[mask];
}

void gpu_masks_read(struct gpu_masks *out)
{
    for (int i = 0; i < N_GPU_MASKS; i++)
        out->v[i] = act_strdup(getenv(gpus_mask_name(i)));
}

static void masks_set(enum gpu_mask mask, const char *value)
{
    if (value)
        setenv(gpus_mask_name(mask), value, 1);
    else
        unsetenv(gpus_mask_name(mask));
}

void gpu_masks_restore(const struct gpu_masks *masks)
{
    for (int i = 0; i < N_GPU_MASKS; i++)
        masks_set(i, masks->v[i]);
}

void gpu_masks_release(struct gpu_masks *masks)
{
    for (int i = 0; i < N_GPU_MASKS; i++)
        free(masks->v[i]);
    *masks = (struct gpu_masks){0};
}

/* ---- lists of GPUs */

static bool is_nvidia(const struct gpu *gpu)
{
    return gpu->kind == GPU_NVIDIA || gpu->kind == GPU_MIG;
}

/* The GPUs that a list can name: those that are given, in their order. */
struct masks_seen {
    struct gpu **v;
    size_t n;
};

static void masks_see(struct gpu_list *list, struct masks_seen *out)
{
    out->v = act_calloc(list->n + 1, sizeof(struct gpu *));
    out->n = 0;
    for (size_t i = 0; i < list->n; i++)
        if (list->v[i].is_given)
            out->v[out->n++] = &list->v[i];
}

/* Returns the place of the entry-th card among them: of a divided one that of its first instance. */
static struct gpu *masks_by_index(const struct masks_seen *seen, int64_t entry)
{
    int64_t at = -1;
    int last = -1;

    for (size_t i = 0; i < seen->n; i++) {
        at += at < 0 || seen->v[i]->kind != GPU_MIG || seen->v[i]->index != last;
        last = seen->v[i]->kind == GPU_MIG ? seen->v[i]->index : -1;
        if (at == entry)
            return seen->v[i];
    }
    return NULL;
}

/* The beginning of a UUID is enough, if it is that of one alone. */
static struct gpu *masks_by_uuid(const struct masks_seen *seen, const char *entry)
{
    struct gpu *found = NULL;

    for (size_t i = 0; i < seen->n; i++) {
        if (strcmp(seen->v[i]->uuid, entry) == 0)
            return seen->v[i];
        if (!act_starts_with(seen->v[i]->uuid, entry))
            continue;
        if (found)
            return NULL;
        found = seen->v[i];
    }
    return found;
}

/* An instance whose name only nvidia-smi knows: one that has no name yet is given this one. */
static struct gpu *masks_unknown_instance(const struct masks_seen *seen, const char *entry, const bool *taken)
{
    for (size_t i = 0; i < seen->n; i++) {
        struct gpu *gpu = seen->v[i];
        if (gpu->kind != GPU_MIG || taken[i] || act_starts_with(entry, "MIG-GPU-") ||
            !(*gpu->uuid == '\0' || act_starts_with(gpu->uuid, "MIG-GPU-")))
            continue;
        act_str_replace(&gpu->uuid, entry);
        return gpu;
    }
    return NULL;
}

static struct gpu *masks_find(const struct masks_seen *seen, const char *entry, const bool *taken)
{
    int64_t index;

    if (act_int_from_text(entry, &index))
        return index < 0 ? NULL : masks_by_index(seen, index);
    if (act_starts_with(entry, "GPU-") && entry[strlen("GPU-")])
        return masks_by_uuid(seen, entry);
    if (!act_starts_with(entry, "MIG-") || !entry[strlen("MIG-")])
        return NULL;
    struct gpu *known = masks_by_uuid(seen, entry);
    return known ? known : masks_unknown_instance(seen, entry, taken);
}

static size_t masks_place(const struct masks_seen *seen, const struct gpu *gpu)
{
    size_t i = 0;

    while (seen->v[i] != gpu)
        i++;
    return i;
}

/* The next entry of a list with commas, without blanks around it. New string; NULL: there is none. */
static char *masks_next(const char **rest)
{
    if (!*rest)
        return NULL;
    const char *from = *rest + strspn(*rest, " \t"), *comma = strchr(from, ',');
    size_t len = comma ? (size_t)(comma - from) : strlen(from);
    *rest = comma ? comma + 1 : NULL;
    while (len > 0 && strchr(" \t\n", from[len - 1]))
        len--;
    return act_strndup(from, len);
}

/* Leaves what the mask has: its entries up to the first that names nothing. One that is named twice leaves none. */
static void masks_apply(struct gpu_list *list, const char *mask)
{
    struct masks_seen seen;
    const char *rest = mask;
    char *entry;

    masks_see(list, &seen);
    ACT_AUTOFREE bool *taken = act_calloc(seen.n + 1, sizeof(bool));
    bool goes_on = true;
    while ((entry = masks_next(&rest))) {
        struct gpu *gpu = goes_on ? masks_find(&seen, entry, taken) : NULL;
        free(entry);
        goes_on = gpu != NULL;
        if (!gpu)
            continue;
        if (taken[masks_place(&seen, gpu)]) {
            memset(taken, 0, seen.n * sizeof(bool));
            goes_on = false;
        } else {
            taken[masks_place(&seen, gpu)] = true;
        }
    }
    for (size_t i = 0; i < seen.n; i++)
        seen.v[i]->is_given = taken[i];
    free(seen.v);
}

/* The container runtime reads it and shows the container no others, under numbers of their own. So where there are no
 * more cards than it names, that has been done. What it does not name by number or UUID says nothing. */
static void masks_apply_nvidia(struct gpu_list *list, const char *mask)
{
    static const char *const silent[] = {"", "all", "void"};
    const char *rest = mask;
    size_t named = 0;
    char *entry;

    for (size_t i = 0; i < sizeof(silent) / sizeof(silent[0]); i++)
        if (strcmp(mask, silent[i]) == 0)
            return;
    if (strcmp(mask, "none") == 0)
        return masks_apply(list, "");
    for (; (entry = masks_next(&rest)); free(entry), named++)
        if (!*entry || (entry[strspn(entry, "0123456789")] && !act_starts_with(entry, "GPU-") &&
                        !act_starts_with(entry, "MIG-"))) {
            free(entry);
            return;
        }
    if (named < gpus_given(list))
        masks_apply(list, mask);
}

/* "0.1,2": the tile of a card counts as the card. */
static void masks_apply_tiles(struct gpu_list *list, const char *mask)
{
    struct act_buf cards = {0};
    const char *rest = mask;
    char *entry;
    int last = -1;

    for (; (entry = masks_next(&rest)); free(entry)) {
        entry[strcspn(entry, ".")] = '\0';
        if (cards.len && atoi(entry) == last)
            continue;
        last = atoi(entry);
        act_buf_addf(&cards, "%s%s", cards.len ? "," : "", entry);
    }
    ACT_AUTOFREE char *text = act_buf_steal(&cards);
    masks_apply(list, text);
}

void gpus_apply_masks(const struct gpu_masks *masks, struct gpu_list *list)
{
    char *const *v = masks->v;
    enum gpu_kind kind = list->n ? list->v[0].kind : GPU_NVIDIA;

    switch (kind) {
    case GPU_NVIDIA:
    case GPU_MIG:
        if (v[MASK_NVIDIA])
            masks_apply_nvidia(list, v[MASK_NVIDIA]);
        if (v[MASK_CUDA])
            masks_apply(list, v[MASK_CUDA]);
        return;
    case GPU_AMD: /* HIP counts what ROCm's runtime has left, and reads the variable of CUDA where its own is not set */
        if (v[MASK_ROCR])
            masks_apply(list, v[MASK_ROCR]);
        if (v[MASK_HIP] ? v[MASK_HIP] : v[MASK_CUDA])
            masks_apply(list, v[MASK_HIP] ? v[MASK_HIP] : v[MASK_CUDA]);
        if (v[MASK_ORDINAL])
            masks_apply(list, v[MASK_ORDINAL]);
        return;
    case GPU_INTEL:
        if (v[MASK_ZE])
            masks_apply_tiles(list, v[MASK_ZE]);
        return;
    case N_GPU_KINDS:
        return;
    }
}

size_t gpus_given(const struct gpu_list *list)
{
    size_t n = 0;

    for (size_t i = 0; i < list->n; i++)
        n += list->v[i].is_given;
    return n;
}

static size_t gpus_openable(const struct gpu_list *list)
{
    size_t n = 0;

    for (size_t i = 0; i < list->n; i++)
        n += list->v[i].may_open;
    return n;
}

char *gpus_why_not_all(const struct gpu_masks *masks, const struct gpu_list *list)
{
    size_t given = gpus_given(list), openable = gpus_openable(list);

    if (given == list->n)
        return NULL;
    for (int i = 0; given < openable && i < MASK_ORDER; i++) {
        struct gpu_list left = {.v = act_calloc(list->n + 1, sizeof(*left.v)), .n = list->n};
        struct gpu_masks one = {0};
        one.v[i] = masks->v[i];
        for (size_t k = 0; k < list->n; k++) {
            left.v[k] = list->v[k];
            left.v[k].is_given = left.v[k].may_open;
            left.v[k].uuid = act_strdup(list->v[k].uuid);
        }
        gpus_apply_masks(&one, &left);
        bool hides = gpus_given(&left) < openable;
        for (size_t k = 0; k < left.n; k++)
            free(left.v[k].uuid);
        free(left.v);
        if (hides)
            return act_sprintf("%s is '%s'", gpus_mask_name(i), masks->v[i]);
    }
    return act_sprintf("this process may open %zu of %zu", openable, list->n);
}

/* ---- by name */

static struct gpu *masks_named(struct gpu_list *list, const char *name)
{
    struct masks_seen all = {.v = act_calloc(list->n + 1, sizeof(struct gpu *))};
    int64_t index;
    struct gpu *found = NULL;

    for (size_t i = 0; i < list->n; i++)
        all.v[all.n++] = &list->v[i];
    if (!act_int_from_text(name, &index))
        found = act_starts_with(name, "GPU-") || act_starts_with(name, "MIG-") ? masks_by_uuid(&all, name) : NULL;
    for (size_t i = 0; !found && act_int_from_text(name, &index) && i < list->n; i++)
        if (list->v[i].index == index && list->v[i].kind != GPU_MIG)
            found = &list->v[i];
    free(all.v);
    return found;
}

static int cannot_name(const struct gpu_list *list, const char *name, struct act_error *err)
{
    int last = -1;

    for (size_t i = 0; i < list->n; i++)
        last = list->v[i].index > last ? list->v[i].index : last;
    if (last < 0)
        return act_error_set(err, ACT_CONFIG, "gpus has '%s', and this machine has no GPUs", name);
    return act_error_set(
        err, ACT_CONFIG,
        "gpus has '%s', and this machine has no such GPU: it has 0 to %d ('a doctor' lists them; one is "
        "named by its number or its UUID)",
        name, last);
}

int gpus_take_named(const struct act_strv *names, struct gpu_list *list, struct act_error *err)
{
    ACT_AUTOFREE bool *named = act_calloc(list->n + 1, sizeof(bool));

    for (size_t i = 0; i < names->n; i++) {
        const struct gpu *gpu = masks_named(list, names->v[i]);
        if (!gpu)
            return cannot_name(list, names->v[i], err);
        if (!gpu->is_given)
            return act_error_set(err, ACT_CONFIG, "gpus has '%s', and that GPU is not given to this process",
                                 names->v[i]);
        if (named[gpu - list->v])
            return act_error_set(err, ACT_CONFIG, "gpus has '%s', and names that GPU twice", names->v[i]);
        named[gpu - list->v] = true;
    }
    for (size_t i = 0; names->n > 0 && i < list->n; i++)
        list->v[i].is_given = named[i];
    return 0;
}

char *gpus_key(const struct gpu *gpu)
{
    static const char *const prefixes[N_GPU_KINDS] = {
        [GPU_NVIDIA] = "", [GPU_MIG] = "mig-", [GPU_AMD] = "amd-", [GPU_INTEL] = "intel-"};

    if (gpu->kind == GPU_MIG)
        return act_sprintf("mig-%d-%d-%d", gpu->card, gpu->instance[0], gpu->instance[1]);
    return act_sprintf("%s%d", prefixes[gpu->kind], gpu->card >= 0 ? gpu->card : gpu->index);
}

char *gpus_name(const struct gpu *gpu)
{
    if (gpu->kind == GPU_MIG)
        return act_sprintf("GPU %d (%s)", gpu->index, *gpu->uuid ? gpu->uuid : "MIG");
    return act_sprintf("GPU %d", gpu->index);
}

/* ---- how a process is told */

static char *masks_text(const struct gpu_list *list, const bool *mine, bool by_uuid)
{
    struct act_buf text = {0};

    for (size_t i = 0; i < list->n; i++) {
        if (!mine[i])
            continue;
        act_buf_adds(&text, text.len ? "," : "");
        if (by_uuid && *list->v[i].uuid)
            act_buf_adds(&text, list->v[i].uuid);
        else
            act_buf_addf(&text, "%d", list->v[i].index);
    }
    return act_buf_steal(&text);
}

/* An instance of MIG has no number. */
static bool has_instance(const struct gpu_list *list, const bool *mine)
{
    bool has = false;

    for (size_t i = 0; i < list->n; i++)
        has = has || (mine[i] && list->v[i].kind == GPU_MIG);
    return has;
}

char *gpus_text(const struct gpu_list *list, const bool *mine)
{
    return masks_text(list, mine, has_instance(list, mine));
}

void gpus_show(const struct gpu_list *list, const bool *mine)
{
    ACT_AUTOFREE char *text = gpus_text(list, mine);
    enum gpu_kind kind = list->n ? list->v[0].kind : GPU_NVIDIA;

    masks_set(MASK_HIP, NULL);
    masks_set(MASK_ORDINAL, NULL);
    if (is_nvidia(&(struct gpu){.kind = kind})) {
        masks_set(MASK_CUDA, text);
        masks_set(MASK_ORDER, "PCI_BUS_ID"); /* by which they are numbered here; CUDA's own order is by speed */
    } else if (kind == GPU_AMD) {
        masks_set(MASK_ROCR, text);
        masks_set(MASK_CUDA, NULL); /* which HIP reads too, as numbers of what is left */
    } else {
        masks_set(MASK_ZE, text);
    }
}

/* Returns the entries of a list that are at these positions. New string. */
static char *masks_at(const char *list, const char *positions)
{
    ACT_AUTO(act_strv) entries = {0};
    struct act_buf text = {0};
    char *end;

    for (char *entry; (entry = masks_next(&list));)
        act_strv_take(&entries, entry);
    for (const char *rest = positions; *rest; rest = *end == ',' ? end + 1 : "") {
        unsigned long at = strtoul(rest, &end, 10);
        if (end != rest && at < entries.n)
            act_buf_addf(&text, "%s%s", text.len ? "," : "", entries.v[at]);
    }
    return act_buf_steal(&text);
}

/* HIP counts only what ROCm leaves. */
static void number_for_hip(const char *left)
{
    struct act_buf numbers = {0};
    int n = 0;

    for (const char *at = *left ? left : NULL; at; at = strchr(at, ',') ? strchr(at, ',') + 1 : NULL, n++)
        act_buf_addf(&numbers, "%s%d", n ? "," : "", n);
    masks_set(MASK_HIP, n ? numbers.data : "");
    masks_set(MASK_ORDINAL, NULL);
    act_buf_release(&numbers);
}

void gpus_narrow(const char *positions)
{
    static const enum gpu_mask lists[] = {MASK_CUDA, MASK_ROCR, MASK_HIP, MASK_ORDINAL, MASK_ZE};
    bool any = false;

    for (size_t i = 0; i < sizeof(lists) / sizeof(lists[0]); i++) {
        const char *list = getenv(gpus_mask_name(lists[i]));
        ACT_AUTOFREE char *left = list ? masks_at(list, positions) : NULL;
        any = any || list;
        masks_set(lists[i], left);
    }
    if (!any)
        masks_set(MASK_CUDA, positions);
    if (getenv(gpus_mask_name(MASK_ROCR)))
        number_for_hip(getenv(gpus_mask_name(MASK_ROCR)));
}

char *gpus_of_rank(const char *visible, int local_rank)
{
    const char *rest = visible;
    char *entry;

    if (!visible || !strchr(visible, ',') || !strstr(visible, "MIG-"))
        return NULL;
    for (int i = 0; (entry = masks_next(&rest)); i++) {
        if (i == local_rank)
            return entry;
        free(entry);
    }
    return NULL;
}
