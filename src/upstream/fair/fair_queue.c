#include "upstream/fair/fair_queue.h"

#include <assert.h>

/*
 * Chosen: most debt of a flow for each of its senders. Only work that could not wait causes a debt:
 * a transaction, or a huge reply.
 */
#define DEBT_MOST_NS (int64_t)(1 * NS_PER_S)

/* ---- the in-flight window ---- */

/*
 * Returns the speed: work answered / time waited. If requests waited for less than half of the
 * period, the speed is one.
 */
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

/* Adds the newest batch, which is complete, to the period. */
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
    uint64_t late_ns =
        sent_ns != 0 ? beyond(sent_ns + window_trip_ns(window), window->heard_ns) : 0;
    window->gap_ns = window->waits ? now_ns - window->heard_ns : 0;
    window->late_ns = late_ns < window->gap_ns ? late_ns : window->gap_ns;
    window->heard_ns = now_ns;
    window->work_ns = 0;
}

void window_answered(struct send_window *window, uint64_t sent_ns, uint64_t work_ns, bool waits,
                     bool is_dry, uint64_t now_ns)
{
    if (now_ns != window->heard_ns) {
        end_batch(window, now_ns);
        window_begin_batch(window, sent_ns, now_ns);
    }
    window->work_ns += work_ns;
    window->waits = waits;
    window->is_dry = is_dry;
}

/* ---- the queue ---- */

/*
 * The quantum grows with the window: waking a sender for a small part of a large window costs more
 * than the wake-up gains.
 */
static int64_t quantum_ns(const struct fair_flow *flow)
{
    const struct fair_queue *queue = flow->queue;
    uint32_t weight = flow->counted > 0 ? flow->counted : flow->weight;
    uint64_t part = window_size_ns(&queue->window) / (2 * queue->n_sharing);
    uint64_t quantum = part > FAIR_QUANTUM_NS ? part : FAIR_QUANTUM_NS;
    return (int64_t)(quantum * weight / FAIR_WEIGHT) + 1;
}

static bool are_others_waiting(const struct fair_queue *queue)
{
    return atomic_load_explicit(&queue->contention->weights, memory_order_relaxed) > 0;
}

/* Returns this worker's part of `size`, if `more` weight joined the worker's waiting flows. */
static uint64_t fair_queue_part_of(const struct fair_queue *queue, uint64_t size, uint32_t more)
{
    uint64_t all = atomic_load_explicit(&queue->contention->weights, memory_order_relaxed) + more;
    uint64_t mine = queue->weights + more;
    return mine == 0 || all <= mine ? size : size * mine / all;
}

static bool fair_queue_is_full(const struct fair_queue *queue, uint32_t more)
{
    return queue->work_ns + queue->granted_ns >= fair_queue_part_of(queue, queue->limit_ns, more);
}

/* ---- work in flight ---- */

/*
 * Takes `ns` from the flow's credit. The debt is bounded: one wrong cost does not delay a flow for
 * long.
 */
static void fair_queue_charge(struct fair_flow *flow, uint64_t ns)
{
    if (flow->queue->is_open)
        return;
    int64_t most_ns = DEBT_MOST_NS * (flow->n_senders > 0 ? flow->n_senders : 1);
    flow->credit_ns -= ns < (uint64_t)DEBT_MOST_NS ? (int64_t)ns : DEBT_MOST_NS;
    if (flow->credit_ns < -most_ns)
        flow->credit_ns = -most_ns;
}

static void add_work(struct sender *sender, uint64_t ns)
{
    sender->work_ns += ns;
    sender->flow->work_ns += ns;
    sender->flow->queue->work_ns += ns;
}

static void take_work(struct sender *sender, uint64_t ns)
{
    sender->work_ns -= ns;
    sender->flow->work_ns -= ns;
    sender->flow->queue->work_ns -= ns;
}

static void set_crowding(struct sender *sender, bool is_crowding)
{
    sender->flow->queue->n_crowding += (uint32_t)is_crowding - sender->is_crowding;
    sender->is_crowding = is_crowding;
}

static void wake_crowding(struct sender *sender)
{
    if (!sender->is_crowding)
        return;
    set_crowding(sender, false);
    sender->flow->queue->wake(sender->lane_user);
}

void fair_forget(struct sender *sender)
{
    take_work(sender, sender->work_ns);
    sender->requests = 0;
    wake_crowding(sender);
}

/* ---- waiting ---- */

