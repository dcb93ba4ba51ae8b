/* Tests of named limits counted in weir's memory while Redis is down. */
#include "quota/local.h"

#include "decision_kit.h"
#include "base/clock.h"
#include "base/hash.h"

#define COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))
#define US_PER_S INT64_C(1000000)
#define DAY_US (86400 * US_PER_S)

static struct local *local;
static struct local_time now;

static int begin(void **state)
{
    (void)state;
    local = local_new();
    now = (struct local_time){1000 * NS_PER_S, 20000 * DAY_US}; /* a midnight */
    return 0;
}

static int end(void **state)
{
    (void)state;
    local_free(local);
    return 0;
}

static void pass_ms(int64_t ms)
{
    now.now_ns += (uint64_t)ms * NS_PER_MS;
    now.unix_us += ms * 1000;
}

static struct quota_outcome decide(const char *line)
{
    struct quota_outcome outcome;
    struct decision_request ask = kit_request(line);
    uint64_t hashes[QUOTA_PARTS_MAX] = {hash_bytes((struct hash_key){1, 2}, ask.key)};
    for (unsigned i = 0; i < ask.n_parts; i++)
        hashes[i] = hash_bytes((struct hash_key){1, 2}, ask.parts[i].key);
    assert_true(local_decide(local, &ask, hashes, now, &outcome));
    return outcome;
}

/* The number of `n` calls that pass. */
static int passing(const char *line, int n)
{
    int passed = 0;
    while (n-- > 0)
        passed += !decide(line).is_limited;
    return passed;
}

static void says(const char *line, bool is_limited, int64_t remaining, int64_t retry_ms,
                 int64_t reset_ms)
{
    struct quota_outcome found = decide(line);
    assert_int_equal(found.is_limited, is_limited);
    assert_int_equal(found.remaining, remaining);
    assert_int_equal(found.retry_ns, retry_ms < 0 ? -1 : retry_ms * (int64_t)NS_PER_MS);
    assert_int_equal(found.reset_ns, reset_ms * (int64_t)NS_PER_MS);
}

/* The number of `n` calls that pass, one every `ms`, once the first windows are over. */
static int passing_every(const char *line, int64_t ms, int n)
{
    int passed = 0;
    pass_ms(777);
    for (int i = -n; i < n; i++) {
        passed += !decide(line).is_limited && i >= 0;
        pass_ms(ms);
    }
    return passed;
}

/* As docs/limit-commands.md says, APPROX rounds up its estimates. */
static void even_calls_of_approx(void **state)
{
    (void)state;
    assert_int_equal(passing_every("LIMIT SLIDING a 1/500ms APPROX", 505, 10), 5);
    assert_int_equal(passing_every("LIMIT SLIDING b 2/s APPROX", 500, 100), 50);
    assert_int_equal(passing_every("LIMIT SLIDING c 10/s APPROX", 100, 100), 90);
    assert_int_equal(passing_every("LIMIT SLIDING d 100/s APPROX", 10, 1000), 990);
    assert_int_equal(passing_every("LIMIT SLIDING e 1000/s APPROX", 1, 10000), 9990);
}

static void funnels(void **state)
{
    (void)state;
    says("LIMIT FUNNEL k 1/s BURST 3", false, 2, -1, 1000);
    says("LIMIT FUNNEL k 1/s BURST 3 COST 2", false, 0, -1, 3000);
    says("LIMIT FUNNEL k 1/s BURST 3 PEEK", true, 0, 1000, 3000);
    pass_ms(500);
    says("LIMIT FUNNEL k 1/s BURST 3", true, 0, 500, 2500);
    pass_ms(500);
    says("LIMIT FUNNEL k 1/s BURST 3", false, 0, -1, 3000);
    says("LIMIT FUNNEL k 1/s BURST 3 COST 4", true, 0, -1, 3000);
    assert_int_equal(decide("LIMIT FUNNEL k 1/s BURST 3 WAIT 1500").wait_ns, NS_PER_S);
    says("LIMIT BUCKET k 1/s BURST 3", false, 2, -1, 1000);
}

