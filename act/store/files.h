/* files.h - for the files of the store that is a share of Azure Files only, over plain REST.
 *
 * Source: learn.microsoft.com/rest/api/storageservices/file-service-rest-api.
 *
 * Requests, credentials, retries and errors are those of azure.h. A file is made under a temporary name beside its own
 * (FILES_TEMP), filled in ranges, and renamed when it is whole, so that nothing half-written is ever seen. Attributes
 * are metadata as on Blob Storage, and the time of the last write is the file's own as well.
 *
 * No request takes If-Match, so an ETag is looked at just before the rename or the deletion, and what somebody writes
 * in between is lost. A lease on the file (x-ms-lease-id, x-ms-destination-lease-id) would keep others out meanwhile,
 * but that of a file never ends by itself (Lease File takes no duration but -1): whoever is killed before the rename
 * would leave the file locked for everybody.
 *
 *   files.c         the ways of all operations; looking, deleting, and what all requests have
 *   files_name.c    names: which a share takes, temporary ones, and what is there under a name
 *   files_dir.c     makes the folders that something is put into
 *   files_write.c   ranges, and the rename that puts a file in its place
 *   files_upload.c  files that are written in blocks, and what is left of them
 *   files_list.c    listing, folder by folder
 */
#ifndef ACT_STORE_FILES_H
#define ACT_STORE_FILES_H

#include "store/azure.h"

#define FILES_TEMP    ".act-part-" /* then 48 hex digits: what is not whole yet */
#define FILES_JOURNAL ".blocks"    /* behind that: which blocks of an upload are there */

struct files {
    struct files_folder *folders; /* see files_dir.c */
    struct files_upload *uploads; /* see files_upload.c */
    struct files_list *walks;     /* listings between two pages, see files_list.c */
    size_t listing;               /* folders that are asked for */
    bool idle;                    /* none is any more */
};

/* The kind of thing that a name stands for. */
enum files_found { FILES_NOTHING, FILES_FILE, FILES_FOLDER, FILES_OTHER_CASE };

/* The step that an op is at, or takes next. The phases of an operation are its way: files.c has them, and
 * files_upload.c those that prepare an upload. */
enum files_phase {
    FILES_END,          /* the call has succeeded */
    FILES_HEAD,         /* looks at the object, */
    FILES_EXACT,        /* at the capitals of its name, */
    FILES_ABOVE,        /* and at those of the folders that it lies in */
    FILES_WALK,         /* finds or begins the walk of a listing */
    FILES_PAGE,         /* takes a page from it */
    FILES_SOURCE,       /* checks the ETag of what is copied, */
    FILES_TARGET,       /* and of what is replaced or deleted */
    FILES_DELETE,       /* deletes the object */
    FILES_MAKE_FOLDERS, /* makes the folders that the key lies in, */
    FILES_PUT_FOLDER,   /* and the one that the key names */
    FILES_SUM,          /* computes what the first range is sent with */
    FILES_READY, /* waits until the upload of a block has its temporary file, or prepares that for all who wait */
    FILES_FIND,  /* looks for the temporary file of an upload */
    FILES_MAKE_JOURNAL, /* makes a journal, */
    FILES_MAKE_TEMP,    /* and the temporary file beside it */
    FILES_SIZE,         /* changes the size of that, or finishes it */
    FILES_PREPARED,     /* notes that it is large enough */
    FILES_DATA,         /* sends the data, range by range */
    FILES_RECORD,       /* writes into the journal that the block is there */
    FILES_READ,         /* reads the journal */
    FILES_COPY,         /* asks the service for a copy, */
    FILES_WATCH,        /* and waits until it has made that */
    FILES_NAME,         /* gives the temporary file its name */
    FILES_DROP,         /* removes the temporary file, */
    FILES_FORGET,       /* and the journal */
    FILES_UNDO,         /* removes the temporary file of a call that has failed */
};

/* The state of an op that goes a way. */
struct files_op {
    const enum files_phase *at; /* a place in a way, which ends with FILES_END */

    /* the name that is looked up, and what is there */
    const char *looked_up;
    char *asked; /* a folder */
    bool asking; /* for it, and others may wait for the answer */
    enum files_found found;
    char *other; /* FILES_OTHER_CASE: the name that is there */

