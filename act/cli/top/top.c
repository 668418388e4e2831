#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "cli/print/print.h"
#include "cli/print/table.h"
#include "cli/runs/options.h"
#include "cli/runs/runs.h"
#include "cli/screen/live.h"
#include "cli/screen/screen.h"
#include "cli/top/text.h"
#include "cli/top/top.h"

enum { DEFAULT_MAX = 1000, PAGE = 10, FAR = 1 << 30 };

struct top {
    struct cli *cli;
    struct live live;
    struct top_look look;
    struct act_strv seen, followed; /* whose logs are read */
    enum { CHOOSES, TYPES_FILTER, CONFIRMS } mode;
    struct act_buf typed;
    char *asked; /* the run that is to be aborted */
    char *notice;
};

/* ---- frames */

static char *cmd_top_bottom_of(const struct top *top, const struct flow_board_view *view)
{
    if (top->mode == TYPES_FILTER)
        return act_sprintf("/%s_", top->typed.len ? top->typed.data : "");
    if (top->mode == CONFIRMS)
        return act_sprintf("Abort %s? [y/N]", top->asked);
    return act_strdup(top->notice      ? top->notice
                      : top->live.said ? top->live.said
                      : view->said     ? view->said
                      : view->n > 0    ? view->error
                                       : NULL);
}

static void cmd_top_draw(void *arg, const struct flow_board_view *view, struct act_strv *lines)
{
    struct top *top = arg;
    ACT_AUTOFREE char *bottom = cmd_top_bottom_of(top, view);

    act_strv_release(&top->seen);
    top->look.rows = top->live.screen.rows;
    top->look.columns = top->live.screen.columns;
    top->look.now_unix_s = act_now_unix_s();
    top->look.bottom = bottom;
    top_lines(view, &top->look, lines, &top->seen);
    top->look.bottom = NULL;
}

static bool cmd_top_same_words(const struct act_strv *a, const struct act_strv *b)
{
    bool same = a->n == b->n;

    for (size_t i = 0; i < a->n && same; i++)
        same = strcmp(a->v[i], b->v[i]) == 0;
    return same;
}

/* Only the logs of runs on the screen are read. */
static void follow_seen(void *arg)
{
    struct top *top = arg;

    if (cmd_top_same_words(&top->seen, &top->followed))
        return;
    act_strv_release(&top->followed);
    act_strv_copy(&top->followed, top->seen.v, top->seen.n);
    flow_board_follow(top->live.board, (const char *const *)top->seen.v, top->seen.n);
}

/* ---- keys */

static void move(struct top *top, int64_t by)
{
    top_move(flow_board_lock(top->live.board), &top->look, by);
    flow_board_unlock(top->live.board);
}

/* Runs another verb of this program on the whole terminal, below a line that says what it is. */
static void run_verb(struct top *top, const char *head, const char *const *words, size_t n)
{
    ACT_AUTO(act_strv) argv = {0};
    struct act_error err;

    act_strv_push(&argv, "/proc/self/exe");
    for (size_t i = 0; i < n; i++)
        act_strv_push(&argv, words[i]);
    act_strv_push(&argv, top->look.chosen);
    if (screen_run(&top->live.screen, head, argv.v, &err) < 0)
        top->notice = act_strdup(act_error_text(&err));
}

/* Returns the state of a run; RUN_UNKNOWN if it is not there any more. */
static enum run_state cmd_top_state_of(struct top *top, const char *id)
{
    const struct flow_board_view *view = flow_board_lock(top->live.board);
    enum run_state state = RUN_UNKNOWN;

    for (size_t i = 0; i < view->n; i++)
        if (strcmp(view->runs[i]->run.row.id, id) == 0)
            state = view->runs[i]->run.status.state;
    flow_board_unlock(top->live.board);
    return state;
}

/* Keys for one run do nothing where a folded sweep is chosen. */
static bool is_folded(struct top *top)
{
    if (top->look.folded)
        top->notice = act_sprintf("sweep %s has %zu runs: f unfolds it", top->look.sweep, top->look.folded);
    return top->look.folded > 0;
}

static void cmd_top_fold(struct top *top)
{
    if (top->look.sweep)
        top_toggle(&top->look, top->look.sweep);
    else
        top->notice = act_strdup("f folds the runs of a sweep, and this run is of none");
}

