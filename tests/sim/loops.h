/*
 * Event loops as parties of the world: who drives them, and when one has ended.
 */
#ifndef WEIR_SIM_LOOPS_H
#define WEIR_SIM_LOOPS_H

#include <stdbool.h>
#include <uv.h>

#include "tests/sim/world.h"

#define LOOPS_MAX 64
#define LOOP_FIRST_FD 1000000 /* libuv's own descriptor of the first, which is no real one */

/* The first loop that was made is the main thread's; uv_run on it drives the world. */
struct sim_loop {
    struct party party;
    uv_loop_t *uv;
    struct dues timers;
    struct watcher **ready; /* with events, as far as is known */
    size_t n_ready, ready_room;
    bool has_told;            /* of events, in this turn */
    bool is_busy;             /* weir has work left over: it would not wait */
    uv_handle_t *every[3][4]; /* prepare, check, idle handles that are active */
    unsigned n_every[3];
    unsigned n_handles;
    uv_async_t *pending; /* asyncs that were sent, by their queue[0] */
    bool is_running;     /* somebody runs it: a thread that was started, or the main one */
    bool is_at_head;     /* of the loop, not in its poll */
    uint64_t turns;      /* taken to their end */
    bool has_ended;
    struct random order; /* of events */
};

struct watcher;

/* NULL: there are not so many. */
struct sim_loop *loop_number(unsigned i);

/* The thread that is to run what was made last begins to: it has turns from now on. */
struct sim_loop *loop_begin(void);

/* Is there anything to tell? */
bool loop_has_events(struct sim_loop *loop);

/* Drive the world until the loop has ended, or was stopped. */
void loop_drive(struct sim_loop *loop);

/* Raise a signal that the main loop watches. */
void loop_signal(int number);

/* Called before every step of the world. */
extern void (*on_world_step)(void);

/* The number of the connection behind a descriptor; 0: there is none. */
unsigned loop_conn_number(int fd);

#endif
