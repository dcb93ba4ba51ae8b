/* The script, the word and the numbers of each algorithm are in its row of algorithms.def. */
#include "quota/question.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/clock.h"
#include "resp/emit.h"

#define STEP_US 2
#define GIVEN_PER_US 2 /* units given back per us; each unit is an entry */

/* Returns the number of look-ups that search a log of this many units. */
static unsigned steps_of(int64_t units)
{
    return units > 1 ? 64 - (unsigned)__builtin_clzll((uint64_t)units - 1) : 0;
}

unsigned question_work_us(const struct decision_request *ask)
{
    const struct quota_algorithm *algorithm = quota_algorithm(ask->rule.kind);
    unsigned work_us = algorithm->work_us;
    for (unsigned i = 0; i < ask->n_parts; i++)
        work_us += question_work_us(&ask->parts[i]);
    for (unsigned i = 0; i < ask->rule.n_rates; i++) {
        work_us += algorithm->rate_us;
        if (ask->rule.kind == QUOTA_SLIDING)
            work_us += STEP_US * steps_of(ask->rule.rates[i].limit);
    }
    if (ask->rule.kind == QUOTA_SLIDING && ask->mode == QUOTA_CREDIT)
        work_us += (unsigned)ask->cost / GIVEN_PER_US;
    return work_us;
}

/* Giving back more than the largest debt has the effect of giving back the largest debt. */
static int64_t inc_of(const struct quota_rate *rate, int64_t units)
{
    __int128 inc = (__int128)units * rate->step;
    return inc <= -QUOTA_MOST ? 1 - QUOTA_MOST : quota_span_ns(rate, units);
}

struct quota_gcra question_gcra(const struct decision_request *ask, unsigned i)
{
    const struct quota_rate *rate = &ask->rule.rates[i];
    int64_t burst = quota_burst_ns(rate), units = quota_charge(ask);
    if (ask->mode == QUOTA_FORCE || ask->mode == QUOTA_CREDIT)
        return (struct quota_gcra){inc_of(rate, units), burst, burst};
    if (ask->mode == QUOTA_BORROW) {
        int64_t inc = quota_span_ns(rate, units);
        return (struct quota_gcra){inc, burst - quota_span_ns(rate, 1) + inc, burst};
    }
    if (units > rate->limit)
        return (struct quota_gcra){burst + 1, burst, burst};
    int64_t room = burst + (int64_t)ask->wait_ns;
    return (struct quota_gcra){quota_span_ns(rate, units),
                               room < QUOTA_MOST ? room : QUOTA_MOST - 1, burst};
}

struct quota_warm question_warm(const struct decision_request *ask)
{
    const struct quota_rate *rate = &ask->rule.rates[0];
    return (struct quota_warm){.inc = quota_span_ns(rate, ask->cost),
                               .most = quota_burst_ns(rate) - quota_span_ns(rate, 1),
                               .warmup = ask->warmup_ns};
}

/* The arguments being written. */
struct wording {
    char *at;
    unsigned n;
    struct slice channel; /* where RELEASE publishes */
};

static void question_put(struct wording *words, struct slice word)
{
    words->at += emit_bulk(words->at, word);
    words->n++;
}

static void question_put_number(struct wording *words, int64_t number)
{
    words->at += emit_bulk_number(words->at, number);
    words->n++;
}

#define LETTERS_MAX (4 + 4 * EMIT_HEADER_MAX) /* letters alone, and letters with a number */

/* A word of letters, some of which have a number behind them: "0ap1000:60000". */
struct letters {
    char text[LETTERS_MAX];
    size_t len;
};

static void add_letter(struct letters *letters, char letter)
{
    letters->text[letters->len++] = letter;
}

static void add_numbered(struct letters *letters, char letter, int64_t number)
{
    /* subtracts the line end */
    letters->len += emit_header(letters->text + letters->len, letter, number) - 2;
}

/* Adds the penalty for a call that is limited, as prelude.lua reads it. */
static void add_penalty(struct letters *letters, const struct decision_request *ask)
{
    if (ask->penalty.first_ms == 0 || ask->is_peek)
        return;
    add_numbered(letters, 'p', ask->penalty.first_ms);
    add_numbered(letters, ':', ask->penalty.longest_ms);
}

static bool may_penalise(const struct decision_request *ask)
{
    bool may = false;
    for (unsigned i = 0; i < decision_request_count(ask); i++)
        may = may || decision_request_at(ask, i)->penalty.first_ms > 0;
    return may && !ask->is_peek;
}

/* True if the call waits in weir. A single funnel reserves its time in Redis. */
static bool tries_again(const struct decision_request *ask)
{
    return ask->wait_ns > 0 && !quota_is_funnel(ask->rule.kind);
}

