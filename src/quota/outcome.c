/*
 * Outcomes: a state (debts before a call) and a call make one.
 *
 * Whatever Redis returned, nothing overflows: what comes in is cut to what a clock can mean, far below 2^63.
 */
#include "quota/outcome.h"

#include "quota/question.h"

#define US_NS ((int64_t)NS_PER_US)
#define MS_IN_S 1000
#define DEBT_MOST QUOTA_MOST /* and what is forced beyond it is forgotten */
#define USED_MOST (INT64_C(1) << 62)
#define NEVER INT64_MAX /* longer than any wait */

/* ---- what was returned ---- */

/* Of a window. */
enum { GRANTED, USED, RETRY_US, RESET_US, PER_RATE = 3 };

/* Of holders. */
enum { HELD = 1, RETRY_MS, HOLDERS_NUMBERS };

static int64_t within(int64_t number, int64_t least, int64_t most)
{
    return number < least ? least : number > most ? most : number;
}

static int64_t of_window(const int64_t *numbers, unsigned i, unsigned which)
{
    return numbers[PER_RATE * i + which];
}

static int64_t ns_of_us(int64_t us)
{
    return within(us, 0, INT64_MAX / US_NS - 1) * US_NS;
}

static bool is_within(int64_t number, int64_t least, int64_t most)
{
    return number >= least && number <= most;
}

/* ---- funnels ---- */

static unsigned funnel_numbers(const struct quota_ask *ask)
{
    return ask->rule.n_rates;
}

static bool funnel_is_sane(const struct quota_ask *ask, const int64_t *numbers, uint64_t n)
{
    (void)n;
    for (unsigned i = 0; i < ask->rule.n_rates; i++)
        if (!is_within(numbers[i], 0, QUOTA_MOST))
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
    return debt < 0 ? 0 : debt > DEBT_MOST ? DEBT_MOST : (int64_t)debt;
}

static uint64_t funnel_granted(const struct quota_ask *ask, const int64_t *debts, uint64_t n)
{
    for (unsigned i = 0; i < ask->rule.n_rates; i++) {
        struct quota_gcra gcra = quota_ask_gcra(ask, i);
        n = fitting(&gcra, within(debts[i], 0, DEBT_MOST), n);
    }
    return n;
}

/* The debts once `granted` calls have been let through, and `refused` ones count as far as the burst. */
static void pour(const struct quota_ask *ask, const int64_t *numbers, uint64_t granted, uint64_t refused,
                 int64_t *debts)
{
    for (unsigned i = 0; i < ask->rule.n_rates; i++) {
        struct quota_gcra gcra = quota_ask_gcra(ask, i);
        debts[i] = debt_after(&gcra, within(numbers[i], 0, DEBT_MOST), ask->is_peek ? 0 : granted);
        int64_t filled = refused > 0 ? debt_after(&gcra, debts[i], refused) : 0;
        filled = filled < gcra.burst ? filled : gcra.burst;
        debts[i] = debts[i] > filled ? debts[i] : filled;
    }
}

/* How many units would pass in one call. */
static int64_t funnel_remaining(const struct quota_rate *rate, int64_t debt_ns)
{
    int64_t room_ns = quota_burst_ns(rate) - debt_ns;
    return room_ns < 0 ? 0 : within(quota_units(rate, room_ns), 0, rate->limit);
}

/* Let through, and `debts` are what it has left: of the one with least remaining, when it is its turn. */
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
        int64_t remaining = funnel_remaining(rate, debt_ns);
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
    return gcra.inc > gcra.room ? NEVER : debt_ns + gcra.inc - gcra.room;
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
            .remaining = funnel_remaining(rate, debts[i]),
            .retry_ns = retry_ns == NEVER ? -1 : retry_ns,
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

/* ---- buckets with a warm-up: a debt and a rest, the arithmetic is that of warm.lua ---- */

enum { DEBT, REST, WARM_NUMBERS };

static unsigned warm_numbers(const struct quota_ask *ask)
{
    (void)ask;
    return WARM_NUMBERS;
}

static bool warm_is_sane(const struct quota_ask *ask, const int64_t *numbers, uint64_t n)
{
    (void)n;
    return is_within(numbers[DEBT], 0, QUOTA_MOST) && is_within(numbers[REST], 0, ask->warmup_ns);
}

