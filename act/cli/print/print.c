/* print.c - what results look like. */
#include <errno.h>
#include <float.h>
#include <math.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/dirs.h"
#include "base/path.h"
#include "base/terminal.h"
#include "base/units.h"
#include "cli/data/options.h"
#include "cli/print/print.h"
#include "cli/runs/runs.h"
#include "codec/json.h"
#include "flow/runs/runs.h"

enum { STDOUT_BUFFER = 256 << 10 };

bool cli_colour(FILE *out)
{
    const char *term = getenv("TERM");

    return isatty(out == stdout ? STDOUT_FILENO : STDERR_FILENO) && !act_env("NO_COLOR") && term &&
           strcmp(term, "dumb") != 0;
}

void cli_print_coloured(FILE *out, const char *colour, const char *fmt, ...)
{
    bool coloured = cli_colour(out);
    va_list ap;

    if (coloured) {
        act_terminal_show(out, ACT_SHOW_ALL);
        fprintf(out, "\033[%sm", colour);
        act_terminal_show(out, ACT_SHOW_LINES);
    }
    va_start(ap, fmt);
    vfprintf(out, fmt, ap);
    va_end(ap);
    if (coloured) {
        act_terminal_show(out, ACT_SHOW_ALL);
        fputs("\033[0m", out);
        act_terminal_show(out, ACT_SHOW_LINES);
    }
}

const char *cli_state_colour(enum run_state state)
{
    static const char *const colours[] = {[RUN_QUEUED] = "33", [RUN_RUNNING] = "36",  [RUN_COMPLETED] = "32",
                                          [RUN_FAILED] = "31", [RUN_CANCELED] = "35", [RUN_UNKNOWN] = "37"};

    return colours[state];
}

bool cli_utf8(void)
{
    static const char *const names[] = {"LC_ALL", "LC_CTYPE", "LANG"};

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        const char *value = act_env(names[i]);
        if (value)
            return strcasestr(value, "utf-8") || strcasestr(value, "utf8");
    }
    return false;
}

static bool text_in_line; /* its last line is not ended yet */

int cli_write_stdout(void *arg, const char *data, size_t len, struct act_error *err)
{
    (void)arg;
    text_in_line = len > 0 ? data[len - 1] != '\n' : text_in_line;
    act_terminal_show(stdout, ACT_SHOW_LINES | ACT_SHOW_COLOURS | ACT_SHOW_PROGRESS);
    fwrite(data, 1, len, stdout);
    fflush(stdout);
    return cli_check_stdout(err);
}

void cli_end_text(void)
{
    act_terminal_show(stdout, ACT_SHOW_LINES);
    if (text_in_line && isatty(STDOUT_FILENO))
        putchar('\n');
    text_in_line = false;
}

json_t *cli_count_json(int64_t n)
{
    return n < 0 ? json_null() : json_integer(n);
}

json_t *cli_number_json(bool is_there, double value)
{
    return is_there && isfinite(value) ? json_real(value) : json_null();
}

json_t *cli_text_json(const char *text)
{
    return text && *text ? codec_json_bytes_new(text) : json_null();
}

json_t *cli_time_json(int64_t unix_s)
{
    char text[ACT_TIME_TEXT];

    if (unix_s <= 0)
        return json_null();
    act_time_to_iso(unix_s, text);
    return json_string(text);
}

const char *cli_plural(uint64_t n)
{
    return n == 1 ? "" : "s";
}

#define PRINT_JSON (JSON_INDENT(2) | JSON_REAL_PRECISION(DBL_DIG))

int cli_print_json(json_t *value, struct act_error *err)
{
    int rc = json_dumpf(value, stdout, PRINT_JSON) == 0 && fputc('\n', stdout) != EOF ? 0 : -1;

    json_decref(value);
    return rc == 0 ? 0 : cli_output_failed(err);
}

static json_t *print_pack(const char *fmt, va_list ap)
{
    CODEC_AUTOJSON json_t *members = json_vpack_ex(NULL, 0, fmt, ap);
    json_t *object = members ? json_pack("{s:i}", "version", 1) : NULL;

    json_object_update(object, members);
    return object;
}

int cli_print_pack(struct act_error *err, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    json_t *object = print_pack(fmt, ap);
    va_end(ap);
    return cli_print_json(object, err);
}

void cli_rows_begin(struct cli_rows *rows, json_t *first, const char *name)
{
    CODEC_AUTOJSON json_t *members = first;
    CODEC_AUTOJSON json_t *object = json_pack("{s:i}", "version", 1);

    json_object_update(object, members);
    ACT_AUTOFREE char *text = json_dumps(object, PRINT_JSON);
    text[strlen(text) - strlen("\n}")] = '\0';
    printf("%s,\n  \"%s\": [", text, name);
    *rows = (struct cli_rows){0};
}

void cli_rows_add(struct cli_rows *rows, json_t *row)
{
    ACT_AUTOFREE char *text = json_dumps(row, PRINT_JSON);
    char *rest, *line = strtok_r(text, "\n", &rest);

    if (rows->n++)
        putchar(',');
    for (; line; line = strtok_r(NULL, "\n", &rest))
        printf("\n    %s", line);
    json_decref(row);
}

