/*
 * hiredis' reader as the oracle of the reply scanner. Random RESP2 streams, whole, cut short and
 * damaged, must give both the same frames, and both must refuse the same streams.
 *
 * Exceptions where hiredis 0.14 is laxer or knows less, each named and counted below:
 * - hiredis ignores the two bytes after a bulk, and the byte after a CR inside a line (weir
 *   refuses);
 * - hiredis accepts a bulk longer than 2^36 bytes (weir refuses);
 * - hiredis knows no RESP3 type and no nesting beyond 7 (weir continues).
 *
 * hiredis judges a complete line, weir the first wrong byte. hiredis therefore gets another CRLF
 * before it must agree.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <hiredis/read.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "resp/scan.h"

#include "dice.h"

#define STREAM_ROOM 65536
#define FRAMES_MAX 64
#define DEPTH 7
#define SEEDS 4000

struct stream {
    size_t len;
    char bytes[STREAM_ROOM];
};

/*
 * The result of a reader for a stream: where frames end, and whether and where the reader gave up.
 */
struct verdict {
    size_t frames;
    size_t ends[FRAMES_MAX];
    bool is_bad;
    size_t bad_at;        /* index of the last byte that the reader got */
    bool is_crlf_missing; /* a CR or an LF was expected */
    bool is_huge_bulk;
};

static void put(struct stream *to, const char *bytes, size_t n)
{
    assert_in_range(to->len + n, 0, STREAM_ROOM);
    memcpy(to->bytes + to->len, bytes, n);
    to->len += n;
}

static void put_line(struct stream *to, char type, int64_t n)
{
    char line[32];
    put(to, line, (size_t)snprintf(line, sizeof line, "%c%lld\r\n", type, (long long)n));
}

static void put_bytes(struct stream *to, uint64_t *seed, size_t n, bool is_text)
{
    for (size_t i = 0; i < n; i++) {
        char byte = dice_below(seed, 4) ? (char)dice(seed) : "\r\n$*:+-0"[dice_below(seed, 8)];
        if (is_text && byte == '\r')
            byte = '\n';
        put(to, &byte, 1);
    }
}

static void put_reply(struct stream *to, uint64_t *seed, int depth)
{
    static const size_t lengths[] = {0, 1, 2, 5, 9, 10, 15, 16, 17, 99, 100, 300, 1000, 2000};
    size_t n = lengths[dice_below(seed, dice_below(seed, 8) ? 8 : 14)];
    switch (dice_below(seed, depth > 0 ? 10 : 7)) {
    case 0:
    case 1:
        put(to, dice_below(seed, 2) ? "+" : "-", 1);
        put_bytes(to, seed, n, true);
        put(to, "\r\n", 2);
        break;
    case 2:
        put_line(to, ':', (int64_t)dice(seed) >> (n % 64));
        break;
    case 3:
        put_line(to, dice_below(seed, 3) ? '$' : '*', -1);
        break;
    case 4:
    case 5:
    case 6:
        put_line(to, '$', (int64_t)n);
        put_bytes(to, seed, n, false);
        put(to, "\r\n", 2);
        break;
    default:
        n = dice_below(seed, depth > 4 ? 4 : 3);
        put_line(to, '*', (int64_t)n);
        for (size_t i = 0; i < n; i++)
            put_reply(to, seed, depth - 1);
    }
}

/* Byte by byte, so that the wrong byte is known. */
static void scan(const struct stream *stream, struct verdict *verdict)
{
    struct reply_scan scan = {0};
    size_t bulk_end = SIZE_MAX; /* where the CR after a bulk must be */
    *verdict = (struct verdict){0};
    for (size_t at = 0; at < stream->len; at++) {
        size_t used;
        bool was_in_bulk = scan.bulk_left > 0;
        enum scan_result result = reply_scan(&scan, stream->bytes + at, 1, &used);
        if (result == SCAN_BAD) {
            verdict->is_bad = true;
            verdict->bad_at = at;
            verdict->is_crlf_missing = at == bulk_end || (at > 0 && stream->bytes[at - 1] == '\r');
            verdict->is_huge_bulk =
                scan.type == '$' && !scan.negative && scan.number > SCAN_REPLY_BULK_MAX;
            return;
        }
        if (result == SCAN_FRAME)
            verdict->ends[verdict->frames++] = at + 1;
        bool is_empty_bulk = at >= 3 && memcmp(stream->bytes + at - 3, "$0\r\n", 4) == 0;
        if ((was_in_bulk && scan.bulk_left == 0) || is_empty_bulk)
            bulk_end = at + 1;
    }
}

