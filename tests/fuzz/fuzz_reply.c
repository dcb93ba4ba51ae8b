/*
 * Any bytes as replies. However the bytes are cut, frames end at the same offsets, or the stream is
 * bad.
 */
#include "resp/scan.h"

#include "pieces.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

/* Scans one piece. False: the stream is bad. */
static bool feed(struct reply_scan *scan, const uint8_t *data, size_t from, size_t n, size_t *frame,
                 uint64_t *sum)
{
    char *piece = piece_copy(data + from, n);
    enum scan_result result = SCAN_FRAME;
    for (size_t off = 0, used; off < n && result == SCAN_FRAME; off += used) {
        size_t used_plain;
        uint32_t n_plain = reply_scan_plain(scan, piece + off, n - off, 1, &used_plain);
        result = reply_scan(scan, piece + off, n - off, &used);
        REQUIRE(n_plain == 0 ? used_plain == 0 : result == SCAN_FRAME && used_plain == used);
        REQUIRE(used <= n - off);
        REQUIRE(result != SCAN_MORE || used == n - off);
        REQUIRE(result == SCAN_BAD || (result == SCAN_FRAME) == (scan->open == 0));
        REQUIRE(result == SCAN_BAD ||
                (scan->open <= SCAN_OPEN_MAX && scan->depth <= SCAN_DEPTH_MAX));
        if (result == SCAN_FRAME) {
            *frame = from + off + used;
            digest(sum, *frame);
            digest(sum, (unsigned char)scan->kind);
        }
    }
    free(piece);
    return result != SCAN_BAD;
}

/* A digest of all results for this input. */
static uint64_t trace(const uint8_t *data, size_t n, enum cut cut)
{
    struct reply_scan scan = {0};
    uint64_t dice = digest_of(data, n);
    uint64_t sum = 0;
    size_t frame = 0;
    bool good = true;
    for (size_t at = 0, size; at < n && good; at += size) {
        size = piece_size(cut, &dice, n - at);
        good = feed(&scan, data, at, size, &frame, &sum);
    }
    digest(&sum, good);
    if (good) {
        digest(&sum, scan.open);
        digest(&sum, scan.bulk_left);
        digest(&sum, scan.depth);
        digest(&sum, (unsigned char)scan.kind);
    }
    return sum;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    require_one_trace(trace, data, n);
    return 0;
}