/* What is owed when so much is taken from this rest; DEBT_MOST: that, or more. */
static int64_t warm_price(const struct quota_warm *warm, int64_t rest_ns, __int128 taken_ns)
{
    __int128 after_rest_ns = rest_ns > taken_ns ? rest_ns - taken_ns : 0;
    __int128 before = 2 * (__int128)rest_ns - warm->warmup, after = 2 * after_rest_ns - warm->warmup;
    before = before > 0 ? before : 0;
    after = after > 0 ? after : 0;
    __int128 price = taken_ns + ((before - after) * (before + after) + 2 * (__int128)warm->warmup - 1) /
                                    (2 * (__int128)warm->warmup);
    return price < DEBT_MOST ? (int64_t)price : DEBT_MOST;
}

/* Each passes when what those before it owe leaves room. */
static uint64_t warm_granted(const struct quota_ask *ask, const int64_t *numbers, uint64_t n)
{
    struct quota_warm warm = quota_ask_warm(ask);
    int64_t room_ns = warm.most - within(numbers[DEBT], 0, DEBT_MOST);
    uint64_t low = 0, high = n - 1; /* calls that may stand before the last */
    if (room_ns < 0 || n == 0)
        return 0;
    while (low < high) {
        uint64_t middle = high - (high - low) / 2;
        if (warm_price(&warm, numbers[REST], (__int128)warm.inc * middle) <= room_ns)
            low = middle;
        else
            high = middle - 1;
    }
    return low + 1;
}

/* What is left behind so many calls. */
static void warm_settle(const struct quota_ask *ask, const int64_t *numbers, uint64_t granted, uint64_t refused,
                        struct quota_memory *memory)
{
    struct quota_warm warm = quota_ask_warm(ask);
    __int128 taken_ns = ask->is_peek ? 0 : (__int128)warm.inc * granted;
    int64_t rest_ns = within(numbers[REST], 0, warm.warmup);
    int64_t price_ns = warm_price(&warm, rest_ns, taken_ns);
    (void)refused;
    memory->debt[0] = within(within(numbers[DEBT], 0, DEBT_MOST) + price_ns, 0, DEBT_MOST);
    memory->retry_ns[0] = memory->debt[0] > warm.most ? memory->debt[0] - warm.most : 0;
    memory->reset_ns[0] = memory->debt[0] + warm.warmup - (rest_ns > taken_ns ? rest_ns - (int64_t)taken_ns : 0);
}

static void warm_tell(const struct quota_ask *ask, const int64_t *numbers, uint64_t granted,
                      struct quota_outcome *outcome)
{
    const struct quota_rate *rate = &ask->rule.rates[0];
    struct quota_memory memory;
    warm_settle(ask, numbers, granted, 0, &memory);
    *outcome = (struct quota_outcome){.limit = rate->limit,
                                      .remaining = funnel_remaining(rate, memory.debt[0]),
                                      .retry_ns = -1,
                                      .reset_ns = memory.reset_ns[0]};
}

/* Nothing of it is remembered. */
static int64_t warm_exact(const struct quota_memory *memory)
{
    (void)memory;
    return 0;
}

static bool warm_recall(const struct quota_memory *memory, const struct quota_ask *ask, int64_t elapsed_ns,
                        struct quota_outcome *outcome)
{
    const struct quota_rate *rate = &ask->rule.rates[0];
    (void)elapsed_ns;
    *outcome = (struct quota_outcome){.is_limited = true,
                                      .limit = rate->limit,
                                      .remaining = funnel_remaining(rate, memory->debt[0]),
                                      .retry_ns = memory->retry_ns[0],
                                      .reset_ns = memory->reset_ns[0]};
    return memory->retry_ns[0] > 0;
}

/* ---- windows ---- */

static unsigned window_numbers(const struct quota_ask *ask)
{
    return 1 + PER_RATE * (unsigned)ask->rule.n_rates;
}

static bool window_is_sane(const struct quota_ask *ask, const int64_t *numbers, uint64_t n)
{
    for (unsigned i = 0; i < ask->rule.n_rates; i++)
        if (!is_within(of_window(numbers, i, USED), 0, 2 * QUOTA_MOST) ||
            !is_within(of_window(numbers, i, RETRY_US), -1, 2 * QUOTA_MOST) ||
            !is_within(of_window(numbers, i, RESET_US), 0, 2 * QUOTA_MOST))
            return false;
    return numbers[GRANTED] >= 0 && (uint64_t)numbers[GRANTED] <= n;
}

