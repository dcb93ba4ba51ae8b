/*
 * How the numbers of buckets with a warm-up are read: a debt, and how long it has rested. The arithmetic is that of
 * upstream/scripts/warm.lua.
 */
#include "quota/question.h"
#include "quota/reading.h"

enum { DEBT, REST, WARM_NUMBERS };

static unsigned warm_numbers(const struct quota_ask *ask)
{
    (void)ask;
    return WARM_NUMBERS;
}

static bool warm_is_sane(const struct quota_ask *ask, const int64_t *numbers, uint64_t n)
{
    (void)n;
    return quota_is_within(numbers[DEBT], 0, QUOTA_MOST) && quota_is_within(numbers[REST], 0, ask->warmup_ns);
}

/* What is owed when so much is taken from this rest; QUOTA_DEBT_MOST: that, or more. */
static int64_t warm_price(const struct quota_warm *warm, int64_t rest_ns, __int128 taken_ns)
{
    __int128 after_rest_ns = rest_ns > taken_ns ? rest_ns - taken_ns : 0;
    __int128 before = 2 * (__int128)rest_ns - warm->warmup, after = 2 * after_rest_ns - warm->warmup;
    before = before > 0 ? before : 0;
    after = after > 0 ? after : 0;
    __int128 price = taken_ns + ((before - after) * (before + after) + 2 * (__int128)warm->warmup - 1) /
                                    (2 * (__int128)warm->warmup);
    return price < QUOTA_DEBT_MOST ? (int64_t)price : QUOTA_DEBT_MOST;
}

/* Each passes when what those before it owe leaves room. */
static uint64_t warm_granted(const struct quota_ask *ask, const int64_t *numbers, uint64_t n)
{
    struct quota_warm warm = quota_ask_warm(ask);
    int64_t room_ns = warm.most - quota_within(numbers[DEBT], 0, QUOTA_DEBT_MOST);
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
    int64_t rest_ns = quota_within(numbers[REST], 0, warm.warmup);
    int64_t price_ns = warm_price(&warm, rest_ns, taken_ns);
    (void)refused;
    memory->debt[0] = quota_within(quota_within(numbers[DEBT], 0, QUOTA_DEBT_MOST) + price_ns, 0, QUOTA_DEBT_MOST);
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
                                      .remaining = quota_funnel_remaining(rate, memory.debt[0]),
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
                                      .remaining = quota_funnel_remaining(rate, memory->debt[0]),
                                      .retry_ns = memory->retry_ns[0],
                                      .reset_ns = memory->reset_ns[0]};
    return memory->retry_ns[0] > 0;
}

const struct reading *reading_of_warmups(void)
{
    static const struct reading row = {warm_numbers, warm_is_sane, warm_granted, warm_tell,
                                       warm_settle,  warm_exact,   warm_recall};
    return &row;
}
