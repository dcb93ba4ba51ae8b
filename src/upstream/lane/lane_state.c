#include "upstream/lane/lane_state.h"

#include <stdint.h>

#define BIT(step) (1u << (step))

bool lane_state_may_become(enum lane_state from, enum lane_state to)
{
    static const uint16_t steps[LANE_STATES] = {
        [LANE_CONNECTING] = BIT(LANE_GREETING) | BIT(LANE_CLOSED),
        [LANE_GREETING] = BIT(LANE_READY) | BIT(LANE_CLOSED),
        [LANE_READY] =
            BIT(LANE_GREETING) | BIT(LANE_RETIRED) | BIT(LANE_PASSTHROUGH) | BIT(LANE_CLOSED),
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

const char *lane_list_name(enum lane_list in)
{
    static const char *const names[LIST_COUNT] = {
        [LIST_NONE] = "none",       [LIST_OPENING] = "opening", [LIST_SHARED] = "shared",
        [LIST_RETIRED] = "retired", [LIST_SPARE] = "spare",     [LIST_PRIVATE] = "private",
        [LIST_IDLE] = "idle",       [LIST_SCRIPT] = "script",   [LIST_AUTH_LANE] = "door",
    };
    return names[in];
}

const char *lane_loss_name(enum lane_loss loss)
{
    static const char *const names[LOSS_COUNT] = {
        [LOSS_CONNECT] = "connect", [LOSS_TIMEOUT] = "timeout", [LOSS_PROTOCOL] = "protocol",
        [LOSS_CLOSED] = "closed",   [LOSS_AUTH] = "auth",       [LOSS_SYSTEM] = "system",
        [LOSS_UNCLEAN] = "unclean",
    };
    return names[loss];
}

void lane_counts_note_refusal(struct lane_counts *counts, enum not_run row)
{
    static const enum lane_redirect kinds[NOT_RUN_ROWS] = {
        [NOT_RUN_READONLY] = REDIRECT_COUNT,
        [NOT_RUN_LOADING] = REDIRECT_COUNT,
        [NOT_RUN_LOADING_VALKEY] = REDIRECT_COUNT,
        [NOT_RUN_MASTERDOWN] = REDIRECT_COUNT,
        [NOT_RUN_PRIMARYDOWN] = REDIRECT_COUNT,
        [NOT_RUN_TRYAGAIN] = REDIRECT_TRYAGAIN,
        [NOT_RUN_CLUSTERDOWN] = REDIRECT_CLUSTERDOWN,
        [NOT_RUN_CLUSTERDOWN_WRITES] = REDIRECT_CLUSTERDOWN,
        [NOT_RUN_CLUSTERDOWN_SLOT] = REDIRECT_CLUSTERDOWN,
        [NOT_RUN_MOVED] = REDIRECT_MOVED,
        [NOT_RUN_ASK] = REDIRECT_ASK,
    };
    if (kinds[row] != REDIRECT_COUNT)
        count_add(&counts->redirects[kinds[row]], 1);
}

const char *lane_redirect_name(enum lane_redirect redirect)
{
    static const char *const names[REDIRECT_COUNT] = {
        [REDIRECT_MOVED] = "moved",       [REDIRECT_ASK] = "ask",
        [REDIRECT_TRYAGAIN] = "tryagain", [REDIRECT_CLUSTERDOWN] = "clusterdown",
        [REDIRECT_GIVEN_UP] = "given-up",
    };
    return names[redirect];
}
