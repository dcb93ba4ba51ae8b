/*
 * Tests of the reply scanner. Every input gives one trace, however the input is cut, with each
 * piece in front of a guard page.
 *
 * A trace shows frames in order, each as its kind and its length in bytes: "+5 *12". "..." at the
 * end: the last frame goes on; "!": the stream is bad.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/num.h"
#include "resp/scan.h"

#include "dice.h"
#include "guard.h"

#define ROOM 409600

static struct guard guard;

/*
 * Scans one piece, at the guard page. `*frame`: where the current frame begins in the input. False:
 * the stream is bad.
 */
static bool trace_piece(FILE *out, struct reply_scan *scan, struct slice input, size_t from,
                        size_t n, size_t *frame)
{
    const char *piece = guard_place(&guard, input.at + from, n);
    size_t off = 0;
    while (off < n) {
        size_t used = SIZE_MAX, used_plain;
        uint32_t n_plain = reply_scan_plain(scan, piece + off, n - off, 1, &used_plain);
        enum scan_result result = reply_scan(scan, piece + off, n - off, &used);
        assert_true(n_plain == 0 ? used_plain == 0 : result == SCAN_FRAME && used_plain == used);
        if (result == SCAN_BAD) {
            fputs("!", out);
            return false;
        }
        off += used;
        assert_int_equal(result == SCAN_FRAME, scan->open == 0);
        if (result == SCAN_MORE) {
            assert_int_equal(off, n);
            break;
        }
        fprintf(out, "%s%c%zu", ftell(out) > 0 ? " " : "", scan->kind, from + off - *frame);
        *frame = from + off;
    }
    return true;
}

/*
 * Cuts the input into one piece of `first` bytes and more of `rest` bytes. The caller frees the
 * trace.
 */
static char *trace(struct slice input, size_t first, size_t rest)
{
    char *text;
    size_t len;
    FILE *out = open_memstream(&text, &len);
    struct reply_scan scan = {0};
    size_t frame = 0;
    bool good = true;
    for (size_t at = 0, n = first; at < input.len && good; at += n, n = rest) {
        if (n > input.len - at)
            n = input.len - at;
        good = trace_piece(out, &scan, input, at, n, &frame);
    }
    if (good && frame < input.len)
        fputs("...", out);
    fclose(out);
    return text;
}

static void expect_trace(const char *name, struct slice input, size_t first, size_t rest,
                         const char *wanted)
{
    char *got = trace(input, first, rest);
    if (strcmp(got, wanted) != 0)
        fail_msg("%s, cut after %zu, then every %zu: got \"%s\", want \"%s\"", name, first, rest,
                 got, wanted);
    free(got);
}

static void expect_however_cut(const char *name, struct slice input, const char *wanted)
{
    for (size_t first = 1; first <= input.len; first++)
        expect_trace(name, input, first, input.len, wanted);
    for (size_t size = 1; size <= 7; size++)
        expect_trace(name, input, size, size, wanted);
}

struct row {
    const char *name;
    struct slice input;
    const char *trace;
};

static void expect_rows(const struct row *rows, size_t count)
{
    for (size_t i = 0; i < count; i++)
        expect_however_cut(rows[i].name, rows[i].input, rows[i].trace);
}

#define EXPECT_ROWS(rows) expect_rows(rows, sizeof(rows) / sizeof *(rows))
#define IN(literal)                                                                                \
    {                                                                                              \
        ("" literal), sizeof(literal) - 1                                                          \
    }

