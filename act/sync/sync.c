/* sync.c - decides on one pair of entries, and merges two listings into such pairs. */
#include "sync/sync.h"

#include <string.h>
#include <sys/stat.h>

struct side {
    char *prefix;
    struct store_page page;
    size_t next;  /* index of the next entry of the page */
    bool last;    /* no page follows */
    char *behind; /* the last key of the pages before */
};

struct sync {
    struct sync_options options;
    struct side sides[2];
    struct act_strv behind; /* names of the source so far below which there may be more than was listed, sorted */
};

/* ---- one object */

const char *sync_reason_text(enum sync_reason reason)
{
    static const char *const texts[] = {
        [SYNC_NO_REASON] = "", [SYNC_NEW] = "new",         [SYNC_KIND] = "kind", [SYNC_SIZE] = "size",
        [SYNC_TIME] = "time",  [SYNC_CONTENT] = "content", [SYNC_MODE] = "mode", [SYNC_UNKNOWN] = "nothing known",
    };

    return texts[reason];
}

#define SECOND_NS INT64_C(1000000000)

/* Guesses the resolution of a time from its zeros, as nanoseconds hardly ever end in zeros: whole seconds, exFAT's,
 * milliseconds, microseconds, Windows'. */
static int64_t grain_ns(int64_t ns)
{
    static const int64_t grains[] = {SECOND_NS, 10000000, 1000000, 1000, 100};

    for (size_t i = 0; i < sizeof(grains) / sizeof(grains[0]); i++)
        if (ns % grains[i] == 0)
            return grains[i];
    return 1;
}

static int64_t sync_cut(int64_t ns, int64_t grain)
{
    int64_t rest = ns % grain;

    return ns - (rest < 0 ? rest + grain : rest);
}

static bool same_time(int64_t a, int64_t b)
{
    int64_t grain = grain_ns(a) > grain_ns(b) ? grain_ns(a) : grain_ns(b);

    return sync_cut(a, grain) == sync_cut(b, grain);
}

int64_t sync_mtime_ns(const struct store_entry *entry)
{
    int64_t ns;

    if (entry->mtime_ns || __builtin_mul_overflow(entry->last_modified_s, SECOND_NS, &ns))
        return entry->mtime_ns;
    return ns;
}

bool sync_is_newer(const struct store_entry *from, const struct store_entry *to)
{
    int64_t source = sync_mtime_ns(from), copy = sync_mtime_ns(to);

    return source && copy && from->kind != STORE_FOLDER && to->kind != STORE_FOLDER && copy > source &&
           !same_time(copy, source);
}

bool sync_is_written_later(const struct store_entry *from, const struct store_entry *to)
{
    return from->last_modified_s && from->kind != STORE_FOLDER && to->kind != STORE_FOLDER &&
           to->last_modified_s > from->last_modified_s;
}

/* Tells whether the copy has the time of an original whose only time is when the store wrote it, in whole seconds. The
 * store may have written it twice in that second, so the copy must be younger. */
static bool written_behind(const struct store_entry *from, const struct store_entry *to)
{
    return !from->mtime_ns && to->mtime_ns && to->mtime_ns == sync_mtime_ns(from) &&
           to->last_modified_s > from->last_modified_s;
}

enum comparison { DIFFERENT, EQUAL, INCOMPARABLE };

static enum comparison compare_times(const struct store_entry *from, const struct store_entry *to)
{
    if (from->mtime_ns && to->mtime_ns)
        return same_time(from->mtime_ns, to->mtime_ns) ? EQUAL : DIFFERENT;
    return written_behind(from, to) ? EQUAL : INCOMPARABLE;
}

static enum comparison compare_sums(const struct store_entry *a, const struct store_entry *b)
{
    bool md5 = a->md5[0] && b->md5[0] && !a->grows && !b->grows; /* appending leaves the old MD5 there */
    bool crc64 = a->has_crc64 && b->has_crc64;

