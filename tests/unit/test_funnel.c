/*
 * Tests of funnels: the bound on what passes, an exact model that keeps every admission, and the
 * limits of time.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "dice.h"
#include "funnel_law.h"
#include "limit/funnel.h"

#define S UINT64_C(1000000000)
#define DAY (86400 * S)
#define LATE (UINT64_C(1) << 62)

static struct rate rate_of(uint64_t count, uint64_t period_ns, uint64_t burst)
{
    struct rate rate;
    assert_true(rate_init(&rate, count, period_ns, burst));
    return rate;
}

static uint64_t word(struct funnel *funnel)
{
    return atomic_load(&funnel->tat_ns);
}

/* Rates from 1/day to 1e9/s, with bursts that drain within a century. */
static struct rate random_rate(uint64_t *seed)
{
    static const uint64_t periods[] = {S / 1000, S, 60 * S, 3600 * S, DAY};
    for (;;) {
        struct rate rate;
        uint64_t period_ns = periods[dice_below(seed, 5)];
        uint64_t count = dice_scale(seed, 1000000000);
        if ((unsigned __int128)count * S > (unsigned __int128)period_ns * 1000000000)
            continue;
        if (rate_init(&rate, count, period_ns, dice_scale(seed, 1000)))
            return rate;
    }
}

static void rates_are_rounded_up(void **state)
{
    (void)state;
    struct rate rate = rate_of(3, 1000, 7);
    assert_int_equal(rate.interval_ns, 334);
    assert_int_equal(rate.burst_ns, 7 * 334);
    assert_int_equal(rate_of(1000, S, 1).interval_ns, 1000000);
    assert_int_equal(rate_of(UINT64_MAX, 1, 1).interval_ns, 1);
    assert_int_equal(rate_of(1000000000, S, 5).burst_ns, 5);
}

static void rates_beyond_meaning_are_refused(void **state)
{
    (void)state;
    struct rate rate;
    assert_false(rate_init(&rate, 0, S, 1));
    assert_false(rate_init(&rate, 1, 0, 1));
    assert_false(rate_init(&rate, 1, S, 0));
    assert_true(rate_init(&rate, 1, DAY, 36525));
    assert_false(rate_init(&rate, 1, DAY, 36526));
    /* the rounding does not make the rate too slow */
    assert_true(rate_init(&rate, 7, 36525 * DAY, 7));
    assert_false(rate_init(&rate, 7, 36525 * DAY + 1, 7));
    assert_false(rate_init(&rate, UINT64_MAX, 1, UINT64_MAX));
    assert_false(rate_init(&rate, 1, UINT64_MAX, UINT64_MAX));
}

static void burst_passes_from_rest(void **state)
{
    (void)state;
    static const uint64_t times[] = {0, 1, S, LATE};
    for (size_t i = 0; i < 4; i++) {
        struct funnel funnel = {0};
        struct rate rate = rate_of(5, 60 * S, 5);
        for (int k = 0; k < 5; k++)
            assert_int_equal(funnel_take(&funnel, &rate, times[i], 1), 0);
        assert_int_equal(funnel_take(&funnel, &rate, times[i], 1), 12 * S);
        assert_int_equal(funnel_take(&funnel, &rate, times[i] + 12 * S, 1), 0);
        assert_int_equal(funnel_take(&funnel, &rate, times[i] + 12 * S, 1), 12 * S);
    }
}

static void longest_burst_works_late(void **state)
{
    (void)state;
    struct funnel funnel = {0};
    struct rate rate = rate_of(1, DAY, 36525);
    assert_int_equal(funnel_take(&funnel, &rate, LATE, 36525), 0);
    assert_int_equal(funnel_take(&funnel, &rate, LATE, 36525), RATE_LONGEST_NS);
    assert_int_equal(funnel_take(&funnel, &rate, LATE, 1), DAY);
    assert_int_equal(funnel_take(&funnel, &rate, LATE + DAY, 1), 0);
}

