/* Tests of the table of subjects: shared subjects, forgotten subjects, overflow. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>

#include "base/log.h"
#include "dice.h"
#include "funnel_law.h"
#include "limit/figures/registry.h"
#include "limit/subjects.h"

#define S UINT64_C(1000000000)

static struct policy_state gold = {.name = "gold", .slots = {2}};
static struct policy_state free_of_charge = {.name = "free", .slots = {1}};
static struct rate rate;

static int set_up(void **state)
{
    (void)state;
    log_set_level(LOG_ERROR);
    gold = (struct policy_state){.name = "gold", .slots = {2}};
    free_of_charge = (struct policy_state){.name = "free", .slots = {1}};
    gold.overflow = subject_new_lasting(&gold, PER_SUBJECT, SLICE("overflow"));
    free_of_charge.overflow = subject_new_lasting(&free_of_charge, PER_SUBJECT, SLICE("overflow"));
    return rate_init(&rate, 1, S, 10) ? 0 : -1;
}

static int tear_down(void **state)
{
    (void)state;
    subject_free_detached(gold.overflow);
    subject_free_detached(free_of_charge.overflow);
    return 0;
}

static struct subject *get(struct subjects *subjects, const char *name, uint64_t now_ns)
{
    return subject_get(subjects, &free_of_charge, slice_str(name), now_ns);
}

static struct subject *get_number(struct subjects *subjects, size_t number, uint64_t now_ns)
{
    char name[32];
    snprintf(name, sizeof name, "user:%zu", number);
    return get(subjects, name, now_ns);
}

static void charge(struct subject *subject, size_t funnel, uint64_t now_ns, uint64_t cost)
{
    assert_int_equal(funnel_take(&subject->funnels[funnel], &rate, now_ns, cost), 0);
}

static bool is_overflow(const struct subject *subject)
{
    return slice_eq(subject_name(subject), SLICE("overflow"));
}

static void one_name_is_one_subject(void **state)
{
    (void)state;
    struct subjects *subjects = subjects_new(10);
    struct subject *a = get(subjects, "user:a", 0);
    assert_true(slice_eq(subject_name(a), SLICE("user:a")));
    assert_int_equal(a->n_funnels, 1);
    assert_ptr_equal(get(subjects, "user:a", 0), a);
    assert_int_equal(atomic_load(&a->holders), 2);
    assert_ptr_not_equal(get(subjects, "user:b", 0), a);
    assert_ptr_not_equal(get(subjects, "user:", 0), a);
    assert_int_equal(subjects_count(subjects), 3);
    assert_int_equal(subjects_overflows(subjects), 0);
    subjects_free(subjects);
}

static void a_subject_belongs_to_a_policy(void **state)
{
    (void)state;
    struct subjects *subjects = subjects_new(10);
    struct subject *a = get(subjects, "user:a", 0);
    struct subject *b = subject_get(subjects, &gold, SLICE("user:a"), 0);
    assert_ptr_not_equal(a, b);
    assert_int_equal(b->n_funnels, 2);

    assert_int_equal(atomic_load(&gold.subjects), 1);
    subjects_free(subjects);
}

static void who_comes_back_finds_his_debt(void **state)
{
    (void)state;
    struct subjects *subjects = subjects_new(1000);
    struct subject *a = get(subjects, "user:a", 0);
    charge(a, 0, 0, 10);
    subject_put(subjects, a);
    for (size_t i = 0; i < 500; i++)
        subject_put(subjects, get_number(subjects, i, 9 * S));
    assert_ptr_equal(get(subjects, "user:a", 9 * S), a);
    assert_int_not_equal(funnel_ask(&a->funnels[0], &rate, 9 * S, 10), 0);
    subjects_free(subjects);
}

static void held_ones_stay_and_newcomers_overflow(void **state)
{
    (void)state;
    struct subjects *subjects = subjects_new(3);
    struct subject *held[3];
    for (size_t i = 0; i < 3; i++)
        held[i] = get_number(subjects, i, 0);
    struct subject *late = get_number(subjects, 3, 100 * S);
    assert_true(is_overflow(late));
    assert_int_equal(subjects_overflows(subjects), 1);
    assert_ptr_equal(get_number(subjects, 4, 100 * S), late);
    assert_int_equal(subjects_count(subjects), 3);
    for (size_t i = 0; i < 3; i++)
        assert_ptr_equal(get_number(subjects, i, 100 * S), held[i]);

    struct subject *gold_late = subject_get(subjects, &gold, SLICE("user:z"), 100 * S);
    assert_true(is_overflow(gold_late));
    assert_ptr_not_equal(gold_late, late);
    assert_int_equal(gold_late->n_funnels, 2);
    subject_put(subjects, late);
    subjects_free(subjects);
}

static void debt_keeps_a_place_and_no_longer(void **state)
{
    (void)state;
    struct subjects *subjects = subjects_new(1);
    struct subject *a = subject_get(subjects, &gold, SLICE("user:a"), 0);
    charge(a, 1, 0, 5);
    subject_put(subjects, a);
    struct subject *b = get(subjects, "user:b", 5 * S - 1);
    assert_true(is_overflow(b));
    subject_put(subjects, b);
    b = get(subjects, "user:b", 5 * S);
    assert_true(slice_eq(subject_name(b), SLICE("user:b")));
    assert_int_equal(subjects_count(subjects), 1);
    subjects_free(subjects);
}

static void a_full_table_of_idle_ones_has_room(void **state)
{
    (void)state;
    struct subjects *subjects = subjects_new(50);
    for (size_t i = 0; i < 50; i++)
        get_number(subjects, i, 0);
    for (size_t i = 0; i < 50; i++) {
        struct subject *idle = get_number(subjects, i, 0);
        subject_put(subjects, idle);
        subject_put(subjects, idle);
        assert_false(is_overflow(get_number(subjects, 1000 + i, 0)));
        assert_true(subjects_count(subjects) <= 50);
    }
    assert_true(is_overflow(get_number(subjects, 2000, 0)));
    subjects_free(subjects);
}

static void idle_ones_do_not_stay_for_ever(void **state)
{
    (void)state;
    struct subjects *subjects = subjects_new(1000000);
    for (size_t i = 0; i < 20000; i++)
        subject_put(subjects, get_number(subjects, i, i));
    assert_true(subjects_count(subjects) < 1000);
    subjects_free(subjects);
}

static void many_are_all_found_again(void **state)
{
    (void)state;
    enum { MANY = 20000 };
    struct subjects *subjects = subjects_new(MANY);
    struct subject **held = malloc(MANY * sizeof(struct subject *));
    for (size_t i = 0; i < MANY; i++) {
        held[i] = get_number(subjects, i, 0);
        charge(held[i], 0, 0, 1);
    }
    assert_int_equal(subjects_count(subjects), MANY);
    for (size_t i = 0; i < MANY; i++) {
        assert_ptr_equal(get_number(subjects, i, 0), held[i]);
        subject_put(subjects, held[i]);
        subject_put(subjects, held[i]);
    }
    assert_int_equal(subjects_count(subjects), MANY);
    for (size_t i = 0; i < MANY; i++)
        subject_put(subjects, get_number(subjects, MANY + i, S));
    assert_true(subjects_count(subjects) < MANY / 4);
    assert_int_equal(subjects_overflows(subjects), 0);
    free(held);
    subjects_free(subjects);
}

static void no_place_at_all_is_overflow(void **state)
{
    (void)state;
    struct subjects *subjects = subjects_new(0);
    assert_true(is_overflow(get(subjects, "user:a", 0)));
    assert_int_equal(subjects_count(subjects), 0);
    subjects_free(subjects);
}

/*
 * A subject is forgotten and comes back at random while other names push it out of the table. What
 * the subject gets in all never exceeds burst + rate * time.
 */
