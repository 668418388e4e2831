/* Shared key and SAS. The vectors were accepted by the Azurite emulator for its well-known account. */
#include "unit/test.h"

#include "auth/auth.h"
#include "auth/trusted.h"
#include "base/clock.h"
#include "base/text.h"
#include "http/http.h"

#define ACCOUNT "devstoreaccount1"
#define KEY     "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="
#define DATE    "x-ms-date: Fri, 20 Nov 2026 09:00:00 GMT"
#define SAS     "sv=2021-12-02&sr=c&sig=a%2Bb%3D"
#define EXPIRY  1893456000 /* 2030-01-01T00:00:00Z */

static struct auth *with_key(void)
{
    struct auth *auth = NULL;

    assert_ok(auth_new(ACCOUNT, KEY, NULL, AUTH_KEY, &auth, &err), err);
    return auth;
}

static struct http_call call_with(const char *method, const char *url, size_t body_len, const char *const *headers)
{
    struct http_call call = {.method = method, .url = act_strdup(url), .body_len = body_len};

    for (size_t i = 0; headers && headers[i]; i++) {
        char *name = act_strndup(headers[i], strcspn(headers[i], ":"));
        http_header_set(&call.headers, name, headers[i] + strlen(name) + 2);
        free(name);
    }
    return call;
}

#define PUT_HEADERS                                                                                                    \
    {                                                                                                                  \
        "Content-Type: text/plain", "x-ms-version: 2021-12-02", "x-ms-blob-type: BlockBlob",                           \
            "Content-MD5: XrY7u+Ae7tCTyyK7j1rNww==", "X-Ms-Meta-MTime: 1700000000", DATE, NULL                         \
    }
#define PUT_LINES                                                                                                      \
    "PUT\n\n\n11\nXrY7u+Ae7tCTyyK7j1rNww==\ntext/plain\n\n\n\n\n\n\nx-ms-blob-type:BlockBlob\n"                        \
    "x-ms-date:Fri, 20 Nov 2026 09:00:00 GMT\nx-ms-meta-mtime:1700000000\nx-ms-version:2021-12-02\n"

TEST(shared_key_vectors)
{
    static const struct {
        const char *method, *url;
        size_t body_len;
        const char *headers[8];
        const char *text, *signature;
    } rows[] = {
        {"PUT", "http://127.0.0.1:10000/devstoreaccount1/vect/dir/hello%20world.txt?timeout=30", 11, PUT_HEADERS,
         PUT_LINES "/devstoreaccount1/devstoreaccount1/vect/dir/hello%20world.txt\ntimeout:30",
         "Qiz/DUbuYvvpjxNJ6a+eV1MV7KKRwWzqYGmRAu6V130="},
        {"PUT", "http://devstoreaccount1.blob.localhost:10000/vect/dir/hello%20world.txt?timeout=30", 11, PUT_HEADERS,
         PUT_LINES "/devstoreaccount1/vect/dir/hello%20world.txt\ntimeout:30",
         "0/Z3IPNHBB0qUu0fbXWPglhmW4OvW8FaL+RAso1xpJY="},
        {"GET",
         "http://127.0.0.1:10000/devstoreaccount1/vect?restype=container&comp=list&prefix=dir%2Fhello%20&"
         "maxresults=10&include=metadata,snapshots",
         0,
         {"x-ms-version: 2021-12-02", DATE, NULL},
         "GET\n\n\n\n\n\n\n\n\n\n\n\nx-ms-date:Fri, 20 Nov 2026 09:00:00 GMT\nx-ms-version:2021-12-02\n"
         "/devstoreaccount1/devstoreaccount1/vect\ncomp:list\ninclude:metadata,snapshots\nmaxresults:10\n"
         "prefix:dir/hello \nrestype:container",
         "js5FUO99F9a9Bary5U8UFNBWY5D14p9N4NmnUxJHDeI="},
    };
    struct auth *auth = with_key();

    for (size_t i = 0; i < COUNT(rows); i++) {
        struct http_call call = call_with(rows[i].method, rows[i].url, rows[i].body_len, rows[i].headers);
        char *text = auth_string_to_sign(ACCOUNT, &call), *signature = auth_signature(auth, text);
        assert_string_equal(text, rows[i].text);
        assert_string_equal(signature, rows[i].signature);
        free(text);
        free(signature);
        http_call_release(&call);
    }
    auth_free(auth);
}

