/* platform.c - a platform in less than 200 lines: a row, its functions, and a table that has it. */
#include "fake/platform.h"
#include "config/config.h"
#include "config/kind.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

#include "auth/services.h"
#include "codec/json.h"
#include "engine/engine.h"
#include "http/http.h"
#include "platform/platform_internal.h"
#include "store/store_internal.h"

struct fake fake;

static int unreachable(int *left, struct act_error *err)
{
    (*left)--;
    return act_error_set(err, fake.fail_code, "the controller does not answer");
}

static void fake_note(const char *what)
{
    size_t n = strlen(fake.did);

    snprintf(fake.did + n, sizeof(fake.did) - n, "%s ", what);
}

/* ---- what it brings to a cluster file: a part with two keys */

struct fake_keys {
    char *login, *root;
};

static const struct config_key keys[] = {
    {"fake", CONFIG_MAP, CONFIG_NOWHERE, .help = "how runs are handed to the fake platform"},
    {"fake.login", CONFIG_TEXT, offsetof(struct fake_keys, login), .help = "where to log in"},
    {"fake.root", CONFIG_TEXT, offsetof(struct fake_keys, root), .help = "a folder for the runs"},
    {0},
};

static const struct config_part part = {"fake", keys, sizeof(struct fake_keys), NULL};

static const struct config_kind kind = {
    .name = "fake",
    .parts = (const struct config_part *const[]){&part, NULL},
    .is_default = true,
    .has_store = true,
    .runs_see_store = true,
    .root_key = "fake.root",
    .root_fallback = "~/.act",
    .login_key = "fake.login",
};

static const struct fake_keys *fake_keys(const struct config *config)
{
    return config_part(config, &part);
}

static char *fake_place(const struct config *config)
{
    const struct fake_keys *own = fake_keys(config);

    return act_sprintf("%s\n%s", own->login ? own->login : "", own->root ? own->root : "");
}

static const char *const place_keys[] = {"fake.root", NULL};

static int fake_open(const struct config *config, struct platform **out, struct act_error *err)
{
    const char *root = fake_keys(config)->root;

    snprintf(fake.root, sizeof(fake.root), "%s", root ? root : "none");
    (void)err;
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

static int fake_submit(struct platform *p, const struct platform_submission *submission, struct act_error *err)
{
    (void)p;
    fake_note("submit");
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

static void fake_abort(struct platform *p, struct platform_end *ends, size_t n)
{
    (void)p;
    (void)ends; /* each had not ended */
    for (size_t i = 0; i < n; i++)
        fake_note("abort");
}

static int fake_list(struct platform *p, struct act_strv *out_ids, struct act_error *err)
{
    (void)p;
    (void)out_ids; /* a new ledger finds none here */
    (void)err;
    fake_note("list");
    return 0;
}

static int fake_list_logs(struct store_call *call)
{
    fake.n_logs_calls++;
    nanosleep(&(struct timespec){.tv_nsec = fake.logs_take_ms * 1000000L}, NULL);
    if (fake.before_logs)
        fake.before_logs(fake.n_logs_calls);
    if (fake.fail_logs > 0)
        return unreachable(&fake.fail_logs, &call->error);
    for (size_t i = 0; i < fake.n_logs; i++)
        *store_page_add(&call->list.page) = (struct store_entry){.key = act_strdup(fake.logs[i].name),
                                                                 .size = strlen(fake.logs[i].text),
                                                                 .grows = fake.row.about.answers_by_request};
    return 0;
}

static int fake_get_log(struct store_call *call)
{
    fake.n_read++;
    if (fake.before_read)
        fake.before_read(fake.n_read, call->key);
    for (size_t i = 0; i < fake.n_logs; i++) {
        if (strcmp(fake.logs[i].name, call->key) != 0)
            continue;
        call->entry.size = fake.shrinks > 0 && fake.shrinks-- ? 0 : strlen(fake.logs[i].text);
        if (call->get.offset < call->entry.size)
            call->get.got = strnlen(fake.logs[i].text + call->get.offset, call->get.sink_cap);
        memcpy(call->get.sink, fake.logs[i].text + (call->get.got ? call->get.offset : 0), call->get.got);
        return 0;
    }
    return act_error_set(&call->error, ACT_NOT_FOUND, "no log '%s'", call->key);
}

static void fake_answer(void *call)
{
    store_finish(call, ((struct store_call *)call)->op == STORE_LIST ? fake_list_logs(call) : fake_get_log(call));
}

static void fake_start(struct store *store, struct store_call *call)
{
    engine_timer(http_engine(store->http), 0, fake_answer, call);
}

static void fake_forget(struct store *store)
{
    free(store);
}

static struct store *fake_open_logs(struct platform *p, const char *id, bool ended)
{
    static const struct store_ops ops = {
        .operations = STORE_BIT(STORE_LIST) | STORE_BIT(STORE_GET), .start = fake_start, .close = fake_forget};
    struct store *store = act_calloc(1, sizeof(*store));

    (void)ended;
    *store = (struct store){.ops = &ops, .http = services_http(p->services), .name = act_strdup(id)};
    return store;
}

static const struct platform_row usual = {
    .kind = &kind,
    .about = {.keeps_record = true, .nodes_share_folder = true},
    .place = {.words = fake_place, .keys = place_keys},
    .open = fake_open,
    .close = fake_close,
    .submit = {.one = fake_submit},
    .runs = {.status = fake_status, .abort = fake_abort, .open_logs = fake_open_logs, .list = fake_list},
    .nodes = {.limits = fake_limits},
};

void fake_reset(void)
{
    fake = (struct fake){
        .row = usual, .status = {.state = RUN_RUNNING, .failed_rank = -1, .attempt = 1}, .fail_code = ACT_TEMPORARY};
}

static const struct config_kind built_in = {
    .name = "local", .is_built_in = true, .has_store = true, .runs_see_store = true};

static const struct platform_row here = {
    .kind = &built_in,
    .about = {.is_here = true},
    .place = {.words = fake_place, .keys = place_keys},
    .open = fake_open,
    .close = fake_close,
    .runs = {.list = fake_list},
};

const struct platform_row *const platform_table[] = {&here, &fake.row, NULL};
