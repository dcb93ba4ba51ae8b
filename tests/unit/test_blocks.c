/*
 * Tests of blocked subjects and subjects with limits of their own, and of the variants of their
 * policies.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "limit/policy/exceptions.h"
#include "limit/gate.h"
#include "policy_kit.h"

static struct block one(const char *subject, const char *reason, uint64_t until_ns)
{
    return (struct block){slice_str(subject), slice_str(reason), until_ns};
}

static struct shared_set *with(struct shared_set *before, const char *subject, const char *reason,
                               uint64_t until_ns)
{
    const struct block block = one(subject, reason, until_ns);
    struct shared_set *next = blocks_with(before, &block);
    shared_set_put(before);
    return next;
}

static void a_set_is_found_changed_and_shared(void **state)
{
    (void)state;
    struct shared_set *first = with(NULL, "user:bob", "", 0);
    struct shared_set *kept = shared_set_get(first);
    struct shared_set *set = with(first, "user:ann", "scans", 70);
    set = with(set, "ip:10.0.0.1", "", 50);
    assert_int_equal(shared_set_count(set), 3);
    assert_int_equal(shared_set_count(kept), 1);
    assert_null(blocks_find(kept, SLICE("user:ann")));
    const struct block *ann = blocks_find(set, SLICE("user:ann"));
    assert_true(slice_eq(ann->reason, SLICE("scans")) && ann->until_ns == 70);
    assert_null(blocks_find(set, SLICE("user:an")));
    assert_null(blocks_find(NULL, SLICE("user:ann")));
    assert_int_equal(shared_set_next_end(set), 50);
    set = with(set, "user:ann", "other", 90);
    assert_int_equal(shared_set_count(set), 3);
    struct shared_set *living = shared_set_living(set, false, 50);
    assert_int_equal(shared_set_count(living), 2);
    assert_int_equal(shared_set_next_end(living), 90);
    shared_set_put(set);
    set = shared_set_without(living, SLICE("user:ann"));
    shared_set_put(living);
    assert_true(slice_eq(blocks_at(set, 0)->subject, SLICE("user:bob")));
    assert_int_equal(shared_set_next_end(set), 0);
    assert_null(shared_set_without(set, SLICE("user:bob")));
    shared_set_put(set);
    shared_set_put(kept);
    shared_set_put(NULL);
}

static void many_are_kept_in_order(void **state)
{
    (void)state;
    struct shared_set *set = NULL;
    char name[32];
    for (unsigned i = 0; i < 300; i++) {
        snprintf(name, sizeof name, "user:%u", i * 7919 % 300);
        set = with(set, name, "", 1 + i);
    }
    for (unsigned i = 0; i < 300; i++) {
        snprintf(name, sizeof name, "user:%u", i);
        assert_non_null(blocks_find(set, slice_str(name)));
    }
    assert_int_equal(shared_set_count(set), 300);
    assert_null(shared_set_living(set, false, 300));
    shared_set_put(set);
}

static struct command_table *table;
static const struct variants no_variants;

static const struct policy *bind(const struct exceptions *exceptions, const struct policy *policy,
                                 const char *subject)
{
    return exceptions_bind(exceptions, policy, slice_str(subject));
}

static enum gate ask(const struct policy *policy, enum part part, const char *name)
{
    static struct limit_counters limit_counters[REGISTRY_LIMITS_MAX];
    struct subject *holder = subject_new_detached(policy->policy_state, PER_SUBJECT);
    const struct charge_target target = {policy, {holder, NULL, NULL}};
    const struct gate_request wish = {.command =
                                          command_find(table, slice_str(name), slice_str("")),
                                      .part = part,
                                      .amount = one_of_each(),
                                      .now_ns = 1};
    struct verdict verdict;
    enum gate gate = gate_ask(&target, &wish, limit_counters, &verdict);
    if (gate == GATE_DENY)
        assert_true(verdict.limit->is_block);
    subject_free_detached(holder);
    return gate;
}

static void a_block_denies_all_but_control(const struct policy *policy)
{
    for (enum part part = PART_ALL; part <= PART_COMMAND; part++) {
        assert_int_equal(ask(policy, part, "get"), GATE_DENY);
        assert_int_equal(ask(policy, part, "nonsense"), GATE_DENY);
        assert_int_equal(ask(policy, part, "ping"), GATE_PASS);
    }
}

static void whoever_is_blocked_has_a_variant_of_its_policy(void **state)
{
    (void)state;
    struct policies *policies = policies_new(classes_new());
    struct registry *registry = registry_new();
    table = command_table_builtin();
    struct policy *free_one = kit_policy(policies, "free");
    kit_limit(policies, free_one, table, "read", "5/s");
    for (int i = 0; i < POLICY_MAX_LIMITS; i++)
        kit_limit(policies, kit_policy(policies, "full"), table, i % 2 ? "cost" : "all", "9/s");
    policies_set_shadow(policies, false);
    kit_bind(policies, registry, table);
    struct policy_state *unlimited = registry_policy(registry, SLICE(""));
    struct shared_set *blocks = with(NULL, "user:ann", "", 0);
    const struct exceptions_of of = {policies, table, unlimited, blocks, &no_variants, 0, NULL};
    struct exceptions *exceptions = exceptions_new(&of);

    assert_ptr_equal(bind(exceptions, free_one, "user:bob"), free_one);
    assert_null(bind(exceptions, NULL, "user:bob"));
    const struct policy *variant = bind(exceptions, free_one, "user:ann");
    assert_string_equal(variant->name, "free");
    assert_ptr_equal(variant->policy_state, free_one->policy_state);
    assert_int_equal(variant->n_limits, 2);
    a_block_denies_all_but_control(variant);
    /* a lock would slow the policy down for good */
    assert_false(atomic_load(&free_one->policy_state->is_locked));
    const struct policy *nothing = bind(exceptions, NULL, "user:ann");
    assert_ptr_equal(nothing->policy_state, unlimited);
    a_block_denies_all_but_control(nothing);
    const struct policy *full = bind(exceptions, policies_at(policies, 1), "user:ann");
    assert_int_equal(full->n_limits, POLICY_MAX_LIMITS);
    a_block_denies_all_but_control(full);

    struct shared_set *more = blocks_with(blocks, &(struct block){.subject = SLICE("user:bob")});
    const struct exceptions_of with_more = {policies,     table, unlimited, more,
                                            &no_variants, 0,     exceptions};
    struct exceptions *next = exceptions_new(&with_more);
    /* the clients of the variant are not bound anew */
    assert_ptr_equal(bind(next, free_one, "user:ann"), variant);
    assert_ptr_equal(bind(next, free_one, "user:bob"), variant);
    assert_ptr_equal(bind(exceptions, free_one, "user:bob"), free_one);
    exceptions_put(next);
    shared_set_put(more);

    const struct exceptions_of none = {policies, table, unlimited, NULL, &no_variants, 0, NULL};
    assert_null(exceptions_new(&none));
    assert_ptr_equal(bind(NULL, free_one, "user:ann"), free_one);
    exceptions_put(exceptions_get(exceptions));
    exceptions_put(exceptions);
    shared_set_put(blocks);
    policies_put(policies);
    registry_free(registry);
    command_table_put(table);
}

