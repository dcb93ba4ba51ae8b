/*
 * Tests that inline lines become the words that Redis makes of them. The rows are from Redis' tests
 * and a reference list. Random lines are compared with sdssplitargs (hiredis has a copy). Output is
 * written in front of a guard page.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <hiredis/sds.h>
#include <stdio.h>
#include <stdlib.h>

#include "resp/argv.h"
#include "resp/emit.h"
#include "resp/scan.h"

#include "dice.h"
#include "guard.h"
#include "show.h"

#define ROOM (1 << 20)

static struct guard in_guard;
static struct guard out_guard;

/* Splits at the guard pages. *request is a whole request, or empty. */
static bool split(struct slice line, struct slice *request)
{
    size_t room = ARGV_INLINE_ROOM(line.len);
    char *out = guard_room(&out_guard, room);
    size_t len = SIZE_MAX;
    if (!argv_split(slice_of(guard_place(&in_guard, line.at, line.len), line.len), out, &len))
        return false;
    assert_in_range(len, 0, room);
    *request = slice_of(out, len);
    return true;
}

/* The request scanner accepts the request as one whole frame. */
static void assert_is_request(struct slice request)
{
    struct request_scan scan = {0};
    size_t used;
    assert_int_equal(request_scan(&scan, &request_limits_normal, request.at, request.len, &used),
                     SCAN_FRAME);
    assert_int_equal(used, request.len);
    assert_false(scan.is_inline);
}

/* "[a b]"; "!" for unbalanced quotes. The caller frees the text. */
static char *words_of(struct slice line)
{
    char *text;
    size_t len;
    FILE *out = open_memstream(&text, &len);
    struct slice request;
    if (!split(line, &request)) {
        fputs("!", out);
    } else if (request.len == 0) {
        fputs("[]", out);
    } else {
        struct argv_walk walk;
        struct slice word;
        assert_is_request(request);
        argv_walk_init(&walk, request);
        for (char before = '['; argv_next(&walk, &word); before = ' ') {
            putc(before, out);
            show_bytes(out, word.at, word.len);
        }
        putc(']', out);
    }
    fclose(out);
    return text;
}

static void test_words(void **state)
{
    (void)state;
    static const struct {
        const char *line;
        const char *words;
    } rows[] = {
        {"", "[]"},
        {"\r\n", "[]"},
        {"\n", "[]"},
        {" \t\v\f\r\n", "[]"},
        {"PING\r\n", "[PING]"},
        {"PING\n", "[PING]"},
        {"PING", "[PING]"},
        {"PING\r\r\n", "[PING]"},
        {"  GET\t k  \r\n", "[GET k]"},
        {"a a a a a a a a a a a\n", "[a a a a a a a a a a a]"},
        {"ECHO 'a b'\r\n", "[ECHO a b]"},
        {"ECHO \"a\\r\\nPING\"\r\n", "[ECHO a\\r\\nPING]"},
        {"\"\"", "[]"}, /* one empty word; see test_empty_words */
        {"\"\\n\\r\\t\\b\\a\"", "[\\n\\r\\x09\\x08\\x07]"},
        {"\"\\x00\\xfF\"", "[\\x00\\xff]"},
        {"\"x\\x4\"", "[xx4]"},
        {"\"\\xg1\\q\\\"\\\\\"", "[xg1q\"\\]"},
        {"'\\n\\x41'", "[\\n\\x41]"},
        {"'it\\'s'", "[it's]"},
        {"'a\"b'", "[a\"b]"},
        {"\"a'b\"", "[a'b]"},
        {"foo\"bar\" baz", "[foobar baz]"},
        {"foo'bar'\tbaz", "[foobar baz]"},
        {"\"a\"\vb", "[a b]"},
        {"a\\x41", "[a\\x41]"},
        {"a\vb\fc", "[a\\x0bb\\x0cc]"}, /* \v and \f end no word */
        {"\xff\xfe", "[\\xff\\xfe]"},
        {"\"PING\r\n", "!"},
        {"'PING\r\n", "!"},
        {"set \"\"\"test-key\"\"\" test-value\r\n", "!"},
        {"\"", "!"},
        {"'", "!"},
        {"\"\\", "!"},
        {"\"\\\"", "!"},
        {"\"\\x4", "!"},
        {"'\\'", "!"},
        {"\"a\"b", "!"},
        {"'a'b", "!"},
        {"'a''b'", "!"},
        {"a\"b\"c", "!"},
        {"ok \"", "!"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char *got = words_of(slice_str(rows[i].line));
        if (strcmp(got, rows[i].words) != 0)
            fail_msg("line \"%s\": got %s, want %s", rows[i].line, got, rows[i].words);
        free(got);
    }
}

static void assert_split_is(const char *line, const char *wanted)
{
    struct slice request;
    assert_true(split(slice_str(line), &request));
    assert_true(slice_eq(request, slice_str(wanted)));
}

static void test_multibulk_form(void **state)
{
    (void)state;
    assert_split_is("\"\"", "*1\r\n$0\r\n\r\n");
    assert_split_is("'' \"\"\r\n", "*2\r\n$0\r\n\r\n$0\r\n\r\n");
    assert_split_is("SET k 0123456789\r\n", "*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$10\r\n0123456789\r\n");
    assert_split_is(" \r\n", "");
}

/*
 * ARGV_INLINE_ROOM is enough for the words that grow most, at every length where a header gets
 * another digit.
 */
static void test_room(void **state)
{
    (void)state;
    static const char *const units[] = {"a ",         "\"\" ", "ab ",
                                        "012345678 ", "a\n",   "abcdefghijklmnop"};
    static char line[SCAN_LINE_MAX];
    for (size_t u = 0; u < sizeof units / sizeof units[0]; u++) {
        size_t size = strlen(units[u]);
        for (size_t i = 0; i < sizeof line; i++)
            line[i] = units[u][i % size];
        for (size_t len = 0; len < sizeof line; len += len < 300 ? 1 : len / 3) {
            struct slice request;
            bool balanced = split(slice_of(line, len), &request);
            assert_true(balanced || units[u][0] == '"');
            if (balanced && request.len > 0)
                assert_is_request(request);
        }
    }
}

/* `line` has no NUL, as sdssplitargs needs. */
static void expect_as_redis(const char *line)
{
    int argc;
    sds *words = sdssplitargs(line, &argc);
    struct slice request;
    bool balanced = split(slice_str(line), &request);
    if (balanced != (words != NULL))
        fail_msg("line \"%s\": Redis says %s", line, words ? "words" : "unbalanced");
    if (words && argc == 0)
        assert_int_equal(request.len, 0);
    if (words && argc > 0) {
        struct argv_walk walk;
        struct slice word;
        assert_is_request(request);
        argv_walk_init(&walk, request);
        for (int i = 0; i < argc; i++) {
            assert_true(argv_next(&walk, &word));
            if (!slice_eq(word, slice_of(words[i], sdslen(words[i]))))
                fail_msg("line \"%s\": word %d is \"%.*s\"", line, i, (int)word.len, word.at);
        }
        assert_false(argv_next(&walk, &word));
    }
    sdsfreesplitres(words, argc);
}

static void test_random_lines(void **state)
{
    (void)state;
    static const char *const alphabets[] = {"\"'\\ x4a", "ab \"\\nrt\r\n", "' \\\"\t\v\f",
                                            "x0123456789abcdefABCDEF\\\" "};
    uint64_t seed = 5;
    for (int round = 0; round < 200000; round++) {
        char line[40];
        const char *letters = alphabets[round % 4];
        size_t len = dice_below(&seed, 1 + dice_below(&seed, sizeof line));
        for (size_t i = 0; i < len; i++)
            line[i] = dice_below(&seed, 20) ? letters[dice_below(&seed, strlen(letters))]
                                            : (char)dice(&seed);
        for (size_t i = 0; i < len; i++)
            if (line[i] == '\0')
                line[i] = '"';
        line[len] = '\0';
        expect_as_redis(line);
    }
}

static void test_walk_of_empty_requests(void **state)
{
    (void)state;
    static const char *const rows[] = {"*0\r\n", "*-1\r\n", "*-9223372036854775808\r\n"};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct argv_walk walk;
        struct slice arg;
        argv_walk_init(&walk,
                       slice_of(guard_place(&in_guard, rows[i], strlen(rows[i])), strlen(rows[i])));
        assert_false(argv_next(&walk, &arg));
    }
}

