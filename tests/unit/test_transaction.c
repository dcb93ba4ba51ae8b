/* Tests of MULTI, EXEC and DISCARD as sent and as answered: every step, in every state. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "front/session/transaction.h"

static struct transaction begun(void)
{
    struct transaction transaction = {0};
    assert_int_equal(transaction_send(&transaction, EFFECT_MULTI), EFFECT_MULTI);
    return transaction;
}

static struct transaction opened(void)
{
    struct transaction transaction = begun();
    transaction_answered(&transaction, EFFECT_MULTI, true);
    assert_true(transaction_is_open(&transaction));
    return transaction;
}

static void test_what_follows_multi_is_queued_before_it_is_answered(void **state)
{
    (void)state;
    struct transaction transaction = begun();
    assert_true(transaction_queues(&transaction, EFFECT_NONE) &&
                transaction_queues(&transaction, EFFECT_SELECT));
    assert_false(transaction_queues(&transaction, EFFECT_EXEC) ||
                 transaction_queues(&transaction, EFFECT_DISCARD));
    assert_false(transaction_queues(&transaction, EFFECT_MULTI) ||
                 transaction_queues(&transaction, EFFECT_WATCH));
    transaction_answered(&transaction, EFFECT_MULTI, false);
    assert_true(transaction_is_none(&transaction));
    assert_false(transaction_queues(&transaction, EFFECT_NONE));
}

static void test_exec_may_follow_before_multi_is_answered(void **state)
{
    (void)state;
    struct transaction transaction = begun();
    assert_false(transaction_must_settle(&transaction, EFFECT_EXEC));
    assert_true(transaction_must_settle(&transaction, EFFECT_SELECT));
    assert_int_equal(transaction_send(&transaction, EFFECT_EXEC), EFFECT_EXEC);
    assert_false(transaction_is_open(&transaction) || transaction_is_none(&transaction));
    assert_true(transaction_must_settle(&transaction, EFFECT_MULTI));
    transaction_answered(&transaction, EFFECT_MULTI, true);
    assert_true(transaction_is_none(&transaction));
}

static void test_exec_ends_an_open_one_at_once(void **state)
{
    (void)state;
    struct transaction transaction = opened();
    assert_false(transaction_must_settle(&transaction, EFFECT_SELECT));
    assert_int_equal(transaction_send(&transaction, EFFECT_EXEC), EFFECT_EXEC);
    assert_true(transaction_is_none(&transaction));
    transaction_answered(&transaction, EFFECT_EXEC, true);
    assert_true(transaction_is_none(&transaction));
}

static void test_a_refused_discard_leaves_it_open(void **state)
{
    (void)state;
    struct transaction transaction = opened();
    assert_int_equal(transaction_send(&transaction, EFFECT_DISCARD), EFFECT_DISCARD);
    assert_true(transaction_must_settle(&transaction, EFFECT_EXEC));
    transaction_answered(&transaction, EFFECT_DISCARD, false);
    assert_true(transaction_is_open(&transaction));
    assert_int_equal(transaction_send(&transaction, EFFECT_DISCARD), EFFECT_DISCARD);
    transaction_answered(&transaction, EFFECT_DISCARD, true);
    assert_true(transaction_is_none(&transaction));
}

static void test_exec_and_discard_without_multi_have_no_effect(void **state)
{
    (void)state;
    struct transaction transaction = {0};
    assert_int_equal(transaction_send(&transaction, EFFECT_EXEC), EFFECT_NONE);
    assert_int_equal(transaction_send(&transaction, EFFECT_DISCARD), EFFECT_NONE);
    assert_int_equal(transaction_send(&transaction, EFFECT_WATCH), EFFECT_WATCH);
    assert_true(transaction_is_none(&transaction));
}

static void test_a_nested_multi_changes_nothing(void **state)
{
    (void)state;
    struct transaction transaction = opened();
    transaction.forges = true;
    transaction.admits = true;
    assert_int_equal(transaction_send(&transaction, EFFECT_MULTI), EFFECT_NONE);
    transaction_answered(&transaction, EFFECT_MULTI, false);
    assert_true(transaction_is_open(&transaction) && transaction.forges && transaction.admits);
}

static void test_what_was_queued_says_nothing_of_the_next(void **state)
{
    (void)state;
    struct transaction transaction = opened();
    transaction.forges = true;
    transaction.is_passthrough = true;
    (void)transaction_send(&transaction, EFFECT_DISCARD);
    assert_true(transaction.forges && transaction.is_passthrough); /* Redis may refuse DISCARD */
    transaction_answered(&transaction, EFFECT_DISCARD, true);
    assert_int_equal(transaction_send(&transaction, EFFECT_MULTI), EFFECT_MULTI);
    assert_false(transaction.forges || transaction.is_passthrough || transaction.admits);
}

static void test_a_multi_that_could_not_travel_is_broken_until_it_ends(void **state)
{
    (void)state;
    struct transaction transaction = {0};
    transaction_end_broken(&transaction);
    assert_true(transaction_is_none(&transaction));
    transaction_break(&transaction);
    assert_true(transaction_is_broken(&transaction) && !transaction_is_open(&transaction));
    transaction_end_broken(&transaction);
    assert_true(transaction_is_none(&transaction));
}

static void test_it_is_one_byte(void **state)
{
    (void)state;
    assert_int_equal(sizeof(struct transaction), 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_follows_multi_is_queued_before_it_is_answered),
        cmocka_unit_test(test_exec_may_follow_before_multi_is_answered),
        cmocka_unit_test(test_exec_ends_an_open_one_at_once),
        cmocka_unit_test(test_a_refused_discard_leaves_it_open),
        cmocka_unit_test(test_exec_and_discard_without_multi_have_no_effect),
        cmocka_unit_test(test_a_nested_multi_changes_nothing),
        cmocka_unit_test(test_what_was_queued_says_nothing_of_the_next),
        cmocka_unit_test(test_a_multi_that_could_not_travel_is_broken_until_it_ends),
        cmocka_unit_test(test_it_is_one_byte),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
