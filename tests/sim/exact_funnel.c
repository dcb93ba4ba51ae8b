/* FUNNEL and BUCKET, and BUCKET with a warm-up. */
#include "tests/sim/exact.h"

#define STEP_NS 4000000
#define NS_PER_MS 1000000
#define NS_PER_US 1000

static const char owes[] = "ERR the key still owes at 8 other rates";

/* The debt of a key at one interval. */
struct pot {
    int64_t interval, debt, peak, before;
    bool is_new;
};

/* All debts of a call: those of the key, then those that the call's rates add. */
struct pots {
    struct pot all[EXACT_KEPT + EXACT_RATES];
    unsigned n;
    struct pot *asked[EXACT_RATES];
    int64_t debts[EXACT_RATES], incs[EXACT_RATES], rooms[EXACT_RATES];
    int64_t granted;
};

/* R3. */
static int64_t interval_of(const struct exact_rate *rate)
{
    return exact_ceil(rate->period_us * NS_PER_US, rate->count);
}

static int64_t burst_ns(const struct exact_rate *rate)
{
    return rate->burst * interval_of(rate);
}

/* F2. */
static void read_pots(struct pots *pots, const struct exact_key *key, int64_t now_ns)
{
    *pots = (struct pots){.n = key->n};
    for (unsigned i = 0; i < key->n; i++) {
        const struct exact_funnel *funnel = &key->funnels[i];
        int64_t debt = exact_max(0, funnel->tat - now_ns);
        pots->all[i] = (struct pot){funnel->interval, debt, funnel->peak, debt, false};
    }
}

/* F7: the debt that a rate new to the key starts with, inherited from the old debts. */
static int64_t inherited(const struct pots *pots, unsigned n, const struct exact_rate *rate)
{
    int64_t most = 0;
    for (unsigned i = 0; i < n; i++)
        if (pots->all[i].peak <= exact_ceil(burst_ns(rate), STEP_NS))
            most = exact_max(most, pots->all[i].debt);
    return most;
}

/* F6, F7: of several rates with one new interval, the largest inherited debt counts. */
static void find_asked(struct pots *pots, const struct exact_call *call)
{
    unsigned known = pots->n;
    for (unsigned r = 0; r < call->n_rates; r++) {
        int64_t interval = interval_of(&call->rates[r]);
        unsigned i = 0;
        while (i < pots->n && pots->all[i].interval != interval)
            i++;
        if (i == pots->n)
            pots->all[pots->n++] = (struct pot){interval, 0, 0, 0, true};
        struct pot *pot = pots->asked[r] = &pots->all[i];
        if (pot->is_new)
            pot->debt = pot->before = exact_max(pot->debt, inherited(pots, known, &call->rates[r]));
    }
    for (unsigned r = 0; r < call->n_rates; r++)
        pots->debts[r] = pots->asked[r]->debt;
}

/* F4, O3 to O7: the debt that one try adds, and the most that may be owed after it. */
static void find_room(const struct exact_call *call, const struct exact_rate *rate, int64_t *inc,
                      int64_t *room)
{
    int64_t burst = burst_ns(rate);
    *inc = exact_charge(call) * interval_of(rate);
    *room = burst;
    if (call->mode == EXACT_FORCE || call->mode == EXACT_CREDIT)
        return;
    if (call->mode == EXACT_BORROW)
        *room = burst - interval_of(rate) + *inc;
    else if (exact_charge(call) > rate->burst)
        *inc = burst + 1;
    else
        *room = exact_min(burst + call->wait_ms * NS_PER_MS, EXACT_MOST - 1);
}

static void grant(struct pots *pots, const struct exact_call *call)
{
    pots->granted = exact_tries(call);
    for (unsigned r = 0; r < call->n_rates; r++) {
        find_room(call, &call->rates[r], &pots->incs[r], &pots->rooms[r]);
        if (!exact_is_sure(call))
            pots->granted =
                exact_within(exact_floor(pots->rooms[r] - pots->debts[r], pots->incs[r]), 0,
                             call->is_held ? 0 : pots->granted);
    }
}

