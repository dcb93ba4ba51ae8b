/* Writes questions: which script a kind asks, by which word, and with which numbers, is in its row. */
#include "quota/question.h"

#include "resp/emit.h"

#define STEP_US 2

/* Look-ups by which a log of so many units is searched. */
static unsigned steps_of(int64_t units)
{
    return units > 1 ? 64 - (unsigned)__builtin_clzll((uint64_t)units - 1) : 0;
}

unsigned quota_ask_work_us(const struct quota_ask *ask)
{
    const struct quota_algorithm *algorithm = quota_algorithm(ask->rule.kind);
    unsigned work_us = algorithm->work_us;
    for (unsigned i = 0; i < ask->rule.n_rates; i++) {
        work_us += algorithm->rate_us;
        if (ask->rule.kind == QUOTA_SLIDING)
            work_us += STEP_US * steps_of(ask->rule.rates[i].limit);
    }
    return work_us;
}

struct quota_gcra quota_ask_gcra(const struct quota_ask *ask, unsigned i)
{
    const struct quota_rate *rate = &ask->rule.rates[i];
    int64_t burst = quota_burst_ns(rate);
    if (ask->cost > rate->limit)
        return (struct quota_gcra){burst + 1, burst, burst};
    int64_t room = burst + (int64_t)ask->wait_ns;
    return (struct quota_gcra){quota_span_ns(rate, ask->cost), room < QUOTA_MOST ? room : QUOTA_MOST - 1, burst};
}

struct words {
    char *at;
    unsigned n;
};

static void put(struct words *words, struct slice word)
{
    words->at += emit_header(words->at, '$', (int64_t)word.len);
    if (word.len > 0)
        memcpy(words->at, word.at, word.len);
    words->at += word.len;
    memcpy(words->at, "\r\n", 2);
    words->at += 2;
    words->n++;
}

/* The digits are written as a header, whose type byte and line end are left out. */
static void put_number(struct words *words, int64_t number)
{
    char digits[EMIT_HEADER_MAX];
    size_t len = emit_header(digits, ':', number);
    put(words, slice_of(digits + 1, len - 3));
}

/* What a script is told besides database, clock and peek. */
typedef void put_parameters(const struct quota_ask *ask, struct slice channel, struct words *words);

static void put_funnels(const struct quota_ask *ask, struct slice channel, struct words *words)
{
    (void)channel;
    put(words, slice_str(quota_algorithm(ask->rule.kind)->word));
    put_number(words, ask->rule.n_rates);
    for (unsigned i = 0; i < ask->rule.n_rates; i++) {
        struct quota_gcra gcra = quota_ask_gcra(ask, i);
        put_number(words, ask->rule.rates[i].step);
        put_number(words, gcra.inc);
        put_number(words, gcra.room);
        put_number(words, gcra.burst);
    }
}

static void put_windows(const struct quota_ask *ask, struct slice channel, struct words *words)
{
    (void)channel;
    put_number(words, ask->cost > 0 ? ask->cost : 1); /* what is asked with COST 0 is a look */
    put_number(words, ask->rule.n_rates);
    for (unsigned i = 0; i < ask->rule.n_rates; i++) {
        put_number(words, ask->rule.rates[i].limit);
        put_number(words, ask->rule.rates[i].step);
    }
}

static void put_holding(const struct quota_ask *ask, struct slice channel, struct words *words)
{
    put(words, slice_str(quota_algorithm(ask->rule.kind)->word));
    put_number(words, ask->max);
    put_number(words, ask->ttl_ms);
    put(words, channel);
}

size_t quota_ask_words(const struct quota_ask *ask, unsigned database, struct slice channel, char *out,
                       unsigned *n_words)
{
    static put_parameters *const parameters[FAMILIES] = {
        [FAMILY_FUNNEL] = put_funnels,
        [FAMILY_WINDOW] = put_windows,
        [FAMILY_HOLDING] = put_holding,
    };
    struct words words = {.at = out};
    put_number(&words, ask->is_raw ? (int64_t)database : 0);
    put(&words, SLICE("")); /* Redis' own clock */
    put_number(&words, ask->is_peek);
    parameters[quota_algorithm(ask->rule.kind)->family](ask, channel, &words);
    *n_words = words.n;
    return (size_t)(words.at - out);
}
