/* azure_test.c - the Blob Storage store against a scripted server of this process: the answers that the
 * emulator never gives. */
#include "unit/script_server.h"

#include "base/clock.h"
#include "engine/engine.h"
#include "http/http.h"
#include "store/store.h"
#include "unit/store_call.h"

#define KEY "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="

/* ---- answers that come often */

#define EXISTS        "409 C|x-ms-error-code: BlobAlreadyExists|"
#define OURS          "200 OK|x-ms-meta-act_upload: {upload}|ETag: 1|"
#define CHANGED       "412 P|x-ms-error-code: ConditionNotMet|"
#define NO_BLOB       "404 N|x-ms-error-code: BlobNotFound|"
#define NO_CONTAINER  "404 N|x-ms-error-code: ContainerNotFound|"
#define DAMAGED       "400 B|x-ms-error-code: Crc64Mismatch|"
#define COPIED        "x-ms-copy-id: c1|x-ms-copy-status: success|ETag: 7|"
#define UNVERIFIED    "x-ms-error-code: CannotVerifyCopySource|"
#define DENIED        "403 F|x-ms-error-code: AuthenticationFailed|"
#define NO_PERMISSION "403 F|x-ms-error-code: AuthorizationPermissionMismatch|"

/* ---- the server: one connection for each answer */

static struct server server;
static struct step steps[MAX_STEPS];
static char *texts[MAX_STEPS];

/* The wire form of "200 OK|Header: x|Header: y|\nbody"; NULL: the connection is closed without an answer. A
 * Content-Length that is not there is added. */
static char *answer_text(const char *answer)
{
    struct act_buf out = {0};
    const char *body = answer ? strstr(answer, "\n") : NULL;

    if (!answer)
        return NULL;
    act_buf_adds(&out, "HTTP/1.1 ");
    for (const char *c = answer; *c && c != body; c++) {
        if (*c != '|')
            act_buf_addc(&out, *c);
        else if (c[1] && c + 1 != body)
            act_buf_adds(&out, "\r\n");
    }
    act_buf_adds(&out, "\r\nConnection: close\r\n");
    if (!strcasestr(out.data, "Content-Length:"))
        act_buf_addf(&out, "Content-Length: %zu\r\n", body ? strlen(body + 1) : 0);
    act_buf_addf(&out, "\r\n%s", body ? body + 1 : "");
    return act_buf_steal(&out);
}

static void azure_test_start_server(const char *const *answers, size_t n)
{
    for (size_t i = 0; i < n; i++)
        steps[i] = (struct step){.answer = texts[i] = answer_text(answers[i]), .then = CLOSE};
    server_start(&server, steps, n);
}

/* All answers must have been asked for. */
static void stop_server(void)
{
    server_end(&server);
    assert_int_equal(server.requests_n, server.steps_n);
    for (size_t i = 0; i < server.steps_n; i++)
        free(texts[i]);
}

static const char *request(size_t i)
{
    return server.requests[i].data;
}

/* ---- one call */

static struct engine *engine;
static struct http *http;

/* Services here may be given URLs to copy from. */
#define TRUSTED "127.0.0.1"

static struct store *azure_test_open_store(const char *sas)
{
    ACT_AUTOFREE char *endpoint = act_sprintf("http://127.0.0.1:%d/acct/", server.port);
    struct store_azure_options options = {
        .account = "acct", .container = "cont", .endpoint = endpoint, .key = sas ? NULL : KEY, .sas = sas};
    struct store *store = NULL;

    assert_ok(store_azure_open(http, &options, &store, &err), err);
    return store;
}

/* Runs a call against the answers. Release it afterwards; the requests stay until server_forget(&server). */
static int run_with(const char *sas, struct store_call *call, const char *const *answers, size_t n)
{
    azure_test_start_server(answers, n);
    struct store *store = azure_test_open_store(sas);
    int rc = store_do(store, call, &err);

    store_free(store);
    stop_server();
    return rc;
}

#define RUN(call, ...)                                                                                                 \
    run_with(NULL, call, (const char *const[]){__VA_ARGS__},                                                           \
             sizeof((const char *const[]){__VA_ARGS__}) / sizeof(char *))

static void azure_test_end_call(struct store_call *call)
{
    store_call_release(call);
    server_forget(&server);
}

/* Fails unless rc is what row i says. */
static void assert_row(size_t i, int rc, int wanted)
{
    if (rc != wanted)
        fail_msg("row %zu: %d %s", i, rc, act_error_text(&err));
}

/* How many answers a row has; none is behind the last. */
static size_t count_answers(const char *const *answers, size_t most)
{
    while (most && !answers[most - 1])
        most--;
    return most;
}
#define ANSWERS(row) count_answers((row).answers, COUNT((row).answers))

/* ---- reading */

TEST(test_get)
{
    static const struct {
        uint64_t offset;
        size_t cap;
        const char *answer, *second;
        int rc;
        size_t got;
        uint64_t size;
    } rows[] = {
        {0, 4, "206 Partial Content|Content-Range: bytes 0-3/10|\n0123", NULL, 0, 4, 10},
        {8, 4, "206 Partial Content|Content-Range: bytes 8-9/10|\n89", NULL, 0, 2, 10},
        {0, 4, "200 OK|\n012", NULL, 0, 3, 3},
        {0, 4, "206 Partial Content|Content-Range: bytes 1-4/10|\n1234", NULL, -ACT_FAIL, 0, 0},
        {0, 4, "206 Partial Content|Content-Range: bytes 0-2/10|\n012", NULL, -ACT_FAIL, 0, 0},
        {0, 4, "206 Partial Content|Content-Range: bytes 0-3/10|\n012", NULL, -ACT_FAIL, 0, 0},
        {0, 4, "206 Partial Content|Content-Range: bytes 0-3/2|\n0123", NULL, -ACT_FAIL, 0, 0},
        {0, 4, "206 Partial Content|Content-Range: bytes 0-3/*|\n0123", NULL, -ACT_FAIL, 0, 0},
        {0, 4, "206 Partial Content|Content-Range: lines 0-3/10|\n0123", NULL, -ACT_FAIL, 0, 0},
        {0, 4, "206 Partial Content|\n0123", NULL, -ACT_FAIL, 0, 0},
        {5, 4, "200 OK|\n0123", NULL, -ACT_FAIL, 0, 0},
        {0, 4, "200 OK|\n0123456789", NULL, -ACT_FAIL, 0, 0},
        {0, 4, "204 No Content", NULL, -ACT_FAIL, 0, 0},
        {0, 4, "416 Range|Content-Range: bytes */0", "200 OK|Content-Length: 0", 0, 0, 0},
        {9, 4, "416 Range|Content-Range: bytes */9", "200 OK|Content-Length: 9", 0, 0, 9},
        {9, 4, "416 Range", "200 OK|Content-Length: 10", -ACT_TEMPORARY, 0, 0},
        {9, 4, "416 Range", "404 Not Found", -ACT_NOT_FOUND, 0, 0},
        {10, 4, "206 Partial Content|Content-Range: bytes 10-9/10", "200 OK|Content-Length: 10", 0, 0, 10},
        {0, 4, "503 Busy|Retry-After: 0", "206 P|Content-Range: bytes 0-3/4|\n0123", 0, 4, 4},
        {0, 4, NULL, "206 P|Content-Range: bytes 0-3/4|\n0123", 0, 4, 4},
        {0, 4, "206 P|Content-Length: 4|Content-Range: bytes 0-3/4|\n01", "206 P|Content-Range: bytes 0-3/4|\n0123", 0,
         4, 4},
        {0, 4, "302 Found|Location: http://127.0.0.1:1/|", NULL, -ACT_FAIL, 0, 0},
    };

    for (size_t i = 0; i < COUNT(rows); i++) {
        char sink[8] = "";
        struct store_call call = call_of(STORE_GET, "k");
        const char *answers[] = {rows[i].answer, rows[i].second};
        call.get.offset = rows[i].offset;
        call.get.sink = sink;
        call.get.sink_cap = rows[i].cap;
        int rc = run_with(NULL, &call, answers, rows[i].answer && !rows[i].second ? 1 : 2);
        assert_row(i, rc, rows[i].rc);
        assert_int_equal(call.get.got, rows[i].got);
        assert_int_equal(call.entry.size, rows[i].size);
        if (call.get.got)
            assert_memory_equal(sink, &"0123456789"[call.get.offset], call.get.got);
        assert_contains(request(0), "GET /acct/cont/k HTTP/1.1\r\n");
        assert_contains(request(0), "\r\nx-ms-range: bytes=");
        azure_test_end_call(&call);
    }
}

