#include "quota/outcome.h"

#define MS_IN_S 1000

/* ---- one call ---- */

static void outcome_settle(const struct decision_request *ask, const int64_t *numbers,
                           uint64_t granted, uint64_t refused, struct quota_memory *memory)
{
    memory->rule = ask->rule;
    memory->cost = ask->cost;
    memory->is_first = ask->is_first;
    quota_reading(ask)->settle(ask, numbers, granted, refused, memory);
}

/* Returns the state of a rate `elapsed_ns` after the cached state. */
static struct quota_outcome outcome_standing(const struct quota_memory *memory, unsigned i,
                                             int64_t elapsed_ns)
{
    const struct quota_rate *rate = &memory->rule.rates[i];
    int64_t debt = memory->debt[i], left = rate->limit - debt;
    if (quota_is_funnel(memory->rule.kind)) {
        int64_t room_ns = quota_burst_ns(rate) - (debt > elapsed_ns ? debt - elapsed_ns : 0);
        left = room_ns < 0 ? 0 : quota_units(rate, room_ns);
    }
    return (struct quota_outcome){
        .limit = rate->limit,
        .remaining = quota_within(left, 0, rate->limit),
        .retry_ns = -1,
        .reset_ns = memory->reset_ns[i] > elapsed_ns ? memory->reset_ns[i] - elapsed_ns : 0,
    };
}

/* Reports the rate with the least remaining. */
static void allow(const struct quota_memory *memory, int64_t elapsed_ns,
                  struct quota_outcome *outcome)
{
    *outcome = outcome_standing(memory, 0, elapsed_ns);
    for (unsigned i = 1; i < memory->rule.n_rates; i++) {
        struct quota_outcome one = outcome_standing(memory, i, elapsed_ns);
        if (one.remaining < outcome->remaining)
            *outcome = one;
    }
}

/* Reports the rate that refuses for longest. False: no rate refuses. */
static bool deny(const struct quota_memory *memory, const struct decision_request *ask,
                 int64_t elapsed_ns, struct quota_outcome *outcome)
{
    int64_t longest_ns = 0;
    for (unsigned i = 0; i < ask->rule.n_rates; i++) {
        int64_t retry_ns = quota_reading(ask)->retry(memory, ask, i, elapsed_ns);
        if (retry_ns <= longest_ns)
            continue;
        longest_ns = retry_ns;
        *outcome = outcome_standing(memory, i, elapsed_ns);
        outcome->is_limited = true;
        outcome->retry_ns = retry_ns == QUOTA_NEVER ? -1 : retry_ns;
    }
    return longest_ns > 0;
}

/*
 * Reports the last of `granted` calls. For a funnel with WAIT, reports the state at the scheduled
 * time.
 */
static void outcome_tell(const struct decision_request *ask, const int64_t *numbers,
                         uint64_t granted, struct quota_outcome *outcome)
{
    struct quota_memory memory;
    int64_t wait_ns = 0;
    bool may_wait = ask->wait_ns > 0 && quota_is_funnel(ask->rule.kind) && !quota_is_sure(ask);
    outcome_settle(ask, numbers, granted, 0, &memory);
    for (unsigned i = 0; may_wait && i < ask->rule.n_rates; i++) {
        int64_t over_ns = memory.debt[i] - quota_burst_ns(&ask->rule.rates[i]);
        wait_ns = over_ns > wait_ns ? over_ns : wait_ns;
    }
    allow(&memory, wait_ns, outcome);
    outcome->wait_ns = wait_ns;
}

/* Refuses a call though the numbers have room for it. The client may retry at once. */
static void deny_anyhow(const struct decision_request *ask, struct quota_outcome *outcome)
{
    *outcome = (struct quota_outcome){
        .is_limited = true, .limit = ask->rule.rates[0].limit, .retry_ns = 1};
}

/* ---- penalties ---- */

/* Sets the outcome of a key under a penalty: nothing passes until the penalty ends. */
static void hold_back(const struct quota_hold *hold, struct quota_outcome *outcome)
{
    outcome->remaining = 0;
    outcome->reset_ns = outcome->reset_ns > hold->left_ns ? outcome->reset_ns : hold->left_ns;
}

