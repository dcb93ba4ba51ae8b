#include "upstream/schedule.h"

#include <assert.h>
#include <stdlib.h>

#include "base/mem.h"
#include "upstream/rider.h"

#define FIRST_BUCKETS 16
#define FIRST_SLOTS 16
#define SWEEP_NS (1 * NS_PER_S)

void schedule_init(struct schedule *schedule, struct contention *contention, struct pool *pool,
                   void (*wake)(struct rider *rider))
{
    *schedule = (struct schedule){.contention = contention,
                                  .pool = pool,
                                  .wake = wake,
                                  .cost_ns = SCHEDULE_COST_NS,
                                  .spread = SCHEDULE_SPREAD_UNKNOWN};
    list_init(&schedule->round);
    list_init(&schedule->low);
    list_init(&schedule->batch.answered);
}

void schedule_fini(struct schedule *schedule)
{
    assert(schedule->n_paced == 0 && schedule->n_backlogs == 0);
    assert(schedule->work_ns == 0 && schedule->promised_ns == 0 && schedule->weights == 0);
    if (schedule->n_buckets > 0)
        pool_note_less(schedule->pool, schedule->n_buckets * sizeof *schedule->buckets);
    if (schedule->n_slots > 0)
        pool_note_less(schedule->pool, schedule->n_slots * sizeof(struct paced *));
    free(schedule->buckets);
    free(schedule->paced);
    schedule->buckets = NULL;
    schedule->paced = NULL;
    schedule->n_buckets = schedule->n_slots = 0;
}

struct schedule *schedule_new(struct contention *contention, struct pool *pool, void (*wake)(struct rider *rider))
{
    struct schedule *schedule = mem_alloc(sizeof *schedule);
    schedule_init(schedule, contention_get(contention), pool, wake);
    schedule->holders = 1;
    return schedule;
}

struct schedule *schedule_get(struct schedule *schedule)
{
    schedule->holders++;
    return schedule;
}

void schedule_put(struct schedule *schedule)
{
    if (--schedule->holders > 0)
        return;
    schedule_fini(schedule);
    contention_put(schedule->contention);
    free(schedule);
}

/* ---- backlogs, by subject ---- */

static struct list *bucket_of(const struct schedule *schedule, const struct subject *subject)
{
    return &schedule->buckets[subject->hash & (schedule->n_buckets - 1)];
}

/* Twice the buckets when there are as many backlogs. False: there is not one. */
static bool make_buckets(struct schedule *schedule)
{
    if (schedule->n_backlogs < schedule->n_buckets)
        return true;
    struct schedule grown = *schedule;
    grown.n_buckets = schedule->n_buckets > 0 ? 2 * schedule->n_buckets : FIRST_BUCKETS;
    grown.buckets = malloc(grown.n_buckets * sizeof *grown.buckets);
    if (grown.buckets == NULL)
        return schedule->n_buckets > 0;
    for (size_t i = 0; i < grown.n_buckets; i++)
        list_init(&grown.buckets[i]);
    for (size_t i = 0; i < schedule->n_buckets; i++)
        while (!list_is_empty(&schedule->buckets[i])) {
            struct backlog *backlog = container_of(schedule->buckets[i].next, struct backlog, in_table);
            list_take(&backlog->in_table);
            list_push(bucket_of(&grown, backlog->subject), &backlog->in_table);
        }
    pool_note_more(schedule->pool, (grown.n_buckets - schedule->n_buckets) * sizeof *grown.buckets);
    free(schedule->buckets);
    schedule->buckets = grown.buckets;
    schedule->n_buckets = grown.n_buckets;
    return true;
}

static struct backlog *find_backlog(const struct schedule *schedule, const struct subject *subject)
{
    if (schedule->n_buckets == 0)
        return NULL;
    struct list *bucket = bucket_of(schedule, subject);
    for (struct list *at = bucket->next; at != bucket; at = at->next) {
        struct backlog *backlog = container_of(at, struct backlog, in_table);
        if (backlog->subject == subject)
            return backlog;
    }
    return NULL;
}

static struct backlog *make_backlog(struct schedule *schedule, struct subject *subject, uint64_t now_ns)
{
    struct backlog *backlog = make_buckets(schedule) ? calloc(1, sizeof *backlog) : NULL;
    if (backlog == NULL)
        return NULL;
    backlog->schedule = schedule;
    backlog->subject = subject;
    backlog->weight = SCHEDULE_WEIGHT;
    backlog->cost_ns = backlog->learnt_ns = schedule->cost_ns;
    backlog->moved_ns = now_ns;
    backlog->credit_ns = SCHEDULE_QUANTUM_NS;
    list_init(&backlog->waiting);
    list_init(&backlog->in_turn);
    list_init(&backlog->in_answered);
    list_push(bucket_of(schedule, subject), &backlog->in_table);
    schedule->n_backlogs++;
    pool_note_more(schedule->pool, sizeof *backlog);
    return backlog;
}

