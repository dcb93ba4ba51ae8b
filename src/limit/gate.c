/*
 * Checks the limits that apply to a command, then charges these limits.
 *
 * Nothing is charged unless every limit passes. The exception is a position in a queue, which is
 * charged when the command takes the position. A command that any limit refuses gets no position. A
 * single limit needs no lock: the word of its funnel decides. Several limits decide under the lock
 * of the subject. If the policy has limits for all its subjects together, the lock of the policy is
 * taken next.
 */
#include "limit/gate.h"

#include <assert.h>

#include "limit/trial.h"

/*
 * The limits that apply to the command: bit i stands for limit i. A command from a newer table than
 * the policy's counts as unknown, which is row 0.
 */
static uint64_t bound(const struct policy *policy, const struct command *command)
{
    assert(policy->n_binds > 0);
    return policy->binds[command->id < policy->n_binds ? command->id : 0];
}

static uint64_t asked(const struct policy *policy, enum part part)
{
    uint64_t connections = policy->of_unit[UNIT_INFLIGHT] | policy->of_unit[UNIT_BYTES_IN] |
                           policy->of_unit[UNIT_BYTES_OUT];
    return part == PART_ALL          ? UINT64_MAX
           : part == PART_CONNECTION ? connections | policy->blocks
                                     : ~connections;
}

/* The limits on bytes that may make a command of class control wait. */
static uint64_t debts_for(const struct policy *policy, const struct command *command)
{
    uint64_t bytes = policy->of_unit[UNIT_BYTES_IN] | policy->of_unit[UNIT_BYTES_OUT];
    return command->flags & CMD_CONTROL ? bytes & ~policy->shadows : 0;
}

bool gate_binds(const struct policy *policy, unsigned index, const struct command *command)
{
    return (bound(policy, command) | debts_for(policy, command)) >> index & 1;
}

bool gate_delays(const struct policy *policy, const struct command *command, enum part part)
{
    uint64_t delays = bound(policy, command) & policy->of_action[OVER_DELAY] & ~policy->shadows;
    return ((delays | debts_for(policy, command)) & asked(policy, part)) != 0;
}

/* ---- the fast path: limits on the subject's commands, over refuse ---- */

/* Inlined twice: for a single command, where n is the constant 1, and for n commands. */
#define FOR_EACH_N static inline __attribute__((always_inline))

static void refuse_plainly(const struct limit *limit, uint64_t wait_ns, uint64_t n,
                           struct limit_counters *limit_counters, struct verdict *verdict)
{
    verdict_set(verdict, limit, wait_ns);
    counter_add(&limit_counters[limit->id].refused, n);
}

/*
 * pass_one for a subject with other rates than this policy has: the newer rates of the two apply.
 */
static FUNNEL_RARE uint32_t pass_one_anew(const struct policy *policy, const struct limit *limit,
                                          struct subject *subject, uint32_t n, uint64_t now_ns,
                                          struct limit_counters *limit_counters,
                                          struct verdict *verdict)
{
    uint64_t tat_ns = 0;
    subject_lock(subject);
    settle_rarely(policy, subject, PER_SUBJECT, now_ns);
    const struct rate *rate = subject_rate(subject, limit);
    uint64_t fit = funnel_take_each(subject_funnel(subject, limit->slot), rate, now_ns, n, &tat_ns);
    subject_unlock(subject);
    if (fit > 0)
        limit_counters_note_each(limit, tat_ns, now_ns, fit, limit_counters);
    if (fit < n)
        refuse_plainly(limit, funnel_wait(rate, tat_ns, now_ns), n - fit, limit_counters, verdict);
    return (uint32_t)fit;
}

/*
 * Returns the wait of a single command in ns. 0: the command passes, and *next_ns is the word after
 * the pass.
 */
static inline uint64_t wait_of_one(const struct rate *rate, uint64_t tat_ns, uint64_t now_ns,
                                   uint64_t *next_ns)
{
    if (!rate_is_fine(rate))
        return funnel_rule(rate, tat_ns, now_ns, 1, next_ns);
    *next_ns = fine_after(rate, tat_ns, now_ns, 1);
    return funnel_wait(rate, tat_ns, now_ns);
}

