/*
 * Tests of the request scanner. Every input gives one trace, however the input is cut, with each
 * piece in front of a guard page.
 *
 * A trace shows frames in order: [GET k] is multibulk with its located arguments (and "+2" for two
 * more), <PING\r\n> an inline line. "..." at the end: the last frame goes on; "!" and a text:
 * refused.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/num.h"
#include "resp/argv.h"
#include "resp/emit.h"
#include "resp/plain.h"
#include "resp/scan.h"

#include "dice.h"
#include "guard.h"
#include "show.h"

#define ROOM (4 * SCAN_LINE_MAX)

static struct guard guard;

static void show_frame(FILE *out, const struct request_scan *scan, const char *frame)
{
    putc(scan->is_inline ? '<' : '[', out);
    if (scan->is_inline)
        show_bytes(out, frame, scan->at);
    for (uint32_t i = 0; i < scan->argc && i < SCAN_ARGS; i++) {
        if (i > 0)
            putc(' ', out);
        assert_in_range(scan->args[i].off + scan->args[i].len, 0, scan->at);
        show_bytes(out, frame + scan->args[i].off, scan->args[i].len);
    }
    if (scan->argc > SCAN_ARGS)
        fprintf(out, " +%u", scan->argc - SCAN_ARGS);
    putc(scan->is_inline ? '>' : ']', out);
}

static void show_error(FILE *out, const struct request_scan *scan)
{
    char text[ERR_EXPECTED_DOLLAR_ROOM];
    struct slice said = err_text(scan->error);
    if (scan->error == ERR_PROTO_EXPECTED_DOLLAR)
        said = slice_of(text, err_expected_dollar(text, scan->got));
    putc('!', out);
    show_bytes(out, said.at, said.len - 2);
}

/*
 * Checks that the fast path accepts only what the scanner has found. `at` and `n`: the scanner's
 * input.
 */
static void check_plain(const struct request_scan *scan, const struct request_limits *limits,
                        const char *at, size_t n, enum scan_result result, size_t used)
{
    struct slice name;
    uint32_t argc;
    const char *next = plain_request(at, at + n, limits, &name, &argc);
    if (next == NULL)
        return;
    assert_int_equal(result, SCAN_FRAME);
    assert_int_equal(next - at, used);
    assert_ptr_equal(name.at, at + scan->args[0].off);
    assert_int_equal(name.len, scan->args[0].len);
}

/*
 * Checks that a request with the same head as the one before is accepted by plain_request_like if
 * and only if plain_request accepts the request.
 */
static void check_alike(const struct request_limits *limits, const char *model, const char *at,
                        size_t n)
{
    struct slice name, other;
    uint32_t argc, other_argc;
    if (plain_request(model, at + n, limits, &name, &argc) == NULL || name.len == 0)
        return;
    size_t head = plain_head(model, name);
    const char *next = plain_request(at, at + n, limits, &other, &other_argc);
    bool is_alike = next != NULL && other_argc == argc && n >= head && memcmp(at, model, head) == 0;
    assert_ptr_equal(plain_request_like(at, at + n, limits, model, head, argc),
                     is_alike ? next : NULL);
}

/*
 * Scans one piece, at the guard page. `*frame`: where the current frame begins in the input. False:
 * refused.
 */
static bool trace_piece(FILE *out, struct request_scan *scan, const struct request_limits *limits,
                        struct slice input, size_t from, size_t n, size_t *frame)
{
    const char *piece = guard_place(&guard, input.at + from, n);
    const char *before = NULL; /* where the frame before begins, if in this piece */
    size_t off = 0;
    while (off < n) {
        size_t used = SIZE_MAX;
        enum scan_result result = request_scan(scan, limits, piece + off, n - off, &used);
        if (from + off == *frame) {
            check_plain(scan, limits, piece + off, n - off, result, used);
            if (before != NULL)
                check_alike(limits, before, piece + off, n - off);
            before = piece + off;
        }
        if (result == SCAN_BAD) {
            show_error(out, scan);
            return false;
        }
        off += used;
        assert_int_equal(scan->at, from + off - *frame);
        if (result == SCAN_MORE) {
            assert_int_equal(off, n);
            break;
        }
        show_frame(out, scan, input.at + *frame);
        *frame = from + off;
    }
    return true;
}

/*
 * Cuts the input into one piece of `first` bytes and more of `rest` bytes. The caller frees the
 * trace.
 */
