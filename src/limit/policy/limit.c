/* The words of a limit, which words combine, and one parser for all units. */
#include "limit/policy/limit.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/slice.h"
#include "base/why.h"
#include "limit/policy/rate.h"

#define COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))
#define BIT(n) (1U << (n))

static const struct unit_row {
    const char *name;
    const char *noun; /* the thing that a limit on the unit lets pass or refuses: see unit_noun */
    uint8_t scopes;   /* BIT(enum scope) */
    uint8_t actions;  /* BIT(enum action) */
    uint8_t initial;  /* enum action if `over` is absent */
} units[UNIT_COUNT] = {
#define ANYBODY (BIT(PER_SUBJECT) | BIT(PER_CONNECTION) | BIT(PER_POLICY))
#define ANYHOW (BIT(OVER_REFUSE) | BIT(OVER_DELAY) | BIT(OVER_CLOSE) | BIT(OVER_SHADOW))
#define AT_ONCE (BIT(OVER_REFUSE) | BIT(OVER_CLOSE) | BIT(OVER_SHADOW))
#define MANY (BIT(PER_SUBJECT) | BIT(PER_POLICY))
    [UNIT_COMMANDS] = {"commands", "command", ANYBODY, ANYHOW, OVER_REFUSE},
    [UNIT_COST] = {"cost", "command", ANYBODY, ANYHOW, OVER_REFUSE},
    [UNIT_BYTES_IN] = {"bytes-in", "command", ANYBODY, ANYHOW, OVER_REFUSE},
    [UNIT_BYTES_OUT] = {"bytes-out", "command", ANYBODY, ANYHOW, OVER_REFUSE},
    [UNIT_INFLIGHT] = {"inflight", "command", ANYBODY, AT_ONCE, OVER_REFUSE},
    [UNIT_CONNECTIONS] = {"connections", "connection", MANY, AT_ONCE, OVER_CLOSE},
    [UNIT_CONNECTS] = {"connects", "connection", MANY, AT_ONCE, OVER_CLOSE},
    [UNIT_AUTH_FAILURES] = {"auth-failures", "login", BIT(PER_SUBJECT),
                            BIT(OVER_CLOSE) | BIT(OVER_SHADOW), OVER_CLOSE},
};

static const char *const scopes[SCOPE_COUNT] = {"subject", "connection", "policy"};
static const char *const actions[ACTION_COUNT] = {"refuse", "delay", "close", "shadow", "deny"};

struct slice unit_name(enum unit unit)
{
    return slice_str(units[unit].name);
}

const char *unit_noun(enum unit unit)
{
    return units[unit].noun;
}

struct slice scope_name(enum scope scope)
{
    return slice_str(scopes[scope]);
}

struct slice action_name(enum action action)
{
    return slice_str(actions[action]);
}

enum unit unit_find(struct slice what)
{
    for (size_t unit = UNIT_COMMANDS + 1; unit < UNIT_COUNT; unit++)
        if (slice_eq_nocase(what, slice_str(units[unit].name)))
            return (enum unit)unit;
    return UNIT_COMMANDS;
}

/* ---- reading ---- */

/* The state of parsing one limit. */
struct draft {
    struct slice text;
    enum unit unit;
    struct rate_text rate;
    uint64_t delay_ns;
    enum scope scope;
    enum action action;
    char *why;
    size_t why_size;
};

static enum rate_form limit_form_of(enum unit unit)
{
    return unit_is_bytes(unit) ? RATE_OF_BYTES : RATE_OF_UNITS;
}

