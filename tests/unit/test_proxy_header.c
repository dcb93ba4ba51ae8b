/*
 * Tests of headers of the PROXY protocol, good and bad. Each is cut at every byte and fed byte by
 * byte, each piece in front of a guard page, with one result.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <string.h>

#include "net/proxy_header.h"

#include "guard.h"

#define COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))
#define ROOM 8192
#define SIGNATURE "\r\n\r\n\0\r\nQUIT\n"
#define TEXT(literal)                                                                              \
    {                                                                                              \
        literal, sizeof(literal) - 1                                                               \
    }

static struct guard guard;

struct header {
    struct slice bytes;
    const char *says; /* "address port", "none", or the error */
};

/* Prints the result ("...": incomplete) to `out`. *used: bytes taken of the input. */
static void scan(struct slice input, size_t first, size_t rest, char *out, size_t size,
                 size_t *used)
{
    struct proxy_header header = {0};
    enum scan_result result = SCAN_MORE;
    char ip[IP_TEXT_MAX];
    *used = 0;
    for (size_t at = 0, n = first, taken; at < input.len && result == SCAN_MORE;
         at += n, n = rest) {
        if (n > input.len - at)
            n = input.len - at;
        taken = SIZE_MAX;
        result = proxy_header_scan(&header, guard_place(&guard, input.at + at, n), n, &taken);
        assert_true(taken <= n && (result != SCAN_MORE || taken == n));
        *used += taken;
    }
    if (result == SCAN_MORE)
        snprintf(out, size, "...");
    else if (result == SCAN_BAD)
        snprintf(out, size, "%s", header.why);
    else if (header.ip.family == 0)
        snprintf(out, size, "none");
    else
        snprintf(out, size, "%.*s %u", (int)ip_print(&header.ip, ip), ip, (unsigned)header.port);
    if (result == SCAN_FRAME && header.ip.family != 0)
        assert_int_equal(header.to.family != 0, true);
}

static void expect(struct slice input, size_t first, size_t rest, const char *says, size_t wanted)
{
    char got[128];
    size_t used;
    scan(input, first, rest, got, sizeof got, &used);
    if (strcmp(got, says) != 0 || (wanted != SIZE_MAX && used != wanted))
        fail_msg(
            "\"%.*s\", cut after %zu, then every %zu: got \"%s\" and %zu bytes, want \"%s\" and %zu",
            (int)input.len, input.at, first, rest, got, used, says, wanted);
}

static void expect_in_all_cuts(struct slice input, const char *says, size_t wanted)
{
    for (size_t first = 1; first <= input.len; first++)
        expect(input, first, input.len, says, wanted);
    expect(input, 1, 1, says, wanted);
}

/*
 * A good header takes all of its bytes, and none behind it. Without the last byte a header is
 * incomplete.
 */
static void check_good(const struct header *header)
{
    char copy[ROOM];
    size_t len = header->bytes.len;
    memcpy(copy, header->bytes.at, len);
    memcpy(copy + len, "PING\r\n", 6);
    expect_in_all_cuts(header->bytes, header->says, len);
    expect_in_all_cuts(slice_of(copy, len + 6), header->says, len);
    for (size_t n = 1; n < len; n++)
        expect(slice_of(copy, n), n, n, "...", n);
}

/* ---- version 1 ---- */

#define LONG_NAMES                                                                                 \
    "PROXY TCP6 ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff 65535 65535\r\n"

