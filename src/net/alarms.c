#include "net/alarms.h"

#include <assert.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/mem.h"

#define FIRST_ROOM 64

static void alarms_put(struct alarms *alarms, size_t index, struct alarm *alarm)
{
    alarms->heap[index] = alarm;
    alarm->index = index;
}

static void rise(struct alarms *alarms, size_t index)
{
    struct alarm *alarm = alarms->heap[index];
    for (; index > 1 && alarms->heap[index / 2]->due_ns > alarm->due_ns; index /= 2)
        alarms_put(alarms, index, alarms->heap[index / 2]);
    alarms_put(alarms, index, alarm);
}

static void sink(struct alarms *alarms, size_t index)
{
    struct alarm *alarm = alarms->heap[index];
    for (;;) {
        size_t child = 2 * index;
        if (child < alarms->n && alarms->heap[child + 1]->due_ns < alarms->heap[child]->due_ns)
            child++;
        if (child > alarms->n || alarms->heap[child]->due_ns >= alarm->due_ns)
            break;
        alarms_put(alarms, index, alarms->heap[child]);
        index = child;
    }
    alarms_put(alarms, index, alarm);
}

void alarm_stop(struct alarms *alarms, struct alarm *alarm)
{
    size_t index = alarm->index;
    if (index == 0)
        return;
    alarm->index = 0;
    struct alarm *last = alarms->heap[alarms->n--];
    if (last == alarm)
        return;
    alarms_put(alarms, index, last);
    rise(alarms, index);
    sink(alarms, last->index);
}

static void alarms_on_timer(uv_timer_t *timer);

/* Starts the timer for the first alarm. The time is rounded up to whole milliseconds. */
static void alarms_arm(struct alarms *alarms)
{
    if (alarms->n == 0) {
        uv_timer_stop(&alarms->timer);
        return;
    }
    uint64_t now_ns = clock_ns();
    uint64_t due_ns = alarms->heap[1]->due_ns;
    uint64_t wait_ms = due_ns > now_ns ? ns_to_ms_up(due_ns - now_ns) : 0;
    uv_update_time(&alarms->loop->uv);
    uv_timer_start(&alarms->timer, alarms_on_timer, wait_ms, 0);
}

/* Fires the first alarm, unless due_by_now says that the alarm is due later. */
static void ring_first(struct alarms *alarms)
{
    struct alarm *alarm = alarms->heap[1];
    uint64_t due_ns = alarm->due_by_now != NULL ? alarm->due_by_now(alarm) : alarm->due_ns;
    if (due_ns > alarm->due_ns) {
        alarm->due_ns = due_ns;
        sink(alarms, 1);
        return;
    }
    alarm_stop(alarms, alarm);
    alarm->on_due(alarm);
}

static void alarms_on_timer(uv_timer_t *timer)
{
    struct alarms *alarms = timer->data;
    uint64_t now_ns = clock_ns();
    alarms->loop->now_ns = now_ns;
    while (alarms->n > 0 && alarms->heap[1]->due_ns <= now_ns)
        ring_first(alarms);
    alarms_arm(alarms);
}

void alarm_set(struct alarms *alarms, struct alarm *alarm, uint64_t due_ns)
{
    assert(alarms->n < alarms->reserved);
    alarm->due_ns = due_ns;
    alarms_put(alarms, ++alarms->n, alarm);
    rise(alarms, alarm->index);
    if (alarm->index == 1)
        alarms_arm(alarms);
}

bool alarms_reserve(struct alarms *alarms, size_t n)
{
    size_t room = alarms->room;
    while (alarms->reserved + n >= room)
        room *= 2;
    if (room > alarms->room) {
        struct alarm **heap = realloc(alarms->heap, room * sizeof(struct alarm *));
        if (heap == NULL)
            return false;
        alarms->heap = heap;
        alarms->room = room;
    }
    alarms->reserved += n;
    return true;
}

void alarms_release(struct alarms *alarms, size_t n)
{
    assert(alarms->reserved >= alarms->n + n);
    alarms->reserved -= n;
}

void alarms_init(struct alarms *alarms, struct loop *loop, size_t n)
{
    *alarms = (struct alarms){.loop = loop, .room = FIRST_ROOM, .reserved = n};
    assert(n < FIRST_ROOM);
    alarms->heap = mem_zalloc(FIRST_ROOM, sizeof(struct alarm *));
    uv_timer_init(&loop->uv, &alarms->timer);
    alarms->timer.data = alarms;
}

void alarms_close(struct alarms *alarms)
{
    uv_close((uv_handle_t *)&alarms->timer, NULL);
}

void alarms_fini(struct alarms *alarms)
{
    free(alarms->heap);
}
