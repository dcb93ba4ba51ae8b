/*
 * Tests of eight threads at one subject's gate: each command is charged to all of its limits or to
 * none.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <pthread.h>
#include <string.h>

#include "dice.h"
#include "funnel_law.h"
#include "gate_kit.h"

#define THREADS 8
#define TURNS 8000
#define SETS_MOST 3

/* under each set of rules; one connection for each thread */
static struct charge_target in_force[THREADS][SETS_MOST];
static const struct policy *policy_of[SETS_MOST];
static size_t n_in_force;
static _Atomic uint64_t shared_now_ns;
static uint64_t step_ns;  /* the largest step of the clock by a thread; 0: time stands still */
static uint64_t stale_ns; /* the largest lag of a thread's own clock */
static uint64_t most_cost;

struct passed {
    struct admitted admitted; /* at its departure */
    bool is_write;
    uint8_t set;
};

static struct worker {
    pthread_t thread;
    size_t index;
    uint64_t seed;
    struct limit_counters *limit_counters;
    struct passed list[TURNS];
    size_t n;
} workers[THREADS];

static struct passed all[THREADS * TURNS];
static size_t n_all;

static void *hammer(void *arg)
{
    struct worker *worker = arg;
    const struct command *get = kit_command(table, "get"), *set = kit_command(table, "set");
    for (int i = 0; i < TURNS; i++) {
        struct verdict said;
        uint64_t step = step_ns ? dice_below(&worker->seed, step_ns) : 0;
        uint64_t now_ns = atomic_fetch_add(&shared_now_ns, step) + step;
        now_ns -= stale_ns ? dice_below(&worker->seed, stale_ns) : 0;
        bool is_write = dice_below(&worker->seed, 2);
        size_t under = dice_below(&worker->seed, n_in_force);
        uint64_t amount[UNIT_COUNT] = ONE_OF_EACH;
        amount[UNIT_COST] = 1 + dice_below(&worker->seed, most_cost);
        const struct gate_request wish = {.command = is_write ? set : get,
                                          .amount = amount,
                                          .now_ns = now_ns,
                                          .headed_ns = now_ns,
                                          .may_wait = true};
        enum gate gate =
            gate_ask(&in_force[worker->index][under], &wish, worker->limit_counters, &said);
        if (gate != GATE_PASS && gate != GATE_WAIT)
            continue;
        uint64_t at_ns = now_ns + (gate == GATE_WAIT ? (uint64_t)said.wait_ns : 0);
        worker->list[worker->n++] =
            (struct passed){{at_ns, wish.amount[UNIT_COST]}, is_write, (uint8_t)under};
    }
    return NULL;
}

/* Puts the written rules into force, beside the sets that are in force. */
static void put_in_force(void)
{
    kit_bind(policies, registry, table);
    policy_of[n_in_force] = policy;
    for (size_t i = 0; i < THREADS; i++)
        in_force[i][n_in_force] = n_in_force > 0 ? kit_target_under(&in_force[i][0], policy)
                                                 : kit_target(subjects, policy, "user:a", START);
    n_in_force++;
}

static void hammer_all(void *(*work)(void *))
{
    atomic_store(&shared_now_ns, START);
    n_all = 0;
    for (size_t i = 0; i < THREADS; i++) {
        workers[i].index = i;
        workers[i].seed = i + 1;
        workers[i].n = 0;
        workers[i].limit_counters = limit_counters_new();
        assert_int_equal(pthread_create(&workers[i].thread, NULL, work, &workers[i]), 0);
    }
    for (size_t i = 0; i < THREADS; i++) {
        pthread_join(workers[i].thread, NULL);
        memcpy(all + n_all, workers[i].list, workers[i].n * sizeof all[0]);
        n_all += workers[i].n;
    }
}

/* The sum over all threads. */
static uint64_t sum_of(size_t offset, size_t id)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < THREADS; i++)
        sum += atomic_load((_Atomic uint64_t *)((char *)&workers[i].limit_counters[id] + offset));
    return sum;
}

#define SUM(field, id) sum_of(offsetof(struct limit_counters, field), id)

static uint64_t word_of(size_t index)
{
    return kit_word(&in_force[0][0], index);
}

static int begin(void **state)
{
    n_in_force = 0;
    step_ns = 400000;
    stale_ns = 0;
    most_cost = 1;
    memset(workers, 0, sizeof workers);
    return set_up(state);
}

static int end(void **state)
{
    for (size_t i = 0; i < THREADS; i++) {
        free(workers[i].limit_counters);
        if (n_in_force > 0)
            kit_target_put(subjects, &in_force[i][0]);
    }
    return tear_down(state);
}

