/* The comparison of two listings. */
#include "unit/test.h"

#include "filter/filter.h"
#include "sync/sync.h"

#define T  INT64_C(1700000000123456789)
#define TS INT64_C(1700000000) /* the second of T */

/* Files of 5 bytes. */
#define AT(...)                                                                                                        \
    {                                                                                                                  \
        .size = 5, .mtime_ns = __VA_ARGS__                                                                             \
    }
#define SECOND(more) ((TS + (more)) * 1000000000)

TEST(decide_table)
{
    static const struct {
        struct store_entry from, to;
        enum sync_reason reason; /* by size and time */
        enum sync_reason checksum_reason;
    } rows[] = {
        /* times */
        {AT(T), AT(T), SYNC_NO_REASON, SYNC_UNKNOWN},
        {AT(T), {.size = 6, .mtime_ns = T}, SYNC_SIZE, SYNC_SIZE},
        {AT(T), AT(T + 1), SYNC_TIME, SYNC_UNKNOWN},
        {AT(-T), AT(-T), SYNC_NO_REASON, SYNC_UNKNOWN},
        {{.size = 0, .mtime_ns = T}, {.size = 0, .mtime_ns = T + 1}, SYNC_TIME, SYNC_NO_REASON},
        /* one side keeps them less finely */
        {AT(T), AT(SECOND(0)), SYNC_NO_REASON, SYNC_UNKNOWN},
        {AT(T), {.size = 6, .mtime_ns = SECOND(0)}, SYNC_SIZE, SYNC_SIZE},
        {AT(T), AT(SECOND(0) + 120000000), SYNC_NO_REASON, SYNC_UNKNOWN},
        {AT(T), AT(T - 789), SYNC_NO_REASON, SYNC_UNKNOWN},
        {AT(T - 89), AT(T), SYNC_NO_REASON, SYNC_UNKNOWN},
        {AT(T), AT(SECOND(1)), SYNC_TIME, SYNC_UNKNOWN},
        {AT(T), AT(T - 1789), SYNC_TIME, SYNC_UNKNOWN},
        {AT(-T), AT(-SECOND(1)), SYNC_NO_REASON, SYNC_UNKNOWN},
        {AT(-T), AT(-SECOND(0)), SYNC_TIME, SYNC_UNKNOWN},
        /* ... and a checksum knows better */
        {AT(T, .md5 = "a"), AT(T, .md5 = "b"), SYNC_CONTENT, SYNC_CONTENT},
        {AT(T, .has_crc64 = true, .crc64 = 1), AT(SECOND(0), .has_crc64 = true, .crc64 = 2), SYNC_CONTENT,
         SYNC_CONTENT},
        {AT(T, .md5 = "a"), AT(T + 1, .md5 = "a"), SYNC_TIME, SYNC_NO_REASON},
        /* a time is not known */
        {AT(T), {.size = 5}, SYNC_UNKNOWN, SYNC_UNKNOWN},
        {{.size = 5}, {.size = 5}, SYNC_UNKNOWN, SYNC_UNKNOWN},
        {AT(T, .md5 = "a"), {.size = 5, .md5 = "a"}, SYNC_NO_REASON, SYNC_NO_REASON},
        {AT(T, .md5 = "a"), {.size = 5, .md5 = "b"}, SYNC_CONTENT, SYNC_CONTENT},
        {{.size = 5, .has_crc64 = true}, {.size = 5, .has_crc64 = true}, SYNC_NO_REASON, SYNC_NO_REASON},
        {{.size = 5, .has_crc64 = true}, {.size = 5, .has_crc64 = true, .crc64 = 1}, SYNC_CONTENT, SYNC_CONTENT},
        {{.size = 5, .md5 = "a"}, {.size = 5, .has_crc64 = true}, SYNC_UNKNOWN, SYNC_UNKNOWN},
        {{.size = 5, .md5 = "a", .has_crc64 = true},
         {.size = 5, .md5 = "a", .has_crc64 = true, .crc64 = 1},
         SYNC_CONTENT,
         SYNC_CONTENT},
        {{.size = 0}, {.size = 0}, SYNC_NO_REASON, SYNC_NO_REASON},
        {{.size = 5, .md5 = "a", .grows = true}, {.size = 5, .md5 = "a"}, SYNC_UNKNOWN, SYNC_UNKNOWN},
        /* the source knows only when it was written */
        {{.size = 5, .last_modified_s = TS}, AT(SECOND(0), .last_modified_s = TS + 1), SYNC_NO_REASON, SYNC_UNKNOWN},
        {{.size = 5, .last_modified_s = TS}, AT(SECOND(0), .last_modified_s = TS), SYNC_UNKNOWN, SYNC_UNKNOWN},
        {{.size = 5, .last_modified_s = TS}, AT(T, .last_modified_s = TS + 9), SYNC_UNKNOWN, SYNC_UNKNOWN},
        {AT(SECOND(0)), {.size = 5, .last_modified_s = TS}, SYNC_UNKNOWN, SYNC_UNKNOWN},
        /* kinds */
        {AT(T), AT(T, .kind = STORE_SYMLINK), SYNC_KIND, SYNC_KIND},
        {AT(T, .kind = STORE_SYMLINK), AT(T, .kind = STORE_SYMLINK), SYNC_NO_REASON, SYNC_UNKNOWN},
        {AT(T, .kind = STORE_SYMLINK), AT(T + 1, .kind = STORE_SYMLINK), SYNC_TIME, SYNC_UNKNOWN},
        {{.kind = STORE_FOLDER, .mtime_ns = T}, {.kind = STORE_FOLDER}, SYNC_NO_REASON, SYNC_NO_REASON},
        {{.kind = STORE_FOLDER, .mtime_ns = T},
         {.kind = STORE_FOLDER, .mtime_ns = T + 1},
         SYNC_NO_REASON,
         SYNC_NO_REASON},
        /* modes */
        {AT(T, .mode = 0644), AT(T, .mode = 0755), SYNC_MODE, SYNC_MODE},
        {AT(T, .mode = 0644), AT(T, .mode = -1), SYNC_NO_REASON, SYNC_UNKNOWN},
        {AT(T, .mode = -1), AT(T, .mode = 0644), SYNC_NO_REASON, SYNC_UNKNOWN},
        {AT(T, .mode = 0644), AT(T + 1, .mode = 0755), SYNC_TIME, SYNC_MODE},
        {{.kind = STORE_FOLDER, .mode = 0755}, {.kind = STORE_FOLDER, .mode = 0700}, SYNC_MODE, SYNC_MODE},
    };

    for (size_t i = 0; i < COUNT(rows); i++)
        for (int checksum = 0; checksum < 2; checksum++) {
            enum sync_reason reason, want = checksum ? rows[i].checksum_reason : rows[i].reason;
            enum sync_action action = sync_decide(&rows[i].from, &rows[i].to, checksum, &reason);
            if (reason != want || (action == SYNC_SAME) != (want == SYNC_NO_REASON))
                fail_msg("row %zu, checksum %d: %d '%s'", i, checksum, action, sync_reason_text(reason));
        }
}

