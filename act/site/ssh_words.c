/* ssh_words.c - ssh's command line: its options, and commands that every login shell understands. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/path.h"
#include "proc/proc.h"
#include "site/site.h"
#include "site/site_internal.h"
#include "site/ssh.h"

enum { PERSIST_S = 300 }; /* that a shared connection stays after the last command */

static bool never_asks, never_shares;

void site_never_ask(void)
{
    never_asks = true;
}

void site_never_share(void)
{
    never_shares = true;
}

bool site_may_ask(void)
{
    if (never_asks)
        return false;
    int fd = open("/dev/tty", O_RDWR | O_NOCTTY | O_CLOEXEC);
    bool ours = fd >= 0 && tcgetpgrp(fd) == getpgrp(); /* reading the terminal in the background would stop us */

    if (fd >= 0)
        close(fd);
    return ours;
}

bool ssh_may_ask(const struct ssh *ssh)
{
    return !ssh->never_asks && site_may_ask();
}

/* Tells whether sockets may be made in dir: ours alone, and a path that a socket address can hold and that ssh takes as
 * it is. */
static bool ssh_words_is_private(const char *dir)
{
    enum { NAME_MAX_LEN = 1 + 40 + 17 }; /* a slash, %C, and what ssh appends while it makes the socket */
    struct stat st;

    if (strlen(dir) + NAME_MAX_LEN >= sizeof(((struct sockaddr_un *)0)->sun_path))
        return false;
    if (strpbrk(dir, "%$\"'\\ \t\n"))
        return false;
    if (mkdir(dir, 0700) < 0 && errno != EEXIST)
        return false;
    return lstat(dir, &st) == 0 && S_ISDIR(st.st_mode) && st.st_uid == geteuid() && (st.st_mode & 077) == 0;
}

/* Returns the folder for the sockets over which several ssh share one connection, a new string; NULL: none is fit. */
static char *control_dir(void)
{
    static const struct {
        const char *variable, *below;
    } places[] = {{"XDG_RUNTIME_DIR", "act"}, {"HOME", ".ssh/act"}, {"ACT_HOME", "ssh"}};

    for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
        const char *parent = getenv(places[i].variable);
        char *dir = parent && *parent == '/' ? act_path_join(parent, places[i].below) : NULL;
        if (dir && ssh_words_is_private(dir))
            return dir;
        free(dir);
    }
    return NULL;
}

char *ssh_lock_path(const struct ssh *ssh)
{
    ACT_AUTOFREE char *dir = control_dir();
    struct act_sha256 hash;
    char name[ACT_SHA256_HEX];

    act_sha256_init(&hash);
    act_sha256_add(&hash, ssh->login, strlen(ssh->login));
    act_sha256_done(&hash, name);
    return dir ? act_sprintf("%s/%.16s.lock", dir, name) : NULL;
}

/* Appends "ssh", or the words of $ACT_SSH. */
static void push_program(struct act_strv *argv)
{
    const char *words = getenv("ACT_SSH");

    for (words = words ? words : ""; *words;) {
        size_t blank = strspn(words, " \t"), n = strcspn(words + blank, " \t");
        if (n)
            act_strv_pushf(argv, "%.*s", (int)n, words + blank);
        words += blank + n;
    }
    if (argv->n == 0)
        act_strv_push(argv, "ssh");
}

/* Tells whether ssh says that it has a socket for connections that are shared: "controlpath /home/me/.ssh/cm-1f2e". */
static bool ssh_words_has_socket(const char *said)
{
    static const char key[] = "controlpath ";
    const char *at = said ? strstr(said, key) : NULL;

    return at && (at == said || at[-1] == '\n') && !act_starts_with(at + strlen(key), "none\n");
}

enum ssh_sharing ssh_find_sharing(const char *login, int port)
{
    enum { LIMIT_S = 10, SAID_BYTES = 1 << 20 };
    ACT_AUTO(act_strv) argv = {0};
    ACT_AUTO(proc_result) said = {0};
    ACT_AUTOFREE char *dir = control_dir();
    struct act_error ignored;

    if (never_shares)
        return SSH_SHARES_NONE;
    push_program(&argv);
    act_strv_push(&argv, "-G");
    if (port)
        act_strv_pushf(&argv, "-p%d", port);
    ACT_STRV_PUSH(&argv, "--", login);
    int rc =
        proc_call(&(struct proc_call){.argv = argv.v, .sees = OF_SSH, .timeout_s = LIMIT_S, .max_bytes = SAID_BYTES},
                  &said, &ignored);
    if (rc == 0 && said.status == 0 && ssh_words_has_socket(said.out))
        return SSH_SHARES_USERS;
    return dir ? SSH_SHARES_OWN : SSH_SHARES_NOWHERE;
}

