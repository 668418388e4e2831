/* store.c - serves a folder to another machine, whose data verbs so reach it. */
#include <fcntl.h>
#include <unistd.h>

#include "auth/services.h"
#include "base/file.h"
#include "cli/own/own.h"
#include "store/store.h"

/* Serves a folder to the other side, which prints errors. The folders that ACT makes there are private. */
int cmd_store(struct cli *cli, struct act_error *err)
{
    const char *folder = cli->words.v[0];
    const bool create = act_streq(cli->words.v[1], "create");
    int in_fd = fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 0), out_fd = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 0);
    struct act_error ignored;

    if (in_fd < 0 || out_fd < 0)
        return act_error_set(err, ACT_USAGE, "there is nobody to serve");
    if (create && act_mkdir_all(folder, 0700, &ignored) < 0)
        (void)ignored; /* opening it says why */
    return store_far_serve(services_http(&cli->services), folder, create, cli->words.n > 2 ? cli->words.v[2] : NULL,
                           in_fd, out_fd, err);
}
