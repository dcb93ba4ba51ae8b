/* Reads the grammar of limits: what a word means is a row of a table. */
#include "limit/rate.h"

#include "base/near.h"
#include "base/num.h"
#include "base/split.h"
#include "base/why.h"

struct unit {
    const char *name;
    uint64_t factor;
};

static const struct unit count_units[] = {{"", 1}, {"k", 1000}, {"m", 1000 * 1000}, {"g", 1000 * 1000 * 1000}};

static const struct unit time_units[] = {
    {"ms", UINT64_C(1000000)},
    {"s", UINT64_C(1000000000)},
    {"m", 60 * UINT64_C(1000000000)},
    {"h", 3600 * UINT64_C(1000000000)},
    {"d", 24 * 3600 * UINT64_C(1000000000)},
};

#define COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))

static const struct unit *find_unit(const struct unit *units, size_t n_units, struct slice name)
{
    for (size_t i = 0; i < n_units; i++)
        if (slice_eq_nocase(name, slice_str(units[i].name)))
            return &units[i];
    return NULL;
}

static struct slice take_digits(struct slice *rest)
{
    size_t len = 0;
    while (len < rest->len && rest->at[len] >= '0' && rest->at[len] <= '9')
        len++;
    return split_take(rest, len);
}

/* number * unit, when that fits. */
static bool scale(struct slice digits, const struct unit *unit, uint64_t *out)
{
    int64_t number;
    uint64_t product;
    if (!num_parse(digits, &number) || __builtin_mul_overflow((uint64_t)number, unit->factor, &product))
        return false;
    *out = product;
    return true;
}

static bool is_bytes_unit(struct slice name)
{
    static const struct unit units[] = {{"b", 1}, {"kb", 1}, {"mb", 1}, {"gb", 1}};
    return find_unit(units, COUNT_OF(units), name) != NULL;
}

bool rate_parse_count(struct slice text, uint64_t *count, char *why, size_t why_size)
{
    struct slice unit_name = text;
    struct slice digits = take_digits(&unit_name);
    const struct unit *unit = find_unit(count_units, COUNT_OF(count_units), unit_name);
    if (digits.len > 0 && is_bytes_unit(unit_name))
        return why_set(why, why_size, "\"%.*s\": kb, mb and gb count bytes; commands are counted in k, m and g",
                       WHY_SLICE(text));
    if (digits.len == 0 || !unit)
        return why_set(why, why_size, "\"%.*s\" is not a count: write a whole number, or one with k, m or g (10k)",
                       WHY_SLICE(text));
    if (!scale(digits, unit, count))
        return why_set(why, why_size, "\"%.*s\" is not a count: it is too large or starts with 0", WHY_SLICE(text));
    return true;
}

bool rate_parse_time(struct slice text, uint64_t *ns, char *why, size_t why_size)
{
    if (slice_eq(text, SLICE("0"))) {
        *ns = 0;
        return true;
    }
    struct slice unit_name = text;
    struct slice digits = take_digits(&unit_name);
    const struct unit *unit = find_unit(time_units, COUNT_OF(time_units), unit_name);
    if (!unit)
        return why_set(why, why_size, "\"%.*s\" is not a time: write ms, s, m, h or d, or a number of them (60s)",
                       WHY_SLICE(text));
    uint64_t parsed_ns = unit->factor;
    if (digits.len > 0 && !scale(digits, unit, &parsed_ns))
        return why_set(why, why_size, "\"%.*s\" is not a time: the number is too large or starts with 0",
                       WHY_SLICE(text));
    if (parsed_ns > RATE_LONGEST_NS)
        return why_set(why, why_size, "\"%.*s\" is longer than 100 years", WHY_SLICE(text));
    *ns = parsed_ns;
    return true;
}

bool rate_parse_amount(struct slice text, uint64_t *count, uint64_t *period_ns, char *why, size_t why_size)
{
    const char *slash = text.len > 0 ? memchr(text.at, '/', text.len) : NULL;
    if (!slash)
        return why_set(why, why_size, "\"%.*s\" is not a rate: write COUNT/PERIOD, like 1000/s or 5/60s",
                       WHY_SLICE(text));
    struct slice after = text;
    struct slice before = split_take(&after, (size_t)(slash - text.at));
    split_take(&after, 1);

    uint64_t parsed_count, parsed_ns;
    if (!rate_parse_count(before, &parsed_count, why, why_size) || !rate_parse_time(after, &parsed_ns, why, why_size))
        return false;
    if (parsed_count == 0)
        return why_set(why, why_size, "a rate of 0 lets nothing pass, ever: give at least 1");
    if (parsed_ns == 0)
        return why_set(why, why_size, "\"%.*s\": the period must be longer than 0", WHY_SLICE(text));
    *count = parsed_count;
    *period_ns = parsed_ns;
    return true;
}

