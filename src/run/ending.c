#include "run/ending.h"

#include "base/clock.h"

#define AGAIN_MS 1000 /* until what could not end, for there was no memory, is tried again */

static void on_end(uv_timer_t *timer);

/* What has ended already is looked at after late_ms. */
static void await(struct ending *ending, uint64_t late_ms)
{
    uint64_t now_ns = clock_ns(), next_ns = governor_next_end(ending->governor);
    if (next_ns == 0 || uv_is_closing((uv_handle_t *)&ending->timer))
        return;
    uv_update_time(ending->timer.loop);
    uv_timer_start(&ending->timer, on_end, next_ns > now_ns ? ns_to_ms_up(next_ns - now_ns) : late_ms, 0);
}

static void on_end(uv_timer_t *timer)
{
    struct ending *ending = timer->data;
    governor_end(ending->governor, clock_ns());
    await(ending, AGAIN_MS);
}

void ending_open(struct ending *ending, struct loop *loop, struct governor *governor)
{
    ending->governor = governor;
    uv_timer_init(&loop->uv, &ending->timer);
    ending->timer.data = ending;
}

void ending_await(struct ending *ending)
{
    await(ending, 0);
}

void ending_close(struct ending *ending)
{
    uv_close((uv_handle_t *)&ending->timer, NULL);
}
