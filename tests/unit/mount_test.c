/* mount_test.c - what the tools that mount are told, and what is said to be left in the folder of a mount. */
#include "config/config.h"
#include "unit/temp_dir.h"
#include "unit/test.h"

#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/path.h"
#include "codec/json.h"
#include "flow/data/mount.h"
#include "platform/slurm/keys.h"
#include "run/run.h"

#define SAS "sv=2021-12-02&sr=c&sig=c2VjcmV0"

static struct flow_blob blob = {.account = (char[]){"acct"},
                                .container = (char[]){"cont"},
                                .endpoint = (char[]){"https://acct.blob.core.windows.net"},
                                .path = (char[]){"team/data"},
                                .sas = (char[]){SAS},
                                .cache_s = 7};

static struct mount_plan mount_test_make_plan(enum mounts_tool tool, bool read_only)
{
    return (struct mount_plan){.name = "data",
                               .blob = &blob,
                               .tool = tool,
                               .program = "/usr/bin/tool",
                               .read_only = read_only,
                               .dir = "/private",
                               .cache = "/private/cache",
                               .at = "/private/at"};
}

TEST(test_rclone_is_told_the_secret_by_a_descriptor)
{
    const struct mount_plan plan = mount_test_make_plan(MOUNTS_RCLONE, false);
    ACT_AUTO(act_strv) words = {0};

    mount_words(&plan, &words);
    assert_string_equal(words.v[1], "mount");
    assert_string_equal(words.v[2], "act:cont/team/data");
    assert_string_equal(words.v[3], "/private/at");
    assert_true(act_strv_has(&words, "--cache-dir=/private/cache"));
    assert_true(act_strv_has(&words, "--dir-cache-time=7s"));
    assert_true(act_strv_has(&words, "--vfs-cache-mode=writes"));
    for (size_t i = 0; i < words.n; i++)
        assert_null(strstr(words.v[i], "sig="));
    assert_true(act_strv_has(&words, "--config=/proc/self/fd/3"));
    ACT_AUTOFREE char *config = mount_config(&plan);
    assert_string_equal(config, "[act]\ntype = azureblob\nsas_url = https://acct.blob.core.windows.net/cont?" SAS "\n");
}

TEST(test_read_only)
{
    for (int tool = 0; tool < MOUNTS_TOOLS; tool++) {
        const struct mount_plan plan = mount_test_make_plan((enum mounts_tool)tool, true);
        ACT_AUTO(act_strv) words = {0};
        mount_words(&plan, &words);
        assert_true(act_strv_has(&words, "--read-only"));
        assert_false(act_strv_has(&words, "--vfs-cache-mode=writes"));
    }
}

TEST(test_blobfuse2_is_told_the_secret_in_a_file)
{
    const struct mount_plan plan = mount_test_make_plan(MOUNTS_BLOBFUSE2, false);
    ACT_AUTO(act_strv) words = {0};
    ACT_AUTOFREE char *text = mount_config(&plan);
    CODEC_AUTOJSON json_t *file = NULL;

    mount_words(&plan, &words);
    assert_true(act_strv_has(&words, "--config-file=/private/tool.yaml"));
    assert_true(act_strv_has(&words, "--foreground"));
    for (size_t i = 0; i < words.n; i++)
        assert_null(strstr(words.v[i], "sig="));
    assert_ok(codec_json_parse(text, strlen(text), "tool.yaml", &file, &err), err);
    const json_t *store = json_object_get(file, "azstorage");
    assert_string_equal(codec_json_str(store, "sas", ""), SAS);
    assert_string_equal(codec_json_str(store, "container", ""), "cont");
    assert_string_equal(codec_json_str(store, "subdirectory", ""), "team/data");
    assert_string_equal(codec_json_str(json_object_get(file, "file_cache"), "path", ""), "/private/cache");
    assert_string_equal(codec_json_str(json_object_get(file, "logging"), "file-path", ""), "/private/tool.txt");
}

