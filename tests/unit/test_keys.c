/*
 * Tests of finding keys: every row of keys.def against COMMAND GETKEYS of Redis 7.0.15. A partial
 * request never gives a wrong key.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>

#include "dice.h"
#include "guard.h"
#include "limit/command/command.h"
#include "limit/command/keys.h"
#include "limit/command/slot.h"
#include "resp/argv.h"

#define COUNT_OF(a) (sizeof(a) / sizeof(a)[0])
#define LONGEST 4096

struct example {
    const char *words;
    const char *keys; /* in the order of the request */
};

/* The answers of COMMAND GETKEYS. */
static const struct example examples[] = {
    {"GET a", "a"},
    {"set a 1 px 10", "a"},
    {"mget a b c", "a b c"},
    {"mset a 1 b 2", "a b"},
    {"mset a 1 b", "a b"},
    {"msetnx a 1", "a"},
    {"del a", "a"},
    {"rename a b", "a b"},
    {"blpop a 1", "a"},
    {"blpop a b c 0", "a b c"},
    {"bitop and d a b", "d a b"},
    {"pfmerge d a b", "d a b"},
    {"smove a b m", "a b"},
    {"geosearchstore d s fromlonlat 1 2 byradius 1 km", "d s"},
    {"object encoding a", "a"},
    {"object help", ""},
    {"memory usage a samples 5", "a"},
    {"xgroup create a g 0", "a"},
    {"xinfo stream a", "a"},
    {"georadius_ro a 1 2 3 km", "a"},
    {"ping a", ""},
    {"config get a", ""},
    {"publish a b", ""},
    {"multi", ""},
    {"spublish a b", ""},
    {"ssubscribe a b", ""},
    {"sunsubscribe a", ""},

    {"eval s 0", ""},
    {"eval s 0 a", ""},
    {"eval s 2 a b c", "a b"},
    {"eval s 2 a b", "a b"},
    {"eval s 3 a b", ""},
    {"eval s -1 a", ""},
    {"eval s x a", ""},
    {"eval s 18446744073709551617 a", ""},
    {"eval s 9223372036854775807 a", ""},
    {"eval_ro s 1 a", "a"},
    {"evalsha s 1 a b", "a"},
    {"evalsha_ro s 2 a b", "a b"},
    {"fcall f 1 a", "a"},
    {"fcall_ro f 2 a b", "a b"},

    {"limit check n a", "a"},
    {"limit check n a cost 2 and and and AND and and peek", "a and and"},
    {"limit all fixed a 1/s and funnel", "a"},
    {"limit all fixed a 1/s and funnel b 2/s", "a b"},
    {"limit ban fixed a 1h", "a"},
    {"limit ban check n a 1h", "a"},
    {"limit unban CHECK check a", "a"},
    {"limit unban fixed check", "check"},
    {"sintercard 2 a b limit 1", "a b"},
    {"zdiff 2 a b withscores", "a b"},
    {"zinter 1 a", "a"},
    {"zintercard 2 a b limit 3", "a b"},
    {"zunion 3 a b c", "a b c"},
    {"zunion 0 a", ""},
    {"zdiffstore d 1 a", "d a"},
    {"zinterstore d 2 a b aggregate max", "d a b"},
    {"zunionstore d 2 a b weights 1 2", "d a b"},
    {"zunionstore d 0 a", ""},
    {"zunionstore d -1 a", ""},
    {"zunionstore d x a", ""},
    {"zunionstore d 3 a b", ""},
    {"lmpop 1 a LEFT", "a"},
    {"zmpop 2 a b MIN count 2", "a b"},
    {"blmpop 0 2 a b left", "a b"},
    {"bzmpop 0 1 a min", "a"},

    {"xread streams a 0", "a"},
    {"XREAD COUNT 1 BLOCK 2 STREAMS a b 0 0", "a b"},
    {"xread streams a b 0", "a"},
    {"xread streams streams 0", "streams"},
    {"xreadgroup group streams c streams a 0", "a"},
    {"xreadgroup group g streams streams a 0", "a"},
    {"xreadgroup group g c noack streams a b 0 0", "a b"},
    {"xreadgroup group g c count 1 block 3 noack streams a b c 0 0 0", "a b c"},

    {"sort a", "a"},
    {"sort a by x get store get y", "a"},
    {"sort a by store store d", "a d"},
    {"sort a STORE d STORE e", "a e"},
    {"sort a limit store 1 store e", "a e"},
    {"sort a store", "a"},
    {"sort a store store", "a store"},
    {"sort a asc alpha Store d", "a d"},
    {"sort_ro a by x", "a"},
    {"georadius a 1 2 3 km", "a"},
    {"georadius a 1 2 3 km STORE d", "a d"},
    {"georadius a 1 2 3 km STOREDIST d", "a d"},
    {"georadius a 1 2 3 km withcoord count 1 any asc store d", "a d"},
    {"georadius a 1 2 3 km STORE", "a"},
    {"georadiusbymember a m 3 km", "a"},
    {"georadiusbymember a m 3 km store d", "a d"},
    {"georadiusbymember a store 3 km storedist d asc", "a d"},
    {"migrate h 1 k 0 10", "k"},
    {"migrate h 1 k 0 10 COPY", "k"},
    {"migrate h 1 '' 0 10 KEYS a b c", "a b c"},
    {"migrate h 1 '' 0 10 COPY REPLACE AUTH keys KEYS a b c", "a b c"},
    {"migrate h 1 '' 0 10 AUTH2 u keys KEYS a b c", "a b c"},
    {"migrate h 1 '' 0 10", "''"},
    {"migrate h 1 '' 0 10 keys", "''"},
    {"migrate h 1 '' 0 10 keys keys", "keys"},
};

