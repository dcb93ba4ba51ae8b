#include "tests/sim/exact_say.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "tests/sim/run.h"

#define DAY_US INT64_C(86400000000)
#define NS_PER_MS 1000000

/* ---- named limits ---- */

struct named_limit {
    const char *name, *lines;
    enum exact_kind kind;
    struct exact_rate rates[EXACT_RATES];
    unsigned n_rates;
    int64_t first_ms, longest_ms;
    bool is_shadow;
    bool is_local; /* weir counts it while Redis is away */
};

static const struct named_limit limits[] = {
    {"door",
     "[limit door]\nfunnel = 5/100ms burst 3\n",
     EXACT_FUNNEL,
     {{5, 100000, 3, 0}},
     1,
     0,
     0,
     false,
     false},
    {"mail",
     "[limit mail]\nsliding = 4/200ms, 10/2s\nwhen-down = local\n",
     EXACT_SLIDING,
     {{4, 200000, 4, 0}, {10, 2000000, 10, 0}},
     2,
     0,
     0,
     false,
     true},
    {"quota",
     "[limit quota]\nfixed = 9/day, 3/200ms\nwhen-down = local\n",
     EXACT_FIXED,
     {{9, 0, 9, 'd'}, {3, 200000, 3, 0}},
     2,
     0,
     0,
     false,
     true},
    {"rough",
     "[limit rough]\napprox = 6/s\nwhen-down = deny\n",
     EXACT_APPROX,
     {{6, 1000000, 6, 0}},
     1,
     0,
     0,
     false,
     false},
    {"tokens",
     "[limit tokens]\nbucket = 0.5/ms burst 4, 20/s\nwhen-down = local\n",
     EXACT_BUCKET,
     {{1, 2000, 4, 0}, {20, 1000000, 20, 0}},
     2,
     0,
     0,
     false,
     true},
    {"strict",
     "[limit strict]\nsliding = 2/100ms\npenalty = 20ms..300ms\nwhen-down = local\n",
     EXACT_SLIDING,
     {{2, 100000, 2, 0}},
     1,
     20,
     300,
     false,
     true},
    {"shy",
     "[limit shy]\nfunnel = 2/500ms\nover = shadow\nwhen-down = allow\n",
     EXACT_FUNNEL,
     {{2, 500000, 2, 0}},
     1,
     0,
     0,
     true,
     false},
};
#define N_LIMITS (sizeof limits / sizeof limits[0])

const char *named_limit_lines(unsigned i)
{
    return i < N_LIMITS ? limits[i].lines : NULL;
}

void asked_key_draw(struct asked_key *key, const char *config, uint64_t dice_state)
{
    uint64_t state = dice_state;
    key->kind = (enum exact_kind)(1 + dice_below(&state, EXACT_SLIDING));
    key->is_punished = key->kind != EXACT_WARM && dice_below(&state, 4) == 0;
    key->named = NULL;
    const struct named_limit *named = &limits[dice_below(&state, N_LIMITS)];
    if (dice_below(&state, 3) > 0 || strstr(config, named->lines) == NULL)
        return;
    key->named = named;
    key->kind = named->kind;
    key->is_punished = named->first_ms > 0;
}

static const char *const algorithms[] = {"",      "FUNNEL", "BUCKET", "BUCKET",
                                         "FIXED", "APPROX", "SLIDING"};

unsigned asked_key_algorithm(const struct asked_key *key, char words[2][SAID_ROOM])
{
    snprintf(words[0], SAID_ROOM, "%s", key->named != NULL ? "CHECK" : algorithms[key->kind]);
    snprintf(words[1], SAID_ROOM, "%s", key->named != NULL ? key->named->name : "");
    return key->named != NULL ? 2 : 1;
}

bool asked_key_is_shadow(const struct asked_key *key)
{
    return key->named != NULL && key->named->is_shadow;
}

bool asked_key_is_local(const struct asked_key *key)
{
    return key->named != NULL && key->named->is_local;
}

unsigned asked_key_rates(const struct asked_key *key, const struct exact_rate **all)
{
    *all = key->named->rates;
    return key->named->n_rates;
}

/* ---- words ---- */

__attribute__((format(printf, 2, 3))) static void say(struct said *said, const char *format, ...)
{
    va_list args;
    if (said->n_words == SAID_WORDS)
        return;
    va_start(args, format);
    vsnprintf(said->words[said->n_words++], SAID_ROOM, format, args);
    va_end(args);
}

static bool draws(uint64_t *state, unsigned of)
{
    return dice_below(state, of) == 0;
}

