/*
 * Keeps weir below memory-limit as far as possible. While a limit is set, adds up the memory of
 * clients ten times a second. Tells the workers which measures are in force (base/ladder.h).
 *
 * Counts the memory that grows with clients and traffic: clients, their buffers, lanes, subjects.
 * The resident size of the process is not used. The resident size includes freed memory that the
 * allocator keeps, and back-pressure does not reduce that part. Main thread.
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