static char *trace(struct slice input, const struct request_limits *limits, size_t first,
                   size_t rest)
{
    char *text;
    size_t len;
    FILE *out = open_memstream(&text, &len);
    struct request_scan scan = {0};
    size_t frame = 0;
    bool good = true;
    for (size_t at = 0, n = first; at < input.len && good; at += n, n = rest) {
        if (n > input.len - at)
            n = input.len - at;
        good = trace_piece(out, &scan, limits, input, at, n, &frame);
    }
    if (good && frame < input.len)
        fputs("...", out);
    fclose(out);
    return text;
}

static void expect_trace(const char *name, struct slice input, const struct request_limits *limits,
                         size_t first, size_t rest, const char *wanted)
{
    char *got = trace(input, limits, first, rest);
    if (strcmp(got, wanted) != 0)
        fail_msg("%s, cut after %zu, then every %zu:\n got  %.400s\n want %.400s", name, first,
                 rest, got, wanted);
    free(got);
}

static void expect_however_cut(const char *name, struct slice input,
                               const struct request_limits *limits, const char *wanted)
{
    for (size_t first = 1; first <= input.len; first++)
        expect_trace(name, input, limits, first, input.len, wanted);
    for (size_t size = 1; size <= 7; size++)
        expect_trace(name, input, limits, size, size, wanted);
}

struct row {
    const char *name;
    struct slice input;
    const char *trace;
};

static void expect_rows(const struct row *rows, size_t count, const struct request_limits *limits)
{
    for (size_t i = 0; i < count; i++)
        expect_however_cut(rows[i].name, rows[i].input, limits, rows[i].trace);
}

#define EXPECT_ROWS(rows, limits) expect_rows(rows, sizeof(rows) / sizeof *(rows), &(limits))
#define IN(literal)                                                                                \
    {                                                                                              \
        ("" literal), sizeof(literal) - 1                                                          \
    }
#define PING "*1\r\n$4\r\nPING\r\n"

