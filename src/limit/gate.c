/*
 * Asks the limits that bind a command, then charges them.
 *
 * Nothing is charged unless everything passes, but for a place in a queue: and none is given to what a limit refuses. A
 * single limit decides on its word, several under the subject's lock and, where the policy has limits for all its
 * subjects together, then under the policy's.
 */
#include "limit/gate.h"

#include <assert.h>

#define FULL 1 /* the wait for a number to fall: nobody knows how long; anything else that refuses waits longer */

static unsigned lowest(uint64_t bits)
{
    return (unsigned)__builtin_ctzll(bits);
}

/* Bit i: limit i binds the command. A command of a newer table than the policy's is as good as unknown: row 0. */
static uint64_t bound(const struct policy *policy, const struct command *command)
{
    assert(policy->n_binds > 0);
    return policy->binds[command->id < policy->n_binds ? command->id : 0];
}

static uint64_t asked(const struct policy *policy, enum part part)
{
    uint64_t connections =
        policy->of_unit[UNIT_INFLIGHT] | policy->of_unit[UNIT_BYTES_IN] | policy->of_unit[UNIT_BYTES_OUT];
    return part == PART_ALL ? UINT64_MAX : part == PART_CONNECTION ? connections : ~connections;
}

/* The limits whose debt such a command waits for. */
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

static struct funnel *funnel_of(const struct account *account, unsigned index)
{
    const struct limit *limit = &account->policy->limits[index];
    return subject_funnel(account->holders[limit->scope], limit->slot);
}

static void set_verdict(struct verdict *verdict, const struct limit *limit, uint64_t wait_ns)
{
    bool is_gauge = unit_is_gauge((enum unit)limit->unit);
    verdict->limit = limit;
    verdict->wait_ns = is_gauge ? 0 : wait_ns < GATE_NEVER ? (int64_t)wait_ns : GATE_NEVER;
}

/* ---- the short way: limits on the subject's commands, over refuse ---- */

static bool refuse_plainly(const struct limit *limit, uint64_t wait_ns, struct tally *tallies, struct verdict *verdict)
{
    set_verdict(verdict, limit, wait_ns);
    tally_add(&tallies[limit->id].refused, 1);
    return false;
}

/* It has passed and is charged. */
static inline void note_near(const struct limit *limit, uint64_t tat_ns, uint64_t now_ns, struct tally *tallies)
{
    if (funnel_is_near(&limit->rate, tat_ns, now_ns))
        tally_add(&tallies[limit->id].near, 1);
}

static bool pass_one(const struct limit *limit, struct subject *subject, uint64_t now_ns, struct tally *tallies,
                     struct verdict *verdict)
{
    struct funnel *funnel = subject_funnel(subject, limit->slot);
    uint64_t wait_ns = funnel_take(funnel, &limit->rate, now_ns, 1);
    if (wait_ns > 0)
        return refuse_plainly(limit, wait_ns, tallies, verdict);
    tally_add(&tallies[limit->id].admitted, 1);
    note_near(limit, funnel_word(funnel), now_ns, tallies);
    return true;
}

/*
 * Several limits do; so does a single one once any set of this policy has had several, or others: a worker that has
 * that set charges the same word after asking it, and nobody may come in between.
 */
static bool needs_lock(const struct policy *policy)
{
    return policy->is_joint || atomic_load_explicit(&policy->record->is_locked, memory_order_relaxed);
}

