/* What a cluster tells of a run: its Job, pods, events and Kueue's Workload. */
#include "fuzz/fuzz.h"

#include "platform/kubernetes/kubernetes_internal.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    CODEC_AUTOJSON json_t *json = fuzz_json(data, size);
    struct kubernetes_view view = {.job = json_object_get(json, "job"),
                                   .pods = json_object_get(json, "pods"),
                                   .events = json_object_get(json, "events"),
                                   .workload = json_object_get(json, "workload")};
    struct run_status status;

    kubernetes_read_status(&view, &status);
    FUZZ_CHECK(memchr(status.reason, '\0', sizeof(status.reason)) && !act_has_control(status.reason));
    free(kubernetes_pod_state(json_array_get(view.pods, 0)));
    return 0;
}
