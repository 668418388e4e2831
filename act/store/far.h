/* far.h - for the files of the far store only: a folder store of another machine, at the end of a stream.
 *
 * Both ends speak frames: a head of 20 bytes (the lengths of the words and of the bytes that follow, and the number of
 * the call), words, bytes. Each call of the store is one frame, and so is its result, in any order, so that as many
 * calls are under way as there is room for. far_words.c knows the words, far_link.c moves the frames, far.c is this
 * end, far_serve.c the other one. The other end is never trusted: everything is bounded and checked.
 *
 * The end that serves takes in no more than it has room for and lets the rest wait in the stream, so that many large
 * files fill no memory on either side.
 */
#ifndef ACT_STORE_FAR_H
#define ACT_STORE_FAR_H

#include <stdint.h>

#include "store/store_internal.h"

struct engine;

enum {
    FAR_VERSION = 1,           /* of what both ends say; each says it first */
    FAR_MAX_PUT = 64 << 20,    /* bytes of one frame, as many as a folder takes */
    FAR_MAX_WORDS = 32 << 20,  /* of one frame: the words of the longest page of a list */
    FAR_ROOM_BYTES = 32 << 20, /* bytes of the calls that the other end has under way, but for the last that came */
    FAR_ROOM_CALLS = 512,      /* calls that it has under way: each may hold a file open */
    FAR_WINDOW = 1024,         /* calls that are worth having in flight */
    FAR_SMALL = 64 << 10,      /* bytes that are summed at once, not on a worker */
};

/* ---- far_words.c: calls and their results as words */

/* What a frame asks for besides the operations of a store. */
enum { FAR_OPEN_UP = STORE_OPS, FAR_HURRY };

/* How the bytes of a frame are sent. */
enum far_bytes {
    FAR_NO_BYTES,
    FAR_BYTES, /* they follow */
    FAR_ZEROS, /* all are zero, and none follows */
};

/* Something that is asked for. The strings of the call lie in the words that it was read from. */
struct far_request {
    unsigned op; /* an enum store_op, or one of those above */
    bool no_sync, follow;
    bool alone; /* it does not wait for the disk with others */
    enum far_bytes bytes;
    struct store_call call;
    uint64_t crc64; /* of the bytes; call has a pointer to it */
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
    uint64_t crc64;       /* of those */
};
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

struct far_link {
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
    struct far_chunk *first, **end;
    bool watches_in, watches_out, is_broken, is_paused, flushes;
    struct far_frame frame;
    size_t words_got, bytes_got;
    enum { FAR_LINK_HEAD, FAR_LINK_WORDS, FAR_LINK_BYTES } expects;
    char *buffer;
    size_t pos, len;
    struct act_error error;
};

/* Begins to work, on the loop of the engine. The descriptors become the link's. said: what was read from in_fd already,
 * which is copied; NULL: nothing. */
void far_link_init(struct far_link *link, struct engine *engine, int in_fd, int out_fd, const struct act_buf *said);
/* Sends a frame: takes the words, and reads len bytes until it calls sent(arg, id, bytes, len), which may be NULL: when
 * the frame is written, or when a link that is broken is released. */
void far_link_send(struct far_link *link, uint64_t id, struct act_buf *words, const void *bytes, size_t len,
                   void (*sent)(void *arg, uint64_t id, const void *bytes, size_t len));
/* Reads nothing until it is called with false. */
void far_link_pause(struct far_link *link, bool pause);
/* Breaks the link, for this reason. */
void far_link_break(struct far_link *link, const struct act_error *error);
void far_link_release(struct far_link *link);

#endif