/* For a call that is refused by a penalty, and maybe by a rate: reports the longer wait. */
static void deny_held(const struct decision_request *ask, const struct quota_memory *memory,
                      const struct quota_hold *hold, struct quota_outcome *outcome)
{
    if (!deny(memory, ask, 0, outcome)) {
        allow(memory, 0, outcome);
        outcome->is_limited = true;
        outcome->retry_ns = 0;
    }
    bool is_longer = outcome->retry_ns < 0 || outcome->retry_ns > hold->left_ns;
    outcome->retry_ns = is_longer ? outcome->retry_ns : hold->left_ns;
    outcome->is_penalised = true;
    hold_back(hold, outcome);
}

/* Returns how many tries one key has room for. */
static uint64_t fitting_held(const struct decision_request *ask, const int64_t *numbers,
                             const struct quota_hold *hold, uint64_t n)
{
    if (ask->cost == 0 && ask->rule.kind != QUOTA_THROTTLE)
        return quota_part_fitting(ask, numbers, n);
    return hold->left_ns > 0 && !quota_is_sure(ask) ? hold->granted
                                                    : quota_granted(ask, numbers, n);
}

uint64_t quota_granted_held(const struct decision_request *ask, const int64_t *numbers,
                            const struct quota_hold *holds, uint64_t n)
{
    if (ask->n_parts == 0)
        return holds->left_ns > 0 && !quota_is_sure(ask) ? holds->granted
                                                         : quota_granted(ask, numbers, n);
    uint64_t granted = quota_granted(ask, numbers, n);
    for (unsigned p = 0; p < ask->n_parts; numbers += quota_numbers(&ask->parts[p]), p++) {
        uint64_t fitting = fitting_held(&ask->parts[p], numbers, &holds[p], n);
        if (!ask->parts[p].is_shadow && fitting < granted)
            granted = fitting;
    }
    return granted;
}

static bool hold_is_sane(const struct decision_request *ask, const int64_t *numbers,
                         const struct quota_hold *hold, uint64_t n)
{
    if (hold->left_ns == 0)
        return true;
    return quota_is_rated(ask) && ask->rule.kind != QUOTA_THROTTLE && hold->left_ns > 0 &&
           (hold->granted == 0 || hold->granted == quota_granted(ask, numbers, n));
}

/* hold_is_sane for one of several keys. A part without cost always fits. */
static bool part_hold_is_sane(const struct decision_request *part, const int64_t *numbers,
                              const struct quota_hold *hold, uint64_t n)
{
    return hold_is_sane(part, numbers, hold, n) ||
           (part->cost == 0 && hold->left_ns > 0 && hold->granted == n);
}

bool quota_holds_are_sane(const struct decision_request *ask, const int64_t *numbers,
                          const struct quota_hold *holds, uint64_t n)
{
    if (ask->n_parts == 0)
        return hold_is_sane(ask, numbers, holds, n);
    for (unsigned p = 0; p < ask->n_parts; numbers += quota_numbers(&ask->parts[p]), p++)
        if (!part_hold_is_sane(&ask->parts[p], numbers, &holds[p], n))
            return false;
    return true;
}

/* ---- one of many calls ---- */

/* Computes the outcome for one of several keys after call k, when `granted` calls have passed. */
static void part_outcome(const struct decision_request *part, const int64_t *numbers,
                         const struct quota_hold *hold, uint64_t granted, uint64_t k,
                         bool is_granted, struct quota_outcome *outcome)
{
    struct quota_memory memory;
    uint64_t done = k + 1 < granted ? k + 1 : granted;
    outcome_settle(part, numbers, done, part->counts_all && !part->is_peek ? k + 1 - done : 0,
                   &memory);
    bool is_held = hold->left_ns > 0 && k >= hold->granted;
    if (is_held && !quota_is_sure(part)) {
        deny_held(part, &memory, hold, outcome);
        return;
    }
    if (is_granted || quota_is_sure(part) || !deny(&memory, part, 0, outcome))
        outcome_tell(part, numbers, done, outcome);
    if (is_held || (hold->left_ns > 0 && quota_is_sure(part)))
        hold_back(hold, outcome);
}

static int64_t longest_first(const struct quota_outcome *outcome)
{
    return outcome->retry_ns < 0 ? QUOTA_NEVER : outcome->retry_ns;
}

/*
 * True if `one` is reported rather than `other`: `one` refuses for longer, or has less remaining.
 */
