/*
 * Tests of eight threads that get, charge and put subjects by random names, in a table too small
 * for all.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "dice.h"
#include "limit/subjects.h"

#define S UINT64_C(1000000000)
#define THREADS 8
#define ROUNDS 10
#define TURNS 400
#define NAMES 300
#define PLACES 100
#define HELD 8
#define BURST 5

static struct subjects *subjects;
static struct rate rate;
/* constant while threads run, so that exactly the subjects without a debt may be forgotten */
static uint64_t now_ns;
static _Atomic uint64_t taken[NAMES];
static _Atomic size_t wrong;
static struct policy_state policy_state = {.name = "free", .slots = {1}};

static void take_one(struct subject *subject, const char *name, size_t number)
{
    if (slice_eq(subject_name(subject), SLICE("overflow")))
        return;
    if (!slice_eq(subject_name(subject), slice_str(name)))
        atomic_fetch_add(&wrong, 1);
    if (funnel_take(&subject->funnels[0], &rate, now_ns, 1) == 0)
        atomic_fetch_add(&taken[number], 1);
}

static void *come_and_go(void *arg)
{
    uint64_t seed = *(uint64_t *)arg;
    struct subject *held[HELD] = {0};
    for (int i = 0; i < TURNS; i++) {
        char name[32];
        size_t number = dice_below(&seed, NAMES), slot = dice_below(&seed, HELD);
        snprintf(name, sizeof name, "user:%zu", number);
        if (held[slot])
            subject_put(subjects, held[slot]);
        held[slot] = subject_get(subjects, &policy_state, slice_str(name), now_ns);
        if (dice_below(&seed, 2)) /* other subjects are held without a debt */
            take_one(held[slot], name, number);
        if (subjects_count(subjects) > PLACES)
            atomic_fetch_add(&wrong, 1);
    }
    for (size_t i = 0; i < HELD; i++)
        if (held[i])
            subject_put(subjects, held[i]);
    return NULL;
}