/* Returns how many of n equal commands pass. subject_convert explains the order of the loads. */
FOR_EACH_N uint32_t pass_one(const struct policy *policy, const struct limit *limit,
                             struct subject *subject, uint32_t n, uint64_t now_ns,
                             struct limit_counters *limit_counters, struct verdict *verdict)
{
    struct funnel *funnel = subject_funnel(subject, limit->slot);
    uint64_t tat_ns = funnel_peek(funnel), next_ns = 0, wait_ns = 0, fit;
    do {
        if (!subject_has_rates(subject, policy->rates[PER_SUBJECT]))
            return pass_one_anew(policy, limit, subject, n, now_ns, limit_counters, verdict);
        wait_ns = n == 1 ? wait_of_one(&limit->rate, tat_ns, now_ns, &next_ns) : 0;
        fit = n == 1 ? wait_ns == 0 : funnel_fit(&limit->rate, tat_ns, now_ns, n);
        if (n > 1)
            next_ns = fit > 0 ? funnel_after(&limit->rate, tat_ns, now_ns, fit) : tat_ns;
    } while (fit > 0 ? !funnel_replace(funnel, &tat_ns, next_ns)
                     : !funnel_is_still(funnel, &tat_ns));
    if (fit > 0)
        limit_counters_note_each(limit, next_ns, now_ns, fit, limit_counters);
    if (fit < n)
        refuse_plainly(limit, n == 1 ? wait_ns : funnel_wait(&limit->rate, next_ns, now_ns),
                       n - fit, limit_counters, verdict);
    return (uint32_t)fit;
}

/*
 * True if the policy has several limits, or if any version of this policy has ever needed the lock.
 * A worker with a version that needs the lock first checks the word, then charges it. No other
 * charge may come in between.
 */
static bool needs_lock(const struct policy *policy)
{
    return policy->is_joint ||
           atomic_load_explicit(&policy->policy_state->is_locked, memory_order_relaxed);
}

static inline const struct rate *plain_rate(const struct subject *subject,
                                            const struct limit *limit, bool is_current)
{
    return is_current ? &limit->rate : subject_rate(subject, limit);
}

/*
 * Sets *slowest to the limit with the longest wait for the next command. Returns that wait in ns;
 * 0: the command passes all limits.
 */
FOR_EACH_N uint64_t longest_wait(const struct limit *limits, uint64_t binds,
                                 struct subject *subject, bool is_current, uint64_t now_ns,
                                 const struct limit **slowest)
{
    uint64_t longest_ns = 0;
    for (uint64_t left = binds; left; left &= left - 1) {
        const struct limit *limit = &limits[lowest(left)];
        const struct rate *rate = plain_rate(subject, limit, is_current);
        uint64_t wait_ns = funnel_ask(subject_funnel(subject, limit->slot), rate, now_ns, 1);
        if (wait_ns > longest_ns) {
            longest_ns = wait_ns;
            *slowest = limit;
        }
    }
    return longest_ns;
}

/*
 * How many of n commands pass, given that the first command passes. The limit with the least room
 * decides.
 */
FOR_EACH_N uint64_t least_fit(const struct limit *limits, uint64_t binds, struct subject *subject,
                              bool is_current, uint64_t n, uint64_t now_ns)
{
    for (uint64_t left = n > 1 ? binds : 0; left; left &= left - 1) {
        const struct limit *limit = &limits[lowest(left)];
        const struct rate *rate = plain_rate(subject, limit, is_current);
        n = funnel_fit(rate, funnel_word(subject_funnel(subject, limit->slot)), now_ns, n);
    }
    return n;
}

/*
 * pass_one for several limits. The caller has locked the subject; pass_locked unlocks it.
 * `is_current`: the subject runs at the rates of the policy.
 */
