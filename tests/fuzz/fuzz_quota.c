/*
 * Any bytes as the answer of Redis to a script, and as a published message. The bytes are refused,
 * or the outcome is within its legal range. No call passes that the numbers do not allow.
 */
#include "quota/answer.h"
#include "quota/outcome.h"

#include "pieces.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

#define CHANNEL "limit:released"

/*
 * The decision request for one key of several: an algorithm that an operator may name, at one or
 * two rates.
 */
static struct decision_request part_of(uint8_t byte, const struct decision_request *whole,
                                       const struct quota_rate *rates)
{
    struct decision_request part = {
        .rule = {.kind = byte % QUOTA_WARM, .n_rates = 1 + (byte >> 5 & 1)},
        .cost = byte >> 6,
        .is_shadow = (byte & 16) != 0,
        .counts_all = whole->counts_all,
        .penalty = whole->penalty,
    };
    part.is_peek = whole->is_peek || part.cost == 0;
    for (unsigned i = 0; i < part.rule.n_rates; i++)
        part.rule.rates[i] = rates[(byte + i) % 4];
    return part;
}

/*
 * The first bytes choose the decision request. The parts of a request for several keys are in
 * `parts`.
 */
static struct decision_request ask_of(const uint8_t *head,
                                      struct decision_request parts[QUOTA_PARTS_MAX])
{
    static const struct quota_rate rates[] = {{.limit = 1, .step = 1},
                                              {.limit = 10, .step = 1000000},
                                              {.limit = 10000, .step = 60000000},
                                              {.limit = 1, .step = QUOTA_MOST - 2}};
    static const struct quota_rate monthly = {.limit = 10, .calendar = CALENDAR_MONTH};
    struct decision_request ask = {
        .rule = {.kind = head[0] % QUOTA_RESET, .n_rates = 1 + head[1] % QUOTA_RATES_MAX},
        .cost = 1 + head[2] % 16,
        .max = 1 + head[2],
        .wait_ns = head[3] * UINT64_C(1000000),
        .is_peek = (head[3] & 1) != 0 && head[3] < 128,
        .penalty = {head[1] & 16 ? 60000 : 0, 3600000},
    };
    for (unsigned i = 0; i < ask.rule.n_rates; i++)
        ask.rule.rates[i] =
            ask.rule.kind == QUOTA_FIXED && i == head[2] % 9u ? monthly : rates[(head[1] + i) % 4];
    if (ask.rule.kind == QUOTA_THROTTLE)
        ask.cost = (int64_t)(head[2] % 16) - 8;
    if (ask.rule.kind == QUOTA_WARM) {
        ask.warmup_ns = 1 + head[3] * INT64_C(14117647058);
        ask.mode = QUOTA_BORROW;
        ask.rule.n_rates = 1;
    }
    if (quota_algorithm(ask.rule.kind)->family == FAMILY_HOLDING)
        ask.rule.n_rates = 0;
    if (ask.rule.kind == QUOTA_ALL) {
        ask.n_parts = ask.rule.n_rates;
        ask.rule.n_rates = 0;
        ask.cost = 1;
        ask.counts_all = (head[2] & 1) != 0;
        ask.parts = parts;
        for (unsigned i = 0; i < ask.n_parts; i++)
            parts[i] = part_of((uint8_t)(head[2] * (i + 1) + 37 * i), &ask, rates);
    }
    return ask;
}

static void check_outcome(const struct quota_outcome *outcome)
{
    REQUIRE(outcome->remaining >= 0 && outcome->remaining <= outcome->limit);
    REQUIRE(outcome->retry_ns >= -1 && outcome->reset_ns >= 0 && outcome->wait_ns >= 0);
    REQUIRE(!outcome->is_limited || outcome->wait_ns == 0);
}

/*
 * Checks that the reported and the refusing part are parts of the request. A shadow part never
 * refuses.
 */
static void check_parts(const struct decision_request *ask, const struct quota_outcome *outcome)
{
    unsigned binding = 0;
    REQUIRE(outcome->part < ask->n_parts && outcome->refusing >> ask->n_parts == 0);
    for (unsigned i = 0; i < ask->n_parts; i++)
        if (!ask->parts[i].is_shadow)
            binding |= 1U << i;
    REQUIRE(outcome->is_limited == ((outcome->refusing & binding) != 0));
    REQUIRE(!outcome->is_limited || (outcome->refusing & binding) >> outcome->part & 1);
}

