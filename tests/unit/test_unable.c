/* Tests of error replies to a script which say that Redis has not run the script. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "quota/away.h"

static void test_a_code_at_the_beginning_counts(void **state)
{
    static const struct {
        const char *error;
        enum unable unable;
    } rows[] = {
        {"-READONLY You can't write against a read only replica.\r\n", UNABLE_NOT_RUN},
        {"-READONLY You can't write against a read only replica. script: 0a, on @user_script:1.\r\n",
         UNABLE_NOT_RUN},
        {"-LOADING Redis is loading the dataset in memory\r\n", UNABLE_NOT_RUN},
        {"-LOADING Valkey is loading the dataset in memory\r\n", UNABLE_NOT_RUN},
        {"-MASTERDOWN Link with MASTER is down and replica-serve-stale-data is set to 'no'.\r\n",
         UNABLE_NOT_RUN},
        {"-ERR Error running script (call to f_0a): @user_script:1: @user_script: 1: -READONLY You can't\r\n",
         UNABLE_NOT_RUN},
        {"-OOM command not allowed when used memory > 'maxmemory'.\r\n", UNABLE_TO_DECIDE},
        {"-BUSY Redis is busy running a script.\r\n", UNABLE_TO_DECIDE},
        {"-MISCONF Redis is configured to save RDB snapshots\r\n", UNABLE_TO_DECIDE},
        {"-NOREPLICAS Not enough good replicas to write.\r\n", UNABLE_TO_DECIDE},
        {"-ERR Error running script (call to f_0a): @user_script:1: @user_script: 1: -OOM command\r\n",
         UNABLE_TO_DECIDE},
        {"-MOVED 3999 127.0.0.1:6381\r\n", UNABLE_REDIRECTED},
        {"-ASK 3999 127.0.0.1:6381\r\n", UNABLE_REDIRECTED},
        {"-ASK\r\n", UNABLE_REDIRECTED},
        {"-MOVED x y\r\n", UNABLE_REDIRECTED},
        {"-ASKING\r\n", UNABLE_NO},
        {"-TRYAGAIN Multiple keys request during rehashing of slot\r\n", UNABLE_TRY_AGAIN},
        {"-CLUSTERDOWN Hash slot not served\r\n", UNABLE_CLUSTER_DOWN},
        {"-ERR Error running script (call to f_0a): @user_script:1: @user_script: 1: -MOVED 1 a:1\r\n",
         UNABLE_NO},
        {"-READONLYX no\r\n", UNABLE_NO},
        {"-READONLY\r\n", UNABLE_NO},
        {"-ERR READONLY You can't\r\n", UNABLE_NO},
        {"-WRONGTYPE Operation against a key\r\n", UNABLE_NO},
        {"-NOPERM this user has no permissions: -READONLY x\r\n", UNABLE_NO},
        {"-ERR Error running script (call to f_0a)\r\n", UNABLE_NO},
        {"-UPSTREAM unavailable\r\n", UNABLE_NO},
        {"-", UNABLE_NO},
        {"", UNABLE_NO},
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        assert_int_equal(unable_of(slice_str(rows[i].error)), rows[i].unable);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_code_at_the_beginning_counts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
