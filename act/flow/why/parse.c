/* parse.c - the codes of what the fetched logs of a run, or those in a folder, hold. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/path.h"
#include "flow/flow_internal.h"
#include "flow/trust.h"
#include "flow/why/ranks.h"

enum { CHUNK = 1 << 20 };

int flow_rules(const struct flow_run *run, struct diagnose **out, struct act_error *err)
{
    ACT_AUTOFREE char *own = act_path_join(run->row.project, "aux_data/diagnosis.yaml");

    return diagnose_open(own, out, err);
}

struct parse {
    const char *root;       /* no link below it is followed */
    const char *folder;     /* of the logs: assets/<run id>, or any */
    int failed_rank;        /* -1: not known */
    unsigned unnamed;       /* enum diagnose_where of a log whose name says nothing; 0: it is not read */
    struct flow_code *of;   /* of each rule */
    struct flow_codes *out; /* with the rules */
    char *chunk;
};

static void keep_hits(struct parse *p, const char *log, const struct diagnose_hits *hits)
{
    for (size_t i = 0; i < hits->n; i++) {
        struct flow_code *code = &p->of[hits->v[i].rule->order];
        if (!code->rule)
            *code = (struct flow_code){hits->v[i].rule, act_strdup(log), act_strdup(hits->v[i].line)};
    }
}

static int scan_log(struct parse *p, const char *log, enum diagnose_where where, struct act_error *err)
{
    ACT_AUTOFREE char *path = act_path_join(p->folder, log);
    struct flow_error_scan errors = {0};
    ACT_AUTO(diagnose_hits) hits = {0};
    ssize_t n;
    int fd = act_open_below(p->root, path, O_RDONLY, err);

    if (fd < 0)
        return fd;
    struct diagnose_scan *scan = diagnose_scan_new(p->out->rules, where);
    flow_error_lines_begin(&errors, log, p->out);
    while ((n = read(fd, p->chunk, CHUNK)) > 0) {
        diagnose_scan_feed(scan, p->chunk, (size_t)n);
        flow_error_lines_feed(&errors, p->chunk, (size_t)n);
    }
    flow_error_lines_end(&errors);
    int rc = n < 0 ? act_error_errno(err, errno, "cannot read '%s'", path) : 0;
    close(fd);
    diagnose_scan_end(scan, &hits);
    keep_hits(p, log, &hits);
    return rc;
}