/* The bound burst + rate * w holds in each window that begins with the first call. */
static void funnels_are_exact(void **state)
{
    (void)state;
    int64_t last_ms = 0, passed = 0;
    for (int64_t ms = 0; ms < 20000; ms += 7, pass_ms(7))
        if (!decide("LIMIT FUNNEL k 3/s BURST 5").is_limited) {
            passed++;
            last_ms = ms;
            assert_true((passed - 5) * 1000 <= 3 * ms);
        }
    assert_true(passed >= 5 + 3 * 19 && last_ms > 19000);
}

static void fixed_windows(void **state)
{
    (void)state;
    assert_int_equal(passing("LIMIT FIXED k 3/m", 5), 3);
    says("LIMIT FIXED k 3/m", true, 0, 60000, 60000);
    pass_ms(59999);
    says("LIMIT FIXED k 3/m", true, 0, 1, 1);
    pass_ms(1);
    says("LIMIT FIXED k 3/m COST 2", false, 1, -1, 60000);
    says("LIMIT FIXED k 3/m COST 2", true, 1, 60000, 60000);
    says("LIMIT FIXED k 3/m COST 4", true, 1, -1, 60000);
}

static void several_rates(void **state)
{
    (void)state;
    assert_int_equal(passing("LIMIT FIXED k 2/s 5/m", 4), 2);
    pass_ms(1000);
    assert_int_equal(passing("LIMIT FIXED k 2/s 5/m", 4), 2);
    pass_ms(1000);
    assert_int_equal(passing("LIMIT FIXED k 2/s 5/m", 4), 1);
    assert_int_equal(passing("LIMIT FUNNEL k 2/s 3/m", 4), 2);
    pass_ms(1000);
    assert_int_equal(passing("LIMIT FUNNEL k 2/s 3/m", 4), 1);
}

/*
 * Two counters. The count of the previous window is weighted by the part of that window that the
 * sliding window still covers.
 */
static void sliding_windows(void **state)
{
    (void)state;
    static const char *const lines[] = {"LIMIT SLIDING k 10/s", "LIMIT SLIDING k 10/s APPROX"};
    for (size_t i = 0; i < COUNT_OF(lines); i++) {
        assert_int_equal(passing(lines[i], 12), 10);
        pass_ms(1000);
        assert_int_equal(passing(lines[i], 1), 0);
        pass_ms(500);
        assert_int_equal(passing(lines[i], 12), 5);
        assert_int_equal(decide(lines[i]).retry_ns, 100 * NS_PER_MS);
        pass_ms(2500);
        assert_int_equal(passing(lines[i], 12), 10);
        pass_ms(3000);
    }
}

/* A call after the returned wait passes, and an earlier call does not. */
static void retries_are_true(void **state)
{
    (void)state;
    static const char *const lines[] = {"LIMIT SLIDING k 7/s COST 3", "LIMIT FIXED k 7/s COST 3",
                                        "LIMIT FUNNEL k 7/s COST 3",
                                        "LIMIT SLIDING k 7/s 11/m COST 3"};
    for (size_t i = 0; i < COUNT_OF(lines); i++)
        for (int round = 0; round < 200; round++, pass_ms(13)) {
            struct quota_outcome found = decide(lines[i]);
            struct local_time before = now;
            if (!found.is_limited)
                continue;
            assert_true(found.retry_ns > 0);
            now.now_ns += (uint64_t)found.retry_ns - NS_PER_US;
            now.unix_us += found.retry_ns / 1000 - 1;
            assert_true(found.retry_ns < 2000 || decide(lines[i]).is_limited);
            now = before;
            now.now_ns += (uint64_t)found.retry_ns + NS_PER_US;
            now.unix_us += found.retry_ns / 1000 + 1;
            assert_false(decide(lines[i]).is_limited);
        }
}

static void the_clock_goes_back(void **state)
{
    (void)state;
    assert_int_equal(passing("LIMIT FIXED k 3/m", 5), 3);
    now.unix_us -= 1000;
    assert_int_equal(passing("LIMIT FIXED k 3/m", 5), 0);
    now.unix_us -= DAY_US;
    says("LIMIT FIXED k 3/m", true, 0, 1, 1);
    pass_ms(1);
    assert_int_equal(passing("LIMIT FIXED k 3/m", 5), 3);
}