/* The script has said it. */
static uint64_t window_granted(const struct quota_ask *ask, const int64_t *numbers, uint64_t n)
{
    (void)ask;
    uint64_t granted = numbers[GRANTED] > 0 ? (uint64_t)numbers[GRANTED] : 0;
    return granted < n ? granted : n;
}

static int64_t used_after(const struct quota_ask *ask, int64_t used, uint64_t granted)
{
    __int128 after = within(used, 0, USED_MOST);
    if (!ask->is_peek)
        after += (__int128)quota_charge(ask) * granted;
    return after < 0 ? 0 : after > USED_MOST ? USED_MOST : (int64_t)after;
}

static void window_tell(const struct quota_ask *ask, const int64_t *numbers, uint64_t granted,
                        struct quota_outcome *outcome)
{
    for (unsigned i = 0; i < ask->rule.n_rates; i++) {
        int64_t limit = ask->rule.rates[i].limit;
        int64_t remaining = within(limit - used_after(ask, of_window(numbers, i, USED), granted), 0, limit);
        if (i == 0 || remaining < outcome->remaining)
            *outcome = (struct quota_outcome){.limit = limit,
                                              .remaining = remaining,
                                              .retry_ns = -1,
                                              .reset_ns = ns_of_us(of_window(numbers, i, RESET_US))};
    }
}

/* What a script has said of one window's next call. */
static int64_t window_retry(int64_t retry_us)
{
    return retry_us < 0 ? NEVER : ns_of_us(retry_us);
}

/* From what is remembered; false: no window refuses. */
static bool window_recall(const struct quota_memory *memory, const struct quota_ask *ask, int64_t elapsed_ns,
                          struct quota_outcome *outcome)
{
    int64_t longest_ns = 0;
    for (unsigned i = 0; i < ask->rule.n_rates; i++) {
        int64_t limit = ask->rule.rates[i].limit;
        bool is_never = memory->retry_ns[i] == NEVER || quota_charge(ask) > limit;
        int64_t retry_ns = is_never ? NEVER : memory->retry_ns[i] - elapsed_ns;
        if (retry_ns <= longest_ns)
            continue;
        longest_ns = retry_ns;
        *outcome = (struct quota_outcome){
            .is_limited = true,
            .limit = limit,
            .remaining = within(limit - memory->debt[i], 0, limit),
            .retry_ns = is_never ? -1 : retry_ns,
            .reset_ns = within(memory->reset_ns[i] - elapsed_ns, 0, INT64_MAX),
        };
    }
    return longest_ns > 0;
}

/* Refused calls that count fill a window up; when room is to be again is told as it is behind the last of them. */
static void window_settle(const struct quota_ask *ask, const int64_t *numbers, uint64_t granted, uint64_t refused,
                          struct quota_memory *memory)
{
    for (unsigned i = 0; i < ask->rule.n_rates; i++) {
        memory->debt[i] = used_after(ask, of_window(numbers, i, USED), granted + refused);
        bool has_room = refused > 0 && memory->debt[i] + ask->cost <= ask->rule.rates[i].limit;
        memory->retry_ns[i] = has_room ? 0 : window_retry(of_window(numbers, i, RETRY_US));
        memory->reset_ns[i] = ns_of_us(of_window(numbers, i, RESET_US));
    }
}

/* When one unit passes is known if that was asked. */
static int64_t window_exact(const struct quota_memory *memory)
{
    int64_t longest_ns = 0;
    for (unsigned i = 0; memory->cost == 1 && i < memory->rule.n_rates; i++)
        longest_ns = memory->retry_ns[i] > longest_ns ? memory->retry_ns[i] : longest_ns;
    return longest_ns;
}

/* ---- holders ---- */

static unsigned holding_numbers(const struct quota_ask *ask)
{
    (void)ask;
    return HOLDERS_NUMBERS;
}

static bool holding_is_sane(const struct quota_ask *ask, const int64_t *numbers, uint64_t n)
{
    (void)ask;
    (void)n;
    return is_within(numbers[GRANTED], 0, 1) && is_within(numbers[HELD], 0, QUOTA_MOST) &&
           is_within(numbers[RETRY_MS], -1, QUOTA_MOST);
}

