/*
 * The fair queue of one worker: which clients may send to Redis now. Subjects thus share Redis'
 * time.
 *
 *     sender asks -- fair_room: the work it may send, or none --> fair_wait
 *     sender sends -- fair_sent: the work is charged
 *     answers     -- fair_answered ... fair_iteration: wakes the next senders, each with a grant
 *
 * All work is in ns of Redis' time. The cost of a request is known (limit/command/command_costs.h),
 * and is charged when the request is sent. The bytes of replies are charged when they arrive
 * (FAIR_BYTES_PER_NS). A subject that sends alone gets all of Redis. As soon as several subjects
 * send:
 *
 * - all work in flight fits in one window (struct send_window). Each worker has a part of the
 *   window, in proportion to the weight of its waiting flows;
 * - deficit round robin runs between the subjects' flows, weighted (Shreedhar, Varghese: Efficient
 *   Fair Queuing using Deficit Round Robin). A thousand senders of one subject are one flow;
 * - a flow that recently had less than its share has up to a quantum of credit and does not wait
 *   (new flows of fq_codel).
 *
 * If one subject sends alone with several senders, each sender has at most two windows of work in
 * flight.
 *
 * A subject that leaves and returns has the same credit as before. A new connection for each
 * request gains nothing.
 *
 * No sender waits for ever: a sender waits for work in flight on this worker, and the answer to
 * that work ends the wait. Unanswered work of a sender stops counting after FAIR_PATIENCE_NS plus
 * twice the expected time of all work in flight (fair_tick). Time is an argument. Only the worker's
 * thread calls these functions.
 */
#ifndef WEIR_UPSTREAM_FAIR_QUEUE_H
#define WEIR_UPSTREAM_FAIR_QUEUE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/chain.h"
#include "base/clock.h"
#include "base/list.h"
#include "limit/subject.h"
#include "upstream/fair/contention.h"

/* ---- the in-flight window ---- */

/*
 * The in-flight window: how much work weir keeps under way at Redis, in ns. The window is the round
 * trip plus the slack. The slack is the queue in front of Redis.
 *
 * One signal sets the slack: the part of the time in which Redis is idle while requests wait in
 * weir. If requests wait between two batches of answers, the idle time is the larger of:
 *
 *     when the first request of the later batch was sent + round trip - when the earlier batch came
 *     if the later batch leaves nothing under way: time between the batches - 9/8 of its work
 *
 * The slack changes every WINDOW_PERIOD_NS plus a round trip. The slack grows by a half if Redis
 * was idle for more than 1 / WINDOW_DRY_MANY of that period. The slack shrinks by 1 / WINDOW_SHRINK
 * if Redis was idle for less than 1 / WINDOW_DRY_FEW. The whole period counts, even if requests
 * waited only for a small part of the period. A few pauses of a processor thus do not make the
 * slack grow. Linux' dynamic queue limits set the queues of network cards by a similar rule.
 *
 * Work is estimated by the cost table. Before weir has asked Redis for costs, an estimate may be
 * ten times the time that a command takes. Redis then does a window of work in a tenth of the time.
 * The window is therefore multiplied by the speed: work answered / time waited in the latest
 * period, from 1 to 16. If requests waited for less than half of the period the speed is 1. When
 * the table learns the cost, the window follows within a period.
 */
#define WINDOW_SLACK_NS (150 * NS_PER_US) /* the least */
#define WINDOW_SLACK_MOST_NS (20 * NS_PER_MS)
#define WINDOW_TRIP_NS (50 * NS_PER_US) /* the round trip until one is measured */
#define WINDOW_PERIOD_NS (50 * NS_PER_MS)
#define WINDOW_DRY_MANY 25
#define WINDOW_DRY_FEW 50
#define WINDOW_SHRINK 8
#define WINDOW_WORK_MORE 8  /* work may exceed the table's estimate by 1 / WINDOW_WORK_MORE */
#define WINDOW_SPEED_ONE 64 /* speed while the cost table is right */
/* 16: the table's cost of PING is 2 us before weir has asked Redis, and 0.15 us afterwards. */
#define WINDOW_SPEED_MOST (16 * WINDOW_SPEED_ONE)

struct send_window {
    uint64_t trip_ns; /* the shortest round trip of the last seconds; 0: not known */
    uint64_t more_ns; /* slack beyond WINDOW_SLACK_NS */
    uint32_t faster;  /* speed beyond one, in 1 / WINDOW_SPEED_ONE */
    /* Of the newest batch of answers: */
    uint64_t heard_ns; /* when the newest batch came */
    uint64_t gap_ns;   /* time since the batch before; 0: no request waited in between */
    uint64_t late_ns;  /* the part of gap_ns until the first request of the batch reached Redis */
    uint64_t work_ns;  /* its work */
    bool waits;        /* requests waited in weir when the batch came */
    bool is_dry;       /* the batch left nothing under way */
    /* Of the current period, without the newest batch: */
    uint64_t began_ns;
    uint64_t waited_ns; /* how long requests waited */
    uint64_t done_ns;   /* work answered while requests waited */
    uint64_t idle_ns;   /* how long Redis was idle while requests waited */
};