TEST(test_metadata)
{
    static const struct {
        const char *headers;
        int64_t mtime_ns;
        int mode;
        enum store_kind kind;
    } rows[] = {
        {"", 0, -1, STORE_FILE},
        {"x-ms-meta-mtime: 2023-11-14T22:13:20.123456789Z|", 1700000000123456789, -1, STORE_FILE},
        {"X-Ms-Meta-Mtime: 2023-11-14T22:13:20.5Z|", 1700000000500000000, -1, STORE_FILE},
        {"x-ms-meta-mtime: yesterday|", 0, -1, STORE_FILE},
        {"x-ms-meta-modtime: 1700000000000000001|", 1700000000000000001, -1, STORE_FILE},
        {"x-ms-meta-permissions: 33261|", 0, 0755, STORE_FILE},
        {"x-ms-meta-permissions: 0640|", 0, 0640, STORE_FILE},
        {"x-ms-meta-permissions: rwx|", 0, -1, STORE_FILE},
        {"x-ms-meta-permissions: -1|", 0, -1, STORE_FILE},
        {"x-ms-meta-permissions: 99999999999999999999999|", 0, -1, STORE_FILE},
        {"x-ms-meta-is_symlink: true|", 0, -1, STORE_SYMLINK},
        {"x-ms-meta-is_symlink: false|", 0, -1, STORE_FILE},
        {"x-ms-meta-Hdi_isfolder: true|", 0, -1, STORE_FILE}, /* not an empty one: data is data */
    };

    for (size_t i = 0; i < COUNT(rows); i++) {
        struct store_call call = call_of(STORE_HEAD, "k");
        ACT_AUTOFREE char *answer =
            act_sprintf("200 OK|Content-Length: 7|ETag: \"0x8D\"|Content-MD5: XrY7u+Ae7tCTyyK7j1rNww==|%s"
                        "Last-Modified: Fri, 20 Nov 2026 09:00:00 GMT|",
                        rows[i].headers);
        assert_ok(RUN(&call, answer), err);
        assert_int_equal(call.entry.mtime_ns, rows[i].mtime_ns);
        assert_int_equal(call.entry.mode, rows[i].mode);
        assert_int_equal(call.entry.kind, rows[i].kind);
        assert_string_equal(call.entry.etag, "\"0x8D\"");
        assert_string_equal(call.entry.md5, "XrY7u+Ae7tCTyyK7j1rNww==");
        assert_int_equal(call.entry.last_modified_s, 1795165200);
        azure_test_end_call(&call);
    }

    struct store_call call = call_of(STORE_HEAD, "k"); /* a folder is no object, unless asked for as one */
    assert_int_equal(RUN(&call, "200 OK|Content-Length: 0|x-ms-meta-hdi_isfolder: true|"), -ACT_NOT_FOUND);
    server_forget(&server);
    call = call_of(STORE_HEAD, "k/");
    assert_ok(RUN(&call, "404 Not Found", "200 OK|Content-Length: 0|"), err);
    assert_string_equal(call.entry.key, "k/");
    assert_contains(request(1), "HEAD /acct/cont/k/ HTTP");
    azure_test_end_call(&call);
}

/* ---- lists of blocks */

static const struct store_upload_id counting = {{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15}};

#define BLOCK(name, size) "<Block><Name>" name "</Name><Size>" size "</Size></Block>"
#define BLOCKS(committed, uncommitted)                                                                                 \
    "200 OK|\n<?xml version=\"1.0\"?><BlockList><CommittedBlocks>" committed                                           \
    "</CommittedBlocks><UncommittedBlocks>" uncommitted "</UncommittedBlocks></BlockList>"
#define ID(last) "AAECAwQFBgcICQoLDA0ODwAAAA" last /* upload 000102..0f, blocks 0 and on: A=, E=, I= */

/* ---- listing */

#define LIST(blobs, marker)                                                                                            \
    "200 OK|Content-Type: application/xml|\n\xef\xbb\xbf<?xml version=\"1.0\" encoding=\"utf-8\"?>"                    \
    "<EnumerationResults ContainerName=\"cont\"><Blobs>" blobs "</Blobs><NextMarker>" marker                           \
    "</NextMarker></EnumerationResults>"
#define BLOB(name)                                                                                                     \
    "<Blob><Name>" name "</Name><Properties><Etag>0x8D</Etag><Content-Length>3</Content-Length>"                       \
    "<Content-MD5 /></Properties><Metadata><mtime>2023-11-14T22:13:20Z</mtime></Metadata></Blob>"
#define FOLDER(name)                                                                                                   \
    "<Blob><Name>" name "</Name><Properties><Content-Length>0</Content-Length></Properties>"                           \
    "<Metadata><Hdi_isfolder>true</Hdi_isfolder><permissions>16872</permissions>"                                      \
    "<mtime>2023-11-14T22:13:20Z</mtime></Metadata></Blob>"
#define PREFIX(name) "<BlobPrefix><Name>" name "</Name></BlobPrefix>"

TEST(test_list_malformed)
{
    static const char *const answers[] = {
        "200 OK|",
        "200 OK|\n<html><body>Welcome to the hotel's network</body></html>",
        "200 OK|\n<?xml version=\"1.0\"?><EnumerationResults><Blobs>" BLOB("a"),
        "200 OK|\n<EnumerationResults></EnumerationResults>",
        "200 OK|\n<!DOCTYPE x [<!ENTITY e \"x\">]><EnumerationResults><Blobs/></EnumerationResults>",
        LIST("<Blob><Name>a</Name></Blob>", ""),
        LIST("<Blob><Properties><Content-Length>1</Content-Length></Properties></Blob>", ""),
        LIST("<Blob><Name></Name><Properties><Content-Length>1</Content-Length></Properties></Blob>", ""),
        LIST("<Blob><Name>a</Name><Properties><Content-Length>-1</Content-Length></Properties></Blob>", ""),
        LIST("<Blob><Name>a</Name><Properties><Content-Length>1x</Content-Length></Properties></Blob>", ""),
        LIST("<Blob><Name Encoded=\"true\">a%00b</Name><Properties><Content-Length>1</Content-Length>"
             "</Properties></Blob>",
             ""),
        LIST("<BlobPrefix></BlobPrefix>", ""),
        LIST("<Blob><Name>a</Nam></Blob>", ""),
        LIST(BLOB("a"), "m</NextMarker><NextMarker>n"),
    };

    for (size_t i = 0; i < COUNT(answers); i++) {
        struct store_call call = call_of(STORE_LIST, "");
        int rc = RUN(&call, answers[i]);
        if (rc != -ACT_FAIL)
            fail_msg("row %zu: %d %s", i, rc, act_error_text(&err));
        assert_contains(act_error_text(&err), "cannot list 'cont/': unusable answer");
        assert_null(call.list.page.next);
        assert_int_equal(call.list.page.n, 0);
        azure_test_end_call(&call);
    }
}

/* Follows the markers through the answers; gives "key kind key kind ..." with '|' between pages. */
static char *azure_test_list_all(const char *prefix, bool delimiter, const char *const *answers, size_t n, int *rc)
{
    struct act_buf out = {0};
    char *marker = NULL;

    azure_test_start_server(answers, n);
    struct store *store = azure_test_open_store(NULL);
    do {
        struct store_call call = call_of(STORE_LIST, prefix);
        call.list.delimiter = delimiter;
        call.list.marker = marker;
        *rc = store_do(store, &call, &err);
        for (size_t i = 0; i < call.list.page.n; i++)
            act_buf_addf(&out, "%s%c ", call.list.page.v[i].key, "flFp"[call.list.page.v[i].kind]);
        act_buf_addc(&out, '|');
        free(marker);
        marker = act_strdup(call.list.page.next);
        store_call_release(&call);
    } while (*rc == 0 && marker);
    free(marker);
    store_free(store);
    stop_server();
    return act_buf_steal(&out);
}

TEST(test_list_pages)
{
    static const struct {
        const char *prefix;
        bool delimiter;
        const char *answers[4];
        const char *expected; /* NULL: the second page is refused */
    } rows[] = {
        {"", false, {LIST("", "")}, "|"},
        {"", false, {LIST(BLOB("b") BLOB("a"), "")}, "af bf |"},
        {"", false, {LIST(BLOB("a"), "m"), LIST("", "n"), LIST(BLOB("b"), "")}, "af ||bf |"},
        {"",
         false,
         {LIST("<Blob><Name Encoded=\"true\">a%EF%BF%BE%25</Name><Properties><Content-Length>1</Content-Length>"
               "</Properties></Blob>",
               "")},
         "a\xef\xbf\xbe%f |"},
        {"", false, {LIST(BLOB("a%41&amp;&lt;"), "")}, "a%41&<f |"},
        /* Folders of a hierarchical account: only the empty ones are entries, in their place. */
        {"", false, {LIST(FOLDER("a") BLOB("a/x") FOLDER("b") FOLDER("b/c"), "")}, "a/xf b/c/F |"},
        {"", false, {LIST(FOLDER("a") BLOB("a-b") BLOB("a0"), "")}, "a-bf a/F a0f |"},
        {"", false, {LIST(FOLDER("a"), "m"), LIST(BLOB("a-b") BLOB("a/x"), "")}, "|a-bf a/xf |"},
        {"", false, {LIST(FOLDER("a"), "m"), LIST(BLOB("a-b"), "n"), LIST(BLOB("a0"), "")}, "|a-bf |a/F a0f |"},
        {"", false, {LIST(FOLDER("a"), "m"), LIST("", "")}, "|a/F |"},
        {"", false, {LIST(FOLDER("a") FOLDER("a-"), "m"), LIST(BLOB("a-/x"), "")}, "|a-/xf a/F |"},
        {"", false, {LIST(FOLDER("a/") FOLDER("a"), "")}, "a/F |"},
        {"a/", false, {LIST(FOLDER("a/") BLOB("a/b"), "")}, "a/bf |"},
        {"a/", false, {LIST(FOLDER("a/"), "")}, "|"},
        {"", true, {LIST(BLOB("a") BLOB("z") PREFIX("a-b/") PREFIX("m/"), "")}, "af a-b/p m/p zf |"},
        {"", true, {LIST(FOLDER("a") BLOB("b") PREFIX("a/"), "")}, "a/p bf |"},
        {"", true, {LIST(FOLDER("a"), "m"), LIST(PREFIX("a/"), "")}, "|a/p |"},
        {"", true, {LIST(FOLDER("a"), "")}, "a/p |"},
        /* Refused: the order is broken between pages, or the marker does not move. */
        {"", false, {LIST(BLOB("b"), "m"), LIST(BLOB("a"), "")}, NULL},
        {"", false, {LIST(BLOB("b"), "m"), LIST(BLOB("b"), "")}, NULL},
        {"", false, {LIST(BLOB("b"), "m"), LIST(BLOB("c"), "m")}, NULL},
        /* Refused: a name twice, or one that was not asked for. */
        {"", false, {LIST(BLOB("a") BLOB("b") BLOB("a"), "")}, NULL},
        {"", true, {LIST(PREFIX("a/") PREFIX("a/"), "")}, NULL},
        {"a/", false, {LIST(BLOB("b"), "")}, NULL},
        {"long/", false, {LIST(BLOB("l"), "")}, NULL},
        /* Pages that bring nothing: some are fine. */
        {"", false, {LIST("", "m"), LIST("", "n"), LIST("", "o"), LIST(BLOB("a"), "")}, "|||af |"},
    };

    for (size_t i = 0; i < COUNT(rows); i++) {
        int rc = 0;
        ACT_AUTOFREE char *keys =
            azure_test_list_all(rows[i].prefix, rows[i].delimiter, rows[i].answers, ANSWERS(rows[i]), &rc);
        assert_int_equal(rc, rows[i].expected ? 0 : -ACT_FAIL);
        if (rows[i].expected && strcmp(keys, rows[i].expected) != 0)
            fail_msg("row %zu: '%s' is not '%s'", i, keys, rows[i].expected);
        server_forget(&server);
    }
}

