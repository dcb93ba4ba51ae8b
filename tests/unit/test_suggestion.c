/*
 * Tests of suggested limits and of the distribution of peak rates behind them. The tests generate
 * traffic, make a suggestion and replay the traffic against a funnel with the suggested limit.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "dice.h"
#include "limit/funnel.h"
#include "limit/policy/limit.h"
#include "limit/figures/suggestion.h"

#define S NS_PER_S
#define SECONDS 180
#define START (UINT64_C(6000) * S)
#define MOST_SUBJECTS 400

/* ---- traffic ---- */

/*
 * A subject that sends a burst of commands in each period, each burst up to `jitter_ns` late.
 * Deterministic by seed.
 */
struct tenant {
    uint64_t seed;
    uint64_t every_ns;
    /* jitter_ns and the length of a burst are at most every_ns together: bursts do not overlap */
    uint64_t jitter_ns;
    uint32_t burst;
    uint64_t gap_ns;   /* between the commands of a burst */
    uint64_t phase_ns; /* start of the first burst */
    struct peaks peaks;
};

static struct tenant tenants[MOST_SUBJECTS];
static size_t n_tenants;

/* Start of burst i. False: the burst is after the end of the test. */
static bool comes(const struct tenant *tenant, uint64_t i, uint64_t *at_ns)
{
    uint64_t seed = tenant->seed + i * 7919;
    uint64_t late_ns = tenant->jitter_ns > 0 ? dice_below(&seed, tenant->jitter_ns) : 0;
    *at_ns = START + tenant->phase_ns + i * tenant->every_ns + late_ns;
    return *at_ns < START + SECONDS * S;
}

static void add_tenant(struct tenant tenant)
{
    _Atomic(struct peak_rates *) peak_rates = NULL;
    uint64_t at_ns;
    for (uint64_t i = 0; comes(&tenant, i, &at_ns); i++)
        for (uint32_t j = 0; j < tenant.burst; j++)
            peak_rates_add(&peak_rates, 1, 1, at_ns + j * tenant.gap_ns);
    tenant.peaks = peak_rates_get(atomic_load(&peak_rates), 0);
    peak_rates_free(atomic_load(&peak_rates));
    if (tenant.peaks.of[PEAK_1S] > 0)
        tenants[n_tenants++] = tenant;
}

/* A tenant that sends one command in each period, at a random time within the period. */
static void add_even(uint64_t seed, uint64_t every_ns)
{
    add_tenant(
        (struct tenant){.seed = seed, .every_ns = every_ns, .jitter_ns = every_ns, .burst = 1});
}

/* Number of the tenant's commands that the limit refuses. */
static uint64_t refused(const struct tenant *tenant, const struct rate *rate)
{
    struct funnel funnel = {0};
    uint64_t n = 0;
    uint64_t at_ns;
    for (uint64_t i = 0; comes(tenant, i, &at_ns); i++)
        for (uint32_t j = 0; j < tenant->burst; j++)
            n += funnel_take(&funnel, rate, at_ns + j * tenant->gap_ns, 1) > 0;
    return n;
}

static struct suggestion suggest_for(unsigned percentile)
{
    struct distribution distribution;
    distribution_init(&distribution, DISTRIBUTION_CELLS_MIN);
    for (size_t i = 0; i < n_tenants; i++)
        distribution_add(&distribution, &tenants[i].peaks, 1);
    assert_int_equal(distribution.subjects, n_tenants);
    struct suggestion made = suggestion_make(&distribution, SECONDS, percentile);
    distribution_fini(&distribution);
    return made;
}

static struct suggestion suggest(void)
{
    return suggest_for(SUGGESTION_GAPS);
}

/*
 * Checks that the suggested limit lets at least 99 of 100 tenants pass, apart from tenants above a
 * gap. Checks for each tenant what the suggestion says of the tenant. Returns the number of limited
 * tenants.
 */
static size_t play(const struct suggestion *suggestion)
{
    char why[128] = "";
    char text[SUGGESTION_ROOM];
    struct limit limit = {.unit = UNIT_COMMANDS};
    if (!limit_parse(suggestion_text(suggestion, text), UNIT_COMMANDS, &limit, why, sizeof why))
        fail_msg("%s: %s", text, why);
    size_t limited = 0;
    for (size_t i = 0; i < n_tenants; i++) {
        uint64_t n = refused(&tenants[i], &limit.rate);
        if (n > 0 && suggestion_passes(suggestion, &tenants[i].peaks))
            fail_msg("%s refuses tenant %zu, of which it says that it passes", text, i);
        if (n == 0 && suggestion_limits(suggestion, &tenants[i].peaks))
            fail_msg("%s refuses tenant %zu nothing, of which it says that it is limited", text, i);
        limited += n > 0;
    }
    if (limited > n_tenants / 100 && limited > suggestion->above)
        fail_msg("%s limits %zu of %zu", text, limited, n_tenants);
    return limited;
}