static bool pass_several(const struct limit *limits, uint64_t binds, struct subject *subject, uint64_t now_ns,
                         struct tally *tallies, struct verdict *verdict)
{
    const struct limit *slowest = NULL;
    uint64_t longest_ns = 0;
    subject_lock(subject);
    for (uint64_t left = binds; left; left &= left - 1) {
        const struct limit *limit = &limits[lowest(left)];
        uint64_t wait_ns = funnel_ask(subject_funnel(subject, limit->slot), &limit->rate, now_ns, 1);
        if (wait_ns > longest_ns) {
            longest_ns = wait_ns;
            slowest = limit;
        }
    }
    for (uint64_t left = longest_ns == 0 ? binds : 0; left; left &= left - 1) {
        const struct limit *limit = &limits[lowest(left)];
        uint64_t tat_ns = funnel_charge(subject_funnel(subject, limit->slot), &limit->rate, now_ns, 1);
        tally_add(&tallies[limit->id].admitted, 1);
        note_near(limit, tat_ns, now_ns, tallies);
    }
    subject_unlock(subject);
    return longest_ns == 0 || refuse_plainly(slowest, longest_ns, tallies, verdict);
}

bool gate_ask_plainly(const struct policy *policy, struct subject *subject, const struct command *command,
                      uint64_t now_ns, struct tally *tallies, struct verdict *verdict)
{
    uint64_t binds = bound(policy, command);
    if (!binds)
        return true;
    if (needs_lock(policy))
        return pass_several(policy->limits, binds, subject, now_ns, tallies, verdict);
    return pass_one(&policy->limits[lowest(binds)], subject, now_ns, tallies, verdict);
}

/* ---- the long way: any limits ---- */

/* A decision being made. */
struct trial {
    const struct account *account;
    const struct ask *ask;
    struct tally *tallies; /* NULL: nothing is charged or counted */
    uint64_t had;          /* the limits that delay with which it has had its place; in the others it goes ahead */
};

static const struct limit *limit_at(const struct trial *trial, unsigned index)
{
    return &trial->account->policy->limits[index];
}

/* The subject first, then the policy: everybody in the same order. A connection's funnels are one thread's. */
static void lock(const struct account *account)
{
    if (account->holders[PER_SUBJECT])
        subject_lock(account->holders[PER_SUBJECT]);
    if (account->holders[PER_POLICY])
        subject_lock(account->holders[PER_POLICY]);
}

static void unlock(const struct account *account)
{
    if (account->holders[PER_POLICY])
        subject_unlock(account->holders[PER_POLICY]);
    if (account->holders[PER_SUBJECT])
        subject_unlock(account->holders[PER_SUBJECT]);
}

static uint64_t units_of(const struct trial *trial, const struct limit *limit)
{
    return trial->ask->amount[limit->unit];
}

static struct queue queue_of(const struct trial *trial, const struct limit *limit)
{
    return (struct queue){trial->account->holders[limit->scope], limit};
}

static FUNNEL_RARE uint64_t wait_ahead(const struct trial *trial, const struct limit *limit)
{
    const struct queue queue = queue_of(trial, limit);
    return queue_wait_ahead(&queue, units_of(trial, limit), trial->ask->now_ns);
}

/* Until it passes this limit; 0: now. */
static uint64_t wait_for(const struct trial *trial, unsigned index)
{
    const struct limit *limit = limit_at(trial, index);
    struct funnel *funnel = funnel_of(trial->account, index);
    if (unit_is_gauge((enum unit)limit->unit))
        return gauge_value(funnel) >= limit->rate.count ? FULL : 0;
    if (trial->had != 0 && limit_has_places(limit))
        return wait_ahead(trial, limit);
    if (limit->action == OVER_DELAY)
        return funnel_queue(funnel, &limit->rate, trial->ask->now_ns, units_of(trial, limit));
    return funnel_ask(funnel, &limit->rate, trial->ask->now_ns, units_of(trial, limit));
}

/* The longest wait of all; 0 when all pass. */
static uint64_t longest_wait(const struct trial *trial, uint64_t limits, const struct limit **slowest)
{
    uint64_t longest_ns = 0;
    for (; limits; limits &= limits - 1) {
        unsigned i = lowest(limits);
        uint64_t wait_ns = wait_for(trial, i);
        if (wait_ns > longest_ns) {
            longest_ns = wait_ns;
            *slowest = limit_at(trial, i);
        }
    }
    return longest_ns;
}

