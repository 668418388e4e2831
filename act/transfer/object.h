/* object.h - for object.c, part.c and commit.c: what they share to move one object. copy.h draws the way.
 *
 *   object.c  what becomes of it next: blocks that are there already, parts, the end
 *   part.c    one part: read, hashed, written
 *   commit.c  the end: is it whole, may it replace what is there
 */
#ifndef ACT_TRANSFER_OBJECT_H
#define ACT_TRANSFER_OBJECT_H

#include "transfer/copy.h"

/* ---- object.c */

void object_free(struct object *o);
size_t object_part_len(const struct object *o, uint32_t index);
/* Records why it cannot be finished; it ends when nothing of it is in flight. */
void object_fail(struct object *o, const struct act_error *error);
/* Begins o->call, which is filled in but for done; done calls object_call_ended() first. */
void object_call(struct object *o, struct store *store, void (*done)(struct store_call *call));
void object_call_ended(struct object *o);
/* Counts a part as written; resumed: it was already there. */
void object_count_written(struct object *o, uint32_t index, bool resumed);
/* Continues when nothing of the object is in flight. May free it. */
void object_settle(struct object *o);

/* ---- part.c */

void object_start_part(struct object *o, uint32_t index);

/* ---- commit.c */

/* Called when all its parts are written. */
void object_finish(struct object *o);
/* Ends it without a COMMIT. What was written is kept for the next time, unless it can never be used. The destination
 * itself is not touched. */
void object_abandon(struct object *o);
/* Whether the bytes received match the source's checksums; if not, the object has failed. md5 "": not computed. */
bool object_agrees(struct object *o, const char *md5, bool has_crc64, uint64_t crc64);
/* Only what was listed is replaced: the condition of a call, whether that is why it failed, and what follows: what is
 * there now may be the same already. */
void object_set_condition(const struct object *o, struct store_call *call);
bool object_is_not_as_listed(const struct store_call *call);
void object_note_refusal(struct object *o, const struct act_error *error);
void object_look_at_destination(struct object *o);
void object_set_attributes(const struct object *o, struct store_call *call);
/* The call that asks the source for a URL by which another service can read it, and the URL it gave: new string,
 * secret, or NULL. */
struct store_call object_url_call(const struct object *o);
char *object_take_url(struct store_call *call);

#endif