static void test_resp2(void **state)
{
    (void)state;
    static const struct row rows[] = {
        {"text", IN("+OK\r\n"), "+5"},
        {"empty text", IN("+\r\n"), "+3"},
        {"text beyond the short search", IN("+0123456789012345678901234567890\r\n+OK\r\n"),
         "+34 +5"},
        {"error", IN("-ERR wrong number of arguments for 'get' command\r\n"), "-50"},
        {"empty error", IN("-\r\n"), "-3"},
        {"error that looks like a number", IN("-10001\r\n"), "-8"},
        {"LF and NUL in a text", IN("+a\nb\0c\r\n"), "+8"},
        {"integer", IN(":0\r\n:1000\r\n:-1\r\n"), ":4 :7 :5"},
        {"integer limits", IN(":9223372036854775807\r\n:-9223372036854775808\r\n"), ":22 :23"},
        {"bulk", IN("$16\r\nkey:000000000001\r\n"), "$23"},
        {"empty bulk", IN("$0\r\n\r\n"), "$6"},
        {"null bulk", IN("$-1\r\n"), "$5"},
        {"bulk that looks like RESP", IN("$7\r\n*1\r\n$4\r\r\n:1\r\n"), "$13 :4"},
        {"empty array", IN("*0\r\n"), "*4"},
        {"null array", IN("*-1\r\n"), "*5"},
        {"array", IN("*3\r\n$1\r\na\r\n:5\r\n$-1\r\n+OK\r\n"), "*20 +5"},
        {"nested arrays", IN("*2\r\n*2\r\n:1\r\n:2\r\n*1\r\n*-1\r\n:7\r\n"), "*25 :4"},
        {"nested empty arrays", IN("*2\r\n*0\r\n*0\r\n:7\r\n"), "*12 :4"},
        {"errors inside", IN("*2\r\n-ERR a\r\n+b\r\n"), "*16"},
        {"pipeline", IN("+OK\r\n:1\r\n$1\r\na\r\n*1\r\n:1\r\n"), "+5 :4 $7 *8"},
    };
    EXPECT_ROWS(rows);
}

static void test_resp3(void **state)
{
    (void)state;
    static const struct row rows[] = {
        {"null", IN("_\r\n"), "_3"},
        {"booleans", IN("#t\r\n#f\r\n"), "#4 #4"},
        {"doubles", IN(",1.5\r\n,inf\r\n,-inf\r\n,nan\r\n,1e-7\r\n,1E+7\r\n,10\r\n"),
         ",6 ,6 ,7 ,6 ,7 ,7 ,5"},
        {"big number of a script", IN("(12  a\r\n"), "(8"},
        {"big numbers", IN("(1234567890123456789012\r\n(-5\r\n(+5\r\n(0012\r\n"), "(25 (5 (5 (7"},
        {"blob error", IN("!21\r\nSYNTAX invalid syntax\r\n"), "!28"},
        {"verbatim text", IN("=7\r\ntxt:abc\r\n=4\r\ntxt:\r\n"), "=13 =10"},
        {"map", IN("%2\r\n+a\r\n:1\r\n+b\r\n*2\r\n:2\r\n:3\r\n+OK\r\n"), "%28 +5"},
        {"empty map", IN("%0\r\n"), "%4"},
        {"set", IN("~2\r\n+a\r\n~0\r\n+OK\r\n"), "~12 +5"},
        {"map as a key", IN("%1\r\n%1\r\n:1\r\n:2\r\n_\r\n#t\r\n"), "%19 #4"},
        {"push", IN(">2\r\n+a\r\n+b\r\n"), ">12"},
        {"empty push", IN(">0\r\n+OK\r\n"), ">4 +5"},
        {"push between replies", IN("+OK\r\n>1\r\n+x\r\n+OK\r\n"), "+5 >8 +5"},
        {"push inside an array uses up no element",
         IN("*2\r\n:1\r\n>2\r\n+a\r\n+b\r\n:2\r\n:9\r\n"), "*24 :4"},
        {"push as the last thing before the last element", IN("*1\r\n>1\r\n+a\r\n:1\r\n:9\r\n"),
         "*16 :4"},
        {"push before a nested array", IN("*1\r\n>1\r\n+a\r\n*1\r\n:1\r\n:9\r\n"), "*20 :4"},
        {"empty push inside", IN("*1\r\n>0\r\n:1\r\n"), "*12"},
        {"push inside a push", IN(">1\r\n>1\r\n+a\r\n+b\r\n+OK\r\n"), ">16 +5"},
        {"attribute is part of its reply", IN("|1\r\n+k\r\n+v\r\n:1\r\n:9\r\n"), ":16 :4"},
        {"attribute before an array", IN("|1\r\n+k\r\n+v\r\n*2\r\n:1\r\n:2\r\n:9\r\n"), "*24 :4"},
        {"attribute before a bulk", IN("|1\r\n+k\r\n+v\r\n$3\r\nabc\r\n"), "$21"},
        {"attribute of an element", IN("*2\r\n|1\r\n+k\r\n+v\r\n:1\r\n:2\r\n:9\r\n"), "*24 :4"},
        {"attribute of an attribute's value", IN("|1\r\n+k\r\n|1\r\n+l\r\n+m\r\n+v\r\n+OK\r\n"),
         "+29"},
        {"attribute holding arrays", IN("|1\r\n*1\r\n:1\r\n%1\r\n:1\r\n:2\r\n_\r\n"), "_27"},
        {"attribute and push", IN("|1\r\n+k\r\n+v\r\n>1\r\n+p\r\n+OK\r\n"), ">20 +5"},
        {"push inside an attribute", IN("|1\r\n+k\r\n>1\r\n+p\r\n+v\r\n+OK\r\n"), "+25"},
        {"two attributes", IN("|0\r\n|1\r\n+k\r\n+v\r\n_\r\n"), "_19"},
    };
    EXPECT_ROWS(rows);
}

