/* What nvidia-smi prints about who uses GPUs, and variables that hide some of them. */
#include "fuzz/fuzz.h"

#include "gpus/gpus.h"

enum { N_CARDS = 3 };

static void gpus_make(struct gpu_list *out)
{
    *out = (struct gpu_list){.v = act_calloc(N_CARDS, sizeof(*out->v)), .n = N_CARDS};
    for (int i = 0; i < N_CARDS; i++)
        out->v[i] = (struct gpu){.kind = i == 2 ? GPU_MIG : GPU_NVIDIA,
                                 .index = i,
                                 .card = i,
                                 .uuid = i == 0 ? act_strdup("GPU-00") : act_strdup(""),
                                 .bus = act_strdup(""),
                                 .model = act_strdup(""),
                                 .may_open = true,
                                 .is_given = true};
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static void (*const takes[])(char *text, struct gpu_list *list) = {gpus_take_memory, gpus_take_users,
                                                                       gpus_take_instances, gpus_take_topology};
    struct gpu_list list;
    bool can[N_CARDS] = {true, true, true}, chosen[N_CARDS];

    gpus_make(&list);
    for (size_t i = 0; i < sizeof(takes) / sizeof(takes[0]); i++) {
        ACT_AUTOFREE char *text = fuzz_text(data, size);
        takes[i](text, &list);
    }
    ACT_AUTOFREE char *mask = fuzz_text(data, size);
    gpus_apply_masks(&(struct gpu_masks){.v = {[MASK_CUDA] = mask, [MASK_NVIDIA] = mask}}, &list);
    FUZZ_CHECK(gpus_given(&list) <= N_CARDS);
    FUZZ_CHECK(gpus_choose(&list, can, 2, chosen) && chosen[0] + chosen[1] + chosen[2] == 2);
    gpu_list_release(&list);
    return 0;
}
