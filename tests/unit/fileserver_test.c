/* File servers: what may be asked for, what is sent, what is read of one. */
#include "unit/test.h"

#include <string.h>

#include "codec/json.h"
#include "flow/cluster/fileserver_internal.h"

#define GIB    (UINT64_C(1) << 30)
#define SUBNET "/subscriptions/s/x/subnets/nodes"

TEST(check_table)
{
    static const struct {
        const char *name;
        uint64_t bytes;
        const char *redundancy, *says; /* NULL: it is right */
    } rows[] = {
        {"abc", 0, NULL, NULL},
        {"a23456789012345678901234", 100 * GIB, "lrs", NULL},
        {"teamdata", 102400 * GIB, "ZRS", NULL},
        {"ab", 0, NULL, "cannot be the name"},
        {"a234567890123456789012345", 0, NULL, "cannot be the name"},
        {"team.data", 0, NULL, "cannot be the name"},
        {"t\xc3\xa4mdata", 0, NULL, "cannot be the name"},
        {"teamdata", 99 * GIB, NULL, "cannot hold 99.0 GiB"},
        {"teamdata", 102401 * GIB, NULL, "cannot hold"},
        {"teamdata", 100 * GIB + 1, NULL, "whole GiB"},
        {"teamdata", UINT64_MAX, NULL, "cannot hold"},
        {"teamdata", 0, "grs", "not 'grs'"},
        {"teamdata", 0, "", "not ''"},
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct act_error e = {0};
        struct flow_new_fileserver wanted = {
            .name = rows[i].name, .bytes = rows[i].bytes, .redundancy = rows[i].redundancy, .subnet = SUBNET};
        int rc = flow_fileserver_check(&wanted, &e);
        assert_int_equal(rc, rows[i].says ? -ACT_USAGE : 0);
        if (rows[i].says)
            assert_non_null(strstr(act_error_text(&e), rows[i].says));
    }
}

TEST(a_network_is_needed)
{
    struct act_error e = {0};

    assert_int_equal(flow_fileserver_check(&(struct flow_new_fileserver){.name = "teamdata"}, &e), -ACT_USAGE);
    assert_non_null(strstr(act_error_text(&e), "--subnet"));
}

static void fileserver_test_assert_json(json_t *found, const char *wanted)
{
    ACT_AUTOFREE char *text = json_dumps(found, JSON_COMPACT | JSON_SORT_KEYS);

    assert_string_equal(text, wanted);
    json_decref(found);
}

TEST(bodies)
{
    CODEC_AUTOJSON json_t *tags = json_pack("{s:s}", "team", "vision");
    const struct flow_new_fileserver wanted = {.name = "teamdata", .subnet = SUBNET, .redundancy = "zrs", .tags = tags};

    fileserver_test_assert_json(
        fileserver_account_json(&wanted, "eastus"),
        "{\"kind\":\"FileStorage\",\"location\":\"eastus\",\"properties\":{\"allowBlobPublicAccess\":false,"
        "\"minimumTlsVersion\":\"TLS1_2\",\"networkAcls\":{\"defaultAction\":\"Deny\",\"virtualNetworkRules\":"
        "[{\"action\":\"Allow\",\"id\":\"" SUBNET "\"}]},\"supportsHttpsTrafficOnly\":false},\"sku\":{\"name\":"
        "\"Premium_ZRS\"},\"tags\":{\"act:fileserver\":\"data\",\"team\":\"vision\"}}");
    assert_int_equal(json_object_size(tags), 1); /* the caller's are as they were */
    fileserver_test_assert_json(fileserver_share_json(100),
                                "{\"properties\":{\"enabledProtocols\":\"NFS\",\"rootSquash\":"
                                "\"NoRootSquash\",\"shareQuota\":100}}");
}

TEST(reads_what_little_there_is)
{
    static const struct auth_cloud cloud = {.suffix = "core.windows.net"};
    const struct flow_fileservers servers = {.cloud = &cloud};
    CODEC_AUTOJSON json_t *bare = json_pack("{s:s}", "name", "old");
    CODEC_AUTOJSON json_t *full =
        json_pack("{s:s, s:s, s:{s:s}, s:{s:{s:s, s:[{s:s}]}, s:{s:s}}}", "name", "old", "id",
                  "/subscriptions/s/resourcegroups/My(rg)/providers/x/y/old", "tags", "act:fileserver", "data",
                  "properties", "networkAcls", "defaultAction", "Deny", "virtualNetworkRules", "id", SUBNET,
                  "primaryEndpoints", "file", "https://old.z3.file.storage.azure.net/");

    ACT_AUTO(flow_fileserver) one = fileserver_read(&servers, bare);
    assert_string_equal(one.host, "old.file.core.windows.net");
    assert_null(one.group);
    assert_true(one.is_open);
    assert_false(one.is_ours);
    ACT_AUTO(flow_fileserver) other = fileserver_read(&servers, full);
    assert_string_equal(other.host, "old.z3.file.storage.azure.net");
    assert_string_equal(other.group, "My(rg)");
    assert_string_equal(flow_fileserver_short(other.subnets.v[0]), "nodes");
    assert_true(other.is_ours && !other.is_open);
    struct flow_share share = fileserver_read_share(bare);
    assert_false(share.is_nfs);
    assert_int_equal(share.gib, -1);
    free(share.name);
}

TEST(a_quota_that_cannot_be_is_none)
{
    for (int64_t gib = 1; gib > 0 && gib < INT64_MAX / 8; gib *= 8) {
        CODEC_AUTOJSON json_t *json = json_pack("{s:{s:I}}", "properties", "shareQuota", (json_int_t)gib);
        struct flow_share share = fileserver_read_share(json);
        assert_int_equal(share.gib, gib <= 1 << 30 ? gib : -1);
        free(share.name);
    }
}

/* The command is there to be copied. */
TEST(only_names_become_words_of_a_command)
{
    static const struct {
        const char *host, *name, *share;
        bool mounts;
    } rows[] = {
        {"a.file.core.windows.net", "a", "data-1", true},
        {"a.file.core.windows.net", "a", "data; rm -r /", false},
        {"a.file.core.windows.net", "a", "data\nconfig_param:", false},
        {"a.file.core.windows.net", "a", "", false},
        {"a.file.core.windows.net", "..", "data", false},
        {"-oexec", "a", "data", false},
        {"$(id)", "a", "data", false},
        {NULL, "a", "data", false},
    };

    for (size_t i = 0; i < COUNT(rows); i++) {
        char host[64], name[64], share[64];
        snprintf(host, sizeof(host), "%s", rows[i].host ? rows[i].host : "");
        snprintf(name, sizeof(name), "%s", rows[i].name);
        snprintf(share, sizeof(share), "%s", rows[i].share);
        const struct flow_fileserver server = {.name = name, .host = rows[i].host ? host : NULL};
        assert_int_equal(flow_fileserver_mounts(&server, &(struct flow_share){.name = share, .is_nfs = true}),
                         rows[i].mounts);
        assert_false(flow_fileserver_mounts(&server, &(struct flow_share){.name = share}));
    }
}

TEST_MAIN(NULL, NULL)
