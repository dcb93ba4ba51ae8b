/* Tests of the journal: newest first, bounded, long texts cut. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "limit/figures/journal.h"

static struct journal *journal;
static struct journal_event events[JOURNAL_EVENTS + 1];

static int set_up(void **state)
{
    (void)state;
    journal = journal_new();
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    journal_free(journal);
    return 0;
}

static void empty_at_first(void **state)
{
    (void)state;
    assert_int_equal(journal_last(journal, events, JOURNAL_EVENTS), 0);
    assert_int_equal(journal_last(journal, NULL, 0), 0);
}

static void newest_first(void **state)
{
    (void)state;
    journal_add(journal, 1700000000001, "reload", "%d policies from %s", 3, "weir.conf");
    journal_add(journal, 1700000000000, "upstream", "%s", "lost");
    assert_int_equal(journal_last(journal, events, 1), 1);
    assert_int_equal(events[0].id, 1);
    assert_string_equal(events[0].text, "lost");
    assert_int_equal(journal_last(journal, events, JOURNAL_EVENTS), 2);
    assert_int_equal(events[1].id, 0);
    assert_int_equal(events[1].unix_ms, 1700000000001);
    assert_string_equal(events[1].kind, "reload");
    assert_string_equal(events[1].text, "3 policies from weir.conf");
}

static void the_oldest_are_overwritten(void **state)
{
    (void)state;
    for (int i = 0; i < 3 * JOURNAL_ROOM + 7; i++)
        journal_add(journal, (uint64_t)i, "kind", "%d", i);
    assert_int_equal(journal_last(journal, events, JOURNAL_EVENTS + 1), JOURNAL_ROOM);
    for (size_t i = 0; i < JOURNAL_ROOM; i++) {
        assert_int_equal(events[i].id, 3 * JOURNAL_ROOM + 6 - i);
        assert_int_equal(events[i].unix_ms, events[i].id);
    }
}

static void repeats_are_one(void **state)
{
    (void)state;
    journal_add(journal, 1, "upstream", "away");
    journal_add(journal, 2, "upstream", "back");
    journal_add(journal, 3, "drain", "away");
    journal_add(journal, 4, "upstream", "away");
    journal_add(journal, 5, "upstream", "away");
    assert_int_equal(journal_last(journal, events, JOURNAL_EVENTS), 3);
    assert_string_equal(events[0].text, "away");
    assert_string_equal(events[0].kind, "upstream");
    assert_int_equal(events[0].count, 3);
    assert_int_equal(events[0].first_unix_ms, 1);
    assert_int_equal(events[0].unix_ms, 5);
    assert_int_equal(events[0].id, 4);
    assert_string_equal(events[1].kind, "drain");
    assert_string_equal(events[2].text, "back");
    assert_int_equal(events[2].count, 1);
    journal_add_about(journal, 6, "refused", "free/write", "refused 7 commands");
    journal_add_about(journal, 7, "refused", "free/read", "refused 8 commands");
    journal_add_about(journal, 8, "refused", "free/write", "refused 9 commands");
    assert_int_equal(journal_last(journal, events, 2), 2);
    assert_string_equal(events[0].text, "refused 9 commands");
    assert_int_equal(events[0].count, 2);
    assert_int_equal(events[0].first_unix_ms, 6);
    assert_string_equal(events[1].text, "refused 8 commands");
}

/* Frequent events do not push out admin commands and events of upstreams. */
static void each_part_has_its_room(void **state)
{
    (void)state;
    journal_add(journal, 0, "set", "a limit");
    journal_add(journal, 0, "upstream", "is away");
    for (int i = 0; i < 1000; i++)
        journal_add(journal, (uint64_t)i,
                    i % 3 == 0   ? "refused"
                    : i % 3 == 1 ? "delayed"
                                 : "shadowed",
                    "%d", i);
    assert_int_equal(journal_last(journal, events, JOURNAL_EVENTS), JOURNAL_ROOM + 2);
    assert_string_equal(events[0].text, "999");
    assert_string_equal(events[JOURNAL_ROOM].text, "is away");
    assert_string_equal(events[JOURNAL_ROOM + 1].text, "a limit");
    for (int i = 0; i < 1000; i++)
        journal_add(journal, (uint64_t)i, "set", "%d", i);
    assert_int_equal(journal_last(journal, events, JOURNAL_EVENTS), 2 * JOURNAL_ROOM + 1);
    assert_string_equal(events[2 * JOURNAL_ROOM].text, "is away");
}

static void control_characters_are_no_text(void **state)
{
    (void)state;
    journal_add(journal, 0, "forgive", "a\nb\x1b[2J\x7f");
    assert_int_equal(journal_last(journal, events, 1), 1);
    assert_string_equal(events[0].text, "a?b?[2J?");
}

static void what_is_too_long_is_cut(void **state)
{
    (void)state;
    char text[1000];
    memset(text, 'x', sizeof text - 1);
    text[sizeof text - 1] = '\0';
    journal_add(journal, 0, text, "%s", text);
    assert_int_equal(journal_last(journal, events, 1), 1);
    assert_int_equal(strlen(events[0].kind), JOURNAL_KIND_MAX);
    assert_int_equal(strlen(events[0].text), JOURNAL_TEXT_MAX);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(empty_at_first, set_up, tear_down),
        cmocka_unit_test_setup_teardown(newest_first, set_up, tear_down),
        cmocka_unit_test_setup_teardown(the_oldest_are_overwritten, set_up, tear_down),
        cmocka_unit_test_setup_teardown(repeats_are_one, set_up, tear_down),
        cmocka_unit_test_setup_teardown(each_part_has_its_room, set_up, tear_down),
        cmocka_unit_test_setup_teardown(control_characters_are_no_text, set_up, tear_down),
        cmocka_unit_test_setup_teardown(what_is_too_long_is_cut, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