FOR_EACH_N uint32_t pass_locked(const struct policy *policy, uint64_t binds,
                                struct subject *subject, bool is_current, uint32_t n,
                                uint64_t now_ns, struct limit_counters *limit_counters,
                                struct verdict *verdict)
{
    const struct limit *limits = policy->limits;
    const struct limit *slowest = NULL;
    uint64_t longest_ns = longest_wait(limits, binds, subject, is_current, now_ns, &slowest);
    uint64_t fit = longest_ns > 0 ? 0 : least_fit(limits, binds, subject, is_current, n, now_ns);
    for (uint64_t left = fit > 0 ? binds : 0; left; left &= left - 1) {
        const struct limit *limit = &limits[lowest(left)];
        const struct rate *rate = plain_rate(subject, limit, is_current);
        uint64_t tat_ns = funnel_charge(subject_funnel(subject, limit->slot), rate, now_ns, fit);
        limit_counters_note_each(limit, tat_ns, now_ns, fit, limit_counters);
    }
    if (fit > 0 && fit < n)
        longest_ns = longest_wait(limits, binds, subject, is_current, now_ns, &slowest);
    subject_unlock(subject);
    if (longest_ns > 0)
        refuse_plainly(slowest, longest_ns, n - fit, limit_counters, verdict);
    return (uint32_t)fit;
}

static FUNNEL_RARE uint32_t pass_anew(const struct policy *policy, uint64_t binds,
                                      struct subject *subject, uint32_t n, uint64_t now_ns,
                                      struct limit_counters *limit_counters,
                                      struct verdict *verdict)
{
    settle_rarely(policy, subject, PER_SUBJECT, now_ns);
    return pass_locked(policy, binds, subject, false, n, now_ns, limit_counters, verdict);
}

FOR_EACH_N uint32_t pass_several(const struct policy *policy, uint64_t binds,
                                 struct subject *subject, uint32_t n, uint64_t now_ns,
                                 struct limit_counters *limit_counters, struct verdict *verdict)
{
    subject_lock(subject);
    if (!subject_has_rates(subject, policy->rates[PER_SUBJECT]))
        return pass_anew(policy, binds, subject, n, now_ns, limit_counters, verdict);
    return pass_locked(policy, binds, subject, true, n, now_ns, limit_counters, verdict);
}

FOR_EACH_N uint32_t ask_plainly(const struct policy *policy, struct subject *subject,
                                const struct command *command, uint32_t n, uint64_t now_ns,
                                struct limit_counters *limit_counters, struct verdict *verdict)
{
    uint64_t binds = bound(policy, command);
    if (!binds)
        return n;
    if (needs_lock(policy))
        return pass_several(policy, binds, subject, n, now_ns, limit_counters, verdict);
    return pass_one(policy, &policy->limits[lowest(binds)], subject, n, now_ns, limit_counters,
                    verdict);
}

static __attribute__((noinline)) uint32_t ask_each(
    const struct policy *policy, struct subject *subject, const struct command *command, uint32_t n,
    uint64_t now_ns, struct limit_counters *limit_counters, struct verdict *verdict)
{
    return ask_plainly(policy, subject, command, n, now_ns, limit_counters, verdict);
}

uint32_t gate_ask_plainly(const struct policy *policy, struct subject *subject,
                          const struct command *command, uint32_t n, uint64_t now_ns,
                          struct limit_counters *limit_counters, struct verdict *verdict)
{
    return n == 1 ? ask_plainly(policy, subject, command, 1, now_ns, limit_counters, verdict)
                  : ask_each(policy, subject, command, n, now_ns, limit_counters, verdict);
}

static FUNNEL_RARE uint64_t gate_wait_anew(const struct policy *policy,
                                           const struct command *command, struct subject *subject,
                                           uint64_t now_ns, const struct limit **slowest)
{
    settle_rarely(policy, subject, PER_SUBJECT, now_ns);
    return longest_wait(policy->limits, bound(policy, command), subject, false, now_ns, slowest);
}

