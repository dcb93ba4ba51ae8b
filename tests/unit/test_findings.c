/*
 * Tests of findings (problems, the most urgent first) and of holders (the subjects behind a limit).
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "admin/findings.h"
#include "admin/holders.h"
#include "base/clock.h"

#define LIMITS 5

static struct snapshot *s;

static int set_up(void **state)
{
    (void)state;
    s = snapshot_new();
    assert_non_null(s);
    s->name = "";
    s->is_reload_good = true;
    s->history = history_new();
    s->n_nodes = 2;
    s->nodes = calloc(2, sizeof *s->nodes);
    assert_non_null(s->nodes);
    strcpy(s->nodes[0].address, "127.0.0.1:6379");
    s->nodes[0].use = USED_FOR_ALL;
    strcpy(s->nodes[1].address, "127.0.0.1:6378");
    s->n_limits = LIMITS;
    s->limits = calloc(LIMITS, sizeof *s->limits);
    assert_non_null(s->limits);
    for (int i = 0; i < LIMITS; i++) {
        snprintf(s->limits[i].rule, sizeof s->limits[i].rule, "free/l%d", i);
        strcpy(s->limits[i].policy, "free");
    }
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    snapshot_put(s);
    return 0;
}

static void set_now(enum series series, double value)
{
    s->history->points[series][HISTORY_POINTS - 1] = (float)value;
}

/* Expects lines of "bad: title | more". */
static void expect(const char *wanted)
{
    struct findings findings;
    char lines[2048] = "";
    size_t len = 0;
    findings_make(&findings, s);
    assert_in_range(findings.n, 1, FINDINGS_MAX);
    for (size_t i = 0; i < findings.n; i++) {
        const struct finding *f = &findings.rows[i];
        len += (size_t)snprintf(lines + len, sizeof lines - len, "%s: %.*s | %.*s\n",
                                finding_level_name(f->level), (int)f->title.len, f->title.at,
                                (int)f->more.len, f->more.len > 0 ? f->more.at : "");
    }
    findings_free(&findings);
    assert_string_equal(lines, wanted);
}

static void nothing_is_wrong(void **state)
{
    (void)state;
    expect("good: Nothing is wrong | none of 5 limits refuses\n");
    s->n_limits = 0;
    expect("good: Nothing is wrong | no limits are configured\n");
    s->n_limits = LIMITS;
}

static void limits_are_named_and_counted(void **state)
{
    (void)state;
    for (int i = 1; i < LIMITS; i++)
        s->limits[i].state = LIMIT_REFUSING;
    s->limits[0].state = LIMIT_DELAYING;
    set_now(SERIES_COMMANDS, 5000);
    set_now(SERIES_REFUSED, 1203);
    expect("bad: 4 of 5 limits refusing | 1,203/s: free/l1, free/l2, free/l3 and 1 more\n"
           "warn: 1 of 5 limits delaying | free/l0\n");
}

static void blocks_are_no_limits(void **state)
{
    (void)state;
    s->blocks = 2;
    expect("good: Nothing is wrong | none of 5 limits refuses; 2 subjects blocked\n");
    s->is_block_active = true;
    set_now(SERIES_COMMANDS, 5000);
    set_now(SERIES_REFUSED, 141);
    set_now(SERIES_BLOCKED, 97);
    s->limits[1].state = LIMIT_REFUSING;
    expect("bad: 1 of 5 limits refusing | 44/s: free/l1\n"
           "warn: 2 subjects blocked | 97/s refused by the block\n");
    s->blocks = 1;
    set_now(SERIES_REFUSED, 0);
    set_now(SERIES_BLOCKED, 0);
    expect("bad: 1 of 5 limits refusing | free/l1\n"
           "warn: 1 subject blocked | every command is refused\n");
}

static void errors_count_from_one_percent_on(void **state)
{
    (void)state;
    set_now(SERIES_COMMANDS, 1000);
    set_now(SERIES_REDIS_ERRORS, 9);
    expect("good: Nothing is wrong | none of 5 limits refuses\n");
    set_now(SERIES_REDIS_ERRORS, 10);
    set_now(SERIES_ERRORS, 500);
    expect("bad: weir answers 500 errors/s | to 50 % of all commands\n"
           "warn: Redis answers 10 errors/s | to 1 % of all commands\n");
}

static void what_keeps_weir_from_serving_is_first(void **state)
{
    (void)state;
    s->limits[2].state = LIMIT_REFUSING;
    s->limits[3].state = LIMIT_SHADOWING;
    s->is_reload_good = false;
    s->is_overflowed = true;
    strcpy(s->reload_error, "weir.conf:2: nonsense");
    s->health.state = s->nodes[0].health.state = NODE_AWAY;
    strcpy(s->not_ready, "upstream 127.0.0.1:6379 is away");
    expect(
        "bad: Redis is away | 127.0.0.1:6379\n"
        "bad: 1 of 5 limits refusing | free/l2\n"
        "bad: The last reload failed | weir keeps the running configuration: weir.conf:2: nonsense\n"
        "warn: 1 of 5 limits shadowing | free/l3\n"
        "warn: max-subjects is reached | new subjects share one state\n");
}