    if ((md5 && strcmp(a->md5, b->md5) != 0) || (crc64 && a->crc64 != b->crc64))
        return DIFFERENT;
    return md5 || crc64 || a->size == 0 ? EQUAL : INCOMPARABLE;
}

static bool knows_sum(const struct store_entry *entry)
{
    return entry->md5[0] || entry->has_crc64;
}

/* Compares two files, or links, of one size. */
static enum sync_reason compare_content(const struct store_entry *from, const struct store_entry *to, bool checksum)
{
    enum comparison sums = compare_sums(from, to), times = compare_times(from, to);

    if (sums == DIFFERENT)
        return SYNC_CONTENT;
    if (checksum)
        return sums == EQUAL ? SYNC_NO_REASON : SYNC_UNKNOWN;
    if (times == DIFFERENT)
        return SYNC_TIME;
    return times == EQUAL || sums == EQUAL ? SYNC_NO_REASON : SYNC_UNKNOWN;
}

static enum sync_reason why_different(const struct store_entry *from, const struct store_entry *to, bool checksum)
{
    if (to->kind != from->kind)
        return SYNC_KIND;
    if (to->size != from->size)
        return SYNC_SIZE;
    enum sync_reason reason = from->kind == STORE_FOLDER ? SYNC_NO_REASON : compare_content(from, to, checksum);
    bool modes = from->mode >= 0 && to->mode >= 0 && from->mode != to->mode;
    return modes && (reason == SYNC_NO_REASON || reason == SYNC_UNKNOWN) ? SYNC_MODE : reason;
}

enum sync_action sync_decide(const struct store_entry *from, const struct store_entry *to, bool checksum,
                             enum sync_reason *out_reason)
{
    enum sync_reason reason = to ? why_different(from, to, checksum) : SYNC_NEW;

    if (out_reason)
        *out_reason = reason;
    if (reason == SYNC_NO_REASON)
        return SYNC_SAME;
    return reason == SYNC_UNKNOWN && (checksum || knows_sum(from) || knows_sum(to)) ? SYNC_UNSURE : SYNC_COPY;
}

/* ---- modes */

/* Returns the bits that a copy may get; has: those of the existing object that it replaces. */
static unsigned allowed_bits(const struct sync_modes *modes, enum store_kind kind, unsigned has)
{
    if (!modes->stay_closed)
        return ~modes->umask | has;
    return S_IRWXU | has | (kind == STORE_FILE ? (has & 0444) >> 2 : 0);
}

int sync_mode(const struct sync_modes *modes, const struct store_entry *from, const struct store_entry *to)
{
    bool replaces = to && to->key && to->kind == from->kind && to->mode >= 0;
    unsigned mode = (unsigned)from->mode, has = replaces ? (unsigned)to->mode : 0;

    if (from->mode < 0)
        return -1;
    return (int)((mode | (has & modes->lost)) & (replaces ? allowed_bits(modes, from->kind, has) : ~modes->umask));
}

/* ---- the merge */

struct sync *sync_new(const struct sync_options *options)
{
    struct sync *s = act_calloc(1, sizeof(*s));

    s->options = *options;
    s->sides[SYNC_FROM].prefix = act_strdup(options->from_prefix);
    s->sides[SYNC_TO].prefix = act_strdup(options->to_prefix);
    return s;
}

/* Releases the entries that were not handed over, from "next" on. */
static void release_rest(struct side *side)
{
    for (size_t i = side->next; i < side->page.n; i++)
        store_entry_release(&side->page.v[i]);
    side->page.n = 0;
    store_page_release(&side->page);
    side->next = 0;
}

void sync_free(struct sync *s)
{
    if (!s)
        return;
    for (int i = 0; i < 2; i++) {
        release_rest(&s->sides[i]);
        free(s->sides[i].prefix);
        free(s->sides[i].behind);
    }
    act_strv_release(&s->behind);
    free(s);
}

void sync_item_release(struct sync_item *item)
{
    store_entry_release(&item->from);
    store_entry_release(&item->to);
}

static bool exhausted(const struct side *side)
{
    return side->next == side->page.n;
}

