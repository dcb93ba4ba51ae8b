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
     * Called when the alarm is due; returns the present due time. If the present due time is later,
     * the alarm fires at that time instead. Alarms therefore fire in the order of present due
     * times, even if the timer is late. May be NULL.
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

/* Initialises the heap with room for `n` alarms, which is never released before alarms_fini. */
void alarms_init(struct alarms *alarms, struct loop *loop, size_t n);

/*
 * alarms_reserve reserves room for `n` more alarms, and returns false if out of memory.
 * alarms_release releases the room of `n` alarms.
 */
__attribute__((warn_unused_result)) bool alarms_reserve(struct alarms *alarms, size_t n);
void alarms_release(struct alarms *alarms, size_t n);

/* Sets an alarm that is not set. Room for the alarm must be reserved. */
void alarm_set(struct alarms *alarms, struct alarm *alarm, uint64_t due_ns);

static inline bool alarm_is_set(const struct alarm *alarm)
{
    return alarm->index != 0;
}

/* Clears the alarm. Safe if the alarm is not set. */
void alarm_stop(struct alarms *alarms, struct alarm *alarm);

/* Closes the timer asynchronously. alarms_fini is called after the loop has ended. */
void alarms_close(struct alarms *alarms);
void alarms_fini(struct alarms *alarms);

#endif