static size_t count_of(bool is_write)
{
    size_t n = 0;
    for (size_t i = 0; i < n_all; i++)
        n += all[i].is_write == is_write;
    return n;
}

/*
 * Checks the bound of limit `index`, in cost or commands. `binds_reads`: the limit binds reads too.
 */
static bool law_of(size_t index, bool binds_reads)
{
    static struct admitted list[THREADS * TURNS];
    const struct limit *limit_of = &policy_of[0]->limits[index];
    size_t n = 0;
    for (size_t i = 0; i < n_all; i++)
        if (binds_reads || all[i].is_write)
            list[n++] = (struct admitted){all[i].admitted.at_ns,
                                          limit_of->unit == UNIT_COST ? all[i].admitted.cost : 1};
    return n > 0 && law_holds(list, n, &limit_of->rate);
}

static void all_are_charged_or_none(void **state)
{
    (void)state;
    limit("all", "1000/s burst 40000");
    limit("write", "100/s burst 15000");
    put_in_force();
    step_ns = 0;
    hammer_all(hammer);
    assert_int_equal(n_all, 40000);
    assert_int_equal(count_of(true), 15000);
    assert_int_equal(word_of(0), START + n_all * (S / 1000));
    assert_int_equal(word_of(1), START + 15000 * (S / 100));
    assert_int_equal(SUM(admitted, policy->limits[0].id), 40000);
    assert_int_equal(SUM(admitted, policy->limits[1].id), 15000);
    assert_int_equal(SUM(refused, policy->limits[0].id) + SUM(refused, policy->limits[1].id),
                     THREADS * TURNS - 40000);
}

static void joint_limits_obey_the_law(void **state)
{
    (void)state;
    limit("all", "1000/s burst 50");
    limit("write", "400/s burst 10, 1000/m burst 500");
    put_in_force();
    hammer_all(hammer);
    assert_true(n_all > count_of(true) && count_of(true) > 500);
    assert_true(law_of(0, true));
    assert_true(law_of(1, false));
    assert_true(law_of(2, false));
}

static void limits_apart_obey_the_law(void **state)
{
    (void)state;
    limit("cmd.set", "400/s burst 10");
    put_in_force();
    hammer_all(hammer);
    assert_false(policy->is_joint);
    assert_true(count_of(true) > 10);
    assert_true(law_of(0, false));
}

static void any_limits_obey_the_law(void **state)
{
    (void)state;
    limit("cost", "3000/s burst 200 over close");
    limit("write", "400/s burst 10 per policy, 1000/m burst 500");
    put_in_force();
    most_cost = 6;
    hammer_all(hammer);
    assert_true(count_of(true) > 500);
    assert_true(law_of(0, true));
    assert_true(law_of(1, false));
    assert_true(law_of(2, false));
    assert_int_equal(SUM(admitted, policy->limits[1].id), count_of(true));
    assert_int_equal(SUM(refused, policy->limits[0].id) + SUM(refused, policy->limits[1].id) +
                         SUM(refused, policy->limits[2].id),
                     THREADS * TURNS - n_all);
}

static void queues_obey_the_law(void **state)
{
    (void)state;
    limit("all", "2000/s burst 3 over delay 20ms");
    put_in_force();
    stale_ns = 300000;
    hammer_all(hammer);
    assert_true(SUM(delayed, policy->limits[0].id) > 500);
    assert_true(SUM(refused, policy->limits[0].id) > 500);
    assert_true(law_of(0, true));
}

static void clocks_need_no_order(void **state)
{
    (void)state;
    limit("all", "1000/s burst 50");
    limit("write", "400/s burst 10");
    put_in_force();
    stale_ns = 50 * MS;
    hammer_all(hammer);
    assert_true(law_of(0, true));
    assert_true(law_of(1, false));
}

/* ---- while rules change: some threads have the new ones already ---- */

/*
 * Checks the bound of the first limit, which all sets share. The newest rate holds for all threads
 * once one thread has the newest rules. Each earlier set adds at most its burst, and what drained
 * at its rate until then.
 */
static bool law_of_all_sets(void)
{
    static struct admitted list[THREADS * TURNS];
    const struct limit *newest = &policy_of[n_in_force - 1]->limits[0];
    struct rate law = newest->rate;
    size_t n = 0;
    for (size_t i = 0; i + 1 < n_in_force; i++)
        law.burst += policy_of[i]->limits[0].rate.burst;
    law.burst += 5; /* 10 ms at 500/s */
    for (size_t i = 0; i < n_all; i++)
        if (all[i].is_write)
            list[n++] = (struct admitted){all[i].admitted.at_ns, 1};
    return n > 100 && law_holds(list, n, &law);
}