bool sync_wants(const struct sync *s, enum sync_side which)
{
    const struct side *side = &s->sides[which];

    return exhausted(side) && !side->last;
}

static const char *sync_rel_of(const struct side *side, const struct store_entry *entry)
{
    return entry->key + strlen(side->prefix);
}

static int check_order(struct side *side, const struct store_page *page, struct act_error *err)
{
    const char *before = side->behind;

    for (size_t i = 0; i < page->n; i++) {
        const char *key = page->v[i].key;
        if (!act_starts_with(key, side->prefix))
            return act_error_set(err, ACT_FAIL, "cannot compare: the listing of '%s' has '%s', which is not below it",
                                 side->prefix, key);
        if (before && strcmp(key, before) <= 0)
            return act_error_set(err, ACT_FAIL, "cannot compare: the listing has '%s' behind '%s', out of order", key,
                                 before);
        before = key;
    }
    if (page->n > 0) {
        char *last = act_strdup(before);
        free(side->behind);
        side->behind = last;
    }
    return 0;
}

int sync_feed(struct sync *s, enum sync_side which, struct store_page *page, bool last, struct act_error *err)
{
    struct side *side = &s->sides[which];
    int rc = check_order(side, page, err);

    if (rc < 0)
        return rc;
    release_rest(side);
    side->page = *page;
    side->last = last;
    *page = (struct store_page){0};
    return 0;
}

static struct store_entry *head_of(struct side *side)
{
    return exhausted(side) ? NULL : &side->page.v[side->next];
}

/* Moves the current entry out of the page. */
static struct store_entry sync_take_head(struct side *side)
{
    struct store_entry *head = head_of(side), entry = *head;

    *head = (struct store_entry){.mode = -1};
    side->next++;
    return entry;
}

/* Returns which object comes next: negative: the source's, positive: the destination's, 0: both have it. */
static int sync_order_of(struct sync *s)
{
    struct side *from = &s->sides[SYNC_FROM], *to = &s->sides[SYNC_TO];

    if (exhausted(from) || exhausted(to))
        return exhausted(from) - exhausted(to);
    return strcmp(sync_rel_of(from, head_of(from)), sync_rel_of(to, head_of(to)));
}

static bool is_unreadable(const struct store_entry *entry)
{
    return entry->key && entry->kind == STORE_UNREADABLE;
}

static bool sync_takes(const struct sync *s, const char *rel)
{
    return !s->options.takes || s->options.takes(s->options.arg, rel, act_ends_with(rel, "/"));
}

/* ---- names below which there may be more than was listed */

/* Compares the first len bytes of a key, a whole name, with a link's. */
struct stem {
    const char *rel;
    size_t len;
};

static int compare_stem(const void *a, const void *b)
{
    const struct stem *stem = a;
    const char *name = *(const char *const *)b;
    int order = strncmp(stem->rel, name, stem->len);

    return order ? order : -(name[stem->len] != '\0');
}

/* Remembers a name; names come in order, except that "a-" comes before the folder "a/". */
static void protect(struct sync *s, const char *rel)
{
    size_t at = s->behind.n, len = strlen(rel);

    act_strv_take(&s->behind, act_strndup(rel, len - (len > 0 && rel[len - 1] == '/')));
    char **v = s->behind.v, *name = v[at];
    for (; at > 0 && strcmp(v[at - 1], name) > 0; at--)
        v[at] = v[at - 1];
    v[at] = name;
}

static bool is_protected(const struct sync *s, const char *rel)
{
    if (s->behind.n == 0)
        return false;
    for (const char *slash = strchr(rel, '/'); slash; slash = strchr(slash + 1, '/')) {
        struct stem stem = {.rel = rel, .len = (size_t)(slash - rel)};
        if (bsearch(&stem, s->behind.v, s->behind.n, sizeof(s->behind.v[0]), compare_stem))
            return true;
    }
    return false;
}

/* Tells whether a folder may have more than was listed. The contents of one behind a link are known, unless there are
 * none: a disk may not be mounted there. */
