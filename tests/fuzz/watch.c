/* What a server sends of a watch, in two pieces, and then another one. */
#include "fuzz/fuzz.h"

#include "kube/kube_internal.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    size_t half = size / 2;
    struct kube_mirror mirror = {0};
    struct act_error err;

    kube_mirror_begin(&mirror, json_object(), act_strdup("1"));
    int rc = kube_mirror_take(&mirror, (const char *)data, half, &err);
    if (rc == 0)
        rc = kube_mirror_take(&mirror, (const char *)data + half, size - half, &err);
    FUZZ_CHECK(rc <= 0 && json_is_object(mirror.items) && *mirror.version);
    kube_mirror_begin_stream(&mirror);
    rc = kube_mirror_take(&mirror, (const char *)data, size, &err);
    FUZZ_CHECK(rc <= 0);
    kube_mirror_release(&mirror);
    return 0;
}
