#include "upstream/fair/fair_queue.h"

#include <assert.h>
#include <stdlib.h>

#include "base/mem.h"
#include "upstream/lane/lane_user.h"

#define FIRST_NUMBERS 16

void fair_queue_init(struct fair_queue *queue, struct contention *contention, struct pool *pool,
                     void (*wake)(struct lane_user *lane_user))
{
    *queue = (struct fair_queue){.contention = contention, .pool = pool, .wake = wake};
    queue->n_sharing = 1;
    queue->limit_ns = window_size_ns(&queue->window);
    list_init(&queue->round);
    list_init(&queue->low);
    for (size_t i = 0; i < FAIR_BUCKETS; i++)
        list_init(&queue->flows[i]);
}

/* ---- flows, by subject ---- */

static struct fair_flow *make_flow(struct fair_queue *queue, struct subject *subject,
                                   uint64_t now_ns)
{
    struct fair_flow *flow = calloc(1, sizeof *flow);
    if (flow == NULL)
        return NULL;
    flow->queue = queue;
    flow->subject = subject;
    flow->hash = subject->hash;
    flow->weight = FAIR_WEIGHT;
    flow->moved_ns = now_ns;
    flow->credit_ns = FAIR_QUANTUM_NS;
    flow->cost_ns = 1;
    flow->others_ns = queue->answered_ns;
    list_init(&flow->waiting);
    list_init(&flow->in_round);
    list_push(&queue->flows[subject->hash % FAIR_BUCKETS], &flow->in_table);
    pool_note_more(queue->pool, sizeof *flow);
    return flow;
}

static void free_flow(struct fair_flow *flow)
{
    assert(flow->work_ns == 0 && flow->counted == 0 && flow->n_senders == 0);
    list_take(&flow->in_table);
    pool_note_less(flow->queue->pool, sizeof *flow);
    free(flow);
}

/*
 * True if the flow has as much credit now as a new flow. A flow with less credit is kept, even
 * without senders.
 */
static bool is_as_new(const struct fair_flow *flow, uint64_t now_ns)
{
    int64_t lacks_ns = (int64_t)FAIR_QUANTUM_NS - flow->credit_ns;
    return lacks_ns <= 0 || now_ns >= flow->moved_ns + (uint64_t)lacks_ns;
}

/* Returns the subject's flow, or NULL. Frees unneeded flows of other subjects on the way. */
static struct fair_flow *find_flow(struct fair_queue *queue, struct subject *subject,
                                   uint64_t now_ns)
{
    const struct list *bucket = &queue->flows[subject->hash % FAIR_BUCKETS];
    for (struct list *at = bucket->next, *next; at != bucket; at = next) {
        struct fair_flow *flow = container_of(at, struct fair_flow, in_table);
        next = at->next;
        if (flow->subject == subject)
            return flow;
        if (flow->subject != NULL)
            continue;
        if (is_as_new(flow, now_ns)) {
            free_flow(flow);
        } else if (flow->hash == subject->hash) {
            flow->subject = subject;
            return flow;
        }
    }
    return NULL;
}

/*
 * Called when the last sender has left. The sender's work in flight, `work_ns`, still occupies
 * Redis. The flow regains no credit for that time, because the flow is not silent.
 */
static void leave_flow(struct fair_flow *flow, uint64_t work_ns)
{
    flow->moved_ns += work_ns;
    if (flow->credit_ns >= (int64_t)FAIR_QUANTUM_NS)
        free_flow(flow);
    else
        flow->subject = NULL;
}

static void free_flows(struct fair_queue *queue)
{
    for (size_t i = 0; i < FAIR_BUCKETS; i++)
        while (!list_is_empty(&queue->flows[i]))
            free_flow(container_of(queue->flows[i].next, struct fair_flow, in_table));
}

/* ---- senders, by number ---- */

static bool make_numbers(struct fair_queue *queue)
{
    uint32_t n = queue->n_numbers > 0 ? 2 * queue->n_numbers : FIRST_NUMBERS;
    struct sender **numbers = realloc(queue->senders, n * sizeof(struct sender *));
    if (numbers == NULL)
        return false;
    for (uint32_t i = queue->n_numbers; i < n; i++)
        numbers[i] = NULL;
    pool_note_more(queue->pool, (n - queue->n_numbers) * sizeof(struct sender *));
    queue->free_number = queue->n_numbers;
    queue->senders = numbers;
    queue->n_numbers = n;
    return true;
}

/* Returns a number from 1 on. 0: out of memory. */
static uint32_t find_number(struct fair_queue *queue)
{
    while (queue->free_number < queue->n_numbers && queue->senders[queue->free_number] != NULL)
        queue->free_number++;
    if (queue->free_number == queue->n_numbers && !make_numbers(queue))
        return 0;
    return queue->free_number + 1;
}

struct sender *fair_enter(struct fair_queue *queue, struct lane_user *lane_user,
                          struct subject *subject, uint64_t now_ns)
{
    struct fair_flow *flow = find_flow(queue, subject, now_ns);
    uint32_t number = find_number(queue);
    struct sender *sender = number != 0 ? calloc(1, sizeof *sender) : NULL;
    if (sender != NULL && flow == NULL)
        flow = make_flow(queue, subject, now_ns);
    if (sender == NULL || flow == NULL) {
        free(sender);
        if (flow != NULL && flow->n_senders == 0)
            leave_flow(flow, 0);
        return NULL;
    }
    flow->n_senders++;
    *sender = (struct sender){.lane_user = lane_user, .flow = flow, .number = number};
    list_init(&sender->in_flow);
    queue->senders[number - 1] = sender;
    queue->n_senders++;
    lane_user->sender = number;
    pool_note_more(queue->pool, sizeof *sender);
    return sender;
}

void fair_leave(struct fair_queue *queue, struct sender *sender)
{
    struct fair_flow *flow = sender->flow;
    uint64_t work_ns = sender->work_ns;
    fair_settle(sender);
    fair_stop_waiting(sender);
    fair_forget(sender);
    sender->lane_user->sender = 0;
    queue->senders[sender->number - 1] = NULL;
    if (sender->number - 1 < queue->free_number)
        queue->free_number = sender->number - 1;
    queue->n_senders--;
    pool_note_less(queue->pool, sizeof *sender);
    free(sender);
    if (--flow->n_senders == 0)
        leave_flow(flow, work_ns);
}

/* ---- life cycle ---- */

void fair_queue_fini(struct fair_queue *queue)
{
    assert(queue->n_senders == 0 && queue->work_ns == 0 && queue->granted_ns == 0 &&
           queue->weights == 0);
    free_flows(queue);
    pool_note_less(queue->pool, queue->n_numbers * sizeof(struct sender *));
    free(queue->senders);
    queue->senders = NULL;
    queue->n_numbers = 0;
}

struct fair_queue *fair_queue_new(struct contention *contention, struct pool *pool,
                                  void (*wake)(struct lane_user *lane_user))
{
    struct fair_queue *queue = mem_alloc(sizeof *queue);
    fair_queue_init(queue, contention_get(contention), pool, wake);
    queue->holders = 1;
    return queue;
}

struct fair_queue *fair_queue_get(struct fair_queue *queue)
{
    queue->holders++;
    return queue;
}

void fair_queue_put(struct fair_queue *queue)
{
    if (--queue->holders > 0)
        return;
    fair_queue_fini(queue);
    contention_put(queue->contention);
    free(queue);
}