/* ---- several keys ---- */

/* Their numbers stand one behind the other; each part's are those of its own algorithm. */

static unsigned parts_numbers(const struct quota_ask *ask)
{
    unsigned n = 0;
    for (unsigned p = 0; p < ask->n_parts; p++)
        n += quota_numbers(&ask->parts[p]);
    return n;
}

static bool parts_are_sane(const struct quota_ask *ask, const int64_t *numbers, uint64_t n)
{
    for (unsigned p = 0; p < ask->n_parts; numbers += quota_numbers(&ask->parts[p]), p++)
        if (!quota_numbers_are_sane(&ask->parts[p], numbers, n))
            return false;
    return true;
}

/* How many of n calls this part alone has room for. */
static uint64_t part_fitting(const struct quota_ask *part, const int64_t *numbers, uint64_t n)
{
    return part->cost == 0 ? n : quota_granted(part, numbers, n);
}

static uint64_t parts_granted(const struct quota_ask *ask, const int64_t *numbers, uint64_t n)
{
    for (unsigned p = 0; p < ask->n_parts; numbers += quota_numbers(&ask->parts[p]), p++) {
        uint64_t fitting = part_fitting(&ask->parts[p], numbers, n);
        if (!ask->parts[p].is_shadow && fitting < n)
            n = fitting;
    }
    return n;
}

/* ---- decisions ---- */

/* How a family's numbers are read; who holds a place is told by quota_reply_holding. */
static const struct reading {
    unsigned (*numbers)(const struct quota_ask *ask);
    bool (*is_sane)(const struct quota_ask *ask, const int64_t *numbers, uint64_t n);
    uint64_t (*granted)(const struct quota_ask *ask, const int64_t *numbers, uint64_t n);
    /* What is left when so many have been let through, told to the last of them. */
    void (*tell)(const struct quota_ask *ask, const int64_t *numbers, uint64_t granted, struct quota_outcome *outcome);
    /* The same, kept. */
    void (*settle)(const struct quota_ask *ask, const int64_t *numbers, uint64_t granted, uint64_t refused,
                   struct quota_memory *memory);
    /* quota_memory.exact_ns of what is kept. */
    int64_t (*exact)(const struct quota_memory *memory);
    /* False: what is kept does not refuse. */
    bool (*recall)(const struct quota_memory *memory, const struct quota_ask *ask, int64_t elapsed_ns,
                   struct quota_outcome *outcome);
} readings[FAMILIES] = {
    [FAMILY_FUNNEL] = {funnel_numbers, funnel_is_sane, funnel_granted, funnel_tell, funnel_settle, funnel_exact,
                       funnel_recall},
    [FAMILY_WARM] = {warm_numbers, warm_is_sane, warm_granted, warm_tell, warm_settle, warm_exact, warm_recall},
    [FAMILY_WINDOW] = {window_numbers, window_is_sane, window_granted, window_tell, window_settle, window_exact,
                       window_recall},
    [FAMILY_PARTS] = {.numbers = parts_numbers, .is_sane = parts_are_sane, .granted = parts_granted},
    [FAMILY_HOLDING] = {.numbers = holding_numbers, .is_sane = holding_is_sane},
};

static const struct reading *reading_of(const struct quota_ask *ask)
{
    return &readings[quota_algorithm(ask->rule.kind)->family];
}

unsigned quota_numbers(const struct quota_ask *ask)
{
    return reading_of(ask)->numbers(ask);
}

/* Tries that n calls are. */
static uint64_t tries_of(const struct quota_ask *ask, uint64_t n)
{
    uint64_t tries;
    if (ask->mode != QUOTA_PARTIAL || ask->cost == 0)
        return n;
    return __builtin_mul_overflow(n, (uint64_t)ask->cost, &tries) ? UINT64_MAX : tries;
}

bool quota_numbers_are_sane(const struct quota_ask *ask, const int64_t *numbers, uint64_t n)
{
    return reading_of(ask)->is_sane(ask, numbers, tries_of(ask, n));
}

