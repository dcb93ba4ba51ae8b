/*
 * The fair queue of one worker: which of its clients may send to Redis now, so that subjects share Redis' time.
 *
 *     sender asks -- fair_room: so much work may it send, or none --> fair_wait
 *                 -- fair_sent
 *     answers     -- fair_answered ... fair_turn: the next senders are woken, each with a grant
 *
 * All work is in ns of Redis' time: what a request costs is known (limit/command/command_costs.h), and is charged
 * when it is sent;
 * the bytes of replies are charged when they come (FAIR_BYTES_PER_NS). While one subject is alone it sends what it
 * likes. As soon as another sends too:
 *
 * - all that is under way fits in one window (window.h), of which each worker has a part by the weight of what waits
 * there;
 * - deficit round robin between the subjects' flows, weighted (Shreedhar, Varghese: Efficient Fair Queuing using
 * Deficit
 *   Round Robin). A thousand senders of one subject are one flow;
 * - a flow that has had less than its share lately has up to a quantum of credit and does not wait (new flows of
 * fq_codel).
 *
 * Where one subject is alone with several senders, none of them has more than two windows of work under way.
 *
 * A subject that leaves and comes again finds its credit as it was: a new connection for each request gains nothing.
 *
 * Nothing waits for ever: a sender waits because of work under way on this worker, and its answer ends the wait. What a
 * sender has under way is not counted any more when nothing of it is answered for FAIR_PATIENCE_NS and twice as long as
 * all that is under way should take (fair_tick).
 * Time is an argument; the worker's thread only, but for what contention.h holds.
 */
#ifndef WEIR_UPSTREAM_FAIR_QUEUE_H
#define WEIR_UPSTREAM_FAIR_QUEUE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/chain.h"
#include "base/list.h"
#include "limit/subject.h"
#include "upstream/fair/contention.h"
#include "upstream/fair/window.h"

#define FAIR_BUCKETS 256
#define FAIR_QUANTUM_NS (100 * NS_PER_US) /* at FAIR_WEIGHT, or more where the window is larger */
#define FAIR_WEIGHT 100                   /* a subject's, unless its policy says otherwise */
#define FAIR_BYTES_PER_NS                                                                                              \
    4 /* of requests and replies, which Redis copies: 0.25 ns a byte, between 0.1 (1 MiB) and 0.6 (64 MiB) */
#define FAIR_PATIENCE_NS (50 * NS_PER_MS)
#define FAIR_ALL INT64_MAX /* so much work that it need not be counted */

struct rider;

struct fair_queue {
    unsigned holders;              /* fair_queue_get; not counted where it is part of something else */
    struct contention *contention; /* the node's */
    struct pool *pool;             /* where memory is counted */
    void (*wake)(struct rider *rider);
    struct list flows[FAIR_BUCKETS]; /* by subject */
    struct sender **senders;         /* by number - 1; heap */
    uint32_t n_numbers;              /* there */
    uint32_t free_number;            /* none below it is free */
    uint32_t n_senders;
    bool is_open;                /* one subject sends alone: nothing is charged, and nothing waits for a share */
    uint32_t n_crowding;         /* senders that wait for their own requests */
    struct list round;           /* of flows of which senders wait: the next is first */
    struct list low;             /* the same, of low priority */
    uint64_t weights;            /* of those in the round */
    uint64_t work_ns;            /* under way, ... */
    uint64_t granted_ns;         /* ... and granted, but not sent yet */
    uint64_t limit_ns;           /* of both: the window; half of it in a turn that began with nothing under way */
    uint64_t answered_ns;        /* work that Redis has done, in all */
    const struct fair_flow *out; /* the last that left the round in this turn; only to be compared */
    uint32_t n_out;              /* flows that left the round in this turn, and of which senders were woken */
    uint32_t round_no;           /* the number of this one, which wraps */
    uint32_t n_visited;          /* flows visited in it, ... */
    uint32_t n_sharing;          /* ... and in the one before; at least 1 */
    struct send_window window;
};

/* What one subject sends on this worker: the unit that shares are of. */
struct fair_flow {
    struct fair_queue *queue;
    struct subject *subject; /* NULL: it has no sender; kept for what it owes */
    uint64_t hash;           /* the subject's */
    struct list in_table;
    struct list in_turn; /* in queue.round or queue.low while any of its senders waits */
    struct list waiting; /* sender.in_flow: the next is first */
    uint32_t n_senders;
    uint32_t weight;      /* FAIR_WEIGHT is an ordinary share */
    uint32_t counted;     /* the weight that counts while it waits, in queue.weights; 0: it does not wait */
    uint32_t round_no;    /* the last one in which it had a quantum */
    bool is_low;          /* served when nothing else waits */
    bool is_visited;      /* it is at the head of the round, and has its quantum */
    uint64_t work_ns;     /* under way, as far as an answer is expected; in queue.work_ns */
    uint64_t cost_ns;     /* of one of its requests, on average of those sent last */
    int64_t credit_ns;    /* what it may send at once (the deficit counter); below 0: it had so much beyond its share */
    uint64_t answered_ns; /* its work that Redis has done, in all */
    uint64_t others_ns;   /* the same of all others when it paid last */
    uint64_t moved_ns;    /* when something of it was answered last, or sent while nothing was under way */
    uint64_t taken_ns;    /* the worker's time that taking its requests took, ... */
    uint64_t turn_ns;     /* ... in the turn of the loop that began then: front/route/fair_share.c */
};