static bool is_near(const struct limit *limit, const struct funnel *funnel, uint64_t now_ns)
{
    if (unit_is_gauge((enum unit)limit->unit))
        return gauge_value(funnel) > limit->rate.count / 5 * 4 + limit->rate.count % 5 * 4 / 5;
    return funnel_is_near(&limit->rate, funnel_word(funnel), now_ns);
}

static void note_admitted(const struct trial *trial, unsigned index, uint64_t units)
{
    const struct limit *limit = limit_at(trial, index);
    tally_add(&trial->tallies[limit->id].admitted, units);
    if (is_near(limit, funnel_of(trial->account, index), trial->ask->now_ns))
        tally_add(&trial->tallies[limit->id].near, 1);
}

static void charge(const struct trial *trial, uint64_t limits)
{
    for (; trial->tallies && limits; limits &= limits - 1) {
        unsigned i = lowest(limits);
        const struct limit *limit = limit_at(trial, i);
        if (unit_is_bytes((enum unit)limit->unit))
            continue;
        struct funnel *funnel = funnel_of(trial->account, i);
        uint64_t units = units_of(trial, limit);
        if (unit_is_gauge((enum unit)limit->unit))
            gauge_add(funnel, 1);
        else if (limit->action == OVER_DELAY)
            funnel_enqueue(funnel, &limit->rate, trial->ask->now_ns, units);
        else
            funnel_charge(funnel, &limit->rate, trial->ask->now_ns, units);
        note_admitted(trial, i, units);
    }
}

static void count(const struct trial *trial, const struct limit *limit, enum gate what, bool is_shadow)
{
    if (!trial->tallies)
        return;
    struct tally *tally = &trial->tallies[limit->id];
    tally_add(is_shadow ? &tally->shadowed : what == GATE_WAIT ? &tally->delayed : &tally->refused, 1);
}

/*
 * By how much the longest of them is more than its limit lets a command wait, from when it was the next; 0: by nothing.
 * A command of class control waits as long as it must: it is never refused.
 */
static uint64_t overlong_wait(const struct trial *trial, uint64_t delays, const struct limit **which)
{
    const struct ask *ask = trial->ask;
    uint64_t waited_ns = ask->now_ns > ask->headed_ns ? ask->now_ns - ask->headed_ns : 0;
    uint64_t longest_ns = 0;
    for (; delays && !(ask->command->flags & CMD_CONTROL); delays &= delays - 1) {
        const struct limit *limit = limit_at(trial, lowest(delays));
        uint64_t wait_ns = wait_for(trial, lowest(delays));
        uint64_t may_ns = !ask->may_wait ? 0 : limit->delay_ns > waited_ns ? limit->delay_ns - waited_ns : 0;
        if (wait_ns > may_ns && wait_ns - may_ns > longest_ns) {
            longest_ns = wait_ns - may_ns;
            *which = limit;
        }
    }
    return longest_ns;
}

/* By the limit that refused, and how long until it would not. */
static enum gate refuse(const struct trial *trial, const struct limit *limit, uint64_t wait_ns, bool is_shadow,
                        struct verdict *verdict)
{
    enum gate gate = limit->action == OVER_DENY ? GATE_DENY : limit->action == OVER_CLOSE ? GATE_CLOSE : GATE_REFUSE;
    set_verdict(verdict, limit, wait_ns);
    count(trial, limit, gate, is_shadow);
    return gate;
}

/*
 * How long until every one of `others` has room and none of `delays` delays for too long; 0: it is so now. `which` is
 * the one that takes longest.
 */
static uint64_t refusal_lasts(const struct trial *trial, uint64_t others, uint64_t delays, const struct limit **which)
{
    const struct limit *overlong = NULL;
    uint64_t full_ns = longest_wait(trial, others, which);
    uint64_t over_ns = overlong_wait(trial, delays, &overlong);
    if (over_ns <= full_ns)
        return full_ns;
    *which = overlong;
    return over_ns;
}

