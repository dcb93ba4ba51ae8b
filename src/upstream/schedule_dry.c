/* Whether Redis runs dry while riders wait for their turn: then the window is too small. */
#include "upstream/schedule.h"

#define NEARLY 16                /* one part in so many of the window is nearly nothing */
#define HUGE_PART 2              /* of the time at something huge, if not more, tells nothing */
#define SAY_NS (250 * NS_PER_US) /* of work, before other workers are told of it */

/* How much of other workers' Redis has done: it is not idle while it works for them. */
static uint64_t theirs_ns(const struct schedule *schedule)
{
    return atomic_load_explicit(&schedule->contention->worked_ns, memory_order_relaxed) - schedule->said_ns;
}

static void say(struct schedule *schedule, uint64_t worked_ns)
{
    schedule->unsaid_ns += worked_ns;
    if (schedule->unsaid_ns < SAY_NS)
        return;
    atomic_fetch_add_explicit(&schedule->contention->worked_ns, schedule->unsaid_ns, memory_order_relaxed);
    schedule->said_ns += schedule->unsaid_ns;
    schedule->unsaid_ns = 0;
}

/* Who was woken in this turn for more has waited until now. */
static bool does_anybody_wait(const struct schedule *schedule, uint64_t now_ns)
{
    return !list_is_empty(&schedule->round) || schedule->n_crowding > 0 || schedule->freed_ns == now_ns ||
           (!list_is_empty(&schedule->low) && !schedule_are_others_waiting(schedule));
}

void schedule_watch_begin(struct schedule *schedule, uint64_t now_ns)
{
    if (schedule->watched_ns != 0)
        return;
    schedule->watched_ns = now_ns;
    schedule->watched_huge_ns = schedule_huge_ns(schedule);
    schedule->theirs_ns = theirs_ns(schedule);
    schedule->idle_ns = 0;
}

void schedule_watch_sent(struct schedule *schedule)
{
    if (schedule->is_dry && schedule->work_ns > schedule_window_ns(schedule, 0) / NEARLY)
        schedule->is_dry = false;
}

void schedule_watch(struct schedule *schedule, uint64_t worked_ns, uint64_t now_ns)
{
    bool was_dry = schedule->is_dry;
    uint64_t huge_ns = schedule_huge_ns(schedule);
    uint64_t theirs = theirs_ns(schedule);
    say(schedule, worked_ns);
    schedule->is_dry = schedule->work_ns <= schedule_window_ns(schedule, 0) / NEARLY;
    if (schedule->watched_ns == 0)
        return;
    bool is_waiting = does_anybody_wait(schedule, now_ns);
    bool is_at_huge = huge_ns - schedule->watched_huge_ns > (now_ns - schedule->watched_ns) / HUGE_PART;
    if (schedule->probe_ns == 0 && !is_at_huge)
        window_watch(&schedule->window, now_ns - schedule->watched_ns, worked_ns + theirs - schedule->theirs_ns,
                     schedule->idle_ns, is_waiting && schedule->is_dry && !was_dry);
    schedule->idle_ns = 0;
    schedule->watched_ns = is_waiting ? now_ns : 0;
    schedule->watched_huge_ns = huge_ns;
    schedule->theirs_ns = theirs;
}