static void test_walk(void **state)
{
    (void)state;
    static const char request[] = "*3\r\n$3\r\nSET\r\n$0\r\n\r\n$12\r\n*1\r\n$1\r\nx\r\n \r\n";
    struct argv_walk walk;
    struct slice arg;
    argv_walk_init(
        &walk, slice_of(guard_place(&in_guard, request, sizeof request - 1), sizeof request - 1));
    assert_int_equal(walk.left, 3);
    assert_true(argv_next(&walk, &arg) && slice_eq(arg, SLICE("SET")));
    assert_true(argv_next(&walk, &arg) && slice_eq(arg, SLICE("")));
    assert_true(argv_next(&walk, &arg) && slice_eq(arg, SLICE("*1\r\n$1\r\nx\r\n ")));
    assert_false(argv_next(&walk, &arg));
}

static void test_emit(void **state)
{
    (void)state;
    static const struct {
        int64_t n;
        const char *text;
    } rows[] = {
        {0, ":0\r\n"},
        {7, ":7\r\n"},
        {10, ":10\r\n"},
        {-1, ":-1\r\n"},
        {INT64_MAX, ":9223372036854775807\r\n"},
        {INT64_MIN, ":-9223372036854775808\r\n"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        size_t len = strlen(rows[i].text);
        char *out = guard_room(&out_guard, len);
        assert_in_range(len, 1, EMIT_HEADER_MAX);
        assert_int_equal(emit_header(out, ':', rows[i].n), len);
        assert_memory_equal(out, rows[i].text, len);
    }
    const struct slice args[] = {SLICE("GET"), {NULL, 0}, SLICE("a\r\nb")};
    struct slice wanted = SLICE("*3\r\n$3\r\nGET\r\n$0\r\n\r\n$4\r\na\r\nb\r\n");
    char *out = guard_room(&out_guard, wanted.len);
    assert_int_equal(emit_array(out, args, 3), wanted.len);
    assert_memory_equal(out, wanted.at, wanted.len);
    assert_int_equal(emit_array(guard_room(&out_guard, 4), args, 0), 4);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_words),
        cmocka_unit_test(test_multibulk_form),
        cmocka_unit_test(test_room),
        cmocka_unit_test(test_random_lines),
        cmocka_unit_test(test_walk_of_empty_requests),
        cmocka_unit_test(test_walk),
        cmocka_unit_test(test_emit),
    };
    in_guard = guard_new(ROOM);
    out_guard = guard_new(ROOM);
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    guard_free(&in_guard);
    guard_free(&out_guard);
    return failed;
}
