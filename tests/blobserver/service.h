/* service.h - the operations of the Blob service on what blobs.h holds. */
#ifndef BLOBSERVER_SERVICE_H
#define BLOBSERVER_SERVICE_H

#include "auth.h"

/* Does what a request asks for and fills in the reply, which was cleared. */
void service(struct request *r, struct reply *reply);
/* The same with the lock already held for writing and no checks of a body; for the parts of a batch. */
void service_part(struct request *r, struct reply *reply);

/* ---- for the operations among themselves; all are called with the lock held */

/* The container of the request, or NULL and an error in the reply. */
struct container *its_container(const struct request *r, struct reply *reply);
/* The blob of the request, or NULL and an error in the reply. */
struct version *its_version(const struct request *r, struct reply *reply);

/* If-Match and its kin against a version (NULL: there is none). Returns 0 or the status of the error. */
int check_read(const struct request *r, struct reply *reply, const struct version *v);
int check_write(const struct request *r, struct reply *reply, const struct version *v);
/* Those of the source of a copy. */
int check_source(const struct request *r, struct reply *reply, const struct version *v);

/* Takes x-ms-blob-content-*, x-ms-meta-* and the tier from the headers; false and an error when they are invalid. */
bool take_properties(const struct request *r, struct reply *reply, struct version *v);
bool take_metadata(const struct request *r, struct reply *reply, struct text *meta);

/* The body of the request, which has none afterwards. */
struct content *take_body(struct request *r);

/* Puts a version in place of what is there, conditions permitting, with its ETag in the reply; takes the reference. */
int store_version(const struct request *r, struct reply *reply, struct version *v, int status);
/* Puts a block among the uncommitted ones, taking over the content. */
int store_block(const struct request *r, struct reply *reply, struct content *content);

/* "bytes=a-b" of a blob of some size. 0: none given; 1: [from, from + n); -1: outside. */
int parse_range(const char *range, uint64_t size, uint64_t *from, uint64_t *n);

void reply_copy(struct reply *reply, const struct version *v);
void reply_metadata(struct reply *reply, const struct text *meta);
void reply_etag(struct reply *reply, uint64_t etag, int64_t modified);

/* Parts of a listing. A marker is opaque: base64 of the name that is next, which has to be encoded in a URL. */
void list_name(struct text *t, const char *name);
void list_element(struct text *t, const char *name, const char *value);
void list_marker(struct text *t, const char *name);
/* An entry behind start (the name that the page begins with; "": the first one) of a listing that has no end, and its
 * name in out. */
void list_endless(struct text *t, const char *element, const char *prefix, const char *start, char *out, size_t cap);
bool list_read_marker(const char *marker, char *name, size_t cap);
/* The page's size; 0 when what was asked for is out of range. */
long list_page_size(const struct request *r);

int list_blobs(struct request *r, struct reply *reply);
int list_containers(struct request *r, struct reply *reply);
int delete_batch(struct request *r, struct reply *reply);
int put_block_list(struct request *r, struct reply *reply);
int get_block_list(struct request *r, struct reply *reply);
/* Copy Blob, Put Blob From URL */
int copy_blob(struct request *r, struct reply *reply);
int put_block_from_url(struct request *r, struct reply *reply);
/* Makes a request of the URL of a source; false when it is not of this server. url is changed. */
bool parse_source(const struct request *r, struct request *source, char *url, char *account, size_t cap);
/* Who may read the source: a signature in its URL, or where that is enough the key of the account that both are in.
 * Returns 0 or the status of the error. */
int check_source_access(struct request *r, struct reply *reply, struct request *source, bool key_is_enough);
/* A copy says of its source what went wrong there. */
int source_failed(struct reply *reply, const struct reply *source, int status, const char *code);
/* Against the checksum that the client expects of what is copied. Returns 0 or the status of the error. */
int check_source_content(const struct request *r, struct reply *reply, const struct content *c);
bool has_metadata(const struct request *r);
/* The copy has an id and is under way for as long as the request says, when it is not done at once. */
void start_copy(const struct request *r, struct reply *reply, struct version *v, bool at_once);
/* Get User Delegation Key */
int give_delegation_key(struct request *r, struct reply *reply);

/* The port that URLs of this server name; for the sources of copies. */
void service_port(int port);

#endif