/* Cases that the vectors do not have: every standard line, empty values, names of which one begins the other,
 * parameters without a value, upper case, twice, an empty path, a fragment. */
TEST(string_to_sign_table)
{
    static const struct {
        const char *url;
        const char *headers[12];
        const char *text;
    } rows[] = {
        {"https://a.example", {NULL}, "GET\n\n\n\n\n\n\n\n\n\n\n\n/a/"},
        {"https://a.example?comp=list#x?y=z", {NULL}, "GET\n\n\n\n\n\n\n\n\n\n\n\n/a/\ncomp:list"},
        {"https://a.example/c/../b%2F//", {NULL}, "GET\n\n\n\n\n\n\n\n\n\n\n\n/a/c/../b%2F//"},
        {"https://a.example/c?B=2&a&b=1&&A-B=x%3Dy=z&c=",
         {NULL},
         "GET\n\n\n\n\n\n\n\n\n\n\n\n/a/c\na:\na-b:x=y=z\nb:1,2\nc:"},
        {"https://a.example/c",
         {"Content-Encoding: e", "Content-Language: l", "If-Modified-Since: s", "If-Match: m", "If-None-Match: *",
          "If-Unmodified-Since: u", "Range: bytes=0-1", "Date: d", NULL},
         "GET\ne\nl\n\n\n\nd\ns\nm\n*\nu\nbytes=0-1\n/a/c"},
        {"https://a.example/c",
         {"x-ms-meta-a-b: 1", "X-MS-Meta-A: 2", "x-ms-meta-k: ", "x-msx: no", "x-ms-range:  bytes=0-1 ", NULL},
         "GET\n\n\n\n\n\n\n\n\n\n\n\nx-ms-meta-a:2\nx-ms-meta-a-b:1\nx-ms-meta-k:\nx-ms-range:bytes=0-1\n/a/"
         "c"},
    };

    for (size_t i = 0; i < COUNT(rows); i++) {
        struct http_call call = call_with("GET", rows[i].url, 0, rows[i].headers);
        char *text = auth_string_to_sign("a", &call);
        assert_string_equal(text, rows[i].text);
        free(text);
        http_call_release(&call);
    }
}

TEST(sign_sets_date_and_authorization)
{
    static const char *const headers[] = {"x-ms-version: 2021-12-02", "Authorization: old", NULL};
    ACT_AUTO(http_call) call = call_with("GET", "https://h.example/c/b", 0, headers);
    struct auth *auth = with_key();
    int64_t at, now = act_now_unix_s();

    assert_ok(auth_sign(auth, &call, 3600, &err), err);
    assert_true(act_time_from_http(http_header_get(&call.headers, "x-ms-date"), &at));
    assert_in_range(at, now + 3600, now + 3660);
    char *text = auth_string_to_sign(ACCOUNT, &call), *signature = auth_signature(auth, text);
    ACT_AUTOFREE char *wanted = act_sprintf("SharedKey " ACCOUNT ":%s", signature);
    assert_string_equal(http_header_get(&call.headers, "authorization"), wanted);
    assert_ok(auth_sign(auth, &call, -7200, &err), err);
    assert_string_not_equal(http_header_get(&call.headers, "authorization"), wanted);
    assert_int_equal(call.headers.n, 3);
    assert_string_equal(call.url, "https://h.example/c/b");
    free(text);
    free(signature);
    auth_free(auth);
}

