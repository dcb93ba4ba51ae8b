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

/* Feed `answer`, in pieces of one byte. */
static void feed(struct queued *queued, const char *answer)
{
    for (; *answer != '\0'; answer++)
        queued_feed(queued, answer, 1);
}

/* MULTI, AUTH alice, HELLO 3 SETNAME one, CLIENT SETNAME two, AUTH bob, PING */
static struct queued queue_session(void)
{
    struct queued queued = {0};
    struct hello alice = hello_as("alice", NULL, 0);
    struct hello bob = hello_as("bob", NULL, 0);
    struct hello hello = hello_as(NULL, "one", 3);
    alice.is_auth = bob.is_auth = true;
    queued_begin(&queued);
    assert_true(queued_log_in(&queued, &alice));
    queued_add(&queued);
    assert_true(queued_hello(&queued, &hello));
    queued_add(&queued);
    assert_true(queued_rename(&queued, SLICE("two")));
    queued_add(&queued);
    assert_true(queued_log_in(&queued, &bob));
    queued_add(&queued);
    queued_add(&queued);
    return queued;
}

static void test_what_redis_refuses_in_exec_has_no_effect(void **state)
{
    (void)state;
    static const struct {
        const char *answer;
        bool is_forgeable;
        const char *user, *name;
        uint8_t protocol;
    } cases[] = {
        {"*5\r\n+OK\r\n%1\r\n+a\r\n+b\r\n+OK\r\n+OK\r\n+PONG\r\n", false, "bob", "two", 3},
        {"*5\r\n+OK\r\n*1\r\n+a\r\n-NOPERM\r\n-WRONGPASS\r\n+PONG\r\n", false, "alice", "one", 3},
        {"*5\r\n-WRONGPASS\r\n-NOPERM\r\n+OK\r\n+OK\r\n+PONG\r\n", false, "bob", "two", 0},
        {"*5\r\n-WRONGPASS\r\n-NOPERM\r\n-NOPERM\r\n-WRONGPASS\r\n+OK\r\n", false, NULL, "", 0}, /* bob is only asked for */
        {"*5\r\n-WRONGPASS\r\n-NOPERM\r\n-NOPERM\r\n-WRONGPASS\r\n+OK\r\n", true, "bob", "", 0},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct queued queued = queue_session();
        feed(&queued, cases[i].answer);
        assert_true(queued_settle(&queued, cases[i].is_forgeable));
        assert_int_equal(queued.is_refused, cases[i].user == NULL);
        assert_true(slice_eq(login_user(queued.login), slice_str(cases[i].user != NULL ? cases[i].user : "bob")));
        assert_true(slice_eq(queued_name(&queued), slice_str(cases[i].name)));
        assert_int_equal(queued.protocol, cases[i].protocol);
        queued_forget(&queued);
    }
}

static void test_an_answer_that_lacks_one_tells_nothing(void **state)
{
    (void)state;
    struct queued queued = queue_session();
    feed(&queued, "*4\r\n+OK\r\n%1\r\n+a\r\n+b\r\n+OK\r\n+PONG\r\n");
    assert_false(queued_settle(&queued, false));
    queued_forget(&queued);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_last_name_and_protocol_count),
        cmocka_unit_test(test_a_second_login_behind_a_hello_is_not_followed),
        cmocka_unit_test(test_what_a_silent_client_hears_begins_with_the_first_that_is_heard),
        cmocka_unit_test(test_an_answer_leaves_what_the_next_has_queued),
        cmocka_unit_test(test_selects_stand_where_they_were_queued),
        cmocka_unit_test(test_what_redis_refuses_in_exec_has_no_effect),
        cmocka_unit_test(test_an_answer_that_lacks_one_tells_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
