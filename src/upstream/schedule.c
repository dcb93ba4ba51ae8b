#include "upstream/schedule.h"

#include <assert.h>

#define UNKNOWN_MOST 32 /* requests of somebody none of whose has been answered */
/* What a transaction, or what stood behind a blocking command, has taken is paid for up to this. */
#define DEBT_MOST_NS (int64_t)(20 * NS_PER_MS)
#define SPARSE_CREDIT 8 /* who has credit for one part in so many of a quantum has it because it sends little */
#define BUSY_FACTOR 32  /* patience with a server that answers nobody */
#define PATIENCE_MOST_NS (5 * NS_PER_S)

/* Where the window has grown, to wake somebody for a little of it would cost more than it is worth. */
static int64_t quantum_ns(const struct backlog *backlog)
{
    const struct schedule *schedule = backlog->schedule;
    uint32_t weight = backlog->counted > 0 ? backlog->counted : backlog->weight;
    uint64_t part = window_size_ns(&schedule->window) / (2 * schedule->n_backlogs);
    uint64_t quantum = part > SCHEDULE_QUANTUM_NS ? part : SCHEDULE_QUANTUM_NS;
    return (int64_t)(quantum * weight / SCHEDULE_WEIGHT) + 1;
}

/* At least one. */
static uint32_t requests_for(const struct backlog *backlog, int64_t ns)
{
    uint64_t n = ns > 0 ? (uint64_t)ns / backlog->cost_ns : 0;
    if (backlog->lessons == 0 && n > UNKNOWN_MOST)
        return UNKNOWN_MOST;
    return n == 0 ? 1 : n < SCHEDULE_ALL ? (uint32_t)n : SCHEDULE_ALL - 1;
}

/* ---- work under way ---- */

uint64_t schedule_window_ns(const struct schedule *schedule, uint32_t more)
{
    uint64_t size = window_size_ns(&schedule->window);
    uint64_t all = atomic_load_explicit(&schedule->contention->weights, memory_order_relaxed) + more;
    uint64_t mine = schedule->weights + more;
    return mine == 0 || all <= mine ? size : size * mine / all;
}

static bool is_full(const struct schedule *schedule, uint32_t more)
{
    uint64_t work = schedule->work_ns + schedule->promised_ns;
    uint64_t most = schedule_window_ns(schedule, more);
    return schedule->probe_ns != 0 ? work > 0 : work >= (schedule->is_refilling ? most / 2 : most);
}

static void add_work(struct backlog *backlog, uint64_t ns)
{
    backlog->work_ns += ns;
    backlog->schedule->work_ns += ns;
}

static void take_work(struct backlog *backlog, uint64_t ns)
{
    backlog->work_ns -= ns;
    backlog->schedule->work_ns -= ns;
}

/* `n` requests of the rider's are not under way any more. Returns how much work they were taken for. */
static uint64_t end_requests(struct paced *paced, uint32_t n)
{
    struct backlog *backlog = paced->backlog;
    uint64_t work = n < backlog->under_way ? backlog->work_ns / backlog->under_way * n : backlog->work_ns;
    paced->requests -= n;
    backlog->under_way -= n;
    take_work(backlog, work);
    return work;
}

static void set_crowding(struct paced *paced, bool is_crowding)
{
    paced->backlog->schedule->n_crowding += (uint32_t)is_crowding - paced->is_crowding;
    paced->is_crowding = is_crowding;
}

static void wake_crowding(struct paced *paced, uint64_t now_ns)
{
    if (!paced->is_crowding)
        return;
    set_crowding(paced, false);
    paced->backlog->schedule->freed_ns = now_ns;
    paced->backlog->schedule->wake(paced->rider);
}

void schedule_forget(struct paced *paced)
{
    uint32_t n = paced->requests;
    if (n > 0) {
        (void)end_requests(paced, n);
        schedule_lesson_forget(paced->backlog, n);
    }
    wake_crowding(paced, 0);
}

void schedule_lose_patience_with(struct paced *paced)
{
    wake_crowding(paced, 0);
}

