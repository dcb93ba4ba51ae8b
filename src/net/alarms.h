/*
 * Timers with nanosecond times, for one worker: any number of alarms on one libuv timer.
 *
 * The alarms form a heap by due time. An alarm fires up to a millisecond after its time, and never
 * early. Room in the heap is reserved when an alarm is created: setting an alarm cannot fail.
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
    size_t index; /* in the heap, from 1; 0: not set */
    /* called when the alarm fires; the alarm is not set during the call, and may be set again */
    void (*on_due)(struct alarm *alarm);
    /*
     * May be NULL. Called when the alarm is due: returns the due time by current knowledge. If the
     * returned time is later, the alarm fires at the returned time. Alarms thus fire in the order
     * of the returned times, however late the timer is.
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

/* Reserves room for the `n` alarms that last as long as `alarms`. */
void alarms_init(struct alarms *alarms, struct loop *loop, size_t n);

/*
 * Reserve room for `n` more alarms, or release the room of `n` alarms. alarms_reserve returns false
 * if out of memory.
 */
__attribute__((warn_unused_result)) bool alarms_reserve(struct alarms *alarms, size_t n);
void alarms_release(struct alarms *alarms, size_t n);

/* `alarm` must not be set, and room for it must be reserved. */
void alarm_set(struct alarms *alarms, struct alarm *alarm, uint64_t due_ns);

static inline bool alarm_is_set(const struct alarm *alarm)
{
    return alarm->index != 0;
}

/* Safe if the alarm is not set. */
void alarm_stop(struct alarms *alarms, struct alarm *alarm);

/* Closes the timer asynchronously. alarms_fini is called after the loop has ended. */
void alarms_close(struct alarms *alarms);
void alarms_fini(struct alarms *alarms);

#endif
