/* contents.c - what a package holds, to compare it with another. */
#include "package/package.h"

#include <stdlib.h>
#include <string.h>
#include <zip.h>

#include "base/text.h"

enum { MODE_SHIFT = 16 };

void package_contents_release(struct package_contents *contents)
{
    for (size_t i = 0; i < contents->n; i++)
        free(contents->v[i].path);
    free(contents->v);
    *contents = (struct package_contents){0};
}

static int contents_fail(const char *file, zip_error_t *error, struct act_error *err)
{
    return act_error_set(err, ACT_FAIL, "cannot read the package '%s': %s", file, zip_error_strerror(error));
}

static int contents_add_entry(zip_t *zip, zip_uint64_t i, const char *file, struct package_contents *out,
                              struct act_error *err)
{
    zip_uint8_t system;
    zip_uint32_t attributes = 0;
    zip_stat_t st;

    if (zip_stat_index(zip, i, ZIP_FL_ENC_RAW, &st) < 0 ||
        zip_file_get_external_attributes(zip, i, 0, &system, &attributes) < 0)
        return contents_fail(file, zip_get_error(zip), err);
    ACT_PUSH(out->v, out->n,
             (struct package_file){.path = act_strdup(st.name),
                                   .size = st.size,
                                   .crc = st.crc,
                                   .mode = system == ZIP_OPSYS_UNIX ? attributes >> MODE_SHIFT : 0});
    return 0;
}

static int contents_by_path(const void *a, const void *b)
{
    return strcmp(((const struct package_file *)a)->path, ((const struct package_file *)b)->path);
}

int package_contents(const char *file, struct package_contents *out, struct act_error *err)
{
    zip_error_t error;
    int code = 0, rc = 0;
    zip_t *zip = zip_open(file, ZIP_RDONLY, &code);

    *out = (struct package_contents){0};
    if (!zip) {
        zip_error_init_with_code(&error, code);
        rc = contents_fail(file, &error, err);
        zip_error_fini(&error);
        return rc;
    }
    zip_int64_t n = zip_get_num_entries(zip, 0);
    for (zip_int64_t i = 0; rc == 0 && i < n; i++)
        rc = contents_add_entry(zip, (zip_uint64_t)i, file, out, err);
    zip_discard(zip);
    if (out->n > 0)
        qsort(out->v, out->n, sizeof(*out->v), contents_by_path);
    if (rc < 0)
        package_contents_release(out);
    return rc;
}

char *package_text(const char *file, const char *path, size_t max)
{
    zip_stat_t st;
    zip_t *zip = zip_open(file, ZIP_RDONLY, NULL);
    bool fits = zip && zip_stat(zip, path, ZIP_FL_ENC_RAW, &st) == 0 && st.size <= max;
    zip_file_t *entry = fits ? zip_fopen(zip, path, ZIP_FL_ENC_RAW) : NULL;
    char *text = entry ? act_calloc(st.size + 1, 1) : NULL;

    if (text && (zip_fread(entry, text, st.size) != (zip_int64_t)st.size || strlen(text) != st.size))
        act_str_replace(&text, NULL);
    if (entry)
        zip_fclose(entry);
    if (zip)
        zip_discard(zip);
    return text;
}
