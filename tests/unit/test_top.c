/*
 * Tests of the heaviest subjects: exact while all fit, bounded when they do not, halved every 10
 * seconds, added up over tables.
 */
#include <setjmp.h>
#include <math.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>

#include "dice.h"
#include "limit/figures/top.h"

#define COUNT_OF(a) (sizeof(a) / sizeof(a)[0])
#define S UINT64_C(1000000000)
#define START (UINT64_C(123456789) * S)
#define PER_S (0.69314718055994530942 / 10) /* of a sum */
#define TOPS 4
#define MANY 1000

static struct top *top;
static struct top *tops[TOPS];
static struct top_entry entries[TOPS * TOP_SUBJECTS];

static int set_up(void **state)
{
    (void)state;
    for (size_t i = 0; i < TOPS; i++)
        tops[i] = top_new();
    top = tops[0];
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    for (size_t i = 0; i < TOPS; i++)
        top_free(tops[i]);
    return 0;
}

static uint64_t hash_of(uint64_t number)
{
    return dice(&number);
}

static void add_number(struct top *to, uint64_t number, uint64_t amount, uint64_t now_ns)
{
    char name[32];
    int len = snprintf(name, sizeof name, "user:%u", (unsigned)number);
    top_add(to, TOP_COMMANDS, SLICE("free"), slice_of(name, (size_t)len), hash_of(number), amount,
            now_ns);
}

static void add(const char *policy, const char *subject, uint64_t hash, uint64_t amount,
                uint64_t now_ns)
{
    top_add(top, TOP_COMMANDS, slice_str(policy), slice_str(subject), hash, amount, now_ns);
}

static size_t heaviest(size_t n_tops, uint64_t now_ns)
{
    return top_heaviest(tops, n_tops, TOP_COMMANDS, now_ns, entries, COUNT_OF(entries));
}

/* Correction for a stream that has lasted only `seconds`, which counts as one second at least. */
static double newness(double seconds)
{
    return 1 / (1 - pow(2, -(seconds > 1 ? seconds : 1) / 10));
}

/* The rate of a stream that has just begun. */
static uint64_t rate_of(double sum)
{
    return (uint64_t)(sum * newness(0) * PER_S + 0.5);
}

static unsigned number_of(const struct top_entry *entry)
{
    char name[SUBJECT_NAME_MAX + 1] = {0};
    unsigned number;
    memcpy(name, entry->subject, entry->subject_len);
    assert_int_equal(sscanf(name, "user:%u", &number), 1);
    return number;
}

static void assert_near(uint64_t got, double wanted)
{
    if ((double)got > wanted + 1 || (double)got < wanted - 1)
        fail_msg("%llu is not %f", (unsigned long long)got, wanted);
}

/* ---- one table ---- */

static void nobody_at_first(void **state)
{
    (void)state;
    assert_int_equal(heaviest(1, START), 0);
    assert_int_equal(heaviest(TOPS, START), 0);
    assert_int_equal(heaviest(0, START), 0);
    add("free", "user:a", 1, 0, START);
    assert_int_equal(heaviest(1, START), 0);
}

static void exact_while_all_fit(void **state)
{
    (void)state;
    for (int round = 0; round < 10; round++)
        for (uint64_t i = 0; i < TOP_SUBJECTS; i++)
            add_number(top, i, 100 * (i + 1), START);
    assert_int_equal(heaviest(1, START), TOP_SUBJECTS);
    for (size_t i = 0; i < TOP_SUBJECTS; i++) {
        unsigned number = (unsigned)(TOP_SUBJECTS - 1 - i);
        assert_int_equal(number_of(&entries[i]), number);
        assert_int_equal(entries[i].per_s, rate_of(1000. * (number + 1)));
        assert_int_equal(entries[i].over_per_s, 0);
        assert_true(slice_eq(slice_of(entries[i].policy, entries[i].policy_len), SLICE("free")));
    }
}

static void a_newcomer_takes_the_smallest_over(void **state)
{
    (void)state;
    for (uint64_t i = 0; i < TOP_SUBJECTS; i++)
        add_number(top, i, 1000 * (i + 1), START);
    add_number(top, 999, 500, START);
    assert_int_equal(heaviest(1, START), TOP_SUBJECTS);
    for (size_t i = 0; i < TOP_SUBJECTS; i++)
        assert_int_not_equal(number_of(&entries[i]), 0);
    assert_int_equal(number_of(&entries[TOP_SUBJECTS - 1]), 999);
    assert_near(entries[TOP_SUBJECTS - 1].per_s, (500 * newness(0) + 1000) * PER_S);
    assert_near(entries[TOP_SUBJECTS - 1].over_per_s, 1000 * PER_S);
}

