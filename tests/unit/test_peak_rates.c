/*
 * Tests of a subject's peak rates: the windows, their peaks, and what remains of a forgotten
 * subject.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <pthread.h>
#include <stdio.h>

#include "base/clock.h"
#include "base/num.h"
#include "limit/figures/observed.h"
#include "limit/subjects.h"
#include "policy_kit.h"

#define S NS_PER_S
#define START (UINT64_C(6000) * S) /* a multiple of every window's length */

static _Atomic(struct peak_rates *) peak_rates;

static int tear_down(void **state)
{
    (void)state;
    peak_rates_free(atomic_exchange(&peak_rates, NULL));
    assert_int_equal(peak_rates_bytes(), 0);
    return 0;
}

static void asks(uint16_t mask, uint32_t n, uint64_t at_ns)
{
    peak_rates_add(&peak_rates, mask, n, START + at_ns);
}

static void assert_peaks(unsigned class, uint32_t p1, uint32_t p10, uint32_t p60)
{
    const struct peaks peaks = peak_rates_get(atomic_load(&peak_rates), class);
    assert_int_equal(peaks.of[PEAK_1S], p1);
    assert_int_equal(peaks.of[PEAK_10S], p10);
    assert_int_equal(peaks.of[PEAK_60S], p60);
}

static void what_is_under_way_counts(void **state)
{
    (void)state;
    assert_peaks(0, 0, 0, 0);
    asks(1, 5, 0);
    assert_peaks(0, 5, 5, 5);
    asks(1, 2, S - 1);
    assert_peaks(0, 7, 7, 7);
    asks(1, 4, S);
    assert_peaks(0, 7, 11, 11);
}

static void windows_end_where_they_end(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 120; i++)
        asks(1, 3, i * S + i * NS_PER_MS);
    assert_peaks(0, 3, 30, 180);
    asks(1, 100, 199 * S); /* after a silence the windows start empty */
    assert_peaks(0, 100, 100, 180);
    asks(1, 90, 200 * S); /* in the next ten seconds, in the same sixty */
    assert_peaks(0, 100, 100, 190);
    asks(1, 90, 240 * S); /* in the next sixty */
    assert_peaks(0, 100, 100, 190);
}

/* A burst across the boundary of two windows counts at least half. */
static void a_peak_is_a_half_at_least(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 1000; i++)
        asks(1, 1, 10 * S - S / 2 + i * NS_PER_MS);
    assert_peaks(0, 500, 500, 1000);
}

static void classes_are_counted_apart(void **state)
{
    (void)state;
    asks(1 << PEAK_CLASS_READ, 10, 0);
    asks(1 << PEAK_CLASS_WRITE, 20, 0);
    /* bit 15: a class of commands that neither read nor write */
    asks(1 << PEAK_CLASS_ALL | 1 << 15, 30, 0);
    assert_peaks(0, 60, 60, 60);
    assert_peaks(1, 10, 10, 10);
    assert_peaks(2, 20, 20, 20);
    assert_peaks(3, 0, 0, 0);
    assert_peaks(14, 0, 0, 0);
    assert_peaks(15, 30, 30, 30);
    asks(1 << PEAK_CLASS_WRITE, 5, S); /* in the next second */
    assert_peaks(PEAK_CLASS_ALL, 60, 65, 65);
    assert_peaks(PEAK_CLASS_WRITE, 20, 25, 25);
    assert_int_equal(peak_rates_bytes(), 4 * sizeof(struct peak_rates));
}

/* The clock of one worker was read before the other's. */
static void an_earlier_time_counts_as_now(void **state)
{
    (void)state;
    asks(1, 5, 10 * S);
    asks(1, 6, 10 * S - 1);
    assert_peaks(0, 11, 11, 11);
}

static void *ask_often(void *arg)
{
    (void)arg;
    for (unsigned i = 0; i < 20000; i++)
        asks(3, 1, 0);
    return NULL;
}

