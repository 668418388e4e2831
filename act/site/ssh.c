/* ssh.c - starts OpenSSH, and tells what it could not do. ssh is left to ask for passwords on the terminal; which keys and
 * hosts are trusted is its own affair and never changed here. Options: ssh_config(5). */
#include "site/ssh.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/path.h"
#include "proc/proc.h"
#include "site/site_internal.h"

enum {
    HELLO_BATCH_S = 60,     /* until the first line of the other side, when nobody is asked for anything */
    HELLO_TERMINAL_S = 300, /* ... when somebody types a password */
    COPY_S = 600,
    SSH_FAILED = 255,     /* ssh's exit status for its own failures */
    SAID_MAX = 64 * 1024, /* of what ssh, or a login shell, says */
};

void ssh_init(struct ssh *ssh, const char *login, const char *root)
{
    *ssh = (struct ssh){.login = act_strdup(login), .root = act_strdup(root), .err_fd = -1};
}

void ssh_release(struct ssh *ssh)
{
    free(ssh->login);
    free(ssh->root);
    free(ssh->agent);
    free(ssh->machine);
    *ssh = (struct ssh){.err_fd = -1};
}

/* ---- the words of ssh ---- */

static bool has_terminal(void)
{
    int fd = open("/dev/tty", O_RDWR | O_NOCTTY | O_CLOEXEC);

    if (fd >= 0)
        close(fd);
    return fd >= 0;
}

/* Whether sockets may be made in dir: ours alone, and a path that a socket address can hold. */
static bool is_private(const char *dir)
{
    enum {
        NAME_MAX_LEN = 1 + 40 + 17
    }; /* a slash, %C, and what ssh puts behind it while it makes the socket */
    struct stat st;

    if (strlen(dir) + NAME_MAX_LEN >= sizeof(((struct sockaddr_un *)0)->sun_path))
        return false;
    if (mkdir(dir, 0700) < 0 && errno != EEXIST)
        return false;
    return lstat(dir, &st) == 0 && S_ISDIR(st.st_mode) && st.st_uid == geteuid() && (st.st_mode & 077) == 0;
}

/* A folder for the sockets over which several ssh share one connection. NULL: none is fit. New string. */
static char *control_dir(void)
{
    static const struct {
        const char *variable, *below;
    } places[] = {{"XDG_RUNTIME_DIR", "act"}, {"HOME", ".ssh/act"}, {"ACT_HOME", "ssh"}};

    for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
        const char *parent = getenv(places[i].variable);
        char *dir = parent && *parent == '/' ? act_path_join(parent, places[i].below) : NULL;
        if (dir && is_private(dir))
            return dir;
        free(dir);
    }
    return NULL;
}

/* "ssh", or the words of $ACT_SSH. */
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

static void push_options(struct act_strv *argv)
{
    static const char *const options[] = {
        "ServerAliveInterval=15", "ServerAliveCountMax=4",   "ConnectTimeout=15",
        "RemoteCommand=none",     "ClearAllForwardings=yes", "LogLevel=INFO",
    };
    ACT_AUTOFREE char *dir = control_dir();

    push_program(argv);
    for (size_t i = 0; i < sizeof(options) / sizeof(options[0]); i++) {
        act_strv_push(argv, "-o");
        act_strv_push(argv, options[i]);
    }
    if (!dir)
        return;
    act_strv_push(argv, "-o");
    act_strv_push(argv, "ControlMaster=auto");
    act_strv_push(argv, "-o");
    act_strv_pushf(argv, "ControlPath=%s/%%C", dir);
    act_strv_push(argv, "-o");
    act_strv_push(argv, "ControlPersist=600");
}

/* In single quotes, which every login shell knows; a backslash is no quote to all of them. */
static void add_quoted(struct act_buf *line, const char *word)
{
    act_buf_addc(line, '\'');
    for (; *word; word++)
        if (*word == '\'')
            act_buf_adds(line, "'\"'\"'");
        else
            act_buf_addc(line, *word);
    act_buf_addc(line, '\'');
}

void ssh_shell_words(const char *login, bool in_login_shell, const struct act_strv *argv,
                     struct act_strv *out)
{
    struct act_buf line = {0}, command = {0};

    push_options(out);
    if (isatty(STDIN_FILENO) && isatty(STDOUT_FILENO)) /* else what is redirected would get its line ends */
        act_strv_push(out, "-t");
    act_strv_push(out, "--");
    act_strv_push(out, login);
    for (size_t i = 0; i < argv->n; i++) {
        act_buf_adds(&line, i ? " " : "");
        add_quoted(&line, argv->v[i]);
    }
    if (in_login_shell) {
        act_buf_adds(&command, "exec \"$SHELL\" -lc ");
        add_quoted(&command, line.data);
        act_strv_push(out, command.data);
    } else {
        act_strv_push(out, line.data);
    }
    act_buf_release(&line);
    act_buf_release(&command);
}

