/* The comparison of two listings. */
#include "unit/test.h"

#include "sync/sync.h"

static void decide_table(void **state)
{
    const int64_t t = 1700000000000000001;
    const struct {
        struct store_entry from, to;
        enum sync_action action;
    } rows[] = {
        {{.size = 5, .mtime_ns = t}, {.size = 5, .mtime_ns = t}, SYNC_SAME},
        {{.size = 5, .mtime_ns = t}, {.size = 6, .mtime_ns = t}, SYNC_COPY},
        {{.size = 5, .mtime_ns = t}, {.size = 5, .mtime_ns = t + 1}, SYNC_COPY},
        {{.size = 5, .mtime_ns = t}, {.size = 5}, SYNC_COPY},
        {{.size = 5, .mtime_ns = t, .md5 = "a"}, {.size = 5, .md5 = "a"}, SYNC_SAME},
        {{.size = 5, .mtime_ns = t, .md5 = "a"}, {.size = 5, .md5 = "b"}, SYNC_COPY},
        {{.size = 5}, {.size = 5}, SYNC_COPY},
        {{.size = 5, .mtime_ns = t}, {.size = 5, .mtime_ns = t, .kind = STORE_SYMLINK}, SYNC_COPY},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++)
        assert_int_equal(sync_decide(&rows[i].from, &rows[i].to, false, NULL), rows[i].action);
    assert_int_equal(sync_decide(&rows[0].from, NULL, false, NULL), SYNC_COPY);
}

/* A page of the keys in text, separated by blanks; "key=N" has size N. */
static struct store_page page_of(const char *prefix, const char *text)
{
    struct store_page page = {0};
    char *copy = act_strdup(text), *save = NULL;

    page.v = act_calloc(64, sizeof(*page.v));
    for (char *word = strtok_r(copy, " ", &save); word; word = strtok_r(NULL, " ", &save)) {
        char *eq = strchr(word, '=');
        struct store_entry *e = &page.v[page.n++];
        *e = (struct store_entry){.mtime_ns = 1, .mode = -1};
        if (eq) {
            e->size = strtoull(eq + 1, NULL, 10);
            *eq = '\0';
        }
        e->key = act_sprintf("%s%s", prefix, word);
    }
    free(copy);
    return page;
}

/* Merges the pages of both sides (separated by '|') and gives "key" for copied, "=key" for the same, "-key" for what is
 * only at the destination; NULL when a listing is out of order. */
static char *merge(const char *from_pages, const char *to_pages, bool extras)
{
    static const char *const marks[] = {
        [SYNC_COPY] = "", [SYNC_SAME] = "=", [SYNC_UNSURE] = "?", [SYNC_EXTRA] = "-"};
    const char *rest[2] = {from_pages, to_pages};
    static const char *const prefixes[2] = {"src/x/", "d/"};
    struct sync *s = sync_new(
        &(struct sync_options){.from_prefix = prefixes[0], .to_prefix = prefixes[1], .extras = extras});
    struct act_buf out = {0};
    struct sync_item item;
    struct act_error err;
    int rc = 0;

    while (rc == 0 && !sync_finished(s)) {
        while (sync_next(s, &item)) {
            act_buf_addf(&out, "%s%s ", marks[item.action], item.rel);
            sync_item_release(&item);
        }
        for (int side = 0; side < 2 && rc == 0; side++) {
            if (!sync_wants(s, side))
                continue;
            size_t n = strcspn(rest[side], "|");
            char *text = act_strndup(rest[side], n);
            struct store_page page = page_of(prefixes[side], text);
            rc = sync_feed(s, side, &page, rest[side][n] == '\0', &err);
            store_page_release(&page);
            rest[side] += n + (rest[side][n] == '|');
            free(text);
        }
    }
    sync_free(s);
    if (rc == 0)
        return act_buf_steal(&out);
    act_buf_release(&out);
    return NULL;
}

static void merge_table(void **state)
{
    static const struct {
        const char *from, *to, *result, *with_extras;
    } rows[] = {
        {"", "", "", ""},
        {"a b c", "", "a b c ", "a b c "},
        {"", "a b c", "", "-a -b -c "},
        {"a b c", "b", "a =b c ", "a =b c "},
        {"a b c", "a b=7 c", "=a b =c ", "=a b =c "},
        {"a|b|c", "a b c", "=a =b =c ", "=a =b =c "},
        {"a b c", "a|b|c", "=a =b =c ", "=a =b =c "},
        {"a||b", "||a||b|z", "=a =b ", "=a =b -z "},
        {"c d", "a|b|c|d|e", "=c =d ", "-a -b =c =d -e "},
        {"a-b a/b a0", "a-b a/b a0", "=a-b =a/b =a0 ", "=a-b =a/b =a0 "},
        {"b", "a a0 a1|a2", "b ", "-a -a0 -a1 -a2 b "},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++) {
        for (int extras = 0; extras < 2; extras++) {
            char *result = merge(rows[i].from, rows[i].to, extras);
            assert_string_equal(result, extras ? rows[i].with_extras : rows[i].result);
            free(result);
        }
    }
}

static void disorder_is_an_error(void **state)
{
    (void)state;
    assert_null(merge("a b c", "c a b", false));
    assert_null(merge("a c|b", "a b c", true));
    assert_null(merge("a a", "", true));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(decide_table),
        cmocka_unit_test(merge_table),
        cmocka_unit_test(disorder_is_an_error),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
