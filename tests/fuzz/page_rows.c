/* The filter, the order and the groups of a list of runs, as an address has them, on a run whose command and note come
 * from outside, too: the words, then the order, the command, the tags and the note, a line each. Then the bytes as a
 * piece of a log. */
#include "fuzz/fuzz.h"

#include "cli/page/api.h"
#include "cli/page/groups.h"
#include "cli/page/rows.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    ACT_AUTOFREE char *text = fuzz_text(data, size);
    char *rest = text, *words = fuzz_line(&rest), *sort = fuzz_line(&rest), *command = fuzz_line(&rest),
         *tags = fuzz_line(&rest);
    CODEC_AUTOJSON json_t *note = fuzz_json((const uint8_t *)rest, strlen(rest));
    struct page_row v[2] = {{.run = {.row = {.id = command, .command = command, .tags = tags}}, .note = note},
                            {.at = 1}};
    struct page_filter_words filter;
    struct page_order order;

    page_filter_read(words, &filter);
    FUZZ_CHECK(filter.n <= 32 && page_filter_passes(&filter, &v[0]) <= 1);
    page_filter_words_release(&filter);
    if (page_order_read(sort, &order))
        page_order_sort(&order, &(struct page_rows){.v = v, .n = 2});

    struct page_groups groups;
    struct act_strv keys = {.v = &sort, .n = 1};
    if (page_groups_read(words, &groups)) {
        groups.max = 1;
        page_groups_take(&groups, &v[0]);
        page_groups_take(&groups, &v[1]);
        json_decref(page_groups_json(&groups, &(struct page_rows){.v = v, .n = 2}, &keys));
        FUZZ_CHECK(groups.runs == 2 && groups.lines <= 2);
    }
    page_groups_release(&groups);

    size_t begin = api_whole_begin((const char *)data, size), end = api_whole_end((const char *)data, size);
    FUZZ_CHECK(begin <= 3 && begin <= size && end <= size && size - end <= 3);
    json_t *json = api_text_json((const char *)data, size);
    FUZZ_CHECK(json && json_string_length(json) <= 3 * size);
    json_decref(json);
    return 0;
}
