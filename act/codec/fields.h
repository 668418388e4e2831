/* fields.h - the members of a record, said once: a table from which follow how it is written as JSON, read, checked and
 * released.
 *
 *     static const struct field job_rows[] = {
 *         FIELD_VERSION(1, FIELD_REQUIRED),
 *         FIELD_TEXT(struct job, id, "job", .flags = FIELD_REQUIRED, .good = job_is_id, .must = "a job's number"),
 *         FIELD_INT(struct job, tries, "tries", .max = 100, .flags = FIELD_RARE),
 *     };
 *     static const struct fields job_fields = FIELDS("the job", struct job, job_rows, NULL);
 *
 * Members are written in the order of the rows. What is read comes from outside: a member of another type, or a number
 * out of bounds, is an error that names it; unknown members are ignored. The macros check at compile time that a row
 * fits the type of its member.
 */
#ifndef ACT_CODEC_FIELDS_H
#define ACT_CODEC_FIELDS_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

enum field_kind {
    FIELD_KIND_VERSION, /* of the record: no member */
    FIELD_KIND_TEXT,    /* char *: any bytes, as codec_json_bytes_new() writes them */
    FIELD_KIND_CHARS,   /* char[]: one line, cut between characters where it is too long */
    FIELD_KIND_INT,     /* int, within min to max */
    FIELD_KIND_INT64,   /* int64_t, within min to max */
    FIELD_KIND_BOOL,
    FIELD_KIND_WORD,  /* an enum without negative values, by its words */
    FIELD_KIND_TEXTS, /* struct act_strv, of at least min texts */
    FIELD_KIND_JSON,  /* json_t *: an object */
    FIELD_KIND_GROUP, /* an object whose members belong to the same struct */
    FIELD_KIND_LIST,  /* a pointer to records and their count, a size_t */
    FIELD_KIND_ARRAY, /* an array of records and their count, an int; what is too much for it is not read */
};

enum field_flags {
    FIELD_REQUIRED = 1, /* it must be there, and not null */
    FIELD_RARE = 2,     /* it is not written if it has its usual value; a group: if its first row has */
    FIELD_OR_NULL = 4,  /* it is written as null then */
    FIELD_SECRET = 8,   /* a text that is wiped when it is released */
    FIELD_ANY_WORD = 16 /* a word that is not known means the usual value */
};

struct fields;

struct field {
    const char *key;
    enum field_kind kind;
    unsigned flags;
    size_t offset, size;      /* where the member is; chars: its bytes; an array: its records at most */
    size_t offset_n;          /* where the count of a list is */
    int64_t min, max;         /* max 0: the greatest number of the type */
    int64_t usual;            /* the value of a number or a word that is not there; other kinds: empty */
    const char *const *words; /* n_words of them; a bool may have two */
    size_t n_words;
    const struct fields *of;              /* what a group or each record of a list has */
    bool (*good)(const char *text);       /* must be true of each text that is read; may be NULL */
    const char *must;                     /* what the value must be, for messages; NULL: what follows from its kind */
    bool (*left_out)(const void *record); /* tells that the member of this record is not written; may be NULL */
};

struct fields {
    const char *what; /* for messages: "the run specification", "folder" */
    size_t size;      /* of the struct */
    const struct field *v;
    size_t n;
    /* Checks what members must be to one another when all are read; may be NULL. */
    int (*check)(const void *record, struct act_error *err);
};

/* Returns the record as JSON, a new reference. */
json_t *fields_to_json(const struct fields *fields, const void *record);
/* Reads a record that owns nothing yet; release it in any case. After a failure it is as if the object had been empty.
 * A newer version is an error that says so. */
int fields_from_json(const struct fields *fields, const json_t *json, void *out, struct act_error *err) ACT_NODISCARD;
/* Gives all members of a record that owns nothing their usual values. */
void fields_init(const struct fields *fields, void *out);
/* Frees what the record owns, and does fields_init(). */
void fields_release(const struct fields *fields, void *record);

/* Returns an array of n records, a new reference. */
json_t *fields_list_to_json(const struct fields *fields, const void *records, size_t n);
/* Frees n records with what they own. */
void fields_list_release(const struct fields *fields, void *records, size_t n);

