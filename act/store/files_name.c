/* files_name.c - names on a share.
 *
 * Source: learn.microsoft.com/rest/api/storageservices/naming-and-referencing-shares--directories--files--and-metadata.
 *
 * A share keeps capitals and does not tell them from small letters: what would take the place of a name in other
 * capitals is refused. A request does not say in which capitals a name is there, but a listing does.
 */
#include <string.h>
#include <strings.h>

#include "base/hash.h"
#include "base/path.h"
#include "store/files.h"

enum { MAX_PATH = 2048, MAX_SEGMENT = 255, MAX_DEPTH = 250, UPLOAD_DIGITS = 32, OWN_DIGITS = 16 };

/* Returns whether a segment is the name of a device of DOS. */
static bool files_name_is_reserved(const char *segment, size_t len)
{
    static const char *const names[] = {"CON",  "PRN",  "AUX",  "NUL",  "CLOCK$", "COM1", "COM2", "COM3",
                                        "COM4", "COM5", "COM6", "COM7", "COM8",   "COM9", "LPT1", "LPT2",
                                        "LPT3", "LPT4", "LPT5", "LPT6", "LPT7",   "LPT8", "LPT9"};

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        if (strlen(names[i]) == len && strncasecmp(segment, names[i], len) == 0)
            return true;
    return false;
}

static const char *files_segment_problem(const char *segment, size_t len)
{
    const char *problem = store_segment_problem(segment, len);

    if (problem)
        return problem;
    if (azure_count_units(segment, len) > MAX_SEGMENT)
        return "contains a segment of more than 255 characters";
    return files_name_is_reserved(segment, len) ? "contains the name of a device, which a share does not take" : NULL;
}

/* Returns the first problem that a segment has, and counts segments in *out_depth. */
static const char *segments_problem(const char *key, const char *(*of)(const char *segment, size_t len),
                                    size_t *out_depth)
{
    const char *problem = NULL;

    *out_depth = 0;
    for (const char *s = key; *s && !problem; ++*out_depth) {
        size_t n = strcspn(s, "/");
        problem = of(s, n);
        s += n + (s[n] == '/');
    }
    return problem;
}

const char *files_alias_problem(const char *key)
{
    size_t depth;

    return segments_problem(key, store_segment_problem, &depth);
}

const char *files_key_problem(const char *key)
{
    const char *problem = azure_text_problem(key, "");
    size_t depth;

    if (problem)
        return problem;
    if (azure_count_units(key, strlen(key)) > MAX_PATH)
        return "is longer than 2048 characters";
    if (strpbrk(key, "\"\\:|<>*?"))
        return "contains one of \" \\ : | < > * ?, which a share does not take";
    problem = segments_problem(key, files_segment_problem, &depth);
    if (!problem && depth > MAX_DEPTH)
        problem = "has more than 250 segments";
    if (!problem && files_is_temp(key))
        problem = "is one that ACT gives to files that are not whole yet";
    return problem;
}

/* ---- temporary names */

bool files_is_temp(const char *key)
{
    const char *name = act_path_basename(key);

    if (!act_starts_with(name, FILES_TEMP))
        return false;
    const char *digits = name + strlen(FILES_TEMP), *rest = digits + strspn(digits, "0123456789abcdef");
    return rest == digits + UPLOAD_DIGITS + OWN_DIGITS && (*rest == '\0' || strcmp(rest, FILES_JOURNAL) == 0);
}

bool files_is_journal(const char *key)
{
    return files_is_temp(key) && act_ends_with(key, FILES_JOURNAL);
}

char *files_parent(const char *key)
{
    size_t len = strlen(key);

    len -= len > 0 && key[len - 1] == '/';
    while (len > 0 && key[len - 1] != '/')
        len--;
    return act_strndup(key, len);
}

static char *upload_beside(const char *key, const uint8_t bytes[UPLOAD_DIGITS / 2])
{
    ACT_AUTOFREE char *parent = files_parent(key);
    char hex[UPLOAD_DIGITS + 1];

    act_hex(bytes, UPLOAD_DIGITS / 2, hex);
    return act_sprintf("%s" FILES_TEMP "%s", parent, hex);
}

