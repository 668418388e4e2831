/* setup_ssh.c - machines without a scheduler: those that ssh knows by name. What each of them has, the check at the end
 * says. */
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/file.h"
#include "base/path.h"
#include "codec/yaml_edit.h"
#include "flow/cluster/setup_internal.h"

/* A pattern of ssh_config(5) is no machine. */
static bool setup_ssh_is_name(const char *word)
{
    return *word && *word != '-' && !strpbrk(word, "*?!\"'");
}

/* Those of a line "Host NAME...". */
static void setup_ssh_offer_names(char *names, struct flow_choices *out)
{
    for (char *word; (word = strsep(&names, " \t="));)
        if (setup_ssh_is_name(word) && !setup_has(out, word))
            setup_offer(out, word, NULL, NULL, false);
}

int setup_look_hosts(struct flow_setup *setup, struct flow_choices *out, struct act_error *err)
{
    enum { CONFIG_MOST = 1 << 20 };
    static const char keyword[] = "host";
    const char *home = getenv("HOME");
    ACT_AUTOFREE char *path = act_path_join(home ? home : "/", ".ssh/config");
    ACT_AUTOFREE char *text = NULL;

    (void)setup;
    (void)err;
    out->open = true;
    if (act_file_read(path, CONFIG_MOST, &text, NULL, NULL) < 0)
        return 0; /* there is none */
    for (char *rest = text, *line; (line = strsep(&rest, "\r\n"));) {
        line += strspn(line, " \t");
        if (strncasecmp(line, keyword, strlen(keyword)) == 0 && strchr(" \t=", line[strlen(keyword)]) &&
            line[strlen(keyword)])
            setup_ssh_offer_names(line + strlen(keyword) + 1, out);
    }
    return 0;
}

void setup_put_ssh(struct act_buf *out, const struct flow_setup *setup)
{
    ACT_AUTOFREE char *hosts = act_strdup(setup->hosts);
    char *rest = hosts;
    bool any = false;

    act_buf_adds(out, "\nssh:\n  hosts: [");
    for (char *host; (host = strsep(&rest, ", "));) {
        struct yaml *text = yaml_new_text("", host);
        ACT_AUTOFREE char *quoted = *host ? yaml_flow_text(text) : NULL;
        yaml_tree_free(text);
        if (quoted)
            act_buf_addf(out, "%s%s", any ? ", " : "", quoted);
        any = any || quoted;
    }
    act_buf_adds(out, "]  # a run goes to the first one that has room\n"
                      "  # root: ~/.act           a folder on each machine for the runs\n"
                      "# num_gpu: 1              of a run without -n; else as many as the smallest machine has\n");
}
