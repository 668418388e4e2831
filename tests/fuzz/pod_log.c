/* What a pod prints, in pieces, and again after its connection was lost. */
#include "fuzz/fuzz.h"

#include "platform/kubernetes/kubernetes_internal.h"

static void fuzz_pod_log_take(void *arg, int attempt, int rank, const char *text, size_t len)
{
    FUZZ_CHECK(attempt > 0 && rank >= -1);
    for (size_t i = 0; i < len; i++)
        *(unsigned *)arg += (unsigned char)text[i];
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    unsigned sum = 0;
    size_t half = size / 2;
    struct kubernetes_pod_log *log = kubernetes_pod_log_new(fuzz_pod_log_take, &sum);

    kubernetes_pod_log_take(log, (const char *)data, half);
    kubernetes_pod_log_take(log, (const char *)data + half, size - half);
    free(kubernetes_pod_log_resume(log));
    kubernetes_pod_log_take(log, (const char *)data, size);
    kubernetes_pod_log_end(log);
    kubernetes_pod_log_free(log);
    return 0;
}
