/*
 * What a subject's requests cost, found out by serving it alone.
 *
 * Redis answers what it has taken in at once, whoever's it is, and of such a batch nobody can tell whose took long. So now and
 * then the queue is let run dry, one of those that wait is served for about a quantum, and the others after that: the time
 * until its answers is the way's, which is known, and theirs. Redis has nothing to do for two ways meanwhile: PAUSE keeps that
 * to about one part in a hundred.
 *
 * On a machine whose processors are all wanted a lesson may take any time. What it says is asked again at once if it is much
 * more than was known, since a stall is not soon followed by another. And by how much lessons differ from one another decides
 * how large a difference between subjects must be to be believed: as it is for the subject of which they differ least, so that
 * nobody who now asks for this, now for that, makes others' costs unknown. And all of a subject's last lessons must agree.
 */
#include "upstream/schedule.h"

#define PAUSE 75       /* after a lesson, so many times as long as Redis had nothing to do for it; ... */
#define PAUSE_FIRST 10 /* ... less if it was the first of a subject */
#define PAUSE_MOST_NS (250 * NS_PER_MS) /* at most, and what two ways ask for */
#define QUEUE_PART 4                    /* a long queue that is let run dry costs one part in so many of it, at least */
#define LESSON_REQUESTS 8               /* in the first, and four times as many in each of the next ones */
#define LESSON_WAYS 2                   /* base times, at least, that Redis should work at it */
#define DOUBTFUL 2    /* that it costs more than so many times what was known is asked again at once, ... */
#define AGAIN 3       /* ... so often */
#define VAGUE_PART 2  /* by more than one part in so many it may have been less than it seems */
#define OTHERS_PART 4 /* a lesson beside which others sent more than one part in so many tells nothing */

/* Whose last one is the longest ago, of those that wait. */
static struct backlog *choose(const struct schedule *schedule)
{
    struct backlog *chosen = NULL;
    for (struct list *at = schedule->round.next; at != &schedule->round; at = at->next) {
        struct backlog *backlog = container_of(at, struct backlog, in_turn);
        if (chosen == NULL || backlog->taught_ns < chosen->taught_ns)
            chosen = backlog;
    }
    return chosen;
}

/* By how much lessons differ, of who is surest of those that wait. */
static double least_spread(const struct schedule *schedule)
{
    double least = SCHEDULE_SPREAD_UNKNOWN;
    for (struct list *at = schedule->round.next; at != &schedule->round; at = at->next) {
        const struct backlog *backlog = container_of(at, struct backlog, in_turn);
        if (backlog->n_told == BACKLOG_TOLD && backlog->spread < least)
            least = backlog->spread;
    }
    return least;
}

/* What is under way of those that wait, by what lessons have said, though it is not believed yet. */
static uint64_t work_under_way(const struct schedule *schedule)
{
    uint64_t work_ns = 0;
    for (struct list *at = schedule->round.next; at != &schedule->round; at = at->next) {
        const struct backlog *backlog = container_of(at, struct backlog, in_turn);
        uint64_t told_ns = backlog->told_ns[0];
        work_ns += backlog->under_way * (told_ns > backlog->learnt_ns ? told_ns : backlog->learnt_ns);
    }
    return work_ns > schedule->work_ns ? work_ns : schedule->work_ns;
}

bool schedule_lesson_begin(struct schedule *schedule, uint64_t now_ns)
{
    struct lesson *lesson = &schedule->lesson;
    if (!schedule_lesson_is_due(schedule, now_ns) || list_is_empty(&schedule->round))
        return false;
    *lesson = (struct lesson){.of = choose(schedule), .before_ns = work_under_way(schedule)};
    schedule->spread = least_spread(schedule);
    return true;
}

/* It still waits, and all that was sent before it has been answered, but for what is not counted on any more. */
bool schedule_lesson_can_go_on(const struct schedule *schedule)
{
    return schedule->lesson.of->counted > 0 && schedule->lesson.of->under_way == 0;
}

uint32_t schedule_lesson_size(const struct backlog *backlog)
{
    uint64_t ways_ns = LESSON_WAYS * window_base_ns(&backlog->schedule->window);
    uint64_t ns = ways_ns > SCHEDULE_QUANTUM_NS ? ways_ns : SCHEDULE_QUANTUM_NS;
    uint64_t n = ns / backlog->learnt_ns + 1;
    uint64_t most = (uint64_t)LESSON_REQUESTS << (2 * backlog->n_taught);
    return (uint32_t)(n < most ? n : most);
}

void schedule_lesson_sent(struct backlog *backlog, uint32_t n, uint64_t now_ns)
{
    struct schedule *schedule = backlog->schedule;
    struct lesson *lesson = &schedule->lesson;
    if (lesson->of == NULL)
        return;
    if (lesson->of != backlog) {
        lesson->others_ns += n * backlog->cost_ns;
        return;
    }
    if (lesson->sent == 0 && backlog->under_way > n)
        return; /* not all has been answered that was sent before it */
    if (lesson->sent == 0) {
        lesson->sent_ns = now_ns;
        lesson->huge_ns = schedule_huge_ns(schedule);
        lesson->others_ns = schedule->work_ns - backlog->work_ns;
    }
    lesson->sent += n;
    lesson->all_sent += n;
}

