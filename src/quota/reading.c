/* The meaning of the integers of each family: a row of functions for each. */
#include "quota/reading.h"

#include "base/clock.h"
#include "quota/question.h"

#define US_NS ((int64_t)NS_PER_US)
#define USED_MOST (INT64_C(1) << 62)

/* Returns how long a call equal to the cached call is refused. */
static int64_t remembered_retry(const struct quota_memory *memory,
                                const struct decision_request *ask, unsigned i, int64_t elapsed_ns)
{
    (void)ask;
    return memory->retry_ns[i] == QUOTA_NEVER ? QUOTA_NEVER : memory->retry_ns[i] - elapsed_ns;
}

/* ---- funnels: a debt for each rate, as in upstream/scripts/funnel.lua ---- */

static unsigned funnel_numbers(const struct decision_request *ask)
{
    return ask->rule.n_rates;
}

static bool funnel_is_sane(const struct decision_request *ask, const int64_t *numbers, uint64_t n)
{
    (void)n;
    for (unsigned i = 0; i < ask->rule.n_rates; i++)
        if (!quota_is_within(numbers[i], 0, QUOTA_MOST))
            return false;
    return true;
}

/*
 * Returns how many calls fit over this debt. If inc is not above 0 (a refund, or nothing), all
 * calls or no calls fit.
 */
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

static uint64_t funnel_granted(const struct decision_request *ask, const int64_t *debts, uint64_t n)
{
    for (unsigned i = 0; i < ask->rule.n_rates; i++) {
        struct quota_gcra gcra = question_gcra(ask, i);
        n = fitting(&gcra, quota_within(debts[i], 0, QUOTA_DEBT_MOST), n);
    }
    return n;
}

/*
 * Computes the debt after `granted` calls have passed. `refused` calls count as far as the burst.
 */
static void funnel_settle(const struct decision_request *ask, const int64_t *numbers,
                          uint64_t granted, uint64_t refused, struct quota_memory *memory)
{
    for (unsigned i = 0; i < ask->rule.n_rates; i++) {
        struct quota_gcra gcra = question_gcra(ask, i);
        int64_t debt_ns = debt_after(&gcra, quota_within(numbers[i], 0, QUOTA_DEBT_MOST),
                                     ask->is_peek ? 0 : granted);
        int64_t filled_ns = refused > 0 ? debt_after(&gcra, debt_ns, refused) : 0;
        filled_ns = filled_ns < gcra.burst ? filled_ns : gcra.burst;
        memory->debt[i] = memory->reset_ns[i] = debt_ns > filled_ns ? debt_ns : filled_ns;
    }
}

static int64_t funnel_retry(const struct quota_memory *memory, const struct decision_request *ask,
                            unsigned i, int64_t elapsed_ns)
{
    struct quota_gcra gcra = question_gcra(ask, i);
    int64_t debt_ns = memory->debt[i] > elapsed_ns ? memory->debt[i] - elapsed_ns : 0;
    if (fitting(&gcra, debt_ns, 1) == 1)
        return 0;
    return gcra.inc > gcra.room ? QUOTA_NEVER : debt_ns + gcra.inc - gcra.room;
}

/* Returns how long a call of one unit is refused. */
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

/* ---- windows: calls that passed; for each rate the usage, and when the rate has room ---- */

enum { GRANTED, USED, RETRY_US, RESET_US, PER_RATE = 3 };

static int64_t of_window(const int64_t *numbers, unsigned i, unsigned which)
{
    return numbers[PER_RATE * i + which];
}

static int64_t ns_of_us(int64_t us)
{
    return quota_within(us, 0, INT64_MAX / US_NS - 1) * US_NS;
}

static unsigned window_numbers(const struct decision_request *ask)
{
    return 1 + PER_RATE * (unsigned)ask->rule.n_rates;
}

static bool window_is_sane(const struct decision_request *ask, const int64_t *numbers, uint64_t n)
{
    for (unsigned i = 0; i < ask->rule.n_rates; i++)
        if (!quota_is_within(of_window(numbers, i, USED), 0, 2 * QUOTA_MOST) ||
            !quota_is_within(of_window(numbers, i, RETRY_US), -1, 2 * QUOTA_MOST) ||
            !quota_is_within(of_window(numbers, i, RESET_US), 0, 2 * QUOTA_MOST))
            return false;
    return numbers[GRANTED] >= 0 && (uint64_t)numbers[GRANTED] <= n;
}