/* A script for sh, with its arguments: one line without single quotes, which is the same text to every login
 * shell. */
static void make_argv(const struct ssh *ssh, const char *script, const char *last, struct act_strv *argv)
{
    ACT_AUTOFREE char *hash = act_strndup(ssh->agent_hash, SITE_AGENT_HEX);
    const char *const words[] = {script, "act", ssh->root, hash, last, NULL};
    struct act_buf line = {0};

    push_options(argv);
    if (!has_terminal()) {
        act_strv_push(argv, "-o");
        act_strv_push(argv, "BatchMode=yes");
    }
    act_strv_push(argv, "-T");
    act_strv_push(argv, "--");
    act_strv_push(argv, ssh->login);
    act_buf_adds(&line, "exec sh -c");
    for (const char *const *word = words; *word; word++) {
        act_buf_addc(&line, ' ');
        add_quoted(&line, *word);
    }
    act_strv_push(argv, line.data);
    act_buf_release(&line);
}

/* ---- what ssh says ---- */

/* The last line that says something, without its end. */
static void last_line(char *said, char *out, size_t size)
{
    char *rest = said, *line;

    out[0] = '\0';
    while ((line = strsep(&rest, "\r\n"))) {
        size_t n = strlen(line);
        while (n > 0 && (isspace((unsigned char)line[n - 1]) || line[n - 1] == '.'))
            line[--n] = '\0';
        if (n > 0 && !act_starts_with(line, "@@"))
            snprintf(out, size, "%s", line);
    }
}

static int explain(const char *login, char *said, struct act_error *err)
{
    static const struct {
        const char *said;
        enum act_code code;
        const char *advice;
    } rows[] = {
        {"REMOTE HOST IDENTIFICATION HAS CHANGED", ACT_DENIED,
         "its host key has changed: it was set up anew, or somebody is in between; when you know why, remove the old "
         "key (ssh-keygen -R HOST) and look at the new one"},
        {"Host key verification failed", ACT_DENIED,
         "its host key is not known here; connect once with ssh by hand and compare the key"},
        {"Permission denied", ACT_DENIED, "check with ssh by hand that you can log in there"},
        {"Too many authentication failures", ACT_DENIED, "check with ssh by hand that you can log in there"},
        {"Could not resolve hostname", ACT_TEMPORARY, "check 'login' in the configuration, and the network"},
        {"Connection refused", ACT_TEMPORARY, "check 'login' in the configuration, or try again later"},
        {"timed out", ACT_TEMPORARY, "check the network (is a VPN needed?), or try again later"},
        {"No route to host", ACT_TEMPORARY, "check the network (is a VPN needed?), or try again later"},
        {"Network is unreachable", ACT_TEMPORARY, "check the network, or try again later"},
        {"", ACT_TEMPORARY, "check with ssh by hand that you can log in there"},
    };
    size_t row = 0;
    char line[512];

    while (!strstr(said, rows[row].said))
        row++;
    last_line(said, line, sizeof(line));
    act_error_set(err, rows[row].code, "cannot connect to '%s': %s", login, *line ? line : "ssh ended");
    return act_error_hint(err, "%s", rows[row].advice);
}

/* New string. */
static char *read_said(int fd)
{
    char *said = act_alloc(SAID_MAX + 1);
    off_t end = fd < 0 ? 0 : lseek(fd, 0, SEEK_END);
    ssize_t n = fd < 0 ? 0 : act_pread_all(fd, said, SAID_MAX, end > SAID_MAX ? end - SAID_MAX : 0);

    said[n > 0 ? n : 0] = '\0';
    return said;
}

int ssh_explain_loss(const struct ssh *ssh, struct act_error *err)
{
    ACT_AUTOFREE char *said = read_said(ssh->err_fd);
    char line[512];

    last_line(said, line, sizeof(line));
    act_error_prefix(err, "'%s'", ssh->login);
    return *line ? act_error_hint(err, "ssh said: %s; try again", line) : act_error_hint(err, "try again");
}

/* ---- the connection ---- */

/* ssh reads and writes one socket; what it says goes to a file in memory, which a master that stays in the
 * background may keep open. */
static int start(struct ssh *ssh, struct act_strv *argv, struct channel *channel, struct act_error *err)
{
    int ends[2];

    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) < 0)
        return act_error_errno(err, errno, "cannot start '%s'", argv->v[0]);
    ssh->err_fd = memfd_create("ssh", MFD_CLOEXEC);
    const struct proc_start how = {
        .argv = argv->v, .in_fd = ends[1], .out_fd = ends[1], .err_fd = ssh->err_fd};
    int rc = proc_start(&how, &ssh->pid, err);
    close(ends[1]);
    if (rc < 0) {
        close(ends[0]);
        ssh->pid = 0;
        return rc == -ACT_NOT_FOUND ? act_error_hint(err, "install the OpenSSH client") : rc;
    }
    *channel = (struct channel){.in_fd = ends[0], .out_fd = ends[0]};
    return 0;
}