TEST(sas_goes_behind_the_url_once)
{
    static const struct {
        const char *sas, *url, *wanted;
    } rows[] = {
        {SAS, "https://h/c/b", "https://h/c/b?" SAS},
        {"?" SAS "\n", "https://h/c/b", "https://h/c/b?" SAS},
        {SAS, "https://h/c?comp=list", "https://h/c?comp=list&" SAS},
        {SAS, "https://h/c?", "https://h/c?" SAS},
        {"sig=x", "https://h/sig=x", "https://h/sig=x?sig=x"},
    };

    for (size_t i = 0; i < COUNT(rows); i++) {
        struct http_call call = call_with("GET", rows[i].url, 0, NULL);
        struct auth *auth = NULL;
        assert_ok(auth_new(NULL, NULL, rows[i].sas, AUTH_ANONYMOUS, &auth, &err), err);
        assert_ok(auth_sign(auth, &call, 0, &err), err);
        assert_string_equal(call.url, rows[i].wanted);
        assert_ok(auth_sign(auth, &call, 0, &err), err);
        assert_string_equal(call.url, rows[i].wanted);
        assert_int_equal(call.headers.n, 0);
        http_call_release(&call);
        auth_free(auth);
    }
}

TEST(credentials_table)
{
    static const struct {
        const char *account, *key, *sas;
        enum auth_kind prefer;
        int rc;
        enum auth_kind kind;
        const char *text; /* in the error */
    } rows[] = {
        {"a", NULL, NULL, AUTH_ANONYMOUS, 0, AUTH_ANONYMOUS, NULL},
        {"a", "", "", AUTH_KEY, 0, AUTH_ANONYMOUS, NULL},
        {"a", KEY, NULL, AUTH_ANONYMOUS, 0, AUTH_KEY, NULL},
        {"a", " " KEY "\n", NULL, AUTH_SAS, 0, AUTH_KEY, NULL},
        {"a", KEY, SAS, AUTH_ANONYMOUS, 0, AUTH_KEY, NULL},
        {"a", KEY, SAS, AUTH_SAS, 0, AUTH_SAS, NULL},
        {"a", NULL, SAS, AUTH_KEY, 0, AUTH_SAS, NULL},
        {"acct", "not base64!", NULL, AUTH_KEY, -ACT_CONFIG, 0, "'acct' is not valid base64"},
        {"acct", " ", NULL, AUTH_KEY, -ACT_CONFIG, 0, "'acct' is not valid base64"},
        {"", KEY, NULL, AUTH_KEY, -ACT_CONFIG, 0, "needs the name"},
        {"acct", NULL, "sv=1&sig=a b", AUTH_SAS, -ACT_CONFIG, 0, "'acct' has a character"},
        {"acct", NULL, "sv=1\r\nX: y&sig=a", AUTH_SAS, -ACT_CONFIG, 0, "'acct' has a character"},
        {"acct", NULL, "sv=1&mysig=a", AUTH_SAS, -ACT_CONFIG, 0, "'acct' has no signature"},
        {"acct", NULL, "?", AUTH_SAS, -ACT_CONFIG, 0, "'acct' has no signature"},
    };

    for (size_t i = 0; i < COUNT(rows); i++) {
        err = (struct act_error){0};
        struct auth *auth = NULL;
        assert_int_equal(auth_new(rows[i].account, rows[i].key, rows[i].sas, rows[i].prefer, &auth, &err), rows[i].rc);
        if (rows[i].rc == 0) {
            assert_int_equal(auth_kind_of(auth), rows[i].kind);
            assert_string_equal(auth_account(auth), rows[i].account);
        } else {
            assert_null(auth);
            assert_contains(act_error_text(&err), rows[i].text);
        }
        auth_free(auth);
    }
}

