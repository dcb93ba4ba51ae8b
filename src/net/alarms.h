/*
 * Whatever is due at a time of one worker, and the one timer behind it.
 *
 * A heap by due time; an alarm is in it at most once. It goes off at its time or a little later, never early: the timer
 * counts whole milliseconds, and so is looked at again when it fires. Whoever makes an alarm reserves its place in the
 * heap, so that to set it needs no memory: nobody waits for what could not be set.
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
    size_t index;                        /* in the heap, from 1; 0: it is not set */
    void (*on_due)(struct alarm *alarm); /* it is not set any more; it may set itself again */
};

struct alarms {
    struct loop *loop;
    uv_timer_t timer;
    struct alarm **heap; /* from index 1; heap[1] is due first */
    size_t n, room;
    size_t reserved; /* alarms that may be set; n <= reserved < room */
};

/* At the start. `n` of its alarms are there for as long as it is. */
void alarms_init(struct alarms *alarms, struct loop *loop, size_t n);

/* `n` more alarms may be set, or as many less. False: out of memory. */
__attribute__((warn_unused_result)) bool alarms_reserve(struct alarms *alarms, size_t n);
void alarms_release(struct alarms *alarms, size_t n);

/* Not on one that is set; it has been reserved for. */
void alarm_set(struct alarms *alarms, struct alarm *alarm, uint64_t due_ns);

static inline bool alarm_is_set(const struct alarm *alarm)
{
    return alarm->index != 0;
}

/* Safe on one that is not set. */
void alarm_stop(struct alarms *alarms, struct alarm *alarm);

/* All that are set go off now; one that sets itself again, and only itself, stays. */
void alarms_ring(struct alarms *alarms);

/* Asynchronous, as a loop is closed; alarms_fini after the loop has ended. */
void alarms_close(struct alarms *alarms);
void alarms_fini(struct alarms *alarms);

#endif
