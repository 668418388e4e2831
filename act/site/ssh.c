/* ssh.c - starts OpenSSH and reports its failures. ssh itself asks for passwords on the terminal; which keys and
 * hosts it trusts is never changed here. Options: ssh_config(5). */
#include "site/ssh.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/dirs.h"
#include "base/file.h"
#include "base/log.h"
#include "base/path.h"
#include "codec/deflate.h"
#include "proc/pidfd.h"
#include "proc/proc.h"
#include "site/site_internal.h"

enum {
    HELLO_BATCH_S = 60,     /* until the first line of the other side, when nobody is asked for anything */
    HELLO_TERMINAL_S = 300, /* ... when a user types a password */
    COPY_S = 600,
    SSH_FAILED = 255,     /* ssh's exit status for its own failures */
    SAID_MAX = 64 * 1024, /* of what ssh, or the other side, says */
    NOISE_MAX = 1 << 20,  /* of what a login shell prints before */
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
    free(ssh->store);
    free(ssh->store_first);
    *ssh = (struct ssh){.err_fd = -1};
}

/* ---- what ssh says ---- */

/* Copies the last line that is not blank, without its end. */
static void ssh_last_line(char *said, char *out, size_t size)
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

/* Replaces each NUL, which a login shell may print, so that it does not end what ssh says behind it. */
static void make_text(char *said, size_t len)
{
    for (char *nul = said; said && (nul = memchr(nul, '\0', len - (size_t)(nul - said)));)
        *nul = ' ';
}

static int ssh_explain(struct ssh *ssh, char *said, struct act_error *err)
{
    static const struct {
        const char *said;
        enum act_code code;
        const char *advice;
        bool busy; /* the same may work a moment later */
    } rows[] = {
        {"REMOTE HOST IDENTIFICATION HAS CHANGED", ACT_DENIED,
         "its host key has changed: it was set up anew, or somebody is in between; when you know why, remove the old "
         "key (ssh-keygen -R HOST) and look at the new one",
         false},
        {"Host key verification failed", ACT_DENIED,
         "its host key is not known here; connect once with ssh by hand and compare the key", false},
        {"Permission denied", ACT_DENIED, "check with ssh by hand that you can log in there", false},
        {"Too many authentication failures", ACT_DENIED, "check with ssh by hand that you can log in there", false},
        {"Could not resolve hostname", ACT_TEMPORARY, "check its name in the configuration, and the network", false},
        {"Connection refused", ACT_TEMPORARY, "check its name in the configuration, or try again later", false},
        {"timed out", ACT_TEMPORARY, "check the network (is a VPN needed?), or try again later", false},
        {"No route to host", ACT_TEMPORARY, "check the network (is a VPN needed?), or try again later", false},
        {"Network is unreachable", ACT_TEMPORARY, "check the network, or try again later", false},
        {"Connection closed by", ACT_TEMPORARY, "it may have too many connections at once; try again later", true},
        {"Connection reset by", ACT_TEMPORARY, "it may have too many connections at once; try again later", true},
        {"Broken pipe", ACT_TEMPORARY, "it may have too many connections at once; try again later", true},
        {"", ACT_TEMPORARY, "check with ssh by hand that you can log in there", false},
    };
    size_t row = 0;
    char line[512];

    while (!strstr(said, rows[row].said))
        row++;
    ssh_last_line(said, line, sizeof(line));
    ssh->busy = rows[row].busy;
    act_error_set(err, rows[row].code, "cannot connect to '%s': %s", ssh->login, *line ? line : "ssh ended");
    return act_error_hint(err, "%s", rows[row].advice);
}

/* Returns what ssh said, a new string. */
static char *read_said(int fd)
{
    char *said = act_alloc(SAID_MAX + 1);
    off_t end = fd < 0 ? 0 : lseek(fd, 0, SEEK_END);
    ssize_t n = fd < 0 ? 0 : act_pread_all(fd, said, SAID_MAX, end > SAID_MAX ? end - SAID_MAX : 0);

    said[n > 0 ? n : 0] = '\0';
    make_text(said, n > 0 ? (size_t)n : 0);
    return said;
}

