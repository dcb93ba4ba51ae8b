/*
 * Tests of the history: points are added on time, follow their limit across a reload, and report
 * the limit's state.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "admin/snapshot.h"
#include "base/clock.h"
#include "base/mem.h"

#define START_NS (1000 * NS_PER_S)

/* A process with two limits, and its counters. */
struct world {
    struct history *history;
    uint64_t now_ns;
    uint64_t commands, refused;
    struct histo requests;
    struct snapshot_limit limits[2];
    size_t n_limits;
    struct snapshot *s; /* the last snapshot */
};

static void setup(struct world *w)
{
    *w = (struct world){.history = history_new(), .now_ns = START_NS, .n_limits = 2};
    for (uint16_t i = 0; i < 2; i++)
        w->limits[i] = (struct snapshot_limit){
            .id = i, .scope = "subject", .per_s = 10, .burst = 10, .subjects = 5};
}

static void teardown(struct world *w)
{
    if (w->s)
        free(w->s->limits);
    if (w->s)
        history_free(w->s->history);
    free(w->s);
    history_free(w->history);
}

static void note(struct world *w, double after_s)
{
    if (w->s) {
        free(w->s->limits);
        history_free(w->s->history);
        free(w->s);
    }
    w->now_ns += (uint64_t)(after_s * 1e9);
    w->s = mem_zalloc(1, sizeof *w->s);
    w->s->taken_ns = w->now_ns;
    count_set(&w->s->counts.commands[0][RESULT_FORWARDED], w->commands);
    count_set(&w->s->counts.commands[0][RESULT_THROTTLED], w->refused);
    w->s->counts.times.request = w->requests;
    w->s->n_limits = w->n_limits;
    w->s->limits = mem_zalloc(w->n_limits, sizeof *w->limits);
    memcpy(w->s->limits, w->limits, w->n_limits * sizeof *w->limits);
    assert_true(history_note(w->history, w->s));
}

static void assert_near(double value, double wanted)
{
    assert_true(value > wanted - 0.01 && value < wanted + 0.01);
}

static void test_points_come_every_two_seconds(void **state)
{
    (void)state;
    struct world w;
    setup(&w);
    note(&w, 0);
    assert_int_equal(w.s->history->last, 0);
    w.commands = 300;
    w.refused = 100;
    note(&w, 1);
    assert_int_equal(w.s->history->last, 0);
    note(&w, 0.9); /* timers may be early */
    assert_int_equal(w.s->history->last, 1);
    assert_near(history_now(w.s->history, SERIES_COMMANDS), 400 / 1.9);
    assert_near(history_now(w.s->history, SERIES_REFUSED), 100 / 1.9);
    note(&w, 0.5);
    assert_int_equal(w.s->history->last, 1);
    w.commands += 1000;
    note(&w, 9.5); /* or very late */
    assert_int_equal(w.s->history->last, 2);
    assert_near(history_now(w.s->history, SERIES_COMMANDS), 100);
    teardown(&w);
}

static void test_the_oldest_go(void **state)
{
    (void)state;
    struct world w;
    setup(&w);
    note(&w, 0);
    for (unsigned i = 1; i <= HISTORY_POINTS + 10; i++) {
        w.commands += (uint64_t)i * HISTORY_STEP_S;
        note(&w, HISTORY_STEP_S);
        assert_int_equal(w.s->history->last, i);
        assert_int_equal(w.s->history->n, i < HISTORY_POINTS ? i : HISTORY_POINTS);
        assert_near((double)w.s->history->points[SERIES_COMMANDS][HISTORY_POINTS - 1], i);
    }
    assert_near((double)w.s->history->points[SERIES_COMMANDS][0], 11);
    teardown(&w);
}

