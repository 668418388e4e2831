/* news.c - the client's side of told.h: a request that waits there is always under way, sent ahead. */
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "codec/json.h"
#include "site/exchange.h"
#include "site/site_internal.h"

struct site_news {
    char *id;
    struct act_strv folders;
    struct site_files files;
    int64_t looked_s;  /* by the monotonic clock: when their idle_s was true */
    bool is_known;     /* files is what the other side has told */
    struct wire *wire; /* over which this was the last one to ask; NULL: none */
};

struct site_news *site_news_new(const char *id, const char *const *folders, size_t n_folders)
{
    struct site_news *news = act_calloc(1, sizeof(*news));

    news->id = act_strdup(id);
    for (size_t i = 0; i < n_folders; i++)
        act_strv_push(&news->folders, folders[i]);
    return news;
}

void wire_lose_news(struct wire *w)
{
    if (w->news)
        w->news->wire = NULL;
    w->news = NULL;
}

void site_news_free(struct site_news *news)
{
    if (!news)
        return;
    if (news->wire)
        wire_lose_news(news->wire);
    free(news->id);
    act_strv_release(&news->folders);
    site_files_release(&news->files);
    free(news);
}

static struct exchange news_request(const struct site_news *news)
{
    return (struct exchange){
        .request = json_pack("{s:s, s:s, s:I}", "op", "news", "id", news->id, "since", (json_int_t)news->files.told),
        .max_response = SITE_ENDS_MAX_BYTES};
}

static enum wire_answer news_answer(struct wire *w, const struct site_news *news)
{
    struct exchange x = news_request(news);
    enum wire_answer answer = w && news->is_known ? wire_answer_of(w, &x) : WIRE_NOT_ASKED;

    json_decref(x.request);
    return answer;
}

/* Asks to be told, unless another one is over this connection: who comes later lists the files each time. */
static void news_ask(struct site *site, struct site_news *news)
{
    struct wire *w = site->wire;
    struct act_error ignored;

    if (w->news && w->news != news)
        return;
    struct exchange x = news_request(news);
    w->news = news;
    news->wire = w;
    w->ahead++;
    if (wire_call_send(site, &x, &ignored) < 0)
        (void)ignored; /* it was sent, or the next look says what is wrong */
    w->ahead--;
}

/* ---- the list ---- */

/* The ends that came before were given, or are not wanted. */
static void news_drop_ends(struct site_files *files)
{
    for (size_t i = 0; i < files->n; i++) {
        free(files->v[i].end);
        files->v[i].end = NULL;
        files->v[i].end_len = 0;
    }
}

/* Files of which nothing was told have not changed meanwhile. */
static void news_let_pass(struct site_news *news)
{
    const int64_t now_s = act_now_monotonic_ms() / 1000;

    for (size_t i = 0; i < news->files.n; i++)
        if (news->files.v[i].idle_s >= 0)
            news->files.v[i].idle_s += now_s - news->looked_s;
    news->looked_s = now_s;
}

static size_t news_find(const struct site_files *files, const char *name, bool *out_found)
{
    size_t low = 0, high = files->n;

    *out_found = false;
    while (low < high) {
        const size_t mid = (low + high) / 2;
        const int order = strcmp(name, files->v[mid].name);
        *out_found = *out_found || order == 0;
        if (order > 0)
            low = mid + 1;
        else
            high = mid;
    }
    return low;
}

/* Puts a file into the list, in the place of the one of its name if there is one. */
static void news_put(struct site_files *files, struct site_file *file)
{
    bool is_there;
    const size_t at = news_find(files, file->name, &is_there);

    if (is_there) {
        free(files->v[at].name);
        free(files->v[at].end);
    } else {
        ACT_GROW(files->v, files->n);
        memmove(files->v + at + 1, files->v + at, (files->n++ - at) * sizeof(*files->v));
    }
    files->v[at] = *file;
    *file = (struct site_file){0};
}

static void news_remove(struct site_files *files, const char *name)
{
    bool is_there;
    const size_t at = news_find(files, name, &is_there);

    if (!is_there)
        return;
    free(files->v[at].name);
    free(files->v[at].end);
    files->n--;
    memmove(files->v + at, files->v + at + 1, (files->n - at) * sizeof(*files->v));
}

/* Takes the answer that has come into the list. Afterwards it may not be known any more. */
static int news_take(struct site *site, struct site_news *news, struct act_error *err)
{
    ACT_AUTO(exchange) x = news_request(news);
    ACT_AUTO(site_files) changed = {0};
    const json_t *name;
    size_t i;
    int rc = wire_call(site, &x, err);

    if (rc == 0)
        rc = wire_take_files(&x.response, &changed, err);
    const int64_t told = codec_json_int(x.response.head, "told", 0);
    news->is_known = rc == 0 && told > 0;
    if (!news->is_known)
        return rc;
    news->files.told = (uint64_t)told;
    news_drop_ends(&news->files);
    for (i = 0; i < changed.n; i++)
        news_put(&news->files, &changed.v[i]);
    json_array_foreach(json_object_get(x.response.head, "gone"), i, name)
    {
        ACT_AUTOFREE char *gone = codec_json_bytes_get(name);
        news_remove(&news->files, gone ? gone : "");
    }
    return 0;
}

static int news_list(struct site *site, struct site_news *news, size_t n_with_ends, struct act_error *err)
{
    site_files_release(&news->files);
    int rc = wire_files(site, news->id, (const char *const *)news->folders.v, news->folders.n, n_with_ends,
                        &news->files, err);
    news->is_known = rc == 0 && news->files.told > 0;
    return rc;
}

int site_news_look(struct site *site, struct site_news *news, size_t n_with_ends, const struct site_files **out,
                   struct act_error *err)
{
    enum wire_answer answer = news_answer(site->wire, news);
    int rc = 0;

    news_let_pass(news);
    if (answer == WIRE_HAS_COME)
        rc = news_take(site, news, err);
    if (rc == 0 && (answer == WIRE_NOT_ASKED || !news->is_known))
        rc = news_list(site, news, n_with_ends, err);
    *out = &news->files;
    if (rc == 0 && answer != WIRE_NOT_YET && news->is_known)
        news_ask(site, news);
    return rc;
}

bool site_news_have_come(struct site *site, const struct site_news *news, int *out_fd)
{
    enum wire_answer answer = news_answer(site->wire, news);

    *out_fd = answer == WIRE_NOT_YET ? site->wire->channel.in_fd : -1;
    return answer == WIRE_HAS_COME;
}
