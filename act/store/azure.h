/* azure.h - for the files of the Azure Storage stores only: containers of Blob Storage, and shares of Azure Files,
 * which have files.h, too.
 *
 * A store_call becomes an azure_op, which goes through phases. Each is a request: azure.c has the table of what makes
 * it and what handles its response, which ends the op or sends the request of the next phase.
 */
#ifndef ACT_STORE_AZURE_H
#define ACT_STORE_AZURE_H

#include "auth/auth.h"
#include "codec/xml.h"
#include "engine/engine.h"
#include "http/http.h"
#include "store/store_internal.h"

struct azure {
    struct store store;
    char *endpoint;  /* without a final slash */
    char *container; /* or share */
    char *version;   /* x-ms-version */
    struct auth *auth;
    char *sas;                           /* secret; NULL when requests are not signed with a SAS */
    int64_t clock_offset_s;              /* the service's clock minus ours, once the service has rejected ours */
    bool no_crc64;                       /* the service turned out not to know x-ms-content-crc64 */
    bool no_batch;                       /* nor Blob Batch, or the credential does not allow it */
    struct azure_ids *ids;               /* see azure_ids.c */
    struct azure_ahead *ahead;           /* see azure_ahead.c */
    struct azure_delegation *delegation; /* see azure_login.c */
    struct files *files;                 /* of a share, see files.h; NULL: it is a container */
};

/* The request that an op sends, or waits for. */
enum azure_phase {
    AZURE_OF_SHARE, /* for files.h, whose own phase says what the request does */
    AZURE_HEAD,
    AZURE_HEAD_OF_GET, /* looks instead of a GET that cannot return any bytes */
    AZURE_GET,
    AZURE_HEAD_FOLDER, /* looks at one of the folder's two markers */
    AZURE_HEAD_MARKER, /* looks for the marker that a PUT of a folder may replace */
    AZURE_PUT,
    AZURE_BLOCK,
    AZURE_COMMIT,
    AZURE_PUT_FROM,
    AZURE_BLOCK_FROM,
    AZURE_DESCRIBE, /* sets the metadata of a folder that is more than a marker */
    AZURE_WHOSE,    /* finds out who wrote the blob that is in the way */
    AZURE_SOURCE,   /* looks at the source whose properties a COMMIT takes over */
    AZURE_BLOCKS,
    AZURE_IS_LEFTOVER,  /* CLEAR: lists the blocks that are there */
    AZURE_IS_FREE,      /* looks whether there is a blob, too */
    AZURE_EMPTY,        /* writes an empty blob, which discards the blocks */
    AZURE_WHOSE_EMPTY,  /* looks whether the blob that is there is ours */
    AZURE_DELETE_EMPTY, /* removes the empty blob */
    AZURE_DELETE,
    AZURE_DELETE_FOLDER, /* removes one of the folder's two markers */
    AZURE_BATCH,
    AZURE_COPY_NOW,
    AZURE_COPY_LATER,
    AZURE_COPY_POLL,
    AZURE_LIST,
    AZURE_AHEAD, /* prefetches a page */
    AZURE_KEY,   /* asks for the key that signs URLs for a login */
    AZURE_PHASES,
};

struct azure_op;
/* A request and its response. */
struct azure_exchange {
    void (*build)(struct azure_op *op);  /* fills op->http */
    void (*answer)(struct azure_op *op); /* handles a response of any status */
    void (*failed)(struct azure_op *op); /* no response: call->error says why; NULL: ends the op */
};

struct azure_op {
    struct azure *azure;
    struct store_call *call;
    enum azure_phase phase;
    struct azure_exchange of_share; /* what makes and handles the request of AZURE_OF_SHARE */
    struct http_call http;
    char *what; /* see azure_what() */
    char *blob; /* the blob's name if it is not the key (folder markers) */
    struct act_buf body;
    /* Why a request is sent again, perhaps with another credential. */
    struct token_call token; /* while it waits for a token */
    int endings;             /* how often a token expired before the request could be sent, */
    bool token_ended;        /* as it did this time */
    bool login_renewed;
    bool clock_checked;
    bool ambiguous; /* an earlier try may have succeeded after all */

    /* Says of the marker without a slash, when a folder is deleted, that it is not the one meant, or is gone. */
    enum { BARE_UNKNOWN, BARE_PASSED, BARE_DELETED } bare;

    struct azure_op *next_waiting; /* for a key, the length of ids, a folder or an upload */
    size_t id_len;                 /* of the block ids in the request */
    int id_lookups;