static void test_legal(void **state)
{
    (void)state;
    static const struct row rows[] = {
        {"one word", IN(PING), "[PING]"},
        {"get", IN("*2\r\n$3\r\nGET\r\n$16\r\nkey:000000000001\r\n"), "[GET key:000000000001]"},
        {"four arguments", IN("*4\r\n$3\r\nSET\r\n$1\r\nk\r\n$1\r\nv\r\n$2\r\nNX\r\n"),
         "[SET k v +1]"},
        {"six arguments",
         IN("*6\r\n$1\r\na\r\n$1\r\nb\r\n$1\r\nc\r\n$1\r\nd\r\n$1\r\ne\r\n$1\r\nf\r\n"),
         "[a b c +3]"},
        {"pipeline", IN(PING PING "PING\r\n" PING), "[PING][PING]<PING\\r\\n>[PING]"},
        {"three digits",
         IN("*1\r\n$100\r\n"
            "0123456789012345678901234567890123456789012345678901234567890123456789012345678901234567890"
            "123456789\r\n" PING),
         "[0123456789012345678901234567890123456789012345678901234567890123456789012345678901234567890123456789][PING]"},
        {"ok_inline_ping_lf", IN("PING\n"), "<PING\\n>"},
        {"ok_inline_double_cr", IN("PING\r\r\n"), "<PING\\r\\r\\n>"},
        {"ok_inline_mixed_case", IN("pInG\r\n"), "<pInG\\r\\n>"},
        {"ok_empty_crlf", IN("\r\n"), "<\\r\\n>"},
        {"ok_empty_then_ping", IN("\r\n\r\n\n" PING), "<\\r\\n><\\r\\n><\\n>[PING]"},
        {"ok_mb_zero_then_inline", IN("*0\r\nPING\r\n"), "[]<PING\\r\\n>"},
        {"ok_mb_minus_one_then_inline", IN("*-1\r\nPING\r\n"), "[]<PING\\r\\n>"},
        {"ok_mb_minus_ten", IN("*-10\r\n" PING), "[][PING]"},
        {"ok_mb_llong_min", IN("*-9223372036854775808\r\n" PING), "[][PING]"},
        {"ok_empty_bulk_arg", IN("*2\r\n$4\r\nECHO\r\n$0\r\n\r\n"), "[ECHO ]"},
        {"ok_bulk_looks_like_resp", IN("*2\r\n$4\r\nECHO\r\n$14\r\n" PING "\r\n"),
         "[ECHO *1\\r\\n$4\\r\\nPING\\r\\n]"},
        {"ok_single_quotes", IN("ECHO 'a b'\r\n"), "<ECHO 'a b'\\r\\n>"},
        {"ok_quoted_embedded_newline_escape", IN("ECHO \"a\\r\\nPING\"\r\n"),
         "<ECHO \"a\\r\\nPING\"\\r\\n>"},
        {"unbalanced quotes are not framing's to find", IN("\"PING\r\n'PING\r\n"),
         "<\"PING\\r\\n><'PING\\r\\n>"},
        {"inline_triple_quotes", IN("set \"\"\"test-key\"\"\" test-value\r\nping\r\n"),
         "<set \"\"\"test-key\"\"\" test-value\\r\\n><ping\\r\\n>"},
        {"blanks are a line", IN("  \t \r\n" PING), "<  \\x09 \\r\\n>[PING]"},
        {"a dollar first is inline", IN("$4\r\nPING\r\n"), "<$4\\r\\n><PING\\r\\n>"},
        {"another type first is inline", IN("#1\r\n$4\r\nPING\r\n"),
         "<#1\\r\\n><$4\\r\\n><PING\\r\\n>"},
        {"inline_simple_string", IN("+OK\r\n"), "<+OK\\r\\n>"},
        {"inline_error_reply", IN("-ERR x\r\n"), "<-ERR x\\r\\n>"},
        {"cmd_nul_name", IN("*1\r\n$1\r\n\0\r\n"), "[\\x00]"},
        {"cmd_unknown_crlf_arg", IN("*2\r\n$3\r\nFOO\r\n$4\r\na\r\nb\r\n"), "[FOO a\\r\\nb]"},
        {"http_get_with_host", IN("GET / HTTP/1.1\r\nHost: x\r\n\r\n"),
         "<GET / HTTP/1.1\\r\\n><Host: x\\r\\n><\\r\\n>"},
        {"http_post_resp_nul", IN("*1\r\n$8\r\nPOST\0abc\r\n"), "[POST\\x00abc]"},
        {"proxy_v1_header", IN("PROXY TCP4 1.2.3.4 5.6.7.8 1 2\r\nPING\r\n"),
         "<PROXY TCP4 1.2.3.4 5.6.7.8 1 2\\r\\n><PING\\r\\n>"},
        {"high bytes in a line", IN("\xff\xfe x\r\n"), "<\\xff\\xfe x\\r\\n>"},
    };
    EXPECT_ROWS(rows, request_limits_normal);
}

static void test_waiting(void **state)
{
    (void)state;
    static const struct row rows[] = {
        {"wait_partial_header", IN("*1"), "..."},
        {"wait_header_cr_only", IN("*1\r"), "..."},
        {"wait_count_int_max", IN("*2147483647\r\n"), "..."},
        {"wait_bulk_512mb_declared", IN("*2\r\n$4\r\nECHO\r\n$536870912\r\n"), "..."},
        {"validity is judged at the CR", IN("*a"), "..."},
        {"so is a bulk's", IN("*1\r\n$+"), "..."},
        {"a count may still become wrong", IN("*99999999999999999999999999999999"), "..."},
        {"inside data", IN(PING "*1\r\n$4\r\nPI"), "[PING]..."},
        {"before data's CR", IN("*1\r\n$4\r\nPING"), "..."},
        {"before data's LF", IN("*1\r\n$4\r\nPING\r"), "..."},
        {"before an argument", IN("*2\r\n$4\r\nPING\r\n"), "..."},
        {"inside a line", IN("PING\r\nPI"), "<PING\\r\\n>..."},
    };
    EXPECT_ROWS(rows, request_limits_normal);
}

#define COUNT_IS_INVALID "!-ERR Protocol error: invalid multibulk length"
#define LENGTH_IS_INVALID "!-ERR Protocol error: invalid bulk length"
#define NO_CRLF "!-ERR Protocol error: expected CRLF"
#define HOLDS_NUL "!-ERR Protocol error: NUL byte in a line"
#define GOT(byte) "!-ERR Protocol error: expected '$', got '" byte "'"

