/* Tests of the nearest name for a misspelt word, or none. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/why.h"

static const char *const names[] = {"listen", "upstream",   "workers", "get", "set",
                                    "hget",   "config|get", "",        "all"};

static struct slice name_at(const void *arg, size_t i)
{
    return slice_str(((const char *const *)arg)[i]);
}

static void expect(const char *text, const char *meant)
{
    struct slice near = near_name(slice_str(text), sizeof names / sizeof names[0], name_at, names);
    if (!slice_eq(near, slice_str(meant)))
        fail_msg("%s: %.*s, not %s", text, (int)near.len, near.at, meant);
}

static void one_edit(void **state)
{
    (void)state;
    expect("listn", "listen");
    expect("lissten", "listen");
    expect("lisben", "listen");
    expect("lisetn", "listen");
    expect("config|gte", "config|get");
    expect("gt", "get");
    expect("gest", "get");
}

static void several_edits(void **state)
{
    (void)state;
    expect("upstraem", "upstream");
    expect("pustraem", "upstream");
    expect("worker", "workers");
    expect("confg|ge", "config|get");
}

static void case_aside(void **state)
{
    (void)state;
    expect("LISTEN", "listen");
    expect("LiSetN", "listen");
}

static void the_nearest_wins_then_the_first(void **state)
{
    (void)state;
    expect("hgett", "hget"); /* two edits from get */
    expect("bet", "get");    /* as near to set */
    expect("et", "get");
}

static void far_is_nothing(void **state)
{
    (void)state;
    expect("", "");
    expect("x", "");
    expect("xyz", "");
    expect("listening-port", "");
    expect("upwards", "");
    expect("down", "");
}

static void long_text_is_nothing(void **state)
{
    (void)state;
    char text[66];
    memset(text, 'a', sizeof text);
    text[65] = '\0';
    expect(text, "");
    text[64] = '\0';
    expect(text, "");
    const char *same[] = {text};
    struct slice near = near_name(slice_str(text), 1, name_at, same);
    assert_int_equal(near.len, 64);
}

static void no_names(void **state)
{
    (void)state;
    assert_int_equal(near_name(SLICE("get"), 0, name_at, names).len, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_edit),       cmocka_unit_test(several_edits),
        cmocka_unit_test(case_aside),     cmocka_unit_test(the_nearest_wins_then_the_first),
        cmocka_unit_test(far_is_nothing), cmocka_unit_test(long_text_is_nothing),
        cmocka_unit_test(no_names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
