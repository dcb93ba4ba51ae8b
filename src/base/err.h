/*
 * All errors with which weir itself answers, each with its exact text. After an ERR_PROTO_* weir
 * closes the client.
 */
#ifndef WEIR_BASE_ERR_H
#define WEIR_BASE_ERR_H

#include "base/slice.h"

enum err {
    ERR_NONE,
    ERR_PROTO_INLINE_TOO_BIG,
    ERR_PROTO_UNBALANCED_QUOTES,
    ERR_PROTO_MULTIBULK_LINE_TOO_BIG,
    ERR_PROTO_MULTIBULK_LENGTH,
    ERR_PROTO_BULK_LINE_TOO_BIG,
    /* err_expected_dollar writes the text of this error, which names the offending byte */
    ERR_PROTO_EXPECTED_DOLLAR,
    ERR_PROTO_BULK_LENGTH,
    ERR_PROTO_UNAUTH_MULTIBULK,
    ERR_PROTO_UNAUTH_BULK,
    ERR_PROTO_NUL,  /* stricter than Redis */
    ERR_PROTO_CRLF, /* stricter than Redis */
    ERR_MAX_CLIENTS,
    ERR_UPSTREAM_UNAVAILABLE,
    ERR_UPSTREAM_TIMEOUT,
    /* Redis is connected, but does not answer; reported to operators at once */
    ERR_UPSTREAM_SILENT,
    /* no lane yet, because upstream-dial-rate limits new connections; the client waits */
    ERR_UPSTREAM_DIALS,
    ERR_UPSTREAM_BUSY, /* no lane: max-lanes, or the subject's share of max-lanes, is used up */
    ERR_OUT_OF_MEMORY,
    ERR_COUNT
};

/* Returns a complete error reply, CRLF included; static. */
struct slice err_text(enum err e);

/*
 * Writes "-ERR Protocol error: expected '$', got 'X'\r\n" to `out`. Returns the length of the text.
 * A CR, LF or NUL in place of X is written as a space.
 */
#define ERR_EXPECTED_DOLLAR_ROOM 64
size_t err_expected_dollar(char *out, char got);

#endif