static void test_good_lines(void **state)
{
    static const struct header headers[] = {
        {TEXT("PROXY TCP4 192.0.2.7 10.0.0.1 4711 6380\r\n"), "192.0.2.7 4711"},
        {TEXT("PROXY TCP4 255.255.255.255 0.0.0.0 65535 0\r\n"), "255.255.255.255 65535"},
        {TEXT("PROXY TCP6 2001:db8::7 ::1 1 2\r\n"), "2001:db8::7 1"},
        {TEXT("PROXY TCP6 2001:DB8::A ::1 1 2\r\n"), "2001:db8::a 1"},
        {TEXT("PROXY TCP6 ::ffff:192.0.2.7 ::1 1 2\r\n"), "192.0.2.7 1"},
        {TEXT(LONG_NAMES), "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff 65535"},
        {TEXT("PROXY UNKNOWN\r\n"), "none"},
        {TEXT("PROXY UNKNOWN \r\n"), "none"},
        {TEXT("PROXY UNKNOWN what ever 1 2 3 4\r\n"), "none"},
        {TEXT(
             "PROXY UNKNOWN ffff:f...f:ffff ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff 65535 65535 padding to 107 "
             "bytes...\r\n"),
         "none"},
    };
    (void)state;
    assert_int_equal(headers[COUNT_OF(headers) - 1].bytes.len, PROXY_LINE_MAX);
    for (size_t i = 0; i < COUNT_OF(headers); i++)
        check_good(&headers[i]);
}

#define NOT_ONE "it does not begin with a PROXY header"
#define BAD_LINE "its PROXY header has invalid addresses"
#define NO_FAMILY "its PROXY header has an unknown address family"
#define NO_END "its PROXY header does not end in CRLF"

static void test_bad_lines(void **state)
{
    static const struct header headers[] = {
        {TEXT("*1\r\n$4\r\nPING\r\n"), NOT_ONE},
        {TEXT("PING\r\n"), NOT_ONE},
        {TEXT("proxy TCP4 192.0.2.7 10.0.0.1 4711 6380\r\n"), NOT_ONE},
        {TEXT("PROXYTCP4 192.0.2.7 10.0.0.1 4711 6380\r\n"), NOT_ONE},
        {TEXT("PROXY\tTCP4 192.0.2.7 10.0.0.1 4711 6380\r\n"), NOT_ONE},
        {TEXT("PROXY \r\n"), NO_FAMILY},
        {TEXT("PROXY TCP5 192.0.2.7 10.0.0.1 4711 6380\r\n"), NO_FAMILY},
        {TEXT("PROXY tcp4 192.0.2.7 10.0.0.1 4711 6380\r\n"), NO_FAMILY},
        {TEXT("PROXY UDP4 192.0.2.7 10.0.0.1 4711 6380\r\n"), NO_FAMILY},
        {TEXT("PROXY UNKNOWNX\r\n"), NO_FAMILY},
        {TEXT("PROXY  TCP4 192.0.2.7 10.0.0.1 4711 6380\r\n"), NO_FAMILY},
        {TEXT("PROXY TCP4\r\n"), BAD_LINE},
        {TEXT("PROXY TCP4  192.0.2.7 10.0.0.1 4711 6380\r\n"), BAD_LINE},
        {TEXT("PROXY TCP4 192.0.2.7\r\n"), BAD_LINE},
        {TEXT("PROXY TCP4 192.0.2.7 10.0.0.1\r\n"), BAD_LINE},
        {TEXT("PROXY TCP4 192.0.2.7 10.0.0.1 4711\r\n"), BAD_LINE},
        {TEXT("PROXY TCP4 192.0.2.7 10.0.0.1 4711 6380 \r\n"), BAD_LINE},
        {TEXT("PROXY TCP4 192.0.2.7 10.0.0.1 4711 6380 1\r\n"), BAD_LINE},
        {TEXT("PROXY TCP4 192.0.2.7 10.0.0.1 4711 65536\r\n"), BAD_LINE},
        {TEXT("PROXY TCP4 192.0.2.7 10.0.0.1 65536 6380\r\n"), BAD_LINE},
        {TEXT("PROXY TCP4 192.0.2.7 10.0.0.1 -1 6380\r\n"), BAD_LINE},
        {TEXT("PROXY TCP4 192.0.2.7 10.0.0.1 +1 6380\r\n"), BAD_LINE},
        {TEXT("PROXY TCP4 192.0.2.7 10.0.0.1 04711 6380\r\n"), BAD_LINE},
        {TEXT("PROXY TCP4 192.0.2.7 10.0.0.1 0x1 6380\r\n"), BAD_LINE},
        {TEXT("PROXY TCP4 192.0.2.256 10.0.0.1 4711 6380\r\n"), BAD_LINE},
        {TEXT("PROXY TCP4 192.0.2 10.0.0.1 4711 6380\r\n"), BAD_LINE},
        {TEXT("PROXY TCP4 192.0.02.7 10.0.0.1 4711 6380\r\n"), BAD_LINE},
        {TEXT("PROXY TCP4 192.0.2.7\0 10.0.0.1 4711 6380\r\n"), BAD_LINE},
        {TEXT("PROXY TCP4 2001:db8::7 ::1 4711 6380\r\n"), BAD_LINE},
        {TEXT("PROXY TCP6 192.0.2.7 10.0.0.1 4711 6380\r\n"), BAD_LINE},
        {TEXT("PROXY TCP6 2001:db8::7 10.0.0.1 4711 6380\r\n"), BAD_LINE},
        {TEXT("PROXY TCP6 2001::db8::7 ::1 4711 6380\r\n"), BAD_LINE},
        {TEXT("PROXY TCP6 [::1] ::1 4711 6380\r\n"), BAD_LINE},
        {TEXT("PROXY TCP6 fe80::1%lo ::1 4711 6380\r\n"), BAD_LINE},
        {TEXT("PROXY TCP4 host 10.0.0.1 4711 6380\r\n"), BAD_LINE},
        {TEXT("PROXY TCP4 192.0.2.7 10.0.0.1 4711 6380\n"), NO_END},
        {TEXT("PROXY TCP4 192.0.2.7 10.0.0.1 4711 6380\r\r\n"), NO_END},
        {TEXT("PROXY TCP4 192.0.2.7\r 10.0.0.1 4711 6380\r\n"), NO_END},
        {TEXT("PROXY UNKNOWN\n"), NO_END},
    };
    (void)state;
    for (size_t i = 0; i < COUNT_OF(headers); i++)
        expect_in_all_cuts(headers[i].bytes, headers[i].says, SIZE_MAX);
}