static void test_refused(void **state)
{
    (void)state;
    static const struct row rows[] = {
        {"mb_alpha", IN("*a\r\n"), COUNT_IS_INVALID},
        {"mb_empty", IN("*\r\n"), COUNT_IS_INVALID},
        {"mb_plus", IN("*+1\r\n"), COUNT_IS_INVALID},
        {"mb_minus", IN("*-\r\n"), COUNT_IS_INVALID},
        {"mb_minus_zero", IN("*-0\r\n"), COUNT_IS_INVALID},
        {"mb_minus_leading_zero", IN("*-01\r\n"), COUNT_IS_INVALID},
        {"mb_two_minus", IN("*--1\r\n"), COUNT_IS_INVALID},
        {"mb_late_minus", IN("*1-\r\n"), COUNT_IS_INVALID},
        {"mb_leading_zero", IN("*01\r\n"), COUNT_IS_INVALID},
        {"mb_double_zero", IN("*00\r\n"), COUNT_IS_INVALID},
        {"mb_float", IN("*1.0\r\n"), COUNT_IS_INVALID},
        {"mb_space", IN("* 1\r\n"), COUNT_IS_INVALID},
        {"mb_int_max_plus1", IN("*2147483648\r\n"), COUNT_IS_INVALID},
        {"mb_uint32_wrap", IN("*4294967297\r\n"), COUNT_IS_INVALID},
        {"mb_llong_max", IN("*9223372036854775807\r\n"), COUNT_IS_INVALID},
        {"mb_ullong_wrap", IN("*18446744073709551617\r\n"), COUNT_IS_INVALID},
        {"mb_llong_min_minus1", IN("*-9223372036854775809\r\n"), COUNT_IS_INVALID},
        {"mb_21_digits", IN("*000000000000000000001\r\n"), COUNT_IS_INVALID},
        {"mb_39_digits_wrap_to_one", IN("*340282366920938463463374607431768211457\r\n"),
         COUNT_IS_INVALID},
        {"judged before the LF", IN("*a\rX"), COUNT_IS_INVALID},
        {"bulk_minus_one", IN("*1\r\n$-1\r\n"), LENGTH_IS_INVALID},
        {"bulk_empty", IN("*1\r\n$\r\n"), LENGTH_IS_INVALID},
        {"bulk_leading_zero", IN("*1\r\n$04\r\nPING\r\n"), LENGTH_IS_INVALID},
        {"bulk_trail_space", IN("*1\r\n$4 \r\nPING\r\n"), LENGTH_IS_INVALID},
        {"bulk_ullong_wrap", IN("*1\r\n$18446744073709551620\r\nPING\r\n"), LENGTH_IS_INVALID},
        {"bulk_llong_max", IN("*1\r\n$9223372036854775807\r\n"), LENGTH_IS_INVALID},
        {"bulk_above_512mb", IN("*1\r\n$536870913\r\n"), LENGTH_IS_INVALID},
        {"bulk_second_argument", IN("*2\r\n$3\r\nGET\r\n$x\r\n"), LENGTH_IS_INVALID},
        {"expect_dollar_got_percent", IN("*1\r\n%1\r\n"), GOT("%")},
        {"expect_dollar_of_what_else_is_right", IN("*1\r\n%1\r\nx\r\n"), GOT("%")},
        {"expect_dollar_of_the_second_too", IN("*2\r\n$1\r\nx\r\n:1\r\ny\r\n"), GOT(":")},
        {"expect_dollar_got_star", IN("*1\r\n*1\r\n"), GOT("*")},
        {"expect_dollar_got_cr", IN("*1\r\n\r\n"), GOT(" ")},
        {"expect_dollar_got_nul", IN("*1\r\n\0"), GOT(" ")},
        {"expect_dollar_at_once", IN("*1\r\nf"), GOT("f")},
        {"expect_dollar_third_arg", IN("*3\r\n$3\r\nSET\r\n$1\r\nx\r\nfooz\r\n"), GOT("f")},
        {"pings before are frames", IN(PING "*0\r\n*b\r\n" PING), "[PING][]" COUNT_IS_INVALID},
    };
    EXPECT_ROWS(rows, request_limits_normal);
}

