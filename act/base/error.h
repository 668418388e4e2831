/* error.h - the one way to report that something could not be done.
 *
 * A function that can fail returns 0 or the negative of an enum act_code and takes a struct act_error as its
 * last parameter. The text is set where the cause is known and prefixed with context on the way up; only the
 * command line prints it, once.
 *
 * Form of a text: lower-case start, no full stop, what failed first, names in single quotes:
 *   cannot upload 'code.zip': block 7 of 'acct/cont/code.zip': HTTP 403 AuthenticationFailed
 */
#ifndef ACT_BASE_ERROR_H
#define ACT_BASE_ERROR_H

#include <stdarg.h>
#include <stdbool.h>

#define ACT_NODISCARD        __attribute__((warn_unused_result))
#define ACT_PRINTF(fmt, arg) __attribute__((format(printf, fmt, arg)))

/* The kind of a failure. The value is the exit status of the program. */
enum act_code {
    ACT_OK = 0,
    ACT_FAIL = 1,          /* anything without a row of its own */
    ACT_USAGE = 2,         /* the words typed are wrong */
    ACT_NOT_FOUND = 3,     /* the run, file, blob, container, cluster does not exist */
    ACT_DENIED = 4,        /* not allowed, or the login has expired */
    ACT_TEMPORARY = 5,     /* the same call may work later */
    ACT_NO_CAPACITY = 6,   /* no quota, no such number of GPUs */
    ACT_CONFIG = 7,        /* the configuration is invalid */
    ACT_PARTIAL = 8,       /* part of the work was done */
    ACT_TIMEOUT = 10,      /* it took too long */
    ACT_WRAPPER = 125,     /* 'wait' and 'local': ACT's own failure, not the command's */
    ACT_INTERRUPTED = 130, /* SIGINT */
    ACT_TERMINATED = 143,  /* SIGTERM */
};

/* Callers decide by these, not by a service's words: the code that sets the error knows what those mean. */
enum act_fact {
    ACT_FACT_NONE,
    ACT_FACT_OBJECT_MISSING, /* the container is there, or may be */
    ACT_FACT_CONTAINER_MISSING,
    ACT_FACT_BLOCKS_MISSING, /* which a commit names */
    ACT_FACT_NOT_BY_SERVICE, /* the service cannot or may not read the source of a copy: its bytes go through us */
};

/* A plain value: it owns nothing, so it may be copied, handed to another thread, overwritten or forgotten, and needs
 * no release; {0} is no error. The few texts that do not fit into brief lie in a table of this process, each once,
 * where they are never changed, moved or freed. The table is bounded: when it is full, a long text is cut to brief.
 * Another process cannot follow long_text: send it act_error_text(). */
struct act_error {
    enum act_code code;
    enum act_fact fact;
    int http_status;       /* 0 when no HTTP response was involved */
    bool network;          /* no response came: DNS, connection, TLS, reset, stall */
    char service_code[64]; /* the service's own code, as "BlobNotFound"; may be empty */
    char request_id[64];   /* the service's request id; may be empty */
    char brief[232];       /* the text, or how it begins and ends; read it by act_error_text() */
    const char *long_text; /* the whole of a text that is longer than brief; else NULL */
};

#define ACT_ERROR_TEXT 2048 /* room for any text */

/* The text: one line, printable, "" without an error. It is valid as long as *err keeps its value. */
static inline const char *act_error_text(const struct act_error *err)
{
    return err->long_text ? err->long_text : err->brief;
}

/* Sets code and text (control characters become '?', "..." stands for the middle of too long a text), clears the
 * other facts and returns -code. err may be NULL. errno is kept. */
int act_error_set(struct act_error *err, enum act_code code, const char *fmt, ...) ACT_PRINTF(3, 4);

/* Does what act_error_set() does, and appends ": " and the description of errnum. The code follows from errnum (ENOENT:
 * ACT_NOT_FOUND, EACCES/EPERM: ACT_DENIED, ... otherwise ACT_FAIL). */
int act_error_errno(struct act_error *err, int errnum, const char *fmt, ...) ACT_PRINTF(3, 4);

/* Puts "<formatted>: " before the text that is there. Returns -err->code. */
int act_error_prefix(struct act_error *err, const char *fmt, ...) ACT_PRINTF(2, 3);

/* Appends the formatted hint to the text: "<text>; <hint>", or after a question "<text>? <hint>".
 * Returns -err->code. */
int act_error_hint(struct act_error *err, const char *fmt, ...) ACT_PRINTF(2, 3);

#endif
