/* yaml_edit.h - changing one value in the text of a YAML document: all else stays as it is, byte for byte, comments and
 * order included.
 *
 * The places of values are those that libyaml reports. What comes out is read again and compared with what was asked
 * for: a form in which this cannot be done (an alias or a merge key in the way, a comment inside of what would be
 * replaced) is refused with -ACT_CONFIG, and nothing is lost.
 *
 * A path is the names of maps in one another, "docker.image": a name with a dot in it cannot be reached.
 */
#ifndef ACT_CODEC_YAML_EDIT_H
#define ACT_CODEC_YAML_EDIT_H

#include <stdbool.h>

#include "base/error.h"
#include "codec/yaml.h"

/* Gives the key that value, where it is or, if it is not there, at the end of its map; maps above it are made. name:
 * for messages. *out: the new text, a new string. */
int yaml_edit_set(const char *text, const char *name, const char *path, const struct yaml *value, char **out,
                  struct act_error *err) ACT_NODISCARD;
/* Removes the key, with the comment behind it, and the maps that are empty then. *out is NULL if it is not there. */
int yaml_edit_unset(const char *text, const char *name, const char *path, char **out,
                    struct act_error *err) ACT_NODISCARD;

/* Whether the text has characters in it that YAML, but nobody who types them, takes for the end of a line (U+0085,
 * U+2028, U+2029) or refuses (U+FEFF, control characters). */
bool yaml_has_special(const char *text);

/* A value as YAML in one line, for any place in a document. New string; NULL: text that YAML cannot hold. */
char *yaml_flow_text(const struct yaml *value);

#endif