static void mount_test_put(const char *name, const char *text)
{
    ACT_AUTOFREE char *path = act_path_join(dir, name);

    assert_ok(act_file_write_quickly(path, text, strlen(text), 0600, &err), err);
}

TEST(test_no_signature_is_shown)
{
    static char sas[] = "sv=1&sig=a%2Bb%2Fc%3D&sp=r";
    struct flow_blob signed_blob = {.sas = sas};
    const struct mount_plan plan = {.blob = &signed_blob};
    static const char *const said[] = {"a?sig=a%2Bb%2Fc%3D&sp=r", "a%2bb%2fc%3d",
                                       "a+b/c=", "x%252Bb a%252Bb%252Fc%253D"};

    for (size_t i = 0; i < sizeof(said) / sizeof(said[0]); i++) {
        ACT_AUTOFREE char *shown = mount_redact(&plan, said[i]);
        assert_non_null(strstr(shown, "REDACTED"));
        assert_null(strstr(shown, "a%2"));
        assert_null(strstr(shown, "b/c"));
    }
}

TEST(test_when_a_sas_ends)
{
    static char with_time[] = "sv=1&se=2026-12-25T07%3A47%3A43Z&sig=x", with_day[] = "se=2026-12-25",
                without[] = "si=p";

    assert_int_equal(flow_blob_ends_s(&(struct flow_blob){.sas = with_time}), 1798184863);
    assert_int_equal(flow_blob_ends_s(&(struct flow_blob){.sas = with_day}), 1798156800);
    assert_true(flow_blob_ends_s(&(struct flow_blob){.sas = without}) == INT64_MAX);
    assert_true(flow_blob_ends_s(&(struct flow_blob){0}) == INT64_MAX);
}

TEST(test_time_limits)
{
    static const struct {
        const char *text;
        int64_t limit_s;
    } rows[] = {{"90", 5400},    {"1:30", 90},        {"12:00:00", 43200},
                {"3-0", 259200}, {"3-01:30", 264600}, {"40-00:00:01", 3456001},
                {"unlimited", 0}};
    static const char *const endless[] = {"99999999999999999999", "9223372036854775807-0",
                                          "1-9223372036854775807:99:99"};
    struct slurm_keys keys = {0};
    struct config config = {
        .platform = (char[]){"slurm"}, .parts = &(struct config_part_values){&slurm_keys_part, &keys}, .n_parts = 1};

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        ACT_AUTOFREE char *text = act_strdup(rows[i].text);
        keys.time = text;
        assert_int_equal(flow_run_limit_s(&config), rows[i].limit_s);
        assert_int_equal(flow_key_life_s(&config), 30 * 24 * 3600 + rows[i].limit_s);
    }
    for (size_t i = 0; i < sizeof(endless) / sizeof(endless[0]); i++) { /* longer than any run, and still a number */
        ACT_AUTOFREE char *text = act_strdup(endless[i]);
        keys.time = text;
        assert_true(flow_run_limit_s(&config) > INT64_C(366) * 24 * 3600);
        assert_int_equal(flow_key_life_s(&config), (30 + 366) * 24 * 3600);
    }
}