/* Writes the word "how", as prelude.lua describes it. */
static void put_how(struct wording *words, const struct decision_request *ask)
{
    struct letters how = {.len = 0};
    add_letter(&how, ask->is_peek ? '1' : '0');
    if (quota_is_sure(ask) && !ask->is_peek)
        add_letter(&how, 'f');
    if (ask->counts_all)
        add_letter(&how, 'a');
    if (ask->is_first)
        add_letter(&how, 's');
    if (ask->mode == QUOTA_PARTIAL && !ask->is_peek)
        add_numbered(&how, 'x', ask->cost);
    if (ask->n_parts == 0)
        add_penalty(&how, ask);
    if (tries_again(ask) && may_penalise(ask))
        add_numbered(&how, 'w', (int64_t)(ask->wait_ns / NS_PER_US));
    question_put(words, slice_of(how.text, how.len));
}

/*
 * Writes the arguments behind database, clock and how; for several keys, the arguments for each
 * key.
 */
typedef void put_parameters(const struct decision_request *ask, struct wording *words);

static void put_funnels(const struct decision_request *ask, struct wording *words)
{
    question_put(words, slice_str(quota_algorithm(ask->rule.kind)->word));
    question_put_number(words, ask->rule.n_rates);
    for (unsigned i = 0; i < ask->rule.n_rates; i++) {
        struct quota_gcra gcra = question_gcra(ask, i);
        question_put_number(words, ask->rule.rates[i].step);
        question_put_number(words, gcra.inc);
        question_put_number(words, gcra.room);
        question_put_number(words, gcra.burst);
    }
}

static void put_warm(const struct decision_request *ask, struct wording *words)
{
    const struct quota_rate *rate = &ask->rule.rates[0];
    struct quota_warm warm = question_warm(ask);
    question_put_number(words, rate->step);
    question_put_number(words, warm.inc);
    question_put_number(words, warm.most);
    question_put_number(words, warm.warmup);
}

/* Writes "d1795392000,...": the first letter of the period, and the starts of its windows. */
static void put_calendar(struct wording *words, const struct decision_request *ask,
                         enum calendar calendar)
{
    char text[1 + CALENDAR_BOUNDS * 24];
    int64_t bounds[CALENDAR_BOUNDS];
    calendar_bounds(calendar, ask->rule.zone, ask->unix_s, bounds);
    int len = snprintf(text, sizeof text, "%c", calendar_word(calendar)[0]);
    for (unsigned i = 0; i < CALENDAR_BOUNDS; i++)
        len += snprintf(text + len, sizeof text - (size_t)len, "%s%" PRId64, i > 0 ? "," : "",
                        bounds[i]);
    question_put(words, slice_of(text, (size_t)len));
}

static void put_windows(const struct decision_request *ask, struct wording *words)
{
    question_put_number(words, ask->cost != 0 ? quota_charge(ask) : 1); /* COST 0 only looks */
    question_put_number(words, ask->rule.n_rates);
    for (unsigned i = 0; i < ask->rule.n_rates; i++) {
        const struct quota_rate *rate = &ask->rule.rates[i];
        question_put_number(words, rate->limit);
        if (rate->calendar != CALENDAR_NONE)
            put_calendar(words, ask, (enum calendar)rate->calendar);
        else
            question_put_number(words, rate->step);
    }
}

/* Writes the letter of a part, as all.lua describes it. */
static void put_letter(struct wording *words, const struct decision_request *part)
{
    struct letters word = {.len = 0};
    add_letter(&word, part->cost == 0 ? 'l' : part->is_shadow ? 's' : '-');
    add_penalty(&word, part);
    question_put(words, slice_of(word.text, word.len));
}

static void question_put_parts(const struct decision_request *ask, struct wording *words)
{
    question_put_number(words, ask->n_parts);
    for (unsigned i = 0; i < ask->n_parts; i++) {
        const struct decision_request *part = &ask->parts[i];
        bool is_funnel = quota_is_funnel(part->rule.kind);
        question_put(words,
                     slice_str(is_funnel ? "funnel" : quota_algorithm(part->rule.kind)->name));
        put_letter(words, part);
        (is_funnel ? put_funnels : put_windows)(part, words);
    }
}

static void put_holding(const struct decision_request *ask, struct wording *words)
{
    question_put(words, slice_str(quota_algorithm(ask->rule.kind)->word));
    question_put_number(words, ask->max);
    question_put_number(words, ask->ttl_ms);
    question_put(words, words->channel);
}

size_t question_words(const struct decision_request *ask, unsigned database, struct slice channel,
                      char *out, unsigned *n_words)
{
    static put_parameters *const parameters[FAMILIES] = {
        [FAMILY_FUNNEL] = put_funnels,  [FAMILY_WARM] = put_warm,
        [FAMILY_WINDOW] = put_windows,  [FAMILY_PARTS] = question_put_parts,
        [FAMILY_HOLDING] = put_holding,
    };
    struct wording words = {.at = out, .channel = channel};
    question_put_number(&words, ask->is_unprefixed ? (int64_t)database : 0);
    question_put(&words, SLICE("")); /* empty: Redis' own clock */
    put_how(&words, ask);
    parameters[quota_algorithm(ask->rule.kind)->family](ask, &words);
    *n_words = words.n;
    return (size_t)(words.at - out);
}
