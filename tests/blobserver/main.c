/* A Blob service in memory, or a File service, for tests and benchmarks: fast, and faulty on command (fault.h).
 *
 * Prints its port when it listens. Ends on SIGTERM, on SIGINT, and when its standard input is closed, so that it never
 * outlives who started it. */
#include "auth.h"
#include "fault.h"
#include "files.h"
#include "server.h"
#include "stream.h"

#include <errno.h>
#include <getopt.h>
#include <locale.h>
#include <malloc.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

static const char usage[] =
    "usage: blobserver [--files] --account NAME --key BASE64 [--account NAME --key BASE64]...\n"
    "  --files               be the File service: shares, directories and files in place of containers and blobs\n"
    "  --port N              0, the default, is any free one\n"
    "  --threads N           default: one for each processor, at most 4\n"
    "  --login BASE64:TENANT  take tokens of this tenant that are signed with this key\n"
    "  --tls PEM             speak TLS with the certificates and the key of this file\n"
    "  --no-auth             take every request\n"
    "  --discard             swallow bodies of blobs, blocks and ranges above 64 KiB; they read as a pattern\n"
    "  --preload CONTAINER:PREFIX:COUNT:SIZE   blobs of the first account, before anything else\n"
    "  --latency-ms N        wait before every answer\n"
    "  --max-rate N          503 ServerBusy above so many requests in a second\n";

static void fail(const char *what)
{
    fprintf(stderr, "blobserver: %s\n%s", what, usage);
    exit(2);
}

static void limit_rate(const char *rate)
{
    struct text rule = {0};

    text_addf(&rule, "throttle times=0 rate=%s", rate);
    if (fault_add(rule.s))
        fail("--max-rate is a number");
    text_free(&rule);
}

static void take_logins(char *value)
{
    char *colon = strchr(value, ':');

    if (colon)
        *colon = '\0';
    if (!colon || !login_set(value, colon + 1))
        fail("--login is BASE64:TENANT");
}

static void read_options(int argc, char **argv, struct server_options *o)
{
    enum { LOGIN = 256, TLS, FILES };
    static const struct option names[] = {
        {"port", 1, NULL, 'p'},
        {"threads", 1, NULL, 't'},
        {"account", 1, NULL, 'a'},
        {"key", 1, NULL, 'k'},
        {"no-auth", 0, NULL, 'n'},
        {"discard", 0, NULL, 'd'},
        {"preload", 1, NULL, 'l'},
        {"latency-ms", 1, NULL, 'm'},
        {"max-rate", 1, NULL, 'r'},
        {"login", 1, NULL, LOGIN},
        {"tls", 1, NULL, TLS},
        {"files", 0, NULL, FILES},
        {0},
    };
    const char *account = NULL;
    int option;

    while ((option = getopt_long(argc, argv, "", names, NULL)) >= 0)
        switch (option) {
        case 'p':
            o->port = atoi(optarg);
            break;
        case 't':
            o->threads = atoi(optarg);
            break;
        case 'a':
            account = optarg;
            break;
        case 'k':
            if (!account || !auth_add(account, optarg))
                fail("--key is base64 and follows an --account");
            break;
        case LOGIN:
            take_logins(optarg);
            break;
        case TLS:
            if (!stream_use_tls(optarg))
                fail("--tls is a file with certificates and a key");
            break;
        case FILES:
            o->files = true;
            auth_of_files();
            break;
        case 'n':
            auth_off();
            break;
        case 'd':
            o->discard = true;
            break;
        case 'l':
            if (!auth_account(0) || !(o->files ? files_preload : blobs_preload)(auth_account(0), optarg))
                fail("--preload is CONTAINER:PREFIX:COUNT:SIZE and comes after --account and --key");
            break;
        case 'm':
            o->latency_ms = atoi(optarg);
            break;
        case 'r':
            limit_rate(optarg);
            break;
        default:
            fail("unknown option");
        }
    if (optind < argc || !auth_account(0) || o->threads < 1)
        fail("an account with its key is needed");
}

static void wait_for_end(int signals)
{
    struct pollfd fds[] = {{.fd = signals, .events = POLLIN}, {.fd = STDIN_FILENO, .events = POLLIN}};
    char ignored[256];

    for (;;) {
        if (poll(fds, COUNT(fds), -1) < 0 && errno != EINTR)
            return;
        if (fds[0].revents || (fds[1].revents && read(STDIN_FILENO, ignored, sizeof(ignored)) <= 0))
            return;
    }
}

int main(int argc, char **argv)
{
    long processors = sysconf(_SC_NPROCESSORS_ONLN);
    struct server_options options = {.threads = (int)(processors < 4 ? processors : 4)};
    sigset_t end;

    signal(SIGPIPE, SIG_IGN);
    mallopt(M_MMAP_THRESHOLD, 1 << 30); /* bodies are reused, not given back and taken again */
    mallopt(M_TRIM_THRESHOLD, 1 << 30);
    crc64_init();
    if (!setlocale(LC_CTYPE, "C.UTF-8")) /* names of files differ by more than case (name_key) */
        return 1;
    read_options(argc, argv, &options);
    sigemptyset(&end);
    sigaddset(&end, SIGTERM);
    sigaddset(&end, SIGINT);
    sigprocmask(SIG_BLOCK, &end, NULL);
    int port = server_start(&options);
    if (port < 0) {
        fprintf(stderr, "blobserver: cannot listen: %s\n", strerror(errno));
        return 1;
    }
    printf("%d\n", port);
    fflush(stdout);
    wait_for_end(signalfd(-1, &end, SFD_CLOEXEC));
    fflush(stdout);
    _exit(0); /* the loops still use what exit() would tear down */
}