/* Markers that are ever new, and nothing with them: the markers of the store count the pages. */
TEST(test_list_without_end)
{
    static const struct {
        const char *marker, *next; /* NULL: refused */
    } rows[] = {{NULL, "m||1|10"},
                {"k||1|10", "m||2|20"},
                {"k||999|9990", "m||1000|10000"},
                {"k||1000|10000", NULL},
                {"k||3999999|0", "m||4000000|10"},
                {"k||4000000|0", NULL}};
    const char *const answer[] = {LIST("", "m")};

    for (size_t i = 0; i < COUNT(rows); i++) {
        struct store_call call = {.op = STORE_LIST, .key = "", .list.marker = rows[i].marker};
        assert_int_equal(run_with(NULL, &call, answer, 1), rows[i].next ? 0 : -ACT_FAIL);
        if (rows[i].next)
            assert_string_equal(call.list.page.next, rows[i].next);
        else
            assert_non_null(strstr(act_error_text(&err), "without end"));
        azure_test_end_call(&call);
    }
}

TEST(test_list_request)
{
    struct store_call call = call_of(STORE_LIST, "a b/+&\xc3\xa9");

    call.list.delimiter = true;
    call.list.max = 9999;
    assert_ok(RUN(&call, LIST(FOLDER("a b/+&amp;\xc3\xa9/d"), "op+aque&amp; =")), err);
    assert_contains(request(0), "GET /acct/cont?restype=container&comp=list&include=metadata&maxresults=5000"
                                "&delimiter=%2F&prefix=a%20b%2F%2B%26%C3%A9 HTTP/1.1\r\n");
    server_forget(&server);

    /* The entry that the first page held back comes with all its attributes. */
    ACT_AUTOFREE char *marker = act_strdup(call.list.page.next);
    store_call_release(&call);
    call.list.marker = marker;
    call.list.max = 3;
    call.list.delimiter = false;
    assert_ok(RUN(&call, LIST("", "")), err);
    assert_contains(request(0), "&maxresults=3&prefix=a%20b%2F%2B%26%C3%A9&marker=op%2Baque%26%20%3D HTTP");
    assert_int_equal(call.list.page.n, 1);
    assert_string_equal(call.list.page.v[0].key, "a b/+&\xc3\xa9/d/");
    assert_int_equal(call.list.page.v[0].mtime_ns, 1700000000000000000);
    assert_int_equal(call.list.page.v[0].mode, 0750);
    assert_null(call.list.page.next);
    azure_test_end_call(&call);

    call = call_of(STORE_LIST, ""); /* a marker that is not ours does no harm */
    call.list.marker = "||||,,|%zz,x,y";
    assert_ok(RUN(&call, LIST("", "")), err);
    azure_test_end_call(&call);
}

/* ---- writing */

TEST(test_requests)
{
    struct store_call call = call_of(STORE_PUT, "d/\xc3\xa9 %");

    call.put.data.bytes = "hello world";
    call.put.data.len = 11;
    call.put.data.md5 = "XrY7u+Ae7tCTyyK7j1rNww==";
    call.put.attr.mode = 0755;
    call.put.attr.mtime_ns = 1700000000123456789;
    assert_ok(RUN(&call, "201 Created|ETag: 0x8D|"), err);
    assert_string_equal(call.entry.etag, "\"0x8D\"");
    static const char *const pieces[] = {
        "PUT /acct/cont/d/%C3%A9%20%25 HTTP/1.1\r\n",
        "\r\nx-ms-version: 2023-11-03\r\n",
        "\r\nx-ms-client-request-id: ",
        "\r\nx-ms-blob-type: BlockBlob\r\n",
        "\r\nContent-MD5: XrY7u+Ae7tCTyyK7j1rNww==\r\n",
        "\r\nx-ms-blob-content-md5: XrY7u+Ae7tCTyyK7j1rNww==\r\n",
        "\r\nx-ms-meta-mtime: 2023-11-14T22:13:20.123456789Z\r\n",
        "\r\nx-ms-meta-permissions: 33261\r\n",
        "\r\nContent-Length: 11\r\n",
        "\r\nAuthorization: SharedKey acct:",
        "\r\n\r\nhello world",
    };
    for (size_t i = 0; i < COUNT(pieces); i++)
        assert_contains(request(0), pieces[i]);
    assert_lacks(request(0), "act_upload");
    assert_lacks(request(0), "\r\nIf-");
    azure_test_end_call(&call);

    call = call_of(STORE_BLOCK, "k");
    call.block.upload_id = counting;
    call.block.index = 258;
    call.block.data.bytes = "x";
    call.block.data.len = 1;
    assert_ok(RUN(&call, "201 Created|"), err);
    assert_contains(request(0), "PUT /acct/cont/k?comp=block&blockid=AAECAwQFBgcICQoLDA0ODwAAAQI%3D HTTP");
    server_forget(&server);

    store_call_release(&call);
    call = call_of(STORE_COMMIT, "k");
    call.commit.upload_id = counting;
    call.commit.n_blocks = 2;
    call.commit.attr.md5 = "XrY7u+Ae7tCTyyK7j1rNww==";
    assert_ok(RUN(&call, "201 Created|ETag: \"0x9\"|"), err);
    assert_string_equal(call.entry.etag, "\"0x9\"");
    assert_contains(request(0), "PUT /acct/cont/k?comp=blocklist HTTP");
    assert_contains(request(0), "\r\nx-ms-blob-content-md5: XrY7u+Ae7tCTyyK7j1rNww==\r\n");
    assert_lacks(request(0), "\r\nContent-MD5:");
    assert_contains(request(0), "<BlockList><Latest>AAECAwQFBgcICQoLDA0ODwAAAAA=</Latest>"
                                "<Latest>AAECAwQFBgcICQoLDA0ODwAAAAE=</Latest></BlockList>");
    azure_test_end_call(&call);
}

/* The next page is on its way while one is read; whoever asks for it gets it, asks for another, or does not. */
TEST(test_list_ahead)
{
    static const char *const answers[] = {
        LIST(BLOB("a"), "m&amp;1"), LIST(BLOB("b"), "m2"), "403 F|", LIST(BLOB("c"), "m&#51;"), LIST(BLOB("d"), "m4"),
        LIST(BLOB("a"), ""),        LIST(BLOB("c"), ""),
    };
    static const struct {
        const char *marker;
        size_t requests; /* made when it was done and nothing is under way */
        const char *key;
    } rows[] = {{NULL, 2, "a"}, {"m%261|a", 3, "b"}, {"m2|b", 5, "c"}, {NULL, 6, "a"}, {"m2|b", 7, "c"}};

    azure_test_start_server(answers, COUNT(answers));
    struct store *store = azure_test_open_store(NULL);
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct store_call call = call_of(STORE_LIST, "");
        call.list.ahead = true;
        call.list.marker = rows[i].marker;
        assert_ok(store_do(store, &call, &err), err);
        assert_int_equal(call.list.page.n, 1);
        assert_string_equal(call.list.page.v[0].key, rows[i].key);
        engine_run(engine, NULL);
        assert_int_equal(server.requests_n, rows[i].requests);
        store_call_release(&call);
    }
    store_free(store);
    stop_server();
    assert_contains(request(1), "&marker=m%261 HTTP");
    assert_contains(request(2), "&marker=m2 HTTP");
    assert_contains(request(3), "&marker=m2 HTTP");
    assert_contains(request(4), "&marker=m3 HTTP");
    server_forget(&server);
}

