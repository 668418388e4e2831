/* meet.c - act-node meet: whether machines reach one another, asked before a run is submitted that needs it. Each reads
 * an object from its input and prints another.
 *
 *   meet listen ROOT   {"n"} -> {"target", "port", "order", "sign"}
 *       A process stays, and listens until the n - 1 other machines have come, or a minute is over. Until then there is
 *       a file of this name, the sign, in the folder ROOT of the runs. order: of struct run_machines.
 *   meet reach ROOT    {"index", "targets": [], "signs": []} -> {"reached": [], "why": [], "shared": []}
 *       Connects to each target, but to that of the index, which is this machine's own. Which addresses answer is
 *       found out at the same time for all. For each target: the first address that works (null: none), why none does,
 *       and whether its sign is in this machine's ROOT, too.
 *
 * The connection is that of the ranks (link.h): whoever accepts it is the machine that the target is of. */
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/path.h"
#include "codec/json.h"
#include "node/link.h"
#include "node/node.h"

enum { MACHINES_MOST = 4096, LISTEN_MS = 60 * 1000, INPUT_MAX = 1 << 20 };

static int meet_read_request(json_t **out, struct act_error *err)
{
    struct act_buf text = {0};
    char chunk[4096];
    ssize_t n;

    while ((n = read(STDIN_FILENO, chunk, sizeof(chunk))) > 0 && text.len < INPUT_MAX)
        act_buf_add(&text, chunk, (size_t)n);
    int rc = codec_json_parse(text.data ? text.data : "", text.len, "the request", out, err);
    act_buf_wipe(&text);
    return rc;
}

static int meet_print(json_t *response)
{
    ACT_AUTOWIPE char *line = codec_json_line(response);

    json_decref(response);
    return act_write_all(STDOUT_FILENO, line, strlen(line)) < 0 ? ACT_FAIL : 0;
}

/* ---- listen ---- */

struct listener {
    struct link_server *server;
    int awaited; /* machines */
    bool *came;  /* of each of n */
};

static bool meet_on_hello(void *arg, int who, const json_t *message)
{
    struct listener *l = arg;

    (void)message;
    l->awaited -= !l->came[who];
    l->came[who] = true;
    return true;
}

static void meet_on_message(void *arg, int who, const json_t *message)
{
    (void)arg;
    (void)who;
    (void)message;
}

static void meet_on_gone(void *arg, int who, int errnum)
{
    (void)arg;
    (void)who;
    (void)errnum;
}

/* Ports below those that the kernel gives to connections: it is still free when the run begins. */
static int meet_open(struct listener *l, int n, uint16_t *out_port, struct act_error *err)
{
    enum { LOW = 20000, HIGH = 32000, TRIES = 64 };
    static const struct link_events events = {.hello = meet_on_hello, .message = meet_on_message, .gone = meet_on_gone};
    int rc = -ACT_FAIL;

    for (int i = 0; rc < 0 && i < TRIES; i++) {
        act_random(out_port, sizeof(*out_port));
        *out_port = (uint16_t)(LOW + *out_port % (HIGH - LOW));
        rc = link_listen(n, &(struct link_where){.port = *out_port}, &events, l, &l->server, err);
    }
    return rc;
}

static void meet_serve(struct listener *l)
{
    int64_t deadline = act_now_monotonic_ms() + LISTEN_MS, left;

    while ((l->awaited > 0 || link_connected(l->server) > 0) && (left = deadline - act_now_monotonic_ms()) > 0) {
        poll(&(struct pollfd){.fd = link_fd(l->server), .events = POLLIN}, 1, (int)left);
        link_serve(l->server);
    }
}

/* A process that nobody waits for. */
static int meet_stay(struct listener *l, const char *sign)
{
    pid_t pid = fork();

    if (pid != 0)
        return pid < 0 ? ACT_FAIL : 0;
    int null = open("/dev/null", O_RDWR);
    setsid();
    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
        dup2(null, fd);
    meet_serve(l);
    unlink(sign);
    _exit(0);
}

/* The kernel's name for this start of the machine, and an address, where several share a kernel. New string. */
static char *meet_order(const char *target)
{
    enum { ID_MAX = 64 };
    ACT_AUTOFREE char *id = NULL;
    const char *address = strchr(target, ' ');

    if (act_file_read("/proc/sys/kernel/random/boot_id", ID_MAX, &id, NULL, NULL) == 0)
        id[strcspn(id, "\n")] = '\0';
    for (int skipped = 0; address && skipped < 2; skipped++) /* "tcp", and the port */
        address = strchr(address + 1, ' ');
    return act_sprintf("%s%s", id ? id : "", address ? address : "");
}

