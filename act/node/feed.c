#include "node/feed.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/units.h"
#include "node/child.h"
#include "node/terminal.h"
#include "run/shell.h"

enum {
    FEED_MOST = 16, /* who are connected at once */
    TRIES = 100,    /* to connect, with pauses: the run may have begun just now */
    PAUSE_MS = 100,
    FRAME_HEAD = 2, /* bytes */
};

static const char feed_ended[] = "the input of this rank has ended",
                  feed_full[] = "this rank has not read yet what others have sent, and no more can wait";

/* Returns what the sockets of a rank are found by, a new string. */
static char *feed_name(const char *run, int64_t rank)
{
    return act_sprintf("%s.%lld", run, (long long)rank);
}

/* ---- the feeder */

struct feeder {
    int listener, from; /* from: what the command reads, until it has that */
    int to;             /* -1: the input has ended */
    int who[FEED_MOST];
    size_t n;
    char data[TERMINAL_PIECE]; /* that the command has not taken yet, from at to len */
    size_t at, len;
    bool ends; /* after that */
};

static void feeder_part(int fd, const char *why)
{
    (void)terminal_send(fd, TERMINAL_PARTED, why, strlen(why));
    close(fd);
}

/* The input is over: by its end, or as the command has closed it. */
static void feeder_end(struct feeder *f)
{
    close(f->to);
    f->to = -1;
    f->at = f->len = 0;
    for (size_t i = 0; i < f->n; i++)
        feeder_part(f->who[i], feed_ended);
    f->n = 0;
}

static void feeder_write(struct feeder *f)
{
    ssize_t n = f->len > f->at ? write(f->to, f->data + f->at, f->len - f->at) : 0;

    if (n > 0)
        f->at += (size_t)n;
    if (f->at == f->len)
        f->at = f->len = 0;
    if ((n < 0 && errno == EPIPE) || (f->ends && f->len == 0))
        feeder_end(f);
}

static void feeder_accept(struct feeder *f)
{
    int fd = accept4(f->listener, NULL, NULL, SOCK_CLOEXEC);

    if (fd < 0)
        return;
    if (terminal_peer(fd) != getuid())
        close(fd);
    else if (f->to < 0)
        feeder_part(fd, feed_ended);
    else if (f->n == FEED_MOST)
        feeder_part(fd, feed_full);
    else
        f->who[f->n++] = fd;
}

/* Takes a packet of somebody, if one is there; false: he has gone. */
static bool feeder_take(struct feeder *f, int fd)
{
    char packet[1 + TERMINAL_PIECE];
    ssize_t n = recv(fd, packet, sizeof(packet), MSG_DONTWAIT);

    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return true;
    if (n <= 0 || packet[0] != TERMINAL_DATA)
        return false;
    f->len = (size_t)n - 1;
    memcpy(f->data, packet + 1, f->len);
    f->ends = f->len == 0;
    return true;
}

static void feeder_take_all(struct feeder *f, const struct pollfd *p)
{
    size_t n = f->n;

    f->n = 0;
    for (size_t i = 0; i < n; i++) {
        bool waits = f->len > 0 || f->ends || !p[i].revents;
        if (waits || feeder_take(f, f->who[i]))
            f->who[f->n++] = f->who[i];
        else
            close(f->who[i]);
    }
}

static void feeder_round(struct feeder *f)
{
    enum { FIXED = 2 };
    bool is_full = f->len > 0;
    struct pollfd p[FIXED + FEED_MOST] = {{f->listener, POLLIN, 0}, {f->to, (short)(is_full ? POLLOUT : 0), 0}};

    for (size_t i = 0; i < f->n; i++)
        p[FIXED + i] = (struct pollfd){is_full ? -1 : f->who[i], POLLIN, 0};
    if (poll(p, FIXED + f->n, -1) < 0)
        return;
    feeder_take_all(f, p + FIXED);
    if (p[1].revents & POLLERR)
        feeder_end(f);
    else if (f->to >= 0)
        feeder_write(f);
    if (p[0].revents & POLLIN)
        feeder_accept(f);
}

