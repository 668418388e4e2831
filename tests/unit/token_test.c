/* The responses of token endpoints, az and services; clouds; when tokens are renewed; the SAS of a login; the cache. */
#include "unit/test.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "auth/auth.h"
#include "auth/token_internal.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/path.h"
#include "codec/json.h"

#define NOW 1777638896 /* 2026-05-01T12:34:56Z */

static json_t *token_test_parse(const char *text)
{
    json_t *value = NULL;

    assert_ok(codec_json_parse(text, strlen(text), "test", &value, &err), err);
    return value;
}

static char *base64url(const char *text)
{
    char *encoded = act_base64_encode(text, strlen(text));

    for (char *c = encoded; *c; c++)
        *c = (char)(*c == '+' ? '-' : *c == '/' ? '_' : *c);
    encoded[strcspn(encoded, "=")] = '\0';
    return encoded;
}

/* A token with these claims. New string. */
static char *token_with(const char *claims)
{
    ACT_AUTOFREE char *head = base64url("{\"alg\":\"none\"}");
    ACT_AUTOFREE char *body = base64url(claims);

    return act_sprintf("%s.%s.c2ln", head, body);
}

/* ---- answers ---- */

TEST(numbers)
{
    static const struct {
        const char *json;
        int64_t wanted;
    } rows[] = {
        {"[1506484173]", 1506484173},
        {"[\"1506484173\"]", 1506484173},
        {"[0]", 0},
        {"[3599.5]", 3599},
        {"[-1]", -1},
        {"[\"-1\"]", -1},
        {"[\"\"]", -1},
        {"[\"12x\"]", -1},
        {"[null]", -1},
        {"[true]", -1},
        {"[[1]]", -1},
        {"[1e300]", -1},
        {"[\" 1\"]", -1},
        {"[\"99999999999999999999\"]", -1},
    };

    for (size_t i = 0; i < COUNT(rows); i++) {
        CODEC_AUTOJSON json_t *value = token_test_parse(rows[i].json);
        if (token_number(json_array_get(value, 0)) != rows[i].wanted)
            fail_msg("%s gives %lld", rows[i].json, (long long)token_number(json_array_get(value, 0)));
    }
    assert_int_equal(token_number(NULL), -1);
}

TEST(local_times)
{
    static const struct {
        const char *zone, *text;
        int64_t wanted;
    } rows[] = {
        {"UTC", "2026-05-01 12:34:56.000000", NOW},
        {"UTC", "2026-05-01 12:34:56", NOW},
        {"Asia/Kolkata", "2026-05-01 18:04:56.123456", NOW},
        {"America/New_York", "2026-05-01 08:34:56.000000", NOW}, /* summer time */
        {"America/New_York", "2026-01-01 07:00:00.000000", 1767268800},
        {"UTC", "2026-05-01T12:34:56Z", -1},
        {"UTC", "2026-05-01 12:34:56Z", -1},
        {"UTC", "", -1},
        {"UTC", "tomorrow", -1},
    };

    for (size_t i = 0; i < COUNT(rows); i++) {
        setenv("TZ", rows[i].zone, 1);
        tzset();
        if (token_local_time(rows[i].text) != rows[i].wanted)
            fail_msg("'%s' in %s gives %lld", rows[i].text, rows[i].zone, (long long)token_local_time(rows[i].text));
    }
    unsetenv("TZ");
    tzset();
}