TEST(the_mode_of_a_copy)
{
    static const struct sync_modes service = {.lost = 022}, disk = {.umask = 022, .lost = 022},
                                   download = {.umask = 022, .stay_closed = true};
    static const struct {
        const struct sync_modes *modes;
        enum store_kind kind;
        int from, to, want; /* to -2: there is nothing */
    } rows[] = {
        {&service, STORE_FILE, 0777, -2, 0777},    {&service, STORE_FILE, 0755, 0777, 0777},
        {&service, STORE_FILE, 0600, 0644, 0600},  {&disk, STORE_FILE, 0777, -2, 0755},
        {&disk, STORE_FILE, 0666, 0666, 0666},     {&disk, STORE_FILE, 0644, 0600, 0644},
        {&download, STORE_FILE, 0666, -2, 0644},   {&download, STORE_FILE, -1, 0644, -1},
        {&download, STORE_FILE, 0755, -1, 0755},   {&download, STORE_FILE, 0644, 0600, 0600},
        {&download, STORE_FILE, 0755, 0640, 0750}, {&download, STORE_FILE, 0666, 0664, 0664},
        {&download, STORE_FILE, 0400, 0644, 0400}, {&download, STORE_FOLDER, 0755, 0700, 0700},
        {&download, STORE_FOLDER, 0775, -2, 0755}, {&download, STORE_FOLDER, 0755, 0500, 0700},
    };

    for (size_t i = 0; i < COUNT(rows); i++) {
        struct store_entry from = {.kind = rows[i].kind, .mode = rows[i].from}, to = from;
        to.mode = rows[i].to;
        to.key = rows[i].to == -2 ? NULL : (char[]){"k"};
        int mode = sync_mode(rows[i].modes, &from, &to);
        if (mode != rows[i].want)
            fail_msg("row %zu: %o", i, (unsigned)mode);
    }
}