/* A store may go while a page is on its way that nobody waits for. */
TEST(test_list_ahead_unwanted)
{
    ACT_AUTO(store_call) call = call_of(STORE_LIST, "");

    call.list.ahead = true;
    assert_ok(RUN(&call, LIST(BLOB("a"), "m1"), LIST(BLOB("b"), "m2")), err);
    server_forget(&server);
}

TEST(test_list_kinds)
{
    struct store_call call = call_of(STORE_LIST, "");

    assert_ok(RUN(&call, LIST("<Blob><Name>log</Name><Properties><Content-Length>1</Content-Length>"
                              "<BlobType>AppendBlob</BlobType></Properties><Metadata><act_crc64>"
                              "8d29d5c3f6ea8ebe</act_crc64></Metadata></Blob>" BLOB("x"),
                              "")),
              err);
    assert_true(call.list.page.v[0].grows);
    assert_true(call.list.page.v[0].has_crc64 && call.list.page.v[0].crc64 == 0x8d29d5c3f6ea8ebe);
    assert_false(call.list.page.v[1].grows || call.list.page.v[1].has_crc64);
    azure_test_end_call(&call);

    call = call_of(STORE_HEAD, "k");
    assert_ok(RUN(&call, "200 OK|Content-Length: 1|x-ms-blob-type: AppendBlob|"), err);
    assert_true(call.entry.grows);
    azure_test_end_call(&call);
}

/* Names with blocks alone are leftovers; empty blobs and other names are not. */
TEST(test_leftovers)
{
#define EMPTY(name, more)                                                                                              \
    "<Blob><Name>" name "</Name><Properties><Content-Length>0</Content-Length>" more "</Properties></Blob>"
    static const char *const answers[] = {
        LIST(EMPTY("a", "") EMPTY("b", "<Content-MD5>1B2M2Y8AsgTpgAmY7PhCfg==</Content-MD5>") BLOB("c"), ""), "404 N|",
        BLOCKS("", BLOCK("MDA=", "5") BLOCK(ID("A="), "7"))};
    struct store_call call = call_of(STORE_LIST, "");

    call.list.leftovers = true;
    assert_ok(run_with(NULL, &call, answers, COUNT(answers)), err);
    assert_int_equal(call.list.page.n, 1);
    assert_string_equal(call.list.page.v[0].key, "a");
    assert_int_equal(call.list.page.v[0].size, 12);
    assert_contains(request(0), "&include=metadata,uncommittedblobs&");
    azure_test_end_call(&call);

    static const char *const empty[] = {LIST(EMPTY("a", ""), ""), "200 OK|Content-Length: 0|"};
    assert_ok(run_with(NULL, &call, empty, COUNT(empty)), err);
    assert_int_equal(call.list.page.n, 0);
    azure_test_end_call(&call);

    static const char *const refused[] = {LIST(EMPTY("a", ""), ""), "403 F|"};
    assert_int_equal(run_with(NULL, &call, refused, COUNT(refused)), -ACT_DENIED);
    azure_test_end_call(&call);
}

/* ---- checksums */

TEST(test_checksums)
{
#define NO_CRC "500 E|x-ms-error-code: FeatureNotSupported|"
#define CRC    "\r\nx-ms-content-crc64: vo7q9sPVKY0=\r\n"
#define MD5    "\r\nContent-MD5: XrY7u+Ae7tCTyyK7j1rNww==\r\n"
    static const struct {
        bool crc64, md5;
        const char *answers[4];
        int rc;
        const char *pieces[4];
    } rows[] = {
        {true, false, {"201 C|"}, 0, {CRC}},
        {false, false, {"201 C|"}, 0, {CRC}},
        {false, true, {"201 C|"}, 0, {MD5}},
        {true, true, {"201 C|"}, 0, {MD5}},
        {true, false, {"201 C|x-ms-content-crc64: vo7q9sPVKY0=|"}, 0, {CRC}},
        {true, false, {NO_CRC, "201 C|"}, 0, {CRC, MD5}},
        {true, false, {NO_CRC, "400 B|x-ms-error-code: InvalidOperation|", "201 C|"}, 0, {CRC, MD5, MD5}},
        {true, false, {DAMAGED, "201 C|"}, 0, {CRC, CRC}},
        {false, true, {"400 B|x-ms-error-code: Md5Mismatch|", "201 C|"}, 0, {MD5, MD5}},
        {true, false, {"201 C|x-ms-content-crc64: AAAAAAAAAAA=|", "201 C|"}, 0, {CRC, CRC}},
        {false, true, {"201 C|Content-MD5: 1B2M2Y8AsgTpgAmY7PhCfg==|", "201 C|"}, 0, {MD5, MD5}},
        {true, false, {DAMAGED, "201 C|x-ms-content-crc64: nonsense|", DAMAGED}, -ACT_FAIL, {CRC, CRC, CRC}},
    };
    const uint64_t crc64 = 0x8d29d5c3f6ea8ebe;

    for (size_t i = 0; i < 2 * COUNT(rows); i++) {
        struct store_call call = call_of(i % 2 ? STORE_PUT : STORE_BLOCK, "k");
        size_t row = i / 2, n = ANSWERS(rows[row]);
        struct store_sums sums = {0};
        struct store_data *data = i % 2 ? &call.put.data : &call.block.data;
        *data = (struct store_data){.bytes = "hello world",
                                    .len = 11,
                                    .crc64 = rows[row].crc64 ? &crc64 : NULL,
                                    .md5 = rows[row].md5 ? "XrY7u+Ae7tCTyyK7j1rNww==" : NULL,
                                    .sums = i % 4 < 2 ? &sums : NULL};
        int rc = run_with(NULL, &call, rows[row].answers, n);
        assert_row(row, rc, rows[row].rc);
        if (rc)
            assert_contains(act_error_text(&err), "did not arrive as it was sent, 3 times");
        if (data->sums)
            assert_int_equal(sums.crc64, rc ? 0 : crc64);
        for (size_t r = 0; r < n; r++) {
            const char *piece = rows[row].pieces[r];
            assert_contains(request(r), piece);
            assert_lacks(request(r), strstr(piece, "crc64") ? "\r\nContent-MD5:" : "-crc64:");
        }
        azure_test_end_call(&call);
    }
}

/* A checksum that the service turned out not to know is not tried again; its lists of blocks carry a checksum, too. */
TEST(test_no_crc64)
{
    static const char *const answers[] = {NO_CRC, "201 C|", "201 C|", "201 C|ETag: 1|"};
    ACT_AUTO(store_call) block = call_of(STORE_BLOCK, "k"), commit = call_of(STORE_COMMIT, "k");
    const uint64_t crc64 = 0x8d29d5c3f6ea8ebe;

    azure_test_start_server(answers, COUNT(answers));
    struct store *store = azure_test_open_store(NULL);
    block.block.data.bytes = "hello world";
    block.block.data.len = 11;
    assert_ok(store_do(store, &block, &err), err);
    assert_ok(store_do(store, &block, &err), err);
    commit.commit.n_blocks = 1;
    commit.commit.attr.crc64 = &crc64;
    assert_ok(store_do(store, &commit, &err), err);
    store_free(store);
    stop_server();
    assert_contains(request(2), MD5);
    assert_contains(request(3), "\r\nContent-MD5: ");
    assert_contains(request(3), "\r\nx-ms-meta-act_crc64: 8d29d5c3f6ea8ebe\r\n");
    server_forget(&server);
}

/* ---- blocks */

TEST(test_blocks)
{
    static const struct {
        const char *answer, *error; /* of what is found: index, size, committed */
        size_t n;
        uint64_t found[3][3];
    } rows[] = {
        {BLOCKS("", ""), NULL, 0, {{0}}},
        {BLOCKS(BLOCK(ID("A="), "5") BLOCK(ID("I="), "7"), BLOCK(ID("E="), "8589934592")),
         NULL,
         3,
         {{0, 5, 1}, {2, 7, 1}, {1, 8589934592, 0}}},
        {BLOCKS(BLOCK("MDA=", "5"), BLOCK("?", "5") BLOCK(ID("A="), "0")), NULL, 1, {{0, 0, 0}}},
        {"200 OK|\n<BlockList />", NULL, 0, {{0}}},
        {NO_BLOB, NULL, 0, {{0}}},
        {NO_CONTAINER, "ContainerNotFound", 0, {{0}}},
        {"200 OK|\n<html/>", "not a block list", 0, {{0}}},
        {"200 OK|\n<BlockList><CommittedBlocks>", "unusable answer", 0, {{0}}},
        {BLOCKS("", BLOCK(ID("A="), "x")), "the size 'x'", 0, {{0}}},
        {BLOCKS(BLOCK(ID("A="), "1"), "<Block><Name>" ID("A=") "</Name></Block>"), "without a size", 0, {{0}}},
    };

    for (size_t i = 0; i < COUNT(rows); i++) {
        struct store_call call = call_of(STORE_BLOCKS, "k");
        call.blocks.upload_id = counting;
        int rc = RUN(&call, rows[i].answer);
        assert_int_equal(rc != 0, rows[i].error != NULL);
        if (rc)
            assert_contains(act_error_text(&err), rows[i].error);
        assert_int_equal(call.blocks.n_found, rows[i].n);
        for (size_t b = 0; b < rows[i].n; b++) {
            assert_int_equal(store_block_index(&call.blocks.upload_id, &call.blocks.found[b]), rows[i].found[b][0]);
            assert_int_equal(call.blocks.found[b].len, rows[i].found[b][1]);
            assert_int_equal(call.blocks.found[b].committed, rows[i].found[b][2]);
        }
        assert_contains(request(0), "GET /acct/cont/k?comp=blocklist&blocklisttype=all HTTP");
        azure_test_end_call(&call);
    }
}

