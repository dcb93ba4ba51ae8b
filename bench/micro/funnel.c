/* Microbenchmark: one funnel, against the bare compare-and-swap that a funnel needs. */
#include <stdlib.h>

#include "limit/funnel.h"
#include "micro.h"

#define STEP_NS 100 /* between two takes: longer than a unit's time, so there is always room */
#define START_NS UINT64_C(1000000000000)

static struct rate fast, slow;

static void prepare(void)
{
    if (!rate_init(&fast, 100000000, 1000000000, 100000000) ||
        !rate_init(&slow, 1, UINT64_C(3600000000000), 1))
        abort();
}

/*
 * Time continues from run to run. Within a run the time is in a register, like the loop's clock for
 * callers of the gate.
 */
static uint64_t next_start(uint64_t n)
{
    static uint64_t start_ns = START_NS;
    start_ns += n * STEP_NS;
    return start_ns - n * STEP_NS;
}

static void bare_cas(uint64_t n)
{
    static _Atomic uint64_t word;
    while (n-- > 0) {
        uint64_t old = atomic_load_explicit(&word, memory_order_relaxed);
        while (!atomic_compare_exchange_weak_explicit(&word, &old, old + 10, memory_order_relaxed,
                                                      memory_order_relaxed))
            continue;
    }
}

static void take(uint64_t n)
{
    static struct funnel funnel;
    uint64_t now_ns = next_start(n);
    while (n-- > 0) {
        now_ns += STEP_NS;
        if (funnel_take(&funnel, &fast, now_ns, 1) != 0)
            abort();
    }
}

static void take_refused(uint64_t n)
{
    static struct funnel funnel;
    uint64_t wait_ns = funnel_take(&funnel, &slow, START_NS, 1);
    while (n-- > 0) {
        wait_ns = funnel_take(&funnel, &slow, START_NS, 1);
        micro_use(wait_ns);
    }
}

static void ask(uint64_t n)
{
    static struct funnel funnel;
    uint64_t now_ns = next_start(n);
    while (n-- > 0) {
        uint64_t wait_ns = funnel_ask(&funnel, &fast, now_ns += STEP_NS, 1);
        micro_use(wait_ns);
    }
}

static void owe(uint64_t n)
{
    static struct funnel funnel;
    uint64_t now_ns = next_start(n);
    while (n-- > 0)
        funnel_owe(&funnel, now_ns += STEP_NS, 10);
}

const struct micro *micro_funnel(void)
{
    static const struct micro rows[] = {
        {"cas/bare", NULL, bare_cas},
        {"funnel/take", prepare, take},
        {"funnel/take, refused", prepare, take_refused},
        {"funnel/ask", prepare, ask},
        {"funnel/owe", prepare, owe},
        {0},
    };
    return rows;
}