TEST(unsure_where_a_checksum_would_tell)
{
    const struct store_entry bare = {.size = 5}, summed = {.size = 5, .md5 = "a"};
    enum sync_reason reason;

    assert_int_equal(sync_decide(&bare, &bare, false, NULL), SYNC_COPY);
    assert_int_equal(sync_decide(&bare, &bare, true, NULL), SYNC_UNSURE);
    assert_int_equal(sync_decide(&bare, &summed, false, NULL), SYNC_UNSURE);
    assert_int_equal(sync_decide(&summed, &bare, false, NULL), SYNC_UNSURE);
    assert_int_equal(sync_decide(&bare, NULL, true, &reason), SYNC_COPY);
    assert_string_equal(sync_reason_text(reason), "new");
}

TEST(the_time_of_a_copy)
{
    assert_true(sync_mtime_ns(&(struct store_entry){.mtime_ns = T, .last_modified_s = 7}) == T);
    assert_true(sync_mtime_ns(&(struct store_entry){.last_modified_s = TS}) == SECOND(0));
    assert_true(sync_mtime_ns(&(struct store_entry){.last_modified_s = INT64_MAX / 2}) == 0);
    assert_true(sync_mtime_ns(&(struct store_entry){0}) == 0);
}

/* A page of the keys in text, separated by blanks; "key=N" has size N, a folder mode N. */
static struct store_page page_of(const char *prefix, const char *text)
{
    ACT_AUTO(act_strv) words = words_of(text);
    struct store_page page = {0};

    for (size_t i = 0; i < words.n; i++) {
        size_t len = strcspn(words.v[i], "=");
        const char *number = words.v[i][len] ? words.v[i] + len + 1 : NULL;
        struct store_entry *e = store_page_add(&page);
        e->key = act_sprintf("%s%.*s", prefix, (int)len, words.v[i]);
        e->kind = act_ends_with(e->key, "/") ? STORE_FOLDER : STORE_FILE;
        e->mtime_ns = 1;
        if (number && e->kind == STORE_FOLDER)
            e->mode = (int)strtol(number, NULL, 8);
        else if (number)
            e->size = strtoull(number, NULL, 10);
        if (e > page.v && e[-1].kind == STORE_FOLDER)
            e[-1].filled = act_starts_with(e->key, e[-1].key);
    }
    return page;
}

/* Merges the pages of both sides (separated by '|') and gives "key" for copied, "=key" for the same, "-key" for what is
 * only at the destination; NULL when a listing is out of order. */
static char *sync_test_merge(const char *from_pages, const char *to_pages, bool extras)
{
    static const char *const marks[] = {[SYNC_COPY] = "", [SYNC_SAME] = "=", [SYNC_UNSURE] = "?", [SYNC_EXTRA] = "-"};
    const char *rest[2] = {from_pages, to_pages};
    static const char *const prefixes[2] = {"src/x/", "d/"};
    struct sync *s = sync_new(&(struct sync_options){
        .from_prefix = prefixes[0], .to_prefix = prefixes[1], .extras = extras, .folder_mode = 0755});
    ACT_AUTO(act_buf) out = {0};
    struct sync_item item;
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
    return rc == 0 ? act_buf_steal(&out) : NULL;
}