static void test_a_limit_keeps_its_points_where_others_come_before_it(void **state)
{
    (void)state;
    struct world w;
    setup(&w);
    note(&w, 0);
    w.limits[1].admitted = 40;
    w.limits[1].refused = 6;
    note(&w, 2);
    assert_near(w.s->limits[1].allowed_per_s, 20);
    assert_near(w.s->limits[1].over_per_s, 3);
    w.limits[0] = w.limits[1];
    w.limits[1] = (struct snapshot_limit){.id = 7, .scope = "subject", .admitted = 1000};
    note(&w, 2);
    assert_near((double)w.s->history->tracks[0].allowed[HISTORY_POINTS - 2], 20);
    assert_near(w.s->limits[0].allowed_per_s, 0);
    /* the limit's count before its first point does not count as new */
    assert_near(w.s->limits[1].allowed_per_s, 0);
    w.n_limits = 0;
    note(&w, 2);
    assert_int_equal(w.s->history->n_limits, 0);
    teardown(&w);
}

static void test_what_a_limit_does(void **state)
{
    (void)state;
    struct world w;
    setup(&w);
    note(&w, 0);
    assert_int_equal(w.s->limits[0].state, LIMIT_CALM);
    w.limits[0].used = 0.9;
    note(&w, 1);
    assert_int_equal(w.s->limits[0].state, LIMIT_NEAR);
    w.limits[0].used = 0.1;
    w.limits[0].shadowed++;
    note(&w, 1);
    assert_int_equal(w.s->limits[0].state, LIMIT_SHADOWING);
    w.limits[0].refused++;
    note(&w, 1);
    assert_int_equal(w.s->limits[0].state, LIMIT_REFUSING);
    w.limits[0].delayed++;
    note(&w, HISTORY_HOLD_S - 1);
    assert_int_equal(w.s->limits[0].state, LIMIT_REFUSING);
    note(&w, 1.5);
    assert_int_equal(w.s->limits[0].state, LIMIT_DELAYING);
    note(&w, HISTORY_HOLD_S);
    assert_int_equal(w.s->limits[0].state, LIMIT_CALM);
    assert_int_equal(w.s->limits[1].state, LIMIT_CALM);
    teardown(&w);
}

static void test_times_are_of_their_point(void **state)
{
    (void)state;
    struct world w;
    setup(&w);
    histo_add(&w.requests, 1000000000, 100); /* before the first point */
    note(&w, 0);
    histo_add(&w.requests, 1000000, 100);
    note(&w, 2);
    double p99 = history_now(w.s->history, SERIES_LATENCY_P99);
    assert_true(p99 > 0.0004 && p99 <= 0.001);
    assert_true(history_now(w.s->history, SERIES_LATENCY_P50) <= p99);
    assert_near(history_now(w.s->history, SERIES_OVERHEAD_P99), 0);
    note(&w, 2);
    assert_true(history_now(w.s->history, SERIES_LATENCY_P99) <= 0);
    teardown(&w);
}

static double used_at(double per_s, uint64_t burst, const char *scope, uint64_t subjects)
{
    struct world w;
    setup(&w);
    w.limits[0].per_s = per_s;
    w.limits[0].burst = burst;
    w.limits[0].subjects = subjects;
    strcpy(w.limits[0].scope, scope);
    note(&w, 0);
    w.limits[0].admitted = 18;
    note(&w, 2);
    double used = w.s->limits[0].used;
    teardown(&w);
    return used;
}

static void test_use_by_the_rate(void **state)
{
    (void)state;
    assert_near(used_at(10, 10, "policy", 5), 0.9);
    assert_near(used_at(10, 10, "subject", 1), 0.9);
    assert_near(used_at(10, 10, "subject", 2), 0); /* one of two subjects: which is unknown */
    assert_near(used_at(10, 10, "connection", 1), 0);
    assert_near(used_at(1, 100, "policy", 1), 0); /* a burst of minutes */
    assert_near(used_at(5, 10, "policy", 1), 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_points_come_every_two_seconds),
        cmocka_unit_test(test_the_oldest_go),
        cmocka_unit_test(test_a_limit_keeps_its_points_where_others_come_before_it),
        cmocka_unit_test(test_what_a_limit_does),
        cmocka_unit_test(test_times_are_of_their_point),
        cmocka_unit_test(test_use_by_the_rate),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
