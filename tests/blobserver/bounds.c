/* What the machine can do at most, to hold the figures of transfer tools against:
 *
 *     bounds memcpy                                 GB/s of copying memory
 *     bounds loopback                               GB/s of sendfile to recv over the loopback address
 *     bounds requests PORT TARGET CONNECTIONS       GET requests a second on so many kept connections
 *     bounds receive PORT TARGET SIZE FILE [tls]    seconds, and CPU seconds, to receive so many bytes, sum them
 *                                                   (CRC-64) and write them to a file that is not there yet
 *     bounds send PORT TARGET SIZE FILE [tls]       the same to read them from a file, sum and send them, as blocks
 *                                                   that nobody commits
 *
 * A figure is the best of some tries, because it is a bound. With tls they go through OpenSSL as it is by default,
 * which looks at no certificate. */
#include <arpa/inet.h>
#include <fcntl.h>
#include <openssl/ssl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
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

enum { RANGE = 8 << 20, PIECE = 256 << 10, MOVERS = 4 };
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

struct moving {
    int port, file;
    const char *target;
    uint64_t size;
    SSL_CTX *tls;          /* NULL: in the clear */
    _Atomic uint64_t next; /* where the next range begins */
    _Atomic uint64_t sums; /* so that they are not left out */
};

struct lane {
    int fd;
    SSL *tls;
};

static void lane_open(struct lane *l, const struct moving *m)
{
    l->fd = blob_bounds_connect_to(m->port);
    l->tls = m->tls ? blob_bounds_need(SSL_new(m->tls)) : NULL;
    blob_bounds_check(!l->tls || (SSL_set_fd(l->tls, l->fd) && SSL_connect(l->tls) == 1), "bounds: tls");
}

static void lane_close(struct lane *l)
{
    SSL_free(l->tls);
    close(l->fd);
}

/* Receives some bytes, of a record at most. */
static size_t lane_hear(struct lane *l, char *buffer, size_t cap)
{
    ssize_t n = l->tls ? SSL_read(l->tls, buffer, (int)cap) : recv(l->fd, buffer, cap, 0);

    blob_bounds_check(n > 0, "bounds: recv");
    return (size_t)n;
}

static void lane_say(struct lane *l, const char *bytes, size_t n)
{
    ssize_t sent = l->tls ? SSL_write(l->tls, bytes, (int)n) : send(l->fd, bytes, n, MSG_NOSIGNAL);

    blob_bounds_check(sent == (ssize_t)n, "bounds: send");
}

/* Receives the head of an answer. Returns how many bytes came with it, which are at the start of the buffer. */
static size_t lane_head(struct lane *l, const char *status, char *buffer)
{
    size_t got = 0;
    const char *end = NULL;

    while (!end) {
        got += lane_hear(l, buffer + got, PIECE - got);
        end = memmem(buffer, got, "\r\n\r\n", 4);
    }
    if (strncmp(buffer + sizeof("HTTP/1.1"), status, strlen(status)) != 0) {
        fprintf(stderr, "bounds: %.12s\n", buffer);
        exit(1);
    }
    got -= (size_t)(end + 4 - buffer);
    memmove(buffer, end + 4, got);
    return got;
}

static void receive_range(struct lane *l, struct moving *m, uint64_t from, uint64_t n, char *buffer)
{
    char request[4096];
    uint64_t sum = 0;
    int len =
        snprintf(request, sizeof(request), "GET %s HTTP/1.1\r\nHost: 127.0.0.1\r\nx-ms-range: bytes=%llu-%llu\r\n\r\n",
                 m->target, (unsigned long long)from, (unsigned long long)(from + n - 1));

    lane_say(l, request, (size_t)len);
    size_t got = lane_head(l, "206", buffer);
    for (uint64_t done = 0; done < n; got = 0) {
        size_t want = n - done < PIECE ? (size_t)(n - done) : PIECE;
        while (got < want)
            got += lane_hear(l, buffer + got, want - got);
        sum = act_crc64(sum, buffer, want);
        blob_bounds_check(pwrite(m->file, buffer, want, (off_t)(from + done)) == (ssize_t)want, "bounds: write");
        done += want;
    }
    m->sums ^= sum;
}