TEST(merge_table)
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
        /* an empty folder on one side that has something in it on the other */
        {"a/ b", "", "a/ b ", "a/ b "},
        {"a/ b", "a/ b", "=a/ =b ", "=a/ =b "},
        {"a/x", "a/", "a/x ", "a/x "},
        {"a/x", "a/|b", "a/x ", "a/x -b "},
        {"a/", "a/x", "=a/ ", "a/ -a/x "},
        {"a/", "|a/x", "=a/ ", "a/ -a/x "},
        {"a/", "a0", "a/ ", "a/ -a0 "},
        {"a/b/x", "a/b/ a/c/", "a/b/x ", "a/b/x -a/c/ "},
        /* modes of folders with something in them: where it is not the one that they get by themselves */
        {"a/=700 a/x", "", "a/ a/x ", "a/ a/x "},
        {"a/=755 a/x", "", "=a/ a/x ", "=a/ a/x "},
        {"a/=700 a/x", "a/x", "a/ =a/x ", "a/ =a/x "},
        {"a/=700 a/x", "a/=700 a/x", "=a/ =a/x ", "=a/ =a/x "},
        {"a/=700 a/x", "a/=700", "=a/ a/x ", "=a/ a/x "},
        {"a/=700 a/x", "a/=750 a/x", "a/ =a/x ", "a/ =a/x "},
        {"a/=700 a/x", "a/ a/x", "a/ =a/x ", "a/ =a/x "},
        {"a/=755 a/x", "a/=700 a/x", "a/ =a/x ", "a/ =a/x "},
        {"a/=755 a/x", "a/ a/x", "=a/ =a/x ", "=a/ =a/x "},
        {"a/ a/x", "a/=700 a/x", "=a/ =a/x ", "=a/ =a/x "},
        {"a/x", "a/=700 a/x a/y", "=a/x ", "=a/x -a/y "},
        {"b", "a/=700 a/x b", "=b ", "-a/ -a/x =b "},
        {"a/=700", "a/x", "a/ ", "a/ -a/x "},
        {"a/=755", "a/x", "=a/ ", "a/ -a/x "},
        {"a/=755", "a/=755 a/x", "=a/ ", "=a/ -a/x "},
    };

    for (size_t i = 0; i < COUNT(rows); i++) {
        for (int extras = 0; extras < 2; extras++) {
            char *result = sync_test_merge(rows[i].from, rows[i].to, extras);
            assert_string_equal(result, extras ? rows[i].with_extras : rows[i].result);
            free(result);
        }
    }
}

/* A filter that leaves the links out changes nothing. */
static bool takes_no_link(void *arg, const char *rel, bool is_folder)
{
    (void)arg;
    (void)is_folder;
    return strcmp(rel, "a") != 0 && strcmp(rel, "a-b") != 0 && strcmp(rel, "z") != 0;
}

struct protection {
    const char *rel;
    bool is_protected;
};

/* Compares entries like this one, of these names, with what is at the destination; gives how many are unreadable. */
static size_t assert_protected(const struct sync_options *options, const struct store_entry *like, const char *names,
                               const struct protection *to, size_t n)
{
    ACT_AUTO(act_strv) from = words_of(names);
    struct sync *s = sync_new(options);
    struct store_page sources = {0}, copies = {0};
    size_t extras = 0, unreadable = 0;
    struct sync_item item;

    for (size_t i = 0; i < from.n; i++) {
        struct store_entry *e = store_page_add(&sources);
        *e = *like;
        e->key = act_strdup(from.v[i]);
    }
    for (size_t i = 0; i < n; i++)
        store_page_add(&copies)->key = act_strdup(to[i].rel);
    assert_ok(sync_feed(s, SYNC_FROM, &sources, true, &err), err);
    assert_ok(sync_feed(s, SYNC_TO, &copies, true, &err), err);
    for (; sync_next(s, &item); sync_item_release(&item)) {
        if (item.action == SYNC_UNREADABLE) {
            unreadable++;
            continue;
        }
        assert_int_equal(item.action, SYNC_EXTRA);
        assert_string_equal(item.rel, to[extras].rel);
        assert_int_equal(item.is_protected, to[extras++].is_protected);
    }
    assert_int_equal(extras, n);
    sync_free(s);
    return unreadable;
}

/* "a/" comes behind "a-b" in a listing, but not as the name of a folder. */
TEST(what_could_not_be_read_protects_what_is_below)
{
    static const struct protection to[] = {{"a-b/x", true}, {"a/x", true}, {"a0", false}, {"f/x", true}, {"g", false}};
    const struct sync_options options = {.from_prefix = "", .to_prefix = "", .extras = true};

    assert_int_equal(assert_protected(&options, &(struct store_entry){.kind = STORE_UNREADABLE, .mode = -1}, "a-b a/ f",
                                      to, COUNT(to)),
                     3);
}