/* Where weir differs from COMMAND GETKEYS, and agrees with the command's execution. */
static const struct example otherwise[] = {
    {"nosuch a", ""},
    {"config nosuch a", ""},
    {"eval s 01 a", ""},                                  /* Redis replies with an error */
    {"georadius a 1 2 3 km STORE d STOREDIST e", "a e"},  /* the last key is written */
    {"georadius a 1 2 3 km STORE d STORE e", "a e"},      /* likewise */
    {"georadius a 1 2 3 km count store store d", "a d"},  /* an error, too */
    {"georadiusbymember a m 3 store store d", "a store"}, /* an error, too */
    {"xread count streams streams a 0", "a"},             /* an error, too */
    {"xread streams", ""},                                /* too few arguments from here on */
    {"rename a", ""},
    {"pfmerge d", "d"}, /* creates an empty d */
    {"sort", ""},
    {"eval s", ""},
    {"migrate h 1", ""},
    {"lmpop", ""},
    {"zunionstore d", ""},
};

static struct command_table *table;
static struct guard guard;

static int set_up(void **state)
{
    (void)state;
    table = command_table_builtin();
    guard = guard_new(LONGEST);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    command_table_put(table);
    guard_free(&guard);
    return 0;
}

struct asked {
    char bytes[LONGEST];
    size_t len;
    uint32_t argc;
    const struct command *command;
};

static void ask(struct asked *asked, const char *words)
{
    assert_true(argv_split(slice_str(words), asked->bytes, &asked->len));
    struct argv_walk walk;
    argv_walk_init(&walk, slice_of(asked->bytes, asked->len));
    asked->argc = walk.left;
    struct slice name, sub = {NULL, 0};
    assert_true(argv_next(&walk, &name));
    if (asked->argc > 1)
        assert_true(argv_next(&walk, &sub));
    asked->command = command_find(table, name, sub);
}

/* No byte behind the first `len` may be read. */
static struct slice cut(const struct asked *asked, size_t len)
{
    return slice_of(guard_place(&guard, asked->bytes, len), len);
}

static void check(const struct example *example)
{
    struct asked asked;
    ask(&asked, example->words);
    char keys[LONGEST] = "*0\r\n";
    size_t keys_len;
    assert_true(argv_split(slice_str(example->keys), keys, &keys_len));
    struct argv_walk walk = {0};
    if (keys_len > 0)
        argv_walk_init(&walk, slice_of(keys, keys_len));
    struct slice request = cut(&asked, asked.len), wanted, key;
    if (keys_count(asked.command, request, asked.argc) != walk.left)
        fail_msg("%s: %u keys", example->words, keys_count(asked.command, request, asked.argc));
    bool has_key = argv_next(&walk, &wanted);
    assert_int_equal(keys_first(asked.command, request, asked.argc, &key), has_key);
    if (has_key && !slice_eq(key, wanted))
        fail_msg("%s: first key %.*s", example->words, (int)key.len, key.at);
}