/* The files of the folder, or of sub in it, by their names below the folder. */
static int parse_list_logs(const struct parse *p, const char *sub, struct act_strv *out, struct act_error *err)
{
    ACT_AUTOFREE char *path = act_path_join(p->folder, *sub ? sub : ".");
    int fd = act_open_below(p->root, path, O_RDONLY | O_DIRECTORY, err);
    DIR *d = fd < 0 ? NULL : fdopendir(fd);
    struct stat st;

    if (fd >= 0 && !d)
        close(fd);
    for (struct dirent *e; d && (e = readdir(d));)
        if (e->d_name[0] != '.' && fstatat(dirfd(d), e->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(st.st_mode))
            act_strv_take(out, *sub ? act_path_join(sub, e->d_name) : act_strdup(e->d_name));
    if (d)
        closedir(d);
    return fd == -ACT_DENIED ? fd : 0; /* what is not there has no logs */
}

static bool parse_is_wanted(const struct flow_codes *codes, const struct flow_code *code, bool only_last_resort)
{
    if (!code->rule || (!only_last_resort && code->rule->kind == DIAGNOSE_LAST_RESORT))
        return false;
    for (size_t i = 0; i < codes->n; i++)
        if (strcmp(codes->v[i].rule->code, code->rule->code) == 0)
            return false;
    return true;
}

/* Moves the hits of the wanted rules to out. */
static void choose_hits(struct parse *p, size_t n_rules)
{
    bool only_last_resort = true;

    for (size_t i = 0; i < n_rules; i++)
        if (p->of[i].rule && p->of[i].rule->kind != DIAGNOSE_LAST_RESORT)
            only_last_resort = false;
    p->out->v = act_calloc(n_rules, sizeof(*p->out->v));
    for (size_t i = 0; i < n_rules; i++) {
        if (parse_is_wanted(p->out, &p->of[i], only_last_resort)) {
            p->out->v[p->out->n++] = p->of[i];
        } else {
            free(p->of[i].log);
            free(p->of[i].line);
        }
    }
}

static int scan_all(struct parse *p, const struct act_strv *logs, struct act_error *err)
{
    size_t n_rules = diagnose_count(p->out->rules);
    int rc = 0;

    p->of = act_calloc(n_rules, sizeof(*p->of));
    p->chunk = act_alloc(CHUNK);
    for (size_t i = 0; i < logs->n && rc == 0; i++) {
        unsigned where = diagnose_where_of(logs->v[i], p->failed_rank);
        where = where ? where : p->unnamed;
        if (where)
            rc = scan_log(p, logs->v[i], where, err);
    }
    choose_hits(p, n_rules);
    free(p->chunk);
    free(p->of);
    return rc;
}

/* The logs below a run's folder. */
static int list_run(const struct parse *p, struct act_strv *out, struct act_error *err)
{
    static const char *const subs[] = {RUN_DIR_USER, RUN_DIR_SYSTEM, "azureml-logs"};

    int rc = 0;

    for (size_t i = 0; i < sizeof(subs) / sizeof(subs[0]) && rc == 0; i++)
        rc = parse_list_logs(p, subs[i], out, err);
    return rc;
}

/* Scans the logs if all went well so far (rc), and lets go of what is not handed out. */
static int finish_parse(struct parse *p, struct act_strv *logs, int rc, struct act_error *err)
{
    if (rc == 0)
        rc = scan_all(p, logs, err);
    act_strv_release(logs);
    if (rc < 0)
        flow_codes_release(p->out);
    return rc;
}

int flow_parse(const struct flow_run *run, struct flow_codes *out, struct act_error *err)
{
    ACT_AUTOFREE char *folder = flow_assets(run);
    ACT_AUTOFREE char *root = flow_log_folder(run->row.project);
    struct parse p = {.root = root, .folder = folder, .failed_rank = run->status.failed_rank, .out = out};
    struct act_strv logs = {0};

    *out = (struct flow_codes){0};
    int rc = flow_trust_logs(run->row.project, err);
    if (rc == 0)
        rc = list_run(&p, &logs, err);
    act_strv_sort(&logs);
    if (rc == 0)
        rc = logs.n > 0 ? flow_rules(run, &out->rules, err)
                        : act_error_set(err, ACT_NOT_FOUND, "no logs of '%s' in '%s'; 'a q %s' fetches them",
                                        run->row.id, folder, run->row.id);
    return finish_parse(&p, &logs, rc, err);
}

int flow_parse_folder(const char *folder, struct flow_codes *out, struct act_error *err)
{
    struct parse p = {.root = folder, .folder = folder, .failed_rank = -1, .unnamed = DIAGNOSE_OTHER_RANK, .out = out};
    struct act_strv logs = {0};

    *out = (struct flow_codes){0};
    int rc = list_run(&p, &logs, err);
    if (rc == 0)
        rc = parse_list_logs(&p, "", &logs, err);
    act_strv_sort(&logs);
    if (rc == 0)
        rc = logs.n > 0 ? diagnose_open("aux_data/diagnosis.yaml", &out->rules, err)
                        : act_error_set(err, ACT_NOT_FOUND, "no logs in '%s'", folder);
    return finish_parse(&p, &logs, rc, err);
}

void flow_codes_release(struct flow_codes *codes)
{
    for (size_t i = 0; i < codes->n; i++) {
        free(codes->v[i].log);
        free(codes->v[i].line);
    }
    for (size_t i = 0; i < codes->n_errors; i++) {
        free(codes->errors[i].log);
        free(codes->errors[i].line);
    }
    free(codes->errors);
    free(codes->v);
    diagnose_free(codes->rules);
    *codes = (struct flow_codes){0};
}
