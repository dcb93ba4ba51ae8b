/* Tests of the steps of memory pressure, and of a pool's count of its memory. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/chain.h"
#include "base/ladder.h"

#define LIMIT UINT64_C(1000000)

static void test_up(void **state)
{
    (void)state;
    for (int step = 0; step < LADDER_STEPS; step++) {
        assert_int_equal(ladder_next((enum ladder_step)step, UINT64_MAX, LIMIT), LADDER_REFUSE);
        assert_int_equal(ladder_next((enum ladder_step)step, UINT64_MAX, 0), LADDER_FREE);
        assert_int_equal(ladder_next((enum ladder_step)step, 0, LIMIT), LADDER_FREE);
    }
    assert_int_equal(ladder_next(LADDER_FREE, 749999, LIMIT), LADDER_FREE);
    assert_int_equal(ladder_next(LADDER_FREE, 750000, LIMIT), LADDER_SHED);
    assert_int_equal(ladder_next(LADDER_FREE, 850000, LIMIT), LADDER_STALL);
    assert_int_equal(ladder_next(LADDER_SHED, 949999, LIMIT), LADDER_STALL);
    assert_int_equal(ladder_next(LADDER_SHED, 950000, LIMIT), LADDER_REFUSE);
    assert_int_equal(ladder_next(LADDER_FREE, 1, 1), LADDER_REFUSE);
}

static void test_down_later_than_up(void **state)
{
    (void)state;
    assert_int_equal(ladder_next(LADDER_REFUSE, 850000, LIMIT), LADDER_REFUSE);
    assert_int_equal(ladder_next(LADDER_REFUSE, 849999, LIMIT), LADDER_STALL);
    assert_int_equal(ladder_next(LADDER_STALL, 750000, LIMIT), LADDER_STALL);
    assert_int_equal(ladder_next(LADDER_STALL, 749999, LIMIT), LADDER_SHED);
    assert_int_equal(ladder_next(LADDER_SHED, 650000, LIMIT), LADDER_SHED);
    assert_int_equal(ladder_next(LADDER_SHED, 649999, LIMIT), LADDER_FREE);
    assert_int_equal(ladder_next(LADDER_REFUSE, 700000, LIMIT), LADDER_SHED);
}

static void test_a_pool_knows_what_it_holds(void **state)
{
    (void)state;
    static const char data[CHUNK_BYTES];
    struct pool pool;
    struct chain chain = {0};
    pool_init(&pool);
    assert_int_equal(count_read(&pool.held), 0);
    for (unsigned i = 0; i < 2 * POOL_KEEP; i++)
        assert_true(chain_append(&chain, &pool, data, sizeof chain.head->data));
    assert_int_equal(count_read(&pool.held), 2 * POOL_KEEP * sizeof(struct chunk));
    chain_clear(&chain, &pool);
    assert_int_equal(count_read(&pool.held), POOL_KEEP * sizeof(struct chunk));
    pool_note_more(&pool, 1000);
    pool_shed(&pool);
    assert_int_equal(count_read(&pool.held), 1000);
    pool_note_less(&pool, 1000);
    assert_int_equal(count_read(&pool.held), 0);
    assert_int_equal(pool.given_back, 2 * POOL_KEEP * sizeof(struct chunk) + 1000);
    assert_true(chain_append(&chain, &pool, data, 10));
    assert_int_equal(count_read(&pool.held), sizeof(struct chunk));
    chain_clear(&chain, &pool);
    pool_fini(&pool);
    assert_int_equal(count_read(&pool.held), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_up),
        cmocka_unit_test(test_down_later_than_up),
        cmocka_unit_test(test_a_pool_knows_what_it_holds),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