int cli_rows_end(struct cli_rows *rows, struct act_error *err)
{
    printf("%s]\n}\n", rows->n ? "\n  " : "");
    return cli_check_stdout(err);
}

int cli_print_id(const char *noun, const char *id, json_t *json, struct act_error *err)
{
    int rc = json ? cli_print_json(json, err) : printf("%s\n", id) < 0 ? -1 : 0;

    if (rc == 0 && fflush(stdout) == 0)
        return 0;
    cli_output_failed(err);
    return act_error_hint(err, "the %s is '%s', and goes on", noun, id);
}

static void print_drop_nulls(json_t *value)
{
    const char *key;
    json_t *member;
    size_t i;
    void *next;

    json_array_foreach(value, i, member) print_drop_nulls(member);
    json_object_foreach_safe(value, next, key, member)
    {
        print_drop_nulls(member);
        if (json_is_null(member))
            json_object_del(value, key);
    }
}

int cli_print_spec(json_t *spec, struct act_error *err)
{
    print_drop_nulls(spec);
    return cli_print_json(spec, err);
}

int cli_print_list(const char *name, json_t *list, int rc, struct act_error *err)
{
    if (list && (rc == 0 || json_array_size(list) > 0)) {
        struct act_error other;
        int printed = cli_print_pack(&other, "{s:o}", name, list);
        if (rc == 0 && printed < 0)
            *err = other;
        return rc < 0 ? rc : printed;
    }
    json_decref(list);
    return rc;
}

void cli_print_pack_line(const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    CODEC_AUTOJSON json_t *value = print_pack(fmt, ap);
    va_end(ap);
    json_dumpf(value, stdout, JSON_COMPACT | JSON_REAL_PRECISION(DBL_DIG));
    putchar('\n');
}

const char *cli_kind(enum store_kind kind)
{
    static const char *const names[] = {
        [STORE_FILE] = "file", [STORE_SYMLINK] = "symlink", [STORE_FOLDER] = "folder", [STORE_PREFIX] = "folder"};

    return names[kind];
}

char *cli_name(const char *name)
{
    char *text = act_strdup(name);

    act_mask_controls(text, "", '?');
    return text;
}

void cli_put_name(const char *name)
{
    if (!act_has_control(name)) {
        fputs_unlocked(name, stdout);
        return;
    }
    ACT_AUTOFREE char *shown = cli_name(name);
    fputs(shown, stdout);
}

void cli_print_fact(const char *name, const char *value)
{
    if (!value || !*value)
        return;
    printf("%-12s ", name);
    cli_put_name(value);
    putchar('\n');
}

void cli_put_path(const char *path)
{
    static int is_terminal = -1;

    if (is_terminal < 0)
        is_terminal = isatty(STDOUT_FILENO);
    if (is_terminal)
        cli_put_name(path);
    else
        fputs(path, stdout);
}

void cli_size(const struct cli *cli, uint64_t bytes, char out[ACT_UNIT_TEXT])
{
    if (CLI_OPTIONS(cli, list)->bytes)
        snprintf(out, ACT_UNIT_TEXT, "%llu", (unsigned long long)bytes);
    else
        act_size_to_text(bytes, out);
}

char *cli_path_of(const char *word, const struct transfer_path *what, const char *key)
{
    size_t n = strlen(what->path);

    return key[n] == '\0' || !what->is_folder ? act_strdup(word) : cli_path_below(word, what, key + n + (n > 0));
}

char *cli_path_below(const char *word, const struct transfer_path *what, const char *rel)
{
    bool is_run = !*what->path && act_ends_with(word, ":");

    ACT_AUTOFREE char *folder = act_strndup(word, strlen(word) - act_ends_with(word, "/"));

    return is_run ? act_sprintf("%s%s", word, rel) : act_path_below(folder, rel);
}

void cli_buffer_stdout(void)
{
    if (!isatty(STDOUT_FILENO))
        setvbuf(stdout, NULL, _IOFBF, STDOUT_BUFFER);
}

/* Returns what write(2) said; 0: that is not known any more, as much else may have failed since, isatty() for one. */
static int print_errno(int last)
{
    static const int of_write[] = {ENOSPC, EDQUOT, EFBIG, EPIPE, EIO, EBADF, EAGAIN, EPERM, EINVAL};
    struct pollfd out = {.fd = STDOUT_FILENO, .events = POLLOUT};

    for (size_t i = 0; i < sizeof(of_write) / sizeof(of_write[0]); i++)
        if (last == of_write[i])
            return last;
    return poll(&out, 1, 0) == 1 && (out.revents & POLLERR) ? EPIPE : 0;
}

int cli_output_failed(struct act_error *err)
{
    int why = print_errno(errno);

    if (why)
        return act_error_errno(err, why, CLI_NO_OUTPUT);
    return act_error_set(err, ACT_FAIL, CLI_NO_OUTPUT ": not all of it was taken");
}

int cli_check_stdout(struct act_error *err)
{
    if (!ferror(stdout))
        return 0;
    if (print_errno(errno) == EPIPE) {
        signal(SIGPIPE, SIG_DFL);
        kill(getpid(), SIGPIPE); /* worker threads block signals */
    }
    return cli_output_failed(err);
}
