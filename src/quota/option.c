#include "quota/option.h"

#include <stdarg.h>
#include <stdio.h>

#include "base/clock.h"
#include "base/num.h"
#include "base/why.h"
#include "limit/policy/rate.h"
#include "quota/question.h"

#define WARMUP_MOST_S 3600 /* chosen: warm.lua divides squares of this time as doubles */
#define WAIT_MOST_MS (24 * 3600 * INT64_C(1000))

/* ---- errors ---- */

__attribute__((format(printf, 3, 0))) static void set_why(const struct reading *reading,
                                                          const char *begin, const char *format,
                                                          va_list args)
{
    snprintf(reading->why, reading->why_size, "%s", begin);
    size_t len = strlen(reading->why);
    vsnprintf(reading->why + len, reading->why_size - len, format, args);
}

bool option_error(const struct reading *reading, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    set_why(reading, "ERR ", format, args);
    va_end(args);
    return false;
}

bool option_syntax_error(const struct reading *reading, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    set_why(reading, "ERR syntax error, ", format, args);
    va_end(args);
    return false;
}

bool option_no_integer(const struct reading *reading)
{
    return option_error(reading, "value is not an integer or out of range");
}

bool option_parse_within(const struct reading *reading, struct slice word, int64_t least,
                         int64_t most, int64_t *number)
{
    return (num_parse(word, number) && *number >= least && *number <= most) ||
           option_no_integer(reading);
}

/* ---- options ---- */

static bool option_burst(struct reading *reading, struct slice value)
{
    struct rate_text *draft = &reading->drafts[reading->n_drafts - 1];
    char unused[8];
    return rate_parse_burst(value, RATE_OF_UNITS, &draft->burst, unused, sizeof unused) ||
           option_no_integer(reading);
}

static bool option_cost(struct reading *reading, struct slice value)
{
    return option_parse_within(reading, value, 0, QUOTA_MOST - 1, &reading->part->cost);
}

static bool option_wait(struct reading *reading, struct slice value)
{
    int64_t ms;
    if (!num_parse(value, &ms))
        return option_error(reading, "timeout is not an integer or out of range");
    if (ms < 0)
        return option_error(reading, "timeout is negative");
    if (ms > WAIT_MOST_MS)
        return option_error(reading, "timeout is out of range: at most a day");
    reading->ask->wait_ns = (uint64_t)ms * NS_PER_MS;
    return true;
}

static bool option_peek(struct reading *reading, struct slice value)
{
    (void)value;
    reading->ask->is_peek = true;
    return true;
}

static bool option_approx(struct reading *reading, struct slice value)
{
    (void)value;
    reading->part->rule.kind = QUOTA_APPROX;
    return true;
}

static bool option_as(struct reading *reading, struct slice value)
{
    bool is_map = slice_eq_nocase(value, SLICE("map"));
    if (!is_map && !slice_eq_nocase(value, SLICE("array")))
        return option_syntax_error(reading, "AS takes ARRAY or MAP, not '%.*s'", WHY_SLICE(value));
    reading->ask->shape = is_map ? QUOTA_AS_MAP : QUOTA_AS_ARRAY;
    return true;
}

static bool option_credit(struct reading *reading, struct slice value)
{
    return option_parse_within(reading, value, 0, QUOTA_MOST - 1, &reading->ask->cost);
}

static bool option_count(struct reading *reading, struct slice value)
{
    reading->ask->counts_all = true;
    return slice_eq_nocase(value, SLICE("all")) ||
           option_syntax_error(reading, "COUNT takes ALL, not '%.*s'", WHY_SLICE(value));
}

static bool option_from(struct reading *reading, struct slice value)
{
    reading->ask->is_first = true;
    return slice_eq_nocase(value, SLICE("first")) ||
           option_syntax_error(reading, "FROM takes FIRST, not '%.*s'", WHY_SLICE(value));
}

static bool option_warmup(struct reading *reading, struct slice value)
{
    uint64_t ns;
    char what[160];
    if (reading->part != reading->ask)
        return option_error(reading, "WARMUP is for one key");
    if (!rate_parse_time(value, &ns, what, sizeof what))
        return option_error(reading, "%s", what);
    if (ns == 0 || ns > WARMUP_MOST_S * NS_PER_S)
        return option_error(reading, "WARMUP is longer than 0 and at most an hour");
    reading->ask->warmup_ns = (int64_t)ns;
    reading->ask->rule.kind = QUOTA_WARM;
    return true;
}

static bool option_penalty(struct reading *reading, struct slice value)
{
    char what[160];
    return penalty_parse(value, &reading->ask->penalty, what, sizeof what) ||
           option_error(reading, "%s", what);
}

