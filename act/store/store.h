/* store.h - object stores behind one interface: Azure Blob Storage, a share of Azure Files, a folder, or the logs of a
 * run.
 *
 * Objects have a key (UTF-8, segments separated by '/', no leading slash), bytes and a few attributes. Every operation
 * is a struct store_call: fill in the inputs, start it, read the outputs once done was called. Every store passes
 * tests/conformance/store_test.c, or logs_test.c if it is only read. To add a store: one file with a struct store_ops,
 * and its function to open it below.
 *
 * The user's local folder is a folder store, too, so an upload, a download and a copy between two clusters are the
 * same thing: objects go from one store to another.
 */
#ifndef ACT_STORE_STORE_H
#define ACT_STORE_STORE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "base/error.h"
#include "base/hash.h"
#include "base/text.h"

struct http;
struct site;
struct store;
struct store_call;

enum store_kind {
    STORE_FILE,
    STORE_SYMLINK,    /* the bytes are the link's target */
    STORE_FOLDER,     /* an empty folder, kept; its key ends in '/' */
    STORE_PREFIX,     /* in a listing with a delimiter only: something lies below this key, which ends in '/' */
    STORE_UNREADABLE, /* in a listing only: nothing but its name is known, see entry.problem. A folder's key ends in
                         '/', and its contents are unknown too */
};

/* The permission bits of mode that are kept for a folder: never set-id, sticky or write permission for others, which
 * without the sticky bit would let anybody replace its contents. The owner can always list it: a folder that nobody can
 * list would be lost. */
int store_folder_mode(unsigned mode);

#define STORE_ETAG 96

/* All that a store knows about an object besides its bytes. */
struct store_entry {
    char *key; /* owned */
    enum store_kind kind;
    uint64_t size;
    int64_t mtime_ns;        /* of the original file; 0: not known */
    int64_t last_modified_s; /* when the store last wrote it; 0: not known */
    int mode;                /* permission bits, for a folder from store_folder_mode(); -1: not known */
    uint64_t crc64;          /* of all bytes, when has_crc64 */
    bool has_crc64;
    size_t came;  /* with the list, of its end: reading that takes no question (store_list.with_ends) */
    bool grows;   /* an append blob, or a log: its bytes never change, but it may grow */
    bool slashed; /* an Azure folder, in a listing: its marker's own name ends in '/' */
    bool filled;  /* a folder that is not empty; only in a listing with whole */
    bool
        leads_out; /* a link of which a folder can be seen to lead out of it, or the folder that it leads to where links
                       are followed; elsewhere it means nothing */
    int problem; /* of STORE_UNREADABLE: errno; EILSEQ: the name is not UTF-8; ELOOP: it leads back to itself; ENXIO: a
                    pipe, a socket or a device; EMLINK: there are links behind links without end */
    char md5[ACT_MD5_BASE64]; /* of all bytes; "": not known */
    char etag[STORE_ETAG];    /* changes with the content, quoted as in HTTP; "": none */
};
void store_entry_release(struct store_entry *entry);
/* Says why an entry is STORE_UNREADABLE. Returns -ACT_PARTIAL. */
int store_entry_problem(const struct store_entry *entry, struct act_error *err);

struct store_page {
    struct store_entry *v;
    size_t n;
    char *next; /* marker of the next page, owned; NULL: this is the last */
};
void store_page_release(struct store_page *page);
/* Adds an empty entry to the end of the page and returns it. It is valid until the next one is added. */
struct store_entry *store_page_add(struct store_page *page);

/* Operations on the object at the key of a call. Those that take or give more have a struct below. */
enum store_op {
    STORE_HEAD, /* looks at it -> entry; -ACT_NOT_FOUND when there is none */
    STORE_GET,
    STORE_PUT,
    STORE_BLOCK,
    STORE_COMMIT,
    STORE_BLOCKS,
    STORE_DROP,
    STORE_DELETE,
    STORE_DELETE_MANY, /* key "" */
    STORE_COPY,
    STORE_PUT_FROM,
    STORE_BLOCK_FROM,
    STORE_LIST,  /* key: a prefix, "" for all */
    STORE_CLEAR, /* key of a leftover, as listed: removes it and never anything else. -ACT_TEMPORARY: it is in use */
    STORE_URL,   /* key ("": of the container) */
    STORE_SYNC,  /* key "": what was put in place since the store was opened survives a power cut, and folders that are
                    to be read-only become so, as they do when the store is freed (folder) */
    STORE_OPS
};

