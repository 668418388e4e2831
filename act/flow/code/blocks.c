/* blocks.c - stores a large package in blocks that are named by their content.
 *
 * A block that the current object has already, under the name that its bytes and their number give it, is named
 * again in the new block list and not sent. Blob Storage reuses blocks within one object only, so:
 *
 *   A. code_path has some of our blocks (it holds the last package, or what is left of an interrupted upload):
 *      the others are sent to code_path, the list is committed there with If-Match, and code_path is then copied
 *      to <sha256>.zip inside the store, on the condition that it still has the ETag of our commit.
 *   B. It has none: all blocks go to <sha256>.zip, and the caller copies that to code_path. The service copies
 *      the block list, too, so the next package finds its blocks at code_path.
 *
 * A kill at any point leaves the old or the new, never a mix. Blocks that are sent change nothing until they are
 * committed. A commit replaces an object at once, by a list that names every byte by its content, so each object
 * is the old or the new package, whole; if another process replaced it since its ETag was read, the commit fails
 * and nothing has happened. After the commit at code_path and before the pointer is written, the pointer's ETag
 * no longer fits, and readers take code_path by its own content: the new package. <sha256>.zip is made from that
 * very commit or not at all. Run again, A finds every block in place and only commits, copies and writes the
 * pointer.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/crc64.h"
#include "base/file.h"
#include "config/config.h"
#include "engine/engine.h"
#include "flow/code/code_internal.h"
#include "flow/flow_internal.h"

enum { AT_ONCE = 8, PROGRESS_MS = 200 };

#define ONE_PUT UINT64_C(8 << 20) /* what goes in one request is not cut */

_Static_assert(PACKAGE_BLOCK_ID == STORE_BLOCK_ID, "a block of a package is a block of an object");

struct upload {
    struct flow *flow;
    struct store *store;
    struct flow_init *io;
    const char *key; /* where the blocks go */
    char etag[STORE_ETAG];
    bool there;                 /* there is an object at key */
    struct store_block *blocks; /* of the package; committed: the object has it, or will when we commit */
    int fd;
    size_t next; /* the next block to be looked at */
    size_t under_way;
    struct transfer_progress progress;
    int64_t shown_ms;
    bool is_over;
    int rc;
    struct act_error error;
};

struct part {
    struct upload *upload;
    const struct package_block *range;
    struct store_call call;
    char *data;
    int errnum;
    int64_t moved_bytes;
};

bool flow_has_blocks(const struct store *store, const struct package_summary *package)
{
    return store_traits(store)->takes_block_ids && package->bytes > ONE_PUT && package->n_blocks <= STORE_MAX_BLOCKS;
}

/* Names */

static int blocks_by_id(const void *a, const void *b)
{
    const struct store_block *x = a, *y = b;
    int order = memcmp(x->id, y->id, STORE_BLOCK_ID);

    return order ? order : (x->len > y->len) - (x->len < y->len);
}

struct named {
    const uint8_t *id;
    size_t i;
};

static int by_block_id(const void *a, const void *b)
{
    const struct named *x = a, *y = b;
    int order = memcmp(x->id, y->id, STORE_BLOCK_ID);

    return order ? order : (x->i > y->i) - (x->i < y->i);
}

/* The name of the n-th block with the same bytes: whether a list may name a block twice is not documented. */
static void rename_repeated(uint8_t id[STORE_BLOCK_ID], uint64_t n)
{
    struct act_sha256 h;

    act_sha256_init(&h);
    act_sha256_add(&h, id, STORE_BLOCK_ID);
    act_sha256_add(&h, &n, sizeof(n));
    act_sha256_bytes(&h, id, STORE_BLOCK_ID);
}

static struct store_block *name_blocks(const struct package_summary *package)
{
    struct store_block *blocks = act_calloc(package->n_blocks, sizeof(*blocks));
    ACT_AUTOFREE struct named *sorted = act_calloc(package->n_blocks, sizeof(*sorted));
    uint64_t repeated = 0;

