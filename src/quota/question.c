/* Writes questions: which script a kind asks, and by which word, is a row. */
#include "quota/question.h"

#include "resp/emit.h"

#define STEP_US 2

static const struct {
    enum script script;
    const char *word;         /* the tag, or the operation */
    uint8_t work_us, rate_us; /* of a key, and of each rate; of RESET, of each key */
} calls[QUOTA_KINDS] = {
    [QUOTA_FUNNEL] = {SCRIPT_GCRA, "f", 2, 2},
    [QUOTA_BUCKET] = {SCRIPT_GCRA, "b", 2, 2},
    [QUOTA_THROTTLE] = {SCRIPT_GCRA, "", 2, 2},
    [QUOTA_SLIDING] = {SCRIPT_SLIDING, "", 30, 15},
    [QUOTA_APPROX] = {SCRIPT_APPROX, "", 5, 6},
    [QUOTA_FIXED] = {SCRIPT_FIXED, "", 5, 5},
    [QUOTA_ACQUIRE] = {SCRIPT_HOLDERS, "acquire", 20, 0},
    [QUOTA_RENEW] = {SCRIPT_HOLDERS, "renew", 20, 0},
    [QUOTA_RELEASE] = {SCRIPT_HOLDERS, "release", 20, 0},
    [QUOTA_RESET] = {SCRIPT_COUNT, "", 100, 0},
    [QUOTA_CHECK] = {SCRIPT_COUNT, "", 0, 0},
};

/* Look-ups by which a log of so many units is searched. */
static unsigned steps_of(int64_t units)
{
    return units > 1 ? 64 - (unsigned)__builtin_clzll((uint64_t)units - 1) : 0;
}

unsigned quota_ask_work_us(const struct quota_ask *ask)
{
    unsigned work_us = calls[ask->rule.kind].work_us;
    for (unsigned i = 0; i < ask->rule.n_rates; i++) {
        work_us += calls[ask->rule.kind].rate_us;
        if (ask->rule.kind == QUOTA_SLIDING)
            work_us += STEP_US * steps_of(ask->rule.rates[i].limit);
    }
    return work_us;
}

enum script quota_ask_script(const struct quota_ask *ask)
{
    return calls[ask->rule.kind].script;
}

struct quota_gcra quota_ask_gcra(const struct quota_ask *ask, unsigned i)
{
    const struct quota_rate *rate = &ask->rule.rates[i];
    int64_t burst = quota_burst_ns(rate);
    if (ask->cost > rate->limit)
        return (struct quota_gcra){burst + 1, burst, burst};
    int64_t room = burst + (int64_t)ask->wait_ns;
    return (struct quota_gcra){ask->cost * rate->step, room < QUOTA_MOST ? room : QUOTA_MOST - 1, burst};
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

static void put_parameters(const struct quota_ask *ask, struct slice channel, struct words *words)
{
    bool is_funnel = quota_is_funnel(ask->rule.kind);
    if (quota_ask_script(ask) == SCRIPT_HOLDERS) {
        put(words, slice_str(calls[ask->rule.kind].word));
        put_number(words, ask->max);
        put_number(words, ask->ttl_ms);
        put(words, channel);
        return;
    }
    if (is_funnel)
        put(words, slice_str(calls[ask->rule.kind].word));
    else
        put_number(words, ask->cost);
    put_number(words, ask->rule.n_rates);
    for (unsigned i = 0; i < ask->rule.n_rates; i++) {
        if (is_funnel) {
            struct quota_gcra gcra = quota_ask_gcra(ask, i);
            put_number(words, gcra.inc);
            put_number(words, gcra.room);
            put_number(words, gcra.burst);
        } else {
            put_number(words, ask->rule.rates[i].limit);
            put_number(words, ask->rule.rates[i].step);
        }
    }
}

size_t quota_ask_words(const struct quota_ask *ask, unsigned database, struct slice channel, char *out,
                       unsigned *n_words)
{
    struct words words = {.at = out};
    put_number(&words, ask->is_raw ? (int64_t)database : 0);
    put(&words, SLICE("")); /* Redis' own clock */
    put_number(&words, ask->is_peek);
    put_parameters(ask, channel, &words);
    *n_words = words.n;
    return (size_t)(words.at - out);
}
