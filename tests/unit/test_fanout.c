/*
 * Tests of routing commands on a cluster: hand-written rows, tips of COMMAND, and their precedence.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>

#include "limit/command/command.h"
#include "limit/command/travel.h"

#define COUNT_OF(a) (sizeof(a) / sizeof(a)[0])

static const struct {
    const char *name;
    enum fanout to;
    enum join join;
} known[] = {
    {"get", FANOUT_KEYS, JOIN_FIRST},         {"mget", FANOUT_SLOTS, JOIN_VALUES},
    {"mset", FANOUT_WRITTEN, JOIN_OK},        {"msetnx", FANOUT_KEYS, JOIN_FIRST},
    {"ping", FANOUT_KEYS, JOIN_FIRST},        {"info", FANOUT_KEYS, JOIN_FIRST},
    {"dbsize", FANOUT_MASTERS, JOIN_SUM},     {"script|load", FANOUT_MASTERS, JOIN_OK},
    {"config|get", FANOUT_KEYS, JOIN_FIRST},  {"config|set", FANOUT_NODES, JOIN_OK},
    {"scan", FANOUT_SCAN, JOIN_FIRST},        {"wait", FANOUT_WAIT, JOIN_LEAST},
    {"client|kill", FANOUT_NODES, JOIN_KILL}, {"client|list", FANOUT_NODES, JOIN_TEXT},
};

static void rows_by_hand(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT_OF(known); i++) {
        const struct command *command =
            command_by_name(command_table_known(), slice_str(known[i].name));
        assert_non_null(command);
        assert_int_equal(command->fanout, known[i].to);
        assert_int_equal(command->join, known[i].join);
    }
}

static void every_row_is_a_command(void **state)
{
    (void)state;
    static const char *const names[] = {
#define ROW(name, to, join) name,
#include "limit/command/fanout.def"
#undef ROW
    };
    for (size_t i = 0; i < COUNT_OF(names); i++)
        if (!slice_eq(slice_str(names[i]), SLICE("waitaof"))) /* from Redis 7.2 on */
            assert_non_null(command_by_name(command_table_known(), slice_str(names[i])));
}

static struct fanout_way tipped(const char *name, const char *const *tips, size_t n)
{
    struct fanout_tips read = {0};
    for (size_t i = 0; i < n; i++)
        fanout_read_tip(&read, slice_str(tips[i]));
    return fanout_of(slice_str(name), &read);
}

static void tips(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        const char *tips[3];
        size_t n;
        enum fanout to;
        enum join join;
    } cases[] = {
        {"new.one",
         {"nondeterministic_output", "request_policy:all_shards", "response_policy:agg_sum"},
         3,
         FANOUT_MASTERS,
         JOIN_SUM},
        {"new.one",
         {"response_policy:agg_logical_and", "request_policy:all_nodes"},
         2,
         FANOUT_NODES,
         JOIN_AND},
        {"new.one",
         {"request_policy:all_nodes", "response_policy:one_succeeded"},
         2,
         FANOUT_NODES,
         JOIN_ANY},
        {"new.one",
         {"request_policy:multi_shard", "response_policy:agg_sum"},
         2,
         FANOUT_KEYS,
         JOIN_FIRST},
        {"new.one",
         {"request_policy:all_shards", "response_policy:special"},
         2,
         FANOUT_KEYS,
         JOIN_FIRST},
        {"new.one", {"request_policy:all_shards"}, 1, FANOUT_KEYS, JOIN_FIRST},
        {"new.one",
         {"request_policy:all_shards_of_some_kind", "response_policy:agg_sum"},
         2,
         FANOUT_KEYS,
         JOIN_FIRST},
        {"MSETNX",
         {"request_policy:multi_shard", "response_policy:agg_min"},
         2,
         FANOUT_KEYS,
         JOIN_FIRST},
        {"ping",
         {"request_policy:all_shards", "response_policy:all_succeeded"},
         2,
         FANOUT_KEYS,
         JOIN_FIRST},
        {"client|setname",
         {"request_policy:all_nodes", "response_policy:all_succeeded"},
         2,
         FANOUT_KEYS,
         JOIN_FIRST},
        {"client|setinfo",
         {"request_policy:all_nodes", "response_policy:all_succeeded"},
         2,
         FANOUT_KEYS,
         JOIN_FIRST},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct fanout_way way = tipped(cases[i].name, cases[i].tips, cases[i].n);
        assert_int_equal(way.to, cases[i].to);
        assert_int_equal(way.join, cases[i].join);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_by_hand),
        cmocka_unit_test(every_row_is_a_command),
        cmocka_unit_test(tips),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
