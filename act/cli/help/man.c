/* man.c - the manual, as pages of man(7), from the rows of the tables. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/file.h"
#include "cli/command/verbs.h"
#include "cli/help/help.h"
#include "cli/print/wrap.h"
#include "proc/proc.h"

/* Prints text as roff shows it byte for byte: no request at the start of a line, and dashes that can be copied. */
static void man_put_text(FILE *out, const char *text, size_t n)
{
    if (n > 0 && (text[0] == '.' || text[0] == '\''))
        fputs("\\&", out);
    for (size_t i = 0; i < n; i++) {
        if (text[i] == '\\')
            fputs("\\e", out);
        else if (text[i] == '-')
            fputs("\\-", out);
        else
            fputc(text[i], out);
    }
}

static void man_put(FILE *out, const char *text)
{
    man_put_text(out, text, strlen(text));
}

static void man_put_line(FILE *out, const char *text)
{
    man_put(out, text);
    fputc('\n', out);
}

/* Prints a line: bold text, then plain text (NULL: none). */
static void put_bold(FILE *out, const char *bold, const char *more)
{
    fputs("\\fB", out);
    man_put(out, bold);
    fputs("\\fR", out);
    if (more && *more) {
        fputc(' ', out);
        man_put(out, more);
    }
    fputc('\n', out);
}

static void put_entry(FILE *out, const char *term, const char *more, const char *text)
{
    fputs(".TP\n", out);
    put_bold(out, term, more);
    man_put_line(out, text);
}

static void put_lines(FILE *out, const char *text, size_t len)
{
    for (const char *end = text + len; text < end;) {
        size_t n = strcspn(text, "\n");
        man_put_text(out, text, n);
        fputc('\n', out);
        text += n + (text[n] == '\n');
    }
}

static void put_prose(FILE *out, const char *text)
{
    for (size_t n = 0; *text; text += n) {
        if (n > 0)
            fputs(".PP\n", out);
        n = cli_paragraph(text);
        put_lines(out, text, n);
    }
}

/* man(1) does not wrap these lines, and indents them. */
static void put_examples(FILE *out, const char *text)
{
    enum { WIDTH = 71 };
    char *lines = NULL;
    size_t len = 0;
    FILE *wrapped = open_memstream(&lines, &len);

    if (!wrapped)
        return;
    cli_put_examples(wrapped, text, 0, WIDTH);
    fclose(wrapped);
    fputs(".SH EXAMPLES\n.nf\n", out);
    put_lines(out, lines, len);
    fputs(".fi\n", out);
    free(lines);
}

static void put_option(FILE *out, const struct cli_command *command, const struct cli_option *o)
{
    ACT_AUTOFREE char *term =
        act_sprintf("%s%s--%s", o->short_name ? o->short_name : "", o->short_name ? ", " : "", o->long_name);

    put_entry(out, term, o->argument, cli_option_help(command, o));
}

/* Prints the verb's options for a place, below a heading (NULL: the previous one). */
static void put_options(FILE *out, const struct cli_command *command, enum cli_place place, const char *heading)
{
    for (const struct cli_option *o = NULL; (o = cli_next_option(command, place, o));) {
        if (heading)
            fprintf(out, ".SH %s\n", heading);
        heading = NULL;
        put_option(out, command, o);
    }
}

/* Only the title has the names in capitals. */
static void put_title(FILE *out, const char *name, int section, const char *summary)
{
    fputs(".TH ", out);
    for (const char *c = name; *c; c++)
        fputc(*c >= 'a' && *c <= 'z' ? *c - 'a' + 'A' : *c, out);
    fprintf(out, " %d \"" ACT_DATE "\" \"ACT " ACT_VERSION "\" \"ACT\"\n.nh\n.ad l\n.SH NAME\n", section);
    man_put(out, name);
    fputs(" \\- ", out);
    man_put_line(out, summary);
}