TEST(tokens_in_answers)
{
    ACT_AUTOFREE char *with_claim = token_with("{\"exp\":1777639896}");
    ACT_AUTOFREE char *own = act_sprintf("{\"access_token\":\"%s\"}", with_claim);
    ACT_AUTOFREE char *hour = token_with("{\"iat\":1777642496,\"exp\":1777646096}"); /* begins in an hour */
    ACT_AUTOFREE char *early = act_sprintf("{\"accessToken\":\"%s\",\"expires_on\":1777646096}", hour);
    enum { THREE_HOURS = 3 * 3600 };
    const struct {
        const char *json;
        int64_t expires_s; /* 0: there is none */
        int64_t ahead_s;
    } rows[] = {
        {early, NOW + 3600, 0},
        {own, NOW + 1000 + THREE_HOURS, -THREE_HOURS},
        {own, 0, THREE_HOURS},
        {"{\"access_token\":\"t\",\"expires_on\":1777653296,\"expires_in\":1}", NOW + 3600, THREE_HOURS},
        {"{\"access_token\":\"t\",\"expires_on\":1777631696}", NOW + 3600, -THREE_HOURS},
        {"{\"access_token\":\"t\",\"expires_in\":3600}", NOW + 3600, -THREE_HOURS},
        {"{\"access_token\":\"t\",\"expires_on\":\"5/1/2026 1:34:56 PM +00:00\",\"expires_in\":\"3600\"}", NOW + 3600,
         THREE_HOURS},
        {"{\"access_token\":\"t\",\"expires_in\":3599}", NOW + 3599, 0},
        {"{\"access_token\":\"t\",\"expires_in\":\"3599\"}", NOW + 3599, 0},
        {"{\"access_token\":\"t\",\"expires_on\":\"1777642496\",\"expires_in\":\"5\"}", NOW + 3600, 0},
        {"{\"access_token\":\"t\",\"expires_on\":\"5/1/2026 1:34:56 PM +00:00\",\"expires_in\":\"3600\"}", NOW + 3600,
         0},
        {"{\"accessToken\":\"t\",\"expires_on\":1777642496,\"expiresOn\":\"1999-01-01 00:00:00.0\"}", NOW + 3600, 0},
        {own, NOW + 1000, 0},
        {"{\"access_token\":\"t\",\"expires_in\":0}", 0, 0},
        {"{\"access_token\":\"t\",\"expires_on\":5}", 0, 0},
        {"{\"access_token\":\"t\"}", 0, 0},
        {"{\"access_token\":\"\",\"expires_in\":3599}", 0, 0},
        {"{\"access_token\":\"a\\r\\nHost: x\",\"expires_in\":3599}", 0, 0},
        {"{\"access_token\":7,\"expires_in\":3599}", 0, 0},
        {"{\"error\":\"x\"}", 0, 0},
        {"[]", 0, 0},
    };

    for (size_t i = 0; i < COUNT(rows); i++) {
        CODEC_AUTOJSON json_t *answer = token_test_parse(rows[i].json);
        struct token token = {0};
        bool found = token_take(answer, &token_secret, NOW, rows[i].ahead_s, &token, &err) == 0;
        if (found != (rows[i].expires_s != 0) || token.expires_s != rows[i].expires_s)
            fail_msg("%s gives %d, %lld", rows[i].json, found, (long long)token.expires_s);
        token_release(&token);
    }
}

TEST(renewal)
{
    assert_int_equal(token_refresh_time(0, 3600, false), 3300);
    assert_int_equal(token_refresh_time(0, 86400, false), 86100);
    assert_int_equal(token_refresh_time(0, 86400, true), 43200);
    assert_int_equal(token_refresh_time(0, 7200, true), 6900);
    assert_int_equal(token_refresh_time(100, 500, true), 300); /* used for half of its life at least */
}

TEST(metadata_service_is_tried_again)
{
    static const int passing[] = {404, 408, 429, 500, 503}, final[] = {200, 400, 401, 403};

    for (size_t i = 0; i < COUNT(passing); i++) {
        assert_int_equal(token_imds_delay_ms(passing[i], 1), 1000);
        assert_int_equal(token_imds_delay_ms(passing[i], 2), 2000);
        assert_int_equal(token_imds_delay_ms(passing[i], 3), -1);
    }
    for (size_t i = 0; i < COUNT(final); i++)
        assert_int_equal(token_imds_delay_ms(final[i], 1), -1);
    assert_int_equal(token_imds_delay_ms(410, 6), 10000);
    assert_int_equal(token_imds_delay_ms(410, 7), -1);
}

