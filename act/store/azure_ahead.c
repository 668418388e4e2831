/* azure_ahead.c - prefetches the next page of a listing while the current one is parsed.
 *
 * A store holds one such page at most; one that nobody asks for goes when there is another, or with the store.
 */
#include <string.h>

#include "store/azure.h"

#define TAIL 8192 /* bytes that hold the marker; a name of 1,024 characters takes some 6 KiB at most */

struct azure_ahead {
    char *query;            /* of the request for the page: what it is known by */
    struct store_call call; /* of the op that fetches it */
    bool ended;
    struct act_buf body; /* of the response; empty when no usable one came */
    struct azure_op *waiting;
};

static void ahead_free(struct azure_ahead *ahead)
{
    if (!ahead)
        return;
    free(ahead->query);
    act_buf_release(&ahead->body);
    store_call_release(&ahead->call);
    free(ahead);
}

void azure_ahead_end(struct azure *azure)
{
    if (azure->ahead && !azure->ahead->ended)
        engine_run(http_engine(azure->store.http), &azure->ahead->ended);
    ahead_free(azure->ahead);
    azure->ahead = NULL;
}

/* ---- the marker */

static int ahead_take_marker(void *arg, const char *path, const char *text, struct act_error *err)
{
    (void)path;
    (void)err;
    *(char **)arg = act_strdup(text);
    return 0;
}

/* Returns the marker at the end of a page that is not parsed yet: a new string, or NULL if none is certain. */
static char *find_marker(const struct act_buf *page)
{
    static const char open[] = "<NextMarker>", close[] = "</NextMarker>", end[] = "</EnumerationResults>";
    static const struct xml_handler handler = {.end = ahead_take_marker};
    const char *tail = page->len > TAIL ? page->data + page->len - TAIL : page->data;
    const char *from = tail ? strstr(tail, open) : NULL;
    const char *to = from ? strstr(from, close) : NULL;
    struct act_error ignored;
    char *marker = NULL;

    if (!to || to == from + strlen(open) || !act_starts_with(to + strlen(close), end))
        return NULL;
    if (xml_parse(from, (size_t)(to - from) + strlen(close), "marker", &handler, &marker, &ignored) == 0)
        return marker;
    free(marker);
    return NULL;
}

/* ---- fetching */

void azure_build_ahead(struct azure_op *op)
{
    azure_request_page(op, op->azure->ahead->query);
    op->http.no_retry = true; /* the caller that wants the page tries again */
}

void azure_answer_ahead(struct azure_op *op)
{
    struct azure_ahead *ahead = op->azure->ahead;

    if (op->http.status != 200) {
        azure_finish_failed(op);
        return;
    }
    ahead->body = op->http.body_text;
    op->http.body_text = (struct act_buf){0};
    azure_finish(op, 0);
}

/* Gives the page to the op that wants it. Where none came, that op makes the request itself, and says what is wrong. */
static void hand_page_over(struct azure_op *op)
{
    struct azure_ahead *ahead = op->azure->ahead;

    op->azure->ahead = NULL;
    if (ahead->body.len) {
        op->http.status = 200;
        op->http.body_text = ahead->body;
        ahead->body = (struct act_buf){0};
        azure_answer_list(op);
    } else {
        azure_send(op);
    }
    ahead_free(ahead);
}

static void ahead_ended(struct store_call *call)
{
    struct azure_ahead *ahead = ((struct azure *)call->arg)->ahead;

    ahead->ended = true;
    if (ahead->waiting)
        hand_page_over(ahead->waiting);
}

void azure_ahead_start(struct azure_op *op)
{
    struct azure *azure = op->azure;
    ACT_AUTOFREE char *marker = op->call->list.ahead ? find_marker(&op->http.body_text) : NULL;

    if (!marker || (azure->ahead && !azure->ahead->ended))
        return;
    ahead_free(azure->ahead);
    azure->ahead = act_calloc(1, sizeof(*azure->ahead));
    azure->ahead->query = azure_page_query(op->call, marker);
    azure->ahead->call = (struct store_call){.op = STORE_LIST, .key = "", .done = ahead_ended, .arg = azure};
    struct azure_op *fetch = act_calloc(1, sizeof(*fetch));
    fetch->azure = azure;
    fetch->call = &azure->ahead->call;
    azure_send_phase(fetch, AZURE_AHEAD);
}

bool azure_ahead_take(struct azure_op *op, const char *query)
{
    struct azure_ahead *ahead = op->azure->ahead;

    if (!ahead || ahead->waiting || strcmp(ahead->query, query) != 0)
        return false;
    if (ahead->ended)
        hand_page_over(op);
    else
        ahead->waiting = op;
    return true;
}
