/* live.c - the loop: the board's threads say that there is news, keys and signals come, and ages grow. */
#include "cli/screen/live.h"

#include <errno.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "auth/services.h"
#include "base/clock.h"
#include "cli/command/command.h"
#include "cli/screen/screen.h"
#include "engine/engine.h"

enum {
    NEWS_MS = 400, /* between frames that news make: many places are asked, at any time */
    LOOK_MS = 50,
    TICK_MS = 1000,  /* ages grow */
    SAID_MS = 10000, /* how long a warning is shown */
};

/* Wakes the loop; runs on the board's threads. */
static void on_news(void *arg)
{
    const struct live *live = arg;
    const uint64_t one = 1;

    if (write(live->wake, &one, sizeof(one)) < 0)
        return; /* it is full of news */
}

static void take_said(struct live *live)
{
    char *said = screen_said(&live->screen);

    if (said) {
        free(live->said);
        live->said = said;
        live->said_ms = act_now_monotonic_ms();
    } else if (live->said && act_now_monotonic_ms() - live->said_ms > SAID_MS) {
        free(live->said);
        live->said = NULL;
    }
}

static void live_draw(struct live *live)
{
    ACT_AUTO(act_strv) lines = {0};

    take_said(live);
    live->draw(live->arg, flow_board_lock(live->board), &lines);
    flow_board_unlock(live->board);
    screen_draw(&live->screen, &lines);
    live->drawn_ms = act_now_monotonic_ms();
    if (live->drawn)
        live->drawn(live->arg);
}

static void draw_news(void *arg)
{
    struct live *live = arg;

    live->due = false;
    live_draw(live);
}

static void draw_later(struct live *live)
{
    if (live->due)
        return;
    live->due = true;
    int64_t rest_ms = live->drawn_ms + NEWS_MS - act_now_monotonic_ms();
    engine_timer(live->engine, rest_ms > LOOK_MS ? rest_ms : LOOK_MS, draw_news, live);
}

static void take_news(void *arg)
{
    struct live *live = arg;
    uint64_t ignored;

    if (read(live->wake, &ignored, sizeof(ignored)) > 0)
        draw_later(live);
}

static void tick(void *arg)
{
    struct live *live = arg;

    draw_later(live);
    engine_timer(live->engine, TICK_MS, tick, live);
}

static void on_key(void *arg, int key)
{
    struct live *live = arg;

    live->key(live->arg, key);
    live_draw(live);
}

static void on_redraw(void *arg)
{
    live_draw(arg);
}

static void on_end(void *arg, int signal)
{
    struct live *live = arg;

    live->signal = signal;
    live->over = true;
}

void live_quit(struct live *live)
{
    live->over = true;
}

static int open_live(struct live *live, struct cli *cli, struct act_error *err)
{
    live->engine = services_engine(&cli->services);
    live->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (live->wake < 0 || !engine_watch(live->engine, live->wake, false, take_news, live))
        return act_error_errno(err, errno, "cannot watch for news");
    live->options.changed = on_news;
    live->options.arg = live;
    return 0;
}

/* Frees the board. Ends the program if requests are still under way: they must not outlive what they use. */
void live_end_board(struct live *live, int status)
{
    if (flow_board_free(live->board))
        return;
    fflush(stdout);
    _exit(status);
}

static void close_live(struct live *live)
{
    engine_forget(live->engine, live);
    engine_unwatch(live->engine, live->wake);
    close(live->wake);
    free(live->said);
}

int live_run(struct live *live, struct cli *cli, const char *what, struct act_error *err)
{
    int rc = screen_check(what, err);

    if (rc == 0)
        rc = open_live(live, cli, err);
    if (rc < 0)
        return rc;
    live->screen =
        (struct screen){.engine = live->engine, .key = on_key, .redraw = on_redraw, .end = on_end, .arg = live};
    rc = screen_open(&live->screen, err);
    if (rc == 0) {
        live->board = flow_board_new(&live->options);
        flow_board_follow(live->board, NULL, 0); /* until it is known what is on the screen */
        live_draw(live);
        tick(live);
        engine_run(live->engine, &live->over);
    }
    screen_close(&live->screen);
    if (rc == 0)
        live_end_board(live, live->signal ? 128 + live->signal : 0);
    close_live(live);
    return rc < 0 ? rc : live->signal ? 128 + live->signal : 0;
}

static void check_settled(void *arg)
{
    struct live *live = arg;

    live->over = flow_board_lock(live->board)->settled;
    flow_board_unlock(live->board);
    if (!live->over)
        engine_timer(live->engine, LOOK_MS, check_settled, live);
}

void live_settle(struct live *live, struct cli *cli)
{
    live->engine = services_engine(&cli->services);
    live->board = flow_board_new(&live->options);
    check_settled(live);
    engine_run(live->engine, &live->over);
}
