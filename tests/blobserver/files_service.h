/* files_service.h - the operations of the File service on what files.h holds. */
#ifndef BLOBSERVER_FILES_SERVICE_H
#define BLOBSERVER_FILES_SERVICE_H

#include "files.h"

/* Does what a request asks for and fills in the reply, which was cleared. */
void files_service(struct request *r, struct reply *reply);

/* ---- for the operations among themselves; all are called with the lock held */

/* The share of the request, or NULL and an error in the reply. */
struct share *its_share(const struct request *r, struct reply *reply);
/* The directory of the request, or NULL and an error in the reply. */
struct node *its_directory(const struct request *r, struct reply *reply);
/* "2026-11-20T09:00:00.0000000Z" */
enum { FILE_TIME = 40 };
void file_time(int64_t ticks, char out[FILE_TIME]);
#define PERMISSION_KEY "9212185477508673717*1658283376881248060"

enum { RANGE_MAX = 4 << 20 }; /* of Put Range, and of a range whose MD5 is asked for */

struct place {
    struct share *share;
    struct node *parent; /* NULL for the root */
    struct node *node;   /* NULL: nothing is there */
    char name[1024];     /* in the parent */
};

/* Whether a header is "true". */
bool wants(const struct request *r, const char *name);
/* Finds what the request's path names; false and an error when its parent is not there. Names keep dots at their end
 * when keep_dots. */
bool find_place(const struct request *r, struct reply *reply, bool keep_dots, struct place *p);
/* A new file in place of what is there, with the times of another one (NULL: now) where the request has none; takes the
 * version over. NULL and an error when a header is wrong. */
struct node *replace_file(const struct request *r, struct reply *reply, const struct place *p, struct version *v,
                          const struct node *times);
/* Puts bytes in place of as many others from a place on; takes the content over. */
int store_range(const struct request *r, struct reply *reply, const struct place *p, uint64_t from,
                struct content *bytes);

/* ---- files_copy.c */

/* Copy File, to a place that may be written. */
int copy_file(struct request *r, struct reply *reply, const struct place *p);
/* Put Range From URL, of n bytes. */
int put_range_from_url(struct request *r, struct reply *reply, const struct place *p, uint64_t from, uint64_t n);

/* ---- files_list.c */

int list_shares(struct request *r, struct reply *reply);
int list_directory(struct request *r, struct reply *reply);

#endif