static double per_s(const struct suggestion *suggestion)
{
    return (double)suggestion->count / suggestion->period_s;
}

static int set_up(void **state)
{
    (void)state;
    n_tenants = 0;
    return 0;
}

/* ---- distributions ---- */

static void the_same_for_all(void **state)
{
    (void)state;
    for (size_t i = 0; i < 300; i++)
        add_even(i, S / 20);
    struct suggestion made = suggest();
    assert_int_equal(play(&made), 0);
    /* 20/s, plus a fifth, a sixteenth and a thirty-second for rounding, and two digits. */
    assert_true(per_s(&made) >= 20 && per_s(&made) <= 20 * 1.2 * 1.0625 * 1.03125 * 1.1);
    /* five seconds' worth at most, for traffic this even */
    assert_true(made.burst >= 2 && made.burst <= 100);
}

static void few_large_ones(void **state)
{
    (void)state;
    uint64_t seed = 1;
    for (size_t i = 0; i < 400; i++) {
        uint64_t rank = 1 + dice_below(&seed, 400);
        add_even(i, rank * S / 400); /* 400/s, 200/s, 133/s ...: like the sizes of cities */
    }
    struct suggestion made = suggest();
    play(&made);
    assert_true(per_s(&made) < 400);
    assert_true(per_s(&made) > 40);
}

static void one_bursty_tenant_is_limited_and_named(void **state)
{
    (void)state;
    for (size_t i = 0; i < 199; i++)
        add_even(i, S / 10);
    add_tenant((struct tenant){.seed = 199, .every_ns = 20 * S, .jitter_ns = S, .burst = 5000});
    struct suggestion made = suggest();
    assert_int_equal(play(&made), 1);
    assert_true(suggestion_limits(&made, &tenants[199].peaks));
    for (size_t i = 0; i < 199; i++)
        assert_true(suggestion_passes(&made, &tenants[i].peaks));
    assert_true(made.burst < 100);
}

/* ---- gaps ---- */

/* Adds n tenants with per_s commands a second each. */
static void add_group(size_t n, unsigned per_s)
{
    for (size_t i = 0; i < n; i++)
        add_even(n_tenants, S / per_s);
}

/*
 * Checks that the last `above` tenants are above a gap and limited. The other tenants set the
 * limit.
 */
static void assert_above(size_t above, unsigned ordinary_per_s)
{
    struct suggestion made = suggest();
    assert_int_equal(made.above, above);
    assert_true(per_s(&made) >= ordinary_per_s && per_s(&made) <= 2 * ordinary_per_s);
    assert_int_equal(play(&made), above);
    for (size_t i = 0; i < n_tenants; i++)
        assert_int_equal(suggestion_limits(&made, &tenants[i].peaks), i >= n_tenants - above);
}

static void one_abuser_of_24(void **state)
{
    (void)state;
    add_group(23, 10);
    add_group(1, 500);
    assert_above(1, 10);
}

static void three_abusers_of_100(void **state)
{
    (void)state;
    add_group(97, 5);
    add_group(1, 50);
    add_group(2, 400);
    assert_above(3, 5);
}

static void no_abuser(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 24; i++)
        add_group(1, 10 + i); /* the largest has three times the rate of the smallest */
    struct suggestion made = suggest();
    assert_int_equal(made.above, 0);
    assert_int_equal(play(&made), 0);
}

static void all_equal(void **state)
{
    (void)state;
    add_group(24, 10);
    struct suggestion made = suggest();
    assert_int_equal(made.above, 0);
    assert_int_equal(play(&made), 0);
}

/* As many large tenants as small ones: both groups are ordinary. */
static void two_groups(void **state)
{
    (void)state;
    add_group(12, 5);
    add_group(12, 200);
    struct suggestion made = suggest();
    assert_int_equal(made.above, 0);
    assert_int_equal(play(&made), 0);
}

