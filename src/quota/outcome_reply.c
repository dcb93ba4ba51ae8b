#include "quota/outcome_reply.h"

#include "base/clock.h"

#define MS_IN_S 1000

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
    bool is_granted = numbers[HOLDERS_GRANTED] > 0;
    if (ask->rule.kind == QUOTA_BAN) {
        build_status(out, SLICE("OK"));
        return;
    }
    if (!quota_takes_place(ask)) {
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