static const struct {
    const char *text;
    int64_t count, period_us;
    char letter;
} rates[] = {
    {"3/50ms", 3, 50000, 0},   {"20/s", 20, 1000000, 0},     {"7/100ms", 7, 100000, 0},
    {"5/10s", 5, 10000000, 0}, {"2/d", 2, DAY_US, 0},        {"0.3/s", 3, 10000000, 0},
    {"60/m", 60, 60000000, 0}, {"0.25k/s", 250, 1000000, 0}, {"1/ms", 1, 1000, 0},
    {"4/day", 4, 0, 'd'},      {"9/week", 9, 0, 'w'},        {"6/month", 6, 0, 'm'},
};
#define N_RATES (sizeof rates / sizeof rates[0])
#define N_CALENDAR 3

static void draw_rates(struct said *said, struct exact_call *call, uint64_t *state)
{
    bool has_calendar = call->kind == EXACT_FIXED && !call->is_from_first,
         is_funnel = call->kind <= EXACT_WARM;
    call->n_rates = draws(state, 3) && call->kind != EXACT_WARM
                        ? 2 + (unsigned)dice_below(state, EXACT_RATES - 1)
                        : 1;
    for (unsigned r = 0; r < call->n_rates; r++) {
        size_t which = (size_t)dice_below(state, has_calendar ? N_RATES : N_RATES - N_CALENDAR);
        call->rates[r] = (struct exact_rate){rates[which].count, rates[which].period_us,
                                             rates[which].count, rates[which].letter};
        say(said, "%s", rates[which].text);
        if (!is_funnel || draws(state, 2))
            continue;
        call->rates[r].burst = 1 + (int64_t)dice_below(state, draws(state, 4) ? 40 : 5);
        say(said, "BURST");
        say(said, "%d", (int)call->rates[r].burst);
    }
}

static void name_part(struct said *said, struct exact_call *call, const struct asked_key *key,
                      uint64_t *state)
{
    call->kind = key->kind;
    if (key->named != NULL) {
        memcpy(call->rates, key->named->rates, sizeof call->rates);
        call->n_rates = key->named->n_rates;
        call->first_ms = key->named->first_ms;
        call->longest_ms = key->named->longest_ms;
        say(said, "%s", key->named->name);
        say(said, "%s", key->name);
        said->is_shadow |= key->named->is_shadow;
        return;
    }
    say(said, "%s", key->kind == EXACT_APPROX ? "SLIDING" : algorithms[key->kind]);
    say(said, "%s", key->name);
    draw_rates(said, call, state);
    if (key->kind == EXACT_APPROX)
        say(said, "APPROX");
}

static void draw_cost(struct said *said, struct exact_call *call, uint64_t *state)
{
    static const int64_t costs[] = {2, 3, 0, 5, 25};
    call->cost = 1;
    if (call->mode == EXACT_CREDIT || !draws(state, 3))
        return;
    call->cost = costs[dice_below(state, sizeof costs / sizeof costs[0])];
    if (call->mode == EXACT_PARTIAL && call->cost == 0)
        call->cost = 4;
    say(said, "COST");
    say(said, "%d", (int)call->cost);
}

/* Options that hold for the whole call. */
struct options {
    enum exact_mode mode;
    int64_t credit, wait_ms, warmup_ms, first_ms, longest_ms;
    bool is_peek, counts_all, is_from_first;
};

static struct options draw_options(const struct asked_key *const *keys, unsigned n, bool is_several,
                                   uint64_t *state)
{
    struct options options = {0};
    bool are_funnels = true, has_fixed = false, is_punished = false, has_named = false;
    for (unsigned i = 0; i < n; i++) {
        are_funnels &= keys[i]->kind <= EXACT_WARM;
        has_fixed |= keys[i]->kind == EXACT_FIXED;
        is_punished |= keys[i]->is_punished;
        has_named |= keys[i]->named != NULL;
    }
    options.is_from_first = has_fixed && !has_named && draws(state, 4);
    if (keys[0]->kind == EXACT_WARM) {
        options.mode = EXACT_BORROW;
        options.warmup_ms = 50 + 150 * (int64_t)dice_below(state, 3);
        return options;
    }
    switch (dice_below(state, 12)) {
    case 0:
        options.is_peek = true;
        break;
    case 1:
        options.mode = EXACT_FORCE;
        break;
    case 2:
        options.mode = is_several ? EXACT_TAKE : EXACT_PARTIAL;
        break;
    case 3:
        options.mode = are_funnels ? EXACT_BORROW : EXACT_TAKE;
        break;
    case 4:
        options.mode = run.plan.gives_back ? EXACT_CREDIT : EXACT_FORCE;
        options.credit = 1 + (int64_t)dice_below(state, 4);
        break;
    case 5:
        options.counts_all = true;
        options.is_peek = draws(state, 4);
        break;
    case 6:
    case 7:
        options.wait_ms =
            is_punished ? 0 : 1 + (int64_t)dice_below(state, draws(state, 2) ? 20 : 400);
        break;
    default:
        break;
    }
    if (!is_punished || has_named || options.mode == EXACT_FORCE || options.mode == EXACT_CREDIT ||
        draws(state, 2))
        return options;
    options.first_ms = 1 + (int64_t)dice_below(state, 100);
    options.longest_ms =
        draws(state, 2) ? options.first_ms : options.first_ms * (1 + (int64_t)dice_below(state, 8));
    return options;
}