    for (size_t i = 0; i < package->n_blocks; i++) {
        blocks[i].len = package->blocks[i].len;
        memcpy(blocks[i].id, package->blocks[i].id, STORE_BLOCK_ID);
        sorted[i] = (struct named){.id = package->blocks[i].id, .i = i};
    }
    qsort(sorted, package->n_blocks, sizeof(*sorted), by_block_id);
    for (size_t i = 1; i < package->n_blocks; i++) {
        bool same = memcmp(sorted[i].id, sorted[i - 1].id, STORE_BLOCK_ID) == 0;
        repeated = same ? repeated + 1 : 0;
        if (repeated)
            rename_repeated(blocks[sorted[i].i].id, repeated);
    }
    return blocks;
}

/* The blocks that the store has */

/* Marks those of our blocks that the object at key has, or that wait there. Returns how many, or an error. */
static int64_t find_ours(struct upload *u, const char *key, struct act_error *err)
{
    ACT_AUTO(store_call) call = {.op = STORE_BLOCKS, .key = key};
    int rc = store_do(u->store, &call, err);
    int64_t n = 0;

    if (rc < 0)
        return rc;
    if (call.blocks.n_found > 0)
        qsort(call.blocks.found, call.blocks.n_found, sizeof(*call.blocks.found), blocks_by_id);
    for (size_t i = 0; i < u->io->package.n_blocks; i++) {
        struct store_block *block = &u->blocks[i];
        block->committed = call.blocks.n_found > 0 &&
                           bsearch(block, call.blocks.found, call.blocks.n_found, sizeof(*block), blocks_by_id);
        n += block->committed;
    }
    return n;
}

/* Sending */

static void send_more(struct upload *u);

static void end_part(struct part *part)
{
    struct upload *u = part->upload;

    u->under_way--;
    store_call_release(&part->call);
    free(part->data);
    free(part);
    send_more(u);
}

static void blocks_show_progress(struct upload *u)
{
    int64_t now = act_now_monotonic_ms();

    if (!u->io->uploading || now - u->shown_ms < PROGRESS_MS)
        return;
    u->shown_ms = now;
    u->io->uploading(u->io->arg, &u->progress);
}

static void blocks_moves(struct store_call *call, int64_t bytes)
{
    struct part *part = call->arg;

    part->moved_bytes += bytes;
    part->upload->progress.moving_bytes += bytes;
    blocks_show_progress(part->upload);
}

static void part_sent(struct store_call *call)
{
    struct part *part = call->arg;
    struct upload *u = part->upload;

    if (call->rc < 0 && u->rc == 0) {
        u->rc = call->rc;
        u->error = call->error;
    }
    u->progress.moving_bytes -= part->moved_bytes;
    u->progress.done_bytes += part->range->len;
    u->io->sent_bytes += part->range->len;
    blocks_show_progress(u);
    end_part(part);
}

static void blocks_read_part(void *arg)
{
    struct part *part = arg;
    const struct package_block *range = part->range;

    part->data = act_alloc(range->len);
    if (act_pread_all(part->upload->fd, part->data, range->len, (off_t)range->offset) != (ssize_t)range->len)
        part->errnum = errno ? errno : EIO;
}

static void part_read(void *arg)
{
    struct part *part = arg;
    struct upload *u = part->upload;

    if (part->errnum && u->rc == 0)
        u->rc = act_error_errno(&u->error, part->errnum, "cannot read the package '%s'", u->io->package.sha256);
    if (u->rc < 0) {
        end_part(part);
        return;
    }
    part->call.block.data.bytes = part->data;
    store_start(u->store, &part->call);
}

static void send_part(struct upload *u, size_t i)
{
    const struct package_block *range = &u->io->package.blocks[i];
    struct part *part = act_calloc(1, sizeof(*part));

    *part = (struct part){.upload = u,
                          .range = range,
                          .call = {.op = STORE_BLOCK,
                                   .key = u->key,
                                   .block = {.id = u->blocks[i].id,
                                             .offset = range->offset,
                                             .data = {.len = range->len, .crc64 = &range->crc64}},
                                   .moves = blocks_moves,
                                   .done = part_sent,
                                   .arg = part}};
    u->under_way++;
    engine_work(flow_engine(u->flow), blocks_read_part, part_read, part);
}

static void send_more(struct upload *u)
{
    const struct package_summary *package = &u->io->package;
    size_t window = (size_t)store_window(u->store);

    while (u->rc == 0 && u->next < package->n_blocks && u->under_way < AT_ONCE && u->under_way < window) {
        if (!u->blocks[u->next].committed)
            send_part(u, u->next);
        u->next++;
    }
    u->is_over = u->under_way == 0 && (u->rc < 0 || u->next == package->n_blocks);
}

