/* unused.c - settings that have no effect on a run. The user is told of each once, when the run is described, and need
 * not wonder. */
#include "base/log.h"
#include "config/config.h"
#include "flow/submit/passage.h"

struct use {
    const struct config *config;
    const struct platform_row *platform; /* where it runs */
    bool in_image;                       /* docker.image is used, by whatever platform */
    bool here;                           /* a run of 'a local' */
};

static bool is_elastic_elsewhere(const struct use *u)
{
    return u->config->elastic_num_gpu.n && !u->platform->about.is_elastic;
}

static bool names_gpus_elsewhere(const struct use *u)
{
    return u->config->gpus.n && !u->platform->about.is_here;
}

static bool has_idle_image(const struct use *u)
{
    return u->config->docker.image && !u->in_image && u->platform->about.is_here;
}

static bool wants_no_custom_image(const struct use *u)
{
    return u->config->docker.image && u->in_image && !u->config->use_custom_docker;
}

static bool is_watched_by_user(const struct use *u)
{
    return u->config->hang && u->here;
}

static bool wants_retry_here(const struct use *u)
{
    return u->config->retry.times > 0 && u->here;
}

static const struct {
    bool (*applies)(const struct use *use);
    const char *text;
} rows[] = {
    {is_elastic_elsewhere, "elastic_num_gpu is not used: only runs of the platforms itp and k8s change their size"},
    {names_gpus_elsewhere, "gpus is not used: it names GPUs of this machine, for the platform local"},
    {has_idle_image, "docker.image is not used: the platform local runs commands directly; 'a local' runs one in the "
                     "image"},
    {is_watched_by_user, "hang is not used: a run of 'a local' is in the foreground, Ctrl-C ends it"},
    {wants_retry_here, "retry is not used: 'a local' runs the command once"},
    {wants_no_custom_image, "'use_custom_docker: false' is not used: the run is in the image of docker.image"},
};

int step_mention_unused(struct passage *p, struct act_error *err)
{
    const struct use use = {.config = p->flow->config,
                            .platform = platform_row(p->platform),
                            .in_image = p->spec->image != NULL,
                            .here = p->here};

    (void)err;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        if (rows[i].applies(&use))
            act_warn("%s", rows[i].text);
    return 0;
}
