/*
 * Tests of threads that add events while another reads: no event is torn, and none is lost early.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <cmocka.h>

#include <pthread.h>

#include "limit/figures/journal.h"

#define WRITERS 4
#define TURNS 2000

static struct journal *journal;
static _Atomic int n_writing = WRITERS;

static void *write_on(void *arg)
{
    for (uint64_t i = 0; i < TURNS; i++)
        journal_add(journal, i, arg, "%s %u", (const char *)arg, (unsigned)i);
    n_writing--;
    return NULL;
}

static void assert_whole(const struct journal_event *events, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        char text[JOURNAL_TEXT_MAX + 1];
        snprintf(text, sizeof text, "%s %u", events[i].kind, (unsigned)events[i].unix_ms);
        assert_string_equal(events[i].text, text);
        assert_int_equal(events[i].id, events[0].id - i);
    }
}

static void events_are_whole(void **state)
{
    (void)state;
    static char names[WRITERS][2] = {"a", "b", "c", "d"};
    static struct journal_event events[JOURNAL_EVENTS];
    pthread_t threads[WRITERS];
    journal = journal_new();
    for (size_t i = 0; i < WRITERS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, write_on, names[i]), 0);
    while (n_writing > 0)
        assert_whole(events, journal_last(journal, events, JOURNAL_EVENTS));
    for (size_t i = 0; i < WRITERS; i++)
        pthread_join(threads[i], NULL);
    assert_int_equal(journal_last(journal, events, JOURNAL_EVENTS), JOURNAL_ROOM);
    assert_whole(events, JOURNAL_ROOM);
    assert_int_equal(events[0].id, WRITERS * TURNS - 1);
    journal_free(journal);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(events_are_whole)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