TEST(refusals)
{
    static const struct {
        int status;
        const char *body, *wanted;
        enum act_code code;
    } rows[] = {
        {401,
         "{\"error\":\"invalid_client\",\"error_description\":\"AADSTS7000215: Invalid.\\r\\nTrace ID: 1\","
         "\"correlation_id\":\"c0\"}",
         "no: HTTP 401 invalid_client: AADSTS7000215: Invalid. (correlation id c0)", ACT_DENIED},
        {500, "{\"message\":\"busy\",\"correlationId\":\"c1\"}", "no: HTTP 500: busy (correlation id c1)",
         ACT_TEMPORARY},
        {400, "<html>", "no: HTTP 400", ACT_DENIED},
        {400, "", "no: HTTP 400", ACT_DENIED},
        {429, "[]", "no: HTTP 429", ACT_TEMPORARY},
        {400, "{\"error\":{\"code\":1}}", "no: HTTP 400", ACT_DENIED},
        {400, "{\"error\":\"x\",\"error_description\":\"got eyJhbGciOiJub25lIn0.eyJhIjoxfQ.c2ln here\"}",
         "no: HTTP 400 x: got REDACTED here", ACT_DENIED},
    };

    for (size_t i = 0; i < COUNT(rows); i++) {
        struct http_call call = {.status = rows[i].status};
        act_buf_adds(&call.body_text, rows[i].body);
        token_describe_response(&call, "no", &err);
        assert_string_equal(act_error_text(&err), rows[i].wanted);
        assert_int_equal(err.code, rows[i].code);
        act_buf_release(&call.body_text);
    }
}

/* ---- claims and challenges ---- */

TEST(identities)
{
    ACT_AUTOFREE char *user = token_with("{\"upn\":\"ann@contoso.com\",\"oid\":\"o\",\"tid\":\"t\",\"exp\":5,"
                                         "\"aud\":\"https://storage.azure.com\"}");
    ACT_AUTOFREE char *app = token_with("{\"azp\":\"a\",\"sub\":\"s\",\"upn\":3}");
    ACT_AUTOFREE char *array = token_with("[1]");
    const char *const none[] = {"", "x", "a.b", "a.b.c", "..", "a.!!!!.c", array};
    struct token_identity who;

    assert_true(token_read_identity(user, &who));
    assert_string_equal(who.name, "ann@contoso.com");
    assert_string_equal(who.object_id, "o");
    assert_string_equal(who.tenant, "t");
    assert_string_equal(who.audience, "https://storage.azure.com");
    assert_int_equal(who.expires_s, 5);
    assert_null(who.app_id);
    token_identity_release(&who);
    assert_true(token_read_identity(app, &who));
    assert_string_equal(who.app_id, "a");
    assert_string_equal(who.object_id, "s");
    assert_null(who.name);
    token_identity_release(&who);
    for (size_t i = 0; i < COUNT(none); i++)
        assert_false(token_read_identity(none[i], &who));
}

TEST(challenges)
{
    static const struct {
        const char *header, *tenant, *claims;
    } rows[] = {
        {"Bearer authorization_uri=https://login.microsoftonline.com/72f988bf/oauth2/authorize "
         "resource_id=https://storage.azure.com",
         "72f988bf", NULL},
        {"Bearer realm=\"\", authorization_uri=\"https://login.microsoftonline.com/contoso.com/oauth2/authorize\", "
         "error=\"insufficient_claims\", claims=\"eyJhIjoxfQ==\"",
         "contoso.com", "eyJhIjoxfQ=="},
        {"Bearer claims=\"x'; rm -rf /; '\"", NULL, NULL},
        {"Bearer claims=\"\"", NULL, NULL},
        {"Bearer authorization_uri=https://h/a%2F..%2Fb/oauth2", NULL, NULL},
        {"Bearer authorization_uri=https://h", NULL, NULL},
        {"Bearer authorization_uri=\"https://h/common/oauth2/authorize\"", NULL, NULL},
        {"Bearer authorization_uri=\"https://h/Organizations\"", NULL, NULL},
        {"Bearer authorization_uri=\"https://login.microsoftonline.com/72f988bf\", error=\"invalid_token\"", "72f988bf",
         NULL},
        {"Bearer authorization=\"https://login.windows.net/72f988bf\", resource=\"https://vault.azure.net\"",
         "72f988bf", NULL}, /* of a key vault */
        {"Bearer xclaims=eyJ", NULL, NULL},
        {"Basic realm=\"x\"", NULL, NULL},
        {NULL, NULL, NULL},
    };
    struct token_challenge challenge;

    for (size_t i = 0; i < COUNT(rows); i++) {
        token_read_challenge(rows[i].header, &challenge);
        if (!act_streq(challenge.tenant, rows[i].tenant) || !act_streq(challenge.claims, rows[i].claims))
            fail_msg("'%s' gives %s, %s", rows[i].header, challenge.tenant, challenge.claims);
        token_challenge_release(&challenge);
    }
    token_read_challenge(rows[1].header, &challenge);
    struct token_want want = {.scope = AUTH_STORAGE_SCOPE};
    ACT_AUTOFREE char *command = token_claims_command(&challenge, &want);
    assert_string_equal(command, "az login --claims-challenge eyJhIjoxfQ== --scope https://storage.azure.com/.default "
                                 "--tenant contoso.com");
    token_challenge_release(&challenge);
}

