/* Eight threads at one subject's gate: each command is charged to all of its limits or to none. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <pthread.h>
#include <string.h>

#include "dice.h"
#include "funnel_law.h"
#include "limit/gate.h"
#include "policy_kit.h"

#define S UINT64_C(1000000000)
#define THREADS 8
#define TURNS 10000

static struct command_table *table;
static struct policies *policies;
static struct policy *policy;
static struct subjects *subjects;
static struct subject *subject;
static _Atomic uint64_t clock_ns;
static uint64_t step_ns;

struct worker {
    pthread_t thread;
    uint64_t seed;
    struct admitted reads[TURNS], writes[TURNS];
    size_t n_reads, n_writes;
};

static struct worker workers[THREADS];
static struct admitted all[THREADS * TURNS], writes[THREADS * TURNS];
static size_t n_all, n_writes;

static void *hammer(void *arg)
{
    struct worker *worker = arg;
    const struct command *get = kit_command(table, "get"), *set = kit_command(table, "set");
    for (int i = 0; i < TURNS; i++) {
        struct verdict verdict;
        uint64_t step = step_ns ? dice_below(&worker->seed, step_ns) : 0;
        uint64_t now_ns = atomic_fetch_add(&clock_ns, step) + step;
        bool is_write = dice_below(&worker->seed, 2);
        if (!gate_pass(policy, subject, is_write ? set : get, 1, now_ns, &verdict))
            continue;
        struct admitted passed = {now_ns, 1};
        if (is_write)
            worker->writes[worker->n_writes++] = passed;
        else
            worker->reads[worker->n_reads++] = passed;
    }
    return NULL;
}

static void gather(const struct worker *worker)
{
    memcpy(all + n_all, worker->reads, worker->n_reads * sizeof all[0]);
    n_all += worker->n_reads;
    memcpy(all + n_all, worker->writes, worker->n_writes * sizeof all[0]);
    n_all += worker->n_writes;
    memcpy(writes + n_writes, worker->writes, worker->n_writes * sizeof all[0]);
    n_writes += worker->n_writes;
}

static void hammer_all(void)
{
    policies_bind(policies, table);
    subject = subject_get(subjects, policy, SLICE("user:a"), 0);
    atomic_store(&clock_ns, 0);
    n_all = n_writes = 0;
    for (size_t i = 0; i < THREADS; i++) {
        workers[i].seed = i + 1;
        workers[i].n_reads = workers[i].n_writes = 0;
        assert_int_equal(pthread_create(&workers[i].thread, NULL, hammer, &workers[i]), 0);
    }
    for (size_t i = 0; i < THREADS; i++) {
        pthread_join(workers[i].thread, NULL);
        gather(&workers[i]);
    }
}

static uint64_t word(size_t funnel)
{
    return atomic_load(&subject->funnels[funnel].tat_ns);
}

static int set_up(void **state)
{
    (void)state;
    table = command_table_builtin();
    policies = policies_new(classes_new());
    policy = kit_policy(policies, "free");
    subjects = subjects_new(10);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    subjects_free(subjects);
    policies_put(policies);
    command_table_put(table);
    return 0;
}

static void all_are_charged_or_none(void **state)
{
    (void)state;
    kit_limit(policies, policy, table, "all", "1000/s burst 50000");
    kit_limit(policies, policy, table, "write", "100/s burst 20000");
    step_ns = 0;
    hammer_all();
    assert_int_equal(n_all, 50000);
    assert_int_equal(n_writes, 20000);
    assert_int_equal(word(0), n_all * (S / 1000));
    assert_int_equal(word(1), n_writes * (S / 100));
}

static void joint_limits_obey_the_law(void **state)
{
    (void)state;
    kit_limit(policies, policy, table, "all", "1000/s burst 50");
    kit_limit(policies, policy, table, "write", "400/s burst 10, 1000/m burst 500");
    step_ns = 400000;
    hammer_all();
    assert_true(n_all > n_writes && n_writes > 500);
    assert_true(law_holds(all, n_all, &policy->limits[0].rate));
    assert_true(law_holds(writes, n_writes, &policy->limits[1].rate));
    assert_true(law_holds(writes, n_writes, &policy->limits[2].rate));
}

static void limits_apart_obey_the_law(void **state)
{
    (void)state;
    kit_limit(policies, policy, table, "cmd.set", "400/s burst 10");
    step_ns = 400000;
    hammer_all();
    assert_false(policy->is_joint);
    assert_true(n_writes > 10);
    assert_true(law_holds(writes, n_writes, &policy->limits[0].rate));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(all_are_charged_or_none),
        TEST(joint_limits_obey_the_law),
        TEST(limits_apart_obey_the_law),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