/*
 * Dummy objects: a damaged stream may announce any number of elements. Without objects hiredis does
 * not check numbers.
 */
static char object;

static void *no_string(const redisReadTask *task, char *text, size_t len)
{
    (void)task, (void)text, (void)len;
    return &object;
}

static void *no_array(const redisReadTask *task, int elements)
{
    (void)task, (void)elements;
    return &object;
}

static void *no_integer(const redisReadTask *task, long long value)
{
    (void)task, (void)value;
    return &object;
}

static void *no_nil(const redisReadTask *task)
{
    (void)task;
    return &object;
}

static void free_nothing(void *reply)
{
    (void)reply;
}

static redisReplyObjectFunctions no_objects = {no_string, no_array, no_integer, no_nil,
                                               free_nothing};

static void read_hiredis(const struct stream *stream, size_t len, struct verdict *verdict,
                         char *why, size_t room)
{
    redisReader *reader = redisReaderCreateWithFunctions(&no_objects);
    *verdict = (struct verdict){0};
    why[0] = '\0';
    for (size_t at = 0; at < len && !verdict->is_bad; at++) {
        void *reply = NULL;
        redisReaderFeed(reader, stream->bytes + at, 1);
        if (redisReaderGetReply(reader, &reply) != REDIS_OK) {
            verdict->is_bad = true;
            verdict->bad_at = at;
            snprintf(why, room, "%s", reader->errstr);
        } else if (reply) {
            verdict->ends[verdict->frames++] = at + 1;
        }
    }
    redisReaderFree(reader);
}

static struct stream stream;

static struct {
    size_t good, lost, crlf, huge_bulk, resp3, deep;
} count;

static void assert_same_frames(uint64_t seed, const struct verdict *ours,
                               const struct verdict *theirs, size_t frames)
{
    for (size_t i = 0; i < frames; i++)
        if (ours->ends[i] != theirs->ends[i])
            fail_msg("seed %llu: frame %zu ends at %zu, for hiredis at %zu",
                     (unsigned long long)seed, i, ours->ends[i], theirs->ends[i]);
}

/*
 * weir continues where hiredis gave up: only for types and nesting that hiredis does not know. The
 * frames before that point are equal.
 */
static void expect_hiredis_limit(uint64_t seed, const struct verdict *ours,
                                 const struct verdict *theirs, const char *why)
{
    char type = '\0';
    if (sscanf(why, "Protocol error, got \"%c\" as reply type byte", &type) == 1 &&
        strchr("_#,(!=~%|>", type))
        count.resp3++;
    else if (strstr(why, "nested multi bulk replies with depth"))
        count.deep++;
    else
        fail_msg("seed %llu: hiredis gives up at %zu: %s", (unsigned long long)seed, theirs->bad_at,
                 why);
    assert_in_range(theirs->frames, 0, ours->frames);
    assert_same_frames(seed, ours, theirs, theirs->frames);
}

/* weir gave up: so must hiredis after the end of the line, apart from the named exceptions. */
static void expect_also_lost(uint64_t seed, const struct verdict *ours)
{
    struct verdict theirs;
    char why[128];
    char behind[2];
    size_t len = ours->bad_at + 1;
    memcpy(behind, stream.bytes + len, sizeof behind);
    memcpy(stream.bytes + len, "\r\n", 2);
    read_hiredis(&stream, len + 2, &theirs, why, sizeof why);
    memcpy(stream.bytes + len, behind, sizeof behind);

    if (ours->is_crlf_missing)
        /* hiredis took the wrong bytes for the line end: its later results mean nothing */
        count.crlf++;
    else if (ours->is_huge_bulk)
        count.huge_bulk++;
    else if (!theirs.is_bad)
        fail_msg("seed %llu: we give up at %zu, hiredis never", (unsigned long long)seed,
                 ours->bad_at);
    else
        count.lost++;
    size_t frames = theirs.frames < ours->frames ? theirs.frames : ours->frames;
    assert_same_frames(seed, ours, &theirs, frames);
    if (theirs.frames < ours->frames)
        expect_hiredis_limit(seed, ours, &theirs, why);
}

