#include "limit/figures/counts.h"

const char *counted_result_name(enum counted_result result)
{
    static const char *const names[RESULT_COUNT] = {
        [RESULT_FORWARDED] = "forwarded", [RESULT_THROTTLED] = "throttled", [RESULT_DELAYED] = "delayed",
        [RESULT_SHADOW] = "shadow",       [RESULT_LOCAL] = "local",         [RESULT_ERROR] = "error",
    };
    return names[result];
}

const char *rejection_name(enum rejection rejection)
{
    static const char *const names[REJECTED_COUNT] = {[REJECTED_MAX_CLIENTS] = "maxclients",
                                                      [REJECTED_RATE] = "rate",
                                                      [REJECTED_MEMORY] = "memory",
                                                      [REJECTED_TLS] = "tls",
                                                      [REJECTED_UNAUTHENTICATED] = "unauthenticated",
                                                      [REJECTED_NO_ADDRESS] = "no-address"};
    return names[rejection];
}

bool rejection_is_early(enum rejection rejection)
{
    return rejection == REJECTED_MAX_CLIENTS || rejection == REJECTED_MEMORY || rejection == REJECTED_NO_ADDRESS;
}

const char *ending_reason_name(enum ending_reason reason)
{
    static const char *const names[CLOSED_COUNT] = {
        [CLOSED_BY_CLIENT] = "client",    [CLOSED_UPSTREAM] = "upstream", [CLOSED_PROTOCOL] = "protocol",
        [CLOSED_BUFFER] = "buffer",       [CLOSED_LIMIT] = "limit",       [CLOSED_PROXY] = "proxy",
        [CLOSED_IDLE] = "idle",           [CLOSED_KICKED] = "kick",       [CLOSED_REQUEST] = "request",
        [CLOSED_HANDSHAKE] = "handshake", [CLOSED_DRAIN] = "drain",       [CLOSED_MEMORY] = "memory",
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
    static const char *const names[FATE_COUNT] = {
        [FATE_WAITED] = "waited", [FATE_REFUSED] = "refused", [FATE_AGAIN] = "again", [FATE_LOST] = "lost"};
    return names[fate];
}