bool gate_refuse_plainly(const struct policy *policy, struct subject *subject,
                         const struct command *command, uint32_t n, uint64_t now_ns,
                         struct limit_counters *limit_counters, struct verdict *verdict)
{
    const struct limit *slowest = NULL;
    subject_lock(subject);
    uint64_t wait_ns =
        subject_has_rates(subject, policy->rates[PER_SUBJECT])
            ? longest_wait(policy->limits, bound(policy, command), subject, true, now_ns, &slowest)
            : gate_wait_anew(policy, command, subject, now_ns, &slowest);
    subject_unlock(subject);
    if (wait_ns > 0)
        refuse_plainly(slowest, wait_ns, n, limit_counters, verdict);
    return wait_ns > 0;
}

/* ---- the slow path: any limits ---- */

/*
 * By how many ns the longest wait exceeds the delay that its limit allows, counted from headed_ns;
 * 0: no excess. A command of class control waits without bound and is never refused.
 */
static uint64_t overlong_wait(const struct trial *trial, uint64_t delays,
                              const struct limit **which)
{
    const struct gate_request *ask = trial->ask;
    uint64_t waited_ns = ask->now_ns > ask->headed_ns ? ask->now_ns - ask->headed_ns : 0;
    uint64_t longest_ns = 0;
    for (; delays && !(ask->command->flags & CMD_CONTROL); delays &= delays - 1) {
        const struct limit *limit = trial_limit(trial, lowest(delays));
        uint64_t wait_ns = trial_wait(trial, lowest(delays));
        uint64_t may_ns = !ask->may_wait                ? 0
                          : limit->delay_ns > waited_ns ? limit->delay_ns - waited_ns
                                                        : 0;
        if (wait_ns > may_ns && wait_ns - may_ns > longest_ns) {
            longest_ns = wait_ns - may_ns;
            *which = limit;
        }
    }
    return longest_ns;
}

/* Sets the verdict: the limit that refuses, and the time until the command would pass. */
static enum gate gate_refuse(const struct trial *trial, const struct limit *limit, uint64_t wait_ns,
                             bool is_shadow, struct verdict *verdict)
{
    enum gate gate = limit->action == OVER_DENY    ? GATE_DENY
                     : limit->action == OVER_CLOSE ? GATE_CLOSE
                                                   : GATE_REFUSE;
    verdict_set(verdict, limit, wait_ns);
    trial_count(trial, limit, gate, is_shadow);
    return gate;
}

/*
 * Time in ns until each of `others` has room and none of `delays` delays for too long; 0: now. Sets
 * *which to the limit that takes longest.
 */
static uint64_t refusal_lasts(const struct trial *trial, uint64_t others, uint64_t delays,
                              const struct limit **which)
{
    const struct limit *overlong = NULL;
    uint64_t full_ns = trial_longest_wait(trial, others, which);
    uint64_t over_ns = overlong_wait(trial, delays, &overlong);
    if (over_ns <= full_ns)
        return full_ns;
    *which = overlong;
    return over_ns;
}

/*
 * Refuses if one of `limits` refuses now, whatever the other limits would delay. GATE_PASS: none of
 * `limits` refuses.
 */
static enum gate veto(const struct trial *trial, uint64_t limits, bool is_shadow,
                      struct verdict *verdict)
{
    const struct policy *policy = trial->target->policy;
    const struct limit *slowest = NULL;
    uint64_t denies = limits & policy->of_action[OVER_DENY];
    if (denies)
        return gate_refuse(trial, trial_limit(trial, lowest(denies)), UINT64_MAX, is_shadow,
                           verdict);
    uint64_t delays = limits & policy->of_action[OVER_DELAY];
    uint64_t wait_ns = refusal_lasts(trial, limits & ~delays, delays, &slowest);
    return wait_ns > 0 ? gate_refuse(trial, slowest, wait_ns, is_shadow, verdict) : GATE_PASS;
}

#define RULES_NS NS_PER_MS /* time until a command that waits for newer rules is checked again */

/*
 * True if newer rules, which this worker does not have yet, have ended the queue of one of
 * `delays`. The command then waits for the newer rules without a position. The order of a block's
 * rates is one below the order of its set of rules: limit/policy/exceptions.c.
 */
