/* The journal: newest first, never more than it holds, texts cut and not run over. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "limit/journal.h"

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
    for (int i = 0; i < 3 * JOURNAL_EVENTS + 7; i++)
        journal_add(journal, (uint64_t)i, "kind", "%d", i);
    assert_int_equal(journal_last(journal, events, JOURNAL_EVENTS + 1), JOURNAL_EVENTS);
    for (size_t i = 0; i < JOURNAL_EVENTS; i++) {
        assert_int_equal(events[i].id, 3 * JOURNAL_EVENTS + 6 - i);
        assert_int_equal(events[i].unix_ms, events[i].id);
    }
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
        cmocka_unit_test_setup_teardown(what_is_too_long_is_cut, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