/* ---- a whole limit ---- */

struct draft {
    uint64_t count, period_ns, burst;
};

static bool take_burst(struct draft *draft, struct slice value, char *why, size_t why_size)
{
    if (!rate_parse_count(value, &draft->burst, why, why_size))
        return false;
    if (draft->burst == 0)
        return why_set(why, why_size, "a burst of 0 lets nothing pass, ever: give at least 1");
    return true;
}

/* A clause with a closed list of words, of which only the first is there yet. */
static bool take_word(const char *const words[], const char *clause, struct slice value, char *why, size_t why_size)
{
    if (slice_eq_nocase(value, slice_str(words[0])))
        return true;
    for (size_t i = 1; words[i]; i++)
        if (slice_eq_nocase(value, slice_str(words[i])))
            return why_set(why, why_size, "\"%s %s\" is not yet supported: only \"%s %s\" is", clause, words[i], clause,
                           words[0]);
    return why_set(why, why_size, "\"%s %.*s\" means nothing: write \"%s %s\"", clause, WHY_SLICE(value), clause,
                   words[0]);
}

static bool take_per(struct draft *draft, struct slice value, char *why, size_t why_size)
{
    static const char *const words[] = {"subject", "connection", "policy", NULL};
    (void)draft;
    return take_word(words, "per", value, why, why_size);
}

static bool take_over(struct draft *draft, struct slice value, char *why, size_t why_size)
{
    static const char *const words[] = {"refuse", "delay", "close", "shadow", NULL};
    (void)draft;
    return take_word(words, "over", value, why, why_size);
}

static const struct clause {
    const char *name;
    bool (*take)(struct draft *draft, struct slice value, char *why, size_t why_size);
} clauses[] = {{"burst", take_burst}, {"per", take_per}, {"over", take_over}};

static struct slice clause_name(const void *arg, size_t i)
{
    (void)arg;
    return slice_str(clauses[i].name);
}

static bool take_clause(struct draft *draft, unsigned *seen, struct slice name, struct slice *rest, char *why,
                        size_t why_size)
{
    for (size_t i = 0; i < COUNT_OF(clauses); i++) {
        struct slice value;
        if (!slice_eq_nocase(name, slice_str(clauses[i].name)))
            continue;
        if (*seen & 1U << i)
            return why_set(why, why_size, "\"%s\" is given twice", clauses[i].name);
        if (!split_word(rest, &value))
            return why_set(why, why_size, "\"%s\" is the last word: its value is missing", clauses[i].name);
        *seen |= 1U << i;
        return clauses[i].take(draft, value, why, why_size);
    }
    struct slice near = near_name(name, COUNT_OF(clauses), clause_name, NULL);
    if (near.len > 0)
        return why_set(why, why_size, "unknown clause \"%.*s\" (did you mean %.*s?)", WHY_SLICE(name), WHY_SLICE(near));
    return why_set(why, why_size, "unknown clause \"%.*s\": burst, per and over may follow a rate", WHY_SLICE(name));
}

bool rate_parse(struct slice text, struct rate *rate, char *why, size_t why_size)
{
    struct draft draft = {0};
    struct slice rest = text, word;
    unsigned seen = 0;
    if (!split_word(&rest, &word))
        return why_set(why, why_size, "a limit is missing: write COUNT/PERIOD, like 1000/s");
    if (!rate_parse_amount(word, &draft.count, &draft.period_ns, why, why_size))
        return false;
    draft.burst = draft.count;
    while (split_word(&rest, &word))
        if (!take_clause(&draft, &seen, word, &rest, why, why_size))
            return false;
    if (!rate_init(rate, draft.count, draft.period_ns, draft.burst))
        return why_set(
            why, why_size,
            "\"%.*s\": a burst of %llu at this rate takes more than 100 years to drain: give a smaller burst",
            WHY_SLICE(text), (unsigned long long)draft.burst);
    return true;
}
