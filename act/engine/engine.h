/* engine.h - the event loop and the worker pool: the only place that waits.
 *
 * One thread, that which calls engine_run(), owns every connection and all state; every callback runs on it.
 * Workers only compute or touch the disk on one item they own and hand it back. So no other lock is needed
 * anywhere. A callback comes exactly once, and never from inside the function that started it.
 */
#ifndef ACT_ENGINE_ENGINE_H
#define ACT_ENGINE_ENGINE_H

#include <curl/curl.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

struct engine;
struct engine_lane;

struct engine_options {
    int workers;         /* threads; 0: as many as processors, at least 4; never more than 64 */
    int max_connections; /* in all; 0: 512 */
};

/* Makes an engine, which costs nothing until it is used: threads start with the first piece of work, libcurl with the
 * first request. The first request raises the limit of open files (RLIMIT_NOFILE) if it is too low for max_connections;
 * if that fails, there are fewer connections. */
struct engine *engine_new(const struct engine_options *options);
/* Frees an engine that has nothing under way; engine may be NULL. */
void engine_free(struct engine *engine);

/* Makes an easy handle of a libcurl that overwrites whatever it frees: curl_easy_init() would start one that does not.
 * NULL if libcurl cannot start. */
CURL *engine_easy(void);

/* Starts a prepared easy handle, and calls done(arg, result) when it has ended. The handle stays the caller's and may
 * be used again from inside done; its CURLOPT_PRIVATE, CURLOPT_OPENSOCKETFUNCTION and CURLOPT_CLOSESOCKETFUNCTION (with
 * their data) are the engine's. No child process inherits its sockets. */
void engine_transfer(struct engine *engine, CURL *easy, void (*done)(void *arg, CURLcode result), void *arg);

/* Does the same for a response that comes for as long as it likes: engine_run() without a flag does not wait for it. */
void engine_transfer_endless(struct engine *engine, CURL *easy, void (*done)(void *arg, CURLcode result), void *arg);

/* Only connects (to the proxy and through it, with TLS), and calls connected(arg) when the connection is there for
 * curl_easy_send() and curl_easy_recv(). It lasts until engine_cancel(). done(arg, result) comes then, or if the
 * connection could not be made. engine_run() without a flag does not wait for it. */
void engine_connect(struct engine *engine, CURL *easy, void (*connected)(void *arg),
                    void (*done)(void *arg, CURLcode result), void *arg);

/* Calls ready(arg) on the loop whenever fd can be read, or written if out is set. fd is the caller's own, or that of a
 * connection which engine_connect() made. Returns false if it is a file, which can always be read and cannot be waited
 * for. A watched descriptor keeps no engine_run() going. */
bool engine_watch(struct engine *engine, int fd, bool out, void (*ready)(void *arg), void *arg) ACT_NODISCARD;
/* Does the same whenever fd can be written, whatever there is to be read. */
bool engine_watch_out(struct engine *engine, int fd, void (*ready)(void *arg), void *arg) ACT_NODISCARD;
/* Ends either of them, which must come before fd is closed. */
void engine_unwatch(struct engine *engine, int fd);

/* Keeps engine_run() going, as what is under way does, until it is called with false as often as with true: for whoever
 * waits for what comes from a watched descriptor. */
void engine_hold(struct engine *engine, bool hold);

/* Ends a transfer that is under way: its done comes, with CURLE_ABORTED_BY_CALLBACK unless it has just ended by itself.
 * It may be called from inside a callback of libcurl. */
void engine_cancel(struct engine *engine, CURL *easy);

/* Returns how many workers there are at most. */
int engine_workers(const struct engine *engine);

/* Calls work(arg) on a worker, then done(arg) on the loop. */
void engine_work(struct engine *engine, void (*work)(void *arg), void (*done)(void *arg), void *arg);

/* A lane is for work that gains nothing from running at the same time, such as writes into one file: its items run one
 * at a time, in the order in which they were started. When one has run, the next is the pool's at once, however busy
 * the loop is. */
struct engine_lane *engine_lane_new(void);
/* Frees a lane of which nothing is under way; lane may be NULL. */
void engine_lane_free(struct engine_lane *lane);
/* Does what engine_work() does, in a lane; lane NULL: in none. All work of one lane is the same engine's. */
void engine_work_in(struct engine *engine, struct engine_lane *lane, void (*work)(void *arg), void (*done)(void *arg),
                    void *arg);

/* Calls fire(arg) on the loop after delay_ms (0: with the next turn). Timers of one moment fire in the order in which
 * they were started. */
void engine_timer(struct engine *engine, int64_t delay_ms, void (*fire)(void *arg), void *arg);

/* Cancels all timers with this arg, for an owner that goes away before they fire. It looks at every timer. */
void engine_forget(struct engine *engine, const void *arg);

/* Runs the loop until *stop is true or nothing is under way; with stop NULL until nothing but endless transfers is. */
void engine_run(struct engine *engine, const bool *stop);

/* Tells whether transfers, work or timers are under way, or it is held. */
bool engine_busy(const struct engine *engine);

#endif