static void one_tenant_alone(void **state)
{
    (void)state;
    add_group(1, 100);
    struct suggestion made = suggest();
    assert_int_equal(made.above, 0);
    assert_int_equal(play(&made), 0);
}

/* Tenants without commands do not count. */
static void zeros_do_not_count(void **state)
{
    const struct peaks zero = {{0, 0, 0}};
    struct distribution distribution;
    (void)state;
    add_group(3, 10);
    add_group(1, 500);
    distribution_init(&distribution, DISTRIBUTION_CELLS_MIN);
    for (size_t i = 0; i < n_tenants; i++)
        distribution_add(&distribution, &tenants[i].peaks, 1);
    for (size_t i = 0; i < 20; i++)
        distribution_add(&distribution, &zero, 1);
    struct suggestion made = suggestion_make(&distribution, SECONDS, SUGGESTION_GAPS);
    assert_int_equal(made.above, 0); /* one of four is a quarter */
    assert_true(suggestion_passes(&made, &tenants[3].peaks));
    distribution_fini(&distribution);
}

/*
 * A tenant with six commands a minute is not above a gap, if the other tenants send one in 150 s.
 */
static void next_to_nothing_has_no_gap(void **state)
{
    (void)state;
    for (size_t i = 0; i < 23; i++)
        add_even(i, 150 * S);
    add_even(23, 10 * S);
    struct suggestion made = suggest();
    assert_int_equal(made.above, 0);
    assert_int_equal(play(&made), 0);
}

/* A tenant with the same rate in bursts is above a gap of the burst. */
static void one_bursty_tenant_of_21(void **state)
{
    (void)state;
    add_group(20, 10);
    add_tenant((struct tenant){.seed = 20, .every_ns = 30 * S, .jitter_ns = S, .burst = 300});
    struct suggestion made = suggest();
    assert_int_equal(made.above, 1);
    assert_int_equal(play(&made), 1);
    assert_true(made.burst < 100);
}

static void a_percentile_knows_no_gaps(void **state)
{
    (void)state;
    add_group(20, 10);
    add_tenant((struct tenant){.seed = 20, .every_ns = 30 * S, .jitter_ns = S, .burst = 1000});
    struct suggestion all = suggest_for(99);
    assert_int_equal(all.above, 0);
    assert_int_equal(play(&all), 0);
    assert_in_range(all.burst, 1000, 3000); /* two such bursts may coincide; and rounding */
    struct suggestion whole = suggest_for(100);
    assert_int_equal(whole.burst, all.burst);
    struct suggestion most = suggest_for(90);
    assert_true(most.burst < 100);
    assert_true(suggestion_limits(&most, &tenants[20].peaks));
}

static void one_less_is_as_if_it_had_not_been(void **state)
{
    struct distribution distribution;
    (void)state;
    add_group(23, 10);
    add_group(1, 500);
    distribution_init(&distribution, DISTRIBUTION_CELLS_MIN);
    for (size_t i = 0; i < n_tenants; i++)
        distribution_add(&distribution, &tenants[i].peaks, 1);
    distribution_take(&distribution, &tenants[23].peaks);
    distribution_take(&distribution, &tenants[23].peaks); /* the tenant has been taken out before */
    assert_int_equal(distribution.subjects, 23);
    struct suggestion made = suggestion_make(&distribution, SECONDS, 100);
    assert_true(suggestion_limits(&made, &tenants[23].peaks));
    assert_true(per_s(&made) < 20);
    distribution_fini(&distribution);
}

static void seldom_is_said_by_the_minute_and_hour(void **state)
{
    (void)state;
    char text[SUGGESTION_ROOM];
    for (size_t i = 0; i < 10; i++)
        add_even(i, 30 * S);
    struct suggestion made = suggest();
    play(&made);
    assert_int_equal(made.period_s, 3600);
    suggestion_text(&made, text);
    assert_non_null(strstr(text, "/h burst "));
    n_tenants = 0;
    for (size_t i = 0; i < 10; i++)
        add_even(i, S);
    made = suggest();
    play(&made);
    assert_int_equal(made.period_s, 60);
}

/*
 * A burst across the boundary of two windows: each window sees only a part of the burst. The
 * suggested burst allows for two such parts.
 */
static void bursts_lie_across_windows(void **state)
{
    (void)state;
    for (size_t i = 0; i < 100; i++)
        add_tenant((struct tenant){
            .every_ns = 60 * S, .burst = 200, .gap_ns = 2 * NS_PER_MS, .phase_ns = 10 * S - S / 5});
    assert_int_equal(tenants[0].peaks.of[PEAK_10S], 100);
    struct suggestion made = suggest();
    play(&made);
}

