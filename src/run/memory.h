/*
 * Keeps weir below its memory-limit, as well as it can: counts what clients make it keep, ten times a second while there is
 * a limit, and tells the workers which step of the ladder (base/ladder.h) it is.
 *
 * Counted is what grows with clients and traffic: their buffers, they themselves, connections to Redis, subjects. The
 * system's own view of the process plays no part: it knows memory that has been given back and is not taken yet, which no
 * backpressure would change. Main thread.
 */
#ifndef WEIR_RUN_MEMORY_H
#define WEIR_RUN_MEMORY_H

#include "base/ladder.h"
#include "limit/journal.h"
#include "run/crew.h"

struct memory {
    struct crew *crew; /* NULL: not yet */
    struct front_settings *settings;
    struct journal *journal;
    uv_timer_t timer;
    uint64_t limit_bytes; /* 0: none */
    enum ladder_step step;
    bool must_trim; /* what the workers have given back is still the allocator's */
};

/* With the crew started. */
void memory_open(struct memory *memory, struct loop *loop, struct crew *crew, struct front_settings *settings,
                 struct journal *journal);
void memory_close(struct memory *memory);

/* Another limit, now. */
void memory_set_limit(struct memory *memory, uint64_t limit_bytes);

/* What is counted, in bytes; 0 before the crew is there. */
uint64_t memory_used(const struct memory *memory);

#endif