static bool take_amount(struct draft *draft, struct slice word)
{
    if (!unit_is_gauge(draft->unit))
        return rate_parse(word, limit_form_of(draft->unit), &draft->rate, draft->why,
                          draft->why_size);
    if (word.len > 0 && memchr(word.at, '/', word.len) != NULL)
        return why_set(draft->why, draft->why_size,
                       "\"%.*s\": %s counts what is open at one moment: write it without "
                       "a period",
                       WHY_SLICE(word), units[draft->unit].name);
    if (!rate_parse_count(word, &draft->rate.count, draft->why, draft->why_size))
        return false;
    if (draft->rate.count == 0)
        return why_set(draft->why, draft->why_size, "0 never lets anything pass: give at least 1");
    return true;
}

static bool take_burst(struct draft *draft, struct slice value, struct slice *rest)
{
    (void)rest;
    if (unit_is_gauge(draft->unit))
        return why_set(draft->why, draft->why_size, "%s has no rate, so it takes no burst",
                       units[draft->unit].name);
    return rate_parse_burst(value, limit_form_of(draft->unit), &draft->rate.burst, draft->why,
                            draft->why_size);
}

/* Index of `value` among n words; n: not found. */
static size_t find_word(const char *const *words, size_t n, struct slice value)
{
    size_t i = 0;
    while (i < n && !slice_eq_nocase(value, slice_str(words[i])))
        i++;
    return i;
}

static bool take_per(struct draft *draft, struct slice value, struct slice *rest)
{
    (void)rest;
    size_t scope = find_word(scopes, SCOPE_COUNT, value);
    if (scope == SCOPE_COUNT)
        return why_set(
            draft->why, draft->why_size,
            "unknown clause \"per %.*s\": write per subject, per connection or per policy",
            WHY_SLICE(value));
    draft->scope = (enum scope)scope;
    if (!(units[draft->unit].scopes & BIT(scope)))
        return why_set(draft->why, draft->why_size, "%s cannot be counted per %s",
                       units[draft->unit].name, scopes[scope]);
    return true;
}

static bool take_delay(struct draft *draft, struct slice *rest)
{
    struct slice time;
    if (!split_word(rest, &time))
        return why_set(draft->why, draft->why_size,
                       "\"over delay\" needs the longest wait: over delay 200ms");
    if (!rate_parse_time(time, &draft->delay_ns, draft->why, draft->why_size))
        return false;
    if (draft->delay_ns == 0)
        return why_set(draft->why, draft->why_size,
                       "a delay of 0 has no effect: write over refuse");
    return true;
}

static bool limit_take_over(struct draft *draft, struct slice value, struct slice *rest)
{
    size_t action = find_word(actions, OVER_DENY, value);
    if (action == OVER_DENY)
        return why_set(
            draft->why, draft->why_size,
            "unknown clause \"over %.*s\": write over refuse, over delay TIME, over close or over shadow",
            WHY_SLICE(value));
    if (!(units[draft->unit].actions & BIT(action)))
        return why_set(draft->why, draft->why_size, "%s cannot be limited with over %s",
                       units[draft->unit].name, actions[action]);
    draft->action = (enum action)action;
    return action != OVER_DELAY || take_delay(draft, rest);
}

static const struct clause {
    const char *name;
    bool (*take)(struct draft *draft, struct slice value, struct slice *rest);
} clauses[] = {{"burst", take_burst}, {"per", take_per}, {"over", limit_take_over}};

static struct slice clause_name(const void *arg, size_t i)
{
    (void)arg;
    return slice_str(clauses[i].name);
}

static bool refuse_clause(const struct draft *draft, struct slice name)
{
    struct slice near = near_name(name, COUNT_OF(clauses), clause_name, NULL);
    if (near.len > 0)
        return why_set(draft->why, draft->why_size, "unknown clause \"%.*s\" (did you mean %.*s?)",
                       WHY_SLICE(name), WHY_SLICE(near));
    return why_set(draft->why, draft->why_size,
                   "unknown clause \"%.*s\": burst, per and over may follow a rate",
                   WHY_SLICE(name));
}