/* Input that Redis 7 tolerates and weir refuses on purpose. */
static void test_stricter_than_redis(void **state)
{
    (void)state;
    static const struct row rows[] = {
        {"wait_lf_only_resp", IN("*1\n$4\nPING\n"), NO_CRLF},
        {"LF in a bulk header", IN("*1\r\n$4\nPING\r\n"), NO_CRLF},
        {"wait_nul_in_inline", IN("PI\0NG\r\n"), HOLDS_NUL},
        {"NUL at once", IN("\0"), HOLDS_NUL},
        {"NUL in a count", IN("*1\0\r\n"), HOLDS_NUL},
        {"NUL in a length", IN("*1\r\n$\0"), HOLDS_NUL},
        {"wait_tls_client_hello", IN("\x16\x03\x01\x00\xa5\x01\x00\x00\xa1\x03\x03"), HOLDS_NUL},
        {"lax_trailer_then_ping", IN("*1\r\n$4\r\nPINGXX" PING), NO_CRLF},
        {"trailer with half a CRLF", IN("*1\r\n$4\r\nPING\rX"), NO_CRLF},
        {"lax_header_cr_any", IN("*1\rX$4\rXPING\r\n"), NO_CRLF},
        {"bulk header's CR alone", IN("*1\r\n$4\rXPING\r\n"), NO_CRLF},
        {"lax_header_cr_missing_lf", IN("*1\r$4\r\nPING\r\n"), NO_CRLF},
        {"long_bulk_len_desync", IN("*1\r\n$5\r\nPING\r\nPING\r\n"), NO_CRLF},
        {"short_bulk_len_desync", IN("*1\r\n$3\r\nPING\r\n"), NO_CRLF},
    };
    EXPECT_ROWS(rows, request_limits_normal);
}

static void test_before_auth(void **state)
{
    (void)state;
#define UNAUTH_COUNT "!-ERR Protocol error: unauthenticated multibulk length"
#define UNAUTH_LENGTH "!-ERR Protocol error: unauthenticated bulk length"
    static const struct row rows[] = {
        {"unauth_ping", IN(PING), "[PING]"},
        {"ten arguments", IN("*10\r\n"), "..."},
        {"unauth_mb_11", IN("*11\r\n"), UNAUTH_COUNT},
        {"unauth_mb_int_max", IN("*2147483647\r\n"), UNAUTH_COUNT},
        {"16 KiB", IN("*1\r\n$16384\r\n"), "..."},
        {"a byte more", IN("*1\r\n$16385\r\n"), UNAUTH_LENGTH},
        {"512 MiB", IN("*1\r\n$536870912\r\n"), UNAUTH_LENGTH},
        {"unauth_bulk_invalid_wins", IN("*1\r\n$-1\r\n"), LENGTH_IS_INVALID},
        {"so does one too long", IN("*1\r\n$536870913\r\n"), LENGTH_IS_INVALID},
        {"unauth_mb_invalid_wins", IN("*2147483648\r\n"), COUNT_IS_INVALID},
        {"negative counts are empty", IN("*-9223372036854775808\r\n"), "[]"},
    };
    EXPECT_ROWS(rows, request_limits_before_auth);

    static const struct request_limits tiny = {.args = 2, .bulk = 3};
    static const struct row small[] = {
        {"within", IN("*2\r\n$3\r\nGET\r\n$1\r\nk\r\n"), "[GET k]"},
        {"one argument more", IN("*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$1\r\nv\r\n"), UNAUTH_COUNT},
        {"one byte more", IN("*2\r\n$3\r\nGET\r\n$4\r\nkeys\r\n"), UNAUTH_LENGTH},
    };
    EXPECT_ROWS(small, tiny);
}

/* `head`, then `count` bytes `fill`, then `tail`. */
static void expect_long(const char *head, char fill, size_t count, struct slice tail,
                        const char *wanted)
{
    size_t len = strlen(head) + count + tail.len;
    char *input = malloc(len);
    char name[64];
    memcpy(input, head, strlen(head));
    memset(input + strlen(head), fill, count);
    if (tail.len > 0)
        memcpy(input + len - tail.len, tail.at, tail.len);

    snprintf(name, sizeof name, "'%.10s' and %zu times '%c'", head, count, fill);
    char *whole = trace(slice_of(input, len), &request_limits_normal, len, len);
    if (strncmp(whole, wanted, strlen(wanted)) != 0)
        fail_msg("%s: got %.200s, want %s", name, whole, wanted);
    static const size_t cuts[] = {
        1, 2, 7, 100, 4096, SCAN_LINE_MAX - 1, SCAN_LINE_MAX, SCAN_LINE_MAX + 1};
    for (size_t i = 0; i < sizeof cuts / sizeof cuts[0]; i++) {
        expect_trace(name, slice_of(input, len), &request_limits_normal, cuts[i], len, whole);
        expect_trace(name, slice_of(input, len), &request_limits_normal, cuts[i], cuts[i], whole);
    }
    free(whole);
    free(input);
}