static struct tenant any_tenant(uint64_t *seed)
{
    struct tenant tenant = {.seed = dice(seed)};
    tenant.every_ns = S / 50 + dice_scale(seed, 60 * S);
    tenant.phase_ns = dice_below(seed, tenant.every_ns);
    uint64_t most = 1 + tenant.every_ns * 50 / S;
    tenant.burst = (uint32_t)dice_scale(seed, most < 300 ? most : 300);
    uint64_t long_ns = dice_below(seed, tenant.every_ns < 12 * S ? tenant.every_ns : 12 * S);
    tenant.gap_ns = dice_below(seed, 2) * long_ns / tenant.burst;
    tenant.jitter_ns = dice_below(seed, 2) * (tenant.every_ns - tenant.gap_ns * tenant.burst);
    return tenant;
}

/* Random traffic: tenants that pass pass, and tenants that are limited are limited. */
static void any_distribution(void **state)
{
    (void)state;
    for (uint64_t round = 0; round < dice_rounds(20); round++) {
        uint64_t seed = round;
        n_tenants = 0;
        for (size_t left = 5 + dice_below(&seed, 150); left > 0; left--)
            add_tenant(any_tenant(&seed));
        struct suggestion made = suggest();
        play(&made);
    }
}

/* In the first minutes the rate is taken from the peak of the shorter window. */
static void a_short_look_gives_more(void **state)
{
    (void)state;
    const struct peaks peaks = {{100, 200, 300}};
    struct distribution distribution;
    distribution_init(&distribution, DISTRIBUTION_CELLS_MIN);
    distribution_add(&distribution, &peaks, 10);
    struct suggestion at_once = suggestion_make(&distribution, 2, SUGGESTION_GAPS);
    struct suggestion soon = suggestion_make(&distribution, 60, SUGGESTION_GAPS);
    struct suggestion later = suggestion_make(&distribution, 3600, SUGGESTION_GAPS);
    assert_true(per_s(&at_once) >= 100 && per_s(&soon) >= 20 && per_s(&soon) < 40);
    assert_true(per_s(&later) >= 5 && per_s(&later) < 10);
    assert_true(suggestion_passes(&later, &peaks));
    distribution_fini(&distribution);
}

static void too_little_is_said_to_be(void **state)
{
    (void)state;
    assert_false(suggestion_has_enough(0, 100000));
    assert_false(suggestion_has_enough(3, 40));
    assert_true(suggestion_has_enough(1, 60));
    assert_true(suggestion_has_enough(5, 0));
}

/* ---- the distribution itself ---- */

static uint32_t peak_of(uint64_t *seed)
{
    return (uint32_t)dice_scale(seed, UINT32_MAX);
}

static void a_cell_holds_its_peaks(void **state)
{
    (void)state;
    uint64_t seed = 1;
    for (uint64_t i = 0; i < dice_rounds(20000); i++) {
        struct distribution distribution;
        struct peaks peaks = {{peak_of(&seed), peak_of(&seed), peak_of(&seed)}};
        struct peaks upper;
        size_t at = 0;
        distribution_init(&distribution, DISTRIBUTION_CELLS_MIN);
        distribution_add(&distribution, &peaks, 3);
        const struct distribution_cell *cell = distribution_next(&distribution, &at, &upper);
        assert_non_null(cell);
        assert_int_equal(cell->subjects, 3);
        const struct peaks lower = distribution_lower(&distribution, cell);
        for (unsigned j = 0; j < PEAKS; j++) {
            assert_true(lower.of[j] <= peaks.of[j] && peaks.of[j] <= upper.of[j]);
            assert_true((double)upper.of[j] <= peaks.of[j] * 1.0625);
        }
        assert_null(distribution_next(&distribution, &at, &upper));
        distribution_fini(&distribution);
    }
}

/*
 * Random consistent peaks: each longer window is between the largest shorter window and the sum of
 * ten or six of them.
 */
static struct peaks any_peaks(uint64_t *seed)
{
    uint32_t p1 = (uint32_t)dice_scale(seed, 1 << 25);
    uint32_t p10 = p1 + (uint32_t)dice_below(seed, 9 * (uint64_t)p1 + 1);
    uint32_t p60 = p10 + (uint32_t)dice_below(seed, 5 * (uint64_t)p10 + 1);
    return (struct peaks){{p1, p10, p60}};
}