static int meet_listen(const char *root, const json_t *in, struct act_error *err)
{
    int n = codec_json_int_in(in, "n", 2, MACHINES_MOST, 2);
    ACT_AUTOFREE bool *came = act_calloc((size_t)n, sizeof(*came));
    struct listener l = {.awaited = n - 1, .came = came};
    uint16_t port = 0;
    int rc = meet_open(&l, n, &port, err);

    if (rc < 0)
        return rc;
    const char *target = link_address(l.server);
    ACT_AUTOFREE char *sign = act_sprintf("meets.%.16s.%d", target, (int)getpid());
    ACT_AUTOFREE char *path = act_path_join(root, sign);
    ACT_AUTOFREE char *order = meet_order(target);
    json_t *response = json_pack("{s:s, s:i, s:s, s:s}", "target", target, "port", port, "order", order, "sign", sign);
    rc = act_file_write_quickly(path, "", 0, 0600, err);
    if (rc == 0 && meet_stay(&l, path) != 0)
        rc = act_error_set(err, ACT_FAIL, "cannot start a process that listens");
    link_server_free(l.server);
    if (rc == 0)
        return meet_print(response);
    json_decref(response);
    return rc;
}

/* ---- reach ---- */

/* The addresses of all targets, except the loopback. */
struct addresses {
    struct act_strv texts;
    struct link_probe *v;
    size_t n;
};

static void addresses_release(struct addresses *a)
{
    act_strv_release(&a->texts);
    free(a->v);
}

/* Adds those of a target, "<token> tcp <port> <address> <address> ...". */
static void addresses_add(struct addresses *a, const char *target, size_t of)
{
    ACT_AUTOWIPE char *copy = act_strdup(target);
    char *rest = copy;
    const char *token = strsep(&rest, " "), *kind = strsep(&rest, " "), *port = strsep(&rest, " ");

    (void)token;
    for (const char *address; kind && port && (address = strsep(&rest, " "));) {
        if (act_starts_with(address, "127."))
            continue;
        act_strv_push(&a->texts, address);
        ACT_PUSH(a->v, a->n,
                 (struct link_probe){.address = a->texts.v[a->texts.n - 1], .port = (uint16_t)atoi(port), .of = of});
    }
}

/* Returns the first address of a target that works, in their order, which is the same for all machines; a new string.
 * NULL: none, and err says why. */
static char *meet_try(const struct addresses *all, size_t of, const char *target, int index, struct act_error *err)
{
    int token_len = (int)strcspn(target, " ");

    act_error_set(err, ACT_FAIL, "it has no address but that of itself");
    for (size_t i = 0; i < all->n; i++) {
        const struct link_probe *p = &all->v[i];
        if (p->of != of)
            continue;
        if (p->errnum) {
            act_error_set(err, ACT_FAIL, "cannot connect to port %d (%s: %s)", p->port, p->address,
                          strerror(p->errnum));
            continue;
        }
        CODEC_AUTOJSON json_t *hello = json_pack("{s:i}", "rank", index);
        ACT_AUTOWIPE char *one = act_sprintf("%.*s tcp %d %s", token_len, target, p->port, p->address);
        struct link l = {.fd = -1};
        bool stop;
        int rc = link_connect_once(&l, one, hello, &stop, err);
        link_close(&l);
        if (rc == 0)
            return act_strdup(p->address);
    }
    return NULL;
}

static json_t *meet_reach_all(const char *root, const struct act_strv *targets, const struct act_strv *signs, int index)
{
    json_t *reached = json_array(), *why = json_array(), *shared = json_array();
    struct addresses all = {0};
    struct act_error err;

    for (size_t i = 0; i < targets->n; i++)
        if (i != (size_t)index)
            addresses_add(&all, targets->v[i], i);
    link_probe(all.v, all.n);
    for (size_t i = 0; i < targets->n; i++) {
        bool is_own = i == (size_t)index;
        ACT_AUTOFREE char *path = act_path_join(root, signs->v[i]);
        bool is_shared = !is_own && access(path, F_OK) == 0;
        ACT_AUTOFREE char *address = is_own ? NULL : meet_try(&all, i, targets->v[i], index, &err);
        json_array_append_new(reached, address ? codec_json_bytes_new(address) : json_null());
        json_array_append_new(why, codec_json_bytes_new(address || is_own ? "" : act_error_text(&err)));
        json_array_append_new(shared, json_boolean(is_shared));
    }
    addresses_release(&all);
    return json_pack("{s:o, s:o, s:o}", "reached", reached, "why", why, "shared", shared);
}

static int meet_reach(const char *root, const json_t *in, struct act_error *err)
{
    ACT_AUTO(act_strv) targets = {0}, signs = {0};
    int index = codec_json_int_in(in, "index", 0, MACHINES_MOST, 0);

    if (!codec_json_strv_get(json_object_get(in, "targets"), &targets) ||
        !codec_json_strv_get(json_object_get(in, "signs"), &signs) || signs.n != targets.n)
        return act_error_set(err, ACT_USAGE, "the request has no valid 'targets'");
    return meet_print(meet_reach_all(root, &targets, &signs, index));
}

int node_meet(int argc, char **argv)
{
    CODEC_AUTOJSON json_t *in = NULL;
    struct act_error err;
    bool listens = argc == 3 && strcmp(argv[1], "listen") == 0;

    if (argc != 3 || (!listens && strcmp(argv[1], "reach") != 0))
        return ACT_USAGE;
    int rc = meet_read_request(&in, &err);
    if (rc == 0)
        rc = (listens ? meet_listen : meet_reach)(argv[2], in, &err);
    if (rc < 0)
        fprintf(stderr, "act-node: %s\n", act_error_text(&err));
    return rc < 0 ? -rc : rc;
}