static void test_a_line_that_never_ends(void **state)
{
    char line[2 * PROXY_LINE_MAX];
    (void)state;
    memset(line, 'x', sizeof line);
    memcpy(line, "PROXY UNKNOWN ", 14);
    expect(slice_of(line, PROXY_LINE_MAX - 1), 1, 1, "...", PROXY_LINE_MAX - 1);
    expect_in_all_cuts(slice_of(line, sizeof line), "its PROXY header is too long", PROXY_LINE_MAX);
}

/* ---- version 2 ---- */

/* Writes the fixed part to `out`, then `n` bytes that begin with the addresses. */
static struct slice block(char *out, unsigned command, unsigned family, unsigned length,
                          struct slice addresses, size_t n)
{
    memcpy(out, SIGNATURE, 12);
    out[12] = (char)command;
    out[13] = (char)family;
    out[14] = (char)(length >> 8);
    out[15] = (char)length;
    memset(out + 16, 0x5a, n);
    if (addresses.len > 0)
        memcpy(out + 16, addresses.at, addresses.len < n ? addresses.len : n);
    return slice_of(out, 16 + n);
}

#define V4 SLICE("\xc0\x00\x02\x07\x0a\x00\x00\x01\x12\x67\x18\xec")
#define V6                                                                                         \
    SLICE("\x20\x01\x0d\xb8\0\0\0\0\0\0\0\0\0\0\0\x07"                                             \
          "\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\x01\x12\x67\x18\xec")
#define MAPPED                                                                                     \
    SLICE("\0\0\0\0\0\0\0\0\0\0\xff\xff\xc0\x00\x02\x07"                                           \
          "\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\x01\x12\x67\x18\xec")

static void check_block(unsigned command, unsigned family, struct slice addresses, size_t n,
                        const char *says)
{
    char out[ROOM];
    const struct header header = {block(out, command, family, (unsigned)n, addresses, n), says};
    check_good(&header);
}

