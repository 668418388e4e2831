#include "run/environments.h"

#include "base/text.h"
#include "codec/fields.h"

const struct environment_source environment_sources[] = {
    {"requirements.txt", NULL, "requirements"},
    {"uv.lock", "pyproject.toml", "uv"},
    {"pylock.toml", NULL, "pylock"},
    {"poetry.lock", "pyproject.toml", "poetry"},
    {"pixi.lock", "pixi.toml", "pixi"},
    {"pixi.lock", "pyproject.toml", "pixi"},
    {"conda-lock.yml", NULL, "conda"},
    {"environment.yml", NULL, "conda"},
    {0},
};

const struct environment_source *environment_source_named(const char *conda)
{
    for (const struct environment_source *s = environment_sources; s->file; s++)
        if (act_streq(s->tool, "conda") && act_streq(s->file, conda))
            return s;
    return NULL;
}

static const struct field about_rows[] = {
    FIELD_VERSION(1, FIELD_REQUIRED),
    FIELD_TEXT(struct environment_about, file, "from"),
    FIELD_TEXT(struct environment_about, node, "node"),
    FIELD_TEXT(struct environment_about, image, "image"),
    FIELD_INT64(struct environment_about, made_unix_s, "made"),
    FIELD_INT64(struct environment_about, took_ms, "took_ms"),
    FIELD_INT(struct environment_about, packages, "packages"),
};
static const struct fields about_fields =
    FIELDS("what an environment was made from", struct environment_about, about_rows, NULL);

void environment_about_release(struct environment_about *about)
{
    fields_release(&about_fields, about);
}

json_t *environment_about_to_json(const struct environment_about *about)
{
    return fields_to_json(&about_fields, about);
}

int environment_about_from_json(const json_t *json, struct environment_about *out, struct act_error *err)
{
    return fields_from_json(&about_fields, json, out, err);
}
