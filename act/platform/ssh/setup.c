/* setup.c - a new cluster of machines without a scheduler: those that ssh knows by name. What each of them has is not
 * asked here; the check of the new cluster says it. */
#include "platform/setup.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/file.h"
#include "base/path.h"
#include "codec/yaml_edit.h"
#include "platform/ssh/ssh_internal.h"

/* Tells whether a word of ssh_config(5) is the name of a machine, and no pattern. */
static bool hosts_setup_is_name(const char *word)
{
    return *word && *word != '-' && !strpbrk(word, "*?!\"'");
}

/* Offers the names of a line "Host NAME...". */
static void hosts_setup_offer(char *names, struct platform_choices *out)
{
    for (char *word; (word = strsep(&names, " \t="));)
        if (hosts_setup_is_name(word) && !platform_offers(out, word))
            platform_offer(out, word, NULL, NULL, false);
}

static int look_hosts(struct platform_setup *setup, struct platform_choices *out, struct act_error *err)
{
    enum { CONFIG_MOST = 1 << 20 };
    static const char keyword[] = "host";
    const char *home = getenv("HOME");
    ACT_AUTOFREE char *path = act_path_join(home ? home : "/", ".ssh/config");
    ACT_AUTOFREE char *text = NULL;

    if (act_file_read(path, CONFIG_MOST, &text, NULL, NULL) < 0)
        return platform_look_nowhere(setup, out, err);
    for (char *rest = text, *line; (line = strsep(&rest, "\r\n"));) {
        line += strspn(line, " \t");
        const char *behind = strncasecmp(line, keyword, strlen(keyword)) == 0 ? line + strlen(keyword) : "";
        if (*behind && strchr(" \t=", *behind))
            hosts_setup_offer(line + strlen(keyword) + 1, out);
    }
    return platform_look_nowhere(setup, out, err);
}

static void hosts_put_setup(struct act_buf *out, const struct platform_setup *setup)
{
    ACT_AUTOFREE char *hosts = act_strdup(platform_said(setup, "hosts"));
    const char *comma = "";
    char *rest = hosts;

    act_buf_adds(out, "\nssh:\n  hosts: [");
    for (char *host; (host = strsep(&rest, ", "));) {
        struct yaml *text = yaml_new_text("", host);
        ACT_AUTOFREE char *quoted = *host ? yaml_flow_text(text) : NULL;
        yaml_tree_free(text);
        if (quoted) {
            act_buf_addf(out, "%s%s", comma, quoted);
            comma = ", ";
        }
    }
    act_buf_adds(out, "]  # a run goes to the first one that has room\n"
                      "  # root: ~/.act           a folder on each machine for the runs\n"
                      "# num_gpu: 1              of a run without -n; else as many as the smallest machine has\n"
                      "# config_param:           folders there; without any, 'data' goes with the code\n"
                      "#   data_folder: {mode: path, path: /data/me}\n");
}

static const struct platform_question questions[] = {
    {.option = "hosts",
     .text = "Machines, as user@host, with commas between them",
     .names = PLATFORM_NAMES_IN_PART,
     .look = look_hosts},
    {0},
};

const struct platform_setup_ops ssh_setup = {
    .text = "machines without a scheduler, behind ssh",
    .questions = questions,
    .put = hosts_put_setup,
};