TEST(tenants)
{
    static const char *const good[] = {"72f988bf-86f1-41af-91ab-2d7cd011db47", "contoso.onmicrosoft.com", "common"};
    static const char *const bad[] = {"", "a/b", "a?b", "..", ".a", "-a", "a b", "a\n", "a%2f"};

    for (size_t i = 0; i < COUNT(good); i++)
        assert_true(token_tenant_is_valid(good[i]));
    for (size_t i = 0; i < COUNT(bad); i++)
        assert_false(token_tenant_is_valid(bad[i]));
}

/* ---- clouds ---- */

TEST(clouds)
{
    static const struct {
        const char *endpoint, *cloud, *authority, *wanted;
    } rows[] = {
        {NULL, NULL, NULL, "AzureCloud"},
        {"https://a.blob.core.windows.net", NULL, NULL, "AzureCloud"},
        {"https://a.blob.core.usgovcloudapi.net", NULL, NULL, "AzureUSGovernment"},
        {"https://a.blob.core.chinacloudapi.cn:443/x", NULL, NULL, "AzureChinaCloud"},
        {"https://a.blob.core.chinacloudapi.cn", "AzureUSGovernment", NULL, NULL},
        {"https://a.blob.core.chinacloudapi.cn", "AzureChinaCloud", NULL, "AzureChinaCloud"},
        {"https://management.azure.com", NULL, NULL, "AzureCloud"},
        {"https://management.usgovcloudapi.net/", NULL, NULL, "AzureUSGovernment"},
        {"https://management.chinacloudapi.cn", NULL, NULL, "AzureChinaCloud"},
        {"https://MANAGEMENT.ChinaCloudAPI.cn:443", NULL, NULL, "AzureChinaCloud"},
        {"https://management.chinacloudapi.cn", NULL, "https://login.microsoftonline.com", "AzureChinaCloud"},
        {"https://management.chinacloudapi.cn", "AzureCloud", NULL, NULL},
        {"https://management.azure.com", "AzureChinaCloud", NULL, NULL},
        {"https://chinaeast.api.ml.azure.cn", NULL, NULL, "AzureChinaCloud"},
        {"https://usgovvirginia.api.ml.azure.us", NULL, NULL, "AzureUSGovernment"},
        {"https://eastus.api.azureml.ms", "AzureUSGovernment", NULL, NULL},
        {"https://management.chinacloudapi.cn.evil.example", NULL, NULL, "AzureCloud"},
        {"https://evil.example/?management.chinacloudapi.cn", NULL, NULL, "AzureCloud"},
        {"https://arm.stack.example", "AzureChinaCloud", NULL, "AzureChinaCloud"},
        {"https://evilcore.chinacloudapi.cn", NULL, NULL, "AzureCloud"},
        {"http://127.0.0.1:10000/a", "azureusgovernmentcloud", NULL, "AzureUSGovernment"},
        {NULL, NULL, "login.chinacloudapi.cn/", "AzureChinaCloud"},
        {NULL, NULL, "https://login.example", "AzureCloud"},
        {NULL, "Mars", NULL, NULL},
    };
    static const struct {
        const char *set, *wanted;
    } authorities[] = {
        {NULL, "https://login.microsoftonline.us"},
        {"login.example/", "https://login.example"},
        {"http://127.0.0.1:80//", "http://127.0.0.1:80"},
        {"http://login.example", NULL},
        {"http://169.254.169.254", NULL},
        {"https://login.microsoftonline.us/", "https://login.microsoftonline.us"},
        {"login.microsoftonline.com", NULL},
    };
    const struct auth_cloud *cloud = NULL;

    for (size_t i = 0; i < COUNT(rows); i++) {
        rows[i].cloud ? setenv("AZURE_CLOUD", rows[i].cloud, 1) : unsetenv("AZURE_CLOUD");
        rows[i].authority ? setenv("AZURE_AUTHORITY_HOST", rows[i].authority, 1) : unsetenv("AZURE_AUTHORITY_HOST");
        int rc = auth_cloud_find(rows[i].endpoint, &cloud, &err);
        if (rc != (rows[i].wanted ? 0 : -ACT_CONFIG))
            fail_msg("row %zu: %d", i, rc);
        if (rc == 0)
            assert_string_equal(cloud->name, rows[i].wanted);
    }
    unsetenv("AZURE_CLOUD");
    unsetenv("AZURE_AUTHORITY_HOST");
    assert_ok(auth_cloud_find("https://a.blob.core.usgovcloudapi.net", &cloud, &err), err);
    for (size_t i = 0; i < COUNT(authorities); i++) {
        char *authority = NULL;
        if (authorities[i].set)
            setenv("AZURE_AUTHORITY_HOST", authorities[i].set, 1);
        int rc = auth_cloud_authority(cloud, &authority, &err);
        assert_int_equal(rc, authorities[i].wanted ? 0 : -ACT_CONFIG);
        if (rc == 0)
            assert_string_equal(authority, authorities[i].wanted);
        free(authority);
    }
    unsetenv("AZURE_AUTHORITY_HOST");
}

