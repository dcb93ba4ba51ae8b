#include "tests/sim/pipe.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

static void on_bell(struct bell *bell);

void pipe_open(struct pipe *pipe, size_t limit, void (*on_arrived)(struct pipe *pipe))
{
    *pipe = (struct pipe){.limit = limit,
                          .mark = UINT64_MAX,
                          .moved_ns = world.now_ns,
                          .moved_step = world.steps,
                          .bell.ring = on_bell,
                          .on_arrived = on_arrived};
}

void pipe_fini(struct pipe *pipe)
{
    world_silence(&pipe->bell);
    free(pipe->bytes);
    free(pipe->pieces);
    *pipe = (struct pipe){0};
}

static void arm(struct pipe *pipe)
{
    if (pipe->first < pipe->last)
        world_ring_at(&pipe->bell, pipe->pieces[pipe->first].at_ns);
    else if (pipe->end != pipe->sent_end)
        world_ring_at(&pipe->bell, pipe->end_ns);
}

static void arrive(struct pipe *pipe)
{
    while (pipe->first < pipe->last && pipe->pieces[pipe->first].at_ns <= world.now_ns)
        pipe->arrived += pipe->pieces[pipe->first++].len;
    if (pipe->first == pipe->last) {
        pipe->first = pipe->last = 0;
        if (pipe->end_ns <= world.now_ns)
            pipe->end = pipe->sent_end;
    }
    arm(pipe);
    pipe->on_arrived(pipe);
}

static void on_bell(struct bell *bell)
{
    arrive(container_of(bell, struct pipe, bell));
}

static void make_room(struct pipe *pipe, size_t n)
{
    size_t held = pipe->filled - pipe->head;
    if (pipe->head > 0 && (held == 0 || pipe->filled + n > pipe->room)) {
        memmove(pipe->bytes, pipe->bytes + pipe->head, held);
        pipe->arrived -= pipe->head;
        pipe->filled -= pipe->head;
        pipe->head = 0;
    }
    if (pipe->filled + n > pipe->room) {
        while (pipe->filled + n > pipe->room)
            pipe->room = pipe->room > 0 ? 2 * pipe->room : 4096;
        pipe->bytes = mem_realloc(pipe->bytes, pipe->room, 1);
    }
}

static void add_piece(struct pipe *pipe, size_t n, uint64_t at_ns)
{
    if (pipe->last == pipe->piece_room) {
        pipe->piece_room = pipe->piece_room > 0 ? 2 * pipe->piece_room : 8;
        pipe->pieces = mem_realloc(pipe->pieces, pipe->piece_room, sizeof *pipe->pieces);
    }
    pipe->pieces[pipe->last++] = (struct piece){n, at_ns};
}

static uint64_t arrival(struct pipe *pipe, uint64_t delay_ns)
{
    uint64_t at_ns = world.now_ns + delay_ns;
    pipe->last_ns = at_ns > pipe->last_ns ? at_ns : pipe->last_ns;
    return pipe->last_ns;
}

void pipe_put(struct pipe *pipe, const char *data, size_t n, uint64_t delay_ns)
{
    assert(n <= pipe_space(pipe) && pipe->sent_end == PIPE_OPEN);
    make_room(pipe, n);
    memcpy(pipe->bytes + pipe->filled, data, n);
    pipe->filled += n;
    uint64_t at_ns = arrival(pipe, delay_ns);
    add_piece(pipe, n, at_ns);
    pipe->moved += n;
    pipe->moved_ns = world.now_ns;
    pipe->moved_step = world.steps;
    if (at_ns <= world.now_ns)
        arrive(pipe);
    else if (pipe->bell.due.place == 0)
        arm(pipe);
    if (pipe->moved >= pipe->mark)
        pipe->on_marked(pipe);
}

void pipe_take(struct pipe *pipe, size_t n)
{
    assert(n <= pipe->arrived - pipe->head);
    pipe->head += n;
}

void pipe_finish(struct pipe *pipe, enum pipe_end end, uint64_t delay_ns)
{
    if (pipe->sent_end == PIPE_RESET || pipe->sent_end == end)
        return;
    pipe->sent_end = end;
    pipe->end_ns = end == PIPE_RESET ? world.now_ns + delay_ns : arrival(pipe, delay_ns);
    if (end == PIPE_RESET) {
        pipe->filled = pipe->arrived;
        pipe->first = pipe->last = 0;
    }
    if (pipe->first == pipe->last && pipe->end_ns <= world.now_ns)
        arrive(pipe);
    else
        arm(pipe);
}

void pipe_hold(struct pipe *pipe, uint64_t until_ns)
{
    pipe->last_ns = until_ns > pipe->last_ns ? until_ns : pipe->last_ns;
}
