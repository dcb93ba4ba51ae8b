/*
 * Tests of runs of equal commands that are decided in one call: the result equals single decisions.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>

#include "dice.h"
#include "gate_kit.h"

#define ROUNDS 300
#define STEPS 200
#define LIMITS_MOST 4
#define ALIKE_MOST 300

static const char *const classes[] = {"all", "write", "read", "@string", "cmd.set"};
static const char *const commands[] = {"get", "set", "del", "lpush", "ping"};
static const char *const periods[] = {"ms", "s", "7s", "m", "h"};

/*
 * Two subjects under one policy, with separate counters. The first gets runs, the second single
 * commands.
 */
static struct charge_target alone;
static struct limit_counters *alone_counters;

static struct subject *subject_of(const struct charge_target *one)
{
    return one->holders[PER_SUBJECT];
}

/* For half of the rates a unit is no whole number of nanoseconds. */
static void random_limit(uint64_t *seed)
{
    char line[100];
    if (dice_below(seed, 8) == 0) {
        limit(classes[dice_below(seed, 5)], "1/1d burst 7");
        return;
    }
    bool is_fine = dice_below(seed, 2) != 0;
    uint64_t count =
        is_fine ? 10000001 + 2 * dice_below(seed, 200000000) : dice_scale(seed, 100000000);
    snprintf(line, sizeof line, "%u/%s burst %u", (unsigned)count,
             is_fine ? "s" : periods[dice_below(seed, 5)], (unsigned)dice_scale(seed, 400));
    limit(classes[dice_below(seed, 5)], line);
}

static void open_both(uint64_t *seed)
{
    for (uint64_t n = 1 + dice_below(seed, LIMITS_MOST); n > 0; n--)
        random_limit(seed);
    open_gate();
    assert_true(policy->is_plain);
    alone = kit_target(subjects, policy, "user:b", START);
    alone_counters = limit_counters_new();
}

static void close_both(void)
{
    kit_target_put(subjects, &alone);
    free(alone_counters);
}

static struct funnel *alone_funnel(size_t i)
{
    return subject_funnel(subject_of(&alone), policy->limits[i].slot);
}

/*
 * A model of single funnels: asks all limits that bind the command, and charges them if none
 * refuses.
 */
static bool ask_once(const struct command *command, uint64_t now_ns, struct verdict *last)
{
    uint64_t longest_ns = 0;
    for (unsigned i = 0; i < policy->n_limits; i++) {
        const struct limit *limit = &policy->limits[i];
        uint64_t wait_ns = gate_binds(policy, i, command)
                               ? funnel_ask(alone_funnel(i), &limit->rate, now_ns, 1)
                               : 0;
        if (wait_ns > longest_ns) {
            longest_ns = wait_ns;
            *last = (struct verdict){.limit = limit, .wait_ns = (int64_t)wait_ns};
        }
    }
    if (longest_ns > 0) {
        atomic_fetch_add(&alone_counters[last->limit->id].refused, 1);
        return false;
    }
    for (unsigned i = 0; i < policy->n_limits; i++) {
        const struct limit *limit = &policy->limits[i];
        if (!gate_binds(policy, i, command))
            continue;
        assert_int_equal(funnel_take(alone_funnel(i), &limit->rate, now_ns, 1), 0);
        atomic_fetch_add(&alone_counters[limit->id].admitted, 1);
        if (funnel_is_near(&limit->rate, funnel_word(alone_funnel(i)), now_ns))
            atomic_fetch_add(&alone_counters[limit->id].near, 1);
    }
    return true;
}

/*
 * Decides n commands one by one. Returns how many pass, which must be the first ones. All refusals
 * are equal.
 */
static uint32_t ask_alone(const struct command *command, uint32_t n, uint64_t now_ns,
                          struct verdict *last)
{
    uint32_t n_passed = 0;
    for (uint32_t i = 0; i < n; i++) {
        struct verdict said = {0};
        if (ask_once(command, now_ns, &said)) {
            assert_int_equal(n_passed, i);
            n_passed++;
            continue;
        }
        assert_true(i == n_passed || (last->limit == said.limit && last->wait_ns == said.wait_ns));
        *last = said;
    }
    return n_passed;
}

static uint32_t refuse_alone(const struct command *command, uint32_t n, uint64_t now_ns,
                             struct verdict *last)
{
    uint32_t n_refused = 0;
    for (uint32_t i = 0; i < n; i++) {
        const struct gate_request wish = {
            .command = command, .amount = one_of_each(), .now_ns = now_ns, .headed_ns = now_ns};
        n_refused += gate_ask_refusal(&alone, &wish, alone_counters, last) == GATE_REFUSE;
    }
    assert_true(n_refused == 0 || n_refused == n);
    return n_refused;
}