/* ---- rows: what follows the key are designated initialisers of struct field */

#define FIELDS_COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* A struct fields: the rows of all members of the struct type. */
#define FIELDS(what, type, rows, check)                                                                                \
    {                                                                                                                  \
        what, sizeof(type), rows, FIELDS_COUNT(rows), check                                                            \
    }

/* The offset of a member; does not compile unless it has that type. */
#define FIELD_OFFSET(s, member, type) (offsetof(s, member) + 0 * sizeof(_Generic(&((s *)0)->member, type(*) : (char)0)))
#define FIELD_ARRAY_OFFSET(s, member, type)                                                                            \
    (offsetof(s, member) + 0 * sizeof(_Generic(&((s *)0)->member, type(*)[FIELDS_COUNT(((s *)0)->member)] : (char)0)))

#define FIELD_VERSION(version, flags_)                                                                                 \
    {                                                                                                                  \
        "version", FIELD_KIND_VERSION, flags_, .min = 1, .max = (version)                                              \
    }
#define FIELD_TEXT(s, member, ...)                                                                                     \
    {                                                                                                                  \
        .kind = FIELD_KIND_TEXT, .offset = FIELD_OFFSET(s, member, char *), .key = __VA_ARGS__                         \
    }
#define FIELD_CHARS(s, member, ...)                                                                                    \
    {                                                                                                                  \
        .kind = FIELD_KIND_CHARS, .offset = FIELD_ARRAY_OFFSET(s, member, char), .size = sizeof(((s *)0)->member),     \
        .key = __VA_ARGS__                                                                                             \
    }
#define FIELD_INT(s, member, ...)                                                                                      \
    {                                                                                                                  \
        .kind = FIELD_KIND_INT, .offset = FIELD_OFFSET(s, member, int), .key = __VA_ARGS__                             \
    }
#define FIELD_INT64(s, member, ...)                                                                                    \
    {                                                                                                                  \
        .kind = FIELD_KIND_INT64, .offset = FIELD_OFFSET(s, member, int64_t), .key = __VA_ARGS__                       \
    }
#define FIELD_BOOL(s, member, ...)                                                                                     \
    {                                                                                                                  \
        .kind = FIELD_KIND_BOOL, .offset = FIELD_OFFSET(s, member, bool), .key = __VA_ARGS__                           \
    }
#define FIELD_WORD(s, member, words_, ...)                                                                             \
    {                                                                                                                  \
        .kind = FIELD_KIND_WORD, .offset = FIELD_OFFSET(s, member, unsigned), .words = (words_),                       \
        .n_words = FIELDS_COUNT(words_), .key = __VA_ARGS__                                                            \
    }
#define FIELD_TEXTS(s, member, ...)                                                                                    \
    {                                                                                                                  \
        .kind = FIELD_KIND_TEXTS, .offset = FIELD_OFFSET(s, member, struct act_strv), .key = __VA_ARGS__               \
    }
#define FIELD_JSON(s, member, ...)                                                                                     \
    {                                                                                                                  \
        .kind = FIELD_KIND_JSON, .offset = FIELD_OFFSET(s, member, json_t *), .key = __VA_ARGS__                       \
    }
#define FIELD_GROUP(of_, ...)                                                                                          \
    {                                                                                                                  \
        .kind = FIELD_KIND_GROUP, .of = (of_), .key = __VA_ARGS__                                                      \
    }
#define FIELD_LIST(s, member, n_member, type, of_, ...)                                                                \
    {                                                                                                                  \
        .kind = FIELD_KIND_LIST, .offset = FIELD_OFFSET(s, member, type *),                                            \
        .offset_n = FIELD_OFFSET(s, n_member, size_t), .of = (of_), .key = __VA_ARGS__                                 \
    }
#define FIELD_ARRAY(s, member, n_member, type, of_, ...)                                                               \
    {                                                                                                                  \
        .kind = FIELD_KIND_ARRAY, .offset = FIELD_ARRAY_OFFSET(s, member, type),                                       \
        .size = FIELDS_COUNT(((s *)0)->member), .offset_n = FIELD_OFFSET(s, n_member, int), .of = (of_),               \
        .key = __VA_ARGS__                                                                                             \
    }

#endif
