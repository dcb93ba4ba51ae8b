/* Tests of parsing one word out of a few. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/why.h"

static const char *const sizes[] = {"small", "middle", "large", NULL};

static void test_a_word_is_found_in_any_case_of_letters(void **state)
{
    (void)state;
    assert_int_equal(choice_find(sizes, slice_str("MIDDLE")), 1);
    assert_int_equal(choice_find(sizes, slice_str("mid")), 3);
    assert_int_equal(choice_find(sizes, slice_str("")), 3);
}

static void test_what_is_none_of_them_is_told_with_all_of_them(void **state)
{
    char why[128] = "";
    unsigned index;
    (void)state;
    assert_true(choice_take(sizes, slice_str("large"), &index, why, sizeof why));
    assert_int_equal(index, 2);
    assert_string_equal(why, "");
    assert_false(choice_take(sizes, slice_str("huge"), &index, why, sizeof why));
    assert_string_equal(why, "\"huge\" is neither small nor middle nor large");
}

static void test_a_message_is_cut_to_its_room(void **state)
{
    char why[20];
    unsigned index;
    (void)state;
    assert_false(choice_take(sizes, slice_str("huge"), &index, why, sizeof why));
    assert_string_equal(why, "\"huge\" is neither s");
    assert_false(choice_take(sizes, slice_str("enormous enormous"), &index, why, 8));
    assert_string_equal(why, "\"enormo");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_word_is_found_in_any_case_of_letters),
        cmocka_unit_test(test_what_is_none_of_them_is_told_with_all_of_them),
        cmocka_unit_test(test_a_message_is_cut_to_its_room),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
