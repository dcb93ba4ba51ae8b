/*
 * All charges except the charges for commands that ask to pass: bytes that have passed, ends of
 * calls in flight, connections, and failed logins.
 */
#include "limit/gate.h"
#include "limit/trial.h"

/*
 * The limits among `limits` with funnels in this charge target. After a connection has closed,
 * limits `per connection` have no funnels.
 */
static uint64_t gate_passed_held(const struct charge_target *target, uint64_t limits)
{
    return target->holders[PER_CONNECTION] != NULL
               ? limits
               : limits & ~target->policy->of_scope[PER_CONNECTION];
}

/* ---- bytes ---- */

enum gate gate_ask_debtor(const struct charge_target *target, uint64_t now_ns,
                          struct limit_counters *limit_counters, struct verdict *verdict)
{
    const struct policy *policy = target->policy;
    const struct gate_request ask = {.amount = one_of_each(), .now_ns = now_ns};
    const struct trial trial = {target, &ask, limit_counters, 0, false};
    const struct limit *slowest = NULL;
    uint64_t bytes = policy->of_unit[UNIT_BYTES_IN] | policy->of_unit[UNIT_BYTES_OUT];
    if ((bytes & ~policy->shadows) == 0)
        return GATE_PASS;
    (void)holders_lock(target, now_ns);
    uint64_t wait_ns = trial_longest_wait(&trial, bytes & ~policy->shadows, &slowest);
    holders_unlock(target);
    if (wait_ns == 0)
        return GATE_PASS;
    verdict_set(verdict, slowest, wait_ns);
    verdict->positions.n = 0;
    trial_count(&trial, slowest, GATE_WAIT, false);
    return GATE_WAIT;
}

static uint64_t overdraft_at(const struct rate *rate, uint64_t tat_ns, uint64_t now_ns)
{
    uint64_t most_ns = now_ns + 2 * rate->burst_ns;
    return tat_ns > most_ns ? tat_ns - most_ns : 0;
}

static FUNNEL_RARE uint64_t overdraft_anew(const struct charge_target *target, unsigned index,
                                           uint64_t now_ns)
{
    (void)holders_lock(target, now_ns);
    const struct rate *rate = rate_of(target, &target->policy->limits[index]);
    uint64_t over_ns = overdraft_at(rate, funnel_word(funnel_at(target, index)), now_ns);
    holders_unlock(target);
    return over_ns;
}

static bool has_rates_of(const struct charge_target *target, const struct limit *limit)
{
    return subject_has_rates(target->holders[limit->scope], target->policy->rates[limit->scope]);
}

/*
 * Needs no lock: the rates are checked after the word is loaded, and the word belongs to these
 * rates (subject_convert).
 */
static uint64_t overdraft_ns(const struct charge_target *target, unsigned index, uint64_t now_ns)
{
    const struct limit *limit = &target->policy->limits[index];
    uint64_t tat_ns = funnel_peek(funnel_at(target, index));
    if (!has_rates_of(target, limit))
        return overdraft_anew(target, index, now_ns);
    return overdraft_at(&limit->rate, tat_ns, now_ns);
}

enum gate gate_ask_overdrawn(const struct charge_target *target, uint64_t now_ns,
                             struct verdict *verdict)
{
    const struct policy *policy = target->policy;
    uint64_t longest_ns = 0;
    uint64_t bytes =
        (policy->of_unit[UNIT_BYTES_IN] | policy->of_unit[UNIT_BYTES_OUT]) & ~policy->shadows;
    for (; bytes; bytes &= bytes - 1) {
        uint64_t over_ns = overdraft_ns(target, lowest(bytes), now_ns);
        if (over_ns > longest_ns)
            verdict_set(verdict, &policy->limits[lowest(bytes)], over_ns);
        longest_ns = over_ns > longest_ns ? over_ns : longest_ns;
    }
    verdict->positions.n = 0;
    return longest_ns > 0 ? GATE_WAIT : GATE_PASS;
}

uint64_t gate_overdraft_ns(const struct charge_target *target, enum unit unit, uint64_t now_ns)
{
    uint64_t longest_ns = 0;
    for (uint64_t limits = target->policy->of_unit[unit] & ~target->policy->shadows; limits;
         limits &= limits - 1) {
        uint64_t over_ns = overdraft_ns(target, lowest(limits), now_ns);
        longest_ns = over_ns > longest_ns ? over_ns : longest_ns;
    }
    return longest_ns;
}

/* When bytes have passed: now, or at the virtual clock for a limit that this clock may charge. */
struct passed {
    uint64_t now_ns, virtual_ns;
};

