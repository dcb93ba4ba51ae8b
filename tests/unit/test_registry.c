/*
 * Tests of the registry: which limits are the same, the index and number of each, and the maximum.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "dice.h"
#include "limit/figures/registry.h"
#include "limit/subject.h"

static struct registry *registry;

static int set_up(void **state)
{
    (void)state;
    registry = registry_new();
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    registry_free(registry);
    return 0;
}

static struct limit enter(struct policy_state *policy_state, const char *line, uint16_t place,
                          enum scope scope)
{
    struct limit limit = {.position = place, .scope = (uint8_t)scope};
    assert_true(registry_enter(registry, policy_state, slice_str(line), &limit));
    return limit;
}

static void states_are_found_by_name(void **state)
{
    (void)state;
    struct policy_state *gold = registry_policy(registry, SLICE("gold"));
    struct policy_state *free_of_charge = registry_policy(registry, SLICE("free"));
    assert_ptr_not_equal(gold, free_of_charge);
    assert_ptr_equal(registry_policy(registry, SLICE("gold")), gold);
    assert_ptr_not_equal(registry_policy(registry, SLICE("gol")), gold);
    assert_string_equal(gold->name, "gold");
    assert_null(gold->everybody);
    assert_int_equal(atomic_load(&gold->slots[PER_SUBJECT]), 0);
    char longest[REGISTRY_NAME_MAX + 1];
    memset(longest, 'n', sizeof longest);
    struct policy_state *policy_state =
        registry_policy(registry, slice_of(longest, REGISTRY_NAME_MAX));
    assert_int_equal(strlen(policy_state->name), REGISTRY_NAME_MAX);
    assert_ptr_equal(registry_policy(registry, slice_of(longest, REGISTRY_NAME_MAX)), policy_state);
}

static void same_means_policy_line_scope_and_place(void **state)
{
    (void)state;
    struct policy_state *gold = registry_policy(registry, SLICE("gold")),
                        *other = registry_policy(registry, SLICE("other"));
    struct limit first = enter(gold, "write", 0, PER_SUBJECT);
    struct limit again = enter(gold, "write", 0, PER_SUBJECT);
    assert_int_equal(again.slot, first.slot);
    assert_int_equal(again.id, first.id);
    const struct limit others[] = {
        enter(gold, "write", 1, PER_SUBJECT),    enter(gold, "read", 0, PER_SUBJECT),
        enter(gold, "write", 0, PER_CONNECTION), enter(gold, "write", 0, PER_POLICY),
        enter(other, "write", 0, PER_SUBJECT),
    };
    for (size_t i = 0; i < 5; i++) {
        assert_int_not_equal(others[i].id, first.id);
        for (size_t k = 0; k < i; k++)
            assert_int_not_equal(others[i].id, others[k].id);
    }
    assert_int_equal(others[0].slot, 1);
    assert_int_equal(others[1].slot, 2);
    for (size_t i = 2; i < 5; i++)
        assert_int_equal(others[i].slot, 0); /* indices are counted by policy and scope */
    assert_int_equal(atomic_load(&gold->slots[PER_SUBJECT]), 3);
    assert_int_equal(atomic_load(&gold->slots[PER_CONNECTION]), 1);
    assert_int_equal(atomic_load(&gold->slots[PER_POLICY]), 1);
}

static void only_limits_per_policy_need_everybody(void **state)
{
    (void)state;
    struct policy_state *gold = registry_policy(registry, SLICE("gold"));
    enter(gold, "write", 0, PER_SUBJECT);
    enter(gold, "write", 0, PER_CONNECTION);
    assert_null(gold->everybody);
    enter(gold, "write", 0, PER_POLICY);
    struct subject *everybody = gold->everybody;
    assert_non_null(everybody);
    for (uint16_t i = 1; i < 50; i++)
        enter(gold, "write", i, PER_POLICY);
    assert_ptr_equal(gold->everybody, everybody);
    for (uint16_t i = 0; i < 50; i++) /* an index for each, however late the limit came */
        gauge_add(subject_funnel(everybody, i), i + 1U);
    for (uint16_t i = 0; i < 50; i++)
        assert_int_equal(gauge_value(subject_funnel(everybody, i)), i + 1);
}

