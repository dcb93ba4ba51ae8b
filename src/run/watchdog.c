#include "run/watchdog.h"

#include <unistd.h>

#include "run/environment.h"
#include "run/sd_notify.h"

#define US_PER_MS 1000
/*
 * A worker has one of these parts of the watchdog's time to answer; two are as often as sd_watchdog_enabled(3) advises.
 */
#define PARTS 4

/* The watchdog's time in us, if it is meant for this process; without $WATCHDOG_PID it is. 0: none. */
static int64_t watchdog_us(void)
{
    int64_t pid = environment_number("WATCHDOG_PID", INT64_MAX);
    return pid == 0 || pid == getpid() ? environment_number("WATCHDOG_USEC", INT64_MAX) : 0;
}

static void on_timer(uv_timer_t *timer)
{
    struct watchdog *watchdog = timer->data;
    if (crew_beats(watchdog->crew))
        sd_notify_send("WATCHDOG=1");
}

void watchdog_start(struct watchdog *watchdog, struct loop *loop, struct crew *crew)
{
    int64_t period_us = watchdog_us();
    if (period_us == 0)
        return;
    uint64_t every_ms = (uint64_t)period_us / (PARTS * US_PER_MS) + 1;
    watchdog->is_wanted = true;
    watchdog->crew = crew;
    watchdog->timer.data = watchdog;
    uv_timer_init(&loop->uv, &watchdog->timer);
    uv_timer_start(&watchdog->timer, on_timer, 0, every_ms);
}

void watchdog_close(struct watchdog *watchdog)
{
    if (watchdog->is_wanted)
        uv_close((uv_handle_t *)&watchdog->timer, NULL);
}