static void keys_are_where_redis_finds_them(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT_OF(examples); i++)
        check(&examples[i]);
}

static void keys_are_where_redis_uses_them(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT_OF(otherwise); i++)
        check(&otherwise[i]);
}

/* ---- the rows ---- */

static const char *const rows[] = {
#define ROW(name, ...) name,
#include "limit/command/keys.def"
#undef ROW
};

static bool has_row(const char *name)
{
    for (size_t i = 0; i < COUNT_OF(rows); i++)
        if (strcmp(rows[i], name) == 0)
            return true;
    return false;
}

static void every_row_is_a_command_with_an_example(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        const struct command *command = command_by_name(table, slice_str(rows[i]));
        if (!command)
            fail_msg("keys.def: %s is no command of Redis 7", rows[i]);
        size_t n = 0;
        struct asked asked;
        for (size_t j = 0; j < COUNT_OF(examples); j++) {
            ask(&asked, examples[j].words);
            n += asked.command == command;
        }
        if (n == 0)
            fail_msg("keys.def: %s has no example", rows[i]);
    }
}

static void whatever_moves_its_keys_has_a_row(void **state)
{
    (void)state;
    for (size_t id = 1; id < command_table_count(table); id++) {
        const struct command *command = command_table_row(table, id);
        if ((command->flags & CMD_MOVABLEKEYS) && !has_row(command->name))
            fail_msg("keys.def: %s is flagged movablekeys and has no row", command->name);
        if (!has_row(command->name))
            assert_int_equal(command->keys, KEYS_POSITION);
    }
}

static void a_later_table_has_the_rules_too(void **state)
{
    (void)state;
    struct command_table *own = command_table_new();
    command_table_add(own,
                      &(struct command_info){.name = SLICE("XREAD"), .flags = CMD_MOVABLEKEYS});
    assert_int_equal(command_by_name(own, SLICE("xread"))->keys, KEYS_STREAMS);
    command_table_put(own);
}

/* A module may report any positions for its commands. */
static void positions_that_make_no_sense(void **state)
{
    (void)state;
    static const int16_t odd[] = {INT16_MIN, -2, -1, 0, 1, 2, 3, 4, INT16_MAX};
    struct asked asked;
    ask(&asked, "mget a b c");
    struct slice request = cut(&asked, asked.len), key;
    struct command command = *asked.command;
    for (size_t i = 0; i < COUNT_OF(odd) * COUNT_OF(odd) * COUNT_OF(odd); i++) {
        command.first_key = odd[i % COUNT_OF(odd)];
        command.last_key = odd[i / COUNT_OF(odd) % COUNT_OF(odd)];
        command.key_step = odd[i / COUNT_OF(odd) / COUNT_OF(odd)];
        for (uint32_t argc = 0; argc <= 4; argc++) {
            uint32_t count = keys_count(&command, request, argc);
            assert_in_range(count, 0, argc > 0 ? argc - 1 : 0);
            assert_int_equal(keys_first(&command, request, argc, &key), count > 0);
        }
    }
}

/* ---- requests that end early ---- */

static void a_part_tells_nothing_untrue(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT_OF(examples); i++) {
        struct asked asked;
        ask(&asked, examples[i].words);
        struct slice whole = slice_of(asked.bytes, asked.len), first, key;
        uint32_t count = keys_count(asked.command, whole, asked.argc);
        bool has_first = keys_first(asked.command, whole, asked.argc, &first);
        for (size_t len = 0; len < asked.len; len++) {
            struct slice part = cut(&asked, len);
            assert_true(keys_count(asked.command, part, asked.argc) <= count);
            if (asked.command->keys == KEYS_POSITION)
                assert_int_equal(keys_count(asked.command, part, asked.argc), count);
            if (keys_first(asked.command, part, asked.argc, &key))
                assert_true(has_first && slice_eq(key, first) && key.at >= part.at &&
                            key.at + key.len <= part.at + len);
        }
    }
}