static void join(struct fair_flow *flow)
{
    struct fair_queue *queue = flow->queue;
    if (!list_is_empty(&flow->in_round))
        return;
    if (flow->is_low) {
        list_push(&queue->low, &flow->in_round);
        return;
    }
    /* A flow that waits on several workers has a part of its share on each. */
    uint32_t queues = subject_queue(flow->subject);
    flow->counted = flow->weight > queues ? flow->weight / queues : 1;
    queue->weights += flow->counted;
    atomic_fetch_add_explicit(&queue->contention->weights, flow->counted, memory_order_relaxed);
    list_push(&queue->round, &flow->in_round);
}

static void part(struct fair_flow *flow)
{
    struct fair_queue *queue = flow->queue;
    list_take(&flow->in_round);
    flow->is_visited = false;
    if (flow->counted == 0)
        return;
    subject_unqueue(flow->subject);
    queue->weights -= flow->counted;
    atomic_fetch_sub_explicit(&queue->contention->weights, flow->counted, memory_order_relaxed);
    flow->counted = 0;
}

void fair_wait(struct sender *sender)
{
    assert(sender->granted_ns == 0);
    set_crowding(sender, false); /* the wait for own requests began while the subject sent alone */
    if (list_is_empty(&sender->in_flow))
        list_push(&sender->flow->waiting, &sender->in_flow);
    join(sender->flow);
}

void fair_wait_for_own(struct sender *sender)
{
    assert(sender->requests > 0);
    fair_stop_waiting(sender); /* the wait for a share began while other subjects sent */
    set_crowding(sender, true);
}

void fair_stop_waiting(struct sender *sender)
{
    set_crowding(sender, false);
    list_take(&sender->in_flow);
    if (list_is_empty(&sender->flow->waiting))
        part(sender->flow);
}

/* ---- permission to send ---- */

/* A flow without credit, or in debt, regains credit while it is silent. */
static void restore_credit(struct fair_flow *flow, uint64_t now_ns)
{
    int64_t most = quantum_ns(flow) / 2;
    int64_t idle_ns = now_ns > flow->moved_ns ? (int64_t)(now_ns - flow->moved_ns) : 0;
    if (flow->credit_ns >= most || idle_ns == 0)
        return;
    flow->credit_ns = most - flow->credit_ns > idle_ns ? flow->credit_ns + idle_ns : most;
    flow->moved_ns = now_ns;
}

/* True if, as far as known, no other flow wants to send now. */
static bool is_only(const struct fair_flow *flow)
{
    const struct fair_queue *queue = flow->queue;
    bool are_others_out = queue->n_out > (queue->out == flow);
    return list_is_empty(&queue->round) && !are_others_out;
}

/*
 * True if the flow must wait for its debt, although no other flow waits. The flow owes a quantum or
 * more, and the work in flight of other flows lasts longer than a round trip. Redis is thus busy
 * until a later request arrives.
 */
static bool is_paying(const struct fair_flow *flow)
{
    const struct fair_queue *queue = flow->queue;
    return flow->credit_ns + quantum_ns(flow) <= 0 &&
           queue->work_ns - flow->work_ns > window_trip_ns(&queue->window);
}

/* Reduce the debt by the time that Redis has spent on other flows since the last call. */
static void fair_queue_pay(struct fair_flow *flow)
{
    uint64_t others_ns = flow->queue->answered_ns - flow->answered_ns;
    int64_t debt_ns = -flow->credit_ns;
    int64_t had_ns = (int64_t)(others_ns - flow->others_ns);
    flow->others_ns = others_ns;
    flow->credit_ns += had_ns < debt_ns ? had_ns : debt_ns;
}

int64_t fair_room(struct sender *sender, uint64_t now_ns)
{
    struct fair_flow *flow = sender->flow;
    struct fair_queue *queue = flow->queue;
    if (sender->granted_ns > 0)
        return (int64_t)sender->granted_ns;
    if (flow->is_low) {
        bool must_wait = queue->n_out > 0 || are_others_waiting(queue) ||
                         !list_is_empty(&queue->low) || fair_queue_is_full(queue, 0);
        return must_wait ? 0 : quantum_ns(flow);
    }
    if (flow->work_ns == 0 && list_is_empty(&flow->waiting))
        restore_credit(flow, now_ns);
    if (flow->credit_ns <= 0 && is_only(flow) && !fair_queue_is_full(queue, flow->weight) &&
        !is_paying(flow))
        /* no other flow would be in the round: the flow would get its quantum at once */
        flow->credit_ns += quantum_ns(flow);
    return flow->credit_ns > 0 ? flow->credit_ns : 0;
}

/* Returns two windows: one batch is in flight while Redis answers another batch. */
static uint64_t alone_ns(const struct sender *sender)
{
    return 2 * window_size_ns(&sender->flow->queue->window);
}

int64_t fair_room_alone(const struct sender *sender)
{
    uint64_t most = alone_ns(sender);
    if (sender->requests == 0)
        return (int64_t)most;
    return sender->work_ns < most ? (int64_t)(most - sender->work_ns) : 0;
}

