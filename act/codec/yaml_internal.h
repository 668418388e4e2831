/* yaml_internal.h - between the values of YAML (yaml.c) and what reads them (yaml_read.c). */
#ifndef ACT_CODEC_YAML_INTERNAL_H
#define ACT_CODEC_YAML_INTERNAL_H

#include "codec/yaml.h"

/* Makes an empty value of that kind, which belongs to the file of other. */
struct yaml *yaml_new_beside(const struct yaml *other, enum yaml_kind kind);

#endif
