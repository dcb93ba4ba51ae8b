/*
 * Tests of the queues of calls in flight: their order, and their memory, which is counted and given
 * back.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "dice.h"
#include "upstream/lane/calls.h"

#define MANY 100000

static struct pool pool;

static uint64_t held(void)
{
    return atomic_load(&pool.held);
}

static void memory_is_counted_and_given_back(void **state)
{
    (void)state;
    struct calls calls = {.pool = &pool};
    struct tags tags = {.pool = &pool};
    for (uint32_t i = 0; i < MANY; i++) {
        struct call *call = calls_push(&calls);
        assert_non_null(call);
        call->argument = i;
        assert_true(tags_push(&tags, i, 1));
    }
    uint64_t most = held();
    assert_in_range(most, MANY * (sizeof(struct call) + 4),
                    2 * MANY * (sizeof(struct call) + 4) + 1000000);
    for (uint32_t i = 0; i < MANY; i++) {
        assert_int_equal(calls_oldest(&calls)->argument, i);
        assert_int_equal(tags_at(&tags, 0), i);
        assert_int_equal(held(), most);
        calls_pop(&calls);
        tags_drop(&tags, 1);
        most = i + 2 < MANY ? most : held();
    }
    assert_int_equal(held(), 0);
    assert_true(calls_is_empty(&calls));
    for (uint32_t i = 0; i < 3; i++) {
        assert_non_null(calls_push(&calls));
        assert_true(tags_push(&tags, i, 1));
    }
    assert_true(held() > 0);
    calls_fini(&calls);
    tags_fini(&tags);
    assert_int_equal(held(), 0);
}

/* A small queue keeps its memory, so that a rarely used lane does not allocate each time. */
static void small_ones_are_kept(void **state)
{
    (void)state;
    struct calls calls = {.pool = &pool};
    struct tags tags = {.pool = &pool};
    for (int round = 0; round < 3; round++) {
        for (uint32_t i = 0; i < CALLS_KEEP; i++)
            assert_true(calls_push(&calls) != NULL && tags_push(&tags, i, 1));
        uint64_t before = held();
        for (uint32_t i = 0; i < CALLS_KEEP; i++)
            calls_pop(&calls);
        tags_drop(&tags, CALLS_KEEP);
        assert_int_equal(held(), before);
        assert_in_range(before, CALLS_KEEP * sizeof(struct call), UINT32_MAX);
    }
    calls_fini(&calls);
    tags_fini(&tags);
    assert_int_equal(held(), 0);
}

/* Random pushes and pops, also where positions wrap. */
static void order_is_kept(void **state)
{
    (void)state;
    struct calls calls = {.pool = &pool, .head = UINT32_MAX - 1000, .tail = UINT32_MAX - 1000};
    struct tags tags = {.pool = &pool, .head = UINT32_MAX - 1000, .tail = UINT32_MAX - 1000};
    uint64_t seed = 5;
    uint32_t pushed = 0, popped = 0;
    for (int round = 0; round < 2000; round++) {
        for (uint64_t n = dice_below(&seed, 100); n > 0; n--) {
            struct call *call = calls_push(&calls);
            call->argument = pushed;
            assert_true(tags_push(&tags, pushed++, 1));
        }
        for (uint64_t n = dice_below(&seed, 110); n > 0 && popped < pushed; n--) {
            assert_int_equal(calls_oldest(&calls)->argument, popped);
            assert_int_equal(tags_at(&tags, 0), popped++);
            calls_pop(&calls);
            tags_drop(&tags, 1);
        }
    }
    calls_fini(&calls);
    tags_fini(&tags);
    assert_int_equal(held(), 0);
}

static int set_up(void **state)
{
    (void)state;
    pool_init(&pool);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    pool_fini(&pool);
    return 0;
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(memory_is_counted_and_given_back),
        TEST(small_ones_are_kept),
        TEST(order_is_kept),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