static void threads_lose_nothing(void **state)
{
    pthread_t threads[4];
    (void)state;
    for (size_t i = 0; i < 4; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, ask_often, NULL), 0);
    for (size_t i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
    assert_peaks(1, 80000, 80000, 80000);
    assert_int_equal(peak_rates_bytes(), sizeof(struct peak_rates));
}

/* ---- subjects and their policy ---- */

struct scene {
    struct registry *registry;
    struct command_table *table;
    struct policies *policies;
    struct policy *policy;
    struct subjects *subjects;
};

static struct scene scene_new(size_t most)
{
    char why[256];
    struct scene s = {registry_new(), command_table_builtin(), NULL, NULL, subjects_new(most)};
    struct classes *classes = classes_new();
    assert_true(class_define(classes, SLICE("heavy"), SLICE("keys, sort"), why, sizeof why));
    s.policies = policies_new(classes);
    s.policy = kit_policy(s.policies, "free");
    kit_limit(s.policies, s.policy, s.table, "@hash", "10/s");
    kit_bind(s.policies, s.registry, s.table);
    return s;
}

static void scene_free(struct scene *s)
{
    subjects_free(s->subjects);
    policies_put(s->policies);
    command_table_put(s->table);
    registry_free(s->registry);
}

static unsigned class_of(const struct scene *s, const char *name)
{
    const struct observed *observed = s->policy->policy_state->observed;
    for (unsigned i = 0; i < observed_count(observed); i++)
        if (slice_eq(observed_name(observed, i), slice_str(name)))
            return i;
    fail_msg("class %s is not observed", name);
    return 0;
}

static uint32_t peak_of(const struct scene *s, struct subject *subject, const char *class)
{
    return peak_rates_get(atomic_load(&subject->peak_rates), class_of(s, class)).of[PEAK_1S];
}

static void commands_count_in_their_classes(void **state)
{
    (void)state;
    struct scene s = scene_new(10);
    struct peak_rates_pending pending = {0};
    struct subject *subject =
        subject_get(s.subjects, s.policy->policy_state, SLICE("user:a"), START);
    peak_rates_begin(&pending, subject, &s.policy->peak_rates, START);
    static const struct {
        const char *name;
        uint32_t n;
    } asked[] = {{"get", 5}, {"set", 3}, {"hget", 2}, {"keys", 1}, {"ping", 9}, {"get", 4}};
    for (size_t i = 0; i < sizeof asked / sizeof asked[0]; i++)
        peak_rates_note(&pending, kit_command(s.table, asked[i].name), asked[i].n);
    assert_int_equal(peak_of(&s, subject, "all"), 0); /* not reported yet */
    peak_rates_flush(&pending, START);
    assert_int_equal(peak_of(&s, subject, "all"), 15); /* control commands are never refused */
    assert_int_equal(peak_of(&s, subject, "read"), 12);
    assert_int_equal(peak_of(&s, subject, "write"), 3);
    assert_int_equal(peak_of(&s, subject, "@hash"), 2);
    assert_int_equal(peak_of(&s, subject, "heavy"), 1);
    assert_int_equal(observed_count(s.policy->policy_state->observed), 5);
    assert_int_equal(observed_seconds(s.policy->policy_state->observed, START + 7 * S), 7);
    assert_int_equal(pending.touched, 0);
    /* one command at a time: two in this second, one in the next */
    for (size_t i = 0; i < 3; i++) {
        peak_rates_note(&pending, kit_command(s.table, asked[i].name), asked[i].n);
        peak_rates_flush(&pending, START + i / 2 * S);
    }
    assert_int_equal(peak_of(&s, subject, "all"), 23);
    assert_int_equal(peak_of(&s, subject, "@hash"), 2);
    assert_int_equal(
        peak_rates_get(atomic_load(&subject->peak_rates), PEAK_CLASS_READ).of[PEAK_10S], 19);
    subject_put(s.subjects, subject);
    scene_free(&s);
}

