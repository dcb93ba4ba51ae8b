/*
 * Tests of errors that report a permission that weir lacks on a node, in the words of each release.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "upstream/lane/lack.h"

static void test_refused_commands(void **state)
{
    static const struct {
        const char *reply, *command;
        bool is_refused;
    } rows[] = {
        {"-NOPERM this user has no permissions to run the 'evalsha' command\r\n", "evalsha", true},
        {"-NOPERM this user has no permissions to run the 'evalsha' command or its subcommand\r\n",
         "evalsha", true},
        {"-NOPERM User weir has no permissions to run the 'evalsha' command\r\n", "evalsha", true},
        {"-NOPERM this user has no permissions to run the 'evalsha' command\r\n", "eval", true},
        {"-NOPERM this user has no permissions to run the 'script|load' command\r\n", "script",
         true},
        {"-ERR unknown command 'EVALSHA', with args beginning with: 'a' '1' \r\n", "evalsha", true},
        {"-ERR unknown command `EVALSHA`, with args beginning with: `a`, `1`, \r\n", "evalsha",
         true},
        {"-ERR unknown command 'x', with args beginning with: 'evalsha' \r\n", "evalsha", false},
        {"-NOPERM No permissions to access a key\r\n", "evalsha", false},
        {"-NOPERM this user has no permissions to access one of the keys used as arguments\r\n",
         "evalsha", false},
        {"-NOSCRIPT No matching script. Please use EVAL.\r\n", "evalsha", false},
        {"-BUSY 'evalsha'\r\n", "evalsha", false},
        {"-NOPERM '", "evalsha", false},
        {"", "evalsha", false},
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        if (lack_is_refused(slice_str(rows[i].reply), rows[i].command) != rows[i].is_refused)
            fail_msg("%s", rows[i].reply);
}

static void test_refused_in_a_script(void **state)
{
    static const char *const errors[] = {
        "-ERR The user executing the script can't run this command or subcommand script: a, on @user_script:1.\r\n",
        "ERR Error running script (call to f_a): @user_script:1: The user executing the script can't run this command",
        "-ERR ACL failure in script: User weir has no permissions to run the 'time' command script: a\r\n",
        "ERR Unknown Redis command called from script script: a, on @user_script:1.",
        "NOPERM this user has no permissions to run the 'zadd' command on this key",
    };
    (void)state;
    for (size_t i = 0; i < sizeof errors / sizeof errors[0]; i++)
        assert_true(lack_is_in_script(slice_str(errors[i])));
    assert_false(
        lack_is_in_script(SLICE("-OOM command not allowed when used memory > 'maxmemory'.")));
    assert_false(lack_is_in_script(SLICE("")));
}

/* The words of 6.2 and 7.0, of 7.2, and of scripts in 7.0 and 7.2. */
static void test_keys_and_channels(void **state)
{
    static const char *const keys[] = {
        "-NOPERM this user has no permissions to access one of the keys used as arguments\r\n",
        "-NOPERM No permissions to access a key\r\n",
        "ERR The user executing the script can't access at least one of the keys mentioned in the command arguments",
        "ERR ACL failure in script: User weir has no permissions to access the 'limit:a' key",
    };
    static const char *const channels[] = {
        "-NOPERM this user has no permissions to access one of the channels used as arguments\r\n",
        "-NOPERM No permissions to access a channel\r\n",
        "ERR The user executing the script can't publish to the channel mentioned in the command",
        "ERR ACL failure in script: User weir has no permissions to access the 'limit:released' channel script: a",
    };
    (void)state;
    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++)
        assert_true(lack_is_key(slice_str(keys[i])) && !lack_is_channel(slice_str(keys[i])));
    for (size_t i = 0; i < sizeof channels / sizeof channels[0]; i++)
        assert_true(lack_is_channel(slice_str(channels[i])) &&
                    !lack_is_key(slice_str(channels[i])));
    assert_false(
        lack_is_key(SLICE("-NOPERM this user has no permissions to run the 'get' command\r\n")));
    assert_false(lack_is_channel(SLICE("-WRONGTYPE a channel of keys\r\n")));
}

static void test_errors_name_the_remedy(void **state)
{
    char out[LACK_ERROR_ROOM];
    (void)state;
    for (int i = 0; i < 2 * LACK_COUNT; i++) {
        enum lack lack = (enum lack)(i / 2);
        bool is_cluster = i % 2 == 1;
        struct slice text =
            lack_error(lack, is_cluster, SLICE("-NOAUTH Authentication required.\r\n"), out);
        assert_true(text.len > 0 && text.len < LACK_ERROR_ROOM - 1);
        assert_memory_equal(text.at, "-NOAUTH Redis ", 14);
        assert_memory_equal(text.at + text.len - 2, "\r\n", 2);
        assert_non_null(strstr(out, lack_remedy(lack, is_cluster)));
        assert_true(strlen(lack_name(lack)) > 0);
    }
    assert_memory_equal(
        lack_error(LACK_EVAL, false, SLICE("-ERR unknown command 'EVAL'\r\n"), out).at,
        "-ERR Redis ", 11);
    assert_memory_equal(lack_error(LACK_RIGHT, false, SLICE("ERR ACL failure"), out).at,
                        "-NOPERM Redis ", 14);
    assert_null(strstr(lack_remedy(LACK_USER, false), LACK_ACL_CLUSTER));
    assert_non_null(strstr(lack_remedy(LACK_USER, true), LACK_ACL_CLUSTER));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_refused_commands),
        cmocka_unit_test(test_refused_in_a_script),
        cmocka_unit_test(test_keys_and_channels),
        cmocka_unit_test(test_errors_name_the_remedy),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
