/* Logs, in pieces, under the rules of the program. */
#include "fuzz/fuzz.h"

#include "diagnose/diagnose.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct diagnose *rules;
    struct diagnose_hits hits;

    if (!rules)
        FUZZ_CHECK(diagnose_open(NULL, &rules, NULL) == 0);
    struct diagnose_scan *scan = diagnose_scan_new(rules, DIAGNOSE_FAILED_RANK);
    for (size_t at = 0, n; at < size; at += n) {
        n = 1 + data[at] % 64U < size - at ? 1 + data[at] % 64U : size - at;
        diagnose_scan_feed(scan, (const char *)data + at, n);
    }
    diagnose_scan_end(scan, &hits);
    for (size_t i = 0; i < hits.n; i++)
        FUZZ_CHECK(hits.v[i].line_no > 0 && hits.v[i].line_no <= hits.lines);
    diagnose_hits_release(&hits);
    return 0;
}
