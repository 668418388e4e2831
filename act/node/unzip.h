/* unzip.h - the package back to a tree. The zip is hostile until proved otherwise. */
#ifndef ACT_NODE_UNZIP_H
#define ACT_NODE_UNZIP_H

#include <stdbool.h>

#include "base/error.h"

/* Unpacks zip into the folder target, which must not exist or be empty, unless over: then files and links are replaced
 * by those of the package, and everything else is kept. sha256 (64 hex digits) must be that of the zip; NULL: not
 * checked. Files, folders and symbolic links come back with their modes. A link is made as it is, even one that leads
 * elsewhere, as in virtual environments; nothing is ever written through one. Works on as many threads as there are
 * processors.
 *
 * Refused: what zip_open() refuses, entries below a link, data that is longer or shorter than declared or has
 * another CRC, more data than the disk has room for. What was unpacked before an error stays; it is removed if the
 * SHA-256 differs, unless over. */
int node_unzip(const char *zip, const char *sha256, const char *target, bool over, struct act_error *err) ACT_NODISCARD;

/* Does the same in a separate process that is confined to this task (see confine.h). The caller has no threads, like
 * all children of the agent. */
int node_unzip_apart(const char *zip, const char *sha256, const char *target, bool over,
                     struct act_error *err) ACT_NODISCARD;

#endif
