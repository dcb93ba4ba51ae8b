/* How long the way is: the queue is let run dry for one request, which finds nothing before it. */
#include "upstream/schedule.h"

#define PROBE_NS (2 * NS_PER_MS)        /* for how long, and two windows, the queue is let run dry; ... */
#define SLOW_NS (10 * NS_PER_MS)        /* ... or from answer to answer, where commands take longer than that, ... */
#define SLOW_WAYS 4                     /* ... which is not the way's, ... */
#define HUGE_NS (2 * NS_PER_MS)         /* ... and not while Redis is at something huge for so long; ... */
#define PROBE_MOST_NS (1 * NS_PER_S)    /* ... but no longer than that */
#define GAP_DECAY_NS (100 * NS_PER_MS)  /* in which a gap is forgotten by half, about */
#define LESSON_MOST_NS (20 * NS_PER_MS) /* and so much longer once a lesson's requests have been sent */
#define ALONE_MOST 4                    /* requests that may tell how long the way is */

void schedule_probe_begin(struct schedule *schedule, uint64_t now_ns)
{
    if (schedule->probe_ns == 0 && window_must_probe(&schedule->window, now_ns))
        schedule_probe_set(schedule, now_ns);
}

void schedule_probe_set(struct schedule *schedule, uint64_t now_ns)
{
    schedule->probe_ns = now_ns;
    schedule->huge_ns = schedule_huge_ns(schedule);
}

static void end(struct schedule *schedule, uint64_t now_ns)
{
    if (schedule->probe_ns == 0 || schedule->lesson.of != NULL)
        return;
    window_probed(&schedule->window, now_ns - schedule->probe_ns, now_ns);
    schedule->probe_ns = 0;
}

/*
 * Was it little, and the only thing that was sent since? Then the way is no longer than that, whatever it cost; and where
 * that is known, and not most of it, the rest is the way's.
 */
void schedule_probe_answered(const struct backlog *backlog, uint32_t n, uint64_t took_ns, uint64_t work_ns,
                             uint64_t now_ns)
{
    struct schedule *schedule = backlog->schedule;
    if (n > ALONE_MOST || schedule->work_ns > 0)
        return;
    window_note_answer(&schedule->window, took_ns);
    if (backlog->lessons < SCHEDULE_LESSONS || work_ns > took_ns / 2)
        return;
    window_note(&schedule->window, took_ns - work_ns, now_ns);
    end(schedule, now_ns);
}

void schedule_note_heard(struct schedule *schedule, uint64_t now_ns)
{
    uint64_t gap_ns = now_ns - schedule->heard_ns;
    uint64_t left_ns = gap_ns < GAP_DECAY_NS ? schedule->gap_ns - schedule->gap_ns / 2 * gap_ns / GAP_DECAY_NS : 0;
    schedule->gap_ns = gap_ns > left_ns ? gap_ns : left_ns;
    schedule->heard_ns = now_ns;
}

/* Commands that take long are answered seldom: what is under way is waited for all the same, or it would never be known. */
static bool is_slow(const struct schedule *schedule)
{
    return schedule->gap_ns > SLOW_NS && schedule->gap_ns > SLOW_WAYS * window_base_ns(&schedule->window);
}

void schedule_probe_look(struct schedule *schedule, uint64_t now_ns)
{
    if (schedule->probe_ns == 0)
        return;
    uint64_t since_ns = schedule->probe_ns;
    uint64_t most_ns = PROBE_NS + 2 * window_size_ns(&schedule->window);
    if (is_slow(schedule)) {
        since_ns = schedule->heard_ns > since_ns ? schedule->heard_ns : since_ns;
        most_ns += 2 * schedule->gap_ns;
    }
    if (schedule->lesson.of != NULL && schedule->lesson.sent > 0)
        most_ns += LESSON_MOST_NS;
    bool is_late = now_ns - since_ns > most_ns || now_ns - schedule->probe_ns > PROBE_MOST_NS;
    if (!is_late && schedule_huge_ns(schedule) - schedule->huge_ns < HUGE_NS)
        return;
    if (schedule->lesson.of != NULL)
        schedule_lesson_end(schedule, now_ns);
    else
        end(schedule, now_ns);
}