/* ---- many deletes */

#define PART(id, status, more)                                                                                         \
    "--answer\r\nContent-Type: application/http\r\nContent-ID: " id "\r\n\r\nHTTP/1.1 " status "\r\n" more             \
    "x-ms-request-id: 7\r\n\r\n"
#define BATCH(parts) "202 Accepted|Content-Type: multipart/mixed; boundary=answer|\n" parts "--answer--"
#define CODE(code)   "x-ms-error-code: " code "\r\n"

TEST(test_delete_many)
{
#define GONE "HTTP 404 BlobNotFound (request id 7)"
    static const struct {
        const char *answers[4];
        int rc[3];
        const char *error; /* of the second */
    } rows[] = {
        {{BATCH(PART("0", "202 A", "") PART("1", "202 A", "") PART("2", "202 A", ""))}, {0, 0, 0}, NULL},
        {{BATCH(PART("2", "202 A", "") PART("0", "202 A", "") PART("1", "404 N", CODE("BlobNotFound")))},
         {0, -ACT_NOT_FOUND, 0},
         "cannot delete 'cont/b': " GONE},
        {{BATCH(PART("0", "202 A", "") PART("1", "412 P", CODE("ConditionNotMet")) PART("2", "202 A", ""))},
         {0, -ACT_TEMPORARY, 0},
         "HTTP 412 ConditionNotMet (request id 7); it has changed"},
        /* busy parts again, and only those; what is gone then was deleted by us */
        {{BATCH(PART("0", "202 A", "") PART("1", "503 B", CODE("ServerBusy")) PART("2", "500 E", "")),
          BATCH(PART("1", "404 N", CODE("BlobNotFound")) PART("0", "202 A", ""))},
         {0, 0, 0},
         NULL},
        /* a first try that may have succeeded */
        {{NULL, BATCH(PART("0", "404 N", CODE("BlobNotFound")) PART("1", "202 A", "")
                          PART("2", "404 N", CODE("ContainerNotFound")))},
         {0, 0, -ACT_NOT_FOUND},
         NULL},
        /* no batches: one by one */
        {{"501 N|", "202 A|", NO_BLOB, "202 A|"},
         {0, -ACT_NOT_FOUND, 0},
         "cannot delete 'cont/b': HTTP 404 BlobNotFound"},
        {{NO_PERMISSION, "202 A|", "202 A|", "202 A|"}, {0, 0, 0}, NULL},
        {{"202 A|Content-Type: multipart/mixed; boundary=answer|\n--answer\r\n\r\nHTTP/1.1 400 B\r\n\r\n--answer--",
          "202 A|", "202 A|", "202 A|"},
         {0, 0, 0},
         NULL},
        {{BATCH(PART("0", "202 A", "") PART("0", "202 A", "") PART("2", "202 A", "")), "202 A|", "202 A|", "202 A|"},
         {0, 0, 0},
         NULL},
        {{"202 A|", "202 A|", "202 A|", "202 A|"}, {0, 0, 0}, NULL},
        {{"500 E|", "202 A|", "202 A|", "202 A|"}, {0, 0, 0}, NULL},
        /* the same for all */
        {{DENIED}, {-ACT_DENIED, -ACT_DENIED, -ACT_DENIED}, "cannot delete 'cont/b': HTTP 403 AuthenticationFailed"},
        {{NULL, NULL, NULL}, {-ACT_TEMPORARY, -ACT_TEMPORARY, -ACT_TEMPORARY}, "cannot delete 'cont/b': "},
    };

    for (size_t i = 0; i < COUNT(rows); i++) {
        struct store_deletion deletions[] = {{.key = "a b"}, {.key = "b", .if_match = "\"0x1\""}, {.key = "c"}};
        struct store_call call = call_of(STORE_DELETE_MANY, "");
        size_t n = ANSWERS(rows[i]);
        call.delete_many.v = deletions;
        call.delete_many.n = COUNT(deletions);
        assert_ok(run_with(NULL, &call, rows[i].answers, n ? n : 3), err);
        for (size_t d = 0; d < COUNT(deletions); d++)
            if (deletions[d].rc != rows[i].rc[d])
                fail_msg("row %zu, %zu: %d %s", i, d, deletions[d].rc, act_error_text(&deletions[d].error));
        if (rows[i].error)
            assert_contains(act_error_text(&deletions[1].error), rows[i].error);
        assert_contains(request(0), "POST /acct/cont?restype=container&comp=batch HTTP");
        store_call_release(&call);
        if (i == 0) {
            assert_contains(request(0), "Content-ID: 0\r\n\r\nDELETE /acct/cont/a%20b HTTP/1.1\r\nx-ms-date: ");
            assert_contains(request(0), "\r\nIf-Match: \"0x1\"\r\n");
            assert_lacks(strstr(request(0), "\r\n\r\n"), "x-ms-version");
        } else if (i == 3) {
            assert_contains(request(1), "DELETE /acct/cont/b HTTP");
            assert_contains(request(1), "DELETE /acct/cont/c HTTP");
            assert_lacks(request(1), "DELETE /acct/cont/a");
        }
        server_forget(&server);
    }
}

/* Folder markers have two names and are looked for; a SAS goes with every part. */
TEST(test_delete_many_folders)
{
    static const char *const answers[] = {BATCH(PART("0", "202 A", "")),
                                          "200 OK|Content-Length: 0|x-ms-meta-hdi_isfolder: true|", "202 A|", NO_BLOB};
    struct store_deletion deletions[] = {{.key = "f/"}, {.key = "x"}};
    ACT_AUTO(store_call) call = call_of(STORE_DELETE_MANY, "");

    call.delete_many.v = deletions;
    call.delete_many.n = COUNT(deletions);
    assert_ok(run_with("sv=1&sig=geheim", &call, answers, COUNT(answers)), err);
    assert_int_equal(deletions[0].rc, 0);
    assert_int_equal(deletions[1].rc, 0);
    assert_contains(request(0), "\r\n\r\nDELETE /acct/cont/x?sv=1&sig=geheim HTTP/1.1\r\n");
    assert_contains(request(2), "DELETE /acct/cont/f?sv=1&sig=geheim HTTP");
    server_forget(&server);
}

/* A conditional write whose first try was cut off. */
TEST(test_ambiguous)
{
    static const struct {
        enum store_op op;
        bool if_absent;
        const char *answers[4];
        int rc;
    } rows[] = {
        {STORE_PUT, true, {"-", EXISTS, OURS}, 0},
        {STORE_PUT, true, {"-", EXISTS, "200 OK|x-ms-meta-act_upload: other|ETag: 1|"}, -ACT_PARTIAL},
        {STORE_PUT, true, {"-", EXISTS, "200 OK|ETag: 1|"}, -ACT_PARTIAL},
        {STORE_PUT, true, {"-", EXISTS, "404 Not Found"}, -ACT_PARTIAL},
        {STORE_PUT, true, {EXISTS, "200 OK|ETag: 1|"}, -ACT_PARTIAL},
        {STORE_PUT, true, {EXISTS, "404 Not Found"}, -ACT_PARTIAL},
        /* the marker of a folder is in nobody's way */
        {STORE_PUT, true, {EXISTS, "200 OK|x-ms-meta-hdi_isfolder: true|ETag: 2|", "201 Created|ETag: 1|"}, 0},
        {STORE_PUT, true, {"-", "201 Created|ETag: 1|"}, 0},
        {STORE_PUT, false, {"-", CHANGED, OURS}, 0},
        {STORE_PUT, false, {CHANGED}, -ACT_TEMPORARY},
        {STORE_COMMIT, true, {"500 E|Retry-After: 0|", EXISTS, OURS}, 0},
        /* the first try succeeded, the second was damaged, the third cannot take place */
        {STORE_PUT, true, {"-", DAMAGED, EXISTS, OURS}, 0},
        {STORE_DELETE, false, {"-", NO_BLOB}, 0},
        {STORE_DELETE, false, {"-", NO_CONTAINER}, -ACT_NOT_FOUND},
        {STORE_DELETE, false, {NO_BLOB}, -ACT_NOT_FOUND},
    };

    for (size_t i = 0; i < COUNT(rows); i++) {
        const char *answers[COUNT(rows[i].answers)];
        size_t n = 0;
        for (; n < COUNT(answers) && rows[i].answers[n]; n++)
            answers[n] = strcmp(rows[i].answers[n], "-") == 0 ? NULL : rows[i].answers[n];
        struct store_call call = call_of(rows[i].op, "k");
        const struct store_condition condition = {.if_absent = rows[i].if_absent,
                                                  .if_match = rows[i].if_absent ? NULL : "\"0x1\""};
        if (call.op == STORE_PUT)
            call.put.condition = condition;
        else if (call.op == STORE_COMMIT)
            call.commit.condition = condition;
        else
            call.delete.if_match = condition.if_match;
        int rc = run_with(NULL, &call, answers, n);
        assert_row(i, rc, rows[i].rc);
        if (rc == 0 && call.op != STORE_DELETE)
            assert_string_equal(call.entry.etag, "\"1\"");
        azure_test_end_call(&call);
    }
}

