/* platform.c - a platform in less than 200 lines: a row, its functions, and a table that has it. */
#include "fake/platform.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

#include "codec/json.h"
#include "platform/platform_internal.h"

struct fake fake;

static int unreachable(int *left, struct act_error *err)
{
    (*left)--;
    return act_error_set(err, fake.fail_code, "the controller does not answer");
}

static void note(const char *what)
{
    size_t n = strlen(fake.did);

    snprintf(fake.did + n, sizeof(fake.did) - n, "%s ", what);
}

static char *fake_place(const struct config *config)
{
    return act_sprintf("%s\n%s", config->slurm.login ? config->slurm.login : "",
                       config->slurm.root ? config->slurm.root : "");
}

static bool fake_recall(const json_t *settings, struct config *out)
{
    out->slurm.root = act_strdup(codec_json_str(settings, "root", NULL));
    return settings || platform_find(out->platform)->is_here;
}

static int fake_open(struct services *services, const struct config *config, struct platform **out,
                     struct act_error *err)
{
    (void)services;
    (void)err;
    snprintf(fake.root, sizeof(fake.root), "%s", config->slurm.root ? config->slurm.root : "none");
    fake.n_open++;
    *out = act_calloc(1, sizeof(**out));
    (*out)->row = platform_find(config->platform);
    return 0;
}

static void fake_close(struct platform *p)
{
    fake.n_close++;
    free(p);
}

static int fake_limits(struct platform *p, struct platform_limits *out, struct act_error *err)
{
    (void)p;
    (void)err;
    *out = (struct platform_limits){.gpu_per_node = 1, .num_gpu = 1};
    return 0;
}

static int fake_submit(struct platform *p, const struct platform_submission *submission,
                       struct act_error *err)
{
    (void)p;
    note("submit");
    *submission->asked = true;
    return fake.fail_submit ? act_error_set(err, fake.fail_submit, "no answer") : 0;
}

static int fake_status(struct platform *p, const char *const *ids, size_t n, struct run_status *out,
                       struct act_error *err)
{
    (void)p;
    (void)ids;
    fake.n_status++;
    if (fake.fail_status > 0)
        return unreachable(&fake.fail_status, err);
    for (size_t i = 0; i < n; i++)
        out[i] = fake.status;
    return 0;
}

static int fake_abort(struct platform *p, const char *id, bool *out_was_final, struct act_error *err)
{
    (void)p;
    (void)id;
    (void)err;
    note("abort");
    *out_was_final = false;
    return 0;
}

static int fake_list(struct platform *p, struct act_strv *out_ids, struct act_error *err)
{
    (void)p;
    (void)out_ids; /* a new ledger finds none here */
    (void)err;
    note("list");
    return 0;
}

static int fake_list_logs(struct platform *p, const char *id, struct platform_logs *out,
                          struct act_error *err)
{
    (void)p;
    (void)id;
    *out = (struct platform_logs){.settled = !fake.row.answers_by_request};
    fake.n_logs_calls++;
    nanosleep(&(struct timespec){.tv_nsec = fake.logs_take_ms * 1000000L}, NULL);
    if (fake.before_logs)
        fake.before_logs(fake.n_logs_calls);
    if (fake.fail_logs > 0)
        return unreachable(&fake.fail_logs, err);
    for (size_t i = 0; i < fake.n_logs; i++)
        platform_logs_add(out, fake.logs[i].name, strlen(fake.logs[i].text), 0);
    return 0;
}

static int fake_read_log(struct platform *p, const char *id, const char *name, uint64_t offset, void *data,
                         size_t len, size_t *out_got, struct act_error *err)
{
    (void)p;
    (void)id;
    *out_got = 0;
    fake.n_read++;
    if (fake.before_read)
        fake.before_read(fake.n_read, name);
    for (size_t i = 0; i < fake.n_logs; i++) {
        size_t size = strlen(fake.logs[i].text);
        if (strcmp(fake.logs[i].name, name) != 0)
            continue;
        if (offset < size)
            *out_got = size - offset < len ? size - offset : len;
        memcpy(data, fake.logs[i].text + (offset < size ? offset : 0), *out_got);
        return 0;
    }
    return act_error_set(err, ACT_NOT_FOUND, "no log '%s'", name);
}

static int fake_fetch_logs(struct platform *p, const char *id, const struct platform_fetch *fetch,
                           struct act_error *err)
{
    char text[256];

    for (size_t i = 0; i < fetch->n; i++) {
        struct platform_part *part = &fetch->parts[i];
        size_t got, want = part->end - part->offset < sizeof(text) ? part->end - part->offset : sizeof(text);
        int rc = fake_read_log(p, id, part->name, part->offset, text, want, &got, err);
        if (rc == 0)
            rc = platform_part_write(part, text, got, err);
        part->got = rc == 0 ? got : 0;
        part->replaced = fake.shrinks > 0 && fake.shrinks--;
        if (part->got > 0)
            fetch->moved(fetch->arg, part, part->got);
        if (rc < 0 && rc != -ACT_NOT_FOUND)
            return rc;
    }
    return 0;
}

static const struct platform_row usual = {
    .name = "slurm",
    .keeps_record = true,
    .nodes_share_folder = true,
    .place = fake_place,
    .recall = fake_recall,
    .open = fake_open,
    .limits = fake_limits,
    .submit = fake_submit,
    .status = fake_status,
    .abort = fake_abort,
    .logs = fake_list_logs,
    .read_log = fake_read_log,
    .fetch_logs = fake_fetch_logs,
    .list = fake_list,
    .close = fake_close,
};

void fake_reset(void)
{
    fake = (struct fake){.row = usual,
                         .status = {.state = RUN_RUNNING, .failed_rank = -1, .attempt = 1},
                         .fail_code = ACT_TEMPORARY};
}

static const struct platform_row here = {.name = "local",
                                         .is_here = true,
                                         .place = fake_place,
                                         .recall = fake_recall,
                                         .open = fake_open,
                                         .list = fake_list,
                                         .close = fake_close};

const struct platform_row *const platform_table[] = {&here, &fake.row, NULL};
