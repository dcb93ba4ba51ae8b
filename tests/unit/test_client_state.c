/* Tests of the states of a client: which may follow which. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "front/client/client_state.h"

static void test_a_client_takes_these_steps_and_no_other(void **state)
{
    static const bool is_step[CLIENT_CLOSED + 1][CLIENT_CLOSED + 1] = {
        [CLIENT_SHAKING] = {[CLIENT_OPEN] = true, [CLIENT_CLOSED] = true},
        [CLIENT_OPEN] = {[CLIENT_DRAINING] = true, [CLIENT_CLOSING] = true, [CLIENT_CLOSED] = true},
        [CLIENT_DRAINING] = {[CLIENT_CLOSING] = true, [CLIENT_CLOSED] = true},
        [CLIENT_CLOSING] = {[CLIENT_OPEN] = true, [CLIENT_CLOSED] = true},
    };
    (void)state;
    for (int from = 0; from <= CLIENT_CLOSED; from++)
        for (int to = 0; to <= CLIENT_CLOSED; to++)
            assert_int_equal(
                client_state_may_follow((enum client_state)from, (enum client_state)to),
                is_step[from][to]);
}

static void test_waits_are_printed_by_name(void **state)
{
    char text[CLIENT_WAITS_ROOM];
    (void)state;
    assert_int_equal(client_waits_print(0, text), 0);
    assert_string_equal(text, "");
    assert_int_equal(client_waits_print(WAIT_MEMORY | WAIT_LANE, text), strlen("lane,memory"));
    assert_string_equal(text, "lane,memory");
    assert_true(client_waits_print((1U << WAIT_ROWS) - 1, text) < CLIENT_WAITS_ROOM);
}

/* A name is one word and unique, since programs read it. */
static void test_each_wait_has_a_bit_a_name_and_a_text(void **state)
{
    unsigned all = 0;
    (void)state;
    for (int row = 0; row < WAIT_ROWS; row++) {
        char name[CLIENT_WAITS_ROOM], earlier[CLIENT_WAITS_ROOM];
        client_waits_print(1U << row, name);
        assert_true(strlen(name) > 0 && strcspn(name, ", \t") == strlen(name));
        assert_true(strlen(client_wait_text((enum client_wait_row)row)) > 0);
        for (int other = 0; other < row; other++) {
            client_waits_print(1U << other, earlier);
            assert_string_not_equal(name, earlier);
        }
        all |= 1U << row;
    }
    assert_int_equal(WAIT_ANSWER | WAIT_REPLIES | WAIT_LANE | WAIT_LOGIN | WAIT_DELAY | WAIT_BYTES |
                         WAIT_SHARE | WAIT_WORKER | WAIT_DECISION | WAIT_ADMIN | WAIT_UPSTREAM |
                         WAIT_AGAIN | WAIT_MEMORY,
                     all);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_client_takes_these_steps_and_no_other),
        cmocka_unit_test(test_each_wait_has_a_bit_a_name_and_a_text),
        cmocka_unit_test(test_waits_are_printed_by_name),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
