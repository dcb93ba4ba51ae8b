/*
 * How long commands took, as histograms: written by one worker, read by any thread (base/count.h).
 *
 * A client sees a reply only once it has been written, which happens for all replies of a turn together. Until then the
 * commands answered in this turn wait in `struct answered`; commands with the same times are one entry.
 */
#ifndef WEIR_LIMIT_TIMES_H
#define WEIR_LIMIT_TIMES_H

#include <stddef.h>
#include <stdint.h>

#include "base/histo.h"

struct times {
    struct histo request;  /* from when a command is the next of its client until its reply has been written */
    struct histo upstream; /* the part between sending it to Redis and the reply */
    struct histo overhead; /* request - upstream - delay - share: weir's own time */
    struct histo delay;    /* how long limits made commands wait; only of commands that had to */
    struct histo held;     /* `request` of those that had to ... */
    struct histo released; /* ... and the same without the wait: request - held + released is what is not deliberate */
    struct histo share;    /* how long clients waited for their fair share; only where they had to */
};

#define ANSWERED_MAX 256 /* entries; when there are more in one turn, times end with the reply's arrival */

struct answered {
    unsigned n;
    struct timed {
        uint64_t arrived_ns;  /* since when it was the next of its client */
        uint64_t sent_ns;     /* to Redis; 0: answered by weir */
        uint64_t answered_ns; /* when the reply arrived */
        uint32_t waited_us;   /* how long limits made it wait */
        uint32_t share_us;    /* how long it waited for its fair share */
        uint32_t n;           /* how many commands with these times */
    } entries[ANSWERED_MAX];
};

/* Add all entries to the histograms, with now_ns as the time at which they were written; then there are none. */
void answered_count(struct answered *answered, struct times *times, uint64_t now_ns);

/* timed->n commands have been answered; their replies have not been written yet. */
static inline void answered_add(struct answered *answered, struct times *times, const struct timed *timed)
{
    struct timed *last = answered->n > 0 ? &answered->entries[answered->n - 1] : NULL;
    if (last != NULL && last->arrived_ns == timed->arrived_ns && last->sent_ns == timed->sent_ns &&
        last->answered_ns == timed->answered_ns && last->waited_us == timed->waited_us &&
        last->share_us == timed->share_us) {
        last->n += timed->n;
        return;
    }
    if (answered->n == ANSWERED_MAX)
        answered_count(answered, times, timed->answered_ns);
    answered->entries[answered->n++] = *timed;
}

/* All replies have been written at written_ns. */
static inline void answered_written(struct answered *answered, struct times *times, uint64_t written_ns)
{
    if (answered->n > 0)
        answered_count(answered, times, written_ns);
}

#endif