/* An answer that took little longer than the way always takes only tells that they cost no more than all of that. */
static uint64_t told_ns(const struct lesson *lesson, uint64_t took_ns)
{
    uint64_t base_ns = window_base_ns(&lesson->of->schedule->window);
    uint64_t most_ns = took_ns / lesson->sent;
    if (took_ns <= 2 * base_ns)
        return most_ns < lesson->of->learnt_ns ? most_ns : lesson->of->learnt_ns;
    schedule_note_spread(lesson->of, (took_ns - base_ns) / lesson->sent);
    return (took_ns - base_ns) / lesson->sent;
}

/* False: it has been asked often enough, or there is nothing left to ask. */
static bool ask_again(struct lesson *lesson)
{
    if (lesson->n_again == AGAIN || lesson->of->counted == 0)
        return false;
    lesson->n_again++;
    lesson->sent = 0;
    return true;
}

/* So much for each. True: it is asked again. */
static bool take(struct lesson *lesson, uint64_t cost_ns)
{
    struct backlog *backlog = lesson->of;
    bool is_doubtful = cost_ns > DOUBTFUL * backlog->learnt_ns;
    bool is_least = lesson->least_ns == 0 || cost_ns < lesson->least_ns;
    lesson->least_ns = is_least ? cost_ns : lesson->least_ns;
    if (is_doubtful && ask_again(lesson))
        return true;
    if (!is_doubtful || lesson->n_again == AGAIN)
        schedule_teach(backlog, is_doubtful ? lesson->least_ns : cost_ns);
    return false;
}

/* So much for each at most. */
static void take_less(const struct lesson *lesson, uint64_t most_ns)
{
    if (most_ns < lesson->of->learnt_ns)
        schedule_teach(lesson->of, most_ns);
}

/*
 * It has been answered after took_ns, or unseen_ns earlier, and Redis may have been at something huge, too. Where that is much
 * only the least counts for more than was known, and the most for less. True: it is asked again.
 */
static bool take_answer(struct lesson *lesson, uint64_t took_ns, uint64_t unseen_ns)
{
    const struct backlog *backlog = lesson->of;
    uint64_t known_ns = lesson->sent * backlog->learnt_ns + window_base_ns(&backlog->schedule->window);
    uint64_t vague_ns = unseen_ns + schedule_huge_ns(backlog->schedule) - lesson->huge_ns;
    if (vague_ns <= took_ns / VAGUE_PART)
        return take(lesson, told_ns(lesson, took_ns));
    if (took_ns > known_ns + vague_ns)
        return take(lesson, told_ns(lesson, took_ns - vague_ns));
    take_less(lesson, took_ns / lesson->sent);
    return false;
}

void schedule_lesson_answered(struct backlog *backlog, struct seen seen)
{
    struct schedule *schedule = backlog->schedule;
    struct lesson *lesson = &schedule->lesson;
    if (lesson->of != backlog || lesson->sent == 0 || backlog->under_way > 0)
        return;
    uint64_t took_ns = seen.now_ns - lesson->sent_ns;
    bool is_clear = lesson->others_ns <= took_ns / OTHERS_PART;
    if (is_clear && take_answer(lesson, took_ns - lesson->others_ns, seen.now_ns - seen.since_ns))
        return;
    schedule_lesson_end(schedule, seen.now_ns);
}

/* Redis may have worked at them all the same: then the others seem to have cost more. */
void schedule_lesson_forget(struct backlog *backlog, uint32_t n)
{
    struct lesson *lesson = &backlog->schedule->lesson;
    if (lesson->of != backlog || lesson->sent == 0)
        return;
    lesson->sent -= n < lesson->sent ? n : lesson->sent;
    if (lesson->sent == 0 || backlog->under_way == 0)
        schedule_lesson_end(backlog->schedule, backlog->moved_ns);
}

/* How long Redis has had nothing to do for it: what is not explained by work, but no less than that always costs. */
static uint64_t spent_ns(const struct schedule *schedule, uint64_t now_ns)
{
    const struct lesson *lesson = &schedule->lesson;
    const struct send_window *window = &schedule->window;
    uint64_t cost_ns = lesson->of->learnt_ns > lesson->least_ns ? lesson->of->learnt_ns : lesson->least_ns;
    uint64_t took_ns = now_ns - schedule->probe_ns;
    uint64_t known_ns = lesson->before_ns + lesson->all_sent * cost_ns;
    uint64_t least_ns = 2 * window_base_ns(window) + window->more_ns / QUEUE_PART;
    return took_ns > known_ns + least_ns ? took_ns - known_ns : least_ns;
}

void schedule_lesson_end(struct schedule *schedule, uint64_t now_ns)
{
    struct lesson *lesson = &schedule->lesson;
    bool is_first = lesson->of->n_taught == 0 || lesson->all_sent == 0;
    uint64_t pause_ns = (is_first ? PAUSE_FIRST : PAUSE) * spent_ns(schedule, now_ns);
    uint64_t most_ns = PAUSE_MOST_NS + 2 * PAUSE * window_base_ns(&schedule->window);
    lesson->next_at_ns = now_ns + (pause_ns < most_ns ? pause_ns : most_ns);
    lesson->of->taught_ns = now_ns;
    lesson->of = NULL;
    schedule->probe_ns = 0;
}