static void who_is_next_is_told_apart(void **state)
{
    (void)state;
    struct scene s = scene_new(10);
    struct peak_rates_pending pending = {0};
    const struct command *get = kit_command(s.table, "get");
    struct subject *a = subject_get(s.subjects, s.policy->policy_state, SLICE("user:a"), START);
    struct subject *b = subject_get(s.subjects, s.policy->policy_state, SLICE("user:b"), START);
    peak_rates_begin(&pending, a, &s.policy->peak_rates, START);
    peak_rates_note(&pending, get, 5);
    peak_rates_begin(&pending, b, &s.policy->peak_rates, START);
    peak_rates_note(&pending, get, 7);
    peak_rates_flush(&pending, START);
    peak_rates_begin(&pending, b, &s.policy->peak_rates, START);
    peak_rates_note(&pending, get, 100);
    peak_rates_drop(&pending);
    assert_int_equal(pending.touched, 0);
    peak_rates_note(&pending, get, 0);
    peak_rates_flush(&pending, START);
    peak_rates_tell(a, &s.policy->peak_rates, get, START);
    assert_int_equal(peak_of(&s, a, "read"), 6);
    assert_int_equal(peak_of(&s, b, "read"), 7);
    subject_put(s.subjects, a);
    subject_put(s.subjects, b);
    scene_free(&s);
}

static void another_table_and_reload_keep_the_classes(void **state)
{
    (void)state;
    struct scene s = scene_new(10);
    unsigned heavy = class_of(&s, "heavy");
    struct policies *copy = policies_rebind(s.policies, s.table);
    const struct policy *policy = policies_find(copy, SLICE("free"));
    const struct command *keys = kit_command(s.table, "keys");
    assert_int_equal(policy->peak_rates.masks[peak_plan_group(&policy->peak_rates, keys)],
                     s.policy->peak_rates.masks[peak_plan_group(&s.policy->peak_rates, keys)]);
    struct policies *next = policies_new(classes_new());
    struct policy *again = kit_policy(next, "free");
    kit_limit(next, again, s.table, "cmd.get", "10/s");
    kit_bind(next, s.registry, s.table);
    assert_ptr_equal(again->policy_state, s.policy->policy_state);
    assert_int_equal(class_of(&s, "heavy"), heavy);
    assert_int_equal(class_of(&s, "cmd.get"), 5);
    policies_put(next);
    policies_put(copy);
    scene_free(&s);
}

/* Classes beyond the maximum are left out. The counts of the other classes stay right. */
static void too_many_classes_are_left_out(void **state)
{
    (void)state;
    char name[16];
    char why[256];
    struct registry *registry = registry_new();
    struct command_table *table = command_table_builtin();
    struct classes *classes = classes_new();
    for (int i = 0; i < 20; i++) {
        snprintf(name, sizeof name, "own%d", i);
        assert_true(class_define(classes, slice_str(name), SLICE("get"), why, sizeof why));
    }
    struct policies *policies = policies_new(classes);
    struct policy *policy = kit_policy(policies, "free");
    kit_bind(policies, registry, table);
    assert_int_equal(observed_count(policy->policy_state->observed), PEAK_CLASSES_MAX);
    assert_int_equal(
        policy->peak_rates.masks[peak_plan_group(&policy->peak_rates, kit_command(table, "get"))],
        0xffff &
            /* reads count in `all` without a bit of their own */
            ~(1U << PEAK_CLASS_WRITE | 1U << PEAK_CLASS_ALL));
    policies_put(policies);
    command_table_put(table);
    registry_free(registry);
}