static bool take_clause(struct draft *draft, unsigned *seen, struct slice name, struct slice *rest)
{
    struct slice value;
    size_t i = 0;
    while (i < COUNT_OF(clauses) && !slice_eq_nocase(name, slice_str(clauses[i].name)))
        i++;
    if (i == COUNT_OF(clauses))
        return refuse_clause(draft, name);
    if (*seen & BIT(i))
        return why_set(draft->why, draft->why_size, "\"%s\" is given twice", clauses[i].name);
    if (!split_word(rest, &value))
        return why_set(draft->why, draft->why_size, "\"%s\" is the last word: its value is missing",
                       clauses[i].name);
    *seen |= BIT(i);
    return clauses[i].take(draft, value, rest);
}

static bool make_rate(const struct draft *draft, struct rate *rate)
{
    const struct rate_text *text = &draft->rate;
    if (unit_is_gauge(draft->unit)) {
        *rate = (struct rate){.count = text->count, .burst = text->count};
        return true;
    }
    uint64_t burst = text->burst > 0 ? text->burst : draft->action == OVER_DELAY ? 1 : text->count;
    if (unit_is_bytes(draft->unit) ? rate_init_bytes(rate, text->count, text->period_ns, burst)
                                   : rate_init(rate, text->count, text->period_ns, burst))
        return true;
    return why_set(draft->why, draft->why_size,
                   "\"%.*s\": a burst of %" PRIu64
                   " at this rate takes more than 100 years to drain: give a smaller "
                   "burst",
                   WHY_SLICE(draft->text), burst);
}

bool limit_parse(struct slice text, enum unit unit, struct limit *limit, char *why, size_t why_size)
{
    struct draft draft = {.text = text,
                          .unit = unit,
                          .action = (enum action)units[unit].initial,
                          .why = why,
                          .why_size = why_size};
    struct slice rest = text, word;
    struct rate rate;
    unsigned seen = 0;
    if (!split_word(&rest, &word))
        return why_set(why, why_size, "a limit is missing: write %s",
                       unit_is_gauge(unit) ? "a number, like 64" : "COUNT/PERIOD, like 1000/s");
    if (!take_amount(&draft, word))
        return false;
    while (split_word(&rest, &word))
        if (!take_clause(&draft, &seen, word, &rest))
            return false;
    if (!make_rate(&draft, &rate))
        return false;
    limit->rate = rate;
    limit->delay_ns = draft.delay_ns;
    limit->unit = (uint8_t)unit;
    limit->scope = (uint8_t)draft.scope;
    limit->action = (uint8_t)draft.action;
    return true;
}

/* ---- writing ---- */

size_t limit_print_rate(const struct limit *limit, char *out)
{
    if (limit->action == OVER_DENY)
        return (size_t)snprintf(out, LIMIT_RATE_MAX, "deny");
    size_t len = unit_is_bytes((enum unit)limit->unit)
                     ? rate_print_bytes(limit->rate.count, out, LIMIT_RATE_MAX)
                     : (size_t)snprintf(out, LIMIT_RATE_MAX, "%" PRIu64, limit->rate.count);
    if (unit_is_gauge((enum unit)limit->unit))
        return len;
    out[len++] = '/';
    return len + rate_print_time(limit->rate.period_ns, out + len, LIMIT_RATE_MAX - len);
}

size_t limit_print_action(const struct limit *limit, char *out)
{
    struct slice name = action_name((enum action)limit->action);
    size_t len = (size_t)snprintf(out, LIMIT_ACTION_MAX, "%.*s", (int)name.len, name.at);
    if (limit->action != OVER_DELAY)
        return len;
    char time[LIMIT_ACTION_MAX / 2];
    rate_print_time(limit->delay_ns, time, sizeof time);
    /* "s" means one second. A rate's period prints as "s", a delay as "1s". */
    bool is_one = time[0] > '9';
    return len +
           (size_t)snprintf(out + len, LIMIT_ACTION_MAX - len, " %s%s", is_one ? "1" : "", time);
}