struct store_upload_id {
    uint8_t bytes[16]; /* two uploads with one id have the same source in the same state, or are random */
};

#define STORE_BLOCK_ID   20    /* bytes; all block ids of an object must have one length */
#define STORE_MAX_BLOCKS 50000 /* blocks per object, the limit of Blob Storage */

/* A block of an object. Blocks of an upload have the id upload_id, index (big-endian, 4 bytes). */
struct store_block {
    uint8_t id[STORE_BLOCK_ID];
    uint64_t len;
    bool committed; /* it is part of the current object */
    bool has_crc64;
    uint64_t crc64;
};
/* Gives the id of the block with this index. */
void store_block_id(const struct store_upload_id *upload, uint32_t index, uint8_t out[STORE_BLOCK_ID]);
/* Returns the index of a block of the upload; -1: it belongs to another one. */
int64_t store_block_index(const struct store_upload_id *upload, const struct store_block *block);

/* Running checksums, computed on a worker and carried from call to call by the caller. Start with {0} and
 * act_md5_init(). */
struct store_sums {
    uint64_t crc64;
    bool want_md5;
    struct act_md5 md5;
};
/* Adds these bytes to the sums, if there are any. */
void store_sums_add(struct store_sums *sums, const void *data, size_t len);

/* ---- what several operations take. Strings and buffers stay the caller's and must live until done */

/* Bytes to be written. */
struct store_data {
    const void *bytes;
    size_t len;
    const char *md5;         /* base64; the store verifies it before it keeps anything. NULL: not known */
    const uint64_t *crc64;   /* the store verifies it, too, or gets the MD5 if it does not know it. NULL: not known */
    struct store_sums *sums; /* the bytes are added; NULL: not wanted */
    bool replaces;           /* an object is at the key that may have many of these bytes, at the same places: where a
                                store is far away, only what differs is sent */
};

/* Attributes that are kept with an object. */
struct store_attributes {
    enum store_kind kind;
    int mode;              /* -1: none */
    int64_t mtime_ns;      /* 0: none */
    const char *md5;       /* COMMIT: of the whole object; NULL: not known. PUT takes that of the data */
    const uint64_t *crc64; /* COMMIT: of the whole object; NULL: not known */
};

/* Restricts what a write may replace; {0}: anything. */
struct store_condition {
    const char *if_match; /* an ETag: fail with -ACT_TEMPORARY ("changed") when the object has another */
    bool if_absent;       /* fail with -ACT_PARTIAL ("exists") when there is an object; of a folder: a file */
    bool unmarked;        /* omit the mark by which the store recognizes its own object */
};

/* An object that the service itself reads. */
struct store_source {
    const char *url;   /* secret */
    const char *match; /* ETag that it must have; NULL: any */
};

/* ---- one struct for each operation */

/* STORE_GET: bytes [offset, offset + sink_cap), fewer only at the end -> entry. */
struct store_get {
    uint64_t offset;
    size_t sink_cap;
    void *sink;
    /* Called instead of filling sink (in a store that gives_pieces), with bytes as they arrive, at offset `at` of the
     * range. They may be delivered again from the start. It may start other calls; this call never ends inside it. */
    void (*take)(struct store_call *call, size_t at, const void *data, size_t len);
    struct store_sums *sums; /* the bytes in sink are added; NULL: not wanted */
    const char *if_match;    /* as in struct store_condition */
    /* Bytes of its blocks that are not committed (folder); NULL: of the object. */
    const struct store_upload_id *upload;
    size_t old; /* so many bytes of another state of the object are in sink: in a store with changes_from only what
                   differs comes */
    /* out */
    size_t got;
};

/* STORE_PUT: the whole object -> entry.etag. An existing folder gets the attributes. In a folder store, a folder of
 * another owner keeps its mode; entry has the mode that it has, or will get at the end. */
struct store_put {
    struct store_data data;
    struct store_attributes attr;
    struct store_condition condition;
};