    /* the temporary file */
    char *temp;      /* its key; NULL: it has none yet */
    char *upload;    /* what that begins with, if it belongs to an upload */
    bool prepares;   /* the ops that wait for this upload wait for this one */
    bool again;      /* its folder was gone, and was made again */
    bool made;       /* it is ours alone: it goes when the call fails */
    uint64_t size;   /* that it is to have */
    char id[32];     /* that the service gave it; "": none */
    int64_t poll_ms; /* FILES_WATCH */
    struct store_attributes attr;
    struct http_headers kept; /* COPY: the metadata of the source */
    struct act_error refused; /* why the call fails, during FILES_UNDO and while it is found out who renamed the file */

    /* FILES_SUM, FILES_DATA */
    uint64_t sent; /* bytes */
    char md5[ACT_MD5_BASE64];
    bool mismatch;          /* the data has another MD5 than the call says */
    int damaged;            /* how often a range arrived damaged */
    bool summed;            /* so that these are known: */
    struct store_sums sums; /* the caller's plus the data, for when it has arrived */

    /* FILES_NAME */
    bool replaces; /* the rename may replace what is there */
    bool checked;  /* what is in the way was looked at, and the rename sent again */

    struct files_list *walk; /* FILES_ABOVE: the walk that FILES_PAGE goes on with */
};

/* ---- files.c */

extern const struct store_ops files_ops;
struct files *files_new(void);
/* Frees `files` (NULL is fine), and runs `engine` until no listing is under way. */
void files_free(struct files *files, struct engine *engine);
/* For azure.c: sets the headers that all requests to a share have. */
void files_set_headers(struct azure_op *op);
/* For build: sets method and URL of the file or folder at `key`, or of something of it that `query` (NULL: nothing)
 * names. */
void files_request(struct azure_op *op, const char *method, const char *key, const char *query);
/* Does the same for a folder, whose key ends in '/' or is "". */
void files_request_folder(struct azure_op *op, const char *method, const char *key, const char *query);
/* Returns whether the current response says that there is nothing of this name and kind. */
bool files_is_missing(const struct azure_op *op);
/* Returns the URL of the file at `key`, with what permits the service to read it. New string, secret. */
char *files_source_url(const struct azure_op *op, const char *key);
/* Begins the first phase of `way`. */
void files_begin(struct azure_op *op, const enum files_phase *way);
/* Begins the phase behind the current one. */
void files_next(struct azure_op *op);
/* Goes on behind a request that was to succeed: with the next phase, or ends the op with the service's error. */
void files_next_if_succeeded(struct azure_op *op);
/* Ends the op with the error `rc`, which is in call->error; those that wait for it go on or fail, too. */
void files_fail(struct azure_op *op, int rc);
/* Does so with the error of the current response. */
void files_fail_by_answer(struct azure_op *op);

/* ---- files_name.c */

/* Returns why a share cannot have `key`, or NULL. */
const char *files_key_problem(const char *key);
/* Returns why the service may take `key`, which may be that of a temporary file, for another one, or NULL. */
const char *files_alias_problem(const char *key);
/* Returns whether the last segment of `key` is a temporary name. */
bool files_is_temp(const char *key);
/* Returns whether it is that of a journal. */
bool files_is_journal(const char *key);
/* Returns what the temporary names of an upload begin with, which lie beside `key`. New string. */
char *files_upload_of(const char *key, const struct store_upload_id *upload);
/* Returns a temporary name of an upload that nothing had before. New string. */
char *files_temp_of(const char *upload);
/* Returns a temporary name beside `key` that belongs to no upload. New string. */
char *files_temp(const char *key);
/* Returns the folder that `key` is in, with its slash; "": the share. New string. */
char *files_parent(const char *key);
/* For build: asks for the names that begin with `start`, in any capitals. */
void files_request_names(struct azure_op *op, const char *start);
/* Takes these from the response to `out`. Returns 0, or the negative code of the error that is in call->error. */
int files_take_names(struct azure_op *op, const char *start, struct store_page *out);
/* Asks what is there under `key`, which lives until the response, in any capitals; `answer` begins with
 * files_looked_up(). */
