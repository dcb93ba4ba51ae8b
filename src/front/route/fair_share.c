#include "front/route/fair_share.h"

#include <assert.h>

#define TICK_MS 10 /* between two ticks while requests wait */

/* The worker's fair queue, one for all nodes of the upstream. */
static struct fair_queue *queue_of_worker(const struct front *front)
{
    return front_default_row(front)->lanes.base.fair;
}

static struct fair_queue *fair_share_queue_of(const struct client *client)
{
    return queue_of_worker(client->front);
}

static struct sender *sender_of(const struct client *client)
{
    return client->lane_user.sender != 0
               ? fair_sender(fair_share_queue_of(client), client->lane_user.sender)
               : NULL;
}

/* ---- a client ---- */

static enum pace_kind fair_share_kind_of(const struct client *client, uint64_t now_ns)
{
    struct contention *contention = front_default_node(client->front)->contention;
    bool are_lane_users = mixture_note(&contention->lane_users, client, now_ns);
    if (mixture_note(&contention->subjects, client->subject, now_ns))
        return PACE_SEVERAL;
    return are_lane_users ? PACE_SAME : PACE_ALONE;
}

/* True if Redis holds back the next reply, or the client does not read. */
static bool fair_share_is_blocked(const struct client *client)
{
    const struct lane *lane = client->lane_user.lane;
    if (client->lane_user.in_flight == 0 || calls_is_empty(&lane->calls))
        return false;
    return lane->slow_user == &client->lane_user ||
           (calls_oldest(&lane->calls)->flags & CALL_MAY_WAIT) != 0;
}

/* True if CLIENT PAUSE ... WRITE delays writes at a master of the topology. */
static bool is_any_paused(const struct front *front, uint64_t now_ns)
{
    const struct nodes *nodes = &front->nodes;
    for (size_t i = 0; i < nodes->topology->n_masters; i++)
        if (node_is_paused(lanes_node(&nodes->rows[i]->lanes), now_ns))
            return true;
    return false;
}

/*
 * True if the client's requests need not wait for a share. Requests of an operator or in a
 * transaction never wait. No request waits while CLIENT PAUSE ... WRITE delays writes.
 */
static bool fair_share_is_free(const struct client *client, uint64_t now_ns)
{
    return client_listen_address(client)->is_admin || client->subject == NULL ||
           transaction_is_open(&client->transaction) || is_any_paused(client->front, now_ns);
}

/*
 * While a client waits for its share, its link is patient: replies to other clients are written
 * first.
 */
static void set_waits_for_share(struct client *client, bool waits_for_share)
{
    client->link.is_patient = waits_for_share;
}

void fair_share_begin(struct client *client, struct pace *pace)
{
    uint64_t now_ns = client->front->loop->now_ns;
    bool has_shares = client->front->rules->has_shares;
    set_waits_for_share(client, false);
    *pace = (struct pace){.kind = has_shares && client->subject != NULL
                                      ? fair_share_kind_of(client, now_ns)
                                      : PACE_ALONE};
    client->front->fair.are_several = pace->kind == PACE_SEVERAL;
    if (pace->kind == PACE_ALONE) {
        pace->left = UINT32_MAX;
        pace->left_ns = FAIR_ALL;
    }
}

static void start_timer(struct front *front);

/*
 * Returns the client's sender, made on first use. NULL: out of memory, and the client is not
 * counted.
 */
static struct sender *need_sender(struct client *client, uint64_t now_ns)
{
    struct sender *sender = sender_of(client);
    if (sender == NULL)
        sender =
            fair_enter(fair_share_queue_of(client), &client->lane_user, client->subject, now_ns);
    if (sender == NULL)
        return NULL;
    const struct policy *policy = client->bound;
    fair_set(sender, policy != NULL ? policy->weight : POLICY_WEIGHT,
             policy != NULL && policy->is_low);
    return sender;
}

static void hold_up(struct client *client, struct sender *sender, enum pace_kind kind)
{
    set_waits_for_share(client, true);
    client_wait(client, WAIT_SHARE);
    if (kind == PACE_SEVERAL)
        fair_wait(sender);
    else
        fair_wait_for_own(sender);
    start_timer(client->front);
}

/*
 * Lets other clients of this worker go first. on_wake() of front/client/connection.c resumes the
 * client.
 */
static void give_way(struct client *client)
{
    set_waits_for_share(client, true);
    client_wait(client, WAIT_WORKER);
    link_wake_again(&client->link);
}

/* True if the client has used FAIR_ITERATION_NS of the worker. */
static bool has_had_its_time(struct client *client, struct pace *pace)
{
    if (!pace->is_used) {
        pace->began_ns = client->front->loop->now_ns;
        pace->left = FAIR_SLICE;
        return false;
    }
    if (pace->left > 0)
        return false;
    pace->left = FAIR_SLICE;
    if (clock_ns() - pace->began_ns < FAIR_ITERATION_NS)
        return false;
    give_way(client);
    return true;
}

/*
 * True if the clients of the subject together have used FAIR_SUBJECT_NS in this iteration. Each of
 * these clients may have sent only few requests. A client does not wait here twice in a row.
 */
static bool has_subject_had_its_time(struct client *client, const struct sender *sender)
{
    const struct loop *loop = client->front->loop;
    const struct fair_flow *flow = sender->flow;
    if (flow->iteration_ns != loop->iteration_ns || flow->taken_ns < FAIR_SUBJECT_NS ||
        loop->goes_on || sender->granted_ns > 0)
        return false;
    give_way(client);
    return true;
}

