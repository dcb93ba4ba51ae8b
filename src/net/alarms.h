/*
 * Timers by the nanosecond, of one worker: any number of alarms on one libuv timer.
 *
 * A heap by due time; an alarm is in it at most once. It goes off at its time or up to a millisecond later, never
 * early. Room in the heap is reserved when an alarm is made, so that setting it cannot fail.
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
    size_t index;                        /* in the heap, from 1; 0: not set */
    void (*on_due)(struct alarm *alarm); /* called once it is no longer set; may set it again */
    /*
     * NULL; or asked when its time has come: when is it due, as things stand now? If that is later it goes off then, so
     * that alarms go off in the order of these times, however late the timer is.
     */
    uint64_t (*due_by_now)(struct alarm *alarm);
};

struct alarms {
    struct loop *loop;
    uv_timer_t timer;
    struct alarm **heap; /* from index 1; heap[1] is due first */
    size_t n, room;
    size_t reserved; /* how many alarms may be set at a time; n <= reserved < room */
};

/* At the start; with room for the `n` alarms that exist as long as it does. */
void alarms_init(struct alarms *alarms, struct loop *loop, size_t n);

/* Reserve room for `n` more alarms, or give up as much. False: out of memory. */
__attribute__((warn_unused_result)) bool alarms_reserve(struct alarms *alarms, size_t n);
void alarms_release(struct alarms *alarms, size_t n);

/* `alarm` is not set, and room for it is reserved. */
void alarm_set(struct alarms *alarms, struct alarm *alarm, uint64_t due_ns);

static inline bool alarm_is_set(const struct alarm *alarm)
{
    return alarm->index != 0;
}

/* Safe on one that is not set. */
void alarm_stop(struct alarms *alarms, struct alarm *alarm);

/* Closes the timer, asynchronously; alarms_fini after the loop has ended. */
void alarms_close(struct alarms *alarms);
void alarms_fini(struct alarms *alarms);

#endif