struct option {
    struct slice name;
    unsigned bit; /* enum quota_option */
    bool has_value;
    enum quota_mode mode; /* mode of the call, unless QUOTA_TAKE */
    bool (*take)(struct reading *reading, struct slice value);
};

#define OPTION(word, ...)                                                                          \
    {                                                                                              \
        {#word, sizeof #word - 1}, OPTION_##word, __VA_ARGS__                                      \
    }
static const struct option options[] = {
    OPTION(BURST, true, QUOTA_TAKE, option_burst),
    OPTION(COST, true, QUOTA_TAKE, option_cost),
    OPTION(WAIT, true, QUOTA_TAKE, option_wait),
    OPTION(PEEK, false, QUOTA_TAKE, option_peek),
    OPTION(APPROX, false, QUOTA_TAKE, option_approx),
    OPTION(AS, true, QUOTA_TAKE, option_as),
    OPTION(FORCE, false, QUOTA_FORCE, NULL),
    OPTION(PARTIAL, false, QUOTA_PARTIAL, NULL),
    OPTION(BORROW, false, QUOTA_BORROW, NULL),
    OPTION(CREDIT, true, QUOTA_CREDIT, option_credit),
    OPTION(COUNT, true, QUOTA_TAKE, option_count),
    OPTION(FROM, true, QUOTA_TAKE, option_from),
    OPTION(PENALTY, true, QUOTA_TAKE, option_penalty),
    OPTION(WARMUP, true, QUOTA_TAKE, option_warmup),
};

#define N_OPTIONS (sizeof options / sizeof options[0])

const struct option *option_find(struct slice word, unsigned allowed)
{
    for (size_t i = 0; i < N_OPTIONS; i++)
        if ((allowed & options[i].bit) && slice_eq_nocase(word, options[i].name))
            return &options[i];
    return NULL;
}

/* Returns the name of the option; empty if the command does not take it. */
static struct slice allowed_name(const void *arg, size_t i)
{
    const unsigned *allowed = arg;
    return *allowed & options[i].bit ? options[i].name : SLICE("");
}

const struct quota_algorithm *option_algorithm(const struct reading *reading)
{
    bool is_of_part = reading->ask->rule.kind == QUOTA_ALL;
    return quota_algorithm(is_of_part ? reading->part->rule.kind : reading->ask->rule.kind);
}

bool option_unknown(const struct reading *reading, struct slice word)
{
    const struct quota_algorithm *algorithm = option_algorithm(reading);
    unsigned allowed = algorithm->options;
    const char *name = reading->ask->rule.kind == QUOTA_ALL ? algorithm->name : reading->name;
    const struct option *other = option_find(word, ~0U);
    if (other != NULL && reading->seen & other->bit)
        return option_syntax_error(reading, "%s is given twice", other->name.at);
    if (other != NULL)
        return option_syntax_error(reading, "%s is not an option of '%s'", other->name.at, name);
    struct slice near = near_name(word, N_OPTIONS, allowed_name, &allowed);
    if (near.len > 0)
        return option_syntax_error(reading, "unknown option '%.*s' (did you mean %.*s?)",
                                   WHY_SLICE(word), WHY_SLICE(near));
    return option_syntax_error(reading, "unknown option '%.*s'", WHY_SLICE(word));
}

bool option_take(struct reading *reading, const struct option *option)
{
    struct slice value = SLICE("");
    if (option->bit == OPTION_BURST && reading->n_drafts == 0)
        return option_syntax_error(reading, "BURST comes after its rate");
    if (reading->seen & option->bit)
        return option_syntax_error(reading, "%s is given twice", option->name.at);
    if (option->has_value && !argv_next(&reading->walk, &value))
        return option_syntax_error(reading, "%s is the last word: its value is missing",
                                   option->name.at);
    reading->seen |= option->bit;
    if (option->mode != QUOTA_TAKE)
        reading->ask->mode = (uint8_t)option->mode;
    return option->take == NULL || option->take(reading, value);
}

/* ---- combinations ---- */

bool option_agree(const struct reading *reading)
{
    static const unsigned others =
        OPTION_WAIT | OPTION_FORCE | OPTION_PARTIAL | OPTION_BORROW | OPTION_CREDIT;
    unsigned given = reading->seen | reading->before;
    unsigned modes = given & (others | OPTION_PEEK);
    if ((modes & (modes - 1)) != 0)
        return option_error(reading,
                            "at most one of WAIT, PEEK, FORCE, PARTIAL, BORROW and CREDIT");
    if ((given & OPTION_COUNT) && (modes & others))
        return option_error(reading,
                            "COUNT ALL goes with none of WAIT, FORCE, PARTIAL, BORROW and CREDIT");
    if ((given & OPTION_WARMUP) && !(given & OPTION_BORROW))
        return option_error(reading, "WARMUP is for BUCKET with BORROW");
    if ((given & OPTION_WARMUP) && (given & OPTION_PENALTY))
        return option_error(reading, "PENALTY does not go with WARMUP");
    if ((given & OPTION_PENALTY) && (modes & (OPTION_FORCE | OPTION_CREDIT)))
        return option_error(reading,
                            "PENALTY goes with neither FORCE nor CREDIT, which are never limited");
    if ((given & OPTION_COST) && (given & OPTION_CREDIT))
        return option_error(reading, "CREDIT has its own number: leave COST out");
    if ((given & OPTION_PARTIAL) && reading->ask->n_parts > 0)
        return option_error(reading, "PARTIAL is for one key: several are all or nothing");
    return true;
}

void option_next_part(struct reading *reading)
{
    reading->before |= reading->seen;
    reading->seen &= ~(unsigned)(OPTION_COST | OPTION_APPROX | OPTION_BURST);
    reading->n_rates += reading->n_drafts;
    reading->n_drafts = 0;
}

/* True if the debt beyond the burst stays within QUOTA_DEBT_MOST. */
static bool is_payable(const struct decision_request *ask)
{
    bool owes_more = ask->mode == QUOTA_FORCE || ask->mode == QUOTA_BORROW;
    for (unsigned i = 0; owes_more && quota_is_funnel(ask->rule.kind) && i < ask->rule.n_rates;
         i++) {
        const struct quota_rate *rate = &ask->rule.rates[i];
        if ((__int128)ask->cost * rate->step + quota_burst_ns(rate) + ask->warmup_ns >=
            QUOTA_MOST - 1)
            return false;
    }
    return true;
}

bool option_suit(const struct decision_request *ask, char *why, size_t why_size)
{
    if (ask->mode == QUOTA_BORROW && !quota_is_funnel(ask->rule.kind))
        return why_set(why, why_size, "ERR BORROW is for FUNNEL and BUCKET");
    if (ask->is_first && ask->rule.kind != QUOTA_FIXED)
        return why_set(why, why_size, "ERR FROM FIRST is for FIXED");
    if (ask->is_first && quota_has_calendar(&ask->rule))
        return why_set(why, why_size,
                       "ERR FROM FIRST excludes day, week and month, which have fixed starts");
    if (ask->rule.kind == QUOTA_WARM && ask->rule.n_rates > 1)
        return why_set(why, why_size, "ERR WARMUP takes one rate");
    if (!is_payable(ask))
        return why_set(why, why_size,
                       "ERR this COST at this rate takes more than 104 days to drain");
    if (ask->rule.kind != QUOTA_SLIDING)
        return true;
    if (ask->mode == QUOTA_CREDIT && ask->cost > QUOTA_CREDIT_MAX)
        return why_set(why, why_size, "ERR CREDIT of an exact sliding window is at most %d",
                       QUOTA_CREDIT_MAX);
    return ask->cost <= QUOTA_LOG_MAX ||
           why_set(why, why_size,
                   "ERR COST of an exact sliding window is at most %d: use APPROX for more",
                   QUOTA_LOG_MAX);
}

/* Copies options given for all keys into one part. */
static void option_share(const struct decision_request *ask, struct decision_request *part)
{
    part->mode = ask->mode;
    part->counts_all = ask->counts_all;
    part->penalty = ask->penalty;
    part->is_first = ask->is_first && part->rule.kind == QUOTA_FIXED;
    part->cost = ask->mode == QUOTA_CREDIT ? ask->cost : part->cost;
    part->is_peek = ask->is_peek || part->cost == 0;
}

bool option_suit_all(const struct decision_request *ask, struct decision_request *parts, char *why,
                     size_t why_size)
{
    bool has_first = false;
    unsigned n_rates = 0;
    for (unsigned i = 0; i < ask->n_parts; i++) {
        option_share(ask, &parts[i]);
        has_first = has_first || parts[i].is_first;
        n_rates += parts[i].rule.n_rates;
        if (!option_suit(&parts[i], why, why_size))
            return false;
    }
    if (ask->is_first && !has_first)
        return why_set(why, why_size, "ERR FROM FIRST is for FIXED");
    if (n_rates > QUOTA_PARTS_RATES_MAX)
        return why_set(why, why_size, "ERR too many rates: at most %d in one call",
                       QUOTA_PARTS_RATES_MAX);
    return question_work_us(ask) <= QUOTA_WORK_MOST_US ||
           why_set(why, why_size, "ERR the call is too large: use fewer keys, rates or units");
}
