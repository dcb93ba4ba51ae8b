/*
 * Any bytes as the answers of Redis to an unauthenticated client. However the bytes are cut into
 * pieces, the result of the probe is the same.
 */
#include "upstream/control_reply.h"

#include "pieces.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static enum auth_probe_verdict take(const uint8_t *data, size_t n, enum cut cut)
{
    struct auth_probe_answer answer = {0};
    enum auth_probe_verdict verdict = AUTH_PROBE_MORE;
    uint64_t dice = digest_of(data, n);
    for (size_t at = 0, size; at < n && verdict == AUTH_PROBE_MORE; at += size) {
        size = piece_size(cut, &dice, n - at);
        char *piece = piece_copy(data + at, size);
        verdict = auth_probe_answer_take(&answer, piece, size);
        free(piece);
    }
    return verdict;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    enum auth_probe_verdict whole = take(data, n, CUT_NOT);
    REQUIRE(whole != AUTH_PROBE_NEEDS_AUTH || (n > 7 && memcmp(data, "-NOAUTH", 7) == 0));
    REQUIRE(whole != AUTH_PROBE_SERVED || data[0] == ':' || data[0] == '-');
    /* Bytes that follow the answer count only if they arrive with the answer. */
    if (whole != AUTH_PROBE_UNKNOWN)
        for (enum cut cut = CUT_RANDOM; cut < CUT_WAYS; cut++)
            REQUIRE(take(data, n, cut) == whole);
    return 0;
}
