/* azure_list.c - List Blobs as pages of keys in byte order.
 *
 * The service gives names in order, but two things make the order of keys differ from that of the names:
 *  - a folder marker "a/b" becomes the key "a/b/", which comes after "a/b-x";
 *  - with a delimiter, prefixes and blobs may come as two sets.
 * So a page is sorted, and a folder whose place is not reached yet is held back. What follows it in the end shows
 * whether it is empty: folders that are not have no entry of their own, unless the whole is asked for.
 * The folders held back travel to the next page inside the marker, together with the last name, which shows
 * whether the service keeps its order across pages, and how many pages in a row had nothing. Parsing is a worker's
 * work.
 *
 * A listing is refused when nobody could go through it to its end and see each object once: names out of order, twice
 * or not asked for, two markers, pages without end, or that bring next to nothing again and again.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "store/azure.h"

#define MAX_PAGE_BYTES ((size_t)64 << 20)
#define MAX_POOR       10000   /* pages in a row; the service gives one now and then where it was interrupted */
#define FEW            10      /* names, and what an empty page counts */
#define MAX_PAGES      4000000 /* of 5000 names: more than an account of the largest size has room for */
#define BLOBS          "/EnumerationResults/Blobs"
#define BLOB           "/Blob" /* below that */
#define PREFIX         "/BlobPrefix"

struct azure_list {
    /* from the marker */
    char *service_marker; /* "": from the start */
    char *query;          /* of the request */
    char *last;           /* the last name so far, "" none */
    struct azure_pages pages;
    struct store_page held; /* folders held back */

    /* of the page */
    struct store_page found; /* as parsed, then sorted; key is the key */
    char *last_found;        /* the last name on this page */
    char *first_found;
    char *next; /* the service's marker */
    bool complete;

    /* of the current blob */
    struct store_entry entry;
    char *name;
    bool encoded, has_size;
};

static void release_list(struct azure_op *op)
{
    struct azure_list *list = op->list;

    store_page_release(&list->held);
    store_page_release(&list->found);
    store_entry_release(&list->entry);
    free(list->service_marker);
    free(list->query);
    free(list->last);
    free(list->last_found);
    free(list->first_found);
    free(list->next);
    free(list->name);
    free(list);
}

/* ---- the marker: "service marker|last name|pages|poor pages|key,mtime,mode|...", each text percent-encoded */

static char *marker_take_text(const char **at, const char *end_chars)
{
    size_t n = strcspn(*at, end_chars);
    ACT_AUTOFREE char *raw = act_strndup(*at, n);

    *at += n + ((*at)[n] == '|' || (*at)[n] == ',');
    return http_decode(raw);
}

static long take_count(const char **at)
{
    ACT_AUTOFREE char *text = marker_take_text(at, "|");

    return strtol(text, NULL, 10);
}

static void read_marker(struct azure_list *list, const char *marker)
{
    const char *at = marker ? marker : "";

    list->service_marker = marker_take_text(&at, "|");
    list->last = marker_take_text(&at, "|");
    list->pages.n = take_count(&at);
    list->pages.poor = take_count(&at);
    while (*at) {
        struct store_entry *folder = store_page_add(&list->held);
        folder->kind = STORE_FOLDER;
        folder->key = marker_take_text(&at, ",|");
        ACT_AUTOFREE char *mtime = marker_take_text(&at, ",|");
        ACT_AUTOFREE char *mode = marker_take_text(&at, ",|");
        folder->mtime_ns = strtoll(mtime, NULL, 10);
        folder->mode = (int)strtol(mode, NULL, 10);
    }
}

static void add_encoded(struct act_buf *out, const char *text)
{
    ACT_AUTOFREE char *encoded = http_encode(text, true);

    act_buf_adds(out, encoded);
}

static char *write_marker(const struct azure_list *list, const char *last)
{
    struct act_buf out = {0};

    add_encoded(&out, list->next);
    act_buf_addc(&out, '|');
    add_encoded(&out, last);
    act_buf_addf(&out, "|%ld|%ld", list->pages.n, list->pages.poor);
    for (size_t i = 0; i < list->held.n; i++) {
        act_buf_addc(&out, '|');
        add_encoded(&out, list->held.v[i].key);
        act_buf_addf(&out, ",%" PRId64 ",%d", list->held.v[i].mtime_ns, list->held.v[i].mode);
    }
    return act_buf_steal(&out);
}