TEST(anonymous_leaves_the_request_alone)
{
    ACT_AUTO(http_call) call = call_with("GET", "https://h/c/b", 0, NULL);
    struct auth *auth = NULL;

    assert_ok(auth_new("a", NULL, NULL, AUTH_ANONYMOUS, &auth, &err), err);
    assert_ok(auth_sign(auth, &call, 0, &err), err);
    assert_string_equal(call.url, "https://h/c/b");
    assert_int_equal(call.headers.n, 0);
    auth_free(auth);
}

TEST(sas_vector_strings)
{
    static const struct {
        const char *text, *signature;
    } rows[] = {
        {"racwdl\n\n2030-01-01T00:00:00Z\n/blob/devstoreaccount1/vect\n\n\n\n2021-12-02\nc\n\n\n\n\n\n\n",
         "FTpD1XyYO1ycg6zkmOdKPYbwXPXzrTyY6kRflzUCXmA="},
        {"racwdl\n\n2030-01-01T00:00:00Z\n/blob/devstoreaccount1/vect\n\n\n\n2018-11-09\nc\n\n\n\n\n\n",
         "uUz4iscl3h+5tptx2hcNNYBpIJpZyog83K6NIs/nVns="},
        {"r\n\n2030-01-01T00:00:00Z\n/blob/devstoreaccount1/vect/dir/hello "
         "world.txt\n\n\nhttps,http\n2021-12-02\n"
         "b\n\n\n\n\n\n\n",
         "JnDHWatrkaywdOvasJtzHfRJaQHcOaAL62SSBA8ncjI="},
        {"devstoreaccount1\nrwdlac\nb\nsco\n\n2030-01-01T00:00:00Z\n\n\n2021-12-02\n\n",
         "ZLaJezJkcugVs63+ahxsX/5r9XQ/rAoLCgRMXn4jSrM="},
    };
    struct auth *auth = with_key();

    for (size_t i = 0; i < COUNT(rows); i++) {
        char *signature = auth_signature(auth, rows[i].text);
        assert_string_equal(signature, rows[i].signature);
        free(signature);
    }
    auth_free(auth);
}

/* The query of a SAS made for these arguments, but the signature: that is of the text, which is shorter for a share. */
TEST(service_sas_table)
{
    static const struct {
        struct auth_sas sas;
        const char *query, *text;
    } rows[] = {
        {{.container = "vect", .permissions = "racwdl"},
         "sv=2021-12-02&se=2030-01-01T00%3A00%3A00Z&sr=c&sp=racwdl",
         "racwdl\n\n2030-01-01T00:00:00Z\n/blob/devstoreaccount1/vect\n\n\n\n2021-12-02\nc\n\n\n\n\n\n\n"},
        {{.container = "vect", .name = "dir/h\xc3\xa9 %.txt", .permissions = "r", .start_s = 1, .https_only = true},
         "sv=2021-12-02&st=1970-01-01T00%3A00%3A01Z&se=2030-01-01T00%3A00%3A00Z&sr=b&sp=r&spr=https",
         "r\n1970-01-01T00:00:01Z\n2030-01-01T00:00:00Z\n/blob/devstoreaccount1/vect/dir/h\xc3\xa9 %.txt\n\n\n"
         "https\n2021-12-02\nb\n\n\n\n\n\n\n"},
        {{.is_share = true, .container = "data", .permissions = "rcwdl", .https_only = true},
         "sv=2021-12-02&se=2030-01-01T00%3A00%3A00Z&sr=s&sp=rcwdl&spr=https",
         "rcwdl\n\n2030-01-01T00:00:00Z\n/file/devstoreaccount1/data\n\n\nhttps\n2021-12-02\n\n\n\n\n"},
        {{.is_share = true, .container = "data", .name = "dir/x", .permissions = "r", .https_only = true},
         "sv=2021-12-02&se=2030-01-01T00%3A00%3A00Z&sr=f&sp=r&spr=https",
         "r\n\n2030-01-01T00:00:00Z\n/file/devstoreaccount1/data/dir/x\n\n\nhttps\n2021-12-02\n\n\n\n\n"},
    };
    struct auth *auth = with_key();

    for (size_t i = 0; i < COUNT(rows); i++) {
        struct auth_sas want = rows[i].sas;
        char *sas = NULL;
        want.expiry_s = EXPIRY;
        ACT_AUTOFREE char *signature = auth_signature(auth, rows[i].text);
        ACT_AUTOFREE char *encoded = http_encode(signature, false);
        ACT_AUTOFREE char *wanted = act_sprintf("%s&sig=%s", rows[i].query, encoded);
        assert_ok(auth_service_sas(auth, &want, &sas, &err), err);
        assert_string_equal(sas, wanted);
        free(sas);
    }
    auth_free(auth);
}