/*
 * Amounts to many subjects, a few of them heavy, over tables and time. The true sums are kept too.
 */
struct truth {
    double sums[MANY];
    double total;
    uint64_t now_ns;
};

static void add_many(struct truth *truth, size_t n_tops, uint64_t seed)
{
    truth->now_ns = START;
    for (int i = 0; i < 100000; i++) {
        uint64_t number = dice_below(&seed, dice_below(&seed, 2) ? MANY : 1 + MANY / 50);
        uint64_t amount = 1 + dice_below(&seed, 1000);
        add_number(tops[dice_below(&seed, n_tops)], number, amount, truth->now_ns);
        truth->sums[number] += (double)amount;
        truth->total += (double)amount;
    }
}

static void assert_bounds(const struct truth *truth, size_t n)
{
    bool is_listed[MANY] = {false};
    for (size_t i = 0; i < n; i++) {
        unsigned number = number_of(&entries[i]);
        assert_false(is_listed[number]);
        is_listed[number] = true;
        double is = truth->sums[number] * PER_S;
        assert_true((double)entries[i].per_s >= is - 1);
        double own = (double)entries[i].per_s - (double)entries[i].over_per_s;
        assert_true(own / entries[i].newness <= is + 1);
        assert_true((double)entries[i].over_per_s <= truth->total * PER_S / TOP_SUBJECTS + 1);
        assert_true(i == 0 || entries[i].per_s <= entries[i - 1].per_s);
    }
    for (size_t number = 0; number < MANY; number++)
        assert_true(is_listed[number] || truth->sums[number] <= truth->total / TOP_SUBJECTS);
}

static void bounded_when_not_all_fit(void **state)
{
    (void)state;
    struct truth truth = {0};
    add_many(&truth, 1, 1);
    size_t n = heaviest(1, truth.now_ns);
    assert_int_equal(n, TOP_SUBJECTS);
    assert_bounds(&truth, n);
}

static void at_most_as_many_as_asked_for(void **state)
{
    (void)state;
    for (uint64_t i = 0; i < 50; i++)
        add_number(top, i, 1000 + i, START);
    assert_int_equal(top_heaviest(tops, 1, TOP_COMMANDS, START, entries, 3), 3);
    assert_int_equal(number_of(&entries[2]), 47);
    assert_int_equal(top_heaviest(tops, 1, TOP_COMMANDS, START, entries, 0), 0);
}

static void metrics_are_apart(void **state)
{
    (void)state;
    top_add(top, TOP_REFUSED, SLICE("p"), SLICE("a"), 1, 1000, START);
    top_add(top, TOP_BYTES, SLICE("p"), SLICE("b"), 2, 2000, START);
    assert_int_equal(heaviest(1, START), 0);
    assert_int_equal(top_heaviest(tops, 1, TOP_BYTES, START, entries, 9), 1);
    assert_int_equal(entries[0].subject[0], 'b');
    assert_int_equal(top_heaviest(tops, 1, TOP_REFUSED, START, entries, 9), 1);
    assert_int_equal(entries[0].subject[0], 'a');
}

/* ---- names ---- */

static void one_hash_for_many_names(void **state)
{
    (void)state;
    add("p", "a", 1, 1000, START);
    add("p", "b", 1, 2000, START);
    add("q", "b", 1, 3000, START);
    add("", "", 1, 4000, START);
    add("p", "b", 1, 8000, START);
    add("p", "b", 2, 20000, START);
    assert_int_equal(heaviest(TOPS, START), 5);
    static const double sums[] = {20000, 10000, 4000, 3000, 1000};
    for (size_t i = 0; i < COUNT_OF(sums); i++)
        assert_int_equal(entries[i].per_s, rate_of(sums[i]));
}

/*
 * Runs of the index wrap around its end. An entry removed from a run must not hide other entries.
 */