/* The files that a link stands for may be at the destination, and a key may come between the two. */
TEST(what_is_below_a_link_is_told_apart)
{
    static const struct protection to[] = {{"a-", false},   {"a-b/x", true}, {"a.", false},   {"a/", true},
                                           {"a/b/c", true}, {"aa/b", false}, {"b/a/x", false}};
    const struct sync_options options = {.from_prefix = "d/", .to_prefix = "", .extras = true, .takes = takes_no_link};
    const struct store_entry link = {.kind = STORE_SYMLINK, .leads_out = true, .mode = -1};

    assert_int_equal(assert_protected(&options, &link, "d/a d/a-b d/z", to, COUNT(to)), 0);
}

TEST(disorder_is_an_error)
{
    assert_null(sync_test_merge("a b c", "c a b", false));
    assert_null(sync_test_merge("a c|b", "a b c", true));
    assert_null(sync_test_merge("a|a", "", true));
    assert_null(sync_test_merge("a a", "", true));
    assert_null(sync_test_merge("", "b|a", true));
}

/* With listings out of order at random places: an error, or every object of the source was given. */
TEST(disorder_never_ends_in_a_plan)
{
    static const char keys[] = "abcdefgh";
    unsigned seed = 3;

    for (int round = 0; round < 500; round++) {
        struct act_buf text[2] = {{0}};
        char order[sizeof(keys)];
        memcpy(order, keys, sizeof(keys));
        size_t i = (size_t)rand_r(&seed) % 8, j = (size_t)rand_r(&seed) % 8;
        char swapped = order[i];
        order[i] = order[j];
        order[j] = swapped;
        int broken = rand_r(&seed) % 2;
        for (int side = 0; side < 2; side++)
            for (size_t k = 0; k < 8; k++)
                act_buf_addf(&text[side], "%c%c", side == broken ? order[k] : keys[k], rand_r(&seed) % 3 ? ' ' : '|');
        char *result = sync_test_merge(text[0].data, text[1].data, round % 2);
        assert_int_equal(result != NULL, i == j);
        free(result);
        act_buf_release(&text[0]);
        act_buf_release(&text[1]);
    }
}

TEST(a_key_outside_of_the_prefix_is_an_error)
{
    struct sync *s = sync_new(&(struct sync_options){.from_prefix = "a/", .to_prefix = ""});
    ACT_AUTO(store_page) page = page_of("", "b/c");

    assert_int_equal(sync_feed(s, SYNC_FROM, &page, true, &err), -ACT_FAIL);
    assert_string_equal(act_error_text(&err), "cannot compare: the listing of 'a/' has 'b/c', which is not below it");
    assert_int_equal(page.n, 1);
    sync_free(s);
}

/* ---- memory */

static size_t live; /* entries that were made and not released */

void __real_store_entry_release(struct store_entry *entry);
void __wrap_store_entry_release(struct store_entry *entry);
void __wrap_store_entry_release(struct store_entry *entry)
{
    live -= entry->key != NULL;
    __real_store_entry_release(entry);
}

static void feed_numbers(struct sync *s, enum sync_side side, size_t *at, size_t step, size_t end, size_t page_size)
{
    ACT_AUTO(store_page) page = {.v = act_calloc(page_size, sizeof(*page.v))};

    for (; page.n < page_size && *at < end; *at += step)
        page.v[page.n++] = (struct store_entry){.key = act_sprintf("%08zu", *at), .size = 1, .mtime_ns = 1, .mode = -1};
    live += page.n;
    assert_ok(sync_feed(s, side, &page, *at >= end, &err), err);
}

/* However many objects there are: no more than a page of each side at a time, in every mode. */
TEST(memory_is_constant)
{
    enum { N = 200000, PAGE = 500 };

    live = 0;
    for (int extras = 0; extras < 2; extras++) {
        struct sync *s = sync_new(&(struct sync_options){.from_prefix = "", .to_prefix = "", .extras = extras});
        size_t at[2] = {0}, most = 0, same = 0, copied = 0, extra = 0;
        struct sync_item item;
        while (!sync_finished(s)) {
            for (int side = 0; side < 2; side++)
                if (sync_wants(s, side))
                    feed_numbers(s, side, &at[side], side == SYNC_FROM ? 2 : 3, N, PAGE);
            while (sync_next(s, &item)) {
                most = live > most ? live : most;
                same += item.action == SYNC_SAME;
                copied += item.action == SYNC_COPY;
                extra += item.action == SYNC_EXTRA;
                sync_item_release(&item);
            }
        }
        sync_free(s);
        assert_int_equal(same, (N + 5) / 6);
        assert_int_equal(same + copied, N / 2);
        assert_int_equal(same + extra, extras ? (N + 2) / 3 : (N + 5) / 6);
        assert_in_range(most, PAGE, 2 * PAGE);
        assert_int_equal(live, 0);
    }
}

