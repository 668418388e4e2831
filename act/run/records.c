/* records.c - the small records of a run's folder: its job, why an attempt failed, and what it ran with. */
#include <ctype.h>
#include <string.h>

#include "base/file.h"
#include "codec/fields.h"
#include "codec/json.h"
#include "run/run_internal.h"

int run_record_write(const char *path, const json_t *value, struct act_error *err)
{
    ACT_AUTOFREE char *text = codec_json_line(value);

    return act_file_write_quickly(path, text, strlen(text), 0600, err);
}

/* ---- job.json ---- */

struct run_job {
    char *job;
};

static bool records_is_job(const char *text)
{
    return *text && strlen(text) <= RUN_JOB_MAX && !act_has_control(text);
}

static const struct field job_rows[] = {
    FIELD_TEXT(struct run_job, job, "job", .good = records_is_job, .must = "the number of a job"),
};
static const struct fields job_fields = FIELDS("the record of the job", struct run_job, job_rows, NULL);

char *run_job_text(const char *job)
{
    ACT_AUTOFREE char *copy = act_strdup(job);
    CODEC_AUTOJSON json_t *json = fields_to_json(&job_fields, &(struct run_job){copy});
    ACT_AUTOFREE char *line = json_dumps(json, 0);

    return act_sprintf("%s\n", line);
}

int run_job_from_json(const json_t *json, char **out, struct act_error *err)
{
    struct run_job read;
    int rc = fields_from_json(&job_fields, json, &read, err);

    *out = read.job;
    return rc;
}

/* ---- failure.json ---- */

static const struct field failure_rows[] = {
    FIELD_VERSION(1, 0),
    FIELD_INT(struct run_failure, attempt, "attempt", .min = 1, .usual = 1),
    FIELD_INT(struct run_failure, rank, "rank", .min = -1, .usual = -1),
    FIELD_TEXT(struct run_failure, node, "node"),
    FIELD_INT(struct run_failure, exit_status, "exit_status", .max = RUN_STATUS_MOST),
    FIELD_INT(struct run_failure, signal, "signal", .max = RUN_STATUS_MOST),
    FIELD_TEXT(struct run_failure, reason, "reason"),
    FIELD_INT64(struct run_failure, unix_s, "time"),
    FIELD_INT64(struct run_failure, slurm_from, "slurm_from"),
    FIELD_TEXTS(struct run_failure, lines, "lines"),
    FIELD_TEXT(struct run_failure, class, "class"),
    FIELD_TEXT(struct run_failure, class_line, "class_line"),
};
static const struct fields failure_fields = FIELDS("the record of the failure", struct run_failure, failure_rows, NULL);

void run_failure_release(struct run_failure *failure)
{
    fields_release(&failure_fields, failure);
}

int run_failure_from_json(const json_t *json, struct run_failure *out, struct act_error *err)
{
    return fields_from_json(&failure_fields, json, out, err);
}

int run_failure_read(const char *path, struct run_failure *out, struct act_error *err)
{
    enum { FILE_MAX = 1 << 20 };
    CODEC_AUTOJSON json_t *json = NULL;
    int rc = codec_json_read(path, FILE_MAX, &json, err);

    fields_init(&failure_fields, out);
    return rc < 0 ? rc : run_failure_from_json(json, out, err);
}

int run_failure_write(const struct run_failure *failure, const char *path, struct act_error *err)
{
    CODEC_AUTOJSON json_t *json = fields_to_json(&failure_fields, failure);

    return codec_json_write(path, json, 0600, err);
}

/* ---- environment.json ---- */

static const struct field environment_rows[] = {
    FIELD_VERSION(1, 0),
    FIELD_INT(struct run_environment, attempt, "attempt", .min = 1, .usual = 1),
    FIELD_TEXT(struct run_environment, node, "node", .flags = FIELD_RARE),
    FIELD_TEXT(struct run_environment, system, "system", .flags = FIELD_RARE),
    FIELD_TEXT(struct run_environment, python, "python", .flags = FIELD_RARE),
    FIELD_TEXT(struct run_environment, python_version, "python_version", .flags = FIELD_RARE),
    FIELD_TEXTS(struct run_environment, packages, "packages", .flags = FIELD_RARE),
    FIELD_TEXTS(struct run_environment, modules, "modules", .flags = FIELD_RARE),
    FIELD_TEXT(struct run_environment, conda, "conda", .flags = FIELD_RARE),
    FIELD_TEXT(struct run_environment, venv, "venv", .flags = FIELD_RARE),
    FIELD_TEXT(struct run_environment, driver, "driver", .flags = FIELD_RARE),
    FIELD_TEXT(struct run_environment, cuda, "cuda", .flags = FIELD_RARE),
    FIELD_TEXT(struct run_environment, nccl, "nccl", .flags = FIELD_RARE),
    FIELD_TEXT(struct run_environment, mpi, "mpi", .flags = FIELD_RARE),
    FIELD_TEXT(struct run_environment, image, "image", .flags = FIELD_RARE),
    FIELD_TEXT(struct run_environment, image_digest, "image_digest", .flags = FIELD_RARE),
};
static const struct fields environment_fields =
    FIELDS("the record of the environment", struct run_environment, environment_rows, NULL);

void run_environment_release(struct run_environment *environment)
{
    fields_release(&environment_fields, environment);
}

int run_environment_from_json(const json_t *json, struct run_environment *out, struct act_error *err)
{
    return fields_from_json(&environment_fields, json, out, err);
}

int run_environment_write(const struct run_environment *environment, const char *path, struct act_error *err)
{
    CODEC_AUTOJSON json_t *json = fields_to_json(&environment_fields, environment);
    ACT_AUTOFREE char *lines = json_dumps(json, JSON_INDENT(2));
    ACT_AUTOFREE char *text = act_sprintf("%s\n", lines); /* people read it, too */

    return act_file_write_quickly(path, text, strlen(text), 0600, err);
}

/* packaging.python.org/specifications/name-normalization */
char *run_package_name(const char *name, size_t len)
{
    ACT_AUTO(act_buf) out = {0};

    for (size_t i = 0; i < len; i++) {
        bool dash = strchr("-_.", name[i]) != NULL;
        if (!dash)
            act_buf_addc(&out, (char)tolower((unsigned char)name[i]));
        else if (out.len == 0 || out.data[out.len - 1] != '-')
            act_buf_addc(&out, '-');
    }
    return act_buf_steal(&out);
}
