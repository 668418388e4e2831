/* Account files. */
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
    static const char cluster[] = "config_param: {code_path: {azure_blob_config_file: a.yaml, path: c.zip}}\n";
    ACT_AUTOFREE char *dir = fuzz_dir();
    const struct config_request request = {.start_dir = dir};
    struct config config = {0};
    struct config_account account = {0};
    struct act_error err;

    free(fuzz_file(dir, "aux_data/aml/aml.yaml", cluster, sizeof(cluster) - 1));
    free(fuzz_file(dir, "a.yaml", data, size));
    FUZZ_CHECK(config_load(&request, &config, &err) == 0);
    if (config_account(&config, &config.code, &account, &err) == 0) {
        FUZZ_CHECK(account.folder ? *account.folder == '/' : account.endpoint != NULL);
        config_account_release(&account);
    }
    json_decref(config_show(&config));
    config_release(&config);
    return 0;
}
