/*
 * For tests of the gate: one policy, "free", and one client that it binds. The tests set the time.
 */
#ifndef WEIR_TESTS_GATE_KIT_H
#define WEIR_TESTS_GATE_KIT_H

#include <stdlib.h>
#include <string.h>

#include "policy_kit.h"

#define S UINT64_C(1000000000)
#define MS UINT64_C(1000000)
#define START (100 * S) /* a late time, like the time since boot */
#define KIT_SETS 64
#define CONNECT_UNITS (1U << UNIT_CONNECTIONS | 1U << UNIT_CONNECTS)

static struct command_table *table;
static struct registry *registry;
static struct subjects *subjects;
static struct policies *policies;       /* the set that is being written, or in force */
static struct policies *sets[KIT_SETS]; /* all sets, freed at the end */
static size_t n_sets;
static struct policy *policy; /* the policy "free" of that set */
static struct limit_counters *limit_counters;
static struct charge_target target;
static struct verdict verdict;

/*
 * Begins a new set of policies. The sets before stay in force for charge targets made under them.
 */
static inline void new_rules(void)
{
    policies = sets[n_sets++] = policies_new(classes_new());
    policy = kit_policy(policies, "free");
}

static inline int set_up(void **state)
{
    (void)state;
    table = command_table_builtin();
    registry = registry_new();
    subjects = subjects_new(100);
    limit_counters = limit_counters_new();
    target = (struct charge_target){0};
    memset(&verdict, 0, sizeof verdict);
    n_sets = 0;
    new_rules();
    return 0;
}

static inline int tear_down(void **state)
{
    (void)state;
    if (target.policy)
        kit_target_put(subjects, &target);
    free(limit_counters);
    for (size_t i = 0; i < n_sets; i++)
        policies_put(sets[i]);
    subjects_free(subjects);
    registry_free(registry);
    command_table_put(table);
    return 0;
}

static inline void limit(const char *what, const char *expression)
{
    kit_limit(policies, policy, table, what, expression);
}

/* Puts the rules into force, for a new client or for the client that is connected. */
static inline void open_gate(void)
{
    kit_bind(policies, registry, table);
    target = target.policy ? kit_target_under(&target, policy)
                           : kit_target(subjects, policy, "user:a", START);
}

/* A command that has just come to the head of its connection, and may wait. */
static inline struct gate_request ask_of(const char *command, uint64_t cost, uint64_t now_ns)
{
    /* of this thread's newest decision request */
    static _Thread_local uint64_t amounts[UNIT_COUNT];
    for (size_t i = 0; i < UNIT_COUNT; i++)
        amounts[i] = i == UNIT_COST ? cost : 1;
    return (struct gate_request){.command = kit_command(table, command),
                                 .amount = amounts,
                                 .now_ns = now_ns,
                                 .headed_ns = now_ns,
                                 .may_wait = true};
}

static inline enum gate ask(const char *command, uint64_t cost, uint64_t now_ns)
{
    const struct gate_request wish = ask_of(command, cost, now_ns);
    return gate_ask(&target, &wish, limit_counters, &verdict);
}

static inline bool pass(const char *command, uint64_t now_ns)
{
    return ask(command, 1, now_ns) == GATE_PASS;
}

static inline uint64_t word(size_t index)
{
    return kit_word(&target, index);
}

static inline const struct limit_counters *counters(size_t index)
{
    return &limit_counters[target.policy->limits[index].id];
}

static inline void assert_counters_of(const struct limit_counters *counted, uint64_t admitted,
                                      uint64_t delayed, uint64_t refused, uint64_t shadowed)
{
    assert_int_equal(atomic_load(&counted->admitted), admitted);
    assert_int_equal(atomic_load(&counted->delayed), delayed);
    assert_int_equal(atomic_load(&counted->refused), refused);
    assert_int_equal(atomic_load(&counted->shadowed), shadowed);
}

#define assert_counters(index, admitted, delayed, refused, shadowed)                               \
    assert_counters_of(counters(index), admitted, delayed, refused, shadowed)

#endif