int ssh_explain_loss(const struct ssh *ssh, struct act_error *err)
{
    ACT_AUTOFREE char *said = read_said(ssh->err_fd);
    char line[512];

    ssh_last_line(said, line, sizeof(line));
    act_error_prefix(err, "'%s'", ssh->login);
    return *line ? act_error_hint(err, "ssh said: %s; try again", line) : act_error_hint(err, "try again");
}

/* ---- the connection ---- */

/* ssh reads and writes one socket; its messages go to a file in memory, which a master in the background may keep
 * open. */
static int start_ssh(struct ssh *ssh, struct act_strv *argv, struct channel *channel, struct act_error *err)
{
    int ends[2];

    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) < 0)
        return act_error_errno(err, errno, "cannot start '%s'", argv->v[0]);
    ssh->err_fd = memfd_create("ssh", MFD_CLOEXEC);
    const struct proc_start how = {
        .argv = argv->v, .sees = OF_SSH, .in_fd = ends[1], .out_fd = ends[1], .err_fd = ssh->err_fd};
    int rc = proc_start(&how, &ssh->pid, err);
    close(ends[1]);
    if (rc < 0) {
        close(ends[0]);
        ssh->pid = 0;
        return rc == -ACT_NOT_FOUND ? act_error_hint(err, "install the OpenSSH client") : rc;
    }
    *channel = (struct channel){.in_fd = ends[0], .out_fd = ends[0], .reads_early = true};
    return 0;
}

void ssh_disconnect(struct ssh *ssh, struct channel *channel)
{
    int status;

    channel_close(channel);
    if (ssh->pid > 0) {
        kill(ssh->pid, SIGTERM);
        kill(ssh->pid, SIGCONT); /* it may be stopped */
        while (waitpid(ssh->pid, &status, 0) < 0 && errno == EINTR)
            continue;
    }
    ssh->pid = 0;
    if (ssh->err_fd >= 0)
        close(ssh->err_fd);
    ssh->err_fd = -1;
}

/* Reads up to the end of the banner. Login shells may print anything before it, also a terminal's title without a line
 * end. */
static int read_banner(struct channel *channel, struct act_buf *line, struct act_error *err)
{
    int rc = channel_skip_to(channel, SITE_BANNER, NOISE_MAX, err);

    if (rc == -ACT_FAIL) {
        act_error_set(err, ACT_FAIL, "the login shell prints too much, more than %d KiB, before it runs a command",
                      NOISE_MAX / 1024);
        return act_error_hint(err, "let ~/.bashrc, and what else it reads at its start, print to terminals alone");
    }
    return rc < 0 ? rc : channel_read_line(channel, SAID_MAX, line, err);
}

/* Tells whether text is a word of "uname"'s output, which becomes part of a file name. */
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
        return act_error_set(err, ACT_NOT_FOUND, "cannot find '" SITE_AGENT "' beside this program; install ACT again");
    return act_error_set(err, ACT_CONFIG,
                         "'%s' is a machine of another kind (%s): install the agent for it beside this program as "
                         "'" SITE_AGENT "-%s'",
                         ssh->login, ssh->machine, ssh->machine);
}

/* The agent says NEEDS, or start_script in its place; that says before which versions were brought there. */
#define NEEDS   "needs "
#define VERSION "version "

#define SET_ROOT                                                                                                       \
    "r=$1; case \"$r\" in \"~\") r=$HOME;; \"~/\"*) r=\"$HOME/${r#??}\";; /*) ;; *) r=\"$HOME/$r\";; esac; "           \
    "d=\"$r/bin/$2\"; "

static const char start_script[] = SET_ROOT
    "for v in \"$r\"/bin/*/version; do [ -r \"$v\" ] && read -r n <\"$v\" && "
    "echo \"" SITE_BANNER_WORD VERSION "$n\"; done; "
    "ACT_SITE_AGENT=\"$d/" SITE_AGENT "\"; ACT_SITE_ROOT=$r; ACT_SITE_STORE=${3:-}; "
    "export ACT_SITE_AGENT ACT_SITE_ROOT ACT_SITE_STORE; "
    "if [ -x \"$ACT_SITE_AGENT\" ]; then "
    "if command -v sbatch >/dev/null 2>&1; then exec \"$ACT_SITE_AGENT\" serve; fi; "
    "case \"${SHELL:-}\" in *csh|\"\") exec \"$ACT_SITE_AGENT\" serve;; esac; " /* has read its set-up already */
    "ACT_SITE_LOGIN=1; export ACT_SITE_LOGIN; exec \"$SHELL\" -lc \"exec \\\"\\$ACT_SITE_AGENT\\\" serve\"; fi; "
    "echo \"" SITE_BANNER_WORD NEEDS "$(uname -s) $(uname -m)\"";

