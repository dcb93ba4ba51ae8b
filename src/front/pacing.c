#include "front/pacing.h"

#include <assert.h>

#define WAITING_TICK_MS 10                   /* while requests wait */
#define SWEEP_TICK_MS 1000                   /* while riders are counted */
#define THREAD_LOOK_NS (10 * NS_PER_MS)      /* the thread's time is looked at so often while requests wait, ... */
#define THREAD_LOOK_MOST_NS (50 * NS_PER_MS) /* ... if that goes on without a longer pause */
#define THREAD_IDLE_PART 8                   /* it is full if it had its processor but for one part in so many */

/* One for all nodes of the upstream. */
static struct schedule *schedule_now(const struct front *front)
{
    return front_home(front)->lanes.base.schedule;
}

static struct schedule *schedule_of(const struct client *client)
{
    return schedule_now(client->front);
}

static struct paced *paced_of(const struct client *client)
{
    return client->rider.paced != 0 ? schedule_at(schedule_of(client), client->rider.paced) : NULL;
}

/* ---- a client ---- */

static enum pace_kind kind_of(const struct client *client, uint64_t now_ns)
{
    struct contention *contention = front_home_node(client->front)->contention;
    bool are_riders = mixture_note(&contention->riders, client, now_ns);
    if (mixture_note(&contention->subjects, client->subject, now_ns))
        return PACE_SEVERAL;
    return are_riders ? PACE_SAME : PACE_ALONE;
}

/* Does Redis hold back the answer that comes next, or the client its reading? Then what is behind that waits anyway. */
static bool is_blocked(const struct client *client)
{
    const struct lane *lane = client->rider.lane;
    if (client->rider.in_flight == 0 || calls_is_empty(&lane->calls))
        return false;
    return lane->stalled == &client->rider || (calls_oldest(&lane->calls)->flags & CALL_MAY_WAIT) != 0;
}

/* True if a node where commands of clients go holds back writes. */
static bool is_any_paused(const struct front *front, uint64_t now_ns)
{
    const struct nodes *nodes = &front->nodes;
    for (size_t i = 0; i < nodes->topology->n_masters; i++)
        if (node_is_paused(lanes_node(&nodes->rows[i]->lanes), now_ns))
            return true;
    return false;
}

/* Nobody is to wait behind operators, nor where Redis holds back what some send and not what others do. */
static bool is_free(const struct client *client, uint64_t now_ns)
{
    return client_entrance(client)->is_admin || client->subject == NULL || transaction_is_open(&client->transaction) ||
           is_any_paused(client->front, now_ns);
}

/* Its next request waits for its turn: then its replies need not hurry before those of who waits for nothing. */
static void set_held_up(struct client *client, bool is_held_up)
{
    client->link.is_patient = is_held_up;
}

void pacing_begin(struct client *client, struct pace *pace)
{
    uint64_t now_ns = client->front->loop->now_ns;
    bool has_turns = client->front->rules->has_turns;
    set_held_up(client, false);
    *pace = (struct pace){.kind = has_turns && client->subject != NULL ? kind_of(client, now_ns) : PACE_ALONE};
    client->front->pacing.are_several = pace->kind == PACE_SEVERAL;
    if (pace->kind == PACE_ALONE)
        pace->left = UINT32_MAX;
}

static void start_timer(struct front *front, bool is_quick);

/* Out of memory: NULL, and it is not counted. */
static struct paced *need_paced(struct client *client, uint64_t now_ns)
{
    struct paced *paced = paced_of(client);
    if (paced == NULL)
        paced = schedule_enter(schedule_of(client), &client->rider, client->subject, now_ns);
    if (paced == NULL)
        return NULL;
    const struct policy *policy = client->bound;
    if (paced->slice == 0)
        paced->slice = PACING_SLICE;
    schedule_set(paced, policy != NULL ? policy->weight : POLICY_WEIGHT, policy != NULL && policy->is_low);
    start_timer(client->front, false);
    return paced;
}