/* Under a penalty every call is refused, however much drains and whatever rate the call has. */
static void penalties(void **state)
{
    (void)state;
    static const char *const rates[] = {"FUNNEL", "BUCKET", "SLIDING", "FIXED"};
    for (size_t i = 0; i < COUNT_OF(rates); i++) {
        char plain[64], line[80], peek[96], other[64];
        snprintf(plain, sizeof plain, "LIMIT %s k 2/s", rates[i]);
        snprintf(line, sizeof line, "%s PENALTY 1m", plain);
        snprintf(peek, sizeof peek, "%s PEEK", line);
        snprintf(other, sizeof other, "LIMIT %s k 100/h", rates[i]);
        assert_int_equal(passing(line, 2), 2);
        assert_int_equal(decide(peek).retry_ns < 2 * (int64_t)NS_PER_S, true);
        says(line, true, 0, 60000, 60000);
        pass_ms(59999);
        says(plain, true, 0, 1, 1);
        says(peek, true, 0, 1, 1);
        assert_true(decide(other).is_limited && decide(line).is_limited &&
                    decide(peek).retry_ns == NS_PER_MS);
        pass_ms(1);
        assert_false(decide(other).is_limited);
        assert_int_equal(passing(line, 3), 2);
        pass_ms(3600 * 1000);
    }
}

static void penalties_grow(void **state)
{
    (void)state;
    static const char line[] = "LIMIT FIXED k 1/ms PENALTY 10s..60s";
    static const int64_t lengths_ms[] = {10000, 20000, 40000, 60000, 60000};
    for (size_t i = 0; i < COUNT_OF(lengths_ms); i++) {
        assert_int_equal(passing(line, 1), 1);
        says(line, true, 0, lengths_ms[i], lengths_ms[i]);
        pass_ms(lengths_ms[i]);
        if (i == 1)
            pass_ms(59999); /* the length of the last penalty is still remembered */
    }
    assert_int_equal(passing(line, 1), 1);
    says("LIMIT FIXED k 1/ms PENALTY 1s", true, 0, 1000, 1000);
    pass_ms(1000);
    assert_int_equal(passing(line, 1), 1);
    says(line, true, 0, 60000, 60000);
    pass_ms(2 * 60000);
    assert_int_equal(passing(line, 1), 1);
    says(line, true, 0, 10000, 10000);
}

/* A call that can still wait is not refused. */
static void penalties_and_waits(void **state)
{
    (void)state;
    assert_int_equal(passing("LIMIT FIXED k 1/m PENALTY 1h WAIT 60000", 1), 1);
    says("LIMIT FIXED k 1/m PENALTY 1h WAIT 60000", true, 0, 60000, 60000);
    says("LIMIT FIXED k 1/m PENALTY 1h WAIT 59999", true, 0, 3600000, 3600000);
    assert_int_equal(decide("LIMIT FUNNEL k 1/m PENALTY 1h WAIT 60000").wait_ns, 0);
    assert_int_equal(decide("LIMIT FUNNEL k 1/m PENALTY 1h WAIT 60000").wait_ns, 60 * NS_PER_S);
    says("LIMIT FUNNEL k 1/m PENALTY 1h WAIT 60000", true, 0, 3600000, 3600000);
}

/* A reload keeps the counts of the rates that stay. */
static void other_rates(void **state)
{
    (void)state;
    assert_int_equal(passing("LIMIT FUNNEL k 1/m BURST 2", 5), 2);
    assert_int_equal(passing("LIMIT FUNNEL k 5/h 1/m BURST 4", 5), 2);
    assert_int_equal(passing("LIMIT FIXED k 3/m", 5), 3);
    assert_int_equal(passing("LIMIT FIXED k 4/h 5/m", 5), 2);
}