static void forgetting_gives_nothing_away(void **state)
{
    (void)state;
    struct subjects *subjects = subjects_new(20);
    uint64_t seed = 5, now_ns = 0, taken[40] = {0};
    for (int i = 0; i < 20000; i++) {
        size_t number = dice_below(&seed, 40);
        now_ns += dice_below(&seed, S / 4);
        struct subject *subject = get_number(subjects, number, now_ns);
        if (funnel_take(&subject->funnels[0], &rate, now_ns, 1) == 0 && !is_overflow(subject))
            taken[number]++;
        assert_true(taken[number] <= 10 + now_ns / S);
        subject_put(subjects, subject);
    }
    subjects_free(subjects);
}

/*
 * A new subject may have used the overflow subject before, so it inherits all debts of the overflow
 * subject. Calls in flight are not inherited.
 */
static void newcomers_owe_what_the_overflow_owes(void **state)
{
    (void)state;
    const uint64_t now_ns = 1000 * S;
    struct subjects *subjects = subjects_new(1);
    struct subject *a = get(subjects, "user:a", now_ns);
    struct subject *late = get(subjects, "user:b", now_ns),
                   *golden = subject_get(subjects, &gold, SLICE("user:b"), now_ns);
    assert_true(subject_is_overflow(late) && subject_is_overflow(golden) &&
                !subject_is_overflow(a));
    atomic_store(&free_of_charge.slots[PER_SUBJECT], 31);
    subject_grow_lasting(late);
    charge(late, 0, now_ns, 7);
    gauge_add(subject_funnel(late, 20), 5);
    assert_int_equal(funnel_take(subject_funnel(late, 30), &rate, now_ns, 3), 0);
    assert_null(subject_try_get(subjects, &free_of_charge, SLICE("user:b"), now_ns));
    assert_ptr_equal(subject_try_get(subjects, &free_of_charge, SLICE("user:a"), now_ns), a);
    subject_put(subjects, a);
    subject_put(subjects, a);
    struct subject *b = get(subjects, "user:b", now_ns + S);
    assert_false(subject_is_overflow(b));
    assert_int_equal(gauge_value(&b->funnels[0]), now_ns + 7 * S);
    assert_int_equal(gauge_value(subject_funnel(b, 20)), 0);
    assert_int_equal(gauge_value(subject_funnel(b, 30)), now_ns + 3 * S);
    assert_ptr_equal(subject_try_get(subjects, &free_of_charge, SLICE("user:b"), now_ns + S), b);
    assert_null(subject_try_get(subjects, &gold, SLICE("user:b"), now_ns + S));
    subject_put(subjects, b);
    subject_put(subjects, b);
    b = subject_try_get(subjects, &gold, SLICE("user:b"), now_ns + 7 * S);
    assert_int_equal(gauge_value(&b->funnels[0]), 0); /* another policy's overflow owes nothing */
    subjects_free(subjects);
}

