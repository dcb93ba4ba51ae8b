/* Tests of the memo of parsed requests: its results equal those of parsing. */
#include "decision_kit.h"

#include <string.h>

#include "dice.h"
#include "quota/request_parse.h"

#define COUNT_OF(array) (sizeof(array) / sizeof(array)[0])
#define ROUNDS 20000

/*
 * The word "key" stands for the key. Lines behind the first N_KEPT have more variable parts than a
 * key, or are no decision.
 */
static const char *const lines[] = {
    "LIMIT FUNNEL key 10/s",
    "LIMIT FUNNEL key 10/s BURST 3",
    "LIMIT FUNNEL key 10/s BURST 3 COST 2",
    "limit funnel key 10/s burst 3",
    "LIMIT FUNNEL key 100/s",
    "LIMIT FUNNEL key 10/60s 5/s BURST 2",
    "LIMIT BUCKET key 10/s PENALTY 1m..1h",
    "LIMIT BUCKET key 10/s BORROW COST 7 WARMUP 5s",
    "LIMIT SLIDING key 10/m WAIT 500",
    "LIMIT SLIDING key 10/m AS MAP",
    "LIMIT FIXED key 1000/day 10/s PEEK",
    "LIMIT FIXED key 1000/60s COUNT ALL FROM FIRST",
#define N_KEPT 12
    "LIMIT CHECK login key",
    "LIMIT CHECK login key AND ip key",
    "LIMIT ALL FUNNEL key 1/s AND SLIDING the-other 5/s",
    "LIMIT ACQUIRE key 3 5000",
    "LIMIT RESET key",
    "LIMIT RENEW key token 1000",
    "LIMIT BAN FUNNEL key 5m",
    "CL.THROTTLE key 15 30 60",
};

static struct request_memo memo;

static size_t build(const char *line, const char *key, char *request, struct slice *name)
{
    static char words_of[64];
    struct slice words[KIT_WORDS], rest = slice_str(line);
    size_t n = 0;
    for (; split_word(&rest, &words[n]); n++)
        if (slice_eq(words[n], SLICE("key")))
            words[n] = slice_str(key);
    bool is_sub = slice_eq_nocase(words[0], SLICE("limit"));
    int len =
        is_sub ? snprintf(words_of, sizeof words_of, "limit|%.*s", (int)words[1].len, words[1].at)
               : snprintf(words_of, sizeof words_of, "cl.throttle");
    *name = slice_of(words_of, (size_t)len);
    return emit_array(request, words, n);
}

static void assert_same(const struct decision_request *one, const struct decision_request *other,
                        const char *line)
{
    bool is_same = quota_rule_is_same(&one->rule, &other->rule) &&
                   one->rule.kind == other->rule.kind && one->key.at == other->key.at &&
                   one->key.len == other->key.len && one->wait_ns == other->wait_ns &&
                   one->cost == other->cost && one->warmup_ns == other->warmup_ns &&
                   one->max == other->max && one->ttl_ms == other->ttl_ms &&
                   one->mode == other->mode && one->shape == other->shape &&
                   memcmp(&one->penalty, &other->penalty, sizeof one->penalty) == 0 &&
                   one->is_peek == other->is_peek && one->counts_all == other->counts_all &&
                   one->is_first == other->is_first && one->is_cell == other->is_cell;
    if (!is_same || other->name.at != NULL || other->token.at != NULL || other->n_parts != 0)
        fail_msg("%s: what was known is something else", line);
}

static void random_key(uint64_t *seed, char key[64])
{
    size_t len = 1 + dice_below(seed, dice_below(seed, 4) ? 8 : 60);
    for (size_t i = 0; i < len; i++)
        key[i] = (char)('a' + dice_below(seed, 26));
    key[len] = '\0';
}

static void known_is_parsed(void **state)
{
    (void)state;
    char key[64], request[KIT_ROOM], why[256];
    uint64_t seed = 1, n_known = 0;
    struct slice name;
    memset(&memo, 0, sizeof memo);
    for (int i = 0; i < ROUNDS; i++) {
        size_t row = dice_below(&seed, COUNT_OF(lines));
        random_key(&seed, key);
        struct slice whole = slice_of(request, build(lines[row], key, request, &name));
        struct decision_request parsed, known;
        if (!decision_request_parse(&parsed, kit_parts, name, whole, why, sizeof why))
            fail_msg("%s: %s", lines[row], why);
        bool is_known = request_memo_find(&memo, whole, &known);
        if (is_known)
            assert_same(&parsed, &known, lines[row]);
        assert_true(!is_known || row < N_KEPT);
        n_known += is_known;
        request_memo_note(&memo, whole, &parsed);
    }
    assert_true(n_known > ROUNDS / 4);
}

static void a_key_may_look_like_anything(void **state)
{
    (void)state;
    static const char *const keys[] = {"10/s", "LIMIT", "$4", "*", "BURST"};
    char request[KIT_ROOM], why[256];
    struct slice name;
    memset(&memo, 0, sizeof memo);
    for (size_t i = 0; i < COUNT_OF(keys); i++) {
        struct slice whole = slice_of(request, build(lines[1], keys[i], request, &name));
        struct decision_request parsed, known;
        assert_true(decision_request_parse(&parsed, kit_parts, name, whole, why, sizeof why));
        assert_int_equal(request_memo_find(&memo, whole, &known), i > 0);
        if (i > 0)
            assert_same(&parsed, &known, keys[i]);
        request_memo_note(&memo, whole, &parsed);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(known_is_parsed),
        cmocka_unit_test(a_key_may_look_like_anything),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