/* Refused now by one of `limits`, whatever others would delay? GATE_PASS: by none. */
static enum gate veto(const struct trial *trial, uint64_t limits, bool is_shadow, struct verdict *verdict)
{
    const struct policy *policy = trial->account->policy;
    const struct limit *slowest = NULL;
    uint64_t denies = limits & policy->of_action[OVER_DENY];
    if (denies)
        return refuse(trial, limit_at(trial, lowest(denies)), UINT64_MAX, is_shadow, verdict);
    uint64_t delays = limits & policy->of_action[OVER_DELAY];
    uint64_t wait_ns = refusal_lasts(trial, limits & ~delays, delays, &slowest);
    return wait_ns > 0 ? refuse(trial, slowest, wait_ns, is_shadow, verdict) : GATE_PASS;
}

/* ---- places in queues ---- */

/* The place that it has in that queue; NULL: none. */
static struct kept_place *place_with(struct turn *turn, const struct limit *limit)
{
    for (unsigned i = 0; i < turn->n; i++)
        if (turn->places[i].id == limit->id)
            return &turn->places[i];
    return NULL;
}

/* Those of the limits that delay with which it has had its place, or has waited. */
static uint64_t places_had(const struct trial *trial, uint64_t delays)
{
    const struct turn *turn = trial->ask->turn;
    uint64_t had = 0;
    for (; delays; delays &= delays - 1) {
        uint16_t id = limit_at(trial, lowest(delays))->id;
        bool has_had = trial->ask->waited_for == id + 1U;
        for (unsigned i = 0; turn && i < turn->n; i++)
            has_had |= turn->places[i].id == id;
        had |= has_had ? delays & -delays : 0;
    }
    return had;
}

/* Charged. The subject is locked: what the word was before is what it is charged on. */
static struct kept_place take_place(const struct trial *trial, unsigned index)
{
    const struct limit *limit = limit_at(trial, index);
    const struct queue queue = queue_of(trial, limit);
    uint64_t units = units_of(trial, limit);
    uint64_t now_ns = trial->ask->now_ns;
    const struct kept_place place = trial->had != 0 ? queue_join_ahead(&queue, units, now_ns)
                                                    : queue_join(&queue, units, now_ns, wait_for(trial, index));
    note_admitted(trial, index, units);
    return place;
}

/* Of a dry decision nothing is kept, and bytes are not known yet. */
static void keep_place(const struct trial *trial, unsigned index, struct turn *turn)
{
    if (trial->tallies && limit_has_places(limit_at(trial, index)) && turn->n < TURN_PLACES)
        turn->places[turn->n++] = take_place(trial, index);
}

/* What is not charged yet is; and it goes. */
static void depart(const struct trial *trial, uint64_t delays, struct turn *turn)
{
    for (; trial->tallies && delays; delays &= delays - 1) {
        const struct limit *limit = limit_at(trial, lowest(delays));
        if (!limit_has_places(limit))
            continue;
        const struct queue queue = queue_of(trial, limit);
        const struct kept_place *own = place_with(turn, limit);
        struct kept_place place;
        if ((trial->had & delays & -delays) == 0)
            place = take_place(trial, lowest(delays));
        else
            place = own && own->holder ? *own : queue_last(&queue, units_of(trial, limit));
        (void)queue_look(&place);
        queue_go(&place, trial->ask->now_ns);
    }
}

/*
 * Its places have come, but it is late, or others were. GATE_PASS: it may go all the same. Else it keeps them; it is
 * not refused any more, for it was told when to go. Who was moved waits again even if it could go now: the alarms of
 * those before it ring first then.
 */
