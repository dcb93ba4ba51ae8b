/*
 * The replies of one client in the order of its requests, whichever of several lanes answers first.
 *
 *   requests   GET a   GET b   SET c   PING    GET d     the client's, in its order
 *   answered   lane 1  lane 1  lane 2  weir    lane 1
 *              \__ run _____/  \_ run _______/ \ run     requests beside one another that one lane answers are a run;
 *               ^ its turn           what weir says      weir's own replies stand behind the run before them
 *
 * A queue of runs. What comes for the first of them, whose turn it is, passes to the client without being copied,
 * however large it is; what comes for another is kept with it until its turn: early. Frames that answer nothing
 * (messages, pushes) of a lane without a run pass as soon as no frame of another lane is half sent.
 *
 * How many replies a run has is not counted here. The lane's queue knows it: the last call of a run is marked there
 * (CALL_ENDS_RUN), and replies_end follows its answer. A lane that is lost takes the client with it, so no run ends
 * otherwise.
 *
 * With nothing to be put in order there are no runs at all, and nothing of this is called: see replies_are_idle.
 * Memory is the pool's (base/chain.h), and counts there; its owner holds replies_bytes to what a client may leave
 * unread.
 */
#ifndef WEIR_FRONT_REPLIES_H
#define WEIR_FRONT_REPLIES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/chain.h"
#include "base/list.h"
#include "base/slice.h"

struct early_piece;

/* What has come before its turn, oldest first. Zeroed: nothing. */
struct early {
    struct early_piece *first; /* NULL: nothing */
    struct early_piece *last;
};

/* One lane, to the client that it answers. Zeroed memory of the lane's user; it lives until replies_clear. */
struct reply_source {
    uint32_t oldest,
        newest;         /* positions of those of its runs that have not ended, while there are some; newest: of any */
    uint32_t n_runs;    /* how many have not ended */
    uint32_t place;     /* position of the run in which it is within a frame */
    bool is_cut;        /* what has come of it ends within a frame: the rest goes where the beginning is */
    bool is_aside;      /* and that is aside, not in a run */
    struct early aside; /* frames that answer nothing, and could not pass at once */
    struct list in_asides; /* in replies.asides while something is kept aside */
};

struct run {
    struct reply_source *source;
    struct early early;
    uint32_t own_bytes; /* of replies.own: what weir says behind it */
    uint32_t next;      /* position of the next run of its source, if there is one */
    bool is_ended;      /* everything of its has come */
    bool is_closed;     /* what its source is asked next is another run */
};

struct replies {
    struct pool *pool;
    struct run *ring; /* a power of two; NULL: none yet */
    uint32_t capacity;
    uint32_t head; /* positions count on for ever and wrap */
    uint32_t tail;
    struct chain own;              /* weir's own replies, of all runs */
    uint64_t early_bytes;          /* kept with runs, and aside */
    struct reply_source *speaking; /* of whose frame a part has been sent; NULL: of none */
    struct list asides;            /* struct reply_source, in the order in which their frames came */
};

void replies_init(struct replies *replies, struct pool *pool);

/* Forget everything, of all sources, and give the memory back. As after replies_init. */
void replies_clear(struct replies *replies);

/* Is there nothing to be put in order, so that whatever comes can pass as it comes? */
static inline bool replies_are_idle(const struct replies *replies)
{
    return replies->head == replies->tail && replies->speaking == NULL;
}

/* Bytes that are kept. */
static inline uint64_t replies_bytes(const struct replies *replies)
{
    return replies->own.bytes + replies->early_bytes;
}

/*
 * What is asked from here on `source` answers: a new run, unless the newest is its already and nothing stands behind
 * that. If all was idle, `is_in_frame` tells that a part of a frame of the source's has been sent. False: out of
 * memory.
 */
__attribute__((warn_unused_result)) bool replies_begin(struct replies *replies, struct reply_source *source,
                                                       bool is_in_frame);

/* The newest run of the source's has not ended, and what the source is asked next is another run. */
void replies_close(struct replies *replies, const struct reply_source *source);

/* A reply of weir's own behind all that has been asked; there is a run. False: out of memory. */
__attribute__((warn_unused_result)) bool replies_say(struct replies *replies, struct slice reply);

/* The oldest run of the source's has been answered, or needs no answer any more. */
void replies_end(struct replies *replies, struct reply_source *source);

/*
 * The reply that comes next of the source's is held back: it is given later, by replies_fill, and has its position
 * here. All
 * that comes from the source behind it is kept. The source has a run, and is between two frames. The piece is the
 * replies' own until it has been filled; replies_clear frees it. NULL: out of memory.
 */
struct early_piece *replies_hold(struct replies *replies, const struct reply_source *source);

/* The reply that was held back, whole; empty: there is none. False: out of memory. */
__attribute__((warn_unused_result)) bool replies_fill(struct replies *replies, struct early_piece *piece,
                                                      struct slice reply);

/*
 * ---- strands: what has come early from one of several lanes that are one source (front/cluster/spread.h) ----
 *
 * Its bytes are counted as replies_bytes. A strand is its owner's, and zeroed when it is empty.
 */

/* A copy of these bytes is kept. False: out of memory. */
__attribute__((warn_unused_result)) bool strand_keep(struct replies *replies, struct early *strand, const char *data,
                                                     size_t n);

/* As replies_hold, of the strand's next reply. */
struct early_piece *strand_hold(struct replies *replies, struct early *strand);

enum strand_next {
    STRAND_EMPTY,
    STRAND_BYTES, /* some bytes of its replies */
    STRAND_REPLY, /* one whole reply, that was held back; or none, which has its place */
    STRAND_OPEN,  /* a reply that is held back */
};

/* What is in it: from the first piece on, `at` NULL, or behind the piece `at`, which is moved. */
enum strand_next strand_look(const struct early *strand, const struct early_piece **at, struct slice *bytes);

/* The first n bytes have gone, which are all of one piece or a part of it. */
void strand_drop(struct replies *replies, struct early *strand, size_t n);

void strand_clear(struct replies *replies, struct early *strand);

enum replies_verdict {
    REPLIES_PASS, /* they are to be sent now */
    REPLIES_KEPT, /* a copy is kept until their turn */
    REPLIES_FULL, /* out of memory: good only to clear */
};

/*
 * `n` bytes have come from the source: a piece of its stream that ends where a frame does if `is_whole`, and does not
 * reach beyond the end of a frame that answers nothing.
 */
__attribute__((warn_unused_result)) enum replies_verdict replies_take(struct replies *replies,
                                                                      struct reply_source *source, const char *data,
                                                                      size_t n, bool is_whole);

/*
 * Hand out all that has its turn now; to be called after each of the four above, and after what was to pass has been
 * sent. `out` may not come back here, but for replies_clear after it has said false, which ends it.
 */
void replies_flush(struct replies *replies, bool (*out)(void *arg, const char *data, size_t n), void *arg);

#endif
