/* XML as a stream of elements. */
#include "fuzz/fuzz.h"

#include "codec/xml.h"

static int fuzz_xml_start(void *arg, const char *path, xml_attributes attributes, struct act_error *err)
{
    (void)err;
    for (; *attributes; attributes += 2)
        FUZZ_CHECK(attributes[1]);
    FUZZ_CHECK(*path == '/');
    return ++*(int *)arg > 64 ? -ACT_FAIL : 0;
}

static int fuzz_xml_end(void *arg, const char *path, const char *text, struct act_error *err)
{
    (void)err;
    FUZZ_CHECK(*path == '/' && strlen(text) <= 65536);
    --*(int *)arg;
    return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const struct xml_handler handler = {.start = fuzz_xml_start, .end = fuzz_xml_end};
    struct act_error err = {0};
    int depth = 0;
    int rc = xml_parse((const char *)data, size, "input", &handler, &depth, &err);

    FUZZ_CHECK(rc == 0 ? depth == 0 : *act_error_text(&err) != '\0');
    return 0;
}