/* ---- random trees */

enum { MAX_OBJECTS = 256 };

/* A flat store in a model: sorted objects, folder markers among them. */
struct world {
    struct store_entry v[MAX_OBJECTS];
    size_t n;
};

static size_t sync_test_place_of(const struct world *w, const char *key)
{
    size_t i = 0;

    while (i < w->n && strcmp(w->v[i].key, key) < 0)
        i++;
    return i;
}

TEST(what_is_newer)
{
    static const struct {
        struct store_entry from, to;
        bool newer;
    } rows[] = {
        {{.mtime_ns = T}, {.mtime_ns = T + 1}, true},
        {{.mtime_ns = T}, {.mtime_ns = T}, false},
        {{.mtime_ns = T}, {.mtime_ns = T - 1}, false},
        {{.mtime_ns = T}, {0}, false},
        {{0}, {.mtime_ns = T}, false},
        /* as finely as both tell */
        {{.mtime_ns = T - 789}, {.mtime_ns = T}, false},
        {{.mtime_ns = T}, {.mtime_ns = SECOND(1)}, true},
        /* when the store wrote it, where the original's time is not known */
        {{.mtime_ns = T}, {.last_modified_s = TS}, false},
        {{.mtime_ns = T}, {.last_modified_s = TS + 1}, true},
        {{.mtime_ns = T, .last_modified_s = TS + 9}, {.mtime_ns = T, .last_modified_s = TS + 10}, false},
        {{.last_modified_s = TS}, {.last_modified_s = TS + 1}, true},
        {{.last_modified_s = TS}, {.mtime_ns = T + 1000000000}, true},
        {{.last_modified_s = TS}, {.mtime_ns = SECOND(0)}, false},
        /* a disk changes the time of a folder with whatever happens in it */
        {{.kind = STORE_FOLDER, .mtime_ns = T}, {.kind = STORE_FOLDER, .mtime_ns = T + 1}, false},
        {{.kind = STORE_FILE, .mtime_ns = T}, {.kind = STORE_SYMLINK, .mtime_ns = T + 1}, true},
    };

    for (size_t i = 0; i < COUNT(rows); i++)
        if (sync_is_newer(&rows[i].from, &rows[i].to) != rows[i].newer)
            fail_msg("row %zu", i);
}

static const struct store_entry *sync_test_find(const struct world *w, const char *key)
{
    size_t i = sync_test_place_of(w, key);

    return i < w->n && strcmp(w->v[i].key, key) == 0 ? &w->v[i] : NULL;
}

static void sync_test_drop(struct world *w, const char *key)
{
    size_t i = sync_test_place_of(w, key);

    free(w->v[i].key);
    memmove(&w->v[i], &w->v[i + 1], (w->n - i - 1) * sizeof(w->v[0]));
    w->n--;
}

/* The folders that the key lies in are not empty any more. */
static void drop_markers_above(struct world *w, const char *key)
{
    for (const char *slash = strchr(key, '/'); slash && slash[1]; slash = strchr(slash + 1, '/')) {
        char *folder = act_strndup(key, (size_t)(slash - key) + 1);
        if (sync_test_find(w, folder))
            sync_test_drop(w, folder);
        free(folder);
    }
}

static void sync_test_set(struct world *w, const char *key, const struct store_entry *entry)
{
    drop_markers_above(w, key);
    size_t i = sync_test_place_of(w, key);
    if (i == w->n || strcmp(w->v[i].key, key) != 0) {
        assert_true(w->n < MAX_OBJECTS);
        memmove(&w->v[i + 1], &w->v[i], (w->n - i) * sizeof(w->v[0]));
        w->n++;
        w->v[i].key = act_strdup(key);
    }
    char *kept = w->v[i].key;
    w->v[i] = *entry;
    w->v[i].key = kept;
}

