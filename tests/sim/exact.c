#include "tests/sim/exact.h"

#include <string.h>

#define NS_PER_MS 1000000
#define NS_PER_US 1000
#define US_PER_MS 1000

static const char wrong_type[] =
    "WRONGTYPE Operation against a key holding the wrong kind of value";

/*
 * T4, P6: the row with the longest wait, the first of equals. Where no rate refuses, the least
 * remaining.
 */
struct exact_told exact_refused(const struct exact_row *rows, unsigned n)
{
    const struct exact_row *row = &rows[0];
    bool refuses = false;
    for (unsigned i = 0; i < n; i++)
        refuses |= rows[i].retry > 0;
    for (unsigned i = 1; i < n; i++)
        if (refuses ? rows[i].retry > row->retry : rows[i].remaining < row->remaining)
            row = &rows[i];
    return (struct exact_told){NULL, true, row->limit, row->remaining, row->retry, row->reset,
                               0,    0,    -1};
}

/* T4: the row with the least remaining, the first of equals. */
struct exact_told exact_passed(const struct exact_row *rows, unsigned n, int64_t granted)
{
    const struct exact_row *row = &rows[0];
    for (unsigned i = 1; i < n; i++)
        if (rows[i].remaining < row->remaining)
            row = &rows[i];
    return (struct exact_told){NULL,    false, row->limit, row->remaining, -1, row->reset,
                               granted, 0,     -1};
}

static int64_t to_ms(int64_t ns)
{
    return ns < 0 || ns == EXACT_NEVER ? -1 : exact_ceil(ns, NS_PER_MS);
}

unsigned exact_fields(const struct exact_told *told, const struct exact_call *call,
                      int64_t fields[EXACT_FIELDS])
{
    fields[0] = told->is_limited;
    fields[1] = told->limit;
    fields[2] = told->remaining;
    fields[3] = to_ms(told->retry);
    fields[4] = to_ms(told->reset);
    fields[5] = told->granted;
    return call->mode == EXACT_PARTIAL ? 6 : 5;
}

void exact_age(struct exact_key *key, int64_t now_us)
{
    if (key->end_us <= now_us && !key->is_overfull)
        *key = (struct exact_key){0};
}

/* Sets the expiry of the key. A log with an unchanged lifetime keeps its expiry. */
static void keep(struct exact_key *key, enum exact_kind kind, int64_t lives_ms, int64_t now_us)
{
    bool is_as_before = kind == EXACT_SLIDING && key->kind == kind && key->end_us > now_us &&
                        exact_ceil(key->end_us - now_us, US_PER_MS) == lives_ms;
    key->kind = kind;
    if (!is_as_before)
        key->end_us = now_us + lives_ms * US_PER_MS;
    exact_age(key, now_us);
}

/* ---- penalties ---- */

static bool knows_penalty(const struct exact_key *key, int64_t now_us)
{
    return key->has_penalty && now_us < key->till_us + key->rest_ms * US_PER_MS;
}

static int64_t penalty_lives(const struct exact_key *key, int64_t now_us)
{
    return exact_ceil(key->till_us - now_us, US_PER_MS) + key->rest_ms;
}

static int64_t penalty_left(const struct exact_key *key, int64_t now_us)
{
    return knows_penalty(key, now_us) ? exact_max(0, key->till_us - now_us) : 0;
}

static void forget_penalty(struct exact_key *key)
{
    key->has_penalty = false;
    key->till_us = key->span_ms = key->last_ms = key->rest_ms = 0;
}

/* P4, P5. */
static void punish(struct exact_key *key, const struct exact_call *call, int64_t now_us)
{
    int64_t ms = call->first_ms;
    if (!knows_penalty(key, now_us))
        forget_penalty(key);
    if (call->longest_ms != call->first_ms) {
        ms = exact_min(exact_max(ms, 2 * key->last_ms), call->longest_ms);
        key->last_ms = ms;
        key->rest_ms = call->longest_ms;
    }
    key->has_penalty = true;
    key->span_ms = ms;
    key->till_us = now_us + ms * US_PER_MS;
}

/* ---- asking ---- */

static exact_algorithm *const algorithms[] = {NULL,           exact_funnel_ask, exact_funnel_ask,
                                              exact_warm_ask, exact_window_ask, exact_window_ask,
                                              exact_log_ask};