static void fair_share_note_time(struct front *front, struct fair_flow *flow)
{
    uint64_t began_ns =
        front->loop->now_ns > front->fair.taken_ns ? front->loop->now_ns : front->fair.taken_ns;
    front->fair.taken_ns = clock_ns();
    if (flow->iteration_ns != front->loop->iteration_ns)
        flow->taken_ns = 0;
    flow->iteration_ns = front->loop->iteration_ns;
    flow->taken_ns += front->fair.taken_ns - began_ns;
}

bool fair_share_ask(struct client *client, struct pace *pace)
{
    uint64_t now_ns = client->front->loop->now_ns;
    if (has_had_its_time(client, pace))
        return false;
    bool is_first = !pace->is_used;
    pace->is_used = true;
    pace->left_ns = FAIR_ALL;
    /* While only one subject sends, the first few requests of a client are not worth counting. */
    if (fair_share_is_free(client, now_ns) ||
        (is_first && pace->kind == PACE_SAME && client->lane_user.sender == 0))
        return true;
    struct sender *sender = need_sender(client, now_ns);
    if (sender == NULL)
        return true;
    if (is_first && pace->kind == PACE_SEVERAL && has_subject_had_its_time(client, sender)) {
        pace->is_used = false;
        return false;
    }
    pace->left_ns =
        pace->kind == PACE_SEVERAL ? fair_room(sender, now_ns) : fair_room_alone(sender);
    pace->is_used = !is_first || pace->left_ns > 0;
    if (pace->left_ns == 0)
        hold_up(client, sender, pace->kind);
    return pace->left_ns > 0;
}

void fair_share_end(struct client *client)
{
    struct sender *sender = sender_of(client);
    if (sender == NULL)
        return;
    if (client->front->fair.are_several)
        fair_share_note_time(client->front, sender->flow);
    fair_settle(sender);
    if (!fair_share_must_wait(client)) /* the wait has ended before the share allowed the request */
        fair_stop_waiting(sender);
}

void fair_share_stop(struct client *client)
{
    set_waits_for_share(client, false);
    fair_share_end(client);
}

/*
 * Charges requests. The in-flight window does not wait for the reply to a request that may block.
 */
void fair_share_count(struct client *client, uint32_t n, uint64_t work_ns)
{
    struct sender *sender = sender_of(client);
    fair_sent(sender, n, work_ns, client->front->loop->now_ns);
    if (fair_share_is_blocked(client))
        fair_forget(sender);
}

/* Charges a command of a transaction. Redis executes queued commands at EXEC. */
void fair_share_count_in_transaction(struct client *client, const struct command *command,
                                     uint64_t work_ns)
{
    struct sender *sender = sender_of(client);
    if (transaction_queues(&client->transaction, command->effect)) {
        fair_queued(sender, work_ns, client->front->loop->now_ns);
        return;
    }
    fair_share_count(client, 1, work_ns);
    if (command_is_bracket(command))
        fair_ends_transaction(sender, command->effect == EFFECT_EXEC);
}

void fair_share_note_answered(struct client *client, uint64_t sent_ns, uint32_t n)
{
    struct sender *sender = sender_of(client);
    if (sender != NULL)
        fair_answered(sender, n, sent_ns, client->front->loop->now_ns);
}

void fair_share_charge(struct client *client, uint64_t work_ns)
{
    struct sender *sender = sender_of(client);
    if (sender != NULL)
        fair_charge(sender, work_ns);
}

void fair_share_note_bytes(struct client *client, size_t bytes)
{
    fair_share_charge(client, fair_share_bytes_ns(bytes));
}

void fair_share_forget(struct client *client)
{
    struct sender *sender = sender_of(client);
    if (sender != NULL)
        fair_forget(sender);
}

void fair_share_leave(struct client *client)
{
    struct sender *sender = sender_of(client);
    if (sender == NULL)
        return;
    fair_leave(fair_share_queue_of(client), sender);
    if (client_waits_for(client, WAIT_SHARE))
        client_resume(client, WAIT_SHARE);
}

/* ---- a worker ---- */

static void fair_share_on_tick(uv_timer_t *timer)
{
    struct front *front = timer->data;
    struct fair_queue *queue = queue_of_worker(front);
    loop_tick(front->loop);
    fair_tick(queue, front->loop->now_ns);
    if (fair_is_waited_for(queue))
        start_timer(front);
}

static void start_timer(struct front *front)
{
    if (!uv_is_active((uv_handle_t *)&front->fair.timer))
        uv_timer_start(&front->fair.timer, fair_share_on_tick, TICK_MS, 0);
}

void fair_share_init(struct front *front)
{
    uv_timer_init(&front->loop->uv, &front->fair.timer);
    front->fair.timer.data = front;
}

void fair_share_close(struct front *front)
{
    uv_close((uv_handle_t *)&front->fair.timer, NULL);
}

/*
 * True if several subjects send. Requests that wait for a share prove contention, also while Redis
 * executes one request for longer than CONTENTION_NS.
 */
static bool fair_share_is_shared(const struct front *front, const struct fair_queue *queue,
                                 uint64_t now_ns)
{
    return front->rules->has_shares && !is_any_paused(front, now_ns) &&
           (mixture_is(&queue->contention->subjects, now_ns) || fair_is_shared(queue));
}

/*
 * Returns true if several subjects send: replies are then written before woken clients send more.
 * Requests of clients that had to wait therefore do not delay replies to other clients.
 */
bool fair_share_on_iteration(struct loop *loop)
{
    struct front *front = loop->owner;
    struct fair_queue *queue = queue_of_worker(front);
    bool is_open = !fair_share_is_shared(front, queue, loop->now_ns);
    /* each client that got a grant was woken at once, and has called fair_share_end */
    assert(queue->granted_ns == 0);
    fair_iteration(queue, is_open);
    return !is_open;
}

bool fair_share_is_unsettled(struct loop *loop)
{
    return fair_is_unsettled(queue_of_worker(loop->owner));
}