static void release_world(struct world *w)
{
    while (w->n > 0)
        sync_test_drop(w, w->v[0].key);
}

static bool has_below(const struct world *w, const char *folder)
{
    size_t i = sync_test_place_of(w, folder);

    if (i < w->n && strcmp(w->v[i].key, folder) == 0)
        i++;
    return i < w->n && act_starts_with(w->v[i].key, folder);
}

/* Tells whether a store lists the entry: it lists a folder only when nothing is in it. */
static bool is_listed(const struct world *w, const struct store_entry *e)
{
    return e->kind != STORE_FOLDER || !has_below(w, e->key);
}

static char *random_key(unsigned *seed)
{
    static const char *const names[] = {"a", "b", "a-", "a.o", "tmp"};
    struct act_buf b = {0};
    int depth = 1 + rand_r(seed) % 3;

    for (int i = 0; i < depth; i++)
        act_buf_addf(&b, "%s%s", i ? "/" : "", names[rand_r(seed) % 5]);
    if (rand_r(seed) % 5 == 0)
        act_buf_addc(&b, '/');
    return act_buf_steal(&b);
}

/* The content of an object is its size and time here. */
static void random_edits(struct world *w, int n, unsigned *seed)
{
    for (int i = 0; i < n; i++) {
        char *key = random_key(seed);
        struct store_entry entry = {.kind = act_ends_with(key, "/") ? STORE_FOLDER
                                            : rand_r(seed) % 6      ? STORE_FILE
                                                                    : STORE_SYMLINK,
                                    .size = (uint64_t)(rand_r(seed) % 3),
                                    .mtime_ns = 1 + rand_r(seed) % 3,
                                    .mode = rand_r(seed) % 3 ? 0644 : 0755};
        if (entry.kind == STORE_FOLDER) {
            entry.size = 0;
            entry.mtime_ns = 1;
        }
        if (rand_r(seed) % 4 == 0 && sync_test_find(w, key))
            sync_test_drop(w, key);
        else if (is_listed(w, &(struct store_entry){.key = key, .kind = entry.kind}))
            sync_test_set(w, key, &entry);
        free(key);
    }
}

static void copy_world(struct world *to, const struct world *from)
{
    for (size_t i = 0; i < from->n; i++)
        sync_test_set(to, from->v[i].key, &from->v[i]);
}

/* Pages of random size. */
static void feed_some(struct sync *s, enum sync_side side, const struct world *w, size_t *at, unsigned *seed)
{
    ACT_AUTO(store_page) page = {.v = act_calloc(8, sizeof(*page.v))};
    size_t most = (size_t)rand_r(seed) % 8;

    for (; page.n < most && *at < w->n; ++*at)
        if (is_listed(w, &w->v[*at])) {
            page.v[page.n] = w->v[*at];
            page.v[page.n++].key = act_strdup(w->v[*at].key);
        }
    assert_ok(sync_feed(s, side, &page, *at == w->n, &err), err);
}

static bool takes_by_filter(void *filter, const char *rel, bool is_folder)
{
    return filter_takes(filter, rel, is_folder);
}

static bool equal(const struct store_entry *a, const struct store_entry *b)
{
    return a->kind == b->kind && a->size == b->size && a->mtime_ns == b->mtime_ns && a->mode == b->mode;
}

/* One line of the plan, checked against what both sides were, and done to the model. */
static void sync_test_apply(const struct sync_item *item, const struct world *from, const struct world *before,
                            struct world *to, struct filter *filter)
{
    const struct store_entry *source = sync_test_find(from, item->rel), *old = sync_test_find(before, item->rel);
    bool is_folder = act_ends_with(item->rel, "/");

    assert_true(filter_takes(filter, item->rel, is_folder));
    if (item->action == SYNC_EXTRA) {
        assert_null(source);
        assert_false(is_folder && has_below(from, item->rel));
        assert_true(equal(old, &item->to));
        sync_test_drop(to, item->rel);
        return;
    }
    assert_non_null(source);
    assert_true(equal(source, &item->from));
    if (item->to.key)
        assert_true(equal(old, &item->to));
    if (item->action == SYNC_SAME) {
        assert_true((old && equal(source, old)) || (is_folder && has_below(before, item->rel)));
        return;
    }
    assert_int_equal(item->action, SYNC_COPY);
    assert_false(old && is_listed(before, old) && equal(source, old));
    sync_test_set(to, item->rel, source);
}