/* A client with requests that are counted. */
struct sender {
    struct rider *rider;
    struct fair_flow *flow;
    struct list in_flow; /* in flow.waiting; itself: it does not wait for its share */
    uint32_t number;     /* rider.sender */
    uint32_t requests;   /* under way, ... */
    uint64_t work_ns;    /* ... and their work, as far as an answer is expected */
    uint64_t granted_ns; /* what it may send now; taken off the credit already */
    uint64_t queued_ns;  /* charged already, and done when its transaction is executed */
    uint64_t moved_ns;   /* when something of it was answered last, or sent while nothing was under way */
    bool is_deep;        /* it used up what it was last granted */
    bool is_crowding;    /* it waits until less of its own work is under way */
};

void fair_queue_init(struct fair_queue *queue, struct contention *contention, struct pool *pool,
                     void (*wake)(struct rider *rider));

/* As fair_queue_init, with one reference. Out of memory ends the process. */
struct fair_queue *fair_queue_new(struct contention *contention, struct pool *pool, void (*wake)(struct rider *rider));
struct fair_queue *fair_queue_get(struct fair_queue *queue);
void fair_queue_put(struct fair_queue *queue); /* the last calls fair_queue_fini */

/* No sender may be there any more. */
void fair_queue_fini(struct fair_queue *queue);

/* ---- which clients are counted: fair_flows.c ---- */

/* From now on the rider is counted for this subject, which outlives that. NULL: out of memory, and it is not. */
struct sender *fair_enter(struct fair_queue *queue, struct rider *rider, struct subject *subject, uint64_t now_ns);

/* The rider has gone, or is another subject's: what it has under way counts for nothing. */
void fair_leave(struct fair_queue *queue, struct sender *sender);

static inline struct sender *fair_sender(const struct fair_queue *queue, uint32_t number)
{
    return queue->senders[number - 1];
}

/* What the policy of its subject says. */
static inline void fair_set(struct sender *sender, uint32_t weight, bool is_low)
{
    sender->flow->weight = weight;
    sender->flow->is_low = is_low;
}

/* ---- sending ---- */

/* How much work may it send now, while several subjects do? 0: none; then fair_wait. The last request may exceed it. */
int64_t fair_room(struct sender *sender, uint64_t now_ns);

/* The same while its subject is alone, and has several senders. 0: fair_wait_for_own. */
int64_t fair_room_alone(const struct sender *sender);

/* It has sent `n` requests of so much work together. */
void fair_sent(struct sender *sender, uint32_t n, uint64_t work_ns, uint64_t now_ns);

/* It has sent a request that Redis queues in a transaction: charged now, under way from EXEC on. */
void fair_queued(struct sender *sender, uint64_t work_ns, uint64_t now_ns);

/* The request sent last ends its transaction. `is_executed`: what was queued is under way from now on. */
void fair_ends_transaction(struct sender *sender, bool is_executed);

/* So much more work, of bytes, than was known when it was sent. */
void fair_charge(struct sender *sender, uint64_t work_ns);

/* It has sent what it can of what it was granted: the rest is for others. */
void fair_settle(struct sender *sender);

/* Its link is woken when its share allows it to send; or when less of its own work is under way. */
void fair_wait(struct sender *sender);
void fair_wait_for_own(struct sender *sender);
void fair_stop_waiting(struct sender *sender);

/* ---- answers ---- */

/* So many of its requests, or other calls of the rider's, that were sent at sent_ns (0: not known), are answered. */
void fair_answered(struct sender *sender, uint32_t n, uint64_t sent_ns, uint64_t now_ns);

/* What it has under way will not be answered, as far as is known: it is not counted any more. */
void fair_forget(struct sender *sender);

/* Once in each turn of the loop, before woken links are called. `is_open`: nothing is to wait. */
void fair_turn(struct fair_queue *queue, bool is_open);

/* May a sender that waits go, which no answer will wake? Then another turn is to follow at once. */
bool fair_is_unsettled(struct fair_queue *queue);

/* Every 10 ms or so while anything waits: what has not been answered for long is not counted any more. */
void fair_tick(struct fair_queue *queue, uint64_t now_ns);

/* Does anything wait for its share? */
static inline bool fair_is_shared(const struct fair_queue *queue)
{
    return !list_is_empty(&queue->round) || !list_is_empty(&queue->low);
}

/* ... or for less of its own? */
static inline bool fair_is_waited_for(const struct fair_queue *queue)
{
    return fair_is_shared(queue) || queue->n_crowding > 0;
}

#endif
