/* azure_meta.c - attributes of objects as metadata of blobs, in the forms that other tools use.
 *
 *   mtime         rclone: RFC 3339 with nanoseconds
 *   modtime       azcopy: nanoseconds since 1970 (read only)
 *   permissions   azcopy: st_mode as a decimal number; with a leading 0 it is octal (read only)
 *   is_symlink    azcopy, blobfuse2: "true", the bytes are the target
 *   hdi_isfolder  everybody: "true" on an empty blob named like the folder
 *   act_crc64     ours: CRC-64/NVME of all bytes, 16 hex digits, with blobs that were written in blocks
 *
 * act_crc64 cannot outlive the content it was computed of: whatever writes content (Put Blob, Put Block List,
 * Copy Blob) replaces all metadata as well, or takes it along with the content. Set Blob Metadata leaves the
 * content alone, and tools that use it to change a time write back the rest as they read it.
 */
#include <strings.h>
#include <sys/stat.h>

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/crc64.h"
#include "base/units.h"
#include "store/azure.h"

#define META "x-ms-meta-"

void azure_set_metadata(struct http_headers *headers, const struct store_attributes *attr)
{
    char time[ACT_TIME_TEXT], crc64[ACT_CRC64_HEX];

    if (attr->mtime_ns) {
        act_time_to_iso_ns(attr->mtime_ns, time);
        http_header_set(headers, META "mtime", time);
    }
    if (attr->mode >= 0)
        http_header_setf(headers, META "permissions", "%u",
                         (attr->kind == STORE_FOLDER ? S_IFDIR : S_IFREG) | ((unsigned)attr->mode & 0777));
    if (attr->crc64) {
        act_crc64_to_hex(*attr->crc64, crc64);
        http_header_set(headers, META "act_crc64", crc64);
    }
}

void azure_set_attributes(struct http_headers *headers, const struct store_attributes *attr)
{
    azure_set_metadata(headers, attr);
    if (attr->kind == STORE_SYMLINK)
        http_header_set(headers, META "is_symlink", "true");
    if (attr->kind == STORE_FOLDER)
        http_header_set(headers, META "hdi_isfolder", "true");
}

static int mode_from_text(const char *text)
{
    char *end = NULL;

    errno = 0;
    unsigned long mode = strtoul(text, &end, text[0] == '0' ? 8 : 10);
    return errno || end == text || *end || *text == '-' ? -1 : (int)(mode & 0777);
}

void azure_take_metadata(struct store_entry *entry, const char *name, const char *value)
{
    int64_t ns = 0;

    if (strcasecmp(name, "mtime") == 0 && act_time_from_iso_ns(value, &ns))
        entry->mtime_ns = ns;
    else if (strcasecmp(name, "modtime") == 0 && entry->mtime_ns == 0 && act_int_from_text(value, &ns))
        entry->mtime_ns = ns;
    else if (strcasecmp(name, "permissions") == 0)
        entry->mode = mode_from_text(value);
    else if (strcasecmp(name, "act_crc64") == 0)
        entry->has_crc64 = act_crc64_from_hex(value, &entry->crc64);
    else if (strcasecmp(name, "is_symlink") == 0 && strcasecmp(value, "true") == 0)
        entry->kind = STORE_SYMLINK;
    else if (strcasecmp(name, "hdi_isfolder") == 0 && strcasecmp(value, "true") == 0)
        entry->kind = STORE_FOLDER;
}

void azure_take_etag(struct store_entry *entry, const char *etag)
{
    const char *quote = etag && *etag && *etag != '"' && !act_starts_with(etag, "W/") ? "\"" : "";

    if (etag && strlen(etag) + 3 <= sizeof(entry->etag))
        snprintf(entry->etag, sizeof(entry->etag), "%s%s%s", quote, etag, quote);
}

void azure_take_md5(struct store_entry *entry, const char *md5)
{
    if (md5 && strlen(md5) == sizeof(entry->md5) - 1)
        memcpy(entry->md5, md5, sizeof(entry->md5));
}

void azure_take_time(struct store_entry *entry, const char *date)
{
    if (!date || !act_time_from_http(date, &entry->last_modified_s))
        entry->last_modified_s = 0;
}

int azure_take_size(uint64_t *out, const char *text, struct act_error *err)
{
    int64_t size = 0;

    if (!act_int_from_text(text, &size) || size < 0)
        return act_error_set(err, ACT_FAIL, "the size '%.40s'", text);
    *out = (uint64_t)size;
    return 0;
}

bool azure_is_encoded(xml_attributes attributes)
{
    for (; *attributes; attributes += 2)
        if (strcmp(attributes[0], "Encoded") == 0 && strcmp(attributes[1], "true") == 0)
            return true;
    return false;
}

int azure_take_name(char **io, const char *text, bool encoded, struct act_error *err)
{
    if (*text == '\0' || (encoded && strstr(text, "%00")))
        return act_error_set(err, ACT_FAIL, "a name that is empty or contains a NUL byte");
    free(*io);
    *io = encoded ? http_decode(text) : act_strdup(text);
    return 0;
}

