/* What is queued since MULTI: which of it lasts until EXEC is sent, and which until it is answered. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "front/queued.h"

static struct hello hello_as(const char *user, const char *name, uint8_t protocol)
{
    struct hello hello = {.protocol = protocol, .has_auth = user != NULL, .has_name = name != NULL};
    if (user != NULL) {
        hello.user = slice_str(user);
        hello.password = SLICE("secret");
    }
    if (name != NULL)
        hello.name = slice_str(name);
    return hello;
}

static void test_the_last_name_and_protocol_count(void **state)
{
    (void)state;
    struct queued queued = {0};
    struct hello first = hello_as(NULL, "one", 3);
    struct hello second = hello_as(NULL, NULL, 0);
    struct hello wrong = hello_as(NULL, "never", 2);
    wrong.n_wrong = 1;
    assert_false(queued_has_session(&queued));
    assert_true(slice_eq(queued_name(&queued), SLICE("")));
    assert_true(queued_hello(&queued, &first) && queued_hello(&queued, &second) && queued_hello(&queued, &wrong));
    assert_int_equal(queued.protocol, 3);
    assert_true(slice_eq(queued_name(&queued), SLICE("one")));
    assert_true(queued_rename(&queued, SLICE("two")));
    assert_true(slice_eq(queued_name(&queued), SLICE("two")));
    assert_true(queued_has_hello(&queued) && queued_has_session(&queued));
    queued_forget(&queued);
    assert_false(queued_has_session(&queued));
}

static void test_a_second_login_behind_a_hello_is_not_followed(void **state)
{
    (void)state;
    struct queued queued = {0};
    struct hello login = hello_as("alice", NULL, 3);
    assert_true(queued_log_in(&queued, &login));
    assert_false(queued.is_astray);
    assert_true(queued_log_in(&queued, &login));
    assert_false(queued.is_astray);
    assert_true(queued_hello(&queued, &login) && queued_log_in(&queued, &login));
    assert_true(queued.is_astray);
    queued_forget(&queued);
    assert_null(queued.login);
    assert_false(queued.is_astray);
}

static void test_what_a_silent_client_hears_begins_with_the_first_that_is_heard(void **state)
{
    (void)state;
    struct queued queued = {0};
    queued_add_silent(&queued, false);
    assert_int_equal(queued.heard_from, 0);
    queued_add_silent(&queued, true);
    queued_add_silent(&queued, true);
    assert_int_equal(queued.heard_from, 2);
    queued_end(&queued);
    assert_int_equal(queued.heard_from, 0);
    queued_add_silent(&queued, true);
    assert_int_equal(queued.heard_from, 1);
}

/* EXEC's answer may come when the next transaction has begun. */
static void test_an_answer_leaves_what_the_next_has_queued(void **state)
{
    (void)state;
    struct queued queued = {0};
    queued_add(&queued);
    queued_pause(&queued, 7);
    queued_end(&queued);
    assert_int_equal(queued.pause_ms, 0);
    assert_int_equal(queued.n, 1);
    queued_begin(&queued);
    queued_add_silent(&queued, true);
    queued_add(&queued);
    queued_add(&queued);
    queued_forget(&queued);
    assert_int_equal(queued.n, 2);
    assert_int_equal(queued.heard_from, 1);
}

static void test_selects_stand_where_they_were_queued(void **state)
{
    (void)state;
    struct queued queued = {0};
    uint32_t database = 0;
    queued_add(&queued);
    assert_true(queued_select(&queued, 5));
    queued_add(&queued);
    static const char answer[] = "*2\r\n:1\r\n+OK\r\n";
    members_feed(queued.selects, answer, strlen(answer));
    assert_int_equal(members_last_ok(queued.selects, queued.n, &database), MEMBERS_ONE);
    assert_int_equal(database, 5);
    queued_forget(&queued);
    assert_null(queued.selects);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_last_name_and_protocol_count),
        cmocka_unit_test(test_a_second_login_behind_a_hello_is_not_followed),
        cmocka_unit_test(test_what_a_silent_client_hears_begins_with_the_first_that_is_heard),
        cmocka_unit_test(test_an_answer_leaves_what_the_next_has_queued),
        cmocka_unit_test(test_selects_stand_where_they_were_queued),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