/* Writes the agent, which "read" gives. */
#define COPY_SCRIPT(read)                                                                                              \
    SET_ROOT "umask 077; t=\"$d/" SITE_AGENT ".$(uname -n).$$\"; mkdir -p \"$d\" && { " read                           \
             " >\"$t\" && [ \"$(wc -c <\"$t\")\" -eq \"$3\" ] && "                                                     \
             "chmod 700 \"$t\" && echo " ACT_VERSION " >\"$d/version\" && mv -f \"$t\" \"$d/" SITE_AGENT               \
             "\" || { rm -f \"$t\"; exit 1; }; }"

static const char copy_script[] = COPY_SCRIPT("cat"), unpack_script[] = COPY_SCRIPT("gzip -dc");

/* Runs one of these scripts, which gets these bytes. A program there that fails is a status. */
static int ssh_run_copy(const struct ssh *ssh, const char *script, const char *size, const struct act_buf *bytes,
                        struct proc_result *out, struct act_error *err)
{
    ACT_AUTO(act_strv) argv = {0};

    ssh_command_words(ssh, script, size, &argv);
    int rc = proc_call(&(struct proc_call){.argv = argv.v,
                                           .sees = OF_SSH,
                                           .input = bytes->data,
                                           .input_len = bytes->len,
                                           .timeout_s = COPY_S,
                                           .max_bytes = NOISE_MAX,
                                           .on_terminal = true},
                       out, err);
    make_text(out->err, out->err_len);
    return rc;
}

/* Brings the agent over a connection of its own, as there is no agent yet to talk to: compressed, unless there is no
 * gzip. */
static int copy_agent(const struct ssh *ssh, struct act_error *err)
{
    enum { AGENT_MAX = 64 << 20 };
    ACT_AUTO(proc_result) result = {0};
    ACT_AUTO(act_buf) program = {0}, packed = {0};
    int rc = act_file_read(ssh->agent, AGENT_MAX, &program.data, &program.len, err);

    if (rc < 0)
        return rc;
    ACT_AUTOFREE char *size = act_sprintf("%zu", program.len);
    bool is_packed = codec_gzip(&program, &packed);
    if (is_packed)
        rc = ssh_run_copy(ssh, unpack_script, size, &packed, &result, err);
    if (!is_packed || (rc == 0 && result.status != 0 && result.status != SSH_FAILED)) {
        proc_result_release(&result);
        rc = ssh_run_copy(ssh, copy_script, size, &program, &result, err);
    }
    if (rc == 0 && result.status != 0) {
        char line[512];
        ssh_last_line(result.err, line, sizeof(line));
        rc = act_error_set(err, ACT_FAIL, "cannot bring the agent to '%s' on '%s': %s", ssh->root, ssh->login,
                           *line ? line : "it could not be written");
    }
    return rc;
}

/* ---- without an agent ---- */

/* Starts a shell for its input, as start_script starts the agent. */
static const char shell_script[] = "if command -v sbatch >/dev/null 2>&1; then exec sh; fi; "
                                   "case \"${SHELL:-}\" in *csh|\"\") exec sh;; esac; exec \"$SHELL\" -lc \"exec sh\"";

/* It stands before the output of a script, because login shells may print something of their own. */
#define OUTPUT_MARK SITE_BANNER "shell\n"

/* Leaves the output of the script. Returns whether it began; if not, there is none. */
static bool cut_to_mark(struct site_result *result)
{
    const size_t len = strlen(OUTPUT_MARK);
    const char *mark = result->out ? memmem(result->out, result->out_len, OUTPUT_MARK, len) : NULL;

    result->out_len = mark ? result->out_len - (size_t)(mark - result->out) - len : 0;
    if (result->out)
        memmove(result->out, mark ? mark + len : "", result->out_len + 1);
    return mark;
}