static void rates_change_under_way(void **state)
{
    (void)state;
    limit("write", "400/s burst 10");
    put_in_force();
    new_rules();
    limit("write", "300/s burst 20");
    put_in_force();
    hammer_all(hammer);
    assert_true(law_of_all_sets());
}

static void limits_come_and_go_under_way(void **state)
{
    (void)state;
    limit("write", "400/s burst 10");
    put_in_force();
    new_rules();
    limit("write", "300/s burst 20");
    limit("all", "5000/s");
    put_in_force();
    new_rules();
    limit("write", "500/s burst 15");
    limit("cost", "5000/s");
    limit("cmd.set", "1000/s per policy");
    put_in_force();
    hammer_all(hammer);
    assert_true(law_of_all_sets());
}

/*
 * While modes or actions differ between threads, no command is lost or passes twice. With time
 * standing still the count is exact.
 */
static void one_limit_and_several_under_way(void **state)
{
    (void)state;
    static const char *const others[] = {"1000/s burst 20000", "1000/s burst 20000 over close"};
    for (size_t i = 0; i < 2; i++) {
        limit("write", "1000/s burst 20000");
        put_in_force();
        new_rules();
        limit("write", others[i]);
        limit("all", "1g/s");
        put_in_force();
        step_ns = 0;
        hammer_all(hammer);
        assert_int_equal(count_of(true), 20000);
        assert_int_equal(word_of(0), START + 20000 * MS);
        end(NULL);
        begin(NULL);
    }
}

/*
 * The rate changes in the middle, for some threads earlier. No unit is lost, and none is charged at
 * two rates.
 */
static void a_debt_changes_its_rate_once(void **state)
{
    (void)state;
    for (int round = 0; round < 5; round++) {
        limit("write", "1000/s burst 20000");
        put_in_force();
        new_rules();
        limit("write", "3/h burst 20000");
        put_in_force();
        new_rules();
        limit("write", "70/s burst 20000");
        put_in_force();
        step_ns = 0;
        hammer_all(hammer);
        gate_settle(&in_force[0][2], START);
        assert_int_equal(count_of(true), 20000);
        assert_in_range(kit_word(&in_force[0][2], 0),
                        START + 20000 * policy->limits[0].rate.interval_ns - 1000,
                        START + 20000 * policy->limits[0].rate.interval_ns);
        end(NULL);
        begin(NULL);
    }
}

/* ---- numbers at one moment ---- */

static _Atomic uint64_t in_flight, most_in_flight, wrong;

static void *call(void *arg)
{
    struct worker *worker = arg;
    const struct gate_request wish = ask_of("get", 1, START);
    for (int i = 0; i < TURNS / 2; i++) {
        struct verdict said, connected;
        const struct charge_target *mine = &in_force[worker->index][0];
        if (gate_ask(mine, &wish, worker->limit_counters, &said) == GATE_PASS) {
            uint64_t now = atomic_fetch_add(&in_flight, 1) + 1;
            if (now > 5)
                atomic_fetch_add(&wrong, 1);
            if (now > 1)
                atomic_store(&most_in_flight, now);
            atomic_fetch_sub(&in_flight, 1);
            gate_calls_end(mine, (said.counted & COUNTED) != 0,
                           (said.counted & COUNTED_SHADOW) != 0);
        }
        if (gate_connect(mine, CONNECT_UNITS, START, worker->limit_counters, &connected) ==
            GATE_PASS)
            gate_disconnect(mine, connected.counted);
        if (i % 16 == 0)
            gate_disconnect(mine, gate_reconnect(mine));
        gate_owe_bytes(mine, UNIT_BYTES_IN, 3, 0, START, worker->limit_counters);
    }
    return NULL;
}

static void gauges_are_exact(void **state)
{
    (void)state;
    limit("inflight", "5, 5 per policy, 2 over shadow");
    limit("connections", "3, 2 per policy over shadow");
    limit("bytes-in", "1/s burst 1000000");
    put_in_force();
    hammer_all(call);
    assert_int_equal(atomic_load(&wrong), 0);
    for (size_t i = 0; i < 5; i++)
        assert_int_equal(word_of(i), 0);
    assert_int_equal(word_of(5), START + THREADS * (TURNS / 2) * 3 * S);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(all_are_charged_or_none),
        TEST(joint_limits_obey_the_law),
        TEST(limits_apart_obey_the_law),
        TEST(any_limits_obey_the_law),
        TEST(queues_obey_the_law),
        TEST(clocks_need_no_order),
        TEST(rates_change_under_way),
        TEST(limits_come_and_go_under_way),
        TEST(one_limit_and_several_under_way),
        TEST(a_debt_changes_its_rate_once),
        TEST(gauges_are_exact),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
