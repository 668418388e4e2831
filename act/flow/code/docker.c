/* docker.c - finds the program that runs containers on this machine. */
#include <string.h>

#include "flow/code/code_internal.h"
#include "proc/proc.h"

/* Returns the last line that a program wrote, without its end, and cuts text there. */
static const char *last_line(char *text)
{
    char *end = text + strlen(text);

    while (end > text && (end[-1] == '\n' || end[-1] == '\r'))
        *--end = '\0';
    const char *line = strrchr(text, '\n');
    return line ? line + 1 : text;
}

/* Tells whether the tool is installed and works: docker is only a client, and its daemon may not be running. If not,
 * err has its message. */
static bool answers(const char *tool, char *program, struct act_error *err)
{
    enum { ANSWER_S = 30, ANSWER_MAX = 64 << 10 };
    char *const argv[] = {program, (char[]){"version"}, NULL};
    ACT_AUTO(proc_result) result = {0};
    int rc =
        proc_call(&(struct proc_call){.argv = argv, .sees = OF_DOCKER, .timeout_s = ANSWER_S, .max_bytes = ANSWER_MAX},
                  &result, err);

    if (rc == 0 && result.status != 0)
        rc = act_error_set(err, ACT_FAIL, "%s does not answer: %s", tool, last_line(result.err));
    return rc == 0;
}

int flow_find_docker(const char **out, struct act_error *err)
{
    static const char *const tools[] = {"docker", "podman"};
    bool found = false;

    for (size_t i = 0; i < sizeof(tools) / sizeof(tools[0]); i++) {
        ACT_AUTOFREE char *program = proc_find_in_path(tools[i]);
        *out = tools[i];
        if (program && answers(tools[i], program, err))
            return 0;
        found = found || program;
    }
    return found ? -(int)err->code : act_error_set(err, ACT_CONFIG, "neither docker nor podman is here");
}
