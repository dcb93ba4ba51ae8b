/* Tests of splitting requests of several slots: by slot, by key, and the position of each value. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "limit/command/command.h"
#include "limit/command/slot.h"
#include "resp/emit.h"

#define COUNT_OF(a) (sizeof(a) / sizeof(a)[0])
#define WORDS 12
#define ROOM 4096

struct words {
    const char *words[WORDS];
};

static struct slice request_of(const struct words *words, char *out, uint32_t *argc)
{
    struct slice args[WORDS];
    uint32_t n = 0;
    for (; n < WORDS && words->words[n] != NULL; n++)
        args[n] = slice_str(words->words[n]);
    *argc = n;
    return slice_of(out, emit_array(out, args, n));
}

static const struct command *command_of(const char *name)
{
    const struct command *command = command_by_name(command_table_known(), slice_str(name));
    assert_non_null(command);
    return command;
}

static void assert_request(struct build *out, const struct words *wanted)
{
    char room[ROOM];
    uint32_t argc;
    struct slice request = request_of(wanted, room, &argc);
    assert_false(out->is_broken);
    if (!slice_eq(slice_of(out->at, out->len), request))
        fail_msg("%.*s is not %.*s", (int)out->len, out->at, (int)request.len, request.at);
    build_fini(out);
}

/* Slots: a 15495, b 3300, c 7365, d 11298; {a}1, {a}2 as a. */
static const struct {
    const char *name;
    struct words request;
    struct words parts[4];
    uint32_t where[WORDS][2]; /* of each key: part, index */
} rows[] = {
    {"mget",
     {{"MGET", "a", "b", "{a}1", "c", "b", "a"}},
     {{{"MGET", "a", "{a}1", "a"}}, {{"MGET", "b", "b"}}, {{"MGET", "c"}}},
     {{0, 0}, {1, 0}, {0, 1}, {2, 0}, {1, 1}, {0, 2}}},
    {"del", {{"dEl", "a", "b"}}, {{{"dEl", "a"}}, {{"dEl", "b"}}}, {{0, 0}, {1, 0}}},
    {"exists", {{"exists", "a", "a"}}, {{{"exists", "a", "a"}}}, {{0, 0}, {0, 1}}},
    {"touch", {{"touch", "", "b"}}, {{{"touch", ""}}, {{"touch", "b"}}}, {{0, 0}, {1, 0}}},
    {"mset",
     {{"MSET", "a", "1", "b", "", "{a}2", "3\r\n", "a", "4"}},
     {{{"MSET", "a", "1", "{a}2", "3\r\n", "a", "4"}}, {{"MSET", "b", ""}}},
     {{0, 0}, {1, 0}, {0, 1}, {0, 2}}},
};

static void parts_of_requests(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        char room[ROOM];
        uint32_t argc;
        struct slot_split split;
        struct slice request = request_of(&rows[i].request, room, &argc);
        assert_true(slot_split_fits(command_of(rows[i].name), argc));
        assert_true(slot_split_init(&split, command_of(rows[i].name), request, argc));
        uint32_t n_parts = 0;
        while (n_parts < COUNT_OF(rows[i].parts) && rows[i].parts[n_parts].words[0] != NULL)
            n_parts++;
        assert_int_equal(split.n_parts, n_parts);
        for (uint32_t part = 0; part < n_parts; part++) {
            struct build out;
            build_init(&out, false);
            slot_split_put_part(&split, part, &out);
            assert_request(&out, &rows[i].parts[part]);
        }
        for (uint32_t key = 0; key < split.n_keys; key++) {
            assert_int_equal(split.keys[key].part, rows[i].where[key][0]);
            assert_int_equal(split.keys[key].index, rows[i].where[key][1]);
        }
        slot_split_fini(&split);
    }
}

static void single_keys(void **state)
{
    (void)state;
    const struct words request = {{"MSET", "a", "1", "b", "2", "a", "3", "{a}1", "4"}};
    static const struct words wanted[] = {
        {{"MSET", "a", "1"}}, {{"MSET", "b", "2"}}, {{"MSET", "a", "3"}}, {{"MSET", "{a}1", "4"}}};
    char room[ROOM];
    uint32_t argc;
    struct slot_split split;
    struct slice bytes = request_of(&request, room, &argc);
    assert_true(slot_split_init(&split, command_of("mset"), bytes, argc));
    for (uint32_t key = 0; key < split.n_keys; key++) {
        struct build out;
        build_init(&out, false);
        slot_split_put_key(&split, key, &out);
        assert_request(&out, &wanted[key]);
        assert_int_equal(slot_split_is_overwritten(&split, key), key == 0);
    }
    slot_split_fini(&split);
}

static void wrong_numbers_of_arguments(void **state)
{
    (void)state;
    assert_false(slot_split_fits(command_of("mget"), 1));
    assert_true(slot_split_fits(command_of("mget"), 2));
    assert_false(slot_split_fits(command_of("mset"), 1));
    assert_false(slot_split_fits(command_of("mset"), 2));
    assert_true(slot_split_fits(command_of("mset"), 3));
    assert_false(slot_split_fits(command_of("mset"), 4));
}

#define MANY 9000

/* Each of thousands of keys is in the part of its slot, and each slot has one part. */
static void many_keys(void **state)
{
    (void)state;
    struct build out;
    build_init(&out, false);
    build_array(&out, MANY + 1);
    build_bulk_str(&out, "del");
    for (unsigned i = 0; i < MANY; i++)
        build_printf_bulk(&out, "%u", i * 7);
    struct slot_split split;
    assert_true(slot_split_init(&split, command_of("del"), slice_of(out.at, out.len), MANY + 1));
    assert_int_equal(split.n_keys, MANY);
    bool *is_seen = calloc(SLOT_COUNT, sizeof *is_seen);
    uint32_t n = 0;
    for (uint32_t part = 0; part < split.n_parts; part++) {
        assert_false(is_seen[split.parts[part].slot]);
        is_seen[split.parts[part].slot] = true;
        for (uint32_t key = split.parts[part].first; key != SLOT_SPLIT_END;
             key = split.keys[key].next) {
            struct slice text = slice_of(out.at + split.keys[key].key_off, split.keys[key].key_len);
            assert_int_equal(slot_of(text), split.parts[part].slot);
            n++;
        }
    }
    assert_int_equal(n, MANY);
    free(is_seen);
    slot_split_fini(&split);
    build_fini(&out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(parts_of_requests),
        cmocka_unit_test(single_keys),
        cmocka_unit_test(wrong_numbers_of_arguments),
        cmocka_unit_test(many_keys),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
