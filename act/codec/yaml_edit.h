/* yaml_edit.h - changes one value in the text of a YAML document. All else stays as it is, byte for byte, comments and
 * order included.
 *
 * libyaml reports where values stand. The new text is read again and compared with what was asked for: a form in which
 * this cannot be done (an alias or a merge key in the way, a comment inside the replaced text) is refused with
 * -ACT_CONFIG, and nothing is lost.
 *
 * A path names maps inside one another, "docker.image". It cannot reach a name with a dot in it.
 */
#ifndef ACT_CODEC_YAML_EDIT_H
#define ACT_CODEC_YAML_EDIT_H

#include <stdbool.h>

#include "base/error.h"
#include "codec/yaml.h"

/* Gives the key at path the value, where it is or, if it is not there, at the end of its map, behind the comments that
 * stand there; makes the maps above it. name: for messages. *out: the new text, a new string. */
int yaml_edit_set(const char *text, const char *name, const char *path, const struct yaml *value, char **out,
                  struct act_error *err) ACT_NODISCARD;
/* Removes the key at path with the comment behind it, and the maps that are empty then. *out is NULL if it is not
 * there. */
int yaml_edit_unset(const char *text, const char *name, const char *path, char **out,
                    struct act_error *err) ACT_NODISCARD;

/* Tells whether the text has characters that YAML, but nobody who types them, takes for the end of a line (U+0085,
 * U+2028, U+2029) or refuses (U+FEFF, control characters). */
bool yaml_has_special(const char *text);

/* Returns value as YAML in one line that may stand anywhere in a document, a new string; NULL: YAML cannot hold its
 * text. */
char *yaml_flow_text(const struct yaml *value);

#endif
