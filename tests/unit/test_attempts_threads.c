/*
 * Tests of four threads that log in from one address: failures and attempts under way are never
 * more than the burst.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <pthread.h>

#include "dice.h"
#include "gate_kit.h"
#include "limit/attempts.h"

#define THREADS 4
#define EACH 2000 /* logins of one thread */
#define OPEN 20   /* logins of one thread at a time */
#define BURST 50

static struct attempts *attempts;
static _Atomic unsigned under_way, failed, most, news_due[THREADS];

struct worker {
    pthread_t thread;
    unsigned index;
    uint64_t seed;
    struct limit_counters *limit_counters;
    struct attempt logins[OPEN];
    /* another thread may decide a login until attempts_news has returned it */
    bool are_open[OPEN], are_decided[OPEN];
    unsigned n_begun, n_passed, n_barred;
    bool are_wrong;
};

static void wake(void *due)
{
    atomic_fetch_add((_Atomic unsigned *)due, 1);
}

/* Called between the begin and the end of an attempt: updates the largest number under way. */
static void note_under_way(void)
{
    unsigned now = atomic_fetch_add(&under_way, 1) + 1 + atomic_load(&failed);
    unsigned before = atomic_load(&most);
    while (before < now && !atomic_compare_exchange_weak(&most, &before, now))
        ;
}

static void finish(struct worker *worker, struct attempt *login)
{
    bool is_failure = worker->are_wrong && login->state == ATTEMPT_UNDER_WAY;
    if (login->state == ATTEMPT_UNDER_WAY)
        atomic_fetch_sub(&under_way, 1);
    worker->n_passed += login->state == ATTEMPT_UNDER_WAY && !is_failure;
    worker->n_barred += login->state == ATTEMPT_BARRED;
    attempts_end(attempts, login, &target, is_failure, START, worker->limit_counters);
    if (is_failure)
        atomic_fetch_add(&failed, 1);
}

static void decide(struct worker *worker, const struct attempt *login)
{
    worker->are_decided[login - worker->logins] = true;
    if (login->state == ATTEMPT_UNDER_WAY)
        note_under_way();
}

static void *log_in(void *arg)
{
    struct worker *worker = arg;
    unsigned n_open = 0;
    while (worker->n_begun < EACH || n_open > 0) {
        uint64_t i = dice_below(&worker->seed, OPEN);
        struct attempt *login = &worker->logins[i];
        if (!worker->are_open[i] && worker->n_begun < EACH) {
            worker->n_begun++;
            n_open++;
            worker->are_open[i] = true;
            if (attempts_begin(attempts, login, &target, worker->index, START) != ATTEMPT_WAITS)
                decide(worker, login);
        } else if (worker->are_decided[i]) {
            finish(worker, login);
            worker->are_open[i] = worker->are_decided[i] = false;
            n_open--;
        }
        if (atomic_load(&news_due[worker->index]) == 0)
            continue;
        struct attempt *decided = attempts_news(attempts, worker->index);
        assert_non_null(decided);
        atomic_fetch_sub(&news_due[worker->index], 1);
        decide(worker, decided);
    }
    return NULL;
}

static void log_in_on_all(bool are_wrong, unsigned *n_passed, unsigned *n_barred)
{
    static struct worker workers[THREADS];
    attempts = attempts_new(THREADS, wake);
    memset(workers, 0, sizeof workers);
    atomic_store(&under_way, 0);
    atomic_store(&failed, 0);
    atomic_store(&most, 0);
    *n_passed = *n_barred = 0;
    for (unsigned i = 0; i < THREADS; i++) {
        workers[i].index = i;
        workers[i].seed = i + 1;
        workers[i].limit_counters = limit_counters_new();
        workers[i].are_wrong = are_wrong;
        attempts_set_worker(attempts, i, &news_due[i]);
    }
    for (unsigned i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&workers[i].thread, NULL, log_in, &workers[i]), 0);
    for (unsigned i = 0; i < THREADS; i++) {
        pthread_join(workers[i].thread, NULL);
        *n_passed += workers[i].n_passed;
        *n_barred += workers[i].n_barred;
        free(workers[i].limit_counters);
    }
    attempts_free(attempts);
}

static void wrong_logins(void **state)
{
    (void)state;
    unsigned n_passed, n_barred;
    limit("auth-failures", "50/d");
    open_gate();
    log_in_on_all(true, &n_passed, &n_barred);
    assert_int_equal(atomic_load(&failed), BURST);
    assert_int_equal(n_barred, THREADS * EACH - BURST);
    assert_true(atomic_load(&most) <= BURST);
}

static void right_logins(void **state)
{
    (void)state;
    unsigned n_passed, n_barred;
    limit("auth-failures", "50/d");
    open_gate();
    log_in_on_all(false, &n_passed, &n_barred);
    assert_int_equal(n_passed, THREADS * EACH);
    assert_int_equal(n_barred, 0);
    assert_true(atomic_load(&most) <= BURST);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(wrong_logins, set_up, tear_down),
        cmocka_unit_test_setup_teardown(right_logins, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