TEST(service_sas_needs_a_key)
{
    const struct auth_sas want = {.container = "c", .permissions = "r", .expiry_s = EXPIRY};
    struct auth *auth = NULL;
    char *sas = NULL;

    assert_ok(auth_new("acct", NULL, SAS, AUTH_SAS, &auth, &err), err);
    assert_int_equal(auth_service_sas(auth, &want, &sas, &err), -ACT_DENIED);
    assert_null(sas);
    assert_contains(act_error_text(&err), "'acct'");
    auth_free(auth);
}

/* ---- where a credential may go */

TEST(hosts_table)
{
    static const struct {
        const char *url;
        const char *cloud; /* that the credential is for; NULL: any */
        int trusted;
    } rows[] = {
        {"https://acct.blob.core.windows.net", NULL, 1},
        {"https://acct.blob.core.windows.net/", "AzureCloud", 1},
        {"https://acct.privatelink.blob.core.windows.net:443/x", NULL, 1},
        {"https://acct.z01.blob.storage.azure.net", NULL, 1},
        {"https://ACCT.Blob.Core.Windows.NET", NULL, 1},
        {"https://acct.blob.core.windows.net./", NULL, 1},
        {"https://management.azure.com", NULL, 1},
        {"https://westeurope.api.azureml.ms/history", NULL, 1},
        {"https://acct.blob.core.chinacloudapi.cn", NULL, 1},
        {"https://acct.blob.core.chinacloudapi.cn", "AzureCloud", 0},
        {"https://acct.blob.core.chinacloudapi.cn", "AzureChinaCloud", 1},
        /* names that only look like it */
        {"https://evilcore.windows.net", NULL, 0},
        {"https://evil-core.windows.net", NULL, 0},
        {"https://windows.net", NULL, 0},
        {"https://vm.westeurope.cloudapp.azure.com", NULL, 0},
        {"https://evilmanagement.azure.com", NULL, 0},
        {"https://acct.blob.core.windows.net.evil.example", NULL, 0},
        {"https://evil.example/acct.blob.core.windows.net", NULL, 0},
        {"https://evil.example?acct.blob.core.windows.net", NULL, 0},
        {"https://evil.example#.blob.core.windows.net", NULL, 0},
        {"https://evil.example:443#@acct.blob.core.windows.net", NULL, 0},
        {"https://acct.blob.core.windows.net@evil.example", NULL, 0},
        {"https://acct.blob.core.windows.net:443@evil.example", NULL, 0},
        {"https://user@acct.blob.core.windows.net", NULL, 0},
        {"https://evil.example\\.core.windows.net", NULL, 0},
        {"https://evil.example\\@acct.core.windows.net", NULL, 0},
        {"https://evil.example%2f.core.windows.net", NULL, 0},
        {"https://evil.example%23.core.windows.net", NULL, 0},
        {"https://evil.example%00.core.windows.net", NULL, 0},
        {"https://evil.example%E3%80%82core.windows.net", NULL, 0},
        {"https://evil.example\xe3\x80\x82"
         "core.windows.net",
         NULL, 0},
        {"https://evil.example\xef\xbc\x8f.core.windows.net", NULL, 0},
        {"https://acct.blob.\xd1\x81ore.windows.net", NULL, 0},
        {"https://acct..core.windows.net", NULL, 0},
        {"https://.core.windows.net", NULL, 0},
        {"https://evil.example .core.windows.net", NULL, 0},
        {"https://evil.example\t.core.windows.net", NULL, 0},
        {"https://evil.example\r\n.core.windows.net", NULL, 0},
        {"ftp://acct.blob.core.windows.net", NULL, 0},
        {"file:///acct.blob.core.windows.net", NULL, 0},
        {"acct.blob.core.windows.net", NULL, 0},
        {"//acct.blob.core.windows.net", NULL, 0},
        {"", NULL, 0},
        /* what everybody on the way can read */
        {"http://acct.blob.core.windows.net", NULL, 0},
        {"http://management.azure.com", NULL, 0},
        /* this machine, on whose other ports others may listen */
        {"http://localhost:8080/x", NULL, 0},
        {"https://localhost", NULL, 0},
        {"http://acct.localhost", NULL, 0},
        {"http://127.0.0.1:10000/devstoreaccount1", NULL, 0},
        {"http://127.0.0.1:10001/devstoreaccount1", NULL, 1},
        {"https://127.0.0.1:10001", NULL, 1},
        {"http://127.0.0.1", NULL, 0},
        {"http://127.0.0.2:10001", NULL, 0},
        {"http://127.1:10001", NULL, 1},
        {"http://2130706433:10001", NULL, 1},
        {"http://0x7f.1:10001", NULL, 1},
        {"http://localhost:10001", NULL, 0},
        {"http://[::1]:9", NULL, 1},
        {"http://[::1]:8", NULL, 0},
        {"http://localhost.evil.example", NULL, 0},
        {"http://evillocalhost", NULL, 0},
        {"http://127.0.0.1.evil.example", NULL, 0},
        {"http://127.evil.example", NULL, 0},
        {"http://0.0.0.0", NULL, 0},
        {"http://0", NULL, 0},
        {"http://[::]", NULL, 0},
        {"http://[::ffff:8.8.8.8]", NULL, 0},
        {"http://[::2]", NULL, 0},
        {"http://169.254.169.254", NULL, 0},
        {"http://10.0.0.1", NULL, 0},
        /* what the user trusts */
        {"https://storage.example.com", NULL, 1},
        {"https://Storage.Example.COM.:9000/x", NULL, 1},
        {"http://storage.example.com", NULL, 1},
        {"https://a.lab.example", NULL, 1},
        {"https://b.a.lab.example", NULL, 1},
        {"https://10.1.2.3", NULL, 1},
        {"https://[fd00::1]", NULL, 1},
        {"https://lab.example", NULL, 0},
        {"https://evillab.example", NULL, 0},
        {"https://.lab.example", NULL, 0},
        {"https://evilstorage.example.com", NULL, 0},
        {"https://a.storage.example.com", NULL, 0},
        {"https://storage.example.com.evil.example", NULL, 0},
        {"https://10.1.2.34", NULL, 0},
        {"https://a.port.example", NULL, 1},
        {"https://a.port.example:443", NULL, 1},
        {"https://a.port.example:8443", NULL, 0},
        {"http://a.port.example", NULL, 0},
    };

    setenv("ACT_TRUSTED_HOSTS",
           " storage.example.com,*.LAB.example; 10.1.2.3 [fd00::1] 127.0.0.1:10001 [::1]:9 *.port.example:443", 1);
    for (size_t i = 0; i < COUNT(rows); i++) {
        const struct auth_cloud *cloud = NULL;
        if (rows[i].cloud) {
            setenv("AZURE_CLOUD", rows[i].cloud, 1);
            assert_ok(auth_cloud_find(NULL, &cloud, &err), err);
            unsetenv("AZURE_CLOUD");
        }
        if (auth_trusts(cloud, rows[i].url, &err) != rows[i].trusted)
            fail_msg("row %zu: %s", i, rows[i].url);
    }
    unsetenv("ACT_TRUSTED_HOSTS");
}