void azure_md5_of(const void *bytes, size_t len, char out[ACT_MD5_BASE64])
{
    struct act_md5 md5;

    act_md5_init(&md5);
    act_md5_add(&md5, bytes, len);
    act_md5_done(&md5, out);
}

void azure_take_key(struct store_entry *entry, const char *name)
{
    bool slash = act_ends_with(name, "/");

    if (entry->size == 0 && slash)
        entry->kind = STORE_FOLDER;
    else if (entry->size != 0 && entry->kind == STORE_FOLDER)
        entry->kind = STORE_FILE;
    if (entry->kind == STORE_FOLDER && entry->mode >= 0)
        entry->mode = store_folder_mode((unsigned)entry->mode);
    entry->slashed = slash && entry->kind == STORE_FOLDER;
    free(entry->key);
    entry->key = entry->kind == STORE_FOLDER && !slash ? act_sprintf("%s/", name) : act_strdup(name);
}

/* Takes when the content of a file on a share was written last, in steps of 100 ns. Who mounts the share writes
 * bytes and leaves metadata and properties alone: those describe the bytes only while the time is the one that was
 * written with them. The time of a folder changes with what is put into it. Returns whether metadata and properties
 * are outdated. */
static bool is_outdated(struct store_entry *entry, const char *last_write)
{
    enum { STEP_NS = 100 };
    int64_t ns = 0;

    if (!last_write || !act_time_from_iso_ns(last_write, &ns) || (entry->kind == STORE_FOLDER && entry->mtime_ns))
        return false;
    if (entry->mtime_ns && entry->mtime_ns / STEP_NS == ns / STEP_NS)
        return false;
    entry->mtime_ns = ns;
    entry->has_crc64 = false;
    return true;
}

void azure_fill(struct store_entry *entry, const char *name, uint64_t size, int status,
                const struct http_headers *headers)
{
    const char *of_blob = http_header_get(headers, "x-ms-blob-content-md5");
    const char *md5 = of_blob ? of_blob : http_header_get(headers, "x-ms-content-md5");
    const char *etag = http_header_get(headers, "ETag");

    store_entry_release(entry);
    entry->size = size;
    for (size_t i = 0; i < headers->n; i++)
        if (strncasecmp(headers->v[i].name, META, strlen(META)) == 0)
            azure_take_metadata(entry, headers->v[i].name + strlen(META), headers->v[i].value);
    entry->grows = act_streq(http_header_get(headers, "x-ms-blob-type"), "AppendBlob");
    azure_take_key(entry, name);
    azure_take_etag(entry, etag);
    /* of a range, Content-MD5 would be that of the range */
    if (!is_outdated(entry, http_header_get(headers, "x-ms-file-last-write-time")))
        azure_take_md5(entry, md5 || status == 206 ? md5 : http_header_get(headers, "Content-MD5"));
    azure_take_time(entry, http_header_get(headers, "Last-Modified"));
}

/* ---- names */

size_t azure_count_units(const char *text, size_t len)
{
    const unsigned char *c = (const unsigned char *)text;
    size_t n = 0;

    for (size_t i = 0; i < len; i++)
        n += (c[i] & 0xc0) == 0x80 ? 0 : c[i] >= 0xf0 ? 2 : 1;
    return n;
}

const char *azure_alias_problem(const char *key)
{
    const char *problem = strchr(key, '\\') ? "contains a backslash, which Blob Storage takes for '/'" : NULL;

    for (const char *s = key; *s && !problem;) {
        size_t n = strcspn(s, "/");
        problem = n ? store_segment_problem(s, n) : NULL;
        if (n && !problem && s[n - 1] == '.')
            problem = "contains a segment that ends in '.', which Blob Storage drops";
        s += n + (s[n] == '/');
    }
    return problem;
}

static size_t count_segments(const char *key)
{
    size_t n = 0;

    for (const char *s = key; *s; n++)
        s += strcspn(s, "/") + (strchr(s, '/') != NULL);
    return n;
}

const char *azure_text_problem(const char *key, const char *controls)
{
    if (*key == '\0')
        return "is empty";
    if (*key == '/')
        return "is absolute";
    if (!act_utf8_valid(key, strlen(key)))
        return "is not valid UTF-8";
    for (const char *c = key; *c; c++)
        if (*c == 0x7f || ((unsigned char)*c < 0x20 && !strchr(controls, *c)))
            return "contains a control character";
    if (strstr(key, "\xef\xbf\xbe") || strstr(key, "\xef\xbf\xbf"))
        return "contains U+FFFE or U+FFFF";
    return NULL;
}

const char *azure_key_problem(const char *key)
{
    const char *problem = azure_text_problem(key, "\t\n");

    if (problem)
        return problem;
    if (azure_count_units(key, strlen(key)) > 1024)
        return "is longer than 1024 characters";
    return count_segments(key) > 254 ? "has more than 254 segments" : azure_alias_problem(key);
}