static int blocks_send_all(struct upload *u, struct act_error *err)
{
    const struct package_summary *package = &u->io->package;

    u->progress = (struct transfer_progress){.found_objects = 1, .listing_done = true};
    for (size_t i = 0; i < package->n_blocks; i++)
        u->progress.found_bytes += u->blocks[i].committed ? 0 : u->blocks[i].len;
    send_more(u);
    engine_run(flow_engine(u->flow), &u->is_over);
    if (u->rc < 0 && err)
        *err = u->error;
    return u->rc;
}

static int blocks_commit(struct upload *u, struct act_error *err)
{
    const struct package_summary *package = &u->io->package;
    uint64_t crc64 = 0;

    for (size_t i = 0; i < package->n_blocks; i++)
        crc64 = act_crc64_combine(crc64, package->blocks[i].crc64, package->blocks[i].len);
    struct store_call call = {.op = STORE_COMMIT,
                              .key = u->key,
                              .commit = {.blocks = u->blocks,
                                         .n_blocks = (uint32_t)package->n_blocks,
                                         .total = package->bytes,
                                         .condition = {.if_match = u->there ? u->etag : NULL, .if_absent = !u->there},
                                         .attr = {.mode = -1, .crc64 = &crc64}}};
    int rc = store_do(u->store, &call, err);
    memcpy(u->etag, call.entry.etag, STORE_ETAG);
    store_call_release(&call);
    return rc;
}

/* The ETag first: what the blocks were found in is what the commit replaces. */
static int blocks_look(struct upload *u, const char *key, struct act_error *err)
{
    uint64_t size;
    int rc = flow_exists(u->store, key, u->etag, &size, err);

    u->key = key;
    u->there = rc == 1;
    return rc < 0 ? rc : 0;
}

/* Chooses where the blocks go: to code_path if it has some of them (1), else to the package's own name (0). */
static int choose_target(struct upload *u, const char *own_key, struct act_error *err)
{
    const char *code_path = u->flow->config->code.path;
    int rc = blocks_look(u, code_path, err);
    int64_t n = rc < 0 ? rc : find_ours(u, code_path, err);

    if (n != 0)
        return n < 0 ? (int)n : 1;
    rc = blocks_look(u, own_key, err);
    n = rc < 0 ? rc : find_ours(u, own_key, err);
    return n < 0 ? (int)n : 0;
}

static int copy_committed(struct upload *u, const char *own_key, struct act_error *err)
{
    ACT_AUTO(store_call) copy = {.op = STORE_COPY, .copy = {.source = u->key, .source_match = u->etag}, .key = own_key};

    return store_do(u->store, &copy, err);
}

static int blocks_upload(struct upload *u, const char *own_key, char out_etag[STORE_ETAG], struct act_error *err)
{
    int at_code_path = choose_target(u, own_key, err);
    int rc = at_code_path < 0 ? at_code_path : blocks_send_all(u, err);

    if (rc == 0)
        rc = blocks_commit(u, err);
    if (rc == 0 && at_code_path) {
        memcpy(out_etag, u->etag, STORE_ETAG);
        rc = copy_committed(u, own_key, err);
    }
    return rc;
}

int flow_upload_blocks(struct flow *flow, struct store *store, struct flow_init *io, char out_etag[STORE_ETAG],
                       struct act_error *err)
{
    enum { TRIES = 3 }; /* another process may publish at the same time */
    ACT_AUTOFREE char *file = flow_package_cache(io->package.sha256);
    ACT_AUTOFREE char *own_key = flow_package_key(flow, io->package.sha256);
    int fd = open(file, O_RDONLY | O_CLOEXEC), rc = -ACT_TEMPORARY;

    if (fd < 0)
        return act_error_errno(err, errno, "cannot read '%s'", file);
    for (int i = 0; i < TRIES && rc == -ACT_TEMPORARY; i++) {
        struct upload u = {.flow = flow, .store = store, .io = io, .fd = fd};
        out_etag[0] = '\0';
        u.shown_ms = act_now_monotonic_ms();
        u.blocks = name_blocks(&io->package);
        rc = blocks_upload(&u, own_key, out_etag, err);
        free(u.blocks);
    }
    close(fd);
    return rc;
}