uint64_t quota_granted(const struct quota_ask *ask, const int64_t *numbers, uint64_t n)
{
    uint64_t most = ask->is_peek && n > 1 ? 1 : tries_of(ask, n);
    return quota_is_sure(ask) ? most : reading_of(ask)->granted(ask, numbers, most);
}

static void settle(const struct quota_ask *ask, const int64_t *numbers, uint64_t granted, uint64_t refused,
                   struct quota_memory *memory)
{
    memory->rule = ask->rule;
    memory->cost = ask->cost;
    memory->is_first = ask->is_first;
    reading_of(ask)->settle(ask, numbers, granted, refused, memory);
}

/* Refused, though by the numbers nothing stands against the next call: it may come again at once. */
static void deny_anyhow(const struct quota_ask *ask, struct quota_outcome *outcome)
{
    *outcome = (struct quota_outcome){.is_limited = true, .limit = ask->rule.rates[0].limit, .retry_ns = 1};
}

/* ---- penalties ---- */

/* Of the rate with least left: its limit, and for how long anything is remembered. */
static void tell_state(const struct quota_memory *memory, struct quota_outcome *outcome)
{
    bool is_funnel = quota_is_funnel(memory->rule.kind);
    int64_t least = 0;
    for (unsigned i = 0; i < memory->rule.n_rates; i++) {
        const struct quota_rate *rate = &memory->rule.rates[i];
        int64_t remaining =
            is_funnel ? funnel_remaining(rate, memory->debt[i]) : within(rate->limit - memory->debt[i], 0, rate->limit);
        if (i > 0 && remaining >= least)
            continue;
        least = remaining;
        outcome->limit = rate->limit;
        outcome->reset_ns = is_funnel ? memory->debt[i] : memory->reset_ns[i];
    }
}

/* Nothing more passes until it is over. */
static void hold_back(const struct quota_hold *hold, struct quota_outcome *outcome)
{
    outcome->remaining = 0;
    outcome->reset_ns = outcome->reset_ns > hold->left_ns ? outcome->reset_ns : hold->left_ns;
}

/* Refused by a penalty, and perhaps by a rate: the longer of them is told. */
static void deny_held(const struct quota_ask *ask, const struct quota_memory *memory, const struct quota_hold *hold,
                      struct quota_outcome *outcome)
{
    if (!reading_of(ask)->recall(memory, ask, 0, outcome)) {
        *outcome = (struct quota_outcome){.is_limited = true};
        tell_state(memory, outcome);
    }
    bool is_longer = outcome->retry_ns < 0 || outcome->retry_ns > hold->left_ns;
    outcome->retry_ns = is_longer ? outcome->retry_ns : hold->left_ns;
    outcome->is_penalised = true;
    hold_back(hold, outcome);
}

/* How many tries of one key there is room for. */
static uint64_t fitting_held(const struct quota_ask *ask, const int64_t *numbers, const struct quota_hold *hold,
                             uint64_t n)
{
    if (ask->cost == 0 && ask->rule.kind != QUOTA_THROTTLE)
        return part_fitting(ask, numbers, n);
    return hold->left_ns > 0 && !quota_is_sure(ask) ? hold->granted : quota_granted(ask, numbers, n);
}

uint64_t quota_granted_held(const struct quota_ask *ask, const int64_t *numbers, const struct quota_hold *holds,
                            uint64_t n)
{
    if (ask->n_parts == 0)
        return holds->left_ns > 0 && !quota_is_sure(ask) ? holds->granted : quota_granted(ask, numbers, n);
    uint64_t granted = quota_granted(ask, numbers, n);
    for (unsigned p = 0; p < ask->n_parts; numbers += quota_numbers(&ask->parts[p]), p++) {
        uint64_t fitting = fitting_held(&ask->parts[p], numbers, &holds[p], n);
        if (!ask->parts[p].is_shadow && fitting < granted)
            granted = fitting;
    }
    return granted;
}

static bool hold_is_sane(const struct quota_ask *ask, const int64_t *numbers, const struct quota_hold *hold, uint64_t n)
{
    if (hold->left_ns == 0)
        return true;
    return ask->rule.n_rates > 0 && ask->rule.kind != QUOTA_THROTTLE && hold->left_ns > 0 &&
           (hold->granted == 0 || hold->granted == quota_granted(ask, numbers, n));
}