static void test_waiting(void **state)
{
    (void)state;
    static const struct row rows[] = {
        {"+OK, then FIN", IN("+OK"), "..."},
        {"CR", IN("+OK\r"), "..."},
        {"bulk", IN("$100\r\nabc"), "..."},
        {"attribute alone", IN("|1\r\n+k\r\n+v\r\n"), "..."},
        {"array", IN("+OK\r\n*2\r\n:1\r\n"), "+5..."},
        {"19 digits", IN(":1234567890123456789"), "..."},
        {"judged at the CR", IN(":00"), "..."},
        {"2^36 bytes", IN("$68719476736\r\n"), "..."},
        {"2^31 - 1 elements", IN("*2147483647\r\n"), "..."},
        {"2^31 - 1 pairs", IN("%2147483647\r\n"), "..."},
        {"a fake upstream's push in RESP2 is well framed", IN(">2\r\n+a\r\n"), "..."},
    };
    EXPECT_ROWS(rows);
}

static void test_lost(void **state)
{
    (void)state;
    static const struct row rows[] = {
        {"HTTP", IN("HTTP/1.1 400 Bad Request\r\n\r\n"), "!"},
        {"NULs", IN("\0\0"), "!"},
        {"blank line", IN("\r\n"), "!"},
        {"unknown type after a reply", IN("+OK\r\nx"), "+5!"},
        {"CR alone in a text", IN("+a\rb\r\n"), "!"},
        {"two CR", IN("+a\r\r\n"), "!"},
        {"LF alone", IN(":1\n"), "!"},
        {":abc", IN(":abc\r\n"), "!"},
        {"a letter second", IN(":1a\r\n"), "!"},
        {"a letter third", IN(":12a\r\n"), "!"},
        {"the byte behind '9' third", IN(":12:\r\n"), "!"},
        {"the byte before '0' third", IN(":12/\r\n"), "!"},
        {"empty integer", IN(":\r\n"), "!"},
        {"plus", IN(":+1\r\n"), "!"},
        {"leading zero", IN(":01\r\n"), "!"},
        {"minus zero", IN(":-0\r\n"), "!"},
        {"minus", IN(":-\r\n"), "!"},
        {"two minus", IN(":--1\r\n"), "!"},
        {"late minus", IN(":1-\r\n"), "!"},
        {"space", IN(":1 \r\n"), "!"},
        {"2^63", IN(":9223372036854775808\r\n"), "!"},
        {"-2^63 - 1", IN(":-9223372036854775809\r\n"), "!"},
        {"20 digits", IN(":10000000000000000000"), "!"},
        {"2^64 + 1", IN("$18446744073709551617\r\na\r\n"), "!"},
        {"$-2", IN("$-2\r\n"), "!"},
        {"$-0", IN("$-0\r\n"), "!"},
        {"empty length", IN("$\r\n"), "!"},
        {"2^36 + 1 bytes", IN("$68719476737\r\n"), "!"},
        {"10^11 bytes", IN("$99999999999\r\n"), "!"},
        {"bulk's CRLF", IN("$5\r\nhelloXX"), "!"},
        {"bulk's CR", IN("$5\r\nhello\n"), "!"},
        {"bulk's LF", IN("$5\r\nhello\rX"), "!"},
        {"bulk too long", IN("$4\r\nhello\r\n"), "!"},
        {"header's LF", IN("$5\rXhello\r\n"), "!"},
        {"null's LF", IN("$-1\rX"), "!"},
        {"*-2", IN("*-2\r\n"), "!"},
        {"2^31 elements", IN("*2147483648\r\n"), "!"},
        {"2^32 - 1 elements", IN("*4294967295\r\n"), "!"},
        {"2^32 - 1 pairs", IN("%4294967295\r\n"), "!"},
        {"an error without a word", IN("!0\r\n\r\n"), "!"},
        {"twice the count overflows", IN("%9223372036854775807\r\n"), "!"},
        {"twice an attribute's, too", IN("|9223372036854775807\r\n"), "!"},
        {"set of -1", IN("~-1\r\n"), "!"},
        {"map of -1", IN("%-1\r\n"), "!"},
        {"push of -1", IN(">-1\r\n"), "!"},
        {"attribute of -1", IN("|-1\r\n"), "!"},
        {"blob error of -1", IN("!-1\r\n"), "!"},
        {"verbatim text of -1", IN("=-1\r\n"), "!"},
        {"verbatim text too short for its format", IN("=3\r\ntxt\r\n"), "!"},
        {"and shorter than it says", IN("=3\r\ntx\r\n"), "!"},
        {"null that says something", IN("_x\r\n"), "!"},
        {"neither true nor false", IN("#x\r\n"), "!"},
        {"empty boolean", IN("#\r\n"), "!"},
        {"true, true", IN("#tt\r\n"), "!"},
        {"empty double", IN(",\r\n"), "!"},
        {"double with a comma", IN(",1,5\r\n"), "!"},
        {"double with a NUL", IN(",1\0\r\n"), "!"},
        {"streamed string", IN("$?\r\n"), "!"},
        {"streamed array", IN("*?\r\n"), "!"},
        {"chunk of a streamed string", IN(";4\r\nabcd\r\n"), "!"},
        {"end of a streamed array", IN(".\r\n"), "!"},
        {"garbage as an element", IN("*2\r\n:1\r\nx"), "!"},
    };
    EXPECT_ROWS(rows);
}