/*
 * A subject that owes only the inherited debt is evicted first. Otherwise the table would stay
 * full, and the overflow subject in debt, for as long as new subjects come. A subject with more
 * debt in any funnel stays.
 */
static void heirs_make_room(void **state)
{
    (void)state;
    const uint64_t now_ns = 1000 * S;
    struct subjects *subjects = subjects_new(2);
    struct subject *a = get(subjects, "user:a", now_ns), *b = get(subjects, "user:b", now_ns);
    struct subject *late = get(subjects, "user:c", now_ns);
    assert_true(subject_is_overflow(late));
    atomic_store(&free_of_charge.slots[PER_SUBJECT], 31);
    subject_grow_lasting(late);
    charge(late, 0, now_ns, 7);
    assert_true(subject_grow(a) && subject_grow(b));
    charge(a, 0, now_ns, 7);
    assert_int_equal(funnel_take(subject_funnel(b, 30), &rate, now_ns, 1), 0);
    subject_put(subjects, b);
    /* a is in use, and b owes more in one funnel */
    assert_true(is_overflow(get(subjects, "user:c", now_ns)));
    subject_put(subjects, a);
    struct subject *c = get(subjects, "user:c", now_ns);
    assert_false(is_overflow(c));
    assert_int_equal(gauge_value(&c->funnels[0]), now_ns + 7 * S);
    charge(c, 0, now_ns, 1);
    subject_put(subjects, c);
    a = get(subjects, "user:a", now_ns);
    assert_true(is_overflow(a)); /* c has a debt of its own */
    subject_put(subjects, a);
    subjects_free(subjects);
}

