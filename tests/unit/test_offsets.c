/* Tests of the offsets of replicas, with the test's own clock. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "upstream/node/offsets.h"

#define ID_A "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
#define ID_B "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"
#define MS NS_PER_MS

static struct offsets_word word(enum node_role role, const char *id, uint64_t offset)
{
    struct offsets_word word = {.role = role, .is_linked = role == ROLE_REPLICA, .offset = offset};
    snprintf(word.id, sizeof word.id, "%s", id);
    return word;
}

static void tell(struct offsets *offsets, const char *id, uint64_t offset, uint64_t asked_ns)
{
    const struct offsets_word master = word(ROLE_MASTER, id, offset);
    offsets_note(offsets, &master, asked_ns);
}

static uint64_t as_of(const struct offsets *offsets, const char *id, uint64_t offset)
{
    const struct offsets_word replica = word(ROLE_REPLICA, id, offset);
    return offsets_as_of(offsets, &replica);
}

/* ---- the text ---- */

static bool read_text(const char *text, struct offsets_word *word)
{
    return offsets_read(slice_str(text), word);
}

static void test_master_is_read(void **state)
{
    (void)state;
    struct offsets_word word;
    assert_true(read_text(
        "# Replication\r\nrole:master\r\nconnected_slaves:1\r\n"
        "slave0:ip=127.0.0.1,port=1,state=online,offset=99,lag=0\r\nmaster_failover_state:no-failover\r\n"
        "master_replid:" ID_A "\r\nmaster_replid2:" ID_B "\r\nmaster_repl_offset:140\r\n",
        &word));
    assert_int_equal(word.role, ROLE_MASTER);
    assert_int_equal(word.offset, 140);
    assert_string_equal(word.id, ID_A);
}

static void test_replica_is_read(void **state)
{
    (void)state;
    static const char up[] =
        "# Replication\r\nrole:slave\r\nmaster_link_status:up\r\nmaster_sync_in_progress:0\r\n"
        "slave_read_repl_offset:160\r\nslave_repl_offset:150\r\nmaster_replid:" ID_A "\r\n";
    static const char down[] =
        "role:slave\r\nmaster_link_status:down\r\nslave_repl_offset:150\r\nmaster_replid:" ID_A;
    static const char copying[] =
        "role:slave\nmaster_link_status:up\nmaster_sync_in_progress:1\nslave_repl_offset:1\n";
    struct offsets_word word;
    assert_true(read_text(up, &word));
    assert_int_equal(word.role, ROLE_REPLICA);
    assert_true(word.is_linked);
    assert_int_equal(word.offset, 150);
    assert_true(read_text(down, &word));
    assert_false(word.is_linked);
    assert_string_equal(word.id, ID_A);
    assert_true(read_text(copying, &word));
    assert_false(word.is_linked);
    assert_string_equal(word.id, "");
}

static void test_what_is_no_such_text(void **state)
{
    (void)state;
    static const char *const texts[] = {"",
                                        "role",
                                        "role:",
                                        "role:sentinel\r\n",
                                        "role:master\r\n",
                                        "role:master\r\nmaster_repl_offset:-1\r\n",
                                        "role:slave\r\nslave_repl_offset:x\r\n",
                                        "xrole:master\r\nmaster_repl_offset:1\r\n"};
    struct offsets_word word;
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
        assert_false(read_text(texts[i], &word));
}

/* ---- as of when ---- */

static void test_as_of_the_newest_offset_reached(void **state)
{
    (void)state;
    struct offsets offsets = {0};
    assert_int_equal(as_of(&offsets, ID_A, 500), 0);
    tell(&offsets, ID_A, 500, 1000 * MS);
    tell(&offsets, ID_A, 740, 1250 * MS);
    assert_int_equal(as_of(&offsets, ID_A, 499), 0);
    assert_int_equal(as_of(&offsets, ID_A, 500), 1000 * MS);
    assert_int_equal(as_of(&offsets, ID_A, 739), 1000 * MS);
    assert_int_equal(as_of(&offsets, ID_A, 740), 1250 * MS);
    assert_int_equal(as_of(&offsets, ID_A, 9999), 1250 * MS);
    const struct offsets_word replica = word(ROLE_REPLICA, ID_A, 600);
    assert_int_equal(offsets_behind(&offsets, &replica), 140);
}

/* A master without writes reports one offset, each time as of a later time. */
static void test_a_master_at_rest(void **state)
{
    (void)state;
    struct offsets offsets = {0};
    for (uint64_t i = 1; i <= 1000; i++)
        tell(&offsets, ID_A, 77, i * MS);
    assert_int_equal(offsets.n, 1);
    assert_int_equal(as_of(&offsets, ID_A, 77), 1000 * MS);
}

