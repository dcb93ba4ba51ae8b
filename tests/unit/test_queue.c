/* Tests of the commands queued in a transaction on a cluster: slot, bound and bytes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "front/session/transaction.h"

static void test_the_first_key_decides_the_slot(void **state)
{
    (void)state;
    struct pool pool = {0};
    struct command_queue queue;
    queue_begin(&queue);
    assert_true(queue_fits(&queue, KEYS_NO_SLOT) && queue_fits(&queue, 7));
    queue_add(&queue, &pool, SLICE("PING\r\n"), KEYS_NO_SLOT);
    assert_true(queue_fits(&queue, 7));
    queue_add(&queue, &pool, SLICE("GET a\r\n"), 7);
    assert_true(queue_fits(&queue, 7) && queue_fits(&queue, KEYS_NO_SLOT));
    assert_false(queue_fits(&queue, 8));
    assert_int_equal(queue.n, 2);
    assert_memory_equal(queue.requests.at, "PING\r\nGET a\r\n", queue.requests.len);
    queue_drop(&queue, &pool);
    assert_int_equal(queue.n, 0);
    assert_false(queue_fits(&queue, 8));
}

static void test_more_than_the_bound_is_not_kept(void **state)
{
    (void)state;
    struct pool pool = {0};
    struct command_queue queue;
    char *half = malloc(QUEUE_MAX / 2 + 1);
    memset(half, 'x', QUEUE_MAX / 2 + 1);
    queue_begin(&queue);
    queue_add(&queue, &pool, slice_of(half, QUEUE_MAX / 2 + 1), 7);
    assert_false(queue.is_cut);
    queue_add(&queue, &pool, slice_of(half, QUEUE_MAX / 2 + 1), 7);
    assert_true(queue.is_cut);
    assert_int_equal(queue.requests.len, 0);
    queue_add(&queue, &pool, SLICE("GET a\r\n"), 7);
    assert_int_equal(queue.n, 3);
    assert_int_equal(queue.requests.len, 0);
    queue_drop(&queue, &pool);
    assert_false(queue.is_cut);
    free(half);
}

static void test_a_request_that_is_not_here_in_full_cuts_the_queue(void **state)
{
    (void)state;
    struct pool pool = {0};
    struct command_queue queue;
    queue_begin(&queue);
    queue_add(&queue, &pool, SLICE("GET a\r\n"), 7);
    queue_add(&queue, &pool, SLICE(""), 7);
    assert_true(queue.is_cut);
    assert_int_equal(queue.requests.room, 0);
    queue_drop(&queue, &pool);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_first_key_decides_the_slot),
        cmocka_unit_test(test_more_than_the_bound_is_not_kept),
        cmocka_unit_test(test_a_request_that_is_not_here_in_full_cuts_the_queue),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