void ssh_disconnect(struct ssh *ssh, struct channel *channel)
{
    int status;

    if (channel->in_fd >= 0)
        close(channel->in_fd);
    channel->in_fd = channel->out_fd = -1;
    if (ssh->pid > 0) {
        kill(ssh->pid, SIGTERM);
        while (waitpid(ssh->pid, &status, 0) < 0 && errno == EINTR)
            continue;
    }
    ssh->pid = 0;
    if (ssh->err_fd >= 0)
        close(ssh->err_fd);
    ssh->err_fd = -1;
}

/* The first line that begins with the banner; what a login shell prints before it is passed over. */
static int read_banner(struct channel *channel, struct act_buf *line, struct act_error *err)
{
    size_t passed = 0;
    int rc;

    while ((rc = channel_read_line(channel, SAID_MAX, line, err)) == 0) {
        if (line->data && act_starts_with(line->data, SITE_BANNER))
            return 0;
        passed += line->len + 1;
        if (passed > SAID_MAX)
            return act_error_set(err, ACT_FAIL, "the login shell prints too much");
    }
    return rc;
}

/* What "uname" may have said; a word that becomes part of a file name. */
static bool is_machine(const char *text)
{
    return *text && strlen(text) < 32 && text[strspn(text, "abcdefghijklmnopqrstuvwxyz0123456789_")] == '\0';
}

char *ssh_find_program(const struct ssh *ssh, const char *name)
{
    ACT_AUTOFREE char *full = ssh->machine ? act_sprintf("%s-%s", name, ssh->machine) : act_strdup(name);
    char *path = NULL;

    return proc_find_sibling(full, &path, NULL) == 0 ? path : NULL;
}

static int choose_agent(struct ssh *ssh, struct act_error *err)
{
    free(ssh->agent);
    ssh->agent = ssh_find_program(ssh, SITE_AGENT);
    if (ssh->agent)
        return act_sha256_file(ssh->agent, ssh->agent_hash, err);
    if (!ssh->machine)
        return act_error_set(err, ACT_NOT_FOUND,
                             "cannot find '" SITE_AGENT "' beside this program; install ACT again");
    return act_error_set(
        err, ACT_CONFIG,
        "'%s' is a machine of another kind (%s): install the agent for it beside this program as "
        "'" SITE_AGENT "-%s'",
        ssh->login, ssh->machine, ssh->machine);
}

#define SET_ROOT                                                                                             \
    "r=$1; case \"$r\" in \"~\") r=$HOME;; \"~/\"*) r=\"$HOME/${r#??}\";; /*) ;; *) r=\"$HOME/$r\";; esac; " \
    "d=\"$r/bin/$2\"; "

static const char start_script[] = SET_ROOT
    "ACT_SITE_AGENT=\"$d/" SITE_AGENT "\"; export ACT_SITE_AGENT; "
    "if [ -x \"$ACT_SITE_AGENT\" ]; then "
    "if command -v sbatch >/dev/null 2>&1; then exec \"$ACT_SITE_AGENT\" serve; fi; "
    "case \"${SHELL:-}\" in *csh|\"\") exec \"$ACT_SITE_AGENT\" serve;; esac; " /* has read its set-up already */
    "ACT_SITE_LOGIN=1; export ACT_SITE_LOGIN; exec \"$SHELL\" -lc \"exec \\\"\\$ACT_SITE_AGENT\\\" serve\"; fi; "
    "echo \"" SITE_BANNER "needs $(uname -s) $(uname -m)\"";

static const char copy_script[] =
    SET_ROOT "umask 077; t=\"$d/" SITE_AGENT
             ".$$\"; mkdir -p \"$d\" && { cat >\"$t\" && [ \"$(wc -c <\"$t\")\" -eq \"$3\" ] && "
             "chmod 700 \"$t\" && mv -f \"$t\" \"$d/" SITE_AGENT "\" || { rm -f \"$t\"; exit 1; }; }";