/* O8. */
static void fill_up(struct pots *pots, const struct exact_call *call,
                    const int64_t poured[EXACT_RATES])
{
    int64_t refused = call->counts_all ? exact_tries(call) - pots->granted : 0;
    for (unsigned r = 0; refused > 0 && r < call->n_rates; r++) {
        int64_t full = exact_min(poured[r] + refused * pots->incs[r], burst_ns(&call->rates[r]));
        pots->asked[r]->debt = exact_max(pots->asked[r]->debt, full);
    }
}

/* F3. True if a debt has changed. */
static bool pour(struct pots *pots, const struct exact_call *call)
{
    int64_t poured[EXACT_RATES];
    bool has_changed = false;
    /* of rates with one interval the first rate decides */
    for (unsigned r = call->n_rates; r-- > 0;)
        pots->asked[r]->debt =
            exact_within(pots->asked[r]->before + pots->granted * pots->incs[r], 0, EXACT_MOST);
    for (unsigned r = 0; r < call->n_rates; r++)
        poured[r] = pots->asked[r]->debt;
    fill_up(pots, call, poured);
    for (unsigned r = 0; r < call->n_rates; r++)
        if (pots->asked[r]->debt != pots->asked[r]->before) {
            has_changed = true;
            pots->asked[r]->peak = exact_ceil(pots->asked[r]->debt, STEP_NS);
        }
    return has_changed;
}

/* F9. Returns the number of debts; at most eight are written. */
static unsigned write_pots(struct exact_key *key, const struct pots *pots, int64_t now_ns,
                           int64_t *lives_ms)
{
    unsigned n = 0, live = 0, kept = 0;
    int64_t longest = 0;
    for (unsigned i = 0; i < pots->n; i++) {
        const struct pot *pot = &pots->all[i];
        bool is_kept = !pot->is_new || pot->debt != pot->before;
        kept += is_kept;
        live += is_kept && pot->debt > 0;
        longest = exact_max(longest, is_kept ? pot->debt : 0);
    }
    unsigned zeros = live > EXACT_KEPT ? 0 : kept > EXACT_KEPT ? EXACT_KEPT - live : kept - live;
    for (unsigned i = 0; i < pots->n && n < EXACT_KEPT; i++) {
        const struct pot *pot = &pots->all[i];
        if ((pot->is_new && pot->debt == pot->before) || (pot->debt == 0 && zeros == 0))
            continue;
        zeros -= pot->debt == 0;
        key->funnels[n++] = (struct exact_funnel){pot->interval, now_ns + pot->debt, pot->peak};
    }
    for (unsigned i = n; i < EXACT_KEPT; i++)
        key->funnels[i] = (struct exact_funnel){0};
    key->n = n;
    *lives_ms = exact_ceil(longest, NS_PER_MS);
    return live;
}

static int64_t left_of(const struct exact_rate *rate, int64_t debt)
{
    return exact_within(exact_max(0, burst_ns(rate) - debt) / interval_of(rate), 0, rate->burst);
}

static struct exact_told tell_passed(const struct pots *pots, const struct exact_call *call)
{
    struct exact_row rows[EXACT_RATES];
    int64_t after[EXACT_RATES], waits = 0;
    for (unsigned r = 0; r < call->n_rates; r++) {
        after[r] = exact_looks(call) ? pots->debts[r]
                                     : exact_within(pots->debts[r] + pots->granted * pots->incs[r],
                                                    0, EXACT_MOST);
        if (call->wait_ms > 0 && !exact_is_sure(call))
            waits = exact_max(waits, after[r] - burst_ns(&call->rates[r]));
    }
    for (unsigned r = 0; r < call->n_rates; r++)
        rows[r] =
            (struct exact_row){0, call->rates[r].burst, left_of(&call->rates[r], after[r] - waits),
                               exact_max(0, after[r] - waits)};
    struct exact_told told = exact_passed(rows, call->n_rates, pots->granted);
    told.waits = waits;
    return told;
}

static struct exact_told tell_refused(const struct pots *pots, const struct exact_call *call)
{
    struct exact_row rows[EXACT_RATES];
    for (unsigned r = 0; r < call->n_rates; r++) {
        const struct exact_rate *rate = &call->rates[r];
        int64_t debt = pots->debts[r], inc = pots->incs[r], room = pots->rooms[r];
        if (call->counts_all && !exact_looks(call))
            debt = exact_max(debt, exact_min(debt + inc, burst_ns(rate)));
        int64_t retry = inc > room ? EXACT_NEVER : exact_max(0, debt + inc - room);
        rows[r] = (struct exact_row){retry, rate->burst, left_of(rate, debt), debt};
    }
    return exact_refused(rows, call->n_rates);
}

