/*
 * Parses the words of LIMIT commands: each command is a row.
 *
 * Numbers are bounded here and in option.c only. The bounds keep sums from overflowing in weir, and
 * from losing digits in Lua.
 */
#include "quota/request_parse.h"

#include "base/clock.h"
#include "base/num.h"
#include "base/why.h"
#include "limit/policy/rate.h"
#include "quota/option.h"
#include "resp/plain.h"

#define TTL_MOST_MS ((int64_t)(RATE_LONGEST_NS / NS_PER_MS))
#define MEMO_WORDS 2 /* words of a head: LIMIT FUNNEL */

/* ---- errors ---- */

static bool wrong_arity(const struct reading *reading)
{
    return option_error(reading, "wrong number of arguments for '%s' command", reading->name);
}

/* ---- words ---- */

static bool request_parse_take(struct reading *reading, struct slice *word)
{
    return argv_next(&reading->walk, word) || wrong_arity(reading);
}

static bool request_parse_take_key(struct reading *reading, struct slice *key)
{
    if (!request_parse_take(reading, key))
        return false;
    return key->len <= QUOTA_KEY_MAX ||
           option_error(reading, "the key is too long: at most %d bytes", QUOTA_KEY_MAX);
}

static bool take_ttl(struct reading *reading)
{
    struct slice word;
    if (!request_parse_take(reading, &word) ||
        !option_parse_within(reading, word, INT64_MIN, INT64_MAX, &reading->ask->ttl_ms))
        return false;
    if (reading->ask->ttl_ms < 1 || reading->ask->ttl_ms > TTL_MOST_MS)
        return option_error(reading, "invalid expire time in '%s' command", reading->name);
    return true;
}

/* ---- options and rates ---- */

static bool take_rate(struct reading *reading, struct slice word)
{
    char what[160];
    if (reading->n_rates + reading->n_drafts == QUOTA_PARTS_RATES_MAX)
        return option_error(reading, "too many rates: at most %d in one call",
                            QUOTA_PARTS_RATES_MAX);
    if (reading->n_drafts == QUOTA_RATES_MAX)
        return option_error(reading, "too many rates: at most %d", QUOTA_RATES_MAX);
    if (!rate_parse(word, RATE_OF_CALENDAR, &reading->drafts[reading->n_drafts], what, sizeof what))
        return option_error(reading, "%s", what);
    reading->n_drafts++;
    reading->seen &= ~(unsigned)OPTION_BURST;
    return true;
}

/* True if AND and further keys may follow. */
static bool request_parse_has_parts(uint8_t kind)
{
    return kind == QUOTA_CHECK || kind == QUOTA_ALL;
}

static bool has_slash(struct slice word)
{
    return word.len > 0 && memchr(word.at, '/', word.len) != NULL;
}

/*
 * Reads the options that the algorithm takes, and rates if it has any, to the end or to AND.
 * *has_more: another key follows.
 */
static bool take_options(struct reading *reading, bool with_rates, bool *has_more)
{
    struct slice word;
    unsigned allowed = option_algorithm(reading)->options;
    *has_more = false;
    while (argv_next(&reading->walk, &word)) {
        if (request_parse_has_parts(reading->ask->rule.kind) &&
            slice_eq_nocase(word, SLICE("and"))) {
            *has_more = true;
            return true;
        }
        bool is_slashed = has_slash(word); /* no option has a slash */
        const struct option *option = is_slashed ? NULL : option_find(word, allowed);
        bool is_rate = with_rates && (is_slashed || reading->n_drafts == 0);
        bool is_taken = option != NULL ? option_take(reading, option)
                        : is_rate      ? take_rate(reading, word)
                                       : option_unknown(reading, word);
        if (!is_taken)
            return false;
    }
    return true;
}

/* Called after the last option. */
static bool end_options(const struct reading *reading)
{
    reading->ask->is_peek |= reading->ask->cost == 0;
    return option_agree(reading);
}

