#include "run/drain.h"

#include <inttypes.h>

#include "base/clock.h"
#include "base/log.h"

/*
 * How long silent clients may stay, and then those who have been told to go: long enough for a command that is on its
 * way, short enough for whoever waits for weir to stop.
 */
#define TICK_MS 1000
#define TICKS_IN_TIMEOUT 10

static void on_stage(void *arg, enum worker_stage stage)
{
    struct drain *drain = arg;
    if (stage == WORKER_IS_DEAF) {
        listening_shut(drain->listening);
        log_info("nobody is accepted any more");
    } else {
        log_info("all clients have gone");
        drain->on_over(drain->arg);
    }
}

static void on_deadline(uv_timer_t *timer)
{
    struct drain *drain = timer->data;
    log_warn("drain-timeout is over: %u clients that are in the middle of something are closed",
             atomic_load(drain->clients));
    drain->on_over(drain->arg);
}

static uint64_t tick_ms(uint64_t timeout_ns)
{
    uint64_t part_ms = timeout_ns / NS_PER_MS / TICKS_IN_TIMEOUT + 1;
    return part_ms < TICK_MS ? part_ms : TICK_MS;
}

void drain_begin(struct drain *drain, struct loop *loop, bool has_successor)
{
    if (drain->timeout_ns == 0) {
        drain->on_over(drain->arg);
        return;
    }
    drain->is_on = true;
    uv_timer_init(&loop->uv, &drain->deadline);
    drain->deadline.data = drain;
    uv_timer_start(&drain->deadline, on_deadline, drain->timeout_ns / NS_PER_MS, 0);
    if (!has_successor)
        listening_refuse(drain->listening);
    crew_drain(drain->crew, tick_ms(drain->timeout_ns), !has_successor, on_stage, drain);
}

void drain_close(struct drain *drain)
{
    if (drain->is_on)
        uv_close((uv_handle_t *)&drain->deadline, NULL);
}
