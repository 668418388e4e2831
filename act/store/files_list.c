/* files_list.c - lists a share: folder by folder, in byte order of the whole keys.
 *
 * Source: learn.microsoft.com/rest/api/storageservices/list-directories-and-files.
 *
 * The service lists one folder at a time, in an order of its own, and tells no metadata. So each folder is listed to
 * its end and sorted, those behind it are asked for ahead, and what is on a page is looked at, many at once. A walk
 * rests between two pages in the store; another process, or one that asks from another place, begins anew, and leaves
 * out the folders that lie before the marker: the last key.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "store/files.h"

enum {
    AHEAD = 16,     /* folders that are listed at once */
    LOOKS = 64,     /* entries that are looked at, at once */
    MAX_RESTING = 8 /* walks between two pages */
};

#define MAX_PAGE_BYTES ((size_t)64 << 20)
#define ENTRIES        "/EnumerationResults/Entries"

/* ---- the response */

struct page_reader {
    const char *dir;
    struct store_page *out;
    struct store_entry entry;
    char *name;
    bool encoded, has_size, complete;
};

static int page_start_element(void *arg, const char *path, xml_attributes attributes, struct act_error *err)
{
    struct page_reader *reader = arg;

    (void)err;
    if (strcmp(path, ENTRIES "/File") == 0 || strcmp(path, ENTRIES "/Directory") == 0) {
        store_entry_release(&reader->entry);
        free(reader->name);
        reader->name = NULL;
        reader->has_size = reader->encoded = false;
    } else if (act_ends_with(path, "/Name")) {
        reader->encoded = azure_is_encoded(attributes);
    }
    return 0;
}

static int end_entry(struct page_reader *reader, bool is_folder, struct act_error *err)
{
    const char *name = reader->name;

    if (!name || (!is_folder && !reader->has_size))
        return act_error_set(err, ACT_FAIL, "an entry without a %s", name ? "size" : "name");
    if (strchr(name, '/') || strcmp(name, ".") == 0 || strcmp(name, "..") == 0)
        return act_error_set(err, ACT_FAIL, "the name '%s'", name);
    reader->entry.kind = is_folder ? STORE_PREFIX : STORE_FILE;
    reader->entry.key = act_sprintf("%s%s%s", reader->dir, name, is_folder ? "/" : "");
    *store_page_add(reader->out) = reader->entry;
    reader->entry = (struct store_entry){.mode = -1};
    return 0;
}

static int page_end_element(void *arg, const char *path, const char *text, struct act_error *err)
{
    struct page_reader *reader = arg;

    if (strcmp(path, ENTRIES "/File/Name") == 0 || strcmp(path, ENTRIES "/Directory/Name") == 0)
        return azure_take_name(&reader->name, text, reader->encoded, err);
    if (strcmp(path, ENTRIES "/File/Properties/Content-Length") == 0) {
        reader->has_size = true;
        return azure_take_size(&reader->entry.size, text, err);
    }
    if (strcmp(path, ENTRIES "/File") == 0)
        return end_entry(reader, false, err);
    if (strcmp(path, ENTRIES "/Directory") == 0)
        return end_entry(reader, true, err);
    if (strcmp(path, ENTRIES "/File/Properties/Last-Modified") == 0)
        azure_take_time(&reader->entry, text);
    if (strcmp(path, "/EnumerationResults/NextMarker") == 0 && *text)
        act_str_replace(&reader->out->next, text);
    reader->complete |= strcmp(path, ENTRIES) == 0;
    return 0;
}

int files_read_page(const struct act_buf *text, const char *dir, struct store_page *out, struct act_error *err)
{
    static const struct xml_handler handler = {.start = page_start_element, .end = page_end_element};
    struct page_reader reader = {.dir = dir, .out = out, .entry.mode = -1};
    int rc = xml_parse(text->data ? text->data : "", text->len, "listing", &handler, &reader, err);

    if (rc == 0 && !reader.complete)
        rc = act_error_set(err, ACT_FAIL, "the answer is not a listing");
    store_entry_release(&reader.entry);
    free(reader.name);
    return rc;
}

