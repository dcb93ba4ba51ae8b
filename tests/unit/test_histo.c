/* Tests of histograms: buckets, quantiles, and sums of several. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "base/histo.h"

#define US UINT64_C(1000)
#define MS UINT64_C(1000000)

static uint64_t in_bucket(const struct histo *histo, unsigned i)
{
    return count_read(&histo->buckets[i]);
}

static void bounds_are_those_that_are_documented(void **state)
{
    static const double shown[] = {.00005, .0001, .00025, .0005, .001, .0025, .005,
                                   .01,    .025,  .05,    .1,    .25,  1,     2.5};
    (void)state;
    assert_int_equal(HISTO_BOUNDS - HISTO_SHOWN, sizeof shown / sizeof shown[0]);
    for (unsigned i = 0; i < sizeof shown / sizeof shown[0]; i++)
        assert_int_equal(histo_bound_ns(HISTO_SHOWN + i), (uint64_t)(shown[i] * 1e9 + 0.5));
    for (unsigned i = 1; i < HISTO_BOUNDS; i++)
        assert_true(histo_bound_ns(i - 1) < histo_bound_ns(i));
}

static void a_bound_belongs_to_its_bucket(void **state)
{
    (void)state;
    for (unsigned i = 0; i < HISTO_BOUNDS; i++) {
        struct histo histo = {0};
        histo_add(&histo, histo_bound_ns(i), 1);
        histo_add(&histo, histo_bound_ns(i) + 1, 2);
        assert_int_equal(in_bucket(&histo, i), 1);
        assert_int_equal(in_bucket(&histo, i + 1), 2);
        assert_int_equal(histo_count(&histo), 3);
    }
    struct histo histo = {0};
    histo_add(&histo, 0, 1);
    histo_add(&histo, UINT64_MAX / 2, 1);
    assert_int_equal(in_bucket(&histo, 0), 1);
    assert_int_equal(in_bucket(&histo, HISTO_BOUNDS), 1);
}

static void many_at_once_are_as_many_one_by_one(void **state)
{
    (void)state;
    struct histo many = {0};
    struct histo each = {0};
    histo_add(&many, 70 * US, 64);
    for (int i = 0; i < 64; i++)
        histo_add(&each, 70 * US, 1);
    assert_memory_equal(&many, &each, sizeof many);
    assert_int_equal(count_read(&many.sum_ns), 64 * 70 * US);
}

static void a_quantile_lies_in_its_bucket(void **state)
{
    (void)state;
    struct histo histo = {0};
    assert_int_equal(histo_quantile_ns(&histo, 0.99), 0);
    histo_add(&histo, 200 * US, 98); /* 100 to 250 us */
    histo_add(&histo, 20 * MS, 2);   /* 10 to 25 ms */
    assert_in_range(histo_quantile_ns(&histo, 0.01), 100 * US, 110 * US);
    /* the middle of the bucket */
    assert_in_range(histo_quantile_ns(&histo, 0.49), 174 * US, 176 * US);
    assert_int_equal(histo_quantile_ns(&histo, 0.98), 250 * US);
    assert_in_range(histo_quantile_ns(&histo, 0.99), 17 * MS, 18 * MS);
    assert_int_equal(histo_quantile_ns(&histo, 1), 25 * MS);
}

static void what_is_beyond_all_bounds_is_the_last_bound(void **state)
{
    (void)state;
    struct histo histo = {0};
    histo_add(&histo, 60 * 1000 * MS, 10);
    assert_int_equal(histo_quantile_ns(&histo, 0.5), 2500 * MS);
    histo_add(&histo, 3 * US, 90);
    assert_in_range(histo_quantile_ns(&histo, 0.5), 2500, 5 * US);
    assert_int_equal(histo_quantile_ns(&histo, 0.99), 2500 * MS);
}

static void they_add_up_and_what_was_before_can_be_taken_away(void **state)
{
    (void)state;
    struct histo sum = {0};
    struct histo one = {0};
    struct histo two = {0};
    histo_add(&one, 1 * MS, 5);
    histo_add(&two, 30 * US, 7);
    counts_add(&sum, &one, sizeof sum);
    struct histo before;
    memcpy(&before, &sum, sizeof before);
    counts_add(&sum, &two, sizeof sum);
    assert_int_equal(histo_count(&sum), 12);
    assert_int_equal(count_read(&sum.sum_ns), 5 * MS + 7 * 30 * US);
    histo_subtract(&sum, &before);
    assert_memory_equal(&sum, &two, sizeof sum);
    assert_in_range(histo_quantile_ns(&sum, 0.99), 25 * US, 50 * US);
}

static void a_part_can_be_taken_out(void **state)
{
    (void)state;
    struct histo all = {0};
    struct histo part = {0};
    histo_add(&all, 1 * MS, 5);
    histo_add(&all, 30 * US, 7);
    histo_add(&part, 30 * US, 6);
    histo_take_out(&all, &part);
    assert_int_equal(histo_count(&all), 6);
    assert_int_equal(count_read(&all.sum_ns), 5 * MS + 30 * US);
    histo_take_out(&all, &part); /* no bucket falls below 0 */
    assert_int_equal(histo_count(&all), 5);
    assert_in_range(histo_quantile_ns(&all, 0.01), 500 * US, 1 * MS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bounds_are_those_that_are_documented),
        cmocka_unit_test(a_bound_belongs_to_its_bucket),
        cmocka_unit_test(many_at_once_are_as_many_one_by_one),
        cmocka_unit_test(a_quantile_lies_in_its_bucket),
        cmocka_unit_test(what_is_beyond_all_bounds_is_the_last_bound),
        cmocka_unit_test(a_part_can_be_taken_out),
        cmocka_unit_test(they_add_up_and_what_was_before_can_be_taken_away),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