/* Of one of several keys; what costs nothing fits as often as is asked. */
static bool part_hold_is_sane(const struct quota_ask *part, const int64_t *numbers, const struct quota_hold *hold,
                              uint64_t n)
{
    return hold_is_sane(part, numbers, hold, n) || (part->cost == 0 && hold->left_ns > 0 && hold->granted == n);
}

bool quota_holds_are_sane(const struct quota_ask *ask, const int64_t *numbers, const struct quota_hold *holds,
                          uint64_t n)
{
    if (ask->n_parts == 0)
        return hold_is_sane(ask, numbers, holds, n);
    for (unsigned p = 0; p < ask->n_parts; numbers += quota_numbers(&ask->parts[p]), p++)
        if (!part_hold_is_sane(&ask->parts[p], numbers, &holds[p], n))
            return false;
    return true;
}

/* ---- one of many calls ---- */

/* How one of several keys stands behind the k-th call, of which so many have been granted. */
static void part_outcome(const struct quota_ask *part, const int64_t *numbers, const struct quota_hold *hold,
                         uint64_t granted, uint64_t k, bool is_granted, struct quota_outcome *outcome)
{
    struct quota_memory memory;
    uint64_t done = k + 1 < granted ? k + 1 : granted;
    settle(part, numbers, done, part->counts_all && !part->is_peek ? k + 1 - done : 0, &memory);
    bool is_held = hold->left_ns > 0 && k >= hold->granted;
    if (is_held && !quota_is_sure(part)) {
        deny_held(part, &memory, hold, outcome);
        return;
    }
    if (is_granted || quota_is_sure(part) || !reading_of(part)->recall(&memory, part, 0, outcome))
        reading_of(part)->tell(part, numbers, done, outcome);
    if (is_held || (hold->left_ns > 0 && quota_is_sure(part)))
        hold_back(hold, outcome);
}

static int64_t longest_first(const struct quota_outcome *outcome)
{
    return outcome->retry_ns < 0 ? NEVER : outcome->retry_ns;
}

/* Is the one told rather than the other? Who refuses for longest, or who has the least remaining; no shadow. */
static bool is_rather(const struct quota_ask *ask, bool is_granted, const struct quota_outcome *one,
                      const struct quota_outcome *other)
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
 * The call passes when all that bind do. Who is told of those that refuse is one that had no room for it; when it
 * passes is told of all, also of those that it has filled up.
 */