static void hold_up(struct client *client, struct paced *paced, enum pace_kind kind, uint64_t now_ns)
{
    set_held_up(client, true);
    client_wait(client, WAIT_SHARE);
    if (kind == PACE_SEVERAL)
        schedule_wait(paced, now_ns);
    else
        schedule_wait_for_own(paced, now_ns);
    start_timer(client->front, true);
}

/* What weir itself answers may take it long: then the clock is looked at more often. */
static void fit_slice(struct paced *paced, uint64_t took_ns)
{
    if (paced == NULL)
        return;
    if (took_ns > 2 * PACING_TURN_NS && paced->slice > 1)
        paced->slice /= 2;
    else if (took_ns <= 2 * PACING_TURN_NS && paced->slice <= PACING_SLICE / 2)
        paced->slice = (uint8_t)(2 * paced->slice);
}

/* Other clients of this worker are served first: on_wake of front/connection.c resumes it. */
static void give_way(struct client *client)
{
    set_held_up(client, true);
    client_wait(client, WAIT_WORKER);
    link_wake_again(&client->link);
}

/* So that others of this worker are not kept waiting by one whose requests are all here. */
static bool has_had_its_time(struct client *client, struct pace *pace)
{
    if (!pace->is_used) {
        pace->began_ns = client->front->loop->now_ns;
        return false;
    }
    uint64_t took_ns = clock_ns() - pace->began_ns;
    if (took_ns < PACING_TURN_NS)
        return false;
    fit_slice(paced_of(client), took_ns);
    give_way(client);
    return true;
}

/* The same for all clients of a subject: each of many has few requests here. Those who go on have waited for that already. */
static bool has_subject_had_its_time(struct client *client, const struct paced *paced)
{
    const struct loop *loop = client->front->loop;
    const struct backlog *backlog = paced->backlog;
    if (backlog->turn_ns != loop->turn_ns || backlog->taken_ns < PACING_SUBJECT_NS || loop->goes_on ||
        paced->granted > 0)
        return false;
    give_way(client);
    return true;
}

static void note_time(struct front *front, struct backlog *backlog)
{
    uint64_t began_ns = front->loop->now_ns > front->pacing.taken_ns ? front->loop->now_ns : front->pacing.taken_ns;
    front->pacing.taken_ns = clock_ns();
    if (backlog->turn_ns != front->loop->turn_ns)
        backlog->taken_ns = 0;
    backlog->turn_ns = front->loop->turn_ns;
    backlog->taken_ns += front->pacing.taken_ns - began_ns;
}

bool pacing_ask(struct client *client, struct pace *pace)
{
    uint64_t now_ns = client->front->loop->now_ns;
    if (has_had_its_time(client, pace))
        return false;
    bool is_first = !pace->is_used;
    pace->is_used = true;
    pace->left = PACING_SLICE;
    /* A few requests of a subject that is alone are not worth counting. */
    if (is_free(client, now_ns) || (is_first && pace->kind == PACE_SAME && client->rider.paced == 0))
        return true;
    struct paced *paced = need_paced(client, now_ns);
    if (paced == NULL)
        return true;
    if (is_first && pace->kind == PACE_SEVERAL && has_subject_had_its_time(client, paced)) {
        pace->is_used = false;
        return false;
    }
    uint32_t room = pace->kind == PACE_SEVERAL ? schedule_room(paced, now_ns) : schedule_room_alone(paced);
    pace->left = room < paced->slice ? room : paced->slice;
    pace->is_used = !is_first || room > 0;
    if (room == 0)
        hold_up(client, paced, pace->kind, now_ns);
    return room > 0;
}

void pacing_end(struct client *client)
{
    struct paced *paced = paced_of(client);
    if (paced == NULL)
        return;
    if (client->front->pacing.are_several)
        note_time(client->front, paced->backlog);
    schedule_settle(paced);
    if (!pacing_is_held_up(client)) /* it was let go before it was its turn */
        schedule_stop_waiting(paced);
}

void pacing_stop(struct client *client)
{
    set_held_up(client, false);
    pacing_end(client);
}

