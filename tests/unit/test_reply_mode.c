/* Tests of the modes of CLIENT REPLY: the legal steps, and the replies that pass in each mode. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "front/client/reply_mode.h"

static struct reply_mode after(enum reply_word word)
{
    struct reply_mode mode = {0};
    reply_mode_set(&mode, word);
    return mode;
}

static void test_words_are_read_as_redis_reads_them(void **state)
{
    (void)state;
    assert_int_equal(reply_word_of(SLICE("on")), REPLY_ON);
    assert_int_equal(reply_word_of(SLICE("OFF")), REPLY_OFF);
    assert_int_equal(reply_word_of(SLICE("Skip")), REPLY_SKIP);
    assert_int_equal(reply_word_of(SLICE("off\0x")), REPLY_OFF);
    assert_int_equal(reply_word_of(SLICE("offx")), REPLY_NONE);
    assert_int_equal(reply_word_of(SLICE("")), REPLY_NONE);
}

static void test_skip_is_used_up_by_one_request(void **state)
{
    (void)state;
    struct reply_mode mode = after(REPLY_SKIP);
    assert_true(reply_mode_skips(&mode) && reply_mode_is_deaf(&mode) && !reply_mode_is_off(&mode));
    assert_true(reply_mode_take(&mode));
    assert_false(reply_mode_is_deaf(&mode));
    assert_false(reply_mode_take(&mode));
}

static void test_a_request_that_never_came_whole_gives_skip_back(void **state)
{
    (void)state;
    struct reply_mode mode = after(REPLY_SKIP);
    assert_true(reply_mode_take(&mode));
    reply_mode_untake(&mode);
    assert_true(reply_mode_skips(&mode));
}

static void test_off_lasts_until_on(void **state)
{
    (void)state;
    struct reply_mode mode = after(REPLY_OFF);
    assert_true(reply_mode_take(&mode) && reply_mode_take(&mode));
    reply_mode_set(&mode, REPLY_SKIP); /* already silent: the next reply is silent too */
    assert_true(reply_mode_take(&mode) && reply_mode_take(&mode));
    reply_mode_untake(&mode);
    assert_true(reply_mode_is_off(&mode));
    reply_mode_set(&mode, REPLY_ON);
    assert_false(reply_mode_is_deaf(&mode));
}

static void test_reset_ends_off_and_keeps_skip(void **state)
{
    (void)state;
    struct reply_mode off = after(REPLY_OFF);
    struct reply_mode skip = after(REPLY_SKIP);
    reply_mode_end_off(&off);
    reply_mode_end_off(&skip);
    assert_false(reply_mode_is_deaf(&off));
    assert_true(reply_mode_skips(&skip));
}

static void test_how_the_answer_to_the_word_itself_is_heard(void **state)
{
    (void)state;
    const struct reply_mode all = {0};
    const struct reply_mode off = after(REPLY_OFF);
    const struct reply_mode skip = after(REPLY_SKIP);
    assert_int_equal(reply_mode_hears(&all, REPLY_ON), WORD_IS_HEARD);
    assert_int_equal(reply_mode_hears(&all, REPLY_OFF), WORD_IS_HEARD_ON_ERROR);
    assert_int_equal(reply_mode_hears(&all, REPLY_SKIP), WORD_IS_HEARD_ON_ERROR);
    assert_int_equal(reply_mode_hears(&skip, REPLY_ON), WORD_IS_HEARD);
    assert_int_equal(reply_mode_hears(&off, REPLY_ON), WORD_IS_SILENT_ON_ERROR);
    assert_int_equal(reply_mode_hears(&off, REPLY_OFF), WORD_IS_SILENT);
    assert_int_equal(reply_mode_hears(&off, REPLY_SKIP), WORD_IS_SILENT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_words_are_read_as_redis_reads_them),
        cmocka_unit_test(test_skip_is_used_up_by_one_request),
        cmocka_unit_test(test_a_request_that_never_came_whole_gives_skip_back),
        cmocka_unit_test(test_off_lasts_until_on),
        cmocka_unit_test(test_reset_ends_off_and_keeps_skip),
        cmocka_unit_test(test_how_the_answer_to_the_word_itself_is_heard),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