static void hashes_that_collide(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < 50; seed++) {
        uint64_t few = 1 + dice_below(&seed, 5), dice_state = seed;
        top_free(top);
        top = tops[0] = top_new();
        double total = 0;
        for (int i = 0; i < 2000; i++) {
            uint64_t number = dice_below(&dice_state, 150);
            char name[32];
            snprintf(name, sizeof name, "user:%u", (unsigned)number);
            add("p", name, hash_of(number % few), 1000, START);
            total += 1000;
        }
        assert_int_equal(heaviest(1, START), TOP_SUBJECTS);
        bool is_listed[150] = {false};
        double listed = 0;
        for (size_t i = 0; i < TOP_SUBJECTS; i++) {
            assert_false(is_listed[number_of(&entries[i])]);
            is_listed[number_of(&entries[i])] = true;
            double own = (double)entries[i].per_s - (double)entries[i].over_per_s;
            listed += own / entries[i].newness + (double)entries[i].over_per_s;
        }
        assert_true(listed > total * PER_S - TOP_SUBJECTS && listed < total * PER_S + TOP_SUBJECTS);
    }
}

static void long_names_are_cut(void **state)
{
    (void)state;
    char subject[2 * SUBJECT_NAME_MAX], policy[2 * TOP_POLICY_MAX];
    memset(subject, 's', sizeof subject);
    memset(policy, 'p', sizeof policy);
    for (int i = 0; i < 2; i++)
        top_add(top, TOP_COMMANDS, slice_of(policy, sizeof policy),
                slice_of(subject, sizeof subject), 1, 1000, START);
    assert_int_equal(heaviest(1, START), 1);
    assert_int_equal(entries[0].subject_len, SUBJECT_NAME_MAX);
    assert_int_equal(entries[0].policy_len, TOP_POLICY_MAX);
    assert_memory_equal(entries[0].subject, subject, SUBJECT_NAME_MAX);
    assert_memory_equal(entries[0].policy, policy, TOP_POLICY_MAX);
    assert_int_equal(entries[0].per_s, rate_of(2000));
}

/* ---- decay ---- */

static void half_every_10_seconds(void **state)
{
    (void)state;
    add("p", "a", 1, 1000000, START);
    static const double left[] = {1, 0.933032991537, 0.870550563296, 0.707106781187,
                                  0.535886731268};
    static const uint64_t after_s[] = {0, 1, 2, 5, 9};
    for (uint64_t halvings = 0; halvings < 12; halvings++)
        for (size_t i = 0; i < COUNT_OF(left); i++) {
            assert_int_equal(heaviest(1, START + halvings * 10 * S + after_s[i] * S), 1);
            double sum = 1000000 * left[i] / (double)(1 << halvings);
            assert_near(entries[0].per_s,
                        sum * PER_S * newness((double)(halvings * 10 + after_s[i])));
        }
}

static void what_came_earlier_weighs_less(void **state)
{
    (void)state;
    add("p", "a", 1, 1000000, START);
    add("p", "b", 2, 600000, START + 10 * S);
    add("p", "a", 1, 200000, START + 15 * S);
    assert_int_equal(heaviest(1, START + 25 * S), 2);
    assert_near(entries[0].per_s, (1000000 * 0.176776695297 + 200000 * 0.5) * PER_S * newness(25));
    assert_near(entries[1].per_s, 600000 * 0.353553390593 * PER_S * newness(15));
}

static void a_steady_stream_shows_its_rate(void **state)
{
    (void)state;
    uint64_t now_ns = START;
    for (; now_ns < START + 200 * S; now_ns += S / 100)
        add("p", "a", 1, 50, now_ns);
    assert_int_equal(heaviest(1, now_ns), 1);
    assert_in_range(entries[0].per_s, 4995, 5005);
}

/* A subject that appeared a few seconds ago has its rate since then. */
static void a_newcomer_shows_its_rate(void **state)
{
    (void)state;
    uint64_t now_ns = START;
    for (; now_ns < START + 100 * S; now_ns += S / 100)
        add("p", "old", 1, 30, now_ns);
    uint64_t came_ns = now_ns;
    for (uint64_t i = 1; i <= 2000; i++) {
        add("p", "old", 1, 30, now_ns);
        add("p", "new", 2, 50, now_ns);
        now_ns = came_ns + i * S / 100;
        if (i % 500 != 0)
            continue;
        assert_int_equal(heaviest(1, now_ns), 2);
        assert_int_equal(entries[0].subject[0], 'n');
        assert_in_range(entries[0].per_s, 4990, 5010);
        assert_int_equal(entries[0].over_ns, i == 500 ? 5 * S : i == 1000 ? 10 * S : TOP_WINDOW_NS);
        assert_in_range(entries[1].per_s, 2990, 3010);
    }
}

