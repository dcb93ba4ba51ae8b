/*
 * Whatever is due at a time of one worker, and the one timer behind it.
 *
 * A heap by due time; an alarm is in it at most once. It goes off at its time or a little later, never early: the timer
 * counts whole milliseconds, and so is looked at again when it fires.
 */
#ifndef WEIR_NET_ALARMS_H
#define WEIR_NET_ALARMS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <uv.h>

#include "net/loop.h"

struct alarm {
    uint64_t due_ns;
    size_t place;                        /* in the heap, from 1; 0: it is not set */
    void (*on_due)(struct alarm *alarm); /* it is not set any more; it may set itself again */
};

struct alarms {
    struct loop *loop;
    uv_timer_t timer;
    struct alarm **heap; /* from index 1; heap[1] is due first */
    size_t n, room;
};

void alarms_init(struct alarms *alarms, struct loop *loop);

/* Not on one that is set. */
void alarm_set(struct alarms *alarms, struct alarm *alarm, uint64_t due_ns);

static inline bool alarm_is_set(const struct alarm *alarm)
{
    return alarm->place != 0;
}

/* Safe on one that is not set. */
void alarm_stop(struct alarms *alarms, struct alarm *alarm);

/* All that are set go off now; what they set themselves again stays. */
void alarms_ring(struct alarms *alarms);

/* Asynchronous, as a loop is closed; alarms_fini after the loop has ended. */
void alarms_close(struct alarms *alarms);
void alarms_fini(struct alarms *alarms);

#endif
