/*
 * Tests of the bytes from Redis on the connections of LIMIT commands. An answer to a script has the
 * requested form or is refused. News of permits are recognised exactly.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "quota/answer.h"
#include "quota/outcome.h"
#include "resp/argv.h"

#include "guard.h"

static struct guard guard;

/* A copy in front of a guard page. */
static struct slice guarded(const char *text, size_t len)
{
    return slice_of(guard_place(&guard, text, len), len);
}

#define GUARDED(text) guarded(text, sizeof(text) - 1)

static void test_answers(void **state)
{
    static const struct {
        struct slice text;
        size_t n;
        bool is_good;
    } rows[] = {
        {SLICE("*1\r\n:5\r\n"), 1, true},
        {SLICE("*2\r\n:5\r\n$3\r\nERR\r\n"), 2, true},
        {SLICE("*0\r\n"), 0, true},
        {SLICE("*1\r\n:5\r\n"), 2, false},
        {SLICE("*2\r\n:5\r\n:5\r\n"), 1, false},
        {SLICE("*1\r\n:5\r\n:5\r\n"), 1, false},
        {SLICE("*1\r\n:5\r\nx"), 1, false},
        {SLICE("*1\r\n+5\r\n"), 1, false},
        {SLICE("*1\r\n:\r\n"), 1, false},
        {SLICE("*1\r\n:05\r\n"), 1, false},
        {SLICE("*1\r\n:9223372036854775808\r\n"), 1, false},
        {SLICE("*1\r\n*1\r\n:5\r\n"), 1, false},
        {SLICE("*1\r\n$-1\r\n"), 1, false},
        {SLICE("*1\r\n$0\r\n\r\n"), 1, false},
        {SLICE("*1\r\n$9\r\nERR\r\n"), 1, false},
        {SLICE("*1\r\n$3\r\nERRxx"), 1, false},
        {SLICE("*1\r\n$3\r\nERR\r"), 1, false},
        {SLICE("*-1\r\n"), 0, false},
        {SLICE("*1"), 1, false},
        {SLICE("*1\r"), 1, false},
        {SLICE(":1\r\n"), 1, false},
        {SLICE(""), 0, false},
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct answer first;
        assert_int_equal(
            answer_begin(guarded(rows[i].text.at, rows[i].text.len), rows[i].n, &first),
            rows[i].is_good);
    }
}

static void test_sane_numbers(void **state)
{
    struct decision_request funnel = {
        .rule = {.kind = QUOTA_FUNNEL,
                 .n_rates = 2,
                 .rates = {{.limit = 1, .step = 1}, {.limit = 1, .step = 1}}},
        .cost = 1};
    struct decision_request window = {
        .rule = {.kind = QUOTA_SLIDING, .n_rates = 1, .rates = {{.limit = 5, .step = 1}}},
        .cost = 1};
    struct decision_request holders = {.rule = {.kind = QUOTA_ACQUIRE}, .max = 3};
    (void)state;
    assert_true(quota_numbers_are_sane(&funnel, (int64_t[]){0, QUOTA_MOST}, 1));
    assert_false(quota_numbers_are_sane(&funnel, (int64_t[]){0, QUOTA_MOST + 1}, 1));
    assert_false(quota_numbers_are_sane(&funnel, (int64_t[]){-1, 0}, 1));
    assert_true(quota_numbers_are_sane(&window, (int64_t[]){2, 5, -1, 1}, 2));
    assert_false(quota_numbers_are_sane(&window, (int64_t[]){3, 5, -1, 1}, 2));
    assert_false(quota_numbers_are_sane(&window, (int64_t[]){-1, 5, -1, 1}, 2));
    assert_false(quota_numbers_are_sane(&window, (int64_t[]){1, -1, 0, 1}, 2));
    assert_false(quota_numbers_are_sane(&window, (int64_t[]){1, 1, -2, 1}, 2));
    assert_false(quota_numbers_are_sane(&window, (int64_t[]){1, 1, 0, INT64_MAX}, 2));
    assert_true(quota_numbers_are_sane(&holders, (int64_t[]){1, 3, 0}, 1));
    assert_true(quota_numbers_are_sane(&holders, (int64_t[]){0, 3, -1}, 1));
    assert_false(quota_numbers_are_sane(&holders, (int64_t[]){2, 3, 0}, 1));
    assert_false(quota_numbers_are_sane(&holders, (int64_t[]){1, -3, 0}, 1));
    assert_false(quota_numbers_are_sane(&holders, (int64_t[]){0, 3, INT64_MIN}, 1));
}

#define CHANNEL "$14\r\nlimit:released\r\n"