    /* The state of the operation, known to its own file only, which also sets what frees it. */
    union {
        struct azure_write *write; /* of all that write, and of CLEAR */
        struct azure_copy *copy;
        struct azure_batch *batch;
        struct azure_list *list;
        struct azure_looks *left; /* of a LIST whose page is there */
        struct files_op *file;    /* of what is done to a share */
    };
    void (*release)(struct azure_op *op); /* NULL: there is no state */
};

/* ---- azure.c */

/* Returns a new op for `call`, without a request. */
struct azure_op *azure_new_op(struct store *store, struct store_call *call);
/* For struct store_ops. */
int azure_window(const struct store *store);
void azure_close(struct store *store);
/* Starts the op, or starts it over. */
void azure_start(struct azure_op *op);
/* Sends the request of op->phase. */
void azure_send(struct azure_op *op);
/* Goes on to a phase, and sends its request. */
void azure_send_phase(struct azure_op *op, enum azure_phase phase);
/* For the files of a share: sends a request that `build` makes and whose response `answer` handles. */
void azure_send_next(struct azure_op *op, void (*build)(struct azure_op *), void (*answer)(struct azure_op *));
/* Ends the op and the call with `rc`: 0, or the negative code of the error that is in call->error. */
void azure_finish(struct azure_op *op, int rc);
/* Ends the op and the call with the error of the current response. */
void azure_finish_failed(struct azure_op *op);

/* Returns "cannot put 'container/key'", for error texts. It lives as long as the op. */
const char *azure_what(struct azure_op *op);
/* Returns the URL of `blob` (NULL: of the container), without a query. New string. */
char *azure_url(const struct azure *azure, const char *blob);
/* For build: sets method and URL of `blob` (NULL: of the container) with `query` (NULL: none). */
void azure_request(struct azure_op *op, const char *method, const char *blob, const char *query);
/* Returns the op's blob: the key, unless op->blob names another one. */
static inline const char *azure_blob_of(const struct azure_op *op)
{
    return op->blob ? op->blob : op->call->key;
}

/* Returns whether the current response says that the request succeeded. */
static inline bool azure_succeeded(const struct azure_op *op)
{
    return op->http.status / 100 == 2;
}

/* ---- azure_read.c, azure_write.c: what makes a request, and what handles its response */

void azure_build_head(struct azure_op *op);
void azure_answer_head(struct azure_op *op);
/* HEAD instead of a GET that cannot return any bytes. */
void azure_answer_head_of_get(struct azure_op *op);
/* Fills the call's entry from the response to HEAD, whatever kind of blob it is. */
int azure_take_head(struct azure_op *op);
void azure_build_get(struct azure_op *op);
void azure_answer_get(struct azure_op *op);
/* Makes the state of a write. */
void azure_begin_write(struct azure_op *op);
/* From now on the write replaces only the blob that the current response describes, whatever the call says. */
void azure_replace_that(struct azure_op *op);
/* COMMIT: sends this header, too. */
void azure_keep_property(struct azure_op *op, const char *name, const char *value);
/* Returns whether the current response describes the object that azure_set_upload() marked. */
bool azure_is_ours(const struct azure_op *op);
/* PUT and BLOCK: computes the checksums, then sends the request. */
void azure_put(struct azure_op *op);
void azure_block(struct azure_op *op);
void azure_build_put(struct azure_op *op);
void azure_build_block(struct azure_op *op);
void azure_build_commit(struct azure_op *op);
void azure_build_description(struct azure_op *op);
/* Finds out whether the blob in the way of a write is what an earlier try wrote. */
void azure_answer_whose(struct azure_op *op);
/* For build: sets method and URL of Put Block and Put Block From URL for the block `id`. */
void azure_request_block(struct azure_op *op, const uint8_t id[STORE_BLOCK_ID]);
void azure_answer_write(struct azure_op *op);
/* For build: sets the condition on the object to be replaced. */
void azure_set_conditions(struct azure_op *op);
/* Puts a random id into the metadata of the new object, to recognize it later. */
void azure_set_upload(struct azure_op *op);
void azure_build_delete(struct azure_op *op);
void azure_answer_delete(struct azure_op *op);

/* ---- azure_meta.c */