static int ssh_run_script(struct ssh *ssh, const char *script, const struct site_command *limits,
                          struct site_result *out, struct act_error *err)
{
    ACT_AUTOFREE char *input = act_sprintf("printf \"%%s\\n\" \"" SITE_BANNER "shell\"\n%s\n", script);
    struct proc_result got = {0};
    ACT_AUTO(act_strv) argv = {0};

    ssh_command_words(ssh, shell_script, NULL, &argv);
    int rc = proc_call(&(struct proc_call){.argv = argv.v,
                                           .sees = OF_SSH,
                                           .input = input,
                                           .input_len = strlen(input),
                                           .timeout_s = limits->timeout_s,
                                           .max_bytes = limits->max_bytes + NOISE_MAX,
                                           .on_terminal = true},
                       &got, err);
    *out = here_result_of(&got);
    make_text(out->err, out->err_len);
    if (rc == 0 && out->status == SSH_FAILED)
        rc = ssh_explain(ssh, out->err, err);
    if (!cut_to_mark(out) && rc == 0 && out->status == 0)
        rc = act_error_set(err, ACT_FAIL, "the login shell on '%s' does not run what it is given", ssh->login);
    return rc;
}

int ssh_find_root(struct ssh *ssh, char **out, struct act_error *err)
{
    const struct site_command limits = {.timeout_s = HELLO_BATCH_S, .max_bytes = SAID_MAX};
    ACT_AUTO(site_result) result = {0};
    ACT_AUTO(act_buf) script = {0};

    act_buf_adds(&script, "set -- ");
    act_buf_add_quoted(&script, ssh->root);
    act_buf_adds(&script, "; " SET_ROOT "printf \"%s\" \"$r\"");
    int rc = ssh_run_script(ssh, script.data, &limits, &result, err);
    if (rc == 0 && (!result.out || *result.out != '/'))
        rc = act_error_set(err, ACT_FAIL, "cannot find '%s' on '%s': it answers '%s'", ssh->root, ssh->login,
                           result.out ? result.out : "");
    *out = rc == 0 ? act_strdup(result.out) : NULL;
    return rc;
}

int ssh_run(struct ssh *ssh, const struct site_command *command, struct site_result *result, struct act_error *err)
{
    enum { NOT_FOUND_STATUS = 127 };
    ACT_AUTOFREE char *reduce = environment_script(OF_SLURM);
    ACT_AUTO(act_buf) script = {0};

    act_buf_addf(&script, "cd /; TZ=UTC; export TZ\n%sexec", reduce);
    for (const char *const *word = command->argv; *word; word++) {
        act_buf_addc(&script, ' ');
        act_buf_add_quoted(&script, *word);
    }
    int rc = ssh_run_script(ssh, script.data, command, result, err);
    if (rc == 0 && result->status == NOT_FOUND_STATUS)
        rc = act_error_set(err, ACT_NOT_FOUND, "'%s' is not on '%s'", command->argv[0], ssh->login);
    return rc;
}

/* ---- starting ---- */

/* Waits for the end of ssh, whose other side has closed already. Returns its status as from waitpid(). */
static int wait_for_ssh(struct ssh *ssh)
{
    enum { LINGER_MS = 5000 };
    int status = 0, fd = proc_pidfd_open(ssh->pid);

    if (!proc_pidfd_wait(fd, LINGER_MS))
        kill(ssh->pid, SIGTERM);
    while (waitpid(ssh->pid, &status, 0) < 0 && errno == EINTR)
        continue;
    if (fd >= 0)
        close(fd);
    ssh->pid = 0;
    return status;
}

/* Waits for ssh's message, because no valid response came. */
static int explain_start(struct ssh *ssh, struct channel *channel, struct act_error *err)
{
    if (!err->network || !channel->ended) {
        err->network = false; /* no connection that broke: it never answered */
        return act_error_prefix(err, "cannot start the agent on '%s'", ssh->login);
    }
    int status = wait_for_ssh(ssh);
    ACT_AUTOFREE char *said = read_said(ssh->err_fd);
    if (WIFEXITED(status) && WEXITSTATUS(status) != SSH_FAILED) {
        char line[512];
        ssh_last_line(said, line, sizeof(line));
        return act_error_set(err, ACT_FAIL, "cannot start the agent on '%s' (exit status %d): %s", ssh->login,
                             WEXITSTATUS(status), *line ? line : "it said nothing");
    }
    return ssh_explain(ssh, said, err);
}

