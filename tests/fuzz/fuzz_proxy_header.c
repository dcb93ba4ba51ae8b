/*
 * Any bytes as a header of the PROXY protocol. However the bytes are cut, the result and the number
 * of bytes taken are the same.
 */
#include "net/proxy_header.h"

#include "pieces.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

/* A digest of all results for this input. */
static uint64_t trace(const uint8_t *data, size_t n, enum cut cut)
{
    struct proxy_header header = {0};
    enum scan_result result = SCAN_MORE;
    uint64_t dice = digest_of(data, n);
    uint64_t sum = 0;
    size_t taken = 0;
    for (size_t at = 0, size; at < n && result == SCAN_MORE; at += size) {
        size_t used = SIZE_MAX;
        size = piece_size(cut, &dice, n - at);
        char *piece = piece_copy(data + at, size);
        result = proxy_header_scan(&header, piece, size, &used);
        free(piece);
        REQUIRE(used <= size && (result != SCAN_MORE || used == size));
        REQUIRE((result == SCAN_BAD) == (header.why != NULL));
        taken += used;
    }
    REQUIRE(taken <= 16 + PROXY_BLOCK_MAX);
    digest(&sum, result);
    digest(&sum, taken);
    if (result == SCAN_FRAME) {
        digest(&sum, header.ip.family);
        digest(&sum, digest_of(header.ip.bytes, sizeof header.ip.bytes));
        digest(&sum, header.port);
    }
    return sum;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    require_one_trace(trace, data, n);
    return 0;
}