char *files_upload_of(const char *key, const struct store_upload_id *upload)
{
    uint8_t bytes[UPLOAD_DIGITS / 2];
    struct act_sha256 hash;

    act_sha256_init(&hash);
    act_sha256_add(&hash, upload->bytes, sizeof(upload->bytes));
    act_sha256_add(&hash, key, strlen(key));
    act_sha256_bytes(&hash, bytes, sizeof(bytes));
    return upload_beside(key, bytes);
}

char *files_temp_of(const char *upload)
{
    uint8_t bytes[OWN_DIGITS / 2];
    char hex[OWN_DIGITS + 1];

    act_random(bytes, sizeof(bytes));
    act_hex(bytes, sizeof(bytes), hex);
    return act_sprintf("%s%s", upload, hex);
}

char *files_temp(const char *key)
{
    uint8_t bytes[UPLOAD_DIGITS / 2];

    act_random(bytes, sizeof(bytes));
    ACT_AUTOFREE char *upload = upload_beside(key, bytes);
    return files_temp_of(upload);
}

/* ---- what is there */

/* Returns the length without the slash of a folder. */
static size_t bare_len(const char *key)
{
    size_t len = strlen(key);

    return len - (len > 0 && key[len - 1] == '/');
}

static void files_take_found(struct files_op *op, const char *wanted, const struct store_page *page)
{
    size_t len = bare_len(wanted), units = azure_count_units(wanted, len);

    op->found = FILES_NOTHING;
    for (size_t i = 0; i < page->n && op->found != FILES_FILE && op->found != FILES_FOLDER; i++) {
        const char *key = page->v[i].key;
        size_t key_len = bare_len(key);
        if (key_len == len && strncmp(key, wanted, len) == 0) {
            op->found = page->v[i].kind == STORE_PREFIX ? FILES_FOLDER : FILES_FILE;
        } else if (azure_count_units(key, key_len) == units) { /* it begins with the name, for the service */
            op->found = FILES_OTHER_CASE;
            act_str_replace(&op->other, key);
        }
    }
}

void files_request_names(struct azure_op *op, const char *start)
{
    ACT_AUTOFREE char *parent = files_parent(start);
    ACT_AUTOFREE char *name = act_strndup(start, bare_len(start));
    ACT_AUTOFREE char *prefix = http_encode(name + strlen(parent), false);
    ACT_AUTOFREE char *query = act_sprintf("comp=list&prefix=%s", prefix);

    files_request_folder(op, "GET", parent, query);
}

int files_take_names(struct azure_op *op, const char *start, struct store_page *out)
{
    ACT_AUTOFREE char *parent = files_parent(start);

    if (!azure_succeeded(op))
        return azure_answer_error(op);
    int rc = files_read_page(&op->http.body_text, parent, out, &op->call->error);
    return rc < 0 ? act_error_prefix(&op->call->error, "%s: unusable answer", azure_what(op)) : 0;
}

static void build_look_up(struct azure_op *op)
{
    files_request_names(op, op->file->looked_up);
}

void files_look_up(struct azure_op *op, const char *key, void (*answer)(struct azure_op *op))
{
    op->file->looked_up = key;
    azure_send_next(op, build_look_up, answer);
}

int files_looked_up(struct azure_op *op)
{
    struct store_page page = {0};
    int rc = files_take_names(op, op->file->looked_up, &page);

    if (rc == 0)
        files_take_found(op->file, op->file->looked_up, &page);
    store_page_release(&page);
    return rc;
}

int files_other_name(struct azure_op *op)
{
    struct act_error *err = &op->call->error;
    int rc = act_error_set(err, ACT_NOT_FOUND, "%s: its name there is '%s'", azure_what(op), op->file->other);

    err->fact = ACT_FACT_OBJECT_MISSING;
    return rc;
}

int files_refuse_name(struct azure_op *op, const char *key, enum files_found found, const char *other)
{
    struct act_error *err = &op->call->error;
    int len = (int)bare_len(key);

    if (found == FILES_OTHER_CASE)
        return act_error_set(err, ACT_FAIL,
                             "%s: '%s' is there, and a share does not tell capitals from small letters; rename one of "
                             "them",
                             azure_what(op), other);
    if (found == FILES_FOLDER)
        return act_error_set(err, ACT_FAIL, "%s: there is a folder of this name", azure_what(op));
    return act_error_set(err, ACT_FAIL, "%s: '%.*s' is a file, not a folder", azure_what(op), len, key);
}
