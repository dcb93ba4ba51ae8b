/* Tests of requests kept until their reply: each is found as it was sent, and memory is bounded. */
#include <setjmp.h>
#include <stdatomic.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "dice.h"
#include "front/route/unanswered.h"

#define GET "*2\r\n$3\r\nGET\r\n$1\r\n"

static struct pool pool;

static void add(struct unanswered *queue, const char *text, uint32_t n)
{
    assert_non_null(unanswered_add(queue, &pool, KEPT_OTHER, slice_str(text), n));
}

static void assert_oldest(const struct unanswered *queue, const char *text)
{
    struct slice oldest = unanswered_oldest(queue);
    assert_int_equal(oldest.len, strlen(text));
    if (oldest.len > 0)
        assert_memory_equal(oldest.at, text, oldest.len);
}

static void test_neighbours(void **state)
{
    (void)state;
    struct unanswered queue = {0};
    add(&queue, GET "a\r\n" GET "b\r\n" GET "c\r\n", 3);
    add(&queue, "", 2);
    add(&queue, GET "d\r\n", 1);
    assert_oldest(&queue, GET "a\r\n");
    unanswered_drop(&queue, &pool, 1);
    assert_oldest(&queue, GET "b\r\n");
    unanswered_drop(&queue, &pool, 1);
    assert_oldest(&queue, GET "c\r\n");
    unanswered_drop(&queue, &pool, 2);
    assert_oldest(&queue, "");
    unanswered_drop(&queue, &pool, 1);
    assert_oldest(&queue, GET "d\r\n");
    unanswered_drop(&queue, &pool, 1);
    assert_null(queue.first);
    assert_int_equal(queue.bytes, 0);
    pool_shed(&pool);
    assert_int_equal(atomic_load(&pool.held), 0);
}

/* A request beyond the bound has an entry without bytes. */
static void test_bound(void **state)
{
    (void)state;
    struct unanswered queue = {0};
    uint32_t n = 0, n_kept = 0;
    for (; n < 2 * UNANSWERED_MAX / strlen(GET "a\r\n"); n++) {
        struct kept *kept = unanswered_add(&queue, &pool, KEPT_WRITE, SLICE(GET "a\r\n"), 1);
        assert_non_null(kept);
        n_kept += kept->len > 0;
        assert_in_range(queue.bytes, 0, UNANSWERED_MAX + strlen(GET "a\r\n"));
    }
    assert_in_range(n_kept, UNANSWERED_MAX / strlen(GET "a\r\n"), n - 1);
    unanswered_drop(&queue, &pool, n_kept);
    assert_oldest(&queue, "");
    unanswered_drop(&queue, &pool, n - n_kept - 1);
    unanswered_clear(&queue, &pool);
    pool_shed(&pool);
    assert_int_equal(atomic_load(&pool.held), 0);
}

/* Compared with a list of requests; an entry has a few of them. */
static void test_any_order(void **state)
{
    (void)state;
    struct unanswered queue = {0};
    uint32_t sent = 0, answered = 0;
    uint64_t seed = 1;
    for (uint64_t i = 0; i < dice_rounds(20000); i++) {
        char text[256];
        uint32_t n = 1 + (uint32_t)dice_below(&seed, 4);
        if (dice_below(&seed, 2) == 0 && sent - answered < 100) {
            size_t at = 0;
            for (uint32_t k = 0; k < n; k++)
                at += (size_t)snprintf(text + at, sizeof text - at,
                                       "*2\r\n$3\r\nGET\r\n$8\r\n%08u\r\n", sent++);
            add(&queue, text, n);
            continue;
        }
        if (n > sent - answered)
            continue;
        snprintf(text, sizeof text, "*2\r\n$3\r\nGET\r\n$8\r\n%08u\r\n", answered);
        assert_oldest(&queue, text);
        unanswered_drop(&queue, &pool, n);
        answered += n;
    }
    unanswered_clear(&queue, &pool);
    pool_shed(&pool);
    assert_int_equal(atomic_load(&pool.held), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_neighbours),
                                       cmocka_unit_test(test_bound),
                                       cmocka_unit_test(test_any_order)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