void schedule_lose_patience(struct backlog *backlog, uint64_t now_ns)
{
    /* Where nobody is answered Redis is busy, and to send more would make it worse. */
    bool are_others_answered = now_ns - backlog->schedule->batch.last_ns < SCHEDULE_PATIENCE_NS;
    uint64_t patience_ns = are_others_answered ? backlog->patience_ns : BUSY_FACTOR * backlog->patience_ns;
    if (backlog->work_ns == 0 || now_ns - backlog->moved_ns < patience_ns)
        return;
    take_work(backlog, backlog->work_ns);
    backlog->moved_ns = now_ns;
    if (backlog->patience_ns < PATIENCE_MOST_NS)
        backlog->patience_ns *= 2;
}

/* ---- who waits ---- */

static void join(struct backlog *backlog)
{
    struct schedule *schedule = backlog->schedule;
    if (!list_is_empty(&backlog->in_turn))
        return;
    if (backlog->is_low) {
        list_push(&schedule->low, &backlog->in_turn);
        return;
    }
    /* Where it waits on several workers each has a part of its share. */
    uint32_t queues = subject_queue(backlog->subject);
    backlog->counted = backlog->weight > queues ? backlog->weight / queues : 1;
    schedule->weights += backlog->counted;
    atomic_fetch_add_explicit(&schedule->contention->weights, backlog->counted, memory_order_relaxed);
    list_push(&schedule->round, &backlog->in_turn);
}

static void part(struct backlog *backlog)
{
    struct schedule *schedule = backlog->schedule;
    list_take(&backlog->in_turn);
    backlog->is_visited = false;
    if (backlog->counted == 0)
        return;
    subject_unqueue(backlog->subject);
    schedule->weights -= backlog->counted;
    atomic_fetch_sub_explicit(&schedule->contention->weights, backlog->counted, memory_order_relaxed);
    backlog->counted = 0;
}

void schedule_wait(struct paced *paced, uint64_t now_ns)
{
    struct schedule *schedule = paced->backlog->schedule;
    assert(paced->granted == 0);
    set_crowding(paced, false); /* its subject was alone when it began to wait */
    if (list_is_empty(&paced->in_backlog))
        list_push(&paced->backlog->waiting, &paced->in_backlog);
    join(paced->backlog);
    schedule_watch_begin(schedule, now_ns);
    schedule_probe_begin(schedule, now_ns);
}

void schedule_wait_for_own(struct paced *paced, uint64_t now_ns)
{
    assert(paced->requests > 0);
    schedule_stop_waiting(paced); /* its subject was not alone when it began to wait */
    set_crowding(paced, true);
    schedule_watch_begin(paced->backlog->schedule, now_ns);
}

void schedule_stop_waiting(struct paced *paced)
{
    set_crowding(paced, false);
    list_take(&paced->in_backlog);
    if (list_is_empty(&paced->backlog->waiting))
        part(paced->backlog);
}

/* ---- may it send? ---- */

static bool is_idle(const struct backlog *backlog)
{
    return backlog->under_way == 0 && list_is_empty(&backlog->waiting);
}

/* Who has had too much, or all of its credit, gets it back by silence. */
static void restore_credit(struct backlog *backlog, uint64_t now_ns)
{
    int64_t most = quantum_ns(backlog) / 2;
    int64_t idle_ns = now_ns > backlog->moved_ns ? (int64_t)(now_ns - backlog->moved_ns) : 0;
    if (backlog->credit_ns >= most)
        return;
    backlog->credit_ns = most - backlog->credit_ns > idle_ns ? backlog->credit_ns + idle_ns : most;
    backlog->moved_ns = now_ns;
}

/* Of those who want to send now, as far as can be told. */
static bool is_only(const struct backlog *backlog)
{
    const struct schedule *schedule = backlog->schedule;
    bool are_others_out = schedule->n_out > (schedule->out == backlog);
    return list_is_empty(&schedule->round) && !are_others_out;
}

