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
 *   files.c         opening, looking, deleting, and what all requests have
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

/* What is there under a name. */
enum files_found { FILES_NOTHING, FILES_FILE, FILES_FOLDER, FILES_OTHER_CASE };

/* The state of whatever writes, and of what looks names up. */
struct files_write {
    char *temp;                   /* the temporary name; NULL: none yet */
    char *upload;                 /* BLOCK, BLOCKS, COMMIT, DROP: what the temporary name begins with */
    struct store_attributes attr; /* of the file */
    bool made;                    /* it is ours alone: it goes when the write fails */
    char file_id[32];
    uint64_t sent; /* bytes of the data */
    uint64_t size; /* of the file that is made */
    char md5[ACT_MD5_BASE64];
    struct store_sums sums; /* the caller's plus the data, for when it has arrived */
    bool summed;
    bool mismatch; /* the data has another MD5 than the call says */
    void (*sums_there)(struct azure_op *op);
    int damaged;                                  /* how often a range arrived damaged */
    bool replaces;                                /* the rename may replace what is there */
    bool checked;                                 /* what is there is what the call wants there */
    bool again;                                   /* its folder was gone, and is made again */
    struct http_headers kept;                     /* COPY: the metadata of the source */
    int64_t poll_ms;                              /* COPY */
    const char *folder;                           /* the key whose parents are made or looked at, */
    char *asked, *bare;                           /* the one that is asked for, the key of a folder without slash */
    void (*failed)(struct azure_op *op);          /* op->failed, while a folder is asked for */
    void (*parents_there)(struct azure_op *op);   /* what follows then, */
    void (*written)(struct azure_op *op);         /* once all data is written, */
    void (*then)(struct azure_op *op);            /* or once something is known */
    void (*give_up)(struct azure_op *op, int rc); /* or it cannot be found out; NULL: files_fail() */
    enum files_found found;
    char *other;                        /* FILES_OTHER_CASE: that name */
    char *looked_up;                    /* the key of which it is asked */
    char *match;                        /* the ETag that it must have; NULL: any */
    void (*ready)(struct azure_op *op); /* BLOCK: once its upload is ready */
    struct files_list *walk;            /* LIST: while names on the way to it are looked at */
    struct files_upload *preparing;     /* BLOCK: the upload that it makes ready for all */
    struct act_error refused;           /* why it failed, while its temporary file is removed */
};

/* ---- files.c */

const struct store_ops *files_ops(void);
struct files *files_new(void);
void files_free(struct files *files, struct engine *engine); /* NULL is fine */
/* For azure.c: the headers that all requests to a share have. */
void files_set_headers(struct azure_op *op);
/* For build: method and URL of a file, of a folder (its key ends in '/', or is "") or of something of them; query may
 * be NULL. */
void files_request(struct azure_op *op, const char *method, const char *key, const char *query);
void files_request_folder(struct azure_op *op, const char *method, const char *key, const char *query);
/* Whether the current response says that there is nothing of this name and kind. */
bool files_is_missing(const struct azure_op *op);
/* The state of an op that writes, made when it is first asked for. */
struct files_write *files_state(struct azure_op *op);
/* The file that a request of another one names, with what permits to read it. New string, secret. */
char *files_source_url(const struct azure_op *op, const char *key);
/* Requests that the object at key has this ETag (NULL: any), then goes on; else ends the op. */
void files_check_match(struct azure_op *op, const char *key, const char *etag, void (*then)(struct azure_op *op));

/* ---- files_name.c */

const char *files_key_problem(const char *key);
/* Likewise, why the service may take the key for another one; the key may be that of a temporary file. */
const char *files_alias_problem(const char *key);
/* Whether the last segment of a key is a temporary name. */
bool files_is_temp(const char *key);
bool files_is_journal(const char *key);
/* What the temporary names of an upload begin with, which are beside the key; the rest makes each unlike any that was
 * there before. New strings. */
char *files_upload_of(const char *key, const struct store_upload_id *upload);
char *files_temp_of(const char *upload);
/* A temporary name beside the key that belongs to no upload. New string. */
char *files_temp(const char *key);
/* The folder that a key is in, with its slash; "": the share. New string. */
char *files_parent(const char *key);
/* For build: asks for the names that begin so, in any capitals; then takes them. Returns the negative code of the error
 * that is in call->error. */
void files_request_names(struct azure_op *op, const char *start);
int files_take_names(struct azure_op *op, const char *start, struct store_page *out);
/* Finds out what is there under this name, in which capitals do not count; sets found and other, then goes on. */
void files_look_up(struct azure_op *op, const char *key, void (*then)(struct azure_op *op));
/* What is read is there under op->file->other only: sets the error. */
int files_other_name(struct azure_op *op);
/* What is written is there in other capitals, or as something else: sets the error. */
int files_refuse_name(struct azure_op *op, const char *key, enum files_found found, const char *other);

/* ---- files_dir.c */

/* Goes on once all folders that key lies in are there, else ends the op. */
void files_make_parents(struct azure_op *op, const char *key, void (*then)(struct azure_op *op));
/* Goes on unless one of the folders that key lies in, or is, has its name there in other capitals: then ends the op.
 * What is not there, or cannot be looked at, is left to what follows. */
void files_check_folders(struct azure_op *op, const char *key, void (*then)(struct azure_op *op));
/* Folders may have been removed: they are made again when they are needed. */
void files_forget_folders(struct files *files);
void files_free_folders(struct files *files);
/* PUT of a folder. */
void files_put_folder(struct azure_op *op);

/* ---- files_write.c */

void files_put(struct azure_op *op);
void files_copy(struct azure_op *op);
/* For build: sets when the file of a PUT or COMMIT was written last. */
void files_set_times(struct azure_op *op);
/* Makes the folders, and in them the temporary file, of write->size bytes, which replaces one that is there. */
void files_make(struct azure_op *op, void (*then)(struct azure_op *op));
/* Writes the data of a PUT or BLOCK to the temporary file, then goes on. */
void files_send(struct azure_op *op, void (*then)(struct azure_op *op));
/* Gives the temporary file its name, as the condition of the call permits, and ends the op. */
void files_put_in_place(struct azure_op *op);
/* Ends the op and the call, with the error that is in call->error. */
void files_fail(struct azure_op *op, int rc);

/* ---- files_upload.c */

void files_block(struct azure_op *op);
void files_commit(struct azure_op *op);
void files_blocks(struct azure_op *op);
void files_drop(struct azure_op *op);
void files_clear(struct azure_op *op);
void files_free_uploads(struct files *files);
/* BLOCK, COMMIT: what was sent of the upload is not there any more. Ends the op, with ACT_FACT_BLOCKS_MISSING. */
void files_blocks_gone(struct azure_op *op);
/* The op that made an upload ready failed, with the error in call->error; those that wait for it do, too. */
void files_upload_failed(struct azure_op *op);
/* COMMIT: the file is in its place; removes what told of its blocks, and ends the op. */
void files_upload_ended(struct azure_op *op);

/* ---- files_list.c */

void files_list(struct azure_op *op);
/* Nobody comes back to it; it goes when nothing of it is in flight. */
void files_abandon_walk(struct files_list *walk);
/* Whether the call looks at what a listing has just named. */
bool files_is_listed(const struct store_call *call);
/* Waits for what is asked for ahead. */
void files_free_walks(struct files *files, struct engine *engine);
/* Takes a page of the listing of one folder. dir: its key, with slash, "" the share. Entries have whole keys, those of
 * folders end in '/' and are STORE_PREFIX. */
int files_read_page(const struct act_buf *text, const char *dir, struct store_page *out, struct act_error *err);

#endif