static enum release_news news(struct slice frame, struct slice *key)
{
    return release_read(guarded(frame.at, frame.len), SLICE("limit:released"), key);
}

static void test_releases(void **state)
{
    static const struct slice others[] = {
        SLICE("*3\r\n$7\r\nmessage\r\n$20\r\n__redis__:invalidate\r\n*1\r\n$1\r\nk\r\n"),
        SLICE("*3\r\n$7\r\nmessage\r\n" CHANNEL "*1\r\n$1\r\nk\r\n"),
        SLICE("*3\r\n$7\r\nmessage\r\n" CHANNEL ":1\r\n"),
        SLICE("*3\r\n$7\r\nmessage\r\n" CHANNEL "$-1\r\n"),
        SLICE("*3\r\n$7\r\nmessage\r\n" CHANNEL "$9\r\nk\r\n"),
        SLICE("*3\r\n$7\r\nmessage\r\n$5\r\nother\r\n$1\r\nk\r\n"),
        SLICE("*3\r\n$7\r\nMESSAGE\r\n" CHANNEL "$1\r\nk\r\n"),
        SLICE("*4\r\n$7\r\nmessage\r\n" CHANNEL "$1\r\nk\r\n$1\r\nk\r\n"),
        SLICE("*3\r\n$7\r\nmessage\r\n" CHANNEL "$1\r\nk\r\nmore"),
        SLICE("*3\r\n$9\r\nsubscribe\r\n" CHANNEL "$1\r\n1\r\n"),
        SLICE("*3\r\n$9\r\nsubscribe\r\n" CHANNEL ":0\r\n"),
        SLICE("*3\r\n$9\r\nsubscribe\r\n$5\r\nother\r\n:1\r\n"),
        SLICE("*3\r\n"),
        SLICE("*3"),
        SLICE(""),
        SLICE("+OK\r\n"),
        SLICE("*3\r\n:1\r\n:1\r\n:1\r\n"),
    };
    struct slice key;
    (void)state;
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++)
        assert_int_equal(news(others[i], &key), RELEASE_NOTHING);
    assert_int_equal(news(SLICE("*3\r\n$9\r\nsubscribe\r\n" CHANNEL ":1\r\n"), &key),
                     RELEASE_SUBSCRIBED);
    assert_int_equal(news(SLICE("*3\r\n$7\r\nmessage\r\n" CHANNEL "$4\r\nk\r\n:\r\n"), &key),
                     RELEASE_KEY);
    assert_true(slice_eq(key, SLICE("k\r\n:")));
    assert_int_equal(news(SLICE("*3\r\n$7\r\nmessage\r\n" CHANNEL "$0\r\n\r\n"), &key),
                     RELEASE_KEY);
    assert_int_equal(key.len, 0);
}

/* The number of words that a walk finds in bytes that were not scanned. */
static size_t words_in(struct slice text)
{
    struct argv_walk walk;
    struct slice word;
    size_t n = 0;
    argv_walk_init(&walk, text);
    while (argv_next(&walk, &word))
        n++;
    return n;
}

static void test_walks_of_anything(void **state)
{
    (void)state;
    assert_int_equal(words_in(GUARDED("*2\r\n$1\r\na\r\n$2\r\nbc\r\n")), 2);
    assert_int_equal(words_in(GUARDED("*3\r\n$7\r\nmessage\r\n$1\r\nc\r\n*1\r\n$1\r\nk\r\n")), 2);
    assert_int_equal(words_in(GUARDED("*2\r\n$1\r\na\r\n$9\r\nbc\r\n")), 1);
    assert_int_equal(words_in(GUARDED("*2\r\n$1\r\na\r\n$18446744073709551615\r\n")), 1);
    assert_int_equal(words_in(GUARDED("*2\r\n$1\r\na\r\n$-1\r\n")), 1);
    assert_int_equal(words_in(GUARDED("*2\r\n$1\r\na")), 0);
    assert_int_equal(words_in(GUARDED("*2\r\n$1")), 0);
    assert_int_equal(words_in(GUARDED("*-1\r\n$1\r\na\r\n")), 0);
    assert_int_equal(words_in(GUARDED("*99999999999\r\n$1\r\na\r\n")), 0);
    assert_int_equal(words_in(GUARDED("*")), 0);
    assert_int_equal(words_in(GUARDED("+OK\r\n")), 0);
    assert_int_equal(words_in(slice_of(NULL, 0)), 0);
}

int main(void)
{
    guard = guard_new(4096);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_answers),
        cmocka_unit_test(test_sane_numbers),
        cmocka_unit_test(test_releases),
        cmocka_unit_test(test_walks_of_anything),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
