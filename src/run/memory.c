#include "run/memory.h"

#include <inttypes.h>
#include <malloc.h>

#include "front/client/client.h"
#include "limit/figures/peak_rates.h"

#define LOOK_MS 100
/* least bytes for the calls of one private lane: a pipeline of some thousand calls */
#define CALLS_MIN_BYTES 65536
#define SHARE_MIN_BYTES 16384 /* bytes of unread replies that every client may have */

static uint64_t worker_bytes(const struct front *front)
{
    uint64_t lanes = 0;
    struct nodes_sum sum = {0};
    nodes_sum_all(&front->nodes, &sum);
    for (int in = LIST_NONE + 1; in < LIST_COUNT; in++)
        lanes += count_read(&sum.counts.lists[in]);
    return count_read(&front->loop->pool.held) + lanes * sizeof(struct lane);
}

static unsigned n_clients(const struct memory *memory)
{
    return atomic_load_explicit(&memory->settings->clients, memory_order_relaxed);
}

uint64_t memory_used(const struct memory *memory)
{
    if (memory->pool == NULL)
        return 0;
    uint64_t used = n_clients(memory) * (uint64_t)sizeof(struct client);
    for (unsigned w = 0; w < memory->settings->n_workers; w++)
        used += worker_bytes(worker_pool_front(memory->pool, w));
    used +=
        subjects_bytes(memory->settings->subjects) + subjects_bytes(memory->settings->key_subjects);
    used += subjects_bytes(memory->settings->addresses);
    return used + peak_rates_bytes();
}

/*
 * Returns each client's share of the bytes for unread replies. All unread replies together may take
 * half of the limit.
 */
static uint64_t share(const struct memory *memory)
{
    unsigned n = n_clients(memory);
    uint64_t bytes = memory->limit_bytes / 2 / (n > 0 ? n : 1);
    return bytes > SHARE_MIN_BYTES ? bytes : SHARE_MIN_BYTES;
}

/*
 * Returns the bytes that unanswered calls on one private lane may take: an eighth of the memory
 * left below the limit, but at least CALLS_MIN_BYTES. 0: no limit.
 */
static uint64_t for_calls(const struct memory *memory, uint64_t used)
{
    if (memory->limit_bytes == 0)
        return 0;
    uint64_t left = used < memory->limit_bytes ? memory->limit_bytes - used : 0;
    return left / 8 > CALLS_MIN_BYTES ? left / 8 : CALLS_MIN_BYTES;
}

static void tell(const struct memory *memory, uint64_t used)
{
    static const char *const does[LADDER_STEPS] = {
        [LADDER_FREE] = "enough again",
        [LADDER_SHED] = "weir frees idle memory",
        [LADDER_STALL] = "weir stops reading from clients that do not read their replies",
        [LADDER_REFUSE] = "weir also refuses new clients",
    };
    journal_log(memory->journal, memory->step >= LADDER_STALL ? LOG_WARN : LOG_INFO, "memory",
                "memory: step %d, %s: %" PRIu64 " of %" PRIu64 " bytes", (int)memory->step,
                does[memory->step], used, memory->limit_bytes);
}

static void memory_look(struct memory *memory)
{
    uint64_t used = memory_used(memory);
    enum ladder_step before = memory->step;
    if (memory->must_trim)
        malloc_trim(0);
    memory->step = ladder_next(before, used, memory->limit_bytes);
    memory->must_trim = memory->step > before;
    atomic_store_explicit(&memory->settings->memory_pressure.share_bytes, share(memory),
                          memory_order_relaxed);
    atomic_store_explicit(&memory->settings->memory_pressure.calls_bytes, for_calls(memory, used),
                          memory_order_relaxed);
    atomic_store_explicit(&memory->settings->memory_pressure.step, memory->step,
                          memory_order_relaxed);
    if (memory->step != before)
        tell(memory, used);
    if (memory->step != before || memory->step >= LADDER_STALL)
        worker_pool_stir(memory->pool);
}

static void memory_on_timer(uv_timer_t *timer)
{
    memory_look(timer->data);
}

void memory_open(struct memory *memory, struct loop *loop, struct worker_pool *pool,
                 struct front_settings *settings, struct journal *journal)
{
    *memory = (struct memory){.pool = pool, .settings = settings, .journal = journal};
    uv_timer_init(&loop->uv, &memory->timer);
    memory->timer.data = memory;
}

void memory_close(struct memory *memory)
{
    if (memory->pool == NULL)
        return;
    uv_close((uv_handle_t *)&memory->timer, NULL);
}

void memory_set_limit(struct memory *memory, uint64_t limit_bytes)
{
    if (memory->limit_bytes == limit_bytes)
        return;
    memory->limit_bytes = limit_bytes;
    memory_look(memory);
    if (limit_bytes > 0)
        uv_timer_start(&memory->timer, memory_on_timer, LOOK_MS, LOOK_MS);
    else
        uv_timer_stop(&memory->timer);
}