char *ssh_sharing_text(enum ssh_sharing sharing)
{
    ACT_AUTOFREE char *dir = control_dir();

    switch (sharing) {
    case SSH_SHARES_OWN:
        return act_sprintf("commands share one, which ends %d minutes after the last of them ('%s')", PERSIST_S / 60,
                           dir ? dir : "");
    case SSH_SHARES_USERS:
        return act_strdup("shared as your ssh is configured (ControlPath)");
    case SSH_SHARES_NONE:
        return act_strdup("each command makes its own (--no-share)");
    case SSH_SHARES_NOWHERE:
        break;
    }
    return act_strdup("each command makes its own: set XDG_RUNTIME_DIR to a folder of yours with a short path, and one "
                      "is shared");
}

/* Says where the socket of a shared connection is, unless the user's own configuration does. ssh itself removes one
 * that nobody listens on any more. */
static void push_sharing(struct act_strv *argv, enum ssh_sharing sharing)
{
    ACT_AUTOFREE char *dir = control_dir();

    if (sharing == SSH_SHARES_USERS)
        return;
    act_strv_push(argv, "-o");
    act_strv_push(argv, sharing == SSH_SHARES_OWN && dir ? "ControlMaster=auto" : "ControlMaster=no");
    act_strv_push(argv, "-o");
    if (sharing != SSH_SHARES_OWN || !dir) {
        act_strv_push(argv, "ControlPath=none");
        return;
    }
    act_strv_pushf(argv, "ControlPath=%s/%%C", dir);
    act_strv_push(argv, "-o");
    act_strv_pushf(argv, "ControlPersist=%d", PERSIST_S);
}

static void push_options(struct act_strv *argv, enum ssh_sharing sharing)
{
    static const char *const options[] = {
        "ServerAliveInterval=15", "ServerAliveCountMax=4",   "ConnectTimeout=15",
        "RemoteCommand=none",     "ClearAllForwardings=yes", "LogLevel=INFO",
    };

    push_program(argv);
    for (size_t i = 0; i < sizeof(options) / sizeof(options[0]); i++) {
        act_strv_push(argv, "-o");
        act_strv_push(argv, options[i]);
    }
    push_sharing(argv, sharing);
}

void ssh_shell_words(const char *login, int port, bool in_login_shell, const struct act_strv *argv,
                     struct act_strv *out)
{
    ACT_AUTO(act_buf) line = {0}, command = {0};

    push_options(out, ssh_find_sharing(login, port));
    if (port)
        act_strv_pushf(out, "-p%d", port);
    if (isatty(STDIN_FILENO) && isatty(STDOUT_FILENO)) /* else what is redirected would get its line ends */
        act_strv_push(out, "-t");
    act_strv_push(out, "--");
    act_strv_push(out, login);
    for (size_t i = 0; i < argv->n; i++) {
        act_buf_adds(&line, i ? " " : "");
        act_buf_add_quoted(&line, argv->v[i]);
    }
    if (in_login_shell) {
        act_buf_adds(&command, "exec \"$SHELL\" -lc ");
        act_buf_add_quoted(&command, line.data);
        act_strv_push(out, command.data);
    } else {
        act_strv_push(out, line.data);
    }
}

void ssh_command_words(const struct ssh *ssh, const char *script, const char *last, struct act_strv *argv)
{
    ACT_AUTOFREE char *hash = act_strndup(ssh->agent_hash, SITE_AGENT_HEX);
    const char *const words[] = {script, "act", ssh->root, hash, last, NULL};
    ACT_AUTO(act_buf) line = {0};

    push_options(argv, ssh->sharing);
    if (!ssh_may_ask(ssh)) {
        act_strv_push(argv, "-o");
        act_strv_push(argv, "BatchMode=yes");
    }
    act_strv_push(argv, "-T");
    act_strv_push(argv, "--");
    act_strv_push(argv, ssh->login);
    act_buf_adds(&line, "exec sh -c");
    for (const char *const *word = words; *word; word++) {
        act_buf_addc(&line, ' ');
        act_buf_add_quoted(&line, *word);
    }
    act_strv_push(argv, line.data);
}
