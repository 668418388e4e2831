/* far.h - for the files of the far store only: a folder store of another machine, at the end of a stream.
 *
 * Both ends speak frames: a head of 16 bytes (the lengths of the words and of the bytes, and the number of the call),
 * words, bytes. Frames go in blocks, in which heads and words, compressed, come before all bytes. Each call of the
 * store is one frame, and so is its result, in any order, so that as many calls are under way as there is room for.
 * far_words.c knows the words, far_link.c moves the frames, far.c is this end, far_serve.c the other one. The other end
 * is never trusted: everything is bounded and checked.
 *
 * The end that serves takes in no more than it has room for and lets the rest wait in the stream, so that many large
 * files fill no memory on either side. While it has something to do, however long that takes, it says now and then that
 * it is there: one of which nothing comes is stopped, or cut off.
 */
#ifndef ACT_STORE_FAR_H
#define ACT_STORE_FAR_H

#include <stdint.h>

#include "http/bucket.h"
#include "store/store_internal.h"

struct engine;

enum {
    FAR_VERSION = 4,           /* of what both ends say; each says it first */
    FAR_MAX_PUT = 64 << 20,    /* bytes of one frame, as many as a folder takes */
    FAR_MAX_WORDS = 32 << 20,  /* of one frame: the words of the longest page of a list */
    FAR_ROOM_BYTES = 32 << 20, /* bytes of the calls that the other end has under way, but for the last that came */
    FAR_ROOM_CALLS = 512,      /* calls that it has under way: each may hold a file open */
    FAR_WINDOW = 4096,         /* calls that are worth having in flight */
    FAR_SMALL = 64 << 10,      /* bytes that are summed at once, not on a worker, and never compared */
    FAR_KEPT_BYTES = 16 << 20, /* of calls that wait for the disk there, copies for when the connection breaks */
    FAR_LIST_ROOM = 2 << 20,   /* bytes that a list counts before its words are there */
    FAR_BEAT_MS = 250,         /* after which the other end says that it is there, while it has something to do */
};
/* The number of a frame that belongs to no call: of an empty one of the other end, that is all it says. */
#define FAR_NO_CALL UINT64_MAX

/* ---- far_change.c: what differs in two states of an object. Blocks are compared where they are, by their sums: what
 * was inserted moves all that follows it, which then differs. Pure. */

enum {
    FAR_BLOCK = 16 << 10, /* bytes */
    FAR_SUM = 16,         /* the first bytes of the SHA-256 of a block */
};

/* A bit for each block, the lowest first: it differs. */
struct far_changes {
    uint8_t bits[FAR_MAX_PUT / FAR_BLOCK / 8];
};

/* Returns the bytes of the sums of so many bytes, and those of the bits. */
size_t far_sums_size(size_t len);
size_t far_bits_of(size_t len);
/* Writes the sums of the blocks. */
void far_sums_of(const void *bytes, size_t len, uint8_t *out);
/* Sets the bits of the blocks that differ from those with these sums, or are not among them. */
void far_find_changes(const void *bytes, size_t len, const uint8_t *sums, size_t sums_size, struct far_changes *out);
/* Returns the bytes of the blocks that differ. */
size_t far_changes_size(const struct far_changes *changes, size_t len);
/* Copies those of len bytes, one after the other, to gathered; far_scatter() copies them from there to their places. */
void far_gather(const struct far_changes *changes, const void *bytes, size_t len, void *gathered);
void far_scatter(const struct far_changes *changes, void *bytes, size_t len, const void *gathered);

/* ---- far_words.c: calls and their results as words */

/* Requests of a frame besides the operations of a store. */
enum { FAR_OPEN_UP = STORE_OPS, FAR_HURRY };

/* How the bytes of a frame are sent. */
enum far_bytes {
    FAR_NO_BYTES,
    FAR_BYTES,   /* they follow */
    FAR_ZEROS,   /* all are zero, and none follows */
    FAR_CHANGED, /* of the blocks that differ from what the other end has; of a GET, from what it has shown the sums */
};