static inline uint64_t window_trip_ns(const struct send_window *window)
{
    return window->trip_ns > 0 ? window->trip_ns : WINDOW_TRIP_NS;
}

static inline uint64_t window_size_ns(const struct send_window *window)
{
    uint64_t size_ns = window_trip_ns(window) + WINDOW_SLACK_NS + window->more_ns;
    return size_ns + size_ns * window->faster / WINDOW_SPEED_ONE;
}

/*
 * Notes work that was answered. sent_ns: when the first request of that work was sent; 0: not
 * known. waits: requests wait in weir. is_dry: nothing is under way any more.
 */
void window_answered(struct send_window *window, uint64_t sent_ns, uint64_t work_ns, bool waits,
                     bool is_dry, uint64_t now_ns);

/* ---- the queue ---- */

#define FAIR_BUCKETS 256
/* chosen: quantum at FAIR_WEIGHT; grows with the window */
#define FAIR_QUANTUM_NS (100 * NS_PER_US)
/* the weight of a subject without a weight in its policy */
#define FAIR_WEIGHT 100
/*
 * measured: Redis copies requests and replies at 0.25 ns a byte, between 0.1 (1 MiB) and 0.6 (64
 * MiB)
 */
#define FAIR_BYTES_PER_NS 4
#define FAIR_PATIENCE_NS (50 * NS_PER_MS)
#define FAIR_ALL INT64_MAX /* unlimited work */

struct lane_user;

struct fair_queue {
    /* references, see fair_queue_get; unused if embedded in another struct */
    unsigned holders;
    struct contention *contention; /* contention of the node */
    struct pool *pool;             /* counts the memory of flows and senders */
    void (*wake)(struct lane_user *lane_user);
    struct list flows[FAIR_BUCKETS]; /* by the subject's hash */
    struct sender **senders;         /* by number - 1; heap */
    uint32_t n_numbers;              /* capacity of `senders` */
    uint32_t free_number;            /* no lower number is free */
    uint32_t n_senders;
    /* one subject sends alone: nothing is charged, and no sender waits for a share */
    bool is_open;
    uint32_t n_crowding; /* senders that wait for their own requests */
    struct list round;   /* flows with waiting senders; the first is served next */
    struct list low;     /* flows of low priority with waiting senders */
    uint64_t weights;    /* sum of the weights in the round */
    uint64_t work_ns;    /* work in flight */
    uint64_t granted_ns; /* granted work that is not sent yet */
    /*
     * bound on work_ns + granted_ns: the window, or half a window in an iteration that began with
     * nothing in flight
     */
    uint64_t limit_ns;
    uint64_t answered_ns; /* work that Redis has done, in total */
    /* the flow that left the round last in this iteration; only for comparison */
    const struct fair_flow *out;
    /* flows that left the round in this iteration, and had senders woken */
    uint32_t n_out;
    uint32_t round_no;  /* number of the present round; wraps */
    uint32_t n_visited; /* flows visited in the present round */
    uint32_t n_sharing; /* flows visited in the round before; at least 1 */
    struct send_window window;
};

/* The requests of one subject on this worker: the unit of sharing. */
struct fair_flow {
    struct fair_queue *queue;
    struct subject *subject; /* NULL: no sender is left, and the flow is kept for its debt */
    uint64_t hash;           /* hash of the subject */
    struct list in_table;
    struct list in_round; /* in queue.round or queue.low while a sender of the flow waits */
    struct list waiting;  /* senders, by sender.in_flow; the first is next */
    uint32_t n_senders;
    uint32_t weight;      /* FAIR_WEIGHT is an ordinary share */
    uint32_t counted;     /* part of queue.weights while the flow waits; 0: does not wait */
    uint32_t round_no;    /* the last round in which the flow had a quantum */
    bool is_low;          /* served only when no other flow waits */
    bool is_visited;      /* at the head of the round, and has received its quantum */
    uint64_t work_ns;     /* work in flight with an answer expected; part of queue.work_ns */
    uint64_t cost_ns;     /* average cost of one request, over the last requests sent */
    int64_t credit_ns;    /* the deficit counter: work that may be sent at once; below 0: a debt */
    uint64_t answered_ns; /* work of the flow that Redis has done, in total */
    uint64_t others_ns;   /* answered work of all other flows when the debt was last reduced */
    uint64_t moved_ns;    /* time of the last answer, or of the last send with nothing in flight */
    /* the worker's time for reading requests of the flow in one event-loop iteration */
    uint64_t taken_ns;
    /* when the iteration of taken_ns began: front/route/fair_share.c */
    uint64_t iteration_ns;
};

