/* Cluster files: read, shown, checked. */
#include "fuzz/fuzz.h"

#include "config/config.h"
#include "platform/platform.h"

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    (void)argc;
    (void)argv;
    platform_begin();
    return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    ACT_AUTOFREE char *dir = fuzz_dir();
    const struct config_request request = {.start_dir = dir};
    struct config config = {0};
    struct config_report report = {0};
    struct act_error err;

    free(fuzz_file(dir, "aux_data/aml/aml.yaml", data, size));
    int rc = config_load(&request, &config, &err);
    if (rc == 0) {
        json_decref(config_show(&config));
        json_decref(config_resolved(&config));
        config_release(&config);
    }
    FUZZ_CHECK(config_check(&request, &report, &err) < 0 || rc == 0 || report.problems.n > 0);
    config_report_release(&report);
    return 0;
}