/* STORE_BLOCK: one block of a larger object, in any order. */
struct store_put_block {
    struct store_upload_id upload_id;
    uint32_t index;
    const uint8_t *id; /* STORE_BLOCK_ID bytes instead of upload_id and index; NULL: those (Azure) */
    uint64_t offset;
    struct store_data data;
    /* In a store that takes_pieces: data is a piece of a block of this length; sums are wanted. The last one comes when
     * the others are written, with their sums, so that those become the block's. 0: data is the whole block. */
    uint64_t block_len;
    bool more; /* data is not the last piece */
};

/* STORE_COMMIT: blocks 0..n_blocks-1 become the object -> entry.etag. Until then the old object is unchanged. */
struct store_commit {
    struct store_upload_id upload_id;
    const struct store_block *blocks; /* n_blocks ids instead of those of upload_id; NULL: those (Azure) */
    uint32_t n_blocks;
    uint64_t total; /* bytes of the whole object */
    struct store_attributes attr;
    struct store_condition condition;
    struct store_source source; /* after BLOCK_FROM: the object gets its properties. url NULL: none */
};

/* STORE_BLOCKS: the uncommitted blocks of this upload, to resume it, and (Azure) the current blocks of the object at
 * key. A folder store locks the upload until COMMIT or DROP succeeds or the store is freed, reserves space for total
 * bytes, and keeps the part file unreadable to users who may not read the object; -ACT_TEMPORARY when another process
 * has it or it cannot be locked: use a random id, and if that fails too, do without the call. */
struct store_blocks {
    struct store_upload_id upload_id;
    uint64_t total; /* bytes of the whole object; 0: not known */
    int mode;       /* of the object; 0 or -1: not known */
    /* out */
    struct store_block *found; /* owned by the call */
    size_t n_found;
    size_t id_len;        /* of the blocks at key, of any upload; 0: none (Azure) */
    uint64_t uncommitted; /* bytes of all uncommitted blocks, of any upload (Azure) */
};

/* STORE_DROP: ends an upload without COMMIT, and discards its blocks where possible. */
struct store_drop {
    struct store_upload_id upload_id;
    bool keep; /* only releases them for a later resume */
};

/* STORE_DELETE: a missing object is -ACT_NOT_FOUND. Folder markers with their slash. */
struct store_delete {
    const char *if_match; /* as in struct store_condition */
};

#define STORE_MAX_DELETIONS 256

struct store_deletion {
    const char *key, *if_match; /* the caller's */
    int rc;                     /* as for STORE_DELETE */
    struct act_error error;
};

/* STORE_DELETE_MANY: the call itself fails only if none was attempted. */
struct store_delete_many {
    struct store_deletion *v; /* rc and error of each are set */
    size_t n;                 /* at most STORE_MAX_DELETIONS */
};

/* STORE_COPY: inside the store, with attributes and blocks -> entry.etag. */
struct store_copy {
    const char *source;       /* a key of the same store */
    const char *source_match; /* ETag that it must have; NULL: any (Azure) */
};

/* STORE_PUT_FROM: the whole object, with its properties and metadata -> entry.etag. */
struct store_put_from {
    struct store_source source;
    struct store_condition condition;
};

/* STORE_BLOCK_FROM: one block. */
struct store_block_from {
    struct store_upload_id upload_id;
    uint32_t index;
    struct store_source source;
    uint64_t offset, len; /* of the block in the source */
};

/* STORE_LIST: the objects whose names begin with the key, in byte order. An empty folder is an entry, unless its key is
 * the prefix; so is what cannot be read (STORE_UNREADABLE), unless it is the prefix itself. */
struct store_list {
    const char *marker; /* page.next of the page before; NULL: from the start */
    int max;            /* approximate entries per page, which may be empty; 0: 5000. The last page has no next */
    bool delimiter;     /* one level: STORE_PREFIX entries for what lies deeper */
    bool whole;         /* also folders with something in them: all in a folder store, on Azure those with a marker */
    bool leftovers;     /* what interrupted uploads left, instead of objects; size is what they hold */
    bool ahead;         /* the page after this one will be requested next and may be prefetched */
    bool by_news;       /* it is asked because store_watch() told so: what costs a request may be of a moment ago */
    bool follows;       /* it is asked again and again, with store_watch(): what was told by itself is enough */
    bool with_ends;     /* the ends of the objects are read next: where a question takes long they come with the list,
                           and those that came are given, as they were then, until the next list */
    /* out */
    struct store_page page; /* owned by the call */
};