static void refusal_writes_nothing(void **state)
{
    (void)state;
    struct funnel funnel = {0};
    struct rate rate = rate_of(10, S, 10);
    assert_int_equal(funnel_take(&funnel, &rate, 7, 8), 0);
    uint64_t before = word(&funnel);
    assert_int_not_equal(funnel_take(&funnel, &rate, 7, 3), 0);
    assert_int_equal(word(&funnel), before);
    assert_int_equal(funnel_take(&funnel, &rate, 7, 11), FUNNEL_NEVER);
    assert_int_equal(funnel_take(&funnel, &rate, 7, UINT64_MAX), FUNNEL_NEVER);
    assert_int_equal(word(&funnel), before);
    assert_int_equal(funnel_ask(&funnel, &rate, 7, 2), 0);
    assert_int_equal(word(&funnel), before);
}

static void older_time_is_only_stricter(void **state)
{
    (void)state;
    struct funnel funnel = {0};
    struct rate rate = rate_of(1000, S, 10);
    assert_int_equal(funnel_take(&funnel, &rate, S, 10), 0);
    uint64_t before = word(&funnel);
    assert_int_equal(funnel_take(&funnel, &rate, S - 500, 1), S / 1000 + 500);
    assert_int_equal(funnel_take(&funnel, &rate, 0, 1), S / 1000 + S);
    assert_int_equal(word(&funnel), before);
    assert_int_equal(funnel_take(&funnel, &rate, S + S / 1000, 1), 0);
}

static void debt_is_time_under_another_rate(void **state)
{
    (void)state;
    struct funnel funnel = {0};
    struct rate slow = rate_of(1, S, 10), fast = rate_of(10, S, 10);
    assert_int_equal(funnel_take(&funnel, &slow, 0, 10), 0);
    assert_int_equal(funnel_take(&funnel, &fast, 0, 1), 9 * S + S / 10);
    assert_int_equal(funnel_take(&funnel, &fast, 9 * S + S / 10, 1), 0);
}

/* ---- properties ---- */

/*
 * The model admits a cost if no window that ends now would hold more than burst + w / interval. The
 * model keeps all admissions and computes in integers. For a fine rate the interval is not rounded.
 */
static bool model_admits(const struct admitted *list, size_t n, const struct rate *rate,
                         uint64_t now_ns, uint64_t cost)
{
    unsigned __int128 units = rate_is_fine(rate) ? rate->count : 1;
    unsigned __int128 time = rate_is_fine(rate) ? rate->period_ns : rate->interval_ns;
    unsigned __int128 sum = cost;
    if (sum > rate->burst)
        return false;
    for (size_t i = n; i-- > 0;) {
        sum += list[i].cost;
        if (sum * time > rate->burst * time + (now_ns - list[i].at_ns) * units)
            return false;
    }
    return true;
}

/*
 * A funnel of a fine rate starts with whole units. Such a funnel may be up to two units stricter
 * than the model, except for one cost at rest.
 */
static void assert_as_the_model(const struct admitted *list, size_t n, const struct rate *rate,
                                uint64_t now_ns, uint64_t cost, bool is_taken, bool was_empty)
{
    if (is_taken || !rate_is_fine(rate))
        assert_int_equal(is_taken, model_admits(list, n, rate, now_ns, cost));
    else
        assert_false(model_admits(list, n, rate, now_ns, cost + 2) ||
                     (was_empty && cost <= rate->burst));
}

/* A short random time, mostly near the time at which the decision changes. */
static uint64_t random_step(uint64_t *seed, const struct rate *rate)
{
    if (dice_below(seed, 3) == 0)
        return 0;
    if (dice_below(seed, 20) == 0)
        return dice_scale(seed, 2 * rate->burst_ns);
    return dice_below(seed, 3 * rate->interval_ns);
}

static uint64_t random_cost(uint64_t *seed, const struct rate *rate)
{
    if (dice_below(seed, 2))
        return 1;
    return dice_below(seed, rate->burst + 2);
}

static void check_refusal(struct funnel *funnel, const struct rate *rate, uint64_t now_ns,
                          uint64_t cost, uint64_t wait_ns)
{
    if (cost > rate->burst) {
        assert_int_equal(wait_ns, FUNNEL_NEVER);
        return;
    }
    assert_int_equal(funnel_ask(funnel, rate, now_ns + wait_ns, cost), 0);
    assert_int_equal(funnel_ask(funnel, rate, now_ns + wait_ns - 1, cost), 1);
}

