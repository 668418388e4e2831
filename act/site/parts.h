/* parts.h - a package as the parts that the site lacks.
 *
 * The site keeps the packages of earlier runs (packages/, which "a prune" clears). One of them is the base: what a new
 * package has in common with it is not sent. Both sides know an entry of a zip by an id, which follows from its record
 * in the table of contents: name, CRC, lengths, mode. Bringing a package goes like this, "->" being the way there:
 *
 *   ->  its SHA-256, and as a sketch of it the least of its ids
 *   <-  "it is needed", the base of which most of these are, and all ids of that
 *   ->  steps: entries of the base to copy, then what the package has between them; and the bytes of the latter
 *   <-  "it is there", or "send it whole"
 *
 * The site puts the zip together, its table of contents included, and publishes it only if its SHA-256 is right. So
 * ids may be short: what is wrong in a base, or not what its id says, costs another way, never a wrong package.
 */
#ifndef ACT_SITE_PARTS_H
#define ACT_SITE_PARTS_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/hash.h"
#include "base/text.h"
#include "site/exchange.h"
#include "site/frame.h"
#include "site/site.h"

enum {
    PARTS_SKETCH = 64,                 /* ids */
    PARTS_ID_BYTES = sizeof(uint64_t), /* on the way */
    PARTS_RECORD_OFFSET = 42,          /* where a record says, in four bytes, where its entry is */
    PARTS_IDS_MAX_BYTES = 1 << 20,     /* of a base, as many as come with any answer: more entries make no base */
};

/* An entry: its bytes, its header among them, and its record. Both end where those of the next one begin. */
struct parts_entry {
    uint64_t id, at;
    size_t record;
};
/* A zip whose entries follow each other in the order of its table, as those of packages do. */
struct parts {
    int fd;
    uint64_t size, table_at;
    size_t table_len;
    char *table;
    struct parts_entry *v; /* n of them, and one that stands for the end */
    size_t n;
};
/* Opens a zip and reads its table of contents; *out is to be released. False: it cannot be read, is no such zip, or has
 * 4 GiB or more, and there is nothing to release. */
bool parts_open(const char *path, struct parts *out);
void parts_release(struct parts *parts);

/* Appends the ids of all entries. */
void parts_add_ids(const struct parts *parts, struct act_buf *out);
/* Appends the least PARTS_SKETCH of them, in order. */
void parts_add_sketch(const struct parts *parts, struct act_buf *out);

/* Some entries of the base, then some of the package itself. Either may be none. */
struct parts_step {
    size_t base_first, base_n, own_first, own_n;
};
/* Makes the package of what is in the base, by its ids, and what is not. *out is new. Returns how many entries are
 * copied. */
size_t parts_plan(const struct parts *own, const struct act_buf *base_ids, struct parts_step **out, size_t *out_n);

/* here_parts.c: the site's side */

/* Adds to an answer a base for the package of a request, whose first part is the sketch of it, and all ids of that. */
void here_offer_base(const struct site *site, const struct frame *request, json_t *answer, struct act_buf *out_ids);

/* Makes a package by the steps of the request, with what follows it in the channel, all of which it takes unless the
 * result is below 0 and *out_channel_rc as well. *out_whole: the base was not there any more, or is not what it was:
 * there is no package. */
int here_put_together(const struct site *site, struct channel *channel, const json_t *request, bool *out_whole,
                      int *out_channel_rc, struct act_error *err) ACT_NODISCARD;

/* wire_parts.c: the client's side */

/* A package that may have to be brought, and how. */
struct wire_package {
    char *path;
    char sha256[ACT_SHA256_HEX];
    int64_t bytes;
    struct parts parts; /* n 0: there are none, and so no sketch */
    struct act_buf sketch;
    char base[ACT_SHA256_HEX]; /* what the site offered; "": it is brought whole */
    struct act_buf base_ids;
    struct file_range *ranges; /* of path, which are sent */
};
/* Describes the package at path. The description belongs to the connection until the next call. sha256 may be "". */
int wire_package_of(struct site *site, const char *path, const char *sha256, struct wire_package **out,
                    struct act_error *err) ACT_NODISCARD;
void wire_package_free(struct wire_package *package);
/* Adds to a request which package it needs; asks_for_base: also its sketch. It takes the first part of the request. */
void wire_package_name(const struct wire_package *package, bool asks_for_base, struct exchange *x);
/* Returns whether the answer to that says that the package is needed, and takes the base that it offers. */
bool wire_package_is_needed(struct wire_package *package, struct exchange *x);
/* Makes the request that brings it: made of the base that was offered, or whole if there is none. The request reads
 * the ranges of package when it is sent. */
struct exchange wire_package_bring(struct wire_package *package);

#endif
