/* Tests of limit-prefix: the prefix of each user's keys. */
#include "quota/prefix.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "dice.h"

#define COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))

static void expect(const char *text, struct slice user, const char *prefix, const char *channel)
{
    char why[256], out[PREFIX_ROOM], name[PREFIX_CHANNEL_ROOM];
    struct slice found;
    assert_true(prefix_check(slice_str(text), why, sizeof why));
    assert_true(prefix_of(slice_str(text), user, out, &found));
    assert_int_equal(found.len, strlen(prefix));
    assert_memory_equal(found.at, prefix, found.len);
    found = prefix_channel(slice_str(text), name);
    assert_int_equal(found.len, strlen(channel));
    assert_memory_equal(found.at, channel, found.len);
    char cover[PREFIX_COVER_ROOM];
    size_t before = found.len - strlen("released");
    found = prefix_cover(slice_str(text), cover);
    assert_int_equal(found.len, before + strlen(PREFIX_COVER));
    assert_memory_equal(found.at, channel, before);
    assert_memory_equal(found.at + before, PREFIX_COVER, strlen(PREFIX_COVER));
}

static void users_have_their_own(void **state)
{
    (void)state;
    expect("limit:", SLICE("ann"), "limit:", "limit:released");
    expect("limit:%u:", SLICE("ann"), "limit:ann:", "limit:released");
    expect("limit:%u:", SLICE(""), "limit:default:", "limit:released");
    expect("{l}%u/x:", SLICE("Ann-1.b_c"), "{l}Ann-1.b_c/x:", "{l}released");
    expect("100%%:%u:", SLICE("a:b"), "100%:a%3Ab:", "100%:released");
    expect("100%%", SLICE("a"), "100%", "100%released");
    expect("l:%u:", SLICE("a%3Ab"), "l:a%253Ab:", "l:released");
    expect("l:%u:", slice_of("\0\xff\n{}", 5), "l:%00%FF%0A%7B%7D:", "l:released");
}

static void what_is_wrong(void **state)
{
    (void)state;
    static const struct {
        const char *text, *why;
    } rows[] = {
        {"%u:", "nothing precedes %u: start with a common prefix, like limit:%u:"},
        {"l:%u", "a separator must follow %u, like limit:%u:"},
        {"l:%ux:", "a separator must follow %u, like limit:%u:"},
        {"l:%u%%", "a separator must follow %u, like limit:%u:"},
        {"l:%u:%u:", "%u is given twice"},
        {"l:%U:", "a single % is invalid: write %u for the user's name, or %% for a %"},
        {"l:%", "a single % is invalid: write %u for the user's name, or %% for a %"},
    };
    char why[256], many[PREFIX_MAX + 2];
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        assert_false(prefix_check(slice_str(rows[i].text), why, sizeof why));
        assert_string_equal(why, rows[i].why);
    }
    memset(many, 'x', sizeof many);
    assert_true(prefix_check(slice_of(many, PREFIX_MAX), why, sizeof why));
    assert_false(prefix_check(slice_of(many, PREFIX_MAX + 1), why, sizeof why));
    assert_string_equal(why, "at most 128 bytes");
}

static void long_names(void **state)
{
    (void)state;
    char user[PREFIX_USER_MAX + 1], out[PREFIX_ROOM];
    struct slice found;
    memset(user, '\xfe', sizeof user);
    assert_true(prefix_of(SLICE("l:%u:"), slice_of(user, PREFIX_USER_MAX), out, &found));
    assert_int_equal(found.len, 3 * PREFIX_USER_MAX + 3);
    assert_false(prefix_of(SLICE("l:%u:"), slice_of(user, PREFIX_USER_MAX + 1), out, &found));
    assert_true(prefix_of(SLICE("l:"), slice_of(user, PREFIX_USER_MAX + 1), out, &found));
}

/* No user's prefix is the beginning of another user's prefix. */
static void nobody_is_within_another(void **state)
{
    (void)state;
    static const char bytes[] = "ab:%/03Af\xff";
    uint64_t seed = 1;
    for (int i = 0; i < 200000; i++) {
        char users[2][5], out[2][PREFIX_ROOM];
        struct slice name[2], found[2];
        for (int j = 0; j < 2; j++) {
            name[j] = slice_of(users[j], 1 + dice_below(&seed, 5));
            for (size_t k = 0; k < name[j].len; k++)
                users[j][k] = bytes[dice_below(&seed, sizeof bytes - 1)];
            assert_true(prefix_of(SLICE("l:%u:"), name[j], out[j], &found[j]));
        }
        size_t len = found[0].len < found[1].len ? found[0].len : found[1].len;
        assert_int_equal(memcmp(found[0].at, found[1].at, len) == 0, slice_eq(name[0], name[1]));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(users_have_their_own),
        cmocka_unit_test(what_is_wrong),
        cmocka_unit_test(long_names),
        cmocka_unit_test(nobody_is_within_another),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