static void round_against_model(uint64_t seed)
{
    struct admitted list[120];
    size_t n = 0;
    struct rate rate = random_rate(&seed);
    struct funnel funnel = {0};
    uint64_t now_ns = dice_below(&seed, 4) ? dice_scale(&seed, LATE) : 0;
    while (n < sizeof list / sizeof list[0]) {
        now_ns += random_step(&seed, &rate);
        uint64_t cost = random_cost(&seed, &rate);
        uint64_t before = word(&funnel);
        uint64_t asked_ns = funnel_ask(&funnel, &rate, now_ns, cost);
        uint64_t wait_ns = funnel_take(&funnel, &rate, now_ns, cost);
        assert_int_equal(asked_ns, wait_ns);
        assert_as_the_model(list, n, &rate, now_ns, cost, wait_ns == 0, before <= now_ns);
        if (wait_ns == 0) {
            list[n++] = (struct admitted){now_ns, cost};
            continue;
        }
        assert_int_equal(word(&funnel), before);
        check_refusal(&funnel, &rate, now_ns, cost, wait_ns);
    }
    assert_true(law_holds(list, n, &rate));
}

static void funnel_equals_the_model(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 400; seed++)
        round_against_model(seed);
}

/* Clocks of several threads: each now_ns is a little before or after the true time. */
static void law_holds_when_times_go_back(void **state)
{
    (void)state;
    for (uint64_t round = 1; round <= 200; round++) {
        struct admitted list[200];
        size_t n = 0;
        uint64_t seed = round;
        struct rate rate = random_rate(&seed);
        struct funnel funnel = {0};
        uint64_t now_ns = 10 * rate.interval_ns;
        for (int i = 0; i < 4000 && n < 200; i++) {
            now_ns += random_step(&seed, &rate);
            uint64_t stale_ns = now_ns - dice_below(&seed, 10 * rate.interval_ns);
            uint64_t cost = random_cost(&seed, &rate);
            if (funnel_take(&funnel, &rate, stale_ns, cost) == 0)
                list[n++] = (struct admitted){stale_ns, cost};
        }
        assert_true(law_holds(list, n, &rate));
    }
}

/*
 * A client that retries after each returned wait gets at least 99 % of the rate, and the burst but
 * for one unit. The exception is a fine rate with a burst of a few units taken at once: whole
 * nanoseconds allow no more.
 */
static void assert_reached(const struct rate *rate, uint64_t start_ns, uint64_t cost)
{
    struct funnel funnel = {0};
    uint64_t now_ns = start_ns, taken = 0;
    if (rate_is_fine(rate) && rate->burst < 100 && cost * 2 > rate->burst)
        return;
    while (funnel_take(&funnel, rate, now_ns, cost) == 0)
        taken += cost;
    assert_true(taken + cost + rate_is_fine(rate) > rate->burst);
    taken = 0;
    for (int i = 0; i < 1000; i++) {
        now_ns += funnel_ask(&funnel, rate, now_ns, cost);
        assert_int_equal(funnel_take(&funnel, rate, now_ns, cost), 0);
        taken += cost;
    }
    assert_true((unsigned __int128)taken * rate->period_ns * 100 >=
                (unsigned __int128)(now_ns - start_ns) * rate->count * 99);
}

static void the_rate_is_reached(void **state)
{
    (void)state;
    for (uint64_t round = 1; round <= 300; round++) {
        uint64_t seed = round;
        struct rate rate = random_rate(&seed);
        assert_reached(&rate, dice_below(&seed, 2) ? 0 : dice_scale(&seed, LATE),
                       1 + dice_below(&seed, rate.burst));
    }
    static const uint64_t per_s[] = {700000000, 999999999, 501000000,
                                     300000000, 70000000,  10110000};
    for (size_t i = 0; i < sizeof per_s / sizeof per_s[0]; i++)
        for (uint64_t burst = 1; burst <= 1000000; burst *= 100) {
            struct rate rate = rate_of(per_s[i], S, burst);
            assert_true(rate_is_fine(&rate));
            assert_reached(&rate, 12345678901, 1);
            assert_reached(&rate, 12345678901, burst);
        }
}

/* An empty funnel decides like a fresh one, so it may be dropped. */
static void an_empty_funnel_equals_a_fresh_one(void **state)
{
    (void)state;
    for (uint64_t round = 1; round <= 200; round++) {
        uint64_t seed = round, now_ns = 0;
        struct rate rate = random_rate(&seed);
        struct funnel kept = {0}, forgotten = {0};
        for (int i = 0; i < 200; i++) {
            now_ns += random_step(&seed, &rate);
            uint64_t cost = random_cost(&seed, &rate);
            if (funnel_is_empty(&forgotten, now_ns))
                forgotten = (struct funnel){0};
            assert_int_equal(funnel_take(&kept, &rate, now_ns, cost),
                             funnel_take(&forgotten, &rate, now_ns, cost));
        }
    }
}