/*
 * More names with several connections each than the table has room for: no name gets more than its
 * own rate.
 */
static void going_to_and_fro_gains_nothing(void **state)
{
    (void)state;
    enum { NAMES = 4, CONNECTIONS = 3, MOST = 20000 };
    static struct admitted taken[NAMES][MOST];
    for (uint64_t round = 1; round <= 20; round++) {
        struct subjects *subjects = subjects_new(1 + round % 2);
        struct subject *held[NAMES][CONNECTIONS] = {{NULL}};
        uint64_t seed = round, now_ns = 0, overflown = 0;
        size_t n_taken[NAMES] = {0};
        for (int i = 0; i < 5000; i++) {
            size_t n = dice_below(&seed, NAMES);
            struct subject **at = &held[n][dice_below(&seed, CONNECTIONS)];
            char name[32];
            snprintf(name, sizeof name, "user:%zu", n);
            now_ns += dice_below(&seed, 100) == 0 ? 12 * S : dice_below(&seed, S / 8);
            if (*at != NULL && dice_below(&seed, 8) == 0) {
                subject_put(subjects, *at);
                *at = NULL;
                continue;
            }
            if (*at == NULL)
                *at = get(subjects, name, now_ns);
            struct subject *own =
                subject_is_overflow(*at)
                    ? subject_try_get(subjects, &free_of_charge, slice_str(name), now_ns)
                    : NULL;
            if (own != NULL) {
                subject_put(subjects, *at);
                *at = own;
            }
            overflown += subject_is_overflow(*at);
            for (int k = 0; k < 4; k++)
                if (funnel_take(&(*at)->funnels[0], &rate, now_ns, 1) == 0)
                    taken[n][n_taken[n]++] = (struct admitted){now_ns, 1};
        }
        for (size_t n = 0; n < NAMES; n++)
            assert_true(law_holds(taken[n], n_taken[n], &rate));
        assert_true(overflown > 20);
        subjects_free(subjects);
    }
}

/*
 * Subjects with an inherited debt also make room for names that use the overflow subject. Otherwise
 * the two would keep each other in place: the names renew the overflow's debt, and the debt keeps
 * the heirs.
 */
static void who_stays_gets_the_place_of_an_heir(void **state)
{
    (void)state;
    const uint64_t now_ns = 1000 * S;
    struct subjects *subjects = subjects_new(1);
    struct subject *a = get(subjects, "user:a", now_ns);
    struct subject *late = get(subjects, "user:b", now_ns);
    assert_true(subject_is_overflow(late));
    charge(late, 0, now_ns, 7);
    charge(a, 0, now_ns, 7);
    /* a connection uses the heir */
    assert_null(subject_try_get(subjects, &free_of_charge, SLICE("user:b"), now_ns));
    subject_put(subjects, a);
    /* not on every call */
    assert_null(subject_try_get(subjects, &free_of_charge, SLICE("user:b"), now_ns));
    struct subject *own =
        subject_try_get(subjects, &free_of_charge, SLICE("user:b"), now_ns + NS_PER_MS);
    assert_non_null(own);
    assert_int_equal(gauge_value(&own->funnels[0]), now_ns + 7 * S); /* owes its own charges too */
    assert_int_equal(subjects_count(subjects), 1);
    subjects_free(subjects);
}

/* ---- funnels added later ---- */

static void slots(struct policy_state *policy_state, enum scope scope, uint16_t n)
{
    atomic_store(&policy_state->slots[scope], n);
}

