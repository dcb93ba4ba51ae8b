#include "upstream/fair/window.h"

static void judge(struct send_window *window)
{
    uint64_t slack = WINDOW_SLACK_NS + window->more_ns;
    if (window->idle_ns > window->waited_ns / WINDOW_DRY_MANY)
        slack += slack / 2;
    else if (window->idle_ns < window->waited_ns / WINDOW_DRY_FEW)
        slack -= slack / WINDOW_SHRINK;
    slack = slack < WINDOW_SLACK_MOST_NS ? slack : WINDOW_SLACK_MOST_NS;
    window->more_ns = slack > WINDOW_SLACK_NS ? slack - WINDOW_SLACK_NS : 0;
    window->waited_ns = window->idle_ns = 0;
}

static uint64_t beyond(uint64_t more, uint64_t less)
{
    return more > less ? more - less : 0;
}

/* All of the newest batch is known. */
static void end_batch(struct send_window *window)
{
    uint64_t work_ns = window->work_ns + window->work_ns / WINDOW_WORK_MORE;
    uint64_t unused_ns = window->is_dry ? beyond(window->gap_ns, work_ns) : 0;
    window->waited_ns += window->gap_ns;
    window->idle_ns += unused_ns > window->late_ns ? unused_ns : window->late_ns;
    if (window->waited_ns >= WINDOW_PERIOD_NS + window_trip_ns(window))
        judge(window);
}

static void begin_batch(struct send_window *window, uint64_t sent_ns, uint64_t now_ns)
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
        end_batch(window);
        begin_batch(window, sent_ns, now_ns);
    }
    window->work_ns += work_ns;
    window->waits = waits;
    window->is_dry = is_dry;
}