static void emptiness_turns_on_the_nanosecond(void **state)
{
    (void)state;
    struct funnel funnel = {0};
    struct rate rate = rate_of(1, S, 3);
    assert_true(funnel_is_empty(&funnel, 0));
    assert_int_equal(funnel_take(&funnel, &rate, 5, 2), 0);
    assert_false(funnel_is_empty(&funnel, 5 + 2 * S - 1));
    assert_true(funnel_is_empty(&funnel, 5 + 2 * S));
}

static void a_charge_equals_a_take(void **state)
{
    (void)state;
    for (uint64_t round = 1; round <= 100; round++) {
        uint64_t seed = round, now_ns = dice_scale(&seed, LATE);
        struct rate rate = random_rate(&seed);
        struct funnel taken = {0}, charged = {0};
        for (int i = 0; i < 100; i++) {
            now_ns += random_step(&seed, &rate);
            uint64_t cost = random_cost(&seed, &rate);
            if (funnel_ask(&charged, &rate, now_ns, cost) == 0)
                funnel_charge(&charged, &rate, now_ns, cost);
            (void)!funnel_take(&taken, &rate, now_ns, cost);
            assert_int_equal(word(&taken), word(&charged));
        }
    }
}

/* ---- of bytes, in a queue, as a number ---- */

static void bytes_are_not_rounded_one_by_one(void **state)
{
    (void)state;
    struct rate rate;
    assert_true(rate_init_bytes(&rate, 10 << 20, S, 40 << 20));
    assert_int_equal(rate.burst_ns, 4 * S);
    assert_int_equal(rate_span_ns(&rate, 10 << 20), S);
    assert_int_equal(rate_span_ns(&rate, 0), 0);
    assert_int_equal(rate_span_ns(&rate, 1), 96); /* exactly 95.4 */
    assert_int_equal(rate_span_ns(&rate, UINT64_MAX), RATE_LONGEST_NS);
    /* a byte takes less than a nanosecond */
    assert_true(rate_init_bytes(&rate, UINT64_C(9) << 30, S, 1));
    assert_int_equal(rate.burst_ns, 1);
    assert_int_equal(rate_span_ns(&rate, UINT64_C(9) << 30), S);
    assert_false(rate_init_bytes(&rate, 1, DAY, 36526));
    uint64_t seed = 1;
    for (int i = 0; i < 10000; i++) {
        if (!rate_init_bytes(&rate, dice_scale(&seed, INT64_MAX), dice_scale(&seed, DAY),
                             dice_scale(&seed, INT64_MAX)))
            continue;
        uint64_t n = dice_scale(&seed, UINT64_MAX);
        unsigned __int128 span_ns = rate_span_ns(&rate, n);
        if (span_ns == RATE_LONGEST_NS)
            continue;
        assert_true(span_ns * rate.count >= (unsigned __int128)n * rate.period_ns);
        assert_true((span_ns - 1) * rate.count < (unsigned __int128)n * rate.period_ns);
    }
}

static void debts_add_up_and_have_an_end(void **state)
{
    (void)state;
    struct funnel funnel = {0};
    funnel_owe(&funnel, S, 5);
    funnel_owe(&funnel, S, 7);
    assert_int_equal(word(&funnel), S + 12);
    funnel_owe(&funnel, S / 2, 1); /* an older time */
    assert_int_equal(word(&funnel), S + 13);
    funnel_owe(&funnel, 9 * S, 0);
    assert_int_equal(word(&funnel), 9 * S);
    funnel_owe(&funnel, 9 * S, RATE_LONGEST_NS);
    funnel_owe(&funnel, 9 * S, RATE_LONGEST_NS);
    assert_int_equal(word(&funnel), 9 * S + RATE_LONGEST_NS);
    funnel = (struct funnel){0};
    funnel_owe(&funnel, LATE, RATE_LONGEST_NS);
    assert_int_equal(word(&funnel), LATE + RATE_LONGEST_NS);
}