void files_look_up(struct azure_op *op, const char *key, void (*answer)(struct azure_op *op));
/* Takes the response: sets found and other. Returns 0, or the negative code of the error that is in call->error. */
int files_looked_up(struct azure_op *op);
/* Sets the error of what was to be read and is there under op->file->other only. */
int files_other_name(struct azure_op *op);
/* Sets the error of what was to be written at `key`, where something is in the way: `found`, and its name `other`. */
int files_refuse_name(struct azure_op *op, const char *key, enum files_found found, const char *other);

/* ---- files_dir.c */

/* FILES_MAKE_FOLDERS and FILES_PUT_FOLDER. */
void files_make_folders(struct azure_op *op);
void files_put_folder(struct azure_op *op);
/* FILES_ABOVE. It leaves what is not there, or cannot be looked at, to what follows. */
void files_check_folders(struct azure_op *op);
/* The op fails: nothing is known of the folder that it asks for, if any. Returns the ops that wait for that folder. */
struct azure_op *files_stop_asking(struct azure_op *op);
/* Lets the ops go on that wait for a folder. */
void files_wake(struct azure_op *waiting);
/* Forgets which folders are there, as some may have been removed: they are made again when they are needed. */
void files_forget_folders(struct files *files);
void files_free_folders(struct files *files);

/* ---- files_write.c */

/* FILES_SUM, FILES_MAKE_TEMP, FILES_DATA, FILES_NAME, FILES_COPY, FILES_WATCH and FILES_UNDO. */
void files_sum(struct azure_op *op);
void files_make_temp(struct azure_op *op);
void files_send(struct azure_op *op);
void files_rename(struct azure_op *op);
void files_copy(struct azure_op *op);
void files_watch(struct azure_op *op);
void files_undo(struct azure_op *op);
/* Ends an op in FILES_UNDO with the error that it failed with. */
void files_undone(struct azure_op *op);
/* For build: sets when the file of a PUT or COMMIT was written last. */
void files_set_times(struct azure_op *op);
/* For build: deletes the temporary file. */
void files_build_delete_temp(struct azure_op *op);
/* Notes the id of the file that the current response tells of. */
void files_keep_id(struct azure_op *op);
/* Goes back to FILES_MAKE_FOLDERS, once, if the current response says that a folder was removed since this store made
 * it. Returns whether it does. */
bool files_make_folders_again(struct azure_op *op);

/* ---- files_upload.c */

/* FILES_READY, FILES_PREPARED, FILES_FIND, FILES_MAKE_JOURNAL, FILES_SIZE, FILES_RECORD, FILES_READ, FILES_DROP and
 * FILES_FORGET. */
void files_get_ready(struct azure_op *op);
void files_prepared(struct azure_op *op);
void files_find(struct azure_op *op);
void files_make_journal(struct azure_op *op);
void files_resize(struct azure_op *op);
void files_record(struct azure_op *op);
void files_read_journal(struct azure_op *op);
void files_drop(struct azure_op *op);
void files_forget(struct azure_op *op);
/* Ends a BLOCK or COMMIT of whose upload something is gone, with ACT_FACT_BLOCKS_MISSING. */
void files_blocks_gone(struct azure_op *op);
/* Ends an op that prepares an upload, and those that wait for it, with the error in call->error. */
void files_upload_failed(struct azure_op *op);
void files_free_uploads(struct files *files);

/* ---- files_list.c */

/* FILES_WALK and FILES_PAGE. */
void files_find_walk(struct azure_op *op);
void files_give_page(struct azure_op *op);
/* Lets a walk go that nobody comes back to, as soon as nothing of it is in flight. */
void files_abandon_walk(struct files_list *walk);
/* Returns whether the call looks at what a listing has just named. */
bool files_is_listed(const struct store_call *call);
/* Frees the walks, and runs `engine` until what they asked for ahead is there. */
void files_free_walks(struct files *files, struct engine *engine);
/* Adds the entries of a page of the listing of one folder to `out`. `dir`: its key, with slash; "": the share. They
 * have whole keys; those of folders end in '/' and are STORE_PREFIX. */
int files_read_page(const struct act_buf *text, const char *dir, struct store_page *out, struct act_error *err);

#endif