static void late_funnels_stay_where_they_are(void **state)
{
    (void)state;
    struct subjects *subjects = subjects_new(10);
    struct subject *a = get(subjects, "user:a", 0);
    static struct funnel *at[REGISTRY_SLOTS_MAX];
    uint64_t seed = 1;
    for (int i = 0; i < 20000; i++) {
        uint16_t n_slots = i < 5000 ? 60 : REGISTRY_SLOTS_MAX;
        uint16_t slot = (uint16_t)dice_below(&seed, n_slots);
        slots(&free_of_charge, PER_SUBJECT, n_slots);
        assert_true(subject_grow(a));
        struct funnel *funnel = subject_funnel(a, slot);
        assert_true(!at[slot] || at[slot] == funnel);
        if (!at[slot]) {
            assert_int_equal(gauge_value(funnel), 0);
            gauge_add(funnel, slot + 1U);
        }
        at[slot] = funnel;
        assert_int_equal(gauge_value(funnel), slot + 1);
    }
    /* A new subject has all its funnels in one array. */
    struct subject *b = get(subjects, "user:b", 0);
    assert_int_equal(b->n_funnels, REGISTRY_SLOTS_MAX);
    assert_ptr_equal(subject_funnel(b, REGISTRY_SLOTS_MAX - 1),
                     &b->funnels[REGISTRY_SLOTS_MAX - 1]);
    subjects_free(subjects);
}

static void late_debt_keeps_a_place(void **state)
{
    (void)state;
    struct subjects *subjects = subjects_new(1);
    struct subject *a = get(subjects, "user:a", 100 * S);
    slots(&free_of_charge, PER_SUBJECT, 30);
    assert_ptr_equal(get(subjects, "user:a", 100 * S), a);
    subject_put(subjects, a);
    assert_int_equal(funnel_take(subject_funnel(a, 3), &rate, 100 * S, 2), 0);
    assert_int_equal(funnel_take(subject_funnel(a, 29), &rate, 100 * S, 5), 0);
    subject_put(subjects, a);
    struct subject *b = get(subjects, "user:b", 105 * S - 1);
    assert_true(is_overflow(b));
    assert_ptr_equal(get(subjects, "user:a", 105 * S - 1), a);
    subject_put(subjects, a);
    b = get(subjects, "user:b", 105 * S);
    assert_false(is_overflow(b));
    assert_int_equal(b->n_funnels, 30);
    subjects_free(subjects);
}

static void own_ones_are_in_no_table(void **state)
{
    (void)state;
    slots(&gold, PER_CONNECTION, 3);
    struct subject *own = subject_new_detached(&gold, PER_CONNECTION);
    assert_int_equal(own->n_funnels, 3);
    assert_int_equal(subject_name(own).len, 0);
    slots(&gold, PER_CONNECTION, 21);
    assert_true(subject_grow(own));
    gauge_add(subject_funnel(own, 20), 5);
    assert_int_equal(gauge_value(subject_funnel(own, 20)), 5);
    assert_int_equal(atomic_load(&gold.subjects), 0);
    subject_free_detached(own);
    subject_free_detached(NULL);
}

/* ---- counting, finding, forgiving ---- */

static void states_know_how_many(void **state)
{
    (void)state;
    struct subjects *subjects = subjects_new(3);
    subject_put(subjects, get(subjects, "user:a", 0));
    struct subject *b = get(subjects, "user:b", 0);
    struct subject *c = subject_get(subjects, &gold, SLICE("user:b"), 0);
    assert_int_equal(atomic_load(&free_of_charge.subjects) + atomic_load(&gold.subjects),
                     subjects_count(subjects));
    assert_int_equal(atomic_load(&gold.subjects), 1);
    charge(b, 0, 0, 10);
    charge(c, 0, 0, 10);
    for (size_t i = 0; i < 50; i++)
        subject_put(subjects, get_number(subjects, i, 0));
    assert_true(subjects_count(subjects) <= 3);
    assert_int_equal(atomic_load(&free_of_charge.subjects) + atomic_load(&gold.subjects),
                     subjects_count(subjects));
    subject_put(subjects, b);
    subject_put(subjects, c);
    for (size_t i = 0; i < 200; i++)
        subject_put(subjects, get_number(subjects, i, 100 * S));
    assert_int_equal(atomic_load(&gold.subjects), 0);
    assert_int_equal(atomic_load(&free_of_charge.subjects), subjects_count(subjects));
    subjects_free(subjects);
}