/* ---- one folder */

struct dir {
    struct files_list *walk;
    char *key;              /* with its slash; "": the share */
    char *filter;           /* what the names begin with */
    struct store_page page; /* as it comes, then sorted */
    size_t checked;         /* so many of its names are known to differ */
    struct azure_pages pages;
    struct dir **children; /* one for each entry: folders that were asked for */
    size_t at;             /* the next entry */
    bool ended;            /* nothing more of it comes; call.rc says how it ended */
    bool announced;        /* its own entry was given, or is not wanted */
    struct store_call call;
    struct dir *parent;
};

/* The way through one listing, which may have many pages. */
struct files_list {
    struct azure *azure;
    enum {
        WALK_RESTS,     /* nobody wants a page */
        WALK_FILLS,     /* the page of an op */
        WALK_LOOKS,     /* at what is on it */
        WALK_ABANDONED, /* it goes when nothing is pending */
    } state;
    char *key, *after; /* the key that the page begins behind; NULL: from the start */
    bool delimiter, whole, leftovers;
    struct dir *top; /* where it is; NULL: at its end */
    struct dir *root;
    size_t pending;           /* folders that are asked for */
    struct azure_op *op;      /* WALK_FILLS, WALK_LOOKS */
    struct azure_looks looks; /* WALK_LOOKS */
    struct files_list *next;
};

static void files_list_go_on(struct files_list *walk);

static void dir_free(struct dir *dir)
{
    if (!dir)
        return;
    for (size_t i = 0; dir->children && i < dir->page.n; i++)
        dir_free(dir->children[i]);
    free(dir->children);
    store_page_release(&dir->page);
    store_call_release(&dir->call);
    free(dir->key);
    free(dir->filter);
    free(dir);
}

static void free_walk(struct files_list *walk)
{
    dir_free(walk->root);
    free(walk->key);
    free(walk->after);
    free(walk);
}

void files_abandon_walk(struct files_list *walk)
{
    walk->state = WALK_ABANDONED;
    if (walk->pending == 0)
        free_walk(walk);
}

static void dir_ended(struct store_call *call)
{
    struct dir *dir = call->arg;
    struct files_list *walk = dir->walk;

    dir->ended = true;
    walk->pending--;
    walk->azure->files->listing--;
    walk->azure->files->idle = walk->azure->files->listing == 0;
    if (dir->page.n > 0)
        dir->children = act_calloc(dir->page.n, sizeof(struct dir *));
    if (walk->state == WALK_ABANDONED && walk->pending == 0)
        free_walk(walk);
    else if (walk->state == WALK_FILLS)
        files_list_go_on(walk);
}

static struct dir *dir_of(const struct azure_op *op)
{
    return op->call->arg;
}

static void build_dir(struct azure_op *op)
{
    const struct dir *dir = dir_of(op);
    struct act_buf query = {0};

    act_buf_addf(&query, "comp=list&include=Timestamps&maxresults=%d", STORE_PAGE_MAX);
    if (*dir->filter) {
        ACT_AUTOFREE char *prefix = http_encode(dir->filter, false);
        act_buf_addf(&query, "&prefix=%s", prefix);
    }
    if (dir->page.next) {
        ACT_AUTOFREE char *marker = http_encode(dir->page.next, false);
        act_buf_addf(&query, "&marker=%s", marker);
    }
    files_request_folder(op, "GET", dir->key, query.data);
    http_header_set(&op->http.headers, "x-ms-file-extended-info", "true");
    op->http.max_body = MAX_PAGE_BYTES;
    act_buf_release(&query);
}

/* Sorts the names and refuses one that comes twice, at the end and whenever there are twice as many as before: a
 * listing that leads back to its own beginning would never end. */