TEST(test_what_may_end_too_early)
{
    static const struct {
        const char *platform, *time, *mount;
        int64_t left_s;
        enum run_folder_mode mode;
        bool by_login;
        const char *outcome; /* the folders that are named, or why it is refused */
    } rows[] = {{"slurm", "3-0", NULL, 7 * 86400, RUN_FOLDER_RW_MOUNT, true, ""},
                {"slurm", "8-0", NULL, 7 * 86400, RUN_FOLDER_RW_MOUNT, true, "'data'"},
                {"slurm", "8-0", "blobfuse2", 7 * 86400, RUN_FOLDER_RO_MOUNT, true, "'data'"},
                {"slurm", "8-0", "rclone", 7 * 86400, RUN_FOLDER_RW_MOUNT, true, "a login opens its store for 7 days"},
                {"slurm", "8-0", "copy", 7 * 86400, RUN_FOLDER_RW_MOUNT, true, "a login opens its store for 7 days"},
                {"slurm", "8-0", "rclone", 7 * 86400, RUN_FOLDER_RW_MOUNT, false, "'data'"},
                {"slurm", "3-0", "rclone", 2 * 86400, RUN_FOLDER_RW_MOUNT, true, "'data'"},
                {"slurm", "8-0", NULL, 7 * 86400, RUN_FOLDER_UPLOAD, true, "a login opens its store for 7 days"},
                {"slurm", "8-0", NULL, 7 * 86400, RUN_FOLDER_DOWNLOAD, true, "'data'"},
                {"slurm", NULL, NULL, 7 * 86400, RUN_FOLDER_RW_MOUNT, true, "'data'"},
                {"slurm", NULL, NULL, 8 * 86400, RUN_FOLDER_RW_MOUNT, false, ""},
                {"slurm", NULL, NULL, 7 * 86400, RUN_FOLDER_DOWNLOAD, true, ""},
                {"slurm", NULL, NULL, -1, RUN_FOLDER_RW_MOUNT, false, "ended at"},
                {"local", NULL, "rclone", 7 * 86400, RUN_FOLDER_RW_MOUNT, true, "'data'"},
                {"local", NULL, "copy", 7 * 86400, RUN_FOLDER_RW_MOUNT, true, ""},
                {"local", NULL, NULL, 7 * 86400, RUN_FOLDER_UPLOAD, true, ""}};

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        ACT_AUTOFREE char *time = rows[i].time ? act_strdup(rows[i].time) : NULL;
        ACT_AUTOFREE char *mount = rows[i].mount ? act_strdup(rows[i].mount) : NULL;
        ACT_AUTOFREE char *platform = act_strdup(rows[i].platform);
        struct slurm_keys keys = {.time = time};
        struct config config = {.platform = platform,
                                .parts = &(struct config_part_values){&slurm_keys_part, &keys},
                                .n_parts = 1,
                                .mount = mount};
        char at[ACT_TIME_TEXT];
        struct flow_ends ends = {0};
        act_time_to_iso(act_now_unix_s() + rows[i].left_s, at);
        ACT_AUTOFREE char *sas = act_sprintf("se=%s&sig=x", at);
        struct flow_blob given = {.sas = sas, .by_login = rows[i].by_login};
        int rc = flow_check_access(&config, &given, "data", rows[i].mode, &ends, &err);
        const char *said = rc < 0 ? act_error_text(&err) : ends.names.data ? ends.names.data : "";
        assert_int_equal(rc, strchr(rows[i].outcome, ' ') ? -ACT_DENIED : 0);
        assert_true(strstr(said, rows[i].outcome) && (*rows[i].outcome || !*said));
        act_buf_release(&ends.names);
    }
}

TEST(test_what_is_left)
{
    ACT_AUTOFREE char *mount = act_path_join(dir, "sent");

    assert_int_equal(run_mount_unsent(mount), 0);
    assert_false(run_mount_holds(mount));
    mount_test_put("sent/cache/vfsMeta/act/cont/a", "{\"Size\": 1, \"Dirty\": false}");
    assert_int_equal(run_mount_unsent(mount), 0);
    mount_test_put("sent/cache/vfsMeta/act/cont/b", "{\"Size\": 1, \"Dirty\": true}");
    mount_test_put("sent/cache/vfsMeta/act/cont/c", "{\"Size\": "); /* it is being written */
    assert_int_equal(run_mount_unsent(mount), 2);
    assert_true(run_mount_holds(mount));
}

