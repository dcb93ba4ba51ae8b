/*
 * One direction of a connection: bytes in order, each with the moment at which it arrives, and an end behind them.
 *
 * head <= arrived <= filled; what lies in [head, arrived) can be read now, what lies in [arrived, filled) is on its way.
 */
#ifndef WEIR_SIM_PIPE_H
#define WEIR_SIM_PIPE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/slice.h"
#include "tests/sim/world.h"

enum pipe_end { PIPE_OPEN, PIPE_FIN, PIPE_RESET };

struct piece {
    size_t len;
    uint64_t at_ns;
};

struct pipe {
    char *bytes;
    size_t room, head, arrived, filled;
    size_t limit;         /* unread bytes, those on their way too, that it holds */
    struct piece *pieces; /* on their way: [first, last) of piece_room */
    size_t first, last, piece_room;
    enum pipe_end sent_end, end; /* what has been sent, and what of it has arrived */
    uint64_t end_ns;
    uint64_t last_ns;              /* when the last thing sent arrives: nothing overtakes it */
    uint64_t moved;                /* bytes that were put in, ever */
    uint64_t moved_ns, moved_step; /* when the last of them were */
    uint64_t mark;                 /* on_marked is called when so many were; UINT64_MAX: never */
    bool is_stop;                  /* and none goes beyond it while it is there */
    struct bell bell;
    void (*on_arrived)(struct pipe *pipe);
    void (*on_marked)(struct pipe *pipe);
};

void pipe_open(struct pipe *pipe, size_t limit, void (*on_arrived)(struct pipe *pipe));
void pipe_fini(struct pipe *pipe);

/* Without what stops at a mark. */
static inline size_t pipe_room(const struct pipe *pipe)
{
    size_t held = pipe->filled - pipe->head;
    return held < pipe->limit ? pipe->limit - held : 0;
}

static inline size_t pipe_space(const struct pipe *pipe)
{
    size_t room = pipe_room(pipe);
    return pipe->is_stop && pipe->mark - pipe->moved < room ? (size_t)(pipe->mark - pipe->moved) : room;
}

static inline struct slice pipe_here(const struct pipe *pipe)
{
    size_t n = pipe->arrived - pipe->head;
    return slice_of(n > 0 ? pipe->bytes + pipe->head : NULL, n);
}

/* At most pipe_space bytes; they arrive in `delay_ns` or after what was sent before. */
void pipe_put(struct pipe *pipe, const char *data, size_t n, uint64_t delay_ns);

/* The first n bytes that are here. */
void pipe_take(struct pipe *pipe, size_t n);

/* PIPE_RESET overtakes what has not arrived, which is lost. */
void pipe_finish(struct pipe *pipe, enum pipe_end end, uint64_t delay_ns);

/* What is put in from now on arrives no sooner. */
void pipe_hold(struct pipe *pipe, uint64_t until_ns);

#endif
