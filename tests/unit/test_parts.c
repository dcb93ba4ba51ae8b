/*
 * Tests of several keys in one call: the numbers of each key give one outcome, also for batched
 * calls.
 */
#include "decision_kit.h"
#include "quota/outcome.h"
#include "quota/question.h"

#define COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))
#define S INT64_C(1000000000)
#define US_S INT64_C(1000000)

/* The outcome of call k of n equal calls (a LIMIT ALL), for these numbers from the script. */
static struct quota_outcome outcome_of(const char *line, const int64_t *numbers, size_t n_numbers,
                                       uint64_t n, uint64_t k)
{
    struct decision_request ask = kit_request(line);
    struct quota_outcome outcome;
    assert_int_equal(quota_numbers(&ask), n_numbers);
    assert_true(quota_numbers_are_sane(&ask, numbers, n));
    quota_outcome(&ask, numbers, n, k, &outcome);
    return outcome;
}

static void says(const struct quota_outcome *found, int64_t limit, int64_t remaining,
                 int64_t retry_ns, unsigned part, unsigned refusing)
{
    assert_int_equal(found->limit, limit);
    assert_int_equal(found->remaining, remaining);
    assert_int_equal(found->retry_ns, retry_ns);
    assert_int_equal(found->part, part);
    assert_int_equal(found->refusing, refusing);
}

/*
 * A call that passes reports the key with the least remaining. A refused call reports the key that
 * refuses for longest.
 */
static void one_is_told(void **state)
{
    static const char line[] =
        "LIMIT ALL FUNNEL a 1/s BURST 5 AND FIXED b 4/60s AND BUCKET c 1/m BURST 3";
    const int64_t fresh[] = {0, 3, 0, 0, 30 * US_S, 0};    /* three calls, which all fit */
    const int64_t used[] = {4 * S, 1, 2, 0, 30 * US_S, 0}; /* one call, and two units used in b */
    (void)state;
    for (uint64_t k = 0; k < 3; k++) {
        struct quota_outcome found = outcome_of(line, fresh, COUNT_OF(fresh), 3, k);
        assert_false(found.is_limited);
        says(&found, 3, 2 - (int64_t)k, -1, 2, 0);
    }
    struct quota_outcome found = outcome_of(line, used, COUNT_OF(used), 1, 0);
    assert_false(found.is_limited);
    says(&found, 5, 0, -1, 0, 0);

    const int64_t both[] = {5 * S, 0, 4, 30 * US_S, 30 * US_S, 0};
    found = outcome_of(line, both, COUNT_OF(both), 1, 0);
    assert_true(found.is_limited);
    says(&found, 4, 0, 30 * S, 1, 3);
}

/* Of equal calls the first pass until one part is full. Then the other parts keep their state. */
static void the_first_pass(void **state)
{
    static const char line[] = "LIMIT ALL FUNNEL a 1/s BURST 5 AND FIXED b 4/60s COST 2";
    const int64_t numbers[] = {0, 2, 0, 30 * US_S, 30 * US_S}; /* five calls; b has room for two */
    (void)state;
    struct decision_request ask = kit_request(line);
    assert_int_equal(quota_granted(&ask, numbers, 5), 2);
    for (uint64_t k = 0; k < 5; k++) {
        struct quota_outcome found = outcome_of(line, numbers, COUNT_OF(numbers), 5, k);
        assert_int_equal(found.is_limited, k >= 2);
        says(&found, 4, k == 0 ? 2 : 0, k < 2 ? -1 : 30 * S, 1, k < 2 ? 0 : 2);
    }
}

/*
 * Calls behind the first refused call find the state of that call. A part with room still has room.
 */
static void who_has_room_has_it(void **state)
{
    static const char line[] = "LIMIT ALL FIXED a 2/60s AND FIXED b 3/60s";
    const int64_t numbers[] = {2, 0, 30 * US_S, 30 * US_S, 3, 0, 0, 30 * US_S};
    (void)state;
    for (uint64_t k = 2; k < 9; k++) {
        struct quota_outcome found = outcome_of(line, numbers, COUNT_OF(numbers), 9, k);
        says(&found, 2, 0, 30 * S, 0, 1);
    }
}