uint32_t schedule_room(struct paced *paced, uint64_t now_ns)
{
    struct backlog *backlog = paced->backlog;
    struct schedule *schedule = backlog->schedule;
    if (paced->granted > 0)
        return paced->granted;
    if (backlog->is_low) {
        bool must_wait = schedule->n_out > 0 || schedule_are_others_waiting(schedule) ||
                         !list_is_empty(&schedule->low) || is_full(schedule, 0);
        return must_wait ? 0 : requests_for(backlog, quantum_ns(backlog));
    }
    if (schedule->probe_ns != 0 && backlog->under_way > 0)
        return 0; /* or what was sent before would not be answered alone */
    if (is_idle(backlog))
        restore_credit(backlog, now_ns);
    bool is_free = is_only(backlog) && !is_full(schedule, backlog->weight) && !schedule_lesson_is_due(schedule, now_ns);
    if (backlog->credit_ns <= 0 && is_free)
        backlog->credit_ns += quantum_ns(backlog); /* it would be the only one in the round */
    return backlog->credit_ns > 0 ? requests_for(backlog, backlog->credit_ns) : 0;
}

/* No debt is larger: who is slow once is not made to wait for it long. */
static void charge(struct backlog *backlog, uint64_t ns)
{
    backlog->credit_ns -= (int64_t)ns;
    if (backlog->credit_ns < -DEBT_MOST_NS)
        backlog->credit_ns = -DEBT_MOST_NS;
}

/* Of each of several riders of a subject that is alone: two windows, so that one more batch is there when one is answered. */
static uint64_t alone_ns(const struct backlog *backlog)
{
    return 2 * window_size_ns(&backlog->schedule->window);
}

uint32_t schedule_room_alone(const struct paced *paced)
{
    const struct backlog *backlog = paced->backlog;
    uint64_t most = alone_ns(backlog) / backlog->cost_ns;
    if (paced->requests == 0)
        return most > 1 ? (uint32_t)(most < SCHEDULE_ALL ? most : SCHEDULE_ALL - 1) : 1;
    return paced->requests < most ? (uint32_t)most - paced->requests : 0;
}

/*
 * While others wait it has sent a little without having waited, and has credit left: it asks for less than its share, as far
 * as is known.
 */
static bool is_sparse(const struct backlog *backlog, uint32_t n)
{
    uint64_t little_ns = SCHEDULE_QUANTUM_NS * backlog->weight / SCHEDULE_WEIGHT / 2;
    return !list_is_empty(&backlog->schedule->round) && n > 0 && n * backlog->cost_ns <= little_ns &&
           backlog->credit_ns > quantum_ns(backlog) / SPARSE_CREDIT;
}

void schedule_sent(struct paced *paced, uint32_t n, uint64_t now_ns)
{
    struct backlog *backlog = paced->backlog;
    struct schedule *schedule = backlog->schedule;
    uint32_t of_grant = n < paced->granted ? n : paced->granted;
    if (schedule->work_ns == 0)
        schedule->clean_ns = schedule->heard_ns = now_ns;
    if (backlog->under_way == 0) {
        backlog->moved_ns = now_ns;
        backlog->patience_ns = SCHEDULE_PATIENCE_NS;
    }
    paced->is_quiet = false;
    paced->requests += n;
    backlog->under_way += n;
    add_work(backlog, n * backlog->cost_ns);
    paced->granted -= of_grant;
    schedule->promised_ns -= of_grant * paced->grant_ns;
    charge(backlog, (n - of_grant) * backlog->cost_ns);
    if (is_sparse(backlog, n - of_grant))
        window_note_sparse(&schedule->window);
    schedule_lesson_sent(backlog, n, now_ns);
    schedule_watch_sent(schedule);
}

void schedule_settle(struct paced *paced)
{
    struct backlog *backlog = paced->backlog;
    paced->is_deep = paced->granted == 0;
    backlog->credit_ns += (int64_t)(paced->granted * paced->grant_ns);
    backlog->schedule->promised_ns -= paced->granted * paced->grant_ns;
    paced->granted = 0;
}