static void test_long_lines(void **state)
{
    (void)state;
#define INLINE_TOO_BIG "!-ERR Protocol error: too big inline request"
#define COUNT_TOO_BIG "!-ERR Protocol error: too big mbulk count string"
#define LENGTH_TOO_BIG "!-ERR Protocol error: too big bulk count string"
    enum { MAX = SCAN_LINE_MAX };
    expect_long("", 'A', MAX, SLICE(""), "...");
    expect_long("", 'A', MAX, SLICE("\n"), "<AAAA");
    expect_long("", 'A', MAX, SLICE("\r\n"), INLINE_TOO_BIG);
    expect_long("", 'A', MAX - 1, SLICE("\r\n" PING), "<AAAA");
    expect_long("", 'A', MAX + 1, SLICE(""), INLINE_TOO_BIG);
    expect_long("", 'A', MAX + 1, SLICE("\n"), INLINE_TOO_BIG);
    expect_long("PING\n", 'A', MAX + 1, SLICE(""), "<PING\\n>" INLINE_TOO_BIG);
    expect_long("", 'A', MAX, SLICE("\0"), INLINE_TOO_BIG);
    expect_long("", 'A', MAX - 1, SLICE("\0\n"), HOLDS_NUL);
    expect_long("", 'A', MAX - 1, SLICE("\0AAA"), HOLDS_NUL);
    expect_long("", '\0', MAX + 1, SLICE(""), HOLDS_NUL);

    expect_long("*", '1', MAX - 1, SLICE(""), "...");
    expect_long("*", '1', MAX - 1, SLICE("\r"), COUNT_IS_INVALID);
    expect_long("*", '1', MAX, SLICE(""), COUNT_TOO_BIG);
    expect_long("*", '1', MAX, SLICE("\r"), COUNT_TOO_BIG);
    expect_long("*", 'x', MAX, SLICE("\r"), COUNT_TOO_BIG);
    expect_long("*", '0', MAX - 1, SLICE("\n"), COUNT_TOO_BIG);
    expect_long("*", 'x', MAX - 1, SLICE("\0"), COUNT_TOO_BIG);
    expect_long("*", 'x', MAX - 2, SLICE("\0"), HOLDS_NUL);
    expect_long("*", '7', MAX + 1, SLICE(""), COUNT_TOO_BIG);
    expect_long("*1\r\n$", '1', MAX - 1, SLICE(""), "...");
    expect_long("*1\r\n$", '1', MAX - 1, SLICE("\r\n"), LENGTH_IS_INVALID);
    expect_long("*1\r\n$", '1', MAX, SLICE("\r\n"), LENGTH_TOO_BIG);
    expect_long("*1\r\n$", '-', MAX, SLICE(""), LENGTH_TOO_BIG);
    expect_long("*2\r\n$70000\r\n", 'v', 70000, SLICE("\r\n$1\r\nk\r\n"), "[vvvv");
}

/* The scanner accepts a number in a header exactly when num_parse does. */
static void test_numbers_are_num_parse_s(void **state)
{
    (void)state;
    uint64_t seed = 7;
    for (int round = 0; round < 20000; round++) {
        char input[64] = "*";
        size_t len = 1 + dice_below(&seed, 22);
        for (size_t i = 1; i < len; i++)
            input[i] = "0123456789-"[dice_below(&seed, i == 1 ? 11 : 10)];
        int64_t count = 0;
        bool is_number = num_parse(slice_of(input + 1, len - 1), &count);
        memcpy(input + len, "\r\n", 2);

        const char *wanted = !is_number || count > INT32_MAX ? COUNT_IS_INVALID
                             : count > 0                     ? "..."
                                                             : "[]";
        expect_trace(input, slice_of(input, len + 2), &request_limits_normal, len + 2, 1, wanted);
        expect_trace(input, slice_of(input, len + 2), &request_limits_normal, 1, 1, wanted);
        expect_trace(input, slice_of(input, len + 2), &request_limits_normal, len / 2, len, wanted);
    }
}

