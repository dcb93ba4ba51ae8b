/* Tests of calls that came back, and of the replies behind them: order and memory. */
#include <setjmp.h>
#include <stdatomic.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "front/route/unanswered.h"

static struct pool pool;

static void add(struct returned *returned, const char *request)
{
    assert_non_null(returned_add(returned, &pool, slice_str(request)));
}

static void assert_bytes(const struct bytes *bytes, const char *text)
{
    assert_int_equal(bytes->len, strlen(text));
    if (bytes->len > 0)
        assert_memory_equal(bytes->at, text, bytes->len);
}

static void assert_next(struct returned *returned, const char *request, const char *reply,
                        const char *behind)
{
    struct returned_call *call = returned_take(returned);
    assert_non_null(call);
    assert_int_equal(call->len, strlen(request));
    assert_memory_equal(call->request, request, call->len);
    assert_bytes(&call->reply, reply);
    assert_bytes(&call->behind, behind);
    returned_free(call, &pool);
}

static void test_order(void **state)
{
    (void)state;
    struct returned returned = {0};
    assert_true(returned_is_empty(&returned));
    add(&returned, "INCR a");
    assert_true(returned_read(&returned, &pool, SLICE("+PO")));
    assert_true(returned_read(&returned, &pool, SLICE("NG\r\n")));
    assert_true(returned_end_behind(&returned, &pool));
    assert_true(returned_say(&returned, &pool, SLICE("-THROTTLED\r\n")));
    assert_true(returned_end_behind(&returned, &pool)); /* a reply that no client gets */
    assert_true(returned_read(&returned, &pool, SLICE(":1\r\n")));
    add(&returned, "GET a");
    returned_end_reply(&returned);
    add(&returned, "SET b");
    assert_int_equal(returned.bytes, strlen("+PONG\r\n-THROTTLED\r\n:1\r\n"));
    assert_next(&returned, "INCR a", "", "+PONG\r\n-THROTTLED\r\n");
    assert_next(&returned, "GET a", ":1\r\n", "");
    assert_int_equal(returned.bytes, 0);
    assert_next(&returned, "SET b", "", "");
    assert_null(returned_take(&returned));
    assert_int_equal(atomic_load(&pool.held), 0);
}

static void test_clear(void **state)
{
    (void)state;
    struct returned returned = {0};
    add(&returned, "a");
    assert_true(returned_say(&returned, &pool, SLICE("b")));
    add(&returned, "c");
    assert_true(returned_read(&returned, &pool, SLICE("d")));
    returned_clear(&returned, &pool);
    assert_true(returned_is_empty(&returned));
    assert_int_equal(returned.bytes, 0);
    assert_int_equal(atomic_load(&pool.held), 0);
    returned_clear(&returned, &pool);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_order), cmocka_unit_test(test_clear)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