static void parts_outcome(const struct quota_ask *ask, const int64_t *numbers, const struct quota_hold *holds,
                          uint64_t n, uint64_t k, struct quota_outcome *outcome)
{
    uint64_t call = ask->is_peek ? 0 : k, granted = quota_granted_held(ask, numbers, holds, n);
    bool is_granted = call < granted;
    uint64_t before = is_granted || ask->counts_all ? call : granted; /* so many have been counted */
    int64_t longest_ns = 0;
    uint8_t refusing = 0;
    for (unsigned p = 0; p < ask->n_parts; numbers += quota_numbers(&ask->parts[p]), p++) {
        const struct quota_ask *part = &ask->parts[p];
        struct quota_outcome told;
        uint64_t fitting = fitting_held(part, numbers, &holds[p], n);
        part_outcome(part, numbers, &holds[p], fitting < granted ? fitting : granted, call, is_granted, &told);
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
    outcome->retry_ns = is_granted || longest_ns == NEVER ? -1 : longest_ns > 0 ? longest_ns : 1;
}

void quota_outcome_held(const struct quota_ask *ask, const int64_t *numbers, const struct quota_hold *holds, uint64_t n,
                        uint64_t k, struct quota_outcome *outcome)
{
    struct quota_memory memory;
    if (ask->n_parts > 0) {
        parts_outcome(ask, numbers, holds, n, k, outcome);
        return;
    }
    uint64_t granted = quota_granted_held(ask, numbers, holds, n);
    uint64_t begin = ask->is_peek ? 0 : tries_of(ask, k); /* of its own tries */
    uint64_t end = ask->is_peek ? 1 : tries_of(ask, k + 1);
    if (begin < granted) {
        end = end < granted ? end : granted;
        reading_of(ask)->tell(ask, numbers, ask->is_peek ? k + 1 : end, outcome);
        outcome->granted = ask->mode == QUOTA_PARTIAL && ask->cost > 0 ? (int64_t)(end - begin) : ask->cost;
        if (holds->left_ns > 0 && quota_is_sure(ask))
            hold_back(holds, outcome);
        return;
    }
    settle(ask, numbers, granted, ask->counts_all && !ask->is_peek ? k - granted + 1 : 0, &memory);
    if (holds->left_ns > 0)
        deny_held(ask, &memory, holds, outcome);
    else if (!reading_of(ask)->recall(&memory, ask, 0, outcome))
        deny_anyhow(ask, outcome);
}

void quota_outcome(const struct quota_ask *ask, const int64_t *numbers, uint64_t n, uint64_t k,
                   struct quota_outcome *outcome)
{
    static const struct quota_hold none[QUOTA_PARTS_MAX];
    quota_outcome_held(ask, numbers, none, n, k, outcome);
}

/* ---- memory ---- */

/* What counts when it is refused, or is decided otherwise than by its cost alone, is always asked. */
static bool is_usual(const struct quota_ask *ask)
{
    return ask->mode == QUOTA_TAKE && !ask->counts_all && ask->penalty.first_ms == 0;
}

bool quota_remember(const struct quota_ask *ask, const int64_t *numbers, uint64_t n, struct quota_memory *memory)
{
    uint64_t granted = quota_granted(ask, numbers, n);
    if (!is_usual(ask) || granted == (ask->is_peek ? 1 : n))
        return false;
    settle(ask, numbers, granted, 0, memory);
    memory->exact_ns = reading_of(ask)->exact(memory);
    return memory->exact_ns > 0;
}

bool quota_recall(const struct quota_memory *memory, const struct quota_ask *ask, uint64_t elapsed_ns,
                  struct quota_outcome *outcome)
{
    bool is_known = quota_is_funnel(ask->rule.kind) ? ask->cost >= 1 : ask->cost == memory->cost;
    if (elapsed_ns > QUOTA_MEMORY_NS || (int64_t)elapsed_ns >= memory->exact_ns || !is_known || !is_usual(ask) ||
        ask->is_first != memory->is_first || !quota_rule_is_same(&memory->rule, &ask->rule))
        return false;
    return reading_of(ask)->recall(memory, ask, (int64_t)elapsed_ns, outcome);
}

/* ---- replies ---- */

static int64_t ms_up(int64_t ns)
{
    return ns < 0 ? -1 : (int64_t)ns_to_ms_up((uint64_t)ns);
}

/* As redis-cell: cut to whole milliseconds, and those rounded up. So less than one is 0 seconds. */
static int64_t cell_seconds(int64_t ns)
{
    int64_t ms = ns / (int64_t)NS_PER_MS;
    return ns < 0 ? -1 : ms / MS_IN_S + (ms % MS_IN_S != 0);
}

/* Are the fields named? */
static bool is_map(const struct build *out, const struct quota_ask *ask)
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

/* The name of the field that follows. */
static void name(struct build *out, bool is_named, const char *text)
{
    if (is_named)
        build_bulk_str(out, text);
}

void quota_reply(struct build *out, const struct quota_ask *ask, const struct quota_outcome *outcome)
{
    static const char *const names[] = {"limited", "limit", "remaining", "retry_after_ms", "reset_after_ms", "granted"};
    bool is_cell = ask->rule.kind == QUOTA_THROTTLE;
    const int64_t numbers[] = {
        outcome->is_limited,
        outcome->limit,
        outcome->remaining,
        is_cell ? cell_seconds(outcome->retry_ns) : ms_up(outcome->retry_ns),
        is_cell ? cell_seconds(outcome->reset_ns) : ms_up(outcome->reset_ns),
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

void quota_reply_holding(struct build *out, const struct quota_ask *ask, const int64_t *numbers, struct slice token)
{
    bool is_granted = numbers[GRANTED] > 0;
    if (ask->rule.kind == QUOTA_BAN) {
        build_status(out, SLICE("OK"));
        return;
    }
    if (ask->rule.kind != QUOTA_ACQUIRE) {
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
    build_int(out, numbers[HELD]);
    name(out, is_named, "max");
    build_int(out, ask->max);
    name(out, is_named, "retry_after_ms");
    build_int(out, is_granted ? -1 : numbers[RETRY_MS]);
}