/* Sets the metadata that keeps `attr`. */
void azure_set_attributes(struct http_headers *headers, const struct store_attributes *attr);
/* Sets only those that do not say what kind of object it is. */
void azure_set_metadata(struct http_headers *headers, const struct store_attributes *attr);
/* Takes an item of metadata, whose `name` comes without "x-ms-meta-". */
void azure_take_metadata(struct store_entry *entry, const char *name, const char *value);
void azure_take_etag(struct store_entry *entry, const char *etag);
void azure_take_md5(struct store_entry *entry, const char *md5);
/* Takes Last-Modified; `date` may be NULL or malformed. */
void azure_take_time(struct store_entry *entry, const char *date);
/* Takes a size of a list in XML. */
int azure_take_size(uint64_t *out, const char *text, struct act_error *err);
/* Takes a name of a list in XML, a new string in place of *io, and whether its attributes say that it is encoded. */
int azure_take_name(char **io, const char *text, bool encoded, struct act_error *err);
bool azure_is_encoded(xml_attributes attributes);
/* Writes the MD5 of these bytes as base64. */
void azure_md5_of(const void *bytes, size_t len, char out[ACT_MD5_BASE64]);
/* Decides what a blob is from its size and metadata: an empty one with a trailing slash is a folder. */
void azure_take_key(struct store_entry *entry, const char *name);
/* Fills the entry from the headers of HEAD or GET; size is that of the whole blob. */
void azure_fill(struct store_entry *entry, const char *name, uint64_t size, int status,
                const struct http_headers *headers);

/* Returns why a container cannot have `key`, or NULL. */
const char *azure_key_problem(const char *key);
/* Returns why the service would take `key` for another one, or NULL. */
const char *azure_alias_problem(const char *key);
/* Returns why neither a container nor a share can have `key`, or NULL. The service takes the control characters in
 * `controls`. */
const char *azure_text_problem(const char *key, const char *controls);
/* Characters as the services count them: UTF-16 units. */
size_t azure_count_units(const char *text, size_t len);

/* ---- azure_error.c */

#define AZURE_CODE     64
#define AZURE_SENTENCE 320

/* An error response to a request or to a part of a batch. */
struct azure_refusal {
    int status;
    char code[AZURE_CODE]; /* the service's error code; "": none */
    char message[AZURE_SENTENCE];
    char request_id[64];
    int source_status; /* the status that the service got from the source of a copy; 0: none */
    char source_code[AZURE_CODE];
};
/* Fills it from a response's headers and XML body. */
void azure_read_refusal(struct azure_refusal *out, int status, const struct http_headers *headers, const char *body,
                        size_t len);
struct azure_refusal azure_refusal_of(const struct http_call *http);
/* Sets err from the refusal; returns the negative code. */
int azure_describe(const struct azure *azure, const char *what, const struct azure_refusal *refusal,
                   struct act_error *err);

/* Sets call->error from the current response; returns the negative code. */
int azure_answer_error(struct azure_op *op);
/* Returns whether the response has this error code. */
bool azure_has_code(const struct http_call *http, const char *code);

/* ---- azure_login.c */

/* Returns whether the token was refused and the request is to be sent again with another one. */
bool azure_renew_login(struct azure_op *op);
/* Adds what to do to the error if the login was refused. */
void azure_hint_login(const struct azure_op *op, struct act_error *err);
/* Goes on with a COPY or URL once the login has a key that signs URLs valid for `life_s`; else ends the op. */
void azure_need_delegation(struct azure_op *op, int64_t life_s);
void azure_delegation_free(struct azure_delegation *delegation);
/* Makes a URL as for STORE_URL of `blob` (NULL: of the container). A login must already have its key. */
int azure_mint_url(const struct azure *azure, const char *blob, const char *permissions, int64_t life_s, char **out,
                   struct act_error *err) ACT_NODISCARD;
void azure_make_url(struct azure_op *op);
void azure_build_key(struct azure_op *op);
void azure_answer_key(struct azure_op *op);

/* ---- azure_ids.c */

#define AZURE_ID_MIN 8 /* the shortest id that can identify its upload, in bytes */
#define AZURE_ID_MAX 64

/* Returns the length of block ids that `key` takes: STORE_BLOCK_ID, unless it has ids of another length. */
size_t azure_id_length(const struct azure *azure, const char *key);
/* Sets this length until azure_forget_ids(). */
void azure_set_id_length(struct azure *azure, const char *key, size_t len);
void azure_forget_ids(struct azure *azure, const char *key);
void azure_free_ids(struct azure *azure);
/* Returns the id in its form of `len` bytes, as base64. New string. */
char *azure_encode_id(const uint8_t id[STORE_BLOCK_ID], size_t len);
/* Gives the id that these `len` bytes stand for. Returns false if it cannot be one of the upload. */
bool azure_decode_id(const struct store_upload_id *upload, const uint8_t *form, size_t len, uint8_t id[STORE_BLOCK_ID]);
/* For a block that the service refused because its id is not as long as the existing ones (InvalidBlobOrBlock): finds
 * out their length, once for all blocks refused at the same time, and resends op. */