/* Limits entered in any order, again and again: an index belongs to one limit for good. */
static void nothing_is_given_twice(void **state)
{
    (void)state;
    enum { POLICIES = 5, LINES = 12, PLACES = 3 };
    static int32_t slots[POLICIES][LINES][PLACES][SCOPE_COUNT],
        ids[POLICIES][LINES][PLACES][SCOPE_COUNT];
    static bool is_taken[POLICIES * LINES * PLACES * SCOPE_COUNT];
    memset(slots, -1, sizeof slots);
    uint64_t seed = 1;
    for (int i = 0; i < 5000; i++) {
        char policy[20], line[20];
        size_t p = dice_below(&seed, POLICIES), l = dice_below(&seed, LINES),
               scope = dice_below(&seed, SCOPE_COUNT);
        uint16_t place = (uint16_t)dice_below(&seed, PLACES);
        snprintf(policy, sizeof policy, "p%zu", p);
        snprintf(line, sizeof line, "cmd.%zu", l);
        struct limit limit =
            enter(registry_policy(registry, slice_str(policy)), line, place, (enum scope)scope);
        if (slots[p][l][place][scope] < 0) {
            assert_false(is_taken[limit.id]);
            is_taken[limit.id] = true;
            slots[p][l][place][scope] = limit.slot;
            ids[p][l][place][scope] = limit.id;
        }
        assert_int_equal(limit.slot, slots[p][l][place][scope]);
        assert_int_equal(limit.id, ids[p][l][place][scope]);
    }
}

static void policies_have_an_end(void **state)
{
    (void)state;
    char name[20];
    for (int i = 0; i < REGISTRY_POLICIES_MAX; i++) {
        snprintf(name, sizeof name, "p%d", i);
        assert_non_null(registry_policy(registry, slice_str(name)));
    }
    assert_null(registry_policy(registry, SLICE("more")));
    assert_non_null(registry_policy(registry, SLICE("p7")));
}

static void slots_have_an_end(void **state)
{
    (void)state;
    struct policy_state *gold = registry_policy(registry, SLICE("gold"));
    for (uint16_t i = 0; i < REGISTRY_SLOTS_MAX; i++)
        assert_int_equal(enter(gold, "all", i, PER_CONNECTION).slot, i);
    struct limit limit = {
        .position = REGISTRY_SLOTS_MAX, .scope = PER_CONNECTION, .slot = 77, .id = 78};
    assert_false(registry_enter(registry, gold, SLICE("all"), &limit));
    assert_int_equal(limit.slot, 77);
    assert_int_equal(limit.id, 78);
    assert_int_equal(enter(gold, "all", 5, PER_CONNECTION).slot, 5);
    assert_int_equal(enter(gold, "all", 5, PER_SUBJECT).slot, 0);
}

static void limits_have_an_end(void **state)
{
    (void)state;
    size_t n = 0;
    for (int p = 0; p < REGISTRY_LIMITS_MAX / REGISTRY_SLOTS_MAX; p++) {
        char name[20];
        snprintf(name, sizeof name, "p%d", p);
        struct policy_state *policy_state = registry_policy(registry, slice_str(name));
        for (uint16_t i = 0; i < REGISTRY_SLOTS_MAX; i++)
            assert_int_equal(enter(policy_state, "all", i, PER_SUBJECT).id, n++);
    }
    struct limit limit = {0};
    assert_false(
        registry_enter(registry, registry_policy(registry, SLICE("more")), SLICE("all"), &limit));
    char line[200];
    memset(line, 'x', sizeof line);
    assert_false(registry_enter(registry, registry_policy(registry, SLICE("p1")),
                                slice_of(line, sizeof line), &limit));
}

static void counters_start_at_nothing(void **state)
{
    (void)state;
    struct limit_counters *limit_counters = limit_counters_new();
    for (size_t i = 0; i < REGISTRY_LIMITS_MAX; i++)
        assert_int_equal(
            atomic_load(&limit_counters[i].admitted) | atomic_load(&limit_counters[i].delayed) |
                atomic_load(&limit_counters[i].refused) | atomic_load(&limit_counters[i].shadowed),
            0);
    counter_add(&limit_counters[REGISTRY_LIMITS_MAX - 1].refused, 3);
    counter_add(&limit_counters[REGISTRY_LIMITS_MAX - 1].refused, 4);
    assert_int_equal(atomic_load(&limit_counters[REGISTRY_LIMITS_MAX - 1].refused), 7);
    free(limit_counters);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(states_are_found_by_name),
        TEST(same_means_policy_line_scope_and_place),
        TEST(only_limits_per_policy_need_everybody),
        TEST(nothing_is_given_twice),
        TEST(policies_have_an_end),
        TEST(slots_have_an_end),
        TEST(limits_have_an_end),
        TEST(counters_start_at_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
