/*
 * Keeps weir below memory-limit, as well as possible: adds up what clients make it allocate, ten times a second while
 * there is a limit, and tells the workers which step of base/ladder.h holds.
 *
 * Counted is what grows with clients and traffic: clients, their buffers, lanes, subjects. The process' resident size
 * is not used: it includes freed memory that the allocator still keeps, which no backpressure would reduce. Main
 * thread.
 */
#ifndef WEIR_RUN_MEMORY_H
#define WEIR_RUN_MEMORY_H

#include "base/ladder.h"
#include "limit/figures/journal.h"
#include "run/crew.h"

struct memory {
    struct crew *crew; /* NULL: not yet */
    struct front_settings *settings;
    struct journal *journal;
    uv_timer_t timer;
    uint64_t limit_bytes; /* 0: none */
    enum ladder_step step;
    bool must_trim; /* the workers have freed memory: call malloc_trim */
};

/* After the crew has been started. */
void memory_open(struct memory *memory, struct loop *loop, struct crew *crew, struct front_settings *settings,
                 struct journal *journal);
void memory_close(struct memory *memory);

/* Change the limit; 0: none. */
void memory_set_limit(struct memory *memory, uint64_t limit_bytes);

/* What is counted, in bytes; 0 before memory_open. */
uint64_t memory_used(const struct memory *memory);

#endif