/* Something that is asked for. The strings of the call lie in the words that it was read from. */
struct far_request {
    unsigned op; /* an enum store_op, or one of those above */
    bool no_sync, follow;
    bool alone; /* it does not wait for the disk with others */
    enum far_bytes bytes;
    struct store_call call;
    uint64_t crc64; /* of the bytes; call has a pointer to it */
    struct far_changes changed;
    /* In a GET: the end that asks wants sums of this many bytes each instead of the bytes. 0: it wants the bytes; bytes
     * that follow the words are then the sums of what it has. */
    size_t summed;
    struct store_upload_id upload;
};

/* Appends the words of a request. */
void far_words_of_request(const struct far_request *request, struct act_buf *out);
/* Reads them. call.key and what hangs on the call lie in words, which must outlive it, but for the list of a
 * DELETE_MANY, which far_request_release() frees. False: they are malformed. */
bool far_request_of_words(const char *words, size_t len, struct far_request *out);
void far_request_release(struct far_request *request);

/* The result of a call: what it gave is in the call itself. */
struct far_result {
    enum far_bytes bytes; /* of a GET */
    uint64_t crc64;       /* of all that were asked for */
    struct far_changes changed;
};
/* Appends the words of a result. */
void far_words_of_result(const struct store_call *call, const struct far_result *result, struct act_buf *out);
/* Sets rc, error and the outputs of the call, which is otherwise what was asked. False: they are malformed. */
bool far_result_of_words(const char *words, size_t len, struct store_call *call, struct far_result *out);

/* The first words of each end: its version and, of the one that serves, the root or an error. */
void far_words_of_hello(const char *root, int rc, const struct act_error *error, struct act_buf *out);
int far_hello_of_words(const char *words, size_t len, char **out_root, struct act_error *err) ACT_NODISCARD;

/* Tells whether all bytes are zero, and there are so many that not sending them is worth it. */
bool far_is_zeros(const void *data, size_t len);

/* ---- far_link.c: frames over a stream */

struct far_chunk;

/* A frame that comes: its words, which are the receiver's to free, and where its bytes go. */
struct far_frame {
    uint64_t id;
    char *words; /* a NUL follows */
    size_t words_len;
    size_t len; /* of the bytes */
    void *bytes;
};

/* A direction of a link. */
struct far_pace {
    struct bucket bucket;
    bool waits; /* for a timer */
};

struct far_link {
    uint64_t rate; /* bytes per second in each direction; 0: no limit */
    struct engine *engine;
    int in_fd, out_fd; /* two descriptors; -1: closed */
    /* Called when the words of a frame are there: sets frame->bytes where its bytes are to go. False: the frame is
     * malformed, and the link is broken. */
    bool (*begun)(void *arg, struct far_frame *frame);
    /* Called when all of it is there. */
    void (*came)(void *arg, struct far_frame *frame);
    /* Called once, later, when the link is broken. */
    void (*broken)(void *arg, const struct act_error *error);
    void *arg;

    /* internal */
    struct far_chunk *first, **end, *unpacked; /* unpacked: the first that is in no block */
    bool watches_in, watches_out, is_broken, is_paused, heard;
    bool flushes, gathers; /* a timer writes what waits; gathers: it lets others join */
    size_t unwritten;      /* bytes of frames since the last block */
    int64_t flushed_ms;
    struct far_pace up, down;
    struct far_frame frame;
    struct act_buf frames; /* of the block that comes, compressed until they are whole */
    size_t packed_len, frames_len, frames_pos, bytes_got;
    enum { FAR_LINK_HEAD, FAR_LINK_FRAMES, FAR_LINK_FRAME, FAR_LINK_BYTES } expects;
    char *buffer;
    size_t pos, len;
    struct act_error error;
};