/* A client in the fair queue. */
struct sender {
    struct lane_user *lane_user;
    struct fair_flow *flow;
    struct list in_flow; /* in flow.waiting; empty: does not wait for a share */
    uint32_t number;     /* lane_user.sender */
    uint32_t requests;   /* requests in flight */
    uint64_t work_ns;    /* work in flight with an answer expected */
    uint64_t granted_ns; /* work that may be sent now; already subtracted from the credit */
    /* work of requests queued in a transaction: charged already, done at EXEC */
    uint64_t queued_ns;
    uint64_t moved_ns; /* time of the last answer, or of the last send with nothing in flight */
    bool is_deep;      /* the sender used up its last grant */
    bool is_crowding;  /* the sender waits until less of its own work is in flight */
};

void fair_queue_init(struct fair_queue *queue, struct contention *contention, struct pool *pool,
                     void (*wake)(struct lane_user *lane_user));

/* Like fair_queue_init, with one reference. Out of memory ends the process. */
struct fair_queue *fair_queue_new(struct contention *contention, struct pool *pool,
                                  void (*wake)(struct lane_user *lane_user));
struct fair_queue *fair_queue_get(struct fair_queue *queue);
void fair_queue_put(struct fair_queue *queue); /* the last reference calls fair_queue_fini */

/* No sender may be left. */
void fair_queue_fini(struct fair_queue *queue);

/* ---- senders and flows: fair_flows.c ---- */

/*
 * Enter the lane user as a sender of `subject`. The subject must outlive the sender. NULL: out of
 * memory, and the lane user is not entered.
 */
struct sender *fair_enter(struct fair_queue *queue, struct lane_user *lane_user,
                          struct subject *subject, uint64_t now_ns);

/*
 * Remove the sender: its client leaves or changes its subject. The sender's work in flight no
 * longer counts.
 */
void fair_leave(struct fair_queue *queue, struct sender *sender);

static inline struct sender *fair_sender(const struct fair_queue *queue, uint32_t number)
{
    return queue->senders[number - 1];
}

/* Set weight and priority, from the subject's policy. */
static inline void fair_set(struct sender *sender, uint32_t weight, bool is_low)
{
    sender->flow->weight = weight;
    sender->flow->is_low = is_low;
}

/* ---- sending ---- */

/*
 * Work that the sender may send now, while several subjects send. 0: call fair_wait. The last
 * request may exceed this work.
 */
int64_t fair_room(struct sender *sender, uint64_t now_ns);

/* Like fair_room, while the subject sends alone with several senders. 0: call fair_wait_for_own. */
int64_t fair_room_alone(const struct sender *sender);

/* The sender has sent `n` requests with `work_ns` of work in total. */
void fair_sent(struct sender *sender, uint32_t n, uint64_t work_ns, uint64_t now_ns);

/*
 * The sender has sent a request that Redis queues in a transaction. The work is charged now, and in
 * flight from EXEC on.
 */
void fair_queued(struct sender *sender, uint64_t work_ns, uint64_t now_ns);

/*
 * The last request sent ends its transaction. `is_executed`: the queued work is in flight from now
 * on.
 */
void fair_ends_transaction(struct sender *sender, bool is_executed);

/* Charge additional work, for bytes, that was unknown when the request was sent. */
void fair_charge(struct sender *sender, uint64_t work_ns);

/* The sender sends no more of its grant: the rest of the grant goes back to the flow. */
void fair_settle(struct sender *sender);

/*
 * fair_wait makes the sender wait for a share. fair_wait_for_own makes the sender wait until less
 * of its own work is in flight. `wake` is called at the end of either wait.
 */
void fair_wait(struct sender *sender);
void fair_wait_for_own(struct sender *sender);
void fair_stop_waiting(struct sender *sender);

/* ---- answers ---- */

/*
 * `n` requests, or other calls, of the sender's lane user are answered. sent_ns: when the
 * requests were sent; 0: unknown.
 */
void fair_answered(struct sender *sender, uint32_t n, uint64_t sent_ns, uint64_t now_ns);

/* The sender's work in flight will probably not be answered: stop counting that work. */
void fair_forget(struct sender *sender);

/* Call once in each iteration, before woken links are called. `is_open`: all senders may send. */
void fair_iteration(struct fair_queue *queue, bool is_open);

/*
 * True if a waiting sender may send now, and no answer will wake that sender. Another iteration
 * must follow at once.
 */
bool fair_is_unsettled(struct fair_queue *queue);

/* Call about every 10 ms while any sender waits: stops counting work that is long unanswered. */
void fair_tick(struct fair_queue *queue, uint64_t now_ns);

/* True if any sender waits for its share. */
static inline bool fair_is_shared(const struct fair_queue *queue)
{
    return !list_is_empty(&queue->round) || !list_is_empty(&queue->low);
}

/* True if any sender waits, for its share or for its own work. */
static inline bool fair_is_waited_for(const struct fair_queue *queue)
{
    return fair_is_shared(queue) || queue->n_crowding > 0;
}

#endif