static void put_verbs_of(FILE *out, const struct cli_command *c)
{
    fputs(".SH VERBS\n", out);
    for (const struct cli_verb *v = c->verbs; v->name; v++) {
        if (v->group)
            fprintf(out, ".SS %s\n", v->group);
        put_entry(out, v->name, NULL, v->summary);
    }
    fprintf(out, ".PP\nThe options of each:\n.B a help %s VERB\n", c->name);
}

static void put_verb(FILE *out, const struct cli_command *c)
{
    ACT_AUTOFREE char *name = act_sprintf("a-%s", c->name);
    ACT_AUTOFREE char *words = act_sprintf("%s%s", c->options ? "[OPTIONS] " : "", c->synopsis);
    ACT_AUTOFREE char *call = act_sprintf("a [OPTIONS] %s", c->name);

    put_title(out, name, 1, c->summary);
    fputs(".SH SYNOPSIS\n", out);
    put_bold(out, call, words);
    if (c->aliases) {
        fputs(".PP\nalso: ", out);
        man_put_line(out, c->aliases);
    }
    if (c->verbs)
        put_verbs_of(out, c);
    if (c->details) {
        fputs(".SH DESCRIPTION\n", out);
        put_prose(out, c->details);
    }
    put_options(out, c, CLI_BEHIND, "OPTIONS");
    put_options(out, c, CLI_BEFORE, "OPTIONS THAT MAY ALSO COME BEFORE THE VERB");
    put_options(out, c, CLI_EVERYWHERE, "OPTIONS OF EVERY VERB");
    put_examples(out, c->examples);
    fputs(".SH SEE ALSO\n.BR a (1),\n.BR act.yaml (5)\n", out);
}

/* The page does not know where it will be installed. */
static void put_documents(FILE *out)
{
    fputs(".PP\n", out);
    put_prose(out,
              "Tutorials and the reference are in share/doc/act-cluster/docs, example files in share/act/examples,\n"
              "below the folder where ACT is installed.\n");
}

static void put_overview(FILE *out)
{
    put_title(out, "a", 1, "transfers any command from this machine to a cluster");
    fputs(".SH SYNOPSIS\n", out);
    put_bold(out, "a", "[OPTIONS] VERB [OPTIONS] [ARGUMENTS]");
    fputs(".SH VERBS\nEach has a page:\n.BR a\\-submit (1)\nand so on.\n", out);
    for (const struct cli_command *c = cli_next_command(NULL); c; c = cli_next_command(c)) {
        if (c->group)
            fprintf(out, ".SS %s\n", c->group);
        if (!c->hidden)
            put_entry(out, c->name, c->aliases, c->summary);
    }
    put_options(out, NULL, CLI_BEFORE, "OPTIONS OF SEVERAL VERBS, BEFORE OR AFTER THE VERB");
    put_options(out, NULL, CLI_EVERYWHERE, "OPTIONS OF EVERY VERB");
    fputs(".SH EXIT STATUS\n", out);
    put_prose(out, cli_exit_statuses);
    put_examples(out, cli_overview_examples);
    fputs(".SH SEE ALSO\n.BR act.yaml (5)\n", out);
    put_documents(out);
}

static void man_put_key(void *arg, const struct config_key_text *key)
{
    ACT_AUTOFREE char *text = cli_key_help(key);

    put_entry(arg, key->path, key->values, text);
}

static void put_file_format(FILE *out, const struct cli_command *command)
{
    (void)command;
    put_title(out, "act.yaml", 5, "the files that configure ACT: of projects, clusters, accounts and users");
    fputs(".SH DESCRIPTION\n", out);
    put_prose(out, cli_file_format);
    for (size_t i = 0; i < CLI_FILES; i++) {
        fprintf(out, ".SH %s\n", cli_files[i].title);
        put_prose(out, cli_files[i].what);
        fputs(".PP\n.nf\n.RS\n", out);
        put_lines(out, cli_files[i].example, strlen(cli_files[i].example));
        fputs(".RE\n.fi\n", out);
        config_each_key(cli_files[i].file, man_put_key, out);
    }
    fputs(".SH SEE ALSO\n.BR a (1)\n", out);
    put_documents(out);
}