static void the_forgotten_are_kept_as_a_distribution(void **state)
{
    (void)state;
    struct scene s = scene_new(20);
    char name[32];
    for (unsigned i = 1; i <= 200; i++) {
        snprintf(name, sizeof name, "user:%u", i);
        struct subject *subject =
            subject_get(s.subjects, s.policy->policy_state, slice_str(name), START + i * S);
        for (unsigned j = 0; j < i; j++)
            peak_rates_tell(subject, &s.policy->peak_rates, kit_command(s.table, "get"),
                            START + i * S);
        subject_put(s.subjects, subject);
    }
    struct observed_forgotten forgotten;
    observed_copy_forgotten(s.policy->policy_state->observed, class_of(&s, "read"), &forgotten);
    size_t living = subjects_count(s.subjects);
    assert_in_range(living, 1, 20);
    assert_int_equal(forgotten.distribution.subjects + living, 200);
    assert_int_equal(forgotten.n_most, OBSERVED_NAMES);
    assert_in_range(forgotten.most[0].peaks.of[PEAK_60S], 180, 200);
    assert_true(forgotten.most[0].peaks.of[PEAK_60S] > forgotten.most[1].peaks.of[PEAK_60S]);
    snprintf(name, sizeof name, "user:%u", forgotten.most[0].peaks.of[PEAK_1S]);
    assert_true(slice_eq(slice_of(forgotten.most[0].text, forgotten.most[0].len), slice_str(name)));
    distribution_fini(&forgotten.distribution);
    observed_copy_forgotten(s.policy->policy_state->observed, class_of(&s, "write"), &forgotten);
    assert_int_equal(forgotten.distribution.subjects, 0);
    scene_free(&s);
}

/* The overflow subject stands for many subjects. */
static void the_overflow_subject_is_not_observed(void **state)
{
    (void)state;
    struct scene s = scene_new(1);
    struct subject *a = subject_get(s.subjects, s.policy->policy_state, SLICE("user:a"), START);
    struct subject *b = subject_get(s.subjects, s.policy->policy_state, SLICE("user:b"), START);
    assert_true(subject_is_overflow(b));
    peak_rates_tell(b, &s.policy->peak_rates, kit_command(s.table, "get"), START);
    assert_null(atomic_load(&b->peak_rates));
    subject_put(s.subjects, a);
    subject_put(s.subjects, b);
    scene_free(&s);
}

static void count_one(void *arg, struct subject *subject)
{
    uint32_t *seen = arg;
    int64_t number;
    struct slice name = subject_name(subject);
    assert_true(
        num_parse(slice_of(name.at + strlen("user:"), name.len - strlen("user:")), &number));
    seen[number]++;
}

static void all_are_looked_at_once(void **state)
{
    (void)state;
    enum { MANY = 50000 };
    static uint32_t seen[MANY];
    struct scene s = scene_new(MANY);
    char name[32];
    for (unsigned i = 0; i < MANY; i++) {
        snprintf(name, sizeof name, "user:%u", i);
        (void)subject_get(s.subjects, s.policy->policy_state, slice_str(name), START);
    }
    subjects_look(s.subjects, count_one, seen);
    for (unsigned i = 0; i < MANY; i++)
        assert_int_equal(seen[i], 1);
    scene_free(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(what_is_under_way_counts, tear_down),
        cmocka_unit_test_teardown(windows_end_where_they_end, tear_down),
        cmocka_unit_test_teardown(a_peak_is_a_half_at_least, tear_down),
        cmocka_unit_test_teardown(classes_are_counted_apart, tear_down),
        cmocka_unit_test_teardown(an_earlier_time_counts_as_now, tear_down),
        cmocka_unit_test_teardown(threads_lose_nothing, tear_down),
        cmocka_unit_test_teardown(commands_count_in_their_classes, tear_down),
        cmocka_unit_test_teardown(who_is_next_is_told_apart, tear_down),
        cmocka_unit_test_teardown(another_table_and_reload_keep_the_classes, tear_down),
        cmocka_unit_test_teardown(too_many_classes_are_left_out, tear_down),
        cmocka_unit_test_teardown(the_forgotten_are_kept_as_a_distribution, tear_down),
        cmocka_unit_test_teardown(the_overflow_subject_is_not_observed, tear_down),
        cmocka_unit_test_teardown(all_are_looked_at_once, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
