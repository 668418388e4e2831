/* Names of logs, and the last words of ranks in them. */
#include "fuzz/fuzz.h"

#include "diagnose/diagnose.h"

#include "flow/source/last_words.c"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    ACT_AUTOFREE char *text = fuzz_text(data, size);
    char *rest = text, *name = fuzz_line(&rest);
    struct act_buf log = {.data = rest, .len = strlen(rest)};
    struct act_strv lines = {0};
    struct flow_last_words words = {.rank = -1};
    int choice;

    FUZZ_CHECK(run_log_rank(name, &choice) >= -1);
    (void)diagnose_where_of(name, 0);
    (void)run_id_valid(name);
    flow_last_lines(&log, LINES, &lines);
    take_last_words(3, &lines, &words);
    FUZZ_CHECK(words.rank < 0 || (words.exit_status > 0 && words.exit_status < 256));
    free(words.reason);
    act_strv_release(&lines);
    return 0;
}