static bool request_parse_take_rest(struct reading *reading, bool with_rates)
{
    bool has_more;
    return take_options(reading, with_rates, &has_more) && end_options(reading);
}

/* ---- commands ---- */

/* Adds the rates of a part to the rule of the part. */
static bool make_rule(struct reading *reading)
{
    char what[160];
    if (reading->n_drafts == 0)
        return option_syntax_error(reading,
                                   "a rate is missing: write COUNT/PERIOD, like 1000/s or 5/60s");
    for (unsigned i = 0; i < reading->n_drafts; i++)
        if (!quota_rule_add(&reading->part->rule, &reading->drafts[i], what, sizeof what))
            return option_error(reading, "%s", what);
    return true;
}

static bool read_rated(struct reading *reading)
{
    if (!request_parse_take_key(reading, &reading->ask->key))
        return false;
    if (reading->walk.left == 0)
        return wrong_arity(reading);
    return request_parse_take_rest(reading, true) && make_rule(reading) &&
           option_suit(reading->ask, reading->why, reading->why_size);
}

/* ---- several keys ---- */

/* Begins another part: the options of a part now belong to the new part. */
static bool add_part(struct reading *reading)
{
    if (reading->ask->n_parts == QUOTA_PARTS_MAX)
        return option_error(reading, "too many keys: at most %d", QUOTA_PARTS_MAX);
    option_next_part(reading);
    reading->ask->parts = reading->parts;
    reading->part = &reading->parts[reading->ask->n_parts++];
    *reading->part = (struct decision_request){.cost = 1};
    return true;
}

static bool take_named(struct reading *reading)
{
    return request_parse_take(reading, &reading->part->name) &&
           request_parse_take_key(reading, &reading->part->key);
}

static bool is_twice(const struct decision_request *ask)
{
    for (unsigned i = 0; i < ask->n_parts; i++)
        for (unsigned j = 0; j < i; j++)
            if (slice_eq(ask->parts[i].key, ask->parts[j].key) &&
                slice_eq_nocase(ask->parts[i].name, ask->parts[j].name))
                return true;
    return false;
}

/* Called after the last key. */
static bool end_parts(struct reading *reading)
{
    struct decision_request *ask = reading->ask;
    bool is_look = true;
    for (unsigned i = 0; i < ask->n_parts; i++)
        is_look = is_look && reading->parts[i].cost == 0;
    ask->is_peek |= is_look;
    ask->rule.kind = QUOTA_ALL;
    return !is_twice(ask) ||
           option_error(reading, "a key is given twice: give all its rates at once");
}

/* Turns the call on one key into the first part of a call on several keys. */
static void request_parse_keep_first(struct reading *reading)
{
    struct decision_request *ask = reading->ask;
    bool is_credit = ask->mode == QUOTA_CREDIT; /* the number of CREDIT belongs to the whole call */
    reading->parts[0] = (struct decision_request){
        .name = ask->name, .key = ask->key, .cost = is_credit ? 1 : ask->cost};
    ask->n_parts = 1;
    ask->is_named = true;
    ask->cost = is_credit ? ask->cost : 1;
}

static bool read_check(struct reading *reading)
{
    bool has_more;
    if (!take_named(reading) || !take_options(reading, false, &has_more))
        return false;
    if (has_more)
        request_parse_keep_first(reading);
    while (has_more)
        if (!add_part(reading) || !take_named(reading) || !take_options(reading, false, &has_more))
            return false;
    return end_options(reading) && (reading->ask->n_parts == 0 || end_parts(reading));
}

/* Reads the algorithm of a part, which must have a command. */
static bool take_algorithm(struct reading *reading)
{
    struct slice word;
    if (!request_parse_take(reading, &word))
        return false;
    uint8_t kind = (uint8_t)quota_named_kind(word);
    reading->part->rule.kind = kind;
    return (kind != QUOTA_KINDS && kind != QUOTA_APPROX) ||
           option_error(reading, "'%.*s' is neither FUNNEL nor BUCKET nor SLIDING nor FIXED",
                        WHY_SLICE(word));
}

