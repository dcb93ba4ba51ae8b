/* Whom a stranger is taken for: only what Redis says, byte by byte or at once. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "upstream/sentry_answer.h"

static enum sentry_verdict verdict_of(const char *text, size_t piece)
{
    struct sentry_answer answer = {0};
    enum sentry_verdict verdict = SENTRY_MORE;
    size_t n = strlen(text);
    for (size_t at = 0; at < n && verdict == SENTRY_MORE; at += piece)
        verdict = sentry_answer_take(&answer, text + at, piece < n - at ? piece : n - at);
    return verdict;
}

static void test_verdicts(void **state)
{
    static const struct {
        const char *text;
        enum sentry_verdict verdict;
    } rows[] = {
        {":12\r\n", SENTRY_SERVED},
        {"-NOPERM this user has no permissions\r\n", SENTRY_SERVED},
        {"-LOADING x\r\n", SENTRY_SERVED},
        {"-NOAUTH Authentication required.\r\n", SENTRY_NEEDS_AUTH},
        {":12", SENTRY_MORE},
        {"-NOAUTH Auth", SENTRY_MORE},
        {"$68719476736\r\nxxx", SENTRY_MORE},
        {"+OK\r\n", SENTRY_UNKNOWN},
        {"*0\r\n", SENTRY_UNKNOWN},
        {"$7\r\n-NOAUTH\r\n", SENTRY_UNKNOWN},
        {">1\r\n:1\r\n", SENTRY_UNKNOWN},
        {"_\r\n", SENTRY_UNKNOWN},
        {"HTTP/1.1 400\r\n", SENTRY_UNKNOWN},
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        for (size_t piece = 1; piece < 64; piece += 62)
            assert_int_equal(verdict_of(rows[i].text, piece), rows[i].verdict);
    assert_int_equal(verdict_of(":1\r\n:2\r\n", 64), SENTRY_UNKNOWN);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_verdicts)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
