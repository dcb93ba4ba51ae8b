#include "limit/figures/counts.h"

/* ---- times ---- */

#define NS_IN_US 1000

static uint64_t span(uint64_t from_ns, uint64_t to_ns)
{
    return to_ns > from_ns ? to_ns - from_ns : 0;
}

static void counts_count(struct times *times, const struct timed *timed, uint64_t now_ns)
{
    uint64_t end_ns = now_ns > timed->answered_ns ? now_ns : timed->answered_ns;
    uint64_t request_ns = span(timed->arrived_ns, end_ns);
    uint64_t upstream_ns = timed->sent_ns != 0 ? span(timed->sent_ns, timed->answered_ns) : 0;
    uint64_t others_ns = upstream_ns + ((uint64_t)timed->waited_us + timed->share_us) * NS_IN_US;
    histo_add(&times->request, request_ns, timed->n);
    histo_add(&times->overhead, span(others_ns, request_ns), timed->n);
    if (timed->sent_ns != 0)
        histo_add(&times->upstream, upstream_ns, timed->n);
    if (timed->waited_us == 0)
        return;
    histo_add(&times->held, request_ns, timed->n);
    histo_add(&times->released, span(timed->waited_us * (uint64_t)NS_IN_US, request_ns), timed->n);
}

void answered_count(struct answered *answered, struct times *times, uint64_t now_ns)
{
    for (unsigned i = 0; i < answered->n; i++)
        counts_count(times, &answered->entries[i], now_ns);
    answered->n = 0;
}

const char *counted_result_name(enum counted_result result)
{
    static const char *const names[RESULT_COUNT] = {
        [RESULT_FORWARDED] = "forwarded", [RESULT_THROTTLED] = "throttled",
        [RESULT_DELAYED] = "delayed",     [RESULT_SHADOW] = "shadow",
        [RESULT_LOCAL] = "local",         [RESULT_ERROR] = "error",
    };
    return names[result];
}

const char *rejection_name(enum rejection rejection)
{
    static const char *const names[REJECTED_COUNT] = {[REJECTED_MAX_CLIENTS] = "maxclients",
                                                      [REJECTED_RATE] = "rate",
                                                      [REJECTED_MEMORY] = "memory",
                                                      [REJECTED_TLS] = "tls",
                                                      [REJECTED_UNAUTHENTICATED] =
                                                          "unauthenticated",
                                                      [REJECTED_NO_ADDRESS] = "no-address"};
    return names[rejection];
}

bool rejection_is_early(enum rejection rejection)
{
    return rejection == REJECTED_MAX_CLIENTS || rejection == REJECTED_MEMORY ||
           rejection == REJECTED_NO_ADDRESS;
}

const char *ending_reason_name(enum ending_reason reason)
{
    static const char *const names[CLOSED_COUNT] = {
        [CLOSED_BY_CLIENT] = "client",  [CLOSED_UPSTREAM] = "upstream",
        [CLOSED_PROTOCOL] = "protocol", [CLOSED_BUFFER] = "buffer",
        [CLOSED_LIMIT] = "limit",       [CLOSED_PROXY] = "proxy",
        [CLOSED_IDLE] = "idle",         [CLOSED_KICKED] = "kick",
        [CLOSED_REQUEST] = "request",   [CLOSED_HANDSHAKE] = "handshake",
        [CLOSED_DRAIN] = "drain",       [CLOSED_MEMORY] = "memory",
    };
    return names[reason];
}

const char *protocol_error_name(enum err error)
{
    static const char *const names[ERR_COUNT] = {
        [ERR_PROTO_INLINE_TOO_BIG] = "inline",
        [ERR_PROTO_UNBALANCED_QUOTES] = "quotes",
        [ERR_PROTO_MULTIBULK_LINE_TOO_BIG] = "array_line",
        [ERR_PROTO_MULTIBULK_LENGTH] = "array_length",
        [ERR_PROTO_BULK_LINE_TOO_BIG] = "bulk_line",
        [ERR_PROTO_EXPECTED_DOLLAR] = "bulk_missing",
        [ERR_PROTO_BULK_LENGTH] = "bulk_length",
        [ERR_PROTO_UNAUTH_MULTIBULK] = "before_login",
        [ERR_PROTO_UNAUTH_BULK] = "before_login_bulk",
        [ERR_PROTO_NUL] = "nul",
        [ERR_PROTO_CRLF] = "crlf",
    };
    return names[error];
}

const char *outage_fate_name(enum outage_fate fate)
{
    static const char *const names[FATE_COUNT] = {[FATE_WAITED] = "waited",
                                                  [FATE_REFUSED] = "refused",
                                                  [FATE_AGAIN] = "again",
                                                  [FATE_LOST] = "lost"};
    return names[fate];
}
