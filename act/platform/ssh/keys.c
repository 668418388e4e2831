/* keys.c - the keys of the part 'ssh'. */
#include "platform/ssh/keys.h"
#include "config/config.h"
#include "site/site.h"

#include <string.h>

#define AT(member) offsetof(struct ssh_keys, member)

// clang-format off
static const struct config_key keys[] = {
    {"ssh", CONFIG_MAP, CONFIG_NOWHERE, .help = "machines without a scheduler, which are reached with ssh"},
    {"ssh.hosts", CONFIG_TEXTS, AT(hosts),
     .help = "user@host of each machine, or its name in ~/.ssh/config; a run goes to the first one that has room"},
    {"ssh.root", CONFIG_TEXT, AT(root), "~/.act",
     .help = "a folder on each machine for the runs; by default ~/.act there"},
    {0},
};
// clang-format on

static void hosts_check_name(const struct config *config, const char *host, struct config_findings *f)
{
    struct act_error err;

    if (site_check_login(host, &err) < 0)
        config_problem(f, config_value(config, "ssh.hosts"), "'ssh.hosts': %s", act_error_text(&err));
}

static void hosts_check_keys(struct config *config, struct config_findings *f)
{
    const struct act_strv *hosts = &ssh_keys(config)->hosts;
    bool is_ours = act_streq(config->platform, ssh_kind.name);

    if (is_ours && hosts->n == 0)
        config_problem(f, config_value(config, config_value(config, "ssh.hosts") ? "ssh.hosts" : "platform"),
                       "'ssh.hosts' names no machine: list at least one, such as [me@gpu1]");
    for (size_t i = 0; i < hosts->n; i++) {
        hosts_check_name(config, hosts->v[i], f);
        for (size_t k = 0; k < i; k++)
            if (act_streq(hosts->v[i], hosts->v[k]))
                config_problem(f, config_value(config, "ssh.hosts"),
                               "'ssh.hosts' names '%s' twice: each machine has one queue", hosts->v[i]);
    }
}

const struct config_part ssh_keys_part = {"ssh", keys, sizeof(struct ssh_keys), hosts_check_keys};

/* The code is kept on this machine, as there is no folder that it and the machines are sure to share. */
const struct config_kind ssh_kind = {
    .name = "ssh",
    .parts = (const struct config_part *const[]){&ssh_keys_part, NULL},
    .counts_gpus = true,
    .has_store = true,
    .has_places = true,
    .has_mount = true,
};