struct exact_step exact_funnel_ask(struct exact_key *key, const struct exact_call *call,
                                   int64_t now_us)
{
    struct exact_step step = {0};
    struct pots pots;
    read_pots(&pots, key, now_us * NS_PER_US);
    find_asked(&pots, call);
    grant(&pots, call);
    step.told = pots.granted > 0 ? tell_passed(&pots, call) : tell_refused(&pots, call);
    step.has_changed = !exact_looks(call) && pour(&pots, call);
    if (write_pots(key, &pots, now_us * NS_PER_US, &step.lives_ms) > EXACT_KEPT && step.has_changed)
        step.told.wrong = owes;
    return step;
}

/* ---- warm-up ---- */

/* G4: the extra debt of all of a rest, times twice the warm-up. */
static int64_t energy(int64_t warmup, int64_t rest)
{
    int64_t cold = exact_max(0, 2 * rest - warmup);
    return cold * cold;
}

/* G2. */
static void warm_age(struct exact_rest *one, int64_t passed_ns)
{
    one->rest = exact_min(one->warmup, one->rest + exact_max(0, passed_ns - one->debt));
    one->debt = exact_max(0, one->debt - passed_ns);
}

/* G6. Returns the number of debts left. */
static unsigned write_rests(struct exact_key *key, const struct exact_rest *rests, unsigned n,
                            int64_t *lives_ms)
{
    unsigned kept = 0;
    int64_t longest = 0;
    for (unsigned i = 0; i < n; i++) {
        int64_t left = rests[i].debt + rests[i].warmup - rests[i].rest;
        longest = exact_max(longest, left);
        if (left > 0 && kept < EXACT_KEPT)
            key->rests[kept] = rests[i];
        kept += left > 0;
    }
    for (unsigned i = kept; i < EXACT_KEPT; i++)
        key->rests[i] = (struct exact_rest){0};
    key->n = kept < EXACT_KEPT ? kept : EXACT_KEPT;
    *lives_ms = exact_ceil(longest, NS_PER_MS);
    return kept;
}

struct exact_step exact_warm_ask(struct exact_key *key, const struct exact_call *call,
                                 int64_t now_us)
{
    struct exact_rest rests[EXACT_KEPT + 1];
    const struct exact_rate *rate = &call->rates[0];
    int64_t interval = interval_of(rate), warmup = call->warmup_ns, debt = 0,
            taken = call->cost * interval;
    unsigned n = key->n, at = 0;
    for (unsigned i = 0; i < n; i++) {
        rests[i] = key->rests[i];
        warm_age(&rests[i], (now_us - key->over_us) * NS_PER_US);
        debt = exact_max(debt, rests[i].debt);
    }
    while (at < n && (rests[at].interval != interval || rests[at].warmup != warmup))
        at++;
    if (at == n)
        rests[n++] = (struct exact_rest){interval, warmup, debt, warmup};
    struct exact_rest *one = &rests[at];
    int64_t most = burst_ns(rate) - interval;
    bool passes = call->cost == 0 || one->debt <= most;
    struct exact_step step = {.has_changed = passes && call->cost > 0 && !call->is_peek};
    struct exact_rest before = *one;
    if (passes && call->cost > 0 && !call->is_peek) {
        int64_t rest = exact_max(0, one->rest - taken);
        one->debt +=
            taken + exact_ceil(energy(warmup, one->rest) - energy(warmup, rest), 2 * warmup);
        one->rest = rest;
    }
    struct exact_row row = {before.debt - most, rate->burst, left_of(rate, one->debt),
                            one->debt + warmup - one->rest};
    step.told = passes ? exact_passed(&row, 1, call->cost) : exact_refused(&row, 1);
    key->over_us = now_us;
    if (write_rests(key, rests, n, &step.lives_ms) > EXACT_KEPT && step.has_changed)
        step.told.wrong = owes;
    return step;
}