static int dir_check_names(struct dir *dir, struct act_error *err)
{
    struct store_page *page = &dir->page;

    if (page->n == 0 || (page->next && page->n / 2 < dir->checked))
        return 0;
    qsort(page->v, page->n, sizeof(*page->v), store_by_key);
    for (size_t i = 1; i < page->n; i++)
        if (strcmp(page->v[i - 1].key, page->v[i].key) == 0)
            return act_error_set(err, ACT_FAIL, "the service gives '%s' twice", page->v[i].key);
    dir->checked = page->n;
    return 0;
}

static int dir_take_page(struct dir *dir, const struct act_buf *text, struct act_error *err)
{
    ACT_AUTOFREE char *marker = dir->page.next;
    size_t before = dir->page.n;
    int rc;

    dir->page.next = NULL;
    rc = files_read_page(text, dir->key, &dir->page, err);
    if (rc == 0)
        rc = azure_check_page(marker, dir->page.next, dir->page.n - before, &dir->pages, err);
    return rc ? rc : dir_check_names(dir, err);
}

static void read_dir(void *arg)
{
    struct azure_op *op = arg;

    op->call->rc = dir_take_page(dir_of(op), &op->http.body_text, &op->call->error);
    if (op->call->rc)
        act_error_prefix(&op->call->error, "%s: unusable answer", azure_what(op));
}

static void dir_read(void *arg)
{
    struct azure_op *op = arg;

    if (op->call->rc || !dir_of(op)->page.next)
        azure_finish(op, op->call->rc);
    else
        azure_send(op);
}

/* A folder that is not there, or not any more, contains nothing. */
static void end_missing(struct azure_op *op)
{
    store_page_release(&dir_of(op)->page);
    azure_finish(op, 0);
}

static void answer_dir(struct azure_op *op)
{
    if (azure_succeeded(op))
        engine_work(http_engine(op->azure->store.http), read_dir, dir_read, op);
    else if (files_is_missing(op))
        end_missing(op);
    else
        azure_finish_failed(op);
}

static struct dir *ask_for_dir(struct files_list *walk, const char *key, const char *filter)
{
    struct dir *dir = act_calloc(1, sizeof(*dir));

    dir->walk = walk;
    dir->key = act_strdup(key);
    dir->filter = act_strdup(filter);
    dir->call = (struct store_call){.op = STORE_LIST, .key = dir->key, .done = dir_ended, .arg = dir};
    walk->pending++;
    walk->azure->files->listing++;
    walk->azure->files->idle = false;
    azure_send_next(azure_new_op(&walk->azure->store, &dir->call), build_dir, answer_dir);
    return dir;
}

/* ---- the way through them */

/* Returns whether the page begins behind this entry and, if it is a folder, behind all that is in it. */
static bool is_passed(const struct files_list *walk, const struct store_entry *entry)
{
    bool is_folder = entry->kind == STORE_PREFIX;

    if (!walk->after || strcmp(entry->key, walk->after) > 0)
        return false;
    return !is_folder || walk->delimiter || !act_starts_with(walk->after, entry->key);
}

/* Returns whether the entry is asked for: the service's filter takes small letters for capitals. */
static bool dir_wants(const struct dir *dir, const struct store_entry *entry)
{
    return !is_passed(dir->walk, entry) && act_starts_with(entry->key + strlen(dir->key), dir->filter);
}

/* Returns whether the entry is shown. A journal goes with its file, which stands before it. */
static bool dir_shows(const struct dir *dir, const struct store_entry *entry)
{
    bool is_temp = entry->kind == STORE_FILE && files_is_temp(entry->key);
    bool goes_along = entry > dir->page.v && files_is_journal(entry->key) && files_is_temp(entry[-1].key) &&
                      act_starts_with(entry->key, entry[-1].key);

    return is_temp == dir->walk->leftovers && !goes_along;
}

static void ask_for_child(struct dir *dir, size_t i)
{
    struct files_list *walk = dir->walk;
    const char *key = dir->page.v[i].key;

    dir->children[i] = ask_for_dir(walk, key, "");
    dir->children[i]->parent = dir;
    dir->children[i]->announced = walk->after && act_starts_with(walk->after, key);
}