/* All or nothing: if one part refuses, no part is charged. */
static void several_keys(void **state)
{
    static const char line[] =
        "LIMIT ALL FIXED day 5/d AND BUCKET burst 2/m COST 2 AND SLIDING slide 3/h AND FIXED b 9/d AND FIXED c 9/d";
    (void)state;
    says(line, false, 0, -1, 60000);
    struct quota_outcome found = decide(line);
    assert_true(found.is_limited && found.part == 1 && found.refusing == 2);
    assert_int_equal(passing(line, 9), 0);
    says("LIMIT FIXED day 5/d PEEK", false, 4, -1, 86400000);
    pass_ms(60000);
    assert_int_equal(passing(line, 9), 1);
    pass_ms(60000);
    assert_int_equal(passing(line, 9), 1);
    pass_ms(60000);
    found = decide(line);
    assert_true(found.is_limited && found.part == 2 && found.refusing == 4);
    says("LIMIT FIXED day 5/d PEEK", false, 2, -1, 86400000 - 180000);
    says("LIMIT BUCKET burst 2/m PEEK", false, 2, -1, 0);
    assert_false(decide("LIMIT ALL SLIDING slide 3/h PEEK AND BUCKET burst 2/m").refusing & 2);
}

/* Keys with a count are never evicted, keys without one are. */
static void memory_is_bounded(void **state)
{
    (void)state;
    struct quota_outcome outcome;
    char line[64];
    size_t n = 0, refused = 0;
    for (; n < 400000 && refused < 1000; n++) {
        snprintf(line, sizeof line, "LIMIT FIXED k%zu 1/d", n);
        struct decision_request ask = kit_request(line);
        uint64_t hash = hash_bytes((struct hash_key){1, 2}, ask.key);
        refused += !local_decide(local, &ask, &hash, now, &outcome);
    }
    assert_int_equal(refused, 1000);
    assert_true(n > 100000);
    assert_true(local_bytes(local) <= LOCAL_BYTES_MAX);
    assert_int_equal(passing("LIMIT FIXED k0 1/d", 1), 0);
    pass_ms(86400 * 1000);
    for (size_t i = 0; i < 20000; i++) {
        snprintf(line, sizeof line, "LIMIT FIXED l%zu 1/s", i);
        assert_int_equal(passing(line, 2), 1);
    }
    assert_true(local_bytes(local) < LOCAL_BYTES_MAX / 2);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)

/* By the calendar: 20000 days after 1970 is Friday, October 4. */
static void calendar(void **state)
{
    (void)state;
    static const int64_t day_ms = DAY_US / 1000;
    pass_ms(day_ms - 1000);
    says("LIMIT FIXED days 2/day", 0, 1, -1, 1000);
    says("LIMIT FIXED days 2/day", 0, 0, -1, 1000);
    says("LIMIT FIXED days 2/day", 1, 0, 1000, 1000);
    says("LIMIT FIXED weeks 2/week", 0, 1, -1, 2 * day_ms + 1000);
    says("LIMIT FIXED both 2/month 9/1d", 0, 1, -1, 27 * day_ms + 1000);
    pass_ms(1000);
    says("LIMIT FIXED days 9/week 2/day", 0, 1, -1, day_ms);
    now.unix_us -= 1000;
    /* the clock went back a little: the window that has begun stays the present one */
    says("LIMIT FIXED days 2/day", 0, 0, -1, day_ms + 1);
    says("LIMIT FIXED days 2/day", 1, 0, day_ms + 1, day_ms + 1);
    now.unix_us -= 3 * DAY_US;
    /* the clock went back further: the count is kept for the window of the present time */
    says("LIMIT FIXED days 2/day", 1, 0, 1, 1);
    pass_ms(1);
    says("LIMIT FIXED days 2/day", 0, 1, -1, day_ms);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(funnels),           TEST(even_calls_of_approx), TEST(funnels_are_exact),
        TEST(fixed_windows),     TEST(several_rates),        TEST(sliding_windows),
        TEST(retries_are_true),  TEST(the_clock_goes_back),  TEST(other_rates),
        TEST(memory_is_bounded), TEST(several_keys),         TEST(calendar),
        TEST(penalties),         TEST(penalties_grow),       TEST(penalties_and_waits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