static int feeder_run(void *arg)
{
    struct feeder *f = arg;

    close(f->from);
    signal(SIGPIPE, SIG_IGN);
    while (f->listener >= 0)
        feeder_round(f);
    return 0;
}

int feed_start(const struct node *node, int rank)
{
    ACT_AUTOFREE char *name = feed_name(node->spec.id, rank);
    struct feeder f = {.listener = terminal_listen(name), .to = -1};
    int ends[2];

    if (f.listener < 0)
        return -1;
    if (pipe2(ends, O_CLOEXEC) < 0) {
        close(f.listener);
        return -1;
    }
    f.from = ends[0];
    f.to = ends[1];
    bool is_started = fcntl(f.to, F_SETFL, O_NONBLOCK) == 0 &&
                      child_start(&(struct child){.run = feeder_run, .arg = &f, .out_fd = -1}) > 0;
    close(f.listener);
    close(f.to);
    if (is_started)
        return f.from;
    close(f.from);
    return -1;
}

/* ---- act-node input RUN RANK: brings the feeder what comes in frames */

/* Reads so many bytes; false: there are no more. */
static bool input_read(void *data, size_t len)
{
    for (size_t at = 0; at < len;) {
        ssize_t n = read(STDIN_FILENO, (char *)data + at, len - at);
        if (n == 0 || (n < 0 && errno != EINTR))
            return false;
        at += n > 0 ? (size_t)n : 0;
    }
    return true;
}

/* Says why the feeder wants no more. That it did not take what was sent is an error before its reason. */
static int input_parted(int feeder)
{
    char packet[1 + TERMINAL_PIECE];
    ssize_t n = recv(feeder, packet, sizeof(packet), 0);

    if (n < 0 && errno == ECONNRESET)
        n = recv(feeder, packet, sizeof(packet), 0);
    if (n > 1 && packet[0] == TERMINAL_PARTED)
        fprintf(stderr, "act: %.*s\n", (int)n - 1, packet + 1);
    return RUN_SHELL_GONE;
}

/* Waits until the feeder takes more, which it does when the command reads. False: whoever typed is gone before that.
 * ssh, which cannot say so before it has brought what was typed, takes nothing more from here then. */
static bool input_wait(int feeder)
{
    struct pollfd p[] = {{feeder, POLLOUT, 0}, {STDIN_FILENO, POLLRDHUP, 0}, {STDOUT_FILENO, 0, 0}};

    while (poll(p, sizeof(p) / sizeof(p[0]), -1) < 0)
        continue;
    return p[0].revents != 0;
}

/* Brings one frame. Returns the exit status; -1: it goes on. */
static int input_bring(int feeder)
{
    uint8_t head[FRAME_HEAD];
    char data[TERMINAL_PIECE];

    if (!input_read(head, sizeof(head)))
        return 128 + SIGHUP;
    size_t len = (size_t)head[0] << 8 | head[1];
    if (len > sizeof(data) || !input_read(data, len) || !input_wait(feeder))
        return 128 + SIGHUP;
    if (!terminal_send(feeder, TERMINAL_DATA, data, len))
        return input_parted(feeder);
    return len == 0 ? 0 : -1;
}

int node_input(int argc, char **argv)
{
    int feeder = -1, status = -1;
    int64_t rank;

    if (argc != 3 || !act_int_from_text(argv[2], &rank))
        return ACT_USAGE;
    ACT_AUTOFREE char *name = feed_name(argv[1], rank);
    for (int i = 0; i < TRIES && (feeder = terminal_connect(name)) < 0; i++)
        (void)poll(NULL, 0, PAUSE_MS);
    if (feeder < 0)
        return RUN_SHELL_NOT_YET;
    while (status < 0) {
        struct pollfd p[] = {{feeder, POLLIN, 0}, {STDIN_FILENO, POLLIN, 0}};
        if (poll(p, 2, -1) < 0)
            continue;
        status = p[0].revents ? input_parted(feeder) : input_bring(feeder);
    }
    return status;
}