/* Checks that a subject that is refused under a penalty stays refused until the penalty is over. */
static void check_held(const struct decision_request *ask, const struct quota_hold *hold,
                       const struct quota_outcome *outcome)
{
    if (ask->n_parts > 0 || hold->left_ns == 0)
        return;
    REQUIRE(outcome->is_penalised == outcome->is_limited);
    REQUIRE(!outcome->is_limited || outcome->retry_ns == -1 || outcome->retry_ns >= hold->left_ns);
    REQUIRE(!outcome->is_limited ||
            (outcome->reset_ns >= hold->left_ns && outcome->remaining == 0));
}

static void decide(const struct decision_request *ask, const int64_t *numbers,
                   const struct quota_hold *holds, uint64_t calls)
{
    struct quota_memory memory;
    struct quota_outcome outcome;
    struct build reply;
    uint64_t granted = quota_granted_held(ask, numbers, holds, calls);
    REQUIRE(granted <= calls);
    for (uint64_t k = 0; k < calls; k++) {
        quota_outcome_held(ask, numbers, holds, calls, k, &outcome);
        check_outcome(&outcome);
        check_held(ask, holds, &outcome);
        if (ask->n_parts > 0)
            check_parts(ask, &outcome);
        REQUIRE(outcome.is_limited == ((ask->is_peek ? 0 : k) >= granted));
        build_init(&reply, k % 2 == 0);
        quota_reply(&reply, ask, &outcome);
        build_fini(&reply);
    }
    if (ask->n_parts == 0 && quota_remember(ask, numbers, calls, &memory) &&
        quota_recall(&memory, ask, 1000, &outcome))
        check_outcome(&outcome);
}

static void read_numbers(const struct decision_request *ask, struct slice text, uint64_t calls)
{
    unsigned n = quota_numbers(ask);
    struct answer answer;
    if (!answer_begin(text, n, &answer))
        return;
    int64_t numbers[QUOTA_NUMBERS_MAX];
    struct quota_hold holds[QUOTA_PARTS_MAX] = {0};
    struct slice error = slice_of(NULL, 0);
    REQUIRE(quota_numbers_read(&answer, ask, numbers, holds, &error));
    REQUIRE(answer_is_over(&answer));
    REQUIRE(error.at == NULL ||
            (error.len > 0 && error.at > text.at && error.at + error.len < text.at + text.len));
    if (!quota_numbers_are_sane(ask, numbers, calls) ||
        !quota_holds_are_sane(ask, numbers, holds, calls))
        return;
    if (quota_is_decision(ask)) {
        decide(ask, numbers, holds, calls);
        return;
    }
    struct build reply;
    build_init(&reply, true);
    quota_reply_holding(&reply, ask, numbers, SLICE("token"));
    build_fini(&reply);
}

static void read_release(struct slice text)
{
    static const char confirmed[] = "*3\r\n$9\r\nsubscribe\r\n$14\r\n" CHANNEL "\r\n:1\r\n";
    static const char message[] = "*3\r\n$7\r\nmessage\r\n$14\r\n" CHANNEL "\r\n$";
    struct slice key = slice_of(NULL, 0);
    bool is_message =
        text.len > sizeof message - 1 && memcmp(text.at, message, sizeof message - 1) == 0;
    switch (release_read(text, SLICE(CHANNEL), &key)) {
    case RELEASE_NOTHING:
        REQUIRE(!slice_eq(text, slice_of(confirmed, sizeof confirmed - 1)));
        break;
    case RELEASE_SUBSCRIBED:
        REQUIRE(!is_message);
        break;
    case RELEASE_KEY:
        REQUIRE(is_message && key.at > text.at && key.at + key.len + 2 == text.at + text.len);
        break;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    if (n < 5)
        return 0;
    struct decision_request parts[QUOTA_PARTS_MAX];
    const struct decision_request ask = ask_of(data, parts);
    char *copy = piece_copy(data + 5, n - 5);
    struct slice text = slice_of(copy, n - 5);
    read_numbers(&ask, text, 1 + data[4] % 8);
    read_release(text);
    free(copy);
    return 0;
}
