#include "quota/penalty.h"

#include "base/clock.h"
#include "base/why.h"
#include "limit/policy/rate.h"

bool penalty_parse_time(struct slice text, int64_t *ms, char *why, size_t why_size)
{
    uint64_t ns;
    if (!rate_parse_time(text, &ns, why, why_size))
        return false;
    if (ns == 0)
        return why_set(why, why_size, "a penalty of 0 has no effect: give at least 1ms");
    *ms = (int64_t)(ns / NS_PER_MS);
    return true;
}

/* Returns the position of ".."; the length if there is none. */
static size_t find_dots(struct slice text)
{
    for (size_t i = 0; i + 1 < text.len; i++)
        if (text.at[i] == '.' && text.at[i + 1] == '.')
            return i;
    return text.len;
}

bool penalty_parse(struct slice text, struct quota_penalty *penalty, char *why, size_t why_size)
{
    struct quota_penalty read;
    size_t dots = find_dots(text);
    if (!penalty_parse_time(slice_of(text.at, dots), &read.first_ms, why, why_size))
        return false;
    read.longest_ms = read.first_ms;
    if (dots < text.len && !penalty_parse_time(slice_of(text.at + dots + 2, text.len - dots - 2),
                                               &read.longest_ms, why, why_size))
        return false;
    if (read.longest_ms < read.first_ms)
        return why_set(why, why_size,
                       "the longest penalty is shorter than the first: write 1m..1h");
    *penalty = read;
    return true;
}

void penalty_begin(const struct quota_penalty *penalty, uint64_t now_ns,
                   struct penalty_state *state)
{
    uint64_t first = (uint64_t)penalty->first_ms * NS_PER_MS,
             longest = (uint64_t)penalty->longest_ms * NS_PER_MS;
    bool is_known = state->last > 0 && now_ns - state->until < state->rest;
    uint64_t last = is_known ? state->last : 0;
    uint64_t length = 2 * last < first ? first : 2 * last < longest ? 2 * last : longest;
    if (longest > first) {
        state->last = length;
        state->rest = longest;
    } else {
        length = first;
        state->last = last;
        state->rest = is_known ? state->rest : 0;
    }
    state->until = now_ns + length;
}
