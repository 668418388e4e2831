/* Files of rules for logs, and a log that they are applied to. */
#include "fuzz/fuzz.h"

#include "diagnose/diagnose.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char log[] = "Traceback: CUDA out of memory\n[1,0]<stderr>:Killed\nab 12 aab\n";
    struct diagnose *rules = NULL;
    struct diagnose_hits hits;
    struct act_error err = {0};
    int rc = diagnose_parse((const char *)data, size, "input", &rules, &err);

    FUZZ_CHECK(rc == 0 || *act_error_text(&err));
    if (rc < 0)
        return 0;
    struct diagnose_scan *scan = diagnose_scan_new(rules, DIAGNOSE_FAILED_RANK);
    diagnose_scan_feed(scan, log, sizeof(log) - 1);
    diagnose_scan_end(scan, &hits);
    FUZZ_CHECK(hits.n <= diagnose_count(rules));
    diagnose_hits_release(&hits);
    diagnose_free(rules);
    return 0;
}