/* P3 to P8. */
static struct exact_told decide(struct exact_key *key, struct exact_call call, int64_t now_us)
{
    struct exact_key before;
    exact_age(key, now_us);
    if (key->kind != EXACT_NONE && key->kind != call.kind)
        return (struct exact_told){.wrong = wrong_type};
    before = *key;
    int64_t left = penalty_left(key, now_us);
    call.is_held |= left > 0;
    struct exact_step step = algorithms[call.kind](key, &call, now_us);
    if (step.told.wrong != NULL) {
        *key = before;
        return step.told;
    }
    bool refuses = step.told.is_limited && !call.room_alone;
    if (step.has_changed && !knows_penalty(key, now_us))
        forget_penalty(key);
    if (call.first_ms > 0 && refuses && left == 0 && !exact_looks(&call)) {
        punish(key, &call, now_us);
        step.has_changed = true;
        left = penalty_left(key, now_us);
    }
    if (left > 0) {
        step.told.remaining = 0;
        step.told.reset = exact_max(step.told.reset, left * NS_PER_US);
        step.told.retry = step.told.is_limited ? exact_max(step.told.retry, left * NS_PER_US) : -1;
    }
    if (!step.has_changed)
        *key = before;
    else
        keep(key, call.kind,
             knows_penalty(key, now_us) ? exact_max(step.lives_ms, penalty_lives(key, now_us))
                                        : step.lives_ms,
             now_us);
    return step.told;
}

struct exact_told exact_ask(struct exact_key *key, const struct exact_call *call, int64_t now_us)
{
    return decide(key, *call, now_us);
}

struct exact_told exact_ask_all(struct exact_key *keys, const struct exact_call *calls, unsigned n,
                                int64_t now_us)
{
    struct exact_key tried[EXACT_PARTS];
    bool refuses[EXACT_PARTS], is_refused = false;
    for (unsigned i = 0; i < n; i++) {
        tried[i] = keys[i];
        struct exact_told alone = decide(&tried[i], calls[i], now_us);
        if (alone.wrong == wrong_type) /* an overfull key matters only to the charge below */
            return alone;
        refuses[i] = alone.is_limited;
        is_refused |= alone.is_limited;
        tried[i] = keys[i];
    }
    struct exact_told told = {.refused_by = -1}, one;
    int64_t longest = 0;
    for (unsigned i = 0; i < n; i++) {
        struct exact_call call = calls[i];
        call.is_held = is_refused && !exact_is_sure(&call);
        call.room_alone = !refuses[i];
        one = decide(&tried[i], call, now_us);
        if (one.wrong != NULL)
            return one;
        bool is_better = is_refused ? refuses[i] && (told.refused_by < 0 || one.retry > told.retry)
                                    : i == 0 || one.remaining < told.remaining;
        if (is_better)
            told = one;
        if (is_better)
            told.refused_by = is_refused ? (int)i : -1;
        if (call.counts_all || refuses[i])
            longest = exact_max(longest, one.retry);
    }
    if (is_refused)
        told.retry = exact_max(told.retry, longest);
    memcpy(keys, tried, n * sizeof *keys);
    return told;
}

/* ---- BAN and UNBAN ---- */

static void keep_banned(struct exact_key *key, enum exact_kind kind, int64_t now_us)
{
    int64_t lives = key->kind == EXACT_SLIDING ? exact_log_lives(key, now_us)
                    : key->n > 0 ? exact_ceil(exact_max(0, key->end_us - now_us), US_PER_MS)
                                 : 0;
    keep(key, kind, key->has_penalty ? exact_max(lives, penalty_lives(key, now_us)) : lives,
         now_us);
}

int64_t exact_ban(struct exact_key *key, enum exact_kind kind, int64_t ms, int64_t now_us)
{
    exact_age(key, now_us);
    if (!knows_penalty(key, now_us))
        forget_penalty(key);
    key->has_penalty = true;
    key->span_ms = ms;
    key->till_us = now_us + ms * US_PER_MS;
    keep_banned(key, kind, now_us);
    return 1;
}

int64_t exact_unban(struct exact_key *key, int64_t now_us)
{
    exact_age(key, now_us);
    bool was_there = penalty_left(key, now_us) > 0;
    if (key->has_penalty) {
        forget_penalty(key);
        keep_banned(key, key->kind, now_us);
    }
    return was_there;
}