/* Brings the agent in a connection of its own: there is nobody there yet to talk to. */
static int copy_agent(const struct ssh *ssh, struct act_error *err)
{
    enum { AGENT_MAX = 64 << 20 };
    struct act_strv argv = {0};
    struct proc_result result;
    ACT_AUTOFREE char *program = NULL;
    size_t len;
    int rc = act_file_read(ssh->agent, AGENT_MAX, &program, &len, err);

    if (rc < 0)
        return rc;
    ACT_AUTOFREE char *size = act_sprintf("%zu", len);
    make_argv(ssh, copy_script, size, &argv);
    rc = proc_call(&(struct proc_call){.argv = argv.v,
                                       .input = program,
                                       .input_len = len,
                                       .timeout_s = COPY_S,
                                       .max_bytes = SAID_MAX,
                                       .on_terminal = true},
                   &result, err);
    if (rc == 0 && result.status != 0) {
        char line[512];
        last_line(result.err, line, sizeof(line));
        rc = act_error_set(err, ACT_FAIL, "cannot bring the agent to '%s' on '%s': %s", ssh->root, ssh->login,
                           *line ? line : "it could not be written");
    }
    proc_result_release(&result);
    act_strv_release(&argv);
    return rc;
}

/* Nothing came that could be understood: waits for what ssh has to say. */
static int explain_start(struct ssh *ssh, struct channel *channel, struct act_error *err)
{
    ACT_AUTOFREE char *said = NULL;
    int status = 0;
    pid_t got;

    if (!err->network || strstr(err->text, "in time"))
        return act_error_prefix(err, "cannot start the agent on '%s'", ssh->login);
    while ((got = waitpid(ssh->pid, &status, 0)) < 0 && errno == EINTR)
        continue;
    said = read_said(ssh->err_fd);
    ssh->pid = 0;
    ssh_disconnect(ssh, channel);
    if (got > 0 && WIFEXITED(status) && WEXITSTATUS(status) != SSH_FAILED) {
        char line[512];
        last_line(said, line, sizeof(line));
        return act_error_set(err, ACT_FAIL, "cannot start the agent on '%s' (exit status %d): %s", ssh->login,
                             WEXITSTATUS(status), *line ? line : "it said nothing");
    }
    return explain(ssh->login, said, err);
}

/* One try. *out_needs: what the other side is, when the agent is not there; else NULL. New string. */
static int try_to_start(struct ssh *ssh, struct channel *channel, char **out_needs, struct act_error *err)
{
    const int limit_s = has_terminal() ? HELLO_TERMINAL_S : HELLO_BATCH_S;
    struct act_strv argv = {0};
    struct act_buf line = {0};

    make_argv(ssh, start_script, NULL, &argv);
    int rc = start(ssh, &argv, channel, err);
    act_strv_release(&argv);
    if (rc < 0)
        return rc;
    channel->deadline_ms = act_now_monotonic_ms() + (int64_t)limit_s * 1000;
    rc = read_banner(channel, &line, err);
    if (rc < 0)
        rc = explain_start(ssh, channel, err);
    else if (act_starts_with(line.data, SITE_BANNER "needs "))
        *out_needs = act_strdup(line.data + strlen(SITE_BANNER "needs "));
    else if (!act_streq(line.data, SITE_BANNER "ready"))
        rc = act_error_set(err, ACT_FAIL, "cannot start the agent on '%s': it answers '%s'", ssh->login,
                           line.data);
    act_buf_release(&line);
    if (rc < 0 || *out_needs)
        ssh_disconnect(ssh, channel);
    return rc;
}

/* "Linux x86_64": whether the agent that was tried is of that kind; if not, another one is to be tried. */
static int look_at_machine(struct ssh *ssh, const char *needs, bool *out_fits, struct act_error *err)
{
    const char *machine = strchr(needs, ' ');
    struct utsname own;

    machine = machine ? machine + 1 : "";
    if (!act_starts_with(needs, "Linux ") || !is_machine(machine) || uname(&own) < 0)
        return act_error_set(err, ACT_CONFIG, "cannot use '%s': the agent runs on Linux, and it is '%s'",
                             ssh->login, needs);
    const char *tried = ssh->machine ? ssh->machine : own.machine;
    *out_fits = act_streq(machine, tried);
    if (*out_fits)
        return 0;
    free(ssh->machine);
    ssh->machine = act_streq(machine, own.machine) ? NULL : act_strdup(machine);
    return choose_agent(ssh, err);
}

int ssh_connect(struct ssh *ssh, struct channel *channel, struct act_error *err)
{
    enum { TRIES = 4 }; /* not there; the other kind is not there; brought */
    int rc = ssh->agent ? 0 : choose_agent(ssh, err);

    for (int i = 0; i < TRIES && rc == 0; i++) {
        ACT_AUTOFREE char *needs = NULL;
        bool fits = false;
        rc = try_to_start(ssh, channel, &needs, err);
        if (rc < 0 || !needs)
            return rc;
        rc = look_at_machine(ssh, needs, &fits, err);
        if (rc == 0 && fits)
            rc = copy_agent(ssh, err);
    }
    return rc < 0 ? rc
                  : act_error_set(err, ACT_FAIL,
                                  "cannot start the agent on '%s': it was brought to '%s', and is not there",
                                  ssh->login, ssh->root);
}
