/*
 * One direction of a connection: bytes in order, each with its arrival time, and an end behind the
 * bytes.
 *
 * head <= arrived <= filled. Bytes in [head, arrived) can be read now. Bytes in [arrived, filled)
 * are under way.
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
    size_t limit;         /* capacity in bytes, read or under way */
    struct piece *pieces; /* under way: [first, last) of piece_room */
    size_t first, last, piece_room;
    enum pipe_end sent_end, end; /* the end as sent, and as arrived */
    uint64_t end_ns;
    uint64_t last_ns;              /* arrival of the last bytes sent: nothing overtakes them */
    uint64_t moved;                /* bytes put in, ever */
    uint64_t moved_ns, moved_step; /* when the last bytes were put in */
    /* on_marked is called once `moved` reaches the mark; UINT64_MAX: never */
    uint64_t mark;
    bool is_stop; /* no byte goes beyond the mark */
    struct bell bell;
    void (*on_arrived)(struct pipe *pipe);
    void (*on_marked)(struct pipe *pipe);
};

void pipe_open(struct pipe *pipe, size_t limit, void (*on_arrived)(struct pipe *pipe));
void pipe_fini(struct pipe *pipe);

/* room: free bytes of the limit. space: free bytes up to the mark. */
static inline size_t pipe_room(const struct pipe *pipe)
{
    size_t held = pipe->filled - pipe->head;
    return held < pipe->limit ? pipe->limit - held : 0;
}

static inline size_t pipe_space(const struct pipe *pipe)
{
    size_t room = pipe_room(pipe);
    return pipe->is_stop && pipe->mark - pipe->moved < room ? (size_t)(pipe->mark - pipe->moved)
                                                            : room;
}

static inline struct slice pipe_here(const struct pipe *pipe)
{
    size_t n = pipe->arrived - pipe->head;
    return slice_of(n > 0 ? pipe->bytes + pipe->head : NULL, n);
}

/* n is at most pipe_space. The bytes arrive in `delay_ns`, but not before earlier bytes. */
void pipe_put(struct pipe *pipe, const char *data, size_t n, uint64_t delay_ns);

/* Removes the first n bytes that have arrived. */
void pipe_take(struct pipe *pipe, size_t n);

/* PIPE_RESET overtakes bytes under way, which are lost. */
void pipe_finish(struct pipe *pipe, enum pipe_end end, uint64_t delay_ns);

/* Bytes put in from now on arrive at until_ns or later. */
void pipe_hold(struct pipe *pipe, uint64_t until_ns);

#endif