/* The wait that a queue returns is the wait after which a take passes. */
static void a_queue_waits_as_long_as_a_take_refuses(void **state)
{
    (void)state;
    for (uint64_t round = 1; round <= 200; round++) {
        uint64_t seed = round, now_ns = dice_scale(&seed, LATE);
        struct rate rate = random_rate(&seed);
        struct funnel funnel = {0};
        for (int i = 0; i < 100; i++) {
            now_ns += random_step(&seed, &rate);
            uint64_t cost = 1 + dice_below(&seed, rate.burst);
            uint64_t wait_ns = funnel_queue(&funnel, &rate, now_ns, cost);
            assert_int_equal(wait_ns, funnel_ask(&funnel, &rate, now_ns, cost));
            if (dice_below(&seed, 2))
                funnel_enqueue(&funnel, &rate, now_ns, cost);
        }
    }
    struct rate rate = rate_of(10, S, 2);
    struct funnel funnel = {0};
    assert_int_equal(funnel_queue(&funnel, &rate, 0, 7), 5 * S / 10);
    assert_int_equal(funnel_queue(&funnel, &rate, LATE, UINT64_MAX),
                     RATE_LONGEST_NS - rate.burst_ns);
    assert_int_equal(funnel_queue_span(&rate, UINT64_MAX), RATE_LONGEST_NS);
    assert_int_equal(funnel_queue_span(&rate, 7), 7 * S / 10);
}

/* ---- fine rates: units that are not whole nanoseconds, and shorter than 100 ---- */

static void fine_is_what_rounding_would_spoil(void **state)
{
    (void)state;
    static const struct {
        uint64_t count, period_ns;
        bool is_fine;
    } rates[] = {
        {700000000, S, true},
        {999999999, S, true},
        {1000000000, S, false},
        {500000000, S, false},
        {3, 10, true},
        /* 99.3 is near enough to 100 */
        {10110000, S, true},
        {10000000, S, false},
        {3, 298, false},
        {3, 296, true},
        {UINT64_MAX, S, false},
        {1000, S, false},
    };
    for (size_t i = 0; i < sizeof rates / sizeof rates[0]; i++) {
        struct rate rate = rate_of(rates[i].count, rates[i].period_ns, 1000);
        assert_int_equal(rate_is_fine(&rate), rates[i].is_fine);
        assert_true(rate_init_bytes(&rate, rates[i].count, rates[i].period_ns, 1000));
        assert_false(rate_is_fine(&rate));
    }
}

/* At 0.7 units a nanosecond unit k is due at 10 k / 7, rounded up: 2, 3, 5, 6, 8, 9, 10. */
static void fine_units_add_up(void **state)
{
    (void)state;
    static const uint64_t due_ns[] = {2, 3, 5, 6, 8, 9, 10, 12};
    struct rate rate = rate_of(7, 10, 100);
    struct funnel funnel = {0};
    for (size_t i = 0; i < sizeof due_ns / sizeof due_ns[0]; i++) {
        assert_int_equal(funnel_room(&rate, word(&funnel), 0), 100 - i);
        assert_int_equal(funnel_take(&funnel, &rate, 0, 1), 0);
        assert_int_equal(word(&funnel), due_ns[i]);
    }
    assert_int_equal(funnel_take(&funnel, &rate, 0, 92), 0); /* the rest of the burst at once */
    assert_int_equal(word(&funnel), 143);
    assert_int_equal(funnel_room(&rate, word(&funnel), 0), 0);
    assert_int_equal(funnel_take(&funnel, &rate, 0, 1), 2);
    assert_int_equal(funnel_take(&funnel, &rate, 1, 1), 1);
    assert_int_equal(funnel_take(&funnel, &rate, 2, 1), 0);
    assert_int_equal(funnel_take(&funnel, &rate, 2, 101), FUNNEL_NEVER);

    /*
     * From rest between two units: a whole burst passes in one cost. In pieces all but one unit
     * pass.
     */
    assert_int_equal(funnel_take(&funnel, &rate, 1001, 100), 0);
    assert_int_equal(word(&funnel), (701 + 100) * 10 / 7 + 1);
    funnel = (struct funnel){0};
    for (int i = 0; i < 99; i++)
        assert_int_equal(funnel_take(&funnel, &rate, 1001, 1), 0);
    assert_int_equal(funnel_take(&funnel, &rate, 1001, 1), 1);
    assert_int_equal(funnel_take(&funnel, &rate, 1002, 1), 0);
}