TEST(urls_of_a_cloud)
{
    static const struct {
        const char *url;
        int rc;
    } rows[] = {{NULL, 0},
                {"https://usgovvirginia.api.ml.azure.us", 0},
                {"https://history.private.example", 0},
                {"http://127.0.0.1:80", 0},
                {"https://eastus.api.azureml.ms/history", -ACT_CONFIG},
                {"https://management.azure.com", -ACT_CONFIG}};
    const struct auth_cloud *cloud;

    assert_ok(auth_cloud_find("https://management.usgovcloudapi.net", &cloud, &err), err);
    for (size_t i = 0; i < COUNT(rows); i++)
        assert_int_equal(auth_cloud_check(cloud, rows[i].url, &err), rows[i].rc);
    assert_string_equal(act_error_text(&err),
                        "'https://management.azure.com' is in AzureCloud, but the login is for AzureUSGovernment, "
                        "whose tokens stay there");
}

/* ---- the SAS of a login: the value is HMAC-SHA-256 of the 24 lines, computed with Python's hmac ---- */

TEST(delegation_sas)
{
    struct auth_delegation key = {.object_id = act_strdup("11111111-2222-3333-4444-555555555555"),
                                  .tenant = act_strdup("72f988bf-86f1-41af-91ab-2d7cd011db47"),
                                  .start = act_strdup("2026-11-20T00:00:00Z"),
                                  .expiry = act_strdup("2026-11-25T00:00:00Z"),
                                  .service = act_strdup("b"),
                                  .version = act_strdup("2025-11-05")};

    key.key = act_base64_decode("S0YbZ/Jno7zt2WTqhRbrpPAEBFsj7CXS9Wpci79FQUw=", &key.key_len);
    const struct auth_sas want = {.container = "oa1", .name = "x.txt", .permissions = "r", .expiry_s = 1795478400};
    ACT_AUTOFREE char *sas = auth_delegation_sas(&key, "devstoreaccount1", &want);
    assert_string_equal(
        sas, "sv=2021-12-02&se=2026-11-24T00%3A00%3A00Z&sr=b&sp=r&skoid=11111111-2222-3333-4444-"
             "555555555555&sktid=72f988bf-86f1-41af-91ab-2d7cd011db47&skt=2026-11-20T00%3A00%3A00Z&ske="
             "2026-11-25T00%3A00%3A00Z&sks=b&skv=2025-11-05&sig=hZfGySj%2FfJn4zazQ6ky4fZFwB7tYogGAMRx6mn%2BSNyM%3D");
    auth_delegation_release(&key);
}