/* The marker of a folder that is no blob, but a real folder with something in it: it is only described. */
TEST(test_real_folder)
{
    static const char *const answers[] = {NO_BLOB, EXISTS, "200 OK|x-ms-meta-hdi_isfolder: true|ETag: 2|",
                                          "409 C|x-ms-error-code: DirectoryIsNotEmpty|", "200 OK|ETag: 3|"};
    ACT_AUTO(store_call) call = call_of(STORE_PUT, "a/b/");

    call.put.attr.kind = STORE_FOLDER;
    call.put.attr.mode = 0700;
    call.put.condition.if_absent = call.put.condition.unmarked = true;
    assert_ok(run_with(NULL, &call, answers, COUNT(answers)), err);
    assert_contains(request(0), "HEAD /acct/cont/a/b/ HTTP");
    assert_contains(request(3), "\r\nx-ms-meta-hdi_isfolder: true\r\n");
    assert_contains(request(4), "PUT /acct/cont/a/b?comp=metadata HTTP");
    assert_contains(request(4), "\r\nx-ms-meta-permissions: 16832\r\n");
    assert_contains(request(4), "\r\nIf-Match: \"2\"\r\n");
    assert_lacks(request(4), "hdi_isfolder");
    server_forget(&server);
}

/* ---- errors */

TEST(test_errors)
{
    static const struct {
        const char *answer, *text;
        int rc;
    } rows[] = {
        {"403 Forbidden|x-ms-request-id: 12-34|\n<?xml "
         "version=\"1.0\"?><Error><Code>AuthenticationFailed</Code>"
         "<Message>Server failed to authenticate the request. Make sure the value of Authorization header is "
         "formed correctly.\nRequestId:12-34\nTime:x</Message></Error>",
         "cannot look at 'cont/k': HTTP 403 AuthenticationFailed (request id 12-34): Server failed to "
         "authenticate the request; check the account name and its key or SAS",
         -ACT_DENIED},
        {NO_CONTAINER,
         "cannot look at 'cont/k': HTTP 404 ContainerNotFound; check "
         "the name of the container",
         -ACT_NOT_FOUND},
        {"404 N|", "cannot look at 'cont/k': HTTP 404", -ACT_NOT_FOUND},
        {"401 U|\n<html>login</html>", "cannot look at 'cont/k': HTTP 401", -ACT_DENIED},
        {NO_PERMISSION,
         "cannot look at 'cont/k': HTTP 403 AuthorizationPermissionMismatch; the credential does not permit "
         "this "
         "operation",
         -ACT_DENIED},
        {CHANGED,
         "cannot look at 'cont/k': HTTP 412 ConditionNotMet; it has "
         "changed",
         -ACT_TEMPORARY},
        {"409 C|x-ms-error-code: BlobArchived|",
         "cannot look at 'cont/k': HTTP 409 BlobArchived; it is in the "
         "archive tier; rehydrate it first",
         -ACT_FAIL},
        {"400 B|x-ms-error-code: InvalidBlockList|",
         "cannot look at 'cont/k': HTTP 400 InvalidBlockList; blocks "
         "of this upload are gone; upload it again",
         -ACT_TEMPORARY},
        {"501 N|", "cannot look at 'cont/k': HTTP 501", -ACT_FAIL},
        {"418 T|x-ms-error-code: Tea\x1b[31mpot|", "cannot look at 'cont/k': HTTP 418 Tea?[31mpot", -ACT_FAIL},
    };

    for (size_t i = 0; i < COUNT(rows); i++) {
        char sink[4];
        struct store_call call = call_of(STORE_GET, "k");
        call.get.sink = sink;
        call.get.sink_cap = sizeof(sink);
        int rc = RUN(&call, rows[i].answer);
        ACT_AUTOFREE char *text = act_sprintf("cannot get%s", rows[i].text + strlen("cannot look at"));
        assert_string_equal(act_error_text(&err), text);
        assert_int_equal(rc, rows[i].rc);
        assert_int_equal(err.http_status, atoi(rows[i].answer));
        azure_test_end_call(&call);
    }
}

TEST(test_busy)
{
    struct store_call call = call_of(STORE_HEAD, "k");

    assert_int_equal(RUN(&call, "503 B|Retry-After: 0", "503 B|Retry-After: 0", "503 B|Retry-After: 0"),
                     -ACT_TEMPORARY);
    assert_contains(act_error_text(&err), "the service is busy");
    server_forget(&server);
}

TEST(test_clock)
{
    struct store_call call = call_of(STORE_HEAD, "k");
    char theirs[ACT_TIME_TEXT];

    act_time_to_http(act_now_unix_s() + 7200, theirs);
    ACT_AUTOFREE char *refusal = act_sprintf("403 F|Date: %s|x-ms-error-code: AuthenticationFailed|", theirs);
    assert_ok(RUN(&call, refusal, "200 OK|Content-Length: 0|"), err);
    const char *date = strcasestr(request(1), "\r\nx-ms-date: ");
    int64_t sent = 0;
    ACT_AUTOFREE char *text = act_strndup(date + 13, strcspn(date + 13, "\r"));
    assert_true(act_time_from_http(text, &sent));
    assert_true(sent - act_now_unix_s() > 7000 && sent - act_now_unix_s() < 7400);
    azure_test_end_call(&call);

    assert_int_equal(RUN(&call, refusal, refusal), -ACT_DENIED); /* once */
    server_forget(&server);
    assert_int_equal(run_with("sv=1&sig=x", &call, (const char *const[]){refusal}, 1), -ACT_DENIED);
    server_forget(&server);
}

TEST(test_sas)
{
    struct store_call call = call_of(STORE_HEAD, "k");
    static const char *const refusal[] = {DENIED};
    static const struct {
        const char *sas, *hint;
    } rows[] = {
        {"?sv=2021-12-02&se=2024-01-02T03%3A04%3A05Z&sr=c&sp=r&sig=geheim", "the SAS expired at 2024-01-02T03:04:05Z"},
        {"sv=2021-12-02&sr=c&se=2024-01-02&sp=r&sig=geheim", "the SAS expired at 2024-01-02T00:00:00Z"},
        {"se=2199-01-02T03:04:05Z&sr=c&sp=r&sig=geheim", "check the account name"},
        {"sse=2001-01-02&se=nonsense&sig=geheim", "check the account name"},
    };

    for (size_t i = 0; i < COUNT(rows); i++) {
        assert_int_equal(run_with(rows[i].sas, &call, refusal, 1), -ACT_DENIED);
        assert_contains(act_error_text(&err), rows[i].hint);
        assert_lacks(act_error_text(&err), "geheim");
        assert_contains(request(0), "HEAD /acct/cont/k?s");
        assert_contains(request(0), "&sig=geheim HTTP");
        assert_lacks(request(0), "Authorization:");
        server_forget(&server);
    }
}

/* ---- copies */

TEST(test_copy)
{
#define PENDING "x-ms-copy-id: c1|x-ms-copy-status: pending|x-ms-copy-progress: 1/2|Content-Length: 0|"
    static const struct {
        const char *answers[4];
        int rc;
        const char *text;
    } rows[] = {
        {{"202 A|" COPIED}, 0, ""},
        {{"202 A|" PENDING, "200 OK|" PENDING, "200 OK|" COPIED}, 0, ""},
        {{"202 A|" PENDING, "200 OK|x-ms-copy-id: c2|x-ms-copy-status: success|ETag: 7|"},
         -ACT_TEMPORARY,
         "something else was written there"},
        {{"202 A|" PENDING, "200 OK|ETag: 7|"}, -ACT_TEMPORARY, "something else was written there"},
        {{"202 A|" PENDING, "200 OK|x-ms-copy-id: c1|x-ms-copy-status: failed|x-ms-copy-status-description: 500 Oops|"},
         -ACT_FAIL,
         "copy failed: 500 Oops"},
        {{"202 A|" PENDING, "404 N|"}, -ACT_NOT_FOUND, "HTTP 404"},
        {{NO_BLOB}, -ACT_NOT_FOUND, "cannot copy 'cont/a b' to 'cont/k'"},
        {{"202 A|"}, -ACT_TEMPORARY, ""},
        {{"202 A|x-ms-copy-status: success|ETag: 7|"}, 0, ""},
        /* not at once: too large, or not permitted that way */
        {{"409 C|" UNVERIFIED, "202 A|" PENDING, "200 OK|" COPIED}, 0, ""},
        {{"403 F|" UNVERIFIED, NO_BLOB}, -ACT_NOT_FOUND, "HTTP 404 BlobNotFound"},
        {{"501 N|", "202 A|" COPIED}, 0, ""},
        /* the first try of the request was not in vain */
        {{"501 N|", NULL, "409 C|x-ms-error-code: PendingCopyOperation|", "200 OK|" COPIED}, 0, ""},
        {{"501 N|", "409 C|x-ms-error-code: PendingCopyOperation|"}, -ACT_TEMPORARY, "PendingCopyOperation"},
    };

    for (size_t i = 0; i < COUNT(rows); i++) {
        struct store_call call = call_of(STORE_COPY, "k");
        size_t n = ANSWERS(rows[i]);
        call.copy.source = "a b";
        int rc = run_with(NULL, &call, rows[i].answers, n);
        assert_row(i, rc, rows[i].rc);
        if (rc)
            assert_contains(act_error_text(&err), rows[i].text);
        else
            assert_string_equal(call.entry.etag, "\"7\"");
        assert_contains(request(0), "\r\nx-ms-requires-sync: true\r\n");
        assert_contains(request(0), "\r\nx-ms-copy-source: http://127.0.0.1:");
        assert_contains(request(0), "/acct/cont/a%20b?sv=");
        azure_test_end_call(&call);
    }

    struct store_call call = call_of(STORE_COPY, "k");
    call.copy.source = "s";
    assert_ok(run_with("?sv=1&sig=a%2Fb", &call, rows[0].answers, 1), err);
    assert_contains(request(0), "/acct/cont/s?sv=1&sig=a%2Fb\r\n");
    azure_test_end_call(&call);
}