static void run_round(uint64_t round)
{
    pthread_t threads[THREADS];
    uint64_t seeds[THREADS];
    for (size_t i = 0; i < THREADS; i++) {
        seeds[i] = round * THREADS + i;
        assert_int_equal(pthread_create(&threads[i], NULL, come_and_go, &seeds[i]), 0);
    }
    for (size_t i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
}

static void names_caps_and_limits_hold(void **state)
{
    (void)state;
    log_set_level(LOG_ERROR);
    assert_true(rate_init(&rate, 1, S, BURST));
    subjects = subjects_new(PLACES);
    for (uint64_t round = 0; round < ROUNDS; round++) {
        now_ns = round * 3 * S;
        run_round(round);
        assert_int_equal(atomic_load(&wrong), 0);
        for (size_t i = 0; i < NAMES; i++)
            assert_true(atomic_load(&taken[i]) <= BURST + now_ns / S);
    }

    /* No subject is held now. When the debts are over, every entry of the table can be had. */
    now_ns += BURST * S;
    for (size_t i = 0; i < 10 * PLACES; i++) {
        char name[32];
        snprintf(name, sizeof name, "user:new-%zu", i);
        struct subject *subject = subject_get(subjects, &policy_state, slice_str(name), now_ns);
        assert_true(slice_eq(subject_name(subject), slice_str(name)));
        subject_put(subjects, subject);
    }
    subjects_free(subjects);
}

#define MEETINGS 40
#define NEWCOMERS 100 /* names at each barrier, so that running threads meet again and again */
static pthread_barrier_t barrier;

/* All threads get the same new names at once, and get the same subjects. */
static void *meet(void *arg)
{
    struct subject **met = arg;
    for (size_t i = 0; i < MEETINGS * NEWCOMERS; i++) {
        char name[32];
        snprintf(name, sizeof name, "user:%zu", i);
        if (i % NEWCOMERS == 0)
            pthread_barrier_wait(&barrier);
        met[i] = subject_get(subjects, &policy_state, slice_str(name), 0);
    }
    return NULL;
}

static void newcomers_of_one_name_meet(void **state)
{
    (void)state;
    static struct subject *met[THREADS][MEETINGS * NEWCOMERS];
    pthread_t threads[THREADS];
    subjects = subjects_new(MEETINGS * NEWCOMERS);
    pthread_barrier_init(&barrier, NULL, THREADS);
    for (size_t i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, meet, met[i]), 0);
    for (size_t i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    for (size_t i = 0; i < MEETINGS * NEWCOMERS; i++) {
        for (size_t k = 1; k < THREADS; k++)
            assert_ptr_equal(met[k][i], met[0][i]);
        assert_int_equal(atomic_load(&met[0][i]->holders), THREADS);
    }
    assert_int_equal(subjects_count(subjects), MEETINGS * NEWCOMERS);
    assert_int_equal(subjects_overflows(subjects), 0);
    pthread_barrier_destroy(&barrier);
    subjects_free(subjects);
}

static struct subject *locked;
static uint64_t counter; /* not atomic: the lock protects it */

static void *count_up(void *arg)
{
    (void)arg;
    for (int i = 0; i < 5000; i++) {
        subject_lock(locked);
        counter++;
        subject_unlock(locked);
    }
    return NULL;
}

static void the_short_lock_excludes(void **state)
{
    (void)state;
    pthread_t threads[THREADS];
    subjects = subjects_new(1);
    locked = subject_get(subjects, &policy_state, SLICE("user:a"), 0);
    for (size_t i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, count_up, NULL), 0);
    for (size_t i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    assert_int_equal(counter, 5000 * THREADS);
    subjects_free(subjects);
}

/*
 * Funnels added to a subject after its creation: every thread finds the same funnel, and no charge
 * is lost.
 */
#define LATE_SLOTS 300
#define LATE_TURNS 20000
static struct subject *late;
static struct funnel *found_at[THREADS][LATE_SLOTS];

/* Grows the number of funnels, like limits that are entered while other threads decide. */
static void note_slots(uint16_t n)
{
    uint16_t before = atomic_load(&policy_state.slots[PER_SUBJECT]);
    while (before < n &&
           !atomic_compare_exchange_weak(&policy_state.slots[PER_SUBJECT], &before, n))
        ;
}

static void *add_late(void *arg)
{
    struct funnel **at = arg;
    uint64_t seed = (uint64_t)(at - found_at[0]);
    pthread_barrier_wait(&barrier);
    for (uint32_t i = 0; i < LATE_TURNS; i++) {
        uint16_t n_slots = (uint16_t)(1 + i * LATE_SLOTS / LATE_TURNS);
        uint16_t slot = (uint16_t)dice_below(&seed, n_slots);
        note_slots(n_slots);
        if (!subject_grow(late))
            atomic_fetch_add(&wrong, 1);
        struct funnel *funnel = subject_funnel(late, slot);
        if (at[slot] && at[slot] != funnel)
            atomic_fetch_add(&wrong, 1);
        at[slot] = funnel;
        gauge_add(funnel, 1);
    }
    return NULL;
}

static void late_funnels_are_the_same_for_all(void **state)
{
    (void)state;
    for (int round = 0; round < 5; round++) {
        pthread_t threads[THREADS];
        uint64_t sum = 0;
        subjects = subjects_new(1);
        atomic_store(&policy_state.slots[PER_SUBJECT], 1);
        late = subject_get(subjects, &policy_state, SLICE("user:a"), 0);
        memset(found_at, 0, sizeof found_at);
        pthread_barrier_init(&barrier, NULL, THREADS);
        for (size_t i = 0; i < THREADS; i++)
            assert_int_equal(pthread_create(&threads[i], NULL, add_late, found_at[i]), 0);
        for (size_t i = 0; i < THREADS; i++)
            pthread_join(threads[i], NULL);
        for (uint16_t slot = 0; slot < LATE_SLOTS; slot++) {
            sum += gauge_value(subject_funnel(late, slot));
            for (size_t i = 0; i < THREADS; i++)
                assert_true(!found_at[i][slot] || found_at[i][slot] == subject_funnel(late, slot));
        }
        assert_int_equal(sum, THREADS * LATE_TURNS);
        assert_int_equal(atomic_load(&wrong), 0);
        pthread_barrier_destroy(&barrier);
        subjects_free(subjects);
    }
}

/* Subjects are found, forgiven and forgotten by name while other subjects come and go. */
static void *find_and_forgive(void *arg)
{
    uint64_t seed = *(uint64_t *)arg;
    for (int i = 0; i < 2000; i++) {
        char name[32];
        snprintf(name, sizeof name, "user:%zu", (size_t)dice_below(&seed, 40));
        struct subject *subject =
            dice_below(&seed, 3) ? subject_get(subjects, &policy_state, slice_str(name), now_ns)
                                 : subject_find(subjects, slice_str(name));
        if (dice_below(&seed, 4) == 0)
            subjects_forgive(subjects, slice_str(name));
        if (!subject)
            continue;
        (void)!funnel_take(subject_funnel(subject, (uint16_t)dice_below(&seed, 20)), &rate, now_ns,
                           1);
        subject_put(subjects, subject);
    }
    return NULL;
}

static void found_and_forgiven_among_others(void **state)
{
    (void)state;
    pthread_t threads[THREADS];
    uint64_t seeds[THREADS];
    assert_true(rate_init(&rate, 1, S, BURST));
    atomic_store(&policy_state.subjects, 0);
    atomic_store(&policy_state.slots[PER_SUBJECT], 20);
    assert_true(subject_grow(policy_state.overflow));
    subjects = subjects_new(20);
    for (size_t i = 0; i < THREADS; i++) {
        seeds[i] = i;
        assert_int_equal(pthread_create(&threads[i], NULL, find_and_forgive, &seeds[i]), 0);
    }
    for (size_t i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    assert_true(subjects_count(subjects) <= 20);
    assert_int_equal(atomic_load(&policy_state.subjects), subjects_count(subjects));
    subjects_free(subjects);
}

static int set_up(void **state)
{
    (void)state;
    policy_state.overflow = subject_new_lasting(&policy_state, PER_SUBJECT, SLICE("overflow"));
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    subject_free_detached(policy_state.overflow);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_caps_and_limits_hold),
        cmocka_unit_test(newcomers_of_one_name_meet),
        cmocka_unit_test(the_short_lock_excludes),
        cmocka_unit_test(late_funnels_are_the_same_for_all),
        cmocka_unit_test(found_and_forgiven_among_others),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