/* Waits for the other side's first bytes. Meanwhile ssh may be asking the user something: the menu of a second
 * factor, a warning. */
static void wait_for_response(const struct ssh *ssh, const struct channel *channel)
{
    enum { STEP_MS = 100, CHUNK = 4096 };
    struct pollfd response = {.fd = channel->in_fd, .events = POLLIN};
    int terminal = ssh->never_asks ? -1 : open("/dev/tty", O_WRONLY | O_NOCTTY | O_CLOEXEC);
    char chunk[CHUNK];
    off_t shown = 0;

    while (terminal >= 0 && poll(&response, 1, STEP_MS) == 0 && act_now_monotonic_ms() < channel->deadline_ms) {
        ssize_t n = pread(ssh->err_fd, chunk, sizeof(chunk), shown);
        if (n > 0 && act_write_all(terminal, chunk, (size_t)n) < 0)
            break;
        shown += n > 0 ? n : 0;
    }
    if (terminal >= 0)
        close(terminal);
}

/* Returns the path of the file that has the newest version of ACT which a login node had, and its login. New string. */
static char *ssh_newer_file(void)
{
    ACT_AUTOFREE char *dir = act_cache_dir();

    return act_path_join(dir, "newer");
}

char *site_newer(void)
{
    ACT_AUTOFREE char *path = ssh_newer_file();
    char *text = NULL;
    size_t len;
    struct act_error ignored;

    if (act_file_read(path, SAID_MAX, &text, &len, &ignored) < 0)
        return NULL;
    if (strverscmp(text, ACT_VERSION) > 0)
        return text;
    free(text);
    return NULL;
}

/* Remembers a version that is newer than this one and than what is known. */
static void ssh_note_version(const struct ssh *ssh, const char *version)
{
    ACT_AUTOFREE char *path = ssh_newer_file();
    ACT_AUTOFREE char *known = site_newer();
    ACT_AUTOFREE char *dir = act_cache_dir();
    ACT_AUTOFREE char *text = act_sprintf("%s on %s", version, ssh->login);
    struct act_error ignored;

    if (version[strspn(version, "0123456789.")] || strverscmp(version, ACT_VERSION) <= 0 ||
        (known && strverscmp(text, known) <= 0))
        return;
    if (act_mkdir_all(dir, 0700, &ignored) == 0 && act_file_write(path, text, strlen(text), 0600, &ignored) < 0)
        act_trace("ssh", "%s", act_error_text(&ignored)); /* it is only for information */
}

/* Reads the banner of the agent, and before it those that name versions. */
static int ssh_read_start(const struct ssh *ssh, struct channel *channel, struct act_buf *line, struct act_error *err)
{
    int rc;

    while ((rc = read_banner(channel, line, err)) == 0 && line->data && act_starts_with(line->data, VERSION))
        ssh_note_version(ssh, line->data + strlen(VERSION));
    return rc;
}

/* Returns the word that has the agent become a store at once, a new string; NULL: it is not to. */
static char *ssh_store_word(const struct ssh *ssh)
{
    ACT_AUTOFREE char *program = ssh->store ? ssh_find_program(ssh, SITE_ACT) : NULL;
    struct act_error ignored;
    int64_t size;

    if (!program || here_size_of(program, &size, &ignored) < 0)
        return NULL;
    return act_sprintf("%lld %zu %s%s%s", (long long)size, strlen(ssh->store), ssh->store, ssh->store_first ? " " : "",
                       ssh->store_first ? ssh->store_first : "");
}

