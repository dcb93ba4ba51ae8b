/* Limits on connections, when they begin, change their subject, and end; and on failed logins. */
#include "limit/gate.h"
#include "limit/trial.h"

static uint64_t limits_on(const struct policy *policy, unsigned units)
{
    uint64_t limits = 0;
    for (; units; units &= units - 1)
        limits |= policy->of_unit[lowest(units)];
    return limits;
}

enum gate gate_connect(const struct account *account, uint64_t now_ns, struct tally *tallies, struct verdict *verdict)
{
    return gate_connect_units(account, 1U << UNIT_CONNECTIONS | 1U << UNIT_CONNECTS, now_ns, tallies, verdict);
}

enum gate gate_connect_units(const struct account *account, unsigned units, uint64_t now_ns, struct tally *tallies,
                             struct verdict *verdict)
{
    const struct policy *policy = account->policy;
    uint64_t limits = limits_on(policy, units);
    verdict->counted = 0;
    verdict->is_shadowed = false;
    if (!limits)
        return GATE_PASS;
    const struct ask ask = {.amount = one_of_each(), .now_ns = now_ns};
    const struct trial trial = {account, &ask, tallies, 0, false};
    uint64_t enforced = limits & ~policy->shadows;
    uint64_t shadows = limits & policy->shadows;
    const struct limit *slowest = NULL;
    (void)holders_lock(account, now_ns);
    uint64_t wait_ns = trial_longest_wait(&trial, enforced, &slowest);
    if (wait_ns > 0) {
        verdict_set(verdict, slowest, wait_ns);
        trial_count(&trial, slowest, GATE_CLOSE, false);
    } else {
        trial_charge(&trial, enforced);
        verdict->counted = COUNTED;
        if (trial_longest_wait(&trial, shadows, &slowest) > 0) {
            trial_count(&trial, slowest, GATE_CLOSE, true);
            verdict->is_shadowed = true;
            verdict->limit = slowest;
        } else {
            trial_charge(&trial, shadows);
            verdict->counted |= COUNTED_SHADOW;
        }
    }
    holders_unlock(account);
    return wait_ns > 0 ? GATE_CLOSE : GATE_PASS;
}

uint8_t gate_reconnect(const struct account *account)
{
    gauges_add(account, account->policy->of_unit[UNIT_CONNECTIONS], 1);
    return COUNTED | COUNTED_SHADOW;
}

void gate_disconnect(const struct account *account, uint8_t counted)
{
    uint64_t limits = account->policy->of_unit[UNIT_CONNECTIONS];
    gauges_take(account, limits & ~account->policy->shadows, (counted & COUNTED) != 0);
    gauges_take(account, limits & account->policy->shadows, (counted & COUNTED_SHADOW) != 0);
}

/* ---- failed logins ---- */

bool gate_may_login(const struct account *account, uint64_t now_ns, struct tally *tallies)
{
    const struct policy *policy = account->policy;
    bool may = true;
    (void)holders_lock(account, now_ns);
    for (uint64_t limits = policy->of_unit[UNIT_AUTH_FAILURES]; limits; limits &= limits - 1) {
        unsigned i = lowest(limits);
        const struct limit *limit = &policy->limits[i];
        if (funnel_ask(funnel_at(account, i), rate_of(account, limit), now_ns, 1) == 0)
            continue;
        bool is_shadow = policy->shadows >> i & 1;
        if (tallies != NULL)
            tally_add(is_shadow ? &tallies[limit->id].shadowed : &tallies[limit->id].refused, 1);
        may &= is_shadow;
    }
    holders_unlock(account);
    return may;
}

uint64_t gate_logins_left(const struct account *account, uint64_t now_ns)
{
    const struct policy *policy = account->policy;
    uint64_t least = UINT64_MAX;
    (void)holders_lock(account, now_ns);
    for (uint64_t limits = policy->of_unit[UNIT_AUTH_FAILURES] & ~policy->shadows; limits; limits &= limits - 1) {
        unsigned i = lowest(limits);
        uint64_t left = funnel_room(rate_of(account, &policy->limits[i]), funnel_word(funnel_at(account, i)), now_ns);
        least = left < least ? left : least;
    }
    holders_unlock(account);
    return least;
}

void gate_login_failed(const struct account *account, uint64_t now_ns, struct tally *tallies)
{
    (void)holders_lock(account, now_ns);
    for (uint64_t limits = account->policy->of_unit[UNIT_AUTH_FAILURES]; limits; limits &= limits - 1) {
        unsigned i = lowest(limits);
        const struct limit *limit = &account->policy->limits[i];
        funnel_owe(funnel_at(account, i), now_ns, rate_of(account, limit)->interval_ns);
        tally_add(&tallies[limit->id].admitted, 1);
    }
    holders_unlock(account);
}
