#include "limit/attempts.h"

#include <pthread.h>
#include <stdlib.h>

#include "base/mem.h"
#include "limit/gate.h"

#define BUCKETS 256 /* chosen: few addresses log in at the same time */

/*
 * The logins of one address, waiting or under way. The queue is freed when the address has no
 * logins.
 */
struct attempt_queue {
    struct list in_bucket;
    const struct subject *subject;
    struct list waiting; /* struct attempt, FIFO */
    uint64_t under_way;
};

struct attempt_worker {
    void *worker;     /* argument of `wake`; NULL: do not wake */
    struct list news; /* struct attempt */
};

struct attempts {
    pthread_mutex_t lock; /* protects all fields below, and each attempt in them */
    void (*wake)(void *worker);
    struct list buckets[BUCKETS];
    struct attempt_worker workers[];
};

static struct attempt *attempt_of(struct list *in_list)
{
    return container_of(in_list, struct attempt, in_list);
}

struct attempts *attempts_new(unsigned n_workers, void (*wake)(void *worker))
{
    struct attempts *attempts =
        mem_zalloc(1, sizeof *attempts + n_workers * sizeof(struct attempt_worker));
    pthread_mutex_init(&attempts->lock, NULL);
    attempts->wake = wake;
    for (unsigned i = 0; i < BUCKETS; i++)
        list_init(&attempts->buckets[i]);
    for (unsigned i = 0; i < n_workers; i++)
        list_init(&attempts->workers[i].news);
    return attempts;
}

void attempts_free(struct attempts *attempts)
{
    pthread_mutex_destroy(&attempts->lock);
    free(attempts);
}

void attempts_set_worker(struct attempts *attempts, unsigned index, void *worker)
{
    pthread_mutex_lock(&attempts->lock);
    attempts->workers[index].worker = worker;
    pthread_mutex_unlock(&attempts->lock);
}

/* ---- one address, under the lock ---- */

/* Finds or makes the queue of this subject. NULL: out of memory. */
static struct attempt_queue *attempts_queue_of(struct attempts *attempts,
                                               const struct subject *subject)
{
    struct list *bucket = &attempts->buckets[subject->hash % BUCKETS];
    for (struct list *at = bucket->next; at != bucket; at = at->next) {
        struct attempt_queue *queue = container_of(at, struct attempt_queue, in_bucket);
        if (queue->subject == subject)
            return queue;
    }
    struct attempt_queue *queue = calloc(1, sizeof *queue);
    if (queue == NULL)
        return NULL;
    queue->subject = subject;
    list_init(&queue->waiting);
    list_push(bucket, &queue->in_bucket);
    return queue;
}

static void free_if_empty(struct attempt_queue *queue)
{
    if (queue->under_way > 0 || !list_is_empty(&queue->waiting))
        return;
    list_take(&queue->in_bucket);
    free(queue);
}

/* Decides the next login in order. ATTEMPT_WAITS: not yet. */
static enum attempt_state judge_next(const struct attempt_queue *queue, uint64_t room)
{
    if (room == 0)
        return ATTEMPT_BARRED;
    return queue->under_way < room ? ATTEMPT_UNDER_WAY : ATTEMPT_WAITS;
}

static void attempts_settle(struct attempt *attempt, enum attempt_state state)
{
    attempt->state = state;
    attempt->queue->under_way += state == ATTEMPT_UNDER_WAY;
    if (state == ATTEMPT_BARRED)
        /* the queue may be freed before the worker of the attempt reads the state */
        attempt->queue = NULL;
}

/* Decides waiting logins until one must keep waiting. */
static void advance(struct attempts *attempts, struct attempt_queue *queue, uint64_t room)
{
    while (!list_is_empty(&queue->waiting)) {
        enum attempt_state state = judge_next(queue, room);
        if (state == ATTEMPT_WAITS)
            return;
        struct attempt *attempt = attempt_of(queue->waiting.next);
        struct attempt_worker *worker = &attempts->workers[attempt->worker];
        list_take(&attempt->in_list);
        attempts_settle(attempt, state);
        list_push(&worker->news, &attempt->in_list);
        if (worker->worker != NULL)
            attempts->wake(worker->worker);
    }
}

/* ---- from a worker ---- */

enum attempt_state attempts_begin(struct attempts *attempts, struct attempt *attempt,
                                  const struct charge_target *target, unsigned worker,
                                  uint64_t now_ns)
{
    *attempt = (struct attempt){.worker = worker, .state = ATTEMPT_STARVED};
    list_init(&attempt->in_list);
    pthread_mutex_lock(&attempts->lock);
    struct attempt_queue *queue = attempt->queue =
        attempts_queue_of(attempts, target->holders[PER_SUBJECT]);
    if (queue != NULL) {
        uint64_t room = gate_logins_left(target, now_ns);
        advance(attempts, queue, room); /* debt may have drained since the last login ended */
        enum attempt_state state =
            list_is_empty(&queue->waiting) ? judge_next(queue, room) : ATTEMPT_WAITS;
        attempts_settle(attempt, state);
        if (state == ATTEMPT_WAITS)
            list_push(&queue->waiting, &attempt->in_list);
        free_if_empty(queue);
    }
    pthread_mutex_unlock(&attempts->lock);
    return attempt->state;
}

void attempts_end(struct attempts *attempts, struct attempt *attempt,
                  const struct charge_target *target, bool is_failure, uint64_t now_ns,
                  struct limit_counters *limit_counters)
{
    pthread_mutex_lock(&attempts->lock);
    struct attempt_queue *queue = attempt->queue;
    list_take(&attempt->in_list);
    if (is_failure && target->policy != NULL)
        gate_login_failed(target, now_ns, limit_counters);
    if (queue != NULL) {
        queue->under_way -= attempt->state == ATTEMPT_UNDER_WAY;
        advance(attempts, queue,
                target->policy != NULL ? gate_logins_left(target, now_ns) : UINT64_MAX);
        free_if_empty(queue);
    }
    attempt->queue = NULL;
    attempt->state = ATTEMPT_NONE;
    pthread_mutex_unlock(&attempts->lock);
}

struct attempt *attempts_news(struct attempts *attempts, unsigned worker)
{
    struct list *news = &attempts->workers[worker].news;
    struct attempt *attempt = NULL;
    pthread_mutex_lock(&attempts->lock);
    if (!list_is_empty(news)) {
        attempt = attempt_of(news->next);
        list_take(&attempt->in_list);
    }
    pthread_mutex_unlock(&attempts->lock);
    return attempt;
}
