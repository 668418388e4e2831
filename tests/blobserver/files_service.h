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

int list_shares(struct request *r, struct reply *reply);
int list_directory(struct request *r, struct reply *reply);

#endif