static void ask_ahead(struct dir *dir)
{
    for (size_t i = dir->at; i < dir->page.n && (i == dir->at || dir->walk->pending < AHEAD); i++)
        if (dir->page.v[i].kind == STORE_PREFIX && !dir->children[i] && dir_wants(dir, &dir->page.v[i]))
            ask_for_child(dir, i);
}

static void walk_emit(struct files_list *walk, const struct store_entry *entry)
{
    struct store_entry *out = store_page_add(&walk->op->call->list.page);

    *out = *entry;
    out->key = act_strdup(entry->key);
}

static bool has_shown(const struct dir *dir)
{
    for (size_t i = 0; i < dir->page.n; i++)
        if (dir->page.v[i].kind == STORE_PREFIX || !files_is_temp(dir->page.v[i].key))
            return true;
    return false;
}

/* Gives the entry of a folder that is empty, or of any folder when the whole is asked for. */
static void announce(struct dir *dir)
{
    bool filled = has_shown(dir);
    struct store_entry entry = {.key = dir->key, .kind = STORE_FOLDER, .mode = -1, .filled = filled};

    dir->announced = true;
    if (!dir->walk->leftovers && (!filled || dir->walk->whole))
        walk_emit(dir->walk, &entry);
}

static void dir_leave(struct files_list *walk)
{
    struct dir *dir = walk->top;

    walk->top = dir->parent;
    if (!walk->top)
        return;
    walk->top->children[walk->top->at - 1] = NULL;
    dir_free(dir);
}

static void dir_take_entry(struct dir *dir)
{
    struct files_list *walk = dir->walk;
    struct store_entry *entry = &dir->page.v[dir->at];
    bool wanted = dir_wants(dir, entry);

    if (wanted && entry->kind == STORE_PREFIX && !walk->delimiter) {
        ask_ahead(dir);
        walk->top = dir->children[dir->at];
    } else if (wanted && dir_shows(dir, entry)) {
        walk_emit(walk, entry);
    }
    dir->at++;
}

static void look_at_page(struct files_list *walk);

static void page_ended(struct files_list *walk, int rc)
{
    struct azure_op *op = walk->op;
    struct store_page *page = &op->call->list.page;

    walk->state = WALK_RESTS;
    if (rc == 0 && walk->top && walk->after)
        page->next = act_strdup(walk->after);
    if (rc == 0 && walk->top) {
        walk->next = walk->azure->files->walks;
        walk->azure->files->walks = walk;
    } else {
        files_abandon_walk(walk);
    }
    azure_finish(op, rc);
}

/* Fills the page as far as the folders on the way are known. */
static void files_list_go_on(struct files_list *walk)
{
    struct store_call *call = walk->op->call;
    size_t max = call->list.max > 0 && call->list.max < STORE_PAGE_MAX ? (size_t)call->list.max : STORE_PAGE_MAX;

    while (walk->top && call->list.page.n < max) {
        struct dir *dir = walk->top;
        if (!dir->ended)
            return;
        if (dir->call.rc) {
            call->error = dir->call.error;
            page_ended(walk, dir->call.rc);
            return;
        }
        if (!dir->announced)
            announce(dir);
        else if (dir->at < dir->page.n)
            dir_take_entry(dir);
        else
            dir_leave(walk);
    }
    if (call->list.page.n > 0)
        act_str_replace(&walk->after, call->list.page.v[call->list.page.n - 1].key);
    look_at_page(walk);
}

/* ---- looking at what is on the page */

static void entry_looked_at(struct store_call *call)
{
    struct azure_look *look = call->arg;
    struct store_entry *entry = look->entry;

    look->drop = call->rc == -ACT_NOT_FOUND && call->error.fact != ACT_FACT_CONTAINER_MISSING;
    if (call->rc == 0) {
        bool filled = entry->filled;
        store_entry_release(entry);
        *entry = call->entry;
        entry->filled = filled;
        call->entry = (struct store_entry){.mode = -1};
    }
    azure_look_ended(look, call->rc && !look->drop);
}

bool files_is_listed(const struct store_call *call)
{
    return call->done == entry_looked_at;
}