static FUNNEL_RARE bool has_ended(const struct trial *trial, uint64_t delays,
                                  struct verdict *verdict)
{
    for (; delays; delays &= delays - 1) {
        const struct limit *limit = trial_limit(trial, lowest(delays));
        const struct subject *holder = trial->target->holders[limit->scope];
        const struct rate_table *has = atomic_load_explicit(&holder->rates, memory_order_relaxed);
        const struct rate_table *own = trial->target->policy->rates[limit->scope];
        if (!limit_has_positions(limit) || has->order <= own->order + 1 ||
            subject_has_queue(holder, limit->slot))
            continue;
        verdict_set(verdict, limit, RULES_NS);
        return true;
    }
    return false;
}

/*
 * Decides about `limits` as if they were enforced, and charges them. A command that one limit
 * refuses is refused. Only a command that no limit refuses may be delayed.
 */
static enum gate gate_decide(const struct trial *asked, uint64_t limits, bool is_shadow,
                             struct verdict *verdict)
{
    const struct policy *policy = asked->target->policy;
    uint64_t delays = limits & policy->of_action[OVER_DELAY];
    const struct trial trial = {asked->target, asked->ask, asked->limit_counters,
                                gate_positions_had(asked, delays), asked->is_current};
    enum gate gate = veto(&trial, limits & ~trial.had, is_shadow, verdict);
    if (gate == GATE_PASS && trial.ask->may_wait && !is_shadow)
        gate = !trial.is_current && has_ended(&trial, delays, verdict)
                   ? GATE_WAIT
                   : gate_positions_wait(&trial, delays, verdict);
    if (gate != GATE_PASS)
        return gate;
    trial_charge(&trial, limits & ~trial.had & ~(is_shadow ? 0 : delays));
    if (!is_shadow)
        gate_positions_depart(&trial, delays, &verdict->positions);
    if (limits & policy->of_unit[UNIT_INFLIGHT])
        verdict->counted |= is_shadow ? COUNTED_SHADOW : COUNTED;
    return GATE_PASS;
}

/* ---- limits in shadow mode ---- */

#define LAG_NS NS_PER_S /* chosen: how far a virtual clock may be ahead beyond `delay_ns` */

/*
 * The latest time at which a command is checked. If the virtual clock is later, the command counts
 * as not yet sent.
 */
static uint64_t latest_ns(const struct trial *trial)
{
    const struct policy *policy = trial->target->policy;
    uint64_t longest_ns = 0, delays = policy->of_action[OVER_DELAY] & policy->shadows;
    for (; delays; delays &= delays - 1) {
        const struct limit *limit = trial_limit(trial, lowest(delays));
        longest_ns = limit->delay_ns > longest_ns ? limit->delay_ns : longest_ns;
    }
    return trial->ask->now_ns + longest_ns + LAG_NS;
}

/*
 * Returns the decision request with at_ns as its time, as if the command became first in its
 * connection's queue at at_ns.
 */
static struct gate_request gate_ask_at(const struct trial *trial, uint64_t at_ns)
{
    struct gate_request ask = *trial->ask;
    ask.now_ns = ask.headed_ns = at_ns;
    ask.waited_for = 0;
    ask.positions = NULL;
    return ask;
}

/*
 * The command would wait in the queues of `delays`, one after the other. Returns the time when it
 * would leave the last queue. If verdict is NULL each queue is charged, at the time when the
 * command would reach it. Otherwise the waits are only counted, and *verdict is set.
 */
static uint64_t wait_virtually(const struct trial *trial, uint64_t delays, struct verdict *verdict)
{
    struct gate_request ask = *trial->ask;
    const struct trial then = {trial->target, &ask, trial->limit_counters, 0, trial->is_current};
    while (delays) {
        const struct limit *slowest = NULL;
        uint64_t wait_ns = trial_longest_wait(&then, delays, &slowest);
        uint64_t some =
            wait_ns > 0 ? UINT64_C(1) << (slowest - trial->target->policy->limits) : delays;
        if (verdict == NULL) {
            trial_charge(&then, some);
        } else if (wait_ns > 0) {
            trial_count(trial, slowest, GATE_WAIT, false);
            verdict_set(verdict, slowest, wait_ns);
            verdict->would = GATE_WAIT;
        }
        ask.now_ns += wait_ns;
        delays &= ~some;
    }
    return ask.now_ns;
}

