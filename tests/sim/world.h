/*
 * The world of a run: its clock, what is due when, and who has something to do. Parties take turns
 * in an order that the seed chooses; between two turns nothing happens, and no time passes but
 * what the world lets pass.
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

#define SIM_START_NS (UINT64_C(1000) * 1000000000)              /* what the monotonic clock shows at the start */
#define SIM_EPOCH_US (UINT64_C(1700000000) * UINT64_C(1000000)) /* and what date that is */

/* Rung once at its time. */
struct bell {
    struct due due;
    void (*ring)(struct bell *bell);
};

/* Whoever takes turns: a loop, the Redis, a client. */
struct party {
    void (*turn)(struct party *party);
    const char *kind;
    unsigned index;
    bool is_weirs;      /* what it takes of memory is weir's */
    bool is_ready;      /* in the queue */
    uint64_t asleep_ns; /* has no turn before that, whatever comes */
    struct bell bell;   /* wakes it up */
};

struct world {
    uint64_t now_ns;
    uint64_t steps;   /* turns taken */
    uint64_t tick_ns; /* what a look at the clock costs */
    uint64_t turn_ns; /* what a turn costs at most */
    struct dues bells;
    struct party **ready;
    size_t n_ready, ready_room;
    struct random order; /* of turns */
    const struct party *current;
    const struct party *last; /* whose turn ended last; NULL: time has passed since */
};

extern struct world world;

void world_init(uint64_t seed);
void world_fini(void);

/* It has something to do. */
void world_wake(struct party *party);

/* Wake it then; a moment in the past is now. */
void world_wake_at(struct party *party, uint64_t at_ns);

/* It has no turn for so long. */
void world_sleep(struct party *party, uint64_t ns);

/* It is no party any more. */
void world_leave(struct party *party);

void world_ring_at(struct bell *bell, uint64_t at_ns);
void world_silence(struct bell *bell);

/*
 * One turn of one party, or the clock goes to the next moment at which something is due. False:
 * nothing ever will be. Either `steps` or `now_ns` is another afterwards: together they name a
 * moment between two calls.
 */
bool world_step(void);

#endif
