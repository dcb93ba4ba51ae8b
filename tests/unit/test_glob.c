/*
 * Tests of patterns: Redis' rules by example, stars against a recursive model, and the time of a
 * hostile pattern.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "base/glob.h"
#include "dice.h"

static bool matches(const char *pattern, const char *text)
{
    return glob_match(slice_str(pattern), slice_str(text));
}

static void rules_of_redis(void **state)
{
    (void)state;
    static const struct {
        const char *pattern, *text;
        bool matches;
    } cases[] = {
        {"", "", true},
        {"", "a", false},
        {"a", "", false},
        {"*", "", true},
        {"**", "", true},
        {"?", "", false},
        {"free-*", "free-17", true},
        {"free-*", "free-", true},
        {"free-*", "Free-1", false},
        {"*-17", "free-17", true},
        {"f*-*7", "free-17", true},
        {"f?ee", "free", true},
        {"f?ee", "fee", false},
        {"[a-c]x", "bx", true},
        {"[a-c]x", "dx", false},
        {"[c-a]x", "bx", true},
        {"[^a-c]x", "dx", true},
        {"[^a-c]x", "bx", false},
        {"[abc]", "c", true},
        {"[]", "a", false},
        {"[a\\]]", "]", true},
        {"[a\\-c]", "b", false},
        {"[a\\-c]", "-", true},
        {"\\*", "*", true},
        {"\\*", "a", false},
        {"a\\", "a\\", true},
        {"[!a]", "!", true},
        {"\\[a]", "[a]", true},
        {"*a*b*", "xaybz", true},
        {"*a*b*", "xbya", false},
        {"[\x80-\xff]", "\xc3", true},
        {"a*", "ba", false},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        if (matches(cases[i].pattern, cases[i].text) != cases[i].matches)
            fail_msg("%s on %s", cases[i].pattern, cases[i].text);
}

static void open_sets_are_seen(void **state)
{
    (void)state;
    static const char *const closed[] = {"",        "a",  "[a]", "[^a]", "\\[",
                                         "[a\\]b]", "a]", "[]",  "\\",   "[a-z]*"};
    static const char *const open[] = {"[", "[a", "x[^", "[a\\]", "[a][b", "[a-]", "[\\"};
    for (size_t i = 0; i < sizeof closed / sizeof closed[0]; i++)
        assert_true(glob_is_closed(slice_str(closed[i])));
    for (size_t i = 0; i < sizeof open / sizeof open[0]; i++)
        assert_false(glob_is_closed(slice_str(open[i])));
}

/* The definition of * and ?, by exhaustive search. */
static bool model(const char *pattern, const char *text)
{
    if (*pattern == '\0')
        return *text == '\0';
    if (*pattern == '*')
        return model(pattern + 1, text) || (*text && model(pattern, text + 1));
    return *text && (*pattern == '?' || *pattern == *text) && model(pattern + 1, text + 1);
}

static void fill(uint64_t *seed, char *out, size_t most, const char *letters, size_t n_letters)
{
    size_t len = dice_below(seed, most);
    for (size_t i = 0; i < len; i++)
        out[i] = letters[dice_below(seed, n_letters)];
    out[len] = '\0';
}

static void stars_equal_the_model(void **state)
{
    (void)state;
    uint64_t seed = 1;
    for (int i = 0; i < 50000; i++) {
        char pattern[9], text[11];
        fill(&seed, pattern, sizeof pattern, "ab*?*", 5);
        fill(&seed, text, sizeof text, "ab", 2);
        if (matches(pattern, text) != model(pattern, text))
            fail_msg("%s on %s", pattern, text);
    }
}

/* A pattern cut anywhere is read within its bounds; the sanitizer checks. */
static void every_byte_is_a_pattern(void **state)
{
    (void)state;
    uint64_t seed = 2;
    for (int i = 0; i < 50000; i++) {
        char buffer[9], text[9];
        fill(&seed, buffer, sizeof buffer, "a-[]^\\*?", 8);
        fill(&seed, text, sizeof text, "a-[]^\\", 6);
        char *pattern = malloc(strlen(buffer) + !*buffer); /* without a NUL */
        memcpy(pattern, buffer, strlen(buffer));
        glob_match(slice_of(pattern, strlen(buffer)), slice_str(text));
        glob_is_closed(slice_of(pattern, strlen(buffer)));
        free(pattern);
    }
}

static void stars_cost_no_more_than_a_product(void **state)
{
    (void)state;
    char pattern[201], text[4001];
    for (size_t i = 0; i < 200; i++)
        pattern[i] = i % 2 ? 'a' : '*';
    pattern[199] = 'b';
    memset(text, 'a', 4000);
    assert_false(glob_match(slice_of(pattern, 200), slice_of(text, 4000)));
}

/* A pattern that covers another matches every text that the other matches. */
static void covering_patterns_match_as_much(void **state)
{
    (void)state;
    uint64_t seed = 3;
    unsigned covered = 0;
    for (int i = 0; i < 200000; i++) {
        char wide[6], narrow[6], text[6];
        fill(&seed, wide, sizeof wide, "ab*?[]", 6);
        fill(&seed, narrow, sizeof narrow, "ab*?[]", 6);
        fill(&seed, text, sizeof text, "ab", 2);
        if (!glob_is_closed(slice_str(wide)) || !glob_is_closed(slice_str(narrow)) ||
            !glob_covers(slice_str(wide), slice_str(narrow)))
            continue;
        covered++;
        if (matches(narrow, text) && !matches(wide, text))
            fail_msg("%s does not match %s, which %s does", wide, text, narrow);
    }
    assert_true(covered > 1000);
    assert_true(glob_covers(SLICE("a*c*"), SLICE("ab*c?")));
    assert_false(glob_is_any(SLICE("")));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rules_of_redis),
        cmocka_unit_test(open_sets_are_seen),
        cmocka_unit_test(stars_equal_the_model),
        cmocka_unit_test(every_byte_is_a_pattern),
        cmocka_unit_test(stars_cost_no_more_than_a_product),
        cmocka_unit_test(covering_patterns_match_as_much),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