/* ---- answers ---- */

void schedule_answered(struct paced *paced, uint32_t n, uint64_t sent_ns, struct seen seen)
{
    uint64_t now_ns = seen.now_ns;
    struct backlog *backlog = paced->backlog;
    struct schedule *schedule = backlog->schedule;
    uint32_t counted = n < paced->requests ? n : paced->requests;
    if (counted == 0)
        return;
    schedule_note_heard(schedule, now_ns);
    uint64_t work = end_requests(paced, counted);
    schedule_watch(schedule, work, now_ns);
    backlog->moved_ns = now_ns;
    backlog->patience_ns = SCHEDULE_PATIENCE_NS;
    if (schedule->lesson.of == backlog && schedule->lesson.sent > 0)
        schedule_pass_batch(schedule, now_ns);
    else
        schedule_add_to_batch(backlog, counted, sent_ns, seen);
    schedule_lesson_answered(backlog, seen);
    if (schedule->clean_ns != 0 && sent_ns >= schedule->clean_ns) {
        schedule_probe_answered(backlog, counted, now_ns - sent_ns, work, now_ns);
        schedule->clean_ns = 0;
    }
    if (paced->requests == 0 || paced->requests * backlog->cost_ns < alone_ns(backlog) / 2)
        wake_crowding(paced, now_ns);
}

/* ---- who is next ---- */

/* The rounds until somebody has credit are taken in one step. */
static void skip_rounds(struct schedule *schedule)
{
    int64_t least = INT64_MAX;
    for (struct list *at = schedule->round.next; at != &schedule->round; at = at->next) {
        const struct backlog *backlog = container_of(at, struct backlog, in_turn);
        int64_t rounds = -backlog->credit_ns / quantum_ns(backlog);
        least = rounds < least ? rounds : least;
    }
    for (struct list *at = schedule->round.next; at != &schedule->round && least > 0; at = at->next) {
        struct backlog *backlog = container_of(at, struct backlog, in_turn);
        backlog->credit_ns += least * quantum_ns(backlog);
    }
}

/*
 * It owes more than a quantum, and is alone in the round while others have something under way, who may well come back for
 * more: its debt is paid by time, not by rounds of one.
 */
static bool is_paying(const struct backlog *backlog, int64_t quantum)
{
    const struct schedule *schedule = backlog->schedule;
    bool is_only = schedule->round.next == schedule->round.prev;
    return is_only && backlog->credit_ns + quantum <= 0 && schedule->work_ns > backlog->work_ns;
}

/* It has come to the head of the round. False: it is still paying. */
static bool begin_visit(struct backlog *backlog, uint64_t now_ns)
{
    int64_t quantum = quantum_ns(backlog);
    int64_t waited_ns = now_ns > backlog->visited_ns ? (int64_t)(now_ns - backlog->visited_ns) : 0;
    bool must_pay = is_paying(backlog, quantum);
    backlog->visited_ns = now_ns;
    if (must_pay) {
        backlog->credit_ns += quantum < waited_ns ? quantum : waited_ns;
        return false;
    }
    backlog->is_visited = true;
    backlog->round_no = backlog->schedule->round_no;
    if (backlog->credit_ns < quantum)
        backlog->credit_ns += quantum;
    return true;
}

/*
 * Of the round, which is not empty: it has credit. While riders that have been granted something may come back for more
 * no other round begins: NULL.
 */
static struct backlog *next_in_round(struct schedule *schedule, uint64_t now_ns)
{
    const struct backlog *first = NULL;
    for (;;) {
        struct backlog *backlog = container_of(schedule->round.next, struct backlog, in_turn);
        if (!backlog->is_visited && backlog->round_no == schedule->round_no) {
            if (schedule->n_out > 0)
                return NULL;
            schedule->round_no++; /* all have been visited */
        }
        if (!backlog->is_visited && !begin_visit(backlog, now_ns))
            return NULL;
        if (backlog->credit_ns > 0)
            return backlog;
        backlog->is_visited = false;
        list_take(&backlog->in_turn);
        list_push(&schedule->round, &backlog->in_turn);
        if (first == backlog)
            skip_rounds(schedule);
        else if (first == NULL)
            first = backlog;
    }
}