/* Overflow subjects are not counted as subjects of a policy. */
static void overflow_is_not_counted(void **state)
{
    (void)state;
    struct subjects *subjects = subjects_new(1);
    get(subjects, "user:a", 0);
    struct subject *mine = get(subjects, "user:b", 0),
                   *golden = subject_get(subjects, &gold, SLICE("user:b"), 0);
    assert_true(is_overflow(mine) && is_overflow(golden) && mine != golden);
    assert_int_equal(atomic_load(&free_of_charge.subjects), 1);
    assert_int_equal(atomic_load(&gold.subjects), 0);
    assert_null(subject_find(subjects, SLICE("overflow")));
    assert_int_equal(subjects_forgive(subjects, SLICE("overflow")), 0);
    subjects_free(subjects);
}

static void found_under_any_policy(void **state)
{
    (void)state;
    struct subjects *subjects = subjects_new(10);
    assert_null(subject_find(subjects, SLICE("user:a")));
    struct subject *a = get(subjects, "user:a", 0);
    struct subject *found = subject_find(subjects, SLICE("user:a"));
    assert_ptr_equal(found, a);
    assert_int_equal(atomic_load(&a->holders), 2);
    subject_put(subjects, found);
    struct subject *golden = subject_get(subjects, &gold, SLICE("user:a"), 0);
    found = subject_find(subjects, SLICE("user:a"));
    assert_true(found == a || found == golden);
    assert_null(subject_find(subjects, SLICE("user:")));
    assert_null(subject_find(subjects, SLICE("")));
    subjects_free(subjects);
}

static void forgiving_empties_debts_and_no_counts(void **state)
{
    (void)state;
    struct subjects *subjects = subjects_new(10);
    const uint64_t now_ns = 1000 * S;
    struct subject *a = get(subjects, "user:a", now_ns), *b = get(subjects, "user:b", now_ns);
    struct subject *golden = subject_get(subjects, &gold, SLICE("user:a"), now_ns);
    charge(a, 0, now_ns, 10);
    charge(b, 0, now_ns, 10);
    charge(golden, 1, now_ns, 10);
    gauge_add(&golden->funnels[0], 7);
    slots(&gold, PER_SUBJECT, 42);
    assert_true(subject_grow(golden));
    assert_int_equal(funnel_take(subject_funnel(golden, 40), &rate, now_ns, 10), 0);
    gauge_add(subject_funnel(golden, 41), 1000000);
    assert_int_equal(subjects_forgive(subjects, SLICE("user:a")), 2);
    assert_int_equal(gauge_value(&a->funnels[0]), 0);
    assert_int_equal(gauge_value(&golden->funnels[1]), 0);
    assert_int_equal(gauge_value(&golden->funnels[0]), 7);
    assert_int_equal(gauge_value(subject_funnel(golden, 40)), 0);
    assert_int_equal(gauge_value(subject_funnel(golden, 41)), 1000000);
    assert_int_equal(gauge_value(&b->funnels[0]), now_ns + 10 * S);
    assert_int_equal(atomic_load(&golden->lock), 0);
    assert_int_equal(subjects_forgive(subjects, SLICE("user:c")), 0);
    subjects_free(subjects);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(one_name_is_one_subject),
        TEST(a_subject_belongs_to_a_policy),
        TEST(who_comes_back_finds_his_debt),
        TEST(held_ones_stay_and_newcomers_overflow),
        TEST(debt_keeps_a_place_and_no_longer),
        TEST(a_full_table_of_idle_ones_has_room),
        TEST(idle_ones_do_not_stay_for_ever),
        TEST(many_are_all_found_again),
        TEST(no_place_at_all_is_overflow),
        TEST(forgetting_gives_nothing_away),
        TEST(heirs_make_room),
        TEST(who_stays_gets_the_place_of_an_heir),
        TEST(newcomers_owe_what_the_overflow_owes),
        TEST(going_to_and_fro_gains_nothing),
        TEST(late_funnels_stay_where_they_are),
        TEST(late_debt_keeps_a_place),
        TEST(own_ones_are_in_no_table),
        TEST(states_know_how_many),
        TEST(overflow_is_not_counted),
        TEST(found_under_any_policy),
        TEST(forgiving_empties_debts_and_no_counts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