static void what_is_out_of_sight_counts_the_most(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT_OF(examples); i++) {
        struct asked asked;
        ask(&asked, examples[i].words);
        struct slice whole = slice_of(asked.bytes, asked.len), key;
        uint32_t count = keys_count(asked.command, whole, asked.argc);
        bool has_first = keys_first(asked.command, whole, asked.argc, &key);
        assert_int_equal(keys_most(asked.command, whole, asked.argc), count);
        assert_false(keys_are_hidden(asked.command, whole, asked.argc));
        for (size_t len = 0; len < asked.len; len++) {
            struct slice part = cut(&asked, len);
            uint32_t most = keys_most(asked.command, part, asked.argc);
            bool is_seen = keys_first(asked.command, part, asked.argc, &key);
            if (most < count || most > asked.argc + 1)
                fail_msg("%s, the first %zu bytes: %u keys", examples[i].words, len, most);
            assert_int_equal(keys_are_hidden(asked.command, part, asked.argc) && is_seen, false);
            assert_true(is_seen || !has_first || keys_are_hidden(asked.command, part, asked.argc));
        }
    }
}

static void a_script_hides_what_comes_behind_it(void **state)
{
    (void)state;
    static const struct slice part = SLICE("*6\r\n$4\r\nEVAL\r\n$99999\r\nreturn");
    const struct command *eval = command_by_name(table, SLICE("eval"));
    assert_int_equal(keys_count(eval, part, 6), 0);
    assert_int_equal(keys_most(eval, part, 6), 3);
    assert_true(keys_are_hidden(eval, part, 6));
    assert_int_equal(keys_most(eval, part, 3), 0);
    assert_false(keys_are_hidden(eval, part, 3)); /* EVAL script 0 */
    const struct command *get = command_by_name(table, SLICE("get"));
    assert_true(keys_are_hidden(get, SLICE("*2\r\n$3\r\nGET\r\n$99999\r\nkkk"), 2));
    assert_int_equal(keys_most(get, SLICE("*2\r\n$3\r\nGET\r\n$99999\r\nkkk"), 2), 1);
}

static void blocking_is_an_option(void **state)
{
    (void)state;
    static const struct {
        const char *words;
        enum keys_sight sight;
    } cases[] = {
        {"xread streams a 0", KEYS_ABSENT},
        {"xread count 1 streams a 0", KEYS_ABSENT},
        {"xread block 0 streams a 0", KEYS_SEEN},
        {"xread count 1 BLOCK 10 streams a 0", KEYS_SEEN},
        {"xread streams block 0", KEYS_ABSENT},
        {"xread streams a block b 0 0 0", KEYS_ABSENT},
        {"xread count block streams a 0", KEYS_ABSENT},
        {"xreadgroup group block block streams a >", KEYS_ABSENT},
        {"xreadgroup group g c noack block 5 streams a >", KEYS_SEEN},
        {"xread", KEYS_ABSENT},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct asked asked;
        ask(&asked, cases[i].words);
        assert_true(keys_may_block(asked.command));
        if (keys_block(asked.command, slice_of(asked.bytes, asked.len), asked.argc) !=
            cases[i].sight)
            fail_msg("%s", cases[i].words);
        for (size_t len = 0; len < asked.len; len++) {
            enum keys_sight sight = keys_block(asked.command, cut(&asked, len), asked.argc);
            assert_true(sight == cases[i].sight || sight == KEYS_HIDDEN);
        }
    }
    assert_false(keys_may_block(command_by_name(table, SLICE("blpop"))));
    assert_false(keys_may_block(command_by_name(table, SLICE("get"))));
}

static void a_fixed_layout_is_counted_without_the_bytes(void **state)
{
    (void)state;
    struct slice key, none = {NULL, 0};
    const struct command *mset = command_by_name(table, SLICE("mset"));
    assert_int_equal(keys_count(mset, none, 2000001), 1000000);
    assert_false(keys_first(mset, none, 2000001, &key));
    assert_int_equal(keys_count(mset, SLICE("*5\r\n$4\r\nMSET\r\n$1\r\nk\r\n$99999999\r\nvvv"), 5),
                     2);
    assert_true(
        keys_first(mset, SLICE("*5\r\n$4\r\nMSET\r\n$1\r\nk\r\n$99999999\r\nvvv"), 5, &key));
    assert_true(slice_eq(key, SLICE("k")));
}