/* NULL: nobody may go now. */
static struct backlog *next(struct schedule *schedule, uint64_t now_ns)
{
    if (schedule->lesson.of != NULL && is_full(schedule, 0))
        return NULL;
    if (schedule->lesson.of != NULL && schedule_lesson_can_go_on(schedule))
        return schedule->lesson.of;
    if (schedule->lesson.of != NULL)
        schedule_lesson_end(schedule, now_ns);
    if (!list_is_empty(&schedule->round))
        return is_full(schedule, 0) ? NULL : next_in_round(schedule, now_ns);
    if (list_is_empty(&schedule->low) || schedule->n_out > 0 || schedule_are_others_waiting(schedule) ||
        is_full(schedule, 0))
        return NULL;
    struct backlog *backlog = container_of(schedule->low.next, struct backlog, in_turn);
    if (backlog->credit_ns <= 0)
        backlog->credit_ns = quantum_ns(backlog);
    return backlog;
}

/* One that has had little to send so far is not granted more than one request. */
static uint32_t granted_to(const struct paced *paced)
{
    const struct backlog *backlog = paced->backlog;
    const struct schedule *schedule = backlog->schedule;
    if (schedule->lesson.of != NULL)
        return schedule_lesson_size(backlog);
    return paced->is_deep && schedule->probe_ns == 0 ? requests_for(backlog, backlog->credit_ns) : 1;
}

/* Its first rider may send. */
static void grant(struct backlog *backlog)
{
    struct schedule *schedule = backlog->schedule;
    struct paced *paced = container_of(backlog->waiting.next, struct paced, in_backlog);
    paced->granted = granted_to(paced);
    paced->grant_ns = backlog->cost_ns;
    charge(backlog, paced->granted * paced->grant_ns);
    schedule->promised_ns += paced->granted * paced->grant_ns;
    list_take(&paced->in_backlog);
    schedule->wake(paced->rider);
    if (list_is_empty(&backlog->waiting)) {
        part(backlog);
        schedule->n_out++;
        schedule->out = backlog;
    } else if (backlog->is_low) {
        list_take(&backlog->in_turn);
        list_push(&schedule->low, &backlog->in_turn);
    }
}

static void wake_all_of(struct list *backlogs)
{
    while (!list_is_empty(backlogs)) {
        struct backlog *backlog = container_of(backlogs->next, struct backlog, in_turn);
        while (!list_is_empty(&backlog->waiting)) {
            struct paced *paced = container_of(backlog->waiting.next, struct paced, in_backlog);
            list_take(&paced->in_backlog);
            backlog->schedule->wake(paced->rider);
        }
        part(backlog);
    }
}

void schedule_turn(struct schedule *schedule, bool is_open, uint64_t now_ns)
{
    schedule_probe_look(schedule, now_ns);
    schedule->is_refilling = schedule->work_ns + schedule->promised_ns == 0;
    if (list_is_empty(&schedule->round) && list_is_empty(&schedule->low))
        return;
    if (is_open) {
        wake_all_of(&schedule->round);
        wake_all_of(&schedule->low);
        return;
    }
    if (schedule->work_ns > 0)
        schedule_probe_begin(schedule, now_ns);
    if (schedule->probe_ns == 0 && schedule_lesson_begin(schedule, now_ns))
        schedule_probe_set(schedule, now_ns);
    struct backlog *backlog;
    while ((backlog = next(schedule, now_ns)) != NULL)
        grant(backlog);
    if (!schedule_is_waited_for(schedule))
        schedule_watch(schedule, 0, now_ns);
}

bool schedule_is_unsettled(struct schedule *schedule, uint64_t now_ns)
{
    schedule->n_out = 0;
    schedule->out = NULL;
    schedule->is_refilling = false;
    schedule_probe_look(schedule, now_ns);
    return next(schedule, now_ns) != NULL;
}
