#include "base/err.h"

#include <stdio.h>

static const char *const texts[ERR_COUNT] = {
    [ERR_NONE] = "",
    [ERR_PROTO_INLINE_TOO_BIG] = "-ERR Protocol error: too big inline request\r\n",
    [ERR_PROTO_UNBALANCED_QUOTES] = "-ERR Protocol error: unbalanced quotes in request\r\n",
    [ERR_PROTO_MULTIBULK_LINE_TOO_BIG] = "-ERR Protocol error: too big mbulk count string\r\n",
    [ERR_PROTO_MULTIBULK_LENGTH] = "-ERR Protocol error: invalid multibulk length\r\n",
    [ERR_PROTO_BULK_LINE_TOO_BIG] = "-ERR Protocol error: too big bulk count string\r\n",
    [ERR_PROTO_EXPECTED_DOLLAR] = "-ERR Protocol error: expected '$', got ' '\r\n",
    [ERR_PROTO_BULK_LENGTH] = "-ERR Protocol error: invalid bulk length\r\n",
    [ERR_PROTO_UNAUTH_MULTIBULK] = "-ERR Protocol error: unauthenticated multibulk length\r\n",
    [ERR_PROTO_UNAUTH_BULK] = "-ERR Protocol error: unauthenticated bulk length\r\n",
    [ERR_PROTO_NUL] = "-ERR Protocol error: NUL byte in a line\r\n",
    [ERR_PROTO_CRLF] = "-ERR Protocol error: expected CRLF\r\n",
    [ERR_MAX_CLIENTS] = "-ERR max number of clients reached\r\n",
    [ERR_UPSTREAM_UNAVAILABLE] = "-UPSTREAM unavailable\r\n",
    [ERR_UPSTREAM_TIMEOUT] = "-UPSTREAM timeout\r\n",
    [ERR_UPSTREAM_SILENT] = "-UPSTREAM does not answer\r\n",
    [ERR_UPSTREAM_DIALS] = "-UPSTREAM busy upstream-dial-rate\r\n",
    [ERR_UPSTREAM_BUSY] = "-UPSTREAM busy max-lanes\r\n",
    [ERR_OUT_OF_MEMORY] = "-ERR out of memory\r\n",
};

struct slice err_text(enum err e)
{
    return slice_str(texts[e]);
}

size_t err_expected_dollar(char *out, char got)
{
    if (got == '\r' || got == '\n' || got == '\0')
        got = ' ';
    return (size_t)snprintf(out, ERR_EXPECTED_DOLLAR_ROOM,
                            "-ERR Protocol error: expected '$', got '%c'\r\n", got);
}
