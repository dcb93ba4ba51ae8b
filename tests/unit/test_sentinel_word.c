/*
 * Tests of the report of a sentinel: what counts as a change, how long a report is valid, how often
 * it is requested.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "run/topology/question_pace.h"
#include "run/topology/sentinel_word.h"

#define NOW_NS (50 * NS_PER_S)

static struct said read_whole(const char *text)
{
    struct slice rest = slice_str(text);
    struct said value;
    assert_true(said_next(&rest, &value));
    return value;
}

/* True if the report changed since the last call. */
static bool has_changed(struct sentinel_word *word)
{
    bool is = word->is_changed;
    word->is_changed = false;
    return is;
}

static bool claim(struct sentinel_word *word, const char *host, uint16_t port, uint64_t epoch,
                  uint64_t now_ns)
{
    struct sentinel_server server = {.port = port, .epoch = epoch};
    snprintf(server.host, sizeof server.host, "%s", host);
    return sentinel_word_take_claim(word, &server, port != 0 ? TROUBLE_NONE : TROUBLE_NO_SERVER,
                                    slice_of("", 0), now_ns);
}

static void test_claims(void **state)
{
    (void)state;
    struct sentinel_word word = {.trouble = TROUBLE_UNTRIED};
    assert_int_equal(sentinel_word_age(&word, NOW_NS), CLAIM_OLD);
    assert_true(claim(&word, "a", 1, 5, NOW_NS));
    assert_true(has_changed(&word));
    assert_int_equal(word.trouble, TROUBLE_NONE);
    assert_int_equal(word.since_ns, NOW_NS);

    assert_false(claim(&word, "a", 1, 5, NOW_NS + 1));
    assert_false(has_changed(&word));
    assert_false(claim(&word, "a", 1, 6, NOW_NS + 2)); /* another epoch, the same server */
    assert_true(has_changed(&word));
    assert_int_equal(word.since_ns, NOW_NS);
    assert_true(claim(&word, "a", 2, 6, NOW_NS + 3));
    assert_true(claim(&word, "b", 2, 6, NOW_NS + 4));
    assert_int_equal(word.since_ns, NOW_NS + 4);

    assert_true(claim(&word, "", 0, 0, NOW_NS + 5));
    assert_int_equal(word.trouble, TROUBLE_NO_SERVER);
    assert_true(word.has_named);
}

static void test_how_long_it_holds(void **state)
{
    (void)state;
    struct sentinel_word word = {.trouble = TROUBLE_UNTRIED};
    claim(&word, "a", 1, 5, NOW_NS);
    assert_int_equal(sentinel_word_age(&word, NOW_NS + SENTINEL_HOLDS_NS - 1), CLAIM_FRESH);
    assert_int_equal(sentinel_word_age(&word, NOW_NS + SENTINEL_HOLDS_NS), CLAIM_OLD);
    sentinel_word_set_trouble(&word, TROUBLE_SILENT, slice_str("x"));
    assert_int_equal(sentinel_word_age(&word, NOW_NS + 1), CLAIM_FRESH);
    sentinel_word_set_trouble(&word, TROUBLE_REFUSES_LOGIN, slice_str("x"));
    assert_int_equal(sentinel_word_age(&word, NOW_NS + 1), CLAIM_OLD);
}

static void test_trouble_is_told_once(void **state)
{
    (void)state;
    struct sentinel_word word = {.trouble = TROUBLE_UNTRIED};
    sentinel_word_set_trouble(&word, TROUBLE_AWAY, slice_str("refused"));
    assert_true(has_changed(&word));
    sentinel_word_set_trouble(&word, TROUBLE_AWAY, slice_str("timed out"));
    assert_false(has_changed(&word));
    sentinel_word_set_trouble(&word, TROUBLE_WANTS_LOGIN, slice_str("NO\x1b[2JAUTH\n"));
    assert_true(has_changed(&word));
    assert_string_equal(word.why, "NO?[2JAUTH?");
}

static void test_id(void **state)
{
    (void)state;
    struct sentinel_word word = {.id = "10.0.0.1:26379"};
    struct said said = read_whole("-ERR Unknown sentinel subcommand\r\n");
    sentinel_word_take_id(&word, &said);
    assert_false(word.has_id);
    said = read_whole("$40\r\n0123456789012345678901234567890123456789\r\n");
    sentinel_word_take_id(&word, &said);
    assert_true(word.has_id && has_changed(&word));
    sentinel_word_take_id(&word, &said);
    assert_false(has_changed(&word));
    assert_string_equal(word.id, "0123456789012345678901234567890123456789");
}

static void test_lists(void **state)
{
    (void)state;
    struct sentinel_word word = {.trouble = TROUBLE_NONE};
    struct said said = read_whole("*3\r\n%3\r\n+ip\r\n+a\r\n+port\r\n:1\r\n+flags\r\n+slave\r\n"
                                  "%3\r\n+ip\r\n+b\r\n+port\r\n:2\r\n+flags\r\n+slave,s_down\r\n"
                                  "%2\r\n+ip\r\n+c\r\n+port\r\n:0\r\n");
    sentinel_word_take_peers(&word, &said);
    assert_true(has_changed(&word));
    assert_int_equal(word.n_peers, 2);
    sentinel_word_take_replicas(&word, &said);
    assert_true(has_changed(&word));
    assert_int_equal(word.n_replicas, 1);
    sentinel_word_take_peers(&word, &said);
    sentinel_word_take_replicas(&word, &said);
    assert_false(has_changed(&word));
    said = read_whole("-NOPERM no\r\n");
    sentinel_word_take_peers(&word, &said);
    assert_int_equal(word.n_peers, 2);
    said = read_whole("*0\r\n");
    sentinel_word_take_peers(&word, &said);
    assert_true(has_changed(&word));
    assert_int_equal(word.n_peers, 0);
}

static void test_long_lists(void **state)
{
    (void)state;
    struct sentinel_word word = {.trouble = TROUBLE_NONE};
    char text[8192] = "*100\r\n";
    for (int i = 1; i <= 100; i++)
        snprintf(text + strlen(text), sizeof text - strlen(text),
                 "*4\r\n+ip\r\n+a\r\n+port\r\n:%d\r\n", i);
    struct said said = read_whole(text);
    sentinel_word_take_peers(&word, &said);
    sentinel_word_take_replicas(&word, &said);
    assert_int_equal(word.n_peers, SENTINELS_MOST);
    assert_int_equal(word.n_replicas, SENTINELS_REPLICAS_MOST);
}

/* At most ten requests in any second. */
static void test_budget(void **state)
{
    (void)state;
    struct question_budget budget = {.n = 0};
    uint64_t now_ns = NOW_NS;
    uint64_t asked_ns[2000];
    size_t n = 0;
    srand(3);
    while (n < 2000) {
        uint64_t wait_ns = question_budget_wait(&budget, now_ns);
        now_ns += rand() % 3 == 0 ? wait_ns : (uint64_t)(rand() % 300) * NS_PER_MS;
        if (question_budget_wait(&budget, now_ns) != 0)
            continue;
        question_budget_spend(&budget, now_ns);
        asked_ns[n++] = now_ns;
    }
    for (size_t i = 0; i + 9 < n; i++)
        assert_true(asked_ns[i + 9] - asked_ns[i] >= BUDGET_NS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_claims),
        cmocka_unit_test(test_how_long_it_holds),
        cmocka_unit_test(test_trouble_is_told_once),
        cmocka_unit_test(test_id),
        cmocka_unit_test(test_lists),
        cmocka_unit_test(test_long_lists),
        cmocka_unit_test(test_budget),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
