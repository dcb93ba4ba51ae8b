/* SLIDING. */
#include <string.h>

#include "tests/sim/exact.h"

#define NS_PER_US 1000
#define US_PER_MS 1000
#define PRUNED 100

struct log {
    struct exact_entry entries[EXACT_LOG + 1];
    unsigned n;
};

/* S1. */
static int64_t held(const struct log *log, int64_t at, int64_t period)
{
    int64_t units = 0;
    for (unsigned i = 0; i < log->n; i++)
        if (log->entries[i].at + period > at)
            units += log->entries[i].units;
    return units;
}

int64_t exact_log_lives(const struct exact_key *key, int64_t now_us)
{
    return key->n > 0 ? exact_max(0, exact_ceil(key->over_us - now_us, US_PER_MS)) : 0;
}

/* S3: the time until enough of the oldest units have left that the call passes. */
static int64_t retry_of(const struct log *after, const struct exact_rate *rate, int64_t charge,
                        int64_t now)
{
    int64_t used = held(after, now, rate->period_us);
    if (charge > rate->count)
        return EXACT_NEVER;
    if (used + charge <= rate->count)
        return 0;
    for (unsigned i = 0; i < after->n; i++) {
        int64_t leaves = after->entries[i].at + rate->period_us;
        if (leaves <= now)
            continue;
        used -= after->entries[i].units;
        bool is_last = i + 1 == after->n || after->entries[i + 1].at > after->entries[i].at;
        if (is_last && used + charge <= rate->count)
            return (leaves - now) * NS_PER_US;
    }
    return 0;
}

/* O7. */
static void give_back(struct log *log, int64_t units, int64_t border)
{
    while (units > 0 && log->n > 0 && log->entries[log->n - 1].at > border) {
        struct exact_entry *newest = &log->entries[log->n - 1];
        int64_t taken = exact_min(units, newest->units);
        units -= taken;
        newest->units -= taken;
        log->n -= newest->units == 0;
    }
}

/* S5. */
static void write_log(struct exact_key *key, struct log *after, bool is_charged, int64_t longest,
                      int64_t now)
{
    unsigned over = 0;
    /* without a penalty the expiry is the log's own; a penalty may have made the expiry later */
    if (!key->has_penalty)
        key->over_us = exact_max(key->over_us, key->end_us);
    if (is_charged && key->over_us - now <= longest)
        while (over < after->n && over < PRUNED && after->entries[over].at <= now - longest)
            over++;
    if (is_charged)
        key->over_us = exact_max(key->over_us, now + longest);
    after->n -= over;
    memmove(after->entries, after->entries + over, after->n * sizeof after->entries[0]);
    key->is_overfull = after->n > EXACT_LOG;
    key->n = after->n < EXACT_LOG ? after->n : EXACT_LOG;
    memset(key->log, 0, sizeof key->log);
    memcpy(key->log, after->entries, key->n * sizeof key->log[0]);
}

static bool is_same(const struct log *a, const struct log *b)
{
    return a->n == b->n && memcmp(a->entries, b->entries, a->n * sizeof a->entries[0]) == 0;
}

struct exact_step exact_log_ask(struct exact_key *key, const struct exact_call *call,
                                int64_t now_us)
{
    struct log before = {.n = key->n}, after;
    struct exact_row rows[EXACT_RATES];
    int64_t longest = 0, largest = 0, used[EXACT_RATES], granted = exact_tries(call), charged = 0;
    int64_t charge = exact_charge(call), try = call->cost > 0 ? charge : 1;
    memcpy(before.entries, key->log, key->n * sizeof key->log[0]);
    for (unsigned r = 0; r < call->n_rates; r++) {
        longest = exact_max(longest, call->rates[r].period_us);
        largest = exact_max(largest, call->rates[r].count);
        used[r] = held(&before, now_us, call->rates[r].period_us);
        if (!exact_is_sure(call))
            granted = exact_within(exact_floor(call->rates[r].count - used[r], try), 0,
                                   call->is_held ? 0 : granted);
    }
    if (!exact_looks(call))
        charged = granted * exact_max(0, charge);
    if (call->counts_all && !exact_looks(call))
        charged += (exact_tries(call) - granted) * exact_min(charge, largest);
    after = before;
    if (charged > 0)
        after.entries[after.n++] = (struct exact_entry){now_us, charged};
    if (call->mode == EXACT_CREDIT)
        give_back(&after, call->cost, now_us - longest);
    for (unsigned r = 0; r < call->n_rates; r++) {
        const struct exact_rate *rate = &call->rates[r];
        int64_t here = exact_max(0, used[r] + (call->mode == EXACT_CREDIT ? -call->cost : charged));
        if (call->counts_all && granted == 0 && !exact_looks(call))
            here = used[r] + charge;
        int64_t over = after.n > 0 ? after.entries[after.n - 1].at + rate->period_us - now_us : 0;
        rows[r] = (struct exact_row){retry_of(&after, rate, charge, now_us), rate->count,
                                     exact_within(rate->count - here, 0, rate->count),
                                     exact_max(0, over) * NS_PER_US};
    }
    struct exact_step step = {.has_changed =
                                  !exact_looks(call) && (charged > 0 || !is_same(&after, &before))};
    step.told = exact_is_sure(call) || granted > 0 ? exact_passed(rows, call->n_rates, granted)
                                                   : exact_refused(rows, call->n_rates);
    write_log(key, &after, charged > 0, longest, now_us);
    step.lives_ms = exact_log_lives(key, now_us);
    return step;
}