/* Returns the number of granted calls, as the script reports this number. */
static uint64_t window_granted(const struct decision_request *ask, const int64_t *numbers,
                               uint64_t n)
{
    (void)ask;
    uint64_t granted = numbers[GRANTED] > 0 ? (uint64_t)numbers[GRANTED] : 0;
    return granted < n ? granted : n;
}

static int64_t used_after(const struct decision_request *ask, int64_t used, uint64_t granted)
{
    __int128 after = quota_within(used, 0, USED_MOST);
    if (!ask->is_peek)
        after += (__int128)quota_charge(ask) * granted;
    return after < 0 ? 0 : after > USED_MOST ? USED_MOST : (int64_t)after;
}

/* Counted refusals fill the window. The times are as of the last counted refusal. */
static void window_settle(const struct decision_request *ask, const int64_t *numbers,
                          uint64_t granted, uint64_t refused, struct quota_memory *memory)
{
    for (unsigned i = 0; i < ask->rule.n_rates; i++) {
        memory->debt[i] = used_after(ask, of_window(numbers, i, USED), granted + refused);
        int64_t limit = ask->rule.rates[i].limit, retry_us = of_window(numbers, i, RETRY_US);
        bool has_room = refused > 0 && memory->debt[i] + ask->cost <= limit;
        bool is_never = !has_room && (retry_us < 0 || quota_charge(ask) > limit);
        memory->retry_ns[i] = is_never ? QUOTA_NEVER : has_room ? 0 : ns_of_us(retry_us);
        memory->reset_ns[i] = ns_of_us(of_window(numbers, i, RESET_US));
    }
}

/* When one unit passes is known only if the cached call had cost 1. */
static int64_t window_exact(const struct quota_memory *memory)
{
    int64_t longest_ns = 0;
    for (unsigned i = 0; memory->cost == 1 && i < memory->rule.n_rates; i++)
        longest_ns = memory->retry_ns[i] > longest_ns ? memory->retry_ns[i] : longest_ns;
    return longest_ns;
}

/* ---- buckets with a warm-up: debt and rest, as in upstream/scripts/warm.lua ---- */

enum { DEBT, REST, WARM_NUMBERS };

static unsigned warm_numbers(const struct decision_request *ask)
{
    (void)ask;
    return WARM_NUMBERS;
}

static bool warm_is_sane(const struct decision_request *ask, const int64_t *numbers, uint64_t n)
{
    (void)n;
    return quota_is_within(numbers[DEBT], 0, QUOTA_MOST) &&
           quota_is_within(numbers[REST], 0, ask->warmup_ns);
}

/*
 * Returns the debt that a call adds when it takes taken_ns from a rest of rest_ns. QUOTA_DEBT_MOST:
 * the debt is that large or larger.
 */
static int64_t warm_price(const struct quota_warm *warm, int64_t rest_ns, __int128 taken_ns)
{
    __int128 after_rest_ns = rest_ns > taken_ns ? rest_ns - taken_ns : 0;
    __int128 before = 2 * (__int128)rest_ns - warm->warmup,
             after = 2 * after_rest_ns - warm->warmup;
    before = before > 0 ? before : 0;
    after = after > 0 ? after : 0;
    __int128 price =
        taken_ns + ((before - after) * (before + after) + 2 * (__int128)warm->warmup - 1) /
                       (2 * (__int128)warm->warmup);
    return price < QUOTA_DEBT_MOST ? (int64_t)price : QUOTA_DEBT_MOST;
}

