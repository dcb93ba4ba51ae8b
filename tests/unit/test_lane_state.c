/*
 * Tests of the legal steps of a lane's state and trust. Every other step fails. Each state is
 * reached and left.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "upstream/lane/lane_state.h"

struct step {
    int from, to;
};

#define COUNT_OF(rows) (sizeof(rows) / sizeof((rows)[0]))

static bool is_in(const struct step *steps, size_t n, int from, int to)
{
    for (size_t i = 0; i < n; i++)
        if (steps[i].from == from && steps[i].to == to)
            return true;
    return false;
}

static void no_other_state_follows(void **state)
{
    static const struct step legal[] = {
        {LANE_CONNECTING, LANE_GREETING}, {LANE_GREETING, LANE_READY},
        {LANE_READY, LANE_GREETING},      {LANE_READY, LANE_RETIRED},
        {LANE_RETIRED, LANE_READY},       {LANE_READY, LANE_PASSTHROUGH},
        {LANE_PASSTHROUGH, LANE_ENDING},  {LANE_CONNECTING, LANE_CLOSED},
        {LANE_GREETING, LANE_CLOSED},     {LANE_READY, LANE_CLOSED},
        {LANE_RETIRED, LANE_CLOSED},      {LANE_PASSTHROUGH, LANE_CLOSED},
        {LANE_ENDING, LANE_CLOSED},       {LANE_CLOSED, LANE_GONE},
    };
    (void)state;
    for (int from = 0; from < LANE_STATES; from++)
        for (int to = 0; to < LANE_STATES; to++)
            assert_int_equal(lane_state_may_become((enum lane_state)from, (enum lane_state)to),
                             is_in(legal, COUNT_OF(legal), from, to));
}

static void no_other_trust_follows(void **state)
{
    static const struct step legal[] = {
        {TRUST_CLEAN, TRUST_USED},          {TRUST_CLEAN, TRUST_UNTRUSTED},
        {TRUST_USED, TRUST_UNTRUSTED},      {TRUST_USED, TRUST_CLEAN},
        {TRUST_UNTRUSTED, TRUST_ASKED},     {TRUST_UNTRUSTED, TRUST_RETURNED},
        {TRUST_UNTRUSTED, TRUST_CLEAN},     {TRUST_RETURNED, TRUST_UNTRUSTED},
        {TRUST_RETURNED, TRUST_ASKED},      {TRUST_RETURNED, TRUST_CLEAN},
        {TRUST_ASKED, TRUST_USED},          {TRUST_ASKED, TRUST_UNSETTLED},
        {TRUST_UNSETTLED, TRUST_UNTRUSTED},
    };
    (void)state;
    for (int from = 0; from < LANE_TRUSTS; from++)
        for (int to = 0; to < LANE_TRUSTS; to++)
            assert_int_equal(lane_trust_may_become((enum lane_trust)from, (enum lane_trust)to),
                             is_in(legal, COUNT_OF(legal), from, to));
}

/* Only the answer to a nonce makes an untrusted lane trusted for its owner. */
static void trust_comes_back_by_a_nonce_alone(void **state)
{
    (void)state;
    assert_false(lane_trust_may_become(TRUST_UNTRUSTED, TRUST_USED));
    assert_false(lane_trust_may_become(TRUST_RETURNED, TRUST_USED));
    assert_false(lane_trust_may_become(TRUST_UNSETTLED, TRUST_USED));
    assert_false(lane_trust_may_become(TRUST_UNSETTLED, TRUST_ASKED));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_other_state_follows),
        cmocka_unit_test(no_other_trust_follows),
        cmocka_unit_test(trust_comes_back_by_a_nonce_alone),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