static bool read_all(struct reading *reading)
{
    bool has_more;
    do {
        if (reading->walk.left < 3)
            return wrong_arity(reading);
        if (!add_part(reading) || !take_algorithm(reading) ||
            !request_parse_take_key(reading, &reading->part->key))
            return false;
        if (!take_options(reading, true, &has_more) || !make_rule(reading))
            return false;
    } while (has_more);
    return end_options(reading) && end_parts(reading) &&
           option_suit_all(reading->ask, reading->parts, reading->why, reading->why_size);
}

/* Parses a number as Rust parses an i64: either sign, leading zeros. */
static bool parse_cell(struct slice word, int64_t *number)
{
    bool is_negative = word.len > 0 && word.at[0] == '-';
    size_t i = word.len > 0 && (word.at[0] == '-' || word.at[0] == '+');
    int64_t value = 0;
    if (i == word.len)
        return false;
    for (; i < word.len; i++) {
        int digit = word.at[i] - '0';
        if (digit < 0 || digit > 9 || __builtin_mul_overflow(value, INT64_C(10), &value) ||
            __builtin_add_overflow(value, is_negative ? -digit : digit, &value))
            return false;
    }
    *number = value;
    return true;
}

static bool is_exact(__int128 number)
{
    return number > -QUOTA_MOST && number < QUOTA_MOST - 1;
}

/*
 * Makes a rule of redis-cell's numbers. redis-cell computes without checking ranges, so weir checks
 * the ranges here.
 */
static bool make_cell(struct reading *reading, const int64_t numbers[4])
{
    int64_t max_burst = numbers[0], count = numbers[1], period_s = numbers[2],
            quantity = numbers[3];
    if (count == 0 || period_s == 0)
        return option_error(reading, "zero rates are not supported");
    if (max_burst < -1 || count < 0 || period_s < 0)
        return option_no_integer(reading);
    __int128 interval_ns = (__int128)period_s * (int64_t)NS_PER_S / count;
    if (interval_ns == 0)
        return option_error(reading, "zero rates are not supported");
    if (!is_exact(interval_ns) || !is_exact(interval_ns * ((__int128)max_burst + 1)) ||
        !is_exact(interval_ns * quantity))
        return option_error(
            reading, "value is out of range: at this rate draining takes more than 104 days");
    reading->ask->rule.rates[0] =
        (struct quota_rate){.limit = max_burst + 1, .step = (int64_t)interval_ns};
    reading->ask->rule.n_rates = 1;
    reading->ask->cost = quantity;
    reading->ask->is_peek = quantity == 0;
    return true;
}

static bool read_throttle(struct reading *reading)
{
    int64_t numbers[4] = {[3] = 1};
    struct slice words[4];
    unsigned n = 0;
    if (!request_parse_take_key(reading, &reading->ask->key))
        return false;
    while (n < 4 && argv_next(&reading->walk, &words[n]))
        n++;
    if (n < 3 || reading->walk.left > 0)
        return wrong_arity(reading);
    for (unsigned i = 0; i < n; i++)
        if (!parse_cell(words[i], &numbers[i]))
            return option_no_integer(reading);
    return make_cell(reading, numbers);
}

static bool read_acquire(struct reading *reading)
{
    struct slice word;
    return request_parse_take_key(reading, &reading->ask->key) &&
           request_parse_take(reading, &word) &&
           option_parse_within(reading, word, 1, QUOTA_HOLDERS_MAX, &reading->ask->max) &&
           take_ttl(reading) && request_parse_take_rest(reading, false);
}

static bool ends(const struct reading *reading)
{
    return reading->walk.left == 0 || wrong_arity(reading);
}