static void streams_are_counted_without_their_bytes(void **state)
{
    (void)state;
    struct slice key;
    const struct command *xread = command_by_name(table, SLICE("xread"));
    assert_int_equal(
        keys_count(xread, SLICE("*2002\r\n$5\r\nXREAD\r\n$7\r\nSTREAMS\r\n$4\r\nab"), 2002), 1000);
    assert_false(
        keys_first(xread, SLICE("*2002\r\n$5\r\nXREAD\r\n$7\r\nSTREAMS\r\n$4\r\nab"), 2002, &key));
}

/* ---- slots ---- */

/* The slots of CLUSTER KEYSLOT: a 15495, b 3300, c 7365, d 11298, foo 12182. */
static void one_slot_for_all_keys(void **state)
{
    (void)state;
    static const struct {
        const char *words;
        int32_t slot;
    } cases[] = {
        {"get a", 15495},
        {"get foo", 12182},
        {"set {foo}1 a", 12182},
        {"mget a {a} x{a}", 15495},
        {"mget a b", KEYS_CROSSING},
        {"mget a a b", KEYS_CROSSING},
        {"mset a b {a}1 c", 15495},
        {"mset a 1 b 2", KEYS_CROSSING},
        {"del a", 15495},
        {"rename c {c}2", 7365},
        {"rename c d", KEYS_CROSSING},
        {"bitop and d {d}1 {d}2", 11298},
        {"bitop and d a", KEYS_CROSSING},
        {"blpop a b 0", KEYS_CROSSING},
        {"object encoding b", 3300},
        {"spublish a b", 15495},
        {"spublish {foo}a b", 12182},
        {"ssubscribe a", 15495},
        {"ssubscribe a {a}b x{a}", 15495},
        {"ssubscribe a b", KEYS_CROSSING},
        {"sunsubscribe b {b}c", 3300},
        {"sunsubscribe b c", KEYS_CROSSING},
        {"sunsubscribe", KEYS_NO_SLOT},
        {"subscribe a", KEYS_NO_SLOT},
        {"publish a b", KEYS_NO_SLOT},
        {"ping a", KEYS_NO_SLOT},
        {"multi", KEYS_NO_SLOT},
        {"eval s 0 a b", KEYS_NO_SLOT},
        {"eval s 1 a b", 15495},
        {"eval s 2 a b", KEYS_CROSSING},
        {"zunionstore d 1 {d}s", 11298},
        {"zunionstore d 1 a", KEYS_CROSSING},
        {"zdiffstore a 2 {a} b", KEYS_CROSSING},
        {"sort a", 15495},
        {"sort a by b get c store {a}d", 15495},
        {"sort a store d", KEYS_CROSSING},
        {"sort a store d store {a}", 15495},
        {"xread block 0 streams a {a} b c", 15495},
        {"xread streams a b 0 0", KEYS_CROSSING},
        {"migrate h 1 '' 0 10 KEYS a {a}", 15495},
        {"migrate h 1 '' 0 10 KEYS a b", KEYS_CROSSING},
        {"limit all fixed a 1/s and funnel b 2/s", KEYS_CROSSING},
        {"limit all fixed a 1/s and funnel {a}b 2/s", 15495},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct asked asked;
        ask(&asked, cases[i].words);
        int32_t slot = keys_slot(asked.command, cut(&asked, asked.len), asked.argc);
        if (slot != cases[i].slot)
            fail_msg("%s: slot %d", cases[i].words, (int)slot);
    }
}