/*
 * Counts as delayed a command that the client would not have sent yet, since the virtual clock is
 * too far ahead. The limits that delay the command are not charged.
 */
static void delay_uncharged(const struct trial *trial, uint64_t delays, struct verdict *verdict)
{
    if (delays == 0)
        return;
    const struct limit *first = trial_limit(trial, lowest(delays));
    trial_count(trial, first, GATE_WAIT, false);
    verdict_set(verdict, first, trial->ask->virtual_ns - trial->ask->now_ns);
    verdict->would = GATE_WAIT;
    for (; trial->limit_counters != NULL && delays; delays &= delays - 1) {
        const struct limit *limit = trial_limit(trial, lowest(delays));
        if (!unit_is_bytes((enum unit)limit->unit))
            counter_add(&trial->limit_counters[limit->id].admitted, trial_units(trial, limit));
    }
}

/*
 * Predicts the decision if the limits that delay were enforced. In shadow mode nothing waits, and
 * the client sends its next command too early. The next command is therefore checked at the time
 * when the present command would have gone.
 */
static enum gate foresee(const struct trial *asked, uint64_t limits, struct verdict *verdict)
{
    uint64_t delays = limits & asked->target->policy->of_action[OVER_DELAY],
             others = limits & ~delays;
    uint64_t last_ns = latest_ns(asked), clock_ns = asked->ask->virtual_ns;
    bool is_ahead = clock_ns > last_ns;
    uint64_t at_ns = is_ahead                        ? last_ns
                     : clock_ns > asked->ask->now_ns ? clock_ns
                                                     : asked->ask->now_ns;
    struct gate_request ask = gate_ask_at(asked, at_ns);
    const struct trial trial = {asked->target, &ask, asked->limit_counters, 0, asked->is_current};
    verdict->virtual_ns = is_ahead ? clock_ns : at_ns;
    enum gate gate = veto(&trial, is_ahead ? others : limits, true, verdict);
    if (gate != GATE_PASS)
        return gate;
    struct gate_request leaving = ask;
    const struct trial departure = {asked->target, &leaving, asked->limit_counters, 0,
                                    asked->is_current};
    if (is_ahead) {
        delay_uncharged(&trial, delays, verdict);
    } else {
        verdict->virtual_ns = leaving.now_ns = leaving.headed_ns =
            wait_virtually(&trial, delays, verdict);
        /* the other limits are checked again at the time when the command would leave */
        gate = leaving.now_ns > at_ns ? veto(&departure, others, true, verdict) : GATE_PASS;
    }
    if (gate != GATE_PASS)
        return gate;
    if (!is_ahead)
        (void)wait_virtually(&trial, delays, NULL);
    trial_charge(&departure, others);
    if (limits & asked->target->policy->of_unit[UNIT_INFLIGHT])
        verdict->counted |= COUNTED_SHADOW;
    return GATE_PASS;
}

/* True if limits in shadow mode count bytes. */
static bool owes_bytes(const struct policy *policy)
{
    return ((policy->of_unit[UNIT_BYTES_IN] | policy->of_unit[UNIT_BYTES_OUT]) & policy->shadows) !=
           0;
}

/*
 * The limits among `limits` that virtual clocks may charge in the future. A limit is left out if
 * its holder has newer rules than this worker. The newer rules have cut the debt to the burst, and
 * the debt must not exceed the burst again.
 */
static uint64_t charged_ahead(const struct trial *trial, uint64_t limits)
{
    uint64_t ahead = 0;
    for (; limits; limits &= limits - 1) {
        const struct limit *limit = trial_limit(trial, lowest(limits));
        const struct subject *holder = trial->target->holders[limit->scope];
        enum slot_queue kind = limit_has_positions(limit) ? SLOT_QUEUE_SHADOW : SLOT_AHEAD;
        ahead |= subject_slot_queue(holder, limit->slot) == kind ? limits & -limits : 0;
    }
    return ahead;
}