/* ---- the cache ---- */

static char home[] = "/tmp/act-token-XXXXXX";

static int token_test_make_home(void **state)
{
    (void)state;
    assert_non_null(mkdtemp(home));
    setenv("ACT_HOME", home, 1);
    return 0;
}

static int token_test_remove_home(void **state)
{
    (void)state;
    return act_remove_tree(home, &err);
}

TEST(cached_tokens)
{
    ACT_AUTO(token) token = {.text = act_strdup("t1"), .expires_s = act_now_unix_s() + 1000, .refresh_s = 5};
    ACT_AUTO(token) ended = {.text = act_strdup("t0"), .expires_s = act_now_unix_s() - 1, .refresh_s = 5};
    ACT_AUTO(token) found = {0};

    assert_false(token_cache_get("k", &found));
    assert_ok(token_cache_put("k", &token, &err), err);
    assert_ok(token_cache_put("other", &ended, &err), err);
    assert_true(token_cache_get("k", &found));
    assert_string_equal(found.text, "t1");
    assert_int_equal(found.expires_s, token.expires_s);
    assert_int_equal(found.refresh_s, 5);
    assert_false(token_cache_get("other", &found));
    token_cache_drop("k", "another token");
    assert_true(token_cache_get("k", &found));
    token_cache_drop("k", "t1");
    assert_false(token_cache_get("k", &found));
}

TEST(cached_logins)
{
    struct token_grant grant = {.tenant = act_strdup("t"), .client = act_strdup("c"), .refresh_token = act_strdup("r")};
    ACT_AUTO(token) token = {.text = act_strdup("t1"), .expires_s = act_now_unix_s() + 1000};
    struct token_grant found = {0};
    ACT_AUTO(token) cached = {0};
    bool had = false;

    assert_false(token_cache_get_grant("https://a", &found));
    assert_ok(token_cache_put("device login|https://a|x", &token, &err), err);
    assert_ok(token_cache_put("device login|https://b|x", &token, &err), err);
    assert_ok(token_cache_put_grant("https://a", &grant, false, &err), err);
    assert_true(token_cache_get("device login|https://a|x", &cached));
    assert_ok(token_cache_put_grant("https://a", &grant, true, &err), err);
    assert_false(token_cache_get("device login|https://a|x", &cached));
    assert_true(token_cache_get("device login|https://b|x", &cached));
    assert_true(token_cache_get_grant("https://a", &found));
    assert_string_equal(found.refresh_token, "r");
    assert_false(token_cache_get_grant("https://b", &found));
    assert_ok(token_forget_all(false, &had, &err), err);
    assert_true(had);
    assert_false(token_cache_get_grant("https://a", &found));
    assert_ok(token_forget_all(false, &had, &err), err);
    assert_false(had);
    token_grant_release(&grant);
    token_grant_release(&found);
}

TEST(one_asks_at_a_time)
{
    int first = token_cache_lock("k", &err), other = token_cache_lock("another", &err);

    assert_true(first >= 0 && other >= 0);
    assert_int_equal(token_cache_lock("k", &err), -ACT_TEMPORARY);
    close(first);
    int again = token_cache_lock("k", &err);
    assert_true(again >= 0);
    close(again);
    close(other);
}

TEST_MAIN(token_test_make_home, token_test_remove_home)