static void say_options(struct said *said, const struct options *options)
{
    static const char *const modes[] = {NULL, "FORCE", "PARTIAL", "BORROW", NULL};
    if (modes[options->mode] != NULL)
        say(said, "%s", modes[options->mode]);
    if (options->mode == EXACT_CREDIT) {
        say(said, "CREDIT");
        say(said, "%d", (int)options->credit);
    }
    if (options->warmup_ms > 0) {
        say(said, "WARMUP");
        say(said, "%dms", (int)options->warmup_ms);
    }
    if (options->is_peek)
        say(said, "PEEK");
    if (options->counts_all) {
        say(said, "count");
        say(said, "All");
    }
    if (options->is_from_first) {
        say(said, "FROM");
        say(said, "FIRST");
    }
    if (options->wait_ms > 0) {
        say(said, "WAIT");
        say(said, "%d", (int)options->wait_ms);
    }
    if (options->first_ms > 0) {
        say(said, "PENALTY");
        say(said, options->first_ms == options->longest_ms ? "%dms" : "%dms..%dms",
            (int)options->first_ms, (int)options->longest_ms);
    }
    if (said->form != FORM_ANY) {
        say(said, "AS");
        say(said, "%s", said->form == FORM_ARRAY ? "ARRAY" : "MAP");
    }
}

static void apply(struct exact_call *call, const struct options *options)
{
    call->mode = options->mode;
    call->is_peek = options->is_peek;
    call->counts_all = options->counts_all;
    call->is_from_first = options->is_from_first && call->kind == EXACT_FIXED;
    call->warmup_ns = options->warmup_ms * NS_PER_MS;
    if (options->first_ms > 0) {
        call->first_ms = options->first_ms;
        call->longest_ms = options->longest_ms;
    }
    if (call->mode == EXACT_FORCE || call->mode == EXACT_CREDIT)
        call->first_ms = call->longest_ms = 0;
}

void said_make(struct said *said, const struct asked_key *const *keys, unsigned n_keys,
               uint64_t dice_state)
{
    uint64_t state = dice_state;
    bool is_named = keys[0]->named != NULL;
    *said = (struct said){.n_parts = n_keys, .form = (enum said_form)dice_below(&state, 3)};
    said->is_several =
        n_keys > 1 || (!is_named && keys[0]->kind != EXACT_WARM && draws(&state, 12));
    const struct options options = draw_options(keys, n_keys, said->is_several, &state);
    say(said, "LIMIT");
    if (is_named)
        say(said, "CHECK");
    else if (said->is_several)
        say(said, "ALL");
    for (unsigned i = 0; i < n_keys; i++) {
        struct exact_call *call = &said->calls[i];
        if (i > 0)
            say(said, "AND");
        call->kind = keys[i]->kind;
        apply(call, &options);
        name_part(said, call, keys[i], &state);
        apply(call, &options);
        draw_cost(said, call, &state);
        if (call->mode == EXACT_CREDIT)
            call->cost = options.credit;
    }
    /* a call that cannot be limited does not wait */
    said->wait_ms = said->is_shadow ? 0 : options.wait_ms;
    if (!said->is_several && keys[0]->kind <= EXACT_BUCKET)
        said->calls[0].wait_ms = said->wait_ms;
    say_options(said, &options);
}

/* ---- replies ---- */

static bool is_name(const struct reply *reply, const char *name)
{
    return (reply->type == '$' || reply->type == '+') && slice_eq(reply->text, slice_str(name));
}

bool said_read(const struct said *said, const struct reply *reply, bool is_resp3,
               int64_t fields[EXACT_FIELDS], struct reply *refused_by)
{
    static const char *const names[] = {"limited",        "limit",          "remaining",
                                        "retry_after_ms", "reset_after_ms", "granted"};
    unsigned n = said->calls[0].mode == EXACT_PARTIAL ? 6 : 5, all = n + said->is_several;
    bool is_map = said->form == FORM_MAP || (said->form == FORM_ANY && is_resp3);
    struct slice inside = reply->inside;
    struct reply one;
    if (reply->type != (is_map && is_resp3 ? '%' : '*') ||
        reply->number != (int64_t)(is_map ? 2 * all : all))
        return false;
    for (unsigned i = 0; i < all; i++) {
        if (is_map &&
            (!reply_next(&inside, &one) || !is_name(&one, i < n ? names[i] : "refused_by")))
            return false;
        if (!reply_next(&inside, &one) || (i < n && one.type != ':'))
            return false;
        if (i < n)
            fields[i] = one.number;
        else
            *refused_by = one;
    }
    return true;
}