static bool has_more_to_tell(const struct store_entry *entry)
{
    return entry->kind != STORE_PREFIX;
}

static void looks_ended(struct azure_looks *looks)
{
    struct files_list *walk = looks->arg;

    if (looks->error.code)
        walk->op->call->error = looks->error;
    page_ended(walk, -(int)looks->error.code);
}

static void look_at_page(struct files_list *walk)
{
    if (walk->leftovers) {
        page_ended(walk, 0);
        return;
    }
    walk->state = WALK_LOOKS;
    walk->looks = (struct azure_looks){.store = &walk->azure->store,
                                       .page = &walk->op->call->list.page,
                                       .most = LOOKS,
                                       .wants = has_more_to_tell,
                                       .looked = entry_looked_at,
                                       .ended = looks_ended,
                                       .arg = walk};
    azure_looks_start(&walk->looks);
}

/* ---- the walk */

static struct files_list *new_walk(struct azure_op *op)
{
    const struct store_call *call = op->call;
    struct files_list *walk = act_calloc(1, sizeof(*walk));
    ACT_AUTOFREE char *dir = act_ends_with(call->key, "/") ? act_strdup(call->key) : files_parent(call->key);

    walk->azure = op->azure;
    walk->key = act_strdup(call->key);
    walk->after = act_strdup(call->list.marker);
    walk->delimiter = call->list.delimiter;
    walk->whole = call->list.whole;
    walk->leftovers = call->list.leftovers;
    walk->top = walk->root = ask_for_dir(walk, dir, call->key + strlen(dir));
    walk->root->announced = true;
    return walk;
}

static bool goes_on_with(const struct files_list *walk, const struct store_call *call)
{
    return strcmp(walk->key, call->key) == 0 && act_streq(walk->after, call->list.marker) &&
           walk->delimiter == call->list.delimiter && walk->whole == call->list.whole &&
           walk->leftovers == call->list.leftovers;
}

/* Returns the walk that rests where the call wants to go on; NULL: none does. Lets walks go that nobody came back
 * to. */
static struct files_list *take_resting(struct azure_op *op)
{
    struct files_list **at = &op->azure->files->walks, *found = NULL;

    for (size_t n = 0; *at; n++) {
        struct files_list *walk = *at;
        bool fits = !found && goes_on_with(walk, op->call);
        if (!fits && n < MAX_RESTING) {
            at = &walk->next;
            continue;
        }
        *at = walk->next;
        walk->next = NULL;
        if (fits)
            found = walk;
        else
            files_abandon_walk(walk);
    }
    return found;
}

void files_give_page(struct azure_op *op)
{
    struct files_list *walk = op->file->walk;

    op->file->walk = NULL;
    walk->op = op;
    walk->state = WALK_FILLS;
    files_list_go_on(walk);
}

/* Refuses a prefix that the service would take for another one, as it begins with the path of a folder. */
static int check_prefix(struct azure_op *op)
{
    const char *prefix = op->call->key, *slash = strrchr(prefix, '/');
    ACT_AUTOFREE char *way = slash ? act_strndup(prefix, (size_t)(slash - prefix) + 1) : act_strdup("");
    const char *problem = files_alias_problem(way);

    return problem ? act_error_set(&op->call->error, ACT_FAIL, "%s: the name %s", azure_what(op), problem) : 0;
}

/* A new walk asks for its folder while the names on the way to that are looked at. */
void files_find_walk(struct azure_op *op)
{
    int rc = check_prefix(op);

    if (rc < 0) {
        azure_finish(op, rc);
        return;
    }
    op->file->walk = op->call->list.marker ? take_resting(op) : NULL;
    if (op->file->walk) {
        files_give_page(op);
        return;
    }
    op->file->walk = new_walk(op);
    files_next(op);
}

void files_free_walks(struct files *files, struct engine *engine)
{
    if (files->listing > 0)
        engine_run(engine, &files->idle);
    while (files->walks) {
        struct files_list *next = files->walks->next;
        free_walk(files->walks);
        files->walks = next;
    }
}