static void test_good_blocks(void **state)
{
    (void)state;
    check_block(0x21, 0x11, V4, 12, "192.0.2.7 4711");
    check_block(0x21, 0x11, V4, 12 + 7, "192.0.2.7 4711");
    check_block(0x21, 0x21, V6, 36, "2001:db8::7 4711");
    check_block(0x21, 0x21, V6, 36 + 300, "2001:db8::7 4711");
    check_block(0x21, 0x21, MAPPED, 36, "192.0.2.7 4711");
    check_block(0x21, 0x31, V4, 216, "none");
    check_block(0x21, 0x31, V4, 216 + 5, "none");
    check_block(0x21, 0x00, V4, 0, "none");
    check_block(0x21, 0x00, V4, 12, "none");
    check_block(0x20, 0x00, V4, 0, "none");
    check_block(0x20, 0x11, V4, 12, "none");
    check_block(0x20, 0x11, V4, 3, "none");
    check_block(0x20, 0xff, V4, 40, "none");
}

static void test_the_longest_block(void **state)
{
    char out[ROOM];
    (void)state;
    struct slice longest = block(out, 0x21, 0x11, PROXY_BLOCK_MAX, V4, PROXY_BLOCK_MAX);
    expect(longest, 1, 1, "192.0.2.7 4711", 16 + PROXY_BLOCK_MAX);
    expect(longest, 100, 1000, "192.0.2.7 4711", 16 + PROXY_BLOCK_MAX);
    expect(longest, 16 + PROXY_BLOCK_MAX, 1, "192.0.2.7 4711", 16 + PROXY_BLOCK_MAX);
    expect_in_all_cuts(block(out, 0x21, 0x11, PROXY_BLOCK_MAX + 1, V4, 20),
                       "its PROXY header is too long", 16);
    expect_in_all_cuts(block(out, 0x20, 0x00, 0xffff, V4, 20), "its PROXY header is too long", 16);
}

static void test_bad_blocks(void **state)
{
    static const struct {
        unsigned command, family, length;
        const char *says;
    } blocks[] = {
        {0x11, 0x11, 12, "its PROXY header has an unknown version or command"},
        {0x31, 0x11, 12, "its PROXY header has an unknown version or command"},
        {0x01, 0x11, 12, "its PROXY header has an unknown version or command"},
        {0x22, 0x11, 12, "its PROXY header has an unknown version or command"},
        {0x2f, 0x11, 12, "its PROXY header has an unknown version or command"},
        {0x21, 0x01, 12, NO_FAMILY},
        {0x21, 0x10, 12, NO_FAMILY},
        {0x21, 0x12, 12, NO_FAMILY},
        {0x21, 0x22, 36, NO_FAMILY},
        {0x21, 0x32, 216, NO_FAMILY},
        {0x21, 0x41, 12, NO_FAMILY},
        {0x21, 0xff, 12, NO_FAMILY},
        {0x21, 0x11, 0, "its PROXY header is too short for its addresses"},
        {0x21, 0x11, 11, "its PROXY header is too short for its addresses"},
        {0x21, 0x21, 35, "its PROXY header is too short for its addresses"},
        {0x21, 0x31, 215, "its PROXY header is too short for its addresses"},
    };
    char out[ROOM];
    (void)state;
    for (size_t i = 0; i < COUNT_OF(blocks); i++)
        expect_in_all_cuts(
            block(out, blocks[i].command, blocks[i].family, blocks[i].length, V4, 40),
            blocks[i].says, SIZE_MAX);
}

static void test_a_signature_with_any_byte_wrong(void **state)
{
    char out[ROOM];
    (void)state;
    for (size_t i = 0; i < 12; i++) {
        struct slice bytes = block(out, 0x21, 0x11, 12, V4, 12);
        out[i] ^= 1;
        expect(bytes, bytes.len, 1, NOT_ONE, i + 1);
        expect(bytes, 1, 1, NOT_ONE, i + 1);
    }
}

static int make_guard(void **state)
{
    (void)state;
    guard = guard_new(ROOM);
    return 0;
}

static int drop_guard(void **state)
{
    (void)state;
    guard_free(&guard);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_good_lines),
        cmocka_unit_test(test_bad_lines),
        cmocka_unit_test(test_a_line_that_never_ends),
        cmocka_unit_test(test_good_blocks),
        cmocka_unit_test(test_the_longest_block),
        cmocka_unit_test(test_bad_blocks),
        cmocka_unit_test(test_a_signature_with_any_byte_wrong),
    };
    return cmocka_run_group_tests(tests, make_guard, drop_guard);
}