/* What is blocked is paid for, but nobody is to wait for its answer. */
void pacing_count_sent(struct client *client, uint32_t n)
{
    struct paced *paced = paced_of(client);
    schedule_sent(paced, n, client->front->loop->now_ns);
    if (is_blocked(client))
        schedule_forget(paced);
}

void pacing_note_answered(struct client *client, const struct call *call, uint32_t n)
{
    const struct loop *loop = client->front->loop;
    struct paced *paced = paced_of(client);
    if (paced != NULL)
        schedule_answered(paced, n, call->sent_ns, (struct seen){loop->now_ns, loop->looked_ns});
}

void pacing_forget(struct client *client)
{
    struct paced *paced = paced_of(client);
    if (paced != NULL)
        schedule_forget(paced);
}

void pacing_leave(struct client *client)
{
    struct paced *paced = paced_of(client);
    if (paced == NULL)
        return;
    schedule_leave(schedule_of(client), paced);
    if (client_waits_for(client, WAIT_SHARE))
        client_resume(client, WAIT_SHARE);
}

/* ---- a worker ---- */

static void on_tick(uv_timer_t *timer)
{
    struct front *front = timer->data;
    struct schedule *schedule = schedule_now(front);
    loop_tick(front->loop);
    front->pacing.is_quick = false;
    if (schedule_is_waited_for(schedule))
        schedule_tick(schedule, front->loop->now_ns);
    else
        schedule_sweep(schedule, front->loop->now_ns);
    if (schedule_is_waited_for(schedule) || schedule->n_paced > 0)
        start_timer(front, schedule_is_waited_for(schedule));
}

static void start_timer(struct front *front, bool is_quick)
{
    struct pacing_timer *pacing = &front->pacing;
    if (uv_is_active((uv_handle_t *)&pacing->timer) && (pacing->is_quick || !is_quick))
        return;
    pacing->is_quick = is_quick;
    uv_timer_start(&pacing->timer, on_tick, is_quick ? WAITING_TICK_MS : SWEEP_TICK_MS, 0);
}

void pacing_init(struct front *front)
{
    uv_timer_init(&front->loop->uv, &front->pacing.timer);
    front->pacing.timer.data = front;
}

void pacing_close(struct front *front)
{
    uv_close((uv_handle_t *)&front->pacing.timer, NULL);
}

/* Has this thread no time left? Then Redis may have nothing to do, however much is sent at a time. */
static void look_at_thread(struct front *front, struct schedule *schedule)
{
    struct pacing_timer *pacing = &front->pacing;
    uint64_t now_ns = front->loop->now_ns, took_ns = now_ns - pacing->began_ns;
    pacing->n_turns++;
    if (took_ns < THREAD_LOOK_NS || !schedule_is_waited_for(schedule))
        return;
    uint64_t thread_ns = clock_thread_ns();
    if (took_ns < THREAD_LOOK_MOST_NS) {
        schedule->window.is_sender_full = thread_ns - pacing->thread_ns > took_ns - took_ns / THREAD_IDLE_PART;
        schedule->window.turn_ns = took_ns / pacing->n_turns;
    }
    pacing->began_ns = now_ns;
    pacing->thread_ns = thread_ns;
    pacing->n_turns = 0;
}

/* Whoever was granted something was woken at once, and has settled. */
static inline void audit(const struct schedule *schedule)
{
#if defined __SANITIZE_ADDRESS__ || defined __SANITIZE_THREAD__
    assert(schedule->promised_ns == 0);
#else
    (void)schedule;
#endif
}

/* True: several subjects send, and those who have had to wait do not keep the others waiting. */
bool pacing_on_turn(struct loop *loop)
{
    struct front *front = loop->owner;
    struct schedule *schedule = schedule_now(front);
    bool is_open = !mixture_is(&schedule->contention->subjects, loop->now_ns) || is_any_paused(front, loop->now_ns);
    audit(schedule);
    look_at_thread(front, schedule);
    schedule_turn(schedule, is_open, loop->now_ns);
    return !is_open;
}

bool pacing_is_unsettled(struct loop *loop)
{
    return schedule_is_unsettled(schedule_now(loop->owner), loop->now_ns);
}
