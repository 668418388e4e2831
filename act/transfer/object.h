/* object.h - for object.c, part.c and commit.c: what one object on its way needs of the three. copy.h draws the way.
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
/* Notes why it cannot be finished; its end comes when nothing of it is under way. */
void object_fail(struct object *o, const struct act_error *error);
/* Begins o->call, which is filled in but for done; done calls object_call_ended() first. */
void object_call(struct object *o, struct store *store, void (*done)(struct store_call *call));
void object_call_ended(struct object *o);
/* A part is where it belongs; resumed: it was there before. */
void object_count_written(struct object *o, uint32_t index, bool resumed);
/* Goes on when nothing of the object is under way. It may be gone then. */
void object_settle(struct object *o);

/* ---- part.c */

void object_start_part(struct object *o, uint32_t index);

/* ---- commit.c */

/* All its parts are where they belong. */
void object_finish(struct object *o);
/* The end without a COMMIT. What was written stays for the next time, unless it can never be of use. The destination
 * itself is not touched. */
void object_abandon(struct object *o);
/* Whether the bytes that came are those that the source says it has; else it has failed. md5 "": not computed. */
bool object_agrees(struct object *o, const char *md5, bool has_crc64, uint64_t crc64);
/* Only what was listed is replaced: the condition of a call, whether that is why it failed, and what follows: what is
 * there now may be the same already. */
void object_set_condition(const struct object *o, struct store_call *call);
bool object_is_not_as_listed(const struct store_call *call);
void object_note_refusal(struct object *o, const struct act_error *error);
void object_look_at_destination(struct object *o);
void object_set_attributes(const struct object *o, struct store_call *call);
/* Asks the source for a URL that another service can read by; what it said, a new string, secret, or NULL. */
struct store_call object_url_call(const struct object *o);
char *object_take_url(struct store_call *call);

#endif
