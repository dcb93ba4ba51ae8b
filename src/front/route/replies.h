/*
 * The replies of one client in the order of its requests, whichever of several lanes answers first.
 *
 *   requests   GET a   GET b   SET c   PING    GET d     the client's, in its order
 *   answered   lane 1  lane 1  lane 2  weir    lane 1
 *              \__ run _____/  \_ run _______/ \ run     neighbours that one lane answers
 *               ^ oldest           own reply of weir     an own reply follows the run before it
 *
 * The replies are a queue of runs. Bytes for the oldest run pass to the client without a copy,
 * whatever their size. Bytes for a later run are kept with that run ("early") until the run is the
 * oldest. Unsolicited frames (messages, pushes) of a lane without a run pass as soon as no frame of
 * another lane is half sent.
 *
 * The lane's queue of calls, and not this file, counts the replies of a run. In that queue the last
 * call of a run is marked CALL_ENDS_RUN. replies_end is called when that call is answered. A lost
 * lane closes the client, so a run ends in no other way.
 *
 * While replies_are_idle, nothing has to be ordered and no run exists. Memory comes from the pool
 * (base/chain.h), which counts the memory. The owner limits replies_bytes to the number of bytes
 * that a client may leave unread.
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

/* Bytes that came early, oldest first. Zeroed: none. */
struct early {
    struct early_piece *first; /* NULL: none */
    struct early_piece *last;
};

/*
 * One lane that answers the client. The lane's user provides zeroed memory, which must stay valid
 * until replies_clear.
 */
struct reply_source {
    uint32_t oldest,
        /*
         * positions of the source's oldest and newest run that has not ended, if n_runs > 0;
         * otherwise `newest` is the run that ended last
         */
        newest;
    uint32_t n_runs;    /* runs that have not ended */
    uint32_t run_index; /* position of the run to which the present frame belongs */
    /* the last bytes ended within a frame; the rest of the frame goes where its beginning went */
    bool is_cut;
    bool is_unsolicited;        /* the present frame is unsolicited, so it belongs to no run */
    struct early unsolicited;   /* unsolicited frames that could not pass at once */
    struct list in_unsolicited; /* in replies.all_unsolicited while `unsolicited` is not empty */
};

struct run {
    struct reply_source *source;
    struct early early;
    uint32_t own_bytes; /* bytes of replies.own that follow this run */
    uint32_t next;      /* position of the source's next run, if any */
    bool is_ended;      /* all replies of the run have come */
    bool is_closed;     /* the source's next request begins another run */
};

struct replies {
    struct pool *pool;
    struct run *ring; /* capacity is a power of two; NULL: none yet */
    uint32_t capacity;
    uint32_t head; /* position of the oldest run; positions count up, and wrap */
    uint32_t tail;
    struct chain own;              /* weir's own replies, of all runs */
    uint64_t early_bytes;          /* bytes kept with runs, and unsolicited bytes kept */
    struct reply_source *speaking; /* the source of a frame that is sent in part; NULL: none */
    struct list all_unsolicited;   /* struct reply_source, in the order of their first kept frame */
};

void replies_init(struct replies *replies, struct pool *pool);

/*
 * Discards all kept bytes of all sources, and frees the memory. The state is as after replies_init.
 */
void replies_clear(struct replies *replies);

/* True if nothing has to be ordered: bytes can pass as they come. */
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
 * The next requests will be answered by `source`. Begins a new run, unless the newest run is the
 * source's and no own reply follows it. `is_in_frame`: the source is within a frame; if `replies`
 * is idle, a part of that frame was already sent. False: out of memory.
 */
__attribute__((warn_unused_result)) bool replies_begin(struct replies *replies,
                                                       struct reply_source *source,
                                                       bool is_in_frame);

/*
 * Closes the source's newest run, which has not ended. The source's next request begins another
 * run.
 */
void replies_close(struct replies *replies, const struct reply_source *source);

/*
 * Appends a reply of weir's own behind all requests so far. Only while a run exists. False: out of
 * memory.
 */
__attribute__((warn_unused_result)) bool replies_say(struct replies *replies, struct slice reply);

/* Ends the oldest run of the source: the run was answered, or needs no answer any more. */
void replies_end(struct replies *replies, struct reply_source *source);

/*
 * ---- strands: early bytes of one of several lanes that together are one source
 * (front/cluster/spread.h) ----
 *
 * The bytes are counted in replies_bytes. A strand belongs to its owner, and is zeroed when empty.
 */

/* Keeps a copy of these bytes. False: out of memory. */
__attribute__((warn_unused_result)) bool strand_keep(struct replies *replies, struct early *strand,
                                                     const char *data, size_t n);

/*
 * Reserves the position of the strand's next reply, which replies_fill provides later. The piece
 * belongs to the strand; strand_drop frees it. NULL: out of memory.
 */
struct early_piece *strand_hold(struct replies *replies, struct early *strand);

/*
 * Provides the whole reply for a reserved position. Empty: there is no reply. False: out of memory.
 */
__attribute__((warn_unused_result)) bool replies_fill(struct replies *replies,
                                                      struct early_piece *piece,
                                                      struct slice reply);

enum strand_next {
    STRAND_EMPTY,
    STRAND_BYTES, /* some bytes of the strand's replies */
    STRAND_REPLY, /* a whole reply of a reserved position, possibly empty */
    STRAND_OPEN,  /* a reserved position without its reply */
};

/*
 * Moves *at to the strand's first piece if *at is NULL, else to the piece behind *at. Returns the
 * kind of the piece; *bytes are its bytes.
 */
enum strand_next strand_look(const struct early *strand, const struct early_piece **at,
                             struct slice *bytes);

/*
 * Removes the first n bytes, which were sent. The n bytes are a part of one piece or the whole
 * piece.
 */
void strand_drop(struct replies *replies, struct early *strand, size_t n);

void strand_clear(struct replies *replies, struct early *strand);

enum replies_verdict {
    REPLIES_PASS, /* send the bytes now */
    REPLIES_KEPT, /* a copy is kept until the run is the oldest */
    REPLIES_FULL, /* out of memory: only replies_clear may follow */
};

/*
 * Takes n bytes of the source. `is_whole`: the bytes end at the end of a frame. The bytes must not
 * reach beyond the end of an unsolicited frame.
 */
__attribute__((warn_unused_result)) enum replies_verdict replies_take(struct replies *replies,
                                                                      struct reply_source *source,
                                                                      const char *data, size_t n,
                                                                      bool is_whole);

/*
 * Sends all bytes that are next in order. To be called after replies_end, replies_fill and
 * replies_take, once bytes with REPLIES_PASS were sent. `out` returns false to end the flush. `out`
 * must call no function of this file, except replies_clear before it returns false.
 */
void replies_flush(struct replies *replies, bool (*out)(void *arg, const char *data, size_t n),
                   void *arg);

#endif