static void a_drain_says_how_many_are_left(void **state)
{
    (void)state;
    s->is_draining = true;
    strcpy(s->not_ready, "stopping");
    set_now(SERIES_CONNECTIONS, 1);
    expect("bad: Draining | weir accepts no new clients; 1 connection has unfinished work\n");
    set_now(SERIES_CONNECTIONS, 12);
    expect("bad: Draining | weir accepts no new clients; 12 connections have unfinished work\n");
    s->is_draining = false;
    strcpy(s->not_ready, "starting");
    expect("bad: Not ready | starting\n");
}

static void a_redis_that_is_there_and_does_not_get_on(void **state)
{
    (void)state;
    s->health = (struct snapshot_health){NODE_SILENT, 3200 * (NS_PER_S / 1000), 3 * NS_PER_S};
    s->nodes[0].health = s->health;
    count_set(&s->lanes.in_flight, 154);
    expect(
        "bad: Redis does not answer | 127.0.0.1:6379 for 3.2 s; 154 commands in flight, the oldest for 3 s\n");
    s->health.state = NODE_BUSY;
    expect("warn: Redis is busy | a script runs; 154 commands in flight, the oldest for 3 s\n");
    s->health = (struct snapshot_health){.state = NODE_PAUSED};
    expect("warn: Redis is paused | CLIENT PAUSE suspends commands\n");
}

static const struct top_entry *top(enum top_by by, const char *subject, const char *policy,
                                   uint64_t per_s)
{
    struct top_entry *row = &s->tops[by].rows[s->tops[by].n++];
    row->subject_len = (uint16_t)strlen(subject);
    row->policy_len = (uint16_t)strlen(policy);
    memcpy(row->subject, subject, row->subject_len);
    memcpy(row->policy, policy, row->policy_len);
    row->per_s = per_s;
    return row;
}

static void expect_holder(const struct holder *holder, const char *name, double used,
                          uint64_t refused, uint64_t commands)
{
    assert_true(slice_eq(holder->subject, slice_str(name)));
    assert_true(holder->used > used - 0.001 && holder->used < used + 0.001);
    assert_int_equal(holder->refused_per_s, refused);
    assert_int_equal(holder->commands_per_s, commands);
}

static void refuse(const char *subject, uint64_t per_s, uint32_t by)
{
    top(TOP_REFUSED, subject, "free", per_s);
    s->tops[TOP_REFUSED].rows[s->tops[TOP_REFUSED].n - 1].refused_by = by;
}

static void holders_are_offenders_then_the_fullest(void **state)
{
    (void)state;
    struct holder out[HOLDERS_MAX];
    struct snapshot_limit *limit = &s->limits[1];
    limit->id = 7;
    assert_int_equal(holders_of(s, 1, out), 0);
    limit->holders[0] = (struct snapshot_holder){top(TOP_COMMANDS, "user:a", "free", 90), 0.97};
    limit->holders[1] = (struct snapshot_holder){top(TOP_COMMANDS, "user:b", "free", 40), 0.5};
    limit->n_holders = 2;
    refuse("user:c", 7, 7);
    refuse("user:d", 6, 8);
    refuse("user:b", 5, 7);
    refuse("user:e", 0, 7);
    assert_int_equal(holders_of(s, 1, out), 2);
    expect_holder(&out[0], "user:a", 0.97, 0, 90);
    expect_holder(&out[1], "user:b", 0.5, 5, 40);
    s->limits[2].state = LIMIT_REFUSING; /* not the limit that refuses most */
    assert_int_equal(holders_of(s, 2, out), 3);
    expect_holder(&out[0], "user:c", -1, 7, 0);
    limit->state = LIMIT_REFUSING;
    assert_int_equal(holders_of(s, 1, out), 3);
    expect_holder(&out[0], "user:c", -1, 7, 0);
    expect_holder(&out[1], "user:b", 0.5, 5, 40);
    expect_holder(&out[2], "user:a", 0.97, 0, 90);
    for (int i = 0; i < 9; i++) {
        char name[] = "user:zA";
        name[6] = (char)('A' + i);
        refuse(name, 1, 7);
    }
    assert_int_equal(holders_of(s, 1, out), SNAPSHOT_HOLDERS + 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(nothing_is_wrong, set_up, tear_down),
        cmocka_unit_test_setup_teardown(limits_are_named_and_counted, set_up, tear_down),
        cmocka_unit_test_setup_teardown(blocks_are_no_limits, set_up, tear_down),
        cmocka_unit_test_setup_teardown(errors_count_from_one_percent_on, set_up, tear_down),
        cmocka_unit_test_setup_teardown(what_keeps_weir_from_serving_is_first, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_drain_says_how_many_are_left, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_redis_that_is_there_and_does_not_get_on, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(holders_are_offenders_then_the_fullest, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