/*
 * A subject that comes back has its rate since its return. Only the decayed rest of the old amounts
 * counts.
 */
static void who_comes_back_is_new(void **state)
{
    (void)state;
    add("p", "a", 1, 1000, START);
    add("p", "a", 1, 1000, START + 29 * S);
    assert_int_equal(heaviest(1, START + 29 * S), 1);
    assert_int_equal(entries[0].over_ns, TOP_WINDOW_NS);
    uint64_t now_ns = START + 130 * S;
    for (uint64_t i = 1; i <= 500; i++, now_ns += S / 100)
        add("p", "a", 1, 50, now_ns);
    assert_int_equal(heaviest(1, now_ns), 1);
    assert_in_range(entries[0].per_s, 4985, 5015);
    assert_int_equal(entries[0].over_ns, 5 * S);
    assert_int_equal(entries[0].over_per_s, 0);
}

/* Two workers, one of which has known the subject for longer. */
static void a_newcomer_to_one_of_two_tables(void **state)
{
    (void)state;
    for (uint64_t i = 0; i < 10000; i++)
        add_number(tops[0], 1, 50, START + i * S / 100);
    for (uint64_t i = 9500; i < 10000; i++)
        add_number(tops[1], 1, 50, START + i * S / 100);
    assert_int_equal(heaviest(2, START + 100 * S), 1);
    /* 5 s of the second table count, without the correction for a new subject */
    assert_in_range(entries[0].per_s, 5000 + 1400, 5000 + 1500);
    assert_int_equal(entries[0].over_ns, TOP_WINDOW_NS);
}

/* ---- other figures ---- */

static void refuse(struct top *to, const char *subject, uint64_t hash, uint32_t limit, uint64_t n,
                   uint64_t now_ns)
{
    const uint64_t amounts[TOP_BY_COUNT] = {[TOP_COMMANDS] = n, [TOP_REFUSED] = n};
    top_add_each(to, SLICE("p"), slice_str(subject), hash, amounts, limit, now_ns);
}

static uint32_t refuser_of(const char *subject, uint64_t now_ns)
{
    size_t n = heaviest(2, now_ns);
    for (size_t i = 0; i < n; i++)
        if (slice_eq(slice_of(entries[i].subject, entries[i].subject_len), slice_str(subject)))
            return entries[i].refused_by;
    fail_msg("%s is not there", subject);
    return 0;
}

static void which_limit_refuses_it_most(void **state)
{
    (void)state;
    add("p", "c", 3, 100, START);
    refuse(tops[0], "a", 1, 7, 100, START);
    refuse(tops[0], "a", 1, 16383, 60, START);
    refuse(tops[0], "b", 2, 0, 1, START);
    assert_int_equal(refuser_of("a", START), 7);
    assert_int_equal(refuser_of("b", START), 0);
    assert_int_equal(refuser_of("c", START), TOP_NO_LIMIT);
    refuse(tops[1], "a", 1, 16383, 60, START);
    assert_int_equal(refuser_of("a", START), 16383);
    refuse(tops[0], "a", 1, 7, 30, START + 10 * S); /* later, so it weighs more */
    assert_int_equal(refuser_of("a", START + 10 * S), 7);
    for (uint32_t limit = 100; limit < 200; limit++) /* more than there is room for */
        refuse(tops[0], "a", 1, limit, 1, START + 10 * S);
    refuse(tops[0], "a", 1, 300, 200, START + 10 * S);
    assert_int_equal(refuser_of("a", START + 10 * S), 300);
    add("p", "a", 1, 1000000, START + 200 * S);
    assert_int_equal(refuser_of("a", START + 200 * S), TOP_NO_LIMIT);
}

static void how_long_it_waits_for_its_turn(void **state)
{
    (void)state;
    uint64_t now_ns = START;
    for (uint64_t i = 0; i < 400; i++, now_ns += S / 100) {
        add("p", "a", 1, 10, now_ns);
        top_add(tops[i % 2], TOP_SHARE, SLICE("p"), SLICE("a"), 1, 5000, now_ns);
    }
    add("p", "b", 2, 1, now_ns);
    assert_int_equal(heaviest(2, now_ns), 2);
    assert_in_range(entries[0].share_us_per_s, 498000, 502000);
    assert_int_equal(entries[1].share_us_per_s, 0);
}

