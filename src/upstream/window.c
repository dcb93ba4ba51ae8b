#include "upstream/window.h"

#define DRY_MANY 16     /* more than one part in so many of the time, and the queue is made longer; ... */
#define DRY_FEW 32      /* ... less, and it is made shorter ... */
#define SHORTER 16U     /* ... by one part in so many */
#define SPARSE 2        /* so many times these parts while somebody sends little */
#define DRY_HARDLY 256  /* less than one part in so many, ... */
#define SLACK 4         /* ... and so often in a row: then it is made shorter by twice as much each time, ... */
#define SLACK_DOUBLED 3 /* ... so often */
#define WORK_MORE 8     /* one part in so many of the work may not have been known of */

void window_note(struct send_window *window, uint64_t took_ns, uint64_t now_ns)
{
    uint64_t most = 2 * window_base_ns(window) + WINDOW_BASE_NS; /* one that came late is no long way yet */
    uint64_t took = took_ns < most ? took_ns : most;
    took = took > 0 ? took : 1;
    if (now_ns - window->epoch_ns >= WINDOW_EPOCH_NS) {
        bool is_next = now_ns - window->epoch_ns < 2 * WINDOW_PROBE_MOST_NS;
        window->least_ns[1] = is_next ? window->least_ns[0] : 0;
        window->least_ns[0] = 0;
        window->epoch_ns = now_ns;
    }
    if (window->least_ns[0] == 0 || took < window->least_ns[0])
        window->least_ns[0] = took;
    if (window->probe_at_ns < now_ns + WINDOW_PROBE_NS)
        window->probe_at_ns = now_ns + WINDOW_PROBE_NS;
}

void window_note_greeting(struct send_window *window, uint64_t took_ns)
{
    if (took_ns == 0 || window->greeting_ns == 0 || took_ns < window->greeting_ns)
        window->greeting_ns = took_ns < WINDOW_GREETED_MOST_NS ? took_ns : WINDOW_GREETED_MOST_NS;
}

void window_note_answer(struct send_window *window, uint64_t took_ns)
{
    window_note_greeting(window, took_ns + WINDOW_GREETING_NS - WINDOW_BASE_NS);
}

void window_note_ping(struct send_window *window, uint64_t took_ns)
{
    window->ping_ns = took_ns < WINDOW_PINGED_MOST_NS ? took_ns : WINDOW_PINGED_MOST_NS;
}

void window_probed(struct send_window *window, uint64_t spent_ns, uint64_t now_ns)
{
    uint64_t pause_ns = spent_ns * WINDOW_PROBE_PART;
    pause_ns = pause_ns > WINDOW_PROBE_NS ? pause_ns : WINDOW_PROBE_NS;
    window->probe_at_ns = now_ns + (pause_ns < WINDOW_PROBE_MOST_NS ? pause_ns : WINDOW_PROBE_MOST_NS);
}

static uint64_t beyond(uint64_t took_ns, uint64_t near_ns)
{
    return took_ns > near_ns ? took_ns - near_ns : 0;
}

/* Where a greeting, or what Redis was asked lately, took longer than it does nearby that is the way's. */
static uint64_t guessed_ns(const struct send_window *window)
{
    uint64_t by_greeting = beyond(window->greeting_ns, WINDOW_GREETING_NS);
    uint64_t by_ping = beyond(window->ping_ns, WINDOW_PING_NS);
    return WINDOW_BASE_NS + (by_greeting > by_ping ? by_greeting : by_ping);
}

uint64_t window_base_ns(const struct send_window *window)
{
    uint64_t now = window->least_ns[0];
    uint64_t before = window->least_ns[1];
    if (now == 0 && before == 0)
        return guessed_ns(window);
    if (now == 0 || before == 0)
        return now + before;
    return now < before ? now : before;
}

/* By one part in how many. */
static uint64_t shorter(const struct send_window *window)
{
    return window->n_slack <= SLACK ? SHORTER : SHORTER >> (window->n_slack - SLACK);
}

static void note_slack(struct send_window *window)
{
    if (window->dry_ns >= window->waited_ns / DRY_HARDLY)
        window->n_slack = 0;
    else if (window->n_slack < SLACK + SLACK_DOUBLED)
        window->n_slack++;
}

static void judge(struct send_window *window)
{
    uint64_t queue = WINDOW_QUEUE_NS + window->more_ns;
    uint64_t part = window->n_sparse > 0 ? SPARSE * window->waited_ns : window->waited_ns;
    if (window->dry_ns > window->waited_ns / 2)
        queue *= 2;
    else if (window->dry_ns > part / DRY_MANY)
        queue += queue / 2;
    else if (window->dry_ns < part / DRY_FEW)
        queue -= queue / shorter(window);
    uint64_t full = window->turn_ns > WINDOW_QUEUE_FULL_NS ? window->turn_ns : WINDOW_QUEUE_FULL_NS;
    uint64_t most = window->is_sender_full && full < WINDOW_QUEUE_MOST_NS ? full : WINDOW_QUEUE_MOST_NS;
    queue = queue < most ? queue : most;
    window->more_ns = queue > WINDOW_QUEUE_NS ? queue - WINDOW_QUEUE_NS : 0;
    note_slack(window);
    window->n_sparse -= window->n_sparse > 0;
    window->waited_ns = window->dry_ns = 0;
    window->n_answers = 0;
}

/*
 * All that was answered at one time is known. If that left nothing under way Redis has had nothing to do: at least for the
 * base time; and where that was much longer it shows in how little work was done. A little more of it is taken for granted,
 * since costs are only about known.
 */
static void end_answer(struct send_window *window)
{
    const struct window_news *last = &window->last;
    uint64_t work = last->worked_ns + last->worked_ns / WORK_MORE;
    uint64_t idle = last->after_ns > work ? last->after_ns - work : 0;
    uint64_t base = window_base_ns(window);
    uint64_t seen = last->idle_ns < last->after_ns ? last->idle_ns : last->after_ns;
    window->waited_ns += last->after_ns;
    window->dry_ns += !last->is_dry ? seen : idle > base ? idle : base;
    window->n_answers++;
    if (window->waited_ns >= WINDOW_PERIOD_NS && window->n_answers >= WINDOW_PERIOD_ANSWERS)
        judge(window);
}

void window_watch(struct send_window *window, uint64_t waited_ns, uint64_t worked_ns, uint64_t idle_ns, bool is_dry)
{
    if (waited_ns > 0) {
        end_answer(window);
        window->last = (struct window_news){.after_ns = waited_ns};
    }
    window->last.worked_ns += worked_ns;
    window->last.idle_ns += idle_ns;
    window->last.is_dry |= is_dry;
}
