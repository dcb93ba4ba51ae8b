/*
 * Any bytes as requests. However the bytes are cut, frames, arguments and errors are the same. The
 * arguments of every frame, encoded again, are scanned as the same arguments.
 */
#include "base/slice.h"
#include "resp/argv.h"
#include "resp/emit.h"
#include "resp/plain.h"
#include "resp/scan.h"

#include "pieces.h"

#define BYTES_MAX 4096 /* bytes; a longer input is not fed byte by byte */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

/* The arguments of a request. The caller frees the array. */
static struct slice *walk_all(struct slice request, size_t *argc)
{
    struct argv_walk walk;
    struct slice arg;
    argv_walk_init(&walk, request);
    struct slice *args = calloc(request.len / 6 + 1, sizeof *args); /* no argument is shorter */
    REQUIRE(args);
    for (*argc = 0; argv_next(&walk, &arg); args[(*argc)++] = arg)
        REQUIRE(*argc < request.len / 6);
    return args;
}

static void check_located(const struct request_scan *scan, struct slice request,
                          const struct slice *args, size_t argc)
{
    REQUIRE(scan->argc == argc && scan->at == request.len && !scan->is_inline &&
            scan->bulk_left == 0);
    for (size_t i = 0; i < argc && i < SCAN_ARGS; i++)
        REQUIRE(request.at + scan->args[i].off == args[i].at && scan->args[i].len == args[i].len);
}

/* Encodes the arguments again, and checks that the scanner finds the same arguments. */
static void check_emitted(const struct slice *args, size_t argc, size_t len)
{
    char *again = malloc(len + (argc + 1) * (EMIT_HEADER_MAX + 2));
    REQUIRE(again);
    struct request_scan scan = {0};
    size_t used;
    struct slice request = slice_of(again, emit_array(again, args, argc));
    REQUIRE(request_scan(&scan, &request_limits_normal, request.at, request.len, &used) ==
            SCAN_FRAME);
    REQUIRE(used == request.len);

    size_t argc_again;
    struct slice *args_again = walk_all(request, &argc_again);
    REQUIRE(argc_again == argc);
    for (size_t i = 0; i < argc; i++)
        REQUIRE(slice_eq(args[i], args_again[i]));
    check_located(&scan, request, args_again, argc);
    free(args_again);
    free(again);
}

static void check_multibulk(const struct request_scan *scan, struct slice request)
{
    size_t argc;
    struct slice *args = walk_all(request, &argc);
    if (scan)
        check_located(scan, request, args, argc);
    check_emitted(args, argc, request.len);
    free(args);
}

static void check_inline(struct slice line)
{
    size_t len;
    char *out = malloc(ARGV_INLINE_ROOM(line.len));
    REQUIRE(out && line.len > 0 && line.at[line.len - 1] == '\n');
    if (argv_split(line, out, &len)) {
        REQUIRE(len <= ARGV_INLINE_ROOM(line.len));
        if (len > 0)
            check_multibulk(NULL, slice_of(out, len));
    }
    free(out);
}

static void check_frame(const struct request_scan *scan, const uint8_t *frame)
{
    char *copy = piece_copy(frame, scan->at);
    struct slice request = slice_of(copy, scan->at);
    if (scan->is_inline)
        check_inline(request);
    else
        check_multibulk(scan, request);
    free(copy);
}

/* Checks that the fast path accepts only what the scanner has found. */
static void check_plain(const struct request_scan *scan, const struct request_limits *limits,
                        const char *at, size_t n, enum scan_result result, size_t used)
{
    struct slice name;
    uint32_t argc;
    const char *next = plain_request(at, at + n, limits, &name, &argc);
    if (next == NULL)
        return;
    REQUIRE(result == SCAN_FRAME && (size_t)(next - at) == used);
    REQUIRE(name.at == at + scan->args[0].off && name.len == scan->args[0].len);
    if (name.len > 0) /* runs of equal requests */
        (void)plain_request_like(next, at + n, limits, at, plain_head(at, name), argc);
}

static void digest_frame(uint64_t *sum, const struct request_scan *scan)
{
    digest(sum, scan->at);
    digest(sum, scan->argc);
    digest(sum, scan->is_inline);
    for (uint32_t i = 0; i < scan->argc && i < SCAN_ARGS; i++) {
        digest(sum, scan->args[i].off);
        digest(sum, scan->args[i].len);
    }
}

/* Scans one piece. False: refused. */
static bool feed(struct request_scan *scan, const struct request_limits *limits,
                 const uint8_t *data, size_t from, size_t n, size_t *frame, uint64_t *sum)
{
    char *piece = piece_copy(data + from, n);
    enum scan_result result = SCAN_FRAME;
    for (size_t off = 0, used; off < n && result == SCAN_FRAME; off += used) {
        result = request_scan(scan, limits, piece + off, n - off, &used);
        REQUIRE(used <= n - off);
        if (from + off == *frame)
            check_plain(scan, limits, piece + off, n - off, result, used);
        REQUIRE(result != SCAN_MORE || used == n - off);
        if (result == SCAN_BAD)
            break;
        REQUIRE(scan->at == from + off + used - *frame);
        if (result == SCAN_FRAME) {
            digest_frame(sum, scan);
            check_frame(scan, data + *frame);
            *frame = from + off + used;
        }
    }
    free(piece);
    return result != SCAN_BAD;
}

/* A digest of all results for this input. */
static uint64_t trace(const uint8_t *data, size_t n, const struct request_limits *limits,
                      enum cut cut)
{
    struct request_scan scan = {0};
    uint64_t dice = digest_of(data, n);
    uint64_t sum = 0;
    size_t frame = 0;
    bool good = true;
    for (size_t at = 0, size; at < n && good; at += size) {
        size = piece_size(cut, &dice, n - at);
        good = feed(&scan, limits, data, at, size, &frame, &sum);
    }
    digest(&sum, frame);
    REQUIRE(good == (scan.error == ERR_NONE));
    digest(&sum, scan.error);
    if (scan.error == ERR_PROTO_EXPECTED_DOLLAR)
        digest(&sum, (unsigned char)scan.got);
    if (good && frame < n) {
        digest(&sum, scan.bulk_left);
        digest(&sum, scan.arg);
    }
    return sum;
}

/* A walk over bytes that were not scanned stays inside the bytes. */
static void walk_raw(const uint8_t *data, size_t n)
{
    char *copy = piece_copy(data, n);
    struct argv_walk walk;
    struct slice arg;
    argv_walk_init(&walk, slice_of(copy, n));
    while (argv_next(&walk, &arg))
        REQUIRE(arg.at > copy && arg.at + arg.len + 2 <= copy + n);
    free(copy);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    walk_raw(data, n);
    const struct request_limits *limits[] = {&request_limits_normal, &request_limits_before_auth};
    for (size_t i = 0; i < 2; i++) {
        uint64_t whole = trace(data, n, limits[i], CUT_NOT);
        REQUIRE(trace(data, n, limits[i], CUT_RANDOM) == whole);
        if (n <= BYTES_MAX)
            REQUIRE(trace(data, n, limits[i], CUT_BYTES) == whole);
    }
    return 0;
}