/* `count` times `unit`, then `tail`. The caller frees the text. */
static struct slice repeated(const char *unit, size_t count, const char *tail)
{
    size_t size = strlen(unit);
    char *text = malloc(count * size + strlen(tail));
    for (size_t i = 0; i < count; i++)
        memcpy(text + i * size, unit, size);
    memcpy(text + count * size, tail, strlen(tail));
    return slice_of(text, count * size + strlen(tail));
}

static void expect_repeated(const char *unit, size_t count, const char *tail, const char *wanted)
{
    struct slice input = repeated(unit, count, tail);
    expect_trace(unit, input, input.len, input.len, wanted);
    expect_trace(unit, input, 1, 1, wanted);
    expect_trace(unit, input, 5, 3, wanted);
    free((void *)(uintptr_t)input.at);
}

static void test_depth(void **state)
{
    (void)state;
    expect_repeated("*1\r\n", SCAN_DEPTH_MAX, ":1\r\n", "*240004");
    expect_repeated("*1\r\n", SCAN_DEPTH_MAX, "*0\r\n", "*240004");
    expect_repeated("*1\r\n", SCAN_DEPTH_MAX, "$-1\r\n", "*240005");
    expect_repeated("*1\r\n", SCAN_DEPTH_MAX + 1, "", "!");
    expect_repeated("*1\r\n", 100000, "", "!");
    expect_repeated("%1\r\n", SCAN_DEPTH_MAX + 1, "", "!");
    expect_repeated("|1\r\n", SCAN_DEPTH_MAX + 1, "", "!");
    expect_repeated(">1\r\n", SCAN_DEPTH_MAX + 1, "", "!");
    expect_repeated("*2\r\n:1\r\n", 1000, ":1\r\n", "*8004"); /* other elements in between */
    expect_repeated("|0\r\n", 1000, ":1\r\n", ":4004");
}

/* The scanner accepts an integer exactly when num_parse does. */
static void test_numbers_are_num_parse_s(void **state)
{
    (void)state;
    uint64_t seed = 7;
    for (int round = 0; round < 50000; round++) {
        char input[64] = ":";
        size_t len = 1 + dice_below(&seed, 22);
        for (size_t i = 1; i < len; i++)
            input[i] = "0123456789-"[dice_below(&seed, i == 1 ? 11 : 10)];
        int64_t value;
        bool is_number = num_parse(slice_of(input + 1, len - 1), &value);
        memcpy(input + len, "\r\n", 3);

        char frame[8];
        snprintf(frame, sizeof frame, ":%zu", len + 2);
        expect_trace(input, slice_of(input, len + 2), len + 2, 1, is_number ? frame : "!");
        expect_trace(input, slice_of(input, len + 2), 1, 1, is_number ? frame : "!");
    }
}

