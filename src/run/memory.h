/*
 * Keeps weir below memory-limit as far as possible: adds up what clients make it allocate, ten
 * times a second while there is a limit. Tells the workers which step of base/ladder.h is in force.
 *
 * Counts what grows with clients and traffic: clients, their buffers, lanes, subjects. The resident
 * size of the process is not used: it includes freed memory that the allocator keeps, which no
 * back-pressure would reduce. Main thread.
 */
#ifndef WEIR_RUN_MEMORY_H
#define WEIR_RUN_MEMORY_H

#include "base/ladder.h"
#include "limit/figures/journal.h"
#include "run/worker_pool.h"

struct memory {
    struct worker_pool *pool; /* NULL before memory_open */
    struct front_settings *settings;
    struct journal *journal;
    uv_timer_t timer;
    uint64_t limit_bytes; /* 0: no limit */
    enum ladder_step step;
    bool must_trim; /* the workers have freed memory: the next look calls malloc_trim */
};

/* To be called after the workers have started. */
void memory_open(struct memory *memory, struct loop *loop, struct worker_pool *pool,
                 struct front_settings *settings, struct journal *journal);
void memory_close(struct memory *memory);

/* Changes the limit; 0: no limit. */
void memory_set_limit(struct memory *memory, uint64_t limit_bytes);

/* Returns the counted bytes; 0 before memory_open. */
uint64_t memory_used(const struct memory *memory);

#endif