/* During a long argument the scan knows its offset and the missing bytes. */
static void test_what_is_known_of_a_long_argument(void **state)
{
    (void)state;
    struct request_scan scan = {0};
    size_t used;
    static const char head[] = "*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$100000000\r";
    assert_int_equal(request_scan(&scan, &request_limits_normal, head, sizeof head - 1, &used),
                     SCAN_MORE);
    assert_int_equal(used, sizeof head - 1);
    assert_int_equal(scan.args[1].off, 17);
    assert_int_equal(scan.args[2].off, 0);
    assert_int_equal(scan.bulk_left, 0);

    assert_int_equal(request_scan(&scan, &request_limits_normal, "\nabc", 4, &used), SCAN_MORE);
    assert_int_equal(scan.at, sizeof head - 1 + 4);
    assert_int_equal(scan.argc, 3);
    assert_int_equal(scan.arg, 2);
    assert_int_equal(scan.args[2].off, sizeof head);
    assert_int_equal(scan.args[2].len, 100000000);
    assert_int_equal(scan.bulk_left, 100000000 - 3);

    assert_int_equal(request_scan(&scan, &request_limits_normal, head, 0, &used), SCAN_MORE);
    assert_int_equal(used, 0);
    assert_int_equal(scan.bulk_left, 100000000 - 3);
}

#define ARGS_MAX 12

/*
 * Random arguments of any bytes, with lengths around the number of digits that the fast path
 * accepts.
 */
static size_t random_args(uint64_t *seed, struct slice *args, char *bytes)
{
    static const uint32_t lengths[] = {0, 1, 2, 9, 10, 11, 99, 100, 999, 1000, 1001, 3000};
    size_t argc = 1 + dice_below(seed, ARGS_MAX);
    for (size_t i = 0; i < argc; i++) {
        args[i] = slice_of(bytes, lengths[dice_below(seed, dice_below(seed, 10) ? 6 : 12)]);
        for (size_t k = 0; k < args[i].len; k++)
            bytes[k] = dice_below(seed, 3) ? "\r\n$*"[dice_below(seed, 4)] : (char)dice(seed);
        bytes += args[i].len;
    }
    return argc;
}

static void expect_args(const struct slice *args, size_t argc, struct slice request,
                        const struct request_scan *scan)
{
    assert_int_equal(scan->argc, argc);
    for (size_t i = 0; i < argc && i < SCAN_ARGS; i++)
        assert_true(slice_eq(args[i], slice_of(request.at + scan->args[i].off, scan->args[i].len)));

    struct argv_walk walk;
    struct slice arg;
    size_t walked = 0;
    argv_walk_init(&walk, slice_of(guard_place(&guard, request.at, request.len), request.len));
    while (argv_next(&walk, &arg)) {
        assert_in_range(walked, 0, argc - 1);
        assert_true(slice_eq(args[walked++], arg));
    }
    assert_int_equal(walked, argc);
    assert_false(argv_next(&walk, &arg));
}

static void test_random_requests(void **state)
{
    (void)state;
    static char bytes[ARGS_MAX * 3000];
    static char request[sizeof bytes + (ARGS_MAX + 1) * (EMIT_HEADER_MAX + 2)];
    uint64_t seed = 11;
    for (int round = 0; round < 4000; round++) {
        struct slice args[ARGS_MAX];
        size_t argc = random_args(&seed, args, bytes);
        size_t len = emit_array(request, args, argc);
        struct request_scan scan = {0};
        size_t at = 0;
        enum scan_result result = SCAN_MORE;
        while (result == SCAN_MORE) {
            size_t used;
            size_t left = len - at;
            size_t n = dice_below(&seed, 2) ? left : 1 + dice_below(&seed, left);
            result = request_scan(&scan, &request_limits_normal,
                                  guard_place(&guard, request + at, n), n, &used);
            at += used;
        }
        assert_int_equal(result, SCAN_FRAME);
        assert_int_equal(at, len);
        expect_args(args, argc, slice_of(request, len), &scan);
    }
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_legal),
        cmocka_unit_test(test_waiting),
        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_stricter_than_redis),
        cmocka_unit_test(test_before_auth),
        cmocka_unit_test(test_long_lines),
        cmocka_unit_test(test_numbers_are_num_parse_s),
        cmocka_unit_test(test_what_is_known_of_a_long_argument),
        cmocka_unit_test(test_random_requests),
    };
    guard = guard_new(ROOM);
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    guard_free(&guard);
    return failed;
}