static void a_part_has_the_slot_of_the_whole_or_none_yet(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT_OF(examples); i++) {
        struct asked asked;
        ask(&asked, examples[i].words);
        int32_t whole = keys_slot(asked.command, slice_of(asked.bytes, asked.len), asked.argc);
        assert_true(whole != KEYS_HIDDEN_SLOT);
        for (size_t len = 0; len < asked.len; len++) {
            int32_t slot = keys_slot(asked.command, cut(&asked, len), asked.argc);
            if (slot != whole && slot != KEYS_HIDDEN_SLOT)
                fail_msg("%s, the first %zu bytes: slot %d", examples[i].words, len, (int)slot);
        }
    }
}

/* Bytes that the scanner has not accepted, and a wrong argc. */
static void requests_share_a_key_or_not(void **state)
{
    (void)state;
    static const struct {
        const char *one, *other;
        bool is_shared;
    } cases[] = {
        {"get a", "set a 1", true},
        {"get a", "set b a", false},
        {"mset a b c d", "mget b d", false},
        {"mset a b c d", "mget b d c", true},
        {"zunionstore d 2 a b", "get d", true},
        {"zunionstore d 2 a b", "zadd b 1 d", true},
        {"sort a by get store d", "mget get by store", false},
        {"ping a", "get a", false},
        {"xread streams a b 1 2", "del 1 2", false},
        {"xread streams a b 1 2", "del 1 b", true},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct asked one, other;
        ask(&one, cases[i].one);
        ask(&other, cases[i].other);
        struct slice a = slice_of(one.bytes, one.len), b = slice_of(other.bytes, other.len);
        assert_int_equal(keys_overlap(one.command, a, one.argc, other.command, b, other.argc),
                         cases[i].is_shared);
        assert_int_equal(keys_overlap(other.command, b, other.argc, one.command, a, one.argc),
                         cases[i].is_shared);
    }
    struct asked whole, get;
    ask(&whole, "mget a b c");
    ask(&get, "get d");
    struct slice part = cut(&whole, whole.len - 5), request = slice_of(get.bytes, get.len);
    assert_true(keys_overlap(whole.command, part, whole.argc, get.command, request, get.argc));
}

static void nonsense_stays_inside(void **state)
{
    (void)state;
    static const char bytes[] = "*$\r\n-0123456789aS";
    uint64_t seed = 7;
    for (int round = 0; round < 100000; round++) {
        struct asked asked;
        ask(&asked, examples[dice_below(&seed, COUNT_OF(examples))].words);
        for (uint64_t n = dice_below(&seed, 4); n > 0; n--)
            asked.bytes[dice_below(&seed, asked.len)] = bytes[dice_below(&seed, sizeof bytes - 1)];
        struct slice request = cut(&asked, asked.len - dice_below(&seed, 5)), key;
        uint32_t argc = dice_below(&seed, 2) ? asked.argc : (uint32_t)dice_below(&seed, 20);
        assert_in_range(keys_count(asked.command, request, argc), 0, argc > 0 ? argc - 1 : 0);
        if (keys_first(asked.command, request, argc, &key))
            assert_true(key.at >= request.at && key.at + key.len <= request.at + request.len);
        assert_in_range(keys_slot(asked.command, request, argc) - KEYS_HIDDEN_SLOT, 0,
                        SLOT_COUNT - KEYS_HIDDEN_SLOT - 1);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(keys_are_where_redis_finds_them),
        cmocka_unit_test(keys_are_where_redis_uses_them),
        cmocka_unit_test(every_row_is_a_command_with_an_example),
        cmocka_unit_test(whatever_moves_its_keys_has_a_row),
        cmocka_unit_test(a_later_table_has_the_rules_too),
        cmocka_unit_test(positions_that_make_no_sense),
        cmocka_unit_test(a_part_tells_nothing_untrue),
        cmocka_unit_test(what_is_out_of_sight_counts_the_most),
        cmocka_unit_test(a_script_hides_what_comes_behind_it),
        cmocka_unit_test(blocking_is_an_option),
        cmocka_unit_test(a_fixed_layout_is_counted_without_the_bytes),
        cmocka_unit_test(streams_are_counted_without_their_bytes),
        cmocka_unit_test(one_slot_for_all_keys),
        cmocka_unit_test(a_part_has_the_slot_of_the_whole_or_none_yet),
        cmocka_unit_test(requests_share_a_key_or_not),
        cmocka_unit_test(nonsense_stays_inside),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