/* ---- the response */

/* Returns the part of `path` behind `prefix`, or NULL. */
static const char *element_below(const char *path, const char *prefix)
{
    size_t n = strlen(prefix);

    return strncmp(path, prefix, n) == 0 ? path + n : NULL;
}

static int listed_start_element(void *arg, const char *path, xml_attributes attributes, struct act_error *err)
{
    struct azure_list *list = arg;
    const char *name = element_below(path, BLOBS);

    (void)err;
    if (!name)
        return 0;
    if (strcmp(name, BLOB) == 0 || strcmp(name, PREFIX) == 0) {
        store_entry_release(&list->entry);
        free(list->name);
        list->name = NULL;
        list->has_size = list->encoded = false;
    } else if (strcmp(name, BLOB "/Name") == 0 || strcmp(name, PREFIX "/Name") == 0) {
        list->encoded = azure_is_encoded(attributes);
    }
    return 0;
}

/* Takes over the name, which may be the first or the last one of the page. */
static void remember_name(struct azure_list *list)
{
    if (!list->first_found || strcmp(list->name, list->first_found) < 0) {
        free(list->first_found);
        list->first_found = act_strdup(list->name);
    }
    if (!list->last_found || strcmp(list->name, list->last_found) > 0) {
        free(list->last_found);
        list->last_found = list->name;
    } else {
        free(list->name);
    }
    list->name = NULL;
}

static int end_blob(struct azure_list *list, bool is_prefix, struct act_error *err)
{
    if (!list->name || (!is_prefix && !list->has_size))
        return act_error_set(err, ACT_FAIL, "a blob without %s", list->name ? "a size" : "a name");
    if (is_prefix) {
        list->entry.kind = STORE_PREFIX;
        list->entry.key = act_strdup(list->name);
    } else {
        azure_take_key(&list->entry, list->name);
    }
    remember_name(list);
    *store_page_add(&list->found) = list->entry;
    list->entry = (struct store_entry){.mode = -1};
    return 0;
}

static int take_property(struct azure_list *list, const char *name, const char *text, struct act_error *err)
{
    if (strcmp(name, "Content-Length") == 0) {
        list->has_size = true;
        return azure_take_size(&list->entry.size, text, err);
    }
    if (strcmp(name, "Etag") == 0)
        azure_take_etag(&list->entry, text);
    else if (strcmp(name, "BlobType") == 0)
        list->entry.grows = strcmp(text, "AppendBlob") == 0;
    else if (strcmp(name, "Content-MD5") == 0)
        azure_take_md5(&list->entry, text);
    else if (strcmp(name, "Last-Modified") == 0)
        azure_take_time(&list->entry, text);
    return 0;
}

static int end_of_blobs(struct azure_list *list, const char *name, const char *text, struct act_error *err)
{
    const char *part = NULL;

    if ((part = element_below(name, BLOB "/Properties/")) != NULL)
        return take_property(list, part, text, err);
    if ((part = element_below(name, BLOB "/Metadata/")) != NULL)
        azure_take_metadata(&list->entry, part, text);
    else if (strcmp(name, BLOB "/Name") == 0 || strcmp(name, PREFIX "/Name") == 0)
        return azure_take_name(&list->name, text, list->encoded, err);
    else if (strcmp(name, BLOB) == 0)
        return end_blob(list, false, err);
    else if (strcmp(name, PREFIX) == 0)
        return end_blob(list, true, err);
    return 0;
}

static int listed_take_next(struct azure_list *list, const char *text, struct act_error *err)
{
    if (list->next)
        return act_error_set(err, ACT_FAIL, "a page with two markers of the next one");
    list->next = act_strdup(text);
    return 0;
}