static bool hides_more(const struct store_entry *from)
{
    return from->key && (from->kind == STORE_UNREADABLE || (from->leads_out && !from->filled));
}

/* Takes the next pair, or one of it. False: a page is needed, or both sides are at their end. */
static bool next_pair(struct sync *s, struct sync_item *out)
{
    struct side *from = &s->sides[SYNC_FROM], *to = &s->sides[SYNC_TO];

    if (sync_wants(s, SYNC_FROM) || sync_wants(s, SYNC_TO) || (exhausted(from) && exhausted(to)))
        return false;
    int order = sync_order_of(s);
    *out = (struct sync_item){0};
    if (order <= 0)
        out->from = sync_take_head(from);
    if (order >= 0)
        out->to = sync_take_head(to);
    out->rel = order <= 0 ? sync_rel_of(from, &out->from) : sync_rel_of(to, &out->to);
    if (hides_more(&out->from))
        protect(s, out->rel);
    out->is_protected = !out->from.key && is_protected(s, out->rel);
    return true;
}

/* Returns the next entry of the side if it lies in the folder, else NULL. */
static const struct store_entry *sync_below(struct side *side, const char *folder)
{
    const struct store_entry *head = head_of(side);

    return head && act_starts_with(sync_rel_of(side, head), folder) ? head : NULL;
}

/* Tells whether an empty folder of the source exists already: it does if it has contents at the destination that nobody
 * may delete. */
static bool sync_is_there(struct sync *s, const struct sync_item *item)
{
    struct side *to = &s->sides[SYNC_TO];
    const struct store_entry *head = sync_below(to, item->rel);

    return item->to.key || item->from.filled || (head && !(s->options.extras && sync_takes(s, sync_rel_of(to, head))));
}

/* Decides on the mode of a folder that both sides have, or will have through its contents. */
static void decide_mode(const struct sync *s, struct sync_item *item)
{
    int there = item->to.key && item->to.mode >= 0 ? item->to.mode : s->options.folder_mode;
    bool same = item->from.mode < 0 || !there || item->from.mode == there;

    item->action = same ? SYNC_SAME : SYNC_COPY;
    item->reason = same ? SYNC_NO_REASON : SYNC_MODE;
}

static void decide_action(struct sync *s, struct sync_item *item)
{
    bool folder = item->from.kind == STORE_FOLDER && (!item->to.key || item->to.kind == STORE_FOLDER);

    item->from.mode = sync_mode(&s->options.modes, &item->from, &item->to);
    if (is_unreadable(&item->from) || is_unreadable(&item->to))
        item->action = SYNC_UNREADABLE;
    else if (!item->from.key)
        item->action = SYNC_EXTRA;
    else if (folder && sync_is_there(s, item))
        decide_mode(s, item);
    else
        item->action = sync_decide(&item->from, item->to.key ? &item->to : NULL, s->options.checksum, &item->reason);
}

/* Tells whether the caller wants it. An empty folder of the destination that has contents at the source is not
 * extra. */
static bool takes_part(struct sync *s, const struct sync_item *item)
{
    const struct store_entry *entry = item->from.key ? &item->from : &item->to;

    if (!item->from.key &&
        (!s->options.extras || (entry->kind == STORE_FOLDER && sync_below(&s->sides[SYNC_FROM], item->rel))))
        return false;
    if (is_unreadable(entry) && act_ends_with(item->rel, "/"))
        return !s->options.enters || s->options.enters(s->options.arg, item->rel);
    return sync_takes(s, item->rel);
}

bool sync_next(struct sync *s, struct sync_item *out)
{
    while (next_pair(s, out)) {
        if (takes_part(s, out)) {
            decide_action(s, out);
            return true;
        }
        sync_item_release(out);
    }
    return false;
}

bool sync_finished(const struct sync *s)
{
    const struct side *from = &s->sides[SYNC_FROM], *to = &s->sides[SYNC_TO];

    return exhausted(from) && from->last && (!s->options.extras || (exhausted(to) && to->last));
}