/* Never, where a cost exceeds the maximum. */
static void never(void **state)
{
    static const char line[] = "LIMIT ALL FUNNEL a 1/s COST 2 AND FIXED b 4/60s";
    const int64_t numbers[] = {0, 0, 4, 30 * US_S, 30 * US_S};
    (void)state;
    struct quota_outcome found = outcome_of(line, numbers, COUNT_OF(numbers), 1, 0);
    assert_true(found.is_limited);
    says(&found, 1, 1, -1, 0, 3);
}

/*
 * A shadow part is not reported while other parts are, and does not refuse. Nor does a part of cost
 * 0.
 */
static void shadows_and_looks(void **state)
{
    struct decision_request ask =
        kit_request("LIMIT ALL FUNNEL a 1/s AND FUNNEL b 1/s BURST 3 AND FUNNEL c 1/s COST 0");
    const int64_t numbers[] = {S, S, S};
    struct quota_outcome found;
    (void)state;
    kit_parts[0].is_shadow = true;
    assert_int_equal(quota_granted(&ask, numbers, 9), 2);
    quota_outcome(&ask, numbers, 9, 1, &found);
    assert_false(found.is_limited);
    says(&found, 3, 0, -1, 1, 1);
    quota_outcome(&ask, numbers, 9, 2, &found);
    assert_true(found.is_limited);
    says(&found, 3, 0, S, 1, 3);
    kit_parts[1].is_shadow = true;
    assert_int_equal(quota_granted(&ask, numbers, 9), 9);
}

static void looks_are_alike(void **state)
{
    static const char line[] = "LIMIT ALL FUNNEL a 1/s BURST 2 AND FIXED b 4/60s PEEK";
    const int64_t numbers[] = {S, 1, 3, 0, 30 * US_S};
    (void)state;
    for (uint64_t k = 0; k < 3; k++) {
        struct quota_outcome found = outcome_of(line, numbers, COUNT_OF(numbers), 3, k);
        assert_false(found.is_limited);
        assert_int_equal(found.remaining, 1);
    }
}

/*
 * The reported part has refused. The time is that of the last refusing part, which the call itself
 * may have filled.
 */
static void what_is_refused_counts(void **state)
{
    static const char line[] = "LIMIT ALL FUNNEL a 1/s AND FUNNEL b 1/m BURST 2 COUNT ALL";
    const int64_t numbers[] = {S, 60 * S};
    (void)state;
    struct quota_outcome found = outcome_of(line, numbers, COUNT_OF(numbers), 1, 0);
    assert_true(found.is_limited);
    says(&found, 1, 0, 60 * S, 0, 1);
}

static void replies(void **state)
{
    static const char *const expected[] = {
        "*6\r\n:1\r\n:4\r\n:0\r\n:5\r\n:5\r\n$2\r\nip\r\n",
        ("%6\r\n$7\r\nlimited\r\n:1\r\n$5\r\nlimit\r\n:4\r\n$9\r\nremaining\r\n:0\r\n$14\r\nretry_after_ms\r\n:5\r\n"
         "$14\r\nreset_after_ms\r\n:5\r\n$10\r\nrefused_by\r\n$2\r\nip\r\n"),
        "*6\r\n:0\r\n:4\r\n:0\r\n:-1\r\n:5\r\n$-1\r\n",
    };
    (void)state;
    for (size_t i = 0; i < COUNT_OF(expected); i++) {
        struct decision_request ask = kit_request("LIMIT ALL FIXED a 4/s");
        struct quota_outcome outcome = {
            .is_limited = i < 2, .limit = 4, .retry_ns = i < 2 ? 5000000 : -1, .reset_ns = 4000001};
        struct build build;
        outcome.refused_by = SLICE("ip");
        build_init(&build, i == 1);
        quota_reply(&build, &ask, &outcome);
        assert_int_equal(build.len, strlen(expected[i]));
        assert_memory_equal(build.at, expected[i], build.len);
        build_fini(&build);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_is_told),     cmocka_unit_test(the_first_pass),
        cmocka_unit_test(never),           cmocka_unit_test(shadows_and_looks),
        cmocka_unit_test(looks_are_alike), cmocka_unit_test(what_is_refused_counts),
        cmocka_unit_test(replies),         cmocka_unit_test(who_has_room_has_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
