/* object.h - for object.c, part.c and commit.c: what they share to move one object. copy.h has a diagram of it.
 *
 *   object.c  what becomes of it next: blocks that are there already, parts, the end
 *   part.c    one part: read, hashed, written
 *   commit.c  the end: is it whole, may it replace what is there
 */
#ifndef ACT_TRANSFER_OBJECT_H
#define ACT_TRANSFER_OBJECT_H

#include "transfer/copy.h"

/* ---- object.c */

size_t object_part_len(const struct object *o, uint32_t index);
/* Returns whether its MD5 needs all parts in order. */
bool object_is_chained(const struct object *o);
/* Records why it cannot be finished; it ends when nothing of it is in flight. */
void object_fail(struct object *o, enum object_outcome how, const struct act_error *error);
/* Begins o->call, which is filled in but for done. done notes what came of it and says which phase is next; then it
 * calls object_call_ended(), which goes on. */
void object_call(struct object *o, struct store *store, void (*done)(struct store_call *call));
void object_call_ended(struct object *o);
/* Counts a part as written; `resumed`: it was already there. */
void object_count_written(struct object *o, uint32_t index, bool resumed);
/* Goes on with its phase when nothing of the object is in flight. May free it. */
void object_settle(struct object *o);

/* ---- part.c */

void object_start_part(struct object *o, uint32_t index);

/* ---- commit.c */

/* Ends MOVE when all parts are written, and checks that the whole is what the source has. */
void object_finish(struct object *o);
/* The phases after it. DROP does not touch the destination itself. */
void object_sign(struct object *o);
void object_commit(struct object *o);
void object_look_at_destination(struct object *o);
void object_drop(struct object *o);
/* Returns whether the MD5 of the whole, if known, and the CRC-64 `crc64` match the source's; if not, the object has
 * failed. */
bool object_agrees(struct object *o, bool has_crc64, uint64_t crc64);
/* Returns whether a condition failed because another object is there by now, and not because a service is busy or
 * ill. */
bool object_is_another(const struct act_error *error);
/* Returns the condition of a call that replaces only what was listed. */
struct store_condition object_condition(const struct object *o);
/* Returns whether a call failed because of that condition, or because blocks are gone. */
bool object_is_not_as_listed(const struct store_call *call);
/* Notes why, and that LOOK comes next. */
void object_note_refusal(struct object *o, const struct act_error *error);
struct store_attributes object_attributes(const struct object *o);
/* Returns the call that asks the source for a URL by which another service can read it. */
struct store_call object_url_call(const struct object *o);
/* Returns the URL that it gave: new string, secret, or NULL. */
char *object_take_url(struct store_call *call);

#endif