static void one_subject_has_limits_of_its_own(void **state)
{
    (void)state;
    char why[256];
    struct policies *policies = policies_new(classes_new());
    struct registry *registry = registry_new();
    struct variants variants = {0};
    const struct line_span span = {70, true};
    table = command_table_builtin();
    struct policy *free_one = kit_policy(policies, "free"), *other = kit_policy(policies, "other");
    kit_limit(policies, free_one, table, "read", "5/s, 9/m");
    kit_limit(policies, free_one, table, "write", "3/s");
    kit_limit(policies, other, table, "read", "1/s");

    struct policy *ann = variants_want(&variants, SLICE("user:ann"), free_one);
    assert_ptr_equal(variants_want(&variants, SLICE("user:ann"), free_one), ann);
    assert_ptr_not_equal(variants_want(&variants, SLICE("user:ann"), other), ann);
    assert_ptr_not_equal(variants_want(&variants, SLICE("user:bob"), free_one), ann);
    assert_int_equal(variants.n, 3);
    assert_true(policy_replace_line(policies, ann, table, SLICE("Read"), SLICE("7/s"), &span, why,
                                    sizeof why));
    assert_false(policy_replace_line(policies, ann, table, SLICE("write"), SLICE("fast"), &span,
                                     why, sizeof why));
    assert_false(policy_replace_line(policies, ann, table, SLICE("wriet"), SLICE("1/s"), &span, why,
                                     sizeof why));
    assert_int_equal(ann->n_limits, 2);
    assert_int_equal(free_one->n_limits, 3);
    assert_int_equal(ann->limits[0].unit, UNIT_COMMANDS);
    assert_false(ann->limits[0].is_own);
    assert_true(ann->limits[1].is_own && ann->limits[1].until_ns == 70 &&
                ann->limits[1].rate.count == 7);
    assert_string_equal(ann->limits[1].label, "free/read");

    kit_bind(policies, registry, table);
    const struct exceptions_of of = {
        policies, table, registry_policy(registry, SLICE("")), NULL, &variants, 0, NULL};
    struct exceptions *exceptions = exceptions_new(&of);
    const struct policy *bound = bind(exceptions, free_one, "user:ann");
    assert_int_equal(bound->n_limits, 2);
    assert_int_equal(bound->index, free_one->index);
    assert_ptr_equal(bind(exceptions, free_one, "user:carl"), free_one);
    assert_null(bind(exceptions, NULL, "user:ann"));
    assert_int_equal(exceptions_variants(exceptions)->n, 3);
    assert_int_equal(exceptions_variants(NULL)->n, 0);
    exceptions_put(exceptions);
    variants_fini(&variants);
    policies_put(policies);
    registry_free(registry);
    command_table_put(table);
}