void azure_fit_ids(struct azure_op *op);

/* ---- azure_copy.c, azure_list.c, azure_blocks.c, azure_batch.c */

void azure_copy(struct azure_op *op);
void azure_build_sync_copy(struct azure_op *op);
void azure_answer_sync_copy(struct azure_op *op);
void azure_build_copy(struct azure_op *op);
void azure_answer_copy(struct azure_op *op);
void azure_answer_copy_status(struct azure_op *op);
void azure_build_put_from(struct azure_op *op);
void azure_build_block_from(struct azure_op *op);
void azure_build_source_head(struct azure_op *op);
void azure_answer_source_head(struct azure_op *op);
void azure_commit(struct azure_op *op);
void azure_list(struct azure_op *op);
void azure_build_list(struct azure_op *op);
void azure_answer_list(struct azure_op *op);
/* Counts how far a listing has come. */
struct azure_pages {
    long n;    /* pages */
    long poor; /* in a row that brought next to nothing; one that brought nothing counts as ten */
};
/* Checks that a listing comes to its end: `next` (NULL: this is the last page) is not the `marker` of the page itself,
 * few pages in a row bring next to nothing (`n` names are on this one), and there are no more than any container fills.
 * The caller has to notice names that come twice. */
int azure_check_page(const char *marker, const char *next, size_t n, struct azure_pages *io, struct act_error *err);
/* Returns the query that requests a page; `marker` "": the first one. New string. */
char *azure_page_query(const struct store_call *call, const char *marker);
/* For build: the request for a page. */
void azure_request_page(struct azure_op *op, const char *query);
/* Starts prefetching the page after the one that op just received, if op says that it will be needed. */
void azure_ahead_start(struct azure_op *op);
void azure_build_ahead(struct azure_op *op);
void azure_answer_ahead(struct azure_op *op);
/* Returns whether the page for `query` was prefetched or is in flight: then azure_answer_list() gets it. */
bool azure_ahead_take(struct azure_op *op, const char *query);
/* Waits for prefetches in flight and frees them. */
void azure_ahead_end(struct azure *azure);
/* Calls that look at entries of a page with HEAD, some at once. */
struct azure_looks;
struct azure_look {
    struct store_call call;
    struct azure_looks *of;
    struct store_entry *entry;
    bool drop; /* the entry does not stay on the page */
};
struct azure_looks {
    struct store *store;
    struct store_page *page;
    size_t most;                                    /* calls at once */
    bool only;                                      /* entries that are not wanted do not stay on the page */
    bool (*wants)(const struct store_entry *entry); /* whether to look at it */
    void (*looked)(struct store_call *call);  /* arg is the look; may start the call for another operation first */
    void (*ended)(struct azure_looks *looks); /* error says whether one failed, and how */
    void *arg;
    struct act_error error; /* the first; code 0: none */
    /* internal */
    struct azure_look *v; /* one for each entry */
    size_t next, running;
};
/* Starts the calls for what is filled in above error. */
void azure_looks_start(struct azure_looks *looks);
/* Ends a look, for `looked`; failed: by the error of its call, so that no further ones start. */
void azure_look_ended(struct azure_look *look, bool failed);
/* Ends a listing with the leftovers on its page. */
void azure_keep_leftovers(struct azure_op *op);
void azure_build_blocks(struct azure_op *op);
void azure_answer_blocks(struct azure_op *op);
void azure_answer_is_leftover(struct azure_op *op);
void azure_answer_is_free(struct azure_op *op);
void azure_build_empty(struct azure_op *op);
void azure_answer_empty(struct azure_op *op);
void azure_answer_whose_empty(struct azure_op *op);
void azure_build_delete_empty(struct azure_op *op);
void azure_answer_deleted(struct azure_op *op);
void azure_batch(struct azure_op *op);
void azure_build_batch(struct azure_op *op);
void azure_answer_batch(struct azure_op *op);
/* No response to the batch came: nobody knows which parts took effect. */
void azure_batch_failed(struct azure_op *op);

#endif