static void assert_same(uint64_t round)
{
    for (size_t i = 0; i < policy->n_limits; i++) {
        const struct limit *limit = &policy->limits[i];
        const struct limit_counters *other = &alone_counters[limit->id];
        if (kit_word(&target, i) != kit_word(&alone, i))
            fail_msg("round %u: the words of %s differ", (unsigned)round, limit->label);
        assert_counters(i, atomic_load(&other->admitted), 0, atomic_load(&other->refused), 0);
        assert_int_equal(atomic_load(&counters(i)->near), atomic_load(&other->near));
    }
}

static void step(uint64_t *seed, uint64_t now_ns)
{
    const struct command *command = kit_command(table, commands[dice_below(seed, 5)]);
    uint32_t n = (uint32_t)dice_scale(seed, ALIKE_MOST);
    struct verdict last = {0};
    memset(&verdict, 0, sizeof verdict);
    if (dice_below(seed, 4) == 0) {
        bool is_refused = gate_refuse_plainly(policy, subject_of(&target), command, n, now_ns,
                                              limit_counters, &verdict);
        assert_int_equal(is_refused ? n : 0, refuse_alone(command, n, now_ns, &last));
    } else {
        uint32_t n_passed = gate_ask_plainly(policy, subject_of(&target), command, n, now_ns,
                                             limit_counters, &verdict);
        assert_int_equal(n_passed, ask_alone(command, n, now_ns, &last));
    }
    assert_ptr_equal(verdict.limit, last.limit);
    assert_int_equal(verdict.wait_ns, last.wait_ns);
}

static void at_once_is_one_by_one(void **state)
{
    (void)state;
    uint64_t n_cut = 0; /* limits that let some pass, and not all */
    for (uint64_t round = 1; round <= dice_rounds(ROUNDS); round++) {
        uint64_t seed = round, now_ns = START;
        assert_int_equal(set_up(NULL), 0);
        open_both(&seed);
        const struct rate *rate = &policy->limits[0].rate;
        for (int i = 0; i < STEPS; i++) {
            now_ns += dice_below(&seed, 3)
                          ? dice_below(&seed, 1 + rate->interval_ns * dice_scale(&seed, 300))
                          : 0;
            uint64_t back_ns = dice_below(&seed, 6) ? 0 : dice_below(&seed, 2 * rate->interval_ns);
            step(&seed, now_ns - (back_ns < now_ns - START ? back_ns : 0));
            assert_same(round);
        }
        for (size_t i = 0; i < policy->n_limits; i++)
            n_cut +=
                atomic_load(&counters(i)->admitted) > 0 && atomic_load(&counters(i)->refused) > 0;
        close_both();
        tear_down(NULL);
    }
    assert_true(n_cut > ROUNDS / 4);
}

static void the_first_ones_pass(void **state)
{
    (void)state;
    limit("all", "10/s burst 20");
    limit("write", "1/s burst 5");
    open_gate();
    const struct command *set = kit_command(table, "set");
    assert_int_equal(
        gate_ask_plainly(policy, subject_of(&target), set, 16, START, limit_counters, &verdict), 5);
    assert_string_equal(verdict.limit->label, "free/write");
    assert_int_equal(verdict.wait_ns, S);
    assert_counters(0, 5, 0, 0, 0);
    assert_counters(1, 5, 0, 11, 0);
    const struct command *get = kit_command(table, "get");
    assert_int_equal(
        gate_ask_plainly(policy, subject_of(&target), get, 16, START, limit_counters, &verdict),
        15);
    assert_string_equal(verdict.limit->label, "free/all");
    assert_int_equal(verdict.wait_ns, 100 * MS);
    assert_counters(0, 20, 0, 1, 0);
}

/* The largest burst takes 100 years. A larger number does not fit in a word. */
static void more_than_any_burst(void **state)
{
    (void)state;
    limit("all", "1/1d burst 36525");
    open_gate();
    const struct command *get = kit_command(table, "get");
    uint32_t passed = gate_ask_plainly(policy, subject_of(&target), get, UINT32_MAX, START,
                                       limit_counters, &verdict);
    assert_int_equal(passed, 36525);
    assert_int_equal(verdict.wait_ns, 86400 * S);
    assert_counters(0, 36525, 0, UINT32_MAX - 36525, 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(at_once_is_one_by_one),
        TEST(the_first_ones_pass),
        TEST(more_than_any_burst),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
