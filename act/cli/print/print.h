/* print.h - results on stdout: text, names from outside, JSON. Whatever comes from outside is made harmless for a
 * terminal; a pipe gets the bytes. */
#ifndef ACT_CLI_PRINT_PRINT_H
#define ACT_CLI_PRINT_PRINT_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "base/error.h"
#include "base/units.h"
#include "store/store.h"
#include "transfer/transfer.h"

struct cli;

/* How an error begins that says that stdout could not be written. */
#define CLI_NO_OUTPUT "cannot write the output"

/* ---- the terminal */

/* Tells whether out shows colours. */
bool cli_colour(FILE *out);
/* Tells whether the terminal, or whoever reads the pipe, shows more than ASCII: the first of LC_ALL, LC_CTYPE and LANG
 * that is set says so. */
bool cli_utf8(void);
/* Prints ACT's own text; colour ("31") is not used if out has no colours. */
void cli_print_coloured(FILE *out, const char *colour, const char *fmt, ...) ACT_PRINTF(3, 4);
/* Buffers stdout in large blocks, unless it is a terminal. Call it before anything is printed. */
void cli_buffer_stdout(void);
/* Says why stdout could not be written, as far as errno still knows. Returns -ACT_FAIL. */
int cli_output_failed(struct act_error *err);
/* Returns -ACT_FAIL if stdout can no longer be written. If the reader has gone, as head does, ends the program
 * silently, as SIGPIPE would. */
int cli_check_stdout(struct act_error *err) ACT_NODISCARD;

/* ---- text from outside */

/* Writes a piece of a log or a file to stdout; on a terminal, all control sequences but colours are removed. Usable as
 * flow_sink.write. After the last piece call cli_end_text(). */
int cli_write_stdout(void *arg, const char *data, size_t len, struct act_error *err);
/* Ends what cli_write_stdout() wrote: on a terminal, also an incomplete line. */
void cli_end_text(void);
/* Returns name for a line of text, a new string: control characters are '?'. */
char *cli_name(const char *name);
/* Prints a name; control characters become '?'. */
void cli_put_name(const char *name);
/* Prints the path of a file or object: into a pipe byte for byte, so that programs can use it. */
void cli_put_path(const char *path);
/* Prints a line "name         value"; nothing where there is no value. */
void cli_print_fact(const char *name, const char *value);
/* Writes a size for people, or with --bytes the exact number. */
void cli_size(const struct cli *cli, uint64_t bytes, char out[ACT_UNIT_TEXT]);
typedef unsigned long long cli_count_t; /* for printf */
/* Returns the ending of a noun behind n: "s", or "" for one. */
const char *cli_plural(uint64_t n);
/* Returns the word for a kind of entry: "file", "symlink", "folder". */
const char *cli_kind(enum store_kind kind);
/* Returns the path, as the user would type it, of an object at or below what, which was typed as word: "data/voc/a".
 * New string. */
char *cli_path_of(const char *word, const struct transfer_path *what, const char *key);
/* Returns the same for rel, a path relative to what: below "data/voc", "a" is "data/voc/a"; below "RUN:" it is "RUN:a".
 * New string. */
char *cli_path_below(const char *word, const struct transfer_path *what, const char *rel);

/* ---- JSON */

/* Returns n as JSON; a negative one is not known: null. */
json_t *cli_count_json(int64_t n);
/* Returns a number; null where it is not there or not finite, which JSON cannot say. */
json_t *cli_number_json(bool is_there, double value);
/* Returns a text as JSON, of any bytes; NULL and "": null. */
json_t *cli_text_json(const char *text);
/* Returns a time as JSON, in ISO 8601; 0 is not known: null. */
json_t *cli_time_json(int64_t unix_s);
/* Makes an array of what of() returns for a pointer to each of the n items of v: a new reference each. */
#define CLI_JSON_LIST(v, n, of)                                                                                        \
    __extension__({                                                                                                    \
        json_t *list_ = json_array();                                                                                  \
        for (size_t i_ = 0; i_ < (size_t)(n); i_++)                                                                    \
            json_array_append_new(list_, of(&(v)[i_]));                                                                \
        list_;                                                                                                         \
    })
/* Prints value, and takes the reference. */
int cli_print_json(json_t *value, struct act_error *err) ACT_NODISCARD;
/* Prints {version: 1, ..., NAME: [row, row, ...]} as cli_print_json() would, but row by row: begin with the first
 * members (takes the reference), add each row (takes it), end. */
struct cli_rows {
    size_t n; /* that were printed */
};
void cli_rows_begin(struct cli_rows *rows, json_t *first, const char *name);
void cli_rows_add(struct cli_rows *rows, json_t *row);
int cli_rows_end(struct cli_rows *rows, struct act_error *err) ACT_NODISCARD;
/* Prints {version: 1, ...}; fmt and what follows are as for json_pack(), without the version. */
int cli_print_pack(struct act_error *err, const char *fmt, ...) ACT_NODISCARD;
/* Prints the same compactly on one line. */
void cli_print_pack_line(const char *fmt, ...);
/* Prints the id of noun ("run"), which something began, or json (NULL: none; takes the reference) instead. If stdout
 * cannot be written, the error has the id: without it nobody would find what goes on. */
int cli_print_id(const char *noun, const char *id, json_t *json, struct act_error *err) ACT_NODISCARD;
/* Prints what a run would be, without what is null, and takes the reference. */
int cli_print_spec(json_t *spec, struct act_error *err) ACT_NODISCARD;
/* Prints {version: 1, name: list} and returns rc; after a failure (rc < 0) only if something was done. Takes the
 * reference to list; NULL: nothing is printed. */
int cli_print_list(const char *name, json_t *list, int rc, struct act_error *err) ACT_NODISCARD;

#endif
