/*
 * How the numbers of funnels are read: a debt for each rate. What it leaves room for is worked out as in
 * upstream/scripts/funnel.lua.
 */
#include "quota/question.h"
#include "quota/reading.h"

static unsigned funnel_numbers(const struct quota_ask *ask)
{
    return ask->rule.n_rates;
}

static bool funnel_is_sane(const struct quota_ask *ask, const int64_t *numbers, uint64_t n)
{
    (void)n;
    for (unsigned i = 0; i < ask->rule.n_rates; i++)
        if (!quota_is_within(numbers[i], 0, QUOTA_MOST))
            return false;
    return true;
}

/* How many calls fit over this debt. Without an inc (a refund, or nothing) all or none. */
static uint64_t fitting(const struct quota_gcra *gcra, int64_t debt_ns, uint64_t n)
{
    int64_t left = gcra->room - debt_ns;
    if (gcra->inc <= 0)
        return left >= gcra->inc ? n : 0;
    uint64_t fit = left < 0 ? 0 : (uint64_t)(left / gcra->inc);
    return fit < n ? fit : n;
}

static int64_t debt_after(const struct quota_gcra *gcra, int64_t debt_ns, uint64_t granted)
{
    __int128 debt = (__int128)debt_ns + (__int128)gcra->inc * granted;
    return debt < 0 ? 0 : debt > QUOTA_DEBT_MOST ? QUOTA_DEBT_MOST : (int64_t)debt;
}

static uint64_t funnel_granted(const struct quota_ask *ask, const int64_t *debts, uint64_t n)
{
    for (unsigned i = 0; i < ask->rule.n_rates; i++) {
        struct quota_gcra gcra = quota_ask_gcra(ask, i);
        n = fitting(&gcra, quota_within(debts[i], 0, QUOTA_DEBT_MOST), n);
    }
    return n;
}

/* The debts once `granted` calls have been let through, and `refused` ones count as far as the burst. */
static void pour(const struct quota_ask *ask, const int64_t *numbers, uint64_t granted, uint64_t refused,
                 int64_t *debts)
{
    for (unsigned i = 0; i < ask->rule.n_rates; i++) {
        struct quota_gcra gcra = quota_ask_gcra(ask, i);
        debts[i] = debt_after(&gcra, quota_within(numbers[i], 0, QUOTA_DEBT_MOST), ask->is_peek ? 0 : granted);
        int64_t filled = refused > 0 ? debt_after(&gcra, debts[i], refused) : 0;
        filled = filled < gcra.burst ? filled : gcra.burst;
        debts[i] = debts[i] > filled ? debts[i] : filled;
    }
}

/* It passes, leaving `debts`: the outcome is by the rate with the least remaining, for the time when its turn comes. */
static void funnel_allow(const struct quota_ask *ask, const int64_t *debts, struct quota_outcome *outcome)
{
    int64_t wait_ns = 0;
    for (unsigned i = 0; ask->wait_ns > 0 && !quota_is_sure(ask) && i < ask->rule.n_rates; i++) {
        int64_t over_ns = debts[i] - quota_burst_ns(&ask->rule.rates[i]);
        wait_ns = over_ns > wait_ns ? over_ns : wait_ns;
    }
    for (unsigned i = 0; i < ask->rule.n_rates; i++) {
        const struct quota_rate *rate = &ask->rule.rates[i];
        int64_t debt_ns = debts[i] > wait_ns ? debts[i] - wait_ns : 0;
        int64_t remaining = quota_funnel_remaining(rate, debt_ns);
        if (i == 0 || remaining < outcome->remaining)
            *outcome = (struct quota_outcome){
                .limit = rate->limit, .remaining = remaining, .retry_ns = -1, .reset_ns = debt_ns, .wait_ns = wait_ns};
    }
}

/* How long until the same call is let through; 0: this rate does not refuse it. */
static int64_t funnel_retry(const struct quota_ask *ask, unsigned i, int64_t debt_ns)
{
    struct quota_gcra gcra = quota_ask_gcra(ask, i);
    if (fitting(&gcra, debt_ns, 1) == 1)
        return 0;
    return gcra.inc > gcra.room ? QUOTA_NEVER : debt_ns + gcra.inc - gcra.room;
}

/* False: no rate refuses. */
static bool funnel_deny(const struct quota_ask *ask, const int64_t *debts, struct quota_outcome *outcome)
{
    int64_t longest_ns = 0;
    for (unsigned i = 0; i < ask->rule.n_rates; i++) {
        const struct quota_rate *rate = &ask->rule.rates[i];
        int64_t retry_ns = funnel_retry(ask, i, debts[i]);
        if (retry_ns <= longest_ns)
            continue;
        longest_ns = retry_ns;
        *outcome = (struct quota_outcome){
            .is_limited = true,
            .limit = rate->limit,
            .remaining = quota_funnel_remaining(rate, debts[i]),
            .retry_ns = retry_ns == QUOTA_NEVER ? -1 : retry_ns,
            .reset_ns = debts[i],
        };
    }
    return longest_ns > 0;
}

/* The state behind all calls. */
static void funnel_settle(const struct quota_ask *ask, const int64_t *numbers, uint64_t granted, uint64_t refused,
                          struct quota_memory *memory)
{
    pour(ask, numbers, granted, refused, memory->debt);
}

/* How long a call of one unit is refused. */
static int64_t funnel_exact(const struct quota_memory *memory)
{
    int64_t longest_ns = 0;
    for (unsigned i = 0; i < memory->rule.n_rates; i++) {
        const struct quota_rate *rate = &memory->rule.rates[i];
        int64_t retry_ns = memory->debt[i] + quota_span_ns(rate, 1) - quota_burst_ns(rate);
        longest_ns = retry_ns > longest_ns ? retry_ns : longest_ns;
    }
    return longest_ns;
}

static bool funnel_recall(const struct quota_memory *memory, const struct quota_ask *ask, int64_t elapsed_ns,
                          struct quota_outcome *outcome)
{
    int64_t debts[QUOTA_RATES_MAX];
    for (unsigned i = 0; i < ask->rule.n_rates; i++)
        debts[i] = memory->debt[i] > elapsed_ns ? memory->debt[i] - elapsed_ns : 0;
    return funnel_deny(ask, debts, outcome);
}

static void funnel_tell(const struct quota_ask *ask, const int64_t *numbers, uint64_t granted,
                        struct quota_outcome *outcome)
{
    int64_t debts[QUOTA_RATES_MAX];
    pour(ask, numbers, granted, 0, debts);
    funnel_allow(ask, debts, outcome);
}

const struct reading *reading_of_funnels(void)
{
    static const struct reading row = {funnel_numbers, funnel_is_sane, funnel_granted, funnel_tell,
                                       funnel_settle,  funnel_exact,   funnel_recall};
    return &row;
}