static void compare(uint64_t seed)
{
    struct verdict ours;
    struct verdict theirs;
    char why[128];
    scan(&stream, &ours);
    if (ours.is_bad) {
        expect_also_lost(seed, &ours);
        return;
    }
    read_hiredis(&stream, stream.len, &theirs, why, sizeof why);
    if (theirs.is_bad) {
        expect_hiredis_limit(seed, &ours, &theirs, why);
        return;
    }
    assert_int_equal(ours.frames, theirs.frames);
    assert_same_frames(seed, &ours, &theirs, ours.frames);
    count.good++;
}

static size_t make_stream(uint64_t *seed)
{
    size_t replies = 1 + dice_below(seed, 5);
    stream.len = 0;
    for (size_t i = 0; i < replies; i++)
        put_reply(&stream, seed, DEPTH);
    return replies;
}

static void test_well_formed(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        uint64_t dice = seed;
        struct verdict ours;
        size_t replies = make_stream(&dice);
        scan(&stream, &ours);
        assert_false(ours.is_bad);
        assert_int_equal(ours.frames, replies);
        assert_int_equal(ours.ends[replies - 1], stream.len);
        compare(seed);
    }
    assert_int_equal(count.good, SEEDS);
}

static void test_cut_short(void **state)
{
    (void)state;
    count.good = 0;
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        uint64_t dice = seed;
        make_stream(&dice);
        stream.len = dice_below(&dice, stream.len + 1);
        compare(seed);
    }
    assert_int_equal(count.good, SEEDS);
}

/* Changes, inserts or removes one or two bytes. */
static void damage(uint64_t *seed)
{
    for (uint64_t times = 1 + dice_below(seed, 2); times > 0 && stream.len > 0; times--) {
        size_t at = dice_below(seed, dice_below(seed, 2) && stream.len > 12 ? 12 : stream.len);
        char byte =
            dice_below(seed, 4) ? "0123456789-+*$:\r\n%x"[dice_below(seed, 19)] : (char)dice(seed);
        switch (dice_below(seed, 3)) {
        case 0:
            stream.bytes[at] = byte;
            break;
        case 1:
            memmove(stream.bytes + at + 1, stream.bytes + at, stream.len++ - at);
            stream.bytes[at] = byte;
            break;
        default:
            memmove(stream.bytes + at, stream.bytes + at + 1, --stream.len - at);
        }
    }
}

static void test_damaged(void **state)
{
    (void)state;
    memset(&count, 0, sizeof count);
    for (uint64_t seed = 1; seed <= SEEDS * 10; seed++) {
        uint64_t dice = seed;
        make_stream(&dice);
        damage(&dice);
        compare(seed);
    }
    print_message(
        "agreed on %zu good and %zu lost streams; hiredis lets pass: %zu without CRLF, %zu huge bulks; "
        "it does not know: %zu of RESP3, %zu deep\n",
        count.good, count.lost, count.crlf, count.huge_bulk, count.resp3, count.deep);
    assert_true(count.good > 0 && count.lost > 0 && count.crlf > 0);
}

static void test_named_differences(void **state)
{
    (void)state;
    static const struct {
        const char *bytes;
        const size_t *counted;
    } rows[] = {
        {"$5\r\nhelloXX:1\r\n", &count.crlf},
        {"$0\r\nXX", &count.crlf},
        {"+a\rb\r\n", &count.crlf},
        {"$68719476737\r\n", &count.huge_bulk},
        {"*2147483648\r\n", &count.lost},
        {":1\r\n%0\r\n", &count.resp3},
        {"*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n:1\r\n", &count.deep},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        memset(&count, 0, sizeof count);
        stream.len = 0;
        put(&stream, rows[i].bytes, strlen(rows[i].bytes));
        compare(i);
        assert_int_equal(*rows[i].counted, 1);
    }
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_well_formed),
        cmocka_unit_test(test_cut_short),
        cmocka_unit_test(test_damaged),
        cmocka_unit_test(test_named_differences),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