/* Limits that a virtual clock may not charge are checked now, and charged within their bursts. */
static enum gate foresee_or_decide(const struct trial *trial, uint64_t limits,
                                   struct verdict *found)
{
    uint64_t ahead = charged_ahead(trial, limits);
    struct gate_request ask = gate_ask_at(trial, trial->ask->now_ns);
    ask.may_wait = false;
    const struct trial now = {trial->target, &ask, trial->limit_counters, 0, trial->is_current};
    enum gate gate = gate_decide(&now, limits & ~ahead, true, found);
    return gate == GATE_PASS && ahead != 0 ? foresee(trial, ahead, found) : gate;
}

static void ask_shadows(const struct trial *trial, uint64_t limits, struct verdict *verdict)
{
    const struct policy *policy = trial->target->policy;
    struct verdict found = {0};
    bool can_delay = (limits & policy->of_action[OVER_DELAY]) != 0 ||
                     trial->ask->virtual_ns > trial->ask->now_ns;
    enum gate gate = can_delay ? foresee_or_decide(trial, limits, &found)
                               : gate_decide(trial, limits, true, &found);
    bool may = gate == GATE_PASS;
    verdict->counted |= may ? found.counted : owes_bytes(policy) ? SHADOW_REFUSED : 0;
    verdict->is_shadowed = !may;
    verdict->would = may ? found.would : gate;
    verdict->would_wait_ns = found.wait_ns;
    verdict->virtual_ns = found.virtual_ns;
    if (verdict->would != GATE_PASS)
        verdict->limit = found.limit;
}

static enum gate pass_any(struct trial *trial, uint64_t binds, struct verdict *verdict)
{
    const struct policy *policy = trial->target->policy;
    trial->is_current = holders_lock(trial->target, trial->ask->now_ns);
    verdict->counted = 0;
    enum gate gate = gate_decide(trial, binds & ~policy->shadows, false, verdict);
    if (gate == GATE_PASS && (binds & policy->shadows))
        ask_shadows(trial, binds & policy->shadows, verdict);
    holders_unlock(trial->target);
    return gate;
}

enum gate gate_ask(const struct charge_target *target, const struct gate_request *ask,
                   struct limit_counters *limit_counters, struct verdict *verdict)
{
    const struct policy *policy = target->policy;
    uint64_t exempt = ask->blocks ? policy->of_unit[UNIT_INFLIGHT] : 0;
    uint64_t binds = bound(policy, ask->command) & asked(policy, ask->part) & ~exempt;
    verdict->counted = 0;
    verdict->is_shadowed = false;
    verdict->would = GATE_PASS;
    verdict->virtual_ns = 0;
    verdict->positions.n = 0;
    if (ask->positions != NULL)
        verdict->positions = *ask->positions;
    if (!binds)
        return GATE_PASS;
    if (policy->is_plain && !ask->is_dry) {
        struct subject *subject = target->holders[PER_SUBJECT];
        bool may = ask_plainly(policy, subject, ask->command, 1, ask->now_ns, limit_counters,
                               verdict) == 1;
        return may ? GATE_PASS : GATE_REFUSE;
    }
    struct trial trial = {target, ask, ask->is_dry ? NULL : limit_counters, 0, false};
    return pass_any(&trial, binds, verdict);
}

enum gate gate_ask_refusal(const struct charge_target *target, const struct gate_request *ask,
                           struct limit_counters *limit_counters, struct verdict *verdict)
{
    const struct policy *policy = target->policy;
    struct trial trial = {target, ask, ask->is_dry ? NULL : limit_counters, 0, false};
    uint64_t limits = bound(policy, ask->command) & asked(policy, ask->part) & ~policy->shadows;
    trial.is_current = holders_lock(target, ask->now_ns);
    trial.had = gate_positions_had(&trial, limits & policy->of_action[OVER_DELAY]);
    enum gate gate = veto(&trial, limits & ~trial.had, false, verdict);
    holders_unlock(target);
    return gate;
}

