/* How long the way is: the queue is let run dry for one request, which finds nothing before it. */
#include "upstream/schedule.h"

#define PROBE_NS (2 * NS_PER_MS)        /* for how long, and two windows, the queue is let run dry */
#define LESSON_MOST_NS (20 * NS_PER_MS) /* and so much longer once a lesson's requests have been sent */
#define ALONE_MOST 4                    /* requests that may tell how long the way is */

void schedule_probe_begin(struct schedule *schedule, uint64_t now_ns)
{
    if (schedule->probe_ns == 0 && window_must_probe(&schedule->window, now_ns))
        schedule->probe_ns = now_ns;
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

void schedule_probe_look(struct schedule *schedule, uint64_t now_ns)
{
    if (schedule->probe_ns == 0)
        return;
    uint64_t most_ns = PROBE_NS + 2 * window_size_ns(&schedule->window);
    if (schedule->lesson.of != NULL && schedule->lesson.sent > 0)
        most_ns += LESSON_MOST_NS;
    if (now_ns - schedule->probe_ns <= most_ns)
        return;
    if (schedule->lesson.of != NULL)
        schedule_lesson_end(schedule, now_ns);
    else
        end(schedule, now_ns);
}