static bool is_rather(const struct decision_request *ask, bool is_granted,
                      const struct quota_outcome *one, const struct quota_outcome *other)
{
    if (ask->parts[one->part].is_shadow != ask->parts[other->part].is_shadow)
        return ask->parts[other->part].is_shadow;
    if (is_granted)
        return one->remaining < other->remaining;
    if (one->refusing != other->refusing)
        return one->refusing > other->refusing;
    return longest_first(one) > longest_first(other);
}

/*
 * The call passes when every key outside shadow mode has room. If keys refuse, the reply names a
 * key that had no room for the call. The times of the reply cover all keys, including keys that the
 * call has filled up.
 */
static void parts_outcome(const struct decision_request *ask, const int64_t *numbers,
                          const struct quota_hold *holds, uint64_t n, uint64_t k,
                          struct quota_outcome *outcome)
{
    uint64_t call = ask->is_peek ? 0 : k, granted = quota_granted_held(ask, numbers, holds, n);
    bool is_granted = call < granted;
    /* number of calls counted before this one */
    uint64_t before = is_granted || ask->counts_all ? call : granted;
    int64_t longest_ns = 0;
    uint8_t refusing = 0;
    for (unsigned p = 0; p < ask->n_parts; numbers += quota_numbers(&ask->parts[p]), p++) {
        const struct decision_request *part = &ask->parts[p];
        struct quota_outcome told;
        uint64_t fitting = fitting_held(part, numbers, &holds[p], n);
        part_outcome(part, numbers, &holds[p], fitting < granted ? fitting : granted, call,
                     is_granted, &told);
        told.part = (uint8_t)p;
        told.refusing = fitting <= before;
        refusing |= (uint8_t)(told.refusing << p);
        if (told.is_limited && !part->is_shadow && longest_first(&told) > longest_ns)
            longest_ns = longest_first(&told);
        if (p == 0 || is_rather(ask, is_granted, &told, outcome))
            *outcome = told;
    }
    outcome->is_limited = !is_granted;
    outcome->refusing = refusing;
    outcome->granted = ask->cost;
    outcome->wait_ns = 0;
    outcome->retry_ns = is_granted || longest_ns == QUOTA_NEVER ? -1
                        : longest_ns > 0                        ? longest_ns
                                                                : 1;
}

void quota_outcome_held(const struct decision_request *ask, const int64_t *numbers,
                        const struct quota_hold *holds, uint64_t n, uint64_t k,
                        struct quota_outcome *outcome)
{
    struct quota_memory memory;
    if (ask->n_parts > 0) {
        parts_outcome(ask, numbers, holds, n, k, outcome);
        return;
    }
    uint64_t granted = quota_granted_held(ask, numbers, holds, n);
    uint64_t begin = ask->is_peek ? 0 : quota_tries(ask, k); /* the call's own tries begin here */
    uint64_t end = ask->is_peek ? 1 : quota_tries(ask, k + 1);
    if (begin < granted) {
        end = end < granted ? end : granted;
        outcome_tell(ask, numbers, ask->is_peek ? k + 1 : end, outcome);
        outcome->granted =
            ask->mode == QUOTA_PARTIAL && ask->cost > 0 ? (int64_t)(end - begin) : ask->cost;
        if (holds->left_ns > 0 && quota_is_sure(ask))
            hold_back(holds, outcome);
        return;
    }
    outcome_settle(ask, numbers, granted, ask->counts_all && !ask->is_peek ? k - granted + 1 : 0,
                   &memory);
    if (holds->left_ns > 0)
        deny_held(ask, &memory, holds, outcome);
    else if (!deny(&memory, ask, 0, outcome))
        deny_anyhow(ask, outcome);
}

void quota_outcome(const struct decision_request *ask, const int64_t *numbers, uint64_t n,
                   uint64_t k, struct quota_outcome *outcome)
{
    static const struct quota_hold none[QUOTA_PARTS_MAX];
    quota_outcome_held(ask, numbers, none, n, k, outcome);
}

/* ---- caching ---- */

/*
 * True if a denial may be cached. Requests that count when refused, or are not decided by cost
 * alone, always go to Redis.
 */
static bool is_usual(const struct decision_request *ask)
{
    return ask->mode == QUOTA_TAKE && !ask->counts_all && ask->penalty.first_ms == 0;
}