TEST(test_put_from)
{
#define SOURCE "http://other/c/s?sv=1&sig=geheim"
    static const struct {
        const char *answer;
        int rc;
        bool must_stream;
        const char *text;
    } rows[] = {
        {"201 C|ETag: 7|", 0, false, ""},
        {"501 N|x-ms-error-code: APINotImplemented|", -ACT_FAIL, true, "HTTP 501"},
        {"501 N|", -ACT_FAIL, true, "HTTP 501"},
        {"500 E|", -ACT_TEMPORARY, true, "HTTP 500"},
        {"403 F|" UNVERIFIED, -ACT_DENIED, true, "cannot read the source"},
        {"400 B|" UNVERIFIED, -ACT_DENIED, true, "cannot read the source"},
        {DENIED "x-ms-copy-source-status-code: 403|"
                "x-ms-copy-source-error-code: AuthorizationFailure|",
         -ACT_DENIED, true, "the source answered 403 AuthorizationFailure"},
        {"404 N|" UNVERIFIED "x-ms-copy-source-status-code: 404|", -ACT_NOT_FOUND, true, "the source answered 404"},
        {"400 B|\n<Error><Code>InvalidHeaderValue</Code><Message>http://other/c/s?sv=1&amp;sig=geheim is "
         "not valid.</Message></Error>",
         -ACT_FAIL, true, "sig=REDACTED"},
        {"412 P|x-ms-error-code: SourceConditionNotMet|", -ACT_TEMPORARY, false, "the source has changed"},
        {"409 C|" UNVERIFIED "x-ms-copy-source-status-code: 503|", -ACT_TEMPORARY, false, "the source answered 503"},
        {NO_PERMISSION, -ACT_DENIED, false, "HTTP 403"},
        {NO_CONTAINER, -ACT_NOT_FOUND, false, "HTTP 404"},
    };

    for (size_t i = 0; i < 2 * COUNT(rows); i++) {
        struct store_call call = call_of(i % 2 ? STORE_PUT_FROM : STORE_BLOCK_FROM, "k");
        const struct store_source source = {.url = SOURCE, .match = "\"0x1\""};
        if (i % 2)
            call.put_from.source = source;
        else
            call.block_from = (struct store_block_from){.source = source, .offset = 7, .len = 3};
        int rc = RUN(&call, rows[i / 2].answer);
        assert_row(i / 2, rc, rows[i / 2].rc);
        if (rc) {
            assert_contains(act_error_text(&err), rows[i / 2].text);
            assert_lacks(act_error_text(&err), "geheim");
            assert_int_equal(err.fact == ACT_FACT_NOT_BY_SERVICE, rows[i / 2].must_stream);
        }
        assert_contains(request(0), "\r\nx-ms-copy-source: " SOURCE "\r\n");
        assert_contains(request(0), "\r\nx-ms-source-if-match: \"0x1\"\r\n");
        assert_contains(request(0), "\r\nContent-Length: 0\r\n");
        assert_lacks(request(0), "content-crc64");
        assert_contains(request(0),
                        i % 2 ? "\r\nx-ms-blob-type: BlockBlob\r\n" : "\r\nx-ms-source-range: bytes=7-9\r\n");
        azure_test_end_call(&call);
    }
}

TEST(test_commit_from)
{
    static const char *const answers[] = {
        "200 OK|ETag: \"0x1\"|Content-Length: 7|Content-Type: text/css|Cache-Control: max-age=1|Server: x|"
        "Content-MD5: XrY7u+Ae7tCTyyK7j1rNww==|x-ms-meta-color: red|x-ms-meta-mtime: 2001-01-01T00:00:00Z|"
        "x-ms-meta-act_upload: theirs|x-ms-blob-type: BlockBlob|",
        "201 C|ETag: 7|", "200 OK|ETag: \"0x2\"|", NO_BLOB};
    ACT_AUTO(store_call) call = call_of(STORE_COMMIT, "k");

    azure_test_start_server(answers, COUNT(answers));
    struct store *store = azure_test_open_store(NULL);
    ACT_AUTOFREE char *source = act_sprintf("http://127.0.0.1:%d/theirs/s?sv=1&sig=geheim", server.port);
    call.commit.n_blocks = 1;
    call.commit.attr.mtime_ns = 1700000000123456789;
    call.commit.source.url = source;
    call.commit.source.match = "\"0x1\"";
    assert_ok(store_do(store, &call, &err), err);
    assert_string_equal(call.entry.etag, "\"7\"");
    assert_int_equal(store_do(store, &call, &err), -ACT_TEMPORARY);
    assert_contains(act_error_text(&err), "the source has changed");
    assert_int_equal(store_do(store, &call, &err), -ACT_NOT_FOUND);
    assert_lacks(act_error_text(&err), "geheim");
    store_free(store);
    stop_server();
    assert_contains(request(0), "HEAD /theirs/s?sv=1&sig=geheim HTTP");
    assert_lacks(request(0), "Authorization:");
    static const char *const pieces[] = {
        "PUT /acct/cont/k?comp=blocklist HTTP",
        "\r\nx-ms-blob-content-type: text/css\r\n",
        "\r\nx-ms-blob-cache-control: max-age=1\r\n",
        "\r\nx-ms-blob-content-md5: XrY7u+Ae7tCTyyK7j1rNww==\r\n",
        "\r\nx-ms-meta-color: red\r\n",
        "\r\nx-ms-meta-mtime: 2023-11-14T22:13:20.123456789Z\r\n",
        "\r\nContent-Type: application/xml\r\n",
    };
    for (size_t i = 0; i < COUNT(pieces); i++)
        assert_contains(request(1), pieces[i]);
    assert_lacks(request(1), "theirs");
    assert_lacks(request(1), "x-ms-blob-type");
    server_forget(&server);
}

/* ---- ids of other lengths */

TEST(test_fit_ids)
{
#define REFUSED "400 B|x-ms-error-code: InvalidBlobOrBlock|"
#define OTHER16 "MDEyMzQ1Njc4OWFiY2RlZg=="         /* 16 bytes */
#define OTHER24 "MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3" /* 24 bytes */
    static const struct {
        const char *answers[6];
        int rc;
        const char *last; /* request */
    } rows[] = {
        {{REFUSED, BLOCKS("", BLOCK(OTHER16, "1")), "201 C|"}, 0, "blockid=AAECAwQFBgcICQoLAAAAAg%3D%3D HTTP"},
        {{REFUSED, BLOCKS(BLOCK(OTHER24, "1"), ""), "201 C|"}, 0, "blockid=AAECAwQFBgcICQoLDA0ODwAAAAIAAAAA HTTP"},
        {{REFUSED, BLOCKS(BLOCK(OTHER16, "1"), BLOCK(OTHER24, "1")), "201 C|"},
         0,
         "blockid=AAECAwQFBgcICQoLDA0ODwAAAAIAAAAA HTTP"},
        {{REFUSED, BLOCKS("", ""), "201 C|"}, 0, "blockid=AAECAwQFBgcICQoLDA0ODwAAAAI%3D HTTP"},
        {{REFUSED, BLOCKS("", BLOCK(OTHER16, "1")), REFUSED, BLOCKS("", BLOCK(OTHER24, "1")), "201 C|"},
         0,
         "blockid=AAECAwQFBgcICQoLDA0ODwAAAAIAAAAA HTTP"},
        {{REFUSED, BLOCKS("", ""), REFUSED, BLOCKS("", ""), REFUSED}, -ACT_FAIL, "comp=block&"},
        {{REFUSED, "403 F|"}, -ACT_FAIL, "comp=blocklist"},
        /* too short: only where there is no blob */
        {{REFUSED, BLOCKS("", BLOCK("MDA=", "1")), BLOCKS("", BLOCK("MDA=", "1")), "200 OK|Content-Length: 3|"},
         -ACT_FAIL,
         "HEAD /acct/cont/k HTTP"},
    };

    for (size_t i = 0; i < COUNT(rows); i++) {
        struct store_call call = call_of(STORE_BLOCK, "k");
        size_t n = ANSWERS(rows[i]);
        call.block.upload_id = counting;
        call.block.index = 2;
        call.block.data.bytes = "x";
        call.block.data.len = 1;
        int rc = run_with(NULL, &call, rows[i].answers, n);
        assert_row(i, rc, rows[i].rc);
        if (rc)
            assert_contains(act_error_text(&err), "another program's upload are in the way");
        assert_contains(request(n - 1), rows[i].last);
        azure_test_end_call(&call);
    }
}

