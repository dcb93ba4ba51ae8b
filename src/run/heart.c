#include "run/heart.h"

#include <unistd.h>

#include "run/environment.h"
#include "run/notify.h"

#define US_PER_MS 1000
/* A worker has one of these parts of the watchdog's time to answer; two are as often as sd_watchdog_enabled(3) advises. */
#define PARTS 4

/* Meant for this process? Without $WATCHDOG_PID it is for whoever reads it. */
static int64_t watchdog_us(void)
{
    int64_t pid = environment_number("WATCHDOG_PID", INT64_MAX);
    return pid == 0 || pid == getpid() ? environment_number("WATCHDOG_USEC", INT64_MAX) : 0;
}

static void on_timer(uv_timer_t *timer)
{
    struct heart *heart = timer->data;
    if (crew_beats(heart->crew))
        notify("WATCHDOG=1");
}

void heart_start(struct heart *heart, struct loop *loop, struct crew *crew)
{
    int64_t period_us = watchdog_us();
    if (period_us == 0)
        return;
    uint64_t every_ms = (uint64_t)period_us / (PARTS * US_PER_MS) + 1;
    heart->is_wanted = true;
    heart->crew = crew;
    heart->timer.data = heart;
    uv_timer_init(&loop->uv, &heart->timer);
    uv_timer_start(&heart->timer, on_timer, 0, every_ms);
}

void heart_close(struct heart *heart)
{
    if (heart->is_wanted)
        uv_close((uv_handle_t *)&heart->timer, NULL);
}