static FUNNEL_RARE enum gate wait_on(const struct trial *trial, struct verdict *verdict)
{
    uint64_t now_ns = trial->ask->now_ns;
    uint64_t latest_ns = 0;
    enum gate gate = GATE_PASS;
    for (uint64_t had = trial->had; had; had &= had - 1) {
        struct kept_place *place = place_with(&verdict->turn, limit_at(trial, lowest(had)));
        if (!place || !place->holder)
            continue;
        bool is_moved = queue_look(place);
        uint64_t until_ns = queue_until(place);
        if ((!is_moved && until_ns <= now_ns) || until_ns < latest_ns)
            continue;
        latest_ns = until_ns;
        verdict->limit = limit_at(trial, lowest(had));
        verdict->wait_ns = (int64_t)(until_ns - now_ns); /* below 0, if those before it are to ring first */
        gate = GATE_WAIT;
    }
    return gate;
}

/* Its places have come, and it waits in the other queues: it goes before all who wait there. */
static FUNNEL_RARE void go_ahead(const struct trial *trial, uint64_t others, struct turn *turn)
{
    for (uint64_t had = trial->tallies ? trial->had : 0; had; had &= had - 1) {
        struct kept_place *place = place_with(turn, limit_at(trial, lowest(had)));
        if (place && place->holder)
            queue_keep(place);
    }
    for (; others; others &= others - 1)
        if (wait_for(trial, lowest(others)) > 0)
            keep_place(trial, lowest(others), turn);
}

/*
 * Is it to wait in one of these queues? Beforehand it has a place in the longest alone: the others must not count it
 * before it can go.
 */
static enum gate wait_in(const struct trial *trial, uint64_t delays, struct verdict *verdict)
{
    const struct limit *slowest = NULL;
    uint64_t others = delays & ~trial->had;
    if (trial->had != 0 && wait_on(trial, verdict) == GATE_WAIT)
        return GATE_WAIT;
    uint64_t wait_ns = longest_wait(trial, others, &slowest);
    if (wait_ns == 0)
        return GATE_PASS;
    if (trial->had != 0)
        go_ahead(trial, others, &verdict->turn);
    else
        keep_place(trial, (unsigned)(slowest - trial->account->policy->limits), &verdict->turn);
    count(trial, slowest, GATE_WAIT, false);
    set_verdict(verdict, slowest, wait_ns);
    return GATE_WAIT;
}

/*
 * Decide about `limits` as if they were enforced, and charge them: what one of them refuses is refused, and only what
 * none does may be delayed.
 */
static enum gate decide(const struct trial *asked, uint64_t limits, bool is_shadow, struct verdict *verdict)
{
    const struct policy *policy = asked->account->policy;
    uint64_t delays = limits & policy->of_action[OVER_DELAY];
    const struct trial trial = {asked->account, asked->ask, asked->tallies, places_had(asked, delays)};
    enum gate gate = veto(&trial, limits & ~trial.had, is_shadow, verdict);
    if (gate == GATE_PASS && trial.ask->may_wait && !is_shadow)
        gate = wait_in(&trial, delays, verdict);
    if (gate != GATE_PASS)
        return gate;
    charge(&trial, limits & ~trial.had & ~(is_shadow ? 0 : delays));
    if (!is_shadow)
        depart(&trial, delays, &verdict->turn);
    if (limits & policy->of_unit[UNIT_INFLIGHT])
        verdict->counted |= is_shadow ? COUNTED_SHADOW : COUNTED;
    return GATE_PASS;
}

/* To limits that are only counted? */
static bool owes_bytes(const struct policy *policy)
{
    return ((policy->of_unit[UNIT_BYTES_IN] | policy->of_unit[UNIT_BYTES_OUT]) & policy->shadows) != 0;
}