static int listed_end_element(void *arg, const char *path, const char *text, struct act_error *err)
{
    struct azure_list *list = arg;
    const char *name = element_below(path, BLOBS);

    if (name && *name)
        return end_of_blobs(list, name, text, err);
    if (name)
        list->complete = true;
    else if (strcmp(path, "/EnumerationResults/NextMarker") == 0 && *text)
        return listed_take_next(list, text, err);
    return 0;
}

int azure_check_page(const char *marker, const char *next, size_t n, struct azure_pages *io, struct act_error *err)
{
    io->n++;
    io->poor = n >= FEW ? 0 : io->poor + (n ? 1 : FEW);
    if (!next)
        return 0;
    if (act_streq(next, marker))
        return act_error_set(err, ACT_FAIL, "the service gives the same page again and again");
    if (io->poor > MAX_POOR || io->n > MAX_PAGES)
        return act_error_set(err, ACT_FAIL, "the service gives pages without end%s: this was number %ld",
                             io->poor > MAX_POOR ? " that bring next to nothing" : "", io->n);
    return 0;
}

static int parse_answer(struct azure_op *op, struct act_error *err)
{
    static const struct xml_handler handler = {.start = listed_start_element, .end = listed_end_element};
    struct azure_list *list = op->list;
    const struct act_buf *text = &op->http.body_text;
    int rc = xml_parse(text->data ? text->data : "", text->len, "listing", &handler, list, err);

    if (rc)
        return rc;
    if (!list->complete)
        return act_error_set(err, ACT_FAIL, "the answer is not a listing");
    rc = azure_check_page(list->service_marker, list->next, list->found.n, &list->pages, err);
    if (rc == 0 && list->first_found && *list->last && strcmp(list->first_found, list->last) <= 0)
        rc = act_error_set(err, ACT_FAIL, "the service does not keep its names in order: '%s' behind '%s'",
                           list->first_found, list->last);
    return rc;
}

/* ---- the page */

/* Orders entries of one key: the marker of a folder, its marker with a slash, anything else. */
static int rank(const struct store_entry *entry)
{
    return entry->kind == STORE_FOLDER ? entry->slashed : 2;
}

/* Puts a folder's marker before the prefix or the other marker of the same key, for which it is left out. */
static int listed_by_key(const void *a, const void *b)
{
    const struct store_entry *x = a, *y = b;
    int order = strcmp(x->key, y->key);

    return order ? order : rank(x) - rank(y);
}

/* Checks that all names lie below the prefix and that none comes twice, but for the two markers that a folder may
 * have. */
static int check_listed_names(const struct store_page *sorted, const char *prefix, struct act_error *err)
{
    for (size_t i = 0; i < sorted->n; i++) {
        const struct store_entry *entry = &sorted->v[i];
        if (!act_starts_with(entry->key, prefix))
            return act_error_set(err, ACT_FAIL, "the service lists '%s', which does not begin with '%s'", entry->key,
                                 prefix);
        if (i > 0 && entry->kind != STORE_FOLDER && entry[-1].kind != STORE_FOLDER &&
            strcmp(entry->key, entry[-1].key) == 0)
            return act_error_set(err, ACT_FAIL, "the service lists '%s' twice", entry->key);
    }
    return 0;
}

static void move_entry(struct store_page *to, struct store_entry *from)
{
    *store_page_add(to) = *from;
    *from = (struct store_entry){.mode = -1};
}

enum fate { EMIT, HOLD, LEAVE_OUT };

/* Decides what becomes of a folder. `next` is the entry behind it on this page, or NULL; if that has the same key,
 * as a second marker or with a delimiter, it learns the folder's mode. */
static enum fate judge_folder(const struct azure_list *list, const struct store_call *call, struct store_entry *folder,
                              struct store_entry *next)
{
    const char *last = list->last_found ? list->last_found : list->last;

    if (strcmp(folder->key, call->key) == 0) /* a folder is no entry of its own listing */
        return LEAVE_OUT;
    if (next && strcmp(next->key, folder->key) == 0) {
        next->mode = next->mode < 0 ? folder->mode : next->mode;
        next->etag[0] = '\0'; /* they go together */
        return LEAVE_OUT;
    }
    folder->filled = next && act_starts_with(next->key, folder->key);
    if (folder->filled)
        return call->list.whole ? EMIT : LEAVE_OUT;
    return !list->next || (next && strcmp(next->key, last) <= 0) ? EMIT : HOLD;
}