/* Begins to work, on the loop of the engine. The descriptors become the link's. said: what was read from in_fd already,
 * which is copied; NULL: nothing. */
void far_link_init(struct far_link *link, struct engine *engine, int in_fd, int out_fd, const struct act_buf *said);
/* Sends a frame: the words, which are copied, and len bytes, which are read until it calls sent(arg, id, bytes, size)
 * with the size of both; it may be NULL: when the frame is written, or when a link that is broken is released. */
void far_link_send(struct far_link *link, uint64_t id, const struct act_buf *words, const void *bytes, size_t len,
                   void (*sent)(void *arg, uint64_t id, const void *bytes, size_t size));
/* Tells whether anything has come since it was asked last. What was not read yet has come, too. */
bool far_link_heard(struct far_link *link);
/* Reads nothing until it is called with false. */
void far_link_pause(struct far_link *link, bool pause);
/* Breaks the link, for this reason. broken() is called later. */
void far_link_break(struct far_link *link, const struct act_error *error);
/* Closes both descriptors, without broken(). The sent() of what is not written is called. It may be called twice. */
void far_link_release(struct far_link *link);

/* ---- far.c: this end */

struct site;
struct far_upload;

/* A call under way. */
struct far_call {
    struct far *far;
    struct store_call *call;
    size_t slot;
    enum {
        FAR_CALL_SUMMED, /* a worker has it: nobody else ends it */
        FAR_CALL_WAITS,  /* until there is a connection */
        FAR_CALL_QUEUED, /* until the link has written all of it */
        FAR_CALL_SENT,
        FAR_CALL_KEPT, /* sent, and its bytes are the caller's again */
    } stage;
    bool is_written;            /* all of it, over the connection that there is: only then it has a result */
    struct far_request request; /* only its own members are used */
    struct act_buf words;       /* of the request */
    const char *bytes;          /* of len, which follow */
    size_t len;
    char *own;         /* those bytes, where they are not the caller's */
    size_t kept_bytes; /* of own, as FAR_KEPT_BYTES counts them */
    uint8_t *sums;     /* of sums_size: of what is there of the object; NULL: not known */
    size_t sums_size;
    char *came; /* the blocks that differ, of a GET */
    bool mixed; /* what the caller had of an object may be written over in part by what came of a GET */
    bool again; /* it was sent before, perhaps over an earlier connection, and may have been carried out */
    bool asks;  /* it is one of FAR_ASKS */
    struct far_result result;
};

/* Where the folder is. */
struct far_place {
    char *login, *root; /* of the site; login NULL: the connection was given */
    char *folder;       /* absolute, or below the root of the site */
    char *first;        /* the key that is asked about with the connection; NULL: none */
};

enum { FAR_FIRSTS = 3 };

/* A call that is made with the connection. */
struct far_first {
    struct far *far;
    struct store_call call;
    struct far_call *sent;     /* NULL: its result has come */
    struct store_call *waiter; /* has, or gets, the result; NULL: nobody has asked */
};

struct far {
    struct store store;
    struct far_place place;
    struct site *site; /* holds the connection; NULL: it was given */
    char *root;        /* as the other end says; NULL: it has not begun */
    struct far_link link;
    enum {
        FAR_GREETS, /* the first words have not come */
        FAR_ASKS,   /* uploads that were begun are begun again there, before anything else */
        FAR_UP,
        FAR_DOWN,     /* until somebody needs it, or a timer fires */
        FAR_CONNECTS, /* a worker does */
        FAR_OVER,     /* broken for good */
    } state;
    struct far_call **slots; /* by number; NULL: free */
    size_t n_slots, n_under_way, n_kept, kept_bytes;
    size_t free_from;        /* no slot before this one is free */
    bool news;               /* since the other end was told to hurry */
    struct act_error broken; /* code 0: it is not */