static void show_log(struct top *top)
{
    static const char *const follow[] = {"logs", "-f", "-n", "100"}, *const end[] = {"logs", "-n", "1000"};
    const char *id = top->look.chosen;
    enum run_state state = id ? cmd_top_state_of(top, id) : RUN_UNKNOWN;

    if (!id || is_folded(top))
        return;
    if (state == RUN_QUEUED) {
        top->notice = act_strdup("there is no log yet: the run is queued; w says what it waits for");
        return;
    }
    bool ended = run_state_is_final(state);
    ACT_AUTOFREE char *head = ended ? act_sprintf("%s, %s: the end of its log", id, run_state_name(state))
                                    : act_sprintf("%s: its log; Ctrl-C goes back", id);
    if (ended)
        run_verb(top, head, end, sizeof(end) / sizeof(end[0]));
    else
        run_verb(top, head, follow, sizeof(follow) / sizeof(follow[0]));
}

static void show_why(struct top *top)
{
    static const char *const why[] = {"why"};

    if (!top->look.chosen || is_folded(top))
        return;
    ACT_AUTOFREE char *head = act_sprintf("why %s", top->look.chosen);
    run_verb(top, head, why, 1);
}

static void ask_abort(struct top *top)
{
    if (!top->look.chosen || is_folded(top))
        return;
    if (run_state_is_final(cmd_top_state_of(top, top->look.chosen))) {
        top->notice = act_sprintf("%s has ended", top->look.chosen);
        return;
    }
    act_str_replace(&top->asked, top->look.chosen);
    top->mode = CONFIRMS;
}

static void set_filter(struct top *top, const char *text)
{
    free(top->look.filter);
    top->look.filter = text && *text ? act_strdup(text) : NULL;
    top->look.first = 0;
}

static void type_filter(struct top *top)
{
    top->mode = TYPES_FILTER;
    act_buf_release(&top->typed);
    act_buf_adds(&top->typed, top->look.filter ? top->look.filter : "");
}

static void choose(struct top *top, int key)
{
    switch (key) {
    case 'q':
        live_quit(&top->live);
        break;
    case 'k':
    case SCREEN_UP:
        move(top, -1);
        break;
    case 'j':
    case SCREEN_DOWN:
        move(top, 1);
        break;
    case SCREEN_PAGE_UP:
        move(top, -PAGE);
        break;
    case SCREEN_PAGE_DOWN:
        move(top, PAGE);
        break;
    case 'g':
    case SCREEN_HOME:
        move(top, -FAR);
        break;
    case 'G':
    case SCREEN_END:
        move(top, FAR);
        break;
    case 'l':
    case SCREEN_ENTER:
        show_log(top);
        break;
    case 'w':
        show_why(top);
        break;
    case 'a':
        ask_abort(top);
        break;
    case 's':
        top->look.sort = (top->look.sort + 1) % TOP_SORTS;
        break;
    case '/':
        type_filter(top);
        break;
    case SCREEN_ESCAPE:
        set_filter(top, NULL);
        break;
    case 'f':
        cmd_top_fold(top);
        break;
    case 'r':
        flow_board_hurry(top->live.board);
        break;
    case 'h':
    case '?':
        top->look.help = true;
        break;
    default:
        break;
    }
}

static void cmd_top_confirm(struct top *top, int key)
{
    top->mode = CHOOSES;
    if (key == 'y' || key == 'Y')
        flow_board_abort(top->live.board, top->asked);
    else
        top->notice = act_strdup("not confirmed: nothing was changed");
}

/* Erases the last character, whole. */
static void erase(struct act_buf *typed)
{
    while (typed->len > 0 && ((unsigned char)typed->data[--typed->len] & 0xc0) == 0x80)
        ;
    if (typed->data)
        typed->data[typed->len] = '\0';
}

/* Erases the last word, and the blanks behind it. */
static void erase_word(struct act_buf *typed)
{
    while (typed->len > 0 && typed->data[typed->len - 1] == ' ')
        erase(typed);
    while (typed->len > 0 && typed->data[typed->len - 1] != ' ')
        erase(typed);
}

