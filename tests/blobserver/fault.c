#include "fault.h"

#include "auth.h"
#include "files.h"
#include "stream.h"

#include <pthread.h>
#include <regex.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { LOG_MAX = 64 << 20 };

struct rule {
    struct rule *next;
    struct fault fault;
    char method[16];
    regex_t path;
    long times, skip, hits;
    time_t second; /* of a throttle, with the requests in it */
    long in_second;
};

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static struct rule *rules;
static atomic_bool any;
static struct text lines;

/* ---- reading rules */

static const char *const kinds[] = {
    [FAULT_ANSWER] = "answer",     [FAULT_THROTTLE] = "throttle", [FAULT_RESET] = "reset",
    [FAULT_TRUNCATE] = "truncate", [FAULT_OVERLONG] = "overlong", [FAULT_STALL] = "stall",
    [FAULT_RANGE] = "range",       [FAULT_CHECKSUM] = "checksum", [FAULT_CORRUPT] = "corrupt",
    [FAULT_REPLACE] = "replace",   [FAULT_PAGE] = "page",         [FAULT_TRICKLE] = "trickle",
    [FAULT_PENDING] = "pending",   [FAULT_HEADER] = "header",     [FAULT_BODY_MD5] = "body-md5",
};
static const char *const places[] = {
    [AT_ANSWER] = "answer",   [AT_REQUEST] = "request", [AT_UPLOAD] = "upload",
    [AT_HEADERS] = "headers", [AT_BODY] = "body",
};

static int blob_fault_index_of(const char *const *names, size_t n, const char *name)
{
    for (size_t i = 0; i < n; i++)
        if (names[i] && !strcmp(names[i], name))
            return (int)i;
    return -1;
}

static bool blob_fault_set_text(char *out, size_t cap, const char *value)
{
    size_t n = strlen(value);

    if (n >= cap)
        return false;
    memcpy(out, value, n + 1);
    return true;
}

static bool set_page(struct fault *f, const char *value)
{
    static const char *const names[] = {[PAGE_RIGHT] = "torn",
                                        [PAGE_REPEAT] = "repeat",
                                        [PAGE_EMPTY] = "empty",
                                        [PAGE_LOOP] = "loop",
                                        [PAGE_ENDLESS] = "endless"};
    int page = blob_fault_index_of(names, COUNT(names), value);

    f->page = page < 0 ? PAGE_RIGHT : (enum page_fault)page;
    f->torn = page == PAGE_RIGHT;
    return page >= 0;
}

static bool blob_fault_set(struct rule *rule, const char *name, const char *value)
{
    struct fault *f = &rule->fault;

    if (!strcmp(name, "method"))
        return blob_fault_set_text(rule->method, sizeof(rule->method), value);
    if (!strcmp(name, "code"))
        return blob_fault_set_text(f->code, sizeof(f->code), value);
    if (!strcmp(name, "retry_after"))
        return blob_fault_set_text(f->retry_after, sizeof(f->retry_after), value);
    if (!strcmp(name, "page"))
        return set_page(f, value);
    if (!strcmp(name, "path")) {
        regfree(&rule->path);
        return !regcomp(&rule->path, value, REG_EXTENDED | REG_NOSUB);
    }
    if (!strcmp(name, "where")) {
        int where = blob_fault_index_of(places, COUNT(places), value);
        f->where = where < 0 ? AT_ANSWER : (enum fault_where)where;
        return where >= 0;
    }
    char *end;
    double number = strtod(value, &end);
    if (*end || end == value || number < 0)
        return false;
    if (!strcmp(name, "times"))
        rule->times = (long)number;
    else if (!strcmp(name, "skip"))
        rule->skip = (long)number;
    else if (!strcmp(name, "status"))
        f->status = (int)number;
    else if (!strcmp(name, "ms"))
        f->ms = (int64_t)number;
    else if (!strcmp(name, "rate"))
        f->rate = number;
    else
        return false;
    return true;
}

static void rule_free(struct rule *rule)
{
    regfree(&rule->path);
    free(rule);
}

/* line is changed. */
static struct rule *parse_rule(char *line)
{
    struct rule *rule = need(calloc(1, sizeof(*rule)));
    char *rest = NULL, *word = strtok_r(line, " ", &rest);
    int kind = word ? blob_fault_index_of(kinds, COUNT(kinds), word) : -1;
    bool fine = kind > 0 && !regcomp(&rule->path, "", REG_EXTENDED | REG_NOSUB);

    rule->times = 1;
    rule->fault = (struct fault){.kind = fine ? (enum fault_kind)kind : FAULT_NONE,
                                 .status = 503,
                                 .code = "ServerBusy",
                                 .where = kind == FAULT_STALL || kind == FAULT_TRUNCATE ? AT_BODY : AT_ANSWER};
    while (fine && (word = strtok_r(NULL, " ", &rest))) {
        char *value = strchr(word, '=');
        if (value)
            *value++ = '\0';
        fine = value && percent_decode(value, strlen(value), false, value) >= 0 && blob_fault_set(rule, word, value);
    }
    if (fine)
        return rule;
    rule_free(rule);
    return NULL;
}

