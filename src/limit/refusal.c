#include "limit/refusal.h"

#include <string.h>

#include "base/clock.h"

static char *refusal_put(char *at, struct slice text)
{
    memcpy(at, text.at, text.len);
    return at + text.len;
}

static char *refusal_put_number(char *at, uint64_t number)
{
    char digits[20];
    size_t first = sizeof digits;
    do {
        digits[--first] = (char)('0' + number % 10);
        number /= 10;
    } while (number > 0);
    return refusal_put(at, slice_of(digits + first, sizeof digits - first));
}

static size_t denial(char *out, const struct limit *limit)
{
    struct slice label = slice_str(limit->label);
    const char *slash = memchr(label.at, '/', label.len);
    char *at = refusal_put(out, SLICE("-NOPERM denied by policy "));
    at =
        refusal_put(at, slice_of(label.at, slash != NULL ? (size_t)(slash - label.at) : label.len));
    return (size_t)(refusal_put(at, SLICE("\r\n")) - out);
}

/* Formats by hand: a refusal must cost less than a pass, which printf does not allow. */
size_t refusal_text(char *out, struct slice prefix, const struct verdict *verdict)
{
    /* longest prefix the configuration accepts: the rest then fits in REFUSAL_ROOM */
    const size_t most = 32;
    if (verdict->limit->action == OVER_DENY)
        return denial(out, verdict->limit);
    char *at = refusal_put(out, SLICE("-"));
    at = refusal_put(at, slice_of(prefix.at, prefix.len < most ? prefix.len : most));
    at = refusal_put(at, SLICE(" retry_in_ms="));
    if (verdict->wait_ns == GATE_NEVER)
        at = refusal_put(at, SLICE("-1"));
    else
        at = refusal_put_number(at, ns_to_ms_up((uint64_t)verdict->wait_ns));
    at = refusal_put(at, SLICE(" limit="));
    at = refusal_put(at, slice_str(verdict->limit->label));
    at = refusal_put(at, SLICE("\r\n"));
    return (size_t)(at - out);
}

size_t refusal_block(char *out, struct slice reason)
{
    char *at = refusal_put(out, SLICE("-NOPERM blocked by the operator"));
    if (reason.len > 0)
        at = refusal_put(refusal_put(at, SLICE(": ")), reason);
    return (size_t)(refusal_put(at, SLICE("\r\n")) - out);
}