static enum gate pass_any(const struct trial *trial, uint64_t binds, struct verdict *verdict)
{
    const struct policy *policy = trial->account->policy;
    lock(trial->account);
    verdict->counted = 0;
    enum gate gate = decide(trial, binds & ~policy->shadows, false, verdict);
    if (gate == GATE_PASS && (binds & policy->shadows)) {
        struct verdict unused = {0};
        bool may = decide(trial, binds & policy->shadows, true, &unused) == GATE_PASS;
        verdict->counted |= may ? unused.counted : owes_bytes(policy) ? SHADOW_REFUSED : 0;
        verdict->is_shadowed = !may;
    }
    unlock(trial->account);
    return gate;
}

enum gate gate_ask(const struct account *account, const struct ask *ask, struct tally *tallies, struct verdict *verdict)
{
    const struct policy *policy = account->policy;
    uint64_t exempt = ask->blocks ? policy->of_unit[UNIT_INFLIGHT] : 0;
    uint64_t binds = bound(policy, ask->command) & asked(policy, ask->part) & ~exempt;
    verdict->counted = 0;
    verdict->is_shadowed = false;
    verdict->turn.n = 0;
    if (ask->turn)
        verdict->turn = *ask->turn;
    if (!binds)
        return GATE_PASS;
    if (policy->is_plain && !ask->is_dry) {
        bool may = gate_ask_plainly(policy, account->holders[PER_SUBJECT], ask->command, ask->now_ns, tallies, verdict);
        return may ? GATE_PASS : GATE_REFUSE;
    }
    const struct trial trial = {account, ask, ask->is_dry ? NULL : tallies, 0};
    return pass_any(&trial, binds, verdict);
}

enum gate gate_ask_refusal(const struct account *account, const struct ask *ask, struct tally *tallies,
                           struct verdict *verdict)
{
    const struct policy *policy = account->policy;
    struct trial trial = {account, ask, ask->is_dry ? NULL : tallies, 0};
    uint64_t limits = bound(policy, ask->command) & asked(policy, ask->part) & ~policy->shadows;
    lock(account);
    trial.had = places_had(&trial, limits & policy->of_action[OVER_DELAY]);
    enum gate gate = veto(&trial, limits & ~trial.had, false, verdict);
    unlock(account);
    return gate;
}

/* The overflow's debt never shrinks: subjects that owed no more were forgotten. */
static void leave_place(const struct kept_place *place, struct tally *tallies)
{
    subject_lock(place->holder);
    if (!subject_is_overflow(place->holder) && queue_leave(place))
        tally_add(&tallies[place->id].admitted, -place->units);
    subject_unlock(place->holder);
}

void gate_leave(const struct turn *turn, struct tally *tallies)
{
    for (unsigned i = 0; i < turn->n; i++)
        if (turn->places[i].holder)
            leave_place(&turn->places[i], tallies);
}

/* ---- bytes ---- */

enum gate gate_ask_debtor(const struct account *account, uint64_t now_ns, struct tally *tallies,
                          struct verdict *verdict)
{
    const struct policy *policy = account->policy;
    const struct ask ask = {.amount = one_of_each(), .now_ns = now_ns};
    const struct trial trial = {account, &ask, tallies, 0};
    const struct limit *slowest = NULL;
    uint64_t bytes = policy->of_unit[UNIT_BYTES_IN] | policy->of_unit[UNIT_BYTES_OUT];
    uint64_t wait_ns = longest_wait(&trial, bytes & ~policy->shadows, &slowest);
    if (wait_ns == 0)
        return GATE_PASS;
    set_verdict(verdict, slowest, wait_ns);
    verdict->turn.n = 0;
    count(&trial, slowest, GATE_WAIT, false);
    return GATE_WAIT;
}

static uint64_t overdraft_ns(const struct account *account, unsigned index, uint64_t now_ns)
{
    uint64_t most_ns = now_ns + 2 * account->policy->limits[index].rate.burst_ns;
    uint64_t tat_ns = funnel_word(funnel_of(account, index));
    return tat_ns > most_ns ? tat_ns - most_ns : 0;
}

