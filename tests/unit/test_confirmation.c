/* Tests of parsing confirmations of subscriptions. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "front/session/channels.h"

static void test_what_is_confirmed(void **state)
{
    static const struct {
        const char *frame, *word, *channel;
        bool has_channel;
        int64_t count;
        size_t count_at;
    } rows[] = {
        {"*3\r\n$9\r\nsubscribe\r\n$4\r\nnews\r\n:1\r\n", "subscribe", "news", true, 1, 29},
        {">3\r\n$12\r\nsunsubscribe\r\n$0\r\n\r\n:17\r\n", "sunsubscribe", "", true, 17, 29},
        {"*3\r\n$11\r\nunsubscribe\r\n$-1\r\n:0\r\n", "unsubscribe", "", false, 0, 27},
        {">3\r\n$11\r\nunsubscribe\r\n_\r\n:0\r\n", "unsubscribe", "", false, 0, 25},
        {"*3\r\n$9\r\nsubscribe\r\n$3\r\n\r\n:\r\n:2\r\n", "subscribe", "\r\n:", true, 2, 28},
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct confirmation said;
        assert_true(confirmation_read(slice_str(rows[i].frame), &said));
        assert_true(slice_eq(said.word, slice_str(rows[i].word)));
        assert_true(slice_eq(said.channel, slice_str(rows[i].channel)));
        assert_int_equal(said.has_channel, rows[i].has_channel);
        assert_int_equal(said.count, rows[i].count);
        assert_int_equal(said.count_at, rows[i].count_at);
    }
}

static void test_what_is_none(void **state)
{
    static const char *const frames[] = {
        "",
        "*3\r\n",
        "*3\r\n$9\r\nsubscribe\r\n",
        "*3\r\n$9\r\nsubscribe\r\n$4\r\nnews\r\n",
        "*3\r\n$9\r\nsubscribe\r\n$4\r\nnews\r\n$1\r\n1\r\n",
        "*3\r\n$9\r\nsubscribe\r\n$40\r\nnews\r\n:1\r\n",
        "*3\r\n$9\r\nsubscribe\r\n$4\r\nnews\r\n:1\r\n:2\r\n",
        "*4\r\n$8\r\npmessage\r\n$1\r\np\r\n$1\r\nc\r\n$1\r\nm\r\n",
        "*2\r\n$4\r\npong\r\n$0\r\n\r\n",
        "*3\r\n_\r\n$4\r\nnews\r\n:1\r\n",
        "+OK\r\n",
    };
    (void)state;
    for (size_t i = 0; i < sizeof frames / sizeof frames[0]; i++) {
        struct confirmation said;
        assert_false(confirmation_read(slice_str(frames[i]), &said));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_is_confirmed),
        cmocka_unit_test(test_what_is_none),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