static void blob_fault_append(struct rule *rule)
{
    struct rule **link = &rules;

    while (*link)
        link = &(*link)->next;
    *link = rule;
    any = true;
}

int fault_add(const char *text)
{
    char *copy = need(strdup(text)), *rest = NULL;
    int number = 0, wrong = 0;

    pthread_mutex_lock(&mutex);
    for (char *line = strtok_r(copy, "\n", &rest); line && !wrong; line = strtok_r(NULL, "\n", &rest)) {
        struct rule *rule = parse_rule(line);
        number++;
        if (rule)
            blob_fault_append(rule);
        else
            wrong = number;
    }
    pthread_mutex_unlock(&mutex);
    free(copy);
    return wrong;
}

void fault_clear(void)
{
    pthread_mutex_lock(&mutex);
    while (rules) {
        struct rule *next = rules->next;
        rule_free(rules);
        rules = next;
    }
    any = false;
    pthread_mutex_unlock(&mutex);
}

/* ---- deciding */

static bool over_rate(struct rule *rule)
{
    time_t second = time(NULL);

    if (second != rule->second)
        rule->in_second = 0;
    rule->second = second;
    return ++rule->in_second > (long)rule->fault.rate;
}

static bool wants(struct rule *rule, const char *method, const char *target)
{
    if (rule->times && rule->hits >= rule->times + rule->skip)
        return false;
    if ((*rule->method && strcmp(rule->method, method) != 0) || regexec(&rule->path, target, 0, NULL, 0))
        return false;
    if (rule->fault.kind == FAULT_THROTTLE && !over_rate(rule))
        return false;
    return ++rule->hits > rule->skip;
}

struct fault fault_for(const char *method, const char *target)
{
    struct fault found = {0};

    if (!any)
        return found;
    pthread_mutex_lock(&mutex);
    for (struct rule *rule = rules; rule && !found.kind; rule = rule->next)
        if (wants(rule, method, target))
            found = rule->fault;
    pthread_mutex_unlock(&mutex);
    return found;
}

/* ---- the log */

/* Forgets the older half, in whole lines. */
static void forget_half(void)
{
    char *middle = strchr(lines.s + lines.n / 2, '\n');
    size_t keep = middle ? (size_t)(lines.s + lines.n - middle - 1) : 0;

    if (keep)
        memmove(lines.s, middle + 1, keep);
    lines.n = keep;
}

void log_add(const char *method, const char *target, int status, uint64_t received, uint64_t sent)
{
    pthread_mutex_lock(&mutex);
    if (lines.n > LOG_MAX)
        forget_half();
    text_str(&lines, method);
    text_add(&lines, " ", 1);
    text_str(&lines, target);
    text_add(&lines, " ", 1);
    text_number(&lines, (uint64_t)status);
    text_add(&lines, " ", 1);
    text_number(&lines, received);
    text_add(&lines, " ", 1);
    text_number(&lines, sent);
    text_add(&lines, "\n", 1);
    pthread_mutex_unlock(&mutex);
}

void log_copy(struct text *out)
{
    pthread_mutex_lock(&mutex);
    text_add(out, lines.s, lines.n);
    pthread_mutex_unlock(&mutex);
}

void log_clear(void)
{
    pthread_mutex_lock(&mutex);
    text_clear(&lines);
    pthread_mutex_unlock(&mutex);
}

/* ---- commands */

static int post_faults(const char *body, struct reply *reply)
{
    int wrong = fault_add(body);

    if (!wrong)
        return 200;
    text_addf(&reply->body, "line %d is no rule\n", wrong);
    return 400;
}

static int post_preload(const char *body)
{
    blobs_write();
    bool fine = auth_are_files() ? files_preload(auth_account(0), body) : blobs_preload(auth_account(0), body);
    blobs_unlock();
    return fine ? 200 : 400;
}

static int post_limit(const char *body)
{
    blobs_write();
    bool fine = files_limit(auth_account(0), body);
    blobs_unlock();
    return fine ? 200 : 400;
}

void control(struct request *r, struct reply *reply)
{
    char none[] = "", *body = r->body && r->body->bytes ? (char *)r->body->bytes : none;
    bool post = !strcmp(r->method, "POST"), delete = !strcmp(r->method, "DELETE");

    if (r->body && r->body->bytes)
        body[r->body->n] = '\0'; /* there is room for it */
    reply->status = 200;
    if (!strcmp(r->path, "/-/faults") && post)
        reply->status = post_faults(body, reply);
    else if (!strcmp(r->path, "/-/faults") && delete)
        fault_clear();
    else if (!strcmp(r->path, "/-/log") && delete)
        log_clear();
    else if (!strcmp(r->path, "/-/log"))
        log_copy(&reply->body);
    else if (!strcmp(r->path, "/-/tls"))
        stream_describe(&reply->body);
    else if (!strcmp(r->path, "/-/preload") && post)
        reply->status = post_preload(body);
    else if (!strcmp(r->path, "/-/limit") && post)
        reply->status = post_limit(body);
    else if (!strcmp(r->path, "/-/clock") && post)
        blobs_clock(strtoll(body, NULL, 10));
    else
        reply->status = 404;
}
