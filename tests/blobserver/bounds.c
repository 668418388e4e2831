/* What the machine can do at most, to hold the figures of transfer tools against:
 *
 *     bounds memcpy                                 GB/s of copying memory
 *     bounds loopback                               GB/s of sendfile to recv over the loopback address
 *     bounds requests PORT TARGET CONNECTIONS       GET requests a second on so many kept connections
 *     bounds receive PORT TARGET SIZE FILE          seconds, and CPU seconds, to receive so many bytes, sum them
 *                                                   (CRC-64) and write them to a file that is not there yet
 *
 * A figure is the best of some tries, because it is a bound. */
#include <arpa/inet.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "base/crc64.h"

enum { RANGE = 8 << 20, PIECE = 256 << 10, RECEIVERS = 4 };
enum { TRIES = 5, MEMORY = 256 << 20, FILE_SIZE = 8 << 20, BUFFER = 1 << 20, MAX_CONNECTIONS = 1000 };
#define LOOPBACK_BYTES   (UINT64_C(2) << 30)
#define REQUESTS_SECONDS 1.0

static double seconds(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static void *blob_bounds_need(void *memory)
{
    if (!memory) {
        fputs("bounds: out of memory\n", stderr);
        exit(1);
    }
    return memory;
}

static void blob_bounds_check(int fine, const char *what)
{
    if (fine)
        return;
    perror(what);
    exit(1);
}

static double measure_memcpy(void)
{
    char *from = blob_bounds_need(malloc(MEMORY)), *to = blob_bounds_need(malloc(MEMORY));

    memset(from, 1, MEMORY);
    memset(to, 2, MEMORY);
    double started = seconds();
    memcpy(to, from, MEMORY);
    __asm__ volatile("" : : "r"(to) : "memory"); /* the copy is not left out */
    double took = seconds() - started;
    free(from);
    free(to);
    return MEMORY / took / 1e9;
}

static void *blob_bounds_send_all(void *arg)
{
    int fd = *(int *)arg, file = memfd_create("bounds", MFD_CLOEXEC);
    char *bytes = blob_bounds_need(calloc(1, FILE_SIZE));

    blob_bounds_check(file >= 0 && write(file, bytes, FILE_SIZE) == FILE_SIZE, "bounds: memfd");
    for (uint64_t sent = 0; sent < LOOPBACK_BYTES;) {
        off_t offset = (off_t)(sent % FILE_SIZE);
        ssize_t n = sendfile(fd, file, &offset, (size_t)(FILE_SIZE - offset));
        blob_bounds_check(n > 0, "bounds: sendfile");
        sent += (uint64_t)n;
    }
    close(file);
    free(bytes);
    return NULL;
}

static int blob_bounds_open_socket(void)
{
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    blob_bounds_check(fd >= 0, "bounds: socket");
    return fd;
}

static struct sockaddr_in loopback(int port)
{
    return (struct sockaddr_in){
        .sin_family = AF_INET, .sin_port = htons((uint16_t)port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
}

static int blob_bounds_connect_to(int port)
{
    struct sockaddr_in address = loopback(port);
    int fd = blob_bounds_open_socket();

    blob_bounds_check(!connect(fd, (struct sockaddr *)&address, sizeof(address)), "bounds: connect");
    return fd;
}

static double measure_loopback(void)
{
    struct sockaddr_in address = loopback(0);
    socklen_t n = sizeof(address);
    int listener = blob_bounds_open_socket();
    char *buffer = blob_bounds_need(malloc(BUFFER));
    pthread_t thread;

    blob_bounds_check(!bind(listener, (struct sockaddr *)&address, n) && !listen(listener, 1) &&
                          !getsockname(listener, (struct sockaddr *)&address, &n),
                      "bounds: listen");
    int to = blob_bounds_connect_to(ntohs(address.sin_port)), from = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
    blob_bounds_check(from >= 0, "bounds: accept");
    double started = seconds();
    blob_bounds_check(!pthread_create(&thread, NULL, blob_bounds_send_all, &from), "bounds: thread");
    for (uint64_t got = 0; got < LOOPBACK_BYTES;) {
        ssize_t more = recv(to, buffer, BUFFER, 0);
        blob_bounds_check(more > 0, "bounds: recv");
        got += (uint64_t)more;
    }
    double took = seconds() - started;
    pthread_join(thread, NULL);
    close(to);
    close(from);
    close(listener);
    free(buffer);
    return (double)LOOPBACK_BYTES / took / 1e9;
}

/* Length of the complete answer at the start of the buffer, 0 when more must come. */
static size_t answer_length(const char *buffer, size_t n)
{
    const char *end = memmem(buffer, n, "\r\n\r\n", 4), *length = strcasestr(buffer, "Content-Length: ");

    if (!end || !length)
        return 0;
    size_t all = (size_t)(end - buffer) + 4 + strtoul(length + 16, NULL, 10);
    return n >= all ? all : 0;
}

struct client {
    int fd;
    size_t n;
    char buffer[64 << 10];
};

static void blob_bounds_ask(const struct client *c, const char *request, size_t n)
{
    blob_bounds_check(send(c->fd, request, n, MSG_NOSIGNAL) == (ssize_t)n, "bounds: send");
}

/* Reads what there is; returns whether the answer is complete. */
static int blob_bounds_hear(struct client *c)
{
    ssize_t n = recv(c->fd, c->buffer + c->n, sizeof(c->buffer) - 1 - c->n, 0);

    blob_bounds_check(n > 0, "bounds: recv");
    c->n += (size_t)n;
    c->buffer[c->n] = '\0';
    if (!answer_length(c->buffer, c->n))
        return 0;
    if (strncmp(c->buffer, "HTTP/1.1 200", 12) != 0) {
        fprintf(stderr, "bounds: %.12s\n", c->buffer);
        exit(1);
    }
    c->n = 0;
    return 1;
}

static double measure_requests(int port, const char *target, int connections)
{
    static struct client clients[MAX_CONNECTIONS];
    static char request[4096];
    struct epoll_event events[64];
    int epoll = epoll_create1(EPOLL_CLOEXEC);
    int n = snprintf(request, sizeof(request), "GET %s HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n", target);
    uint64_t done = 0;

    blob_bounds_check(epoll >= 0 && n < (int)sizeof(request) && connections <= MAX_CONNECTIONS, "bounds: requests");
    double started = seconds();
    for (int i = 0; i < connections; i++) {
        clients[i].fd = blob_bounds_connect_to(port);
        clients[i].n = 0;
        struct epoll_event event = {.events = EPOLLIN, .data.ptr = &clients[i]};
        blob_bounds_check(!epoll_ctl(epoll, EPOLL_CTL_ADD, clients[i].fd, &event), "bounds: epoll");
        blob_bounds_ask(&clients[i], request, (size_t)n);
    }
    while (seconds() - started < REQUESTS_SECONDS) {
        int ready = epoll_wait(epoll, events, 64, -1);
        for (int i = 0; i < ready; i++)
            if (blob_bounds_hear(events[i].data.ptr)) {
                done++;
                blob_bounds_ask(events[i].data.ptr, request, (size_t)n);
            }
    }
    double took = seconds() - started;
    for (int i = 0; i < connections; i++)
        close(clients[i].fd);
    close(epoll);
    return (double)done / took;
}

/* ---- a large file */

struct download {
    int port, file;
    const char *target;
    uint64_t size;
    _Atomic uint64_t next; /* where the next range begins */
    _Atomic uint64_t sums; /* so that they are not left out */
};

/* Asks for a range and receives the head of the answer. Returns how many bytes of the range came with it, which are at
 * the start of the buffer. */
static size_t ask_range(int fd, const struct download *d, uint64_t from, uint64_t n, char *buffer)
{
    char request[4096];
    size_t got = 0;
    int len =
        snprintf(request, sizeof(request), "GET %s HTTP/1.1\r\nHost: 127.0.0.1\r\nx-ms-range: bytes=%llu-%llu\r\n\r\n",
                 d->target, (unsigned long long)from, (unsigned long long)(from + n - 1));
    const char *end = NULL;

    blob_bounds_check(send(fd, request, (size_t)len, MSG_NOSIGNAL) == len, "bounds: send");
    while (!end) {
        ssize_t more = recv(fd, buffer + got, PIECE - got, 0);
        blob_bounds_check(more > 0, "bounds: recv");
        got += (size_t)more;
        end = memmem(buffer, got, "\r\n\r\n", 4);
    }
    got -= (size_t)(end + 4 - buffer);
    memmove(buffer, end + 4, got);
    return got;
}

static void receive_range(int fd, struct download *d, uint64_t from, uint64_t n, char *buffer)
{
    size_t got = ask_range(fd, d, from, n, buffer);
    uint64_t sum = 0;

    for (uint64_t done = 0; done < n; got = 0) {
        size_t want = n - done < PIECE ? (size_t)(n - done) : PIECE;
        ssize_t more = got < want ? recv(fd, buffer + got, want - got, MSG_WAITALL) : 0;
        blob_bounds_check(got + (size_t)more == want, "bounds: recv");
        sum = act_crc64(sum, buffer, want);
        blob_bounds_check(pwrite(d->file, buffer, want, (off_t)(from + done)) == (ssize_t)want, "bounds: write");
        done += want;
    }
    d->sums ^= sum;
}

static void *receive_ranges(void *arg)
{
    struct download *d = arg;
    char *buffer = blob_bounds_need(malloc(PIECE));
    int fd = blob_bounds_connect_to(d->port);
    uint64_t from;

    while ((from = atomic_fetch_add(&d->next, RANGE)) < d->size)
        receive_range(fd, d, from, d->size - from < RANGE ? d->size - from : RANGE, buffer);
    close(fd);
    free(buffer);
    return NULL;
}

static double cpu_seconds(void)
{
    struct rusage used;

    getrusage(RUSAGE_SELF, &used);
    return (double)(used.ru_utime.tv_sec + used.ru_stime.tv_sec) +
           (double)(used.ru_utime.tv_usec + used.ru_stime.tv_usec) / 1e6;
}

static void measure_receive(int port, const char *target, uint64_t size, const char *path, double best[2])
{
    struct download d = {.port = port, .target = target, .size = size};
    double started = seconds(), used = cpu_seconds();
    pthread_t threads[RECEIVERS];

    d.file = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    blob_bounds_check(d.file >= 0, path);
    for (int i = 0; i < RECEIVERS; i++)
        blob_bounds_check(!pthread_create(&threads[i], NULL, receive_ranges, &d), "bounds: thread");
    for (int i = 0; i < RECEIVERS; i++)
        pthread_join(threads[i], NULL);
    close(d.file);
    double took[] = {seconds() - started, cpu_seconds() - used};
    for (int i = 0; i < 2; i++)
        best[i] = best[i] == 0 || took[i] < best[i] ? took[i] : best[i];
    unlink(path);
}

static int show_receive(char **argv)
{
    double best[2] = {0};

    for (int i = 0; i < TRIES; i++)
        measure_receive(atoi(argv[2]), argv[3], strtoull(argv[4], NULL, 10), argv[5], best);
    printf("%.3f %.3f\n", best[0], best[1]);
    return 0;
}

int main(int argc, char **argv)
{
    double best = 0;

    if (argc == 6 && !strcmp(argv[1], "receive"))
        return show_receive(argv);

    for (int i = 0; i < TRIES; i++) {
        double now = 0;
        if (argc == 2 && !strcmp(argv[1], "memcpy"))
            now = measure_memcpy();
        else if (argc == 2 && !strcmp(argv[1], "loopback"))
            now = measure_loopback();
        else if (argc == 5 && !strcmp(argv[1], "requests"))
            now = measure_requests(atoi(argv[2]), argv[3], atoi(argv[4]));
        best = now > best ? now : best;
    }
    if (best == 0) {
        fputs("usage: bounds memcpy | loopback | requests PORT TARGET CONNECTIONS | receive PORT TARGET SIZE FILE\n",
              stderr);
        return 2;
    }
    printf("%.3f\n", best);
    return 0;
}