    /* of far_first.c */
    struct far_first firsts[FAR_FIRSTS];
    size_t n_firsts;
    char *first_prefix;
    bool firsts_are_old; /* something was written since */

    /* of far_line.c */
    bool met; /* it was up once, or is over */
    struct far_upload *uploads;
    size_t n_asked;            /* calls of FAR_ASKS */
    struct act_strv opened_up; /* keys */
    struct far_try *next;      /* FAR_CONNECTS: the worker's */
    int tries;                 /* since a call ended */
    int64_t lost_ms;           /* when it was lost first since then */
    bool timer;                /* FAR_DOWN: it connects when that fires */
    bool told;                 /* the user was told that the connection was lost */
    bool listens;              /* a timer looks whether the other end says anything */
};

struct engine *far_engine(const struct far *far);
/* Returns a call that has a number and is not sent. */
struct far_call *far_call_new(struct far *far, struct store_call *call);
/* Makes the words and the bytes that are sent of a call (struct far_call): on a worker, if that takes long. */
void far_sum(void *call);
/* Sends it over the connection that is there. */
void far_call_write(struct far_call *call);
/* Notes that the connection is lost over which it was sent, if it was. */
void far_call_lost(struct far_call *call);
/* Gives its number back, before one of the next two is called. */
void far_leave_slot(struct far_call *call);
/* Frees it; its caller hears nothing. */
void far_call_free(struct far_call *call);
/* Frees it, and tells its caller how it ended. */
void far_call_end(struct far_call *call, int rc);
/* Sends what has no result, if there is a connection. */
void far_tell(struct far *far, unsigned op, const char *key);
/* Called by the link. */
bool far_result_begun(void *far, struct far_frame *frame);
void far_result_came(void *far, struct far_frame *frame);

/* ---- far_first.c: calls that are made with the connection */

/* Sets the calls, with the numbers 0 and so on, that are made of a key; prefix: far_first_prefix() of it. Returns how
 * many. Both texts must outlive the calls. */
size_t far_first_calls(const char *key, const char *prefix, struct store_call out[FAR_FIRSTS]);
char *far_first_prefix(const char *key); /* new string */
/* Begins them, before there is a connection. */
void far_first_begin(struct far *far, const char *key);
/* Notes that they are made with the connection that there is now. Else they are sent over it. */
void far_first_asked(struct far *far);
/* Takes a call that asks for the same as one of them, whose result is its own then, once. */
bool far_first_takes(struct far *far, struct store_call *call);
void far_first_release(struct far *far);

/* ---- far_line.c: the connection of this end, which is made again when it breaks */

/* Connects, or begins to try again if the connection breaks meanwhile. The first words follow. */
int far_line_connect(struct far *far, struct act_error *err) ACT_NODISCARD;
/* Waits for the first words. */
int far_line_greet(struct far *far, struct act_error *err) ACT_NODISCARD;
/* Does so over a connection that is given. The descriptors become the link's. */
int far_line_begin(struct far *far, int in_fd, int out_fd, const struct act_buf *said,
                   struct act_error *err) ACT_NODISCARD;
/* Takes the first words, and goes on when they have come. False: they are none. */
bool far_line_greeted(struct far *far, const struct far_frame *frame);
void far_line_met(struct far *far);
/* Tells whether calls may be sent now. If not, they are when there is a connection again. */
bool far_line_is_up(struct far *far);
/* Tells whether to take the result of a call. False: it is asked again over the next connection. */
bool far_line_takes(struct far *far, struct far_call *call);
/* Looks from now on whether the other end says anything, if there is a connection: a call is under way. */
void far_line_listen(struct far *far);
/* Looks no more: none is. */
void far_line_rest(struct far *far);
/* Notes that a call ends with rc. */
void far_line_ended(struct far *far, const struct far_call *call, int rc);
/* Ends the connection, and frees what belongs to it. */
void far_line_release(struct far *far);

#endif
