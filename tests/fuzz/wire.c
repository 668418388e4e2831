/* A site that answers whatever it likes: its answers, one behind the other. */
#include "fuzz/fuzz.h"

#include <fcntl.h>

#include "site/site_internal.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    ACT_AUTOFREE char *dir = fuzz_dir();
    ACT_AUTOFREE char *path = fuzz_file(dir, "input", data, size);
    const char *const ids[] = {"x_1_00000000", "x_2_00000000"}, *const folders[] = {"user_logs"};
    struct site *site = act_calloc(1, sizeof(*site));
    struct site_news *news = site_news_new(ids[0], folders, 1);
    struct site_files files = {0};
    const struct site_files *told;
    struct site_state states[2] = {0};
    struct act_strv runs = {0};
    struct act_error err;
    char bytes[64], more[64], *text = NULL;
    struct site_part parts[] = {{.name = "user_logs/a", .data = bytes, .len = sizeof(bytes)},
                                {.name = "user_logs/b", .offset = 7, .data = more, .len = sizeof(more)}};

    if (wire_open_fds(open(path, O_RDONLY | O_CLOEXEC), open("/dev/null", O_WRONLY), site, &err) == 0 &&
        wire_list(site, &runs, &err) == 0 && wire_states(site, ids, 2, states, &err) == 0 &&
        wire_files(site, ids[0], folders, 1, 1, &files, &err) == 0) {
        wire_read_parts(site, ids[0], parts, 2);
        if (wire_read_text(site, ids[0], "job.json", &text, &err) == 0)
            free(text);
        for (int looks = 0; looks < 3 && site_news_look(site, news, 1, &told, &err) == 0;)
            looks++;
    }
    site_files_release(&files);
    site_states_release(states, 2);
    act_strv_release(&runs);
    site_news_free(news);
    site_free(site);
    return 0;
}
