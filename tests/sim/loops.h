/* Event loops as parties of the world: how a loop is driven, and when a loop has ended. */
#ifndef WEIR_SIM_LOOPS_H
#define WEIR_SIM_LOOPS_H

#include <stdbool.h>
#include <uv.h>

#include "tests/sim/world.h"

#define LOOPS_MAX 64
#define LOOP_FIRST_FD 1000000 /* libuv's descriptor of the first loop; not a real descriptor */

/* The first loop belongs to the main thread. uv_run on the first loop drives the world. */
struct sim_loop {
    struct party party;
    uv_loop_t *uv;
    struct dues timers;
    struct watcher **ready; /* watchers with events, as far as is known */
    size_t n_ready, ready_room;
    bool has_told;            /* has reported events in this iteration */
    bool is_busy;             /* weir has work left and polls without waiting */
    uv_handle_t *every[3][4]; /* the active prepare, check and idle handles */
    unsigned n_every[3];
    unsigned n_handles;
    uv_async_t *pending; /* asyncs that were sent, linked by queue[0] */
    bool is_running;     /* the main thread or a started thread runs it */
    bool is_at_head;     /* at the head of an iteration, not in the poll */
    uint64_t turns;      /* completed iterations */
    bool has_ended;
    struct random order; /* random order of events */
};

struct watcher;

/* NULL: there are not so many loops. */
struct sim_loop *loop_number(unsigned i);

/* The thread of the loop made last begins: the loop has iterations from now on. */
struct sim_loop *loop_begin(void);

/* True if a watched descriptor has an event. */
bool loop_has_events(struct sim_loop *loop);

/* Drives the world until the loop has ended, or was stopped. */
void loop_drive(struct sim_loop *loop);

/* Raises a signal that the main loop watches. */
void loop_signal(int number);

/* Called before every step of the world. */
extern void (*on_world_step)(void);

/* The number of the connection behind a descriptor; 0: none. */
unsigned loop_conn_number(int fd);

#endif