/* A call passes if the debts of the calls before it leave room. */
static uint64_t warm_granted(const struct decision_request *ask, const int64_t *numbers, uint64_t n)
{
    struct quota_warm warm = question_warm(ask);
    int64_t room_ns = warm.most - quota_within(numbers[DEBT], 0, QUOTA_DEBT_MOST);
    /* bounds of the number of calls before the last call that passes */
    uint64_t low = 0, high = n - 1;
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

/* Computes the state after this many calls. */
static void warm_settle(const struct decision_request *ask, const int64_t *numbers,
                        uint64_t granted, uint64_t refused, struct quota_memory *memory)
{
    struct quota_warm warm = question_warm(ask);
    __int128 taken_ns = ask->is_peek ? 0 : (__int128)warm.inc * granted;
    int64_t rest_ns = quota_within(numbers[REST], 0, warm.warmup);
    int64_t price_ns = warm_price(&warm, rest_ns, taken_ns);
    (void)refused;
    memory->debt[0] = quota_within(quota_within(numbers[DEBT], 0, QUOTA_DEBT_MOST) + price_ns, 0,
                                   QUOTA_DEBT_MOST);
    memory->retry_ns[0] = memory->debt[0] > warm.most ? memory->debt[0] - warm.most : 0;
    memory->reset_ns[0] =
        memory->debt[0] + warm.warmup - (rest_ns > taken_ns ? rest_ns - (int64_t)taken_ns : 0);
}

/* Denials of this family are not cached. */
static int64_t warm_exact(const struct quota_memory *memory)
{
    (void)memory;
    return 0;
}

/* ---- holders ---- */

static unsigned holding_numbers(const struct decision_request *ask)
{
    (void)ask;
    return HOLDERS_NUMBERS;
}

static bool holding_is_sane(const struct decision_request *ask, const int64_t *numbers, uint64_t n)
{
    (void)ask;
    (void)n;
    return quota_is_within(numbers[HOLDERS_GRANTED], 0, 1) &&
           quota_is_within(numbers[HOLDERS_HELD], 0, QUOTA_MOST) &&
           quota_is_within(numbers[HOLDERS_RETRY_MS], -1, QUOTA_MOST);
}

/* ---- several keys ---- */

static unsigned parts_numbers(const struct decision_request *ask)
{
    unsigned n = 0;
    for (unsigned p = 0; p < ask->n_parts; p++)
        n += quota_numbers(&ask->parts[p]);
    return n;
}

static bool parts_are_sane(const struct decision_request *ask, const int64_t *numbers, uint64_t n)
{
    for (unsigned p = 0; p < ask->n_parts; numbers += quota_numbers(&ask->parts[p]), p++)
        if (!quota_numbers_are_sane(&ask->parts[p], numbers, n))
            return false;
    return true;
}

uint64_t quota_part_fitting(const struct decision_request *part, const int64_t *numbers, uint64_t n)
{
    return part->cost == 0 ? n : quota_granted(part, numbers, n);
}

static uint64_t parts_granted(const struct decision_request *ask, const int64_t *numbers,
                              uint64_t n)
{
    for (unsigned p = 0; p < ask->n_parts; numbers += quota_numbers(&ask->parts[p]), p++) {
        uint64_t fitting = quota_part_fitting(&ask->parts[p], numbers, n);
        if (!ask->parts[p].is_shadow && fitting < n)
            n = fitting;
    }
    return n;
}

/* ---- the rows ---- */

const struct reading *quota_reading(const struct decision_request *ask)
{
    static const struct reading rows[FAMILIES] = {
        [FAMILY_FUNNEL] = {funnel_numbers, funnel_is_sane, funnel_granted, funnel_settle,
                           funnel_retry, funnel_exact},
        [FAMILY_WARM] = {warm_numbers, warm_is_sane, warm_granted, warm_settle, remembered_retry,
                         warm_exact},
        [FAMILY_WINDOW] = {window_numbers, window_is_sane, window_granted, window_settle,
                           remembered_retry, window_exact},
        [FAMILY_PARTS] = {.numbers = parts_numbers,
                          .is_sane = parts_are_sane,
                          .granted = parts_granted},
        [FAMILY_HOLDING] = {.numbers = holding_numbers, .is_sane = holding_is_sane},
    };
    return &rows[quota_algorithm(ask->rule.kind)->family];
}

unsigned quota_numbers(const struct decision_request *ask)
{
    return quota_reading(ask)->numbers(ask);
}

uint64_t quota_tries(const struct decision_request *ask, uint64_t n)
{
    uint64_t tries;
    if (ask->mode != QUOTA_PARTIAL || ask->cost == 0)
        return n;
    return __builtin_mul_overflow(n, (uint64_t)ask->cost, &tries) ? UINT64_MAX : tries;
}

bool quota_numbers_are_sane(const struct decision_request *ask, const int64_t *numbers, uint64_t n)
{
    return quota_reading(ask)->is_sane(ask, numbers, quota_tries(ask, n));
}

uint64_t quota_granted(const struct decision_request *ask, const int64_t *numbers, uint64_t n)
{
    uint64_t most = ask->is_peek && n > 1 ? 1 : quota_tries(ask, n);
    return quota_is_sure(ask) ? most : quota_reading(ask)->granted(ask, numbers, most);
}
