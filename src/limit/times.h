/*
 * How long commands took, as histograms: counted by one worker, read by anybody (base/count.h).
 *
 * A command's reply is only visible once it has been written, and that is done for all of a turn together. So what has
 * been answered waits in `struct answered` until then, and commands alike in all that is measured are one entry.
 */
#ifndef WEIR_LIMIT_TIMES_H
#define WEIR_LIMIT_TIMES_H

#include <stddef.h>
#include <stdint.h>

#include "base/histo.h"

struct times {
    struct histo request;  /* from when a command is the next of its client until its reply has been written */
    struct histo upstream; /* of that, from its being sent until its answer has come */
    struct histo overhead; /* the rest without the delays: weir's own time */
    struct histo delay;    /* what limits have made a command wait; of those that had to */
};

#define ANSWERED_MAX 256 /* entries; more in one turn are measured up to their answer */

struct answered {
    unsigned n;
    struct timed {
        uint64_t arrived_ns;  /* since when it was the next of its client */
        uint64_t sent_ns;     /* 0: it was answered by weir */
        uint64_t answered_ns; /* when the answer was here */
        uint32_t waited_us;   /* what limits have made it wait */
        uint32_t n;           /* how many such commands */
    } entries[ANSWERED_MAX];
};

/* For answered_add: all that there are, measured up to now_ns. */
void answered_count(struct answered *answered, struct times *times, uint64_t now_ns);

/* Their replies wait to be written. */
static inline void answered_add(struct answered *answered, struct times *times, const struct timed *timed)
{
    struct timed *last = answered->n > 0 ? &answered->entries[answered->n - 1] : NULL;
    if (last && last->arrived_ns == timed->arrived_ns && last->sent_ns == timed->sent_ns &&
        last->answered_ns == timed->answered_ns && last->waited_us == timed->waited_us) {
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
