/*
 * How the numbers of windows are read: how many calls the script has let through; and of each rate what is used, when
 * the same call has room again, and when the window is empty.
 */
#include "base/clock.h"
#include "quota/reading.h"

#define US_NS ((int64_t)NS_PER_US)
#define USED_MOST (INT64_C(1) << 62)

enum { GRANTED, USED, RETRY_US, RESET_US, PER_RATE = 3 };

static int64_t of_window(const int64_t *numbers, unsigned i, unsigned which)
{
    return numbers[PER_RATE * i + which];
}

static int64_t ns_of_us(int64_t us)
{
    return quota_within(us, 0, INT64_MAX / US_NS - 1) * US_NS;
}

static unsigned window_numbers(const struct quota_ask *ask)
{
    return 1 + PER_RATE * (unsigned)ask->rule.n_rates;
}

static bool window_is_sane(const struct quota_ask *ask, const int64_t *numbers, uint64_t n)
{
    for (unsigned i = 0; i < ask->rule.n_rates; i++)
        if (!quota_is_within(of_window(numbers, i, USED), 0, 2 * QUOTA_MOST) ||
            !quota_is_within(of_window(numbers, i, RETRY_US), -1, 2 * QUOTA_MOST) ||
            !quota_is_within(of_window(numbers, i, RESET_US), 0, 2 * QUOTA_MOST))
            return false;
    return numbers[GRANTED] >= 0 && (uint64_t)numbers[GRANTED] <= n;
}

/* The script returns it. */
static uint64_t window_granted(const struct quota_ask *ask, const int64_t *numbers, uint64_t n)
{
    (void)ask;
    uint64_t granted = numbers[GRANTED] > 0 ? (uint64_t)numbers[GRANTED] : 0;
    return granted < n ? granted : n;
}

static int64_t used_after(const struct quota_ask *ask, int64_t used, uint64_t granted)
{
    __int128 after = quota_within(used, 0, USED_MOST);
    if (!ask->is_peek)
        after += (__int128)quota_charge(ask) * granted;
    return after < 0 ? 0 : after > USED_MOST ? USED_MOST : (int64_t)after;
}

static void window_tell(const struct quota_ask *ask, const int64_t *numbers, uint64_t granted,
                        struct quota_outcome *outcome)
{
    for (unsigned i = 0; i < ask->rule.n_rates; i++) {
        int64_t limit = ask->rule.rates[i].limit;
        int64_t remaining = quota_within(limit - used_after(ask, of_window(numbers, i, USED), granted), 0, limit);
        if (i == 0 || remaining < outcome->remaining)
            *outcome = (struct quota_outcome){.limit = limit,
                                              .remaining = remaining,
                                              .retry_ns = -1,
                                              .reset_ns = ns_of_us(of_window(numbers, i, RESET_US))};
    }
}

/* When the next call passes one window, by the script's numbers. */
static int64_t window_retry(int64_t retry_us)
{
    return retry_us < 0 ? QUOTA_NEVER : ns_of_us(retry_us);
}

/* From what is remembered; false: no window refuses. */
static bool window_recall(const struct quota_memory *memory, const struct quota_ask *ask, int64_t elapsed_ns,
                          struct quota_outcome *outcome)
{
    int64_t longest_ns = 0;
    for (unsigned i = 0; i < ask->rule.n_rates; i++) {
        int64_t limit = ask->rule.rates[i].limit;
        bool is_never = memory->retry_ns[i] == QUOTA_NEVER || quota_charge(ask) > limit;
        int64_t retry_ns = is_never ? QUOTA_NEVER : memory->retry_ns[i] - elapsed_ns;
        if (retry_ns <= longest_ns)
            continue;
        longest_ns = retry_ns;
        *outcome = (struct quota_outcome){
            .is_limited = true,
            .limit = limit,
            .remaining = quota_within(limit - memory->debt[i], 0, limit),
            .retry_ns = is_never ? -1 : retry_ns,
            .reset_ns = quota_within(memory->reset_ns[i] - elapsed_ns, 0, INT64_MAX),
        };
    }
    return longest_ns > 0;
}

/* Refused calls that count fill the window; the times are those after the last of them. */
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

const struct reading *reading_of_windows(void)
{
    static const struct reading row = {window_numbers, window_is_sane, window_granted, window_tell,
                                       window_settle,  window_exact,   window_recall};
    return &row;
}