void fair_sent(struct sender *sender, uint32_t n, uint64_t work_ns, uint64_t now_ns)
{
    struct fair_flow *flow = sender->flow;
    struct fair_queue *queue = flow->queue;
    uint64_t of_grant = work_ns < sender->granted_ns ? work_ns : sender->granted_ns;
    if (flow->work_ns == 0)
        flow->moved_ns = now_ns;
    if (sender->work_ns == 0)
        sender->moved_ns = now_ns;
    sender->requests += n;
    if (n > 0) {
        add_work(sender, work_ns);
        flow->cost_ns = work_ns > n ? (work_ns + n - 1) / n : 1;
    }
    sender->granted_ns -= of_grant;
    queue->granted_ns -= of_grant;
    fair_queue_charge(flow, work_ns - of_grant);
}

/* The QUEUED reply costs hardly any work. */
void fair_queued(struct sender *sender, uint64_t work_ns, uint64_t now_ns)
{
    fair_sent(sender, 1, work_ns, now_ns);
    take_work(sender, work_ns);
    sender->queued_ns += work_ns;
}

void fair_ends_transaction(struct sender *sender, bool is_executed)
{
    if (is_executed)
        add_work(sender, sender->queued_ns);
    sender->queued_ns = 0;
}

void fair_charge(struct sender *sender, uint64_t work_ns)
{
    struct fair_flow *flow = sender->flow;
    fair_queue_charge(flow, work_ns);
    /* The flow is not silent while Redis works on the bytes. DEBT_MOST_NS bounds this time, too. */
    if (flow->moved_ns < flow->queue->window.heard_ns + DEBT_MOST_NS)
        flow->moved_ns += work_ns < (uint64_t)DEBT_MOST_NS ? work_ns : (uint64_t)DEBT_MOST_NS;
}

void fair_settle(struct sender *sender)
{
    sender->is_deep = sender->granted_ns == 0;
    sender->flow->credit_ns += (int64_t)sender->granted_ns;
    sender->flow->queue->granted_ns -= sender->granted_ns;
    sender->granted_ns = 0;
}

/* ---- answers ---- */

void fair_answered(struct sender *sender, uint32_t n, uint64_t sent_ns, uint64_t now_ns)
{
    struct fair_flow *flow = sender->flow;
    struct fair_queue *queue = flow->queue;
    uint32_t counted = n < sender->requests ? n : sender->requests;
    sender->moved_ns = now_ns; /* also for requests that no longer count: the flow was not silent */
    flow->moved_ns = flow->moved_ns > now_ns ? flow->moved_ns : now_ns;
    if (counted == 0)
        return;
    uint64_t work_ns =
        counted < sender->requests ? sender->work_ns / sender->requests * counted : sender->work_ns;
    take_work(sender, work_ns);
    flow->answered_ns += work_ns;
    queue->answered_ns += work_ns;
    sender->requests -= counted;
    window_answered(&queue->window, sent_ns, work_ns, fair_is_shared(queue), queue->work_ns == 0,
                    now_ns);
    if (sender->requests == 0 || sender->work_ns < alone_ns(sender) / 2)
        wake_crowding(sender);
}

void fair_tick(struct fair_queue *queue, uint64_t now_ns)
{
    uint64_t patience_ns = FAIR_PATIENCE_NS + 2 * queue->work_ns;
    for (uint32_t i = 0; i < queue->n_numbers; i++) {
        struct sender *sender = queue->senders[i];
        if (sender == NULL)
            continue;
        if (sender->work_ns > 0 && now_ns - sender->moved_ns > patience_ns)
            fair_forget(sender);
        wake_crowding(sender); /* the sender checks whether it must still wait */
    }
}

/* ---- the next sender ---- */

/* Give the flows, in one step, the quanta of all rounds until a flow has credit. */
static void skip_rounds(struct fair_queue *queue)
{
    int64_t least = INT64_MAX;
    for (struct list *at = queue->round.next; at != &queue->round; at = at->next) {
        const struct fair_flow *flow = container_of(at, struct fair_flow, in_round);
        int64_t rounds = -flow->credit_ns / quantum_ns(flow);
        least = rounds < least ? rounds : least;
    }
    for (struct list *at = queue->round.next; at != &queue->round && least > 0; at = at->next) {
        struct fair_flow *flow = container_of(at, struct fair_flow, in_round);
        flow->credit_ns += least * quantum_ns(flow);
    }
}

