/* xml.h - XML responses of a service as a stream of elements (expat). Entities are never expanded from outside,
 * no DTD is accepted; there are at most 64 levels and 64 KiB of text in one element.
 */
#ifndef ACT_CODEC_XML_H
#define ACT_CODEC_XML_H

#include <stddef.h>

#include "base/error.h"

/* The attributes of an element: name, value, name, value, ..., NULL. Valid during the call. */
typedef const char *const *xml_attributes;

struct xml_handler {
    /* All may be NULL. path is "/EnumerationResults/Blobs/Blob/Name" for the current element. A negative
     * result stops the parsing; the handler has set err then. */
    int (*start)(void *arg, const char *path, xml_attributes attributes, struct act_error *err);
    int (*end)(void *arg, const char *path, const char *text, struct act_error *err); /* text: that directly inside */
};

/* Parses a whole document of len bytes, and calls the handler with arg. A truncated or malformed document is an error
 * ("name:line:column: ..."). */
int xml_parse(const char *text, size_t len, const char *name, const struct xml_handler *handler, void *arg,
              struct act_error *err) ACT_NODISCARD;

#endif
