/* Tests of eight threads on one funnel. The threads move the clock themselves. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <pthread.h>
#include <string.h>

#include "dice.h"
#include "funnel_law.h"
#include "limit/funnel.h"

#define S UINT64_C(1000000000)
#define THREADS 8
#define TAKES 12000

static struct shared {
    struct funnel funnel;
    struct rate rate;
    _Atomic uint64_t clock_ns;
    uint64_t step_ns; /* the largest step of the clock by a thread; 0: time stands */
    uint64_t most_cost;
} shared;

struct worker {
    pthread_t thread;
    uint64_t seed;
    struct admitted list[TAKES];
    size_t n;
};

static struct worker workers[THREADS];
static struct admitted all[THREADS * TAKES];

static void *hammer(void *arg)
{
    struct worker *worker = arg;
    for (int i = 0; i < TAKES; i++) {
        uint64_t step_ns = shared.step_ns ? dice_below(&worker->seed, shared.step_ns) : 0;
        uint64_t now_ns = atomic_fetch_add(&shared.clock_ns, step_ns) + step_ns;
        uint64_t cost = 1 + dice_below(&worker->seed, shared.most_cost);
        if (funnel_take(&shared.funnel, &shared.rate, now_ns, cost) == 0)
            worker->list[worker->n++] = (struct admitted){now_ns, cost};
    }
    return NULL;
}

static size_t hammer_all(void)
{
    size_t n = 0;
    atomic_store(&shared.clock_ns, 0);
    atomic_store(&shared.funnel.tat_ns, 0);
    for (size_t i = 0; i < THREADS; i++) {
        workers[i].seed = i + 1;
        workers[i].n = 0;
        assert_int_equal(pthread_create(&workers[i].thread, NULL, hammer, &workers[i]), 0);
    }
    for (size_t i = 0; i < THREADS; i++) {
        pthread_join(workers[i].thread, NULL);
        memcpy(all + n, workers[i].list, workers[i].n * sizeof all[0]);
        n += workers[i].n;
    }
    return n;
}

static uint64_t sum(size_t n)
{
    uint64_t total = 0;
    for (size_t i = 0; i < n; i++)
        total += all[i].cost;
    return total;
}

static void exactly_the_burst_passes_while_time_stands(void **state)
{
    (void)state;
    assert_true(rate_init(&shared.rate, 1000, S, 70000));
    shared.step_ns = 0;
    shared.most_cost = 1;
    assert_int_equal(sum(hammer_all()), 70000);
    assert_int_equal(atomic_load(&shared.funnel.tat_ns), 70000 * (S / 1000));
}

static void the_law_holds(void **state)
{
    (void)state;
    static const struct {
        uint64_t count, period_ns, burst, step_ns, most_cost;
    } cases[] = {
        {1000, S, 100, 200000, 1}, {1000, S, 100, 200000, 7},     {3, 10, 1000, 5, 1},
        {10000000, S, 1, 50, 1},   {7, 86400 * S, 7, 900 * S, 3},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        assert_true(rate_init(&shared.rate, cases[i].count, cases[i].period_ns, cases[i].burst));
        shared.step_ns = cases[i].step_ns;
        shared.most_cost = cases[i].most_cost;
        size_t n = hammer_all();
        uint64_t total = sum(n);
        assert_true(n > 0);
        assert_true(law_holds(all, n, &shared.rate));

        /*
         * Each admission moved the word by its interval, or started the word anew from its own
         * time: no admission was lost.
         */
        uint64_t end_ns = atomic_load(&shared.clock_ns);
        assert_true(total * shared.rate.interval_ns >=
                        atomic_load(&shared.funnel.tat_ns) - end_ns ||
                    atomic_load(&shared.funnel.tat_ns) <= end_ns);
        assert_true(atomic_load(&shared.funnel.tat_ns) <= end_ns + shared.rate.burst_ns);
    }
}

/*
 * The threads ask for five times the rate: the funnel never idles, so the rate is used up but for
 * rounding.
 */
static void demand_gets_its_rate(void **state)
{
    (void)state;
    assert_true(rate_init(&shared.rate, 1000000, S, 1000));
    shared.step_ns = 400; /* 200 on average; an interval is 1000 */
    shared.most_cost = 1;
    uint64_t total = sum(hammer_all());
    uint64_t end_ns = atomic_load(&shared.clock_ns);
    while (funnel_take(&shared.funnel, &shared.rate, end_ns, 1) == 0)
        total++;
    assert_true(total <= 1000 + end_ns / 1000);
    assert_true(total >= (1000 + end_ns / 1000) * 99 / 100);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(exactly_the_burst_passes_while_time_stands),
        cmocka_unit_test(the_law_holds),
        cmocka_unit_test(demand_gets_its_rate),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