static void what_has_decayed_is_left_out(void **state)
{
    (void)state;
    add("p", "a", 1, 1024, START);
    assert_int_equal(heaviest(1, START + 109 * S), 1);
    assert_int_equal(heaviest(1, START + 111 * S), 0);
}

static void after_a_long_silence(void **state)
{
    (void)state;
    static const uint64_t silences_s[] = {1000, 100000, 10000000, UINT64_C(1000000000)};
    uint64_t now_ns = START;
    for (size_t i = 0; i < COUNT_OF(silences_s); i++) {
        for (uint64_t number = 0; number < 200; number++)
            add_number(top, number, UINT64_C(1) << 40, now_ns);
        now_ns += silences_s[i] * S;
        add("p", "user:500", 500, 100000, now_ns);
        assert_int_equal(heaviest(1, now_ns), 1);
        assert_int_equal(entries[0].per_s, rate_of(100000));
        assert_int_equal(entries[0].over_per_s, 0);
    }
}

static void an_earlier_time_counts_as_the_latest(void **state)
{
    (void)state;
    add("p", "a", 1, 1000, START);
    add("p", "a", 1, 1000, START - 100 * S);
    add("p", "a", 1, 1000, 0);
    assert_int_equal(heaviest(1, START - 50 * S), 1);
    assert_int_equal(entries[0].per_s, rate_of(3000));
}

static void the_largest_amounts(void **state)
{
    (void)state;
    for (int i = 0; i < 100; i++)
        add("p", "a", 1, UINT64_MAX, START + (uint64_t)i * S / 100);
    assert_int_equal(heaviest(1, START + S), 1);
    assert_true(entries[0].per_s >= UINT64_C(1) << 63);
    add("p", "b", 2, 1000, START + S);
    assert_int_equal(heaviest(1, START + S), 2);
    assert_int_equal(entries[1].per_s, rate_of(1000));
}

/* ---- several tables ---- */

static void tables_are_added_up(void **state)
{
    (void)state;
    for (size_t i = 0; i < TOPS; i++) {
        add_number(tops[i], 1, 10000, START);
        add_number(tops[i], 10 + i, 15000 + 1000 * i, START);
    }
    assert_int_equal(heaviest(TOPS, START), 1 + TOPS);
    assert_int_equal(number_of(&entries[0]), 1);
    assert_int_equal(entries[0].per_s, rate_of(40000));
    assert_int_equal(number_of(&entries[1]), 13);
    assert_int_equal(entries[1].per_s, rate_of(18000));
    for (size_t i = 0; i < 1 + TOPS; i++)
        assert_int_equal(entries[i].over_per_s, 0);
}

/* Each table keeps its own time. Sums are reported for the time of the query. */
static void tables_of_different_times(void **state)
{
    (void)state;
    add_number(tops[0], 1, 100000, START);
    add_number(tops[1], 1, 100000, START + 10 * S);
    add_number(tops[2], 1, 100000, START + 100 * S);
    assert_int_equal(heaviest(3, START + 100 * S), 1);
    assert_near(entries[0].per_s, 100000 * (1 + 1. / 512 + 1. / 1024) * PER_S * newness(100));
}

static void bounds_hold_over_tables(void **state)
{
    (void)state;
    struct truth truth = {0};
    add_many(&truth, TOPS, 2);
    size_t n = heaviest(TOPS, truth.now_ns);
    assert_true(n >= TOP_SUBJECTS);
    assert_bounds(&truth, n);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(nobody_at_first),
        TEST(exact_while_all_fit),
        TEST(a_newcomer_takes_the_smallest_over),
        TEST(bounded_when_not_all_fit),
        TEST(at_most_as_many_as_asked_for),
        TEST(metrics_are_apart),
        TEST(one_hash_for_many_names),
        TEST(hashes_that_collide),
        TEST(long_names_are_cut),
        TEST(half_every_10_seconds),
        TEST(what_came_earlier_weighs_less),
        TEST(a_steady_stream_shows_its_rate),
        TEST(a_newcomer_shows_its_rate),
        TEST(who_comes_back_is_new),
        TEST(a_newcomer_to_one_of_two_tables),
        TEST(which_limit_refuses_it_most),
        TEST(how_long_it_waits_for_its_turn),
        TEST(what_has_decayed_is_left_out),
        TEST(after_a_long_silence),
        TEST(an_earlier_time_counts_as_the_latest),
        TEST(the_largest_amounts),
        TEST(tables_are_added_up),
        TEST(tables_of_different_times),
        TEST(bounds_hold_over_tables),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
