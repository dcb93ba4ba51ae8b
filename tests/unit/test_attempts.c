/*
 * Tests of the login attempts of one address: which begin, which wait, which are barred, and the
 * order.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "gate_kit.h"
#include "limit/attempts.h"

#define WORKERS 2
#define LOGINS 8

static struct attempts *attempts;
static struct attempt logins[LOGINS];
static unsigned woken[WORKERS]; /* number of wake-ups */

static void wake(void *worker)
{
    (*(unsigned *)worker)++;
}

static int begin(void **state)
{
    set_up(state);
    attempts = attempts_new(WORKERS, wake);
    memset(woken, 0, sizeof woken);
    for (unsigned i = 0; i < WORKERS; i++)
        attempts_set_worker(attempts, i, &woken[i]);
    return 0;
}

static int end(void **state)
{
    attempts_free(attempts);
    return tear_down(state);
}

/* Login i belongs to worker i % 2. */
static enum attempt_state try(int i, uint64_t now_ns)
{
    return attempts_begin(attempts, &logins[i], &target, (unsigned)i % WORKERS, now_ns);
}

static void end_at(int i, bool is_failure, uint64_t now_ns)
{
    attempts_end(attempts, &logins[i], &target, is_failure, now_ns, limit_counters);
}

static void passes(int i)
{
    end_at(i, false, START);
}

static void fails(int i)
{
    end_at(i, true, START);
}

static void assert_news(int i, enum attempt_state state)
{
    assert_ptr_equal(attempts_news(attempts, (unsigned)i % WORKERS), &logins[i]);
    assert_int_equal(logins[i].state, state);
}

static void assert_no_news(void)
{
    for (unsigned i = 0; i < WORKERS; i++)
        assert_null(attempts_news(attempts, i));
}

static void those_under_way_count(void **state)
{
    (void)state;
    limit("auth-failures", "3/60s");
    open_gate();
    for (int i = 0; i < 3; i++)
        assert_int_equal(try(i, START), ATTEMPT_UNDER_WAY);
    for (int i = 3; i < 6; i++)
        assert_int_equal(try(i, START), ATTEMPT_WAITS);
    passes(1);
    assert_news(3, ATTEMPT_UNDER_WAY);
    fails(0);
    assert_no_news();
    fails(2);
    assert_no_news(); /* two have failed, one is under way */
    fails(3);
    assert_news(4, ATTEMPT_BARRED);
    assert_news(5, ATTEMPT_BARRED);
    assert_no_news();
    assert_int_equal(try(6, START), ATTEMPT_BARRED);
    passes(4);
    passes(5);
    passes(6);
    assert_int_equal(woken[1], 2);
    assert_int_equal(woken[0], 1);
    assert_counters(0, 3, 0, 0, 0);
}

static void a_newcomer_does_not_overtake(void **state)
{
    (void)state;
    limit("auth-failures", "1/60s");
    open_gate();
    for (int i = 0; i < 3; i++)
        assert_int_equal(try(i, START), i == 0 ? ATTEMPT_UNDER_WAY : ATTEMPT_WAITS);
    passes(0);
    assert_int_equal(try(3, START), ATTEMPT_WAITS);
    assert_news(1, ATTEMPT_UNDER_WAY);
    passes(1);
    assert_news(2, ATTEMPT_UNDER_WAY);
    passes(2);
    assert_news(3, ATTEMPT_UNDER_WAY);
    passes(3);
}

static void one_leaves_in_whichever_state(void **state)
{
    (void)state;
    limit("auth-failures", "1/60s");
    open_gate();
    for (int i = 0; i < 5; i++)
        (void)try(i, START);
    passes(1); /* waits */
    passes(0); /* is under way */
    passes(2); /* has begun, and its worker does not know yet */
    assert_news(3, ATTEMPT_UNDER_WAY);
    fails(3);
    passes(4); /* is barred, and its worker does not know yet */
    assert_no_news();
    assert_int_equal(try(5, START), ATTEMPT_BARRED);
}

static void time_gives_room(void **state)
{
    (void)state;
    limit("auth-failures", "2/60s");
    open_gate();
    assert_int_equal(try(0, START), ATTEMPT_UNDER_WAY);
    assert_int_equal(try(1, START), ATTEMPT_UNDER_WAY);
    assert_int_equal(try(2, START), ATTEMPT_WAITS);
    fails(0);
    assert_no_news(); /* one has failed, one is under way */
    assert_int_equal(try(3, START + 30 * S), ATTEMPT_WAITS);
    assert_news(2, ATTEMPT_UNDER_WAY);
    for (int i = 1; i < 4; i++)
        passes(i);
}

static void without_a_limit(void **state)
{
    (void)state;
    limit("auth-failures", "1/60s over shadow");
    open_gate();
    for (int i = 0; i < LOGINS; i++)
        assert_int_equal(try(i, START), ATTEMPT_UNDER_WAY);
    for (int i = 0; i < LOGINS; i++)
        fails(i);
    assert_counters(0, LOGINS, 0, 0, 0);
}

static void a_limit_that_is_gone(void **state)
{
    (void)state;
    limit("auth-failures", "1/60s");
    open_gate();
    for (int i = 0; i < 3; i++)
        (void)try(i, START);
    const struct charge_target none = {NULL, {target.holders[PER_SUBJECT], NULL, NULL}};
    attempts_end(attempts, &logins[0], &none, true, START, limit_counters);
    assert_news(1, ATTEMPT_UNDER_WAY);
    assert_news(2, ATTEMPT_UNDER_WAY);
    passes(1);
    passes(2);
    assert_counters(0, 0, 0, 0, 0);
}

static void a_worker_that_has_ended(void **state)
{
    (void)state;
    limit("auth-failures", "1/60s");
    open_gate();
    (void)try(0, START);
    (void)try(1, START);
    attempts_set_worker(attempts, 1, NULL);
    passes(0);
    assert_int_equal(woken[1], 0);
    passes(1);
    assert_no_news();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(those_under_way_count, begin, end),
        cmocka_unit_test_setup_teardown(a_newcomer_does_not_overtake, begin, end),
        cmocka_unit_test_setup_teardown(one_leaves_in_whichever_state, begin, end),
        cmocka_unit_test_setup_teardown(time_gives_room, begin, end),
        cmocka_unit_test_setup_teardown(without_a_limit, begin, end),
        cmocka_unit_test_setup_teardown(a_limit_that_is_gone, begin, end),
        cmocka_unit_test_setup_teardown(a_worker_that_has_ended, begin, end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