static void type(struct top *top, int key)
{
    if (key == SCREEN_BACKSPACE)
        erase(&top->typed);
    else if (key == SCREEN_ERASE_WORD)
        erase_word(&top->typed);
    else if (key == SCREEN_ERASE_ALL)
        act_buf_release(&top->typed);
    else if (key < SCREEN_UP)
        act_buf_addc(&top->typed, (char)key);
    if (key == SCREEN_ESCAPE || key == SCREEN_ENTER)
        top->mode = CHOOSES;
    set_filter(top, key == SCREEN_ESCAPE ? NULL : top->typed.data);
}

static void cmd_top_take_key(void *arg, int key)
{
    struct top *top = arg;

    free(top->notice);
    top->notice = NULL;
    if (top->look.help)
        top->look.help = false;
    else if (top->mode == TYPES_FILTER)
        type(top, key);
    else if (top->mode == CONFIRMS)
        cmd_top_confirm(top, key);
    else
        choose(top, key);
}

/* ---- the command */

static void cmd_top_print_text(struct top *top, const struct flow_board_view *view)
{
    ACT_AUTO(act_buf) text = {0};
    ACT_AUTO(act_strv) lines = {0};

    top->look.columns = cli_width();
    top->look.now_unix_s = act_now_unix_s();
    top_lines(view, &top->look, &lines, &top->seen);
    for (size_t i = 0; i < lines.n; i++)
        act_buf_addf(&text, "%s\n", lines.v[i]);
    cli_put_table(&text);
}

/* Prints one frame, however long it takes, for a pipe or a look. */
static int print_once(struct top *top, struct act_error *err)
{
    json_t *json = NULL;
    int rc = 0;

    live_settle(&top->live, top->cli);
    const struct flow_board_view *view = flow_board_lock(top->live.board);
    if (view->error)
        rc = act_error_set(err, ACT_FAIL, "%s", view->error);
    if (rc == 0 && top->cli->options.json)
        json = top_json(view);
    else if (rc == 0)
        cmd_top_print_text(top, view);
    flow_board_unlock(top->live.board);
    if (json)
        rc = cli_print_json(json, err);
    live_end_board(&top->live, rc < 0 ? -rc : 0);
    return rc;
}

static int cmd_top_check_options(const struct cli *cli, bool once, struct act_error *err)
{
    if (once && CLI_OPTIONS(cli, query)->interval_s > 0)
        return act_error_set(err, ACT_USAGE, "--interval is for a terminal that is redrawn: one frame has none");
    return 0;
}

static void cmd_top_release(struct top *top)
{
    set_filter(top, NULL);
    act_strv_release(&top->seen);
    act_strv_release(&top->followed);
    act_buf_release(&top->typed);
    act_strv_release(&top->look.unfolded);
    free(top->look.chosen);
    free(top->look.sweep);
    free(top->asked);
    free(top->notice);
}

int cmd_top(struct cli *cli, struct act_error *err)
{
    const struct cli_query_options *o = CLI_OPTIONS(cli, query);
    bool once = o->once || cli->options.json || !isatty(STDOUT_FILENO);
    struct top top = {.cli = cli,
                      .look = {.coloured = cli_colour(stdout),
                               .plain = !cli_utf8(),
                               .folds = !cli->options.name && !cli->options.tags.n},
                      .live = {.draw = cmd_top_draw, .drawn = follow_seen, .key = cmd_top_take_key, .arg = &top}};
    struct flow_board_options *options = &top.live.options;
    int rc = cmd_top_check_options(cli, once, err);

    *options = (struct flow_board_options){.table = {.cluster = cli->options.cluster,
                                                     .max = cli->options.max >= 0 ? cli->options.max : DEFAULT_MAX,
                                                     .with_spec = cli->options.json},
                                           .cluster = cli->options.cluster,
                                           .interval_ms = (o->interval_s > 0 ? o->interval_s : LIVE_INTERVAL_S) * 1000};
    if (rc == 0)
        rc = cli_labels(cli, &options->table.labels, err);
    if (rc == 0)
        rc = once ? print_once(&top, err) : live_run(&top.live, cli, "'a top --once' prints it once", err);
    cmd_top_release(&top);
    return rc;
}