/* A blob that comes while blocks are cleared away stays. */
TEST(test_clear)
{
#define LEFT BLOCKS("", BLOCK("MDA=", "1"))
    static const struct {
        const char *answers[6];
        int rc;
        const char *error;
    } rows[] = {
        {{LEFT, "404 N|", "201 C|ETag: \"0x7\"|", "202 A|"}, 0, NULL},
        {{LEFT, "404 N|", "201 C|ETag: \"0x7\"|", "412 P|"}, 0, NULL},
        {{LEFT, "404 N|", "201 C|ETag: \"0x7\"|", "404 N|"}, 0, NULL},
        {{LEFT, "404 N|", EXISTS, "200 OK|ETag: \"0x7\"|"}, -ACT_TEMPORARY, "written there meanwhile"},
        {{LEFT, "404 N|", NULL, EXISTS, "200 OK|x-ms-meta-act_upload: {upload}|ETag: \"0x7\"|", "202 A|"}, 0, NULL},
        {{LEFT, "200 OK|Content-Length: 0|"}, -ACT_FAIL, "it is an object"},
        {{NO_BLOB}, -ACT_NOT_FOUND, "BlobNotFound"},
        {{LEFT, "403 F|"}, -ACT_DENIED, "HTTP 403"},
    };

    for (size_t i = 0; i < COUNT(rows); i++) {
        struct store_call call = call_of(STORE_CLEAR, "k");
        size_t n = ANSWERS(rows[i]);
        int rc = run_with(NULL, &call, rows[i].answers, n);
        assert_row(i, rc, rows[i].rc);
        if (rc) {
            assert_contains(act_error_text(&err), rows[i].error);
        } else {
            assert_contains(request(2), "\r\nIf-None-Match: *\r\n");
            assert_contains(request(n - 1), "DELETE /acct/cont/k HTTP");
            assert_contains(request(n - 1), "\r\nIf-Match: \"0x7\"\r\n");
        }
        azure_test_end_call(&call);
    }
}

/* ---- without a server */

TEST(test_open)
{
    static const struct {
        const char *account, *container, *endpoint, *key;
        bool fine;
    } rows[] = {
        {"acct", "cont", NULL, KEY, true},
        {"acct", "$root", NULL, KEY, true},
        {"acct", "cont", "https://acct.blob.core.chinacloudapi.cn/", KEY, true},
        {"acct", "cont", NULL, NULL, true},
        {"", "cont", NULL, KEY, false},
        {NULL, "cont", NULL, KEY, false},
        {"a/b", "cont", NULL, KEY, false},
        {"acct", NULL, NULL, KEY, false},
        {"acct", "ab", NULL, KEY, false},
        {"acct", "Cont", NULL, KEY, false},
        {"acct", "-cont", NULL, KEY, false},
        {"acct", "co--nt", NULL, KEY, false},
        {"acct", "co/nt", NULL, KEY, false},
        {"acct", "cont", "acct.blob.core.windows.net", KEY, false},
        {"acct", "cont", "ftp://host", KEY, false},
        {"acct", "cont", "https://", KEY, false},
        {"acct", "cont", "https://host?sv=1", KEY, false},
        {"acct", "cont", "https://user@host", KEY, false},
        {"acct", "cont", NULL, "not base64!", false},
    };

    for (size_t i = 0; i < COUNT(rows); i++) {
        struct store_azure_options options = {.account = rows[i].account,
                                              .container = rows[i].container,
                                              .endpoint = rows[i].endpoint,
                                              .key = rows[i].key};
        struct store *store = NULL;
        int rc = store_azure_open(http, &options, &store, &err);
        if (rc != (rows[i].fine ? 0 : -ACT_CONFIG))
            fail_msg("row %zu: %d", i, rc);
        store_free(store);
    }
}

/* Whose a credential is decides where it may go; a stranger never gets a URL to copy from. */
TEST(where_credentials_go)
{
    static const struct {
        const char *endpoint, *key;
        bool lent, own;
        int rc;
        bool copies; /* the service may be told to fetch from another one */
    } rows[] = {
        {NULL, KEY, true, false, 0, true},
        {"http://127.0.0.1:10000/acct", KEY, true, false, -ACT_DENIED, false},
        {"https://127.0.0.1:10000/acct", KEY, true, false, -ACT_DENIED, false},
        {"http://127.0.0.1:10000/acct", KEY, true, true, 0, false},
        {"http://127.0.0.1:10000/acct", KEY, false, false, 0, false},
        {"http://127.0.0.1:9/acct", KEY, true, false, 0, true},
        {"https://trusted.example", KEY, true, false, 0, true},
        {"https://elsewhere.example", KEY, true, false, -ACT_DENIED, false},
        {"https://elsewhere.example", KEY, true, true, -ACT_DENIED, false},
        {"https://elsewhere.example", KEY, false, false, 0, false},
        {"https://elsewhere.example", NULL, false, false, 0, false},
        {"http://elsewhere.example", KEY, true, false, -ACT_DENIED, false},
        {"http://elsewhere.example", KEY, false, false, -ACT_DENIED, false},
        {"http://0.0.0.0:10000/acct", KEY, false, false, -ACT_DENIED, false},
        {"http://trusted.example", KEY, false, false, 0, true},
        {"http://elsewhere.example", NULL, false, false, 0, false},
    };

    setenv("ACT_TRUSTED_HOSTS", "trusted.example, 127.0.0.1:9", 1);
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct store_azure_options options = {.account = "acct",
                                              .container = "cont",
                                              .endpoint = rows[i].endpoint,
                                              .key = rows[i].key,
                                              .secret_is_lent = rows[i].lent,
                                              .is_own = rows[i].own,
                                              .file = "a.yaml"};
        struct store *store = NULL;
        int rc = store_azure_open(http, &options, &store, &err);
        assert_row(i, rc, rows[i].rc);
        if (rc == -ACT_DENIED)
            assert_contains(act_error_text(&err), "'endpoint' of 'a.yaml'");
        if (rc == 0 && store_can(store, STORE_PUT_FROM) != rows[i].copies)
            fail_msg("row %zu: copies", i);
        store_free(store);
    }
    setenv("ACT_TRUSTED_HOSTS", TRUSTED, 1);
}

TEST(test_keys)
{
    static const char *const good[] = {"a",   "a/b",  "a//b", "a b", "tab\t", "folder/", "\xf0\x9f\x8e\x89",
                                       "..a", ".hid", "a.b/c"};
    static const char *const bad[] = {"",     "/a",    "a\\b",  "a/..", "./a",          "a.", "a./b",
                                      "a\rb", "a\x01", "a\x7f", "\xff", "\xef\xbf\xbe", "..."};
    struct store_azure_options options = {.account = "acct", .container = "cont", .key = KEY};
    struct store *store = NULL;
    struct act_buf key = {0};

    assert_ok(store_azure_open(http, &options, &store, &err), err);
    assert_string_equal(store_name(store), "blob:acct/cont");
    for (size_t i = 0; i < COUNT(good); i++)
        assert_null(store_key_problem(store, good[i]));
    for (size_t i = 0; i < COUNT(bad); i++)
        if (!store_key_problem(store, bad[i]))
            fail_msg("'%s' is not refused", bad[i]);
    for (size_t i = 0; i < 1024; i++)
        act_buf_adds(&key, "\xc3\xa9");
    assert_null(store_key_problem(store, key.data));
    act_buf_addc(&key, 'x');
    assert_non_null(store_key_problem(store, key.data));
    act_buf_release(&key);
    for (size_t i = 0; i < 254; i++)
        act_buf_adds(&key, i ? "/x" : "x");
    assert_null(store_key_problem(store, key.data));
    act_buf_adds(&key, "/x");
    assert_non_null(store_key_problem(store, key.data));
    act_buf_release(&key);
    store_free(store);
}

TEST(test_url)
{
    struct store_azure_options options = {.account = "acct", .container = "cont", .key = KEY};
    struct store *store = NULL;
    char *url = NULL;

    assert_ok(store_azure_open(http, &options, &store, &err), err);
    assert_ok(store_url(store, "a b", "r", 3600, &url, &err), err);
    assert_true(act_starts_with(url, "https://acct.blob.core.windows.net/cont/a%20b?"));
    assert_contains(url, "sr=b");
    assert_contains(url, "spr=https&");
    free(url);
    store_free(store);

    options = (struct store_azure_options){.account = "acct", .container = "cont", .sas = "?sv=1&sig=x"};
    assert_ok(store_azure_open(http, &options, &store, &err), err);
    assert_int_equal(store_url(store, NULL, "rl", 3600, &url, &err), -ACT_DENIED);
    assert_contains(act_error_text(&err), "account_key");
    assert_contains(act_error_text(&err), "login");
    struct store_call call = {
        .op = STORE_URL, .key = "", .url = {.permissions = "rl", .life_s = 3600, .share_sas = true}};
    assert_ok(store_do(store, &call, &err), err);
    assert_string_equal(call.url.text, "https://acct.blob.core.windows.net/cont?sv=1&sig=x");
    assert_false(call.url.ends);
    store_call_release(&call);
    store_free(store);
}

static int azure_test_setup(void **state)
{
    (void)state;
    unsetenv("ACT_AZURE_API_VERSION");
    setenv("ACT_TRUSTED_HOSTS", TRUSTED, 1);
    engine = engine_new(NULL);
    http = http_new(engine, &(struct http_options){.max_retries = 2});
    return 0;
}

static int azure_test_teardown(void **state)
{
    (void)state;
    http_free(http);
    engine_free(engine);
    return 0;
}

TEST_MAIN(azure_test_setup, azure_test_teardown)