static bool read_renew(struct reading *reading)
{
    return request_parse_take_key(reading, &reading->ask->key) &&
           request_parse_take(reading, &reading->ask->token) && take_ttl(reading) && ends(reading);
}

static bool read_release(struct reading *reading)
{
    return request_parse_take_key(reading, &reading->ask->key) &&
           request_parse_take(reading, &reading->ask->token) && ends(reading);
}

/* Reads the name of an algorithm with penalties, and sets its letter. */
static bool take_letter(struct reading *reading, struct slice word)
{
    enum quota_kind kind = quota_named_kind(word);
    if (kind != QUOTA_KINDS) {
        reading->ask->max = quota_letter((uint8_t)kind);
        return true;
    }
    if (slice_eq_nocase(word, slice_str(quota_algorithm(QUOTA_THROTTLE)->name)))
        return option_error(reading, "THROTTLE has no penalties: use another algorithm");
    return option_error(
        reading,
        "unknown algorithm '%.*s': write FUNNEL, BUCKET, SLIDING, APPROX, FIXED, or CHECK and a name",
        WHY_SLICE(word));
}

/* BAN and UNBAN. */
static bool read_ban(struct reading *reading)
{
    struct slice word;
    char what[160];
    bool is_ban = reading->ask->rule.kind == QUOTA_BAN;
    if (reading->walk.left < (is_ban ? 3 : 2) || !request_parse_take(reading, &word))
        return wrong_arity(reading);
    bool is_named = slice_eq_nocase(word, slice_str(quota_algorithm(QUOTA_CHECK)->name));
    if (!(is_named ? request_parse_take(reading, &reading->ask->name)
                   : take_letter(reading, word)) ||
        !request_parse_take_key(reading, &reading->ask->key))
        return false;
    if (!is_ban)
        return ends(reading);
    return request_parse_take(reading, &word) && ends(reading) &&
           (penalty_parse_time(word, &reading->ask->ttl_ms, what, sizeof what) ||
            option_error(reading, "%s", what));
}

static bool read_reset(struct reading *reading)
{
    struct slice key;
    reading->ask->keys = reading->walk;
    if (reading->walk.left > QUOTA_KEYS_MAX)
        return option_error(reading, "too many keys: at most %d", QUOTA_KEYS_MAX);
    if (!request_parse_take_key(reading, &reading->ask->key))
        return false;
    while (reading->walk.left > 0)
        if (!request_parse_take_key(reading, &key))
            return false;
    return true;
}

#define read_none NULL

static const struct form {
    const char *name;
    uint8_t kind;
    uint8_t n_names; /* words in front of the arguments */
    bool (*read)(struct reading *reading);
} forms[] = {
#define ALGORITHM(id, name, command, ...) {"limit|" name, QUOTA_##id, 2, read_##command},
#include "quota/algorithms.def"
#undef ALGORITHM
    {"cl.throttle", QUOTA_THROTTLE, 1, read_throttle},
};

static const struct form *request_parse_find_form(struct slice name)
{
    for (size_t i = 0; i < sizeof forms / sizeof forms[0]; i++)
        if (forms[i].read != NULL && slice_eq_nocase(name, slice_str(forms[i].name)))
            return &forms[i];
    return NULL;
}

bool decision_request_parse(struct decision_request *ask, struct decision_request *parts,
                            struct slice name, struct slice request, char *why, size_t why_size)
{
    const struct form *form = request_parse_find_form(name);
    struct slice word;
    if (form == NULL)
        return why_set(why, why_size, "ERR unknown command '%.*s'", WHY_SLICE(name));
    *ask = (struct decision_request){
        .rule = {.kind = form->kind}, .cost = 1, .is_cell = form->n_names == 1};
    struct reading reading = {.ask = ask,
                              .part = ask,
                              .parts = parts,
                              .name = form->name,
                              .why = why,
                              .why_size = why_size};
    argv_walk_init(&reading.walk, request);
    for (unsigned i = 0; i < form->n_names; i++)
        if (!request_parse_take(&reading, &word))
            return false;
    return form->read(&reading);
}