static void free_backlog(struct backlog *backlog)
{
    struct schedule *schedule = backlog->schedule;
    assert(backlog->under_way == 0 && backlog->work_ns == 0 && backlog->counted == 0);
    list_take(&backlog->in_table);
    list_take(&backlog->in_answered);
    schedule->n_backlogs--;
    pool_note_less(schedule->pool, sizeof *backlog);
    free(backlog);
}

/* ---- paced riders, by slot ---- */

static bool make_slots(struct schedule *schedule)
{
    uint32_t n = schedule->n_slots > 0 ? 2 * schedule->n_slots : FIRST_SLOTS;
    struct paced **slots = realloc(schedule->paced, n * sizeof(struct paced *));
    if (slots == NULL)
        return false;
    for (uint32_t i = schedule->n_slots; i < n; i++)
        slots[i] = NULL;
    pool_note_more(schedule->pool, (n - schedule->n_slots) * sizeof(struct paced *));
    schedule->free_slot = schedule->n_slots;
    schedule->paced = slots;
    schedule->n_slots = n;
    return true;
}

/* From 1. 0: out of memory. */
static uint32_t find_slot(struct schedule *schedule)
{
    while (schedule->free_slot < schedule->n_slots && schedule->paced[schedule->free_slot] != NULL)
        schedule->free_slot++;
    if (schedule->free_slot == schedule->n_slots && !make_slots(schedule))
        return 0;
    return schedule->free_slot + 1;
}

struct paced *schedule_enter(struct schedule *schedule, struct rider *rider, struct subject *subject, uint64_t now_ns)
{
    struct backlog *backlog = find_backlog(schedule, subject);
    uint32_t slot = find_slot(schedule);
    struct paced *paced = slot != 0 ? calloc(1, sizeof *paced) : NULL;
    if (paced != NULL && backlog == NULL)
        backlog = make_backlog(schedule, subject, now_ns);
    if (paced == NULL || backlog == NULL) {
        free(paced);
        return NULL;
    }
    backlog->n_riders++;
    *paced = (struct paced){.rider = rider, .backlog = backlog, .slot = slot};
    list_init(&paced->in_backlog);
    schedule->paced[slot - 1] = paced;
    schedule->n_paced++;
    rider->paced = slot;
    pool_note_more(schedule->pool, sizeof *paced);
    return paced;
}

void schedule_leave(struct schedule *schedule, struct paced *paced)
{
    struct backlog *backlog = paced->backlog;
    schedule_settle(paced);
    schedule_stop_waiting(paced);
    schedule_forget(paced);
    paced->rider->paced = 0;
    schedule->paced[paced->slot - 1] = NULL;
    if (paced->slot - 1 < schedule->free_slot)
        schedule->free_slot = paced->slot - 1;
    schedule->n_paced--;
    pool_note_less(schedule->pool, sizeof *paced);
    free(paced);
    if (--backlog->n_riders > 0)
        return;
    if (schedule->lesson.of == backlog)
        schedule_lesson_end(schedule, backlog->moved_ns);
    free_backlog(backlog);
}

static bool is_idle(const struct paced *paced)
{
    return paced->requests == 0 && paced->granted == 0 && !paced->is_crowding && list_is_empty(&paced->in_backlog);
}

void schedule_sweep(struct schedule *schedule, uint64_t now_ns)
{
    if (now_ns - schedule->swept_ns < SWEEP_NS)
        return;
    schedule->swept_ns = now_ns;
    for (uint32_t i = 0; i < schedule->n_slots; i++) {
        struct paced *paced = schedule->paced[i];
        if (paced != NULL && paced->is_quiet && is_idle(paced))
            schedule_leave(schedule, paced);
        else if (paced != NULL)
            paced->is_quiet = true;
    }
}

void schedule_tick(struct schedule *schedule, uint64_t now_ns)
{
    window_note_ping(&schedule->window, atomic_load_explicit(&schedule->contention->ping_ns, memory_order_relaxed));
    for (size_t i = 0; i < schedule->n_buckets; i++)
        for (struct list *at = schedule->buckets[i].next; at != &schedule->buckets[i]; at = at->next)
            schedule_lose_patience(container_of(at, struct backlog, in_table), now_ns);
    for (uint32_t i = 0; i < schedule->n_slots && schedule->n_crowding > 0; i++)
        if (schedule->paced[i] != NULL)
            schedule_lose_patience_with(schedule->paced[i]);
}