/* Begin the visit of the flow at the head of the round. False: the flow is still in debt. */
static bool begin_visit(struct fair_flow *flow)
{
    struct fair_queue *queue = flow->queue;
    int64_t quantum = quantum_ns(flow);
    bool is_alone = queue->round.next == queue->round.prev;
    if (is_alone && is_paying(flow)) {
        fair_queue_pay(flow);
        if (is_paying(flow))
            return false;
    }
    flow->others_ns = queue->answered_ns - flow->answered_ns;
    flow->is_visited = true;
    flow->round_no = queue->round_no;
    queue->n_visited++;
    if (flow->credit_ns < quantum)
        flow->credit_ns += quantum;
    return true;
}

/*
 * Returns the next flow with credit from the round, which is not empty. NULL: a new round would
 * begin, but woken senders may come back for more. NULL also if the only flow must wait for its
 * debt.
 */
static struct fair_flow *next_in_round(struct fair_queue *queue)
{
    const struct fair_flow *first = NULL;
    for (;;) {
        struct fair_flow *flow = container_of(queue->round.next, struct fair_flow, in_round);
        if (!flow->is_visited && flow->round_no == queue->round_no) {
            if (queue->n_out > 0)
                return NULL;
            queue->round_no++; /* all flows in the round have been visited */
            queue->n_sharing = queue->n_visited > 0 ? queue->n_visited : 1;
            queue->n_visited = 0;
        }
        if (!flow->is_visited && !begin_visit(flow))
            return NULL;
        if (flow->credit_ns > 0)
            return flow;
        flow->is_visited = false;
        list_take(&flow->in_round);
        list_push(&queue->round, &flow->in_round);
        if (first == flow)
            skip_rounds(queue);
        else if (first == NULL)
            first = flow;
    }
}

/* Returns the flow that may send next. NULL: no flow may send now. */
static struct fair_flow *fair_queue_next(struct fair_queue *queue)
{
    if (!list_is_empty(&queue->round))
        return fair_queue_is_full(queue, 0) ? NULL : next_in_round(queue);
    if (list_is_empty(&queue->low) || queue->n_out > 0 || are_others_waiting(queue) ||
        fair_queue_is_full(queue, 0))
        return NULL;
    struct fair_flow *flow = container_of(queue->low.next, struct fair_flow, in_round);
    if (flow->credit_ns <= 0)
        flow->credit_ns = quantum_ns(flow);
    return flow;
}

/*
 * Let the flow's first sender send. A sender that did not use up its last grant may send one
 * request.
 */
static void grant(struct fair_flow *flow)
{
    struct fair_queue *queue = flow->queue;
    struct sender *sender = container_of(flow->waiting.next, struct sender, in_flow);
    uint64_t credit_ns = (uint64_t)flow->credit_ns;
    sender->granted_ns = sender->is_deep && credit_ns > flow->cost_ns ? credit_ns : flow->cost_ns;
    flow->credit_ns -= (int64_t)sender->granted_ns;
    queue->granted_ns += sender->granted_ns;
    list_take(&sender->in_flow);
    queue->wake(sender->lane_user);
    if (list_is_empty(&flow->waiting)) {
        part(flow);
        queue->n_out++;
        queue->out = flow;
    } else if (flow->is_low) {
        list_take(&flow->in_round);
        list_push(&queue->low, &flow->in_round);
    }
}

static void wake_all_of(struct list *flows)
{
    while (!list_is_empty(flows)) {
        struct fair_flow *flow = container_of(flows->next, struct fair_flow, in_round);
        while (!list_is_empty(&flow->waiting)) {
            struct sender *sender = container_of(flow->waiting.next, struct sender, in_flow);
            list_take(&sender->in_flow);
            flow->queue->wake(sender->lane_user);
        }
        part(flow);
    }
}

void fair_iteration(struct fair_queue *queue, bool is_open)
{
    uint64_t window_ns = window_size_ns(&queue->window);
    queue->is_open = is_open;
    queue->window.trip_ns = atomic_load_explicit(&queue->contention->trip_ns, memory_order_relaxed);
    /*
     * With nothing in flight the bound is half a window. Redis answers the halves apart, and the
     * next batch arrives while Redis still works.
     */
    queue->limit_ns = queue->work_ns + queue->granted_ns == 0 ? window_ns / 2 : window_ns;
    if (!fair_is_shared(queue))
        return;
    if (is_open) {
        wake_all_of(&queue->round);
        wake_all_of(&queue->low);
    }
    struct fair_flow *flow;
    while ((flow = fair_queue_next(queue)) != NULL)
        grant(flow);
}

bool fair_is_unsettled(struct fair_queue *queue)
{
    queue->n_out = 0;
    queue->out = NULL;
    queue->limit_ns = window_size_ns(&queue->window);
    return fair_queue_next(queue) != NULL;
}
