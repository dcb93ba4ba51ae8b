/*
 * The world of a run: its clock, its bells, and the parties that have something to do. Parties take
 * steps in an order that the seed chooses. Between two steps nothing happens, and time passes only
 * in world_step.
 *
 * One run a process, one thread.
 */
#ifndef WEIR_SIM_WORLD_H
#define WEIR_SIM_WORLD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/list.h"
#include "tests/sim/due.h"
#include "tests/sim/random.h"

/* the monotonic clock at the start */
#define SIM_START_NS (UINT64_C(1000) * 1000000000)
#define SIM_EPOCH_US (UINT64_C(1700000000) * UINT64_C(1000000)) /* the date at the start */

/* Rung once, at its time. */
struct bell {
    struct due due;
    void (*ring)(struct bell *bell);
};

/* A thing that takes steps: a loop, Redis, a client. */
struct party {
    void (*turn)(struct party *party);
    const char *kind;
    unsigned index;
    bool is_weirs;      /* allocations of the party count as weir's */
    bool is_ready;      /* in the queue */
    uint64_t asleep_ns; /* takes no step before this time */
    struct bell bell;   /* wakes the party */
};

struct world {
    uint64_t now_ns;
    uint64_t steps;   /* number of steps taken */
    uint64_t tick_ns; /* time that a read of the clock takes */
    uint64_t turn_ns; /* longest time that a step takes */
    struct dues bells;
    struct party **ready;
    size_t n_ready, ready_room;
    struct random order; /* random order of steps */
    const struct party *current;
    const struct party *last; /* the party of the last step; NULL: time has passed since */
};

extern struct world world;

void world_init(uint64_t seed);
void world_fini(void);

/* The party takes a step soon. */
void world_wake(struct party *party);

/* The party takes a step at that time, or now if it is in the past. */
void world_wake_at(struct party *party, uint64_t at_ns);

/* The party takes no step for `ns`. */
void world_sleep(struct party *party, uint64_t ns);

/* Removes the party. */
void world_leave(struct party *party);

void world_ring_at(struct bell *bell, uint64_t at_ns);
void world_silence(struct bell *bell);

/*
 * One step of one party, or the clock advances to the next bell. False: nothing is due, ever. Each
 * call changes either `steps` or `now_ns`: together they name a moment between two calls.
 */
bool world_step(void);

#endif