/* During a long bulk the scan knows the missing bytes and the kind. */
static void test_what_is_known_of_a_long_bulk(void **state)
{
    (void)state;
    struct reply_scan scan = {0};
    size_t used;
    assert_int_equal(reply_scan(&scan, "$100000000\r\nabc", 15, &used), SCAN_MORE);
    assert_int_equal(used, 15);
    assert_int_equal(scan.kind, '$');
    assert_int_equal(scan.open, 1);
    assert_int_equal(scan.bulk_left, 100000000 - 3);
    assert_int_equal(reply_scan(&scan, "", 0, &used), SCAN_MORE);
    assert_int_equal(used, 0);
    assert_int_equal(scan.bulk_left, 100000000 - 3);
}

static void test_nothing_changes_nothing(void **state)
{
    (void)state;
    struct reply_scan scan = {0};
    size_t used;
    assert_int_equal(reply_scan(&scan, "", 0, &used), SCAN_MORE);
    assert_int_equal(scan.open, 0);
    assert_int_equal(reply_scan(&scan, "*1\r\n:1\r\n", 8, &used), SCAN_FRAME);
    assert_int_equal(reply_scan(&scan, "", 0, &used), SCAN_MORE);
    assert_int_equal(scan.open, 0);
    assert_int_equal(scan.kind, '*');
}

static void test_long_lines_and_bulks(void **state)
{
    (void)state;
    expect_repeated("+", 60000, "\r\n", "+60002");
    expect_repeated("(1", 1, "", "...");
    char input[4200] = "$4096\r\n";
    memset(input + 7, '\r', 4096);
    memcpy(input + 7 + 4096, "\r\n+OK\r\n", 7);
    expect_however_cut("4 KiB of CR", slice_of(input, 7 + 4096 + 7), "$4105 +5");
}

static void test_plain_replies_together(void **state)
{
    (void)state;
    static const char replies[] = "+OK\r\n-ERR\r\n:12\r\n$2\r\nab\r\n$-1\r\n*0\r\n+OK\r\n";
    const size_t plain = strlen("+OK\r\n-ERR\r\n:12\r\n$2\r\nab\r\n$-1\r\n");
    struct reply_scan scan = {0};
    size_t used;
    assert_int_equal(reply_scan_plain(&scan, replies, strlen(replies), 99, &used), 5);
    assert_int_equal(used, plain);
    assert_int_equal(reply_scan_plain(&scan, replies, strlen(replies), 2, &used), 2);
    assert_int_equal(used, strlen("+OK\r\n-ERR\r\n"));
    assert_int_equal(reply_scan_plain(&scan, replies, plain - 1, 99, &used), 4);
    assert_int_equal(reply_scan_plain(&scan, replies + plain, strlen(replies) - plain, 99, &used),
                     0);
    assert_int_equal(used, 0);
    assert_int_equal(reply_scan(&scan, "*1\r\n", 4, &used), SCAN_MORE);
    assert_int_equal(reply_scan_plain(&scan, replies, strlen(replies), 99, &used), 0);
    assert_int_equal(used, 0);
}

/*
 * Whole, in pieces, behind an attribute, and in RESP3's form. Errors inside a frame do not count.
 */
static void test_errors_are_counted(void **state)
{
    (void)state;
    static const char replies[] =
        "-ERR\r\n+OK\r\n!4\r\nERR \r\n*1\r\n-in\r\n|1\r\n+a\r\n-b\r\n-ERR\r\n:1\r\n-ERR\r\n";
    const size_t len = strlen(replies);
    for (size_t piece = 1; piece <= len; piece++) {
        struct reply_scan scan = {0};
        size_t used;
        uint32_t frames = 0;
        for (size_t at = 0; at < len;) {
            size_t n = len - at < piece ? len - at : piece;
            frames += reply_scan_plain(&scan, replies + at, n, 99, &used);
            if (used == 0)
                frames += reply_scan(&scan, replies + at, n, &used) == SCAN_FRAME;
            at += used;
        }
        assert_int_equal(frames, 7);
        assert_int_equal(scan.errors, 4);
    }
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_errors_are_counted),
        cmocka_unit_test(test_resp2),
        cmocka_unit_test(test_resp3),
        cmocka_unit_test(test_waiting),
        cmocka_unit_test(test_lost),
        cmocka_unit_test(test_depth),
        cmocka_unit_test(test_numbers_are_num_parse_s),
        cmocka_unit_test(test_what_is_known_of_a_long_bulk),
        cmocka_unit_test(test_nothing_changes_nothing),
        cmocka_unit_test(test_long_lines_and_bulks),
        cmocka_unit_test(test_plain_replies_together),
    };
    guard = guard_new(ROOM);
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    guard_free(&guard);
    return failed;
}