static void memory_is_bounded_and_nobody_is_lost(void **state)
{
    (void)state;
    uint64_t seed = 2;
    struct distribution distribution;
    distribution_init(&distribution, DISTRIBUTION_CELLS_MIN);
    for (uint64_t i = 1; i <= 200000; i++) {
        const struct peaks peaks = any_peaks(&seed);
        distribution_add(&distribution, &peaks, 1);
        if (i % 10000 != 0)
            continue;
        struct peaks upper;
        size_t at = 0;
        uint64_t subjects = 0;
        for (const struct distribution_cell *cell;
             (cell = distribution_next(&distribution, &at, &upper)) != NULL;)
            subjects += cell->subjects;
        assert_int_equal(subjects, i);
        assert_int_equal(distribution.subjects, i);
    }
    assert_int_equal(distribution.n_cells, DISTRIBUTION_CELLS_MIN);
    assert_true(distribution.used * 4 <= distribution.n_cells * 3);
    distribution_fini(&distribution);
}

static void what_is_merged_is_what_there_was(void **state)
{
    (void)state;
    uint64_t seed = 3;
    struct distribution one, other, copy;
    distribution_init(&one, DISTRIBUTION_CELLS_MIN);
    distribution_init(&other, 8 * DISTRIBUTION_CELLS_MIN);
    uint64_t most = 0;
    for (uint64_t i = 0; i < 5000; i++) {
        const struct peaks peaks = any_peaks(&seed);
        distribution_add(i % 2 ? &one : &other, &peaks, 1);
        most = peaks.of[PEAK_60S] > most ? peaks.of[PEAK_60S] : most;
    }
    distribution_copy(&copy, &one);
    assert_int_equal(copy.subjects, one.subjects);
    distribution_merge(&other, &copy);
    assert_int_equal(other.subjects, 5000);
    struct suggestion made = suggestion_make(&other, 100000, SUGGESTION_GAPS);
    assert_true(per_s(&made) * 60 <= 1.2 * 2.2 * (double)most);
    distribution_fini(&one);
    distribution_fini(&other);
    distribution_fini(&copy);
}

static void what_covers_another(void **state)
{
    const struct suggestion all = {60, 1, 100, 0};
    const struct {
        struct suggestion loose;
        bool is_covered;
    } rows[] = {
        {{60, 1, 100, 0}, true},        {{61, 1, 100, 0}, true},    {{60, 1, 99, 0}, false},
        {{59, 1, 1000, 0}, false},      {{3600, 60, 100, 0}, true}, {{3599, 60, 100, 0}, false},
        {{216001, 3600, 101, 0}, true},
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        assert_int_equal(suggestion_covers(&all, &rows[i].loose), rows[i].is_covered);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(the_same_for_all, set_up),
        cmocka_unit_test_setup(few_large_ones, set_up),
        cmocka_unit_test_setup(one_bursty_tenant_is_limited_and_named, set_up),
        cmocka_unit_test_setup(one_abuser_of_24, set_up),
        cmocka_unit_test_setup(three_abusers_of_100, set_up),
        cmocka_unit_test_setup(no_abuser, set_up),
        cmocka_unit_test_setup(all_equal, set_up),
        cmocka_unit_test_setup(two_groups, set_up),
        cmocka_unit_test_setup(one_tenant_alone, set_up),
        cmocka_unit_test_setup(zeros_do_not_count, set_up),
        cmocka_unit_test_setup(next_to_nothing_has_no_gap, set_up),
        cmocka_unit_test_setup(one_bursty_tenant_of_21, set_up),
        cmocka_unit_test_setup(a_percentile_knows_no_gaps, set_up),
        cmocka_unit_test_setup(one_less_is_as_if_it_had_not_been, set_up),
        cmocka_unit_test_setup(seldom_is_said_by_the_minute_and_hour, set_up),
        cmocka_unit_test_setup(bursts_lie_across_windows, set_up),
        cmocka_unit_test_setup(any_distribution, set_up),
        cmocka_unit_test(a_short_look_gives_more),
        cmocka_unit_test(too_little_is_said_to_be),
        cmocka_unit_test(a_cell_holds_its_peaks),
        cmocka_unit_test(what_covers_another),
        cmocka_unit_test(memory_is_bounded_and_nobody_is_lost),
        cmocka_unit_test(what_is_merged_is_what_there_was),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