bool quota_remember(const struct decision_request *ask, const int64_t *numbers, uint64_t n,
                    struct quota_memory *memory)
{
    uint64_t granted = quota_granted(ask, numbers, n);
    if (!is_usual(ask) || granted == (ask->is_peek ? 1 : n))
        return false;
    outcome_settle(ask, numbers, granted, 0, memory);
    memory->exact_ns = quota_reading(ask)->exact(memory);
    return memory->exact_ns > 0;
}

bool quota_recall(const struct quota_memory *memory, const struct decision_request *ask,
                  uint64_t elapsed_ns, struct quota_outcome *outcome)
{
    bool is_known = quota_is_funnel(ask->rule.kind) ? ask->cost >= 1 : ask->cost == memory->cost;
    if (elapsed_ns > QUOTA_MEMORY_NS || (int64_t)elapsed_ns >= memory->exact_ns || !is_known ||
        !is_usual(ask) || ask->is_first != memory->is_first ||
        !quota_rule_is_same(&memory->rule, &ask->rule))
        return false;
    return deny(memory, ask, (int64_t)elapsed_ns, outcome);
}

/* ---- replies ---- */

static int64_t outcome_ms_up(int64_t ns)
{
    return ns < 0 ? -1 : (int64_t)ns_to_ms_up((uint64_t)ns);
}

/*
 * As redis-cell: cuts to whole milliseconds, and rounds the milliseconds up to seconds. Less than 1
 * ms is 0 seconds.
 */
static int64_t cell_seconds(int64_t ns)
{
    int64_t ms = ns / (int64_t)NS_PER_MS;
    return ns < 0 ? -1 : ms / MS_IN_S + (ms % MS_IN_S != 0);
}

/* True if the reply is a map. */
static bool is_map(const struct build *out, const struct decision_request *ask)
{
    return ask->rule.kind != QUOTA_THROTTLE &&
           (ask->shape == QUOTA_AS_SPOKEN ? out->is_resp3 : ask->shape == QUOTA_AS_MAP);
}

static void fields(struct build *out, bool is_named, size_t n)
{
    if (is_named)
        build_map(out, n);
    else
        build_array(out, n);
}

/* Writes the name of the field that follows. */
static void name(struct build *out, bool is_named, const char *text)
{
    if (is_named)
        build_bulk_str(out, text);
}

void quota_reply(struct build *out, const struct decision_request *ask,
                 const struct quota_outcome *outcome)
{
    static const char *const names[] = {"limited",        "limit",          "remaining",
                                        "retry_after_ms", "reset_after_ms", "granted"};
    bool is_cell = ask->rule.kind == QUOTA_THROTTLE;
    const int64_t numbers[] = {
        outcome->is_limited,
        outcome->limit,
        outcome->remaining,
        is_cell ? cell_seconds(outcome->retry_ns) : outcome_ms_up(outcome->retry_ns),
        is_cell ? cell_seconds(outcome->reset_ns) : outcome_ms_up(outcome->reset_ns),
        outcome->granted,
    };
    bool is_named = is_map(out, ask);
    unsigned n = ask->mode == QUOTA_PARTIAL ? 6 : 5;
    fields(out, is_named, n + (ask->n_parts > 0));
    for (unsigned i = 0; i < n; i++) {
        name(out, is_named, names[i]);
        build_int(out, numbers[i]);
    }
    if (ask->n_parts == 0)
        return;
    name(out, is_named, "refused_by");
    if (outcome->is_limited)
        build_bulk(out, outcome->refused_by);
    else
        build_nil(out);
}

void quota_reply_holding(struct build *out, const struct decision_request *ask,
                         const int64_t *numbers, struct slice token)
{
    bool is_granted = numbers[HOLDERS_GRANTED] > 0;
    if (ask->rule.kind == QUOTA_BAN) {
        build_status(out, SLICE("OK"));
        return;
    }
    if (!quota_takes_permit(ask)) {
        build_int(out, is_granted);
        return;
    }
    bool is_named = is_map(out, ask);
    fields(out, is_named, 5);
    name(out, is_named, "limited");
    build_int(out, !is_granted);
    name(out, is_named, "token");
    if (is_granted)
        build_bulk(out, token);
    else
        build_nil(out);
    name(out, is_named, "held");
    build_int(out, numbers[HOLDERS_HELD]);
    name(out, is_named, "max");
    build_int(out, ask->max);
    name(out, is_named, "retry_after_ms");
    build_int(out, is_granted ? -1 : numbers[HOLDERS_RETRY_MS]);
}