bool decision_request_resolve(struct decision_request *ask, struct decision_request *parts,
                              const struct quota_rule *rule, char *why, size_t why_size)
{
    if (ask->n_parts > 0)
        return option_suit_all(ask, parts, why, why_size);
    if (ask->rule.kind == QUOTA_BAN || ask->rule.kind == QUOTA_UNBAN) {
        ask->max = quota_letter(rule->kind);
        return true;
    }
    ask->rule = *rule;
    return option_suit(ask, why, why_size);
}

/* ---- requests that have been parsed before ---- */

struct pieces {
    struct slice head;
    struct slice key;
    struct slice tail;
};

/* Cuts the request into its pieces. False: the request is too long or unusual to be cached. */
static bool request_parse_cut(struct slice request, struct pieces *pieces)
{
    const char *end = request.at + request.len;
    uint32_t argc, len = 0;
    const char *at = plain_header(request.at, end, &argc);
    for (int i = 0; at != NULL && i < MEMO_WORDS; i++) {
        const char *word = plain_bulk(at, end, &len);
        at = word != NULL ? word + len + CRLF_LEN : NULL;
    }
    const char *key = at != NULL ? plain_bulk(at, end, &len) : NULL;
    if (key == NULL || len > QUOTA_KEY_MAX)
        return false;
    const char *tail = key + len + CRLF_LEN;
    pieces->head = slice_of(request.at, (size_t)(at - request.at));
    pieces->key = slice_of(key, len);
    pieces->tail = slice_of(tail, (size_t)(end - tail));
    return pieces->tail.len > 0 && pieces->tail.len <= REQUEST_MEMO_TAIL &&
           pieces->head.len <= REQUEST_MEMO_HEAD;
}

/* Returns the index of a tail: a hash, since tails differ mostly in their digits. */
static unsigned request_parse_slot_of(struct slice tail)
{
    uint32_t sum = (uint32_t)tail.len;
    for (size_t i = 0; i < tail.len; i++)
        sum = sum * 31 + (unsigned char)tail.at[i];
    return (sum ^ sum >> 16) % REQUEST_MEMO_SLOTS;
}

bool request_memo_find(const struct request_memo *memo, struct slice request,
                       struct decision_request *ask)
{
    struct pieces pieces;
    if (!request_parse_cut(request, &pieces))
        return false;
    unsigned slot = request_parse_slot_of(pieces.tail);
    if (memo->slots[slot].head_len == 0 ||
        !slice_eq(pieces.head, slice_of(memo->slots[slot].head, memo->slots[slot].head_len)) ||
        !slice_eq(pieces.tail, slice_of(memo->slots[slot].tail, memo->slots[slot].tail_len)))
        return false;
    *ask = memo->slots[slot].ask;
    ask->key = pieces.key;
    return true;
}

void request_memo_note(struct request_memo *memo, struct slice request,
                       const struct decision_request *ask)
{
    struct pieces pieces;
    bool is_alone = ask->rule.n_rates > 0 && ask->n_parts == 0 && ask->name.at == NULL &&
                    ask->token.at == NULL && ask->rule.zone == NULL;
    if (!is_alone || !request_parse_cut(request, &pieces) || pieces.key.at != ask->key.at ||
        pieces.key.len != ask->key.len)
        return;
    unsigned slot = request_parse_slot_of(pieces.tail);
    memo->slots[slot].head_len = (uint8_t)pieces.head.len;
    memo->slots[slot].tail_len = (uint8_t)pieces.tail.len;
    memcpy(memo->slots[slot].head, pieces.head.at, pieces.head.len);
    memcpy(memo->slots[slot].tail, pieces.tail.at, pieces.tail.len);
    memo->slots[slot].ask = *ask;
    memo->slots[slot].ask.key = slice_of(NULL, 0);
}