/* STORE_URL: see store_url(). */
struct store_make_url {
    const char *permissions;
    int64_t life_s;
    /* If nothing can sign, the URL may contain the user's own shared access signature in full. */
    bool share_sas;
    /* out */
    bool ends;     /* it expires after life_s; false: it has no signature of ours */
    bool only_sas; /* it was refused because share_sas is not set */
    char *text;    /* owned by the call; secret */
};

struct store_call {
    enum store_op op;
    const char *key;
    union { /* of the operation; the largest first, so that an initializer without any clears them all */
        struct store_commit commit;
        struct store_get get;
        struct store_put put;
        struct store_put_block block;
        struct store_blocks blocks;
        struct store_drop drop;
        struct store_delete delete;
        struct store_delete_many delete_many;
        struct store_copy copy;
        struct store_put_from put_from;
        struct store_block_from block_from;
        struct store_list list;
        struct store_make_url url;
    };
    /* PUT, COMMIT: may be called once, before done, when the store has consumed the bytes: data, md5, crc64 and sums
     * are the caller's again. What remains is to sync them to disk, together with other objects, and to put the object
     * in place. NULL: it is synced alone, and survives a power cut without SYNC. */
    void (*kept)(struct store_call *call);
    /* Is told of the bytes that have moved over the network since it was last called, as `moves` of an http_call. It
     * starts no call. May be NULL. */
    void (*moves)(struct store_call *call, int64_t bytes);
    void (*done)(struct store_call *call);
    void *arg;

    /* out */
    int rc; /* 0, or the negative code in error */
    struct act_error error;
    struct store_entry entry; /* owned by the call */
};

/* Returns the condition of a write, which lives in the call; {0} for any other operation. */
const struct store_condition *store_condition_of(const struct store_call *call);
/* Starts a call; done is called exactly once, on the engine's loop. */
void store_start(struct store *store, struct store_call *call);
/* Starts the call and runs the engine until it is done. Returns call->rc, with the error copied to err. Does not use
 * call->done and call->arg. */
int store_do(struct store *store, struct store_call *call, struct act_error *err) ACT_NODISCARD;
/* Does the same for n calls at once, each of which has its own result. */
void store_do_many(struct store *store, struct store_call *calls, size_t n);
/* Frees the outputs (not the inputs). The call may then be used again, for another operation with inputs of its own. */
void store_call_release(struct store_call *call);

/* Lets the folder at this key (with its slash), if read-only and ours, be made writable until SYNC or until the store
 * is freed. Other users' folders are left alone. Changes nothing immediately, and nothing at all on Azure. */
void store_open_up(struct store *store, const char *key);

/* Opens an object for reading and closes it, synchronously: 0, or the error that GET would fail with first. Always 0
 * where it would take a request to tell. */
int store_may_read(struct store *store, const char *key, struct act_error *err) ACT_NODISCARD;
/* Tells calls that wait to be batched not to wait any longer: no other will be started before one of them is done. */
void store_hurry(struct store *store);
/* Sets *news to true, on the loop and for as long as the store is open, when LIST has more to tell than at its last
 * call. Whoever looks sets it to false before LIST, so that what comes meanwhile is not lost. Whoever wants to know of
 * other things that are new, such as another log, has to call LIST without news, too. Returns false if the store does
 * not tell (logs of a run). */
bool store_watch(struct store *store, bool *news);
/* From now on a power cut may lose or truncate what is written (folder). */
void store_no_sync(struct store *store);

/* From now on LIST from the root, and GET with the ETag of the listing, follow links that lead out of the folder. A
 * link that leads nowhere, or back to a folder that it is in, is STORE_UNREADABLE. Not for a store that is written
 * to (folder). */
void store_follow_links(struct store *store);

/* Returns "blob:account/container", "file:account/share" or "folder:/path", without secrets. It lives as long as the
 * store. */
const char *store_name(const struct store *store);
/* Returns whether the store has this operation. Some lack PUT_FROM, BLOCK_FROM or SYNC. */
bool store_can(const struct store *store, enum store_op op);
/* Returns how many calls are worth having in flight at once now; at least 1. */
int store_window(const struct store *store);