static void send_range(struct lane *l, struct moving *m, uint64_t from, uint64_t n, char *buffer)
{
    char request[4096];
    uint64_t sum = 0;
    int len = snprintf(request, sizeof(request),
                       "PUT %s&comp=block&blockid=%08llx HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: %llu\r\n\r\n",
                       m->target, (unsigned long long)(from / RANGE), (unsigned long long)n);

    lane_say(l, request, (size_t)len);
    for (uint64_t done = 0; done < n;) {
        size_t want = n - done < PIECE ? (size_t)(n - done) : PIECE;
        blob_bounds_check(pread(m->file, buffer, want, (off_t)(from + done)) == (ssize_t)want, "bounds: read");
        sum = act_crc64(sum, buffer, want);
        lane_say(l, buffer, want);
        done += want;
    }
    m->sums ^= sum;
    lane_head(l, "201", buffer);
}

/* What is measured: how each range is moved, and how the file is opened. */
struct way {
    const char *name;
    void (*move)(struct lane *l, struct moving *m, uint64_t from, uint64_t n, char *buffer);
    int flags;
    bool makes; /* the file, which is gone afterwards */
};

static const struct way ways[] = {{"receive", receive_range, O_WRONLY | O_CREAT | O_EXCL, true},
                                  {"send", send_range, O_RDONLY, false}};

struct mover {
    struct moving *moving;
    const struct way *way;
};

static void *move_ranges(void *arg)
{
    const struct mover *mover = arg;
    struct moving *m = mover->moving;
    char *buffer = blob_bounds_need(malloc(PIECE));
    struct lane l;
    uint64_t from;

    lane_open(&l, m);
    while ((from = atomic_fetch_add(&m->next, RANGE)) < m->size)
        mover->way->move(&l, m, from, m->size - from < RANGE ? m->size - from : RANGE, buffer);
    lane_close(&l);
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

static void measure_way(const struct way *way, struct moving m, const char *path, double best[2])
{
    double started = seconds(), used = cpu_seconds();
    struct mover mover = {&m, way};
    pthread_t threads[MOVERS];

    m.file = open(path, way->flags | O_CLOEXEC, 0600);
    blob_bounds_check(m.file >= 0, path);
    for (int i = 0; i < MOVERS; i++)
        blob_bounds_check(!pthread_create(&threads[i], NULL, move_ranges, &mover), "bounds: thread");
    for (int i = 0; i < MOVERS; i++)
        pthread_join(threads[i], NULL);
    close(m.file);
    double took[] = {seconds() - started, cpu_seconds() - used};
    for (int i = 0; i < 2; i++)
        best[i] = best[i] == 0 || took[i] < best[i] ? took[i] : best[i];
    if (way->makes)
        unlink(path);
}

static int show_way(const struct way *way, char **argv, bool tls)
{
    struct moving m = {.port = atoi(argv[2]), .target = argv[3], .size = strtoull(argv[4], NULL, 10)};
    double best[2] = {0};

    m.tls = tls ? blob_bounds_need(SSL_CTX_new(TLS_client_method())) : NULL;
    for (int i = 0; i < TRIES; i++)
        measure_way(way, m, argv[5], best);
    SSL_CTX_free(m.tls);
    printf("%.3f %.3f\n", best[0], best[1]);
    return 0;
}

static const struct way *way_of(int argc, char **argv)
{
    for (size_t i = 0; i < sizeof(ways) / sizeof(*ways); i++)
        if ((argc == 6 || (argc == 7 && !strcmp(argv[6], "tls"))) && !strcmp(argv[1], ways[i].name))
            return &ways[i];
    return NULL;
}

int main(int argc, char **argv)
{
    const struct way *way = way_of(argc, argv);
    double best = 0;

    if (way)
        return show_way(way, argv, argc == 7);
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
        fputs("usage: bounds memcpy | loopback | requests PORT TARGET CONNECTIONS |\n"
              "              receive|send PORT TARGET SIZE FILE [tls]\n",
              stderr);
        return 2;
    }
    printf("%.3f\n", best);
    return 0;
}
