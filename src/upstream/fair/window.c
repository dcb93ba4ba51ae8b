#include "upstream/fair/window.h"

/* Work answered / time waited. A period with less waiting does not tell: one. */
static uint64_t speed_of(const struct send_window *window)
{
    if (window->waited_ns < WINDOW_PERIOD_NS / 2)
        return WINDOW_SPEED_ONE;
    uint64_t speed = window->done_ns * WINDOW_SPEED_ONE / window->waited_ns;
    speed = speed > WINDOW_SPEED_ONE ? speed : WINDOW_SPEED_ONE;
    return speed < WINDOW_SPEED_MOST ? speed : WINDOW_SPEED_MOST;
}

static void window_judge(struct send_window *window, uint64_t now_ns)
{
    uint64_t slack = WINDOW_SLACK_NS + window->more_ns;
    uint64_t period_ns = now_ns - window->began_ns;
    if (window->idle_ns > period_ns / WINDOW_DRY_MANY)
        slack += slack / 2;
    else if (window->idle_ns < period_ns / WINDOW_DRY_FEW)
        slack -= slack / WINDOW_SHRINK;
    slack = slack < WINDOW_SLACK_MOST_NS ? slack : WINDOW_SLACK_MOST_NS;
    window->more_ns = slack > WINDOW_SLACK_NS ? slack - WINDOW_SLACK_NS : 0;
    window->faster = (uint32_t)(speed_of(window) - WINDOW_SPEED_ONE);
    window->waited_ns = window->idle_ns = window->done_ns = 0;
    window->began_ns = now_ns;
}

static uint64_t beyond(uint64_t more, uint64_t less)
{
    return more > less ? more - less : 0;
}

/* All of the newest batch is known. */
static void end_batch(struct send_window *window, uint64_t now_ns)
{
    uint64_t work_ns = window->work_ns + window->work_ns / WINDOW_WORK_MORE;
    uint64_t unused_ns = window->is_dry ? beyond(window->gap_ns, work_ns) : 0;
    window->waited_ns += window->gap_ns;
    window->idle_ns += unused_ns > window->late_ns ? unused_ns : window->late_ns;
    window->done_ns += window->gap_ns > 0 ? window->work_ns : 0;
    if (now_ns - window->began_ns >= WINDOW_PERIOD_NS + window_trip_ns(window))
        window_judge(window, now_ns);
}

static void window_begin_batch(struct send_window *window, uint64_t sent_ns, uint64_t now_ns)
{
    uint64_t late_ns = sent_ns != 0 ? beyond(sent_ns + window_trip_ns(window), window->heard_ns) : 0;
    window->gap_ns = window->waits ? now_ns - window->heard_ns : 0;
    window->late_ns = late_ns < window->gap_ns ? late_ns : window->gap_ns;
    window->heard_ns = now_ns;
    window->work_ns = 0;
}

void window_answered(struct send_window *window, uint64_t sent_ns, uint64_t work_ns, bool waits, bool is_dry,
                     uint64_t now_ns)
{
    if (now_ns != window->heard_ns) {
        end_batch(window, now_ns);
        window_begin_batch(window, sent_ns, now_ns);
    }
    window->work_ns += work_ns;
    window->waits = waits;
    window->is_dry = is_dry;
}
