/* Which of the chosen members of an array says +OK, however the array is cut. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "resp/members.h"

#define NUMBER(at) (1000 + (at))

/* As members_last_ok, of an array that comes in pieces of so many bytes. */
static enum members_answer ask(const char *array, uint32_t n, const uint32_t *chosen, uint32_t n_chosen,
                               uint32_t *number, size_t piece)
{
    struct members members;
    members_init(&members);
    for (uint32_t i = 0; i < n_chosen; i++)
        members_choose(&members, chosen[i], NUMBER(chosen[i]));
    for (size_t at = 0, len = strlen(array); at < len; at += piece)
        members_feed(&members, array + at, piece < len - at ? piece : len - at);
    return members_last_ok(&members, n, number);
}

static void the_last_that_says_ok(void **state)
{
    (void)state;
    static const struct {
        const char *array;
        uint32_t n, chosen[10], n_chosen;
        enum members_answer answer;
        uint32_t at;
    } cases[] = {
        {"*1\r\n+OK\r\n", 1, {0}, 1, MEMBERS_ONE, 0},
        {"*1\r\n-ERR DB index is out of range\r\n", 1, {0}, 1, MEMBERS_NONE, 0},
        {"*3\r\n+OK\r\n-ERR x\r\n+OK\r\n", 3, {1}, 1, MEMBERS_NONE, 0},
        {"*3\r\n+OK\r\n-ERR x\r\n+OK\r\n", 3, {0, 1, 2}, 3, MEMBERS_ONE, 2},
        {"*3\r\n+OK\r\n-ERR x\r\n+OK\r\n", 3, {0, 1}, 2, MEMBERS_ONE, 0},
        {"*2\r\n*2\r\n*1\r\n+OK\r\n+OK\r\n+OK\r\n", 2, {1}, 1, MEMBERS_ONE, 1},
        {"*2\r\n*2\r\n*1\r\n+OK\r\n+OK\r\n-E\r\n", 2, {1}, 1, MEMBERS_NONE, 0},
        {"*3\r\n%1\r\n+OK\r\n+OK\r\n*-1\r\n+OK\r\n", 3, {2}, 1, MEMBERS_ONE, 2},
        {"*3\r\n$5\r\n+OK\r\n\r\n$-1\r\n+OK\r\n", 3, {0, 1}, 2, MEMBERS_NONE, 0},
        {"*2\r\n>2\r\n+invalidate\r\n+OK\r\n_\r\n+OK\r\n", 2, {1}, 1, MEMBERS_ONE, 1},
        {"*1\r\n+OKAY\r\n", 1, {0}, 1, MEMBERS_NONE, 0},
        {"*1\r\n$2\r\nOK\r\n", 1, {0}, 1, MEMBERS_NONE, 0},
        {"*2\r\n+OK\r\n+OK\r\n", 3, {0}, 1, MEMBERS_UNKNOWN, 0}, /* another transaction's */
        {"*2\r\n+OK\r\n", 2, {0}, 1, MEMBERS_UNKNOWN, 0},
        {"*-1\r\n", 1, {0}, 1, MEMBERS_UNKNOWN, 0},
        {"-EXECABORT\r\n", 1, {0}, 1, MEMBERS_UNKNOWN, 0},
        {"*x\r\n+OK\r\n", 1, {0}, 1, MEMBERS_UNKNOWN, 0},
        {"*1\r\n?OK\r\n", 1, {0}, 1, MEMBERS_UNKNOWN, 0},
        {"*9\r\n+OK\r\n-E\r\n-E\r\n-E\r\n-E\r\n-E\r\n-E\r\n-E\r\n-E\r\n",
         9,
         {0, 1, 2, 3, 4, 5, 6, 7, 8},
         9,
         MEMBERS_UNKNOWN,
         0},
        {"*9\r\n+OK\r\n+OK\r\n-E\r\n-E\r\n-E\r\n-E\r\n-E\r\n-E\r\n-E\r\n",
         9,
         {0, 1, 2, 3, 4, 5, 6, 7, 8},
         9,
         MEMBERS_ONE,
         1},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        for (size_t piece = 1; piece <= strlen(cases[i].array); piece++) {
            uint32_t number = 0;
            enum members_answer answer =
                ask(cases[i].array, cases[i].n, cases[i].chosen, cases[i].n_chosen, &number, piece);
            if (answer != cases[i].answer || (answer == MEMBERS_ONE && number != NUMBER(cases[i].at)))
                fail_msg("%s in pieces of %u: %d %u", cases[i].array, (unsigned)piece, (int)answer, (unsigned)number);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(the_last_that_says_ok)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
