/* maker.h - a process of this program that makes something for a visit: "a __page". */
#ifndef ACT_CLI_PAGE_MAKER_H
#define ACT_CLI_PAGE_MAKER_H

#include <stdbool.h>
#include <sys/types.h>

#include "base/error.h"
#include "base/text.h"

struct engine;

struct maker {
    struct engine *engine;
    void (*ended)(void *arg); /* called once it has ended, and has been waited for */
    void *arg;
    pid_t pid;
    int out_fd;          /* what it prints, for the caller to read, without waiting; -1: closed */
    int status;          /* as of waitpid(), once it has ended */
    struct act_buf said; /* what it says, at most 64 KiB */
    int said_fd, end_fd; /* internal */
};

/* Starts it with these words. After a failure maker is released. */
int maker_start(struct maker *maker, const struct act_strv *words, struct act_error *err) ACT_NODISCARD;
/* Ends it, and what it has started; its end is told as any other. */
void maker_kill(const struct maker *maker);
/* Closes what the caller reads. */
void maker_close_out(struct maker *maker);
/* Ends it without telling anybody, if it has not ended, and frees what there is of it. May be called twice. */
void maker_release(struct maker *maker);
/* Returns why it failed: its exit status, if it has one. */
int maker_exit_status(const struct maker *maker);

#endif