static uint64_t passed_at(struct passed passed, enum slot_queue queue)
{
    return queue == SLOT_AHEAD && passed.virtual_ns > passed.now_ns ? passed.virtual_ns
                                                                    : passed.now_ns;
}

static uint64_t passed_by_policy(struct passed passed, const struct charge_target *target,
                                 const struct limit *limit)
{
    return passed_at(passed,
                     (enum slot_queue)target->policy->rates[limit->scope]->at[limit->slot].queue);
}

static FUNNEL_RARE uint64_t owe_anew(const struct charge_target *target, unsigned index, uint64_t n,
                                     struct passed passed)
{
    const struct limit *limit = &target->policy->limits[index];
    struct funnel *funnel = funnel_at(target, index);
    (void)holders_lock(target, passed.now_ns);
    uint64_t at_ns =
        passed_at(passed, subject_slot_queue(target->holders[limit->scope], limit->slot));
    funnel_owe(funnel, at_ns, rate_span_ns(rate_of(target, limit), n));
    uint64_t tat_ns = funnel_word(funnel);
    holders_unlock(target);
    return tat_ns;
}

/* Charges the limit without the lock. Returns the new word. */
static uint64_t gate_passed_owe(const struct charge_target *target, unsigned index, uint64_t n,
                                struct passed passed)
{
    const struct limit *limit = &target->policy->limits[index];
    struct funnel *funnel = funnel_at(target, index);
    uint64_t at_ns = passed_by_policy(passed, target, limit);
    uint64_t tat_ns = funnel_peek(funnel), next_ns;
    uint64_t span_ns = rate_span_ns(&limit->rate, n), latest_ns = at_ns + RATE_LONGEST_NS;
    do {
        if (!has_rates_of(target, limit))
            return owe_anew(target, index, n, passed);
        next_ns = (tat_ns > at_ns ? tat_ns : at_ns) + span_ns;
        next_ns = next_ns < latest_ns ? next_ns : latest_ns;
    } while (!funnel_replace(funnel, &tat_ns, next_ns));
    return next_ns;
}

/*
 * The debt of an enforced limit is never cut. Every cut would let more than burst + rate * w pass.
 * The debt is bounded because everything that can be stopped is stopped (gate_ask, gate_ask_debtor,
 * gate_overdraft_ns). At most one burst is owed, plus the bytes in flight at that time.
 *
 * A limit in shadow mode stops nothing. Bytes beyond the bound would not have been sent under an
 * enforced limit, and are not charged. A handshake is not stopped either. The bytes of a handshake
 * beyond one burst are not charged: otherwise many handshakes would shut out the subject's other
 * connections for hours.
 */
void gate_owe_bytes(const struct charge_target *target, enum unit unit, uint64_t n, uint8_t counted,
                    uint64_t now_ns, struct limit_counters *limit_counters)
{
    gate_owe_bytes_then(target, unit, n, counted, now_ns, 0, limit_counters);
}

void gate_owe_bytes_then(const struct charge_target *target, enum unit unit, uint64_t n,
                         uint8_t counted, uint64_t now_ns, uint64_t virtual_ns,
                         struct limit_counters *limit_counters)
{
    const struct passed passed = {now_ns, virtual_ns};
    uint64_t exempt = counted & SHADOW_REFUSED ? target->policy->shadows : 0;
    for (uint64_t limits = gate_passed_held(target, target->policy->of_unit[unit] & ~exempt);
         limits; limits &= limits - 1) {
        unsigned i = lowest(limits);
        const struct limit *limit = &target->policy->limits[i];
        bool is_shadow = (target->policy->shadows >> i & 1) != 0;
        uint64_t at_ns = passed_by_policy(passed, target, limit);
        if ((is_shadow || (counted & GREETING) != 0) && overdraft_ns(target, i, at_ns) > 0)
            continue;
        uint64_t tat_ns = gate_passed_owe(target, i, n, passed);
        counter_add(&limit_counters[limit->id].admitted, n);
        limit_counters_note_near(limit, tat_ns, now_ns, limit_counters);
    }
}

/* ---- calls in flight ---- */

void gate_calls_begin(const struct charge_target *target, uint64_t counted, uint64_t counted_shadow)
{
    uint64_t limits = gate_passed_held(target, target->policy->of_unit[UNIT_INFLIGHT]);
    gauges_add(target, limits & ~target->policy->shadows, counted);
    gauges_add(target, limits & target->policy->shadows, counted_shadow);
}

void gate_calls_end(const struct charge_target *target, uint64_t counted, uint64_t counted_shadow)
{
    uint64_t limits = gate_passed_held(target, target->policy->of_unit[UNIT_INFLIGHT]);
    gauges_take(target, limits & ~target->policy->shadows, counted);
    gauges_take(target, limits & target->policy->shadows, counted_shadow);
}