uint64_t gate_positions_due(struct queue_positions *positions)
{
    uint64_t due_ns = 0;
    for (unsigned i = 0; i < positions->n; i++) {
        struct kept_position *position = &positions->kept[i];
        if (position->holder == NULL || position->has_gone)
            continue;
        subject_lock(position->holder);
        (void)queue_look(position);
        uint64_t until_ns = queue_until(position);
        subject_unlock(position->holder);
        due_ns = until_ns > due_ns ? until_ns : due_ns;
    }
    return due_ns;
}

/*
 * A position of the overflow subject is not given back. The debt of the overflow subject may shrink
 * only with time: subjects that owed no more than this debt were dropped.
 */
static void leave_position(const struct kept_position *position,
                           struct limit_counters *limit_counters)
{
    subject_lock(position->holder);
    queue_wait_no_more(position);
    if (!subject_is_overflow(position->holder))
        queue_leave(position);
    counter_add(&limit_counters[position->id].admitted, -position->units);
    subject_unlock(position->holder);
}

void gate_leave(const struct queue_positions *positions, struct limit_counters *limit_counters)
{
    for (unsigned i = 0; i < positions->n; i++)
        if (positions->kept[i].holder != NULL && !positions->kept[i].has_gone)
            leave_position(&positions->kept[i], limit_counters);
}

void gate_forget_positions(struct queue_positions *positions)
{
    for (unsigned i = 0; i < positions->n; i++) {
        struct kept_position *position = &positions->kept[i];
        if (position->holder == NULL)
            continue;
        subject_lock(position->holder);
        if (!position->has_gone)
            queue_wait_no_more(position);
        subject_unlock(position->holder);
        position->holder = NULL;
    }
}

/* ---- rates that have changed ---- */

void gate_settle_holder(const struct policy *policy, struct subject *holder, enum scope scope,
                        uint64_t now_ns)
{
    subject_lock(holder);
    settle_rarely(policy, holder, scope, now_ns);
    subject_unlock(holder);
}

void gate_settle(const struct charge_target *target, uint64_t now_ns)
{
    (void)holders_lock(target, now_ns);
    holders_unlock(target);
}

/* ---- the state of a limit ---- */

static struct standing standing_of_gauge(const struct limit *limit, uint64_t value)
{
    uint64_t remaining = value < limit->rate.count ? limit->rate.count - value : 0;
    return (struct standing){remaining, remaining > 0 ? -1 : 0, 0};
}

static uint64_t bytes_in(const struct rate *rate, uint64_t debt_ns)
{
    uint64_t room_ns = debt_ns < rate->burst_ns ? rate->burst_ns - debt_ns : 0;
    return (uint64_t)((unsigned __int128)room_ns * rate->count / rate->period_ns);
}

static struct standing standing_of(const struct charge_target *target, const struct limit *limit,
                                   const struct funnel *funnel, uint64_t now_ns)
{
    const struct rate *rate = rate_of(target, limit);
    uint64_t tat_ns = funnel_word(funnel);
    uint64_t debt_ns = tat_ns > now_ns ? tat_ns - now_ns : 0;
    uint64_t remaining = unit_is_bytes((enum unit)limit->unit) ? bytes_in(rate, debt_ns)
                                                               : funnel_room(rate, tat_ns, now_ns);
    uint64_t wait_ns = funnel_wait(rate, tat_ns, now_ns);
    return (struct standing){remaining, wait_ns > 0 ? (int64_t)wait_ns : -1, debt_ns};
}

struct standing gate_standing(const struct charge_target *target, unsigned index, uint64_t now_ns)
{
    const struct limit *limit = &target->policy->limits[index];
    if (limit->action == OVER_DENY)
        return (struct standing){0, INT64_MAX, 0};
    const struct funnel *funnel = funnel_at(target, index);
    if (unit_is_gauge((enum unit)limit->unit))
        return standing_of_gauge(limit, gauge_value(funnel));
    (void)holders_lock(target, now_ns);
    struct standing standing = standing_of(target, limit, funnel, now_ns);
    holders_unlock(target);
    return standing;
}
