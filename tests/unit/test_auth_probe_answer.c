/*
 * Tests of the verdict on an unauthenticated client: the answer of Redis alone decides, however
 * cut.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "upstream/control_reply.h"

static enum auth_probe_verdict verdict_of(const char *text, size_t piece)
{
    struct auth_probe_answer answer = {0};
    enum auth_probe_verdict verdict = AUTH_PROBE_MORE;
    size_t n = strlen(text);
    for (size_t at = 0; at < n && verdict == AUTH_PROBE_MORE; at += piece)
        verdict = auth_probe_answer_take(&answer, text + at, piece < n - at ? piece : n - at);
    return verdict;
}

static void test_verdicts(void **state)
{
    static const struct {
        const char *text;
        enum auth_probe_verdict verdict;
    } rows[] = {
        {":12\r\n", AUTH_PROBE_SERVED},
        {"-NOPERM this user has no permissions\r\n", AUTH_PROBE_SERVED},
        {"-LOADING x\r\n", AUTH_PROBE_SERVED},
        {"-NOAUTH Authentication required.\r\n", AUTH_PROBE_NEEDS_AUTH},
        {":12", AUTH_PROBE_MORE},
        {"-NOAUTH Auth", AUTH_PROBE_MORE},
        {"$68719476736\r\nxxx", AUTH_PROBE_MORE},
        {"+OK\r\n", AUTH_PROBE_UNKNOWN},
        {"*0\r\n", AUTH_PROBE_UNKNOWN},
        {"$7\r\n-NOAUTH\r\n", AUTH_PROBE_UNKNOWN},
        {">1\r\n:1\r\n", AUTH_PROBE_UNKNOWN},
        {"_\r\n", AUTH_PROBE_UNKNOWN},
        {"HTTP/1.1 400\r\n", AUTH_PROBE_UNKNOWN},
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        for (size_t piece = 1; piece < 64; piece += 62)
            assert_int_equal(verdict_of(rows[i].text, piece), rows[i].verdict);
    assert_int_equal(verdict_of(":1\r\n:2\r\n", 64), AUTH_PROBE_UNKNOWN);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_verdicts)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
