/*
 * Tests of the time-outs of blocking commands: the rest of the time when a cluster ends the wait.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/clock.h"
#include "front/route/request.h"
#include "resp/argv.h"

static const struct command *row(const char *name)
{
    return command_by_name(command_table_known(), slice_str(name));
}

static struct slice multibulk(const char *line, char *out, uint32_t *argc)
{
    size_t len;
    assert_true(argv_split(slice_str(line), out, &len));
    *argc = (uint32_t)strtoul(out + 1, NULL, 10);
    return slice_of(out, len);
}

static void expect(const char *name, const char *line, uint64_t waited_ms, const char *expected)
{
    char before[2048];
    char after[2048];
    uint32_t argc;
    struct bytes out = {0};
    struct slice request = multibulk(line, before, &argc);
    assert_true(block_time_reduce(row(name), request, argc, waited_ms * NS_PER_MS, &out));
    struct slice wanted = multibulk(expected, after, &argc);
    assert_int_equal(out.len, wanted.len);
    assert_memory_equal(out.at, wanted.at, wanted.len);
    bytes_fini(&out);
}

static void test_time_is_reduced_by_what_has_passed(void **state)
{
    (void)state;
    expect("blpop", "BLPOP a b 5", 1500, "BLPOP a b 3.500");
    expect("blpop", "BLPOP a b 2.25", 250, "BLPOP a b 2.000");
    expect("brpoplpush", "BRPOPLPUSH a b 1", 10, "BRPOPLPUSH a b 0.990");
    expect("blmove", "BLMOVE a b LEFT RIGHT 10", 4000, "BLMOVE a b LEFT RIGHT 6.000");
    expect("blmpop", "BLMPOP 3 2 a b LEFT", 1000, "BLMPOP 2.000 2 a b LEFT");
    expect("bzmpop", "BZMPOP 3 1 a MIN", 1000, "BZMPOP 2.000 1 a MIN");
    expect("xread", "XREAD COUNT 1 block 500 STREAMS block 0", 200,
           "XREAD COUNT 1 block 300 STREAMS block 0");
    expect("xreadgroup", "XREADGROUP GROUP g c BLOCK 500 STREAMS s >", 499,
           "XREADGROUP GROUP g c BLOCK 1 STREAMS s >");
}

static void test_one_that_is_over_waits_for_a_moment(void **state)
{
    (void)state;
    expect("blpop", "BLPOP a 1", 5000, "BLPOP a 0.001");
    expect("xread", "XREAD BLOCK 7 STREAMS s 0", 5000, "XREAD BLOCK 1 STREAMS s 0");
}

static void test_what_names_no_time_stays_as_it_is(void **state)
{
    (void)state;
    expect("blpop", "BLPOP a 0", 5000, "BLPOP a 0");
    expect("blpop", "BLPOP a 1e3", 5000, "BLPOP a 1e3");
    expect("blpop", "BLPOP a \"\"", 5000, "BLPOP a \"\"");
    expect("xread", "XREAD STREAMS block 0", 5000, "XREAD STREAMS block 0");
    expect("xread", "XREAD BLOCK 0 STREAMS s 0", 5000, "XREAD BLOCK 0 STREAMS s 0");
}

static bool is_from_now(const char *line)
{
    char bytes[2048];
    uint32_t argc;
    struct slice request = multibulk(line, bytes, &argc);
    return block_time_is_from_now(row("xread"), request, argc);
}

static void test_xread_of_what_comes_is_known(void **state)
{
    (void)state;
    assert_true(is_from_now("XREAD BLOCK 0 STREAMS a b 0 $"));
    assert_true(is_from_now("XREAD BLOCK 0 STREAMS a b $ 0"));
    assert_false(is_from_now("XREAD BLOCK 0 STREAMS $ b 0 0"));
    assert_false(is_from_now("XREAD BLOCK 0 STREAMS a 5-1"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_time_is_reduced_by_what_has_passed),
        cmocka_unit_test(test_one_that_is_over_waits_for_a_moment),
        cmocka_unit_test(test_what_names_no_time_stays_as_it_is),
        cmocka_unit_test(test_xread_of_what_comes_is_known),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
