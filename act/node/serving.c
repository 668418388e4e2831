#include "node/serving.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/file.h"
#include "base/hash.h"
#include "base/temp.h"
#include "base/text.h"
#include "node/node.h"
#include "node/terminal.h"

enum { FOLDER_MOST = 70, PATIENCE_S = 5 }; /* the path of a socket has at most 107 bytes */

int serving_open(struct serving *serving)
{
    const char *temp = getenv("TMPDIR");
    uint8_t bytes[SERVING_TOKEN / 2];
    const char *parent = temp && *temp && strlen(temp) < FOLDER_MOST ? temp : "/tmp";
    char host[NODE_NAME_MAX + 1], hash[ACT_SHA256_HEX];
    struct act_sha256 sum;

    node_find_name(host); /* nodes may share a folder, but not its locks */
    act_sha256_init(&sum);
    act_sha256_add(&sum, host, strlen(host));
    act_sha256_done(&sum, hash);
    ACT_AUTOFREE char *prefix = act_sprintf("%s/act-service-%.8s-", parent, hash);
    serving->lock = act_temp_folder(prefix, &serving->folder);
    if (serving->lock < 0)
        return -1;
    act_random(bytes, sizeof(bytes));
    act_hex(bytes, sizeof(bytes), serving->token);
    serving->path = act_sprintf("%s/socket", serving->folder);
    setenv("ACT_SERVICE_SOCKET", serving->path, 1);
    setenv("ACT_SERVICE_TOKEN", serving->token, 1);
    return 0;
}

void serving_close(struct serving *serving)
{
    struct act_error ignored;

    if (serving->folder) {
        (void)!act_remove_tree(serving->folder, &ignored);
        close(serving->lock);
    }
    free(serving->folder);
    free(serving->path);
    *serving = (struct serving){0};
}

static int serving_connect_path(const char *path)
{
    struct sockaddr_un at = {.sun_family = AF_UNIX};

    snprintf(at.sun_path, sizeof(at.sun_path), "%s", path);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd >= 0) /* the backlog may be full */
        setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &(struct timeval){.tv_sec = 1}, sizeof(struct timeval));
    if (fd >= 0 && connect(fd, (struct sockaddr *)&at, sizeof(at)) == 0)
        return fd;
    if (fd >= 0)
        close(fd);
    return -1;
}

void serving_answer(const struct serving *serving, int fd)
{
    int to = serving->path ? serving_connect_path(serving->path) : -1;

    (void)terminal_send_files(fd, TERMINAL_REACHED, serving->token, SERVING_TOKEN, &to, to >= 0 ? 1 : 0);
    if (to >= 0)
        close(to);
}

int serving_stay(const char *run)
{
    const struct timeval patience = {.tv_sec = PATIENCE_S};
    int fd = terminal_connect(run);

    if (fd >= 0) {
        setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
        (void)terminal_send(fd, TERMINAL_STAY, "", 0);
    }
    return fd;
}

int serving_connect(int keeper, char *token)
{
    char packet[1 + SERVING_TOKEN];
    int to = -1;

    if (keeper < 0 || !terminal_send(keeper, TERMINAL_REACH, "", 0) ||
        terminal_receive(keeper, packet, sizeof(packet), &to, 1) != (ssize_t)sizeof(packet) ||
        packet[0] != TERMINAL_REACHED)
        return -EPIPE;
    if (token) {
        memcpy(token, packet + 1, SERVING_TOKEN);
        token[SERVING_TOKEN] = '\0';
    }
    return to < 0 ? -ECONNREFUSED : to;
}