void gate_calls_revoke(const struct charge_target *target, uint8_t counted,
                       struct limit_counters *limit_counters)
{
    const struct policy *policy = target->policy;
    gate_calls_end(target, (counted & COUNTED) != 0, (counted & COUNTED_SHADOW) != 0);
    for (uint64_t limits = policy->of_unit[UNIT_INFLIGHT]; limits; limits &= limits - 1) {
        unsigned i = lowest(limits);
        bool is_counted = (counted & (policy->shadows >> i & 1 ? COUNTED_SHADOW : COUNTED)) != 0;
        /* subtracts 1 */
        counter_add(&limit_counters[policy->limits[i].id].admitted, is_counted ? UINT64_MAX : 0);
    }
}

/* ---- connections: begin, change of subject, end; and failed logins ---- */

static uint64_t limits_on(const struct policy *policy, unsigned units)
{
    uint64_t limits = 0;
    for (; units; units &= units - 1)
        limits |= policy->of_unit[lowest(units)];
    return limits;
}

enum gate gate_connect(const struct charge_target *target, unsigned units, uint64_t now_ns,
                       struct limit_counters *limit_counters, struct verdict *verdict)
{
    const struct policy *policy = target->policy;
    uint64_t limits = limits_on(policy, units);
    verdict->counted = 0;
    verdict->is_shadowed = false;
    if (!limits)
        return GATE_PASS;
    const struct gate_request ask = {.amount = one_of_each(), .now_ns = now_ns};
    const struct trial trial = {target, &ask, limit_counters, 0, false};
    uint64_t enforced = limits & ~policy->shadows;
    uint64_t shadows = limits & policy->shadows;
    const struct limit *slowest = NULL;
    (void)holders_lock(target, now_ns);
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
    holders_unlock(target);
    return wait_ns > 0 ? GATE_CLOSE : GATE_PASS;
}

uint8_t gate_reconnect(const struct charge_target *target)
{
    gauges_add(target, target->policy->of_unit[UNIT_CONNECTIONS], 1);
    return COUNTED | COUNTED_SHADOW;
}

void gate_disconnect(const struct charge_target *target, uint8_t counted)
{
    uint64_t limits = target->policy->of_unit[UNIT_CONNECTIONS];
    gauges_take(target, limits & ~target->policy->shadows, (counted & COUNTED) != 0);
    gauges_take(target, limits & target->policy->shadows, (counted & COUNTED_SHADOW) != 0);
}

/* ---- failed logins ---- */

bool gate_may_login(const struct charge_target *target, uint64_t now_ns,
                    struct limit_counters *limit_counters)
{
    const struct policy *policy = target->policy;
    bool may = true;
    (void)holders_lock(target, now_ns);
    for (uint64_t limits = policy->of_unit[UNIT_AUTH_FAILURES]; limits; limits &= limits - 1) {
        unsigned i = lowest(limits);
        const struct limit *limit = &policy->limits[i];
        if (funnel_ask(funnel_at(target, i), rate_of(target, limit), now_ns, 1) == 0)
            continue;
        bool is_shadow = policy->shadows >> i & 1;
        if (limit_counters != NULL)
            counter_add(is_shadow ? &limit_counters[limit->id].shadowed
                                  : &limit_counters[limit->id].refused,
                        1);
        may &= is_shadow;
    }
    holders_unlock(target);
    return may;
}

uint64_t gate_logins_left(const struct charge_target *target, uint64_t now_ns)
{
    const struct policy *policy = target->policy;
    uint64_t least = UINT64_MAX;
    (void)holders_lock(target, now_ns);
    for (uint64_t limits = policy->of_unit[UNIT_AUTH_FAILURES] & ~policy->shadows; limits;
         limits &= limits - 1) {
        unsigned i = lowest(limits);
        uint64_t left = funnel_room(rate_of(target, &policy->limits[i]),
                                    funnel_word(funnel_at(target, i)), now_ns);
        least = left < least ? left : least;
    }
    holders_unlock(target);
    return least;
}

void gate_login_failed(const struct charge_target *target, uint64_t now_ns,
                       struct limit_counters *limit_counters)
{
    (void)holders_lock(target, now_ns);
    for (uint64_t limits = target->policy->of_unit[UNIT_AUTH_FAILURES]; limits;
         limits &= limits - 1) {
        unsigned i = lowest(limits);
        const struct limit *limit = &target->policy->limits[i];
        funnel_owe(funnel_at(target, i), now_ns, rate_of(target, limit)->interval_ns);
        counter_add(&limit_counters[limit->id].admitted, 1);
    }
    holders_unlock(target);
}