/* Tries once. *out_needs: a new string, the machine of the other side if the agent is not there; else NULL. */
static int try_to_start(struct ssh *ssh, struct channel *channel, char **out_needs, struct act_error *err)
{
    const int limit_s = ssh_may_ask(ssh) ? HELLO_TERMINAL_S : HELLO_BATCH_S;
    ACT_AUTO(act_strv) argv = {0};
    ACT_AUTO(act_buf) line = {0};

    ACT_AUTOFREE char *store = ssh_store_word(ssh);
    ssh_command_words(ssh, start_script, store, &argv);
    ssh->busy = false;
    int rc = start_ssh(ssh, &argv, channel, err);
    if (rc < 0)
        return rc;
    channel->deadline_ms = act_now_monotonic_ms() + (int64_t)limit_s * 1000;
    wait_for_response(ssh, channel);
    rc = ssh_read_start(ssh, channel, &line, err);
    if (rc < 0)
        rc = explain_start(ssh, channel, err);
    else if (line.data && act_starts_with(line.data, NEEDS))
        *out_needs = act_strdup(line.data + strlen(NEEDS));
    else if (!(ssh->is_store = store && act_streq(line.data, SITE_STORE)) && !act_streq(line.data, "ready"))
        rc = act_error_set(err, ACT_FAIL, "cannot start the agent on '%s': it answers '%s'", ssh->login,
                           line.data ? line.data : "");
    if (rc < 0 || *out_needs)
        ssh_disconnect(ssh, channel);
    return rc;
}

/* Tells whether the agent that was tried is for a machine such as "Linux x86_64"; if not, chooses the next to try. */
static int look_at_machine(struct ssh *ssh, const char *needs, bool *out_fits, struct act_error *err)
{
    const char *machine = strchr(needs, ' ');
    struct utsname own;

    machine = machine ? machine + 1 : "";
    if (!act_starts_with(needs, "Linux ") || !is_machine(machine) || uname(&own) < 0)
        return act_error_set(err, ACT_CONFIG, "cannot use '%s': the agent runs on Linux, and it is '%s'", ssh->login,
                             needs);
    const char *tried = ssh->machine ? ssh->machine : own.machine;
    *out_fits = act_streq(machine, tried);
    if (*out_fits)
        return 0;
    free(ssh->machine);
    ssh->machine = act_streq(machine, own.machine) ? NULL : act_strdup(machine);
    return choose_agent(ssh, err);
}

/* Tries again if the other side was busy. */
static int start_patiently(struct ssh *ssh, struct channel *channel, char **out_needs, struct act_error *err)
{
    static const int pauses_ms[] = {200, 600, 1800, 5400}; /* a login can take seconds on a node that is busy */
    int rc = try_to_start(ssh, channel, out_needs, err);

    for (size_t i = 0; i < sizeof(pauses_ms) / sizeof(pauses_ms[0]) && rc < 0 && ssh->busy; i++) {
        uint8_t random;
        act_random(&random, sizeof(random));
        usleep((useconds_t)(pauses_ms[i] + random) * 1000);
        rc = try_to_start(ssh, channel, out_needs, err);
    }
    return rc;
}

static int start_or_bring(struct ssh *ssh, struct channel *channel, struct act_error *err)
{
    enum { TRIES = 4 }; /* not there; the other kind is not there; brought */
    int rc = ssh->agent ? 0 : choose_agent(ssh, err);

    for (int i = 0; i < TRIES && rc == 0; i++) {
        ACT_AUTOFREE char *needs = NULL;
        bool fits = false;
        rc = start_patiently(ssh, channel, &needs, err);
        if (rc < 0 || !needs)
            return rc;
        rc = look_at_machine(ssh, needs, &fits, err);
        if (rc == 0 && fits && ssh->only_look) {
            ssh->absent = true;
            return 0;
        }
        if (rc == 0 && fits)
            rc = copy_agent(ssh, err);
    }
    return rc < 0 ? rc
                  : act_error_set(err, ACT_FAIL,
                                  "cannot start the agent on '%s': it was brought to '%s', and is not there",
                                  ssh->login, ssh->root);
}

/* Processes connect one after the other: the first one asks for the password and makes the connection that the others
 * share, and no server gets more new connections at once than it accepts. */
int ssh_connect(struct ssh *ssh, struct channel *channel, struct act_error *err)
{
    ACT_AUTOFREE char *path = ssh_lock_path(ssh);
    ACT_AUTOFREE char *doing = act_sprintf("connects to '%s'", ssh->login);
    int lock = path ? act_lock_told(path, doing, err) : -1;

    if (path && lock < 0)
        return lock;
    ssh->sharing = ssh_find_sharing(ssh->login, 0);
    int rc = start_or_bring(ssh, channel, err);
    if (lock >= 0)
        close(lock);
    return rc;
}