static size_t sync_test_carry_out(const struct world *from, struct world *to, bool extras, struct filter *filter,
                                  unsigned *seed)
{
    struct sync *s = sync_new(&(struct sync_options){
        .from_prefix = "", .to_prefix = "", .extras = extras, .takes = takes_by_filter, .arg = filter});
    struct world before = {.n = 0};
    size_t at[2] = {0}, changes = 0;
    struct sync_item item;

    copy_world(&before, to);
    while (!sync_finished(s)) {
        if (sync_wants(s, SYNC_FROM))
            feed_some(s, SYNC_FROM, from, &at[SYNC_FROM], seed);
        if (sync_wants(s, SYNC_TO))
            feed_some(s, SYNC_TO, &before, &at[SYNC_TO], seed);
        while (sync_next(s, &item)) {
            sync_test_apply(&item, from, &before, to, filter);
            changes += item.action != SYNC_SAME;
            sync_item_release(&item);
        }
    }
    sync_free(s);
    release_world(&before);
    return changes;
}

/* Whether all that a lists and takes part is at b, and the same. */
static bool is_within(const struct world *a, const struct world *b, struct filter *filter)
{
    for (size_t i = 0; i < a->n; i++) {
        const struct store_entry *e = &a->v[i], *other = sync_test_find(b, e->key);
        if (!is_listed(a, e) || !filter_takes(filter, e->key, e->kind == STORE_FOLDER))
            continue;
        if (e->kind == STORE_FOLDER && has_below(b, e->key))
            continue;
        if (!other || !equal(e, other))
            return false;
    }
    return true;
}

/* Objects that the filter leaves out are at the destination as they were. */
static void assert_left_alone(const struct world *before, const struct world *after, struct filter *filter)
{
    for (int way = 0; way < 2; way++) {
        const struct world *a = way ? after : before, *b = way ? before : after;
        for (size_t i = 0; i < a->n; i++) {
            const struct store_entry *e = &a->v[i], *other = sync_test_find(b, e->key);
            if (is_listed(b, e) && !filter_takes(filter, e->key, e->kind == STORE_FOLDER))
                assert_true(other && equal(e, other));
        }
    }
}

static struct filter *random_filter(unsigned *seed)
{
    static const char *const patterns[] = {"tmp", "*.o", "/a/", "b/a", "a-", "!a/b", "**/a/*", "b/"};
    struct act_strv excludes = {0}, includes = {0};
    struct filter_options options = {.excludes = &excludes, .includes = &includes};
    struct filter *filter;

    for (int i = rand_r(seed) % 3; i > 0; i--)
        act_strv_push(&excludes, patterns[rand_r(seed) % 8]);
    if (rand_r(seed) % 4 == 0)
        act_strv_push(&includes, rand_r(seed) % 2 ? "a" : "b");
    assert_ok(filter_new(&options, &filter, &err), err);
    act_strv_release(&excludes);
    act_strv_release(&includes);
    return filter;
}

TEST(plans_make_both_sides_equal)
{
    enum { ROUNDS = 1000 };
    unsigned seed = 5;

    for (int round = 0; round < ROUNDS; round++) {
        struct world from = {.n = 0}, to = {.n = 0}, before = {.n = 0};
        struct filter *filter = random_filter(&seed);
        bool extras = round % 2;
        random_edits(&from, rand_r(&seed) % 60, &seed);
        copy_world(&to, &from);
        random_edits(&from, rand_r(&seed) % 20, &seed);
        random_edits(&to, rand_r(&seed) % 20, &seed);
        copy_world(&before, &to);

        sync_test_carry_out(&from, &to, extras, filter, &seed);
        assert_true(is_within(&from, &to, filter));
        assert_true(!extras || is_within(&to, &from, filter));
        assert_left_alone(&before, &to, filter);
        size_t again = sync_test_carry_out(&from, &to, extras, filter, &seed);
        if (again != 0)
            fail_msg("round %d: the second plan has %zu changes", round, again);
        filter_free(filter);
        release_world(&from);
        release_world(&to);
        release_world(&before);
    }
}

TEST_MAIN(NULL, NULL)
