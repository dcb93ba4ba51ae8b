#include "upstream/lane/lane_state.h"

#include <stdint.h>

#define BIT(step) (1u << (step))

bool lane_state_may_become(enum lane_state from, enum lane_state to)
{
    static const uint16_t steps[LANE_STATES] = {
        [LANE_CONNECTING] = BIT(LANE_GREETING) | BIT(LANE_CLOSED),
        [LANE_GREETING] = BIT(LANE_READY) | BIT(LANE_CLOSED),
        [LANE_READY] = BIT(LANE_GREETING) | BIT(LANE_RETIRED) | BIT(LANE_PASSTHROUGH) | BIT(LANE_CLOSED),
        [LANE_RETIRED] = BIT(LANE_READY) | BIT(LANE_CLOSED),
        [LANE_PASSTHROUGH] = BIT(LANE_ENDING) | BIT(LANE_CLOSED),
        [LANE_ENDING] = BIT(LANE_CLOSED),
        [LANE_CLOSED] = BIT(LANE_GONE),
    };
    return (steps[from] & BIT(to)) != 0;
}

bool lane_trust_may_become(enum lane_trust from, enum lane_trust to)
{
    static const uint16_t steps[LANE_TRUSTS] = {
        [TRUST_CLEAN] = BIT(TRUST_USED) | BIT(TRUST_UNTRUSTED),
        [TRUST_RETURNED] = BIT(TRUST_UNTRUSTED) | BIT(TRUST_ASKED) | BIT(TRUST_CLEAN),
        [TRUST_USED] = BIT(TRUST_UNTRUSTED) | BIT(TRUST_CLEAN),
        [TRUST_UNTRUSTED] = BIT(TRUST_ASKED) | BIT(TRUST_RETURNED) | BIT(TRUST_CLEAN),
        [TRUST_ASKED] = BIT(TRUST_USED) | BIT(TRUST_UNSETTLED),
        [TRUST_UNSETTLED] = BIT(TRUST_UNTRUSTED),
    };
    return (steps[from] & BIT(to)) != 0;
}