static void test_what_does_not_follow(void **state)
{
    (void)state;
    struct offsets offsets = {0};
    tell(&offsets, ID_A, 500, 1000 * MS);
    struct offsets_word replica = word(ROLE_REPLICA, ID_A, 500);
    replica.is_linked = false;
    assert_int_equal(offsets_as_of(&offsets, &replica), 0);
    replica = word(ROLE_MASTER, ID_A, 500);
    assert_int_equal(offsets_as_of(&offsets, &replica), 0);
    assert_int_equal(as_of(&offsets, ID_B, 500), 0);
    assert_int_equal(as_of(&offsets, "", 500), 0);
}

static void test_another_history(void **state)
{
    (void)state;
    struct offsets offsets = {0};
    tell(&offsets, ID_A, 500, 1000 * MS);
    tell(&offsets, ID_B, 900, 2000 * MS);
    assert_int_equal(as_of(&offsets, ID_A, 900), 0);
    assert_int_equal(as_of(&offsets, ID_B, 500), 0);
    assert_int_equal(as_of(&offsets, ID_B, 900), 2000 * MS);
    tell(&offsets, ID_B, 10, 3000 * MS); /* the server was restarted */
    assert_int_equal(as_of(&offsets, ID_B, 9), 0);
    assert_int_equal(as_of(&offsets, ID_B, 900), 3000 * MS);
    const struct offsets_word replica = word(ROLE_REPLICA, ID_B, 10);
    offsets_note(&offsets, &replica, 4000 * MS); /* no longer a master */
    assert_int_equal(as_of(&offsets, ID_B, 10), 0);
    tell(&offsets, "", 10, 5000 * MS);
    assert_int_equal(as_of(&offsets, "", 10), 0);
}

/*
 * However many offsets are noted, a result is never later than the truth, and never much older than
 * the length of the history.
 */
static void test_old_ones_are_thinned_out(void **state)
{
    (void)state;
    struct offsets offsets = {0};
    for (uint64_t i = 1; i <= 5000; i++) {
        tell(&offsets, ID_A, i * 10, i * MS);
        assert_in_range(offsets.n, 1, OFFSETS_HISTORY);
        assert_int_equal(as_of(&offsets, ID_A, i * 10), i * MS);
        for (uint64_t back = 1; back < i; back *= 2) {
            uint64_t found = as_of(&offsets, ID_A, (i - back) * 10 + 5);
            assert_true(found <= (i - back) * MS);
        }
        if (i > 32)
            assert_int_equal(as_of(&offsets, ID_A, (i - 16) * 10), (i - 16) * MS);
    }
    assert_true(as_of(&offsets, ID_A, 20000) != 0);
}

/* ---- in sync ---- */

static void test_in_sync(void **state)
{
    (void)state;
    struct reach reach = {0};
    assert_false(reach_is_in_sync(&reach, 1000 * MS, 1000 * MS));
    reach_note(&reach, 5000 * MS, 3);
    assert_true(reach_is_in_sync(&reach, 6000 * MS, 1000 * MS));
    assert_false(reach_is_in_sync(&reach, 6000 * MS + 1, 1000 * MS));
    /* the worker's clock was read before */
    assert_int_equal(reach_as_of(&reach, 4000 * MS, 1000 * MS), 5000 * MS);
    reach_end(&reach);
    assert_false(reach_is_in_sync(&reach, 5000 * MS, 1000 * MS));
    reach_note(&reach, 5500 * MS, 0);
    assert_true(reach_is_in_sync(&reach, 6000 * MS, 1000 * MS));
    uint32_t before = reach_doubts(&reach);
    reach_doubt(&reach);
    assert_false(reach_is_in_sync(&reach, 6000 * MS, 1000 * MS));
    assert_true(reach_doubts(&reach) != before);
    reach_note(&reach, 0, 0);
    assert_false(reach_is_in_sync(&reach, 0, 1000 * MS));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_master_is_read),
        cmocka_unit_test(test_replica_is_read),
        cmocka_unit_test(test_what_is_no_such_text),
        cmocka_unit_test(test_as_of_the_newest_offset_reached),
        cmocka_unit_test(test_a_master_at_rest),
        cmocka_unit_test(test_what_does_not_follow),
        cmocka_unit_test(test_another_history),
        cmocka_unit_test(test_old_ones_are_thinned_out),
        cmocka_unit_test(test_in_sync),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