static void the_overflow_subject_has_the_limits_of_the_policy_and_denials(void **state)
{
    (void)state;
    char why[256];
    struct policies *policies = policies_new(classes_new());
    struct registry *registry = registry_new();
    struct variants variants = {0};
    const struct line_span span = {0, true};
    table = command_table_builtin();
    struct policy *free_one = kit_policy(policies, "free");
    kit_limit(policies, free_one, table, "read", "5/s, 9/m");
    struct policy *ann = variants_want(&variants, SLICE("user:ann"), free_one);
    struct policy *bob = variants_want(&variants, SLICE("user:bob"), free_one);
    assert_true(policy_replace_line(policies, ann, table, SLICE("cost"), SLICE("7/s"), &span, why,
                                    sizeof why));
    assert_true(policy_replace_line(policies, bob, table, SLICE("cost"), SLICE("7/s"), &span, why,
                                    sizeof why));
    assert_true(policy_replace_line(policies, bob, table, SLICE("read"), SLICE("deny"), &span, why,
                                    sizeof why));

    kit_bind(policies, registry, table);
    const struct exceptions_of of = {
        policies, table, registry_policy(registry, SLICE("")), NULL, &variants, 0, NULL};
    struct exceptions *exceptions = exceptions_new(&of);
    struct subject *own = subject_new_detached(free_one->policy_state, PER_SUBJECT);
    const struct policy *for_ann = bind(exceptions, free_one, "user:ann");
    assert_ptr_equal(exceptions_bind_on(for_ann, own), for_ann);
    assert_ptr_equal(exceptions_bind_on(for_ann, free_one->policy_state->overflow), free_one);
    assert_ptr_equal(exceptions_bind_on(free_one, free_one->policy_state->overflow), free_one);
    assert_null(exceptions_bind_on(NULL, own));
    const struct policy *for_bob = exceptions_bind_on(bind(exceptions, free_one, "user:bob"),
                                                      free_one->policy_state->overflow);
    assert_int_equal(for_bob->n_limits, 1);
    assert_int_equal(for_bob->limits[0].action, OVER_DENY);
    assert_ptr_equal(for_bob->policy_state, free_one->policy_state);
    subject_free_detached(own);
    exceptions_put(exceptions);
    variants_fini(&variants);
    policies_put(policies);
    registry_free(registry);
    command_table_put(table);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_set_is_found_changed_and_shared),
        cmocka_unit_test(many_are_kept_in_order),
        cmocka_unit_test(whoever_is_blocked_has_a_variant_of_its_policy),
        cmocka_unit_test(one_subject_has_limits_of_its_own),
        cmocka_unit_test(the_overflow_subject_has_the_limits_of_the_policy_and_denials),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
