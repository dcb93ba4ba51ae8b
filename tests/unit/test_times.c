/* Tests of the parts of a command's time. Equal commands are counted one by one. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "limit/figures/counts.h"

#define US UINT64_C(1000)
#define MS UINT64_C(1000000)
#define T (1000 * MS)

static struct times times;
static struct answered answered;

static int set_up(void **state)
{
    (void)state;
    times = (struct times){0};
    answered = (struct answered){0};
    return 0;
}

static void add(struct timed timed)
{
    answered_add(&answered, &times, &timed);
}

static void check(const struct histo *histo, uint64_t n, uint64_t sum_ns)
{
    assert_int_equal(histo_count(histo), n);
    assert_int_equal(count_read(&histo->sum_ns), sum_ns);
}

static void a_request_is_upstream_and_own(void **state)
{
    (void)state;
    add((struct timed){
        .arrived_ns = T, .sent_ns = T + 20 * US, .answered_ns = T + 120 * US, .n = 3});
    check(&times.request, 0, 0); /* its reply is not written yet */
    answered_written(&answered, &times, T + 150 * US);
    check(&times.request, 3, 3 * 150 * US);
    check(&times.upstream, 3, 3 * 100 * US);
    check(&times.overhead, 3, 3 * 50 * US);
    check(&times.held, 0, 0);
    answered_written(&answered, &times, T + 999 * US);
    check(&times.request, 3, 3 * 150 * US);
}

static void a_delay_is_nobodys_time(void **state)
{
    (void)state;
    add((struct timed){.arrived_ns = T,
                       .sent_ns = T + 11 * MS,
                       .answered_ns = T + 13 * MS,
                       .waited_us = 10000,
                       .n = 1});
    answered_written(&answered, &times, T + 14 * MS);
    check(&times.request, 1, 14 * MS);
    check(&times.upstream, 1, 2 * MS);
    check(&times.overhead, 1, 2 * MS);
    check(&times.held, 1, 14 * MS);
    check(&times.released, 1, 4 * MS);
}

/* The time of other clients' commands does not count as weir's own. */
static void waiting_for_its_turn_is_not_its_own(void **state)
{
    (void)state;
    add((struct timed){.arrived_ns = T,
                       .sent_ns = T + 11 * MS,
                       .answered_ns = T + 13 * MS,
                       .share_us = 10000,
                       .n = 1});
    add((struct timed){
        .arrived_ns = T, .sent_ns = T + 11 * MS, .answered_ns = T + 13 * MS, .n = 1});
    assert_int_equal(answered.n, 2);
    answered_written(&answered, &times, T + 14 * MS);
    check(&times.request, 2, 28 * MS);
    check(&times.upstream, 2, 4 * MS);
    check(&times.overhead, 2, 2 * MS + 12 * MS);
}

static void what_weir_answers_has_no_upstream(void **state)
{
    (void)state;
    add((struct timed){.arrived_ns = T, .answered_ns = T, .n = 1});
    add((struct timed){.arrived_ns = T, .answered_ns = T + 7 * MS, .waited_us = 7000, .n = 1});
    answered_written(&answered, &times, T + 7 * MS + 5 * US);
    check(&times.request, 2, 14 * MS + 10 * US);
    check(&times.upstream, 0, 0);
    check(&times.overhead, 2, 7 * MS + 10 * US);
}

/* The stamps are of one clock, read at different moments of an iteration. */
static void time_does_not_run_backwards(void **state)
{
    (void)state;
    add((struct timed){.arrived_ns = T, .sent_ns = T + 9 * US, .answered_ns = T + 5 * US, .n = 1});
    answered_written(&answered, &times, T + 1 * US);
    check(&times.request, 1, 5 * US);
    check(&times.upstream, 1, 0);
    check(&times.overhead, 1, 5 * US);
}

static void alike_are_one_entry_and_others_are_not(void **state)
{
    (void)state;
    for (int i = 0; i < 100; i++)
        add((struct timed){.arrived_ns = T, .sent_ns = T + 1, .answered_ns = T + 2, .n = 64});
    assert_int_equal(answered.n, 1);
    add((struct timed){.arrived_ns = T, .sent_ns = T + 1, .answered_ns = T + 3, .n = 1});
    add((struct timed){.arrived_ns = T, .answered_ns = T + 3, .n = 1});
    add((struct timed){.arrived_ns = T, .answered_ns = T + 3, .waited_us = 1, .n = 1});
    assert_int_equal(answered.n, 4);
    answered_written(&answered, &times, T + 4);
    assert_int_equal(answered.n, 0);
    assert_int_equal(histo_count(&times.request), 6403);
}

static void more_than_there_is_room_for_are_counted_all_the_same(void **state)
{
    (void)state;
    uint64_t n = 10 * ANSWERED_MAX + 1;
    for (uint64_t i = 0; i < n; i++)
        add((struct timed){
            .arrived_ns = T + i, .sent_ns = T + i, .answered_ns = T + 1 * MS, .n = 1});
    assert_in_range(answered.n, 1, ANSWERED_MAX);
    answered_written(&answered, &times, T + 2 * MS);
    assert_int_equal(histo_count(&times.request), n);
    assert_int_equal(histo_count(&times.upstream), n);
    assert_int_equal(histo_count(&times.overhead), n);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(a_request_is_upstream_and_own, set_up),
        cmocka_unit_test_setup(a_delay_is_nobodys_time, set_up),
        cmocka_unit_test_setup(waiting_for_its_turn_is_not_its_own, set_up),
        cmocka_unit_test_setup(what_weir_answers_has_no_upstream, set_up),
        cmocka_unit_test_setup(time_does_not_run_backwards, set_up),
        cmocka_unit_test_setup(alike_are_one_entry_and_others_are_not, set_up),
        cmocka_unit_test_setup(more_than_there_is_room_for_are_counted_all_the_same, set_up),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