/* Puts what was held back and what was found in order. */
static int sort_found(struct azure_list *list, const char *prefix, struct act_error *err)
{
    struct store_page *found = &list->found;

    for (size_t i = 0; i < list->held.n; i++)
        move_entry(found, &list->held.v[i]);
    store_page_release(&list->held);
    if (found->n)
        qsort(found->v, found->n, sizeof(*found->v), listed_by_key);
    return check_listed_names(found, prefix, err);
}

/* Moves what was found to the call's page. */
static void fill_page(struct azure_op *op)
{
    struct azure_list *list = op->list;
    struct store_page *found = &list->found;
    const struct store_call *call = op->call;
    const char *last = list->last_found ? list->last_found : list->last;

    for (size_t i = 0; i < found->n; i++) {
        struct store_entry *entry = &found->v[i];
        enum fate fate = EMIT;
        if (entry->kind == STORE_FOLDER)
            fate = judge_folder(list, call, entry, i + 1 < found->n ? entry + 1 : NULL);
        if (fate == EMIT && entry->kind == STORE_FOLDER && call->list.delimiter)
            entry->kind = STORE_PREFIX;
        if (fate != LEAVE_OUT)
            move_entry(fate == EMIT ? &op->call->list.page : &list->held, entry);
    }
    if (list->next)
        op->call->list.page.next = write_marker(list, last);
}

/* ---- the request */

char *azure_page_query(const struct store_call *call, const char *marker)
{
    int max = call->list.max > 0 && call->list.max < STORE_PAGE_MAX ? call->list.max : STORE_PAGE_MAX;
    struct act_buf query = {0};

    act_buf_addf(&query, "restype=container&comp=list&include=metadata%s&maxresults=%d",
                 call->list.leftovers ? ",uncommittedblobs" : "", max);
    if (call->list.delimiter)
        act_buf_adds(&query, "&delimiter=%2F");
    if (*call->key) {
        ACT_AUTOFREE char *prefix = http_encode(call->key, false);
        act_buf_addf(&query, "&prefix=%s", prefix);
    }
    if (*marker) {
        ACT_AUTOFREE char *encoded = http_encode(marker, false);
        act_buf_addf(&query, "&marker=%s", encoded);
    }
    return act_buf_steal(&query);
}

void azure_request_page(struct azure_op *op, const char *query)
{
    azure_request(op, "GET", NULL, query);
    op->http.max_body = MAX_PAGE_BYTES;
}

void azure_build_list(struct azure_op *op)
{
    azure_request_page(op, op->list->query);
}

static void list_work(void *arg)
{
    struct azure_op *op = arg;
    struct act_error *err = &op->call->error;

    op->call->rc = parse_answer(op, err);
    if (op->call->rc == 0)
        op->call->rc = sort_found(op->list, op->call->key, err);
    if (op->call->rc)
        act_error_prefix(err, "%s: unusable answer", azure_what(op));
    else
        fill_page(op);
}

static void list_work_done(void *arg)
{
    struct azure_op *op = arg;

    if (op->call->rc == 0 && op->call->list.leftovers)
        azure_keep_leftovers(op);
    else
        azure_finish(op, op->call->rc);
}

void azure_answer_list(struct azure_op *op)
{
    if (op->http.status == 200) {
        azure_ahead_start(op);
        engine_work(http_engine(op->azure->store.http), list_work, list_work_done, op);
    } else {
        azure_finish_failed(op);
    }
}

void azure_list(struct azure_op *op)
{
    op->list = act_calloc(1, sizeof(*op->list));
    op->release = release_list;
    op->list->entry.mode = -1;
    read_marker(op->list, op->call->list.marker);
    op->list->query = azure_page_query(op->call, op->list->service_marker);
    op->phase = AZURE_LIST;
    if (!azure_ahead_take(op, op->list->query))
        azure_send(op);
}