TEST(entries_that_are_no_hosts)
{
    ACT_AUTO(act_strv)
    entries = words_of("* *. *com https://h.example h.example: h.example:x h.example:123456 h.example:9:9 [::1 [::1]9 "
                       "h.example/ user@h.example h.exa*mple h..example .");

    for (size_t i = 0; i < entries.n; i++) {
        setenv("ACT_TRUSTED_HOSTS", entries.v[i], 1);
        if (auth_trusts(NULL, "https://h.example", &err) != -ACT_CONFIG)
            fail_msg("'%s' is taken", entries.v[i]);
        assert_contains(act_error_text(&err), entries.v[i]);
    }
    assert_int_equal(auth_trusts(NULL, "https://acct.blob.core.windows.net", &err), 1); /* nobody looks */
    unsetenv("ACT_TRUSTED_HOSTS");
}

TEST(what_may_go_where)
{
    static const struct {
        const char *url;
        enum auth_owner owner;
        bool fine;
    } rows[] = {
        {"https://acct.blob.core.windows.net", AUTH_OF_USER, true},
        {"https://h.example", AUTH_OF_USER, false},
        {"https://h.example", AUTH_OF_FILE, true},
        {"http://h.example", AUTH_OF_FILE, false},
        {"http://127.0.0.1:1", AUTH_OF_FILE, true},
        {"http://127.0.0.1:1", AUTH_OF_USER, false},
        {"http://localhost:1", AUTH_OF_USER, false},
        {"https://[::1]:1", AUTH_OF_USER, false},
        {"http://h.example", AUTH_OF_NOBODY, true},
        {"https://user:secret@h.example", AUTH_OF_USER, false},
        {"http://acct.blob.core.windows.net", AUTH_OF_USER, false},
        {"http://acct.blob.core.windows.net", AUTH_OF_FILE, false},
        {"http://acct.blob.core.windows.net", AUTH_OF_NOBODY, true},
    };

    for (size_t i = 0; i < COUNT(rows); i++) {
        struct auth_address a = {.url = rows[i].url, .said_by = "'endpoint' of 'a.yaml'", .owner = rows[i].owner};
        int rc = auth_check_address(&a, &err);
        if (rc != (rows[i].fine ? 0 : -ACT_DENIED))
            fail_msg("row %zu: %d", i, rc);
        if (rc < 0)
            assert_contains(act_error_text(&err), "'endpoint' of 'a.yaml' is");
    }
    assert_lacks(act_error_text(&err), "secret");
    struct auth_address a = {.url = "https://h.example", .said_by = "it", .owner = AUTH_OF_USER};
    assert_fails(auth_check_address(&a, &err), err, ACT_DENIED, "add 'trusted_hosts: [\"h.example\"]' to '");
    assert_contains(act_error_text(&err), "/config.yaml'");
    a.is_own = true; /* whoever names a strange host has not said yet that it may have them */
    assert_fails(auth_check_address(&a, &err), err, ACT_DENIED, "h.example");
    a = (struct auth_address){.url = "http://localhost", .said_by = "it", .owner = AUTH_OF_USER};
    assert_fails(auth_check_address(&a, &err), err, ACT_DENIED, "add 'trusted_hosts: [\"localhost:80\"]' to '");
    a.is_own = true;
    assert_ok(auth_check_address(&a, &err), err);
}

static int no_files(void **state)
{
    (void)state;
    unsetenv("AZURE_CLOUD");
    unsetenv("ACT_TRUSTED_HOSTS");
    return setenv("ACT_HOME", "/nonexistent/act", 1);
}

TEST_MAIN(no_files, NULL)