uint64_t gate_overdraft_ns(const struct account *account, enum unit unit, uint64_t now_ns)
{
    uint64_t longest_ns = 0;
    for (uint64_t limits = account->policy->of_unit[unit] & ~account->policy->shadows; limits; limits &= limits - 1) {
        uint64_t over_ns = overdraft_ns(account, lowest(limits), now_ns);
        longest_ns = over_ns > longest_ns ? over_ns : longest_ns;
    }
    return longest_ns;
}

/*
 * Debt of a limit that is enforced is never cut: whatever were forgiven would have passed beyond burst + rate * w, and
 * again each time. It is bounded because everything stops that can be stopped (gate_ask, gate_ask_debtor,
 * gate_overdraft_ns): at most one burst is owed, and what was in flight by then. Behind a limit that is only counted
 * nothing stops; there what comes beyond that would not have come, and is not owed.
 */
void gate_owe_bytes(const struct account *account, enum unit unit, uint64_t n, uint8_t counted, uint64_t now_ns,
                    struct tally *tallies)
{
    uint64_t exempt = counted & SHADOW_REFUSED ? account->policy->shadows : 0;
    for (uint64_t limits = account->policy->of_unit[unit] & ~exempt; limits; limits &= limits - 1) {
        unsigned i = lowest(limits);
        const struct limit *limit = &account->policy->limits[i];
        if ((account->policy->shadows >> i & 1) != 0 && overdraft_ns(account, i, now_ns) > 0)
            continue;
        funnel_owe(funnel_of(account, i), now_ns, rate_span_ns(&limit->rate, n));
        tally_add(&tallies[limit->id].admitted, n);
        note_near(limit, funnel_word(funnel_of(account, i)), now_ns, tallies);
    }
}

/* ---- calls in flight ---- */

static void add_to(const struct account *account, uint64_t limits, uint64_t n)
{
    for (; n > 0 && limits; limits &= limits - 1)
        gauge_add(funnel_of(account, lowest(limits)), n);
}

static void take_from(const struct account *account, uint64_t limits, uint64_t n)
{
    for (; n > 0 && limits; limits &= limits - 1)
        gauge_take(funnel_of(account, lowest(limits)), n);
}

void gate_calls_begin(const struct account *account, uint64_t counted, uint64_t counted_shadow)
{
    uint64_t limits = account->policy->of_unit[UNIT_INFLIGHT];
    add_to(account, limits & ~account->policy->shadows, counted);
    add_to(account, limits & account->policy->shadows, counted_shadow);
}

void gate_calls_end(const struct account *account, uint64_t counted, uint64_t counted_shadow)
{
    uint64_t limits = account->policy->of_unit[UNIT_INFLIGHT];
    take_from(account, limits & ~account->policy->shadows, counted);
    take_from(account, limits & account->policy->shadows, counted_shadow);
}

void gate_calls_revoke(const struct account *account, uint8_t counted, struct tally *tallies)
{
    const struct policy *policy = account->policy;
    gate_calls_end(account, (counted & COUNTED) != 0, (counted & COUNTED_SHADOW) != 0);
    for (uint64_t limits = policy->of_unit[UNIT_INFLIGHT]; limits; limits &= limits - 1) {
        unsigned i = lowest(limits);
        bool is_counted = (counted & (policy->shadows >> i & 1 ? COUNTED_SHADOW : COUNTED)) != 0;
        tally_add(&tallies[policy->limits[i].id].admitted, is_counted ? UINT64_MAX : 0); /* one less */
    }
}

/* ---- connections ---- */

static uint64_t connection_limits(const struct policy *policy)
{
    return policy->of_unit[UNIT_CONNECTIONS] | policy->of_unit[UNIT_CONNECTS];
}

