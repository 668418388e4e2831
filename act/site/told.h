/* told.h - the other side of site_news: what it has told its client of the files of a run, so that it can tell by
 * itself, in answer to a request that waits, what has changed since.
 *
 * One list at a time: a client that follows a second run asks for whole lists in turn. The answer comes as soon as
 * something has changed, or another request has come, which so never waits; it is one frame of at most 1 MiB, and
 * nothing more is sent before the client asks again. Changes are seen by inotify, and those that other machines make
 * on a shared file system by a look each second.
 */
#ifndef ACT_SITE_TOLD_H
#define ACT_SITE_TOLD_H

#include <jansson.h>

#include "base/error.h"
#include "base/text.h"
#include "site/frame.h"
#include "site/site.h"

struct told_list;

/* Remembers a list that is told now, which it takes, and numbers it as files->told. */
void told_note(struct site *site, const char *id, const struct act_strv *folders, struct site_files *files);
/* Waits for changes of the list that the request names, and adds them to the answer: rows as of a list, whose ends go
 * into data; names that are gone; and the number of what is told now, or none if the list is not the last one. */
int told_wait(struct site *site, struct channel *channel, const json_t *request, json_t *answer, struct act_buf *data,
              struct act_error *err) ACT_NODISCARD;
void told_free(struct told_list *told);

#endif