static void put_page(FILE *out, const struct cli_command *command)
{
    if (command)
        put_verb(out, command);
    else
        put_overview(out);
}

typedef void page_fn(FILE *out, const struct cli_command *command);

static int man_write_page(const char *dir, const char *name, page_fn *page, const struct cli_command *command,
                          struct act_error *err)
{
    ACT_AUTOFREE char *path = act_sprintf("%s/%s", dir, name);
    FILE *out = fopen(path, "w");

    if (!out)
        return act_error_errno(err, errno, "cannot write '%s'", path);
    page(out, command);
    bool failed = ferror(out);
    if (fclose(out) != 0 || failed)
        return act_error_errno(err, errno, "cannot write '%s'", path);
    return 0;
}

static int make_folders(const char *dir, struct act_error *err)
{
    ACT_AUTOFREE char *section1 = act_sprintf("%s/man1", dir);
    ACT_AUTOFREE char *section5 = act_sprintf("%s/man5", dir);
    int rc = act_mkdir_all(section1, 0755, err);

    return rc < 0 ? rc : act_mkdir_all(section5, 0755, err);
}

int cmd_man(struct cli *cli, struct act_error *err)
{
    const char *dir = cli->words.v[0];
    int rc = make_folders(dir, err);

    if (rc == 0)
        rc = man_write_page(dir, "man1/a.1", put_page, NULL, err);
    if (rc == 0)
        rc = man_write_page(dir, "man5/act.yaml.5", put_file_format, NULL, err);
    for (const struct cli_command *c = cli_next_command(NULL); rc == 0 && c; c = cli_next_command(c)) {
        ACT_AUTOFREE char *name = act_sprintf("man1/a-%s.1", c->name);
        if (!c->hidden)
            rc = man_write_page(dir, name, put_page, c, err);
    }
    return rc;
}

/* Puts a page into a memory file that a child can read. Returns the file descriptor, or -1. */
static int page_in_memory(page_fn *page, const struct cli_command *command)
{
    int fd = memfd_create("page", MFD_CLOEXEC), copy = fd < 0 ? -1 : dup(fd);
    FILE *out = copy < 0 ? NULL : fdopen(copy, "w");

    if (!out)
        return fd;
    page(out, command);
    fclose(out);
    lseek(fd, 0, SEEK_SET);
    return fd;
}

/* Returns the exit status of man(1) for a page; its error messages are discarded. */
static int run_man(char *man, int page, int nowhere)
{
    char local[] = "-l", input[] = "-";
    char *const argv[] = {man, local, input, NULL};
    const struct proc_start start = {.argv = argv, .in_fd = page, .out_fd = -1, .err_fd = nowhere};
    struct act_error ignored;
    pid_t pid;
    int status = -1;

    if (proc_start(&start, &pid, &ignored) == 0)
        while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {
        }
    return status;
}

static bool man_show(page_fn *what, const struct cli_command *command)
{
    ACT_AUTOFREE char *man = isatty(STDOUT_FILENO) ? proc_find_in_path("man") : NULL;

    if (!man)
        return false;
    int page = page_in_memory(what, command), nowhere = open("/dev/null", O_WRONLY | O_CLOEXEC);
    int status = page < 0 || nowhere < 0 ? -1 : run_man(man, page, nowhere);
    if (page >= 0)
        close(page);
    if (nowhere >= 0)
        close(nowhere);
    return status == 0;
}

bool cli_show_page(const struct cli_command *command)
{
    return man_show(put_page, command);
}

bool cli_show_file_format(void)
{
    return man_show(put_file_format, NULL);
}
