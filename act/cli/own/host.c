/* host.c - does what another machine asks, whose cluster file names this one under 'ssh.hosts'. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/own/own.h"
#include "cli/print/print.h"
#include "codec/json.h"
#include "config/config.h"
#include "config/kind.h"
#include "platform/platform.h"

enum { HOST_INPUT_MAX = 64 << 20, HOST_STEP = 64 << 10 };

static int host_read_request(json_t **out, struct act_error *err)
{
    ACT_AUTOFREE char *chunk = act_alloc(HOST_STEP);
    struct act_buf text = {0};
    ssize_t n = 1;

    while (n > 0 && text.len <= HOST_INPUT_MAX) {
        n = read(STDIN_FILENO, chunk, HOST_STEP);
        if (n > 0)
            act_buf_add(&text, chunk, (size_t)n);
        else if (n < 0 && errno == EINTR)
            n = 1;
    }
    memset(chunk, 0, HOST_STEP);
    int rc = n != 0 ? act_error_set(err, ACT_USAGE, "the request cannot be read, or is too long")
                    : codec_json_parse(text.data ? text.data : "", text.len, "the request", out, err);
    act_buf_wipe(&text);
    return rc;
}

/* Runs are in the folder that the cluster file there names. */
static int host_carry_out(struct cli *cli, json_t *response, struct act_error *err)
{
    ACT_AUTOFREE char *name = act_strdup(platform_here()->kind->name);
    const struct config config = {.platform = name, .gpu_per_node = -1};
    CODEC_AUTOJSON json_t *in = NULL;
    struct platform *here = NULL;

    setenv("ACT_HOME", cli->words.v[1], 1);
    int rc = host_read_request(&in, err);
    if (rc == 0)
        rc = platform_open(&cli->services, &config, &here, err);
    if (rc == 0)
        rc = platform_serve_host(here, cli->words.v[0], in, response, err);
    platform_free(here);
    return rc;
}

/* Answers the request. An error is a response, too. */
int cmd_host(struct cli *cli, struct act_error *err)
{
    json_t *response = json_object();
    int rc = host_carry_out(cli, response, err);

    if (rc < 0) {
        json_object_set_new(response, "code", json_integer(-rc));
        json_object_set_new(response, "error", codec_json_bytes_new(act_error_text(err)));
    }
    return cli_print_json(response, err);
}