/* The ways in which stores differ. */
struct store_traits {
    uint64_t max_put;      /* the most bytes that one PUT or BLOCK takes */
    bool sums_are_free;    /* bytes pass through a worker anyway, so that sums cost no extra pass through one */
    bool gives_pieces;     /* GET knows `take` */
    bool takes_pieces;     /* BLOCK takes pieces */
    bool takes_block_ids;  /* BLOCK takes `id`, and COMMIT takes `blocks`, also those that the object already has */
    bool real_folders;     /* folders stay when the last object in them is removed, as on a disk */
    uint64_t changes_from; /* GET knows `old` where it is of so many bytes or more; 0: it does not */
    bool syncs_behind;     /* SYNC waits for the calls that were started before it */
    bool is_far_disk;      /* another machine sees it, and it is as a disk but for that */
    bool is_disk; /* this machine sees it: its ETags have the grain of the clock, new files get the modes that the umask
                     leaves, and no requests are sent */
};
const struct store_traits *store_traits(const struct store *store);

/* Returns why `key` cannot be written to this store, or NULL: a sentence without a subject, "contains a '..'". */
const char *store_key_problem(const struct store *store, const char *key);

/* A URL that grants permissions ("r", "rl", "racwdl") on the object, or on the container if key is NULL, for life_s
 * seconds, without another credential. A store that cannot do this reports it (folder: file:// for permissions "r").
 * An account with only a shared access signature cannot sign: -ACT_DENIED, unless the call of STORE_URL has
 * share_sas. Runs the engine; on the loop use STORE_URL. New string, secret. */
int store_url(struct store *store, const char *key, const char *permissions, int64_t life_s, char **out,
              struct act_error *err) ACT_NODISCARD;

void store_free(struct store *store);

/* ---- the stores that are written to */

/* root: absolute path; made when missing if create. Objects are plain files below it. http only gives the
 * engine. */
int store_folder_open(struct http *http, const char *root, bool create, struct store **out,
                      struct act_error *err) ACT_NODISCARD;

/* The folder store of another machine, behind ssh. There the program of this version, which is brought, serves it. */
struct store_far_options {
    const char *login, *root; /* of the site (site/site.h) */
    const char *folder;       /* an absolute path; or one below the root of the site, which is made when missing */
    const char *first; /* a key without a slash at its end: that is looked for, and listed as a folder, first of all, as
                          the connection is made. NULL: nothing is */
};
/* Connects, and opens the folder there. Errors are those of the connection and of the folder: -ACT_NOT_FOUND if it is
 * not there. A connection that breaks later is made again, as often as requests are tried again (http_options), and
 * what was under way goes on; in the end all calls fail with one -ACT_TEMPORARY, with error.network. */
int store_far_open(struct http *http, const struct store_far_options *options, struct store **out,
                   struct act_error *err) ACT_NODISCARD;
/* Does the same over a connection to store_far_serve(), which cannot be made again. The two descriptors become the
 * store's. */
int store_far_open_fds(struct http *http, int in_fd, int out_fd, struct store **out,
                       struct act_error *err) ACT_NODISCARD;
/* Is the other end: serves the folder store at root (absolute; made when missing if create) until in_fd ends. first: as
 * in the options there, or NULL. An error is also told to the other side. The descriptors become its own. */
int store_far_serve(struct http *http, const char *root, bool create, const char *first, int in_fd, int out_fd,
                    struct act_error *err) ACT_NODISCARD;

struct store_azure_options {
    const char *account, *container; /* the name of the share, if it is one */
    const char *endpoint;  /* "https://acct.blob.core.windows.net", "http://127.0.0.1:10000/devstoreaccount1" */
    const char *key, *sas; /* as for auth_new() */
    bool prefer_sas;
    struct tokens *tokens; /* requests carry the token of a login instead of key or SAS; NULL: they do not */
    bool use_cli;          /* that of the Azure CLI */
    const char *file;      /* that names the endpoint, for messages */
    bool secret_is_lent;   /* key or SAS come from the environment, not from that file */
    bool is_own;           /* that file is the user's own, so the endpoint may be on this machine */
    bool is_share;         /* of Azure Files */
    bool is_checked;       /* the caller knows that the credential may go to the endpoint */
};
/* Sends nothing. A malformed key or endpoint is -ACT_CONFIG; so is a login for an endpoint that is not encrypted;
 * one that the credential must not go to (auth/trusted.h) is -ACT_DENIED. Without a credential requests are
 * anonymous. A service on a host that is not trusted gets no URLs of other stores to copy from: it has no PUT_FROM
 * and BLOCK_FROM. */