enum gate gate_connect(const struct account *account, uint64_t now_ns, struct tally *tallies, struct verdict *verdict)
{
    const struct policy *policy = account->policy;
    uint64_t limits = connection_limits(policy);
    verdict->counted = 0;
    if (!limits)
        return GATE_PASS;
    const struct ask ask = {.amount = one_of_each(), .now_ns = now_ns};
    const struct trial trial = {account, &ask, tallies, 0};
    uint64_t enforced = limits & ~policy->shadows;
    uint64_t shadows = limits & policy->shadows;
    const struct limit *slowest = NULL;
    lock(account);
    uint64_t wait_ns = longest_wait(&trial, enforced, &slowest);
    if (wait_ns > 0) {
        set_verdict(verdict, slowest, wait_ns);
        count(&trial, slowest, GATE_CLOSE, false);
    } else {
        charge(&trial, enforced);
        verdict->counted = COUNTED;
        if (longest_wait(&trial, shadows, &slowest) > 0) {
            count(&trial, slowest, GATE_CLOSE, true);
        } else {
            charge(&trial, shadows);
            verdict->counted |= COUNTED_SHADOW;
        }
    }
    unlock(account);
    return wait_ns > 0 ? GATE_CLOSE : GATE_PASS;
}

uint8_t gate_reconnect(const struct account *account)
{
    add_to(account, account->policy->of_unit[UNIT_CONNECTIONS], 1);
    return COUNTED | COUNTED_SHADOW;
}

void gate_disconnect(const struct account *account, uint8_t counted)
{
    uint64_t limits = account->policy->of_unit[UNIT_CONNECTIONS];
    take_from(account, limits & ~account->policy->shadows, (counted & COUNTED) != 0);
    take_from(account, limits & account->policy->shadows, (counted & COUNTED_SHADOW) != 0);
}

/* ---- failed logins ---- */

bool gate_may_login(const struct account *account, uint64_t now_ns, struct tally *tallies)
{
    const struct policy *policy = account->policy;
    bool may = true;
    for (uint64_t limits = policy->of_unit[UNIT_AUTH_FAILURES]; limits; limits &= limits - 1) {
        unsigned i = lowest(limits);
        const struct limit *limit = &policy->limits[i];
        if (funnel_ask(funnel_of(account, i), &limit->rate, now_ns, 1) == 0)
            continue;
        bool is_shadow = policy->shadows >> i & 1;
        if (tallies != NULL)
            tally_add(is_shadow ? &tallies[limit->id].shadowed : &tallies[limit->id].refused, 1);
        may &= is_shadow;
    }
    return may;
}

void gate_login_failed(const struct account *account, uint64_t now_ns, struct tally *tallies)
{
    for (uint64_t limits = account->policy->of_unit[UNIT_AUTH_FAILURES]; limits; limits &= limits - 1) {
        unsigned i = lowest(limits);
        const struct limit *limit = &account->policy->limits[i];
        funnel_owe(funnel_of(account, i), now_ns, limit->rate.interval_ns);
        tally_add(&tallies[limit->id].admitted, 1);
    }
}

/* ---- how a limit stands ---- */

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

struct standing gate_standing(const struct account *account, unsigned index, uint64_t now_ns)
{
    const struct limit *limit = &account->policy->limits[index];
    if (limit->action == OVER_DENY)
        return (struct standing){0, INT64_MAX, 0};
    const struct funnel *funnel = funnel_of(account, index);
    if (unit_is_gauge((enum unit)limit->unit))
        return standing_of_gauge(limit, gauge_value(funnel));
    uint64_t tat_ns = atomic_load_explicit(&funnel->tat_ns, memory_order_relaxed);
    uint64_t debt_ns = tat_ns > now_ns ? tat_ns - now_ns : 0;
    uint64_t remaining = unit_is_bytes((enum unit)limit->unit) ? bytes_in(&limit->rate, debt_ns)
                                                               : funnel_room(&limit->rate, tat_ns, now_ns);
    uint64_t wait_ns = funnel_ask(funnel, &limit->rate, now_ns, 1);
    return (struct standing){remaining, wait_ns > 0 ? (int64_t)wait_ns : -1, debt_ns};
}