/*
 * A debt is time for a fine rate too. The debt converted to the fine rate is never less than
 * before.
 */
static void fine_rates_keep_debts(void **state)
{
    (void)state;
    struct rate slow = rate_of(1, S, 10), fine = rate_of(700000000, S, 700000000);
    struct funnel funnel = {0};
    assert_int_equal(funnel_take(&funnel, &slow, 0, 10), 0);
    uint64_t wait_ns = funnel_take(&funnel, &fine, 0, 1);
    assert_in_range(wait_ns, 9 * S + 1, 9 * S + 2);
    assert_int_equal(funnel_take(&funnel, &fine, wait_ns, 1), 0);
    assert_in_range(word(&funnel), 10 * S + 2, 10 * S + 3);
    funnel = (struct funnel){UINT64_C(1) << 62};
    assert_true(funnel_take(&funnel, &fine, 5, 1) > (UINT64_C(1) << 62) - 2 * S);
}

/*
 * A queue gives equal positions to single units and to one large cost. The queue takes any cost,
 * and is bounded.
 */
static void fine_queues(void **state)
{
    (void)state;
    struct rate rate = rate_of(7, 10, 1);
    struct funnel apart = {0}, together = {0};
    assert_int_equal(funnel_queue(&apart, &rate, 100, 1), 0);
    for (int i = 0; i < 1000; i++)
        funnel_enqueue(&apart, &rate, 100, 1);
    funnel_enqueue(&together, &rate, 100, 1000);
    assert_int_equal(word(&apart), word(&together));
    assert_int_equal(word(&apart), 100 + 1429);
    assert_int_equal(funnel_queue(&apart, &rate, 100, 1), 1429);
    assert_int_equal(funnel_queue(&apart, &rate, 100 + 1429, 1), 0);
    assert_in_range(funnel_queue(&apart, &rate, 100, 1000000000), 1428571000, 1428573000);
    funnel_enqueue(&apart, &rate, 100, UINT64_MAX);
    funnel_enqueue(&apart, &rate, 100, UINT64_MAX);
    assert_int_equal(word(&apart), 100 + RATE_LONGEST_NS);
}

static void near_is_more_than_four_fifths(void **state)
{
    (void)state;
    struct rate rate = rate_of(10, 10 * S, 10);
    struct funnel funnel = {0};
    for (int i = 1; i <= 10; i++) {
        assert_int_equal(funnel_take(&funnel, &rate, DAY, 1), 0);
        assert_int_equal(funnel_is_near(&rate, funnel_word(&funnel), DAY), i > 8);
    }
    assert_false(funnel_is_near(&rate, funnel_word(&funnel), DAY + 2 * S));
    rate = rate_of(1, S, 1);
    assert_true(funnel_is_near(&rate, DAY + S, DAY)); /* all of a burst of one */
    assert_true(rate_init_bytes(&rate, 1000, S, 5000));
    assert_false(funnel_is_near(&rate, DAY + 4 * S, DAY));
    assert_true(funnel_is_near(&rate, DAY + 4 * S + 1, DAY));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(near_is_more_than_four_fifths),
        cmocka_unit_test(rates_are_rounded_up),
        cmocka_unit_test(rates_beyond_meaning_are_refused),
        cmocka_unit_test(burst_passes_from_rest),
        cmocka_unit_test(longest_burst_works_late),
        cmocka_unit_test(refusal_writes_nothing),
        cmocka_unit_test(older_time_is_only_stricter),
        cmocka_unit_test(debt_is_time_under_another_rate),
        cmocka_unit_test(funnel_equals_the_model),
        cmocka_unit_test(law_holds_when_times_go_back),
        cmocka_unit_test(the_rate_is_reached),
        cmocka_unit_test(an_empty_funnel_equals_a_fresh_one),
        cmocka_unit_test(emptiness_turns_on_the_nanosecond),
        cmocka_unit_test(a_charge_equals_a_take),
        cmocka_unit_test(bytes_are_not_rounded_one_by_one),
        cmocka_unit_test(debts_add_up_and_have_an_end),
        cmocka_unit_test(a_queue_waits_as_long_as_a_take_refuses),
        cmocka_unit_test(fine_is_what_rounding_would_spoil),
        cmocka_unit_test(fine_units_add_up),
        cmocka_unit_test(fine_rates_keep_debts),
        cmocka_unit_test(fine_queues),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