TEST(test_what_was_written_to_a_copy)
{
    ACT_AUTOFREE char *mount = act_path_join(dir, "copied");
    struct run_fetched fetched;

    assert_int_equal(run_fetched_read(mount, &fetched, &err), -ACT_NOT_FOUND);
    run_fetched_release(&fetched);
    mount_test_put("copied/copy/sub/b", "bb");
    mount_test_put("copied/copy/a\nb", "a");
    assert_ok(run_mount_note_fetched(mount, &err), err);
    assert_ok(run_fetched_read(mount, &fetched, &err), err);
    assert_int_equal(fetched.n, 3);
    for (size_t i = 0; i < fetched.n; i++) {
        ACT_AUTOFREE char *path = act_sprintf("%s/copy/%s", mount, fetched.paths[i]);
        struct stat st;
        assert_int_equal(stat(path, &st), 0);
        if (S_ISDIR(st.st_mode))
            continue;
        int64_t mtime_ns = act_timespec_ns(st.st_mtim);
        assert_true(run_fetched_has(&fetched, fetched.paths[i], (uint64_t)st.st_size, mtime_ns));
        assert_false(run_fetched_has(&fetched, fetched.paths[i], (uint64_t)st.st_size, mtime_ns + 1));
        assert_false(run_fetched_has(&fetched, fetched.paths[i], (uint64_t)st.st_size + 1, mtime_ns));
        assert_false(run_fetched_has(&fetched, "sub", (uint64_t)st.st_size, mtime_ns));
    }
    run_fetched_release(&fetched);
}

TEST(test_damaged_notes_are_mended)
{
    ACT_AUTOFREE char *cache = act_path_join(dir, "mend/cache");
    ACT_AUTOFREE char *mount = act_path_join(dir, "mend");
    ACT_AUTOFREE char *notes = act_path_join(cache, "vfsMeta/act/cont");
    ACT_AUTOFREE char *sparse = act_path_join(cache, "vfs/act/cont/sparse");
    static const char *const names[] = {"torn", "empty", "none"};

    assert_ok(mount_mend(cache, &err), err);
    mount_test_put("mend/cache/vfs/act/cont/sent", "sent");
    mount_test_put("mend/cache/vfsMeta/act/cont/sent", "{\"Size\": 4, \"Dirty\": false}");
    mount_test_put("mend/cache/vfs/act/cont/torn", "torn");
    mount_test_put("mend/cache/vfsMeta/act/cont/torn", "{\"Size\": 4, \"Di");
    mount_test_put("mend/cache/vfs/act/cont/empty", "");
    mount_test_put("mend/cache/vfsMeta/act/cont/empty", "");
    mount_test_put("mend/cache/vfs/act/cont/none", "none");
    assert_ok(mount_mend(cache, &err), err);
    assert_int_equal(run_mount_waiting(mount), 3);
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        ACT_AUTOFREE char *note = act_path_join(notes, names[i]);
        CODEC_AUTOJSON json_t *json = NULL;
        assert_ok(codec_json_read(note, 1 << 16, &json, &err), err);
        assert_true(json_is_true(json_object_get(json, "Dirty")));
        assert_int_equal(json_array_size(json_object_get(json, "Rs")), i == 1 ? 0 : 1);
        assert_int_equal(codec_json_int(json, "Size", -1), i == 1 ? 0 : 4);
    }
    mount_test_put("mend/cache/vfs/act/cont/sparse", "");
    assert_int_equal(truncate(sparse, 1 << 20), 0);
    assert_int_equal(mount_mend(cache, &err), -ACT_FAIL);
    assert_non_null(strstr(act_error_text(&err), "part of that file is missing"));
}

TEST(test_what_a_killed_blobfuse2_left)
{
    ACT_AUTOFREE char *mount = act_path_join(dir, "left");

    mount_test_put("left/read/sub/a", "was only read");
    assert_int_equal(run_mount_unsent(mount), 0);
    mount_test_put("left/cache/blobfuse2.1/sub/a", "perhaps not sent");
    mount_test_put("left/cache/blobfuse2.2/b", "likewise");
    assert_int_equal(run_mount_unsent(mount), 2);
    assert_int_equal(run_mount_waiting(mount), 0);
    assert_true(run_mount_holds(mount));
}

TEST(test_what_was_written_beside_the_mount)
{
    ACT_AUTOFREE char *mount = act_path_join(dir, "beside");

    mount_test_put("beside/at/lost.txt", "x");
    assert_int_equal(run_mount_unsent(mount), 0);
    assert_true(run_mount_holds(mount));
}

TEST_MAIN(make_dir, remove_dir)