int store_azure_open(struct http *http, const struct store_azure_options *options, struct store **out,
                     struct act_error *err) ACT_NODISCARD;

/* ---- stores of a run's logs: only HEAD, GET, and LIST in one page. last_modified_s is by this machine's clock.
 * Objects without `grows` get no more bytes. What the options point at outlives the store, but for the id. They pass
 * tests/conformance/logs_test.c. */

/* Files of a run's folder on a site, or of its folders on several: of two files of one name that of the first site is
 * there. Calls block the loop, as calls of a site do; those to read that were started together are one question. */
struct store_site_options {
    /* Sets *out to the i-th site, connected; NULL: there are no more. Called before each use, in this order. */
    int (*site)(void *arg, size_t i, struct site **out, struct act_error *err);
    void *arg;                  /* outlives the store */
    const char *id;             /* of the run */
    const char *const *folders; /* of it, that are listed and read */
    size_t n_folders;
    size_t n_logs; /* so many of the first folders hold logs, whose ends may come with a list */
    bool grow;
};
struct store *store_site_open(struct http *http, const struct store_site_options *options);

/* Objects that are read by URLs, which hold the credential and end after some time. */
struct store_url {
    char *key, *url; /* owned; url is secret */
};
struct store_urls {
    struct store_url *v;
    size_t n;
    int64_t ended_unix_s; /* when what writes them ended; 0: it has not */
};
void store_urls_add(struct store_urls *urls, const char *key, const char *url);
struct store_urls_options {
    const char *id; /* of the run */
    /* Asks for the URLs as they are now; may run the engine. out is {0}, sorted by the store. */
    int (*ask)(void *arg, const char *id, struct store_urls *out, struct act_error *err);
    void *arg;
    int64_t settle_s; /* bytes may be added for so long after the end, or after others were */
};
/* URLs are asked for by every LIST, and by GET when it has none, or they are no longer accepted (403). Calls that come
 * while they are asked for share the outcome. */
struct store *store_urls_open(struct http *http, const struct store_urls_options *options);

/* Texts that can only be read as a whole, or from their ends: their owner gathers them, and may also give them other
 * keys when it gathers. However many they are, all are in one file without a name. */
struct store_text {
    char *key;                       /* owned; NULL until the owner sets it */
    uint64_t size;                   /* of what can be read: all that came before the last store_texts_flush() */
    int64_t changed_unix_s;          /* 0: not known */
    struct store_stretch *stretches; /* where it is in the file */
    size_t n_stretches;
    struct act_buf pending; /* not in the file yet */
};
struct store_texts { /* {0} has none */
    struct store_text *v;
    size_t n;
    FILE *file; /* NULL: nothing was added yet */
    uint64_t end;
    bool incomplete; /* something could not be gathered: the texts may grow yet, whatever became of the run */
    bool is_whole;   /* they grow no more, though others may come */
};
/* Adds an empty text and returns its place in v. */
size_t store_texts_new(struct store_texts *texts);
/* Adds to the i-th text. Returns 0, or the negative errno of the file. */
int store_texts_add(struct store_texts *texts, size_t i, const char *data, size_t len) ACT_NODISCARD;
/* Lets what was added be read. Returns 0, or the negative errno of the file. */
int store_texts_flush(struct store_texts *texts) ACT_NODISCARD;
void store_texts_release(struct store_texts *texts);
struct store_texts_options {
    const char *id; /* of the run */
    /* Brings the texts up to date; may run the engine. Called by each LIST, and by a GET past their ends. */
    int (*gather)(void *arg, struct act_error *err);
    void (*watch)(void *arg, bool *news); /* store_watch(); NULL: it does not tell */
    void (*close)(void *arg);             /* with the store */
    void *arg;
    const struct store_texts *texts; /* of the owner */
    bool grow;
};
struct store *store_texts_open(struct http *http, const struct store_texts_options *options);

/* The logs of a run in two places: at its platform, and where its nodes have sent them, as
 * "<path>/attempts/<n>/<name>". What the platform does not have is read there; the logs of the last attempt have plain
 * names, those of earlier ones begin with "attempts/<n>/". */
struct store_sent_options {
    const char *id;            /* of the run */
    struct store *live, *sent; /* become the store's */
    const char *path;
    int attempt; /* the last one, as far as is known */
};
struct store *store_sent_open(struct http *http, const struct store_sent_options *options);

#endif
